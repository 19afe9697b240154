//! What has become of a shelf's parts, as whoever asks is told. No I/O.
//!
//! A part that is pulled out is *silent*, as a cable that hangs loose, or *reset*, as one whose
//! other end says so. A port is what its own state, its module's and the shelf's come to; what is
//! reset can't be silent. Restoring a part restores nothing that was pulled out by itself.

use crate::error::ShelfError;
use crate::plan::{Module, Part, Plan};
use crate::sensors::{self, Sensor, ShownSensor};
use crate::zone::{ZoneWords, Zones};
use core::net::SocketAddr;
use nvme::log::Access;
use nvme_target::Group;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a part is pulled out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pull {
    /// Nothing is read, written, accepted or closed.
    Silent,
    /// Connections are reset, and none are accepted.
    Reset,
}

/// What a port says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Link {
    mbps: u32,
    mtu: u32,
}

/// Who is connected: names of hosts by port and by drive.
#[derive(Default)]
pub(crate) struct Hosts {
    pub by_port: BTreeMap<usize, Vec<String>>,
    pub by_drive: BTreeMap<usize, Vec<String>>,
}

/// How each port comes to each group from now on.
pub(crate) type Ways = Vec<(usize, Group, Access)>;

/// The state of a shelf.
pub(crate) struct State {
    plan: Plan,
    drives: Vec<Option<Pull>>,
    ports: Vec<Option<Pull>>,
    modules: BTreeMap<Module, Pull>,
    shelf: Option<Pull>,
    slow_ms: Vec<u64>,
    located: Vec<bool>,
    links: Vec<Link>,
    sensors: Vec<Sensor>,
    /// Which hosts have what.
    pub zones: Zones,
}

impl State {
    /// All in order.
    pub fn new(plan: &Plan, zones: Zones) -> Self {
        Self {
            zones,
            drives: vec![None; plan.drives],
            ports: vec![None; plan.ports],
            modules: BTreeMap::new(),
            shelf: None,
            slow_ms: vec![0; plan.drives],
            located: vec![false; plan.drives],
            links: vec![Link { mbps: 100_000, mtu: 9000 }; plan.ports],
            sensors: sensors::all(plan),
            plan: plan.clone(),
        }
    }

    /// A part is pulled out, or put back.
    pub fn set(&mut self, part: Part, how: Option<Pull>) {
        match (part, how) {
            (Part::Drive(drive), _) => self.drives[drive] = how,
            (Part::Port(port), _) => self.ports[port] = how,
            (Part::Module(module), Some(how)) => {
                self.modules.insert(module, how);
            }
            (Part::Module(module), None) => {
                self.modules.remove(&module);
            }
            (Part::Shelf, _) => self.shelf = how,
        }
    }

    /// What a drive is by itself.
    pub fn drive(&self, drive: usize) -> Option<Pull> {
        self.drives[drive]
    }

    /// What a port comes to.
    pub fn port(&self, port: usize) -> Option<Pull> {
        self.ports[port].max(self.module(self.plan.port_name(port).module))
    }

    fn module(&self, module: Module) -> Option<Pull> {
        self.modules.get(&module).copied().max(self.shelf)
    }

    /// Requests to a drive take so much longer.
    pub fn slow(&mut self, drive: usize, ms: u64) {
        self.slow_ms[drive] = ms;
    }

    /// Says what a sensor reads, what a port's link is, or how a port comes to drives.
    pub fn say(&mut self, name: &str, value: &str) -> Result<Ways, ShelfError> {
        if let Some(outcome) = sensors::set(&mut self.sensors, name, value) {
            return outcome.map(|()| Vec::new());
        }
        let words: Vec<&str> = name.split('.').collect();
        match words[..] {
            ["port", port, what @ ("mbps" | "mtu")] => {
                let port = self.plan.port(port)?;
                let number: u32 = value.parse().map_err(|_| {
                    ShelfError::Usage(format!("{value:?} is nothing that {name} can be: a number"))
                })?;
                let link = &mut self.links[port];
                let own = if what == "mbps" { &mut link.mbps } else { &mut link.mtu };
                *own = number;
                Ok(Vec::new())
            }
            ["drive", drive, "locate"] => {
                let drive = self.plan.drive(drive)?;
                self.located[drive] = match value {
                    "on" => true,
                    "off" => false,
                    _ => {
                        let told = format!("{value:?} is nothing that {name} can be: on, or off");
                        return Err(ShelfError::Usage(told));
                    }
                };
                Ok(Vec::new())
            }
            ["port", port, "ana"] => {
                let (port, access) = (self.plan.port(port)?, access(name, value)?);
                Ok([0, 1].map(|drive| (port, Plan::group(drive), access)).to_vec())
            }
            ["port", port, "ana", group @ ("1" | "2")] => {
                let (port, access) = (self.plan.port(port)?, access(name, value)?);
                let group = Plan::group(usize::from(group == "2"));
                Ok(vec![(port, group, access)])
            }
            _ => Err(ShelfError::Usage(format!(
                "there is no {name}: there are sensors, which show lists, and port.NAME.mbps, \
                 port.NAME.mtu, port.NAME.ana, port.NAME.ana.1, port.NAME.ana.2 and drive.N.locate"
            ))),
        }
    }

    /// All of it.
    pub fn shown(&self, hosts: &Hosts, address_of: impl Fn(usize) -> SocketAddr) -> Shown {
        let plan = &self.plan;
        let port = |port: usize| ShownPort {
            name: plan.port_name(port).to_string(),
            address: address_of(port).to_string(),
            state: word(self.port(port)),
            mbps: self.links[port].mbps,
            mtu: self.links[port].mtu,
            hosts: hosts.by_port.get(&port).cloned().unwrap_or_default(),
        };
        let module = |module: Module| {
            let own = (0..plan.ports).filter(|port| plan.port_name(*port).module == module);
            ShownModule {
                name: module.to_string(),
                state: word(self.module(module)),
                ports: own.map(port).collect(),
            }
        };
        let drive = |drive: usize| ShownDrive {
            slot: drive + 1,
            serial: nvme_target::serial(&plan.subsystem(drive)),
            state: match self.drives[drive] {
                None if self.slow_ms[drive] > 0 => "slow",
                state => word(state),
            },
            namespaces: (1..=plan.namespaces as u32)
                .map(|nsid| ShownNamespace {
                    nsid,
                    uuid: plan.identifier(drive, nsid).to_string(),
                    bytes: plan.namespace_bytes(),
                })
                .collect(),
            subsystem: plan.subsystem(drive).to_string(),
            located: self.located[drive],
            slow_ms: self.slow_ms[drive],
            hosts: hosts.by_drive.get(&drive).cloned().unwrap_or_default(),
        };
        Shown {
            ioms: Module::ALL.map(module).to_vec(),
            drives: (0..plan.drives).map(drive).collect(),
            sensors: self.sensors.iter().map(Sensor::shown).collect(),
            zones: self.zones.words(plan),
        }
    }
}

fn word(state: Option<Pull>) -> &'static str {
    match state {
        None => "ok",
        Some(Pull::Silent) => "silent",
        Some(Pull::Reset) => "reset",
    }
}

/// The states of access, by the words that `drive paths` has for them.
fn access(name: &str, value: &str) -> Result<Access, ShelfError> {
    Ok(match value {
        "optimized" => Access::Optimized,
        "non-optimized" => Access::NonOptimized,
        "inaccessible" => Access::Inaccessible,
        "persistent-loss" => Access::PersistentLoss,
        "change" => Access::Change,
        _ => {
            return Err(ShelfError::Usage(format!(
                "{value:?} is nothing that {name} can be: optimized, non-optimized, inaccessible, \
                 persistent-loss or change"
            )));
        }
    })
}

/// A shelf, as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shown {
    /// IO modules.
    pub ioms: Vec<ShownModule>,
    /// Drives by slot.
    pub drives: Vec<ShownDrive>,
    /// Sensors.
    pub sensors: Vec<ShownSensor>,
    /// What hosts are granted; empty: any host has all.
    pub zones: Vec<ZoneWords>,
}

/// An IO module, as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ShownModule {
    /// What it is called.
    pub name: String,
    /// `ok`, `silent` or `reset`.
    pub state: &'static str,
    /// Its ports.
    pub ports: Vec<ShownPort>,
}

/// A port, as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ShownPort {
    /// What it is called.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// `ok`, `silent` or `reset`.
    pub state: &'static str,
    /// Its link's speed, in megabits a second.
    pub mbps: u32,
    /// The largest packet, in bytes.
    pub mtu: u32,
    /// Names of hosts that are connected by it.
    pub hosts: Vec<String>,
}

/// A drive, as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ShownDrive {
    /// Its slot, from 1.
    pub slot: usize,
    /// Its serial number.
    pub serial: String,
    /// `ok`, `slow`, `silent` or `reset`.
    pub state: &'static str,
    /// The name of its subsystem.
    pub subsystem: String,
    /// Whether its indicator says where it is.
    pub located: bool,
    /// So many milliseconds more each request to it takes.
    pub slow_ms: u64,
    /// Its namespaces.
    pub namespaces: Vec<ShownNamespace>,
    /// Names of hosts that are connected to it.
    pub hosts: Vec<String>,
}

/// A namespace, as it is shown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ShownNamespace {
    /// Its number.
    pub nsid: u32,
    /// What it is known by: its UUID, and in the same bytes its NGUID.
    pub uuid: String,
    /// Its size.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_what_it_and_what_it_is_in_come_to() {
        let mut state = State::new(&Plan::small(4, 8), Zones::default());
        let ports = |state: &State| [0, 1, 2, 3].map(|port| state.port(port));
        let (silent, reset) = (Some(Pull::Silent), Some(Pull::Reset));
        assert_eq!(ports(&state), [None; 4]);
        state.set(Part::Port(1), reset);
        state.set(Part::Module(Module::A), silent);
        assert_eq!(ports(&state), [silent, reset, None, None]);
        state.set(Part::Shelf, silent);
        assert_eq!(ports(&state), [silent, reset, silent, silent]);
        state.set(Part::Shelf, None);
        state.set(Part::Module(Module::A), None);
        assert_eq!(ports(&state), [None, reset, None, None], "its own is left");
        state.set(Part::Drive(3), silent);
        assert_eq!((state.drive(3), state.drive(2)), (silent, None));
    }

    #[test]
    fn what_is_said_is_shown() {
        let mut state = State::new(&Plan::small(2, 2), Zones::default());
        state.say("port.B1.mtu", "1500").unwrap();
        state.say("port.b1.mbps", "25000").unwrap();
        state.say("fan.2", "absent").unwrap();
        state.slow(1, 20);
        state.set(Part::Drive(0), Some(Pull::Reset));
        let hosts = Hosts {
            by_port: [(1, vec!["h".to_owned()])].into(),
            by_drive: [(1, vec!["h".to_owned()])].into(),
        };
        let shown = state.shown(&hosts, |_| Plan::small(2, 2).listen);
        let b1 = &shown.ioms[1].ports[0];
        assert_eq!((b1.name.as_str(), b1.mtu, b1.mbps, b1.hosts.len()), ("B1", 1500, 25_000, 1));
        assert_eq!([0, 1].map(|at| shown.drives[at].state), ["reset", "slow"]);
        assert_eq!((shown.drives[1].hosts.len(), shown.drives[0].namespaces.len()), (1, 2));
        assert!(shown.sensors.iter().any(|own| own.name == "fan.2" && own.value.is_none()));
    }

    #[test]
    fn how_ports_come_to_drives_is_said_for_both_groups_or_for_one() {
        let mut state = State::new(&Plan::small(2, 2), Zones::default());
        let both = state.say("port.A1.ana", "change").unwrap();
        assert_eq!(
            both.iter().map(|own| (own.0, own.2)).collect::<Vec<_>>(),
            [(0, Access::Change), (0, Access::Change)]
        );
        let one = state.say("port.B1.ana.2", "non-optimized").unwrap();
        assert_eq!(one, [(1, Plan::group(1), Access::NonOptimized)]);
        for (name, value, told) in [
            ("port.A1.ana", "good", "optimized, non-optimized"),
            ("port.A1.ana.3", "change", "there is no port.A1.ana.3"),
            ("port.C1.ana", "change", "there are A1, B1"),
            ("port.A1.mtu", "big", "a number"),
            ("drive.1.locate", "blink", "on, or off"),
            ("drive.3.locate", "on", "there are 1 to 2"),
            ("fan.9", "1", "there is no fan.9"),
            ("fan.1", "loud", "a number, or absent"),
        ] {
            let error = state.say(name, value).unwrap_err().to_string();
            assert!(error.contains(told), "{name}: {error}");
        }
    }
}

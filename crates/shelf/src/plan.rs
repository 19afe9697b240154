//! What a shelf is made of, and what its parts are called. No I/O, no state.
//!
//! Ports are A1, A2, … of IO module A, then B1, B2, … of IO module B, with as many on A, or one
//! more. Drives are numbered from 1. Within the program both are counted from 0.

use crate::error::ShelfError;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::str::FromStr;
use nvme::log::Access;
use nvme::nqn::Nqn;
use nvme_target::Group;
use pace::Model;
use sha2::{Digest as _, Sha256};
use std::path::PathBuf;
use units::Uuid;

/// Most ports.
pub const PORTS: usize = 16;
/// Most drives.
pub const DRIVES: usize = 64;
/// Most namespaces of a drive.
pub const NAMESPACES: usize = 8;

/// Which drives are reached at which ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Map {
    /// A part of the drives at each pair of ports: with six ports and 24 drives, 1 to 8 at A1 and
    /// B1, 9 to 16 at A2 and B2, 17 to 24 at A3 and B3.
    #[default]
    Pairs,
    /// All drives at all ports.
    Any,
}

/// How well ports come to drives, unless something else is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Balance {
    /// Each as well as any other.
    #[default]
    Symmetric,
    /// Drives of odd numbers are at home on IO module A, others on B: the other module's ports are
    /// not optimized.
    Asymmetric,
}

/// An IO module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Module {
    /// The first.
    A,
    /// The second.
    B,
}

impl Module {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
        })
    }
}

/// What a port is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortName {
    /// Its module.
    pub module: Module,
    /// Which of its module's, from 1.
    pub number: usize,
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.module, self.number)
    }
}

/// A part of a shelf that can be pulled out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A drive.
    Drive(usize),
    /// A port: its cable.
    Port(usize),
    /// An IO module, with its ports.
    Module(Module),
    /// All of it.
    Shelf,
}

/// What a shelf is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the first port listens; the others on the ports that follow, or all on any.
    pub listen: SocketAddr,
    /// The address that hosts are told of all ports, if it is not the one they listen at.
    pub advertise: Option<IpAddr>,
    /// How many ports it has.
    pub ports: usize,
    /// How many drives it has.
    pub drives: usize,
    /// How many namespaces a drive has, which share its size.
    pub namespaces: usize,
    /// Bytes of a drive.
    pub drive_bytes: u64,
    /// Where drives are files; `None`: they are in memory.
    pub folder: Option<PathBuf>,
    /// The shelf's serial number: names and identifiers are made of it.
    pub serial: String,
    /// Which drives are reached where.
    pub map: Map,
    /// And how well.
    pub balance: Balance,
    /// A host's controllers end each other (cross-controller reset).
    pub resets: bool,
    /// What drives and ports take the time of, and how many times as long.
    pub model: Option<(&'static Model, f64)>,
    /// Threads that serve.
    pub cores: u16,
}

/// Bytes of a drive's blocks.
pub const BLOCK_BYTES: u32 = 4096;

impl Plan {
    /// A small one in memory, on any ports of this machine: to be changed by who tries something.
    pub fn small(ports: usize, drives: usize) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            advertise: None,
            ports,
            drives,
            namespaces: 2,
            drive_bytes: 8 << 20,
            folder: None,
            serial: "S1".to_owned(),
            map: Map::Pairs,
            balance: Balance::Symmetric,
            resets: true,
            model: None,
            cores: 1,
        }
    }

    /// Whether it can be.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), ShelfError> {
        let usage = |text: String| Err(ShelfError::Usage(text));
        let within = |what: &str, count: usize, most: usize| match count {
            0 => usage(format!("a shelf has at least one of its {what}")),
            _ if count > most => usage(format!("a shelf has at most {most} {what}")),
            _ => Ok(()),
        };
        within("ports", self.ports, PORTS)?;
        within("drives", self.drives, DRIVES)?;
        within("namespaces", self.namespaces, NAMESPACES)?;
        within("cores", self.cores.into(), 64)?;
        let last = usize::from(self.listen.port()) + self.ports - 1;
        if self.listen.port() != 0 && last > usize::from(u16::MAX) {
            return usage(format!("port {last}, which the last port would have, is none"));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if self.serial.is_empty() || self.serial.len() > 20 || !self.serial.chars().all(is_plain) {
            return usage(
                "a serial number has 1 to 20 letters, digits, '-', '_' or '.'".to_owned(),
            );
        }
        if self.namespace_bytes() < 1 << 20 {
            return usage("each namespace has at least 1 MiB: make drives larger".to_owned());
        }
        if self.model.is_some() && self.folder.is_some() {
            return usage(
                "a shelf that is paced by a model is in memory: leave --dir out".to_owned(),
            );
        }
        Ok(())
    }

    /// Bytes of a namespace.
    pub fn namespace_bytes(&self) -> u64 {
        let bytes = self.drive_bytes / self.namespaces.max(1) as u64;
        bytes - bytes % u64::from(BLOCK_BYTES)
    }

    /// Ports of module A, which are as many as B's or one more.
    fn columns(&self) -> usize {
        self.ports.div_ceil(2)
    }

    /// What a port is called.
    pub fn port_name(&self, port: usize) -> PortName {
        let columns = self.columns();
        let module = if port < columns { Module::A } else { Module::B };
        PortName { module, number: port % columns + 1 }
    }

    /// The ports at which a drive is reached.
    pub fn ports_of(&self, drive: usize) -> Vec<usize> {
        let (columns, all) = (self.columns(), 0..self.ports);
        match self.map {
            Map::Any => all.collect(),
            Map::Pairs => {
                let column = drive / self.drives.div_ceil(columns);
                all.filter(|port| port % columns == column).collect()
            }
        }
    }

    /// A drive's subsystem.
    pub fn subsystem(&self, drive: usize) -> Nqn {
        let name = format!("nqn.2026-11.org.example:{}:drive-{}", self.serial, drive + 1);
        Nqn::new(&name).expect("a short name of plain letters")
    }

    /// What a namespace is known by, wherever a shelf of this serial number is.
    pub fn identifier(&self, drive: usize, nsid: u32) -> Uuid {
        let name = format!("{} namespace {nsid}", self.subsystem(drive));
        let hash = Sha256::digest(name.as_bytes());
        let mut id: [u8; 16] = *hash.first_chunk().expect("a hash has 32 bytes");
        // RFC 9562, section 5.8: version 8, whose bytes are the maker's own; and the variant.
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        Uuid(id)
    }

    /// The group of a drive's namespaces: those that are at home on the same module.
    pub fn group(drive: usize) -> Group {
        let number = if drive % 2 == 0 { 1 } else { 2 };
        Group::new(number).expect("there are two")
    }

    /// How a port comes to the drives of a group, unless something else is said.
    pub fn access(&self, port: usize, group: Group) -> Access {
        let home = if group == Self::group(0) { Module::A } else { Module::B };
        match self.balance {
            Balance::Asymmetric if self.port_name(port).module != home => Access::NonOptimized,
            _ => Access::Optimized,
        }
    }

    /// The port of a name.
    ///
    /// # Errors
    /// Which there are.
    pub fn port(&self, name: &str) -> Result<usize, ShelfError> {
        let names: Vec<String> = (0..self.ports).map(|p| self.port_name(p).to_string()).collect();
        let found = names.iter().position(|own| own.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let all = names.join(", ");
            ShelfError::Usage(format!("there is no port {name}: there are {all}"))
        })
    }

    /// The drive of a number.
    ///
    /// # Errors
    /// Which there are.
    pub fn drive(&self, number: &str) -> Result<usize, ShelfError> {
        let found = usize::from_str(number).ok().filter(|n| (1..=self.drives).contains(n));
        found.map(|number| number - 1).ok_or_else(|| {
            let last = self.drives;
            ShelfError::Usage(format!("there is no drive {number}: there are 1 to {last}"))
        })
    }

    /// The part that words name.
    ///
    /// # Errors
    /// What there is.
    pub fn part(&self, kind: &str, name: Option<&str>) -> Result<Part, ShelfError> {
        let module = |name: &str| {
            let found = Module::ALL.into_iter().find(|m| m.to_string().eq_ignore_ascii_case(name));
            found.ok_or_else(|| {
                ShelfError::Usage(format!("there is no IO module {name}: there are A and B"))
            })
        };
        match (kind, name) {
            ("drive", Some(number)) => Ok(Part::Drive(self.drive(number)?)),
            ("port", Some(name)) => Ok(Part::Port(self.port(name)?)),
            ("iom", Some(name)) => Ok(Part::Module(module(name)?)),
            ("shelf", None) => Ok(Part::Shelf),
            _ => Err(ShelfError::Usage(
                "a part is one of: drive NUMBER, port NAME, iom A, iom B, shelf".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_ports_has_its_part_of_the_drives() {
        let names = |plan: &Plan, ports: Vec<usize>| -> Vec<String> {
            ports.into_iter().map(|port| plan.port_name(port).to_string()).collect()
        };
        let six = Plan::small(6, 24);
        assert_eq!(names(&six, (0..6).collect()), ["A1", "A2", "A3", "B1", "B2", "B3"]);
        for (drive, at) in [(0, ["A1", "B1"]), (7, ["A1", "B1"]), (8, ["A2", "B2"])] {
            assert_eq!(names(&six, six.ports_of(drive)), at);
        }
        assert_eq!(names(&six, six.ports_of(23)), ["A3", "B3"]);
        let any = Plan { map: Map::Any, ..six };
        assert_eq!(any.ports_of(23).len(), 6);
        let odd = Plan::small(3, 2);
        assert_eq!(names(&odd, odd.ports_of(0)), ["A1", "B1"]);
        assert_eq!(names(&odd, odd.ports_of(1)), ["A2"]);
        assert_eq!(names(&Plan::small(1, 5), Plan::small(1, 5).ports_of(4)), ["A1"]);
    }

    #[test]
    fn every_drive_is_reached_and_no_two_namespaces_are_one() {
        for ports in 1..=PORTS {
            for drives in [1, 2, 5, 24, DRIVES] {
                let plan = Plan::small(ports, drives);
                assert!((0..drives).all(|drive| !plan.ports_of(drive).is_empty()), "{ports}");
            }
        }
        let plan = Plan::small(6, 24);
        let ids = (0..24).flat_map(|drive| [1, 2].map(|nsid| plan.identifier(drive, nsid)));
        let all: std::collections::BTreeSet<_> = ids.collect();
        assert_eq!(all.len(), 48);
        let other = Plan { serial: "S2".to_owned(), ..plan.clone() };
        assert_ne!(plan.identifier(0, 1), other.identifier(0, 1));
        assert_eq!(plan.subsystem(6).as_str(), "nqn.2026-11.org.example:S1:drive-7");
    }

    #[test]
    fn drives_are_at_home_on_a_module_or_on_both() {
        let even = Plan::small(2, 4);
        let odd = Plan { balance: Balance::Asymmetric, ..even.clone() };
        let access = |plan: &Plan, drive| [0, 1].map(|port| plan.access(port, Plan::group(drive)));
        assert_eq!(access(&even, 1), [Access::Optimized; 2]);
        assert_eq!(access(&odd, 0), [Access::Optimized, Access::NonOptimized]);
        assert_eq!(access(&odd, 1), [Access::NonOptimized, Access::Optimized]);
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let plan = Plan::small(4, 8);
        let part = |words: &[&str]| plan.part(words[0], words.get(1).copied());
        assert_eq!(part(&["drive", "8"]).unwrap(), Part::Drive(7));
        assert_eq!(part(&["port", "b2"]).unwrap(), Part::Port(3));
        assert_eq!(part(&["iom", "A"]).unwrap(), Part::Module(Module::A));
        assert_eq!(part(&["shelf"]).unwrap(), Part::Shelf);
        for (words, told) in [
            (&["drive", "9"][..], "there are 1 to 8"),
            (&["drive", "0"], "there are 1 to 8"),
            (&["port", "C1"], "there are A1, A2, B1, B2"),
            (&["iom", "C"], "there are A and B"),
            (&["drive"], "a part is one of"),
            (&["shelf", "1"], "a part is one of"),
        ] {
            let error = part(words).unwrap_err().to_string();
            assert!(error.contains(told), "{words:?}: {error}");
        }
    }

    #[test]
    fn a_plan_that_can_not_be_is_refused() {
        assert!(Plan::small(6, 24).check().is_ok());
        let wrong = |change: fn(&mut Plan), told: &str| {
            let mut plan = Plan::small(6, 24);
            change(&mut plan);
            let error = plan.check().unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        };
        wrong(|plan| plan.ports = 0, "at least one of its ports");
        wrong(|plan| plan.ports = 17, "at most 16 ports");
        wrong(|plan| plan.drives = 65, "at most 64 drives");
        wrong(|plan| plan.listen.set_port(65_531), "port 65536");
        wrong(|plan| plan.serial = "a b".to_owned(), "letters, digits");
        wrong(|plan| plan.drive_bytes = 1 << 20, "at least 1 MiB");
        wrong(
            |plan| {
                plan.folder = Some("/tmp".into());
                plan.model = pace::by_name("sn840").map(|model| (model, 1.0));
            },
            "is in memory",
        );
    }
}

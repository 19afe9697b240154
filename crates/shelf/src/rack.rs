//! A shelf that runs: drives, ports that listen, and what is done to them meanwhile.
//!
//! Invariants
//! - A change is there on every core before whoever asked for it is answered.
//! - A port that does not listen keeps its number: nobody else gets it.

use crate::ask::{Answer, Ask};
use crate::core::{self, Cores, Env, Key, Shared};
use crate::error::ShelfError;
use crate::plan::{BLOCK_BYTES, Plan};
use crate::service;
use crate::state::{Hosts, Pull, State};
use crate::switches::Switches;
use crate::zone::Zones;
use drives::{OpenOptions, SharedDrive};
use nvme_target::{Export, Port, Product, Target};
use pace::DriveState;
use runtime::{Config, Runtime};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::collections::BTreeSet;
use std::fs::OpenOptions as FileOptions;
use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use tokio::sync::broadcast;
use units::{CoreId, Nanos};

/// The serial number of a shelf that is given none: the one that its folder has, or one at random,
/// which the folder then has.
///
/// # Errors
/// What the system refuses.
pub fn serial(folder: Option<&Path>) -> Result<String, ShelfError> {
    let file = folder.map(|folder| folder.join("serial"));
    match file.as_ref().map(std::fs::read_to_string) {
        Some(Ok(text)) => return Ok(text.trim().to_owned()),
        Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
            return Err(ShelfError::of("the folder's serial", &error));
        }
        _ => {}
    }
    let mut bytes = [0; 4];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut all| all.read_exact(&mut bytes));
    random.map_err(|error| ShelfError::of("/dev/urandom", &error))?;
    let serial = format!("SHELF-{:08X}", u32::from_le_bytes(bytes));
    if let (Some(folder), Some(file)) = (folder, file) {
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&file, format!("{serial}\n")));
        written.map_err(|error| ShelfError::of(file.display(), &error))?;
    }
    Ok(serial)
}

/// A running shelf. It ends when this is dropped.
pub struct Shelf {
    rack: Arc<Rack>,
    /// Behind the rack, so that nothing is asked of cores that have ended.
    _runtime: Runtime<(), SharedDrive>,
}

/// What a running shelf is made of.
pub(crate) struct Rack {
    plan: Plan,
    shared: Arc<Shared>,
    cores: Cores,
    ports: Vec<HeldPort>,
    state: Mutex<State>,
    /// Where something has changed.
    news: broadcast::Sender<String>,
}

/// A port's address, held by a socket that never listens: others may listen there that ask for just
/// this one, and the system gives it to nobody else.
struct HeldPort {
    address: SocketAddr,
    _held: OwnedFd,
}

impl HeldPort {
    fn new(wanted: SocketAddr) -> std::io::Result<Self> {
        let family = match wanted {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let held = rustix::net::socket(family, SocketType::STREAM, None)?;
        sockopt::set_socket_reuseaddr(&held, true)?;
        rustix::net::bind(&held, &wanted)?;
        let bound = rustix::net::getsockname(&held)?;
        let address = SocketAddr::try_from(bound)?;
        Ok(Self { address, _held: held })
    }
}

impl Shelf {
    /// Starts one.
    ///
    /// # Errors
    /// What can't be, or what the system refuses.
    pub fn start(plan: &Plan) -> Result<Self, ShelfError> {
        plan.check()?;
        let shared = Arc::new(Shared {
            target: Target::new(Product {
                model: "Palisade shelf".into(),
                version: env!("CARGO_PKG_VERSION").into(),
                quiesce_ms: 0,
                resets: plan.resets,
            }),
            switches: Arc::new(Switches::new(plan.ports, plan.drives)),
            drives: drives(plan)?,
            names: (0..plan.drives).map(|drive| plan.subsystem(drive).to_string()).collect(),
            next: AtomicU16::new(0),
        });
        let zones = match &plan.folder {
            Some(folder) => Zones::load(folder, plan)?,
            None => Zones::default(),
        };
        for (name, export) in (0..plan.drives).flat_map(|drive| exports(plan, &zones, drive)) {
            shared.target.add(&name, export).expect("each has its own name and number");
        }
        for port in 0..plan.ports {
            for group in [0, 1].map(Plan::group) {
                let access = plan.access(port, group);
                shared.target.set_access(Shared::port_id(port), group, access);
            }
        }
        shared.target.settle();
        let config = Config { cores: plan.cores, ..Config::default() };
        let own = shared.clone();
        let started = Runtime::start_with(config, move |env: Env| core::begin(&env, &own));
        let runtime = started.map_err(|error| ShelfError::of("cores can't start", &error))?;
        let rack = Rack {
            cores: runtime.handle(),
            ports: held(plan)?,
            state: Mutex::new(State::new(plan, zones)),
            news: broadcast::Sender::new(service::KEPT),
            plan: plan.clone(),
            shared,
        };
        for port in 0..plan.ports {
            rack.listen(port)?;
        }
        Ok(Self { rack: Arc::new(rack), _runtime: runtime })
    }

    /// Where its ports listen, by their names.
    pub fn ports(&self) -> Vec<(String, SocketAddr)> {
        let named = |(number, port): (usize, &HeldPort)| {
            (self.rack.plan.port_name(number).to_string(), port.address)
        };
        self.rack.ports.iter().enumerate().map(named).collect()
    }

    /// Does what is asked.
    ///
    /// # Errors
    /// Why not.
    pub fn ask(&self, ask: &Ask) -> Result<Answer, ShelfError> {
        self.rack.ask(ask)
    }

    pub(crate) fn rack(&self) -> &Arc<Rack> {
        &self.rack
    }
}

/// The addresses of all ports.
fn held(plan: &Plan) -> Result<Vec<HeldPort>, ShelfError> {
    let held = |port: usize| {
        let mut wanted = plan.listen;
        if wanted.port() != 0 {
            wanted.set_port(wanted.port() + port as u16);
        }
        HeldPort::new(wanted).map_err(|error| {
            ShelfError::of(format_args!("port {} at {wanted}", plan.port_name(port)), &error)
        })
    };
    (0..plan.ports).map(held).collect()
}

/// Drives, by namespace and by the port that they are reached by.
fn drives(plan: &Plan) -> Result<Vec<Vec<Vec<SharedDrive>>>, ShelfError> {
    let bytes = plan.namespace_bytes();
    let ports: Vec<_> = (0..plan.ports)
        .map(|_| {
            let (model, slower) = plan.model?;
            Some(Arc::new(pace::Port::new(model.port.as_ref()?, slower)))
        })
        .collect();
    let namespace = |drive: usize, namespace: usize| {
        let own = match (&plan.folder, plan.model) {
            (Some(folder), _) => file(folder, (drive + 1, namespace + 1), bytes)?,
            (None, Some((model, slower))) => {
                let state = DriveState::new(model, slower, None);
                SharedDrive::paced(bytes, BLOCK_BYTES, Arc::new(state))
            }
            (None, None) => SharedDrive::memory(bytes, BLOCK_BYTES, false),
        };
        let behind = |port: &Option<Arc<pace::Port>>| match port {
            Some(port) => own.behind(port.clone()),
            None => own.clone(),
        };
        Ok(ports.iter().map(behind).collect())
    };
    let drive = |drive| (0..plan.namespaces).map(|own| namespace(drive, own)).collect();
    (0..plan.drives).map(drive).collect()
}

/// A namespace's file, which is made if it is not there.
fn file(
    folder: &Path,
    (drive, namespace): (usize, usize),
    bytes: u64,
) -> Result<SharedDrive, ShelfError> {
    std::fs::create_dir_all(folder).map_err(|error| ShelfError::of(folder.display(), &error))?;
    let path = folder.join(format!("drive-{drive}-{namespace}"));
    let of = |error| ShelfError::of(path.display(), &error);
    let made = FileOptions::new().write(true).create(true).truncate(false).open(&path);
    let made = made.map_err(of)?;
    let there = made.metadata().map_err(of)?.len();
    if there == 0 {
        made.set_len(bytes).map_err(of)?;
    } else if there != bytes {
        return Err(ShelfError::Failed(format!(
            "{} has {there} bytes, and the drive's namespace would have {bytes}: give the \
             --drive-size and --namespaces with which it was made, or another --dir",
            path.display()
        )));
    }
    let opened = SharedDrive::open(&path, &OpenOptions::default());
    opened.map_err(|error| ShelfError::Failed(error.to_string()))
}

/// What a drive serves, by its names in the target.
fn exports(plan: &Plan, zones: &Zones, drive: usize) -> Vec<(String, Export<Key>)> {
    let ports: BTreeSet<_> = plan.ports_of(drive).into_iter().map(Shared::port_id).collect();
    let export = |namespace: usize| {
        let nsid = namespace as u32 + 1;
        let id = plan.identifier(drive, nsid).0;
        let export = Export {
            subsystem: plan.subsystem(drive),
            nsid,
            volume: Key { drive, namespace },
            nguid: id,
            uuid: id,
            ports: ports.clone(),
            hosts: zones.hosts(drive, namespace + 1),
            group: Plan::group(drive),
        };
        (format!("{drive}:{nsid}"), export)
    };
    (0..plan.namespaces).map(export).collect()
}

impl Rack {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Has a core do something, and waits for it.
    fn on_core<R: Send + 'static>(
        &self,
        core: CoreId,
        what: impl FnOnce(&core::Core) -> R + Send + 'static,
    ) -> Result<R, ShelfError> {
        let (sender, receiver) = mpsc::channel();
        let call = move |_: &Env| {
            if let Some(core) = core::here() {
                // Nobody waits any more where the shelf has ended.
                let _ = sender.send(what(&core));
            }
        };
        self.cores.run_on(core, Box::new(call));
        receiver.recv().map_err(|_| ShelfError::Failed("the shelf has ended".to_owned()))
    }

    fn on_cores(
        &self,
        what: impl Fn(&core::Core) + Clone + Send + 'static,
    ) -> Result<(), ShelfError> {
        (0..self.cores.cores()).try_for_each(|core| self.on_core(CoreId(core), what.clone()))
    }

    /// Listens at a port.
    fn listen(&self, port: usize) -> Result<(), ShelfError> {
        let address = self.ports[port].address;
        let name = self.plan.port_name(port);
        let of = |error| ShelfError::of(format_args!("port {name} at {address}"), &error);
        let listener = TcpListener::bind(address).map_err(of)?;
        let cores = self.cores.clone();
        self.on_core(CoreId(0), move |core| core.listen(port, listener, cores))?.map_err(of)?;
        let advertised = self.plan.advertise.unwrap_or(address.ip());
        // One that stands for all of this machine's is that by which a host comes.
        let told = (!advertised.is_unspecified()).then(|| advertised.to_string());
        let told = Port { address: told, service: address.port() };
        self.shared.target.set_port(Shared::port_id(port), told);
        Ok(())
    }

    /// What the shelf is made of.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The resources that change from now on.
    pub fn news(&self) -> broadcast::Receiver<String> {
        self.news.subscribe()
    }

    /// The resource that is changed by what is asked.
    pub fn origin(&self, ask: &Ask) -> String {
        service::origin(ask, |name| {
            let port = self.plan.port(name).ok()?;
            Some(self.plan.port_name(port).module.to_string())
        })
    }

    /// Does what is asked.
    pub fn ask(&self, ask: &Ask) -> Result<Answer, ShelfError> {
        let answer = self.carry_out(ask)?;
        if matches!(answer, Answer::Done {}) {
            // It may be that nobody listens.
            let _ = self.news.send(self.origin(ask));
        }
        Ok(answer)
    }

    fn carry_out(&self, ask: &Ask) -> Result<Answer, ShelfError> {
        match ask {
            Ask::Pull { part, name, how } => {
                let part = self.plan.part(part, name.as_deref())?;
                self.change(|state| state.set(part, Some(*how)))?;
            }
            Ask::Restore { part, name } => {
                let part = self.plan.part(part, name.as_deref())?;
                self.change(|state| state.set(part, None))?;
            }
            Ask::Slow { drive, ms } => {
                let drive = self.plan.drive(drive)?;
                self.lock().slow(drive, *ms);
                self.shared.switches.set_slow(drive, Nanos::from_millis(*ms));
            }
            Ask::Set { name, value } => {
                for (port, group, access) in self.lock().say(name, value)? {
                    self.shared.target.set_access(Shared::port_id(port), group, access);
                }
            }
            Ask::AddZone(words) => self.rezone(|zones| zones.add(words, &self.plan))?,
            Ask::RemoveZone { name } => self.rezone(|zones| zones.remove(name))?,
            Ask::Show => {
                let (hosts, address_of) = (self.hosts(), |port: usize| self.ports[port].address);
                return Ok(Answer::Shown(self.lock().shown(&hosts, address_of)));
            }
        }
        Ok(Answer::Done {})
    }

    /// Changes what is pulled out, and does what comes of it.
    fn change(&self, change: impl FnOnce(&mut State)) -> Result<(), ShelfError> {
        let mut state = self.lock();
        let pulled = |state: &State| {
            let ports: Vec<_> = (0..self.plan.ports).map(|port| state.port(port)).collect();
            let drives: Vec<_> = (0..self.plan.drives).map(|drive| state.drive(drive)).collect();
            (ports, drives)
        };
        let before = pulled(&state);
        change(&mut state);
        let after = pulled(&state);
        for (port, (was, is)) in before.0.into_iter().zip(after.0).enumerate() {
            self.shared.switches.silence_port(port, is == Some(Pull::Silent));
            if is_reset(is) && !is_reset(was) {
                let closed = self.on_core(CoreId(0), move |core| core.close(port))?;
                closed.map_err(|error| {
                    ShelfError::of(format_args!("port {}", self.plan.port_name(port)), &error)
                })?;
                self.on_cores(move |core| core.reset(|own, _| own == port))?;
            } else if is_reset(was) && !is_reset(is) {
                self.listen(port)?;
            }
        }
        for (drive, (was, is)) in before.1.into_iter().zip(after.1).enumerate() {
            self.shared.switches.silence_drive(drive, is == Some(Pull::Silent));
            if is_reset(is) && !is_reset(was) {
                for (name, _) in exports(&self.plan, &state.zones, drive) {
                    self.shared.target.suspend(&name);
                }
                self.on_cores(move |core| core.reset(|_, own| own == Some(drive)))?;
            } else if is_reset(was) && !is_reset(is) {
                self.serve(&state, drive);
            }
        }
        self.on_cores(core::Core::look_again)
    }

    /// Changes zones, and what hosts have by that: who has nothing of a drive any more loses it.
    fn rezone(
        &self,
        change: impl FnOnce(&mut Zones) -> Result<(), ShelfError>,
    ) -> Result<(), ShelfError> {
        let mut state = self.lock();
        let mut zones = state.zones.clone();
        change(&mut zones)?;
        if let Some(folder) = &self.plan.folder {
            zones.save(folder, &self.plan)?;
        }
        state.zones = zones;
        let is_there = |drive: &usize| !is_reset(state.drive(*drive));
        (0..self.plan.drives).filter(is_there).for_each(|drive| self.serve(&state, drive));
        Ok(())
    }

    /// Serves what a drive has, to those who have it by the zones.
    fn serve(&self, state: &State, drive: usize) {
        for (name, export) in exports(&self.plan, &state.zones, drive) {
            let added = self.shared.target.add(&name, export);
            added.expect("nobody else has its name or number");
        }
    }

    /// Who is connected.
    fn hosts(&self) -> Hosts {
        let mut hosts = Hosts::default();
        for (exports, connected) in self.shared.target.connections() {
            let drive = exports.first().and_then(|name| name.split(':').next()?.parse().ok());
            let Some(drive) = drive else { continue };
            for own in connected {
                let add = |all: &mut Vec<String>| {
                    if !all.contains(&own.host) {
                        all.push(own.host.clone());
                        all.sort();
                    }
                };
                add(hosts.by_port.entry(usize::from(own.port.0) - 1).or_default());
                add(hosts.by_drive.entry(drive).or_default());
            }
        }
        hosts
    }
}

fn is_reset(state: Option<Pull>) -> bool {
    state == Some(Pull::Reset)
}

//! Drives behind NVMe/TCP: a process's subsystems, their paths, and their namespaces as drives.
//!
//! A [`Fabric`] has a core of its own, which is no data core: there paths are kept, discovery is
//! asked, and requests run for callers that wait. Each data core that has drives bound serves the
//! fabric ([`Fabric::serve`]) and has an I/O queue of each association.
//!
//! States of a subsystem: there is none → connected, by its first path → closed, with its last one.
//!
//! Invariants
//! - One name, one drive: `nvme://NQN/NSID`, whatever path it was found by. The identity of a
//!   namespace is that of no other subsystem's.
//! - A subsystem of which a drive is open keeps a path, at least.

mod core;
mod line;
mod name;
mod wishes;

use crate::counts::Counts;
use crate::shared::SharedDrive;
use ::core::fmt;
use ::core::sync::atomic::{AtomicU64, Ordering};
use io::{Buf, BufMut, Drive, DriveError, DriveInfo, Env, Pool, Priority};
use nvme::drive::Identifiers;
use nvme::log::Place as Found;
use nvme::nqn::Nqn;
use nvme::pdu::Digests;
use nvme_host::{
    HostIdentity, NamespaceInfo, PathStatus, Problem, RemoteDrive, Settings, Subsystem, discover,
};
use runtime::{Bind, Config, CoreEnv, Handle, NoDrive, Runtime};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use thiserror::Error;
use units::{CoreId, Nanos, Uuid};

pub use name::{BadName, Name, Place};
pub use nvme_host as host;
pub use wishes::Wishes;

/// Why something is not found, connected or disconnected.
#[derive(Debug, Error)]
pub enum FabricError {
    /// The name leads to no address.
    #[error("{place}: {why}")]
    NoAddress {
        /// What was looked up.
        place: Place,
        /// What came of it.
        why: std::io::Error,
    },
    /// The controller is not reached, or refuses.
    #[error("{place}: {problem}")]
    Problem {
        /// Where it was tried.
        place: Place,
        /// What is wrong.
        problem: Problem,
    },
    /// There is no such subsystem here.
    #[error("{0} is not connected")]
    NotConnected(Nqn),
    /// There is no such path.
    #[error("{0} is not connected by {1}")]
    NoPath(Nqn, Place),
    /// Drives would lose their last path.
    #[error("{0} is in use, and would lose its last path")]
    InUse(Nqn),
    /// It has something otherwise than wanted: what, by nvme-cli's name.
    #[error("{0} is connected with another {1}")]
    Otherwise(Nqn, &'static str),
    /// More than there can be.
    #[error("{0} has as many paths as a subsystem can have")]
    TooMany(Nqn),
    /// The subsystem has no such namespace, or it can be no drive.
    #[error("{0} has no namespace {1} that can be a drive")]
    NoNamespace(Nqn, u32),
    /// Another has the same identity.
    #[error("{path} has the same identity as {other}: one is a clone of the other")]
    Cloned {
        /// The one that was to be opened.
        path: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// The fabric has ended.
    #[error("the fabric has ended")]
    Ended,
}

/// The fabric's own core.
type OwnEnv = CoreEnv<(), NoDrive>;

/// A subsystem that is connected.
struct Connected {
    subsystem: Arc<Subsystem>,
    /// Drives that are open.
    drives: Vec<std::sync::Weak<Remote>>,
}

struct Inner {
    number: u64,
    host: HostIdentity,
    settings: Settings,
    handle: Handle<(), NoDrive>,
    subsystems: Mutex<BTreeMap<String, Connected>>,
    /// The fabric's own core runs as long as somebody has the fabric; whoever has only a drive of
    /// it does not hold it.
    _runtime: Mutex<Runtime<(), NoDrive>>,
}

/// The subsystems of a process. Clones are the same.
#[derive(Clone)]
pub struct Fabric(Arc<Inner>);

/// A subsystem, as users know it.
#[derive(Clone, Debug)]
pub struct SubsystemStatus {
    /// Its name.
    pub name: Nqn,
    /// The serial number that its controllers tell.
    pub serial: String,
    /// Its namespaces.
    pub namespaces: BTreeMap<u32, NamespaceInfo>,
    /// Its paths.
    pub paths: Vec<PathStatus>,
}

/// A namespace that is open as a drive.
pub(crate) struct Remote {
    /// The fabric's number, and its core.
    fabric: u64,
    handle: Handle<(), NoDrive>,
    subsystem: Arc<Subsystem>,
    namespace: u32,
    is: NamespaceInfo,
    /// The lapse of the subsystem behind which it was opened.
    lapse: u64,
    pub(crate) path: PathBuf,
    pub(crate) serial: String,
    pub(crate) counts: Counts,
}

impl Fabric {
    /// Starts the fabric's own core. Each of `cores` data cores can have drives. `settings` says
    /// how paths are used; the number of queues follows from that of cores.
    ///
    /// # Errors
    /// The core can't be started.
    pub fn start(host: HostIdentity, settings: Settings, cores: u16) -> std::io::Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let config = Config { spin: ::core::time::Duration::ZERO, ..Config::default() };
        let runtime = Runtime::start_with(config, move |env| self::core::serve(&env, number, 1))?;
        let (handle, subsystems) = (runtime.handle(), Mutex::default());
        let settings = Settings { io_queues: 1 + cores, ..settings };
        let _runtime = Mutex::new(runtime);
        Ok(Self(Arc::new(Inner { number, host, settings, handle, subsystems, _runtime })))
    }

    /// From now on this data core can have the fabric's drives.
    pub fn serve<M: Send + 'static, S: Bind>(&self, env: &CoreEnv<M, S>) {
        self::core::serve(env, self.0.number, 2 + env.core().0);
    }

    fn subsystems(&self) -> MutexGuard<'_, BTreeMap<String, Connected>> {
        self.0.subsystems.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn ask<T: Send + 'static>(
        &self,
        what: impl AsyncFnOnce(OwnEnv) -> T + Send + 'static,
    ) -> Result<T, FabricError> {
        ask(&self.0.handle, what)
    }

    /// Asks a discovery service: its generation, and where subsystems are. Digests are used where
    /// they are wished for. The caller waits.
    ///
    /// # Errors
    /// It is not reached, or does not tell.
    pub fn discover(
        &self,
        place: &Place,
        wishes: &Wishes,
    ) -> Result<(u64, Vec<Found>), FabricError> {
        let address = address(place)?;
        let usual = Settings { digests: Digests::default(), ..self.0.settings };
        let (host, settings) = wishes.over(&self.0.host, &usual);
        let told = self.ask(async move |env: OwnEnv| {
            let dial = self::core::dial(&env, settings.keep_alive);
            discover(&env, &dial, address, &host, settings.digests).await
        })?;
        told.map_err(|problem| FabricError::Problem { place: place.clone(), problem })
    }

    /// Connects a subsystem by a path, which may be there already. The caller waits until it is
    /// live.
    ///
    /// # Errors
    /// It can't be made live; then it is taken away again, if it was not there before.
    pub fn connect(&self, place: &Place, name: &Nqn) -> Result<(), FabricError> {
        self.connect_by(name, std::slice::from_ref(place), &Wishes::default())
    }

    /// Connects a subsystem by paths, some of which may be there already. The caller waits until
    /// each is live, or could not be made so.
    ///
    /// # Errors
    /// None can be made live; then those are taken away again that were not there before. Where one
    /// is live the others stay, and are tried again.
    fn connect_by(&self, name: &Nqn, places: &[Place], wishes: &Wishes) -> Result<(), FabricError> {
        let own = self.connected(name, wishes)?;
        let (mut problem, mut paths) = (None, Vec::new());
        for place in places {
            match address(place).and_then(|address| self.path(&own, address)) {
                Ok((path, is_new)) => paths.push((path, is_new, place.clone())),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        let tried = self.ask(async move |_| {
            let (mut is_live, mut problems) = (false, Vec::new());
            for (path, is_new, place) in paths {
                match own.tried(path).await {
                    None => is_live = true,
                    Some(problem) => problems.push((path, is_new, place, problem)),
                }
            }
            if !is_live {
                for (path, ..) in problems.iter().filter(|(_, is_new, ..)| *is_new) {
                    own.remove(*path);
                    own.gone(*path).await;
                }
            }
            let first = problems.into_iter().next().map(|(_, _, place, problem)| (place, problem));
            (is_live, first)
        });
        self.forget_unused(name);
        let (is_live, first) = tried?;
        let first = first.map(|(place, problem)| FabricError::Problem { place, problem });
        match problem.or(first) {
            Some(error) if !is_live => Err(error),
            _ => Ok(()),
        }
    }

    /// The path of a subsystem at an address, which the fabric's core keeps; and whether it is new.
    fn path(
        &self,
        subsystem: &Arc<Subsystem>,
        address: SocketAddr,
    ) -> Result<(nvme_host::Path, bool), FabricError> {
        let too_many = || FabricError::TooMany(subsystem.name.clone());
        let (path, is_new) = subsystem.add(address).ok_or_else(too_many)?;
        if is_new {
            let own = subsystem.clone();
            let keep = move |env: &OwnEnv| self::core::keep_path(env, &own, path);
            self.0.handle.run_on(CoreId(0), Box::new(keep));
        }
        Ok((path, is_new))
    }

    /// Disconnects a subsystem: the path at that place, or all. The caller waits until nothing is
    /// sent there any more.
    ///
    /// # Errors
    /// It is not connected, or a drive of it would lose its last path.
    pub fn disconnect(&self, name: &Nqn, place: Option<&Place>) -> Result<(), FabricError> {
        let not_connected = || FabricError::NotConnected(name.clone());
        let address = place.map(address).transpose()?;
        let paths = {
            let mut all = self.subsystems();
            let own = all.get_mut(&name.to_string()).ok_or_else(not_connected)?;
            let paths = own.subsystem.paths(Nanos(0));
            let (gone, left): (Vec<_>, Vec<_>) =
                paths.iter().partition(|path| address.is_none_or(|to| to == path.address));
            if let (true, Some(place)) = (gone.is_empty(), place) {
                return Err(FabricError::NoPath(name.clone(), place.clone()));
            }
            own.drives.retain(|drive| drive.strong_count() > 0);
            if left.is_empty() && !own.drives.is_empty() {
                return Err(FabricError::InUse(name.clone()));
            }
            gone.iter().for_each(|path| own.subsystem.remove(path.path));
            let gone: Vec<_> = gone.iter().map(|path| path.path).collect();
            (own.subsystem.clone(), gone)
        };
        self.ask(async move |_| {
            let (subsystem, gone) = paths;
            for path in gone {
                subsystem.gone(path).await;
            }
        })?;
        self.forget_unused(name);
        Ok(())
    }

    /// The subsystem of that name, made if there is none.
    ///
    /// # Errors
    /// It is there, and otherwise than wished.
    fn connected(&self, name: &Nqn, wishes: &Wishes) -> Result<Arc<Subsystem>, FabricError> {
        let mut all = self.subsystems();
        let own = all.entry(name.to_string()).or_insert_with(|| {
            let (host, settings) = wishes.over(&self.0.host, &self.0.settings);
            let subsystem = match host == self.0.host {
                true => Subsystem::new(name.clone(), host, settings),
                false => Subsystem::alias(name.clone(), host, settings),
            };
            let own = subsystem.clone();
            let look_after = Box::new(move |env: &OwnEnv| {
                self::core::look_after(env, &own);
            });
            self.0.handle.run_on(CoreId(0), look_after);
            Connected { subsystem, drives: Vec::new() }
        });
        match wishes.unmet(&own.subsystem) {
            Some(what) => Err(FabricError::Otherwise(name.clone(), what)),
            None => Ok(own.subsystem.clone()),
        }
    }

    /// Closes a subsystem that has no path and no drive.
    fn forget_unused(&self, name: &Nqn) {
        let mut all = self.subsystems();
        let is_unused = all.get(&name.to_string()).is_some_and(|own| {
            let has_drives = own.drives.iter().any(|drive| drive.strong_count() > 0);
            own.subsystem.is_unreached() && !has_drives
        });
        if is_unused && let Some(own) = all.remove(&name.to_string()) {
            own.subsystem.close();
        }
    }

    /// All subsystems.
    pub fn status(&self) -> Vec<SubsystemStatus> {
        // By the clock of the core that keeps the paths.
        let now = self.0.handle.counts(CoreId(0)).map_or(Nanos(0), |counts| counts.time);
        let status = |own: &Connected| SubsystemStatus {
            name: own.subsystem.name.clone(),
            serial: own.subsystem.serial(),
            namespaces: own.subsystem.namespaces(),
            paths: own.subsystem.paths(now),
        };
        self.subsystems().values().map(status).collect()
    }

    /// Whether a subsystem was never reached.
    pub fn awaits(&self) -> bool {
        self.subsystems().values().any(|own| !own.subsystem.was_reached())
    }

    /// The subsystems that a name stands for, each with the places where it is to be connected:
    /// found at its address where it does not say which, with all places that are told there.
    fn meant(
        &self,
        name: &Name,
        wishes: &Wishes,
    ) -> Result<BTreeMap<Nqn, Vec<Place>>, FabricError> {
        let (None, Some(place)) = (&name.subsystem, &name.place) else {
            let places = name.place.iter().cloned().collect::<Vec<_>>();
            return Ok(name.subsystem.iter().map(|own| (own.clone(), places.clone())).collect());
        };
        let mut all = BTreeMap::<Nqn, Vec<Place>>::new();
        // Digests are for what is found there.
        let as_host = Wishes { host: wishes.host.clone(), ..Wishes::default() };
        for found in self.discover(place, &as_host)?.1 {
            if found.kind != nvme::log::PlaceKind::Subsystem {
                continue;
            }
            let places = all.entry(found.subsystem).or_default();
            let at = Place { host: found.address, port: found.service.parse().unwrap_or(0) };
            // What is told of no address that could be meant is where it was asked.
            let at = if at.host.is_empty() || at.port == 0 { place.clone() } else { at };
            if !places.contains(&at) {
                places.push(at);
            }
        }
        Ok(all)
    }

    /// The namespaces that a name stands for, each by its one name; `connect` is what is done with
    /// each subsystem where the name has an address: with all of them, whatever becomes of one.
    fn each(
        &self,
        (name, wishes): (&Name, &Wishes),
        connect: impl Fn(&Nqn, &[Place]) -> Result<(), FabricError>,
    ) -> Result<Vec<PathBuf>, FabricError> {
        let (mut found, mut problem) = (Vec::new(), None);
        for (subsystem, places) in self.meant(name, wishes)? {
            if !places.is_empty()
                && let Err(error) = connect(&subsystem, &places)
            {
                problem = problem.or(Some(error));
                continue;
            }
            let namespaces = match name.namespace {
                Some(namespace) => vec![namespace],
                None => {
                    let own = self.connected(&subsystem, &Wishes::default())?;
                    own.namespaces().into_keys().collect()
                }
            };
            found.extend(namespaces.iter().map(|id| Name::whole(&subsystem, *id)));
        }
        match problem {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }

    /// The namespaces that a name stands for, each by its one name. One that has an address is
    /// connected by that; where a discovery service tells of several places, by all of them. The
    /// caller waits.
    ///
    /// # Errors
    /// As [`Fabric::discover`], or a subsystem is reached nowhere, or connected otherwise than
    /// wished. The others are connected then.
    pub fn find(&self, name: &Name, wishes: &Wishes) -> Result<Vec<PathBuf>, FabricError> {
        let connect =
            |subsystem: &Nqn, places: &[Place]| self.connect_by(subsystem, places, wishes);
        self.each((name, wishes), connect)
    }

    /// The same, without waiting for subsystems: those that are not connected yet will be, and
    /// their namespaces are known then. The caller waits for a discovery service.
    ///
    /// # Errors
    /// No place of a subsystem is an address, it has too many paths, or as [`Fabric::discover`].
    pub fn want(&self, name: &Name) -> Result<Vec<PathBuf>, FabricError> {
        let usual = Wishes::default();
        self.each((name, &usual), |subsystem, places| {
            // Awaited also while nobody says where the place is.
            let own = self.connected(subsystem, &usual)?;
            let want = |place| self.path(&own, address(place)?).map(|_| ());
            let outcomes = places.iter().map(want).collect::<Vec<_>>();
            match outcomes.iter().any(Result::is_ok) {
                true => Ok(()),
                false => outcomes.into_iter().collect(),
            }
        })
    }

    /// What tells a namespace from others, as [`SharedDrive::serial`] has it, and the serial number
    /// of its subsystem; `None` as long as no path leads there.
    pub fn identity(&self, name: &Nqn, namespace: u32) -> Option<(String, String)> {
        let all = self.subsystems();
        let subsystem = &all.get(&name.to_string())?.subsystem;
        let is = subsystem.namespace(namespace)?;
        let of = subsystem.serial();
        subsystem.is_reached(namespace).then(|| (serial(&is.known, &of, namespace), of))
    }

    /// For how long what was sent to a controller of a subsystem may still be carried out once its
    /// path is lost; `None` as long as none was reached.
    pub fn fence(&self, name: &Nqn) -> Option<Nanos> {
        let subsystem = self.subsystems().get(&name.to_string())?.subsystem.clone();
        subsystem.was_reached().then(|| subsystem.fence())
    }

    /// Opens a namespace as a drive. The same that is open already, if it is, and did not lose what
    /// it had in a cache.
    ///
    /// # Errors
    /// The subsystem is not connected or has no such namespace, or another's has its identity.
    pub fn open(&self, name: &Nqn, namespace: u32) -> Result<SharedDrive, FabricError> {
        let path = Name::whole(name, namespace);
        let mut all = self.subsystems();
        let is = {
            let own = all.get(&name.to_string());
            let own = own.ok_or_else(|| FabricError::NotConnected(name.clone()))?;
            let is = own.subsystem.namespace(namespace);
            is.ok_or_else(|| FabricError::NoNamespace(name.clone(), namespace))?
        };
        for (other, own) in &*all {
            for (id, known) in own.subsystem.namespaces() {
                let is_other = *other != name.to_string() || id != namespace;
                if is_other && is_same(&known.known, &is.known) {
                    let other = Name::whole(&own.subsystem.name, id);
                    return Err(FabricError::Cloned { path, other });
                }
            }
        }
        let own = all.get_mut(&name.to_string()).expect("it was found");
        own.drives.retain(|drive| drive.strong_count() > 0);
        let open = own.drives.iter().filter_map(std::sync::Weak::upgrade);
        let lapse = if is.info.volatile_cache { own.subsystem.lapse() } else { 0 };
        let is_it = |drive: &Arc<Remote>| (drive.namespace, drive.lapse) == (namespace, lapse);
        let drive = open.into_iter().find(is_it);
        let drive = drive.unwrap_or_else(|| {
            let (fabric, handle) = (self.0.number, self.0.handle.clone());
            let subsystem = own.subsystem.clone();
            let serial = serial(&is.known, &subsystem.serial(), namespace);
            let counts = Counts::default();
            let remote =
                Remote { fabric, handle, subsystem, namespace, is, lapse, path, serial, counts };
            let remote = Arc::new(remote);
            own.drives.push(Arc::downgrade(&remote));
            remote
        });
        Ok(SharedDrive::remote(drive))
    }
}

/// Has the fabric's core do something, and waits for what comes of it.
fn ask<T: Send + 'static>(
    handle: &Handle<(), NoDrive>,
    what: impl AsyncFnOnce(OwnEnv) -> T + Send + 'static,
) -> Result<T, FabricError> {
    let (sender, answer) = mpsc::channel();
    let call = Box::new(move |env: &OwnEnv| {
        let own = env.clone();
        env.spawn(Priority::First, async move {
            // Nobody waits any more where the caller has ended.
            let _ = sender.send(what(own).await);
        });
    });
    handle.run_on(CoreId(0), call);
    answer.recv().map_err(|_| FabricError::Ended)
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fabric({})", self.0.host.nqn)
    }
}

/// The first address that a place leads to. The caller waits.
fn address(place: &Place) -> Result<SocketAddr, FabricError> {
    let no_address = |why| FabricError::NoAddress { place: place.clone(), why };
    let mut found = (place.host.as_str(), place.port).to_socket_addrs().map_err(no_address)?;
    found.next().ok_or_else(|| no_address(ErrorKind::NotFound.into()))
}

/// Whether both have an identifier, and the same.
fn is_same(one: &Identifiers, other: &Identifiers) -> bool {
    let same = |one: &[u8], other: &[u8]| one == other && one.iter().any(|byte| *byte != 0);
    same(&one.nguid, &other.nguid) || same(&one.uuid, &other.uuid) || same(&one.eui64, &other.eui64)
}

/// What tells a namespace from others, as the kernel writes it (`wwid`).
fn serial(known: &Identifiers, subsystem: &str, namespace: u32) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match known {
        Identifiers { uuid, .. } if *uuid != [0; 16] => format!("uuid.{}", Uuid(*uuid)),
        Identifiers { nguid, .. } if *nguid != [0; 16] => format!("eui.{}", hex(nguid)),
        Identifiers { eui64, .. } if *eui64 != [0; 8] => format!("eui.{}", hex(eui64)),
        _ => format!("nvme.{subsystem}-{namespace}"),
    }
}

impl Remote {
    pub(crate) fn info(&self) -> &DriveInfo {
        &self.is.info
    }

    /// The drive of the calling core.
    pub(crate) fn bind(&self) -> RemoteDrive {
        let requests = self::core::requests(self.fabric, &self.subsystem);
        let drive = RemoteDrive::new(requests, self.namespace, self.is.info.clone(), self.is.can);
        drive.behind(self.lapse).of(self.subsystem.clone())
    }

    /// Has the fabric's core do something with its drive, and waits for that.
    fn now<T: Send + 'static>(
        self: &Arc<Self>,
        what: impl AsyncFnOnce(RemoteDrive) -> Result<T, DriveError> + Send + 'static,
    ) -> Result<T, DriveError> {
        let own = self.clone();
        let done = ask(&self.handle, async move |_| what(own.bind()).await);
        done.unwrap_or(Err(DriveError::Gone))
    }

    pub(crate) fn read_now(
        self: &Arc<Self>,
        offset: u64,
        into: &mut BufMut,
    ) -> Result<(), DriveError> {
        let bytes = into.len();
        let read = self.now(async move |drive: RemoteDrive| {
            let (result, data) = drive.read(offset, Pool::single(bytes)).await;
            result.map(|()| data.to_vec())
        })?;
        into.copy_from_slice(&read);
        Ok(())
    }

    pub(crate) fn gather_now(
        self: &Arc<Self>,
        offset: u64,
        data: &[Buf],
    ) -> Result<(), DriveError> {
        let bytes: Vec<u8> = data.iter().flat_map(|piece| piece.iter().copied()).collect();
        self.now(async move |drive: RemoteDrive| {
            let mut buffer = Pool::single(bytes.len());
            buffer.copy_from_slice(&bytes);
            drive.write(offset, &[buffer.freeze()], false).await
        })
    }

    pub(crate) fn unguard_now(self: &Arc<Self>) -> Result<(), DriveError> {
        self.now(async move |drive: RemoteDrive| {
            drive.reached().inspect(|reached| reached.guard(None));
            Ok(())
        })
    }

    pub(crate) fn flush_now(self: &Arc<Self>) -> Result<(), DriveError> {
        self.now(async move |drive: RemoteDrive| drive.flush().await)
    }

    pub(crate) fn zero_now(self: &Arc<Self>, offset: u64, bytes: u64) -> Result<(), DriveError> {
        self.now(async move |drive: RemoteDrive| drive.write_zeroes(offset, bytes).await)
    }
}

/// Whether a path is the name of a remote drive.
pub fn is_remote(path: &Path) -> bool {
    Name::of(path).is_some()
}

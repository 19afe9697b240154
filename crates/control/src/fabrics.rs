//! Drives behind NVMe over Fabrics, as the daemon has them.
//!
//! States: idle, as long as nobody names such a drive → running, with a core of its own that data
//! cores serve beside.
//!
//! Invariants
//! - Who this host is stays the same from start to start: what the configuration says, else what
//!   `/etc/nvme` has for all programs of this machine, else what was made once and is kept in the
//!   state directory. It is found once, and the same for subsystems and for shared arrays.
//! - Nothing here runs on the control plane's own thread: names are looked up, and controllers
//!   waited for, on threads of their own.

use crate::address;
use crate::chance;
use crate::config::{self, Fabrics as Says};
use crate::lock::lock;
use crate::nameplate::Nameplate;
use crate::state::State;
use ::nvme::log::{self, Access, PlaceKind};
use ::nvme::nqn::Nqn;
use core::fmt::Display;
use drives::remote::host::{HostIdentity, NamespaceInfo, PathState, PathStatus};
use drives::remote::{Fabric, FabricError, Name, Place, SubsystemStatus, Wishes, is_remote};
use drives::{OpenError, SharedDrive};
use redfish::change;
use redfish::messages as say;
use redfish::told::{Connected, Discovered, DiscoveredEntry};
use redfish::view::{self, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{Nanos, Uuid};

/// Where all programs of a machine find who it is.
const ETC: &str = "/etc/nvme";
/// The files of the state directory.
const HOST_NQN: &str = "hostnqn";
const HOST_ID: &str = "hostid";
/// For how long what a name with `*` stood for counts.
const KNOWN: Duration = Duration::from_secs(10);

/// For how long it counts that not all was found.
const AGAIN: Duration = Duration::from_secs(1);

/// Names that a name with `*` stood for, and when that was found.
type Found = BTreeMap<PathBuf, (Instant, Vec<PathBuf>)>;

/// Has data cores serve a fabric's drives: before whatever they are asked next.
pub type Serve = Box<dyn Fn(&Fabric) + Send + Sync>;

/// The daemon's fabric.
pub struct Fabrics {
    /// Data cores.
    cores: u16,
    serve: Serve,
    says: Mutex<Says>,
    state: Mutex<Option<Arc<State>>>,
    /// Who this host is, once that was found.
    host: Mutex<Option<HostIdentity>>,
    fabric: Mutex<Option<Fabric>>,
    found: Mutex<Found>,
    /// How long a drive may take, in ms, and the subsystems of which it was told that a lost path
    /// may take longer.
    deadline_ms: AtomicU64,
    slow: Mutex<BTreeSet<String>>,
}

impl Fabrics {
    /// Idle, with the settings that are usual.
    pub fn new(cores: u16, serve: Serve) -> Self {
        let (says, state, host, fabric, found, slow) = Default::default();
        let deadline_ms = AtomicU64::new(u64::MAX);
        Self { cores, serve, says, state, host, fabric, found, deadline_ms, slow }
    }

    /// How long a drive may take until it is taken out.
    pub fn set_deadline(&self, ms: u64) {
        self.deadline_ms.store(ms, Ordering::Relaxed);
        lock(&self.slow).clear();
    }

    /// What the configuration says, and where who this host is can be kept. It counts for a fabric
    /// that does not run yet.
    pub fn set(&self, says: Says, state: Option<Arc<State>>) {
        (*lock(&self.says), *lock(&self.state)) = (says, state);
    }

    /// The fabric, if it runs.
    pub fn running(&self) -> Option<Fabric> {
        lock(&self.fabric).clone()
    }

    /// The fabric. The caller may have to wait for its start.
    ///
    /// # Errors
    /// It can't be started.
    pub fn fabric(&self) -> Result<Fabric, Error> {
        let mut fabric = lock(&self.fabric);
        if let Some(fabric) = &*fabric {
            return Ok(fabric.clone());
        }
        let says = lock(&self.says).clone();
        let host = self.host()?;
        let started = Fabric::start(host, says.settings, self.cores);
        let started = started.map_err(|error| not_started(&error))?;
        (self.serve)(&started);
        Ok(fabric.insert(started).clone())
    }

    /// How often this host says on the drives of its shared arrays that it lives.
    pub fn heartbeat(&self) -> Nanos {
        lock(&self.says).heartbeat
    }

    /// Who this host is. The caller may have to wait for files.
    ///
    /// # Errors
    /// It has no names, and none can be made.
    pub fn host(&self) -> Result<HostIdentity, Error> {
        let mut known = lock(&self.host);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let says = lock(&self.says).clone();
        Ok(known.insert(self.find_host(&says, Path::new(ETC))?).clone())
    }

    /// The same by what the configuration says; `etc` is where all programs find that.
    fn find_host(&self, says: &Says, etc: &Path) -> Result<HostIdentity, Error> {
        let configured = says.hostnqn.clone().zip(says.hostid);
        let etc = |name: &str| std::fs::read_to_string(etc.join(name)).ok();
        let state = lock(&self.state).clone();
        let kept = |name: &str| {
            let bytes = state.as_ref()?.read(name).ok()??;
            String::from_utf8(bytes).ok()
        };
        let (nqn, id) = match configured.or_else(|| pair(etc)).or_else(|| pair(kept)) {
            Some(found) => found,
            None => {
                let (nqn, id) = made()?;
                keep(state.as_deref(), &nqn, id);
                (nqn, id)
            }
        };
        Ok(HostIdentity { nqn, id: id.0 })
    }

    /// The one names of what a path names; the path itself where it is no name of a remote drive.
    /// Connects what has an address; the caller waits for that.
    ///
    /// # Errors
    /// What is wrong with the name, or why it is not reached.
    pub fn resolve(&self, path: &Path) -> Result<Vec<PathBuf>, Error> {
        let Some(name) = Name::of(path) else { return Ok(vec![path.to_owned()]) };
        let name = name.map_err(|why| Error::new(&say::BAD_DRIVE_NAME, &[&why]))?;
        self.fabric()?.find(&name, &Wishes::default()).map_err(|error| told(&error))
    }

    /// The same of what the configuration names, without waiting where the name is whole: what is
    /// not connected yet will be.
    pub fn expand(&self, path: &Path) -> Vec<PathBuf> {
        let Some(Ok(name)) = Name::of(path) else { return Vec::new() };
        let Ok(fabric) = self.fabric() else { return Vec::new() };
        if let (Some(subsystem), Some(namespace)) = (&name.subsystem, name.namespace) {
            // Tried again at the next look.
            let _ = fabric.want(&name);
            return vec![Name::whole(subsystem, namespace)];
        }
        let known = lock(&self.found).get(path).cloned();
        let is_whole = known.as_ref().is_some_and(|(_, known)| !known.is_empty());
        let limit = if is_whole && !fabric.awaits() { KNOWN } else { AGAIN };
        if let Some((when, known)) = &known
            && when.elapsed() < limit
        {
            return known.clone();
        }
        // What was there stays so while nobody tells of it.
        let was = known.map_or_else(Vec::new, |(_, known)| known);
        let found = fabric.want(&name).unwrap_or(was);
        lock(&self.found).insert(path.to_owned(), (Instant::now(), found.clone()));
        found
    }

    /// Whether something that the configuration names was not reached yet.
    pub fn awaits(&self) -> bool {
        lock(&self.found).values().any(|(_, found)| found.is_empty())
            || self.running().is_some_and(|fabric| fabric.awaits())
    }

    /// The names of all drives that are connected.
    pub fn names(&self) -> Vec<PathBuf> {
        self.remotes().into_keys().collect()
    }

    /// How each connected drive is reached, by its one name.
    pub fn remotes(&self) -> BTreeMap<PathBuf, Arc<view::Remote>> {
        let all = self.running().map_or_else(Vec::new, |fabric| fabric.status());
        let remotes = |own: &SubsystemStatus| {
            let name = own.name.clone();
            let remote = |(id, is): (&u32, &NamespaceInfo)| {
                let paths = own.paths.iter().map(|path| of_path(path, *id)).collect();
                let remote = view::Remote { nguid: nguid(is), uuid: uuid(is), paths };
                (Name::whole(&name, *id), Arc::new(remote))
            };
            own.namespaces.iter().map(remote).collect::<Vec<_>>()
        };
        all.iter().flat_map(remotes).collect()
    }

    /// The name of a drive with the address of a path to it, by which it is found at a start; of
    /// one that is not behind a fabric the path that it is.
    pub fn with_place(&self, path: &str) -> String {
        let remotes = if is_remote(Path::new(path)) { self.remotes() } else { BTreeMap::new() };
        let first = remotes.get(Path::new(path)).and_then(|own| own.paths.first());
        match (first, path.split_once("://")) {
            (Some(first), Some((_, rest))) => format!("nvme+tcp://{}/{rest}", first.address),
            _ => path.to_owned(),
        }
    }

    /// Asks a discovery service where subsystems are. The caller waits.
    ///
    /// # Errors
    /// It does not tell.
    pub fn discover(
        &self,
        place: &change::Place,
        terms: &change::Terms,
    ) -> Result<Discovered, Error> {
        let told = self.fabric()?.discover(&of(place)?, &wishes(terms, self.cores)?);
        let (generation, found) = told.map_err(|error| self::told(&error))?;
        let entry = |own: log::Place| DiscoveredEntry {
            subsystem_type: match own.kind {
                PlaceKind::Subsystem => "nvme",
                PlaceKind::Referral => "referral",
                PlaceKind::Discovery => "discovery",
            }
            .to_owned(),
            subsystem_nqn: own.subsystem.to_string(),
            address: own.address,
            port: own.service,
            port_id: own.port,
        };
        Ok(Discovered { generation, entries: found.into_iter().map(entry).collect() })
    }

    /// Connects a subsystem, or all that are found at an address. The caller waits.
    ///
    /// # Errors
    /// It is not reached, or refuses.
    pub fn connect(
        &self,
        place: &change::Place,
        subsystem: Option<&str>,
        terms: &change::Terms,
    ) -> Result<Connected, Error> {
        let wishes = wishes(terms, self.cores)?;
        let subsystem = subsystem.map(address::nqn).transpose()?;
        let name = Name { place: Some(of(place)?), subsystem, namespace: None };
        let found = self.fabric()?.find(&name, &wishes).map_err(|error| told(&error))?;
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        Ok(Connected { drives: found.iter().map(text).collect() })
    }

    /// Disconnects a subsystem: one path, or all. The caller waits.
    ///
    /// # Errors
    /// It is not connected so, or in use.
    pub fn disconnect(&self, subsystem: &str, place: Option<&change::Place>) -> Result<(), Error> {
        let subsystem = address::nqn(subsystem)?;
        let place = place.map(of).transpose()?;
        let not_connected = || told(&FabricError::NotConnected(subsystem.clone()));
        let fabric = self.running().ok_or_else(not_connected)?;
        fabric.disconnect(&subsystem, place.as_ref()).map_err(|error| told(&error))
    }

    /// What tells the drive that has this one name from others, and the serial number of its
    /// subsystem; as long as a path leads there.
    pub fn identity(&self, path: &Path) -> Option<(String, String)> {
        let Name { subsystem, namespace, .. } = Name::of(path)?.ok()?;
        self.running()?.identity(&subsystem?, namespace?)
    }

    /// What is known of the drive that has this one name, as long as a path leads there.
    pub fn plate(&self, path: &Path) -> Option<Nameplate> {
        let (wwid, serial) = self.identity(path)?;
        let serial = Some(serial).filter(|serial| !serial.is_empty());
        Some(Nameplate { wwid: Some(wwid), serial, ..Nameplate::default() })
    }

    /// What is wrong where a lost path of a subsystem takes longer than a drive may take, by what
    /// its controllers say and how they were connected; once.
    fn slow_paths(&self, fabric: &Fabric, subsystem: &Nqn) -> Option<String> {
        let name = subsystem.to_string();
        let fence_ms = fabric.fence(subsystem)?.0 / 1_000_000;
        let deadline_ms = self.deadline_ms.load(Ordering::Relaxed);
        let warning = config::fence_too_long(&name, fence_ms, deadline_ms)?;
        lock(&self.slow).insert(name).then_some(warning)
    }

    /// Opens a remote drive by its one name.
    ///
    /// # Errors
    /// It is not connected, has no such namespace, or is the clone of another.
    pub fn open(&self, path: &Path) -> Result<SharedDrive, OpenError> {
        let remote = |why: String| OpenError::Remote { path: path.to_owned(), why };
        match Name::of(path) {
            Some(Ok(Name { place: None, subsystem: Some(subsystem), namespace: Some(id) })) => {
                let fabric = self.running();
                let not_connected = || FabricError::NotConnected(subsystem.clone()).to_string();
                let fabric = fabric.ok_or_else(|| remote(not_connected()))?;
                let drive = fabric.open(&subsystem, id).map_err(|error| match error {
                    FabricError::Cloned { path, other } => OpenError::Cloned { path, other },
                    other => remote(other.to_string()),
                })?;
                if let Some(warning) = self.slow_paths(&fabric, &subsystem) {
                    runtime::say(format_args!("palisade: warning: {warning}"));
                }
                Ok(drive)
            }
            Some(Err(why)) => Err(remote(why.to_string())),
            _ => Err(OpenError::NotADrive { path: path.to_owned() }),
        }
    }
}

/// Whether a path is the name of a drive behind a fabric.
pub fn is_behind(path: &str) -> bool {
    is_remote(Path::new(path))
}

/// Keeps who this host is, or says that it can't.
fn keep(state: Option<&State>, nqn: &Nqn, id: Uuid) {
    let why = match state {
        None => "there is no state directory".to_owned(),
        Some(state) => {
            let kept = state.replace(HOST_NQN, format!("{nqn}\n").as_bytes());
            let kept = kept.and_then(|()| state.replace(HOST_ID, format!("{id}\n").as_bytes()));
            let Err(error) = kept else { return };
            format!("{}: {error}", state.dir().display())
        }
    };
    runtime::say(format_args!(
        "palisade: warning: who this host is can't be kept ({why}): subsystems will know it by \
         another name after the next start, and its shared arrays will look like another's\n  \
         set hostnqn and hostid in [fabrics]"
    ));
}

/// The two names of a host, if both are there.
fn pair(read: impl Fn(&str) -> Option<String>) -> Option<(Nqn, Uuid)> {
    let nqn = Nqn::new(read(HOST_NQN)?.trim()).ok()?;
    Some((nqn, read(HOST_ID)?.trim().parse().ok()?))
}

/// Names for a host that has none.
fn made() -> Result<(Nqn, Uuid), Error> {
    let id = Uuid::from_random(chance::bytes().map_err(|error| not_started(&error))?);
    // As the specification has it for hosts that have a UUID only (Base, section 4.7).
    let nqn = Nqn::new(&format!("nqn.2014-08.org.nvmexpress:uuid:{id}"));
    Ok((nqn.map_err(|error| not_started(&error))?, id))
}

fn nguid(is: &NamespaceInfo) -> Option<String> {
    let bytes = Some(is.known.nguid).filter(|nguid| *nguid != [0; 16])?;
    Some(chance::hex(&bytes))
}

fn uuid(is: &NamespaceInfo) -> Option<String> {
    let bytes = Some(is.known.uuid).filter(|uuid| *uuid != [0; 16])?;
    Some(Uuid(bytes).to_string())
}

/// A path to a namespace.
fn of_path(path: &PathStatus, namespace: u32) -> view::RemotePath {
    let access = |access: &Access| match access {
        Access::Optimized => view::PathAccess::Optimized,
        Access::NonOptimized => view::PathAccess::NonOptimized,
        Access::Inaccessible => view::PathAccess::Inaccessible,
        Access::PersistentLoss => view::PathAccess::PersistentLoss,
        Access::Change => view::PathAccess::Change,
    };
    view::RemotePath {
        address: path.address.to_string(),
        state: match path.state {
            PathState::Live => view::PathState::Live,
            PathState::Connecting => view::PathState::Connecting,
            PathState::Fencing => view::PathState::Fencing,
            PathState::Lost => view::PathState::Lost,
        },
        ana: path.access.get(&namespace).map(access),
        cntlid: path.controller,
        queues: path.queues,
        errors: path.errors,
        reconnects: path.reconnects,
        last_error: path.problem.as_ref().map(ToString::to_string),
        next_try_seconds: path.next_try.map(|next| next.0.div_ceil(1_000_000_000)),
    }
}

fn of(place: &change::Place) -> Result<Place, Error> {
    let place = Place::new(&place.address, place.port);
    place.map_err(|why| Error::new(&say::BAD_DRIVE_NAME, &[&why]))
}

/// What is wanted otherwise than the configuration has it, with so many data cores.
fn wishes(terms: &change::Terms, cores: u16) -> Result<Wishes, Error> {
    let least = 1 + cores;
    if let Some(given) = terms.io_queues.filter(|given| *given < least) {
        return Err(Error::new(&say::FEW_IO_QUEUES, &[&given, &least]));
    }
    let time = |seconds: Option<u16>| Some(Nanos::from_millis(1_000 * u64::from(seconds?)));
    Ok(Wishes {
        host: host_of(terms)?,
        entries: terms.queue_size,
        header_digest: terms.header_digest,
        data_digest: terms.data_digest,
        keep_alive: time(terms.keep_alive),
        reconnect_delay: time(terms.reconnect_delay),
        fast_io_fail: time(terms.fast_io_fail),
        controller_loss: time(terms.controller_loss),
    })
}

/// Who the host is to be, if that is said. A name that has a UUID has that as its identifier, too
/// (Base, section 4.7).
fn host_of(terms: &change::Terms) -> Result<Option<HostIdentity>, Error> {
    const BY_UUID: &str = "nqn.2014-08.org.nvmexpress:uuid:";
    let bad = |problem: String| Error::new(&say::BAD_HOST, &[&problem]);
    let Some(text) = &terms.host_nqn else {
        return match terms.host_id {
            Some(_) => Err(bad("a hostid needs a hostnqn".to_owned())),
            None => Ok(None),
        };
    };
    let nqn = Nqn::new(text).map_err(|why| bad(format!("hostnqn: {text}: {why}")))?;
    let own = text.strip_prefix(BY_UUID);
    let Some(id) = terms.host_id.as_deref().or(own) else {
        return Err(bad(format!("{text} needs a hostid: it has no UUID of its own")));
    };
    let id: Uuid = id.parse().map_err(|_| bad(format!("hostid must be a UUID, not {id}")))?;
    Ok(Some(HostIdentity { nqn, id: id.0 }))
}

/// There is no fabric.
fn not_started(why: &dyn Display) -> Error {
    Error::new(&say::FABRIC_NOT_STARTED, &[why])
}

/// What was asked for is not over in time.
pub fn silent(limit: Duration) -> Error {
    Error::new(&say::FABRIC_SILENT, &[&limit.as_secs()])
}

/// What went wrong, for who asked.
pub fn told(error: &FabricError) -> Error {
    match error {
        FabricError::InUse(_) => Error::new(&say::SUBSYSTEM_IN_USE, &[error]),
        FabricError::Otherwise(..) => Error::new(&say::SUBSYSTEM_OTHERWISE, &[error]),
        FabricError::NotConnected(_) | FabricError::NoPath(..) => {
            Error::new(&say::SUBSYSTEM_NOT_CONNECTED, &[error])
        }
        other => Error::new(&say::SUBSYSTEM_NOT_REACHED, &[other]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_wrong_is_told_by_its_message() {
        let nqn = || Nqn::new("nqn.2026-11.org.example:s").expect("a name");
        let is = |error: Error, entry| assert!(error.is(entry), "{error:?}");
        is(not_started(&std::io::Error::other("no more threads")), &say::FABRIC_NOT_STARTED);
        is(silent(Duration::from_secs(10)), &say::FABRIC_SILENT);
        is(told(&FabricError::InUse(nqn())), &say::SUBSYSTEM_IN_USE);
        is(told(&FabricError::Otherwise(nqn(), "hostid")), &say::SUBSYSTEM_OTHERWISE);
        is(told(&FabricError::NotConnected(nqn())), &say::SUBSYSTEM_NOT_CONNECTED);
        is(told(&FabricError::TooMany(nqn())), &say::SUBSYSTEM_NOT_REACHED);
    }

    /// Made once, and kept.
    #[test]
    fn who_this_host_is_stays_the_same() {
        let dir = tempfile::tempdir().expect("a directory");
        let (etc, kept) = (dir.path().join("etc"), dir.path().join("state"));
        let host = |says: &Says, has_state: bool| {
            let own = Fabrics::new(1, Box::new(|_| ()));
            let state = has_state.then(|| Arc::new(State::open(&kept).expect("opens")));
            own.set(says.clone(), state);
            own.find_host(says, &etc).expect("has a name")
        };
        let usual = Says::default();
        let made = host(&usual, true);
        assert_eq!(host(&usual, true), made);
        assert_ne!(host(&usual, false), made, "nothing is kept without a state directory");
        let name = format!("nqn.2014-08.org.nvmexpress:uuid:{}", Uuid(made.id));
        assert_eq!(made.nqn.to_string(), name);
        // What all programs find counts before that, if it is whole.
        std::fs::create_dir(&etc).expect("made");
        std::fs::write(etc.join(HOST_NQN), "nqn.2026-11.org.example:etc\n").expect("written");
        assert_eq!(host(&usual, true), made);
        std::fs::write(etc.join(HOST_ID), format!("{}\n", Uuid([7; 16]))).expect("written");
        let found = host(&usual, true);
        assert_eq!(
            (found.nqn.to_string().as_str(), found.id),
            ("nqn.2026-11.org.example:etc", [7; 16])
        );
        // And what is configured before all.
        let hostnqn = Nqn::new("nqn.2026-11.org.example:h").ok();
        let says = Says { hostnqn: hostnqn.clone(), hostid: Some(Uuid([3; 16])), ..usual };
        let told = host(&says, true);
        assert_eq!((Some(told.nqn), told.id), (hostnqn, [3; 16]));
    }

    /// Without anything that keeps it, too.
    #[test]
    fn who_this_host_is_is_found_once() {
        let own = Fabrics::new(1, Box::new(|_| ()));
        let found = own.host().expect("has a name");
        assert_eq!(own.host().ok(), Some(found));
    }
}

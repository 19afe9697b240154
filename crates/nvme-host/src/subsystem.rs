//! A subsystem as all cores have it: its paths, its namespaces, and by which paths these are
//! reached.
//!
//! A *path* is an address at which a controller of the subsystem answers. Its *keeper*, on one
//! core, has an association there, and when that is over the next one. A *carrier* on each core has
//! an I/O queue of the association there is. An *overseer* says by which paths each namespace is
//! reached.
//!
//! States of a path:
//!
//! | state      | leaves by                                                                      |
//! |------------|--------------------------------------------------------------------------------|
//! | connecting | the controller is enabled, and it is known what it has and how it comes to     |
//! |            | that → live; it failed → connecting again, some time later, or lost if that    |
//! |            | has gone on for too long                                                       |
//! | live       | a connection ends, the controller is silent, or the path is taken away →       |
//! |            | closing                                                                        |
//! | closing    | each core has closed its connection → connecting; the association's fence      |
//! |            | begins                                                                         |
//! | lost       | its fences have ended, if it was taken away                                    |
//!
//! One that is taken away is lost once nothing is sent there any more.
//!
//! A *fence* ends when an association that is over can carry out nothing any more of what it was
//! sent. By time: a controller that hears nothing for its keep-alive timeout ends the association,
//! and is done with its commands some time later (Base, "Communication Loss Handling"; CQT). Or
//! once another controller says so, which was asked to end that one: see `fences`.
//!
//! `shared`: what servers need that share its drives, as guards and the end of controllers.
//!
//! Invariants
//! - There are I/O queues of a live association only: behind what its controller says of its
//!   namespaces and of its ways to them.
//! - An association begins when each core has closed what it had of the path's last one; the fence
//!   of that one begins then, since nothing of it is sent any more.
//! - What a controller says of a namespace changes nothing that is said of it to those who use it:
//!   one that is of another size is reached by no path.
//! - A path is forgotten when its fences have ended.
//! - *Lapses*: what a drive has in a volatile cache it loses with its power, and nobody tells. It
//!   had its power as long as a controller of it was there all the time. So an association with one
//!   that has a cache is live once another path has answered what it was asked since the
//!   association began. Where none is live that is a lapse, and drives opened before it are gone.

use crate::Can;
use crate::changed::Changed;
use crate::fences::Others;
use crate::keeper::Problem;
use crate::limits::PATHS;
use crate::mutants::{self, Mutant};
use crate::path::{PathRecord, PathStatus, Stage};
use crate::queue::Shape;
use crate::requests::{Association, Way};
use crate::settings::Settings;
use core::future::Future;
use core::net::SocketAddr;
use io::{DriveError, DriveInfo};
use nvme::drive::Identifiers;
use nvme::log::Access;
use nvme::nqn::Nqn;
use nvme::reset::Instance;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use units::Nanos;

mod shared;

/// Who a host is. The two belong together: a subsystem may refuse one without the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostIdentity {
    /// Its name.
    pub nqn: Nqn,
    /// Its identifier.
    pub id: [u8; 16],
}

/// A path of a subsystem: one that is there, or was.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Path {
    /// Which of those that are there at a time.
    pub(crate) number: u8,
    /// Which of all that ever were.
    serial: u64,
}

/// What is known of a namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamespaceInfo {
    /// The drive that it is.
    pub info: DriveInfo,
    /// What it is known by.
    pub known: Identifiers,
    /// What else it can do.
    pub can: Can,
}

/// What an association found at its controller.
pub(crate) struct Found {
    pub controller: u16,
    pub serial: String,
    /// Entries of an I/O queue, and what its commands may be like.
    pub entries: u16,
    pub shape: Shape,
    pub namespaces: BTreeMap<u32, FoundNamespace>,
    /// How long what is sent to it may be carried out behind the last contact.
    pub fence: Nanos,
    /// Which one it is, if it says so.
    pub instance: Option<Instance>,
    /// Whether it ends others when it is asked to.
    pub resets: bool,
}

/// What a controller says of a namespace.
#[derive(Clone, Debug)]
pub(crate) struct FoundNamespace {
    pub is: NamespaceInfo,
    pub access: Access,
    /// Whether it says if that has a volatile cache.
    pub is_cache_told: bool,
}

/// What is needed for an I/O queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub association: Association,
    pub address: SocketAddr,
    pub controller: u16,
    pub entries: u16,
    pub shape: Shape,
    pub lapse: u64,
}

struct Known {
    is: NamespaceInfo,
    /// It is of another size, or has other blocks.
    has_changed: bool,
    /// Since when no path leads there.
    unreached_since: Option<Nanos>,
}

#[derive(Default)]
struct State {
    /// Grows with each change.
    version: u64,
    turns: u64,
    serials: u64,
    paths: BTreeMap<u8, PathRecord>,
    /// By the numbers of paths that are forgotten: their last associations, which are over.
    forgotten: BTreeMap<u8, u64>,
    namespaces: BTreeMap<u32, Known>,
    /// The serial number that its controllers tell.
    serial: String,
    ways: Vec<(u32, Way)>,
    /// A path was live.
    was_reached: bool,
    /// How often a path became live while nobody could say that the subsystem had its power all the
    /// time.
    lapse: u64,
    /// Who waits for another path to be heard.
    listening: usize,
    /// The longest fence of an association that is or was live.
    fence: Option<Nanos>,
    guards: shared::Guards,
    others: Others,
    is_closed: bool,
}

/// A subsystem.
pub struct Subsystem {
    /// Its name.
    pub name: Nqn,
    /// Who uses it.
    pub host: HostIdentity,
    /// How.
    pub settings: Settings,
    /// It knows this host by another name than this server has elsewhere.
    is_alias: bool,
    pub(crate) changed: Changed,
    state: Mutex<State>,
}

/// What a core has to do for its requests.
pub(crate) struct News {
    pub version: u64,
    pub ways: Vec<(u32, Way)>,
    pub over: Vec<Association>,
    pub paths: Vec<Path>,
    /// Namespaces that are not changed any more, in ascending order.
    pub barred: Vec<u32>,
    pub is_closed: bool,
}

impl Subsystem {
    /// One without paths.
    pub fn new(name: Nqn, host: HostIdentity, settings: Settings) -> Arc<Self> {
        Self::made(name, host, settings, false)
    }

    /// The same by a name of this host that it has nowhere else, and perhaps not after its next
    /// start. No controllers are named to servers that come later, and none of theirs is ended:
    /// whoever asks under another name hears that there is none.
    pub fn alias(name: Nqn, host: HostIdentity, settings: Settings) -> Arc<Self> {
        Self::made(name, host, settings, true)
    }

    fn made(name: Nqn, host: HostIdentity, settings: Settings, is_alias: bool) -> Arc<Self> {
        // From 1 on: 0 is what drives have that no lapse ends.
        let state = Mutex::new(State { lapse: 1, ..State::default() });
        Arc::new(Self { name, host, settings, is_alias, changed: Changed::default(), state })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether a namespace is known that has a volatile cache, listed now or not.
    pub(crate) fn has_cache(&self) -> bool {
        self.lock().namespaces.values().any(|own| own.is.info.volatile_cache)
    }

    fn change<T>(&self, how: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let value = how(&mut state);
        state.version += 1;
        drop(state);
        self.changed.notify();
        value
    }

    /// Changes what is known of a path, if it is there.
    fn change_path<T>(&self, path: Path, how: impl FnOnce(&mut PathRecord) -> T) -> Option<T> {
        self.change(|state| {
            let record = state.paths.get_mut(&path.number)?;
            (record.serial == path.serial).then(|| how(record))
        })
    }

    fn look_at<T>(&self, path: Path, look: impl FnOnce(&PathRecord) -> T) -> Option<T> {
        let state = self.lock();
        let record = state.paths.get(&path.number)?;
        (record.serial == path.serial).then(|| look(record))
    }

    /// Adds a path, which a keeper has to look after; or gives the one that is at that address,
    /// unless it is lost. `None`: there are too many.
    pub fn add(&self, address: SocketAddr) -> Option<(Path, bool)> {
        self.change(|state| {
            let is_there = |own: &PathRecord| own.address == address && !own.is_removed;
            let there = state.paths.iter_mut().find(|(_, own)| is_there(own));
            match there {
                Some((_, own)) if own.stage == Stage::Lost => own.is_removed = true,
                Some((number, own)) => return Some(((*number, own.serial).into(), false)),
                None => {}
            }
            let number = (0..PATHS).find(|number| !state.paths.contains_key(number))?;
            state.serials += 1;
            state.paths.insert(number, PathRecord::new(state.serials, address));
            Some((Path { number, serial: state.serials }, true))
        })
    }

    /// Takes a path away: its keeper ends what it has there, and forgets it.
    pub fn remove(&self, path: Path) {
        self.change_path(path, |record| record.is_removed = true);
    }

    /// Takes all paths away, and ends all that is asked once nobody can carry it out any more.
    pub fn close(&self) {
        self.change(|state| {
            state.paths.values_mut().for_each(|record| record.is_removed = true);
            state.is_closed = true;
        });
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits until nothing is sent any more by a path that was taken away. What was sent before may
    /// still be carried out, until its fence has ended and it is forgotten.
    pub fn gone(&self, path: Path) -> impl Future<Output = ()> {
        self.changed.wait_until(move || {
            let is_gone = self.look_at(path, |record| record.stage == Stage::Lost);
            is_gone.unwrap_or(true).then_some(())
        })
    }

    /// Whether a path was ever live: only then its namespaces are known.
    pub fn was_reached(&self) -> bool {
        self.lock().was_reached
    }

    /// Whether it has no path but such as were taken away.
    pub fn is_unreached(&self) -> bool {
        self.lock().paths.values().all(|record| record.is_removed)
    }

    /// Waits until a path is live, or could not be made so: then why. Nothing if it was taken away.
    pub fn tried(&self, path: Path) -> impl Future<Output = Option<Problem>> {
        self.changed.wait_until(move || {
            let tried = self.look_at(path, |record| match record.stage {
                Stage::Live => Some(None),
                _ => record.problem.clone().map(Some),
            });
            tried.unwrap_or(Some(None))
        })
    }

    /// Its paths, without those that were taken away.
    pub fn paths(&self, now: Nanos) -> Vec<PathStatus> {
        let state = self.lock();
        let paths = state.paths.iter().filter(|(_, record)| !record.is_removed);
        paths.map(|(number, record)| record.status(*number, now)).collect()
    }

    /// The serial number that its controllers tell; empty as long as none has.
    pub fn serial(&self) -> String {
        self.lock().serial.clone()
    }

    /// Its namespaces, as far as they are known.
    pub fn namespaces(&self) -> BTreeMap<u32, NamespaceInfo> {
        self.lock().namespaces.iter().map(|(id, known)| (*id, known.is.clone())).collect()
    }

    /// A namespace, if it is known.
    pub fn namespace(&self, id: u32) -> Option<NamespaceInfo> {
        self.lock().namespaces.get(&id).map(|known| known.is.clone())
    }

    /// Lapses so far: how often a path became live while nobody could say that the subsystem had
    /// its power all the time. What drives had in a cache before the last one may be lost.
    pub fn lapse(&self) -> u64 {
        self.lock().lapse
    }

    /// Whether a path leads to a namespace, as far as the overseer knows.
    pub fn is_reached(&self, namespace: u32) -> bool {
        let state = self.lock();
        let way = state.ways.iter().find(|(id, _)| *id == namespace);
        matches!(way, Some((_, Way::Paths(paths))) if *paths != 0)
    }

    // For keepers.

    /// The next association of a path begins. `None`: the path is taken away.
    pub(crate) fn begins(&self, path: Path) -> Option<(Association, SocketAddr)> {
        self.change(|state| {
            state.turns += 1;
            let turn = state.turns;
            let record = state.paths.get_mut(&path.number)?;
            if record.serial != path.serial || record.is_removed {
                return None;
            }
            record.turn = turn;
            record.next_try = None;
            Some((Association { path: path.number, turn }, record.address))
        })
    }

    /// Waits until another path has answered what it was asked after `since`, or none is live:
    /// whether one has.
    pub(crate) async fn vouched(&self, path: Path, since: Nanos) -> bool {
        let _listening = Listening::new(self);
        let heard = || {
            let state = self.lock();
            let others = state.paths.iter().filter(|(number, _)| **number != path.number);
            let mut live = others.map(|(_, own)| own).filter(|own| own.stage == Stage::Live);
            let mut is_any = false;
            let is_heard = live.any(|own| {
                is_any = true;
                own.heard > since
            });
            (is_heard || !is_any).then_some(is_heard)
        };
        self.changed.wait_until(heard).await
    }

    /// A live path has answered what it was asked then.
    pub(crate) fn hears(&self, path: Path, asked: Nanos) {
        let mut state = self.lock();
        let record = state.paths.get_mut(&path.number);
        if let Some(record) = record.filter(|own| own.serial == path.serial) {
            record.heard = asked;
        }
        let listening = state.listening;
        drop(state);
        if listening > 0 {
            self.changed.notify();
        }
    }

    /// A path is live, with what was found; `is_kept` if the subsystem had its power since another
    /// was.
    pub(crate) fn lives(&self, path: Path, found: Found, is_kept: bool) {
        self.change(|state| {
            state.lapse += u64::from(!is_kept);
            state.serial.clone_from(&found.serial);
            state.was_reached = true;
            state.fence = state.fence.max(Some(found.fence));
            let access = state.meet(found.namespaces);
            let Some(record) = state.paths.get_mut(&path.number) else { return };
            record.stage = Stage::Live;
            (record.controller, record.shape) = (found.controller, found.shape);
            record.entries = found.entries;
            (record.is_used, record.instance) = (true, found.instance);
            record.resets = found.resets;
            record.access = access;
            record.associations += 1;
            record.problem = None;
        });
    }

    /// The controller of a live path has told anew what it has.
    pub(crate) fn finds(&self, path: Path, found: BTreeMap<u32, FoundNamespace>) {
        self.change(|state| {
            let access = state.meet(found);
            if let Some(record) = state.paths.get_mut(&path.number) {
                record.access = access;
            }
        });
    }

    /// The association of a path is over, or could not begin: carriers close what they have.
    pub(crate) fn ends(&self, path: Path, problem: Problem) {
        self.change_path(path, |record| record.ends(problem));
    }

    /// Waits until carriers have closed what they had of a path that is over.
    pub(crate) fn closed(&self, path: Path) -> impl Future<Output = ()> {
        self.changed.wait_until(move || {
            let carriers = self.look_at(path, |record| record.carriers);
            (carriers.unwrap_or(0) == 0).then_some(())
        })
    }

    /// All is closed, and the fence of that association begins: until [`Subsystem::fenced`], by
    /// time or with its controller.
    pub(crate) fn fences(&self, path: Path, association: Association) {
        self.change_path(path, |record| {
            debug_assert_eq!(record.carriers, 0, "something can still be sent");
            record.stage = Stage::Connecting;
            record.is_used = false;
            record.fences.begin(association.turn, record.instance);
        });
    }

    /// The association can carry out nothing any more.
    pub(crate) fn fenced(&self, association: Association) {
        self.change(|state| {
            // A path of this number that came later had none of that turn.
            if let Some(record) = state.paths.get_mut(&association.path) {
                record.fences.end(association.turn);
            }
        });
    }

    /// It is tried again then; `None`: not any more.
    pub(crate) fn waits(&self, path: Path, until: Option<Nanos>) {
        self.change_path(path, |record| {
            record.next_try = until;
            record.stage = if until.is_some() { Stage::Connecting } else { Stage::Lost };
        });
    }

    /// Waits until a path is taken away.
    pub(crate) fn removed(&self, path: Path) -> impl Future<Output = ()> {
        self.changed.wait_until(move || {
            let is_removed = self.look_at(path, |record| record.is_removed);
            is_removed.unwrap_or(true).then_some(())
        })
    }

    /// Waits until a live path is not to be so any more.
    pub(crate) fn over(&self, path: Path, association: Association) -> impl Future<Output = ()> {
        self.changed.wait_until(move || {
            let is_live = self.look_at(path, |record| {
                record.stage == Stage::Live && record.turn == association.turn
            });
            (is_live != Some(true)).then_some(())
        })
    }

    /// A path's keeper does nothing more there. Waits until all its fences have ended, and forgets
    /// it.
    pub(crate) async fn forget(&self, path: Path) {
        self.change_path(path, |record| record.stage = Stage::Lost);
        let is_unfenced = || {
            let is_unfenced = self.look_at(path, |record| record.fences.is_empty());
            is_unfenced.unwrap_or(true).then_some(())
        };
        self.changed.wait_until(is_unfenced).await;
        self.change(|state| {
            let last = state.paths.remove(&path.number).map(|record| record.fences.over());
            // Cores may not have seen yet that it is over.
            last.map(|last| state.forgotten.insert(path.number, last))
        });
    }

    /// Waits until a path did not carry out what it should have a way to: it is to be looked at
    /// anew.
    pub(crate) fn doubted(&self, path: Path) -> impl Future<Output = ()> {
        self.changed.wait_until(move || {
            let mut state = self.lock();
            let record = state.paths.get_mut(&path.number)?;
            let is_its = record.serial == path.serial && record.is_doubted;
            is_its.then(|| record.is_doubted = false)
        })
    }

    // For carriers.

    /// These paths did not carry out what they should have a way to.
    pub(crate) fn doubt(&self, paths: &[u8]) {
        self.change(|state| {
            let doubted = state.paths.iter_mut().filter(|(path, _)| paths.contains(path));
            doubted.for_each(|(_, record)| record.is_doubted = true);
        });
    }

    /// What a core has not seen yet.
    pub(crate) fn news(&self, seen: u64) -> Option<News> {
        let state = self.lock();
        let known = state.paths.iter().map(|(path, own)| (*path, own.fences.over()));
        let forgotten = state.forgotten.iter().map(|(path, last)| (*path, *last));
        (state.version > seen).then(|| News {
            version: state.version,
            ways: state.ways.clone(),
            over: known.chain(forgotten).map(Association::from).collect(),
            paths: state.paths.iter().map(|(path, own)| (*path, own.serial).into()).collect(),
            barred: state.guards.barred(),
            is_closed: state.is_closed,
        })
    }

    /// Waits until a path has an association behind that one, and is a carrier of it then. `None`:
    /// the path is gone.
    pub(crate) fn enter(&self, path: Path, after: u64) -> impl Future<Output = Option<Terms>> {
        self.changed.wait_until(move || {
            let mut state = self.lock();
            let lapse = state.lapse;
            let record = state.paths.get_mut(&path.number);
            let Some(record) = record.filter(|own| own.serial == path.serial) else {
                return Some(None);
            };
            let is_new = record.stage == Stage::Live && record.turn > after && !record.is_removed;
            is_new.then(|| {
                record.carriers += 1;
                Some(record.terms(path.number, lapse))
            })
        })
    }

    /// A carrier's queue is connected. Namespaces that have a guard: nothing of them is changed by
    /// it before it was looked at what that asks for.
    pub(crate) fn has_queue(&self, path: Path) -> Vec<u32> {
        self.change(|state| {
            let record = state.paths.get_mut(&path.number);
            if let Some(record) = record.filter(|own| own.serial == path.serial) {
                record.queues += 1;
            }
            state.guards.namespaces()
        })
    }

    /// A carrier has closed what it had; whether it had a queue.
    pub(crate) fn leave(&self, path: Path, had_queue: bool, problem: Problem) {
        self.change_path(path, |record| {
            record.carriers -= 1;
            record.queues -= u16::from(had_queue);
            record.ends(problem);
        });
    }

    // For the overseer.

    /// Waits for a change behind that version; the new one, or `None` if it is closed.
    pub(crate) fn changes(&self, seen: u64) -> impl Future<Output = Option<u64>> {
        self.changed.wait_until(move || {
            let state = self.lock();
            let is_new = state.version > seen || state.is_closed;
            is_new.then(|| (!state.is_closed).then_some(state.version))
        })
    }

    /// Says anew by which paths namespaces are reached; when that may change by itself.
    pub(crate) fn renew(&self, now: Nanos) -> Option<Nanos> {
        let mut state = self.lock();
        let (ways, next) = state.ways(now, self.settings.fast_io_fail);
        let span = state.fence_time(&self.settings);
        let (is_late, late) = state.others.time(now, span);
        if is_late || ways != state.ways {
            state.ways = ways;
            state.version += 1;
            drop(state);
            self.changed.notify();
        }
        next.into_iter().chain(late).min()
    }
}

/// Somebody waits for a path to be heard.
struct Listening<'a>(&'a Subsystem);

impl<'a> Listening<'a> {
    fn new(subsystem: &'a Subsystem) -> Self {
        subsystem.lock().listening += 1;
        Self(subsystem)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.lock().listening -= 1;
    }
}

impl From<(u8, u64)> for Association {
    fn from((path, turn): (u8, u64)) -> Self {
        Self { path, turn }
    }
}

impl From<(u8, u64)> for Path {
    fn from((number, serial): (u8, u64)) -> Self {
        Self { number, serial }
    }
}

impl State {
    /// Takes up what a controller says of its namespaces: how it comes to those that are what they
    /// were known as.
    fn meet(&mut self, found: BTreeMap<u32, FoundNamespace>) -> BTreeMap<u32, Access> {
        let mut all = BTreeMap::new();
        for (id, FoundNamespace { mut is, access, is_cache_told }) in found {
            let new = Known { is: is.clone(), has_changed: false, unreached_since: None };
            let known = self.namespaces.entry(id).or_insert(new);
            if known.is.known != is.known {
                continue;
            }
            // That it has a cache is taken from whoever says so, before it is used; one that is in
            // use as if it had none can't get one.
            let has_cache = known.is.info.volatile_cache;
            if has_cache || !is_cache_told {
                is.info.volatile_cache = has_cache;
            }
            // It may have its old size again.
            known.has_changed = known.is.info != is.info;
            all.insert(id, access);
        }
        all
    }

    /// By which paths namespaces are reached, and when that may change by itself.
    fn ways(&mut self, now: Nanos, fail: Nanos) -> (Vec<(u32, Way)>, Option<Nanos>) {
        let live = self.paths.iter().filter(|(_, own)| own.stage == Stage::Live);
        let live: Vec<_> = live.map(|(number, own)| (*number, &own.access)).collect();
        let mut next: Option<Nanos> = None;
        let mut way = |id: u32, known: &mut Known| {
            let by = |access: Access| {
                let is_so = |own: &BTreeMap<u32, Access>| match own.get(&id) {
                    Some(_) if mutants::is(Mutant::AnaIgnored) => true,
                    own => own == Some(&access),
                };
                live.iter().filter(|(_, own)| is_so(own)).fold(0, |all, (path, _)| all | 1 << path)
            };
            let paths = match by(Access::Optimized) {
                0 => by(Access::NonOptimized),
                paths => paths,
            };
            if known.has_changed {
                return Way::No(DriveError::Gone);
            }
            if paths != 0 {
                known.unreached_since = None;
                return Way::Paths(paths);
            }
            let until = known.unreached_since.get_or_insert(now).after(fail);
            if until <= now {
                return Way::No(DriveError::Gone);
            }
            next = Some(next.map_or(until, |next| next.min(until)));
            Way::Paths(0)
        };
        let ways = self.namespaces.iter_mut().map(|(id, known)| (*id, way(*id, known))).collect();
        (ways, next)
    }
}

#[cfg(test)]
#[path = "subsystem_tests.rs"]
mod tests;

//! The target: what all cores share. Exports, ports, and the controllers that hosts have made.
//!
//! Behind one lock, taken as connections begin and end, by admin commands, and by whoever changes
//! exports; commands of I/O queues look at [`Target::changes`] only.
//!
//! Invariants
//! - A controller is listed from its Connect until the last of its queues has ended, so its number
//!   is not given to another before.
//! - A change of exports is told to just those controllers whose namespaces, or whose discovery
//!   page, it changes. One that is left with no namespace is lost, before its queues can see that.
//! - Until all that is served from the begin has been added, a host finds a subsystem whole or not
//!   at all: what it does not find when it comes again it takes for gone.
//! - A target that was closed takes nothing more away from a host that is there: it has none.

use crate::access::{Absent, Export, Exports, Group, Port, PortId, Refused, Ways};
use crate::controller::{Association, Controller, Way, lock};
use crate::limits::{CONTROLLERS, DISCOVERY_CONTROLLERS};
use crate::mutants::{self, Mutant};
use crate::visits::{Book, Visits};
use nvme::identify::ControllerKind;
use nvme::log::{Access, AccessGroup, Place, PlaceKind};
use nvme::nqn::Nqn;
use nvme::reset::Instance;
use nvme::status::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// What the target says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Product {
    /// The model.
    pub model: String,
    /// The version.
    pub version: String,
    /// Most milliseconds in which a command may still change blocks behind the end of its
    /// controller.
    pub quiesce_ms: u16,
    /// It ends a host's controller when another of that host's is asked to.
    pub resets: bool,
}

#[derive(Debug)]
struct State<K> {
    exports: Exports<K>,
    /// Exports that may come.
    absent: Vec<Absent>,
    /// Exports that may come back, by name.
    suspended: BTreeMap<String, Absent>,
    ports: BTreeMap<PortId, Port>,
    ways: Ways,
    referrals: Vec<Place>,
    /// Goes up with each controller.
    instances: u64,
    controllers: Vec<Arc<Controller>>,
    book: Book,
    /// No host gets a controller any more.
    closed: bool,
    /// The generation of the discovery page.
    generation: u64,
}

/// A connection to an export, for those who look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connected {
    /// The host's name; empty: it gave none.
    pub host: String,
    /// Its controller's number.
    pub controller: u16,
    /// Its queues, the admin queue included.
    pub queues: usize,
    /// The port it came to.
    pub port: PortId,
    /// How it came, by its admin queue.
    pub way: Way,
}

/// The target. `K` names a volume.
#[derive(Debug)]
pub struct Target<K> {
    pub(crate) product: Product,
    state: Mutex<State<K>>,
    changes: AtomicU64,
    /// All exports that are there from the begin have been added.
    settled: AtomicBool,
}

/// Why a host gets no controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoController {
    /// There is no such subsystem at this port.
    Subsystem,
    /// The host may not.
    Host,
    /// What the host may have is not served now, and may be again.
    Absent,
    /// There is no number left.
    Full,
}

impl<K: Clone + PartialEq> Target<K> {
    /// A target without exports.
    pub fn new(product: Product) -> Arc<Self> {
        let state = State {
            exports: Exports::default(),
            absent: Vec::new(),
            suspended: BTreeMap::new(),
            ports: BTreeMap::new(),
            ways: Ways::default(),
            referrals: Vec::new(),
            instances: 0,
            controllers: Vec::new(),
            book: Book::default(),
            closed: false,
            generation: 1,
        };
        Arc::new(Self {
            product,
            state: Mutex::new(state),
            changes: AtomicU64::new(0),
            settled: AtomicBool::new(false),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        lock(&self.state)
    }

    /// Goes up with every change of exports.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// What is to be served from the begin has been added. Before, a subsystem that is not there
    /// may still come: hosts that come again after a restart are not sent away for good.
    pub fn settle(&self) {
        self.settled.store(true, Ordering::Release);
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Adds a port, or says something else of one.
    pub fn set_port(&self, id: PortId, port: Port) {
        self.change(None, |state| {
            state.ports.insert(id, port);
        });
    }

    /// Removes a port. Its listener is closed already.
    pub fn remove_port(&self, id: PortId) {
        self.change(None, |state| {
            state.ports.remove(&id);
        });
    }

    /// Other discovery services that hosts are told of.
    pub fn set_referrals(&self, referrals: Vec<Place>) {
        self.change(None, |state| state.referrals = referrals);
    }

    /// Adds an export, or puts it in the place of the one with this name.
    ///
    /// # Errors
    /// Why it can't be.
    pub fn add(&self, name: &str, export: Export<K>) -> Result<(), Refused> {
        self.change(Some(name), |state| {
            state.exports.add(name, export)?;
            state.suspended.remove(name);
            Ok(())
        })
    }

    /// Removes an export; false if there was none. What has reached its volume goes on.
    pub fn remove(&self, name: &str) -> bool {
        self.change(Some(name), |state| {
            state.suspended.remove(name);
            state.book.forget(|export| export == name);
            state.exports.remove(name).is_some()
        })
    }

    /// As [`Target::remove`], of an export that may come back: hosts that ask for it are not sent
    /// away for good.
    pub fn suspend(&self, name: &str) -> bool {
        self.change(Some(name), |state| {
            let Some(Export { subsystem, nsid, hosts, .. }) = state.exports.remove(name) else {
                return false;
            };
            state.suspended.insert(name.to_owned(), Absent { subsystem, nsid, hosts });
            true
        })
    }

    /// An export that was suspended does not come back, unless [`Target::set_absent`] says so.
    pub fn forget(&self, name: &str) {
        self.lock().suspended.remove(name);
    }

    /// Says which other exports may come.
    pub fn set_absent(&self, all: impl IntoIterator<Item = Absent>) {
        self.lock().absent = all.into_iter().collect();
    }

    /// The program is about to end: all hosts lose their controllers, and get no others, before
    /// anything is taken away from them. They are to come again.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.controllers.iter().for_each(|controller| controller.lose());
    }

    /// A volume's size changed: hosts that have it are told.
    pub fn resized(&self, volume: &K) {
        let state = self.lock();
        self.changes.fetch_add(1, Ordering::AcqRel);
        for controller in &state.controllers {
            let own = state.namespaces(controller);
            let nsids = own.iter().filter(|export| export.volume == *volume).map(|e| e.nsid);
            tell(controller, nsids);
        }
    }

    /// Says how a group of namespaces is reached at a port, and tells hosts that have some of it
    /// there. Commands that were begun go on.
    pub fn set_access(&self, port: PortId, group: Group, access: Access) {
        let mut state = self.lock();
        if !state.ways.set(port, group, access) {
            return;
        }
        self.changes.fetch_add(1, Ordering::AcqRel);
        let at_port = state.controllers.iter().filter(|c| c.association.port == port);
        for controller in at_port {
            if state.namespaces(controller).iter().any(|export| export.group == group) {
                controller.notify(|notices| notices.tell_access = true);
            }
        }
    }

    /// Changes ports or referrals, or the export that is named, and tells those whom it concerns.
    fn change<R>(&self, export: Option<&str>, change: impl FnOnce(&mut State<K>) -> R) -> R {
        let mut state = self.lock();
        let named = |state: &State<K>| export.and_then(|name| state.exports.get(name)).cloned();
        let (old, pages) = (named(&state), state.pages());
        let outcome = change(&mut state);
        let (new, mut pages) = (named(&state), pages.into_iter());
        state.generation += 1;
        // Before anybody is told: who looks then, looks again.
        self.changes.fetch_add(1, Ordering::AcqRel);
        for controller in &state.controllers {
            if controller.is_discovery() {
                if pages.next() != Some(state.page(controller)) {
                    controller.notify(|notices| notices.tell_discovery = true);
                }
                continue;
            }
            let found = |export: &&Export<K>| controller.association.finds(export);
            let (old, new) = (old.as_ref().filter(found), new.as_ref().filter(found));
            if old.zip(new).is_some_and(|(old, new)| alike(old, new)) {
                continue;
            }
            let all: BTreeSet<_> = old.into_iter().chain(new).map(|export| export.nsid).collect();
            if !all.is_empty() {
                tell(controller, all.into_iter());
                let Association { subsystem, port, host, .. } = &controller.association;
                if !state.exports.has(subsystem, *port, host.as_ref()) {
                    controller.lose();
                }
            }
        }
        outcome
    }

    /// Makes a controller, with its admin queue. `since` is now, in seconds since 1970; `random` is
    /// what it is told apart by, among other things.
    pub(crate) fn associate(
        &self,
        association: Association,
        keep_alive_ms: u32,
        (since, random): (u64, u64),
    ) -> Result<Arc<Controller>, NoController> {
        let mut state = self.lock();
        let admitted = state.admit(&association, self.is_settled());
        let State { exports, book, .. } = &mut *state;
        let is_io = association.kind == ControllerKind::Io;
        let id = admitted.inspect_err(|_| book.turned_away(is_io))?;
        if is_io {
            let own = exports.all().filter(|(_, export)| association.finds(export));
            book.arrived(association.host.as_ref(), own.map(|(name, _)| name));
        }
        state.instances += 1;
        // Neither is 0, which would say nothing.
        let uniquifier = (state.instances % 0xff) as u8 + 1;
        let instance = Instance { controller: id, uniquifier, random: random | 1 };
        let controller = Arc::new(Controller::new(instance, association, keep_alive_ms, since));
        controller.begin_queue(0);
        let own = &controller.association;
        let is_same = |c: &&Arc<Controller>| c.association.host_id == own.host_id;
        for other in state.of(&own.subsystem).filter(is_same) {
            other.share();
            controller.share();
        }
        state.controllers.push(controller.clone());
        Ok(controller)
    }

    /// The controller that an I/O queue names.
    pub(crate) fn find(&self, subsystem: &Nqn, id: u16) -> Option<Arc<Controller>> {
        self.lock().of(subsystem).find(|c| c.id == id).cloned()
    }

    /// A queue has ended, with all it began: its controller goes with the last.
    pub(crate) fn end_queue(&self, controller: &Arc<Controller>, queue: u16) {
        let mut state = self.lock();
        controller.end_queue(queue);
        if queue == 0 {
            controller.lose();
        }
        let State { controllers, book, .. } = &mut *state;
        let over = controllers.extract_if(.., |c| c.is_lost() && c.queues() == 0);
        let over: Vec<_> = over.filter(|c| !c.is_discovery()).collect();
        for ended in over {
            book.left(&ended);
            let subsystem = &ended.association.subsystem;
            let others = controllers.iter().filter(|c| c.association.subsystem == *subsystem);
            others.for_each(|other| other.note_end(ended.instance));
        }
    }

    /// Ends a controller of the host that has this one; true if it has ended already, with all that
    /// it began, else the page of resets will say so. One that is there and another host's is
    /// refused.
    pub(crate) fn reset(&self, by: &Controller, of: Instance) -> Result<bool, Status> {
        if of == by.instance {
            return Err(Status::INVALID_FIELD);
        }
        let state = self.lock();
        let own = &by.association;
        // One that is not there has none of its commands under way: it is listed until they ended.
        let mut all = state.of(&own.subsystem);
        let Some(meant) = all.find(|c| c.instance == of) else { return Ok(true) };
        let other = &meant.association;
        if other.host_id != own.host_id || other.host != own.host {
            return Err(Status::INVALID_FIELD);
        }
        by.begin_reset(of)?;
        meant.lose();
        Ok(mutants::is(Mutant::CcrEarly))
    }

    /// Whether commands of a lost controller that this host had may still be in progress.
    pub(crate) fn is_draining(&self, subsystem: &Nqn, host_id: &[u8; 16]) -> bool {
        let is_left = |c: &Arc<Controller>| c.is_lost() && c.association.host_id == *host_id;
        !mutants::is(Mutant::NotDrained) && self.lock().of(subsystem).any(is_left)
    }

    /// What a controller's host finds, by number, and how it is reached.
    pub(crate) fn namespaces(&self, controller: &Controller) -> Vec<(Export<K>, Access)> {
        let state = self.lock();
        let port = controller.association.port;
        let with_access = |export: Export<K>| {
            let (access, _) = state.ways.get(port, export.group);
            (export, access)
        };
        state.namespaces(controller).into_iter().map(with_access).collect()
    }

    /// How often access changed, and the groups of a controller's namespaces.
    pub(crate) fn groups(&self, controller: &Controller) -> (u64, Vec<AccessGroup>) {
        let state = self.lock();
        let mut groups: BTreeMap<Group, Vec<u32>> = BTreeMap::new();
        for export in state.namespaces(controller) {
            groups.entry(export.group).or_default().push(export.nsid);
        }
        let group = |(group, namespaces): (Group, Vec<u32>)| {
            let (access, changes) = state.ways.get(controller.association.port, group);
            AccessGroup { id: group.number(), access, changes, namespaces }
        };
        (state.ways.changes(), groups.into_iter().map(group).collect())
    }

    /// Numbers of a subsystem's controllers, in ascending order.
    pub(crate) fn controllers(&self, subsystem: &Nqn) -> BTreeSet<u16> {
        self.lock().of(subsystem).map(|c| c.id).collect()
    }

    /// The discovery page's generation and places for a host that came through `local`.
    pub(crate) fn discovery(&self, host: Option<&Nqn>, local: &str) -> (u64, Vec<Place>) {
        let state = self.lock();
        (state.generation, state.places(host, local))
    }

    /// Hosts that have exports: names of exports, and all who have them.
    pub fn connections(&self) -> Vec<(Vec<String>, Vec<Connected>)> {
        let state = self.lock();
        let told = |c: &Arc<Controller>| Connected {
            host: c.association.host.as_ref().map_or_else(String::new, Nqn::to_string),
            controller: c.id,
            queues: c.queues(),
            port: c.association.port,
            way: c.association.way.clone(),
        };
        let group = |group: Vec<(&String, &Export<K>)>| {
            let (_, first) = group.first()?;
            let has = |c: &&Arc<Controller>| !c.is_discovery() && c.association.finds(first);
            let connected = state.controllers.iter().filter(has).map(told).collect();
            Some((group.iter().map(|(name, _)| (*name).clone()).collect(), connected))
        };
        state.exports.groups().into_iter().filter_map(group).collect()
    }

    /// What these exports were counted is forgotten: they are gone for good.
    pub fn forget_visits(&self, are_gone: impl Fn(&str) -> bool) {
        self.lock().book.forget(are_gone);
    }

    /// Who came, and who is there.
    pub fn visits(&self) -> Visits {
        let state = self.lock();
        let own = state.controllers.iter().filter(|c| !c.is_discovery());
        state.book.read(&state.exports.groups(), &own.map(|c| &**c).collect::<Vec<_>>())
    }
}

/// Whether hosts see the same namespace.
fn alike<K: PartialEq>(one: &Export<K>, other: &Export<K>) -> bool {
    one.nsid == other.nsid
        && one.volume == other.volume
        && one.nguid == other.nguid
        && one.uuid == other.uuid
        && one.group == other.group
}

impl<K: Clone + PartialEq> State<K> {
    /// The number of the controller that a host may have.
    fn admit(&self, association: &Association, is_settled: bool) -> Result<u16, NoController> {
        if self.closed {
            return Err(NoController::Absent);
        }
        if association.kind == ControllerKind::Io {
            let Association { subsystem, port, .. } = association;
            let host = association.host.as_ref();
            let has_any = self.exports.has(subsystem, *port, host);
            if !has_any || !is_settled {
                let is_absent = self.lacks(subsystem, host);
                match (is_absent, has_any, self.exports.is_at(subsystem, *port)) {
                    (true, ..) => return Err(NoController::Absent),
                    (false, true, _) => {}
                    (false, false, true) => return Err(NoController::Host),
                    (false, false, false) => return Err(NoController::Subsystem),
                }
            }
        }
        let taken: BTreeSet<u16> = self.of(&association.subsystem).map(|c| c.id).collect();
        let most = match association.kind {
            ControllerKind::Io => CONTROLLERS,
            ControllerKind::Discovery => DISCOVERY_CONTROLLERS,
        };
        (1..=most).find(|id| !taken.contains(id)).ok_or(NoController::Full)
    }

    /// The controllers of a subsystem.
    fn of(&self, subsystem: &Nqn) -> impl Iterator<Item = &Arc<Controller>> {
        self.controllers.iter().filter(move |c| c.association.subsystem == *subsystem)
    }

    /// Whether a namespace of a subsystem is not there that may come, and that `host` may have.
    fn lacks(&self, subsystem: &Nqn, host: Option<&Nqn>) -> bool {
        self.absent.iter().chain(self.suspended.values()).any(|absent| {
            absent.subsystem == *subsystem
                && absent.hosts.allow(host)
                && !self.exports.has_number(subsystem, absent.nsid)
        })
    }

    fn namespaces(&self, controller: &Controller) -> Vec<Export<K>> {
        let Association { subsystem, port, host, kind, .. } = &controller.association;
        match kind {
            ControllerKind::Io => self.exports.namespaces(subsystem, *port, host.as_ref()),
            ControllerKind::Discovery => Vec::new(),
        }
    }

    /// The discovery pages of those who have one, in their order.
    fn pages(&self) -> Vec<Vec<Place>> {
        let discovery = self.controllers.iter().filter(|c| c.is_discovery());
        discovery.map(|c| self.page(c)).collect()
    }

    /// What a discovery controller's host finds, but for the address that it came through.
    fn page(&self, controller: &Controller) -> Vec<Place> {
        self.places(controller.association.host.as_ref(), "")
    }

    fn places(&self, host: Option<&Nqn>, local: &str) -> Vec<Place> {
        let found = self.exports.found_by(host);
        let place = |(subsystem, id): (Nqn, PortId)| {
            let port = self.ports.get(&id)?;
            let address = port.address.clone().unwrap_or_else(|| local.to_owned());
            Some(Place {
                kind: PlaceKind::Subsystem,
                subsystem,
                port: id.0,
                is_v6: address.contains(':'),
                address,
                service: port.service.to_string(),
            })
        };
        self.referrals.iter().cloned().chain(found.into_iter().filter_map(place)).collect()
    }
}

/// Namespaces of a controller changed.
fn tell(controller: &Controller, nsids: impl Iterator<Item = u32>) {
    let mut nsids = nsids.peekable();
    if nsids.peek().is_none() {
        return;
    }
    controller.notify(|notices| {
        // One event until the host reads the page.
        notices.tell_namespaces |= notices.namespaces.is_empty();
        notices.namespaces.extend(nsids);
    });
}

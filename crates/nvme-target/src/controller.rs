//! A controller: what the queues of one host's association share, on whatever cores they are.
//!
//! States: *connected* (its admin queue is there, CC.EN is 0) → *enabled* (CC.EN is 1, and ready at
//! once) → *shut down* (CC.SHN was set) → *lost*. Clearing CC.EN makes an enabled one *resetting*:
//! its I/O queues end, and once the last has, with all it began, it is connected again. Until then
//! it says that it is ready (Base, section 3.1.3.6, CSTS.RDY), and takes no I/O queue. It is lost
//! once its admin queue ends, its keep-alive timer runs out, or access is taken away; all its
//! queues end then, and only when the last has does it go. A lost controller never comes back.
//!
//! Queues look at what is here before every command, so all of it is atomic; what is behind a lock
//! is touched by the admin queue and at a connection's begin and end only.
//!
//! Invariants
//! - No queue number is there twice at a time.
//! - An I/O queue of an *epoch* that is over (CC.EN was cleared since it connected) carries out
//!   nothing more.
//! - Who reads that the controller is not ready finds nothing still under way that came before.

use crate::access::{Export, PortId};
use crate::limits::{
    DISCOVERY_CONTROLLERS, DISCOVERY_KEEP_ALIVE, IO_QUEUES, KEEP_ALIVE_MOST, RESETS, TICK,
};
use crate::mutants::{self, Mutant};
use nvme::identify::{ControllerKind, event};
use nvme::nqn::Nqn;
use nvme::reset::{Entry, Instance, Progress};
use nvme::status::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use units::Nanos;

/// By which addresses a host came.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Way {
    /// The host's own.
    pub host: String,
    /// The one of this machine.
    pub local: String,
}

/// Who asks for a controller, of what, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Association {
    pub subsystem: Nqn,
    /// None: a host without a name.
    pub host: Option<Nqn>,
    pub host_id: [u8; 16],
    pub port: PortId,
    pub way: Way,
    pub kind: ControllerKind,
}

impl Association {
    /// Whether its host finds an export.
    pub fn finds<K>(&self, export: &Export<K>) -> bool {
        export.is_found(&self.subsystem, self.port, self.host.as_ref())
    }
}

/// What a host is told by events.
#[derive(Default, Debug)]
pub(crate) struct Notices {
    /// Namespaces that changed since the host read their log page.
    pub namespaces: BTreeSet<u32>,
    /// That page has to be told of.
    pub tell_namespaces: bool,
    /// The discovery page changed, and has to be told of.
    pub tell_discovery: bool,
    /// The page of access changed, and has to be told of.
    pub tell_access: bool,
    /// The page of resets changed, and has to be told of.
    pub tell_reset: bool,
}

impl Notices {
    fn is_any(&self) -> bool {
        self.tell_namespaces || self.tell_discovery || self.tell_access || self.tell_reset
    }
}

/// A host's counts.
#[derive(Default, Debug)]
pub(crate) struct Counts {
    pub read_bytes: AtomicU64,
    pub written_bytes: AtomicU64,
    pub reads: AtomicU64,
    pub writes: AtomicU64,
}

/// A controller. See the module.
#[derive(Debug)]
pub(crate) struct Controller {
    pub id: u16,
    /// Which instance of that number.
    pub instance: Instance,
    pub association: Association,
    /// When it was made, in seconds since 1970.
    pub since: u64,
    pub counts: Counts,
    lost: AtomicBool,
    /// Its host has, or had, another of this subsystem at the same time.
    shared: AtomicBool,
    /// Something came since the keep-alive timer was looked at.
    traffic: AtomicBool,
    keep_alive_ms: AtomicU32,
    /// When the keep-alive timer began anew, when a clock looked at it last, and when it runs out,
    /// by the cores' clock, in nanoseconds. The first two are of the admin queue's core.
    alive_from: AtomicU64,
    looked: AtomicU64,
    alive_until: AtomicU64,
    configuration: AtomicU32,
    /// Goes up as CC.EN is cleared.
    epoch: AtomicU32,
    /// I/O queues that the host may have.
    granted: AtomicU16,
    pub events_wanted: AtomicU32,
    has_notices: AtomicBool,
    notices: Mutex<Notices>,
    /// Queues that are there, and the epoch of each.
    queues: Mutex<BTreeMap<u16, u32>>,
    /// The page of resets that it was asked for.
    resets: Mutex<Vec<Entry>>,
}

/// What has come may be noted this much later than it came: a clock looks every [`TICK`].
const SLACK: Nanos = Nanos(2 * TICK.0);

/// CC.EN.
const ENABLE: u32 = 1;
/// CC.SHN.
const SHUTDOWN: u32 = 3 << 14;

/// Locks; a panic elsewhere ends the program anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Controller {
    pub fn new(
        instance: Instance,
        association: Association,
        keep_alive_ms: u32,
        since: u64,
    ) -> Self {
        let id = instance.controller;
        assert!((1..=DISCOVERY_CONTROLLERS).contains(&id), "controllers are numbered from 1");
        let wanted = events_at_first(association.kind);
        let keep_alive_ms = keep_alive(association.kind, keep_alive_ms);
        Self {
            id,
            instance,
            association,
            since,
            counts: Counts::default(),
            lost: AtomicBool::new(false),
            shared: AtomicBool::new(false),
            traffic: AtomicBool::new(true),
            keep_alive_ms: AtomicU32::new(keep_alive_ms),
            alive_from: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            alive_until: AtomicU64::new(u64::MAX),
            configuration: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            granted: AtomicU16::new(IO_QUEUES),
            events_wanted: AtomicU32::new(wanted),
            has_notices: AtomicBool::new(false),
            notices: Mutex::default(),
            queues: Mutex::default(),
            resets: Mutex::default(),
        }
    }

    pub fn is_discovery(&self) -> bool {
        self.association.kind == ControllerKind::Discovery
    }

    /// It is lost from now on.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Its host has another of this subsystem.
    pub fn share(&self) {
        self.shared.store(true, Ordering::Release);
    }

    /// Whether its host may ask for the same by another path.
    pub fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }

    /// A command came, on any queue: the keep-alive timer begins anew.
    pub fn note_traffic(&self) {
        if !self.traffic.load(Ordering::Relaxed) {
            self.traffic.store(true, Ordering::Relaxed);
        }
    }

    /// Whether something came since this was asked last.
    fn take_traffic(&self) -> bool {
        self.traffic.swap(false, Ordering::Relaxed)
    }

    /// The keep-alive timer begins.
    pub fn begin_timer(&self, now: Nanos) {
        self.alive_from.store(now.0, Ordering::Relaxed);
        self.looked.store(now.0, Ordering::Relaxed);
    }

    /// The admin queue's clock looks at the keep-alive timer.
    pub fn look_at_timer(&self, now: Nanos) {
        let looked = Nanos(self.looked.swap(now.0, Ordering::Relaxed));
        if self.take_traffic() {
            // It came since; where this program stood still, no later than can be known.
            let came = if now.since(looked) > SLACK { looked } else { now };
            self.alive_from.store(came.0, Ordering::Relaxed);
        }
        let from = Nanos(self.alive_from.load(Ordering::Relaxed));
        let until = match self.keep_alive_ms() {
            0 => u64::MAX,
            timeout => from.after(Nanos::from_millis(timeout.into())).0,
        };
        self.alive_until.store(until, Ordering::Release);
        if now.0 > until {
            self.lose();
        }
    }

    /// Whether it is lost; it is where its timer has run out and no clock has looked for longer
    /// than they take: this program stood still, and its host may have fenced it by time.
    pub fn is_lost_by(&self, now: Nanos) -> bool {
        if now.0 > self.alive_until.load(Ordering::Acquire).saturating_add(SLACK.0) {
            self.lose();
        }
        self.is_lost()
    }

    /// Milliseconds; 0: no timer.
    pub fn keep_alive_ms(&self) -> u32 {
        self.keep_alive_ms.load(Ordering::Relaxed)
    }

    pub fn set_keep_alive_ms(&self, timeout: u32) {
        self.keep_alive_ms.store(keep_alive(self.association.kind, timeout), Ordering::Relaxed);
    }

    /// The Controller Configuration property.
    pub fn configuration(&self) -> u32 {
        self.configuration.load(Ordering::Acquire)
    }

    /// The host sets the Controller Configuration; true if that resets the controller. Features
    /// are as at first then; the keep-alive timeout is the Connect's, and stays.
    pub fn configure(&self, to: u32) -> bool {
        let was = self.configuration.swap(to, Ordering::AcqRel);
        let is_reset = was & ENABLE != 0 && to & ENABLE == 0;
        if is_reset {
            self.epoch.fetch_add(1, Ordering::AcqRel);
            self.granted.store(IO_QUEUES, Ordering::Relaxed);
            self.events_wanted.store(events_at_first(self.association.kind), Ordering::Relaxed);
            // What was told and not read is told again.
            if !mutants::is(Mutant::NoticeKept) {
                self.notify(|notices| notices.tell_namespaces = !notices.namespaces.is_empty());
            }
        }
        is_reset
    }

    /// Whether an I/O queue of an epoch that is over is still there.
    pub fn is_resetting(&self) -> bool {
        let epoch = self.epoch();
        let is_left = lock(&self.queues).iter().any(|(queue, of)| *queue != 0 && *of != epoch);
        is_left && !mutants::is(Mutant::ResetEarly)
    }

    pub fn is_enabled(&self) -> bool {
        self.configuration() & (ENABLE | SHUTDOWN) == ENABLE
    }

    /// The Controller Status property (Base, section 3.1.3.6): ready as soon as enabled, shut down
    /// as soon as asked to, and not ready any more once the queues of the epoch before have ended.
    pub fn status(&self) -> u32 {
        let configuration = self.configuration();
        let done = if configuration & SHUTDOWN != 0 { 0b10 << 2 } else { 0 };
        configuration & ENABLE | u32::from(self.is_resetting()) | done
    }

    /// See the module.
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The host asks for so many I/O queues; gives how many it gets.
    pub fn grant(&self, wanted: u32) -> u16 {
        let granted = wanted.clamp(1, u32::from(IO_QUEUES)) as u16;
        self.granted.store(granted, Ordering::Relaxed);
        granted
    }

    pub fn granted(&self) -> u16 {
        self.granted.load(Ordering::Relaxed)
    }

    /// A queue connects; gives its epoch, unless it is there.
    pub fn begin_queue(&self, queue: u16) -> Option<u32> {
        let mut queues = lock(&self.queues);
        let epoch = self.epoch();
        let is_new = !queues.contains_key(&queue);
        is_new.then(|| queues.insert(queue, epoch));
        is_new.then_some(epoch)
    }

    /// A queue ended, and everything that it began.
    pub fn end_queue(&self, queue: u16) {
        let mut queues = lock(&self.queues);
        let is_past = queue != 0 && queues.get(&queue).is_some_and(|of| *of != self.epoch());
        if !(is_past && mutants::is(Mutant::ResetUnended)) {
            queues.remove(&queue);
        }
    }

    /// Queues that are there.
    pub fn queues(&self) -> usize {
        lock(&self.queues).len()
    }

    /// Notes what the host has to be told.
    pub fn notify(&self, note: impl FnOnce(&mut Notices)) {
        note(&mut lock(&self.notices));
        self.has_notices.store(true, Ordering::Release);
    }

    /// An event to tell, if the host wants to know of one: the result of the request for events
    /// (Base, figure 145: type, information, log page). It is told once, until the page was read.
    pub fn next_event(&self) -> Option<u32> {
        if !self.has_notices.load(Ordering::Acquire) {
            return None;
        }
        let wanted = self.events_wanted.load(Ordering::Relaxed);
        let mut notices = lock(&self.notices);
        if notices.tell_namespaces && wanted & event::NAMESPACES != 0 {
            notices.tell_namespaces = false;
            return Some(notice(0x00, nvme::log::page::CHANGED_NAMESPACES));
        }
        if notices.tell_discovery && wanted & event::DISCOVERY != 0 {
            notices.tell_discovery = false;
            return Some(notice(0xf0, nvme::log::page::DISCOVERY));
        }
        if notices.tell_access && wanted & event::ACCESS != 0 {
            notices.tell_access = false;
            return Some(notice(0x03, nvme::log::page::ANA));
        }
        if notices.tell_reset && wanted & event::RESET != 0 {
            notices.tell_reset = false;
            // Base 2.3, figure 154.
            return Some(notice(0xf4, nvme::log::page::RESETS));
        }
        self.has_notices.store(notices.is_any(), Ordering::Release);
        None
    }

    /// Its host asks that another of its controllers ends; that goes on.
    pub fn begin_reset(&self, of: Instance) -> Result<(), Status> {
        let mut resets = lock(&self.resets);
        let is_over = |own: &Entry| own.progress != Progress::UnderWay;
        if resets.iter().any(|own| own.is_of(of) && !is_over(own)) {
            return Err(Status::RESET_IN_PROGRESS);
        }
        if resets.len() >= RESETS {
            let unread = resets.iter().any(is_over);
            return Err(if unread { Status::RESETS_UNREAD } else { Status::RESETS_MOST });
        }
        resets.push(Entry {
            controller: of.controller,
            uniquifier: of.uniquifier,
            by: self.id,
            progress: Progress::UnderWay,
        });
        Ok(())
    }

    /// A controller has ended, with all that it began.
    pub fn note_end(&self, of: Instance) {
        let mut resets = lock(&self.resets);
        let mut is_noted = false;
        for own in &mut *resets {
            if own.is_of(of) && own.progress == Progress::UnderWay {
                own.progress = Progress::Done;
                is_noted = true;
            }
        }
        drop(resets);
        if is_noted {
            self.notify(|notices| notices.tell_reset = true);
        }
    }

    /// Resets that it was asked for; those that are over are forgotten then if so wanted.
    pub fn resets(&self, are_forgotten: bool) -> Vec<Entry> {
        let mut resets = lock(&self.resets);
        let all = resets.clone();
        if are_forgotten {
            resets.retain(|own| own.progress == Progress::UnderWay);
        }
        all
    }

    /// Namespaces that changed.
    pub fn changed_namespaces(&self) -> Vec<u32> {
        lock(&self.notices).namespaces.iter().copied().collect()
    }

    /// The host has read that these changed. What changed meanwhile it is told of.
    pub fn forget_changed(&self, told: &[u32]) {
        let mut notices = lock(&self.notices);
        notices.namespaces.retain(|nsid| !told.contains(nsid));
        notices.tell_namespaces = !notices.namespaces.is_empty();
        self.has_notices.store(notices.is_any(), Ordering::Release);
    }
}

/// The keep-alive timeout that a host gets which asks for this one, milliseconds. That of a
/// discovery controller always runs: anybody may have one, and who is gone must not keep it.
fn keep_alive(kind: ControllerKind, wanted: u32) -> u32 {
    match (kind, wanted) {
        (ControllerKind::Io, _) => wanted.min(KEEP_ALIVE_MOST),
        (ControllerKind::Discovery, 0) => DISCOVERY_KEEP_ALIVE,
        (ControllerKind::Discovery, _) => wanted.min(DISCOVERY_KEEP_ALIVE),
    }
}

/// Events of controllers with namespaces.
pub(crate) const EVENTS: u32 = event::NAMESPACES | event::ACCESS | event::RESET;

/// Events that a host is told of unless it says otherwise.
fn events_at_first(kind: ControllerKind) -> u32 {
    match kind {
        ControllerKind::Io => EVENTS,
        ControllerKind::Discovery => 0,
    }
}

/// The result of an event of type "notice" (2).
fn notice(information: u8, page: u8) -> u32 {
    2 | u32::from(information) << 8 | u32::from(page) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn controller() -> Controller {
        let name = |name| Nqn::new(name).unwrap();
        let association = Association {
            subsystem: name("nqn.2026-11.example:s"),
            host: Some(name("nqn.2026-11.example:h")),
            host_id: [1; 16],
            way: Way::default(),
            port: PortId(1),
            kind: ControllerKind::Io,
        };
        Controller::new(Instance { controller: 1, uniquifier: 1, random: 9 }, association, 5000, 0)
    }

    #[test]
    fn enabling_makes_ready_and_clearing_ends_the_epoch() {
        let c = controller();
        assert_eq!((c.status(), c.is_enabled(), c.epoch()), (0, false, 0));
        c.configure(0x46_0001);
        assert_eq!((c.status(), c.is_enabled(), c.epoch()), (1, true, 0));
        c.configure(0x46_4001);
        assert_eq!((c.status(), c.is_enabled()), (0b1001, false));
        assert!(c.configure(0x46_0000) && !c.configure(0x46_0000));
        assert_eq!((c.status(), c.is_enabled(), c.epoch()), (0, false, 1));
    }

    /// What came before a reset has ended before the host reads that it is over.
    #[test]
    fn a_reset_lasts_as_long_as_queues_of_before() {
        let c = controller();
        c.configure(1);
        assert_eq!((c.begin_queue(0), c.begin_queue(1)), (Some(0), Some(0)));
        c.grant(1);
        c.events_wanted.store(0, Ordering::Relaxed);
        c.configure(0);
        assert_eq!((c.status(), c.is_resetting()), (1, true));
        assert_eq!(c.granted(), IO_QUEUES);
        assert_eq!(c.events_wanted.load(Ordering::Relaxed), EVENTS);
        c.end_queue(1);
        assert_eq!((c.status(), c.is_resetting(), c.begin_queue(1)), (0, false, Some(1)));
    }

    #[test]
    fn what_comes_behind_the_timer_comes_too_late() {
        let (c, at) = (controller(), |ms| Nanos::from_millis(ms));
        let look =
            |c: &Controller, times: &[u64]| times.iter().for_each(|ms| c.look_at_timer(at(*ms)));
        c.begin_timer(at(1_000));
        assert!(!c.is_lost_by(at(99_999)), "no clock has looked");
        look(&c, &[1_100]);
        assert!(!c.is_lost_by(at(6_300)));
        // Looks alone do not make it begin anew; traffic does.
        look(&c, &[1_200, 1_300]);
        assert!(!c.is_lost_by(at(6_300)));
        c.note_traffic();
        look(&c, &[1_400]);
        assert!(!c.is_lost_by(at(6_600)) && !c.is_lost());
        c.set_keep_alive_ms(0);
        look(&c, &[1_500]);
        assert!(!c.is_lost_by(at(99_999)));
        c.set_keep_alive_ms(5_000);
        look(&c, &[1_600]);
        assert!(c.is_lost_by(at(6_601)) && c.is_lost());
    }

    /// The program stood still: what had come before it did is not as if it came just now.
    #[test]
    fn a_clock_that_looks_late_prolongs_nothing() {
        let at = |ms| Nanos::from_millis(ms);
        for (late, is_lost) in [(4_900, false), (5_900, false), (6_001, true), (60_000, true)] {
            let c = controller();
            c.begin_timer(at(900));
            c.look_at_timer(at(1_000));
            c.note_traffic();
            c.look_at_timer(at(late));
            assert_eq!(c.is_lost(), is_lost, "{late}");
        }
    }

    #[test]
    fn queues_are_there_once() {
        let c = controller();
        assert_eq!([0, 3, 3].map(|queue| c.begin_queue(queue)), [Some(0), Some(0), None]);
        c.end_queue(3);
        assert!(c.begin_queue(3).is_some() && c.queues() == 2);
        assert_eq!((c.grant(0), c.grant(9), c.grant(70_000)), (1, 9, 128));
    }

    #[test]
    fn an_event_is_told_once_and_its_page_until_it_is_read() {
        let c = controller();
        assert_eq!(c.next_event(), None);
        c.notify(|n| {
            n.tell_namespaces = n.namespaces.insert(7);
            (n.tell_discovery, n.tell_access) = (true, true);
        });
        assert_eq!((c.next_event(), c.next_event()), (Some(0x04_00_02), Some(0x0c_03_02)));
        assert_eq!(c.next_event(), None);
        // One that changes while the page is read is told of again.
        let told = c.changed_namespaces();
        c.notify(|n| assert!(n.namespaces.insert(8)));
        c.forget_changed(&told);
        assert_eq!((told, c.changed_namespaces()), (vec![7], vec![8]));
        assert_eq!((c.next_event(), c.next_event()), (Some(0x04_00_02), None));
        c.forget_changed(&[8]);
        assert!(c.changed_namespaces().is_empty());
        c.events_wanted.store(event::DISCOVERY, Ordering::Relaxed);
        assert_eq!((c.next_event(), c.next_event()), (Some(0x70_f0_02), None));
    }
}

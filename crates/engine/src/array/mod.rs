//! An array on one core: splits requests at strip and stripe borders and routes them.
//!
//! - A read of a strip that counts goes straight to its drive, on whichever core it arrives.
//! - Everything that changes a stripe, or must see it whole, becomes a [`message::Job`] on the
//!   stripe's *home core*, a hash of group and band, and runs there ([`crate::stripe`]).
//! - Levels without redundancy have no stripes to keep consistent: their writes go straight to
//!   the drives too, unless blocks are compared and written ([`view::DirectWrites`]).
//!
//! Invariants
//! - An operation that begins after a core adopted a generation follows it. A direct read that
//!   ends under a generation in which its drive no longer counts is discarded and routed again.
//! - A write is acknowledged only if every drive that missed it is recorded as failed, durably,
//!   and every core has adopted that (`fail_and_wait`).
//! - A drain waits for every operation begun before it, and for what is left of those whose
//!   requesters dropped their futures: a stripe's job, or a write on its way to a drive, runs to
//!   its end whoever waits for it.
//! - Nothing is allocated per request after warm-up, but for writes that go through the journal.

mod hold;
mod lost;
pub mod message;
pub mod pending;
mod regions;
pub mod request;
pub mod view;

use crate::Host;
use crate::array::hold::Changes;
use crate::core::Choices;
use crate::journal::Shape;
use crate::journal::flight::{self, Flight};
use crate::journal::lane::{self, Lane};
use crate::limits::{DRIVES_MAX, SLICE_BYTES_MAX, WORKERS};
use crate::mail::Mail as EngineMail;
use crate::mutants::{self, Mutant};
use crate::region::Guards;
use crate::region::table::{Entry, Table, TableStart};
use crate::stripe::compute::Accelerated;
use crate::stripe::scratch::Scratch;
use crate::stripe::table::{Origin, StripeKey, StripeTable, Waiting};
use crate::stripe::worker;
use crate::watch::{Doing, Opened, Watch, Watched};
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::Poll;
use io::local::Event;
use io::{BlockError, Buf, Drive, DriveError, Pool, Priority};
use layout::CodeKind;
use message::{ArrayId, Job, Mail};
use pending::{Answer, Pending};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{CoreId, Generation, GroupNo, Slot, SlotSet, StripIndex};
use view::{DirectWrites, SlotState, View};

/// The core that owns an array's configuration.
pub const MANAGER: CoreId = CoreId(0);

/// A snapshot with this core's handles to the drives it names.
pub struct Bound<E: Host> {
    /// The snapshot.
    pub view: Arc<View>,
    /// The drive of each slot, where there is one.
    pub drives: Vec<Option<Watched<E>>>,
}

impl<E: Host> Bound<E> {
    /// The drive that holds a strip, where that strip begins on it, and its slot.
    ///
    /// # Panics
    /// If the slot has no drive; only strips of drives that are not failed are asked for.
    pub fn strip(&self, key: StripeKey, strip: usize) -> (&Watched<E>, u64, Slot) {
        let layout = &self.view.layout;
        let (slot, offset) = layout.seat(key.group, key.stripe, StripIndex(strip as u16));
        let drive = self.drives[slot.index()].as_ref().expect("a slot in use has a drive");
        (drive, self.view.data_offset + offset, slot)
    }

    /// Starts a flush of every drive that takes writes and has a volatile cache.
    pub fn flushes(&self) -> Flushes<E> {
        let all = (0u16..).map(Slot).zip(&self.drives);
        let taken = all.filter(|(slot, _)| self.view.writable(*slot));
        let cached = |drive: &&Watched<E>| drive.info().volatile_cache;
        let drives = taken.filter_map(|(slot, drive)| Some((slot, drive.as_ref().filter(cached)?)));
        drives.map(|(slot, drive)| (slot, drive.flush())).collect()
    }
}

/// Flushes under way, by slot.
type Flushes<E> = arrayvec::ArrayVec<(Slot, Doing<E>), DRIVES_MAX>;

/// Waits for flushes, all at once: one may have to begin when another's is over. The slots whose
/// drives failed theirs.
pub(crate) async fn failed_flushes<E: Host>(mut flushes: Flushes<E>) -> SlotSet {
    let mut failed = SlotSet::EMPTY;
    poll_fn(|cx| {
        flushes.retain(|(slot, ticket)| match Pin::new(ticket).poll(cx) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(_)) => {
                failed.insert(*slot);
                false
            }
        });
        if flushes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    failed
}

/// Writes that drives were asked for on no host's account: a core's, since the array started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GuardWrites {
    /// In-flight pages.
    pub pages: u64,
    /// Batches of the journal.
    pub batches: u64,
}

/// One array on one core. Clones share it.
pub struct Array<E: Host> {
    inner: Rc<Inner<E>>,
}

impl<E: Host> Clone for Array<E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

struct Inner<E: Host> {
    env: E,
    id: ArrayId,
    watch: Watch<E>,
    bound: RefCell<Rc<Bound<E>>>,
    settled: Cell<Generation>,
    changed: Event,
    table: StripeTable,
    pending: Pending,
    scratch: Scratch,
    accelerated: Option<Accelerated>,
    zeros: Buf,
    /// What is known of its region map.
    regions: Table,
    /// This core's lanes of the journal, if it has any.
    lanes: Vec<Lane>,
    /// What this core has in flight, if it has one.
    flight: Option<Flight>,
    /// Operations begun in even and odd phases, and which phase is now: see `adopt`.
    active: [Cell<usize>; 2],
    phase: Cell<usize>,
    idle: Event,
    changes: Changes,
    /// The flushes that have begun on all cores: what is over on one of them before it is counted
    /// here is covered by it.
    flushes: Arc<AtomicU64>,
}

/// Counts an operation from its begin to its end, so that a change can wait for it.
pub(crate) struct Active<'a> {
    count: &'a Cell<usize>,
    idle: &'a Event,
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
        if self.count.get() == 0 {
            self.idle.notify();
        }
    }
}

impl<E: Host> Array<E> {
    /// Starts an array on this core: binds its drives and starts the journal's tasks.
    pub(crate) fn start(
        env: &E,
        id: ArrayId,
        view: Arc<View>,
        drives: &[Option<Opened<E::Shared>>],
        (regions, flushes): (&TableStart, Arc<AtomicU64>),
        Choices { settings, accelerator, guards }: Choices<'_>,
    ) -> Self {
        let strip = view.layout.strip_bytes() as usize;
        let slice = strip.min(SLICE_BYTES_MAX);
        // No plan reserves more than `k + 2m` slices; what no worker can use is not taken.
        let plan = |g: u16| view.layout.k(GroupNo(g)) + 2 * view.layout.m(GroupNo(g));
        let widest = (0..view.layout.groups()).map(plan).max().unwrap_or(0);
        let most = (WORKERS * usize::from(widest)).min(1024);
        let slices = (settings.scratch_bytes / slice).min(most).max(2 * usize::from(widest));
        let watch = Watch::new(env, settings.deadline);
        let bound = drives.iter().map(|d| d.as_ref().map(|d| watch.open(d))).collect();
        let settled = view.generation;
        let shape = view.journal.map(|(_, bytes)| {
            let shape = Shape::new(&view.layout, bytes, env.cores(), view.block_bytes);
            shape.expect("an array whose journal area is too small is not started")
        });
        let lanes =
            |shape: Shape| (0..shape.lanes).map(|at| Lane::new(env.core(), at, shape)).collect();
        let workers = shape.map_or(WORKERS, |shape| shape.workers);
        let flights = guards == Guards::All;
        let reach = accelerator.map(|a| &a.reach);
        let array = Self {
            inner: Rc::new(Inner {
                env: env.clone(),
                id,
                bound: RefCell::new(Rc::new(Bound { view, drives: bound })),
                settled: Cell::new(settled),
                changed: Event::default(),
                table: StripeTable::new(workers),
                pending: Pending::default(),
                scratch: Scratch::new(slice, slices, watch.given_up(), reach),
                accelerated: accelerator.map(|a| Accelerated::new(a.jobs.clone())),
                watch,
                zeros: Pool::reached(strip, 1, reach).take(strip).expect("its piece").freeze(),
                regions: Table::new(regions, guards),
                lanes: shape.map_or_else(Vec::new, lanes),
                flight: shape.filter(|_| flights).map(|shape| Flight::new(env.core(), shape)),
                active: Default::default(),
                phase: Cell::new(0),
                idle: Event::default(),
                changes: Changes::default(),
                flushes,
            }),
        };
        for at in 0..array.lanes().len() {
            env.spawn(Priority::Last, lane::run(array.clone(), at));
        }
        if array.flight().is_some() {
            env.spawn(Priority::Last, flight::run(array.clone()));
        }
        array
    }

    /// Ends the stripe workers of an array that nothing uses any more. Its lane and its in-flight
    /// record have ended before.
    pub(crate) fn close(&self) {
        assert_eq!(self.inner.table.in_flight(), 0, "an array is drained before it is closed");
        self.inner.table.close();
        self.inner.watch.close();
    }

    /// The array's name within the engine.
    pub fn id(&self) -> ArrayId {
        self.inner.id
    }

    /// What holds now.
    pub fn bound(&self) -> Rc<Bound<E>> {
        self.inner.bound.borrow().clone()
    }

    pub(crate) fn table(&self) -> &StripeTable {
        &self.inner.table
    }

    /// Most bytes of each strip that one write may change: no more than the journal holds, if it
    /// is used.
    pub(crate) fn slice_most(&self) -> u32 {
        let used = self.inner.bound.borrow().view.journal_key != 0;
        let lane = self.lanes().first().filter(|_| used);
        lane.map_or(SLICE_BYTES_MAX as u32, Lane::slice_bytes)
    }

    /// This core's lanes of the journal; none if the array has no journal.
    pub(crate) fn lanes(&self) -> &[Lane] {
        &self.inner.lanes
    }

    /// The lane that all writes of a stripe go through, and its place among the core's.
    pub(crate) fn lane_of(&self, key: StripeKey) -> Option<(usize, &Lane)> {
        let lanes = self.lanes();
        let at = key.stripe.0.checked_rem(lanes.len() as u64)? as usize;
        Some((at, &lanes[at]))
    }

    /// This core's record of what is in flight, if the array has one.
    pub(crate) fn flight(&self) -> Option<&Flight> {
        self.inner.flight.as_ref()
    }

    /// What this core wrote so that no write is lost in a crash.
    pub fn guard_writes(&self) -> GuardWrites {
        GuardWrites {
            pages: self.flight().map_or(0, Flight::writes),
            batches: self.lanes().iter().map(Lane::writes).sum(),
        }
    }

    pub(crate) fn env(&self) -> &E {
        &self.inner.env
    }

    pub(crate) fn zeros(&self) -> &Buf {
        &self.inner.zeros
    }

    pub(crate) fn scratch(&self) -> &Scratch {
        &self.inner.scratch
    }

    /// Who computes parity for it, besides this core.
    pub(crate) fn accelerated(&self) -> Option<&Accelerated> {
        self.inner.accelerated.as_ref()
    }

    /// Begins an operation; `Stopped` once the array is.
    pub(crate) fn begin(&self) -> Result<Active<'_>, BlockError> {
        if self.inner.bound.borrow().view.stopped {
            return Err(BlockError::Stopped);
        }
        let count = &self.inner.active[self.inner.phase.get()];
        count.set(count.get() + 1);
        Ok(Active { count, idle: &self.inner.idle })
    }

    /// The home core of a stripe.
    pub fn home(&self, key: StripeKey) -> CoreId {
        let cores = self.inner.env.cores();
        if cores == 1 {
            return CoreId(0);
        }
        if mutants::is(Mutant::HomeAnywhere) {
            return self.inner.env.core();
        }
        let band = self.inner.bound.borrow().view.layout.band(key.stripe);
        let mixed = (band.0 ^ u64::from(key.group.0) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        CoreId((mixed >> 32) as u16 % cores)
    }

    /// Keeps a drain waiting for a write to a drive whose requester is gone.
    pub(crate) fn abandon(&self, ticket: Doing<E>, entry: Entry) {
        let (array, at) = (self.clone(), self.inner.pending.open_abandoned());
        self.inner.env.spawn(Priority::First, async move {
            let result = ticket.await.map_err(|_| BlockError::Unavailable);
            array.leave(entry);
            array.inner.pending.answer(at, message::Outcome::Done(result));
        });
    }

    /// Gives a job to the stripe's home core at once and returns where the answer comes.
    pub(crate) fn request(&self, key: StripeKey, job: Job) -> Answer<'_> {
        let pending = self.inner.pending.open();
        let origin = Origin { core: self.inner.env.core(), pending };
        let home = self.home(key);
        if home == origin.core {
            self.submit(key, Waiting { job, origin });
        } else {
            self.post(home, Mail::Submit { key, job, origin });
        }
        Answer::new(&self.inner.pending, pending)
    }

    /// Gives a job to this core's workers.
    fn submit(&self, key: StripeKey, waiting: Waiting) {
        let full = {
            let view = &self.inner.bound.borrow().view;
            let is_parity = view.code(key) == CodeKind::Parity;
            let layout = &view.layout;
            if is_parity { u32::from(layout.k(key.group)) * layout.strip_bytes() } else { 0 }
        };
        self.inner.table.submit(key, waiting, full);
        self.hire();
    }

    /// Has another worker begin if a stripe waits for one.
    pub(crate) fn hire(&self) {
        if let Some(number) = self.inner.table.hire() {
            self.inner.env.spawn(Priority::Last, worker::run(self.clone(), number));
        }
    }

    /// Has the manager do something and returns where the answer comes.
    fn ask_manager(&self, mail: impl FnOnce(Origin) -> Mail<E::Shared>) -> Answer<'_> {
        let pending = self.inner.pending.open();
        self.post(MANAGER, mail(Origin { core: self.inner.env.core(), pending }));
        Answer::new(&self.inner.pending, pending)
    }

    /// Answers a job.
    pub(crate) fn answer(&self, origin: Origin, outcome: message::Outcome) {
        if origin.core == self.inner.env.core() {
            self.inner.pending.answer(origin.pending, outcome);
        } else {
            self.post(origin.core, Mail::Answer { pending: origin.pending, outcome });
        }
    }

    fn post(&self, to: CoreId, mail: Mail<E::Shared>) {
        self.inner.env.post(to, EngineMail::Array(self.inner.id, mail));
    }

    /// Takes mail about this array, except what is for its manager.
    pub fn receive(&self, mail: Mail<E::Shared>) {
        match mail {
            Mail::Submit { key, job, origin } => {
                self.submit(key, Waiting { job, origin });
            }
            Mail::Answer { pending, outcome } => self.inner.pending.answer(pending, outcome),
            Mail::Publish { view, drives, drain, quiet } => {
                self.adopt(view, &drives, drain);
                if quiet {
                    self.tell_quiet();
                }
            }
            Mail::Settle(generation) => {
                self.inner.settled.set(self.inner.settled.get().max(generation));
                self.inner.changed.notify();
            }
            Mail::EndJournal => self.end_journal(),
            Mail::Flushed(flush) => self.inner.flight.iter().for_each(|f| f.flushed(flush)),
            Mail::Region(mail) => self.region_mail(mail),
            Mail::Adopted { .. }
            | Mail::Drained { .. }
            | Mail::Quiet { .. }
            | Mail::DriveFailed { .. }
            | Mail::Unreadable { .. }
            | Mail::FirstWrite(_)
            | Mail::EndDirectWrites
            | Mail::Lost(..)
            | Mail::Keeper(_) => {
                unreachable!("mail for the manager is sorted out by the core")
            }
        }
    }

    /// Follows a new snapshot from here on and tells the manager; with `drain` tells it again
    /// when every operation begun before is over. Those operations may need further snapshots
    /// to end, so nobody holds the configuration lock for them. One drain at a time.
    fn adopt(&self, view: Arc<View>, drives: &[Option<Opened<E::Shared>>], drain: bool) {
        let old = self.bound();
        assert!(view.generation > old.view.generation, "generations only grow");
        let generation = view.generation;
        let same = |slot: usize| old.view.slots[slot].incarnation == view.slots[slot].incarnation;
        let rebind = |slot: usize, opened: &Opened<E::Shared>| match old.drives.get(slot) {
            Some(Some(drive)) if same(slot) => drive.clone(),
            _ => self.inner.watch.open(opened),
        };
        let drives: Vec<_> =
            drives.iter().enumerate().map(|(i, d)| d.as_ref().map(|d| rebind(i, d))).collect();
        for (slot, drive) in old.drives.iter().enumerate() {
            if let Some(drive) = drive
                && (drives[slot].is_none() || !same(slot))
            {
                // Nobody waits for a drive that is out.
                drive.give_up(DriveError::Gone);
            }
        }
        *self.inner.bound.borrow_mut() = Rc::new(Bound { view, drives });
        self.inner.changed.notify();
        self.inner.lanes.iter().for_each(Lane::look);
        self.inner.flight.iter().for_each(Flight::look);
        let core = self.inner.env.core();
        self.post(MANAGER, Mail::Adopted { core, generation });
        if !drain {
            return;
        }
        let old_phase = self.inner.phase.replace(1 - self.inner.phase.get());
        let array = self.clone();
        self.inner.env.spawn(Priority::First, async move {
            let inner = &array.inner;
            inner.idle.wait_until(|| (inner.active[old_phase].get() == 0).then_some(())).await;
            // Operations whose futures were dropped are over, their jobs need not be.
            inner.pending.abandoned_over().await;
            array.post(MANAGER, Mail::Drained { core });
        });
    }

    /// Ends what writes to the journal area by itself, and tells the manager. All cores have
    /// drained: what one began another may have carried out. The drives of an array that stops are
    /// let go next, and a page cut short by that would look like a drive that failed.
    fn end_journal(&self) {
        let array = self.clone();
        self.inner.env.spawn(Priority::First, async move {
            for lane in array.lanes() {
                lane.end().await;
            }
            if let Some(flight) = array.flight() {
                flight.end().await;
            }
            let core = array.inner.env.core();
            array.post(MANAGER, Mail::Drained { core });
        });
    }

    /// Waits until the snapshot satisfies `done` and all cores have adopted it. Also while the
    /// array stops: what is under way then ends as it would otherwise.
    pub(crate) async fn settled(&self, done: impl Fn(&View) -> bool) {
        let inner = &self.inner;
        inner
            .changed
            .wait_until(|| {
                let bound = inner.bound.borrow();
                let view = &bound.view;
                let settled = inner.settled.get() >= view.generation;
                (settled && done(view)).then_some(())
            })
            .await;
    }

    /// Tells the manager that a change of a drive failed, unless only its blocks were bad or
    /// the drive is out already.
    pub(crate) fn report(&self, slot: Slot, incarnation: u32, error: DriveError) {
        self.tell_failed(slot, incarnation, error, false);
    }

    /// The same of a read. The drive stays if the array can't do without it and it may answer
    /// other reads.
    pub(crate) fn report_read(&self, slot: Slot, incarnation: u32, error: DriveError) {
        self.tell_failed(slot, incarnation, error, true);
    }

    fn tell_failed(&self, slot: Slot, incarnation: u32, error: DriveError, read: bool) {
        let now = self.inner.bound.borrow().view.slots[slot.index()];
        let counts = now.incarnation == incarnation && now.state != SlotState::Failed;
        if error != DriveError::Media && counts {
            self.post(MANAGER, Mail::DriveFailed { read, slot, incarnation, error });
        }
    }

    /// Tells the manager that a drive could not read blocks, or that it can again.
    pub(crate) fn unreadable(&self, slot: Slot, incarnation: u32, rewritten: bool) {
        self.post(MANAGER, Mail::Unreadable { slot, incarnation, rewritten });
    }

    /// What a read is worth that began under `bound`: an error is reported or counted, and bytes
    /// of a drive that no longer counts are as good as none (D2).
    pub(crate) fn believe(
        &self,
        bound: &Bound<E>,
        key: StripeKey,
        slot: Slot,
        result: Result<(), DriveError>,
    ) -> Result<(), ()> {
        let incarnation = bound.view.slots[slot.index()].incarnation;
        match result {
            Ok(()) => {
                let now = self.inner.bound.borrow();
                let same = now.view.generation == bound.view.generation;
                let counts = same || now.view.still_readable(slot, incarnation, key);
                counts.then_some(()).ok_or(())
            }
            Err(DriveError::Media) => {
                self.unreadable(slot, incarnation, false);
                Err(())
            }
            Err(error) => {
                self.report_read(slot, incarnation, error);
                Err(())
            }
        }
    }

    /// The same of several, by slot: all are told of before any is waited for.
    pub(crate) async fn fail_all_and_wait(&self, bound: &Bound<E>, slots: SlotSet) {
        slots.iter().for_each(|slot| self.fail(bound, slot));
        for slot in slots.iter() {
            self.out(bound, slot).await;
        }
    }

    /// Has a drive failed that missed a write, and waits until that is durable and known to all.
    pub(crate) async fn fail_and_wait(&self, bound: &Bound<E>, slot: Slot) {
        self.fail(bound, slot);
        self.out(bound, slot).await;
    }

    fn fail(&self, bound: &Bound<E>, slot: Slot) {
        let incarnation = bound.view.slots[slot.index()].incarnation;
        let error = bound.drives[slot.index()].as_ref().and_then(Watched::error);
        // What was written over unreadable blocks and can't be read again speaks for itself.
        let error = error.unwrap_or(DriveError::Media);
        self.post(MANAGER, Mail::DriveFailed { read: false, slot, incarnation, error });
    }

    async fn out(&self, bound: &Bound<E>, slot: Slot) {
        let incarnation = bound.view.slots[slot.index()].incarnation;
        self.settled(|view| {
            let now = view.slots[slot.index()];
            now.incarnation != incarnation || now.state == SlotState::Failed
        })
        .await;
    }

    /// Waits until every core has adopted this generation.
    #[inline]
    pub(crate) async fn known_to_all(&self, generation: Generation) {
        let inner = &self.inner;
        if inner.settled.get() < generation && !mutants::is(Mutant::NoBarrier) {
            let known = || (inner.settled.get() >= generation).then_some(());
            inner.changed.wait_until(known).await;
        }
    }

    /// Waits until the group is recorded as unclean, durably on all drives.
    pub(crate) async fn ensure_unclean(&self, group: GroupNo) {
        let skip = mutants::is(Mutant::NeverUnclean);
        if !skip && !self.inner.bound.borrow().view.groups[group.index()].unclean {
            self.post(MANAGER, Mail::FirstWrite(group));
            self.settled(|view| view.groups[group.index()].unclean).await;
        }
    }

    /// Waits until nothing changes stripes without redundancy but their home cores; `Stopped` once
    /// the array is. Not to be called within an operation: those that began before are waited for.
    pub(crate) async fn end_direct_writes(&self) -> Result<(), BlockError> {
        let over = |view: &View| view.direct_writes == DirectWrites::Over || view.stopped;
        if !over(&self.inner.bound.borrow().view) {
            self.post(MANAGER, Mail::EndDirectWrites);
        }
        self.settled(over).await;
        self.begin().map(drop)
    }

    /// A flush of all drives begins: its number, counted from 1 over all cores.
    pub(crate) fn flush_begins(&self) -> u64 {
        self.inner.flushes.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// How many have begun.
    pub(crate) fn flushes_begun(&self) -> u64 {
        self.inner.flushes.load(Ordering::SeqCst)
    }

    /// Makes every write that completed before durable on every drive that counts (D15).
    pub async fn flush(&self) -> Result<(), BlockError> {
        let _active = self.begin()?;
        let bound = self.bound();
        let number = self.flush_begins();
        let mut tickets = bound.flushes();
        if mutants::is(Mutant::FlushOneLess) {
            tickets.pop();
        }
        if mutants::is(Mutant::FlushEarly) {
            return Ok(());
        }
        let mut failed = failed_flushes(tickets).await;
        if mutants::is(Mutant::FlushErrorLost) {
            failed = SlotSet::EMPTY;
        }
        self.fail_all_and_wait(&bound, failed).await;
        if failed.is_empty() && bound.view.volatile_cache && bound.view.flight_key != 0 {
            // What was written through one core is in flight on all.
            for core in 0..self.inner.env.cores() {
                self.post(CoreId(core), Mail::Flushed(number));
            }
        }
        // What was acknowledged before may hang on a drive that has just failed.
        self.past_hold().await;
        let lost = self.bound().view.slots.iter().any(|slot| slot.dropped);
        if lost { Err(BlockError::Unavailable) } else { Ok(()) }
    }
}

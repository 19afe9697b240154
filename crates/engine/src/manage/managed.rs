//! One array as its manager has it: the record, the drives, and how a change becomes durable
//! and known.
//!
//! Invariants
//! - `record` is what the newest record slots of all drives that take part say, except while
//!   `commit` runs.
//! - A drive is recorded as failed only if the others still hold all data: no more are gone than
//!   there is redundancy, and no parity is owed to a resync. Otherwise it is `dropped`: out of the
//!   snapshot, so that requests fail loudly, but not out of the record, so that the array starts
//!   again when its drives are back. Its groups acknowledge no write from then on.
//! - The sequence number grows with every commit; the epoch with every change of who takes part.
//!   Later epochs leave dropped drives behind: each keeps in the record the newest epoch that may
//!   have been written to it, and counts again at the next start, however long it was away.
//!
//! | a slot is   | becomes | when                                                               |
//! |-------------|---------|--------------------------------------------------------------------|
//! | in sync     | failed  | a request to it failed, or a person says so; the others hold all   |
//! | in sync     | dropped | a request to it failed, and they do not                            |
//! | rebuilding  | failed  | a request to it failed, or a person says so                        |
//! | dropped     | in sync | the array is assembled again with its drive                        |
//! | failed      | rebuilding | another drive takes the slot                                    |

use crate::Host;
use crate::array::message::{ArrayId, Mail as ArrayMail};
use crate::array::view::{
    DirectWrites, ExtentView, GroupView, SlotState as ViewState, SlotView, View, VolumeView,
};
use crate::array::{Array, MANAGER};
use crate::mail::Mail;
use crate::manage::Manager;
use crate::manage::command::{DriveRef, ManageError};
use crate::manage::errors::Errors;
use crate::manage::guard::Guard;
use crate::manage::keeper::Keeper;
use crate::manage::lost::LostLists;
use crate::manage::owner::Ownership;
use crate::manage::store::{self, NextSlot};
use crate::manage::tasks::Tasks;
use crate::manage::teller::Teller;
use crate::mutants::{self, Mutant};
use crate::region::map::Map;
use crate::watch::quarantine::Quarantine;
use crate::watch::{Opened, Watched};
use core::cell::{Cell, Ref, RefCell};
use format::{ArrayRecord, SlotState};
use io::local::{Event, Semaphore, all_of};
use io::{Drive, DriveError};
use layout::{CodeKind, Layout};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use units::{CoreId, Generation, GroupNo, Slot, SlotSet};

/// What the manager knows of a slot beyond the record.
pub(super) struct Seat<E: Host> {
    /// Its drive, if there is one.
    pub drive: Option<(DriveRef<E::Shared>, Watched<E>)>,
    /// Where its next record goes.
    pub next: NextSlot,
    /// Counts its drives since the start.
    pub incarnation: u32,
    /// Out of the snapshot though not recorded as failed.
    pub dropped: bool,
}

/// A drive that an array starts with, and where its next record goes.
pub(super) type Taken<E> = (DriveRef<<E as io::Env>::Shared>, Watched<E>, NextSlot);

/// How far the life of an array has come.
///
/// | phase    | what happens                             | next                                  |
/// |----------|------------------------------------------|---------------------------------------|
/// | making   | drives are erased, recorded, given a map | starting; over: it failed, or a stop  |
/// | starting | records are written, cores are told      | running; over: a drive failed         |
/// | running  | it serves; requests are taken            | over: stopped                         |
/// | over     | its manager has forgotten it             |                                       |
///
/// Only a running array takes requests: before that the answers of the cores are those of the
/// start. A stop or delete ends the making at its next step; other requests are refused then, and
/// all wait for a start to end. Names are taken from the first phase on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Making,
    Starting,
    Running,
    Over,
}

/// An array, from its creation or assembly to its stop.
pub(super) struct Managed<E: Host> {
    env: E,
    id: ArrayId,
    layout: Arc<Layout>,
    record: RefCell<ArrayRecord>,
    pub(super) seats: RefCell<Vec<Seat<E>>>,
    /// Slots whose drives were not there at the start though no record said that they failed.
    pub(super) missing: RefCell<Vec<Slot>>,
    /// One change of configuration at a time.
    pub(super) lock: Semaphore,
    /// One change of volumes at a time; taken before `draining_lock`.
    pub(super) volume_lock: Semaphore,
    /// One draining publication at a time; taken before `lock`.
    pub(super) draining_lock: Semaphore,
    /// One drive is put in at a time, and none beside a stop; taken before `volume_lock`.
    pub(super) replacing: Semaphore,
    pub(super) tasks: Tasks,
    /// Over what it lacks while it is degraded.
    pub(super) guard: Guard,
    /// Of its region map.
    keeper: Keeper,
    /// Pages of the map that no drive had at the start.
    pub(super) lost_pages: Cell<u64>,
    phase: Cell<Phase>,
    cancelled: Cell<bool>,
    phase_changed: Event,
    /// What went wrong with the drives.
    pub(super) errors: Errors,
    /// Whose it is, if it is shared.
    pub(super) owner: Option<Ownership>,
    /// What nobody can give back.
    pub(super) lost: LostLists,
    /// Drives whose old openings are not over.
    pub(super) quarantine: Rc<Quarantine>,
    /// Tells the control plane how the array is.
    pub(super) teller: Rc<Teller>,
    /// Something was recorded, or a drive dropped, that was not told yet.
    pub(super) news: Cell<bool>,
    local: RefCell<Option<Array<E>>>,
    generation: Cell<Generation>,
    stopped: Cell<bool>,
    /// Stopped, and nothing is in flight: no core needs a drive.
    drained_for_good: Cell<bool>,
    closed: Cell<bool>,
    waiting_for: Cell<u16>,
    draining: Cell<u16>,
    /// It is not recorded, and begins anew with a start.
    pub(super) direct_writes: Cell<DirectWrites>,
    /// Cores on which changes of stripes are not over that the last publication asked for.
    unquiet: Cell<u16>,
    answered: Event,
}

impl<E: Host> Managed<E> {
    pub fn new(
        manager: &Manager<E>,
        id: ArrayId,
        phase: Phase,
        record: ArrayRecord,
        drives: Vec<Option<Taken<E>>>,
        owner: Option<Ownership>,
    ) -> Self {
        let layout = Arc::new(record.layout().expect("a checked record has a layout"));
        let inner = &manager.inner;
        let tasks = Tasks::new(&record, inner.last_task.clone());
        let keeper = Keeper::new(Map::new(record.array, &layout, record.areas.shift));
        let guard = Guard::new(&record, &layout, phase == Phase::Starting);
        let seat = |drive: Option<Taken<E>>| match drive {
            Some((reference, drive, next)) => {
                Seat { drive: Some((reference, drive)), next, incarnation: 0, dropped: false }
            }
            None => Seat { drive: None, next: NextSlot::default(), incarnation: 0, dropped: false },
        };
        Self {
            env: inner.env.clone(),
            id,
            layout,
            record: RefCell::new(record),
            seats: RefCell::new(drives.into_iter().map(seat).collect()),
            missing: RefCell::default(),
            lock: Semaphore::new(1),
            volume_lock: Semaphore::new(1),
            draining_lock: Semaphore::new(1),
            replacing: Semaphore::new(1),
            tasks,
            guard,
            keeper,
            lost_pages: Cell::new(0),
            phase: Cell::new(phase),
            cancelled: Cell::new(false),
            phase_changed: Event::default(),
            errors: Errors::default(),
            owner,
            lost: LostLists::default(),
            quarantine: inner.quarantine.clone(),
            teller: inner.teller.clone(),
            news: Cell::new(false),
            local: RefCell::default(),
            generation: Cell::new(Generation(1)),
            stopped: Cell::new(false),
            drained_for_good: Cell::new(false),
            closed: Cell::new(false),
            waiting_for: Cell::new(0),
            draining: Cell::new(0),
            direct_writes: Cell::new(DirectWrites::Allowed),
            unquiet: Cell::new(0),
            answered: Event::default(),
        }
    }

    /// Goes on to the next phase.
    pub fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.phase_changed.notify();
    }

    /// Whether the creation shall end.
    pub fn cancelled(&self) -> bool {
        self.cancelled.get()
    }

    /// Ends the array's creation, if that is what happens, and returns when it is over.
    pub async fn cancel_creation(&self) -> bool {
        if self.phase.get() != Phase::Making {
            return false;
        }
        self.cancelled.set(true);
        let over = || (self.phase.get() == Phase::Over).then_some(());
        self.phase_changed.wait_until(over).await;
        true
    }

    /// Waits until the array takes requests. Refused while it is being made.
    pub async fn ready(&self) -> Result<(), ManageError> {
        if self.phase.get() == Phase::Making {
            return Err(ManageError::BeingMade(self.record().name.clone()));
        }
        let known = || Some(self.phase.get()).filter(|phase| *phase != Phase::Starting);
        match self.phase_changed.wait_until(known).await {
            Phase::Running => Ok(()),
            _ => Err(ManageError::NoArray(self.record().name.clone())),
        }
    }

    /// Whether its cores run it.
    pub(super) fn is_running(&self) -> bool {
        self.phase.get() == Phase::Running
    }

    /// Waits until its cores run it, or it is over.
    pub(super) async fn is_started(&self) {
        let is_so = || matches!(self.phase.get(), Phase::Running | Phase::Over).then_some(());
        self.phase_changed.wait_until(is_so).await;
    }

    pub fn id(&self) -> ArrayId {
        self.id
    }

    pub fn env(&self) -> &E {
        &self.env
    }

    pub fn record(&self) -> Ref<'_, ArrayRecord> {
        self.record.borrow()
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The keeper of its region map.
    pub(super) fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// The drives that take part, by slot.
    pub(super) fn drives_taking_part(&self) -> Vec<(Slot, Watched<E>)> {
        let slots = self.taking_part(&self.record());
        let seats = self.seats.borrow();
        let drive = |slot: &Slot| seats[slot.index()].drive.as_ref().map(|d| d.1.clone());
        slots.iter().filter_map(|slot| Some((*slot, drive(slot)?))).collect()
    }

    /// The array on the manager's own core, once it runs.
    pub fn local(&self) -> Option<Array<E>> {
        self.local.borrow().clone()
    }

    /// The array runs on the manager's core.
    pub fn attach(&self, array: Array<E>) {
        *self.local.borrow_mut() = Some(array);
    }

    /// No new operation is served, no change but those that operations under way need.
    pub fn stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Nothing changes the array any more.
    pub fn closed(&self) -> bool {
        self.closed.get()
    }

    /// The slots that take part: not failed, with a drive, not dropped.
    pub(super) fn taking_part(&self, record: &ArrayRecord) -> Vec<Slot> {
        let seats = self.seats.borrow();
        let takes = |i: &usize| {
            let seat = &seats[*i];
            record.slots[*i].state != SlotState::Failed && seat.drive.is_some() && !seat.dropped
        };
        (0..record.slots.len()).filter(takes).map(|i| Slot(i as u16)).collect()
    }

    /// Whether no drive is out that the array can't do without. A start that goes on without one
    /// would leave it behind by more than one epoch, and nobody could start the array with it.
    pub(super) fn all_there(&self) -> Result<(), ManageError> {
        match self.seats.borrow().iter().any(|seat| seat.dropped) {
            true => Err(ManageError::State(super::command::ArrayState::Failed)),
            false => Ok(()),
        }
    }

    /// Whether the groups of these slots keep all data with the drives of all of them gone too.
    /// Where parity is owed to a resync it is worth nothing, so every drive of the group is needed.
    pub fn survives_without(&self, slots: SlotSet) -> bool {
        self.survives(&self.record.borrow(), slots)
    }

    /// Whether they do by a record that is about to be written.
    fn survives(&self, record: &ArrayRecord, slots: SlotSet) -> bool {
        let seats = self.seats.borrow();
        slots.iter().flat_map(|slot| self.layout.groups_of(slot)).all(|group| {
            let parity = self.layout.descriptor(group).code == CodeKind::Parity;
            let trusted = !parity || !self.doubts(group);
            let lost = self
                .layout
                .slots(group)
                .filter(|s| {
                    let i = s.index();
                    slots.has(*s)
                        || record.slots[i].state != SlotState::InSync
                        || seats[i].dropped
                        || seats[i].drive.is_none()
                })
                .count();
            trusted && lost <= usize::from(self.layout.m(group))
        })
    }

    /// Makes a changed record durable on every drive that takes part. With `epoch`, as the next
    /// epoch. A drive that fails meanwhile is failed by the same commit, and the slot that makes a
    /// group whole whose loss was accepted leaves it with a resync to do. A change that the format
    /// has no room for is refused, and nothing is written. Where no drive takes part any more that
    /// is an error: nothing is done that no drive has recorded.
    pub async fn commit(
        &self,
        epoch: bool,
        change: impl FnOnce(&mut ArrayRecord),
    ) -> Result<(), ManageError> {
        let mut record = self.record.borrow().clone();
        change(&mut record);
        record.settle_losses(&self.layout);
        if epoch {
            self.next_epoch(&mut record);
        }
        self.keep_journal(&mut record);
        check(&record)?;
        loop {
            self.keep_journal(&mut record);
            record.sequence += 1;
            let failed = self.write_records(&record).await;
            *self.record.borrow_mut() = record.clone();
            self.news.set(true);
            if failed.is_empty() && !self.taking_part(&record).is_empty() {
                return Ok(());
            }
            let mut out = false;
            for slot in failed {
                if self.spares(&record, slot) {
                    record.fail_slot(slot);
                    out = true;
                } else {
                    self.seats.borrow_mut()[slot.index()].dropped = true;
                }
            }
            if self.taking_part(&record).is_empty() {
                return Err(ManageError::State(super::command::ArrayState::Failed));
            }
            if out {
                self.next_epoch(&mut record);
            }
        }
    }

    /// Refuses a change that could not be recorded, before anything is done for it.
    pub fn recordable(&self, change: impl FnOnce(&mut ArrayRecord)) -> Result<(), ManageError> {
        let mut record = self.record.borrow().clone();
        change(&mut record);
        check(&record)
    }

    /// Begins an epoch of the drives that take part; dropped ones stay in their last.
    fn next_epoch(&self, record: &mut ArrayRecord) {
        let seats = self.seats.borrow();
        record.next_epoch_without(self.env.random(), |slot| seats[slot.index()].dropped);
    }

    /// Writes a record to every drive that takes part, all at once; the slots that failed.
    async fn write_records(&self, record: &ArrayRecord) -> Vec<Slot> {
        let slots = self.taking_part(record);
        let write = |slot: &Slot| {
            let seats = self.seats.borrow();
            let seat = &seats[slot.index()];
            let (drive, next) = (seat.drive.as_ref().expect("takes part").1.clone(), seat.next);
            let copy = record.for_slot(*slot);
            async move { store::write(&drive, next, &copy).await }
        };
        let written = all_of(slots.iter().map(write).collect()).await;
        let mut failed = Vec::new();
        for (slot, written) in slots.into_iter().zip(written) {
            match written {
                Ok(next) => self.seats.borrow_mut()[slot.index()].next = next,
                Err(error) => {
                    self.count_failure(slot, error);
                    failed.push(slot);
                }
            }
        }
        failed
    }

    /// The present snapshot.
    pub fn view(&self) -> View {
        let record = self.record.borrow();
        let seats = self.seats.borrow();
        let slot = |i: usize| {
            let state = match record.slots[i].state {
                _ if seats[i].dropped || seats[i].drive.is_none() => ViewState::Failed,
                SlotState::Failed => ViewState::Failed,
                SlotState::InSync => ViewState::InSync,
                SlotState::Rebuilding { border } => {
                    let ahead = if mutants::is(Mutant::BorderAhead) { 4 } else { 0 };
                    ViewState::Rebuilding { border: border + ahead }
                }
            };
            let Seat { incarnation, dropped, .. } = seats[i];
            let drive = format::journal::drive_tag(record.slots[i].drive);
            SlotView { state, incarnation, dropped, drive }
        };
        let extent = |e: &format::Extent| ExtentView { array_start: e.array_start, bytes: e.bytes };
        let volume = |v: &format::VolumeRecord| {
            Arc::new(VolumeView {
                uuid: v.uuid,
                name: v.name.clone(),
                bytes: v.bytes,
                extents: v.extents.iter().map(extent).collect(),
            })
        };
        let group = |(i, g): (usize, &format::GroupRecord)| GroupView {
            unclean: g.unclean,
            owed: self.keeper.map.borrow().owed_set(GroupNo(i as u16)),
            gives: self.gives_all_the_same(GroupNo(i as u16)),
        };
        let (journal_key, flight_key) = self.keys();
        let later = mutants::is(Mutant::LayoutShift) && record.epoch.counter > 1;
        let shift_of_epoch = if later { record.block_bytes.into() } else { 0 };
        let inline = |s: &Seat<E>| s.drive.as_ref().is_none_or(|d| d.1.info().inline);
        let caches = |s: &Seat<E>| s.drive.as_ref().is_some_and(|d| d.1.info().volatile_cache);
        View {
            generation: self.generation.get(),
            array: record.array,
            epoch: record.epoch.counter,
            journal: self.guard.area,
            journal_key,
            flight_key,
            hold: self.holds(),
            direct_writes: self.direct_writes.get(),
            layout: self.layout.clone(),
            block_bytes: record.block_bytes,
            data_offset: record.data_offset + shift_of_epoch,
            volatile_cache: seats.iter().any(caches),
            inline: seats.iter().all(inline),
            slots: (0..seats.len()).map(slot).collect(),
            region_shift: self.keeper.map.borrow().region_shift(),
            groups: record.groups.iter().enumerate().map(group).collect(),
            volumes: record.volumes.iter().map(volume).collect(),
            lost: self.lost_view(&record),
            stopped: self.stopped.get(),
        }
    }

    /// What each core binds its handles from; a failed drive is let go, and held in quarantine
    /// as long as requests to it are under way.
    pub fn shared_drives(&self) -> Vec<Option<Opened<E::Shared>>> {
        let view = self.view();
        let mut seats = self.seats.borrow_mut();
        let used = |(i, seat): (usize, &mut Seat<E>)| {
            let (reference, drive) = seat.drive.as_mut()?;
            if view.slots[i].state == ViewState::Failed {
                self.retire(reference, drive);
            }
            drive.opened(&reference.shared).filter(|_| !self.drained_for_good.get())
        };
        seats.iter_mut().enumerate().map(used).collect()
    }

    /// Lets the drive of a failed slot go, if it was not yet.
    pub fn retire_failed(&self, slot: Slot) {
        if let Some((reference, drive)) = self.seats.borrow_mut()[slot.index()].drive.as_mut() {
            self.retire(reference, drive);
        }
    }

    /// Lets the drive of a slot go, as if it had not been found.
    pub fn let_slot_go(&self, slot: Slot) {
        if let Some((reference, mut drive)) = self.seats.borrow_mut()[slot.index()].drive.take() {
            self.retire(&reference, &mut drive);
        }
    }

    /// Lets a drive go, if it was not yet, and holds it in quarantine as long as requests to it are
    /// under way.
    fn retire(&self, reference: &DriveRef<E::Shared>, drive: &mut Watched<E>) {
        if drive.is_retired() {
            return;
        }
        // Behind this nothing waits to be sent there.
        self.bar(drive);
        self.quarantine.hold(&reference.path, drive.retire());
    }

    /// Takes over what an assembly found, before anything is written: the record, and which drives
    /// take part.
    pub fn found(&self, assembly: &format::Assembly) {
        *self.record.borrow_mut() = assembly.record.clone();
        *self.missing.borrow_mut() = assembly.missing.iter().map(|m| m.slot).collect();
        for missing in &assembly.missing {
            self.let_slot_go(missing.slot);
        }
    }

    /// Lets all drives go: the array is over.
    pub fn let_go(&self) {
        for seat in self.seats.borrow_mut().iter_mut() {
            if let Some((reference, mut drive)) = seat.drive.take() {
                self.retire(&reference, &mut drive);
            }
        }
    }

    fn to_all(&self, mail: impl Fn() -> ArrayMail<E::Shared>) {
        for core in 0..self.env.cores() {
            self.env.post(CoreId(core), Mail::Array(self.id, mail()));
        }
    }

    async fn all_answered(&self) {
        self.answered.wait_until(|| (self.waiting_for.get() == 0).then_some(())).await;
    }

    /// Starts the array on every core.
    pub async fn start_on_cores(&self) {
        self.waiting_for.set(self.env.cores());
        let (view, drives) = (Arc::new(self.view()), self.shared_drives());
        let regions = Arc::new(self.keeper.map.borrow().table());
        let flushes = Arc::new(AtomicU64::new(0));
        for core in 0..self.env.cores() {
            let (array, view, drives) = (self.id, view.clone(), drives.clone());
            let (regions, flushes) = (regions.clone(), flushes.clone());
            self.env.post(CoreId(core), Mail::Start { array, view, drives, regions, flushes });
        }
        self.all_answered().await;
    }

    /// Publishes the present state and settles it. With `drain`, `drained` tells when every
    /// operation begun before is over.
    pub async fn publish(&self, drain: bool) {
        self.publish_asking(drain, false).await;
    }

    /// The same. With `quiet`, [`Managed::quiet`] returns when every change of a parity stripe
    /// begun before is in place.
    pub(super) async fn publish_asking(&self, drain: bool, quiet: bool) {
        let generation = Generation(self.generation.get().0 + 1);
        self.generation.set(generation);
        let (view, drives) = (Arc::new(self.view()), self.shared_drives());
        self.waiting_for.set(self.env.cores());
        if drain {
            assert_eq!(self.draining.get(), 0, "one drain at a time: its lock is held");
            self.draining.set(self.env.cores());
        }
        if quiet {
            assert_eq!(self.unquiet.get(), 0, "one at a time: the turn is held");
            self.unquiet.set(self.env.cores());
        }
        let drives = || drives.clone();
        self.to_all(|| ArrayMail::Publish { view: view.clone(), drives: drives(), drain, quiet });
        self.all_answered().await;
        self.announce_news();
        self.to_all(|| ArrayMail::Settle(generation));
        self.guard.changed.notify();
    }

    /// Tells how the array is, if that is news and somebody reads. One that is over was told as
    /// gone, and is not told again by a task that ends later.
    pub(super) fn announce(&self) {
        if self.phase.get() != Phase::Over {
            self.teller.tell(|| self.status());
        }
    }

    /// Tells it if what was recorded or who takes part has changed since the last time.
    pub(super) fn announce_news(&self) {
        if self.news.take() {
            self.announce();
        }
    }

    /// Waits until every operation is over that began before the last draining publication. The
    /// configuration lock must be free: those operations may need changes to end (a drive that
    /// fails, a first write).
    pub async fn drained(&self) {
        self.answered.wait_until(|| (self.draining.get() == 0).then_some(())).await;
    }

    /// Waits until every change is in place that was begun before the last publication that asked
    /// for it. The configuration lock must be free, as for [`Managed::drained`].
    pub(super) async fn quiet(&self) {
        self.answered.wait_until(|| (self.unquiet.get() == 0).then_some(())).await;
    }

    /// Ends all service: nothing is in flight on return. The volume lock is held, the other two
    /// are free.
    pub async fn publish_stopped(&self) {
        self.draining_lock.acquire(1).await;
        self.lock.acquire(1).await;
        self.stopped.set(true);
        self.publish(true).await;
        self.lock.release(1);
        self.drained().await;
        self.draining.set(self.env.cores());
        self.to_all(|| ArrayMail::EndJournal);
        self.drained().await;
        self.draining_lock.release(1);
        // A handle of a core would keep its opening alive.
        self.drained_for_good.set(true);
        self.lock.acquire(1).await;
        self.publish(false).await;
        self.lock.release(1);
    }

    /// Ends the array on all cores: no change is made any more.
    pub fn close(&self) {
        self.closed.set(true);
        for core in 0..self.env.cores() {
            self.env.post(CoreId(core), Mail::Forget(self.id));
        }
    }

    pub fn core_started(&self) {
        self.waiting_for.set(self.waiting_for.get() - 1);
        self.answered.notify();
    }

    pub fn core_drained(&self) {
        self.draining.set(self.draining.get() - 1);
        self.answered.notify();
    }

    pub fn core_quiet(&self) {
        self.unquiet.set(self.unquiet.get() - 1);
        self.answered.notify();
    }

    pub fn core_adopted(&self, generation: Generation) {
        assert_eq!(generation, self.generation.get(), "one change at a time");
        self.core_started();
    }

    /// Takes a drive out that failed a request, unless it is out already. One that failed a `read`
    /// but is there stays in service if the others can't stand in for it: taken out it would give
    /// back nothing, and what it holds is as new as ever. Another drive may be on its way out, so
    /// that is asked again once it is this one's turn; until then its openings are not given up.
    pub async fn drive_failed(
        &self,
        (slot, incarnation): (Slot, u32),
        error: DriveError,
        read: bool,
    ) {
        self.errors.failed(slot, incarnation, error);
        let may_stay = read && error == DriveError::Fault;
        let needed = || may_stay && !self.can_spare(slot);
        if needed() {
            return;
        }
        let current = || {
            let seats = self.seats.borrow();
            let seat = &seats[slot.index()];
            seat.incarnation == incarnation && !seat.dropped
        };
        if current() && !may_stay {
            // Whoever holds the lock does not wait for this drive either.
            let drive = self.seats.borrow()[slot.index()].drive.as_ref().map(|d| d.1.clone());
            drive.inspect(|drive| drive.give_up(error));
        }
        self.lock.acquire(1).await;
        let failed = self.record.borrow().slots[slot.index()].state == SlotState::Failed;
        if current() && !failed && !needed() && !self.closed.get() {
            self.take_out(slot).await;
        }
        self.lock.release(1);
    }

    /// Whether nothing is lost with the drive: it is being filled, or the others hold all data.
    fn can_spare(&self, slot: Slot) -> bool {
        self.spares(&self.record.borrow(), slot)
    }

    /// Whether nothing is by a record that is about to be written.
    fn spares(&self, record: &ArrayRecord, slot: Slot) -> bool {
        let state = record.slots[slot.index()].state;
        matches!(state, SlotState::Rebuilding { .. }) || self.survives(record, SlotSet::one(slot))
    }

    /// Fails a drive: durably if the others hold all data, else only in the snapshot.
    pub async fn take_out(&self, slot: Slot) {
        if self.can_spare(slot) {
            self.take_out_all(SlotSet::one(slot)).await;
            return;
        }
        self.seats.borrow_mut()[slot.index()].dropped = true;
        self.news.set(true);
        self.publish(false).await;
        self.tasks.changed.notify();
    }

    /// Fails drives without which the others hold all data, durably and at once.
    pub async fn take_out_all(&self, slots: SlotSet) {
        let out = |r: &mut ArrayRecord| slots.iter().for_each(|slot| r.fail_slot(slot));
        if mutants::is(Mutant::StillInSync) {
            out(&mut self.record.borrow_mut());
        } else {
            // Without a drive to write to, the snapshot below says all there is to say.
            let _ = self.commit(!mutants::is(Mutant::CommitNoEpoch), out).await;
        }
        self.publish(false).await;
        self.tasks.changed.notify();
    }

    /// Records that a group may be written.
    pub async fn first_write(&self, group: GroupNo) {
        if self.record.borrow().groups[group.index()].unclean {
            return;
        }
        self.lock.acquire(1).await;
        let unclean = self.record.borrow().groups[group.index()].unclean;
        if !unclean && !self.closed.get() {
            let mark = |r: &mut ArrayRecord| r.groups[group.index()].unclean = true;
            // Without a drive left to write to, the snapshot says so, and the write fails.
            if mutants::is(Mutant::UncleanInMemory) {
                mark(&mut self.record.borrow_mut());
            } else {
                let _ = self.commit(false, mark).await;
            }
            self.publish(false).await;
        }
        self.lock.release(1);
    }

    /// Flushes a slot's drive; takes it out if that fails (D15). The lock is held.
    pub async fn flush_slot(&self, slot: Slot) -> bool {
        let seat = |s: &Seat<E>| s.drive.as_ref().filter(|_| !s.dropped).map(|d| d.1.clone());
        let drive = seat(&self.seats.borrow()[slot.index()]);
        let Some(drive) = drive else {
            return false;
        };
        let flushed = drive.flush().await;
        if let Err(error) = flushed {
            self.count_failure(slot, error);
            self.take_out(slot).await;
        }
        flushed.is_ok()
    }

    /// Counts a failed request of the manager's own.
    fn count_failure(&self, slot: Slot, error: DriveError) {
        let incarnation = self.seats.borrow()[slot.index()].incarnation;
        self.errors.failed(slot, incarnation, error);
    }
}

/// Refuses a record that breaks a rule of the format, whichever drive's copy it is.
fn check(record: &ArrayRecord) -> Result<(), ManageError> {
    record.for_slot(record.this_slot).check().map_err(ManageError::Impossible)
}

/// The manager runs where its arrays' mail goes.
const _: () = assert!(MANAGER.0 == 0);

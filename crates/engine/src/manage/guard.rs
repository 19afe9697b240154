//! When the journal counts: its key, and the guard of a group that lacks a drive
//! ([`crate::journal`]).
//!
//! | the record says  | becomes        | by                                                      |
//! |------------------|----------------|---------------------------------------------------------|
//! | no key           | key            | the commit in which a drive is out ([`Managed::commit`])|
//! | key              | key, guarded   | the keeper below; a start from which nothing is owed    |
//! | key, guarded     | another key    | the commit in which a drive is in sync again while      |
//! |                  |                | another is not, or in which one is back to be filled    |
//! | either           | no key         | the commit in which all drives are in sync              |
//!
//! The keeper waits until the group lacks a drive and is not guarded. Then it has every operation
//! end that began before, flushes the drives, and records the guard.
//!
//! Invariants
//! - A write that is planned under a snapshot with a key is logged under it. So after a drain that
//!   began with such a snapshot nothing is under way that is not in the journal.
//! - A group that owes a resync, or has a dropped drive, is not guarded by the keeper.

use crate::Host;
use crate::journal::{GROUP, Shape};
use crate::manage::managed::Managed;
use crate::mutants::{self, Mutant};
use core::cell::Cell;
use format::{ArrayRecord, SlotState};
use io::Priority;
use io::local::Event;
use layout::Layout;
use std::rc::Rc;

/// The keeper's state.
pub(super) struct Guard {
    /// Where the journal area begins, and its bytes, if the array can use it.
    pub area: Option<(u64, u64)>,
    /// The array was published anew.
    pub changed: Event,
    running: Cell<bool>,
    ending: Cell<bool>,
}

impl Guard {
    pub fn new(record: &ArrayRecord, layout: &Layout, cores: u16) -> Self {
        let usable = |areas: &format::Areas| {
            Shape::new(layout, areas.journal_bytes, cores, record.block_bytes).is_some()
        };
        let area = record.areas.filter(usable).map(|a| (a.journal_start, a.journal_bytes));
        let (running, ending) = (Cell::new(false), Cell::new(false));
        Self { area, changed: Event::default(), running, ending }
    }
}

/// Starts the keeper of an array that can use its journal.
pub(super) fn start<E: Host>(managed: Rc<Managed<E>>) {
    if managed.guard.area.is_some() {
        managed.guard.running.set(true);
        managed.clone().env().spawn(Priority::First, keep(managed));
    }
}

/// Ends the keeper.
pub(super) async fn end<E: Host>(managed: &Managed<E>) {
    let guard = &managed.guard;
    guard.ending.set(true);
    guard.changed.notify();
    guard.changed.wait_until(|| (!guard.running.get()).then_some(())).await;
}

async fn keep<E: Host>(managed: Rc<Managed<E>>) {
    let guard = &managed.guard;
    loop {
        let due = || (guard.ending.get() || managed.unguarded()).then_some(());
        guard.changed.wait_until(due).await;
        if guard.ending.get() {
            break;
        }
        managed.secure().await;
    }
    guard.running.set(false);
    guard.changed.notify();
}

impl<E: Host> Managed<E> {
    /// Whether the group lacks a drive and may become guarded.
    fn unguarded(&self) -> bool {
        let record = self.record();
        let dropped = self.seats.borrow().iter().any(|seat| seat.dropped);
        record.journal_key != 0
            && !record.groups[GROUP.index()].guarded
            && !dropped
            && !self.stopped()
            && !self.owes_regions(GROUP)
    }

    /// Has everything end that is not in the journal, and records that.
    async fn secure(&self) {
        self.volume_lock.acquire(1).await;
        self.lock.acquire(1).await;
        if !self.unguarded() {
            self.lock.release(1);
            self.volume_lock.release(1);
            return;
        }
        let key = self.record().journal_key;
        self.publish(true).await;
        self.lock.release(1);
        if mutants::is(Mutant::GuardEarly) {
            self.lock.acquire(1).await;
            let guarded = |r: &mut ArrayRecord| r.groups[GROUP.index()].guarded = true;
            let _ = self.commit(false, guarded).await;
            self.publish(false).await;
            self.lock.release(1);
        }
        self.drained().await;
        self.lock.acquire(1).await;
        let same = || self.record().journal_key == key && self.unguarded();
        if same() && self.flush_group(GROUP).await && same() {
            let guarded = |r: &mut ArrayRecord| r.groups[GROUP.index()].guarded = true;
            // A record that no drive takes any more is met again by whatever is recorded next.
            let _ = self.commit(false, guarded).await;
            self.publish(false).await;
        }
        self.lock.release(1);
        self.volume_lock.release(1);
    }

    /// Keeps the journal's key in step with who lacks, in a record that is about to be written.
    pub(super) fn keep_journal(&self, record: &mut ArrayRecord) {
        let in_sync = |i: usize, r: &ArrayRecord| r.slots[i].state == SlotState::InSync;
        let all = 0..record.slots.len();
        let lacks = all.clone().any(|i| !in_sync(i, record));
        if !lacks {
            record.journal_key = 0;
            record.groups.iter_mut().for_each(|group| group.guarded = false);
        } else if self.guard.area.is_some() {
            let now = self.record();
            let joined = all.clone().any(|i| in_sync(i, record) && !in_sync(i, &now));
            // What was logged for a drive before it was out must not come over what fills it.
            let failed = |i: usize, r: &ArrayRecord| r.slots[i].state == SlotState::Failed;
            let back = all.clone().any(|i| !failed(i, record) && failed(i, &now));
            if record.journal_key == 0 || joined || back {
                let old = mutants::is(Mutant::JournalKeyKept);
                record.journal_key = if old { 1 } else { self.env().random().max(1) };
                record.groups[GROUP.index()].guarded &= !joined && !back;
            }
        }
    }
}

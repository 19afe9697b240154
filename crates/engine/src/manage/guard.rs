//! When the journal area counts: its key, and the guard of a group ([`crate::journal`]).
//!
//! | the group | the record says | becomes                | by                                    |
//! |-----------|-----------------|------------------------|---------------------------------------|
//! | whole     | key             | guarded                | the keeper below, once no resync is   |
//! |           |                 |                        | owed; a start from which nothing is   |
//! | whole     | key, guarded    | lacking, the same key, | the commit in which a drive is out    |
//! |           |                 | guarded *by flight*    | ([`Managed::commit`])                 |
//! | whole     | key             | lacking, another key   | the same                              |
//! | lacking   | guarded by      | another key, guarded   | the keeper                            |
//! |           | flight, or not  |                        |                                       |
//! | any       | *as found*      | another key            | the record of the start, once what the|
//! |           |                 |                        | area says was carried out             |
//! | lacking   | any key         | another key, guarded   | the commit in which a drive is in sync|
//! |           |                 |                        | or back to be filled: what was logged |
//! |           |                 |                        | for it must not come over what fills  |
//!
//! Under a key that was made while the group was whole there are in-flight pages, under others
//! batches. *By flight*: what was under way when the first drive was lost is in in-flight pages.
//!
//! *As found*: until the record of a start is written, each record that a start writes has key and
//! guard as the array left them, also where pages of the region map are lost: else a start that is
//! cut short, and this one itself, would take the group's redundancy for right without having
//! looked at what was under way.
//!
//! The keeper waits until the group is not guarded, or only by flight. Then it has every change of
//! a stripe end that began before, flushes the drives, and records the guard. In a group that
//! lacks a drive meanwhile no change begins, and nothing is acknowledged that the failure hangs on
//! ([`crate::array`], *hold*). Before a drive is back, or in sync again, the same is done, and the
//! record that says so says guarded, too, unless a resync is owed; a drive that does not take that
//! flush is out first, and where the array can't do without it nobody joins. So whatever is
//! acknowledged is in the journal, or in place and nothing else is. The hold takes as long as what
//! is under way, a flush and a record, each of which ends by the drives' deadline.
//!
//! Invariants
//! - A group that has a journal and lacks a drive is held or guarded.
//! - Nobody holds the configuration lock while changes end: they may wait for a failure's record.
//!   Nor do they wait for anything that is held.
//! - A change that is planned under a snapshot with a key is in a batch or page under it. So once
//!   all that began before such a snapshot is over, nothing is under way that is in neither.
//! - A group that owes a resync, or has a dropped drive, is not guarded by the keeper.

use crate::Host;
use crate::journal::{GROUP, has_journal};
use crate::manage::command::ManageError;
use crate::manage::managed::Managed;
use crate::mutants::{self, Mutant};
use core::cell::Cell;
use format::{ArrayRecord, SlotState};
use io::Priority;
use io::local::{Event, Semaphore};
use layout::Layout;
use std::rc::Rc;

/// The keeper's state.
pub(super) struct Guard {
    /// Where the journal area begins, and its bytes, if the array has a journal.
    pub area: Option<(u64, u64)>,
    /// The area is as the array left it when it ended, and so are key and guard.
    as_found: Cell<bool>,
    /// The array was published anew.
    pub changed: Event,
    /// Whoever has changes held and waits for their end.
    turn: Semaphore,
    /// A drive is about to be in sync: changes are held.
    joining: Cell<bool>,
    /// The newest key that was made while the group was whole.
    whole_key: Cell<u64>,
    /// Nothing is under way or in a cache: the next key may be guarded from the first.
    ready: Cell<bool>,
    running: Cell<bool>,
    ending: Cell<bool>,
}

impl Guard {
    /// The state for the record that an array is made with, or was found with.
    pub fn new(record: &ArrayRecord, layout: &Layout, found: bool) -> Self {
        let place = (record.areas.journal_start, record.areas.journal_bytes);
        Self {
            area: has_journal(layout).then_some(place),
            as_found: Cell::new(found),
            changed: Event::default(),
            turn: Semaphore::new(1),
            joining: Cell::default(),
            whole_key: Cell::default(),
            ready: Cell::default(),
            running: Cell::default(),
            ending: Cell::default(),
        }
    }

    /// What the area said was carried out: the next record is that of the start.
    pub fn carried_out(&self) {
        self.as_found.set(false);
    }
}

/// Starts the keeper of an array that has a journal.
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
    /// Whether the group may become guarded, and is not, or only by what was in flight when it lost
    /// its first drive.
    fn unguarded(&self) -> bool {
        let record = self.record();
        let dropped = self.seats.borrow().iter().any(|seat| seat.dropped);
        record.journal_key != 0
            && self.guard.area.is_some()
            && (!record.groups[GROUP.index()].guarded || self.by_flight(&record))
            && !dropped
            && !self.owes_regions(GROUP)
    }

    /// Whether the key is from when no drive lacked, and one does now.
    fn by_flight(&self, record: &ArrayRecord) -> bool {
        !whole(record) && record.journal_key == self.guard.whole_key.get()
    }

    /// The keys of batches and of in-flight pages as cores are to use them; 0: not at all.
    pub(super) fn keys(&self) -> (u64, u64) {
        let record = self.record();
        let dropped = self.seats.borrow().iter().any(|seat| seat.dropped);
        match self.guard.area {
            Some(_) if whole(&record) && !dropped => (0, record.journal_key),
            Some(_) if !whole(&record) && !self.by_flight(&record) => (record.journal_key, 0),
            _ => (0, 0),
        }
    }

    /// Whether no change of a parity stripe begins for now.
    pub(super) fn holds(&self) -> bool {
        let lacks = !whole(&self.record());
        self.guard.area.is_some() && (self.guard.joining.get() || lacks && self.unguarded())
    }

    /// Has everything end that is not in the journal, and records that.
    async fn secure(&self) {
        self.guard.turn.acquire(1).await;
        self.lock.acquire(1).await;
        if self.unguarded() {
            let key = self.record().journal_key;
            self.publish_asking(false, true).await;
            self.lock.release(1);
            if mutants::is(Mutant::GuardEarly) {
                self.lock.acquire(1).await;
                self.record_guard().await;
                self.lock.release(1);
            }
            self.quiet().await;
            self.lock.acquire(1).await;
            let same = || self.record().journal_key == key && self.unguarded();
            if same() && self.flush_group(GROUP).await && same() {
                self.record_guard().await;
            }
        }
        self.lock.release(1);
        self.guard.turn.release(1);
    }

    async fn record_guard(&self) {
        let guarded = |r: &mut ArrayRecord| {
            r.groups[GROUP.index()].guarded = true;
            if self.by_flight(r) {
                // Batches are told from in-flight pages by their keys.
                r.journal_key = 0;
            }
        };
        // A record that no drive takes any more is met again by whatever is recorded next.
        let _ = self.commit(false, guarded).await;
        self.publish(false).await;
    }

    /// Waits until the group is guarded by more than what was in flight, or has no journal: a
    /// rebuild's border does not move over stripes that a start might have to decide about.
    pub(super) async fn past_hold(&self) {
        self.guard.changed.wait_until(|| (!self.holds()).then_some(())).await;
    }

    /// Holds changes back until those under way are over. The configuration lock is held on return.
    pub(super) async fn hold_changes(&self) {
        self.guard.turn.acquire(1).await;
        self.lock.acquire(1).await;
        if self.stopped() {
            return;
        }
        self.guard.joining.set(self.guard.area.is_some());
        self.publish_asking(false, true).await;
        self.lock.release(1);
        self.quiet().await;
        self.lock.acquire(1).await;
    }

    /// Flushes what the journal may stand for; whether all drives did that are not out by then. One
    /// that fails that is out, and that is recorded; then the others are asked again. Only a drive
    /// that the array can't do without, and which is dropped, ends it. The lock is held.
    pub(super) async fn flush_held(&self) -> bool {
        if self.guard.area.is_none() {
            return true;
        }
        // Each time that one fails there is a drive less.
        let drives = self.record().slots.len();
        for _ in 0..drives {
            if self.flush_group(GROUP).await {
                return true;
            }
        }
        false
    }

    /// Records a change by which a drive is in sync, or back; changes are held, and the lock, and
    /// what the journal stands for was flushed ([`Managed::flush_held`]).
    pub(super) async fn record_join(
        &self,
        change: impl FnOnce(&mut ArrayRecord),
    ) -> Result<(), ManageError> {
        let ready = self.guard.area.is_some() && !self.owes_regions(GROUP);
        self.guard.ready.set(ready);
        let guarded = |r: &mut ArrayRecord| {
            change(r);
            let skip = mutants::is(Mutant::JoinUnguarded);
            r.groups[GROUP.index()].guarded = self.guard.ready.get() && !skip;
        };
        let recorded = self.commit(true, guarded).await;
        self.guard.ready.set(false);
        recorded
    }

    /// Ends a hold, and gives the lock back.
    pub(super) async fn let_changes_go(&self) {
        self.guard.joining.set(false);
        if !self.closed() {
            // An array that was stopped meanwhile, too: what is held keeps its end waiting.
            self.publish(false).await;
        }
        self.lock.release(1);
        self.guard.turn.release(1);
    }

    /// Keeps the journal's key in step with who lacks, in a record that is about to be written.
    pub(super) fn keep_journal(&self, record: &mut ArrayRecord) {
        if self.guard.as_found.get() || self.guard.area.is_none() {
            return;
        }
        let is_whole = whole(record);
        let in_sync = |i: usize, r: &ArrayRecord| r.slots[i].state == SlotState::InSync;
        let failed = |i: usize, r: &ArrayRecord| r.slots[i].state == SlotState::Failed;
        let now = self.record();
        let joins = |i: usize| in_sync(i, record) && !in_sync(i, &now);
        let back = |i: usize| failed(i, &now) && !failed(i, record);
        let joined = (0..record.slots.len()).any(|i| joins(i) || back(i));
        drop(now);
        let first = whole(&self.record()) && !is_whole;
        let group = &mut record.groups[GROUP.index()];
        group.guarded &= !joined || self.guard.ready.get();
        group.guarded &= !(first && mutants::is(Mutant::FailureUnguarded));
        if record.journal_key == 0 || joined || first && !group.guarded {
            let old = mutants::is(Mutant::JournalKeyKept);
            record.journal_key = if old { 1 } else { self.env().random().max(1) };
            if is_whole {
                self.guard.whole_key.set(record.journal_key);
            }
        }
        let owes = self.keeper().map.borrow().owes(GROUP);
        let there = self.seats.borrow().iter().all(|seat| seat.drive.is_some());
        group.guarded &= !(is_whole && owes && there);
    }
}

/// Whether no slot lacks.
fn whole(record: &ArrayRecord) -> bool {
    record.slots.iter().all(|slot| slot.state == SlotState::InSync)
}

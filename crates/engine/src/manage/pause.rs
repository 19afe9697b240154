//! People who tell tasks to wait, to go on, or to end.
//!
//! What waits is recorded, so that it still does after a restart. A kind of task waits as a whole:
//! a rebuild of another slot of the array waits with the one that was meant.
//!
//! | what   | rebuild                        | resync                     | scrub               |
//! |--------|--------------------------------|----------------------------|---------------------|
//! | pause  | at its last border             | at its last border, region | where it is         |
//! | resume | from there                     | from there                 | from there          |
//! | cancel | the drive is out, as if it had | refused: until it is over  | ends, finds nothing |
//! |        | failed; of one, or of all      | no redundancy can be used  |                     |
//!
//! Invariants
//! - A task of a kind that waits, durably, has ended or stopped before: none of its jobs is under
//!   way when the answer goes out.
//! - A kind waits only while there is such a task: the next one starts by itself.

use crate::Host;
use crate::manage::command::{ArrayStatus, ManageError, TaskAction, TaskEnd, TaskKind};
use crate::manage::managed::Managed;
use crate::manage::numbers::{What, Which};
use crate::manage::tasks::owed;
use format::{ArrayRecord, Paused, SlotState};
use std::rc::Rc;
use units::Slot;

/// The same with a kind of task waiting, or not.
pub(super) const fn with(hold: Paused, kind: TaskKind, waits: bool) -> Paused {
    match kind {
        TaskKind::Rebuild => Paused { rebuild: waits, ..hold },
        TaskKind::Resync => Paused { resync: waits, ..hold },
        TaskKind::Scrub => Paused { scrub: waits, ..hold },
    }
}

/// Whether a kind of task waits.
pub(super) const fn waits(hold: Paused, kind: TaskKind) -> bool {
    match kind {
        TaskKind::Rebuild => hold.rebuild,
        TaskKind::Resync => hold.resync,
        TaskKind::Scrub => hold.scrub,
    }
}

impl<E: Host> Managed<E> {
    /// Has a kind of task wait or go on; or ends all of them, or one.
    pub async fn act_on_task(
        self: Rc<Self>,
        which: Which,
        action: TaskAction,
    ) -> Result<ArrayStatus, ManageError> {
        self.tasks.acting.acquire(1).await;
        let before = self.tasks.hold.get();
        let done = self.act(which, action).await;
        if done.is_err() {
            self.tasks.hold.set(before);
        }
        self.tasks.acting.release(1);
        self.tasks.changed.notify();
        done.map(|()| self.status())
    }

    async fn act(self: &Rc<Self>, which: Which, action: TaskAction) -> Result<(), ManageError> {
        let (kind, before) = (which.kind, self.tasks.hold.get());
        if !self.has(which) {
            return Err(ManageError::NoTask(kind));
        }
        match action {
            TaskAction::Resume => {
                let hold = with(self.tasks.hold.get(), kind, false);
                self.record_tasks(|record| record.paused = hold).await?;
                self.tasks.hold.set(hold);
                Ok(())
            }
            TaskAction::Pause => {
                self.halt(which).await?;
                self.record_scrub(Some(self.tasks.hold.get())).await
            }
            TaskAction::Cancel if kind == TaskKind::Resync => Err(ManageError::NeededResync),
            TaskAction::Cancel => {
                self.halt(which).await?;
                self.cancel(which, before).await
            }
        }
    }

    fn has(&self, which: Which) -> bool {
        let numbers = &self.tasks.numbers;
        let is_there = which.number.is_none_or(|number| numbers.unended().contains(&number));
        is_there && self.has_task(which.kind)
    }

    fn has_task(&self, kind: TaskKind) -> bool {
        match kind {
            TaskKind::Scrub => self.tasks.scrub.get().is_some(),
            kind => owed(self).iter().any(|what| what.kind() == kind),
        }
    }

    /// Has a kind of task wait, in memory, and returns when none of its jobs is under way.
    async fn halt(&self, which: Which) -> Result<(), ManageError> {
        let (tasks, kind) = (&self.tasks, which.kind);
        tasks.hold.set(with(tasks.hold.get(), kind, true));
        tasks.changed.notify();
        let halted = || (tasks.doing.get() != Some(kind)).then_some(());
        tasks.changed.wait_until(halted).await;
        // It may have come to its end instead.
        if self.has(which) { Ok(()) } else { Err(ManageError::NoTask(kind)) }
    }

    async fn cancel(&self, which: Which, before: Paused) -> Result<(), ManageError> {
        let Which { kind, number } = which;
        let mut hold = with(before, kind, false);
        if kind == TaskKind::Scrub {
            let none = |record: &mut ArrayRecord| (record.paused, record.scrub) = (hold, None);
            self.record_tasks(none).await?;
            self.tasks.scrub.set(None);
            self.tasks.numbers.end(|what| (what == What::Scrub).then_some(TaskEnd::Cancelled));
        } else {
            if number.is_some() {
                // The others wait, or go on, as before.
                hold = before;
            }
            let numbers = &self.tasks.numbers;
            numbers.cancel(which);
            self.lock.acquire(1).await;
            let rebuilding = |slot: &Slot| {
                let state = self.record().slots[slot.index()].state;
                let what = What::Rebuild(*slot, self.seats.borrow()[slot.index()].incarnation);
                let is_meant = number.is_none_or(|number| number == numbers.of(what));
                matches!(state, SlotState::Rebuilding { .. }) && is_meant
            };
            let slots = (0..self.record().slots.len()).map(|i| Slot(i as u16));
            for slot in slots.filter(rebuilding).collect::<Vec<_>>() {
                if !self.stopped() {
                    self.take_out(slot).await;
                }
            }
            self.lock.release(1);
            self.record_tasks(|record| record.paused = hold).await?;
        }
        self.tasks.hold.set(hold);
        Ok(())
    }

    /// Records how tasks stand.
    pub(super) async fn record_tasks(
        &self,
        change: impl FnOnce(&mut ArrayRecord),
    ) -> Result<(), ManageError> {
        self.lock.acquire(1).await;
        let mut result = Err(ManageError::NoArray(self.record().name.clone()));
        if !self.stopped() {
            result = self.commit(false, change).await;
            // The commit may have met a drive that failed.
            self.publish(false).await;
        }
        self.lock.release(1);
        result
    }

    /// Forgets that a kind of task waits of which there is none any more.
    pub(super) async fn forget_pauses(&self) {
        let hold = self.tasks.hold.get();
        let mut still = hold;
        for kind in [TaskKind::Rebuild, TaskKind::Resync, TaskKind::Scrub] {
            still = with(still, kind, waits(hold, kind) && self.has_task(kind));
        }
        if still != hold {
            // Of a person who acts at this time both know: what there is not can't be paused.
            self.tasks.hold.set(still);
            let _ = self.record_tasks(|record| record.paused = still).await;
        }
    }
}

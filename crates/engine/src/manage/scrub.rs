//! Scrub: goes over all redundancy and compares it with the data.
//!
//! A scrub is in the array's record from its request to its end: what it writes, where it goes on,
//! what it found before. It is recorded when it begins, now and then on its way, when it is paused,
//! and at a clean stop; whatever cuts it short, it goes on where it was last recorded.
//!
//! | a scrub  | becomes  | when                                                              |
//! |----------|----------|-------------------------------------------------------------------|
//! | asked    | runs     | nothing is owed that can be done                                  |
//! | runs     | asked    | something is owed that can be done: that comes first              |
//! | any      | paused   | a person says so                                                  |
//! | paused   | asked    | a person says so                                                  |
//! | runs     | over     | everything was gone over: its findings are recorded               |
//! | any      | over     | a person cancels it: no findings                                  |
//!
//! Invariant: what is recorded as repaired was flushed before.

use crate::Host;
use crate::array::message::{Job, Repair};
use crate::limits::BORDERS_MIN;
use crate::manage::command::{ArrayStatus, ManageError, TaskEnd, TaskKind, TaskStatus};
use crate::manage::managed::Managed;
use crate::manage::numbers::What;
use crate::manage::tasks::{Sum, Visit, due, window, windows};
use format::{ArrayRecord, LastScrub, Paused, ScrubMode, ScrubRecord};
use std::rc::Rc;
use units::GroupNo;

const fn mode(repair: Repair) -> ScrubMode {
    match repair {
        Repair::Nothing => ScrubMode::Check,
        Repair::Known => ScrubMode::Repair,
        Repair::TrustData | Repair::Resync => ScrubMode::TrustData,
    }
}

const fn repair(mode: ScrubMode) -> Repair {
    match mode {
        ScrubMode::Check => Repair::Nothing,
        ScrubMode::Repair => Repair::Known,
        ScrubMode::TrustData => Repair::TrustData,
    }
}

impl<E: Host> Managed<E> {
    /// Asks for a scrub.
    pub async fn start_scrub(self: Rc<Self>, repair: Repair) -> Result<ArrayStatus, ManageError> {
        self.tasks.acting.acquire(1).await;
        let started = self.ask_for_scrub(repair).await;
        self.tasks.acting.release(1);
        self.tasks.changed.notify();
        started.map(|()| self.status())
    }

    async fn ask_for_scrub(&self, repair: Repair) -> Result<(), ManageError> {
        if let Some(task) = self.shown_task() {
            return Err(ManageError::Busy(task.kind));
        }
        if self.tasks.scrub.get().is_some() {
            return Err(ManageError::Busy(TaskKind::Scrub));
        }
        if !self.tasks.runs() {
            return Err(ManageError::NoRedundancy);
        }
        let asked = ScrubRecord {
            mode: mode(repair),
            group: 0,
            stripe: 0,
            checked_bytes: 0,
            mismatches: 0,
            repaired: 0,
            unlocated: 0,
            unreadable: 0,
        };
        self.record_tasks(|record| record.scrub = Some(asked)).await?;
        self.tasks.scrub.set(Some(asked));
        self.tasks.uncompared.set(Some(0));
        Ok(())
    }

    /// How far a scrub is, in stripes of all groups, and of how many.
    fn scrubbed(&self, at: &ScrubRecord) -> (u64, u64) {
        let stripes = |groups: core::ops::Range<u16>| -> u64 {
            groups.map(|group| self.layout().stripes(GroupNo(group))).sum()
        };
        (stripes(0..at.group) + at.stripe, stripes(0..self.layout().groups()))
    }

    /// The scrub that waits, for people.
    pub(super) fn waiting_scrub(&self) -> Option<TaskStatus> {
        let at = self.tasks.scrub.get()?;
        let (done, total) = self.scrubbed(&at);
        let paused = self.tasks.hold.get().scrub;
        Some(TaskStatus { paused, ..self.task(What::Scrub, done, total) })
    }

    /// Records where the scrub goes on, after what it wrote was flushed; with `paused` also what
    /// waits.
    pub(super) async fn record_scrub(&self, paused: Option<Paused>) -> Result<(), ManageError> {
        self.lock.acquire(1).await;
        let mut result = Err(ManageError::NoArray(self.record().name.clone()));
        if !self.stopped() {
            let (now, before) = (self.tasks.scrub.get(), self.record().scrub);
            let repaired = |scrub: Option<ScrubRecord>| scrub.map_or(0, |at| at.repaired);
            let flushed = repaired(now) == repaired(before) || self.flush_groups().await;
            let scrub = if flushed { now } else { before };
            let recorded = |record: &mut ArrayRecord| {
                (record.paused, record.scrub) = (paused.unwrap_or(record.paused), scrub);
            };
            result = self.commit(false, recorded).await;
            // The commit may have met a drive that failed.
            self.publish(false).await;
        }
        self.lock.release(1);
        result
    }

    async fn flush_groups(&self) -> bool {
        let mut flushed = true;
        for group in (0..self.layout().groups()).map(GroupNo) {
            flushed &= self.flush_group(group).await;
        }
        flushed
    }
}

/// Goes on with the scrub until it is over, or something comes first.
pub(super) async fn scrub<E: Host>(managed: &Rc<Managed<E>>) {
    let (tasks, layout) = (&managed.tasks, managed.layout().clone());
    let Some(mut at) = tasks.scrub.get() else { return };
    let how = repair(at.mode);
    loop {
        let group = GroupNo(at.group);
        let data = u64::from(layout.k(group)) * u64::from(layout.strip_bytes());
        for stripes in windows(managed, group, at.stripe) {
            let (done, total) = managed.scrubbed(&ScrubRecord { stripe: stripes.start, ..at });
            managed.progress(What::Scrub, done, total);
            let visit = Visit { thorough: true, since: 0, before: done };
            let (sum, next) = window(managed, group, stripes, visit, move || Job::Check(how)).await;
            managed.blame(&sum.wrong);
            at.stripe = next;
            found(&mut at, &sum, data);
            tasks.uncompared.set(tasks.uncompared.get().map(|had| had + sum.uncompared * data));
            tasks.scrub.set(Some(at));
            if sum.stopped || tasks.cut() {
                return;
            }
            let steps = |done: u64| done * BORDERS_MIN / total.max(1);
            let (now, _) = managed.scrubbed(&at);
            if steps(now) > steps(done) && now < total {
                // A record that can't be written is met again by whatever is recorded next.
                let _ = managed.record_scrub(None).await;
            }
            if due(managed).is_some() {
                return;
            }
        }
        if at.group + 1 == layout.groups() {
            break;
        }
        (at.group, at.stripe) = (at.group + 1, 0);
    }
    end(managed, at).await;
    tasks.scrub.set(None);
    tasks.numbers.end(|what| (what == What::Scrub).then_some(TaskEnd::Completed));
    tasks.left_uncompared.set(tasks.uncompared.get());
}

/// Adds what a window came to, of stripes with so many bytes of data. The counts before it come
/// from a record, where anything may stand.
fn found(at: &mut ScrubRecord, sum: &Sum, data: u64) {
    let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
    add(&mut at.checked_bytes, sum.compared * data);
    add(&mut at.mismatches, sum.mismatches);
    add(&mut at.unlocated, sum.unlocated);
    add(&mut at.unreadable, sum.unreadable);
    add(&mut at.repaired, sum.repaired);
}

/// Records what a scrub found.
async fn end<E: Host>(managed: &Rc<Managed<E>>, at: ScrubRecord) {
    managed.lock.acquire(1).await;
    // What is said to be repaired is durable. A drive that can't promise it is taken out.
    let flushed = at.repaired == 0 || managed.flush_groups().await;
    let scrub = LastScrub {
        checked_bytes: at.checked_bytes,
        mismatches: at.mismatches,
        repaired: if flushed { at.repaired } else { 0 },
        unlocated: at.unlocated,
        unreadable: at.unreadable,
        unix_seconds: managed.env().wall_seconds(),
    };
    let ended = |record: &mut ArrayRecord| {
        (record.last_scrub, record.scrub, record.paused.scrub) = (Some(scrub), None, false);
    };
    // A record that can't be written is met again by whatever is recorded next.
    let _ = managed.commit(false, ended).await;
    // The commit may have met a drive that failed.
    managed.publish(false).await;
    managed.lock.release(1);
}

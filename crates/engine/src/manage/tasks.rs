//! Resync, rebuild and scrub: one keeper per array that does what is owed, one task at a time.
//!
//! | owed                                 | task    | ends with                              |
//! |--------------------------------------|---------|----------------------------------------|
//! | a group's resync border is not at end | resync  | border at end, recorded                |
//! | a slot is rebuilding                 | rebuild | slot in sync, recorded                 |
//! | a scrub was asked for                | scrub   | its findings, recorded                 |
//!
//! A task goes over the stripes of a group in windows of [`BORDER_BANDS`] bands. Each stripe is a
//! job of its home core, so the task runs beside host I/O and never sees a stripe half written.
//!
//! Invariants
//! - A border moves only over a finished window, after a flush of the drives that were written,
//!   and is durable in the record before it is published (D17).
//! - A task that can't go on (a drive failed, blocks can't be recovered) stops where its border
//!   is; the keeper tries again when the configuration changes.

use crate::Host;
use crate::array::Array;
use crate::array::message::{Checked, Job, Outcome};
use crate::limits::{BORDER_BANDS, BORDERS_MIN, TASK_BANDS, TASK_STRIPES};
use crate::manage::command::{ArrayStatus, ManageError, TaskKind, TaskStatus};
use crate::manage::managed::Managed;
use crate::stripe::table::StripeKey;
use core::cell::Cell;
use core::ops::Range;
use format::{LastScrub, SlotState};
use io::local::Event;
use io::{BlockError, Priority};
use std::rc::Rc;
use units::{GroupNo, Slot, StripeNo};

/// What runs, what was asked for, and who waits.
#[derive(Default)]
pub(super) struct Tasks {
    shown: Cell<Option<TaskStatus>>,
    scrub: Cell<Option<bool>>,
    ending: Cell<bool>,
    ended: Cell<bool>,
    running: Cell<bool>,
    /// Something changed that a keeper, or who waits for it, may want to look at.
    pub changed: Event,
}

impl Tasks {
    /// Shows a task to people, or none.
    pub fn show(&self, task: Option<TaskStatus>) {
        self.shown.set(task);
    }

    /// The task that runs.
    pub fn shown(&self) -> Option<TaskStatus> {
        self.shown.get()
    }
}

/// What is owed.
enum Owed {
    Resync(GroupNo, u64),
    Rebuild(Slot, GroupNo, u64),
    Scrub(bool),
}

/// What a window of stripes came to.
#[derive(Clone, Copy, Default)]
struct Sum {
    stuck: bool,
    compared: u64,
    mismatches: u64,
    repaired: u64,
}

/// Starts the keeper of an array.
pub(super) fn start<E: Host>(managed: Rc<Managed<E>>) {
    if managed.layout().ranges().iter().all(|r| r.descriptor.m == 0) {
        managed.tasks.ended.set(true);
        return;
    }
    managed.tasks.running.set(true);
    managed.clone().env().spawn(Priority::First, keep(managed));
}

/// Ends the keeper; its task stops at its last border.
pub(super) async fn end<E: Host>(managed: &Rc<Managed<E>>) {
    let tasks = &managed.tasks;
    tasks.ending.set(true);
    tasks.changed.notify();
    let over = || (!tasks.running.get() || tasks.ended.get()).then_some(());
    tasks.changed.wait_until(over).await;
}

async fn keep<E: Host>(managed: Rc<Managed<E>>) {
    // The generation under which resync and rebuild could not go on.
    let mut stuck_at = None;
    while !managed.tasks.ending.get() {
        let now = managed.view().generation;
        let owed = if stuck_at == Some(now) { scrub_owed(&managed) } else { owed(&managed) };
        let Some(owed) = owed else {
            let tasks = &managed.tasks;
            let news = || {
                let asked = tasks.ending.get() || tasks.scrub.get().is_some();
                (asked || managed.view().generation != now).then_some(())
            };
            tasks.changed.wait_until(news).await;
            continue;
        };
        let finished = match owed {
            Owed::Resync(group, border) => resync(&managed, group, border).await,
            Owed::Rebuild(slot, group, border) => rebuild(&managed, slot, group, border).await,
            Owed::Scrub(repair) => scrub(&managed, repair).await,
        };
        managed.tasks.show(None);
        if !finished {
            // If something changed meanwhile, what was impossible may be possible now.
            stuck_at = Some(now);
        }
    }
    managed.tasks.ended.set(true);
    managed.tasks.changed.notify();
}

fn scrub_owed<E: Host>(managed: &Managed<E>) -> Option<Owed> {
    managed.tasks.scrub.take().map(Owed::Scrub)
}

fn owed<E: Host>(managed: &Managed<E>) -> Option<Owed> {
    let layout = managed.layout().clone();
    let record = managed.record();
    for group in (0..layout.groups()).map(GroupNo) {
        let border = record.groups[group.index()].resync_border;
        if layout.m(group) > 0 && border < layout.stripes(group) {
            return Some(Owed::Resync(group, border));
        }
    }
    for (i, slot) in record.slots.iter().enumerate() {
        if let SlotState::Rebuilding { border } = slot.state {
            let slot = Slot(i as u16);
            let group = layout.groups_of(slot).next().expect("a slot is in a group");
            return Some(Owed::Rebuild(slot, group, border));
        }
    }
    drop(record);
    scrub_owed(managed)
}

/// Runs one job per stripe of the window, several at a time.
async fn window<E: Host>(
    managed: &Rc<Managed<E>>,
    group: GroupNo,
    stripes: Range<u64>,
    job: impl Fn() -> Job + Copy + 'static,
) -> Sum {
    let Some(array) = managed.local() else {
        return Sum { stuck: true, ..Sum::default() };
    };
    let lanes = TASK_BANDS * TASK_STRIPES;
    let state = Rc::new(Window {
        next: Cell::new(stripes.start),
        end: stripes.end,
        lanes: Cell::new(lanes),
        sum: Cell::new(Sum::default()),
        over: Event::default(),
    });
    for _ in 0..lanes {
        let (managed, array, state) = (managed.clone(), array.clone(), state.clone());
        managed.clone().env().spawn(Priority::First, async move {
            lane(&managed, &array, group, job, &state).await;
            state.lanes.set(state.lanes.get() - 1);
            state.over.notify();
        });
    }
    state.over.wait_until(|| (state.lanes.get() == 0).then_some(())).await;
    state.sum.get()
}

struct Window {
    next: Cell<u64>,
    end: u64,
    lanes: Cell<usize>,
    sum: Cell<Sum>,
    over: Event,
}

async fn lane<E: Host>(
    managed: &Managed<E>,
    array: &Array<E>,
    group: GroupNo,
    job: impl Fn() -> Job,
    state: &Window,
) {
    loop {
        let stripe = state.next.get();
        let over = stripe >= state.end || state.sum.get().stuck;
        if over || managed.tasks.ending.get() {
            return;
        }
        state.next.set(stripe + 1);
        let Ok(_active) = array.begin() else {
            state.sum.set(Sum { stuck: true, ..state.sum.get() });
            return;
        };
        let key = StripeKey { group, stripe: StripeNo(stripe) };
        let outcome = array.request(key, job()).await;
        let mut sum = state.sum.get();
        sum.add(outcome);
        state.sum.set(sum);
    }
}

impl Sum {
    fn add(&mut self, outcome: Outcome) {
        let checked: Result<Checked, BlockError> = match outcome {
            Outcome::Done(result) => result.map(|()| Checked::default()),
            Outcome::Checked(result) => result,
            Outcome::Read(..) => unreachable!("tasks do not read"),
        };
        match checked {
            Ok(checked) => {
                self.compared += u64::from(checked.compared);
                self.mismatches += u64::from(checked.mismatch);
                self.repaired += u64::from(checked.repaired);
            }
            Err(_) => self.stuck = true,
        }
    }
}

/// The windows of a group from `border` on.
fn windows<E: Host>(managed: &Managed<E>, group: GroupNo, border: u64) -> Vec<Range<u64>> {
    let layout = managed.layout();
    let end = layout.stripes(group);
    let bands = end / layout.stripes_per_band();
    let step = BORDER_BANDS.min((bands / BORDERS_MIN).max(1)) * layout.stripes_per_band();
    let mut windows = Vec::new();
    let mut at = border;
    while at < end {
        let next = ((at / step + 1) * step).min(end);
        windows.push(at..next);
        at = next;
    }
    windows
}

impl<E: Host> Managed<E> {
    fn progress(&self, kind: TaskKind, done: u64, total: u64) {
        let strip = u64::from(self.layout().strip_bytes());
        let (done_bytes, total_bytes) = (done * strip, total * strip);
        self.tasks.show(Some(TaskStatus { kind, done_bytes, total_bytes }));
    }

    /// Asks for a scrub.
    pub async fn start_scrub(self: Rc<Self>, repair: bool) -> Result<ArrayStatus, ManageError> {
        if let Some(task) = self.tasks.shown() {
            return Err(ManageError::Busy(task.kind));
        }
        if !self.tasks.running.get() {
            return Err(ManageError::NoRedundancy);
        }
        self.tasks.scrub.set(Some(repair));
        self.progress(TaskKind::Scrub, 0, self.layout().stripes(GroupNo(0)));
        self.tasks.changed.notify();
        Ok(self.status())
    }
}

async fn resync<E: Host>(managed: &Rc<Managed<E>>, group: GroupNo, border: u64) -> bool {
    let total = managed.layout().stripes(group);
    for stripes in windows(managed, group, border) {
        managed.progress(TaskKind::Resync, stripes.start, total);
        let all = stripes.end - stripes.start;
        let sum = window(managed, group, stripes.clone(), || Job::Check { repair: true }).await;
        if sum.stuck || sum.compared < all || managed.tasks.ending.get() {
            return false;
        }
        managed.lock.acquire(1).await;
        let mut flushed = true;
        for slot in managed.layout().slots(group).collect::<Vec<_>>() {
            let counts = managed.record().slots[slot.index()].state != SlotState::Failed;
            flushed &= !counts || managed.flush_slot(slot).await;
        }
        let moved = |r: &mut format::ArrayRecord| {
            r.groups[group.index()].resync_border = stripes.end;
        };
        let mut done = flushed;
        if flushed {
            done = managed.commit(false, moved).await.is_ok();
            managed.publish(false).await;
        }
        managed.lock.release(1);
        if !done {
            return false;
        }
    }
    true
}

async fn rebuild<E: Host>(
    managed: &Rc<Managed<E>>,
    slot: Slot,
    group: GroupNo,
    border: u64,
) -> bool {
    let total = managed.layout().stripes(group);
    let incarnation = managed.seats.borrow()[slot.index()].incarnation;
    for stripes in windows(managed, group, border) {
        managed.progress(TaskKind::Rebuild, stripes.start, total);
        let sum = window(managed, group, stripes.clone(), move || Job::Rebuild(slot)).await;
        if sum.stuck || managed.tasks.ending.get() {
            return false;
        }
        managed.lock.acquire(1).await;
        let moved = advance(managed, slot, incarnation, stripes.end, total).await;
        managed.lock.release(1);
        if !moved {
            return false;
        }
    }
    true
}

/// Moves a rebuild's border over what was filled, durably.
async fn advance<E: Host>(
    managed: &Rc<Managed<E>>,
    slot: Slot,
    incarnation: u32,
    border: u64,
    total: u64,
) -> bool {
    let same = managed.seats.borrow()[slot.index()].incarnation == incarnation;
    let rebuilding =
        matches!(managed.record().slots[slot.index()].state, SlotState::Rebuilding { .. });
    if !same || !rebuilding || !managed.flush_slot(slot).await {
        return false;
    }
    let whole = border == total;
    let state = if whole { SlotState::InSync } else { SlotState::Rebuilding { border } };
    let recorded = managed.commit(whole, |r| r.slots[slot.index()].state = state).await.is_ok();
    managed.publish(false).await;
    recorded
}

async fn scrub<E: Host>(managed: &Rc<Managed<E>>, repair: bool) -> bool {
    let layout = managed.layout().clone();
    let mut found = Sum::default();
    let mut checked_bytes = 0;
    for group in (0..layout.groups()).map(GroupNo) {
        let total = layout.stripes(group);
        for stripes in windows(managed, group, 0) {
            managed.progress(TaskKind::Scrub, stripes.start, total);
            let sum = window(managed, group, stripes, move || Job::Check { repair }).await;
            if sum.stuck || managed.tasks.ending.get() {
                return false;
            }
            found.mismatches += sum.mismatches;
            found.repaired += sum.repaired;
            let data = u64::from(layout.k(group)) * u64::from(layout.strip_bytes());
            checked_bytes += sum.compared * data;
        }
    }
    let scrub = LastScrub {
        checked_bytes,
        mismatches: found.mismatches,
        repaired: found.repaired,
        unix_seconds: managed.env().wall_seconds(),
    };
    managed.lock.acquire(1).await;
    let done = managed.commit(false, |r| r.last_scrub = Some(scrub)).await.is_ok();
    // The commit may have met a drive that failed.
    managed.publish(false).await;
    managed.lock.release(1);
    done
}

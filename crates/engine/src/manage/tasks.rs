//! Resync, rebuild and scrub: one keeper per array that does what is owed, one task at a time.
//!
//! | owed                                 | task    | ends with                              |
//! |--------------------------------------|---------|----------------------------------------|
//! | regions of a group owe it            | resync  | regions that are clean, durably        |
//! | a slot is rebuilding                 | rebuild | slot in sync, recorded                 |
//! | a scrub was asked for                | scrub   | its findings, recorded                 |
//!
//! A task goes over the stripes of a group in windows of [`BORDER_BANDS`] bands. Each stripe is a
//! job of its home core, so the task runs beside host I/O and never sees a stripe half written.
//!
//! | state of a resync or rebuild | leaves by                                                     |
//! |------------------------------|---------------------------------------------------------------|
//! | owed                         | nothing before it is owed and not stuck → runs; → paused      |
//! | runs                         | last stripe right → over; a stripe that can't be → stuck;     |
//! |                              | → paused ([`super::pause`])                                   |
//! | stuck                        | the configuration changed, a scrub ended, or [`TASK_RETRY`]   |
//! |                              | passed → owed                                                 |
//!
//! Invariants
//! - A rebuild's border moves only over stripes that are right, after a flush of the drive that
//!   was written, and is durable in the record before it is published (D17). It stops at the first
//!   stripe that can't be made right, unless that is because of blocks that nobody can give: these
//!   are listed ([`crate::lost`]) before it moves on.
//! - A stuck task is shown with its reason and place, and keeps no other from running.
//! - A scrub ([`super::scrub`]) goes over everything; what it could not compare is not counted as
//!   checked, and stripes with blocks that no drive's reading gave count as mismatches. Where it
//!   can be known which drive is wrong it is counted as that drive's, where not as unlocated.

use crate::Host;
use crate::array::Array;
use crate::array::message::{Checked, Job, Outcome, Repair};
use crate::array::view::View;
use crate::limits::{BORDER_BANDS, BORDERS_MIN, DRIVES_MAX, TASK_BANDS, TASK_RETRY, TASK_STRIPES};
use crate::manage::command::{Hindrance, Stuck, TaskEnd, TaskKind, TaskStatus};
use crate::manage::managed::Managed;
use crate::manage::numbers::{Numbers, What};
use crate::manage::progress::Progress;
use crate::manage::{keeper, pause, scrub};
use crate::mutants::{self, Mutant};
use crate::stripe::table::StripeKey;
use core::cell::{Cell, RefCell};
use core::ops::Range;
use format::{ArrayRecord, Paused, ScrubRecord, SlotState};
use io::local::{Event, Semaphore, all_of, yield_now};
use io::{BlockError, Priority};
use std::rc::Rc;
use units::{Generation, GroupNo, Slot, StripeNo};

/// What runs, what was asked for, and who waits.
pub(super) struct Tasks {
    pub progress: Progress,
    pub numbers: Numbers,
    stuck: RefCell<Vec<StuckTask>>,
    /// The scrub that has not ended, wherever it is.
    pub scrub: Cell<Option<ScrubRecord>>,
    /// Written bytes that it could not compare; `None`: it was begun before the array started.
    pub uncompared: Cell<Option<u64>>,
    /// The same of the last finished scrub; `None`: it ended before the array started.
    pub left_uncompared: Cell<Option<u64>>,
    /// The kinds of task that wait for a person.
    pub hold: Cell<Paused>,
    /// What the keeper is at.
    pub doing: Cell<Option<TaskKind>>,
    /// One person at a time has tasks wait, go on, end or begin.
    pub acting: Semaphore,
    ending: Cell<bool>,
    ended: Cell<bool>,
    running: Cell<bool>,
    /// Whether somebody will have the keeper try stuck tasks again.
    retrying: Cell<bool>,
    /// Something changed that a keeper, or who waits for it, may want to look at.
    pub changed: Event,
}

/// A task that could not go on under a generation.
struct StuckTask {
    what: Owed,
    under: Generation,
    shown: TaskStatus,
}

impl Tasks {
    /// Those of an array that starts.
    pub fn new(record: &ArrayRecord, last: Rc<Cell<u64>>) -> Self {
        Self {
            progress: Progress::default(),
            numbers: Numbers::new(last),
            stuck: RefCell::default(),
            scrub: Cell::new(record.scrub),
            uncompared: Cell::new(None),
            left_uncompared: Cell::new(None),
            hold: Cell::new(match mutants::is(Mutant::PauseForgotten) {
                true => Paused::default(),
                false => record.paused,
            }),
            doing: Cell::new(None),
            acting: Semaphore::new(1),
            ending: Cell::new(false),
            ended: Cell::new(false),
            running: Cell::new(false),
            retrying: Cell::new(false),
            changed: Event::default(),
        }
    }

    /// Whether the array has tasks at all.
    pub fn runs(&self) -> bool {
        self.running.get()
    }

    /// Whether the array is about to stop: what takes long ends where it is.
    pub(super) fn ending(&self) -> bool {
        self.ending.get()
    }

    fn is_stuck(&self, what: Owed) -> bool {
        self.stuck.borrow().iter().any(|s| s.what == what)
    }

    /// Whether what runs shall stop where it is.
    pub fn cut(&self) -> bool {
        let held = self.doing.get().is_some_and(|kind| pause::waits(self.hold.get(), kind));
        self.ending.get() || held
    }
}

/// What is owed beside scrubs that were asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owed {
    Resync(GroupNo),
    Rebuild(Slot, GroupNo),
}

impl Owed {
    /// Which kind of task does it.
    pub fn kind(self) -> TaskKind {
        match self {
            Self::Resync(_) => TaskKind::Resync,
            Self::Rebuild(..) => TaskKind::Rebuild,
        }
    }
}

/// How a task ended.
enum End {
    /// All is done.
    Whole,
    /// It was told to end, or a change of configuration came in between.
    Cut,
    /// It can't go on, at this stripe.
    Stuck(u64, Hindrance),
    /// Its border can't be moved on from this stripe.
    Unmoved(u64),
}

/// Stripes by the slot whose strip was wrong.
#[derive(Clone, Copy)]
pub(super) struct Wrong([u64; DRIVES_MAX]);

impl Default for Wrong {
    fn default() -> Self {
        Self([0; DRIVES_MAX])
    }
}

/// What a window of stripes came to.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    /// The array stops.
    pub stopped: bool,
    /// The first stripe that is not right, and why.
    hindered: Option<(u64, Hindrance)>,
    pub compared: u64,
    /// Stripes that lacked a drive to compare with.
    pub uncompared: u64,
    pub mismatches: u64,
    pub unlocated: u64,
    pub unreadable: u64,
    pub repaired: u64,
    /// Stripes by the slot whose strip was wrong.
    pub wrong: Wrong,
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
    let scrub = tasks.scrub.get();
    if managed.record().scrub != scrub {
        // Without it the scrub goes on from further back.
        let _ = managed.record_scrub(None).await;
    }
}

async fn keep<E: Host>(managed: Rc<Managed<E>>) {
    let tasks = &managed.tasks;
    let mut last = None;
    while !tasks.ending.get() {
        let now = managed.view().generation;
        let owed = owed(&managed);
        tasks.stuck.borrow_mut().retain(|s| s.under == now && owed.contains(&s.what));
        managed.number(&owed);
        managed.forget_pauses().await;
        if let Some(next) = due(&managed) {
            let again = last.replace((next, now)) == Some((next, now));
            tasks.doing.set(Some(next.kind()));
            carry_out(&managed, next).await;
            if again {
                // Whatever is owed: others run, too.
                yield_now().await;
            }
        } else if tasks.scrub.get().is_some() && !tasks.hold.get().scrub {
            tasks.doing.set(Some(TaskKind::Scrub));
            scrub::scrub(&managed).await;
            managed.show(None);
            // What a scrub wrote back, or a host before it, may have been in a task's way.
            tasks.stuck.borrow_mut().clear();
        } else {
            retry_later(&managed);
            let stuck = tasks.stuck.borrow().len();
            let hold = tasks.hold.get();
            let news = || {
                let scrub = tasks.scrub.get().is_some() && !tasks.hold.get().scrub;
                let asked = tasks.ending.get() || scrub || tasks.hold.get() != hold;
                let tried = tasks.stuck.borrow().len() < stuck;
                (asked || tried || managed.view().generation != now).then_some(())
            };
            tasks.changed.wait_until(news).await;
        }
        tasks.doing.set(None);
        tasks.changed.notify();
    }
    managed.show(None);
    tasks.ended.set(true);
    tasks.changed.notify();
}

/// What is to be done first of what is owed and can be.
pub(super) fn due<E: Host>(managed: &Managed<E>) -> Option<Owed> {
    let tasks = &managed.tasks;
    let free = |what: &Owed| !tasks.is_stuck(*what) && !pause::waits(tasks.hold.get(), what.kind());
    owed(managed).into_iter().find(free)
}

/// Runs a resync or rebuild until it is over or stuck.
async fn carry_out<E: Host>(managed: &Rc<Managed<E>>, what: Owed) {
    let View { generation: before, slots, .. } = managed.view();
    managed.lost.take_overflow();
    let is = managed.what(what);
    let (group, end) = match what {
        Owed::Resync(group) => (group, resync(managed, group).await),
        Owed::Rebuild(slot, group) => (group, rebuild(managed, slot, group).await),
    };
    let tasks = &managed.tasks;
    managed.show(None);
    let (stripe, reason, under) = match end {
        End::Whole | End::Cut => return,
        // If something changed meanwhile, what was impossible may be possible now.
        End::Stuck(stripe, reason) => (stripe, reason, before),
        // It makes something public itself: only if that is a change of a drive it is tried again.
        End::Unmoved(stripe) => {
            let after = managed.view();
            let under = if after.slots == slots { after.generation } else { before };
            (stripe, Hindrance::Unavailable, under)
        }
    };
    let full = reason == Hindrance::Unavailable && managed.lost.take_overflow();
    let reason = if full { Hindrance::ListFull } else { reason };
    let strip = u64::from(managed.layout().strip_bytes());
    let stuck = Some(Stuck { reason, group, offset: stripe * strip });
    let mut shown = managed.task(is, stripe, managed.layout().stripes(group));
    shown.stuck = stuck;
    tasks.stuck.borrow_mut().push(StuckTask { what, under, shown });
}

/// Has stuck tasks tried again after a while. Without the array it does nothing.
fn retry_later<E: Host>(managed: &Rc<Managed<E>>) {
    if managed.tasks.stuck.borrow().is_empty() || managed.tasks.retrying.replace(true) {
        return;
    }
    let sleep = managed.env().sleep(TASK_RETRY);
    let managed = Rc::downgrade(managed);
    let env = managed.upgrade().expect("it is here").env().clone();
    env.spawn(Priority::Last, async move {
        sleep.await;
        if let Some(managed) = managed.upgrade() {
            managed.tasks.retrying.set(false);
            managed.tasks.stuck.borrow_mut().clear();
            managed.tasks.changed.notify();
        }
    });
}

/// The resyncs and rebuilds that are owed, in the order in which they are done.
pub(super) fn owed<E: Host>(managed: &Managed<E>) -> Vec<Owed> {
    let layout = managed.layout();
    let record = managed.record();
    let mut owed = Vec::new();
    for group in (0..layout.groups()).map(GroupNo) {
        if layout.m(group) > 0 && managed.owes_regions(group) {
            owed.push(Owed::Resync(group));
        }
    }
    for (i, slot) in record.slots.iter().enumerate() {
        if let SlotState::Rebuilding { .. } = slot.state {
            let slot = Slot(i as u16);
            let group = layout.groups_of(slot).next().expect("a slot is in a group");
            owed.push(Owed::Rebuild(slot, group));
        }
    }
    owed
}

/// Runs one job per stripe of the window, several at a time, of those to be visited. With what it
/// came to: the first stripe that was not visited, or its end.
pub(super) async fn window<E: Host>(
    managed: &Rc<Managed<E>>,
    group: GroupNo,
    stripes: Range<u64>,
    visit: Visit,
    job: impl Fn() -> Job + Copy + 'static,
) -> (Sum, u64) {
    let Some(array) = managed.local() else {
        return (Sum { stopped: true, ..Sum::default() }, stripes.start);
    };
    let state = Window {
        start: stripes.start,
        next: Cell::new(stripes.start),
        end: stripes.end,
        visit,
        sum: Cell::new(Sum::default()),
    };
    let lanes = 0..TASK_BANDS * TASK_STRIPES;
    all_of(lanes.map(|_| lane(managed, &array, group, job, &state)).collect()).await;
    let sum = state.sum.get();
    let cut = sum.stopped || managed.tasks.cut();
    let cut = cut && !mutants::is(Mutant::ScrubSkips);
    (sum, if cut { state.next.get().min(stripes.end) } else { stripes.end })
}

/// Which stripes of a window are worked on.
#[derive(Clone, Copy, Default)]
pub(super) struct Visit {
    /// Also those behind one that can't be made right.
    pub thorough: bool,
    /// Only those that a drive may lack that is whole up to this epoch; 0: all. Only what was ever
    /// written in any case.
    pub since: u64,
    /// Stripes that the task has done before the window.
    pub before: u64,
}

struct Window {
    start: u64,
    next: Cell<u64>,
    end: u64,
    visit: Visit,
    sum: Cell<Sum>,
}

async fn lane<E: Host>(
    managed: &Managed<E>,
    array: &Array<E>,
    group: GroupNo,
    job: impl Fn() -> Job,
    state: &Window,
) {
    loop {
        let since = state.visit.since;
        let stripe = managed.next_stripe(group, state.next.get(), state.end, since);
        let sum = state.sum.get();
        let over = stripe >= state.end || (sum.hindered.is_some() && !state.visit.thorough);
        if over || sum.stopped || managed.tasks.cut() {
            return;
        }
        state.next.set(stripe + 1);
        managed.moved(state.visit.before + (stripe - state.start));
        let Ok(_active) = array.begin() else {
            state.next.set(stripe.min(state.next.get()));
            state.sum.set(Sum { stopped: true, ..sum });
            return;
        };
        let key = StripeKey { group, stripe: StripeNo(stripe) };
        let outcome = array.request(key, job()).await;
        let mut sum = state.sum.get();
        sum.add(stripe, outcome);
        state.sum.set(sum);
    }
}

impl Sum {
    fn add(&mut self, stripe: u64, outcome: Outcome) {
        let checked: Result<Checked, BlockError> = match outcome {
            Outcome::Checked(result) => result,
            other => unreachable!("tasks check and rebuild, {other:?} is neither"),
        };
        let checked = checked.unwrap_or_default();
        let wrong = checked.mismatch || checked.unreadable;
        let compared = checked.compared && !checked.alone;
        self.compared += u64::from(compared);
        self.uncompared += u64::from(!compared && !wrong);
        self.mismatches += u64::from(wrong);
        self.unlocated += u64::from(checked.unlocated);
        self.unreadable += u64::from(checked.beyond);
        self.repaired += u64::from(wrong && checked.compared && checked.repaired);
        checked.guilty.iter().for_each(|slot| self.wrong.0[slot.index()] += 1);
        if !checked.compared {
            let why =
                if checked.unreadable { Hindrance::Unreadable } else { Hindrance::Unavailable };
            if self.hindered.is_none_or(|(first, _)| stripe < first) {
                self.hindered = Some((stripe, why));
            }
        }
    }

    /// The first stripe of the window that is not right; its end if all are.
    fn reached(&self, window: &Range<u64>) -> u64 {
        self.hindered.map_or(window.end, |(stripe, _)| stripe)
    }
}

/// The windows of a group from `border` on.
pub(super) fn windows<E: Host>(
    managed: &Managed<E>,
    group: GroupNo,
    border: u64,
) -> Vec<Range<u64>> {
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
    pub(super) fn task(&self, what: What, done: u64, total: u64) -> TaskStatus {
        let strip = u64::from(self.layout().strip_bytes());
        let (done_bytes, total_bytes) = (done * strip, total * strip);
        let (stuck, paused, seconds_left) = (None, false, None);
        let (kind, number) = (what.kind(), self.tasks.numbers.of(what));
        TaskStatus { number, kind, done_bytes, total_bytes, stuck, paused, seconds_left }
    }

    /// Shows a task to people, or none.
    pub(super) fn show(&self, task: Option<TaskStatus>) {
        self.tasks.progress.show(task, self.env().now());
    }

    fn moved(&self, stripes: u64) {
        let strip = u64::from(self.layout().strip_bytes());
        self.tasks.progress.moved(stripes * strip, self.env().now());
    }

    /// The task that runs.
    pub(super) fn shown_task(&self) -> Option<TaskStatus> {
        self.tasks.progress.shown(self.env().now())
    }

    /// The task that runs, those that are stuck, and those that wait.
    pub fn task_list(&self) -> Vec<TaskStatus> {
        let shown = self.shown_task();
        let waits = |kind: TaskKind| pause::waits(self.tasks.hold.get(), kind);
        let stuck = self.tasks.stuck.borrow();
        let mut list: Vec<TaskStatus> = shown.into_iter().collect();
        list.extend(stuck.iter().map(|s| s.shown).filter(|task| !waits(task.kind)));
        for what in owed(self).into_iter().filter(|what| waits(what.kind())) {
            let (done, total) = self.done_of(what);
            list.push(TaskStatus { paused: true, ..self.task(self.what(what), done, total) });
        }
        if shown.is_none_or(|task| task.kind != TaskKind::Scrub) {
            list.extend(self.waiting_scrub());
        }
        list
    }

    /// How many stripes of what is owed are done, and of how many.
    fn done_of(&self, what: Owed) -> (u64, u64) {
        let record = self.record();
        let (done, group) = match what {
            Owed::Resync(group) => (0, group),
            Owed::Rebuild(slot, group) => match record.slots[slot.index()].state {
                SlotState::Rebuilding { border } => (border, group),
                SlotState::InSync | SlotState::Failed => (0, group),
            },
        };
        (done, self.layout().stripes(group))
    }

    /// The first stripe from `stripe` on that there is something to do about, or `end`.
    fn next_stripe(&self, group: GroupNo, stripe: u64, end: u64, since: u64) -> u64 {
        self.keeper().map.borrow().next_stripe(group, stripe, end, since)
    }

    pub(super) fn progress(&self, what: What, done: u64, total: u64) {
        let is_new = self.tasks.progress.is_other(self.tasks.numbers.of(what));
        self.show(Some(self.task(what, done, total)));
        if is_new {
            self.announce();
        }
    }

    /// Which task does what is owed.
    fn what(&self, owed: Owed) -> What {
        match owed {
            Owed::Resync(group) => What::Resync(group),
            Owed::Rebuild(slot, _) => {
                What::Rebuild(slot, self.seats.borrow()[slot.index()].incarnation)
            }
        }
    }

    /// Gives what is owed numbers, ends those of what is owed no more, and tells of it.
    fn number(&self, owed: &[Owed]) {
        let numbers = &self.tasks.numbers;
        let now: Vec<What> = owed.iter().map(|owed| self.what(*owed)).collect();
        numbers.end(|what| match what {
            What::Scrub => None,
            what if now.contains(&what) => None,
            What::Resync(_) => Some(TaskEnd::Completed),
            What::Rebuild(slot, drive) => {
                let is_same = self.seats.borrow()[slot.index()].incarnation == drive;
                let whole = self.record().slots[slot.index()].state == SlotState::InSync;
                let end = if is_same && whole { TaskEnd::Completed } else { TaskEnd::Interrupted };
                Some(end)
            }
        });
        for what in now {
            numbers.of(what);
        }
        if numbers.take_news() {
            self.announce();
        }
    }

    /// Counts the stripes in which a scrub found a slot's strip to be wrong.
    pub(super) fn blame(&self, wrong: &Wrong) {
        for (slot, seat) in self.seats.borrow().iter().enumerate() {
            self.errors.count_wrong(Slot(slot as u16), seat.incarnation, wrong.0[slot]);
        }
    }

    /// Flushes the drives of a group that count; the lock is held.
    pub(super) async fn flush_group(&self, group: GroupNo) -> bool {
        let mut flushed = true;
        for slot in self.layout().slots(group).collect::<Vec<_>>() {
            let counts = self.record().slots[slot.index()].state != SlotState::Failed;
            flushed &= !counts || self.flush_slot(slot).await;
        }
        flushed
    }
}

/// Makes the regions right that are owed. Each is clean, durably, once it is and nobody writes it.
async fn resync<E: Host>(managed: &Rc<Managed<E>>, group: GroupNo) -> End {
    let keeper = managed.keeper();
    let (owed, total) = {
        let map = keeper.map.borrow();
        let owed: Vec<_> = map.owed(group).into_iter().map(|r| (r, map.stripes(r))).collect();
        (owed, managed.layout().stripes(group))
    };
    let all = owed.iter().map(|(_, s)| s.end.min(total) - s.start).sum();
    let mut done = 0;
    for (region, stripes) in owed {
        let stripes = stripes.start..stripes.end.min(total);
        managed.progress(What::Resync(group), done, all);
        let skip = mutants::is(Mutant::ResyncSkips);
        let repair = move || Job::Check(if skip { Repair::Nothing } else { Repair::Resync });
        let visit = Visit { before: done, ..Visit::default() };
        let (sum, _) = window(managed, group, stripes.clone(), visit, repair).await;
        if sum.stopped || managed.tasks.cut() {
            return End::Cut;
        }
        if let Some((stripe, why)) = sum.hindered {
            return End::Stuck(stripe, why);
        }
        done += stripes.end - stripes.start;
        managed.lock.acquire(1).await;
        let whole = !managed.lacks(group) && !managed.frozen(group);
        keeper.map.borrow_mut().resynced(group, region, whole);
        managed.publish(false).await;
        managed.lock.release(1);
        keeper::kick(managed);
    }
    End::Whole
}

async fn rebuild<E: Host>(managed: &Rc<Managed<E>>, slot: Slot, group: GroupNo) -> End {
    let total = managed.layout().stripes(group);
    let incarnation = managed.seats.borrow()[slot.index()].incarnation;
    let SlotState::Rebuilding { border } = managed.record().slots[slot.index()].state else {
        return End::Cut;
    };
    if border >= total {
        // Whoever recorded that had nothing left to fill, and did not say that it is in sync.
        return match fill_to(managed, (slot, group), incarnation, (total, total)).await {
            true => End::Whole,
            false => End::Unmoved(total),
        };
    }
    let since = managed.record().slots[slot.index()].since;
    for stripes in windows(managed, group, border) {
        let first = managed.next_stripe(group, stripes.start, stripes.end, since);
        if first == stripes.end && stripes.end < total {
            // Nothing to fill: a border behind it is a border here.
            continue;
        }
        managed.progress(What::Rebuild(slot, incarnation), stripes.start, total);
        let fill = move || Job::Rebuild(slot);
        let visit = Visit { since, before: stripes.start, thorough: false };
        let (sum, _) = window(managed, group, stripes.clone(), visit, fill).await;
        if sum.stopped || managed.tasks.cut() {
            return End::Cut;
        }
        let reached = sum.reached(&stripes);
        let moved = || fill_to(managed, (slot, group), incarnation, (reached, total));
        if reached > stripes.start && !moved().await {
            return End::Unmoved(stripes.start);
        }
        if let Some((stripe, why)) = sum.hindered {
            return End::Stuck(stripe, why);
        }
    }
    End::Whole
}

/// Moves a rebuild's border over what was filled; at the end of the group the slot joins.
async fn fill_to<E: Host>(
    managed: &Rc<Managed<E>>,
    at: (Slot, GroupNo),
    incarnation: u32,
    (reached, total): (u64, u64),
) -> bool {
    managed.unwritten_durably().await;
    if reached == total {
        managed.hold_changes().await;
        let moved = advance(managed, at, incarnation, (reached, total)).await;
        managed.let_changes_go().await;
        return moved;
    }
    managed.past_hold().await;
    managed.lock.acquire(1).await;
    let moved = advance(managed, at, incarnation, (reached, total)).await;
    managed.lock.release(1);
    moved
}

/// Moves a rebuild's border over what was filled, durably; the lock is held. Not in a group with a
/// dropped drive: it counts again at the next start, and what was passed over because nobody had
/// written it may be written by its map.
async fn advance<E: Host>(
    managed: &Rc<Managed<E>>,
    (slot, group): (Slot, GroupNo),
    incarnation: u32,
    (border, total): (u64, u64),
) -> bool {
    let filled = || {
        let same = managed.seats.borrow()[slot.index()].incarnation == incarnation;
        let state = managed.record().slots[slot.index()].state;
        same && matches!(state, SlotState::Rebuilding { .. })
    };
    let skip = mutants::is(Mutant::RebuildNotFlushed);
    if !filled() || managed.frozen(group) || !(skip || managed.flush_slot(slot).await) {
        return false;
    }
    let whole = border == total;
    let state = if whole { SlotState::InSync } else { SlotState::Rebuilding { border } };
    let moved = |r: &mut format::ArrayRecord| {
        let slot = &mut r.slots[slot.index()];
        slot.state = state;
        slot.since = if whole { 0 } else { slot.since };
    };
    if whole {
        // The flush may have found that this drive is the one that fails.
        let joins = managed.flush_held().await && filled();
        return joins && managed.record_join(moved).await.is_ok();
    }
    let recorded = managed.commit(false, moved).await.is_ok();
    managed.publish(false).await;
    recorded
}

//! What becomes of drives behind a fabric to which no path led any more, and of arrays that lost
//! more of them than they can spare: no I/O is done here, and nobody is asked.
//!
//! Purpose: such a drive is well as often as not: a cable was out, or a shelf started anew. So it
//! comes back by itself, and so do arrays ([`crate::returning`] does it). A drive that is plugged
//! into this machine does not ([`crate::plugs`]): there a person stands before it.
//!
//! | a slot is | becomes  | when                                                                  |
//! |-----------|----------|-----------------------------------------------------------------------|
//! | in place  | gone     | its array has its drive out, as no path led there                     |
//! | missing   | gone     | its drive was not there when its array started, and is there now      |
//! | gone      | in place | a path leads there, and the engine has found the drive as it went     |
//! | gone      | refused  | the engine has not: a person has to say what becomes of it            |
//! | refused   | gone     | no path leads there any more                                          |
//! | any       | kept out | a person has its drive fail                                           |
//! | kept out  | in place | a drive is in it again                                                |
//!
//! | an array is | becomes | when                                                                 |
//! |-------------|---------|----------------------------------------------------------------------|
//! | running     | waiting | it has failed, and what it can't do without are drives that are gone |
//! | waiting     | stopped | paths lead to all of these, and it could be stopped                  |
//! | stopped     | running | all drives that count were found, and it could be assembled          |
//! | stopped     | left    | they were, and it could not be, again and again: a person is told    |
//! | any         | left    | a person has stopped it, or started or deleted it                    |
//! | waiting     | left    | it lacks something else by now                                       |
//!
//! A slot that is gone, or missing, stays so over the stop and the start of its array here, which
//! forgets why its drive is out. Over any other it does not, nor over an end of the daemon.
//!
//! Invariants
//! - What a person has taken out stays out.
//! - A drive that was out for anything else than its paths stays out. That is settled when it is
//!   first seen out: it ended requests as gone, or no path leads there.
//! - An array that has failed for anything else is left alone, too. So is one that another server
//!   has taken over.

use crate::fabrics::is_behind;
use crate::lock::lock;
use crate::ownership::taken_by;
use crate::plugs::{counts, is_used};
use engine::manage::command::{ArrayState, ArrayStatus, SlotHealth, SlotStatus};
use io::DriveError;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use units::{Slot, Uuid};

/// How long after a try that failed the next one is made.
const AGAIN: Duration = Duration::from_secs(1);

/// How often an array that waited is tried to be started.
const STARTS: u32 = 20;

/// How long it takes at most until what is reached is looked at, and its arrays are found.
const FOUND: Duration = Duration::from_secs(30);

/// A slot of an array.
pub type Seat = (Uuid, u16);

/// A slot whose drive is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Gone {
    path: String,
    serial: String,
    /// The engine did not take it back, and it has been reached ever since.
    is_refused: bool,
    /// How often it was tried.
    tries: u32,
}

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The drive at a path takes its slot again.
    Return(String, Slot),
    /// An array waits from now on, for so many drives.
    Wait(usize),
    /// An array that waits is stopped and started.
    Restart,
    /// An array that was stopped is started.
    Start,
    /// An array waits no more: it runs, or has failed for something else.
    Resume,
}

/// What is known beside how arrays are.
pub struct Seen<'a> {
    /// Says whether a path leads to the drive of a name that has this serial number, or one that
    /// begins so.
    pub is_reached: &'a dyn Fn(&str, &str) -> bool,
    /// Where the drives of slots were found that are out.
    pub found: &'a BTreeMap<Seat, String>,
}

#[derive(Default)]
struct State {
    /// Grows with each step that has ended: what was known of arrays before counts for nothing.
    version: u64,
    gone: BTreeMap<Seat, Gone>,
    /// Slots that are out, and of which it is settled whether they are gone.
    seen: BTreeSet<Seat>,
    /// Slots whose drives were missing, and were not found since.
    missing: BTreeSet<Seat>,
    /// Slots whose drives a person fails; whether that is done.
    kept_out: BTreeMap<Seat, bool>,
    /// Arrays that wait for their drives; how they were when they were stopped for that.
    waiting: BTreeMap<Uuid, Option<ArrayStatus>>,
    /// How often their start was tried in vain.
    tries: BTreeMap<Uuid, u32>,
    /// Arrays for which something is being done, and those for which it is not to be tried before.
    busy: BTreeSet<Uuid>,
    /// Arrays of which a drive is being put back.
    returning: BTreeSet<Uuid>,
    not_before: BTreeMap<Uuid, Instant>,
}

/// Whether drives that the configuration names may be reached for the first time yet, though the
/// start-up did not wait for them any longer; or were reached while it ended.
#[derive(Default)]
pub struct Late {
    is_known: bool,
    until: Option<Instant>,
}

impl Late {
    /// Whether they may: a start-up is over, not long since, or some are awaited still, or not long
    /// since not any more.
    pub fn goes_on(&mut self, is_over: bool, awaits: bool, now: Instant) -> bool {
        if is_over && (!self.is_known || self.until.is_some()) {
            let is_first = !core::mem::replace(&mut self.is_known, true);
            let until = if awaits || is_first { Some(now + FOUND) } else { self.until };
            self.until = until.filter(|until| *until > now);
        }
        self.until.is_some()
    }
}

/// All of it.
#[derive(Default)]
pub struct Returns {
    /// There may be something to do.
    pub news: Notify,
    /// Something was done for an array.
    ended: Notify,
    state: Mutex<State>,
}

impl Returns {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether running arrays have drives out that may be behind a fabric, or arrays wait.
    pub fn concerns(&self, arrays: &[ArrayStatus]) -> bool {
        let is_out = |slot: &SlotStatus| match slot.health {
            SlotHealth::Failed => slot.path.as_deref().is_some_and(is_behind),
            SlotHealth::Missing => true,
            SlotHealth::InSync | SlotHealth::Rebuilding => false,
        };
        let state = self.state();
        !state.gone.is_empty()
            || !state.missing.is_empty()
            || !state.waiting.is_empty()
            || arrays.iter().flat_map(|array| &array.slots).any(is_out)
    }

    /// A person is about to fail the drives of these slots.
    pub fn failing(&self, array: Uuid, slots: &[Slot]) {
        let mut state = self.state();
        for slot in slots {
            state.kept_out.entry((array, slot.0)).or_insert(false);
            state.gone.remove(&(array, slot.0));
        }
    }

    /// That is done, or could not be.
    pub fn failed(&self, array: Uuid, slots: &[Slot], is_done: bool) {
        let mut state = self.state();
        for slot in slots {
            let seat = (array, slot.0);
            if is_done {
                state.kept_out.insert(seat, true);
            } else if state.kept_out.get(&seat) == Some(&false) {
                state.kept_out.remove(&seat);
                state.seen.remove(&seat);
            }
        }
    }

    /// Waits until no drive of an array is being put back.
    pub async fn put_back(&self, array: Uuid) {
        loop {
            // From here on what ends is heard.
            let ended = self.ended.notified();
            if !self.state().returning.contains(&array) {
                return;
            }
            ended.await;
        }
    }

    /// A drive is about to be put back, until [`Returns::did`]; false if it is not to be any more.
    pub fn begin_return(&self, array: Uuid, slot: Slot) -> bool {
        let mut state = self.state();
        let is_gone = state.gone.get(&(array, slot.0)).is_some_and(|gone| !gone.is_refused);
        is_gone && state.returning.insert(array)
    }

    /// A start was tried in vain; whether it is to be tried again.
    pub fn tries_again(&self, array: Uuid) -> bool {
        let mut state = self.state();
        let tries = state.tries.entry(array).or_default();
        *tries += 1;
        *tries < STARTS
    }

    /// Whether an array waits for its drives, stopped or not.
    pub fn is_waiting(&self, array: Uuid) -> bool {
        self.state().waiting.contains_key(&array)
    }

    /// The slots of running arrays whose drives come back by themselves.
    pub fn gone(&self) -> BTreeSet<Seat> {
        let state = self.state();
        state.gone.iter().filter(|(_, gone)| !gone.is_refused).map(|(seat, _)| *seat).collect()
    }

    /// The arrays that wait and are stopped, as they were when they ran.
    pub fn stopped(&self) -> Vec<ArrayStatus> {
        self.state().waiting.values().flatten().cloned().collect()
    }

    /// The array of this UUID, if it waits and is stopped.
    pub fn stopped_one(&self, uuid: &str) -> Option<Uuid> {
        let state = self.state();
        let mut stopped = state.waiting.values().flatten().map(|array| array.uuid);
        stopped.find(|array| array.to_string() == uuid)
    }

    /// The arrays that wait.
    pub fn waiting(&self) -> BTreeSet<Uuid> {
        self.state().waiting.keys().copied().collect()
    }

    /// To be asked before it is asked how arrays are.
    pub fn version(&self) -> u64 {
        self.state().version
    }

    /// Looks at arrays, which run since that version: what there is to do now for which, and
    /// whether there may be more later.
    pub fn look(
        &self,
        (arrays, version): (&[ArrayStatus], u64),
        seen: &Seen<'_>,
        now: Instant,
    ) -> (Vec<(Uuid, Step)>, bool) {
        let mut state = self.state();
        if state.version != version {
            return (Vec::new(), true);
        }
        state.forget(arrays);
        let mut steps = Vec::new();
        for array in arrays.iter().filter(|array| taken_by(array).is_none()) {
            state.see(array, seen);
            if state.may_begin(&array.uuid, now) {
                let step = state.step(array, seen);
                steps.extend(step.into_iter().map(|step| (array.uuid, step)));
            }
        }
        let stopped = state.waiting.values().flatten().filter(|array| {
            let is_there = |slot: &SlotStatus| {
                let path = slot.path.as_deref().filter(|path| is_behind(path));
                !counts(slot) || path.is_none_or(|path| (seen.is_reached)(path, &slot.serial))
            };
            state.may_begin(&array.uuid, now) && array.slots.iter().all(is_there)
        });
        steps.extend(stopped.map(|array| (array.uuid, Step::Start)));
        state.busy.extend(steps.iter().map(|(array, _)| *array));
        let goes_on = !state.gone.is_empty() || !state.waiting.is_empty() || !state.busy.is_empty();
        (steps, goes_on)
    }

    /// Something is to be done for an array: false if something is, or it is not to be tried yet.
    pub fn begin(&self, array: Uuid, now: Instant) -> bool {
        let mut state = self.state();
        state.may_begin(&array, now) && state.busy.insert(array)
    }

    /// A step of an array is done; or failed, and is tried again some time later if it has to be
    /// done then.
    pub fn did(&self, array: Uuid, is_done: bool, now: Instant) {
        let mut state = self.state();
        state.version += 1;
        state.busy.remove(&array);
        state.returning.remove(&array);
        match is_done {
            true => drop(state.not_before.remove(&array)),
            false => drop(state.not_before.insert(array, now + AGAIN)),
        }
        drop(state);
        self.ended.notify_waiters();
    }

    /// The engine did not find a drive as it went.
    pub fn refused(&self, array: Uuid, slot: Slot) {
        if let Some(gone) = self.state().gone.get_mut(&(array, slot.0)) {
            gone.is_refused = true;
        }
    }

    /// An array that waits was stopped for its start.
    pub fn stops(&self, status: &ArrayStatus) {
        if let Some(own) = self.state().waiting.get_mut(&status.uuid) {
            *own = Some(status.clone());
        }
    }

    /// It could not be stopped, and waits on.
    pub fn runs_on(&self, array: Uuid) {
        if let Some(own) = self.state().waiting.get_mut(&array) {
            *own = None;
        }
    }

    /// An array waits no more: it runs, a person is told why it does not, or has it in hand.
    pub fn settled(&self, array: Uuid) {
        let mut state = self.state();
        state.waiting.remove(&array);
        state.tries.remove(&array);
    }
}

impl State {
    /// Whether nothing is being done for an array, and it is time to.
    fn may_begin(&self, array: &Uuid, now: Instant) -> bool {
        let is_due = self.not_before.get(array).is_none_or(|then| *then <= now);
        is_due && !self.busy.contains(array)
    }

    /// Forgets what is of arrays that run no more, but for those that are to run again.
    fn forget(&mut self, arrays: &[ArrayStatus]) {
        let runs = |uuid: &Uuid| arrays.iter().any(|array| array.uuid == *uuid);
        let busy = &self.busy;
        self.waiting.retain(|array, own| {
            // What is being done for it may have been to stop it, or to start it.
            busy.contains(array) || runs(array) == own.is_none()
        });
        let is_known =
            |array: &Uuid| runs(array) || self.waiting.contains_key(array) || busy.contains(array);
        self.gone.retain(|(array, _), _| is_known(array));
        self.seen.retain(|(array, _)| is_known(array));
        self.missing.retain(|(array, _)| is_known(array));
        self.kept_out.retain(|(array, _), _| is_known(array));
        self.not_before.retain(|array, _| is_known(array));
    }

    /// Sees which slots of a running array are gone.
    fn see(&mut self, array: &ArrayStatus, seen: &Seen<'_>) {
        let Seen { is_reached, found } = seen;
        for slot in &array.slots {
            let seat = (array.uuid, slot.slot.0);
            if is_used(slot.health) {
                self.gone.remove(&seat);
                self.seen.remove(&seat);
                self.missing.remove(&seat);
                if self.kept_out.get(&seat) == Some(&true) {
                    self.kept_out.remove(&seat);
                }
                continue;
            }
            if self.kept_out.contains_key(&seat) {
                continue;
            }
            if let Some(gone) = self.gone.get_mut(&seat) {
                gone.is_refused &= is_reached(&gone.path, &gone.serial);
                continue;
            }
            if slot.health == SlotHealth::Missing {
                self.missing.insert(seat);
            }
            let is_missing = slot.path.is_none() && self.missing.contains(&seat);
            let path = slot.path.as_ref().or_else(|| found.get(&seat).filter(|_| is_missing));
            let Some(path) = path.filter(|path| is_behind(path)) else { continue };
            if !self.seen.insert(seat) {
                continue;
            }
            // The reason is the first that there was: it may be an old one. Nobody has failed one
            // that is missing: its array had to start without it.
            let is_gone = is_missing
                || slot.errors.reason == Some(DriveError::Gone)
                || slot.errors.reason.is_some() && !is_reached(path, &slot.serial);
            if is_gone {
                let (path, serial) = (path.clone(), slot.serial.clone());
                self.gone.insert(seat, Gone { path, serial, is_refused: false, tries: 0 });
            }
        }
    }

    /// What is to be done for a running array.
    fn step(&mut self, array: &ArrayStatus, seen: &Seen<'_>) -> Option<Step> {
        let is_reached = seen.is_reached;
        let left: Vec<&SlotStatus> = array.slots.iter().filter(|slot| slot.left_behind).collect();
        let gone = |slot: &SlotStatus| self.gone.get(&(array.uuid, slot.slot.0));
        let is_there = |slot: &SlotStatus| {
            !slot.quarantined && gone(slot).is_some_and(|gone| is_reached(&gone.path, &gone.serial))
        };
        if array.state == ArrayState::Failed || !left.is_empty() {
            if left.is_empty() || !left.iter().all(|slot| gone(slot).is_some()) {
                return self.waiting.remove(&array.uuid).map(|_| Step::Resume);
            }
            if let Entry::Vacant(entry) = self.waiting.entry(array.uuid) {
                entry.insert(None);
                return Some(Step::Wait(left.len()));
            }
            // Those that nobody could record as failed count again, too.
            let held = |slot: &SlotStatus| slot.quarantined && gone(slot).is_some();
            let is_held = array.slots.iter().any(held);
            return (!is_held && left.iter().all(|slot| is_there(slot))).then_some(Step::Restart);
        }
        if self.waiting.remove(&array.uuid).is_some() {
            return Some(Step::Resume);
        }
        let is_back =
            |slot: &&SlotStatus| gone(slot).is_some_and(|gone| !gone.is_refused) && is_there(slot);
        // One that fails again and again keeps no other away.
        let back = array.slots.iter().filter(is_back);
        let slot = back.min_by_key(|slot| gone(slot).map_or(0, |gone| gone.tries))?.slot;
        let gone = self.gone.get_mut(&(array.uuid, slot.0))?;
        gone.tries += 1;
        Some(Step::Return(gone.path.clone(), slot))
    }
}

#[cfg(test)]
#[path = "returns_tests.rs"]
mod tests;

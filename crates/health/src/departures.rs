//! Which of the drives that went are to be failed.
//!
//! Purpose: a drive that is pulled out should be failed within a second, without I/O, so that hosts
//! don't meet it. An enclosure whose cable is pulled out takes many drives, which are all well and
//! come back together: none of these may be failed. One can't tell the two apart at the first
//! departure, so departures are gathered and then judged together.
//!
//! The departures that are not judged yet are the *gathering*. It is due [`QUIET`] after its last
//! departure, at most [`LONGEST`] after its first. A drive that came back counts for neither.
//!
//! # States of a drive that went
//!
//! - *gathered*: not judged yet.
//! - *failing*: it was told to be failed. It counts as failed already: its array may not have
//!   carried that out yet.
//! - *held*: more went than redundancy covers. It is not failed; requests to it decide.
//! - *waiting*: it went with the network path by which it is reached. It is never failed.
//!
//! # Transitions
//!
//! | From | Cause | To |
//! |---|---|---|
//! | (there) | [`gone`](Departures::gone) | gathered |
//! | gathered | due; it is remote | waiting |
//! | gathered | due; each array that lost local drives in this gathering is covered | failing |
//! | gathered | due; one of these arrays is not covered | held |
//! | failing | [`refused`](Departures::refused): the array could not fail it | held |
//! | any | [`back`](Departures::back) | (there) |
//! | any | [`look`](Departures::look), by a settling too: its array uses it no more | (forgotten) |
//!
//! An array is *covered* if it would still have all its data with all of its drives failed that
//! are gone: the gathered, failing, held and waiting ones together.
//!
//! # Why it is so
//!
//! - A drive that comes back before its gathering is settled never went.
//! - *All* arrays that lost local drives count together. Where a cable takes two drives of an array
//!   that could spare them, and four of another that can't, the two are as well as the four.
//! - A drive that waits for its path speaks for no other: the network and a slot fail apart. It
//!   does count as gone when its own array is judged.
//! - **A held drive stays held until it is back, or its array stops to use it**: a request failed
//!   it, or a person replaced it. It is not judged anew when others come back. Drives of an
//!   enclosure come back one after the other; whenever all but the last few were back, redundancy
//!   would cover these, and they would be failed moments before they are there. What a rule could
//!   gain by failing a held drive later is small: the first request that needs it does that.
//! - A drive that goes while others are held begins a gathering of its own. With those that are
//!   held its array may be covered: then it alone is failed. If not it is held too.
//!
//! Invariants: no drive is failed that is remote, or whose array is not covered. A drive is judged
//! once for each time that it went. Times are those of a monotonic clock.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// How long after the last departure a gathering is due.
pub const QUIET: Duration = Duration::from_millis(300);

/// How long after its first departure a gathering is due at the latest, so that a drive is failed
/// well within a second.
pub const LONGEST: Duration = Duration::from_millis(600);

/// Where a drive is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place<A> {
    /// What names the array.
    pub array: A,
    /// The slot there, from 0.
    pub slot: u16,
}

/// What is known of arrays when a gathering is settled.
pub trait Arrays<K, A> {
    /// Whether the array uses this drive in this slot: it is in sync there, or rebuilding. Not
    /// after it failed, was replaced, or the array was stopped.
    fn uses(&self, key: &K, place: &Place<A>) -> bool;

    /// Whether the array would still have all its data if all drives in these slots were failed,
    /// besides those that are failed or missing already. A slot that is rebuilding has nothing that
    /// counts.
    fn covers(&self, array: &A, slots: &BTreeSet<u16>) -> bool;
}

/// How a drive is that went; the states of the module's description.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// It is not judged yet.
    Gathered,
    /// It was told to be failed.
    Failing,
    /// It is not failed, as more went than redundancy covers.
    Held,
    /// It went with its path.
    Waiting,
}

/// What to do with drives that went. The keys are in order, and none is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict<K> {
    /// Fail them: redundancy covers all that are gone.
    Fail(Vec<K>),
    /// Fail none of them: more went than redundancy covers. An alarm says so.
    Hold(Vec<K>),
    /// Wait for them: they are remote, and their path went.
    Wait(Vec<K>),
}

/// A drive that went.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Gone<A> {
    place: Place<A>,
    is_remote: bool,
    at: Duration,
    state: State,
}

/// The drives that went, by their keys. `A` names arrays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Departures<K, A> {
    gone: BTreeMap<K, Gone<A>>,
}

impl<K, A> Default for Departures<K, A> {
    fn default() -> Self {
        Self { gone: BTreeMap::new() }
    }
}

impl<K: Ord + Clone, A: Ord + Clone> Departures<K, A> {
    /// A drive that an array uses went, at a moment of the monotonic clock. One that is gone from
    /// there already is left as it is.
    pub fn gone(&mut self, key: K, place: Place<A>, is_remote: bool, at: Duration) {
        if self.gone.get(&key).is_some_and(|known| known.place == place) {
            return;
        }
        self.gone.insert(key, Gone { place, is_remote, at, state: State::Gathered });
    }

    /// A drive is there again. Says how it was, if it was gone: one that was only gathered never
    /// went.
    pub fn back(&mut self, key: &K) -> Option<State> {
        self.gone.remove(key).map(|gone| gone.state)
    }

    /// The array could not fail a drive that was told to be failed: it is held from now on.
    pub fn refused(&mut self, key: &K) {
        if let Some(gone) = self.gone.get_mut(key).filter(|gone| gone.state == State::Failing) {
            gone.state = State::Held;
        }
    }

    /// Forgets drives that their arrays use no more. To be called when arrays changed, so that what
    /// [`held`](Self::held) says is true.
    pub fn look(&mut self, arrays: &dyn Arrays<K, A>) {
        self.gone.retain(|key, gone| arrays.uses(key, &gone.place));
    }

    /// When to settle; none while nothing is gathered.
    pub fn due(&self) -> Option<Duration> {
        let gathered = self.gone.values().filter(|gone| gone.state == State::Gathered);
        let moments = gathered.map(|gone| gone.at);
        let (first, last) = (moments.clone().min()?, moments.max()?);
        Some(last.saturating_add(QUIET).min(first.saturating_add(LONGEST)))
    }

    /// Judges what is gathered, if that is due: at most one verdict of each kind. Departures that
    /// came after it was due, and before this call, are judged with it.
    pub fn settle(&mut self, at: Duration, arrays: &dyn Arrays<K, A>) -> Vec<Verdict<K>> {
        if self.due().is_none_or(|due| at < due) {
            return Vec::new();
        }
        self.look(arrays);
        let local = if self.covers_all(arrays) { State::Failing } else { State::Held };
        let (mut fail, mut hold, mut wait) = (Vec::new(), Vec::new(), Vec::new());
        for (key, gone) in &mut self.gone {
            if gone.state != State::Gathered {
                continue;
            }
            gone.state = if gone.is_remote { State::Waiting } else { local };
            let list = match gone.state {
                State::Failing => &mut fail,
                State::Held => &mut hold,
                State::Gathered | State::Waiting => &mut wait,
            };
            list.push(key.clone());
        }
        let all = [Verdict::Fail(fail), Verdict::Hold(hold), Verdict::Wait(wait)];
        all.into_iter().filter(|verdict| !verdict.keys().is_empty()).collect()
    }

    /// The drives in this state, with where they were used.
    pub fn in_state(&self, state: State) -> impl Iterator<Item = (&K, &Place<A>)> {
        let own = self.gone.iter().filter(move |(_, gone)| gone.state == state);
        own.map(|(key, gone)| (key, &gone.place))
    }

    /// The drives that are held.
    pub fn held(&self) -> impl Iterator<Item = (&K, &Place<A>)> {
        self.in_state(State::Held)
    }

    /// The drives that are waited for.
    pub fn waiting(&self) -> impl Iterator<Item = (&K, &Place<A>)> {
        self.in_state(State::Waiting)
    }

    /// How a drive is that went; none if it did not.
    pub fn state(&self, key: &K) -> Option<State> {
        self.gone.get(key).map(|gone| gone.state)
    }

    /// Whether each array that lost local drives in this gathering is covered.
    fn covers_all(&self, arrays: &dyn Arrays<K, A>) -> bool {
        let mut slots: BTreeMap<&A, (bool, BTreeSet<u16>)> = BTreeMap::new();
        for gone in self.gone.values() {
            let (counts, slots) = slots.entry(&gone.place.array).or_default();
            slots.insert(gone.place.slot);
            *counts |= gone.state == State::Gathered && !gone.is_remote;
        }
        slots.into_iter().all(|(array, (counts, slots))| !counts || arrays.covers(array, &slots))
    }
}

impl<K> Verdict<K> {
    /// Which drives it is about.
    pub fn keys(&self) -> &[K] {
        match self {
            Self::Fail(keys) | Self::Hold(keys) | Self::Wait(keys) => keys,
        }
    }
}

#[cfg(test)]
#[path = "departures_tests.rs"]
mod tests;

//! The virtual clock: what happens when, the random numbers, and the hash of all that happened.
//!
//! Shared by the executor, the timers and the drive handles of one world.
//!
//! Invariants
//! - Time never goes back. Events due at the same time happen in random order.
//! - Once `powered` is false nothing is scheduled and nothing happens any more.
//! - Lock order: a drive's state, then the timeline; never the other way round.

use crate::drive::{DriveCell, Phase};
use crate::lock;
use crate::rng::{Rng, mix};
use core::task::Waker;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use units::Nanos;

/// When an event happens: time, random tie-break, number in order of scheduling.
pub(crate) type Due = (Nanos, u64, u64);

/// What happens at a point of time.
pub(crate) enum Event {
    /// A timer ends.
    Wake(Arc<Mutex<Option<Waker>>>),
    /// A request of a drive makes progress.
    Drive { drive: DriveCell, request: u64, phase: Phase },
    /// Letter `letter` arrives in the box of core `to`.
    Mail { to: u16, letter: u64 },
}

struct Inner {
    now: Nanos,
    rng: Rng,
    events: BTreeMap<Due, Event>,
    scheduled: u64,
    sequence: u64,
    trace: u64,
    powered: bool,
    submits: u64,
    boundaries: u64,
    fail_after: Option<u64>,
}

/// One world's clock. Clones share it.
#[derive(Clone)]
pub(crate) struct Timeline {
    inner: Arc<Mutex<Inner>>,
}

/// A timeline that may be gone.
#[derive(Clone)]
pub(crate) struct WeakTimeline {
    inner: Weak<Mutex<Inner>>,
}

impl WeakTimeline {
    pub(crate) fn upgrade(&self) -> Option<Timeline> {
        self.inner.upgrade().map(|inner| Timeline { inner })
    }

    pub(crate) fn is(&self, timeline: &Timeline) -> bool {
        core::ptr::eq(self.inner.as_ptr(), Arc::as_ptr(&timeline.inner))
    }
}

impl Timeline {
    pub(crate) fn new(seed: u64, start: Nanos) -> Self {
        let inner = Inner {
            now: start,
            rng: Rng::new(seed),
            events: BTreeMap::new(),
            scheduled: 0,
            sequence: 0,
            trace: mix(seed),
            powered: true,
            submits: 0,
            boundaries: 0,
            fail_after: None,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    pub(crate) fn downgrade(&self) -> WeakTimeline {
        WeakTimeline { inner: Arc::downgrade(&self.inner) }
    }

    pub(crate) fn now(&self) -> Nanos {
        lock(&self.inner).now
    }

    /// Sets the clock forward to `to`.
    pub(crate) fn advance(&self, to: Nanos) {
        let mut inner = lock(&self.inner);
        inner.now = inner.now.max(to);
    }

    /// Draws random numbers.
    pub(crate) fn random<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut lock(&self.inner).rng)
    }

    /// Lets `event` happen `after` from now, unless the power is off.
    pub(crate) fn schedule(&self, after: Nanos, event: Event) -> Due {
        let mut inner = lock(&self.inner);
        inner.scheduled += 1;
        let due = (inner.now.after(after), inner.rng.bits(), inner.scheduled);
        if inner.powered {
            inner.events.insert(due, event);
        }
        due
    }

    pub(crate) fn cancel(&self, due: &Due) {
        let event = lock(&self.inner).events.remove(due);
        drop(event);
    }

    /// When the next event happens.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        lock(&self.inner).events.first_key_value().map(|(due, _)| due.0)
    }

    /// Takes the next event and sets the clock to it.
    pub(crate) fn pop(&self) -> Option<Event> {
        let mut inner = lock(&self.inner);
        let (due, event) = inner.events.pop_first()?;
        inner.now = inner.now.max(due.0);
        Some(event)
    }

    /// The next number of an order that covers everything in the world.
    pub(crate) fn sequence(&self) -> u64 {
        let mut inner = lock(&self.inner);
        inner.sequence += 1;
        inner.sequence
    }

    /// Adds what happened to the hash.
    pub(crate) fn trace(&self, words: &[u64]) {
        let mut inner = lock(&self.inner);
        let mut hash = mix(inner.trace ^ inner.now.0);
        for word in words {
            hash = mix(hash ^ word);
        }
        inner.trace = hash;
    }

    pub(crate) fn trace_hash(&self) -> u64 {
        lock(&self.inner).trace
    }

    /// Counts a request about to be submitted; false if there is no power for it any more.
    pub(crate) fn admit(&self) -> bool {
        let mut inner = lock(&self.inner);
        if inner.powered && inner.fail_after.is_some_and(|limit| inner.submits >= limit) {
            inner.powered = false;
        }
        inner.submits += u64::from(inner.powered);
        inner.powered
    }

    /// Counts a request's submission or completion.
    pub(crate) fn boundary(&self) {
        lock(&self.inner).boundaries += 1;
    }

    pub(crate) fn boundaries(&self) -> u64 {
        lock(&self.inner).boundaries
    }

    pub(crate) fn submits(&self) -> u64 {
        lock(&self.inner).submits
    }

    pub(crate) fn fail_after(&self, submits: u64) {
        lock(&self.inner).fail_after = Some(submits);
    }

    pub(crate) fn powered(&self) -> bool {
        lock(&self.inner).powered
    }

    /// Ends time: forgets all events.
    pub(crate) fn switch_off(&self) {
        let events = {
            let mut inner = lock(&self.inner);
            inner.powered = false;
            core::mem::take(&mut inner.events)
        };
        drop(events);
    }
}

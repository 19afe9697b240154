//! Requests of this core that a stripe's home core is to answer.
//!
//! | state     | meaning                                  | leaves by                             |
//! |-----------|------------------------------------------|---------------------------------------|
//! | free      | nobody's                                 | opened → waiting                      |
//! | waiting   | the job is not done                      | answer → answered; the requester goes |
//! |           |                                          | away → abandoned                      |
//! | answered  | the requester has not looked yet         | it looks, or goes away → free         |
//! | abandoned | the job is not done, nobody waits for it | answer → free                         |
//!
//! Invariant: a job is in the table from its request to its end, whoever waits for it, so that a
//! drain can wait for those whose requesters are gone ([`Pending::abandoned_over`]).

use crate::array::message::Outcome;
use crate::limits::PENDING;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use io::local::Event;

enum State {
    Free,
    Waiting(Option<Waker>),
    Answered(Outcome),
    /// The requester is gone; the answer is dropped when it comes. A drain may wait for it.
    Abandoned {
        awaited: bool,
    },
}

struct Slab {
    states: Vec<State>,
    free: Vec<u32>,
}

/// The table of this core's requests in flight; entries are recycled.
pub struct Pending {
    slab: RefCell<Slab>,
    /// Abandoned entries that a drain waits for.
    awaited: Cell<usize>,
    over: Event,
}

impl Default for Pending {
    fn default() -> Self {
        let slab = Slab { states: Vec::with_capacity(PENDING), free: Vec::with_capacity(PENDING) };
        Self { slab: RefCell::new(slab), awaited: Cell::new(0), over: Event::default() }
    }
}

impl Pending {
    /// Opens an entry; its number goes into the job's origin.
    pub fn open(&self) -> u32 {
        let slab = &mut *self.slab.borrow_mut();
        let at = slab.free.pop().unwrap_or_else(|| {
            slab.states.push(State::Free);
            (slab.states.len() - 1) as u32
        });
        slab.states[at as usize] = State::Waiting(None);
        at
    }

    /// Delivers an answer.
    pub fn answer(&self, at: u32, outcome: Outcome) {
        let slab = &mut *self.slab.borrow_mut();
        let state = &mut slab.states[at as usize];
        match core::mem::replace(state, State::Free) {
            State::Waiting(waker) => {
                *state = State::Answered(outcome);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            State::Abandoned { awaited } => {
                slab.free.push(at);
                if awaited {
                    self.awaited.set(self.awaited.get() - 1);
                    self.over.notify();
                }
            }
            State::Free | State::Answered(_) => unreachable!("a job is answered once"),
        }
    }

    /// Opens an entry whose requester is gone already.
    pub fn open_abandoned(&self) -> u32 {
        let at = self.open();
        self.slab.borrow_mut().states[at as usize] = State::Abandoned { awaited: false };
        at
    }

    /// Waits until everything is answered that is abandoned now. One such wait at a time.
    pub async fn abandoned_over(&self) {
        for state in &mut self.slab.borrow_mut().states {
            if let State::Abandoned { awaited } = state
                && !core::mem::replace(awaited, true)
            {
                self.awaited.set(self.awaited.get() + 1);
            }
        }
        self.over.wait_until(|| (self.awaited.get() == 0).then_some(())).await;
    }

    /// Requests not yet answered, abandoned ones included.
    pub fn in_flight(&self) -> usize {
        let slab = self.slab.borrow();
        slab.states.len() - slab.free.len()
    }
}

/// Waits for the answer to one request.
pub struct Answer<'a> {
    pending: &'a Pending,
    at: u32,
}

impl<'a> Answer<'a> {
    /// The answer to the request of the open entry `at`.
    pub fn new(pending: &'a Pending, at: u32) -> Self {
        Self { pending, at }
    }
}

impl Future for Answer<'_> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let slab = &mut *self.pending.slab.borrow_mut();
        let state = &mut slab.states[self.at as usize];
        match core::mem::replace(state, State::Free) {
            State::Answered(outcome) => Poll::Ready(outcome),
            State::Waiting(waker) => {
                let waker = match waker {
                    Some(w) if w.will_wake(cx.waker()) => w,
                    _ => cx.waker().clone(),
                };
                *state = State::Waiting(Some(waker));
                Poll::Pending
            }
            State::Free | State::Abandoned { .. } => unreachable!("polled after it was answered"),
        }
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        let slab = &mut *self.pending.slab.borrow_mut();
        let state = &mut slab.states[self.at as usize];
        match state {
            State::Waiting(_) => *state = State::Abandoned { awaited: false },
            _ => {
                *state = State::Free;
                slab.free.push(self.at);
            }
        }
    }
}

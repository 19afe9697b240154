//! Requests of this core that a stripe's home core is to answer.

use crate::array::message::Outcome;
use crate::limits::PENDING;
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

enum State {
    Free,
    Waiting(Option<Waker>),
    Answered(Outcome),
    /// The requester is gone; the answer is dropped when it comes.
    Abandoned,
}

struct Slab {
    states: Vec<State>,
    free: Vec<u32>,
}

/// The table of this core's requests in flight; entries are recycled.
pub struct Pending {
    slab: RefCell<Slab>,
}

impl Default for Pending {
    fn default() -> Self {
        let slab = Slab { states: Vec::with_capacity(PENDING), free: Vec::with_capacity(PENDING) };
        Self { slab: RefCell::new(slab) }
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
            State::Abandoned => slab.free.push(at),
            State::Free | State::Answered(_) => unreachable!("a job is answered once"),
        }
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
            State::Free | State::Abandoned => unreachable!("polled after it was answered"),
        }
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        let slab = &mut *self.pending.slab.borrow_mut();
        let state = &mut slab.states[self.at as usize];
        match state {
            State::Waiting(_) => *state = State::Abandoned,
            _ => {
                *state = State::Free;
                slab.free.push(self.at);
            }
        }
    }
}

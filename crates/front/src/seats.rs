//! Seats: where a fixed set of workers waits, each for a job of its own.
//!
//! States of a seat: *idle* (in the list, no job) → *assigned* (a job lies there) → *working*
//! (the worker took it) → idle. Waking one worker for one job keeps the others asleep.
//!
//! Invariant: a seat is in the list of idle ones exactly while it is idle.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};

struct Seat<J> {
    job: Option<J>,
    waker: Option<Waker>,
}

/// The seats of a set of workers.
pub struct Seats<J> {
    seats: Vec<RefCell<Seat<J>>>,
    idle: RefCell<Vec<usize>>,
    stopped: Cell<bool>,
}

impl<J> Seats<J> {
    /// `count` seats, all idle.
    pub fn new(count: usize) -> Self {
        Self {
            seats: (0..count).map(|_| RefCell::new(Seat { job: None, waker: None })).collect(),
            idle: RefCell::new((0..count).collect()),
            stopped: Cell::new(false),
        }
    }

    /// Gives the job to the worker that was idle last, whose memory is warm.
    ///
    /// # Panics
    /// If all are busy.
    pub fn assign(&self, job: J) {
        let seat = self.idle.borrow_mut().pop().expect("jobs are bounded by credits");
        let mut seat = self.seats[seat].borrow_mut();
        seat.job = Some(job);
        if let Some(waker) = seat.waker.take() {
            waker.wake();
        }
    }

    /// Waits for the seat's next job; `None` once stopped.
    pub fn next(&self, seat: usize) -> impl Future<Output = Option<J>> + '_ {
        poll_fn(move |cx| {
            let mut seat = self.seats[seat].borrow_mut();
            if let Some(job) = seat.job.take() {
                return Poll::Ready(Some(job));
            }
            if self.stopped.get() {
                return Poll::Ready(None);
            }
            seat.waker = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    /// The seat's worker is done with its job.
    pub fn rest(&self, seat: usize) {
        self.idle.borrow_mut().push(seat);
    }

    /// Ends all workers; none has a job.
    pub fn stop(&self) {
        self.stopped.set(true);
        for seat in &self.seats {
            if let Some(waker) = seat.borrow_mut().waker.take() {
                waker.wake();
            }
        }
    }
}

//! Seats: where a fixed set of workers waits for jobs.
//!
//! Jobs lie in one queue. Who takes one calls the next worker if there are more; who ends a job at
//! once, as drives in memory let it, takes the next one itself, and its memory is warm.
//!
//! States of a worker: *idle* (in the list, with its waker) → *called* (out of the list, woken, has
//! not come yet) → *working* → idle; one that was called may find nothing, and is idle again.
//!
//! Invariants: while a job waits a worker is called, or none is idle. A worker that works is not in
//! the list, or it would be called in vain.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};
use std::collections::VecDeque;

/// The seats of a set of workers.
pub struct Seats<J> {
    jobs: RefCell<VecDeque<J>>,
    /// Who was idle last is at the end.
    idle: RefCell<Vec<(usize, Waker)>>,
    /// Who is in that list, by seat.
    is_idle: Box<[Cell<bool>]>,
    /// The seat of the worker that is called: one at a time.
    called: Cell<Option<usize>>,
    working: Cell<usize>,
    stopped: Cell<bool>,
}

impl<J> Seats<J> {
    /// Seats for `count` workers, with room for as many jobs.
    pub fn new(count: usize) -> Self {
        Self {
            jobs: RefCell::new(VecDeque::with_capacity(count)),
            idle: RefCell::new(Vec::with_capacity(count)),
            is_idle: (0..count).map(|_| Cell::new(false)).collect(),
            called: Cell::new(None),
            working: Cell::new(0),
            stopped: Cell::new(false),
        }
    }

    /// Leaves a job for the worker that comes first.
    pub fn assign(&self, job: J) {
        self.jobs.borrow_mut().push_back(job);
        self.call();
    }

    /// Calls the worker that was idle last, since its memory is warm; unless one is called already,
    /// who will call the next.
    fn call(&self) {
        if self.called.get().is_none()
            && let Some((seat, waker)) = self.idle.borrow_mut().pop()
        {
            self.is_idle[seat].set(false);
            self.called.set(Some(seat));
            waker.wake();
        }
    }

    /// Waits for the next job of a seat's worker, which is not working; `None` once stopped.
    pub fn next(&self, seat: usize) -> impl Future<Output = Option<J>> + '_ {
        poll_fn(move |cx| {
            if self.called.get() == Some(seat) {
                self.called.set(None);
            } else if self.is_idle[seat].take() {
                // Woken for nothing.
                self.idle.borrow_mut().retain(|(other, _)| *other != seat);
            }
            let job = self.jobs.borrow_mut().pop_front();
            if job.is_none() && !self.stopped.get() {
                self.is_idle[seat].set(true);
                self.idle.borrow_mut().push((seat, cx.waker().clone()));
                return Poll::Pending;
            }
            if job.is_some() {
                self.working.set(self.working.get() + 1);
            }
            if !self.jobs.borrow().is_empty() {
                self.call();
            }
            Poll::Ready(job)
        })
    }

    /// A worker is done with its job.
    pub fn rest(&self) {
        self.working.set(self.working.get() - 1);
    }

    /// Whether there is no job, waiting or under way.
    pub fn all_idle(&self) -> bool {
        self.jobs.borrow().is_empty() && self.working.get() == 0
    }

    /// Ends all workers; none has a job.
    pub fn stop(&self) {
        self.stopped.set(true);
        self.idle.borrow_mut().drain(..).for_each(|(_, waker)| waker.wake());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::pin::pin;
    use core::task::Context;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls what a worker waits for once; counts its wakes.
    fn poll(seats: &Seats<u32>, seat: usize, wakes: &Arc<Count>) -> Poll<Option<u32>> {
        let waker = Waker::from(wakes.clone());
        pin!(seats.next(seat)).poll(&mut Context::from_waker(&waker))
    }

    #[test]
    fn a_worker_is_called_for_jobs_that_wait_and_by_who_takes_one_of_several() {
        let seats = Seats::new(3);
        let wakes = [0; 3].map(|n| Arc::new(Count(AtomicUsize::new(n))));
        let woken = || [0, 1, 2].map(|seat| wakes[seat].0.load(Ordering::Relaxed));
        for (seat, wakes) in wakes.iter().enumerate() {
            assert_eq!(poll(&seats, seat, wakes), Poll::Pending);
        }
        (0..4).for_each(|job| seats.assign(job));
        assert_eq!(woken(), [0, 0, 1], "one, who was idle last");
        assert_eq!(poll(&seats, 1, &wakes[1]), Poll::Ready(Some(0)), "not called");
        assert_eq!(woken(), [0, 0, 1], "one is called already");
        assert_eq!(poll(&seats, 2, &wakes[2]), Poll::Ready(Some(1)));
        assert_eq!(woken(), [1, 0, 1], "there are more, and seat 1 works");
        seats.rest();
        assert_eq!(poll(&seats, 2, &wakes[2]), Poll::Ready(Some(2)), "it takes the next itself");
        assert_eq!(poll(&seats, 0, &wakes[0]), Poll::Ready(Some(3)));
        assert!(!seats.all_idle());
        (0..3).for_each(|_| seats.rest());
        assert!(seats.all_idle());
        for (seat, wakes) in wakes.iter().enumerate() {
            assert_eq!(poll(&seats, seat, wakes), Poll::Pending);
        }
        assert_eq!(woken(), [1, 0, 1]);
        seats.stop();
        assert_eq!(woken(), [2, 1, 2]);
        assert_eq!(poll(&seats, 0, &wakes[0]), Poll::Ready(None));
    }

    #[test]
    fn who_comes_and_finds_nothing_is_called_again() {
        let seats = Seats::new(2);
        let wakes = [0; 2].map(|n| Arc::new(Count(AtomicUsize::new(n))));
        assert_eq!(poll(&seats, 1, &wakes[1]), Poll::Pending);
        seats.assign(1);
        assert_eq!(poll(&seats, 0, &wakes[0]), Poll::Ready(Some(1)));
        assert_eq!(poll(&seats, 1, &wakes[1]), Poll::Pending, "it was taken");
        assert_eq!(poll(&seats, 1, &wakes[1]), Poll::Pending, "it is in the list once");
        seats.assign(2);
        assert_eq!(wakes[1].0.load(Ordering::Relaxed), 2);
        assert_eq!(poll(&seats, 1, &wakes[1]), Poll::Ready(Some(2)));
        seats.assign(3);
        assert!(seats.idle.borrow().is_empty(), "nobody is idle: who rests next takes it");
    }
}

//! Waiting between tasks of one core: a first-come-first-served semaphore, an event, a turn; and
//! for several futures of one task.
//!
//! The first two are `Rc`-shared, single-threaded and allocate only when more tasks wait than ever
//! before.

use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};
use std::collections::VecDeque;

/// Lets the tasks that are ready now run first.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if core::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Waits for all of them at once; what they came to, in their order.
pub async fn all_of<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut outputs: Vec<_> = futures.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if let Some(Poll::Ready(value)) = future.as_mut().map(|f| f.as_mut().poll(cx)) {
                (*future, *output) = (None, Some(value));
            }
        }
        if futures.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// What was done first of two things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First<A, B> {
    /// The one.
    One(A),
    /// The other.
    Other(B),
}

/// Waits for the first of two; the one if both are done. What is left is dropped.
pub async fn first_of<A, B>(
    one: impl Future<Output = A>,
    other: impl Future<Output = B>,
) -> First<A, B> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| {
        if let Poll::Ready(value) = one.as_mut().poll(cx) {
            return Poll::Ready(First::One(value));
        }
        other.as_mut().poll(cx).map(First::Other)
    })
    .await
}

/// A count of units handed out in order of asking, so that a large request is never starved.
#[derive(Default)]
pub struct Semaphore {
    free: Cell<usize>,
    next: Cell<u64>,
    queue: RefCell<VecDeque<(u64, Waker)>>,
}

impl Semaphore {
    /// A semaphore with `units` free units.
    pub fn new(units: usize) -> Self {
        Self { free: Cell::new(units), ..Self::default() }
    }

    /// Units that are free now.
    pub fn free(&self) -> usize {
        self.free.get()
    }

    /// Takes `units` at once if nobody waits before us and they are free.
    pub fn try_acquire(&self, units: usize) -> bool {
        let ok = self.queue.borrow().is_empty() && self.free.get() >= units;
        if ok {
            self.free.set(self.free.get() - units);
        }
        ok
    }

    /// Takes `units` at once, in order of asking. Must be polled to its end once begun.
    pub fn acquire(&self, units: usize) -> impl Future<Output = ()> + '_ {
        let mut turn = None;
        poll_fn(move |cx| {
            if turn.is_none() {
                if self.try_acquire(units) {
                    return Poll::Ready(());
                }
                let id = self.next.get();
                self.next.set(id + 1);
                self.queue.borrow_mut().push_back((id, cx.waker().clone()));
                turn = Some(id);
                return Poll::Pending;
            }
            let mut queue = self.queue.borrow_mut();
            let Some(at) = queue.iter().position(|(id, _)| Some(*id) == turn) else {
                unreachable!("a waiter leaves the queue only by itself")
            };
            if at == 0 && self.free.get() >= units {
                queue.pop_front();
                drop(queue);
                self.free.set(self.free.get() - units);
                self.wake_first();
                return Poll::Ready(());
            }
            queue[at].1 = cx.waker().clone();
            Poll::Pending
        })
    }

    /// Gives `units` back.
    pub fn release(&self, units: usize) {
        self.free.set(self.free.get() + units);
        self.wake_first();
    }

    fn wake_first(&self) {
        if let Some((_, waker)) = self.queue.borrow().front() {
            waker.wake_by_ref();
        }
    }
}

/// Something that happens again and again; waiters see everything after they began to wait.
#[derive(Default)]
pub struct Event {
    count: Cell<u64>,
    waiters: RefCell<Vec<Waker>>,
}

impl Event {
    /// It happened: wakes all who wait.
    pub fn notify(&self) {
        self.count.set(self.count.get() + 1);
        for waker in self.waiters.borrow_mut().drain(..) {
            waker.wake();
        }
    }

    /// Waits until `ready` says something, asking now and after every [`Event::notify`].
    pub fn wait_until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
        let mut seen = None;
        poll_fn(move |cx| {
            if let Some(value) = ready() {
                return Poll::Ready(value);
            }
            if seen != Some(self.count.get()) {
                seen = Some(self.count.get());
                self.waiters.borrow_mut().push(cx.waker().clone());
            }
            Poll::Pending
        })
    }
}

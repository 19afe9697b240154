//! An outbox: what tasks of a connection have to send waits here for its sender.
//!
//! Invariant: what was put in is taken out in the same order, stopped or not.

use arrayvec::ArrayVec;
use core::cell::{Cell, RefCell};
use io::local::Event;
use std::collections::VecDeque;

/// What waits to be sent.
pub struct Outbox<T> {
    queue: RefCell<VecDeque<T>>,
    changed: Event,
    stopped: Cell<bool>,
}

impl<T> Outbox<T> {
    /// An empty one; it allocates only when more waits than ever before, and than `capacity`.
    pub fn new(capacity: usize) -> Self {
        Self {
            queue: RefCell::new(VecDeque::with_capacity(capacity)),
            changed: Event::default(),
            stopped: Cell::new(false),
        }
    }

    /// Puts something in.
    pub fn push(&self, item: T) {
        self.queue.borrow_mut().push_back(item);
        self.changed.notify();
    }

    /// Ends the sender once all is taken out.
    pub fn stop(&self) {
        self.stopped.set(true);
        self.changed.notify();
    }

    /// True once there is something to send, false once stopped.
    pub async fn wait(&self) -> bool {
        let some = || {
            let some = !self.queue.borrow().is_empty();
            (some || self.stopped.get()).then_some(some)
        };
        self.changed.wait_until(some).await
    }

    /// Takes out what waits, at most `MOST`.
    pub fn next_batch<const MOST: usize>(&self) -> ArrayVec<T, MOST> {
        let mut queue = self.queue.borrow_mut();
        let count = queue.len().min(MOST);
        queue.drain(..count).collect()
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.borrow().is_empty()
    }

    /// Happens when something is put in, at the stop, and when the sender says so.
    pub fn changed(&self) -> &Event {
        &self.changed
    }
}

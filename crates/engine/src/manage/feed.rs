//! The ring in which the manager tells the control plane what changes.
//!
//! Purpose: news go from one core to another thread, in order, and nobody waits.
//!
//! | a feed is  | becomes    | when                                                            |
//! |------------|------------|-----------------------------------------------------------------|
//! | heard      | overflowed | the ring is full, or its reader has it at that very moment      |
//! | heard      | over       | its reader dropped it, or gave the manager another              |
//! | overflowed | over       | the same: whoever sees it begins anew with another feed         |
//!
//! Invariants
//! - Who tells waits for no reader: neither for room nor for the ring.
//! - What a reader took is all that was told, in order, or the feed is overflowed.

use crate::limits::FEED_RING;
use core::fmt;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

/// Where news come that nobody asked for. Its reader holds it; the manager does not.
pub struct Feed<T> {
    ring: Mutex<VecDeque<T>>,
    overflowed: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl<T> fmt::Debug for Feed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("overflowed", &self.overflowed).finish_non_exhaustive()
    }
}

/// More was told than the ring holds: what is missing has to be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overflowed;

impl<T> Feed<T> {
    /// An empty one. `wake` is called, on the manager's core, when there is something to take; it
    /// must not wait.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            ring: Mutex::new(VecDeque::with_capacity(FEED_RING)),
            overflowed: AtomicBool::new(false),
            wake: Box::new(wake),
        })
    }

    /// What was told since this was called last, in order.
    ///
    /// # Errors
    /// Something is missing; so it is from now on.
    pub fn take(&self) -> Result<VecDeque<T>, Overflowed> {
        let empty = VecDeque::with_capacity(FEED_RING);
        let taken = {
            let mut ring = self.ring.lock().unwrap_or_else(|e| e.into_inner());
            core::mem::replace(&mut *ring, empty)
        };
        if self.is_overflowed() { Err(Overflowed) } else { Ok(taken) }
    }

    /// Whether something is missing.
    pub(super) fn is_overflowed(&self) -> bool {
        self.overflowed.load(Ordering::Acquire)
    }

    /// Tells, if there is room and nobody has the ring.
    pub(super) fn push(&self, news: T) {
        let ring = match self.ring.try_lock() {
            Ok(ring) => Some(ring),
            Err(TryLockError::Poisoned(ring)) => Some(ring.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        match ring.filter(|ring| ring.len() < FEED_RING) {
            Some(mut ring) => ring.push_back(news),
            None => self.overflowed.store(true, Ordering::Release),
        }
        (self.wake)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn news_come_in_order_and_wake_the_reader() {
        let woken = Arc::new(AtomicUsize::new(0));
        let feed = Feed::new({
            let woken = woken.clone();
            move || {
                woken.fetch_add(1, Ordering::Relaxed);
            }
        });
        feed.push(1);
        feed.push(2);
        assert_eq!(woken.load(Ordering::Relaxed), 2);
        assert_eq!(feed.take(), Ok([1, 2].into()));
        assert_eq!(feed.take(), Ok(VecDeque::new()));
    }

    #[test]
    fn a_full_ring_says_that_something_is_missing_and_takes_no_more_room() {
        let feed = Feed::new(|| ());
        (0..FEED_RING).for_each(|n| feed.push(n));
        assert_eq!(feed.ring.lock().unwrap().len(), FEED_RING);
        feed.push(FEED_RING);
        assert_eq!(feed.ring.lock().unwrap().len(), FEED_RING);
        assert_eq!((feed.take(), feed.take()), (Err(Overflowed), Err(Overflowed)));
    }

    #[test]
    fn who_tells_does_not_wait_for_who_reads() {
        let feed = Feed::new(|| ());
        let reading = feed.ring.lock().unwrap();
        feed.push(1);
        drop(reading);
        assert_eq!(feed.take(), Err(Overflowed));
    }
}

//! What the manager tells the control plane without being asked.
//!
//! Purpose: the control plane knows how every array is at any time, and asks for nothing. It gives
//! the manager a [`Feed`] and is answered with all arrays; from then on the manager puts in it, in
//! order, each array that changed, whole, and each that is gone.
//!
//! | a feed is  | becomes    | when                                                            |
//! |------------|------------|-----------------------------------------------------------------|
//! | heard      | overflowed | the ring is full, or its reader has it at that very moment      |
//! | heard      | over       | its reader dropped it, or gave the manager another              |
//! | overflowed | over       | the same: whoever sees it begins anew with another feed         |
//!
//! When something is told:
//! - what was recorded or who takes part changed: as soon as every core has adopted it, before
//!   acknowledgements that depend on it;
//! - a request of the control plane changed something: before its answer;
//! - a task began or ended: at once;
//! - all else, as how far a task is, what was counted of a drive, the region map: at the next look,
//!   every [`FEED_LOOK`].
//!
//! Invariants
//! - The manager waits for no reader: neither for room nor for the ring.
//! - What a reader took, and what it was answered first, is how every array was told last, or the
//!   feed is overflowed.
//! - Nothing is told twice: an array is told when it differs from what was told of it last.
//! - Without a feed nothing is done: no look, no timer.

use crate::Host;
use crate::array::message::ArrayId;
use crate::limits::{FEED_LOOK, FEED_RING};
use crate::manage::Manager;
use crate::manage::command::ArrayStatus;
use crate::manage::managed::Managed;
use core::cell::RefCell;
use core::fmt;
use io::Priority;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};

/// A piece of news.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// An array is there, or changed: this is how it is.
    Array(Box<ArrayStatus>),
    /// An array is there no more.
    Gone(ArrayId),
}

/// Where news come that nobody asked for. Its reader holds it; the manager does not.
pub struct Feed {
    ring: Mutex<VecDeque<Change>>,
    overflowed: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("overflowed", &self.overflowed).finish_non_exhaustive()
    }
}

/// More was told than the ring holds: what is missing has to be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overflowed;

impl Feed {
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
    pub fn take(&self) -> Result<VecDeque<Change>, Overflowed> {
        let empty = VecDeque::with_capacity(FEED_RING);
        let taken = {
            let mut ring = self.ring.lock().unwrap_or_else(|e| e.into_inner());
            core::mem::replace(&mut *ring, empty)
        };
        if self.overflowed.load(Ordering::Acquire) { Err(Overflowed) } else { Ok(taken) }
    }

    /// Tells, if there is room and nobody has the ring.
    fn push(&self, change: Change) {
        let ring = match self.ring.try_lock() {
            Ok(ring) => Some(ring),
            Err(TryLockError::Poisoned(ring)) => Some(ring.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        match ring.filter(|ring| ring.len() < FEED_RING) {
            Some(mut ring) => ring.push_back(change),
            None => self.overflowed.store(true, Ordering::Release),
        }
        (self.wake)();
    }
}

/// The manager's end of the feed, which its arrays share.
#[derive(Default)]
pub(super) struct Teller {
    feed: RefCell<Weak<Feed>>,
    /// How every array was told last.
    told: RefCell<Vec<ArrayStatus>>,
}

impl Teller {
    /// The feed, if somebody reads it and misses nothing yet.
    fn feed(&self) -> Option<Arc<Feed>> {
        let feed = self.feed.borrow();
        if feed.strong_count() == 0 {
            return None;
        }
        feed.upgrade().filter(|feed| !feed.overflowed.load(Ordering::Acquire))
    }

    /// Tells how an array is, if that is news.
    fn tell(&self, status: impl FnOnce() -> ArrayStatus) {
        let Some(feed) = self.feed() else { return };
        let (status, mut told) = (status(), self.told.borrow_mut());
        match told.iter_mut().find(|known| known.id == status.id) {
            Some(known) if *known == status => return,
            Some(known) => known.clone_from(&status),
            None => told.push(status.clone()),
        }
        feed.push(Change::Array(Box::new(status)));
    }

    /// Tells which arrays are there no more.
    fn tell_gone(&self, is_there: impl Fn(ArrayId) -> bool) {
        let Some(feed) = self.feed() else { return };
        self.told.borrow_mut().retain(|known| {
            let kept = is_there(known.id);
            if !kept {
                feed.push(Change::Gone(known.id));
            }
            kept
        });
    }
}

impl<E: Host> Managed<E> {
    /// Tells how the array is, if that is news and somebody reads.
    pub(super) fn announce(&self) {
        self.teller.tell(|| self.status());
    }

    /// Tells it if what was recorded or who takes part has changed since the last time.
    pub(super) fn announce_news(&self) {
        if self.news.take() {
            self.announce();
        }
    }
}

impl<E: Host> Manager<E> {
    /// From now on news go to this feed; how all arrays are now. Ends what another one heard.
    pub(super) fn feed(&self, feed: &Arc<Feed>) -> Vec<ArrayStatus> {
        let all: Vec<ArrayStatus> = self.inner.arrays.borrow().iter().map(|a| a.status()).collect();
        let teller = &self.inner.teller;
        *teller.told.borrow_mut() = all.clone();
        let feed = Arc::downgrade(feed);
        *teller.feed.borrow_mut() = feed.clone();
        self.env().spawn(Priority::Last, look(Rc::downgrade(&self.inner), feed));
        all
    }

    /// Tells all that is news.
    pub(super) fn tell_all(&self) {
        if self.inner.teller.feed().is_none() {
            return;
        }
        let arrays = self.inner.arrays.borrow();
        arrays.iter().for_each(|array| array.announce());
        self.inner.teller.tell_gone(|id| arrays.iter().any(|array| array.id() == id));
    }
}

/// Looks for news as long as this feed is the one that is read.
async fn look<E: Host>(inner: std::rc::Weak<super::Inner<E>>, feed: Weak<Feed>) {
    loop {
        let Some(sleep) = inner.upgrade().map(|inner| inner.env.sleep(FEED_LOOK)) else { return };
        sleep.await;
        let Some(inner) = inner.upgrade() else { return };
        let is_read = inner.teller.feed().is_some() && inner.teller.feed.borrow().ptr_eq(&feed);
        if !is_read {
            return;
        }
        Manager { inner }.tell_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn gone(id: usize) -> Change {
        Change::Gone(ArrayId(id as u32))
    }

    #[test]
    fn news_come_in_order_and_wake_the_reader() {
        let woken = Arc::new(AtomicUsize::new(0));
        let feed = Feed::new({
            let woken = woken.clone();
            move || {
                woken.fetch_add(1, Ordering::Relaxed);
            }
        });
        feed.push(gone(1));
        feed.push(gone(2));
        assert_eq!(woken.load(Ordering::Relaxed), 2);
        assert_eq!(feed.take(), Ok([gone(1), gone(2)].into()));
        assert_eq!(feed.take(), Ok(VecDeque::new()));
    }

    #[test]
    fn a_full_ring_says_that_something_is_missing_and_takes_no_more_room() {
        let feed = Feed::new(|| ());
        (0..FEED_RING).for_each(|id| feed.push(gone(id)));
        assert_eq!(feed.ring.lock().unwrap().len(), FEED_RING);
        feed.push(gone(FEED_RING));
        assert_eq!(feed.ring.lock().unwrap().len(), FEED_RING);
        assert_eq!((feed.take(), feed.take()), (Err(Overflowed), Err(Overflowed)));
    }

    #[test]
    fn who_tells_does_not_wait_for_who_reads() {
        let feed = Feed::new(|| ());
        let reading = feed.ring.lock().unwrap();
        feed.push(gone(1));
        drop(reading);
        assert_eq!(feed.take(), Err(Overflowed));
    }
}

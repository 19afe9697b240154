//! What the manager tells the control plane without being asked.
//!
//! Purpose: the control plane knows how every array is at any time, and asks for nothing. It gives
//! the manager a [`Feed`] and is answered with all arrays; from then on the manager puts in it, in
//! order, each array that changed, whole, and each that is gone.
//!
//! | what                                                   | is told                             |
//! |--------------------------------------------------------|-------------------------------------|
//! | what was recorded or who takes part changed            | when every core has adopted it,     |
//! |                                                        | before what waits for that goes on  |
//! | a request of the control plane changed something       | before its answer                   |
//! | a task began or ended                                  | at once                             |
//! | what can't be read or is lost changed                  | when every core has adopted it      |
//! | all else: how far a task is, counts, the region map    | at the next look                    |
//!
//! Invariants
//! - What a reader was answered first, with what it took since, is how every array was told last,
//!   or its feed is overflowed.
//! - Nothing is told twice: an array is told when it differs from what was told of it last.
//! - Without a reader nothing is done: no look, no timer.

use crate::array::message::ArrayId;
use crate::manage::command::{ArrayStatus, Change};
use crate::manage::feed::Feed;
use core::cell::RefCell;
use std::sync::{Arc, Weak};

/// The manager's end of the feed, which its arrays share.
#[derive(Default)]
pub(super) struct Teller {
    feed: RefCell<Weak<Feed<Change>>>,
    /// How every array was told last.
    told: RefCell<Vec<ArrayStatus>>,
}

impl Teller {
    /// From now on news go to this feed, whose reader knows these arrays.
    pub fn begin(&self, feed: Weak<Feed<Change>>, told: Vec<ArrayStatus>) {
        *self.feed.borrow_mut() = feed;
        *self.told.borrow_mut() = told;
    }

    /// Whether somebody reads, and misses nothing yet.
    pub fn is_heard(&self) -> bool {
        self.feed().is_some()
    }

    /// Whether somebody reads this feed, and misses nothing yet.
    pub fn is_heard_in(&self, feed: &Weak<Feed<Change>>) -> bool {
        self.is_heard() && self.feed.borrow().ptr_eq(feed)
    }

    /// The feed, if somebody reads it and misses nothing yet.
    fn feed(&self) -> Option<Arc<Feed<Change>>> {
        let feed = self.feed.borrow();
        if feed.strong_count() == 0 {
            return None;
        }
        feed.upgrade().filter(|feed| !feed.is_overflowed())
    }

    /// Tells how an array is, if that is news.
    pub fn tell(&self, status: impl FnOnce() -> ArrayStatus) {
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
    pub fn tell_gone(&self, is_there: impl Fn(ArrayId) -> bool) {
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

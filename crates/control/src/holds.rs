//! Who changes an array, or what is at a URI (below, an array stands for both).
//!
//! States of an array: free → shared (changes that destroy nothing; several at one time) or alone
//! (one that destroys data, or is about to be compared with what is there; then it is shared) →
//! free, when the last of them has ended.
//!
//! Invariants
//! - While somebody has an array alone nobody else changes it by a request: what was planned is
//!   what is done.
//! - Who waits for an array alone keeps nobody else from it: a change that never ends can be ended
//!   by stopping its array.

use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// How an array is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hold {
    /// By so many.
    Shared(usize),
    /// By one.
    Alone,
}

/// All arrays that are held.
#[derive(Default)]
pub struct Holds {
    held: Mutex<BTreeMap<String, Hold>>,
    freed: Notify,
}

/// An array is held until this is dropped.
pub struct Held<'a> {
    holds: &'a Holds,
    array: String,
}

impl Holds {
    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Hold>> {
        lock(&self.held)
    }

    /// Waits until the array can be had, with others or `alone`.
    pub async fn take(&self, array: &str, alone: bool) -> Held<'_> {
        loop {
            // From here on what is freed is heard.
            let freed = self.freed.notified();
            if self.take_now(array, alone) {
                return Held { holds: self, array: array.to_owned() };
            }
            freed.await;
        }
    }

    /// Whether somebody has it.
    pub fn is_held(&self, array: &str) -> bool {
        self.held().contains_key(array)
    }

    fn take_now(&self, array: &str, alone: bool) -> bool {
        let mut held = self.held();
        let next = match (held.get(array), alone) {
            (None, true) => Hold::Alone,
            (None, false) => Hold::Shared(1),
            (Some(Hold::Shared(count)), false) => Hold::Shared(count + 1),
            _ => return false,
        };
        held.insert(array.to_owned(), next);
        true
    }
}

impl Held<'_> {
    /// From now on others may change the array, too.
    pub fn share(&self) {
        let mut held = self.holds.held();
        if let Some(hold @ Hold::Alone) = held.get_mut(&self.array) {
            *hold = Hold::Shared(1);
        }
        drop(held);
        self.holds.freed.notify_waiters();
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.holds.held();
        match held.get_mut(&self.array) {
            Some(Hold::Shared(count)) if *count > 1 => *count -= 1,
            _ => drop(held.remove(&self.array)),
        }
        drop(held);
        self.holds.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};

    /// Whether it can be had at once.
    fn now<'a>(holds: &'a Holds, array: &str, alone: bool) -> Option<Held<'a>> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(holds.take(array, alone)).poll(&mut context) {
            Poll::Ready(held) => Some(held),
            Poll::Pending => None,
        }
    }

    #[test]
    fn who_destroys_is_alone() {
        let holds = Holds::default();
        let first = now(&holds, "a", false).expect("it is free");
        let second = now(&holds, "a", false).expect("it is shared");
        assert!(now(&holds, "a", true).is_none(), "others are there");
        assert!(now(&holds, "b", true).is_some(), "another array is another matter");
        drop(first);
        assert!(now(&holds, "a", true).is_none(), "one is there yet");
        drop(second);
        let alone = now(&holds, "a", true).expect("it is free");
        assert!(now(&holds, "a", true).is_none() && now(&holds, "a", false).is_none());
        alone.share();
        assert!(now(&holds, "a", true).is_none() && now(&holds, "a", false).is_some());
        drop(alone);
        assert!(holds.held().is_empty(), "what is free is forgotten");
    }

    #[test]
    fn who_waits_hears_of_the_end_and_keeps_nobody_away() {
        let holds = Holds::default();
        let first = now(&holds, "a", false).expect("it is free");
        let mut waiting = pin!(holds.take("a", true));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(now(&holds, "a", false).expect("who waits has nothing"));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(waiting.as_mut().poll(&mut context).is_ready());
    }
}

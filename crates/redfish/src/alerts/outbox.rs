//! What one recipient is to be told, at most so many messages a minute.
//!
//! States of a message: *ready* (it is sent alone) or *held* (it is sent together with others) →
//! sent. A message is ready if with it no more than [`A_MINUTE`] are sent within this minute, and
//! nothing is held or left out. Else it is held: a minute after the first one all that are held are
//! sent as one.
//!
//! Invariants
//! - Messages are sent in the order in which they came; each once, if what sends it says so.
//! - Of messages that are sent as they come no more than [`A_MINUTE`] alone, and one together, go
//!   out within a minute.
//! - It has no more than [`MOST`] messages. Those that came last are left out, and counted. How
//!   many these are is told with what is held, or by itself where nothing is.

use super::Told;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How many messages a minute are sent alone.
pub const A_MINUTE: usize = 10;

/// How many messages wait at most.
pub const MOST: usize = 128;

/// The time in which they are counted, in seconds.
const MINUTE: u64 = 60;

/// What waits for a recipient.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Outbox {
    ready: VecDeque<Told>,
    held: Vec<Told>,
    /// When the first that is held came.
    since: u64,
    /// How many that came while too many waited.
    left_out: u64,
    /// When the last ones were sent, in order.
    sent: VecDeque<u64>,
}

/// What is to be sent next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Letter {
    /// What it tells: one, or several together.
    pub told: Vec<Told>,
    /// How many more there were that it does not have.
    pub left_out: u64,
}

impl Outbox {
    fn sent_lately(&self, now: u64) -> usize {
        // A clock that was set back makes nothing wait for ever.
        self.sent.iter().filter(|at| now.abs_diff(**at) < MINUTE).count()
    }

    /// Whether something is to be told together: messages, or how many there were.
    fn waits_together(&self) -> bool {
        !self.held.is_empty() || self.left_out > 0
    }

    /// Something is to be told.
    pub fn put(&mut self, told: Told, now: u64) {
        let waits = self.waits_together();
        if !waits && self.ready.len() + self.sent_lately(now) < A_MINUTE {
            self.ready.push_back(told);
        } else if self.ready.len() + self.held.len() >= MOST {
            self.left_out = self.left_out.saturating_add(1);
        } else {
            if !waits {
                self.since = now;
            }
            self.held.push(told);
        }
    }

    /// What is to be sent now, if anything is.
    pub fn next(&self, now: u64) -> Option<Letter> {
        if let Some(first) = self.ready.front() {
            return Some(Letter { told: vec![first.clone()], left_out: 0 });
        }
        let is_due = self.waits_together() && now.abs_diff(self.since) >= MINUTE;
        is_due.then(|| Letter { told: self.held.clone(), left_out: self.left_out })
    }

    /// What [`Outbox::next`] gave was sent.
    pub fn done(&mut self, letter: &Letter, now: u64) {
        if self.ready.pop_front().is_none() {
            // More may have come since.
            self.held.drain(..letter.told.len().min(self.held.len()));
            self.left_out = self.left_out.saturating_sub(letter.left_out);
            self.since = now;
        }
        self.sent.push_back(now);
        while self.sent.len() > A_MINUTE {
            self.sent.pop_front();
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && !self.waits_together()
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
pub(super) mod tests;

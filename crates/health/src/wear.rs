//! When a drive will be worn out, by its past.
//!
//! Purpose: a drive says in whole per cent how much of its life is used. From the moments at which
//! that number rose, [`Trend`] says when it will be 100.
//!
//! The rate is that between the first and the last rise that are known. While the next rise is
//! overdue the rate is less: at most one more per cent was used since. So the date is never before
//! now, and it moves later while a drive rests.
//!
//! # States
//!
//! - *empty*: nothing was seen.
//! - *learning*: fewer than [`LEAST_RISES`] rises were seen, or within less than [`LEAST_SECONDS`].
//!   No date is known.
//! - *known*: there is a date.
//!
//! # Transitions
//!
//! A reading makes an empty trend learn; enough rises make the date known. A reading that is less
//! than the last one makes it learn anew, from that reading: it is another drive, or the drive's
//! counter was reset. So does a clock that went back by more than [`CLOCK_SECONDS`].
//!
//! Invariants: at most [`MOST_RISES`] rises are kept, the newest. Their moments and their
//! percentages rise. A stored trend for which this is not so gives no date.

use serde::{Deserialize, Serialize};

/// Rises that have to be known.
pub const LEAST_RISES: usize = 3;

/// Seconds that have to lie between the first and the last rise: a week.
pub const LEAST_SECONDS: u64 = 7 * 86_400;

/// The most rises that are kept.
pub const MOST_RISES: usize = 64;

/// By so many seconds a clock may go back: a day.
pub const CLOCK_SECONDS: u64 = 86_400;

/// What was seen of a drive's wear.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Trend {
    /// The last reading, and when that was, in seconds since 1970.
    last: Option<(u64, u8)>,
    /// When the percentage rose, and to what.
    rises: Vec<(u64, u8)>,
}

impl Trend {
    /// A drive said how much of its life is used, in per cent, at a moment in seconds since 1970.
    pub fn saw(&mut self, now: u64, percent: u8) {
        let Some((at, was)) = self.last else {
            self.last = Some((now, percent));
            return;
        };
        if percent < was || now.saturating_add(CLOCK_SECONDS) < at {
            *self = Self { last: Some((now, percent)), rises: Vec::new() };
            return;
        }
        let now = now.max(at);
        if percent > was {
            // A rise that the clock has no later moment for takes the place of the one before.
            self.rises.retain(|(moment, _)| *moment < now);
            self.rises.push((now, percent));
            let surplus = self.rises.len().saturating_sub(MOST_RISES);
            self.rises.drain(..surplus);
        }
        self.last = Some((now, percent));
    }

    /// When 100 per cent are used, in seconds since 1970: at `now` or later, or at the rise that
    /// reached it. None while nobody can say.
    pub fn worn_out(&self, now: u64) -> Option<u64> {
        let over = self.rises.iter().find(|(_, percent)| *percent >= 100);
        if let Some((at, _)) = over {
            return Some(*at);
        }
        let (last, percent) = self.last?;
        if percent >= 100 || self.rises.len() < LEAST_RISES {
            return None;
        }
        let (first, least) = *self.rises.first()?;
        let (newest, most) = *self.rises.last()?;
        let (span, used) = (newest.checked_sub(first)?, u64::from(most.checked_sub(least)?));
        if span < LEAST_SECONDS || used == 0 {
            return None;
        }
        let now = now.max(last);
        let by_rises = span.div_ceil(used);
        // At most one more per cent was used since the last rise.
        let by_rest = now.saturating_sub(first).div_ceil(used.saturating_add(1));
        let left = u64::from(100u8.checked_sub(least)?);
        Some(first.saturating_add(left.saturating_mul(by_rises.max(by_rest))))
    }
}

#[cfg(test)]
#[path = "wear_tests.rs"]
mod tests;

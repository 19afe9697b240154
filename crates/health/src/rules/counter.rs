//! A counter of errors, of which only new ones count, for a time.
//!
//! Invariants: at most [`MOST_RISES`] rises are kept; where there are more, the two oldest become
//! one, at the later's moment. Their moments do not fall.

use serde::{Deserialize, Serialize};

/// The most rises of a counter that are told apart.
pub const MOST_RISES: usize = 32;

/// A counter, as it was last read, and by how much it rose lately.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Counter {
    last: Option<u64>,
    /// Moments of the judge's clock, and by how much it rose.
    rises: Vec<(u64, u64)>,
}

impl Counter {
    /// Forgets rises that were so many seconds ago, or longer.
    pub(super) fn pass_to(&mut self, clock: u64, within: u64) {
        self.rises.retain(|(at, _)| clock.saturating_sub(*at) < within);
    }

    /// The counter was read.
    pub(super) fn saw(&mut self, clock: u64, read: u64) {
        let more = read.saturating_sub(self.last.unwrap_or(read));
        self.last = Some(read);
        if more == 0 {
            return;
        }
        self.rises.push((clock, more));
        while self.rises.len() > MOST_RISES {
            let (_, oldest) = self.rises.remove(0);
            if let Some((_, next)) = self.rises.first_mut() {
                *next = next.saturating_add(oldest);
            }
        }
    }

    /// By how much it rose within the time that is looked at.
    pub(super) fn lately(&self) -> u64 {
        self.rises.iter().fold(0, |sum, (_, more)| sum.saturating_add(*more))
    }
}

//! A state of an array that ends by itself: one of its drives is being filled.

use super::course::{Passing, Runner};
use super::yard::is_rebuilding;
use crate::error::BenchError;
use engine::manage::command::ArrayStatus;
use std::time::{Duration, Instant};

/// While a drive is being filled, and how fast it is.
#[derive(Default)]
pub struct Rebuilding {
    /// When it was last seen, and how many bytes were filled then.
    seen: Option<(Instant, u64)>,
    /// Since when the piece that was run last.
    last: Option<(Duration, u64)>,
    time: Duration,
    bytes: u64,
}

impl Rebuilding {
    /// Bytes a second that were filled in the pieces that count.
    pub fn speed(&self) -> f64 {
        if self.time.is_zero() { 0.0 } else { self.bytes as f64 / self.time.as_secs_f64() }
    }
}

/// Bytes that are filled of the drive that is, if it is; what nothing was written to is passed over
/// and does not count.
fn filled(array: &ArrayStatus, used: u64) -> Option<u64> {
    let task = array.tasks.first().filter(|_| is_rebuilding(array))?;
    (task.done_bytes < used).then_some(task.done_bytes)
}

impl Passing for Rebuilding {
    fn enter(&mut self, runner: &mut Runner<'_>) -> Result<(), BenchError> {
        runner.yard.begin_rebuild()?;
        self.seen = Some((Instant::now(), 0));
        Ok(())
    }

    fn holds(&mut self, runner: &Runner<'_>) -> Result<bool, BenchError> {
        let used = runner.yard.used();
        let filled = runner.yard.status()?.as_ref().and_then(|array| filled(array, used));
        let now = filled.map(|bytes| (Instant::now(), bytes));
        self.last = match (self.seen, now) {
            (Some((then, before)), Some((now, bytes))) => {
                Some((now - then, bytes.saturating_sub(before)))
            }
            _ => None,
        };
        self.seen = now;
        Ok(filled.is_some())
    }

    fn keep(&mut self) {
        if let Some((time, bytes)) = self.last.take() {
            self.time += time;
            self.bytes += bytes;
        }
    }

    fn drop_all(&mut self) {
        (self.time, self.bytes) = (Duration::ZERO, 0);
    }
}

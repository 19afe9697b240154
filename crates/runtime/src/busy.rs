//! What a core counts of its own time.
//!
//! Invariants
//! - One thread writes, the core's; a word is loaded and stored. No other core's words are in the
//!   same cache lines.
//! - The time asleep and whether the core sleeps are one word: no reader adds a sleep twice.

use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// How a core has spent its time since it started. What it neither looked nor slept through was
/// work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreCounts {
    /// That time.
    pub time: Nanos,
    /// In which it had nothing to do, and looked around.
    pub looking: Nanos,
    /// In which it slept.
    pub asleep: Nanos,
    /// Turns.
    pub turns: u64,
    /// Mail that came, from other cores and other threads.
    pub mails: u64,
}

/// The words of one core.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct Busy {
    turns: AtomicU64,
    mails: AtomicU64,
    looking: AtomicU64,
    /// Twice the time asleep; while it sleeps twice that less the moment since, and 1.
    asleep: AtomicU64,
}

#[inline]
fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

impl Busy {
    /// A turn is over.
    #[inline]
    pub fn turn(&self) {
        add(&self.turns, 1);
    }

    /// So much mail came.
    pub fn mail(&self, count: usize) {
        add(&self.mails, count as u64);
    }

    /// The core has looked around for so long.
    pub fn looked(&self, time: Nanos) {
        add(&self.looking, time.0);
    }

    /// The core sleeps from now on.
    pub fn sleeps(&self, now: Nanos) {
        let asleep = self.asleep.load(Ordering::Relaxed) >> 1;
        self.asleep.store(asleep.wrapping_sub(now.0) << 1 | 1, Ordering::Relaxed);
    }

    /// The core is awake again.
    pub fn woke(&self, now: Nanos) {
        let since = self.asleep.load(Ordering::Relaxed) >> 1;
        self.asleep.store(since.wrapping_add(now.0) << 1, Ordering::Relaxed);
    }

    /// What was counted until now.
    pub fn read(&self, now: Nanos) -> CoreCounts {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let word = read(&self.asleep);
        // The upper bit was lost when the lower one came in.
        let asleep = match word & 1 {
            0 => word >> 1,
            _ => (word >> 1).wrapping_add(now.0) & (u64::MAX >> 1),
        };
        // It may have gone to sleep just behind `now`.
        let asleep = if asleep > now.0 { 0 } else { asleep };
        CoreCounts {
            time: now,
            looking: Nanos(read(&self.looking)),
            asleep: Nanos(asleep),
            turns: read(&self.turns),
            mails: read(&self.mails),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_counts_while_it_lasts_and_once() {
        let busy = Busy::default();
        let asleep = |now| busy.read(Nanos(now)).asleep.0;
        assert_eq!(asleep(5), 0);
        busy.sleeps(Nanos(10));
        assert_eq!((asleep(10), asleep(17), asleep(9)), (0, 7, 0));
        busy.woke(Nanos(30));
        assert_eq!((asleep(30), asleep(99)), (20, 20));
        busy.sleeps(Nanos(100));
        assert_eq!((asleep(100), asleep(101)), (20, 21));
        busy.woke(Nanos(1 << 60));
        assert_eq!(asleep(1 << 61), 20 + (1 << 60) - 100);
    }

    #[test]
    fn the_rest_is_added_up() {
        let busy = Busy::default();
        (0..3).for_each(|_| busy.turn());
        busy.mail(2);
        busy.looked(Nanos(7));
        busy.looked(Nanos(8));
        let CoreCounts { time, looking, asleep, turns, mails } = busy.read(Nanos(50));
        assert_eq!((time.0, looking.0, asleep.0, turns, mails), (50, 15, 0, 3, 2));
    }
}

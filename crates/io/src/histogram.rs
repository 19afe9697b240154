//! How long requests took: counted by one thread, read by any.
//!
//! Invariant: a word has one writing thread, so that it is loaded and stored, without an atomic
//! step that two threads share.

use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// Intervals of a [`Histogram`].
pub const BUCKETS: usize = 26;

/// One thread's addition to a word that it alone writes.
#[inline]
pub fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

/// How many requests took how long.
#[derive(Default, Debug)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
}

/// What a [`Histogram`] held when it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Times {
    /// Requests, by the interval of their time: see [`Histogram::bucket`].
    pub buckets: [u64; BUCKETS],
    /// Their times together.
    pub nanos: u64,
}

impl Histogram {
    /// The interval of a time: 0 up to one microsecond, `n` above 2^(n-1) and up to 2^n, the last
    /// all above 2^24.
    #[inline]
    pub const fn bucket(time: Nanos) -> usize {
        let micros = time.0.div_ceil(1000);
        let bits = (u64::BITS - micros.saturating_sub(1).leading_zeros()) as usize;
        if bits < BUCKETS { bits } else { BUCKETS - 1 }
    }

    /// Counts a request that took so long.
    #[inline]
    pub fn note(&self, time: Nanos) {
        if let Some(bucket) = self.buckets.get(Self::bucket(time)) {
            add(bucket, 1);
        }
        add(&self.nanos, time.0);
    }

    /// What was counted.
    pub fn read(&self) -> Times {
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Times { buckets: self.buckets.each_ref().map(read), nanos: read(&self.nanos) }
    }
}

impl Times {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (own, more) in self.buckets.iter_mut().zip(other.buckets) {
            *own = own.wrapping_add(more);
        }
        self.nanos = self.nanos.wrapping_add(other.nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_ends_at_twice_what_the_one_before_does() {
        let bucket = |nanos| Histogram::bucket(Nanos(nanos));
        assert_eq!((bucket(0), bucket(1), bucket(1000)), (0, 0, 0));
        for n in 1..BUCKETS - 1 {
            let end = 1000 << n;
            assert_eq!((bucket(end / 2 + 1), bucket(end), bucket(end + 1)), (n, n, n + 1));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn times_of_two_are_added() {
        let (one, two) = (Histogram::default(), Histogram::default());
        [500, 900, 3_000].iter().for_each(|nanos| one.note(Nanos(*nanos)));
        [3_500, 1 << 50].iter().for_each(|nanos| two.note(Nanos(*nanos)));
        let mut both = one.read();
        both.add(&two.read());
        let mut buckets = [0; BUCKETS];
        (buckets[0], buckets[2], buckets[BUCKETS - 1]) = (2, 2, 1);
        assert_eq!(both, Times { buckets, nanos: 500 + 900 + 3_000 + 3_500 + (1 << 50) });
    }
}

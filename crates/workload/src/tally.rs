//! What came of a load.

use crate::latency::Latencies;
use units::Nanos;

/// Reads or writes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Side {
    /// Bytes of those that were done.
    pub bytes: u64,
    /// How long they took.
    pub times: Latencies,
}

/// What one core, or all of them, came to in the time that counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Reads.
    pub reads: Side,
    /// Writes.
    pub writes: Side,
    /// Requests that were done at any time, before and behind the time that counts as well.
    pub made: u64,
    /// Requests that failed, at any time.
    pub failed: u64,
    /// Reads that found something else than was written, at any time, and where the first did.
    pub wrong: (u64, Option<u64>),
    /// Requests done in each second, or in each interval that was asked for.
    pub series: Vec<u64>,
    /// The time that counts.
    pub time: Nanos,
}

impl Tally {
    /// Adds what another core came to in the same time.
    pub fn add(&mut self, other: &Self) {
        for (own, more) in [(&mut self.reads, &other.reads), (&mut self.writes, &other.writes)] {
            own.bytes += more.bytes;
            own.times.add(&more.times);
        }
        self.made += other.made;
        self.failed += other.failed;
        let first = self.wrong.1.into_iter().chain(other.wrong.1).min();
        self.wrong = (self.wrong.0 + other.wrong.0, first);
        self.series.resize(self.series.len().max(other.series.len()), 0);
        self.series.iter_mut().zip(&other.series).for_each(|(own, more)| *own += more);
        self.time = self.time.max(other.time);
    }

    /// What several came to in the same time.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        all.into_iter().for_each(|own| sum.add(own));
        sum
    }

    /// Adds what came of a later time, so that both are as one.
    pub fn then(&mut self, next: &Self) {
        let time = Nanos(self.time.0 + next.time.0);
        let series = [&self.series[..], &next.series].concat();
        self.add(next);
        (self.time, self.series) = (time, series);
    }

    /// Requests that were done.
    pub fn operations(&self) -> u64 {
        self.reads.times.count() + self.writes.times.count()
    }

    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.a_second(self.operations())
    }

    /// Bytes a second.
    pub fn bandwidth(&self) -> f64 {
        self.a_second(self.reads.bytes + self.writes.bytes)
    }

    fn a_second(&self, count: u64) -> f64 {
        if self.time == Nanos(0) { 0.0 } else { count as f64 * 1e9 / self.time.0 as f64 }
    }

    /// Reads and writes together.
    pub fn times(&self) -> Latencies {
        let mut both = self.reads.times.clone();
        both.add(&self.writes.times);
        both
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(count: u64, bytes: u64, time: u64) -> Tally {
        let mut tally = Tally { made: count, time: Nanos(time), ..Tally::default() };
        tally.series = vec![count];
        tally.reads.bytes = bytes;
        (0..count).for_each(|_| tally.reads.times.note(Nanos(1000)));
        tally
    }

    #[test]
    fn cores_share_a_time_and_later_ones_follow() {
        let (mut beside, mut behind) = (tally(10, 100, 50), tally(10, 100, 50));
        beside.add(&tally(30, 300, 50));
        behind.then(&tally(30, 300, 50));
        assert_eq!((beside.operations(), behind.operations()), (40, 40));
        assert_eq!((beside.time, behind.time), (Nanos(50), Nanos(100)));
        assert_eq!((&beside.series[..], &behind.series[..]), (&[40][..], &[10, 30][..]));
        assert_eq!(beside.bandwidth(), 2.0 * behind.bandwidth());
    }
}

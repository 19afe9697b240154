//! Latencies: a histogram whose intervals grow with the time, as in HdrHistogram (Gil Tene): each
//! power of two is cut into 128, so that a time is known to less than a hundredth.

use units::Nanos;

/// Intervals of a power of two.
const PARTS: u64 = 128;
/// The times below this have an interval each.
const EXACT: u64 = 2 * PARTS;
/// All intervals: [`EXACT`], and [`PARTS`] for each further power of two.
const INTERVALS: usize = (EXACT + (64 - 8) * PARTS) as usize;

/// How many requests took how long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Latencies {
    counts: Box<[u64]>,
    count: u64,
    nanos: u128,
    longest: Nanos,
}

impl Default for Latencies {
    fn default() -> Self {
        let counts = vec![0; INTERVALS].into();
        Self { counts, count: 0, nanos: 0, longest: Nanos(0) }
    }
}

/// The interval of a time.
#[inline]
fn interval(nanos: u64) -> usize {
    if nanos < EXACT {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - PARTS.ilog2();
    (u64::from(shift) * PARTS + (nanos >> shift)) as usize
}

/// The shortest time of an interval, and how many it has.
fn times(interval: usize) -> (u64, u64) {
    let interval = interval as u64;
    if interval < EXACT {
        return (interval, 1);
    }
    let shift = interval / PARTS - 1;
    ((interval - shift * PARTS) << shift, 1 << shift)
}

impl Latencies {
    /// Counts a request that took so long.
    #[inline]
    pub fn note(&mut self, time: Nanos) {
        self.note_many(time, 1);
    }

    /// Counts so many requests that took so long.
    #[inline]
    pub fn note_many(&mut self, time: Nanos, count: u64) {
        self.counts[interval(time.0)] += count;
        self.count += count;
        self.nanos += u128::from(time.0) * u128::from(count);
        self.longest = self.longest.max(time);
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, more)| *own += more);
        self.count += other.count;
        self.nanos += other.nanos;
        self.longest = self.longest.max(other.longest);
    }

    /// Requests counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean in nanoseconds; 0 if nothing was counted.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.nanos as f64 / self.count as f64 }
    }

    /// The longest.
    pub fn longest(&self) -> Nanos {
        self.longest
    }

    /// The time that this part of the requests, 0 to 1, did not exceed; 0 if nothing was counted.
    /// Those of one interval are taken for evenly spread over it.
    pub fn below(&self, part: f64) -> Nanos {
        let rank = ((self.count as f64 * part).ceil() as u64).clamp(1, self.count.max(1));
        let mut before = 0;
        for (interval, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            if before + count >= rank {
                let (first, width) = times(interval);
                let within = u128::from(width) * u128::from(rank - before - 1) / u128::from(*count);
                return Nanos((first + within as u64).min(self.longest.0));
            }
            before += count;
        }
        Nanos(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_each_other_and_are_narrow() {
        assert_eq!(interval(u64::MAX), INTERVALS - 1);
        let mut last = 0;
        let far = (16..64).flat_map(|n| [(1 << n) - 1, 1 << n, 3 << (n - 1)]);
        for nanos in (0..40_000).chain(far) {
            let at = interval(nanos);
            if nanos < 40_000 {
                assert!(at == last || at == last + 1, "{nanos}");
                last = at;
            }
            let (first, width) = times(at);
            assert!(first <= nanos && nanos - first < width, "{nanos} is not in {first}, {width}");
            assert!(width == 1 || width <= nanos / PARTS, "{width} is wide for {nanos}");
        }
    }

    #[test]
    fn parts_are_as_in_a_sorted_list() {
        let mut times = Latencies::default();
        let mut random = crate::random::Random::new(3);
        let mut all: Vec<u64> = (0..10_000).map(|_| 1 << random.below(20)).collect();
        all.iter_mut().for_each(|time| *time += random.below(*time));
        let (one, two) = all.split_at(3_000);
        let mut more = Latencies::default();
        one.iter().for_each(|time| times.note(Nanos(*time)));
        two.iter().for_each(|time| more.note(Nanos(*time)));
        times.add(&more);
        all.sort_unstable();
        for part in [0.0, 0.5, 0.99, 0.999, 1.0] {
            let rank = ((all.len() as f64 * part).ceil() as usize).max(1);
            let (exact, told) = (all[rank - 1] as f64, times.below(part).0 as f64);
            assert!((told - exact).abs() <= exact / 100.0, "{part}: {told}, not {exact}");
        }
        let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
        assert!((times.mean() / mean - 1.0).abs() < 1e-9);
        assert_eq!((times.count(), times.longest().0), (10_000, all[9_999]));
        assert_eq!((Latencies::default().below(0.5), Latencies::default().mean()), (Nanos(0), 0.0));
    }
}

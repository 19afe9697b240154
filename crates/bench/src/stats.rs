//! Medians of rounds.
//!
//! A comparison is a list of rounds; each round measured both sides back to back. Sums over a
//! round's slices are taken first, then the round's ratio, then the median over the rounds: one
//! disturbed round moves the median by one place at most.

use std::time::Duration;

/// What one side did in one stretch of time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sample {
    /// Requests completed.
    pub operations: u64,
    /// Time they took, all together.
    pub elapsed: Duration,
    /// CPU time of the whole process meanwhile.
    pub cpu: Duration,
}

impl Sample {
    /// Both stretches together.
    pub fn and(self, other: Sample) -> Sample {
        Sample {
            operations: self.operations + other.operations,
            elapsed: self.elapsed + other.elapsed,
            cpu: self.cpu + other.cpu,
        }
    }

    /// Requests per second; 0 if nothing was done.
    pub fn rate(&self) -> f64 {
        quotient(self.operations as f64, self.elapsed.as_secs_f64())
    }

    /// Microseconds of CPU time per request; 0 if nothing was done.
    pub fn cpu_micros(&self) -> f64 {
        quotient(self.cpu.as_secs_f64() * 1e6, self.operations as f64)
    }
}

fn quotient(over: f64, under: f64) -> f64 {
    if under > 0.0 { over / under } else { 0.0 }
}

/// A median with the smallest and the largest value it was taken from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The median; of an even number of values the mean of the middle two.
    pub median: f64,
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
}

impl Spread {
    /// The spread of these values; `None` if there are none or one is no number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        if values.iter().any(|v| !v.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            1 => values[middle],
            _ => (values[middle - 1] + values[middle]) / 2.0,
        };
        Some(Spread { median, low, high })
    }

    /// This spread in another unit.
    pub fn scaled(self, factor: f64) -> Spread {
        let Spread { median, low, high } = self;
        Spread { median: median * factor, low: low * factor, high: high * factor }
    }
}

/// One round: side A (what is compared with) and side B (what is measured).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Round {
    /// What is compared with.
    pub a: Sample,
    /// What is measured.
    pub b: Sample,
}

/// The rounds' ratios of B's rate to A's.
pub fn rate_ratio(rounds: &[Round]) -> Option<Spread> {
    Spread::of(rounds.iter().map(|r| r.b.rate() / r.a.rate()))
}

/// The rounds' ratios of B's CPU time per request to A's.
pub fn cpu_ratio(rounds: &[Round]) -> Option<Spread> {
    Spread::of(rounds.iter().map(|r| r.b.cpu_micros() / r.a.cpu_micros()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(operations: u64, millis: u64, cpu_millis: u64) -> Sample {
        let (elapsed, cpu) = (Duration::from_millis(millis), Duration::from_millis(cpu_millis));
        Sample { operations, elapsed, cpu }
    }

    #[test]
    fn medians() {
        let spread = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.0, low: 1.0, high: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of([7.0]).unwrap(), Spread { median: 7.0, low: 7.0, high: 7.0 });
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([1.0, f64::NAN]), None);
        let scaled = spread.scaled(10.0);
        assert_eq!((scaled.median, scaled.low, scaled.high), (20.0, 10.0, 30.0));
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // Each round runs on a machine of another speed: the ratio stays.
        let round = |slow: u64| Round { a: sample(1000, slow, slow), b: sample(400, slow, slow) };
        let rounds = [round(10), round(500), round(70)];
        let ratio = rate_ratio(&rounds).unwrap();
        assert!((ratio.low - 0.4).abs() < 1e-9 && (ratio.high - 0.4).abs() < 1e-9);
        let cpu = cpu_ratio(&rounds).unwrap();
        assert!((cpu.median - 2.5).abs() < 1e-9);
    }

    #[test]
    fn samples_add_up() {
        let both = sample(10, 5, 2).and(sample(20, 5, 4));
        assert_eq!(both, sample(30, 10, 6));
        assert!((both.rate() - 3000.0).abs() < 1e-6 && (both.cpu_micros() - 200.0).abs() < 1e-6);
        assert_eq!(Sample::default().rate(), 0.0);
        assert_eq!(rate_ratio(&[Round::default()]), None);
    }
}

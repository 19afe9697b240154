//! Whether a load's figures are those of a steady state, and how much they vary.
//!
//! Steady is what SNIA's Solid State Storage Performance Test Specification 2.0.2 calls so (section
//! 2.1, definitions, "Steady State"): within five windows the values' range is no more than 20% of
//! their mean, and the line that fits them best rises or falls by no more than 10% of it.

/// Windows that are looked at.
pub const WINDOWS: usize = 5;
/// Most of the mean that the windows' values may be apart.
pub const RANGE: f64 = 0.20;
/// Most of the mean that their best line may rise or fall from the first to the last.
pub const DRIFT: f64 = 0.10;

/// How steady the last windows are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Steadiness {
    /// There are less than [`WINDOWS`].
    Few,
    /// Range and drift, in parts of the mean.
    Known {
        /// The largest less the smallest.
        range: f64,
        /// How much the line that fits best rises or falls.
        drift: f64,
    },
}

impl Steadiness {
    /// Of these windows the last ones.
    pub fn of(windows: &[f64]) -> Self {
        let Some(last) = windows.len().checked_sub(WINDOWS).map(|from| &windows[from..]) else {
            return Self::Few;
        };
        let mean = mean(last);
        if mean <= 0.0 {
            // Nothing was done: that is no state.
            return Self::Known { range: f64::INFINITY, drift: f64::INFINITY };
        }
        let (least, most) = last.iter().fold((f64::INFINITY, 0.0f64), |(least, most), value| {
            (least.min(*value), most.max(*value))
        });
        let middle = (WINDOWS - 1) as f64 / 2.0;
        let weighted = |(at, value): (usize, &f64)| (at as f64 - middle) * (value - mean);
        let over: f64 = last.iter().enumerate().map(weighted).sum();
        let under: f64 = (0..WINDOWS).map(|at| (at as f64 - middle).powi(2)).sum();
        let drift = (over / under * (WINDOWS - 1) as f64).abs();
        Self::Known { range: (most - least) / mean, drift: drift / mean }
    }

    /// Whether this is a steady state.
    pub fn is_steady(self) -> bool {
        matches!(self, Self::Known { range, drift } if range <= RANGE && drift <= DRIFT)
    }
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The coefficient of variation: the sample's standard deviation in parts of the mean; 0 of less
/// than two values, or where the mean is.
pub fn cov(values: &[f64]) -> f64 {
    let mean = mean(values);
    if values.len() < 2 || mean == 0.0 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(windows: &[f64]) -> (f64, f64) {
        match Steadiness::of(windows) {
            Steadiness::Known { range, drift } => (range, drift),
            Steadiness::Few => panic!("{windows:?} are few"),
        }
    }

    #[test]
    fn what_is_flat_is_steady() {
        assert_eq!(known(&[7.0; 5]), (0.0, 0.0));
        assert!(Steadiness::of(&[99.0, 101.0, 100.0, 98.0, 102.0]).is_steady());
        // Only the last five count.
        assert!(Steadiness::of(&[900.0, 500.0, 7.0, 7.0, 7.0, 7.0, 7.0]).is_steady());
    }

    #[test]
    fn what_falls_jumps_or_stalls_is_not() {
        // A line from 106 to 94: 12% down, though its range is fine.
        let (range, drift) = known(&[106.0, 103.0, 100.0, 97.0, 94.0]);
        assert!((range - 0.12).abs() < 1e-9 && (drift - 0.12).abs() < 1e-9);
        assert!(!Steadiness::of(&[106.0, 103.0, 100.0, 97.0, 94.0]).is_steady());
        // Up and down by 11% each: no drift, but a range of 22%.
        let (range, drift) = known(&[100.0, 111.0, 89.0, 111.0, 89.0]);
        assert!(range > RANGE && drift < DRIFT + 0.05);
        assert!(!Steadiness::of(&[100.0, 111.0, 89.0, 100.0, 100.0]).is_steady());
        // A stall in one of them.
        assert!(!Steadiness::of(&[100.0, 100.0, 0.0, 100.0, 100.0]).is_steady());
        assert!(!Steadiness::of(&[0.0; 5]).is_steady());
        assert!(!Steadiness::of(&[100.0; 4]).is_steady());
    }

    #[test]
    fn variation_is_the_samples() {
        assert_eq!((cov(&[]), cov(&[3.0]), cov(&[0.0, 0.0])), (0.0, 0.0, 0.0));
        // By hand: mean 100, squares 100 + 0 + 100, over two: 10.
        assert!((cov(&[90.0, 100.0, 110.0]) - 0.1).abs() < 1e-12);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
    }
}

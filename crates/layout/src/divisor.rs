//! Division by a number known at start, as one multiplication.
//!
//! Purpose: `locate` divides for every 4 KiB read; a multiplication by the reciprocal costs a
//! fifth of a 64-bit division on older cores.
//!
//! Invariant: exact for every number below 2^48. With `magic = ceil(2^64 / d)` the product
//! `n * magic` exceeds `n * 2^64 / d` by `n * e / d`, where `e = magic * d - 2^64 < d`; the
//! quotient is right while `n * e < 2^64`, which `n < 2^48` and `d <= 2^16` ensure.

/// Numbers below this are divided exactly.
pub const EXACT_BELOW: u64 = 1 << 48;

/// A divisor from 1 to 65535 with its reciprocal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Divisor {
    by: u64,
    magic: u64,
}

impl Divisor {
    /// Prepares division by `by`, which is not 0.
    pub fn new(by: u16) -> Self {
        assert!(by != 0, "division by zero");
        let by = u64::from(by);
        // ceil(2^64 / by) for by >= 2; unused for 1.
        Self { by, magic: (u64::MAX / by).wrapping_add(1) }
    }

    /// Quotient and remainder of `n`, which is below [`EXACT_BELOW`].
    #[inline]
    pub fn div_rem(self, n: u64) -> (u64, u64) {
        if self.by == 1 {
            return (n, 0);
        }
        let quotient = ((u128::from(n) * u128::from(self.magic)) >> 64) as u64;
        (quotient, n - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_division() {
        for by in (1..=300).chain([1 << 12, 65_521, u16::MAX]) {
            let divisor = Divisor::new(by);
            let d = u64::from(by);
            for base in [0, d, 1 << 20, 1 << 32, (EXACT_BELOW / d) * d] {
                for n in base.saturating_sub(2)..(base + 3).min(EXACT_BELOW) {
                    assert_eq!(divisor.div_rem(n), (n / d, n % d), "{n} / {d}");
                }
            }
        }
    }
}

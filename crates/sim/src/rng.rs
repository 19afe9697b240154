//! Random numbers from a seed: xoshiro256** seeded by splitmix64.
//!
//! Source: D. Blackman, S. Vigna, "Scrambled linear pseudorandom number generators" (2018), and
//! the authors' public-domain reference code.
//!
//! Invariant: the sequence depends on the seed alone, on every machine.

/// A generator of random numbers; clones go on with the same numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

/// One step of splitmix64: a well-mixed number for each input.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut at = seed;
        let state = core::array::from_fn(|_| {
            let word = mix(at);
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            word
        });
        Self { state }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "an empty range has no number");
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// A number in `0..end` as an index.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    ///
    /// # Panics
    /// If `low` is more than `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "an empty range has no number");
        match (high - low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.bits(),
        }
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u8) -> bool {
        percent > 0 && self.below(100) < u64::from(percent)
    }

    /// One of the two with equal chances.
    pub fn coin(&mut self) -> bool {
        self.bits() >> 63 == 1
    }

    /// Fills `into` with random bytes.
    pub fn fill(&mut self, into: &mut [u8]) {
        let mut words = into.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.bits().to_le_bytes());
        }
        let rest = words.into_remainder();
        let last = self.bits().to_le_bytes();
        let bytes = rest.len();
        rest.copy_from_slice(&last[..bytes]);
    }

    /// A generator of its own, drawn from this one.
    pub fn fork(&mut self) -> Rng {
        Rng::new(self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_agrees_with_its_reference() {
        // First outputs of the reference code for seed 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn ranges_hold_and_seeds_differ() {
        let mut a = Rng::new(1);
        let mut b = Rng::new(2);
        assert_ne!(a.bits(), b.bits());
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[a.index(7)] = true;
            let n = a.between(5, 9);
            assert!((5..=9).contains(&n));
        }
        assert_eq!(seen, [true; 7]);
        assert!(!a.chance(0) && a.chance(100));
        a.between(0, u64::MAX);
    }

    #[test]
    fn every_byte_is_filled() {
        let mut bytes = [[0u8; 13]; 64];
        let mut rng = Rng::new(3);
        bytes.iter_mut().for_each(|b| rng.fill(b));
        for at in 0..13 {
            assert!(bytes.iter().any(|b| b[at] != bytes[0][at]));
        }
    }
}

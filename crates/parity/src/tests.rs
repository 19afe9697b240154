//! Every kernel against the naive reference, and the field against its laws.
//!
//! Purpose: correctness by erasure pattern, length and offset; the coefficients are derived here
//! once more, by carry-less multiplication and long division.

#[path = "../tests/support/arena.rs"]
mod arena;
mod bounds;
mod erasures;
mod faults;
mod field;
mod patterns;
mod properties;
pub(crate) mod streams;

use crate::kernel::Kernel;
use crate::reference;
use crate::select;

/// Small deterministic generator (SplitMix64) for test data.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Every kernel this processor can run.
pub(crate) fn each_kernel() -> Vec<Kernel> {
    select::all_supported()
}

/// A stripe: `k` strips of random data and `m` parities from the reference.
pub(crate) fn stripe(random: &mut Random, k: usize, m: usize, len: usize) -> Vec<Vec<u8>> {
    let mut strips: Vec<_> = (0..k).map(|_| random.bytes(len)).collect();
    for row in 0..m {
        let parity = (0..len)
            .map(|at| reference::parity_byte(m, row, strips[..k].iter().map(|strip| strip[at])))
            .collect();
        strips.push(parity);
    }
    strips
}

/// The strips as slices.
pub(crate) fn slices(strips: &[Vec<u8>]) -> Vec<&[u8]> {
    strips.iter().map(Vec::as_slice).collect()
}

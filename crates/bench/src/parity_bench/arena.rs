//! The memory that the contests work on.
//!
//! Pools as the engine's: page-aligned, one allocation per kind of strip. Everything is made and
//! touched before anything is measured.
//!
//! Invariant: both sides read the same inputs and write outputs of their own.

use io::{BufMut, Pool};
use workload::Random;

/// Most data strips of a contest.
pub const MAX_DATA: usize = 16;
/// Outputs of each side.
const OUTPUTS: usize = 8;
/// Parities that a contest may need as inputs.
const PARITIES: usize = 2;

/// Strips of one length.
pub struct Arena {
    /// Random bytes.
    pub data: Vec<BufMut>,
    /// Inputs that follow from the data.
    pub parity: Vec<BufMut>,
    /// What Palisade writes.
    pub ours: Vec<BufMut>,
    /// What ISA-L writes.
    pub theirs: Vec<BufMut>,
    /// What `memcpy` writes.
    pub copies: Vec<BufMut>,
}

impl Arena {
    /// Strips of `bytes` each.
    pub fn new(bytes: usize) -> Self {
        let (mut random, mut bits) = (Random::new(0x7061_7269), bytes as u64);
        let mut strips = |count| -> Vec<BufMut> {
            let pool = Pool::new(bytes, count);
            let mut all: Vec<_> = (0..count).filter_map(|_| pool.take(bytes)).collect();
            // Every page is touched; outputs begin unlike each other and unlike any result.
            for strip in &mut all {
                bits += 1;
                strip.fill(bits as u8);
            }
            all
        };
        let mut data = strips(MAX_DATA);
        data.iter_mut().for_each(|strip| random.fill(strip));
        Self {
            data,
            parity: strips(PARITIES),
            ours: strips(OUTPUTS),
            theirs: strips(OUTPUTS),
            copies: strips(MAX_DATA),
        }
    }
}

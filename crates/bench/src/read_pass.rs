//! A pass that only reads memory: the limit of everything that has to look at its data.
//!
//! The sum of all 64-bit words by exclusive or, compiled for the widest vectors of the processor;
//! plain Rust that the compiler turns into vector code.
//!
//! Invariant: a function compiled for a processor feature is called only where it was found.
#![allow(unsafe_code)]

/// Words in flight: eight vectors of 64 bytes.
const LANES: usize = 64;
/// Bytes of a step: lengths are multiples of it.
pub const STEP: usize = LANES * 8;

/// The sum of all words of `bytes`, whose length is a multiple of [`STEP`].
#[inline(always)]
fn sum(bytes: &[u8]) -> u64 {
    let mut sums = [0u64; LANES];
    for words in bytes.chunks_exact(STEP) {
        for (sum, word) in sums.iter_mut().zip(words.chunks_exact(8)) {
            *sum ^= u64::from_le_bytes(word.try_into().expect("8 bytes"));
        }
    }
    sums.into_iter().fold(0, |all, sum| all ^ sum)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn sum_avx512(bytes: &[u8]) -> u64 {
    sum(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sum_avx2(bytes: &[u8]) -> u64 {
    sum(bytes)
}

/// Reads all of `bytes` once; the result depends on every word of them.
pub fn read(bytes: &[u8]) -> u64 {
    assert!(bytes.len().is_multiple_of(STEP), "whole steps");
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the feature was just found.
        return unsafe { sum_avx512(bytes) };
    } else if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the feature was just found.
        return unsafe { sum_avx2(bytes) };
    }
    sum(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_counts() {
        let mut bytes = vec![0u8; 2048];
        assert_eq!(read(&bytes), 0);
        for at in (0..2048).step_by(8) {
            bytes[at] = 0x5a;
            assert_eq!(read(&bytes), 0x5a, "the word at {at}");
            assert_eq!(sum(&bytes), 0x5a);
            bytes[at] = 0;
        }
    }
}

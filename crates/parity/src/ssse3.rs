//! A kernel on 16-byte vectors: SSSE3.
//!
//! Purpose: x86 without AVX2 is still met where arrays are kept: Atoms of storage boxes, and
//! virtual machines of the level x86-64-v2, which some hypervisors give by default. Nibble
//! shuffles are several times as fast there as the portable kernel's multiplication.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use crate::kernel::Candidate;
use crate::sweep::processor;
use crate::tables::Tables;
use crate::vector::Vector;

/// SSSE3 alone.
pub(crate) const SSSE3: Candidate = Candidate::of::<Ssse3>("ssse3");

processor!(
    /// SSSE3 alone.
    Ssse3, is_x86_feature_detected, ["ssse3"], Shuffle
);

/// 16 bytes, with SSSE3.
#[derive(Clone, Copy)]
struct Shuffle(__m128i);

// SAFETY: loads and stores are of 16 bytes.
unsafe impl Vector for Shuffle {
    const BYTES: usize = 16;
    type Group = [Self; 4];
    /// The nibble tables: products of low and of high nibbles.
    type Factor = (__m128i, __m128i);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for SSSE3.
        Self(unsafe { _mm_setzero_si128() })
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for SSSE3 and 16 bytes at `from`.
        Self(unsafe { _mm_loadu_si128(from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for SSSE3 and 16 bytes at `to`.
        unsafe { _mm_storeu_si128(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn store_streaming(self, to: *mut u8) {
        debug_assert!(to.addr().is_multiple_of(16));
        // SAFETY: the caller vouches for SSSE3, 16 bytes at `to`, its alignment and `fence`.
        unsafe { _mm_stream_si128(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: every x86-64 processor has SSE.
        unsafe { _mm_sfence() }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for SSSE3.
        Self(unsafe { _mm_xor_si128(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn double_xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for SSSE3.
        unsafe {
            let overflow = _mm_cmpgt_epi8(_mm_setzero_si128(), self.0);
            let reduce = _mm_and_si128(overflow, _mm_set1_epi8(0x1d));
            let shifted = _mm_add_epi8(self.0, self.0);
            Self(_mm_xor_si128(_mm_xor_si128(shifted, reduce), other.0))
        }
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
        let products = tables.nibbles[constant as usize].as_ptr();
        // SAFETY: the table has 32 bytes; the caller vouches for SSSE3.
        unsafe { (_mm_loadu_si128(products.cast()), _mm_loadu_si128(products.add(16).cast())) }
    }
    #[inline(always)]
    unsafe fn multiply(self, (low, high): Self::Factor) -> Self {
        // SAFETY: the caller vouches for SSSE3.
        unsafe {
            let mask = _mm_set1_epi8(15);
            let low_nibbles = _mm_and_si128(self.0, mask);
            let high_nibbles = _mm_and_si128(_mm_srli_epi64::<4>(self.0), mask);
            Self(_mm_xor_si128(
                _mm_shuffle_epi8(low, low_nibbles),
                _mm_shuffle_epi8(high, high_nibbles),
            ))
        }
    }
    #[inline(always)]
    unsafe fn is_zero(self) -> bool {
        // SAFETY: the caller vouches for SSSE3.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_setzero_si128())) == 0xffff }
    }
}

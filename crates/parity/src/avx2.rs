//! Kernels on 32-byte vectors: AVX2 alone, and AVX2 with GFNI.
//!
//! Purpose: the fast path of processors without AVX-512. AVX2 alone doubles by compare and
//! mask and multiplies by two nibble shuffles; GFNI multiplies by a bit matrix.
//! The tests run the same source over `model`, whatever the processor has.
#![allow(unsafe_code)]

use crate::kernel::Candidate;
use crate::sweep::processor;

/// AVX2 alone.
pub(crate) const AVX2: Candidate = Candidate::of::<Avx2>("avx2");
/// AVX2 and GFNI.
pub(crate) const GFNI: Candidate = Candidate::of::<Avx2Gfni>("gfni-avx2");

/// The same kernels over the model of their instructions.
#[cfg(test)]
pub(crate) const MODELS: [Candidate; 2] = [
    crate::model::candidate::<modelled::Shuffle>("avx2-model"),
    crate::model::candidate::<modelled::Affine>("gfni-avx2-model"),
];

processor!(
    /// AVX2 alone.
    Avx2, is_x86_feature_detected, ["avx2"], native::Shuffle
);

processor!(
    /// AVX2 and GFNI.
    Avx2Gfni, is_x86_feature_detected, ["avx2", "gfni"], native::Affine
);

/// The vectors over an instruction set: a module with the intrinsics' own names.
macro_rules! vectors {
    ($($isa:tt)+) => {
        use crate::tables::{self, Tables};
        use crate::vector::Vector;
        use $($isa)+::*;

        /// 32 bytes, with AVX2.
        #[derive(Clone, Copy)]
        pub(super) struct Shuffle(__m256i);

        /// 32 bytes, with AVX2 and GFNI.
        #[derive(Clone, Copy)]
        pub(super) struct Affine(__m256i);

        // SAFETY: loads and stores are of 32 bytes.
        unsafe impl Vector for Shuffle {
            common!();
            /// The nibble tables, each in both 16-byte halves: products of low and of high
            /// nibbles.
            type Factor = (__m256i, __m256i);

            #[inline(always)]
            unsafe fn double_xor(self, other: Self) -> Self {
                // SAFETY: the caller vouches for AVX2.
                unsafe {
                    let overflow = _mm256_cmpgt_epi8(_mm256_setzero_si256(), self.0);
                    let reduce = _mm256_and_si256(overflow, _mm256_set1_epi8(0x1d));
                    let shifted = _mm256_add_epi8(self.0, self.0);
                    Self(_mm256_xor_si256(_mm256_xor_si256(shifted, reduce), other.0))
                }
            }
            #[inline(always)]
            unsafe fn quadruple_xor(self, other: Self) -> Self {
                // Two look-ups are quicker than two doublings, see docs/parity-notes.md.
                // SAFETY: the caller vouches for AVX2.
                unsafe { self.multiply_xor(Self::factor(&tables::TABLES, 4), other) }
            }
            #[inline(always)]
            unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
                let products = tables.nibbles[constant as usize].as_ptr();
                // SAFETY: the table has 32 bytes; the caller vouches for AVX2.
                unsafe {
                    let both = _mm256_loadu_si256(products.cast());
                    let low = _mm256_permute2x128_si256::<0x00>(both, both);
                    let high = _mm256_permute2x128_si256::<0x11>(both, both);
                    (low, high)
                }
            }
            #[inline(always)]
            unsafe fn multiply(self, (low, high): Self::Factor) -> Self {
                // SAFETY: the caller vouches for AVX2.
                unsafe {
                    let mask = _mm256_set1_epi8(15);
                    let low_nibbles = _mm256_and_si256(self.0, mask);
                    let high_nibbles = _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), mask);
                    Self(_mm256_xor_si256(
                        _mm256_shuffle_epi8(low, low_nibbles),
                        _mm256_shuffle_epi8(high, high_nibbles),
                    ))
                }
            }
        }

        // SAFETY: loads and stores are of 32 bytes.
        unsafe impl Vector for Affine {
            common!();
            /// The constant's matrix in every 8 bytes.
            type Factor = __m256i;

            #[inline(always)]
            unsafe fn double_xor(self, other: Self) -> Self {
                // SAFETY: the caller vouches for AVX2 and GFNI.
                unsafe {
                    let two = _mm256_set1_epi64x(tables::DOUBLE as i64);
                    let doubled = _mm256_gf2p8affine_epi64_epi8::<0>(self.0, two);
                    Self(_mm256_xor_si256(doubled, other.0))
                }
            }
            #[inline(always)]
            unsafe fn quadruple_xor(self, other: Self) -> Self {
                // SAFETY: the caller vouches for AVX2 and GFNI.
                unsafe {
                    let four = _mm256_set1_epi64x(tables::TABLES.matrices[4] as i64);
                    let quadrupled = _mm256_gf2p8affine_epi64_epi8::<0>(self.0, four);
                    Self(_mm256_xor_si256(quadrupled, other.0))
                }
            }
            #[inline(always)]
            unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
                // SAFETY: the caller vouches for AVX2.
                unsafe { _mm256_set1_epi64x(tables.matrices[constant as usize] as i64) }
            }
            #[inline(always)]
            unsafe fn multiply(self, factor: Self::Factor) -> Self {
                // SAFETY: the caller vouches for AVX2 and GFNI.
                Self(unsafe { _mm256_gf2p8affine_epi64_epi8::<0>(self.0, factor) })
            }
        }
    };
}

/// The methods that need no multiplication, the same for both vectors.
macro_rules! common {
    () => {
        const BYTES: usize = 32;
        type Group = [Self; 4];

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: the caller vouches for AVX2.
            Self(unsafe { _mm256_setzero_si256() })
        }
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller vouches for AVX2 and 32 bytes at `from`.
            Self(unsafe { _mm256_loadu_si256(from.cast()) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the caller vouches for AVX2 and 32 bytes at `to`.
            unsafe { _mm256_storeu_si256(to.cast(), self.0) }
        }
        #[inline(always)]
        unsafe fn store_streaming(self, to: *mut u8) {
            debug_assert!(to.addr().is_multiple_of(32));
            // SAFETY: the caller vouches for AVX2, 32 bytes at `to`, its alignment and `fence`.
            unsafe { _mm256_stream_si256(to.cast(), self.0) }
        }
        #[inline(always)]
        unsafe fn fence() {
            // SAFETY: every x86-64 processor has SSE.
            unsafe { _mm_sfence() }
        }
        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: the caller vouches for AVX2.
            Self(unsafe { _mm256_xor_si256(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn is_zero(self) -> bool {
            // SAFETY: the caller vouches for AVX2.
            unsafe { _mm256_testz_si256(self.0, self.0) == 1 }
        }
    };
}

/// Over the processor's instructions.
mod native {
    vectors!(core::arch::x86_64);
}

/// Over the model's.
#[cfg(test)]
mod modelled {
    vectors!(crate::model);
}

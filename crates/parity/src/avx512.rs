//! Kernels on 64-byte vectors: AVX-512 (F and BW) alone, and with GFNI.
//!
//! Purpose: the fast path of newer processors. Three-way sums are one `vpternlogq`; AVX-512
//! alone multiplies by two nibble shuffles, GFNI by a bit matrix.
//! The tests run the same source over `model`, whatever the processor has.
#![allow(unsafe_code)]

use crate::kernel::Candidate;
use crate::sweep::processor;

/// AVX-512 alone.
pub(crate) const AVX512: Candidate = Candidate::of::<Avx512>("avx512");
/// AVX-512 and GFNI.
pub(crate) const GFNI: Candidate = Candidate::of::<Avx512Gfni>("gfni-avx512");

/// The same kernels over the model of their instructions.
#[cfg(test)]
pub(crate) const MODELS: [Candidate; 2] = [
    crate::model::candidate::<modelled::Shuffle>("avx512-model"),
    crate::model::candidate::<modelled::Affine>("gfni-avx512-model"),
];

processor!(
    /// AVX-512 alone.
    Avx512, is_x86_feature_detected, ["avx512f", "avx512bw"], native::Shuffle
);

processor!(
    /// AVX-512 and GFNI.
    Avx512Gfni, is_x86_feature_detected, ["avx512f", "avx512bw", "gfni"], native::Affine
);

/// The truth table of a ^ b ^ c.
const XOR3: i32 = 0x96;
/// The truth table of a ^ (c & !b).
const XOR_AND_NOT: i32 = 0xd2;

/// The vectors over an instruction set: a module with the intrinsics' own names.
macro_rules! vectors {
    ($($isa:tt)+) => {
        use super::{XOR_AND_NOT, XOR3};
        use crate::tables::{self, Tables};
        use crate::vector::Vector;
        use $($isa)+::*;

        /// 64 bytes, with AVX-512.
        #[derive(Clone, Copy)]
        pub(super) struct Shuffle(__m512i);

        /// 64 bytes, with AVX-512 and GFNI.
        #[derive(Clone, Copy)]
        pub(super) struct Affine(__m512i);

        // SAFETY: loads and stores are of 64 bytes.
        unsafe impl Vector for Shuffle {
            common!();
            /// The nibble tables, each in all four 16-byte quarters: products of low and of
            /// high nibbles.
            type Factor = (__m512i, __m512i);

            #[inline(always)]
            unsafe fn double_xor(self, other: Self) -> Self {
                // SAFETY: the caller vouches for AVX-512.
                unsafe {
                    // A shuffle answers 0 where the index's top bit is set: the polynomial where
                    // nothing is to reduce. No mask register is needed.
                    let polynomial = _mm512_set1_epi8(0x1d);
                    let whole = _mm512_shuffle_epi8(polynomial, self.0);
                    let shifted = _mm512_add_epi8(self.0, self.0);
                    let sum = _mm512_xor_si512(shifted, other.0);
                    Self(_mm512_ternarylogic_epi64::<XOR_AND_NOT>(sum, whole, polynomial))
                }
            }
            #[inline(always)]
            unsafe fn quadruple_xor(self, other: Self) -> Self {
                // Two look-ups are quicker than two doublings, see docs/parity-notes.md.
                // SAFETY: the caller vouches for AVX-512.
                unsafe { self.multiply_xor(Self::factor(&tables::TABLES, 4), other) }
            }
            #[inline(always)]
            unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
                let products = tables.nibbles[constant as usize].as_ptr();
                // SAFETY: the table has 32 bytes; the caller vouches for AVX-512.
                unsafe {
                    let low = _mm_loadu_si128(products.cast());
                    let high = _mm_loadu_si128(products.add(16).cast());
                    (_mm512_broadcast_i32x4(low), _mm512_broadcast_i32x4(high))
                }
            }
            #[inline(always)]
            unsafe fn multiply(self, factor: Self::Factor) -> Self {
                // SAFETY: the caller vouches for AVX-512.
                unsafe {
                    let (low, high) = halves(self.0, factor);
                    Self(_mm512_xor_si512(low, high))
                }
            }
            #[inline(always)]
            unsafe fn multiply_xor(self, factor: Self::Factor, other: Self) -> Self {
                // SAFETY: the caller vouches for AVX-512.
                unsafe {
                    let (low, high) = halves(self.0, factor);
                    Self(_mm512_ternarylogic_epi64::<XOR3>(low, high, other.0))
                }
            }
        }

        /// The products of the low nibbles and of the high nibbles.
        #[inline(always)]
        unsafe fn halves(bytes: __m512i, (low, high): (__m512i, __m512i)) -> (__m512i, __m512i) {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                let mask = _mm512_set1_epi8(15);
                let low_nibbles = _mm512_and_si512(bytes, mask);
                let high_nibbles = _mm512_and_si512(_mm512_srli_epi64::<4>(bytes), mask);
                (_mm512_shuffle_epi8(low, low_nibbles), _mm512_shuffle_epi8(high, high_nibbles))
            }
        }

        // SAFETY: loads and stores are of 64 bytes.
        unsafe impl Vector for Affine {
            common!();
            /// The constant's matrix in every 8 bytes.
            type Factor = __m512i;

            #[inline(always)]
            unsafe fn double_xor(self, other: Self) -> Self {
                // SAFETY: the caller vouches for AVX-512 and GFNI.
                unsafe {
                    let two = _mm512_set1_epi64(tables::DOUBLE as i64);
                    let doubled = _mm512_gf2p8affine_epi64_epi8::<0>(self.0, two);
                    Self(_mm512_xor_si512(doubled, other.0))
                }
            }
            #[inline(always)]
            unsafe fn quadruple_xor(self, other: Self) -> Self {
                // SAFETY: the caller vouches for AVX-512 and GFNI.
                unsafe {
                    let four = _mm512_set1_epi64(tables::TABLES.matrices[4] as i64);
                    let quadrupled = _mm512_gf2p8affine_epi64_epi8::<0>(self.0, four);
                    Self(_mm512_xor_si512(quadrupled, other.0))
                }
            }
            #[inline(always)]
            unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
                // SAFETY: the caller vouches for AVX-512.
                unsafe { _mm512_set1_epi64(tables.matrices[constant as usize] as i64) }
            }
            #[inline(always)]
            unsafe fn multiply(self, factor: Self::Factor) -> Self {
                // SAFETY: the caller vouches for AVX-512 and GFNI.
                Self(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self.0, factor) })
            }
        }
    };
}

/// The methods that need no multiplication, the same for both vectors.
macro_rules! common {
    () => {
        const BYTES: usize = 64;
        type Group = [Self; 2];

        #[inline(always)]
        unsafe fn zero() -> Self {
            // SAFETY: the caller vouches for AVX-512.
            Self(unsafe { _mm512_setzero_si512() })
        }
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller vouches for AVX-512 and 64 bytes at `from`.
            Self(unsafe { _mm512_loadu_si512(from.cast()) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the caller vouches for AVX-512 and 64 bytes at `to`.
            unsafe { _mm512_storeu_si512(to.cast(), self.0) }
        }
        #[inline(always)]
        unsafe fn store_streaming(self, to: *mut u8) {
            debug_assert!(to.addr().is_multiple_of(64));
            // SAFETY: the caller vouches for AVX-512, 64 bytes at `to`, its alignment, `fence`.
            unsafe { _mm512_stream_si512(to.cast(), self.0) }
        }
        #[inline(always)]
        unsafe fn fence() {
            // SAFETY: every x86-64 processor has SSE.
            unsafe { _mm_sfence() }
        }
        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: the caller vouches for AVX-512.
            Self(unsafe { _mm512_xor_si512(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn xor3(self, b: Self, c: Self) -> Self {
            // SAFETY: the caller vouches for AVX-512.
            Self(unsafe { _mm512_ternarylogic_epi64::<XOR3>(self.0, b.0, c.0) })
        }
        #[inline(always)]
        unsafe fn is_zero(self) -> bool {
            // SAFETY: the caller vouches for AVX-512.
            unsafe { _mm512_test_epi64_mask(self.0, self.0) == 0 }
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

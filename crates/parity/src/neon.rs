//! Kernels on the 16-byte vectors of 64-bit ARM: NEON alone, and with EOR3.
//!
//! Purpose: every AArch64 processor has NEON; EOR3, of the SHA-3 extension (Neoverse V1 and N2,
//! Apple's), sums three vectors at once. Both double by shift and sign, and multiply by two
//! nibble look-ups. Streaming stores are plain ones: these processors notice streams of whole
//! lines by themselves, and the paired non-temporal store is only a hint.
#![allow(unsafe_code)]

use core::arch::aarch64::*;

use crate::kernel::Candidate;
use crate::sweep::processor;
use crate::tables::Tables;
use crate::vector::Vector;

/// NEON alone.
pub(crate) const NEON: Candidate = Candidate::of::<Neon>("neon");
/// NEON and EOR3.
pub(crate) const EOR3: Candidate = Candidate::of::<NeonEor3>("neon-eor3");

processor!(
    /// NEON alone.
    Neon, is_aarch64_feature_detected, ["neon"], Lookup
);

processor!(
    /// NEON and EOR3, which the compiler makes of two sums in a row where it may.
    NeonEor3, is_aarch64_feature_detected, ["neon", "sha3"], Lookup
);

/// 16 bytes, with NEON.
#[derive(Clone, Copy)]
struct Lookup(uint8x16_t);

// SAFETY: loads and stores are of 16 bytes.
unsafe impl Vector for Lookup {
    const BYTES: usize = 16;
    type Group = [Self; 4];
    /// The nibble tables: products of low and of high nibbles.
    type Factor = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for NEON.
        Self(unsafe { vdupq_n_u8(0) })
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for NEON and 16 bytes at `from`.
        Self(unsafe { vld1q_u8(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for NEON and 16 bytes at `to`.
        unsafe { vst1q_u8(to, self.0) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for NEON.
        Self(unsafe { veorq_u8(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn double_xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for NEON.
        unsafe {
            let overflow = vcltzq_s8(vreinterpretq_s8_u8(self.0));
            let reduce = vandq_u8(overflow, vdupq_n_u8(0x1d));
            Self(vshlq_n_u8::<1>(self.0)).xor3(Self(reduce), other)
        }
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
        let products = tables.nibbles[constant as usize].as_ptr();
        // SAFETY: the table has 32 bytes; the caller vouches for NEON.
        unsafe { (vld1q_u8(products), vld1q_u8(products.add(16))) }
    }
    #[inline(always)]
    unsafe fn multiply(self, (low, high): Self::Factor) -> Self {
        // SAFETY: the caller vouches for NEON.
        unsafe {
            let low_nibbles = vandq_u8(self.0, vdupq_n_u8(15));
            let high_nibbles = vshrq_n_u8::<4>(self.0);
            Self(vqtbl1q_u8(low, low_nibbles)).xor(Self(vqtbl1q_u8(high, high_nibbles)))
        }
    }
    #[inline(always)]
    unsafe fn is_zero(self) -> bool {
        // SAFETY: the caller vouches for NEON.
        unsafe { vmaxvq_u8(self.0) == 0 }
    }
}

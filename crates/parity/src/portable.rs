//! The portable kernel: eight bytes at a time in a `u64`, and the byte-wise tail of all kernels.
//!
//! Purpose: right on every processor, and fast enough to be used. Compilers turn the groups of
//! four words into whatever vectors the target's baseline has.
//! Invariant: needs no processor feature; word operations never carry from byte to byte.
#![allow(unsafe_code)]

use crate::kernel::Candidate;
use crate::sweep::Any;
use crate::tables::Tables;
use crate::vector::Vector;

/// The portable kernel; always supported.
pub(crate) const CANDIDATE: Candidate = Candidate::of::<Any<[u64; 4]>>("portable");

/// `byte` in all eight lanes.
const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

// SAFETY: loads and stores are of 8 bytes; no processor feature is used.
unsafe impl Vector for u64 {
    const BYTES: usize = 8;
    type Group = [Self; 16];
    /// The constant times 2^i in all lanes, for each bit i.
    type Factor = [u64; 8];

    #[inline(always)]
    unsafe fn zero() -> Self {
        0
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for 8 bytes at `from`.
        unsafe { from.cast::<u64>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for 8 bytes at `to`.
        unsafe { to.cast::<u64>().write_unaligned(self) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    unsafe fn double_xor(self, other: Self) -> Self {
        let top = self & splat(0x80);
        // 0x7f in the lanes that overflow; enough to cover 0x1d.
        let overflow = top.wrapping_sub(top >> 7);
        ((self ^ top) << 1) ^ (overflow & splat(0x1d)) ^ other
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
        let products = &tables.nibbles[constant as usize];
        let mut factor = [0; 8];
        for i in 0..4 {
            factor[i] = splat(products[1 << i]);
            factor[4 + i] = splat(products[16 + (1 << i)]);
        }
        factor
    }
    #[inline(always)]
    unsafe fn multiply(self, factor: Self::Factor) -> Self {
        let mut product = 0;
        for (i, term) in factor.into_iter().enumerate() {
            let ones = (self >> i) & splat(1);
            // 0xff in the lanes whose bit i is set.
            product ^= (ones << 8).wrapping_sub(ones) & term;
        }
        product
    }
    #[inline(always)]
    unsafe fn is_zero(self) -> bool {
        self == 0
    }
}

// SAFETY: loads and stores are of 1 byte; no processor feature is used.
unsafe impl Vector for u8 {
    const BYTES: usize = 1;
    type Group = Self;
    /// The constant's nibble tables.
    type Factor = [u8; 32];

    #[inline(always)]
    unsafe fn zero() -> Self {
        0
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the byte at `from`.
        unsafe { from.read() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the byte at `to`.
        unsafe { to.write(self) }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    unsafe fn double_xor(self, other: Self) -> Self {
        (self << 1) ^ ((self >> 7) * 0x1d) ^ other
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
        tables.nibbles[constant as usize]
    }
    #[inline(always)]
    unsafe fn multiply(self, factor: Self::Factor) -> Self {
        factor[(self & 15) as usize] ^ factor[16 + (self >> 4) as usize]
    }
    #[inline(always)]
    unsafe fn is_zero(self) -> bool {
        self == 0
    }
}

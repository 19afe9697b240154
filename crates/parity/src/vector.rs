//! What a kernel must know about a machine: a small vector trait.
//!
//! Purpose: every algorithm in `sweep` is written once over `Vector`; a kernel is a type that
//! implements it. `u64` and `u8` implement it too, for tails, and an array of vectors is a
//! vector, which is how the loops are unrolled.
//! Invariant: bytes are independent lanes; no operation moves data from one lane to another.
#![allow(unsafe_code)]

use crate::tables::Tables;

/// A run of bytes, each an element of GF(2^8).
///
/// # Safety
///
/// An implementation reads and writes exactly `BYTES` bytes at the pointers it is given. Every
/// method may use processor features; the caller has checked that the processor has them.
/// Methods are `inline(always)`, so that they become part of a function compiled for those
/// features.
pub(crate) unsafe trait Vector: Copy {
    /// Bytes in one vector.
    const BYTES: usize;
    /// A constant prepared for multiplication.
    type Factor: Copy;
    /// As many vectors as most operations take at a time: 64 or 128 bytes. Measured on a Zen 5
    /// core with strips in the second-level cache: the sum of strips runs at 150 GB/s with two
    /// 64-byte vectors at a time, at 113 GB/s with four.
    type Group: Vector;

    /// All lanes 0.
    unsafe fn zero() -> Self;
    /// Loads `BYTES` bytes at `from`, which needs no alignment.
    unsafe fn load(from: *const u8) -> Self;
    /// Stores `BYTES` bytes at `to`, which needs no alignment.
    unsafe fn store(self, to: *mut u8);
    /// As `store` past the caches where the machine can; `to` is a multiple of `BYTES`, or of
    /// one element's `BYTES` for an array. Other threads may see it only after `fence`, and so
    /// may this one. As `store`, unless a backend can do better.
    #[inline(always)]
    unsafe fn store_streaming(self, to: *mut u8) {
        // SAFETY: as for `store`.
        unsafe { self.store(to) }
    }
    /// Orders all `store_streaming` of this thread before whatever follows; called once after
    /// the last of a job. A backend with its own `store_streaming` has its own of this.
    #[inline(always)]
    unsafe fn fence() {}
    /// The sum in the field.
    unsafe fn xor(self, other: Self) -> Self;
    /// The sum of three.
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller vouches for the processor.
        unsafe { self.xor(b).xor(c) }
    }
    /// 2·self ^ other: one step of Horner's rule.
    unsafe fn double_xor(self, other: Self) -> Self;
    /// 4·self ^ other: one step of Horner's rule for the squares of the coefficients.
    #[inline(always)]
    unsafe fn quadruple_xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the processor.
        unsafe { self.double_xor(Self::zero()).double_xor(other) }
    }
    /// Prepares `constant` for `multiply`.
    unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor;
    /// Every lane times the prepared constant.
    unsafe fn multiply(self, factor: Self::Factor) -> Self;
    /// The product ^ other.
    #[inline(always)]
    unsafe fn multiply_xor(self, factor: Self::Factor, other: Self) -> Self {
        // SAFETY: the caller vouches for the processor.
        unsafe { self.multiply(factor).xor(other) }
    }
    /// Whether all lanes are 0.
    unsafe fn is_zero(self) -> bool;
}

// SAFETY: every method only forwards to `V` for each element; `BYTES` is the sum of theirs.
unsafe impl<V: Vector, const N: usize> Vector for [V; N] {
    const BYTES: usize = V::BYTES * N;
    type Factor = V::Factor;
    type Group = [Self; 4];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for the processor.
        [unsafe { V::zero() }; N]
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the processor.
        let mut all = [unsafe { V::zero() }; N];
        for (i, one) in all.iter_mut().enumerate() {
            // SAFETY: the caller vouches for `N * V::BYTES` bytes at `from`.
            *one = unsafe { V::load(from.add(i * V::BYTES)) };
        }
        all
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        for (i, one) in self.into_iter().enumerate() {
            // SAFETY: the caller vouches for `N * V::BYTES` bytes at `to`.
            unsafe { one.store(to.add(i * V::BYTES)) };
        }
    }
    #[inline(always)]
    unsafe fn store_streaming(self, to: *mut u8) {
        for (i, one) in self.into_iter().enumerate() {
            // SAFETY: the caller vouches for `N * V::BYTES` bytes at `to` and its alignment.
            unsafe { one.store_streaming(to.add(i * V::BYTES)) };
        }
    }
    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: the caller vouches for the processor.
        unsafe { V::fence() }
    }
    #[inline(always)]
    unsafe fn xor(mut self, other: Self) -> Self {
        for i in 0..N {
            // SAFETY: the caller vouches for the processor.
            self[i] = unsafe { self[i].xor(other[i]) };
        }
        self
    }
    #[inline(always)]
    unsafe fn xor3(mut self, b: Self, c: Self) -> Self {
        for i in 0..N {
            // SAFETY: the caller vouches for the processor.
            self[i] = unsafe { self[i].xor3(b[i], c[i]) };
        }
        self
    }
    #[inline(always)]
    unsafe fn double_xor(mut self, other: Self) -> Self {
        for i in 0..N {
            // SAFETY: the caller vouches for the processor.
            self[i] = unsafe { self[i].double_xor(other[i]) };
        }
        self
    }
    #[inline(always)]
    unsafe fn quadruple_xor(mut self, other: Self) -> Self {
        for i in 0..N {
            // SAFETY: the caller vouches for the processor.
            self[i] = unsafe { self[i].quadruple_xor(other[i]) };
        }
        self
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
        // SAFETY: the caller vouches for the processor.
        unsafe { V::factor(tables, constant) }
    }
    #[inline(always)]
    unsafe fn multiply(mut self, factor: Self::Factor) -> Self {
        for one in &mut self {
            // SAFETY: the caller vouches for the processor.
            *one = unsafe { one.multiply(factor) };
        }
        self
    }
    #[inline(always)]
    unsafe fn multiply_xor(mut self, factor: Self::Factor, other: Self) -> Self {
        for i in 0..N {
            // SAFETY: the caller vouches for the processor.
            self[i] = unsafe { self[i].multiply_xor(factor, other[i]) };
        }
        self
    }
    #[inline(always)]
    unsafe fn is_zero(self) -> bool {
        let mut zero = true;
        for one in self {
            // SAFETY: the caller vouches for the processor.
            zero &= unsafe { one.is_zero() };
        }
        zero
    }
}

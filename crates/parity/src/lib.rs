//! Erasure codes over GF(2^8) for RAID: generate, update, recover, verify. No I/O.
//!
//! # The field
//!
//! A byte is an element of GF(2^8): its bits are the coefficients of a polynomial over GF(2) of
//! degree below 8. Sums are exclusive or; products are polynomial products reduced modulo
//! x^8 + x^4 + x^3 + x^2 + 1, written 0x11d. The polynomial is primitive: the powers of g = 2
//! (the polynomial x) run through all 255 elements but 0 before they return to 1. Every element
//! but 0 has an inverse, a^-1 = a^254.
//!
//! Doubling is a shift, and an exclusive or with 0x1d where the top bit falls out. A product
//! with a constant c is linear over GF(2): c·a = c·(low nibble) + c·(high nibble), two lookups
//! in tables of 16 entries, or one 8x8 bit matrix whose column j is c·2^j.
//!
//! # The parities
//!
//! With data strips D(0) to D(k-1), at every offset:
//!
//! ```text
//! P = D(0) + D(1) + ... + D(k-1)
//! Q = g^0·D(0) + g^1·D(1) + ... + g^(k-1)·D(k-1)
//! ```
//!
//! These are the P and Q of Linux md. Q needs no multiplication but doubling, by Horner's rule
//! from the highest strip down: Q = (...(D(k-1)·g + D(k-2))·g + ...)·g + D(0).
//!
//! When D(i) changes from old to new, with e = old + new: P changes by e and Q by g^i·e.
//!
//! # Why any two losses can be recovered
//!
//! Let P' and Q' be the sums over the strips that are left. With k ≤ 255 the coefficients
//! g^0 to g^(k-1) are all different and none is 0. So:
//!
//! - one data strip x: D(x) = P + P'; and Q, if it is lost as well, is Q' + g^x·D(x);
//! - x and P: D(x) = g^-x·(Q + Q'), then P = P' + D(x);
//! - P, Q or both: generated again from the data;
//! - two data strips x < y: D(x) + D(y) = P + P' and g^x·D(x) + g^y·D(y) = Q + Q'. The
//!   determinant g^x + g^y is not 0. Multiply the first by g^(y-x), the second by g^-x, and add;
//!   D(y) falls out:
//!
//! ```text
//! D(x) = A·(P + P') + B·(Q + Q')     A = g^(y-x) / (g^(y-x) + 1)     B = g^-x / (g^(y-x) + 1)
//! D(y) = (P + P') + D(x)
//! ```
//!
//! Two multiplications for each pair of bytes, in the same pass that forms P' and Q'.
//!
//! With k = 1, P and Q are copies of the data.
//!
//! # Kernels
//!
//! One set of algorithms over a small vector trait, compiled for 64-byte vectors (AVX-512, with
//! and without GFNI), 32-byte vectors (AVX2, with and without GFNI) and 8-byte words. At first
//! use each kernel must reproduce the answers of a naive reference; the first that does, in that
//! order, is used. `PALISADE_PARITY=name` forces one. See [`select_kernel`] and [`standings`].
//!
//! # References
//!
//! - H. Peter Anvin, "The mathematics of RAID-6", kernel.org, 2004 to 2011: field, P, Q and
//!   their recovery.
//! - James S. Plank, Kevin M. Greenan, Ethan L. Miller, "Screaming Fast Galois Field Arithmetic
//!   Using Intel SIMD Instructions", FAST 2013: multiplication by nibble shuffles.
//! - Intel, "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2,
//!   GF2P8AFFINEQB: the matrix layout.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod code;
mod dot;
mod job;
mod kernel;
mod locate;
mod matrix;
#[cfg(all(test, target_arch = "x86_64"))]
mod model;
#[cfg(target_arch = "aarch64")]
mod neon;
mod operations;
mod portable;
mod recover;
mod reference;
mod select;
mod selftest;
#[cfg(target_arch = "x86_64")]
mod ssse3;
mod sweep;
mod tables;
mod vector;

pub use code::{Change, Code, CodeError, Located, Stores};
pub use select::{
    SelectError, Standing, VARIABLE, kernels, select_kernel, selected, standings, warnings,
};

#[cfg(test)]
mod tests;

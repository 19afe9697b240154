//! Erasure codes over GF(2^8) for RAID: generate, update, recover, verify, locate. No I/O.
//!
//! Purpose: the mathematics, and the kernels that do it at the speed of the machine.
//! Invariants: no operation allocates; the coefficients of an id never change; a kernel that
//! gives one wrong answer at start is never used.
//!
#![doc = include_str!("../README.md")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod code;
mod crc;
mod dot;
mod job;
mod kernel;
mod locate;
mod matrix;
#[cfg(all(test, target_arch = "x86_64"))]
mod model;
#[cfg(target_arch = "aarch64")]
mod neon;
pub mod offload;
mod operations;
mod portable;
mod recover;
pub mod reference;
mod select;
mod selftest;
#[cfg(target_arch = "x86_64")]
mod ssse3;
mod sweep;
mod tables;
mod vector;

pub use code::{Change, Code, CodeError, Located, Stores};
pub use crc::{copy_crc32c, crc32c};
pub use select::{
    SelectError, Standing, VARIABLE, kernels, select_kernel, selected, standings, warnings,
};

#[cfg(test)]
mod tests;

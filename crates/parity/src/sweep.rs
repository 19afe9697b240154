//! Every algorithm, once, over a vector type.
//!
//! Purpose: an `Operation` says what happens at one offset of all strips; `sweep` applies it
//! from the start to the end, in steps of four vectors, one vector, eight bytes and one byte.
//! Invariants: each byte of an output is stored exactly once, after all inputs of its offset
//! were loaded (the deltas read what they store); no step touches a byte at or past `len`.
#![allow(unsafe_code)]

use crate::job::Job;
use crate::operations::{CheckP, CheckPq, DeltaP, DeltaPq, DeltaQ, P, Pq, Q, Two, ViaP, ViaQ};
use crate::tables::Tables;
use crate::vector::Vector;

/// What happens at one offset of all strips.
pub(crate) trait Operation {
    /// Constants ready for use with vectors `V`.
    type Prepared<V: Vector>: Copy;
    /// Prepares the constants.
    ///
    /// # Safety
    ///
    /// The processor can run `V`.
    unsafe fn prepare<V: Vector>(&self) -> Self::Prepared<V>;
    /// Works on bytes `at..at + V::BYTES`; true stops the sweep.
    ///
    /// # Safety
    ///
    /// As `prepare`, and all strips have that many bytes.
    unsafe fn step<V: Vector>(&self, prepared: Self::Prepared<V>, at: usize) -> bool;
}

/// Does `job` with vectors `V`.
///
/// # Safety
///
/// The processor can run `V`, and `job.checked_len()` has accepted the job.
#[inline(always)]
pub(crate) unsafe fn run<V: Vector>(job: Job<'_>, tables: &Tables) -> Option<usize> {
    // SAFETY: the caller vouches for the processor and the lengths; the outputs are exclusive
    // borrows that live as long as the job.
    unsafe {
        match job {
            Job::P { data, p } => sweep::<V, _>(&P { data, p: p.as_mut_ptr() }, p.len()),
            Job::Q { data, q } => sweep::<V, _>(&Q { data, q: q.as_mut_ptr() }, q.len()),
            Job::Pq { data, p, q } => {
                let len = p.len();
                sweep::<V, _>(&Pq { data, p: p.as_mut_ptr(), q: q.as_mut_ptr() }, len)
            }
            Job::DeltaP { old, new, p } => {
                sweep::<V, _>(&DeltaP { old, new, p: p.as_mut_ptr() }, old.len())
            }
            Job::DeltaQ { old, new, q, factor } => {
                let q = q.as_mut_ptr();
                sweep::<V, _>(&DeltaQ { old, new, q, factor, tables }, old.len())
            }
            Job::DeltaPq { old, new, p, q, factor } => {
                let (p, q) = (p.as_mut_ptr(), q.as_mut_ptr());
                sweep::<V, _>(&DeltaPq { old, new, p, q, factor, tables }, old.len())
            }
            Job::ViaP { data, gap, p, factor, d, q } => {
                let (d, q) = (pointer(d), q.as_mut_ptr());
                sweep::<V, _>(&ViaP { data, gap, p, factor, d, q, tables }, p.len())
            }
            Job::ViaQ { data, gap, q, factor, d, p } => {
                let (d, p) = (pointer(d), pointer(p));
                sweep::<V, _>(&ViaQ { data, gap, q, factor, d, p, tables }, q.len())
            }
            Job::Two { data, gaps, p, q, factors, x, y } => {
                let (x, y) = (pointer(x), pointer(y));
                sweep::<V, _>(&Two { data, gaps, p, q, factors, x, y, tables }, p.len())
            }
            Job::CheckP { data, p } => find::<V, _>(&CheckP { data, p }, p.len()),
            Job::CheckPq { data, p, q } => find::<V, _>(&CheckPq { data, p, q }, p.len()),
        }
    }
}

/// The strip's first byte, or null for a strip nobody wants.
#[inline(always)]
fn pointer(strip: Option<&mut [u8]>) -> *mut u8 {
    strip.map_or(core::ptr::null_mut(), |s| s.as_mut_ptr())
}

/// Applies `op` to bytes `0..len`; answers where the step that stopped it began.
#[inline(always)]
unsafe fn sweep<V: Vector, O: Operation>(op: &O, len: usize) -> Option<usize> {
    let mut at = 0;
    // SAFETY: the caller vouches for `V` and `len`; `u64` and `u8` run anywhere.
    let stopped = unsafe {
        steps::<[V; 4], O>(op, &mut at, len)
            || steps::<V, O>(op, &mut at, len)
            || steps::<u64, O>(op, &mut at, len)
            || steps::<u8, O>(op, &mut at, len)
    };
    stopped.then_some(at)
}

/// Applies `op` while a whole `V` is left.
#[inline(always)]
unsafe fn steps<V: Vector, O: Operation>(op: &O, at: &mut usize, len: usize) -> bool {
    if len - *at < V::BYTES {
        return false;
    }
    // SAFETY: the caller vouches for `V`.
    let prepared = unsafe { op.prepare::<V>() };
    while len - *at >= V::BYTES {
        // SAFETY: the loop's condition leaves `V::BYTES` bytes at `at`.
        if unsafe { op.step::<V>(prepared, *at) } {
            return true;
        }
        *at += V::BYTES;
    }
    false
}

/// The first byte at which `op` stops.
#[inline(always)]
unsafe fn find<V: Vector, O: Operation>(op: &O, len: usize) -> Option<usize> {
    // SAFETY: the caller vouches for `V` and `len`.
    let mut at = unsafe { sweep::<V, O>(op, len) }?;
    // SAFETY: some byte from `at` on, before `len`, stops the operation.
    unsafe {
        while at < len && !op.step::<u8>(op.prepare::<u8>(), at) {
            at += 1;
        }
    }
    Some(at)
}

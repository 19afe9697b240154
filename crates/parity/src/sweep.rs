//! Every algorithm, once, over a vector type.
//!
//! Purpose: an `Operation` says what happens at one offset of all strips; `sweep` applies it
//! from the start to the end, in steps of several vectors, one vector, eight bytes and one byte.
//! A `Processor` compiles each operation's sweep into a function of its own, for its features:
//! one function of all of them would be hundreds of kilobytes, which compilers are slow with.
//! Invariants: each byte of an output is stored exactly once, after all inputs of its offset
//! were loaded (the deltas read what they store); no step touches a byte at or past `len`.
#![allow(unsafe_code)]

use crate::code::Stores;
use crate::dot::{Add, Compare, Dot, Store};
use crate::job::Job;
use crate::operations::{
    CheckP, CheckPq, CheckPqr, DeltaP, DeltaPq, DeltaQ, P, Pq, Pqr, Q, Two, ViaP, ViaQ,
};
use crate::tables::Tables;
use crate::vector::Vector;

/// What happens at one offset of all strips.
pub(crate) trait Operation {
    /// Whether it takes four vectors at a time, however wide they are, not a group.
    const FOUR: bool = false;
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
    /// As `step`, where `V` is not a group of vectors.
    ///
    /// # Safety
    ///
    /// As `step`.
    #[inline(always)]
    unsafe fn step_one<V: Vector>(&self, prepared: Self::Prepared<V>, at: usize) -> bool {
        // SAFETY: as the caller says.
        unsafe { self.step::<V>(prepared, at) }
    }
}

/// Features of a processor, and the vectors that need them.
pub(crate) trait Processor {
    /// What is loaded and stored at a time.
    type Vector: Vector;
    /// Whether this processor has the features.
    fn supported() -> bool;
    /// [`sweep`] over `Self::Vector`, compiled for the features.
    ///
    /// # Safety
    ///
    /// The processor has the features; otherwise as `sweep`.
    unsafe fn sweep<O: Operation>(op: &O, len: usize) -> Option<usize>;
    /// [`stream`] over `Self::Vector`, compiled for the features.
    ///
    /// # Safety
    ///
    /// The processor has the features; otherwise as `stream`.
    unsafe fn stream<O: Operation>(op: &O, head: usize, len: usize);
}

/// Declares a [`Processor`]: its name, how its features are looked for, they, and the vectors.
macro_rules! processor {
    ($(#[$doc:meta])* $name:ident, $detected:ident, [$($feature:tt),+], $vector:ty) => {
        $(#[$doc])*
        struct $name;

        impl crate::sweep::Processor for $name {
            type Vector = $vector;

            fn supported() -> bool {
                $(std::arch::$detected!($feature))&&+
            }
            $(#[target_feature(enable = $feature)])+
            unsafe fn sweep<O: crate::sweep::Operation>(op: &O, len: usize) -> Option<usize> {
                // SAFETY: this function's features are the vector's; the rest is the caller's.
                unsafe { crate::sweep::sweep::<$vector, O>(op, len) }
            }
            $(#[target_feature(enable = $feature)])+
            unsafe fn stream<O: crate::sweep::Operation>(op: &O, head: usize, len: usize) {
                // SAFETY: this function's features are the vector's; the rest is the caller's.
                unsafe { crate::sweep::stream::<$vector, O>(op, head, len) }
            }
        }
    };
}
pub(crate) use processor;

/// Any processor: for vectors that need no feature.
pub(crate) struct Any<V>(core::marker::PhantomData<V>);

impl<V: Vector> Processor for Any<V> {
    type Vector = V;

    fn supported() -> bool {
        true
    }
    unsafe fn sweep<O: Operation>(op: &O, len: usize) -> Option<usize> {
        // SAFETY: as the caller says.
        unsafe { sweep::<V, O>(op, len) }
    }
    unsafe fn stream<O: Operation>(op: &O, head: usize, len: usize) {
        // SAFETY: as the caller says.
        unsafe { stream::<V, O>(op, head, len) }
    }
}

/// Does `job` with the features of `C`.
///
/// # Safety
///
/// The processor has `C`'s features, and `job.checked_len()` has accepted the job.
pub(crate) unsafe fn run<C: Processor>(job: Job<'_>, tables: &Tables) -> Option<usize> {
    // SAFETY: the caller vouches for the processor and the lengths; the outputs are exclusive
    // borrows that live as long as the job.
    unsafe {
        match job {
            Job::P { data, p, stores } => {
                let (to, len) = (p.as_mut_ptr(), p.len());
                sweep_to::<C, _>(&P { data, p: to }, &[to], len, stores)
            }
            Job::Q { data, q, stores } => {
                let (to, len) = (q.as_mut_ptr(), q.len());
                sweep_to::<C, _>(&Q { data, q: to }, &[to], len, stores)
            }
            Job::Pq { data, p, q, stores } => {
                let (len, p, q) = (p.len(), p.as_mut_ptr(), q.as_mut_ptr());
                sweep_to::<C, _>(&Pq { data, p, q }, &[p, q], len, stores)
            }
            Job::Pqr { data, p, q, r, stores } => {
                let (len, p, q, r) = (p.len(), p.as_mut_ptr(), q.as_mut_ptr(), r.as_mut_ptr());
                sweep_to::<C, _>(&Pqr { data, p, q, r }, &[p, q, r], len, stores)
            }
            Job::Dot { inputs, rows, sum, outputs, stores } => {
                let (to, len) = (outputs.starts(), outputs.len());
                let ahead = stores == Stores::Streaming;
                let dot = Dot { source: inputs, rows, sum, ahead, sink: Store(to), tables };
                sweep_to::<C, _>(&dot, to, len, stores)
            }
            Job::DeltaP { old, new, p } => {
                C::sweep(&DeltaP { old, new, p: p.as_mut_ptr() }, old.len())
            }
            Job::DeltaQ { old, new, q, factor } => {
                let q = q.as_mut_ptr();
                C::sweep(&DeltaQ { old, new, q, factor, tables }, old.len())
            }
            Job::DeltaPq { old, new, p, q, factor } => {
                let (p, q) = (p.as_mut_ptr(), q.as_mut_ptr());
                C::sweep(&DeltaPq { old, new, p, q, factor, tables }, old.len())
            }
            Job::Deltas { changes, rows, sum, outputs } => {
                let (sink, ahead) = (Add(outputs.starts()), false);
                let dot = Dot { source: changes, rows, sum, ahead, sink, tables };
                C::sweep(&dot, outputs.len())
            }
            Job::ViaP { data, gap, p, factor, d, q, stores } => {
                let (d, q) = (pointer(d), q.as_mut_ptr());
                let via = ViaP { data, gap, p, factor, d, q, tables };
                sweep_to::<C, _>(&via, &[d, q], p.len(), stores)
            }
            Job::ViaQ { data, gap, q, factor, d, p, stores } => {
                let (d, p) = (pointer(d), pointer(p));
                let via = ViaQ { data, gap, q, factor, d, p, tables };
                sweep_to::<C, _>(&via, &[d, p], q.len(), stores)
            }
            Job::Two { data, gaps, p, q, factors, x, y, stores } => {
                let (x, y) = (pointer(x), pointer(y));
                let two = Two { data, gaps, p, q, factors, x, y, tables };
                sweep_to::<C, _>(&two, &[x, y], p.len(), stores)
            }
            Job::CheckP { data, p } => find::<C, _>(&CheckP { data, p }, p.len()),
            Job::CheckPq { data, p, q } => find::<C, _>(&CheckPq { data, p, q }, p.len()),
            Job::CheckPqr { data, p, q, r } => find::<C, _>(&CheckPqr { data, p, q, r }, p.len()),
            Job::CheckDot { inputs, rows, sum, expected } => {
                let (sink, ahead) = (Compare(expected), true);
                let dot = Dot { source: inputs, rows, sum, ahead, sink, tables };
                find::<C, _>(&dot, expected[0].len())
            }
        }
    }
}

/// The strip's first byte, or null for a strip nobody wants.
fn pointer(strip: Option<&mut [u8]>) -> *mut u8 {
    strip.map_or(core::ptr::null_mut(), |s| s.as_mut_ptr())
}

/// Applies `op`, which writes to `outputs`, null where it does not, to bytes `0..len`.
unsafe fn sweep_to<C: Processor, O: Operation>(
    op: &O,
    outputs: &[*mut u8],
    len: usize,
    stores: Stores,
) -> Option<usize> {
    // SAFETY: the caller vouches for `C`, `op` and `len`.
    unsafe {
        match (stores, head::<C::Vector>(outputs)) {
            (Stores::Streaming, Some(head)) if head < len => {
                C::stream(op, head, len);
                None
            }
            _ => C::sweep(op, len),
        }
    }
}

/// How many bytes are before the first multiple of `V`'s size in every output; `None` if that
/// differs.
fn head<V: Vector>(outputs: &[*mut u8]) -> Option<usize> {
    let mut heads = outputs
        .iter()
        .filter(|to| !to.is_null())
        .map(|&to| (to as usize).wrapping_neg() % V::BYTES);
    let first = heads.next()?;
    heads.all(|head| head == first).then_some(first)
}

/// As `sweep` of an operation that nothing stops, with stores past the caches from `head` on,
/// where outputs are aligned.
///
/// # Safety
///
/// The processor can run `V`, all strips have `len` bytes, and `head` is at most `len`.
#[inline(always)]
pub(crate) unsafe fn stream<V: Vector, O: Operation>(op: &O, head: usize, len: usize) {
    let mut at = 0;
    // SAFETY: the caller vouches for `V` and `len`, and `head` is at most `len`; `u64` and `u8`
    // run anywhere.
    unsafe {
        let _ = head > 0 && tail(op, &mut at, head);
        let _ =
            most::<Streamed<V>, O>(op, &mut at, len) || steps::<Streamed<V>, O>(op, &mut at, len);
        #[cfg(test)]
        crate::tests::streams::SWEPT.set(crate::tests::streams::SWEPT.get() + at - head);
        V::fence();
        let _ = at < len && tail(op, &mut at, len);
    }
}

/// A vector whose stores go past the caches.
#[derive(Clone, Copy)]
struct Streamed<V>(V);

// SAFETY: every method only forwards to `V`; `stream` stores at multiples of `V::BYTES` only.
unsafe impl<V: Vector> Vector for Streamed<V> {
    const BYTES: usize = V::BYTES;
    type Factor = V::Factor;
    type Group = Streamed<V::Group>;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller vouches for the processor.
        Self(unsafe { V::zero() })
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for the processor and the bytes at `from`.
        Self(unsafe { V::load(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for the processor and the bytes at `to`, `stream` for its
        // alignment and the fence.
        unsafe { self.0.store_streaming(to) }
    }
    #[inline(always)]
    unsafe fn store_streaming(self, to: *mut u8) {
        // SAFETY: as the caller says.
        unsafe { self.0.store_streaming(to) }
    }
    #[inline(always)]
    unsafe fn fence() {
        // SAFETY: the caller vouches for the processor.
        unsafe { V::fence() }
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the processor.
        Self(unsafe { self.0.xor(other.0) })
    }
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: the caller vouches for the processor.
        Self(unsafe { self.0.xor3(b.0, c.0) })
    }
    #[inline(always)]
    unsafe fn double_xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the processor.
        Self(unsafe { self.0.double_xor(other.0) })
    }
    #[inline(always)]
    unsafe fn quadruple_xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the processor.
        Self(unsafe { self.0.quadruple_xor(other.0) })
    }
    #[inline(always)]
    unsafe fn factor(tables: &Tables, constant: u8) -> Self::Factor {
        // SAFETY: the caller vouches for the processor.
        unsafe { V::factor(tables, constant) }
    }
    #[inline(always)]
    unsafe fn multiply_xor(self, factor: Self::Factor, other: Self) -> Self {
        // SAFETY: the caller vouches for the processor.
        Self(unsafe { self.0.multiply_xor(factor, other.0) })
    }
    #[inline(always)]
    unsafe fn multiply(self, factor: Self::Factor) -> Self {
        // SAFETY: the caller vouches for the processor.
        Self(unsafe { self.0.multiply(factor) })
    }
    #[inline(always)]
    unsafe fn is_zero(self) -> bool {
        // SAFETY: the caller vouches for the processor.
        unsafe { self.0.is_zero() }
    }
}

/// Applies `op` to bytes `0..len`; answers where the step that stopped it began.
///
/// # Safety
///
/// The processor can run `V`, and all strips have `len` bytes.
#[inline(always)]
pub(crate) unsafe fn sweep<V: Vector, O: Operation>(op: &O, len: usize) -> Option<usize> {
    let mut at = 0;
    // SAFETY: the caller vouches for `V` and `len`; `u64` and `u8` run anywhere.
    let stopped = unsafe {
        most::<V, O>(op, &mut at, len)
            || steps::<V, O>(op, &mut at, len)
            || at < len && tail(op, &mut at, len)
    };
    stopped.then_some(at)
}

/// Applies `op` to the last bytes, fewer than a vector: one function for all kernels.
#[inline(never)]
unsafe fn tail<O: Operation>(op: &O, at: &mut usize, len: usize) -> bool {
    // SAFETY: the caller vouches for `len`; `u64` and `u8` run anywhere.
    unsafe { steps::<u64, O>(op, at, len) || steps::<u8, O>(op, at, len) }
}

/// Applies `op` while as many vectors are left as it takes at a time.
#[inline(always)]
unsafe fn most<V: Vector, O: Operation>(op: &O, at: &mut usize, len: usize) -> bool {
    // SAFETY: as the caller says.
    unsafe {
        if O::FOUR { groups::<[V; 4], O>(op, at, len) } else { groups::<V::Group, O>(op, at, len) }
    }
}

/// Applies `op` while a whole group of vectors `V` is left.
#[inline(always)]
unsafe fn groups<V: Vector, O: Operation>(op: &O, at: &mut usize, len: usize) -> bool {
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
        if unsafe { op.step_one::<V>(prepared, *at) } {
            return true;
        }
        *at += V::BYTES;
    }
    false
}

/// The first byte at which `op` stops.
unsafe fn find<C: Processor, O: Operation>(op: &O, len: usize) -> Option<usize> {
    // SAFETY: the caller vouches for `C` and `len`.
    let mut at = unsafe { C::sweep(op, len) }?;
    // SAFETY: the caller vouches for `len`; some byte from `at` on, before `len`, stops `op`.
    unsafe {
        tail_bytes(op, &mut at, len);
    }
    Some(at)
}

/// Applies `op` to one byte after another.
#[inline(never)]
unsafe fn tail_bytes<O: Operation>(op: &O, at: &mut usize, len: usize) -> bool {
    // SAFETY: the caller vouches for `len`; `u8` runs anywhere.
    unsafe { steps::<u8, O>(op, at, len) }
}

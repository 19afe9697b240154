//! Rows of coefficients times inputs: the operations behind every code that has no shortcut.
//!
//! Purpose: `Dot` takes its inputs from a `Source`, multiplies, and hands each row's sum to a
//! `Sink`. Rows are taken four at a time, so that an input is loaded once for four outputs and a
//! coefficient once for a whole run of vectors.
//! Invariant: rows hold a coefficient for each input; pointers to outputs come from exclusive
//! borrows that outlive the operation.
#![allow(unsafe_code)]

use crate::code::Change;
use crate::sweep::Operation;
use crate::tables::Tables;
use crate::vector::Vector;

/// Where inputs come from.
pub(crate) trait Source {
    /// How many inputs there are.
    fn count(&self) -> usize;
    /// Which entry of a row belongs to input `i`.
    fn column(&self, i: usize) -> usize;
    /// Input `i` at offset `at`.
    ///
    /// # Safety
    ///
    /// The processor can run `V`, `i` is below `count`, and inputs have `V::BYTES` bytes there.
    unsafe fn load<V: Vector>(&self, i: usize, at: usize) -> V;
    /// Asks for what a later step will load of input `i`, `V::BYTES` bytes from `at` on, which
    /// may lie past its end.
    #[inline(always)]
    fn prefetch<V: Vector>(&self, _i: usize, _at: usize) {}
}

impl Source for &[&[u8]] {
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn column(&self, i: usize) -> usize {
        i
    }
    #[inline(always)]
    unsafe fn load<V: Vector>(&self, i: usize, at: usize) -> V {
        debug_assert!(at + V::BYTES <= self[i].len());
        // SAFETY: the caller vouches for `i`, the offset and the processor.
        unsafe { V::load(self.get_unchecked(i).as_ptr().add(at)) }
    }
    #[inline(always)]
    fn prefetch<V: Vector>(&self, i: usize, at: usize) {
        let from = self[i].as_ptr().wrapping_add(at);
        (0..V::BYTES).step_by(LINE).for_each(|line| prefetch(from.wrapping_add(line)));
    }
}

/// How far ahead inputs are asked for, in bytes: measured, 256 to 1024 do as well.
const AHEAD: usize = 512;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the line at `from`. Multiplications fill the processor's window before it sees far
/// enough ahead to keep memory busy, and its own prefetcher follows few streams.
#[inline(always)]
fn prefetch(from: *const u8) {
    // SAFETY: a prefetch of any address is harmless, and every x86-64 has the instruction.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(from.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

impl Source for &[Change<'_>] {
    #[inline(always)]
    fn count(&self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn column(&self, i: usize) -> usize {
        self[i].index
    }
    #[inline(always)]
    unsafe fn load<V: Vector>(&self, i: usize, at: usize) -> V {
        debug_assert!(at + V::BYTES <= self[i].old.len());
        // SAFETY: the caller vouches for `i`, the offset and the processor.
        unsafe {
            let change = self.get_unchecked(i);
            V::load(change.old.as_ptr().add(at)).xor(V::load(change.new.as_ptr().add(at)))
        }
    }
}

/// Where results go.
pub(crate) trait Sink {
    /// Takes the results of the rows from `first` on at offset `at`; true stops the sweep.
    ///
    /// # Safety
    ///
    /// The processor can run `V`, the rows exist, and strips have `V::BYTES` bytes there.
    unsafe fn take<V: Vector, const R: usize>(&self, first: usize, all: [V; R], at: usize) -> bool;
}

/// Stores results.
pub(crate) struct Store<'a>(pub(crate) &'a [*mut u8]);

impl Sink for Store<'_> {
    #[inline(always)]
    unsafe fn take<V: Vector, const R: usize>(&self, first: usize, all: [V; R], at: usize) -> bool {
        for (row, value) in all.into_iter().enumerate() {
            // SAFETY: the caller vouches for the rows, the offset and the processor.
            unsafe { value.store(self.0.get_unchecked(first + row).add(at)) };
        }
        false
    }
}

/// Adds results to what is there.
pub(crate) struct Add<'a>(pub(crate) &'a [*mut u8]);

impl Sink for Add<'_> {
    #[inline(always)]
    unsafe fn take<V: Vector, const R: usize>(
        &self,
        first: usize,
        mut all: [V; R],
        at: usize,
    ) -> bool {
        // SAFETY: the caller vouches for the rows, the offset and the processor.
        unsafe {
            // All loads come before any store, see `DeltaPq`.
            for (row, value) in all.iter_mut().enumerate() {
                *value = value.xor(V::load(self.0.get_unchecked(first + row).add(at)));
            }
            Store(self.0).take(first, all, at)
        }
    }
}

/// Stops where a result is not what is there.
pub(crate) struct Compare<'a>(pub(crate) &'a [&'a [u8]]);

impl Sink for Compare<'_> {
    #[inline(always)]
    unsafe fn take<V: Vector, const R: usize>(&self, first: usize, all: [V; R], at: usize) -> bool {
        let mut stop = false;
        for (row, value) in all.into_iter().enumerate() {
            // SAFETY: the caller vouches for the rows, the offset and the processor.
            unsafe {
                let expected = V::load(self.0.get_unchecked(first + row).as_ptr().add(at));
                stop |= !value.xor(expected).is_zero();
            }
        }
        stop
    }
}

/// Rows of coefficients times inputs.
pub(crate) struct Dot<'a, S, K> {
    pub(crate) source: S,
    pub(crate) rows: &'a [&'a [u8]],
    pub(crate) sum: bool,
    /// Whether inputs are likely in memory, not in a cache: then they are asked for early, which
    /// doubles the speed; in a cache it would cost a tenth.
    pub(crate) ahead: bool,
    pub(crate) sink: K,
    pub(crate) tables: &'a Tables,
}

impl<S: Source, K: Sink> Dot<'_, S, K> {
    /// The results of four rows from `first` on at `at`, or of those that are left.
    #[inline(always)]
    unsafe fn rows<V: Vector, const SUM: bool>(&self, first: usize, at: usize) -> bool {
        // SAFETY: the rows exist; the caller vouches for the rest.
        unsafe {
            match self.rows.len() - first {
                0 => false,
                1 => self.group::<V, 1, SUM>(first, at),
                2 => self.group::<V, 2, SUM>(first, at),
                3 => self.group::<V, 3, SUM>(first, at),
                _ => self.group::<V, 4, SUM>(first, at),
            }
        }
    }

    /// The results of `R` rows from `first` on at `at`; if `SUM`, the first of them is the plain
    /// sum.
    #[inline(always)]
    unsafe fn group<V: Vector, const R: usize, const SUM: bool>(
        &self,
        first: usize,
        at: usize,
    ) -> bool {
        // SAFETY: `first + R` rows exist, each with every input's coefficient; the caller
        // vouches for the rest.
        unsafe {
            let mut results = [V::zero(); R];
            for i in 0..self.source.count() {
                let input = self.source.load::<V>(i, at);
                if self.ahead && first == 0 {
                    self.source.prefetch::<V>(i, at + AHEAD);
                }
                let column = self.source.column(i);
                for (row, result) in results.iter_mut().enumerate() {
                    *result = if SUM && row == 0 {
                        result.xor(input)
                    } else {
                        let row = *self.rows.get_unchecked(first + row);
                        let factor = V::factor(self.tables, *row.get_unchecked(column));
                        input.multiply_xor(factor, *result)
                    };
                }
            }
            self.sink.take(first, results, at)
        }
    }
}

impl<S: Source, K: Sink> Operation for Dot<'_, S, K> {
    /// Four, because each coefficient is loaded once for all of them.
    const FOUR: bool = true;
    type Prepared<V: Vector> = ();

    #[inline(always)]
    unsafe fn prepare<V: Vector>(&self) {}
    #[inline(always)]
    unsafe fn step<V: Vector>(&self, (): (), at: usize) -> bool {
        let rows = self.rows.len();
        let (mut first, mut stop) = (0, false);
        // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
        unsafe {
            if self.sum {
                stop |= self.rows::<V, true>(first, at);
                first += 4;
            }
            while first < rows {
                stop |= self.rows::<V, false>(first, at);
                first += 4;
            }
        }
        stop
    }

    /// Few bytes are left to it: row by row, because that is little code.
    #[inline(always)]
    unsafe fn step_one<V: Vector>(&self, (): (), at: usize) -> bool {
        let mut stop = false;
        for row in 0..self.rows.len() {
            // SAFETY: the caller vouches for the processor and for `V::BYTES` bytes at `at`.
            stop |= unsafe {
                if self.sum && row == 0 {
                    self.group::<V, 1, true>(row, at)
                } else {
                    self.group::<V, 1, false>(row, at)
                }
            };
        }
        stop
    }
}

//! Counters of what a thread has streamed, for the crate's own tests.
//!
//! Purpose: the kernels count here when they are compiled for tests, and nowhere else.
//! Invariant: each thread has its own, so tests that run side by side don't meet.

use core::cell::Cell;

thread_local! {
    /// Bytes of each output that `sweep` has streamed, on any kernel.
    pub(crate) static SWEPT: Cell<usize> = const { Cell::new(0) };
    /// Bytes, of all outputs, that the model's streaming stores have taken.
    pub(crate) static STREAMED: Cell<usize> = const { Cell::new(0) };
}

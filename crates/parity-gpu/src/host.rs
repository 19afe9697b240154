//! The kernels' C++ form, called on this processor.
//!
//! Purpose: run any kernel without a device, for the fake device and for tests.
#![allow(unsafe_code)]

use crate::kind::{Kind, kernels};
use crate::pack::THREADS;

/// A kernel: `in`, `out`, where the descriptors begin; then the grid: blocks, jobs, threads.
type Kernel = unsafe extern "C" fn(*const u8, *mut u8, u64, u32, u32, u32);

macro_rules! linked {
    ($($(#[$doc:meta])* $kind:ident $name:ident)*) => {
        unsafe extern "C" {
            $(fn $name(
                input: *const u8,
                out: *mut u8,
                jobs: u64,
                blocks: u32,
                count: u32,
                threads: u32,
            );)*
        }
        fn kernel(kind: Kind) -> Kernel {
            match kind {
                $(Kind::$kind => $name,)*
            }
        }
    };
}
kernels!(linked);

/// Runs `kind` over `count` jobs.
///
/// # Safety
///
/// All that the descriptors at `jobs` say lies from `input` and `out`, or anywhere if both are
/// null, and is aligned, as the top of `kernels/parity.c` wants it; nobody else uses the memory
/// meanwhile.
pub(crate) unsafe fn launch(
    kind: Kind,
    (input, out): (*const u8, *mut u8),
    jobs: u64,
    (blocks, count): (u32, u32),
) {
    // SAFETY: passed on to the caller.
    unsafe { kernel(kind)(input, out, jobs, blocks, count, THREADS) }
}

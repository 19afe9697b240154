//! The kernels' C form, called on this processor.
//!
//! Purpose: run any kernel without a device, for the fake device and for tests.
#![allow(unsafe_code)]

use crate::kind::Kind;

/// Threads of a block, as `kernels/parity.c` has them.
pub(crate) const THREADS: u32 = 256;

/// A kernel: `in`, `out`, where the descriptors begin; then the grid: blocks, jobs, threads.
type Kernel = unsafe extern "C" fn(*const u8, *mut u8, u64, u32, u32, u32);

macro_rules! kernels {
    ($($kind:ident $name:ident)*) => {
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

kernels! {
    GenerateP parity_generate_p
    GeneratePq parity_generate_pq
    GeneratePqr parity_generate_pqr
    Dot parity_dot
    DeltaP parity_delta_p
    DeltaQ parity_delta_q
    DeltaPq parity_delta_pq
    Deltas parity_deltas
    VerifyP parity_verify_p
    VerifyPq parity_verify_pq
    VerifyPqr parity_verify_pqr
    VerifyDot parity_verify_dot
    Crc32c parity_crc32c
}

/// Blocks of threads along a strip of `len` bytes.
pub(crate) fn blocks(len: usize) -> u32 {
    u32::try_from(len.div_ceil(16 * THREADS as usize)).expect("a plan takes less than 2^32 bytes")
}

/// Runs `kind` over `count` jobs.
///
/// # Safety
///
/// `input` and `out` are aligned to 16; all that the descriptors at `jobs` say lies in them, as
/// the top of `kernels/parity.c` wants it; nobody else uses the memory meanwhile.
pub(crate) unsafe fn launch(
    kind: Kind,
    (input, out): (*const u8, *mut u8),
    jobs: u64,
    (blocks, count): (u32, u32),
) {
    // SAFETY: passed on to the caller.
    unsafe { kernel(kind)(input, out, jobs, blocks, count, THREADS) }
}

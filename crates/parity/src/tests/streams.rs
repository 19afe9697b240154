//! How much was stored past the caches, so that tests know that it was.
//!
//! Purpose: whether a job streams depends on how its outputs lie. A test that means to stream
//! chooses how they lie and asks here; luck of an allocator decides nothing.
//! Invariant: what is counted is what the asking thread has done.

#[path = "../../tests/support/counters.rs"]
pub(crate) mod counters;

use crate::Stores;
use crate::kernel::Kernel;
pub(crate) use counters::{STREAMED, SWEPT};

/// The widest vector of any kernel, and the shortest strip that streams wherever it begins.
const WIDEST: usize = 64;

/// Does `job` with `kernel` and checks that it has streamed exactly if it had to: if `stores`
/// says so, and all outputs, of `len` bytes, begin as many bytes after a multiple of 64 as
/// `skews` say. Where kernels differ, by their vectors' width, either is right.
///
/// # Errors
///
/// What was not as it has to be.
pub(crate) fn checked<T>(
    kernel: &Kernel,
    stores: Stores,
    len: usize,
    skews: &[usize],
    job: impl FnOnce() -> T,
) -> Result<T, String> {
    SWEPT.set(0);
    STREAMED.set(0);
    let answer = job();
    let (swept, streamed) = (SWEPT.get(), STREAMED.get());
    // The narrowest vector that streams has 16 bytes: two outputs of which one begins at an odd
    // distance from the other's place never stream.
    let alike = skews.iter().all(|skew| *skew == skews[0]);
    let apart = skews.iter().any(|skew| (skew ^ skews[0]) & 1 == 1);
    let body = |vector: usize| {
        let head = skews.first().map_or(0, |skew| skew.wrapping_neg() % vector);
        len.saturating_sub(head) / vector * vector
    };
    let said = stores == Stores::Streaming;
    let right = match said && !apart {
        false => swept == 0,
        true if alike => [16, 32, WIDEST].iter().any(|vector| swept == body(*vector)),
        true => true,
    };
    let modelled = !kernel.name().ends_with("-model") || streamed == swept * skews.len();
    if right && modelled {
        return Ok(answer);
    }
    let name = kernel.name();
    Err(format!(
        "{name}, {stores:?}: {swept} bytes of each output streamed, {streamed} modelled, of \
         {len} bytes at {skews:?}"
    ))
}

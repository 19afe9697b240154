//! What front ends serve: a run of blocks with an address.

use crate::buffer::{Buf, BufMut};
use core::fmt;
use core::future::Future;

/// Why a request of a host could not be served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockError {
    /// Outside the volume, or not aligned to its blocks.
    Bounds,
    /// The blocks can't be given back or taken: more drives are missing than redundancy covers,
    /// or their parity is not trusted after a crash.
    Unavailable,
    /// The volume or its array was stopped or deleted.
    Stopped,
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bounds => "outside the volume or not aligned to its blocks",
            Self::Unavailable => "blocks unavailable: too many drives missing",
            Self::Stopped => "volume stopped",
        })
    }
}

impl core::error::Error for BlockError {}

/// A volume as one core's front ends see it. Offsets and lengths are bytes, multiples of
/// `block_bytes`; any number of requests may be in flight.
pub trait Blocks: Clone + 'static {
    /// Bytes now; may change by a resize.
    fn bytes(&self) -> u64;
    /// Smallest unit and alignment of I/O.
    fn block_bytes(&self) -> u32;
    /// What requests are best aligned to: one strip.
    fn strip_bytes(&self) -> u32;
    /// Data bytes of a stripe: the best size of large writes.
    fn stripe_bytes(&self) -> u32;
    /// True if acknowledged writes need a flush to be durable (D15).
    fn volatile_cache(&self) -> bool;
    /// Fills the whole buffer. After an error its content must not be shown to anyone.
    fn read(
        &self,
        offset: u64,
        into: BufMut,
    ) -> impl Future<Output = (Result<(), BlockError>, BufMut)>;
    /// Writes the buffer; with `fua` it is durable on return.
    fn write(
        &self,
        offset: u64,
        data: Buf,
        fua: bool,
    ) -> impl Future<Output = Result<(), BlockError>>;
    /// Writes a block if it holds what is expected, of `(expected, data)`; no other change of it
    /// comes between. False: it holds something else, and nothing was written.
    fn compare_and_write(
        &self,
        offset: u64,
        blocks: (Buf, Buf),
        fua: bool,
    ) -> impl Future<Output = Result<bool, BlockError>>;
    /// Makes the range read as zeros.
    fn write_zeroes(
        &self,
        offset: u64,
        bytes: u64,
        fua: bool,
    ) -> impl Future<Output = Result<(), BlockError>>;
    /// Gives the range up; it reads as zeros afterwards.
    fn discard(&self, offset: u64, bytes: u64) -> impl Future<Output = Result<(), BlockError>>;
    /// Once this is done, a change of a block that begins behind another one is carried out behind
    /// it, whichever cores they come to. Until then what overlaps in time has no order: enough for
    /// who waits for each answer, and not for a host that asks again by another path.
    fn in_order(&self) -> impl Future<Output = Result<(), BlockError>> {
        core::future::ready(Ok(()))
    }
    /// Makes every write that completed before the call durable, whoever made it.
    fn flush(&self) -> impl Future<Output = Result<(), BlockError>>;
}

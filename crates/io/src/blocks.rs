//! What front ends serve: a run of blocks with an address.

use crate::buffer::{Buf, BufMut, Pool};
use crate::drive::{Drive, DriveError};
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
    /// Gives the range up: whole bands of it read as zeros afterwards, and the rest as before.
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

/// Bytes of the zeros that are written at a time.
const ZEROS: u64 = 128 << 10;

/// A drive that is served as it is, and offers no comparison. Clones are the same.
#[derive(Clone)]
pub struct OfDrive<D> {
    drive: D,
    /// What it comes to that the drive is gone.
    gone: BlockError,
}

impl<D: Drive> OfDrive<D> {
    /// That drive. Once it is gone requests end with this.
    pub const fn new(drive: D, gone: BlockError) -> Self {
        Self { drive, gone }
    }

    /// What a drive's error is to a host.
    fn told(&self, error: DriveError) -> BlockError {
        match error {
            DriveError::Bounds => BlockError::Bounds,
            DriveError::Gone | DriveError::Shrunk => self.gone,
            _ => BlockError::Unavailable,
        }
    }

    /// Zeros where the drive makes none by itself.
    async fn write_zeros(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        let mut zeros = Pool::single(bytes.min(ZEROS) as usize);
        zeros.fill(0);
        let (zeros, mut at) = (zeros.freeze(), 0);
        while at < bytes {
            let piece = zeros.slice(..(bytes - at).min(ZEROS) as usize);
            self.write(offset + at, piece, false).await?;
            at += ZEROS;
        }
        Ok(())
    }

    fn ended(&self, outcome: Result<(), DriveError>) -> Result<(), BlockError> {
        outcome.map_err(|error| self.told(error))
    }
}

impl<D: Drive> Blocks for OfDrive<D> {
    fn bytes(&self) -> u64 {
        self.drive.info().bytes
    }

    fn block_bytes(&self) -> u32 {
        self.drive.info().block_bytes
    }

    fn strip_bytes(&self) -> u32 {
        self.block_bytes()
    }

    fn stripe_bytes(&self) -> u32 {
        self.block_bytes()
    }

    fn volatile_cache(&self) -> bool {
        self.drive.info().volatile_cache
    }

    async fn read(&self, offset: u64, into: BufMut) -> (Result<(), BlockError>, BufMut) {
        let (outcome, into) = self.drive.read(offset, into).await;
        (self.ended(outcome), into)
    }

    async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        self.ended(self.drive.write(offset, core::slice::from_ref(&data), fua).await)
    }

    async fn compare_and_write(&self, _: u64, _: (Buf, Buf), _: bool) -> Result<bool, BlockError> {
        Err(BlockError::Unavailable)
    }

    async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        match self.drive.write_zeroes(offset, bytes).await {
            Err(DriveError::Unsupported) => self.write_zeros(offset, bytes).await?,
            other => self.ended(other)?,
        }
        if fua && self.volatile_cache() { self.flush().await } else { Ok(()) }
    }

    /// Zeros, so that what is read afterwards is the same each time.
    async fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        self.write_zeroes(offset, bytes, false).await
    }

    async fn flush(&self) -> Result<(), BlockError> {
        self.ended(self.drive.flush().await)
    }
}

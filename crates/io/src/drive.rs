//! The drive trait: what stores strips.
//!
//! A request is *submitted* by the call itself, before its ticket is first polled, so a caller
//! starts several and then awaits them one after the other. The runtime, not the ticket, owns
//! buffer and file handle until the drive is done with them; dropping a ticket cancels nothing.

use crate::buffer::{Buf, BufMut};
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use units::Nanos;

/// Most buffers one write gathers.
pub const GATHER_MAX: usize = 16;

/// Buffers written to consecutive addresses by one request, as whoever carries it out keeps them.
pub type Gather = arrayvec::ArrayVec<Buf, GATHER_MAX>;

/// What a drive says of itself; constant while it is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveInfo {
    /// Usable bytes, a multiple of `block_bytes`.
    pub bytes: u64,
    /// Smallest unit of I/O and of its alignment: 512 or 4096.
    pub block_bytes: u32,
    /// True when an acknowledged write may still be lost at power cut until flushed (D15).
    pub volatile_cache: bool,
    /// True when requests run to their end inside the submitting call (RAM-backed files, memory).
    pub inline: bool,
}

impl DriveInfo {
    /// Whether a request lies within the drive and on its blocks.
    ///
    /// # Errors
    /// `Bounds` if it does not.
    pub fn check(&self, offset: u64, bytes: u64) -> Result<(), DriveError> {
        let mask = u64::from(self.block_bytes) - 1;
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if inside && (offset | bytes) & mask == 0 { Ok(()) } else { Err(DriveError::Bounds) }
    }
}

/// Why a request to a drive failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveError {
    /// The drive could not read or write these blocks; others may be fine. Never said of a flush.
    Media,
    /// The drive refused or failed the request.
    Fault,
    /// The drive is gone.
    Gone,
    /// The drive is smaller than it was: what it held is gone, also where it reads as zeros.
    Shrunk,
    /// It was not done within its time: it may have been carried out, or be so later.
    Timeout,
    /// The operation is not offered by this drive (discard, write-zeroes).
    Unsupported,
    /// The request lies outside the drive or is not aligned: a mistake of ours.
    Bounds,
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Media => "unreadable blocks",
            Self::Fault => "input/output error",
            Self::Gone => "drive is gone",
            Self::Shrunk => "drive is smaller than it was",
            Self::Timeout => "no answer in time",
            Self::Unsupported => "not supported",
            Self::Bounds => "out of bounds",
        })
    }
}

impl core::error::Error for DriveError {}

/// A controller by which a drive is reached (NVM Express Base 2.3, section 5.2.13: CNTLID, CIU and
/// CIRN).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Controller {
    /// Its number within the subsystem.
    pub number: u16,
    /// Tells it from earlier ones of that number.
    pub uniquifier: u8,
    /// The same, at random.
    pub random: u64,
}

/// What has to stand on a drive for it to be changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guard {
    /// Where, in bytes, a multiple of 4096.
    pub offset: u64,
    /// What it begins with; at most 4096 bytes.
    pub begins: Vec<u8>,
}

/// Whether a controller has ended.
pub type Ending = Pin<Box<dyn Future<Output = bool>>>;

/// A drive that is reached by connections, as other servers may reach it.
pub trait Reached {
    /// How long after the last contact what was sent to it may be carried out.
    fn fence(&self) -> Nanos;
    /// From now on nothing is changed by a new connection, on whichever core, before what the guard
    /// says was read by it; if that is not so nothing is changed by it at all. `None`: whatever
    /// stands there. Connections that there are stay as they are.
    fn guard(&self, guard: Option<Guard>);
    /// The controllers by which it is reached. None: not all of them can be named.
    fn controllers(&self) -> Vec<Controller>;
    /// What the guard says stands there with the names of these controllers now; none: whoever
    /// reads it has to count on any. A new connection of another controller's changes nothing but
    /// that place, if there is a guard, before its own is named so.
    fn named(&self, controllers: &[Controller]);
    /// Nothing is changed under this guard any more, on whichever core, if it is the one that there
    /// is: whoever asked for it has let the drive go. What waits for a connection ends as gone. So
    /// it stays until another guard is set, or none.
    fn bar(&self, guard: &Guard);
    /// Has a controller ended, with all that it was sent, of a server that had the same name and
    /// identifier as this host. False: nobody could say that it has, and it may go on. One that is
    /// not there has ended: to be asked of no other host's, which is not there for this one.
    fn end(&self, controller: Controller) -> Ending;
}

/// One core's handle to a drive. Offsets and lengths are bytes, multiples of the block size.
pub trait Drive: Clone + 'static {
    /// Ticket of a read: gives the buffer back with the outcome.
    type Read: Future<Output = (Result<(), DriveError>, BufMut)> + Unpin + 'static;
    /// Ticket of anything else.
    type Done: Future<Output = Result<(), DriveError>> + Unpin + 'static;

    /// What the drive is.
    fn info(&self) -> &DriveInfo;
    /// Fills the whole of `into` from `offset`. After an error its content is undefined.
    fn read(&self, offset: u64, into: BufMut) -> Self::Read;
    /// Writes the buffers, at most [`GATHER_MAX`], one behind the other at `offset`; with `fua`
    /// they are durable when the ticket is done. After an error any subset of the blocks may have
    /// been written. A drive that is not done within the call keeps clones of the buffers.
    fn write(&self, offset: u64, data: &[Buf], fua: bool) -> Self::Done;
    /// Makes every write that completed before this call durable.
    fn flush(&self) -> Self::Done;
    /// Makes the range read as zeros, unmapping where that is cheap. Fails with `Unsupported`
    /// rather than leaving anything else than zeros behind.
    fn write_zeroes(&self, offset: u64, bytes: u64) -> Self::Done;
    /// Tells the drive that the range is unused; what it reads afterwards is undefined.
    fn discard(&self, offset: u64, bytes: u64) -> Self::Done;
    /// How it is reached, if that is by connections.
    fn reached(&self) -> Option<&dyn Reached> {
        None
    }
}

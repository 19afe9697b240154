//! The FUSE front end: a volume as one file, whose requests the kernel hands to us.
//!
//! Protocol: `include/uapi/linux/fuse.h` of Linux, version 7.x ([`wire`]). The file system is that
//! one file: its root is no directory. It is opened without the page cache, so that what is written
//! by one way to the volume is read by any other; it has the volume's size, which may change.
//!
//! This crate reads and writes no descriptor, and mounts nothing: [`serve`] talks through a
//! [`Device`], one of each core. Whoever mounts the file has a descriptor for each of these.
//!
//! - [`wire`]: bytes. [`limits`]: every bound. `serve`: one receiver, a fixed set of workers.
//! - `range`: what a request changes that is not aligned to blocks.
//!
//! Invariants
//! - Whatever the kernel asks is answered, or needs no answer: nobody waits for ever.
//! - Nothing is allocated by a length that was asked for, and nothing for a request that is aligned
//!   to blocks.
//! - Of a block that is changed in part the rest stays as it is, whatever else changes it.
//! - [`serve`] ends only after all that it began has ended.

pub mod limits;
mod range;
mod serve;
pub mod wire;

pub use front::{ConnectionMemory, Fence, Link, MemorySize};
pub use serve::serve;
pub use wire::Attributes;

use core::future::Future;
use std::io::IoSlice;
use std::sync::Arc;

/// There is nothing more to come: the file is not mounted any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unmounted;

/// The memory of a core's files.
pub const MEMORY: MemorySize = MemorySize {
    connections: 128,
    reserve_bytes: limits::REQUEST_BYTES_MAX,
    pieces: [512, 256, 64, 16],
};

/// Where the kernel's requests come from, used by tasks of one core.
pub trait Device: 'static {
    /// Waits until there may be a request.
    ///
    /// # Errors
    /// The file is not mounted any more.
    fn ready(&self) -> impl Future<Output = Result<(), Unmounted>>;

    /// Reads a request, if there is one: as far as it fits into `head`, and what is left of it into
    /// `rest`. How many bytes in all.
    ///
    /// # Errors
    /// The file is not mounted any more.
    fn receive(&self, head: &mut [u8], rest: &mut [u8]) -> Result<Option<usize>, Unmounted>;

    /// Answers a request, all at once. Nothing comes of it where nobody waits for the answer.
    fn answer(&self, parts: &[IoSlice<'_>]);

    /// The mount, as others see it.
    fn link(&self) -> Arc<dyn Link>;
}

/// What the file looks like, but for its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Whose it is.
    pub uid: u32,
    /// Whose group's.
    pub gid: u32,
    /// Who may read and write it: nine bits.
    pub mode: u32,
    /// When it was made, in seconds of Unix time.
    pub seconds: u64,
}

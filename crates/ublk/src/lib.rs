//! The ublk front end: a volume as a block device of Linux, whose requests the kernel hands to us.
//!
//! Protocol: `include/uapi/linux/ublk_cmd.h` of Linux ([`wire`]), with payload by user copy. The
//! kernel has queues, one of each core, each with a fixed number of requests by their *tags*. A
//! command asks for the next request of a tag, and with it answers the one before.
//!
//! This crate asks no kernel anything: [`serve`] talks through a [`Queue`], one of each core.
//! Whoever makes the device has the kernel's other commands ([`wire::control`]).
//!
//! - [`wire`]: bytes. [`limits`]: every bound. `serve`: a task for each tag.
//!
//! Invariants
//! - Whatever the kernel asks is answered: nobody waits for ever.
//! - A server that ends in the middle of it leaves requests that the kernel hands out again to the
//!   next one, by recovery with reissue: so a change that was not answered may be made twice, the
//!   second time behind all that was answered before.
//! - [`serve`] ends only after all that it began has ended.

pub mod limits;
mod serve;
pub mod wire;

pub use front::{ConnectionMemory, Fence, Link, MemorySize};
pub use serve::serve;
pub use wire::Request;

use core::future::Future;
use std::sync::Arc;

/// There is nothing more to come: the device ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

/// The memory of a core's queues.
pub const MEMORY: MemorySize = MemorySize {
    connections: 128,
    reserve_bytes: limits::REQUEST_BYTES_MAX,
    pieces: [512, 256, 64, 16],
};

/// A queue of a device, used by tasks of one core.
pub trait Queue: 'static {
    /// How many requests there may be: their tags are smaller.
    fn depth(&self) -> u16;

    /// Waits for the next request of a tag; answers the one before, if there was one, with the
    /// bytes that were moved or an error's number, negative.
    ///
    /// # Errors
    /// The device ends.
    fn next(&self, tag: u16, answer: Option<i32>) -> impl Future<Output = Result<Request, Gone>>;

    /// Copies what is to be written by a tag's request, all of it.
    ///
    /// # Errors
    /// The device ends.
    fn take(&self, tag: u16, into: &mut [u8]) -> Result<(), Gone>;

    /// Copies what was read to a tag's request, all of it.
    ///
    /// # Errors
    /// The device ends.
    fn give(&self, tag: u16, from: &[u8]) -> Result<(), Gone>;

    /// The device, as others see it.
    fn link(&self) -> Arc<dyn Link>;
}

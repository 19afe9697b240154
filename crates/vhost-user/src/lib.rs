//! The vhost-user front end: a volume as a virtio block device of a virtual machine, whose memory
//! this process shares.
//!
//! A machine puts requests into *rings* in its memory (Virtual I/O Device version 1.2, section 2.7,
//! split virtqueues), and rings a bell; what is answered goes back the same way. Each ring is
//! served by one core. Who connects, and what they agree on, is not known here.
//!
//! - [`wire`]: bytes of the block device (section 5.2). [`limits`]: every bound. [`chain`]: where a
//!   request's bytes lie. [`flight`]: what a ring has under way, where it outlives this process.
//!   [`ring`]: requests come and go. `serve`: a task for each request at a time.
//!
//! Invariants
//! - The machine changes its memory at any time: what is written is copied before anything is
//!   computed of it, and what says how is read once.
//! - Nothing that a machine says leads beyond its memory, or to unbounded work or memory here.
//! - A request that was taken is answered, or stands in [`flight`], so that the next server carries
//!   it out: a change that was not answered may be made twice.
//! - Nothing of a ring that is given up is written: its next server has it.
//! - A machine that can't ask for a flush has its writes on drives when they are answered.
//! - [`serve`] ends only after all that it began has ended.

pub mod chain;
pub mod flight;
pub mod limits;
pub mod ring;
mod serve;
pub mod wire;

pub use front::{ConnectionMemory, Fence, Link, MemorySize, Share};
pub use ring::Ring;
pub use serve::serve;

use core::future::Future;
use std::sync::Arc;

/// A machine's memory.
pub type Memory = Arc<vm_memory::GuestMemoryMmap>;

/// There is nothing more to come: the ring is stopped, or its machine has gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gone;

/// The memory of a core's rings.
pub const MEMORY: MemorySize =
    MemorySize { connections: 128, reserve_bytes: limits::PIECE_BYTES, pieces: [512, 256, 64, 16] };

/// The bells of a ring, used by tasks of one core.
pub trait Bell: 'static {
    /// Waits until the machine has rung since it was asked last.
    ///
    /// # Errors
    /// Nothing more is to be taken.
    fn rung(&self) -> impl Future<Output = Result<(), Gone>>;

    /// Whether nothing more is to be taken, whatever there is.
    fn is_over(&self) -> bool;

    /// Whether the ring is given up: another may serve it, so that nothing of what is under way is
    /// told any more. What is over by then is carried out again by the next.
    fn is_severed(&self) -> bool;

    /// Rings the machine's.
    fn ring(&self);

    /// The machine, as others see it.
    fn link(&self) -> Arc<dyn Link>;
}

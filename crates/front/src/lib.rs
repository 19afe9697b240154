//! What front ends share, whatever their protocol.
//!
//! - [`memory`]: payload pieces of a core, and what each of its connections may hold of them.
//! - [`seats`]: where a fixed set of workers waits for jobs.
//!
//! Invariant: nothing here knows a protocol, a socket or a volume.

pub mod memory;
pub mod seats;

pub use memory::{ConnectionMemory, Lease, MemorySize, Share, piece_bytes};
pub use seats::Seats;

//! What front ends share, whatever their protocol.
//!
//! - [`memory`]: payload pieces of a core, and what each of its connections may hold of them.
//! - [`fence`]: what is left of connections that broke.
//! - [`outbox`]: what waits for a connection's sender.
//! - [`seats`]: where a fixed set of workers waits for jobs.
//! - [`counters`]: what a core counts of a volume's requests; [`counted`]: a volume that does.
//!
//! Invariant: nothing here knows a protocol or a socket, nor of a volume more than `io::Blocks`.

pub mod counted;
pub mod counters;
pub mod fence;
pub mod memory;
pub mod outbox;
pub mod seats;

pub use counted::Counted;
pub use fence::{Fence, Link, Passage};
pub use memory::{ConnectionMemory, Lease, MemorySize, Share, piece_bytes};
pub use outbox::Outbox;
pub use seats::Seats;

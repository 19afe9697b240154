//! Every limit of a file, with the relations between them.
//!
//! Invariant: what the kernel's clients can make this hold is bounded by these numbers.

use front::memory::LARGEST;

/// Most bytes of one read or write.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Requests of a core under way.
pub const JOBS: usize = 64;

/// Payload of a write up to which it is moved to a piece of its size, so that the large one that it
/// landed in is free for the next.
pub const MOVED_MOST: usize = 16 << 10;

/// Bytes that a change which is not aligned to blocks takes memory for at a time.
pub const UNALIGNED_BYTES: usize = 64 << 10;

/// Requests that the kernel has under way without somebody who waits for each.
pub const BACKGROUND: u16 = 512;

const _: () = {
    assert!(REQUEST_BYTES_MAX <= LARGEST && MOVED_MOST < REQUEST_BYTES_MAX);
    assert!(UNALIGNED_BYTES <= REQUEST_BYTES_MAX);
};

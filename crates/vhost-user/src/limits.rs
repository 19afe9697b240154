//! Every limit of a device, with the relations between them.
//!
//! Invariant: what a machine can make this hold is bounded by these numbers.

use front::memory::LARGEST;

/// Bytes that are moved at a time: a longer request is moved piece by piece.
pub const PIECE_BYTES: usize = 1 << 20;

/// Most bytes of one request's payload.
pub const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// Requests of a ring under way.
pub const DEPTH: usize = 64;

/// Most descriptors of a ring.
pub const RING_MAX: u16 = 1024;

/// Rings of a device.
pub const RINGS: u16 = 64;

/// Most parts that a request's payload lies in: machines are told so. Those of the smallest usual
/// ring, with header and status.
pub const PARTS_MAX: usize = 126;

/// Most bytes that one request discards or makes zero: it holds up no other for long.
pub const ZEROED_BYTES_MAX: u64 = 1 << 30;

const _: () = {
    assert!(PIECE_BYTES <= LARGEST);
    // A header and a status beside the payload, each with a part of its own.
    assert!(PARTS_MAX + 2 <= RING_MAX as usize);
    assert!(RING_MAX.is_power_of_two());
};

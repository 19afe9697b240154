//! Every limit of a device, with the relations between them.
//!
//! Invariant: what the kernel can make this hold is bounded by these numbers.

use front::memory::LARGEST;

/// Most bytes of one read or write.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Requests of a queue under way, as they are asked for.
pub const DEPTH: u16 = 64;

/// Most bytes that one request discards or makes zero: it holds up no other for long.
pub const ZEROED_BYTES_MAX: u32 = 1 << 30;

const _: () = {
    assert!(REQUEST_BYTES_MAX <= LARGEST);
    // ublk_cmd.h: UBLK_MAX_QUEUE_DEPTH, UBLK_IO_BUF_BITS.
    assert!(DEPTH <= 4096 && REQUEST_BYTES_MAX <= 32 << 20);
};

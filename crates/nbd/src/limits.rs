//! Every limit of a connection, with the relations between them.
//!
//! Invariant: what one client can make the server hold or do without an answer is bounded by
//! these numbers, never by a number the client sent.

use front::memory::{LARGEST, RESERVE_BYTES};

/// Bytes that a connection reads ahead: headers are 28 bytes, so one call brings many.
pub const AHEAD: usize = 16 << 10;

/// Most bytes of one read or write: the maximum block size told to clients (proto.md, "Block
/// size constraints": 32 MiB is what clients may assume without being told).
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;

/// Jobs of one connection between the arrival of a command and the end of its reply. A command
/// is one job, or one for each piece of its payload.
pub const JOBS: usize = 64;

/// Commands of one connection in progress: one for each job and the one being received.
pub const COMMANDS: usize = JOBS + 1;

/// Longest read that a client may ask to get in one chunk (proto.md, `NBD_CMD_READ`: 65,536 is
/// the least a server must support).
pub const UNFRAGMENTED_BYTES: u32 = 64 << 10;

/// Options a client may send before it must have chosen an export.
pub const OPTIONS: usize = 1024;

/// Most data of one option.
pub const OPTION_BYTES: usize = 16 << 10;

/// Longest string (proto.md, "Values", strings: at most 4096 bytes).
pub const NAME_BYTES: usize = 4096;

/// Replies joined into one write to the transport.
pub const REPLY_BATCH: usize = 16;

/// Longest text of an error chunk.
pub const MESSAGE_BYTES: usize = 62;

const _: () = {
    assert!(UNFRAGMENTED_BYTES as usize <= RESERVE_BYTES);
    assert!(LARGEST as u64 <= REQUEST_BYTES_MAX as u64);
    assert!(OPTION_BYTES >= 2 * NAME_BYTES && COMMANDS > JOBS && REPLY_BATCH <= JOBS);
};

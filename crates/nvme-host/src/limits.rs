//! Every limit of a connection and of what a core asks, with the relations between them.

use io::drive::GATHER_MAX;
use units::Nanos;

/// Most bytes of a command's data, whatever the controller takes.
pub const DATA_MOST: u32 = 1 << 20;
/// Commands of a queue at a time, at most: their numbers have so many values.
pub const SLOTS_MOST: u16 = 1 << SLOT_BITS;
/// Bits of a command's identifier that say which slot it has. The others tell it from those that
/// had the slot before.
pub const SLOT_BITS: u32 = 10;
/// Entries of a queue, where nobody says otherwise: as nvme-cli has it.
pub const ENTRIES: u16 = 128;
/// Paths of a subsystem at a time.
pub const PATHS: u8 = 64;
/// Bytes that a connection reads ahead: many completions, or the data of some small reads.
pub const AHEAD: usize = 16 << 10;
/// PDUs joined into one write to the transport.
pub const BATCH: usize = 32;
/// Slices of one such write: no PDU is begun for which there may be no room.
pub const SLICES: usize = 128;
/// Slices of a PDU: its header, and data of a request.
pub const SLICES_OF_PDU: usize = GATHER_MAX + 2;
/// PDUs that are received before others have their turn: few, so that the next commands are on
/// their way while the rest is received. With as many as are under way, controller and host work by
/// turns, each waiting for the other.
pub const RECEIVE_BATCH: usize = 8;
/// How long a connection may bring nothing while commands are under way: less than an engine gives
/// a drive, so that another path can be tried. It is looked [`SILENCE_LOOKS`] times meanwhile.
pub const SILENCE: Nanos = Nanos::from_millis(8_000);
/// As it says.
pub const SILENCE_LOOKS: u32 = 8;
/// How often a command is sent again that the controller could not carry out just then.
pub const TRIES: u8 = 5;
/// How often a request is not carried out where it was sent before that is its outcome, and how
/// long it takes until a path that did not is asked again, unless another path takes it: longer
/// together than a controller takes to change its ways to namespaces.
pub const TURNS_AWAY: u8 = 100;
/// See [`TURNS_AWAY`].
pub const TRY_AGAIN: Nanos = Nanos::from_millis(200);
/// Bytes that are read where a guard says what has to stand there.
pub const GUARD_BYTES: usize = 4096;
/// Bytes of the zeros that are written where a controller has no Write Zeroes.
pub const ZEROS: usize = 128 << 10;
/// Bytes of a range of a Dataset Management command.
pub const RANGE_BYTES: u32 = 16;
/// Most blocks of a command.
pub const BLOCKS_MOST: u32 = 1 << 16;

const _: () = {
    assert!(PATHS as u32 == u64::BITS, "a bit for each");
    assert!(SLICES >= 2 * SLICES_OF_PDU && BATCH <= SLICES);
    assert!(SLOT_BITS < u16::BITS);
};

/// How often a page is read anew that could not be read, before nothing is changed for that.
pub const READS: u32 = 5;

//! Every limit of a connection, a controller and a core, with the relations between them.
//!
//! Invariant: what one host can make the target hold or do is bounded by these numbers, never by a
//! number the host sent.

use front::memory::{LARGEST, MemorySize, PIECES};
use units::Nanos;

/// Most bytes of a command's data, and of one data PDU from the host: one piece of memory.
pub const DATA_MOST: u32 = 1 << 20;
/// Most bytes of data in a command's capsule.
pub const CAPSULE_DATA: u32 = 16 << 10;
/// Entries of a queue, most and least.
pub const ENTRIES_MOST: u16 = 1024;
/// As [`ENTRIES_MOST`].
pub const ENTRIES_LEAST: u16 = 2;
/// I/O queues of a controller.
pub const IO_QUEUES: u16 = 128;
/// Asynchronous event requests of a controller at a time.
pub const EVENT_REQUESTS: usize = 4;
/// Controllers of a subsystem at a time; their numbers are 1 to this.
pub const CONTROLLERS: u16 = 1024;
/// Hosts without a controller whose counts are kept.
pub const HOSTS: usize = 1024;
/// Namespaces of a subsystem.
pub const NAMESPACES: u32 = 1024;
/// Cross-controller resets that a controller has in its page: those that go on, and those that are
/// over and were not removed.
pub const RESETS: usize = 16;
/// Groups of namespaces whose access changes as one; their numbers are 1 to this.
pub const ACCESS_GROUPS: u32 = 64;
/// Bytes that a connection reads ahead: a header has 72, a small write's capsule 4 KiB and its
/// header.
pub const AHEAD: usize = 32 << 10;
/// Replies joined into one write to the transport: two slices each, and one.
pub const REPLY_BATCH: usize = 31;
/// PDUs that a connection takes before its workers and its sender have their turn.
pub const RECEIVE_BATCH: usize = 32;
/// Workers of a core: commands that its volumes carry out at a time.
pub const WORKERS: usize = 512;
/// Comparisons and verifications that a core carries out at a time.
pub const CHECKS: usize = 4;
/// Ranges of a Dataset Management command (NVM, section 3.2.3: NR is 8 bits, 0's based).
pub const RANGES: u32 = 256;
/// Bytes of a range of a Dataset Management command.
pub const RANGE_BYTES: u32 = 16;

/// How long a host may take from the connection's begin to the end of its Connect.
pub const PATIENCE: Nanos = Nanos::from_millis(10_000);
/// How long a host may take to read that it is refused, or what it did wrong, before its connection
/// is closed; and how many bytes of what it sends meanwhile are read, and forgotten. A connection
/// that is closed with unread bytes is reset, and what was told last may be lost.
pub const LEAVE: Nanos = Nanos::from_millis(1_000);
/// See [`LEAVE`].
pub const LEAVE_BYTES: usize = 16 << 20;
/// How long a host may keep memory for data that it does not send, or replies that it does not
/// take, while others wait for memory.
pub const STALL: Nanos = Nanos::from_millis(15_000);
/// How often a core looks after keep-alive timers, events, and connections that have to end.
pub const TICK: Nanos = Nanos::from_millis(100);
/// The granularity of the keep-alive timer, in units of 100 ms (KAS).
pub const KEEP_ALIVE_UNITS: u16 = 1;
/// The longest keep-alive timeout of a discovery controller, milliseconds; longer ones, and none,
/// are taken as this.
pub const DISCOVERY_KEEP_ALIVE: u32 = 120_000;
/// Entries of a discovery controller's queue: as many as Linux asks for (`NVME_AQ_DEPTH`). Anybody
/// may have one, so what it can hold is little.
pub const DISCOVERY_ENTRIES: u16 = 32;
/// Most bytes of the data of a discovery controller's command, and all the payload memory that such
/// a controller holds at a time: a piece of memory.
pub const DISCOVERY_DATA: u32 = 128 << 10;
/// Discovery controllers at a time; what is above can't be a controller's number.
pub const DISCOVERY_CONTROLLERS: u16 = 0xffef;
/// The longest keep-alive timeout, milliseconds; longer ones are taken as this.
pub const KEEP_ALIVE_MOST: u32 = 24 * 3600 * 1000;

/// Connections of a core that anybody may have: those that have not connected yet, and discovery
/// controllers. One more takes the place of the oldest of them, so that strangers keep nobody out:
/// not those who have a right to an export, and not those who come to say that they have one.
/// They are not counted by address: many hosts may be behind one, and a stranger may have many.
pub const GUESTS: usize = 256;

/// Memory of a core's connections: as every front end's, with room for the data of a capsule in
/// reserve.
pub const MEMORY: MemorySize = MemorySize {
    connections: 2048,
    reserve_bytes: CAPSULE_DATA as usize,
    pieces: [1024, 512, 128, 32],
};

const _: () = {
    assert!(DATA_MOST as usize <= LARGEST && DATA_MOST.is_power_of_two());
    assert!(DISCOVERY_DATA <= DATA_MOST && DISCOVERY_DATA as usize == PIECES[2]);
    assert!(RESETS <= u8::MAX as usize);
    assert!(GUESTS * 4 <= MEMORY.connections);
    assert!(DISCOVERY_ENTRIES <= ENTRIES_MOST && CONTROLLERS <= DISCOVERY_CONTROLLERS);
    assert!(CAPSULE_DATA <= DATA_MOST && MEMORY.reserve_bytes >= CAPSULE_DATA as usize);
    assert!(RANGES * RANGE_BYTES <= CAPSULE_DATA);
    assert!(ENTRIES_LEAST >= 2 && (ENTRIES_MOST as usize + REPLY_BATCH) < u16::MAX as usize);
};

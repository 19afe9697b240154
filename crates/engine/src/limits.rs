//! Every limit of the engine, with the relations between them asserted at compile time (D4).

use units::{MIB, Nanos, SlotSet, StripSet};

/// Most drives of an array, and strips of a stripe.
pub const DRIVES_MAX: usize = layout::MAX_DRIVES as usize;
/// Most parities of a stripe.
pub const PARITIES_MAX: usize = layout::PARITIES_MAX as usize;
/// Largest strip, in bytes.
pub const STRIP_BYTES_MAX: usize = 1 << 20;
/// Largest slice: what one plan reads, computes and writes of each strip at a time, in bytes.
pub const SLICE_BYTES_MAX: usize = 128 << 10;
/// Stripes that one core works on at the same time, per array, at most,
pub const WORKERS: usize = 256;
/// and at least: fewer than [`WORKERS`] where an in-flight page has little room.
pub const WORKERS_LEAST: usize = 64;
/// Lanes of the journal that a core has, at most: batches that it writes at the same time.
pub const LANES: usize = 8;
/// Stripes that wait for the rest of a sequential stream at a time, of one core and array; each
/// until so many others were finished.
pub const HELD: usize = 64;
/// See [`HELD`].
pub const HOLD_FINISHED: u64 = 64;
/// A write that does not begin at a stripe's begin is one of a stream if it is this part of the
/// stripe.
pub const HOLD_PART: u32 = 16;
/// After so many stripes for which waiting did not pay,
pub const HOLD_MISSES: u32 = 4;
/// only one of so many waits.
pub const HOLD_TRIED: u32 = 64;
/// Buckets of the table of stripes in flight (a power of two).
pub const STRIPE_BUCKETS: usize = 256;
/// Requests of one core waiting for a stripe before the table must grow.
pub const PENDING: usize = 1024;
/// Most scratch memory per core and array, in bytes, where more than the least is wanted and
/// nothing else is said: small writes of [`WORKERS`] stripes of RAID 5 with strips of 64 KiB, and
/// some that take more.
pub const SCRATCH_BYTES: usize = 40 << 20;
/// Pieces of one request that are started before the first is awaited.
pub const PIECES: usize = 16;
/// Bands that a rebuild, resync or scrub works on at the same time.
pub const TASK_BANDS: usize = 4;
/// Stripes that a task works on at the same time within one band.
pub const TASK_STRIPES: usize = 8;
/// Least durable borders of a task on the way, where the group has that many bands.
pub const BORDERS_MIN: u64 = 16;
/// Most bands between two durable borders of a task.
pub const BORDER_BANDS: u64 = 64;

/// A range with unreadable blocks is halved at least down to this many bytes before anything is
/// recovered in it, and further, to a block, where that is the only way.
pub const BAD_RANGE_BYTES: u32 = 4 << 10;
/// How long a drive may take for a request, where nothing else is said. Healthy drives answer in
/// milliseconds, under garbage collection or error recovery within a second or two. And Linux's
/// NVMe and SCSI hosts give a request up after 30 s: with two drives hung, one behind the other, a
/// request of a host takes 2 * 5/4 of this, which must be less.
pub const DRIVE_DEADLINE: Nanos = Nanos::from_millis(10_000);

/// Periods of heartbeats of a shared array after which what no drive has confirmed does not hold
/// any more (`docs/owner-pages.md`).
pub const LEASE: u64 = 4;

/// A task that can't go on tries again after this long, if nothing else has it try before.
pub const TASK_RETRY: Nanos = Nanos::from_millis(60_000);
/// How often what changes by itself is told to the control plane.
pub const FEED_LOOK: Nanos = Nanos::from_millis(250);
/// So many changes are told to a control plane that does not read before it misses one.
pub const FEED_RING: usize = 256;
/// So many of an array's tasks that ended are known.
pub const ENDED_TASKS: usize = 16;
/// A task's rate is that of this long.
pub const RATE_SPAN: Nanos = Nanos::from_millis(30_000);
/// Pages of the region map that are on their way to a drive at once, or at a start to all drives:
/// they have one deadline.
pub const PAGES_AT_ONCE: usize = 256;
/// How often a drive that is put in gets what changed of the region map before changes are held.
pub const PAGE_PASSES: usize = 4;
/// How often cores give back grants of regions that they do not use.
pub const SWEEP: Nanos = Nanos::from_millis(3_000);
/// An in-flight page that says too much is written anew after nothing new came for so long.
pub const FLIGHT_QUIET: Nanos = Nanos::from_millis(5);
/// Columns that a start looks at, or makes right, at the same time,
pub const DOUBTS_AT_ONCE: usize = 16;
/// and strips of them: fewer columns of wide stripes.
pub const DOUBT_STRIPS_AT_ONCE: usize = 512;
/// Most bytes of each drive that it is told at once that it may discard: none takes as long as its
/// deadline for it.
pub const DISCARD_STEP: u64 = 64 * MIB;
/// Most bits that are written ahead of a sequence of first writes.
pub const WRITE_AHEAD: u64 = 7;
/// Most ranges of unreadable blocks that are shown beside the list of lost ones.
pub const NOTED_MAX: usize = 4096;
/// Bytes of the region map that are read or written by one request at the start.
pub const MAP_STEP: u64 = 1 << 20;
/// Drives whose journal areas a start reads at once, each into memory of its own, up to 64 MiB.
pub const AREAS_AT_ONCE: usize = 4;

const _: () = assert!(2 * DRIVE_DEADLINE.0 * 5 / 4 < Nanos::from_millis(30_000).0);
const _: () = assert!(STRIPE_BUCKETS.is_power_of_two());
const _: () = assert!(SLICE_BYTES_MAX <= STRIP_BYTES_MAX);
const _: () = assert!(DRIVES_MAX <= SlotSet::MOST && DRIVES_MAX <= StripSet::MOST);
const _: () = assert!(PARITIES_MAX <= parity::Code::MAX_PARITIES && PARITIES_MAX < DRIVES_MAX);
const _: () = assert!(DOUBT_STRIPS_AT_ONCE >= DRIVES_MAX, "at least one stripe");
const _: () = assert!(WORKERS_LEAST <= WORKERS && LANES.is_power_of_two());
const _: () = assert!(TASK_BANDS * TASK_STRIPES <= WORKERS_LEAST);

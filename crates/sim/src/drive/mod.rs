//! The simulated drive and its fault model.
//!
//! # Time
//! A request is submitted by the call. It runs in one to three *pieces*, each at a random time
//! between submission and completion, so overlapping requests may take effect in either order
//! and a large one may take effect in parts. The ticket is done at completion. An `inline`
//! drive runs requests inside the submitting call. Dropping a ticket cancels nothing. Completion is
//! at a random time, or where a drive of [`DriveConfig::pace`] would be done.
//!
//! # Write cache and power cut
//! Each block has its durable content and a list of newer *versions*, oldest first; reads see
//! the newest. A version becomes durable, and older ones of its block vanish, when
//! - its request completes and the profile has no volatile cache, or it was a FUA write; or
//! - a flush completes that was submitted after the request had completed.
//!
//! At a power cut every block keeps its durable content or gets one of its versions:
//! - acknowledged ones (volatile cache only): all, none, a random subset of blocks, or a random
//!   subset of requests; in any order, so an older version may win;
//! - in-flight ones: torn per block, each request by a pattern of its own: none, all, a prefix,
//!   the begin of every eight blocks, or any subset of its blocks. A block is never torn inside;
//!   where [`DriveConfig::tears`] says so, one may be left unreadable, or with nobody's bytes.
//!
//! When only the process is killed, in-flight requests are torn the same way; acknowledged
//! writes stay in the cache.
//!
//! # Faults, switched by tests
//! - *read error on a range* ([`SharedSimDrive::fail_range`]): `Media` until rewritten;
//! - *read, write, flush fault* ([`SharedSimDrive::fail_reads`] and so on): `Fault` for some
//!   requests; a failed write has written any subset of its blocks, a failed read leaves random
//!   bytes in the buffer, what a failed flush covered no later one of the process makes
//!   durable;
//! - *write error* ([`SharedSimDrive::spoil_writes`], [`SharedSimDrive::spoil_writes_within`]):
//!   the same for writes, ending with `Media`;
//! - *vanish*: everything, in flight or new, ends with `Gone` until the drive is back; where it
//!   lost its power meanwhile, until it is opened anew;
//! - *hang* and *hold*: nothing, or some requests, make no progress until released or the power
//!   is cut; what hung runs late;
//! - *write-zeroes unsupported*;
//! - *discard* leaves old, zero, random, or on every read different bytes.
//!
//! Content starts as random bytes, never as zeros. Silent damage: writes are lost or misdirected
//! ([`SharedSimDrive::lose_writes`] and so on); bits are flipped with
//! [`SharedSimDrive::overwrite`].
//!
//! Invariants
//! - An acknowledged FUA write, and a write completed before a flush that ended well was
//!   submitted, survive every power cut.
//! - A block outside all writes never changes.

mod fired;
mod image;
mod request;
mod store;

pub use fired::Fired;
pub use image::{Image, PAGE};
pub(crate) use request::{CutKind, DriveCell, Phase, cut, progress};
pub use request::{LogEntry, OpKind, Stage, Ticket};
pub use store::{Tears, TornCounts};

use crate::lock;
use crate::rng::Rng;
use crate::timeline::Timeline;
use io::{Buf, BufMut, Drive, DriveError, DriveInfo, Gather};
use pace::DriveState;
use request::{Countdown, Payload, State};
use std::sync::{Arc, Mutex};
use units::Nanos;

/// What reads of discarded blocks give back until they are written again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiscardContent {
    /// What was there before.
    Old,
    /// Zeros.
    Zero,
    /// Random bytes, the same on each read.
    Random,
    /// Random bytes, others on each read.
    Changing,
    /// Discard ends with `Unsupported`.
    Unsupported,
}

/// The profile of a simulated drive.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    /// Size in bytes, a multiple of `block_bytes`.
    pub bytes: u64,
    /// Smallest unit of I/O: 512 or 4096.
    pub block_bytes: u32,
    /// True if acknowledged writes may be lost at a power cut until flushed.
    pub volatile_cache: bool,
    /// True if requests run inside the submitting call.
    pub inline: bool,
    /// The shortest time a request takes.
    pub latency_least: Nanos,
    /// The longest time a request takes.
    pub latency_most: Nanos,
    /// How much longer a discard takes for each MiB.
    pub discard_mib: Nanos,
    /// What requests take by a model, in place of a random time.
    pub pace: Option<Arc<DriveState>>,
    /// Percentage of requests that run in more than one piece.
    pub split_percent: u8,
    /// What discarded blocks read as.
    pub discard: DiscardContent,
    /// True if write-zeroes is supported.
    pub write_zeroes: bool,
    /// True to keep a log of all requests.
    pub record: bool,
    /// What else a power cut may do to blocks that are being written.
    pub tears: Tears,
    /// True to begin with few different pages of random bytes, which costs less.
    pub littered: bool,
    /// Where the first content comes from.
    pub seed: u64,
}

impl DriveConfig {
    /// A drive with 512-byte blocks, without volatile cache, taking 5 to 100 µs a request.
    pub fn new(bytes: u64, seed: u64) -> Self {
        Self {
            bytes,
            block_bytes: 512,
            volatile_cache: false,
            inline: false,
            latency_least: Nanos::from_micros(5),
            latency_most: Nanos::from_micros(100),
            discard_mib: Nanos(0),
            pace: None,
            split_percent: 25,
            discard: DiscardContent::Random,
            write_zeroes: true,
            record: true,
            tears: Tears::default(),
            littered: false,
            seed,
        }
    }

    /// The same with a volatile write cache or without.
    pub fn with_cache(self, volatile_cache: bool) -> Self {
        Self { volatile_cache, ..self }
    }

    /// The same with blocks of `block_bytes`.
    pub fn with_blocks(self, block_bytes: u32) -> Self {
        Self { block_bytes, ..self }
    }

    /// A profile drawn from the seed: cache, speed, splitting, discard, write-zeroes. The block
    /// size is the caller's choice, as it is a property of the array.
    pub fn swarm(bytes: u64, block_bytes: u32, seed: u64) -> Self {
        use DiscardContent::{Changing, Old, Random, Unsupported, Zero};
        let mut rng = Rng::new(crate::rng::mix(!seed));
        let (least, most) =
            [(0, 0), (0, 1_000), (5_000, 100_000), (50_000, 5_000_000)][rng.index(4)];
        Self {
            block_bytes,
            volatile_cache: rng.coin(),
            inline: rng.chance(10),
            latency_least: Nanos(least),
            latency_most: Nanos(most),
            split_percent: [0, 25, 100][rng.index(3)],
            discard: [Old, Zero, Random, Changing, Unsupported][rng.index(5)],
            write_zeroes: rng.coin(),
            ..Self::new(bytes, seed)
        }
    }
}

/// Requests completed (with any outcome) and the bytes of reads and writes among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Write-zeroes.
    pub write_zeroes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes of reads.
    pub read_bytes: u64,
    /// Bytes of writes.
    pub write_bytes: u64,
    /// Requests that ended with an error.
    pub errors: u64,
    /// Requests refused with `Bounds`: mistakes of the caller.
    pub out_of_bounds: u64,
}

/// A simulated drive, shared by cores, worlds and tests. Clones are the same drive.
#[derive(Clone)]
pub struct SharedSimDrive {
    cell: DriveCell,
    info: Arc<DriveInfo>,
}

impl SharedSimDrive {
    /// Makes a drive full of random bytes.
    ///
    /// # Panics
    /// If the block size is not 512 or 4096 or does not divide the size, or the shortest latency
    /// is longer than the longest.
    pub fn new(config: DriveConfig) -> Self {
        assert!(matches!(config.block_bytes, 512 | 4096), "blocks have 512 or 4096 bytes");
        assert!(config.bytes.is_multiple_of(u64::from(config.block_bytes)), "size in whole blocks");
        assert!(config.latency_least <= config.latency_most, "latencies in order");
        let info = DriveInfo {
            bytes: config.bytes,
            block_bytes: config.block_bytes,
            volatile_cache: config.volatile_cache,
            inline: config.inline,
        };
        let bytes = usize::try_from(config.bytes).expect("size fits memory");
        let content = match config.littered {
            true => Image::littered(bytes, config.seed),
            false => Image::random(bytes, config.seed),
        };
        let cell = Arc::new(Mutex::new(State::new(config, content)));
        Self { cell, info: Arc::new(info) }
    }

    /// The drive as a power cut now would leave it, or with `power` false the end of the process
    /// alone, with random choices from `seed`. This one goes on. Unreadable blocks stay so and
    /// what a drive is gone or changes its bytes for; log, counters and switched faults do not.
    pub fn after_cut(&self, power: bool, seed: u64) -> Self {
        let copy = lock(&self.cell).after_cut(power, &mut Rng::new(seed));
        Self { cell: Arc::new(Mutex::new(copy)), info: self.info.clone() }
    }

    /// How many requests a power cut now may keep or not.
    pub fn undecided(&self) -> usize {
        lock(&self.cell).undecided().len()
    }

    /// The drive as a power cut now would leave it that keeps just those undecided requests, in
    /// the order of their submission, whose bits of `kept` are set, none behind the 64th; of each
    /// block the newest kept.
    pub fn after_choice(&self, kept: u64) -> Self {
        let state = lock(&self.cell);
        let all = state.undecided();
        let bit = |at: usize| at < 64 && kept >> at & 1 == 1;
        let chosen = |id| all.iter().position(|a| *a == id).is_some_and(bit);
        let copy = state.after_choice(chosen);
        Self { cell: Arc::new(Mutex::new(copy)), info: self.info.clone() }
    }

    /// The content as reads see it now.
    pub fn image(&self) -> Image {
        lock(&self.cell).store.image()
    }

    /// How power cuts left requests in flight so far.
    pub fn torn(&self) -> TornCounts {
        lock(&self.cell).torn
    }

    /// What faults did to requests since this was asked last.
    pub fn take_fired(&self) -> Fired {
        core::mem::take(&mut lock(&self.cell).fired)
    }

    /// Offsets of blocks that hold nobody's bytes since a power cut.
    pub fn garbage(&self) -> Vec<u64> {
        let state = lock(&self.cell);
        let block = u64::from(state.config.block_bytes);
        state.store.garbage().into_iter().map(|b| b * block).collect()
    }

    /// Offsets of blocks that can't be read.
    pub fn unreadable(&self) -> Vec<u64> {
        let state = lock(&self.cell);
        let block = u64::from(state.config.block_bytes);
        state.store.bad().into_iter().map(|b| b * block).collect()
    }

    /// Whether it was pulled and is not back.
    pub fn is_gone(&self) -> bool {
        lock(&self.cell).faults.gone
    }

    /// Another drive with the same profile and the content reads see now; faults, log, counters
    /// and requests in flight are not copied.
    pub fn duplicate(&self) -> Self {
        let state = lock(&self.cell);
        let copy = State::new(state.config.clone(), state.store.image());
        Self { cell: Arc::new(Mutex::new(copy)), info: self.info.clone() }
    }

    /// Whether both are the same drive.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cell, &other.cell)
    }

    pub(crate) fn cell(&self) -> &DriveCell {
        &self.cell
    }

    /// What the drive says of itself.
    pub fn info(&self) -> &DriveInfo {
        &self.info
    }

    /// True if both are the same drive.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.cell, &other.cell)
    }

    /// All bytes as reads see them now.
    pub fn contents(&self) -> Vec<u8> {
        lock(&self.cell).store.image().to_vec()
    }

    /// Some bytes as reads see them now.
    ///
    /// # Panics
    /// If the range is outside the drive.
    pub fn peek(&self, offset: u64, bytes: u64) -> Vec<u8> {
        lock(&self.cell).store.peek(offset, bytes)
    }

    /// All bytes that would be left if the cache and everything in flight were lost.
    pub fn durable(&self) -> Vec<u8> {
        lock(&self.cell).store.durable().to_vec()
    }

    /// Changes bytes behind everyone's back, durably: silent damage, or a drive's past state
    /// restored. Any offset and length.
    ///
    /// # Panics
    /// If the range is outside the drive.
    pub fn overwrite(&self, offset: u64, bytes: &[u8]) {
        lock(&self.cell).store.overwrite(offset, bytes);
    }

    /// Reads that touch the range end with `Media` until the blocks are rewritten.
    pub fn fail_range(&self, offset: u64, bytes: u64) {
        lock(&self.cell).store.spoil(offset, bytes);
    }

    /// After `skip` more reads, `count` reads end with `Fault` (`u64::MAX`: all).
    pub fn fail_reads(&self, skip: u64, count: u64) {
        lock(&self.cell).faults.reads = Countdown::new(skip, count);
    }

    /// After `skip` more writes (plain, FUA, write-zeroes), `count` end with `Fault`.
    pub fn fail_writes(&self, skip: u64, count: u64) {
        lock(&self.cell).faults.writes = Countdown::new(skip, count);
    }

    /// After `skip` more writes (plain, FUA, write-zeroes), `count` end with `Media`.
    pub fn spoil_writes(&self, skip: u64, count: u64) {
        lock(&self.cell).faults.bad_writes = Countdown::new(skip, count);
    }

    /// Writes (plain, FUA, write-zeroes) that touch these bytes end with `Media`.
    pub fn spoil_writes_within(&self, bytes: core::ops::Range<u64>) {
        lock(&self.cell).faults.bad_within = bytes;
    }

    /// After `skip` more flushes, `count` flushes end with `Fault`.
    pub fn fail_flushes(&self, skip: u64, count: u64) {
        lock(&self.cell).faults.flushes = Countdown::new(skip, count);
    }

    /// After `skip` more writes, `count` are acknowledged and change nothing.
    pub fn lose_writes(&self, skip: u64, count: u64) {
        lock(&self.cell).faults.lost = Countdown::new(skip, count);
    }

    /// After `skip` more writes, `count` land `by` bytes (whole blocks) behind where they should,
    /// or before where there is no room behind.
    pub fn misdirect_writes(&self, skip: u64, count: u64, by: u64) {
        let mut state = lock(&self.cell);
        state.faults.astray = Countdown::new(skip, count);
        state.faults.astray_by = by;
    }

    /// Pulls the drive: requests in flight, hung ones too, and new ones end with `Gone`.
    pub fn vanish(&self) {
        lock(&self.cell).vanish();
        self.release();
    }

    /// Puts a pulled drive back, with its cache. For a drive that lost power while out, call
    /// [`SharedSimDrive::power_cut`] first.
    pub fn reappear(&self) {
        lock(&self.cell).faults.gone = false;
    }

    /// Stops all progress of requests, in flight and new.
    pub fn hang(&self) {
        lock(&self.cell).faults.hung = true;
    }

    /// After `skip` more requests of any kind, `count` requests make no progress until the
    /// release; others go on.
    pub fn hold(&self, skip: u64, count: u64) {
        lock(&self.cell).faults.holds = Countdown::new(skip, count);
    }

    /// Writes that begin within these bytes make no progress until the release.
    pub fn hold_within(&self, bytes: core::ops::Range<u64>) {
        lock(&self.cell).faults.holds_within = bytes;
    }

    /// Ends [`SharedSimDrive::hang`] and lets held requests go: what hung goes on after new
    /// random delays.
    pub fn release(&self) {
        request::release(&self.cell);
    }

    /// Switches off the faults that wait for requests; what hung goes on, unreadable blocks stay.
    pub fn calm(&self) {
        lock(&self.cell).calm();
        self.release();
    }

    /// Ends all faults but being gone; hung requests go on.
    pub fn clear_faults(&self) {
        lock(&self.cell).clear_faults();
        self.release();
    }

    /// Switches write-zeroes on or off.
    pub fn set_write_zeroes(&self, supported: bool) {
        lock(&self.cell).config.write_zeroes = supported;
    }

    /// Says what discarded blocks read as from now on.
    pub fn set_discard(&self, content: DiscardContent) {
        lock(&self.cell).config.discard = content;
    }

    /// Makes requests from now on take `least` to `most`.
    ///
    /// # Panics
    /// If `least` is longer than `most`.
    pub fn set_latency(&self, least: Nanos, most: Nanos) {
        assert!(least <= most, "latencies in order");
        let mut state = lock(&self.cell);
        state.config.latency_least = least;
        state.config.latency_most = most;
        state.slow = true;
    }

    /// Cuts the power of this drive alone, with random choices from `seed`. Requests in flight
    /// are torn and end with `Gone`, also those that hung, and from then on all of handles made
    /// before: what had the drive open may not go on as if its cache were still there. New handles
    /// serve at once; call [`SharedSimDrive::vanish`] before to keep the drive away.
    pub fn power_cut(&self, seed: u64) {
        lock(&self.cell).power_cut_alone(&mut Rng::new(seed));
        self.release();
    }

    /// Requests submitted and not completed.
    pub fn in_flight(&self) -> usize {
        lock(&self.cell).in_flight()
    }

    /// Whether a write is under way that begins within these bytes.
    pub fn writes_within(&self, bytes: core::ops::Range<u64>) -> bool {
        lock(&self.cell).writes_within(&bytes)
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        lock(&self.cell).counters
    }

    /// Everything that happened to requests, in order.
    pub fn log(&self) -> Vec<LogEntry> {
        lock(&self.cell).log.clone()
    }

    /// Forgets log and counters.
    pub fn clear_log(&self) {
        let mut state = lock(&self.cell);
        state.log.clear();
        state.counters = Counters::default();
    }
}

/// One core's handle to a simulated drive.
#[derive(Clone)]
pub struct SimDrive {
    shared: SharedSimDrive,
    timeline: Timeline,
    number: u64,
    life: u64,
}

impl SimDrive {
    pub(crate) fn new(shared: SharedSimDrive, timeline: Timeline, number: u64) -> Self {
        let life = lock(&shared.cell).life;
        Self { shared, timeline, number, life }
    }

    /// The drive behind the handle.
    pub fn shared(&self) -> &SharedSimDrive {
        &self.shared
    }

    fn submit(&self, payload: Payload, offset: u64, bytes: u64, fua: bool) {
        let (number, life) = (self.number, self.life);
        let what = request::Submission { payload, offset, bytes, fua, number, life };
        request::submit(&self.shared.cell, &self.timeline, what);
    }
}

impl Drive for SimDrive {
    type Read = Ticket<(Result<(), DriveError>, BufMut)>;
    type Done = Ticket<Result<(), DriveError>>;

    fn info(&self) -> &DriveInfo {
        &self.shared.info
    }

    fn read(&self, offset: u64, into: BufMut) -> Self::Read {
        let ticket = Ticket::default();
        let bytes = into.len() as u64;
        self.submit(Payload::Read(Some(into), ticket.clone()), offset, bytes, false);
        ticket
    }

    fn write(&self, offset: u64, data: &[Buf], fua: bool) -> Self::Done {
        let ticket = Ticket::default();
        let bytes = data.iter().map(|buffer| buffer.len() as u64).sum();
        let data: Box<Gather> = Box::new(data.iter().cloned().collect());
        self.submit(Payload::Write(data, ticket.clone()), offset, bytes, fua);
        ticket
    }

    fn flush(&self) -> Self::Done {
        let ticket = Ticket::default();
        self.submit(Payload::Flush(0, ticket.clone()), 0, 0, false);
        ticket
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Self::Done {
        let ticket = Ticket::default();
        self.submit(Payload::WriteZeroes(ticket.clone()), offset, bytes, false);
        ticket
    }

    fn discard(&self, offset: u64, bytes: u64) -> Self::Done {
        let ticket = Ticket::default();
        self.submit(Payload::Discard(ticket.clone()), offset, bytes, false);
        ticket
    }
}

//! Requests of a simulated drive and their way through it.
//!
//! A request is *in flight* from submission to completion. Its events are one for each piece
//! and one for the completion; while the drive hangs, events are *parked* and come again after
//! the release. A request that is refused (bounds, gone, fault decided at submission) has its
//! outcome from the start and runs no pieces, or in part.
//!
//! Invariants
//! - A ticket is done exactly once, or never if the power was cut.
//! - When the completion happens, every piece has run.
//! - Buffers stay with the request until it completes or the power is cut.

use super::image::Image;
use super::store::{Store, Torn, TornCounts};
use super::{Counters, DiscardContent, DriveConfig, Fired, Tears};
use crate::lock;
use crate::rng::{Rng, mix};
use crate::timeline::{Event, Timeline, WeakTimeline};
use core::future::Future;
use core::ops::Range;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use io::{BufMut, DriveError, Gather};
use pace::Op;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::{MIB, Nanos};

/// The state of a drive, shared.
pub(crate) type DriveCell = Arc<Mutex<State>>;

type Outcome = Result<(), DriveError>;

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// A ticket of a request; see [`io::Drive`].
pub struct Ticket<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> Default for Ticket<T> {
    fn default() -> Self {
        Self { slot: Arc::new(Mutex::new(Slot { value: None, waker: None })) }
    }
}

impl<T> Ticket<T> {
    pub(super) fn clone(&self) -> Self {
        Self { slot: self.slot.clone() }
    }

    fn finish(&self, value: T) {
        let waker = {
            let mut slot = lock(&self.slot);
            slot.value = Some(value);
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Ticket<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut slot = lock(&self.slot);
        if let Some(value) = slot.value.take() {
            return Poll::Ready(value);
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Read.
    Read,
    /// Write, plain or FUA.
    Write,
    /// Flush.
    Flush,
    /// Write-zeroes.
    WriteZeroes,
    /// Discard.
    Discard,
}

/// What happened to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// The caller handed it over.
    Submitted,
    /// It ended with this outcome, and its ticket became done.
    Completed(Result<(), DriveError>),
}

/// One line of a drive's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// Place in the world's total order; see [`crate::SimEnv::sequence`].
    pub sequence: u64,
    /// Virtual time.
    pub at: Nanos,
    /// The request's number on this drive.
    pub request: u64,
    /// What happened.
    pub stage: Stage,
    /// What it asked for.
    pub kind: OpKind,
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// True for a FUA write.
    pub fua: bool,
}

/// What a request carries and whom it answers.
pub(super) enum Payload {
    Read(Option<BufMut>, Ticket<(Outcome, BufMut)>),
    Write(Box<Gather>, Ticket<Outcome>),
    /// Covers what was acknowledged up to this number.
    Flush(u64, Ticket<Outcome>),
    WriteZeroes(Ticket<Outcome>),
    Discard(Ticket<Outcome>),
}

impl Payload {
    fn kind(&self) -> OpKind {
        match self {
            Self::Read(..) => OpKind::Read,
            Self::Write(..) => OpKind::Write,
            Self::Flush(..) => OpKind::Flush,
            Self::WriteZeroes(_) => OpKind::WriteZeroes,
            Self::Discard(_) => OpKind::Discard,
        }
    }
}

/// The next step of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// A piece runs.
    Piece(u8),
    /// It completes.
    Complete,
}

/// A request as it comes from a handle.
pub(super) struct Submission {
    pub(super) payload: Payload,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) fua: bool,
    /// The drive's number in the world, for the trace.
    pub(super) number: u64,
    /// How often the drive had lost its power alone when the handle was made.
    pub(super) life: u64,
}

struct Request {
    what: Submission,
    /// Blocks of each piece; `None` once it has run.
    pieces: Vec<Option<Range<u64>>>,
    outcome: Outcome,
    /// Vanished while in flight.
    gone: bool,
    /// Makes no progress until the release.
    held: bool,
    /// Since when it makes no progress, or how long it made none.
    parked: Option<Nanos>,
    late: Option<Nanos>,
    /// A write that changes nothing.
    lost: bool,
    /// The block where it begins if it is a write that lands elsewhere.
    astray: Option<u64>,
    timeline: WeakTimeline,
}

/// Lets some requests pass, then fails some.
#[derive(Default)]
pub(super) struct Countdown {
    skip: u64,
    count: u64,
}

impl Countdown {
    pub(super) fn new(skip: u64, count: u64) -> Self {
        Self { skip, count }
    }

    fn fails(&mut self) -> bool {
        if self.count == 0 {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.count -= u64::from(self.count != u64::MAX);
        true
    }
}

/// The faults that are on.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) reads: Countdown,
    pub(super) writes: Countdown,
    pub(super) bad_writes: Countdown,
    pub(super) bad_within: Range<u64>,
    pub(super) flushes: Countdown,
    pub(super) holds: Countdown,
    pub(super) holds_within: Range<u64>,
    pub(super) lost: Countdown,
    pub(super) astray: Countdown,
    pub(super) astray_by: u64,
    pub(super) gone: bool,
    pub(super) hung: bool,
}

/// What ends a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CutKind {
    /// The drives lose power.
    Power,
    /// Only the process ends.
    Process,
}

/// Everything about a drive.
pub(crate) struct State {
    pub(super) config: DriveConfig,
    pub(super) store: Store,
    pub(super) faults: Faults,
    pub(super) counters: Counters,
    pub(super) log: Vec<LogEntry>,
    pub(super) torn: TornCounts,
    pub(super) fired: Fired,
    /// It was given other latencies.
    pub(super) slow: bool,
    requests: BTreeMap<u64, Request>,
    parked: Vec<(u64, Phase)>,
    submitted: u64,
    acknowledged: u64,
    /// How often the drive lost its power alone.
    pub(super) life: u64,
}

impl State {
    pub(super) fn new(config: DriveConfig, content: Image) -> Self {
        Self {
            store: Store::new(config.block_bytes, content),
            config,
            faults: Faults::default(),
            counters: Counters::default(),
            log: Vec::new(),
            torn: TornCounts::default(),
            fired: Fired::default(),
            slow: false,
            requests: BTreeMap::new(),
            parked: Vec::new(),
            submitted: 0,
            acknowledged: 0,
            life: 0,
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn writes_within(&self, bytes: &Range<u64>) -> bool {
        let write = |r: &Request| matches!(r.what.payload, Payload::Write(..));
        self.requests.values().any(|r| write(r) && bytes.contains(&r.what.offset))
    }

    pub(super) fn vanish(&mut self) {
        self.faults.gone = true;
        self.requests.values_mut().for_each(|request| request.gone = true);
    }

    pub(super) fn calm(&mut self) {
        let Faults { gone, hung, .. } = self.faults;
        self.faults = Faults { gone, hung, ..Faults::default() };
    }

    pub(super) fn clear_faults(&mut self) {
        self.calm();
        self.store.heal();
    }

    /// What is known of the outcome at submission.
    fn refusal(&mut self, what: &Submission) -> Outcome {
        let block = u64::from(self.config.block_bytes);
        let kind = what.payload.kind();
        let end = what.offset.checked_add(what.bytes);
        if !what.offset.is_multiple_of(block)
            || !what.bytes.is_multiple_of(block)
            || end.is_none_or(|end| end > self.config.bytes)
        {
            self.counters.out_of_bounds += 1;
            return Err(DriveError::Bounds);
        }
        if self.faults.gone || what.life != self.life {
            return Err(DriveError::Gone);
        }
        let unsupported = match kind {
            OpKind::WriteZeroes => !self.config.write_zeroes,
            OpKind::Discard => self.config.discard == DiscardContent::Unsupported,
            _ => false,
        };
        if unsupported {
            let discard = u64::from(kind == OpKind::Discard);
            self.fired.discards[DiscardContent::Unsupported as usize] += discard;
            return Err(DriveError::Unsupported);
        }
        let fails = match kind {
            OpKind::Read => self.faults.reads.fails(),
            OpKind::Write | OpKind::WriteZeroes => self.faults.writes.fails(),
            OpKind::Flush => self.faults.flushes.fails(),
            OpKind::Discard => false,
        };
        let writes = matches!(kind, OpKind::Write | OpKind::WriteZeroes);
        if fails {
            self.fired.reads += u64::from(kind == OpKind::Read);
            self.fired.writes += u64::from(writes);
            self.fired.flushes += u64::from(kind == OpKind::Flush);
            return Err(DriveError::Fault);
        }
        let bad = &self.faults.bad_within;
        let within = bad.start < what.offset + what.bytes && what.offset < bad.end;
        let media = writes && (within || self.faults.bad_writes.fails());
        self.fired.bad_writes += u64::from(media);
        if media { Err(DriveError::Media) } else { Ok(()) }
    }

    /// How long a request takes that comes now.
    fn latency(&self, what: &Submission, now: Nanos, rng: &mut Rng) -> u64 {
        let DriveConfig { latency_least, latency_most, discard_mib, pace, .. } = &self.config;
        let kind = what.payload.kind();
        if let Some(pace) = pace {
            let op = match kind {
                OpKind::Read => Op::Read,
                OpKind::Write => Op::Write,
                OpKind::Flush | OpKind::WriteZeroes | OpKind::Discard => Op::Other,
            };
            return pace.admit(now, op, what.offset, what.bytes).since(now).0;
        }
        let latency = rng.between(latency_least.0, latency_most.0);
        let discarded = if kind == OpKind::Discard { what.bytes } else { 0 };
        latency + discarded / MIB * discard_mib.0
    }

    /// Cuts the blocks of a request into pieces.
    fn cut(&self, what: &Submission, rng: &mut Rng) -> Vec<Option<Range<u64>>> {
        let block = u64::from(self.config.block_bytes);
        let all = what.offset / block..(what.offset + what.bytes) / block;
        let count = all.end - all.start;
        if count < 2 || !rng.chance(self.config.split_percent) {
            return vec![Some(all)];
        }
        let mut borders = [rng.between(all.start, all.end), rng.between(all.start, all.end)];
        borders.sort_unstable();
        let [first, second] = borders;
        let pieces = [all.start..first, first..second, second..all.end];
        pieces.into_iter().filter(|piece| !piece.is_empty()).map(Some).collect()
    }

    fn note(&mut self, timeline: &Timeline, id: u64, what: &Submission, stage: Stage) {
        let Submission { offset, bytes, fua, ref payload, number, .. } = *what;
        let kind = payload.kind();
        let code = match stage {
            Stage::Submitted => 0,
            Stage::Completed(Ok(())) => 1,
            Stage::Completed(Err(error)) => 2 + error as u64,
        };
        let content = match payload {
            Payload::Read(Some(buffer), _) if stage == Stage::Completed(Ok(())) => digest(buffer),
            Payload::Write(data, _) if code == 0 => {
                data.iter().fold(0, |hash, buffer| mix(hash ^ digest(buffer)))
            }
            _ => 0,
        };
        let op = kind as u64 | code << 8 | u64::from(fua) << 16 | number << 32;
        timeline.trace(&[4, op, id, offset, bytes, content]);
        timeline.boundary();
        if self.config.record {
            let (sequence, at) = (timeline.sequence(), timeline.now());
            let request = id;
            self.log.push(LogEntry { sequence, at, request, stage, kind, offset, bytes, fua });
        }
    }

    /// Runs a piece that has not run yet.
    fn run_piece(&mut self, request: &mut Request, id: u64, piece: usize, rng: &mut Rng) {
        let Some(blocks) = request.pieces[piece].take() else { return };
        let failed = match request.outcome {
            Ok(()) => false,
            Err(DriveError::Fault | DriveError::Media) => true,
            Err(_) => return,
        };
        if request.gone {
            return;
        }
        if let Payload::Read(Some(into), _) = &mut request.what.payload {
            let block_bytes = self.config.block_bytes as usize;
            if self.store.any_bad(blocks.clone()) && !failed {
                request.outcome = Err(DriveError::Media);
                let bad = self.store.bad_within(blocks.clone());
                self.fired.unreadable.extend(bad.map(|block| block * block_bytes as u64));
            }
            let first = request.what.offset / u64::from(self.config.block_bytes);
            let span = |block: u64| (block - first) as usize * block_bytes;
            let piece = span(blocks.start)..span(blocks.end);
            self.store.read(blocks.start, &mut into[piece], rng);
            return;
        }
        for block in blocks {
            if !failed || rng.coin() {
                self.write_block(request, id, block, rng);
            }
        }
    }

    /// The blocks that a request changes.
    fn target(&self, request: &Request) -> Range<u64> {
        let block = u64::from(self.config.block_bytes);
        let Submission { offset, bytes, .. } = request.what;
        let blocks = offset / block..offset.saturating_add(bytes) / block;
        let count = blocks.end - blocks.start;
        request.astray.map_or(blocks, |start| start..start + count)
    }

    /// What silent faults do to a write.
    fn stray(&mut self, what: &Submission) -> (bool, Option<u64>) {
        if !matches!(what.payload, Payload::Write(..)) {
            return (false, None);
        }
        let lost = self.faults.lost.fails();
        let astray = self.faults.astray.fails().then(|| {
            let ahead = what.offset + self.faults.astray_by;
            let fits = ahead + what.bytes <= self.config.bytes;
            let at = if fits { ahead } else { what.offset.saturating_sub(self.faults.astray_by) };
            at / u64::from(self.config.block_bytes)
        });
        (lost, astray)
    }

    /// Carries out a write, write-zeroes or discard on one block.
    fn write_block(&mut self, request: &Request, id: u64, block: u64, rng: &mut Rng) {
        if request.lost {
            return;
        }
        let what = &request.what;
        let bytes = self.config.block_bytes as usize;
        let mut space = [0; 4096];
        let data = &mut space[..bytes];
        match &what.payload {
            Payload::Read(..) | Payload::Flush(..) => return,
            Payload::WriteZeroes(_) => {}
            Payload::Write(gather, _) => {
                let at = block * bytes as u64 - what.offset;
                copy_out(gather, at as usize, data);
            }
            Payload::Discard(_) => match self.config.discard {
                DiscardContent::Old | DiscardContent::Unsupported => return,
                DiscardContent::Zero => {}
                DiscardContent::Random => rng.fill(data),
                DiscardContent::Changing => return self.store.make_changing(block),
            },
        }
        let first = what.offset / bytes as u64;
        let to = request.astray.map_or(block, |start| start + (block - first));
        self.store.write(to, id, data);
    }

    /// Ends a request: makes durable what is, counts, and answers.
    fn complete(&mut self, timeline: &Timeline, id: u64) {
        let Some(mut request) = self.requests.remove(&id) else { return };
        let mut rng = timeline.random(|rng| rng.fork());
        for piece in 0..request.pieces.len() {
            self.run_piece(&mut request, id, piece, &mut rng);
        }
        if request.gone {
            request.outcome = Err(DriveError::Gone);
        }
        let fua = request.what.fua;
        let outcome = request.outcome;
        let blocks = self.target(&request);
        match &mut request.what.payload {
            Payload::Flush(covered, _) if outcome.is_ok() => self.store.flush(*covered),
            Payload::Flush(covered, _) => self.store.doom(*covered),
            Payload::Read(Some(into), _) if outcome.is_err() => rng.fill(into),
            Payload::Read(..) => {}
            _ if outcome == Err(DriveError::Bounds) => {}
            _ => {
                self.acknowledged += 1;
                self.store.acknowledge(id, blocks.clone(), self.acknowledged);
                if !self.config.volatile_cache || (fua && outcome.is_ok()) {
                    self.store.harden(id, blocks);
                }
            }
        }
        self.count(&request.what, outcome);
        self.fired.gone += u64::from(outcome == Err(DriveError::Gone));
        self.fired.late.extend(request.late.filter(|_| !request.gone));
        if matches!(request.what.payload, Payload::Discard(_)) && outcome.is_ok() {
            self.fired.discard(self.config.discard);
        }
        self.note(timeline, id, &request.what, Stage::Completed(outcome));
        match request.what.payload {
            Payload::Read(buffer, ticket) => {
                ticket.finish((outcome, buffer.expect("a read keeps its buffer")));
            }
            Payload::Write(data, ticket) => {
                drop(data);
                ticket.finish(outcome);
            }
            Payload::Flush(_, ticket) => ticket.finish(outcome),
            Payload::WriteZeroes(ticket) | Payload::Discard(ticket) => ticket.finish(outcome),
        }
    }

    fn count(&mut self, what: &Submission, outcome: Outcome) {
        let counters = &mut self.counters;
        counters.errors += u64::from(outcome.is_err());
        match what.payload.kind() {
            OpKind::Read => {
                counters.reads += 1;
                counters.read_bytes += what.bytes;
            }
            OpKind::Write => {
                counters.writes += 1;
                counters.write_bytes += what.bytes;
            }
            OpKind::Flush => counters.flushes += 1,
            OpKind::WriteZeroes => counters.write_zeroes += 1,
            OpKind::Discard => counters.discards += 1,
        }
    }

    /// Runs a request in part as far as it has not run, and takes it out of flight.
    fn tear(&mut self, id: u64, rng: &mut Rng) -> Option<Torn> {
        let request = self.requests.remove(&id)?;
        Some(self.tear_request(&request, id, rng))
    }

    fn tear_request(&mut self, request: &Request, id: u64, rng: &mut Rng) -> Torn {
        let block = u64::from(self.config.block_bytes);
        let Submission { offset, bytes, .. } = request.what;
        let blocks = offset / block..offset.saturating_add(bytes) / block;
        let written = matches!(request.what.payload, Payload::Write(..)) && request.outcome.is_ok();
        let whole = request.pieces.iter().all(Option::is_some) && written && !request.gone;
        let tears = if whole { self.config.tears.clone() } else { Tears::default() };
        let torn = Torn::draw(rng, &blocks, offset, &tears);
        if written {
            torn.count(&mut self.torn);
        }
        let refused = matches!(request.outcome, Err(error) if error != DriveError::Fault);
        if !refused && !request.gone {
            for block in request.pieces.iter().flatten().cloned().flatten() {
                if torn.keeps(block, rng) {
                    self.write_block(request, id, block, rng);
                }
            }
        }
        torn
    }

    /// Cuts the power of drive and hosts: no ticket in flight will be done.
    fn power_cut(&mut self, rng: &mut Rng) {
        self.power_cut_alone(rng);
        self.requests.clear();
        self.parked.clear();
        self.faults.hung = false;
        self.faults.holds = Countdown::default();
        self.faults.holds_within = 0..0;
    }

    /// Cuts the power of the drive alone: requests in flight will end with `Gone`.
    pub(super) fn power_cut_alone(&mut self, rng: &mut Rng) {
        let mut requests = core::mem::take(&mut self.requests);
        let mut torn = BTreeMap::new();
        for (id, request) in &mut requests {
            torn.insert(*id, self.tear_request(request, *id, rng));
            request.gone = true;
        }
        self.requests = requests;
        self.life += 1;
        self.store.power_cut(&torn, rng);
        torn.values().for_each(|torn| self.store.damage(*torn, rng));
    }

    /// A copy as a power cut, or the end of the process, would leave it.
    pub(super) fn after_cut(&self, power: bool, rng: &mut Rng) -> Self {
        let mut copy = Self::new(self.config.clone(), Image::random(0, 0));
        copy.store = self.store.clone();
        copy.faults.gone = self.faults.gone;
        copy.acknowledged = self.acknowledged;
        copy.submitted = self.submitted;
        let mut torn = BTreeMap::new();
        for (id, request) in &self.requests {
            torn.insert(*id, copy.tear_request(request, *id, rng));
        }
        if power {
            copy.store.power_cut(&torn, rng);
        } else {
            copy.acknowledged += 1;
            for id in torn.keys() {
                copy.store.acknowledge(*id, 0..u64::MAX, copy.acknowledged);
            }
            copy.store.relent();
            if !copy.config.volatile_cache {
                copy.store.flush(copy.acknowledged);
            }
        }
        torn.values().for_each(|torn| copy.store.damage(*torn, rng));
        copy
    }

    /// Requests that a power cut now may keep or not.
    pub(super) fn undecided(&self) -> Vec<u64> {
        let mut all = self.store.undecided();
        let writes = |r: &Request| {
            !matches!(r.what.payload, Payload::Read(..) | Payload::Flush(..)) && r.outcome.is_ok()
        };
        all.extend(self.requests.iter().filter(|(_, r)| writes(r)).map(|(id, _)| *id));
        all.into_iter().collect()
    }

    /// A copy as a power cut that keeps just these undecided requests would leave it.
    pub(super) fn after_choice(&self, kept: impl Fn(u64) -> bool) -> Self {
        let mut copy = Self::new(self.config.clone(), Image::random(0, 0));
        copy.store = self.store.clone();
        let mut rng = Rng::new(0);
        for (id, request) in self.requests.iter().filter(|(id, _)| kept(**id)) {
            for block in request.pieces.iter().flatten().cloned().flatten() {
                copy.write_block(request, *id, block, &mut rng);
            }
        }
        copy.store.choose(kept);
        copy
    }

    /// Ends the requests of one world whose process was killed.
    fn killed(&mut self, timeline: &Timeline, rng: &mut Rng) {
        let mine = self.requests.iter().filter(|(_, request)| request.timeline.is(timeline));
        let ids: Vec<u64> = mine.map(|(id, _)| *id).collect();
        for id in ids {
            self.tear(id, rng);
            self.acknowledged += 1;
            let everywhere = 0..u64::MAX;
            self.store.acknowledge(id, everywhere, self.acknowledged);
        }
        self.store.relent();
        if !self.config.volatile_cache {
            self.store.flush(self.acknowledged);
        }
        let requests = &self.requests;
        self.parked.retain(|(id, _)| requests.contains_key(id));
    }
}

/// A number that tells contents apart: their first and last bytes and their length.
fn digest(data: &[u8]) -> u64 {
    let sample = data.iter().take(8).chain(data.iter().rev().take(8));
    sample.fold(data.len() as u64, |hash, byte| hash.rotate_left(8) ^ mix(u64::from(*byte)))
}

/// Copies from the gathered bytes, starting at byte `at` of them.
fn copy_out(gather: &Gather, mut at: usize, into: &mut [u8]) {
    let mut done = 0;
    for buffer in gather {
        if at >= buffer.len() {
            at -= buffer.len();
            continue;
        }
        let count = (buffer.len() - at).min(into.len() - done);
        into[done..done + count].copy_from_slice(&buffer[at..at + count]);
        done += count;
        at = 0;
    }
}

/// Submits a request.
pub(super) fn submit(cell: &DriveCell, timeline: &Timeline, mut what: Submission) {
    if !timeline.admit() {
        return;
    }
    let mut guard = lock(cell);
    let state = &mut *guard;
    let id = state.submitted;
    state.submitted += 1;
    if let Payload::Flush(covered, _) = &mut what.payload {
        *covered = state.acknowledged;
    }
    let outcome = state.refusal(&what);
    state.note(timeline, id, &what, Stage::Submitted);
    let mut rng = timeline.random(|rng| rng.fork());
    let pieces = match outcome {
        Err(DriveError::Bounds) => Vec::new(),
        _ => state.cut(&what, &mut rng),
    };
    let latency = state.latency(&what, timeline.now(), &mut rng);
    let inline = state.config.inline;
    let parts = pieces.len();
    let weak = timeline.downgrade();
    let writes = matches!(what.payload, Payload::Write(..));
    let within = writes && state.faults.holds_within.contains(&what.offset);
    let held = state.faults.holds.fails() || within;
    state.fired.slow += u64::from(state.slow);
    let parked = (inline && (state.faults.hung || held)).then(|| timeline.now());
    let (lost, astray) = state.stray(&what);
    let (gone, late) = (false, None);
    let request =
        Request { what, pieces, outcome, gone, held, parked, late, lost, astray, timeline: weak };
    state.requests.insert(id, request);
    if parked.is_some() {
        state.parked.push((id, Phase::Complete));
        return;
    }
    if inline {
        return state.complete(timeline, id);
    }
    let schedule = |after: u64, phase| {
        timeline.schedule(Nanos(after), Event::Drive { drive: cell.clone(), request: id, phase });
    };
    for piece in 0..parts {
        schedule(rng.between(0, latency), Phase::Piece(piece as u8));
    }
    schedule(latency, Phase::Complete);
}

/// Lets a request make its next step.
pub(crate) fn progress(cell: &DriveCell, timeline: &Timeline, id: u64, phase: Phase) {
    let mut state = lock(cell);
    if state.faults.hung || state.requests.get(&id).is_some_and(|request| request.held) {
        state.parked.push((id, phase));
        if let Some(request) = state.requests.get_mut(&id) {
            request.parked.get_or_insert(timeline.now());
        }
        return;
    }
    match phase {
        Phase::Complete => state.complete(timeline, id),
        Phase::Piece(piece) => {
            let Some(mut request) = state.requests.remove(&id) else { return };
            let mut rng = timeline.random(|rng| rng.fork());
            state.run_piece(&mut request, id, usize::from(piece), &mut rng);
            state.requests.insert(id, request);
        }
    }
}

/// Ends a hang.
pub(super) fn release(cell: &DriveCell) {
    let mut state = lock(cell);
    state.faults.hung = false;
    state.faults.holds_within = 0..0;
    state.requests.values_mut().for_each(|request| request.held = false);
    let parked = core::mem::take(&mut state.parked);
    let (least, most) = (state.config.latency_least.0, state.config.latency_most.0);
    for (request, phase) in parked {
        let Some(waits) = state.requests.get_mut(&request) else { continue };
        let Some(timeline) = waits.timeline.upgrade() else { continue };
        if let Some(since) = waits.parked.take() {
            waits.late = Some(timeline.now().since(since));
        }
        let after = Nanos(timeline.random(|rng| rng.between(least, most)));
        timeline.schedule(after, Event::Drive { drive: cell.clone(), request, phase });
    }
}

/// Ends a world's hold on a drive.
pub(crate) fn cut(cell: &DriveCell, timeline: &Timeline, kind: CutKind) {
    let mut rng = timeline.random(|rng| rng.fork());
    let mut state = lock(cell);
    let since = state.requests.values().filter_map(|request| request.parked);
    let held: Vec<Nanos> = since.map(|since| timeline.now().since(since)).collect();
    state.fired.held.extend(held);
    match kind {
        CutKind::Power => state.power_cut(&mut rng),
        CutKind::Process => state.killed(timeline, &mut rng),
    }
}

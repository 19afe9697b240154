//! A drive's state, and what a request takes in it.
//!
//! State: until when the drive is busy; how much of its last work was reads; where its last write
//! ended; how many bytes it wrote to its flash. A request is served when those before it are. Then
//! it takes the *latency*, in which others are served. Behind a port it is served there, too, at
//! the same time: the slower of the two counts.
//!
//! Reads and writes of some drives overlap: while both are asked for, each takes less of the drive.
//! With rates r and w of what the drive gives to reads or writes alone, r² + w² ≤ 1 in place of r +
//! w ≤ 1. So a request's time is multiplied by √(s² + (1 − s)²), where s is the reads' share of the
//! work in the last two milliseconds.
//!
//! Writes fill whole *units*, those of the drive's map: a part of one costs all of it, unless it
//! goes on where the last write ended.
//!
//! Invariants
//! - An idle drive is done with a request after its cost and its latency.
//! - Whatever the order of requests, within any time no more is served than the costs allow.

use crate::cost::Cost;
use crate::model::{Model, Overlap};
use crate::port::Port;
use crate::work::Busy;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes, makes zero or discards: a command without data.
    Other,
}

/// The work that the reads' share is taken of, in picoseconds.
const WINDOW: f64 = 2e9;

/// The whole, of which the reads' share is told.
const WHOLE: f64 = (1u64 << 32) as f64;

/// A drive of a model, shared by cores.
#[derive(Debug)]
pub struct DriveState {
    model: &'static Model,
    reads: Cost,
    writes: Cost,
    latency: [Nanos; 2],
    per_window: f64,
    unit: u64,
    busy: Busy,
    /// The reads' share, of [`WHOLE`].
    share: AtomicU64,
    /// Where the last write ended.
    tail: AtomicU64,
    nand: AtomicU64,
    port: Option<Arc<Port>>,
}

impl DriveState {
    /// An idle drive, `slower` times as slow as its model, behind a port that is, too.
    pub fn new(model: &'static Model, slower: f64, port: Option<Arc<Port>>) -> Self {
        let nanos = |micros: f64| Nanos((micros * slower * 1e3).round() as u64);
        Self {
            model,
            reads: Cost::new(model.reads, slower),
            writes: Cost::new(model.writes, slower),
            latency: [nanos(model.read_latency_us.value), nanos(model.write_latency_us.value)],
            per_window: 1.0 / (WINDOW * slower),
            unit: model.unit_bytes.value as u64,
            busy: Busy::default(),
            share: AtomicU64::new((WHOLE / 2.0) as u64),
            tail: AtomicU64::new(u64::MAX),
            nand: AtomicU64::new(0),
            port,
        }
    }

    /// `count` drives, with as many ports as they need.
    pub fn many(model: &'static Model, slower: f64, count: usize) -> Vec<Arc<Self>> {
        let behind = model.port.as_ref().map_or(count, |port| port.drives.value as usize);
        let mut drives = Vec::with_capacity(count);
        while drives.len() < count {
            let port = model.port.as_ref().map(|port| Arc::new(Port::new(port, slower)));
            let more = behind.clamp(1, count - drives.len());
            drives.extend((0..more).map(|_| Arc::new(Self::new(model, slower, port.clone()))));
        }
        drives
    }

    /// Bytes written to the flash so far: what writes had, in whole units.
    pub fn nand_bytes(&self) -> u64 {
        self.nand.load(Ordering::Relaxed)
    }

    /// A request comes `now`, by the drive's own port if it has one; when it is done.
    pub fn admit(&self, now: Nanos, op: Op, offset: u64, bytes: u64) -> Nanos {
        self.admit_by(None, now, op, (offset, bytes))
    }

    /// A request for bytes at an offset comes `now`, by this port in place of the drive's own; when
    /// it is done. A drive in a shelf may be reached by several.
    pub fn admit_by(
        &self,
        port: Option<&Port>,
        now: Nanos,
        op: Op,
        (offset, bytes): (u64, u64),
    ) -> Nanos {
        let (picos, latency) = match op {
            Op::Read => (self.reads.of(bytes), self.latency[0]),
            Op::Write => (self.writes.of(self.fill(offset, bytes)), self.latency[1]),
            Op::Other => (self.writes.of(0), self.latency[1]),
        };
        let served = self.busy.serve(now, self.overlapped(op, picos));
        let port = port.or(self.port.as_deref()).map(|port| port.serve(now, op, bytes));
        served.max(port.unwrap_or_default()).after(latency)
    }

    /// What a write of these bytes writes.
    fn fill(&self, offset: u64, bytes: u64) -> u64 {
        let (unit, end) = (self.unit, offset.saturating_add(bytes));
        let goes_on = self.tail.swap(end, Ordering::Relaxed) == offset;
        let first = if goes_on { offset.next_multiple_of(unit) } else { offset / unit * unit };
        // Within a unit that is being filled already nothing is added.
        let filled = end.next_multiple_of(unit).saturating_sub(first);
        self.nand.fetch_add(filled, Ordering::Relaxed);
        filled.max(bytes)
    }

    /// What a request takes beside others.
    fn overlapped(&self, op: Op, picos: u64) -> u64 {
        if self.model.overlap == Overlap::Adds {
            return picos;
        }
        let weight = (picos as f64 * self.per_window).min(1.0);
        let own = if op == Op::Read { WHOLE } else { 0.0 };
        let next = |share: u64| (share as f64 + (own - share as f64) * weight) as u64;
        let changed =
            self.share.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| Some(next(at)));
        let (Ok(before) | Err(before)) = changed;
        let reads = next(before) as f64 / WHOLE;
        (picos as f64 * (reads * reads + (1.0 - reads) * (1.0 - reads)).sqrt()) as u64
    }
}

//! The load whose writes are recorded: a number of tasks, each with one request in flight, against
//! raw drives or a volume.
//!
//! The same code makes both sides' requests: same addresses, buffers, stamps and records; only
//! [`Target`] differs. Tasks run on the data core itself, so the generator's cost is part of
//! both sides.

use crate::record::{BLOCK, Record};
use core::cell::Cell;
use io::local::Event;
use io::{BufMut, Env, Pool, Priority, Reach};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use workload::target::TURN;
use workload::{Random, Target};

/// Puts requests out of order: a prime, so that each comes once.
const MIX: u64 = 2_147_483_647;

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Reads; the content is not looked at.
    Read,
    /// Reads and compares with the record.
    Verify,
    /// Writes the next version.
    Write,
    /// Reads so many per cent of the time, and writes else.
    Mixed(u8),
}

impl Op {
    /// Whether some of its requests write.
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Mixed(_))
    }
}

/// In which order addresses are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Each as likely as any other.
    Random,
    /// Nine of ten in the first hundredth, the others anywhere.
    Hot,
    /// One behind the other, from the start again at the end.
    Sequential,
    /// Each at another multiple of so many bytes, mixed up.
    Apart(u64),
}

/// When a load ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// After this time; requests in flight are finished.
    Elapsed(Duration),
    /// After one pass over the address space.
    Once,
}

/// A kind of load on one side. Clones continue the same sequence and record.
#[derive(Clone)]
pub struct Load {
    /// What is done.
    pub op: Op,
    /// Where.
    pub order: Order,
    /// Bytes of a request, a multiple of 4096.
    pub bytes: usize,
    /// Requests in flight, over all cores.
    pub depth: usize,
    record: Arc<Record>,
    cursor: Arc<AtomicU64>,
    buffers: Pool,
}

/// What a load came to on one core.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Requests completed.
    pub operations: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Blocks that are not as recorded, and the first of them.
    pub wrong: (u64, Option<u64>),
    /// When the first request was made.
    pub start: Instant,
    /// When the last one was done.
    pub end: Instant,
}

impl Load {
    /// A load whose writes go into `record`, which covers the target's address space.
    pub fn new(op: Op, order: Order, bytes: usize, depth: usize, record: &Arc<Record>) -> Self {
        Self::reached(op, order, bytes, depth, record, None)
    }

    /// As [`Load::new`], with payloads that a device may reach.
    pub fn reached(
        op: Op,
        order: Order,
        bytes: usize,
        depth: usize,
        record: &Arc<Record>,
        reach: Option<&Arc<dyn Reach>>,
    ) -> Self {
        // Who was just answered may ask again before the last reference to its payload is gone.
        let buffers = record.payloads(bytes, 2 * depth + 16, reach);
        let (record, cursor) = (record.clone(), Arc::default());
        Self { op, order, bytes, depth, record, cursor, buffers }
    }

    /// Runs this core's share of the load: `depth` of its tasks.
    pub async fn run<E: Env, T: Target>(
        self,
        env: E,
        target: T,
        depth: usize,
        until: Until,
        seed: u64,
    ) -> Part {
        assert!(
            self.record.blocks() * BLOCK as u64 >= target.bytes(),
            "the record covers the target"
        );
        let apart = if let Order::Apart(bytes) = self.order { bytes } else { self.bytes as u64 };
        let requests = target.bytes() / apart;
        let start = Instant::now();
        let (end, limit) = match until {
            Until::Elapsed(span) => (Some(start + span), u64::MAX),
            Until::Once => (None, requests),
        };
        let tally = Rc::new(Tally::default());
        tally.running.set(depth);
        for task in 0..depth as u64 {
            let random = Random::new(seed ^ task << 32);
            let load = self.clone();
            let (target, tally) = (target.clone(), tally.clone());
            let made = 0;
            let work = Work { target, load, requests, end, limit, made, random, tally };
            env.spawn(Priority::First, work.run());
        }
        tally.ended.wait_until(|| (tally.running.get() == 0).then_some(())).await;
        let (operations, failed) = (tally.operations.get(), tally.failed.get());
        Part { operations, failed, wrong: tally.wrong.get(), start, end: Instant::now() }
    }
}

#[derive(Default)]
struct Tally {
    operations: Cell<u64>,
    failed: Cell<u64>,
    wrong: Cell<(u64, Option<u64>)>,
    running: Cell<usize>,
    ended: Event,
}

/// One task of a load.
struct Work<T> {
    target: T,
    load: Load,
    requests: u64,
    end: Option<Instant>,
    limit: u64,
    made: usize,
    random: Random,
    tally: Rc<Tally>,
}

impl<T: Target> Work<T> {
    async fn run(mut self) {
        match self.load.op {
            Op::Read | Op::Verify => self.read_all().await,
            Op::Write => self.write_all().await,
            Op::Mixed(reads) => self.mix_all(reads).await,
        }
        self.tally.running.set(self.tally.running.get() - 1);
        self.tally.ended.notify();
    }

    /// The next address; `None` when the load is over.
    #[inline]
    fn next(&mut self) -> Option<u64> {
        // A look at the clock is not free: one for every 128 KiB. The core's own time is not
        // fresh enough, since requests that end inside the call don't bring its turn to an end.
        self.made += self.load.bytes;
        if self.made >= TURN as usize {
            self.made = 0;
            if self.end.is_some_and(|end| Instant::now() >= end) {
                return None;
            }
        }
        let (apart, request) = match self.load.order {
            Order::Random => (self.load.bytes as u64, self.random.below(self.requests)),
            Order::Hot => {
                let few = (self.requests / 100).max(1);
                let among = if self.random.below(10) == 0 { self.requests } else { few };
                (self.load.bytes as u64, self.random.below(among))
            }
            Order::Sequential => (self.load.bytes as u64, self.in_turn()?),
            Order::Apart(bytes) => (bytes, self.in_turn()? * MIX % self.requests),
        };
        Some(request * apart)
    }

    /// The next of all requests; `None` when the load is over.
    #[inline]
    fn in_turn(&self) -> Option<u64> {
        let count = self.load.cursor.fetch_add(1, Ordering::Relaxed);
        (count < self.limit).then_some(count % self.requests)
    }

    #[inline]
    fn count(&self, done: bool) {
        let counter = if done { &self.tally.operations } else { &self.tally.failed };
        counter.set(counter.get() + 1);
    }

    fn buffer(&self) -> BufMut {
        self.load.buffers.take(self.load.bytes).expect("a load's buffers cover its depth")
    }

    async fn read_all(&mut self) {
        let mut buffer = self.buffer();
        while let Some(at) = self.next() {
            let done;
            (done, buffer) = self.target.read(at, buffer).await;
            self.count(done);
            if done && self.load.op == Op::Verify {
                self.compare(at, &buffer);
            }
        }
    }

    fn compare(&self, at: u64, content: &[u8]) {
        let (count, first) = self.load.record.compare(at / BLOCK as u64, content);
        let (known, known_first) = self.tally.wrong.get();
        let first = known_first.into_iter().chain(first).min();
        self.tally.wrong.set((known + count, first));
    }

    async fn write_all(&mut self) {
        while let Some(at) = self.next() {
            self.write(at).await;
        }
    }

    async fn write(&self, at: u64) {
        let (first, blocks) = (at / BLOCK as u64, (self.load.bytes / BLOCK) as u64);
        if !self.load.record.claim(first) {
            // Another task writes it right now: which of the two came last nobody could say.
            return;
        }
        let mut payload = self.buffer();
        self.load.record.stamp(first, &mut payload);
        let done = self.target.write(at, payload.freeze()).await;
        self.load.record.written(first, blocks);
        self.count(done);
    }

    async fn mix_all(&mut self, reads: u8) {
        let mut buffer = self.buffer();
        while let Some(at) = self.next() {
            if self.random.below(100) < u64::from(reads) {
                let done;
                (done, buffer) = self.target.read(at, buffer).await;
                self.count(done);
            } else {
                self.write(at).await;
            }
        }
    }
}

//! A volume in memory, for tests of front ends: it notes what it is asked, and can hold or fail
//! requests.
//!
//! Invariant: a request that is not of whole blocks, or reaches outside, panics: a front end has to
//! refuse it before.

use io::local::{Event, yield_now};
use io::{BlockError, Blocks, Buf, BufMut};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use units::BAND_BYTES;

/// What a volume was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Offset, bytes.
    Read(u64, usize),
    /// Offset, bytes, FUA.
    Write(u64, usize, bool),
    /// Offset, bytes, FUA.
    CompareWrite(u64, usize, bool),
    /// Offset, bytes, FUA.
    Zeroes(u64, u64, bool),
    /// Offset, bytes.
    Discard(u64, u64),
    /// All of it.
    Flush,
}

/// What the clones of a volume share.
pub struct Inner {
    /// Its bytes.
    pub data: RefCell<Vec<u8>>,
    /// What it was asked, in order.
    pub log: RefCell<Vec<Op>>,
    block_bytes: u32,
    strip_bytes: u32,
    stripe_bytes: u32,
    /// What is acknowledged may be lost before a flush.
    pub volatile_cache: Cell<bool>,
    /// Requests in this range fail.
    bad: RefCell<Option<(Range<u64>, BlockError)>>,
    /// Requests at this offset wait.
    held: Cell<Option<u64>>,
    /// A discard leaves what is less than a band of each drive as it was; else all reads as zeros.
    pub keeps_parts: Cell<bool>,
    /// Requests that have begun and not ended.
    pub in_flight: Cell<usize>,
    /// Written buffers that are kept after the reply, as by a drive that does not answer.
    pub keep: Cell<bool>,
    /// These.
    pub kept: RefCell<Vec<Buf>>,
    /// Others run between what a read takes and its end.
    pub reads_take_time: Cell<bool>,
    changed: Event,
    /// How often order was asked for.
    pub ordered: Cell<usize>,
}

/// The volume; clones are the same.
#[derive(Clone)]
pub struct MemoryVolume(pub Rc<Inner>);

impl MemoryVolume {
    /// Bytes of the volume follow a pattern with period 251.
    pub fn new(bytes: usize, block_bytes: u32) -> Self {
        Self(Rc::new(Inner {
            data: RefCell::new((0..bytes).map(|at| (at % 251) as u8).collect()),
            log: RefCell::default(),
            block_bytes,
            strip_bytes: 64 << 10,
            stripe_bytes: 3 * (64 << 10),
            volatile_cache: Cell::new(false),
            bad: RefCell::default(),
            held: Cell::new(None),
            keeps_parts: Cell::new(false),
            in_flight: Cell::new(0),
            keep: Cell::new(false),
            kept: RefCell::default(),
            reads_take_time: Cell::new(false),
            changed: Event::default(),
            ordered: Cell::new(0),
        }))
    }

    /// Requests that touch the range fail so.
    pub fn fail(&self, range: Range<u64>, error: BlockError) {
        *self.0.bad.borrow_mut() = Some((range, error));
    }

    /// Requests at this offset wait until another, or none, is said.
    pub fn hold(&self, offset: Option<u64>) {
        self.0.held.set(offset);
        self.0.changed.notify();
    }

    /// What it was asked since the last time.
    pub fn log(&self) -> Vec<Op> {
        self.0.log.take()
    }

    /// Some of its bytes.
    pub fn bytes_at(&self, offset: usize, bytes: usize) -> Vec<u8> {
        self.0.data.borrow()[offset..offset + bytes].to_vec()
    }

    async fn begin(&self, op: Op, offset: u64, bytes: u64) -> Result<Range<usize>, BlockError> {
        let block = u64::from(self.0.block_bytes);
        assert!(offset.is_multiple_of(block) && bytes.is_multiple_of(block), "unaligned: {op:?}");
        assert!(bytes > 0, "empty: {op:?}");
        assert!(offset + bytes <= self.bytes(), "outside: {op:?}");
        self.0.log.borrow_mut().push(op);
        self.0.in_flight.set(self.0.in_flight.get() + 1);
        let free = || (self.0.held.get() != Some(offset)).then_some(());
        self.0.changed.wait_until(free).await;
        self.0.in_flight.set(self.0.in_flight.get() - 1);
        match &*self.0.bad.borrow() {
            Some((range, error)) if range.start < offset + bytes && offset < range.end => {
                Err(*error)
            }
            _ => Ok(offset as usize..(offset + bytes) as usize),
        }
    }
}

impl Blocks for MemoryVolume {
    fn bytes(&self) -> u64 {
        self.0.data.borrow().len() as u64
    }
    fn block_bytes(&self) -> u32 {
        self.0.block_bytes
    }
    fn strip_bytes(&self) -> u32 {
        self.0.strip_bytes
    }
    fn stripe_bytes(&self) -> u32 {
        self.0.stripe_bytes
    }
    fn volatile_cache(&self) -> bool {
        self.0.volatile_cache.get()
    }
    async fn read(&self, offset: u64, mut into: BufMut) -> (Result<(), BlockError>, BufMut) {
        let bytes = into.len();
        let outcome = self.begin(Op::Read(offset, bytes), offset, bytes as u64).await;
        let outcome = outcome.map(|range| into.copy_from_slice(&self.0.data.borrow()[range]));
        if self.0.reads_take_time.get() {
            yield_now().await;
        }
        (outcome, into)
    }
    async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        let bytes = data.len();
        let range = self.begin(Op::Write(offset, bytes, fua), offset, bytes as u64).await?;
        self.0.data.borrow_mut()[range].copy_from_slice(&data);
        if self.0.keep.get() {
            self.0.kept.borrow_mut().push(data);
        }
        Ok(())
    }
    async fn compare_and_write(
        &self,
        offset: u64,
        (expected, data): (Buf, Buf),
        fua: bool,
    ) -> Result<bool, BlockError> {
        let bytes = data.len();
        let op = Op::CompareWrite(offset, bytes, fua);
        let range = self.begin(op, offset, bytes as u64).await?;
        let mut all = self.0.data.borrow_mut();
        let is_same = all[range.clone()] == expected[..];
        if is_same {
            all[range].copy_from_slice(&data);
        }
        Ok(is_same)
    }
    async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        let range = self.begin(Op::Zeroes(offset, bytes, fua), offset, bytes).await?;
        self.0.data.borrow_mut()[range].fill(0);
        Ok(())
    }
    async fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        let range = self.begin(Op::Discard(offset, bytes), offset, bytes).await?;
        if !self.0.keeps_parts.get() {
            self.0.data.borrow_mut()[range].fill(0);
            return Ok(());
        }
        let band = BAND_BYTES as usize * (self.stripe_bytes() / self.strip_bytes()) as usize;
        let (from, to) = (range.start.next_multiple_of(band), range.end / band * band);
        if from < to {
            self.0.data.borrow_mut()[from..to].fill(0);
        }
        Ok(())
    }
    async fn in_order(&self) -> Result<(), BlockError> {
        self.0.ordered.set(self.0.ordered.get() + 1);
        Ok(())
    }
    async fn flush(&self) -> Result<(), BlockError> {
        self.0.log.borrow_mut().push(Op::Flush);
        Ok(())
    }
}

//! A volume whose requests are counted.
//!
//! Purpose: front ends serve it in place of the volume, and know nothing of counters. A request is
//! what a front end asks of the volume: a command of a host that is longer than the memory that it
//! gets at a time is several, one that compares is reads.
//!
//! Invariants
//! - Each request is counted once as begun and once as over, also where its future is dropped
//!   before its end; nothing else is done than without counting.
//! - A request looks at its core's [`Clock`] twice. [`Env::now`] is no look at the machine's clock,
//!   at which a core looks once a turn: a request that is begun and over within a turn takes no
//!   time; the time of others is wrong by what happened in their first and last turn.
//! - Nothing is allocated, looked up or shared with another core.

use crate::counters::{Kind, Outcome, Writer};
use io::{BlockError, Blocks, Buf, BufMut, Env};
use std::rc::Rc;
use units::Nanos;

/// What time a core has.
pub trait Clock: Clone + 'static {
    /// Monotonic time.
    fn now(&self) -> Nanos;
}

impl<E: Env> Clock for E {
    #[inline]
    fn now(&self) -> Nanos {
        Env::now(self)
    }
}

/// What a core counts a volume's requests by.
struct Counting<C> {
    clock: C,
    writer: Rc<Writer>,
}

/// A volume, what its requests are counted by, unless they are not counted, and what is held as
/// long as it, or a clone of it, is there.
pub struct Counted<B, C, H = ()> {
    volume: B,
    counting: Option<Rc<Counting<C>>>,
    hold: H,
}

impl<B: Clone, C, H: Clone> Clone for Counted<B, C, H> {
    fn clone(&self) -> Self {
        Self {
            volume: self.volume.clone(),
            counting: self.counting.clone(),
            hold: self.hold.clone(),
        }
    }
}

/// A request that is under way. Dropped before [`Request::end`], it is abandoned.
struct Request<'a, C: Clock> {
    counting: &'a Counting<C>,
    kind: Kind,
    since: Nanos,
    outcome: Outcome,
}

impl<C: Clock> Request<'_, C> {
    #[inline]
    fn end(mut self, outcome: Result<u64, BlockError>) {
        self.outcome = outcome.map_or_else(Outcome::Failed, Outcome::Done);
    }
}

impl<C: Clock> Drop for Request<'_, C> {
    #[inline]
    fn drop(&mut self) {
        let time = self.counting.clock.now().since(self.since);
        self.counting.writer.end(self.kind, self.outcome, time);
    }
}

impl<B: Blocks, C: Clock> Counted<B, C> {
    /// Counts the requests of a volume by a writer of this core, if there is one.
    pub fn new(volume: B, clock: &C, writer: Option<Rc<Writer>>) -> Self {
        let counting = writer.map(|writer| Rc::new(Counting { clock: clock.clone(), writer }));
        Self { volume, counting, hold: () }
    }
}

impl<B: Blocks, C: Clock, H> Counted<B, C, H> {
    /// The same, with something that is dropped with it.
    pub fn holding<Other>(self, hold: Other) -> Counted<B, C, Other> {
        Counted { volume: self.volume, counting: self.counting, hold }
    }

    #[inline]
    fn begin(&self, kind: Kind) -> Option<Request<'_, C>> {
        let counting = &**self.counting.as_ref()?;
        counting.writer.begin(kind);
        let since = counting.clock.now();
        Some(Request { counting, kind, since, outcome: Outcome::Abandoned })
    }
}

/// A request is over, if it is counted.
#[inline]
fn end<C: Clock>(request: Option<Request<'_, C>>, outcome: Result<u64, BlockError>) {
    if let Some(request) = request {
        request.end(outcome);
    }
}

impl<B: Blocks, C: Clock, H: Clone + 'static> Blocks for Counted<B, C, H> {
    fn bytes(&self) -> u64 {
        self.volume.bytes()
    }

    fn block_bytes(&self) -> u32 {
        self.volume.block_bytes()
    }

    fn strip_bytes(&self) -> u32 {
        self.volume.strip_bytes()
    }

    fn stripe_bytes(&self) -> u32 {
        self.volume.stripe_bytes()
    }

    fn volatile_cache(&self) -> bool {
        self.volume.volatile_cache()
    }

    async fn read(&self, offset: u64, into: BufMut) -> (Result<(), BlockError>, BufMut) {
        let bytes = into.len() as u64;
        let request = self.begin(Kind::Read);
        let (outcome, data) = self.volume.read(offset, into).await;
        end(request, outcome.map(|()| bytes));
        (outcome, data)
    }

    async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        let bytes = data.len() as u64;
        let request = self.begin(Kind::Write);
        let outcome = self.volume.write(offset, data, fua).await;
        end(request, outcome.map(|()| bytes));
        outcome
    }

    async fn compare_and_write(
        &self,
        offset: u64,
        blocks: (Buf, Buf),
        fua: bool,
    ) -> Result<bool, BlockError> {
        let bytes = blocks.1.len() as u64;
        let request = self.begin(Kind::Write);
        let outcome = self.volume.compare_and_write(offset, blocks, fua).await;
        end(request, outcome.map(|is_written| if is_written { bytes } else { 0 }));
        outcome
    }

    async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        let request = self.begin(Kind::Discard);
        let outcome = self.volume.write_zeroes(offset, bytes, fua).await;
        end(request, outcome.map(|()| bytes));
        outcome
    }

    async fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        let request = self.begin(Kind::Discard);
        let outcome = self.volume.discard(offset, bytes).await;
        end(request, outcome.map(|()| bytes));
        outcome
    }

    fn in_order(&self) -> impl Future<Output = Result<(), BlockError>> {
        self.volume.in_order()
    }

    async fn flush(&self) -> Result<(), BlockError> {
        let request = self.begin(Kind::Flush);
        let outcome = self.volume.flush().await;
        end(request, outcome.map(|()| 0));
        outcome
    }
}

#[cfg(test)]
#[path = "counted_tests.rs"]
mod tests;

//! A drive in front of another one that fails when it is told to.
//!
//! [`Faults`] has the switches; tests turn them from any thread. A request meets them in this
//! order: gone, failing range, latent media error, hold, delay; then the drive behind.
//!
//! States of a held request: waiting → executed (by [`Faults::release`], in the releasing
//! thread, whether or not its ticket lives) → result taken. A drive that vanishes answers its
//! held requests with `Gone` and does not execute them.
//!
//! Invariant: a write that reaches the drive behind heals latent errors it covers.

use crate::bound::BoundDrive;
use crate::ranges::Ranges;
use crate::shared::SharedDrive;
use crate::ticket::{Doing, DoneTicket, ReadTicket, Reading};
use core::ops::Range;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use io::{Buf, BufMut, Drive, DriveError, Gather, Reached};
use runtime::{Bind, Reactor};
use std::sync::{Arc, Mutex, MutexGuard};
use units::Nanos;

/// What a failing range refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Reads.
    Read,
    /// Writes, write-zeroes and discards.
    Write,
    /// Flushes, whatever the range.
    Flush,
}

#[derive(Default)]
struct Switches {
    gone: bool,
    hold: bool,
    delay: Option<Duration>,
    failing: Vec<(Op, Range<u64>, DriveError)>,
    latent: Ranges,
    held: Vec<Arc<Held>>,
}

/// The drive behind, and the switches.
pub(crate) struct FaultyDrive {
    inner: SharedDrive,
    switches: Mutex<Switches>,
}

impl FaultyDrive {
    pub(crate) fn new(inner: SharedDrive) -> Self {
        Self { inner, switches: Mutex::default() }
    }

    pub(crate) fn inner(&self) -> &SharedDrive {
        &self.inner
    }

    /// Reads in the calling thread, which is neither held nor delayed.
    pub(crate) fn read_now(&self, offset: u64, into: &mut BufMut) -> Result<(), DriveError> {
        match self.judge(Op::Read, &(offset..offset + into.len() as u64)) {
            Verdict::Fail(error) => Err(error),
            _ => self.inner.read_blocking(offset, into),
        }
    }

    fn switches(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What happens to a request that starts now.
    fn judge(&self, op: Op, range: &Range<u64>) -> Verdict {
        let mut switches = self.switches();
        if switches.gone {
            return Verdict::Fail(DriveError::Gone);
        }
        let hits = |r: &Range<u64>| op == Op::Flush || (r.start < range.end && range.start < r.end);
        if let Some((_, _, error)) = switches.failing.iter().find(|(o, r, _)| *o == op && hits(r)) {
            return Verdict::Fail(*error);
        }
        match op {
            Op::Read if switches.latent.touches(range) => return Verdict::Fail(DriveError::Media),
            Op::Write => switches.latent.remove(range.clone()),
            _ => {}
        }
        match (switches.hold, switches.delay) {
            (true, _) => Verdict::Hold,
            (false, Some(span)) => Verdict::Delay(Nanos(span.as_nanos() as u64)),
            (false, None) => Verdict::Pass,
        }
    }

    fn hold(&self, request: HeldRequest) -> Arc<Held> {
        let held =
            Arc::new(Held(Mutex::new(HeldState { request: Some(request), ..HeldState::new() })));
        self.switches().held.push(held.clone());
        held
    }
}

enum Verdict {
    Fail(DriveError),
    Hold,
    Delay(Nanos),
    Pass,
}

#[allow(clippy::large_enum_variant)] // for tests only: its size matters to nobody
enum HeldRequest {
    Read(u64, BufMut),
    Write(u64, Gather, bool),
    Zero(u64, u64),
    Discard,
    Flush,
}

impl HeldRequest {
    fn execute(self, drive: &SharedDrive) -> (Result<(), DriveError>, Option<BufMut>) {
        match self {
            Self::Read(offset, mut into) => {
                let result = drive.read_blocking(offset, &mut into);
                (result, Some(into))
            }
            Self::Write(offset, data, fua) => {
                let written = drive.write_blocking(offset, &data);
                let durable = if fua { drive.flush_blocking() } else { Ok(()) };
                (written.and(durable), None)
            }
            Self::Zero(offset, bytes) => (drive.zero_blocking(offset, bytes), None),
            Self::Discard => (Ok(()), None),
            Self::Flush => (drive.flush_blocking(), None),
        }
    }

    fn refuse(self, error: DriveError) -> (Result<(), DriveError>, Option<BufMut>) {
        match self {
            Self::Read(_, into) => (Err(error), Some(into)),
            _ => (Err(error), None),
        }
    }
}

/// A request that waits to be released.
pub(crate) struct Held(Mutex<HeldState>);

struct HeldState {
    request: Option<HeldRequest>,
    result: Option<(Result<(), DriveError>, Option<BufMut>)>,
    waker: Option<Waker>,
}

impl HeldState {
    fn new() -> Self {
        Self { request: None, result: None, waker: None }
    }
}

impl Held {
    fn state(&self) -> MutexGuard<'_, HeldState> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn poll(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<(Result<(), DriveError>, Option<BufMut>)> {
        let mut state = self.state();
        if let Some(result) = state.result.take() {
            return Poll::Ready(result);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn finish(&self, with: impl FnOnce(HeldRequest) -> (Result<(), DriveError>, Option<BufMut>)) {
        let Some(request) = self.state().request.take() else { return };
        let result = with(request);
        let waker = {
            let mut state = self.state();
            state.result = Some(result);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The switches of a faulty drive. Clones turn the same ones.
#[derive(Clone)]
pub struct Faults(Arc<FaultyDrive>);

impl Faults {
    pub(crate) fn new(drive: Arc<FaultyDrive>) -> Self {
        Self(drive)
    }

    /// Refuses requests of kind `op` that touch `range` (bytes) with `error`.
    pub fn fail(&self, op: Op, range: Range<u64>, error: DriveError) {
        self.0.switches().failing.push((op, range, error));
    }

    /// Makes `range` (bytes, whole blocks) unreadable until it is written again.
    pub fn lose(&self, range: Range<u64>) {
        self.0.switches().latent.insert(range);
    }

    /// The drive is gone: everything fails from now on, held requests too.
    pub fn vanish(&self) {
        let held = {
            let mut switches = self.0.switches();
            switches.gone = true;
            core::mem::take(&mut switches.held)
        };
        for request in held {
            request.finish(|r| r.refuse(DriveError::Gone));
        }
    }

    /// Tells results `span` late.
    pub fn delay(&self, span: Duration) {
        self.0.switches().delay = Some(span);
    }

    /// Keeps requests that start from now on until [`Faults::release`]: they neither reach the
    /// drive nor end.
    pub fn hold(&self) {
        self.0.switches().hold = true;
    }

    /// How many requests are held.
    pub fn held(&self) -> usize {
        self.0.switches().held.len()
    }

    /// Executes the held requests in the order they came and holds no more.
    pub fn release(&self) {
        let held = {
            let mut switches = self.0.switches();
            switches.hold = false;
            core::mem::take(&mut switches.held)
        };
        for request in held {
            request.finish(|r| r.execute(&self.0.inner));
        }
    }

    /// Turns failing ranges, latent errors, delay and `vanish` off. Held requests stay held.
    pub fn clear(&self) {
        let mut switches = self.0.switches();
        switches.gone = false;
        switches.delay = None;
        switches.failing.clear();
        switches.latent = Ranges::default();
    }
}

/// One core's handle to a faulty drive.
pub(crate) struct BoundFaulty {
    shared: Arc<FaultyDrive>,
    inner: BoundDrive,
    reactor: Reactor,
}

impl BoundFaulty {
    pub(crate) fn new(shared: &Arc<FaultyDrive>, reactor: &Reactor) -> Self {
        let inner = shared.inner.bind(reactor);
        Self { shared: shared.clone(), inner, reactor: reactor.clone() }
    }

    pub(crate) fn read(&self, offset: u64, into: BufMut) -> ReadTicket {
        let range = offset..offset + into.len() as u64;
        match self.shared.judge(Op::Read, &range) {
            Verdict::Fail(error) => ReadTicket::ready(&self.reactor, Err(error), into),
            Verdict::Hold => {
                ReadTicket(Reading::Held(self.shared.hold(HeldRequest::Read(offset, into))))
            }
            Verdict::Delay(span) => {
                let ticket = Box::new(self.inner.read(offset, into));
                ReadTicket(Reading::Late(self.reactor.sleep(span), ticket))
            }
            Verdict::Pass => self.inner.read(offset, into),
        }
    }

    fn done(
        &self,
        op: Op,
        range: Range<u64>,
        start: impl FnOnce(&BoundDrive) -> DoneTicket,
    ) -> Result<DoneTicket, ()> {
        Ok(match self.shared.judge(op, &range) {
            Verdict::Fail(error) => DoneTicket::ready(&self.reactor, Err(error)),
            Verdict::Hold => return Err(()),
            Verdict::Delay(span) => {
                let ticket = Box::new(start(&self.inner));
                DoneTicket(Doing::Late(self.reactor.sleep(span), ticket))
            }
            Verdict::Pass => start(&self.inner),
        })
    }

    fn held(&self, request: HeldRequest) -> DoneTicket {
        DoneTicket(Doing::Held(self.shared.hold(request)))
    }

    pub(crate) fn write(&self, offset: u64, data: &[Buf], fua: bool) -> DoneTicket {
        let bytes: usize = data.iter().map(|b| b.len()).sum();
        let range = offset..offset + bytes as u64;
        self.done(Op::Write, range, |drive| drive.write(offset, data, fua)).unwrap_or_else(|()| {
            let kept = data.iter().cloned().collect();
            self.held(HeldRequest::Write(offset, kept, fua))
        })
    }

    pub(crate) fn flush(&self) -> DoneTicket {
        self.done(Op::Flush, 0..0, |drive| drive.flush())
            .unwrap_or_else(|()| self.held(HeldRequest::Flush))
    }

    pub(crate) fn write_zeroes(&self, offset: u64, bytes: u64) -> DoneTicket {
        self.done(Op::Write, offset..offset + bytes, |drive| drive.write_zeroes(offset, bytes))
            .unwrap_or_else(|()| self.held(HeldRequest::Zero(offset, bytes)))
    }

    /// How the drive is reached that it is before.
    pub(crate) fn reached(&self) -> Option<&dyn Reached> {
        self.inner.reached()
    }

    pub(crate) fn discard(&self, offset: u64, bytes: u64) -> DoneTicket {
        self.done(Op::Write, offset..offset + bytes, |drive| drive.discard(offset, bytes))
            .unwrap_or_else(|()| self.held(HeldRequest::Discard))
    }
}

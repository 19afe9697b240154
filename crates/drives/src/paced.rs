//! A drive in memory that answers as late as one of a known model would.
//!
//! Bytes move when a request is asked for; its answer comes when [`DriveState::admit`] says. In
//! between the core does something else, or looks around: a sleep would end too late.
//!
//! Cores of one runtime after another may use it, each with a clock that begins with its runtime;
//! the drive's own begins with the program.
//!
//! Invariant: never `inline`, so that it is used as a device is.

use crate::counts::CoreCounts;
use crate::memory::MemoryDrive;
use crate::shared::write_memory;
use crate::ticket::{Doing, DoneTicket, ReadTicket, Reading};
use io::{Buf, BufMut, DriveError};
use pace::{DriveState, Op, Port};
use runtime::{Reactor, Sleep};
use std::sync::{Arc, LazyLock};
use std::time::Instant;
use units::Nanos;

/// When the clock of all paced drives began: those behind a port share it.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What a core's clock lacks to that of paced drives; it wraps.
#[derive(Clone, Copy)]
pub(crate) struct Offset(u64);

impl Offset {
    /// Of the core with this reactor.
    pub(crate) fn of(reactor: &Reactor) -> Self {
        let begun = *BEGUN;
        let now = reactor.look_at_clock();
        Self((begun.elapsed().as_nanos() as u64).wrapping_sub(now.0))
    }
}

/// The bytes, and what requests take.
pub(crate) struct PacedDrive {
    pub(crate) memory: Arc<MemoryDrive>,
    pub(crate) pace: Arc<DriveState>,
    /// By which it is reached, if not by its own.
    port: Option<Arc<Port>>,
}

impl PacedDrive {
    pub(crate) fn new(bytes: u64, block_bytes: u32, pace: Arc<DriveState>) -> Self {
        let mut memory = MemoryDrive::new(bytes, block_bytes, false);
        memory.info.inline = false;
        Self { memory: Arc::new(memory), pace, port: None }
    }

    /// The same drive, reached by a port of a shelf.
    pub(crate) fn behind(&self, port: Arc<Port>) -> Self {
        Self { memory: self.memory.clone(), pace: self.pace.clone(), port: Some(port) }
    }

    /// A request comes; how long it takes, and what ends then.
    fn admit(&self, core: (&Reactor, Offset), op: Op, offset: u64, bytes: u64) -> (Nanos, Sleep) {
        let (reactor, Offset(ahead)) = core;
        let now = reactor.look_at_clock();
        let here = Nanos(now.0.wrapping_add(ahead));
        let done = self.pace.admit_by(self.port.as_deref(), here, op, (offset, bytes));
        let time = done.since(here);
        (time, reactor.sleep_until_exactly(now.after(time)))
    }

    pub(crate) fn read(
        &self,
        core: (&Reactor, Offset),
        counts: &CoreCounts,
        offset: u64,
        mut into: BufMut,
    ) -> ReadTicket {
        let bytes = into.len() as u64;
        counts.read(bytes);
        let (time, end) = self.admit(core, Op::Read, offset, bytes);
        counts.read_done(time);
        let result = self.memory.read(offset, &mut into);
        core.0.charge(into.len());
        ReadTicket(Reading::Paced(end, Some((result, into))))
    }

    pub(crate) fn write(
        &self,
        core: (&Reactor, Offset),
        counts: &CoreCounts,
        offset: u64,
        data: &[Buf],
    ) -> DoneTicket {
        let bytes = data.iter().map(|buffer| buffer.len() as u64).sum();
        counts.write(bytes);
        let (time, end) = self.admit(core, Op::Write, offset, bytes);
        counts.write_done(time);
        core.0.charge(bytes as usize);
        DoneTicket(Doing::Paced(end, write_memory(&self.memory, offset, data)))
    }

    /// A flush, or what has just been made zero or discarded.
    pub(crate) fn other(
        &self,
        core: (&Reactor, Offset),
        result: Result<(), DriveError>,
    ) -> DoneTicket {
        let (_, end) = self.admit(core, Op::Other, 0, 0);
        DoneTicket(Doing::Paced(end, result))
    }
}

//! One core's handle to a drive.

use crate::counts::{CoreCounts, Registered};
use crate::faulty::BoundFaulty;
use crate::file::{Asked, FileDrive, ZeroBy};
use crate::memory::MemoryDrive;
use crate::paced::{Offset, PacedDrive};
use crate::shared::{Kind, SharedDrive, write_memory};
use crate::ticket::{Doing, DoneTicket, ReadTicket, Reading};
use io::drive::GATHER_MAX;
use io::{Buf, BufMut, Drive, DriveError, DriveInfo, Gather, Reached};
use nvme_host::RemoteDrive;
use runtime::{Descriptor, Reactor, ZeroMode};
use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// Bytes of the buffer that zeros are written from.
const ZEROS: usize = 256 << 10;

/// One core's handle to a drive. Clones share it.
#[derive(Clone)]
pub struct BoundDrive(Rc<Bound>);

struct Bound {
    info: DriveInfo,
    reactor: Reactor,
    how: How,
}

enum How {
    /// A RAM-backed file: in the calling thread.
    Inline(Arc<FileDrive>, Registered),
    /// Through the reactor.
    Kernel(Box<Kernel>),
    Memory(Arc<MemoryDrive>, Registered),
    Paced(Arc<PacedDrive>, Offset, Registered),
    Remote(RemoteDrive, Registered),
    Faulty(BoundFaulty),
}

struct Kernel {
    drive: Arc<FileDrive>,
    file: Descriptor,
    buffered: Option<Descriptor>,
    zeros: Option<Buf>,
    counted: Registered,
}

impl Kernel {
    fn new(drive: &Arc<FileDrive>) -> Self {
        let writing = drive.zero_by == ZeroBy::Writing;
        let counted = |file: &Arc<File>, claim| {
            Descriptor::counted(file.clone(), claim, drive.counts.retries())
        };
        // It is `file` that keeps others from the drive.
        let claimed = |file: &Arc<File>| counted(file, Some(drive.file.clone()));
        Self {
            file: counted(&drive.file, None),
            buffered: drive.buffered.as_ref().map(claimed),
            zeros: writing.then(|| io::Pool::single(ZEROS).freeze()),
            counted: drive.counts.register(),
            drive: drive.clone(),
        }
    }

    fn file_for(&self, address: usize) -> &Descriptor {
        match &self.buffered {
            Some(buffered) if !self.drive.takes(address) => buffered,
            _ => &self.file,
        }
    }

    fn file_for_all(&self, data: &[Buf]) -> &Descriptor {
        let unaligned = data.iter().find(|b| !self.drive.takes(b.as_ptr().addr()));
        unaligned.map_or(&self.file, |b| self.file_for(b.as_ptr().addr()))
    }

    fn write_zeroes(&self, reactor: &Reactor, offset: u64, bytes: u64) -> Doing {
        let mode = match self.drive.zero_by {
            ZeroBy::Punch => ZeroMode::Punch,
            ZeroBy::ZeroRange => ZeroMode::Zero,
            ZeroBy::Writing => return self.write_zeros(reactor, offset, bytes),
        };
        Doing::Kernel(reactor.fallocate(&self.file, mode, offset, bytes), Asked::Change)
    }

    /// Starts writes of zeros over the whole range.
    fn write_zeros(&self, reactor: &Reactor, offset: u64, bytes: u64) -> Doing {
        let Some(zeros) = &self.zeros else { unreachable!("made when zeros are written") };
        let mut tickets = Vec::new();
        let mut done = 0;
        while done < bytes {
            let mut data = Gather::new();
            let at = offset + done;
            while done < bytes && data.len() < GATHER_MAX {
                let part = (bytes - done).min(ZEROS as u64);
                data.push(zeros.slice(..part as usize));
                done += part;
            }
            tickets.push(reactor.write(&self.file, at, data, false));
        }
        Doing::Pieces(tickets, Ok(()))
    }
}

/// What a write asks for: a durable one makes the kernel flush a volatile cache, one through the
/// page cache write that back, and what fails then may have been written by others.
const fn write_asks(fua: bool, cached: bool, volatile_cache: bool) -> Asked {
    if cached || (fua && volatile_cache) { Asked::Sync } else { Asked::Change }
}

/// A request that is not over when it was asked for, to its drive and by its core's clock.
pub(crate) struct Begun {
    drive: BoundDrive,
    at: Nanos,
}

impl Begun {
    /// The file or device it was for.
    pub(crate) fn drive(&self) -> &FileDrive {
        &self.drive.behind_reactor().drive
    }

    /// It was a read, and was done.
    pub(crate) fn read_done(&self) {
        self.drive.counts().read_done(self.time());
    }

    /// It was a write, and was done.
    pub(crate) fn write_done(&self) {
        self.drive.counts().write_done(self.time());
    }

    fn time(&self) -> Nanos {
        Nanos(self.drive.0.reactor.now().0.saturating_sub(self.at.0))
    }
}

impl BoundDrive {
    pub(crate) fn new(shared: &SharedDrive, reactor: &Reactor) -> Self {
        let how = match &shared.kind {
            Kind::File(file) if file.info.inline => {
                How::Inline(file.clone(), file.counts.register())
            }
            Kind::File(file) => How::Kernel(Box::new(Kernel::new(file))),
            Kind::Memory(memory, counts) => How::Memory(memory.clone(), counts.register()),
            Kind::Paced(paced, counts) => {
                How::Paced(paced.clone(), Offset::of(reactor), counts.register())
            }
            Kind::Remote(remote, counts) => How::Remote(remote.bind(), counts.register()),
            Kind::Faulty(faulty) => How::Faulty(BoundFaulty::new(faulty, reactor)),
        };
        Self(Rc::new(Bound { info: shared.info().clone(), reactor: reactor.clone(), how }))
    }

    fn behind_reactor(&self) -> &Kernel {
        match &self.0.how {
            How::Kernel(kernel) => kernel,
            _ => unreachable!("the reactor has no requests of others"),
        }
    }

    /// Where requests are counted that are not over when they were asked for.
    fn counts(&self) -> &CoreCounts {
        match &self.0.how {
            How::Kernel(kernel) => &kernel.counted.counts,
            How::Remote(_, counted) => &counted.counts,
            _ => unreachable!("others' requests are counted when they are asked for"),
        }
    }

    /// A request begins now.
    fn begun(&self) -> Begun {
        Begun { drive: self.clone(), at: self.0.reactor.now() }
    }

    fn done(&self, result: Result<(), DriveError>) -> DoneTicket {
        DoneTicket::ready(&self.0.reactor, result)
    }

    /// Of a write that ran in the calling thread.
    #[inline]
    fn written(&self, bytes: u64, result: Result<(), DriveError>) -> DoneTicket {
        self.0.reactor.charge(bytes as usize);
        self.done(result)
    }
}

impl Drive for BoundDrive {
    type Read = ReadTicket;
    type Done = DoneTicket;

    fn info(&self) -> &DriveInfo {
        &self.0.info
    }

    #[inline]
    fn read(&self, offset: u64, mut into: BufMut) -> ReadTicket {
        let bound = &*self.0;
        let bytes = into.len() as u64;
        if let Err(error) = bound.info.check(offset, bytes) {
            return ReadTicket::ready(&bound.reactor, Err(error), into);
        }
        let result = match &bound.how {
            How::Inline(file, counted) => {
                counted.counts.read_now(bytes, || file.read_now(offset, &mut into))
            }
            How::Kernel(kernel) => {
                kernel.counted.counts.read(bytes);
                let file = kernel.file_for(into.as_ptr().addr());
                let ticket = bound.reactor.read(file, offset, into);
                return ReadTicket(Reading::Kernel(ticket, self.begun()));
            }
            How::Memory(memory, counted) => {
                counted.counts.read_now(bytes, || memory.read(offset, &mut into))
            }
            How::Paced(paced, ahead, counted) => {
                return paced.read((&bound.reactor, *ahead), &counted.counts, offset, into);
            }
            How::Remote(remote, counted) => {
                counted.counts.read(bytes);
                return ReadTicket(Reading::Remote(remote.read(offset, into), self.begun()));
            }
            How::Faulty(faulty) => return faulty.read(offset, into),
        };
        ReadTicket::ready(&bound.reactor, result, into)
    }

    #[inline]
    fn write(&self, offset: u64, data: &[Buf], fua: bool) -> DoneTicket {
        let bound = &*self.0;
        let bytes = data.iter().map(|b| b.len()).sum::<usize>() as u64;
        if let Err(error) = bound.info.check(offset, bytes) {
            return self.done(Err(error));
        }
        match &bound.how {
            How::Inline(file, counted) => {
                let ended = counted.counts.write_now(bytes, || file.gather_now(offset, data));
                self.written(bytes, ended)
            }
            How::Kernel(kernel) => {
                kernel.counted.counts.write(bytes);
                let file = kernel.file_for_all(data);
                // Nobody flushes a drive without a volatile cache: nothing stays in the page cache.
                let cached = !core::ptr::eq(file, &kernel.file) && !bound.info.volatile_cache;
                let asked = write_asks(fua, cached, bound.info.volatile_cache);
                let data = data.iter().cloned().collect();
                let ticket = bound.reactor.write(file, offset, data, fua || cached);
                DoneTicket(Doing::Write(ticket, asked, self.begun()))
            }
            How::Memory(memory, counted) => {
                let ended = counted.counts.write_now(bytes, || write_memory(memory, offset, data));
                self.written(bytes, ended)
            }
            How::Paced(paced, ahead, counted) => {
                paced.write((&bound.reactor, *ahead), &counted.counts, offset, data)
            }
            How::Remote(remote, counted) => {
                counted.counts.write(bytes);
                let ticket = remote.write(offset, data, fua);
                DoneTicket(Doing::RemoteWrite(ticket, self.begun()))
            }
            How::Faulty(faulty) => faulty.write(offset, data, fua),
        }
    }

    fn flush(&self) -> DoneTicket {
        match &self.0.how {
            How::Inline(file, counted) => {
                counted.counts.flush();
                self.done(file.flush_now())
            }
            How::Kernel(kernel) => {
                kernel.counted.counts.flush();
                DoneTicket(Doing::Flush(self.0.reactor.sync(&kernel.file), kernel.drive.clone()))
            }
            How::Memory(_, counted) => {
                counted.counts.flush();
                self.done(Ok(()))
            }
            How::Paced(paced, ahead, counted) => {
                counted.counts.flush();
                paced.other((&self.0.reactor, *ahead), Ok(()))
            }
            How::Remote(remote, counted) => {
                counted.counts.flush();
                DoneTicket(Doing::Remote(remote.flush()))
            }
            How::Faulty(faulty) => faulty.flush(),
        }
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> DoneTicket {
        let checked = self.0.info.check(offset, bytes);
        if checked.is_err() || bytes == 0 {
            return self.done(checked);
        }
        match &self.0.how {
            How::Inline(file, counted) => {
                counted.counts.write(0);
                self.done(file.zero_now(offset, bytes))
            }
            How::Kernel(kernel) => {
                kernel.counted.counts.write(0);
                DoneTicket(kernel.write_zeroes(&self.0.reactor, offset, bytes))
            }
            How::Memory(memory, counted) => {
                counted.counts.write(0);
                self.done(memory.zero(offset, bytes))
            }
            How::Paced(paced, ahead, counted) => {
                counted.counts.write(0);
                paced.other((&self.0.reactor, *ahead), paced.memory.zero(offset, bytes))
            }
            How::Remote(remote, counted) => {
                counted.counts.write(0);
                DoneTicket(Doing::Remote(remote.write_zeroes(offset, bytes)))
            }
            How::Faulty(faulty) => faulty.write_zeroes(offset, bytes),
        }
    }

    fn discard(&self, offset: u64, bytes: u64) -> DoneTicket {
        let checked = self.0.info.check(offset, bytes);
        if checked.is_err() || bytes == 0 {
            return self.done(checked);
        }
        match &self.0.how {
            How::Inline(file, _) => self.done(file.discard_now(offset, bytes)),
            How::Kernel(kernel) => {
                let reactor = &self.0.reactor;
                let punch = reactor.fallocate(&kernel.file, ZeroMode::Punch, offset, bytes);
                DoneTicket(Doing::Kernel(punch, Asked::Change))
            }
            How::Memory(memory, _) => self.done(memory.zero(offset, bytes)),
            How::Paced(paced, ahead, _) => {
                paced.other((&self.0.reactor, *ahead), paced.memory.zero(offset, bytes))
            }
            How::Remote(remote, _) => DoneTicket(Doing::Remote(remote.discard(offset, bytes))),
            How::Faulty(faulty) => faulty.discard(offset, bytes),
        }
    }

    fn reached(&self) -> Option<&dyn Reached> {
        match &self.0.how {
            How::Remote(remote, _) => remote.reached(),
            How::Faulty(faulty) => faulty.reached(),
            How::Inline(..) | How::Kernel(_) | How::Memory(..) | How::Paced(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_may_flush_what_others_wrote_is_one() {
        for (fua, cached, volatile_cache, asked) in [
            (false, false, false, Asked::Change),
            (false, false, true, Asked::Change),
            (true, false, false, Asked::Change),
            (true, false, true, Asked::Sync),
            (false, true, false, Asked::Sync),
        ] {
            assert_eq!(write_asks(fua, cached, volatile_cache), asked);
        }
    }
}

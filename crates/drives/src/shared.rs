//! A drive as the whole process has it.

use crate::bound::BoundDrive;
use crate::counts::{Counts, IoCounts, IoTimes};
use crate::faulty::{Faults, FaultyDrive};
use crate::file::{FileDrive, Kind as FileKind};
use crate::memory::MemoryDrive;
use crate::open::{self, OpenError, OpenOptions};
use crate::paced::PacedDrive;
use crate::remote::Remote;
use core::fmt;
use io::{Buf, BufMut, DriveError, DriveInfo};
use pace::{DriveState, Port};
use runtime::{Bind, Reactor};
use std::path::Path;
use std::sync::Arc;

/// An open drive, shared by all cores. Clones are the same drive; it closes when the last clone
/// and the last bound handle are gone.
#[derive(Clone)]
pub struct SharedDrive {
    pub(crate) kind: Kind,
}

/// The kinds.
#[derive(Clone)]
pub(crate) enum Kind {
    File(Arc<FileDrive>),
    Memory(Arc<MemoryDrive>, Counts),
    Paced(Arc<PacedDrive>, Counts),
    Remote(Arc<Remote>, Counts),
    Faulty(Arc<FaultyDrive>),
}

impl SharedDrive {
    /// Opens a file or block device.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, OpenError> {
        let file = open::open(path.as_ref(), options)?;
        Ok(Self { kind: Kind::File(Arc::new(file)) })
    }

    /// A drive of zeros in memory. `volatile_cache` is what it says of itself.
    pub fn memory(bytes: u64, block_bytes: u32, volatile_cache: bool) -> Self {
        let drive = MemoryDrive::new(bytes, block_bytes, volatile_cache);
        Self { kind: Kind::Memory(Arc::new(drive), Counts::default()) }
    }

    /// A drive of zeros in memory that answers as late as `pace` says. As its model it has no
    /// volatile cache.
    pub fn paced(bytes: u64, block_bytes: u32, pace: Arc<DriveState>) -> Self {
        let drive = PacedDrive::new(bytes, block_bytes, pace);
        Self { kind: Kind::Paced(Arc::new(drive), Counts::default()) }
    }

    /// A paced drive as it is reached by a port of a shelf, whose time it takes, too, in place of
    /// its own port's. Other drives take no port's time.
    pub fn behind(&self, port: Arc<Port>) -> Self {
        match &self.kind {
            Kind::Paced(paced, counts) => {
                Self { kind: Kind::Paced(Arc::new(paced.behind(port)), counts.clone()) }
            }
            _ => self.clone(),
        }
    }

    /// A namespace of a fabric.
    pub(crate) fn remote(drive: Arc<Remote>) -> Self {
        let counts = drive.counts.clone();
        Self { kind: Kind::Remote(drive, counts) }
    }

    /// The state of a paced drive; `None` for others.
    pub fn pace(&self) -> Option<&Arc<DriveState>> {
        match &self.kind {
            Kind::Paced(paced, _) => Some(&paced.pace),
            Kind::Faulty(faulty) => faulty.inner().pace(),
            Kind::File(_) | Kind::Memory(..) | Kind::Remote(..) => None,
        }
    }

    /// This drive behind switches that make it fail.
    pub fn faulty(&self) -> (Self, Faults) {
        let drive = Arc::new(FaultyDrive::new(self.clone()));
        (Self { kind: Kind::Faulty(drive.clone()) }, Faults::new(drive))
    }

    /// What the drive is.
    pub fn info(&self) -> &DriveInfo {
        match &self.kind {
            Kind::File(file) => &file.info,
            Kind::Memory(memory, _) => &memory.info,
            Kind::Paced(paced, _) => &paced.memory.info,
            Kind::Remote(remote, _) => remote.info(),
            Kind::Faulty(faulty) => faulty.inner().info(),
        }
    }

    /// What tells this drive from others, as text that stays: a device's serial number, a
    /// file's device and inode, a remote namespace's identifier.
    pub fn serial(&self) -> String {
        match &self.kind {
            Kind::File(file) => file.serial.clone(),
            Kind::Memory(memory, _) => format!("memory:{:p}", Arc::as_ptr(memory)),
            Kind::Paced(paced, _) => format!("paced:{:p}", Arc::as_ptr(paced)),
            Kind::Remote(remote, _) => remote.serial.clone(),
            Kind::Faulty(faulty) => faulty.inner().serial(),
        }
    }

    /// The path it was opened by, a remote drive's one name; empty for memory.
    pub fn path(&self) -> &Path {
        match &self.kind {
            Kind::File(file) => &file.path,
            Kind::Remote(remote, _) => &remote.path,
            Kind::Memory(..) | Kind::Paced(..) => Path::new(""),
            Kind::Faulty(faulty) => faulty.inner().path(),
        }
    }

    /// True for a file, false for a block device or memory.
    pub fn is_file(&self) -> bool {
        match &self.kind {
            Kind::File(file) => file.kind == FileKind::File,
            Kind::Memory(..) | Kind::Paced(..) | Kind::Remote(..) => false,
            Kind::Faulty(faulty) => faulty.inner().is_file(),
        }
    }

    /// Whether requests go around the page cache: true for a file or block device that takes direct
    /// I/O, and for a remote drive.
    pub fn is_direct(&self) -> bool {
        match &self.kind {
            Kind::File(file) => file.buffered.is_some(),
            Kind::Remote(..) => true,
            Kind::Memory(..) | Kind::Paced(..) => false,
            Kind::Faulty(faulty) => faulty.inner().is_direct(),
        }
    }

    /// The number of the block device that was opened, as the kernel has it; `None` for a file or
    /// memory. While it is open no other device gets this number.
    pub fn device(&self) -> Option<u64> {
        match &self.kind {
            Kind::File(file) => file.device(),
            Kind::Memory(..) | Kind::Paced(..) | Kind::Remote(..) => None,
            Kind::Faulty(faulty) => faulty.inner().device(),
        }
    }

    /// True if there is no other clone and no bound handle: dropping it closes the drive.
    pub fn is_last(&self) -> bool {
        match &self.kind {
            Kind::File(file) => Arc::strong_count(file) == 1,
            Kind::Memory(memory, _) => Arc::strong_count(memory) == 1,
            Kind::Paced(paced, _) => Arc::strong_count(paced) == 1,
            Kind::Remote(remote, _) => Arc::strong_count(remote) == 1,
            Kind::Faulty(faulty) => Arc::strong_count(faulty) == 1,
        }
    }

    /// What was asked of the drive so far, over all cores' handles.
    pub fn io_counts(&self) -> IoCounts {
        match &self.kind {
            Kind::File(file) => file.counts.sum(),
            Kind::Memory(_, counts) | Kind::Paced(_, counts) | Kind::Remote(_, counts) => {
                counts.sum()
            }
            Kind::Faulty(faulty) => faulty.inner().io_counts(),
        }
    }

    /// How long requests took so far, over all cores' handles.
    pub fn io_times(&self) -> IoTimes {
        match &self.kind {
            Kind::File(file) => file.counts.times(),
            Kind::Memory(_, counts) | Kind::Paced(_, counts) | Kind::Remote(_, counts) => {
                counts.times()
            }
            Kind::Faulty(faulty) => faulty.inner().io_times(),
        }
    }

    /// Reads in the calling thread: for tools and examination, not for cores.
    pub fn read_blocking(&self, offset: u64, into: &mut BufMut) -> Result<(), DriveError> {
        self.info().check(offset, into.len() as u64)?;
        match &self.kind {
            Kind::File(file) => file.read_now(offset, into),
            Kind::Memory(memory, _) => memory.read(offset, into),
            Kind::Paced(paced, _) => paced.memory.read(offset, into),
            Kind::Remote(remote, _) => remote.read_now(offset, into),
            Kind::Faulty(faulty) => faulty.read_now(offset, into),
        }
    }

    /// Writes in the calling thread; durable after [`SharedDrive::flush_blocking`].
    pub fn write_blocking(&self, offset: u64, data: &[Buf]) -> Result<(), DriveError> {
        let bytes: usize = data.iter().map(|b| b.len()).sum();
        self.info().check(offset, bytes as u64)?;
        match &self.kind {
            Kind::File(file) => file.gather_now(offset, data),
            Kind::Memory(memory, _) => write_memory(memory, offset, data),
            Kind::Paced(paced, _) => write_memory(&paced.memory, offset, data),
            Kind::Remote(remote, _) => remote.gather_now(offset, data),
            Kind::Faulty(faulty) => faulty.inner().write_blocking(offset, data),
        }
    }

    /// Makes completed writes durable, in the calling thread.
    pub fn flush_blocking(&self) -> Result<(), DriveError> {
        match &self.kind {
            Kind::File(file) => file.flush_now(),
            Kind::Remote(remote, _) => remote.flush_now(),
            Kind::Memory(..) | Kind::Paced(..) => Ok(()),
            Kind::Faulty(faulty) => faulty.inner().flush_blocking(),
        }
    }

    /// Lets it be changed whatever stands on it, if it is reached by connections: whoever asked for
    /// something to stand there is through with it.
    ///
    /// # Errors
    /// It can't be asked any more.
    pub fn unguard_blocking(&self) -> Result<(), DriveError> {
        match &self.kind {
            Kind::Remote(remote, _) => remote.unguard_now(),
            Kind::File(_) | Kind::Memory(..) | Kind::Paced(..) => Ok(()),
            Kind::Faulty(faulty) => faulty.inner().unguard_blocking(),
        }
    }

    /// Makes a range zero, in the calling thread.
    pub fn zero_blocking(&self, offset: u64, bytes: u64) -> Result<(), DriveError> {
        self.info().check(offset, bytes)?;
        match &self.kind {
            _ if bytes == 0 => Ok(()),
            Kind::File(file) => file.zero_now(offset, bytes),
            Kind::Memory(memory, _) => memory.zero(offset, bytes),
            Kind::Paced(paced, _) => paced.memory.zero(offset, bytes),
            Kind::Remote(remote, _) => remote.zero_now(offset, bytes),
            Kind::Faulty(faulty) => faulty.inner().zero_blocking(offset, bytes),
        }
    }
}

/// Writes the buffers one behind the other.
pub(crate) fn write_memory(
    memory: &MemoryDrive,
    offset: u64,
    data: &[Buf],
) -> Result<(), DriveError> {
    let mut at = offset;
    for buffer in data {
        memory.write(at, buffer)?;
        at += buffer.len() as u64;
    }
    Ok(())
}

impl fmt::Debug for SharedDrive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedDrive({}, {:?})", self.serial(), self.info())
    }
}

impl Bind for SharedDrive {
    type Bound = BoundDrive;

    fn bind(&self, reactor: &Reactor) -> BoundDrive {
        BoundDrive::new(self, reactor)
    }
}

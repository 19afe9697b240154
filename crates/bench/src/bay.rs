//! An array to be measured: on cores and files of its own, with one volume over all of it, and
//! with a record of everything that was written to it.

use crate::array::Side;
use crate::error::BenchError;
use crate::load::{Load, Op, Order, Until};
use crate::record::Record;
use crate::rig::{Aim, Helper, Rig, references};
use drives::{OpenOptions, SharedDrive};
use engine::array::message::ArrayId;
use engine::manage::command::{ArrayStatus, NewArray, Repair, Request, SlotHealth, StartOptions};
use io::Reach;
use layout::Level;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use units::{Slot, Uuid};

const NAME: &str = "bench";
const STRIP_BYTES: u32 = 64 << 10;

/// How an array is made.
#[derive(Clone)]
pub struct Make {
    /// Its level.
    pub level: Level,
    /// Bytes of a strip.
    pub strip_bytes: u32,
    /// Data cores.
    pub cores: u16,
    /// Who is asked for parity first.
    pub helper: Option<Helper>,
}

impl Default for Make {
    /// RAID 5 with strips of 64 KiB, on one core without help.
    fn default() -> Self {
        Self { level: Level::Raid5, strip_bytes: STRIP_BYTES, cores: 1, helper: None }
    }
}

/// Where an array's drives come from.
pub enum Source {
    /// Files, opened again whenever the array starts.
    Files(Vec<PathBuf>),
    /// Drives in this process's memory.
    Memory(Vec<SharedDrive>),
}

impl Source {
    /// So many drives in memory, of zeros.
    pub fn memory(count: usize, bytes: u64) -> Self {
        Self::Memory((0..count).map(|_| SharedDrive::memory(bytes, 512, false)).collect())
    }

    /// The drives, open.
    pub fn open(&self) -> Result<Vec<SharedDrive>, BenchError> {
        match self {
            Self::Files(paths) => {
                let options = OpenOptions::default();
                let drives = paths.iter().map(|path| SharedDrive::open(path, &options));
                Ok(drives.collect::<Result<_, _>>()?)
            }
            Self::Memory(drives) => Ok(drives.clone()),
        }
    }
}

/// An array on its own cores, with a volume over all of it.
pub struct Bay {
    /// Its cores.
    pub rig: Rig,
    made: Make,
    source: Source,
    /// Its drives.
    pub drives: Vec<SharedDrive>,
    array: ArrayId,
    volume: Uuid,
    record: Arc<Record>,
}

impl Bay {
    /// Makes the array and writes all of it once.
    pub fn create(source: Source, make: Make) -> Result<Self, BenchError> {
        let bay = Self::empty(source, make)?;
        bay.pass(Op::Write)?;
        Ok(bay)
    }

    /// Makes the array.
    pub fn empty(source: Source, make: Make) -> Result<Self, BenchError> {
        let (rig, drives) = (Rig::start(make.cores, make.helper.as_ref())?, source.open()?);
        let new = NewArray {
            shared: false,
            name: NAME.to_owned(),
            level: make.level,
            strip_bytes: make.strip_bytes,
            block_bytes: None,
        };
        let references = references(&drives);
        let made: ArrayStatus = rig.ask(|reply| Request::Create(new, references, reply))?;
        let volume = rig.ask(|reply| {
            Request::VolumeCreate(NAME.to_owned(), "all".to_owned(), made.free_bytes, reply)
        })?;
        let record = Arc::new(Record::new(volume.bytes));
        let (array, volume) = (made.id, volume.uuid);
        Ok(Self { rig, made: make, source, drives, array, volume, record })
    }

    /// Who is told of memory that a GPU may reach.
    pub fn reach(&self) -> Option<Arc<dyn Reach>> {
        self.made.helper.as_ref().map(Helper::reach)
    }

    /// Takes the drive of slot 0 out.
    pub fn fail_one(&self) -> Result<(), BenchError> {
        self.rig.ask(|reply| Request::Fail(NAME.to_owned(), vec!["slot:0".to_owned()], reply))?;
        Ok(())
    }

    /// Puts another drive into slot 0 and waits until it is filled.
    ///
    /// # Errors
    /// When the drive is not filled.
    pub fn rebuild_one(&mut self, with: SharedDrive) -> Result<(), BenchError> {
        let drive = references(std::slice::from_ref(&with)).remove(0);
        let mut status =
            self.rig.ask(|reply| Request::Replace(NAME.to_owned(), Slot(0), drive, reply))?;
        while status.slots[0].health == SlotHealth::Rebuilding {
            std::thread::sleep(Duration::from_millis(1));
            status = self.rig.ask(Request::Status)?.remove(0);
        }
        if let Source::Files(paths) = &mut self.source {
            paths[0] = with.path().to_owned();
        }
        self.drives[0] = with;
        match status.slots[0].health {
            SlotHealth::InSync => Ok(()),
            _ => Err(BenchError::NotRebuilt),
        }
    }

    fn aim(&self) -> Aim {
        Aim::Volume { array: self.array, volume: self.volume }
    }

    /// The volume as a side.
    pub fn side(&self) -> Side<'_> {
        Side { rig: &self.rig, aim: self.aim(), record: self.record.clone() }
    }

    /// Writes or verifies the whole volume once.
    fn pass(&self, op: Op) -> Result<(), BenchError> {
        let load = Load::new(op, Order::Sequential, 128 << 10, 8, &self.record);
        let (_, parts) = self.rig.run(&self.aim(), &load, Until::Once, 0)?;
        let blocks = parts.iter().map(|p| p.wrong.0).sum();
        match parts.iter().filter_map(|p| p.wrong.1).min() {
            Some(first) => Err(BenchError::Wrong { blocks, first }),
            None => Ok(()),
        }
    }

    /// Stops the array and starts it again on new cores; files are opened again.
    pub fn again(self) -> Result<Self, BenchError> {
        self.again_on(|made| Rig::start(made.cores, made.helper.as_ref()))
    }

    /// The same on cores whose writes are not kept safe from crashes, without help. All of the
    /// array was written before. Nothing but reads and writes may be done until it is stopped.
    pub fn again_unguarded(self) -> Result<Self, BenchError> {
        self.again_on(|made| Rig::start_unguarded(made.cores))
    }

    fn again_on(
        self,
        start: impl FnOnce(&Make) -> Result<Rig, BenchError>,
    ) -> Result<Self, BenchError> {
        self.rig.ask(|reply| Request::Stop(NAME.to_owned(), reply))?;
        let Self { rig, made, source, drives, volume, record, .. } = self;
        drop((rig, drives));
        let (rig, drives) = (start(&made)?, source.open()?);
        let (found, options) = (references(&drives), StartOptions::default());
        let started = rig.ask(|reply| Request::Assemble(None, found, options, reply))?;
        let array = started[0].id;
        Ok(Self { rig, made, source, drives, array, volume, record })
    }

    /// Starts it again, scrubs it and reads everything back.
    pub fn verify(self) -> Result<(), BenchError> {
        let bay = self.again()?;
        bay.scrub()?;
        bay.pass(Op::Verify)?;
        bay.rig.ask(|reply| Request::Stop(NAME.to_owned(), reply))
    }

    /// Has the cores alone, without help, compare all strips with each other and what they hold
    /// with the record; then it runs as before.
    pub fn checked(mut self) -> Result<Self, BenchError> {
        let helper = self.made.helper.take();
        let mut bay = self.again()?;
        bay.scrub()?;
        bay.pass(Op::Verify)?;
        bay.made.helper = helper;
        bay.again()
    }

    /// Reads everything back from an array that lacks a drive, where there is nothing to scrub:
    /// with whoever helps to recover strips, then started again by the cores alone.
    pub fn verify_degraded(mut self) -> Result<(), BenchError> {
        self.pass(Op::Verify)?;
        self.made.helper = None;
        let bay = self.again()?;
        bay.pass(Op::Verify)?;
        bay.rig.ask(|reply| Request::Stop(NAME.to_owned(), reply))
    }

    fn scrub(&self) -> Result<(), BenchError> {
        self.rig.ask(|reply| Request::Scrub(NAME.to_owned(), Repair::Nothing, reply))?;
        loop {
            let status = self.rig.ask(Request::Status)?;
            if let Some(found) = status[0].last_scrub {
                let all = found.checked_bytes >= status[0].size_bytes;
                return match found.mismatches {
                    0 if all => Ok(()),
                    mismatches => Err(BenchError::Scrub(mismatches)),
                };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

//! Cores with an engine, and on them an array of the shelf's drives, or none.
//!
//! States: *bare* (no array), or *made* (array and volumes; nothing is written yet) → *down* (a
//! drive was taken out) → *rebuilding* (it was put in again, as an empty one) → made. Dropping it
//! stops the cores and wipes what it made: the records at the ends of its drives, so that nothing
//! is found there later. So does making it anew.

use super::options::{Loader, Options};
use super::shelf::Shelf;
use crate::error::{BenchError, is_to_go_on};
use crate::fio_load::Reached;
use crate::rig::{Aim, Rig, references};
use crate::served;
use crate::through::Outside;
use drives::SharedDrive;
use engine::array::GuardWrites;
use engine::array::message::ArrayId;
use engine::manage::command::{ArrayStatus, NewArray, Request, SlotHealth};
use format::{AREA_BYTES, tail_offset};
use io::DriveError;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;
use units::{CoreId, MIB, Slot, Uuid};

const NAME: &str = "bench";

/// How often it is seen how the array is.
pub const LOOK: Duration = Duration::from_millis(1);

/// Whether the drive of slot 0 is being filled.
pub fn is_rebuilding(array: &ArrayStatus) -> bool {
    array.slots.first().is_some_and(|slot| slot.health == SlotHealth::Rebuilding)
}

/// Wipes the records at both ends of a drive.
fn wipe(drive: &SharedDrive) -> Result<(), DriveError> {
    let bytes = drive.info().bytes;
    let tail = tail_offset(bytes);
    drive.zero_blocking(0, AREA_BYTES.min(bytes))?;
    drive.zero_blocking(tail, bytes - tail)?;
    drive.flush_blocking()
}

/// The cores and what is made on them.
pub struct Yard<'a> {
    rig: Option<Rig>,
    options: &'a Options,
    shelf: &'a Shelf,
    made: Option<Made>,
}

struct Made {
    array: ArrayId,
    volumes: Vec<Uuid>,
    bytes: u64,
    /// Where each core serves the volumes to other processes.
    served: Vec<SocketAddr>,
    /// The hosts that reach the volumes over a network.
    outside: Option<Outside>,
}

impl<'a> Yard<'a> {
    /// Cores without an array.
    ///
    /// # Errors
    /// When they can't start.
    pub fn bare(options: &'a Options, shelf: &'a Shelf) -> Result<Self, BenchError> {
        Ok(Self { rig: Some(Rig::start(options.cores, None)?), options, shelf, made: None })
    }

    /// Cores with an array over all drives, and volumes for what is used of it.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn make(options: &'a Options, shelf: &'a Shelf) -> Result<Self, BenchError> {
        let mut yard = Self::bare(options, shelf)?;
        yard.build()?;
        Ok(yard)
    }

    /// Wipes the array and makes a new one, of which nothing was written.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn remake(&mut self) -> Result<(), BenchError> {
        self.clear();
        self.rig = Some(Rig::start(self.options.cores, None)?);
        self.build()
    }

    fn build(&mut self) -> Result<(), BenchError> {
        let options = self.options;
        let new = NewArray {
            shared: false,
            name: NAME.to_owned(),
            level: options.level,
            strip_bytes: options.strip,
            block_bytes: None,
        };
        let list = references(&self.shelf.drives);
        let status: ArrayStatus = self.rig().ask(|reply| Request::Create(new, list, reply))?;
        let (volumes, served, outside) = (Vec::new(), Vec::new(), None);
        let mut made = Made { array: status.id, volumes, bytes: 0, served, outside };
        // Loads use all volumes: together they have what is used.
        let volumes = options.volumes as u64;
        let used = options.area().div_ceil(volumes).saturating_add(4 * MIB) / MIB * MIB;
        let each = (status.free_bytes / volumes / MIB * MIB).min(used);
        for number in 0..options.volumes {
            let name = served::name(number);
            let volume =
                self.rig().ask(|reply| Request::VolumeCreate(NAME.to_owned(), name, each, reply));
            // From here on there is something to wipe.
            match volume {
                Ok(volume) => {
                    made.volumes.push(volume.uuid);
                    made.bytes += volume.bytes;
                }
                Err(error) => {
                    self.made = Some(made);
                    return Err(error);
                }
            }
        }
        // It is to be wiped whether or not it can be served.
        self.made = Some(made);
        self.serve()
    }

    /// Serves the volumes, if whoever loads is outside.
    fn serve(&mut self) -> Result<(), BenchError> {
        let (Some(rig), Some(made)) = (&self.rig, &mut self.made) else { return Ok(()) };
        match (self.options.load, self.options.through) {
            (Loader::Fio, _) => made.served = served::serve(rig, made.array, &made.volumes)?,
            (Loader::Own, Some(through)) => {
                let each = made.bytes / made.volumes.len() as u64;
                let volumes: Vec<_> = made.volumes.iter().map(|own| (*own, each)).collect();
                made.outside = Some(Outside::connect(rig, through, made.array, &volumes)?);
            }
            (Loader::Own, None) => {}
        }
        Ok(())
    }

    /// The cores of whoever loads: the same, or those of hosts.
    pub fn hosts(&self) -> &Rig {
        let outside = self.made.as_ref().and_then(|made| made.outside.as_ref());
        outside.map_or_else(|| self.rig(), Outside::rig)
    }

    /// The cores, if others load.
    pub fn served_by(&self) -> Option<&Rig> {
        self.made.as_ref()?.outside.as_ref()?;
        self.rig.as_ref()
    }

    /// The cores.
    pub fn rig(&self) -> &Rig {
        self.rig.as_ref().expect("there until it is dropped")
    }

    /// Takes the drive of slot 0 out.
    ///
    /// # Errors
    /// When data would go.
    pub fn fail(&self) -> Result<(), BenchError> {
        self.rig().ask(|reply| Request::Fail(NAME.to_owned(), vec!["slot:0".to_owned()], reply))?;
        Ok(())
    }

    /// Takes the drive of slot 0 out, unless it is, and puts it in again as an empty one: it is
    /// filled from now on. With its records it would get no more than what it missed.
    ///
    /// # Errors
    /// When data would go, or the drive fails.
    pub fn begin_rebuild(&self) -> Result<(), BenchError> {
        if self.health()? != Some(SlotHealth::Failed) {
            self.fail()?;
        }
        // What is under way at the drive that was taken out has to come back first.
        while self.status()?.is_some_and(|array| array.slots.iter().any(|own| own.quarantined)) {
            is_to_go_on(&self.options.stop)?;
            std::thread::sleep(LOOK);
        }
        let first = &self.shelf.drives[..1];
        first.iter().try_for_each(wipe).map_err(|_| BenchError::Failed(1))?;
        let drive = references(first).remove(0);
        self.rig().ask(|reply| Request::Replace(NAME.to_owned(), Slot(0), drive, reply))?;
        Ok(())
    }

    /// How the array is.
    ///
    /// # Errors
    /// When the engine does not say.
    pub fn status(&self) -> Result<Option<ArrayStatus>, BenchError> {
        Ok(self.rig().ask(Request::Status)?.into_iter().next())
    }

    fn health(&self) -> Result<Option<SlotHealth>, BenchError> {
        Ok(self.status()?.and_then(|array| array.slots.first().map(|slot| slot.health)))
    }

    /// Whether the drive of slot 0 is being filled.
    ///
    /// # Errors
    /// When the engine does not say.
    pub fn is_rebuilding(&self) -> Result<bool, BenchError> {
        Ok(self.status()?.as_ref().is_some_and(is_rebuilding))
    }

    /// What the array's cores wrote so that no write is lost in a crash.
    ///
    /// # Errors
    /// When a core is gone.
    pub fn guard_writes(&self) -> Result<GuardWrites, BenchError> {
        let mut sum = GuardWrites::default();
        let Some(Made { array, .. }) = self.made else { return Ok(sum) };
        let (sender, answers) = mpsc::channel();
        for core in 0..self.rig().cores() {
            let sender = sender.clone();
            self.rig().on_core(CoreId(core), move |_, engine| {
                let own = engine.array(array).map(|array| array.guard_writes());
                // Nobody listens any more only when the run was given up.
                let _ = sender.send(own.unwrap_or_default());
            });
        }
        for _ in 0..self.rig().cores() {
            let own = answers.recv().map_err(|_| BenchError::CoreGone)?;
            sum.pages += own.pages;
            sum.batches += own.batches;
        }
        Ok(sum)
    }

    /// What is loaded, with so many bytes of one drive before the next one's turn where there is no
    /// array.
    pub fn aim(&self, turn: u64) -> Aim {
        match &self.made {
            Some(Made { outside: Some(outside), .. }) => outside.aim(),
            Some(Made { array, volumes, .. }) => match volumes[..] {
                [volume] => Aim::Volume { array: *array, volume },
                _ => Aim::Volumes { array: *array, volumes: volumes.clone() },
            },
            None => Aim::Drives {
                drives: self.shelf.drives.clone(),
                start: self.shelf.start,
                bytes: self.shelf.bytes,
                turn,
            },
        }
    }

    /// Where another process finds the same.
    pub fn reached(&self) -> Reached {
        match &self.made {
            Some(made) => {
                Reached::Nbd { addresses: made.served.clone(), volumes: made.volumes.len() }
            }
            None => Reached::Files {
                paths: self.shelf.drives.iter().map(|own| own.path().to_owned()).collect(),
                start: self.shelf.start,
                in_memory: self.shelf.drives.iter().all(|own| own.info().inline),
            },
        }
    }

    /// Whether there is an array.
    pub fn is_made(&self) -> bool {
        self.made.is_some()
    }

    /// Bytes of each drive that hold what is loaded; nothing was written behind them.
    pub fn used(&self) -> u64 {
        let data = super::data_strips(self.options).map_or(1, |data| data as u64);
        self.bytes().div_ceil(data)
    }

    /// Bytes that can be loaded.
    pub fn bytes(&self) -> u64 {
        match &self.made {
            Some(made) => made.bytes,
            None => self.shelf.bytes * self.shelf.drives.len() as u64,
        }
    }
}

impl Yard<'_> {
    /// Ends the cores and wipes the array.
    fn clear(&mut self) {
        if let Some(made) = &mut self.made {
            made.outside = None;
        }
        // The cores end first: nobody writes records any more.
        drop(self.rig.take());
        if self.made.take().is_none() {
            return;
        }
        for drive in &self.shelf.drives {
            if let Err(error) = wipe(drive) {
                let path = drive.path().display();
                eprintln!("palisade: {path}: its array's record could not be wiped: {error}");
            }
        }
    }
}

impl Drop for Yard<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

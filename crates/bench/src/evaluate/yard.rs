//! Cores with an engine, and on them an array of the shelf's drives, or none.
//!
//! States: *bare* (no array), or *made* (array and volumes; nothing is written yet) → *rebuilding*
//! (a drive was put in again) → made. Dropping it stops the cores and wipes what it made: the
//! records at the ends of its drives, so that nothing is found there later.

use super::options::Options;
use super::shelf::Shelf;
use crate::error::BenchError;
use crate::rig::{Aim, Rig, references};
use engine::array::message::ArrayId;
use engine::manage::command::{ArrayStatus, NewArray, Request, SlotHealth};
use format::{AREA_BYTES, tail_offset};
use units::{MIB, Slot, Uuid};

const NAME: &str = "bench";

/// The cores and what is made on them.
pub struct Yard<'a> {
    rig: Option<Rig>,
    shelf: &'a Shelf,
    made: Option<Made>,
}

struct Made {
    array: ArrayId,
    volumes: Vec<Uuid>,
    bytes: u64,
}

impl<'a> Yard<'a> {
    /// Cores without an array.
    ///
    /// # Errors
    /// When they can't start.
    pub fn bare(options: &Options, shelf: &'a Shelf) -> Result<Self, BenchError> {
        Ok(Self { rig: Some(Rig::start(options.cores, None)?), shelf, made: None })
    }

    /// Cores with an array over all drives, and volumes that use it up.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn make(options: &Options, shelf: &'a Shelf) -> Result<Self, BenchError> {
        let mut yard = Self::bare(options, shelf)?;
        let new = NewArray {
            name: NAME.to_owned(),
            level: options.level,
            strip_bytes: options.strip,
            block_bytes: None,
        };
        let list = references(&shelf.drives);
        let status: ArrayStatus = yard.rig().ask(|reply| Request::Create(new, list, reply))?;
        let mut made = Made { array: status.id, volumes: Vec::new(), bytes: 0 };
        let each = status.free_bytes / options.volumes as u64 / MIB * MIB;
        for number in 0..options.volumes {
            let name = format!("v{number}");
            let volume =
                yard.rig().ask(|reply| Request::VolumeCreate(NAME.to_owned(), name, each, reply));
            // From here on there is something to wipe.
            match volume {
                Ok(volume) => {
                    made.volumes.push(volume.uuid);
                    made.bytes += volume.bytes;
                }
                Err(error) => {
                    yard.made = Some(made);
                    return Err(error);
                }
            }
        }
        yard.made = Some(made);
        Ok(yard)
    }

    /// The cores.
    pub fn rig(&self) -> &Rig {
        self.rig.as_ref().expect("there until it is dropped")
    }

    /// Takes the drive of slot 0 out, and puts it in again as an empty one: it is filled from now
    /// on.
    ///
    /// # Errors
    /// When data would go.
    pub fn begin_rebuild(&self) -> Result<(), BenchError> {
        self.rig().ask(|reply| Request::Fail(NAME.to_owned(), vec!["slot:0".to_owned()], reply))?;
        let drive = references(&self.shelf.drives[..1]).remove(0);
        self.rig().ask(|reply| Request::Replace(NAME.to_owned(), Slot(0), drive, reply))?;
        Ok(())
    }

    /// Whether the drive of slot 0 is being filled.
    ///
    /// # Errors
    /// When the engine does not say.
    pub fn is_rebuilding(&self) -> Result<bool, BenchError> {
        let all = self.rig().ask(Request::Status)?;
        let slot = all.first().and_then(|array| array.slots.first());
        Ok(slot.is_some_and(|slot| slot.health == SlotHealth::Rebuilding))
    }

    /// What is loaded, with so many bytes of one drive before the next one's turn where there is no
    /// array.
    pub fn aim(&self, turn: u64) -> Aim {
        match &self.made {
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

    /// Bytes that can be loaded.
    pub fn bytes(&self) -> u64 {
        match &self.made {
            Some(made) => made.bytes,
            None => self.shelf.bytes * self.shelf.drives.len() as u64,
        }
    }
}

impl Drop for Yard<'_> {
    fn drop(&mut self) {
        // The cores end first: nobody writes records any more.
        drop(self.rig.take());
        if self.made.is_none() {
            return;
        }
        for drive in &self.shelf.drives {
            let bytes = drive.info().bytes;
            let tail = tail_offset(bytes);
            let wiped = drive
                .zero_blocking(0, AREA_BYTES.min(bytes))
                .and_then(|()| drive.zero_blocking(tail, bytes - tail))
                .and_then(|()| drive.flush_blocking());
            if let Err(error) = wiped {
                let path = drive.path().display();
                eprintln!("palisade: {path}: its array's record could not be wiped: {error}");
            }
        }
    }
}

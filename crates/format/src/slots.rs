//! Record slots of a drive: where they are, which record counts, which is written next.
//!
//! States of a slot: empty or torn (no intact record), older, newest. A write takes the slot
//! after the newest from torn or older to newest, or leaves it torn when interrupted; the newest
//! of before is never touched by it, so a drive that had a record always has one.
//!
//! The tail slots of a drive whose size changed are where its end was ([`LostTail`]).

use crate::decode::{decode, header};
use crate::record::ArrayRecord;
use crate::{AREA_BYTES, FormatError, SLOT_BYTES};
use units::{MIB, Uuid};

/// Record slots of a drive: 0 and 1 at the head, 2 and 3 at the tail.
pub const SLOTS: usize = 4;

/// Where the tail area of a drive of `drive_bytes` begins; 0 on a drive too small for any array.
pub const fn tail_offset(drive_bytes: u64) -> u64 {
    (drive_bytes - drive_bytes % MIB).saturating_sub(AREA_BYTES)
}

/// Offsets of the record slots of a drive of `drive_bytes`. Drives below 2 MiB, which no array
/// uses, have the same slots at head and tail.
pub const fn slot_offsets(drive_bytes: u64) -> [u64; SLOTS] {
    let tail = tail_offset(drive_bytes);
    [0, SLOT_BYTES, tail, tail + SLOT_BYTES]
}

/// The record slot to write when the newest record is in `newest`: 0, 2, 1, 3 and again, so that
/// head and tail take turns.
pub const fn next_slot(newest: usize) -> usize {
    match newest {
        0 => 2,
        2 => 1,
        1 => 3,
        _ => 0,
    }
}

/// The record that counts among a drive's four record slots, and its slot: the intact one with
/// the largest sequence number. Interrupted writes are passed over; a record that counts but is
/// not understood is an error, nobody falls back from it. Without any record the error is that
/// of the slot that comes nearest to one.
pub fn newest(images: [&[u8]; SLOTS]) -> Result<(usize, ArrayRecord), FormatError> {
    let mut best: Option<(u64, usize, Result<ArrayRecord, FormatError>)> = None;
    let mut torn = FormatError::NoMagic;
    for (slot, image) in images.into_iter().enumerate() {
        let header = match header(image) {
            Ok(header) => header,
            Err(problem) => {
                torn = nearer(torn, problem);
                continue;
            }
        };
        match decode(image) {
            Err(problem) if problem.is_torn() => torn = nearer(torn, problem),
            record if best.as_ref().is_none_or(|(sequence, ..)| *sequence < header.sequence) => {
                best = Some((header.sequence, slot, record));
            }
            _ => {}
        }
    }
    let (_, slot, record) = best.ok_or(torn)?;
    Ok((slot, record?))
}

/// How many MiB behind the data area the tail area of a drive that has grown is looked for.
const TAIL_PLACES: usize = 1024;

/// A drive whose head slots say that there was a record in the tail between theirs, of which
/// nothing is there: the drive had another size. As both head slots are intact, that tail slot has
/// not been written since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostTail {
    drive: Uuid,
    /// Where the tail area began at the earliest.
    first_place: u64,
    /// The slot of the record between, and the sequence number of the one before it.
    between: (usize, u64),
    /// Of slots 2 and 3, the largest sequence number that was found.
    found: [Option<u64>; 2],
}

impl LostTail {
    /// What the record slots at their places say; `None` stands for one that can't be read.
    pub fn of(images: [Option<&[u8]>; SLOTS]) -> Option<Self> {
        let nothing = |image: &[u8]| matches!(header(image), Err(FormatError::NoMagic));
        let head = |slot: usize| images[slot].and_then(|image| decode(image).ok());
        if !images[2..].iter().all(|image| image.is_some_and(nothing)) {
            return None;
        }
        let (first, second) = (head(0)?, head(1)?);
        let between = match first.sequence < second.sequence {
            true => (2, first.sequence),
            false => (3, second.sequence),
        };
        let first_place = first.data_offset + first.data_bytes;
        let same = first.this_drive == second.this_drive;
        same.then_some(Self { drive: first.this_drive, first_place, between, found: [None; 2] })
    }

    /// The tail slots of a drive of `drive_bytes` that may have been at its end, and where.
    pub fn places(&self, drive_bytes: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let tails = (self.first_place..tail_offset(drive_bytes)).step_by(MIB as usize);
        tails.take(TAIL_PLACES).flat_map(|tail| [(2, tail), (3, tail + SLOT_BYTES)])
    }

    /// Whether this, at a place of a slot, is the newest record of the drive so far that is at one.
    pub fn take(&mut self, slot: usize, image: &[u8]) -> bool {
        let record = decode(image).ok().filter(|record| record.this_drive == self.drive);
        let newer = record.map(|r| r.sequence).filter(|s| Some(*s) > self.found[slot - 2]);
        self.found[slot - 2] = newer.or(self.found[slot - 2]);
        newer.is_some()
    }

    /// Whether what was between the head's records was taken, or a later one of its slot.
    pub fn is_found(&self) -> bool {
        self.found[self.between.0 - 2] > Some(self.between.1)
    }

    /// What the newest record of those that are there is worth, and its slot.
    pub fn doubt(&self, newest: (usize, ArrayRecord)) -> Result<(usize, ArrayRecord), FormatError> {
        if self.is_found() {
            return Ok(newest);
        }
        let (slot, record) = newest;
        Err(FormatError::TailMissing { record: Box::new(record), slot })
    }
}

fn nearer(a: FormatError, b: FormatError) -> FormatError {
    let rank = |problem: &FormatError| match problem {
        FormatError::NoMagic => 0,
        FormatError::HeaderDamaged => 1,
        _ => 2,
    };
    if rank(&b) > rank(&a) { b } else { a }
}

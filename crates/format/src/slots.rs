//! Record slots of a drive: where they are, which record counts, which is written next.
//!
//! States of a slot: empty or torn (no intact record), older, newest. A write takes the slot
//! after the newest from torn or older to newest, or leaves it torn when interrupted; the newest
//! of before is never touched by it, so a drive that had a record always has one.

use crate::decode::{decode, header};
use crate::record::ArrayRecord;
use crate::{AREA_BYTES, FormatError, SLOT_BYTES};
use units::MIB;

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

fn nearer(a: FormatError, b: FormatError) -> FormatError {
    let rank = |problem: &FormatError| match problem {
        FormatError::NoMagic => 0,
        FormatError::HeaderDamaged => 1,
        _ => 2,
    };
    if rank(&b) > rank(&a) { b } else { a }
}

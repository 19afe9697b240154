//! Histories: which record is the newest, and where each drive stands to it.
//!
//! A drive is, relative to the newest record, one of:
//! - *current*: its own epoch is the last one that its slot entry there names;
//! - *behind by one*: the epoch before, because the record of the last one had not reached it;
//! - *out*: recorded as failed, replaced or older;
//! - *diverged*: it took part in an epoch that the newest history does not have.
//!
//! The last epoch of a slot that counts is the newest record's own, or an older one when its drive
//! was left behind: its groups acknowledged no write since, so the drive is as good as then.

use super::{AssembleError, Found, StaleReason};
use crate::record::{ArrayRecord, EpochMark, SlotState};
use crate::slots::tail_offset;
use units::{MIB, Slot};

/// The newest record and the path of its drive.
#[derive(Clone, Copy)]
pub struct Newest<'a> {
    pub path: &'a str,
    pub record: &'a ArrayRecord,
}

fn readable(found: &[Found]) -> impl Iterator<Item = Newest<'_>> + Clone {
    found.iter().filter_map(|drive| {
        let record = drive.record.as_ref().ok()?;
        Some(Newest { path: &drive.path, record })
    })
}

/// The newest record of drives that are all of one array and none twice.
pub fn newest(found: &[Found]) -> Result<Newest<'_>, AssembleError> {
    // Of equal records that of the lowest slot, so that the order of finding does not matter.
    // One that gave itself up says what others knew later, and of those only that.
    let age = |d: &Newest<'_>| {
        let r = d.record;
        let slot = core::cmp::Reverse((r.this_slot, r.this_drive));
        (!r.given_up(), r.epoch.counter, r.sequence, slot)
    };
    let newest = readable(found).max_by_key(age).ok_or(AssembleError::NoRecord)?;
    for (number, drive) in readable(found).enumerate() {
        let (first, second) = (newest.path.to_owned(), drive.path.to_owned());
        if drive.record.array != newest.record.array {
            return Err(AssembleError::Foreign { first, second });
        }
        let id = drive.record.this_drive;
        if let Some(twin) = readable(found).take(number).find(|d| d.record.this_drive == id) {
            let first = twin.path.to_owned();
            return Err(AssembleError::Cloned { first, second, drive: id });
        }
    }
    Ok(newest)
}

/// Refuses drives whose history is not part of the newest one's, all of them by name.
pub fn check_histories(found: &[Found], newest: Newest<'_>) -> Result<(), AssembleError> {
    let (others, same): (Vec<_>, Vec<_>) =
        readable(found).partition(|drive| diverged(drive.record, newest.record));
    if others.is_empty() {
        return Ok(());
    }
    let epoch = newest.record.epoch;
    let current = same.iter().filter(|drive| drive.record.epoch == epoch);
    Err(AssembleError::Diverged {
        newest: current.map(|drive| drive.path.to_owned()).collect(),
        others: others.iter().map(|drive| drive.path.to_owned()).collect(),
    })
}

/// The epochs that a record knows by counter and id, all of its own history.
fn known(record: &ArrayRecord) -> impl Iterator<Item = EpochMark> {
    let own = record.epoch;
    let before = EpochMark { counter: own.counter - 1, id: own.previous };
    [own.mark(), before].into_iter().chain(record.slots.iter().map(|slot| slot.last))
}

fn diverged(drive: &ArrayRecord, newest: &ArrayRecord) -> bool {
    let own = drive.epoch.mark();
    if known(newest).any(|mark| mark.counter == own.counter && mark.id != own.id) {
        return true;
    }
    newest.slots.iter().any(|slot| {
        let failed = slot.state == SlotState::Failed;
        let left_behind = slot.last != newest.epoch.mark();
        // The newest epoch is on a drive that was left behind once a start took it in again.
        let idle = failed || left_behind && own != newest.epoch.mark();
        slot.drive == drive.this_drive && idle && own.counter > slot.last.counter
    })
}

/// The slot the drive takes in the array, or why it is left out.
pub fn place(
    drive: &Found,
    newest: Newest<'_>,
) -> Result<Result<Slot, StaleReason>, AssembleError> {
    let own = match &drive.record {
        Ok(record) => record,
        Err(problem) => return Ok(Err(StaleReason::NoRecord(problem.clone()))),
    };
    let path = || drive.path.clone();
    let record = newest.record;
    let named = record.slots.iter().position(|slot| slot.drive == own.this_drive);
    let Some(named) = named.map(|at| Slot(at as u16)) else {
        return Ok(Err(StaleReason::Replaced));
    };
    let entry = &record.slots[named.index()];
    if entry.state == SlotState::Failed {
        return Ok(Err(StaleReason::Failed));
    }
    // Whoever is as old as that does not know.
    if own.given_up() {
        return Ok(Err(StaleReason::GivenUp));
    }
    let epoch = own.epoch.counter;
    if epoch + 1 < entry.last.counter {
        return Ok(Err(StaleReason::Stale { epoch, newest: record.epoch.counter }));
    }
    if named != own.this_slot {
        return Err(AssembleError::Swapped { path: path(), own: own.this_slot, named });
    }
    if own.read_only {
        return Err(AssembleError::ReadOnly { path: path() });
    }
    if !same_array(own, record) {
        return Err(AssembleError::Inconsistent { path: path(), newest: newest.path.to_owned() });
    }
    // Used, it would fail the first request for less than one of its blocks; left out, it would be
    // called failed, and could not be put back as it is. It holds all that it should: whether to go
    // on without it is for a person to decide, who takes it away.
    if drive.block_bytes > record.block_bytes {
        let (drive, array) = (drive.block_bytes, record.block_bytes);
        return Err(AssembleError::BlockSize { path: path(), drive, array });
    }
    let needed = record.data_offset + record.data_bytes;
    if tail_offset(drive.bytes) < needed {
        return Ok(Err(StaleReason::TooSmall { bytes: drive.bytes, needed: needed + MIB }));
    }
    Ok(Ok(named))
}

/// True when both records describe the same array: what no update within an epoch changes.
fn same_array(a: &ArrayRecord, b: &ArrayRecord) -> bool {
    let drives = |r: &ArrayRecord| r.slots.iter().map(|slot| slot.drive).collect::<Vec<_>>();
    a.level == b.level
        && a.block_bytes == b.block_bytes
        && a.data_offset == b.data_offset
        && a.data_bytes == b.data_bytes
        && a.areas == b.areas
        && a.ranges == b.ranges
        && (a.epoch.counter != b.epoch.counter || drives(a) == drives(b))
}

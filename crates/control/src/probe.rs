//! What is on a drive: its record, or what else it holds. Reads in the calling thread.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "lengths are those of areas that were allocated"
)]

use crate::convert;
use crate::digest::{Sum, sum};
use crate::failure::CHECK_DRIVE;
use drives::{BlockingDrive, SharedDrive, now};
use engine::manage::{erase_records, read_record};
use format::limits::{OWNER_AT, OWNER_BYTES};
use format::owner::OwnerPage;
use format::{ArrayRecord, FormatError, SlotState};
use io::{BufMut, DriveError, Pool};
use redfish::messages as say;
use redfish::view;
use units::{MIB, Slot};

/// What a drive holds.
#[derive(Clone, Debug, Default)]
pub struct Content {
    /// Its record, if one counts.
    pub record: Option<ArrayRecord>,
    /// Anything known on it, for people; a Palisade array too.
    pub signature: Option<String>,
    /// The page that says which server has its array, if there is a record and such a page.
    pub owner: Option<OwnerPage>,
    /// Why not all can be told that is on it.
    pub problem: Option<String>,
    /// What kind of problem that is, where no record counts.
    pub unread: Option<Unread>,
    /// Where no record counts, a digest of head and tail: tells what is there from another of its
    /// kind.
    pub ends: Option<Sum>,
}

/// Why a record that may be there can't be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unread {
    /// Another release wrote it.
    Release,
    /// The drive does not give it.
    Drive,
    /// It is damaged.
    Damaged,
}

impl Unread {
    const fn of(error: &FormatError) -> Self {
        match error {
            FormatError::Version(_) | FormatError::Incompatible(_) => Self::Release,
            _ => Self::Damaged,
        }
    }

    /// What to do about the drive at `path`. What destroys data comes last, and asks once more.
    pub fn advice(self, path: &str) -> String {
        match self {
            Self::Release => "use the release that wrote it, or leave the drive out".to_owned(),
            Self::Drive => CHECK_DRIVE.to_owned(),
            Self::Damaged => format!(
                "leave the drive out: its array starts without it if its redundancy covers that; \
                 what the drive holds can also be destroyed with: palisade drive wipe {path}"
            ),
        }
    }
}

impl Content {
    /// What would be destroyed if it were overwritten, as far as is known; `None`: nothing.
    pub fn holds(&self) -> Option<String> {
        let problem = self.problem.as_ref().map(|told| format!("something unknown: {told}"));
        self.signature.clone().or(problem)
    }

    /// What would be destroyed that is no array's by a record that can be read; `None`: nothing.
    pub fn foreign(&self) -> Option<String> {
        if self.record.is_some() { None } else { self.holds() }
    }

    /// What is on it, for who is asked whether that may go.
    pub fn told(&self) -> String {
        let slot = self.record.as_ref().map(|record| format!("slot {} of ", record.this_slot));
        let what = self.holds().unwrap_or("nothing known".to_owned());
        slot.unwrap_or_default() + &what
    }
}

/// What is read at once where not all of a range can be read.
const PIECE_BYTES: u64 = 4096;

/// So many pieces may fail before the rest of a range is not asked for any more: each may take a
/// drive seconds.
const BAD_PIECES_MOST: u64 = 4;

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a few MiB")
}

/// Bytes of a drive; `None`: not all of them can be read.
fn read(drive: &SharedDrive, offset: u64, bytes: u64) -> Result<Option<BufMut>, DriveError> {
    let mut buffer = Pool::single(size(bytes));
    match drive.read_blocking(offset, &mut buffer) {
        Err(DriveError::Media) => Ok(None),
        outcome => outcome.map(|()| Some(buffer)),
    }
}

/// The same as far as they can be read, with zeros for the rest; whether that is all.
fn read_what_can_be(
    drive: &SharedDrive,
    offset: u64,
    bytes: u64,
) -> Result<(BufMut, bool), DriveError> {
    if let Some(all) = read(drive, offset, bytes)? {
        return Ok((all, true));
    }
    let (mut all, mut bad) = (Pool::single(size(bytes)), 0);
    all.fill(0);
    for at in (0..bytes).step_by(size(PIECE_BYTES)) {
        let n = PIECE_BYTES.min(bytes - at);
        match read(drive, offset + at, n)? {
            Some(piece) => all[size(at)..][..size(n)].copy_from_slice(&piece),
            None => bad += 1,
        }
        if bad == BAD_PIECES_MOST {
            break;
        }
    }
    Ok((all, false))
}

/// Looks at head and tail of a drive.
pub fn content(drive: &SharedDrive) -> Content {
    look(drive).unwrap_or_else(|error| Content {
        problem: Some(format!("can't be read: {error}")),
        unread: Some(Unread::Drive),
        ..Content::default()
    })
}

fn look(drive: &SharedDrive) -> Result<Content, DriveError> {
    let bytes = drive.info().bytes;
    let block = u64::from(drive.info().block_bytes);
    let (mut version, mut unread) = (None, None);
    let found = now(read_record(&BlockingDrive(drive.clone())))?;
    let (record, mut problem) = match found {
        Ok((_, record)) => (Some(record), None),
        Err(FormatError::NoMagic) => (None, None),
        // Whether it counts is for a start to find out, with the other drives.
        Err(error @ FormatError::TailMissing { .. }) => (error.in_doubt(), Some(error.to_string())),
        Err(error) => {
            if let FormatError::Version(other) = error {
                version = Some(format!("Palisade array of format version {other}"));
            }
            unread = Some(Unread::of(&error));
            (None, Some(error.to_string()))
        }
    };
    if let Some(record) = record {
        let signature = Some(format!("Palisade array \"{}\"", record.name));
        let owner = owner_page(drive)?;
        return Ok(Content { record: Some(record), signature, owner, problem, unread, ends: None });
    }
    // Behind the tail area less than a MiB may follow; all of it is looked at.
    let tail_part = bytes.min(2 * MIB);
    let (head, all_before) = read_what_can_be(drive, 0, bytes.min(MIB))?;
    let tail = bytes - tail_part - (bytes - tail_part) % block;
    let behind = size(format::tail_offset(bytes).saturating_sub(tail));
    let (tail, all_behind) = read_what_can_be(drive, tail, tail_part)?;
    let seen = format::foreign_signature(&head, &tail);
    let known = seen.map(|seen| format!("{} ({})", seen.what, seen.detail));
    // Where nothing is known, what our own deletion leaves is blank: the areas of the records.
    let area = size(format::AREA_BYTES);
    let ends = [(&head[..head.len().min(area)], "head"), (&tail[behind..], "tail")];
    let unknown = ends.iter().find(|(bytes, _)| format::holds_data(bytes));
    let signature =
        version.or(known).or(unknown.map(|(_, end)| format!("unknown data ({end} of the drive)")));
    if !(all_before && all_behind) {
        let told = "blocks at its ends can't be read, and may hold a record".to_owned();
        problem = problem.or(Some(told));
        unread = unread.or(Some(Unread::Drive));
    }
    let ends = Some(sum([&head[..], &tail[..]]));
    Ok(Content { record: None, signature, owner: None, problem, unread, ends })
}

/// The owner page of a drive; none if there is none, or it can't be read.
fn owner_page(drive: &SharedDrive) -> Result<Option<OwnerPage>, DriveError> {
    let bytes = read(drive, OWNER_AT, OWNER_BYTES as u64)?;
    Ok(bytes.and_then(|bytes| format::owner::decode(&bytes)))
}

/// What `drive inspect` tells.
pub fn inspected(path: &str, bytes: u64, record: &ArrayRecord) -> view::Inspected {
    let groups = |which: fn(&format::GroupRecord) -> bool| {
        let all = (0u16..).zip(&record.groups);
        all.filter(|(_, group)| which(group)).map(|(number, _)| number).collect()
    };
    view::Inspected {
        path: path.to_owned(),
        bytes,
        array_uuid: record.array.to_string(),
        array_name: record.name.clone(),
        drive_uuid: record.this_drive.to_string(),
        slot: record.this_slot.0,
        level: record.level.to_string(),
        drives: record.slots.len() as u16,
        strip_bytes: strip_bytes(record),
        block_bytes: record.block_bytes,
        data_offset: record.data_offset,
        data_bytes: record.data_bytes,
        epoch: record.epoch.counter,
        sequence: record.sequence,
        zeroed: record.zeroed,
        unclean: record.groups.iter().any(|group| group.unclean),
        journal: record.journal_key != 0,
        guarded_groups: groups(|group| group.guarded),
        loss_accepted_groups: groups(|group| group.loss_accepted),
        slots: recorded_slots(record, |_| None),
        volumes: recorded_volumes(record),
        lost_ranges: record.lost.len() as u64,
        unreadable: convert::recorded_lost(record),
        last_scrub: record.last_scrub.map(|scrub| last_scrub(scrub, None)),
    }
}

/// What a record says of its volumes.
pub fn recorded_volumes(record: &ArrayRecord) -> Vec<view::Volume> {
    let volume = |volume: &format::VolumeRecord| view::Volume {
        array: record.name.clone(),
        name: volume.name.clone(),
        uuid: volume.uuid.to_string(),
        size_bytes: volume.bytes,
    };
    record.volumes.iter().map(volume).collect()
}

/// The strip of a record's ranges, which is the same in all.
pub fn strip_bytes(record: &ArrayRecord) -> u32 {
    record.ranges.first().map_or(0, |range| range.descriptor.strip_bytes)
}

/// What a record says of its slots; `path` tells where a slot's drive is now.
pub fn recorded_slots(
    record: &ArrayRecord,
    path: impl Fn(Slot) -> Option<String>,
) -> Vec<view::SlotInfo> {
    let slots = (0u16..).zip(&record.slots);
    let info = |(slot, entry): (u16, &format::SlotRecord)| view::SlotInfo {
        slot,
        drive: path(Slot(slot)),
        serial: entry.serial.clone(),
        state: match entry.state {
            SlotState::InSync => view::SlotState::InSync,
            SlotState::Rebuilding { .. } => view::SlotState::Rebuilding,
            SlotState::Failed => view::SlotState::Failed,
        },
        read_errors: 0,
        rewritten: 0,
        wrong_strips: 0,
        failures: 0,
        timeouts: 0,
        reason: None,
        quarantined: false,
    };
    slots.map(info).collect()
}

/// The result of a scrub for the interface, with what a running array knows of it besides.
pub fn last_scrub(scrub: format::LastScrub, uncompared_bytes: Option<u64>) -> view::LastScrub {
    view::LastScrub {
        checked_bytes: scrub.checked_bytes,
        uncompared_bytes,
        mismatches: scrub.mismatches,
        repaired: scrub.repaired,
        unlocated: scrub.unlocated,
        unreadable: scrub.unreadable,
        ended: scrub.unix_seconds,
    }
}

/// Refuses to wipe a drive of what is no array's.
pub fn wipes_foreign(path: &str, what: &str) -> view::Error {
    view::Error::new(&say::WIPE_HOLDS_DATA, &[&path, &what])
}

/// Erases the records of a drive that no array uses, and what else lies there (`docs/format.md`,
/// "Wiping").
pub fn erase(drive: &SharedDrive) -> Result<(), DriveError> {
    drive.unguard_blocking()?;
    now(erase_records(&BlockingDrive(drive.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use drives::Faults;
    use format::{Extent, LostRange, LostReason, VolumeRecord};
    use layout::{Layout, Level};
    use units::Uuid;
    use view::UnreadableReason::{Crash, Rebuild};

    /// A record of two volumes with lost ranges in the second, a drive failed and a journal.
    fn troubled() -> ArrayRecord {
        let layout = Layout::new(Level::Raid5, 3, 65536, 8 * MIB).expect("it is possible");
        let id = |n| Uuid::from_random([n; 16]);
        let drives: Vec<_> = (1..4).map(|n| (id(n), format!("S{n}"))).collect();
        let split = format::split(12 * MIB);
        let mut record = ArrayRecord::new(id(9), "data", 7, 512, &layout, &split, &drives);
        record.fail_slot(Slot(1));
        record.next_epoch(8);
        record.journal_key = 0x1234_5678_9abc_def0;
        record.groups[0].unclean = true;
        record.groups[0].guarded = true;
        let volume = |n: u8, row: u64, rows: u64| VolumeRecord {
            uuid: id(n),
            name: format!("v{n}"),
            bytes: rows * 2 * MIB,
            extents: vec![Extent { array_start: row * 2 * MIB, bytes: rows * 2 * MIB }],
        };
        record.volumes = vec![volume(20, 0, 1), volume(21, 1, 2)];
        let lost = |start, bytes, reason| LostRange { start, bytes, reason };
        record.lost = vec![
            lost(2 * MIB + 512, 1024, LostReason::Crash),
            lost(4 * MIB - 512, 512, LostReason::Rebuild),
            lost(4 * MIB, 512, LostReason::Rebuild),
        ];
        assert_eq!(record.check(), Ok(()));
        record
    }

    #[test]
    fn an_inspection_tells_of_journal_and_lost_ranges() {
        let told = inspected("/dev/a", 12 * MIB, &troubled());
        assert!(told.journal && told.unclean);
        assert_eq!((told.guarded_groups, told.loss_accepted_groups), (vec![0], Vec::new()));
        assert_eq!(told.lost_ranges, 3);
        let found: Vec<_> = told
            .unreadable
            .iter()
            .map(|range| (range.volume.as_str(), range.offset, range.length, range.reason))
            .collect();
        assert_eq!(found, [("v21", 512, 1024, Crash), ("v21", 2 * MIB - 512, 1024, Rebuild)]);
        let mut record = troubled();
        record.lost.clear();
        record.journal_key = 0;
        (record.groups[0].guarded, record.groups[0].loss_accepted) = (false, true);
        let told = inspected("/dev/a", 12 * MIB, &record);
        assert!(!told.journal && told.unreadable.is_empty() && told.lost_ranges == 0);
        assert_eq!((told.guarded_groups, told.loss_accepted_groups), (Vec::new(), vec![0]));
    }

    /// A drive whose slots 0 and 2 hold records with the sequence numbers 1 and 2.
    fn recorded() -> (SharedDrive, Faults, [u64; 4]) {
        let drive = SharedDrive::memory(12 * MIB, 512, false);
        let (faulty, faults) = drive.faulty();
        let slots = format::slot_offsets(12 * MIB);
        for (sequence, slot) in [(1, 0), (2, 2)] {
            let record = ArrayRecord { sequence, ..troubled() };
            let image = format::encode(&record.for_slot(Slot(0)));
            let mut buffer = Pool::single(image.len());
            buffer.copy_from_slice(&image);
            drive.write_blocking(slots[slot], &[buffer.freeze()]).expect("it is memory");
        }
        (faulty, faults, slots)
    }

    #[test]
    fn a_drive_without_its_tail_is_one_of_its_array_and_in_doubt() {
        let (drive, _, slots) = recorded();
        let record = ArrayRecord { sequence: 3, ..troubled() };
        let image = format::encode(&record.for_slot(Slot(0)));
        let mut buffer = Pool::single(image.len());
        buffer.copy_from_slice(&image);
        drive.write_blocking(slots[1], &[buffer.freeze()]).expect("it is memory");
        assert!(content(&drive).problem.is_none());
        drive.zero_blocking(slots[2], MIB).expect("it is memory");
        let seen = content(&drive);
        assert_eq!(seen.record.map(|record| record.sequence), Some(3));
        assert!(seen.problem.is_some_and(|told| told.contains("newest record may be missing")));
    }

    fn sequence(drive: &SharedDrive) -> Option<u64> {
        content(drive).record.map(|record| record.sequence)
    }

    #[test]
    fn blocks_that_cant_be_read_hide_no_record_but_their_own() {
        let (drive, faults, slots) = recorded();
        assert_eq!(sequence(&drive), Some(2));
        // Before the records, behind them, in a slot without one and in the last MiB of data.
        let around = [MIB - 512, slots[1], slots[2] + 8192, slots[3], slots[2] - 512];
        around.iter().for_each(|at| faults.lose(*at..at + 512));
        assert_eq!(sequence(&drive), Some(2));
        assert_eq!(content(&drive).problem, None);
        faults.lose(slots[2] + 512..slots[2] + 1024);
        assert_eq!(sequence(&drive), Some(1), "the newest is not whole any more");
        faults.lose(slots[0]..slots[0] + 512);
        let seen = content(&drive);
        assert!(seen.record.is_none() && seen.problem.is_some());
        assert_eq!(seen.unread, Some(Unread::Drive));
        let holds = seen.holds().expect("it may hold anything");
        assert!(holds.starts_with("something unknown: "), "{holds}");
        faults.lose(0..12 * MIB);
        let seen = content(&drive);
        assert!(seen.problem.expect("none").starts_with("can't be read: "));
        assert_eq!(seen.unread.map(|why| why.advice("/dev/a")).as_deref(), Some(CHECK_DRIVE));
    }

    #[test]
    fn a_record_that_cant_be_read_is_not_advised_away() {
        let advice = |error| Unread::of(&error).advice("/dev/a");
        for other in [FormatError::Version(4), FormatError::Incompatible(2)] {
            assert_eq!(advice(other), "use the release that wrote it, or leave the drive out");
        }
        for damage in [FormatError::HeaderDamaged, FormatError::Invalid("it is")] {
            let text = advice(damage);
            assert!(text.starts_with("leave the drive out"), "{text}");
            assert!(text.ends_with("destroyed with: palisade drive wipe /dev/a"), "{text}");
        }
        assert_eq!(content(&recorded().0).unread, None);
    }
}

//! Records that are whole and keep every rule that can be seen in them, but that no release writes:
//! a start serves or refuses the array, and nothing ends or hangs.

use crate::common;

use common::{Rig, drives, read, record, references, write};
use engine::manage::command::{
    ArrayState, ArrayStatus, ManageError, Request, SlotHealth, StartOptions,
};
use format::ExportAddress;
use format::journal::{self, Batch, Place};
use format::limits::{COUNTERS_END, HEADER_BYTES, RANGE_BYTES, SLOT_ENTRY_BYTES};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use units::{GroupNo, MIB, Nanos};

const STRIP: u32 = 16 << 10;

/// Changes the image of a drive's newest record, and puts its checksums right.
fn forge(drive: &SharedSimDrive, change: impl Fn(&mut [u8])) {
    let offsets = format::slot_offsets(drive.info().bytes);
    let images = offsets.map(|at| drive.peek(at, format::SLOT_BYTES));
    let (slot, _) = format::newest([&images[0], &images[1], &images[2], &images[3]]).unwrap();
    let mut image = images[slot].clone();
    change(&mut image);
    let bytes = u32::from_le_bytes(image[28..32].try_into().unwrap()) as usize;
    let crc = parity::crc32c(0, &image[HEADER_BYTES..HEADER_BYTES + bytes]);
    image[40..44].copy_from_slice(&crc.to_le_bytes());
    let crc = parity::crc32c(0, &image[..HEADER_BYTES - 4]);
    image[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    drive.overwrite(offsets[slot], &image);
}

fn put(image: &mut [u8], at: usize, value: u64) {
    image[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Where the entry of a slot begins.
fn slot_at(image: &[u8], slot: usize) -> usize {
    let number = |at: usize| usize::from(u16::from_le_bytes([image[at], image[at + 1]]));
    let body = HEADER_BYTES;
    let first = body + 192 + number(body + 162) + number(body + 152) * RANGE_BYTES;
    (0..slot).fold(first, |at, _| at + SLOT_ENTRY_BYTES + usize::from(image[at + 17]))
}

/// An array with a volume in which something was written, stopped, or crashed.
fn made(level: Level, cache: bool, crash: bool) -> Vec<SharedSimDrive> {
    let drives = drives(4, 1, cache);
    let rig = Rig::new(1, 1);
    rig.create(level, &drives, STRIP).unwrap();
    let volume = rig.volume(MIB).remove(0);
    write(&rig, &volume, 0, &[7; 4096]).unwrap();
    if crash {
        rig.world.crash()
    } else {
        rig.stop()
    }
    drives
}

/// Starts what the drives hold; what is served does so for a while, and stops.
fn started(drives: &[SharedSimDrive]) -> Result<ArrayStatus, ManageError> {
    let rig = Rig::new(2, 1);
    rig.assemble(&references(drives), StartOptions::default())?;
    rig.wait();
    let volume = rig.open_volume().remove(0);
    assert_eq!(read(&rig, &volume, 0, 4096).unwrap(), [7; 4096]);
    write(&rig, &volume, 4096, &[8; 4096]).unwrap();
    rig.world.run_for(Nanos::from_millis(50));
    let status = rig.status();
    rig.stop();
    Ok(status)
}

#[test]
fn a_sequence_number_that_leaves_no_room_is_refused() {
    let drives = made(Level::Raid1, true, false);
    drives.iter().for_each(|d| forge(d, |image| put(image, 32, COUNTERS_END - 1)));
    assert!(matches!(started(&drives), Err(ManageError::NothingFound)));
}

#[test]
fn an_epoch_that_leaves_no_room_is_refused() {
    let drives = made(Level::Raid1, false, false);
    let last = |image: &mut [u8]| {
        put(image, HEADER_BYTES + 56, COUNTERS_END - 1);
        (0..4).for_each(|slot| put(image, slot_at(image, slot) + 32, COUNTERS_END - 1));
    };
    drives.iter().for_each(|d| forge(d, last));
    assert!(matches!(started(&drives), Err(ManageError::NothingFound)));
}

#[test]
fn a_scrub_that_counted_all_there_is_ends() {
    let drives = drives(4, 1, false);
    let rig = Rig::new(1, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    write(&rig, &rig.volume(MIB)[0], 0, &[7; 4096]).unwrap();
    let repair = engine::manage::command::Repair::Nothing;
    rig.ask(|r| Request::Scrub("a".into(), repair, r)).unwrap();
    rig.world.crash();
    assert!(record(&drives[0]).scrub.is_some());
    let full = |image: &mut [u8]| {
        let bytes = u32::from_le_bytes(image[28..32].try_into().unwrap()) as usize;
        let tasks = HEADER_BYTES + bytes - 80;
        (0..5).for_each(|field| put(image, tasks + 32 + 8 * field, u64::MAX));
    };
    drives.iter().for_each(|d| forge(d, full));
    let scrub = started(&drives).unwrap().last_scrub.unwrap();
    assert_eq!((scrub.checked_bytes, scrub.unreadable), (u64::MAX, u64::MAX));
}

#[test]
fn a_rebuild_with_nothing_left_to_fill_ends() {
    for level in [Level::Raid1, Level::Raid5, Level::Raid10] {
        let drives = made(level, false, false);
        let known = record(&drives[0]);
        let stripes = known.layout().unwrap().stripes(GroupNo(0));
        let rebuilding = |image: &mut [u8]| {
            let at = slot_at(image, 1);
            image[at + 16] = 1;
            put(image, at + 24, stripes);
        };
        drives.iter().for_each(|d| forge(d, rebuilding));
        let status = started(&drives).unwrap();
        assert_eq!(status.state, ArrayState::Optimal, "{level}");
        assert_eq!(status.slots[1].health, SlotHealth::InSync, "{level}");
    }
}

#[test]
fn the_last_number_of_an_export_leaves_room_for_more() {
    let drives = drives(2, 1, false);
    let rig = Rig::new(1, 1);
    rig.create(Level::Raid1, &drives, STRIP).unwrap();
    rig.volume(MIB);
    let export = |rig: &Rig, path: &str| {
        let address = ExportAddress::NbdUnix(path.into());
        rig.ask(|r| Request::ExportCreate("a".into(), "v".into(), address, r)).unwrap().id
    };
    assert_eq!(export(&rig, "/run/some-place"), 1);
    rig.stop();
    let last = |image: &mut [u8]| {
        let at = image.windows(15).position(|part| part == b"/run/some-place").unwrap();
        image[at - 8..at - 4].fill(0xff);
    };
    drives.iter().for_each(|d| forge(d, last));
    let rig = Rig::new(2, 1);
    rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    assert_eq!((export(&rig, "/a"), export(&rig, "/b")), (1, 2));
}

/// A batch of the array's own key, of a lane that this start has not, with the last of all numbers.
#[test]
fn a_batch_that_nothing_can_follow_is_passed_over() {
    let drives = made(Level::Raid5, false, true);
    let (known, areas) = (record(&drives[0]), record(&drives[0]).areas);
    assert!(known.journal_key != 0 && known.groups[0].guarded && known.groups[0].unclean);
    let place = Place { array: known.array, at: areas.journal_bytes - 4096 };
    let (sequence, epoch) = (u64::MAX, known.epoch.counter);
    let key = known.journal_key;
    let entries = Vec::new();
    let batch = Batch { group: GroupNo(0), lane: 9, sequence, tail: sequence, key, epoch, entries };
    let image = journal::encode(place, &batch, 0);
    for drive in &drives {
        drive.overwrite(areas.journal_start + place.at, &image);
    }
    assert_eq!(started(&drives).unwrap().state, ArrayState::Optimal);
}

/// Nothing stands in the way of the start of an array whose drives are larger than it needs.
#[test]
fn an_untouched_array_is_served() {
    let config = |i| DriveConfig::new(12 * MIB, i);
    let large: Vec<_> = (0..3).map(|i| SharedSimDrive::new(config(i))).collect();
    let rig = Rig::new(1, 1);
    rig.create(Level::Raid5, &large, STRIP).unwrap();
    write(&rig, &rig.volume(MIB)[0], 0, &[7; 4096]).unwrap();
    rig.stop();
    large.iter().for_each(|d| forge(d, |_| ()));
    assert_eq!(started(&large).unwrap().state, ArrayState::Optimal);
}

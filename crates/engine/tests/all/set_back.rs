//! A drive that comes back as it was before, by less than two epochs (P7): its pages of the region
//! map say so, and nothing of it is served.

use crate::common;
use crate::golden::outside;

use common::{FORCE, Rig, drives, flush, read, record, reference, references, write};
use engine::manage::command::{ArrayState, ManageError, Request, SlotHealth, StartOptions};
use format::AssembleError;
use layout::Level;
use sim::SharedSimDrive;
use units::{MIB, Nanos, Slot};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = 192 << 10;
/// Bytes of a page of the map.
const PLACE: u64 = 4096;
const LEVELS: [(Level, usize); 4] =
    [(Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid6, 5), (Level::Raid10, 4)];

/// How the array ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Stop,
    Crash,
}

/// Fills the volume, durably; with `rest`, until its regions are clean.
fn fill(rig: &Rig, at: u64, byte: u8, rest: bool) {
    let volume = rig.open_volume()[0].clone();
    write(rig, &volume, at, &[byte; BYTES as usize]).unwrap();
    flush(rig, &volume).unwrap();
    if rest {
        rig.world.run_for(Nanos::from_millis(10_000));
        assert_eq!(rig.status().region_map.dirty_regions, 0);
    }
}

fn holds(rig: &Rig, byte: u8) {
    let got = read(rig, &rig.open_volume()[0], 0, BYTES).unwrap();
    let wrong = got.iter().filter(|b| **b != byte).count();
    assert_eq!(wrong, 0, "bytes that were never there together with the others");
}

/// Drives of which one comes back as it was before the second of two writes; `clean`: its regions
/// were.
fn set_back(level: Level, width: usize, slot: usize, clean: bool, end: End) -> Vec<SharedSimDrive> {
    let mut drives = drives(width, 7, false);
    let rig = Rig::new(7, 1);
    rig.create(level, &drives, STRIP).unwrap();
    drop(rig.volume(MIB));
    fill(&rig, 0, 0xa, clean);
    let old = drives[slot].duplicate();
    fill(&rig, 0, 0xb, end == End::Crash);
    if end == End::Stop {
        rig.stop();
    }
    drop(rig);
    let behind = record(&drives[slot]).epoch.counter - record(&old).epoch.counter;
    assert_eq!(behind, u64::from(end == End::Stop));
    drives[slot] = old;
    drives
}

/// As above, after a stop; of the drive that comes back the place of the page before the newest of
/// the others can't be read.
fn set_back_and_torn(level: Level, width: usize, slot: usize, clean: bool) -> Vec<SharedSimDrive> {
    let drives = set_back(level, width, slot, clean, End::Stop);
    let other = (slot + 1) % width;
    let map = record(&drives[other]).areas.map_start;
    let sequence = |drive: usize, place: u64| {
        let at = (map + place * PLACE) as usize + 32;
        u64::from_le_bytes(drives[drive].contents()[at..at + 8].try_into().unwrap())
    };
    let newest = u64::from(sequence(other, 1) > sequence(other, 0));
    assert!(sequence(slot, newest) < sequence(other, newest));
    drives[slot].overwrite(map + (1 - newest) * PLACE, &[0x5a; PLACE as usize]);
    drives
}

/// Starts without the drive, and fills it whole when it is put back.
fn is_left_out(drives: &[SharedSimDrive], slot: usize) {
    let rig = Rig::new(8, 1);
    let options = StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
    let status = rig.assemble(&references(drives), options).unwrap();
    assert_eq!(status.slots[slot].health, SlotHealth::Missing);
    holds(&rig, 0xb);
    let back = reference(&drives[slot], slot);
    rig.ask(|r| Request::Replace("a".into(), Slot(slot as u16), back, r)).unwrap();
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal);
    assert_eq!(rig.scrub(false).mismatches, 0, "it was filled whole");
    rig.fail((slot + 1) % drives.len()).unwrap();
    holds(&rig, 0xb);
}

#[test]
fn a_drive_set_back_by_one_epoch_is_left_out_after_a_stop() {
    for (level, width) in LEVELS {
        for slot in 0..width {
            for clean in [false, true] {
                is_left_out(&set_back(level, width, slot, clean, End::Stop), slot);
            }
        }
    }
}

/// The page that said that nothing is dirty any more is on every drive before a record says so: who
/// has an older one in its place was set back, though nobody can read what its other place held.
#[test]
fn a_drive_set_back_with_a_torn_page_is_left_out_after_a_stop() {
    for (level, width) in LEVELS {
        for slot in 0..width {
            for clean in [false, true] {
                is_left_out(&set_back_and_torn(level, width, slot, clean), slot);
            }
        }
    }
}

/// The second reader leaves it out, too.
#[test]
fn the_outside_reader_leaves_out_what_was_set_back() {
    let [stopped, cut] = [End::Stop, End::Crash].map(|end| set_back(Level::Raid5, 4, 1, true, end));
    for drives in [stopped, cut, set_back_and_torn(Level::Raid5, 4, 1, true)] {
        let images: Vec<_> = drives.iter().map(|drive| drive.contents().to_vec()).collect();
        let got = outside(&["--volume", "v"], "set-back", &images, 0);
        let Some(got) = got else { return };
        assert!(got[..BYTES as usize].iter().all(|byte| *byte == 0xb), "older bytes are read");
    }
}

#[test]
fn a_drive_set_back_within_an_epoch_is_left_out_after_a_crash() {
    for (level, width) in LEVELS {
        for slot in 0..width {
            is_left_out(&set_back(level, width, slot, true, End::Crash), slot);
        }
    }
}

#[test]
fn what_two_mirrors_say_is_asked_of_a_person() {
    let drives = set_back(Level::Raid1, 2, 1, true, End::Stop);
    let refused = Rig::new(8, 1).assemble(&references(&drives), StartOptions::default());
    let Err(ManageError::Assemble(error @ AssembleError::NeedsStartDegraded { .. })) = refused
    else {
        panic!("not refused: {refused:?}");
    };
    assert!(error.to_string().contains("in an older state"), "{error}");
}

#[test]
fn without_redundancy_nothing_starts_with_an_older_state() {
    let mut drives = drives(2, 9, false);
    let rig = Rig::new(9, 1);
    rig.create(Level::Raid0, &drives, STRIP).unwrap();
    drop(rig.volume(4 * MIB));
    let old = drives[0].duplicate();
    for at in 0..2 {
        fill(&rig, 2 * at * MIB, 0xb, false);
    }
    rig.stop();
    drop(rig);
    let back = core::mem::replace(&mut drives[0], old);
    let before: Vec<_> = drives.iter().map(SharedSimDrive::contents).collect();
    let refused = Rig::new(10, 1).assemble(&references(&drives), FORCE);
    let Err(ManageError::Assemble(error @ AssembleError::TooManyMissing { .. })) = refused else {
        panic!("not refused: {refused:?}");
    };
    assert!(error.to_string().contains("in an older state"), "{error}");
    let same = drives.iter().zip(before).all(|(drive, bytes)| drive.contents() == bytes);
    assert!(same, "a refused start writes nothing");
    drives[0] = back;
    let rig = Rig::new(11, 1);
    rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    holds(&rig, 0xb);
}

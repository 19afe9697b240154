//! Which strip is wrong: a scrub names the drive where the others can know it, repairs that one,
//! and changes nothing where nobody can know, unless it is told to trust the data.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Machine, Rig, drives, references};
use engine::Volume;
use engine::manage::command::{Repair, StartOptions};
use layout::Level;
use sim::SharedSimDrive;
use std::rc::Rc;
use units::{GroupNo, MIB, StripIndex, StripeNo};

const BYTES: u64 = MIB;
const STRIP: u64 = 16 << 10;

/// An array with known content, stopped cleanly.
fn filled(level: Level, width: usize, seed: u64) -> (Vec<SharedSimDrive>, Rc<Oracle>) {
    let drives = drives(width, seed, false);
    let oracle = Oracle::new(BYTES, false);
    let rig = Rig::new(seed, 1);
    rig.create(level, &drives, STRIP as u32).unwrap();
    let volumes = rig.volume(BYTES);
    let mix = Mix { tasks: 4, operations: 60, blocks_most: 200, read_percent: 0 };
    oracle.start(&rig, &volumes, mix, seed);
    oracle.finish(&rig);
    rig.stop();
    (drives, oracle)
}

/// Where a strip lies: its slot, and its place on that drive.
fn place(drives: &[SharedSimDrive], stripe: u64, strip: u16) -> (usize, u64) {
    let record = common::record(&drives[0]);
    let layout = record.layout().unwrap();
    let (slot, at) = layout.seat(GroupNo(0), StripeNo(stripe), StripIndex(strip));
    (slot.index(), record.data_offset + at)
}

/// Turns bytes of a strip wrong without an error; the slot that is to blame.
fn spoil(drives: &[SharedSimDrive], stripe: u64, strip: u16, at: u64, bytes: usize) -> usize {
    let (slot, start) = place(drives, stripe, strip);
    let mut content = drives[slot].peek(start + at, bytes as u64);
    // Errors that don't repeat: two equal ones in one block look like one in Q.
    for (i, byte) in content.iter_mut().enumerate() {
        *byte ^= 1 + (i as u8 & 0x1f) * (strip as u8 + 1);
    }
    drives[slot].overwrite(start + at, &content);
    slot
}

fn running(drives: &[SharedSimDrive], seed: u64) -> (Rig, Volume<Machine>) {
    let rig = Rig::new(seed, 1);
    rig.assemble(&references(drives), StartOptions::default()).unwrap();
    let volume = rig.open_volume()[0].clone();
    (rig, volume)
}

fn wrong(rig: &Rig) -> Vec<u64> {
    rig.status().slots.iter().map(|slot| slot.errors.wrong_strips).collect()
}

fn contents(drives: &[SharedSimDrive]) -> Vec<Vec<u8>> {
    let data = common::record(&drives[0]);
    drives.iter().map(|drive| drive.peek(data.data_offset, data.data_bytes)).collect()
}

#[test]
fn p_and_q_name_the_drive_and_it_is_repaired() {
    for strip in 0..5 {
        let seed = u64::from(strip);
        let (drives, oracle) = filled(Level::Raid6, 5, seed);
        let before = contents(&drives);
        let guilty = spoil(&drives, 3, strip, 512, 3000);
        let (rig, volume) = running(&drives, seed + 10);
        let seen = rig.scrub_as(Repair::Nothing);
        assert_eq!((seen.mismatches, seen.repaired), (1, 0));
        let blamed: Vec<u64> = (0..5).map(|slot| u64::from(slot == guilty)).collect();
        assert_eq!((wrong(&rig), seen.unlocated), (blamed, 0), "strip {strip}");
        assert_eq!(rig.scrub_as(Repair::Known).repaired, 1);
        assert_eq!(rig.scrub_as(Repair::Nothing).mismatches, 0);
        oracle.verify(&rig, &volume, false);
        rig.stop();
        assert!(contents(&drives) == before, "strip {strip}: each byte is as it was");
    }
}

#[test]
fn several_drives_wrong_in_one_stripe_are_told_apart_by_place() {
    let (drives, oracle) = filled(Level::Raid6, 6, 30);
    let before = contents(&drives);
    let mut blamed = vec![0; 6];
    for (strip, at) in [(0, 0), (2, 4096), (4, 9 << 10), (5, 15 << 10)] {
        blamed[spoil(&drives, 1, strip, at, 512)] += 1;
    }
    let (rig, volume) = running(&drives, 31);
    let found = rig.scrub_as(Repair::Known);
    assert_eq!((found.mismatches, found.repaired, wrong(&rig)), (1, 1, blamed));
    oracle.verify(&rig, &volume, false);
    rig.stop();
    assert!(contents(&drives) == before, "each byte is as it was");
}

#[test]
fn a_majority_of_copies_names_the_drive() {
    for copy in 0..3 {
        let (drives, oracle) = filled(Level::Raid1, 3, 40);
        let guilty = spoil(&drives, 2, copy, 0, 512);
        let (rig, volume) = running(&drives, 41);
        let found = rig.scrub_as(Repair::Known);
        assert_eq!((wrong(&rig)[guilty], found.repaired, found.unlocated), (1, 1, 0));
        assert_eq!(rig.scrub_as(Repair::Nothing).mismatches, 0);
        oracle.verify(&rig, &volume, false);
    }
}

#[test]
fn where_nobody_can_know_nothing_changes_unless_told() {
    let cases = [(Level::Raid5, 4, &[1, 3][..]), (Level::Raid1, 2, &[1]), (Level::Raid10, 4, &[1])];
    for (seed, (level, width, strips)) in cases.into_iter().enumerate() {
        for strip in strips {
            let (drives, _) = filled(level, width, 50 + seed as u64);
            spoil(&drives, 0, *strip, 1024, 512);
            let spoilt = contents(&drives);
            let (rig, _volume) = running(&drives, 60);
            let found = rig.scrub_as(Repair::Known);
            let told = (found.mismatches, found.repaired, found.unlocated);
            assert_eq!(told, (1, 0, 1), "{level}");
            assert!(wrong(&rig).iter().all(|w| *w == 0), "{level}: nobody is blamed");
            assert!(contents(&drives) == spoilt, "{level}: nothing changed");
            assert_eq!(rig.scrub_as(Repair::TrustData).repaired, 1, "{level}");
            let clean = rig.scrub_as(Repair::Nothing);
            assert_eq!((clean.mismatches, clean.unlocated), (0, 0), "{level}");
        }
    }
}

#[test]
fn two_wrong_strips_in_one_block_are_not_taken_for_another() {
    let (drives, _) = filled(Level::Raid6, 5, 70);
    spoil(&drives, 0, 0, 0, 512);
    spoil(&drives, 0, 1, 0, 512);
    let spoilt = contents(&drives);
    let (rig, _volume) = running(&drives, 71);
    let found = rig.scrub_as(Repair::Known);
    assert_eq!((found.mismatches, found.repaired, found.unlocated), (1, 0, 1));
    assert!(contents(&drives) == spoilt, "nothing changed");
}

#[test]
fn a_missing_drive_leaves_q_alone_and_nobody_is_blamed() {
    let (drives, _) = filled(Level::Raid6, 5, 80);
    let (rig, _volume) = running(&drives, 81);
    let (gone, _) = place(&drives, 0, 4);
    rig.fail(gone).unwrap();
    spoil(&drives, 0, 0, 0, 512);
    let found = rig.scrub_as(Repair::Known);
    assert_eq!((found.mismatches, found.repaired, found.unlocated), (1, 0, 1));
}

/// What nobody can know is told after a restart too, clean or not; which drives were wrong is
/// counted since the array started.
#[test]
fn what_a_scrub_found_outlives_a_restart() {
    let (drives, _) = filled(Level::Raid6, 5, 90);
    let guilty = spoil(&drives, 3, 2, 0, 512);
    spoil(&drives, 0, 0, 0, 512);
    spoil(&drives, 0, 1, 0, 512);
    let (rig, _volume) = running(&drives, 91);
    let found = rig.scrub_as(Repair::Nothing);
    assert_eq!((found.mismatches, found.unlocated, wrong(&rig)[guilty]), (2, 1, 1));
    rig.stop();
    let (rig, _volume) = running(&drives, 92);
    assert_eq!(rig.status().last_scrub, Some(found));
    rig.world.crash();
    let (rig, _volume) = running(&drives, 93);
    assert_eq!((rig.status().last_scrub, wrong(&rig)[guilty]), (Some(found), 0));
}

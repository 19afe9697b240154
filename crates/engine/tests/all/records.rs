//! Record slots that can't be read: there are four of them so that one may be bad.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Rig, drives, duplicates, read, record, references, write};
use engine::manage::command::{ArrayState, ManageError, Request, SlotHealth, StartOptions};
use format::{ExportAddress, SlotState};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use std::rc::Rc;
use units::MIB;

const WRITES: Mix = Mix { tasks: 4, operations: 30, blocks_most: 200, read_percent: 0 };

fn stopped(seed: u64) -> (Vec<SharedSimDrive>, Rc<Oracle>) {
    let drives = drives(4, seed, false);
    let rig = Rig::new(seed, 1);
    rig.create(Level::Raid5, &drives, 16 << 10).unwrap();
    let oracle = Oracle::new(MIB, false);
    oracle.start(&rig, &rig.volume(MIB), WRITES, seed);
    oracle.finish(&rig);
    rig.stop();
    (drives, oracle)
}

#[test]
fn one_unreadable_record_slot_takes_no_drive_out() {
    let (drives, oracle) = stopped(1);
    let newest = record(&drives[1]);
    for (number, offset) in format::slot_offsets(drives[1].info().bytes).into_iter().enumerate() {
        // The newest slots of two drives, or any others: the rest of the drives know as much.
        let copy = duplicates(&drives);
        copy[1..3].iter().for_each(|d| d.fail_range(offset + 512, 512));
        let rig = Rig::new(2, 1);
        let status = rig.assemble(&references(&copy), StartOptions::default()).unwrap();
        assert_eq!(status.state, ArrayState::Optimal, "slot {number}");
        assert_eq!(status.epoch, newest.epoch.counter + 1);
        oracle.verify(&rig, &rig.open_volume()[0], true);
        rig.wait();
        assert_eq!(rig.scrub(false).mismatches, 0);
    }
}

#[test]
fn a_drive_without_a_readable_record_slot_is_left_out() {
    let (drives, oracle) = stopped(3);
    for offset in format::slot_offsets(drives[1].info().bytes) {
        drives[1].fail_range(offset, 512);
    }
    let rig = Rig::new(4, 1);
    let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    assert_eq!(status.state, ArrayState::Degraded);
    oracle.verify(&rig, &rig.open_volume()[0], true);
    let alone = Rig::new(5, 1).assemble(&references(&drives[1..2]), StartOptions::default());
    assert!(matches!(alone, Err(ManageError::NothingFound)));
}

/// A record that is longer than what is read of its slot at first, and a bad block behind it: it is
/// whole, and an older one would take in a drive that failed.
#[test]
fn a_bad_block_behind_a_long_record_hides_it_not() {
    for seed in 0..4 {
        let drives = drives(2, 6 + seed, false);
        let rig = Rig::new(6 + seed, 1);
        rig.create(Level::Raid1, &drives, 16 << 10).unwrap();
        let volume = rig.volume(MIB).remove(0);
        for i in 0..20 + seed {
            let address = ExportAddress::NbdUnix(format!("/{i}-{}", "x".repeat(240)));
            rig.ask(|r| Request::ExportCreate("a".into(), "v".into(), address, r)).unwrap();
        }
        write(&rig, &volume, 0, &[1; 4096]).unwrap();
        rig.fail(0).unwrap();
        write(&rig, &volume, 0, &[2; 4096]).unwrap();
        rig.world.crash();
        // Of every record that knows of the failure: there may be more than one.
        for at in format::slot_offsets(drives[1].info().bytes) {
            let record = format::decode(&drives[1].peek(at, format::SLOT_BYTES));
            let Ok(record) = record else { continue };
            if record.slots[0].state == SlotState::Failed {
                let bytes = format::encode(&record).len() as u64;
                assert!(bytes > 4096, "{bytes}");
                drives[1].fail_range(at + bytes, 512);
            }
        }
        let rig = Rig::new(7, 1);
        let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        let got = read(&rig, &rig.open_volume()[0], 0, 4096).unwrap();
        assert_eq!((got[0], status.slots[0].health), (2, SlotHealth::Failed), "seed {seed}");
    }
}

/// The same drive with so many MiB of nothing at its end.
fn lengthened(drive: &SharedSimDrive, mib: u64) -> SharedSimDrive {
    let bytes = drive.info().bytes;
    let longer = SharedSimDrive::new(DriveConfig::new(bytes + mib * MIB, 1));
    longer.overwrite(0, &drive.contents());
    longer.overwrite(bytes, &vec![0; (mib * MIB) as usize]);
    longer
}

/// Virtual disks that are enlarged while their array is stopped: the tail areas are not at their
/// ends any more, and half of the time that is where the newest records are.
#[test]
fn drives_that_have_grown_lose_no_record() {
    for (seed, map) in (0..8).map(|i| (50 + i, i % 2 == 0)) {
        let mut drives = drives(4, seed, false);
        let rig = Rig::new(seed, 1);
        rig.create_with(Level::Raid5, &drives, 16 << 10, map).unwrap();
        let oracle = Oracle::new(MIB, false);
        oracle.start(&rig, &rig.volume(MIB), WRITES, seed);
        oracle.finish(&rig);
        for i in 0..seed / 2 % 4 {
            let address = ExportAddress::NbdUnix(format!("/{i}"));
            rig.ask(|r| Request::ExportCreate("a".into(), "v".into(), address, r)).unwrap();
        }
        rig.stop();
        drop(rig);
        // Again and again, and twice at once: until the tail areas are where they are looked for
        // first, the rest of the records is where it was.
        for round in 0..6 {
            let newest = record(&drives[0]);
            if round % 3 == 0 {
                drives = drives.iter().map(|d| lengthened(d, 3 + round)).collect();
            }
            let rig = Rig::new(seed + 1, 1);
            let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
            assert_eq!(status.state, ArrayState::Optimal, "seed {seed}, round {round}");
            assert_eq!(status.epoch, newest.epoch.counter + 1, "seed {seed}, round {round}");
            oracle.verify(&rig, &rig.open_volume()[0], true);
            if round % 2 == 0 {
                rig.stop();
            } else {
                rig.world.crash();
            }
        }
    }
}

/// What is gone with the tail is not guessed: an older record is not taken for the newest.
#[test]
fn a_drive_without_its_tail_is_left_out() {
    let (drives, oracle) = stopped(60);
    let bytes = drives[1].info().bytes;
    let without = |drive: &SharedSimDrive| drive.overwrite(bytes - MIB, &[0; MIB as usize]);
    without(&drives[1]);
    let rig = Rig::new(61, 1);
    let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    assert_eq!(status.slots[1].health, SlotHealth::Missing);
    oracle.verify(&rig, &rig.open_volume()[0], true);
    rig.stop();
    drives.iter().for_each(without);
    let none = Rig::new(62, 1).assemble(&references(&drives), StartOptions::default());
    assert!(matches!(none, Err(ManageError::NothingFound)), "{none:?}");
}

//! Record slots that can't be read: there are four of them so that one may be bad.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Rig, drives, duplicates, read, record, references, write};
use engine::manage::command::{
    ArrayState, ManageError, NewArray, Request, SlotHealth, StartOptions,
};
use format::{AssembleError, ExportAddress, SlotState};
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
    for seed in 50..58 {
        let mut drives = drives(4, seed, false);
        let rig = Rig::new(seed, 1);
        rig.create(Level::Raid5, &drives, 16 << 10).unwrap();
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

/// An array of three drives that has stopped after so many exports more: the newest record is in
/// another slot each time.
fn stopped_after(exports: u64, level: Level) -> (Vec<SharedSimDrive>, Rc<Oracle>) {
    let drives = drives(3, 60 + exports, false);
    let rig = Rig::new(60 + exports, 1);
    rig.create(level, &drives, 16 << 10).unwrap();
    let oracle = Oracle::new(MIB, false);
    oracle.start(&rig, &rig.volume(MIB), WRITES, exports);
    oracle.finish(&rig);
    for i in 0..exports {
        let address = ExportAddress::NbdUnix(format!("/{i}"));
        rig.ask(|r| Request::ExportCreate("a".into(), "v".into(), address, r)).unwrap();
    }
    rig.stop();
    (drives, oracle)
}

/// What a partitioning tool does to the end of a drive; whether its newest record went with it.
fn without_tail(drive: &SharedSimDrive) -> bool {
    let newest = record(drive).sequence;
    drive.overwrite(drive.info().bytes - MIB, &[0; MIB as usize]);
    record(drive).sequence < newest
}

fn needs_first_records<T: core::fmt::Debug>(outcome: Result<T, ManageError>) {
    let refused = |e: &ManageError| {
        matches!(e, ManageError::Assemble(AssembleError::TailMissing { instead: None, .. }))
    };
    assert!(outcome.as_ref().is_err_and(refused), "{outcome:?}");
}

/// The array starts by itself, with all drives and all that was written.
fn starts_whole(drives: &[SharedSimDrive], oracle: &Rc<Oracle>) {
    let rig = Rig::new(62, 1);
    let status = rig.assemble(&references(drives), StartOptions::default()).unwrap();
    assert_eq!(status.state, ArrayState::Optimal);
    oracle.verify(&rig, &rig.open_volume()[0], true);
}

/// With redundancy nobody is asked: it is put back as any other, and filled.
#[test]
fn a_drive_without_its_tail_is_left_out() {
    for exports in 0..4 {
        let (drives, oracle) = stopped_after(exports, Level::Raid5);
        without_tail(&drives[1]);
        let rig = Rig::new(61, 1);
        let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        assert_eq!(status.slots[1].health, SlotHealth::Missing);
        oracle.verify(&rig, &rig.open_volume()[0], true);
        let back = rig.put_back(1, &drives[1]);
        rig.answered(&back).unwrap();
        rig.wait();
        rig.world.crash();
        starts_whole(&drives, &oracle);
    }
}

/// RAID 0 has all its data still: a person may have it start with what is left.
#[test]
fn first_records_are_taken_where_a_person_accepts_that() {
    for (exports, gone) in (0..8).map(|i| (i / 2, i % 2 == 0)) {
        let (drives, oracle) = stopped_after(exports, Level::Raid0);
        // All of them, or one.
        let known = drives.iter().skip(2 * usize::from(gone)).map(without_tail);
        let known = known.collect::<Vec<_>>() == [true] && gone;
        let rig = Rig::new(61, 1);
        let by_itself = rig.assemble(&references(&drives), StartOptions::default());
        if known {
            by_itself.unwrap();
        } else {
            needs_first_records(by_itself);
            let degraded =
                StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
            needs_first_records(rig.assemble(&references(&drives), degraded));
            let accepted =
                StartOptions { start_degraded: false, accept_loss: true, ..StartOptions::NONE };
            rig.assemble(&references(&drives), accepted).unwrap();
        }
        oracle.verify(&rig, &rig.open_volume()[0], true);
        // The record of the start is in the tail: nobody is asked again, whenever it ends.
        if exports % 2 == 0 {
            rig.stop();
        } else {
            rig.world.crash();
        }
        starts_whole(&drives, &oracle);
    }
}

/// A mirror of which one drive went on alone, and then lost its tail: where the other has failed
/// by what is left, it does not stand in for it, and where only the lost record knew that, the two
/// are never taken together, nor does one stand in for the other without a person's word.
#[test]
fn older_bytes_are_not_served_for_those_of_a_drive_without_its_tail() {
    let mut seen = [0, 0];
    for exports in 0..4 {
        let drives = drives(2, 70 + exports, false);
        let rig = Rig::new(70 + exports, 1);
        rig.create(Level::Raid1, &drives, 16 << 10).unwrap();
        let volume = rig.volume(MIB).remove(0);
        for i in 0..exports {
            let address = ExportAddress::NbdUnix(format!("/{i}"));
            rig.ask(|r| Request::ExportCreate("a".into(), "v".into(), address, r)).unwrap();
        }
        write(&rig, &volume, 0, &[1; 4096]).unwrap();
        rig.fail(0).unwrap();
        write(&rig, &volume, 0, &[2; 4096]).unwrap();
        rig.world.crash();
        let lost = without_tail(&drives[1]);
        seen[usize::from(lost)] += 1;
        for (start_degraded, accept_loss) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let options = StartOptions { start_degraded, accept_loss, ..StartOptions::NONE };
            for alone in [true, false] {
                if lost && start_degraded && !alone {
                    continue;
                }
                let some = &references(&drives)[usize::from(alone)..];
                let refused = Rig::new(71, 1).assemble(some, options).unwrap_err().to_string();
                assert!(alone || refused.contains("/dev/drive1"), "{refused}");
                let told = refused.contains("end was overwritten") || !start_degraded;
                assert!(told, "{refused}");
            }
        }
        if lost {
            let rig = Rig::new(72, 1);
            let degraded =
                StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
            let status = rig.assemble(&references(&drives), degraded).unwrap();
            assert_eq!(status.slots[1].health, SlotHealth::Missing);
            let volume = rig.open_volume().remove(0);
            (0..20).for_each(|_| assert_eq!(read(&rig, &volume, 0, 4096).unwrap()[0], 1));
        }
    }
    assert_eq!(seen, [2, 2]);
}

/// What is gone with the tails is not guessed.
#[test]
fn drives_without_tails_do_not_make_parity() {
    let (drives, _) = stopped(60);
    for drive in &drives {
        without_tail(drive);
    }
    let options = StartOptions { start_degraded: true, accept_loss: true, ..StartOptions::NONE };
    let refused = Rig::new(62, 1).assemble(&references(&drives), options).unwrap_err();
    assert!(refused.to_string().contains("end was overwritten"), "{refused}");
}

/// The daemon is killed while it writes a second record, which is in volatile caches by then, and a
/// power cut comes after the next start has written a third: the second, which that start read, is
/// not missing between the others, as if the end of the drive had been overwritten.
#[test]
fn what_a_start_read_is_durable_before_it_writes() {
    let mut cases = 0;
    for seed in 0..40 {
        let drives = drives(2, seed, true);
        let rig = Rig::new(seed, 1);
        let (name, level) = ("a".into(), Level::Raid1);
        let new = NewArray { shared: false, name, level, strip_bytes: 16 << 10, block_bytes: None };
        rig.send(|reply| Request::Create(new, references(&drives), reply));
        // A creation writes two records, the second one to the tail.
        let tail = format::tail_offset(drives[0].info().bytes);
        let first = |drive: &SharedSimDrive| format::decode(&drive.peek(0, 4096)).is_ok();
        while !drives.iter().all(first) || !drives[0].writes_within(tail..tail + 4096) {
            assert!(rig.world.run_steps(1));
        }
        rig.world.kill();
        if !drives.iter().all(|drive| format::decode(&drive.peek(tail, 4096)).is_ok()) {
            continue;
        }
        cases += 1;
        for _ in 0..2 {
            let rig = Rig::new(seed, 1);
            let started = rig.assemble(&references(&drives), StartOptions::default());
            assert!(started.is_ok(), "seed {seed}: {started:?}");
            rig.world.crash();
        }
    }
    assert!(cases > 5, "{cases}");
}

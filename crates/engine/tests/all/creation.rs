//! The making of an array, cut short: by a power cut at any request, by drives that fail, by a
//! stop or delete, and beside other requests. What is there afterwards is a whole array of zeros
//! or nothing that would start.

use crate::common;

use common::{DRIVE_BYTES, FORCE, Rig, drives, record, references};
use engine::manage::command::{ArrayState, ManageError, NewArray, Repair, Request, StartOptions};
use io::{Blocks, Pool};
use layout::Level;
use sim::SharedSimDrive;
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 16 << 10;

fn new(name: &str) -> NewArray {
    NewArray {
        shared: false,
        name: name.into(),
        level: Level::Raid5,
        strip_bytes: STRIP,
        block_bytes: None,
    }
}

/// Drives on which the making takes its time.
fn slow_drives(seed: u64) -> Vec<SharedSimDrive> {
    let drives = drives(4, seed, seed % 2 == 1);
    drives.iter().for_each(|d| d.set_write_zeroes(false));
    drives
}

/// The array serves, holds zeros, and its parity agrees.
fn serves(rig: &Rig) {
    let volume = rig.volume(MIB).remove(0);
    assert_eq!(rig.scrub(false).mismatches, 0);
    rig.world.block_on(CoreId(0), async move {
        let (result, bytes) = volume.read(0, Pool::single(MIB as usize)).await;
        assert!(result == Ok(()) && bytes.iter().all(|b| *b == 0));
    });
}

/// No drive holds a record that counts, and an array can be made of them.
fn nothing_left(drives: &[SharedSimDrive], seed: u64) {
    let rig = Rig::new(seed, 2);
    let found = rig.assemble(&references(drives), FORCE);
    assert!(matches!(found, Err(ManageError::NothingFound)), "seed {seed}: {found:?}");
    rig.create(Level::Raid5, drives, STRIP).unwrap();
    serves(&rig);
}

#[test]
fn a_power_cut_leaves_a_whole_array_or_none_that_starts() {
    let (mut whole, mut none) = (0, 0);
    for cut in 0..60 {
        let drives = drives(4, cut, cut % 2 == 0);
        drives.iter().for_each(|d| d.set_write_zeroes(cut % 3 == 0));
        let rig = Rig::new(cut, 1 + (cut % 2) as u16);
        rig.world.power_fails_after(cut);
        let list = references(&drives);
        let _ = rig.try_ask(|r| Request::Create(new("a"), list, r));
        rig.world.crash();
        let rig = Rig::new(cut + 100, 1);
        match rig.assemble(&references(&drives), FORCE) {
            Ok(_) => whole += 1,
            Err(ManageError::NothingFound | ManageError::Assemble(_)) => {
                none += 1;
                rig.create(Level::Raid5, &drives, STRIP).unwrap();
            }
            Err(other) => panic!("cut {cut}: {other}"),
        }
        serves(&rig);
    }
    assert!(whole > 10 && none > 10, "{whole} whole, {none} none");
}

#[test]
fn a_stop_or_delete_ends_a_creation() {
    let (mut cancelled, mut made) = (0, 0);
    for step in 0..24 {
        let drives = slow_drives(step);
        let rig = Rig::new(step, 1 + (step / 2 % 2) as u16);
        let list = references(&drives);
        let making = rig.send(|r| Request::Create(new("a"), list, r));
        rig.world.run_for(Nanos::from_micros(100 + step * 130));
        let ending = rig.send(|r| match step % 2 {
            0 => Request::Stop("a".into(), r),
            _ => Request::Delete("a".into(), r),
        });
        rig.answered(&ending).unwrap();
        match rig.answered(&making) {
            Ok(_) => made += 1,
            Err(ManageError::Cancelled(_)) => cancelled += 1,
            Err(other) => panic!("step {step}: {other}"),
        }
        assert!(rig.ask(Request::Status).unwrap().is_empty(), "the name is free");
        drop(rig);
        let rig = Rig::new(step + 100, 1);
        match rig.assemble(&references(&drives), StartOptions::default()) {
            Ok(status) => assert_eq!((status.state, step % 2), (ArrayState::Optimal, 0)),
            Err(_) => nothing_left(&drives, step + 200),
        }
    }
    assert!(cancelled > 3 && made > 3, "{cancelled} cancelled, {made} made");
}

#[test]
fn other_requests_are_refused_while_an_array_is_made() {
    let all = slow_drives(13);
    all.iter().for_each(|d| d.set_latency(Nanos::from_millis(2), Nanos::from_millis(2)));
    let spare = drives(1, 14, false).remove(0);
    let rig = Rig::new(13, 1);
    let list = references(&all);
    let making = rig.send(|r| Request::Create(new("a"), list, r));
    rig.world.run_for(Nanos::from_micros(600));
    let busy = |e: ManageError| assert!(matches!(e, ManageError::BeingMade(_)), "{e}");
    busy(rig.fail(1).unwrap_err());
    busy(rig.replace(1, &spare).unwrap_err());
    busy(rig.ask(|r| Request::Scrub("a".into(), Repair::Known, r)).unwrap_err());
    busy(rig.ask(|r| Request::VolumeCreate("a".into(), "v".into(), MIB, r)).unwrap_err());
    busy(rig.ask(|r| Request::ExportDelete("a".into(), 1, r)).unwrap_err());
    // Its name is taken, and the drives of who wants it too stay as they are.
    let before = spare.contents();
    let others = references(&[spare.clone(), spare.duplicate(), spare.duplicate()]);
    let taken = rig.ask(|r| Request::Create(new("a"), others, r));
    assert!(matches!(taken, Err(ManageError::NameTaken(_))), "{taken:?}");
    assert!(spare.contents() == before);
    assert_eq!(rig.answered(&making).unwrap().state, ArrayState::Optimal);
    serves(&rig);
}

#[test]
fn two_creations_at_once_share_no_name() {
    let sets = [slow_drives(15), slow_drives(16)];
    let rig = Rig::new(15, 1);
    let before = sets.each_ref().map(|set| set.each_contents());
    let making = sets.each_ref().map(|set| {
        let list = references(set);
        rig.send(|r| Request::Create(new("a"), list, r))
    });
    let made = making.each_ref().map(|answer| rig.answered(answer));
    for ((set, before), made) in sets.iter().zip(before).zip(&made) {
        match made {
            Ok(_) => serves(&rig),
            Err(error) => {
                assert!(matches!(error, ManageError::NameTaken(_)), "{error}");
                assert!(set.each_contents() == before, "its drives are as they were");
            }
        }
    }
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1);
}

trait Contents {
    fn each_contents(&self) -> Vec<Vec<u8>>;
}

impl Contents for Vec<SharedSimDrive> {
    fn each_contents(&self) -> Vec<Vec<u8>> {
        self.iter().map(SharedSimDrive::contents).collect()
    }
}

#[test]
fn a_drive_that_fails_ends_a_creation() {
    for n in 0..16 {
        let drives = slow_drives(20 + n);
        let rig = Rig::new(20 + n, 1);
        drives[1].fail_writes(n, 1);
        match rig.create(Level::Raid5, &drives, STRIP) {
            Ok(status) => assert_eq!(status.state, ArrayState::Optimal),
            Err(error) => {
                assert!(matches!(error, ManageError::Drive(..) | ManageError::State(_)), "{error}");
                assert!(rig.ask(Request::Status).unwrap().is_empty());
                drives[1].clear_faults();
                nothing_left(&drives, 40 + n);
            }
        }
    }
}

#[test]
fn a_drive_that_vanishes_ends_a_creation() {
    let mut ended = 0;
    for step in 0..12 {
        let drives = slow_drives(60 + step);
        let rig = Rig::new(60 + step, 1);
        let list = references(&drives);
        let making = rig.send(|r| Request::Create(new("a"), list, r));
        rig.world.run_for(Nanos::from_micros(step * 200));
        drives[2].vanish();
        if rig.answered(&making).is_ok() {
            continue;
        }
        ended += 1;
        assert!(rig.ask(Request::Status).unwrap().is_empty());
        drives[2].reappear();
        let rig = Rig::new(80 + step, 1);
        assert!(rig.assemble(&references(&drives), FORCE).is_err(), "step {step}");
        rig.create(Level::Raid5, &drives, STRIP).unwrap();
        serves(&rig);
    }
    assert!(ended > 3, "{ended}");
}

/// A start has moments in which it runs on some cores only, and others in which what another
/// start has read of the drives is out of date.
#[test]
fn starts_and_stops_at_once_end_and_keep_one_history() {
    let (mut stops, mut refusals) = (0, 0);
    for step in (0..40).step_by(2) {
        let drives = drives(4, 90 + step, false);
        let rig = Rig::new(90 + step, 2);
        rig.create(Level::Raid5, &drives, STRIP).unwrap();
        rig.stop();
        let rig = Rig::slow(step);
        let assemble = |r| Request::Assemble(None, references(&drives), FORCE, r);
        let first = rig.send(assemble);
        rig.world.run_for(Nanos::from_micros(step * 90));
        let stop = rig.send(|r| Request::Stop("a".into(), r));
        let second = rig.send(|r| Request::Assemble(None, references(&drives), FORCE, r));
        let fail = rig.send(|r| Request::Fail("a".into(), vec!["slot:1".into()], r));
        for start in [&first, &second] {
            match rig.answered(start) {
                Ok(started) => assert_ne!(started[0].state, ArrayState::Failed),
                Err(ManageError::NameTaken(_)) => refusals += 1,
                Err(other) => panic!("step {step}: {other}"),
            }
        }
        match rig.answered(&stop) {
            Ok(()) => stops += 1,
            Err(error) => assert!(matches!(error, ManageError::NoArray(_)), "{error}"),
        }
        let _ = rig.answered(&fail);
        let running = rig.ask(Request::Status).unwrap();
        assert!(running.len() <= 1, "step {step}: two arrays on the same drives");
        rig.world.crash();
        let rig = Rig::new(200 + step, 1);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        serves(&rig);
    }
    assert!(stops > 2 && refusals > 2, "{stops} stops, {refusals} refusals");
}

/// Behind the last whole MiB of a drive other software may have left something that names its
/// partitions: an array leaves nothing of it, nor does a drive that joins.
#[test]
fn nothing_is_left_behind_the_tail_area() {
    let bytes = DRIVE_BYTES + 300 * 1024;
    let make = |seed| SharedSimDrive::new(sim::DriveConfig::new(bytes, seed));
    let drives: Vec<_> = (0..4).map(|i| make(7100 + i)).collect();
    let behind = |drive: &SharedSimDrive| drive.peek(DRIVE_BYTES, bytes - DRIVE_BYTES);
    let zeros = |drive: &SharedSimDrive| behind(drive).iter().all(|byte| *byte == 0);
    assert!(!drives.iter().any(zeros));
    let rig = Rig::new(7100, 1);
    rig.create(Level::Raid1, &drives[..3], 16 << 10).unwrap();
    assert!(drives[..3].iter().all(zeros), "it is made");
    rig.fail(0).unwrap();
    rig.replace(0, &drives[3]).unwrap();
    assert!(zeros(&drives[3]), "a drive is put in");
    rig.wait();
    rig.ask(|r| Request::Delete("a".into(), r)).unwrap();
    let image = drives[3].peek(DRIVE_BYTES - MIB, bytes + MIB - DRIVE_BYTES);
    assert!(image.iter().all(|byte| *byte == 0), "it is deleted");
}

/// A drive that an array has called failed may be another's by now: the end of the first leaves it
/// alone.
#[test]
fn a_deletion_leaves_a_drive_alone_that_another_array_has() {
    let all = drives(3, 73, false);
    let rig = Rig::new(73, 1);
    rig.create(Level::Raid1, &all[..2], 16 << 10).unwrap();
    rig.fail(1).unwrap();
    let other = NewArray { shared: false, level: Level::Jbod, ..new("b") };
    rig.ask(|r| Request::Create(other, references(&all)[1..].to_vec(), r)).unwrap();
    rig.ask(|r| Request::Delete("a".into(), r)).unwrap();
    assert_eq!(record(&all[1]).name, "b");
    rig.world.crash();
    let rig = Rig::new(74, 1);
    let started = rig.assemble(&references(&all), StartOptions::default()).unwrap();
    assert_eq!((started.name.as_str(), started.slots.len()), ("b", 2));
}

/// Drives that hold no more than this, and an array of them.
fn made_of(bytes: u64, width: usize, level: Level, cores: u16) -> Result<Rig, ManageError> {
    let drive = |seed| SharedSimDrive::new(sim::DriveConfig::new(bytes, seed));
    let drives: Vec<_> = (0..width as u64).map(drive).collect();
    let before = drives.each_contents();
    let rig = Rig::new(bytes / MIB, cores);
    let made = rig.create(level, &drives, STRIP);
    if made.is_err() {
        assert!(drives.each_contents() == before, "a refusal writes nothing");
    }
    made.map(|_| rig)
}

#[test]
fn drives_that_are_too_small_are_refused_with_the_size_that_works() {
    let shapes = [(Level::Raid1, 2, 1, 5), (Level::Raid5, 4, 4, 5)];
    for (level, width, cores, least) in shapes {
        let refused = made_of(2 * MIB, width, level, cores).map(drop);
        let Err(ManageError::TooSmall { path, has, needs }) = refused else {
            panic!("{level}: {refused:?}");
        };
        assert_eq!((&*path, has, needs / MIB), ("/dev/drive0", 2 * MIB, least), "{level}");
        let below = made_of(needs - 4096, width, level, cores).map(drop);
        let said = below.unwrap_err().to_string();
        assert!(said.contains(&format!("{needs} ({least} MiB)")), "{said}");
        let rig = made_of(needs, width, level, cores).unwrap();
        let volume = rig.volume(MIB).remove(0);
        common::write(&rig, &volume, 0, &[7; 4096]).unwrap();
        rig.fail(1).unwrap();
        assert_eq!(common::read(&rig, &volume, 0, 4096).unwrap(), [7; 4096]);
        common::write(&rig, &volume, 0, &[8; 4096]).unwrap();
        rig.stop();
    }
}

/// A lane of the journal for each core: without it a degraded array would not survive a crash.
#[test]
fn an_array_is_not_started_on_more_cores_than_its_journal_has_room_for() {
    // So many, of blocks so large, that four cores need more than a MiB.
    let config = |i: u64| sim::DriveConfig::new(DRIVE_BYTES, 9100 + i).with_blocks(4096);
    let drives: Vec<_> = (0..28).map(|i| SharedSimDrive::new(config(i))).collect();
    let rig = Rig::new(91, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    let volume = rig.volume(MIB).remove(0);
    common::write(&rig, &volume, 0, &[7; 4096]).unwrap();
    rig.world.crash();
    drop((rig, volume));
    let before = drives.each_contents();
    let refused = Rig::new(92, 4).assemble(&references(&drives), FORCE);
    let Err(error @ ManageError::TooManyCores { cores: 4, fit: 3, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(error.to_string().contains("room for 3 data cores"), "{error}");
    assert!(drives.each_contents() == before, "a refusal writes nothing");
    let rig = Rig::new(94, 3);
    rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    rig.fail(0).unwrap();
    let volume = rig.open_volume().remove(0);
    common::write(&rig, &volume, 4096, &[8; 4096]).unwrap();
    assert_eq!(common::read(&rig, &volume, 0, 4096).unwrap(), [7; 4096]);
}

//! Starting arrays from drives that are not what they should be (P7): the engine leaves out or
//! refuses, and never starts on a mixture.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{FORCE, Rig, drives, duplicates, references};
use engine::manage::command::{
    ArrayState, ManageError, NewArray, Request, SlotHealth, StartOptions,
};
use format::{AssembleError, SlotState};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use std::rc::Rc;
use units::{CoreId, MIB};

const STRIP: u32 = 16 << 10;
const DEGRADED: StartOptions =
    StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
const MIX: Mix = Mix { tasks: 4, operations: 20, blocks_most: 200, read_percent: 0 };

/// A filled array that was stopped cleanly.
fn stopped(level: Level, width: usize, seed: u64) -> (Vec<SharedSimDrive>, Rc<Oracle>) {
    let drives = drives(width, seed, false);
    let rig = Rig::new(seed, 1);
    rig.create(level, &drives, STRIP).unwrap();
    let volumes = rig.volume(MIB);
    let oracle = Oracle::new(MIB, false);
    oracle.start(&rig, &volumes, MIX, seed);
    oracle.finish(&rig);
    rig.stop();
    (drives, oracle)
}

/// Starts, writes more, stops.
fn written(drives: &[SharedSimDrive], oracle: &Rc<Oracle>, options: StartOptions, seed: u64) {
    let rig = Rig::new(seed, 1);
    rig.assemble(&references(drives), options).unwrap();
    oracle.start(&rig, &rig.open_volume(), MIX, seed);
    oracle.finish(&rig);
    rig.stop();
}

fn refusal(drives: &[SharedSimDrive], options: StartOptions) -> AssembleError {
    let before: Vec<_> = drives.iter().map(SharedSimDrive::contents).collect();
    let refused = Rig::new(1, 1).assemble(&references(drives), options);
    let same = drives.iter().zip(before).all(|(drive, bytes)| drive.contents() == bytes);
    assert!(same, "a refused start writes nothing");
    match refused {
        Err(ManageError::Assemble(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

fn starts(
    drives: &[SharedSimDrive],
    options: StartOptions,
    oracle: &Rc<Oracle>,
) -> Vec<SlotHealth> {
    let rig = Rig::new(2, 2);
    let status = rig.assemble(&references(drives), options).unwrap();
    oracle.verify(&rig, &rig.open_volume()[0], true);
    status.slots.iter().map(|s| s.health).collect()
}

#[test]
fn a_stale_drive_is_left_out() {
    let (drives, oracle) = stopped(Level::Raid5, 4, 1);
    written(&drives[1..], &oracle, StartOptions::default(), 2);
    let health = starts(&drives, StartOptions::default(), &oracle);
    assert_eq!(health[0], SlotHealth::Failed, "the others have recorded it as such");
    assert!(health[1..].iter().all(|h| *h == SlotHealth::InSync));
}

#[test]
fn a_drive_set_back_to_an_older_state_is_left_out() {
    let (mut drives, oracle) = stopped(Level::Raid5, 4, 3);
    let old = drives[2].duplicate();
    for seed in 0..2 {
        written(&drives, &oracle, StartOptions::default(), seed);
    }
    drives[2] = old;
    let health = starts(&drives, DEGRADED, &oracle);
    assert_eq!(health[2], SlotHealth::Missing);
}

#[test]
fn cloned_and_swapped_drives_are_refused() {
    let (drives, _) = stopped(Level::Raid5, 4, 4);
    let mut with_clone = drives.clone();
    with_clone.push(drives[1].duplicate());
    assert!(matches!(refusal(&with_clone, FORCE), AssembleError::Cloned { .. }));
    // The order in which drives are named says nothing: their records do.
    let (drives, oracle) = stopped(Level::Raid6, 5, 5);
    let shuffled: Vec<_> = [3, 0, 4, 1, 2].map(|i: usize| drives[i].clone()).to_vec();
    let health = starts(&shuffled, StartOptions::default(), &oracle);
    assert!(health.iter().all(|h| *h == SlotHealth::InSync));
}

#[test]
fn halves_that_went_on_apart_never_join() {
    let (left, _) = stopped(Level::Raid1, 2, 6);
    let right = duplicates(&left);
    assert!(matches!(
        refusal(&left[..1], StartOptions::default()),
        AssembleError::NeedsStartDegraded { .. }
    ));
    for (drives, seed) in [(&left[..1], 1), (&right[1..], 2)] {
        written(drives, &Oracle::new(0, false), DEGRADED, seed);
    }
    let both = vec![left[0].clone(), right[1].clone()];
    assert!(matches!(refusal(&both, FORCE), AssembleError::Diverged { .. }));
}

#[test]
fn drives_of_two_arrays_make_two_arrays() {
    let (mine, oracle) = stopped(Level::Raid5, 4, 7);
    let others = drives(3, 8, false);
    let rig = Rig::new(8, 1);
    let new = NewArray {
        shared: false,
        name: "b".into(),
        level: Level::Raid5,
        strip_bytes: STRIP,
        block_bytes: None,
    };
    rig.ask(|r| Request::Create(new, references(&others), r)).unwrap();
    rig.ask(|r| Request::Stop("b".into(), r)).unwrap();
    let mixed: Vec<_> = mine.iter().chain(&others).cloned().collect();
    let rig = Rig::new(9, 1);
    let list = references(&mixed);
    let started = rig.ask(|r| Request::Assemble(None, list, StartOptions::default(), r)).unwrap();
    let mut names: Vec<_> = started.iter().map(|a| (a.name.clone(), a.slots.len())).collect();
    names.sort();
    assert_eq!(names, [("a".to_owned(), 4), ("b".to_owned(), 3)]);
    drop(rig);
    // A foreign drive in the place of one of ours is not taken for it.
    let replaced: Vec<_> = mine[..3].iter().chain(&others[..1]).cloned().collect();
    let rig = Rig::new(10, 1);
    let list = references(&replaced);
    let named = |r| Request::Assemble(Some("a".into()), list, StartOptions::default(), r);
    let status = rig.ask(named).unwrap().remove(0);
    assert_eq!((status.state, status.slots[3].health), (ArrayState::Degraded, SlotHealth::Missing));
    oracle.verify(&rig, &rig.open_volume()[0], true);
}

#[test]
fn too_many_missing_drives_are_waited_for() {
    let (drives, oracle) = stopped(Level::Raid6, 5, 11);
    assert!(matches!(refusal(&drives[..2], FORCE), AssembleError::TooManyMissing { .. }));
    starts(&drives, StartOptions::default(), &oracle);
    assert!(matches!(
        Rig::new(1, 1).assemble(&references(&common::drives(3, 1, false)), FORCE),
        Err(ManageError::NothingFound)
    ));
}

/// A drive whose last record was torn falls back to the one before, and takes part.
#[test]
fn half_updated_drives_take_part() {
    for slot in 0..4 {
        let (drives, oracle) = stopped(Level::Raid5, 4, 20 + slot as u64);
        let newest = common::record(&drives[slot]);
        for offset in format::slot_offsets(drives[slot].info().bytes) {
            let sequence = drives[slot].peek(offset + 32, 8);
            if sequence == newest.sequence.to_le_bytes() {
                drives[slot].overwrite(offset + 200, &[0xee; 512]);
            }
        }
        let health = starts(&drives, StartOptions::default(), &oracle);
        assert!(health.iter().all(|h| *h == SlotHealth::InSync), "{health:?}");
    }
}

/// However often a start is cut short, no drive falls behind.
#[test]
fn starts_cut_short_leave_no_drive_behind() {
    for seed in 0..12 {
        let (drives, oracle) = stopped(Level::Raid5, 4, 30 + seed);
        let mut rng = sim::Rng::new(seed);
        for attempt in 0..12 {
            let rig = Rig::new(seed * 20 + attempt, 1);
            // Sixteen reads find the records; then those of the start are written.
            rig.world.power_fails_after(17 + rng.below(if seed % 2 == 0 { 4 } else { 8 }));
            let list = references(&drives);
            let start = |r| Request::Assemble(None, list, StartOptions::default(), r);
            if rig.try_ask(start).is_ok() {
                rig.world.block_on(CoreId(0), async {});
            }
            rig.world.crash();
        }
        let health = starts(&drives, StartOptions::default(), &oracle);
        assert!(health.iter().all(|h| *h == SlotHealth::InSync), "seed {seed}: {health:?}");
    }
}

/// The same drive, as one opens it where blocks have 4096 bytes.
fn coarse(drive: &SharedSimDrive) -> SharedSimDrive {
    let config = DriveConfig::new(drive.info().bytes, 1).with_blocks(4096);
    let moved = SharedSimDrive::new(config);
    moved.overwrite(0, &drive.contents());
    moved
}

/// It can't take the array's requests, but nothing is wrong with it: until a person has decided,
/// no record calls it failed.
#[test]
fn a_drive_whose_blocks_are_larger_now_is_not_called_failed() {
    for (level, width) in [(Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid0, 2)] {
        let (mut drives, oracle) = stopped(level, width, 40);
        let moved = coarse(&drives[1]);
        let fine = std::mem::replace(&mut drives[1], moved);
        let rig = Rig::new(41, 1);
        let outcome = rig.assemble(&references(&drives), FORCE);
        if outcome.is_ok() {
            let volume = rig.open_volume().remove(0);
            for at in 0..200 {
                let _ = common::write(&rig, &volume, at * 512, &[1; 512]);
            }
        }
        for drive in &drives {
            let failed = |slot: &format::SlotRecord| slot.state == SlotState::Failed;
            assert!(!common::record(drive).slots.iter().any(failed), "{level}");
        }
        let told = outcome.map(drop).unwrap_err().to_string();
        assert_eq!(
            told, "/dev/drive1 has a block size of 4096 bytes, the array has 512",
            "{level}"
        );
        refusal(&drives, FORCE);
        // Back where it was it is as good as ever.
        drives[1] = fine;
        let health = starts(&drives, StartOptions::default(), &oracle);
        assert!(health.iter().all(|h| *h == SlotHealth::InSync), "{health:?}");
    }
}

/// A drive that has no part in the array may be what it is.
#[test]
fn blocks_of_a_drive_that_is_out_do_not_matter() {
    let (mut drives, oracle) = stopped(Level::Raid5, 4, 42);
    let away = drives.remove(1);
    written(&drives, &oracle, StartOptions::default(), 43);
    drives.insert(1, coarse(&away));
    let health = starts(&drives, StartOptions::default(), &oracle);
    assert_eq!(health[1], SlotHealth::Failed);
}

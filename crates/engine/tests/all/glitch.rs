//! Drives that vanish for a moment, together or one after the other, more of them than the
//! redundancy covers: once all are back, the array starts and holds what was acknowledged.
#![allow(missing_docs)]

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{FORCE, Machine, Rig, drives, duplicates, record, references};
use engine::manage::command::{
    ArrayState, ArrayStatus, ManageError, NewSize, Request, Shrink, SlotHealth, StartOptions,
    TaskAction, TaskKind,
};
use engine::volume::Volume;
use io::BlockError;
use layout::Level;
use sim::SharedSimDrive;
use std::rc::Rc;
use units::{CoreId, MIB, Nanos, Slot};

type View = Volume<Machine>;

const STRIP: u32 = 16 << 10;
const DEGRADED: StartOptions =
    StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
const BYTES: u64 = MIB;
const WRITES: Mix = Mix { tasks: 6, operations: 40, blocks_most: 200, read_percent: 0 };

/// An array with a volume full of writes.
fn filled(
    level: Level,
    drives: &[SharedSimDrive],
    seed: u64,
    cores: u16,
) -> (Rig, Vec<View>, Rc<Oracle>) {
    let rig = Rig::new(seed, cores);
    rig.create(level, drives, STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    let oracle = Oracle::new(BYTES, false);
    oracle.start(&rig, &volumes, WRITES, seed);
    oracle.finish(&rig);
    rig.world.run_for(Nanos::from_millis(5));
    (rig, volumes, oracle)
}

/// Reads everything, as far as that is possible: enough for the drives to be missed.
fn read_all(rig: &Rig, volume: &View, oracle: &Rc<Oracle>) {
    let (volume, model) = (volume.clone(), oracle.clone());
    rig.world.block_on(CoreId(0), async move {
        for at in (0..BYTES).step_by(STRIP as usize) {
            let _ = model.read(&volume, at, 4096).await;
        }
    });
    rig.world.run_for(Nanos::from_millis(20));
}

/// Drives vanish, batch by batch, and all come back after a power cut.
fn glitch(level: Level, width: usize, gone: &[&[usize]], writing: bool, seed: u64) {
    let drives = drives(width, seed, false);
    let (rig, volumes, oracle) = filled(level, &drives, seed, 1 + (seed % 2) as u16);
    oracle.errors.set(true);
    for (number, batch) in gone.iter().enumerate() {
        if writing {
            oracle.start(&rig, &volumes, WRITES, seed + 7 + number as u64);
            rig.world.run_for(Nanos::from_micros(300));
        }
        batch.iter().for_each(|i| drives[*i].vanish());
        oracle.finish(&rig);
        read_all(&rig, &volumes[0], &oracle);
    }
    rig.world.crash();
    drop(volumes);
    drives.iter().for_each(SharedSimDrive::reappear);
    oracle.crashed();
    come_back(&drives, &oracle, seed);
}

/// The array starts with all its drives, also when a start before was cut short anywhere.
fn come_back(drives: &[SharedSimDrive], oracle: &Rc<Oracle>, seed: u64) {
    for cut in (1..60).step_by(14) {
        let (copy, model) = (duplicates(drives), oracle.fork());
        let rig = Rig::new(seed + 1, 1);
        rig.world.power_fails_after(cut);
        let list = references(&copy);
        let _ = rig.try_ask(|r| Request::Assemble(None, list, FORCE, r));
        rig.world.crash();
        starts(&copy, &model, seed + 2);
    }
    starts(drives, oracle, seed + 3);
}

fn starts(drives: &[SharedSimDrive], oracle: &Rc<Oracle>, seed: u64) {
    let rig = Rig::new(seed, 2);
    let started = rig.assemble(&references(drives), FORCE);
    assert!(started.is_ok(), "seed {seed}: {}", started.err().unwrap());
    oracle.verify(&rig, &rig.open_volume()[0], true);
}

#[test]
fn raid6_comes_back_after_drives_vanish_at_once() {
    glitch(Level::Raid6, 5, &[&[0, 1, 2]], false, 1);
    glitch(Level::Raid6, 6, &[&[5, 4, 3, 2]], false, 2);
}

#[test]
fn raid5_comes_back_after_drives_vanish_at_once_or_one_after_the_other() {
    glitch(Level::Raid5, 4, &[&[1, 2]], false, 3);
    glitch(Level::Raid5, 4, &[&[3], &[2], &[0]], false, 4);
}

#[test]
fn every_level_comes_back_after_all_drives_vanish_at_once() {
    for (level, width) in
        [(Level::Raid0, 3), (Level::Raid1, 3), (Level::Raid5, 4), (Level::Raid6, 5)]
    {
        let all: Vec<usize> = (0..width).collect();
        glitch(level, width, &[&all], false, 5);
    }
    glitch(Level::Raid10, 6, &[&[0, 1, 2, 3, 4, 5]], true, 6);
}

#[test]
fn raid10_comes_back_after_drives_vanish_at_once() {
    for (seed, writing) in [(7, false), (8, true), (9, true)] {
        glitch(Level::Raid10, 4, &[&[0, 1, 2]], writing, seed);
        glitch(Level::Raid10, 8, &[&[6, 7, 0], &[2, 3]], writing, seed + 10);
    }
}

#[test]
fn raid10_comes_back_after_drives_vanish_one_after_the_other() {
    for (seed, writing) in [(11, false), (12, true), (13, true)] {
        glitch(Level::Raid10, 8, &[&[0], &[1], &[2], &[4], &[6]], writing, seed);
    }
}

#[test]
fn raid1_comes_back_with_the_drive_that_was_last() {
    for (seed, writing) in [(14, false), (15, true), (16, true)] {
        glitch(Level::Raid1, 3, &[&[2], &[0], &[1]], writing, seed);
    }
}

/// A pair that is away acknowledges no write; the other pairs serve, and can be healed.
#[test]
fn the_other_pairs_go_on_while_one_is_away() {
    let all = drives(7, 21, false);
    let (rig, volumes, oracle) = filled(Level::Raid10, &all[..6], 21, 1);
    oracle.errors.set(true);
    for away in [0, 1] {
        all[away].vanish();
        read_all(&rig, &volumes[0], &oracle);
    }
    let (volume, model) = (volumes[0].clone(), oracle.clone());
    let results = rig.world.block_on(CoreId(0), async move {
        let mut results = Vec::new();
        for strip in 0..3 {
            results.push(model.write(&volume, strip * u64::from(STRIP), 512, true).await);
        }
        results
    });
    assert_eq!(results, [Err(BlockError::Unavailable), Ok(()), Ok(())]);
    let status = rig.fail(2).unwrap();
    let behind: Vec<bool> = status.slots.iter().map(|slot| slot.left_behind).collect();
    assert_eq!(behind, [false, true, false, false, false, false], "the others are spared");
    assert!(matches!(rig.replace(0, &all[6]), Err(ManageError::LeftBehind(Slot(1)))));
    rig.replace(2, &all[6]).unwrap();
    rig.wait();
    assert_eq!(rig.status().slots[2].health, SlotHealth::InSync);
    assert!(record(&all[3]).epoch.counter > record(&all[1]).epoch.counter + 2);
    rig.world.crash();
    drop(volumes);
    oracle.crashed();
    let back: Vec<_> = [0, 1, 6, 3, 4, 5].map(|i| all[i].clone()).into();
    back.iter().for_each(SharedSimDrive::reappear);
    come_back(&back, &oracle, 22);
}

/// An array that owes a resync, of which the next write to slot 1 fails, and only that.
fn transient(level: Level, all: &[SharedSimDrive], seed: u64) -> (Rig, Rc<Oracle>) {
    let (rig, volumes, oracle) = filled(level, all, seed, 1);
    oracle.start(&rig, &volumes, WRITES, seed + 1);
    rig.world.run_for(Nanos::from_micros(500));
    rig.world.crash();
    common::hide_pages(all);
    drop(volumes);
    oracle.crashed();
    let rig = Rig::new(seed + 2, 1);
    rig.assemble(&references(all), StartOptions::default()).unwrap();
    resync(&rig, TaskAction::Pause).unwrap();
    oracle.verify(&rig, &rig.open_volume()[0], true);
    all[1].fail_writes(seed % 3, 1);
    oracle.errors.set(true);
    oracle.start(&rig, &rig.open_volume(), Mix { tasks: 2, operations: 5, ..WRITES }, seed + 3);
    oracle.finish(&rig);
    rig.world.run_for(Nanos::from_millis(100));
    all[1].clear_faults();
    (rig, oracle)
}

fn resync(rig: &Rig, action: TaskAction) -> Result<ArrayStatus, ManageError> {
    rig.ask(|r| Request::Task("a".into(), TaskKind::Resync, None, action, r))
}

/// Where a resync is owed every drive is needed: one error in a write gives none up for good.
#[test]
fn a_transient_error_during_resync_loses_nothing_for_good() {
    for (seed, level) in [(31, Level::Raid5), (32, Level::Raid6), (33, Level::Raid5)] {
        let all = drives(6, seed, false);
        let (rig, oracle) = transient(level, &all[..5], seed);
        assert!(matches!(rig.replace(1, &all[5]), Err(ManageError::LeftBehind(Slot(1)))));
        rig.stop();
        oracle.crashed();
        let rig = Rig::new(seed + 10, 1);
        rig.assemble(&references(&all[..5]), StartOptions::default()).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
        resync(&rig, TaskAction::Resume).unwrap();
        rig.wait();
        assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
        assert_eq!(rig.status().state, ArrayState::Optimal);
    }
}

/// A drive that died during a resync is given up by a person, with what it alone held.
#[test]
fn a_replacement_after_a_failure_during_resync_ends() {
    for (seed, level) in [(41, Level::Raid5), (42, Level::Raid6)] {
        let mut all = drives(6, seed, false);
        let (rig, _) = transient(level, &all[..5], seed);
        rig.stop();
        let new = all.remove(5);
        all.remove(1);
        let rig = Rig::new(seed + 10, 1);
        let refused = rig.assemble(&references(&all), DEGRADED);
        assert!(matches!(refused, Err(ManageError::Assemble(_))), "{refused:?}");
        rig.assemble(&references(&all), FORCE).unwrap();
        rig.replace(1, &new).unwrap();
        rig.wait();
        // It is owed once the array is whole, and was told to wait before.
        let _ = resync(&rig, TaskAction::Resume);
        rig.wait();
        assert_eq!(rig.status().state, ArrayState::Optimal);
        assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
    }
}

/// A read fails on one drive, and another one on the next a while later; both answer again at once.
/// Only the first of them can be spared: the other is asked again.
fn hiccups(level: Level, width: usize, apart: u64, seed: u64) {
    let all = drives(width, seed, false);
    let (rig, volumes, oracle) = filled(level, &all, seed, 2);
    // Records take long.
    all.iter().for_each(|d| d.set_latency(Nanos::from_micros(50), Nanos::from_micros(900)));
    oracle.errors.set(true);
    let reads = Mix { tasks: 12, operations: 60, blocks_most: 8, read_percent: 100 };
    oracle.start(&rig, &volumes, reads, seed + 1);
    rig.world.run_for(Nanos::from_millis(2));
    all[seed as usize % width].fail_reads(0, 1);
    rig.world.run_for(Nanos::from_micros(apart));
    all[(seed as usize + 1) % width].fail_reads(0, 1);
    oracle.finish(&rig);
    rig.world.run_for(Nanos::from_millis(20));
    let status = rig.status();
    let out = status.slots.iter().filter(|slot| slot.health != SlotHealth::InSync).count();
    assert_eq!((status.state, out), (ArrayState::Degraded, 1), "{level:?}, {apart} apart, {seed}");
    oracle.errors.set(false);
    oracle.start(&rig, &volumes, Mix { read_percent: 50, ..WRITES }, seed + 2);
    oracle.finish(&rig);
    oracle.verify(&rig, &volumes[1], true);
}

#[test]
fn two_reads_that_fail_at_once_cost_no_more_than_one_drive() {
    for step in 0..24 {
        hiccups(Level::Raid1, 2, 60 * step, 50 + step);
        hiccups(Level::Raid5, 4, 60 * step, 80 + step);
    }
}

/// No drive is left to write a record to: nothing is called done that no drive has.
#[test]
fn what_no_drive_could_record_is_refused() {
    for level in [Level::Raid0, Level::Raid5] {
        let all = drives(3, 17, false);
        let rig = Rig::new(17, 1);
        rig.create(level, &all, 16 << 10).unwrap();
        let volume = rig.volume(MIB).remove(0);
        all.iter().for_each(SharedSimDrive::vanish);
        for block in 0..8 {
            assert!(common::write(&rig, &volume, block * (64 << 10), &[1; 4096]).is_err());
        }
        assert_eq!(rig.status().state, ArrayState::Failed);
        for _ in 0..2 {
            let made = rig.ask(|r| Request::VolumeCreate("a".into(), "w".into(), MIB, r));
            assert!(matches!(made, Err(ManageError::State(ArrayState::Failed))), "{made:?}");
            let size = NewSize { bytes: 512 << 10, shrink: Shrink::Always };
            let sized = rig.ask(|r| Request::VolumeResize("a".into(), "v".into(), size, r));
            assert!(matches!(sized, Err(ManageError::State(ArrayState::Failed))), "{sized:?}");
        }
    }
}

//! Drives that fail: the failure is durable before a write that missed the drive is acknowledged,
//! what is lost beyond redundancy gives errors and never wrong data, and nothing that runs at the
//! same time (stop, resize, another failure) loses the failure from sight.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{FORCE, Rig, drives, record, references};
use engine::manage::command::{ArrayState, ManageError, Request, SlotHealth, StartOptions};
use format::SlotState;
use io::{BlockError, Blocks, Pool};
use layout::Level;
use sim::{Rng, SharedSimDrive};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = MIB;
const MIX: Mix = Mix { tasks: 6, operations: 40, blocks_most: 200, read_percent: 30 };

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Write,
    DurableWrite,
    Flush,
    Vanish,
}

fn filled(rig: &Rig, cache: bool, seed: u64) -> (Vec<engine::Volume<common::Machine>>, Rc<Oracle>) {
    let volumes = rig.volume(BYTES);
    let oracle = Oracle::new(BYTES, cache);
    oracle.start(rig, &volumes, Mix { read_percent: 0, ..MIX }, seed);
    oracle.finish(rig);
    let (model, volume) = (oracle.clone(), volumes[0].clone());
    rig.world.block_on(CoreId(0), async move { model.flush(&volume).await }).unwrap();
    (volumes, oracle)
}

/// Writes once with a fault armed at one drive, cuts the power right behind the acknowledgement,
/// and starts again with that drive present.
fn miss(level: Level, width: usize, fault: Fault, skip: u64, seed: u64) -> bool {
    let cache = fault != Fault::Write;
    let drives = drives(width, seed, cache);
    let rig = Rig::new(seed, 1 + (seed % 2) as u16);
    rig.create(level, &drives, STRIP).unwrap();
    let (volumes, oracle) = filled(&rig, cache, seed);
    let victim = (seed as usize + skip as usize) % width;
    let drive = &drives[victim];
    match fault {
        Fault::Write | Fault::DurableWrite => drive.fail_writes(skip, 1),
        Fault::Flush => drive.fail_flushes(skip, 1),
        Fault::Vanish => drive.hold(skip, u64::MAX),
    }
    let (volume, model, pulled) = (volumes[0].clone(), oracle.clone(), drive.clone());
    let (ran, errors) = (Rc::new(std::cell::Cell::new(false)), drive.counters().errors);
    let done = ran.clone();
    io::Env::spawn(&rig.env(), io::Priority::First, async move {
        let mut rng = Rng::new(seed * 10 + skip);
        while pulled.counters().errors == errors {
            let from = rng.below(BYTES / 512 - 150) * 512;
            model
                .write(&volume, from, 1024 + rng.below(99) * 512, fault != Fault::Flush)
                .await
                .unwrap();
            if fault == Fault::Flush {
                model.flush(&volume).await.unwrap();
            }
        }
        done.set(true);
    });
    while !ran.get() {
        rig.world.step();
        if fault == Fault::Vanish && rig.world.steps() % 512 == 0 {
            drive.vanish();
        }
    }
    let hit = record(&drives[(victim + 1) % width]).slots[victim].state == SlotState::Failed;
    rig.world.crash();
    drop(volumes);
    drive.clear_faults();
    drive.reappear();
    oracle.crashed();
    let rig = Rig::new(seed + 1, 1);
    let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
    let guarded = newest.groups[0].guarded;
    if hit && matches!(level, Level::Raid5 | Level::Raid6) && !guarded {
        let refused = rig.assemble(&references(&drives), StartOptions::default());
        assert!(matches!(refused, Err(ManageError::Assemble(_))), "unclean and degraded");
    }
    let options = if guarded { StartOptions::default() } else { FORCE };
    let status = rig.assemble(&references(&drives), options).unwrap();
    let expected = if hit { SlotHealth::Failed } else { SlotHealth::InSync };
    assert_eq!(status.slots[victim].health, expected, "seed {seed}, {fault:?}");
    oracle.verify(&rig, &rig.open_volume()[0], true);
    hit
}

#[test]
fn a_failure_is_durable_before_the_write_that_missed_it() {
    for (level, width) in [(Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid6, 5)] {
        for fault in [Fault::Write, Fault::DurableWrite, Fault::Flush, Fault::Vanish] {
            let mut hits = 0;
            for skip in 0..3 {
                for seed in 0..2 {
                    hits += u32::from(miss(level, width, fault, skip, 40 + seed));
                }
            }
            assert_eq!(hits, 6, "{level}, {fault:?}");
        }
    }
}

#[test]
fn unreadable_blocks_come_from_redundancy() {
    for (level, width) in [(Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid6, 5)] {
        let drives = drives(width, 7, false);
        let rig = Rig::new(7, 2);
        rig.create(level, &drives, STRIP).unwrap();
        let (volumes, oracle) = filled(&rig, false, 7);
        for (i, drive) in drives.iter().enumerate() {
            drive.fail_range(MIB + (i as u64) * 4 * u64::from(STRIP), u64::from(STRIP));
        }
        oracle.verify(&rig, &volumes[1], true);
        oracle.start(&rig, &volumes, MIX, 8);
        oracle.finish(&rig);
        oracle.verify(&rig, &volumes[0], true);
        assert_eq!(rig.status().state, ArrayState::Optimal, "bad blocks fail no drive");
    }
}

/// Whole stripes around what is not certain: beyond redundancy, what was not being written in
/// them may be lost too.
fn forgive_stripes(oracle: &Oracle, stripe: u64) {
    for at in oracle.uncertain() {
        oracle.forgive(at / stripe * stripe, stripe);
    }
}

fn beyond(level: Level, width: usize, lose: usize, seed: u64) {
    let cache = seed % 2 == 0;
    let drives = drives(width, seed, cache);
    let rig = Rig::new(seed, 1 + (seed / 2 % 2) as u16);
    let mut rng = Rng::new(seed);
    rig.create(level, &drives, STRIP).unwrap();
    let (volumes, oracle) = filled(&rig, cache, seed);
    oracle.errors.set(true);
    oracle.start(&rig, &volumes, MIX, seed + 1);
    for _ in 0..=lose {
        rig.world.run_for(Nanos::from_micros(rng.below(1500)));
        drives[rng.index(width)].vanish();
    }
    drives.iter().take(lose + 1).for_each(SharedSimDrive::vanish);
    oracle.finish(&rig);
    oracle.start(&rig, &volumes, MIX, seed + 2);
    oracle.finish(&rig);
    let (good, bad) = oracle.done.get();
    assert!(good > 0 && bad > 0, "seed {seed}: {good} good, {bad} bad");
    assert_eq!(rig.status().state, ArrayState::Failed);
    let stripe = u64::from(volumes[0].stripe_bytes());
    if rng.coin() {
        rig.stop();
    }
    rig.world.crash();
    drop(volumes);
    drives.iter().for_each(SharedSimDrive::reappear);
    oracle.crashed();
    let rig = Rig::new(seed + 1, 1);
    rig.assemble(&references(&drives), FORCE).unwrap();
    // Without a cache only failed writes are uncertain.
    if !cache {
        assert!(!oracle.uncertain().is_empty());
    }
    heal(&rig, &oracle, stripe);
    forgive_stripes(&oracle, stripe);
    oracle.verify(&rig, &rig.open_volume()[0], true);
}

/// What was in flight when the first drive failed is lost with it, and so is what was beside it in
/// its stripes: it is listed, and zeroed here.
fn heal(rig: &Rig, oracle: &Rc<Oracle>, stripe: u64) {
    let written: Vec<u64> = oracle.uncertain().iter().map(|at| at / stripe).collect();
    for range in rig.status().unreadable {
        assert_eq!(range.reason, Some(format::LostReason::Crash));
        let last = range.offset + range.bytes - 1;
        let mut lost = range.offset / stripe..=last / stripe;
        assert!(lost.all(|lost| written.contains(&lost)), "{range:?}");
        let volume = rig.open_volume()[0].clone();
        let zeros = async move { volume.write_zeroes(range.offset, range.bytes, true).await };
        rig.world.block_on(CoreId(0), zeros).unwrap();
    }
}

#[test]
fn beyond_redundancy_there_are_errors_and_no_wrong_data() {
    for seed in 0..4 {
        println!("seed {seed}");
        beyond(Level::Raid5, 4, 1, seed);
        beyond(Level::Raid6, 5, 2, seed);
        beyond(Level::Raid1, 2, 1, seed);
    }
}

/// Stops, resizes and deletes while a drive fails: all of it ends, and the failure is not lost.
fn changing(level: Level, width: usize, seed: u64) {
    let drives = drives(width, seed, seed % 2 == 0);
    let rig = Rig::new(seed, 1 + (seed / 2 % 2) as u16);
    let mut rng = Rng::new(seed);
    rig.create(level, &drives, STRIP).unwrap();
    let made = |r| Request::VolumeCreate("a".into(), "other".into(), MIB, r);
    let (volumes, oracle) = filled(&rig, seed % 2 == 0, seed);
    if rng.coin() {
        // A clean group again: the first write needs the lock.
        rig.stop();
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    }
    drop(volumes);
    rig.ask(made).unwrap();
    let volumes = rig.open_volume();
    oracle.errors.set(true);
    oracle.start(&rig, &volumes, MIX, seed + 1);
    rig.world.run_for(Nanos::from_micros(rng.below(300)));
    let victim = &drives[rng.index(width)];
    match rng.below(3) {
        0 => victim.vanish(),
        1 => victim.fail_writes(rng.below(3), 1),
        _ => victim.fail_flushes(0, 1),
    }
    rig.world.run_for(Nanos::from_micros(rng.below(100)));
    let grown =
        rig.send(|r| Request::VolumeResize("a".into(), "other".into(), (2 * MIB).into(), r));
    let gone = rig.send(|r| Request::VolumeDelete("a".into(), "other".into(), r));
    if rng.coin() {
        rig.world.run_for(Nanos::from_micros(rng.below(800)));
    }
    let stopped = rig.send(|r| Request::Stop("a".into(), r));
    let _ = (rig.answered(&grown), rig.answered(&gone));
    rig.answered(&stopped).unwrap();
    oracle.finish(&rig);
    drop((volumes, rig));
    drives.iter().for_each(|d| {
        d.clear_faults();
        d.reappear();
    });
    let rig = Rig::new(seed + 1, 1);
    let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    rig.wait();
    oracle.crashed();
    oracle.verify(&rig, &rig.open_volume()[0], true);
    if status.state == ArrayState::Optimal {
        assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
    }
}

#[test]
fn stop_and_resize_do_not_lose_a_failure() {
    for seed in 0..12 {
        println!("seed {seed}");
        changing(Level::Raid5, 4, seed);
        changing(Level::Raid1, 2, seed);
    }
}

/// The array stops between the failure of a write and its acknowledgement, and mail is late: the
/// drive must not be in sync at the next start.
#[test]
fn a_stop_waits_for_failures_under_way() {
    for seed in 0..20 {
        let (level, width) = if seed % 2 == 0 { (Level::Raid5, 4) } else { (Level::Raid1, 2) };
        let drives = drives(width, seed, false);
        let rig = Rig::slow(seed);
        rig.create(level, &drives, STRIP).unwrap();
        let (volumes, oracle) = filled(&rig, false, seed);
        let slot = seed as usize % width;
        // It answers last, when all else has stopped.
        drives[slot].set_latency(Nanos::from_micros(2_500), Nanos::from_micros(3_000));
        drives[slot].fail_writes(0, 1);
        let (model, volume) = (oracle.clone(), volumes[seed as usize / 2 % 2].clone());
        io::Env::spawn(&rig.env(), io::Priority::First, async move {
            let _ = model.write(&volume, seed * 512, 48 << 10, false).await;
        });
        while drives[slot].in_flight() == 0 {
            rig.world.step();
        }
        let stopped = rig.send(|r| Request::Stop("a".into(), r));
        rig.answered(&stopped).unwrap();
        drop((volumes, rig));
        let rig = Rig::new(seed + 1, 1);
        let status = rig
            .assemble(
                &references(&drives),
                StartOptions { start_degraded: true, ..StartOptions::default() },
            )
            .unwrap();
        assert_eq!(status.slots[slot].health, SlotHealth::Failed, "seed {seed}");
        oracle.crashed();
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
}

#[test]
fn two_drives_that_fail_one_record_are_not_both_called_failed() {
    let drives = drives(4, 3, false);
    let rig = Rig::new(3, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    let (volumes, oracle) = filled(&rig, false, 3);
    rig.stop();
    drop(volumes);
    rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    let volume = rig.open_volume().remove(0);
    drives[1].vanish();
    drives[2].vanish();
    let model = oracle.clone();
    let wrote =
        rig.world.block_on(CoreId(0), async move { model.write(&volume, 0, 512, false).await });
    assert!(wrote.is_err());
    let failed = record(&drives[0]).slots.iter().filter(|s| s.state == SlotState::Failed).count();
    assert_eq!(failed, 1);
    rig.world.crash();
    drives.iter().for_each(SharedSimDrive::reappear);
    oracle.crashed();
    oracle.forgive(0, 3 * u64::from(STRIP));
    let rig = Rig::new(4, 1);
    rig.assemble(&references(&drives), FORCE).unwrap();
    oracle.verify(&rig, &rig.open_volume()[0], true);
}

/// While a replacement fills, a second drive fails a write: that write must not be acknowledged,
/// as the drive can't be recorded as failed and would come back with the old data.
#[test]
fn a_write_that_misses_a_drive_needed_by_a_rebuild_is_not_acknowledged() {
    for seed in 0..12u64 {
        let drives = drives(5, seed, false);
        let rig = Rig::new(seed, 1 + (seed % 2) as u16);
        rig.create(Level::Raid5, &drives[..4], STRIP).unwrap();
        let (volumes, oracle) = filled(&rig, false, seed);
        rig.fail(1).unwrap();
        rig.replace(1, &drives[4]).unwrap();
        oracle.errors.set(true);
        oracle.start(&rig, &volumes, MIX, seed + 1);
        rig.world.run_for(Nanos::from_micros(seed * 40));
        drives[2].fail_writes(seed % 3, 1);
        oracle.finish(&rig);
        rig.world.run_for(Nanos::from_millis(50));
        let stripe = u64::from(volumes[0].stripe_bytes());
        rig.world.crash();
        drop(volumes);
        drives[2].clear_faults();
        forgive_stripes(&oracle, stripe);
        oracle.crashed();
        let rig = Rig::new(seed + 1, 1);
        let all = [&drives[..1], &drives[2..4], &drives[4..]].concat();
        rig.assemble(&references(&all), FORCE).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
}

/// A read that fails costs the read, where taking the drive out would cost all that it holds.
#[test]
fn a_drive_that_is_needed_stays_though_a_read_failed() {
    for (level, width) in [(Level::Raid0, 3), (Level::Jbod, 2), (Level::Raid5, 4)] {
        let drives = drives(width, 7, false);
        let rig = Rig::new(7, 1);
        rig.create(level, &drives, STRIP).unwrap();
        let volume = rig.volume(MIB).remove(0);
        common::write(&rig, &volume, 0, &vec![7; MIB as usize]).unwrap();
        if level == Level::Raid5 {
            rig.fail(width - 1).unwrap();
        }
        let before = rig.status();
        let read = |at: u64| {
            let volume = volume.clone();
            let done = async move { volume.read(at, Pool::single(512)).await.0 };
            rig.world.block_on(CoreId(0), done)
        };
        drives[0].fail_reads(0, 2);
        let results: Vec<_> = (0..MIB / 512).map(|block| read(block * 512)).collect();
        assert!(results.contains(&Err(BlockError::Unavailable)), "{level}: no read failed");
        let again = (0..MIB / 512).all(|block| read(block * 512).is_ok());
        let after = rig.status();
        assert!(again, "{level}: the drive was taken out: {:?}", after.slots);
        assert_eq!((after.state, after.epoch), (before.state, before.epoch), "{level}");
        assert_eq!(after.slots[0].errors.failures, 2, "{level}");
    }
}

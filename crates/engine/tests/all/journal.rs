//! The redo journal: arrays that run degraded survive crash after crash under load, in rings that
//! wrap, through rebuilds, second failures and discards, and start again by themselves.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Rig, drives, duplicates, record, reference, references};
use engine::manage::command::{ArrayState, Request, StartOptions};
use io::Blocks;
use layout::Level;
use sim::drive::{OpKind, Stage};
use sim::{Rng, SharedSimDrive, WorldConfig};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos, Slot};

const STRIP: u32 = 16 << 10;
pub(crate) const BYTES: u64 = 2 * MIB;
const MIX: Mix = Mix { tasks: 6, operations: 1000, blocks_most: 120, read_percent: 20 };
pub(crate) const ALONE: StartOptions =
    StartOptions { start_degraded: false, accept_loss: false, ..StartOptions::NONE };
pub(crate) const DEGRADED: StartOptions =
    StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };

/// Level, width, slots that have failed.
pub(crate) const CASES: &[(Level, usize, &[usize])] = &[
    (Level::Raid5, 4, &[1]),
    (Level::Raid5, 3, &[0]),
    (Level::Raid6, 5, &[2]),
    (Level::Raid6, 6, &[1, 4]),
];

pub(crate) fn slow(seed: u64, cores: u16) -> Rig {
    let mut config = WorldConfig::new(seed).with_cores(cores);
    config.mail_delay_most = Nanos::from_micros([20, 200, 1_000][seed as usize % 3]);
    config.late_percent = [0, 10][seed as usize % 2];
    Rig::with(config)
}

/// Waits until what is written is guarded by the journal, not by what was in flight under `key`.
pub(crate) fn guarded(rig: &Rig, drives: &[SharedSimDrive], key: u64) {
    for _ in 0..10_000 {
        let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
        if newest.groups[0].guarded && newest.journal_key != key {
            return;
        }
        rig.world.run_for(Nanos::from_micros(500));
    }
    panic!("seed {}: never guarded", rig.world.seed());
}

/// An array with some content whose slots failed.
pub(crate) fn degraded(
    case: usize,
    seed: u64,
    cache: bool,
    cores: u16,
) -> (Rig, Vec<SharedSimDrive>, Rc<Oracle>) {
    degraded_on(drives(CASES[case].1, seed, cache), case, seed, cache, cores)
}

fn degraded_on(
    drives: Vec<SharedSimDrive>,
    case: usize,
    seed: u64,
    cache: bool,
    cores: u16,
) -> (Rig, Vec<SharedSimDrive>, Rc<Oracle>) {
    let (level, _, failed) = CASES[case];
    let rig = slow(seed, cores);
    rig.create(level, &drives, STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    let oracle = Oracle::new(BYTES, cache);
    oracle.start(&rig, &volumes, Mix { operations: 12, read_percent: 0, ..MIX }, seed);
    oracle.finish(&rig);
    let key = record(&drives[0]).journal_key;
    for slot in failed {
        rig.fail(*slot).unwrap();
    }
    guarded(&rig, &drives, key);
    (rig, drives, oracle)
}

/// Everything reads back, also without as many more drives as may be lost; and once the failed
/// slots have drives again, all redundancy agrees.
pub(crate) fn right(
    rig: Rig,
    oracle: &Rc<Oracle>,
    drives: &[SharedSimDrive],
    failed: &[usize],
    seed: u64,
) {
    oracle.verify(&rig, &rig.open_volume()[0], true);
    for slot in failed {
        let fresh = common::drives(1, seed + 3000 + *slot as u64, false).remove(0);
        rig.replace(*slot, &fresh).unwrap();
        rig.wait();
    }
    assert_eq!(rig.status().state, ArrayState::Optimal, "seed {seed}");
    oracle.verify(&rig, &rig.open_volume()[0], true);
    assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
    let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
    assert!(newest.groups[0].guarded && newest.journal_key != 0, "seed {seed}");
}

/// On drives that can't read what they were writing when the power went, the same blocks are
/// written again and again, and a start is cut: the only copy of the newest batch must not be
/// written again, else those before it come back over what was acknowledged.
#[test]
fn a_replay_leaves_the_only_copy_of_a_batch_alone() {
    for seed in 0..2 {
        let config = |i| sim::DriveConfig {
            tears: sim::drive::Tears { unreadable: true, ..Default::default() },
            ..sim::DriveConfig::new(common::DRIVE_BYTES, 9000 + 10 * seed + i)
        };
        let drives = (0..3).map(|i| SharedSimDrive::new(config(i))).collect();
        let (rig, image, oracle) = degraded_on(drives, 1, 60 + seed, false, 1);
        let (volume, model) = (rig.open_volume()[0].clone(), oracle.clone());
        rig.world.block_on(CoreId(0), async move {
            for i in 0..6 {
                model.write(&volume, 512 * (i % 3), 4096, true).await.unwrap();
            }
        });
        rig.world.crash();
        drop(rig);
        oracle.crashed();
        for turn in 0..180 {
            let (drives, oracle) = (duplicates(&image), oracle.fork());
            let rig = Rig::new(1000 * seed + turn, 1);
            rig.world.power_fails_after(turn / 3);
            let list = references(&drives);
            let _ = rig.try_ask(|r| Request::Assemble(None, list, ALONE, r));
            rig.world.crash();
            let rig = Rig::new(seed + turn + 9, 2);
            rig.assemble(&references(&drives), ALONE).unwrap();
            oracle.verify(&rig, &rig.open_volume()[0], true);
        }
    }
}

/// The page that calls a region clean was on its way to the drives when the power went, and the one
/// drive that took it can't read it for a while. A start that is cut meanwhile carries batches out
/// by the page before: the next one, which can read it, must not take the region for right.
#[test]
fn a_page_that_can_be_read_again_hides_nothing_that_a_start_left_half_done() {
    let (case, seed) = (0, 700);
    let (rig, drives, oracle) = degraded(case, seed, false, 1);
    let (volume, model) = (rig.open_volume()[0].clone(), oracle.clone());
    rig.world.block_on(CoreId(0), async move {
        for i in 0..8 {
            model.write(&volume, 1536 * (i % 3), 4096, true).await.unwrap();
        }
    });
    let areas = record(&drives[0]).areas;
    let map = |drive: &SharedSimDrive| drive.peek(areas.map_start, 8192);
    let sequences = |image: &[u8]| {
        [32, 4096 + 32].map(|at| u64::from_le_bytes(image[at..at + 8].try_into().unwrap()))
    };
    let dirty: Vec<_> = drives.iter().map(map).collect();
    rig.world.run_for(Nanos::from_millis(20_000));
    rig.world.crash();
    drop(rig);
    oracle.crashed();
    for has in [0, 2, 3] {
        let image = duplicates(&drives);
        let newest = *sequences(&map(&image[has])).iter().max().unwrap();
        assert_eq!(newest, sequences(&dirty[has]).iter().max().unwrap() + 1, "the clean one");
        for other in [0, 2, 3].into_iter().filter(|other| *other != has) {
            image[other].overwrite(areas.map_start, &dirty[other]);
        }
        let place = areas.map_start + newest % 2 * 4096;
        for submits in 0..80 {
            let (drives, oracle) = (duplicates(&image), oracle.fork());
            drives[has].fail_range(place, 4096);
            let rig = Rig::new(seed + submits, 1);
            rig.world.power_fails_after(submits);
            let list = references(&drives);
            let _ = rig.try_ask(|r| Request::Assemble(None, list, ALONE, r));
            rig.world.crash();
            // A duplicate can read everything.
            let drives = duplicates(&drives);
            let rig = Rig::new(seed + submits + 1, 1);
            rig.assemble(&references(&drives), ALONE).unwrap();
            oracle.verify(&rig, &rig.open_volume()[0], true);
        }
    }
}

/// Bytes of writes to the journal area.
fn journaled(drives: &[SharedSimDrive]) -> u64 {
    let areas = record(&drives[0]).areas;
    let area = areas.journal_start..areas.journal_start + areas.journal_bytes;
    let log = drives.iter().flat_map(SharedSimDrive::log);
    let mine = log.filter(|e| e.kind == OpKind::Write && e.stage == Stage::Submitted);
    mine.filter(|e| area.contains(&e.offset)).map(|e| e.bytes).sum()
}

/// Under load, on any number of cores, crash after crash; the ring wraps on the way.
fn crash_after_crash(case: usize, seed: u64) {
    let cache = seed % 2 == 1;
    let (mut rig, drives, oracle) = degraded(case, seed, cache, 1 + (seed % 4) as u16);
    let mut rng = Rng::new(seed);
    for round in 0..4 {
        let volumes = rig.open_volume();
        oracle.start(&rig, &volumes, MIX, seed * 10 + round);
        let time = if round == 1 { 120_000 } else { 20_000 };
        rig.world.run_for(Nanos::from_micros(rng.below(time)));
        if round == 1 {
            assert!(journaled(&drives) > 3 * MIB / 2, "seed {seed}: {}", journaled(&drives));
        }
        if rng.coin() {
            rig.world.crash()
        } else {
            rig.world.kill()
        }
        drop((volumes, rig));
        oracle.crashed();
        rig = slow(seed + round + 20, 1 + rng.below(4) as u16);
        rig.assemble(&references(&drives), ALONE).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
    right(rig, &oracle, &drives, CASES[case].2, seed);
}

#[test]
fn crash_after_crash_under_load() {
    for seed in [0, 5, 10, 15] {
        crash_after_crash(seed as usize % 4, 100 + seed);
    }
}

/// Drives fail and come back under load, with crashes at any time from the guard on: nothing old
/// comes back, whatever the rebuild has passed.
fn returns(case: usize, seed: u64) {
    let cache = seed % 2 == 1;
    let (mut rig, drives, oracle) = degraded(case, seed, cache, 1 + (seed % 3) as u16);
    let mut rng = Rng::new(seed);
    let slot = CASES[case].2[0];
    for round in 0..4 {
        let volumes = rig.open_volume();
        let short = Mix { operations: 40, ..MIX };
        oracle.start(&rig, &volumes, if rng.coin() { short } else { MIX }, seed * 10 + round);
        rig.world.run_for(Nanos::from_micros(rng.below(6_000)));
        let back = reference(&drives[slot], slot);
        // It may be there already, and whole.
        let put = |r| Request::Replace("a".into(), Slot(slot as u16), back, r);
        if rig.ask(put).is_err() {
            let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
            let whole = newest.slots.iter().all(|s| s.state == format::SlotState::InSync);
            let key = if whole { newest.journal_key } else { 0 };
            if rig.fail(slot).is_ok() {
                guarded(&rig, &drives, key);
            }
        }
        rig.world.run_for(Nanos::from_micros(rng.below(60_000)));
        guarded_or_whole(&rig, &drives);
        rig.world.crash();
        drop((volumes, rig));
        oracle.crashed();
        rig = slow(seed + round + 20, 1 + rng.below(4) as u16);
        rig.assemble(&references(&drives), ALONE).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
    rig.wait();
    let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
    let out = |i: &usize| newest.slots[*i].state == format::SlotState::Failed;
    let failed: Vec<usize> = (0..drives.len()).filter(out).collect();
    right(rig, &oracle, &drives, &failed, seed);
}

fn guarded_or_whole(rig: &Rig, drives: &[SharedSimDrive]) {
    for _ in 0..10_000 {
        let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
        if newest.groups[0].guarded || newest.journal_key == 0 {
            return;
        }
        rig.world.run_for(Nanos::from_micros(500));
    }
    panic!("seed {}: never guarded", rig.world.seed());
}

#[test]
fn old_records_never_come_back_after_a_rebuild() {
    for seed in 0..16 {
        returns(seed as usize % 4, 200 + seed);
    }
}

/// A drive whose blocks were logged, which then failed, missed newer ones and came back: once it is
/// filled a crash must not bring back what was logged for it before.
#[test]
fn what_was_logged_for_a_drive_does_not_come_over_what_fills_it() {
    for seed in 250..262 {
        let cache = seed % 2 == 1;
        let (rig, drives, oracle) = degraded(2, seed, cache, 1 + (seed % 3) as u16);
        let volume = rig.open_volume()[0].clone();
        let slot = [0, 1, 3, 4][seed as usize % 4];
        let write = |volume: &engine::Volume<_>| {
            let (volume, model) = (volume.clone(), oracle.clone());
            rig.world.block_on(CoreId(0), async move {
                for at in (0..8 * u64::from(STRIP)).step_by(12 << 10) {
                    model.write(&volume, at, 2048, true).await.unwrap();
                }
            });
        };
        write(&volume);
        rig.fail(slot).unwrap();
        guarded(&rig, &drives, 0);
        write(&volume);
        rig.replace(slot, &drives[slot]).unwrap();
        let filled = |drive: &SharedSimDrive| {
            let state = record(drive).slots[slot].state;
            matches!(state, format::SlotState::Rebuilding { border } if border > 0)
        };
        let mut steps = 0;
        while !drives.iter().any(filled) {
            rig.world.run_for(Nanos::from_micros(50));
            steps += 1;
            assert!(steps < 100_000, "seed {seed}: nothing is filled");
        }
        guarded_or_whole(&rig, &drives);
        rig.world.crash();
        drop((volume, rig));
        oracle.crashed();
        let rig = slow(seed + 20, 2);
        rig.assemble(&references(&drives), ALONE).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
        rig.wait();
        right(rig, &oracle, &drives, &[2], seed);
    }
}

/// A second drive fails while the journal is used, and the power goes at any time after.
#[test]
fn raid6_loses_a_second_drive_while_degraded() {
    for seed in 300..316 {
        let cache = seed % 2 == 1;
        let (rig, drives, oracle) = degraded(2, seed, cache, 1 + (seed % 3) as u16);
        let mut rng = Rng::new(seed);
        let volumes = rig.open_volume();
        oracle.start(&rig, &volumes, MIX, seed);
        rig.world.run_for(Nanos::from_micros(rng.below(6_000)));
        let second = [0, 1, 3, 4][rng.index(4)];
        drives[second].vanish();
        rig.world.run_for(Nanos::from_micros([rng.below(300), rng.below(9_000)][rng.index(2)]));
        rig.world.crash();
        drop((volumes, rig));
        oracle.crashed();
        drives[second].reappear();
        let mut left = drives.clone();
        if rng.coin() {
            left.remove(second);
        }
        let rig = slow(seed + 20, 2);
        rig.assemble(&references(&left), DEGRADED).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
        let newest = left.iter().map(record).max_by_key(|r| r.sequence).unwrap();
        let out = |i: &usize| newest.slots[*i].state == format::SlotState::Failed;
        let failed: Vec<usize> = (0..5).filter(out).collect();
        right(rig, &oracle, &left, &failed, seed);
    }
}

/// A band that was written, discarded and written in part reads zeros around that.
#[test]
fn what_was_discarded_does_not_come_back() {
    for seed in 400..412 {
        let cache = seed % 2 == 1;
        let (rig, drives, oracle) = degraded(seed as usize % 4, seed, cache, 1 + (seed % 3) as u16);
        let volumes = rig.open_volume();
        let row = record(&drives[3 % drives.len()]).layout().unwrap().row_bytes(0);
        let row = row.min(BYTES);
        if row > BYTES {
            continue;
        }
        let (volume, model) = (volumes[0].clone(), oracle.clone());
        rig.world.block_on(CoreId(0), async move {
            model.write(&volume, 0, 200 << 10, true).await.unwrap();
            volume.write_zeroes(0, volume.bytes(), true).await.unwrap();
            model.forget(0, BYTES);
            model.write(&volume, 64 << 10, 512, true).await.unwrap();
        });
        rig.world.crash();
        drop((volumes, rig));
        oracle.crashed();
        let rig = slow(seed + 20, 2);
        rig.assemble(&references(&drives), ALONE).unwrap();
        right(rig, &oracle, &drives, CASES[seed as usize % 4].2, seed);
    }
}

/// A clean stop leaves nothing in the journal that counts.
#[test]
fn a_clean_stop_leaves_an_empty_journal() {
    let (rig, drives, oracle) = degraded(0, 600, true, 2);
    let volumes = rig.open_volume();
    oracle.start(&rig, &volumes, Mix { operations: 50, ..MIX }, 1);
    oracle.finish(&rig);
    drop(volumes);
    let key = record(&drives[0]).journal_key;
    rig.stop();
    let stopped = record(&drives[0]);
    assert!(!stopped.groups[0].unclean && stopped.journal_key != key);
    let area = stopped.areas;
    let image = drives[0].peek(area.journal_start, area.journal_bytes);
    let count = (0..image.len()).step_by(4096).filter(|at| {
        let place = format::journal::Place { array: stopped.array, at: *at as u64 };
        let head = format::journal::decode(&image[*at..], place);
        head.is_some_and(|head| head.batch.key == stopped.journal_key)
    });
    assert_eq!(count.count(), 0);
    let rig = Rig::new(601, 1);
    rig.assemble(&references(&drives), ALONE).unwrap();
    right(rig, &oracle, &drives, &[1], 600);
}

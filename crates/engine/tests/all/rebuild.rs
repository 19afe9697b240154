//! Rebuilds: cut short at any moment they go on from a border that is never ahead of what is
//! durable on the target; other failures meanwhile lose nothing that redundancy covers.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Rig, drives, record, references};
use engine::Volume;
use engine::manage::command::{
    ArrayState, ManageError, Request, SlotHealth, SlotStatus, StartOptions,
};
use format::SlotState;
use io::Blocks;
use layout::Level;
use sim::{DriveConfig, Rng, SharedSimDrive};
use std::rc::Rc;
use units::{MIB, Nanos, Slot};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = 3 * MIB;
const MIX: Mix = Mix { tasks: 6, operations: 30, blocks_most: 100, read_percent: 40 };

/// Level, drives, drives it may lose beside the one being rebuilt.
const LEVELS: &[(Level, usize, usize)] = &[
    (Level::Raid1, 2, 0),
    (Level::Raid5, 4, 0),
    (Level::Raid6, 5, 1),
    (Level::Raid10, 4, 0),
    (Level::Raid1, 3, 1),
];

struct Scene {
    rig: Rig,
    drives: Vec<SharedSimDrive>,
    volumes: Vec<Volume<common::Machine>>,
    oracle: Rc<Oracle>,
}

/// A filled array, and spares behind its drives.
fn scene(level: Level, width: usize, cache: bool, seed: u64) -> Scene {
    let drives = drives(width + 3, seed, cache);
    let rig = Rig::new(seed, 1 + (seed / 2 % 2) as u16);
    rig.create(level, &drives[..width], STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    let oracle = Oracle::new(BYTES, cache);
    oracle.start(&rig, &volumes, Mix { read_percent: 0, ..MIX }, seed);
    oracle.finish(&rig);
    Scene { rig, drives, volumes, oracle }
}

/// The drives of an array in which `spare` took the place of `slot`.
fn replaced(drives: &[SharedSimDrive], width: usize, slot: usize) -> Vec<SharedSimDrive> {
    let mut list = drives[..width].to_vec();
    list[slot] = drives[width].clone();
    list
}

/// Everything is in sync and right, and `lose + 1` drives may go, the rebuilt one stays.
fn whole(rig: &Rig, oracle: &Rc<Oracle>, list: &[SharedSimDrive], keep: usize, lose: usize) {
    rig.wait();
    let seed = rig.world.seed();
    assert_eq!(rig.status().state, ArrayState::Optimal, "seed {seed}");
    assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
    let others = (0..list.len()).filter(|i| *i != keep);
    others.take(lose + 1).for_each(|i| list[i].vanish());
    oracle.verify(rig, &rig.open_volume()[0], true);
}

/// Cuts a rebuild short: by a stop under writes, or by a power cut while nothing is written.
fn cut_short(at: usize, seed: u64) -> bool {
    let (level, width, lose) = LEVELS[at];
    let (cache, power) = (seed % 2 == 0, seed % 3 > 0);
    let Scene { rig, drives, volumes, oracle } = scene(level, width, cache, seed);
    rig.fill_rest();
    let mut rng = Rng::new(seed);
    let slot = rng.index(width);
    drives[slot].vanish();
    rig.fail(slot).unwrap();
    let (mut rig, mut volumes) = (rig, volumes);
    if power {
        // A clean group: a crash then owes no resync.
        rig.stop();
        drop((rig, volumes));
        rig = Rig::new(seed + 1, 1);
        rig.assemble(&references(&drives[..width]), StartOptions::default()).unwrap();
        volumes = rig.open_volume();
    }
    rig.replace(slot, &drives[width]).unwrap();
    let list = replaced(&drives, width, slot);
    let reads = if power { 100 } else { 40 };
    let mix = Mix { operations: 200, read_percent: reads, ..MIX };
    oracle.errors.set(!power);
    if !power || rng.coin() {
        // Reads alone: a flush counts as no write.
        oracle.start(&rig, &volumes, mix, seed + 1);
    }
    let far = rng.below(200);
    let begun = rig.world.now();
    let border = || match record(&list[slot]).slots[slot].state {
        SlotState::Rebuilding { border } => border,
        _ => u64::MAX,
    };
    while border() < far && rig.world.now().since(begun) < Nanos::from_millis(60) {
        rig.world.run_for(Nanos::from_micros(500));
    }
    rig.world.run_for(Nanos::from_micros(rng.below(1_000)));
    if power {
        rig.world.crash()
    } else {
        rig.stop()
    }
    drop((rig, volumes));
    if power {
        oracle.crashed();
    }
    oracle.errors.set(false);
    let state = record(&list[slot]).slots[slot].state;
    list.iter().for_each(SharedSimDrive::clear_log);
    let rig = Rig::new(seed + 2, 1 + (seed % 2) as u16);
    rig.assemble(&references(&list), StartOptions::default()).unwrap();
    let SlotState::Rebuilding { border } = state else {
        whole(&rig, &oracle, &list, slot, lose);
        return false;
    };
    oracle.verify(&rig, &rig.open_volume()[0], !power);
    rig.wait();
    let start = record(&list[0]).data_offset;
    let below = start..start + border * u64::from(STRIP);
    let rewritten = list[slot].log().iter().any(|e| {
        let write = e.kind == sim::drive::OpKind::Write;
        write && below.contains(&e.offset)
    });
    assert!(!rewritten, "seed {seed}: it started over");
    whole(&rig, &oracle, &list, slot, lose);
    border > 0
}

#[test]
fn a_rebuild_cut_short_goes_on_from_its_border() {
    for (at, (level, ..)) in LEVELS.iter().enumerate() {
        let went_on = (0..8).filter(|seed| cut_short(at, *seed + 20 * at as u64)).count();
        assert!(went_on > 0, "{level}: never between");
    }
}

/// Mirrors need no parity: a power cut under writes during the rebuild is recovered too.
#[test]
fn a_mirror_rebuild_survives_power_cuts_under_writes() {
    for seed in 0..6 {
        let Scene { rig, drives, volumes, oracle } = scene(Level::Raid1, 3, seed % 2 == 0, seed);
        rig.fail(0).unwrap();
        rig.replace(0, &drives[3]).unwrap();
        oracle.start(&rig, &volumes, Mix { operations: 500, ..MIX }, seed + 1);
        rig.world.run_for(Nanos::from_micros(seed * 1_500));
        rig.world.crash();
        drop(volumes);
        oracle.crashed();
        let list = replaced(&drives, 3, 0);
        let rig = Rig::new(seed + 2, 2);
        rig.assemble(&references(&list), StartOptions::default()).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
        whole(&rig, &oracle, &list, 0, 1);
    }
}

#[test]
fn another_failure_during_a_rebuild_does_not_stop_it() {
    for seed in 0..10 {
        let at = if seed % 2 == 0 { 2 } else { 4 };
        let (level, width, _) = LEVELS[at];
        let Scene { rig, drives, volumes, oracle } = scene(level, width, seed % 4 == 0, seed);
        rig.fail(1).unwrap();
        rig.replace(1, &drives[width]).unwrap();
        oracle.start(&rig, &volumes, MIX, seed + 1);
        rig.world.run_for(Nanos::from_micros(seed * 700));
        drives[2].vanish();
        oracle.finish(&rig);
        let _ = rig.fail(2);
        rig.wait();
        let status = rig.status();
        assert_eq!(status.slots[1].health, SlotHealth::InSync, "seed {seed}");
        assert_eq!(status.slots[2].health, SlotHealth::Failed, "seed {seed}");
        rig.replace(2, &drives[width + 1]).unwrap();
        oracle.start(&rig, &volumes, MIX, seed + 2);
        oracle.finish(&rig);
        let mut list = replaced(&drives, width, 1);
        list[2] = drives[width + 1].clone();
        whole(&rig, &oracle, &list, 1, 1);
    }
}

#[test]
fn a_replacement_that_fails_is_taken_out_and_replaced() {
    for seed in 0..12 {
        let (level, width, lose) = LEVELS[seed as usize % LEVELS.len()];
        let cache = seed % 2 == 0;
        let Scene { rig, drives, volumes, oracle } = scene(level, width, cache, seed);
        rig.fail(1).unwrap();
        rig.replace(1, &drives[width]).unwrap();
        oracle.start(&rig, &volumes, MIX, seed + 1);
        rig.world.run_for(Nanos::from_micros(seed * 100));
        match seed % 3 {
            0 => drives[width].vanish(),
            1 => drives[width].fail_writes(seed % 4, 1),
            _ if cache => drives[width].fail_flushes(0, 1),
            _ => drives[width].fail_writes(0, 1),
        }
        oracle.finish(&rig);
        rig.wait();
        let status = rig.status();
        assert_eq!(status.slots[1].health, SlotHealth::Failed, "seed {seed}");
        assert_eq!(status.state, ArrayState::Degraded);
        rig.replace(1, &drives[width + 1]).unwrap();
        let mut list = replaced(&drives, width, 1);
        list[1] = drives[width + 1].clone();
        whole(&rig, &oracle, &list, 1, lose);
    }
}

/// Drives that went together are failed together, in one epoch, or stay as they are.
#[test]
fn drives_are_taken_out_together_or_not_at_all() {
    let slots = |slots: &[usize]| slots.iter().map(|slot| format!("slot:{slot}")).collect();
    for (level, width, covered, beyond) in [
        (Level::Raid5, 4, vec![1], vec![0, 2]),
        (Level::Raid6, 5, vec![1, 3], vec![0, 1, 4]),
        (Level::Raid1, 3, vec![0, 2], vec![0, 1, 2]),
        (Level::Raid10, 4, vec![0, 2], vec![2, 3]),
        (Level::Raid0, 3, vec![], vec![1]),
    ] {
        let Scene { rig, .. } = scene(level, width, false, 3);
        let before = rig.status();
        let spares =
            |some: &[usize]| rig.ask(|r| Request::CanSpare("a".into(), slots(some), r)).unwrap();
        assert_eq!((spares(&covered), spares(&beyond)), (true, false), "{level}");
        let refused = rig.ask(|r| Request::Fail("a".into(), slots(&beyond), r));
        let last = Slot(*beyond.last().unwrap() as u16);
        assert!(matches!(refused, Err(ManageError::WouldLose(s)) if s == last), "{refused:?}");
        assert_eq!((rig.status().slots, rig.status().epoch), (before.slots, before.epoch));
        let after = rig.ask(|r| Request::Fail("a".into(), slots(&covered), r)).unwrap();
        let is_out = |slot: &SlotStatus| slot.health == SlotHealth::Failed;
        let out: Vec<usize> =
            after.slots.iter().filter(|s| is_out(s)).map(|s| s.slot.index()).collect();
        assert_eq!(out, covered, "{level}");
        assert_eq!(after.epoch, before.epoch + u64::from(!covered.is_empty()), "{level}");
        // Again, with some that are out already.
        assert!(covered.is_empty() || spares(&covered));
        rig.ask(|r| Request::Fail("a".into(), slots(&covered), r)).unwrap();
        assert_eq!(rig.status().epoch, after.epoch);
    }
}

#[test]
fn replacements_that_do_not_fit_are_refused() {
    let Scene { rig, drives, .. } = scene(Level::Raid5, 4, false, 3);
    assert!(matches!(rig.replace(1, &drives[4]), Err(ManageError::SlotInUse(Slot(1)))));
    rig.fail(1).unwrap();
    assert!(matches!(rig.fail(2), Err(ManageError::WouldLose(Slot(2)))));
    assert!(matches!(rig.replace(9, &drives[4]), Err(ManageError::NoSlot(..))));
    let small = SharedSimDrive::new(DriveConfig::new(4 * MIB, 1));
    assert!(matches!(rig.replace(1, &small), Err(ManageError::TooSmall { .. })));
    let coarse = SharedSimDrive::new(DriveConfig::new(6 * MIB, 1).with_blocks(4096));
    assert!(matches!(rig.replace(1, &coarse), Err(ManageError::BlockSize { .. })));
    let used = common::reference(&drives[2], 2);
    let again =
        rig.ask(|r| engine::manage::command::Request::Replace("a".into(), Slot(1), used, r));
    assert!(matches!(again, Err(ManageError::SlotInUse(Slot(2)))), "{again:?}");
    rig.replace(1, &drives[4]).unwrap();
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal);
}

/// A band that is being discarded was passed over by a rebuild. Until the discard is durable the
/// band counts as written after a crash, so the new drive must not count as filled.
#[test]
fn a_rebuild_is_not_over_before_a_discard_it_relied_on_is_durable() {
    let rig = Rig::new(5, 1);
    let drives = drives(5, 5, true);
    rig.create(Level::Raid5, &drives[..4], STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    common::write(&rig, &volumes[0], 0, &vec![0x5a; BYTES as usize]).unwrap();
    rig.fail(1).unwrap();
    let areas = record(&drives[0]).areas;
    rig.replace(1, &drives[4]).unwrap();
    let map = areas.map_start..areas.map_start + areas.map_bytes;
    let list = replaced(&drives, 4, 1);
    list.iter().for_each(|drive| drive.hold_within(map.clone()));
    let volume = volumes[0].clone();
    let discard = async move { _ = volume.discard(0, BYTES).await };
    io::Env::spawn(&rig.env(), io::Priority::First, discard);
    let begun = rig.world.now();
    while rig.world.now().since(begun) < Nanos::from_millis(100) {
        rig.world.run_for(Nanos::from_micros(500));
        let state = record(&list[1]).slots[1].state;
        assert!(state != SlotState::InSync, "what was passed over is not durable");
    }
    assert!(list.iter().all(|drive| drive.in_flight() > 0), "the discard is held");
    list.iter().for_each(SharedSimDrive::release);
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal);
}

/// The only source of a rebuild fails the page in which a discard takes bands back, and the new
/// drive has it. The source counts again at the next start, and by its map they are written: the
/// rebuild passed over them, so they are not below its border, nor is the new drive in sync.
#[test]
fn a_rebuild_ends_where_its_only_source_is_dropped() {
    for (seed, to_end) in [(31, false), (32, true)] {
        let bytes = 16 * MIB;
        let config = |i| DriveConfig::new(74 * MIB, seed * 100 + i);
        let drives: Vec<_> = (0..3).map(|i| SharedSimDrive::new(config(i))).collect();
        let rig = Rig::new(seed, 1);
        rig.create(Level::Raid1, &drives[..2], STRIP).unwrap();
        let volume = rig.volume(bytes).remove(0);
        common::write(&rig, &volume, 0, &vec![0x5a; bytes as usize]).unwrap();
        rig.world.run_for(Nanos::from_millis(10_000));
        assert_eq!(rig.status().region_map.dirty_regions, 0, "no page is on its way");
        let found = record(&drives[0]);
        let (areas, layout) = (found.areas, found.layout().unwrap());
        let window = layout.bands(units::GroupNo(0)) / 16 * layout.row_bytes(0);
        rig.fail(1).unwrap();
        drives[2].set_latency(Nanos::from_micros(400), Nanos::from_micros(500));
        rig.replace(1, &drives[2]).unwrap();
        drives[0].hold_within(areas.map_start..areas.map_start + areas.map_bytes);
        // All of it but the first band of the window that is being filled.
        let end = if to_end { bytes } else { window };
        let answer = Rc::new(std::cell::Cell::new(None));
        let into = answer.clone();
        io::Env::spawn(&rig.env(), io::Priority::First, async move {
            into.set(Some(volume.discard(MIB, end - MIB).await));
        });
        rig.world.run_for(Nanos::from_millis(200));
        assert_eq!((drives[0].in_flight(), answer.get()), (1, None), "the page is held");
        drives[0].vanish();
        rig.world.run_for(Nanos::from_millis(200));
        assert_eq!(answer.get(), Some(Err(io::BlockError::Unavailable)), "seed {seed}");
        let state = record(&drives[2]).slots[1].state;
        rig.world.crash();
        drop(rig);
        drives[0].clear_faults();
        drives[0].reappear();
        let rig = Rig::new(seed + 1, 1);
        let list = [drives[0].clone(), drives[2].clone()];
        rig.assemble(&references(&list), StartOptions::default()).unwrap();
        let old_or_zeros = || {
            let got = common::read(&rig, &rig.open_volume()[0], 0, bytes).unwrap();
            let whole = |b: &[u8]| b.iter().all(|x| *x == 0x5a) || b.iter().all(|x| *x == 0);
            let foreign = got.chunks(512).position(|block| !whole(block));
            assert_eq!(foreign, None, "seed {seed}: a block is neither old nor zeros");
        };
        old_or_zeros();
        rig.wait();
        old_or_zeros();
        assert_eq!(rig.status().state, ArrayState::Optimal, "seed {seed}");
        assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
        assert_eq!(state, SlotState::Rebuilding { border: 0 }, "seed {seed}");
    }
}

/// A drive fails a request while it is put in: if the answer says that it is in, its slot is not
/// failed by then.
#[test]
fn a_drive_that_fails_as_it_joins_is_not_said_to_be_in() {
    let mut refused = 0;
    for skip in 0..8 {
        let drives = drives(5, 900 + skip, false);
        let rig = Rig::new(900 + skip, 1);
        rig.create(Level::Raid5, &drives[..4], STRIP).unwrap();
        let volumes = rig.volume(BYTES);
        rig.fail(1).unwrap();
        drives[4].fail_writes(skip, 1);
        match rig.replace(1, &drives[4]) {
            Ok(status) => assert_ne!(status.slots[1].health, SlotHealth::Failed, "{skip}"),
            Err(error) => {
                assert!(matches!(error, ManageError::Drive(..)), "{skip}: {error}");
                refused += 1;
            }
        }
        let oracle = Oracle::new(BYTES, false);
        oracle.start(&rig, &volumes, MIX, skip);
        oracle.finish(&rig);
        assert_eq!(rig.status().state, ArrayState::Degraded, "{skip}");
        drives[4].clear_faults();
        rig.replace(1, &drives[4]).unwrap();
        whole(&rig, &oracle, &replaced(&drives, 4, 1), 1, 0);
        assert!(skip > 0 || refused == 1);
    }
    assert!(refused > 3, "also its record");
}

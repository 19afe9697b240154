//! Loss that a person accepted: what was lost is computed from parity that may not match. Once
//! the group is whole again, all its redundancy agrees: any tolerated loss reads the same.
#![allow(missing_docs)]

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{FORCE, Rig, drives, duplicates, record, references, spoil_map};
use engine::manage::command::{ArrayState, Request, StartOptions, TaskAction, TaskKind};
use io::{Blocks, Pool};
use layout::Level;
use sim::SharedSimDrive;
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

const DEGRADED: StartOptions =
    StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
const BYTES: u64 = MIB;
/// Where in a volume bands begin that have nothing of its first MiB.
const BEYOND: u64 = 8 * MIB;
const WRITES: Mix = Mix { tasks: 6, operations: 40, blocks_most: 200, read_percent: 0 };

fn content(rig: &Rig) -> Vec<u8> {
    let volume = rig.open_volume().remove(0);
    rig.world.block_on(CoreId(0), async move {
        let (result, bytes) = volume.read(0, Pool::single(BYTES as usize)).await;
        assert_eq!(result, Ok(()));
        bytes.to_vec()
    })
}

/// Has what an array writes be cut off, so that loss has to be accepted: it owes the resync of a
/// crash, and loses drives at another.
fn accepted(level: Level, all: &[SharedSimDrive], failed: &[usize], seed: u64) -> Rig {
    let mut rig = Rig::new(seed, 1);
    rig.create(level, all, 16 << 10).unwrap();
    let mut volumes = rig.volume(BYTES);
    let oracle = Oracle::new(BYTES, false);
    oracle.start(&rig, &volumes, WRITES, seed);
    oracle.finish(&rig);
    let hard = Mix { operations: 500, ..WRITES };
    // Clean in one place of the map, dirty in the other.
    drop(volumes);
    rig.stop();
    rig = Rig::new(seed + 30, 1);
    rig.assemble(&references(all), DEGRADED).unwrap();
    volumes = rig.open_volume();
    oracle.start(&rig, &volumes, hard, seed + 2);
    rig.world.run_for(Nanos::from_micros(700));
    rig.world.crash();
    common::hide_pages(all);
    oracle.crashed();
    rig = Rig::new(seed + 40, 1);
    rig.assemble(&references(all), DEGRADED).unwrap();
    let pause = (TaskKind::Resync, TaskAction::Pause);
    rig.ask(|r| Request::Task("a".into(), pause.0, None, pause.1, r)).unwrap();
    volumes = rig.open_volume();
    oracle.start(&rig, &volumes, hard, seed + 1);
    rig.world.run_for(Nanos::from_micros(400 + seed * 37));
    rig.world.crash();
    drop(volumes);
    let mut left = references(all);
    let mut slot = 0..;
    left.retain(|_| !failed.contains(&slot.next().expect("endless")));
    let rig = Rig::new(seed + 50, 1);
    assert!(rig.assemble(&left, DEGRADED).is_err(), "seed {seed}");
    rig.assemble(&left, FORCE).unwrap();
    rig
}

/// The state after loss was accepted is durable: however the array stops, nobody is asked again
/// unless more may have been lost, and the resync stays owed, also if one place of the region map
/// can't be read on any drive any more.
fn restarted(rig: Rig, all: &[SharedSimDrive], seed: u64) -> Rig {
    match seed % 3 {
        0 => return rig,
        1 => rig.stop(),
        _ => rig.world.crash(),
    }
    let place = record(&all[0]).areas.map_start + seed / 2 % 2 * 4096;
    all.iter().for_each(|drive| drive.fail_range(place, 4096));
    let rig = Rig::new(seed + 60, 1);
    rig.assemble(&references(all), DEGRADED).unwrap();
    rig
}

fn rebuilt(level: Level, width: usize, failed: &[usize], seed: u64) {
    let all = drives(width + failed.len(), seed, false);
    let mut used = all[..width].to_vec();
    let rig = accepted(level, &used, failed, seed);
    assert!(record(&used[width - 1]).groups[0].loss_accepted, "seed {seed}");
    let mut rig = restarted(rig, &used, seed);
    for (i, slot) in failed.iter().enumerate() {
        rig.replace(*slot, &all[width + i]).unwrap();
        used[*slot] = all[width + i].clone();
        joined(&rig, &used);
        rig = restarted(rig, &used, seed + 1);
    }
    rig.wait();
    assert!(!record(&used[0]).groups[0].loss_accepted, "seed {seed}");
    assert_eq!(rig.status().state, ArrayState::Optimal);
    assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
    let healthy = content(&rig);
    rig.stop();
    for lost in [[0, 2], [1, 3], [width - 1, 1]] {
        let mut left = duplicates(&used);
        left.retain(|d| lost.iter().take(failed.len()).all(|i| !same(d, &used[*i])));
        let rig = Rig::new(seed + 70, 1);
        rig.assemble(&references(&left), DEGRADED).unwrap();
        assert!(content(&rig) == healthy, "seed {seed}: without {lost:?} it reads differently");
    }
}

/// Waits for the rebuild. The first record in which no drive lacks owes what was put off, and says
/// so: nothing in the journal area stands for it.
fn joined(rig: &Rig, used: &[SharedSimDrive]) {
    let newest = || used.iter().map(record).max_by_key(|r| r.sequence).unwrap();
    let in_sync =
        |r: &format::ArrayRecord| r.slots.iter().all(|s| s.state == format::SlotState::InSync);
    while !in_sync(&newest()) && !rig.status().tasks.is_empty() {
        rig.world.run_for(Nanos::from_micros(50));
    }
    let now = newest();
    let group = now.groups[0];
    if in_sync(&now) && rig.status().region_map.dirty_regions > 0 {
        assert!(group.unclean && !group.guarded, "{group:?}");
    }
    rig.wait();
}

/// Whether two drives hold the record of one slot.
fn same(a: &SharedSimDrive, b: &SharedSimDrive) -> bool {
    record(a).this_drive == record(b).this_drive
}

#[test]
fn raid6_has_a_right_q_after_loss_was_accepted() {
    for seed in 0..16 {
        rebuilt(Level::Raid6, 5, &[1], seed);
    }
}

#[test]
fn raid6_has_right_parity_after_two_rebuilds_with_loss_accepted() {
    for seed in 10..14 {
        rebuilt(Level::Raid6, 6, &[4, 0], seed);
    }
}

#[test]
fn raid5_has_right_parity_after_loss_was_accepted() {
    for seed in 20..23 {
        rebuilt(Level::Raid5, 4, &[2], seed);
    }
}

/// What is written after loss was accepted is there when another drive fails, also in stripes whose
/// redundancy was wrong: it is made anew with every write.
#[test]
fn what_is_written_after_loss_was_accepted_survives_another_failure() {
    for seed in 40..52 {
        let all = drives(5, seed, false);
        let rig = accepted(Level::Raid6, &all, &[1], seed);
        let volume = rig.open_volume().remove(0);
        let layout = record(&all[3]).layout().unwrap();
        let strip = u64::from(layout.strip_bytes());
        let of_3 = |at: &u64| {
            let place = layout.locate(*at);
            layout.slot(place.group, place.stripe, place.strip).index() == 3
        };
        let strips: Vec<u64> = (0..BYTES).step_by(strip as usize).filter(of_3).collect();
        let content = |at: u64| vec![(at / strip) as u8 | 1; strip as usize];
        for at in &strips {
            common::write(&rig, &volume, *at, &content(*at)).unwrap();
        }
        rig.fail(3).unwrap();
        for at in strips {
            let got = common::read(&rig, &volume, at, strip);
            assert!(got.as_ref() == Ok(&content(at)), "seed {seed}: what was written at {at}");
        }
    }
}

/// An array without slot 1 of which no drive has a page of the region map any more, after a crash
/// or a stop, and what the first MiB of its volume holds; behind that nothing was ever written.
fn map_lost(level: Level, all: &[SharedSimDrive], stops: bool, seed: u64) -> Rc<Oracle> {
    let rig = Rig::new(seed, 1);
    rig.create(level, all, 16 << 10).unwrap();
    let volumes = rig.volume(BEYOND + 2 * BYTES);
    let oracle = Oracle::new(BYTES, false);
    rig.fail(1).unwrap();
    oracle.start(&rig, &volumes, WRITES, seed);
    oracle.finish(&rig);
    match stops {
        true => rig.stop(),
        false => {
            rig.world.crash();
            oracle.crashed();
        }
    }
    drop(volumes);
    all.iter().for_each(spoil_map);
    oracle
}

/// A degraded array whose map was lost starts, however often, and gives all that was written: its
/// redundancy is right there. The missing drive is filled from it, then all bands that nobody wrote
/// are resynced.
#[test]
fn a_lost_map_of_a_degraded_array_costs_nothing_that_was_written() {
    let cases = [Level::Raid5, Level::Raid6].into_iter().zip([false, true]);
    for (seed, (level, stops)) in (90..).zip(cases.clone().chain(cases.rev())) {
        let all = drives(6, seed, false);
        let mut used = all[..5].to_vec();
        let oracle = map_lost(level, &used, stops, seed);
        for turn in 0..3 {
            let rig = Rig::new(seed + 10 + turn, 1);
            rig.assemble(&references(&used), DEGRADED).unwrap();
            oracle.verify(&rig, &rig.open_volume()[0], true);
            let group = record(&used[0]).groups[0];
            assert!(group.guarded && !group.loss_accepted, "seed {seed}, {turn}: {group:?}");
            assert_eq!(rig.status().region_map.lost_pages, u64::from(turn == 0));
            if turn == 2 {
                rig.replace(1, &all[5]).unwrap();
                used[1] = all[5].clone();
                rig.wait();
                assert_eq!(rig.status().state, ArrayState::Optimal, "seed {seed}");
                assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
                oracle.verify(&rig, &rig.open_volume()[0], true);
                assert!(record(&used[0]).groups[0].guarded, "seed {seed}");
            }
        }
    }
}

/// As far as the rebuild, not as the resync after it: all is whole again, and no drive is needed.
fn filled_anew(level: Level, all: &[SharedSimDrive], seed: u64) -> (Rig, Rc<Oracle>) {
    let oracle = map_lost(level, &all[..5], seed % 2 == 0, seed);
    let rig = Rig::new(seed + 10, 1);
    rig.assemble(&references(&all[..5]), DEGRADED).unwrap();
    rig.replace(1, &all[5]).unwrap();
    while record(&all[0]).slots[1].state != format::SlotState::InSync {
        rig.world.run_for(Nanos::from_micros(20));
    }
    assert!(!record(&all[0]).groups[0].guarded, "seed {seed}: it owes the resync");
    (rig, oracle)
}

#[test]
fn a_drive_that_goes_before_forgotten_regions_are_right_costs_nothing() {
    for (seed, level) in (130..).zip([Level::Raid5, Level::Raid6, Level::Raid5, Level::Raid6]) {
        let all = drives(7, seed, false);
        let (rig, oracle) = filled_anew(level, &all, seed);
        let mut used = [0, 5, 2, 3, 4].map(|i| all[i].clone());
        rig.fail(3).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
        rig.world.run_for(Nanos::from_millis(10));
        rig.world.crash();
        oracle.crashed();
        let rig = Rig::new(seed + 20, 1);
        rig.assemble(&references(&used), DEGRADED).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
        rig.replace(3, &all[6]).unwrap();
        used[3] = all[6].clone();
        rig.wait();
        assert_eq!((rig.status().state, rig.scrub(false).mismatches), (ArrayState::Optimal, 0));
        oracle.verify(&rig, &rig.open_volume()[0], true);
        assert!(record(&used[0]).groups[0].guarded, "seed {seed}");
    }
}

#[test]
fn a_stop_before_forgotten_regions_are_right_is_clean() {
    for (seed, level) in (140..).zip([Level::Raid5, Level::Raid6, Level::Raid5, Level::Raid6]) {
        let all = drives(6, seed, false);
        let (rig, oracle) = filled_anew(level, &all, seed);
        rig.stop();
        // One is not there any more when it is started.
        let left = [0, 5, 2, 4].map(|i| all[i].clone());
        for turn in 0..2 {
            let rig = Rig::new(seed + 20 + turn, 1);
            rig.assemble(&references(&left), DEGRADED).unwrap();
            oracle.verify(&rig, &rig.open_volume()[0], true);
            rig.replace(3, &all[3]).unwrap();
            if turn == 0 {
                rig.world.crash();
                oracle.crashed();
                continue;
            }
            rig.wait();
            assert_eq!((rig.status().state, rig.scrub(false).mismatches), (ArrayState::Optimal, 0));
            oracle.verify(&rig, &rig.open_volume()[0], true);
        }
    }
}

/// What is written where nobody wrote before the map was lost is there when another drive fails,
/// also after a crash: redundancy that never was right is not followed, but made anew.
#[test]
fn what_is_written_after_a_map_was_lost_survives_another_failure() {
    for seed in 110..114 {
        let all = drives(5, seed, false);
        map_lost(Level::Raid6, &all, seed % 2 == 0, seed);
        let mut rig = Rig::new(seed + 10, 1);
        rig.assemble(&references(&all), DEGRADED).unwrap();
        let layout = record(&all[3]).layout().unwrap();
        let strip = u64::from(layout.strip_bytes());
        let of_3 = |at: &u64| {
            let place = layout.locate(*at);
            layout.slot(place.group, place.stripe, place.strip).index() == 3
        };
        let strips: Vec<u64> =
            (BEYOND..BEYOND + BYTES).step_by(strip as usize).filter(of_3).collect();
        assert!(!strips.is_empty());
        let content = |at: u64| vec![(at / strip) as u8 | 1; strip as usize];
        let halves = strips.split_at(strips.len() / 2);
        for half in [halves.0, halves.1] {
            for at in half {
                common::write(&rig, &rig.open_volume()[0], *at, &content(*at)).unwrap();
            }
            if seed >= 112 {
                rig.world.crash();
                rig = Rig::new(seed + 20, 1);
                rig.assemble(&references(&all), DEGRADED).unwrap();
            }
        }
        rig.fail(3).unwrap();
        for at in strips {
            let got = common::read(&rig, &rig.open_volume()[0], at, strip);
            assert!(got.as_ref() == Ok(&content(at)), "seed {seed}: what was written at {at}");
        }
    }
}

/// Loss is accepted only where there may be one.
#[test]
fn a_group_that_owes_nothing_accepts_nothing() {
    let all = drives(5, 30, false);
    let rig = Rig::new(30, 1);
    rig.create(Level::Raid6, &all, 16 << 10).unwrap();
    rig.volume(BYTES);
    rig.fail(1).unwrap();
    rig.stop();
    let rig = Rig::new(31, 1);
    rig.assemble(&references(&all), FORCE).unwrap();
    assert!(!record(&all[0]).groups[0].loss_accepted);
}

//! The barrier (D2): once a drive is out, nothing it says reaches a host or a parity, on any
//! core, however late mail and completions are; and flushes cover what hosts believe.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{DRIVE_BYTES, Machine, Rig, drives, references};
use engine::Volume;
use engine::manage::command::StartOptions;
use layout::Level;
use sim::drive::{OpKind, Stage};
use sim::{Rng, SharedSimDrive};
use std::cell::RefCell;
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = MIB;
const MIX: Mix = Mix { tasks: 12, operations: 40, blocks_most: 60, read_percent: 60 };

fn overwrite(drive: &SharedSimDrive, seed: u64) {
    let mut random = vec![0; DRIVE_BYTES as usize];
    Rng::new(seed).fill(&mut random);
    drive.overwrite(0, &random);
}

/// A slow machine with a new array and a filled volume.
fn filled(
    level: Level,
    drives: &[SharedSimDrive],
    seed: u64,
) -> (Rig, Vec<Volume<Machine>>, Rc<Oracle>) {
    let rig = Rig::slow(seed);
    rig.create(level, drives, STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    let oracle = Oracle::new(BYTES, false);
    oracle.start(&rig, &volumes, Mix { read_percent: 0, ..MIX }, seed);
    oracle.finish(&rig);
    (rig, volumes, oracle)
}

/// A drive is taken out while everything runs; the moment that is acknowledged, or a write that
/// missed it is, its bytes change.
fn pulled(level: Level, width: usize, seed: u64) {
    let drives = drives(width, seed, false);
    let (rig, volumes, oracle) = filled(level, &drives, seed);
    let slot = seed as usize % width;
    drives[slot].set_latency(Nanos::from_micros(5), Nanos::from_micros(2_000));
    oracle.start(&rig, &volumes, MIX, seed + 1);
    rig.world.run_for(Nanos::from_micros(seed * 53 % 1_500));
    let answer = rig.send(|r| {
        engine::manage::command::Request::Fail("a".into(), vec![format!("slot:{slot}")], r)
    });
    while answer.lock().unwrap().is_none() {
        rig.world.step();
    }
    overwrite(&drives[slot], seed);
    oracle.finish(&rig);
    oracle.verify(&rig, &volumes[1], true);
    rig.stop();
    let rig = Rig::new(seed + 1, 1);
    rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    oracle.verify(&rig, &rig.open_volume()[0], true);
}

#[test]
fn a_drive_that_is_out_is_heard_no_more() {
    for seed in 0..14 {
        pulled(Level::Raid5, 4, seed);
        pulled(Level::Raid6, 5, seed);
        pulled(Level::Raid1, 2, seed);
    }
}

/// A write that missed a drive is acknowledged: from then on no core reads that drive.
fn missed(level: Level, width: usize, seed: u64) {
    let drives = drives(width, seed, false);
    let (rig, volumes, oracle) = filled(level, &drives, seed);
    let drive = &drives[seed as usize % width];
    drive.set_latency(Nanos::from_micros(5), Nanos::from_micros(1_000));
    drive.fail_writes(0, 1);
    let reads = Mix { read_percent: 100, operations: 80, ..MIX };
    let (model, volume, victim) = (oracle.clone(), volumes[0].clone(), drive.clone());
    io::Env::spawn(&rig.world.env(CoreId(0)), io::Priority::First, async move {
        // Full rows reach every drive; reads of other tasks go on.
        let before = victim.counters().errors;
        while victim.counters().errors == before {
            model.write(&volume, 0, 256 << 10, false).await.unwrap();
        }
        overwrite(&victim, 9);
    });
    let elsewhere = Oracle::fork(&oracle);
    elsewhere.forgive(0, 256 << 10);
    elsewhere.start(&rig, &volumes, reads, seed + 1);
    elsewhere.finish(&rig);
    rig.world.run_for(Nanos::from_millis(20));
    oracle.verify(&rig, &volumes[1], true);
}

#[test]
fn an_acknowledged_write_that_missed_a_drive_hides_it_from_all_cores() {
    for seed in 0..12 {
        missed(Level::Raid5, 4, seed);
        missed(Level::Raid1, 3, seed);
        missed(Level::Raid10, 4, seed);
    }
}

/// What a host saw: a flush or a durable write, when it began and ended, and its bytes.
#[derive(Clone, Copy)]
struct Seen {
    began: u64,
    ended: u64,
    flush: bool,
}

/// Every write to the data areas that was done before a client's flush began, or within a durable
/// write, is covered by the drive's own FUA or flush before the client heard of it.
fn flush_order(level: Level, width: usize, seed: u64) {
    let drives = drives(width, seed, true);
    let rig = Rig::new(seed, 1 + (seed % 2) as u16);
    rig.create(level, &drives, STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    drives.iter().for_each(SharedSimDrive::clear_log);
    let oracle = Oracle::new(BYTES, true);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let load = Mix { tasks: 4, operations: 30, read_percent: 20, ..MIX };
    oracle.start(&rig, &volumes, load, seed);
    for (core, volume) in volumes.iter().enumerate() {
        let (volume, model, seen) = (volume.clone(), oracle.clone(), seen.clone());
        let env = rig.world.env(CoreId(core as u16));
        let clock = env.clone();
        io::Env::spawn(&env, io::Priority::First, async move {
            for _ in 0..20 {
                let began = clock.sequence();
                model.flush(&volume).await.unwrap();
                seen.borrow_mut().push(Seen { began, ended: clock.sequence(), flush: true });
                io::Env::sleep(&clock, Nanos::from_micros(100)).await;
            }
        });
    }
    oracle.finish(&rig);
    rig.world.run_for(Nanos::from_millis(20));
    assert_eq!(seen.borrow().len(), 20 * volumes.len());
    // Alone on the machine: every write it causes is its own.
    for at in 0..10 {
        let (volume, model) = (volumes[0].clone(), oracle.clone());
        let clock = rig.env();
        let one = rig.world.block_on(CoreId(0), async move {
            let began = clock.sequence();
            model.write(&volume, at * 9 * 512, 40 * 512, true).await.unwrap();
            Seen { began, ended: clock.sequence(), flush: false }
        });
        seen.borrow_mut().push(one);
    }
    for drive in &drives {
        covered(drive, &seen.borrow(), seed);
    }
}

fn covered(drive: &SharedSimDrive, seen: &[Seen], seed: u64) {
    let log = drive.log();
    let ends = |request: u64| {
        let end = |e: &&sim::drive::LogEntry| e.request == request && e.stage != Stage::Submitted;
        log.iter().find(end).map(|e| e.sequence)
    };
    let began =
        |kind: OpKind| log.iter().filter(move |e| e.kind == kind && e.stage == Stage::Submitted);
    let flushes: Vec<(u64, u64)> =
        began(OpKind::Flush).filter_map(|e| Some((e.sequence, ends(e.request)?))).collect();
    for write in began(OpKind::Write).filter(|e| !e.fua) {
        let Some(end) = ends(write.request) else { continue };
        for s in seen {
            let due = if s.flush { end < s.began } else { s.began < end && end < s.ended };
            let flushed = flushes.iter().any(|(from, to)| end < *from && *to < s.ended);
            assert!(!due || flushed, "seed {seed}: acknowledged ahead of the drive's flush");
        }
    }
}

#[test]
fn flushes_and_durable_writes_return_behind_the_drives_own() {
    for seed in 0..4 {
        flush_order(Level::Raid5, 4, seed);
        flush_order(Level::Raid6, 5, seed);
        flush_order(Level::Raid1, 2, seed);
        flush_order(Level::Raid10, 4, seed);
        flush_order(Level::Raid0, 3, seed);
        flush_order(Level::Jbod, 2, seed);
    }
}

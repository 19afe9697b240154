//! The region map: arrays usable at once on drives full of random bytes, never-written bands, what
//! a crash leaves to be resynced, what a returned drive lacks, discarded bands, lost pages.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{
    DRIVE_BYTES, FORCE, Rig, drives, duplicates, record, reference, references, spoil_map,
};
use engine::manage::command::{ArrayState, ManageError, Request, StartOptions, TaskKind};
use io::{Blocks, Pool};
use layout::{Level, Place};
use sim::drive::{DiscardContent, LogEntry, OpKind, Stage};
use sim::{DriveConfig, Rng, SharedSimDrive};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos, StripIndex};

const STRIP: u32 = 64 << 10;

/// Level, width, how many may be lost.
const LEVELS: &[(Level, usize, usize)] = &[
    (Level::Raid0, 3, 0),
    (Level::Jbod, 2, 0),
    (Level::Raid1, 2, 1),
    (Level::Raid5, 4, 1),
    (Level::Raid6, 5, 2),
    (Level::Raid10, 4, 1),
];

const MIX: Mix = Mix { tasks: 4, operations: 25, blocks_most: 200, read_percent: 30 };

fn make(rig: &Rig, level: Level, drives: &[SharedSimDrive]) {
    rig.create(level, drives, STRIP).unwrap();
}

/// Requests that touched the data area of a drive.
fn of_data(drive: &SharedSimDrive, start: u64) -> Vec<LogEntry> {
    let tail = format::tail_offset(drive.info().bytes);
    let data = |e: &LogEntry| e.offset >= start && e.offset < tail && e.bytes > 0;
    drive.log().into_iter().filter(|e| e.stage == Stage::Submitted && data(e)).collect()
}

fn bytes_of(log: &[LogEntry], kind: OpKind) -> u64 {
    log.iter().filter(|e| e.kind == kind).map(|e| e.bytes).sum()
}

/// Everything reads back, parity agrees, and any tolerated number of drives may go.
fn right(rig: Rig, oracle: &Rc<Oracle>, drives: &[SharedSimDrive], lose: usize, seed: u64) {
    oracle.verify(&rig, &rig.open_volume()[0], true);
    rig.wait();
    oracle.verify(&rig, &rig.open_volume()[0], true);
    if lose > 0 {
        assert_eq!(rig.scrub(true).mismatches, 0, "seed {seed}");
    }
    assert_eq!(rig.status().state, ArrayState::Optimal, "seed {seed}");
    rig.stop();
    assert!(record(&drives[0]).groups.iter().all(|g| !g.unclean), "seed {seed}: clean");
    let mut rng = Rng::new(seed);
    let mut left = duplicates(drives);
    for _ in 0..lose {
        left.remove(rng.index(left.len()));
    }
    let rig = Rig::new(seed + 77, 1);
    let options = StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
    rig.assemble(&references(&left), options).unwrap();
    oracle.verify(&rig, &rig.open_volume()[0], false);
}

#[test]
fn an_array_is_usable_at_once_and_reads_zeros_without_its_drives() {
    for (level, width, _) in LEVELS.iter().copied() {
        let drives = drives(width, 1, true);
        let rig = Rig::new(1, 2);
        make(&rig, level, &drives);
        let size = rig.status().size_bytes;
        let volumes = rig.volume(size);
        let start = record(&drives[0]).data_offset;
        assert!(drives.iter().all(|d| of_data(d, start).is_empty()), "{level}: nothing is zeroed");
        drives.iter().for_each(SharedSimDrive::clear_log);
        for (core, volume) in (0u16..).zip(&volumes) {
            let volume = volume.clone();
            rig.world.block_on(CoreId(core), async move {
                volume.write_zeroes(512, size - 4096, true).await.unwrap();
                volume.discard(0, size).await.unwrap();
                let (result, got) = volume.read(0, Pool::single(size as usize)).await;
                assert!(result == Ok(()) && got.iter().all(|b| *b == 0));
            });
        }
        let log: Vec<_> = drives.iter().flat_map(SharedSimDrive::log).collect();
        assert!(log.is_empty(), "{level}: {log:?}");
        // One write: what is zeroed is its band, and no other band is touched.
        let volume = volumes[0].clone();
        rig.world.block_on(CoreId(0), async move {
            volume.write(0, Pool::single(512).freeze(), false).await.unwrap();
        });
        for drive in &drives {
            let log = of_data(drive, start);
            assert!(log.iter().all(|e| e.offset + e.bytes <= start + MIB), "{level}");
            assert!(bytes_of(&log, OpKind::WriteZeroes) <= MIB, "{level}");
        }
        let status = rig.status().region_map;
        let redundant = !matches!(level, Level::Raid0 | Level::Jbod);
        assert_eq!(status.dirty_regions, u64::from(redundant));
        // In parts it says the same: the write is in the first one, and nothing in the others.
        let (first, others) = status.parts.split_first().unwrap();
        assert!(first.written_percent > 0 && first.regions > 0, "{level}: {first:?}");
        assert_eq!(first.dirty_regions, status.dirty_regions);
        assert!(others.iter().all(|part| (part.written_percent, part.dirty_regions) == (0, 0)));
        assert!(others.len() < 256 && others.iter().all(|part| part.regions <= first.regions));
        assert_eq!(record(&drives[0]).groups[0].unclean, redundant);
    }
}

#[test]
fn every_core_sees_what_another_wrote_first() {
    for seed in 0..6 {
        for (at, (level, width, lose)) in LEVELS.iter().copied().enumerate() {
            let drives = drives(width, seed, seed % 2 == 0);
            drives.iter().for_each(|d| d.set_write_zeroes(seed % 3 > 0));
            let rig = Rig::with(slow(seed, 1 + (seed % 4) as u16));
            make(&rig, level, &drives);
            let oracle = Oracle::new(3 * MIB, seed % 2 == 0);
            let volumes = rig.volume(3 * MIB);
            oracle.start(&rig, &volumes, MIX, seed + at as u64);
            oracle.finish(&rig);
            drop(volumes);
            right(rig, &oracle, &drives, lose, seed);
        }
    }
}

fn slow(seed: u64, cores: u16) -> sim::WorldConfig {
    let mut config = sim::WorldConfig::new(seed).with_cores(cores);
    config.mail_delay_most = Nanos::from_micros([20, 200, 1_000][seed as usize % 3]);
    config
}

/// Drives of more than one region: 64 bands and some.
fn large(count: usize, seed: u64, cache: bool) -> Vec<SharedSimDrive> {
    let config = |i| DriveConfig::new(74 * MIB, seed * 100 + i as u64).with_cache(cache);
    (0..count).map(|i| SharedSimDrive::new(config(i))).collect()
}

fn write_at(rig: &Rig, oracle: &Rc<Oracle>, at: u64, bytes: u64) {
    let (volume, model) = (rig.open_volume().remove(0), oracle.clone());
    rig.world.block_on(CoreId(0), async move {
        model.write(&volume, at, bytes, true).await.unwrap();
    });
}

#[test]
fn a_crash_owes_the_resync_of_dirty_regions_and_their_written_bands() {
    for (level, width, lose) in [(Level::Raid5, 3, 1), (Level::Raid1, 2, 1)] {
        let drives = large(width, 5, false);
        let rig = Rig::new(5, 1);
        make(&rig, level, &drives);
        let size = rig.status().size_bytes;
        drop(rig.volume(size));
        let oracle = Oracle::new(size, false);
        let second = size / 70 * 65;
        write_at(&rig, &oracle, 0, 200 << 10);
        rig.world.run_for(Nanos::from_millis(10_000));
        assert_eq!(rig.status().region_map.dirty_regions, 0, "cleaned lazily");
        write_at(&rig, &oracle, second, 4096);
        rig.world.crash();
        common::hide_pages(&drives);
        oracle.crashed();
        drives.iter().for_each(SharedSimDrive::clear_log);
        let rig = Rig::new(6, 1);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        rig.wait();
        let start = record(&drives[0]).data_offset;
        for drive in &drives {
            let log = of_data(drive, start);
            let first = start + 64 * MIB;
            assert!(log.iter().all(|e| e.offset >= first), "{level}: the clean region is left");
            assert!(bytes_of(&log, OpKind::Read) <= MIB, "{level}: a band, no more");
        }
        assert!(drives.iter().any(|d| !of_data(d, start).is_empty()), "{level}: resynced");
        right(rig, &oracle, &drives, lose, 5);
    }
}

/// A drive fails, is written past, and comes back: it gets what it missed, and no more.
fn comes_back(level: Level, width: usize, lose: usize, seed: u64) {
    let cache = seed % 2 == 1;
    let drives = large(width, seed, cache);
    let rig = Rig::new(seed, 1 + (seed % 2) as u16);
    make(&rig, level, &drives);
    let size = rig.status().size_bytes;
    drop(rig.volume(size));
    let oracle = Oracle::new(size, cache);
    let second = size / 70 * 65;
    write_at(&rig, &oracle, 0, 6 * MIB);
    write_at(&rig, &oracle, second, MIB);
    rig.world.run_for(Nanos::from_millis(10_000));
    if seed % 3 == 1 {
        // Acknowledged, in its cache only, and gone with it.
        let (volume, model) = (rig.open_volume().remove(0), oracle.clone());
        rig.world.block_on(CoreId(0), async move {
            model.write(&volume, second, 96 << 10, false).await.unwrap();
        });
    }
    let slot = seed as usize % width;
    drives[slot].vanish();
    drives[slot].power_cut(seed);
    write_at(&rig, &oracle, second + 4096, 300 << 10);
    let _ = rig.fail(slot);
    if seed % 4 < 2 {
        rig.world.run_for(Nanos::from_millis(10_000));
        assert_eq!(rig.status().region_map.dirty_regions, 0, "cleaned without it");
    }
    if seed % 4 == 1 {
        write_at(&rig, &oracle, second + 8192, 512);
    }
    drives[slot].reappear();
    drives[slot].clear_log();
    rig.give_back(slot, &drives[slot]).unwrap();
    rig.wait();
    let start = record(&drives[slot]).data_offset;
    let filled = of_data(&drives[slot], start);
    let first = start + 64 * MIB;
    assert!(filled.iter().all(|e| e.offset >= first), "seed {seed}: only what it missed");
    assert!(bytes_of(&filled, OpKind::Write) > 0, "seed {seed}: it was filled");
    right(rig, &oracle, &drives, lose, seed);
}

#[test]
fn a_drive_that_comes_back_gets_what_it_missed() {
    for seed in 0..4 {
        comes_back(Level::Raid5, 3, 1, seed);
        comes_back(Level::Raid1, 2, 1, seed + 4);
    }
}

/// Under load, again and again, with power cuts: a returned drive is as good as the others.
fn returns_under_load(level: Level, width: usize, lose: usize, seed: u64) {
    let cache = seed % 2 == 1;
    let drives = drives(width, seed, cache);
    let cores = 1 + (seed / 2 % 2) as u16;
    let mut rig = Rig::with(slow(seed, cores));
    make(&rig, level, &drives);
    let oracle = Oracle::new(3 * MIB, cache);
    let mut volumes = rig.volume(3 * MIB);
    let mut rng = Rng::new(seed);
    for round in 0..3 {
        oracle.start(&rig, &volumes, Mix { operations: 60, ..MIX }, seed * 7 + round);
        rig.world.run_for(Nanos::from_micros(rng.below(4_000)));
        let slot = rng.index(width);
        drives[slot].vanish();
        if cache {
            drives[slot].power_cut(seed);
        }
        oracle.finish(&rig);
        if rng.coin() {
            rig.world.run_for(Nanos::from_millis(rng.below(8_000)));
        }
        let _ = rig.fail(slot);
        drives[slot].reappear();
        oracle.start(&rig, &volumes, MIX, seed * 7 + round + 100);
        let back = reference(&drives[slot], slot);
        rig.ask(|r| Request::Replace("a".into(), units::Slot(slot as u16), back, r)).unwrap();
        if rng.coin() && round == 1 {
            // A clean stop in the middle of it.
            rig.world.run_for(Nanos::from_micros(rng.below(2_000)));
            oracle.finish(&rig);
            rig.stop();
            drop((volumes, rig));
            rig = Rig::with(slow(seed + 200, cores));
            rig.assemble(&references(&drives), StartOptions::default()).unwrap();
            volumes = rig.open_volume();
        }
        oracle.finish(&rig);
        rig.wait();
        assert_eq!(rig.status().state, ArrayState::Optimal, "seed {seed}");
    }
    drop(volumes);
    right(rig, &oracle, &drives, lose, seed);
}

#[test]
fn drives_that_come_and_go_under_load_are_caught_up() {
    for seed in 0..6 {
        for (level, width, lose) in &LEVELS[2..] {
            returns_under_load(*level, *width, *lose, seed);
        }
    }
}

/// A drive that was elsewhere meanwhile, or is another one, is filled from the beginning; if it was
/// to be put back by itself it is refused, as it holds what somebody may want.
#[test]
fn only_the_drive_that_left_is_caught_up() {
    let drives = drives(3, 8, false);
    let rig = Rig::new(8, 1);
    make(&rig, Level::Raid5, &drives);
    let oracle = Oracle::new(MIB, false);
    drop(rig.volume(MIB));
    write_at(&rig, &oracle, 0, 64 << 10);
    rig.world.run_for(Nanos::from_millis(10_000));
    rig.fail(1).unwrap();
    // It went on elsewhere, alone, or was rolled back: another epoch than the one it left in.
    let mut own = record(&drives[1]);
    own.sequence += 1;
    own.next_epoch(99);
    let next = format::slot_offsets(DRIVE_BYTES);
    next.iter()
        .for_each(|at| drives[1].overwrite(*at, &format::encode(&own.for_slot(units::Slot(1)))));
    let start = own.data_offset;
    drives[1].overwrite(start, &vec![0x5a; MIB as usize]);
    let before = drives[1].contents().to_vec();
    let refused = rig.give_back(1, &drives[1]);
    assert!(
        matches!(refused, Err(ManageError::NotAsItWent { slot: units::Slot(1), .. })),
        "{refused:?}"
    );
    assert!(drives[1].contents() == before, "nothing of it is written");
    let other = common::drives(1, 9, false).remove(0);
    let refused = rig.give_back(1, &other);
    assert!(matches!(refused, Err(ManageError::NotAsItWent { .. })), "{refused:?}");
    let back = reference(&drives[1], 1);
    rig.ask(|r| Request::Replace("a".into(), units::Slot(1), back, r)).unwrap();
    right(rig, &oracle, &drives, 1, 8);
}

#[test]
fn a_discarded_band_reads_as_zeros_whatever_its_drives_return() {
    use DiscardContent::{Changing, Old, Random, Unsupported, Zero};
    for (i, discard) in [Old, Zero, Random, Changing, Unsupported].into_iter().enumerate() {
        for (level, width, lose) in LEVELS.iter().copied() {
            let seed = 40 + i as u64;
            let drives = drives(width, seed, i % 2 == 0);
            drives.iter().for_each(|d| d.set_discard(discard));
            let rig = Rig::with(slow(seed, 2));
            make(&rig, level, &drives);
            let size = rig.status().size_bytes;
            let volumes = rig.volume(size);
            let row = record(&drives[0]).layout().unwrap().row_bytes(0);
            let oracle = Oracle::new(size, i % 2 == 0);
            oracle.start(&rig, &volumes, Mix { read_percent: 0, ..MIX }, seed);
            oracle.finish(&rig);
            let before = rig.status().region_map.written_bytes;
            let volume = volumes[1].clone();
            rig.world.block_on(CoreId(1), async move {
                volume.discard(512, 2 * row).await.unwrap();
                let (result, got) = volume.read(row, Pool::single(row as usize)).await;
                assert!(result == Ok(()) && got.iter().all(|b| *b == 0), "the whole band in it");
            });
            let after = rig.status().region_map.written_bytes;
            assert!(after < before, "{level}: {before} {after}");
            oracle.forget(row, row);
            oracle.start(&rig, &volumes, MIX, seed + 1);
            oracle.finish(&rig);
            rig.world.crash();
            drop(volumes);
            oracle.crashed();
            let rig = Rig::new(seed + 1, 1);
            rig.assemble(&references(&drives), StartOptions::default()).unwrap();
            right(rig, &oracle, &drives, lose, seed);
        }
    }
}

/// Without a single whole page the map says what is always safe: everything.
#[test]
fn a_lost_map_owes_everything_and_says_so() {
    let drives = drives(4, 3, false);
    let rig = Rig::new(3, 1);
    make(&rig, Level::Raid5, &drives);
    drop(rig.volume(MIB));
    let oracle = Oracle::new(MIB, false);
    write_at(&rig, &oracle, 0, MIB);
    rig.stop();
    spoil_map(&drives[2]);
    let rig = Rig::new(4, 1);
    let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    assert_eq!(status.region_map.lost_pages, 0, "the other drives have it");
    rig.stop();
    drives.iter().enumerate().filter(|(i, _)| *i != 2).for_each(|(_, drive)| spoil_map(drive));
    let rig = Rig::new(5, 1);
    let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    assert_eq!(status.region_map.lost_pages, 0, "the drive that lacked it has it now");
    rig.stop();
    drives.iter().for_each(spoil_map);
    let rig = Rig::new(6, 1);
    let status = rig.assemble(&references(&drives), FORCE).unwrap();
    let map = status.region_map;
    assert_eq!((map.lost_pages, map.written_bytes), (1, status.size_bytes));
    assert!(status.tasks.is_empty() || status.tasks[0].kind == TaskKind::Resync);
    assert_eq!(status.state, ArrayState::Degraded);
    right(rig, &oracle, &drives, 1, 6);
}

/// The pages that a start writes in place of lost ones call everything dirty. Cut short after any
/// request, the next start owes the resync, though the record had said that the array was clean.
#[test]
fn a_lost_map_is_owed_however_often_its_start_is_cut_short() {
    let image = drives(3, 70, false);
    let rig = Rig::new(70, 1);
    make(&rig, Level::Raid5, &image);
    drop(rig.volume(MIB));
    let oracle = Oracle::new(MIB, false);
    write_at(&rig, &oracle, 0, MIB);
    rig.stop();
    image.iter().for_each(spoil_map);
    for submits in 0.. {
        let drives = duplicates(&image);
        let rig = Rig::new(71 + submits, 1);
        rig.world.power_fails_after(submits);
        let list = references(&drives);
        let start = |r| Request::Assemble(None, list, StartOptions::default(), r);
        let over = rig.try_ask(start).is_ok();
        rig.world.crash();
        let rig = Rig::new(71 + submits, 1);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        rig.wait();
        assert_eq!(rig.scrub(true).mismatches, 0, "cut after {submits} requests");
        if over {
            assert!(submits > 12, "{submits}: pages were written");
            break;
        }
    }
}

/// The place of a page on the only drive that is left can't be read any more: what was written is
/// there, and what never was reads as zeros.
#[test]
fn a_page_that_decays_forgets_no_band() {
    for place in 0..2 {
        let drives = drives(2, 8, false);
        let rig = Rig::new(8, 1);
        make(&rig, Level::Raid1, &drives);
        drop(rig.volume(2 * MIB));
        let oracle = Oracle::new(2 * MIB, false);
        write_at(&rig, &oracle, 0, MIB);
        rig.world.crash();
        oracle.crashed();
        let map = record(&drives[0]).areas.map_start;
        drives[0].fail_range(map + place * 4096, 4096);
        let rig = Rig::new(9, 1);
        let status = rig.assemble(&references(&drives[..1]), FORCE).unwrap();
        assert_eq!(status.region_map.lost_pages, 0);
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
}

/// A place that can't be read on any drive may have had a page that called regions dirty.
#[test]
fn a_page_that_decays_leaves_no_region_clean() {
    for place in 0..2 {
        let drives = drives(2, 8, false);
        let rig = Rig::new(8, 1);
        make(&rig, Level::Raid1, &drives);
        drop(rig.volume(MIB));
        let oracle = Oracle::new(MIB, false);
        write_at(&rig, &oracle, 0, MIB);
        rig.stop();
        let rig = Rig::new(9, 1);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        write_at(&rig, &oracle, 4096, 4096);
        rig.world.crash();
        oracle.crashed();
        let map = record(&drives[0]).areas.map_start;
        drives.iter().for_each(|d| d.fail_range(map + place * 4096, 4096));
        let rig = Rig::new(10, 1);
        let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        assert_eq!(status.region_map.dirty_regions, 1, "place {place}");
        right(rig, &oracle, &drives, 1, 10);
    }
}

/// A page that was lost is forgotten until all drives are there, also over a clean stop, and where
/// the place of the page behind it can't be read: what never was written is made right then.
#[test]
fn what_a_page_forgot_is_owed_until_it_is_made_right() {
    for place in 0..2 {
        let (drives, away) = (drives(5, 9, false), 4);
        let rig = Rig::new(9, 1);
        make(&rig, Level::Raid6, &drives);
        drop(rig.volume(rig.status().size_bytes));
        let oracle = Oracle::new(rig.status().size_bytes, false);
        write_at(&rig, &oracle, 0, 4096);
        rig.stop();
        drives.iter().for_each(spoil_map);
        let left = references(&drives[..away]);
        let rig = Rig::new(10, 1);
        let options =
            StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
        rig.assemble(&left, options).unwrap();
        rig.stop();
        assert!(!record(&drives[0]).groups[0].unclean, "it owes nothing that was written");
        let map = record(&drives[0]).areas.map_start;
        drives[..away].iter().for_each(|d| d.fail_range(map + place * 4096, 4096));
        let rig = Rig::new(11, 1);
        let status = rig.assemble(&left, StartOptions::default()).unwrap();
        assert_eq!(status.region_map.dirty_regions, 1, "place {place}");
        let _ = rig.put_back(away, &drives[away]);
        rig.world.run_for(Nanos::from_millis(10_000));
        rig.wait();
        assert_eq!(rig.status().state, ArrayState::Optimal);
        // In a band that was never written, so little that redundancy is changed, not made anew.
        let layout = record(&drives[0]).layout().unwrap();
        let at = layout.row_bytes(0);
        write_at(&rig, &oracle, at, 4096);
        let Place { group, stripe, strip, .. } = layout.locate(at);
        for strip in [strip, StripIndex(layout.k(group))] {
            rig.fail(layout.slot(group, stripe, strip).index()).unwrap();
        }
        let (volume, model) = (rig.open_volume().remove(0), oracle.clone());
        rig.world.block_on(CoreId(0), async move {
            for at in [0, at] {
                model.read(&volume, at, 4096).await.unwrap();
            }
        });
    }
}

/// A block that tells who wrote it: its number, a tag, and bytes drawn from both.
fn told(block: u64, tag: u64) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    Rng::new(tag << 20 | block).fill(&mut bytes);
    bytes[..8].copy_from_slice(&tag.to_le_bytes());
    bytes
}

/// Reads, writes and discards of one band at the same time, from all cores, on drives that answer
/// anything for what was discarded: a block is zeros or what somebody wrote, and never a mixture.
#[test]
fn a_discard_beside_reads_and_writes_shows_nobody_what_drives_return() {
    for seed in 0..12 {
        let (level, width, lose) = LEVELS[seed as usize % LEVELS.len()];
        let drives = drives(width, seed, seed % 2 == 0);
        drives.iter().for_each(|d| d.set_discard(DiscardContent::Changing));
        let rig = Rig::with(slow(seed, 1 + (seed / 2 % 3) as u16));
        make(&rig, level, &drives);
        let volumes = rig.volume(rig.status().size_bytes);
        let row = record(&drives[0]).layout().unwrap().row_bytes(0);
        let left = Rc::new(std::cell::Cell::new(8));
        for task in 0..8u64 {
            let core = (task % volumes.len() as u64) as usize;
            let (volume, left) = (volumes[core].clone(), left.clone());
            let mut rng = Rng::new(seed * 100 + task);
            let env = rig.world.env(CoreId(core as u16));
            io::Env::spawn(&env, io::Priority::First, async move {
                for turn in 0..40 {
                    let block = rng.below(64);
                    if task == 0 {
                        volume.discard(0, row).await.unwrap();
                    } else if task < 4 {
                        let mut data = Pool::single(512);
                        data.copy_from_slice(&told(block, task * 1000 + turn + 1));
                        volume.write(block * 512, data.freeze(), false).await.unwrap();
                    } else {
                        let (result, got) = volume.read(block * 512, Pool::single(512)).await;
                        let tag = u64::from_le_bytes(got[..8].try_into().unwrap());
                        let whole = got.iter().all(|b| *b == 0) || got[..] == told(block, tag);
                        assert!(result == Ok(()) && whole, "{level} seed {seed}: block {block}");
                    }
                }
                left.set(left.get() - 1);
            });
        }
        while left.get() > 0 {
            rig.world.run_for(Nanos::from_millis(1));
        }
        let volume = volumes[0].clone();
        let oracle = Oracle::new(row, false);
        rig.world.block_on(CoreId(0), async move {
            let (result, got) = volume.read(0, Pool::single(64 * 512)).await;
            for (block, got) in got.chunks(512).enumerate() {
                let tag = u64::from_le_bytes(got[..8].try_into().unwrap());
                let whole = got.iter().all(|b| *b == 0) || got[..] == told(block as u64, tag);
                assert!(result == Ok(()) && whole, "{level} seed {seed}: block {block} at the end");
            }
            volume.write_zeroes(0, row, true).await.unwrap();
        });
        drop(volumes);
        right(rig, &oracle, &drives, lose, seed);
    }
}

/// A page that reached only some drives when the power went is on all of them before anything
/// relies on it: then the drive that had it may go.
#[test]
fn a_page_that_reached_some_drives_is_brought_to_all() {
    for submits in 0..40 {
        let drives = drives(2, 5, false);
        let rig = Rig::new(5, 1);
        make(&rig, Level::Raid1, &drives);
        drop(rig.volume(MIB));
        rig.stop();
        let oracle = Oracle::new(MIB, false);
        let rig = Rig::new(6 + submits, 1);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        let volume = rig.open_volume().remove(0);
        // One drive is quick, the other slow: requests reach them at different times.
        let quick = submits as usize % 2;
        drives[quick].set_latency(Nanos::from_micros(1), Nanos::from_micros(2));
        drives[1 - quick].set_latency(Nanos::from_micros(400), Nanos::from_micros(500));
        let (model, first) = (oracle.clone(), volume.clone());
        io::Env::spawn(&rig.env(), io::Priority::First, async move {
            let _ = model.write(&first, 0, 512, true).await;
        });
        rig.world.run_for(Nanos::from_micros(50 * submits));
        rig.world.crash();
        drop(volume);
        oracle.crashed();
        let rig = Rig::new(90 + submits, 1);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        write_at(&rig, &oracle, 4096, 4096);
        rig.world.crash();
        oracle.crashed();
        let rig = Rig::new(190 + submits, 1);
        rig.assemble(&references(&drives[1 - quick..2 - quick]), FORCE).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
}

/// A drive that is put back gets the map of the array as it is before it is filled. Cut short at
/// any request of that, and started alone, it is what it was when it failed, or refused: never a
/// mixture of its own bytes and what the others know.
#[test]
fn a_drive_that_is_put_back_is_as_it_was_or_out() {
    let drives = drives(2, 60, false);
    let rig = Rig::new(60, 1);
    make(&rig, Level::Raid1, &drives);
    drop(rig.volume(2 * MIB));
    let oracle = Oracle::new(2 * MIB, false);
    write_at(&rig, &oracle, 0, 4096);
    rig.fail(1).unwrap();
    let then = oracle.fork();
    write_at(&rig, &oracle, MIB, 4096);
    let put_back = rig.put_back(1, &drives[1]);
    let mut before = rig.world.boundaries();
    let (mut refused, mut started) = (0, 0);
    while put_back.lock().unwrap().is_none() {
        rig.world.run_steps(1);
        if rig.world.boundaries() == before {
            continue;
        }
        before = rig.world.boundaries();
        let alone = drives[1].after_cut(true, before);
        let rig = Rig::new(before, 1);
        match rig.assemble(&references(&[alone]), FORCE) {
            Ok(_) => {
                then.fork().verify(&rig, &rig.open_volume()[0], false);
                started += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 3 && started > 0, "{refused} {started}");
}

/// Two copies of three that left together and are put back, each cut short: the record of one of
/// them calls the other in sync, which has the map of the third by then. Neither starts an array.
#[test]
fn copies_that_are_put_back_do_not_vouch_for_each_other() {
    let drives = drives(3, 62, true);
    let rig = Rig::new(62, 1);
    make(&rig, Level::Raid1, &drives);
    drop(rig.volume(2 * MIB));
    let oracle = Oracle::new(2 * MIB, false);
    write_at(&rig, &oracle, 0, 4096);
    rig.stop();
    // The first goes on alone, for many records, and writes a band that the others never saw.
    for seed in 70..76 {
        let rig = Rig::new(seed, 1);
        rig.assemble(&references(&drives[..1]), FORCE).unwrap();
        rig.stop();
    }
    let rig = Rig::new(63, 1);
    rig.assemble(&references(&drives[..1]), FORCE).unwrap();
    write_at(&rig, &oracle, MIB, 4096);
    let base = [1, 2].map(|slot| drives[slot].duplicate());
    let mut given_up = Vec::new();
    for slot in [1, 2] {
        let drive = &drives[slot];
        drop(rig.put_back(slot, drive));
        let own = || record(&drive.after_cut(true, 1)).slots[slot].state;
        while own() != format::SlotState::Failed {
            assert!(rig.world.run_steps(1), "slot {slot} says by itself that it is out");
        }
        given_up.push(drive.after_cut(true, 1));
        rig.wait();
    }
    let rig = Rig::new(64, 1);
    assert!(rig.assemble(&references(&given_up), FORCE).is_err());
    // One of them beside one that was left as it was: that is the array as it was then.
    let rig = Rig::new(65, 1);
    let both = [given_up[0].clone(), base[1].clone()];
    let status = rig.assemble(&references(&both), FORCE).unwrap();
    assert_eq!(status.state, ArrayState::Degraded);
    // The first is put back there: its own records are newer than those of this history, so it is
    // emptied and filled, and what it says then counts.
    rig.replace(1, &both[0]).unwrap();
    rig.wait();
    rig.stop();
    let rig = Rig::new(66, 1);
    rig.assemble(&references(&both[..1]), FORCE).unwrap();
    assert_eq!(record(&both[0]).slots[1].state, format::SlotState::InSync);
}

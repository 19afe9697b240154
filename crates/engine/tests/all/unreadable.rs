//! Drives that can't read some blocks: what can be recovered is written back, what can't be is
//! never called right, and people see both.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Machine, Rig, drives, flush, record, references};
use engine::Volume;
use engine::manage::command::{ArrayState, ErrorCounts, SlotHealth, StartOptions};
use io::{BlockError, Blocks, Env, Pool, Priority};
use layout::Level;
use sim::{DriveConfig, Rng, SharedSimDrive};
use std::cell::Cell;
use std::rc::Rc;
use units::{CoreId, GroupNo, MIB, Nanos, Slot, StripIndex, StripeNo};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = 3 * MIB;
const MIX: Mix = Mix { tasks: 6, operations: 60, blocks_most: 80, read_percent: 0 };

/// A new array with a filled volume.
fn filled(
    level: Level,
    drives: &[SharedSimDrive],
    seed: u64,
) -> (Rig, Volume<Machine>, Rc<Oracle>) {
    let rig = Rig::new(seed, 1 + (seed % 2) as u16);
    rig.create(level, drives, STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    let oracle = Oracle::new(BYTES, false);
    oracle.start(&rig, &volumes, MIX, seed);
    oracle.finish(&rig);
    (rig, volumes[0].clone(), oracle)
}

/// The slot that has a strip of a stripe, and where on its drive.
fn place(drive: &SharedSimDrive, stripe: u64, strip: u16) -> (usize, u64) {
    let found = record(drive);
    let layout = found.layout().unwrap();
    let slot = layout.slot(GroupNo(0), StripeNo(stripe), StripIndex(strip));
    (slot.index(), found.data_offset + layout.drive_offset(GroupNo(0), StripeNo(stripe)))
}

/// An array that is started after a crash, with random bytes in all redundant strips.
fn unclean(level: Level, drives: &[SharedSimDrive], seed: u64) -> (Rig, Rc<Oracle>) {
    let (rig, _volume, oracle) = filled(level, drives, seed);
    rig.world.crash();
    common::hide_pages(drives);
    let layout = record(&drives[0]).layout().unwrap();
    let (mut rng, mut random) = (Rng::new(seed), vec![0; STRIP as usize]);
    for stripe in 0..layout.stripes(GroupNo(0)) {
        for strip in layout.k(GroupNo(0))..layout.k(GroupNo(0)) + layout.m(GroupNo(0)) {
            let (slot, at) = place(&drives[0], stripe, strip);
            rng.fill(&mut random);
            drives[slot].overwrite(at, &random);
        }
    }
    (Rig::new(seed + 1, 1 + (seed % 2) as u16), oracle)
}

fn write(rig: &Rig, volume: &Volume<Machine>, at: u64, bytes: usize) -> Result<(), BlockError> {
    let volume = volume.clone();
    let data = Pool::single(bytes);
    rig.world.block_on(CoreId(0), async move { volume.write(at, data.freeze(), false).await })
}

fn read(rig: &Rig, volume: &Volume<Machine>, at: u64, bytes: usize) -> Result<(), BlockError> {
    let volume = volume.clone();
    rig.world.block_on(CoreId(0), async move { volume.read(at, Pool::single(bytes)).await.0 })
}

fn errors(rig: &Rig, slot: usize) -> ErrorCounts {
    rig.status().slots[slot].errors
}

/// What the resync would write anyway is no reason to stop.
#[test]
fn a_resync_writes_over_unreadable_redundancy() {
    for (seed, (level, width, strip)) in
        [(Level::Raid5, 4, 3), (Level::Raid6, 5, 4), (Level::Raid1, 2, 1), (Level::Raid1, 2, 0)]
            .into_iter()
            .enumerate()
    {
        let drives = drives(width, seed as u64, false);
        let (rig, oracle) = unclean(level, &drives, seed as u64);
        let (slot, at) = place(&drives[0], 3, strip);
        if strip == 0 {
            // The pinned copy can't be read: the other is right.
            let (other, at) = place(&drives[0], 3, 1);
            let content = drives[slot].peek(at, STRIP.into());
            drives[other].overwrite(at, &content);
        }
        drives[slot].fail_range(at + 1024, 512);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        assert_eq!(rig.status().state, ArrayState::Degraded, "its redundancy is not right yet");
        rig.wait();
        assert_eq!(rig.status().state, ArrayState::Optimal, "{level}");
        assert_eq!(errors(&rig, slot).rewritten, 1, "{level}");
        assert_eq!(rig.scrub(false).mismatches, 0);
        drives[(slot + 1) % width].vanish();
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
}

#[test]
fn a_rebuild_gets_over_unreadable_blocks_that_others_give() {
    for (seed, (level, width)) in [(Level::Raid6, 5), (Level::Raid1, 3)].into_iter().enumerate() {
        let seed = 20 + seed as u64;
        let drives = drives(width + 1, seed, false);
        let (rig, volume, oracle) = filled(level, &drives[..width], seed);
        let (slot, at) = place(&drives[0], 4, 0);
        let victim = (slot + 1) % width;
        drives[slot].fail_range(at, 4096);
        rig.fail(victim).unwrap();
        rig.replace(victim, &drives[width]).unwrap();
        rig.wait();
        assert_eq!(rig.status().state, ArrayState::Optimal);
        let found = rig.scrub(true);
        assert_eq!((found.mismatches, found.repaired), (1, 1), "{level}");
        oracle.verify(&rig, &volume, false);
        assert_eq!(rig.scrub(false).mismatches, 0);
    }
}

#[test]
fn a_scrub_tells_what_it_can_not_read_and_writes_it_back() {
    for (seed, (level, width, strips)) in [
        (Level::Raid5, 4, &[1][..]),
        (Level::Raid5, 4, &[3]),
        (Level::Raid5, 4, &[0, 2]),
        (Level::Raid6, 5, &[0, 1, 2, 4]),
        (Level::Raid1, 2, &[0, 1]),
        (Level::Raid10, 4, &[1]),
    ]
    .into_iter()
    .enumerate()
    {
        let seed = 30 + seed as u64;
        let drives = drives(width, seed, false);
        let (rig, volume, oracle) = filled(level, &drives, seed);
        // Of each strip other blocks, so that the rest gives them.
        for (i, strip) in strips.iter().enumerate() {
            let (slot, at) = place(&drives[0], 2, *strip);
            drives[slot].fail_range(at + i as u64 * 1024, 1024);
        }
        let size = rig.status().region_map.written_bytes;
        let told = rig.scrub(false);
        assert_eq!((told.mismatches, told.repaired), (1, 0), "{level}");
        assert!(told.checked_bytes < size);
        let found = rig.scrub(true);
        assert_eq!((found.mismatches, found.repaired, found.checked_bytes), (1, 1, size));
        let again = rig.scrub(false);
        assert_eq!((again.mismatches, again.checked_bytes), (0, size));
        let sum: u64 = (0..width).map(|slot| errors(&rig, slot).rewritten).sum();
        assert!(sum >= strips.len() as u64, "{level}: {sum}");
        oracle.verify(&rig, &volume, false);
        rig.stop();
    }
}

/// The same blocks of two strips: nothing gives them, nothing is written over them.
#[test]
fn a_scrub_leaves_alone_what_it_can_not_recover() {
    let drives = drives(4, 40, false);
    let (rig, _volume, _) = filled(Level::Raid5, &drives, 40);
    let places = [0, 1].map(|strip| place(&drives[0], 2, strip));
    let before = places.map(|(slot, at)| drives[slot].peek(at, STRIP.into()));
    places.iter().for_each(|(slot, at)| drives[*slot].fail_range(*at, 512));
    let found = rig.scrub(true);
    assert_eq!((found.mismatches, found.repaired), (1, 0));
    assert_eq!(places.map(|(slot, at)| drives[slot].peek(at, STRIP.into())), before);
    places.iter().for_each(|(slot, _)| drives[*slot].clear_faults());
    assert_eq!(rig.scrub(false).mismatches, 0);
}

/// Host reads get their data, and the drive gets its blocks back.
#[test]
fn a_read_writes_back_what_its_drive_could_not_read() {
    for (seed, (level, width)) in
        [(Level::Raid5, 4), (Level::Raid6, 5), (Level::Raid1, 3), (Level::Raid10, 4)]
            .into_iter()
            .enumerate()
    {
        let seed = 50 + seed as u64;
        let drives = drives(width, seed, false);
        let (rig, volume, oracle) = filled(level, &drives, seed);
        drives[1].fail_range(record(&drives[0]).data_offset + 512, 128 << 10);
        oracle.verify(&rig, &volume, false);
        let counts = errors(&rig, 1);
        assert!(counts.read_errors > 0 && counts.rewritten > 0, "{level}: {counts:?}");
        assert_eq!(rig.status().state, ArrayState::Optimal);
        // What no host read: parity, and copies that others were read for.
        let found = rig.scrub(true);
        assert_eq!(found.mismatches, found.repaired);
        let before = errors(&rig, 1);
        assert_eq!(rig.scrub(false).mismatches, 0);
        oracle.verify(&rig, &volume, false);
        assert_eq!(errors(&rig, 1), before, "nothing is unreadable any more");
    }
}

/// Reads all of the volume now and then until the array is not optimal.
fn until_noticed(rig: &Rig, volume: &Volume<Machine>, oracle: &Rc<Oracle>) {
    for _ in 0..4 {
        oracle.verify(rig, volume, false);
    }
    assert_eq!(rig.status().state, ArrayState::Degraded);
}

#[test]
fn a_drive_that_never_reads_what_was_written_back_is_taken_out() {
    let drives = drives(4, 60, false);
    let (rig, volume, oracle) = filled(Level::Raid5, &drives, 60);
    let (drive, env, over) = (drives[2].clone(), rig.env(), Rc::new(Cell::new(false)));
    let ended = over.clone();
    rig.env().spawn(Priority::First, async move {
        while !ended.get() {
            drive.fail_range(MIB, 4 * MIB);
            env.sleep(Nanos(500)).await;
        }
    });
    until_noticed(&rig, &volume, &oracle);
    assert_eq!(rig.status().slots[2].health, SlotHealth::Failed);
    over.set(true);
}

#[test]
fn a_drive_that_refuses_what_is_written_back_is_taken_out() {
    for media in [false, true] {
        let drives = drives(4, 61, false);
        let (rig, volume, oracle) = filled(Level::Raid5, &drives, 61);
        drives[2].fail_range(record(&drives[0]).data_offset, 512);
        if media {
            drives[2].spoil_writes(0, u64::MAX);
        } else {
            drives[2].fail_writes(0, u64::MAX);
        }
        until_noticed(&rig, &volume, &oracle);
        assert_eq!(rig.status().slots[2].health, SlotHealth::Failed);
    }
}

/// Counts are of the drive that is there.
#[test]
fn a_replacement_starts_without_errors() {
    let drives = drives(5, 62, false);
    let (rig, volume, oracle) = filled(Level::Raid5, &drives[..4], 62);
    drives[1].fail_range(record(&drives[0]).data_offset, 4096);
    oracle.verify(&rig, &volume, false);
    assert!(errors(&rig, 1).read_errors > 0);
    rig.fail(1).unwrap();
    rig.replace(1, &drives[4]).unwrap();
    rig.wait();
    assert_eq!(errors(&rig, 1), ErrorCounts::default());
    assert_eq!(rig.status().slots[1].slot, Slot(1));
}

/// Without redundancy a block that can't be written costs its request and nothing else.
#[test]
fn without_redundancy_a_bad_block_costs_its_request_only() {
    for level in [Level::Raid0, Level::Jbod] {
        let drives = drives(3, 70, true);
        let rig = Rig::new(70, 1);
        rig.create(level, &drives, STRIP).unwrap();
        let volume = rig.volume(BYTES).remove(0);
        drives.iter().for_each(|drive| drive.spoil_writes(0, 1));
        assert_eq!(write(&rig, &volume, 0, 4096), Err(BlockError::Unavailable));
        drives.iter().for_each(SharedSimDrive::clear_faults);
        assert_eq!(write(&rig, &volume, 0, 4096), Ok(()));
        assert_eq!((flush(&rig, &volume), rig.status().state), (Ok(()), ArrayState::Optimal));
        // A drive that can't read some blocks stays too, and is counted.
        drives[0].fail_range(MIB, 4 * MIB);
        assert_eq!(read(&rig, &volume, 0, 4096), Err(BlockError::Unavailable));
        assert_eq!(rig.status().state, ArrayState::Optimal);
        assert!(errors(&rig, 0).read_errors > 0);
        // One that fails requests goes.
        drives[0].clear_faults();
        drives[0].fail_writes(0, 1);
        assert_eq!(write(&rig, &volume, 0, 4096), Err(BlockError::Unavailable));
        rig.world.run_for(Nanos::from_millis(10));
        assert_eq!(rig.status().state, ArrayState::Failed);
        assert_eq!(flush(&rig, &volume), Err(BlockError::Unavailable));
    }
}

/// A block that can't be written costs no other block.
#[test]
fn without_redundancy_all_other_blocks_stay_in_service() {
    let drives = drives(3, 71, false);
    let rig = Rig::new(71, 2);
    rig.create(Level::Raid0, &drives, STRIP).unwrap();
    let volume = rig.volume(BYTES).remove(0);
    let blocks = BYTES / 4096;
    for at in 0..blocks {
        common::write(&rig, &volume, at * 4096, &[at as u8; 4096]).unwrap();
    }
    let bad = 77;
    drives.iter().for_each(|drive| drive.spoil_writes(0, 1));
    let refused = common::write(&rig, &volume, bad * 4096, &[0xbd; 4096]);
    assert_eq!(refused, Err(BlockError::Unavailable));
    drives.iter().for_each(SharedSimDrive::calm);
    for at in (0..blocks).filter(|at| *at != bad) {
        let block = common::read(&rig, &volume, at * 4096, 4096).expect("it was not touched");
        assert!(block.iter().all(|byte| *byte == at as u8), "block {at}");
        common::write(&rig, &volume, at * 4096, &[!(at as u8); 4096]).expect("nor is it now");
    }
    assert_eq!(rig.status().state, ArrayState::Optimal);
}

/// A band that can't be zeroed can't be written first. Those before it can, with which it is tried
/// ahead, and those that are asked for together with it.
#[test]
fn a_band_that_cant_be_zeroed_costs_no_other() {
    for (level, together) in
        [(Level::Raid0, false), (Level::Raid0, true), (Level::Jbod, false), (Level::Jbod, true)]
    {
        let drive = |i: u64| SharedSimDrive::new(DriveConfig::new(24 * MIB, 7100 + i));
        let drives = [drive(0), drive(1)];
        let rig = Rig::new(71, 1);
        rig.create(level, &drives, STRIP).unwrap();
        let volume = rig.volume(rig.status().size_bytes).remove(0);
        let (row, start) = {
            let record = record(&drives[0]);
            (record.layout().unwrap().row_bytes(0), record.data_offset)
        };
        drives[0].spoil_writes_within(start + 6 * MIB..start + 7 * MIB);
        let at = move |band: usize| band as u64 * row;
        let results = Rc::new(std::cell::RefCell::new(vec![None; 12]));
        for band in 0..12 {
            let (volume, results) = (volume.clone(), results.clone());
            let mut data = Pool::single(4096);
            data.fill(0x22);
            rig.env().spawn(Priority::First, async move {
                let result = volume.write(at(band), data.freeze(), false).await;
                results.borrow_mut()[band] = Some(result);
            });
            if !together {
                rig.world.run_for(Nanos::from_millis(100));
            }
        }
        rig.world.run_for(Nanos::from_millis(1_000));
        for (band, result) in results.borrow().iter().enumerate() {
            let (wanted, content) = match band == 6 {
                true => (Err(BlockError::Unavailable), 0),
                false => (Ok(()), 0x22),
            };
            assert_eq!(*result, Some(wanted), "{level}: band {band}");
            let got = common::read(&rig, &volume, at(band), 4096);
            assert_eq!(got, Ok(vec![content; 4096]), "{level}: band {band}");
        }
        assert_eq!(rig.status().state, ArrayState::Optimal, "{level}");
        drives[0].clear_faults();
        assert_eq!(write(&rig, &volume, at(6), 4096), Ok(()), "{level}");
    }
}

#[test]
fn a_scrub_counts_only_what_it_could_compare() {
    for (level, width) in [(Level::Raid5, 4), (Level::Raid1, 2)] {
        let drives = drives(width, 77, false);
        let (rig, _volume, _oracle) = filled(level, &drives, 77);
        let size = rig.status().region_map.written_bytes;
        assert_eq!(rig.scrub(false).checked_bytes, size);
        rig.fail(1).unwrap();
        let scrub = rig.scrub(false);
        assert_eq!((scrub.checked_bytes, scrub.mismatches), (0, 0), "{level}");
    }
    // One parity is left to compare with, wherever no data is missing.
    let drives = drives(5, 78, false);
    let (rig, _volume, _oracle) = filled(Level::Raid6, &drives, 78);
    let size = rig.status().region_map.written_bytes;
    rig.fail(1).unwrap();
    let checked = rig.scrub(false).checked_bytes;
    assert!(checked > size / 5 && checked < size / 2, "{checked} of {size}");
}

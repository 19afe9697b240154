//! The list of lost blocks when it has no room: what would have to be given up is not, whoever
//! asks; tasks stop there and say so, and go on once there is room. And what levels without
//! redundancy can't read, which is shown and never lost.

use crate::common;

use common::{DRIVE_BYTES, FORCE, Rig, drives, read, record, references};
use engine::manage::command::{ArrayState, Hindrance, SlotHealth, StartOptions, TaskKind};
use format::limits::LOST_MAX;
use format::{LostRange, LostReason};
use io::{BlockError, Blocks, Env, Pool, Priority};
use layout::Level;
use sim::{Rng, SharedSimDrive};
use std::cell::RefCell;
use std::rc::Rc;
use units::{GroupNo, MIB, Nanos, StripIndex, StripeNo};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = 6 * MIB;
const BLOCK: u64 = 512;
/// Where the ranges begin that fill the list: every other block.
const LISTED: u64 = MIB;
/// The stripes with blocks that can't be read: their first strip is on the same slot in all.
const BAD: [u64; 3] = [4, 8, 12];

fn content() -> Vec<u8> {
    let mut bytes = vec![0; BYTES as usize];
    Rng::new(4712).fill(&mut bytes);
    bytes
}

fn write(rig: &Rig, at: u64, data: &[u8]) -> Result<(), BlockError> {
    common::write(rig, &rig.open_volume()[0], at, data)
}

/// A strip of a stripe: its slot, where it is on its drive, and in the array.
fn place(drive: &SharedSimDrive, stripe: u64, strip: u16) -> (usize, u64, u64) {
    let found = record(drive);
    let layout = found.layout().unwrap();
    let (group, stripe, strip) = (GroupNo(0), StripeNo(stripe), StripIndex(strip));
    let slot = layout.slot(group, stripe, strip);
    let place = layout::Place { group, stripe, strip, offset: 0 };
    let at = found.data_offset + layout.drive_offset(group, stripe);
    (slot.index(), at, layout.array_offset(place))
}

/// An array of RAID 5 with content.
fn filled(seed: u64) -> (Rig, Vec<SharedSimDrive>) {
    let drives = drives(5, seed, false);
    let rig = Rig::new(seed, 1 + (seed % 2) as u16);
    rig.create(Level::Raid5, &drives[..4], STRIP).unwrap();
    rig.volume(BYTES);
    write(&rig, 0, &content()).unwrap();
    (rig, drives)
}

/// Puts so many ranges into the list of stopped drives.
fn fill_list(drives: &[SharedSimDrive], count: u64) {
    for drive in drives {
        let offsets = format::slot_offsets(DRIVE_BYTES);
        let images = offsets.map(|at| drive.peek(at, format::SLOT_BYTES));
        let images = images.each_ref().map(|image| &image[..]);
        let Ok((slot, mut record)) = format::newest(images) else { continue };
        let range = |i| LostRange {
            start: LISTED + 2 * i * BLOCK,
            bytes: BLOCK,
            reason: LostReason::Rebuild,
        };
        record.lost = (0..count).map(range).collect();
        drive.overwrite(offsets[slot], &format::encode(&record));
    }
}

fn spoil(drives: &[SharedSimDrive]) {
    for stripe in BAD {
        let (slot, at, _) = place(&drives[0], stripe, 0);
        drives[slot].fail_range(at + 3 * BLOCK, 2 * BLOCK);
    }
}

/// Every block is as written, or an error where it is listed or could not be read. How many.
fn errors(rig: &Rig, bad: &[u64]) -> usize {
    let (volume, wanted) = (rig.open_volume().remove(0), content());
    let listed = |at: u64| at >= LISTED && at < LISTED + 2 * LOST_MAX as u64 * BLOCK;
    let mut count = 0;
    for at in (0..BYTES).step_by(BLOCK as usize) {
        match read(rig, &volume, at, BLOCK) {
            Ok(got) => assert!(got == wanted[at as usize..][..BLOCK as usize], "at {at}"),
            Err(_) => {
                assert!(listed(at) || bad.contains(&at), "an error at {at}");
                count += 1;
            }
        }
    }
    count
}

/// The blocks of the bad stripes that redundancy can't give: two of each of these strips.
fn bad_blocks(drives: &[SharedSimDrive], strips: &[u16]) -> Vec<u64> {
    let of = |stripe: u64, strip: u16| {
        let (_, _, at) = place(&drives[0], stripe, strip);
        [at + 3 * BLOCK, at + 4 * BLOCK]
    };
    BAD.iter().flat_map(|s| strips.iter().flat_map(move |strip| of(*s, *strip))).collect()
}

/// The one task is stuck because the list is full; it stays so, over a restart too.
fn stays_stuck(rig: Rig, kind: TaskKind, drives: &[SharedSimDrive], bad: &[u64]) -> Rig {
    let stuck = |rig: &Rig| {
        rig.wait();
        let status = rig.status();
        assert_eq!((status.state, status.tasks.len()), (ArrayState::Degraded, 1));
        let found = status.tasks[0].stuck.expect("it is stuck");
        assert_eq!((status.tasks[0].kind, found.reason), (kind, Hindrance::ListFull));
        assert!(BAD.contains(&(found.offset / u64::from(STRIP))), "it says where: {found:?}");
        let newest = drives.iter().map(record).max_by_key(|r| r.sequence).unwrap();
        assert!(newest.lost.len() <= LOST_MAX && newest.lost.len() > LOST_MAX - 2);
        newest.lost.len()
    };
    let before = stuck(&rig);
    rig.world.run_for(Nanos::from_millis(130_000));
    assert_eq!(stuck(&rig), before, "tried again");
    assert!(errors(&rig, bad) >= before, "what is listed is refused");
    rig.stop();
    let rig = Rig::new(rig.world.seed() + 50, 2);
    rig.assemble(&references(drives), StartOptions::default()).unwrap();
    assert_eq!(stuck(&rig), before, "after a restart");
    rig
}

/// Writes over some of what fills the list: the task goes on, and loses what it must.
fn goes_on(rig: &Rig, drives: &[SharedSimDrive], reason: LostReason, bad: &[u64]) {
    let room = 8;
    let wanted = content();
    for i in 0..room {
        let at = LISTED + 2 * i * BLOCK;
        write(rig, at, &wanted[at as usize..][..BLOCK as usize]).unwrap();
    }
    rig.world.run_for(Nanos::from_millis(61_000));
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal);
    let list = rig.status().unreadable;
    let mine: u64 = list.iter().filter(|r| r.offset < LISTED).map(|r| r.bytes).sum();
    assert_eq!(mine, bad.len() as u64 * BLOCK);
    assert!(list.iter().all(|r| r.offset >= LISTED || r.reason == Some(reason)));
    let crafted = list.iter().filter(|r| r.offset >= LISTED).count();
    assert_eq!(errors(rig, bad), bad.len() + crafted);
    assert_eq!(rig.scrub(false).mismatches, 0);
    assert_eq!(drives.iter().map(|d| record(d).lost.len()).max(), Some(list.len()));
}

#[test]
fn a_rebuild_stops_where_the_list_is_full_and_goes_on() {
    for (seed, full) in [(1, LOST_MAX as u64), (2, LOST_MAX as u64 - 2)] {
        let (rig, mut drives) = filled(seed);
        let victim = place(&drives[0], BAD[0], 1).0;
        rig.fail(victim).unwrap();
        rig.stop();
        fill_list(&drives[..4], full);
        spoil(&drives);
        let spare = drives.pop().unwrap();
        let rig = Rig::new(seed + 10, 1);
        rig.assemble(&references(&drives), FORCE).unwrap();
        rig.replace(victim, &spare).unwrap();
        drives[victim] = spare;
        let bad = bad_blocks(&drives, &[0, 1]);
        let rig = stays_stuck(rig, TaskKind::Rebuild, &drives, &bad);
        assert_eq!(rig.status().slots[victim].health, SlotHealth::Rebuilding);
        goes_on(&rig, &drives, LostReason::Rebuild, &bad);
    }
}

#[test]
fn a_resync_stops_where_the_list_is_full_and_goes_on() {
    for (seed, full) in [(3, LOST_MAX as u64), (4, LOST_MAX as u64 - 1)] {
        let (rig, mut drives) = filled(seed);
        drives.pop();
        rig.world.crash();
        fill_list(&drives, full);
        spoil(&drives);
        common::hide_pages(&drives);
        let rig = Rig::new(seed + 10, 2);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        let bad = bad_blocks(&drives, &[0]);
        let rig = stays_stuck(rig, TaskKind::Resync, &drives, &bad);
        goes_on(&rig, &drives, LostReason::Resync, &bad);
    }
}

/// A write that would have to lose another block beside it is not taken: an error, and all other
/// data as it was. Once there is room it is.
#[test]
fn a_write_is_refused_where_the_list_is_full() {
    let (rig, drives) = filled(5);
    let victim = place(&drives[0], BAD[0], 1).0;
    rig.fail(victim).unwrap();
    rig.stop();
    fill_list(&drives[..4], LOST_MAX as u64);
    spoil(&drives);
    let rig = Rig::new(15, 1);
    rig.assemble(&references(&drives[..4]), FORCE).unwrap();
    let (_, _, at) = place(&drives[0], BAD[0], 0);
    let (at, wanted) = (at + 3 * BLOCK, content());
    let data = &wanted[at as usize..][..2 * BLOCK as usize];
    assert_eq!(write(&rig, at, data), Err(BlockError::Unavailable));
    let newest = drives[..4].iter().map(record).max_by_key(|r| r.sequence).unwrap();
    assert_eq!(newest.lost.len(), LOST_MAX);
    errors(&rig, &bad_blocks(&drives, &[0, 1]));
    for i in 0..2 {
        let at = LISTED + 2 * i * BLOCK;
        write(&rig, at, &wanted[at as usize..][..BLOCK as usize]).unwrap();
    }
    write(&rig, at, data).unwrap();
    assert_eq!(read(&rig, &rig.open_volume()[0], at, 2 * BLOCK).unwrap(), data);
    let (_, _, other) = place(&drives[0], BAD[0], 1);
    let lost: Vec<_> = rig.status().unreadable.into_iter().filter(|r| r.offset < LISTED).collect();
    assert!(lost.iter().any(|r| r.offset == other + 3 * BLOCK && r.bytes == 2 * BLOCK), "{lost:?}");
    assert!(lost.iter().all(|r| r.reason != Some(LostReason::Rebuild)));
}

/// Without redundancy nothing is ever lost for good: what a drive can't read is shown, and is data
/// again when it reads it or it is written.
#[test]
fn without_redundancy_what_a_drive_can_not_read_is_shown() {
    for level in [Level::Raid0, Level::Jbod] {
        let drives = drives(2, 6, false);
        let rig = Rig::new(6, 2);
        rig.create(level, &drives, STRIP).unwrap();
        rig.volume(2 * MIB);
        let wanted = content();
        write(&rig, 0, &wanted[..2 * MIB as usize]).unwrap();
        let begin = record(&drives[0]).data_offset;
        drives[0].fail_range(begin + 3 * BLOCK, 2 * BLOCK);
        let volume = rig.open_volume().remove(0);
        for at in [3 * BLOCK, 4 * BLOCK] {
            assert_eq!(read(&rig, &volume, at, BLOCK), Err(BlockError::Unavailable), "{level}");
        }
        rig.world.settle();
        let list = || {
            let range =
                |r: &engine::manage::command::UnreadableRange| (r.offset, r.bytes, r.reason);
            rig.status().unreadable.iter().map(range).collect::<Vec<_>>()
        };
        assert_eq!(list(), [(3 * BLOCK, 2 * BLOCK, None)], "{level}");
        let around = read(&rig, &volume, 0, 3 * BLOCK).unwrap();
        assert!(around == wanted[..3 * BLOCK as usize]);
        write(&rig, 3 * BLOCK, &wanted[3 * BLOCK as usize..4 * BLOCK as usize]).unwrap();
        rig.world.settle();
        assert_eq!(list(), [(4 * BLOCK, BLOCK, None)], "{level}");
        drives[0].clear_faults();
        let all = read(&rig, &volume, 0, 2 * MIB).unwrap();
        assert!(all == wanted[..2 * MIB as usize]);
        rig.world.settle();
        assert_eq!(list(), [], "{level}");
        assert_eq!(rig.status().state, ArrayState::Optimal);
        assert!(record(&drives[0]).lost.is_empty());
    }
}

/// A read that was sent to a drive before its block was given up, and is carried out after zeros
/// were written in its place, gives nobody these zeros.
#[test]
fn a_read_that_is_late_does_not_see_what_is_in_place_of_a_lost_block() {
    for seed in 20..24 {
        let (rig, drives) = filled(seed);
        let (bad, _, at) = place(&drives[0], BAD[0], 0);
        let victim = place(&drives[0], BAD[0], 1).0;
        rig.fail(victim).unwrap();
        spoil(&drives);
        // Nothing but the read is under way.
        rig.world.run_for(Nanos::from_millis(500));
        drives[bad].hold(0, 1);
        let found = Rc::new(RefCell::new(None));
        let (into, volume) = (found.clone(), rig.open_volume().pop().unwrap());
        rig.env().spawn(Priority::First, async move {
            let (result, got) = volume.read(at + 3 * BLOCK, Pool::single(BLOCK as usize)).await;
            *into.borrow_mut() = Some(result.map(|()| got.to_vec()));
        });
        rig.world.run_for(Nanos::from_millis(1));
        rig.replace(victim, &drives[4]).unwrap();
        rig.wait();
        assert!(found.borrow().is_none(), "the read is held");
        let lost: Vec<_> = rig.status().unreadable.iter().map(|r| r.offset).collect();
        assert!(lost.contains(&(at + 3 * BLOCK)), "{lost:?}");
        drives[bad].release();
        rig.world.run_for(Nanos::from_millis(100));
        let found = found.borrow().clone().expect("the read has ended");
        assert!(found == Err(BlockError::Unavailable), "seed {seed}: it gives {:?}", found.is_ok());
    }
}

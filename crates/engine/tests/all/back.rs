//! A drive that comes back to an array whose start had to decide without it what was in flight.

use crate::common;

use super::journal::guarded;
use common::{Machine, Rig, drives, duplicates, record, reference, references};
use engine::Volume;
use engine::manage::command::{ArrayState, Request, SlotHealth, StartOptions};
use io::{Blocks, Pool};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use units::{CoreId, GroupNo, MIB, Nanos, Slot, StripIndex, StripeNo};

const DEGRADED: StartOptions =
    StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
const STRIP: u64 = 16 << 10;
/// Where the second region of a group of three begins in a volume.
const SECOND: u64 = 2 * 64 * MIB;

fn put_back(rig: &Rig, slot: usize, drive: &SharedSimDrive) {
    rig.ask(|r| Request::Replace("a".into(), Slot(slot as u16), reference(drive, slot), r))
        .unwrap();
    rig.wait();
}

fn write(rig: &Rig, volume: &Volume<Machine>, at: u64) {
    let byte = (1 + at / STRIP % 251) as u8;
    common::write(rig, volume, at, &[byte; 4096]).unwrap();
}

fn reads(rig: &Rig, at: u64) {
    let byte = (1 + at / STRIP % 251) as u8;
    let got = common::read(rig, &rig.open_volume()[0], at, 4096);
    assert!(got == Ok(vec![byte; 4096]), "at {at}: {:?}", got.map(|bytes| bytes[0]));
}

/// A column stays named while drives have caches that nobody flushes and others follow it; its
/// region is cleaned meanwhile. After a crash that takes a drive nothing in it is lost, and the
/// drive that comes back matches what is there.
#[test]
fn what_is_in_a_clean_region_is_not_in_doubt() {
    let config = |i: u64| DriveConfig::new(96 * MIB, 900 + i).with_cache(true);
    let all: Vec<_> = (0..3).map(|i| SharedSimDrive::new(config(i))).collect();
    let rig = Rig::new(9, 1);
    rig.create(Level::Raid5, &all, STRIP as u32).unwrap();
    let volume = rig.volume(SECOND + 40 * MIB).remove(0);
    [0, STRIP].into_iter().for_each(|at| write(&rig, &volume, at));
    let dirty = || rig.status().region_map.dirty_regions;
    for n in 0.. {
        write(&rig, &volume, SECOND + n / 4 * 2 * STRIP + n % 4 * 4096);
        rig.world.run_for(Nanos::from_micros(2_600));
        if n % 50 == 0 && rig.world.now() > Nanos::from_millis(3_500) && dirty() == 1 {
            break;
        }
        assert!(n < 3000, "the first region is never cleaned");
    }
    rig.world.crash();
    drop(volume);
    let layout = record(&all[0]).layout().unwrap();
    let slot_of = |at: u64| {
        let place = layout.locate(at);
        layout.slot(place.group, place.stripe, place.strip).index()
    };
    let (away, other) = (slot_of(0), slot_of(STRIP));
    let mut left = references(&all);
    left.remove(away);
    let rig = Rig::new(10, 1);
    rig.assemble(&left, DEGRADED).unwrap();
    [0, STRIP].into_iter().for_each(|at| reads(&rig, at));
    put_back(&rig, away, &all[away]);
    assert_eq!((rig.status().state, rig.scrub(false).mismatches), (ArrayState::Optimal, 0));
    rig.fail(other).unwrap();
    [0, STRIP].into_iter().for_each(|at| reads(&rig, at));
}

/// Strips of the first stripe of RAID 6 of five: data, P, Q.
const FIRST: usize = 0;
const OTHER: usize = 1;
const P: usize = 3;

/// The slot of a strip of the first stripe.
fn slot_of_strip(drive: &SharedSimDrive, strip: usize) -> usize {
    let layout = record(drive).layout().unwrap();
    layout.slot(GroupNo(0), StripeNo(0), StripIndex(strip as u16)).index()
}

/// RAID 6 without a drive that wrote the same block twice, or blocks of the same columns, and had
/// no more to do until its region was clean: the batches of both count.
fn at_rest(same: bool, seed: u64) -> Vec<SharedSimDrive> {
    let all = drives(5, seed, false);
    let rig = Rig::new(seed, 1);
    rig.create(Level::Raid6, &all, STRIP as u32).unwrap();
    let volume = rig.volume(MIB).remove(0);
    let key = record(&all[0]).journal_key;
    rig.fail(slot_of_strip(&all[0], 2)).unwrap();
    guarded(&rig, &all, key);
    let places = if same { [0, 0] } else { [OTHER as u64 * STRIP, 0] };
    for (at, byte) in places.into_iter().zip([1, 2]) {
        let (volume, mut data) = (volume.clone(), Pool::single(4096));
        data.fill(byte);
        let written = async move { volume.write(at, data.freeze(), true).await };
        rig.world.block_on(CoreId(0), written).unwrap();
    }
    rig.world.run_for(Nanos::from_millis(20_000));
    assert_eq!(rig.status().region_map.dirty_regions, 0);
    rig.world.crash();
    all
}

/// Reads the block that was written last, beside another one.
fn reads_last(rig: &Rig, same: bool) {
    let volume = rig.open_volume().remove(0);
    let other = if same { 0 } else { 1 };
    for (at, byte) in [(0, 2), (OTHER as u64 * STRIP, other)] {
        let got = common::read(rig, &volume, at, 4096).unwrap();
        let wrong = got.iter().find(|b| **b != byte);
        assert_eq!(wrong, None, "at {at}, not {byte}");
    }
}

/// Puts a drive back, if it is out: the array is as it was, and is with any drive failed that may
/// go.
fn right_with(rig: &Rig, all: &[SharedSimDrive], slot: usize, same: bool) {
    if rig.status().slots[slot].health != SlotHealth::InSync {
        put_back(rig, slot, &all[slot]);
    }
    let failed = |slot: &usize| rig.status().slots[*slot].health == SlotHealth::Failed;
    assert_eq!((0..5).filter(failed).count(), 1, "slot {slot} is back");
    reads_last(rig, same);
    assert_eq!(rig.scrub(false).mismatches, 0);
    rig.stop();
    for other in 0..5 {
        let left = duplicates(all);
        let rig = Rig::new(other as u64, 1);
        rig.assemble(&references(&left), DEGRADED).unwrap();
        if rig.status().slots[other].health != SlotHealth::Failed {
            rig.fail(other).unwrap();
            reads_last(&rig, same);
        }
    }
}

/// A start that carries out what the journal says, and goes on without a drive of which a request
/// fails, leaves nothing older on it in a region that it is not filled in when it is back.
#[test]
fn a_start_leaves_clean_regions_of_a_drive_as_they_are() {
    for (same, strip) in [(true, FIRST), (true, P), (false, P)] {
        let image = at_rest(same, 910);
        let slot = slot_of_strip(&image[0], strip);
        for turn in 0.. {
            let all = duplicates(&image);
            match turn {
                0 => all[slot].fail_flushes(0, u64::MAX),
                n => all[slot].fail_writes(n - 1, u64::MAX),
            }
            let rig = Rig::new(turn, 1);
            let status = rig.assemble(&references(&all), DEGRADED).unwrap();
            let failed = status.slots[slot].health == SlotHealth::Failed;
            if turn > 0 && !failed {
                assert!(turn > 1, "it is written to");
                break;
            }
            all[slot].clear_faults();
            if failed {
                right_with(&rig, &all, slot, same);
            }
        }
    }
}

/// The same of a start that is cut off anywhere, where the next one lacks the drive.
#[test]
fn a_start_that_is_cut_off_leaves_clean_regions_as_they_are() {
    for (same, strip) in [(true, FIRST), (true, P), (false, P)] {
        let image = at_rest(same, 911);
        let slot = slot_of_strip(&image[0], strip);
        for submits in 0.. {
            let all = duplicates(&image);
            let rig = Rig::new(submits, 1);
            rig.world.power_fails_after(submits);
            let list = references(&all);
            let over = rig.try_ask(|r| Request::Assemble(None, list, DEGRADED, r)).is_ok();
            rig.world.crash();
            let mut left = references(&all);
            left.remove(slot);
            let rig = Rig::new(submits + 1, 1);
            rig.assemble(&left, DEGRADED).unwrap();
            reads_last(&rig, same);
            right_with(&rig, &all, slot, same);
            if over {
                break;
            }
        }
    }
}

/// Of drives whose region was just cleaned, as if the power had gone while the page that says so
/// was written, and only the drive in `slot` had it: the others have the one before, or what was
/// torn.
fn clean_on_one(all: &[SharedSimDrive], slot: usize, torn: bool) {
    let others = all.iter().enumerate().filter(|(i, _)| *i != slot);
    for (_, drive) in others {
        let places = [0, 4096].map(|at| record(drive).areas.map_start + at);
        let images = places.map(|at| drive.peek(at, 4096));
        let [first, second] =
            images.each_ref().map(|page| u64::from_le_bytes(page[32..40].try_into().unwrap()));
        let newest = usize::from(second > first);
        let left = if torn { vec![7; 4096] } else { images[1 - newest].to_vec() };
        drive.overwrite(places[newest], &left);
    }
}

/// A start that is cut off while it carries out what the journal says, in a region that only a
/// drive that it lacks calls clean, leaves nothing older there for the next one, which has the
/// drive.
#[test]
fn a_start_leaves_nothing_older_where_a_drive_that_it_lacks_says_clean() {
    for (same, strip, torn) in [(true, OTHER, true), (true, OTHER, false), (false, FIRST, false)] {
        let image = at_rest(same, 912);
        let slot = slot_of_strip(&image[0], strip);
        clean_on_one(&image, slot, torn);
        for submits in 0.. {
            let all = duplicates(&image);
            let mut left = references(&all);
            left.remove(slot);
            let rig = Rig::new(submits, 1);
            rig.world.power_fails_after(submits);
            let over = rig.try_ask(|r| Request::Assemble(None, left, DEGRADED, r)).is_ok();
            rig.world.crash();
            let rig = Rig::new(submits + 1, 1);
            rig.assemble(&references(&all), DEGRADED).unwrap();
            reads_last(&rig, same);
            if !same || over {
                right_with(&rig, &all, slot, same);
            }
            if over {
                break;
            }
        }
    }
}

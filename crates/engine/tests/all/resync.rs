//! After a crash: parity and copies in regions that owe a resync are never believed, whatever they
//! hold.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Rig, drives, hide_pages, record, references};
use engine::manage::command::{ArrayState, ManageError, StartOptions};
use io::Blocks;
use layout::Level;
use sim::{Rng, SharedSimDrive};
use std::rc::Rc;
use units::{CoreId, GroupNo, MIB, Nanos, StripIndex, StripeNo};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = 3 * MIB;
const MIX: Mix = Mix { tasks: 6, operations: 30, blocks_most: 80, read_percent: 30 };

/// An array that lost power behind a write, with random bytes in all redundant strips, of which
/// nobody knows what was in flight.
fn unclean(level: Level, width: usize, seed: u64) -> (Vec<SharedSimDrive>, Rc<Oracle>) {
    let drives = drives(width, seed, false);
    let rig = Rig::new(seed, 1);
    rig.create(level, &drives, STRIP).unwrap();
    let oracle = Oracle::new(BYTES, false);
    let volumes = rig.volume(BYTES);
    oracle.start(&rig, &volumes, Mix { operations: 60, read_percent: 0, ..MIX }, seed);
    oracle.finish(&rig);
    rig.world.crash();
    hide_pages(&drives);
    let found = record(&drives[0]);
    let layout = found.layout().unwrap();
    let mut rng = Rng::new(seed);
    let mut random = vec![0; STRIP as usize];
    for group in (0..layout.groups()).map(GroupNo) {
        for stripe in (0..layout.stripes(group)).map(StripeNo) {
            for strip in layout.k(group)..layout.k(group) + layout.m(group) {
                let slot = layout.slot(group, stripe, StripIndex(strip));
                rng.fill(&mut random);
                let at = found.data_offset + layout.drive_offset(group, stripe);
                drives[slot.index()].overwrite(at, &random);
            }
        }
    }
    (drives, oracle)
}

fn healthy(level: Level, width: usize, seed: u64) {
    let (drives, oracle) = unclean(level, width, seed);
    let rig = Rig::new(seed + 1, 1 + (seed % 2) as u16);
    rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    let volumes = rig.open_volume();
    oracle.start(&rig, &volumes, MIX, seed + 1);
    oracle.finish(&rig);
    rig.wait();
    assert_eq!(rig.scrub(false).mismatches, 0);
    drives[seed as usize % width].vanish();
    oracle.start(&rig, &volumes, MIX, seed + 2);
    oracle.finish(&rig);
    oracle.verify(&rig, &volumes[0], true);
}

#[test]
fn writes_to_owed_regions_do_not_trust_old_redundancy() {
    for seed in 0..4 {
        healthy(Level::Raid5, 4, seed);
        healthy(Level::Raid6, 5, seed);
        healthy(Level::Raid1, 3, seed);
        healthy(Level::Raid10, 4, seed);
    }
}

/// A drive goes during the resync: errors where it is owed, no guesses.
fn failing(level: Level, width: usize, seed: u64) -> (u64, u64) {
    let (drives, oracle) = unclean(level, width, seed);
    let rig = Rig::new(seed + 1, 1 + (seed % 2) as u16);
    rig.assemble(&references(&drives), StartOptions::default()).unwrap();
    let volumes = rig.open_volume();
    let mut rng = Rng::new(seed);
    rig.world.run_for(Nanos::from_micros(rng.below(6_000)));
    let victim = rng.index(width);
    let refused = rig.fail(victim);
    assert!(matches!(refused, Ok(_) | Err(ManageError::WouldLose(_))), "{refused:?}");
    drives[victim].vanish();
    oracle.errors.set(true);
    oracle.start(&rig, &volumes, MIX, seed + 1);
    oracle.finish(&rig);
    let (volume, model) = (volumes[0].clone(), oracle.clone());
    let end = rig.world.block_on(CoreId(0), async move {
        let (mut good, mut bad) = (0, 0);
        for at in (0..BYTES).step_by(4096) {
            match model.read(&volume, at, 4096).await {
                Ok(()) => good += 1,
                Err(_) => bad += 1,
            }
        }
        (good, bad)
    });
    assert_eq!(rig.status().state, ArrayState::Degraded);
    end
}

#[test]
fn a_drive_failing_during_resync_gives_errors_and_no_guesses() {
    let mut sum = (0, 0);
    for seed in 0..10 {
        for (level, width) in [(Level::Raid5, 4), (Level::Raid6, 5)] {
            let (good, bad) = failing(level, width, seed);
            assert!(good > 0);
            sum = (sum.0 + good, sum.1 + bad);
        }
    }
    assert!(sum.1 > 0 && sum.0 > sum.1, "both sides of the border were met: {sum:?}");
}

#[test]
fn mirrors_read_one_pinned_copy_until_resynced() {
    for seed in 0..6 {
        let (drives, oracle) = unclean(Level::Raid1, 2 + seed as usize % 2, seed);
        let rig = Rig::new(seed + 1, 1 + (seed % 2) as u16);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        oracle.start(&rig, &rig.open_volume(), Mix { read_percent: 90, ..MIX }, seed);
        oracle.finish(&rig);
        oracle.verify(&rig, &rig.open_volume()[0], true);
        rig.wait();
        drives[0].vanish();
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
}

/// A copy that fails during the resync does not keep the others from being made equal.
#[test]
fn a_resync_of_mirrors_goes_on_without_a_failed_copy() {
    for seed in 0..8 {
        let (drives, oracle) = unclean(Level::Raid1, 3, seed);
        let rig = Rig::new(seed + 1, 1 + (seed % 2) as u16);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        rig.world.run_for(Nanos::from_micros(seed * 500));
        let victim = (seed / 2) as usize % 3;
        drives[victim].vanish();
        rig.world.run_for(Nanos::from_millis(2));
        rig.wait();
        let _ = rig.fail(victim);
        rig.wait();
        assert!(rig.status().tasks.is_empty(), "seed {seed}");
        drives[(victim + 1) % 3].vanish();
        if victim > 0 {
            oracle.verify(&rig, &rig.open_volume()[0], true);
        }
    }
}

#[test]
fn volumes_tell_what_they_are() {
    let drives = drives(4, 1, true);
    let rig = Rig::new(1, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    let volume = rig.volume(MIB).remove(0);
    assert_eq!((volume.strip_bytes(), volume.stripe_bytes()), (STRIP, 3 * STRIP));
    assert!(volume.volatile_cache());
}

/// What was read of a mirror after a crash is what the copies that are left give, although the
/// resync did not come there yet.
#[test]
fn what_is_read_before_the_resync_stays_when_the_copy_it_came_from_goes() {
    for (level, width) in [(Level::Raid1, 2), (Level::Raid1, 3), (Level::Raid10, 4)] {
        for seed in 0..4 {
            let (drives, _) = unclean(level, width, seed);
            let rig = Rig::new(seed + 1, 1 + (seed / 2) as u16);
            rig.assemble(&references(&drives), StartOptions::default()).unwrap();
            let volumes = rig.open_volume();
            let read = |at| common::read(&rig, &volumes[0], at, 3 * 4096).unwrap();
            // The resync begins at the front.
            let far = [BYTES - u64::from(STRIP), BYTES - MIB];
            let before: Vec<_> = far.iter().map(|at| read(*at)).collect();
            assert_ne!(rig.status().state, ArrayState::Optimal, "the resync is under way");
            drives[0].vanish();
            rig.fail(0).unwrap();
            let after: Vec<_> = far.iter().map(|at| read(*at)).collect();
            assert!(before == after, "{level:?} of {width}, seed {seed}");
        }
    }
}

/// The same while another copy goes: those that are left are made alike all the same.
#[test]
fn copies_are_made_alike_while_one_of_them_goes() {
    for seed in 0..4 {
        let (drives, _) = unclean(Level::Raid1, 3, seed);
        let rig = Rig::new(seed + 1, 1 + (seed / 2) as u16);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        let volumes = rig.open_volume();
        let read = || common::read(&rig, &volumes[0], BYTES - MIB, 4096).unwrap();
        drives[2].vanish();
        let before = read();
        drives[0].vanish();
        rig.fail(0).unwrap();
        assert!(before == read(), "seed {seed}");
    }
}

//! Drives that hang (D16): host I/O is held up no longer than the stated bound, in virtual time;
//! what hung may be carried out at any time later and harms nothing; and neither a change of
//! configuration nor a start or stop waits for such a drive beyond the bound.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{FORCE, Machine, Rig, drives, reference, references};
use core::pin::Pin;
use core::task::Poll;
use engine::limits::DRIVE_DEADLINE;
use engine::manage::command::{
    ArrayState, ArrayStatus, DriveRef, ManageError, NewArray, Repair, Request, SlotHealth,
    StartOptions,
};
use engine::volume::Volume;
use engine::watch::{Opened, Watch};
use io::{BlockError, Blocks, Drive, DriveError, Env, Pool};
use layout::Level;
use sim::{Rng, SharedSimDrive};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = MIB;
const MIX: Mix = Mix { tasks: 6, operations: 40, blocks_most: 200, read_percent: 50 };
const FILL: Mix = Mix { read_percent: 0, ..MIX };

/// How long `hung` drives, one behind the other, may hold a request up, with what the other
/// drives and the mail take besides.
fn bound(hung: u64) -> Nanos {
    Nanos(hung * DRIVE_DEADLINE.0 * 5 / 4 + Nanos::from_millis(50).0)
}

fn array(
    level: Level,
    drives: &[SharedSimDrive],
    cache: bool,
    cores: u16,
    seed: u64,
) -> (Rig, Vec<Volume<Machine>>, Rc<Oracle>) {
    let rig = Rig::new(seed, cores);
    rig.create(level, drives, STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    let oracle = Oracle::new(BYTES, cache);
    load(&rig, &volumes, &oracle, FILL, seed);
    (rig, volumes, oracle)
}

/// Runs a load; how long the slowest request took.
fn load(rig: &Rig, volumes: &[Volume<Machine>], oracle: &Rc<Oracle>, mix: Mix, seed: u64) -> Nanos {
    oracle.longest.set(Nanos(0));
    oracle.start(rig, volumes, mix, seed);
    oracle.finish(rig);
    oracle.longest.get()
}

/// Starts a load, lets drives hang in its midst, and ends it; how long the slowest request took.
fn hang_under(
    rig: &Rig,
    volumes: &[Volume<Machine>],
    oracle: &Rc<Oracle>,
    hung: &[&SharedSimDrive],
    seed: u64,
) -> Nanos {
    oracle.longest.set(Nanos(0));
    oracle.start(rig, volumes, MIX, seed);
    rig.world.run_for(Nanos::from_micros(seed % 7 * 150));
    hung.iter().for_each(|drive| drive.hang());
    oracle.finish(rig);
    oracle.longest.get()
}

/// Runs a request and tells how long it took.
fn timed<T>(rig: &Rig, work: impl FnOnce() -> T) -> (T, Nanos) {
    let begin = rig.world.now();
    let outcome = work();
    (outcome, rig.world.now().since(begin))
}

fn assert_out(status: &ArrayStatus, slots: &[usize], seed: u64) {
    assert_eq!(status.state, ArrayState::Degraded, "seed {seed}");
    for slot in slots {
        let found = &status.slots[*slot];
        assert_eq!(found.health, SlotHealth::Failed, "seed {seed}, slot {slot}");
        assert_eq!(found.errors.reason, Some(DriveError::Timeout), "seed {seed}, slot {slot}");
        assert!(found.errors.timeouts > 0 && found.quarantined, "seed {seed}, slot {slot}");
    }
}

/// Puts every drive that is out back in its slot, once its old requests have ended.
fn put_back(rig: &Rig, drives: &[SharedSimDrive], slots: &[usize]) {
    for slot in slots {
        let drive = &drives[*slot];
        let again = || -> Result<ArrayStatus, ManageError> {
            let same = reference(drive, *slot);
            rig.ask(|r| Request::Replace("a".into(), units::Slot(*slot as u16), same, r))
        };
        assert!(matches!(again(), Err(ManageError::Quarantined(_))), "slot {slot}");
        drive.release();
        rig.world.run_for(Nanos::from_millis(1));
        assert!(!rig.status().slots[*slot].quarantined, "slot {slot}");
        again().unwrap();
    }
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal);
    assert_eq!(rig.scrub(false).mismatches, 0);
}

fn hang(level: Level, width: usize, slots: &[usize], cores: u16, seed: u64) {
    let cache = seed % 2 == 0;
    let drives = drives(width, seed, cache);
    let (rig, volumes, oracle) = array(level, &drives, cache, cores, seed);
    let hung: Vec<_> = slots.iter().map(|slot| &drives[*slot]).collect();
    let longest = hang_under(&rig, &volumes, &oracle, &hung, seed);
    assert!(longest >= DRIVE_DEADLINE, "seed {seed}: nobody was held up");
    assert!(longest <= bound(slots.len() as u64), "seed {seed}: held up for {longest:?}");
    assert_out(&rig.status(), slots, seed);
    oracle.verify(&rig, &volumes[0], true);
    let longest = load(&rig, &volumes, &oracle, MIX, seed + 1);
    assert!(longest < Nanos::from_millis(50), "seed {seed}: held up again for {longest:?}");
    put_back(&rig, &drives, slots);
    oracle.verify(&rig, &volumes[0], true);
    rig.stop();
}

#[test]
fn a_hung_drive_holds_host_io_up_no_longer_than_the_bound() {
    for seed in 0..8u64 {
        let cores = 1 + (seed % 4) as u16;
        hang(Level::Raid1, 2, &[seed as usize % 2], cores, seed);
        hang(Level::Raid5, 4, &[seed as usize % 4], cores, seed + 20);
        hang(Level::Raid6, 5, &[seed as usize % 5], cores, seed + 40);
        hang(Level::Raid10, 4, &[seed as usize % 4], cores, seed + 60);
    }
}

#[test]
fn two_hung_drives_hold_raid6_up_no_longer_than_twice_the_bound() {
    for seed in 0..8u64 {
        let (one, two) = (seed as usize % 5, (seed as usize + 1 + seed as usize / 5) % 5);
        hang(Level::Raid6, 5, &[one, two], 1 + (seed % 4) as u16, seed + 80);
        hang(Level::Raid1, 3, &[one % 3, (one + 1) % 3], 1 + (seed % 4) as u16, seed + 100);
        hang(Level::Raid10, 4, &[one % 2, 2 + two % 2], 1 + (seed % 4) as u16, seed + 120);
    }
}

/// A drive that answers just in time is slow, not hung.
#[test]
fn a_slow_drive_is_not_hung() {
    let drives = drives(4, 3, false);
    let (rig, volumes, oracle) = array(Level::Raid5, &drives, false, 2, 3);
    let slow = Nanos(DRIVE_DEADLINE.0 * 9 / 10);
    drives[1].set_latency(slow, slow);
    load(&rig, &volumes, &oracle, Mix { operations: 4, tasks: 2, ..MIX }, 4);
    let status = rig.status();
    assert_eq!(status.state, ArrayState::Optimal);
    assert_eq!(status.slots[1].errors.failures, 0);
    oracle.verify(&rig, &volumes[0], true);
}

/// Writes that hung are carried out after their blocks were written again: whoever reads then
/// reads the newer content, also from the drive itself once it is back in its slot.
#[test]
fn what_hung_and_runs_late_overwrites_nothing() {
    for (level, width) in [(Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid6, 5)] {
        for seed in 0..6u64 {
            let drives = drives(width, seed, seed % 2 == 0);
            let (rig, volumes, oracle) = array(level, &drives, seed % 2 == 0, 2, seed);
            let slot = seed as usize % width;
            // A few requests hang, all later ones go on.
            drives[slot].hold(seed % 3, 1 + seed % 4);
            load(&rig, &volumes, &oracle, FILL, seed + 1);
            assert_out(&rig.status(), &[slot], seed);
            load(&rig, &volumes, &oracle, FILL, seed + 2);
            put_back(&rig, &drives, &[slot]);
            oracle.verify(&rig, &volumes[1], true);
            rig.stop();
        }
    }
}

/// Beyond redundancy requests fail after the deadline; the array is not started again with the
/// drive before what hung has ended.
/// What was in flight when the first drive hung is lost with it, and listed: it is zeroed.
fn forgive_lost(rig: &Rig, oracle: &Rc<Oracle>, level: Level) {
    for range in rig.status().unreadable {
        assert!(level == Level::Raid5 && range.reason == Some(format::LostReason::Crash));
        oracle.forgive(range.offset, range.bytes);
        let volume = rig.open_volume()[0].clone();
        rig.world.block_on(CoreId(0), async move {
            volume.write_zeroes(range.offset, range.bytes, true).await.unwrap();
        });
    }
}

#[test]
fn without_redundancy_requests_fail_and_the_drive_is_kept_out() {
    for (level, width) in [(Level::Raid0, 3), (Level::Jbod, 2), (Level::Raid5, 4)] {
        for seed in 0..4u64 {
            let drives = drives(width, seed, false);
            let (rig, volumes, oracle) = array(level, &drives, false, 1 + seed as u16, seed);
            let lost = if level == Level::Raid5 { vec![0, 1] } else { vec![0] };
            let hung: Vec<_> = lost.iter().map(|slot| &drives[*slot]).collect();
            oracle.errors.set(true);
            let longest = hang_under(&rig, &volumes, &oracle, &hung, seed);
            assert!(longest <= bound(2), "{level}, seed {seed}: {longest:?}");
            assert_eq!(rig.status().state, ArrayState::Failed);
            assert!(oracle.done.get().1 > 0, "nothing failed");
            let stripe = u64::from(volumes[0].stripe_bytes());
            drop(volumes);
            let (_, took) = timed(&rig, || rig.stop());
            assert!(took <= bound(2), "{level}, seed {seed}: the stop took {took:?}");
            let refused = rig.assemble(&references(&drives), FORCE);
            if level != Level::Raid5 {
                assert!(
                    matches!(refused, Err(ManageError::Quarantined(_))),
                    "{level}: {refused:?}"
                );
            }
            oracle.crashed();
            for at in oracle.uncertain() {
                oracle.forgive(at / stripe * stripe, stripe);
            }
            if refused.is_ok() {
                continue;
            }
            drives.iter().for_each(SharedSimDrive::release);
            rig.world.run_for(Nanos::from_millis(1));
            rig.assemble(&references(&drives), FORCE).unwrap();
            forgive_lost(&rig, &oracle, level);
            oracle.verify(&rig, &rig.open_volume()[0], true);
        }
    }
}

/// The record that says "unclean" before the first write, and every other one, is written
/// without a drive that hangs.
#[test]
fn a_record_does_not_wait_for_a_hung_drive() {
    for seed in 0..6u64 {
        let drives = drives(4, seed, false);
        let (rig, volumes, oracle) = array(Level::Raid5, &drives, false, 2, seed);
        rig.stop();
        drop(volumes);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        let volumes = rig.open_volume();
        drives[seed as usize % 4].hang();
        let (model, volume) = (oracle.clone(), volumes[1].clone());
        let (wrote, took) = timed(&rig, || {
            let write = async move { model.write(&volume, seed * 16384, 512, true).await };
            rig.world.block_on(CoreId(1), write)
        });
        assert_eq!(wrote, Ok(()));
        assert!(took <= bound(1), "seed {seed}: {took:?}");
        assert_out(&rig.status(), &[seed as usize % 4], seed);
        let made = |r| Request::VolumeCreate("a".into(), "w".into(), MIB, r);
        let (_, took) = timed(&rig, || rig.ask(made).unwrap());
        assert!(took <= Nanos::from_millis(50), "seed {seed}: {took:?}");
        oracle.verify(&rig, &volumes[0], true);
    }
}

/// Starting, stopping and deleting take a bounded time whatever drive hangs.
#[test]
fn start_and_stop_do_not_wait_for_a_hung_drive() {
    for seed in 0..5u64 {
        let drives = drives(6, seed, seed % 2 == 0);
        let (rig, volumes, oracle) = array(Level::Raid6, &drives, seed % 2 == 0, 2, seed);
        drop(volumes);
        let (one, two) = (seed as usize, (seed as usize + 2) % 6);
        drives[one].hang();
        let (_, took) = timed(&rig, || rig.stop());
        assert!(took <= bound(1), "seed {seed}: the stop took {took:?}");
        drives[two].hang();
        let degraded =
            StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
        let (started, took) = timed(&rig, || rig.assemble(&references(&drives), degraded));
        started.unwrap();
        assert!(took <= bound(1), "seed {seed}: the start took {took:?}");
        oracle.crashed();
        oracle.verify(&rig, &rig.open_volume()[0], true);
        let deleted = |r| Request::Delete("a".into(), r);
        let (_, took) = timed(&rig, || rig.ask(deleted));
        assert!(took <= bound(2), "seed {seed}: the end took {took:?}");
        assert_eq!(rig.ask(Request::Status).unwrap().len(), 0);
    }
}

#[test]
fn an_array_is_not_made_of_a_hung_drive() {
    let drives = drives(4, 9, false);
    let rig = Rig::new(9, 1);
    for (slot, skip) in [(0, 0), (1, 3), (2, 4), (3, 2)] {
        drives[slot].hold(skip, 1);
        let (made, took) = timed(&rig, || rig.create(Level::Raid5, &drives, STRIP));
        let expected =
            matches!(made, Err(ManageError::Drive(_, DriveError::Timeout) | ManageError::State(_)));
        assert!(expected, "{made:?}");
        assert!(took <= bound(2), "slot {slot}: {took:?}");
        let again = rig.create(Level::Raid5, &drives, STRIP);
        assert!(matches!(again, Err(ManageError::Quarantined(_))), "{again:?}");
        drives[slot].hold(0, 0);
        drives[slot].release();
        rig.world.run_for(Nanos::from_millis(1));
    }
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Running {
    Rebuild,
    Resync,
    Scrub,
}

/// A drive hangs while a task runs: host I/O goes on within the bound, and so does the task.
fn hang_beside(running: Running, cores: u16, seed: u64) {
    let all = drives(7, seed, seed % 2 == 0);
    let (mut rig, mut volumes, oracle) = array(Level::Raid6, &all[..6], seed % 2 == 0, cores, seed);
    match running {
        Running::Rebuild => {
            rig.fail(0).unwrap();
            rig.replace(0, &all[6]).unwrap();
        }
        Running::Scrub => {
            rig.ask(|reply| Request::Scrub("a".into(), Repair::Nothing, reply)).unwrap();
        }
        Running::Resync => {
            oracle.start(&rig, &volumes, FILL, seed + 5);
            rig.world.run_for(Nanos::from_micros(700));
            rig.world.crash();
            drop(volumes);
            oracle.crashed();
            rig = Rig::new(seed + 6, cores);
            rig.assemble(&references(&all[..6]), StartOptions::default()).unwrap();
            volumes = rig.open_volume();
            // Redundancy is not right yet: without a drive some blocks can't be given back.
            oracle.errors.set(true);
        }
    }
    rig.world.run_for(Nanos::from_micros(400));
    let slot = 1 + seed as usize % 5;
    let longest = hang_under(&rig, &volumes, &oracle, &[&all[slot]], seed + 1);
    assert!(longest <= bound(1), "{running:?}, seed {seed}: {longest:?}");
    rig.wait();
    assert_eq!(rig.status().slots[slot].health, SlotHealth::Failed);
    if running == Running::Rebuild {
        assert_eq!(rig.status().slots[0].health, SlotHealth::InSync, "seed {seed}");
    }
    if running != Running::Resync {
        oracle.verify(&rig, &volumes[0], true);
    }
    all[slot].release();
    rig.stop();
}

#[test]
fn tasks_go_on_when_a_drive_hangs() {
    for seed in 0..8u64 {
        for running in [Running::Rebuild, Running::Resync, Running::Scrub] {
            hang_beside(running, 1 + (seed % 4) as u16, seed);
        }
    }
}

/// The replacement itself hangs: the rebuild ends, the array goes on without it.
#[test]
fn a_replacement_that_hangs_is_taken_out() {
    for seed in 0..6u64 {
        let all = drives(5, seed, false);
        let (rig, volumes, oracle) = array(Level::Raid5, &all[..4], false, 2, seed);
        rig.fail(2).unwrap();
        rig.replace(2, &all[4]).unwrap();
        rig.world.run_for(Nanos::from_micros(seed * 300));
        let longest = hang_under(&rig, &volumes, &oracle, &[&all[4]], seed);
        assert!(longest <= bound(1), "seed {seed}: {longest:?}");
        rig.wait();
        assert_out(&rig.status(), &[2], seed);
        oracle.verify(&rig, &volumes[0], true);
    }
}

/// A read's buffer is given back whole although parts of it stay with the hung drive.
#[test]
fn a_read_gives_a_buffer_of_its_length_back() {
    let drives = drives(4, 12, false);
    let (rig, volumes, oracle) = array(Level::Raid5, &drives, false, 1, 12);
    drives[2].hang();
    let (volume, pool) = (volumes[0].clone(), Pool::new(BYTES as usize, 1));
    let whole = pool.take(BYTES as usize).unwrap();
    let (result, got) = rig.world.block_on(CoreId(0), async move { volume.read(0, whole).await });
    assert_eq!((result, got.len()), (Ok(()), BYTES as usize));
    oracle.check(0, &got, false);
    drop(got);
    assert_eq!(pool.free(), 0, "the drive has a part of it");
    drives[2].release();
    rig.world.run_for(Nanos::from_millis(1));
    assert_eq!(pool.free(), 1);
}

/// Requests that are refused before anything is asked of a drive are refused at once.
#[test]
fn a_drive_in_quarantine_is_taken_by_no_array() {
    let all = drives(7, 13, false);
    let (rig, _volumes, oracle) = array(Level::Raid5, &all[..4], false, 2, 13);
    all[1].hold(0, 1);
    let volumes = rig.open_volume();
    load(&rig, &volumes, &oracle, FILL, 14);
    assert_out(&rig.status(), &[1], 13);
    let mut list: Vec<DriveRef<SharedSimDrive>> = (4..7).map(|i| reference(&all[i], i)).collect();
    list.push(reference(&all[1], 1));
    let other = || NewArray {
        shared: false,
        name: "b".into(),
        level: Level::Raid5,
        strip_bytes: STRIP,
        block_bytes: None,
    };
    let make = |list: &Vec<_>| {
        let list = list.clone();
        rig.ask(|reply| Request::Create(other(), list, reply))
    };
    assert!(matches!(make(&list), Err(ManageError::Quarantined(path)) if path == "/dev/drive1"));
    all[1].release();
    rig.world.run_for(Nanos::from_millis(1));
    make(&list).unwrap();
}

/// Whatever was asked of a drive that hangs for good, errors are the worst that hosts see.
#[test]
fn hung_drives_at_random() {
    for seed in 0..24u64 {
        let mut rng = Rng::new(seed);
        let level = [Level::Raid1, Level::Raid5, Level::Raid6, Level::Raid10][rng.index(4)];
        let width = [4, 6][rng.index(2)];
        let drives = drives(width, seed, rng.coin());
        let cache = drives[0].info().volatile_cache;
        let (rig, volumes, oracle) = array(level, &drives, cache, 1 + rng.index(4) as u16, seed);
        let slot = rng.index(width);
        oracle.longest.set(Nanos(0));
        oracle.start(&rig, &volumes, MIX, seed + 1);
        rig.world.run_for(Nanos::from_micros(rng.below(1_000)));
        drives[slot].hold(rng.below(20), if rng.coin() { u64::MAX } else { 1 + rng.below(5) });
        oracle.finish(&rig);
        assert!(oracle.longest.get() <= bound(1), "seed {seed}: {:?}", oracle.longest.get());
        oracle.verify(&rig, &volumes[0], true);
        drives[slot].clear_faults();
        rig.world.run_for(Nanos::from_millis(2));
        oracle.verify(&rig, &volumes[0], true);
        drop(volumes);
        rig.stop();
        oracle.crashed();
        let options =
            StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
        rig.assemble(&references(&drives), options).unwrap();
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
}

/// An error of the drive is told to the host only where redundancy can't help.
#[test]
fn a_single_request_fails_with_an_error_after_the_deadline() {
    let drives = drives(3, 15, false);
    let (rig, volumes, _oracle) = array(Level::Raid0, &drives, false, 1, 15);
    drives.iter().for_each(SharedSimDrive::hang);
    let volume = volumes[0].clone();
    let ((result, _), took) = timed(&rig, || {
        rig.world.block_on(CoreId(0), async move { volume.read(0, Pool::single(4096)).await })
    });
    assert_eq!(result, Err(BlockError::Unavailable));
    assert!(took >= DRIVE_DEADLINE && took <= bound(1), "{took:?}");
}

/// Bad blocks that a drive could not write are not why it is given up when it hangs: nobody would
/// take it out for that.
#[test]
fn a_bad_block_does_not_hide_that_a_drive_hangs() {
    let drives = drives(3, 16, false);
    let (rig, volumes, _oracle) = array(Level::Raid0, &drives, false, 1, 16);
    drives.iter().for_each(|drive| drive.spoil_writes(0, 1));
    let (first, second) = (volumes[0].clone(), volumes[0].clone());
    let bad = async move { first.write(0, Pool::single(4096).freeze(), false).await };
    assert_eq!(rig.world.block_on(CoreId(0), bad), Err(BlockError::Unavailable));
    drives.iter().for_each(SharedSimDrive::calm);
    assert_eq!(rig.status().state, ArrayState::Optimal);
    drives.iter().for_each(SharedSimDrive::hang);
    let read = async move { second.read(0, Pool::single(4096)).await.0 };
    assert_eq!(rig.world.block_on(CoreId(0), read), Err(BlockError::Unavailable));
    rig.world.run_for(Nanos::from_millis(100));
    let timeouts: Vec<_> = rig.status().slots.iter().map(|slot| slot.errors.timeouts).collect();
    assert_eq!(timeouts.iter().sum::<u64>(), 1, "{timeouts:?}");
    assert_eq!(rig.status().unreadable, []);
}

/// A drive that the array can't do without stays when it fails to read something. If it hangs after
/// that, no core goes on refusing reads of it while the array says that all is well.
#[test]
fn a_failed_read_does_not_hide_that_a_drive_hangs() {
    let drives = drives(3, 17, false);
    let (rig, volumes, _oracle) = array(Level::Raid0, &drives, false, 1, 17);
    let read = || {
        let volume = volumes[0].clone();
        let reading = async move { volume.read(0, Pool::single(4096)).await.0 };
        rig.world.block_on(CoreId(0), reading)
    };
    drives.iter().for_each(|drive| drive.fail_reads(0, 1));
    assert_eq!(read(), Err(BlockError::Unavailable));
    drives.iter().for_each(SharedSimDrive::calm);
    assert_eq!((rig.status().state, read()), (ArrayState::Optimal, Ok(())));
    drives.iter().for_each(SharedSimDrive::hang);
    assert_eq!(read(), Err(BlockError::Unavailable));
    rig.world.run_for(Nanos::from_millis(100));
    let timeouts: Vec<_> = rig.status().slots.iter().map(|slot| slot.errors.timeouts).collect();
    assert_eq!(timeouts.iter().sum::<u64>(), 1, "{timeouts:?}");
    assert_ne!(rig.status().state, ArrayState::Optimal);
}

/// Somebody waits, which wakes the clock, and is gone before the clock has looked: whoever waits
/// next is told of a hung drive as well.
#[test]
fn a_wait_that_is_over_at_once_does_not_stop_the_clock() {
    let drive = drives(1, 12, false).remove(0);
    let rig = Rig::new(12, 1);
    let env = rig.env();
    let watch = Watch::new(&env, DRIVE_DEADLINE);
    let watched = watch.open(&Opened::new(drive.clone()));
    rig.world.run_for(Nanos::from_micros(1));
    let told = rig.world.block_on(CoreId(0), async move {
        let mut first = watched.read(0, Pool::single(4096));
        let looked = core::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut first).poll(cx)));
        assert!(looked.await.is_pending());
        drop(first);
        env.sleep(Nanos::from_millis(1)).await;
        drive.hang();
        let told = watched.read(0, Pool::single(4096)).await.0;
        watch.close();
        told
    });
    assert_eq!(told, Err(DriveError::Timeout));
}

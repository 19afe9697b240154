//! Flushes of hosts: one at a time for each drive, whoever asks, and none is taken for good beside
//! or behind one that failed.

use crate::common;

use common::{FORCE, Machine, Rig, drives, flush, read, record, references, write};
use engine::Volume;
use engine::manage::command::{ArrayState, ManageError, SlotHealth, StartOptions};
use io::{Blocks, DriveError, Env, Priority};
use layout::Level;
use sim::SharedSimDrive;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 16 << 10;
const LEVELS: [(Level, usize); 4] =
    [(Level::Raid1, 2), (Level::Raid10, 4), (Level::Raid5, 4), (Level::Raid6, 5)];

/// An array on drives with volatile caches, and its volume on two cores, written and flushed.
fn filled(
    level: Level,
    width: usize,
    seed: u64,
) -> (Rig, Vec<SharedSimDrive>, [Volume<Machine>; 2]) {
    let drives = drives(width, seed, true);
    let rig = Rig::new(seed, 2);
    rig.create(level, &drives, STRIP).unwrap();
    let volumes: [Volume<Machine>; 2] = rig.volume(MIB).try_into().ok().expect("of each core");
    write(&rig, &volumes[0], 0, &vec![1; MIB as usize]).unwrap();
    flush(&rig, &volumes[0]).unwrap();
    (rig, drives, volumes)
}

/// Begins a flush on a core; its outcome goes to the list.
fn begin(rig: &Rig, core: u16, volumes: &[Volume<Machine>; 2], ended: &Rc<RefCell<Vec<bool>>>) {
    let (volume, ended) = (volumes[usize::from(core)].clone(), ended.clone());
    rig.world.env(CoreId(core)).spawn(Priority::First, async move {
        let outcome = volume.flush().await;
        ended.borrow_mut().push(outcome.is_ok());
    });
}

#[test]
fn flushes_at_once_are_one_or_two_for_a_drive() {
    for (seed, (level, width)) in (1..).zip(LEVELS) {
        let (rig, drives, volumes) = filled(level, width, seed);
        for drive in &drives {
            drive.set_latency(Nanos::from_millis(5), Nanos::from_millis(6));
            drive.clear_log();
        }
        let ended = Rc::default();
        for number in 0..40 {
            begin(&rig, number % 2, &volumes, &ended);
        }
        rig.world.run_for(Nanos::from_millis(100));
        assert_eq!(*ended.borrow(), [true; 40], "{level}");
        for drive in &drives {
            let flushes = drive.counters().flushes;
            assert!((1..=2).contains(&flushes), "{level}: {flushes} flushes");
        }
    }
}

/// What a flush covered that failed may be lost, and the next one of the drive may say nothing of
/// it. Until the drive is known as failed nobody is told that what he wrote is durable.
#[test]
fn a_flush_beside_or_behind_one_that_failed_is_not_good() {
    for (level, width) in LEVELS {
        for seed in 0..40 {
            let (rig, drives, volumes) = filled(level, width, 100 + seed);
            write(&rig, &volumes[0], 0, &vec![2; MIB as usize]).unwrap();
            drives[seed as usize % width].fail_flushes(0, 1);
            let ended: Rc<RefCell<Vec<bool>>> = Rc::default();
            begin(&rig, (seed % 2) as u16, &volumes, &ended);
            rig.world.run_for(Nanos(seed * 400));
            begin(&rig, 1 - (seed % 2) as u16, &volumes, &ended);
            while ended.borrow().is_empty() {
                rig.world.run_steps(1);
            }
            let flushed = ended.borrow()[0];
            rig.world.crash();
            assert!(flushed, "{level}: redundancy makes up for one drive");
            let rig = Rig::new(seed, 2);
            rig.assemble(&references(&drives), FORCE).unwrap();
            let volume = rig.open_volume().remove(0);
            let found = read(&rig, &volume, 0, MIB).unwrap();
            let old = found.iter().position(|byte| *byte != 2);
            assert_eq!(old, None, "{level} seed {seed}: flushed bytes are lost");
        }
    }
}

/// Nobody waits any more for a flush that fails: the next one says so.
#[test]
fn a_flush_that_failed_is_not_forgotten_with_who_asked() {
    for (seed, (level, width)) in (300..).zip(LEVELS) {
        let (rig, drives, volumes) = filled(level, width, seed);
        write(&rig, &volumes[0], 0, &vec![2; MIB as usize]).unwrap();
        drives[1].fail_flushes(0, 1);
        let volume = volumes[0].clone();
        rig.world.block_on(CoreId(0), async move {
            let mut flush = Box::pin(volume.flush());
            let once = poll_fn(|cx| Poll::Ready(flush.as_mut().poll(cx).is_pending()));
            assert!(once.await, "the flush is under way");
        });
        rig.world.run_for(Nanos::from_millis(10));
        let volume = volumes[1].clone();
        rig.world.block_on(CoreId(1), async move { volume.flush().await }).unwrap();
        rig.world.crash();
        let rig = Rig::new(seed, 1);
        rig.assemble(&references(&drives), FORCE).unwrap();
        let found = read(&rig, &rig.open_volume()[0], 0, MIB).unwrap();
        assert!(found.iter().all(|byte| *byte == 2), "{level}: flushed bytes are lost");
    }
}

/// The kernel tells of a failed flush once, perhaps at a start: the drive is there, and the next
/// flush knows.
#[test]
fn a_drive_that_fails_the_flush_of_a_start_is_failed_by_the_next() {
    for (seed, (level, width)) in (400..).zip(LEVELS) {
        let (rig, drives, _) = filled(level, width, seed);
        rig.stop();
        drives[1].fail_flushes(0, 1);
        let rig = Rig::new(seed, 1);
        let status = rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        assert_ne!(status.slots[1].health, SlotHealth::Missing, "{level}");
        let volume = rig.open_volume().remove(0);
        write(&rig, &volume, 0, &vec![2; MIB as usize]).unwrap();
        flush(&rig, &volume).unwrap();
        assert_eq!(rig.status().slots[1].health, SlotHealth::Failed, "{level}");
        assert_eq!(read(&rig, &volume, 0, MIB).unwrap(), vec![2; MIB as usize]);
    }
}

/// A drive that is put back and fails a flush can't tell how old it is: it is not erased for that.
#[test]
fn a_drive_that_fails_the_flush_as_it_is_put_back_keeps_its_record() {
    let drives = drives(4, 410, true);
    let rig = Rig::new(410, 1);
    rig.create(Level::Raid5, &drives, STRIP).unwrap();
    let volume = rig.volume(MIB).remove(0);
    write(&rig, &volume, 0, &[1; 4096]).unwrap();
    rig.fail(1).unwrap();
    write(&rig, &volume, 0, &[2; 4096]).unwrap();
    let before = record(&drives[1]).sequence;
    drives[1].fail_flushes(0, 1);
    let refused = rig.answered(&rig.put_back(1, &drives[1]));
    assert!(matches!(refused, Err(ManageError::Drive(_, DriveError::Fault))), "{refused:?}");
    assert_eq!(record(&drives[1]).sequence, before);
    rig.answered(&rig.put_back(1, &drives[1])).unwrap();
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal);
    assert_eq!(rig.scrub(false).mismatches, 0);
}

//! There is no moment without guard: a drive becomes in sync while another lacks, or fails its
//! flush, and a crash at any request around it needs nobody's word.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Answer, Machine, Rig, drives, record, references};
use engine::manage::command::{ArrayStatus, ManageError, Request, StartOptions};
use engine::volume::Volume;
use format::SlotState;
use layout::Level;
use sim::{SharedSimDrive, WorldConfig};
use std::rc::Rc;
use units::{MIB, Nanos, Slot};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = 2 * MIB;
const WIDTH: usize = 6;
const MIX: Mix = Mix { tasks: 6, operations: 10_000, blocks_most: 60, read_percent: 10 };
const ALONE: StartOptions =
    StartOptions { start_degraded: false, accept_loss: false, ..StartOptions::NONE };

fn newest(drives: &[SharedSimDrive]) -> format::ArrayRecord {
    drives.iter().map(record).max_by_key(|r| r.sequence).unwrap()
}

/// RAID 6 without these drives, guarded, under load.
fn lacking(seed: u64, cache: bool, cores: u16, failed: &[usize]) -> Course {
    let (course, volumes) = idle(seed, cache, cores, failed);
    course.oracle.start(&course.rig, &volumes, MIX, seed);
    course.rig.world.run_for(Nanos::from_micros(2_000));
    course
}

/// RAID 6 without these drives, guarded, of which nobody wants anything now.
fn idle(seed: u64, cache: bool, cores: u16, failed: &[usize]) -> (Course, Vec<Volume<Machine>>) {
    let drives = drives(WIDTH, seed, cache);
    let mut config = WorldConfig::new(seed).with_cores(cores);
    config.mail_delay_most = Nanos::from_micros(20);
    let rig = Rig::with(config);
    rig.create(Level::Raid6, &drives, STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    let oracle = Oracle::new(BYTES, cache);
    oracle.start(&rig, &volumes, Mix { operations: 12, read_percent: 0, ..MIX }, seed);
    oracle.finish(&rig);
    let key = newest(&drives).journal_key;
    for slot in failed {
        rig.fail(*slot).unwrap();
    }
    while newest(&drives).journal_key == key {
        rig.world.run_for(Nanos::from_micros(100));
    }
    oracle.start(&rig, &volumes, Mix { operations: 12, read_percent: 0, ..MIX }, seed + 1);
    oracle.finish(&rig);
    (Course { rig, drives, oracle }, volumes)
}

struct Course {
    rig: Rig,
    drives: Vec<SharedSimDrive>,
    oracle: Rc<Oracle>,
}

impl Course {
    /// The array starts by itself with what a cut of power leaves now, and has everything.
    fn cut(&self, seed: u64) {
        let left: Vec<_> = self.drives.iter().map(|d| d.after_cut(true, seed)).collect();
        let oracle = self.oracle.fork();
        oracle.crashed();
        let rig = Rig::new(seed, 1 + (seed % 2) as u16);
        let started = rig.assemble(&references(&left), ALONE);
        started.unwrap_or_else(|error| panic!("border {seed}: {error}"));
        oracle.verify(&rig, &rig.open_volume()[0], true);
    }
}

fn in_sync(slot: usize) -> impl Fn(&[SharedSimDrive]) -> bool {
    move |drives| newest(drives).slots[slot].state == SlotState::InSync
}

/// A drive is put in, and is in sync later; beside one of the two the next flush of another fails,
/// which the array can spare or not.
fn joins_beside(seed: u64, out: &[usize], filled: bool) {
    let cache = seed.is_multiple_of(2);
    let (course, _volumes) = idle(seed, cache, 1 + (seed % 3) as u16, out);
    let fresh = drives(1, seed + 77, cache).remove(0);
    let all = [&course.drives[..1], core::slice::from_ref(&fresh), &course.drives[2..]].concat();
    if filled {
        course.rig.replace(1, &fresh).unwrap();
    }
    all[4].fail_flushes(0, 1);
    let put_in = (!filled).then(|| put_in(&course.rig, &fresh));
    let course = Course { drives: all, ..course };
    let joined = || match &put_in {
        Some(answer) => answer.lock().unwrap().is_some(),
        None => in_sync(1)(&course.drives),
    };
    let (mut before, mut failed) = (course.rig.world.boundaries(), false);
    for _ in 0..100_000 {
        course.rig.world.run_steps(1);
        let now = course.rig.world.boundaries();
        failed |= course.drives[4].take_fired().flushes > 0;
        if now > before && failed {
            course.cut(now);
        }
        before = now;
        if failed && joined() {
            break;
        }
    }
    assert!(failed && joined(), "seed {seed}: a flush failed: {failed}");
    course.cut(before);
    let spared = out.len() == 1;
    let state = record(&course.drives[0]).slots[4].state;
    assert_eq!(state, if spared { SlotState::Failed } else { SlotState::InSync }, "seed {seed}");
}

#[test]
fn a_join_beside_a_failed_flush_is_cut_at_every_request() {
    for seed in 50..54 {
        joins_beside(seed, &[1], false);
        joins_beside(seed, &[1], true);
        joins_beside(seed, &[1, 2], false);
    }
}

/// Asks for a drive to be put in slot 1, and does not wait.
fn put_in(rig: &Rig, spare: &SharedSimDrive) -> Answer<ArrayStatus> {
    rig.send(|r| Request::Replace("a".into(), Slot(1), common::reference(spare, 91), r))
}

/// A stop that comes while a drive is put in, at any moment of that, ends: what was held for the
/// drive's sake is let go, though the array is stopped.
#[test]
fn a_stop_beside_a_replacement_ends() {
    for step in 0..60 {
        let course = lacking(step, step % 2 == 0, 1 + (step % 2) as u16, &[1, 4]);
        let Course { rig, oracle, .. } = course;
        oracle.errors.set(true);
        let spare = drives(WIDTH + 1, step + 1_000, false).pop().unwrap();
        let put_in = put_in(&rig, &spare);
        rig.world.run_for(Nanos::from_micros(step * 40));
        let stopped = rig.send(|r| Request::Stop("a".into(), r));
        rig.answered(&stopped).unwrap();
        let _ = rig.answered(&put_in);
    }
}

/// A drive that is put in while the array is deleted is emptied with the others, or never written.
#[test]
fn a_deletion_beside_a_replacement_leaves_nothing() {
    for step in 0..40 {
        let Course { rig, oracle, .. } = lacking(step, step % 2 == 0, 1, &[1, 4]);
        oracle.errors.set(true);
        let spare = drives(WIDTH + 1, step + 2_000, false).pop().unwrap();
        let put_in = put_in(&rig, &spare);
        rig.world.run_for(Nanos::from_micros(step * 60));
        let deleted = rig.send(|r| Request::Delete("a".into(), r));
        rig.answered(&deleted).unwrap();
        let _ = rig.answered(&put_in);
        let slots = format::slot_offsets(spare.info().bytes);
        let slots = slots.map(|at| spare.peek(at, format::SLOT_BYTES));
        let found = format::newest([&slots[0], &slots[1], &slots[2], &slots[3]]);
        assert!(found.is_err(), "step {step}: a record is left");
    }
}

/// A drive that is to be put in and answers nothing holds up whoever puts it in, and no host.
#[test]
fn a_replacement_that_hangs_holds_nobody_up() {
    for seed in 0..4 {
        let drives = drives(WIDTH + 1, seed, seed % 2 == 0);
        let (used, spare) = (&drives[..WIDTH], &drives[WIDTH]);
        let rig = Rig::new(seed, 1 + (seed % 2) as u16);
        rig.create(Level::Raid6, used, STRIP).unwrap();
        let volume = rig.volume(BYTES).remove(0);
        common::write(&rig, &volume, 0, &[1; 4096]).unwrap();
        rig.fail(1).unwrap();
        spare.hang();
        let put_in = put_in(&rig, spare);
        rig.world.run_for(Nanos::from_millis(1));
        let before = rig.world.now();
        common::write(&rig, &volume, 8192, &[2; 4096]).unwrap();
        // The first write to a region that is clean, too.
        common::write(&rig, &volume, BYTES - 4096, &[3; 4096]).unwrap();
        assert!(rig.world.now().since(before) < Nanos::from_millis(100), "seed {seed}");
        rig.world.run_for(Nanos::from_millis(20_000));
        let refused = rig.answered(&put_in).map(|_| ());
        assert!(matches!(refused, Err(ManageError::Drive(..))), "{refused:?}");
        rig.stop();
    }
}

/// What is written while a drive gets the region map is in the map that it joins with.
#[test]
fn a_drive_joins_with_the_map_of_that_moment() {
    let drives = drives(3, 7, false);
    let rig = Rig::new(7, 1);
    rig.create(Level::Raid1, &drives[..2], STRIP).unwrap();
    let volume = rig.volume(BYTES).remove(0);
    rig.fail(1).unwrap();
    let spare = &drives[2];
    let map = record(&drives[0]).areas.map_start;
    spare.hold_within(map..map + 1);
    let put_in = put_in(&rig, spare);
    while !spare.writes_within(map..map + 1) {
        rig.world.run_for(Nanos::from_micros(10));
    }
    for at in [0, BYTES - 4096] {
        common::write(&rig, &volume, at, &[5; 4096]).unwrap();
    }
    spare.release();
    rig.answered(&put_in).unwrap();
    rig.wait();
    let alone = [spare.after_cut(true, 7)];
    let rig = Rig::new(8, 1);
    let options = StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
    rig.assemble(&references(&alone), options).unwrap();
    let volume = rig.open_volume().remove(0);
    for at in [0, BYTES - 4096] {
        assert!(common::read(&rig, &volume, at, 4096).unwrap() == [5; 4096], "zeros at {at}");
    }
}

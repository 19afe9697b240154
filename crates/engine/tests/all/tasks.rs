//! Tasks that people have wait, go on and end; how far they are; where they go on after a cut.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{FORCE, Machine, Rig, drives, record, reference, references};
use engine::Volume;
use engine::manage::command::{
    ArrayState, ArrayStatus, ManageError, Repair, Request, SlotHealth, StartOptions, TaskAction,
    TaskKind, TaskStatus,
};
use format::{Paused, SlotState};
use layout::Level;
use sim::SharedSimDrive;
use std::rc::Rc;
use units::{GroupNo, MIB, Nanos, Slot};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = 3 * MIB;
const MIX: Mix = Mix { tasks: 6, operations: 60, blocks_most: 80, read_percent: 0 };

fn act(rig: &Rig, kind: TaskKind, action: TaskAction) -> Result<ArrayStatus, ManageError> {
    rig.ask(|reply| Request::Task("a".into(), kind, None, action, reply))
}

fn one(rig: &Rig) -> TaskStatus {
    let tasks = rig.status().tasks;
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    tasks[0]
}

fn filled(level: Level, drives: &[SharedSimDrive], seed: u64) -> (Rig, Rc<Oracle>) {
    let rig = Rig::new(seed, 1 + (seed % 2) as u16);
    rig.create(level, drives, STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    rig.fill_rest();
    let oracle = Oracle::new(BYTES, false);
    oracle.start(&rig, &volumes, MIX, seed);
    oracle.finish(&rig);
    (rig, oracle)
}

fn volume(rig: &Rig) -> Volume<Machine> {
    rig.open_volume().remove(0)
}

fn restart(rig: &Rig, drives: &[SharedSimDrive], seed: u64, clean: bool) -> Rig {
    if clean {
        rig.stop();
    } else {
        rig.world.crash();
    }
    let rig = Rig::new(seed, 1);
    rig.assemble(&references(drives), FORCE).unwrap();
    rig
}

#[test]
fn a_rebuild_waits_and_goes_on_over_a_restart() {
    for seed in [1, 2] {
        let all = drives(5, seed, false);
        let (rig, oracle) = filled(Level::Raid5, &all[..4], seed);
        rig.fail(1).unwrap();
        rig.replace(1, &all[4]).unwrap();
        rig.world.run_for(Nanos::from_micros(100));
        let paused = act(&rig, TaskKind::Rebuild, TaskAction::Pause).unwrap().tasks[0];
        assert!(paused.paused && paused.kind == TaskKind::Rebuild && paused.stuck.is_none());
        assert!(paused.done_bytes < paused.total_bytes, "{paused:?}");
        let data = record(&all[0]).data_offset;
        let before = all[4].peek(data, 8 * MIB - data);
        rig.world.run_for(Nanos::from_millis(200_000));
        assert!(all[4].peek(data, 8 * MIB - data) == before, "nothing is filled while it waits");
        oracle.verify(&rig, &volume(&rig), false);
        assert!(record(&all[0]).paused.rebuild);
        let mut seated = all[..4].to_vec();
        seated[1] = all[4].clone();
        let rig = restart(&rig, &seated, seed + 10, seed == 1);
        rig.world.run_for(Nanos::from_millis(1_000));
        assert!(one(&rig).paused && rig.status().state == ArrayState::Degraded);
        act(&rig, TaskKind::Rebuild, TaskAction::Resume).unwrap();
        rig.wait();
        assert_eq!(rig.status().state, ArrayState::Optimal);
        assert_eq!((rig.scrub(false).mismatches, record(&all[0]).paused), (0, Paused::default()));
        oracle.verify(&rig, &volume(&rig), false);
    }
}

#[test]
fn a_cancelled_rebuild_leaves_the_drive_out() {
    for (seed, pause_first) in [(3, false), (4, true)] {
        let all = drives(5, seed, false);
        let (rig, oracle) = filled(Level::Raid5, &all[..4], seed);
        rig.fail(2).unwrap();
        rig.replace(2, &all[4]).unwrap();
        rig.world.run_for(Nanos::from_micros(100));
        if pause_first {
            act(&rig, TaskKind::Rebuild, TaskAction::Pause).unwrap();
        }
        let status = act(&rig, TaskKind::Rebuild, TaskAction::Cancel).unwrap();
        assert_eq!(status.slots[2].health, SlotHealth::Failed);
        assert_eq!(record(&all[0]).slots[2].state, SlotState::Failed);
        assert!(status.tasks.is_empty() && record(&all[0]).paused == Paused::default());
        oracle.verify(&rig, &volume(&rig), false);
        let none = act(&rig, TaskKind::Rebuild, TaskAction::Resume);
        assert!(matches!(none, Err(ManageError::NoTask(TaskKind::Rebuild))));
        // The next one starts by itself.
        rig.replace(2, &all[4]).unwrap();
        rig.wait();
        assert_eq!((rig.status().state, rig.scrub(false).mismatches), (ArrayState::Optimal, 0));
    }
}

/// Of two rebuilds the one that is meant by its number ends; the other waits and goes on as before.
#[test]
fn of_two_rebuilds_the_one_that_is_named_is_cancelled() {
    for (seed, pauses) in [(30, false), (31, true)] {
        let all = drives(7, seed, false);
        let (rig, oracle) = filled(Level::Raid6, &all[..5], seed);
        replace_two(&rig, &all);
        rig.world.run_for(Nanos::from_micros(100));
        act(&rig, TaskKind::Rebuild, TaskAction::Pause).unwrap();
        rig.world.run_for(Nanos::from_micros(100));
        if !pauses {
            act(&rig, TaskKind::Rebuild, TaskAction::Resume).unwrap();
        }
        let unended = rig.status().unended;
        assert_eq!(unended.len(), 2, "{unended:?}");
        let cancel = |number| {
            let (kind, action) = (TaskKind::Rebuild, TaskAction::Cancel);
            rig.ask(|reply| Request::Task("a".into(), kind, Some(number), action, reply))
        };
        let status = cancel(unended[0]).unwrap();
        let health = [1, 2].map(|slot| status.slots[slot].health);
        assert!(health.contains(&SlotHealth::Failed), "{health:?}");
        assert!(health.contains(&SlotHealth::Rebuilding), "{health:?}");
        assert_eq!(status.unended, unended[1..]);
        assert_eq!(record(&all[0]).paused.rebuild, pauses);
        let again = cancel(unended[0]);
        assert!(matches!(again, Err(ManageError::NoTask(TaskKind::Rebuild))), "it has ended");
        if pauses {
            act(&rig, TaskKind::Rebuild, TaskAction::Resume).unwrap();
        }
        rig.wait();
        let states = rig.status().slots.into_iter().map(|slot| slot.health);
        assert_eq!(states.filter(|health| *health == SlotHealth::InSync).count(), 4);
        oracle.verify(&rig, &volume(&rig), false);
    }
}

/// Fails the drives of slots 1 and 2 and puts others there.
fn replace_two(rig: &Rig, all: &[SharedSimDrive]) {
    for slot in [1, 2] {
        rig.fail(slot).unwrap();
    }
    for slot in [1, 2] {
        rig.replace(slot, &all[4 + slot]).unwrap();
    }
}

/// A pause is forgotten with what it was for.
#[test]
fn a_pause_ends_with_its_task() {
    let all = drives(6, 5, false);
    let (rig, _) = filled(Level::Raid6, &all[..5], 5);
    rig.fail(2).unwrap();
    rig.replace(2, &all[5]).unwrap();
    rig.world.run_for(Nanos::from_micros(100));
    act(&rig, TaskKind::Rebuild, TaskAction::Pause).unwrap();
    rig.fail(2).unwrap();
    rig.wait();
    rig.world.run_for(Nanos::from_millis(1));
    assert_eq!(record(&all[0]).paused, Paused::default());
    rig.replace(2, &all[2]).unwrap();
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal);
}

#[test]
fn a_resync_waits_and_is_not_cancelled() {
    for seed in [6, 7] {
        let all = drives(4, seed, false);
        let rig = Rig::new(seed, 1);
        rig.create(Level::Raid5, &all, STRIP).unwrap();
        let volumes = rig.volume(BYTES);
        let oracle = Oracle::new(BYTES, false);
        oracle.start(&rig, &volumes, Mix { operations: 1000, ..MIX }, seed);
        rig.world.run_for(Nanos::from_millis(3));
        rig.world.crash();
        common::hide_pages(&all);
        oracle.crashed();
        let rig = Rig::new(seed + 10, 2);
        rig.assemble(&references(&all), StartOptions::default()).unwrap();
        act(&rig, TaskKind::Resync, TaskAction::Pause).unwrap();
        let cancelled = act(&rig, TaskKind::Resync, TaskAction::Cancel);
        assert!(matches!(cancelled, Err(ManageError::NeededResync)));
        assert!(one(&rig).paused);
        let rig = restart(&rig, &all, seed + 20, seed == 6);
        rig.world.run_for(Nanos::from_millis(1_000));
        assert!(one(&rig).paused && rig.status().state == ArrayState::Degraded);
        oracle.verify(&rig, &volume(&rig), true);
        act(&rig, TaskKind::Resync, TaskAction::Resume).unwrap();
        rig.wait();
        assert_eq!((rig.status().state, rig.scrub(false).mismatches), (ArrayState::Optimal, 0));
        oracle.verify(&rig, &volume(&rig), false);
    }
}

/// What a scrub found before it waited counts in the end, each stripe once.
#[test]
fn a_scrub_goes_on_where_it_was() {
    for (seed, level, width, clean) in
        [(8, Level::Raid6, 5, true), (9, Level::Raid6, 5, false), (10, Level::Raid10, 4, true)]
    {
        let all = drives(width, seed, false);
        let (rig, _) = filled(level, &all, seed);
        // Nothing is owed from here on.
        let rig = restart(&rig, &all, seed + 10, true);
        let layout = record(&all[0]).layout().unwrap();
        let mut wrong = 0;
        for stripe in (0..layout.stripes(GroupNo(0))).step_by(5) {
            wrong += 1;
            let at = record(&all[0]).data_offset
                + layout.drive_offset(GroupNo(0), units::StripeNo(stripe));
            let mut bytes = all[1].peek(at, 512);
            bytes[7] ^= 1;
            all[1].overwrite(at, &bytes);
        }
        rig.ask(|r| Request::Scrub("a".into(), Repair::Nothing, r)).unwrap();
        rig.world.run_for(Nanos::from_micros(400));
        let paused = act(&rig, TaskKind::Scrub, TaskAction::Pause).unwrap().tasks[0];
        assert!(paused.paused && paused.done_bytes > 0, "{paused:?}");
        let rig = restart(&rig, &all, seed + 20, clean);
        let busy = rig.ask(|r| Request::Scrub("a".into(), Repair::Nothing, r));
        assert!(matches!(busy, Err(ManageError::Busy(TaskKind::Scrub))));
        rig.wait();
        assert!(rig.status().tasks.iter().any(|t| t.paused && t.done_bytes == paused.done_bytes));
        act(&rig, TaskKind::Scrub, TaskAction::Resume).unwrap();
        rig.wait();
        let found = rig.status().last_scrub.unwrap();
        assert_eq!((found.mismatches, found.repaired), (wrong, 0));
        let written = rig.status().region_map.written_bytes;
        assert_eq!((found.checked_bytes, record(&all[0]).scrub), (written, None));
    }
}

/// What was never written is not what lacked a drive to compare with: only that counts.
#[test]
fn a_scrub_tells_what_it_could_not_compare_from_what_was_never_written() {
    let all = drives(3, 12, false);
    let rig = Rig::new(12, 1);
    rig.create(Level::Raid5, &all, STRIP).unwrap();
    let volume = rig.volume(MIB).remove(0);
    common::write(&rig, &volume, 0, &[7; 4096]).unwrap();
    let (size, written) = (rig.status().size_bytes, rig.status().region_map.written_bytes);
    assert!(0 < written && written < size, "{written} of {size}");
    assert_eq!(rig.status().uncompared_bytes, None);
    assert_eq!(rig.scrub(false).checked_bytes, written);
    assert_eq!(rig.status().uncompared_bytes, Some(0));
    rig.fail(1).unwrap();
    assert_eq!(rig.scrub(false).checked_bytes, 0);
    assert_eq!(rig.status().uncompared_bytes, Some(written));
    // What a scrub left before the array was started nobody knows any more.
    let rig = restart(&rig, &all, 13, true);
    assert_eq!((rig.status().uncompared_bytes, rig.scrub(false).checked_bytes), (None, 0));
    assert_eq!(rig.status().uncompared_bytes, Some(written));
}

/// A rebuild does not wait for a scrub, and the scrub goes on afterwards.
#[test]
fn what_is_owed_comes_before_a_scrub() {
    let all = drives(6, 11, false);
    let (rig, oracle) = filled(Level::Raid6, &all[..5], 11);
    rig.ask(|r| Request::Scrub("a".into(), Repair::Known, r)).unwrap();
    act(&rig, TaskKind::Scrub, TaskAction::Pause).unwrap();
    rig.fail(0).unwrap();
    rig.replace(0, &all[5]).unwrap();
    act(&rig, TaskKind::Scrub, TaskAction::Resume).unwrap();
    let kinds: Vec<_> = rig.status().tasks.iter().map(|task| task.kind).collect();
    assert_eq!(kinds, [TaskKind::Rebuild, TaskKind::Scrub]);
    rig.wait();
    assert_eq!(rig.status().state, ArrayState::Optimal);
    let size = rig.status().size_bytes;
    let found = rig.status().last_scrub.unwrap();
    assert!(found.mismatches == 0 && found.checked_bytes <= size);
    oracle.verify(&rig, &volume(&rig), false);
}

#[test]
fn a_cancelled_scrub_just_ends() {
    let all = drives(4, 12, false);
    let (rig, _) = filled(Level::Raid5, &all, 12);
    let before = rig.scrub(false);
    rig.ask(|r| Request::Scrub("a".into(), Repair::Nothing, r)).unwrap();
    let status = act(&rig, TaskKind::Scrub, TaskAction::Cancel).unwrap();
    assert!(status.tasks.is_empty() && record(&all[0]).scrub.is_none());
    assert_eq!(rig.status().last_scrub, Some(before));
    assert!(matches!(
        act(&rig, TaskKind::Scrub, TaskAction::Pause),
        Err(ManageError::NoTask(TaskKind::Scrub))
    ));
    assert_eq!(rig.scrub(false).mismatches, 0);
}

/// Progress only grows, ends at the whole, and an estimate comes when there is a rate.
#[test]
fn progress_grows_to_the_whole() {
    let all = drives(5, 13, false);
    let (rig, _) = filled(Level::Raid5, &all[..4], 13);
    rig.fail(3).unwrap();
    rig.replace(3, &all[4]).unwrap();
    let (mut last, mut steps) = (0, 0);
    while let Some(task) = rig.status().tasks.first().copied() {
        assert!(task.done_bytes >= last && task.done_bytes <= task.total_bytes, "{task:?}");
        steps += u32::from(task.done_bytes > last);
        last = task.done_bytes;
        assert!(task.seconds_left.is_none(), "it took no second");
        rig.world.run_for(Nanos::from_micros(100));
    }
    assert!(steps > 3);
}

/// What a scrub said to have repaired is so after a power cut that comes just as it is recorded, by
/// a pause or in a stop: it goes on behind it, and nobody looks there again.
#[test]
fn what_a_scrub_repaired_before_it_waited_is_durable() {
    for seed in 30..46 {
        let all = drives(5, seed, true);
        let (rig, _) = filled(Level::Raid6, &all, seed);
        rig.stop();
        let start = record(&all[1]).data_offset;
        for stripe in 0..BYTES / 3 / u64::from(STRIP) {
            let at = start + stripe * u64::from(STRIP);
            let mut bytes = all[1].peek(at, 512);
            bytes[7] ^= 1;
            all[1].overwrite(at, &bytes);
        }
        let rig = Rig::new(seed + 20, 1);
        rig.assemble(&references(&all), StartOptions::default()).unwrap();
        // The group is dirty, and guarded: it owes nothing after the cut.
        common::write(&rig, &volume(&rig), 2 * MIB, &[7; 4096]).unwrap();
        rig.ask(|r| Request::Scrub("a".into(), Repair::Known, r)).unwrap();
        // Its first window is under way.
        rig.world.run_for(Nanos::from_micros(100));
        let (kind, action) = (TaskKind::Scrub, TaskAction::Pause);
        let _paused =
            (seed % 2 == 0).then(|| rig.send(|r| Request::Task("a".into(), kind, None, action, r)));
        let _stopped = (seed % 2 == 1).then(|| rig.send(|r| Request::Stop("a".into(), r)));
        while record(&all[0]).scrub.is_none_or(|scrub| scrub.repaired == 0) {
            rig.world.step();
        }
        assert!(record(&all[0]).scrub.is_some_and(|scrub| scrub.stripe > 0));
        rig.world.crash();
        let rig = Rig::new(seed + 40, 1);
        rig.assemble(&references(&all), StartOptions::default()).unwrap();
        if rig.status().tasks.iter().any(|task| task.paused) {
            act(&rig, TaskKind::Scrub, TaskAction::Resume).unwrap();
        }
        rig.wait();
        assert_eq!(rig.scrub(false).mismatches, 0, "seed {seed}");
    }
}

/// A drive that failed in one slot and is in another since is the one that a person means there.
#[test]
fn a_drive_is_named_where_it_counts() {
    let all = drives(6, 40, false);
    let rig = Rig::new(40, 1);
    rig.create(Level::Raid6, &all[..5], STRIP).unwrap();
    rig.fail(1).unwrap();
    rig.fail(3).unwrap();
    let named = |r| Request::Replace("a".into(), Slot(3), reference(&all[1], 1), r);
    rig.ask(named).unwrap();
    rig.wait();
    let status = rig.ask(|r| Request::Fail("a".into(), vec!["/dev/drive1".into()], r)).unwrap();
    assert_eq!(status.slots[3].health, SlotHealth::Failed);
}

//! What the manager tells the control plane without being asked: all of it, in order, in time.

use crate::common;

use common::oracle::{Mix, Oracle};
use common::{Rig, drives};
use engine::manage::command::{
    ArrayStatus, Change, Repair, Request, SlotHealth, TaskAction, TaskEnd, TaskKind,
};
use engine::manage::feed::{Feed, Overflowed};
use layout::Level;
use std::sync::Arc;
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 16 << 10;

/// Longer than the manager takes to look for news again.
const LOOK: Nanos = Nanos::from_millis(600);

/// What a control plane knows of arrays by its feed.
struct Reader {
    feed: Arc<Feed<Change>>,
    arrays: Vec<ArrayStatus>,
}

impl Reader {
    fn new(rig: &Rig) -> Self {
        let feed = Feed::new(|| ());
        let given = feed.clone();
        let arrays = rig.ask(|reply| Request::Feed(given, reply)).unwrap();
        Self { feed, arrays }
    }

    /// Takes what was told; every step.
    fn read(&mut self) -> Vec<Change> {
        let changes: Vec<Change> = self.feed.take().expect("nothing is missing").into();
        changes.iter().for_each(|change| apply(&mut self.arrays, change));
        changes
    }
}

fn apply(arrays: &mut Vec<ArrayStatus>, change: &Change) {
    match change {
        Change::Gone(id) => arrays.retain(|array| array.id != *id),
        Change::Array(new) => match arrays.iter_mut().find(|array| array.id == new.id) {
            Some(array) => *array = (**new).clone(),
            None => arrays.push((**new).clone()),
        },
    }
}

fn act(rig: &Rig, kind: TaskKind, action: TaskAction) -> ArrayStatus {
    rig.ask(|reply| Request::Task("a".into(), kind, None, action, reply)).unwrap()
}

/// The arrays of all steps, in order.
fn steps(changes: &[Change]) -> Vec<&ArrayStatus> {
    let mut arrays = Vec::new();
    for change in changes {
        if let Change::Array(array) = change {
            arrays.push(&**array);
        }
    }
    arrays
}

#[test]
fn what_a_request_did_is_told_before_its_answer() {
    let (rig, all) = (Rig::new(1, 2), drives(4, 1, false));
    let mut reader = Reader::new(&rig);
    assert!(reader.arrays.is_empty());
    let told = |reader: &mut Reader| {
        // Read at the moment of the answer: what runs on is told later.
        let feed = reader.feed.clone();
        move || feed.take().expect("nothing is missing")
    };
    let (take, seen) = (told(&mut reader), Arc::new(std::sync::Mutex::new(None)));
    let block_bytes = None;
    let new = engine::manage::command::NewArray {
        shared: false,
        name: "a".into(),
        level: Level::Raid5,
        strip_bytes: STRIP,
        block_bytes,
    };
    let put = seen.clone();
    rig.ask(|reply| {
        let reply = Box::new(move |answer| {
            *put.lock().unwrap() = Some(take());
            reply(answer);
        });
        Request::Create(new, common::references(&all), reply)
    })
    .unwrap();
    let changes = seen.lock().unwrap().take().unwrap();
    changes.iter().for_each(|change| apply(&mut reader.arrays, change));
    assert_eq!(reader.arrays, [rig.status()]);
    rig.volume(MIB);
    reader.read();
    assert_eq!(reader.arrays[0].volumes, rig.status().volumes);
    assert_eq!(reader.arrays[0].volumes.len(), 1);
    rig.stop();
    assert!(matches!(reader.read().last(), Some(Change::Gone(_))));
    assert!(reader.arrays.is_empty());
}

/// Who acts on an acknowledged write finds the drive that missed it to be out.
#[test]
fn a_failure_is_told_before_the_write_that_met_it_is_acknowledged() {
    for (seed, level, width) in [(2, Level::Raid5, 4), (3, Level::Raid1, 2), (4, Level::Raid6, 5)] {
        let (rig, all) = (Rig::slow(seed), drives(width, seed, false));
        rig.create(level, &all, STRIP).unwrap();
        let volumes = rig.volume(MIB);
        let mut reader = Reader::new(&rig);
        all[0].fail_writes(0, u64::MAX);
        let (volume, feed) = (volumes[1].clone(), reader.feed.clone());
        let told = rig.world.block_on(CoreId(1), async move {
            for at in (0..MIB).step_by(64 << 10) {
                let data = io::Pool::single(64 << 10).freeze();
                io::Blocks::write(&volume, at, data, true).await.unwrap();
            }
            feed.take()
        });
        let told: Vec<Change> = told.unwrap().into();
        let slots: Vec<SlotHealth> = steps(&told).iter().map(|a| a.slots[0].health).collect();
        assert_eq!(slots.last(), Some(&SlotHealth::Failed), "{slots:?}");
        told.iter().for_each(|change| apply(&mut reader.arrays, change));
        assert_eq!(reader.arrays[0].slots[0].errors, rig.status().slots[0].errors);
    }
}

#[test]
fn what_changes_by_itself_is_told_at_the_next_look_and_only_once() {
    let (rig, all) = (Rig::new(5, 1), drives(4, 5, false));
    rig.create(Level::Raid5, &all, STRIP).unwrap();
    let volume = rig.volume(MIB).remove(0);
    common::write(&rig, &volume, 0, &[7; 4096]).unwrap();
    rig.world.run_for(Nanos::from_millis(120_000));
    let mut reader = Reader::new(&rig);
    common::write(&rig, &volume, MIB / 2, &[7; 4096]).unwrap();
    rig.world.run_for(LOOK);
    reader.read();
    assert_eq!(reader.arrays, [rig.status()]);
    rig.world.run_for(Nanos::from_millis(120_000));
    reader.read();
    rig.world.run_for(LOOK);
    assert_eq!(reader.read(), [], "nothing is told twice");
}

#[test]
fn who_reads_too_late_is_told_so_and_begins_anew() {
    let (rig, all) = (Rig::new(6, 1), drives(2, 6, false));
    rig.create(Level::Raid1, &all, STRIP).unwrap();
    let late = Reader::new(&rig);
    for i in 0..engine::limits::FEED_RING / 2 + 1 {
        let name = format!("v{i}");
        rig.ask(|r| Request::VolumeCreate("a".into(), name.clone(), 4096, r)).unwrap();
        rig.ask(|r| Request::VolumeDelete("a".into(), name.as_str().into(), r)).unwrap();
    }
    assert_eq!(late.feed.take(), Err(Overflowed));
    let mut reader = Reader::new(&rig);
    assert_eq!(reader.arrays, [rig.status()]);
    rig.volume(MIB);
    assert!(!reader.read().is_empty());
    assert_eq!((reader.arrays, late.feed.take()), (vec![rig.status()], Err(Overflowed)));
}

/// However short they are, their begin and their end are told, and one is not taken for another.
#[test]
fn every_scrub_is_told_and_has_a_number_of_its_own() {
    let (rig, all) = (Rig::new(7, 2), drives(4, 7, false));
    rig.create(Level::Raid5, &all, STRIP).unwrap();
    rig.fill_rest();
    let mut reader = Reader::new(&rig);
    let mut numbers = Vec::new();
    for end in [TaskEnd::Completed, TaskEnd::Completed, TaskEnd::Cancelled, TaskEnd::Completed] {
        rig.ask(|r| Request::Scrub("a".into(), Repair::Nothing, r)).unwrap();
        if end == TaskEnd::Cancelled {
            act(&rig, TaskKind::Scrub, TaskAction::Cancel);
        }
        rig.wait();
        let changes = reader.read();
        let mut seen: Vec<u64> =
            steps(&changes).iter().flat_map(|a| &a.tasks).map(|task| task.number).collect();
        seen.dedup();
        assert_eq!(seen.len(), 1, "{seen:?}");
        let last = reader.arrays[0].ended.last().unwrap();
        assert_eq!((last.number, last.end), (seen[0], end));
        assert!(!numbers.contains(&seen[0]) && reader.arrays[0].tasks.is_empty());
        numbers.push(seen[0]);
    }
}

/// A rebuild is one task however it is put off, and ends as what it came to.
#[test]
fn a_rebuild_keeps_its_number_and_says_how_it_ended() {
    let (rig, all) = (Rig::new(8, 1), drives(6, 8, false));
    rig.create(Level::Raid6, &all[..5], STRIP).unwrap();
    rig.fill_rest();
    let mut reader = Reader::new(&rig);
    let begin = |reader: &mut Reader| {
        rig.replace(2, &all[5]).unwrap();
        rig.world.run_for(Nanos::from_micros(100));
        act(&rig, TaskKind::Rebuild, TaskAction::Pause);
        reader.read();
        reader.arrays[0].tasks[0].number
    };
    let end = |reader: &mut Reader, number: u64| {
        rig.wait();
        rig.world.run_for(LOOK);
        reader.read();
        let ended = reader.arrays[0].ended.last().copied().unwrap();
        assert_eq!(ended.number, number);
        ended.end
    };
    rig.fail(2).unwrap();
    let first = begin(&mut reader);
    act(&rig, TaskKind::Rebuild, TaskAction::Resume);
    assert_eq!(end(&mut reader, first), TaskEnd::Completed);
    rig.fail(2).unwrap();
    let second = begin(&mut reader);
    rig.fail(2).unwrap();
    assert_eq!(end(&mut reader, second), TaskEnd::Interrupted);
    let third = begin(&mut reader);
    act(&rig, TaskKind::Rebuild, TaskAction::Cancel);
    assert_eq!(end(&mut reader, third), TaskEnd::Cancelled);
    assert!(first < second && second < third);
}

/// Whatever happens, what was told is how it is.
#[test]
fn what_was_told_is_how_it_is() {
    for seed in 10..20 {
        let (rig, all) = (Rig::slow(seed), drives(6, seed, seed % 2 == 0));
        let mut reader = Reader::new(&rig);
        rig.create(Level::Raid6, &all[..5], STRIP).unwrap();
        let (volumes, oracle) = (rig.volume(MIB), Oracle::new(MIB, seed % 2 == 0));
        let mix = Mix { tasks: 4, operations: 60, blocks_most: 80, read_percent: 20 };
        oracle.start(&rig, &volumes, mix, seed);
        let victim = seed as usize % 5;
        all[victim].fail_writes(seed, 1);
        all[(victim + 1) % 5].fail_range(4 * MIB, 64 << 10);
        oracle.finish(&rig);
        if rig.status().slots[victim].health == SlotHealth::Failed {
            rig.replace(victim, &all[5]).unwrap();
        }
        rig.wait();
        rig.scrub(true);
        rig.world.run_for(LOOK);
        reader.read();
        assert_eq!(reader.arrays, [rig.status()], "seed {seed}");
        drop(reader);
        rig.world.settle();
    }
}

//! Discards beside whatever else goes on: nobody waits for ever, or longer than for what drives do,
//! and what is acknowledged as zeros is zeros after a crash.

use crate::common;

use common::{Machine, Rig, drives, record, references};
use engine::manage::command::{ArrayState, StartOptions};
use engine::volume::Volume;
use io::{BlockError, Blocks, Env, Pool, Priority};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 64 << 10;
const SECOND: Nanos = Nanos::from_millis(1_000);

/// Bytes of the array that a bit of every group stands for.
fn row(drives: &[SharedSimDrive]) -> u64 {
    record(&drives[0]).layout().unwrap().row_bytes(0)
}

fn slow(seed: u64, cores: u16) -> Rig {
    let mut config = sim::WorldConfig::new(seed).with_cores(cores);
    config.mail_delay_most = Nanos::from_micros([20, 200, 1_000][seed as usize % 3]);
    Rig::with(config)
}

/// What became of something that was begun.
type Became<T> = Rc<RefCell<Option<T>>>;

/// Begins something on a core, after a while.
fn begin<T: 'static, F: Future<Output = T> + 'static>(
    rig: &Rig,
    (core, after): (usize, Nanos),
    what: F,
) -> Became<T> {
    let became = Rc::new(RefCell::new(None));
    let (env, into) = (rig.world.env(CoreId(core as u16)), became.clone());
    let sleep = env.sleep(after);
    env.spawn(Priority::First, async move {
        sleep.await;
        let result = what.await;
        *into.borrow_mut() = Some(result);
    });
    became
}

fn write(
    volume: &Volume<Machine>,
    at: u64,
    bytes: u64,
) -> impl Future<Output = Result<(), BlockError>> + use<> {
    let volume = volume.clone();
    let mut data = Pool::single(bytes as usize);
    data.fill(0x5a);
    async move { volume.write(at, data.freeze(), false).await }
}

fn discard(
    volume: &Volume<Machine>,
    at: u64,
    bytes: u64,
) -> impl Future<Output = Result<(), BlockError>> + use<> {
    let volume = volume.clone();
    async move { volume.discard(at, bytes).await }
}

/// Runs until it is there, at most so long.
fn within<T: Copy>(rig: &Rig, span: Nanos, what: &Became<T>) -> Option<T> {
    let begun = rig.world.now();
    while rig.world.now().since(begun) < span && what.borrow().is_none() {
        rig.world.run_for(Nanos::from_micros(50));
    }
    *what.borrow()
}

/// A write that begins in a band never written and ends in one that was, where a discard withdraws
/// another of the same region.
#[test]
fn a_write_over_a_border_beside_a_discard_ends() {
    for (seed, level) in (0..60).flat_map(|seed| [(seed, Level::Raid0), (seed, Level::Jbod)]) {
        let drives = drives(3, seed, seed % 2 == 0);
        let rig = slow(seed, 1 + (seed % 2) as u16);
        rig.create(level, &drives, STRIP).unwrap();
        let volumes = rig.volume(rig.status().size_bytes);
        let (row, last) = (row(&drives), volumes.len() - 1);
        let strip = u64::from(STRIP);
        for at in [row, 2 * row] {
            common::write(&rig, &volumes[0], at, &[0x11; 4096]).unwrap();
        }
        let gone = begin(&rig, (last, Nanos(0)), discard(&volumes[last], 2 * row, row));
        let after = Nanos::from_micros(seed * 7 % 300);
        let across = write(&volumes[0], row - strip, 2 * strip);
        let over = begin(&rig, (0, after), across);
        assert_eq!(within(&rig, SECOND, &over), Some(Ok(())), "{level} seed {seed}: the write");
        assert_eq!(within(&rig, SECOND, &gone), Some(Ok(())), "{level} seed {seed}: the discard");
        drop(volumes);
        rig.stop();
    }
}

/// Two tasks and more that write, or read, a band for as long as they are let.
fn load(rig: &Rig, volume: &Volume<Machine>, reads: bool) -> Rc<Cell<bool>> {
    let on = Rc::new(Cell::new(true));
    for task in 0..4u64 {
        let (volume, on) = (volume.clone(), on.clone());
        let _ = begin(rig, (0, Nanos(task * 13_000)), async move {
            while on.get() {
                if reads {
                    let (result, _) = volume.read(task * 512, Pool::single(512)).await;
                    result.unwrap();
                } else {
                    write(&volume, task * 512, 512).await.unwrap();
                }
            }
        });
    }
    on
}

/// Requests that never leave a region idle, beside a discard there and a first write elsewhere.
#[test]
fn what_begins_later_keeps_no_discard_waiting() {
    for (level, width, fails) in [(Level::Raid0, 3, false), (Level::Raid5, 4, true)] {
        let drives = drives(width, 8, true);
        let rig = Rig::new(8, 1);
        rig.create(level, &drives, STRIP).unwrap();
        let volume = rig.volume(rig.status().size_bytes).remove(0);
        let row = row(&drives);
        for at in [0, row] {
            common::write(&rig, &volume, at, &[0x11; 4096]).unwrap();
        }
        if fails {
            // Whoever holds the first strip.
            let layout = record(&drives[0]).layout().unwrap();
            let place = layout.locate(0);
            rig.fail(layout.slot(place.group, place.stripe, place.strip).index()).unwrap();
        }
        let on = load(&rig, &volume, fails);
        rig.world.run_for(Nanos::from_millis(2));
        let gone = begin(&rig, (0, Nanos(0)), discard(&volume, row, row));
        let first = begin(&rig, (0, Nanos::from_millis(1)), write(&volume, 2 * row, 512));
        assert_eq!(within(&rig, SECOND, &gone), Some(Ok(())), "{level}: the discard");
        assert_eq!(within(&rig, SECOND, &first), Some(Ok(())), "{level}: the first write");
        on.set(false);
        rig.world.run_for(Nanos::from_millis(10));
        drop(volume);
        rig.stop();
    }
}

/// First writes that follow each other without a pause, beside a discard.
#[test]
fn first_writes_keep_no_discard_waiting() {
    let config = |i: u64| DriveConfig::new(74 * MIB, 900 + i);
    let drives: Vec<_> = (0..2).map(|i| SharedSimDrive::new(config(i))).collect();
    let rig = Rig::new(9, 1);
    rig.create(Level::Raid1, &drives, STRIP).unwrap();
    let volume = rig.volume(rig.status().size_bytes).remove(0);
    common::write(&rig, &volume, 0, &[0x11; 4096]).unwrap();
    let (row, written) = (row(&drives), Rc::new(Cell::new(0u32)));
    for task in 0..3u64 {
        let (volume, written) = (volume.clone(), written.clone());
        let _ = begin(&rig, (0, Nanos(0)), async move {
            // Backwards: nothing is written ahead.
            for band in (0..18u64).rev() {
                write(&volume, (2 + 3 * band + task) * row, 512).await.unwrap();
                written.set(written.get() + 1);
            }
        });
    }
    rig.world.run_for(Nanos::from_micros(200));
    let before = written.get();
    let gone = begin(&rig, (0, Nanos(0)), discard(&volume, 0, row));
    assert_eq!(within(&rig, SECOND, &gone), Some(Ok(())));
    let beside = written.get() - before;
    assert!(beside < 13, "{beside} first writes came before it");
}

/// Zeros in a band of which a discard is not durable are not acknowledged before that is.
#[test]
fn zeros_in_a_band_that_is_being_discarded_are_durable_when_they_are_over() {
    for (level, width) in [(Level::Raid0, 2), (Level::Raid1, 2), (Level::Raid5, 3)] {
        let drives = drives(width, 10, true);
        let rig = Rig::new(10, 2);
        rig.create(level, &drives, STRIP).unwrap();
        let volumes = rig.volume(rig.status().size_bytes);
        common::write(&rig, &volumes[0], 0, &[0x11; 4096]).unwrap();
        let areas = record(&drives[0]).areas;
        let map = areas.map_start..areas.map_start + areas.map_bytes;
        drives.iter().for_each(|drive| drive.hold_within(map.clone()));
        let gone = begin(&rig, (0, Nanos(0)), discard(&volumes[0], 0, row(&drives)));
        rig.world.run_for(Nanos::from_millis(5));
        let volume = volumes[1].clone();
        let zeros = async move { volume.write_zeroes(512, 512, true).await };
        let zeros = begin(&rig, (1, Nanos(0)), zeros);
        assert_eq!(within(&rig, Nanos::from_millis(100), &zeros), None, "{level}: not durable");
        drives.iter().for_each(SharedSimDrive::release);
        assert_eq!(within(&rig, SECOND, &zeros), Some(Ok(())), "{level}");
        assert_eq!(within(&rig, SECOND, &gone), Some(Ok(())), "{level}");
        rig.world.crash();
        let rig = Rig::new(11, 1);
        rig.assemble(&references(&drives), StartOptions::default()).unwrap();
        let got = common::read(&rig, &rig.open_volume()[0], 0, 4096);
        assert_eq!(got, Ok(vec![0; 4096]), "{level}: after a crash");
    }
}

/// What could not be unwritten is not called zeros later.
#[test]
fn zeros_after_a_discard_that_failed_fail() {
    let drives = drives(2, 12, true);
    let rig = Rig::new(12, 1);
    rig.create(Level::Jbod, &drives, STRIP).unwrap();
    let volume = rig.volume(rig.status().size_bytes).remove(0);
    common::write(&rig, &volume, 0, &[0x11; 4096]).unwrap();
    drives[0].fail_writes(0, 100);
    let gone = begin(&rig, (0, Nanos(0)), discard(&volume, 0, row(&drives)));
    assert_eq!(within(&rig, SECOND, &gone), Some(Err(BlockError::Unavailable)));
    let zeros = {
        let volume = volume.clone();
        begin(&rig, (0, Nanos(0)), async move { volume.write_zeroes(512, 512, true).await })
    };
    assert_eq!(within(&rig, SECOND, &zeros), Some(Err(BlockError::Unavailable)));
}

/// A batch of the journal that one drive took and another did not, and that is never written again,
/// counts nowhere once its band was discarded: else its bytes could come back over zeros.
#[test]
fn a_batch_that_was_given_up_counts_nowhere_after_a_discard() {
    let drives = drives(5, 14, false);
    let rig = Rig::new(14, 1);
    rig.create(Level::Raid6, &drives, STRIP).unwrap();
    let volume = rig.volume(rig.status().size_bytes).remove(0);
    common::write(&rig, &volume, 0, &[0x11; 4096]).unwrap();
    let key = record(&drives[1]).journal_key;
    rig.fail(0).unwrap();
    while record(&drives[1]).journal_key == key {
        rig.world.run_for(Nanos::from_micros(100));
    }
    let areas = record(&drives[1]).areas;
    let journal = areas.journal_start..areas.journal_start + areas.journal_bytes;
    drives[1..].iter().for_each(|drive| drive.hold_within(journal.clone()));
    let given_up = begin(&rig, (0, Nanos(0)), write(&volume, 4096, 4096));
    rig.world.run_for(Nanos::from_millis(2));
    let takes = |drive: &&SharedSimDrive| drive.writes_within(journal.clone());
    let (targets, others): (Vec<_>, Vec<_>) = drives[1..].iter().partition(takes);
    assert_eq!(targets.len(), 2);
    // The write is not logged again: it can't read what it needs, and nobody can be spared.
    targets[0].vanish();
    others[0].fail_reads(0, 1000);
    drives[1..].iter().for_each(SharedSimDrive::release);
    assert_eq!(within(&rig, SECOND, &given_up), Some(Err(BlockError::Unavailable)));
    others[0].calm();
    let record = record(others[0]);
    let batches = |drive: &SharedSimDrive| -> Vec<(u64, u64)> {
        let area = drive.peek(areas.journal_start, areas.journal_bytes);
        let decode = |at: usize| {
            let place = format::journal::Place { array: record.array, at: at as u64 };
            let batch = format::journal::decode(&area[at..], place)?.batch;
            (batch.key == record.journal_key).then_some((batch.sequence, batch.epoch))
        };
        (0..area.len()).step_by(4096).filter_map(decode).collect()
    };
    let (number, epoch) = *batches(targets[1]).iter().max().expect("it is whole there");
    let gone = begin(&rig, (0, Nanos(0)), discard(&volume, 0, row(&drives[1..])));
    assert_eq!(within(&rig, SECOND, &gone), Some(Ok(())));
    let all: Vec<_> = drives[1..].iter().filter(|drive| !drive.is_gone()).collect();
    let newer = |(n, e): (u64, u64)| n >= number && e > epoch;
    assert!(all.into_iter().flat_map(batches).any(newer), "it still counts: {number} of {epoch}");
}

/// A mirror of drives that take so long to discard a MiB, its volume with something in every row,
/// and the bytes of a row and of all.
fn all_written(seed: u64, discard_mib: Nanos) -> (Rig, Volume<Machine>, u64, u64) {
    let config = |i: u64| DriveConfig::new(300 * MIB, seed * 100 + i).with_blocks(4096);
    let config = |i: u64| DriveConfig { littered: true, record: false, discard_mib, ..config(i) };
    let drives: Vec<_> = (0..2).map(|i| SharedSimDrive::new(config(i))).collect();
    let rig = Rig::new(seed, 1);
    rig.create(Level::Raid1, &drives, STRIP).unwrap();
    let (size, row) = (rig.status().size_bytes, row(&drives));
    let volume = rig.volume(size).remove(0);
    for at in (0..size).step_by(row as usize) {
        common::write(&rig, &volume, at, &[0x11; 4096]).unwrap();
    }
    (rig, volume, row, size)
}

/// A discard for which drives take longer than their deadline, all in all.
#[test]
fn a_discard_of_much_takes_no_drive_out() {
    let (rig, volume, row, size) = all_written(13, Nanos::from_millis(40));
    let gone = begin(&rig, (0, Nanos(0)), discard(&volume, 0, size - row));
    rig.world.run_for(SECOND);
    assert_eq!(*gone.borrow(), None);
    let beside = begin(&rig, (0, Nanos(0)), write(&volume, size - 4096, 4096));
    assert_eq!(within(&rig, Nanos::from_millis(50), &beside), Some(Ok(())), "beside it");
    let again = begin(&rig, (0, Nanos(0)), write(&volume, size - 2 * row, 4096));
    assert_eq!(within(&rig, Nanos::from_millis(50), &again), Some(Ok(())), "what is still pending");
    let first = begin(&rig, (0, Nanos(0)), write(&volume, 0, 4096));
    let step = Nanos(64 * 40_000_000);
    assert_eq!(within(&rig, step, &first), Some(Ok(())), "what is in the step, after it");
    assert_eq!(within(&rig, Nanos(60 * SECOND.0), &gone), Some(Ok(())));
    assert_eq!(rig.status().state, ArrayState::Optimal);
    for at in [0, size - 2 * row] {
        let got = common::read(&rig, &volume, at, 4096);
        assert_eq!(got, Ok(vec![0x5a; 4096]), "what was written again is not discarded");
    }
}

/// A stop does not wait for what drives were not told yet.
#[test]
fn a_stop_waits_for_no_pending_discard() {
    let (rig, volume, _, size) = all_written(15, Nanos::from_millis(100));
    let gone = begin(&rig, (0, Nanos(0)), discard(&volume, 0, size));
    rig.world.run_for(SECOND);
    let begun = rig.world.now();
    rig.stop();
    let took = rig.world.now().since(begun);
    assert!(took < Nanos(8 * SECOND.0), "{took:?}, where all of it takes half a minute");
    assert_eq!(*gone.borrow(), Some(Ok(())), "it reads as zeros");
}

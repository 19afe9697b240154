//! Compare and write: whatever else changes the block meanwhile, on whatever core, comes before
//! both or after both.

use crate::common;

use common::{Machine, Rig, drives};
use engine::Volume;
use io::{BlockError, Blocks, Buf, Env, Pool, Priority};
use layout::Level;
use sim::Rng;
use std::cell::Cell;
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

const STRIP: u32 = 16 << 10;
const BYTES: u64 = MIB;
const LEVELS: [(Level, usize); 6] = [
    (Level::Raid0, 3),
    (Level::Jbod, 2),
    (Level::Raid1, 2),
    (Level::Raid10, 4),
    (Level::Raid5, 4),
    (Level::Raid6, 5),
];

/// A block of a value.
fn block(volume: &Volume<Machine>, value: u64) -> Buf {
    let mut bytes = Pool::single(volume.block_bytes() as usize);
    let words = bytes.chunks_exact_mut(8);
    words.for_each(|word| word.copy_from_slice(&value.to_le_bytes()));
    bytes.freeze()
}

/// The value of a block; one of several is damage.
fn value(bytes: &[u8]) -> u64 {
    let value = u64::from_le_bytes(*bytes.first_chunk().unwrap());
    assert!(bytes.chunks_exact(8).all(|word| word == value.to_le_bytes()), "a torn block");
    value
}

async fn value_at(volume: &Volume<Machine>, offset: u64) -> u64 {
    let (read, bytes) = volume.read(offset, Pool::single(volume.block_bytes() as usize)).await;
    assert_eq!(read, Ok(()));
    value(&bytes)
}

/// As core 0 reads it.
fn found_at(rig: &Rig, volumes: &[Volume<Machine>], offset: u64) -> u64 {
    let volume = volumes[0].clone();
    rig.world.block_on(CoreId(0), async move { value_at(&volume, offset).await })
}

fn filled(level: Level, width: usize, seed: u64) -> (Rig, Vec<Volume<Machine>>) {
    let rig = Rig::slow(seed);
    let drives = drives(width, seed, false);
    rig.create(level, &drives, STRIP).unwrap();
    let volumes = rig.volume(BYTES);
    drives.iter().for_each(|d| d.set_latency(Nanos::from_micros(5), Nanos::from_micros(800)));
    (rig, volumes)
}

/// Tasks that are to end.
#[derive(Clone, Default)]
struct Running(Rc<Cell<usize>>);

impl Running {
    fn spawn(&self, rig: &Rig, core: u16, task: impl Future<Output = ()> + 'static) {
        self.0.set(self.0.get() + 1);
        let left = self.0.clone();
        rig.world.env(CoreId(core)).spawn(Priority::First, async move {
            task.await;
            left.set(left.get() - 1);
        });
    }

    fn finish(&self, rig: &Rig) {
        for _ in 0..10_000 {
            if self.0.get() == 0 {
                return;
            }
            rig.world.run_for(Nanos::from_millis(1));
        }
        panic!("seed {}: a task never ends", rig.world.seed());
    }
}

/// Another change of the block that is begun while it is compared and written.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Other {
    Write,
    Zeroes,
    Discard,
}

/// A block holds `a`. Then it is changed by others while `a` is to become `c`. In either order what
/// the others did is there at the end: afterwards, or because the comparison failed.
fn raced(level: Level, width: usize, seed: u64) {
    let (rig, volumes) = filled(level, width, seed);
    let mut rng = Rng::new(seed);
    let env = rig.env();
    for round in 0..12 {
        let others = [Other::Write, Other::Zeroes, Other::Discard];
        let other = others[rng.below(3) as usize];
        let at = rng.below(BYTES / u64::from(volumes[0].block_bytes()))
            * u64::from(volumes[0].block_bytes());
        let (a, b, c) = (3 * round + 1, 3 * round + 2, 3 * round + 3);
        let (volume, running) = (volumes[rng.below(2) as usize].clone(), Running::default());
        let first = volume.clone();
        let discards = rig.world.block_on(CoreId(0), async move {
            first.write(at, block(&first, a), false).await.unwrap();
            first.discard(0, BYTES).await.unwrap();
            let left = value_at(&first, at).await;
            first.write(at, block(&first, a), false).await.unwrap();
            left == 0
        });
        let (pause, late) = (rng.below(1_000), env.clone());
        let (done, writer) = (Rc::new(Cell::new(None)), volumes[rng.below(2) as usize].clone());
        let told = done.clone();
        running.spawn(&rig, rng.below(2) as u16, async move {
            let blocks = (block(&volume, a), block(&volume, c));
            told.set(Some(volume.compare_and_write(at, blocks, false).await.unwrap()));
        });
        let bytes = u64::from(writer.block_bytes());
        running.spawn(&rig, rng.below(2) as u16, async move {
            late.sleep(Nanos::from_micros(pause)).await;
            let changed = match other {
                Other::Write => writer.write(at, block(&writer, b), false).await,
                Other::Zeroes => writer.write_zeroes(at, bytes, false).await,
                // All of it, so that there are whole rows to give up.
                Other::Discard => writer.discard(0, BYTES).await,
            };
            assert_eq!(changed, Ok(()));
        });
        running.finish(&rig);
        let found = found_at(&rig, &volumes, at);
        let expected = match other {
            Other::Write => b,
            // What lies in part of a row only is not given up.
            Other::Discard if !discards => c,
            Other::Zeroes | Other::Discard => 0,
        };
        let context = format!("seed {seed}, {level:?}, {other:?}, compared {:?}", done.get());
        assert_eq!(found, expected, "{context}");
    }
    rig.stop();
}

#[test]
fn nothing_comes_between() {
    for seed in 0..6 {
        for (level, width) in LEVELS {
            raced(level, width, seed);
        }
    }
}

/// A block that does not hold zeros is given up while zeros are expected there. What was compared
/// before is different, and what is written after it is there.
fn expected_zeros(level: Level, width: usize, seed: u64) {
    let (rig, volumes) = filled(level, width, seed);
    let mut rng = Rng::new(seed);
    let env = rig.env();
    for round in 0..12 {
        let at = rng.below(64) * u64::from(volumes[0].block_bytes());
        let (a, c) = (2 * round + 1, 2 * round + 2);
        let first = volumes[0].clone();
        rig.world.block_on(CoreId(0), async move {
            first.write(at, block(&first, a), false).await.unwrap();
        });
        let (running, done) = (Running::default(), Rc::new(Cell::new(None)));
        let (volume, told) = (volumes[rng.below(2) as usize].clone(), done.clone());
        running.spawn(&rig, rng.below(2) as u16, async move {
            let blocks = (block(&volume, 0), block(&volume, c));
            told.set(Some(volume.compare_and_write(at, blocks, false).await.unwrap()));
        });
        let (pause, late) = (rng.below(1_000), env.clone());
        let other = volumes[rng.below(2) as usize].clone();
        running.spawn(&rig, rng.below(2) as u16, async move {
            late.sleep(Nanos::from_micros(pause)).await;
            assert_eq!(other.write_zeroes(0, BYTES, false).await, Ok(()));
        });
        running.finish(&rig);
        let end = volumes[1].clone();
        let found = rig.world.block_on(CoreId(1), async move { value_at(&end, at).await });
        let expected = if done.get() == Some(true) { c } else { 0 };
        assert_eq!(found, expected, "seed {seed}, {level:?}, compared {:?}", done.get());
    }
    rig.stop();
}

#[test]
fn zeros_that_are_being_made_are_not_there_yet() {
    for seed in 0..8 {
        for (level, width) in LEVELS {
            expected_zeros(level, width, seed);
        }
    }
}

/// When it is asked for that changes take effect in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ordered {
    Never,
    Before,
    /// By the second change, while the first is under way.
    Between,
}

/// Two cores change a block, the second while the first is under way: what is there then.
fn overlapped(level: Level, width: usize, seed: u64, ordered: Ordered) -> u64 {
    let (rig, volumes) = filled(level, width, seed);
    let at = 7 * u64::from(volumes[0].block_bytes());
    if ordered == Ordered::Before {
        let volume = volumes[0].clone();
        rig.world.block_on(CoreId(0), async move { assert_eq!(volume.in_order().await, Ok(())) });
    }
    let running = Running::default();
    for core in [0, 1] {
        let volume = volumes[usize::from(core)].clone();
        running.spawn(&rig, core, async move {
            if core == 1 && ordered == Ordered::Between {
                assert_eq!(volume.in_order().await, Ok(()));
            }
            let value = u64::from(core) + 1;
            assert_eq!(volume.write(at, block(&volume, value), false).await, Ok(()));
        });
        // The first has begun, and may be with the drive.
        rig.world.run_for(Nanos::from_micros(seed % 60));
    }
    running.finish(&rig);
    let found = found_at(&rig, &volumes, at);
    rig.stop();
    found
}

#[test]
fn what_is_in_order_is_changed_in_the_order_in_which_it_came() {
    for (level, width) in LEVELS {
        let found = |ordered| -> Vec<u64> {
            (1..12).map(|seed| overlapped(level, width, seed, ordered)).collect()
        };
        for ordered in [Ordered::Before, Ordered::Between] {
            assert!(found(ordered).iter().all(|value| *value == 2), "{level:?}, {ordered:?}");
        }
        let has_order = !matches!(level, Level::Raid0 | Level::Jbod);
        let without = found(Ordered::Never);
        assert_eq!(without.iter().all(|value| *value == 2), has_order, "{level:?}: {without:?}");
    }
}

#[test]
fn a_stopped_array_compares_nothing() {
    for (level, width) in LEVELS {
        let (rig, volumes) = filled(level, width, 3);
        rig.stop();
        let volume = volumes[1].clone();
        let done = rig.world.block_on(CoreId(1), async move {
            let blocks = (block(&volume, 0), block(&volume, 1));
            volume.compare_and_write(0, blocks, false).await
        });
        assert_eq!(done, Err(BlockError::Stopped), "{level:?}");
    }
}

/// Hosts count by comparing and writing: every step is there once, with a drive failing meanwhile
/// where the level survives that.
fn counted(level: Level, width: usize, seed: u64) {
    const TASKS: u16 = 6;
    const STEPS: u64 = 8;
    let (rig, volumes) = filled(level, width, seed);
    let running = Running::default();
    let at = 7 * u64::from(volumes[0].block_bytes());
    for task in 0..TASKS {
        let volume = volumes[usize::from(task % 2)].clone();
        running.spawn(&rig, task % 2, async move {
            for _ in 0..STEPS {
                loop {
                    let now = value_at(&volume, at).await;
                    let blocks = (block(&volume, now), block(&volume, now + 1));
                    if volume.compare_and_write(at, blocks, now % 2 == 0).await == Ok(true) {
                        break;
                    }
                }
            }
        });
    }
    if !matches!(level, Level::Raid0 | Level::Jbod) {
        rig.world.run_for(Nanos::from_micros(seed * 300));
        rig.fail(0).unwrap();
    }
    running.finish(&rig);
    let found = found_at(&rig, &volumes, at);
    assert_eq!(found, u64::from(TASKS) * STEPS, "seed {seed}, {level:?}");
}

#[test]
fn every_step_counts_once() {
    for seed in 0..8 {
        for (level, width) in LEVELS {
            counted(level, width, seed);
        }
    }
}

#[test]
fn only_one_block_within_the_volume() {
    let (rig, volumes) = filled(Level::Raid5, 3, 1);
    let volume = volumes[0].clone();
    let two = || Pool::single(2 * volume.block_bytes() as usize).freeze();
    let compare = |at, blocks: (Buf, Buf)| {
        let volume = volumes[1].clone();
        let done = async move { volume.compare_and_write(at, blocks, true).await };
        rig.world.block_on(CoreId(1), done)
    };
    let one = || block(&volumes[0], 0);
    assert_eq!(compare(0, (two(), two())), Err(BlockError::Bounds));
    assert_eq!(compare(0, (two(), one())), Err(BlockError::Bounds));
    assert_eq!(compare(1, (one(), one())), Err(BlockError::Bounds));
    assert_eq!(compare(BYTES, (one(), one())), Err(BlockError::Bounds));
    assert_eq!(compare(0, (one(), block(&volumes[0], 5))), Ok(true));
    assert_eq!(compare(0, (one(), one())), Ok(false));
    let found = found_at(&rig, &volumes, 0);
    assert_eq!(found, 5);
}

/// An array that stops ends what waits for its direct writes to end.
#[test]
fn a_stop_ends_all_that_compare() {
    for seed in 0..20 {
        let (rig, volumes) = filled(Level::Raid0, 3, seed);
        let running = Running::default();
        for core in 0..2 {
            let volume = volumes[usize::from(core)].clone();
            running.spawn(&rig, core, async move {
                let mut now = 0;
                loop {
                    let blocks = (block(&volume, now), block(&volume, now + 1));
                    match volume.compare_and_write(512 * 8 * u64::from(core), blocks, false).await {
                        Ok(true) => now += 1,
                        end => return assert_eq!(end, Err(BlockError::Stopped)),
                    }
                }
            });
        }
        rig.world.run_for(Nanos::from_micros(seed * 60));
        rig.stop();
        running.finish(&rig);
    }
}

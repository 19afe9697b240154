//! The simulated drive keeps its promises, breaks everything else at times, and says so.

use io::{BufMut, Drive, DriveError, Env, Gather, Pool};
use palisade_sim::drive::{OpKind, Stage};
use palisade_sim::{DiscardContent, DriveConfig, SharedSimDrive, SimDrive, World, WorldConfig};
use units::{CoreId, Nanos};

const BLOCK: usize = 512;

fn filled(bytes: usize, byte: u8) -> BufMut {
    let mut buffer = Pool::single(bytes);
    buffer.fill(byte);
    buffer
}

fn gather(bytes: usize, byte: u8) -> Gather {
    [filled(bytes, byte).freeze()].into_iter().collect()
}

fn drive(cached: bool, seed: u64) -> SharedSimDrive {
    SharedSimDrive::new(DriveConfig::new(64 * BLOCK as u64, seed).with_cache(cached))
}

/// Runs `work` with a handle to the drive in a world of its own.
fn with<T: 'static, F: Future<Output = T> + 'static>(
    seed: u64,
    shared: &SharedSimDrive,
    work: impl FnOnce(SimDrive) -> F,
) -> (World<()>, T) {
    let world = World::new(WorldConfig::new(seed));
    let value = world.run_until(work(world.env(CoreId(0)).bind(shared)));
    (world, value)
}

fn block(shared: &SharedSimDrive, at: u64) -> Vec<u8> {
    shared.peek(at * BLOCK as u64, BLOCK as u64)
}

#[test]
fn what_was_written_reads_back_and_nothing_else_changes() {
    for (seed, block_bytes) in [(1, 512), (2, 4096)] {
        let config = DriveConfig::swarm(1 << 16, block_bytes, seed);
        let shared = SharedSimDrive::new(config.clone());
        let before = shared.contents();
        assert!(before.chunks(4096).all(|c| c.iter().any(|b| *b != 0)));
        let (_, data) = with(seed, &shared, |d| async move {
            let parts = [filled(512, 1), filled(3000, 2), filled(584, 3)];
            let parts: Gather = parts.into_iter().map(BufMut::freeze).collect();
            d.write(8192, &parts, false).await.unwrap();
            let (outcome, buffer) = d.read(4096, Pool::single(12288)).await;
            outcome.unwrap();
            buffer.to_vec()
        });
        let mut expected = before;
        expected[8192..8704].fill(1);
        expected[8704..11704].fill(2);
        expected[11704..12288].fill(3);
        assert!(data == expected[4096..16384]);
        assert!(shared.contents() == expected);
        assert_eq!(shared.counters().write_bytes, 4096);
    }
}

#[test]
fn flushed_and_fua_writes_survive_every_power_cut_and_plain_ones_some() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..300 {
        let shared = drive(true, seed);
        let (world, ()) = with(seed, &shared, |d| async move {
            d.write(0, &gather(BLOCK, 1), false).await.unwrap();
            d.flush().await.unwrap();
            d.write(512, &gather(BLOCK, 2), false).await.unwrap();
            d.write(512, &gather(BLOCK, 3), true).await.unwrap();
            d.write(1024, &gather(BLOCK, 4), false).await.unwrap();
        });
        world.crash();
        assert!(block(&shared, 0) == [1; BLOCK], "seed {seed}: a flushed write is lost");
        assert!(block(&shared, 1) == [3; BLOCK], "seed {seed}: a FUA write is lost");
        let survived = block(&shared, 2) == [4; BLOCK];
        *(if survived { &mut kept } else { &mut lost }) += 1;
        assert!(shared.contents() == shared.durable());
    }
    assert!(lost > 50 && kept > 50, "lost {lost}, kept {kept}");
}

#[test]
fn a_drive_without_volatile_cache_loses_nothing_acknowledged() {
    for seed in 0..100 {
        let shared = drive(false, seed);
        let (world, ()) = with(seed, &shared, |d| async move {
            d.write(0, &gather(4 * BLOCK, 1), false).await.unwrap();
            d.write_zeroes(0, BLOCK as u64).await.unwrap();
        });
        world.crash();
        assert!(block(&shared, 0) == [0; BLOCK] && block(&shared, 3) == [1; BLOCK]);
    }
}

#[test]
fn a_killed_process_loses_nothing_acknowledged() {
    for seed in 0..100 {
        let shared = drive(true, seed);
        let (world, ()) = with(seed, &shared, |d| async move {
            d.write(0, &gather(BLOCK, 1), false).await.unwrap();
        });
        world.kill();
        assert!(block(&shared, 0) == [1; BLOCK]);
    }
}

#[test]
fn overwritten_versions_come_back_in_any_order() {
    let mut seen = [0u32; 4];
    for seed in 0..400 {
        let shared = drive(true, seed);
        let old = block(&shared, 0);
        let (world, ()) = with(seed, &shared, |d| async move {
            for byte in 1..4 {
                d.write(0, &gather(BLOCK, byte), false).await.unwrap();
            }
        });
        world.crash();
        let now = block(&shared, 0);
        let version = if now == old { 0 } else { usize::from(now[0]) };
        assert!(version == 0 || now == [version as u8; BLOCK], "a torn block");
        seen[version] += 1;
    }
    assert!(seen.iter().all(|n| *n > 20), "{seen:?}");
}

#[test]
fn writes_in_flight_are_torn_by_blocks() {
    for cached in [false, true] {
        let (mut none, mut all, mut prefix, mut other) = (0, 0, 0, 0);
        for seed in 0..400 {
            let shared = drive(cached, seed);
            let before = shared.contents();
            let (world, ()) = with(seed, &shared, |d| async move {
                drop(d.write(0, &gather(8 * BLOCK, 9), true));
            });
            world.crash();
            let after = shared.contents();
            assert!(after[8 * BLOCK..] == before[8 * BLOCK..]);
            let new: Vec<bool> = (0..8).map(|n| block(&shared, n) == [9; BLOCK]).collect();
            for n in (0..8).filter(|n| !new[*n]) {
                let span = n * BLOCK..(n + 1) * BLOCK;
                assert!(after[span.clone()] == before[span], "a torn block");
            }
            let count = new.iter().filter(|n| **n).count();
            *(match count {
                0 => &mut none,
                8 => &mut all,
                n if new[..n].iter().all(|b| *b) => &mut prefix,
                _ => &mut other,
            }) += 1;
        }
        let seen = [none, all, prefix, other];
        assert!(seen.iter().all(|n| *n > 20), "none, all, prefix, other: {seen:?}");
    }
}

#[test]
fn overlapping_requests_take_effect_in_either_order() {
    let (mut first, mut mixed) = (0, 0);
    for seed in 0..200 {
        let shared = drive(false, seed);
        let (_world, ()) = with(seed, &shared, |d| async move {
            let a = d.write(0, &gather(8 * BLOCK, 1), false);
            let b = d.write(0, &gather(8 * BLOCK, 2), false);
            b.await.unwrap();
            a.await.unwrap();
        });
        let bytes: Vec<u8> = (0..8).map(|n| block(&shared, n)[0]).collect();
        first += u32::from(bytes == [1; 8]);
        mixed += u32::from(bytes.contains(&1) && bytes.contains(&2));
    }
    assert!(first > 20 && mixed > 5, "first won {first}, mixed {mixed}");
}

#[test]
fn a_flush_covers_only_what_was_acknowledged_before() {
    let (mut overtaken, mut lost) = (0, 0);
    for seed in 0..600 {
        let shared = drive(true, seed);
        let (world, ()) = with(seed, &shared, |d| async move {
            let write = d.write(0, &gather(BLOCK, 1), false);
            let flush = d.flush();
            write.await.unwrap();
            flush.await.unwrap();
        });
        world.crash();
        // The write ended within the flush: acknowledged, but not before the flush began.
        if shared.log().last().is_some_and(|entry| entry.kind == OpKind::Flush) {
            overtaken += 1;
            lost += u32::from(block(&shared, 0) != [1; BLOCK]);
        }
    }
    assert!(overtaken > 100 && lost > 50, "overtaken {overtaken}, lost {lost}");
}

#[test]
fn a_failed_write_leaves_any_subset_of_its_blocks() {
    let mut counts = [0u32; 5];
    for seed in 0..200 {
        let shared = drive(false, seed);
        shared.fail_writes(0, 1);
        let (_world, ()) = with(seed, &shared, |d| async move {
            d.write(0, &gather(4 * BLOCK, 1), true).await.unwrap_err();
        });
        counts[(0..4).filter(|n| block(&shared, *n) == [1; BLOCK]).count()] += 1;
    }
    assert!(counts.iter().all(|n| *n > 2), "{counts:?}");
}

#[test]
fn zero_latency_and_inline_work() {
    for inline in [false, true] {
        let mut config = DriveConfig::new(8192, 1);
        (config.inline, config.latency_least, config.latency_most) = (inline, Nanos(0), Nanos(0));
        let shared = SharedSimDrive::new(config);
        let (world, steps) = with(1, &shared, |d| async move {
            d.write(0, &gather(BLOCK, 1), false).await.unwrap();
            d.read(0, Pool::single(BLOCK)).await.0.unwrap();
            d.flush().await.unwrap();
        });
        let () = steps;
        assert_eq!(world.now(), Nanos(0));
        assert_eq!(world.steps() == 1, inline);
    }
}

#[test]
fn unreadable_blocks_stay_so_until_rewritten() {
    let shared = drive(false, 1);
    shared.fail_range(1024, 1);
    let (_, ()) = with(1, &shared, |d| async move {
        let read = async |offset, bytes| d.read(offset, Pool::single(bytes)).await.0;
        assert_eq!(read(512, 2 * BLOCK).await, Err(DriveError::Media));
        assert_eq!(read(512, BLOCK).await, Ok(()));
        assert_eq!(read(1536, BLOCK).await, Ok(()));
        d.write(1024, &gather(BLOCK, 1), false).await.unwrap();
        assert_eq!(read(1024, BLOCK).await, Ok(()));
    });
    assert_eq!(shared.counters().errors, 1);
}

#[test]
fn a_write_that_is_lost_leaves_an_unreadable_block_unreadable() {
    let mut met = [0; 2];
    for seed in 0..20 {
        let shared = drive(true, seed);
        let (_, ()) = with(seed, &shared, |d| async move {
            d.write(0, &gather(BLOCK, 1), true).await.unwrap();
        });
        shared.fail_range(0, 1);
        let (_, ()) = with(seed, &shared, |d| async move {
            d.write(0, &gather(BLOCK, 2), false).await.unwrap();
            assert_eq!(d.read(0, Pool::single(BLOCK)).await.0, Ok(()));
        });
        shared.power_cut(seed);
        let is_lost = shared.unreadable() == [0];
        assert!(is_lost || shared.unreadable().is_empty() && block(&shared, 0) == [2; BLOCK]);
        met[usize::from(is_lost)] += 1;
    }
    assert!(met.iter().all(|n| *n > 0), "{met:?}");
}

#[test]
fn faults_hit_the_chosen_requests() {
    let shared = drive(true, 1);
    shared.fail_writes(1, 2);
    shared.fail_flushes(0, 1);
    shared.fail_reads(0, u64::MAX);
    shared.spoil_writes_within(8 * 512..10 * 512);
    let control = shared.clone();
    let (world, ()) = with(1, &shared, |d| async move {
        let mut writes = Vec::new();
        for n in 0..4 {
            writes.push(d.write(n * 512, &gather(BLOCK, 1), false).await.is_ok());
        }
        assert_eq!(writes, [true, false, false, true]);
        for (block, wanted) in
            [(6, Ok(())), (7, Err(DriveError::Media)), (9, Err(DriveError::Media)), (10, Ok(()))]
        {
            let outcome = d.write(block * 512, &gather(2 * BLOCK, 1), false).await;
            assert_eq!(outcome, wanted, "blocks from {block} on");
        }
        assert_eq!(d.flush().await, Err(DriveError::Fault));
        for _ in 0..5 {
            let (outcome, data) = d.read(0, filled(BLOCK, 1)).await;
            assert_eq!(outcome, Err(DriveError::Fault));
            assert!(data[..] != [1; BLOCK], "a failed read left something useful");
        }
        control.clear_faults();
        assert_eq!(d.read(0, Pool::single(BLOCK)).await.0, Ok(()));
    });
    assert!(world.now() > Nanos(0));
}

#[test]
fn a_failed_flush_makes_nothing_durable() {
    let mut lost = 0;
    for seed in 0..100 {
        let shared = drive(true, seed);
        shared.fail_flushes(0, 1);
        let (world, ()) = with(seed, &shared, |d| async move {
            d.write(0, &gather(BLOCK, 1), false).await.unwrap();
            d.flush().await.unwrap_err();
        });
        world.crash();
        lost += u32::from(block(&shared, 0) != [1; BLOCK]);
    }
    assert!(lost > 10, "lost {lost}");
}

#[test]
fn a_vanished_drive_answers_gone_until_it_is_back() {
    let shared = drive(false, 1);
    let control = shared.clone();
    let (_, ()) = with(1, &shared, |d| async move {
        let flying = d.write(0, &gather(BLOCK, 1), false);
        control.vanish();
        assert_eq!(flying.await, Err(DriveError::Gone));
        assert_eq!(d.flush().await, Err(DriveError::Gone));
        assert_eq!(d.read(0, Pool::single(BLOCK)).await.0, Err(DriveError::Gone));
        control.reappear();
        assert_eq!(d.flush().await, Ok(()));
    });
}

#[test]
fn a_hung_drive_goes_on_when_released() {
    let shared = drive(false, 1);
    let world = World::<()>::new(WorldConfig::new(1));
    let handle = world.env(CoreId(0)).bind(&shared);
    shared.hang();
    let write = handle.write(0, &gather(BLOCK, 1), false);
    world.run_for(Nanos::from_millis(1000));
    assert_eq!(shared.in_flight(), 1);
    assert!(block(&shared, 0) != [1; BLOCK]);
    shared.release();
    assert_eq!(world.run_until(write), Ok(()));
    assert!(block(&shared, 0) == [1; BLOCK]);
}

#[test]
fn held_requests_run_late_while_others_go_on() {
    for inline in [false, true] {
        let shared = SharedSimDrive::new(DriveConfig { inline, ..DriveConfig::new(8192, 1) });
        let world = World::<()>::new(WorldConfig::new(1));
        let handle = world.env(CoreId(0)).bind(&shared);
        shared.hold(1, 1);
        let mut writes: Vec<_> =
            (1..4).map(|byte| handle.write(0, &gather(BLOCK, byte), false)).collect();
        let held = writes.remove(1);
        world.settle();
        assert_eq!(shared.in_flight(), 1);
        for write in writes {
            assert_eq!(world.run_until(write), Ok(()));
        }
        assert!(block(&shared, 0) != [2; BLOCK]);
        shared.release();
        assert_eq!(world.run_until(held), Ok(()));
        assert!(block(&shared, 0) == [2; BLOCK]);
    }
}

#[test]
fn a_pulled_drive_ends_what_hung() {
    let shared = drive(false, 1);
    let world = World::<()>::new(WorldConfig::new(1));
    let handle = world.env(CoreId(0)).bind(&shared);
    shared.hang();
    let write = handle.write(0, &gather(BLOCK, 1), false);
    world.settle();
    shared.vanish();
    assert_eq!(world.run_until(write), Err(DriveError::Gone));
}

#[test]
fn a_drive_that_loses_power_alone_answers_gone_for_what_was_in_flight() {
    let shared = drive(true, 1);
    let world = World::<()>::new(WorldConfig::new(1));
    let handle = world.env(CoreId(0)).bind(&shared);
    shared.hang();
    let write = handle.write(0, &gather(BLOCK, 1), false);
    world.settle();
    shared.power_cut(5);
    assert_eq!(world.run_until(write), Err(DriveError::Gone));
    assert_eq!(world.run_until(handle.flush()), Err(DriveError::Gone), "its cache is not there");
    let anew = world.env(CoreId(0)).bind(&shared);
    assert_eq!(world.run_until(anew.flush()), Ok(()));
}

#[test]
fn a_dropped_ticket_cancels_nothing() {
    let shared = drive(false, 1);
    let world = World::<()>::new(WorldConfig::new(1));
    let handle = world.env(CoreId(0)).bind(&shared);
    let pool = Pool::new(4096, 2);
    let mut data = pool.take(BLOCK).unwrap();
    data.fill(1);
    drop(handle.write(0, &[data.freeze()], false));
    drop(handle.read(0, pool.take(BLOCK).unwrap()));
    assert_eq!(pool.free(), 0, "the drive gave buffers up before it was done");
    world.settle();
    assert!(block(&shared, 0) == [1; BLOCK]);
    assert_eq!(pool.free(), 2);
}

#[test]
fn a_crash_gives_buffers_back() {
    let shared = drive(false, 1);
    let world = World::<()>::new(WorldConfig::new(1));
    let handle = world.env(CoreId(0)).bind(&shared);
    let pool = Pool::new(4096, 1);
    drop(handle.read(0, pool.take(BLOCK).unwrap()));
    world.crash();
    assert_eq!(pool.free(), 1);
    assert_eq!(shared.in_flight(), 0);
}

#[test]
fn discarded_blocks_read_as_the_profile_says() {
    use DiscardContent::{Changing, Old, Random, Unsupported, Zero};
    for content in [Old, Zero, Random, Changing, Unsupported] {
        let shared = drive(false, 1);
        shared.set_discard(content);
        let (_, (outcome, one, two)) = with(1, &shared, |d| async move {
            d.write(0, &gather(BLOCK, 1), false).await.unwrap();
            let outcome = d.discard(0, BLOCK as u64).await;
            let (_, one) = d.read(0, Pool::single(BLOCK)).await;
            let (_, two) = d.read(0, Pool::single(BLOCK)).await;
            (outcome, one.to_vec(), two.to_vec())
        });
        assert_eq!(outcome.is_ok(), content != Unsupported);
        assert_eq!(one == two, content != Changing);
        assert_eq!(one == [1; BLOCK], matches!(content, Old | Unsupported));
        assert_eq!(one == [0; BLOCK], content == Zero);
    }
}

#[test]
fn what_is_not_offered_or_out_of_bounds_is_refused() {
    let shared = drive(false, 1);
    let before = shared.contents();
    shared.set_write_zeroes(false);
    let (_, ()) = with(1, &shared, |d| async move {
        assert_eq!(d.write_zeroes(0, 512).await, Err(DriveError::Unsupported));
        let bounds = Err(DriveError::Bounds);
        assert_eq!(d.write(1, &gather(BLOCK, 1), false).await, bounds);
        assert_eq!(d.write(63 * 512, &gather(2 * BLOCK, 1), false).await, bounds);
        assert_eq!(d.read(0, Pool::single(100)).await.0, bounds);
        assert_eq!(d.discard(u64::MAX - 511, 512).await, bounds);
    });
    assert!(shared.contents() == before);
    assert_eq!(shared.counters().out_of_bounds, 4);
}

#[test]
fn the_log_orders_client_and_drive() {
    let shared = drive(true, 1);
    let world = World::<()>::new(WorldConfig::new(1));
    let env = world.env(CoreId(0));
    let handle = env.bind(&shared);
    let returned = world.run_until(async move {
        handle.write(0, &gather(BLOCK, 1), false).await.unwrap();
        handle.flush().await.unwrap();
        env.sequence()
    });
    let log = shared.log();
    let stages: Vec<_> = log.iter().map(|entry| (entry.kind, entry.stage)).collect();
    let done = Stage::Completed(Ok(()));
    assert_eq!(
        stages,
        [
            (OpKind::Write, Stage::Submitted),
            (OpKind::Write, done),
            (OpKind::Flush, Stage::Submitted),
            (OpKind::Flush, done)
        ]
    );
    assert!(log.is_sorted_by_key(|entry| entry.sequence));
    assert!(log[3].sequence < returned);
}

#[test]
fn silent_damage_hits_the_newest_content_and_only_its_bytes() {
    let shared = drive(true, 1);
    let (_world, ()) = with(1, &shared, |d| async move {
        d.write(0, &gather(2 * BLOCK, 1), false).await.unwrap();
    });
    let twin = shared.duplicate();
    shared.overwrite(510, &[7; 4]);
    assert_eq!(shared.peek(508, 8), [1, 1, 7, 7, 7, 7, 1, 1]);
    assert_eq!(twin.peek(508, 8), [1; 8]);
    assert!(!twin.is(&shared));
}

#[test]
fn a_new_world_goes_on_where_the_old_one_ended() {
    let shared = drive(true, 1);
    let (world, ()) = with(1, &shared, |d| async move {
        d.write(0, &gather(BLOCK, 1), true).await.unwrap();
        drop(d.write(512, &gather(BLOCK, 2), false));
    });
    world.crash();
    let (_, data) = with(2, &shared, |d| async move { d.read(0, Pool::single(BLOCK)).await });
    assert!(data.0.is_ok() && data.1[..] == [1; BLOCK]);
}

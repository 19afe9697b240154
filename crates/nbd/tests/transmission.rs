//! The transmission phase: every command, order, splitting, limits and errors.

mod support;

use io::{BlockError, Env};
use palisade_nbd::EndReason;
use sim::volume::{MemoryVolume, Op};
use support::World;
use support::client::{
    Client, DF, DISC, FLUSH, FUA, READ, STATUS, TRIM, WRITE, ZEROES, u32_at, u64_at,
};
use support::executor::TestEnv;
use units::Nanos;

const EINVAL: u32 = 22;
const MIB: usize = 1 << 20;

/// Runs a script on a volume of 8 MiB after the handshake; gives the connection's end.
fn on<F: Future<Output = ()> + 'static>(
    structured: bool,
    script: impl FnOnce(Client, MemoryVolume) -> F + 'static,
) -> EndReason {
    let volume = MemoryVolume::new(8 * MIB, 4096);
    let given = volume.clone();
    World::new(&volume).run(move |client| async move {
        client.enter(structured).await;
        script(client, given).await;
    })
}

#[test]
fn a_small_read_is_one_chunk() {
    on(true, |client, volume| async move {
        client.request(READ, 0, 42, 8192, 4096);
        let chunk = client.chunk().await;
        assert_eq!((chunk.done, chunk.kind, chunk.cookie), (true, 1, 42));
        assert_eq!(u64_at(&chunk.payload, 0), 8192);
        assert_eq!(chunk.payload[8..], volume.bytes_at(8192, 4096));
        assert_eq!(volume.log(), [Op::Read(8192, 4096)]);
    });
}

#[test]
fn a_simple_read_is_header_and_data() {
    on(false, |client, volume| async move {
        client.request(READ, 0, 42, 8192, 4096);
        assert_eq!(client.simple().await, (42, 0));
        assert_eq!(client.take(4096).await, volume.bytes_at(8192, 4096));
    });
}

/// Takes chunks up to the last and puts them together.
async fn gather(client: &Client, offset: usize, bytes: usize) -> (usize, Vec<u8>) {
    let mut data = vec![0; bytes];
    let (mut chunks, mut got) = (0, 0);
    loop {
        let chunk = client.chunk().await;
        assert_eq!(chunk.kind, 1);
        let at = u64_at(&chunk.payload, 0) as usize - offset;
        data[at..at + chunk.payload.len() - 8].copy_from_slice(&chunk.payload[8..]);
        (chunks, got) = (chunks + 1, got + chunk.payload.len() - 8);
        if chunk.done {
            assert_eq!(got, bytes);
            return (chunks, data);
        }
    }
}

#[test]
fn a_long_read_is_split_at_stripes() {
    on(true, |client, volume| async move {
        client.request(READ, 0, 1, 4096, 5 << 20);
        let (chunks, data) = gather(&client, 4096, 5 * MIB).await;
        assert!(chunks >= 5);
        assert!(data == volume.bytes_at(4096, 5 * MIB));
        let Op::Read(0x1000, first) = volume.log()[0] else { panic!("another first read") };
        assert_eq!((4096 + first) % (3 << 16), 0);
    });
}

#[test]
fn a_long_simple_read_is_in_order_and_not_interleaved() {
    on(false, |client, volume| async move {
        client.pipe.step.set(10_000);
        client.request(READ, 0, 1, 0, 7 << 20);
        (2..20).for_each(|cookie| client.request(READ, 0, cookie, 4096, 4096));
        let mut cookies = Vec::new();
        for _ in 1..20 {
            let (cookie, error) = client.simple().await;
            assert_eq!(error, 0);
            let (offset, bytes) = if cookie == 1 { (0, 7 * MIB) } else { (4096, 4096) };
            assert!(client.take(bytes).await == volume.bytes_at(offset, bytes));
            cookies.push(cookie);
        }
        cookies.sort_unstable();
        assert_eq!(cookies, (1..20).collect::<Vec<_>>());
    });
}

#[test]
fn writes_of_every_length_arrive() {
    for structured in [false, true] {
        on(structured, |client, volume| async move {
            for (cookie, bytes) in
                [4096, 8192, 65536, 69632, MIB, MIB + 4096, 8 * MIB].into_iter().enumerate()
            {
                let data: Vec<u8> = (0..bytes).map(|at| (at * 7 + cookie) as u8).collect();
                client.write(FUA, cookie as u64, (8 * MIB - bytes) as u64, &data);
                assert_eq!(client.simple().await, (cookie as u64, 0));
                assert!(volume.bytes_at(8 * MIB - bytes, bytes) == data);
                let log = volume.log();
                assert!(log.iter().all(|op| matches!(op, Op::Write(_, _, true))));
                assert!(log.len() >= bytes.div_ceil(MIB));
            }
        });
    }
}

#[test]
fn fua_flush_trim_and_zeroes_reach_the_volume() {
    on(true, |client, volume| async move {
        let steps: [(u16, u16, u64, u32, &[Op]); 8] = [
            (FLUSH, 0, 0, 0, &[Op::Flush]),
            (FLUSH, FUA, 0, 0, &[Op::Flush]),
            (TRIM, 0, 4096, 8192, &[Op::Discard(4096, 8192)]),
            (TRIM, FUA, 1, 9000, &[Op::Discard(4096, 4096), Op::Flush]),
            (TRIM, 0, 1, 4096, &[]),
            (ZEROES, 0, 0, 4096, &[Op::Zeroes(0, 4096, false)]),
            (ZEROES, FUA | 2, 4096, 4 << 20, &[Op::Zeroes(4096, 4 << 20, true)]),
            (WRITE, 0, 0, 0, &[]),
        ];
        for (cookie, (kind, flags, offset, bytes, ops)) in steps.into_iter().enumerate() {
            client.request(kind, flags, cookie as u64, offset, bytes);
            assert_eq!(client.simple().await, (cookie as u64, 0));
            assert_eq!(volume.log(), ops, "command {kind} flags {flags}");
        }
        client.write(0, 9, 0, &[1; 4096]);
        assert_eq!(client.simple().await, (9, 0));
        assert_eq!(volume.log(), [Op::Write(0, 4096, false)]);
        client.request(READ, 0, 10, 0, 0);
        assert_eq!((client.chunk().await.kind, volume.log()), (0, vec![]));
    });
}

#[test]
fn block_status_is_one_allocated_extent() {
    on(true, |client, _| async move {
        for flags in [0, 8] {
            client.request(STATUS, flags, 5, 4096, 4 << 20);
            let chunk = client.chunk().await;
            assert_eq!((chunk.done, chunk.kind, chunk.cookie), (true, 5, 5));
            let fields = [0, 4, 8].map(|at| u32_at(&chunk.payload, at));
            assert_eq!((chunk.payload.len(), fields), (12, [1, 4 << 20, 0]));
        }
    });
    on(false, |client, _| async move {
        client.request(STATUS, 0, 5, 0, 4096);
        assert_eq!(client.simple().await, (5, EINVAL));
    });
}

#[test]
fn bad_requests_get_errors_and_the_connection_goes_on() {
    let end = on(true, |client, volume| async move {
        let end = 8 << 20;
        let cases = [
            (READ, 0, end, 4096, EINVAL),
            (READ, 0, u64::MAX - 4095, 4096, EINVAL),
            (READ, 0, 512, 4096, EINVAL),
            (READ, 0, 0, (32 << 20) + 4096, EINVAL),
            (READ, 0, 0, u32::MAX, EINVAL),
            (READ, DF, 0, 1 << 20, 75),
            (READ, 0x8000, 0, 4096, EINVAL),
            (ZEROES, 0, end - 4096, 8192, 28),
            (ZEROES, 16, 0, 4096, 95),
            (TRIM, 0, end, 4096, EINVAL),
            (FLUSH, 0, 1, 0, EINVAL),
            (STATUS, 0, end, 4096, EINVAL),
            (5, 0, 0, 4096, EINVAL),
            (0xffff, 0, 0, 4096, EINVAL),
        ];
        for (cookie, (kind, flags, offset, bytes, error)) in cases.into_iter().enumerate() {
            client.request(kind, flags, cookie as u64, offset, bytes);
            assert_eq!(client.error().await, (cookie as u64, error));
        }
        // Payload of refused writes is skipped.
        for (offset, bytes, error) in [(1, 4096, EINVAL), (end, 5 << 20, 28), (0, 1000, EINVAL)] {
            client.write(0, 77, offset, &vec![9; bytes]);
            assert_eq!(client.error().await, (77, error));
        }
        assert_eq!(volume.log(), []);
        client.request(DISC, 0, 0, 0, 0);
        assert!(client.is_closed().await);
    });
    assert_eq!(end, EndReason::Disconnected);
}

#[test]
fn errors_of_the_volume_are_told_with_their_place() {
    on(true, |client, volume| async move {
        for (error, code) in [(BlockError::Unavailable, 5), (BlockError::Stopped, 108)] {
            volume.fail(3 << 20..(3 << 20) + 1, error);
            client.request(READ, 0, 1, 0, 6 << 20);
            let mut last = client.chunk().await;
            while !last.done {
                let at = u64_at(&last.payload, 0);
                assert!(
                    last.kind == 1
                        && !(at..at + last.payload.len() as u64 - 8).contains(&(3 << 20))
                );
                last = client.chunk().await;
            }
            assert_eq!((last.kind, u32_at(&last.payload, 0)), (0x8002, code));
            client.write(0, 2, 2 << 20, &vec![1; 4 * MIB]);
            assert_eq!(client.error().await, (2, code));
        }
        volume.fail(0..1, BlockError::Bounds);
        client.request(READ, 0, 3, 0, 4096);
        assert_eq!(client.error().await, (3, EINVAL));
        client.write(0, 4, 0, &[1; 4096]);
        assert_eq!(client.error().await, (4, 28));
    });
}

#[test]
fn a_simple_read_that_fails_late_ends_the_connection() {
    let end = on(false, |client, volume| async move {
        volume.fail(0..1, BlockError::Unavailable);
        client.request(READ, 0, 1, 0, 4 << 20);
        assert_eq!(client.simple().await, (1, 5));
        client.request(READ, 0, 2, 0, 4096);
        assert_eq!(client.simple().await, (2, 5));
        volume.fail(3 << 20..4 << 20, BlockError::Unavailable);
        client.request(READ, 0, 3, 0, 4 << 20);
        assert_eq!(client.simple().await, (3, 0));
        assert!(client.pipe.receive(4 * MIB).await.is_none());
    });
    assert_eq!(end, EndReason::Closed);
}

#[test]
fn replies_come_in_the_order_of_completion() {
    on(true, |client, volume| async move {
        volume.hold(Some(0));
        client.request(READ, 0, 1, 0, 4096);
        client.write(0, 2, 0, &[1; 4096]);
        client.request(READ, 0, 3, 4096, 4096);
        client.request(FLUSH, 0, 4, 0, 0);
        assert_eq!(client.chunk().await.cookie, 3);
        assert_eq!(client.simple().await, (4, 0));
        volume.hold(None);
        assert_eq!(client.chunk().await.cookie, 1);
        assert_eq!(client.simple().await, (2, 0));
    });
}

#[test]
fn small_replies_are_sent_together() {
    on(true, |client, _| async move {
        client.pipe.writes.set(0);
        let requests: Vec<u8> =
            (0..32).flat_map(|cookie| support::client::request(FLUSH, 0, cookie, 0, 0)).collect();
        client.send(&requests);
        for _ in 0..32 {
            assert_eq!(client.simple().await.1, 0);
        }
        assert!(client.pipe.writes.get() <= 4, "{} writes", client.pipe.writes.get());
    });
}

#[test]
fn one_byte_at_a_time_is_enough() {
    for structured in [false, true] {
        let volume = MemoryVolume::new(MIB, 512);
        let given = volume.clone();
        let end = World::new(&volume).run(move |client| async move {
            client.pipe.step.set(1);
            client.enter(structured).await;
            client.write(0, 1, 512, &[5; 1024]);
            assert_eq!(client.simple().await, (1, 0));
            client.request(READ, 0, 2, 0, 4096);
            let data = if structured {
                client.chunk().await.payload[8..].to_vec()
            } else {
                assert_eq!(client.simple().await, (2, 0));
                client.take(4096).await
            };
            assert_eq!(data, given.bytes_at(0, 4096));
            client.request(DISC, 0, 0, 0, 0);
            assert!(client.is_closed().await);
        });
        assert_eq!(end, EndReason::Disconnected);
    }
}

#[test]
fn a_goodbye_waits_for_requests_and_their_replies() {
    let end = on(true, |client, volume| async move {
        volume.hold(Some(4096));
        client.write(0, 1, 4096, &[8; 4096]);
        client.request(DISC, 0, 0, 0, 0);
        client.request(READ, 0, 2, 0, 4096);
        client.request(FLUSH, 0, 3, 0, 0);
        volume.hold(None);
        assert_eq!(client.simple().await, (1, 0));
        assert!(client.is_closed().await);
        assert_eq!(volume.log(), [Op::Write(4096, 4096, false)]);
    });
    assert_eq!(end, EndReason::Disconnected);
}

#[test]
fn a_client_that_leaves_is_waited_for() {
    let volume = MemoryVolume::new(MIB, 4096);
    let world = World::new(&volume);
    let (client, end) = world.connect();
    let pipe = client.pipe.clone();
    let given = volume.clone();
    world.core.block_on(async move {
        client.enter(true).await;
        given.hold(Some(0));
        client.write(0, 1, 0, &[8; 4096]);
        client.request(READ, 0, 2, 0, 65536);
        pipe.leave();
    });
    world.core.run();
    assert_eq!((end.get(), volume.0.in_flight.get()), (None, 2));
    volume.hold(None);
    world.core.run();
    assert_eq!((end.get(), world.core.tasks()), (Some(EndReason::Closed), 0));
    assert!(world.memory.is_idle());
}

#[test]
fn a_client_that_does_not_read_stops_nobody_else() {
    let volume = MemoryVolume::new(8 * MIB, 4096);
    let world = World::new(&volume);
    let stuck: Vec<_> = (0..3).map(|_| world.connect()).collect();
    for (client, _) in &stuck {
        let pipe = client.pipe.clone();
        let client = Client::new(pipe.clone());
        world.core.block_on(async move { client.enter(true).await });
        pipe.set_stuck(true);
        pipe.capacity.set(2 * MIB);
        for cookie in 0..1000 {
            pipe.send(&support::client::request(READ, 0, cookie, 0, 8 << 20));
        }
    }
    world.core.run_ready();
    // All shared memory is taken, and their requests stay unread.
    assert!(stuck.iter().all(|(client, _)| client.pipe.unread() > 900 * 28));
    let (client, _) = world.connect();
    let pipe = client.pipe.clone();
    let given = volume.clone();
    world.core.block_on(async move {
        client.enter(true).await;
        client.write(0, 1, 0, &vec![3; 4 * MIB]);
        assert_eq!(client.simple().await, (1, 0));
        client.request(READ, 0, 2, 0, 4 << 20);
        assert!(gather(&client, 0, 4 * MIB).await.1 == given.bytes_at(0, 4 * MIB));
    });
    pipe.leave();
    // One of the stuck reads on: nothing of its replies was lost. The others leave.
    let first = Client::new(stuck[0].0.pipe.clone());
    first.pipe.set_stuck(false);
    world.core.block_on(async move {
        let mut done = 0;
        while done < 3 {
            done += usize::from(first.chunk().await.done);
        }
    });
    stuck.iter().for_each(|(client, _)| client.pipe.leave());
    world.core.run();
    assert_eq!(world.core.tasks(), 0);
    assert!(world.memory.is_idle());
}

#[test]
fn memory_kept_by_the_volume_is_waited_for() {
    let volume = MemoryVolume::new(MIB, 4096);
    let world = World::with(
        support::Shelf(vec![("vol".into(), volume.clone())]),
        palisade_nbd::MemorySize { connections: 1, reserve_bytes: 64 << 10, pieces: [1, 0, 0, 0] },
    );
    let (given, env) = (volume.clone(), TestEnv(world.core.clone()));
    world.run(move |client| async move {
        client.enter(true).await;
        given.0.keep.set(true);
        for cookie in 0..2 {
            client.write(0, cookie, 0, &[1; 4096]);
            assert_eq!(client.simple().await, (cookie, 0));
        }
        given.0.keep.set(false);
        client.write(0, 3, 0, &[2; 4096]);
        // No piece is left and nobody will announce one; the volume lets go without a word.
        env.sleep(Nanos::from_micros(10)).await;
        assert_eq!(client.pipe.unread(), 4096);
        given.0.kept.borrow_mut().clear();
        assert_eq!(client.simple().await, (3, 0));
    });
}

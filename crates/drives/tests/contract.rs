//! The same contract for every kind of drive, on both back ends of the runtime.

#[path = "support/remote.rs"]
#[allow(dead_code, reason = "the other program that has it uses all of it")]
mod remote;

use io::{Buf, BufMut, Drive, DriveError, Env as _, Gather, Pool, Priority};
use palisade_drives::{Env, Faults, IoTimes, Op, OpenError, OpenOptions, SharedDrive};
use runtime::Config;
use std::path::Path;
use std::time::Duration;
use units::Nanos;

const BYTES: u64 = 8 << 20;

fn pattern(bytes: usize, seed: u8) -> Buf {
    let mut buffer = Pool::single(bytes);
    for (n, byte) in buffer.iter_mut().enumerate() {
        *byte = (n as u8).wrapping_mul(31).wrapping_add((n >> 8) as u8).wrapping_add(seed);
    }
    buffer.freeze()
}

fn gather(parts: &[Buf]) -> Gather {
    parts.iter().cloned().collect()
}

async fn read(drive: &impl Drive, offset: u64, bytes: usize) -> Result<BufMut, DriveError> {
    let mut into = Pool::single(bytes);
    into.fill(0xee);
    let (result, into) = drive.read(offset, into).await;
    result.map(|()| into)
}

/// Both back ends.
fn configs() -> [Config; 2] {
    [Config::default(), Config { blocking: true, ..Config::default() }]
}

/// A file of non-zero bytes.
fn file_in(dir: &Path) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new_in(dir).unwrap();
    std::fs::write(file.path(), vec![0xa5; BYTES as usize]).unwrap();
    file
}

fn run(config: Config, f: impl AsyncFnOnce(Env<()>) + 'static) {
    runtime::run_single_with(config, f);
}

/// Runs `test` on every kind of drive and both back ends.
fn on_every_drive(test: impl AsyncFn(Env<()>, SharedDrive) + Copy + 'static) {
    for config in configs() {
        for dir in ["/dev/shm", env!("CARGO_TARGET_TMPDIR")] {
            let file = file_in(Path::new(dir));
            let drive = SharedDrive::open(file.path(), &OpenOptions::default()).unwrap();
            assert_eq!(drive.info().inline, dir == "/dev/shm");
            assert_eq!(drive.info().volatile_cache, dir != "/dev/shm");
            assert!(drive.is_file() && drive.path() == file.path());
            let (faulty, _) = drive.faulty();
            run(config.clone(), async move |env| test(env, drive).await);
            run(config.clone(), async move |env| test(env, faulty).await);
        }
        for block in [512, 4096] {
            let drive = SharedDrive::memory(BYTES, block, true);
            run(config.clone(), async move |env| test(env, drive).await);
            let drive = paced(block);
            assert!(!drive.info().inline && !drive.info().volatile_cache);
            run(config.clone(), async move |env| test(env, drive).await);
        }
        for (block, digests) in [(512, false), (4096, true)] {
            let own = remote::drive(BYTES as usize, block, digests);
            assert_eq!(own.drive.info().block_bytes, block);
            run(config.clone(), async move |env| {
                own.fabric.serve(&env);
                test(env, own.drive.clone()).await;
            });
        }
    }
}

fn paced(block: u32) -> SharedDrive {
    let model = pace::by_name("sn840").unwrap();
    SharedDrive::paced(BYTES, block, pace::DriveState::many(model, 1.0, 1).remove(0))
}

/// Each runtime's clock begins with it; the drive's time goes on.
#[test]
fn a_paced_drive_is_idle_for_the_next_runtime() {
    let shared = paced(4096);
    for _ in 0..2 {
        let drive = shared.clone();
        run(Config::default(), async move |env| {
            let drive = env.bind(&drive);
            for _ in 0..200 {
                read(&drive, 0, 4096).await.unwrap();
            }
        });
    }
    // What the model said of all of them, one after the other.
    let told = shared.io_times().reads.nanos;
    assert!((400 * 87_400..400 * 87_600).contains(&told), "{told}");
}

/// One `sn840`: a read takes 85 us and 2.427 us of service, a write 25 us and 7.668 us.
#[test]
fn a_paced_drive_answers_no_earlier_than_its_model() {
    for config in configs() {
        run(config, async |env| {
            let drive = env.bind(&paced(4096));
            let data = pattern(4096, 1);
            let begun = env.reactor().look_at_clock();
            let writes: Vec<_> = (0..10)
                .map(|at| drive.write(at * 4096, &gather(std::slice::from_ref(&data)), false))
                .collect();
            for write in writes {
                write.await.unwrap();
            }
            // Ten are served one after the other, and the last one's latency is behind that.
            let time = env.now().since(begun);
            assert!(time >= Nanos(10 * 7_668 + 25_000), "{time:?}");
            let begun = env.reactor().look_at_clock();
            assert_eq!(read(&drive, 4096, 4096).await.unwrap()[..], data[..]);
            let time = env.now().since(begun);
            assert!(time >= Nanos(85_000 + 2_427), "{time:?}");
            drive.flush().await.unwrap();
        });
    }
}

#[test]
fn what_is_written_is_read() {
    on_every_drive(async |env, shared| {
        let drive = env.bind(&shared);
        let before = shared.io_counts();
        let timed = || {
            let IoTimes { reads, writes } = shared.io_times();
            [reads, writes].map(|times| times.buckets.iter().sum::<u64>())
        };
        let timed_before = timed();
        let block = drive.info().block_bytes as usize;
        let whole = pattern(5 * 4096, 1);
        let parts =
            [whole.slice(..4096), whole.slice(4096..4096 + block), whole.slice(4096 + block..)];
        drive.write(8192, &gather(&parts), false).await.unwrap();
        assert_eq!(read(&drive, 8192, whole.len()).await.unwrap()[..], whole[..]);
        drive.flush().await.unwrap();
        let one = pattern(block, 9);
        drive.write(BYTES - block as u64, &gather(std::slice::from_ref(&one)), true).await.unwrap();
        let end = read(&drive, BYTES - block as u64, block).await.unwrap();
        assert_eq!(end[..], one[..]);
        let counts = shared.io_counts();
        assert_eq!(counts.reads - before.reads, 2);
        assert_eq!(counts.writes - before.writes, 2);
        assert_eq!(counts.flushes - before.flushes, 1);
        assert_eq!(counts.write_bytes - before.write_bytes, (whole.len() + block) as u64);
        // All that went through the reactor; the first of those in the calling thread.
        let [reads, writes] = [0, 1].map(|kind: usize| timed()[kind] - timed_before[kind]);
        assert!([(2, 2), (1, 1)].contains(&(reads, writes)), "{reads} {writes}");
    });
}

#[test]
fn zeroes_read_as_zeros_and_leave_neighbours_alone() {
    on_every_drive(async |env, shared| {
        let drive = env.bind(&shared);
        drive.write(0, &gather(&[pattern(1 << 20, 3)]), false).await.unwrap();
        let block = u64::from(drive.info().block_bytes);
        drive.write_zeroes(block, 3 * block + 65536).await.unwrap();
        let got = read(&drive, 0, 1 << 20).await.unwrap();
        let (from, to) = (block as usize, (4 * block) as usize + 65536);
        let expected = pattern(1 << 20, 3);
        assert!(got[from..to].iter().all(|b| *b == 0));
        assert_eq!(got[..from], expected[..from]);
        assert_eq!(got[to..], expected[to..]);
        match drive.discard(0, 1 << 16).await {
            Ok(()) | Err(DriveError::Unsupported) => {}
            Err(error) => panic!("discard: {error}"),
        }
    });
}

#[test]
fn requests_outside_or_unaligned_are_refused() {
    on_every_drive(async |env, shared| {
        let drive = env.bind(&shared);
        let block = u64::from(drive.info().block_bytes);
        for (offset, bytes) in [(BYTES, block), (BYTES - block, 2 * block), (1, block), (0, 1)] {
            let refused = Err(DriveError::Bounds);
            assert_eq!(read(&drive, offset, bytes as usize).await.map(drop), refused);
            let data = gather(&[pattern(bytes as usize, 0)]);
            assert_eq!(drive.write(offset, &data, false).await, refused);
            assert_eq!(drive.write_zeroes(offset, bytes).await, refused);
            assert_eq!(drive.discard(offset, bytes).await, refused);
        }
        assert_eq!(
            read(&drive, u64::MAX - block + 1, 512).await.map(drop),
            Err(DriveError::Bounds)
        );
    });
}

#[test]
fn many_requests_in_flight_and_dropped_tickets_are_finished() {
    on_every_drive(async |env, shared| {
        let drive = env.bind(&shared);
        let mut tickets = Vec::new();
        for n in 0..1000u64 {
            let ticket = drive.write(n * 4096, &gather(&[pattern(4096, n as u8)]), false);
            // Every second ticket is dropped at once: the write happens nevertheless.
            if n % 2 == 0 {
                tickets.push(ticket);
            }
        }
        for ticket in tickets {
            ticket.await.unwrap();
        }
        let mut reads = Vec::new();
        for n in 0..1000u64 {
            while n % 2 == 1
                && read(&drive, n * 4096, 4096).await.unwrap()[..] != pattern(4096, n as u8)[..]
            {
                env.sleep(Nanos::from_millis(1)).await;
            }
            reads.push((n, drive.read(n * 4096, Pool::single(4096))));
        }
        for (n, ticket) in reads {
            let (result, got) = ticket.await;
            result.unwrap();
            assert_eq!(got[..], pattern(4096, n as u8)[..], "block {n}");
        }
    });
}

#[test]
fn memory_that_direct_io_cannot_take_works() {
    on_every_drive(async |env, shared| {
        let drive = env.bind(&shared);
        let data = pattern(3 * 4096, 7).slice(100..100 + 8192);
        drive.write(4096, &gather(std::slice::from_ref(&data)), true).await.unwrap();
        let mut into = Pool::single(3 * 4096);
        drop(into.split_to(60));
        into.truncate(8192);
        let (result, got) = drive.read(4096, into).await;
        result.unwrap();
        assert_eq!(got[..], data[..]);
        assert_eq!(read(&drive, 4096, 8192).await.unwrap()[..], data[..]);
    });
}

/// Cuts the drive's file off, as somebody does who takes it for another.
fn cut(drive: &SharedDrive, bytes: u64) {
    std::fs::File::options().write(true).open(drive.path()).unwrap().set_len(bytes).unwrap();
}

/// Writes make a file longer again: what was cut off then reads as zeros, without an error of the
/// file system's.
#[test]
fn a_file_that_was_cut_off_gives_an_error_and_never_its_zeros() {
    on_every_drive(async |env, shared| {
        if !shared.is_file() {
            return;
        }
        let (drive, block) = (env.bind(&shared), u64::from(shared.info().block_bytes));
        let (data, parts) = (pattern(8192, 1), gather(&[pattern(8192, 1)]));
        drive.write(0, &parts, false).await.unwrap();
        // Also where no direct I/O ends.
        for bytes in [0, 8192 + 100, 4 << 20] {
            cut(&shared, bytes);
            for (offset, part) in [(5 << 20, 4096), (BYTES - block, block as usize)] {
                let got = read(&drive, offset, part).await.map(drop);
                assert_eq!(got, Err(DriveError::Shrunk), "{bytes} at {offset}");
            }
            let within = read(&drive, bytes / block * block, 8192).await.map(drop);
            assert_eq!(within, Err(DriveError::Shrunk), "over the end at {bytes}");
            drive.write(6 << 20, &parts, false).await.unwrap();
            assert_eq!(read(&drive, 6 << 20, 8192).await.unwrap()[..], data[..]);
            // A hole that a single block of what is read lies in.
            drive.write(bytes / block * block + block, &parts, false).await.unwrap();
            for (offset, part) in [(5 << 20, 4096), (bytes / block * block, 8192)] {
                let got = read(&drive, offset, part).await.map(drop);
                assert_eq!(got, Err(DriveError::Shrunk), "{bytes}, made longer, at {offset}");
                let got = shared.read_blocking(offset, &mut Pool::single(part));
                assert_eq!(got, Err(DriveError::Shrunk), "{bytes}, made longer, at {offset}");
            }
            assert_eq!(drive.flush().await, Err(DriveError::Shrunk), "what was written is gone");
            cut(&shared, 0);
            std::fs::write(shared.path(), vec![0xa5; BYTES as usize]).unwrap();
            drive.write(0, &parts, false).await.unwrap();
            drive.flush().await.unwrap();
        }
        // Zeros that were written are none of a hole.
        drive.write_zeroes(0, 8192).await.unwrap();
        assert!(read(&drive, 0, 8192).await.unwrap().iter().all(|byte| *byte == 0));
    });
}

/// Runs `test` on a faulty drive over memory and over files.
fn on_faulty(test: impl AsyncFn(Env<()>, SharedDrive, Faults) + Copy + 'static) {
    for config in configs() {
        for dir in ["/dev/shm", env!("CARGO_TARGET_TMPDIR"), ""] {
            let file = (!dir.is_empty()).then(|| file_in(Path::new(dir)));
            let inner = match &file {
                Some(file) => SharedDrive::open(file.path(), &OpenOptions::default()).unwrap(),
                None => SharedDrive::memory(BYTES, 512, false),
            };
            let (drive, faults) = inner.faulty();
            run(config.clone(), async move |env| test(env, drive, faults).await);
        }
    }
}

#[test]
fn ranges_fail_and_latent_errors_heal_by_writing() {
    on_faulty(async |env, shared, faults| {
        let drive = env.bind(&shared);
        faults.fail(Op::Read, 4096..8192, DriveError::Fault);
        faults.fail(Op::Write, 0..4096, DriveError::Gone);
        assert_eq!(read(&drive, 0, 8192).await.map(drop), Err(DriveError::Fault));
        assert!(read(&drive, 0, 4096).await.is_ok());
        let data = gather(&[pattern(4096, 1)]);
        assert_eq!(drive.write(0, &data, false).await, Err(DriveError::Gone));
        assert!(drive.write(4096, &data, false).await.is_ok());
        faults.fail(Op::Flush, 0..0, DriveError::Fault);
        assert_eq!(drive.flush().await, Err(DriveError::Fault));
        faults.clear();
        faults.lose(8192..16384);
        assert_eq!(read(&drive, 4096, 8192).await.map(drop), Err(DriveError::Media));
        drive.write(8192, &data, false).await.unwrap();
        assert!(read(&drive, 8192, 4096).await.is_ok());
        assert_eq!(read(&drive, 12288, 4096).await.map(drop), Err(DriveError::Media));
        faults.vanish();
        assert_eq!(drive.write(0, &data, false).await, Err(DriveError::Gone));
        assert_eq!(drive.flush().await, Err(DriveError::Gone));
    });
}

#[test]
fn held_requests_wait_and_reach_the_drive_when_released() {
    on_faulty(async |env, shared, faults| {
        let drive = env.bind(&shared);
        drive.write(0, &gather(&[pattern(8192, 1)]), false).await.unwrap();
        faults.hold();
        drop(drive.write(0, &gather(&[pattern(4096, 2)]), false));
        let write = drive.write(4096, &gather(&[pattern(4096, 3)]), true);
        let reading = drive.read(4096, Pool::single(4096));
        assert_eq!(faults.held(), 3);
        let before = pattern(8192, 1);
        let mut now = Pool::single(8192);
        shared.read_blocking(0, &mut now).unwrap();
        assert_eq!(now[..], before[..], "a held write has not happened");
        let from_outside = faults.clone();
        std::thread::spawn(move || from_outside.release());
        write.await.unwrap();
        let (result, got) = reading.await;
        result.unwrap();
        assert_eq!(got[..], pattern(4096, 3)[..]);
        assert_eq!(read(&drive, 0, 4096).await.unwrap()[..], pattern(4096, 2)[..]);
        faults.hold();
        let lost = drive.flush();
        faults.vanish();
        assert_eq!(lost.await, Err(DriveError::Gone));
        faults.release();
        faults.clear();
        faults.delay(Duration::from_millis(3));
        let start = env.now();
        read(&drive, 0, 4096).await.unwrap();
        assert!(env.now().since(start) >= Nanos::from_millis(3));
    });
}

#[test]
fn a_claimed_drive_is_refused() {
    let file = file_in(Path::new("/dev/shm"));
    let first = SharedDrive::open(file.path(), &OpenOptions::default()).unwrap();
    let second = SharedDrive::open(file.path(), &OpenOptions::default());
    assert!(matches!(second, Err(OpenError::InUse { .. })), "{second:?}");
    let looking = OpenOptions { read_only: true, exclusive: false, ..Default::default() };
    let looker = SharedDrive::open(file.path(), &looking).unwrap();
    assert_eq!(looker.serial(), first.serial());
    drop(first);
    SharedDrive::open(file.path(), &OpenOptions::default()).unwrap();
    let missing = SharedDrive::open("/dev/shm/no-such-drive", &looking);
    assert!(matches!(missing, Err(OpenError::System { .. })));
    assert!(matches!(SharedDrive::open("/dev/null", &looking), Err(OpenError::NotADrive { .. })));
}

#[test]
fn large_requests_that_never_wait_leave_time_for_timers() {
    const TASKS: usize = 200;
    const LARGE: usize = 128 << 10;
    let drive = SharedDrive::memory(BYTES, 4096, false);
    run(Config::default(), async move |env| {
        let read = std::rc::Rc::new(std::cell::Cell::new(Some(0u64)));
        for _ in 0..TASKS {
            let (read, drive) = (read.clone(), env.bind(&drive));
            env.spawn(Priority::First, async move {
                let mut into = Pool::single(LARGE);
                while read.get().is_some() {
                    let (result, back) = drive.read(0, into).await;
                    result.unwrap();
                    into = back;
                    read.set(read.get().map(|count| count + 1));
                }
            });
        }
        for _ in 0..4 {
            let before = read.get();
            env.sleep(Nanos(1)).await;
            let between = read.get().unwrap() - before.unwrap();
            // Each of the others may use its budget once before the sleeper has its turn.
            assert!(between < 10 * TASKS as u64, "{between} requests before a timer fired");
        }
        read.set(None);
    });
}

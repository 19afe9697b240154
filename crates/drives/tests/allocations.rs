//! After warm-up a 4K read or write allocates nothing: inline, through io_uring, and over NVMe/TCP.
#![allow(unsafe_code)]

#[path = "support/remote.rs"]
#[allow(dead_code, reason = "other programs that have it use all of it")]
mod support;

use io::{Drive, Env as _, Pool};
use palisade_drives::{Env, OpenOptions, SharedDrive};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use units::Nanos;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One 4K write and read for each of 32 blocks, all in flight together, and a timer.
async fn round(env: &Env<u8>, drive: &impl Drive, pool: &Pool) {
    const DEPTH: usize = 32;
    let mut writes: [Option<_>; DEPTH] = [const { None }; DEPTH];
    let mut reads: [Option<_>; DEPTH] = [const { None }; DEPTH];
    for (n, place) in writes.iter_mut().enumerate() {
        let data = pool.take(4096).unwrap().freeze();
        *place = Some(drive.write(n as u64 * 4096, &[data], false));
    }
    for ticket in writes.into_iter().flatten() {
        ticket.await.unwrap();
    }
    for (n, place) in reads.iter_mut().enumerate() {
        *place = Some(drive.read(n as u64 * 4096, pool.take(4096).unwrap()));
    }
    for ticket in reads.into_iter().flatten() {
        ticket.await.0.unwrap();
    }
    env.sleep(Nanos::from_micros(10)).await;
    env.post(env.core(), 7);
    assert_eq!(env.receive().await, 7);
}

/// The allocations of 50 rounds, after some for warm-up.
async fn allocations_of_rounds(env: &Env<u8>, drive: &SharedDrive) -> u64 {
    let (drive, pool) = (env.bind(drive), Pool::new(4096, 64));
    for _ in 0..20 {
        round(env, &drive, &pool).await;
    }
    let before = COUNT.get();
    for _ in 0..50 {
        round(env, &drive, &pool).await;
    }
    COUNT.get() - before
}

fn allocations_per_round(dir: &str) -> u64 {
    let file = tempfile::NamedTempFile::new_in(Path::new(dir)).unwrap();
    std::fs::write(file.path(), vec![1; 1 << 20]).unwrap();
    let drive = SharedDrive::open(file.path(), &OpenOptions::default()).unwrap();
    runtime::run_single(async move |env| allocations_of_rounds(&env, &drive).await)
}

#[test]
fn inline_io_allocates_nothing() {
    assert_eq!(allocations_per_round("/dev/shm"), 0);
}

#[test]
fn kernel_io_allocates_nothing() {
    assert_eq!(allocations_per_round(env!("CARGO_TARGET_TMPDIR")), 0);
}

/// The initiator's side: the target has a thread of its own.
#[test]
fn remote_io_allocates_nothing() {
    for digests in [false, true] {
        let own = support::drive(1 << 20, 4096, digests);
        let count = runtime::run_single(async move |env: Env<u8>| {
            own.fabric.serve(&env);
            allocations_of_rounds(&env, &own.drive).await
        });
        assert_eq!(count, 0, "digests: {digests}");
    }
}

//! After warm-up a 4K read, a 4K read-modify-write, a degraded read and a degraded write allocate
//! nothing, on the real runtime with memory drives.
#![allow(unsafe_code)]

use drives::SharedDrive;
use engine::core::Core;
use engine::mail::Mail;
use engine::manage::command::{ArrayStatus, DriveRef, NewArray, Reply, Request};
use engine::volume::Volume;
use io::local::Event;
use io::{Blocks, Env as _, Pool, Priority};
use layout::Level;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use units::{CoreId, MIB, Nanos};

type Env = drives::Env<Mail<SharedDrive>>;

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

async fn ask<T: Send + 'static>(
    env: &Env,
    request: impl FnOnce(Reply<T>) -> Request<SharedDrive>,
) -> T {
    let answer = Arc::new(Mutex::new(None));
    let slot = answer.clone();
    let reply = Box::new(move |result| *slot.lock().unwrap() = Some(result));
    env.post(CoreId(0), Mail::Request(request(reply)));
    loop {
        if let Some(result) = answer.lock().unwrap().take() {
            return result.unwrap();
        }
        env.sleep(Nanos::from_micros(50)).await;
    }
}

/// The allocations of 32 tasks that each write and read 200 blocks, after as many for warm-up.
async fn allocations_of_load(env: &Env, volume: &Volume<Env>) -> u64 {
    let pool = Pool::new(4096, 64);
    let blocks = volume.bytes() / 4096;
    let state = Rc::new((Cell::new(0usize), Event::default()));
    for task in 0..32u64 {
        let (volume, pool, state) = (volume.clone(), pool.clone(), state.clone());
        env.spawn(Priority::First, async move {
            for phase in 1..=2 {
                for i in 0..200u64 {
                    let at = (task * 7919 + i * 104_729) % blocks * 4096;
                    let data = pool.take(4096).unwrap().freeze();
                    volume.write(at, data, false).await.unwrap();
                    let (result, _) = volume.read(at, pool.take(4096).unwrap()).await;
                    result.unwrap();
                }
                state.0.set(state.0.get() + 1);
                state.1.notify();
                state.1.wait_until(|| (state.0.get() >= phase * 32).then_some(())).await;
            }
        });
    }
    state.1.wait_until(|| (state.0.get() >= 32).then_some(())).await;
    let before = COUNT.get();
    state.1.wait_until(|| (state.0.get() >= 64).then_some(())).await;
    COUNT.get() - before
}

async fn make(env: &Env, level: Level, width: usize) -> (ArrayStatus, Volume<Env>) {
    let core = Core::start(env.clone());
    let drive = |i| DriveRef {
        shared: SharedDrive::memory(18 * MIB, 512, false),
        path: format!("memory{i}"),
        serial: format!("M{i}"),
        is_file: true,
    };
    let drives = (0..width).map(drive).collect();
    let new =
        NewArray { shared: false, name: "a".into(), level, strip_bytes: 65536, block_bytes: None };
    let status = ask(env, |r| Request::Create(new, drives, r)).await;
    let bytes = status.size_bytes;
    let volume = ask(env, |r| Request::VolumeCreate("a".into(), "v".into(), bytes, r)).await;
    let array = core.array(status.id).unwrap();
    (status, Volume::new(array, volume.uuid))
}

fn steady(level: Level, width: usize, fail: bool) {
    most(level, width, fail, 2);
}

fn most(level: Level, width: usize, fail: bool, most: u64) {
    let count = runtime::run_single(async move |env: Env| {
        let (_, volume) = make(&env, level, width).await;
        if fail {
            ask(&env, |r| Request::Fail("a".into(), vec!["slot:1".into()], r)).await;
        }
        allocations_of_load(&env, &volume).await
    });
    // Starting and ending the second phase itself may grow a list of wakers once.
    assert!(count <= most, "{level}: {count} allocations in 12800 operations");
}

#[test]
fn healthy_operations_allocate_nothing() {
    for (level, width) in [(Level::Raid5, 5), (Level::Raid6, 6), (Level::Raid10, 4)] {
        steady(level, width, false);
    }
    steady(Level::Raid0, 3, false);
}

#[test]
fn degraded_operations_allocate_nothing() {
    steady(Level::Raid1, 2, true);
}

/// What goes through the journal takes a few allocations each, and keeps none.
#[test]
fn writes_through_the_journal_allocate_little() {
    for (level, width) in [(Level::Raid5, 5), (Level::Raid6, 6)] {
        most(level, width, true, 8 * 12_800);
    }
}

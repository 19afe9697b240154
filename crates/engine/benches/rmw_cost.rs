//! What one 4K read-modify-write costs on both executors, without a drive's or a system call's
//! part: RAID 5 of five memory drives, 32 writes in flight, one core.
//!
//! `cargo bench -p palisade-engine --bench rmw_cost`

use drives::SharedDrive;
use engine::core::Core;
use engine::mail::Mail;
use engine::manage::command::{DriveRef, NewArray, Reply, Request};
use engine::volume::Volume;
use engine::{Host, array::MANAGER};
use io::local::Event;
use io::{Blocks, Pool, Priority};
use layout::Level;
use sim::{DriveConfig, SharedSimDrive, World, WorldConfig};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use units::{MIB, Nanos};

const TASKS: u64 = 32;
const ROUNDS: usize = 7;

async fn ask<E: Host, T: Send + 'static>(
    env: &E,
    request: impl FnOnce(Reply<T>) -> Request<E::Shared>,
) -> T {
    let answer = Arc::new(Mutex::new(None));
    let slot = answer.clone();
    let reply = Box::new(move |result| *slot.lock().expect("not poisoned") = Some(result));
    env.post(MANAGER, Mail::Request(request(reply)));
    loop {
        if let Some(result) = answer.lock().expect("not poisoned").take() {
            return result.unwrap_or_else(|error| panic!("{error}"));
        }
        env.sleep(Nanos::from_micros(50)).await;
    }
}

/// Writes `each` random blocks in each of the tasks; how long that took.
async fn round<E: Host>(env: &E, volume: &Volume<E>, pool: &Pool, each: u64) -> Duration {
    let blocks = volume.bytes() / 4096;
    let state = Rc::new((Cell::new(TASKS), Event::default()));
    let start = Instant::now();
    for task in 0..TASKS {
        let (volume, pool, state) = (volume.clone(), pool.clone(), state.clone());
        env.spawn(Priority::First, async move {
            let mut at = task * 7919;
            for _ in 0..each {
                at = (at * 6_364_136_223 + 1_442_695) % blocks;
                let data = pool.take(4096).expect("a piece a task").freeze();
                volume.write(at * 4096, data, false).await.expect("healthy");
            }
            state.0.set(state.0.get() - 1);
            state.1.notify();
        });
    }
    state.1.wait_until(|| (state.0.get() == 0).then_some(())).await;
    start.elapsed()
}

async fn measure<E: Host>(env: E, drives: Vec<E::Shared>, each: u64) -> Vec<u64> {
    let core = Core::start(env.clone());
    let name = |(i, shared)| DriveRef {
        shared,
        path: format!("memory{i}"),
        serial: format!("M{i}"),
        is_file: true,
    };
    let drives = drives.into_iter().enumerate().map(name).collect();
    let (level, strip_bytes, block_bytes) = (Level::Raid5, 65536, None);
    let new = NewArray { shared: false, name: "a".into(), level, strip_bytes, block_bytes };
    let status = ask(&env, |r| Request::Create(new, drives, r)).await;
    let bytes = status.size_bytes;
    let made = ask(&env, |r| Request::VolumeCreate("a".into(), "v".into(), bytes, r)).await;
    let volume = Volume::new(core.array(status.id).expect("it was just made"), made.uuid);
    let pool = Pool::new(4096, TASKS as usize);
    let mut costs = Vec::new();
    for _ in 0..=ROUNDS {
        let took = round(&env, &volume, &pool, each).await;
        costs.push(took.as_nanos() as u64 / (TASKS * each));
    }
    costs.remove(0);
    costs.sort_unstable();
    costs
}

fn show(name: &str, costs: &[u64]) {
    let (low, high) = (costs[0], costs[costs.len() - 1]);
    println!("{name}: {} ns a write ({low} to {high})", costs[costs.len() / 2]);
}

fn main() {
    let drives = (0..5).map(|_| SharedDrive::memory(18 * MIB, 512, false)).collect();
    let real = runtime::run_single(async move |env: drives::Env<Mail<SharedDrive>>| {
        measure(env, drives, 20_000).await
    });
    show("real executor, memory drives", &real);
    let world = World::<Mail<SharedSimDrive>>::new(WorldConfig::new(1).with_cores(1));
    let drive = |i| SharedSimDrive::new(DriveConfig::new(18 * MIB, i));
    let drives = (0..5).map(drive).collect();
    let env = world.env(MANAGER);
    let simulated = world.run_until(measure(env, drives, 200));
    show("deterministic executor, simulated drives", &simulated);
}

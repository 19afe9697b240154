//! The executor: the seed decides everything, mail arrives once, waiting works, ends are clean.

use core::cell::{Cell, RefCell};
use io::local::Semaphore;
use io::{Drive, Env, Pool, Priority};
use palisade_sim::{DriveConfig, SharedSimDrive, SimEnv, Step, Stopped, World, WorldConfig};
use std::rc::Rc;
use units::{CoreId, Nanos};

type Order = Rc<RefCell<Vec<u32>>>;

fn write(
    drive: &palisade_sim::SimDrive,
    offset: u64,
    byte: u8,
) -> <palisade_sim::SimDrive as Drive>::Done {
    let mut buffer = Pool::single(512);
    buffer.fill(byte);
    drive.write(offset, &[buffer.freeze()], false)
}

/// Tasks on all cores that write, sleep and send each other letters.
fn busy_run(config: WorldConfig) -> (u64, Vec<u8>) {
    let drive = SharedSimDrive::new(DriveConfig::new(8192, 7));
    let world = World::<u64>::new(config);
    for env in world.envs() {
        let handle = env.bind(&drive);
        let me = env.clone();
        env.spawn(Priority::First, async move {
            for round in 0..10 {
                let to = CoreId((me.random() % u64::from(me.cores())) as u16);
                me.post(to, round);
                let offset = me.random() % 16 * 512;
                write(&handle, offset, me.random() as u8).await.unwrap();
                me.sleep(Nanos(me.random() % 5_000)).await;
            }
        });
    }
    world.settle();
    (world.trace_hash(), drive.contents())
}

#[test]
fn a_seed_decides_everything() {
    let mut hashes = Vec::new();
    for seed in 0..40 {
        let first = busy_run(WorldConfig::swarm(seed));
        assert!(first == busy_run(WorldConfig::swarm(seed)), "seed {seed} gave two runs");
        hashes.push(first.0);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 40, "seeds gave the same run");
}

async fn gather_mail(env: SimEnv<u64>, count: u64) -> Vec<u64> {
    let mut got = Vec::new();
    for _ in 0..count {
        got.push(env.receive().await);
    }
    got
}

fn mail_run(config: WorldConfig) -> Vec<u64> {
    let world = World::<u64>::new(config.with_cores(4));
    for core in 1..4 {
        let env = world.env(CoreId(core));
        let me = env.clone();
        env.spawn(Priority::First, async move {
            for n in 0..50 {
                me.post(CoreId(0), u64::from(core) * 1000 + n);
                me.sleep(Nanos(me.random() % 3_000)).await;
            }
        });
    }
    let got = world.run_until(gather_mail(world.env(CoreId(0)), 150));
    let env = world.env(CoreId(0));
    let more = world.try_block_on(CoreId(0), async move { env.receive().await });
    assert!(matches!(more, Err(Stopped::Deadlock { .. })), "a letter came twice: {more:?}");
    got
}

#[test]
fn mail_arrives_exactly_once_and_in_any_order() {
    let expected: Vec<u64> = (1..4).flat_map(|c| (0..50).map(move |n| c * 1000 + n)).collect();
    let mut reordered = 0;
    for seed in 0..20 {
        let got = mail_run(WorldConfig::new(seed));
        let from_one: Vec<u64> = got.iter().copied().filter(|n| n / 1000 == 1).collect();
        reordered += u32::from(!from_one.is_sorted());
        let mut sorted = got;
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
    }
    assert!(reordered > 10, "only {reordered} runs reordered letters of one sender");
}

#[test]
fn mail_keeps_its_order_when_asked_to() {
    for seed in 0..20 {
        let got = mail_run(WorldConfig { mail_in_order: true, ..WorldConfig::new(seed) });
        for sender in 1..4 {
            let from: Vec<u64> = got.iter().copied().filter(|n| n / 1000 == sender).collect();
            assert!(from.is_sorted(), "seed {seed}: {from:?}");
        }
    }
}

#[test]
fn a_box_gives_letters_in_order_of_arrival() {
    let config = WorldConfig { mail_in_order: true, ..WorldConfig::new(1) };
    let world = World::<u64>::new(config);
    let env = world.env(CoreId(0));
    (0..20).for_each(|n| env.post(CoreId(0), n));
    world.settle();
    let got = world.run_until(gather_mail(env, 20));
    assert!(got.is_sorted() && got.len() == 20, "{got:?}");
}

#[test]
fn ready_tasks_run_in_random_order_but_last_ones_last() {
    let mut orders = Vec::new();
    for seed in 0..50 {
        let world = World::<()>::new(WorldConfig::new(seed));
        let order = Order::default();
        for n in 0..6 {
            let priority = if n < 3 { Priority::Last } else { Priority::First };
            let order = order.clone();
            world.env(CoreId(0)).spawn(priority, async move { order.borrow_mut().push(n) });
        }
        world.settle();
        let order = order.take();
        assert!(order[..3].iter().all(|n| *n >= 3), "a Last task ran first: {order:?}");
        orders.push(order);
    }
    orders.sort_unstable();
    orders.dedup();
    assert!(orders.len() > 10, "only {} orders", orders.len());
}

#[test]
fn a_semaphore_serves_in_order_of_asking() {
    for seed in 0..20 {
        let world = World::<()>::new(WorldConfig::new(seed));
        let units = Rc::new(Semaphore::new(4));
        let order = Order::default();
        let asked = Order::default();
        for n in 0..8u32 {
            let (units, order, asked) = (units.clone(), order.clone(), asked.clone());
            let env = world.env(CoreId(0));
            world.env(CoreId(0)).spawn(Priority::First, async move {
                asked.borrow_mut().push(n);
                let want = 1 + n as usize % 4;
                units.acquire(want).await;
                order.borrow_mut().push(n);
                env.sleep(Nanos(env.random() % 1_000)).await;
                units.release(want);
            });
        }
        world.settle();
        assert_eq!(*order.borrow(), *asked.borrow());
        assert_eq!(units.free(), 4);
    }
}

#[test]
fn the_clock_stops_at_every_timer() {
    let world = World::<()>::new(WorldConfig::new(1));
    let env = world.env(CoreId(0));
    let seen = world.run_until(async move {
        let mut seen = Vec::new();
        for span in [5, 0, 1_000_000_000] {
            drop(env.sleep(Nanos(1)));
            env.sleep(Nanos(span)).await;
            seen.push((env.now(), env.wall_seconds()));
        }
        seen
    });
    let base = 1_700_000_000;
    assert_eq!(seen, [(Nanos(5), base), (Nanos(5), base), (Nanos(1_000_000_005), base + 1)]);
    world.run_for(Nanos(10));
    assert_eq!(world.now(), Nanos(1_000_000_015));
    assert_eq!(world.step(), Step::Idle);
}

#[test]
fn a_deadlock_names_seed_and_tasks() {
    let world = World::<()>::new(WorldConfig::new(77));
    let stuck = Rc::new(Semaphore::new(0));
    let result = world.try_block_on(CoreId(0), async move { stuck.acquire(1).await });
    let text = result.unwrap_err().to_string();
    assert!(text.contains("seed 77") && text.contains("tests/world.rs"), "{text}");
}

#[test]
#[should_panic(expected = "endless loop with seed 5")]
fn an_endless_loop_is_found() {
    let world = World::<()>::new(WorldConfig::new(5));
    world.run_until(core::future::poll_fn::<(), _>(|cx| {
        cx.waker().wake_by_ref();
        core::task::Poll::Pending
    }));
}

struct Dropped(Rc<Cell<u32>>, SimEnv<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        let count = self.0.clone();
        self.1.spawn(Priority::First, async move { count.set(1000) });
        self.1.post(CoreId(0), ());
    }
}

#[test]
fn a_crash_drops_tasks_without_running_them() {
    let world = World::<()>::new(WorldConfig::new(3));
    let env = world.env(CoreId(0));
    let count = Rc::new(Cell::new(0));
    for _ in 0..5 {
        let (guard, env) = (Dropped(count.clone(), env.clone()), env.clone());
        env.clone().spawn(Priority::First, async move {
            env.sleep(Nanos(1_000)).await;
            guard.0.set(1000);
        });
    }
    world.run_for(Nanos(500));
    world.crash();
    assert_eq!(count.get(), 5);
    assert_eq!(world.step(), Step::PowerLost);
    assert!(world.waiting().is_empty());
    let late = world.try_block_on(CoreId(0), async {});
    assert_eq!(late, Err(Stopped::PowerLost));
}

#[test]
fn the_power_fails_at_the_chosen_request() {
    for limit in 0..=10 {
        let drive = SharedSimDrive::new(DriveConfig::new(8192, 1));
        let world = World::<()>::new(WorldConfig::new(limit));
        world.power_fails_after(limit);
        let handle = world.env(CoreId(0)).bind(&drive);
        let done = world.try_block_on(CoreId(0), async move {
            for n in 0..10 {
                write(&handle, n * 512, 1).await.unwrap();
            }
        });
        assert_eq!(done.is_ok(), limit == 10);
        assert_eq!(world.submits(), limit);
        world.crash();
        let written = drive.contents().chunks(512).filter(|b| **b == [1; 512]).count();
        assert_eq!(written as u64, limit);
    }
}

//! Making requests: each job has tasks, each task one request under way, the next as soon as that
//! is done.
//!
//! States of a load: *begun*, in which requests are made and not counted, so that queues have
//! filled → *counting* → over, when the time is. What is under way then is waited for and not
//! counted. So requests that are done in the time that counts are all that were, whenever they
//! began.
//!
//! Invariant: in a closed load each task has one request under way until the load is over.

use crate::random::Random;
use crate::shape::{Order, Shape};
use crate::stamp::{self, Payloads};
use crate::tally::Tally;
use crate::target::Target;
use core::cell::{Cell, RefCell};
use io::local::Event;
use io::{BufMut, Env, Priority};
use std::rc::Rc;
use units::Nanos;

/// When a load counts, by the clock that it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// From then on.
    pub from: Nanos,
    /// Until then: it is over.
    pub until: Nanos,
    /// The intervals of [`Tally::series`].
    pub interval: Nanos,
}

/// What the tasks of one load on one core share.
struct Load<T, C> {
    target: T,
    shape: Shape,
    extent: Extent,
    clock: C,
    payloads: Payloads,
    arrivals: Option<Arrivals>,
    tally: RefCell<Tally>,
    running: Cell<usize>,
    ended: Event,
}

/// When requests of an open load come.
struct Arrivals {
    start: Nanos,
    /// Nanoseconds between two.
    distance: f64,
    next: Cell<u64>,
}

impl Arrivals {
    /// Of the `jobs` of a load's that run on this core.
    fn new(shape: &Shape, jobs: usize, start: Nanos) -> Option<Self> {
        let own = shape.rate? * jobs as f64 / shape.jobs.max(1) as f64;
        Some(Self { start, distance: 1e9 / own, next: Cell::new(0) })
    }

    /// When the next request comes, which nobody else makes.
    fn take(&self) -> Nanos {
        let number = self.next.replace(self.next.get() + 1);
        self.start.after(Nanos((number as f64 * self.distance) as u64))
    }
}

/// Where a job is.
struct Job {
    next: Cell<u64>,
}

/// One core's share of a load. It is made before the load begins, since that takes a while.
#[derive(Clone)]
pub struct Share {
    /// The load.
    pub shape: Shape,
    /// Which of its jobs are this core's.
    pub jobs: core::ops::Range<usize>,
    /// What they write, and where they read to.
    pub payloads: Payloads,
}

impl Share {
    /// Of a load that `cores` cores have together, the share of the one of this number.
    pub fn of(shape: Shape, core: usize, cores: usize) -> Self {
        let jobs = share(shape.jobs, core, cores);
        let payloads = Payloads::new(shape.bytes, jobs.len() * shape.depth);
        Self { shape, jobs, payloads }
    }
}

/// Makes this core's share of a load. `clock` says what time it is.
pub async fn generate<E: Env, T: Target, C: Fn() -> Nanos + 'static>(
    env: &E,
    target: T,
    Share { shape, jobs, payloads }: Share,
    extent: Extent,
    seed: u64,
    clock: C,
) -> Tally {
    assert!(shape.area <= target.bytes() && shape.places() > 0, "the area lies in the target");
    let tasks = jobs.len() * shape.depth;
    let intervals = extent.until.since(extent.from).0.div_ceil(extent.interval.0.max(1));
    let tally = Tally { series: vec![0; intervals as usize], ..Tally::default() };
    let arrivals = Arrivals::new(&shape, jobs.len(), clock());
    let load = Rc::new(Load {
        target,
        shape,
        extent,
        clock,
        payloads,
        arrivals,
        tally: RefCell::new(tally),
        running: Cell::new(tasks),
        ended: Event::default(),
    });
    for number in jobs {
        let first = shape.places() * number as u64 / shape.jobs.max(1) as u64;
        let job = Rc::new(Job { next: Cell::new(first) });
        for task in 0..shape.depth {
            let random = Random::new(seed ^ (number as u64) << 48 ^ (task as u64) << 32);
            env.spawn(Priority::First, run(env.clone(), load.clone(), job.clone(), random));
        }
    }
    load.ended.wait_until(|| (load.running.get() == 0).then_some(())).await;
    let mut tally = load.tally.take();
    tally.time = extent.until.since(extent.from);
    tally
}

/// One task.
async fn run<E: Env, T: Target, C: Fn() -> Nanos>(
    env: E,
    load: Rc<Load<T, C>>,
    job: Rc<Job>,
    mut random: Random,
) {
    let mut free = (load.clock)();
    let mut kept = None;
    loop {
        let begun = load.begin(&env, free).await;
        if begun >= load.extent.until {
            break;
        }
        let at = load.next(&job, &mut random);
        let reads = load.is_read(&mut random);
        let is_done;
        if reads {
            let buffer = kept.take().unwrap_or_else(|| load.payloads.take());
            let content;
            (is_done, content) = load.target.read(at, buffer).await;
            load.look(at, is_done, &content);
            kept = Some(content);
        } else {
            kept = None;
            is_done = load.target.write(at, load.payloads.of(at)).await;
        }
        let now = (load.clock)();
        load.count(reads, is_done, begun, now);
        free = now;
    }
    load.running.set(load.running.get() - 1);
    load.ended.notify();
}

impl<T, C: Fn() -> Nanos> Load<T, C> {
    /// From when on the next request of a task that is free counts: now, or since it came.
    #[inline]
    async fn begin<E: Env>(&self, env: &E, free: Nanos) -> Nanos {
        let Some(arrivals) = &self.arrivals else { return free };
        let comes = arrivals.take();
        if comes >= self.extent.until || comes <= free {
            return comes;
        }
        env.sleep(comes.since(free)).await;
        // Whoever sleeps wakes late: that is no time that the target took.
        (self.clock)()
    }
}

impl<T, C> Load<T, C> {
    /// The next address.
    #[inline]
    fn next(&self, job: &Job, random: &mut Random) -> u64 {
        let places = self.shape.places();
        let place = match self.shape.order {
            Order::Random => random.below(places),
            Order::Sequential => job.next.replace((job.next.get() + 1) % places),
        };
        place * self.shape.bytes as u64
    }

    #[inline]
    fn is_read(&self, random: &mut Random) -> bool {
        match self.shape.reads {
            0 => false,
            100 => true,
            reads => random.below(100) < u64::from(reads),
        }
    }

    /// Looks at what was read.
    #[inline]
    fn look(&self, at: u64, is_done: bool, content: &BufMut) {
        if is_done && let Some(wrong) = stamp::wrong(at, content) {
            let mut tally = self.tally.borrow_mut();
            let (count, first) = tally.wrong;
            tally.wrong = (count + 1, Some(first.map_or(wrong, |first| first.min(wrong))));
        }
    }

    /// Counts a request.
    #[inline]
    fn count(&self, reads: bool, is_done: bool, begun: Nanos, now: Nanos) {
        let tally = &mut *self.tally.borrow_mut();
        if !is_done {
            tally.failed += 1;
            return;
        }
        tally.made += 1;
        let Extent { from, until, interval } = self.extent;
        if now < from || now >= until {
            return;
        }
        let side = if reads { &mut tally.reads } else { &mut tally.writes };
        side.bytes += self.shape.bytes as u64;
        side.times.note(now.since(begun));
        let second = now.since(from).0 / interval.0.max(1);
        if let Some(count) = tally.series.get_mut(second as usize) {
            *count += 1;
        }
    }
}

/// Writes `range` of the target once, so that reads find something there; requests that failed.
pub async fn fill<E: Env, T: Target>(
    env: &E,
    target: T,
    range: core::ops::Range<u64>,
    bytes: usize,
    depth: usize,
) -> u64 {
    let payloads = Payloads::new(bytes, depth);
    let (next, end) = (Rc::new(Cell::new(range.start)), range.end);
    let (failed, running) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(depth)));
    let ended = Rc::new(Event::default());
    for _ in 0..depth {
        let (target, payloads, next) = (target.clone(), payloads.clone(), next.clone());
        let (failed, running, ended) = (failed.clone(), running.clone(), ended.clone());
        env.spawn(Priority::First, async move {
            while next.get() + bytes as u64 <= end {
                let at = next.replace(next.get() + bytes as u64);
                let is_done = target.write(at, payloads.of(at)).await;
                failed.set(failed.get() + u64::from(!is_done));
            }
            running.set(running.get() - 1);
            ended.notify();
        });
    }
    ended.wait_until(|| (running.get() == 0).then_some(())).await;
    failed.get()
}

/// The jobs of `count` that are this core's.
pub fn share(count: usize, core: usize, cores: usize) -> core::ops::Range<usize> {
    count * core / cores..count * (core + 1) / cores
}

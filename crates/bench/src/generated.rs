//! Loads of the generator on a rig's cores, and what the cores did meanwhile.
//!
//! A load's window is known before it begins: whoever started it reads the cores' and the machine's
//! counters at its begin and at its end, so that queues that fill before and run dry behind it
//! count on no side.

use crate::error::{BenchError, is_to_go_on};
use crate::rig::{Aim, Env, Rig, Visit, cpu_time};
use io::{Env as _, Priority};
use runtime::CoreCounts;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;
use units::{CoreId, Nanos};
use workload::{Extent, Shape, Share, Tally, Target, fill, generate};

/// From when a load's tasks run to when it counts.
const LEAD: Duration = Duration::from_millis(5);

/// How often it is seen that a run is to end.
const LOOK_AT_STOP: Duration = Duration::from_millis(100);

/// Bytes of a request that fills, and how many are under way.
const FILL: (usize, usize) = (128 << 10, 16);

/// How long a load runs.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Before it counts.
    pub warm: Duration,
    /// In which it counts.
    pub counted: Duration,
    /// Intervals of its series.
    pub interval: Duration,
}

impl Span {
    /// So long, after a tenth of it.
    pub fn of(counted: Duration) -> Self {
        Self { warm: counted / 10, counted, interval: Duration::from_secs(1) }
    }
}

/// What a load came to.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its requests.
    pub tally: Tally,
    /// Those of each of the loads that ran beside each other.
    pub each: Vec<Tally>,
    /// CPU time of the process while it counted.
    pub cpu: Duration,
    /// How each core spent that time.
    pub cores: Vec<CoreCounts>,
}

impl Ran {
    /// Adds what came of a later time.
    pub fn then(&mut self, next: &Self) {
        self.tally.then(&next.tally);
        self.each.iter_mut().zip(&next.each).for_each(|(own, next)| own.then(next));
        self.cpu += next.cpu;
        for (own, next) in self.cores.iter_mut().zip(&next.cores) {
            *own = CoreCounts {
                time: own.time.after(next.time),
                looking: own.looking.after(next.looking),
                asleep: own.asleep.after(next.asleep),
                turns: own.turns + next.turns,
                mails: own.mails + next.mails,
            };
        }
    }

    /// Whether each of the loads had a request.
    pub fn has_all(&self) -> bool {
        self.each.iter().all(|own| own.operations() > 0)
    }

    /// The cores' time without what they slept or looked around.
    pub fn work(&self) -> Duration {
        let work = |core: &CoreCounts| core.time.since(core.looking).since(core.asleep).0;
        Duration::from_nanos(self.cores.iter().map(work).sum())
    }

    /// The part of the cores' time in which they had something to do, 0 to 1.
    pub fn busy(&self) -> f64 {
        let time: u64 = self.cores.iter().map(|core| core.time.0).sum();
        if time == 0 { 0.0 } else { self.work().as_nanos() as f64 / time as f64 }
    }

    /// Microseconds of the cores' work for a request; 0 if none was done.
    pub fn work_micros(&self) -> f64 {
        match self.tally.operations() {
            0 => 0.0,
            count => self.work().as_secs_f64() * 1e6 / count as f64,
        }
    }
}

fn nanos(span: Duration) -> Nanos {
    Nanos(span.as_nanos() as u64)
}

/// How cores spent the time between two looks at them.
pub(crate) fn meanwhile(from: &[CoreCounts], to: &[CoreCounts]) -> Vec<CoreCounts> {
    from.iter().zip(to).map(|(from, to)| between(from, to)).collect()
}

fn between(from: &CoreCounts, to: &CoreCounts) -> CoreCounts {
    CoreCounts {
        time: to.time.since(from.time),
        looking: to.looking.since(from.looking),
        asleep: to.asleep.since(from.asleep),
        turns: to.turns - from.turns,
        mails: to.mails - from.mails,
    }
}

impl Rig {
    /// How each core spent its time so far.
    pub(crate) fn counts(&self) -> Vec<CoreCounts> {
        let cores = (0..self.cores()).map(CoreId);
        cores.filter_map(|core| self.handle().counts(core)).collect()
    }

    /// The cores' clock.
    fn now(&self) -> Nanos {
        self.handle().counts(CoreId(0)).map_or(Nanos(0), |counts| counts.time)
    }

    fn sleep_until(&self, end: Nanos, stop: &AtomicBool) -> Result<(), BenchError> {
        loop {
            let rest = Duration::from_nanos(end.since(self.now()).0);
            is_to_go_on(stop)?;
            if rest.is_zero() {
                return Ok(());
            }
            std::thread::sleep(rest.min(LOOK_AT_STOP));
        }
    }

    /// Runs a load of the generator, its jobs spread over the cores.
    ///
    /// # Errors
    /// When a request fails, or a read finds something else than was written.
    pub fn generate(
        &self,
        aim: &Aim,
        shape: Shape,
        span: Span,
        seed: u64,
    ) -> Result<Ran, BenchError> {
        let never = AtomicBool::new(false);
        let loads = [self.shares(shape)];
        Ok(self.generate_beside(aim, (&loads, seed), span, &never, &|| ())?.0)
    }

    /// Each core's share of a load.
    pub fn shares(&self, shape: Shape) -> Vec<Share> {
        let cores = usize::from(self.cores());
        (0..cores).map(|core| Share::of(shape, core, cores)).collect()
    }

    /// Does something else that loads what the cores serve: what it came to, the process's CPU time
    /// and how the cores spent theirs.
    pub(crate) fn beside<T>(&self, work: impl FnOnce() -> T) -> (T, Duration, Vec<CoreCounts>) {
        let (cpu, counts) = (cpu_time(), self.counts());
        let came_of_it = work();
        let (cpu, after) = (cpu_time().saturating_sub(cpu), self.counts());
        (came_of_it, cpu, meanwhile(&counts, &after))
    }

    /// The same of several loads beside each other, until `stop` is set; and what `look` saw when
    /// they began to count and when they ended.
    ///
    /// # Errors
    /// As [`Rig::generate`], and `Interrupted`.
    pub fn generate_beside<L>(
        &self,
        aim: &Aim,
        (loads, seed): (&[Vec<Share>], u64),
        span: Span,
        stop: &AtomicBool,
        look: &dyn Fn() -> L,
    ) -> Result<(Ran, [L; 2]), BenchError> {
        let from = self.now().after(nanos(LEAD + span.warm));
        let until = from.after(nanos(span.counted));
        let extent = Extent { from, until, interval: nanos(span.interval) };
        let (sender, answers) = mpsc::channel();
        for (number, shares) in loads.iter().enumerate() {
            let seed = seed ^ (number as u64) << 56;
            for (core, share) in (0..self.cores()).zip(shares) {
                let (aim, share, sender) = (aim.clone(), share.clone(), sender.clone());
                self.on_core(CoreId(core), move |env, engine| {
                    aim.visit(env, engine, Run { share, extent, seed, number, sender });
                });
            }
        }
        drop(sender);
        self.sleep_until(from, stop)?;
        let (looks, cpu, cores) = self.beside(|| {
            let first = look();
            self.sleep_until(until, stop).map(|()| first)
        });
        let (first, last) = (looks?, look());
        let mut each = vec![Tally::default(); loads.len()];
        for _ in 0..usize::from(self.cores()) * loads.len() {
            let (number, tally) = answers.recv().map_err(|_| BenchError::CoreGone)?;
            each[number].add(&tally);
        }
        let tally = Tally::of(&each);
        match (tally.failed, tally.wrong) {
            (0, (0, _)) => Ok((Ran { tally, each, cpu, cores }, [first, last])),
            (0, (count, first)) => {
                Err(BenchError::Elsewhere { count, at: first.unwrap_or_default() })
            }
            (failed, _) => Err(BenchError::Failed(failed)),
        }
    }

    /// Writes the first `bytes` of what is aimed at.
    ///
    /// # Errors
    /// When a request fails.
    pub fn fill(&self, aim: &Aim, bytes: u64) -> Result<(), BenchError> {
        let (sender, answer) = mpsc::channel();
        let aim = aim.clone();
        self.on_core(CoreId(0), move |env, engine| {
            aim.visit(env, engine, Fill { bytes, sender });
        });
        match answer.recv().map_err(|_| BenchError::CoreGone)? {
            0 => Ok(()),
            failed => Err(BenchError::Failed(failed)),
        }
    }
}

/// One core's part of a load.
struct Run {
    share: Share,
    extent: Extent,
    seed: u64,
    /// The load's.
    number: usize,
    sender: mpsc::Sender<(usize, Tally)>,
}

impl Visit for Run {
    fn at(self, env: &Env, target: impl Target) {
        let Self { share, extent, seed, number, sender } = self;
        let (own, reactor) = (env.clone(), env.reactor().clone());
        env.spawn(Priority::First, async move {
            let clock = move || reactor.look_at_clock();
            let tally = generate(&own, target, share, extent, seed, clock).await;
            // Nobody listens any more only when the run was given up.
            let _ = sender.send((number, tally));
        });
    }
}

/// Writes all of the first bytes once.
struct Fill {
    bytes: u64,
    sender: mpsc::Sender<u64>,
}

impl Visit for Fill {
    fn at(self, env: &Env, target: impl Target) {
        let (Self { bytes, sender }, own) = (self, env.clone());
        env.spawn(Priority::First, async move {
            let (piece, depth) = FILL;
            let _ = sender.send(fill(&own, target, 0..bytes, piece, depth).await);
        });
    }
}

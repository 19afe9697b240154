//! The world: one seed, 1 to 9 virtual cores, a clock, and the drives bound to it.
//!
//! A step polls one ready task, picked at random, or, when none is ready, lets the next event
//! (timer, letter, progress of a drive's request) happen and sets the clock to it.
//!
//! States: *running*; *without power* after [`World::crash`], [`World::kill`] or the limit of
//! [`World::power_fails_after`]: nothing runs any more. Drives outlive the world, so a new one
//! can be made over them.
//!
//! Invariant: every choice is drawn from the seed, in one order.

use crate::drive::{self, CutKind};
use crate::env::{Kernel, SimEnv};
use crate::lock;
use crate::rng::Rng;
use crate::timeline::Event;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::Future;
use io::Priority;
use std::rc::Rc;
use units::{CoreId, Nanos};

/// Most virtual cores of a world: two servers and a shelf.
pub const CORES_MAX: u16 = 9;

/// Polls without time going on after which a world is said to be in an endless loop.
const POLLS_MAX: u64 = 1_000_000;

/// The longest that ready tasks are kept waiting by events ([`WorldConfig::late_percent`]).
const LATE_MOST: Nanos = Nanos::from_millis(10);

/// How a world is made.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Where all random choices come from.
    pub seed: u64,
    /// Virtual cores, 1 to [`CORES_MAX`].
    pub cores: u16,
    /// What the clock shows at first.
    pub start: Nanos,
    /// The longest time a letter takes; the shortest is 0.
    pub mail_delay_most: Nanos,
    /// True to keep the order of letters from one core to another.
    pub mail_in_order: bool,
    /// Percentage of steps in which an event happens although tasks are ready: cores that are
    /// slow, completions that arrive in batches.
    pub late_percent: u8,
}

impl WorldConfig {
    /// One core, letters of up to 20 µs in any order, tasks before events.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            cores: 1,
            start: Nanos(0),
            mail_delay_most: Nanos::from_micros(20),
            mail_in_order: false,
            late_percent: 0,
        }
    }

    /// Everything drawn from the seed: the number of cores, delays, lateness.
    pub fn swarm(seed: u64) -> Self {
        let mut rng = Rng::new(crate::rng::mix(seed));
        Self {
            cores: 1 + rng.below(4) as u16,
            mail_delay_most: Nanos([0, 1_000, 20_000, 1_000_000][rng.index(4)]),
            late_percent: [0, 0, 10, 50][rng.index(4)],
            ..Self::new(seed)
        }
    }

    /// The same with `cores` cores.
    pub fn with_cores(self, cores: u16) -> Self {
        Self { cores, ..self }
    }
}

/// What a step did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A task was polled.
    Polled,
    /// An event happened.
    Happened,
    /// Nothing is ready and nothing will happen.
    Idle,
    /// The world has no power.
    PowerLost,
}

/// Why a future did not end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// No task is ready, no event will come: every task waits for another.
    Deadlock {
        /// The world's seed.
        seed: u64,
        /// A line for each task that is not finished.
        waiting: Vec<String>,
    },
    /// The power failed before it was done.
    PowerLost,
    /// The steps allowed were not enough.
    OutOfSteps,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock { seed, waiting } => {
                write!(f, "deadlock with seed {seed}; not finished:")?;
                waiting.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
            Self::PowerLost => f.write_str("the power failed"),
            Self::OutOfSteps => f.write_str("out of steps"),
        }
    }
}

impl core::error::Error for Stopped {}

/// A deterministic world whose cores send each other `M`.
pub struct World<M: Send + 'static> {
    kernel: Rc<Kernel<M>>,
    steps: Cell<u64>,
    polls_in_a_row: Cell<u64>,
}

impl<M: Send + 'static> World<M> {
    /// Makes a world.
    ///
    /// # Panics
    /// If the number of cores is not 1 to [`CORES_MAX`].
    pub fn new(config: WorldConfig) -> Self {
        assert!((1..=CORES_MAX).contains(&config.cores), "a world has 1 to {CORES_MAX} cores");
        let kernel = Rc::new(Kernel::new(config));
        Self { kernel, steps: Cell::new(0), polls_in_a_row: Cell::new(0) }
    }

    /// The core `core`.
    ///
    /// # Panics
    /// If there is no such core.
    pub fn env(&self, core: CoreId) -> SimEnv<M> {
        assert!(core.0 < self.kernel.config.cores, "no such core");
        SimEnv::new(self.kernel.clone(), core)
    }

    /// All cores in order.
    pub fn envs(&self) -> Vec<SimEnv<M>> {
        (0..self.kernel.config.cores).map(|core| self.env(CoreId(core))).collect()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.kernel.config.seed
    }

    /// How many cores it has.
    pub fn cores(&self) -> u16 {
        self.kernel.config.cores
    }

    /// The virtual time.
    pub fn now(&self) -> Nanos {
        self.kernel.timeline.now()
    }

    /// Steps made so far.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Requests submitted to drives so far.
    pub fn submits(&self) -> u64 {
        self.kernel.timeline.submits()
    }

    /// Submissions and completions of requests to drives so far.
    pub fn boundaries(&self) -> u64 {
        self.kernel.timeline.boundaries()
    }

    /// A hash of everything that happened so far, in its order.
    pub fn trace_hash(&self) -> u64 {
        self.kernel.timeline.trace_hash()
    }

    /// The next number of the world's total order, as [`SimEnv::sequence`].
    pub fn sequence(&self) -> u64 {
        self.kernel.timeline.sequence()
    }

    /// A core stands still from now on, or goes on: its tasks are not run, and learn of nothing.
    /// What it asked of drives goes on, and so does the clock.
    pub fn halt(&self, core: CoreId, is_halted: bool) {
        self.kernel.executor.halt(core, is_halted);
    }

    /// A line for each task that is not finished.
    pub fn waiting(&self) -> Vec<String> {
        self.kernel.executor.waiting()
    }

    /// Lets the power fail when the request after the next `submits` ones is submitted (counted
    /// from the making of the world): that one never reaches its drive. Call
    /// [`World::crash`] afterwards.
    pub fn power_fails_after(&self, submits: u64) {
        self.kernel.timeline.fail_after(submits);
    }

    /// Makes one step.
    ///
    /// # Panics
    /// If tasks keep each other ready without end.
    pub fn step(&self) -> Step {
        self.step_until(Nanos(u64::MAX))
    }

    /// Makes one step; events later than `limit` stay in the future (then: `Idle`).
    pub fn step_until(&self, limit: Nanos) -> Step {
        let Kernel { timeline, executor, config, .. } = &*self.kernel;
        if !timeline.powered() {
            return Step::PowerLost;
        }
        self.steps.set(self.steps.get() + 1);
        let next = timeline.next_due();
        let event_waits = next.is_some_and(|due| due <= limit);
        let soon = next.is_some_and(|due| due <= timeline.now().after(LATE_MOST));
        let late = event_waits && soon && timeline.random(|rng| rng.chance(config.late_percent));
        let task = timeline.random(|rng| if late { None } else { executor.pick(rng) });
        if let Some(task) = task {
            timeline.trace(&[1, u64::from(task.core.0), task.serial]);
            self.count_poll();
            executor.poll(&task);
            return Step::Polled;
        }
        self.polls_in_a_row.set(0);
        match event_waits.then(|| timeline.pop()).flatten() {
            Some(event) => {
                self.happen(event);
                Step::Happened
            }
            None => Step::Idle,
        }
    }

    fn count_poll(&self) {
        let polls = self.polls_in_a_row.get() + 1;
        self.polls_in_a_row.set(polls);
        assert!(
            polls < POLLS_MAX,
            "endless loop with seed {}; not finished:\n  {}",
            self.seed(),
            self.waiting().join("\n  ")
        );
    }

    fn happen(&self, event: Event) {
        match event {
            Event::Wake(waker) => {
                self.kernel.timeline.trace(&[2]);
                let waker = lock(&waker).take();
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Event::Drive { drive, request, phase } => {
                drive::progress(&drive, &self.kernel.timeline, request, phase);
            }
            Event::Mail { to, letter } => {
                self.kernel.timeline.trace(&[3, u64::from(to), letter]);
                self.kernel.deliver(to, letter);
            }
        }
    }

    /// Makes up to `steps` steps; false if the world came to rest or lost power before.
    pub fn run_steps(&self, steps: u64) -> bool {
        (0..steps).all(|_| matches!(self.step(), Step::Polled | Step::Happened))
    }

    /// Runs until the clock has gone on by `span`, or the power fails.
    pub fn run_for(&self, span: Nanos) {
        let until = self.now().after(span);
        while matches!(self.step_until(until), Step::Polled | Step::Happened) {}
        self.kernel.timeline.advance(until);
    }

    /// Runs until nothing is ready and nothing will happen, or the power fails.
    pub fn settle(&self) {
        while matches!(self.step(), Step::Polled | Step::Happened) {}
    }

    /// Runs `task` on core 0 to its end, and whatever else runs meanwhile.
    ///
    /// # Panics
    /// As [`World::block_on`].
    #[track_caller]
    pub fn run_until<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> T {
        self.block_on(CoreId(0), task)
    }

    /// Runs `task` on `core` to its end, and whatever else runs meanwhile.
    ///
    /// # Panics
    /// At a deadlock, with seed and waiting tasks, and at loss of power.
    #[track_caller]
    pub fn block_on<T: 'static>(&self, core: CoreId, task: impl Future<Output = T> + 'static) -> T {
        match self.try_block_on(core, task) {
            Ok(value) => value,
            Err(stopped) => panic!("{stopped}"),
        }
    }

    /// Runs `task` on `core` to its end.
    ///
    /// # Errors
    /// `Deadlock` if nothing can go on, `PowerLost` if the power failed.
    #[track_caller]
    pub fn try_block_on<T: 'static>(
        &self,
        core: CoreId,
        task: impl Future<Output = T> + 'static,
    ) -> Result<T, Stopped> {
        self.run_limited(core, u64::MAX, task)
    }

    /// Runs `task` on `core` for at most `steps` steps. A task that is not done goes on
    /// whenever the world does.
    ///
    /// # Errors
    /// As [`World::try_block_on`], and `OutOfSteps`.
    #[track_caller]
    pub fn run_limited<T: 'static>(
        &self,
        core: CoreId,
        steps: u64,
        task: impl Future<Output = T> + 'static,
    ) -> Result<T, Stopped> {
        assert!(core.0 < self.kernel.config.cores, "no such core");
        let result = Rc::new(RefCell::new(None));
        let into = result.clone();
        self.kernel.spawn(core, Priority::First, async move {
            let value = task.await;
            *into.borrow_mut() = Some(value);
        });
        for _ in 0..steps {
            let step = self.step();
            if let Some(value) = result.borrow_mut().take() {
                return Ok(value);
            }
            match step {
                Step::Polled | Step::Happened => {}
                Step::PowerLost => return Err(Stopped::PowerLost),
                Step::Idle => {
                    let waiting = self.waiting();
                    return Err(Stopped::Deadlock { seed: self.seed(), waiting });
                }
            }
        }
        Err(Stopped::OutOfSteps)
    }

    /// True if a task is ready to run now.
    pub fn any_ready(&self) -> bool {
        self.kernel.executor.any_ready()
    }

    /// Cuts the power: every bound drive loses what its profile lets it lose; tasks, letters
    /// and tickets are dropped without being run. The world is dead, its drives live.
    pub fn crash(&self) {
        self.end(CutKind::Power);
    }

    /// Kills the process: tasks, letters and tickets are dropped; requests in flight are
    /// carried out in part; what drives have in their caches stays there.
    pub fn kill(&self) {
        self.end(CutKind::Process);
    }

    fn end(&self, kind: CutKind) {
        self.kernel.timeline.switch_off();
        for drive in self.kernel.drives() {
            drive::cut(&drive, &self.kernel.timeline, kind);
        }
        self.kernel.clear();
    }
}

impl<M: Send + 'static> Drop for World<M> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("simulated world: seed {}, step {}", self.seed(), self.steps());
        } else {
            self.kill();
        }
    }
}

//! Cores with an engine on them, driven from the outside.
//!
//! Each core runs an *agent*: a task that takes jobs out of its inbox and starts them with the
//! core's engine at hand.

use crate::error::BenchError;
use crate::load::{Load, Part, Until};
use crate::omitted::Omitted;
use crate::stats::Sample;
use crate::through::Ways;
use core::future::poll_fn;
use core::task::{Poll, Waker};
use drives::SharedDrive;
use engine::array::message::ArrayId;
use engine::manage::command::{DriveRef, Reply, Request};
use engine::{Accelerator, Core, Settings, Volume};
use io::{Buf, BufMut, Env as _, Priority, Reach};
use parity::offload::Offload;
use parity_gpu::{Placement, Service};
use runtime::{Config, Handle, Runtime};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::{CoreId, Uuid};
use workload::{Many, Raw, Served, Target};

/// The mail of the engine's cores.
pub type Mail = engine::mail::Mail<SharedDrive>;
/// One core.
pub type Env = drives::Env<Mail>;

/// Who is asked for parity before the cores compute it.
#[derive(Clone)]
pub enum Helper {
    /// A GPU, for what is placed there.
    Gpu(Arc<Service>, Placement),
    /// Nobody, see [`Omitted`]; as much memory is told of as with a GPU.
    Omitted(Arc<dyn Reach>),
}

impl Helper {
    /// Who is told of memory.
    pub fn reach(&self) -> Arc<dyn Reach> {
        match self {
            Helper::Gpu(service, _) => service.reach(),
            Helper::Omitted(reach) => reach.clone(),
        }
    }

    /// A core's own.
    fn accelerator(&self) -> Accelerator {
        let jobs: Rc<dyn Offload<Buf, BufMut>> = match self {
            Helper::Gpu(service, placement) => Rc::new(service.handle(*placement)),
            Helper::Omitted(_) => Rc::new(Omitted),
        };
        Accelerator { jobs, reach: self.reach() }
    }
}

type Job = Box<dyn FnOnce(&Env, &Core<Env>) + Send>;

#[derive(Default)]
struct Inbox {
    state: Mutex<(VecDeque<Job>, Option<Waker>)>,
}

impl Inbox {
    fn put(&self, job: Job) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        state.0.push_back(job);
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }

    async fn next(&self) -> Job {
        poll_fn(|cx| {
            let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
            match state.0.pop_front() {
                Some(job) => Poll::Ready(job),
                None => {
                    state.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// What a load is aimed at.
#[derive(Clone)]
pub enum Aim {
    /// Bytes `start..start + bytes` of each of these drives.
    Drives {
        /// The drives.
        drives: Vec<SharedDrive>,
        /// First byte of each.
        start: u64,
        /// Bytes of each.
        bytes: u64,
        /// Bytes of one before the next one's turn.
        turn: u64,
    },
    /// Volumes of a running array, as one address space.
    Volumes {
        /// The array.
        array: ArrayId,
        /// The volumes.
        volumes: Vec<Uuid>,
    },
    /// Volumes that are served, as one address space.
    Remote(Ways),
    /// A volume of a running array.
    Volume {
        /// The array.
        array: ArrayId,
        /// The volume.
        volume: Uuid,
    },
}

/// Running cores with an engine. Dropping it stops them.
pub struct Rig {
    _runtime: Runtime<Mail, SharedDrive>,
    handle: Handle<Mail, SharedDrive>,
    inboxes: Arc<[Inbox]>,
}

impl Rig {
    /// Starts `cores` cores, each pinned to a CPU of its own. `helper` is asked for parity.
    pub fn start(cores: u16, helper: Option<&Helper>) -> Result<Self, BenchError> {
        let helper = helper.cloned();
        Self::start_with(cores, true, move |env| {
            let accelerator = helper.as_ref().map(Helper::accelerator);
            Core::start_with(env, Settings::default(), accelerator)
        })
    }

    /// The same, with an engine that does not keep writes safe from crashes: only to measure what
    /// that costs ([`Core::start_unguarded`]).
    pub fn start_unguarded(cores: u16) -> Result<Self, BenchError> {
        Self::start_with(cores, true, Core::start_unguarded)
    }

    /// Cores of hosts, which take what CPUs others leave.
    pub fn start_beside(cores: u16) -> Result<Self, BenchError> {
        Self::start_with(cores, false, |env| Core::start_with(env, Settings::default(), None))
    }

    /// The same for cores that share their CPUs with many others: one that has nothing to do sleeps
    /// at once.
    pub fn start_among_many(cores: u16) -> Result<Self, BenchError> {
        let config = Config { cores, spin: Duration::ZERO, ..Config::default() };
        Self::start_as(config, |env| Core::start_with(env, Settings::default(), None))
    }

    fn start_with(
        cores: u16,
        pin: bool,
        engine: impl Fn(Env) -> Core<Env> + Send + Sync + 'static,
    ) -> Result<Self, BenchError> {
        Self::start_as(Config { cores, pin, ..Config::default() }, engine)
    }

    fn start_as(
        config: Config,
        engine: impl Fn(Env) -> Core<Env> + Send + Sync + 'static,
    ) -> Result<Self, BenchError> {
        let inboxes: Arc<[Inbox]> = (0..config.cores).map(|_| Inbox::default()).collect();
        let boxes = inboxes.clone();
        let runtime = Runtime::start_with(config, move |env: Env| {
            let core = engine(env.clone());
            let (boxes, agent) = (boxes.clone(), env.clone());
            env.spawn(Priority::First, async move {
                let inbox = &boxes[agent.core().index()];
                loop {
                    let job = inbox.next().await;
                    job(&agent, &core);
                }
            });
        });
        let system = |error| BenchError::System { path: "the runtime".into(), error };
        let runtime = runtime.map_err(system)?;
        let handle = runtime.handle();
        Ok(Self { _runtime: runtime, handle, inboxes })
    }

    /// How many cores there are.
    pub fn cores(&self) -> u16 {
        self.handle.cores()
    }

    /// The runtime's handle.
    pub(crate) fn handle(&self) -> &Handle<Mail, SharedDrive> {
        &self.handle
    }

    /// Asks the engine for something and waits for its answer.
    pub fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(Reply<T>) -> Request<SharedDrive>,
    ) -> Result<T, BenchError> {
        let (sender, answer) = mpsc::channel();
        let reply = Box::new(move |result| {
            // Nobody listens any more only when the run was given up.
            let _ = sender.send(result);
        });
        self.handle.post(CoreId(0), Mail::Request(request(reply)));
        Ok(answer.recv().map_err(|_| BenchError::CoreGone)??)
    }

    /// Runs a job on a core.
    pub fn on_core(&self, core: CoreId, job: impl FnOnce(&Env, &Core<Env>) + Send + 'static) {
        self.inboxes[core.index()].put(Box::new(job));
    }

    /// Runs a load, spread over the cores; what it came to and what it found wrong.
    pub fn run(
        &self,
        aim: &Aim,
        load: &Load,
        until: Until,
        seed: u64,
    ) -> Result<(Sample, Vec<Part>), BenchError> {
        let (sender, answers) = mpsc::channel();
        let cores = self.inboxes.len();
        let before = cpu_time();
        for (core, inbox) in self.inboxes.iter().enumerate() {
            let depth = load.depth / cores + usize::from(core < load.depth % cores);
            let seed = seed.wrapping_mul(31).wrapping_add(core as u64);
            let (aim, load, sender) = (aim.clone(), load.clone(), sender.clone());
            inbox.put(Box::new(move |env, core| {
                aim.visit(env, core, Recorded { load, depth, until, seed, sender });
            }));
        }
        drop(sender);
        let mut parts: Vec<Part> = Vec::new();
        for _ in 0..cores {
            parts.push(answers.recv().map_err(|_| BenchError::CoreGone)?);
        }
        let cpu = cpu_time().saturating_sub(before);
        let failed: u64 = parts.iter().map(|p| p.failed).sum();
        if failed > 0 {
            return Err(BenchError::Failed(failed));
        }
        Ok((together(&parts, cpu), parts))
    }
}

fn together(parts: &[Part], cpu: Duration) -> Sample {
    let operations = parts.iter().map(|p| p.operations).sum();
    let start = parts.iter().map(|p| p.start).min();
    let end = parts.iter().map(|p| p.end).max();
    let elapsed = start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start);
    Sample { operations, elapsed, cpu }
}

/// What is done at a target, whatever that is.
pub(crate) trait Visit {
    /// Begins it.
    fn at(self, env: &Env, target: impl Target);
}

impl Aim {
    /// Begins something at what is aimed at, on this core.
    pub(crate) fn visit(self, env: &Env, core: &Core<Env>, visit: impl Visit) {
        let running = |id| core.array(id).expect("the array runs while it is loaded");
        match self {
            Self::Drives { drives, start, bytes, turn } => {
                let drives = drives.iter().map(|drive| env.bind(drive)).collect();
                visit.at(env, Raw::in_turns(drives, start, bytes, turn));
            }
            Self::Remote(ways) => ways.visit(env, visit),
            Self::Volume { array, volume } => {
                visit.at(env, Served(Volume::new(running(array), volume)));
            }
            Self::Volumes { array, volumes } => {
                let served = |volume: &Uuid| Served(Volume::new(running(array), *volume));
                visit.at(env, Many::new(volumes.iter().map(served).collect()));
            }
        }
    }
}

/// One core's part of a load that is recorded.
struct Recorded {
    load: Load,
    depth: usize,
    until: Until,
    seed: u64,
    sender: mpsc::Sender<Part>,
}

impl Visit for Recorded {
    fn at(self, env: &Env, target: impl Target) {
        let Self { load, depth, until, seed, sender } = self;
        let own = env.clone();
        env.spawn(Priority::First, async move {
            let _ = sender.send(load.run(own, target, depth, until, seed).await);
        });
    }
}

/// Drives as the engine is given them.
pub(crate) fn references(drives: &[SharedDrive]) -> Vec<DriveRef<SharedDrive>> {
    let reference = |drive: &SharedDrive| {
        let (path, serial) = (drive.path().display().to_string(), drive.serial());
        // Drives in memory have none, and are told apart by it.
        let path = if path.is_empty() { serial.clone() } else { path };
        DriveRef { shared: drive.clone(), path, serial, is_file: drive.device().is_none() }
    };
    drives.iter().map(reference).collect()
}

/// Where the data of an array of these drives would begin on each, and its bytes there.
pub(crate) fn data_area(drives: &[SharedDrive]) -> (u64, u64) {
    let usable =
        |drive: &SharedDrive| format::usable_bytes(drive.info().bytes, drive.device().is_some());
    let split = format::split(drives.iter().map(usable).min().unwrap_or(0));
    (split.data_offset, split.data_bytes)
}

/// CPU time of the process so far: all threads, the kernel's workers for it included.
pub fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Resident memory of this process in bytes.
pub(crate) fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|text| text.parse::<f64>().ok());
    pages.unwrap_or(0.0) * rustix::param::page_size() as f64
}

//! `palisade bench nvme-tcp`: what the target adds to TCP and to the volume behind it.
//!
//! One core for the target, one for a plain initiator, loopback between them, drives in memory:
//! this process's, or files of a RAM-backed file system, which cost a system call each.
//! Taken in turns within every round: the target; an echo that answers the same bytes with the
//! same batching on the target's core; the same requests made by that core itself. The bound of a
//! core that has to do both is `1 / (1/echo + 1/in-process)` in operations per second; on one that
//! does only one of them it would be the smaller of the two. Here a core does both.
//!
//! - [`client`]: the initiator. [`echo`]: the yardstick. [`served`]: the target.
//! - [`pinned`]: a target that may use no CPU beside its core's.
use workload::target::TURN;

pub(crate) mod client;
pub(crate) mod echo;
mod pinned;
pub(crate) mod served;

use crate::bay::{Bay, Make, Source};
use crate::error::BenchError;
use crate::files::{Files, check_memory, check_room};
use crate::load::{Load, Op, Order, Until};
use crate::record::Record;
use crate::report::{Goal, Report};
use crate::rig::{Aim, Rig, cpu_time, resident};
use crate::stats::{Sample, Spread};
use client::{Address, Queue, Shape};
use echo::Echo;
use rustix::thread::CpuSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct NvmeTcpBench {
    /// Rounds of each workload, at least 1.
    pub rounds: usize,
    /// Time of each side in a round.
    pub span: Duration,
    /// Time for which idle connections are watched.
    pub idle: Duration,
    /// Connections whose memory is measured.
    pub connections: usize,
    /// Bytes of each drive.
    pub drive_bytes: u64,
    /// Files in this directory of a RAM-backed file system, else drives in this process's memory.
    pub dir: Option<PathBuf>,
    /// Measures also a target that may use only as many CPUs as it has data cores.
    pub pin: bool,
}

impl Default for NvmeTcpBench {
    fn default() -> Self {
        Self {
            rounds: 9,
            span: Duration::from_millis(500),
            idle: Duration::from_secs(10),
            connections: 1000,
            drive_bytes: 256 << 20,
            dir: None,
            pin: false,
        }
    }
}

/// Drives of the array: RAID 5, 4+1.
const DRIVES: usize = 5;
/// CPU of the target, of the echo, and of requests in process.
const TARGET_CPU: usize = 0;
/// CPU of the initiator.
const CLIENT_CPU: usize = 1;
/// Connections that are idle.
const IDLE: usize = 64;

struct Workload {
    name: &'static str,
    shape: Shape,
    against: Against,
}

/// What a workload's rate is compared to.
enum Against {
    Bound(f64),
    Echo(f64),
    /// Its latency, to the echo's and the volume's own together.
    Latency(f64),
}

const fn shape(is_write: bool, bytes: usize, depth: usize) -> Shape {
    Shape { is_write, bytes, depth }
}

const WORKLOADS: [Workload; 5] = [
    Workload {
        name: "4k-read-qd32",
        shape: shape(false, 4 << 10, 32),
        against: Against::Bound(0.85),
    },
    Workload {
        name: "4k-read-qd128",
        shape: shape(false, 4 << 10, 128),
        against: Against::Bound(0.85),
    },
    Workload {
        name: "4k-write-qd32",
        shape: shape(true, 4 << 10, 32),
        against: Against::Bound(0.85),
    },
    Workload { name: "128k-read", shape: shape(false, 128 << 10, 8), against: Against::Echo(0.90) },
    Workload {
        name: "4k-read-qd1-added-us",
        shape: shape(false, 4 << 10, 1),
        against: Against::Latency(3.0),
    },
];

/// The CPUs that the process may use, as they are before any thread is kept on one.
#[derive(Clone)]
pub(crate) struct Cpus(Vec<usize>);

impl Cpus {
    /// Those that this thread may use.
    pub fn find() -> Self {
        let all = rustix::thread::sched_getaffinity(None);
        let has = |cpu: &usize| all.as_ref().is_ok_and(|all| all.is_set(*cpu));
        Self((0..CpuSet::MAX_CPU).filter(has).collect())
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Keeps the calling thread on one of them, if there are so many.
    pub fn pin(&self, number: usize) {
        if let Some(cpu) = self.0.get(number) {
            let mut one = CpuSet::new();
            one.set(*cpu);
            // Where it is not allowed the numbers are noisier, no more.
            let _ = rustix::thread::sched_setaffinity(None, &one);
        }
    }

    /// Lets the calling thread use all of them.
    pub fn spread(&self) {
        let mut all = CpuSet::new();
        self.0.iter().for_each(|cpu| all.set(*cpu));
        // As above.
        let _ = rustix::thread::sched_setaffinity(None, &all);
    }
}

/// A side of the comparison, for one kind of volume.
struct Stand<'a> {
    rig: &'a Rig,
    cpus: &'a Cpus,
    aim: Aim,
    record: Arc<Record>,
    address: Address,
    bytes: u64,
}

/// What one round measured.
#[derive(Clone, Copy)]
struct Turn {
    target: Sample,
    echo: Sample,
    inside: Sample,
}

impl Turn {
    fn bound(&self) -> f64 {
        bound(&self.echo, &self.inside)
    }
}

/// Operations per second that a core which does both could do.
pub(crate) fn bound(echo: &Sample, inside: &Sample) -> f64 {
    let (echo, inside) = (echo.rate(), inside.rate());
    if echo > 0.0 && inside > 0.0 { 1.0 / (1.0 / echo + 1.0 / inside) } else { 0.0 }
}

impl Stand<'_> {
    fn rounds(&self, options: &NvmeTcpBench, shape: Shape) -> Result<Vec<Turn>, BenchError> {
        let (_admin, controller) = self.address.associate()?;
        let (mut queue, _) = self.address.connect(1, controller, 255)?;
        let echo = Echo::start(self.cpus, TARGET_CPU, shape.bytes)?;
        let mut bare = echo.connect()?;
        let op = if shape.is_write { Op::Write } else { Op::Read };
        let load = Load::new(op, Order::Random, shape.bytes, shape.depth, &self.record);
        let mut turns = Vec::new();
        // The first round does not count: memory and tables are warm afterwards.
        for round in 0..=options.rounds as u64 {
            let span = options.span;
            let own = |queue: &mut Queue| queue.run(shape, self.bytes, span, round);
            let inside = || self.rig.run(&self.aim, &load, Until::Elapsed(span), round);
            let turn = if round % 2 == 0 {
                let (target, echo) = (own(&mut queue)?, own(&mut bare)?);
                Turn { target, echo, inside: inside()?.0 }
            } else {
                let (inside, echo) = (inside()?.0, own(&mut bare)?);
                Turn { target: own(&mut queue)?, echo, inside }
            };
            turns.extend((round > 0).then_some(turn));
        }
        Ok(turns)
    }

    /// Measures all workloads; results get a prefix, and goals if `has_goals`.
    fn measure(
        &self,
        options: &NvmeTcpBench,
        prefix: &str,
        has_goals: bool,
        report: &mut Report,
        progress: &dyn Fn(&str),
    ) -> Result<(), BenchError> {
        for workload in &WORKLOADS {
            progress(&format!("{prefix}{}", workload.name));
            let turns = self.rounds(options, workload.shape)?;
            add(report, workload, prefix, has_goals, &turns);
        }
        Ok(())
    }
}

fn add(report: &mut Report, workload: &Workload, prefix: &str, has_goals: bool, turns: &[Turn]) {
    let goal = |goal| has_goals.then_some(goal);
    let name = format!("{prefix}{}", workload.name);
    let micros = |sample: Sample| 1e6 / sample.rate().max(1e-9);
    match workload.against {
        Against::Bound(least) => {
            let ratio = Spread::of(turns.iter().map(|turn| turn.target.rate() / turn.bound()));
            report.add(&name, "ratio", ratio, goal(Goal::AtLeast(least)));
            report.add(
                &format!("{name}-bound-iops"),
                "iops",
                Spread::of(turns.iter().map(Turn::bound)),
                None,
            );
        }
        Against::Echo(least) => {
            let ratio = Spread::of(turns.iter().map(|turn| turn.target.rate() / turn.echo.rate()));
            report.add(&name, "ratio", ratio, goal(Goal::AtLeast(least)));
            // Reading has to copy what the echo has: no core can come near the goal.
            let ratio = Spread::of(turns.iter().map(|turn| turn.target.rate() / turn.bound()));
            report.add(&format!("{name}-of-bound"), "ratio", ratio, None);
        }
        Against::Latency(most) => {
            let added = |turn: &Turn| micros(turn.target) - micros(turn.echo) - micros(turn.inside);
            report.add(&name, "us", Spread::of(turns.iter().map(added)), goal(Goal::AtMost(most)));
        }
    }
    type Side = (&'static str, fn(&Turn) -> Sample);
    let sides: [Side; 3] =
        [("target", |t| t.target), ("echo", |t| t.echo), ("in-process", |t| t.inside)];
    for (side, sample) in sides {
        let rate = Spread::of(turns.iter().map(|turn| sample(turn).rate()));
        report.add(&format!("{name}-{side}-iops"), "iops", rate, None);
        let cpu = Spread::of(turns.iter().map(|turn| sample(turn).cpu_micros()));
        report.add(&format!("{name}-{side}-cpu-us"), "us", cpu, None);
    }
}

/// Where the first core serves.
fn first(addresses: Vec<Address>) -> Result<Address, BenchError> {
    addresses.into_iter().next().ok_or(BenchError::CoreGone)
}

/// What connections cost that do nothing.
fn idle(options: &NvmeTcpBench, address: &Address, report: &mut Report) -> Result<(), BenchError> {
    let connections = connect(address, IDLE)?;
    std::thread::sleep(Duration::from_millis(200));
    let before = cpu_time();
    std::thread::sleep(options.idle);
    let used = cpu_time().saturating_sub(before).as_secs_f64() / options.idle.as_secs_f64();
    let goal = Some(Goal::AtMost(0.005));
    report.add("idle-64-cpu", "ratio", Spread::of([used]), goal);
    drop(connections);
    Ok(())
}

/// So many connections: admin queues, and as many I/O queues of each as there may be.
fn connect(address: &Address, count: usize) -> Result<Vec<Queue>, BenchError> {
    let mut all = Vec::with_capacity(count);
    let mut admin = None;
    while all.len() < count {
        let (controller, queue) = match admin {
            None => {
                let (queue, controller) = address.associate()?;
                all.push(queue);
                admin = Some((controller, 1));
                continue;
            }
            Some(next) => next,
        };
        all.push(address.connect(queue, controller, 127)?.0);
        admin = (queue < nvme_target::limits::IO_QUEUES).then_some((controller, queue + 1));
    }
    Ok(all)
}

fn memory(
    options: &NvmeTcpBench,
    address: &Address,
    report: &mut Report,
) -> Result<(), BenchError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it can't be raised, connecting tells.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    // What the first ones need of the allocator is not theirs.
    drop(connect(address, 8)?);
    std::thread::sleep(Duration::from_millis(300));
    let before = resident();
    let connections = connect(address, options.connections)?;
    let each = (resident() - before) / 1024.0 / options.connections as f64;
    report.add("memory-per-connection-kib", "KiB", Spread::of([each.max(0.0)]), None);
    drop(connections);
    Ok(())
}

/// Carries the benchmark out. `version` and `command` go into the report; `progress` is told
/// what happens, a line each.
///
/// # Errors
/// When it can't be carried out, or the array is not right afterwards.
pub fn bench_nvme_tcp(
    options: &NvmeTcpBench,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    if options.rounds == 0 || options.span.is_zero() || options.connections == 0 {
        return Err(BenchError::Usage("give at least one round, some time, one connection".into()));
    }
    let mut report = Report::new(version, command);
    progress("making and filling the drives");
    let drives = DRIVES * if options.pin { 2 } else { 1 } + 1;
    let needed = options.drive_bytes.saturating_mul(drives as u64);
    match &options.dir {
        Some(dir) => check_room(dir, needed)?,
        None => check_memory(needed)?,
    }
    let files = |count| -> Result<_, BenchError> {
        let Some(dir) = &options.dir else { return Ok(None) };
        Ok(Some(Files::new(dir, count, options.drive_bytes, 1)?))
    };
    let (several, alone) = (files(DRIVES)?, files(1)?);
    let source = |files: &Option<Files>, count| match files {
        Some(files) => files.source(),
        None => Source::memory(count, options.drive_bytes),
    };
    let bay = Bay::create(source(&several, DRIVES), Make::default())?;
    let cpus = Cpus::find();
    cpus.pin(CLIENT_CPU);
    let side = bay.side();
    let address = first(served::serve(&bay.rig, &side.aim)?)?;
    let bytes = side.record.blocks() * crate::record::BLOCK as u64;
    let aim = side.aim.clone();
    let (rig, record) = (&bay.rig, side.record.clone());
    let stand = Stand { rig, cpus: &cpus, aim, record, address: address.clone(), bytes };
    stand.measure(options, "", true, &mut report, progress)?;
    progress("idle connections");
    idle(options, &address, &mut report)?;
    progress("memory of connections");
    memory(options, &address, &mut report)?;
    if options.pin {
        progress("a target with no CPU beside its core's");
        let files = files(DRIVES)?;
        let source = source(&files, DRIVES);
        pinned::measure(options, &cpus, (&address, bytes), source, &mut report)?;
    }
    let drives = source(&alone, 1).open()?;
    let aim = Aim::Drives { drives, start: 0, bytes: options.drive_bytes, turn: TURN };
    let (record, bytes) = (Arc::new(Record::new(options.drive_bytes)), options.drive_bytes);
    let all = Load::new(Op::Write, Order::Sequential, 128 << 10, 8, &record);
    rig.run(&aim, &all, Until::Once, 0)?;
    let address = first(served::serve(rig, &aim)?)?;
    let stand = Stand { rig, cpus: &cpus, aim, record, address, bytes };
    stand.measure(options, "single-", false, &mut report, progress)?;
    report.notes.push(
        "bound: 1 / (1/echo + 1/in-process), since the target's core does what both do".into(),
    );
    Ok(report)
}

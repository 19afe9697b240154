//! `palisade bench array`: what an array costs over its raw drives.
//!
//! RAID 5 over files in memory that were filled with random bytes. Side A is the raw drives,
//! side B a volume over the whole array; both sides' tasks run on the data core and go through
//! the same reactor. Raw reads use the array's own files; raw writes use a second set of the
//! same size, since they would destroy the array. In the end the array is stopped, started again
//! by new cores from newly opened files, scrubbed and read back against the record: without that
//! there is no report.
//!
//! With two cores a second array is made on the second set, by two cores, and its CPU time per
//! request compared with the first one's.

use crate::bay::{Bay, Make};
use crate::costs;
use crate::error::BenchError;
use crate::files::{Files, check_room};
use crate::fio;
use crate::load::{Load, Op, Order, Until};
use crate::placement::{self, Placements};
use crate::record::Record;
use crate::report::{Goal, Report};
use crate::rig::{Aim, Helper, Rig, data_area};
use crate::shapes;
use crate::stats::{Round, Sample, Spread, cpu_ratio, rate_ratio};
use drives::SharedDrive;
use parity_gpu::Placement;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use units::MIB;
use workload::target::TURN;

/// Turns that each side has within a round.
const TURNS: u32 = 4;
/// Rounds against fio, at most.
const FIO_ROUNDS: usize = 5;
/// What the raw side must reach of fio's rate.
const FIO_GOAL: f64 = 0.90;
/// What two cores may cost per request, of one core's cost.
const CORES_GOAL: f64 = 1.15;

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct ArrayBench {
    /// Rounds of each workload, at least 1.
    pub rounds: usize,
    /// Time of each side in a round.
    pub span: Duration,
    /// 1, or 2 to compare two data cores with one as well.
    pub cores: u16,
    /// Drives, 3 to [`layout::MAX_DRIVES`].
    pub drives: usize,
    /// Bytes of each drive.
    pub drive_bytes: u64,
    /// A directory in a RAM-backed file system.
    pub dir: PathBuf,
    /// Where parity is placed, and that placements are compared.
    pub parity: Option<Placement>,
}

impl Default for ArrayBench {
    fn default() -> Self {
        Self {
            rounds: 15,
            span: Duration::from_secs(1),
            cores: 1,
            drives: 5,
            drive_bytes: units::GIB,
            dir: "/dev/shm".into(),
            parity: None,
        }
    }
}

impl ArrayBench {
    fn check(&self) -> Result<(), BenchError> {
        let most = usize::from(layout::MAX_DRIVES);
        let widths = format!("give 3 to {most} drives");
        let problem = if self.rounds == 0 || self.span.is_zero() {
            "at least one round of some time is needed"
        } else if !(1..=2).contains(&self.cores) {
            "give one or two cores"
        } else if !(3..=most).contains(&self.drives) {
            &widths
        } else if self.drive_bytes < 16 * MIB || !self.drive_bytes.is_multiple_of(MIB) {
            "give drives of at least 16 MiB and of whole MiB"
        } else {
            // Two sets; and for the rebuilds a drive in use and the next one, or two sets of eight
            // smaller ones.
            let files = 2 * self.drives as u64 + 4;
            return check_room(&self.dir, self.drive_bytes.saturating_mul(files));
        };
        Err(BenchError::Usage(problem.to_owned()))
    }
}

pub(crate) struct Workload {
    pub name: &'static str,
    pub op: Op,
    pub order: Order,
    pub bytes: usize,
    pub depth: usize,
    pub goal: f64,
}

pub(crate) const fn small(name: &'static str, op: Op, order: Order, goal: f64) -> Workload {
    Workload { name, op, order, bytes: 4 << 10, depth: 32, goal }
}

pub(crate) const fn large(name: &'static str, op: Op, goal: f64) -> Workload {
    Workload { name, op, order: Order::Sequential, bytes: 128 << 10, depth: 8, goal }
}

pub(crate) const WORKLOADS: [Workload; 6] = [
    small("4k-random-read", Op::Read, Order::Random, 0.94),
    large("128k-sequential-read", Op::Read, 0.95),
    small("4k-random-write", Op::Write, Order::Random, 0.33),
    small("4k-random-mixed", Op::Mixed(70), Order::Random, 0.50),
    small("4k-random-write-hot", Op::Write, Order::Hot, 0.42),
    large("128k-sequential-write", Op::Write, 0.74),
];

impl Workload {
    fn load(&self, record: &Arc<Record>) -> Load {
        Load::new(self.op, self.order, self.bytes, self.depth, record)
    }
}

/// A side of a comparison: who runs it, at what, with which record.
pub struct Side<'a> {
    /// The cores.
    pub rig: &'a Rig,
    /// What they work on.
    pub aim: Aim,
    /// What was written.
    pub record: Arc<Record>,
}

impl Side<'_> {
    /// Runs a load.
    pub fn run(&self, load: &Load, until: Until, seed: u64) -> Result<Sample, BenchError> {
        Ok(self.rig.run(&self.aim, load, until, seed)?.0)
    }
}

/// Takes turns: rounds of `span` for each side, cut into turns, order alternating.
pub(crate) fn compare(
    options: &ArrayBench,
    workload: &Workload,
    a: &Side<'_>,
    b: &Side<'_>,
) -> Result<Vec<Round>, BenchError> {
    let (load_a, load_b) = (workload.load(&a.record), workload.load(&b.record));
    let sides = [(a, load_a), (b, load_b)];
    warm(&sides, options.span / TURNS)?;
    let round = |round| {
        let sums = take_turns(&sides, round, TURNS, options.span)?;
        Ok(Round { a: sums[0], b: sums[1] })
    };
    (0..options.rounds).map(round).collect()
}

/// A first turn of each side that does not count: memory and tables are warm afterwards.
pub(crate) fn warm(sides: &[(&Side<'_>, Load)], span: Duration) -> Result<(), BenchError> {
    sides.iter().try_for_each(|(side, load)| side.run(load, Until::Elapsed(span), 0).map(drop))
}

/// A round of `span` for each side, cut into turns; who begins turns round.
pub(crate) fn take_turns(
    sides: &[(&Side<'_>, Load)],
    round: usize,
    turns: u32,
    span: Duration,
) -> Result<Vec<Sample>, BenchError> {
    in_turns(sides.len(), round, turns, |at, seed| {
        let (side, load) = &sides[at];
        side.run(load, Until::Elapsed(span / turns), seed)
    })
}

/// A round of `turns` turns for each of `count` sides, which `run` carries out with a side's
/// number and a seed; who begins turns round.
pub(crate) fn in_turns(
    count: usize,
    round: usize,
    turns: u32,
    mut run: impl FnMut(usize, u64) -> Result<Sample, BenchError>,
) -> Result<Vec<Sample>, BenchError> {
    let mut sums = vec![Sample::default(); count];
    for turn in 0..turns as usize {
        let seed = 1 + (round * turns as usize + turn) as u64;
        for at in 0..count {
            let at = (at + turn + round) % count;
            sums[at] = sums[at].and(run(at, seed)?);
        }
    }
    Ok(sums)
}

/// Adds one side's rate and CPU time.
fn add_side(
    report: &mut Report,
    workload: &Workload,
    side: &str,
    samples: impl Iterator<Item = Sample> + Clone,
) {
    let name = workload.name;
    let rate = Spread::of(samples.clone().map(|s| s.rate()));
    if workload.order != Order::Sequential {
        report.add(&format!("{name}-{side}-iops"), "iops", rate, None);
    } else {
        let rate = rate.map(|r| r.scaled(workload.bytes as f64 / 1e9));
        report.add(&format!("{name}-{side}-gbps"), "GB/s", rate, None);
    }
    let cpu = Spread::of(samples.map(|s| s.cpu_micros()));
    report.add(&format!("{name}-{side}-cpu-us"), "us", cpu, None);
}

/// The raw drives as a side.
pub(crate) fn raw_side<'a>(rig: &'a Rig, drives: &[SharedDrive]) -> Side<'a> {
    let (start, bytes) = data_area(drives);
    let record = Arc::new(Record::new(bytes * drives.len() as u64));
    Side { rig, aim: Aim::Drives { drives: drives.to_vec(), start, bytes, turn: TURN }, record }
}

/// Measures the raw side against fio, in turns; whether the raw side counts.
fn against_fio(
    options: &ArrayBench,
    workload: &Workload,
    raw: &Side<'_>,
    paths: &[PathBuf],
    report: &mut Report,
) -> Result<bool, BenchError> {
    let side = if workload.op.writes() { "write" } else { "read" };
    let name = &format!("raw-vs-fio-4k-{side}");
    if !fio::available() {
        report.missing.push(format!("{name}: there is no fio"));
        return Ok(true);
    }
    let load = workload.load(&raw.record);
    let (mut ratios, mut rates) = (Vec::new(), [Vec::new(), Vec::new()]);
    for round in 0..options.rounds.min(FIO_ROUNDS) {
        let ours = raw.run(&load, Until::Elapsed(options.span), round as u64)?.rate();
        let mut best = 0.0f64;
        for (engine, rates) in fio::ENGINES.iter().zip(&mut rates) {
            match fio::random_4k(engine, workload.op, workload.depth, paths, options.span) {
                Ok(rate) => {
                    best = best.max(rate);
                    rates.push(rate);
                }
                Err(error) => {
                    report.missing.push(format!("{name}: {engine}: {error}"));
                    return Ok(true);
                }
            }
        }
        ratios.push(ours / best);
    }
    let spread = Spread::of(ratios);
    report.add(name, "ratio", spread, Some(Goal::AtLeast(FIO_GOAL)));
    for (engine, rates) in fio::ENGINES.iter().zip(rates) {
        let name = format!("{}-fio-{engine}-iops", workload.name);
        report.add(&name, "iops", Spread::of(rates), None);
    }
    Ok(spread.is_some_and(|s| s.median >= FIO_GOAL))
}

/// All workloads of the array against the raw drives.
fn against_raw(
    options: &ArrayBench,
    bay: &Bay,
    (first, second): (&Files, &Files),
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let second_drives = second.source().open()?;
    let mut counts = true;
    for workload in &WORKLOADS {
        let (drives, paths) = match workload.op.writes() {
            true => (&second_drives, second.paths()),
            false => (&bay.drives, first.paths()),
        };
        let raw = raw_side(&bay.rig, drives);
        // fio mixes otherwise: what it says of reads and writes alone holds of both.
        let is_one = !matches!(workload.op, Op::Mixed(_));
        if workload.order == Order::Random && is_one {
            progress(&format!("{}: raw drives against fio", workload.name));
            counts = against_fio(options, workload, &raw, &paths, report)?;
        }
        progress(&format!("{}: array against raw drives", workload.name));
        let rounds = compare(options, workload, &raw, &bay.side())?;
        if counts {
            let goal = Some(Goal::AtLeast(workload.goal));
            report.add(workload.name, "ratio", rate_ratio(&rounds), goal);
        } else {
            let reason = "the raw side did not reach 0.90 of fio";
            report.missing.push(format!("{}: {reason}", workload.name));
        }
        add_side(report, workload, "array", rounds.iter().map(|r| r.b));
        add_side(report, workload, "raw", rounds.iter().map(|r| r.a));
    }
    Ok(())
}

/// CPU time per request of two cores against one.
fn against_one_core(
    options: &ArrayBench,
    one: &Bay,
    two: &Bay,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let mut worst: Option<Spread> = None;
    let goal = Some(Goal::AtMost(CORES_GOAL));
    for workload in WORKLOADS.iter().filter(|w| w.order == Order::Random) {
        progress(&format!("{}: two cores against one", workload.name));
        let rounds = compare(options, workload, &one.side(), &two.side())?;
        let ratio = cpu_ratio(&rounds);
        report.add(&format!("cores-2-{}-cpu-ratio", workload.name), "ratio", ratio, goal);
        let samples = rounds.iter().map(|r| r.b);
        add_side(report, workload, "array-cores-2", samples);
        worst = match (worst, ratio) {
            (Some(worst), Some(ratio)) if worst.median >= ratio.median => Some(worst),
            (_, ratio) => ratio,
        };
    }
    report.add("cores-2-cpu-ratio", "ratio", worst, goal);
    Ok(())
}

/// Carries the benchmark out. `version` and `command` go into the report; `progress` is told
/// what happens, a line each.
///
/// # Errors
/// When it can't be carried out, or what the array gives back afterwards is not what was
/// written: then nothing of it counts.
pub fn bench_array(
    options: &ArrayBench,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    let mut report = Report::new(version, command);
    progress("making and filling the drives");
    let first = Files::new(&options.dir, options.drives, options.drive_bytes, 1)?;
    let second = Files::new(&options.dir, options.drives, options.drive_bytes, 2)?;
    let gpu = placement::gpu_for(options.parity)?;
    let placed = gpu.as_ref().ok().cloned().zip(options.parity);
    let helper = placed.map(|(service, placement)| Helper::Gpu(service, placement));
    let make = Make { helper, ..Make::default() };
    let bay = Bay::create(first.source(), make.clone())?;
    against_raw(options, &bay, (&first, &second), &mut report, progress)?;
    costs::latency(options, &bay, &mut report, progress)?;
    costs::against_unguarded(options, &bay, &second, &mut report, progress)?;
    costs::cold_regions(options, &mut report, progress)?;
    costs::degraded(options, &bay, &second, &mut report, progress)?;
    costs::rebuild(options, &second, &mut report, progress)?;
    shapes::levels(options, &mut report, progress)?;
    shapes::sizes(options, &mut report, progress)?;
    let mut bays = vec![bay];
    if options.cores == 2 {
        let two = Bay::create(second.source(), Make { cores: 2, ..make })?;
        against_one_core(options, &bays[0], &two, &mut report, progress)?;
        bays.push(two);
    }
    for bay in bays {
        progress("stopping, starting, scrubbing, reading back");
        bay.verify()?;
    }
    if let Some(parity) = options.parity {
        if let Ok(service) = &gpu {
            placement::say_what_was_done(service, parity, &mut report);
        }
        let ArrayBench { rounds, span, drive_bytes, .. } = *options;
        let placements = Placements { parity, rounds, span, drive_bytes };
        placement::measure(&placements, gpu, &mut report, progress)?;
    }
    Ok(report)
}

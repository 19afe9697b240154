//! What placing parity on a GPU gives and saves: `palisade bench array --parity`.
//!
//! RAID 6 of eight data strips over drives in memory, an array for each placement, on one core
//! each; the placements take turns. Whole stripes are where a GPU may pay; small writes show that
//! they do not wait for it; reads of a lost drive are computed.

use crate::array::{Side, take_turns, warm};
use crate::bay::{Bay, Make, Source};
use crate::error::BenchError;
use crate::gpu_bench::cores::Cores;
use crate::gpu_bench::works::pq;
use crate::load::{Load, Op, Order};
use crate::report::{Goal, Report};
use crate::stats::{Sample, Spread};
use layout::Level;
use parity_gpu::cuda::CudaDriver;
use parity_gpu::{Driver, Limits, Placement, Service};
use std::sync::Arc;
use std::time::Duration;
use units::MIB;

/// Data strips, and parities.
const DATA: usize = 8;
const PARITIES: usize = 2;
/// Bytes of a strip.
const STRIP: usize = 128 << 10;
/// Bytes of each drive, at most.
const DRIVE_MOST: u64 = 128 * MIB;
/// What `auto` must reach of the better one.
const AUTO_GOAL: f64 = 0.97;
/// What a GPU must save of the CPU's time for parity.
const SAVED_GOAL: f64 = 0.80;
/// Bytes of the stripes whose parity is computed in turn where its own cost is measured: more than
/// a core's caches hold.
const ALONE: usize = 16 * DATA * STRIP;

/// What is measured, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Placements {
    /// Which placements: this one, and what it is compared with.
    pub parity: Placement,
    /// Rounds of each workload.
    pub rounds: usize,
    /// Time of each array in a round.
    pub span: Duration,
    /// Bytes of each drive.
    pub drive_bytes: u64,
}

struct Workload {
    name: &'static str,
    op: Op,
    order: Order,
    bytes: usize,
    depth: usize,
    degraded: bool,
}

const WHOLE: Workload = Workload {
    name: "full-stripe-write",
    op: Op::Write,
    order: Order::Sequential,
    bytes: DATA * STRIP,
    depth: 8,
    degraded: false,
};

const WORKLOADS: [Workload; 3] = [
    WHOLE,
    Workload {
        name: "4k-small-write",
        op: Op::Write,
        order: Order::Random,
        bytes: 4 << 10,
        depth: 1,
        degraded: false,
    },
    Workload {
        name: "degraded-read",
        op: Op::Read,
        order: Order::Sequential,
        bytes: DATA * STRIP,
        depth: 8,
        degraded: true,
    },
];

/// The GPU that a placement needs, or why there is none.
///
/// # Errors
/// If it is asked for by name.
pub fn gpu_for(parity: Option<Placement>) -> Result<Result<Arc<Service>, String>, BenchError> {
    let open = || {
        let load = || Ok(Box::new(CudaDriver::load()?) as Box<dyn Driver>);
        let service = Service::start(Box::new(load), 0, Limits::default(), Box::new(|_| {}))?;
        service.opened().map(|()| service)
    };
    match parity {
        None | Some(Placement::Cpu) => Ok(Err("not asked for".to_owned())),
        Some(asked) => match open() {
            Ok(service) => Ok(Ok(Arc::new(service))),
            Err(fence) if asked == Placement::Gpu => Err(BenchError::Usage(format!(
                "parity can't be computed on a GPU: {fence}; --parity auto or cpu does without"
            ))),
            Err(fence) => Ok(Err(fence.to_string())),
        },
    }
}

/// Measures the placements with `gpu`, or what can be measured without one.
///
/// # Errors
/// When an array fails, or gives back what was not written to it.
pub fn measure(
    options: &Placements,
    gpu: Result<Arc<Service>, String>,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let placements: &[Placement] = match (options.parity, &gpu) {
        (Placement::Cpu, _) | (_, Err(_)) => &[Placement::Cpu],
        (Placement::Gpu, Ok(_)) => &[Placement::Cpu, Placement::Gpu],
        (Placement::Auto, Ok(_)) => &[Placement::Cpu, Placement::Gpu, Placement::Auto],
    };
    progress("making arrays of eight data strips and two parities in memory");
    let make = |placement: &Placement| {
        let drives = Source::memory(DATA + PARITIES, options.drive_bytes.min(DRIVE_MOST));
        let gpu = gpu.as_ref().ok().map(|service| (service.clone(), *placement));
        Bay::create(
            drives,
            Make { level: Level::Raid6, strip_bytes: STRIP as u32, gpu, ..Make::default() },
        )
    };
    let bays = placements.iter().map(make).collect::<Result<Vec<_>, _>>()?;
    let mut lacks = false;
    let mut worst: Option<Spread> = None;
    for workload in &WORKLOADS {
        if workload.degraded && !lacks {
            bays.iter().try_for_each(Bay::fail_one)?;
            lacks = true;
        }
        progress(&format!("{}: {}", workload.name, names(placements).join(" against ")));
        let rounds = rounds_of(options, workload, &bays)?;
        for (at, placement) in placements.iter().enumerate() {
            let samples = rounds.iter().map(|round| round.samples[at]);
            add(report, workload, *placement, samples);
        }
        if placements.len() == 3 {
            let of_best = Spread::of(rounds.iter().map(|round| {
                let [cpu, gpu, auto] = [0, 1, 2].map(|at| round.samples[at].rate());
                auto / cpu.max(gpu)
            }));
            report.add(&format!("{}-auto-vs-best", workload.name), "ratio", of_best, None);
            worst = match (worst, of_best) {
                (Some(worst), Some(next)) if worst.median <= next.median => Some(worst),
                (_, next) => next,
            };
        }
        if workload.name == WHOLE.name {
            cpu_saved(placements, &rounds, report);
        }
    }
    match &gpu {
        Err(reason) if options.parity != Placement::Cpu => {
            report.leave_open("auto-vs-best", reason);
            report.leave_open("parity-cpu-saved", reason);
        }
        _ if placements.len() == 3 => {
            report.add("auto-vs-best", "ratio", worst, Some(Goal::AtLeast(AUTO_GOAL)));
        }
        _ => {}
    }
    progress("stopping, starting, reading back");
    bays.into_iter().try_for_each(Bay::verify_degraded)
}

fn names(placements: &[Placement]) -> Vec<String> {
    placements.iter().map(Placement::to_string).collect()
}

/// One round: each array's sum, and what a request's parity alone costs the CPU meanwhile.
struct Turn {
    samples: Vec<Sample>,
    parity_micros: f64,
}

/// Turns that each array has within a round.
const TURNS: u32 = 3;

fn rounds_of(
    options: &Placements,
    workload: &Workload,
    bays: &[Bay],
) -> Result<Vec<Turn>, BenchError> {
    let sides: Vec<_> = bays.iter().map(|bay| (bay.side(), bay.reach())).collect();
    let load = |(side, reach): &(Side<'_>, Option<_>)| {
        let Workload { op, order, bytes, depth, .. } = *workload;
        Load::reached(op, order, bytes, depth, &side.record, reach.as_ref())
    };
    let sides: Vec<_> = sides.iter().map(|side| (&side.0, load(side))).collect();
    warm(&sides, options.span / TURNS)?;
    let mut alone = Cores::new(1, ALONE);
    let round = |round| {
        let samples = take_turns(&sides, round, TURNS, options.span)?;
        let parity_micros = alone.one(&pq(STRIP), options.span / TURNS).cpu_micros();
        Ok(Turn { samples, parity_micros })
    };
    (0..options.rounds.max(1)).map(round).collect()
}

fn add(
    report: &mut Report,
    workload: &Workload,
    placement: Placement,
    samples: impl Iterator<Item = Sample> + Clone,
) {
    let name = format!("{}-{placement}", workload.name);
    let rate = Spread::of(samples.clone().map(|sample| sample.rate()));
    report.add(&format!("{name}-iops"), "iops", rate, None);
    let bytes = rate.map(|rate| rate.scaled(workload.bytes as f64 / 1e9));
    report.add(&format!("{name}-gbps"), "GB/s", bytes, None);
    let cpu = Spread::of(samples.map(|sample| sample.cpu_micros()));
    report.add(&format!("{name}-cpu-us"), "us", cpu, None);
}

/// How much of the CPU's time for parity a GPU saves: what a write costs less with it, of what its
/// parity costs alone.
fn cpu_saved(placements: &[Placement], rounds: &[Turn], report: &mut Report) {
    let alone = Spread::of(rounds.iter().map(|round| round.parity_micros));
    report.add("parity-alone-cpu-us", "us", alone, None);
    if placements.len() > 1 {
        let saved = rounds.iter().map(|round| {
            let [cpu, gpu] = [0, 1].map(|at| round.samples[at].cpu_micros());
            (cpu - gpu) / round.parity_micros
        });
        let goal = Some(Goal::AtLeast(SAVED_GOAL));
        report.add("parity-cpu-saved", "ratio", Spread::of(saved), goal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parity_gpu::fake::FakeDriver;

    /// All placements on real cores, with a device that computes what the kernels do.
    #[test]
    fn every_placement_writes_what_is_read() {
        let service = Service::start(
            Box::new(|| Ok(Box::new(FakeDriver::new(7, 1 << 30)))),
            0,
            Limits::default(),
            Box::new(|_| {}),
        );
        let service = Arc::new(service.expect("it is started"));
        service.opened().expect("the fake device passes its test");
        let mut report = Report::new("test", "test");
        let options = Placements {
            parity: Placement::Auto,
            rounds: 1,
            span: Duration::from_millis(60),
            drive_bytes: 16 * MIB,
        };
        measure(&options, Ok(service.clone()), &mut report, &|_| {}).expect("it is measured");
        assert!(service.figures().jobs > 0 && service.fence().is_none());
        for name in ["auto-vs-best", "parity-cpu-saved", "full-stripe-write-gpu-iops"] {
            assert!(report.results.iter().any(|metric| metric.name == name), "{name}");
        }
        assert!(report.missing.is_empty(), "{:?}", report.missing);
    }

    #[test]
    fn without_a_gpu_its_figures_are_open() {
        let mut report = Report::new("test", "test");
        let options = Placements {
            parity: Placement::Auto,
            rounds: 1,
            span: Duration::from_millis(30),
            drive_bytes: 16 * MIB,
        };
        let none = Err("no libcuda.so.1".to_owned());
        measure(&options, none, &mut report, &|_| {}).expect("the CPU is measured");
        assert_eq!(report.open.len(), 2);
        assert!(report.open.iter().all(|open| open.reason.contains("libcuda")));
    }
}

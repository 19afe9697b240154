//! What placing parity on a GPU gives and saves: `palisade bench array --parity`.
//!
//! RAID 6 of eight data strips over drives in memory, an array for each placement, on one core
//! each; the placements take turns. Whole stripes are where a GPU may pay; small writes show that
//! they do not wait for it; reads of a lost drive are computed. One more array, for whole stripes
//! alone, computes no parity at all: what is left of the CPU's time without it.
//!
//! Invariants: a figure of a GPU counts only if the GPU did what it is the figure of: without
//! fence, without jobs that came back; else it stays open. No figure counts before the CPU alone
//! has found every parity right and read everything back.

mod findings;
#[cfg(test)]
mod tests;

use crate::array::{Side, in_turns, warm};
use crate::bay::{Bay, Make, Source};
use crate::error::BenchError;
use crate::load::{Load, Op, Order, Until};
use crate::report::Report;
use crate::rig::Helper;
use findings::{Done, Findings, Found, Who};
use layout::Level;
use parity_gpu::{Fence, Limits, Placement, Service, cuda};
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
/// Turns that each array has within a round.
const TURNS: u32 = 3;

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
    /// Of its requests' bytes, what a GPU reads for them at least where all is placed there. Two
    /// of ten stripes have no data on the drive that is lost.
    computed: f64,
}

const WHOLE: Workload = Workload {
    name: "full-stripe-write",
    op: Op::Write,
    order: Order::Sequential,
    bytes: DATA * STRIP,
    depth: 8,
    degraded: false,
    computed: 1.0,
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
        computed: 0.0,
    },
    Workload {
        name: "degraded-read",
        op: Op::Read,
        order: Order::Sequential,
        bytes: DATA * STRIP,
        depth: 8,
        degraded: true,
        computed: 0.5,
    },
];

/// The GPU that a placement needs, or why there is none.
///
/// # Errors
/// If it is asked for by name.
pub fn gpu_for(parity: Option<Placement>) -> Result<Result<Arc<Service>, String>, BenchError> {
    let open = || {
        let service = Service::start(Box::new(cuda::load), 0, Limits::default(), Box::new(|_| {}))?;
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

/// What is measured where this is asked for, with a GPU or without.
fn placements(asked: Placement, gpu: bool) -> &'static [Placement] {
    const ALL: [Placement; 3] = [Placement::Cpu, Placement::Gpu, Placement::Auto];
    match asked {
        Placement::Auto if gpu => &ALL,
        Placement::Gpu if gpu => &ALL[..2],
        _ => &ALL[..1],
    }
}

/// Notes what a GPU did for the arrays so far; where it was fenced, their figures lack it.
pub fn say_what_was_done(service: &Service, parity: Placement, report: &mut Report) {
    let done = Done::default().and(&Default::default(), &service.figures());
    report.notes.push(format!("RAID 5, parity placed by {parity}: {done}"));
    if let Some(fence) = service.fence() {
        let what = "RAID 5: parity was to be placed on a GPU";
        report.missing.push(format!("{what}, which was not used any more: {fence}"));
    }
}

/// Measures the placements with `gpu`, or what can be measured without one.
///
/// # Errors
/// When an array fails, holds a wrong parity, or gives back what was not written to it.
pub fn measure(
    options: &Placements,
    gpu: Result<Arc<Service>, String>,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let gpu = gpu.and_then(|service| match service.fence() {
        Some(fence) => Err(fence.to_string()),
        None => Ok(service),
    });
    let run = Run { options, gpu: gpu.as_ref().ok(), progress };
    let found = run.all()?;
    let wrong = run.fence().filter(|fence| matches!(fence, Fence::Wrong { .. }));
    let gpu = gpu.as_ref().map(|_| ()).map_err(String::as_str);
    Findings { parity: options.parity, gpu, wrong, found }.report(report, progress);
    Ok(())
}

/// A run of all workloads.
struct Run<'a> {
    options: &'a Placements,
    gpu: Option<&'a Arc<Service>>,
    progress: &'a dyn Fn(&str),
}

/// An array, and where its parity is computed.
type Array = (Who, Bay);

impl Run<'_> {
    fn fence(&self) -> Option<Fence> {
        self.gpu.and_then(|service| service.fence())
    }

    fn whos(&self) -> Vec<Who> {
        let placed = placements(self.options.parity, self.gpu.is_some());
        let mut whos: Vec<_> = placed.iter().copied().map(Who::Placed).collect();
        if whos.len() > 1 {
            // Beside the CPU's, which it is compared with.
            whos.insert(1, Who::Omitted);
        }
        whos
    }

    fn array(&self, who: Who) -> Result<Array, BenchError> {
        let drives = Source::memory(DATA + PARITIES, self.options.drive_bytes.min(DRIVE_MOST));
        let helper = self.gpu.map(|service| match who {
            Who::Placed(placement) => Helper::Gpu(service.clone(), placement),
            Who::Omitted => Helper::Omitted(service.reach()),
        });
        let strip_bytes = STRIP as u32;
        let make = Make { level: Level::Raid6, strip_bytes, helper, ..Make::default() };
        Ok((who, Bay::create(drives, make)?))
    }

    /// Measures, then checks.
    fn all(&self) -> Result<Vec<Found>, BenchError> {
        (self.progress)("making arrays of eight data strips and two parities in memory");
        let arrays = self.whos().into_iter().map(|who| self.array(who));
        let mut arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let mut found = Vec::new();
        for workload in WORKLOADS.iter().filter(|workload| !workload.degraded) {
            found.push(self.workload(workload, &arrays)?);
            // Nothing else of these is to be known.
            arrays.retain(|(who, _)| *who != Who::Omitted);
        }
        (self.progress)("stopping, starting, scrubbing, reading back, by the CPU alone");
        if let Some(Fence::Wrong { .. }) = self.fence() {
            // Parities that it computed before may be wrong: nothing of it counts.
            arrays.retain(|(who, _)| !who.needs_gpu());
        }
        let checked = arrays.into_iter().map(|(who, bay)| Ok((who, bay.checked()?)));
        let arrays = checked.collect::<Result<Vec<_>, BenchError>>()?;
        arrays.iter().try_for_each(|(_, bay)| bay.fail_one())?;
        for workload in WORKLOADS.iter().filter(|workload| workload.degraded) {
            found.push(self.workload(workload, &arrays)?);
        }
        (self.progress)("reading back; stopping, starting, reading back by the CPU alone");
        arrays.into_iter().try_for_each(|(_, bay)| bay.verify_degraded())?;
        Ok(found)
    }

    /// Rounds of a workload; once there is no GPU any more, on the CPU alone.
    fn workload(&self, workload: &'static Workload, arrays: &[Array]) -> Result<Found, BenchError> {
        let fenced = self.fence().is_some();
        let arrays: Vec<_> =
            arrays.iter().filter(|(who, _)| !(fenced && who.needs_gpu())).collect();
        let names: Vec<_> = arrays.iter().map(|(who, _)| who.to_string()).collect();
        (self.progress)(&format!("{}: {}", workload.name, names.join(" against ")));
        let sides: Vec<_> = arrays.iter().map(|(_, bay)| (bay.side(), bay.reach())).collect();
        let load = |(side, reach): &(Side<'_>, Option<_>)| {
            let Workload { op, order, bytes, depth, .. } = *workload;
            Load::reached(op, order, bytes, depth, &side.record, reach.as_ref())
        };
        let sides: Vec<_> = sides.iter().map(|side| (&side.0, load(side))).collect();
        let span = self.options.span / TURNS;
        warm(&sides, span)?;
        let figures = || self.gpu.map(|service| service.figures()).unwrap_or_default();
        let mut done = vec![Done::default(); sides.len()];
        let round = |round| {
            in_turns(sides.len(), round, TURNS, |at, seed| {
                let ((side, load), before) = (&sides[at], figures());
                let sample = side.run(load, Until::Elapsed(span), seed)?;
                done[at] = done[at].and(&before, &figures());
                Ok(sample)
            })
        };
        let rounds = (0..self.options.rounds.max(1)).map(round);
        let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
        let whos = arrays.iter().map(|(who, _)| *who).collect();
        Ok(Found { workload, whos, rounds, done, fence: self.fence() })
    }
}

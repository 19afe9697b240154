//! What an array pays for losing nothing: the region map, in-flight pages, the journal of one that
//! lacks a drive.

use crate::array::{ArrayBench, WORKLOADS, Workload, compare};
use crate::bay::{Bay, Make};
use crate::error::BenchError;
use crate::files::Files;
use crate::load::{Load, Op, Order, Until};
use crate::report::Report;
use crate::stats::{Round, Spread, cpu_ratio, rate_ratio};
use units::{GIB, MIB};

/// Bytes of each drive that a region covers.
const REGION: u64 = 64 * MIB;
/// Drives of the cold array are this many times as large as the others, without taking room.
const SPARSE: u64 = 64;
/// And at most this large.
const SPARSE_MOST: u64 = 64 * GIB;

fn small_writes() -> &'static Workload {
    let small = WORKLOADS.iter().find(|w| w.op == Op::Write && w.order == Order::Random);
    small.expect("it is one of them")
}

/// What a small write costs in steady state for not being lost in a crash: the CPU time of asking
/// the region map and of in-flight pages. Side A is an array whose cores leave both out; the whole
/// volume was written before, and on side B all of its regions stay dirty.
pub fn against_unguarded(
    options: &ArrayBench,
    guarded: &Bay,
    second: &Files,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    progress("4k-random-write: with and without region map and in-flight pages");
    let without = Bay::create(second.source(), Make::default())?.again_unguarded()?;
    let rounds = compare(options, small_writes(), &without.side(), &guarded.side())?;
    let cost = Spread::of(rounds.iter().map(|r| r.b.cpu_micros() - r.a.cpu_micros()));
    report.add("guard-cpu-us", "us", cost, None);
    without.verify()
}

/// What the region map costs where the working set is so large that no write finds its region
/// dirty: one write to every region of drives that are large and hold next to nothing, right after
/// a start (side B), and once more (side A), when all are dirty.
pub fn cold_regions(
    options: &ArrayBench,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    progress("4k-random-write: regions that are clean, and that are dirty");
    let bytes = (SPARSE * options.drive_bytes).min(SPARSE_MOST);
    let files = Files::sparse(&options.dir, options.drives, bytes)?;
    let mut bay = Bay::empty(files.source(), Make::default())?;
    let apart = REGION * (options.drives as u64 - 1);
    let pass = |bay: &Bay| {
        let load = Load::new(Op::Write, Order::Apart(apart), 4 << 10, 32, &bay.side().record);
        bay.side().run(&load, Until::Once, 0)
    };
    // Bands that were never written are zeroed first: not now.
    pass(&bay)?;
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        bay = bay.again()?;
        let b = pass(&bay)?;
        rounds.push(Round { a: pass(&bay)?, b });
    }
    let cost = Spread::of(rounds.iter().map(|r| 1.0 - r.b.rate() / r.a.rate()));
    report.add("region-map-cost-cold", "ratio", cost, None);
    Ok(())
}

/// What is left of the rate of small writes when a drive is gone and every write goes through the
/// journal; a healthy array is side A.
pub fn degraded(
    options: &ArrayBench,
    healthy: &Bay,
    second: &Files,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    progress("4k-random-write: an array that lacks a drive, and a healthy one");
    let lacking = Bay::create(second.source(), Make::default())?;
    lacking.fail_one()?;
    let rounds = compare(options, small_writes(), &healthy.side(), &lacking.side())?;
    report.add("4k-random-write-degraded", "ratio", rate_ratio(&rounds), None);
    report.add("4k-random-write-degraded-cpu-ratio", "ratio", cpu_ratio(&rounds), None);
    lacking.verify_degraded()
}

//! What an array pays for losing nothing: the region map, in-flight pages, the journal of one that
//! lacks a drive.

use crate::array::{self, ArrayBench, WORKLOADS, Workload, compare, large, raw_side};
use crate::bay::{Bay, Make};
use crate::error::BenchError;
use crate::files::Files;
use crate::load::{Load, Op, Order, Until};
use crate::report::{Goal, Report};
use crate::stats::{Round, Spread, cpu_ratio, rate_ratio};
use std::time::Instant;
use units::{GIB, MIB};

/// Bytes of each drive that a region covers.
const REGION: u64 = 64 * MIB;
/// Drives of the cold array are this many times as large as the others, without taking room.
const SPARSE: u64 = 64;
/// And at most this large.
const SPARSE_MOST: u64 = 64 * GIB;
/// Rounds of rebuilds, at most.
const REBUILDS: usize = 5;

/// Reads of more than a stripe.
const LONG_READ: Workload =
    Workload { bytes: 1 << 20, depth: 4, ..large("degraded-1m-read", Op::Read, 0.90) };
/// Reads that wait for each other.
const ONE_BY_ONE: Workload =
    Workload { depth: 1, ..array::small("4k-read-depth-1-added-us", Op::Read, Order::Random, 1.0) };

fn small(op: Op) -> &'static Workload {
    let small = WORKLOADS.iter().find(|w| w.op == op && w.order == Order::Random);
    small.expect("it is one of them")
}

/// What an array adds to the time of a read of a raw drive, one at a time.
pub fn latency(
    options: &ArrayBench,
    bay: &Bay,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    progress("4k-read-depth-1: array against raw drives");
    let raw = raw_side(&bay.rig, &bay.drives);
    let rounds = compare(options, &ONE_BY_ONE, &raw, &bay.side())?;
    let added = rounds.iter().map(|r| 1e6 / r.b.rate() - 1e6 / r.a.rate());
    let Workload { name, goal, .. } = ONE_BY_ONE;
    report.add(name, "us", Spread::of(added), Some(Goal::AtMost(goal)));
    Ok(())
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
    let rounds = compare(options, small(Op::Write), &without.side(), &guarded.side())?;
    let cost = Spread::of(rounds.iter().map(|r| r.b.cpu_micros() - r.a.cpu_micros()));
    report.add("guard-cpu-us", "us", cost, Some(Goal::AtMost(0.3)));
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

/// What is left of small requests' rates when a drive is gone. Reads, of which one in as many as
/// there are drives is computed from all others, beside the raw drives (side A). Writes, each of
/// which goes through the journal, beside a healthy array (side A).
pub fn degraded(
    options: &ArrayBench,
    healthy: &Bay,
    second: &Files,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let lacking = Bay::create(second.source(), Make::default())?;
    lacking.fail_one()?;
    progress("4k-random-read: an array that lacks a drive, and the raw drives");
    let raw = raw_side(&healthy.rig, &healthy.drives);
    let rounds = compare(options, small(Op::Read), &raw, &lacking.side())?;
    let goal = Some(Goal::AtLeast(0.60));
    report.add("degraded-4k-random-read", "ratio", rate_ratio(&rounds), goal);
    progress("1m-read: an array that lacks a drive, and a healthy one");
    let rounds = compare(options, &LONG_READ, &healthy.side(), &lacking.side())?;
    let Workload { name, goal, .. } = LONG_READ;
    report.add(name, "ratio", rate_ratio(&rounds), Some(Goal::AtLeast(goal)));
    progress("4k-random-write: an array that lacks a drive, and a healthy one");
    let rounds = compare(options, small(Op::Write), &healthy.side(), &lacking.side())?;
    report.add("degraded-4k-random-write", "ratio", rate_ratio(&rounds), None);
    report.add("degraded-4k-random-write-cpu-ratio", "ratio", cpu_ratio(&rounds), None);
    lacking.verify_degraded()
}

/// How fast a drive of an idle array is filled whole, of the rate at which the raw drive is written
/// in order (side A): all of the volume was written before, and each round has a drive of its own.
pub fn rebuild(
    options: &ArrayBench,
    second: &Files,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    progress("rebuild: a drive that is filled, and the raw drive");
    let mut bay = Bay::create(second.source(), Make::default())?;
    let (mut ratios, mut rates, mut in_use) = (Vec::new(), Vec::new(), None);
    for round in 0..options.rounds.min(REBUILDS) {
        let spare = Files::new(&options.dir, 1, options.drive_bytes, 3 + round as u64)?;
        let drive = spare.source().open()?.remove(0);
        let alone = raw_side(&bay.rig, std::slice::from_ref(&drive));
        let load = Load::new(Op::Write, Order::Sequential, 128 << 10, 8, &alone.record);
        let raw = alone.run(&load, Until::Once, 0)?.rate() * load.bytes as f64;
        bay.fail_one()?;
        let begun = Instant::now();
        bay.rebuild_one(drive)?;
        let filled = format::split(format::usable_bytes(options.drive_bytes, false)).data_bytes;
        let rate = filled as f64 / begun.elapsed().as_secs_f64();
        ratios.push(rate / raw);
        rates.push(rate / 1e9);
        // The array goes on with this drive, and without the one before.
        in_use = Some(spare);
    }
    report.add("rebuild", "ratio", Spread::of(ratios), None);
    report.add("rebuild-gbps", "GB/s", Spread::of(rates), None);
    let verified = bay.verify();
    drop(in_use);
    verified
}

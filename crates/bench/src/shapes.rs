//! What other levels and widths give, and what an array's size costs.

use crate::array::{ArrayBench, Workload, compare, large, raw_side};
use crate::bay::{Bay, Make};
use crate::error::BenchError;
use crate::files::Files;
use crate::generated::Span;
use crate::load::Op;
use crate::report::{Goal, Report};
use crate::rig::{Aim, Rig, references, resident};
use crate::stats::{Spread, rate_ratio};
use engine::manage::command::{ArrayStatus, NewArray, Request, StartOptions};
use layout::Level;
use std::time::Instant;
use units::{GIB, MIB};
use workload::Shape;

/// Drives of these arrays are this part of the others' size: there are many.
const PART: u64 = 4;

/// Levels and numbers of drives whose large writes are measured.
const LEVELS: [(Level, usize, Workload); 2] = [
    (Level::Raid6, 6, large("128k-sequential-write-raid6-4p2", Op::Write, 0.60)),
    (Level::Raid5, 8, large("128k-sequential-write-raid5-7p1", Op::Write, 0.81)),
];

/// Large writes of arrays of other levels and widths, against as many raw drives.
pub fn levels(
    options: &ArrayBench,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    for (level, drives, workload) in LEVELS {
        let name = workload.name;
        progress(&format!("{name}: array against raw drives"));
        let bytes = (options.drive_bytes / PART / MIB * MIB).max(16 * MIB);
        let first = Files::new(&options.dir, drives, bytes, 11)?;
        let second = Files::new(&options.dir, drives, bytes, 12)?;
        let bay = Bay::create(first.source(), Make { level, ..Make::default() })?;
        let others = second.source().open()?;
        let raw = raw_side(&bay.rig, &others);
        let rounds = compare(options, &workload, &raw, &bay.side())?;
        report.add(name, "ratio", rate_ratio(&rounds), Some(Goal::AtLeast(workload.goal)));
        bay.verify()?;
    }
    Ok(())
}

/// Sizes of drives that arrays are made of.
const SIZES: [(&str, u64); 3] = [("1g", GIB), ("64g", 64 * GIB), ("8t", 8192 * GIB)];
/// Bytes that are written of each.
const USED: u64 = 64 * MIB;
/// Rounds, at most.
const ROUNDS: usize = 5;
const NAME: &str = "sized";

/// What was measured of one array.
#[derive(Clone, Copy, Default)]
struct Sized {
    create_ms: f64,
    start_ms: f64,
    memory_mib: f64,
    write_us: f64,
}

/// What it takes to make and to start arrays of drives of several sizes, which take no room, what
/// memory they have then, and what core time a small write costs. The last may not grow.
pub fn sizes(
    options: &ArrayBench,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let mut all = vec![Vec::new(); SIZES.len()];
    for round in 0..options.rounds.min(ROUNDS) {
        for (at, (name, bytes)) in SIZES.iter().enumerate() {
            if round == 0 {
                progress(&format!("size-{name}: making, starting, writing"));
            }
            all[at].push(sized(options, *bytes, round as u64)?);
        }
    }
    type Aspect = (&'static str, &'static str, fn(&Sized) -> f64);
    let aspects: [Aspect; 4] = [
        ("create-ms", "ms", |own| own.create_ms),
        ("start-ms", "ms", |own| own.start_ms),
        ("memory-mib", "MiB", |own| own.memory_mib),
        ("4k-write-us", "us", |own| own.write_us),
    ];
    for ((name, _), rounds) in SIZES.iter().zip(&all) {
        for (aspect, unit, of) in aspects {
            let spread = Spread::of(rounds.iter().map(of));
            report.add(&format!("size-{name}-{aspect}"), unit, spread, None);
        }
    }
    Ok(())
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn sized(options: &ArrayBench, bytes: u64, seed: u64) -> Result<Sized, BenchError> {
    let files = Files::sparse(&options.dir, options.drives, bytes)?;
    let source = files.source();
    let mut own = Sized::default();
    let rig = Rig::start(1, None)?;
    let (drives, begun) = (references(&source.open()?), Instant::now());
    let new = NewArray {
        shared: false,
        name: NAME.to_owned(),
        level: Level::Raid5,
        strip_bytes: 64 << 10,
        block_bytes: None,
    };
    let made: ArrayStatus = rig.ask(|reply| Request::Create(new, drives, reply))?;
    let volume =
        |reply| Request::VolumeCreate(NAME.to_owned(), "all".to_owned(), made.free_bytes, reply);
    let volume = rig.ask(volume)?.uuid;
    own.create_ms = millis(begun);
    rig.ask(|reply| Request::Stop(NAME.to_owned(), reply))?;
    drop(rig);
    let (rig, before) = (Rig::start(1, None)?, resident());
    let (drives, begun) = (references(&source.open()?), Instant::now());
    let start = |reply| Request::Assemble(None, drives, StartOptions::default(), reply);
    let array = rig.ask(start)?[0].id;
    own.start_ms = millis(begun);
    own.memory_mib = ((resident() - before) / MIB as f64).max(0.0);
    let aim = Aim::Volume { array, volume };
    rig.fill(&aim, USED)?;
    let shape = Shape::one(0, workload::Order::Random, 4 << 10, 32, USED);
    own.write_us = rig.generate(&aim, shape, Span::of(options.span), seed)?.work_micros();
    rig.ask(|reply| Request::Stop(NAME.to_owned(), reply))?;
    Ok(own)
}

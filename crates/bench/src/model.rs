//! `palisade bench model`: a paced drive against the numbers of its model.
//!
//! One paced drive is loaded by the generator on one core, as any other drive would be. What it
//! gives is compared with what the model's numbers say of that load ([`pace::spec`]), which is
//! found without the drive's state: with many requests under way their rate, with one the median of
//! its latency. (One in a hundred requests ends late because the machine's timer has interrupted
//! the core, by as much as a request of a drive takes; that is no property of the drive.)
//!
//! What pacing costs a core is measured where the core limits: on a drive that is much faster than
//! its model, beside a drive in memory, in turns. Both use little memory, so that what they copy is
//! in the processor's cache and costs the same.

use crate::error::BenchError;
use crate::generated::Span;
use crate::report::{Goal, ModelUsed, Report, Table};
use crate::rig::{Aim, Rig};
use crate::scale::Scale;
use crate::stats::Spread;
use drives::SharedDrive;
use pace::spec::Steady;
use pace::{DriveState, Model};
use std::time::Duration;
use units::MIB;
use workload::target::TURN;
use workload::{Order, Shape, Tally};

/// Bytes of the drives.
const DRIVE: u64 = 256 * MIB;
/// What a paced drive may be off its model.
const OFF: f64 = 0.03;
/// What pacing may cost, in microseconds of a core for each request.
const CPU: f64 = 0.3;
/// By how much the drive is faster on which pacing's cost is measured, and the bytes that are used.
const HURRY: f64 = 0.1;
const CACHED: u64 = MIB;
/// How long cores are watched to find a scale.
const WATCH: Duration = Duration::from_millis(200);
/// The load that keeps a core busiest.
const BUSIEST: (u8, usize, usize) = (100, 4 << 10, 64);

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct ModelBench {
    /// The model.
    pub model: &'static Model,
    /// How slow it is.
    pub scale: Scale,
    /// Rounds of each load, at least 1.
    pub rounds: usize,
    /// Time of each load in a round.
    pub span: Duration,
}

/// Name, percentage of reads, bytes, requests under way.
const LOADS: [(&str, u8, usize, usize); 8] = [
    ("4k-read-depth-1", 100, 4 << 10, 1),
    ("4k-read-depth-64", 100, 4 << 10, 64),
    ("4k-write-depth-1", 0, 4 << 10, 1),
    ("4k-write-depth-64", 0, 4 << 10, 64),
    ("4k-mixed-depth-1", 70, 4 << 10, 1),
    ("4k-mixed-depth-64", 70, 4 << 10, 64),
    ("128k-read-depth-8", 100, 128 << 10, 8),
    ("128k-write-depth-8", 0, 128 << 10, 8),
];

fn aim(drive: SharedDrive) -> Aim {
    Aim::Drives { drives: vec![drive], start: 0, bytes: DRIVE, turn: TURN }
}

/// A paced drive that was written.
fn paced(rig: &Rig, model: &'static Model, slower: f64) -> Result<Aim, BenchError> {
    let pace = DriveState::many(model, slower, 1).remove(0);
    let aim = aim(SharedDrive::paced(DRIVE, 4096, pace));
    rig.fill(&aim, DRIVE)?;
    Ok(aim)
}

/// The mean of reads' and writes' median latencies in nanoseconds, by how many there were.
fn latency(tally: &Tally) -> f64 {
    let sides = [&tally.reads.times, &tally.writes.times];
    let sum: f64 = sides.iter().map(|own| own.below(0.5).0 as f64 * own.count() as f64).sum();
    sum / tally.operations().max(1) as f64
}

/// A model's numbers as a table.
fn table(model: &Model) -> Table {
    let columns = ["what", "value", "source"].map(str::to_owned).to_vec();
    let rows = model.lines().into_iter().map(|line| line.map(Into::into).to_vec()).collect();
    let (name, title) = (model.name.to_owned(), model.about.to_owned());
    Table { name, title, columns, rows, source: String::new() }
}

/// All models' numbers; nothing is measured.
pub fn list_models(version: &str, command: &str) -> Report {
    let mut report = Report::new(version, command);
    report.tables = pace::model::MODELS.iter().map(table).collect();
    report
}

/// Carries the benchmark out.
///
/// # Errors
/// When it can't be carried out, or a request fails.
pub fn bench_model(
    options: &ModelBench,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    let ModelBench { model, scale, rounds, span } = *options;
    if rounds == 0 || span.is_zero() {
        return Err(BenchError::Usage("at least one round of some time is needed".to_owned()));
    }
    let mut report = Report::new(version, command);
    let rig = Rig::start(1, None)?;
    let (reads, bytes, depth) = BUSIEST;
    let busiest = |area| Shape::one(reads, Order::Random, bytes, depth, area);
    let slower = scale.slower(|slower| -> Result<f64, BenchError> {
        progress(&format!("watching a core at the scale {}", Scale::Part(slower)));
        let drive = paced(&rig, model, slower.into())?;
        Ok(rig.generate(&drive, busiest(DRIVE), Span::of(WATCH), 1)?.busy())
    })?;
    report.model = Some(ModelUsed { name: model.name.to_owned(), scale: 1.0 / f64::from(slower) });
    let drive = paced(&rig, model, slower.into())?;
    for load in LOADS {
        progress(&format!("{}, at the scale {}", load.0, Scale::Part(slower)));
        against_model(&rig, options, slower, &drive, load, &mut report)?;
    }
    progress("what pacing costs, beside a drive in memory");
    let fast = paced(&rig, model, HURRY)?;
    let memory = aim(SharedDrive::memory(DRIVE, 4096, false));
    rig.fill(&memory, DRIVE)?;
    let cost = |seed| -> Result<f64, BenchError> {
        let one = |aim| rig.generate(aim, busiest(CACHED), Span::of(span), seed);
        Ok(one(&fast)?.work_micros() - one(&memory)?.work_micros())
    };
    let costs: Result<Vec<f64>, _> = (0..rounds as u64).map(cost).collect();
    report.add("paced-cpu-us", "us", Spread::of(costs?), Some(Goal::AtMost(CPU)));
    report.tables = vec![table(model)];
    Ok(report)
}

/// One load of the drive, against its model.
fn against_model(
    rig: &Rig,
    options: &ModelBench,
    slower: u32,
    drive: &Aim,
    (name, reads, bytes, depth): (&str, u8, usize, usize),
    report: &mut Report,
) -> Result<(), BenchError> {
    let load = Steady { reads: f64::from(reads) / 100.0, bytes: bytes as u64, depth: depth as u32 };
    let wanted = options.model.rate(load) / f64::from(slower);
    let shape = Shape::one(reads, Order::Random, bytes, depth, DRIVE);
    let tallies: Result<Vec<Tally>, BenchError> = (0..options.rounds as u64)
        .map(|seed| Ok(rig.generate(drive, shape, Span::of(options.span), seed)?.tally))
        .collect();
    let tallies = tallies?;
    let error = |tally: &Tally| match depth {
        1 => latency(tally) * wanted / 1e9 - 1.0,
        _ => tally.rate() / wanted - 1.0,
    };
    let errors = Spread::of(tallies.iter().map(|tally| error(tally).abs()));
    report.add(&format!("error-{name}"), "ratio", errors, Some(Goal::AtMost(OFF)));
    let rates = Spread::of(tallies.iter().map(Tally::rate));
    report.add(&format!("{name}-iops"), "iops", rates, None);
    report.add(&format!("{name}-model-iops"), "iops", Spread::of([wanted]), None);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without this a drive that is off by a twentieth would pass.
    #[test]
    fn a_model_that_is_off_is_seen() {
        let model = pace::by_name("sn840").expect("is there");
        let rig = Rig::start(1, None).expect("starts");
        let span = Duration::from_millis(200);
        let options = ModelBench { model, scale: Scale::Part(64), rounds: 3, span };
        let errors = |slower: f64| {
            let mut report = Report::new("", "");
            let drive = paced(&rig, model, slower).expect("is filled");
            for load in [LOADS[1], LOADS[3], LOADS[6]] {
                against_model(&rig, &options, 64, &drive, load, &mut report).expect("runs");
            }
            let errors = report.results.into_iter().filter(|own| own.goal.is_some());
            errors.map(|own| own.value).collect::<Vec<f64>>()
        };
        let off = errors(64.0 * 1.05);
        assert!(off.len() == 3 && off.iter().all(|error| *error > OFF), "{off:?}");
    }

    #[test]
    fn the_models_are_listed() {
        let report = list_models("1.2.3", "palisade bench model list");
        let names: Vec<&str> = report.tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["sn840", "pblaze6", "d5-p5336"]);
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).expect("is JSON");
        assert_eq!(json["tables"][0]["columns"], serde_json::json!(["what", "value", "source"]));
        assert!(report.to_table().contains("1.6 TB"));
    }
}

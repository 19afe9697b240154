//! `palisade bench spec-sheet`: what a product's sheet says, of the bare drives and of an array.
//!
//! In this order: the bare drives are filled and measured (`baseline`); an array is made of them,
//! filled and measured (`nominal`); then one drive of it is replaced, and 4K reads are measured for
//! as long as it is being filled.

use super::course::{Course, Runner};
use super::figures::{self, Against};
use super::options::Options;
use super::published::Published;
use super::shelf::Shelf;
use super::yard::Yard;
use super::{data_strips, group, setup};
use crate::error::BenchError;
use crate::report::{Cell, Report, Table};
use pace::bound::{self, Drives, State, Work};
use workload::{Workload, workloads};

/// The largest requests, of the sheet's sequential rows.
const LARGEST: usize = 512 << 10;

/// The sheet's own rows, beside the workloads of every state.
fn more() -> Vec<Workload> {
    let streams = (4, 16);
    vec![
        Workload::sequential("512k-sequential-read", 100, LARGEST, streams),
        Workload::sequential("512k-sequential-write", 0, LARGEST, streams),
    ]
}

/// The bound of a workload, as a part of what the bare drives give, where their model is known.
fn bound_of(options: &Options, shelf: &Shelf, state: State, workload: &Workload) -> Option<f64> {
    let (model, slower) = shelf.model?;
    let count = shelf.drives.len();
    let drives = Drives { model, slower: slower.into(), count: count as u32 };
    let Workload { reads, bytes, .. } = *workload;
    let strip = options.strip.into();
    let work = Work::of(workload.is_sequential(), reads, bytes as u64, strip);
    let group = group(options, count).ok()?;
    Some(drives.bound(group, state, work) / drives.baseline(work))
}

/// The goal of a workload, of its bound, where this is what goals are for.
fn goal(options: &Options, shelf: &Shelf, workload: &Workload) -> Option<f64> {
    let is_meant = options.is_whole()
        && shelf.model.is_some_and(|(model, _)| model.name == "sn840")
        && (options.level, shelf.drives.len()) == (layout::Level::Raid5, 8);
    bound::goal(State::Nominal, &workload.name).filter(|_| is_meant)
}

/// Carries the procedure out.
///
/// # Errors
/// When it can't be carried out.
pub fn bench_spec_sheet(
    options: &Options,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    let mut report = Report::new(version, command);
    let shelf = super::shelf_for(options, data_strips(options)?, progress)?;
    setup::tell(&mut report, options, &shelf);
    let all: Vec<Workload> = workloads(options.mix).into_iter().chain(more()).collect();
    let mut baseline = Vec::new();
    {
        progress("filling the bare drives");
        let yard = Yard::bare(options, &shelf)?;
        let runner = Runner::new(options, &shelf, &yard, LARGEST);
        runner.fill()?;
        for workload in &all {
            progress(&format!("baseline-{}", workload.name));
            let course = runner.course(workload)?;
            figures::add(&mut report, "baseline", &course, Against::default());
            baseline.push(course.mean(|own| own.value(workload)));
        }
    }
    if shelf.is_device {
        return Ok(report);
    }
    progress("making and filling an array");
    let yard = Yard::make(options, &shelf)?;
    let runner = Runner::new(options, &shelf, &yard, LARGEST);
    runner.fill()?;
    let mut nominal = Vec::new();
    for (workload, baseline) in all.iter().zip(&baseline) {
        progress(&format!("nominal-{}", workload.name));
        let course = runner.course(workload)?;
        let bound = bound_of(options, &shelf, State::Nominal, workload);
        let goal = goal(options, &shelf, workload);
        let against = Against { baseline: Some(*baseline), bound, goal };
        figures::add(&mut report, "nominal", &course, against);
        nominal.push(course);
    }
    report.tables.push(beside("random", "Figure 8", &baseline, &nominal));
    report.tables.push(beside("sequential", "Figure 9", &baseline, &nominal));
    let has_parity = group(options, shelf.drives.len())?.parities > 0;
    let read = all.iter().zip(&baseline).find(|(own, _)| own.name == "4k-random-read");
    if let Some((workload, baseline)) = read.filter(|_| has_parity) {
        progress("device-rebuild-4k-random-read");
        let mut course = runner.course_in_rebuild(workload)?;
        let against = Against { baseline: Some(*baseline), ..Against::default() };
        figures::add(&mut report, "device-rebuild", &course, against);
        course.workload.name.push_str("-in-rebuild");
        nominal.push(course);
    }
    report.tables.push(sheet(&nominal, shelf.drives.len()));
    Ok(report)
}

/// The unit of a workload's value in tables, and what that is of the value.
fn unit(workload: &Workload) -> (&'static str, f64) {
    if workload.is_sequential() { ("GB/s", 1e9) } else { ("MIOPS", 1e6) }
}

fn number(value: Option<f64>) -> Cell {
    value.map_or(Cell::Nothing(()), Cell::Number)
}

/// The bare drives and the array, beside what a figure of the white paper has.
fn beside(name: &str, figure: &str, baseline: &[f64], nominal: &[Course]) -> Table {
    let published = Published::all();
    let columns = [
        "workload",
        "unit",
        "baseline",
        "palisade",
        "to baseline",
        "published baseline",
        "SupremeRAID",
        "to its baseline",
        "CPU product",
        "to its baseline",
    ];
    let is_of = |course: &&(&Course, &f64)| {
        published.find(figure, &course.0.workload.name, "baseline").is_some()
    };
    let pairs: Vec<(&Course, &f64)> = nominal.iter().zip(baseline).collect();
    let row = |(course, baseline): &(&Course, &f64)| {
        let workload = &course.workload;
        let (unit, factor) = unit(workload);
        let ours = course.mean(|own| own.value(workload));
        let told = |side| published.find(figure, &workload.name, side).map(|own| own.value);
        let ratio = |side| Some(told(side)? / told("baseline")?);
        vec![
            Cell::Text(workload.name.clone()),
            Cell::Text(unit.to_owned()),
            Cell::Number(*baseline / factor),
            Cell::Number(ours / factor),
            Cell::Number(ours / *baseline),
            number(told("baseline")),
            number(told("SupremeRAID")),
            number(ratio("SupremeRAID")),
            number(told("CPU product")),
            number(ratio("CPU product")),
        ]
    };
    Table {
        name: name.to_owned(),
        title: "bare drives and an array, beside what was published".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: pairs.iter().filter(is_of).map(row).collect(),
        source: published.source("W", figure),
    }
}

/// A product's sheet: the array, and each of its drives.
fn sheet(nominal: &[Course], drives: usize) -> Table {
    let published = Published::all();
    let columns = [
        "workload",
        "unit",
        "array",
        "drives",
        "per drive",
        "published",
        "published drives",
        "published per drive",
    ];
    let figure = "Figure 5";
    let rows = nominal.iter().filter_map(|course| {
        let workload = &course.workload;
        let told = published.find(figure, &workload.name, "array")?;
        let (unit, factor) = unit(workload);
        let ours = course.mean(|own| own.value(workload)) / factor;
        let their_drives = told.drives.map(f64::from);
        Some(vec![
            Cell::Text(workload.name.clone()),
            Cell::Text(unit.to_owned()),
            Cell::Number(ours),
            Cell::Number(drives as f64),
            Cell::Number(ours / drives as f64),
            Cell::Number(told.value),
            number(their_drives),
            number(their_drives.map(|drives| told.value / drives)),
        ])
    });
    Table {
        name: "product-sheet".to_owned(),
        title: "an array, and each of its drives".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        source: published.source("W", figure),
    }
}

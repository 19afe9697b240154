//! `palisade bench spec-sheet`: what a product's sheet says, of the bare drives and of an array.
//!
//! In this order: the bare drives are filled and measured (`baseline`); an array is made of them,
//! filled and measured (`nominal`); then one drive of it is replaced, and 4K reads are measured for
//! as long as it is being filled.

use super::course::{Course, Runner};
use super::figures;
use super::judge::{self, BASELINE, DEVICE_REBUILD, NOMINAL};
use super::options::Options;
use super::published::Published;
use super::setup::{self, How, Step};
use super::shelf::Shelf;
use super::states::Rebuilding;
use super::yard::Yard;
use super::{data_strips, group, peer, versus};
use crate::error::BenchError;
use crate::report::{Cell, Report, Table};
use workload::{Workload, workloads};

/// The workload that is measured beside a rebuild.
const IN_REBUILD: &str = "4k-random-read";

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

/// What is done, in order.
fn steps(all: &[Workload], is_device: bool, has_parity: bool) -> Vec<Step> {
    let mut steps = vec![Step::prepare(BASELINE, "the bare drives are filled")];
    steps.extend(all.iter().map(|own| Step::run(BASELINE, own, How::Steady)));
    if is_device {
        return steps;
    }
    steps.push(Step::prepare(NOMINAL, "an array is made and filled"));
    steps.extend(all.iter().map(|own| Step::run(NOMINAL, own, How::Steady)));
    let read = all.iter().filter(|own| has_parity && own.name == IN_REBUILD);
    steps.extend(read.map(|own| Step::run(DEVICE_REBUILD, own, How::InPieces)));
    steps
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
    let has_parity = !shelf.is_device && group(options, shelf.drives.len())?.parities > 0;
    let all: Vec<Workload> = workloads(options.mix).into_iter().chain(more()).collect();
    let mut steps = steps(&all, shelf.is_device, has_parity);
    steps.extend(peer::steps(options, &all));
    setup::tell(&mut report, options, &shelf, &steps);
    let peers = peer::open(options)?;
    if options.dry_run {
        return Ok(report);
    }
    let baseline = baseline(&mut report, (options, &shelf), &all, LARGEST, progress)?;
    if shelf.is_device {
        return Ok(report);
    }
    progress("making and filling an array");
    let mut runner = Runner::new(options, &shelf, Yard::make(options, &shelf)?, LARGEST)?;
    runner.fill()?;
    let mut nominal = Vec::new();
    for (workload, bare) in all.iter().zip(&baseline) {
        progress(&format!("{NOMINAL}-{}", workload.name));
        let course = runner.course(workload)?;
        let against = judge::against(options, &shelf, NOMINAL, workload, bare);
        figures::add(&mut report, NOMINAL, &course, against);
        nominal.push(course);
    }
    let read = all.iter().zip(&baseline).find(|(own, _)| own.name == IN_REBUILD);
    if let Some((workload, bare)) = read.filter(|_| has_parity) {
        progress(&format!("{DEVICE_REBUILD}-{}", workload.name));
        let mut course = runner.course_in(workload, &mut Rebuilding::default())?;
        let against = judge::against(options, &shelf, DEVICE_REBUILD, workload, bare);
        figures::add(&mut report, DEVICE_REBUILD, &course, against);
        course.workload.name.push_str("-in-rebuild");
        nominal.push(course);
    }
    let (sizes, count) = ((runner.area, LARGEST), shelf.drives.len());
    drop(runner);
    drop(shelf);
    let what = (&all[..], Some(&baseline[..]));
    let measured = peer::measure_all(&mut report, &peers, what, sizes, progress)?;
    report.tables.push(beside(("random", "Figure 8"), &baseline, &nominal, &measured));
    report.tables.push(beside(("sequential", "Figure 9"), &baseline, &nominal, &measured));
    report.tables.push(sheet(&nominal, count));
    Ok(report)
}

/// Fills the bare drives and runs all workloads on them.
///
/// # Errors
/// When a request fails, or the run is to end.
pub(super) fn baseline(
    report: &mut Report,
    (options, shelf): (&Options, &Shelf),
    all: &[Workload],
    largest: usize,
    progress: &dyn Fn(&str),
) -> Result<Vec<Course>, BenchError> {
    progress("filling the bare drives");
    let mut runner = Runner::new(options, shelf, Yard::bare(options, shelf)?, largest)?;
    runner.fill()?;
    let mut courses = Vec::new();
    for workload in all {
        progress(&format!("{BASELINE}-{}", workload.name));
        let course = runner.course(workload)?;
        figures::add(report, BASELINE, &course, judge::bare(workload));
        courses.push(course);
    }
    versus::against_fio(report, &runner, progress)?;
    Ok(courses)
}

/// The bare drives and the array, beside what a figure of the white paper has.
fn beside(
    (name, figure): (&str, &str),
    baseline: &[Course],
    nominal: &[Course],
    peers: &[peer::Measured],
) -> Table {
    let published = Published::all();
    let mut columns =
        ["workload", "unit", "baseline", "palisade", "to baseline"].map(str::to_owned).to_vec();
    columns.extend(
        peers.iter().flat_map(|own| [own.name.clone(), format!("{}, to baseline", own.name)]),
    );
    let theirs =
        ["published baseline", "SupremeRAID", "to its baseline", "CPU product", "to its baseline"];
    columns.extend(theirs.map(str::to_owned));
    let is_of = |course: &(&Course, &Course)| {
        published.find(figure, &course.0.workload.name, "baseline").is_some()
    };
    let pairs: Vec<(&Course, &Course)> = nominal.iter().zip(baseline).collect();
    let row = |(at, (course, bare)): (usize, &(&Course, &Course))| {
        let workload = &course.workload;
        let (unit, factor) = workload.unit();
        let (ours, bare) = (course.value(), bare.value());
        let told = |side| published.find(figure, &workload.name, side).map(|own| own.value);
        let ratio = |side| Some(told(side)? / told("baseline")?);
        let mut row = vec![
            Cell::from(workload.name.clone()),
            unit.to_owned().into(),
            (bare / factor).into(),
            (ours / factor).into(),
            (ours / bare).into(),
        ];
        for peer in peers {
            let own = peer.courses[at].value();
            row.extend([Cell::from(own / factor), (own / bare).into()]);
        }
        row.extend([
            Cell::from(told("baseline")),
            told("SupremeRAID").into(),
            ratio("SupremeRAID").into(),
            told("CPU product").into(),
            ratio("CPU product").into(),
        ]);
        row
    };
    let rows = pairs.iter().enumerate().filter(|(_, pair)| is_of(pair)).map(row).collect();
    let title = "bare drives and an array, beside what was published";
    setup::table(name, title, &columns, rows, published.source("W", figure))
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
        let (unit, factor) = workload.unit();
        let ours = course.value() / factor;
        let their_drives = told.drives.map(f64::from);
        Some(vec![
            workload.name.clone().into(),
            unit.to_owned().into(),
            ours.into(),
            drives.into(),
            (ours / drives as f64).into(),
            told.value.into(),
            their_drives.into(),
            their_drives.map(|drives| told.value / drives).into(),
        ])
    });
    let title = "an array, and each of its drives";
    setup::table("product-sheet", title, &columns, rows.collect(), published.source("W", figure))
}

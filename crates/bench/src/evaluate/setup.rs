//! What is measured, on what, and in which order: the tables before any figure.
//!
//! - `setup`: hardware, software and options. `topology`: who is served by whom, down to the
//!   drives. `process`: each step, in order. A dry run has these, and nothing else.

use super::options::{Options, Source};
use super::published::Published;
use super::shelf::Shelf;
use crate::report::{Cell, DriveUsed, ModelUsed, Report, Table};
use crate::through::Through;
use layout::Layout;
use units::{BAND_BYTES, format_size};
use workload::Workload;

/// A step of a procedure.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The state that drives and array are in.
    pub state: &'static str,
    /// The workload, and its jobs and depth; or what is done.
    pub what: String,
    /// Jobs and depth.
    pub load: Option<(usize, usize)>,
    /// How it is measured.
    pub how: How,
}

/// How a step is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// It is none of the figures.
    Prepares,
    /// In windows until they are steady, then in instances.
    Steady,
    /// In instances.
    AtOnce,
    /// In instances, each from the creation of an array of its own on.
    FromCreation,
    /// In pieces, as long as the array is in this state.
    InPieces,
}

impl Step {
    /// Something that is done before a measurement.
    pub fn prepare(state: &'static str, what: &str) -> Self {
        Self { state, what: what.to_owned(), load: None, how: How::Prepares }
    }

    /// A workload.
    pub fn run(state: &'static str, workload: &Workload, how: How) -> Self {
        let Workload { name, jobs, depth, .. } = workload;
        Self { state, what: name.clone(), load: Some((*jobs, *depth)), how }
    }
}

/// A table; nothing is left out of it.
pub fn table(
    name: &str,
    title: &str,
    columns: &[impl AsRef<str>],
    rows: Vec<Vec<Cell>>,
    source: String,
) -> Table {
    Table {
        name: name.to_owned(),
        title: title.to_owned(),
        columns: columns.iter().map(|text| text.as_ref().to_owned()).collect(),
        rows,
        source,
    }
}

fn text(text: impl ToString) -> Cell {
    Cell::Text(text.to_string())
}

fn over(through: Through) -> String {
    format!("over {through}")
}

/// Adds drives and model to a report, and how it comes about.
pub fn tell(report: &mut Report, options: &Options, shelf: &Shelf, steps: &[Step]) {
    let kind = |drive: &drives::SharedDrive| match (drive.pace(), drive.device()) {
        (Some(_), _) => "paced",
        (None, Some(_)) => "device",
        _ if drive.is_file() => "file",
        _ => "memory",
    };
    report.drives = shelf
        .drives
        .iter()
        .map(|drive| DriveUsed {
            path: drive.path().display().to_string(),
            serial: drive.serial(),
            bytes: drive.info().bytes,
            kind: kind(drive),
        })
        .collect();
    report.model = shelf.model.map(|(model, slower)| ModelUsed {
        name: model.name.to_owned(),
        scale: 1.0 / f64::from(slower),
    });
    let setup = setup(report, options, shelf);
    report.tables.extend([setup, topology(options, shelf), process(options, steps)]);
}

fn setup(report: &Report, options: &Options, shelf: &Shelf) -> Table {
    let machine = &report.machine;
    let row = |what: &str, value: String| vec![text(what), Cell::Text(value)];
    let count = shelf.drives.len();
    let what = match &options.source {
        Source::Drives(paths) if count == 0 => {
            format!("{} of each of the other hosts", paths.len())
        }
        Source::Drives(_) => format!("{count} drives by their paths"),
        Source::Device(path) => format!("the device {}", path.display()),
        Source::Memory { bytes, .. } => {
            format!("{count} drives of {} in memory", format_size(*bytes))
        }
        Source::Model { model, scale, .. } => {
            let scale = if options.dry_run { *scale } else { shelf.scale() };
            format!("{count} paced drives {}, at the scale {scale}", model.name)
        }
    };
    let seconds = options.timing().counted.as_secs_f64();
    let reached = options.reached_by();
    let rows = vec![
        row("CPU", machine.cpu.clone()),
        row("CPUs", machine.cpus.to_string()),
        row("memory", format_size(machine.memory_bytes)),
        row("kernel", machine.kernel.clone()),
        row("software", format!("palisade {}", report.version)),
        row("drives", what),
        row("bytes of a drive for data", format_size(shelf.bytes)),
        row("level", options.level.to_string()),
        row("strip", format_size(options.strip.into())),
        row("data cores", options.cores.to_string()),
        row("volumes", options.volumes.to_string()),
        row("profile", options.profile.to_string()),
        row("load", options.load.to_string()),
        row("volumes are reached", reached.map_or("in this process".to_owned(), over)),
        row("instances", format!("{} of {seconds} s", options.instances)),
    ];
    let source = Published::all().source("W", "Figure 2");
    table("setup", "hardware and software", &["what", "value"], rows, source)
}

/// Who is served by whom.
fn topology(options: &Options, shelf: &Shelf) -> Table {
    let mut rows = Vec::new();
    let count = shelf.drives.len();
    let layout = u16::try_from(count)
        .ok()
        .filter(|count| !shelf.is_device && *count >= options.level.min_drives())
        .and_then(|count| Layout::new(options.level, count, options.strip, BAND_BYTES).ok());
    let many = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let cores = many(options.cores.into(), "data core");
    let by =
        options.reached_by().map_or_else(|| cores.clone(), |own| format!("{cores}, {}", over(own)));
    let name = |at: usize| match shelf.drives[at].path().display().to_string() {
        path if path.is_empty() => format!("drive {at}"),
        path => path,
    };
    match &layout {
        None => rows.push(["the load".to_owned(), cores, many(count, "bare drive")]),
        Some(layout) => {
            let volumes = many(options.volumes, "volume");
            rows.push(["the load".to_owned(), by, volumes.clone()]);
            let array = format!("an array of level {}", options.level);
            rows.push([volumes, "cut from".to_owned(), array.clone()]);
            for group in (0..layout.groups()).map(units::GroupNo) {
                let strips = format!("{} + {}", layout.k(group), layout.m(group));
                let drives: Vec<_> =
                    layout.slots(group).map(|slot| name(usize::from(slot.0))).collect();
                rows.push([array.clone(), format!("group {group}, {strips}"), drives.join(" ")]);
            }
        }
    }
    if let Some(port) = shelf.model.and_then(|(model, _)| model.port.as_ref()) {
        let behind = port.drives.value as usize;
        for (at, first) in (0..count).step_by(behind.max(1)).enumerate() {
            let last = (first + behind).min(count) - 1;
            let drives = format!("drives {first} to {last}");
            rows.push([drives, "behind".to_owned(), format!("port {at}")]);
        }
    }
    let rows = rows.into_iter().map(|row| row.map(Cell::Text).to_vec()).collect();
    let source = Published::all().source("W", "Figure 6");
    table("topology", "who is served by whom", &["what", "by way of", "by"], rows, source)
}

/// The steps, in order.
fn process(options: &Options, steps: &[Step]) -> Table {
    let timing = options.timing();
    let row = |(at, step): (usize, &Step)| {
        let (jobs, depth) = step.load.unzip();
        let number = |value: Option<usize>| value.map_or(Cell::Nothing(()), |own| own.into());
        let (windows, instances) = match step.how {
            How::Prepares => (None, None),
            How::Steady => (Some(timing.windows), Some(timing.instances)),
            How::AtOnce | How::FromCreation | How::InPieces => (Some(0), Some(timing.instances)),
        };
        let seconds = instances.map_or(Cell::Nothing(()), |_| timing.counted.as_secs_f64().into());
        vec![
            Cell::from(at + 1),
            text(step.state),
            text(&step.what),
            number(jobs),
            number(depth),
            number(windows),
            number(instances),
            seconds,
        ]
    };
    let columns =
        ["step", "state", "what", "jobs", "depth", "windows at most", "instances", "seconds"];
    let rows = steps.iter().enumerate().map(row).collect();
    let source = Published::all().source("W", "Figure 7");
    table("process", "what is done, in order", &columns, rows, source)
}

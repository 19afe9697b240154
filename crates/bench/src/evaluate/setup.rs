//! What is measured, on what, and in which order: the tables before any figure.

use super::options::{Options, Source};
use super::published::Published;
use super::shelf::Shelf;
use crate::report::{Cell, DriveUsed, ModelUsed, Report, Table};
use units::format_size;

fn table(
    name: &str,
    title: &str,
    columns: &[&str],
    rows: Vec<Vec<String>>,
    source: String,
) -> Table {
    let cells = |row: Vec<String>| row.into_iter().map(Cell::Text).collect();
    Table {
        name: name.to_owned(),
        title: title.to_owned(),
        columns: columns.iter().map(|text| (*text).to_owned()).collect(),
        rows: rows.into_iter().map(cells).collect(),
        source,
    }
}

/// Adds drives, model and setup to a report.
pub fn tell(report: &mut Report, options: &Options, shelf: &Shelf) {
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
    let machine = &report.machine;
    let row = |what: &str, value: String| vec![what.to_owned(), value];
    let count = shelf.drives.len();
    let what = match &options.source {
        Source::Drives(_) => format!("{count} drives by their paths"),
        Source::Device(path) => format!("the device {}", path.display()),
        Source::Memory { bytes, .. } => {
            format!("{count} drives of {} in memory", format_size(*bytes))
        }
        Source::Model { model, .. } => {
            format!("{count} paced drives {}, at the scale {}", model.name, shelf.scale())
        }
    };
    let seconds = options.timing().counted.as_secs_f64();
    let rows = vec![
        row("CPU", machine.cpu.clone()),
        row("CPUs", machine.cpus.to_string()),
        row("memory", format_size(machine.memory_bytes)),
        row("kernel", machine.kernel.clone()),
        row("software", format!("palisade {}", report.version)),
        row("drives", what),
        row("level", options.level.to_string()),
        row("strip", format_size(options.strip.into())),
        row("data cores", options.cores.to_string()),
        row("volumes", options.volumes.to_string()),
        row("profile", options.profile.to_string()),
        row("instances", format!("{} of {seconds} s", options.instances)),
    ];
    let source = Published::all().source("W", "Figure 2");
    let title = "hardware and software";
    report.tables.push(table("setup", title, &["what", "value"], rows, source));
}

//! `palisade status` for people: a section for each kind of thing that there is, and at its end
//! what to do next.
//!
//! Invariants
//! - No line is wider than [`COLUMNS`], but for one that says what to do next where the output is
//!   no terminal: there it is one line, what happened and what to do, for programs that look for
//!   it.
//! - On a terminal what happened and what to do have a line each, as `zpool status` has it, so that
//!   a command can be copied.

use crate::array::errors;
use crate::event;
use crate::output::{Output, health, percent, printable, state, table_within, wrapped};
use crate::share::shown;
use crate::status::{Host, Housing, InShort, Overview, arrays_within, standing};
use crate::task::time_left;
use redfish::dates;
use redfish::view;
use std::io::IsTerminal;
use units::format_size;

/// How wide it is at most.
pub const COLUMNS: usize = 100;

/// How wide it is at least.
const LEAST: usize = 40;

/// How many alerts are shown at most.
const ALERTS: usize = 5;

/// Cells of a bar.
const CELLS: u64 = 20;

/// How many columns the terminal has, if the output is one.
pub fn screen(output: Output) -> Option<usize> {
    let out = std::io::stdout();
    if output.json || !out.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&out).ok();
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    Some(if columns == 0 { COLUMNS } else { columns })
}

/// The whole text; on a terminal of so many columns, if it is one.
pub fn text(overview: &Overview, screen: Option<usize>) -> String {
    let columns = screen.unwrap_or(COLUMNS).clamp(LEAST, COLUMNS);
    let status = &overview.status;
    let mut sections = vec![match status.arrays.is_empty() {
        true => "no arrays; create one with: palisade array create".to_owned(),
        false => arrays_within(columns, &status.arrays),
    }];
    let tasks: Vec<&view::Task> = status.arrays.iter().flat_map(|array| &array.tasks).collect();
    sections.push(jobs(columns, &tasks));
    sections.push(drives(columns, overview));
    sections.push(enclosures(columns, &overview.enclosures));
    sections.push(exports(columns, &status.arrays));
    let systems: Vec<_> = status.arrays.iter().flat_map(|array| &array.filesystems).collect();
    sections.push(shown::table_within(columns, &systems));
    sections.push(hosts(columns, &overview.hosts));
    sections.extend(gpu(&status.parity));
    sections.push(alerts(columns, &overview.alerts));
    if !overview.warnings.is_empty() {
        let lines: Vec<_> = overview
            .warnings
            .iter()
            .map(|event| wrapped(&event::line(event), columns, 0, 32))
            .collect();
        sections.push(format!("LAST WARNINGS\n{}", lines.join("\n")));
    }
    if let view::Kept { directory: None, problem: None } = status.state {
        let text = "no state directory: the daemon serves on its socket only, and its audit log \
                    ends with it";
        sections.push(wrapped(text, columns, 0, 0));
    }
    sections.push(next(&status.next, screen.map(|_| columns)));
    let sections: Vec<&str> = sections.iter().map(|text| text.trim_end()).collect();
    let sections: Vec<&str> = sections.into_iter().filter(|text| !text.is_empty()).collect();
    sections.join("\n\n")
}

/// The gravest alerts, in the order of the list: one that was acknowledged hides behind none.
fn alerts(columns: usize, alerts: &InShort) -> String {
    let InShort { count, unseen, all, .. } = alerts;
    if *count == 0 {
        return String::new();
    }
    let row = |own: &view::Alert| {
        let seen = own.acknowledged.as_ref().map_or_else(String::new, |(_, who)| printable(who));
        let since = dates::text(own.raised);
        vec![printable(&own.id), since, health(own.severity), seen, printable(&own.what)]
    };
    let rows: Vec<_> = all.iter().take(ALERTS).map(row).collect();
    let headings = ["ALERT", "SINCE", "SEVERITY", "SEEN BY", "WHAT"];
    let table = table_within(columns, &headings, &rows, &[0, 3, 4]);
    let many = if *count == 1 { "1 alert".to_owned() } else { format!("{count} alerts") };
    let rest = format!("{many}, {unseen} not seen; all, and what to do: palisade alert list");
    format!("{}\n{}", table.trim_end(), wrapped(&rest, columns, 0, 0))
}

/// What to do next.
fn next(next: &[view::Next], screen: Option<usize>) -> String {
    if next.is_empty() {
        return "nothing to do next".to_owned();
    }
    let line = |next: &view::Next| match screen {
        None => format!("{}; {}", next.what, next.action),
        Some(columns) => {
            let what = wrapped(&printable(&next.what), columns, 2, 2);
            format!("{what}\n{}", wrapped(&printable(&next.action), columns, 4, 4))
        }
    };
    let lines: Vec<String> = next.iter().map(line).collect();
    format!("WHAT TO DO NEXT\n{}", lines.join("\n"))
}

/// A bar of how far a task is.
pub fn bar(task: &view::Task) -> String {
    let total = u128::from(task.total_bytes.max(1));
    let full = u128::from(task.done_bytes).min(total) * u128::from(CELLS) / total;
    let full = usize::try_from(full).unwrap_or(0);
    format!("[{}{}]", "#".repeat(full), ".".repeat(CELLS as usize - full))
}

/// Jobs, with bars and estimates.
fn jobs(columns: usize, tasks: &[&view::Task]) -> String {
    if tasks.is_empty() {
        return String::new();
    }
    let row = |task: &&view::Task| {
        let note = task.problem.as_deref().unwrap_or(standing(task)).trim();
        vec![
            printable(&task.id),
            format!("{} {:>6}", bar(task), percent(task)),
            time_left(task),
            format!("{} of {}", format_size(task.done_bytes), format_size(task.total_bytes)),
            printable(note),
        ]
    };
    let rows: Vec<_> = tasks.iter().map(row).collect();
    table_within(columns, &["JOB", "DONE", "LEFT", "PER DRIVE", ""], &rows, &[0, 4])
}

/// Drives: those of slots by array, then those that no array has.
fn drives(columns: usize, overview: &Overview) -> String {
    let mut rows = Vec::new();
    let known = |path: &str| overview.drives.iter().find(|known| known.drive.path == path);
    for array in &overview.status.arrays {
        for slot in &array.slots {
            let path = slot.drive.as_deref();
            let size = path.and_then(known).map(|known| format_size(known.drive.bytes));
            rows.push(vec![
                format!("{}:{}", printable(&array.name), slot.slot),
                printable(path.unwrap_or("-")),
                printable(&slot.serial),
                size.unwrap_or_default(),
                state(&slot.state),
                slot.reason.clone().unwrap_or_else(|| errors(slot)),
            ]);
        }
    }
    let is_of_slot = |path: &str| {
        let mut slots = overview.status.arrays.iter().flat_map(|array| &array.slots);
        slots.any(|slot| slot.drive.as_deref() == Some(path))
    };
    for known in overview.drives.iter().filter(|known| !is_of_slot(&known.drive.path)) {
        let drive = &known.drive;
        let holds = drive.problem.as_deref().or(drive.signature.as_deref()).unwrap_or_default();
        rows.push(vec![
            "-".to_owned(),
            printable(&drive.path),
            printable(&drive.serial),
            format_size(drive.bytes),
            state(&drive.state),
            printable(holds),
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    table_within(columns, &["SLOT", "DRIVE", "SERIAL", "SIZE", "STATE", ""], &rows, &[0, 1, 2, 5])
}

/// Enclosures: how many drives each has, and how it is.
fn enclosures(columns: usize, all: &[Housing]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let row = |own: &Housing| {
        let enclosure = &own.enclosure;
        let shelf = enclosure.shelf.as_ref();
        let silent = |own: &view::Silence| format!("silent since {}", dates::text(own.since));
        let silence = shelf.and_then(|shelf| shelf.silence.as_ref()).map(silent);
        let state = match silence {
            // What it said last is worse than that it says nothing.
            Some(text) if own.health == view::Health::Critical => {
                format!("{}, {text}", health(own.health))
            }
            Some(text) => text,
            None if shelf.is_some_and(|shelf| shelf.read.is_none()) => "not read yet".to_owned(),
            None => health(own.health),
        };
        vec![
            printable(&enclosure.name),
            printable(enclosure.model.as_deref().unwrap_or("-")),
            own.drives.to_string(),
            own.own.to_string(),
            state,
        ]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let headings = ["ENCLOSURE", "MODEL", "DRIVES", "OWN", "STATE"];
    table_within(columns, &headings, &rows, &[0, 1, 4])
}

fn exports(columns: usize, arrays: &[view::Array]) -> String {
    let row = |export: &view::Export| {
        let hosts =
            export.nvme.as_ref().map_or(export.clients.len(), |nvme| nvme.connections.len());
        vec![
            printable(&export.id),
            format!("{}/{}", printable(&export.array), printable(&export.volume)),
            state(&if export.serving { "yes" } else { "no" }),
            hosts.to_string(),
            printable(export.problem.as_deref().unwrap_or(&export.uri)),
        ]
    };
    let rows: Vec<_> = arrays.iter().flat_map(|array| &array.exports).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    table_within(columns, &["EXPORT", "VOLUME", "SERVED", "HOSTS", "URI"], &rows, &[0, 1, 4])
}

fn hosts(columns: usize, hosts: &[Host]) -> String {
    let row = |host: &Host| {
        let name = if host.host.is_empty() { "a host without a name" } else { &host.host };
        vec![
            printable(name),
            host.controllers.to_string(),
            host.queues.to_string(),
            printable(&host.exports.join(", ")),
        ]
    };
    let rows: Vec<_> = hosts.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    table_within(columns, &["HOST", "CONTROLLERS", "QUEUES", "EXPORTS"], &rows, &[0, 3])
}

/// What a GPU does for parity, where one does.
fn gpu(parity: &view::Parity) -> Option<String> {
    match (&parity.gpu, &parity.problem) {
        // It is told with what is to be done about it.
        (_, Some(_)) => None,
        (Some(gpu), None) => Some(format!(
            "parity also on {gpu} ({}): {} jobs, {}",
            parity.placement,
            parity.gpu_jobs,
            format_size(parity.gpu_bytes)
        )),
        (None, None) => None,
    }
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;

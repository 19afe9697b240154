//! The table of `palisade bench parity` for people: a row per work, a column per yardstick.

use crate::report::{Metric, Report};
use core::fmt::Write as _;

/// A value's text, or nothing where it was not measured.
fn cell(metric: Option<&Metric>) -> String {
    metric.map_or(String::new(), |metric| format!("{:.2}", metric.value))
}

/// The report as a table.
pub fn parity_table(report: &Report) -> String {
    let machine = &report.machine;
    let memory = units::format_size(machine.memory_bytes);
    let mut text = format!(
        "{}\n{}, {} CPUs, {memory} memory, Linux {}\n",
        report.command, machine.cpu, machine.cpus, machine.kernel
    );
    for note in &report.notes {
        let _ = writeln!(text, "{note}");
    }
    let heading = ["palisade", "ISA-L", "ratio", "goal", "", "to memcpy", "to read", "CPU us"];
    let _ = write!(text, "\n{:22}", "GB/s of data");
    let row = |text: &mut String, cells: &[&str]| {
        for cell in cells {
            let _ = write!(text, "{cell:>10}");
        }
        text.push('\n');
    };
    row(&mut text, &heading);
    let find = |name: &str| report.results.iter().find(|r| r.name == name);
    for result in &report.results {
        let Some(name) = result.name.strip_suffix("-to-read") else { continue };
        let ratio = find(name);
        let goal = ratio.and_then(|r| r.goal).map_or(String::new(), |goal| format!("{goal:.2}"));
        let met = match ratio.and_then(|r| r.met) {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        };
        let of = |suffix: &str| cell(find(&format!("{name}{suffix}")));
        let cells = [
            of("-gbps"),
            of("-isal-gbps"),
            cell(ratio),
            goal,
            met.to_owned(),
            of("-to-memcpy"),
            of("-to-read"),
            of("-cpu-us"),
        ];
        let _ = write!(text, "{name:22}");
        row(&mut text, &cells.each_ref().map(String::as_str));
    }
    for result in &report.results {
        if result.name.starts_with("memcpy") || result.name.starts_with("read") {
            let _ = writeln!(text, "{:22}{:>10.2}", result.name, result.value);
        }
    }
    text
}

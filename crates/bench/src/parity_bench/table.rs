//! The table of `palisade bench parity` for people: a row per work, a column per yardstick.

use super::Place;
use super::works::WORKS;
use crate::report::{Metric, Report};
use core::fmt::Write as _;

/// What a reader has to know of the columns.
const LEGEND: &str = "\
GB/s: 10^9 bytes of data per second of one thread's CPU time, parities not counted, median round
ratio: Palisade's rate over that of ISA-L's side, which is the functions in the last column;
  median of the rounds; rounds: the smallest to the largest; goal: what the ratio should reach
to memcpy, to read: Palisade's rate over those of copying and of only reading the same data
us a pass: CPU time of Palisade for all the data once
p, pq, pqr: 1, 2, 3 parities of 8 data strips, with -4 or -16 of 4 or 16; k16m4: 4 of 16
delta4k-pq: P and Q follow a change of 4 KiB; recover2-8p2: 2 lost data strips of 8+2
crc32c: checksums of strips, crc32c-24b: of pieces of 24 bytes; copy-crc32c: with a copy
hot: strips that stay in the caches; memory: strips far larger than the caches
";

/// A value's text, or nothing where it was not measured.
fn cell(metric: Option<&Metric>) -> String {
    metric.map_or(String::new(), |metric| format!("{:.2}", metric.value))
}

/// The functions of ISA-L's side of the result `name`.
fn against(name: &str) -> &'static str {
    let places = [Place::Hot, Place::Memory];
    let is = |work: &&super::Work| places.iter().any(|place| work.name(*place) == name);
    WORKS.iter().find(is).map_or("", super::Work::against)
}

/// A row's name and eight cells, and what it was compared with.
fn row(text: &mut String, name: &str, cells: [&str; 8], last: &str) {
    let [ours, theirs, ratio, rounds, goal, copy, read, cpu] = cells;
    let mut line = format!("{name:21}{ours:>9}{theirs:>8}{ratio:>7}{rounds:>13}{goal:>13}");
    let _ = write!(line, "{copy:>10}{read:>8}{cpu:>10}  {last}");
    text.push_str(line.trim_end());
    text.push('\n');
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
    text.push('\n');
    let heads =
        ["palisade", "ISA-L", "ratio", "rounds", "goal", "to memcpy", "to read", "us a pass"];
    row(&mut text, "GB/s of data", heads, "ISA-L's side");
    let find = |name: &str| report.results.iter().find(|r| r.name == name);
    for result in &report.results {
        let Some(name) = result.name.strip_suffix("-to-read") else { continue };
        let ratio = find(name);
        let rounds = ratio.map_or(String::new(), |r| format!("{:.2}..{:.2}", r.low, r.high));
        let goal = ratio.and_then(|r| Some((r.goal?, if r.met? { "met" } else { "missed" })));
        let goal = goal.map_or(String::new(), |(goal, met)| format!("{goal:.2} {met}"));
        let of = |suffix: &str| cell(find(&format!("{name}{suffix}")));
        let (ours, theirs) = (of("-gbps"), of("-isal-gbps"));
        let (copy, read, cpu) = (of("-to-memcpy"), of("-to-read"), of("-cpu-us"));
        let cells = [&ours, &theirs, &cell(ratio), &rounds, &goal, &copy, &read, &cpu];
        let last = if ratio.is_some() { against(name) } else { "" };
        row(&mut text, name, cells.map(String::as_str), last);
    }
    for result in &report.results {
        if result.name.starts_with("memcpy") || result.name.starts_with("read") {
            let _ = writeln!(text, "{:21}{:>9.2}", result.name, result.value);
        }
    }
    text.push('\n');
    text.push_str(LEGEND);
    text
}

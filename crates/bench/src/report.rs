//! What a benchmark found: as JSON for programs, as a table for people.
//!
//! The JSON's keys and their meaning are a contract (schema 1): `schema`, `machine`, `version`,
//! `command`, `results`; each result has `name`, `value`, `unit`, `low`, `high`, `goal`, `met`.
//! `goal` and `met` are null where there is no goal. What could not be measured is not in the list,
//! and [`Report::missing`] says why. `notes`, a list of texts, is there if there are any; so is
//! `open`, figures that this run could not have measured: `name`, `value` (null), `reason`.
//! Likewise `tables`: `name`, `title`, `columns`, `rows` and `source`, the document and figure that
//! a table is after; and `model`, where paced drives were used: `name` and `scale`.

use crate::stats::Spread;
use core::fmt::Write as _;
use serde::Serialize;

/// Which way a goal points.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Goal {
    /// The value must be at least this.
    AtLeast(f64),
    /// The value must be at most this.
    AtMost(f64),
    /// The value must not be further from this than so much of it.
    Near(f64, f64),
}

/// One result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Metric {
    /// What was measured, in words joined by `-`.
    pub name: String,
    /// The median round.
    pub value: f64,
    /// `ratio`, `iops`, `GB/s` (10^9 bytes) or `us`.
    pub unit: &'static str,
    /// The smallest round.
    pub low: f64,
    /// The largest round.
    pub high: f64,
    /// What it should reach; a value to stay under where less is better.
    pub goal: Option<f64>,
    /// Whether it does.
    pub met: Option<bool>,
}

impl Metric {
    /// A result with its goal, if it has one.
    pub fn new(name: String, unit: &'static str, spread: Spread, goal: Option<Goal>) -> Self {
        let met = goal.map(|goal| match goal {
            Goal::AtLeast(least) => spread.median >= least,
            Goal::AtMost(most) => spread.median <= most,
            Goal::Near(goal, part) => (spread.median - goal).abs() <= goal * part,
        });
        let goal = goal.map(|(Goal::AtLeast(own) | Goal::AtMost(own) | Goal::Near(own, _))| own);
        let Spread { median, low, high } = spread;
        Self { name, value: median, unit, low, high, goal, met }
    }
}

/// The machine, without its name.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Machine {
    /// The CPU's model, with family, model and stepping in numbers where the system tells them.
    pub cpu: String,
    /// CPUs this process may use.
    pub cpus: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
}

impl Machine {
    /// This machine; what the system does not tell is empty or 0.
    pub fn here() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu: cpu(&read("/proc/cpuinfo")),
            cpus: std::thread::available_parallelism().map_or(0, |n| n.get()),
            memory_bytes: kibibytes(field(&read("/proc/meminfo"), "MemTotal")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

/// What follows `name:` in a text of the proc file system.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(key, _)| key.trim() == name).map_or("", |(_, value)| value.trim())
}

/// The CPU's model; on x86 with its numbers, because virtual machines shorten the name.
fn cpu(text: &str) -> String {
    let number = |name| Some(field(text, name)).filter(|number| !number.is_empty());
    let name = field(text, "model name");
    match (number("cpu family"), number("model"), number("stepping")) {
        (Some(family), Some(model), Some(stepping)) => {
            format!("{name} (family {family}, model {model}, stepping {stepping})")
        }
        _ => name.to_owned(),
    }
}

fn kibibytes(text: &str) -> u64 {
    let number = text.strip_suffix("kB").unwrap_or(text).trim();
    number.parse().map_or(0, |kib: u64| kib * units::KIB)
}

/// A figure that is not known.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Open {
    /// What would have been measured.
    pub name: String,
    /// Null.
    pub value: Option<f64>,
    /// Why it could not be.
    pub reason: String,
}

/// What stands in a table.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A number, in the unit of its column.
    Number(f64),
    /// It is not known.
    Nothing(()),
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Nothing(()), Self::Number)
    }
}

impl Cell {
    /// As it is shown: whole numbers as such, others with as many places as tell something.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(value) if value.fract() == 0.0 => format!("{value:.0}"),
            Self::Number(value) if value.abs() < 1.0 => format!("{value:.5}"),
            Self::Number(value) if value.abs() < 1000.0 => format!("{value:.3}"),
            Self::Number(value) => format!("{value:.0}"),
            Self::Nothing(()) => "-".to_owned(),
        }
    }
}

/// Results side by side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// Its name, in words joined by `-`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The columns' headings.
    pub columns: Vec<String>,
    /// Its rows, as many cells each.
    pub rows: Vec<Vec<Cell>>,
    /// The document and figure that it is after; empty if it is after none.
    pub source: String,
}

impl Table {
    /// Whether a column has numbers.
    pub(crate) fn has_numbers(&self, column: usize) -> bool {
        self.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Number(_))))
    }

    fn text(&self) -> String {
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(Cell::text).collect()).collect();
        let all = || std::iter::once(&self.columns).chain(&rows);
        let width = |at: usize| all().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text = format!("{}: {}\n", self.name, self.title);
        if !self.source.is_empty() {
            let _ = writeln!(text, "after {}", self.source);
        }
        for row in all() {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            let _ = writeln!(text, "  {}", line.trim_end());
        }
        text
    }
}

/// One run of a workload.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// The result that it is of.
    pub name: String,
    /// Its number, from 1.
    pub instance: usize,
    /// Whether it is one of those that the result is the mean of.
    pub counts: bool,
    /// Whether it varied too much and was run again.
    pub flagged: bool,
    /// Seconds of an interval of the series.
    pub interval_seconds: f64,
    /// Requests done in each interval.
    pub series: Vec<u64>,
}

/// A drive that was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DriveUsed {
    /// Its path; empty for one in memory.
    pub path: String,
    /// What tells it from others.
    pub serial: String,
    /// Its bytes.
    pub bytes: u64,
    /// What it is: `device`, `file`, `memory` or `paced`.
    pub kind: &'static str,
}

/// The model of paced drives.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ModelUsed {
    /// Its name.
    pub name: String,
    /// How fast the drives are, of what the model is.
    pub scale: f64,
}

/// A benchmark's findings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Version of this report's form.
    pub schema: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// Version of the program.
    pub version: String,
    /// The command that measured it.
    pub command: String,
    /// What was measured.
    pub results: Vec<Metric>,
    /// What else a reader should know, such as the code that was chosen for this processor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What stays open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Open>,
    /// Results side by side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// Each run, with its series.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Run>,
    /// The drives that were measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<DriveUsed>,
    /// The model of paced drives, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelUsed>,
    /// What could not be measured, and why; not part of the JSON.
    #[serde(skip)]
    pub missing: Vec<String>,
}

impl Report {
    /// A report of this machine without results.
    pub fn new(version: &str, command: &str) -> Self {
        Self {
            schema: 1,
            machine: Machine::here(),
            version: version.to_owned(),
            command: command.to_owned(),
            results: Vec::new(),
            notes: Vec::new(),
            open: Vec::new(),
            tables: Vec::new(),
            runs: Vec::new(),
            drives: Vec::new(),
            model: None,
            missing: Vec::new(),
        }
    }

    /// Adds a result, or notes that it could not be measured.
    pub fn add(
        &mut self,
        name: &str,
        unit: &'static str,
        spread: Option<Spread>,
        goal: Option<Goal>,
    ) {
        match spread {
            Some(spread) => self.results.push(Metric::new(name.to_owned(), unit, spread, goal)),
            None => self.missing.push(format!("{name}: nothing was completed in some round")),
        }
    }

    /// Says that a figure stays open, and why.
    pub fn leave_open(&mut self, name: &str, reason: &str) {
        let (name, reason) = (name.to_owned(), reason.to_owned());
        self.open.push(Open { name, value: None, reason });
    }

    /// One JSON object on one line per result, ending in a newline.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a report has no map keys");
        text.push('\n');
        text
    }

    /// A table for people.
    pub fn to_table(&self) -> String {
        let machine = &self.machine;
        let memory = units::format_size(machine.memory_bytes);
        let mut text = format!(
            "{}\n{}, {} CPUs, {memory} memory, Linux {}\n\n",
            self.command, machine.cpu, machine.cpus, machine.kernel
        );
        if let Some(ModelUsed { name, scale }) = &self.model {
            let _ = writeln!(text, "drives of the model {name}, {scale} times as fast\n");
        }
        if !self.results.is_empty() || !self.open.is_empty() {
            self.results_to(&mut text);
        }
        for table in &self.tables {
            let _ = write!(text, "\n{}", table.text());
        }
        text
    }

    fn results_to(&self, text: &mut String) {
        let width = self.results.iter().map(|r| r.name.len()).max().unwrap_or(0).max(6);
        let _ = writeln!(
            text,
            "{:width$}  {:>10}  {:5}  {:>10}  {:>10}  {:>5}",
            "result", "value", "unit", "low", "high", "goal"
        );
        for r in &self.results {
            let goal = r.goal.map_or(String::new(), |goal| format!("{goal:.2}"));
            let met = match r.met {
                Some(true) => "  met",
                Some(false) => "  missed",
                None => "",
            };
            let (value, low, high) =
                (number(r.value, r.unit), number(r.low, r.unit), number(r.high, r.unit));
            let _ = writeln!(
                text,
                "{:width$}  {value:>10}  {:5}  {low:>10}  {high:>10}  {goal:>5}{met}",
                r.name, r.unit
            );
        }
        for open in &self.open {
            let _ = writeln!(text, "{:width$}  {:>10}  {}", open.name, "open", open.reason);
        }
    }
}

/// A result's value as it is shown.
pub(crate) fn number(value: f64, unit: &str) -> String {
    if unit == "iops" { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut report = Report::new("1.2.3", "palisade bench array");
        let spread = Spread { median: 0.5, low: 0.25, high: 0.75 };
        report.add("4k-random-read", "ratio", Some(spread), Some(Goal::AtLeast(0.9)));
        report.add("cores-2-cpu-ratio", "ratio", Some(spread), Some(Goal::AtMost(1.15)));
        report.add("raw-iops", "iops", Some(spread.scaled(1e6)), None);
        report.add("nothing", "iops", None, None);
        report
    }

    #[test]
    fn json_has_the_promised_shape() {
        let json: serde_json::Value = serde_json::from_str(&report().to_json()).unwrap();
        let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["command", "machine", "results", "schema", "version"]);
        assert_eq!(json["schema"], 1);
        assert_eq!(json["version"], "1.2.3");
        let results = json["results"].as_array().unwrap();
        assert_eq!(results.len(), 3, "what was not measured is left out");
        for result in results {
            let keys: Vec<_> = result.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, ["goal", "high", "low", "met", "name", "unit", "value"]);
        }
        assert_eq!((&results[0]["goal"], &results[0]["met"]), (&0.9.into(), &false.into()));
        assert_eq!((&results[1]["goal"], &results[1]["met"]), (&1.15.into(), &true.into()));
        assert!(results[2]["goal"].is_null() && results[2]["met"].is_null());
        assert_eq!(results[2]["value"], 500_000.0);
    }

    #[test]
    fn a_goal_on_both_sides_is_met_between() {
        for (value, is_met) in [(0.89, false), (0.91, true), (1.09, true), (1.11, false)] {
            let spread = Spread::of([value]).unwrap();
            let own = Metric::new("x".into(), "ratio", spread, Some(Goal::Near(1.0, 0.1)));
            assert_eq!((own.goal, own.met), (Some(1.0), Some(is_met)), "{value}");
        }
    }

    #[test]
    fn the_table_says_what_was_missed() {
        let table = report().to_table();
        let line = table.lines().find(|l| l.starts_with("4k-random-read")).unwrap();
        assert!(line.ends_with("0.90  missed") && line.contains("0.500"), "{line}");
        assert!(table.lines().any(|l| l.starts_with("cores-2") && l.ends_with("met")));
    }

    #[test]
    fn the_machine_is_read_from_proc() {
        assert_eq!(field("a: 1\nmodel name\t: Some CPU\n", "model name"), "Some CPU");
        let x86 = "cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: Some CPU\nstepping\t: 1\n";
        assert_eq!(cpu(x86), "Some CPU (family 26, model 2, stepping 1)");
        assert_eq!(cpu("model name\t: Some CPU\n"), "Some CPU");
        assert_eq!(kibibytes("1024 kB"), units::MIB);
        let here = Machine::here();
        assert!(here.cpus > 0 && here.memory_bytes > 0 && !here.kernel.is_empty());
    }
}

//! `palisade bench life-cycle`: the same workloads in every state that an array goes through.
//!
//! In this order: the bare drives (`baseline`); an array from its creation on (`initialising`);
//! with all its bands written (`nominal`); without one of its drives (`device-down`); and while
//! that drive, put in again, is being filled (`device-rebuild`).
//!
//! An array here can be used from its creation on and has nothing to initialise: what is particular
//! then is that the first write of a band takes longer, and that reads of bands that were never
//! written ask no drive. So each instance of writes of `initialising` begins with an array just
//! made; its reads, and mixed workloads, are of an array that was just made and filled.

use super::course::{Course, Runner};
use super::judge::{self, BASELINE, DEVICE_DOWN, DEVICE_REBUILD, INITIALISING, NOMINAL};
use super::options::Options;
use super::published::Published;
use super::setup::{self, How, Step};
use super::shelf::Shelf;
use super::spec_sheet::baseline;
use super::states::Rebuilding;
use super::yard::Yard;
use super::{data_strips, figures, group};
use crate::error::BenchError;
use crate::report::{Cell, Report, Table};
use workload::{Workload, workloads};

/// The largest requests.
const LARGEST: usize = 128 << 10;

/// The workloads of one state.
struct State {
    name: &'static str,
    courses: Vec<Course>,
}

/// What is done, in order.
fn steps(all: &[Workload], has_parity: bool) -> Vec<Step> {
    let each = |state, how| all.iter().map(move |own| Step::run(state, own, how));
    let mut steps = vec![Step::prepare(BASELINE, "the bare drives are filled")];
    steps.extend(each(BASELINE, How::Steady));
    for own in all {
        if is_first_write(own) {
            steps.push(Step::run(INITIALISING, own, How::FromCreation));
        } else {
            steps.push(Step::prepare(INITIALISING, "an array is made and filled, unless it is"));
            steps.push(Step::run(INITIALISING, own, How::AtOnce));
        }
    }
    steps.push(Step::prepare(NOMINAL, "an array is made and filled"));
    steps.extend(each(NOMINAL, How::Steady));
    if has_parity {
        steps.push(Step::prepare(DEVICE_DOWN, "a drive is taken out"));
        steps.extend(each(DEVICE_DOWN, How::Steady));
        steps.push(Step::prepare(DEVICE_REBUILD, "the drive is put in again, as an empty one"));
        steps.extend(each(DEVICE_REBUILD, How::InPieces));
    }
    steps
}

/// Whether a workload can go to bands that were never written.
fn is_first_write(own: &Workload) -> bool {
    own.reads == 0
}

/// Carries the procedure out.
///
/// # Errors
/// When it can't be carried out.
pub fn bench_life_cycle(
    options: &Options,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    options.check_array("life-cycle")?;
    let mut report = Report::new(version, command);
    let shelf = super::shelf_for(options, data_strips(options)?, progress)?;
    let has_parity = group(options, shelf.drives.len())?.parities > 0;
    let all = workloads(options.mix);
    setup::tell(&mut report, options, &shelf, &steps(&all, has_parity));
    if options.dry_run {
        return Ok(report);
    }
    let bare = baseline(&mut report, (options, &shelf), &all, LARGEST, progress)?;
    let mut states = vec![State { name: BASELINE, courses: bare }];
    let mut runner = Runner::new(options, &shelf, Yard::make(options, &shelf)?, LARGEST)?;
    let mut cycle = Cycle { runner: &mut runner, is_filled: false };
    let names = [INITIALISING, NOMINAL, DEVICE_DOWN, DEVICE_REBUILD];
    for name in names.into_iter().take(if has_parity { 4 } else { 2 }) {
        cycle.enter(name)?;
        let mut courses = Vec::new();
        for (own, bare) in all.iter().zip(&states[0].courses) {
            progress(&format!("{name}-{}", own.name));
            let course = cycle.course(name, own)?;
            let against = judge::against(options, &shelf, name, own, bare);
            figures::add(&mut report, name, &course, against);
            courses.push(course);
        }
        states.push(State { name, courses });
    }
    if !has_parity {
        let level = options.level;
        report.notes.push(format!("level {level} spares no drive: {DEVICE_DOWN} is left out"));
    }
    tables(&mut report, &shelf, &states);
    Ok(report)
}

/// An array on its way through the states.
struct Cycle<'a, 'b> {
    runner: &'a mut Runner<'b>,
    is_filled: bool,
}

impl Cycle<'_, '_> {
    fn fill(&mut self) -> Result<(), BenchError> {
        self.runner.yard.remake()?;
        self.runner.fill()?;
        self.is_filled = true;
        Ok(())
    }

    fn enter(&mut self, state: &str) -> Result<(), BenchError> {
        match state {
            NOMINAL => self.fill(),
            DEVICE_DOWN => self.runner.yard.fail(),
            _ => Ok(()),
        }
    }

    fn course(&mut self, state: &str, own: &Workload) -> Result<Course, BenchError> {
        match state {
            INITIALISING if is_first_write(own) => {
                self.is_filled = false;
                self.runner.course_from_creation(own)
            }
            INITIALISING => {
                if !self.is_filled {
                    self.fill()?;
                }
                self.runner.course_at_once(own)
            }
            DEVICE_REBUILD => self.runner.course_in(own, &mut Rebuilding::default()),
            _ => self.runner.course(own),
        }
    }
}

/// A course's row of a panel: its figure in the unit of tables, latency, variation, CPU%, and work
/// for each per cent.
fn panel_row(course: &Course) -> [f64; 5] {
    let (_, factor) = course.workload.unit();
    let cpu = course.mean(|own| own.cpu_percent);
    let value = course.value() / factor;
    let latency = course.mean(|own| own.ran.tally.times().mean() / 1e3);
    [value, latency, course.variation().0, cpu, value / cpu]
}

/// Four panels: the bare drives, the state, their ratio, and the difference in per cent.
fn panels(state: &State, bare: &State, figure: &str) -> Table {
    let published = Published::all();
    let columns = [
        "panel",
        "workload",
        "unit",
        "value",
        "latency, us",
        "COV",
        "CPU, %",
        "value per CPU%",
        "published: SupremeRAID",
        "published: CPU product",
    ];
    let mut rows = Vec::new();
    for panel in [BASELINE, state.name, "ratio", "per cent"] {
        for (own, bare) in state.courses.iter().zip(&bare.courses) {
            let name = &own.workload.name;
            let [mine, theirs] = [panel_row(own), panel_row(bare)];
            let each = |of: fn(f64, f64) -> f64| {
                let mut both = mine.into_iter().zip(theirs).map(|(own, bare)| of(own, bare));
                [(); 5].map(|()| both.next().unwrap_or_default())
            };
            let told = |side| published.find(figure, name, side).map(|own| (own.value, &own.unit));
            let told_ratio = |side| match told(side)? {
                (ratio, unit) if unit == "of baseline" => Some(ratio),
                (value, _) => Some(value / told(BASELINE)?.0),
            };
            let is_value = |(value, unit): (f64, &String)| (unit != "of baseline").then_some(value);
            let sides = ["SupremeRAID", "CPU product"];
            let (values, told) = match panel {
                BASELINE => (theirs, [told(BASELINE).and_then(is_value), None]),
                "ratio" => (each(|own, bare| own / bare), sides.map(told_ratio)),
                "per cent" => (
                    each(|own, bare| (own / bare - 1.0) * 100.0),
                    sides.map(|side| told_ratio(side).map(|ratio| (ratio - 1.0) * 100.0)),
                ),
                _ => (mine, sides.map(|side| told(side).and_then(is_value))),
            };
            let mut row = vec![
                Cell::from(panel.to_owned()),
                name.clone().into(),
                own.workload.unit().0.to_owned().into(),
            ];
            let is_known = own.is_known() || panel == BASELINE;
            let finite =
                |value: f64| Cell::from(Some(value).filter(|value| value.is_finite() && is_known));
            row.extend(values.map(finite));
            row.extend(told.map(Cell::from));
            rows.push(row);
        }
    }
    let title = "the bare drives, the state, their ratio, and the difference in per cent";
    setup::table(state.name, title, &columns, rows, published.source("W", figure))
}

/// A figure of each workload in each state.
fn by_state(
    name: &str,
    (title, figure): (&str, &str),
    states: &[State],
    of: impl Fn(&Course) -> f64,
) -> Table {
    let mut columns = vec!["workload", "unit"];
    columns.extend(states.iter().map(|state| state.name));
    let rows = (0..states[0].courses.len()).map(|at| {
        let own = &states[0].courses[at].workload;
        let unit = own.unit().0;
        let mut row = vec![Cell::from(own.name.clone()), unit.to_owned().into()];
        let known = |course: &Course| course.is_known().then(|| of(course));
        row.extend(states.iter().map(|state| Cell::from(known(&state.courses[at]))));
        row
    });
    let source = Published::all().source("W", figure);
    setup::table(name, title, &columns, rows.collect(), source)
}

/// The whole life: each state as it is and in parts of the bare drives.
fn life(states: &[State]) -> Table {
    let columns = ["state", "workload", "unit", "value", "to baseline", "latency, us", "p99, us"];
    let mut rows = Vec::new();
    for state in states {
        let both = state.courses.iter().zip(&states[0].courses);
        for (own, bare) in both.filter(|(own, _)| own.is_known()) {
            let (unit, factor) = own.workload.unit();
            let p99 = own.mean(|own| own.ran.tally.times().below(0.99).0 as f64 / 1e3);
            rows.push(vec![
                Cell::from(state.name.to_owned()),
                own.workload.name.clone().into(),
                unit.to_owned().into(),
                (own.value() / factor).into(),
                (own.value() / bare.value()).into(),
                own.mean(|own| own.ran.tally.times().mean() / 1e3).into(),
                p99.into(),
            ]);
        }
    }
    let source = Published::all().source("W", "Figure 15");
    setup::table("life-cycle", "each state, beside the bare drives", &columns, rows, source)
}

/// What hosts get, and what the drives do for it.
fn drives(states: &[State], count: usize) -> Table {
    let columns = [
        "state",
        "workload",
        "unit",
        "array",
        "drives: reads, MIOPS",
        "drives: writes, MIOPS",
        "a drive: requests, kIOPS",
        "drives' requests for one",
    ];
    let mut rows = Vec::new();
    for state in states {
        for own in state.courses.iter().filter(|own| own.is_known()) {
            let (unit, factor) = own.workload.unit();
            let reads = own.mean(|own| own.for_each(own.asked.reads));
            let writes = own.mean(|own| own.for_each(own.asked.writes));
            let rate = own.mean(|own| own.ran.tally.rate());
            rows.push(vec![
                Cell::from(state.name.to_owned()),
                own.workload.name.clone().into(),
                unit.to_owned().into(),
                (own.value() / factor).into(),
                (rate * reads / 1e6).into(),
                (rate * writes / 1e6).into(),
                (rate * (reads + writes) / 1e3 / count as f64).into(),
                (reads + writes).into(),
            ]);
        }
    }
    let source = Published::all().source("W", "Figure 16");
    let title = "an array and the drives that it is made of";
    setup::table("life-cycle-drives", title, &columns, rows, source)
}

fn tables(report: &mut Report, shelf: &Shelf, states: &[State]) {
    let figures =
        [(NOMINAL, "Figure 10"), (DEVICE_DOWN, "Figure 11"), (DEVICE_REBUILD, "Figure 12")];
    for (name, figure) in figures {
        let state = states.iter().find(|state| state.name == name);
        report.tables.extend(state.map(|state| panels(state, &states[0], figure)));
    }
    let performance = ("each workload by state", "Figures 13 and 14");
    report.tables.push(by_state("performance", performance, states, |own| {
        own.value() / own.workload.unit().1
    }));
    let efficiency = ("each workload by state, for each CPU%", "Figures 13 and 14");
    report.tables.push(by_state("efficiency", efficiency, states, |own| panel_row(own)[4]));
    report.tables.push(life(states));
    report.tables.push(drives(states, shelf.drives.len()));
}

//! `palisade bench scale`: what one host gets of its drives, and two, three and more at once.
//!
//! Hosts *here* are loads of this process, each with as many of the drives as the others. Hosts
//! *there* run `fio --server`, and fio here tells them what to do: each uses its own drives of the
//! same paths, which nobody here can look at. So all of those have to be named as ones whose data
//! may go, and are written once before they are read.
//!
//! The loads are those of the Data24 review's Table 1, for each host.

use super::course::{Course, Loads, Runner};
use super::figures::{self, Against};
use super::options::{Options, Source};
use super::published::Published;
use super::setup::{self, How, Step};
use super::shelf::Shelf;
use super::shelf_for;
use super::yard::Yard;
use crate::error::BenchError;
use crate::fio_load::{self, FioLoad, Reached};
use crate::report::{Cell, Report, Table};
use core::str::FromStr;
use std::path::PathBuf;
use units::format_size;
use workload::{Shape, Workload};

/// Who loads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hosts {
    /// So many loads of this process.
    Here(usize),
    /// Machines that run `fio --server`, by name or address, and port if it is not fio's.
    There(Vec<String>),
}

impl FromStr for Hosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(count) = text.parse() {
            return match count {
                1..=64 => Ok(Self::Here(count)),
                _ => Err("use 1 to 64 hosts".to_owned()),
            };
        }
        let all: Vec<String> = text.split(',').map(str::to_owned).collect();
        let fine = |own: &String| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || ".-:_".contains(c);
            !own.is_empty() && own.chars().all(is_name)
        };
        match all.iter().all(fine) {
            true => Ok(Self::There(all)),
            false => Err("use a number, or ADDR or ADDR:PORT of machines, with commas".to_owned()),
        }
    }
}

impl Hosts {
    fn count(&self) -> usize {
        match self {
            Self::Here(count) => *count,
            Self::There(all) => all.len(),
        }
    }
}

/// The loads of one host (Data24 review, Table 1).
fn workloads() -> [Workload; 4] {
    [
        Workload::sequential("128k-sequential-read", 100, 128 << 10, (16, 16)),
        Workload::sequential("128k-sequential-write", 0, 128 << 10, (1, 32)),
        Workload::random("4k-random-read", 100, 4 << 10, (8, 32)),
        Workload::random("4k-random-write", 0, 4 << 10, (8, 4)),
    ]
}

fn state(hosts: usize) -> String {
    format!("hosts-{hosts}")
}

/// What is done, in order.
fn steps(hosts: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for count in 1..=hosts {
        let hosts = if count == 1 { "a host's".to_owned() } else { format!("{count} hosts'") };
        steps.push(Step::prepare("baseline", &format!("{hosts} drives are filled")));
        steps.extend(workloads().iter().map(|own| {
            let own = Workload { jobs: own.jobs * count, ..own.clone() };
            Step::run("baseline", &own, How::Steady)
        }));
    }
    steps
}

/// Carries the procedure out.
///
/// # Errors
/// When it can't be carried out.
pub fn bench_scale(
    options: &Options,
    hosts: &Hosts,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    options.check_no_peer("scale")?;
    if options.through.is_some() {
        return Err(BenchError::Refused(
            "bench scale measures bare drives: leave --through out, or give it to bench spec-sheet \
             or sweep"
                .to_owned(),
        ));
    }
    let mut report = Report::new(version, command);
    let count = hosts.count();
    let all = match hosts {
        Hosts::Here(_) => here(options, count, &mut report, progress)?,
        Hosts::There(addresses) => there(options, addresses, &mut report, progress)?,
    };
    report.tables.push(parameters(options));
    if !options.dry_run {
        report.tables.push(table(&all));
    }
    Ok(report)
}

/// Adds the courses of so many hosts, beside as many times what one of them got.
fn add(report: &mut Report, all: &mut Vec<Vec<Course>>, courses: Vec<Course>) {
    let count = all.len() + 1;
    for (at, course) in courses.iter().enumerate() {
        let one = all.first().map(|first| first[at].value() * count as f64);
        let against = Against { baseline: one, ..Against::default() };
        figures::add(report, &state(count), course, against);
    }
    all.push(courses);
}

/// Loads of this process.
fn here(
    options: &Options,
    count: usize,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<Vec<Vec<Course>>, BenchError> {
    let drives = options.source.count();
    if !drives.is_multiple_of(count) {
        return Err(BenchError::Refused(format!(
            "{drives} drives are not as many for each of {count} hosts: give a multiple"
        )));
    }
    let shelf = shelf_for(options, drives, progress)?;
    setup::tell(report, options, &shelf, &steps(count));
    let mut all = Vec::new();
    if options.dry_run {
        return Ok(all);
    }
    for hosts in 1..=count {
        let drives = shelf.drives[..drives / count * hosts].to_vec();
        let own = Shelf { drives, ..shelf.clone() };
        let mut runner = Runner::new(
            options,
            &own,
            Yard::bare(options, &own)?,
            workload::target::TURN as usize,
        )?;
        // Each host has its part of the area.
        runner.area = runner.area.min(options.area() / count as u64 * hosts as u64);
        progress(&format!("{}: filling", state(hosts)));
        runner.fill()?;
        let mut courses = Vec::new();
        for one in workloads() {
            progress(&format!("{}-{}", state(hosts), one.name));
            let own = Workload { jobs: one.jobs * hosts, ..one };
            courses.push(runner.course(&own)?);
        }
        add(report, &mut all, courses);
    }
    Ok(all)
}

/// Machines that run fio.
fn there(
    options: &Options,
    addresses: &[String],
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<Vec<Vec<Course>>, BenchError> {
    let paths: Vec<PathBuf> = match &options.source {
        Source::Drives(paths) => paths.clone(),
        Source::Device(path) => vec![path.clone()],
        _ => {
            return Err(BenchError::Refused(
                "other hosts do not reach drives that live in this process: give --drives or \
                 --device, by their paths there"
                    .to_owned(),
            ));
        }
    };
    let Some(area) = options.area else {
        return Err(BenchError::Refused(
            "how large the other hosts' drives are is not known here: give --area, the bytes that \
             are used on each host"
                .to_owned(),
        ));
    };
    if let Some(path) = paths.iter().find(|path| !options.destroy.contains(path)) {
        let what = "it is on other hosts, and can't be looked at from here".to_owned();
        return Err(BenchError::WouldDestroy { path: path.clone(), what });
    }
    fio_load::check()?;
    let shelf = Shelf::none();
    setup::tell(report, options, &shelf, &steps(addresses.len()));
    let mut all = Vec::new();
    if options.dry_run {
        return Ok(all);
    }
    let mut runner = Runner::elsewhere(options, &shelf, area)?;
    let load = |name: &str, shape: Shape, hosts: usize| FioLoad {
        name: name.to_owned(),
        shapes: vec![shape],
        reached: Reached::Files { paths: paths.clone(), start: 0, in_memory: false },
        cores: 1,
        only_counts: false,
        clients: addresses[..hosts].to_vec(),
    };
    progress("filling the drives of all hosts");
    let fill = Shape::one(0, workload::Order::Sequential, 1 << 20, 16, area);
    runner.fill_by(&load("fill", fill, addresses.len()))?;
    for hosts in 1..=addresses.len() {
        let mut courses = Vec::new();
        for own in workloads() {
            progress(&format!("{}-{}", state(hosts), own.name));
            let loads = Loads::Fio(load(&own.name, own.shape(area, options.rate), hosts));
            courses.push(runner.course_of(&own, &loads)?);
        }
        add(report, &mut all, courses);
    }
    Ok(all)
}

/// What each host does.
fn parameters(options: &Options) -> Table {
    let columns =
        ["workload", "size", "reads, %", "jobs", "depth", "seconds", "seconds, published"];
    let row = |own: &Workload| {
        vec![
            Cell::from(own.name.clone()),
            format_size(own.bytes as u64).into(),
            usize::from(own.reads).into(),
            own.jobs.into(),
            own.depth.into(),
            options.timing().counted.as_secs_f64().into(),
            SECONDS.into(),
        ]
    };
    let rows = workloads().iter().map(row).collect();
    let source = Published::all().source("D", "Table 1");
    setup::table("fio-parameters", "what each host does", &columns, rows, source)
}

/// The review's.
const SECONDS: f64 = 300.0;

fn table(all: &[Vec<Course>]) -> Table {
    let published = Published::all();
    let figure = "bandwidth and IOPS";
    let columns =
        ["workload", "hosts", "unit", "value", "of one host's", "published", "of its one host's"];
    let mut rows = Vec::new();
    for at in 0..workloads().len() {
        for (number, courses) in all.iter().enumerate() {
            let own = &courses[at];
            let (unit, factor) = own.workload.unit();
            let side = |hosts: usize| format!("{hosts} hosts");
            let told = |hosts| published.find(figure, &own.workload.name, &side(hosts));
            let told = |hosts| told(hosts).map(|own| own.value);
            rows.push(vec![
                Cell::from(own.workload.name.clone()),
                format!("{}", number + 1).into(),
                unit.to_owned().into(),
                (own.value() / factor).into(),
                (own.value() / all[0][at].value()).into(),
                told(number + 1).into(),
                told(number + 1).zip(told(1)).map(|(own, one)| own / one).into(),
            ]);
        }
    }
    let title = "one host, and more at once";
    setup::table("scale", title, &columns, rows, published.source("D", figure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_a_number_or_machines() {
        assert_eq!("3".parse(), Ok(Hosts::Here(3)));
        let there = |all: &[&str]| Ok(Hosts::There(all.iter().map(|own| (*own).into()).collect()));
        assert_eq!("a.example,10.0.0.1:8766".parse(), there(&["a.example", "10.0.0.1:8766"]));
        for wrong in ["", "0", "65", "a,,b", "a b", "a;b", "--x y"] {
            assert!(wrong.parse::<Hosts>().is_err(), "{wrong}");
        }
    }
}

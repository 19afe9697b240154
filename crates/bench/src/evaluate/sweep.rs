//! `palisade bench sweep`: patterns of requests, each at several numbers of jobs and depths.
//!
//! One drive or a device is measured as it is; of several drives an array is made. Then all
//! patterns run, one after the other, those of the smallest requests first.

use super::course::{Course, Runner};
use super::figures::{self, Against};
use super::options::Options;
use super::published::Published;
use super::setup::{self, How, Step};
use super::yard::Yard;
use super::{data_strips, peer, shelf_for};
use crate::error::BenchError;
use crate::report::{Cell, Report, Table};
use units::{KIB, MIB, format_size};
use workload::Workload;

/// Bytes that are under way at most: more is memory's business.
const MOST_UNDER_WAY: usize = 256 << 20;

/// What is swept.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Bytes of requests.
    pub blocks: Vec<u64>,
    /// Jobs, and requests that each has under way.
    pub pairs: Vec<(usize, usize)>,
}

/// A pattern: its name, the percentage of reads, bytes, and whether it is sequential.
#[derive(Clone, PartialEq, Debug)]
struct Pattern {
    name: String,
    reads: u8,
    bytes: usize,
    is_sequential: bool,
}

/// The patterns of a size: small requests at random places, read, written and mixed; from 64 KiB on
/// read and written; from 1 MiB on one behind the other.
fn patterns(block: u64, mix: u8) -> Vec<Pattern> {
    let size = format_size(block).replace(" KiB", "k").replace(" MiB", "m");
    let order = if block >= MIB { "sequential" } else { "random" };
    let pattern = |what: &str, reads| Pattern {
        name: format!("{size}-{order}-{what}"),
        reads,
        bytes: block as usize,
        is_sequential: block >= MIB,
    };
    let mut all = vec![pattern("read", 100), pattern("write", 0)];
    if block < 64 * KIB {
        all.push(pattern("mixed", mix));
    }
    all
}

impl Pattern {
    fn workload(&self, (jobs, depth): (usize, usize)) -> Workload {
        let name = format!("{}-{jobs}x{depth}", self.name);
        let make = if self.is_sequential { Workload::sequential } else { Workload::random };
        make(&name, self.reads, self.bytes, (jobs, depth))
    }
}

/// Whether as much may be under way.
fn fits(workload: &Workload) -> bool {
    workload.jobs * workload.depth * workload.bytes <= MOST_UNDER_WAY
}

impl Sweep {
    /// All patterns and their workloads, those of the smallest requests first.
    fn plan(&self, mix: u8) -> Vec<(Pattern, Vec<Workload>)> {
        let mut blocks = self.blocks.clone();
        blocks.sort_unstable();
        let each = |pattern: Pattern| {
            let workloads = self.pairs.iter().map(|pair| pattern.workload(*pair)).collect();
            (pattern, workloads)
        };
        blocks.iter().flat_map(|block| patterns(*block, mix)).map(each).collect()
    }

    fn check(&self) -> Result<usize, BenchError> {
        let fine = |block: &u64| block.is_power_of_two() && (4 * KIB..=16 * MIB).contains(block);
        let largest = self.blocks.iter().copied().max().unwrap_or(0);
        let problem = if self.blocks.is_empty() || !self.blocks.iter().all(fine) {
            "--block takes powers of two from 4K to 16M"
        } else if self.pairs.is_empty() || self.pairs.iter().any(|own| own.0 == 0 || own.1 == 0) {
            "--jobs and --depth take as many numbers above 0 each"
        } else {
            return Ok(largest as usize);
        };
        Err(BenchError::Refused(problem.to_owned()))
    }
}

/// Carries the procedure out.
///
/// # Errors
/// When it can't be carried out.
pub fn bench_sweep(
    options: &Options,
    sweep: &Sweep,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    let largest = sweep.check()?;
    if let Some(through) = options.through.filter(|own| largest > own.largest()) {
        return Err(BenchError::Refused(format!(
            "a request over {through} has at most {}: give smaller ones to --block",
            format_size(through.largest() as u64)
        )));
    }
    let is_one = options.is_one();
    let mut report = Report::new(version, command);
    let data = if is_one { 1 } else { data_strips(options)? };
    let shelf = shelf_for(options, data, progress)?;
    let state = match (is_one, shelf.is_device) {
        (true, true) => "remote",
        (true, false) => "single-drive",
        (false, _) if options.through.is_some() => "remote",
        (false, _) => "local",
    };
    let plan = sweep.plan(options.mix);
    let mut steps = vec![Step::prepare(state, "what is measured is filled")];
    let each = plan.iter().flat_map(|(_, own)| own).filter(|own| fits(own));
    let each: Vec<Workload> = each.cloned().collect();
    steps.extend(each.iter().map(|own| Step::run(state, own, How::Steady)));
    steps.extend(peer::steps(options, &each));
    let peers = peer::open(options)?;
    setup::tell(&mut report, options, &shelf, &steps);
    if options.dry_run {
        return Ok(report);
    }
    let yard = match is_one {
        true => Yard::bare(options, &shelf)?,
        false => Yard::make(options, &shelf)?,
    };
    progress("filling");
    let mut runner = Runner::new(options, &shelf, yard, largest)?;
    runner.fill()?;
    let mut all: Vec<(Pattern, Vec<Course>)> = Vec::new();
    for (pattern, workloads) in plan {
        let courses = courses(&mut report, &mut runner, (state, &workloads), progress)?;
        all.push((pattern, courses));
    }
    report.tables.extend(warm_up(&all));
    let (area, is_device) = (runner.area, shelf.is_device);
    drop(runner);
    drop(shelf);
    let sizes = (area, largest);
    let measured = peer::measure_all(&mut report, &peers, (&each, None), sizes, progress)?;
    if is_one && !is_device {
        let courses = all.iter().flat_map(|(_, courses)| courses);
        report.tables.push(table("single-drive", SINGLE, courses, &measured));
    } else {
        let named = |(pattern, courses): &(Pattern, Vec<Course>)| {
            table(&format!("{state}-{}", pattern.name), LOCAL, courses.iter(), &measured)
        };
        report.tables.extend(all.iter().map(named));
    }
    Ok(report)
}

/// Runs a pattern's workloads, without those of which too much would be under way.
fn courses(
    report: &mut Report,
    runner: &mut Runner<'_>,
    (state, workloads): (&str, &[Workload]),
    progress: &dyn Fn(&str),
) -> Result<Vec<Course>, BenchError> {
    let mut courses = Vec::new();
    for workload in workloads {
        if !fits(workload) {
            let most = format_size(MOST_UNDER_WAY as u64);
            report.notes.push(format!(
                "{state}-{} was left out: more than {most} would be under way",
                workload.name
            ));
            continue;
        }
        progress(&format!("{state}-{}", workload.name));
        let course = runner.course(workload)?;
        figures::add(report, state, &course, Against::default());
        courses.push(course);
    }
    Ok(courses)
}

/// A table's document: its figure's name, and whose figures stand beside ours.
type Beside = (&'static str, &'static [&'static str]);

const SINGLE: Beside = ("single drive", &[""]);
const LOCAL: Beside = ("local 4k random read", &["md ", "SupremeRAID "]);

fn table<'a>(
    name: &str,
    (figure, sides): Beside,
    courses: impl Iterator<Item = &'a Course>,
    peers: &[peer::Measured],
) -> Table {
    let published = Published::all();
    let own = ["pattern", "jobs", "depth", "IOPS", "MiB/s", "latency, ms", "CPU, %"];
    let mut columns: Vec<String> = own.map(str::to_owned).to_vec();
    let theirs = sides.iter().flat_map(|side| {
        ["IOPS", "MiB/s", "latency, ms", "CPU, %"].map(|what| format!("{side}{what}"))
    });
    let is_told = |side: &String| {
        published.figures.iter().any(|own| own.figure == figure && own.side == *side)
    };
    let theirs: Vec<String> = theirs.filter(is_told).collect();
    columns.extend(peers.iter().flat_map(|peer| {
        ["IOPS", "latency, ms", "CPU, %"].map(|what| format!("{} {what}", peer.name))
    }));
    columns.extend(theirs.iter().map(|side| format!("published: {side}")));
    let row = |course: &Course| {
        let Workload { name, jobs, depth, .. } = &course.workload;
        let mean = |of: fn(&super::course::Instance) -> f64| Cell::Number(course.mean(of));
        let mut row = vec![
            Cell::Text(name.clone()),
            Cell::from(*jobs),
            Cell::from(*depth),
            mean(|own| own.ran.tally.rate()),
            mean(|own| own.ran.tally.bandwidth() / MIB as f64),
            mean(|own| own.ran.tally.times().mean() / 1e6),
            mean(|own| own.cpu_percent),
        ];
        for peer in peers {
            let own = peer.courses.iter().find(|own| own.workload.name == *name);
            let mean = |of: fn(&super::course::Instance) -> f64| own.map(|own| own.mean(of));
            row.extend([
                Cell::from(mean(|own| own.ran.tally.rate())),
                mean(|own| own.ran.tally.times().mean() / 1e6).into(),
                mean(|own| own.cpu_percent).into(),
            ]);
        }
        let told = |side: &String| published.find(figure, name, side).map(|own| own.value);
        row.extend(theirs.iter().map(|side| Cell::from(told(side))));
        row
    };
    let rows = courses.map(row).collect();
    let source = published.source("S", "tables of patterns");
    setup::table(name, "each number of jobs and depth", &columns, rows, source)
}

/// The windows of the first writes, until they were steady.
fn warm_up(all: &[(Pattern, Vec<Course>)]) -> Option<Table> {
    let writes = all.iter().find(|(pattern, _)| pattern.reads == 0)?.1.first()?;
    let unit = if writes.workload.is_sequential() { "bytes/s" } else { "IOPS" };
    let row =
        |(at, value): (usize, &f64)| vec![Cell::Number(at as f64 + 1.0), Cell::Number(*value)];
    Some(Table {
        name: "warm-up".to_owned(),
        title: format!("windows of {} until it was steady", writes.workload.name),
        columns: vec!["window".to_owned(), unit.to_owned()],
        rows: writes.windows.iter().enumerate().map(row).collect(),
        source: Published::all().source("S", "warm-up"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_patterns_are_those_of_the_comparison() {
        let names: Vec<String> = [4 * KIB, 64 * KIB, MIB]
            .iter()
            .flat_map(|block| patterns(*block, 70))
            .map(|pattern| pattern.name)
            .collect();
        let wanted = [
            "4k-random-read",
            "4k-random-write",
            "4k-random-mixed",
            "64k-random-read",
            "64k-random-write",
            "1m-sequential-read",
            "1m-sequential-write",
        ];
        assert_eq!(names, wanted);
    }

    #[test]
    fn what_can_not_be_swept_is_refused() {
        let sweep = |blocks: &[u64], pairs: &[(usize, usize)]| {
            Sweep { blocks: blocks.to_vec(), pairs: pairs.to_vec() }.check().is_ok()
        };
        assert!(sweep(&[4096], &[(1, 1)]));
        for (blocks, pairs) in
            [(&[][..], &[(1, 1)][..]), (&[512], &[(1, 1)]), (&[4096], &[]), (&[4096], &[(0, 1)])]
        {
            assert!(!sweep(blocks, pairs), "{blocks:?} {pairs:?}");
        }
    }
}

//! `palisade bench rebuild`: how fast a drive that was put in is filled, idle and beside hosts, and
//! what hosts get meanwhile.
//!
//! In this order: in memory, beside the same traffic without an array (a strip of every other drive
//! is read, and one written), so that only the engine's own work is between them; on the drives
//! that are measured, idle; beside the job of Xinnor's and Solidigm's report; beside the workloads
//! of every state.
//!
//! - Of the bare drive's write rate: `rebuild-idle-paced`, or `rebuild-idle-drives`.
//! - `rebuild-load-host` is what hosts get beside a rebuild, of what they get while that drive is
//!   down; `rebuild-load-rebuild` is the rebuild's speed beside them, of its idle speed. Without
//!   any reuse their sum (`rebuild-load-sum`) is 1 at most, as the drives' time is theirs together.
//! - Write amplification is what drives wrote to their flash for what they were given; paced drives
//!   tell.

use super::course::{Asked, Instance, Runner};
use super::judge::{DEVICE_DOWN, DEVICE_REBUILD, NOMINAL};
use super::options::{Loader, Options, Source};
use super::published::Published;
use super::setup::{self, How, Step};
use super::shelf::Shelf;
use super::states::Rebuilding;
use super::yard::{LOOK, Yard};
use super::{data_strips, figures, group};
use crate::error::{BenchError, is_to_go_on};
use crate::generated::Span;
use crate::report::{Cell, Report, Table};
use crate::rig::{Env, Rig};
use crate::stats::Spread;
use drives::SharedDrive;
use io::{Drive as _, Env as _, Pool, Priority};
use pace::spec::Steady;
use std::cell::Cell as Shared;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use units::{CoreId, MIB};
use workload::{Order, Shape, mean, workloads};

/// Bytes of a request of the report's job.
const JOB_BYTES: usize = 1 << 20;
/// Its writers, its readers, and requests that each has under way.
const JOB: (usize, usize, usize) = (38, 90, 64);
/// Bytes that are under way at most, and in parts of the area: the job is scaled to them.
const MOST_UNDER_WAY: u64 = 256 << 20;
const PART_UNDER_WAY: u64 = 16;

/// Requests under way of the bare traffic.
const TRAFFIC: usize = 32;

/// A rebuild without hosts.
#[derive(Clone, Copy, Debug)]
struct Idle {
    /// Bytes a second.
    speed: f64,
    /// How long it took.
    time: Duration,
    /// Bytes written to flash, for those given.
    waf: Option<f64>,
}

/// One load beside a rebuild.
struct Beside {
    what: String,
    /// Reads and writes of hosts, in bytes a second.
    host: [f64; 2],
    iops: f64,
    p99_us: f64,
    /// The rebuild's speed.
    speed: f64,
    waf: Option<f64>,
}

fn mean_of<T>(all: &[T], of: impl Fn(&T) -> f64) -> f64 {
    mean(&all.iter().map(of).collect::<Vec<_>>())
}

fn waf(asked: &Asked, shelf: &Shelf) -> Option<f64> {
    let is_told = shelf.model.is_some() && asked.written > 0;
    is_told.then(|| asked.nand as f64 / asked.written as f64)
}

/// Writers, readers and depth of the report's job, scaled so that not too much is under way.
fn job(area: u64) -> (usize, usize, usize) {
    let (writers, readers, depth) = JOB;
    let (jobs, bytes) = (writers + readers, JOB_BYTES as u64);
    let most = (MOST_UNDER_WAY.min(area / PART_UNDER_WAY) / bytes).max(2) as usize;
    match depth.min(most / jobs) {
        0 => {
            let writers = (most * writers / jobs).max(1);
            (writers, most - writers, 1)
        }
        depth => (writers, readers, depth),
    }
}

/// What is done, in order.
fn steps(options: &Options) -> Vec<Step> {
    let (writers, readers, depth) = job(options.area());
    let job = |state, how| {
        let what = format!("1m-sequential: {writers} writers and {readers} readers");
        Step { state, what, load: Some((writers + readers, depth)), how }
    };
    let idle = |what: &str| Step { how: How::AtOnce, ..Step::prepare(DEVICE_REBUILD, what) };
    let mut steps = vec![
        Step::prepare(NOMINAL, "an array in memory is made and filled"),
        idle("idle, in memory, beside the same traffic without an array"),
    ];
    steps.push(Step::prepare(NOMINAL, "an array of the drives is made and filled"));
    steps.push(idle("idle"));
    steps.push(job(DEVICE_DOWN, How::AtOnce));
    steps.push(job(DEVICE_REBUILD, How::InPieces));
    let each = workloads(options.mix);
    steps.extend(each.iter().map(|own| Step::run(DEVICE_REBUILD, own, How::InPieces)));
    steps
}

/// Carries the procedure out.
///
/// # Errors
/// When it can't be carried out.
pub fn bench_rebuild(
    options: &Options,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    options.check_array("rebuild")?;
    let mut report = Report::new(version, command);
    let data = data_strips(options)?;
    if group(options, options.source.count())?.parities == 0 {
        return Err(BenchError::Refused(format!(
            "level {} has nothing to fill a drive from: choose 1, 5, 6 or 10",
            options.level
        )));
    }
    let shelf = super::shelf_for(options, data, progress)?;
    setup::tell(&mut report, options, &shelf, &steps(options));
    if options.dry_run {
        return Ok(report);
    }
    let mut rows = Vec::new();
    in_memory(&mut report, options, &shelf, &mut rows, progress)?;
    let rate = drive_rate(options, &shelf, progress)?;
    let yard = Yard::make(options, &shelf)?;
    let mut runner = Runner::new(options, &shelf, yard, JOB_BYTES)?;
    runner.fill()?;
    let mut idle = Vec::new();
    for _ in 0..options.instances {
        progress("rebuild-idle");
        idle.push(rebuild(&runner)?);
    }
    tell_idle(&mut report, &shelf, &idle, rate);
    rows.push(idle_row("palisade", &shelf, &idle, rate));
    report.tables.push(idle_table(rows));
    let speed = mean_of(&idle, |own| own.speed);
    let mut beside = vec![job_beside(&mut report, &mut runner, speed, progress)?];
    for own in workloads(options.mix) {
        progress(&format!("{DEVICE_REBUILD}-{}", own.name));
        let mut state = Rebuilding::default();
        let course = runner.course_in(&own, &mut state)?;
        figures::add(&mut report, DEVICE_REBUILD, &course, figures::Against::default());
        let last = course.instances().last().expect("there are instances");
        beside.push(Beside::of(&own.name, last, state.speed(), &shelf));
    }
    report.tables.push(load_table(&beside, speed));
    Ok(report)
}

/// Fills the drive of slot 0 while nothing else is asked for.
fn rebuild(runner: &Runner<'_>) -> Result<Idle, BenchError> {
    let drive = &runner.shelf.drives[0];
    let (before, given) = (runner.asked()?, drive.io_counts().write_bytes);
    let begun = Instant::now();
    runner.yard.begin_rebuild()?;
    while runner.yard.is_rebuilding()? {
        is_to_go_on(&runner.options.stop)?;
        std::thread::sleep(LOOK);
    }
    let time = begun.elapsed();
    let bytes = drive.io_counts().write_bytes - given;
    let speed = bytes as f64 / time.as_secs_f64();
    Ok(Idle { speed, time, waf: waf(&runner.asked()?.since(before), runner.shelf) })
}

/// What the bare drive writes in a second.
fn drive_rate(
    options: &Options,
    shelf: &Shelf,
    progress: &dyn Fn(&str),
) -> Result<Option<f64>, BenchError> {
    if let Some((model, slower)) = shelf.model {
        let bytes = JOB_BYTES as u64;
        let rate = model.rate(Steady { reads: 0.0, bytes, depth: 64 });
        return Ok(Some(rate * bytes as f64 / f64::from(slower)));
    }
    if matches!(options.source, Source::Memory { .. }) {
        return Ok(None);
    }
    progress("what a bare drive writes");
    let one = Shelf { drives: shelf.drives[..1].to_vec(), ..shelf.clone() };
    let runner = Runner::new(options, &one, Yard::bare(options, &one)?, JOB_BYTES)?;
    let shape = Shape::one(0, Order::Sequential, JOB_BYTES, TRAFFIC, runner.area);
    let span = Span::of(options.timing().counted);
    let ran = runner.yard.rig().generate(&runner.yard.aim(runner.turn), shape, span, 1)?;
    Ok(Some(ran.tally.bandwidth()))
}

/// An array in memory, beside the same traffic without one.
fn in_memory(
    report: &mut Report,
    options: &Options,
    shelf: &Shelf,
    rows: &mut Vec<Vec<Cell>>,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let (count, bytes) = (shelf.drives.len(), memory_bytes(options, shelf));
    let source = Source::Memory { bytes, count };
    let memory =
        Options { source, load: Loader::Own, through: None, keep: None, ..options.clone() };
    let memory_shelf = Shelf::open(&memory, 1, |_| Ok(0.0))?;
    let yard = Yard::make(&memory, &memory_shelf)?;
    let runner = Runner::new(&memory, &memory_shelf, yard, JOB_BYTES)?;
    runner.fill()?;
    let others = group(options, count)?.data;
    let (mut idle, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..options.instances {
        progress("rebuild-idle-memory");
        let own = rebuild(&runner)?;
        let bare = traffic(runner.yard.rig(), &memory_shelf, others as usize, options.strip)?;
        ratios.push(own.speed / bare);
        idle.push(own);
    }
    report.add("rebuild-idle-memory", "ratio", Spread::of(ratios), None);
    let speeds = Spread::of(idle.iter().map(|own| own.speed / 1e9));
    report.add("rebuild-idle-memory-speed", "GB/s", speeds, None);
    rows.push(idle_row("palisade, in memory", &memory_shelf, &idle, None));
    Ok(())
}

/// Bytes of each drive in memory: as large as those that are measured, if they are no larger than
/// what is used of them.
fn memory_bytes(options: &Options, shelf: &Shelf) -> u64 {
    let own = shelf.drives.iter().map(|drive| drive.info().bytes).min().unwrap_or(0);
    own.min(options.area().min(units::GIB) / 2).max(32 * MIB)
}

/// Reads a strip of `others` drives and writes one to another, all over the drives, without an
/// array: bytes that were written in a second.
fn traffic(rig: &Rig, shelf: &Shelf, others: usize, strip: u32) -> Result<f64, BenchError> {
    let drives: Vec<SharedDrive> = shelf.drives[..=others].to_vec();
    let (start, bytes, strip) = (shelf.start, shelf.bytes, strip as usize);
    let (sender, answer) = mpsc::channel();
    rig.on_core(CoreId(0), move |env, _| {
        let drives: Rc<[_]> = drives.iter().map(|drive| env.bind(drive)).collect();
        let (next, running) = (Rc::new(Shared::new(0)), Rc::new(Shared::new(TRAFFIC)));
        let begun = Instant::now();
        for _ in 0..TRAFFIC {
            let (drives, next, running) = (drives.clone(), next.clone(), running.clone());
            let sender = sender.clone();
            env.spawn(Priority::First, async move {
                let is_done = strips(&drives, start, bytes, strip, &next).await;
                running.set(running.get() - 1);
                if running.get() == 0 || !is_done {
                    let _ = sender.send((is_done, begun.elapsed()));
                }
            });
        }
    });
    let (is_done, time) = answer.recv().map_err(|_| BenchError::CoreGone)?;
    if !is_done {
        return Err(BenchError::Failed(1));
    }
    let whole = bytes / strip as u64 * strip as u64;
    Ok(whole as f64 / time.as_secs_f64())
}

/// One task of the bare traffic; whether all requests succeeded.
async fn strips(
    drives: &[<Env as io::Env>::Drive],
    start: u64,
    bytes: u64,
    strip: usize,
    next: &Shared<u64>,
) -> bool {
    let pool = Pool::new(strip, 2);
    let [mut into, out] = [(); 2].map(|()| pool.take(strip).expect("it has two pieces"));
    let out = out.freeze();
    let Some((first, others)) = drives.split_first() else { return true };
    while next.get() + strip as u64 <= bytes {
        let at = start + next.replace(next.get() + strip as u64);
        for drive in others {
            let result;
            (result, into) = drive.read(at, into).await;
            if result.is_err() {
                return false;
            }
        }
        if first.write(at, core::slice::from_ref(&out), false).await.is_err() {
            return false;
        }
    }
    true
}

impl Beside {
    fn of(what: &str, own: &Instance, speed: f64, shelf: &Shelf) -> Self {
        let tally = &own.ran.tally;
        let seconds = (tally.time.0 as f64 / 1e9).max(f64::MIN_POSITIVE);
        Self {
            what: what.to_owned(),
            host: [&tally.reads, &tally.writes].map(|side| side.bytes as f64 / seconds),
            iops: tally.rate(),
            p99_us: tally.times().below(0.99).0 as f64 / 1e3,
            speed,
            waf: waf(&own.asked, shelf),
        }
    }

    /// Nothing of one in which nothing was done.
    fn row(&self, idle: f64) -> Vec<Cell> {
        let known = |value: f64| Cell::from((self.iops > 0.0).then_some(value));
        vec![
            Cell::from(self.what.clone()),
            known(self.speed / 1e9),
            known(self.speed / idle),
            known(self.host[0] / 1e9),
            known(self.host[1] / 1e9),
            known(self.iops),
            known(self.p99_us),
            self.waf.into(),
        ]
    }

    fn both(&self) -> f64 {
        self.host.iter().sum()
    }
}

/// The report's job while a drive is down, and while it is being filled.
fn job_beside(
    report: &mut Report,
    runner: &mut Runner<'_>,
    idle: f64,
    progress: &dyn Fn(&str),
) -> Result<Beside, BenchError> {
    let (writers, readers, depth) = job(runner.area);
    if (writers, readers, depth) != JOB {
        report.notes.push(format!(
            "the job of the report by Xinnor and Solidigm has {} writers and {} readers of depth \
             {}; here these are {writers}, {readers} and {depth}",
            JOB.0, JOB.1, JOB.2
        ));
    }
    let shape = |reads, jobs| Shape {
        jobs,
        ..Shape::one(reads, Order::Sequential, JOB_BYTES, depth, runner.area)
    };
    let shapes = [shape(0, writers), shape(100, readers)];
    let loads = runner.loads_of("1m-job", shapes.to_vec());
    let shelf = runner.shelf;
    progress(&format!("{DEVICE_DOWN}, beside the job"));
    runner.yard.fail()?;
    let instances = runner.options.instances;
    let what = format!("1 MB: {writers} writers, {readers} readers");
    let one = |own: &Instance, speed| Beside::of(&what, own, speed, shelf);
    let mut down = Vec::new();
    for _ in 0..instances {
        down.push(one(&runner.loads(&loads)?, 0.0));
    }
    let mut all = Vec::new();
    for _ in 0..instances {
        progress(&format!("{DEVICE_REBUILD}, beside the job"));
        let mut state = Rebuilding::default();
        let instance = runner.loads_in(&loads, &mut state)?;
        all.push(one(&instance, state.speed()));
    }
    let (host, p99) = (mean_of(&down, Beside::both), mean_of(&down, |own| own.p99_us));
    let is_known = all.iter().all(|own| own.iops > 0.0);
    if !is_known {
        let why = "a rebuild beside the job was over too soon: give a larger --area";
        for name in ["host", "rebuild", "sum", "p99", "waf"] {
            report.leave_open(&format!("rebuild-load-{name}"), why);
        }
        return all.pop().ok_or(BenchError::CoreGone);
    }
    let mut add = |name: &str, unit, each: &dyn Fn(&Beside) -> f64| {
        report.add(&format!("rebuild-load-{name}"), unit, Spread::of(all.iter().map(each)), None);
    };
    add("host", "ratio", &|own| own.both() / host);
    add("rebuild", "ratio", &|own| own.speed / idle);
    add("sum", "ratio", &|own| own.both() / host + own.speed / idle);
    add("p99", "ratio", &|own| own.p99_us / p99);
    add("p99-us", "us", &|own| own.p99_us);
    add("host-reads", "GB/s", &|own| own.host[0] / 1e9);
    add("host-writes", "GB/s", &|own| own.host[1] / 1e9);
    add("speed", "GB/s", &|own| own.speed / 1e9);
    tell_waf(report, "rebuild-load-waf", all.iter().map(|own| own.waf));
    all.pop().ok_or(BenchError::CoreGone)
}

fn tell_waf(report: &mut Report, name: &str, all: impl Iterator<Item = Option<f64>>) {
    match all.collect::<Option<Vec<f64>>>() {
        Some(all) => report.add(name, "ratio", Spread::of(all), None),
        None => report.leave_open(name, "these drives do not tell what they write to their flash"),
    }
}

fn tell_idle(report: &mut Report, shelf: &Shelf, idle: &[Idle], rate: Option<f64>) {
    let name = if shelf.model.is_some() { "rebuild-idle-paced" } else { "rebuild-idle-drives" };
    if let Some(rate) = rate {
        let shares = Spread::of(idle.iter().map(|own| own.speed / rate));
        report.add(name, "ratio", shares, None);
    }
    let speeds = Spread::of(idle.iter().map(|own| own.speed / 1e9));
    report.add("rebuild-idle-speed", "GB/s", speeds, None);
    tell_waf(report, "rebuild-waf", idle.iter().map(|own| own.waf));
}

fn idle_row(what: &str, shelf: &Shelf, idle: &[Idle], rate: Option<f64>) -> Vec<Cell> {
    let speed = mean_of(idle, |own| own.speed);
    // A whole drive of the model, at full speed.
    let hours =
        shelf.model.map(|(model, slower)| model.bytes.value / (speed * f64::from(slower)) / 3600.0);
    let drives = shelf.drives.len();
    let waf = idle.first().and_then(|own| own.waf);
    vec![
        Cell::from(what.to_owned()),
        drives.into(),
        mean_of(idle, |own| own.time.as_secs_f64()).into(),
        (speed / 1e9).into(),
        rate.map(|rate| speed / rate).into(),
        waf.into(),
        hours.into(),
    ]
}

fn idle_table(mut rows: Vec<Vec<Cell>>) -> Table {
    let published = Published::all();
    for side in ["md", "xiRAID"] {
        let told = |what: &str| published.find("Table 1", "rebuild", &format!("{side} {what}"));
        let value = |what| Cell::from(told(what).map(|own| own.value));
        let drives = told("hours").and_then(|own| own.drives).map(f64::from);
        let share = told("GB/s").map(|own| own.value / X_WRITES);
        rows.push(vec![
            Cell::from(format!("published: {side}")),
            drives.into(),
            Cell::Nothing(()),
            value("GB/s"),
            share.into(),
            value("WAF"),
            value("hours"),
        ]);
    }
    let columns =
        ["what", "drives", "seconds", "GB/s", "of the drive's writes", "WAF", "hours for a drive"];
    let source = published.source("X", "Table 1");
    setup::table("rebuild-idle", "a drive is filled, and hosts are idle", &columns, rows, source)
}

/// What X's drives write in a second, by their maker, in GB.
const X_WRITES: f64 = 3.3;

fn load_table(beside: &[Beside], idle: f64) -> Table {
    let published = Published::all();
    let mut rows: Vec<Vec<Cell>> = beside.iter().map(|own| own.row(idle)).collect();
    for side in ["md", "xiRAID"] {
        let told = |figure: &str, what: &str, of: &str| {
            published.find(figure, what, &format!("{side} {of}")).map(|own| own.value)
        };
        let speed = told("Table 2", "rebuild", "GB/s");
        let share = speed.zip(told("Table 1", "rebuild", "GB/s")).map(|(own, idle)| own / idle);
        rows.push(vec![
            Cell::from(format!("published: {side}, 1 MB: 38 writers, 90 readers")),
            speed.into(),
            share.into(),
            told("Table 2", "read", "GB/s").into(),
            told("Table 2", "write", "GB/s").into(),
            Cell::Nothing(()),
            Cell::Nothing(()),
            told("Table 2", "rebuild", "WAF").into(),
        ]);
    }
    let columns = [
        "beside",
        "rebuild, GB/s",
        "of idle",
        "hosts read, GB/s",
        "hosts write, GB/s",
        "hosts, IOPS",
        "hosts' p99, us",
        "WAF",
    ];
    let source = published.source("X", "Table 2");
    setup::table("rebuild-load", "a drive is filled beside hosts", &columns, rows, source)
}

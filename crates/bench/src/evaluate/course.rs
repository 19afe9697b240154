//! One workload in one state: first until it is steady, then the instances that count.
//!
//! States of a course: *settling*, in windows, until the last five are steady or there were too
//! many → *counting*, as many instances as were asked for → where instances or seconds vary by more
//! than [`VARIES`], once more as many → over. All instances are kept; the last ones count. An
//! instance in which a load had no request tells nothing: it is run again for twice as long, and so
//! on for up to [`LONGEST_WAIT`].
//!
//! A state of an array that ends by itself is entered again and again ([`Passing`]), until an
//! instance has all its time: it is made of *pieces*. A piece in which the state ended is thrown
//! away. One in which a state just entered ended was too long: all pieces are thrown away and take
//! half as long from then on. Nothing settles there.
//!
//! Drives' counters are read before an instance's first request and behind its last, so that they
//! are of all its requests. The machine's CPU time is that of the time that counts.

use super::cpu::Ticks;
use super::options::{Loader, Options, Timing};
use super::shelf::Shelf;
use super::yard::Yard;
use crate::error::BenchError;
use crate::fio_load::{self, FioLoad};
use crate::generated::{Ran, Span, meanwhile};
use crate::rig::Rig;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{MIB, Nanos};
use workload::{Shape, Share, Steadiness, Tally, Workload, cov, mean};

/// The coefficient of variation from which instances are run again.
pub const VARIES: f64 = 0.05;

/// The shortest piece of a state that ends by itself.
const SHORTEST: Duration = Duration::from_millis(5);
/// The longest such state that an instance is made of, in pieces.
const MOST_PIECES: usize = 100;
/// The longest that a request is waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Times that it is made longer in which requests of a piece do not count yet.
const MOST_WARMS: usize = 4;
/// Pieces that an instance has at least.
const PIECES: u32 = 10;

/// Parts of an instance that its own variation is taken of: seconds, or tenths where it is short.
fn interval(counted: Duration) -> Duration {
    if counted >= Duration::from_secs(5) { Duration::from_secs(1) } else { counted / 10 }
}

/// What drives were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// Reads.
    pub reads: u64,
    /// Writes, of zeros too.
    pub writes: u64,
    /// Of these, in-flight pages.
    pub pages: u64,
    /// Of these, a journal's batches.
    pub batches: u64,
    /// Bytes written.
    pub written: u64,
    /// Bytes that paced drives wrote to their flash.
    pub nand: u64,
}

impl Asked {
    /// Writes without an array's own pages and batches, which may be counted before the drive does.
    pub fn own_writes(&self) -> u64 {
        self.writes.saturating_sub(self.pages + self.batches)
    }

    /// What came since.
    pub fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            pages: self.pages - before.pages,
            batches: self.batches - before.batches,
            written: self.written - before.written,
            nand: self.nand - before.nand,
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            pages: self.pages + other.pages,
            batches: self.batches + other.batches,
            written: self.written + other.written,
            nand: self.nand + other.nand,
        }
    }
}

/// One instance.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its requests, and the cores' time.
    pub ran: Ran,
    /// The machine's CPUs, in per cent.
    pub cpu_percent: f64,
    /// What of that the data cores only looked around.
    pub looking_percent: f64,
    /// What drives were asked for.
    pub asked: Asked,
    /// Whether that is all: another process may ask bare drives without our knowing.
    pub is_asked_here: bool,
    /// Whether all its time was in the state that it is of.
    pub is_whole: bool,
    /// Whether it was not steady, or varied too much, and was run again.
    pub is_flagged: bool,
}

impl Instance {
    /// Requests a second, or bytes.
    pub fn value(&self, workload: &Workload) -> f64 {
        let tally = &self.ran.tally;
        if workload.is_sequential() { tally.bandwidth() } else { tally.rate() }
    }

    /// So many of something, for each of its requests.
    pub fn for_each(&self, count: u64) -> f64 {
        count as f64 / self.ran.tally.made.max(1) as f64
    }

    /// The time of one of its series' values.
    pub fn interval(&self) -> Duration {
        let tally = &self.ran.tally;
        Duration::from_nanos(tally.time.0 / tally.series.len().max(1) as u64)
    }

    /// Adds what came of a later piece.
    fn then(&mut self, next: &Self) {
        let [own, more] = [self.ran.tally.time, next.ran.tally.time].map(|time| time.0 as f64);
        let mean = |a: f64, b: f64| (a * own + b * more) / (own + more);
        self.cpu_percent = mean(self.cpu_percent, next.cpu_percent);
        self.looking_percent = mean(self.looking_percent, next.looking_percent);
        self.ran.then(&next.ran);
        self.asked = self.asked.and(next.asked);
    }

    /// Requests in each interval.
    fn seconds(&self) -> Vec<f64> {
        self.ran.tally.series.iter().map(|count| *count as f64).collect()
    }
}

/// What a workload came to in a state.
#[derive(Clone, Debug)]
pub struct Course {
    /// The workload.
    pub workload: Workload,
    /// How steady it was before its instances.
    pub steadiness: Steadiness,
    /// The windows until then.
    pub windows: Vec<f64>,
    /// All instances, in their order.
    pub all: Vec<Instance>,
    /// How many of the last ones count.
    pub counted: usize,
}

impl Course {
    /// The instances that count.
    pub fn instances(&self) -> &[Instance] {
        &self.all[self.all.len() - self.counted..]
    }

    /// The mean of the instances of something about them.
    pub fn mean(&self, of: impl Fn(&Instance) -> f64) -> f64 {
        mean(&self.instances().iter().map(of).collect::<Vec<_>>())
    }

    /// Whether requests were done in each instance that counts.
    pub fn is_known(&self) -> bool {
        self.instances().iter().all(|own| own.ran.tally.operations() > 0)
    }

    /// Whether what drives were asked for is all known.
    pub fn is_asked_here(&self) -> bool {
        self.instances().iter().all(|own| own.is_asked_here)
    }

    /// The mean of the instances that count: requests a second, or bytes.
    pub fn value(&self) -> f64 {
        self.mean(|own| own.value(&self.workload))
    }

    /// Values of the instances that count.
    pub fn values(&self) -> Vec<f64> {
        self.instances().iter().map(|own| own.value(&self.workload)).collect()
    }

    /// How much instances vary, and how much their seconds do.
    pub fn variation(&self) -> (f64, f64) {
        variation(self.instances(), &self.workload)
    }
}

/// How much instances vary, and on average the seconds within one.
fn variation(instances: &[Instance], workload: &Workload) -> (f64, f64) {
    let values: Vec<f64> = instances.iter().map(|own| own.value(workload)).collect();
    let seconds: Vec<f64> = instances.iter().map(|own| cov(&own.seconds())).collect();
    (cov(&values), mean(&seconds))
}

/// A state that ends by itself, as a rebuild does.
pub trait Passing {
    /// Enters it.
    ///
    /// # Errors
    /// When it can't be entered.
    fn enter(&mut self, runner: &mut Runner<'_>) -> Result<(), BenchError>;
    /// Whether it goes on. Asked for before each piece and behind it.
    ///
    /// # Errors
    /// When nobody says.
    fn holds(&mut self, runner: &Runner<'_>) -> Result<bool, BenchError>;
    /// The last piece counts.
    fn keep(&mut self) {}
    /// No piece counts so far.
    fn drop_all(&mut self) {}
}

/// Loads beside each other, ready to be made.
pub enum Loads {
    /// By our generator: each core's share of each.
    Own(Vec<Vec<Share>>),
    /// By fio.
    Fio(FioLoad),
}

/// Who runs courses.
pub struct Runner<'a> {
    /// What is asked for.
    pub options: &'a Options,
    /// The drives.
    pub shelf: &'a Shelf,
    /// The cores, with an array or without.
    pub yard: Yard<'a>,
    /// Bytes that are used.
    pub area: u64,
    /// Bytes of one bare drive before the next one's turn.
    pub turn: u64,
    /// Where fio's jobs are, and how many there were.
    jobs: Option<(PathBuf, Cell<usize>)>,
    /// Gone with it.
    _dir: Option<tempfile::TempDir>,
}

impl<'a> Runner<'a> {
    /// Over as much of what there is as is asked for; requests have at most `largest` bytes.
    ///
    /// # Errors
    /// Where fio is to make them: when it is not here, or has no room for its jobs.
    pub fn new(
        options: &'a Options,
        shelf: &'a Shelf,
        yard: Yard<'a>,
        largest: usize,
    ) -> Result<Self, BenchError> {
        let turn = (largest as u64).max(workload::target::TURN).next_power_of_two();
        let area = options.area().min(yard.bytes()) / (MIB * 4) * (MIB * 4);
        let mut runner = Self { options, shelf, yard, area, turn, jobs: None, _dir: None };
        if options.load == Loader::Fio {
            runner.find_room()?;
        }
        Ok(runner)
    }

    /// For loads that fio makes on other hosts, over so many bytes of each.
    ///
    /// # Errors
    /// As [`Runner::new`].
    pub fn elsewhere(
        options: &'a Options,
        shelf: &'a Shelf,
        area: u64,
    ) -> Result<Self, BenchError> {
        let (yard, turn) = (Yard::bare(options, shelf)?, workload::target::TURN);
        let mut runner = Self { options, shelf, yard, area, turn, jobs: None, _dir: None };
        runner.find_room()?;
        Ok(runner)
    }

    /// Finds a folder for fio's jobs.
    fn find_room(&mut self) -> Result<(), BenchError> {
        fio_load::check()?;
        let path = match &self.options.keep {
            Some(keep) => keep.clone(),
            None => {
                let made = self._dir.insert(fio_load::temporary()?);
                made.path().to_owned()
            }
        };
        // Jobs of an earlier runner are kept.
        let count = std::fs::read_dir(&path).map_or(0, Iterator::count);
        self.jobs = Some((path, Cell::new(count)));
        Ok(())
    }

    /// Writes all of the area once.
    ///
    /// # Errors
    /// When a request fails.
    pub fn fill(&self) -> Result<(), BenchError> {
        self.yard.hosts().fill(&self.yard.aim(self.turn), self.area)
    }

    /// What drives were asked for so far.
    ///
    /// # Errors
    /// When a core is gone.
    pub fn asked(&self) -> Result<Asked, BenchError> {
        let guard = self.yard.guard_writes()?;
        let mut sum = Asked { pages: guard.pages, batches: guard.batches, ..Asked::default() };
        for drive in &self.shelf.drives {
            let own = drive.io_counts();
            sum.reads += own.reads;
            sum.writes += own.writes;
            sum.written += own.write_bytes;
            sum.nand += drive.pace().map_or(0, |pace| pace.nand_bytes());
        }
        Ok(sum)
    }

    /// A workload as a load.
    pub fn load(&self, workload: &Workload) -> Loads {
        self.loads_of(&workload.name, vec![workload.shape(self.area, self.options.rate)])
    }

    /// Loads beside each other; `name` is what they are called together.
    pub fn loads_of(&self, name: &str, shapes: Vec<Shape>) -> Loads {
        match self.options.load {
            Loader::Own => {
                let rig = self.yard.hosts();
                Loads::Own(shapes.into_iter().map(|shape| rig.shares(shape)).collect())
            }
            Loader::Fio => {
                let (name, cores) = (name.to_owned(), self.options.cores);
                let reached = self.yard.reached();
                let (only_counts, clients) = (false, Vec::new());
                Loads::Fio(FioLoad { name, shapes, reached, cores, only_counts, clients })
            }
        }
    }

    /// Where fio's next job is, and its number.
    fn next_job(&self) -> (&Path, usize) {
        let (dir, count) = self.jobs.as_ref().expect("fio has a folder");
        (dir, count.replace(count.get() + 1))
    }

    /// Has fio ask once for each byte.
    ///
    /// # Errors
    /// As [`FioLoad::run`].
    pub fn fill_by(&self, load: &FioLoad) -> Result<(), BenchError> {
        let (interval, stop) = (Duration::from_secs(1), &self.options.stop);
        let tallies = load.run(self.next_job(), None, interval, stop)?;
        match tallies.iter().map(|own| own.failed).sum() {
            0 => Ok(()),
            failed => Err(BenchError::Failed(failed)),
        }
    }

    /// Makes the loads: what they came to, and the machine's CPU time when they began to count and
    /// when they ended.
    fn made(&self, loads: &Loads, span: Span, seed: u64) -> Result<(Ran, [Ticks; 2]), BenchError> {
        let load = match loads {
            Loads::Own(loads) => {
                return self.made_here(loads, span, seed);
            }
            Loads::Fio(load) if !self.yard.is_made() => load.clone(),
            // An array that was made anew is served elsewhere.
            Loads::Fio(load) => FioLoad { reached: self.yard.reached(), ..load.clone() },
        };
        let (rig, stop) = (self.yard.rig(), &self.options.stop);
        let first = Ticks::now();
        let counted = Some(span.counted);
        let (each, cpu, cores) =
            rig.beside(|| load.run(self.next_job(), counted, span.interval, stop));
        let each = each?;
        let tally = Tally::of(&each);
        match tally.failed {
            0 => Ok((Ran { tally, each, cpu, cores }, [first, Ticks::now()])),
            failed => Err(BenchError::Failed(failed)),
        }
    }

    /// As [`Runner::made`], of our own loads.
    fn made_here(
        &self,
        loads: &[Vec<Share>],
        span: Span,
        seed: u64,
    ) -> Result<(Ran, [Ticks; 2]), BenchError> {
        let (aim, stop) = (self.yard.aim(self.turn), &self.options.stop);
        let look = || (Ticks::now(), self.yard.served_by().map(Rig::counts));
        let hosts = self.yard.hosts();
        let (mut ran, [first, last]) =
            hosts.generate_beside(&aim, (loads, seed), span, stop, &look)?;
        if let (Some(from), Some(to)) = (&first.1, &last.1) {
            ran.cores.extend(meanwhile(from, to));
        }
        Ok((ran, [first.0, last.0]))
    }

    /// One run of so long.
    fn run(&self, loads: &Loads, span: Span, seed: u64) -> Result<Instance, BenchError> {
        let before = self.asked()?;
        let (ran, [first, last]) = self.made(loads, span, seed)?;
        let busy = last.percent_since(&first);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let looking: Nanos = Nanos(ran.cores.iter().map(|core| core.looking.0).sum());
        let looking_percent = looking.0 as f64 * 100.0 / span.counted.as_nanos() as f64 / cpus;
        let asked = self.asked()?.since(before);
        let cpu_percent = (busy - looking_percent).max(0.0);
        let is_asked_here = matches!(loads, Loads::Own(_)) || self.yard.is_made();
        let (is_whole, is_flagged) = (true, false);
        Ok(Instance {
            ran,
            cpu_percent,
            looking_percent,
            asked,
            is_asked_here,
            is_whole,
            is_flagged,
        })
    }

    /// Runs a workload: until it is steady, and then its instances.
    ///
    /// # Errors
    /// When a request fails, or the run is to end.
    pub fn course(&mut self, workload: &Workload) -> Result<Course, BenchError> {
        let loads = self.load(workload);
        let Timing { window, windows: most, .. } = self.options.timing();
        let (mut windows, mut steadiness) = (Vec::new(), Steadiness::Few);
        while !steadiness.is_steady() && windows.len() < most {
            let seed = 1_000 + windows.len() as u64;
            let span = Span { interval: window, ..Span::of(window) };
            windows.push(self.run(&loads, span, seed)?.value(workload));
            steadiness = Steadiness::of(&windows);
        }
        Ok(Course { steadiness, windows, ..self.course_of(workload, &loads)? })
    }

    /// Runs a workload's instances.
    ///
    /// # Errors
    /// As [`Runner::course`].
    pub fn course_at_once(&mut self, workload: &Workload) -> Result<Course, BenchError> {
        self.course_of(workload, &self.load(workload))
    }

    /// Runs a workload's instances as loads that were made for them.
    ///
    /// # Errors
    /// As [`Runner::course`].
    pub fn course_of(&mut self, workload: &Workload, loads: &Loads) -> Result<Course, BenchError> {
        self.instances(workload, |runner, seed| {
            let span = |counted| Span { interval: interval(counted), ..Span::of(counted) };
            runner.patiently(|runner, counted| runner.run(loads, span(counted), seed))
        })
    }

    /// Runs a workload's instances, each on an array of its own, from its creation on.
    ///
    /// # Errors
    /// As [`Runner::course`].
    pub fn course_from_creation(&mut self, workload: &Workload) -> Result<Course, BenchError> {
        let loads = self.load(workload);
        self.instances(workload, |runner, seed| {
            runner.patiently(|runner, counted| {
                runner.yard.remake()?;
                let warm = Duration::ZERO;
                runner.run(&loads, Span { warm, counted, interval: interval(counted) }, seed)
            })
        })
    }

    /// Runs a workload's instances in a state that ends by itself. One that ends too soon has no
    /// requests.
    ///
    /// # Errors
    /// As [`Runner::course`].
    pub fn course_in(
        &mut self,
        workload: &Workload,
        state: &mut dyn Passing,
    ) -> Result<Course, BenchError> {
        let loads = self.load(workload);
        let mut piece = self.first_piece();
        self.instances(workload, |runner, seed| runner.in_pieces(&loads, &mut piece, state, seed))
    }

    /// Runs loads beside each other in a state that ends by itself, for one instance.
    ///
    /// # Errors
    /// As [`Runner::course_in`].
    pub fn loads_in(
        &mut self,
        loads: &Loads,
        state: &mut dyn Passing,
    ) -> Result<Instance, BenchError> {
        self.in_pieces(loads, &mut self.first_piece(), state, 0)
    }

    /// Runs loads beside each other for one instance.
    ///
    /// # Errors
    /// As [`Runner::course`].
    pub fn loads(&mut self, loads: &Loads) -> Result<Instance, BenchError> {
        let warm = self.warm(loads)?;
        self.patiently(|runner, counted| {
            let warm = Span::of(counted).warm.max(warm);
            runner.run(loads, Span { warm, counted, interval: interval(counted) }, 0)
        })
    }

    /// Runs loads once, for so long.
    ///
    /// # Errors
    /// As [`Runner::course`].
    pub fn once(
        &self,
        loads: &Loads,
        counted: Duration,
        seed: u64,
    ) -> Result<Instance, BenchError> {
        self.run(loads, Span { interval: counted, ..Span::of(counted) }, seed)
    }

    /// How long it takes until loads are answered as fast as they ask: twice what a request takes.
    fn warm(&mut self, loads: &Loads) -> Result<Duration, BenchError> {
        let window = self.options.timing().window;
        let run = self.patiently_from(window, |runner, counted| runner.once(loads, counted, 0))?;
        Ok(Duration::from_nanos(2 * run.ran.tally.times().mean() as u64))
    }

    /// Runs for an instance's time, and for longer where that was not enough for a request.
    fn patiently(
        &mut self,
        one: impl FnMut(&mut Self, Duration) -> Result<Instance, BenchError>,
    ) -> Result<Instance, BenchError> {
        self.patiently_from(self.options.timing().counted, one)
    }

    /// Runs for so long, and for twice as long again and again until each load had a request.
    fn patiently_from(
        &mut self,
        mut counted: Duration,
        mut one: impl FnMut(&mut Self, Duration) -> Result<Instance, BenchError>,
    ) -> Result<Instance, BenchError> {
        loop {
            let run = one(self, counted)?;
            if run.ran.has_all() || counted > LONGEST_WAIT {
                return Ok(run);
            }
            counted *= 2;
        }
    }

    fn first_piece(&self) -> Duration {
        self.options.timing().counted / PIECES
    }

    fn in_pieces(
        &mut self,
        loads: &Loads,
        piece: &mut Duration,
        state: &mut dyn Passing,
        seed: u64,
    ) -> Result<Instance, BenchError> {
        let counted = self.options.timing().counted;
        let mut all: Option<Instance> = None;
        let (mut is_fresh, mut pieces) = (false, 0);
        let (mut warm, mut warms) = (Duration::ZERO, 0);
        state.drop_all();
        while pieces < MOST_PIECES {
            if all.as_ref().is_some_and(|own| own.ran.tally.time.0 >= counted.as_nanos() as u64) {
                break;
            }
            if !state.holds(self)? {
                state.enter(self)?;
                is_fresh = true;
            }
            let span = Span::of(*piece);
            let span = Span { interval: *piece, warm: warm.max(span.warm), ..span };
            let run = self.run(loads, span, seed << 16 | pieces as u64)?;
            // Requests that take long are answered as fast as they come only some time later.
            let latency = match run.ran.has_all() {
                false => piece.as_nanos() as f64,
                true => run.ran.tally.times().mean(),
            };
            if 2.0 * latency > span.warm.as_nanos() as f64 && warms < MOST_WARMS {
                warm = Duration::from_nanos(3 * latency as u64).max(2 * warm);
                warms += 1;
                is_fresh = false;
                continue;
            }
            if state.holds(self)? {
                state.keep();
                pieces += 1;
                is_fresh = false;
                match &mut all {
                    Some(all) => all.then(&run),
                    None => all = Some(run),
                }
            } else if is_fresh {
                *piece /= 2;
                (all, pieces) = (None, 0);
                state.drop_all();
                if *piece < SHORTEST {
                    // It is over before anything can be measured: nothing is known of it.
                    let nothing = Ran { tally: Tally::default(), ..run.ran };
                    return Ok(Instance { ran: nothing, is_whole: false, ..run });
                }
            }
        }
        let mut all = all.expect("there is a piece");
        all.is_whole = all.ran.tally.time.0 >= counted.as_nanos() as u64;
        Ok(all)
    }

    /// Instances, and once more as many if they vary.
    fn instances(
        &mut self,
        workload: &Workload,
        mut one: impl FnMut(&mut Self, u64) -> Result<Instance, BenchError>,
    ) -> Result<Course, BenchError> {
        let count = self.options.timing().instances;
        let mut all: Vec<Instance> = Vec::new();
        for seed in 0..count as u64 {
            all.push(one(self, seed)?);
        }
        let (between, within) = variation(&all, workload);
        if between > VARIES || within > VARIES {
            all.iter_mut().for_each(|own| own.is_flagged = true);
            for seed in count as u64..2 * count as u64 {
                all.push(one(self, seed)?);
            }
        }
        let (workload, steadiness, windows) = (workload.clone(), Steadiness::Few, Vec::new());
        Ok(Course { workload, steadiness, windows, all, counted: count })
    }
}

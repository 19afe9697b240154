//! One workload in one state: first until it is steady, then the instances that count.
//!
//! States of a course: *settling*, in windows, until the last five are steady or there were too
//! many → *counting*, as many instances as were asked for → where instances or seconds vary by more
//! than [`VARIES`], once more as many → over. All instances are kept; the last ones count.
//!
//! Drives' counters are read before an instance's first request and behind its last, so that they
//! are of all its requests. The machine's CPU time is that of the time that counts.

use super::cpu::Ticks;
use super::options::{Options, Timing};
use super::shelf::Shelf;
use super::yard::Yard;
use crate::error::BenchError;
use crate::generated::{Ran, Span};
use std::time::Duration;
use units::{MIB, Nanos};
use workload::{Share, Steadiness, Workload, cov, mean};

/// The coefficient of variation from which instances are run again.
pub const VARIES: f64 = 0.05;

/// The shortest instance beside a rebuild.
const SHORTEST: Duration = Duration::from_millis(10);

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
    /// Whether it was not steady, or varied too much, and was run again.
    pub is_flagged: bool,
}

impl Instance {
    /// Requests a second, or bytes.
    pub fn value(&self, workload: &Workload) -> f64 {
        let tally = &self.ran.tally;
        if workload.is_sequential() { tally.bandwidth() } else { tally.rate() }
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
    /// The length of an instance's intervals.
    pub interval: Duration,
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

/// Who runs courses.
pub struct Runner<'a> {
    /// What is asked for.
    pub options: &'a Options,
    /// The drives.
    pub shelf: &'a Shelf,
    /// The cores, with an array or without.
    pub yard: &'a Yard<'a>,
    /// Bytes that are used.
    pub area: u64,
    /// Bytes of one bare drive before the next one's turn.
    pub turn: u64,
}

impl<'a> Runner<'a> {
    /// Over as much of what there is as is asked for; requests have at most `largest` bytes.
    pub fn new(options: &'a Options, shelf: &'a Shelf, yard: &'a Yard<'a>, largest: usize) -> Self {
        let turn = (largest as u64).max(workload::target::TURN).next_power_of_two();
        let area = options.area().min(yard.bytes()) / (MIB * 4) * (MIB * 4);
        Self { options, shelf, yard, area, turn }
    }

    /// Writes all of the area once.
    ///
    /// # Errors
    /// When a request fails.
    pub fn fill(&self) -> Result<(), BenchError> {
        self.yard.rig().fill(&self.yard.aim(self.turn), self.area)
    }

    fn asked(&self) -> Asked {
        let counts = self.shelf.drives.iter().map(|drive| drive.io_counts());
        counts.fold(Asked::default(), |sum, own| Asked {
            reads: sum.reads + own.reads,
            writes: sum.writes + own.writes,
        })
    }

    fn shares(&self, workload: &Workload) -> Vec<Share> {
        self.yard.rig().shares(workload.shape(self.area, self.options.rate))
    }

    /// One run of so long.
    fn run(
        &self,
        shares: &[Share],
        counted: Duration,
        interval: Duration,
        seed: u64,
    ) -> Result<Instance, BenchError> {
        let span = Span { interval, ..Span::of(counted) };
        let asked = self.asked();
        let aim = self.yard.aim(self.turn);
        let stop = &self.options.stop;
        let rig = self.yard.rig();
        let (ran, [before, after]) =
            rig.generate_beside(&aim, (shares, seed), span, stop, &Ticks::now)?;
        let busy = after.percent_since(&before);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let looking: Nanos = Nanos(ran.cores.iter().map(|core| core.looking.0).sum());
        let looking_percent = looking.0 as f64 * 100.0 / counted.as_nanos() as f64 / cpus;
        let now = self.asked();
        let asked = Asked { reads: now.reads - asked.reads, writes: now.writes - asked.writes };
        let cpu_percent = (busy - looking_percent).max(0.0);
        Ok(Instance { ran, cpu_percent, looking_percent, asked, is_flagged: false })
    }

    /// Runs a workload: until it is steady, and then its instances.
    ///
    /// # Errors
    /// When a request fails, or the run is to end.
    pub fn course(&self, workload: &Workload) -> Result<Course, BenchError> {
        let Timing { window, windows: most, counted, instances } = self.options.timing();
        let shares = self.shares(workload);
        let (mut windows, mut steadiness) = (Vec::new(), Steadiness::Few);
        while !steadiness.is_steady() && windows.len() < most {
            let seed = 1_000 + windows.len() as u64;
            windows.push(self.run(&shares, window, window, seed)?.value(workload));
            steadiness = Steadiness::of(&windows);
        }
        let interval = interval(counted);
        let round = |from: u64| -> Result<Vec<Instance>, BenchError> {
            let seeds = from..from + instances as u64;
            seeds.map(|seed| self.run(&shares, counted, interval, seed)).collect()
        };
        let mut all = round(0)?;
        let (between, within) = variation(&all, workload);
        if between > VARIES || within > VARIES {
            all.iter_mut().for_each(|own| own.is_flagged = true);
            all.extend(round(instances as u64)?);
        }
        let workload = workload.clone();
        Ok(Course { workload, steadiness, windows, all, counted: instances, interval })
    }

    /// Runs a workload only while a drive is being filled: an instance in which that ends is thrown
    /// away, and takes half as long when it is run again beside the next rebuild. There are no
    /// windows: a rebuild's time is too short for them.
    ///
    /// # Errors
    /// When a request fails, the run is to end, or a rebuild is over too soon.
    pub fn course_in_rebuild(&self, workload: &Workload) -> Result<Course, BenchError> {
        let Timing { mut counted, instances, .. } = self.options.timing();
        let shares = self.shares(workload);
        let mut all: Vec<Instance> = Vec::new();
        while all.len() < instances {
            if !self.yard.is_rebuilding()? {
                self.yard.begin_rebuild()?;
            }
            let run = self.run(&shares, counted, counted / 10, all.len() as u64)?;
            if self.yard.is_rebuilding()? {
                all.push(run);
            } else {
                counted /= 2;
                // Shorter ones are of the same length.
                all.clear();
            }
            if counted < SHORTEST {
                return Err(BenchError::Refused(
                    "the drives are filled too soon to measure anything beside: give a larger \
                     --area"
                        .to_owned(),
                ));
            }
        }
        let (workload, interval) = (workload.clone(), counted / 10);
        let (steadiness, windows) = (Steadiness::Few, Vec::new());
        Ok(Course { workload, steadiness, windows, all, counted: instances, interval })
    }
}

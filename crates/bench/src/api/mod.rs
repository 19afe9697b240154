//! `palisade bench api`: what the management interface gives, and what it takes from hosts.
//!
//! The daemon is this very program as a child, on sparse files, and is asked over HTTPS on the
//! loopback device by an account made for it. Four daemons, one data core each: one with the
//! usual number of drives, arrays and volumes, one with many volumes, and two, with counters and
//! without, whose hosts take turns. Hosts come over NVMe/TCP and read 4 KiB at random places,
//! [`DEPTH`] at a time.
//!
//! - [`client`]: HTTPS and streams of events. [`daemon`]: the child. [`served`], [`listed`],
//!   [`counted`]: what is measured on which daemon.
//!
//! Invariant: the daemons and their folders go when the procedure ends, whatever it comes to.

pub(crate) mod client;
mod counted;
pub(crate) mod daemon;
mod listed;
mod served;

use crate::error::BenchError;
use crate::nvme_tcp::Cpus;
use crate::nvme_tcp::client::Shape;
use crate::report::{Goal, Report};
use crate::stats::{Round, Sample, Spread, rate_ratio};
use daemon::{Daemon, Host};
use std::path::PathBuf;
use std::time::Duration;
use units::MIB;

/// Commands of a host in flight.
const DEPTH: usize = 32;
/// What a host asks for.
const SHAPE: Shape = Shape { is_write: false, bytes: 4 << 10, depth: DEPTH };
/// Bytes of each volume.
const VOLUME_BYTES: u64 = 4 * MIB;
/// Bytes of the volume that a host reads.
const HOST_BYTES: u64 = 64 * MIB;
/// CPU of the hosts; the data core has the one before it.
const HOST_CPU: usize = 1;
/// Turns that each side has within a round.
const TURNS: u32 = 4;

/// What each result should come to.
const GOALS: [(&str, Goal); 10] = [
    ("api-get-p50-ms", Goal::AtMost(1.0)),
    ("api-get-p99-ms", Goal::AtMost(5.0)),
    ("api-get-loaded-p99-ms", Goal::AtMost(20.0)),
    ("api-list-1000-volumes-ms", Goal::AtMost(50.0)),
    ("api-event-p99-ms", Goal::AtMost(100.0)),
    ("api-host-iops", Goal::AtLeast(0.97)),
    ("api-counters-iops", Goal::AtLeast(0.99)),
    ("api-idle-cpu", Goal::AtMost(0.01)),
    ("api-login-ms", Goal::AtMost(500.0)),
    ("api-memory-mib", Goal::AtMost(32.0)),
];

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct ApiBench {
    /// Rounds of each result, at least 1.
    pub rounds: usize,
    /// Time of a round, of each side where there are two.
    pub span: Duration,
    /// Time for which an idle daemon is watched, three times.
    pub idle: Duration,
    /// Arrays, of four drives each.
    pub arrays: usize,
    /// Volumes, on all arrays together.
    pub volumes: usize,
    /// Volumes of the daemon with many.
    pub listed: usize,
    /// A directory for the drives, in a file system in memory.
    pub dir: PathBuf,
    /// The program that is measured.
    pub program: PathBuf,
}

impl Default for ApiBench {
    fn default() -> Self {
        Self {
            rounds: 9,
            span: Duration::from_secs(1),
            idle: Duration::from_secs(10),
            arrays: 8,
            volumes: 256,
            listed: 1000,
            dir: "/dev/shm".into(),
            program: "/proc/self/exe".into(),
        }
    }
}

impl ApiBench {
    fn check(&self) -> Result<(), BenchError> {
        let problem = if self.rounds == 0 || self.span.is_zero() || self.idle.is_zero() {
            "at least one round of some time is needed"
        } else if !(1..=8).contains(&self.arrays) {
            "give 1 to 8 arrays"
        } else if self.volumes < 1 || self.listed < 1 || self.listed > 125 * self.arrays {
            "give at least one volume, and 125 of each array at most"
        } else if self.volumes > 125 * self.arrays {
            "give 125 volumes of each array at most"
        } else {
            return Ok(());
        };
        Err(BenchError::Usage(problem.to_owned()))
    }

    /// Whether goals stand for a run of this size.
    fn is_whole(&self) -> bool {
        let usual = Self::default();
        self.rounds >= 5
            && self.span >= Duration::from_millis(500)
            && self.idle >= Duration::from_secs(5)
            && (self.arrays, self.volumes, self.listed)
                == (usual.arrays, usual.volumes, usual.listed)
    }

    fn start(&self, name: &str, arrays: usize, counters: bool) -> Result<Daemon, BenchError> {
        let (program, dir) = (&*self.program, &*self.dir);
        let (width, asks) = (daemon::WIDTH, None);
        Daemon::start(&daemon::Start { program, dir, name, arrays, width, counters, asks })
    }
}

/// A run under way.
struct Run<'a> {
    options: &'a ApiBench,
    report: Report,
    cpus: Cpus,
    progress: &'a dyn Fn(&str),
}

impl Run<'_> {
    /// Adds a result of [`GOALS`]; goals stand for whole runs alone.
    fn add(&mut self, name: &str, unit: &'static str, spread: Option<Spread>) {
        let goal = GOALS.iter().find(|(own, _)| *own == name).map(|(_, goal)| *goal);
        let goal = goal.filter(|_| self.options.is_whole());
        self.report.add(name, unit, spread, goal);
    }

    /// Adds a result that has no goal.
    fn tell(&mut self, name: &str, unit: &'static str, values: &[f64]) {
        self.report.add(name, unit, Spread::of(values.iter().copied()), None);
    }

    /// Adds the ratio of two sides' rates, and the sides.
    fn add_sides(&mut self, name: &str, sides: [&str; 2], rounds: &[Round]) {
        self.add(name, "ratio", rate_ratio(rounds));
        let samples: [fn(&Round) -> Sample; 2] = [|round| round.a, |round| round.b];
        for (side, sample) in sides.into_iter().zip(samples) {
            let rates: Vec<f64> = rounds.iter().map(|round| sample(round).rate()).collect();
            self.tell(&format!("{name}-{side}"), "iops", &rates);
            let cpu: Vec<f64> = rounds.iter().map(|round| sample(round).cpu_micros()).collect();
            self.tell(&format!("{name}-{side}-cpu-us"), "us", &cpu);
        }
    }

    /// Rounds of two sides that take turns; `side` measures B where its argument is true.
    fn rounds(
        &self,
        side: impl FnMut(bool, Duration, u64) -> Result<Sample, BenchError>,
    ) -> Result<Vec<Round>, BenchError> {
        take_turns((self.options.rounds, TURNS), self.options.span, side)
    }
}

/// So many rounds, of so many turns each; a round gives either side this time. `side` measures B
/// where its argument is true.
pub(crate) fn take_turns(
    (count, turns): (usize, u32),
    span: Duration,
    mut side: impl FnMut(bool, Duration, u64) -> Result<Sample, BenchError>,
) -> Result<Vec<Round>, BenchError> {
    let (mut rounds, span) = (Vec::new(), span / turns);
    // The first round does not count: memory and tables are warm afterwards.
    for round in 0..=count as u64 {
        let mut own = Round::default();
        for turn in 0..u64::from(turns) {
            let first = (round + turn) % 2 == 1;
            for is_b in [first, !first] {
                let sample = side(is_b, span, round * u64::from(turns) + turn)?;
                let sum = if is_b { &mut own.b } else { &mut own.a };
                *sum = sum.and(sample);
            }
        }
        rounds.extend((round > 0).then_some(own));
    }
    Ok(rounds)
}

/// What a host reads in this time; the CPU time is the daemon's.
pub(crate) fn read(
    daemon: &Daemon,
    host: &mut Host,
    cpus: &Cpus,
    span: Duration,
    seed: u64,
) -> Result<Sample, BenchError> {
    let before = daemon.cpu();
    let bytes = host.bytes;
    let queue = &mut host.queue;
    let work = || {
        cpus.pin(HOST_CPU);
        queue.run(SHAPE, bytes, span, seed)
    };
    let sample = std::thread::scope(|scope| ended(scope.spawn(work).join()))?;
    Ok(Sample { cpu: daemon.cpu().saturating_sub(before), ..sample })
}

/// What a thread came to. A panic of it goes on here.
fn ended<T>(outcome: std::thread::Result<T>) -> T {
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The value that a share of them does not exceed.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Carries the benchmark out. `version` and `command` go into the report; `progress` is told
/// what happens, a line each.
///
/// # Errors
/// When a daemon can't be started, or a request fails.
pub fn bench_api(
    options: &ApiBench,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    let report = Report::new(version, command);
    let mut run = Run { options, report, cpus: Cpus::find(), progress };
    let drives = options.arrays * daemon::WIDTH;
    run.report.notes.push(format!(
        "{drives} drives, {} arrays, {} volumes; {} volumes listed",
        options.arrays, options.volumes, options.listed
    ));
    if !options.is_whole() {
        run.report
            .notes
            .push("no goals: fewer rounds, less time or fewer volumes than usual".into());
    }
    served::measure(&mut run)?;
    listed::measure(&mut run)?;
    counted::measure(&mut run)?;
    Ok(run.report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let mut values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.5), 100.0);
        assert_eq!(percentile(&mut values, 0.99), 198.0);
        assert_eq!(percentile(&mut [7.0], 0.5), 7.0);
        assert_eq!(percentile(&mut [7.0], 0.99), 7.0);
        assert!(percentile(&mut [], 0.99).is_nan());
    }

    #[test]
    fn goals_stand_for_whole_runs_alone() {
        let usual = ApiBench::default();
        assert!(usual.is_whole() && usual.check().is_ok());
        for less in [
            ApiBench { rounds: 4, ..usual.clone() },
            ApiBench { span: Duration::from_millis(499), ..usual.clone() },
            ApiBench { idle: Duration::from_secs(4), ..usual.clone() },
            ApiBench { volumes: 255, ..usual.clone() },
            ApiBench { listed: 999, ..usual.clone() },
        ] {
            assert!(!less.is_whole() && less.check().is_ok(), "{less:?}");
        }
        for wrong in [
            ApiBench { rounds: 0, ..usual.clone() },
            ApiBench { arrays: 9, ..usual.clone() },
            ApiBench { listed: 1001, ..usual.clone() },
            ApiBench { volumes: 0, ..usual.clone() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}

//! `palisade bench health`: what looking after drives takes from hosts.
//!
//! The daemon is this very program as a child, with one array of sparse files and a host over
//! NVMe/TCP, as in [`crate::api`]. In place of each drive a stand-in answers NVMe's admin commands:
//! all else is what a daemon does with real drives. Side A is the daemon while it asks nobody, side
//! B the same daemon while it asks every drive each second; it is told so by its configuration and
//! SIGHUP, between turns.
//!
//! Invariants
//! - Both sides are one process with one array, one host and the same memory.
//! - A turn counts only if drives were asked in it as its side says, by the times that the daemon
//!   itself tells; else it is taken again, [`TRIES`] times in all, and then there is no report.

use crate::api::client::{Client, failed};
use crate::api::daemon::{Daemon, Host, Start, until};
use crate::api::{read, take_turns};
use crate::error::BenchError;
use crate::nvme_tcp::Cpus;
use crate::report::{Goal, Report};
use crate::stats::{Round, Sample, Spread, rate_ratio};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use units::MIB;

/// Seconds between two looks at a drive, where drives are asked.
const OFTEN: u64 = 1;
/// The same where they are not: longer than any run.
const SELDOM: u64 = 3600;
/// No drive that is to be asked every [`OFTEN`] is not asked for so long.
const QUIET: Duration = Duration::from_millis(1300);
/// Turns that each side has within a round.
const TURNS: u32 = 2;
/// How often a turn is taken at most: on a busy machine a question may come late.
const TRIES: usize = 5;
/// How often either side is watched while no host reads.
const WATCHES: usize = 3;
/// Bytes of the volume that the host reads.
const HOST_BYTES: u64 = 64 * MIB;
/// The share of its rate that a host keeps at least.
const GOAL: Goal = Goal::AtLeast(0.99);

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct HealthBench {
    /// Rounds, at least 1.
    pub rounds: usize,
    /// Time of a round, of each side.
    pub span: Duration,
    /// Time for which an idle daemon is watched, three times on each side.
    pub idle: Duration,
    /// Drives of the array.
    pub drives: usize,
    /// A directory for the drives, in a file system in memory.
    pub dir: PathBuf,
    /// The program that is measured.
    pub program: PathBuf,
}

impl Default for HealthBench {
    fn default() -> Self {
        Self {
            rounds: 9,
            span: Duration::from_secs(4),
            idle: Duration::from_secs(5),
            drives: 24,
            dir: "/dev/shm".into(),
            program: "/proc/self/exe".into(),
        }
    }
}

impl HealthBench {
    fn check(&self) -> Result<(), BenchError> {
        let problem = if self.rounds == 0 || self.span.is_zero() || self.idle.is_zero() {
            "at least one round of some time is needed"
        } else if !(3..=64).contains(&self.drives) {
            "give 3 to 64 drives"
        } else {
            return Ok(());
        };
        Err(BenchError::Usage(problem.to_owned()))
    }

    /// Whether goals stand for a run of this size.
    fn is_whole(&self) -> bool {
        self.rounds >= 5
            && self.span >= Duration::from_secs(4)
            && self.drives == Self::default().drives
    }
}

/// A daemon, and whether it asks.
struct Asked {
    daemon: Daemon,
    client: Client,
    is_on: bool,
}

impl Asked {
    fn new(daemon: Daemon) -> Result<Self, BenchError> {
        let client = daemon.connect()?;
        Ok(Self { daemon, client, is_on: false })
    }

    /// When each drive was asked last.
    fn times(&mut self) -> Result<Vec<String>, BenchError> {
        self.daemon.asked(&mut self.client)
    }

    /// Has it ask, or not, and waits until it does.
    fn turn(&mut self, on: bool) -> Result<(), BenchError> {
        if self.is_on == on {
            return Ok(());
        }
        self.is_on = on;
        self.daemon.ask_every(if on { OFTEN } else { SELDOM })?;
        let mut before = self.times()?;
        let look = || {
            if !on {
                std::thread::sleep(QUIET);
            }
            let now = self.times()?;
            let is_so = match on {
                true => differ(&before, &now),
                false => before == now,
            };
            if !on {
                before = now;
            }
            Ok(is_so.then_some(()))
        };
        let what = if on { "asks not every drive" } else { "asks on" };
        until(look, || failed(&"looking after drives", &what))
    }

    /// What happens while it asks, or not; it is looked whether it did.
    fn during<T>(
        &mut self,
        on: bool,
        mut work: impl FnMut(&Daemon) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.turn(on)?;
        for _ in 0..TRIES {
            let (before, start) = (self.times()?, Instant::now());
            let outcome = work(&self.daemon)?;
            let is_long = start.elapsed() >= QUIET;
            let after = self.times()?;
            let is_so = match on {
                true => !is_long || differ(&before, &after),
                false => before == after,
            };
            if is_so {
                return Ok(outcome);
            }
        }
        let what = if on { "drives were not asked" } else { "drives were asked" };
        Err(failed(&"a turn", &what))
    }
}

/// Whether all of these times are others.
fn differ(before: &[String], after: &[String]) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| !after.is_empty() && before != after)
}

/// Carries the benchmark out. `version` and `command` go into the report; `progress` is told what
/// happens, a line each.
///
/// # Errors
/// When the daemon can't be started, a request fails, or it asks drives when it is not to.
pub fn bench_health(
    options: &HealthBench,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    progress("making a daemon with an array");
    let how = Start {
        program: &options.program,
        dir: &options.dir,
        name: "health",
        arrays: 1,
        width: options.drives,
        counters: true,
        asks: Some(SELDOM),
    };
    let daemon = Daemon::start(&how)?;
    let (mut host, cpus) = (daemon.host(HOST_BYTES)?, Cpus::find());
    let mut asked = Asked::new(daemon)?;
    let rounds = rounds(options, &mut asked, (&mut host, &cpus), progress)?;
    drop(host);
    progress("no host reads");
    let watched = watch(options, &mut asked)?;
    let mut report = Report::new(version, command);
    add(options, &mut report, &rounds, &watched);
    Ok(report)
}

fn rounds(
    options: &HealthBench,
    asked: &mut Asked,
    (host, cpus): (&mut Host, &Cpus),
    progress: &dyn Fn(&str),
) -> Result<Vec<Round>, BenchError> {
    progress("a host while drives are asked, and while they are not");
    take_turns((options.rounds, TURNS), options.span, |on, span, seed| -> Result<Sample, _> {
        asked.during(on, |daemon| read(daemon, host, cpus, span, seed))
    })
}

/// Milliseconds of CPU time that each second takes more while drives are asked.
fn watch(options: &HealthBench, asked: &mut Asked) -> Result<Vec<f64>, BenchError> {
    let mut all = Vec::new();
    for _ in 0..WATCHES {
        let mut share = |on| {
            asked.during(on, |daemon| {
                let (before, start) = (daemon.cpu(), Instant::now());
                std::thread::sleep(options.idle);
                let used = daemon.cpu().saturating_sub(before);
                Ok(used.as_secs_f64() / start.elapsed().as_secs_f64())
            })
        };
        let (off, on) = (share(false)?, share(true)?);
        all.push((on - off) * 1e3 * OFTEN as f64);
    }
    Ok(all)
}

fn add(options: &HealthBench, report: &mut Report, rounds: &[Round], watched: &[f64]) {
    let goal = options.is_whole().then_some(GOAL);
    report.add("health-iops", "ratio", rate_ratio(rounds), goal);
    let more = |round: &Round| round.b.cpu_micros() - round.a.cpu_micros();
    report.add("health-cpu-us", "us", Spread::of(rounds.iter().map(more)), None);
    for (side, is_on) in [("off", false), ("on", true)] {
        let sample = |round: &Round| if is_on { round.b } else { round.a };
        let rates = rounds.iter().map(|round| sample(round).rate());
        report.add(&format!("health-iops-{side}"), "iops", Spread::of(rates), None);
        let cpu = rounds.iter().map(|round| sample(round).cpu_micros());
        report.add(&format!("health-iops-{side}-cpu-us"), "us", Spread::of(cpu), None);
    }
    report.add("health-look-cpu-ms", "ms", Spread::of(watched.iter().copied()), None);
    report.notes.push(format!(
        "{} drives, each asked every {OFTEN} s or not at all; stand-ins answer",
        options.drives
    ));
    if !options.is_whole() {
        report.notes.push("no goal: fewer rounds, less time or other drives than usual".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_drives_have_to_be_asked_again() {
        let times = |all: &[&str]| all.iter().map(|time| (*time).to_owned()).collect::<Vec<_>>();
        let before = times(&["1", "", "3"]);
        assert!(differ(&before, &times(&["2", "1", "4"])));
        for not_all in [&["1", "1", "4"], &["2", "", "4"], &["2", "1", "3"]] {
            assert!(!differ(&before, &times(not_all)), "{not_all:?}");
        }
        assert!(!differ(&before, &times(&["2", "1"])), "one is not there");
    }

    #[test]
    fn goals_stand_for_whole_runs_alone() {
        let usual = HealthBench::default();
        assert!(usual.is_whole() && usual.check().is_ok());
        for less in [
            HealthBench { rounds: 4, ..usual.clone() },
            HealthBench { span: Duration::from_millis(3999), ..usual.clone() },
            HealthBench { drives: 23, ..usual.clone() },
        ] {
            assert!(!less.is_whole() && less.check().is_ok(), "{less:?}");
        }
        for wrong in [
            HealthBench { rounds: 0, ..usual.clone() },
            HealthBench { drives: 2, ..usual.clone() },
            HealthBench { drives: 65, ..usual.clone() },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_asking_takes_is_told_beside_both_sides() {
        let sample = |operations, millis| Sample {
            operations,
            elapsed: Duration::from_secs(4),
            cpu: Duration::from_millis(millis),
        };
        let round = Round { a: sample(1000, 100), b: sample(900, 108) };
        let mut report = Report::new("1.2.3", "palisade bench health");
        add(&HealthBench::default(), &mut report, &[round], &[5.0, 7.0, 6.0]);
        let result = |name: &str| {
            let found = report.results.iter().find(|result| result.name == name);
            found.map(|result| (result.value, result.unit, result.met))
        };
        assert_eq!(result("health-iops"), Some((0.9, "ratio", Some(false))));
        let (micros, ..) = result("health-cpu-us").expect("told");
        assert!((micros - 20.0).abs() < 1e-6, "{micros}");
        assert_eq!(result("health-iops-on"), Some((225.0, "iops", None)));
        assert_eq!(result("health-look-cpu-ms"), Some((6.0, "ms", None)));
    }
}

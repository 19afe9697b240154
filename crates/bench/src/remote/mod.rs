//! `palisade bench remote`: drives behind NVMe/TCP, from both ends: our initiator, and a shelf that
//! our target serves, in processes of their own on this machine, loopback between them.
//!
//! Each part says in its own module what is measured, how its two sides are equal, and what ends
//! it. All parts have shelves of their own, which `palisade shelf` serves as it does to anybody;
//! where drives are paced, it is by the same model, as slow as leaves cores time.
//!
//! - [`one`]: one drive, beside an echo and a drive in memory. [`array`]: RAID 5 over eight drives,
//!   beside these raw. [`failover`]: a path goes under load. [`back`]: all of a shelf goes and
//!   comes back. [`scaling`]: several server processes on one shelf. [`idle`]: paths that do
//!   nothing.
//! - [`shelf`], [`server`]: the processes, from this side; [`host`]: what a server process does.
//!   [`process`]: what is common to both. [`reach`]: a shelf's drives on cores of this process.

mod array;
mod back;
mod failover;
mod host;
mod idle;
mod one;
pub(crate) mod process;
mod reach;
mod scaling;
mod server;
mod shelf;
#[cfg(test)]
mod tests;

pub use host::{RemoteHost, serve_remote_host};

use crate::error::BenchError;
use crate::named::{by_name, name_of};
use crate::report::Report;
use crate::scale::Scale;
use core::fmt;
use core::str::FromStr;
use std::path::PathBuf;
use std::time::Duration;

/// The command that does what a server process does.
pub const HIDDEN: &str = "remote-host";
/// The model of paced drives.
const MODEL: &str = "sn840";
/// Slower than this nothing is measured.
const SLOWEST: u32 = 1024;
/// The part of the time in which cores may have something to do. A request costs more where they
/// have less to do at a time: so this is less than what is left of [`crate::scale::IDLE`].
const BUSY: f64 = 0.5;

/// What can be measured alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// One remote drive.
    Drive,
    /// An array of remote drives.
    Array,
    /// A port that is reset.
    Reset,
    /// A port that falls silent.
    Silence,
    /// A port that falls silent, of a shelf that ends no controllers for others.
    SilenceTimed,
    /// A shelf that goes and comes back.
    Back,
    /// Several servers.
    Scaling,
    /// Paths that do nothing.
    Idle,
}

impl Part {
    /// All, by their names, in the order in which they are measured.
    pub const ALL: [(&'static str, Self); 8] = [
        ("drive", Self::Drive),
        ("array", Self::Array),
        ("reset", Self::Reset),
        ("silence", Self::Silence),
        ("silence-timed", Self::SilenceTimed),
        ("back", Self::Back),
        ("scaling", Self::Scaling),
        ("idle", Self::Idle),
    ];
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        by_name(&Self::ALL, text)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&Self::ALL, self))
    }
}

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct RemoteBench {
    /// Rounds of each comparison, at least 1.
    pub rounds: usize,
    /// Time of each side in a round.
    pub span: Duration,
    /// Time for which idle paths are watched.
    pub idle: Duration,
    /// How slow paced drives are.
    pub scale: Scale,
    /// Bytes of the one drive, and of what is used of the array.
    pub drive_bytes: u64,
    /// The parts that are measured; none: all.
    pub only: Vec<Part>,
    /// This program: shelves, servers and the daemon are it too.
    pub program: PathBuf,
}

impl RemoteBench {
    fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn check(&self) -> Result<(), BenchError> {
        let problem = if self.rounds == 0 || self.span.is_zero() || self.idle.is_zero() {
            "at least one round of some time is needed"
        } else if self.drive_bytes < units::MIB || !self.drive_bytes.is_multiple_of(units::MIB) {
            "give a drive of whole MiB"
        } else {
            return Ok(());
        };
        Err(BenchError::Usage(problem.to_owned()))
    }
}

/// What paced drives are like.
fn model() -> Result<&'static pace::Model, BenchError> {
    pace::by_name(MODEL).ok_or_else(|| BenchError::Usage(MODEL.to_owned()))
}

/// How slow paced drives are: as it is said, or the least slow at which cores are busy for [`BUSY`]
/// of their time, at most. `busy` says how many times as busy they would have to be at full speed.
///
/// It goes by what a request costs when cores have as many as they can do. What others on this
/// machine do does not change that, and nor do cores that look around before they sleep.
fn slower(scale: Scale, busy: impl FnOnce() -> Result<f64, BenchError>) -> Result<u32, BenchError> {
    let Scale::Auto = scale else { return scale.slower(|_| Ok(0.0)) };
    let busy = busy()?;
    let mut part = 1;
    while busy / f64::from(part) > BUSY && part < SLOWEST {
        part *= 2;
    }
    Ok(part)
}

/// Carries the benchmark out. `version` and `command` go into the report; `progress` is told what
/// happens, a line each.
///
/// # Errors
/// When it can't be carried out, or a request fails.
pub fn bench_remote(
    options: &RemoteBench,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    let mut report = Report::new(version, command);
    type Measure = fn(&RemoteBench, &mut Report, &dyn Fn(&str)) -> Result<(), BenchError>;
    let parts: [(&[Part], Measure); 6] = [
        (&[Part::Drive], one::measure),
        (&[Part::Array], array::measure),
        (&[Part::Reset, Part::Silence, Part::SilenceTimed], failover::measure),
        (&[Part::Back], back::measure),
        (&[Part::Scaling], scaling::measure),
        (&[Part::Idle], idle::measure),
    ];
    for (parts, measure) in parts {
        if parts.iter().any(|part| options.has(*part)) {
            measure(options, &mut report, progress)?;
        }
    }
    if options.has(Part::Drive) {
        let note = "bound of remote-4k-read-qd32: 1 / (1/echo + 1/in-process)";
        report.notes.push(note.to_owned());
    }
    Ok(report)
}

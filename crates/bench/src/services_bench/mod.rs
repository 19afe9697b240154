//! `palisade bench services`: what clients get of a volume by every way in, beside the same way to
//! something else, and what it costs that all of them are looked after.
//!
//! The daemon is this very program as a child, one data core, RAID 5 of five sparse files in
//! memory, with `palisade services` beside it. Clients are those that others keep, the same on both
//! sides, which take turns.
//!
//! - [`nbdfuse`]: an export as a file, beside nbdfuse over an export by NBD of the same volume.
//! - [`target`]: an iSCSI target of tgt's over a volume, beside one over a file in memory.
//! - [`files`]: shares of a volume by SMB and NFS, beside the same server over a folder in memory.
//! - [`idle`]: what `palisade services` takes where nobody asks for anything.
//! - [`place`]: what is measured; [`clients`]: who reads; [`tree`]: CPU time of servers.
//!
//! Invariants
//! - Before a turn of [`files`] nothing of the file is in the page cache: it is read from drives.
//! - All that was made goes when the procedure ends, whatever it comes to.

mod clients;
mod files;
mod idle;
mod nbdfuse;
mod place;
mod target;
mod tree;

use crate::api::take_turns;
use crate::error::{BenchError, is_to_go_on};
use crate::files::{check_room, is_in_memory};
use crate::front_ends::{self, HowLong};
use crate::named::{by_name, name_of};
use crate::report::{Goal, Report};
use crate::stats::{Round, Sample, Spread, rate_ratio};
use core::fmt;
use core::str::FromStr;
use place::Place;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::MIB;

/// What can be measured alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Front ends of this program over a volume that answers at once.
    FrontEnds,
    /// An export as a file, beside nbdfuse.
    Nbdfuse,
    /// A target of tgt's.
    Iscsi,
    /// A share by SMB.
    Smb,
    /// A share by NFS.
    Nfs,
    /// What nobody asks.
    Idle,
}

/// Bytes that drives take for all that is no file.
const ROOM: u64 = 64 * MIB;

/// A program, and Debian's package of it.
type Needed = (&'static str, &'static str);

const FIO: Needed = ("fio", "fio");
const LOSETUP: Needed = ("losetup", "util-linux");
const MKFS: Needed = ("mkfs.ext4", "e2fsprogs");
const SMB: [Needed; 3] =
    [("smbd", "samba"), ("smbpasswd", "samba-common-bin"), ("smbclient", "smbclient")];
const GANESHA: Needed = ("ganesha.nfsd", "nfs-ganesha-vfs");

impl Part {
    /// All, by their names, in the order in which they are measured.
    pub const ALL: [(&'static str, Self); 6] = [
        ("front-ends", Self::FrontEnds),
        ("nbdfuse", Self::Nbdfuse),
        ("iscsi", Self::Iscsi),
        ("smb", Self::Smb),
        ("nfs", Self::Nfs),
        ("idle", Self::Idle),
    ];

    /// Its results that have goals.
    const fn results(self) -> &'static [&'static str] {
        match self {
            Self::FrontEnds => &[
                "fuse-4k-read",
                "fuse-4k-write",
                "fuse-128k-read",
                "vhost-user-4k-read",
                "vhost-user-4k-write",
            ],
            Self::Nbdfuse => &["fuse-vs-nbdfuse-4k-read"],
            Self::Iscsi => &["iscsi-tgt-4k-read"],
            Self::Smb => &["smb-1m-read"],
            Self::Nfs => &["nfs-1m-read"],
            Self::Idle => &["services-idle-cpu"],
        }
    }

    /// Programs of others that it needs.
    fn needs(self) -> Vec<Needed> {
        match self {
            Self::FrontEnds => Vec::new(),
            Self::Nbdfuse => vec![FIO, ("nbdfuse", "libnbd-bin")],
            Self::Iscsi => vec![("tgtd", "tgt"), ("tgtadm", "tgt"), ("qemu-img", "qemu-utils")],
            Self::Smb => [&SMB[..], &[LOSETUP, MKFS]].concat(),
            Self::Nfs => vec![GANESHA, ("nfs-cat", "libnfs-utils"), LOSETUP, MKFS],
            Self::Idle => [&SMB[..], &[GANESHA, LOSETUP, MKFS]].concat(),
        }
    }

    /// Why it can't be measured here, as far as that is known before.
    fn problem(self) -> Option<String> {
        if self != Self::FrontEnds && !rustix::process::geteuid().is_root() {
            return Some("`palisade services` mounts what is measured: run it as root".to_owned());
        }
        let missing = self.needs().into_iter().find(|(program, _)| !is_there(program));
        missing.map(|(program, package)| format!("there is no {program}; install {package}"))
    }
}

/// Whether there is a program.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
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
pub struct ServicesBench {
    /// Rounds of each comparison, at least 1.
    pub rounds: usize,
    /// Time of each side in a round; a file of a share is read once.
    pub span: Duration,
    /// Time for which it is watched that nobody asks for anything, three times.
    pub idle: Duration,
    /// Bytes of a volume, and of a file of a share.
    pub bytes: u64,
    /// Devices that there are meanwhile.
    pub exports: usize,
    /// Shares that there are meanwhile.
    pub shares: usize,
    /// The parts that are measured; none: all.
    pub only: Vec<Part>,
    /// A directory for the drives, in a file system in memory.
    pub dir: PathBuf,
    /// This program: the daemon and its services are it too.
    pub program: PathBuf,
    /// Set when it is to end.
    pub stop: Arc<AtomicBool>,
}

impl Default for ServicesBench {
    fn default() -> Self {
        Self {
            rounds: 9,
            span: Duration::from_secs(1),
            idle: Duration::from_secs(10),
            bytes: 256 * MIB,
            exports: 32,
            shares: 8,
            only: Vec::new(),
            dir: "/dev/shm".into(),
            program: "/proc/self/exe".into(),
            stop: Arc::default(),
        }
    }
}

impl ServicesBench {
    fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    fn check(&self) -> Result<(), BenchError> {
        let problem = if self.rounds == 0 || self.span.is_zero() || self.idle.is_zero() {
            "at least one round of some time is needed"
        } else if self.bytes < MIB || !self.bytes.is_multiple_of(MIB) || self.bytes > 1024 * MIB {
            "give a size of 1M to 1G, in whole MiB"
        } else if !(1..=64).contains(&self.exports) || !(1..=16).contains(&self.shares) {
            "give 1 to 64 exports, and 1 to 16 shares"
        } else {
            return Ok(());
        };
        Err(BenchError::Refused(problem.to_owned()))
    }

    /// Whether servers can have what they need in memory.
    fn check_dir(&self) -> Result<(), BenchError> {
        if self.only == [Part::FrontEnds] {
            return Ok(());
        }
        self.dir.read_dir().map_err(place::system(&self.dir))?;
        if is_in_memory(&self.dir) {
            return Ok(());
        }
        let what = "is not in memory; give a directory of a tmpfs, such as /dev/shm";
        Err(BenchError::Refused(format!("{} {what}", self.dir.display())))
    }

    /// Whether goals stand for a run of this size.
    fn is_whole(&self) -> bool {
        let usual = Self::default();
        self.rounds >= 5
            && self.span >= Duration::from_millis(500)
            && self.idle >= usual.idle
            && self.bytes >= usual.bytes
            && (self.exports, self.shares) == (usual.exports, usual.shares)
    }
}

/// A side of a comparison.
struct Side<'a> {
    /// What its results end with.
    name: &'static str,
    /// The processes that serve it: with all below them.
    servers: Vec<u32>,
    /// One turn.
    read: Box<dyn FnMut(Duration) -> Result<Sample, BenchError> + 'a>,
}

/// What is compared.
struct Compared {
    name: &'static str,
    goal: f64,
    /// Bytes of a request, where a side's result is bytes per second.
    bytes: Option<u64>,
}

/// A run under way.
struct Run<'a> {
    options: &'a ServicesBench,
    report: Report,
    progress: &'a dyn Fn(&str),
}

impl Run<'_> {
    /// Has two sides take turns, A being what is compared with, and adds what came of it.
    fn compare<'s>(
        &mut self,
        what: &Compared,
        mut a: Side<'s>,
        mut b: Side<'s>,
    ) -> Result<(), BenchError> {
        (self.progress)(&format!("{}: {} and {}", what.name, b.name, a.name));
        let stop = &self.options.stop;
        let rounds = take_turns((self.options.rounds, 1), self.options.span, |is_b, span, _| {
            is_to_go_on(stop)?;
            let side = if is_b { &mut b } else { &mut a };
            let before = tree::cpu(&side.servers);
            let sample = (side.read)(span)?;
            Ok(Sample { cpu: tree::cpu(&side.servers).saturating_sub(before), ..sample })
        })?;
        let goal = Some(Goal::AtLeast(what.goal));
        self.report.add(what.name, "ratio", rate_ratio(&rounds), goal);
        let samples: [fn(&Round) -> Sample; 2] = [|round| round.b, |round| round.a];
        for (side, sample) in [b.name, a.name].into_iter().zip(samples) {
            let name = format!("{}-{side}", what.name);
            let rates = Spread::of(rounds.iter().map(|round| sample(round).rate()));
            match what.bytes {
                None => self.report.add(&format!("{name}-iops"), "iops", rates, None),
                Some(bytes) => {
                    let rates = rates.map(|own| own.scaled(bytes as f64 / 1e9));
                    self.report.add(&format!("{name}-gbps"), "GB/s", rates, None);
                }
            }
            let cpu = Spread::of(rounds.iter().map(|round| sample(round).cpu_micros()));
            self.report.add(&format!("{name}-cpu-us"), "us", cpu, None);
        }
        Ok(())
    }

    /// Measures a part at a place, which is made if there is none.
    fn part(&mut self, part: Part, place: &mut Option<Place>) -> Result<(), BenchError> {
        if let Some(problem) = part.problem() {
            return Err(BenchError::Process(problem));
        }
        if part == Part::FrontEnds {
            return self.front_ends();
        }
        let place = match place {
            Some(place) => place,
            None => {
                let ServicesBench { program, dir, bytes, .. } = self.options;
                // Drives with parity, the file beside, what a client reads of it; and all else.
                check_room(dir, bytes * 7 / 2 + ROOM)?;
                place.insert(Place::start(program, dir)?)
            }
        };
        place.clear()?;
        match part {
            Part::FrontEnds => Ok(()),
            Part::Nbdfuse => nbdfuse::measure(self, place),
            Part::Iscsi => target::measure(self, place),
            Part::Smb => files::measure_smb(self, place),
            Part::Nfs => files::measure_nfs(self, place),
            Part::Idle => idle::measure(self, place),
        }
    }

    fn front_ends(&mut self) -> Result<(), BenchError> {
        let ServicesBench { rounds, span, stop, .. } = self.options;
        let how_long = HowLong { rounds: *rounds, span: *span, stop };
        front_ends::measure(how_long, &mut self.report, self.progress)
    }

    /// What can't be measured stays open; what is wrong ends the run.
    fn leave_out(&mut self, part: Part, error: BenchError) -> Result<(), BenchError> {
        is_to_go_on(&self.options.stop)?;
        let is_its_own = matches!(
            error,
            BenchError::Process(_)
                | BenchError::Fio(_)
                | BenchError::Room { .. }
                | BenchError::Memory { .. }
        );
        if !is_its_own {
            return Err(error);
        }
        let measured = |name: &str| self.report.results.iter().any(|own| own.name == name);
        let mut open = part.results().to_vec();
        open.retain(|name| !measured(name));
        for name in open {
            self.report.leave_open(name, &error.to_string());
            self.report.missing.push(format!("{name}: {error}"));
        }
        Ok(())
    }

    /// Goals stand for whole runs alone.
    fn finish(mut self) -> Report {
        if !self.options.is_whole() {
            for result in &mut self.report.results {
                (result.goal, result.met) = (None, None);
            }
            let note = "no goals: fewer rounds, less time or less data than usual";
            self.report.notes.push(note.to_owned());
        }
        self.report
    }
}

/// Carries the benchmark out. `version` and `command` go into the report; `progress` is told
/// what happens, a line each.
///
/// # Errors
/// When the daemon can't be started, or what is read is wrong; or it is to end.
pub fn bench_services(
    options: &ServicesBench,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    options.check()?;
    // Before what takes long, which needs none.
    options.check_dir()?;
    let mut run = Run { options, report: Report::new(version, command), progress };
    let mut place = None;
    for (_, part) in Part::ALL.into_iter().filter(|(_, part)| options.has(*part)) {
        if let Err(error) = run.part(part, &mut place) {
            run.leave_out(part, error)?;
        }
        is_to_go_on(&options.stop)?;
    }
    Ok(run.finish())
}

/// A folder of a server that is compared with; it goes when it is dropped, after the server.
struct Beside(PathBuf);

impl Beside {
    fn make(path: PathBuf) -> Result<Self, BenchError> {
        std::fs::create_dir(&path).map_err(place::system(&path))?;
        Ok(Self(path))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_known_by_their_names() {
        for (name, part) in Part::ALL {
            assert_eq!((name.parse(), part.to_string()), (Ok(part), name.to_owned()));
        }
        let told = "disks".parse::<Part>().expect_err("is none");
        assert!(told.contains("front-ends, nbdfuse"), "{told}");
    }

    #[test]
    fn goals_stand_for_whole_runs_alone() {
        let usual = ServicesBench::default();
        assert!(usual.is_whole() && usual.check().is_ok());
        for less in [
            ServicesBench { rounds: 4, ..usual.clone() },
            ServicesBench { bytes: 128 * MIB, ..usual.clone() },
            ServicesBench { shares: 7, ..usual.clone() },
        ] {
            assert!(!less.is_whole() && less.check().is_ok(), "{less:?}");
        }
        for wrong in [
            ServicesBench { rounds: 0, ..usual.clone() },
            ServicesBench { bytes: MIB + 1, ..usual.clone() },
            ServicesBench { exports: 0, ..usual.clone() },
        ] {
            assert!(wrong.check().is_err_and(|error| error.status() == 2), "{wrong:?}");
        }
    }
}

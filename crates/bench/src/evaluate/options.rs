//! What an evaluator asks for: drives, loads, and how long.

use crate::error::BenchError;
use crate::scale::Scale;
use crate::through::Through;
use core::fmt;
use core::str::FromStr;
use layout::Level;
use pace::Model;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use units::{GIB, KIB, MIB};
use workload::stamp::BLOCK;

/// What is measured.
#[derive(Clone, Debug)]
pub enum Source {
    /// Drives by their paths: an array is made of them.
    Drives(Vec<PathBuf>),
    /// So many paced drives of a model, in memory.
    Model {
        /// The model.
        model: &'static Model,
        /// How many.
        count: usize,
        /// How fast.
        scale: Scale,
    },
    /// So many drives in memory.
    Memory {
        /// Bytes of each.
        bytes: u64,
        /// How many.
        count: usize,
    },
    /// A block device as it is, local or remote.
    Device(PathBuf),
}

impl Source {
    /// Whether its drives are this process's memory, which no other reaches.
    pub fn is_in_process(&self) -> bool {
        matches!(self, Self::Model { .. } | Self::Memory { .. })
    }

    /// How many drives there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Drives(paths) => paths.len(),
            Self::Model { count, .. } | Self::Memory { count, .. } => *count,
            Self::Device(_) => 1,
        }
    }
}

/// How long runs are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// The papers' times.
    Paper,
    /// A whole life cycle within 25 minutes; goals are judged.
    Short,
    /// A whole life cycle within 3 minutes; no goals are judged.
    Quick,
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "paper" => Ok(Self::Paper),
            "short" => Ok(Self::Short),
            "quick" => Ok(Self::Quick),
            _ => Err("use paper, short or quick".to_owned()),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paper => "paper",
            Self::Short => "short",
            Self::Quick => "quick",
        })
    }
}

/// Who makes the loads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loader {
    /// Our generator.
    Own,
    /// fio: bare drives by their paths, arrays by NBD.
    Fio,
}

impl FromStr for Loader {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "own" => Ok(Self::Own),
            "fio" => Ok(Self::Fio),
            _ => Err("use own or fio".to_owned()),
        }
    }
}

impl fmt::Display for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "own",
            Self::Fio => "fio",
        })
    }
}

/// Another product's array that is measured beside ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// Linux md, of the same drives.
    Md,
    /// One that is there.
    There {
        /// What it is called: small letters, digits and `-`.
        name: String,
        /// Its block device.
        path: PathBuf,
    },
}

impl Peer {
    /// What it is called.
    pub fn name(&self) -> &str {
        match self {
            Self::Md => "md",
            Self::There { name, .. } => name,
        }
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text == "md" {
            return Ok(Self::Md);
        }
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && name.chars().all(is_name) => {
                match path.is_empty() {
                    true => Err("the path of its block device is missing".to_owned()),
                    false => Ok(Self::There { name: name.to_owned(), path: path.into() }),
                }
            }
            _ => Err("use md, or NAME=PATH; a name has small letters, digits and -".to_owned()),
        }
    }
}

/// How a workload's runs are timed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Timing {
    /// A window of the time until it is steady.
    pub window: Duration,
    /// Windows after which it is said not to be.
    pub windows: usize,
    /// The time that counts of an instance.
    pub counted: Duration,
    /// Instances.
    pub instances: usize,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is measured.
    pub source: Source,
    /// Drives whose data may go.
    pub destroy: Vec<PathBuf>,
    /// The array's level.
    pub level: Level,
    /// Bytes of a strip.
    pub strip: u32,
    /// Data cores.
    pub cores: u16,
    /// Volumes that the array is cut into.
    pub volumes: usize,
    /// Percentage of reads in mixed loads.
    pub mix: u8,
    /// How long runs are.
    pub profile: Profile,
    /// Instances of a run.
    pub instances: usize,
    /// The time of an instance, if not the profile's.
    pub seconds: Option<Duration>,
    /// Bytes that are used, if not the profile's.
    pub area: Option<u64>,
    /// Requests a second of open loads.
    pub rate: Option<f64>,
    /// Others that are measured beside the array.
    pub peers: Vec<Peer>,
    /// Who makes the loads.
    pub load: Loader,
    /// What an array's volumes are reached by, if not in this process.
    pub through: Option<Through>,
    /// Where fio's job files and reports are kept.
    pub keep: Option<PathBuf>,
    /// Only says what would be done.
    pub dry_run: bool,
    /// Set when somebody wants it to end.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// The usual ones.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            destroy: Vec::new(),
            level: Level::Raid5,
            strip: (64 * KIB) as u32,
            cores: 1,
            volumes: 1,
            mix: 70,
            profile: Profile::Short,
            instances: 3,
            seconds: None,
            area: None,
            rate: None,
            peers: Vec::new(),
            load: Loader::Own,
            through: None,
            keep: None,
            dry_run: false,
            stop: Arc::default(),
        }
    }

    /// How runs are timed.
    pub fn timing(&self) -> Timing {
        let millis = Duration::from_millis;
        let (window, windows, counted) = match self.profile {
            Profile::Paper => (millis(60_000), 60, millis(1_200_000)),
            Profile::Short => (millis(1_000), 10, millis(6_000)),
            Profile::Quick => (millis(150), 8, millis(400)),
        };
        let counted = self.seconds.unwrap_or(counted);
        Timing { window: window.min(counted), windows, counted, instances: self.instances }
    }

    /// Bytes that are used of what there is, at most.
    pub fn area(&self) -> u64 {
        self.area.unwrap_or(match self.profile {
            Profile::Quick => GIB,
            _ if self.source.is_in_process() => 2 * GIB,
            Profile::Paper => u64::MAX,
            Profile::Short => 16 * GIB,
        })
    }

    /// Whether this is a whole run, whose goals are judged.
    pub fn is_whole(&self) -> bool {
        self.profile != Profile::Quick && self.seconds.is_none() && self.instances >= 3
    }

    /// Whether one drive or device is measured, and no array.
    pub fn is_one(&self) -> bool {
        self.source.count() == 1
    }

    /// What whoever loads reaches an array's volumes by, if not in this process.
    pub fn reached_by(&self) -> Option<Through> {
        self.through.or((self.load == Loader::Fio).then_some(Through::Nbd))
    }

    /// Finds out what makes no sense.
    ///
    /// # Errors
    /// `Refused`, with what to do.
    pub fn check(&self) -> Result<(), BenchError> {
        if matches!(self.source, Source::Device(_)) {
            return self.check_rest();
        }
        let count = self.source.count();
        let most = usize::from(layout::MAX_DRIVES);
        if !(1..=most).contains(&count) {
            return Err(BenchError::Refused(format!("give 1 to {most} drives, not {count}")));
        }
        self.check_rest()
    }

    /// Refuses a device of which no array is made.
    ///
    /// # Errors
    /// `Refused`, with what to do.
    pub fn check_array(&self, what: &str) -> Result<(), BenchError> {
        self.check_no_peer(what)?;
        match self.source {
            Source::Device(_) => Err(BenchError::Refused(format!(
                "bench {what} makes an array: give it --drives, --model or --memory, and a \
                 --device to bench spec-sheet or sweep"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses peers where none is measured.
    ///
    /// # Errors
    /// `Refused`, with what to do.
    pub fn check_no_peer(&self, what: &str) -> Result<(), BenchError> {
        match self.peers.is_empty() {
            true => Ok(()),
            false => Err(BenchError::Refused(format!(
                "bench {what} measures no peer: give --peer to bench spec-sheet or sweep, or leave \
                 it out"
            ))),
        }
    }

    fn check_rest(&self) -> Result<(), BenchError> {
        let is_area = |area: u64| area >= 64 * MIB && area.is_multiple_of(BLOCK as u64);
        let problem = if self.instances == 0 || self.timing().counted.is_zero() {
            "at least one instance of some time is needed"
        } else if self.mix > 100 {
            "--mix is a percentage of reads"
        } else if self.volumes == 0 || self.cores == 0 {
            "at least one volume and one core are needed"
        } else if self.area.is_some_and(|area| !is_area(area)) {
            "give an --area of at least 64 MiB and of whole blocks of 4 KiB"
        } else if self.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
            "--rate is a number of requests a second"
        } else if self.load == Loader::Fio && self.source.is_in_process() {
            "fio does not reach drives that live in this process: give --drives or --device, or \
             leave --load out"
        } else if !self.peers.is_empty() && self.is_one() {
            "a --peer stands beside an array: give several drives"
        } else if self.load == Loader::Fio && self.through.is_some_and(|own| own != Through::Nbd) {
            "fio reaches an array by NBD: give --through nbd, or leave --load out"
        } else if self.through.is_some() && self.is_one() {
            "--through is how hosts reach the volumes of an array: give several drives"
        } else if self.load == Loader::Own && self.keep.is_some() {
            "--keep keeps fio's job files: give --load fio, too"
        } else {
            return Ok(());
        };
        Err(BenchError::Refused(problem.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let usual = Options::new(Source::Memory { bytes: GIB, count: 8 });
        assert!(usual.check().is_ok());
        assert!(Options { profile: Profile::Paper, ..usual.clone() }.check().is_ok());
        let wrong = [
            Options { instances: 0, ..usual.clone() },
            Options { mix: 101, ..usual.clone() },
            Options { volumes: 0, ..usual.clone() },
            Options { area: Some(4096), ..usual.clone() },
            Options { area: Some(GIB + 512), ..usual.clone() },
            Options { rate: Some(0.0), ..usual.clone() },
            Options { load: Loader::Fio, ..usual.clone() },
            Options {
                peers: vec!["md=/dev/md0".parse().unwrap()],
                ..Options::new(Source::Device("/dev/null".into()))
            },
            Options { keep: Some("/tmp".into()), ..usual.clone() },
            Options {
                through: Some(Through::NvmeTcp),
                load: Loader::Fio,
                ..Options::new(Source::Drives(vec!["a".into(), "b".into()]))
            },
            Options {
                through: Some(Through::Fuse),
                load: Loader::Fio,
                ..Options::new(Source::Drives(vec!["a".into(), "b".into()]))
            },
            Options {
                through: Some(Through::Nbd),
                ..Options::new(Source::Memory { bytes: GIB, count: 1 })
            },
            Options { source: Source::Drives(Vec::new()), ..usual.clone() },
            Options { source: Source::Memory { bytes: GIB, count: 65 }, ..usual.clone() },
        ];
        for options in wrong {
            let refused = options.check();
            assert!(matches!(refused, Err(BenchError::Refused(_))), "{options:?}: {refused:?}");
        }
    }

    #[test]
    fn peers_have_a_name_and_a_path() {
        let peer = Peer::There { name: "sr-1000".to_owned(), path: "/dev/gvd0=1".into() };
        assert_eq!("sr-1000=/dev/gvd0=1".parse(), Ok(peer));
        assert_eq!("md".parse(), Ok(Peer::Md));
        for wrong in ["", "mdx", "=/dev/md0", "md=", "M D=/dev/md0"] {
            assert!(wrong.parse::<Peer>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_whole_runs_are_judged() {
        let usual = Options::new(Source::Memory { bytes: GIB, count: 8 });
        assert!(usual.is_whole());
        let seconds = Some(Duration::from_secs(1));
        assert!(!Options { seconds, ..usual.clone() }.is_whole());
        assert!(!Options { profile: Profile::Quick, ..usual.clone() }.is_whole());
        assert!(!Options { instances: 2, ..usual }.is_whole());
        for text in ["paper", "short", "quick"] {
            assert_eq!(text.parse().map(|own: Profile| own.to_string()), Ok(text.to_owned()));
        }
        assert!("long".parse::<Profile>().is_err());
    }
}

//! The daemon's configuration: a TOML file with `socket`, `cores`, `drives`, `drive_deadline_ms`,
//! `drive_wait_ms`, `parity`, `parity_check`, `state` and the table `access`.
//!
//! Everything else (names, levels, volumes, exports) lives on the drives (D8). A key that is not
//! known is an error, so that a typing mistake is not a silent default.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};

use parity_gpu::Limits;
pub use parity_gpu::Placement;

/// Most data cores.
pub const CORES_MAX: u16 = 64;

/// The least and the most that `drive_deadline_ms` may be: below, a busy machine would blame
/// drives for its own delays.
pub const DEADLINES_MS: (u64, u64) = (500, 600_000);

/// The most that `drive_wait_ms` may be.
pub const WAIT_MS_MAX: u64 = 600_000;

/// What the file says.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the daemon listens; [`crate::api::DEFAULT_SOCKET`] when absent.
    pub socket: Option<PathBuf>,
    /// Data cores, at least 1.
    #[serde(default = "one")]
    pub cores: u16,
    /// Paths of drives; `*` and `?` match within a component.
    #[serde(default)]
    pub drives: Vec<String>,
    /// Milliseconds that a drive may take for a request before it is taken out, within
    /// [`DEADLINES_MS`].
    #[serde(default = "usual_deadline")]
    pub drive_deadline_ms: u64,
    /// Milliseconds that a start waits for drives of arrays that are not there yet, at most
    /// [`WAIT_MS_MAX`].
    #[serde(default = "usual_wait")]
    pub drive_wait_ms: u64,
    /// Where parity is computed.
    #[serde(default, deserialize_with = "placement")]
    pub parity: Placement,
    /// One job of so many that a GPU did is done by the CPU too and compared; 0: none.
    #[serde(default = "usual_check")]
    pub parity_check: u32,
    /// The state directory ([`crate::state`]).
    pub state: Option<PathBuf>,
    /// Who may do what on the socket.
    pub access: Option<Access>,
}

/// Users (`name` or number) and groups (`@name`, `@number`) of this machine, by what they may do on
/// the socket.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Everything.
    pub administrators: Vec<String>,
    /// Also change arrays, volumes and exports.
    pub operators: Vec<String>,
    /// Read.
    pub read_only: Vec<String>,
}

impl Default for Access {
    fn default() -> Self {
        let administrators = vec!["root".to_owned(), "@palisade".to_owned()];
        Self { administrators, operators: Vec::new(), read_only: Vec::new() }
    }
}

fn usual_check() -> u32 {
    Limits::default().sample
}

fn placement<'d, D: Deserializer<'d>>(from: D) -> Result<Placement, D::Error> {
    let word = String::deserialize(from)?;
    word.parse().map_err(|error| D::Error::custom(format!("parity: {error}, not {word}")))
}

const fn usual_deadline() -> u64 {
    engine::limits::DRIVE_DEADLINE.0 / 1_000_000
}

const fn usual_wait() -> u64 {
    30_000
}

const fn one() -> u16 {
    1
}

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{0}: {1}")]
    Read(PathBuf, std::io::Error),
    /// It is no TOML, or has a key that is unknown or of the wrong kind.
    #[error("{0}: {1}")]
    Parse(PathBuf, String),
}

impl Config {
    /// Reads a file. Relative paths in it count from the daemon's working directory.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Read(path.to_owned(), error))?;
        Self::parse(&text).map_err(|problem| ConfigError::Parse(path.to_owned(), problem))
    }

    /// Reads a file's text; the error is one line for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|error| one_line(text, &error))?;
        if !(1..=CORES_MAX).contains(&config.cores) {
            return Err(format!("cores must be 1 to {CORES_MAX}, not {}", config.cores));
        }
        let (least, most) = DEADLINES_MS;
        if !(least..=most).contains(&config.drive_deadline_ms) {
            let given = config.drive_deadline_ms;
            return Err(format!("drive_deadline_ms must be {least} to {most}, not {given}"));
        }
        if config.drive_wait_ms > WAIT_MS_MAX {
            let given = config.drive_wait_ms;
            return Err(format!("drive_wait_ms must be at most {WAIT_MS_MAX}, not {given}"));
        }
        Ok(config)
    }
}

fn one_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', ", ");
    match error.span() {
        Some(span) => {
            let line = text[..span.start.min(text.len())].matches('\n').count() + 1;
            format!("line {line}: {message}")
        }
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_keys() {
        let text = "socket = \"/tmp/s\"\ncores = 2\ndrives = [\"/dev/nvme?n1\", \"/d/a*.img\"]\n\
                    drive_deadline_ms = 2000\ndrive_wait_ms = 0\nparity = \"gpu\"\n\
                    parity_check = 16\nstate = \"/s\"\n[access]\noperators = [\"@wheel\"]\n";
        let config = Config::parse(text).expect("valid");
        assert_eq!(config.socket, Some("/tmp/s".into()));
        assert_eq!((config.cores, config.drive_deadline_ms), (2, 2_000));
        assert_eq!(config.drive_wait_ms, 0);
        assert_eq!((config.parity, config.parity_check), (Placement::Gpu, 16));
        assert_eq!(config.state, Some("/s".into()));
        let access = config.access.expect("is there");
        assert_eq!(access.operators, ["@wheel"]);
        assert_eq!(access.administrators, ["root", "@palisade"]);
        assert_eq!(config.drives, ["/dev/nvme?n1", "/d/a*.img"]);
    }

    #[test]
    fn everything_has_a_default() {
        let config = Config {
            socket: None,
            cores: 1,
            drives: vec![],
            drive_deadline_ms: 10_000,
            drive_wait_ms: 30_000,
            parity: Placement::Auto,
            parity_check: 1024,
            state: None,
            access: None,
        };
        assert_eq!(Config::parse(""), Ok(config));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let problem = Config::parse("cores = 1\ndrivs = []\n").expect_err("unknown key");
        assert!(problem.contains("line 2") && problem.contains("drivs"), "{problem}");
        assert!(!problem.contains('\n'), "{problem}");
        let problem = Config::parse("[access]\nadmins = []").expect_err("unknown key");
        assert!(problem.contains("admins"), "{problem}");
        let problem = Config::parse("cores = \"two\"").expect_err("wrong kind");
        assert!(problem.contains("line 1"), "{problem}");
        let problem = Config::parse("drive_deadline_ms = 1").expect_err("too short");
        assert!(problem.contains("500 to 600000"), "{problem}");
        let problem = Config::parse("drive_wait_ms = 600001").expect_err("too long");
        assert!(problem.contains("at most 600000"), "{problem}");
        let problem = Config::parse("parity = \"fpga\"").expect_err("no such place");
        assert!(problem.contains("cpu, gpu or auto") && problem.contains("fpga"), "{problem}");
        assert!(Config::parse("cores = 0").expect_err("none").contains("1 to 64"));
    }
}

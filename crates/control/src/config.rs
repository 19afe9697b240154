//! The daemon's configuration: a TOML file with `socket`, `cores`, `drives`, `drive_deadline_ms`,
//! `drive_wait_ms`, `parity`, `parity_check`, `confirm`, `counters`, `state`, `https`,
//! `certificate`, `key`, `metrics` and the table `access`.
//!
//! Everything else (names, levels, volumes, exports) lives on the drives (D8). A key that is not
//! known is an error, so that a typing mistake is not a silent default.

use crate::{https, pattern, state};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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
    /// Where the daemon listens; [`redfish::view::DEFAULT_SOCKET`] when absent.
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
    /// Whether changes that destroy data need the token of their plan: `on` or `off`.
    #[serde(default = "on", deserialize_with = "confirm")]
    pub confirm: bool,
    /// Whether requests to volumes are counted: `on` or `off`.
    #[serde(default = "on", deserialize_with = "counters")]
    pub counters: bool,
    /// One job of so many that a GPU did is done by the CPU too and compared; 0: none.
    #[serde(default = "usual_check")]
    pub parity_check: u32,
    /// The state directory ([`crate::state`]).
    pub state: Option<PathBuf>,
    /// Who may do what on the socket.
    pub access: Option<Access>,
    /// Where HTTPS listens, as `ADDR:PORT`; nowhere if empty.
    #[serde(default)]
    pub https: Vec<SocketAddr>,
    /// A file with the certificate of HTTPS, and those that it depends on, as PEM; the daemon makes
    /// one if absent.
    pub certificate: Option<PathBuf>,
    /// A file with its private key.
    pub key: Option<PathBuf>,
    /// Whether `/metrics` is everybody's (`open`), or one has to log in (`login`).
    #[serde(default, deserialize_with = "open_or_login")]
    pub metrics: bool,
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

const fn on() -> bool {
    true
}

fn on_or_off<'d, D: Deserializer<'d>>(key: &str, from: D) -> Result<bool, D::Error> {
    match String::deserialize(from)?.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        word => Err(D::Error::custom(format!("{key}: on or off, not {word}"))),
    }
}

fn open_or_login<'d, D: Deserializer<'d>>(from: D) -> Result<bool, D::Error> {
    match String::deserialize(from)?.as_str() {
        "open" => Ok(true),
        "login" => Ok(false),
        word => Err(D::Error::custom(format!("metrics: open or login, not {word}"))),
    }
}

fn confirm<'d, D: Deserializer<'d>>(from: D) -> Result<bool, D::Error> {
    on_or_off("confirm", from)
}

fn counters<'d, D: Deserializer<'d>>(from: D) -> Result<bool, D::Error> {
    on_or_off("counters", from)
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

    /// Where the daemon listens.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(|| redfish::view::DEFAULT_SOCKET.into())
    }

    /// Reads a file's text; the error is one line for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let config: Self = toml::from_str(text).map_err(|e| mistake(text, &e).to_string())?;
        match config.out_of_range().into_iter().next() {
            None => Ok(config),
            Some((_, problem)) => Err(problem),
        }
    }

    /// What the file says that will not do what it seems to on this machine, as it is now. Looks at
    /// the file system.
    pub fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        for pattern in &self.drives {
            if !pattern::expand(pattern).iter().any(|path| path.exists()) {
                found.push(format!("drives: nothing is at {pattern}"));
            }
        }
        if let Some(dir) = &self.state {
            found.extend(state::problem(dir).map(|problem| format!("state: {problem}")));
        }
        let unit = std::env::var_os(state::VARIABLE);
        let has_state = state::place(self.state.as_deref(), unit.as_deref()).is_some();
        if !self.https.is_empty() && !has_state {
            found.push(
                "https: it needs a state directory: `state`, or StateDirectory= of the unit"
                    .to_owned(),
            );
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        found.extend(https::warnings(&self.https(), now.map_or(0, |now| now.as_secs())));
        found
    }

    /// The keys whose values are out of range, and why.
    fn out_of_range(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        if !(1..=CORES_MAX).contains(&self.cores) {
            found.push(("cores", format!("cores must be 1 to {CORES_MAX}, not {}", self.cores)));
        }
        let ((least, most), given) = (DEADLINES_MS, self.drive_deadline_ms);
        if !(least..=most).contains(&given) {
            let text = format!("drive_deadline_ms must be {least} to {most}, not {given}");
            found.push(("drive_deadline_ms", text));
        }
        let given = self.drive_wait_ms;
        if given > WAIT_MS_MAX {
            let text = format!("drive_wait_ms must be at most {WAIT_MS_MAX}, not {given}");
            found.push(("drive_wait_ms", text));
        }
        if self.certificate.is_some() != self.key.is_some() {
            let (given, missing) = match self.key {
                None => ("certificate", "key"),
                Some(_) => ("key", "certificate"),
            };
            found.push((given, format!("{given} needs {missing}: each names a file")));
        }
        found
    }

    /// What it says of HTTPS.
    pub fn https(&self) -> https::Settings {
        let files = self.certificate.clone().zip(self.key.clone());
        https::Settings { listen: self.https.clone(), files }
    }
}

/// Something that is wrong in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Mistake {
    /// In which line, from 1; none where that is not known.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

impl core::fmt::Display for Mistake {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// All mistakes of a file's text. Of its syntax there is one: the rest can't be read behind it.
pub fn mistakes(text: &str) -> Vec<Mistake> {
    let (mut found, mut rest) = (Vec::new(), text.to_owned());
    loop {
        let error = match toml::from_str::<Config>(&rest) {
            Err(error) => error,
            Ok(config) => {
                let line = |key| key_at(text, key).map(|at| line_of(text, at));
                let wrong = config.out_of_range().into_iter();
                found.extend(wrong.map(|(key, what)| Mistake { line: line(key), what }));
                found.sort_by_key(|mistake| mistake.line);
                return found;
            }
        };
        found.push(mistake(&rest, &error));
        // Without the key that is wrong the others can be read.
        match error.span().and_then(|span| without_key(&rest, span.start)) {
            Some(less) => rest = less,
            None => return found,
        }
    }
}

/// The text with spaces in the place of the key of the outermost table that `at` is in, and its
/// value; none if it is in none.
fn without_key(text: &str, at: usize) -> Option<String> {
    let table = toml::de::DeTable::parse(text).ok()?;
    let own = table.get_ref().iter().find_map(|(key, value)| {
        let own = key.span().start..value.span().end.max(key.span().end);
        own.contains(&at).then_some(own)
    })?;
    let (before, rest) = (text.get(..own.start)?, text.get(own.end..)?);
    let blank = text.get(own)?.chars().map(|c| if c == '\n' { '\n' } else { ' ' });
    Some(format!("{before}{}{rest}", blank.collect::<String>()))
}

/// Where a key of the outermost table is.
fn key_at(text: &str, key: &str) -> Option<usize> {
    let table = toml::de::DeTable::parse(text).ok()?;
    let found = table.get_ref().keys().find(|own| own.get_ref() == key)?;
    Some(found.span().start)
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

fn mistake(text: &str, error: &toml::de::Error) -> Mistake {
    let what = error.message().replace('\n', ", ");
    Mistake { line: error.span().map(|span| line_of(text, span.start)), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_keys() {
        let text = "socket = \"/tmp/s\"\ncores = 2\ndrives = [\"/dev/nvme?n1\", \"/d/a*.img\"]\n\
                    drive_deadline_ms = 2000\ndrive_wait_ms = 0\nparity = \"gpu\"\n\
                    parity_check = 16\nconfirm = \"off\"\nstate = \"/s\"\n\
                    https = [\"[::1]:8443\"]\ncertificate = \"/c\"\nkey = \"/k\"\n\
                    metrics = \"open\"\n[access]\n\
                    operators = [\"@wheel\"]\n";
        let config = Config::parse(text).expect("valid");
        assert_eq!(config.socket, Some("/tmp/s".into()));
        assert_eq!((config.cores, config.drive_deadline_ms), (2, 2_000));
        assert_eq!(config.drive_wait_ms, 0);
        assert_eq!((config.parity, config.parity_check), (Placement::Gpu, 16));
        assert_eq!(config.state, Some("/s".into()));
        let files = Some(("/c".into(), "/k".into()));
        let listen = vec!["[::1]:8443".parse().expect("an address")];
        assert_eq!(config.https(), https::Settings { listen, files });
        let access = config.access.expect("is there");
        assert_eq!(access.operators, ["@wheel"]);
        assert_eq!(access.administrators, ["root", "@palisade"]);
        assert!(!config.confirm && config.metrics);
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
            confirm: true,
            counters: true,
            access: None,
            https: vec![],
            certificate: None,
            key: None,
            metrics: false,
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
        let problem = Config::parse("confirm = \"no\"").expect_err("no such word");
        assert!(problem.contains("confirm: on or off, not no"), "{problem}");
        let problem = Config::parse("counters = \"yes\"").expect_err("no such word");
        assert!(problem.contains("counters: on or off, not yes"), "{problem}");
        let problem = Config::parse("metrics = \"on\"").expect_err("no such word");
        assert!(problem.contains("open or login, not on"), "{problem}");
        assert!(Config::parse("cores = 0").expect_err("none").contains("1 to 64"));
    }

    #[test]
    fn what_keeps_https_from_being_served_is_a_warning() {
        use crate::certificate::{self, For};
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str, mode| {
            let path = place.path().join(name);
            std::fs::write(&path, text).expect("written");
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, mode).expect("set");
        };
        let found = |text: &str| {
            let text = text.replace("DIR", &place.path().display().to_string());
            let found = Config::parse(&text).expect("valid").warnings();
            found.join("\n").replace(&place.path().display().to_string(), "DIR")
        };
        let (listen, files) = (
            "state = 'DIR/state'\nhttps = ['127.0.0.1:1']\n",
            "certificate = 'DIR/c'\nkey = 'DIR/k'\n",
        );
        let both = format!("{listen}{files}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let good = certificate::make(&For::default(), now, None).expect("made");
        let key = certificate::key_of(&good.pem).expect("a key");
        assert!(found(&both).contains("certificate: DIR/c can't be read: No such file"));
        file("c", &good.shown.pem, 0o644);
        file("k", &key, 0o640);
        assert_eq!(found(&both), "");
        file("k", &key, 0o644);
        assert_eq!(found(&both), "key: everybody may read or write DIR/k");
        assert!(found(files).starts_with("certificate: it is shown nowhere"), "{}", found(files));
        file("k", "", 0o600);
        assert!(found(&both).contains("no private key"), "{}", found(&both));
        let ended = certificate::make(&For::default(), now - 400 * 86_400, None).expect("made");
        file("c", &ended.shown.pem, 0o644);
        file("k", &key, 0o600);
        assert!(found(&both).contains("another certificate's"), "{}", found(&both));
        file("k", &certificate::key_of(&ended.pem).expect("a key"), 0o600);
        assert!(found(&both).contains("certificate: the certificate of HTTPS is good until"));
        if std::env::var_os(state::VARIABLE).is_none() {
            let told = found("https = ['127.0.0.1:1']");
            assert!(told.starts_with("https: it needs a state directory"), "{told}");
        }
    }

    #[test]
    fn all_mistakes_of_a_file_are_named_with_their_lines() {
        let text = "# mine\ncores = 65\ndrivs = [\n  \"/dev/a\",\n]\nparity = \"fpga\"\n\
                    socket = 1\ndrive_wait_ms = 600001\n";
        let found = mistakes(text);
        let lines: Vec<_> = found.iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [2, 3, 6, 7, 8].map(Some), "{found:?}");
        assert!(found[1].what.contains("drivs") && found[0].what.contains("1 to 64"), "{found:?}");
        assert_eq!(mistakes("cores = 2\n"), []);
        assert_eq!(mistakes("cores = 2\n[drives\n").len(), 1);
        assert_eq!(mistakes("cores = 1\ncores = 2\n")[0].line, Some(2));
        // A table that nobody knows, and what is in one.
        assert_eq!(mistakes("cores = 65\n[cpu]\nfast = 1\n").len(), 2);
    }
}

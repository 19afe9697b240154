//! The daemon's configuration: a TOML file with `socket`, `cores`, `drives`, `drive_deadline_ms`,
//! `drive_wait_ms`, `parity`, `parity_check`, `confirm`, `counters`, `state`, `https`,
//! `certificate`, `key`, `metrics`, `sysfs`, `services`,
//! and the tables `access`, `health`, `enclosure`, `shelf` and `fabrics`.
//!
//! Everything else (names, levels, volumes, exports) lives on the drives (D8). A key that is not
//! known is an error, so that a typing mistake is not a silent default.

use crate::{https, pattern, state};
use drives::remote::is_remote;
use health::settings::Settings;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use parity_gpu::Limits;
pub use parity_gpu::Placement;

pub(crate) mod enclosures;
mod fabrics;
mod rates;
pub(crate) mod shelves;
mod spans;

/// Where the kernel shows its devices.
pub use drives::sysfs::ROOT as SYSFS;
pub use enclosures::{Enclosure, Module, SLOTS_MAX};
pub use fabrics::Fabrics;
pub use shelves::Shelf;

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
    /// Where the kernel shows its devices; [`SYSFS`] if absent.
    pub sysfs: Option<PathBuf>,
    /// Where `palisade services` has its files; as [`services::folder`] if absent. Of no use to the
    /// daemon.
    pub services: Option<PathBuf>,
    /// From when on a drive is not well.
    #[serde(default, deserialize_with = "later")]
    pub health: Settings,
    /// Enclosures that the system can't describe.
    #[serde(default, deserialize_with = "later", rename = "enclosure")]
    pub enclosures: Vec<Enclosure>,
    /// Shelves that tell of themselves.
    #[serde(default, deserialize_with = "later", rename = "shelf")]
    pub shelves: Vec<Shelf>,
    /// Drives behind NVMe over Fabrics.
    #[serde(default, deserialize_with = "later")]
    pub fabrics: Fabrics,
}

/// What the configuration says of drives' health, of enclosures and of shelves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Described {
    /// From when on a drive is not well.
    pub health: Settings,
    /// Enclosures that the system can't describe.
    pub enclosures: Vec<Enclosure>,
    /// Shelves that tell of themselves.
    pub shelves: Vec<Shelf>,
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

/// What [`Config::parse`] reads by itself, so that each mistake has its line.
fn later<'d, D: Deserializer<'d>, T: Default>(from: D) -> Result<T, D::Error> {
    IgnoredAny::deserialize(from).map(|_| T::default())
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

impl Default for Config {
    /// What an empty file says.
    fn default() -> Self {
        Self {
            socket: None,
            cores: one(),
            drives: Vec::new(),
            drive_deadline_ms: usual_deadline(),
            drive_wait_ms: usual_wait(),
            parity: Placement::default(),
            confirm: on(),
            counters: on(),
            parity_check: usual_check(),
            state: None,
            access: None,
            https: Vec::new(),
            certificate: None,
            key: None,
            metrics: false,
            sysfs: None,
            services: None,
            health: Settings::default(),
            enclosures: Vec::new(),
            shelves: Vec::new(),
            fabrics: Fabrics::default(),
        }
    }
}

/// The paths that an entry of `drives` means: those that are there, or the one that it names.
pub fn paths(pattern: &str) -> Vec<PathBuf> {
    pattern::expand(pattern)
}

/// Whether an entry of `drives` means this path, whether or not anything is there.
pub fn names(pattern: &str, path: &Path) -> bool {
    pattern::names(pattern, path)
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

/// What is wrong where a write by a lost path waits for so long, and a drive may take so long.
pub fn fence_too_long(of: &str, fence_ms: u64, deadline_ms: u64) -> Option<String> {
    (fence_ms >= deadline_ms).then(|| {
        format!(
            "{of}: where a path is lost, writes wait {fence_ms} ms and longer, and a drive is \
             taken out after {deadline_ms} ms: lower keep_alive_tmo, or raise drive_deadline_ms"
        )
    })
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
        let mut config: Self = toml::from_str(text).map_err(|e| mistake(text, &e).to_string())?;
        if let Some(first) = mistakes(text).first() {
            return Err(first.to_string());
        }
        let tables = Tables::read(text);
        (config.health, config.enclosures) = (tables.health, tables.enclosures);
        (config.shelves, config.fabrics) = (tables.shelves, tables.fabrics);
        Ok(config)
    }

    /// What the file says that will not do what it seems to on this machine, as it is now. Looks at
    /// the file system.
    pub fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        for pattern in &self.drives {
            // What is behind a fabric is not looked for here.
            if is_remote(Path::new(pattern)) {
                continue;
            }
            if !pattern::expand(pattern).iter().any(|path| path.exists()) {
                found.push(format!("drives: nothing is at {pattern}"));
            }
        }
        if let Some(dir) = self.sysfs.as_ref().filter(|dir| !dir.is_dir()) {
            found.push(format!("sysfs: no directory is at {}", dir.display()));
        }
        if let Some(dir) = &self.state {
            found.extend(state::problem(dir).map(|problem| format!("state: {problem}")));
        }
        for shelf in &self.shelves {
            let problem = shelves::Credentials::check(&shelf.credentials).err();
            let told = |why| format!("credentials: {}: {why}", shelf.credentials.display());
            found.extend(problem.map(told));
        }
        let unit = std::env::var_os(state::VARIABLE);
        let has_state = state::place(self.state.as_deref(), unit.as_deref()).is_some();
        if !self.https.is_empty() && !has_state {
            found.push(
                "https: it needs a state directory: `state`, or StateDirectory= of the unit"
                    .to_owned(),
            );
        }
        found.extend(self.fences_too_long());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        found.extend(https::warnings(&self.https(), now.map_or(0, |now| now.as_secs())));
        found
    }

    /// What is wrong where a write by a lost path may wait for longer than a drive may take.
    pub fn fences_too_long(&self) -> Option<String> {
        let is_behind = |pattern: &String| is_remote(Path::new(pattern));
        let is_used = self.fabrics != Fabrics::default() || self.drives.iter().any(is_behind);
        // Three of them, with keep-alive by traffic.
        let fence_ms = 3 * self.fabrics.settings.keep_alive.0 / 1_000_000;
        is_used.then(|| fence_too_long("fabrics", fence_ms, self.drive_deadline_ms)).flatten()
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

    /// What it says of drives' health, of enclosures and of shelves.
    pub fn described(&self) -> Described {
        let (enclosures, shelves) = (self.enclosures.clone(), self.shelves.clone());
        Described { health: self.health, enclosures, shelves }
    }

    /// Where the kernel shows its devices.
    pub fn sysfs(&self) -> PathBuf {
        self.sysfs.clone().unwrap_or_else(|| SYSFS.into())
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

/// What the tables `health`, `enclosure`, `shelf` and `fabrics` say, and what is wrong in them.
#[derive(Default)]
struct Tables {
    health: Settings,
    enclosures: Vec<Enclosure>,
    shelves: Vec<Shelf>,
    fabrics: Fabrics,
    wrong: Vec<spans::Wrong>,
}

impl Tables {
    /// Reads them; nothing of a text that is no TOML.
    fn read(text: &str) -> Self {
        let mut tables = Self::default();
        let Ok(document) = toml::de::DeTable::parse(text) else { return tables };
        for (key, value) in document.get_ref() {
            match key.get_ref().as_ref() {
                "health" => tables.health = rates::read(value, &mut tables.wrong),
                "enclosure" => tables.enclosures = enclosures::read(value, &mut tables.wrong),
                "shelf" => tables.shelves = shelves::read(value, &mut tables.wrong),
                "fabrics" => {
                    let cores = document.get_ref().get("cores").and_then(spans::number);
                    let cores = cores.and_then(|cores| u16::try_from(cores).ok()).unwrap_or(1);
                    tables.fabrics = fabrics::read(value, cores, &mut tables.wrong);
                }
                _ => {}
            }
        }
        tables
    }
}

/// All mistakes of a file's text. Of its syntax there is one: the rest can't be read behind it.
pub fn mistakes(text: &str) -> Vec<Mistake> {
    let mut table = match toml::de::DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => return vec![mistake(text, &error)],
    };
    let wrong = Tables::read(text).wrong.into_iter();
    let told =
        |wrong: spans::Wrong| Mistake { line: Some(line_of(text, wrong.at)), what: wrong.what };
    let mut found: Vec<_> = wrong.map(told).collect();
    loop {
        let error = match Config::deserialize(toml::de::Deserializer::from(table.clone())) {
            Err(error) => error,
            Ok(config) => {
                let line = |key| key_at(text, key).map(|at| line_of(text, at));
                let wrong = config.out_of_range().into_iter();
                found.extend(wrong.map(|(key, what)| Mistake { line: line(key), what }));
                break;
            }
        };
        found.push(mistake(text, &error));
        // Without the key that is wrong the others can be read.
        let key = error.span().and_then(|span| spans::key_of(table.get_ref(), span.start));
        if key.and_then(|key| table.get_mut().remove(key.as_str())).is_none() {
            break;
        }
    }
    found.sort_by_key(|mistake| mistake.line);
    found
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
#[path = "config_tests.rs"]
mod tests;

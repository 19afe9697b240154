//! One look at a machine.
//!
//! Purpose: [`configuration`] reads what the daemon would; [`gather()`] everything else. The caller
//! asks the daemon in between: the configuration says where it listens.
//!
//! Invariants
//! - Nothing is written, locked or claimed.
//! - What can't be read is not known; no look fails as a whole.
//! - Of a file a bounded part is read ([`Proc::text`]).

mod drives;
mod files;
mod kernel;
mod network;

use crate::facts::{Configured, Daemon, Facts};
use control::config::{self, Config, SYSFS};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the kernel tells of processes.
pub const PROC: &str = "/proc";

/// The name of a daemon's process.
pub(crate) const DAEMON: &str = "palisade";

/// How long drives may take to answer, all together.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The most bytes of a file that are read.
const MOST: u64 = 16 << 20;

/// The kernel's tree of processes, or a recorded one.
pub(crate) struct Proc<'a>(&'a Path);

impl Proc<'_> {
    /// Whether it is this machine's own.
    fn is_own(&self) -> bool {
        self.0 == Path::new(PROC)
    }

    /// What a file says, without blanks around it.
    fn text(&self, name: &str) -> Option<String> {
        text(&self.0.join(name)).map(|text| text.trim().to_owned())
    }

    /// The number that a file says.
    fn number(&self, name: &str) -> Option<u32> {
        self.text(name)?.parse().ok()
    }

    /// The number of the daemon's process, if it is one that is seen here: it may be of another
    /// namespace of processes.
    fn pid_of(&self, daemon: &Daemon) -> Option<u32> {
        let named =
            |pid: &u32| self.text(&format!("{pid}/comm")).is_some_and(|name| name == DAEMON);
        daemon.told().map(|told| told.pid).filter(named)
    }

    /// What is there.
    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// What a file says; bytes that are no text are replaced.
fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a configuration as `serve` would.
pub fn configuration(file: &Path) -> Configured {
    let (mut unread, mut mistakes, mut says) = (None, Vec::new(), None);
    match std::fs::read_to_string(file) {
        Err(error) => unread = Some(error.to_string()),
        Ok(text) => {
            mistakes = config::mistakes(&text);
            says = Config::parse(&text).ok();
        }
    }
    let says = says.unwrap_or_default();
    Configured { file: file.to_owned(), unread, mistakes, says }
}

/// Looks at the machine, whose processes are told of at `proc`. Its devices are where the
/// configuration says.
pub fn gather(config: Configured, daemon: Daemon, socket: &Path, proc: &Path) -> Facts {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let proc = Proc(proc);
    let sysfs = config.says.sysfs();
    let is_own = sysfs == Path::new(SYSFS);
    let process = kernel::process(&proc, &daemon, config.says.parity);
    let seen = drives::look(&proc, &config, &daemon, (&sysfs, is_own), now);
    let state = files::state(&config.says, &daemon);
    let written = files::written(&state);
    Facts {
        now,
        kernel: kernel::kernel(&proc),
        memory: kernel::memory(&proc),
        clock: kernel::clock(&proc, seen.latest.into_iter().chain(written).max()),
        network: network::network(&proc, &config.says, &daemon, (&sysfs, seen.listeners)),
        https: files::https(&proc, &config.says, &state),
        socket: files::node(socket),
        drives: seen.drives,
        absent: seen.absent,
        process,
        state,
        daemon,
        config,
    }
}

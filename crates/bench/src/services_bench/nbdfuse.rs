//! Random reads of 4 KiB, 32 at a time, of a volume as a file of this machine: `export create
//! --fuse`, beside nbdfuse over an export by NBD of the same volume, on a socket of this machine.
//!
//! Both are files of FUSE, which fio reads past the page cache. CPU time is the daemon's, and that
//! of nbdfuse besides.

use super::place::{Place, system, text};
use super::{Compared, Run, Side};
use crate::error::BenchError;
use crate::fio::direct_4k_reads;
use crate::remote::process::{Process, until};
use rustix::mount::{UnmountFlags, unmount};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEPTH: usize = 32;
const WHAT: Compared = Compared { name: "fuse-vs-nbdfuse-4k-read", goal: 3.0, bytes: None };

/// A running nbdfuse; its file goes with it.
struct Nbdfuse {
    process: Process,
    folder: PathBuf,
}

impl Nbdfuse {
    /// Has an export's volume, of so many bytes, as a file in a new folder.
    fn start(folder: &Path, uri: &str, bytes: u64) -> Result<Self, BenchError> {
        std::fs::create_dir(folder).map_err(system(folder))?;
        let mut command = Command::new("nbdfuse");
        command.arg(folder.join("volume")).arg(uri).process_group(0);
        let log = folder.with_extension("log");
        command.stderr(File::create_new(&log).map_err(system(&log))?);
        let process = Process::start(&mut command, "nbdfuse")?;
        let own = Self { process, folder: folder.to_owned() };
        let look = || Ok(std::fs::metadata(own.file()).ok().filter(|about| about.len() == bytes));
        until("a file of nbdfuse", look)?;
        Ok(own)
    }

    fn file(&self) -> PathBuf {
        self.folder.join("volume")
    }
}

impl Drop for Nbdfuse {
    fn drop(&mut self) {
        // It ends then.
        let _ = unmount(&self.folder, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// Measures it.
pub fn measure(run: &mut Run<'_>, place: &Place) -> Result<(), BenchError> {
    let volume = place.full_volume("file", run.options.bytes)?;
    let file = place.file("file");
    place.command(&["export", "create", &volume, "--fuse", &file.to_string_lossy()])?;
    let socket = format!("unix:{}", place.file("nbd").display());
    let export = place.command(&["export", "create", &volume, "--nbd", &socket])?;
    let uri = text(&export, "uri");
    let other = Nbdfuse::start(&place.file("nbdfuse"), uri, run.options.bytes)?;
    let beside = other.file();
    let a = Side {
        name: "nbdfuse",
        servers: vec![place.daemon(), other.process.id()],
        read: Box::new(|span| direct_4k_reads(&beside, DEPTH, span)),
    };
    let b = Side {
        name: "fuse",
        servers: vec![place.daemon()],
        read: Box::new(|span| direct_4k_reads(&file, DEPTH, span)),
    };
    run.compare(&WHAT, a, b)
}

//! Linux md over the drives that our array had: the peer that is on every Linux.
//!
//! Made as `mdadm` makes arrays by itself, with our level and strip. Its parity is not made first
//! (`--assume-clean`): md would make it beside the load, for hours on large drives, and what is
//! measured has no use for it. Files get loop devices with direct I/O.
//!
//! Invariant: what it makes is stopped and its records are wiped when it is dropped.

use super::options::{Options, Source};
use crate::error::BenchError;
use crate::files::is_in_memory;
use layout::Level;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What md's array is called.
const NAME: &str = "/dev/md/palisade-bench";

/// An array of md.
pub struct Md {
    /// Its block device.
    path: PathBuf,
    drives: Vec<PathBuf>,
    /// Of them, those that are ours.
    loops: Vec<PathBuf>,
    is_made: bool,
}

fn refused(why: &str) -> BenchError {
    BenchError::Refused(why.to_owned())
}

/// Runs a tool: what it printed, without the end of its line.
fn run(tool: &str, words: &[&OsStr]) -> Result<String, BenchError> {
    let output = Command::new(tool).args(words).output();
    let failed = |error| BenchError::System { path: tool.into(), error };
    let output = output.map_err(failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let why = format!("{}; {}", output.status, said.trim().replace('\n', "; "));
        return Err(failed(std::io::Error::other(why)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// md's name of a level.
fn level(level: Level) -> Result<&'static str, BenchError> {
    Ok(match level {
        Level::Jbod => {
            return Err(refused("md has no such level: give --level 0, 1, 5, 6 or 10"));
        }
        Level::Raid0 => "0",
        Level::Raid1 => "1",
        Level::Raid10 => "10",
        Level::Raid5 => "5",
        Level::Raid6 => "6",
    })
}

/// Finds out whether there can be one of these drives.
///
/// # Errors
/// `Refused`, with what to do.
pub fn check(options: &Options) -> Result<(), BenchError> {
    drives(options)?;
    level(options.level)?;
    if options.dry_run {
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        return Err(refused("--peer md makes an array of md's: run it as root"));
    }
    match Command::new("mdadm").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(refused("--peer md takes mdadm, which is not here: install the package mdadm")),
    }
}

/// The drives that md can have.
fn drives(options: &Options) -> Result<&[PathBuf], BenchError> {
    match &options.source {
        Source::Drives(paths) => Ok(paths),
        _ => Err(refused(
            "md does not reach drives that live in this process: give --drives, or leave --peer \
             md out",
        )),
    }
}

/// The words that make an array.
fn words(options: &Options, drives: &[PathBuf]) -> Result<Vec<String>, BenchError> {
    let level = level(options.level)?;
    let mut words = ["--create", NAME, "--run", "--metadata=1.2"].map(str::to_owned).to_vec();
    words.push(format!("--level={level}"));
    words.push(format!("--raid-devices={}", drives.len()));
    // Mirrors have no strips.
    if options.level != Level::Raid1 {
        words.push(format!("--chunk={}K", options.strip / 1024));
    }
    // What mdadm would ask about.
    if options.level != Level::Raid0 {
        words.extend(["--assume-clean", "--bitmap=internal"].map(str::to_owned));
    }
    words.extend(drives.iter().map(|own| own.display().to_string()));
    Ok(words)
}

impl Md {
    /// Makes one of the drives that are asked for, which nobody else has open.
    ///
    /// # Errors
    /// When mdadm does not make it.
    pub fn make(options: &Options) -> Result<Self, BenchError> {
        let paths = drives(options)?;
        let mut own =
            Self { path: NAME.into(), drives: Vec::new(), loops: Vec::new(), is_made: false };
        for path in paths {
            let drive = own.block_device(path)?;
            own.drives.push(drive);
        }
        let words = words(options, &own.drives)?;
        // From here on there may be records.
        own.is_made = true;
        run("mdadm", &words.iter().map(OsStr::new).collect::<Vec<_>>())?;
        own.path = std::fs::canonicalize(NAME)
            .map_err(|error| BenchError::System { path: NAME.into(), error })?;
        Ok(own)
    }

    /// A block device of a drive.
    fn block_device(&mut self, path: &Path) -> Result<PathBuf, BenchError> {
        let system = |error| BenchError::System { path: path.to_owned(), error };
        if !std::fs::metadata(path).map_err(system)?.is_file() {
            return Ok(path.to_owned());
        }
        // There is no page cache above a file in memory, and not every Linux has direct I/O on it.
        let direct = if is_in_memory(path) { "--direct-io=off" } else { "--direct-io=on" };
        let words = ["--find", "--show", direct].map(OsStr::new);
        let made = run("losetup", &[&words[..], &[path.as_os_str()]].concat())?;
        self.loops.push(made.clone().into());
        Ok(made.into())
    }

    /// Its block device.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Md {
    fn drop(&mut self) {
        let tell = |outcome: Result<String, BenchError>| {
            if let Err(error) = outcome {
                eprintln!("palisade: md's array is left behind: {error}");
            }
        };
        if self.is_made {
            tell(run("mdadm", &[OsStr::new("--stop"), self.path.as_os_str()]));
            for drive in &self.drives {
                tell(run("mdadm", &[OsStr::new("--zero-superblock"), drive.as_os_str()]));
            }
        }
        for device in &self.loops {
            tell(run("losetup", &[OsStr::new("--detach"), device.as_os_str()]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_made_as_ours_are() {
        let paths: Vec<PathBuf> = ["/dev/a", "/dev/b", "/dev/c"].map(Into::into).to_vec();
        let options = Options::new(Source::Drives(paths.clone()));
        let all = words(&options, &paths).unwrap().join(" ");
        assert_eq!(
            all,
            "--create /dev/md/palisade-bench --run --metadata=1.2 --level=5 --raid-devices=3 \
             --chunk=64K --assume-clean --bitmap=internal /dev/a /dev/b /dev/c"
        );
        let striped = Options { level: Level::Raid0, ..options.clone() };
        assert!(!words(&striped, &paths).unwrap().join(" ").contains("clean"));
        assert!(check(&Options { level: Level::Jbod, ..options }).is_err());
        let memory = Options::new(Source::Memory { bytes: 1 << 30, count: 3 });
        assert!(matches!(check(&memory), Err(BenchError::Refused(_))));
    }
}

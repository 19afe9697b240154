//! Loop devices over files of ours, by util-linux's `losetup`.
//!
//! Each says that it has a volatile write cache, as its file can't say whether the volume has one:
//! a flush that no drive needs costs next to nothing, and one that is left out costs data.

use crate::blocks::SYSFS;
use crate::{lock, not_started};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// How often it is looked whether a device has gone, and how long apart.
const LOOKS: (u32, Duration) = (100, Duration::from_millis(20));

/// Names of devices by the files that they were seen over: where to look first.
static SEEN: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

fn losetup(arguments: &[&str], file: &Path) -> io::Result<String> {
    let mut command = Command::new("losetup");
    let output = command.args(arguments).arg(file).env("LC_ALL", "C").output();
    let output = output.map_err(|error| not_started("losetup", "util-linux", &error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(said.trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Makes a loop device over a file: past the page cache, so that it has as many requests of the
/// file at a time as of itself.
///
/// # Errors
/// What `losetup` says.
pub fn make(file: &Path, block_bytes: u32) -> io::Result<String> {
    let sector = block_bytes.to_string();
    // One that a process before this one is just making is taken.
    let words = ["--find", "--show", "--nooverlap", "--direct-io=on", "--sector-size", &sector];
    losetup(&words, file)
}

/// Has the device take the file's size.
///
/// # Errors
/// What `losetup` says.
pub fn resize(device: &str) -> io::Result<()> {
    losetup(&["--set-capacity"], Path::new(device)).map(drop)
}

/// The file that a device stands on, if it is a loop device.
pub fn file_of(name: &str) -> Option<PathBuf> {
    let own = std::fs::read(Path::new(SYSFS).join(name).join("loop/backing_file")).ok()?;
    let own = own.strip_suffix(b"\n").unwrap_or(&own);
    Some(std::os::unix::ffi::OsStrExt::from_bytes(own)).map(|own: &std::ffi::OsStr| own.into())
}

/// The devices over a file.
pub fn find(file: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(SYSFS).into_iter().flatten().flatten() {
        let name = folder.file_name().into_string().unwrap_or_default();
        if name.starts_with("loop") && file_of(&name).as_deref() == Some(file) {
            found.push(format!("/dev/{name}"));
        }
    }
    found
}

/// A device over a file, if there is one. Whether it is the one that was seen last is asked first:
/// else all of them would be, for each export.
pub fn one(file: &Path) -> Option<String> {
    let is_over = |name: &String, file: &Path| file_of(name).as_deref() == Some(file);
    let seen = lock(&SEEN).get(file).cloned();
    if let Some(name) = seen.filter(|name| is_over(name, file)) {
        return Some(format!("/dev/{name}"));
    }
    let device = find(file).into_iter().next()?;
    let mut all = lock(&SEEN);
    all.retain(|file, name| is_over(name, file));
    all.insert(file.to_owned(), device.trim_start_matches("/dev/").to_owned());
    Some(device)
}

/// Ends a device, or has it end when it is closed.
///
/// # Errors
/// What `losetup` says.
pub fn detach(device: &str) -> io::Result<()> {
    losetup(&["--detach"], Path::new(device)).map(drop)
}

/// Ends a device. One that is open ends when it is closed: false.
///
/// # Errors
/// What `losetup` says.
pub fn end(device: &str, file: &Path) -> io::Result<bool> {
    detach(device)?;
    for _ in 0..LOOKS.0 {
        if !find(file).iter().any(|own| own == device) {
            return Ok(true);
        }
        std::thread::sleep(LOOKS.1);
    }
    Ok(false)
}

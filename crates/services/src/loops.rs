//! Loop devices over files of ours, by util-linux's `losetup`, and links to them.
//!
//! Each says that it has a volatile write cache, as its file can't say whether the volume has one:
//! a flush that no drive needs costs next to nothing, and one that is left out costs data.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where links to devices are.
pub const LINKS: &str = "/dev/palisade";
const SYSFS: &str = "/sys/block";
/// How often it is looked whether a device has gone, and how long apart.
const LOOKS: (u32, Duration) = (100, Duration::from_millis(20));

fn losetup(arguments: &[&str], file: &Path) -> io::Result<String> {
    let mut command = Command::new("losetup");
    let output = command.args(arguments).arg(file).env("LC_ALL", "C").output();
    let output = output.map_err(|error| {
        let missing = error.kind() == ErrorKind::NotFound;
        let hint = if missing { "; install util-linux" } else { "" };
        io::Error::other(format!("losetup: {error}{hint}"))
    })?;
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
    losetup(&["--find", "--show", "--direct-io=on", "--sector-size", &sector], file)
}

/// Has the device take the file's size.
///
/// # Errors
/// What `losetup` says.
pub fn resize(device: &str) -> io::Result<()> {
    losetup(&["--set-capacity"], Path::new(device)).map(drop)
}

/// The device's bytes.
///
/// # Errors
/// They can't be read.
pub fn bytes(device: &str) -> io::Result<u64> {
    let sectors = std::fs::read_to_string(attribute(device, "size"))?;
    let sectors: u64 = sectors.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
    Ok(sectors * 512)
}

/// The device over a file, if there is one.
pub fn find(file: &Path) -> Option<String> {
    let folders = std::fs::read_dir(SYSFS).ok()?;
    for folder in folders.flatten() {
        let name = folder.file_name().into_string().unwrap_or_default();
        if !name.starts_with("loop") {
            continue;
        }
        let own = std::fs::read_to_string(folder.path().join("loop/backing_file"));
        if own.is_ok_and(|own| Path::new(own.trim_end_matches('\n')) == file) {
            return Some(format!("/dev/{name}"));
        }
    }
    None
}

/// Whether somebody has it for themselves, such as a file system that is mounted from it.
pub fn is_claimed(device: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(device, flags, Mode::empty()).is_err_and(|error| error == Errno::BUSY)
}

/// Who uses a device: where it is mounted.
pub fn user(device: &str) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let at = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        (fields.next()? == device).then(|| fields.next().unwrap_or_default().to_owned())
    });
    at.map_or_else(|| format!("{device} is in use"), |at| format!("{device} is mounted at {at}"))
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
    // The system looks at devices that change, and has them open for a moment.
    for _ in 0..LOOKS.0 {
        if find(file).is_none_or(|own| own != device) {
            return Ok(true);
        }
        std::thread::sleep(LOOKS.1);
    }
    Ok(false)
}

fn attribute(device: &str, name: &str) -> PathBuf {
    Path::new(SYSFS).join(device.trim_start_matches("/dev/")).join(name)
}

/// The link to a volume's device.
pub fn link(array: &str, volume: &str) -> PathBuf {
    Path::new(LINKS).join(array).join(volume)
}

/// Has a link lead to a device. What is no link stays.
///
/// # Errors
/// It can't be made.
pub fn set_link(link: &Path, device: &str) -> io::Result<()> {
    match std::fs::read_link(link) {
        Ok(known) if known == Path::new(device) => return Ok(()),
        Ok(_) => std::fs::remove_file(link)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            link.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        }
        Err(error) => return Err(error),
    }
    std::os::unix::fs::symlink(device, link)
}

/// Removes a link that leads to a device, and folders that are empty without it.
pub fn remove_link(link: &Path, device: &str) {
    if std::fs::read_link(link).is_ok_and(|known| known == Path::new(device)) {
        let _ = std::fs::remove_file(link);
        // One that is not empty stays.
        for folder in link.ancestors().skip(1).take(2) {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Removes whatever link leads to a device.
pub fn remove_links_to(device: &str) {
    for array in std::fs::read_dir(LINKS).into_iter().flatten().flatten() {
        for link in std::fs::read_dir(array.path()).into_iter().flatten().flatten() {
            remove_link(&link.path(), device);
        }
    }
}

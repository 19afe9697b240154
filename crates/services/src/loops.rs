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

/// The device's bytes.
///
/// # Errors
/// They can't be read.
pub fn bytes(device: &str) -> io::Result<u64> {
    let name = device.trim_start_matches("/dev/");
    let sectors = std::fs::read_to_string(Path::new(SYSFS).join(name).join("size"))?;
    let sectors: u64 = sectors.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
    Ok(sectors * 512)
}

/// The file that a device stands on, if it is a loop device.
fn file_of(name: &str) -> Option<PathBuf> {
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

/// Who uses a device, if somebody does: where it is mounted, or which process has it open.
pub fn user(device: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let is_claimed =
        rustix::fs::open(device, flags, Mode::empty()).is_err_and(|error| error == Errno::BUSY);
    if is_claimed {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let is_own = |named: &str| {
            let leads_to = std::fs::canonicalize(named);
            named.starts_with("/dev/") && leads_to.is_ok_and(|own| own == Path::new(device))
        };
        let at = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ');
            is_own(fields.next()?).then(|| fields.next().unwrap_or_default().to_owned())
        });
        return Some(at.map_or_else(
            || format!("{device} is in use"),
            |at| format!("{device} is mounted at {at}"),
        ));
    }
    let process = opener(Path::new(device))?;
    Some(format!("process {process} has {device} open"))
}

/// A process that has a file open. The system looks at devices that change, and has them open for
/// a moment: it does not count.
fn opener(file: &Path) -> Option<u32> {
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = process.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let open = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        let has_it = open
            .into_iter()
            .any(|fd| std::fs::read_link(fd.path()).is_ok_and(|leads_to| leads_to == file));
        let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        if has_it && !name.contains("udev") {
            return Some(id);
        }
    }
    None
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

/// The link to a volume's device; none where it would lead out of [`LINKS`].
pub fn link(array: &str, volume: &str) -> Option<PathBuf> {
    let is_plain =
        |name: &&str| !name.is_empty() && *name != "." && *name != ".." && !name.contains('/');
    [array, volume].iter().all(is_plain).then(|| Path::new(LINKS).join(array).join(volume))
}

/// Has a link lead to a device. One that leads to a device of another, or is no link, stays.
///
/// # Errors
/// It stays, or can't be made.
pub fn set_link(link: &Path, device: &str, folder: &Path) -> io::Result<()> {
    match std::fs::read_link(link) {
        Ok(known) if known == Path::new(device) => return Ok(()),
        Ok(known) => {
            let name = known.strip_prefix("/dev").ok().and_then(Path::to_str).unwrap_or_default();
            let is_ours = match file_of(name) {
                Some(file) => file.parent() == Some(folder),
                // Nothing is behind it, or what was there.
                None => name.starts_with("loop") || !known.exists(),
            };
            if !is_ours {
                return Err(io::Error::other(format!("it leads to {}", known.display())));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            link.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        }
        Err(error) => return Err(error),
    }
    // Whoever opens it meanwhile finds the one or the other.
    let new = link.with_file_name(".new");
    let _ = std::fs::remove_file(&new);
    std::os::unix::fs::symlink(device, &new)?;
    std::fs::rename(&new, link)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_nowhere_else() {
        assert_eq!(link("a", "b.c"), Some("/dev/palisade/a/b.c".into()));
        for (array, volume) in [("..", "sda"), ("a", ".."), (".", "v"), ("a", "b/c"), ("", "v")] {
            assert_eq!(link(array, volume), None, "{array} {volume}");
        }
    }

    #[test]
    fn a_link_of_somebody_else_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().join("array/v");
        set_link(&at, "/dev/loop900", folder.path()).expect("made");
        set_link(&at, "/dev/loop901", folder.path()).expect("nothing is behind it");
        assert_eq!(std::fs::read_link(&at).expect("a link"), Path::new("/dev/loop901"));
        remove_link(&at, "/dev/loop900");
        assert!(at.is_symlink());
        std::fs::remove_file(&at).expect("removed");
        std::os::unix::fs::symlink("/dev/null", &at).expect("linked");
        assert!(set_link(&at, "/dev/loop901", folder.path()).is_err());
        std::fs::remove_file(&at).expect("removed");
        std::fs::write(&at, "").expect("written");
        assert!(set_link(&at, "/dev/loop901", folder.path()).is_err());
    }

    #[test]
    fn whoever_has_a_file_open_is_found() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().canonicalize().expect("is there");
        assert_eq!(opener(&path), Some(std::process::id()));
        drop(file.into_temp_path());
        assert_eq!(opener(&path), None);
    }
}

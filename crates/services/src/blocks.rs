//! Block devices, whatever they are made of: how large they are, and who uses them.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Where the kernel lists them.
pub const SYSFS: &str = "/sys/block";

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

/// What tells a device from another that has its name later (`diskseq` of the kernel).
///
/// # Errors
/// It can't be read.
pub fn instance(device: &str) -> io::Result<u64> {
    let name = device.trim_start_matches("/dev/");
    let text = std::fs::read_to_string(Path::new(SYSFS).join(name).join("diskseq"))?;
    text.trim().parse().map_err(|_| ErrorKind::InvalidData.into())
}

/// How many requests are under way at a device; none at one that is gone.
pub fn in_flight(device: &str) -> u64 {
    let name = device.trim_start_matches("/dev/");
    let text = std::fs::read_to_string(Path::new(SYSFS).join(name).join("inflight"));
    let text = text.unwrap_or_default();
    text.split_whitespace().filter_map(|count| count.parse::<u64>().ok()).sum()
}

/// Who uses a device, if somebody does: where it is mounted, or which process has it open.
pub fn user(device: &str) -> Option<String> {
    claim(device).err()
}

/// Claims a device that nobody uses: nobody mounts it as long as it is held.
///
/// # Errors
/// Who uses it: where it is mounted, or which process has it open.
pub fn claim(device: &str) -> Result<OwnedFd, String> {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(device, flags, Mode::empty()) {
        Ok(claim) => match opened(device) {
            Some(user) => Err(user),
            None => Ok(claim),
        },
        Err(Errno::BUSY) => Err(mounted(device)),
        Err(error) => Err(format!("{device}: {error}")),
    }
}

/// Where a device is that somebody has claimed, in words.
fn mounted(device: &str) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_own = |named: &str| {
        let leads_to = std::fs::canonicalize(named);
        named.starts_with("/dev/") && leads_to.is_ok_and(|own| own == Path::new(device))
    };
    let at = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        is_own(fields.next()?).then(|| fields.next().unwrap_or_default().to_owned())
    });
    at.map_or_else(|| format!("{device} is in use"), |at| format!("{device} is mounted at {at}"))
}

/// Which other process has a device open, in words.
pub fn opened(device: &str) -> Option<String> {
    let process = opener(Path::new(device))?;
    Some(format!("process {process} has {device} open"))
}

/// Another process that has a file open. The system looks at devices that change, and has them open
/// for a moment: it does not count. Neither do children of this one: they ask here how a device is,
/// or are about to become another program, and have by then what this one has.
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
        let own = std::process::id();
        if has_it && !name.contains("udev") && id != own && parent(&process.path()) != Some(own) {
            return Some(id);
        }
    }
    None
}

/// The parent of a process (proc(5), `status`).
fn parent(process: &Path) -> Option<u32> {
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_a_file_open_is_found() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().canonicalize().expect("is there");
        assert_eq!(opener(&path), None, "this one alone");
        // A child's child has it, and its number is told.
        let mut child = std::process::Command::new("sh");
        child.args(["-c", "sleep 600 <\"$0\" & echo $!; wait"]).arg(&path);
        let mut child = child.stdout(std::process::Stdio::piped()).spawn().expect("started");
        let mut told = String::new();
        let pipe = child.stdout.as_mut().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(pipe), &mut told).expect("told");
        let user: u32 = told.trim().parse().expect("a number");
        while parent(Path::new(&format!("/proc/{user}"))).is_some() && opener(&path).is_none() {
            // It is about to open it.
            std::thread::yield_now();
        }
        assert_eq!(opener(&path), Some(user));
        let pid = rustix::process::Pid::from_raw(user as i32).expect("a number");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("ended");
        child.wait().expect("ended");
        assert_eq!(opener(&path), None);
    }

    #[test]
    fn what_this_process_started_is_no_user() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().canonicalize().expect("is there");
        let mut own = std::process::Command::new("sleep");
        let own = own.arg("600").stdin(file.reopen().expect("opened")).spawn();
        let mut own = own.expect("started");
        let of = Path::new("/proc").join(own.id().to_string());
        assert_eq!(std::fs::read_link(of.join("fd/0")).expect("open"), path);
        assert_eq!(opener(&path), None);
        own.kill().and_then(|()| own.wait()).expect("ended");
    }
}

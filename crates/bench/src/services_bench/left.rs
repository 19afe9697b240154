//! What `palisade services` leaves of a folder when its exports can't be deleted: it is ended by
//! the kernel's own means.
//!
//! Servers go on after that process by design, and so do mounts and loop devices: nobody else would
//! end them.

use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use shares::filesystem::{self, Line};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Ends servers, mounts, loop devices and links of a folder.
pub fn end(folder: &Path) {
    for server in servers(folder) {
        // It may have ended.
        let _ = kill_process(server, Signal::KILL);
    }
    // File systems of shares go before the loop devices that they are on, and these before the
    // files below them.
    let (files, shared): (Vec<Line>, Vec<Line>) =
        mounts(folder).into_iter().partition(|own| own.kind.starts_with("fuse"));
    for own in shared {
        let _ = unmount(&own.path, UnmountFlags::DETACH);
    }
    for device in loops(folder) {
        let mut losetup = Command::new("losetup");
        let quiet = losetup.arg("--detach").arg(&device).stdin(Stdio::null());
        let _ = quiet.stdout(Stdio::null()).stderr(Stdio::null()).status();
        remove_links(&device);
    }
    for own in files {
        let _ = unmount(&own.path, UnmountFlags::DETACH);
    }
    let beside = folder.join(super::place::MOUNTS);
    for left in std::fs::read_dir(&beside).into_iter().flatten().flatten() {
        let _ = std::fs::remove_dir(left.path());
    }
    let _ = std::fs::remove_dir(beside);
}

/// Processes that have the folder in what they were started with.
fn servers(folder: &Path) -> Vec<Pid> {
    let own = folder.as_os_str().as_bytes();
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = process.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(id) = id.and_then(Pid::from_raw) else { continue };
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let is_of = |variable: &[u8]| {
            let names: [&[u8]; 2] = [b"PALISADE_SERVER=", b"TGT_IPC_SOCKET="];
            names
                .iter()
                .any(|name| variable.strip_prefix(*name).is_some_and(|path| path.starts_with(own)))
        };
        if environment.split(|byte| *byte == 0).any(is_of) {
            found.push(id);
        }
    }
    found
}

/// What is mounted below a folder, as the kernel lists it.
fn mounts(folder: &Path) -> Vec<Line> {
    let all = filesystem::lines().unwrap_or_default();
    all.into_iter().filter(|own| own.path.starts_with(folder)).collect()
}

/// Loop devices over files of a folder.
fn loops(folder: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let own = |device: std::fs::DirEntry| {
        let file = std::fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        let is_own = Path::new(file.trim_end()).starts_with(folder);
        is_own.then(|| Path::new("/dev").join(device.file_name()))
    };
    all.filter_map(own).collect()
}

/// Removes links to a device.
fn remove_links(device: &Path) {
    let list = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    for array in list(Path::new(services::LINKS)) {
        for link in list(&array.path()) {
            if std::fs::read_link(link.path()).is_ok_and(|leads| leads == device) {
                let _ = std::fs::remove_file(link.path());
                let _ = std::fs::remove_dir(array.path());
            }
        }
    }
}

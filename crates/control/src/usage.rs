//! Whether another program has a drive, by the kernel's word (`/proc`, `/sys`): the drive is
//! neither opened nor claimed for that.
//!
//! What is found here is what people are told of drives that nobody asked for. Who takes a drive
//! claims it, and the kernel decides: a program that has a device and nothing that shows here is
//! met then.
//!
//! Invariant: what is read here is in the kernel's memory; a drive that hangs delays nobody.

use crate::nameplate;
use drives::sysfs::ROOT as SYSFS;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Whether a file is locked, or a block device or a part of it is mounted, swapped to, or below
/// another device.
pub fn is_used(path: &Path) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    if found.file_type().is_block_device() {
        let devices = devices(&found);
        devices.iter().any(|device| device.is_held)
            || is_mounted(&text("/proc/self/mountinfo"), &devices)
            || is_swapped_to(&text("/proc/swaps"), &devices)
    } else {
        is_locked(&text("/proc/locks"), &found)
    }
}

/// A device, or a partition of it.
struct Device {
    /// `MAJOR:MINOR`.
    number: String,
    /// Whether another device is made of it.
    is_held: bool,
}

/// What a node leads to, and its partitions.
fn devices(found: &Metadata) -> Vec<Device> {
    let number = number(found.rdev());
    let Some(own) = nameplate::directory(Path::new(SYSFS), found.rdev()) else {
        return vec![Device { number, is_held: false }];
    };
    let of = |directory: &Path, number: String| {
        let mut holders = std::fs::read_dir(directory.join("holders")).into_iter().flatten();
        Device { number, is_held: holders.next().is_some() }
    };
    let mut devices = vec![of(&own, number)];
    for entry in std::fs::read_dir(&own).into_iter().flatten().flatten() {
        let part = entry.path();
        if part.join("partition").exists()
            && let Ok(number) = std::fs::read_to_string(part.join("dev"))
        {
            devices.push(of(&part, number.trim().to_owned()));
        }
    }
    devices
}

fn number(device: u64) -> String {
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

/// The device that a path leads to, as `MAJOR:MINOR`.
fn device_at(path: &str) -> Option<String> {
    let found = path.starts_with("/dev/").then(|| std::fs::metadata(path).ok())??;
    found.file_type().is_block_device().then(|| number(found.rdev()))
}

/// By mounts (proc_pid_mountinfo(5)): their third part is the device, which some file systems make
/// up; the second behind ` - ` is what was mounted.
fn is_mounted(mounts: &str, devices: &[Device]) -> bool {
    let is_own = |number: &str| devices.iter().any(|device| device.number == number);
    mounts.lines().any(|line| {
        let (head, tail) = line.split_once(" - ").unwrap_or((line, ""));
        head.split(' ').nth(2).is_some_and(is_own)
            || tail.split(' ').nth(1).and_then(device_at).is_some_and(|number| is_own(&number))
    })
}

/// By areas for swapping (proc_swaps(5)): their first part is the path.
fn is_swapped_to(swaps: &str, devices: &[Device]) -> bool {
    let at = |line: &str| device_at(line.split_whitespace().next()?);
    let mut found = swaps.lines().skip(1).filter_map(at);
    found.any(|number| devices.iter().any(|device| device.number == number))
}

/// By locks (proc_locks(5)) of whole files: `FLOCK … WRITE PID MAJOR:MINOR:INODE …`, with
/// numbers of devices in hexadecimal.
fn is_locked(locks: &str, found: &Metadata) -> bool {
    let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
    let own = format!("{major:02x}:{minor:02x}:{}", found.ino());
    locks.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.any(|word| word == "FLOCK") && words.any(|word| word == own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_and_swap_space_show() {
        let own = [Device { number: "259:1".to_owned(), is_held: false }];
        let line = "29 1 259:1 / /mnt rw,relatime shared:1 - ext4 /dev/none rw\n";
        assert!(is_mounted(line, &own));
        assert!(!is_mounted(&line.replace("259:1", "259:2"), &own) && !is_mounted("\n x", &own));
        let head = "Filename\tType\tSize\tUsed\tPriority\n";
        assert!(!is_swapped_to(&format!("{head}/dev/none partition 1 0 -2\n"), &own));
    }

    #[test]
    fn a_lock_of_a_file_shows_while_it_is_held() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a");
        let file = std::fs::File::create(&path).expect("created");
        assert!(!is_used(&path));
        file.lock().expect("locked");
        assert!(is_used(&path));
        drop(file);
        assert!(!is_used(&path) && !is_used(&dir.path().join("none")));
    }
}

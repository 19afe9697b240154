//! What identifies a drive for ever, by the kernel's word (`/sys`): nothing is asked of the drive.
//!
//! Invariant: what is read here is in the kernel's memory; a drive that hangs delays nobody.

use drives::sysfs::Sysfs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What the kernel says that a drive is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Nameplate {
    /// Its World Wide Identifier; that of a partition is its drive's, and says which it is.
    pub wwid: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Whether it is a regular file.
    pub is_file: bool,
    /// Its file system and number, if it is a file.
    pub file: Option<(u64, u64)>,
}

impl Nameplate {
    /// Whether another drive is there `now`. What is not said now, such as while the kernel does
    /// not answer, says nothing.
    pub fn is_other(&self, now: &Self) -> bool {
        fn differs<T: PartialEq>(then: &Option<T>, now: &Option<T>) -> bool {
            then.is_some() && now.is_some() && then != now
        }
        self.is_file != now.is_file
            || differs(&self.wwid, &now.wwid)
            || differs(&self.serial, &now.serial)
            || differs(&self.model, &now.model)
            || differs(&self.file, &now.file)
    }

    /// Whether all that is known of this drive is said of the one that is there `now`, too.
    pub fn is_confirmed_by(&self, now: &Self) -> bool {
        fn same<T: PartialEq>(then: &Option<T>, now: &Option<T>) -> bool {
            then.is_none() || then == now
        }
        !self.is_other(now)
            && same(&self.wwid, &now.wwid)
            && same(&self.serial, &now.serial)
            && same(&self.file, &now.file)
    }

    /// What is said now, and what was known before where that says nothing.
    pub fn over(self, before: Self) -> Self {
        Self {
            wwid: self.wwid.or(before.wwid),
            serial: self.serial.or(before.serial),
            model: self.model.or(before.model),
            is_file: self.is_file,
            file: self.file.or(before.file),
        }
    }
}

/// What tells whether anything was written to a drive, or another is there, since the last look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// File system and number of the file, its device, its size, when it was written.
    file: (u64, u64, u64, u64, i64, i64),
    /// What the kernel counts of it.
    written: Option<[u64; 3]>,
}

/// Where the kernel tells of the device with this number.
pub fn directory(sysfs: &Path, device: u64) -> Option<PathBuf> {
    Sysfs::new(sysfs).directory(rustix::fs::major(device), rustix::fs::minor(device))
}

/// Of the block device with this number.
fn of_device(sysfs: &Path, device: u64) -> Nameplate {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let (identity, model) = Sysfs::new(sysfs).identify(major, minor).unwrap_or_default();
    Nameplate { wwid: identity.wwid, serial: identity.serial, model, is_file: false, file: None }
}

/// Of whatever is at a path; `None` if nothing is.
pub fn of(sysfs: &Path, path: &Path) -> Option<Nameplate> {
    let found = std::fs::metadata(path).ok()?;
    Some(match found.file_type().is_block_device() {
        true => of_device(sysfs, found.rdev()),
        false => Nameplate {
            is_file: found.is_file(),
            file: found.is_file().then(|| (found.dev(), found.ino())),
            ..Nameplate::default()
        },
    })
}

/// How what is at a path is now; `None` if nothing is.
pub fn stamp(sysfs: &Path, path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    let is_device = found.file_type().is_block_device();
    // The time in the node of a device says nothing.
    let (written, time) = match is_device {
        true => {
            let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
            (Sysfs::new(sysfs).writes(major, minor), (0, 0))
        }
        false => (None, (found.mtime(), found.mtime_nsec())),
    };
    let file = (found.dev(), found.ino(), found.rdev(), found.len(), time.0, time.1);
    Some(Stamp { file, written })
}

/// A name that is good in a URI: letters, digits, `.`, `_` and `-`.
pub fn id(name: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.chars().map(|c| if good(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use drives::sysfs::ROOT as SYSFS;

    /// A device of this number with these files.
    fn sysfs(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            let path = dir.path().join("devices/nvme0n1").join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let numbers = dir.path().join("dev/block");
        std::fs::create_dir_all(&numbers).expect("made");
        for (number, target) in [("259:0", "nvme0n1"), ("259:1", "nvme0n1/nvme0n1p1")] {
            let to = dir.path().join("devices").join(target);
            std::os::unix::fs::symlink(to, numbers.join(number)).expect("linked");
        }
        dir
    }

    fn device(minor: u32) -> u64 {
        rustix::fs::makedev(259, minor)
    }

    #[test]
    fn a_drive_is_identified_by_what_the_kernel_says() {
        let dir = sysfs(&[
            ("wwid", "eui.0025388b91d0b2ab\n"),
            ("device/model", "Samsung SSD   980\n"),
            ("device/serial", " S64DNX0 \n"),
            ("nvme0n1p1/partition", "1\n"),
        ]);
        let drive = of_device(dir.path(), device(0));
        assert_eq!(drive.wwid.as_deref(), Some("eui.0025388b91d0b2ab"));
        assert_eq!(drive.model.as_deref(), Some("Samsung SSD 980"));
        assert_eq!(drive.serial.as_deref(), Some("S64DNX0"));
        let partition = of_device(dir.path(), device(1));
        assert_eq!(partition.wwid.as_deref(), Some("eui.0025388b91d0b2ab-part1"));
        assert_eq!(of_device(dir.path(), device(2)), Nameplate::default());
    }

    #[test]
    fn a_drive_of_scsi_has_its_wwid_elsewhere() {
        let dir = sysfs(&[("device/wwid", "t10.ATA     QEMU HARDDISK\n")]);
        let wwid = of_device(dir.path(), device(0)).wwid.expect("it has one");
        assert_eq!(
            (wwid.as_str(), id(&wwid)),
            ("t10.ATA QEMU HARDDISK", "t10.ATA-QEMU-HARDDISK".to_owned())
        );
    }

    #[test]
    fn silence_of_the_kernel_makes_no_other_drive() {
        let text = |text: &str| Some(text.to_owned());
        let first = Nameplate { wwid: text("a"), serial: text("1"), ..Nameplate::default() };
        let silent = Nameplate::default();
        assert!(!first.is_other(&silent) && !first.is_confirmed_by(&silent));
        assert!(first.is_confirmed_by(&first) && silent.is_confirmed_by(&first));
        let part = Nameplate { wwid: None, ..first.clone() };
        assert!(!first.is_other(&part) && !first.is_confirmed_by(&part));
        assert_eq!(part.over(first.clone()), first);
        let other = Nameplate { serial: text("2"), ..first.clone() };
        assert!(first.is_other(&other) && !first.is_confirmed_by(&other));
    }

    #[test]
    fn what_is_written_to_a_file_shows() {
        let dir = tempfile::tempdir().expect("a directory");
        let (sysfs, path) = (Path::new(SYSFS), dir.path().join("a"));
        assert_eq!(stamp(sysfs, &path), None);
        std::fs::write(&path, "1").expect("written");
        let before = stamp(sysfs, &path);
        assert_eq!((stamp(sysfs, &path), before.is_some()), (before.clone(), true));
        std::fs::write(&path, "22").expect("written");
        assert_ne!(stamp(sysfs, &path), before);
        assert!(of(sysfs, &path).is_some_and(|plate| plate.is_file));
    }
}

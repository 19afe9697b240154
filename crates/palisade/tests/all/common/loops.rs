//! Files as block devices, and file systems on these.

use super::{output, program, run, skip};
use std::path::{Path, PathBuf};

/// A loop device over a file, detached when dropped.
pub struct Loop(pub String);

impl Loop {
    /// With sectors of so many bytes.
    pub fn new(file: &Path, sector: &str) -> Self {
        Self::with(file, sector, "off")
    }

    /// The same past the page cache: as many requests of the file at a time as of the device.
    pub fn direct(file: &Path, sector: &str) -> Self {
        Self::with(file, sector, "on")
    }

    fn with(file: &Path, sector: &str, direct: &str) -> Self {
        let mut command = program("losetup");
        command.args(["--find", "--show", "--sector-size", sector]);
        command.arg(format!("--direct-io={direct}")).arg(file);
        Self(run(&mut command).trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        output(program("losetup").args(["--detach", &self.0]));
    }
}

/// A mounted file system.
pub struct Mount(pub PathBuf);

impl Mount {
    /// Mounts what is on the device.
    pub fn new(device: &Loop, at: PathBuf) -> Self {
        Self::of(&device.0, "ext4", at)
    }

    /// Mounts a file system of this type.
    pub fn of(device: &str, kind: &str, at: PathBuf) -> Self {
        std::fs::create_dir_all(&at).expect("a directory");
        run(program("mount").args(["-t", kind, device]).arg(&at));
        Self(at)
    }

    /// Unmounts it.
    pub fn end(self) {
        run(program("umount").arg(&self.0));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if std::thread::panicking() {
            output(program("umount").arg("--lazy").arg(&self.0));
        }
    }
}

/// A file system that keeps whoever writes to it waiting, until this is dropped.
pub struct Frozen(PathBuf);

impl Frozen {
    /// Freezes it.
    pub fn new(mount: &Mount) -> Self {
        run(program("fsfreeze").arg("--freeze").arg(&mount.0));
        Self(mount.0.clone())
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        output(program("fsfreeze").arg("--unfreeze").arg(&self.0));
    }
}

/// Whether this machine lets us have loop devices, and mount what is on them: else this is skipped.
pub fn are_to_be_had() -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "loop devices need root"
    } else if !output(program("losetup").arg("--find")).status.success() {
        "no loop device"
    } else {
        return true;
    };
    skip(why);
    false
}

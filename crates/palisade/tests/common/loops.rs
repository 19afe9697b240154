//! Files as block devices.

use super::{output, program, run};
use std::path::Path;

/// A loop device over a file, detached when dropped.
pub struct Loop(pub String);

impl Loop {
    /// With sectors of so many bytes.
    pub fn new(file: &Path, sector: &str) -> Self {
        let mut command = program("losetup");
        command.args(["--find", "--show", "--sector-size", sector]).arg(file);
        Self(run(&mut command).trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        output(program("losetup").args(["--detach", &self.0]));
    }
}

/// Whether there is a loop device to be had.
pub fn there_is_one() -> bool {
    output(program("losetup").arg("--find")).status.success()
}

//! iSCSI targets of the tests' own: where they are, and who serves them.

use super::program;
use rustix::process::{Pid, Signal, kill_process};
use std::net::SocketAddr;
use std::path::Path;

/// A portal that nobody else has: at an address of this process' own.
pub fn portal(last: u8) -> SocketAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, high.max(1), low, last], ::iscsi::PORT))
}

/// The processes of `tgtd` that have a folder's sockets.
pub fn servers(folder: &Path) -> Vec<i32> {
    let own = folder.to_str().expect("text");
    let Ok(output) = program("pgrep").args(["-x", "tgtd"]).output() else { return Vec::new() };
    let all = String::from_utf8(output.stdout).expect("text");
    let all = all.lines().map(|line| line.parse::<i32>().expect("a number"));
    let is_own = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(own)
    };
    all.filter(is_own).collect()
}

/// Ends them.
pub fn kill(folder: &Path) {
    for server in servers(folder) {
        let _ = kill_process(Pid::from_raw(server).expect("a number"), Signal::KILL);
    }
}

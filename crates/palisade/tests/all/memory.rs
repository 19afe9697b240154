//! What the daemon asks of the kernel about its own memory, where that is granted and where not.
//!
//! What this machine grants is found out by asking for it; what it does not grant isn't tried.

use crate::common::place::{Daemon, Place};
use crate::common::{MIB, output, program};
use rustix::process::configure_io_flusher_behavior;
use serde_json::Value;
use std::fs::read_to_string;

/// Of a thread's flags, those of `PR_SET_IO_FLUSHER`: `PF_MEMALLOC_NOIO` and `PF_LOCAL_THROTTLE`
/// (include/linux/sched.h).
const FLUSHER: u64 = 0x0018_0000;
/// The bit of `CAP_IPC_LOCK` (capabilities(7)).
const IPC_LOCK: u64 = 1 << 14;
/// Takes `CAP_IPC_LOCK` from what is run.
const NO_LOCK: [&str; 3] = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"];
/// Limits in KiB, none of which may be relied on.
const LIMITS: [&str; 4] = ["0", "64", "8192", "4194304"];

/// A line of `/proc/PID/status`.
fn field(id: &str, name: &str) -> String {
    let status = read_to_string(format!("/proc/{id}/status")).expect("read");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("is listed");
    line.trim_start_matches(':').trim().to_owned()
}

fn is_locked(daemon: &Daemon) -> bool {
    field(&daemon.id().to_string(), "VmLck") != "0 kB"
}

/// Whether this process may lock without limit, here and not only in a namespace of its own.
fn may_lock() -> bool {
    let capabilities = u64::from_str_radix(&field("self", "CapEff"), 16).expect("a number");
    let map = read_to_string("/proc/self/uid_map").expect("read");
    let all = map.split_whitespace().eq(["0", "0", "4294967295"]);
    all && capabilities & IPC_LOCK != 0
}

/// Whether a command that only runs another one can be run here.
fn runs(by: &[&str]) -> bool {
    let mut command = program(by[0]);
    let done = output(command.args(&by[1..]).arg("true")).status.success();
    if !done {
        println!("not tried: {by:?} is refused");
    }
    done
}

/// Has the daemon, started so, make an array and take 32 MiB; what it says of its memory.
fn serve(by: &[&str]) -> (Place, Daemon, Value) {
    let mut place = Place::new("memory", 64);
    let drives = place.drives(3);
    let daemon = Daemon::start_by(&place, 2, by, &["--parity", "cpu"]);
    daemon.create("a", "5", &drives, &[]);
    let served = daemon.volume(&place, "a/v", "32M");
    let mut client = crate::common::nbd::Client::connect(&served.socket, "a/v").expect("connected");
    let data = vec![7; MIB as usize];
    for offset in 0..32 {
        client.write(offset * MIB, &data).expect("written");
    }
    let mut read = vec![0; MIB as usize];
    client.read(31 * MIB, &mut read).expect("read");
    assert!(read == data);
    let memory = daemon.call(&["status"])["memory"].clone();
    println!("{by:?}: {memory}");
    assert_eq!(memory["left_to_gpu"], false);
    (place, daemon, memory)
}

/// Everything is served, nothing is locked, and that is said wherever one may look.
fn unlocked(by: &[&str]) {
    let (_place, daemon, memory) = serve(by);
    assert!(memory["locked"] == false && !is_locked(&daemon), "{memory}");
    let problem = memory["problem"].as_str().expect("text");
    assert!(problem.contains("CAP_IPC_LOCK or LimitMEMLOCK=infinity"), "{problem}");
    assert!(daemon.said().contains(problem), "{}", daemon.said());
    let text = daemon.text(&["status"]);
    assert_eq!(text.lines().filter(|line| line.contains(problem)).count(), 1, "{text}");
    daemon.stop();
}

#[test]
fn under_any_limit_the_daemon_serves_and_locks_nothing() {
    for limit in LIMITS {
        let sh = format!("ulimit -l {limit} 2>&1 && exec \"$@\"");
        let by = ["sh", "-c", &sh, "sh"];
        let by = if may_lock() { [&NO_LOCK[..], &by].concat() } else { by.to_vec() };
        if runs(&by) {
            unlocked(&by);
        }
    }
}

/// Root of a namespace has the capability by name, and is held to the limit.
#[test]
fn a_capability_in_a_namespace_does_not_count() {
    let by = ["unshare", "--user", "--map-root-user", "sh", "-c", "ulimit -l 8192; exec \"$@\""];
    let by = [&by[..], &["sh"]].concat();
    if runs(&by) {
        unlocked(&by);
    }
}

#[test]
fn memory_is_locked_where_there_is_no_limit() {
    let unlimited = ["sh", "-c", "ulimit -l unlimited && exec \"$@\"", "sh"];
    let tiny = ["sh", "-c", "ulimit -Sl 64; exec \"$@\"", "sh"];
    for (by, may) in [(unlimited, runs(&unlimited)), (tiny, may_lock())] {
        if may {
            let (_place, daemon, memory) = serve(&by);
            assert!(memory["locked"] == true && is_locked(&daemon), "{memory}");
            assert!(daemon.said().contains("memory is locked"), "{}", daemon.said());
            let limits = read_to_string(format!("/proc/{}/limits", daemon.id())).expect("read");
            let limit = limits.lines().find(|line| line.starts_with("Max locked memory"));
            let soft = limit.and_then(|line| line.split_whitespace().nth(3)).expect("a limit");
            assert!(["unlimited", "65536"].contains(&soft), "what was asked with is left: {soft}");
            daemon.stop();
        }
    }
}

#[test]
fn no_thread_waits_for_io_when_it_needs_memory_if_that_may_be() {
    // Of this thread only, which ends with that.
    let asked = std::thread::spawn(|| configure_io_flusher_behavior(true).is_ok());
    let may = asked.join().expect("asked");
    let (_place, daemon, memory) = serve(&["env"]);
    assert_eq!(memory["io_flusher"], may, "{memory}");
    let tasks = format!("/proc/{}/task", daemon.id());
    let mut threads = 0;
    for task in std::fs::read_dir(tasks).expect("read") {
        let stat = read_to_string(task.expect("read").path().join("stat")).expect("read");
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let flags = fields.split_whitespace().nth(6).expect("flags").parse::<u64>();
        assert_eq!(flags.expect("a number") & FLUSHER, if may { FLUSHER } else { 0 }, "{stat}");
        threads += 1;
    }
    assert!(threads >= 3, "two cores and the control plane");
    let problem = memory["problem"].as_str().unwrap_or_default();
    assert_eq!(problem.contains("CAP_SYS_RESOURCE"), !may, "{memory}");
    daemon.stop();
}

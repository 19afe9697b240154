//! What the tests with real clients share: drives as files, the daemon as a process, bounded runs
//! of other programs.
//!
//! Invariants
//! - Nothing waits for ever: every run has a limit, and what stands still is killed and told.
//! - Nothing stays: directories, processes and sockets go when their owner is dropped.
//! - Drives are filled with random bytes, so that what was never written is never zero by chance.

pub mod blocks;
pub mod loops;
pub mod nbd;
pub mod nvme;
pub mod place;
pub mod services;
pub mod shelf;
pub mod targets;
pub mod tls;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long any one program may take.
pub const LIMIT: Duration = Duration::from_secs(600);
/// Between two looks at something that is waited for.
pub const POLL: Duration = Duration::from_millis(10);
/// One MiB in bytes.
pub const MIB: u64 = 1 << 20;

/// A running program; killed when dropped.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether missing tools are a failure: under `script/test` and in continuous integration.
pub fn required() -> bool {
    let says = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    says("PALISADE_REQUIRE_TOOLS", "1") || says("CI", "true")
}

/// How often a test does something: what a variable says, else as usual.
///
/// # Panics
/// If it says something else.
pub fn count_of(variable: &str, usual: usize) -> usize {
    let said = std::env::var(variable).ok();
    said.map_or(usual, |said| {
        said.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {said:?}"))
    })
}

/// Says why a test is skipped.
///
/// # Panics
/// Where tools are required.
pub fn skip(why: &str) {
    assert!(!required(), "{why}; script/test installs what is needed");
    println!("skipped: {why}");
}

/// Where a program is, looking where administrators' programs are too.
fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    dirs.iter().map(|dir| dir.join(tool)).find(|file| file.is_file())
}

/// Whether all these programs are there; if not, says so. `fio` must have its `nbd` engine.
pub fn tools_are_there(tools: &[&str]) -> bool {
    let absent: Vec<&&str> = tools.iter().filter(|tool| find(tool).is_none()).collect();
    if !absent.is_empty() {
        skip(&format!("missing {absent:?}"));
        return false;
    }
    if tools.contains(&"fio") {
        let engine = program("fio").arg("--enghelp=nbd").output().expect("fio starts");
        if !engine.status.success() || !String::from_utf8_lossy(&engine.stdout).contains("uri") {
            skip("this fio has no nbd engine");
            return false;
        }
    }
    true
}

/// A program by its name.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(find(name).unwrap_or_else(|| name.into()));
    command.stdin(Stdio::null());
    command
}

/// Waits for a child; kills it when it takes longer than `limit`.
pub fn wait(child: Child, limit: Duration, what: &str) -> Output {
    let pid = Pid::from_child(&child);
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(child.wait_with_output()));
    match told.recv_timeout(limit) {
        Ok(output) => output.expect("waited for"),
        Err(_) => {
            let _ = kill_process(pid, Signal::KILL);
            let said = told.recv_timeout(LIMIT).ok().and_then(Result::ok);
            panic!("{what}: not done after {limit:?}: {}", said.map_or(String::new(), |o| text(&o)))
        }
    }
}

/// What a program printed, both ways.
pub fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t));
    format!("{out}{err}")
}

/// Starts a program whose output is kept.
pub fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a program to its end, whatever that is.
pub fn output(command: &mut Command) -> Output {
    let child = start(command);
    wait(child, LIMIT, &format!("{command:?}"))
}

/// Runs a program that must succeed; what it printed.
pub fn run(command: &mut Command) -> String {
    succeeded(&format!("{command:?}"), &output(command))
}

/// What a program that must have succeeded printed on its standard output.
pub fn succeeded(what: &str, output: &Output) -> String {
    assert!(output.status.success(), "{what}: {}: {}", output.status, text(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Waits until `done` gives something.
pub fn until<T>(what: &str, limit: Duration, mut done: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = done() {
            return found;
        }
        assert!(start.elapsed() < limit, "{what}: not after {limit:?}");
        thread::sleep(POLL);
    }
}

/// Ends a child by a signal and waits for it, by force after `limit`.
pub fn end(child: &mut Child, signal: Signal, limit: Duration) -> ExitStatus {
    let pid = Pid::from_child(child);
    let _ = kill_process(pid, signal);
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("waited for") {
            return status;
        }
        if start.elapsed() > limit {
            let _ = child.kill();
        }
        thread::sleep(POLL);
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): one seed gives one sequence.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    /// From `PALISADE_SEED`, else from the clock; printed, so that a failure can be played again.
    pub fn of_this_run(what: &str) -> Self {
        let given = std::env::var("PALISADE_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
            now.as_nanos() as u64
        });
        println!("{what}: PALISADE_SEED={seed}");
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Fills bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next().to_le_bytes()[..part.len()]);
        }
    }
}

/// Makes a file of random bytes, or overwrites one in place.
pub fn random_file(path: &Path, bytes: u64, rng: &mut Rng) {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(false).open(path).expect("a file");
    let mut buffer = vec![0; MIB as usize];
    for _ in 0..bytes / MIB {
        rng.fill(&mut buffer);
        file.write_all(&buffer).expect("written");
    }
}

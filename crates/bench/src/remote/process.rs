//! Processes of this program that take part in a measurement: a shelf, servers, a daemon.
//!
//! Each is the program itself as a child. It says a line when it is ready, and a server says one
//! for each line that it is told.
//!
//! Invariant: a process ends when this is dropped.

use crate::error::BenchError;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// How long something may take that is waited for.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at whether it is there.
const LOOK: Duration = Duration::from_millis(5);

/// A running process.
pub struct Process {
    child: Child,
    told: Option<ChildStdin>,
    says: BufReader<ChildStdout>,
    what: &'static str,
}

/// Why a process is of no use.
pub fn failed(what: &str, why: &dyn core::fmt::Display) -> BenchError {
    BenchError::Process(format!("{what}: {why}"))
}

/// Looks until something is there; what it is, or that it never came.
pub fn until<T>(
    what: &str,
    mut look: impl FnMut() -> Result<Option<T>, BenchError>,
) -> Result<T, BenchError> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() >= end {
            return Err(failed(what, &format_args!("not within {} s", PATIENCE.as_secs())));
        }
        std::thread::sleep(LOOK);
    }
}

impl Process {
    /// Starts the program; `what` is what errors call it.
    pub fn start(command: &mut Command, what: &'static str) -> Result<Self, BenchError> {
        command.env_remove("PALISADE_SOCKET").env_remove("PALISADE_URL");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(what, &error))?;
        let told = child.stdin.take();
        let says = child.stdout.take().ok_or_else(|| failed(what, &"it has no output"))?;
        Ok(Self { child, told, says: BufReader::new(says), what })
    }

    /// The next line that it says.
    pub fn line(&mut self) -> Result<String, BenchError> {
        let mut line = String::new();
        match self.says.read_line(&mut line) {
            Ok(0) => Err(failed(self.what, &"it has ended; what it said is above")),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(failed(self.what, &error)),
        }
    }

    /// The next line, an object.
    pub fn object(&mut self) -> Result<Value, BenchError> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| failed(self.what, &error))
    }

    /// Tells it a line.
    pub fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        let told = self.told.as_mut().ok_or_else(|| failed(self.what, &"it hears nothing"))?;
        writeln!(told, "{line}").map_err(|error| failed(self.what, &error))
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all its threads so far.
    pub fn cpu(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // Its name, in brackets, may hold anything.
        let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|n| n.parse::<u64>().ok()).sum();
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.told = None;
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Runs the program, which has to succeed; what it prints.
pub fn run(program: &Path, words: &[&str], socket: Option<&Path>) -> Result<String, BenchError> {
    let what = format!("palisade {}", words.join(" "));
    let mut command = Command::new(program);
    command.args(words).env_remove("PALISADE_SOCKET").env_remove("PALISADE_URL");
    if let Some(socket) = socket {
        command.env("PALISADE_SOCKET", socket);
    }
    let output = command.stdin(Stdio::null()).output().map_err(|error| failed(&what, &error))?;
    if !output.status.success() {
        return Err(failed(&what, &String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

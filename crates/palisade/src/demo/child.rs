//! Other programs as child processes, and the wish of somebody to end the demo.
//!
//! Invariants: no child outlives the value that owns it ([`Running`] kills when dropped); nothing
//! waits for a child without looking at [`Interrupt`] and at a limit of time; what a child prints
//! is always drained, so that it can't hang on a full pipe.

use super::error::DemoError;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Longest that one command may take.
pub const LIMIT: Duration = Duration::from_secs(300);

/// How often a waiting loop looks.
pub const LOOK: Duration = Duration::from_millis(2);

/// Set when SIGINT, SIGTERM or SIGHUP came.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for the signals from now on: they no longer end the process.
    ///
    /// # Errors
    /// If the signals can't be listened for.
    pub fn watch() -> std::io::Result<Self> {
        let interrupt = Self::default();
        let set = interrupt.clone();
        crate::signals::watch(move |_| set.0.store(true, Ordering::Release))?;
        Ok(interrupt)
    }

    /// Whether somebody asked to end.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Fails if somebody asked to end.
    ///
    /// # Errors
    /// [`DemoError::Interrupted`].
    pub fn check(&self) -> Result<(), DemoError> {
        if self.came() { Err(DemoError::Interrupted) } else { Ok(()) }
    }
}

/// A child that is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    command: String,
}

impl Running {
    /// Starts a program in a process group of its own: the keyboard's signals reach the demo only.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn start(command: &mut Command) -> Result<Self, DemoError> {
        Self::fed(command, Stdio::null())
    }

    /// Starts a program with a standard input.
    fn fed(command: &mut Command, stdin: impl Into<Stdio>) -> Result<Self, DemoError> {
        let text = command_line(command);
        match command.stdin(stdin).process_group(0).spawn() {
            Ok(child) => Ok(Self { child, command: text }),
            Err(error) => Err(DemoError::Command {
                command: text,
                ended: "could not be started".into(),
                said: error.to_string(),
            }),
        }
    }

    /// The child, for its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Asks it to end (SIGTERM). A child that has ended is left alone.
    pub fn ask_to_end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
    }

    /// Ends it at once (SIGKILL).
    pub fn kill(&mut self) {
        let _ = self.child.kill();
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for its end, at most `limit`.
    ///
    /// # Errors
    /// [`DemoError::Interrupted`] if `interrupt` came, [`DemoError::Command`] at the limit.
    pub fn wait(
        &mut self,
        interrupt: Option<&Interrupt>,
        limit: Duration,
    ) -> Result<ExitStatus, DemoError> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if let Some(interrupt) = interrupt {
                interrupt.check()?;
            }
            if start.elapsed() >= limit {
                let ended = format!("did not end within {} s", limit.as_secs());
                return Err(self.failure(ended, String::new()));
            }
            thread::sleep(LOOK);
        }
    }

    /// The error of this command.
    pub fn failure(&self, ended: String, said: String) -> DemoError {
        DemoError::Command { command: self.command.clone(), ended, said }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What a program that succeeded printed.
///
/// # Errors
/// If it can't be started, fails, takes too long or is interrupted.
pub fn run(command: &mut Command, interrupt: &Interrupt) -> Result<Vec<u8>, DemoError> {
    run_fed(command, Stdio::null(), interrupt)
}

/// What a program that succeeded printed, where it has a standard input.
///
/// # Errors
/// As those of [`run`].
pub fn run_fed(
    command: &mut Command,
    stdin: impl Into<Stdio>,
    interrupt: &Interrupt,
) -> Result<Vec<u8>, DemoError> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::fed(command, stdin)?;
    let stdout = drain(running.child().stdout.take());
    let stderr = drain(running.child().stderr.take());
    let status = running.wait(Some(interrupt), LIMIT)?;
    let stdout = stdout.join().unwrap_or_default();
    let stderr = stderr.join().unwrap_or_default();
    if status.success() {
        return Ok(stdout);
    }
    // Some programs say what is wrong on standard output.
    let said = if stderr.is_empty() { stdout } else { stderr };
    Err(running.failure(how(status), tail(&said)))
}

/// Reads a pipe to its end on a thread.
pub fn drain(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// How a process ended, for people.
pub fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("failed with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "failed".into(),
    }
}

/// The last lines of what a program said.
pub fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n  ")
}

fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_success_and_words_of_a_failure() {
        let interrupt = Interrupt::default();
        let output = run(Command::new("sh").args(["-c", "echo good"]), &interrupt);
        assert_eq!(output.expect("succeeds"), b"good\n");
        let failed = run(Command::new("sh").args(["-c", "echo bad >&2; exit 3"]), &interrupt);
        let message = failed.expect_err("fails").to_string();
        assert!(message.contains("status 3") && message.contains("bad"), "{message}");
        let absent = run(&mut Command::new("/no/such/program"), &interrupt);
        assert!(matches!(absent, Err(DemoError::Command { .. })));
    }

    #[test]
    fn an_interrupt_ends_the_wait_and_the_child() {
        let interrupt = Interrupt::default();
        interrupt.0.store(true, Ordering::Release);
        let result = run(Command::new("sleep").arg("1000"), &interrupt);
        assert!(matches!(result, Err(DemoError::Interrupted)));
    }
}

//! The daemon as a child process, and the command line as its client.
//!
//! The demo knows nothing of them but what a user sees: arguments, standard output, exit status.

use super::bar::Bar;
use super::child::{self, Interrupt, Running};
use super::error::DemoError;
use super::place::{MARK, Place};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest that the daemon may take to start, on the busiest machine.
const START: Duration = Duration::from_secs(120);
/// Longest that the daemon may take to stop.
const STOP: Duration = Duration::from_secs(30);
/// How often a task's progress is asked for.
const POLL: Duration = Duration::from_millis(50);
/// Longest that a task may stand still.
const STILL: Duration = Duration::from_secs(60);

/// The array's name.
pub const ARRAY: &str = "demo";
/// The volume's name.
pub const VOLUME: &str = "demo/vol";

/// A process of this program that says something; killed when dropped.
#[derive(Debug)]
pub struct Process {
    running: Running,
    log: PathBuf,
}

impl Process {
    /// The error of one that has ended, if it has.
    pub fn ended(&mut self) -> Option<DemoError> {
        let status = self.running.ended()?;
        Some(self.failure(child::how(status)))
    }

    /// Its error, with the last lines of what it said.
    fn failure(&self, how: String) -> DemoError {
        self.running.failure(how, self.said())
    }

    /// The last lines of what it said.
    pub fn said(&self) -> String {
        said(&self.log)
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.running.kill();
        while self.running.ended().is_none() {
            thread::sleep(child::LOOK);
        }
    }
}

/// A running daemon; killed when dropped.
#[derive(Debug)]
pub struct Daemon {
    process: Process,
    program: PathBuf,
    socket: PathBuf,
    interrupt: Interrupt,
}

impl Daemon {
    /// Writes the configuration, with `more` at its end, starts the daemon and waits until it is
    /// ready.
    ///
    /// # Errors
    /// If it does not become ready.
    pub fn start(place: &Place, more: &str, interrupt: &Interrupt) -> Result<Self, DemoError> {
        let config = place.config();
        // A JSON string is a TOML string too.
        let cores = thread::available_parallelism().map_or(1, |n| n.get().min(2));
        let text = format!(
            "{MARK}\nsocket = {}\ncores = {cores}\ndrives = [{}]\n{more}",
            Value::from(place.socket().to_string_lossy()),
            Value::from(place.drives_pattern()),
        );
        fs::write(&config, text).map_err(DemoError::file(&config))?;
        let program = std::env::current_exe().map_err(DemoError::file(&config))?;
        let mut command = Command::new(&program);
        command.arg("serve").arg("--config").arg(&config);
        let process = ready(&mut command, place.log(), interrupt)?;
        Ok(Self { process, program, socket: place.socket(), interrupt: interrupt.clone() })
    }

    /// Starts `palisade services` beside it, and waits until it is ready.
    ///
    /// # Errors
    /// If it does not become ready.
    pub fn services(&self, place: &Place) -> Result<Process, DemoError> {
        let mut command = Command::new(&self.program);
        command.arg("services").arg("--config").arg(place.config());
        // Whoever uses a ublk device waits for a daemon that has died to come back: none will.
        command.env("PALISADE_UBLK", "off");
        ready(&mut command, place.services_log(), &self.interrupt)
    }

    /// The error of a daemon that has ended, if it has.
    pub fn ended(&mut self) -> Option<DemoError> {
        self.process.ended()
    }

    /// Why something failed that it had a part in: one that has ended is the cause of whatever did.
    pub fn cause(&mut self, why: DemoError) -> DemoError {
        self.ended().unwrap_or(why)
    }

    /// The last lines of what it said.
    pub fn said(&self) -> String {
        self.process.said()
    }

    /// Runs a command of the command line with `--json` and returns what it printed.
    ///
    /// # Errors
    /// If it fails, or prints no object.
    pub fn call(&self, words: &[&str]) -> Result<Value, DemoError> {
        self.ask(words, Stdio::null(), &self.interrupt)
    }

    /// Runs a command to which somebody types a line, such as a password: it goes through a pipe.
    ///
    /// # Errors
    /// As those of [`Daemon::call`].
    pub fn call_typing(&self, words: &[&str], line: &str) -> Result<Value, DemoError> {
        let pipe = || -> std::io::Result<std::io::PipeReader> {
            let (reader, mut writer) = std::io::pipe()?;
            // A pipe holds more than that, so nobody waits.
            writer.write_all(format!("{line}\n").as_bytes())?;
            Ok(reader)
        };
        let pipe = pipe().map_err(DemoError::file(Path::new("a pipe")))?;
        self.ask(words, pipe, &self.interrupt)
    }

    /// Runs a command though somebody has asked to end: what was made goes.
    ///
    /// # Errors
    /// As those of [`Daemon::call`].
    pub fn call_at_the_end(&self, words: &[&str]) -> Result<Value, DemoError> {
        self.ask(words, Stdio::null(), &Interrupt::default())
    }

    fn ask(
        &self,
        words: &[&str],
        stdin: impl Into<Stdio>,
        interrupt: &Interrupt,
    ) -> Result<Value, DemoError> {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--json").env("PALISADE_SOCKET", &self.socket);
        let output = child::run_fed(&mut command, stdin, interrupt)?;
        serde_json::from_slice(&output).map_err(|error| {
            let text = String::from_utf8_lossy(&output);
            DemoError::Wrong(format!("`palisade {}` printed {text:?}: {error}", words.join(" ")))
        })
    }

    /// `array show`.
    ///
    /// # Errors
    /// If it fails.
    pub fn show(&self) -> Result<Value, DemoError> {
        self.call(&["array", "show", ARRAY])
    }

    /// Waits, under a progress bar, until the array has no task; its state must then be `state`.
    ///
    /// # Errors
    /// If it is not, or a task stands still.
    pub fn settle(&self, label: &'static str, state: &str) -> Result<Value, DemoError> {
        let mut bar = Bar::new(label);
        let (mut before, mut moved) = (Value::Null, Instant::now());
        loop {
            let shown = self.show()?;
            let Some(task) = shown["tasks"].get(0) else {
                drop(bar);
                return match shown["state"] == state {
                    true => Ok(shown),
                    false => Err(DemoError::Wrong(format!(
                        "after {label} the array is {}, not {state}",
                        shown["state"]
                    ))),
                };
            };
            let numbers = ["done_bytes", "total_bytes"].map(|key| task[key].as_u64().unwrap_or(0));
            bar.draw(numbers[0], numbers[1]);
            if *task != before {
                (before, moved) = (task.clone(), Instant::now());
            } else if moved.elapsed() > STILL {
                return Err(DemoError::Wrong(format!("the task makes no progress: {task}")));
            }
            thread::sleep(POLL);
        }
    }

    /// Stops the daemon as an administrator would, by SIGTERM; it must end well.
    ///
    /// # Errors
    /// If it does not.
    pub fn stop(mut self) -> Result<(), DemoError> {
        self.process.running.ask_to_end();
        let status = self.process.running.wait(None, STOP)?;
        if status.success() { Ok(()) } else { Err(self.process.failure(child::how(status))) }
    }
}

/// Starts a process of this program that ends with the demo, and waits until it says that it is
/// ready. What else it says goes to a file.
fn ready(command: &mut Command, log: PathBuf, interrupt: &Interrupt) -> Result<Process, DemoError> {
    let file = File::create(&log).map_err(DemoError::file(&log))?;
    command.env(super::PARENT, "1").stdout(Stdio::piped()).stderr(file);
    let mut own = Process { running: Running::start(command)?, log };
    let (ready, start) = (watch_ready(own.running.child().stdout.take()), Instant::now());
    while ready.recv_timeout(POLL).is_err() {
        interrupt.check()?;
        if let Some(cause) = own.ended() {
            return Err(cause);
        }
        if start.elapsed() > START {
            return Err(own.failure(format!("was not ready within {} s", START.as_secs())));
        }
    }
    Ok(own)
}

/// The last lines of a file.
fn said(log: &Path) -> String {
    child::tail(&fs::read(log).unwrap_or_default())
}

/// Tells when the line `ready` came; reads on until the pipe ends, so that the daemon never waits.
fn watch_ready(pipe: Option<impl std::io::Read + Send + 'static>) -> mpsc::Receiver<()> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let lines = pipe.map(|pipe| BufReader::new(pipe).lines());
        for line in lines.into_iter().flatten().map_while(Result::ok) {
            if line.trim() == "ready" {
                let _ = tell.send(());
            }
        }
    });
    told
}

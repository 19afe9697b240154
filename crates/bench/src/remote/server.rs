//! A server process, from the side of the run that measures: the program as a child, at its part of
//! a shelf. [`super::host`] is what the child does.

use super::HIDDEN;
use super::process::{Process, failed};
use crate::error::BenchError;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A running server.
pub struct Server {
    process: Process,
    /// Paths that it has.
    pub paths: f64,
    /// Bytes of memory by which it grew when it connected.
    pub grown: f64,
}

/// A number of an answer.
fn number(answer: &Value, key: &str) -> Result<f64, BenchError> {
    answer[key].as_f64().ok_or_else(|| failed("a server", &format_args!("it tells no {key}")))
}

impl Server {
    /// Starts one of that name, which connects what it finds at these addresses; with `area`, it
    /// makes an array of that, and fills so many bytes of it.
    pub fn start(
        program: &Path,
        name: &str,
        at: &[SocketAddr],
        area: Option<u64>,
    ) -> Result<Self, BenchError> {
        let mut command = Command::new(program);
        command.args(["bench", HIDDEN, "--name", name]);
        for at in at {
            command.args(["--at", &at.to_string()]);
        }
        if let Some(area) = area {
            command.args(["--area", &area.to_string()]);
        }
        let process = Process::start(&mut command, "a server")?;
        Ok(Self { process, paths: 0.0, grown: 0.0 })
    }

    /// Waits until it has connected, and has filled its array.
    pub fn ready(&mut self) -> Result<(), BenchError> {
        let told = self.process.object()?;
        (self.paths, self.grown) = (number(&told, "paths")?, number(&told, "grown")?);
        Ok(())
    }

    /// Has it read for so long; [`Server::rate`] tells what came of it.
    pub fn load(&mut self, span: Duration, seed: u64) -> Result<(), BenchError> {
        self.process.tell(&format!("load {} {seed}", span.as_secs_f64()))
    }

    /// Requests a second of the load that it was told to make, and all that were made for it.
    pub fn rate(&mut self) -> Result<(f64, f64), BenchError> {
        let told = self.process.object()?;
        Ok((number(&told, "iops")?, number(&told, "made")?))
    }

    /// CPU time of it so far, as it says itself: finer than the system tells others.
    pub fn own_cpu(&mut self) -> Result<f64, BenchError> {
        self.process.tell("look")?;
        number(&self.process.object()?, "cpu_s")
    }

    /// CPU time of it so far.
    pub fn cpu(&self) -> Duration {
        self.process.cpu()
    }
}

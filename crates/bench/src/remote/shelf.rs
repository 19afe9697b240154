//! The shelf whose drives are measured: `palisade shelf`, as a process on this machine.

use super::process::{Process, failed, run};
use crate::error::BenchError;
use drives::remote::Place;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A running shelf.
pub struct Shelf {
    process: Process,
    program: PathBuf,
    control: PathBuf,
    /// Names of its ports, and where each listens.
    pub ports: Vec<(String, SocketAddr)>,
    _folder: TempDir,
}

impl Shelf {
    /// Starts one with these arguments, and waits until its ports listen.
    pub fn start(program: &Path, words: &[&str]) -> Result<Self, BenchError> {
        let folder = TempDir::with_prefix("palisade-bench-shelf-")
            .map_err(|error| BenchError::System { path: std::env::temp_dir(), error })?;
        let control = folder.path().join("control");
        let mut command = Command::new(program);
        command.args(["shelf", "--listen", "127.0.0.1:0", "--json", "--control"]);
        let mut process = Process::start(command.arg(&control).args(words), "the shelf")?;
        let told = process.object()?;
        let port = |own: &serde_json::Value| {
            let name = own["name"].as_str()?.to_owned();
            Some((name, own["address"].as_str()?.parse().ok()?))
        };
        let ports = told["ports"].as_array().into_iter().flatten().map(port);
        let ports: Option<Vec<_>> = ports.collect();
        let ports = ports.filter(|ports| !ports.is_empty());
        let ports = ports.ok_or_else(|| failed("the shelf", &"it tells no ports"))?;
        Ok(Self { process, program: program.to_owned(), control, ports, _folder: folder })
    }

    /// Changes something of it, as `palisade shelf ctl` does.
    pub fn ctl(&self, words: &[&str]) -> Result<(), BenchError> {
        let control = self.control.to_string_lossy();
        let words = [&["shelf", "ctl", "--control", &control], words].concat();
        run(&self.program, &words, None).map(drop)
    }

    /// Where its ports listen.
    pub fn places(&self) -> Vec<Place> {
        self.ports.iter().map(|(_, at)| place(*at)).collect()
    }

    /// CPU time of it so far.
    pub fn cpu(&self) -> Duration {
        self.process.cpu()
    }
}

/// An address as hosts name it.
pub fn place(at: SocketAddr) -> Place {
    Place { host: at.ip().to_string(), port: at.port() }
}

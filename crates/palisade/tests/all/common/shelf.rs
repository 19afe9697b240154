//! `palisade shelf` as a process.

use super::{LIMIT, end, output, succeeded};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// A running shelf; killed when dropped.
pub struct Shelf {
    child: Child,
    /// What it said when it started.
    pub told: Value,
    control: String,
    /// Its own socket, by default, and nothing else.
    _folder: tempfile::TempDir,
}

impl Shelf {
    /// Starts one on 127.0.0.1 with these arguments, and waits until it runs.
    pub fn start(words: &[&str]) -> Self {
        Self::start_at("0", words)
    }

    /// The same; its first port is this.
    pub fn start_at(port: &str, words: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let control = folder.path().join("shelf.sock").to_string_lossy().into_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        let address = format!("127.0.0.1:{port}");
        command.args(["shelf", "--listen", &address, "--json", "--control", &control]);
        let child = command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("started");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("read");
        let told: Value = serde_json::from_str(&line).expect("an object");
        assert_eq!((&told["schema"], &told["control"]), (&1.into(), &Value::from(&*control)));
        Self { child, told, control, _folder: folder }
    }

    /// The socket that `ctl` asks at.
    pub fn socket(&self) -> PathBuf {
        PathBuf::from(&self.control)
    }

    /// Where a port listens: address and TCP port.
    pub fn port(&self, name: &str) -> (String, String) {
        let ports = self.told["ports"].as_array().expect("a list");
        let own = ports.iter().find(|own| own["name"] == name).expect("there is one");
        let (host, port) = own["address"].as_str().expect("text").rsplit_once(':').expect("a port");
        (host.to_owned(), port.to_owned())
    }

    /// The name of a drive's subsystem.
    pub fn subsystem(&self, drive: usize) -> String {
        format!("nqn.2026-11.org.example:{}:drive-{drive}", self.told["serial"].as_str().unwrap())
    }

    /// What `shelf ctl` comes to.
    pub fn try_ctl(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        output(command.args(["shelf", "ctl", "--control", &self.control]).args(words))
    }

    /// `shelf ctl`, which must succeed.
    pub fn ctl(&self, words: &[&str]) -> String {
        succeeded(&format!("shelf ctl {}", words.join(" ")), &self.try_ctl(words))
    }

    /// `shelf ctl show`.
    pub fn show(&self) -> Value {
        serde_json::from_str(&self.ctl(&["show", "--json"])).expect("an object")
    }

    /// Stops it as a service manager would; it must end well.
    pub fn stop(mut self) {
        let status = end(&mut self.child, Signal::TERM, LIMIT);
        assert!(status.success(), "the shelf ended with {status}");
        assert!(!self.socket().exists(), "its socket stays");
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

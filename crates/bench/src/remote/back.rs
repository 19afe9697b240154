//! A shelf that goes and comes back: how long until a volume is served again.
//!
//! A daemon has an array, RAID 5, over eight drives of a shelf by two ports each, and a volume of
//! it that a host reads over NVMe/TCP. All of the shelf is pulled out, until the daemon says that
//! the array has failed. Then it is put back: what counts is the time until a host's read of 4 KiB
//! is answered that begins with a connection of its own. Nobody is asked to do anything meanwhile.
//! Nothing is compared: the goal is a number of its own. It ends after its rounds; an array that
//! does not come back ends it without a figure.

use super::RemoteBench;
use super::process::{Process, failed, run, until};
use super::shelf::Shelf;
use crate::error::BenchError;
use crate::nvme_tcp::client::{Address, Queue, Shape};
use crate::report::{Goal, Report};
use crate::stats::Spread;
use nvme::nqn::Nqn;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ARRAY: &str = "bench";
/// Bytes of the volume that are written and read.
const BYTES: u64 = 4 << 20;
const WRITES: Shape = Shape { is_write: true, bytes: 4 << 10, depth: 8 };
const READ: Shape = Shape { is_write: false, bytes: 4 << 10, depth: 1 };
/// Most rounds: each waits until the drives are given up.
const ROUNDS: usize = 3;

/// A daemon on the drives of a shelf.
struct Daemon<'a> {
    _process: Process,
    program: &'a Path,
    socket: PathBuf,
    _folder: TempDir,
}

impl<'a> Daemon<'a> {
    fn start(program: &'a Path, shelf: &Shelf) -> Result<Self, BenchError> {
        let system = |error| BenchError::System { path: std::env::temp_dir(), error };
        let folder = TempDir::with_prefix("palisade-bench-back-").map_err(system)?;
        let (config, socket) = (folder.path().join("palisade.toml"), folder.path().join("socket"));
        let drives: Vec<Value> =
            shelf.ports.iter().map(|(_, at)| format!("nvme+tcp://{at}/*/*").into()).collect();
        let id = format!("{:08x}-0000-4000-8000-000000000000", std::process::id());
        // A JSON string is a TOML string too.
        let text = format!(
            "socket = {}\ncores = 1\ndrives = {}\ndrive_wait_ms = 0\nconfirm = \"off\"\n\
             state = {}\n[access]\nadministrators = [\"root\", \"{}\"]\n[fabrics]\n\
             hostnqn = \"nqn.2014-08.org.nvmexpress:uuid:{id}\"\nhostid = \"{id}\"\n",
            Value::from(socket.to_string_lossy()),
            Value::from(drives),
            Value::from(folder.path().join("state").to_string_lossy()),
            rustix::process::getuid().as_raw(),
        );
        std::fs::write(&config, text).map_err(system)?;
        let mut command = Command::new(program);
        command.args(["serve", "--config"]).arg(&config);
        // What it says of a shelf that goes is no news here.
        let log = std::fs::File::create(folder.path().join("log")).map_err(system)?;
        let mut process = Process::start(command.stderr(log), "the daemon")?;
        while process.line()? != "ready" {}
        Ok(Self { _process: process, program, socket, _folder: folder })
    }

    /// A command of the command line; what it prints.
    fn call(&self, words: &[&str]) -> Result<Value, BenchError> {
        let text = run(self.program, &[words, &["--json"]].concat(), Some(&self.socket))?;
        serde_json::from_str(&text).map_err(|error| failed("the daemon", &error))
    }

    /// Makes the array and a volume; where hosts have that.
    fn make(&self, shelf: &Shelf) -> Result<Address, BenchError> {
        let drives = format!("nvme+tcp://{}/*/*", shelf.ports[0].1);
        self.call(&["array", "create", ARRAY, "--level", "5", "--drives", &drives])?;
        let volume = format!("{ARRAY}/v");
        self.call(&["volume", "create", &volume, "--size", "64M"])?;
        let words = ["export", "create", &volume, "--nvme-tcp", "127.0.0.1:0", "--any-host"];
        let export = self.call(&words)?;
        let wrong = |why: &dyn core::fmt::Display| failed("the daemon's export", why);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let socket = text(&export["listeners"][0]).parse();
        let name = |name: &str| Nqn::new(name).map_err(|error| wrong(&error));
        Ok(Address {
            socket: socket.map_err(|error: std::net::AddrParseError| wrong(&error))?,
            subsystem: name(&text(&export["subsystem"]))?,
            host: name("nqn.2026-11.org.example:bench-reader")?,
        })
    }

    fn state(&self) -> Result<String, BenchError> {
        let shown = self.call(&["array", "show", ARRAY])?;
        Ok(shown["state"].as_str().unwrap_or_default().to_owned())
    }
}

/// A host's connection, its admin queue first.
fn connect(address: &Address) -> Result<(Queue, Queue), BenchError> {
    let (admin, controller) = address.associate()?;
    let queue = address.connect(1, controller, 31)?.0;
    Ok((admin, queue.of_blocks(4096)))
}

/// Whether a host that connects now has a read answered.
fn is_served(address: &Address, seed: u64) -> bool {
    let read = connect(address)
        .and_then(|(_admin, mut queue)| queue.run(READ, BYTES, Duration::ZERO, seed));
    read.is_ok_and(|sample| sample.operations > 0)
}

/// Measures it.
pub fn measure(
    options: &RemoteBench,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    progress("shelf-back-s: a daemon on eight drives");
    let size = ["--ports", "2", "--drives", "8", "--namespaces", "1", "--drive-size", "96M"];
    let shelf = Shelf::start(&options.program, &[&size[..], &["--cores", "1"]].concat())?;
    let daemon = Daemon::start(&options.program, &shelf)?;
    let address = daemon.make(&shelf)?;
    connect(&address)?.1.fill(WRITES, BYTES)?;
    let mut seconds = Vec::new();
    for round in 0..ROUNDS.min(options.rounds) as u64 {
        progress(&format!("shelf-back-s, round {}", round + 1));
        shelf.ctl(&["pull", "shelf", "--reset"])?;
        until("the array does not fail without its drives", || {
            // Somebody has to ask for the drives, or nobody sees that they are gone.
            let served = is_served(&address, round);
            Ok((!served && daemon.state()? == "failed").then_some(()))
        })?;
        let begun = Instant::now();
        shelf.ctl(&["restore", "shelf"])?;
        until("the volume is not served again", || Ok(is_served(&address, round).then_some(())))?;
        seconds.push(begun.elapsed().as_secs_f64());
        until("the array is not whole again", || Ok((daemon.state()? == "optimal").then_some(())))?;
    }
    report.add("shelf-back-s", "s", Spread::of(seconds), Some(Goal::AtMost(5.0)));
    Ok(())
}

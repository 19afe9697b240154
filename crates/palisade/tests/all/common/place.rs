//! A directory with drives, and the daemon that serves arrays on them.

use super::{LIMIT, MIB, Rng, end, output, program, random_file, run, succeeded, until, wait};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// How long the daemon may take to be ready, and to end.
const TURN: Duration = Duration::from_secs(300);

/// Where files are in memory.
const MEMORY: &str = "/dev/shm";

/// Drives of one test, in a directory in memory where there is one.
pub struct Place {
    dir: TempDir,
    /// Seeded once per test.
    pub rng: Rng,
    /// What the next daemon's configuration says; long enough for the busiest machine unless a test
    /// has a drive that hangs.
    pub drive_deadline_ms: u64,
    /// How long the next daemon waits for drives at its start.
    pub drive_wait_ms: u64,
    /// Drives of the next daemon beside those that are here.
    pub others: Vec<String>,
    /// Further lines of the next daemon's configuration.
    pub more: String,
    /// Who its daemons are to drives that other servers reach, unless `more` says that: the same
    /// one after the other, and no other place's.
    host: String,
    drive_bytes: u64,
    made: usize,
}

impl Place {
    /// Whether places are in memory.
    pub fn is_in_memory() -> bool {
        Path::new(MEMORY).is_dir()
    }

    /// A place whose drives will have `drive_mib` MiB.
    pub fn new(what: &str, drive_mib: u64) -> Self {
        let builder = tempfile::Builder::new().prefix("palisade-").to_owned();
        let dir = match Self::is_in_memory() {
            true => builder.tempdir_in(MEMORY),
            false => builder.tempdir(),
        };
        let mut rng = Rng::of_this_run(what);
        let host = uuid(&mut rng);
        let (drive_bytes, drive_deadline_ms) = (drive_mib * MIB, 10_000);
        let dir = dir.expect("a directory");
        let (drive_wait_ms, others, more, made) = Default::default();
        Self { dir, rng, drive_deadline_ms, drive_wait_ms, others, more, host, drive_bytes, made }
    }

    /// Further lines of the next daemon's configuration, with who that is where it matters.
    fn further(&self) -> String {
        const TABLE: &str = "[fabrics]\n";
        let nqn = format!("nqn.2014-08.org.nvmexpress:uuid:{}", self.host);
        let host = format!("{TABLE}hostnqn = \"{nqn}\"\nhostid = \"{}\"\n", self.host);
        match self.more.contains("hostid") {
            true => self.more.clone(),
            false if self.more.contains(TABLE) => self.more.replacen(TABLE, &host, 1),
            false if self.others.is_empty() => self.more.clone(),
            false => format!("{}\n{host}", self.more),
        }
    }

    /// A file here.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A new drive, full of random bytes.
    pub fn drive(&mut self) -> String {
        let path = self.file(&format!("drive-{:02}.img", self.made));
        self.made += 1;
        random_file(&path, self.drive_bytes, &mut self.rng);
        path.to_string_lossy().into_owned()
    }

    /// Several of them.
    pub fn drives(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.drive()).collect()
    }

    /// Removes the files of all drives but these.
    pub fn keep(&self, drives: &[String]) {
        for entry in self.dir.path().read_dir().expect("read") {
            let path = entry.expect("read").path();
            let name = path.to_string_lossy().into_owned();
            if name.ends_with(".img") && !drives.contains(&name) {
                std::fs::remove_file(path).expect("removed");
            }
        }
    }

    /// Overwrites a drive with other random bytes: what a pulled drive leaves behind.
    pub fn spoil(&mut self, drive: &str) {
        random_file(Path::new(drive), self.drive_bytes, &mut self.rng);
    }

    /// What `script/read-array` prints with these arguments.
    pub fn read_array(words: &[&str], drives: &[String]) -> String {
        run(read_array().args(words).args(drives))
    }

    /// A volume as the outside reader sees it, in a file here.
    pub fn read_volume(&self, volume: &str, drives: &[String]) -> PathBuf {
        let image = self.file("read-array.img");
        let mut command = read_array();
        command.args(["--volume", volume]).args(drives).stdin(Stdio::null());
        command.stdout(File::create(&image).expect("a file")).stderr(Stdio::piped());
        let child = command.spawn().expect("started");
        succeeded("read-array", &wait(child, LIMIT, "read-array"));
        image
    }
}

/// A random UUID (RFC 9562, section 5.4).
pub fn uuid(rng: &mut Rng) -> String {
    let digits = format!("{:016x}{:016x}", rng.next(), rng.next());
    let (a, b, c, d, e) =
        (&digits[..8], &digits[8..12], &digits[13..16], &digits[17..20], &digits[20..]);
    format!("{a}-{b}-4{c}-8{d}-{e}")
}

fn read_array() -> Command {
    let mut command = program("python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../script/read-array"));
    command
}

/// A running daemon; killed when dropped, and what it said is shown if the test failed.
pub struct Daemon {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Daemon {
    /// Where it is reached.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts it with so many data cores and waits until it is ready.
    pub fn start(place: &Place, cores: u16) -> Self {
        Self::start_by(place, cores, &[], &[])
    }

    /// As [`Daemon::start`], by a command that runs the command behind it, with more arguments.
    pub fn start_by(place: &Place, cores: u16, by: &[&str], more: &[&str]) -> Self {
        Starting::begin(place, cores, by, more).ready()
    }

    /// What it wrote to its standard error, all daemons of the place together.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        command.args(words).arg("--json").env("PALISADE_SOCKET", &self.socket);
        command
    }

    /// What a command prints for people.
    pub fn text(&self, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
        run(command.args(words).env("PALISADE_SOCKET", &self.socket))
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Runs a command of the command line that must succeed; its object.
    pub fn call(&self, words: &[&str]) -> Value {
        let output = output(&mut self.command(words));
        let text = succeeded(&format!("palisade {}", words.join(" ")), &output);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {text}: {error}"))
    }

    /// Starts a command of the command line.
    pub fn start_call(&self, words: &[&str]) -> Child {
        super::start(&mut self.command(words))
    }

    /// Runs a command of the command line that must be refused; what it said.
    pub fn refused(&self, words: &[&str]) -> String {
        let output = output(&mut self.command(words));
        assert!(!output.status.success(), "{words:?}: {}", super::text(&output));
        super::text(&output)
    }

    /// Runs a command of the command line that must end with this exit code; what it said.
    pub fn ends(&self, code: i32, words: &[&str]) -> String {
        let output = output(&mut self.command(words));
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", super::text(&output));
        super::text(&output)
    }

    /// Makes an array.
    pub fn create(&self, name: &str, level: &str, drives: &[String], more: &[&str]) -> Value {
        let mut words = vec!["array", "create", name, "--level", level, "--drives"];
        words.extend(drives.iter().map(String::as_str));
        words.extend(more);
        self.call(&words)
    }

    /// Makes a volume and serves it on a socket in the place; where clients find it.
    pub fn volume(&self, place: &Place, name: &str, size: &str) -> Served {
        self.call(&["volume", "create", name, "--size", size]);
        let socket = place.file(&format!("{}.nbd", name.replace('/', "-")));
        let nbd = format!("unix:{}", socket.display());
        let export = self.call(&["export", "create", name, "--nbd", &nbd]);
        let uri = export["uri"].as_str().expect("a URI").to_owned();
        Served { name: name.to_owned(), socket, uri }
    }

    /// `array show`.
    pub fn show(&self, array: &str) -> Value {
        self.call(&["array", "show", array])
    }

    /// How often the drives of an array were written to.
    pub fn written(&self, array: &str) -> u64 {
        let shown = self.show(array);
        let drives = shown["drive_io"].as_array().expect("a list");
        drives.iter().map(|drive| drive["writes"].as_u64().expect("a number")).sum()
    }

    /// Waits until no task runs; the array as it is then.
    pub fn settle(&self, array: &str) -> Value {
        self.call(&["array", "wait", array, "--timeout", "600"]);
        self.show(array)
    }

    /// `array scrub --check` to its end: everything must agree.
    pub fn scrub(&self, array: &str) {
        self.call(&["array", "scrub", array, "--check"]);
        let scrub = &self.settle(array)["last_scrub"];
        assert_eq!(scrub["mismatches"], 0, "{scrub}");
        assert!(scrub["checked_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{scrub}");
    }

    /// Stops it as an administrator would; it must end well.
    pub fn stop(mut self) {
        let status = end(&mut self.child, Signal::TERM, TURN);
        assert!(status.success(), "the daemon ended with {status}");
    }

    /// Tells it to stop, and does not wait.
    pub fn tell_to_stop(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("signalled");
    }

    /// Waits for the end of one that was told to stop; it must end well.
    pub fn wait(mut self) {
        let status = until("its end", TURN, || self.child.try_wait().expect("waited for"));
        assert!(status.success(), "the daemon ended with {status}");
    }

    /// Whether it is there for its clients.
    pub fn listens(&self) -> bool {
        self.socket.exists()
    }

    /// `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("waited for");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the daemon said:\n{}", self.said());
        }
    }
}

/// A daemon that may not be ready yet; killed when dropped.
pub struct Starting {
    daemon: Daemon,
    ready: mpsc::Receiver<()>,
    has_said: bool,
}

impl Starting {
    /// Starts it, as [`Daemon::start_by`] does, and does not wait.
    pub fn begin(place: &Place, cores: u16, by: &[&str], more: &[&str]) -> Self {
        let (socket, config, log) =
            (place.file("socket"), place.file("palisade.toml"), place.file("daemon.log"));
        // A JSON string is a TOML string too.
        let own = place.file("drive-*.img").to_string_lossy().into_owned();
        let drives: Vec<String> = [own].into_iter().chain(place.others.clone()).collect();
        let services = place.file("services");
        let text = format!(
            "socket = {}
services = {}
cores = {cores}
drives = {}
drive_deadline_ms = {}
\
             drive_wait_ms = {}
{}",
            Value::from(socket.to_string_lossy()),
            Value::from(services.to_string_lossy()),
            Value::from(drives),
            place.drive_deadline_ms,
            place.drive_wait_ms,
            place.further(),
        );
        std::fs::write(&config, text).expect("written");
        let told = OpenOptions::new().append(true).create(true).open(&log).expect("a log");
        let words = [by, &[env!("CARGO_BIN_EXE_palisade"), "serve", "--config"]].concat();
        let mut command = program(words[0]);
        command.args(&words[1..]).arg(&config).args(more);
        let child = command.stdout(Stdio::piped()).stderr(told).spawn().expect("started");
        let mut daemon = Daemon { child, socket, log };
        let (tell, ready) = mpsc::channel();
        let pipe = daemon.child.stdout.take().expect("piped");
        thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                if line.trim() == "ready" {
                    let _ = tell.send(());
                }
            }
        });
        Self { daemon, ready, has_said: false }
    }

    /// Waits until it is ready.
    pub fn ready(mut self) -> Daemon {
        let failed = self.ready.recv_timeout(TURN).err();
        let child = &mut self.daemon.child;
        assert!(failed.is_none(), "not ready: {failed:?}, {:?}", child.try_wait());
        self.daemon
    }

    /// Whether it has said that it is ready.
    pub fn is_ready(&mut self) -> bool {
        self.has_said |= self.ready.try_recv().is_ok();
        self.has_said
    }

    /// `kill -9`; whether it had said that it is ready.
    pub fn kill(self) -> bool {
        self.daemon.kill();
        // What it said is read to its end.
        self.has_said || self.ready.recv().is_ok()
    }
}

/// A volume and where it is served.
#[derive(Clone, Debug)]
pub struct Served {
    /// `ARRAY/VOLUME`, also the export's name.
    pub name: String,
    /// The NBD socket.
    pub socket: PathBuf,
    /// An NBD URI.
    pub uri: String,
}

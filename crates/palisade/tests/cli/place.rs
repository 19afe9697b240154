//! A directory with drives, and perhaps a daemon; the command line as its client.

use crate::nvme::{HOST, host_of};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const DRIVE_BYTES: usize = 12 << 20;

/// A directory with drives, and perhaps a daemon.
pub struct Place {
    /// Where everything is.
    pub dir: tempfile::TempDir,
    /// Its process.
    pub daemon: Option<Child>,
}

impl Place {
    pub fn new(drives: usize) -> Self {
        let place = Self { dir: tempfile::tempdir().expect("a directory"), daemon: None };
        for number in 0..drives {
            std::fs::write(place.drive(number), random(number as u64)).expect("written");
        }
        let text = format!(
            "socket = {:?}\ncores = 2\ndrive_wait_ms = 0\ndrives = [\"{}/drive*.img\"]\n",
            place.socket(),
            place.dir.path().display()
        );
        std::fs::write(place.config(), text).expect("written");
        place
    }

    pub fn running(drives: usize) -> Self {
        let mut place = Self::new(drives);
        place.start();
        place
    }

    pub fn config(&self) -> PathBuf {
        self.dir.path().join("config.toml")
    }

    /// Has the next daemon wait so long for drives; it waits not at all unless that is said.
    pub fn wait_for_drives(&self, ms: u64) {
        let text = std::fs::read_to_string(self.config()).expect("read");
        let is_wait = |line: &&str| line.starts_with("drive_wait_ms = ");
        let old = text.lines().find(is_wait).expect("it is said");
        let text = text.replace(old, &format!("drive_wait_ms = {ms}"));
        std::fs::write(self.config(), text).expect("written");
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("run/palisade.sock")
    }

    pub fn drive(&self, number: usize) -> PathBuf {
        self.dir.path().join(format!("drive{number}.img"))
    }

    pub fn name(&self, number: usize) -> String {
        self.drive(number).to_str().expect("is text").to_owned()
    }

    /// Starts the daemon and waits until it says that it is ready.
    pub fn start(&mut self) {
        self.begin();
        self.ready();
    }

    /// As `start`, by a command of the caller's.
    pub fn start_by(&mut self, command: Command) {
        self.begin_by(command);
        self.ready();
    }

    /// Starts the daemon.
    pub fn begin(&mut self) {
        let config = self.config();
        self.begin_by(program(&["serve", "--config", config.to_str().expect("text")]));
    }

    fn begin_by(&mut self, mut command: Command) {
        let log = std::fs::File::create(self.log()).expect("created");
        let child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("started");
        self.daemon = Some(child);
    }

    /// Waits until the daemon says that it is ready.
    pub fn ready(&mut self) {
        let mut line = String::new();
        let out = self.daemon.as_mut().and_then(|child| child.stdout.take()).expect("is piped");
        BufReader::new(out).read_line(&mut line).expect("read");
        assert_eq!(line, "ready\n", "{}", self.said());
    }

    pub fn log(&self) -> PathBuf {
        self.dir.path().join("daemon.log")
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Ends the daemon with a signal; its exit code, if it had the chance to give one.
    pub fn end(&mut self, signal: rustix::process::Signal) -> Option<i32> {
        let mut child = self.daemon.take().expect("runs");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).expect("signalled");
        child.wait().expect("ended").code()
    }

    pub fn run(&self, words: &[&str]) -> Output {
        program(words).env("PALISADE_SOCKET", self.socket()).output().expect("ran")
    }

    /// Runs a command that must do what it should; its JSON.
    pub fn json(&self, words: &[&str]) -> Value {
        let mut words = words.to_vec();
        words.push("--json");
        let output = self.run(&words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", errors(&output));
        let value: Value = serde_json::from_slice(&output.stdout).expect("prints JSON");
        assert_eq!(value["schema"], 1, "{words:?}");
        value
    }

    /// Runs a command that must fail with this exit code; what it said.
    pub fn fails(&self, code: i32, words: &[&str]) -> String {
        let output = self.run(words);
        let said = errors(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        said
    }

    /// As [`Place::fails`]; the error is one line of what happened and one of what to do.
    pub fn refuses(&self, code: i32, words: &[&str]) -> String {
        let said = self.fails(code, words);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 2, "{words:?}: {said}");
        assert!(lines[0].starts_with("palisade: ") && lines[1].starts_with("  "), "{said}");
        assert!(lines.iter().all(|line| line.trim().len() > 8), "{said}");
        assert!(!said.contains("NAME"), "a name that is known is said: {said}");
        said
    }

    pub fn create(&self, name: &str, level: &str, drives: &[usize]) -> Value {
        let paths: Vec<String> = drives.iter().map(|number| self.name(*number)).collect();
        let mut words = vec!["array", "create", name, "--level", level, "--drives"];
        words.extend(paths.iter().map(String::as_str));
        self.json(&words)
    }

    /// As [`Place::create`], with a volume over all of it of which every band was written with
    /// zeros: a scrub checks, and a rebuild fills, the whole array.
    pub fn create_written(&self, name: &str, level: &str, drives: &[usize]) -> Value {
        let made = self.create(name, level, drives);
        let (volume, size) = (format!("{name}/all"), made["free_bytes"].to_string());
        self.json(&["volume", "create", &volume, "--size", &size]);
        let export = self.export(&volume, &["--any-host"]);
        let (_admin, mut queue) = host_of(&export, HOST).enter().expect("connected");
        for at in (0..made["free_bytes"].as_u64().expect("a number")).step_by(1 << 20) {
            queue.write(1, at / 512, &[0; 512]).expect("written");
        }
        self.json(&["export", "delete", export["id"].as_str().expect("text")]);
        made
    }

    /// As [`Place::create`], over whatever the drives hold.
    pub fn create_over(&self, name: &str, level: &str, drives: &[usize]) -> Value {
        let paths: Vec<String> = drives.iter().map(|number| self.name(*number)).collect();
        let mut words = vec!["array", "create", name, "--level", level, "--drives"];
        words.extend(paths.iter().map(String::as_str));
        words.extend(paths.iter().flat_map(|path| ["--overwrite", path]));
        self.json(&words)
    }

    /// The names and states of all arrays, by name.
    pub fn arrays(&self) -> Vec<(String, String)> {
        let list = self.json(&["array", "list"]);
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let arrays = list["arrays"].as_array().expect("a list").iter();
        arrays.map(|array| (text(&array["name"]), text(&array["state"]))).collect()
    }

    /// What `drive list` says of a drive.
    pub fn listed(&self, number: usize) -> Value {
        let list = self.json(&["drive", "list"]);
        let drives = list["drives"].as_array().expect("a list").iter();
        let mut named = drives.filter(|drive| drive["path"] == self.name(number));
        named.next().expect("is listed").clone()
    }

    /// Ends the daemon as an administrator does, and starts it again.
    pub fn restart(&mut self) {
        assert_eq!(self.end(rustix::process::Signal::TERM), Some(0));
        self.start();
    }

    pub fn state(&self, name: &str) -> String {
        self.json(&["array", "show", name])["state"].as_str().expect("text").to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(mut child) = self.daemon.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    command.args(words).env_remove("PALISADE_SOCKET").stdin(Stdio::null());
    command
}

pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Bytes of a drive: xorshift64 of a seed (Marsaglia, "Xorshift RNGs", 2003).
pub fn random(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(DRIVE_BYTES);
    while bytes.len() < DRIVE_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// Asks until the answer is yes.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "not within a minute: {what}");
        std::thread::yield_now();
    }
}

/// Overwrites part of a file.
pub fn scribble(path: &Path, offset: u64, bytes: &[u8]) {
    let mut file = std::fs::File::options().write(true).open(path).expect("opened");
    file.seek(SeekFrom::Start(offset)).expect("found");
    file.write_all(bytes).expect("written");
    file.sync_all().expect("written through");
}

/// Connects to an NBD server and reads its greeting (proto.md, "Newstyle negotiation").
pub fn greeted(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("connects");
    // Well below the time after which a client that says nothing is sent away.
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("greets");
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    stream
}

//! The daemon under measurement: the program itself as a child, on files, with arrays, accounts and
//! HTTPS.
//!
//! States: started → ready → listening (an account made, HTTPS open, logged in) → gone, when it is
//! dropped; its folder goes with it.

use super::SHAPE;
use super::client::{Client, PATIENCE, Server, Stream, failed};
use crate::error::BenchError;
use crate::nvme_tcp::client::{Address, Queue, Shape};
use nvme::nqn::Nqn;
use redfish::service::uri;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::{DirBuilder, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use units::MIB;

/// Drives of each array of `bench api`.
pub const WIDTH: usize = 4;
/// Bytes of each drive. They take no room before they are written.
const DRIVE_BYTES: u64 = 512 * MIB;
/// Between two looks at whether something is there.
const LOOK: Duration = Duration::from_millis(10);
/// How long a host reads before it is measured.
const WARM: Duration = Duration::from_millis(100);
/// The command that serves as `palisade serve` does, with stand-ins that say how drives are.
pub const HIDDEN: &str = "serve-by-stand-ins";
/// The account of the benchmark.
const ACCOUNT: &str = "bench";

/// How a daemon is started.
pub struct Start<'a> {
    /// The program.
    pub program: &'a Path,
    /// Where its folder is made.
    pub dir: &'a Path,
    /// What the folder is called.
    pub name: &'a str,
    /// Arrays, of `width` drives each.
    pub arrays: usize,
    /// Drives of each array.
    pub width: usize,
    /// Whether it counts what hosts ask of volumes.
    pub counters: bool,
    /// Where stand-ins say how its drives are: how many seconds lie between two looks.
    pub asks: Option<u64>,
}

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What can't be removed is left to the person who owns it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that ends when it is dropped.
struct Process {
    child: Child,
    /// Kept open: what it says there is nobody's.
    out: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A running daemon.
pub struct Daemon {
    process: Process,
    folder: Folder,
    program: PathBuf,
    password: String,
    server: Option<Server>,
    token: String,
    /// URIs of its arrays.
    pub pools: Vec<String>,
}

fn system(path: &Path) -> impl Fn(std::io::Error) -> BenchError {
    let path = path.to_owned();
    move |error| BenchError::System { path: path.clone(), error }
}

/// Looks until something is there; what it is, or why it never came.
pub fn until<T>(
    mut look: impl FnMut() -> Result<Option<T>, BenchError>,
    never: impl FnOnce() -> BenchError,
) -> Result<T, BenchError> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() >= end {
            return Err(never());
        }
        std::thread::sleep(LOOK);
    }
}

impl Daemon {
    /// Starts one and makes its arrays; an account is logged in over HTTPS.
    pub fn start(how: &Start<'_>) -> Result<Self, BenchError> {
        let path = how.dir.join(format!("palisade-bench-{}-{}", std::process::id(), how.name));
        DirBuilder::new().mode(0o700).create(&path).map_err(system(&path))?;
        let folder = Folder(path);
        let mut drives = Vec::new();
        for n in 0..how.arrays * how.width {
            let drive = folder.0.join(format!("drive-{n:02}.img"));
            let made = File::create_new(&drive).and_then(|file| file.set_len(DRIVE_BYTES));
            made.map_err(system(&drive))?;
            drives.push(drive.to_string_lossy().into_owned());
        }
        let process = serve(how, &folder.0)?;
        let mut daemon = Self {
            process,
            folder,
            program: how.program.to_owned(),
            password: password()?,
            server: None,
            token: String::new(),
            pools: Vec::new(),
        };
        for (n, drives) in drives.chunks(how.width).enumerate() {
            let name = array(n);
            let mut words = vec!["array", "create", &name, "--level", "5", "--drives"];
            words.extend(drives.iter().map(String::as_str));
            let made = daemon.command(&words, "")?;
            let uuid = made["uuid"].as_str().unwrap_or_default();
            daemon.pools.push(uri::pool(uuid));
        }
        daemon.create_account(ACCOUNT)?;
        daemon.server = Some(daemon.find_server()?);
        daemon.token = daemon.log_in(ACCOUNT)?.0;
        Ok(daemon)
    }

    /// Runs a command of the command line, which has to succeed; what it prints.
    pub fn command(&self, words: &[&str], input: &str) -> Result<Value, BenchError> {
        let what = format!("palisade {}", words[..words.len().min(3)].join(" "));
        let mut command = Command::new(&self.program);
        command.args(words).arg("--json").env("PALISADE_SOCKET", self.folder.0.join("socket"));
        command.env_remove("PALISADE_URL");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = || {
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(input.as_bytes())?;
            }
            child.wait_with_output()
        };
        let output = run().map_err(|error| failed(&what, &error))?;
        if !output.status.success() {
            return Err(failed(&what, &String::from_utf8_lossy(&output.stderr).trim_end()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(&what, &error))
    }

    /// Makes an Administrator.
    pub fn create_account(&self, name: &str) -> Result<(), BenchError> {
        let words = ["account", "create", name, "--role", "Administrator", "--password-stdin"];
        self.command(&words, &format!("{}\n", self.password)).map(|_| ())
    }

    /// Waits until HTTPS is there.
    fn find_server(&self) -> Result<Server, BenchError> {
        let port = until(|| Ok(self.port()), || failed(&"no HTTPS", &self.said()))?;
        let file = self.folder.0.join("state/https.pem");
        let pem = std::fs::read(&file).map_err(system(&file))?;
        Server::new(port, &pem)
    }

    /// The port of HTTPS, as the daemon says it.
    fn port(&self) -> Option<u16> {
        let said = self.said();
        let (_, rest) = said.split_once("HTTPS on 127.0.0.1:")?;
        rest.split_once(',')?.0.parse().ok()
    }

    /// What the daemon wrote to its standard error.
    fn said(&self) -> String {
        said(&self.folder.0)
    }

    fn server(&self) -> Result<&Server, BenchError> {
        self.server.as_ref().ok_or_else(|| failed(&"HTTPS", &"is not open"))
    }

    /// A connection of the benchmark's session.
    pub fn connect(&self) -> Result<Client, BenchError> {
        self.server()?.connect(Some(&self.token))
    }

    /// A connection of nobody's.
    pub fn connect_unknown(&self) -> Result<Client, BenchError> {
        self.server()?.connect(None)
    }

    /// A stream of all events.
    pub fn listen(&self) -> Result<Stream, BenchError> {
        self.connect()?.listen(uri::EVENT_STREAM)
    }

    /// A stream of the reports of metrics that come each second.
    pub fn listen_to_reports(&self) -> Result<Stream, BenchError> {
        let filter = "$filter=EventFormatType%20eq%20'MetricReport'";
        self.connect()?.listen(&format!("{}?{filter}", uri::EVENT_STREAM))
    }

    /// What logs an account in.
    pub fn credentials(&self, name: &str) -> Value {
        json!({ "UserName": name, "Password": self.password })
    }

    /// Begins a session of an account; its token and its URI.
    pub fn log_in(&self, name: &str) -> Result<(String, String), BenchError> {
        let body = self.credentials(name);
        let answer = self.connect_unknown()?.ask("POST", uri::SESSIONS, Some(&body))?;
        Ok((answer.header("x-auth-token").to_owned(), answer.header("location").to_owned()))
    }

    /// The name of the benchmark's account.
    pub const fn account(&self) -> &'static str {
        ACCOUNT
    }

    /// Makes `count` volumes of `bytes`, one array after the other in turns; their URIs.
    pub fn create_volumes(&self, count: usize, bytes: u64) -> Result<Vec<String>, BenchError> {
        let mut client = self.connect()?;
        let make = |n: usize| {
            let pool = &self.pools[n % self.pools.len()];
            create_volume(&mut client, pool, &format!("v{n}"), bytes)
        };
        (0..count).map(make).collect()
    }

    /// Makes a volume of `bytes` in the first array, exports it over NVMe/TCP and connects a host,
    /// which writes it whole: what was never written would be read from no drive.
    pub fn host(&self, bytes: u64) -> Result<Host, BenchError> {
        create_volume(&mut self.connect()?, &self.pools[0], "host", bytes)?;
        let volume = format!("{}/host", array(0));
        let words = ["export", "create", &volume, "--nvme-tcp", "127.0.0.1:0", "--any-host"];
        let export = self.command(&words, "")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let wrong = |why: &dyn core::fmt::Display| failed(&"its export", why);
        let socket = text(&export["listeners"][0]).parse();
        let name = |name: &str| Nqn::new(name).map_err(|error| wrong(&error));
        let address = Address {
            socket: socket.map_err(|error: std::net::AddrParseError| wrong(&error))?,
            subsystem: name(&text(&export["subsystem"]))?,
            host: name("nqn.2026-11.example:bench")?,
        };
        let (admin, controller) = address.associate()?;
        let (queue, _) = address.connect(1, controller, 255)?;
        let mut host = Host { _admin: admin, queue, bytes };
        host.queue.fill(Shape { is_write: true, ..SHAPE }, bytes)?;
        let before = self.drives_read()?;
        let read = host.queue.run(SHAPE, bytes, WARM, 0)?.operations;
        let least = before + read * SHAPE.bytes as u64;
        let look = || Ok((self.drives_read()? >= least).then_some(()));
        until(look, || failed(&"a host's reads", &"do not come from the drives"))?;
        Ok(host)
    }

    /// Bytes that the drives of the first array have read.
    fn drives_read(&self) -> Result<u64, BenchError> {
        let array = self.command(&["array", "show", &array(0)], "")?;
        let drives = array["drive_io"].as_array().into_iter().flatten();
        Ok(drives.filter_map(|drive| drive["read_bytes"].as_u64()).sum())
    }

    /// Has a daemon with stand-ins ask them every so many seconds from soon on.
    pub fn ask_every(&self, seconds: u64) -> Result<(), BenchError> {
        configure(&self.folder.0, true, Some(seconds))?;
        let asked = kill_process(Pid::from_child(&self.process.child), Signal::HUP);
        asked.map_err(|error| failed(&"SIGHUP", &error))
    }

    /// When each drive was asked last, in the interface's words; empty where it was not.
    pub fn asked(&self, client: &mut Client) -> Result<Vec<String>, BenchError> {
        let all = client.get(&format!("{}?$expand=.", uri::DRIVES))?.json()?;
        let asked = |drive: &Value| {
            let asked = &drive["Oem"]["Palisade"]["Hardware"]["AskedTime"];
            asked.as_str().unwrap_or_default().to_owned()
        };
        Ok(all["Members"].as_array().into_iter().flatten().map(asked).collect())
    }

    /// CPU time of the daemon so far.
    pub fn cpu(&self) -> Duration {
        let text = self.proc("stat");
        // Its name, in brackets, may hold anything.
        let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks =
            fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok());
        let ticks: u64 = ticks.sum();
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// MiB of the daemon's memory that are there.
    pub fn resident_mib(&self) -> f64 {
        let text = self.proc("statm");
        let pages = text.split_whitespace().nth(1).and_then(|text| text.parse::<f64>().ok());
        pages.unwrap_or(f64::NAN) * rustix::param::page_size() as f64 / MIB as f64
    }

    fn proc(&self, file: &str) -> String {
        let path = format!("/proc/{}/{file}", self.process.child.id());
        std::fs::read_to_string(path).unwrap_or_default()
    }
}

/// A host with one queue.
pub struct Host {
    _admin: Queue,
    /// The queue.
    pub queue: Queue,
    /// Bytes of the volume.
    pub bytes: u64,
}

/// Makes a volume; its URI.
pub fn create_volume(
    client: &mut Client,
    pool: &str,
    name: &str,
    bytes: u64,
) -> Result<String, BenchError> {
    let source = json!([{ "ProvidingPools": { "Members": [{ "@odata.id": pool }] } }]);
    let body = json!({ "Name": name, "CapacityBytes": bytes, "CapacitySources": source });
    let answer = client.ask("POST", uri::VOLUMES, Some(&body))?;
    Ok(answer.header("location").to_owned())
}

fn array(number: usize) -> String {
    format!("a{number}")
}

/// A password that nobody knows.
fn password() -> Result<String, BenchError> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(system(path))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn said(folder: &Path) -> String {
    let said = std::fs::read(folder.join("daemon.log")).unwrap_or_default();
    String::from_utf8_lossy(&said).trim_end().to_owned()
}

fn configuration(folder: &Path, counters: bool, asks: Option<u64>) -> String {
    let health =
        asks.map_or_else(String::new, |every| format!("\n[health]\nask_every_s = {every}\n"));
    // A JSON string is a TOML string too.
    let path = |name: &str| Value::from(folder.join(name).to_string_lossy());
    let user = rustix::process::getuid().as_raw().to_string();
    format!(
        "socket = {}\ncores = 1\ndrives = [{}]\ndrive_deadline_ms = 10000\ndrive_wait_ms = 0\n\
         parity = \"cpu\"\nconfirm = \"off\"\ncounters = \"{}\"\nstate = {}\n\
         https = [\"127.0.0.1:0\"]\n\n[access]\nadministrators = [\"root\", \"{user}\"]\n{health}",
        path("socket"),
        path("drive-*.img"),
        if counters { "on" } else { "off" },
        path("state"),
    )
}

/// Writes the configuration; its path.
fn configure(folder: &Path, counters: bool, asks: Option<u64>) -> Result<PathBuf, BenchError> {
    let config = folder.join("palisade.toml");
    std::fs::write(&config, configuration(folder, counters, asks)).map_err(system(&config))?;
    Ok(config)
}

/// Starts the program on a folder, and waits until it is ready.
fn serve(how: &Start<'_>, folder: &Path) -> Result<Process, BenchError> {
    let config = configure(folder, how.counters, how.asks)?;
    let log = folder.join("daemon.log");
    let log = File::create_new(&log).map_err(system(&log))?;
    let mut command = Command::new(how.program);
    match how.asks {
        None => command.arg("serve"),
        Some(_) => command.args(["bench", HIDDEN]),
    };
    command.arg("--config").arg(&config);
    command.env_remove("PALISADE_SOCKET").env_remove("PALISADE_URL");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().map_err(system(how.program))?;
    let out = child.stdout.take().ok_or_else(|| failed(&"its output", &"is not there"))?;
    let mut process = Process { child, out: BufReader::new(out) };
    let mut line = String::new();
    while process.out.read_line(&mut line).map_err(system(how.program))? > 0 {
        if line.trim() == "ready" {
            return Ok(process);
        }
        line.clear();
    }
    Err(failed(&"it did not start", &said(folder)))
}

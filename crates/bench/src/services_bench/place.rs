//! What is measured: the daemon with an array, and `palisade services` beside it, each the program
//! itself as a child.
//!
//! States: started → ready → gone, when it is dropped, with all that was made: exports and shares
//! by the program's own commands, and what these leave, as after an error, as services end it.
//!
//! Both are of process groups of their own: Ctrl-C ends the work of this process, and that ends
//! theirs.

use super::tree::Tree;
use crate::error::BenchError;
use crate::remote::process::{Process, failed, run, until};
use serde_json::Value;
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use units::{GIB, MIB};

/// Drives of the array, RAID 5, and bytes of each. They take no room before they are written.
const DRIVES: usize = 5;
const DRIVE_BYTES: u64 = 2 * GIB;
/// Bytes of its folder's path at most: Samba has sockets far below it (unix(7)).
const PATH_MOST: usize = 30;
/// The folder of `palisade services`, and where it mounts file systems of shares.
const SERVICES: &str = "s";
const MOUNTS: &str = "s.shares";
/// The user of shares, and its password: nobody else comes to them meanwhile.
pub const USER: &str = "bench";

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        match services::clear(&self.0.join(SERVICES)) {
            // What can't be removed is left to the person who owns it.
            Ok(()) => drop(std::fs::remove_dir_all(&self.0)),
            // A file system may be mounted in it.
            Err(error) => eprintln!("palisade: {} stays: {error}", self.0.display()),
        }
    }
}

/// A running daemon, and `palisade services`.
pub struct Place {
    services: Process,
    daemon: Process,
    program: PathBuf,
    array: String,
    /// Bytes of a block of its volumes.
    pub block_bytes: u32,
    password: String,
    // After those who use it.
    folder: Folder,
}

impl Drop for Place {
    fn drop(&mut self) {
        // What stays is ended with the folder.
        let _ = self.clear();
    }
}

pub fn system(path: &Path) -> impl Fn(std::io::Error) -> BenchError {
    let path = path.to_owned();
    move |error| BenchError::System { path: path.clone(), error }
}

/// An address at which nobody listens.
pub fn free_port() -> Result<SocketAddr, BenchError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map_err(|error| failed("a port", &error))
}

/// Starts a part of the program, and waits until it is ready.
fn start(
    (program, folder): (&Path, &Path),
    word: &str,
    what: &'static str,
) -> Result<Process, BenchError> {
    let log = folder.join(format!("{word}.log"));
    let mut command = Command::new(program);
    command.args([word, "--config"]).arg(folder.join("palisade.toml")).process_group(0);
    command.stderr(File::create_new(&log).map_err(system(&log))?);
    let mut process = Process::start(&mut command, what)?;
    loop {
        match process.line() {
            Ok(line) if line == "ready" => return Ok(process),
            Ok(_) => {}
            Err(_) => {
                let said = std::fs::read(&log).unwrap_or_default();
                return Err(failed(what, &String::from_utf8_lossy(&said).trim_end()));
            }
        }
    }
}

fn configuration(folder: &Path) -> String {
    // A JSON string is a TOML string too.
    let path = |name: &str| Value::from(folder.join(name).to_string_lossy());
    let user = rustix::process::getuid().as_raw().to_string();
    format!(
        "socket = {}\ncores = 1\ndrives = [{}]\ndrive_deadline_ms = 10000\ndrive_wait_ms = 0\n\
         parity = \"cpu\"\nconfirm = \"off\"\nstate = {}\nservices = {}\n\n\
         [access]\nadministrators = [\"root\", \"{user}\"]\n",
        path("socket"),
        path("drive-*.img"),
        path("state"),
        path(SERVICES),
    )
}

impl Place {
    /// Starts both, and makes the array.
    pub fn start(program: &Path, dir: &Path) -> Result<Self, BenchError> {
        let dir = dir.canonicalize().map_err(system(dir))?;
        let path = dir.join(format!("palisade-{}", std::process::id()));
        if path.as_os_str().len() > PATH_MOST {
            let why = format!(
                "{} is too long for sockets below it; give a shorter --dir",
                path.display()
            );
            return Err(BenchError::Refused(why));
        }
        // Users of shares come through it.
        DirBuilder::new().mode(0o711).create(&path).map_err(system(&path))?;
        let folder = Folder(path);
        let mut drives = Vec::new();
        for n in 0..DRIVES {
            let drive = folder.0.join(format!("drive-{n}.img"));
            let made = File::create_new(&drive).and_then(|file| file.set_len(DRIVE_BYTES));
            made.map_err(system(&drive))?;
            drives.push(drive.to_string_lossy().into_owned());
        }
        let config = folder.0.join("palisade.toml");
        std::fs::write(&config, configuration(&folder.0)).map_err(system(&config))?;
        let daemon = start((program, &folder.0), "serve", "the daemon")?;
        let services = start((program, &folder.0), "services", "palisade services")?;
        let array = format!("bench{}", std::process::id());
        let (program, password) = (program.to_owned(), password()?);
        let mut own = Self { services, daemon, program, array, block_bytes: 0, password, folder };
        let array = own.array.clone();
        let mut words = vec!["array", "create", &array, "--level", "5", "--drives"];
        words.extend(drives.iter().map(String::as_str));
        let made = own.command(&words)?;
        own.block_bytes = made["block_bytes"].as_u64().unwrap_or(4096) as u32;
        Ok(own)
    }

    /// A file of its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    /// Runs a command of the command line, which has to succeed; what it prints.
    pub fn command(&self, words: &[&str]) -> Result<Value, BenchError> {
        let words = [words, &["--json"]].concat();
        let said = run(&self.program, &words, Some(&self.file("socket")))?;
        serde_json::from_str(&said).map_err(|error| failed(&words.join(" "), &error))
    }

    /// Makes a volume; its name.
    pub fn volume(&self, name: &str, bytes: u64) -> Result<String, BenchError> {
        let name = format!("{}/{name}", self.array);
        let mib = format!("{}M", bytes.div_ceil(MIB));
        self.command(&["volume", "create", &name, "--size", &mib])?;
        Ok(name)
    }

    /// Makes a volume, and writes all of it: what was never written would be read from no drive.
    pub fn full_volume(&self, name: &str, bytes: u64) -> Result<String, BenchError> {
        let name = self.volume(name, bytes)?;
        let path = self.file("filled");
        let words = ["export", "create", &name, "--fuse", &path.to_string_lossy()];
        let export = self.command(&words)?;
        let written = File::options().write(true).open(&path).and_then(|file| {
            fill(&file, bytes)?;
            file.sync_all()
        });
        written.map_err(system(&path))?;
        self.command(&["export", "delete", text(&export, "id")])?;
        Ok(name)
    }

    /// Adds the user of shares.
    pub fn add_user(&self) -> Result<(), BenchError> {
        let what = "palisade share user add";
        let mut command = Command::new(&self.program);
        command.args(["share", "user", "add", USER]).env("PALISADE_SOCKET", self.file("socket"));
        command.env_remove("PALISADE_URL");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut run = || {
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                writeln!(stdin, "{}", self.password)?;
            }
            child.wait_with_output()
        };
        let output = run().map_err(|error| failed(what, &error))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(failed(what, &String::from_utf8_lossy(&output.stderr).trim_end())),
        }
    }

    /// The password of that user.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Where a share has its files, that of the only file system.
    pub fn shared(&self, share: &str) -> Result<PathBuf, BenchError> {
        let mounts = self.file(MOUNTS);
        let all = std::fs::read_dir(&mounts).map_err(system(&mounts))?.flatten();
        let mut found = all.map(|own| own.path().join("shares").join(share));
        found.find(|path| path.is_dir()).ok_or_else(|| failed("a share", &"it is not mounted"))
    }

    /// Bytes that its drives have read.
    pub fn drives_read(&self) -> Result<u64, BenchError> {
        let array = self.command(&["array", "show", &self.array])?;
        let drives = array["drive_io"].as_array().into_iter().flatten();
        Ok(drives.filter_map(|drive| drive["read_bytes"].as_u64()).sum())
    }

    /// The first export or share that is not well, if there is one: what `palisade services` says
    /// of it.
    pub fn ill(&self) -> Result<Option<String>, BenchError> {
        let told = |name: &str, of: &Value| {
            let (state, problem) = (text(&of["health"], "state"), text(&of["health"], "problem"));
            (state != "ok").then(|| format!("{name} is {state}: {problem}"))
        };
        for export in list(self, "export")? {
            if let Some(ill) = told(text(&export, "id"), &export) {
                return Ok(Some(ill));
            }
        }
        for share in list(self, "share")? {
            let by = share["protocols"].as_array().into_iter().flatten();
            if let Some(ill) = by.filter_map(|own| told(text(&share, "name"), own)).next() {
                return Ok(Some(ill));
            }
        }
        Ok(None)
    }

    /// Deletes shares, exports and volumes: what is measured next finds none.
    pub fn clear(&self) -> Result<(), BenchError> {
        for share in list(self, "share")? {
            self.command(&["share", "delete", text(&share, "name"), "--yes"])?;
        }
        for export in list(self, "export")? {
            self.command(&["export", "delete", text(&export, "id")])?;
        }
        for volume in list(self, "volume")? {
            let name = format!("{}/{}", self.array, text(&volume, "name"));
            self.command(&["volume", "delete", &name, "--yes"])?;
        }
        Ok(())
    }

    /// The process of the daemon.
    pub fn daemon(&self) -> u32 {
        self.daemon.id()
    }

    /// `palisade services` with all that it has begun.
    pub fn services(&self) -> Tree {
        Tree::of(self.services.id())
    }

    /// The servers of this name that it runs.
    pub fn servers(&self, name: &str) -> Result<Vec<u32>, BenchError> {
        let found = self.services().named(name);
        if found.is_empty() { Err(failed(name, &"it does not run")) } else { Ok(found) }
    }

    /// Waits until what is read comes from the drives: `read` does it once.
    pub fn is_read_from_drives(
        &self,
        bytes: u64,
        mut read: impl FnMut() -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let before = self.drives_read()?;
        read()?;
        // The daemon counts now and then.
        let look = || Ok((self.drives_read()? >= before + bytes).then_some(()));
        until("reads from drives", look)
    }
}

/// All of a noun's, as the command line lists them.
fn list(place: &Place, noun: &str) -> Result<Vec<Value>, BenchError> {
    let listed = place.command(&[noun, "list"])?;
    Ok(listed[format!("{noun}s")].as_array().cloned().unwrap_or_default())
}

/// What a member of an object says.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Fills a file with bytes of which no two MiB are alike.
pub fn fill(file: &File, bytes: u64) -> std::io::Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = vec![0; MIB as usize];
    let mut at = 0;
    while at < bytes {
        for word in block.chunks_exact_mut(8) {
            // xorshift64 (Marsaglia, "Xorshift RNGs", section 3).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let length = (bytes - at).min(MIB) as usize;
        file.write_all_at(&block[..length], at)?;
        at += length as u64;
    }
    Ok(())
}

/// A password that nobody knows.
fn password() -> Result<String, BenchError> {
    shares::system::secret(24).map_err(|error| failed("a password", &error))
}

//! `palisade demo --share`: files of a share outlive drives, as clients of SMB and NFS see them.
//!
//! States: array made → `palisade services` runs → shared → one file written → (drives pulled
//! while a client reads → read → another file written → rebuilt) → all read by both protocols → not
//! shared any more → stopped. With `--serve`: shared → serving → not shared any more → stopped.
//!
//! Invariant: whatever ends the demo, neither servers, mounts nor devices of it are left; only
//! SIGKILL leaves them. The password is new each time, and is in no argument. Devices are FUSE
//! files with a loop device: their users get errors where the daemon dies, while those of ublk's
//! wait.
//!
//! What the machine keeps of files in memory is dropped before they are read, so that drives are
//! asked; where it can't be, that is said.

use super::child::{self, Interrupt};
use super::console::password;
use super::daemon::{Daemon, Process, VOLUME};
use super::error::DemoError;
use super::place::Place;
use super::plan::Plan;
use super::play::{Show, hex, make_volume};
use super::random::{self, Sum};
use super::{serve, stream, tools};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Once;
use units::MIB;

/// The share, and the user who may have it.
const SHARE: &str = "demo";
const USER: &str = "demo";
/// Files, of this part of the volume each, and of so many bytes at most.
const FILES: [&str; 2] = ["one.bin", "two.bin"];
const PART: u64 = 4;
const FILE_BYTES_MAX: u64 = 256 * MIB;

/// Plays all steps and prints the report. The error is none where the report tells it.
///
/// # Errors
/// What failed, where the report is not for people.
pub fn play(plan: &Plan, place: &Place, interrupt: &Interrupt) -> Result<(), Option<DemoError>> {
    let mut show = Show::new(plan, place, interrupt);
    let result = all(&mut show, plan, place, interrupt);
    show.tell(result)
}

fn all(
    show: &mut Show<'_>,
    plan: &Plan,
    place: &Place,
    interrupt: &Interrupt,
) -> Result<(), DemoError> {
    show.step("fill", "filling drives with random bytes", Show::fill)?;
    let mut daemon = start(place, interrupt)?;
    let played = with_daemon(show, &daemon, (plan, place, interrupt));
    played.map_err(|why| daemon.cause(why))?;
    show.step("stop", "stopping the array and the daemon", |_| {
        daemon.call(&["array", "stop", super::daemon::ARRAY])?;
        daemon.stop().map(|()| 0)
    })
}

/// A daemon beside which `palisade services` can be.
fn start(place: &Place, interrupt: &Interrupt) -> Result<Daemon, DemoError> {
    let folder = Value::from(place.services().to_string_lossy());
    Daemon::start(place, &format!("{}{folder}\n", Place::SERVICES), interrupt)
}

fn with_daemon(
    show: &mut Show<'_>,
    daemon: &Daemon,
    (plan, place, interrupt): (&Plan, &Place, &Interrupt),
) -> Result<(), DemoError> {
    let what = format!("making an array of level {}", plan.level);
    show.step("create", &what, |show| show.create(daemon))?;
    let mut own = None;
    show.step("share", "a file system on a volume, shared by SMB and NFS", |_| {
        own = Some(Sharing::make(daemon, place, interrupt)?);
        Ok(0)
    })?;
    let Some(mut own) = own else { return Ok(()) };
    own.urls.iter().for_each(|url| show.say(&format!("  {url}")));
    own.outlive(show, daemon, plan).map_err(|why| own.cause(why))?;
    show.step("unshare", "sharing it no more: nothing of it is left", |_| {
        own.end(daemon).map(|()| 0)
    })
}

/// Shares a volume, says how to connect, and serves until somebody asks to end.
///
/// # Errors
/// If anything can't be made, or the daemon ends before it is asked to.
pub fn serve(plan: &Plan, place: &Place, interrupt: &Interrupt) -> Result<(), DemoError> {
    let mut show = Show::new(plan, place, interrupt);
    show.fill()?;
    let mut daemon = start(place, interrupt)?;
    show.create(&daemon)?;
    let served = serve_until_told(&mut daemon, (plan, place, interrupt));
    served.map_err(|why| daemon.cause(why))?;
    daemon.stop()
}

fn serve_until_told(
    daemon: &mut Daemon,
    (plan, place, interrupt): (&Plan, &Place, &Interrupt),
) -> Result<(), DemoError> {
    let mut own = Sharing::make(daemon, place, interrupt)?;
    match plan.json {
        true => serve::print(&format!("{}\n", own.object(plan, place)))?,
        false => serve::print(&own.told(plan, place))?,
    }
    serve::watch(|| daemon.ended().or_else(|| own.services.ended()), interrupt)?;
    own.end(daemon)
}

/// `palisade services`, and the share that it serves. Whoever drops it has nothing left of them.
struct Sharing<'a> {
    services: Process,
    place: &'a Place,
    interrupt: &'a Interrupt,
    /// Where SMB and NFS are listened for.
    at: [SocketAddr; 2],
    urls: Vec<String>,
    password: String,
    /// Bytes of each file.
    bytes: u64,
    /// What was written: the sum of each file.
    written: Vec<(Sum, u64)>,
}

impl<'a> Sharing<'a> {
    /// Makes all of it.
    fn make(
        daemon: &Daemon,
        place: &'a Place,
        interrupt: &'a Interrupt,
    ) -> Result<Self, DemoError> {
        let volume = make_volume(daemon)?;
        let mut own = Self {
            services: daemon.services(place)?,
            place,
            interrupt,
            at: free_ports()?,
            urls: Vec::new(),
            password: password()?,
            bytes: (volume / PART / MIB * MIB).clamp(MIB, FILE_BYTES_MAX),
            written: Vec::new(),
        };
        own.share(daemon).map_err(|why| own.cause(why))?;
        Ok(own)
    }

    /// Why something failed: `palisade services` has ended, or what it says of it is shown.
    fn cause(&mut self, why: DemoError) -> DemoError {
        let ended = self.services.ended();
        let said = self.services.said();
        if ended.is_none() && !said.is_empty() && !matches!(why, DemoError::Interrupted) {
            eprintln!("palisade services said:\n  {said}");
        }
        ended.unwrap_or(why)
    }

    fn share(&mut self, daemon: &Daemon) -> Result<(), DemoError> {
        let [smb, nfs] = self.at.map(|at| at.to_string());
        let file_system = ["--volume", VOLUME, "--format", "ext4", "--overwrite", "--yes"];
        let by_smb = ["--smb", "--smb-listen", &smb];
        let by_nfs = ["--nfs", "--nfs-listen", &nfs, "--nfs-client", "127.0.0.0/8"];
        let words = [&["share", "create", SHARE][..], &file_system, &by_smb, &by_nfs].concat();
        let made = daemon.call(&words)?;
        let all = made["protocols"].as_array().into_iter().flatten();
        self.urls = all.filter_map(|own| own["url"].as_str()).map(str::to_owned).collect();
        if self.urls.len() != 2 {
            return Err(DemoError::Wrong(format!("`share create` names no two URLs: {made}")));
        }
        let login = self.place.login();
        let text = format!("username = {USER}\npassword = {}\n", self.password);
        secret(&login, &text)?;
        let words = ["share", "user", "add", USER, "--password-stdin"];
        daemon.call_typing(&words, &self.password).map(drop)
    }

    /// Files are written and read, while drives go and come.
    fn outlive(
        &mut self,
        show: &mut Show<'_>,
        daemon: &Daemon,
        plan: &Plan,
    ) -> Result<(), DemoError> {
        show.step("copy-in", "a client of SMB writes a file", |show| self.write(show))?;
        show.step("read-back", "a client of NFS reads it", |_| self.read(By::Nfs, 0))?;
        let pulls = plan.pulls();
        let Some(slots) = pulls.first() else {
            show.say("level 0 has no redundancy: no drive is pulled");
            return Ok(());
        };
        let list: Vec<String> = slots.iter().map(ToString::to_string).collect();
        let list = list.join(" and ");
        let what = format!("pulling the drive of slot {list} while a client of SMB reads");
        show.step("pull", &what, |show| {
            let reader = || {
                forget();
                self.reader(By::Smb, 0)
            };
            show.pull_during(daemon, slots, (&reader, self.written[0]))
        })?;
        show.step("read-degraded", "a client of NFS reads all of it", |_| self.read(By::Nfs, 0))?;
        show.step("write-degraded", "a client of SMB writes another file", |show| {
            self.write(show)
        })?;
        let mut drives = Vec::new();
        for _ in slots {
            drives.push(show.new_drive()?);
        }
        let what = format!("rebuilding slot {list} on a replacement");
        show.step("rebuild", &what, |show| show.rebuild(daemon, slots, drives))?;
        show.step("read-rebuilt", "both files, by both protocols", |_| {
            let all = [(By::Smb, 0), (By::Smb, 1), (By::Nfs, 0), (By::Nfs, 1)];
            all.into_iter().try_fold(0, |sum, (by, file)| Ok(sum + self.read(by, file)?))
        })?;
        show.step("scrub", "comparing redundancy with the data", |show| show.scrub(daemon))
    }

    /// Writes the next file.
    fn write(&mut self, show: &Show<'_>) -> Result<u64, DemoError> {
        let number = self.written.len();
        let source = self.place.source();
        let _ = fs::remove_file(&source);
        // No drive begins with the same bytes.
        random::overwrite(&source, self.bytes, 2000 + number as u64, self.interrupt)?;
        let (sum, bytes) = random::sum_of_file(&source, self.interrupt)?;
        // The client takes its words apart at spaces: the path of a folder may have some.
        let mut client = self.smb(&format!("put {} {}", Place::SOURCE, FILES[number]));
        client.current_dir(self.place.dir());
        child::run(&mut client, self.interrupt)?;
        show.say(&format!("  {}, SHA-256 {}", FILES[number], hex(&sum)));
        self.written.push((sum, bytes));
        Ok(bytes)
    }

    /// Reads a file, and compares it with what was written.
    fn read(&self, by: By, file: usize) -> Result<u64, DemoError> {
        forget();
        let read = stream::sum_of_output(&mut self.reader(by, file), self.interrupt)?;
        if read == self.written[file] {
            return Ok(read.1);
        }
        let (name, sum) = (FILES[file], hex(&read.0));
        let problem = format!("{name} has SHA-256 {sum}: other bytes than were written");
        Err(DemoError::Wrong(problem))
    }

    /// A client that prints a file.
    fn reader(&self, by: By, file: usize) -> Command {
        match by {
            By::Smb => self.smb(&format!("get {} -", FILES[file])),
            By::Nfs => {
                let port = self.at[1].port();
                let mut client = tools::program("nfs-cat");
                let path = format!("/{SHARE}/{}", FILES[file]);
                client.arg(format!("nfs://127.0.0.1{path}?version=4&nfsport={port}"));
                client
            }
        }
    }

    fn smb(&self, words: &str) -> Command {
        let mut client = tools::program("smbclient");
        client.arg(format!("//127.0.0.1/{SHARE}")).arg("-p").arg(self.at[0].port().to_string());
        client.args(["-s", "/dev/null", "-d", "0", "-A"]).arg(self.place.login());
        client.args(["-c", words]);
        client
    }

    /// Takes it from its clients, and sees that nothing is left.
    fn end(self, daemon: &Daemon) -> Result<(), DemoError> {
        daemon.call_at_the_end(&["share", "delete", SHARE, "--yes"])?;
        let left = services::left(&self.place.services());
        if left.is_empty() {
            return Ok(());
        }
        Err(DemoError::Wrong(format!("something is left of what was shared: {left:?}")))
    }

    /// What programs read of what is served.
    fn object(&self, plan: &Plan, place: &Place) -> Value {
        serde_json::json!({"schema": 1, "ok": true, "level": plan.level, "drives": plan.drives,
            "share": SHARE, "urls": self.urls, "user": USER, "password": self.password,
            "socket": place.socket().to_string_lossy()})
    }

    /// One line for each way to connect, and for a look.
    fn told(&self, plan: &Plan, place: &Place) -> String {
        let (level, drives, [smb, nfs]) = (&plan.level, plan.drives, self.at.map(|at| at.port()));
        let mut text = format!("sharing {SHARE}, on level {level} over {drives} drives\n");
        self.urls.iter().for_each(|url| text += &format!("  {url}\n"));
        text += &format!("user {USER}, password {}\n", self.password);
        let mut way = |command: &str, what: &str| text += &format!("  {command:<66} # {what}\n");
        way(&format!("smbclient //127.0.0.1/{SHARE} -p {smb} -U {USER}"), "by SMB");
        let options = format!("vers=3.1.1,port={smb},username={USER}");
        way(&format!("mount -t cifs -o {options} //127.0.0.1/{SHARE} /mnt"), "the same, mounted");
        let options = format!("vers=4.1,port={nfs}");
        way(&format!("mount -t nfs -o {options} 127.0.0.1:/{SHARE} /mnt"), "by NFS");
        way(&format!("export PALISADE_SOCKET={}", place.socket().display()), "for commands:");
        way(&format!("palisade share show {SHARE}"), "the share, and its clients");
        let drive = place.drive(1).display().to_string();
        way(&format!("palisade array fail demo --drive {drive}"), "pull a drive");
        way("palisade status --watch", "what goes on");
        text += "until Ctrl-C or SIGTERM; unmount it first\n";
        text
    }
}

impl Drop for Sharing<'_> {
    fn drop(&mut self) {
        self.services.kill();
        // Also where the daemon has ended, or the share could not be deleted.
        if let Err(error) = services::clear(&self.place.services()) {
            eprintln!("palisade demo: {error}");
        }
    }
}

/// How a client reads.
#[derive(Clone, Copy)]
enum By {
    Smb,
    Nfs,
}

/// Has the machine keep no files in memory that are written already.
fn forget() {
    static TOLD: Once = Once::new();
    rustix::fs::sync();
    if let Err(error) = fs::write("/proc/sys/vm/drop_caches", "1\n") {
        TOLD.call_once(|| {
            eprintln!("palisade demo: what is read may come from memory: drop_caches: {error}");
        });
    }
}

/// Addresses at which nobody listens.
fn free_ports() -> Result<[SocketAddr; 2], DemoError> {
    let wrong = |error| DemoError::Wrong(format!("no port is free: {error}"));
    // Both are had at once: they differ.
    let [one, other] = [(); 2].map(|()| TcpListener::bind(super::play::ANY_PORT));
    let (one, other) = (one.map_err(wrong)?, other.map_err(wrong)?);
    Ok([one.local_addr().map_err(wrong)?, other.local_addr().map_err(wrong)?])
}

/// Writes a file that nobody else may read.
fn secret(path: &Path, text: &str) -> Result<(), DemoError> {
    let open = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let mut file = open.map_err(DemoError::file(path))?;
    file.write_all(text.as_bytes()).map_err(DemoError::file(path))
}

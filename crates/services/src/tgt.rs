//! iSCSI targets by tgt's `tgtd`, over a volume's file: where the kernel has no target of its own,
//! or no ublk.
//!
//! There is a `tgtd` for each set of portals, in a folder of its own: it lets in at each of its
//! portals whomever it lets in at all. It is no child that ends with this process: what uses its
//! targets goes on when this process ends, and the next one finds it by its lock.
//!
//! | what is wanted             | what is there                  | what is done                   |
//! |----------------------------|--------------------------------|--------------------------------|
//! | a target                   | no `tgtd`                      | one is started                 |
//! | a target                   | one that has not answered      | it is ended, and one is        |
//! |                            | [`SILENT`] times               | started                        |
//! | a target                   | no such target                 | it is made; access comes last  |
//! | a target                   | it is otherwise                | it is ended, and made anew     |
//! | a target                   | its file was mounted anew      | the same                       |
//! | a portal                   | nobody listens there           | `tgtd` is told to              |
//! | no target of these portals | a `tgtd`                       | it is ended                    |
//!
//! Invariants
//! - A secret stands in no command line: accounts are told to `tgtd` on its own socket.
//! - Nobody is let in before a target is as it is wanted.
//! - An account is one target's: one that another had would lose it with that one, and let in
//!   whoever comes.
//! - What is there is asked of `tgtd` and of the kernel, not remembered.

use crate::targets::{Target, UNIT};
use crate::{hash_of, lock, mounts, not_started};
use ::iscsi::{Account, Name, PRODUCT, VENDOR};
use rustix::process::{Flock, FlockType, Pid, Signal, fcntl_getlk, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long `tgtadm` may take.
const LIMIT: &str = "10";
/// How long a `tgtd` may take to answer, or to end.
const COMES: Duration = Duration::from_secs(10);
/// How often it is looked whether it has.
const LOOK: Duration = Duration::from_millis(20);
/// Most bytes of what it said that are looked at, and that are kept.
const SAID: u64 = 4096;
const LOG_MOST: u64 = 1 << 20;
/// So many times in a row it may not answer.
const SILENT: u32 = 3;
/// What folders of these begin with.
const PREFIX: &str = "tgt-";
/// Most bytes of a socket's path (unix(7)), and of what `tgtd` puts behind it.
const PATH_MOST: usize = 107 - ".0.lock".len();

/// Threads that carry requests of a unit out.
const THREADS: &str = "16";

/// Held while something of an instance changes: each export has a thread, and several may be of
/// one. How many times it has not answered.
type Changing = Arc<Mutex<u32>>;

static CHANGING: Mutex<BTreeMap<PathBuf, Changing>> = Mutex::new(BTreeMap::new());

/// The `tgtd` of a set of portals.
pub struct Instance {
    folder: PathBuf,
    portals: BTreeSet<SocketAddr>,
}

impl Instance {
    /// That of these portals, with its folder in this one.
    pub fn of(folder: &Path, portals: &[SocketAddr]) -> Self {
        let portals: BTreeSet<SocketAddr> = portals.iter().copied().collect();
        Self { folder: folder.join(format!("{PREFIX}{:016x}", number(&portals))), portals }
    }

    /// Ends every `tgtd` with its folder in this one that is of none of these instances.
    ///
    /// # Errors
    /// One can't be ended.
    pub fn sweep(folder: &Path, wanted: &[Self]) -> io::Result<()> {
        for left in std::fs::read_dir(folder)?.flatten() {
            let own = Self { folder: left.path(), portals: BTreeSet::new() };
            let is_ours = left.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
            if is_ours && wanted.iter().all(|wanted| wanted.folder != own.folder) {
                let changing = own.changing();
                let _changing = lock(&changing);
                own.kill()?;
                own.clear()?;
            }
        }
        Ok(())
    }

    /// Makes of what is there what is wanted of a target.
    ///
    /// # Errors
    /// What `tgtd` or `tgtadm` says.
    pub fn serve(&self, target: &Target) -> io::Result<()> {
        let changing = self.changing();
        let mut silent = lock(&changing);
        let shown = match self.shown() {
            Ok(shown) => shown,
            // What can't be asked goes on; what does not answer may have much to do.
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(error),
            Err(error) if self.holder()?.is_some() && *silent + 1 < SILENT => {
                *silent += 1;
                return Err(error);
            }
            Err(_) => {
                self.start()?;
                self.shown()?
            }
        };
        *silent = 0;
        self.shorten()?;
        self.listen()?;
        let known = shown.iter().find(|known| known.name == target.name.as_str());
        if let Some(known) = known {
            if known.is(target) && self.knows(target)? && self.has_open(&target.path)? {
                return Ok(());
            }
            self.remove(known)?;
        }
        let free = (1..).find(|number| shown.iter().all(|known| known.number != *number));
        let made = self.make(free.unwrap_or(1), target, &shown);
        if made.is_err() {
            // What is not whole lets nobody in, and is made anew at the next time.
            let left = self.shown()?.into_iter().find(|own| own.name == target.name.as_str());
            left.map_or(Ok(()), |left| self.remove(&left))?;
        }
        made
    }

    /// Ends a target, whoever uses it, and the `tgtd` if that was its last.
    ///
    /// # Errors
    /// What `tgtadm` says.
    pub fn end(&self, target: &Name) -> io::Result<()> {
        let changing = self.changing();
        let mut silent = lock(&changing);
        if self.holder()?.is_none() {
            return self.clear();
        }
        let shown = match self.shown() {
            // It does not answer, and has had its time.
            Err(error) if error.kind() != ErrorKind::NotFound && *silent + 1 >= SILENT => {
                self.kill()?;
                return self.clear();
            }
            Err(error) => {
                *silent += 1;
                return Err(error);
            }
            Ok(shown) => shown,
        };
        *silent = 0;
        for known in shown.iter().filter(|known| known.name == target.as_str()) {
            self.remove(known)?;
        }
        if shown.iter().any(|known| known.name != target.as_str()) {
            return Ok(());
        }
        self.kill()?;
        self.clear()
    }

    /// Who has a target now.
    ///
    /// # Errors
    /// What `tgtadm` says.
    pub fn sessions(&self, target: &Name) -> io::Result<Vec<String>> {
        let mut shown = self.shown()?.into_iter();
        let known = shown.find(|known| known.name == target.as_str());
        Ok(known.map(|known| known.sessions).unwrap_or_default())
    }

    fn changing(&self) -> Changing {
        lock(&CHANGING).entry(self.folder.clone()).or_default().clone()
    }

    /// What `tgtd` begins the name of its socket and lock with.
    fn socket(&self) -> PathBuf {
        self.folder.join("tgtd")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Removes what a `tgtd` left that has ended.
    fn clear(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The process that has the lock.
    fn holder(&self) -> io::Result<Option<Pid>> {
        let file = match File::open(self.socket().with_extension("0.lock")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let held = fcntl_getlk(&file, &Flock::from(FlockType::ReadLock))?;
        Ok(held.and_then(|held| held.pid))
    }

    /// Ends the process that has the lock.
    fn kill(&self) -> io::Result<()> {
        let end = Instant::now() + COMES;
        while let Some(pid) = self.holder()? {
            let _ = kill_process(pid, Signal::KILL);
            if Instant::now() > end {
                let what = format!("tgtd, process {}, can't be ended", pid.as_raw_nonzero());
                return Err(io::Error::other(what));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Starts a `tgtd`, and waits until it answers.
    fn start(&self) -> io::Result<()> {
        self.kill()?;
        self.clear()?;
        let path = self.socket();
        if path.as_os_str().len() > PATH_MOST {
            return Err(io::Error::other(format!("{} is too long for tgtd", path.display())));
        }
        std::fs::create_dir_all(&self.folder)?;
        let portals = self.portals.iter().map(|portal| format!("portal={portal}"));
        let mut tgtd = Command::new("tgtd");
        tgtd.args(["-f", "-C", "0", "--iscsi", &portals.collect::<Vec<_>>().join(",")]);
        tgtd.args(["--nr_iothreads", THREADS]).env("TGT_IPC_SOCKET", &path);
        let log = File::options().append(true).create(true).open(self.log())?;
        tgtd.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // A signal of the terminal is not its.
        tgtd.process_group(0);
        let mut child = tgtd.spawn().map_err(|error| not_started("tgtd", "tgt", &error))?;
        let end = Instant::now() + COMES;
        while let Err(error) = self.shown() {
            let is_over = child.try_wait()?.is_some() || Instant::now() > end;
            if is_over || error.kind() == ErrorKind::NotFound {
                let _ = child.kill();
                let _ = child.wait();
                let said = io::Error::other(format!("tgtd: {}", self.said()));
                self.clear()?;
                return Err(if is_over { said } else { error });
            }
            std::thread::sleep(LOOK);
        }
        let listens = self.listen();
        if listens.is_err() {
            let _ = child.kill();
            let _ = child.wait();
            self.clear()?;
            return listens;
        }
        reap(child);
        Ok(())
    }

    /// Has it listen where it does not: it goes on where it can't.
    fn listen(&self) -> io::Result<()> {
        let shown = self.admin(&["--op", "show", "--mode", "portal"])?;
        for portal in &self.portals {
            let own = format!("Portal: {portal},");
            if !shown.lines().any(|line| line.starts_with(&own)) {
                let param = format!("portal={portal}");
                let words = ["--op", "new", "--mode", "portal", "--param", &param];
                if self.admin(&words).is_err() {
                    let what = format!("tgtd at {portal}: {}", self.said());
                    return Err(io::Error::other(what));
                }
            }
        }
        Ok(())
    }

    /// Keeps the log short.
    fn shorten(&self) -> io::Result<()> {
        let log = File::options().append(true).create(true).open(self.log())?;
        if log.metadata()?.len() > LOG_MOST { log.set_len(0) } else { Ok(()) }
    }

    /// What `tgtd` said of what it could not do; else the last that it said.
    fn said(&self) -> String {
        let mut said = Vec::new();
        let read = File::open(self.log()).and_then(|mut file| {
            let from = file.metadata()?.len().saturating_sub(SAID);
            file.seek(SeekFrom::Start(from))?;
            file.take(SAID).read_to_end(&mut said)
        });
        let said = String::from_utf8_lossy(&said);
        let wrong = said.lines().rfind(|line| line.contains("unable to"));
        let last = || said.lines().rfind(|line| !line.trim().is_empty());
        match (read, wrong.or_else(last)) {
            (Ok(_), Some(line)) => line.trim().to_owned(),
            (Ok(_), None) => "it has ended, and said nothing".to_owned(),
            (Err(error), _) => error.to_string(),
        }
    }

    fn admin(&self, words: &[&str]) -> io::Result<String> {
        let mut tgtadm = Command::new("timeout");
        tgtadm.args([LIMIT, "tgtadm", "-C", "0", "--lld", "iscsi"]).args(words);
        tgtadm.env("TGT_IPC_SOCKET", self.socket()).env("LC_ALL", "C").stdin(Stdio::null());
        let output =
            tgtadm.output().map_err(|error| not_started("timeout", "coreutils", &error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(match output.status.code() {
            Some(124) => io::Error::new(ErrorKind::TimedOut, "tgtd does not answer"),
            Some(127) => not_started("tgtadm", "tgt", &ErrorKind::NotFound.into()),
            _ if said.is_empty() => io::Error::other(format!("tgtadm: {}", output.status)),
            _ => io::Error::other(said),
        })
    }

    fn shown(&self) -> io::Result<Vec<Shown>> {
        Ok(Shown::read(&self.admin(&["--op", "show", "--mode", "target"])?))
    }

    /// Whether a file is open there as it is mounted now.
    fn has_open(&self, path: &Path) -> io::Result<bool> {
        let Some(pid) = self.holder()? else { return Ok(false) };
        let mount = mounts::number(path)?;
        let process = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        for file in std::fs::read_dir(process.join("fd"))?.flatten() {
            if std::fs::read_link(file.path()).is_ok_and(|own| own == path) {
                let about = std::fs::read_to_string(process.join("fdinfo").join(file.file_name()))?;
                let own = about.lines().find_map(|line| line.strip_prefix("mnt_id:"));
                if own.and_then(|own| own.trim().parse().ok()) == Some(mount) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn remove(&self, known: &Shown) -> io::Result<()> {
        let number = known.number.to_string();
        self.admin(&["--op", "delete", "--mode", "target", "--force", "--tid", &number])?;
        // What a process leaves of these that ends here goes before they are told anew.
        known.accounts.iter().try_for_each(|user| self.forget(user))
    }

    fn forget(&self, user: &str) -> io::Result<()> {
        self.admin(&["--op", "delete", "--mode", "account", "--user", user]).map(drop)
    }

    /// Where it is told which secrets a target's accounts have.
    fn mark(&self, target: &Target) -> PathBuf {
        self.folder.join(format!("{}.accounts", target.name))
    }

    /// What tells a target's secrets from others.
    fn marks(target: &Target) -> String {
        let mark = |own: &Account| format!("{} {}\n", own.user(), own.secret().mark(own.user()));
        target.accounts().map(mark).collect()
    }

    /// Whether a target was made with these secrets, which nobody shows.
    fn knows(&self, target: &Target) -> io::Result<bool> {
        match std::fs::read_to_string(self.mark(target)) {
            Ok(known) => Ok(known == Self::marks(target)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a target beside these.
    fn make(&self, number: u32, target: &Target, beside: &[Shown]) -> io::Result<()> {
        let (number, unit) = (number.to_string(), UNIT.to_string());
        let path = target.path.to_str().filter(|path| !path.contains(','));
        let path = path.ok_or_else(|| io::Error::other("tgtd takes no such path of a file"))?;
        let block = target.block_bytes.to_string();
        let admin = |op: &str, mode: &str, words: &[&str]| {
            let all = [&["--op", op, "--mode", mode, "--tid", &number][..], words].concat();
            self.admin(&all)
        };
        admin("new", "target", &["-T", target.name.as_str()])?;
        let words = ["--lun", &unit, "-b", path, "--bstype", "rdwr", "--blocksize", &block];
        admin("new", "logicalunit", &words)?;
        let (serial, naa) = (&target.identity.serial, &target.identity.naa);
        let params = format!(
            "vendor_id={VENDOR},product_id={PRODUCT},scsi_id={naa},scsi_sn={serial},\
             thin_provisioning=1"
        );
        admin("update", "logicalunit", &["--lun", &unit, "--params", &params])?;
        for account in target.accounts() {
            let is_own = |known: &&Shown| known.name == target.name.as_str();
            let mut others = beside.iter().filter(|known| !is_own(known));
            if others.any(|known| known.accounts.iter().any(|user| user == account.user())) {
                return Err(io::Error::other(format!(
                    "another export at these portals has the user {}: tgtd has one secret for each",
                    account.user()
                )));
            }
            if !self.tell(account)? {
                self.forget(account.user())?;
                self.tell(account)?;
            }
            admin("bind", "account", &["--user", account.user()])?;
        }
        std::fs::write(self.mark(target), Self::marks(target))?;
        for initiator in target.allowed() {
            admin("bind", "target", &["-Q", initiator.as_str()])?;
        }
        Ok(())
    }

    /// Tells `tgtd` of an account, as `tgtadm` does (tgt's usr/tgtadm.h): a header of 120 bytes,
    /// numbers in the machine's order, then what is asked for. The answer is an error's number and
    /// a length. False if there is one of that name.
    fn tell(&self, account: &Account) -> io::Result<bool> {
        /// The request's mode: accounts. Its operation, a new one, is 0.
        const ACCOUNTS: u32 = 7;
        /// There is one by that name.
        const EXISTS: u32 = 14;
        let secret = account.secret().expose();
        if secret.contains(',') {
            return Err(io::Error::other("tgtd takes no secret with ','"));
        }
        let asked = format!("user={},password={secret}\0", account.user());
        let mut all = vec![0; 120];
        all[..4].copy_from_slice(&ACCOUNTS.to_le_bytes());
        all[8..13].copy_from_slice(b"iscsi");
        all[72..76].copy_from_slice(&(120 + asked.len() as u32).to_le_bytes());
        all[76..80].fill(0xff);
        all[88..96].fill(0xff);
        let mut socket = UnixStream::connect(self.socket().with_extension("0"))?;
        socket.set_read_timeout(Some(COMES))?;
        socket.set_write_timeout(Some(COMES))?;
        socket.write_all(&all)?;
        socket.write_all(asked.as_bytes())?;
        let mut answer = [0; 8];
        socket.read_exact(&mut answer)?;
        match u32::from_le_bytes([answer[0], answer[1], answer[2], answer[3]]) {
            0 => Ok(true),
            EXISTS => Ok(false),
            other => Err(io::Error::other(format!("tgtd refuses the account: error {other}"))),
        }
    }
}

/// A number that is these portals' alone, most likely.
fn number(portals: &BTreeSet<SocketAddr>) -> u64 {
    let text: Vec<String> = portals.iter().map(ToString::to_string).collect();
    hash_of(text.join(",").as_bytes().iter())
}

/// Waits for a child in a thread of its own: it ends when it likes.
fn reap(mut child: Child) {
    // Without a thread it stays a zombie, which holds nothing.
    let _ = std::thread::Builder::new().name("palisade-reap".to_owned()).spawn(move || {
        let _ = child.wait();
    });
}

/// A target, as `tgtadm` shows it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Shown {
    number: u32,
    name: String,
    /// Who has logged in.
    sessions: Vec<String>,
    /// The file of [`UNIT`].
    path: String,
    serial: String,
    accounts: Vec<String>,
    access: Vec<String>,
}

impl Shown {
    /// Reads what `tgtadm --op show --mode target` prints: a line for each target, and what is of
    /// it behind, by four blanks further to the right.
    fn read(text: &str) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let (mut part, mut unit) = (String::new(), String::new());
        for line in text.lines() {
            let words = line.trim();
            let depth = line.len() - line.trim_start().len();
            if let Some((number, name)) =
                words.strip_prefix("Target ").and_then(|own| own.split_once(": "))
                && depth == 0
            {
                let number = number.parse().unwrap_or_default();
                all.push(Self { number, name: name.to_owned(), ..Self::default() });
                continue;
            }
            let Some(own) = all.last_mut() else { continue };
            if depth == 4 {
                (part, unit) = (words.to_owned(), String::new());
                continue;
            }
            let value = |key: &str| words.strip_prefix(key).map(str::trim);
            match part.as_str() {
                "I_T nexus information:" => {
                    let told = value("Initiator:");
                    own.sessions.extend(told.and_then(|t| Some(t.split(' ').next()?.to_owned())));
                }
                "LUN information:" => {
                    if let Some(number) = value("LUN:") {
                        number.clone_into(&mut unit);
                    }
                    if unit == UNIT.to_string() {
                        if let Some(path) = value("Backing store path:") {
                            path.clone_into(&mut own.path);
                        }
                        if let Some(serial) = value("SCSI SN:") {
                            serial.clone_into(&mut own.serial);
                        }
                    }
                }
                "Account information:" => own.accounts.push(words.to_owned()),
                "ACL information:" => own.access.push(words.to_owned()),
                _ => {}
            }
        }
        all
    }

    /// Whether it is as it is wanted, but for the secret, which nobody shows.
    fn is(&self, target: &Target) -> bool {
        let all = |texts: &[String]| texts.iter().cloned().collect::<BTreeSet<_>>();
        all(&self.access) == target.allowed().map(ToString::to_string).collect()
            && all(&self.accounts) == target.accounts().map(|own| own.user().to_owned()).collect()
            && Path::new(&self.path) == target.path
            && self.serial == target.identity.serial
    }
}

#[cfg(test)]
#[path = "tgt_tests.rs"]
mod tests;

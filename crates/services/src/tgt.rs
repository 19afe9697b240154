//! iSCSI targets by tgt's `tgtd`, over a volume's file: where the kernel has no target of its own,
//! or no ublk.
//!
//! There is a `tgtd` for each set of portals, in a folder of its own: it lets in at each of its
//! portals whomever it lets in at all. It is no child that ends with this process: what uses its
//! targets goes on when this process ends, and the next one finds it by its lock.
//!
//! A target is *offline* (it has no unit, and answers a login with an error of its own) or *ready*.
//! Initiators that are told that there is no such target give up at once; those that are told of an
//! error try again, as long as they wait for a target at all.
//!
//! | what is wanted             | what is there                  | what is done                   |
//! |----------------------------|--------------------------------|--------------------------------|
//! | a target                   | no `tgtd`                      | one is started, with all       |
//! |                            |                                | targets that there are to be,  |
//! |                            |                                | offline; then it listens       |
//! | a target                   | one that has not answered      | it is ended, and one is        |
//! |                            | [`SILENT`] times               | started                        |
//! | a target                   | it is offline, or not there    | it is filled, then made ready  |
//! | a target                   | it is otherwise                | it is emptied, then the same   |
//! | a target                   | its file was mounted anew      | the same                       |
//! | a target that rests        | it is ready                    | it is emptied: offline         |
//! | a portal                   | nobody listens there           | `tgtd` is told to              |
//! | no target of these portals | a `tgtd`                       | it is ended                    |
//!
//! Invariants
//! - A secret stands in no command line: accounts are told to `tgtd` on its own socket.
//! - Nobody is let in before a target is as it is wanted.
//! - Nobody is told that there is no target that there is to be.
//! - An account is one target's: one that another had would lose it with that one, and let in
//!   whoever comes.
//! - What is there is asked of `tgtd` and of the kernel, not remembered.

use crate::targets::Target;
use crate::{hash_of, lock, mounts, not_started};
use ::iscsi::{Account, Name, PRODUCT, UNIT, VENDOR};
use ::shares::system::{gone, holder, reap};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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

/// Where a `tgtd` listens before it has its targets: it has to listen somewhere. The port is any.
const NOWHERE: &str = "127.0.0.1:0";

/// The `tgtd` of a set of portals.
pub struct Instance {
    folder: PathBuf,
    portals: BTreeSet<SocketAddr>,
    /// All targets that there are to be at these portals.
    targets: Vec<Name>,
}

impl Instance {
    /// That of these portals, with its folder in this one.
    pub fn of(folder: &Path, portals: &[SocketAddr]) -> Self {
        let portals: BTreeSet<SocketAddr> = portals.iter().copied().collect();
        let folder = folder.join(format!("{PREFIX}{:016x}", number(&portals)));
        Self { folder, portals, targets: Vec::new() }
    }

    /// The same, which has these targets.
    #[must_use]
    pub fn with(self, targets: Vec<Name>) -> Self {
        Self { targets, ..self }
    }

    /// Ends every `tgtd` with its folder in this one that is of none of these instances.
    ///
    /// # Errors
    /// One can't be ended.
    pub fn sweep(folder: &Path, wanted: &[Self]) -> io::Result<()> {
        for left in std::fs::read_dir(folder)?.flatten() {
            let (portals, targets) = Default::default();
            let own = Self { folder: left.path(), portals, targets };
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
        let name = &target.identity.target;
        let number = match shown.iter().find(|known| known.name == name.as_str()) {
            Some(known) => {
                if known.is(target) && self.knows(target)? && self.has_open(&target.path)? {
                    return self.listen();
                }
                self.empty(known)?;
                known.number
            }
            None => self.add(name, &shown)?,
        };
        let filled = self.fill(number, target, &shown);
        if filled.is_err() {
            // What is not whole lets nobody in, and is made anew at the next time.
            let left = self.shown()?.into_iter().find(|own| own.name == name.as_str());
            left.map_or(Ok(()), |left| self.empty(&left))?;
        }
        filled.and_then(|()| self.listen())
    }

    /// Lets a target rest: nobody has its file, and initiators ask for it until it is served again.
    ///
    /// # Errors
    /// What `tgtadm` says.
    pub fn rest(&self, target: &Name) -> io::Result<()> {
        let changing = self.changing();
        let _changing = lock(&changing);
        if self.holder()?.is_none() {
            return Ok(());
        }
        let shown = self.shown()?;
        let known = shown.iter().find(|known| known.name == target.as_str());
        known.map_or(Ok(()), |known| self.empty(known))
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
        gone(std::fs::remove_dir_all(&self.folder))
    }

    /// The process that has the lock.
    ///
    /// # Errors
    /// That can't be told.
    pub fn holder(&self) -> io::Result<Option<Pid>> {
        holder(&self.socket().with_extension("0.lock"))
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

    /// Starts a `tgtd`, and waits until it answers, and listens.
    fn start(&self) -> io::Result<()> {
        self.kill()?;
        self.clear()?;
        let path = self.socket();
        if path.as_os_str().len() > PATH_MOST {
            return Err(io::Error::other(format!("{} is too long for tgtd", path.display())));
        }
        std::fs::create_dir_all(&self.folder)?;
        let mut tgtd = Command::new("tgtd");
        tgtd.args(["-f", "-C", "0", "--iscsi", &format!("portal={NOWHERE}")]);
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
        let listens = self.begin();
        if listens.is_err() {
            let _ = child.kill();
            let _ = child.wait();
            self.clear()?;
            return listens;
        }
        reap(child);
        Ok(())
    }

    /// Has a new one know its targets, and then listen where it is to, and nowhere else.
    fn begin(&self) -> io::Result<()> {
        let mut shown = Vec::new();
        for name in &self.targets {
            let (number, name) = (self.add(name, &shown)?, name.to_string());
            shown.push(Shown { number, name, ..Shown::default() });
        }
        let before = self.listened()?;
        // It goes on where some can be had; who serves a target is told of the others.
        let listens = self.listen();
        if listens.is_err() && self.listened()?.len() == before.len() {
            return listens;
        }
        before.iter().try_for_each(|portal| {
            let param = format!("portal={portal}");
            self.admin(&["--op", "delete", "--mode", "portal", "--param", &param]).map(drop)
        })
    }

    /// Where it listens.
    fn listened(&self) -> io::Result<Vec<String>> {
        let shown = self.admin(&["--op", "show", "--mode", "portal"])?;
        let portal = |line: &str| {
            let (portal, _) = line.strip_prefix("Portal: ")?.rsplit_once(',')?;
            Some(portal.to_owned())
        };
        Ok(shown.lines().filter_map(portal).collect())
    }

    /// Has it listen where it does not: it goes on where it can't.
    fn listen(&self) -> io::Result<()> {
        let listened = self.listened()?;
        let mut listens = Ok(());
        for portal in &self.portals {
            if !listened.contains(&portal.to_string()) {
                let param = format!("portal={portal}");
                let words = ["--op", "new", "--mode", "portal", "--param", &param];
                if self.admin(&words).is_err() {
                    let what = format!("tgtd at {portal}: {}", self.said());
                    listens = listens.and(Err(io::Error::other(what)));
                }
            }
        }
        listens
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

    /// Makes a target beside these, offline; its number.
    fn add(&self, name: &Name, beside: &[Shown]) -> io::Result<u32> {
        let free = (1..).find(|number| beside.iter().all(|known| known.number != *number));
        let number = free.unwrap_or(1).to_string();
        let of = ["--mode", "target", "--tid", &number];
        self.admin(&[&["--op", "new"], &of[..], &["-T", name.as_str()]].concat())?;
        self.admin(&[&["--op", "update"], &of[..], &["-n", "state", "-v", "offline"]].concat())?;
        Ok(free.unwrap_or(1))
    }

    /// Ends all sessions of a target, and leaves nothing of it but its name.
    fn empty(&self, known: &Shown) -> io::Result<()> {
        let number = known.number.to_string();
        let admin = |op: &str, mode: &str, words: &[&str]| {
            let all = [&["--op", op, "--mode", mode, "--tid", &number][..], words].concat();
            self.admin(&all).map(drop)
        };
        admin("update", "target", &["-n", "state", "-v", "offline"])?;
        for (session, connection) in &known.connections {
            // It may have gone by itself.
            let _ = admin("delete", "conn", &["--sid", session, "--cid", connection]);
        }
        if !known.path.is_empty() {
            // What is under way ends first.
            let end = Instant::now() + COMES;
            while let Err(error) = admin("delete", "logicalunit", &["--lun", &UNIT.to_string()]) {
                if Instant::now() > end {
                    return Err(error);
                }
                std::thread::sleep(LOOK);
            }
        }
        for initiator in &known.access {
            admin("unbind", "target", &["-Q", initiator])?;
        }
        for user in &known.accounts {
            admin("unbind", "account", &["--user", user])?;
            // What a process leaves of these that ends here goes before they are told anew.
            self.forget(user)?;
        }
        Ok(())
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
        self.folder.join(format!("{}.accounts", target.identity.target))
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

    /// Gives a target all that it is to have, beside these, and makes it ready.
    fn fill(&self, number: u32, target: &Target, beside: &[Shown]) -> io::Result<()> {
        let (number, unit) = (number.to_string(), UNIT.to_string());
        let path = target.path.to_str().filter(|path| !path.contains(','));
        let path = path.ok_or_else(|| io::Error::other("tgtd takes no such path of a file"))?;
        let block = target.block_bytes.to_string();
        let admin = |op: &str, mode: &str, words: &[&str]| {
            let all = [&["--op", op, "--mode", mode, "--tid", &number][..], words].concat();
            self.admin(&all)
        };
        let words = ["--lun", &unit, "-b", path, "--bstype", "rdwr", "--blocksize", &block];
        admin("new", "logicalunit", &words)?;
        let (serial, naa) = (&target.identity.serial, &target.identity.naa);
        let params = format!(
            "vendor_id={VENDOR},product_id={PRODUCT},scsi_id={naa},scsi_sn={serial},\
             thin_provisioning=1"
        );
        admin("update", "logicalunit", &["--lun", &unit, "--params", &params])?;
        for account in target.accounts() {
            let is_own = |known: &&Shown| known.name == target.identity.target.as_str();
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
        admin("update", "target", &["-n", "state", "-v", "ready"]).map(drop)
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

/// A target, as `tgtadm` shows it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Shown {
    number: u32,
    name: String,
    is_ready: bool,
    /// Who has logged in.
    sessions: Vec<String>,
    /// Their connections: a session's number, and its own.
    connections: Vec<(String, String)>,
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
        let (mut part, mut unit, mut session) = (String::new(), String::new(), String::new());
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
                "System information:" => own.is_ready |= value("State:") == Some("ready"),
                "I_T nexus information:" => {
                    if let Some(number) = value("I_T nexus:") {
                        number.clone_into(&mut session);
                    }
                    if let Some(number) = value("Connection:") {
                        own.connections.push((session.clone(), number.to_owned()));
                    }
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
        self.is_ready
            && all(&self.access) == target.allowed().map(ToString::to_string).collect()
            && all(&self.accounts) == target.accounts().map(|own| own.user().to_owned()).collect()
            && Path::new(&self.path) == target.path
            && self.serial == target.identity.serial
    }
}

#[cfg(test)]
#[path = "tgt_tests.rs"]
mod tests;

//! File shares of a volume: its file system, and the servers that give it to clients.
//!
//! A file system is *not made* (nobody has been let in: it may be made over and over) → *made*
//! (whoever asked for it has said that it knows) → *mounted* → *served*. It is not made again once
//! it may be mounted.
//!
//! | in the file system | what                                                                 |
//! |--------------------|----------------------------------------------------------------------|
//! | `shares/NAME`      | the files of a share                                                 |
//! | `state/`           | for root alone: [`Kept`], Samba's private directory, what clients of |
//! |                    | NFS have open: all of it moves with the volume                       |
//!
//! Servers are Samba ([`smb`]) and NFS-Ganesha ([`nfs`]), private instances of one file system
//! each, with their files in a folder beside. They go on when this process ends.
//!
//! | what is wanted     | what is there                        | what is done                  |
//! |--------------------|--------------------------------------|-------------------------------|
//! | a file system      | not made, and nothing on the device  | it is made                    |
//! | a file system      | not made, and something there        | nothing, unless that may go   |
//! | shares             | made, not mounted                    | it is mounted                 |
//! | shares             | mounted from another device, or dead | its servers end, and the same |
//! | shares             | mounted                              | servers are as it is wanted   |
//! | a rest, or an end  | servers, and a mount                 | servers end, it is unmounted  |
//!
//! Invariants
//! - Nothing of a client's is lost by making a file system: one that was mounted for clients is
//!   not made again.
//! - Servers have ended before their file system is unmounted.
//! - A secret stands in no command line, and nowhere outside the file system and the server's
//!   folder, which is root's alone.
//! - Health is what a client is told: shares are asked by their protocol.

mod ask_nfs;
mod clients;
mod config;
pub mod filesystem;
mod instance;
mod kept;
pub mod names;
pub mod nfs;
mod program;
pub mod smb;
pub mod system;

pub use clients::of as clients;
pub use filesystem::Type;
pub use kept::{GROUP, Kept, User};
pub use names::{Network, ShareName, UserName};

use filesystem::{Held, Mounted};
use rustix::fs::{Gid, Uid, chown};
use rustix::process::Pid;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use system::{gone, open_to_users, private};

/// The ports of both protocols (IANA, "Service Name and Transport Protocol Port Number Registry").
pub const SMB_PORT: u16 = 445;
/// See [`SMB_PORT`].
pub const NFS_PORT: u16 = 2049;

/// What says that a file system is being made that was allowed to be, and that it was made: of
/// which volume.
const MAKING: &str = "making";
/// See [`MAKING`].
const MADE: &str = "made";
/// Who may do what with the folder of a share, as it is made: its users; and besides, others may
/// read it over NFS.
const OF_SMB: u32 = 0o2770;
/// See [`OF_SMB`].
const OF_NFS: u32 = 0o2775;
/// Bytes of a Unix socket's path at most (unix(7): 108 with the zero).
const SOCKET_PATH_MAX: usize = 107;
/// What says for how large a device a file system was grown.
const GROWN: &str = "grown";

/// What is to be there of a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// What the volume is called.
    pub of: String,
    /// Its file system is to be made.
    pub make: Option<Make>,
    /// Where SMB is to be reached.
    pub smb: SocketAddr,
    /// Where NFS is to be reached.
    pub nfs: SocketAddr,
    /// The shares.
    pub shares: Vec<Share>,
}

/// How a file system is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Make {
    /// Which.
    pub kind: Type,
    /// Whatever is there may go.
    pub overwrite: bool,
}

/// A share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// What it is called.
    pub name: ShareName,
    /// By SMB.
    pub is_smb: bool,
    /// By NFS.
    pub is_nfs: bool,
    /// Nobody may write.
    pub is_read_only: bool,
    /// Who may have it by SMB, and whether only to read; all users, if it names none.
    pub users: Vec<(UserName, bool)>,
    /// Who may have it by NFS, and whether only to read.
    pub clients: Vec<(Network, bool)>,
}

/// What came of it.
#[derive(Debug)]
pub enum Told {
    /// Its file system is made: it is mounted once that is known.
    Made,
    /// Its device holds something, which stays: what.
    Holds(String),
    /// It is served.
    Served(Box<Served>),
}

/// How a file system is that is served.
#[derive(Debug)]
pub struct Served {
    /// Which it is, as the kernel calls it.
    pub name: String,
    /// Nothing can be written.
    pub is_read_only: bool,
    /// Why it is not as large as its device.
    pub note: Option<String>,
    /// Its bytes.
    pub size: u64,
    /// Those of them that are used.
    pub used: u64,
    /// Its users.
    pub users: Vec<User>,
    /// How it is by SMB.
    pub smb: Option<ServerIs>,
    /// How it is by NFS.
    pub nfs: Option<ServerIs>,
}

/// How a server is.
#[derive(Debug, Default)]
pub struct ServerIs {
    /// Which it is.
    pub version: String,
    /// Who has a connection to it.
    pub clients: Vec<IpAddr>,
    /// Why none of its shares can be had.
    pub problem: Option<String>,
    /// Why one can't be had.
    pub problems: BTreeMap<ShareName, String>,
    /// Its main process.
    pub process: Option<Pid>,
}

/// What changes of a user.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// It comes, with a password.
    Add(&'a str),
    /// It has another password.
    Password(&'a str),
    /// It goes.
    Delete,
}

/// Where a volume's file system is: an export, and the folder of the process that has it.
pub struct Place<'a> {
    folder: &'a Path,
    id: &'a str,
}

impl<'a> Place<'a> {
    /// Of the export with this id, in this folder.
    pub const fn new(folder: &'a Path, id: &'a str) -> Self {
        Self { folder, id }
    }

    /// Where servers have their files.
    fn servers(&self) -> PathBuf {
        self.folder.join(format!("{}.shares", self.id))
    }

    /// The folder of all mounts, and of locks: beside that of the process, which nobody else may
    /// enter. Users of shares may.
    fn mounts(&self) -> PathBuf {
        let mut name = self.folder.as_os_str().to_owned();
        name.push(".shares");
        name.into()
    }

    /// Where the file system is mounted.
    pub fn at(&self) -> PathBuf {
        self.mounts().join(self.id)
    }

    /// Samba's directory of locks.
    fn locks(&self) -> PathBuf {
        self.mounts().join(format!("{}.locks", self.id))
    }

    fn smb<'u>(&self, users: &'u [User]) -> smb::Server<'u> {
        let folders = [self.servers().join("smb"), self.locks()];
        smb::Server::new(folders, &self.at().join("state"), users)
    }

    fn nfs(&self) -> nfs::Server {
        nfs::Server::new(self.servers().join("nfs"), &self.at().join("state"))
    }

    /// Makes of what is there what is wanted, over a device of so many bytes.
    ///
    /// # Errors
    /// It can't be; a server that can't serve is told in what is served.
    pub fn serve(&self, wanted: &Wanted, device: (&Path, u64)) -> io::Result<Told> {
        private(&self.servers())?;
        let [making, made] = [MAKING, MADE].map(|name| self.servers().join(name));
        if let Some(make) = wanted.make {
            if filesystem::mounted(&self.at())?.is_some() {
                return Err(io::Error::other("its file system is in use, and not made again"));
            }
            let is = |mark: &Path| std::fs::read(mark).is_ok_and(|of| of == wanted.of.as_bytes());
            if is(&made) && filesystem::held(device.0)? == Held::Filesystem(make.kind) {
                return Ok(Told::Made);
            }
            // What is there of one that was about to be made is its.
            if !make.overwrite && !is(&making) {
                match filesystem::held(device.0)? {
                    Held::Nothing => std::fs::write(&making, &wanted.of)?,
                    held => return Ok(Told::Holds(held.words())),
                }
            }
            filesystem::make(device.0, make.kind)?;
            std::fs::write(&made, &wanted.of)?;
            return Ok(Told::Made);
        }
        gone(std::fs::remove_file(&made))?;
        gone(std::fs::remove_file(&making))?;
        let (mounted, note) = self.mount(device)?;
        let kept = self.keep(wanted)?;
        let clients = clients::all().unwrap_or_default();
        let smb = self.serve_smb(wanted, &kept, &clients);
        let nfs = self.serve_nfs(wanted, &kept, &clients);
        let (size, used) = filesystem::space(&self.at())?;
        Ok(Told::Served(Box::new(Served {
            name: mounted.name,
            is_read_only: mounted.is_read_only,
            note,
            size,
            used,
            users: kept.users().to_vec(),
            smb,
            nfs,
        })))
    }

    /// Whether Samba's sockets have paths that they may have: its processes have one each beside
    /// the locks, and end without a word where they can't.
    fn is_short(&self) -> io::Result<()> {
        let most = std::fs::read_to_string("/proc/sys/kernel/pid_max")?;
        let socket = self.locks().join("msg.sock").join(most.trim());
        let over = socket.as_os_str().len().saturating_sub(SOCKET_PATH_MAX);
        if over == 0 {
            return Ok(());
        }
        let (folder, samba) =
            (self.folder.display(), "Samba's sockets have too long paths below it");
        let what =
            format!("{folder}: {samba}; name a directory with {over} bytes less as `services`");
        Err(io::Error::other(what))
    }

    /// Has the file system mounted, alive, and as large as its device; else why it is not that.
    fn mount(&self, (device, bytes): (&Path, u64)) -> io::Result<(Mounted, Option<String>)> {
        let at = self.at();
        let mut mounted = filesystem::mounted(&at)?;
        mounted = mounted.filter(|own| own.device == device && self.is_alive());
        if mounted.is_none() {
            self.rest()?;
            let kind = match filesystem::held(device)? {
                Held::Filesystem(kind) => kind,
                held => {
                    let what = format!("it holds {}, and no file system to share", held.words());
                    return Err(io::Error::other(what));
                }
            };
            open_to_users(&self.mounts())?;
            is_reached(&self.mounts())?;
            private(&at)?;
            filesystem::mount_at(device, kind, &at)?;
            mounted = filesystem::mounted(&at)?;
        }
        let mounted = mounted.ok_or(ErrorKind::NotFound)?;
        let grown = self.servers().join(GROWN);
        let size = format!("{} {bytes}", device.display());
        if std::fs::read_to_string(&grown).ok().as_ref() == Some(&size) {
            return Ok((mounted, None));
        }
        // Clients go on with what there is.
        let why = match filesystem::grow(&mounted, &at) {
            Ok(()) => std::fs::write(&grown, size).map(|()| None)?,
            Err(why) => Some(format!("it can't be made as large as its volume: {why}")),
        };
        Ok((mounted, why))
    }

    /// Whether the file system can be read that is mounted: one whose device had an error may have
    /// shut down.
    fn is_alive(&self) -> bool {
        let is_there = |error: io::Error| error.kind() == ErrorKind::NotFound;
        let read = |name: &str| {
            let mut byte = [0];
            std::fs::File::open(self.at().join(name)).and_then(|mut file| file.read(&mut byte))
        };
        read("state/shares.toml").map_or_else(is_there, |_| true)
    }

    /// Has folders and numbers there that shares need.
    fn keep(&self, wanted: &Wanted) -> io::Result<Kept> {
        let at = self.at();
        std::fs::set_permissions(&at, std::fs::Permissions::from_mode(0o755))?;
        for (name, mode) in [("shares", 0o755), ("state", 0o700)] {
            folder(&at.join(name), mode)?;
        }
        let state = at.join("state");
        let mut kept = Kept::read(&state)?;
        let mut is_new = !state.join("shares.toml").exists();
        for share in &wanted.shares {
            let path = at.join("shares").join(share.name.as_str());
            // Clients of NFS are of other groups.
            let mode = if share.is_nfs { OF_NFS } else { OF_SMB };
            if folder(&path, mode)? {
                chown(&path, Some(Uid::ROOT), Some(Gid::from_raw(GROUP)))?;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
            }
            if share.is_nfs {
                open_to_nfs(&path)?;
            }
            is_new |= kept.number(&share.name)?.1;
        }
        if is_new {
            kept.write(&state)?;
        }
        Ok(kept)
    }

    fn path_of(&self, share: &Share) -> PathBuf {
        self.at().join("shares").join(share.name.as_str())
    }

    fn serve_smb(
        &self,
        wanted: &Wanted,
        kept: &Kept,
        clients: &[(u16, IpAddr)],
    ) -> Option<ServerIs> {
        let server = self.smb(kept.users());
        let share = |share: &Share| smb::Share {
            name: share.name.clone(),
            path: self.path_of(share),
            is_read_only: share.is_read_only,
            users: share.users.clone(),
            is_of_nfs: share.is_nfs,
        };
        let shares: Vec<_> = wanted.shares.iter().filter(|own| own.is_smb).map(share).collect();
        if shares.is_empty() {
            return self.ended("smb", || server.end());
        }
        let own = smb::Smb { address: wanted.smb, shares };
        let serve = || self.is_short().and_then(|()| server.serve(&own));
        let asked = || serve().and_then(|()| server.ask(&own));
        let version = self.version("smb", smb::version);
        Some(told(clients::to(wanted.smb.port(), clients), version, asked, || server.process()))
    }

    fn serve_nfs(
        &self,
        wanted: &Wanted,
        kept: &Kept,
        clients: &[(u16, IpAddr)],
    ) -> Option<ServerIs> {
        let server = self.nfs();
        let share = |share: &Share| {
            Some(nfs::Share {
                name: share.name.clone(),
                number: kept.known(&share.name)?,
                path: self.path_of(share),
                is_read_only: share.is_read_only,
                clients: share.clients.clone(),
            })
        };
        // All have numbers by now.
        let shares = wanted.shares.iter().filter(|own| own.is_nfs).filter_map(share);
        let shares: Vec<_> = shares.collect();
        if shares.is_empty() {
            return self.ended("nfs", || server.end());
        }
        let own = nfs::Nfs { address: wanted.nfs, shares };
        let asked = || server.serve(&own).and_then(|()| server.ask(&own));
        let version = self.version("nfs", nfs::version);
        Some(told(clients::to(wanted.nfs.port(), clients), version, asked, || server.process()))
    }

    /// Has a server end that is wanted no more.
    fn ended(&self, name: &str, end: impl FnOnce() -> io::Result<()>) -> Option<ServerIs> {
        if !self.servers().join(name).exists() {
            return None;
        }
        let why = end().err()?;
        Some(ServerIs { problem: Some(why.to_string()), ..ServerIs::default() })
    }

    /// Which server there is, as it was when it was asked first.
    fn version(&self, name: &str, ask: impl FnOnce() -> io::Result<String>) -> String {
        let path = self.servers().join(format!("{name}.version"));
        if let Ok(known) = std::fs::read_to_string(&path) {
            return known;
        }
        let version = ask().unwrap_or_default();
        if !version.is_empty() {
            // It is asked again.
            let _ = std::fs::write(path, &version);
        }
        version
    }

    /// Changes a user.
    ///
    /// # Errors
    /// It can't be: why.
    pub fn change(&self, name: &UserName, change: Change<'_>) -> io::Result<Vec<User>> {
        let state = self.at().join("state");
        if filesystem::mounted(&self.at())?.is_none() {
            return Err(io::Error::other("its file system is not mounted"));
        }
        let mut kept = Kept::read(&state)?;
        match (change, kept.has(name)) {
            (Change::Add(_), true) => return Err(io::Error::other("there is such a user already")),
            (Change::Password(_) | Change::Delete, false) => {
                return Err(io::Error::other("there is no such user"));
            }
            (Change::Add(password), false) => {
                kept.add(name)?;
                // A user that has no password is let in nowhere.
                kept.write(&state)?;
                let set = self.smb(kept.users()).set_password(name, password);
                if set.is_err() {
                    kept.remove(name);
                    kept.write(&state)?;
                }
                set?;
            }
            (Change::Password(password), true) => {
                let smb = self.smb(kept.users());
                smb.set_password(name, password)?;
                smb.close_sessions(name)?;
            }
            (Change::Delete, true) => {
                let smb = self.smb(kept.users());
                smb.forget(name)?;
                smb.close_sessions(name)?;
                kept.remove(name);
                kept.write(&state)?;
            }
        }
        Ok(kept.users().to_vec())
    }

    /// Ends servers, and unmounts the file system: whoever else uses it goes on with what is there
    /// no more.
    ///
    /// # Errors
    /// It can't be.
    pub fn rest(&self) -> io::Result<()> {
        self.end_servers()?;
        match filesystem::unmount_at(&self.at()) {
            Err(_) => filesystem::detach_at(&self.at()),
            well => well,
        }
    }

    /// Ends servers, and unmounts the file system, unless somebody of this machine uses it.
    ///
    /// # Errors
    /// Somebody does, or it can't be.
    pub fn leave(&self) -> io::Result<()> {
        self.end_servers()?;
        filesystem::unmount_at(&self.at()).map_err(|error| match error.kind() {
            ErrorKind::ResourceBusy => {
                io::Error::other(format!("a process of this machine uses {}", self.at().display()))
            }
            _ => error,
        })?;
        self.clear()
    }

    /// Ends all that is there, whoever uses it.
    ///
    /// # Errors
    /// It can't be.
    pub fn end(&self) -> io::Result<()> {
        self.rest()?;
        self.clear()
    }

    fn end_servers(&self) -> io::Result<()> {
        if !self.servers().exists() {
            return Ok(());
        }
        self.smb(&[]).end()?;
        self.nfs().end()
    }

    /// Removes what was made for it: folders are empty by now.
    fn clear(&self) -> io::Result<()> {
        gone(std::fs::remove_dir_all(self.servers()))?;
        for path in [self.at(), self.mounts()] {
            // That of all mounts stays while it has others.
            let _ = std::fs::remove_dir(path);
        }
        Ok(())
    }
}

/// How a server is that was asked.
fn told(
    clients: Vec<IpAddr>,
    version: String,
    asked: impl FnOnce() -> io::Result<BTreeMap<ShareName, String>>,
    process: impl FnOnce() -> io::Result<Option<Pid>>,
) -> ServerIs {
    let mut own = ServerIs { version, clients, ..ServerIs::default() };
    match asked() {
        Ok(problems) => own.problems = problems,
        Err(why) => own.problem = Some(why.to_string()),
    }
    own.process = process().ok().flatten();
    own
}

/// Whether users of shares come to a folder through those above it: who serves them does so in
/// their name.
fn is_reached(path: &Path) -> io::Result<()> {
    for above in path.ancestors().skip(1) {
        let about = std::fs::metadata(above)?;
        let is_open =
            about.mode() & 0o001 != 0 || about.gid() == GROUP && about.mode() & 0o010 != 0;
        if !is_open {
            let (at, mode) = (above.display(), about.mode() & 0o7777);
            let text = format!(
                "users of shares can't come to {}: {at} is closed to them (mode {mode:04o})",
                path.display()
            );
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

/// Lets clients of NFS into the folder of a share that was by SMB alone, unless somebody has said
/// otherwise since.
fn open_to_nfs(path: &Path) -> io::Result<()> {
    let about = std::fs::symlink_metadata(path)?;
    let is_as_made = about.uid() == 0 && about.gid() == GROUP;
    if is_as_made && about.mode() & 0o7777 == OF_SMB {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(OF_NFS))?;
    }
    Ok(())
}

/// Makes a folder of a file system; whether it was not there. What is there that is none stays.
fn folder(path: &Path, mode: u32) -> io::Result<bool> {
    match std::fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => return other.map(|()| true),
    }
    match std::fs::symlink_metadata(path)?.is_dir() {
        true => Ok(false),
        false => Err(io::Error::other(format!("{} is no directory", path.display()))),
    }
}

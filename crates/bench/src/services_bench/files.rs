//! Reads of a file in requests of 1 MiB through a share: `share create` of a volume with a file
//! system, beside the same server with the same configuration over a folder in memory (tmpfs).
//!
//! Before each turn what the page cache has of the file is dropped (posix_fadvise(2)), so that a
//! volume's is read from its drives: that this is so is seen once, and so is that clients read what
//! is in the file. A file in memory stays there. SMB is read by smbclient, which has several
//! requests under way and tells how long they took; NFS by nfs-cat, one after the other, whose time
//! is taken from its start to its end. CPU time is that of smbd or Ganesha with all their
//! processes, and the daemon's besides where a volume is read; not counted is the kernel's own for
//! the loop device.

use super::clients::{FILE, Reader, SHARE};
use super::place::{Place, USER, fill, free_port, system};
use super::{Beside, Compared, Run, Side};
use crate::error::BenchError;
use crate::remote::process::failed;
use rustix::fs::{Advice, Gid, Uid, chown, fadvise};
use shares::nfs::{self, Nfs};
use shares::smb::{self, Smb};
use shares::{GROUP, ShareName, User, UserName};
use std::fs::{File, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::MIB;

/// What a file system takes for itself of its volume.
const ROOM: u64 = 64 * MIB;
const SMB: Compared = Compared { name: "smb-1m-read", goal: 0.7, bytes: Some(MIB) };
const NFS: Compared = Compared { name: "nfs-1m-read", goal: 0.7, bytes: Some(MIB) };
/// Whom shares of NFS let in.
const CLIENTS: &str = "127.0.0.0/8";

/// Drops what the page cache has of a file.
fn forget(path: &Path) -> Result<(), BenchError> {
    let dropped = File::open(path).and_then(|file| Ok(fadvise(&file, 0, None, Advice::DontNeed)?));
    dropped.map_err(system(path))
}

/// Writes the file of a share, which all may read; its path.
fn write(folder: &Path, bytes: u64) -> Result<PathBuf, BenchError> {
    let path = folder.join(FILE);
    let written = File::create_new(&path).and_then(|file| {
        fill(&file, bytes)?;
        file.set_permissions(Permissions::from_mode(0o644))?;
        file.sync_all()
    });
    written.map_err(system(&path))?;
    Ok(path)
}

/// A share of a volume with the file in it; the file.
fn share(place: &Place, bytes: u64, words: &[&str]) -> Result<PathBuf, BenchError> {
    let volume = place.volume("files", bytes + bytes / 8 + ROOM)?;
    let own = ["share", "create", SHARE, "--volume", &volume, "--format", "ext4"];
    place.command(&[&own[..], words].concat())?;
    write(&place.shared(SHARE)?, bytes)
}

/// A folder in memory with the file in it.
struct Memory {
    folder: Beside,
    path: PathBuf,
    file: PathBuf,
}

impl Memory {
    fn make(place: &Place, name: &str, bytes: u64) -> Result<Self, BenchError> {
        let folder = Beside::make(place.file(name))?;
        let path = folder.file("files");
        let made = std::fs::create_dir(&path).and_then(|()| {
            chown(&path, Some(Uid::ROOT), Some(Gid::from_raw(GROUP)))?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o2775))
        });
        made.map_err(system(&path))?;
        let file = write(&path, bytes)?;
        Ok(Self { folder, path, file })
    }

    fn name() -> Result<ShareName, BenchError> {
        ShareName::new(SHARE).map_err(|error| failed("a name", &error))
    }

    fn smb<'u>(&self, users: &'u [User]) -> smb::Server<'u> {
        let folders = ["smb", "locks"].map(|name| self.folder.file(name));
        smb::Server::new(folders, &self.folder.file("state"), users)
    }

    fn nfs(&self) -> nfs::Server {
        nfs::Server::new(self.folder.file("nfs"), &self.folder.file("state"))
    }

    /// Has it served by SMB at an address.
    fn serve_smb(&self, at: SocketAddr, password: &str) -> Result<u32, BenchError> {
        let user = User { name: USER.to_owned(), uid: GROUP + 1 };
        let name = UserName::new(USER).map_err(|error| failed("a name", &error))?;
        let users = [user];
        let server = self.smb(&users);
        let share = smb::Share {
            name: Self::name()?,
            path: self.path.clone(),
            is_read_only: false,
            users: Vec::new(),
            is_of_nfs: false,
        };
        let wanted = Smb { address: at, shares: vec![share] };
        let served = server.serve(&wanted).and_then(|()| server.set_password(&name, password));
        served.map_err(|error| failed("smbd", &error))?;
        process("smbd", server.process())
    }

    /// Has it served by NFS at an address.
    fn serve_nfs(&self, at: SocketAddr) -> Result<u32, BenchError> {
        let clients = CLIENTS.parse().map_err(|error| failed("addresses", &error))?;
        let server = self.nfs();
        let share = nfs::Share {
            name: Self::name()?,
            number: 1,
            path: self.path.clone(),
            is_read_only: false,
            clients: vec![(clients, false)],
        };
        let served = server.serve(&Nfs { address: at, shares: vec![share] });
        served.map_err(|error| failed("ganesha.nfsd", &error))?;
        process("ganesha.nfsd", server.process())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for ended in [self.smb(&[]).end(), self.nfs().end()] {
            if let Err(error) = ended {
                eprintln!("palisade: a server that was compared with: {error}");
            }
        }
    }
}

fn process(
    what: &'static str,
    found: std::io::Result<Option<rustix::process::Pid>>,
) -> Result<u32, BenchError> {
    let found = found.map_err(|error| failed(what, &error))?;
    let id = found.ok_or_else(|| failed(what, &"it has ended"))?;
    Ok(id.as_raw_nonzero().get().unsigned_abs())
}

/// A side: a file, who reads it, and who serves it.
fn side<'a>(
    name: &'static str,
    (reader, file): (&'a Reader, &'a Path),
    servers: Vec<u32>,
    bytes: u64,
) -> Side<'a> {
    let read = move |_: Duration| {
        forget(file)?;
        reader.read(bytes)
    };
    Side { name, servers, read: Box::new(read) }
}

/// Compares a file of a volume with one in memory.
fn compare(
    (run, place, what): (&mut Run<'_>, &Place, &Compared),
    (own, file, servers): (&Reader, &Path, Vec<u32>),
    (other, memory, server): (&Reader, &Memory, u32),
) -> Result<(), BenchError> {
    let bytes = run.options.bytes;
    let scratch = place.file("scratch");
    other.is_right(&memory.file, &scratch)?;
    forget(file)?;
    own.is_right(file, &scratch)?;
    place.is_read_from_drives(bytes, || {
        forget(file)?;
        own.read(bytes).map(drop)
    })?;
    let a = side("memory", (other, &memory.file), vec![server], bytes);
    let servers = [vec![place.daemon()], servers].concat();
    let b = side("volume", (own, file), servers, bytes);
    run.compare(what, a, b)
}

/// Measures SMB.
pub fn measure_smb(run: &mut Run<'_>, place: &Place) -> Result<(), BenchError> {
    let (at, beside, bytes) = (free_port()?, free_port()?, run.options.bytes);
    let file = share(place, bytes, &["--smb", "--smb-listen", &at.to_string()])?;
    place.add_user()?;
    let memory = Memory::make(place, "memory-smb", bytes)?;
    let server = memory.serve_smb(beside, place.password())?;
    let account = memory.folder.file("account");
    let own = Reader::smb(at, account, place.password())?;
    let other = own.at(beside);
    let servers = place.servers("smbd")?;
    compare((run, place, &SMB), (&own, &file, servers), (&other, &memory, server))
}

/// Measures NFS.
pub fn measure_nfs(run: &mut Run<'_>, place: &Place) -> Result<(), BenchError> {
    let (at, beside, bytes) = (free_port()?, free_port()?, run.options.bytes);
    let listen = at.to_string();
    let words = ["--nfs", "--nfs-listen", &listen, "--nfs-client", CLIENTS];
    let file = share(place, bytes, &words)?;
    let memory = Memory::make(place, "memory-nfs", bytes)?;
    let server = memory.serve_nfs(beside)?;
    let own = Reader::Nfs(at);
    let other = own.at(beside);
    let servers = place.servers("ganesha.nfsd")?;
    compare((run, place, &NFS), (&own, &file, servers), (&other, &memory, server))
}

//! The mounts of this machine's files: what is mounted, and mounting files of ours.
//!
//! A file of ours is a FUSE file system of one file, mounted over a file (fuse(4)). Its source says
//! whose it is: `palisade:ID@FOLDER`, the export's id and the folder of the process that made it.
//! Others can mount what says so, too: but of those that only root can mount, `user_id` is 0.

use crate::lock;
use crate::wire::FileLook;
use ::shares::filesystem::{self, Line};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What the source of a mount of ours begins with.
const SOURCE: &str = "palisade:";
/// What the kernel calls such a file system.
const KIND: &str = "fuse.palisade";
const DEVICE: &str = "/dev/fuse";
/// Where no volume is mounted: the system trusts what is there.
const SYSTEM: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr",
];
/// But for this, which is nobody's.
const SHARED_MEMORY: &str = "/dev/shm";

/// Held from when it is known that nothing is at a path until it is mounted.
static MOUNTING: Mutex<()> = Mutex::new(());

/// A mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// The export's id, if it is ours.
    pub id: Option<String>,
    /// Over which file.
    pub path: PathBuf,
}

/// What the kernel listed for a process that has this folder.
struct Listed {
    /// By this it tells that something has changed since (proc(5), `mountinfo`).
    file: File,
    folder: PathBuf,
    all: Arc<[Mounted]>,
}

/// What it listed last: each export's thread asks for it.
static LISTED: Mutex<Option<Listed>> = Mutex::new(None);

impl Listed {
    fn read(folder: &Path) -> io::Result<Self> {
        let (mut file, mut text) = (File::open("/proc/self/mountinfo")?, Vec::new());
        file.read_to_end(&mut text)?;
        let lines = text.split(|byte| *byte == b'\n');
        let all = lines.filter_map(|line| parse(line, folder)).collect();
        Ok(Self { file, folder: folder.to_owned(), all })
    }

    /// Whether it is as the kernel would list it now.
    fn is_new(&self, folder: &Path) -> bool {
        let mut asked = [PollFd::new(&self.file, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.folder == folder && poll(&mut asked, Some(&at_once)) == Ok(0)
    }
}

/// All mounts, as the kernel lists them: of those over one path the last is on top.
///
/// # Errors
/// They can't be read.
pub fn all(folder: &Path) -> io::Result<Arc<[Mounted]>> {
    renew(&mut lock(&LISTED), folder, Listed::read)
}

/// What was listed last, if that is as it would be now; else what is read.
fn renew(
    listed: &mut Option<Listed>,
    folder: &Path,
    read: impl FnOnce(&Path) -> io::Result<Listed>,
) -> io::Result<Arc<[Mounted]>> {
    // That something has changed is told once: a list that is old is gone, if the next can't be
    // read, too.
    let known = listed.take().filter(|known| known.is_new(folder));
    // What is read now may be older than what changes meanwhile: that is told by the file.
    let own = known.map_or_else(|| read(folder), Ok)?;
    Ok(listed.insert(own).all.clone())
}

/// Whether a file is on top of its path by a process of this program, whichever.
///
/// # Errors
/// Mounts can't be read.
pub fn is_ours(path: &Path) -> io::Result<bool> {
    let folder = path.parent().unwrap_or(path);
    let all = all(folder)?;
    let top = all.iter().rfind(|mounted| mounted.path == path);
    Ok(top.is_some_and(|mounted| mounted.id.is_some()))
}

/// The number of the mount that is on top of a path, as `/proc/PID/fdinfo` has it. Who serves what
/// is mounted there is not asked.
///
/// # Errors
/// There is no such path.
pub fn number(path: &Path) -> io::Result<u64> {
    /// `STATX_MNT_ID` (statx(2)).
    const NUMBER: StatxFlags = StatxFlags::from_bits_retain(0x1000);
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    Ok(rustix::fs::statx(rustix::fs::CWD, path, flags, NUMBER)?.stx_mnt_id)
}

/// A line of `/proc/PID/mountinfo` (proc(5)); a mount is ours if it is of the process that has
/// this folder.
fn parse(line: &[u8], folder: &Path) -> Option<Mounted> {
    let Line { path, kind, source, options } = filesystem::line(line)?;
    let is_roots = options.split(|byte| *byte == b',').any(|option| option == b"user_id=0");
    let id = String::from_utf8(source).ok().and_then(|source| {
        let (id, own) = source.strip_prefix(SOURCE)?.split_once('@')?;
        (kind == KIND && is_roots && Path::new(own) == folder).then(|| id.to_owned())
    });
    Some(Mounted { id, path })
}

/// Whether the mount on top of a path is that of an export.
///
/// # Errors
/// Mounts can't be read.
pub fn is_on_top(path: &Path, id: &str, folder: &Path) -> io::Result<bool> {
    let all = all(folder)?;
    let top = all.iter().rfind(|mounted| mounted.path == path);
    Ok(top.is_some_and(|mounted| mounted.id.as_deref() == Some(id)))
}

/// A path with links resolved, but for what it names itself, which need not be there.
///
/// # Errors
/// Its folder is not there, or no volume is mounted there.
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let own = folder.canonicalize()?.join(name);
    let is_systems = SYSTEM.iter().any(|folder| own.starts_with(folder));
    if is_systems && !own.starts_with(SHARED_MEMORY) {
        return Err(io::Error::other("it is in a directory of the system"));
    }
    Ok(own)
}

/// A file that something can be mounted over.
struct Target {
    file: File,
    /// It was made for that.
    is_new: bool,
}

/// Takes the empty file at a path, or makes one; what a link leads to is none.
fn target(path: &Path) -> io::Result<Target> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let new = flags | OFlags::CREATE | OFlags::EXCL;
    let (file, is_new) = match rustix::fs::open(path, new, Mode::RUSR | Mode::WUSR) {
        Ok(file) => (file, true),
        Err(Errno::EXIST) => (rustix::fs::open(path, flags, Mode::empty())?, false),
        Err(error) => return Err(error.into()),
    };
    let file = File::from(file);
    let about = file.metadata()?;
    if !about.is_file() || about.len() > 0 {
        return Err(io::Error::other("something is there; only an empty file is taken"));
    }
    Ok(Target { file, is_new })
}

impl Target {
    /// Whose file it is, and who may use it.
    fn look(&self) -> io::Result<FileLook> {
        let about = self.file.metadata()?;
        Ok(FileLook {
            uid: about.uid(),
            gid: about.gid(),
            mode: about.mode() & 0o777,
            seconds: about.mtime().unsigned_abs(),
        })
    }

    fn mount(&self, (id, folder): (&str, &Path), count: u16) -> io::Result<Vec<OwnedFd>> {
        let open = || -> io::Result<OwnedFd> {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            let error = |errno| io::Error::other(format!("{DEVICE}: {}", io::Error::from(errno)));
            rustix::fs::open(DEVICE, flags, Mode::empty()).map_err(error)
        };
        let (first, others) = (open()?, (1..count).map(|_| open()));
        let others = others.collect::<io::Result<Vec<_>>>()?;
        let data = format!(
            "fd={},rootmode=100600,user_id=0,group_id=0,allow_other,default_permissions,\
             max_read=1048576",
            first.as_raw_fd()
        );
        let data = CString::new(data)?;
        let source = [format!("{SOURCE}{id}@").as_bytes(), folder.as_os_str().as_bytes()].concat();
        let at = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(CString::new(source)?, at, KIND, flags, Some(&*data))?;
        let others = others.into_iter().map(|fresh| runtime::another(first.as_fd(), fresh));
        let mut all = others.collect::<io::Result<Vec<_>>>()?;
        all.push(first);
        Ok(all)
    }
}

/// What was mounted.
pub struct Fresh {
    /// What the file looks like.
    pub look: FileLook,
    /// By which it is asked.
    pub descriptors: Vec<OwnedFd>,
    /// The file below was made for it.
    pub is_new: bool,
}

/// Mounts the file of an export, which `(ID, FOLDER)` says, over what is at a path, or is made
/// there; it is asked by `count` descriptors.
///
/// # Errors
/// There is something else, or what the kernel says: nothing is mounted, and nothing made.
pub fn make(path: &Path, of: (&str, &Path), count: u16) -> io::Result<Fresh> {
    let _own = lock(&MOUNTING);
    let target = target(path)?;
    let outcome = target.look().and_then(|look| {
        let descriptors = target.mount(of, count)?;
        match is_on_top(path, of.0, of.1)? {
            true => Ok(Fresh { look, descriptors, is_new: target.is_new }),
            false => Err(io::Error::other("something else was mounted there meanwhile")),
        }
    });
    if outcome.is_err() {
        if is_on_top(path, of.0, of.1).unwrap_or(false) {
            let _ = detach(path);
        }
        if target.is_new {
            let _ = std::fs::remove_file(path);
        }
    }
    outcome
}

/// Unmounts what is at a path, if nobody uses it.
///
/// # Errors
/// Somebody does (`ResourceBusy`), or what the kernel says.
pub fn end(path: &Path) -> io::Result<()> {
    Ok(unmount(path, UnmountFlags::NOFOLLOW)?)
}

/// Unmounts it for all who come; who has it open goes on with what is not there any more.
///
/// # Errors
/// What the kernel says.
pub fn detach(path: &Path) -> io::Result<()> {
    Ok(unmount(path, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_ours_are_found_among_others() {
        let line = |at: &str, kind: &str, source: &str, user: u32| {
            format!("36 35 98:0 / {at} rw,noatime shared:1 - {kind} {source} rw,user_id={user}")
        };
        let parse = |line: &[u8]| parse(line, Path::new("/run/a b"));
        let same = r"palisade:u-7@/run/a\040b";
        let own = parse(line(r"/srv/a\040b\134c", KIND, same, 0).as_bytes());
        let known = Mounted { id: Some("u-7".into()), path: r"/srv/a b\c".into() };
        assert_eq!(own, Some(known));
        for other in [
            line("/a", KIND, "other", 0),
            line("/a", KIND, "palisade:u-7@/run/other", 0),
            line("/a", "fuse", same, 0),
            // A user of this machine says so.
            line("/a", KIND, same, 1000),
        ] {
            let other = parse(other.as_bytes()).expect("a mount");
            assert_eq!((other.id, other.path), (None, "/a".into()));
        }
        assert_eq!(parse(b""), None);
        assert!(parse(b"1 2 3:4 / /\xff rw - tmpfs \xfe rw").is_some_and(|own| own.id.is_none()));
    }

    #[test]
    fn a_list_that_is_old_is_gone_where_the_next_can_not_be_read() {
        let [one, other] = ["/run/one", "/run/other"].map(Path::new);
        let mut listed = None;
        renew(&mut listed, one, Listed::read).expect("read");
        let fails = |_: &Path| Err(io::Error::other("no descriptor is free"));
        renew(&mut listed, one, fails).expect("it is as it was");
        renew(&mut listed, other, fails).expect_err("not read");
        renew(&mut listed, one, fails).expect_err("nothing is known");
        renew(&mut listed, one, Listed::read).expect("read again");
    }

    #[test]
    fn only_an_empty_file_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        assert!(target(&at("new")).expect("made").is_new);
        let again = target(&at("new")).expect("empty");
        assert!(!again.is_new);
        assert_eq!(again.look().expect("known").mode, 0o600);
        std::fs::write(at("full"), "x").expect("written");
        std::os::unix::fs::symlink(at("new"), at("link")).expect("linked");
        for name in ["full", "link", "no/such", "."] {
            assert!(target(&at(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn paths_are_known_by_where_they_lead_and_the_system_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().canonicalize().expect("is there");
        std::os::unix::fs::symlink(&own, own.join("link")).expect("linked");
        std::os::unix::fs::symlink("/etc", own.join("etc")).expect("linked");
        assert_eq!(resolved(&own.join("link/v")).expect("there"), own.join("v"));
        assert_eq!(resolved(Path::new("/dev/shm/v")).expect("there"), Path::new("/dev/shm/v"));
        for path in [own.join("etc/passwd"), "/etc/cron.d/v".into(), own.join("no/v"), "/".into()] {
            assert!(resolved(&path).is_err(), "{}", path.display());
        }
    }
}

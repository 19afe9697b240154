//! The mounts of this machine's files: what is mounted, and mounting files of ours.
//!
//! A file of ours is a FUSE file system of one file, mounted over a file (fuse(4)). Its source says
//! whose it is: `palisade:ID@FOLDER`, the export's id and the folder of the process that made it.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the source of a mount of ours begins with.
const SOURCE: &str = "palisade:";
/// What the kernel calls such a file system.
const KIND: &str = "fuse.palisade";
const DEVICE: &str = "/dev/fuse";

/// A mount of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// The export's id.
    pub id: String,
    /// Over which file.
    pub path: PathBuf,
}

/// All mounts of the process that has this folder, as the kernel lists them.
///
/// # Errors
/// They can't be read.
pub fn all(folder: &Path) -> io::Result<Vec<Mounted>> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(text.lines().filter_map(|line| parse(line, folder)).collect())
}

/// A line of `/proc/PID/mountinfo` (proc(5)), if it is a mount of ours.
fn parse(line: &str, folder: &Path) -> Option<Mounted> {
    let (place, what) = line.split_once(" - ")?;
    let mut what = what.split(' ');
    let (kind, source) = (what.next()?, what.next()?);
    let source = unescaped(source);
    let (id, own) = source.strip_prefix(SOURCE)?.split_once('@')?;
    let (id, path) = (id.to_owned(), unescaped(place.split(' ').nth(4)?).into());
    (kind == KIND && Path::new(own) == folder).then_some(Mounted { id, path })
}

/// Space, tab, newline and backslash are three octal digits there.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 4).and_then(|own| core::str::from_utf8(own).ok());
        let code = digits.and_then(|own| u8::from_str_radix(own, 8).ok());
        match (bytes[at], code) {
            (b'\\', Some(code)) => {
                plain.push(code);
                at += 4;
            }
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// A file that something can be mounted over.
pub struct Target {
    file: File,
    /// It was made for that.
    pub is_new: bool,
}

/// Takes the empty file at a path, or makes one; what a link leads to is none.
///
/// # Errors
/// There is something else, or nothing can be made there.
pub fn target(path: &Path) -> io::Result<Target> {
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
    ///
    /// # Errors
    /// What the kernel says.
    pub fn look(&self) -> io::Result<crate::wire::FileLook> {
        let about = self.file.metadata()?;
        Ok(crate::wire::FileLook {
            uid: about.uid(),
            gid: about.gid(),
            mode: about.mode() & 0o777,
            seconds: about.mtime().unsigned_abs(),
        })
    }

    /// Mounts the file of an export over it, which `(ID, FOLDER)` says; answers with the `count`
    /// descriptors by which it is asked.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn mount(&self, (id, folder): (&str, &Path), count: u16) -> io::Result<Vec<OwnedFd>> {
        let open = || -> io::Result<OwnedFd> {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            let error = |errno| io::Error::other(format!("{DEVICE}: {}", io::Error::from(errno)));
            rustix::fs::open(DEVICE, flags, Mode::empty()).map_err(error)
        };
        let first = open()?;
        let data = format!(
            "fd={},rootmode=100600,user_id=0,group_id=0,allow_other,default_permissions,\
             max_read=1048576",
            first.as_raw_fd()
        );
        let (data, source) = (CString::new(data)?, format!("{SOURCE}{id}@{}", folder.display()));
        let at = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount(source, at, KIND, flags, Some(&*data))?;
        let mut all = Vec::with_capacity(count.into());
        for _ in 1..count {
            all.push(runtime::another(first.as_fd(), open()?)?);
        }
        all.push(first);
        Ok(all)
    }
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
        let line = |at: &str, kind: &str, source: &str| {
            format!("36 35 98:0 / {at} rw,noatime shared:1 - {kind} {source} rw,user_id=0")
        };
        let parse = |line: &str| parse(line, Path::new("/run/a b"));
        let own = parse(&line(r"/srv/a\040b\134c", KIND, r"palisade:u-7@/run/a\040b"));
        let own = own.expect("ours");
        assert_eq!(own, Mounted { id: "u-7".into(), path: r"/srv/a b\c".into() });
        let same = r"palisade:u-7@/run/a\040b";
        for other in [
            line("/a", KIND, "other"),
            line("/a", KIND, "palisade:u-7@/run/other"),
            line("/a", "fuse", same),
            String::new(),
        ] {
            assert_eq!(parse(&other), None, "{other}");
        }
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
}

//! The file system of a volume: what a device holds, making one, mounting it.

use crate::program::{CHECKS, LONG, Program, SOON};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BLKID: Program = Program { name: "blkid", package: "util-linux" };
const WIPEFS: Program = Program { name: "wipefs", package: "util-linux" };
const MKFS_XFS: Program = Program { name: "mkfs.xfs", package: "xfsprogs" };
const XFS_GROWFS: Program = Program { name: "xfs_growfs", package: "xfsprogs" };
const MKFS_EXT4: Program = Program { name: "mkfs.ext4", package: "e2fsprogs" };
const E2FSCK: Program = Program { name: "e2fsck", package: "e2fsprogs" };
const RESIZE2FS: Program = Program { name: "resize2fs", package: "e2fsprogs" };

/// What `blkid` ends with if it finds nothing, and if it finds several things (blkid(8)).
const NOTHING: i32 = 2;
const SEVERAL: i32 = 8;
/// What `e2fsck` ends with if it has corrected what was wrong (e2fsck(8)).
const CORRECTED: i32 = 1 | 2;
/// How long an ended process may take to close what it had open, and how often it is looked.
const CLOSES: Duration = Duration::from_secs(5);
/// See [`CLOSES`].
const LOOK: Duration = Duration::from_millis(20);
/// So many bytes at both ends are looked at of a device that holds nothing known.
const ENDS: u64 = 1 << 20;

/// A kind of file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// XFS.
    Xfs,
    /// ext4.
    Ext4,
}

impl Type {
    /// What the kernel and `blkid` call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Ext4 => "ext4",
        }
    }

    /// That of a name.
    pub fn of(name: &str) -> Option<Self> {
        [Self::Xfs, Self::Ext4].into_iter().find(|own| own.name() == name)
    }
}

/// What a device holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Held {
    /// Nothing at its ends.
    Nothing,
    /// A file system that can be shared.
    Filesystem(Type),
    /// Something else, in words.
    Other(String),
}

impl Held {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Filesystem(own) => format!("a file system ({})", own.name()),
            Self::Other(what) => what.clone(),
        }
    }
}

/// What a device or file holds.
///
/// # Errors
/// It can't be read.
pub fn held(device: &Path) -> io::Result<Held> {
    let mut blkid = BLKID.command(SOON);
    let said = BLKID.run(blkid.args(["-p", "-o", "export"]).arg(device), &[])?;
    let value = |key: &str| {
        let mut pairs = said.out.lines().filter_map(|line| line.split_once('='));
        pairs.find_map(|(own, value)| (own == key).then(|| value.to_owned()))
    };
    match said.code {
        0 => {
            let own = value("TYPE").and_then(|name| Type::of(&name));
            let other = || match (value("TYPE"), value("PTTYPE")) {
                (Some(name), _) => format!("{} ({name})", usage(value("USAGE").as_deref())),
                (None, Some(name)) => format!("a partition table ({name})"),
                (None, None) => "something that blkid knows".to_owned(),
            };
            Ok(own.map_or_else(|| Held::Other(other()), Held::Filesystem))
        }
        NOTHING if has_bytes(device)? => Ok(Held::Other("data of no known kind".to_owned())),
        NOTHING => Ok(Held::Nothing),
        SEVERAL => Ok(Held::Other("several signatures (see wipefs)".to_owned())),
        _ => Err(BLKID.failed(&said)),
    }
}

/// What `blkid` says that something is for, in words.
const fn usage(usage: Option<&str>) -> &'static str {
    match usage {
        Some(text) => match text.as_bytes() {
            b"filesystem" => "a file system",
            b"raid" => "a part of a RAID",
            b"crypto" => "an encrypted volume",
            _ => "data",
        },
        None => "data",
    }
}

/// Whether it has a byte at its ends that is not zero.
fn has_bytes(device: &Path) -> io::Result<bool> {
    let mut file = File::open(device)?;
    let all = file.seek(SeekFrom::End(0))?;
    for from in [0, all.saturating_sub(ENDS)] {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.by_ref().take(ENDS).read_to_end(&mut bytes)?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes a file system; what was there before is lost.
///
/// # Errors
/// It can't be made.
pub fn make(device: &Path, own: Type) -> io::Result<()> {
    WIPEFS.done(WIPEFS.command(SOON).args(["-a", "-q", "-f"]).arg(device), &[])?;
    let made = match own {
        Type::Xfs => MKFS_XFS.done(MKFS_XFS.command(LONG).args(["-q", "-f"]).arg(device), &[]),
        Type::Ext4 => MKFS_EXT4.done(MKFS_EXT4.command(LONG).args(["-q", "-F"]).arg(device), &[]),
    };
    made.map(drop)
}

/// A file system that is mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// Of which device.
    pub device: PathBuf,
    /// Which kind, as the kernel calls it.
    pub name: String,
    /// Nothing can be written.
    pub is_read_only: bool,
}

/// A mount, as a line of `/proc/self/mountinfo` says it (proc(5)).
pub struct Line {
    /// Where it is.
    pub path: PathBuf,
    /// Of which kind.
    pub kind: String,
    /// Of what.
    pub source: Vec<u8>,
    /// What the file system was told.
    pub options: Vec<u8>,
}

/// All mounts, as the kernel lists them: of those at one path the last is on top.
///
/// # Errors
/// They can't be read.
pub fn lines() -> io::Result<Vec<Line>> {
    let text = std::fs::read("/proc/self/mountinfo")?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(line).collect())
}

/// One of those lines.
pub fn line(line: &[u8]) -> Option<Line> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let path = PathBuf::from(std::ffi::OsString::from_vec(unescaped(fields.get(4)?)));
    let dash = fields.iter().position(|field| *field == b"-")?;
    let [kind, source, options] = fields.get(dash + 1..dash + 4)? else { return None };
    let kind = String::from_utf8_lossy(kind).into_owned();
    Some(Line { path, kind, source: unescaped(source), options: options.to_vec() })
}

/// Space, tab, newline and backslash are three octal digits there.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 4).and_then(|own| core::str::from_utf8(own).ok());
        let code = digits.and_then(|own| u8::from_str_radix(own, 8).ok());
        match code.filter(|_| *byte == b'\\') {
            Some(code) => {
                plain.push(code);
                at += 4;
            }
            None => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    plain
}

/// What is mounted at a path.
///
/// # Errors
/// Mounts can't be read.
pub fn mounted(at: &Path) -> io::Result<Option<Mounted>> {
    let top = lines()?.into_iter().rfind(|line| line.path == at);
    Ok(top.map(|line| Mounted {
        device: PathBuf::from(std::ffi::OsString::from_vec(line.source)),
        name: line.kind,
        is_read_only: line
            .options
            .split(|byte| *byte == b',')
            .any(|option| [&b"ro"[..], b"emergency_ro", b"shutdown"].contains(&option)),
    }))
}

/// Mounts a device's file system at a folder: no file there is a device, or gives another user's
/// rights. One that was not unmounted well, or had errors, is checked before.
///
/// # Errors
/// What the kernel says, or that the check has found what it can't correct by itself.
pub fn mount_at(device: &Path, own: Type, at: &Path) -> io::Result<()> {
    match own {
        // The kernel replays its log, and no more is needed (fsck.xfs(8)).
        Type::Xfs => {}
        Type::Ext4 => check(device)?,
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // A copy of a volume has the UUID that this one has, and may be mounted beside it.
    let data = match own {
        Type::Xfs => "nouuid",
        Type::Ext4 => "errors=remount-ro",
    };
    let data = CString::new(data)?;
    mount(device, at, own.name(), flags, Some(&*data)).map_err(|errno| {
        let (name, at) = (own.name(), device.display());
        io::Error::other(format!("{at} can't be mounted ({name}): {}", io::Error::from(errno)))
    })
}

/// Has an ext4 as it should be: what the kernel does by itself leaves it marked as one with errors,
/// which does not grow.
fn check(device: &Path) -> io::Result<()> {
    let said = E2FSCK.run(E2FSCK.command(CHECKS).arg("-p").arg(device), &[])?;
    if said.code & !CORRECTED == 0 { Ok(()) } else { Err(E2FSCK.failed(&said)) }
}

/// Unmounts what is at a folder. Processes that were ended may have it open for a moment longer.
///
/// # Errors
/// Somebody uses it, or what the kernel says.
pub fn unmount_at(at: &Path) -> io::Result<()> {
    let end = Instant::now() + CLOSES;
    while mounted(at)?.is_some() {
        match unmount(at, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) if Instant::now() < end => std::thread::sleep(LOOK),
            other => other?,
        }
    }
    Ok(())
}

/// Takes what is at a folder away from all who come; who uses it goes on with what is there no
/// more.
///
/// # Errors
/// What the kernel says.
pub fn detach_at(at: &Path) -> io::Result<()> {
    while mounted(at)?.is_some() {
        unmount(at, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH)?;
    }
    Ok(())
}

/// Bytes of a file system, and those that are used.
///
/// # Errors
/// They can't be told.
pub fn space(at: &Path) -> io::Result<(u64, u64)> {
    let about = rustix::fs::statvfs(at)?;
    let size = about.f_blocks.saturating_mul(about.f_frsize);
    Ok((size, size.saturating_sub(about.f_bfree.saturating_mul(about.f_frsize))))
}

/// Makes a file system that is mounted as large as its device.
///
/// # Errors
/// It can't be.
pub fn grow(mounted: &Mounted, at: &Path) -> io::Result<()> {
    match Type::of(&mounted.name) {
        Some(Type::Xfs) => {
            XFS_GROWFS.done(XFS_GROWFS.command(LONG).arg("-d").arg(at), &[]).map(drop)
        }
        Some(Type::Ext4) => {
            RESIZE2FS.done(RESIZE2FS.command(LONG).arg(&mounted.device), &[]).map(drop)
        }
        None => Err(ErrorKind::Unsupported.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ext4_with_errors_is_corrected() {
        const DEBUGFS: Program = Program { name: "debugfs", package: "e2fsprogs" };
        let place = tempfile::tempdir().expect("a folder");
        let device = place.path().join("device");
        File::create(&device).and_then(|file| file.set_len(64 << 20)).expect("made");
        make(&device, Type::Ext4).expect("made");
        let debug = |words: &str| {
            let mut debugfs = DEBUGFS.command(SOON);
            DEBUGFS.done(debugfs.args(["-w", "-R", words]).arg(&device), &[]).expect("done")
        };
        let state = || {
            let told = debug("show_super_stats -h");
            let line = told.lines().find_map(|line| line.strip_prefix("Filesystem state:"));
            line.expect("told").trim().to_owned()
        };
        check(&device).expect("it is well");
        debug("set_super_value state 2");
        assert_eq!(state(), "not clean with errors");
        check(&device).expect("corrected");
        assert_eq!(state(), "clean");
        // What a person has to decide stays as it is.
        debug("clri <2>");
        debug("set_super_value state 2");
        let told = check(&device).expect_err("too much is wrong").to_string();
        assert!(told.starts_with("e2fsck: "), "{told}");
    }

    #[test]
    fn what_a_device_holds_is_named() {
        let place = tempfile::tempdir().expect("a folder");
        let device = place.path().join("device");
        let fresh = || {
            let file = File::create(&device).expect("made");
            file.set_len(320 << 20).expect("sized");
        };
        fresh();
        assert_eq!(held(&device).expect("read"), Held::Nothing);
        make(&device, Type::Ext4).expect("made");
        assert_eq!(held(&device).expect("read"), Held::Filesystem(Type::Ext4));
        make(&device, Type::Xfs).expect("made");
        assert_eq!(held(&device).expect("read"), Held::Filesystem(Type::Xfs));
        fresh();
        let swap = Program { name: "mkswap", package: "util-linux" };
        swap.done(swap.command(SOON).arg(&device), &[]).expect("made");
        assert_eq!(held(&device).expect("read").words(), "data (swap)");
        fresh();
        // One partition of Linux, from sector 1.
        let entry = [0, 0, 0, 0, 0x83, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0];
        let sector = [&[0; 446][..], &entry, &[0; 48], &[0x55, 0xaa], &[0; 4096]].concat();
        std::fs::write(&device, sector).expect("written");
        assert_eq!(held(&device).expect("read").words(), "a partition table (dos)");
        for at in [4096, (320 << 20) - 1] {
            use std::os::unix::fs::FileExt;
            fresh();
            let file = File::options().write(true).open(&device).expect("opened");
            file.write_all_at(b"x", at).expect("written");
            assert_eq!(held(&device).expect("read").words(), "data of no known kind");
        }
        held(&place.path().join("none")).expect_err("none");
    }

    #[test]
    fn mounts_are_read() {
        let text = br"36 35 98:0 / /srv/a\040b\134c rw,noatime shared:1 - xfs /dev/a rw,inode64";
        let own = line(text).expect("a mount");
        assert_eq!((&*own.path, &*own.kind), (Path::new(r"/srv/a b\c"), "xfs"));
        assert_eq!((&*own.source, &*own.options), (&b"/dev/a"[..], &b"rw,inode64"[..]));
        assert!(line(b"").is_none());
        assert!(lines().expect("read").iter().any(|line| line.path == Path::new("/proc")));
        assert_eq!(mounted(Path::new("/no/such")).expect("read"), None);
    }
}

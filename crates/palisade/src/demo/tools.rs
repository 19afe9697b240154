//! The programs that the demo calls: this one as daemon and as command line, and other people's.

use super::error::DemoError;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Other people's programs that every demo needs, with the Debian package of each.
const NEEDED: &[(&str, &str)] = &[
    ("nbdinfo", "libnbd-bin"),
    ("nbdcopy", "libnbd-bin"),
    ("qemu-img", "qemu-utils"),
    ("mke2fs", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
];

/// What `--share` needs instead.
const NEEDED_TO_SHARE: &[(&str, &str)] = &[
    ("smbd", "samba"),
    ("smbstatus", "samba"),
    ("smbpasswd", "samba-common-bin"),
    ("testparm", "samba-common-bin"),
    ("smbcontrol", "samba-common-bin"),
    ("smbclient", "smbclient"),
    ("ganesha.nfsd", "nfs-ganesha-vfs"),
    ("nfs-cat", "libnfs-utils"),
    ("mkfs.ext4", "e2fsprogs"),
    ("blkid", "util-linux"),
    ("wipefs", "util-linux"),
    ("losetup", "util-linux"),
    ("timeout", "coreutils"),
];

/// A program of the search path; file system tools are found where Debian keeps them.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(find(name).unwrap_or_else(|| name.into()));
    command.env("LC_ALL", "C");
    command
}

/// Fails if one of the programs is missing that the demo needs, or that one of shares does.
///
/// # Errors
/// [`DemoError::Missing`] with all that are.
pub fn check(shares: bool) -> Result<(), DemoError> {
    let needed = if shares { NEEDED_TO_SHARE } else { NEEDED };
    let absent: Vec<_> = needed.iter().filter(|(name, _)| find(name).is_none()).copied().collect();
    if absent.is_empty() { Ok(()) } else { Err(DemoError::Missing(absent)) }
}

fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(system).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// The outside reader: `PALISADE_READ_ARRAY`, else `script/read-array` of the working folder or of
/// a folder above this program.
///
/// # Errors
/// Why there is none, for people.
pub fn read_array() -> Result<PathBuf, String> {
    if find("python3").is_none() {
        return Err("there is no python3".into());
    }
    let told = env::var_os("PALISADE_READ_ARRAY").map(PathBuf::from);
    let own = env::current_exe().unwrap_or_default();
    let above = own.ancestors().skip(1).map(|dir| dir.join("script/read-array"));
    let mut places = told.into_iter().chain([PathBuf::from("script/read-array")]).chain(above);
    places
        .find(|path| path.is_file())
        .ok_or_else(|| "script/read-array is not here (PALISADE_READ_ARRAY names it)".into())
}

/// `python3 READ_ARRAY`, with arguments to be added.
pub fn python(script: &Path) -> Command {
    let mut command = program("python3");
    command.arg(script);
    command
}

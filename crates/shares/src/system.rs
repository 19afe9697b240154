//! What is asked of this machine, or done to it, by whoever runs servers: files, processes, secrets
//! and addresses.

use crate::kept::GROUP;
use rustix::fs::{Gid, Uid, chown};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Child;

/// Characters of secrets.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Makes a folder that is this user's alone, if it is not there.
///
/// # Errors
/// It can't be made.
pub fn private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a folder through which users of shares come to what is theirs.
///
/// # Errors
/// It can't be made.
pub fn open_to_users(path: &Path) -> io::Result<()> {
    private(path)?;
    chown(path, Some(Uid::ROOT), Some(Gid::from_raw(GROUP)))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o710))
}

/// Writes a file that nobody else may read, by way of a new one: whoever reads it meanwhile finds
/// the one or the other.
///
/// # Errors
/// It can't be written.
pub fn replace(path: &Path, new: &Path, bytes: &[u8]) -> io::Result<()> {
    // A name that is there already has the mode that it has.
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(new)?;
    file.write_all(bytes)?;
    std::fs::rename(new, path)
}

/// What is to be gone is, also if it was before.
///
/// # Errors
/// It could not be removed.
pub fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The process that holds the lock of a file.
///
/// # Errors
/// That can't be told.
pub fn holder(path: &Path) -> io::Result<Option<Pid>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let held = fcntl_getlk(&file, &Flock::from(FlockType::ReadLock))?;
    Ok(held.and_then(|held| held.pid))
}

/// Waits for a child's end elsewhere, so that nothing is left of it.
pub fn reap(mut child: Child) {
    // Without a thread it stays a zombie, which holds nothing.
    let name = "palisade-reap".to_owned();
    let _ = std::thread::Builder::new().name(name).spawn(move || child.wait());
}

/// Where a server at an address is reached from here.
pub const fn reached(address: SocketAddr) -> SocketAddr {
    let here = match address.ip() {
        IpAddr::V4(own) if own.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(own) if own.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        own => own,
    };
    SocketAddr::new(here, address.port())
}

/// A text of so many characters that nobody can guess.
///
/// # Errors
/// The kernel has no chance to give.
pub fn secret(characters: usize) -> io::Result<String> {
    let mut random = vec![0; characters];
    getrandom(&mut random, GetRandomFlags::empty())?;
    Ok(random.iter().map(|byte| char::from(CHARACTERS[usize::from(byte % 64)])).collect())
}

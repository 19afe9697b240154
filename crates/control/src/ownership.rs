//! Who this server is to others that reach the same drives, and which arrays others have taken.
//!
//! States: not known → known (host id and boot id are found) → identified: the file of that host
//! and boot is locked, and the engine was told. From then on shared arrays may be created and
//! started.
//!
//! Invariants
//! - Of all daemons of a machine one at most is identified by one host id. It is until its process
//!   ends, whatever becomes of the daemon in it: requests of its may be under way.
//! - Nothing here waits but for files.

use crate::fabrics::Fabrics;
use crate::failure;
use crate::lock::lock;
use core::fmt::Display;
use engine::limits::LEASE;
use engine::manage::command::ArrayStatus;
use format::Owner;
use redfish::messages as say;
use redfish::view::{self, Error};
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::Notify;
use units::{Nanos, Uuid};

/// Where the kernel says which start of the machine this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Where locks of this machine's programs are.
const LOCKS: &str = "/run/lock";

/// Who this server is, as far as that is known.
#[derive(Default)]
pub struct Ownership {
    known: Mutex<Option<Owner>>,
    /// Whether no other process is this server, and whether the engine was told who it is.
    pub identified: tokio::sync::Mutex<(bool, bool)>,
    /// An array may have been taken over.
    pub news: Notify,
    /// Arrays that were, and are being stopped.
    stopping: Mutex<BTreeSet<Uuid>>,
}

impl Ownership {
    /// Who this server is, if that is known.
    pub fn known(&self) -> Option<Owner> {
        *lock(&self.known)
    }

    /// It is known from now on.
    pub fn set(&self, own: Owner) {
        *lock(&self.known) = Some(own);
    }

    /// An array that was taken over is to be stopped: false if it is being stopped.
    pub fn begins(&self, array: Uuid) -> bool {
        lock(&self.stopping).insert(array)
    }

    /// That is over.
    pub fn ends(&self, array: Uuid) {
        lock(&self.stopping).remove(&array);
    }
}

/// Who this server is. The caller may have to wait for files.
///
/// # Errors
/// It has no host id, and none can be made; or the kernel does not tell its boot id.
pub fn find(fabrics: &Fabrics) -> Result<Owner, Error> {
    find_by(fabrics, Path::new(BOOT_ID))
}

fn find_by(fabrics: &Fabrics, boot: &Path) -> Result<Owner, Error> {
    let host = Uuid(fabrics.host()?.id);
    let not_read = |why: &dyn Display| failure::no_identity(&format!("{}: {why}", boot.display()));
    let text = std::fs::read_to_string(boot).map_err(|error| not_read(&error))?;
    let boot = text.trim().parse().map_err(|_| not_read(&"it is no UUID"))?;
    Ok(Owner { host, boot })
}

/// Makes sure that no other process is this server, until this process ends.
///
/// # Errors
/// Another may be.
pub fn hold(own: Owner) -> Result<(), Error> {
    hold_in(&[PathBuf::from(LOCKS), std::env::temp_dir()], own)
}

/// The same by a file in the first of these directories that is there and can be written.
fn hold_in(dirs: &[PathBuf], own: Owner) -> Result<(), Error> {
    let name = format!("palisade-{}-{}.lock", own.host, own.boot);
    let taken = |path: &Path| Error::new(&say::HOST_ID_TAKEN, &[&own.host, &path.display()]);
    let mut path = PathBuf::from(&name);
    for dir in dirs {
        path = dir.join(&name);
        match open(&path) {
            Ok(None) => {}
            // A pipe that somebody put there would make whoever opens it wait.
            Ok(Some(file)) if !is_plain(&file) => return Err(taken(&path)),
            Ok(Some(file)) => {
                return match file.try_lock() {
                    // One that was taken away meanwhile keeps nobody out.
                    Ok(()) if !is_at(&file, &path) => Err(taken(&path)),
                    Ok(()) => {
                        // Open, and so locked, as long as the process lives.
                        let _ = file.into_raw_fd();
                        Ok(())
                    }
                    Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Err(taken(&path)),
                };
            }
            Err(_) => return Err(taken(&path)),
        }
    }
    Err(taken(&path))
}

/// Whether it is a file, and nothing else.
fn is_plain(file: &File) -> bool {
    file.metadata().is_ok_and(|is| is.is_file())
}

/// Whether a file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    let same =
        |own: Metadata, there: Metadata| (own.dev(), own.ino()) == (there.dev(), there.ino());
    file.metadata().ok().zip(path.symlink_metadata().ok()).is_some_and(|(a, b)| same(a, b))
}

/// Opens a file, and makes it if it is not there; none if that can't be done in its directory.
fn open(path: &Path) -> std::io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    loop {
        // Of another user's even root may not open it as one to be made (proc(5),
        // protected_regular).
        match options.clone().read(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => return found.map(Some),
        }
        match options.clone().write(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return Ok(None),
            made => return made.map(Some),
        }
    }
}

/// Whether an array is not started as another server has it, or had it a moment ago.
pub fn is_anothers(why: &Error) -> bool {
    [&say::ARRAY_OWNED, &say::OWNER_MEANWHILE].into_iter().any(|entry| why.is(entry))
}

/// Milliseconds since 1970, for people only.
pub fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Who has a running array, if it is shared: this server.
pub fn shown(array: &ArrayStatus, now_millis: u64) -> Option<view::Owner> {
    let own = array.owner.as_ref()?;
    Some(view::Owner {
        host_id: own.identity.host.to_string(),
        boot_id: own.identity.boot.to_string(),
        name: own.identity.name.clone(),
        own: true,
        heartbeat_age_ms: age(array, now_millis),
    })
}

/// How long ago enough drives confirmed last that a running array is this server's, in
/// milliseconds.
fn age(array: &ArrayStatus, now_millis: u64) -> Option<u64> {
    let confirmed = array.owner.as_ref()?.lease.confirmed_at();
    (confirmed > 0).then(|| now_millis.saturating_sub(confirmed))
}

/// Whether changes of a running array wait, as too few drives have confirmed for some time that it
/// is this server's. The engine does not tell when that begins.
pub fn is_held(array: &ArrayStatus, now_millis: u64) -> bool {
    let Some(own) = array.owner.as_ref().filter(|own| own.taken_by.is_none()) else { return false };
    is_over(age(array, now_millis), own.identity.heartbeat)
}

/// Whether a lease is over that was confirmed so many milliseconds ago.
fn is_over(age_ms: Option<u64>, period: Nanos) -> bool {
    age_ms.is_some_and(|age| age > LEASE * period.0 / 1_000_000)
}

/// Who has taken a running array over, if another server has.
pub fn taken_by(array: &ArrayStatus) -> Option<&str> {
    array.owner.as_ref()?.taken_by.as_deref()
}

#[cfg(test)]
#[path = "ownership_tests.rs"]
mod tests;

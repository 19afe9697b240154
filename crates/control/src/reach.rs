//! What others than Administrators may name: drives that the configuration names, and sockets
//! beside the daemon's own.
//!
//! A file can be a drive, and the daemon may write any of them: who says to which path it writes,
//! or where it makes a socket, can do what the daemon's user can.
//!
//! Invariant: a path of theirs leads nowhere by itself. What is opened is at the path that the
//! configuration has for it, also if theirs leads elsewhere by then.

use crate::caller::Caller;
use crate::manager::Manager;
use redfish::change::Change;
use redfish::error::Refusal;
use redfish::messages as say;
use redfish::routes::Privilege;
use redfish::view::{Error, LocalExport, NamedDrive};
use std::path::{Component, Path};

/// The status of a refusal.
const FORBIDDEN: u16 = 403;

/// Checks that a change stays within what its caller may name. Paths to look at become those of the
/// configuration; the audit log has a line of others, which an Administrator names.
///
/// # Errors
/// It does not.
pub async fn confine(
    manager: &Manager,
    caller: &Caller,
    request: &str,
    change: &mut Change,
) -> Result<(), Refusal> {
    if caller.may(Privilege::ConfigureManager) {
        if let Change::FindDrives { paths } = change
            && !paths.iter().all(|path| manager.is_named(path))
        {
            manager.audit().note(caller, request, &change.words(&manager.view())).await;
        }
        return Ok(());
    }
    let outcome = match change {
        Change::FindDrives { paths } => manager.as_named(paths).await.map(|named| *paths = named),
        Change::CreateArray(array) | Change::CreateVolumeOnDrives { array, .. } => {
            array.drives.iter().try_for_each(|drive| is_named(manager, drive))
        }
        Change::ReplaceDrive { request, .. } => is_named(manager, &request.with),
        Change::Wipe(request) => is_named(manager, &request.drive),
        Change::CreateExport(request) => match &request.local {
            Some(LocalExport::File(path)) => Err(Error::new(&say::FILE_ELSEWHERE, &[path])),
            Some(LocalExport::VhostUser(path)) => is_beside(manager, Some(&format!("unix:{path}"))),
            _ => is_beside(manager, request.nbd.as_deref()),
        },
        _ => Ok(()),
    };
    outcome.map_err(|error| Refusal::from(error).with_status(FORBIDDEN))
}

fn is_named(manager: &Manager, drive: &NamedDrive) -> Result<(), Error> {
    match manager.is_named(&drive.path) {
        true => Ok(()),
        false => Err(Error::new(&say::DRIVE_NOT_NAMED, &[&drive.path])),
    }
}

/// Whether an address is no socket, or one in the directory of the daemon's own.
fn is_beside(manager: &Manager, address: Option<&str>) -> Result<(), Error> {
    let Some(path) = address.and_then(|address| address.strip_prefix("unix:")) else {
        return Ok(());
    };
    let own = manager.socket().and_then(|socket| socket.dir());
    let is_plain = |path: &Path| !path.components().any(|part| part == Component::ParentDir);
    let is_in = |dir| Path::new(path).parent() == Some(dir) && is_plain(Path::new(path));
    match own.is_some_and(is_in) {
        true => Ok(()),
        false => {
            let dir = own.map_or_else(String::new, |dir| dir.display().to_string());
            Err(Error::new(&say::SOCKET_ELSEWHERE, &[&path, &dir]))
        }
    }
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;

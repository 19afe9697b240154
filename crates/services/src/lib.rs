//! `palisade services`: what the daemon must not do itself, as it could wait for itself: it mounts
//! volumes as files, makes loop devices over them, and asks them as a client does.
//!
//! The daemon says on a socket which exports there are to be ([`wire`]), all of them, with a
//! revision that grows with each change. Each export has a thread ([`keeper`]), so that one whose
//! drives don't answer holds up no other. It compares what is wanted with what is there, makes the
//! one of the other, and says how that went; again every [`CHECK`], when it reads a block as a
//! client.
//!
//! | what is wanted          | what is there               | what is done                      |
//! |-------------------------|-----------------------------|-----------------------------------|
//! | an export, attached     | its mount                   | its device, size and link are set |
//! | an export, attached     | no mount: somebody ended it | it is mounted, and handed over    |
//! | an export, not attached | nothing                     | the same                          |
//! | an export, not attached | a mount, which is dead      | that is ended, and mounted anew   |
//! | an export that leaves   | what nobody uses            | it is ended: *gone*               |
//! | an export that leaves   | what somebody uses          | it stays: *busy*                  |
//! | not the export          | a mount                     | it is ended, whoever uses it      |
//! | all, as it is not there | whatever                    | nothing                           |
//!
//! A block device is one of ublk where the kernel has that, with a table of its own (`device`).
//! iSCSI targets stand on either ([`targets`]), and so do file systems whose shares clients have
//! (`files`); units and namespaces at Fibre Channel ports stand on one of ublk ([`fc`]). Who serves
//! them is told what it has to know, and looked after.
//!
//! Invariants
//! - Only what was made here is touched: a mount says by its source whose it is, a loop device by
//!   the file that it stands on, a link by where it leads.
//! - What is there is asked of the kernel, not remembered: a process that is killed anywhere and
//!   started again does the rest.
//! - No descriptor of `/dev/fuse` stays here once the daemon has it: when the daemon ends, who uses
//!   the file has an error, and waits for nobody.

mod blocks;
mod configfs;
mod device;
pub mod fc;
mod fcp;
mod files;
mod health;
mod keeper;
mod links;
mod lio;
mod lio_device;
mod loops;
pub mod mounts;
mod nvmet;
mod release;
mod run;
pub mod targets;
pub mod tgt;
pub mod ublk;
pub mod wire;

pub use health::{now, read_for_another};
pub use keeper::left;
pub use links::{LINKS, link};
pub use release::{Kept, release};
pub use run::{clear, end, run};

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// How often exports are asked how they are.
pub const CHECK: Duration = Duration::from_secs(10);

/// Where `palisade services` has its files beside the usual daemon.
pub const FOLDER: &str = "/run/palisade-services";

/// Most bytes of a folder's name that its socket gives.
const NAME_BYTES: usize = 200;

/// Where it has them beside the daemon with this socket, unless the configuration says otherwise:
/// each daemon of a machine has its own.
pub fn folder(socket: &Path, usual: &Path) -> PathBuf {
    if socket == usual {
        return FOLDER.into();
    }
    let text = std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned());
    let text = text.display().to_string().replace('/', "-");
    // As much of it as a name may have; the end says most.
    let from = text.len().saturating_sub(NAME_BYTES);
    let from = (from..).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    format!("{FOLDER}{}", &text[from..]).into()
}

/// What a mutex guards, also where a thread that held it has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

/// A number for bytes, the same in each process (FNV-1a of 64 bits, draft-eastlake-fnv, section 2).
fn hash_of<'a>(bytes: impl Iterator<Item = &'a u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Why a program could not be started, and which package has it.
fn not_started(program: &str, package: &str, error: &io::Error) -> io::Error {
    let is_missing = error.kind() == ErrorKind::NotFound;
    let hint = if is_missing { format!("; install {package}") } else { String::new() };
    io::Error::new(error.kind(), format!("{program}: {error}{hint}"))
}

/// Loads modules of the kernel, as far as there are such: what came of it is seen by what is there.
fn modprobe(names: &[&str]) {
    let mut modprobe = Command::new("modprobe");
    let quiet = modprobe.args(["-q", "-a"]).args(names).stdin(Stdio::null());
    let _ = quiet.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Whether a device is one of ublk.
pub fn is_ublk(device: &str) -> bool {
    ublk::number(device).is_some()
}

/// The socket of the daemon on which it says what is to be there, by that of its interface.
pub fn socket(of: &Path) -> PathBuf {
    of.with_extension("services")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_daemon_has_a_folder() {
        let usual = Path::new("/run/palisade/palisade.sock");
        assert_eq!(folder(usual, usual), Path::new(FOLDER));
        let other = folder(Path::new("/srv/a/p.sock"), usual);
        assert_eq!(other, Path::new("/run/palisade-services-srv-a-p.sock"));
        let long = format!("/{}/p.sock", "ü".repeat(300));
        let name = folder(Path::new(&long), usual).display().to_string();
        assert!(name.ends_with("-p.sock") && name.len() < 255, "{name}");
    }
}

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
//! Invariants
//! - Only what was made here is touched: a mount says by its source whose it is, a loop device by
//!   the file that it stands on, a link by where it leads.
//! - What is there is asked of the kernel, not remembered: a process that is killed anywhere and
//!   started again does the rest.
//! - No descriptor of `/dev/fuse` stays here once the daemon has it: when the daemon ends, who uses
//!   the file has an error, and waits for nobody.

mod health;
mod keeper;
mod loops;
mod mounts;
mod run;
pub mod wire;

pub use health::now;
pub use loops::{LINKS, link};
pub use run::run;

use std::time::Duration;

/// How often exports are asked how they are.
pub const CHECK: Duration = Duration::from_secs(10);

/// Where `palisade services` has its files, unless the configuration says otherwise.
pub const FOLDER: &str = "/run/palisade-services";

/// The socket of the daemon on which it says what is to be there, by that of its interface.
pub fn socket(of: &std::path::Path) -> std::path::PathBuf {
    of.with_extension("services")
}

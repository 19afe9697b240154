//! Drive kinds: block device and file, memory, *paced*, which answers as late as a drive of a known
//! model would, *remote*, behind NVMe/TCP, and *faulty*, which puts faults in front of another
//! drive.
//!
//! Purpose: a [`SharedDrive`] is opened once and belongs to the process; every core binds its
//! own handle, [`BoundDrive`], which implements [`io::Drive`].
//!
//! - RAM-backed files (tmpfs, ramfs) and memory run requests to their end inside the submitting
//!   call; everything else goes through the core's reactor.
//! - Every request's bounds and alignment are checked first (`DriveError::Bounds`).
//! - [`IoCounts`] counts what was asked of the drive, over all cores; [`IoTimes`] how long it took.
//! - [`sysfs`] and [`uevent`]: what the kernel tells of drives as devices, and when that changes.
//!   Reading `/sys` may wait: it is for no core.
//! - [`admin`]: asking an NVMe drive how it is, beside all that.
//!
//! Invariants: `unsafe` only where the kernel carries an admin command (`admin::kernel`); a request
//! that was started is finished, whether or not its ticket lives.

pub mod admin;
mod blocking;
mod bound;
mod counts;
mod faulty;
mod file;
mod memory;
mod open;
mod paced;
mod ranges;
pub mod remote;
mod shared;
pub mod sysfs;
mod ticket;
pub mod uevent;

pub use blocking::{BlockingDrive, now};
pub use bound::BoundDrive;
pub use counts::{IoCounts, IoTimes};
pub use faulty::{Faults, Op};
pub use open::{Direct, OpenError, OpenOptions};
pub use shared::SharedDrive;
pub use ticket::{DoneTicket, ReadTicket};

/// One core with these drives; `M` is its mail.
pub type Env<M> = runtime::CoreEnv<M, SharedDrive>;

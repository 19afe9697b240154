//! What the kernel's tree of devices (`/sys`) tells: block devices, how they are reached, and what
//! is around them.
//!
//! Purpose: [`Sysfs`] reads the tree anew with each call and keeps nothing. [`changes`] says what
//! is different between two looks. Its root is a parameter: tests read recorded trees ([`tree`]).
//!
//! - [`Sysfs::devices`] reads only what is in the kernel's memory: no drive is asked, and one that
//!   hangs delays nobody.
//! - [`Sysfs::surroundings`], [`Sysfs::located`], [`Sysfs::locate`] and [`Sysfs::temperature`] ask
//!   enclosures, chips and drives through the kernel: they are for threads that may wait.
//!
//! Invariants
//! - No call fails as a whole: what can't be read is `None`, or is not listed.
//! - Nothing outside the root is read, and of each file a bounded part (`read`).
//! - Silence says nothing: what is not known makes no drive another one ([`Identity::compare`]).

mod changes;
mod device;
mod enclosure;
mod hwmon;
mod identity;
mod led;
mod network;
mod pcie;
mod read;
mod surroundings;
#[doc(hidden)]
pub mod tree;
mod way;

pub use changes::{Change, changes};
pub use device::{Controller, Device, Kind, Transport};
pub use enclosure::{Enclosure, Slot};
pub use hwmon::{Alarm, Quantity, Sensor, Supply};
pub use identity::{Comparison, Identity};
pub use led::LedError;
pub use network::{Port, PortKind};
pub use pcie::{Link, Pci, Width};
pub use surroundings::Surroundings;

use read::Dir;
use std::path::{Path, PathBuf};

/// Where the kernel tells of devices.
pub const ROOT: &str = "/sys";

/// The kernel's tree of devices, or a recorded one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self::new(ROOT)
    }
}

impl Sysfs {
    /// The tree at `root`, [`ROOT`] for the kernel's own. Nothing is read yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where the tree is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn dir(&self) -> Dir<'_> {
        Dir::root(&self.root)
    }
}

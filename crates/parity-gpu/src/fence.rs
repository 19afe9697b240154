//! What a device may take, and why it is not used any more.

use std::fmt;
use std::time::Duration;

use crate::driver::DriverError;
use crate::kind::Kind;

/// What a device may use, how long it may take, and how much it is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Batches under way at once.
    pub lanes: usize,
    /// Bytes that a batch may read, its metadata included, on each side.
    pub in_bytes: usize,
    /// Bytes that a batch may write, on each side.
    pub out_bytes: usize,
    /// How long a batch, or a call of the driver, may take; a device that takes longer hangs.
    pub patience: Duration,
    /// How long opening a device and its known answers may take.
    pub start: Duration,
    /// A job is given up after 20 times the longest that one took, but not sooner than this.
    pub late: Duration,
    /// How long a job may be on the device's way where that saves the core time.
    pub latency: Duration,
    /// One job of this many is done on the CPU too and compared; 0: none.
    pub sample: u32,
}

impl Limits {
    /// What is late has this time once more, in which this process surely runs: all of it, and its
    /// device, may have been stopped.
    pub(crate) fn grace(&self) -> Duration {
        self.patience / 4
    }
}

impl Default for Limits {
    /// Three lanes of 16 MiB and 8 MiB; two seconds, half a minute, 50 ms and 1 ms; one job
    /// of 1024.
    fn default() -> Limits {
        Limits {
            lanes: 3,
            in_bytes: 16 << 20,
            out_bytes: 8 << 20,
            patience: Duration::from_secs(2),
            start: Duration::from_secs(30),
            late: Duration::from_millis(50),
            latency: Duration::from_millis(1),
            sample: 1024,
        }
    }
}

/// Why a device is not used any more, or never was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fence {
    /// A call failed.
    Failed(DriverError),
    /// A batch, or a call, took longer than [`Limits::patience`].
    Hung,
    /// It computed something else than the CPU.
    Wrong {
        /// The kernel.
        kind: Kind,
        /// Jobs done since the last one that was compared and agreed.
        unchecked: u64,
    },
    /// It said that it was done with something that it had not done.
    Undone {
        /// The kernel.
        kind: Kind,
    },
    /// There are no lanes, or the known answers don't fit into them.
    Small,
    /// The device's thread ended, on its own.
    Ended,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fence::Failed(error) => write!(f, "{error}"),
            Fence::Hung => f.write_str("the GPU did not answer in time"),
            Fence::Wrong { kind, unchecked } => write!(
                f,
                "its kernel {} computed another result than the CPU, {unchecked} jobs after the \
                 last one that was compared",
                kind.name()
            ),
            Fence::Undone { kind } => {
                write!(f, "its kernel {} did not finish its work", kind.name())
            }
            Fence::Small => f.write_str("the GPU has too few lanes, or they are too small"),
            Fence::Ended => f.write_str("the thread that drives the GPU ended"),
        }
    }
}

impl std::error::Error for Fence {}

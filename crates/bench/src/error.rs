//! Why a benchmark could not be carried out.

use drives::OpenError;
use engine::manage::command::ManageError;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use units::format_size;

/// Why there is no report. The text says what happened and, where it helps, what to do.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The command does not make sense.
    #[error("{0}")]
    Usage(String),
    /// What is asked for can't be measured so.
    #[error("{0}")]
    Refused(String),
    /// Data would go that was not named.
    #[error(
        "{} has data: {what}; nothing was written. To measure on it, and lose all that it has, add \
         --destroy-data {}", path.display(), path.display()
    )]
    WouldDestroy {
        /// The drive.
        path: PathBuf,
        /// What is on it.
        what: String,
    },
    /// Somebody wanted it to end.
    #[error("ended before all was measured")]
    Interrupted,
    /// A file or the system refused.
    #[error("{path}: {error}")]
    System {
        /// What was used.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },
    /// The directory has too little room.
    #[error(
        "{path}: {wanted} bytes wanted, {free} free; give a smaller size (--size, --drive-size), \
         or another --dir"
    )]
    Room {
        /// The directory.
        path: PathBuf,
        /// Bytes needed.
        wanted: u64,
        /// Bytes there are.
        free: u64,
    },
    /// There is too little memory.
    #[error(
        "drives in memory need {}, {} are available; give a smaller size (--size, --drive-size)",
        format_size(*wanted), format_size(*available)
    )]
    Memory {
        /// Bytes needed.
        wanted: u64,
        /// Bytes there are.
        available: u64,
    },
    /// A drive could not be opened.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The engine refused.
    #[error("{0}")]
    Manage(#[from] ManageError),
    /// A request of the load failed.
    #[error("{0} requests of the load failed")]
    Failed(u64),
    /// A rebuild ended and the array is not whole.
    #[error("the rebuild ended before its drive was filled")]
    NotRebuilt,
    /// A core ended before it answered.
    #[error("a core of the run ended early")]
    CoreGone,
    /// A daemon could not be started, or did not do what it was asked.
    #[error("the daemon: {0}")]
    Daemon(String),
    /// A process of the measurement could not be started, or did not do what it was asked.
    #[error("{0}")]
    Process(String),
    /// A drive behind a fabric is not reached.
    #[error("{0}")]
    Fabric(#[from] drives::remote::FabricError),
    /// fio could not be used.
    #[error("fio: {0}")]
    Fio(String),
    /// The scrub after the writes found stripes whose parity is wrong.
    #[error("the scrub found {0} mismatches: no result counts")]
    Scrub(u64),
    /// Reading back found blocks that are not what was written last.
    #[error("{blocks} blocks read back wrong, the first is {first}: no result counts")]
    Wrong {
        /// How many.
        blocks: u64,
        /// The first of them, counted in 4 KiB from the volume's start.
        first: u64,
    },
    /// Reads did not find what was written there.
    #[error(
        "{count} reads found something else than was written, the first at byte {at}: no result \
         counts"
    )]
    Elsewhere {
        /// How many.
        count: u64,
        /// The first byte of such a block.
        at: u64,
    },
    /// A client did not read what is in a file.
    #[error("{0} gave other bytes than the file has: no result counts")]
    OtherBytes(&'static str),
    /// A GPU's driver refused.
    #[error("{0}")]
    Gpu(#[from] parity_gpu::DriverError),
    /// A GPU took longer than anybody waits.
    #[error("the GPU did not end its work in {0} s")]
    GpuHung(u64),
    /// A result of the parity crate is wrong, or ISA-L's is.
    #[error("{operation}: output {output} differs from {than} at byte {offset}: no result counts")]
    Different {
        /// The result that was to be measured.
        operation: String,
        /// The output, counted from 0.
        output: usize,
        /// The first byte that differs.
        offset: usize,
        /// What it was compared with.
        than: &'static str,
    },
}

/// Whether a procedure goes on that ends in order where `stop` is set.
///
/// # Errors
/// It is to end.
pub(crate) fn is_to_go_on(stop: &AtomicBool) -> Result<(), BenchError> {
    if stop.load(Ordering::Relaxed) { Err(BenchError::Interrupted) } else { Ok(()) }
}

impl BenchError {
    /// The exit status of a program that ends with it.
    pub fn status(&self) -> u8 {
        match self {
            Self::Refused(_) => 2,
            Self::WouldDestroy { .. } => 3,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}

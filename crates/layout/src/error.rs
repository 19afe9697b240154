//! Why a layout cannot be built.

use crate::{Level, MAX_DRIVES, MIN_DRIVES};
use core::fmt;

/// Why [`crate::Layout::new`] or [`crate::Layout::from_ranges`] refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayoutError {
    /// The level cannot be made of this many drives.
    Drives {
        /// The level asked for.
        level: Level,
        /// The number of drives given.
        drives: u16,
    },
    /// The strip is not a power of two from 4 KiB to 1 MiB.
    Strip(u32),
    /// The data area does not hold a single band, or is larger than the format allows.
    DataBytes(u64),
    /// There are no ranges, or more than the format allows.
    RangeCount(usize),
    /// A range of the record does not hold together; the text says what is wrong.
    Range {
        /// Number of the range in the record.
        index: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drives { level, drives } => write!(
                f,
                "level {level} can't have {drives} drives: it takes {} to {MAX_DRIVES}{}",
                level.min_drives().max(MIN_DRIVES),
                if *level == Level::Raid10 { ", an even number" } else { "" },
            ),
            Self::Strip(bytes) => {
                write!(f, "a strip size of {bytes} bytes is not a power of two from 4K to 1M")
            }
            Self::DataBytes(bytes) => {
                write!(f, "{bytes} bytes of data per drive are too few or too many")
            }
            Self::RangeCount(count) => write!(f, "{count} address ranges are not possible"),
            Self::Range { index, problem } => write!(f, "address range {index}: {problem}"),
        }
    }
}

impl core::error::Error for LayoutError {}

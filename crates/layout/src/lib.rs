//! Pure maps between array addresses and strips on drives, for every level.
//!
//! Purpose: one [`Layout`] answers, without I/O and without allocation, where a byte of the
//! array lives (`locate`), which drive holds which strip of a stripe (`slot`), and the inverses.
//! It is built either from a level and a number of drives ([`Layout::new`]) or from the address
//! ranges that an array record stores ([`Layout::from_ranges`]), which are not trusted.
//!
//! The formulas are those of `docs/format.md`, section "Layout". Parity rotates left-symmetric
//! as Linux md does by default (`ALGORITHM_LEFT_SYMMETRIC`, drivers/md/raid5.c).
//!
//! Invariants of every `Layout` that exists:
//! - ranges lie one behind the other from array address 0, each a whole number of rows;
//! - a group belongs to exactly one range; groups are numbered in the order of the ranges;
//! - no byte of a drive belongs to two ranges;
//! - all numbers are below [`MAX_ARRAY_BYTES`], so that no sum or product overflows.

mod descriptor;
mod divisor;
mod error;
mod map;
mod validate;

pub use descriptor::{
    CODE_ID_MD, CODE_ID_NONE, CodeKind, DESCRIPTOR_VERSION, Descriptor, Level, NotLevel, Range,
    Rotation,
};
pub use error::LayoutError;
pub use map::{Layout, Place};

use units::SlotSet;

/// Fewest drives of an array.
pub const MIN_DRIVES: u16 = 2;
/// Most drives of an array: a set of its slots is a [`SlotSet`].
pub const MAX_DRIVES: u16 = 64;
/// Most parities of a stripe.
pub const PARITIES_MAX: u16 = 8;
/// Most address ranges of an array.
pub const MAX_RANGES: usize = 64;
/// Most groups of an array.
pub const MAX_GROUPS: u16 = 256;
/// Smallest strip, in bytes.
pub const MIN_STRIP_BYTES: u32 = 4 << 10;
/// Largest strip, in bytes: a band holds at least one stripe.
pub const MAX_STRIP_BYTES: u32 = 1 << 20;
/// Most bytes of an array, and of a drive's data area.
pub const MAX_ARRAY_BYTES: u64 = 1 << 60;

const _: () = assert!(MAX_DRIVES as usize <= SlotSet::MOST);
const _: () = assert!(MAX_RANGES >= MAX_DRIVES as usize, "JBOD has a range of each drive");
const _: () = assert!(MAX_STRIP_BYTES as u64 == units::BAND_BYTES);
// The reciprocal in `divisor` is exact for numbers below 2^48: strips of the largest array.
const _: () = assert!(MAX_ARRAY_BYTES / MIN_STRIP_BYTES as u64 <= divisor::EXACT_BELOW);

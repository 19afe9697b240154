//! What an array record stores about its layout: levels, descriptors and address ranges (D9).
//!
//! Purpose: plain values, compared and encoded as they are; whether they hold together is
//! checked when a [`crate::Layout`] is built of them.

use core::fmt;
use core::str::FromStr;

/// The level of an array, as users name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Drives one behind the other, no redundancy.
    Jbod,
    /// Strips over all drives, no redundancy.
    Raid0,
    /// The same data on every drive.
    Raid1,
    /// One parity strip per stripe.
    Raid5,
    /// Two parity strips per stripe.
    Raid6,
    /// Strips over pairs of drives that hold the same data.
    Raid10,
}

impl Level {
    /// Every level.
    pub const ALL: [Self; 6] =
        [Self::Jbod, Self::Raid0, Self::Raid1, Self::Raid5, Self::Raid6, Self::Raid10];

    /// Fewest drives the level can be made of.
    pub const fn min_drives(self) -> u16 {
        match self {
            Self::Jbod | Self::Raid0 | Self::Raid1 => 2,
            Self::Raid5 => 3,
            Self::Raid6 | Self::Raid10 => 4,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Jbod => "jbod",
            Self::Raid0 => "0",
            Self::Raid1 => "1",
            Self::Raid5 => "5",
            Self::Raid6 => "6",
            Self::Raid10 => "10",
        })
    }
}

/// The text names no level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotLevel;

impl fmt::Display for NotLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a level: use 0, 1, 5, 6, 10 or jbod")
    }
}

impl core::error::Error for NotLevel {}

impl FromStr for Level {
    type Err = NotLevel;

    fn from_str(text: &str) -> Result<Self, NotLevel> {
        Ok(match text {
            "jbod" => Self::Jbod,
            "0" => Self::Raid0,
            "1" => Self::Raid1,
            "5" => Self::Raid5,
            "6" => Self::Raid6,
            "10" => Self::Raid10,
            _ => return Err(NotLevel),
        })
    }
}

/// How a stripe's redundancy is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CodeKind {
    /// No redundancy, `m` is 0.
    None,
    /// `k` is 1 and the `m` further strips are copies of it.
    Mirror,
    /// `m` parity strips: P, or P and Q.
    Parity,
}

/// How the strips of a stripe move over the drives of a group from stripe to stripe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rotation {
    /// Strip `i` lies on drive `i` of the group, in every stripe.
    None,
    /// Linux md's default for parity levels.
    LeftSymmetric,
}

/// The descriptor version this code maps: `width = k + m`, no permutation, no spare strips.
pub const DESCRIPTOR_VERSION: u16 = 1;
/// Parity code id of groups without parity.
pub const CODE_ID_NONE: u16 = 0;
/// Parity code id of md's P and Q: GF(2^8), polynomial 0x11d, generator 2.
pub const CODE_ID_MD: u16 = 1;

/// How one address range is laid out. Stored in the array record, one per range (D9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Descriptor {
    /// How redundancy is made.
    pub code: CodeKind,
    /// Which formulas apply; see [`DESCRIPTOR_VERSION`].
    pub version: u16,
    /// Data strips of a stripe.
    pub k: u16,
    /// Redundant strips of a stripe.
    pub m: u16,
    /// Drives of a group.
    pub width: u16,
    /// Groups over which the range's stripes go round robin.
    pub groups: u16,
    /// How strips move over the drives.
    pub rotation: Rotation,
    /// Strips per stripe kept free for rebuilding; 0 in version 1.
    pub spare_strips: u16,
    /// Seed of the permutation; 0 in version 1.
    pub seed: u64,
    /// Bytes of a strip.
    pub strip_bytes: u32,
    /// Which parity code; see [`CODE_ID_NONE`] and [`CODE_ID_MD`].
    pub code_id: u16,
}

impl Descriptor {
    /// A version 1 descriptor of `groups` groups of `k + m` drives.
    pub const fn new(code: CodeKind, k: u16, m: u16, groups: u16, strip_bytes: u32) -> Self {
        let parity = matches!(code, CodeKind::Parity);
        Self {
            code,
            version: DESCRIPTOR_VERSION,
            k,
            m,
            width: k + m,
            groups,
            rotation: if parity { Rotation::LeftSymmetric } else { Rotation::None },
            spare_strips: 0,
            seed: 0,
            strip_bytes,
            code_id: if parity { CODE_ID_MD } else { CODE_ID_NONE },
        }
    }
}

/// A run of array addresses with one layout. Stored in the array record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// First array address, bytes.
    pub array_start: u64,
    /// Array bytes of the range, a whole number of rows.
    pub array_bytes: u64,
    /// Slot of the first drive; group `g` of the range uses `width` slots from
    /// `first_slot + g * width`.
    pub first_slot: u16,
    /// Number of the range's first group in the array.
    pub first_group: u16,
    /// Where the range begins in the data area of each of its drives, bytes.
    pub drive_start: u64,
    /// How the range is laid out.
    pub descriptor: Descriptor,
}

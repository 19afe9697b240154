//! What cores and the keeper of the region map tell each other.

use crate::stripe::table::Origin;
use core::ops::Range;
use units::{CoreId, GroupNo};

/// Some bits of a region of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bits {
    /// The group.
    pub group: GroupNo,
    /// The region.
    pub region: u64,
    /// Which bits.
    pub bits: u64,
}

/// To the keeper, on the manager's core.
#[derive(Debug)]
pub enum ToKeeper {
    /// A write wants to begin: answer when the bit's band is written and its region granted.
    Prepare {
        /// The group.
        group: GroupNo,
        /// The bit within the group.
        bit: u64,
        /// Whom to answer and grant to.
        origin: Origin,
    },
    /// These bits shall read as zeros: answer when that is durable, and drives were told that they
    /// may discard them.
    Clear {
        /// The group.
        group: GroupNo,
        /// The bits within the group; none: answer when all that was withdrawn before is durable.
        bits: Range<u64>,
        /// Whom to answer.
        origin: Origin,
    },
    /// A core gives grants back.
    GaveUp {
        /// Which core.
        core: CoreId,
        /// Group, region, and serial number of the newest grant it had.
        regions: Vec<(GroupNo, u64, u64)>,
    },
    /// A core has done what [`ToCore::Written`], [`ToCore::Withdraw`] or [`ToCore::Cleared`] said.
    Done,
}

/// To every core, from the keeper.
#[derive(Clone, Debug)]
pub enum ToCore {
    /// These bits are written from now on; say when you know.
    Written(Vec<Bits>),
    /// These bits are unwritten, and grants of their regions void up to a serial number; say when
    /// nothing is under way there.
    Withdraw(Vec<Bits>, u64),
    /// That these bits are unwritten is durable; say when you know.
    Cleared(Vec<Bits>),
    /// You may write in this region.
    Grant {
        /// The group.
        group: GroupNo,
        /// The region.
        region: u64,
        /// Grows with every grant.
        serial: u64,
    },
    /// Give back the grants that you have not used since the last time.
    Sweep,
}

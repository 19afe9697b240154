//! The one table of what the engine can't do yet, so that the trials don't ask it.
//!
//! Each row says what is left out and why. docs/reliability.md shows the same rows; a row that is
//! switched on needs nothing but its `false` turned into `true` here.

/// Something that trials may ask of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ability {
    /// What it is.
    pub name: &'static str,
    /// Whether the engine has it.
    pub there: bool,
    /// Why not, or what the trials do instead.
    pub reason: &'static str,
}

/// A drive that answers nothing for longer than any bound.
pub const HUNG_DRIVES: Ability = Ability {
    name: "hung drives",
    there: true,
    reason: "some hang for longer than the deadline, and what they were asked runs late",
};
/// Crash while a parity group is degraded, without loss.
pub const DEGRADED_CRASH: Ability = Ability {
    name: "crash while degraded (RAID 5 and 6)",
    there: true,
    reason: "with a region map, by the redo journal; else the start is refused, and the trials \
             check that it is",
};
/// Discards that reach drives.
pub const DRIVE_DISCARD: Ability = Ability {
    name: "discard on drives",
    there: true,
    reason: "of arrays with a region map; the others write zeros for a discard",
};
/// A drive that was out comes back and is caught up.
pub const CATCH_UP: Ability = Ability {
    name: "catch-up of a returned drive",
    there: true,
    reason: "of arrays with a region map; without one it is filled whole when a person puts it \
             back, and stays out until then",
};
/// Arrays with a region map.
pub const REGION_MAP: Ability = Ability {
    name: "region map (format version 2)",
    there: true,
    reason: "three of four arrays have one",
};
/// Which drive is wrong is named by a scrub.
pub const SCRUB_NAMES: Ability = Ability {
    name: "scrub names the guilty drive",
    there: true,
    reason: "with P and Q, or three copies and more; else a repair changes nothing unless told",
};

/// The table.
pub const ALL: [Ability; 6] =
    [REGION_MAP, HUNG_DRIVES, DEGRADED_CRASH, DRIVE_DISCARD, CATCH_UP, SCRUB_NAMES];

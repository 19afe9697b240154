//! A region map as the command line's JSON has it.

use serde::{Deserialize, Serialize};

/// What an array's region map says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RegionMap {
    /// Bytes of the array that were ever written, in whole bands.
    pub written_bytes: u64,
    /// Regions in which writes may be under way, or that owe a resync.
    pub dirty_regions: u64,
    /// Pages that no drive had when the array started.
    pub lost_pages: u64,
    /// Where that is.
    #[serde(default)]
    pub parts: RegionParts,
}

/// A region map in few parts: neighbours in the order of groups and regions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RegionParts {
    /// Regions of each part; the last one may have fewer.
    pub regions: u64,
    /// How much of each part was ever written: 0 to 100.
    pub written_percents: Vec<u8>,
    /// How many regions of each part are dirty.
    pub dirty_regions: Vec<u64>,
}

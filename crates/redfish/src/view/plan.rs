//! Plans: what a change would do, before it is done.

use serde::{Deserialize, Serialize};

/// What a change would do.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// Always true.
    pub dry_run: bool,
    /// The array that would be made, if one would.
    #[serde(flatten, skip_serializing_if = "Option::is_none", default)]
    pub array: Option<PlannedArray>,
    /// The drives that it is about.
    pub drives: Vec<PlannedDrive>,
    /// What would be done, in order; a line each.
    #[serde(default)]
    pub steps: Vec<String>,
    /// What would be lost; a line each. Empty if it destroys nothing.
    #[serde(default)]
    pub lost: Vec<String>,
}

/// An array that would be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedArray {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: String,
    /// Strip size.
    pub strip_bytes: u32,
    /// Block size.
    pub block_bytes: u32,
    /// Usable bytes it would have.
    pub size_bytes: u64,
}

/// A drive that a change is about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PlannedDrive {
    /// Its slot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slot: Option<u16>,
    /// Its path.
    pub path: String,
    /// Its serial number.
    pub serial: String,
    /// Its size.
    pub bytes: u64,
    /// What is on it.
    #[serde(default)]
    pub content: Option<String>,
    /// What is on it and would be destroyed.
    pub destroys: Option<String>,
    /// True when the request would be refused because of it.
    pub refused: bool,
}

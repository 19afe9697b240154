//! What changes are answered where that is no resource, as both sides see it.
//!
//! | Request | Answer |
//! |---|---|
//! | POST StoragePools with `Palisade-Plan: only` | 200, [`Planned`] |
//! | DELETE of a pool whose records may come back | 200, [`Left`] |
//! | `PalisadeDrive.Wipe` | 200, [`Wiped`] |
//! | `PalisadeStorage.FindDrives` | 200, [`Found`] |
//! | `PalisadeLogService.Verify` | 200, [`Verified`] |

use crate::view;
use serde::{Deserialize, Serialize};

/// The header that asks for a plan instead of a change; its value is `only`.
pub const PLAN_HEADER: &str = "palisade-plan";

/// What a change would do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Planned {
    /// It.
    pub plan: Plan,
}

/// What making an array would do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Plan {
    /// The array's name.
    pub name: String,
    /// Its level.
    pub level: String,
    /// Strip size.
    pub strip_size_bytes: u32,
    /// Block size.
    pub block_size_bytes: u32,
    /// Usable bytes it would have.
    pub capacity_bytes: u64,
    /// The drives it would take.
    pub drives: Vec<PlannedDrive>,
}

/// A drive that an array would take.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct PlannedDrive {
    /// Its slot.
    pub slot: u16,
    /// Its path.
    pub path: String,
    /// Its serial number.
    pub serial_number: String,
    /// Its size.
    pub capacity_bytes: u64,
    /// What is on it and would be destroyed.
    pub destroys: Option<String>,
    /// Whether the request would be refused because of it.
    pub refused: bool,
}

impl From<&view::Plan> for Planned {
    fn from(plan: &view::Plan) -> Self {
        let drive = |drive: &view::PlannedDrive| PlannedDrive {
            slot: drive.slot,
            path: drive.path.clone(),
            serial_number: drive.serial.clone(),
            capacity_bytes: drive.bytes,
            destroys: drive.destroys.clone(),
            refused: drive.refused,
        };
        let plan = Plan {
            name: plan.name.clone(),
            level: plan.level.clone(),
            strip_size_bytes: plan.strip_bytes,
            block_size_bytes: plan.block_bytes,
            capacity_bytes: plan.size_bytes,
            drives: plan.drives.iter().map(drive).collect(),
        };
        Self { plan }
    }
}

impl From<Planned> for view::Plan {
    fn from(Planned { plan }: Planned) -> Self {
        let drive = |drive: PlannedDrive| view::PlannedDrive {
            slot: drive.slot,
            path: drive.path,
            serial: drive.serial_number,
            bytes: drive.capacity_bytes,
            destroys: drive.destroys,
            refused: drive.refused,
        };
        Self {
            dry_run: true,
            name: plan.name,
            level: plan.level,
            strip_bytes: plan.strip_size_bytes,
            block_bytes: plan.block_size_bytes,
            size_bytes: plan.capacity_bytes,
            drives: plan.drives.into_iter().map(drive).collect(),
        }
    }
}

/// Slots of a deleted array whose drives may still hold a record.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Left {
    /// Each with its drive's serial number.
    pub left: Vec<String>,
}

/// A drive's records are erased.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Wiped {
    /// What was on it.
    pub held: Option<String>,
}

/// The drives at the paths that were named, in their order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Found {
    /// Their URIs.
    pub drives: Vec<Link>,
}

/// Leads to a resource.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Link {
    /// Its URI.
    #[serde(rename = "@odata.id")]
    pub uri: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_told_and_read_back() {
        let drive = view::PlannedDrive {
            slot: 1,
            path: "/dev/nvme1n1".to_owned(),
            serial: "S1".to_owned(),
            bytes: 1 << 40,
            destroys: Some("ext4".to_owned()),
            refused: true,
        };
        let plan = view::Plan {
            dry_run: true,
            name: "tank".to_owned(),
            level: "6".to_owned(),
            strip_bytes: 65536,
            block_bytes: 512,
            size_bytes: 2 << 40,
            drives: vec![drive],
        };
        let text = serde_json::to_string(&Planned::from(&plan)).expect("encodes");
        assert!(text.starts_with(r#"{"Plan":{"Name":"tank","Level":"6","StripSizeBytes":65536"#));
        let read: Planned = serde_json::from_str(&text).expect("reads");
        assert_eq!(view::Plan::from(read), plan);
    }
}

/// What a log is found to be.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Verified {
    /// Lines that were read.
    pub lines: u64,
    /// The number of the first of them.
    pub first: Option<u64>,
    /// The number of the last of them.
    pub last: Option<u64>,
    /// Where the chain breaks, and why; empty where it is whole.
    pub breaks: Vec<String>,
}

impl From<view::Verified> for Verified {
    fn from(view::Verified { lines, first, last, breaks }: view::Verified) -> Self {
        Self { lines, first, last, breaks }
    }
}

impl From<Verified> for view::Verified {
    fn from(Verified { lines, first, last, breaks }: Verified) -> Self {
        Self { lines, first, last, breaks }
    }
}

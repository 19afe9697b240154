//! What changes are answered where that is no resource, as both sides see it.
//!
//! | Request | Answer |
//! |---|---|
//! | any, with `Palisade-Plan: only` | 200, [`Planned`] |
//! | one that destroys data, without its token | 403 or 412; [`Planned`] beside `error` |
//! | DELETE of a pool whose records may come back | 200, [`Left`] |
//! | `PalisadeDrive.Wipe` | 200, [`Wiped`] |
//! | `PalisadeManager.Discover` | 200, [`Discovered`] |
//! | `PalisadeManager.Connect` | 200, [`Connected`] |
//! | `PalisadeStorage.FindDrives` | 200, [`Found`] |
//! | `PalisadeServiceConditions.Test` | 200, [`Tested`] |
//! | `CertificateService.GenerateCSR` | 200, [`CertificateRequest`] |
//! | `PalisadeLogService.Verify` | 200, [`Verified`] |

use crate::dates;
use crate::view;
use serde::{Deserialize, Serialize};

/// The header that asks for a plan instead of a change; its value is `only`.
pub const PLAN_HEADER: &str = "palisade-plan";

/// The header that confirms a planned change; its value is the token of the plan.
pub const CONFIRM_HEADER: &str = "palisade-confirm";

/// What a change would do, and what has it done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Planned {
    /// It.
    pub plan: Plan,
    /// Confirms it, in the header `Palisade-Confirm` of the same request: once.
    pub token: String,
    /// When the token ends.
    pub expires: String,
}

impl Planned {
    /// A plan, and its token, which ends at a moment in seconds since 1970.
    pub fn new(plan: &view::Plan, token: String, ends: u64) -> Self {
        Self { plan: Plan::from(plan), token, expires: dates::text(ends) }
    }
}

/// What a change would do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Plan {
    /// The array that it would make, if it would.
    #[serde(flatten, skip_serializing_if = "Option::is_none", default)]
    pub array: Option<PlannedArray>,
    /// The drives that it is about.
    pub drives: Vec<PlannedDrive>,
    /// What would be done, in order.
    pub steps: Vec<String>,
    /// What would be lost; empty if it destroys nothing.
    pub lost: Vec<String>,
}

/// An array that would be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct PlannedArray {
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
}

/// A drive that a change is about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct PlannedDrive {
    /// Its slot.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slot: Option<u16>,
    /// Its path.
    pub path: String,
    /// Its serial number.
    pub serial_number: String,
    /// Its size.
    pub capacity_bytes: u64,
    /// What is on it.
    pub content: Option<String>,
    /// What is on it and would be destroyed.
    pub destroys: Option<String>,
    /// Whether the request would be refused because of it.
    pub refused: bool,
}

impl From<&view::Plan> for Plan {
    fn from(plan: &view::Plan) -> Self {
        let array = |array: &view::PlannedArray| PlannedArray {
            name: array.name.clone(),
            level: array.level.clone(),
            strip_size_bytes: array.strip_bytes,
            block_size_bytes: array.block_bytes,
            capacity_bytes: array.size_bytes,
        };
        let drive = |drive: &view::PlannedDrive| PlannedDrive {
            slot: drive.slot,
            path: drive.path.clone(),
            serial_number: drive.serial.clone(),
            capacity_bytes: drive.bytes,
            content: drive.content.clone(),
            destroys: drive.destroys.clone(),
            refused: drive.refused,
        };
        Self {
            array: plan.array.as_ref().map(array),
            drives: plan.drives.iter().map(drive).collect(),
            steps: plan.steps.clone(),
            lost: plan.lost.clone(),
        }
    }
}

impl From<Plan> for view::Plan {
    fn from(plan: Plan) -> Self {
        let array = |array: PlannedArray| view::PlannedArray {
            name: array.name,
            level: array.level,
            strip_bytes: array.strip_size_bytes,
            block_bytes: array.block_size_bytes,
            size_bytes: array.capacity_bytes,
        };
        let drive = |drive: PlannedDrive| view::PlannedDrive {
            slot: drive.slot,
            path: drive.path,
            serial: drive.serial_number,
            bytes: drive.capacity_bytes,
            content: drive.content,
            destroys: drive.destroys,
            refused: drive.refused,
        };
        Self {
            dry_run: true,
            array: plan.array.map(array),
            drives: plan.drives.into_iter().map(drive).collect(),
            steps: plan.steps,
            lost: plan.lost,
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

/// A request for a certificate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CertificateRequest {
    /// PKCS#10, as PEM.
    #[serde(rename = "CSRString")]
    pub text: String,
    /// Where the certificate will be.
    pub certificate_collection: Link,
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
            slot: Some(1),
            path: "/dev/nvme1n1".to_owned(),
            serial: "S1".to_owned(),
            bytes: 1 << 40,
            content: Some("ext4".to_owned()),
            destroys: Some("ext4".to_owned()),
            refused: true,
        };
        let array = view::PlannedArray {
            name: "tank".to_owned(),
            level: "6".to_owned(),
            strip_bytes: 65536,
            block_bytes: 512,
            size_bytes: 2 << 40,
        };
        let mut plan = view::Plan {
            dry_run: true,
            array: Some(array),
            drives: vec![drive],
            steps: vec!["make it".to_owned()],
            lost: vec!["all".to_owned()],
        };
        let told = Planned::new(&plan, "t".to_owned(), 0);
        let text = serde_json::to_string(&told).expect("encodes");
        assert!(text.starts_with(r#"{"Plan":{"Name":"tank","Level":"6","StripSizeBytes":65536"#));
        assert!(text.ends_with(r#""Token":"t","Expires":"1970-01-01T00:00:00Z"}"#), "{text}");
        let read: Planned = serde_json::from_str(&text).expect("reads");
        assert_eq!(view::Plan::from(read.plan), plan);
        // One that makes no array.
        plan.array = None;
        let text = serde_json::to_string(&Planned::new(&plan, "t".to_owned(), 0)).expect("encodes");
        assert!(text.starts_with(r#"{"Plan":{"Drives":"#), "{text}");
        let read: Planned = serde_json::from_str(&text).expect("reads");
        assert_eq!(view::Plan::from(read.plan), plan);
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

/// What came of a test of who is told of alerts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tested {
    /// Recipients of mail, and receivers.
    pub recipients: Vec<TestedOne>,
}

/// What came of a test of one of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TestedOne {
    /// The URI, of a receiver without its path.
    pub destination: String,
    /// Whether it took the test.
    pub delivered: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

/// What a discovery service tells.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Discovered {
    /// Grows with each change of what it tells.
    pub generation: u64,
    /// Where subsystems are, and other discovery services.
    pub entries: Vec<DiscoveredEntry>,
}

/// Where a subsystem is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DiscoveredEntry {
    /// `nvme`, `discovery` (this one) or `referral` (another discovery service).
    pub subsystem_type: String,
    /// The subsystem's name.
    #[serde(rename = "SubsystemNQN")]
    pub subsystem_nqn: String,
    /// The address.
    pub address: String,
    /// The TCP port.
    pub port: String,
    /// The port's number there.
    #[serde(rename = "PortID")]
    pub port_id: u16,
}

/// What is connected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Connected {
    /// The names of the drives that are there: `nvme://NQN/NSID`.
    pub drives: Vec<String>,
}

//! What Redfish lacks, as typed objects: each stands under `Oem.Palisade` of a standard resource.
//!
//! Purpose: the comments of these types are the descriptions in the schemas that the service
//! serves, and the types are read back by clients. Words are those of [`crate::view`], written as
//! Redfish writes enumerations. Sizes are bytes.
//!
//! Invariant: what a standard property says is not said here again.

use crate::view;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod alerts;
mod events;
mod fabric;
mod hardware;
mod history;
mod log;
mod manager;
mod metrics;
mod owner;
mod remote;
mod share;
mod shelf;
mod words;

pub use alerts::{Alert, ServiceConditions};
pub use events::EventDestination;
pub use fabric::{Client, Connection, Endpoint, Fabric, Host, ServiceHealth};
pub use hardware::{
    Chassis, DriveMetrics, DrivePower, DrivePowerState, DriveTimes, EnclosureSlot, Fan, Hardware,
    Module, ModulePort, PcieLink,
};
pub use history::{MetricReport, Series};
pub use log::{Ending, LogEntry};
pub use manager::{CoreTime, Kept, Manager, Memory, Next, ON, OPEN, Parity};
pub use metrics::{Requests, VolumeMetrics};
pub use owner::Owner;
pub use remote::RemotePath;
pub use share::{FileShare, FileSystem, ShareProtocol, ShareUser};
pub use shelf::{Shelf, ShelfBay, ShelfPart, ShelfPort};
pub use words::{
    ArrayState, DriveState, ExportKind, Health, Hindrance, IscsiServer, JobEnd, PathAccess,
    PathState, Protocol, ServiceState, ShelfKind, ShelfState, ShelfUnit, SlotState, TaskKind,
    TaskState, UnreadableReason,
};

/// An object that extends a standard resource.
pub trait Extension: Serialize + DeserializeOwned + JsonSchema {
    /// The resource's type, such as `StoragePool`.
    const OF: &'static str;

    /// Its own type, as `@odata.type` says it.
    fn odata_type() -> String {
        format!("#Palisade{0}.v1_0_0.{0}", Self::OF)
    }
}

/// What stands at `Oem`.
pub fn wrapped<T: Extension>(extension: &T) -> Value {
    let mut own = serde_json::to_value(extension).unwrap_or_default();
    if let Some(own) = own.as_object_mut() {
        own.insert("@odata.type".to_owned(), Value::String(T::odata_type()));
    }
    json!({"Palisade": own})
}

/// What stands at `Oem` of a resource.
pub fn of<T: Extension>(resource: &Value) -> Result<T, view::Error> {
    let own = resource.pointer("/Oem/Palisade").unwrap_or(&Value::Null);
    T::deserialize(own).map_err(|error| {
        let id = resource.get("@odata.id").and_then(Value::as_str).unwrap_or("an answer");
        crate::read::strange(&format!("{id}: Oem.Palisade: {error}"))
    })
}

/// A reference to a resource.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The resource's URI.
    #[serde(rename = "@odata.id")]
    pub id: String,
}

/// What a pool has beside what Redfish says of it: a pool is an array.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct StoragePool {
    /// The array's level: `0`, `1`, `5`, `6`, `10` or `jbod`.
    pub level: String,
    /// How the array is.
    pub state: ArrayState,
    /// The size of a strip.
    pub strip_size_bytes: u32,
    /// The size of a block.
    pub block_size_bytes: u32,
    /// The epoch's counter. It rises whenever the set of drives in use changes.
    pub epoch: u64,
    /// Whether writes may have been under way at the last record.
    pub unclean: bool,
    /// Whether the array would start by itself after a crash at this moment, had the crash cost no
    /// drive; absent while it does not run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub crash_safe: Option<bool>,
    /// Why the array does not run, when it was found and could not be started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// Whether other servers may reach the array's drives.
    #[serde(default)]
    pub shared: bool,
    /// Which server has the array, if it is shared and one has it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owner: Option<Owner>,
    /// What an administrator should see to.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The array's slots, in order.
    pub slots: Vec<Slot>,
    /// The array's jobs that have not ended.
    #[serde(default)]
    pub jobs: Vec<Link>,
    /// What the last finished scrub found; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_scrub: Option<Scrub>,
    /// What can't be given back, by volume and offset; neighbours of one reason are one range.
    #[serde(default)]
    pub unreadable: Vec<Unreadable>,
    /// What the region map says; absent while the array does not run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub region_map: Option<RegionMap>,
    /// What was asked of the drives, by slot.
    #[serde(default)]
    pub drive_requests: Vec<DriveRequests>,
}

impl Extension for StoragePool {
    const OF: &'static str = "StoragePool";
}

/// What an account has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ManagerAccount {
    /// Which of all passwords that were ever given the account has. A new one has a higher number.
    pub password_generation: u64,
}

impl Extension for ManagerAccount {
    const OF: &'static str = "ManagerAccount";
}

/// One slot of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Slot {
    /// Which, from 0.
    pub slot: u16,
    /// How it is.
    pub state: SlotState,
    /// Its drive, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub drive: Option<Link>,
    /// The path of its drive, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The serial number of its drive; absent if none is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub serial_number: Option<String>,
    /// Reads of its drive that met unreadable blocks since the array started.
    #[serde(default)]
    pub read_errors: u64,
    /// Runs of unreadable blocks that were recovered and written back.
    #[serde(default)]
    pub rewritten: u64,
    /// Stripes in which scrubs found its strip to be wrong since the array started.
    #[serde(default)]
    pub wrong_strips: u64,
    /// Requests to its drive that failed otherwise since the array started, timeouts included.
    #[serde(default)]
    pub failures: u64,
    /// Requests to its drive that were not done within the deadline.
    #[serde(default)]
    pub timeouts: u64,
    /// The first of these failures: why the drive was taken out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// Requests to the drive, which is out, may still be carried out: until they have ended it is
    /// not written again.
    #[serde(default)]
    pub quarantined: bool,
}

/// What a finished scrub found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Scrub {
    /// Bytes compared.
    pub checked_bytes: u64,
    /// Written bytes that could not be compared, as a drive was missing; absent once the array was
    /// started again.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uncompared_bytes: Option<u64>,
    /// Stripes whose parity or copies did not agree with the data, or could not be read.
    pub mismatches: u64,
    /// Stripes repaired.
    pub repaired: u64,
    /// Stripes of which nobody can know which strip is wrong. They are left as they are unless a
    /// scrub is told to trust the data.
    #[serde(default)]
    pub unlocated: u64,
    /// Stripes with blocks that could neither be read nor recovered.
    #[serde(default)]
    pub unreadable: u64,
    /// When it ended.
    #[schemars(extend("format" = "date-time"))]
    pub end_time: String,
}

/// A range of a volume whose reads fail.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Unreadable {
    /// The volume's name.
    pub volume: String,
    /// The first byte within the volume.
    pub offset_bytes: u64,
    /// How many bytes.
    pub length_bytes: u64,
    /// Why.
    pub reason: UnreadableReason,
}

/// What an array's region map says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct RegionMap {
    /// Bytes of the array that were ever written, in whole bands.
    pub written_bytes: u64,
    /// Regions in which writes may be under way, or that owe a resync.
    pub dirty_regions: u64,
    /// Pages that no drive had when the array started.
    pub lost_pages: u64,
    /// Where in the array that is.
    #[serde(default)]
    pub parts: RegionParts,
}

/// A region map in at most 256 parts: neighbours in the order of groups and regions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct RegionParts {
    /// Regions of each part; the last one may have fewer.
    pub regions: u64,
    /// How much of each part was ever written, in percent: 0 only where nothing was.
    #[serde(default)]
    pub written_percents: Vec<u8>,
    /// How many regions of each part are dirty.
    #[serde(default)]
    pub dirty_regions: Vec<u64>,
}

/// What the daemon asked of a slot's drive since it opened the drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct DriveRequests {
    /// Which slot.
    pub slot: u16,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Times that a request was asked again after an error that passes.
    #[serde(default)]
    pub retries: u64,
}

impl From<&view::DriveIo> for DriveRequests {
    fn from(io: &view::DriveIo) -> Self {
        Self {
            slot: io.slot,
            reads: io.reads,
            writes: io.writes,
            flushes: io.flushes,
            read_bytes: io.read_bytes,
            write_bytes: io.write_bytes,
            retries: io.retries,
        }
    }
}

impl From<DriveRequests> for view::DriveIo {
    fn from(own: DriveRequests) -> Self {
        Self {
            slot: own.slot,
            reads: own.reads,
            writes: own.writes,
            flushes: own.flushes,
            read_bytes: own.read_bytes,
            write_bytes: own.write_bytes,
            retries: own.retries,
        }
    }
}

/// What a volume has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Volume {
    /// The name of its array.
    pub array: String,
    /// Bytes of it that can't be given back.
    #[serde(default)]
    pub unreadable_bytes: u64,
}

impl Extension for Volume {
    const OF: &'static str = "Volume";
}

/// What a drive has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Drive {
    /// Its path.
    pub path: String,
    /// What the daemon makes of it.
    pub state: DriveState,
    /// Whether it is a file.
    #[serde(default)]
    pub is_file: bool,
    /// Its World Wide Identifier, as the kernel has it.
    #[serde(rename = "WWID", skip_serializing_if = "Option::is_none", default)]
    pub wwid: Option<String>,
    /// The name of the array that it belongs to, or whose record it holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub array: Option<String>,
    /// Its slot there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slot: Option<u16>,
    /// What is on it, if that is not Palisade's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signature: Option<String>,
    /// Why it can't be used.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// It as a device.
    #[serde(default)]
    pub hardware: Hardware,
    /// The identifier of 128 bits of a namespace behind NVMe over Fabrics.
    #[serde(rename = "NGUID", skip_serializing_if = "Option::is_none", default)]
    pub nguid: Option<String>,
    /// Its UUID.
    #[serde(rename = "UUID", skip_serializing_if = "Option::is_none", default)]
    pub uuid: Option<String>,
    /// The paths to it, if it is behind NVMe over Fabrics.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub paths: Option<Vec<RemotePath>>,
}

impl Extension for Drive {
    const OF: &'static str = "Drive";
}

/// What a job has beside what Redfish says of it: a job is a task of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Job {
    /// The name of its array.
    pub array: String,
    /// The identity of its array.
    #[serde(rename = "ArrayUUID")]
    pub array_uuid: String,
    /// Its array; absent once that is gone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub storage_pool: Option<Link>,
    /// What the task does.
    pub kind: TaskKind,
    /// How the task is, or was when last seen.
    pub state: TaskState,
    /// How it ended; absent before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end: Option<JobEnd>,
    /// Whether it waits for another job of its array to end.
    #[serde(default)]
    pub waiting: bool,
    /// Bytes per drive done.
    pub done_bytes: u64,
    /// Bytes per drive in all.
    pub total_bytes: u64,
    /// How long it will take by its rate of the last half minute; absent while nothing is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seconds_left: Option<u64>,
    /// Where and why it can't go on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// What kind of problem that is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hindrance: Option<Hindrance>,
}

impl Extension for Job {
    const OF: &'static str = "Job";
}

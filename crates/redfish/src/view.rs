//! What the daemon knows, and what it is asked to change, in the words of the product.
//!
//! Purpose: Redfish's resources are made of a [`View`] and read back to it; requests become the
//! types here. The command line prints what is read back (`--json`): every answer is an object with
//! `"schema": 1`, and sizes are bytes as integers.
//!
//! Invariant: from the first release on keys are only ever added; a change of meaning is a new
//! [`SCHEMA`].

mod export;
mod owner;
mod plan;
mod regions;
mod remote;
mod share;

pub use crate::access::{Access, Account, AccountList};
pub use crate::counters::Counters;
pub use crate::events::Shown;
pub use crate::hardware::{
    Alert, Alerts, DrivePlace, DrivePower, DrivePowerState, Enclosure, EnclosureSlot, Fan,
    Hardware, Health, Measures, Module, NetworkPort, PcieLink, Reason, Sensor, Smart, Supply,
    Surroundings,
};
pub use crate::history::Past;
pub use crate::https::{Certificate, Https, Named, Problem};
pub use crate::inspected::Inspected;
pub use crate::log::{Ending, Entry, Log, Verified};
pub use crate::messages::{Error, ErrorCode};
pub use crate::requests::{
    AssembleArray, CreateArray, CreateExport, CreateFc, CreateIscsi, CreateVolume, FailDrive,
    IscsiServer, LocalExport, NamedDrive, ReplaceDrive, ResizeVolume, ScrubArray, WipeDrive,
};
pub use crate::shelf::{
    Shelf, ShelfBay, ShelfKind, ShelfPart, ShelfPort, ShelfState, ShelfUnit, Silence,
};
pub use export::{
    Client, Connection, Export, ExportHealth, ExportKind, FcExport, FcPort, IscsiExport,
    NvmeExport, ServiceState,
};
pub use owner::Owner;
pub use plan::{Plan, PlannedArray, PlannedDrive};
pub use regions::{RegionMap, RegionParts};
pub use remote::{PathAccess, PathState, Remote, RemotePath};
use serde::{Deserialize, Serialize};
pub use share::{
    CreateShare, FileSystem, Format, Protocol, SetShare, SetShareUser, Share, ShareProtocol,
    ShareUser, UserChange,
};
use std::sync::Arc;

/// Version of every answer.
pub const SCHEMA: u32 = 1;

/// Where the daemon listens unless told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/palisade/palisade.sock";

/// An answer: `schema` and the keys of what is answered, in one object.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Answer<T> {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// The rest of the keys.
    #[serde(flatten)]
    pub body: T,
}

impl<T> Answer<T> {
    /// An answer of the present version.
    pub const fn new(body: T) -> Self {
        Self { schema: SCHEMA, body }
    }
}

/// Nothing to tell but that it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// Always true.
    pub done: bool,
}

/// Everything that the daemon knows at a moment: what answers are made of. Nobody is asked for it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct View {
    /// The machine that the daemon runs on.
    pub server: Server,
    /// The daemon, and all arrays.
    pub status: Status,
    /// All drives, by path.
    pub drives: Vec<KnownDrive>,
    /// Background work that goes on, and that of the last day.
    pub jobs: Vec<Job>,
    /// Accounts and sessions.
    pub access: Arc<Access>,
    /// The audit log.
    pub log: Arc<Log>,
    /// Changes that take long, and those that did and whose answers are kept.
    pub tasks: Vec<SlowRequest>,
    /// HTTPS, and its certificate.
    pub https: Arc<Https>,
    /// What was counted since the daemon's start.
    pub counters: Arc<Counters>,
    /// The last events, and who is told of them.
    pub events: Arc<Shown>,
    /// Fibre Channel ports.
    pub ports: Vec<FcPort>,
    /// What is around the drives.
    pub surroundings: Arc<Surroundings>,
    /// What is wrong now.
    pub alerts: Arc<Alerts>,
    /// What charts show. It goes on while a view is read.
    pub past: Past,
}

impl View {
    /// The drive of this identifier.
    pub fn drive(&self, id: &str) -> Option<&KnownDrive> {
        self.drives.iter().find(|drive| drive.id == id)
    }

    /// The array of this UUID.
    pub fn array(&self, uuid: &str) -> Option<&Array> {
        self.status.arrays.iter().find(|array| array.uuid.eq_ignore_ascii_case(uuid))
    }

    /// The volume of this UUID, and its array.
    pub fn volume(&self, uuid: &str) -> Option<(&Array, &Volume)> {
        self.status.arrays.iter().find_map(|array| {
            let volume = array.volumes.iter().find(|own| own.uuid.eq_ignore_ascii_case(uuid))?;
            Some((array, volume))
        })
    }

    /// The shared file system of the volume of this UUID, and its array.
    pub fn file_system(&self, uuid: &str) -> Option<(&Array, &FileSystem)> {
        self.status.arrays.iter().find_map(|array| {
            let mut all = array.filesystems.iter();
            Some((array, all.find(|own| own.volume_uuid.eq_ignore_ascii_case(uuid))?))
        })
    }

    /// The job of this identifier.
    pub fn job(&self, id: &str) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }
}

/// The machine that the daemon runs on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// What identifies the service for ever.
    pub uuid: String,
    /// Now, in seconds since 1970.
    pub now: u64,
    /// When the daemon was started, in seconds since 1970.
    pub since: u64,
    /// Whether changes that destroy data need the token of their plan.
    pub confirms: bool,
    /// Whether everybody may read `/metrics`; else one has to log in.
    pub open_metrics: bool,
}

/// A drive, and how it is named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownDrive {
    /// Names it for ever: from its WWID, else its serial number, else its path.
    pub id: String,
    /// Its World Wide Identifier, as the kernel has it.
    pub wwid: Option<String>,
    /// Its model, as the kernel has it.
    pub model: Option<String>,
    /// Whether it is a file.
    pub is_file: bool,
    /// What is known of it.
    pub drive: Drive,
    /// It as a device.
    pub hardware: Arc<Hardware>,
    /// How it is reached, if it is behind a fabric.
    pub remote: Option<Arc<Remote>>,
}

/// Background work of an array.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Names it; never used again.
    pub id: String,
    /// The array's identity.
    pub array: String,
    /// The task, as it is, or was when last seen.
    pub task: Task,
    /// When it was first seen, in seconds since 1970.
    pub began: u64,
    /// When it ended, and how.
    pub ended: Option<(u64, JobEnd)>,
}

/// A change that takes longer than its client waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowRequest {
    /// Names it; never used again.
    pub id: String,
    /// The method of HTTP.
    pub method: String,
    /// What it was asked of.
    pub uri: String,
    /// When it was found to take long, in seconds since 1970.
    pub began: u64,
    /// When it ended, and whether it was done.
    pub ended: Option<(u64, bool)>,
}

/// How background work ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobEnd {
    /// It came to its end.
    Completed,
    /// A person ended it.
    Cancelled,
    /// Its array was stopped, or lost what it needs.
    Interrupted,
}

/// Everything at a glance.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// The daemon's version.
    pub version: String,
    /// The daemon's process.
    pub pid: u32,
    /// Data cores.
    pub cores: u16,
    /// Whether start-up is over.
    pub ready: bool,
    /// What computes parity.
    pub parity: Parity,
    /// Whether the daemon goes on where memory is short.
    pub memory: Memory,
    /// All arrays, running or found.
    pub arrays: Vec<Array>,
    /// What a person should do; empty where all is well.
    #[serde(default)]
    pub next: Vec<Next>,
    /// What the daemon keeps that is not on the drives.
    #[serde(default)]
    pub state: Kept,
}

/// What the daemon keeps that is not on the drives.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// The state directory. Without one the daemon serves on its socket only, and the audit log
    /// ends with it.
    pub directory: Option<String>,
    /// Why it can't be used or written.
    pub problem: Option<String>,
}

/// Something that a person should see to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Next {
    /// What happened, one line.
    pub what: String,
    /// What to do, one line: with the command where there is one.
    #[serde(rename = "do")]
    pub action: String,
}

/// What the kernel grants a daemon that memory may be written out to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Memory {
    /// Whether threads that need memory wait for nobody's I/O (`PR_SET_IO_FLUSHER`).
    pub io_flusher: bool,
    /// Whether memory that was touched is never taken away (`mlockall`).
    pub locked: bool,
    /// Whether it is not locked because a GPU may be used.
    pub left_to_gpu: bool,
    /// What was refused, and what would allow it.
    pub problem: Option<String>,
}

/// What computes parity.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Parity {
    /// Where jobs go: `cpu`, `gpu`, or `auto`, where each costs less.
    pub placement: String,
    /// The CPU's kernel.
    pub kernel: String,
    /// The GPU, if one was opened.
    pub gpu: Option<String>,
    /// Why a GPU is not used that is there.
    pub problem: Option<String>,
    /// Whether parity that the GPU computed may be wrong.
    #[serde(default)]
    pub gpu_suspect: bool,
    /// Jobs that the GPU did since the daemon's start.
    pub gpu_jobs: u64,
    /// Bytes that these read.
    pub gpu_bytes: u64,
    /// Jobs that it was given and that the CPU did in the end.
    pub gpu_undone: u64,
    /// Jobs that both did, and that were compared.
    pub gpu_checked: u64,
    /// Bytes of I/O memory that it reaches by itself.
    pub gpu_shared_bytes: u64,
    /// Bytes of memory that are kept from use, as a GPU that hung may write to them yet.
    pub gpu_kept_bytes: u64,
}

/// How an array is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrayState {
    /// All drives count.
    Optimal,
    /// Redundancy is less than it should be; all data is there.
    Degraded,
    /// More drives are missing than redundancy covers.
    Failed,
    /// Found on drives, not running.
    #[default]
    Stopped,
}

/// How a slot is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlotState {
    /// Its drive counts.
    InSync,
    /// Its drive is being filled.
    Rebuilding,
    /// Its drive was taken out of service.
    Failed,
    /// Its drive is not there.
    Missing,
}

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskKind {
    /// Fills a replaced drive.
    Rebuild,
    /// Makes parity and copies right after a crash.
    Resync,
    /// Compares parity and copies with the data.
    Scrub,
}

impl TaskKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Rebuild, Self::Resync, Self::Scrub];

    /// Its word, as names of tasks have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rebuild => "rebuild",
            Self::Resync => "resync",
            Self::Scrub => "scrub",
        }
    }
}

/// How a task is. Tasks that ended are not listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// It goes on.
    Running,
    /// It can't go on; `problem` says why. It tries again from time to time.
    Stuck,
    /// It waits until it is told to go on, also over restarts.
    Paused,
}

/// Why a task is stuck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hindrance {
    /// A drive can't read blocks that no other drive can give.
    Unreadable,
    /// Drives are missing, or their redundancy is not right yet.
    Unavailable,
    /// The list of lost blocks is full.
    ListFull,
}

/// One slot of an array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SlotInfo {
    /// Which, from 0.
    pub slot: u16,
    /// Path of its drive, if there is one.
    pub drive: Option<String>,
    /// Serial number of its drive.
    pub serial: String,
    /// How it is.
    pub state: SlotState,
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
    /// Requests to the drive, which is out, may still be carried out: until they have ended it
    /// is not written again.
    #[serde(default)]
    pub quarantined: bool,
}

/// A task of an array that has not ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Names it: `ARRAY:KIND`. Two rebuilds of an array, of which one waits, have one name.
    #[serde(default)]
    pub id: String,
    /// What it does.
    pub kind: TaskKind,
    /// Bytes per drive done.
    pub done_bytes: u64,
    /// Bytes per drive in all.
    pub total_bytes: u64,
    /// How far it is, from 0 to 1.
    #[serde(default)]
    pub progress: f64,
    /// How long it will take by its rate of the last half minute; null while nothing is known.
    #[serde(default)]
    pub seconds_left: Option<u64>,
    /// How it is.
    pub state: TaskState,
    /// Where and why it can't go on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// What kind of problem that is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hindrance: Option<Hindrance>,
}

/// What the last finished scrub found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LastScrub {
    /// Bytes compared.
    pub checked_bytes: u64,
    /// Written bytes that could not be compared, as a drive was missing; null once the array was
    /// started again.
    #[serde(default)]
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
    /// When it ended, seconds since 1970.
    #[serde(default)]
    pub ended: u64,
}

/// Why a range can't be given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnreadableReason {
    /// A drive can't read it now and nothing else gives it. If that changes it is there again.
    Media,
    /// Lost: a drive was rebuilt while another could not read what that needed.
    Rebuild,
    /// Lost: a resync needed blocks that a drive could not read.
    Resync,
    /// Lost: blocks of its stripe were written while nothing could give it.
    Write,
    /// Lost: it was being written at a crash after which its drive was gone.
    Crash,
}

/// A range of a volume whose reads fail. What is lost is data again as soon as it is written anew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unreadable {
    /// The volume's name in the array.
    pub volume: String,
    /// First byte within the volume.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Why.
    pub reason: UnreadableReason,
}

/// All tasks that have not ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskList {
    /// By array; first those that run.
    pub tasks: Vec<Task>,
}

/// What the daemon asked of a slot's drive since it opened it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DriveIo {
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

/// An array, running or found.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uuid: String,
    /// `0`, `1`, `5`, `6`, `10` or `jbod`.
    pub level: String,
    /// How it is.
    pub state: ArrayState,
    /// Strip size.
    pub strip_bytes: u32,
    /// Block size.
    pub block_bytes: u32,
    /// Usable bytes.
    pub size_bytes: u64,
    /// Usable bytes that no volume has.
    pub free_bytes: u64,
    /// The epoch's counter.
    pub epoch: u64,
    /// Whether writes may have been under way at the last record.
    pub unclean: bool,
    /// Whether it would start by itself after a crash at this moment, had the crash cost no drive;
    /// absent while it does not run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub crash_safe: Option<bool>,
    /// Why it does not run, when it was found and could not be started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// Whether other servers may reach its drives.
    #[serde(default)]
    pub shared: bool,
    /// Who has it, if it is shared and somebody has it; else null.
    #[serde(default)]
    pub owner: Option<Owner>,
    /// What an administrator should see to.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<String>,
    /// Its slots.
    pub slots: Vec<SlotInfo>,
    /// Tasks that run.
    pub tasks: Vec<Task>,
    /// What the last finished scrub found; null before the first.
    pub last_scrub: Option<LastScrub>,
    /// What can't be given back, by volume and offset; neighbours of one reason are one range.
    #[serde(default)]
    pub unreadable: Vec<Unreadable>,
    /// What its region map says; absent while the array does not run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub region_map: Option<RegionMap>,
    /// What was asked of the drives.
    pub drive_io: Vec<DriveIo>,
    /// Its volumes.
    pub volumes: Vec<Volume>,
    /// Its exports.
    pub exports: Vec<Export>,
    /// File systems of its volumes that are shared.
    #[serde(default)]
    pub filesystems: Vec<FileSystem>,
}

/// All arrays.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArrayList {
    /// Running and found ones.
    pub arrays: Vec<Array>,
}

/// An array is deleted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Deleted {
    /// Always true.
    pub done: bool,
    /// Slots whose drives could not be read or were not there: should one of them come back with
    /// its record, it shows up as a stopped array.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left: Vec<String>,
}

/// A volume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Volume {
    /// Its array.
    pub array: String,
    /// Its name in the array.
    pub name: String,
    /// Its identity.
    pub uuid: String,
    /// Its size.
    pub size_bytes: u64,
}

/// All volumes of running arrays.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VolumeList {
    /// By array, then name.
    pub volumes: Vec<Volume>,
}

/// All exports of running arrays.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExportList {
    /// By array, then number.
    pub exports: Vec<Export>,
}

/// What the daemon makes of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveState {
    /// Part of a running array.
    InUse,
    /// Holds the record of an array that does not run.
    Found,
    /// Excluded by a running array, or holds an old record of one.
    Failed,
    /// Holds something that is not Palisade's.
    Foreign,
    /// Holds nothing known.
    Free,
    /// Can't be opened or read.
    Unusable,
}

/// A drive that the daemon knows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Drive {
    /// Its path.
    pub path: String,
    /// Its serial number.
    pub serial: String,
    /// Its size.
    pub bytes: u64,
    /// Its block.
    pub block_bytes: u32,
    /// What the daemon makes of it.
    pub state: DriveState,
    /// The array it belongs to.
    pub array: Option<String>,
    /// Its slot there.
    pub slot: Option<u16>,
    /// What is on it, if that is not Palisade's.
    pub signature: Option<String>,
    /// Why it can't be used.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
}

/// All drives that the daemon knows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DriveList {
    /// By path.
    pub drives: Vec<Drive>,
}

/// A drive's records are erased.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wiped {
    /// Always true.
    pub done: bool,
    /// What was on it.
    pub held: Option<String>,
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;

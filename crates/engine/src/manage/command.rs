//! What the control plane asks of the engine, and what it is told.
//!
//! Requests go as mail to the manager's core; each carries the function that takes its answer, so
//! that the engine needs no channels of anybody's runtime. Answers may come much later (drives take
//! their time); nothing waits for them inside the engine.

use crate::array::message::ArrayId;
pub use crate::array::message::Repair;
use core::fmt;
use format::{AssembleError, AssembleOptions, ExportAddress, FormatError, LastScrub, LostReason};
use io::DriveError;
use layout::{LayoutError, Level};
use std::sync::Arc;
use units::{GroupNo, Nanos, Slot, Uuid, format_size};

pub use super::errors::ErrorCounts;
use super::feed::Feed;
use crate::watch::Lease;

/// Takes the answer to a request.
pub type Reply<T> = Box<dyn FnOnce(Result<T, ManageError>) + Send>;

/// A drive that the control plane has opened, exclusively, for the engine.
#[derive(Clone)]
pub struct DriveRef<S> {
    /// What each core makes its handle from.
    pub shared: S,
    /// How people name it.
    pub path: String,
    /// Its serial number, or what stands for one.
    pub serial: String,
    /// Whether it is a regular file (exempt from rounding down, D9).
    pub is_file: bool,
}

/// What a new array shall be.
#[derive(Clone, Debug)]
pub struct NewArray {
    /// Its name, unique on this host.
    pub name: String,
    /// Its level.
    pub level: Level,
    /// Strip size in bytes.
    pub strip_bytes: u32,
    /// Block size in bytes; `None`: the largest of its drives'.
    pub block_bytes: Option<u32>,
    /// Other servers may reach its drives. So they may those behind a fabric, whatever this says.
    pub shared: bool,
}

/// Who has shared arrays on this server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The host: the same from start to start, and no other's.
    pub host: Uuid,
    /// Another one with each start of the machine.
    pub boot: Uuid,
    /// What people call it.
    pub name: String,
    /// How often it says that it lives.
    pub heartbeat: Nanos,
}

/// A size that a volume is to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewSize {
    /// In bytes.
    pub bytes: u64,
    /// Whether the volume may become smaller by it.
    pub shrink: Shrink,
}

/// Whether a volume may become smaller when the request is carried out; another may have changed
/// its size since somebody looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shrink {
    /// It may not.
    Never,
    /// If it has this size still.
    From(u64),
    /// Whatever it loses.
    Always,
}

impl From<u64> for NewSize {
    fn from(bytes: u64) -> Self {
        Self { bytes, shrink: Shrink::Always }
    }
}

/// Which volume of an array is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhichVolume {
    /// The one of this name, whichever that is when the request is carried out.
    Named(String),
    /// The one of this identity, and no other that has taken its name.
    Is(Uuid),
}

impl From<&str> for WhichVolume {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

impl From<Uuid> for WhichVolume {
    fn from(uuid: Uuid) -> Self {
        Self::Is(uuid)
    }
}

impl fmt::Display for WhichVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => name.fmt(f),
            Self::Is(uuid) => uuid.fmt(f),
        }
    }
}

/// How far an array may go to start.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartOptions {
    /// Start though drives are missing that no record says failed.
    pub start_degraded: bool,
    /// Start though unclean and degraded: blocks being written at the crash may be wrong. Or though
    /// batches of the journal are gone: what they may have said is listed as lost. Or though the
    /// newest records of drives are, without redundancy: what only they said is forgotten.
    pub accept_loss: bool,
    /// Take a shared array that another server had, once that shows no sign of life any more.
    pub take_over: bool,
    /// A person says that no other server runs that reaches the drives.
    pub others_are_off: bool,
}

impl StartOptions {
    /// No farther than it starts by itself.
    pub const NONE: Self =
        Self { start_degraded: false, accept_loss: false, take_over: false, others_are_off: false };

    /// What an assembly needs of them.
    pub(crate) const fn assemble(self) -> AssembleOptions {
        let Self { start_degraded, accept_loss, .. } = self;
        AssembleOptions { start_degraded, accept_loss }
    }
}

/// A request. Arrays are named as people name them, or by their identities.
pub enum Request<S> {
    /// Make an array on drives whose content may be destroyed.
    Create(NewArray, Vec<DriveRef<S>>, Reply<ArrayStatus>),
    /// Start the one array that these drives hold (more may be given than belong to it; with
    /// `name`, the array of that name or identity).
    Assemble(Option<String>, Vec<DriveRef<S>>, StartOptions, Reply<Vec<ArrayStatus>>),
    /// Finish what runs, record a clean stop, let go of the drives.
    Stop(String, Reply<()>),
    /// Stop and erase the records.
    Delete(String, Reply<()>),
    /// Take drives (each by path, serial or `slot:N`) out of service: all of them, or none where
    /// data would be lost.
    Fail(String, Vec<String>, Reply<ArrayStatus>),
    /// Whether all data is there without all of these drives (by path, serial or `slot:N`).
    CanSpare(String, Vec<String>, Reply<bool>),
    /// Put another drive in a slot and rebuild it.
    Replace(String, Slot, DriveRef<S>, Reply<ArrayStatus>),
    /// Put the drive back in a slot that was there until it went, and give it what it missed. One
    /// that is not as it was then is refused, and nothing of it is written.
    Return(String, Slot, DriveRef<S>, Reply<ArrayStatus>),
    /// Compare all parity and copies with the data; with `true` repair them.
    Scrub(String, Repair, Reply<ArrayStatus>),
    /// Have a kind of task of an array wait, go on or end; with a number, if the task that has it
    /// has not ended. Then only that one ends; others of its kind wait and go on with it.
    Task(String, TaskKind, Option<u64>, TaskAction, Reply<ArrayStatus>),
    /// Make a volume (array, name, bytes).
    VolumeCreate(String, String, u64, Reply<VolumeStatus>),
    /// Change a volume's size (array, volume).
    VolumeResize(String, WhichVolume, NewSize, Reply<VolumeStatus>),
    /// Delete a volume that has no exports (array, volume).
    VolumeDelete(String, WhichVolume, Reply<()>),
    /// Record an export of a volume (array, volume); answers with its number.
    ExportCreate(String, WhichVolume, ExportAddress, Reply<ExportStatus>),
    /// Record what an export that is recorded is from now on (array, number).
    ExportSet(String, u32, ExportAddress, Reply<ExportStatus>),
    /// Forget an export (array, number).
    ExportDelete(String, u32, Reply<()>),
    /// Say who has shared arrays here, before there is one.
    Identify(Identity, Reply<()>),
    /// Tell of all arrays, and from now on in this feed of what changes.
    Feed(Arc<Feed<Change>>, Reply<Vec<ArrayStatus>>),
    /// Tell of all arrays.
    Status(Reply<Vec<ArrayStatus>>),
}

/// How an array is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrayState {
    /// All drives count, and all redundancy is right.
    Optimal,
    /// Redundancy is less than it should be, or not yet made right after a crash.
    Degraded,
    /// Data can't be given back: more drives are missing than redundancy covers.
    Failed,
}

impl fmt::Display for ArrayState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Optimal => "optimal",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        })
    }
}

/// How a slot is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotHealth {
    /// Its drive counts.
    InSync,
    /// Its drive is being filled.
    Rebuilding,
    /// Its drive was taken out of service.
    Failed,
    /// Its drive was not there when the array started.
    Missing,
}

/// One slot of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotStatus {
    /// Which.
    pub slot: Slot,
    /// Path of its drive, if there is one.
    pub path: Option<String>,
    /// Serial number of its drive, as recorded.
    pub serial: String,
    /// How it is.
    pub health: SlotHealth,
    /// What went wrong with its drive since the array started.
    pub errors: ErrorCounts,
    /// Its drive is out, though the array can't do without it: it counts again when the array is
    /// assembled with it, and holds what nothing else does.
    pub left_behind: bool,
    /// Its drive is out, and requests to it are under way that may still be carried out: it is
    /// not written again before they have ended (D16).
    pub quarantined: bool,
}

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskKind {
    /// Fills a replaced drive.
    Rebuild,
    /// Makes parity and copies right after a crash.
    Resync,
    /// Compares parity and copies with the data.
    Scrub,
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rebuild => "rebuild",
            Self::Resync => "resync",
            Self::Scrub => "scrub",
        })
    }
}

/// What a person wants of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskAction {
    /// It waits, also after a restart.
    Pause,
    /// It goes on.
    Resume,
    /// It ends: a rebuild leaves its drive out, a scrub finds nothing. A resync can't.
    Cancel,
}

/// Why a task can't go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hindrance {
    /// A drive can't read blocks that are needed, and the others do not give their content.
    Unreadable,
    /// Drives that are needed are missing, or their redundancy is not right yet.
    Unavailable,
    /// Blocks would have to be given up, and the list of lost ranges has no room for them.
    ListFull,
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "a drive can't read blocks that no other drive can give",
            Self::Unavailable => "drives are missing, or their redundancy is not right yet",
            Self::ListFull => "the list of lost blocks is full",
        })
    }
}

/// Where and why a task stopped. It tries again when the configuration changes, after a scrub,
/// and from time to time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stuck {
    /// Why.
    pub reason: Hindrance,
    /// The group.
    pub group: GroupNo,
    /// The first strip that is not right: bytes from the begin of each drive's data area.
    pub offset: u64,
}

/// A task that runs, is stuck or waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskStatus {
    /// Which it is: no other task of the engine ever has this number.
    pub number: u64,
    /// What it does.
    pub kind: TaskKind,
    /// Bytes (per drive) done.
    pub done_bytes: u64,
    /// Bytes (per drive) in all.
    pub total_bytes: u64,
    /// Where and why it can't go on, if it can't.
    pub stuck: Option<Stuck>,
    /// A person has told it to wait.
    pub paused: bool,
    /// How long it will take by its rate of the last half minute, if anything is known of that.
    pub seconds_left: Option<u64>,
}

/// How a task ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskEnd {
    /// All is done.
    Completed,
    /// A person ended it.
    Cancelled,
    /// What it worked on is there no more.
    Interrupted,
}

/// A task that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndedTask {
    /// Which it was.
    pub number: u64,
    /// How it ended.
    pub end: TaskEnd,
}

/// One volume of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeStatus {
    /// Its name within the array.
    pub name: String,
    /// Its identity.
    pub uuid: Uuid,
    /// Its size.
    pub bytes: u64,
}

/// One export of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportStatus {
    /// Its number, unique in the array.
    pub id: u32,
    /// The volume.
    pub volume: Uuid,
    /// The volume's name.
    pub volume_name: String,
    /// Where it is served.
    pub address: ExportAddress,
}

/// A range of a volume that nobody can give back at this time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableRange {
    /// The volume's name.
    pub volume: String,
    /// First byte within the volume.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// What lost it for good; `None`: a drive can't read it now, and nothing else gives it.
    pub reason: Option<LostReason>,
}

/// Some regions of an array that lie next to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RegionPart {
    /// How many they are.
    pub regions: u64,
    /// How much of them was ever written: 0 to 100, and 0 only where nothing was.
    pub written_percent: u8,
    /// How many of them are dirty.
    pub dirty_regions: u64,
}

/// What an array's region map says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionMapStatus {
    /// Bytes of the array that were ever written, in whole bands.
    pub written_bytes: u64,
    /// Regions in which writes may be under way, or that owe a resync.
    pub dirty_regions: u64,
    /// Pages that no drive had when the array started: what they stood for counts as written and
    /// was owed a resync. Bands that were never written may not read as zeros there.
    pub lost_pages: u64,
    /// All regions, group by group, in parts of the same size but for the last one.
    pub parts: Vec<RegionPart>,
}

/// Who has a shared array, which is this server.
#[derive(Clone, Debug)]
pub struct OwnerStatus {
    /// It.
    pub identity: Arc<Identity>,
    /// Whether its drives may be changed.
    pub lease: Arc<Lease>,
    /// They may not at this time.
    pub is_held: bool,
    /// Another server has taken the array over: what people call that.
    pub taken_by: Option<String>,
}

impl PartialEq for OwnerStatus {
    fn eq(&self, other: &Self) -> bool {
        let told = |own: &Self| (own.is_held, own.taken_by.clone());
        Arc::ptr_eq(&self.lease, &other.lease) && told(self) == told(other)
    }
}

/// Everything about one array.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayStatus {
    /// Its name within the engine, to find it on a core.
    pub id: ArrayId,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uuid: Uuid,
    /// Its level.
    pub level: Level,
    /// How it is.
    pub state: ArrayState,
    /// Strip size in bytes.
    pub strip_bytes: u32,
    /// Block size in bytes.
    pub block_bytes: u32,
    /// What a volume best gives up as a whole: a band of each drive of a group that holds data.
    pub discard_bytes: u32,
    /// Usable bytes.
    pub size_bytes: u64,
    /// Usable bytes that no volume has.
    pub free_bytes: u64,
    /// The epoch's counter.
    pub epoch: u64,
    /// Whether any group is recorded as unclean.
    pub unclean: bool,
    /// Whether it would start by itself after a crash at this moment, had the crash cost no drive.
    pub crash_safe: bool,
    /// The slots.
    pub slots: Vec<SlotStatus>,
    /// Tasks that run or are stuck.
    pub tasks: Vec<TaskStatus>,
    /// The numbers of all tasks that have not ended, also of those that wait for another to end and
    /// are not listed.
    pub unended: Vec<u64>,
    /// The last tasks that ended, in order.
    pub ended: Vec<EndedTask>,
    /// What the last finished scrub found.
    pub last_scrub: Option<LastScrub>,
    /// Written bytes that the last scrub could not compare, as a drive was missing; `None`: it
    /// ended before the array was started.
    pub uncompared_bytes: Option<u64>,
    /// What can't be given back, by volume and offset.
    pub unreadable: Vec<UnreadableRange>,
    /// Its region map.
    pub region_map: RegionMapStatus,
    /// The volumes.
    pub volumes: Vec<VolumeStatus>,
    /// The exports.
    pub exports: Vec<ExportStatus>,
    /// Who has it, if it is shared.
    pub owner: Option<OwnerStatus>,
}

/// A piece of news.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// An array is there, or changed: this is how it is.
    Array(Box<ArrayStatus>),
    /// An array is there no more.
    Gone(ArrayId),
}

/// Why a request could not be carried out. The text says what happened; what to do about it is for
/// whoever speaks with people.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// No array of this name or identity runs.
    #[error("no running array is named \"{0}\"")]
    NoArray(String),
    /// No volume of this name.
    #[error("array \"{0}\" has no volume \"{1}\"")]
    NoVolume(String, String),
    /// No export of this number.
    #[error("array \"{0}\" has no export {1}")]
    NoExport(String, u32),
    /// The name is taken.
    #[error("the name \"{0}\" is already in use")]
    NameTaken(String),
    /// The name can't be used.
    #[error("\"{0}\" is not a valid name: a name has 1 to 64 letters, digits, '-', '_' or '.'")]
    BadName(String),
    /// The drives can't make this array.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Such a block size is not offered.
    #[error("a block size of {0} bytes is not supported")]
    BadBlock(u32),
    /// A size is no multiple of the block, or zero.
    #[error("a size of {0} bytes is not a positive multiple of the block size, {1} bytes")]
    BadSize(u64, u32),
    /// Not enough free bytes.
    #[error(
        "the array has {free} bytes free ({}), {wanted} are needed ({})",
        format_size(*free),
        format_size(*wanted)
    )]
    NoSpace {
        /// What was asked for.
        wanted: u64,
        /// What there is.
        free: u64,
    },
    /// The drive is not in the array.
    #[error("array \"{0}\" has no drive \"{1}\"")]
    NoDrive(String, String),
    /// No such slot.
    #[error("array \"{0}\" has no slot {1}")]
    NoSlot(String, Slot),
    /// The slot's drive still counts.
    #[error("the drive in slot {0} is in service")]
    SlotInUse(Slot),
    /// Failing it would lose data.
    #[error("without the drive in slot {0} the array would lose data")]
    WouldLose(Slot),
    /// The volume would become smaller by so many bytes, and nobody gave them up.
    #[error("this destroys the last {0} bytes of the volume")]
    WouldShrink(u64),
    /// A drive is gone that holds what no other can give; it must come back first.
    #[error("the drive in slot {0} is gone, and the array needs the data on it")]
    LeftBehind(Slot),
    /// What should be the slot's drive, back as it went, is another, or was written since.
    #[error("{path} is not the drive of slot {slot} as it was when it went")]
    NotAsItWent {
        /// The drive.
        path: String,
        /// The slot.
        slot: Slot,
    },
    /// A drive is too small for the array.
    #[error(
        "{path} is too small: it has {has} bytes, the array needs {needs} ({}) of each drive",
        format_size(*needs)
    )]
    TooSmall {
        /// The drive.
        path: String,
        /// Bytes it offers.
        has: u64,
        /// Bytes needed.
        needs: u64,
    },
    /// Its blocks are larger than the array's.
    #[error("{path} has a block size of {drive} bytes, the array has {array}")]
    BlockSize {
        /// The drive.
        path: String,
        /// The drive's block.
        drive: u32,
        /// The array's block.
        array: u32,
    },
    /// The array was stopped or deleted while it was being created.
    #[error("the creation of array \"{0}\" was stopped")]
    Cancelled(String),
    /// The format has no room for it, or forbids it.
    #[error("the array's record can't hold this: {0}")]
    Impossible(FormatError),
    /// The journal area has no room for a lane of each core.
    #[error(
        "the journal area of array \"{name}\" has room for {fit} data cores, the daemon has {cores}"
    )]
    TooManyCores {
        /// The array.
        name: String,
        /// Data cores of this engine.
        cores: u16,
        /// How many of them it has room for.
        fit: u16,
    },
    /// The array is being created.
    #[error("array \"{0}\" is being created")]
    BeingMade(String),
    /// Something runs that must end first.
    #[error("the array is busy: its {0} has not ended")]
    Busy(TaskKind),
    /// There is no such task.
    #[error("the array has no {0} that runs or is paused")]
    NoTask(TaskKind),
    /// A resync has to be done.
    #[error("a resync can't be cancelled: the array needs it to be redundant again")]
    NeededResync,
    /// The array can't do this in its state.
    #[error("the array is {0}")]
    State(ArrayState),
    /// The level has nothing to compare or rebuild.
    #[error("the array's level has no redundancy")]
    NoRedundancy,
    /// The volume is exported.
    #[error("volume \"{0}\" has exports")]
    Exported(String),
    /// A drive failed while the record was written.
    #[error("drive {0} failed: {1}")]
    Drive(String, DriveError),
    /// Requests to the drive never ended.
    #[error("{0} has not answered earlier requests: the drive may still carry them out")]
    Quarantined(String),
    /// The array is shared, and nobody said who this server is.
    #[error("array \"{0}\" is shared between servers, and this one has no host id")]
    NoIdentity(String),
    /// Another server has the array.
    #[error(
        "array \"{array}\" is in use by host {}{}",
        if host.is_empty() { id.to_string() } else { format!("{host} ({id})") },
        heartbeat_age_ms.map_or_else(String::new, |ms| {
            format!(", whose last heartbeat was {}.{} s ago", ms / 1_000, ms % 1_000 / 100)
        })
    )]
    Owned {
        /// The array.
        array: String,
        /// What people call the other server; empty if its pages don't say.
        host: String,
        /// Its host id.
        id: Uuid,
        /// How old its newest page is, by the clocks of both.
        heartbeat_age_ms: Option<u64>,
    },
    /// It may be in use, and its drives don't tell.
    #[error("array \"{0}\" may be in use by another server, and its drives can't tell")]
    NeedsOthersOff(String),
    /// Its drives have changed since they were read.
    #[error("another server had array \"{0}\" while it was being started here")]
    Meanwhile(String),
    /// Too few drives say that it is this server's.
    #[error("too few drives of array \"{0}\" could be marked as this server's")]
    Unconfirmed(String),
    /// The array can't be started.
    #[error("{0}")]
    Assemble(#[from] AssembleError),
    /// Batches of the journal that were durable are on no drive any more.
    #[error(
        "no drive has batches {first} to {last} of lane {lane} of the journal: acknowledged \
         writes may be lost"
    )]
    JournalGap {
        /// The lane.
        lane: u16,
        /// The first of them.
        first: u64,
        /// The last of them.
        last: u64,
    },
    /// No array was found.
    #[error("these drives hold no array that can be started")]
    NothingFound,
}

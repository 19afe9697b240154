//! How the engine's failures become messages: which one, with which arguments, and what to do where
//! that depends on more than the message.

use core::fmt::Display;
use drives::OpenError;
use engine::manage::command::{ManageError, StartOptions};
use format::AssembleError;
use layout::LayoutError;
use redfish::messages::{self as say, Entry};
use redfish::view::Error;
use units::format_size;

/// What to do about a drive that fails.
pub const CHECK_DRIVE: &str = "check the drive and its cabling";

/// A drive that was meant is not at its path any more.
pub fn another_drive(path: &str) -> Error {
    Error::new(&say::ANOTHER_DRIVE, &[&path])
}

/// Nobody says which drive is at a path.
pub fn unsure_drive(path: &str) -> Error {
    Error::new(&say::DRIVE_UNSURE, &[&path])
}

/// A drive that somebody has, and the daemon has not.
pub fn has_stranger(path: &str) -> Error {
    Error::new(&say::DRIVE_IN_USE, &[&path])
}

/// A drive, or what it holds, changed after a person agreed to overwrite it.
pub(crate) fn changed_drive(path: &str) -> Error {
    Error::new(&say::DRIVE_CHANGED, &[&path])
}

/// This server can't be told from others.
pub fn no_identity(why: &dyn Display) -> Error {
    Error::new(&say::SERVER_NOT_KNOWN, &[why])
}

/// Another server, by its name if that is known, and how old its heartbeat is.
pub fn host_words(name: &str, id: &dyn Display, age_ms: Option<u64>) -> String {
    let host = if name.is_empty() { id.to_string() } else { format!("{name} ({id})") };
    let age = age_ms
        .map(|ms| format!(", whose last heartbeat was {}.{} s ago", ms / 1_000, ms % 1_000 / 100));
    host + &age.unwrap_or_default()
}

/// What people are told of a request that the engine did not carry out.
pub fn told(error: &ManageError) -> Error {
    use ManageError as E;
    let new = Error::new;
    match error {
        E::NoArray(array) => new(&say::NO_RUNNING_ARRAY, &[array]),
        E::NoVolume(array, volume) => new(&say::NO_VOLUME, &[array, volume]),
        E::NoExport(array, number) => new(&say::NO_EXPORT, &[array, number]),
        E::NameTaken(name) => new(&say::NAME_TAKEN, &[name]),
        E::BadName(name) => new(&say::BAD_NAME, &[name]),
        E::Layout(why) => layout(why),
        E::BadBlock(bytes) => new(&say::BAD_BLOCK_SIZE, &[bytes]),
        E::BadSize(bytes, block) => new(&say::BAD_SIZE, &[bytes, block]),
        E::NoSpace { wanted, free } => {
            let sizes = [format_size(*free), format_size(*wanted)];
            new(&say::NO_SPACE, &[free, &sizes[0], wanted, &sizes[1]])
        }
        E::NoDrive(array, drive) => new(&say::NO_DRIVE_IN_ARRAY, &[array, drive]),
        E::NoSlot(array, slot) => new(&say::NO_SLOT, &[array, slot]),
        E::SlotInUse(slot) => new(&say::SLOT_IN_USE, &[slot]),
        E::WouldLose(slot) => new(&say::WOULD_LOSE_DATA, &[slot]),
        E::WouldShrink(bytes) => new(&say::SHRINK_LOSES, &[bytes]),
        E::LeftBehind(slot) => new(&say::DRIVE_NEEDED, &[slot]),
        E::NotAsItWent { path, slot } => new(&say::DRIVE_NOT_AS_IT_WENT, &[path, slot]),
        E::TooSmall { path, has, needs } => {
            new(&say::DRIVE_TOO_SMALL, &[path, has, needs, &format_size(*needs)])
        }
        E::BlockSize { path, drive, array } => new(&say::DRIVE_BLOCK_SIZE, &[path, drive, array]),
        E::Cancelled(array) => new(&say::CREATION_STOPPED, &[array]),
        E::Impossible(why) => new(&say::RECORD_CANNOT_HOLD, &[why]),
        E::TooManyCores { name, cores, fit } => {
            let entry = if *fit == 0 { &say::NO_ROOM_FOR_LANES } else { &say::TOO_MANY_CORES };
            new(entry, &[name, fit, cores])
        }
        E::BeingMade(array) => new(&say::BEING_CREATED, &[array]),
        E::Busy(task) => new(&say::ARRAY_BUSY, &[task]),
        E::NoTask(task) => new(&say::NO_TASK, &[task]),
        E::NeededResync => new(&say::RESYNC_NEEDED, &[]),
        E::State(state) => new(&say::WRONG_STATE, &[state]),
        E::NoRedundancy => new(&say::NO_REDUNDANCY, &[]),
        E::Exported(volume) => new(&say::VOLUME_EXPORTED, &[volume]),
        E::Drive(path, why) => new(&say::DRIVE_FAILED, &[path, why]),
        E::Quarantined(path) => new(&say::DRIVE_QUARANTINED, &[path]),
        E::NoIdentity(array) => new(&say::NO_HOST_ID, &[array]),
        E::Owned { array, host, id, heartbeat_age_ms } => {
            new(&say::ARRAY_OWNED, &[array, &host_words(host, id, *heartbeat_age_ms)])
        }
        E::NeedsOthersOff(array) => new(&say::NEEDS_OTHERS_OFF, &[array]),
        E::Meanwhile(array) => new(&say::OWNER_MEANWHILE, &[array]),
        E::Unconfirmed(array) => new(&say::OWNER_NOT_CONFIRMED, &[array]),
        E::Assemble(why) => not_assembled(why),
        E::JournalGap { lane, first, last } => new(&say::JOURNAL_GAP, &[first, last, lane]),
        E::NothingFound => new(&say::NO_ARRAY_FOUND, &[]),
    }
}

/// What people are told of an array that was not started with these options: the advice is whole
/// commands, which keep what was said already. [`Error::about`] puts the array's name in.
pub fn not_started(error: &ManageError, options: StartOptions) -> Error {
    let told = told(error);
    let StartOptions { start_degraded, accept_loss, take_over, others_are_off } = options;
    let said = [
        (start_degraded, " --start-degraded"),
        (accept_loss, " --accept-loss"),
        (take_over, " --take-over"),
        (others_are_off, " --other-server-is-off"),
    ];
    const COMMAND: &str = "assemble NAME";
    let mut hint = String::new();
    let mut parts = told.hint.split(COMMAND);
    hint.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (given, rest) = flags(part);
        let is_asked = |flag: &str| given.split(' ').any(|own| own == flag.trim_start());
        hint.push_str(COMMAND);
        for (is_said, flag) in said {
            // In one order, whichever was said first.
            if is_asked(flag) || is_said && !given.is_empty() {
                hint.push_str(flag);
            }
        }
        hint.push_str(rest);
    }
    told.advise(hint)
}

/// The flags that a text begins with, and the rest.
fn flags(text: &str) -> (&str, &str) {
    let mut end = 0;
    while let Some(rest) = text.get(end..).filter(|rest| rest.starts_with(" --")) {
        let is_flag = |c: char| c == '-' || c.is_ascii_lowercase();
        let length = rest.get(1..).and_then(|rest| rest.find(|c| !is_flag(c)));
        end += length.map_or(rest.len(), |length| 1 + length);
    }
    text.split_at(end)
}

/// What people are told of a drive that can't be opened.
pub fn not_opened(error: &OpenError) -> Error {
    match error {
        OpenError::System { path, error } => {
            Error::new(&say::DRIVE_NOT_OPENED, &[&path.display(), error])
        }
        OpenError::InUse { path } => Error::new(&say::DRIVE_IN_USE, &[&path.display()]),
        OpenError::NotADrive { path } => Error::new(&say::NOT_A_DRIVE, &[&path.display()]),
        OpenError::Remote { path, why } => {
            Error::new(&say::REMOTE_NOT_OPENED, &[&path.display(), why])
        }
        OpenError::Cloned { path, other } => {
            Error::new(&say::REMOTE_CLONED, &[&path.display(), &other.display()])
        }
        OpenError::Empty { path } => Error::new(&say::DRIVE_EMPTY, &[&path.display()]),
    }
}

fn layout(error: &LayoutError) -> Error {
    match error {
        LayoutError::Drives { .. } => Error::new(&say::LEVEL_DRIVES, &[error]),
        LayoutError::Strip(bytes) => Error::new(&say::BAD_STRIP, &[bytes]),
        LayoutError::DataBytes(bytes) => Error::new(&say::BAD_DATA_SIZE, &[bytes]),
        LayoutError::RangeCount(_) | LayoutError::Range { .. } => {
            Error::new(&say::BAD_LAYOUT, &[error])
        }
    }
}

fn not_assembled(error: &AssembleError) -> Error {
    use AssembleError as E;
    let new = Error::new;
    match error {
        E::NoRecord => new(&say::NO_RECORD, &[]),
        E::Foreign { first, second } => new(&say::DIFFERENT_ARRAYS, &[first, second]),
        E::Cloned { first, second, drive } => new(&say::DRIVE_COPIED, &[first, second, drive]),
        E::Diverged { newest, others } => new(&say::DIVERGED, &[&list(newest), &list(others)]),
        E::Swapped { path, own, named } => new(&say::DRIVE_SWAPPED, &[path, own, named]),
        E::Inconsistent { path, newest } => new(&say::RECORDS_DIFFER, &[path, newest]),
        E::BlockSize { path, drive, array } => new(&say::BLOCK_SIZE_CHANGED, &[path, drive, array]),
        E::ReadOnly { path } => new(&say::LATER_RELEASE, &[path]),
        E::CreationInterrupted { name } => new(&say::CREATION_INTERRUPTED, &[name]),
        E::TooManyMissing { group, tolerated, lacking } => {
            let set_back = lacking.iter().any(|missing| missing.set_back);
            let entry: &Entry =
                if set_back { &say::TOO_MANY_SET_BACK } else { &say::TOO_MANY_MISSING };
            new(entry, &[group, &lacking.len(), tolerated, &list(lacking)])
        }
        E::NeedsStartDegraded { missing } => new(&say::NEEDS_START_DEGRADED, &[&list(missing)]),
        E::NeedsAcceptLoss { groups } => new(&say::NEEDS_ACCEPT_LOSS, &[&list(groups)]),
        E::TailMissing { paths, instead: None } => {
            new(&say::NEWEST_RECORD_MISSING, &[&list(paths)])
        }
        E::TailMissing { paths, instead: Some(instead) } => {
            let told = new(&say::NEWEST_RECORD_NEEDED, &[&list(paths), instead]);
            match **instead {
                E::NeedsStartDegraded { .. } | E::Diverged { .. } => {
                    told.advise(not_assembled(instead).hint)
                }
                _ => told,
            }
        }
    }
}

fn list<T: Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;

//! How failures become answers: what happened, what to do, and which exit code it is.

use crate::api::{Error, ErrorCode};
use engine::manage::command::{ManageError, StartOptions};
use format::AssembleError;

/// What to do about a drive that fails.
pub const CHECK_DRIVE: &str = "check the drive and its cabling";

/// What people are told of a request that the engine did not carry out.
pub fn told(error: &ManageError) -> Error {
    let code = if protects(error) {
        ErrorCode::Refused
    } else if is_usage(error) {
        ErrorCode::Usage
    } else {
        ErrorCode::Failed
    };
    Error { hint: hint(error), error: error.to_string(), code }
}

/// What to do about a failure, one line; [`Error::about`] puts the array's name in.
fn hint(error: &ManageError) -> String {
    let text = match error {
        ManageError::NoArray(_) => "list arrays with: palisade array list",
        ManageError::NoVolume(..) => "list volumes with: palisade volume list",
        ManageError::NoExport(..) | ManageError::Exported(_) => {
            "list exports with: palisade export list; delete one with: palisade export delete ID"
        }
        ManageError::NameTaken(_) => "choose another name",
        ManageError::BadName(_) => "choose a name of these characters",
        ManageError::Layout(_) => "change --level, --strip or the number of drives",
        ManageError::BadBlock(_) => "use --block 512 or --block 4096",
        ManageError::BadSize(..) => "give a multiple of the block size",
        ManageError::NoSpace { .. } => {
            "choose a smaller size, or delete a volume with: palisade volume delete ARRAY/VOLUME"
        }
        ManageError::NoDrive(..) | ManageError::NoSlot(..) => {
            "list its drives with: palisade array show NAME"
        }
        ManageError::SlotInUse(slot) => {
            return format!("take it out first with: palisade array fail NAME --drive slot:{slot}");
        }
        ManageError::WouldLose(_) => {
            "replace the group's failed drives first: palisade array replace NAME --slot N \
             --with PATH"
        }
        ManageError::LeftBehind(_) => {
            "bring the drive back, then restart the array: palisade array stop NAME; palisade \
             array assemble NAME (its --help tells how to start without the drive)"
        }
        ManageError::TooSmall { .. } => "use a larger drive",
        ManageError::BlockSize { .. } => "use a drive whose block size is not larger",
        ManageError::Cancelled(_) => "its drives are free: create the array again",
        ManageError::Impossible(_) => "delete volumes or exports, or choose smaller values",
        ManageError::TooManyCores { fit: 0, .. } => "choose fewer drives or a smaller strip",
        ManageError::TooManyCores { fit, .. } => {
            return format!("set cores = {fit} in the daemon's configuration, then restart it");
        }
        ManageError::BeingMade(_) => {
            "wait until it is running, or stop it with: palisade array stop NAME"
        }
        ManageError::Busy(_) => "wait for it with: palisade array wait NAME",
        ManageError::NoTask(_) => "list tasks with: palisade task list",
        ManageError::NeededResync => "pause it with: palisade task pause NAME:resync",
        ManageError::State(_) => "see which drives are missing: palisade array show NAME",
        ManageError::NoRedundancy => "only arrays of level 1, 5, 6 and 10 scrub and rebuild",
        ManageError::Drive(..) => "check the drive and its cabling, or use another drive",
        ManageError::Quarantined(_) => {
            "wait until the drive answers, reset it, or use another drive"
        }
        ManageError::Assemble(_) | ManageError::JournalGap { .. } => {
            return start_hint(error, StartOptions::default());
        }
        ManageError::NothingFound => "see what each drive holds: palisade drive list",
    };
    text.to_owned()
}

/// Whether a request was refused to protect data, rather than failed.
fn protects(error: &ManageError) -> bool {
    matches!(
        error,
        ManageError::WouldLose(_)
            | ManageError::LeftBehind(_)
            | ManageError::SlotInUse(_)
            | ManageError::Assemble(_)
            | ManageError::JournalGap { .. }
            | ManageError::Exported(_)
            | ManageError::Quarantined(_)
    )
}

/// What to do about an array that was not started with these options; [`Error::about`] puts its
/// name in.
pub fn start_hint(error: &ManageError, options: StartOptions) -> String {
    match error {
        ManageError::Assemble(why) => advice(why, options),
        ManageError::JournalGap { .. } => format!(
            "bring missing drives back, or give up what was written last: {} (what may be wrong \
             is then listed as lost until it is written again)",
            assemble(options.start_degraded, true)
        ),
        error => hint(error),
    }
}

/// The command that starts an array with these options.
fn assemble(start_degraded: bool, accept_loss: bool) -> String {
    let degraded = if start_degraded { " --start-degraded" } else { "" };
    let loss = if accept_loss { " --accept-loss" } else { "" };
    format!("palisade array assemble NAME{degraded}{loss}")
}

/// What to do about an array that can't be started with these options: whole commands, where
/// [`Error::about`] puts the array's name.
fn advice(why: &AssembleError, options: StartOptions) -> String {
    let StartOptions { start_degraded, accept_loss } = options;
    let text = match why {
        AssembleError::NoRecord => "see what each drive holds: palisade drive list",
        AssembleError::Foreign { .. } => "assemble one array at a time, by its UUID",
        AssembleError::Cloned { .. } => "remove one of the two, or erase it: palisade drive wipe",
        AssembleError::Diverged { .. } => {
            return format!(
                "keep the drives of one part and remove the others, then: {}; replace those later",
                assemble(true, accept_loss)
            );
        }
        AssembleError::Swapped { .. } | AssembleError::Inconsistent { .. } => {
            "something else wrote the drive's record: remove the drive or erase it (palisade \
             drive wipe), then replace it"
        }
        AssembleError::BlockSize { .. } => {
            "give the drive its former block size, or copy it to a drive that has it; without the \
             drive the array starts if its redundancy covers it, and calls it failed"
        }
        AssembleError::ReadOnly { .. } => "use the release that wrote it",
        AssembleError::CreationInterrupted { .. } => {
            "delete it with: palisade array delete NAME --yes, then create it again"
        }
        AssembleError::TooManyMissing { lacking, .. } if lacking.iter().any(|m| m.set_back) => {
            "put the newer state of these drives back: they hold an old copy or snapshot, which \
             does not match the other drives"
        }
        AssembleError::TooManyMissing { .. } => "bring the missing drives back",
        AssembleError::NeedsStartDegraded { .. } => {
            return format!(
                "bring the drives back, or make sure that no other host uses them and start \
                 without them: {}",
                assemble(true, accept_loss)
            );
        }
        AssembleError::NeedsAcceptLoss { .. } => {
            return format!(
                "bring the missing drives back, or accept that blocks near the last writes may be \
                 wrong: {}",
                assemble(start_degraded, true)
            );
        }
        AssembleError::TailMissing { instead: None, .. } => {
            return format!(
                "give the drives their former size, or accept that the last changes are \
                 forgotten, such as a new volume: {}",
                assemble(start_degraded, true)
            );
        }
        AssembleError::TailMissing { instead: Some(instead), .. } => match **instead {
            AssembleError::NeedsStartDegraded { .. } | AssembleError::Diverged { .. } => {
                return advice(instead, options);
            }
            _ => "give the drives their former size, or bring the missing drives back",
        },
    };
    text.to_owned()
}

/// Whether the request could not be right whatever the state of arrays and drives.
fn is_usage(error: &ManageError) -> bool {
    matches!(
        error,
        ManageError::BadName(_)
            | ManageError::BadSize(..)
            | ManageError::BadBlock(_)
            | ManageError::Layout(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Slot;

    #[test]
    fn codes_follow_the_kind() {
        for (error, code) in [
            (ManageError::NoArray("x".into()), ErrorCode::Failed),
            (ManageError::BadName("/".into()), ErrorCode::Usage),
            (ManageError::WouldLose(Slot(1)), ErrorCode::Refused),
        ] {
            let error = told(&error);
            assert_eq!(error.code, code);
            assert!(!error.error.is_empty() && !error.hint.is_empty());
        }
    }

    #[test]
    fn advice_is_a_whole_command_that_keeps_what_was_said_already() {
        let degraded = StartOptions { start_degraded: true, accept_loss: false };
        let why = AssembleError::NeedsAcceptLoss { groups: vec![] };
        let hint = advice(&why, degraded);
        assert!(hint.ends_with("palisade array assemble NAME --start-degraded --accept-loss"));
        let error = Error { hint, ..told(&ManageError::Assemble(why)) }.about("data");
        assert!(error.hint.contains(" assemble data --start"), "{}", error.hint);
        let needed = |instead| AssembleError::TailMissing { paths: vec![], instead };
        let hint = advice(&needed(None), degraded);
        assert!(hint.ends_with("palisade array assemble NAME --start-degraded --accept-loss"));
        let missing = AssembleError::NeedsStartDegraded { missing: vec![] };
        let hint = advice(&needed(Some(missing.into())), StartOptions::default());
        assert!(hint.ends_with("palisade array assemble NAME --start-degraded"), "{hint}");
        let hint = advice(&needed(Some(AssembleError::NoRecord.into())), degraded);
        assert!(hint.contains("former size") && !hint.contains("--accept-loss"), "{hint}");
        let gap = ManageError::JournalGap { lane: 0, first: 1, last: 2 };
        let hint = start_hint(&gap, degraded);
        assert!(hint.contains("assemble NAME --start-degraded --accept-loss ("), "{hint}");
        let (name, cores, fit) = ("data".into(), 9, 4);
        let error = told(&ManageError::TooManyCores { name, cores, fit });
        assert!(error.hint.contains("cores = 4"), "{}", error.hint);
        let (name, fit) = ("data".into(), 0);
        let error = told(&ManageError::TooManyCores { name, cores, fit });
        assert!(!error.hint.contains("cores = 0"), "{}", error.hint);
        let error = told(&ManageError::SlotInUse(Slot(3))).about("data");
        assert!(error.hint.ends_with("palisade array fail data --drive slot:3"), "{}", error.hint);
    }
}

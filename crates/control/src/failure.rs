//! How failures become answers: what happened, what to do, and which exit code it is.

use crate::api::{Error, ErrorCode};
use engine::manage::command::{ManageError, StartOptions};
use format::AssembleError;

impl Error {
    /// It could not be done.
    pub fn failed(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: hint.into(), code: ErrorCode::Failed }
    }

    /// The request is wrong.
    pub fn usage(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: hint.into(), code: ErrorCode::Usage }
    }

    /// Refused to protect data.
    pub fn refused(error: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { error: error.into(), hint: hint.into(), code: ErrorCode::Refused }
    }

    /// Puts the array's name where the hint says `NAME`.
    pub fn about(self, array: &str) -> Self {
        Self { hint: self.hint.replace("NAME", array), ..self }
    }
}

impl From<ManageError> for Error {
    fn from(error: ManageError) -> Self {
        let hint = match &error {
            ManageError::Assemble(why) => advice(why, StartOptions::default()),
            ManageError::LeftBehind(_) => "bring the drive back, then: palisade array stop NAME; \
                                           palisade array assemble NAME (its --help says how \
                                           to start without)"
                .to_owned(),
            ManageError::SlotInUse(slot) => {
                format!("take it out first with: palisade array fail NAME --drive slot:{slot}")
            }
            other => other.hint(),
        };
        let code = if error.refused_for_safety() {
            ErrorCode::Refused
        } else if is_usage(&error) {
            ErrorCode::Usage
        } else {
            ErrorCode::Failed
        };
        Self { error: error.to_string(), hint, code }
    }
}

/// What to do about an array that can't be started with these options: whole commands, where
/// [`Error::about`] puts the array's name.
pub fn advice(why: &AssembleError, options: StartOptions) -> String {
    let assemble = |start_degraded, accept_loss| {
        let degraded = if start_degraded { " --start-degraded" } else { "" };
        let loss = if accept_loss { " --accept-loss" } else { "" };
        format!("palisade array assemble NAME{degraded}{loss}")
    };
    let StartOptions { start_degraded, accept_loss } = options;
    match why {
        AssembleError::Diverged { .. } => format!(
            "keep the drives of one history, take the others away, then: {}; replace them later",
            assemble(true, accept_loss)
        ),
        AssembleError::CreationInterrupted { .. } => {
            "delete it with: palisade array delete NAME --yes, and create it again".to_owned()
        }
        AssembleError::NeedsStartDegraded { .. } => format!(
            "bring the drives back, or make sure that they are not in use elsewhere and say: {}",
            assemble(true, accept_loss)
        ),
        AssembleError::NeedsAcceptLoss { .. } => format!(
            "bring the missing drives back, or accept that blocks near the last writes may be \
             wrong: {}",
            assemble(start_degraded, true)
        ),
        AssembleError::TailMissing { instead: None, .. } => format!(
            "give the drives their former size, or accept that what only the missing records said \
             is forgotten, such as a volume that was made last: {}",
            assemble(start_degraded, true)
        ),
        AssembleError::TailMissing { instead: Some(instead), .. } => match **instead {
            AssembleError::NeedsStartDegraded { .. } | AssembleError::Diverged { .. } => {
                advice(instead, options)
            }
            _ => why.advice().to_owned(),
        },
        other => other.advice().to_owned(),
    }
}

/// Whether the request could not be right whatever the state of arrays and drives.
fn is_usage(error: &ManageError) -> bool {
    matches!(error, ManageError::BadName(_) | ManageError::BadSize(..) | ManageError::Layout(_))
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
            let error = Error::from(error);
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
        let error = Error { hint, ..ManageError::Assemble(why).into() }.about("data");
        assert!(error.hint.contains(" assemble data --start"), "{}", error.hint);
        let needed = |instead| AssembleError::TailMissing { paths: vec![], instead };
        let hint = advice(&needed(None), degraded);
        assert!(hint.ends_with("palisade array assemble NAME --start-degraded --accept-loss"));
        let missing = AssembleError::NeedsStartDegraded { missing: vec![] };
        let hint = advice(&needed(Some(missing.into())), StartOptions::default());
        assert!(hint.ends_with("palisade array assemble NAME --start-degraded"), "{hint}");
        let hint = advice(&needed(Some(AssembleError::NoRecord.into())), degraded);
        assert!(hint.contains("former size") && !hint.contains("--accept-loss"), "{hint}");
        let error = Error::from(ManageError::SlotInUse(Slot(3))).about("data");
        assert!(error.hint.ends_with("palisade array fail data --drive slot:3"), "{}", error.hint);
    }
}

//! How failures become answers: what happened, what to do, and which exit code it is.

use crate::api::{Error, ErrorCode};
use engine::manage::command::ManageError;

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
}

impl From<ManageError> for Error {
    fn from(error: ManageError) -> Self {
        let hint = match &error {
            ManageError::Assemble(why) => why.advice().to_owned(),
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
}

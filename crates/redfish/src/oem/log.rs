//! What a line of the audit log has beside what Redfish says of it.

use super::Extension;
use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a line of the audit log has beside what Redfish says of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct LogEntry {
    /// Which line, from 1.
    pub number: u64,
    /// An account, a user of the machine, or the daemon.
    pub who: String,
    /// From where: `socket`, or an address; empty for the daemon.
    pub from: String,
    /// Method and URI of the request; empty for the daemon.
    pub request: String,
    /// What was asked for, in words.
    pub what: String,
    /// What came of it.
    pub result: Ending,
    /// The number of the line that said that this would begin.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of: Option<u64>,
}

impl Extension for LogEntry {
    const OF: &'static str = "LogEntry";
}

/// What came of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Ending {
    /// It is about to begin.
    Intent,
    /// It was done.
    Ok,
    /// It was not begun.
    Refused,
    /// It could not be done, or not wholly.
    Failed,
    /// The daemon ended before it was known.
    NotKnown,
}

impl From<view::Ending> for Ending {
    fn from(ending: view::Ending) -> Self {
        match ending {
            view::Ending::Intent => Self::Intent,
            view::Ending::Ok => Self::Ok,
            view::Ending::Refused => Self::Refused,
            view::Ending::Failed => Self::Failed,
            view::Ending::NotKnown => Self::NotKnown,
        }
    }
}

impl From<Ending> for view::Ending {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Intent => Self::Intent,
            Ending::Ok => Self::Ok,
            Ending::Refused => Self::Refused,
            Ending::Failed => Self::Failed,
            Ending::NotKnown => Self::NotKnown,
        }
    }
}

impl From<&view::Entry> for LogEntry {
    fn from(entry: &view::Entry) -> Self {
        Self {
            number: entry.number,
            who: entry.who.clone(),
            from: entry.from.clone(),
            request: entry.request.clone(),
            what: entry.what.clone(),
            result: entry.result.into(),
            of: entry.of,
        }
    }
}

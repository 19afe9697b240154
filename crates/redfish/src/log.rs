//! The audit log, as far as it is at hand: a line for each change, login and refusal.
//!
//! States of a change's lines: intent (durable before the change begins) → one line more that says
//! how it ended, and names the first one by its number.
//!
//! Invariant: no line holds a secret.

use crate::dates;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::VecDeque;
use std::sync::Arc;

/// A line of the audit log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Which, from 1.
    pub number: u64,
    /// When, in seconds since 1970.
    #[serde(serialize_with = "moment_text", deserialize_with = "moment_of")]
    pub time: u64,
    /// Who asked: an account, a user of the machine, or `daemon`.
    pub who: String,
    /// From where: `socket`, or an address; empty for the daemon itself.
    pub from: String,
    /// Method and URI of the request, or a command; empty for the daemon itself.
    pub request: String,
    /// What was asked for, in words.
    pub what: String,
    /// What came of it.
    pub result: Ending,
    /// Which message of a registry says why, if it did not come to be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    /// The line that said that this would begin.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub of: Option<u64>,
}

/// What came of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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

impl Ending {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::NotKnown => "not known",
        }
    }
}

/// The newest lines, and where all of them are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Log {
    /// In the order of their numbers.
    pub entries: VecDeque<Arc<Entry>>,
    /// How many there may be here.
    pub most: usize,
    /// Whether lines are kept over restarts.
    pub is_kept: bool,
}

impl Log {
    /// The line of this number, if it is at hand.
    pub fn entry(&self, number: u64) -> Option<&Entry> {
        let first = self.entries.front()?.number;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        self.entries.get(at).map(|entry| &**entry).filter(|entry| entry.number == number)
    }
}

fn moment_text<S: Serializer>(time: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&dates::text(*time))
}

fn moment_of<'d, D: Deserializer<'d>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    dates::seconds(&text).ok_or_else(|| serde::de::Error::custom(format!("{text} is no moment")))
}

/// What an audit log is found to be.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
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

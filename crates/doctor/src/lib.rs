//! What is wrong with a machine for a daemon on it: each finding with why, and what mends it.
//!
//! Purpose: `palisade doctor`. [`gather()`] looks at the machine once and says what is there
//! ([`Facts`]); [`CHECKS`] are pure functions of that, in the order in which they are told;
//! [`examine`] asks them all.
//!
//! What is looked at: the configuration, the kernel's trees (`/proc`, `/sys`), the records on
//! drives, and what a daemon that runs told. Roots of the trees are parameters: of a machine that
//! was recorded everything is told but what only system calls and drives can tell, which is
//! [`Status::Unknown`].
//!
//! Invariants
//! - Nothing is changed: drives are opened to be read, and keep nobody from them.
//! - A fact that is not known is no finding.
//! - A finding says what is wrong, why that matters, and what to do, with a command.
//! - No command is told that would end the system: its file systems and swap are left alone.
//! - A drive that hangs is waited for [`gather::PATIENCE`] and no longer.

mod checks;
pub mod facts;
pub mod gather;

pub use checks::{CHECKS, CONFIG};
pub use facts::Facts;
pub use gather::gather;

use serde::Serialize;

/// How a check came out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Nothing is wrong.
    Ok,
    /// Nobody could tell.
    Unknown,
    /// Something should be seen to.
    Warning,
    /// Data or service is in danger.
    Critical,
}

impl Status {
    /// Whether it is something to mend.
    pub fn is_finding(self) -> bool {
        matches!(self, Self::Warning | Self::Critical)
    }
}

/// What a check says of one thing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// How it is.
    pub status: Status,
    /// What is so, one line.
    pub what: String,
    /// Why that matters, one line; empty where all is well.
    pub why: String,
    /// What to do, one line with a command; empty where all is well.
    pub mend: String,
}

impl Said {
    fn new(status: Status, what: impl Into<String>, why: &str, mend: impl Into<String>) -> Self {
        Self { status, what: what.into(), why: why.to_owned(), mend: mend.into() }
    }

    fn ok(what: impl Into<String>) -> Self {
        Self::new(Status::Ok, what, "", "")
    }

    fn warning(what: impl Into<String>, why: &str, mend: impl Into<String>) -> Self {
        Self::new(Status::Warning, what, why, mend)
    }

    fn critical(what: impl Into<String>, why: &str, mend: impl Into<String>) -> Self {
        Self::new(Status::Critical, what, why, mend)
    }

    fn unknown(what: impl Into<String>, why: &str, mend: impl Into<String>) -> Self {
        Self::new(Status::Unknown, what, why, mend)
    }
}

/// A check: what it says of the facts. Where it does not apply it says nothing.
pub struct Check {
    /// Its name for programs.
    pub id: &'static str,
    /// What it is about.
    pub area: &'static str,
    /// What it looks for, one line for the documentation.
    pub looks_for: &'static str,
    /// The check itself.
    pub run: fn(&Facts) -> Vec<Said>,
}

/// What came of a check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Outcome {
    /// The check.
    pub id: &'static str,
    /// What it is about.
    pub area: &'static str,
    /// How it is.
    pub status: Status,
    /// What is so, one line.
    pub what: String,
    /// Why that matters; absent where all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What to do; absent where all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mend: String,
}

/// What came of all checks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// Whether there is nothing to mend.
    pub ok: bool,
    /// In the order of [`CHECKS`]; a check that has several findings is there for each.
    pub checks: Vec<Outcome>,
}

/// Asks all checks.
pub fn examine(facts: &Facts) -> Report {
    let told = |check: &Check| {
        let (id, area) = (check.id, check.area);
        let outcome = move |said: Said| {
            let Said { status, what, why, mend } = said;
            Outcome { id, area, status, what, why, mend }
        };
        (check.run)(facts).into_iter().map(outcome).collect::<Vec<_>>()
    };
    let checks: Vec<Outcome> = CHECKS.iter().flat_map(told).collect();
    Report { ok: !checks.iter().any(|outcome| outcome.status.is_finding()), checks }
}

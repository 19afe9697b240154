//! What a trial can find, and the line that says so.

use core::fmt;

/// The oracle that found something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Oracle {
    /// A block holds what it must not, or could not be read though it must be.
    Versions,
    /// The decoder and the engine, or strips of a stripe, do not agree.
    Decoder,
    /// With drives erased, the rest gives something else.
    Erasure,
    /// Records, epochs, areas.
    Metadata,
    /// A second recovery changed bytes, or a scrub found something.
    Again,
    /// Nothing went on, or not in time.
    Stall,
    /// The engine started what must be refused, or refused what must start.
    Start,
    /// Something of a server landed after another had the array.
    Owner,
    /// An assertion failed.
    Assertion,
    /// The same seed ran differently.
    Determinism,
    /// What a trial is there for did not happen in it.
    Vacuous,
}

impl fmt::Display for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Versions => "versions",
            Self::Decoder => "decoder",
            Self::Erasure => "erasure",
            Self::Metadata => "metadata",
            Self::Again => "again",
            Self::Stall => "stall",
            Self::Start => "start",
            Self::Owner => "owner",
            Self::Assertion => "assertion",
            Self::Determinism => "determinism",
            Self::Vacuous => "vacuous",
        })
    }
}

/// Something was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// By which oracle.
    pub oracle: Oracle,
    /// What, in one line.
    pub text: String,
}

impl Failure {
    /// A failure.
    pub fn new(oracle: Oracle, text: impl Into<String>) -> Self {
        Self { oracle, text: text.into() }
    }

    /// The same with words about where before it.
    pub fn at(self, place: impl fmt::Display) -> Self {
        Self { text: format!("{place}: {}", self.text), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.oracle, self.text)
    }
}

/// What a step of a trial gives.
pub type Outcome<T> = Result<T, Failure>;

//! What is told though nothing went wrong with a request: lines of logs, and events.

use super::Arg::{self, Text};
use super::filled;
use std::fmt::Display;

/// How grave something is (DSP0266, "Message object": `MessageSeverity`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Somebody should see to it.
    Warning,
    /// Somebody must see to it now.
    Critical,
}

impl Severity {
    /// All of them, the least grave first.
    pub const ALL: [Self; 3] = [Self::Ok, Self::Warning, Self::Critical];

    /// Its word in Redfish.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "Warning",
            Self::Critical => "Critical",
        }
    }

    /// The severity of this word, in letters of any size.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word().eq_ignore_ascii_case(word))
    }
}

/// A message that says what is, or what came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Its name, without the registry's.
    pub name: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// Its arguments, from `%1`.
    pub args: &'static [Arg],
    /// What happened, one line.
    pub text: &'static str,
    /// What to do, one line.
    pub hint: &'static str,
    /// What it means, why it is so, and what can be done.
    pub why: &'static str,
}

impl Notice {
    /// The name, with the registry's.
    pub fn id(&self) -> String {
        format!("{}{}", super::PREFIX, self.name)
    }

    /// The text with these arguments: as many as the message has.
    pub fn text(&self, args: &[impl AsRef<str>]) -> String {
        debug_assert_eq!(args.len(), self.args.len(), "{}", self.name);
        filled(self.text, args)
    }

    /// What to do, with these arguments.
    pub fn advice(&self, args: &[impl AsRef<str>]) -> String {
        filled(self.hint, args)
    }

    /// What stands for its arguments where there are none yet.
    pub fn placeholders(&self) -> Vec<&'static str> {
        self.args.iter().map(|arg| arg.name()).collect()
    }
}

impl Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Defines notices, one row each, and a table of them.
macro_rules! notices {
    ($table:ident: $($id:ident: $name:literal $severity:ident [$($arg:expr),*]
        $text:literal, $hint:literal, $why:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $text)]
            pub const $id: Notice = Notice {
                name: $name,
                severity: Severity::$severity,
                args: &[$($arg),*],
                text: $text,
                hint: $hint,
                why: $why,
            };
        )*
        #[doc = "All notices of this table."]
        pub const $table: &[Notice] = &[$($id),*];
    };
}

notices! { LINES:
    CHANGE_BEGINS: "ChangeBegins" Ok [Text("WHO"), Text("WHAT")]
        "%1: %2: begins",
        "nothing: a later line says how it ended",
        "A line of the audit log that is durable before the change begins. A line with the same \
         request follows when the change has ended.";
    CHANGE_DONE: "ChangeDone" Ok [Text("WHO"), Text("WHAT")]
        "%1: %2: done",
        "nothing",
        "A line of the audit log. The change, or the login, was carried out.";
    CHANGE_NOT_DONE: "ChangeNotDone" Warning [Text("WHO"), Text("WHAT")]
        "%1: %2: not done",
        "see what the client was told",
        "A line of the audit log. The request was refused, or could not be carried out.";
    CHANGE_NOT_KNOWN: "ChangeNotKnown" Warning [Text("WHO"), Text("WHAT")]
        "%1: %2: the daemon ended before it was known",
        "look whether the change was carried out, and make it again if it was not",
        "A line of the audit log. The daemon was killed, or the machine lost power, while the \
         change was made. It was carried out wholly, or not at all.";
}

notices! { CONDITIONS:
    DRIVE_UNWELL: "DriveUnwell" Warning [Text("PATH"), Text("WHAT"), Text("RULE")]
        "drive %1 is not well: %2",
        "see why with: palisade drive show %1; the rule is %3 of [health] in the configuration",
        "A health rule found something at the drive, or at the way to it. The condition has a \
         severity and advice of its own.";
}

mod alerts;
mod events;

pub use alerts::*;
pub use events::*;

/// All notices.
pub fn notices() -> impl Iterator<Item = &'static Notice> {
    [LINES, CONDITIONS, EVENTS, ALERTS].into_iter().flatten()
}

/// The notice of this name.
pub fn notice(name: &str) -> Option<&'static Notice> {
    notices().find(|notice| notice.name == name)
}

//! The messages of the registry `Palisade.1.0`: all that the daemon and the command line may say
//! when something was not done, and what logs and events tell ([`Notice`]).
//!
//! One [`Entry`] a message: its name, what kind of failure it is, its text, what to do, and what it
//! means. An [`Error`] is made of an entry and arguments. Redfish tells it as
//! `Palisade.1.0.NAME`, [`service`](crate::service) serves the table, `palisade explain NAME`
//! prints it.
//!
//! Invariants: names are never used again for something else. In texts and advice `%1` to `%9`
//! stand for arguments, in advice `NAME` for an array that [`Error::about`] knows.

use crate::error::Base;
use std::borrow::Cow;
use std::fmt::Display;

/// Defines messages, one row each, and a table of them.
macro_rules! messages {
    ($table:ident: $($id:ident: $name:literal $kind:ident $teller:ident [$($arg:expr),*]
        $text:literal, $hint:literal, $why:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $text)]
            pub const $id: $crate::messages::Entry = $crate::messages::Entry {
                name: $name,
                kind: $crate::messages::ErrorCode::$kind,
                teller: $crate::messages::Teller::$teller,
                args: &[$($arg),*],
                text: $text,
                hint: $hint,
                why: $why,
            };
        )*
        #[doc = "All messages of this file."]
        pub const $table: &[$crate::messages::Entry] = &[$($id),*];
    };
}

mod accounts;
mod audit;
mod command;
mod daemon;
mod drives;
mod engine;
mod exports;
mod https;
mod notices;
mod owners;
mod shares;
mod start;

pub use accounts::*;
pub use audit::*;
pub use command::*;
pub use daemon::*;
pub use drives::*;
pub use engine::*;
pub use exports::*;
pub use https::*;
pub use notices::*;
pub use owners::*;
pub use shares::*;
pub use start::*;

/// What identifiers of these messages begin with.
pub const PREFIX: &str = "Palisade.1.0.";

/// The kinds of failure; each is an exit code of the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorCode {
    /// It could not be done.
    Failed,
    /// The request itself is wrong.
    Usage,
    /// Refused to protect data.
    Refused,
}

/// Who says a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Teller {
    /// The daemon, in its answers or on its standard error.
    Daemon,
    /// The command line by itself.
    Command,
    /// Either.
    Both,
}

/// What stands for an argument where there is none yet, in capitals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// A text.
    Text(&'static str),
    /// A number.
    Number(&'static str),
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name, without the registry's.
    pub name: &'static str,
    /// What kind of failure it is.
    pub kind: ErrorCode,
    /// Who says it.
    pub teller: Teller,
    /// Its arguments, from `%1`.
    pub args: &'static [Arg],
    /// What happened, one line.
    pub text: &'static str,
    /// What to do, one line.
    pub hint: &'static str,
    /// What it means, why it is so, and what can be done.
    pub why: &'static str,
}

/// All messages, by who has them.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    let tables =
        [ENGINE, START, OWNERS, DRIVES, EXPORTS, SHARES, DAEMON, ACCOUNTS, HTTPS, AUDIT, COMMAND];
    tables.into_iter().flatten()
}

/// The message of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.name == name)
}

impl ErrorCode {
    /// The status of HTTP that stands for it.
    pub const fn status(self) -> u16 {
        match self {
            Self::Failed => 409,
            Self::Usage => 400,
            Self::Refused => 403,
        }
    }

    /// The exit status of a command that ends with it.
    pub const fn exit(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
        }
    }
}

impl Arg {
    /// What stands for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text(name) | Self::Number(name) => name,
        }
    }
}

impl Display for Arg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Entry {
    /// The status of HTTP that goes with it.
    pub fn status(&self) -> u16 {
        match *self {
            PLAN_CHANGED => 412,
            LOGIN_LOCKED => 429,
            PASSWORDS_BUSY => 503,
            _ => self.kind.status(),
        }
    }

    /// The exit status of a command that ends with it.
    pub fn exit(&self) -> u8 {
        if [NO_DAEMON, NOT_REACHED].contains(self) { 4 } else { self.kind.exit() }
    }

    /// The text, with what stands for arguments.
    pub fn example(&self) -> String {
        filled(self.text, &self.placeholders())
    }

    /// The advice, with what stands for arguments.
    pub fn advice(&self) -> String {
        filled(self.hint, &self.placeholders())
    }

    fn placeholders(&self) -> Vec<&'static str> {
        self.args.iter().map(|arg| arg.name()).collect()
    }
}

/// Puts arguments where `%1` and so on stand; what stands in an argument is left as it is.
pub(crate) fn filled<T: AsRef<str>>(text: &str, args: &[T]) -> String {
    let mut parts = text.split('%');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut rest = part.chars();
        let number = rest.next().and_then(|digit| digit.to_digit(10)).unwrap_or(0) as usize;
        filled
            .push_str(number.checked_sub(1).and_then(|at| args.get(at)).map_or("", AsRef::as_ref));
        filled.push_str(rest.as_str());
    }
    filled
}

/// Why a request was not carried out: a message with its arguments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What happened, one line.
    pub error: String,
    /// What to do, one line.
    pub hint: String,
    /// What kind of failure it is.
    pub code: ErrorCode,
    /// The message's name: without the registry's if it is one of [`all`] or of `Base`.
    pub name: Cow<'static, str>,
    /// What stands for `%1` and so on in the message's text.
    pub args: Vec<String>,
}

impl Error {
    /// This message with these arguments: as many as the message has.
    pub fn new(entry: &Entry, args: &[&dyn Display]) -> Self {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        debug_assert_eq!(args.len(), entry.args.len(), "{}", entry.name);
        Self {
            error: filled(entry.text, &args),
            hint: filled(entry.hint, &args),
            code: entry.kind,
            name: Cow::Borrowed(entry.name),
            args,
        }
    }

    /// With other advice.
    #[must_use]
    pub fn advise(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// What people read: one line of what happened, one of what to do, which names the message.
    pub fn lines(&self) -> String {
        let known = find(&self.name).is_some();
        let more = match known || Base::find(&self.name).is_some() {
            true => format!(" (palisade explain {})", self.name),
            false => String::new(),
        };
        format!("palisade: {}\n  {}{more}", self.error, self.hint)
    }

    /// The status of HTTP that goes with it.
    pub fn status(&self) -> u16 {
        find(&self.name).map_or_else(|| self.code.status(), Entry::status)
    }

    /// Whether it is this message.
    pub fn is(&self, entry: &Entry) -> bool {
        self.name == entry.name
    }

    /// Puts the array's name where the advice says `NAME`.
    #[must_use]
    pub fn about(self, array: &str) -> Self {
        Self { hint: self.hint.replace("NAME", array), ..self }
    }
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;

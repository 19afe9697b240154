//! Who may use the management interface: accounts, sessions and roles, without their secrets.
//!
//! Invariant: what is here can be shown. Passwords are [`Secret`] on their way to the daemon's
//! store, and are part of no view.

use crate::routes::Privilege;
use crate::view::Problem;
use core::fmt;
use core::ops::RangeInclusive;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use zeroize::Zeroizing;

/// How long a password is, in characters.
pub const PASSWORD_CHARACTERS: RangeInclusive<usize> = 8..=128;

/// How long an account's name can be, in characters.
pub const NAME_CHARACTERS: usize = 32;

/// How many seconds a session can be kept without a use.
pub const SESSION_SECONDS: RangeInclusive<u64> = 30..=86_400;

/// How many it is kept unless told otherwise.
pub const SESSION_SECONDS_USUAL: u64 = 1_800;

/// So many logins of one account can fail from one address before it has to wait.
pub const FAILURES_FREE: u32 = 5;

/// The longest wait, in seconds, and how long failures count.
pub const LOCKOUT_SECONDS: u64 = 900;

/// What somebody may do (DSP0266, "Roles").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Read.
    ReadOnly,
    /// Also change arrays, volumes and exports.
    Operator,
    /// Everything.
    Administrator,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Administrator, Self::Operator, Self::ReadOnly];

    /// What it is called (DSP0266).
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "ReadOnly",
            Self::Operator => "Operator",
            Self::Administrator => "Administrator",
        }
    }

    /// The role of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether this role has a privilege.
    pub const fn may(self, privilege: Privilege) -> bool {
        match privilege {
            Privilege::Nobody | Privilege::Login | Privilege::ConfigureSelf => true,
            Privilege::ConfigureComponents => {
                matches!(self, Self::Operator | Self::Administrator)
            }
            Privilege::ConfigureManager | Privilege::ConfigureUsers => {
                matches!(self, Self::Administrator)
            }
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A password. It is shown nowhere, and nothing of it stays in memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// This password.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Its text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// An account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Account {
    /// Its name, which never changes.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// Whether it can log in.
    pub enabled: bool,
    /// Whether it has to change its password before it can do anything else.
    #[serde(rename = "password_change_required")]
    pub must_change: bool,
    /// Which of all passwords that were ever given it has: each has a higher number than those
    /// before, of whatever account.
    #[serde(rename = "password_generation", default)]
    pub generation: u64,
}

/// All accounts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AccountList {
    /// By name.
    pub accounts: Vec<Account>,
}

/// A session that has not ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// Names it; it opens nothing.
    pub id: String,
    /// The account's name.
    pub account: String,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// The address it was begun from; `socket` on the daemon's own.
    pub from: String,
}

/// Accounts and sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// All accounts, by name.
    pub accounts: Vec<Account>,
    /// All sessions, by age.
    pub sessions: Vec<Session>,
    /// How many seconds a session is kept without a use.
    pub session_seconds: u64,
    /// The names of accounts that have to wait somewhere after wrong passwords.
    pub locked: BTreeSet<String>,
    /// Why accounts can't be used or changed.
    pub problem: Option<Problem>,
}

impl Default for Access {
    fn default() -> Self {
        let session_seconds = SESSION_SECONDS_USUAL;
        let (accounts, sessions) = (Vec::new(), Vec::new());
        Self { accounts, sessions, session_seconds, locked: BTreeSet::new(), problem: None }
    }
}

impl Access {
    /// The account of this name.
    pub fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.name == name)
    }

    /// The session of this identifier.
    pub fn session(&self, id: &str) -> Option<&Session> {
        self.sessions.iter().find(|session| session.id == id)
    }
}

/// Whether an account can have this name: letters, digits, `.`, `_` and `-`.
pub fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_CHARACTERS).contains(&name.len()) && name.bytes().all(fits)
}

/// Whether this can be a password.
pub fn is_password(password: &str) -> bool {
    PASSWORD_CHARACTERS.contains(&password.chars().count())
}

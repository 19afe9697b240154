//! What a request wants changed of accounts and sessions.
//!
//! - `POST Accounts`: `UserName`, `Password`, `RoleId`, `Enabled`? (true),
//!   `PasswordChangeRequired`? (false), `AccountTypes`? (`["Redfish"]`).
//! - `PATCH` of an account: `Password`?, `RoleId`?, `Enabled`?, `PasswordChangeRequired`?, `Locked`?
//! - `POST Sessions`: `UserName`, `Password`. `PATCH SessionService`: `SessionTimeout`.
//! - `DELETE` of an account and of a session: nothing.
//!
//! Invariant: no password is told in a refusal, nor by `Debug`.

use super::node::{Fields, Node};
use super::{last, nothing};
use crate::access::{
    Account, NAME_CHARACTERS, PASSWORD_CHARACTERS, Role, SESSION_SECONDS, Secret, is_name,
    is_password,
};
use crate::error::Refusal;
use crate::routes::{Match, Method, Resource};
use crate::view::View;

/// A request for a new account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewAccount {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: Secret,
    /// What it may do.
    pub role: Role,
    /// Whether it can log in.
    pub enabled: bool,
    /// Whether it has to change its password first.
    pub must_change: bool,
}

/// What of an account is to be otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountChange {
    /// Its password.
    pub password: Option<Secret>,
    /// What it may do.
    pub role: Option<Role>,
    /// Whether it can log in.
    pub enabled: Option<bool>,
    /// Whether it has to change its password first.
    pub must_change: Option<bool>,
    /// Nobody waits any more who tried wrong passwords of it.
    pub unlock: bool,
}

impl AccountChange {
    /// Whether it is one that the account may ask for itself, whatever its role.
    pub fn is_own(&self) -> bool {
        let Self { password: _, role, enabled, must_change, unlock } = self;
        role.is_none() && enabled.is_none() && must_change.is_none() && !unlock
    }

    /// Whether an account, or who has its password, may do less then.
    pub fn takes_from(&self, account: &Account) -> bool {
        self.password.is_some()
            || self.enabled == Some(false)
            || self.must_change == Some(true)
            || self.role.is_some_and(|role| role < account.role)
    }
}

/// A change of accounts, or of sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccessChange {
    /// Creates an account.
    Create(NewAccount),
    /// Changes an account.
    Change {
        /// The account's name.
        name: String,
        /// What is to be otherwise.
        change: AccountChange,
    },
    /// Deletes an account.
    Delete {
        /// The account's name.
        name: String,
    },
    /// Begins a session.
    LogIn {
        /// The account's name, as it was given.
        name: String,
        /// The password, as it was given.
        password: Secret,
    },
    /// Ends a session.
    LogOut {
        /// The session's identifier.
        id: String,
    },
    /// Changes how long a session is kept without a use.
    KeepSessions {
        /// So many seconds.
        seconds: u64,
    },
}

impl AccessChange {
    /// What is to be done, as the audit log has it.
    pub fn words(&self) -> String {
        match self {
            Self::Create(new) => {
                let mut words = format!("create account {} as {}", new.name, new.role);
                words += if new.enabled { "" } else { ", disabled" };
                words + if new.must_change { ", to change its password" } else { "" }
            }
            Self::Change { name, change } => {
                let mut parts = Vec::new();
                parts.extend(change.password.is_some().then(|| "a new password".to_owned()));
                parts.extend(change.role.map(|role| format!("role {role}")));
                let enabled = |is| if is { "enabled" } else { "disabled" };
                parts.extend(change.enabled.map(|is| enabled(is).to_owned()));
                let must = |is| if is { "to change its password" } else { "to keep its password" };
                parts.extend(change.must_change.map(|is| must(is).to_owned()));
                parts.extend(change.unlock.then(|| "unlocked".to_owned()));
                format!("change account {name}: {}", parts.join(", "))
            }
            Self::Delete { name } => format!("delete account {name}"),
            Self::LogIn { .. } => "log in".to_owned(),
            Self::LogOut { id } => format!("end session {id}"),
            Self::KeepSessions { seconds } => format!("keep sessions {seconds} s without a use"),
        }
    }
}

/// What accounts and services have, and a PATCH can't change.
const READ_ONLY: [&str; 15] = [
    "Id",
    "Name",
    "Description",
    "UserName",
    "AccountTypes",
    "Links",
    "Status",
    "ServiceEnabled",
    "Sessions",
    "Certificates",
    "Keys",
    "HostBootstrapAccount",
    "StrictAccountTypes",
    "PasswordExpiration",
    "AccountExpiration",
];

/// Reads what a request wants; none if its route is about something else.
pub(super) fn parse(
    view: &View,
    found: &Match,
    method: Method,
    fields: &mut Fields<'_>,
) -> Option<Result<AccessChange, Refusal>> {
    Some(match (method, found.route.resource) {
        (Method::Post, Resource::Accounts) => create(fields),
        (Method::Patch, Resource::Account) => change(view, found, fields),
        (Method::Delete, Resource::Account) => {
            own_account(view, found).map(|name| AccessChange::Delete { name })
        }
        (Method::Post, Resource::Sessions) => log_in(fields),
        (Method::Delete, Resource::Session) => {
            let session = view.access.session(last(found)).ok_or_else(|| nothing(found));
            session.map(|session| AccessChange::LogOut { id: session.id.clone() })
        }
        (Method::Patch, Resource::SessionService) => keep_sessions(fields),
        _ => return None,
    })
}

fn own_account(view: &View, found: &Match) -> Result<String, Refusal> {
    let account = view.access.account(last(found)).ok_or_else(|| nothing(found))?;
    Ok(account.name.clone())
}

fn create(fields: &mut Fields<'_>) -> Result<AccessChange, Refusal> {
    let name = fields.need("UserName")?;
    let password = password(&fields.need("Password")?)?;
    let role = role(&fields.need("RoleId")?)?;
    if !is_name(name.text()?) {
        let rule = format!(
            "Give a name of 1 to {NAME_CHARACTERS} letters, digits, dots, underscores and hyphens."
        );
        return Err(name.wrong_format().advise(&rule));
    }
    if let Some(types) = fields.take("AccountTypes") {
        for one in types.list(1, 1)? {
            one.word(&["Redfish"])?;
        }
    }
    let enabled = fields.take("Enabled").map_or(Ok(true), |node| node.truth())?;
    let must_change = fields.flag("PasswordChangeRequired")?;
    let name = name.text()?.to_owned();
    Ok(AccessChange::Create(NewAccount { name, password, role, enabled, must_change }))
}

fn change(view: &View, found: &Match, fields: &mut Fields<'_>) -> Result<AccessChange, Refusal> {
    let name = own_account(view, found)?;
    refuse_read_only(fields)?;
    let truth = |node: Option<Node<'_>>| node.map(|node| node.truth()).transpose();
    let change = AccountChange {
        password: fields.take("Password").map(|node| password(&node)).transpose()?,
        role: fields.take("RoleId").map(|node| role(&node)).transpose()?,
        enabled: truth(fields.take("Enabled"))?,
        must_change: truth(fields.take("PasswordChangeRequired"))?,
        unlock: fields.take("Locked").map_or(Ok(false), |node| unlocked(&node))?,
    };
    Ok(AccessChange::Change { name, change })
}

fn keep_sessions(fields: &mut Fields<'_>) -> Result<AccessChange, Refusal> {
    refuse_read_only(fields)?;
    let (least, most) = SESSION_SECONDS.into_inner();
    let seconds = fields.need("SessionTimeout")?.whole(least, most)?;
    Ok(AccessChange::KeepSessions { seconds })
}

fn refuse_read_only(fields: &mut Fields<'_>) -> Result<(), Refusal> {
    fields.not_empty()?;
    match READ_ONLY.iter().find_map(|name| fields.take(name)) {
        Some(node) => Err(node.read_only()),
        None => Ok(()),
    }
}

fn log_in(fields: &mut Fields<'_>) -> Result<AccessChange, Refusal> {
    let name = fields.need("UserName")?.text()?.to_owned();
    // What can't be a password is one that is wrong.
    let password = Secret::new(fields.need("Password")?.secret()?);
    Ok(AccessChange::LogIn { name, password })
}

/// Wrong passwords lock an account, nothing else does.
fn unlocked(node: &Node<'_>) -> Result<bool, Refusal> {
    match node.truth()? {
        true => Err(node.not_in(&["false"])),
        false => Ok(true),
    }
}

fn password(node: &Node<'_>) -> Result<Secret, Refusal> {
    let text = node.secret()?;
    if is_password(text) {
        return Ok(Secret::new(text));
    }
    let (least, most) = PASSWORD_CHARACTERS.into_inner();
    let rule = format!("Give a password of {least} to {most} characters.");
    Err(node.wrong_secret().advise(&rule))
}

fn role(node: &Node<'_>) -> Result<Role, Refusal> {
    let names = Role::ALL.map(Role::name);
    Role::of(node.text()?).ok_or_else(|| node.not_in(&names))
}

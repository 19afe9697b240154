//! The file of accounts and sessions: what it holds, and how that is changed.
//!
//! JSON: `version` (1), `session_seconds`, `passwords` (how many were given), `accounts` (name,
//! role, PHC string of the password, which of all passwords that is, enabled, whether it must be
//! changed, when created) and `sessions` (identifier, account, SHA-256 of the token, when begun and
//! last used, from where).
//!
//! Invariants
//! - Accounts are in the order of their names, each name once; sessions in the order in which they
//!   began.
//! - A session belongs to an account that is there and enabled. With an account's password its
//!   sessions go.
//! - Where there are accounts, one of them is an enabled Administrator, from its creation on: the
//!   last one stays.

use crate::chance;
use core::fmt;
use redfish::access::{self, Access, Role};
use redfish::change::AccountChange;
use redfish::messages as say;
use redfish::view::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The version of the file.
const VERSION: u32 = 1;

/// So many accounts at most.
pub const ACCOUNTS: usize = 256;

/// So many sessions at most.
pub const SESSIONS: usize = 64;

/// So many of one account at most: another one ends the one that was not used for longest.
pub const OF_ACCOUNT: usize = 16;

/// Bytes of a session's token.
const TOKEN_BYTES: usize = 32;

/// An account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// What can be shown of it.
    pub shown: access::Account,
    /// What is kept of its password, in PHC's form.
    pub password: String,
    /// Which of all passwords that is: that of `shown`.
    #[serde(default)]
    pub generation: u64,
    /// When it was created, in seconds since 1970.
    pub created: u64,
}

/// A session.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Names it.
    pub id: String,
    /// The account's name.
    pub account: String,
    /// What is kept of its token: SHA-256, in hexadecimal digits.
    pub token: String,
    /// When it began, in seconds since 1970.
    pub began: u64,
    /// When it was used last, in seconds since 1970.
    pub used: u64,
    /// From where it was begun.
    pub from: String,
}

impl Account {
    /// Has a password of this number.
    fn renumber(&mut self, generation: u64) {
        (self.generation, self.shown.generation) = (generation, generation);
    }
}

impl fmt::Debug for Account {
    /// What is kept of the password could be tried out elsewhere.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shown.fmt(f)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({}, {})", self.id, self.account)
    }
}

/// What the file holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    version: u32,
    /// How many seconds a session is kept without a use.
    pub session_seconds: u64,
    /// How many passwords were ever given: no two have one number.
    #[serde(default)]
    passwords: u64,
    /// All accounts.
    pub accounts: Vec<Account>,
    /// All sessions.
    pub sessions: Vec<Session>,
}

impl Default for Kept {
    fn default() -> Self {
        let session_seconds = access::SESSION_SECONDS_USUAL;
        let (accounts, sessions) = (Vec::new(), Vec::new());
        Self { version: VERSION, session_seconds, passwords: 0, accounts, sessions }
    }
}

/// Why there is no session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoSession {
    /// There are as many as there can be.
    Full,
    /// The account is not there any more, or has another password.
    Gone,
    /// The kernel gives no random bytes.
    Unable,
}

/// What is kept of a token.
fn of_token(token: &str) -> String {
    chance::hex(&Sha256::digest(token))
}

fn no_account(name: &str) -> Error {
    Error::new(&say::NO_ACCOUNT, &[&name])
}

impl Kept {
    /// Reads the file; the error is one line.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut kept: Self = serde_json::from_slice(bytes).map_err(|error| {
            // What it says may have a part of the file in it.
            format!("line {}, column {} is not as it should be", error.line(), error.column())
        })?;
        if kept.version != VERSION {
            return Err(format!("it has version {}, not {VERSION}", kept.version));
        }
        if !access::SESSION_SECONDS.contains(&kept.session_seconds) {
            return Err(format!("sessions are kept {} s", kept.session_seconds));
        }
        for account in &mut kept.accounts {
            account.renumber(account.generation);
        }
        kept.accounts.sort_by(|a, b| a.shown.name.cmp(&b.shown.name));
        let pairs = kept.accounts.iter().zip(kept.accounts.iter().skip(1));
        if let Some((one, _)) = pairs.into_iter().find(|(a, b)| a.shown.name == b.shown.name) {
            return Err(format!("account \"{}\" is there twice", one.shown.name));
        }
        let accounts = kept.accounts.clone();
        let is_there =
            |name: &str| accounts.iter().any(|a| a.shown.name == name && a.shown.enabled);
        kept.sessions.retain(|session| is_there(&session.account));
        Ok(kept)
    }

    /// The file.
    pub fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec_pretty(self)
    }

    /// What can be shown of it.
    pub fn shown(&self) -> Access {
        let session = |session: &Session| access::Session {
            id: session.id.clone(),
            account: session.account.clone(),
            began: session.began,
            from: session.from.clone(),
        };
        Access {
            accounts: self.accounts.iter().map(|account| account.shown.clone()).collect(),
            sessions: self.sessions.iter().map(session).collect(),
            session_seconds: self.session_seconds,
            ..Access::default()
        }
    }

    /// The account of this name.
    pub fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| account.shown.name == name)
    }

    /// The session of this token.
    pub fn session(&self, token: &str) -> Option<&Session> {
        let given = of_token(token);
        let is_it = |own: &&Session| bool::from(own.token.as_bytes().ct_eq(given.as_bytes()));
        self.sessions.iter().find(is_it)
    }

    /// Adds an account.
    ///
    /// # Errors
    /// There is one of this name, there are as many as there can be, or the first is not one that
    /// could make others.
    pub fn create(&mut self, mut account: Account) -> Result<(), Error> {
        let name = account.shown.name.clone();
        if self.account(&name).is_some() {
            return Err(Error::new(&say::ACCOUNT_EXISTS, &[&name]));
        }
        if self.accounts.len() >= ACCOUNTS {
            return Err(Error::new(&say::ACCOUNTS_FULL, &[&ACCOUNTS]));
        }
        self.passwords += 1;
        account.renumber(self.passwords);
        let at = self.accounts.partition_point(|other| other.shown.name < name);
        self.accounts.insert(at, account);
        self.keep_administrator()
    }

    /// Changes an account; `password` is what is kept of the new one.
    ///
    /// # Errors
    /// There is none, or it is the last enabled Administrator and would be none any more.
    pub fn change(
        &mut self,
        name: &str,
        change: &AccountChange,
        password: Option<String>,
    ) -> Result<(), Error> {
        let account = self.accounts.iter_mut().find(|account| account.shown.name == name);
        let account = account.ok_or_else(|| no_account(name))?;
        let is_new = password.is_some();
        if let Some(password) = password {
            account.password = password;
            account.shown.must_change = false;
            self.passwords += 1;
            account.renumber(self.passwords);
        }
        let shown = &mut account.shown;
        shown.role = change.role.unwrap_or(shown.role);
        shown.enabled = change.enabled.unwrap_or(shown.enabled);
        shown.must_change = change.must_change.unwrap_or(shown.must_change);
        if is_new || !shown.enabled {
            self.sessions.retain(|session| session.account != name);
        }
        self.keep_administrator()
    }

    /// Removes an account and its sessions.
    ///
    /// # Errors
    /// There is none, or it is the last enabled Administrator.
    pub fn delete(&mut self, name: &str) -> Result<(), Error> {
        let found = self.accounts.iter().position(|account| account.shown.name == name);
        self.accounts.remove(found.ok_or_else(|| no_account(name))?);
        self.sessions.retain(|session| session.account != name);
        self.keep_administrator()
    }

    fn keep_administrator(&self) -> Result<(), Error> {
        let is_one =
            |account: &Account| account.shown.enabled && account.shown.role == Role::Administrator;
        match self.accounts.iter().any(is_one) {
            true => Ok(()),
            false => Err(Error::new(&say::LAST_ADMINISTRATOR, &[])),
        }
    }

    /// Begins a session of an account whose password is still the one of which `password` was kept;
    /// its identifier and token.
    ///
    /// # Errors
    /// It is not, there are too many sessions, or there is no chance.
    pub fn begin(
        &mut self,
        (name, password): (&str, &str),
        from: &str,
        now: u64,
    ) -> Result<(String, String), NoSession> {
        let is_right = |own: &&Account| own.shown.enabled && own.password == password;
        self.account(name).filter(is_right).ok_or(NoSession::Gone)?;
        self.make_room(name)?;
        let token = chance::hex(&chance::bytes::<TOKEN_BYTES>().map_err(|_| NoSession::Unable)?);
        let id = chance::hex(&chance::bytes::<8>().map_err(|_| NoSession::Unable)?);
        self.sessions.push(Session {
            id: id.clone(),
            account: name.to_owned(),
            token: of_token(&token),
            began: now,
            used: now,
            from: from.to_owned(),
        });
        Ok((id, token))
    }

    /// How many sessions an account has.
    fn count(&self, name: &str) -> usize {
        self.sessions.iter().filter(|session| session.account == name).count()
    }

    /// Makes room for a session of this account: it has no more than its share, and where there are
    /// too many of all, who has most gives one to who has fewer.
    fn make_room(&mut self, name: &str) -> Result<(), NoSession> {
        let own = self.count(name);
        let of = if own >= OF_ACCOUNT {
            name.to_owned()
        } else if self.sessions.len() >= SESSIONS {
            let all = self.accounts.iter().map(|account| &account.shown.name);
            let most = all.max_by_key(|other| self.count(other)).ok_or(NoSession::Full)?;
            if self.count(most) <= own + 1 {
                return Err(NoSession::Full);
            }
            most.clone()
        } else {
            return Ok(());
        };
        let sessions = self.sessions.iter().enumerate();
        let oldest = sessions.filter(|(_, one)| one.account == of).min_by_key(|(_, one)| one.used);
        let (at, _) = oldest.ok_or(NoSession::Full)?;
        self.sessions.remove(at);
        Ok(())
    }

    /// Ends a session, if it is there.
    pub fn end(&mut self, id: &str) {
        self.sessions.retain(|session| session.id != id);
    }

    /// Ends sessions that nobody used for too long; whether there were any.
    pub fn expire(&mut self, now: u64) -> bool {
        let (before, seconds) = (self.sessions.len(), self.session_seconds);
        for session in &mut self.sessions {
            // Somebody may have set the clock back.
            session.used = session.used.min(now);
        }
        self.sessions.retain(|session| now < session.used.saturating_add(seconds));
        self.sessions.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, role: Role) -> Account {
        let (name, must_change, generation) = (name.to_owned(), false, 0);
        let shown = access::Account { name, role, enabled: true, must_change, generation };
        Account { password: format!("kept of {}", shown.name), generation, shown, created: 1 }
    }

    fn kept() -> Kept {
        let mut kept = Kept::default();
        kept.create(account("root", Role::Administrator)).expect("created");
        kept.create(account("ana", Role::Operator)).expect("created");
        kept
    }

    fn role(role: Role) -> AccountChange {
        AccountChange { role: Some(role), ..AccountChange::default() }
    }

    fn enabled(enabled: bool) -> AccountChange {
        AccountChange { enabled: Some(enabled), ..AccountChange::default() }
    }

    #[test]
    fn what_is_kept_of_secrets_is_not_shown() {
        let mut kept = kept();
        kept.begin(("ana", "kept of ana"), "socket", 5).expect("begun");
        let (shown, token) = (format!("{kept:?}"), kept.sessions[0].token.clone());
        assert!(!shown.contains("kept of") && !shown.contains(&token), "{shown}");
        assert!(shown.contains("ana"), "{shown}");
    }

    #[test]
    fn the_file_comes_back_and_nothing_else_is_taken_for_it() {
        let mut kept = kept();
        kept.begin(("ana", "kept of ana"), "socket", 5).expect("begun");
        let bytes = kept.bytes().expect("encodes");
        assert_eq!(Kept::read(&bytes), Ok(kept.clone()));
        for end in 0..bytes.len() - 1 {
            assert!(Kept::read(&bytes[..end]).is_err(), "{end}");
        }
        let text = String::from_utf8(bytes).expect("text");
        assert!(Kept::read(text.replace("\"version\": 1", "\"version\": 2").as_bytes()).is_err());
        assert!(Kept::read(text.replace("\"root\"", "\"ana\"").as_bytes()).is_err());
        let disabled = text.replacen("\"enabled\": true", "\"enabled\": false", 1);
        assert_eq!(Kept::read(disabled.as_bytes()).expect("read").sessions, []);
    }

    #[test]
    fn the_last_administrator_stays() {
        let mut alone = Kept::default();
        assert!(alone.create(account("ana", Role::Operator)).is_err());
        let kept = kept();
        let refused = |act: &dyn Fn(&mut Kept) -> Result<(), Error>| {
            let error = act(&mut kept.clone()).expect_err("refused");
            assert_eq!(error.code, redfish::view::ErrorCode::Refused, "{error:?}");
        };
        refused(&|kept| kept.delete("root"));
        refused(&|kept| kept.change("root", &enabled(false), None));
        refused(&|kept| kept.change("root", &role(Role::Operator), None));
        let mut kept = kept.clone();
        kept.change("ana", &role(Role::Administrator), None).expect("changed");
        kept.delete("root").expect("deleted");
        assert!(kept.delete("ana").is_err() && kept.delete("none").is_err());
    }

    #[test]
    fn sessions_go_with_the_password_the_account_and_their_time() {
        let mut kept = kept();
        let (id, token) = kept.begin(("ana", "kept of ana"), "192.0.2.1", 100).expect("begun");
        assert_eq!((id.len(), token.len()), (16, 64));
        assert_eq!(kept.session(&token).map(|own| own.id.as_str()), Some(id.as_str()));
        assert_eq!(kept.session(&id), None);
        assert!(!format!("{kept:?}").contains(&token));
        let other = kept.begin(("root", "kept of root"), "socket", 100).expect("begun").1;
        let without = |act: &dyn Fn(&mut Kept)| {
            let mut kept = kept.clone();
            act(&mut kept);
            assert!(kept.session(&token).is_none());
            assert!(kept.session(&other).is_some());
        };
        without(&|kept| {
            kept.change("ana", &AccountChange::default(), Some("other".into())).expect("changed");
        });
        without(&|kept| kept.change("ana", &enabled(false), None).expect("changed"));
        without(&|kept| kept.delete("ana").expect("deleted"));
        without(&|kept| kept.end(&id));
        assert!(!kept.clone().expire(100 + 1799));
        let mut late = kept.clone();
        assert!(late.expire(100 + 1800));
        assert_eq!(late.sessions, []);
        kept.change("ana", &role(Role::ReadOnly), None).expect("changed");
        assert!(kept.session(&token).is_some(), "a role does not end them");
    }

    #[test]
    fn a_password_that_was_changed_meanwhile_begins_nothing() {
        let mut kept = kept();
        assert_eq!(kept.begin(("ana", "older"), "socket", 1), Err(NoSession::Gone));
        assert_eq!(kept.begin(("none", "older"), "socket", 1), Err(NoSession::Gone));
    }

    #[test]
    fn nobody_takes_all_sessions() {
        let mut kept = kept();
        for name in ["b", "c", "d"] {
            kept.create(account(name, Role::ReadOnly)).expect("created");
        }
        let begin = |kept: &mut Kept, name: &str, now| {
            let begun = kept.begin((name, &format!("kept of {name}")), "socket", now);
            begun.map(|(id, _)| id)
        };
        let first = begin(&mut kept, "ana", 1).expect("begun");
        let is_there = |kept: &Kept, id: &str| kept.sessions.iter().any(|one| one.id == id);
        for now in 2..=OF_ACCOUNT as u64 {
            begin(&mut kept, "ana", now).expect("begun");
        }
        assert!(is_there(&kept, &first));
        // The one that was not used for longest ends for the next.
        let next = begin(&mut kept, "ana", 100).expect("begun");
        assert_eq!((kept.count("ana"), is_there(&kept, &first)), (OF_ACCOUNT, false));
        for name in ["b", "c", "d"] {
            (0..OF_ACCOUNT).for_each(|_| drop(begin(&mut kept, name, 200).expect("begun")));
        }
        assert_eq!(kept.sessions.len(), SESSIONS);
        // Whoever has fewer takes from who has most, until all have about the same.
        let mut root = 0;
        while begin(&mut kept, "root", 300).is_ok() && root < SESSIONS {
            root += 1;
            assert!(kept.sessions.len() <= SESSIONS);
        }
        assert_eq!((root, kept.count("root")), (12, 12));
        assert!(["ana", "b", "c", "d"].iter().all(|name| kept.count(name) == 13));
        assert_eq!(begin(&mut kept, "root", 300), Err(NoSession::Full));
        assert!(is_there(&kept, &next), "it was used later than others");
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_no_session_longer() {
        let mut kept = kept();
        kept.begin(("ana", "kept of ana"), "socket", 1_000_000).expect("begun");
        assert!(!kept.expire(10));
        assert!(kept.expire(10 + 1800));
    }

    #[test]
    fn a_new_password_is_one_that_was_changed() {
        let mut kept = kept();
        let must = AccountChange { must_change: Some(true), ..AccountChange::default() };
        kept.change("ana", &must, None).expect("changed");
        assert!(kept.account("ana").expect("there").shown.must_change);
        kept.change("ana", &AccountChange::default(), Some("new".into())).expect("changed");
        assert!(!kept.account("ana").expect("there").shown.must_change);
        kept.change("ana", &must, Some("given".into())).expect("changed");
        assert!(kept.account("ana").expect("there").shown.must_change);
    }

    #[test]
    fn names_are_there_once_and_accounts_have_an_end() {
        let mut kept = kept();
        assert!(kept.create(account("ana", Role::Operator)).is_err());
        for number in 2..ACCOUNTS {
            kept.create(account(&format!("n{number}"), Role::ReadOnly)).expect("created");
        }
        let error = kept.create(account("more", Role::ReadOnly)).expect_err("full");
        assert!(error.is(&say::ACCOUNTS_FULL), "{error:?}");
    }
}

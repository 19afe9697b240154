//! Who asks, by what a request says of it; and what changes accounts and sessions.
//!
//! | A request has | and comes | is of |
//! |---|---|---|
//! | `X-Auth-Token` | from anywhere | the session's account |
//! | `Authorization: Basic` | from anywhere | that account |
//! | neither | on the socket | the user that the kernel names |
//! | neither | from the network | nobody |
//!
//! Where both are there, the token counts. What is there and wrong is answered 401; nothing else is
//! tried.
//!
//! Invariants
//! - What everybody may have is answered without a look at either: it costs no computation.
//! - Who has a role on the socket is not locked out there. Other users are, as addresses are.
//! - A password that was tried counts, whether or not the client stays.
//! - A session begins after a line of the audit log says that it will.
//! - Of a login the audit log has who, from where and how it ended, never a password or a token.

use crate::accounts::{BUSY_SECONDS, Begun, Denied, NotBegun};
use crate::caller::{self, Caller};
use crate::manager::Manager;
use crate::peer::Peer;
use crate::reply::TOKEN;
use base64ct::{Base64, Encoding};
use hyper::header::{AUTHORIZATION, HeaderMap};
use redfish::access::{Account, Secret, is_name};
use redfish::change::{AccessChange, AccountChange};
use redfish::error::{Base, Refusal};
use redfish::messages as say;
use redfish::routes::Privilege;
use redfish::service::uri;
use redfish::told::PLAN_HEADER;
use redfish::view::Error;
use std::sync::Arc;

/// How many seconds somebody is asked to wait for whom there is no session.
const SESSIONS_SECONDS: u64 = 60;

/// The longest header that can be a name and a password.
const MOST_BYTES: usize = 4096;

/// What came of a change of accounts or sessions.
pub enum Done {
    /// Nothing more is to be said.
    Quietly,
    /// A resource was made.
    Made(String),
    /// A resource was changed.
    Changed(String),
    /// A session was begun.
    Begun {
        /// Its URI.
        uri: String,
        /// What opens it.
        token: String,
        /// The account, if it has to change its password first.
        must_change: Option<String>,
    },
}

/// Name and password of a header.
fn basic(headers: &HeaderMap) -> Option<Option<(String, Secret)>> {
    let header = headers.get(AUTHORIZATION)?;
    let read = || {
        let (scheme, code) = header.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") || code.len() > MOST_BYTES {
            return None;
        }
        let text = String::from_utf8(Base64::decode_vec(code.trim()).ok()?).ok()?;
        let (name, password) = text.split_once(':')?;
        Some((name.to_owned(), Secret::new(password)))
    };
    Some(read())
}

/// Who asks for this.
///
/// # Errors
/// What the request says of it is wrong, or can't be checked now.
pub async fn caller(
    manager: &Arc<Manager>,
    peer: &Peer,
    headers: &HeaderMap,
    (request, uri): (&str, &str),
) -> Result<Caller, Refusal> {
    let own = Caller::of(peer, &manager.local());
    if let Some(token) = headers.get(TOKEN) {
        let found = token.to_str().ok().and_then(|token| manager.accounts().session(token));
        if let Some((session, account)) = found {
            return Ok(own.logged_in(&account, Some(&session)));
        }
        let refusal = Refusal::base(&Base::NO_VALID_SESSION, &[]);
        let nobody = Caller { role: None, ..own };
        manager.audit().refused(&nobody, request, "log in", &refusal).await;
        return Err(refusal);
    }
    let Some(given) = basic(headers) else { return Ok(own) };
    let Some((name, password)) = given else {
        let refusal = Refusal::base(&Base::UNAUTHORIZED, &[uri, "its credentials can't be read"]);
        let nobody = Caller { role: None, ..own };
        manager.audit().refused(&nobody, request, "log in", &refusal).await;
        return Err(refusal);
    };
    if let Some(account) = manager.accounts().known(&name, &password) {
        return Ok(own.logged_in(&account, None));
    }
    // Whoever asked may go: what was tried counts, and is in the log, all the same.
    let trying = tokio::spawn({
        let (manager, request, uri) = (manager.clone(), request.to_owned(), uri.to_owned());
        async move { tried(&manager, own, (&request, &uri), (&name, &password)).await }
    });
    trying.await.unwrap_or_else(|_| Err(Refusal::internal()))
}

/// Who has this name and password.
async fn tried(
    manager: &Manager,
    own: Caller,
    (request, uri): (&str, &str),
    (name, password): (&str, &Secret),
) -> Result<Caller, Refusal> {
    match manager.accounts().check(own.origin, name, password).await {
        Ok((account, is_new)) => {
            let caller = own.logged_in(&account, None);
            if is_new {
                manager.audit().note(&caller, request, "log in").await;
                manager.events().login(&say::LOGGED_IN, &caller.name, &caller.from);
            }
            Ok(caller)
        }
        Err(denied) => {
            let nobody = own.trying(shown(name));
            Err(refused(manager, &nobody, (request, uri), denied).await)
        }
    }
}

/// A name as the log has it: what is none may be a password.
fn shown(name: &str) -> String {
    if is_name(name) { name.to_owned() } else { String::new() }
}

/// Somebody is not let in: the log has it.
async fn refused(
    manager: &Manager,
    caller: &Caller,
    (request, uri): (&str, &str),
    denied: Denied,
) -> Refusal {
    let refusal = denial(uri, denied);
    manager.audit().refused(caller, request, "log in", &refusal).await;
    match denied {
        Denied::Wrong => {
            manager.events().login(&say::LOGIN_REFUSED, &caller.name, &caller.from);
        }
        Denied::Locked(wait) => manager.events().locked(&caller.name, &caller.from, wait),
        Denied::Busy(_) => {}
    }
    refusal
}

/// How it is told.
fn denial(uri: &str, denied: Denied) -> Refusal {
    match denied {
        Denied::Wrong => {
            Refusal::base(&Base::UNAUTHORIZED, &[uri, "the name or the password is wrong"])
        }
        Denied::Locked(wait) => Refusal::from(Error::new(&say::LOGIN_LOCKED, &[&wait])).after(wait),
        Denied::Busy(wait) => {
            let text = wait.to_string();
            Refusal::base(&Base::SERVICE_UNAVAILABLE, &[&text]).after(wait)
        }
    }
}

/// What could not be done now may be a moment later.
fn failed(error: Error) -> Refusal {
    let is_busy = error.is(&say::PASSWORDS_BUSY);
    let refusal = Refusal::from(error);
    if is_busy { refusal.after(BUSY_SECONDS) } else { refusal }
}

/// Carries a change of accounts or sessions out.
///
/// # Errors
/// Why it was not.
pub async fn change(
    manager: &Manager,
    caller: &Caller,
    request: &str,
    change: AccessChange,
) -> Result<Done, Refusal> {
    let outcome = changed(manager, caller, request, change).await;
    // Who was answered finds it in what is read next, also what counts without the file.
    manager.refresh();
    outcome
}

async fn changed(
    manager: &Manager,
    caller: &Caller,
    request: &str,
    change: AccessChange,
) -> Result<Done, Refusal> {
    let accounts = manager.accounts();
    Ok(match change {
        AccessChange::Create(new) => {
            let made = uri::account(&new.name);
            accounts.create(new).await.map_err(failed)?;
            // Whoever made the first account may log in over HTTPS at once.
            manager.https().begun().await;
            Done::Made(made)
        }
        AccessChange::Change { name, change } => {
            may_change(caller, &name, &change)?;
            accounts.alter(&name, change).await.map_err(failed)?;
            Done::Changed(uri::account(&name))
        }
        AccessChange::Delete { name } => {
            accounts.delete(&name).await?;
            Done::Quietly
        }
        AccessChange::LogIn { name, password } => {
            log_in(manager, caller, request, &name, &password).await?
        }
        AccessChange::LogOut { id } => {
            accounts.end(&id).await?;
            Done::Quietly
        }
        AccessChange::KeepSessions { seconds } => {
            accounts.keep_sessions(seconds).await?;
            Done::Changed(uri::SESSION_SERVICE.to_owned())
        }
    })
}

/// Refuses a plan of what the caller may not do, and of a login, of which there is none.
///
/// # Errors
/// Why there is no plan.
pub fn may_plan(caller: &Caller, change: &AccessChange) -> Result<(), Refusal> {
    match change {
        AccessChange::Change { name, change } => may_change(caller, name, change),
        AccessChange::LogIn { .. } => Err(Refusal::base(&Base::HEADER_INVALID, &[PLAN_HEADER])),
        _ => Ok(()),
    }
}

/// Who may not change all accounts may change its own password, and nothing else.
fn may_change(caller: &Caller, name: &str, change: &AccountChange) -> Result<(), Refusal> {
    let is_own = caller.account.as_deref() == Some(name) && change.is_own();
    match caller.may(Privilege::ConfigureUsers) && !caller.must_change {
        true => Ok(()),
        false if is_own => Ok(()),
        false if caller.must_change => Err(caller::password_first(name)),
        false => Err(Refusal::base(&Base::INSUFFICIENT_PRIVILEGE, &[])),
    }
}

async fn log_in(
    manager: &Manager,
    caller: &Caller,
    request: &str,
    name: &str,
    password: &Secret,
) -> Result<Done, Refusal> {
    let asking = caller.clone().trying(shown(name));
    let proved = match manager.accounts().prove(caller.origin, name, password).await {
        Ok(proved) => proved,
        Err(denied) => {
            return Err(refused(manager, &asking, (request, uri::SESSIONS), denied).await);
        }
    };
    // Of a password that was right: others may not fill the log with two lines each.
    let open = manager.audit().begin(&asking, request, "log in").await;
    let begun = manager.accounts().begin(&proved, &caller.from).await;
    let begun = begun.map_err(|why| match why {
        NotBegun::Failed(error) => failed(error),
        NotBegun::Full => Refusal::base(&Base::SESSION_LIMIT, &[]).after(SESSIONS_SECONDS),
        NotBegun::Gone => denial(uri::SESSIONS, Denied::Wrong),
    });
    open.end(begun.as_ref().map(drop));
    let Begun { id, token } = begun?;
    let Account { name, must_change, .. } = proved.account;
    manager.events().login(&say::LOGGED_IN, &name, &caller.from);
    Ok(Done::Begun { uri: uri::session(&id), token, must_change: must_change.then_some(name) })
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;

//! Who asks: an account of the daemon, a process of this machine, or nobody that is known; and what
//! they may do.
//!
//! Invariants
//! - Who asks is known before anything of the request is looked at but its headers.
//! - What a row of the table of routes says is asked here only ([`needed`], [`Caller::check`]), for
//!   requests and for what a query puts into an answer.

use crate::local::Local;
use crate::peer::{Origin, Peer};
use redfish::access::{Account, Session};
use redfish::error::{Base, Refusal};
use redfish::events::Event;
use redfish::routes::{Match, Method, Privilege, Resource};
use redfish::service::uri;
use redfish::view::View;

pub use redfish::access::Role;

/// Somebody who asks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Caller {
    /// The account's name; on the socket, without an account, that of the user. Empty for somebody
    /// who is not known.
    pub name: String,
    /// What they may do; none: what everybody may.
    pub role: Option<Role>,
    /// From where they ask: `socket`, `socket (uid N)` where an account is used or tried there, or
    /// an address.
    pub from: String,
    /// As whom they count.
    pub origin: Origin,
    /// The account that they logged in with.
    pub account: Option<String>,
    /// Which of all passwords that has ([`Account::generation`]).
    pub generation: u64,
    /// The session that they use.
    pub session: Option<String>,
    /// Whether the account has to change its password before it can do anything else.
    pub must_change: bool,
}

/// A name; of an account which password it has, of others as whom they count.
pub type Identity = (String, Option<u64>, Option<Origin>);

impl Caller {
    /// Somebody who did not log in: on the socket, whoever the kernel says it is.
    pub fn of(peer: &Peer, local: &Local) -> Self {
        let (name, role) = local.who(peer).unwrap_or_default();
        let origin = peer.origin(role.is_some());
        Self { name, role, from: from(peer), origin, ..Self::default() }
    }

    /// Somebody who says that they are an account, which is not known yet.
    pub fn trying(self, name: String) -> Self {
        let from = match self.origin.user() {
            Some(user) => format!("{SOCKET} (uid {user})"),
            None => self.from,
        };
        Self { name, role: None, from, origin: self.origin, ..Self::default() }
    }

    /// The same, once they logged in.
    pub fn logged_in(self, account: &Account, session: Option<&Session>) -> Self {
        Self {
            role: Some(account.role),
            account: Some(account.name.clone()),
            generation: account.generation,
            session: session.map(|session| session.id.clone()),
            must_change: account.must_change,
            ..self.trying(account.name.clone())
        }
    }

    /// Who they are, from wherever they ask: an account as long as it has its password, or a user
    /// of the machine. One name may be both, and one after the other.
    pub fn identity(&self) -> Identity {
        match &self.account {
            Some(account) => (account.clone(), Some(self.generation), None),
            None => (self.name.clone(), None, Some(self.origin)),
        }
    }

    /// Whether nothing is known of them: they could be asked who they are.
    pub const fn is_nobody(&self) -> bool {
        self.role.is_none() && matches!(self.origin, Origin::Network(_))
    }

    /// Whether they have a privilege.
    pub fn may(&self, privilege: Privilege) -> bool {
        privilege == Privilege::Nobody || self.role.is_some_and(|role| role.may(privilege))
    }

    /// Names them among all who ask.
    pub fn key(&self) -> String {
        format!("{} {}", if self.account.is_some() { "account" } else { "user" }, self.name)
    }

    /// Whether they may know of an event: of accounts and logins who may change accounts knows all,
    /// others their own.
    pub fn knows(&self, event: &Event) -> bool {
        let is_own = |account: &str| self.account.as_deref() == Some(account);
        self.may(Privilege::ConfigureUsers) || event.account().is_none_or(is_own)
    }

    /// Whether they may do this.
    ///
    /// # Errors
    /// They may not, or the resource has no such method.
    pub fn check(&self, view: &View, found: &Match, method: Method) -> Result<(), Refusal> {
        let Some(privilege) = needed(view, found, method) else {
            return Err(if self.is_nobody() {
                nobody(&found.uri())
            } else {
                Refusal::not_allowed()
            });
        };
        if privilege == Privilege::Nobody {
            return Ok(());
        }
        let is_own = self.owns(view, found);
        if let Some(account) = self.account.as_deref().filter(|_| self.must_change) {
            // What it asks of its own account may still be more than the password.
            let is_session = found.route.resource == Resource::Session;
            return match (is_own, method) {
                (true, Method::Get | Method::Patch) => Ok(()),
                (true, Method::Delete) if is_session => Ok(()),
                _ => Err(password_first(account)),
            };
        }
        let is_another = privilege == Privilege::ConfigureSelf && !is_own;
        let needed = if is_another { Privilege::ConfigureUsers } else { privilege };
        if self.may(needed) {
            return Ok(());
        }
        match self.is_nobody() {
            true => Err(nobody(&found.uri())),
            false => Err(Refusal::base(&Base::INSUFFICIENT_PRIVILEGE, &[])),
        }
    }

    /// Whether this is the account or a session of who asks.
    fn owns(&self, view: &View, found: &Match) -> bool {
        let Some(account) = self.account.as_deref() else { return false };
        match found.route.resource {
            Resource::Account => found.id(0) == account,
            Resource::Session => {
                view.access.session(found.id(0)).is_some_and(|own| own.account == account)
            }
            _ => false,
        }
    }
}

/// The privilege that a request needs; none if the resource has no such method. The configuration
/// may give what Prometheus reads to everybody.
pub fn needed(view: &View, found: &Match, method: Method) -> Option<Privilege> {
    let own = found.route.privilege(method)?;
    let is_open = found.route.resource == Resource::Metrics && view.server.open_metrics;
    Some(if is_open { Privilege::Nobody } else { own })
}

/// From where the daemon's socket is asked.
const SOCKET: &str = "socket";

/// From where somebody asks.
fn from(peer: &Peer) -> String {
    peer.address().map_or_else(|| SOCKET.to_owned(), |address| address.to_string())
}

/// Who is nobody has to log in first.
pub fn nobody(uri: &str) -> Refusal {
    Refusal::base(&Base::UNAUTHORIZED, &[uri, "nobody is logged in"])
}

/// An account that has to change its password can do nothing else.
pub fn password_first(account: &str) -> Refusal {
    Refusal::base(&Base::PASSWORD_CHANGE_REQUIRED, &[&uri::account(account)])
}
#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;

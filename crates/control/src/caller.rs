//! Who asks: an account of the daemon, or a process of this machine, and what they may do.
//!
//! Invariant: who asks is known before anything of the request is looked at but its headers.

use crate::peer::Peer;
use redfish::routes::Privilege;

/// What somebody may do (DSP0266, "Roles").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Read.
    ReadOnly,
    /// Also change arrays, volumes and exports.
    Operator,
    /// Everything.
    Administrator,
}

impl Role {
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

/// Somebody who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The account's name; on the socket that of the user.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// From where they ask: `socket`, or an address.
    pub from: String,
}

impl Caller {
    /// Somebody on the daemon's socket: who may open it may do everything. Nobody else is known.
    pub fn of(peer: &Peer) -> Option<Self> {
        match peer {
            Peer::Socket { user } => Some(Self {
                name: format!("uid:{user}"),
                role: Role::Administrator,
                from: "socket".to_owned(),
            }),
            Peer::Network { .. } => None,
        }
    }
}

#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;

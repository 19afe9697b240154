//! The other end of a client's connection.

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsFd;
use tokio::net::UnixStream;

/// Who is connected, as far as the kernel tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A process of this machine, on the daemon's socket.
    Socket {
        /// The number of its user.
        user: u32,
        /// The numbers of its groups.
        groups: Vec<u32>,
    },
    /// Somebody on the network.
    Network {
        /// Where they are.
        address: IpAddr,
    },
}

/// Who counts as one where something is counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// A user on the daemon's socket, by number.
    Socket(u32),
    /// The same, who has no role there.
    Stranger(u32),
    /// An address; of IPv6, its [`network`].
    Network(IpAddr),
}

impl Origin {
    /// Whether who guesses passwords from here has to wait: all but users who may do something
    /// without one.
    pub const fn is_locked_out(&self) -> bool {
        !matches!(self, Self::Socket(_))
    }

    /// Whether it is the machine itself, over the network.
    pub const fn is_loopback(&self) -> bool {
        match self {
            // Of `::1` the network has no bit.
            Self::Network(address) => address.is_loopback() || address.is_unspecified(),
            Self::Socket(_) | Self::Stranger(_) => false,
        }
    }

    /// The user, on the socket.
    pub const fn user(&self) -> Option<u32> {
        match self {
            Self::Socket(user) | Self::Stranger(user) => Some(*user),
            Self::Network(_) => None,
        }
    }
}

/// What counts as one address: of IPv6, the network of 64 bits that a site hands out from.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address => address,
    }
}

impl Default for Origin {
    fn default() -> Self {
        Self::Socket(u32::MAX)
    }
}

impl Peer {
    /// Who is at the other end of the socket. Somebody whom the kernel does not know is nobody.
    pub fn of(stream: &UnixStream) -> Self {
        let Ok(credentials) = stream.peer_cred() else {
            return Self::Socket { user: u32::MAX, groups: Vec::new() };
        };
        // A kernel that does not tell the other groups tells the first.
        let mut groups = runtime::peer_groups(stream.as_fd()).unwrap_or_default();
        groups.push(credentials.gid());
        Self::Socket { user: credentials.uid(), groups }
    }

    /// As whom they count, by whether they have a role on the socket.
    pub fn origin(&self, has_role: bool) -> Origin {
        match self {
            Self::Socket { user, .. } if has_role => Origin::Socket(*user),
            Self::Socket { user, .. } => Origin::Stranger(*user),
            Self::Network { address } => Origin::Network(network(*address)),
        }
    }

    /// Where they are, if they are on the network.
    pub const fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Socket { .. } => None,
            Self::Network { address } => Some(*address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Origin {
        Peer::Network { address: text.parse().expect("an address") }.origin(false)
    }

    #[test]
    fn a_site_counts_as_one_address() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:2"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("::ffff:192.0.2.1"), origin("192.0.2.1"));
        assert_ne!(origin("192.0.2.1"), origin("192.0.2.2"));
    }
}

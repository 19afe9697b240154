//! The other end of a client's connection.

use std::net::IpAddr;
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
    /// An address.
    Network(IpAddr),
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

    /// As whom they count.
    pub const fn origin(&self) -> Origin {
        match self {
            Self::Socket { user, .. } => Origin::Socket(*user),
            Self::Network { address } => Origin::Network(*address),
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

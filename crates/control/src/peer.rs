//! The other end of a client's connection.

use std::net::IpAddr;
use tokio::net::UnixStream;

/// Who is connected, as far as the kernel tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A process of this machine, on the daemon's socket.
    Socket {
        /// The number of its user.
        user: u32,
    },
    /// Somebody on the network.
    Network {
        /// Where they are.
        address: IpAddr,
    },
}

impl Peer {
    /// Who is at the other end of the socket. Somebody whom the kernel does not know is nobody.
    pub fn of(stream: &UnixStream) -> Self {
        let nobody = u32::MAX;
        let user = stream.peer_cred().map_or(nobody, |credentials| credentials.uid());
        Self::Socket { user }
    }

    /// Where they are, if they are on the network.
    pub const fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Socket { .. } => None,
            Self::Network { address } => Some(*address),
        }
    }
}

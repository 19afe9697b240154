//! Places for clients: nobody takes all of them.
//!
//! Invariants
//! - No more than [`CONNECTIONS`] clients have a place, [`OF_ADDRESS`] of one address. The last
//!   [`FOR_SOCKET`] places are for clients on the daemon's own socket: who comes from the network
//!   can't keep the machine's administrator out.

use crate::peer::Peer;
use crate::pools::Pools;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

/// Connections at one time.
pub const CONNECTIONS: usize = 256;

/// How many of them are of one address.
pub const OF_ADDRESS: usize = 64;

/// How many of them are kept for the daemon's socket.
pub const FOR_SOCKET: usize = 32;

/// What is taken.
#[derive(Default)]
struct Taken {
    places: usize,
    of_network: usize,
    of: BTreeMap<IpAddr, usize>,
}

/// All places, and the memory that those who have one share.
#[derive(Default)]
pub struct Room {
    taken: Mutex<Taken>,
    /// The memory.
    pub pools: Arc<Pools>,
}

impl Room {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A place for a client; none if there is none for it.
    pub fn enter(self: &Arc<Self>, peer: &Peer) -> Option<Place> {
        let mut taken = self.taken();
        let address = peer.address();
        if let Some(address) = address {
            let own = taken.of.get(&address).copied().unwrap_or(0);
            if own >= OF_ADDRESS || taken.of_network >= CONNECTIONS - FOR_SOCKET {
                return None;
            }
        }
        if taken.places >= CONNECTIONS {
            return None;
        }
        taken.places += 1;
        if let Some(address) = address {
            taken.of_network += 1;
            *taken.of.entry(address).or_default() += 1;
        }
        drop(taken);
        Some(Place { room: self.clone(), address })
    }

    fn leave(&self, address: Option<IpAddr>) {
        let mut taken = self.taken();
        taken.places = taken.places.saturating_sub(1);
        let Some(address) = address else { return };
        taken.of_network = taken.of_network.saturating_sub(1);
        match taken.of.get_mut(&address) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.of.remove(&address)),
        }
    }
}

/// A client's place, until it is dropped.
pub struct Place {
    room: Arc<Room>,
    address: Option<IpAddr>,
}

impl Place {
    /// Where it is.
    pub fn room(&self) -> &Arc<Room> {
        &self.room
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.leave(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOCKET: Peer = Peer::Socket { user: 0, groups: Vec::new() };

    fn network(number: u32) -> Peer {
        Peer::Network { address: IpAddr::from(number.to_be_bytes()) }
    }

    #[test]
    fn an_address_has_its_share() {
        let room = Arc::new(Room::default());
        let own: Vec<_> = (0..OF_ADDRESS).map(|_| room.enter(&network(1)).expect("room")).collect();
        assert!(room.enter(&network(1)).is_none());
        let other = room.enter(&network(2)).expect("room for another");
        drop(own);
        assert!(room.enter(&network(1)).is_some());
        drop(other);
        assert!(room.taken().of.is_empty());
        let taken = room.taken();
        assert_eq!((taken.places, taken.of_network), (0, 0));
    }

    #[test]
    fn the_network_can_not_keep_the_socket_out() {
        let room = Arc::new(Room::default());
        let network: Vec<_> = (0..1000).map_while(|n| room.enter(&network(n / 8))).collect();
        assert_eq!(network.len(), CONNECTIONS - FOR_SOCKET);
        let socket: Vec<_> = (0..1000).map_while(|_| room.enter(&SOCKET)).collect();
        assert_eq!(socket.len(), FOR_SOCKET);
        drop(network);
        assert!(room.enter(&SOCKET).is_some());
    }
}

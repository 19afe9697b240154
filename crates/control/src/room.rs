//! Places for clients: nobody takes all of them.
//!
//! Invariants
//! - No more than [`CONNECTIONS`] clients have a place: [`OF_ONE`] of one address or of one user of
//!   the daemon's socket, [`OF_STRANGER`] of a user who has no role there. Only root and the
//!   daemon's own user may have all: they could replace the daemon.
//! - The last [`FOR_SOCKET`] places are for users of the socket who have a role: neither who comes
//!   from the network nor who may do nothing can keep the machine's administrator out.

use crate::lock::lock;
use crate::peer::{Origin, Peer};
use crate::pools::Pools;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Connections at one time.
pub const CONNECTIONS: usize = 256;

/// How many of them are of one address, or of one user of the socket.
pub const OF_ONE: usize = 64;

/// How many of them are of one user of the socket who has no role.
pub const OF_STRANGER: usize = 8;

/// How many of them are kept for users of the socket who have a role.
pub const FOR_SOCKET: usize = 32;

/// What is taken.
#[derive(Default)]
struct Taken {
    places: usize,
    /// Of those for whom none are kept.
    of_others: usize,
    of: BTreeMap<Origin, usize>,
}

/// Says whether who is on the socket has a role there.
type HasRole = Box<dyn Fn(&Peer) -> bool + Send + Sync>;

/// All places, and the memory that those who have one share.
pub struct Room {
    taken: Mutex<Taken>,
    has_role: HasRole,
    /// The memory.
    pub pools: Arc<Pools>,
}

impl Room {
    /// All is free. `has_role` says whether who is on the socket has a role there.
    pub fn new(has_role: impl Fn(&Peer) -> bool + Send + Sync + 'static) -> Self {
        Self { taken: Mutex::default(), has_role: Box::new(has_role), pools: Arc::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        lock(&self.taken)
    }

    /// A place for a client; none if there is none for it.
    pub fn enter(self: &Arc<Self>, peer: &Peer) -> Option<Place> {
        let origin = peer.origin((self.has_role)(peer));
        let mut taken = self.taken();
        let own = taken.of.get(&origin).copied().unwrap_or(0);
        let is_full = match is_kept_for(origin) {
            true => taken.places >= CONNECTIONS,
            false => taken.of_others >= CONNECTIONS - FOR_SOCKET || taken.places >= CONNECTIONS,
        };
        if is_full || own >= most(origin) {
            return None;
        }
        taken.places += 1;
        taken.of_others += usize::from(!is_kept_for(origin));
        *taken.of.entry(origin).or_default() += 1;
        drop(taken);
        Some(Place { room: self.clone(), origin })
    }

    fn leave(&self, origin: Origin) {
        let mut taken = self.taken();
        taken.places = taken.places.saturating_sub(1);
        taken.of_others = taken.of_others.saturating_sub(usize::from(!is_kept_for(origin)));
        match taken.of.get_mut(&origin) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.of.remove(&origin)),
        }
    }
}

impl Default for Room {
    /// Of which no place is kept for anybody.
    fn default() -> Self {
        Self::new(|_| false)
    }
}

/// Whether the last places are kept for these.
const fn is_kept_for(origin: Origin) -> bool {
    matches!(origin, Origin::Socket(_))
}

/// How many places these may have.
fn most(origin: Origin) -> usize {
    match origin {
        Origin::Socket(user) if user == 0 || user == rustix::process::geteuid().as_raw() => {
            CONNECTIONS
        }
        Origin::Socket(_) | Origin::Network(_) => OF_ONE,
        Origin::Stranger(_) => OF_STRANGER,
    }
}

/// A client's place, until it is dropped.
pub struct Place {
    room: Arc<Room>,
    origin: Origin,
}

impl Place {
    /// Where it is.
    pub fn room(&self) -> &Arc<Room> {
        &self.room
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.leave(self.origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    /// Users from 70000 on have a role.
    fn room() -> Arc<Room> {
        let has_role = |peer: &Peer| match peer {
            Peer::Socket { user, .. } => *user == 0 || *user >= 70_000,
            Peer::Network { .. } => false,
        };
        Arc::new(Room::new(has_role))
    }

    const fn socket(user: u32) -> Peer {
        Peer::Socket { user, groups: Vec::new() }
    }

    fn network(number: u32) -> Peer {
        Peer::Network { address: IpAddr::from(number.to_be_bytes()) }
    }

    #[test]
    fn an_address_has_its_share() {
        let room = room();
        let own: Vec<_> = (0..OF_ONE).map(|_| room.enter(&network(1)).expect("room")).collect();
        assert!(room.enter(&network(1)).is_none());
        let other = room.enter(&network(2)).expect("room for another");
        drop(own);
        assert!(room.enter(&network(1)).is_some());
        drop(other);
        assert!(room.taken().of.is_empty());
        let taken = room.taken();
        assert_eq!((taken.places, taken.of_others), (0, 0));
    }

    #[test]
    fn the_network_can_not_keep_the_socket_out() {
        let room = room();
        let network: Vec<_> = (0..1000).map_while(|n| room.enter(&network(n / 8))).collect();
        assert_eq!(network.len(), CONNECTIONS - FOR_SOCKET);
        let local: Vec<_> = (0..1000).map_while(|_| room.enter(&socket(0))).collect();
        assert_eq!(local.len(), FOR_SOCKET);
        drop(network);
        assert!(room.enter(&socket(0)).is_some());
    }

    #[test]
    fn a_network_of_64_bits_is_one_address() {
        let room = room();
        let v6 = |last: u16| Peer::Network { address: [0x2001, 0xdb8, 0, 0, 0, 0, 0, last].into() };
        let own: Vec<_> = (0..1000).map_while(|n| room.enter(&v6(n))).collect();
        assert_eq!(own.len(), OF_ONE);
    }

    #[test]
    fn who_has_no_role_can_not_keep_out_who_has() {
        let room = room();
        let enter = |user: u32| (0..1000).map_while(|_| room.enter(&socket(user))).collect();
        let stranger: Vec<_> = enter(1000);
        assert_eq!(stranger.len(), OF_STRANGER);
        let strangers: Vec<Place> = (1001..2000).flat_map(enter).collect();
        assert_eq!(strangers.len() + stranger.len(), CONNECTIONS - FOR_SOCKET);
        let own: Vec<Place> = enter(70_000);
        assert_eq!(own.len(), FOR_SOCKET);
        drop((strangers, stranger));
        assert_eq!(enter(70_001).len(), OF_ONE);
        assert_eq!(enter(0).len(), CONNECTIONS - FOR_SOCKET, "root may have all");
        drop(own);
        assert!(room.taken().of.is_empty());
    }
}

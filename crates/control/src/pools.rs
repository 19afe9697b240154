//! Memory for what clients send, and for what they have not taken yet of what they are answered.
//!
//! Invariants
//! - Each [`Share`] has memory of its own: who is nobody takes none from who has logged in, and the
//!   network none from the daemon's socket.
//! - Bodies of requests hold [`Share::most`] at most, and so do answers, beside one answer of
//!   [`SMALL`] a client.

use hyper::body::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An answer of so many bytes needs no room.
pub const SMALL: usize = 64 << 10;

/// Whose memory it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    /// Of those who are not known.
    Nobody,
    /// Of those on the network who have logged in.
    Network,
    /// Of those on the daemon's socket who are known.
    Socket,
}

impl Share {
    /// How many bytes it has.
    pub const fn most(self) -> usize {
        match self {
            Self::Nobody => 4 << 20,
            Self::Network => 16 << 20,
            Self::Socket => 12 << 20,
        }
    }
}

/// What is taken of each share.
#[derive(Default)]
struct Pool {
    nobody: AtomicUsize,
    network: AtomicUsize,
    socket: AtomicUsize,
}

impl Pool {
    const fn of(&self, share: Share) -> &AtomicUsize {
        match share {
            Share::Nobody => &self.nobody,
            Share::Network => &self.network,
            Share::Socket => &self.socket,
        }
    }
}

/// Bytes of a share, until this is dropped.
pub struct Counted {
    pool: Arc<Pool>,
    share: Share,
    bytes: usize,
}

impl Counted {
    /// Takes more; whether there was room for it.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let most = self.share.most();
        let all = |taken: usize| taken.checked_add(bytes).filter(|all| *all <= most);
        let taken =
            self.pool.of(self.share).fetch_update(Ordering::Relaxed, Ordering::Relaxed, all);
        if taken.is_ok() {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        taken.is_ok()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.pool.of(self.share).fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// All of this memory.
#[derive(Default)]
pub struct Pools {
    answers: Arc<Pool>,
    bodies: Arc<Pool>,
}

impl Pools {
    /// Nothing yet of what a request's body may take.
    pub fn body(&self, share: Share) -> Counted {
        Counted { pool: self.bodies.clone(), share, bytes: 0 }
    }

    /// Memory for an answer until its client has taken it; none if there is no room for it.
    pub fn answer(&self, share: Share, answer: Bytes) -> Option<Bytes> {
        if answer.len() <= SMALL {
            return Some(answer);
        }
        let mut counted = Counted { pool: self.answers.clone(), share, bytes: 0 };
        counted.grow(answer.len()).then(|| held(counted, answer))
    }
}

/// Bytes that are counted until they are dropped.
pub fn held(counted: Counted, bytes: impl AsRef<[u8]> + Send + 'static) -> Bytes {
    Bytes::from_owner(Held { _counted: counted, bytes })
}

struct Held<B> {
    bytes: B,
    _counted: Counted,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that a share has, in answers of a MiB.
    fn filled(pools: &Pools, share: Share) -> Vec<Bytes> {
        let large = Bytes::from(vec![0; 1 << 20]);
        let all: Vec<_> = (0..100).map_while(|_| pools.answer(share, large.clone())).collect();
        assert_eq!(all.len() << 20, share.most());
        all
    }

    #[test]
    fn an_answer_takes_room_until_it_is_gone() {
        let pools = Pools::default();
        let all = filled(&pools, Share::Network);
        let small = pools.answer(Share::Network, Bytes::from(vec![1; SMALL]));
        let small = small.expect("small ones need no room");
        assert_eq!((small.len(), small.first()), (SMALL, Some(&1)));
        let part = all[0].slice(5..);
        drop(all);
        let taken = pools.answers.network.load(Ordering::Relaxed);
        assert_eq!(taken, 1 << 20, "a part of it is still there");
        drop((part, small));
        assert_eq!(pools.answers.network.load(Ordering::Relaxed), 0);
        drop(filled(&pools, Share::Network));
    }

    #[test]
    fn nobody_takes_what_is_of_others() {
        let pools = Pools::default();
        let nobody = filled(&pools, Share::Nobody);
        let network = filled(&pools, Share::Network);
        let socket = filled(&pools, Share::Socket);
        let mut body = pools.body(Share::Nobody);
        assert!(body.grow(Share::Nobody.most()) && !body.grow(1), "bodies have their own");
        assert!(pools.body(Share::Socket).grow(Share::Socket.most()));
        drop(body);
        assert!(pools.body(Share::Nobody).grow(1));
        drop((nobody, network, socket));
    }
}

//! Payload memory: what a core's connections share, and what each may hold of it.
//!
//! All of it is allocated at start. Pieces come in three sizes, so that 4 KiB requests do not
//! touch large ones. Besides its share of these, every connection has one piece in *reserve*:
//! a client that stops sending a payload or reading its replies keeps the pieces it has (at most
//! [`CONNECTION_BYTES`]), but can't stop the others.
//!
//! Invariants
//! - A [`Lease`] stands for one piece charged to a connection; it is given back after the piece
//!   was dropped, and then those who wait look again.
//! - A connection holds at most one reserve piece, and there is one for each connection.
//!
//! A volume may keep a piece it was given a little longer than the request (a drive that does
//! not answer). Its return is not announced, so who waits also looks again every
//! [`LOOK_AGAIN`]. What is kept for longer than [`KEPT`] may never come back: then others are
//! allocated in its place, so that connections go on; never more than there are pieces are with
//! connections at a time.

use crate::limits::{CONNECTION_BYTES, LARGE_BYTES, MEDIUM_BYTES, SMALL_BYTES};
use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;
use io::local::Event;
use io::{BufMut, Env, Pool};
use std::rc::Rc;
use units::Nanos;

/// How often a connection without memory looks for pieces whose return nobody announced.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);

/// How long a connection waits for pieces that are neither free nor with a connection.
const KEPT: Nanos = Nanos::from_millis(1_000);

/// How much memory the connections of one core get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemorySize {
    /// Connections at the same time; each has 64 KiB in reserve.
    pub connections: usize,
    /// Pieces of 4 KiB.
    pub small: usize,
    /// Pieces of 64 KiB.
    pub medium: usize,
    /// Pieces of 1 MiB.
    pub large: usize,
}

impl Default for MemorySize {
    /// 128 connections and 60 MiB.
    fn default() -> Self {
        Self { connections: 128, small: 1024, medium: 256, large: 32 }
    }
}

/// The payload memory of all connections of one core.
pub struct ConnectionMemory {
    small: Pieces,
    medium: Pieces,
    large: Pieces,
    reserve: Pieces,
    connections: Cell<usize>,
    freed: Event,
    /// Pieces were kept for too long: what is missing is allocated.
    kept: Cell<bool>,
}

/// Pieces of one size, and how many are with connections.
struct Pieces {
    pool: Pool,
    lent: Rc<Cell<usize>>,
}

impl Pieces {
    fn new(bytes: usize, pieces: usize) -> Self {
        Self { pool: Pool::new(bytes, pieces), lent: Rc::default() }
    }

    /// A piece, or with `kept` what stands for one that is neither free nor with a connection.
    fn take(&self, bytes: usize, kept: bool) -> Option<BufMut> {
        let spare = || (kept && self.lent.get() < self.pool.pieces()).then(|| Pool::single(bytes));
        let piece = self.pool.take(bytes).or_else(spare)?;
        self.lent.set(self.lent.get() + 1);
        Some(piece)
    }
}

impl ConnectionMemory {
    /// Allocates it.
    pub fn new(size: MemorySize) -> Rc<Self> {
        Rc::new(Self {
            small: Pieces::new(SMALL_BYTES, size.small),
            medium: Pieces::new(MEDIUM_BYTES, size.medium),
            large: Pieces::new(LARGE_BYTES, size.large),
            reserve: Pieces::new(MEDIUM_BYTES, size.connections),
            connections: Cell::new(0),
            freed: Event::default(),
            kept: Cell::new(false),
        })
    }

    /// True if every piece is free and no connection is open.
    pub fn is_idle(&self) -> bool {
        let pools = [&self.small, &self.medium, &self.large, &self.reserve];
        self.connections.get() == 0 && pools.iter().all(|p| p.pool.free() == p.pool.pieces())
    }

    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.connections.get()
    }
}

/// One connection's claim on the memory.
pub(crate) struct Share {
    memory: Rc<ConnectionMemory>,
    held: Cell<usize>,
    reserve_used: Cell<bool>,
}

impl Share {
    /// Opens a connection's share; `None` if there are as many connections as reserve pieces.
    pub fn open(memory: &Rc<ConnectionMemory>) -> Option<Rc<Self>> {
        let connections = memory.connections.get();
        if connections >= memory.reserve.pool.pieces() {
            return None;
        }
        memory.connections.set(connections + 1);
        Some(Rc::new(Self {
            memory: memory.clone(),
            held: Cell::new(0),
            reserve_used: Cell::new(false),
        }))
    }

    /// A piece for up to `want` bytes, shorter if `want` is more than a piece or only smaller
    /// pieces are free.
    fn try_take(self: &Rc<Self>, want: usize) -> Option<(BufMut, Lease)> {
        let ConnectionMemory { small, medium, large, reserve, .. } = &*self.memory;
        let kept = self.memory.kept.get();
        let pools = if want <= SMALL_BYTES {
            [small, medium]
        } else if want <= MEDIUM_BYTES {
            [medium, large]
        } else {
            [large, medium]
        };
        for pieces in pools {
            let bytes = pieces.pool.piece_bytes();
            if self.held.get() + bytes > CONNECTION_BYTES {
                continue;
            }
            if let Some(piece) = pieces.take(want.min(bytes), kept) {
                self.held.set(self.held.get() + bytes);
                let lent = pieces.lent.clone();
                return Some((piece, Lease { share: self.clone(), held: bytes, lent }));
            }
        }
        if self.reserve_used.get() {
            return None;
        }
        let piece = reserve.take(want.min(MEDIUM_BYTES), kept)?;
        self.reserve_used.set(true);
        Some((piece, Lease { share: self.clone(), held: 0, lent: reserve.lent.clone() }))
    }

    /// Takes a piece as [`Share::try_take`] does, waiting for one.
    pub async fn take<E: Env>(self: &Rc<Self>, env: &E, want: usize) -> (BufMut, Lease) {
        let mut looks = 0;
        loop {
            if let Some(taken) = self.try_take(want) {
                return taken;
            }
            let freed = self.memory.freed.wait_until(|| self.try_take(want));
            if let Some(taken) = or_timeout(pin!(freed), env.sleep(LOOK_AGAIN)).await {
                return taken;
            }
            looks += 1;
            if looks * LOOK_AGAIN.0 >= KEPT.0 {
                self.memory.kept.set(true);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.connections.set(self.memory.connections.get() - 1);
    }
}

/// Waits for `first`, or for `sleep` and then gives `None`.
async fn or_timeout<T>(
    mut first: Pin<&mut impl Future<Output = T>>,
    mut sleep: impl Future<Output = ()> + Unpin,
) -> Option<T> {
    poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| None),
    })
    .await
}

/// A piece's charge to its connection. Drop it after the piece.
pub(crate) struct Lease {
    share: Rc<Share>,
    /// Bytes charged; 0 for the reserve piece.
    held: usize,
    lent: Rc<Cell<usize>>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.lent.set(self.lent.get() - 1);
        if self.held == 0 {
            self.share.reserve_used.set(false);
        } else {
            self.share.held.set(self.share.held.get() - self.held);
        }
        self.share.memory.freed.notify();
    }
}

/// Bytes of the next piece of a request of `left` bytes at `offset`, when a piece has room for
/// `room`: pieces end at stripe borders where they can, so that long writes stay full-stripe.
pub(crate) fn piece_bytes(offset: u64, left: u64, room: usize, stripe_bytes: u32) -> usize {
    let room = room as u64;
    if left <= room {
        return left as usize;
    }
    let end = offset + room;
    let border = end - end % u64::from(stripe_bytes.max(1));
    if border > offset { (border - offset) as usize } else { room as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(small: usize, medium: usize, large: usize) -> Rc<ConnectionMemory> {
        ConnectionMemory::new(MemorySize { connections: 2, small, medium, large })
    }

    #[test]
    fn connections_are_counted_and_refused() {
        let memory = memory(1, 1, 1);
        let first = Share::open(&memory);
        let second = Share::open(&memory);
        assert!(first.is_some() && second.is_some() && Share::open(&memory).is_none());
        drop(first);
        assert!(Share::open(&memory).is_some());
    }

    #[test]
    fn pieces_fit_and_fall_back_to_the_reserve() {
        let memory = memory(1, 1, 1);
        let share = Share::open(&memory).unwrap();
        let sizes = [4096, 4096, 4096, 4096];
        let got: Vec<_> = sizes.iter().map(|want| share.try_take(*want)).collect();
        // Small, medium, reserve, none: small requests leave the large piece alone.
        assert_eq!(got.iter().filter(|taken| taken.is_some()).count(), 3);
        assert_eq!(memory.large.pool.free(), 1);
        assert_eq!(share.try_take(1 << 20).unwrap().0.len(), 1 << 20);
        drop(got);
        drop(share);
        assert!(memory.is_idle());
    }

    #[test]
    fn a_connection_is_bounded_and_others_go_on() {
        let memory = memory(0, 0, 64);
        let greedy = Share::open(&memory).unwrap();
        let mut got = Vec::new();
        while let Some(taken) = greedy.try_take(1 << 20) {
            got.push(taken);
        }
        assert_eq!(got.len(), CONNECTION_BYTES / LARGE_BYTES + 1);
        assert_eq!(got.last().unwrap().0.len(), MEDIUM_BYTES);
        let other = Share::open(&memory).unwrap();
        assert!(other.try_take(1 << 20).is_some());
    }

    #[test]
    fn pieces_that_are_kept_for_long_are_replaced_and_no_more_than_these() {
        let memory = memory(0, 3, 0);
        let share = Share::open(&memory).unwrap();
        // The volume keeps three pieces; their leases are over.
        let kept: Vec<_> = (0..3).map(|_| share.try_take(65536).unwrap().0).collect();
        let reserve = share.try_take(65536).unwrap();
        assert!(share.try_take(65536).is_none());
        memory.kept.set(true);
        let others: Vec<_> = (0..3).map(|_| share.try_take(65536).unwrap()).collect();
        assert!(share.try_take(65536).is_none() && others[2].0.len() == 65536);
        drop((kept, others, reserve, share));
        assert!(memory.is_idle());
    }

    #[test]
    fn pieces_end_at_stripe_borders() {
        let stripe = 7 << 16;
        assert_eq!(piece_bytes(0, 4096, 1 << 20, stripe), 4096);
        assert_eq!(piece_bytes(0, 4 << 20, 1 << 20, stripe), (2 * 7) << 16);
        assert_eq!(piece_bytes(4096, 4 << 20, 1 << 20, stripe), ((2 * 7) << 16) - 4096);
        assert_eq!(piece_bytes(0, 4 << 20, 1 << 16, stripe), 1 << 16);
        assert_eq!(piece_bytes(5 << 20, 4 << 20, 1 << 20, 8 << 20), 1 << 20);
    }
}

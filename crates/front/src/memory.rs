//! Payload memory: what a core's connections share, and what each may hold of it.
//!
//! Pieces come in a few sizes, so that 4 KiB requests do not touch large ones; all are allocated
//! at start. Besides its share of these, every connection has one piece in *reserve*, allocated as
//! it begins: a client that stops sending a payload or reading its replies keeps the pieces it has
//! (at most [`CONNECTION_BYTES`]), but can't stop the others.
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

use core::cell::Cell;
use core::future::{Future, poll_fn};
use core::ops::Range;
use core::pin::{Pin, pin};
use core::task::Poll;
use io::local::Event;
use io::{BufMut, Env, Pool, Reach};
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// How often a connection without memory looks for pieces whose return nobody announced.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);

/// How long a connection waits for pieces that are neither free nor with a connection.
const KEPT: Nanos = Nanos::from_millis(1_000);

/// Bytes of the pieces of each size.
pub const PIECES: [usize; 4] = [4 << 10, 16 << 10, 128 << 10, 1 << 20];

/// Bytes of the largest pieces.
pub const LARGEST: usize = PIECES[PIECES.len() - 1];

/// Bytes in reserve for a connection, where its protocol needs no other.
pub const RESERVE_BYTES: usize = 64 << 10;

/// Most payload memory one connection holds besides its reserve piece.
pub const CONNECTION_BYTES: usize = 16 << 20;

const _: () = assert!(CONNECTION_BYTES >= LARGEST);

/// How much memory the connections of one core get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemorySize {
    /// Connections at the same time.
    pub connections: usize,
    /// Bytes that each has in reserve.
    pub reserve_bytes: usize,
    /// Pieces of each of the sizes in [`PIECES`].
    pub pieces: [usize; PIECES.len()],
}

impl Default for MemorySize {
    /// 128 connections with [`RESERVE_BYTES`] each, and 60 MiB.
    fn default() -> Self {
        Self { connections: 128, reserve_bytes: RESERVE_BYTES, pieces: [1024, 512, 128, 32] }
    }
}

/// The payload memory of all connections of one core.
pub struct ConnectionMemory {
    size: MemorySize,
    pieces: [Pieces; PIECES.len()],
    connections: Cell<usize>,
    freed: Event,
    /// Pieces were kept for too long: what is missing is allocated.
    kept: Cell<bool>,
    /// Connections that wait for a piece.
    wanted: Cell<usize>,
}

/// Pieces of one size, and how many are with connections.
struct Pieces {
    pool: Pool,
    lent: Rc<Cell<usize>>,
}

impl Pieces {
    fn new(bytes: usize, pieces: usize, reach: Option<&Arc<dyn Reach>>) -> Self {
        Self { pool: Pool::reached(bytes, pieces, reach), lent: Rc::default() }
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
        Self::reached(size, None)
    }

    /// As [`ConnectionMemory::new`], where a device may reach it; a connection's reserve is not.
    pub fn reached(size: MemorySize, reach: Option<&Arc<dyn Reach>>) -> Rc<Self> {
        Rc::new(Self {
            size,
            pieces: core::array::from_fn(|at| Pieces::new(PIECES[at], size.pieces[at], reach)),
            connections: Cell::new(0),
            freed: Event::default(),
            kept: Cell::new(false),
            wanted: Cell::new(0),
        })
    }

    /// True if every piece is free and no connection is open.
    pub fn is_idle(&self) -> bool {
        self.connections.get() == 0 && self.pieces.iter().all(|p| p.pool.free() == p.pool.pieces())
    }

    /// Bytes of the pieces that are with connections; what these have in reserve is not counted.
    pub fn held(&self) -> usize {
        self.pieces.iter().map(|pieces| pieces.lent.get() * pieces.pool.piece_bytes()).sum()
    }

    /// Somebody waits for a piece.
    pub fn is_wanted(&self) -> bool {
        self.wanted.get() > 0
    }

    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.connections.get()
    }
}

/// One connection's claim on the memory.
pub struct Share {
    memory: Rc<ConnectionMemory>,
    held: Cell<usize>,
    /// Most bytes it may hold.
    most: Cell<usize>,
    reserve: Pieces,
    reserve_used: Cell<bool>,
}

impl Share {
    /// Opens a connection's share; `None` if there are as many connections as there may be.
    pub fn open(memory: &Rc<ConnectionMemory>) -> Option<Rc<Self>> {
        let connections = memory.connections.get();
        if connections >= memory.size.connections {
            return None;
        }
        memory.connections.set(connections + 1);
        Some(Rc::new(Self {
            memory: memory.clone(),
            held: Cell::new(0),
            most: Cell::new(CONNECTION_BYTES),
            reserve: Pieces::new(memory.size.reserve_bytes, 1, None),
            reserve_used: Cell::new(false),
        }))
    }

    /// From now on it takes pieces only as long as it holds no more than these bytes. Whoever wants
    /// a larger piece waits for ever.
    pub fn limit(&self, most: usize) {
        self.most.set(most.min(CONNECTION_BYTES));
    }

    /// A piece of at least `want` bytes, cut to them; not the reserve.
    pub fn try_take_whole(self: &Rc<Self>, want: usize) -> Option<(BufMut, Lease)> {
        let fits = PIECES.iter().position(|bytes| *bytes >= want)?;
        self.try_sizes(want, fits..(fits + 2).min(PIECES.len()))
    }

    /// A piece for up to `want` bytes, shorter if `want` is more than a piece or only smaller
    /// pieces are free; the reserve if there is none.
    pub fn try_take(self: &Rc<Self>, want: usize) -> Option<(BufMut, Lease)> {
        let last = PIECES.len() - 1;
        let fits = PIECES.iter().position(|bytes| *bytes >= want).unwrap_or(last);
        let larger = fits..(fits + 2).min(PIECES.len());
        let smaller = if fits == last { last - 1..last } else { 0..0 };
        let taken = self.try_sizes(want, larger).or_else(|| self.try_sizes(want, smaller));
        taken.or_else(|| self.try_reserve(want))
    }

    /// A piece of at least `want` bytes, cut to them; the reserve if there is none, which is as
    /// large.
    ///
    /// # Panics
    /// If the reserve is smaller.
    pub fn try_take_all(self: &Rc<Self>, want: usize) -> Option<(BufMut, Lease)> {
        assert!(want <= self.memory.size.reserve_bytes, "the reserve is as large");
        self.try_take_whole(want).or_else(|| self.try_reserve(want))
    }

    /// What is in reserve, as much of it as is wanted.
    fn try_reserve(self: &Rc<Self>, want: usize) -> Option<(BufMut, Lease)> {
        if self.reserve_used.get() {
            return None;
        }
        let want = want.min(self.memory.size.reserve_bytes);
        let piece = self.reserve.take(want, self.memory.kept.get())?;
        self.reserve_used.set(true);
        Some((piece, Lease { share: self.clone(), held: 0, lent: self.reserve.lent.clone() }))
    }

    fn try_sizes(self: &Rc<Self>, want: usize, sizes: Range<usize>) -> Option<(BufMut, Lease)> {
        for pieces in &self.memory.pieces[sizes] {
            let bytes = pieces.pool.piece_bytes();
            if self.held.get() + bytes > self.most.get() {
                continue;
            }
            if let Some(piece) = pieces.take(want.min(bytes), self.memory.kept.get()) {
                self.held.set(self.held.get() + bytes);
                let lent = pieces.lent.clone();
                return Some((piece, Lease { share: self.clone(), held: bytes, lent }));
            }
        }
        None
    }

    /// Takes a piece as [`Share::try_take`] does, waiting for one.
    pub async fn take<E: Env>(self: &Rc<Self>, env: &E, want: usize) -> (BufMut, Lease) {
        self.wait_for(env, || self.try_take(want)).await
    }

    /// Takes a piece as [`Share::try_take_whole`] does, waiting for one.
    pub async fn take_whole<E: Env>(self: &Rc<Self>, env: &E, want: usize) -> (BufMut, Lease) {
        self.wait_for(env, || self.try_take_whole(want)).await
    }

    /// Takes a piece as [`Share::try_take_all`] does, waiting for one.
    pub async fn take_all<E: Env>(self: &Rc<Self>, env: &E, want: usize) -> (BufMut, Lease) {
        self.wait_for(env, || self.try_take_all(want)).await
    }

    async fn wait_for<E: Env, T>(&self, env: &E, take: impl Fn() -> Option<T>) -> T {
        if let Some(taken) = take() {
            return taken;
        }
        let wanted = &self.memory.wanted;
        wanted.set(wanted.get() + 1);
        let taken = self.wait(env, take).await;
        wanted.set(wanted.get() - 1);
        taken
    }

    async fn wait<E: Env, T>(&self, env: &E, take: impl Fn() -> Option<T>) -> T {
        let mut looks = 0;
        loop {
            let freed = self.memory.freed.wait_until(&take);
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
pub struct Lease {
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
pub fn piece_bytes(offset: u64, left: u64, room: usize, stripe_bytes: u32) -> usize {
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

    fn memory(pieces: [usize; 4]) -> Rc<ConnectionMemory> {
        let size = MemorySize { connections: 2, reserve_bytes: 64 << 10, pieces };
        ConnectionMemory::new(size)
    }

    #[test]
    fn connections_are_counted_and_refused() {
        let memory = memory([1; 4]);
        let first = Share::open(&memory);
        let second = Share::open(&memory);
        assert!(first.is_some() && second.is_some() && Share::open(&memory).is_none());
        drop(first);
        assert!(Share::open(&memory).is_some());
    }

    #[test]
    fn pieces_fit_and_fall_back_to_the_reserve() {
        let memory = memory([1; 4]);
        let share = Share::open(&memory).unwrap();
        let sizes = [4096, 4096, 4096, 4096];
        let got: Vec<_> = sizes.iter().map(|want| share.try_take(*want)).collect();
        // 4 KiB, 16 KiB, reserve, none: small requests leave large pieces alone.
        assert_eq!(got.iter().filter(|taken| taken.is_some()).count(), 3);
        assert_eq!(memory.pieces[3].pool.free(), 1);
        assert_eq!(share.try_take(1 << 20).unwrap().0.len(), 1 << 20);
        drop(got);
        drop(share);
        assert!(memory.is_idle());
    }

    #[test]
    fn whole_pieces_are_never_shorter_and_never_the_reserve() {
        let memory = memory([1, 0, 1, 0]);
        let share = Share::open(&memory).unwrap();
        assert!(share.try_take_whole(16 << 10).is_some_and(|(piece, _)| piece.len() == 16 << 10));
        assert!(share.try_take_whole((128 << 10) + 1).is_none());
        assert!(share.try_take_whole((1 << 20) + 1).is_none());
        let held = share.try_take_whole(128 << 10).unwrap();
        assert!(share.try_take_whole(16 << 10).is_none() && share.try_take(16 << 10).is_some());
        drop((held, share));
        assert!(memory.is_idle());
    }

    #[test]
    fn all_of_a_piece_is_a_whole_one_or_the_reserve() {
        let size = MemorySize { connections: 2, reserve_bytes: LARGEST, pieces: [0, 0, 8, 1] };
        let memory = ConnectionMemory::new(size);
        let share = Share::open(&memory).unwrap();
        let all = [LARGEST, LARGEST, LARGEST].map(|want| share.try_take_all(want));
        assert_eq!(all.each_ref().map(Option::is_some), [true, true, false], "never a smaller one");
        assert!(all.iter().flatten().all(|(piece, _)| piece.len() == LARGEST));
        drop(all);
        assert!(share.try_take_all(5).is_some_and(|(piece, _)| piece.len() == 5));
        drop(share);
        assert!(memory.is_idle());
    }

    #[test]
    fn a_connection_is_bounded_and_others_go_on() {
        let memory = memory([0, 0, 0, 64]);
        let greedy = Share::open(&memory).unwrap();
        let mut got = Vec::new();
        while let Some(taken) = greedy.try_take(1 << 20) {
            got.push(taken);
        }
        assert_eq!(got.len(), CONNECTION_BYTES / LARGEST + 1);
        assert_eq!(got.last().unwrap().0.len(), 64 << 10);
        let other = Share::open(&memory).unwrap();
        assert!(other.try_take(1 << 20).is_some());
    }

    #[test]
    fn a_share_may_be_limited_to_less() {
        let memory = memory([2, 2, 2, 2]);
        let share = Share::open(&memory).unwrap();
        share.limit(128 << 10);
        assert!(share.try_take_whole((128 << 10) + 1).is_none());
        let whole = share.try_take_whole(128 << 10);
        assert!(whole.is_some() && share.try_take_whole(1).is_none());
        assert_eq!(memory.held(), 128 << 10);
        drop(whole);
        let small: Vec<_> = (0..3).map_while(|_| share.try_take_whole(1)).collect();
        assert_eq!((small.len(), memory.held()), (3, 24 << 10));
    }

    #[test]
    fn pieces_that_are_kept_for_long_are_replaced_and_no_more_than_these() {
        let memory = memory([0, 0, 3, 0]);
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

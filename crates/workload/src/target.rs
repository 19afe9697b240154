//! Where requests go: bare drives, a volume, or whatever else is served.

use core::future::Future;
use io::{Blocks, Buf, BufMut, Drive};
use std::rc::Rc;

/// Where requests go. A request's outcome is whether it succeeded.
pub trait Target: Clone + 'static {
    /// Bytes of the address space.
    fn bytes(&self) -> u64;
    /// Fills the buffer from `at`.
    fn read(&self, at: u64, into: BufMut) -> impl Future<Output = (bool, BufMut)>;
    /// Writes the buffer at `at`.
    fn write(&self, at: u64, data: Buf) -> impl Future<Output = bool>;
}

/// A volume, or whatever else is served.
#[derive(Clone, Debug)]
pub struct Served<B>(pub B);

impl<B: Blocks> Target for Served<B> {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    async fn read(&self, at: u64, into: BufMut) -> (bool, BufMut) {
        let (result, into) = self.0.read(at, into).await;
        (result.is_ok(), into)
    }

    async fn write(&self, at: u64, data: Buf) -> bool {
        self.0.write(at, data, false).await.is_ok()
    }
}

/// Bytes of one drive before the next one's turn, where nothing else is said: the largest request,
/// so that none is split and sequential requests use all drives.
pub const TURN: u64 = 128 << 10;

/// The data areas of bare drives, one address space.
#[derive(Clone, Debug)]
pub struct Raw<D> {
    drives: Rc<[D]>,
    start: u64,
    bytes: u64,
    turn: u64,
}

impl<D: Drive> Raw<D> {
    /// The `bytes` from `start` on of each drive.
    pub fn new(drives: Vec<D>, start: u64, bytes: u64) -> Self {
        Self::in_turns(drives, start, bytes, TURN)
    }

    /// As [`Raw::new`], with so many bytes of one drive before the next one's turn.
    pub fn in_turns(drives: Vec<D>, start: u64, bytes: u64, turn: u64) -> Self {
        Self { drives: drives.into(), start, bytes: bytes / turn * turn, turn }
    }

    #[inline]
    fn place(&self, at: u64) -> (&D, u64) {
        let (turn, within) = (at / self.turn, at % self.turn);
        let count = self.drives.len() as u64;
        let drive = &self.drives[(turn % count) as usize];
        (drive, self.start + turn / count * self.turn + within)
    }
}

impl<D: Drive> Target for Raw<D> {
    fn bytes(&self) -> u64 {
        self.bytes * self.drives.len() as u64
    }

    async fn read(&self, at: u64, into: BufMut) -> (bool, BufMut) {
        let (drive, at) = self.place(at);
        let (result, into) = drive.read(at, into).await;
        (result.is_ok(), into)
    }

    async fn write(&self, at: u64, data: Buf) -> bool {
        let (drive, at) = self.place(at);
        drive.write(at, core::slice::from_ref(&data), false).await.is_ok()
    }
}

/// Several targets as one address space, one behind the other: of each as much as the smallest has,
/// in whole pieces of [`TURN`]. Sequential jobs begin at equal distances, so that each target has
/// as many of them.
#[derive(Clone, Debug)]
pub struct Many<T> {
    targets: Rc<[T]>,
    each: u64,
}

impl<T: Target> Many<T> {
    /// All of these.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(targets: Vec<T>) -> Self {
        let least = targets.iter().map(Target::bytes).min().expect("there is a target");
        Self { targets: targets.into(), each: least / TURN * TURN }
    }

    #[inline]
    fn place(&self, at: u64) -> (&T, u64) {
        (&self.targets[(at / self.each) as usize], at % self.each)
    }
}

impl<T: Target> Target for Many<T> {
    fn bytes(&self) -> u64 {
        self.each * self.targets.len() as u64
    }

    async fn read(&self, at: u64, into: BufMut) -> (bool, BufMut) {
        let (target, at) = self.place(at);
        target.read(at, into).await
    }

    async fn write(&self, at: u64, data: Buf) -> bool {
        let (target, at) = self.place(at);
        target.write(at, data).await
    }
}

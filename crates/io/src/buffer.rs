//! Aligned buffers from a pool: unique while they are written, shared once they are frozen.
//!
//! A [`Pool`] is one allocation cut into pieces of one size, all made at start (D4). Taking a
//! piece gives a [`BufMut`]: the only owner, readable and writable. [`BufMut::freeze`] makes it a
//! [`Buf`]: any number of clones and sub-slices, read-only. The piece returns to its pool when
//! the last owner is dropped, on whichever core that happens.
//!
//! Invariants
//! - Two `BufMut` never overlap; no `BufMut` overlaps a `Buf`. So parity is only ever computed
//!   from memory that nobody else can write.
//! - A piece's count equals the number of `Buf` and `BufMut` into it.
//! - The pool's memory lives until the pool and all of its pieces are gone.
#![allow(unsafe_code)]

use core::ops::{Bound, Deref, DerefMut, RangeBounds};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::{Arc, Mutex};

/// Alignment of every piece: a page, enough for direct I/O.
pub const ALIGN: usize = 4096;

/// A fixed number of equal, aligned pieces of memory. Clones share them.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

/// The memory of a pool: one allocation, freed when this is dropped.
#[derive(Debug)]
pub struct Memory {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: an allocation belongs to no thread.
unsafe impl Send for Memory {}
// SAFETY: nothing can be done with it but to ask where it lies.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(layout: Layout) -> Self {
        // SAFETY: the only caller gives a layout with a size of at least 1.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        Self { base, layout }
    }

    /// Address of the first byte.
    pub fn address(&self) -> usize {
        self.base.as_ptr().expose_provenance()
    }

    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `Memory::new` with this layout; whoever has it is its only owner.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// A device that reaches the memory of pools by itself.
pub trait Reach: Send + Sync {
    /// A pool has `bytes` of memory from `address`. They lie there until [`Reach::end`].
    fn begin(&self, address: usize, bytes: usize);

    /// Nobody else uses the pool's memory any more. Who drops it while the device may still reach
    /// for it lets it write over other things.
    fn end(&self, memory: Memory);
}

struct Shared {
    base: *mut u8,
    piece_bytes: usize,
    counts: Box<[AtomicU32]>,
    free: Mutex<Vec<u32>>,
    /// Taken when the last owner goes.
    memory: Option<Memory>,
    reach: Option<Arc<dyn Reach>>,
}

// SAFETY: `base` is only read through `Buf`/`BufMut`, whose invariants exclude data races; the
// rest is atomics, a mutex, and what is `Send` and `Sync` itself.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn layout_of(piece_bytes: usize, pieces: usize) -> Layout {
        let bytes = piece_bytes.checked_mul(pieces).expect("pool size overflows");
        Layout::from_size_align(bytes.max(1), ALIGN).expect("pool is too large")
    }

    fn put_back(&self, piece: u32) {
        self.free.lock().unwrap_or_else(|e| e.into_inner()).push(piece);
    }
}

impl Drop for Shared {
    /// Every owner holds an `Arc` of this, so none is left.
    fn drop(&mut self) {
        if let (Some(memory), Some(reach)) = (self.memory.take(), &self.reach) {
            reach.end(memory);
        }
    }
}

impl Pool {
    /// Allocates `pieces` pieces of `piece_bytes` each (rounded up to [`ALIGN`]), zeroed.
    pub fn new(piece_bytes: usize, pieces: usize) -> Self {
        Self::reached(piece_bytes, pieces, None)
    }

    /// As [`Pool::new`], with memory that `reach`'s device is told of.
    pub fn reached(piece_bytes: usize, pieces: usize, reach: Option<&Arc<dyn Reach>>) -> Self {
        let piece_bytes = piece_bytes.next_multiple_of(ALIGN);
        assert!(u32::try_from(piece_bytes).is_ok(), "a piece is below 4 GiB");
        let count = u32::try_from(pieces).expect("too many pieces");
        let memory = Memory::new(Shared::layout_of(piece_bytes, pieces));
        if let Some(reach) = reach {
            reach.begin(memory.address(), memory.bytes());
        }
        Self {
            shared: Arc::new(Shared {
                base: memory.base.as_ptr(),
                piece_bytes,
                counts: (0..pieces).map(|_| AtomicU32::new(0)).collect(),
                free: Mutex::new((0..count).rev().collect()),
                memory: Some(memory),
                reach: reach.cloned(),
            }),
        }
    }

    /// A buffer outside any pool, for set-up, records and tests. Allocates.
    pub fn single(bytes: usize) -> BufMut {
        let pool = Self::new(bytes, 1);
        pool.take(bytes).expect("a new pool has its piece")
    }

    /// Takes a piece and shows its first `bytes`; `None` when none is free. The content is
    /// whatever it was.
    ///
    /// # Panics
    /// If `bytes` is more than a piece.
    pub fn take(&self, bytes: usize) -> Option<BufMut> {
        assert!(bytes <= self.shared.piece_bytes, "buffer larger than the pool's pieces");
        let piece = self.shared.free.lock().unwrap_or_else(|e| e.into_inner()).pop()?;
        self.shared.counts[piece as usize].store(1, Ordering::Relaxed);
        let shared = Arc::into_raw(self.shared.clone()).cast_mut();
        // SAFETY: `Arc::into_raw` never gives null.
        let shared = unsafe { NonNull::new_unchecked(shared) };
        Some(BufMut { shared, piece, start: 0, len: bytes as u32 })
    }

    /// Bytes of a piece.
    pub fn piece_bytes(&self) -> usize {
        self.shared.piece_bytes
    }

    /// Pieces that are free now.
    pub fn free(&self) -> usize {
        self.shared.free.lock().unwrap_or_else(|e| e.into_inner()).len()
    }

    /// All pieces, free or not.
    pub fn pieces(&self) -> usize {
        self.shared.counts.len()
    }
}

/// The only owner of a run of bytes.
pub struct BufMut {
    /// The pool; a piece that is not free holds one count of its `Arc`, whoever owns parts of it.
    shared: NonNull<Shared>,
    piece: u32,
    start: u32,
    len: u32,
}

// SAFETY: a `BufMut` is the only way to its bytes, as a `Vec` is; `Shared` is `Send` and `Sync`.
unsafe impl Send for BufMut {}
// SAFETY: through `&BufMut` the bytes can only be read.
unsafe impl Sync for BufMut {}

impl BufMut {
    fn shared(&self) -> &Shared {
        // SAFETY: the piece is not free, so its count of the `Arc` keeps the pool alive.
        unsafe { self.shared.as_ref() }
    }

    fn count(&self) -> &AtomicU32 {
        &self.shared().counts[self.piece as usize]
    }

    fn pointer(&self) -> *mut u8 {
        let shared = self.shared();
        let offset = self.piece as usize * shared.piece_bytes + self.start as usize;
        // SAFETY: `start + len` lies within the piece, which lies within the allocation.
        unsafe { shared.base.add(offset) }
    }

    /// Another owner of the same piece.
    fn share(&self, start: u32, len: u32) -> BufMut {
        self.count().fetch_add(1, Ordering::Relaxed);
        BufMut { shared: self.shared, piece: self.piece, start, len }
    }

    /// Cuts off and returns the first `at` bytes; `self` keeps the rest.
    ///
    /// # Panics
    /// If `at` is past the end.
    pub fn split_to(&mut self, at: usize) -> BufMut {
        assert!(at <= self.len as usize, "split past the end");
        let front = self.share(self.start, at as u32);
        self.start += at as u32;
        self.len -= at as u32;
        front
    }

    /// Joins `back`, which must be what directly follows in the same piece.
    ///
    /// # Panics
    /// If it is not.
    pub fn unsplit(&mut self, back: BufMut) {
        let joined = self.try_unsplit(back);
        assert!(joined.is_ok(), "unsplit of buffers that are not neighbours");
    }

    /// Joins `back` if it is what directly follows in the same piece; gives it back if not.
    pub fn try_unsplit(&mut self, back: BufMut) -> Result<(), BufMut> {
        let same = self.shared == back.shared && self.piece == back.piece;
        if !same || self.start + self.len != back.start {
            return Err(back);
        }
        self.len += back.len;
        Ok(())
    }

    /// Drops all bytes behind the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }

    /// The whole piece that these bytes are part of; `None`, and the piece goes back to its pool
    /// in time, if another part of it is still owned.
    pub fn whole(mut self) -> Option<BufMut> {
        // Acquire: what other owners did with their parts is over.
        if self.count().load(Ordering::Acquire) != 1 {
            return None;
        }
        self.start = 0;
        self.len = self.shared().piece_bytes as u32;
        Some(self)
    }

    /// Ends writing: from now on the bytes are shared and read-only.
    pub fn freeze(self) -> Buf {
        Buf { inner: self }
    }
}

impl Drop for BufMut {
    fn drop(&mut self) {
        // Release pairs with the acquire of the last owner, as in `Arc`.
        if self.count().fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        core::sync::atomic::fence(Ordering::Acquire);
        self.shared().put_back(self.piece);
        // SAFETY: `Pool::take` left one count of the `Arc` to the piece; this gives it back, and
        // nothing uses the pool through this piece afterwards.
        drop(unsafe { Arc::from_raw(self.shared.as_ptr()) });
    }
}

impl Deref for BufMut {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the range is inside the allocation, initialised (zeroed at the start), and by
        // the module's invariants nobody writes it while `self` is borrowed.
        unsafe { core::slice::from_raw_parts(self.pointer(), self.len as usize) }
    }
}

impl DerefMut for BufMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`, and `&mut self` is the only way to these bytes.
        unsafe { core::slice::from_raw_parts_mut(self.pointer(), self.len as usize) }
    }
}

impl AsRef<[u8]> for BufMut {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl AsMut<[u8]> for BufMut {
    fn as_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// A shared, read-only run of bytes.
pub struct Buf {
    /// Used as a counted range only; never written through, never handed out.
    inner: BufMut,
}

impl Buf {
    /// The same bytes, only those in `range` (relative to this buffer).
    ///
    /// # Panics
    /// If the range is outside.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Buf {
        let from = match range.start_bound() {
            Bound::Included(n) => *n,
            Bound::Excluded(n) => n + 1,
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(n) => n + 1,
            Bound::Excluded(n) => *n,
            Bound::Unbounded => self.inner.len as usize,
        };
        assert!(from <= to && to <= self.inner.len as usize, "slice outside the buffer");
        Buf { inner: self.inner.share(self.inner.start + from as u32, (to - from) as u32) }
    }

    /// Takes the bytes back for writing if this is the piece's only owner.
    pub fn try_thaw(self) -> Result<BufMut, Buf> {
        if self.inner.count().load(Ordering::Acquire) == 1 { Ok(self.inner) } else { Err(self) }
    }
}

impl Clone for Buf {
    fn clone(&self) -> Self {
        Buf { inner: self.inner.share(self.inner.start, self.inner.len) }
    }
}

impl Deref for Buf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.inner
    }
}

impl AsRef<[u8]> for Buf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl core::fmt::Debug for Buf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Buf({} bytes)", self.inner.len)
    }
}

impl core::fmt::Debug for BufMut {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "BufMut({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_and_come_back() {
        let pool = Pool::new(8192, 3);
        let held: Vec<_> = (0..3).map(|_| pool.take(100).unwrap()).collect();
        assert!(pool.take(1).is_none());
        assert!(held.iter().all(|b| b.as_ptr() as usize % ALIGN == 0 && b.len() == 100));
        drop(held);
        assert_eq!(pool.free(), 3);
    }

    #[test]
    fn a_split_piece_returns_once_all_parts_are_gone() {
        let pool = Pool::new(4096, 1);
        let mut back = pool.take(4096).unwrap();
        let mut front = back.split_to(1000);
        front.fill(1);
        back.fill(2);
        assert_eq!((front.len(), back.len()), (1000, 3096));
        front.unsplit(back);
        assert_eq!(front.len(), 4096);
        let frozen = front.freeze();
        let part = frozen.slice(999..1001);
        assert_eq!(&part[..], &[1, 2]);
        let frozen = frozen.try_thaw().unwrap_err();
        drop(frozen);
        assert_eq!(pool.free(), 0);
        drop(part);
        assert_eq!(pool.free(), 1);
    }

    #[test]
    fn a_part_becomes_the_whole_piece_once_it_is_alone() {
        let pool = Pool::new(8192, 1);
        let mut back = pool.take(8000).unwrap();
        let front = back.split_to(1000);
        assert!(front.whole().is_none());
        let whole = back.whole().unwrap();
        assert_eq!((whole.len(), pool.free()), (8192, 0));
        drop(whole);
        assert_eq!(pool.free(), 1);
    }

    #[test]
    #[should_panic(expected = "not neighbours")]
    fn strangers_do_not_join() {
        let pool = Pool::new(4096, 2);
        let mut a = pool.take(10).unwrap();
        a.unsplit(pool.take(10).unwrap());
    }

    /// What a device may reach is freed by nobody but who speaks for it.
    #[test]
    fn memory_that_a_device_reaches_goes_to_who_speaks_for_it() {
        #[derive(Default)]
        struct Told(Mutex<Vec<(usize, usize)>>, Mutex<Vec<Memory>>);
        impl Reach for Told {
            fn begin(&self, address: usize, bytes: usize) {
                self.0.lock().unwrap().push((address, bytes));
            }
            fn end(&self, memory: Memory) {
                self.1.lock().unwrap().push(memory);
            }
        }
        let told = Arc::new(Told::default());
        let reach: Arc<dyn Reach> = told.clone();
        let pool = Pool::reached(5000, 3, Some(&reach));
        let buffer = pool.take(100).unwrap().freeze();
        let (address, bytes) = told.0.lock().unwrap()[0];
        assert!((address..address + bytes).contains(&buffer.as_ptr().addr()) && bytes == 3 * 8192);
        drop(pool);
        assert!(told.1.lock().unwrap().is_empty());
        drop(buffer);
        let ended = told.1.lock().unwrap().pop().unwrap();
        assert_eq!((ended.address(), ended.bytes()), (address, bytes));
    }

    #[test]
    fn buffers_cross_threads() {
        let pool = Pool::new(4096, 1);
        let buffer = pool.take(4096).unwrap().freeze();
        std::thread::spawn(move || drop(buffer)).join().unwrap();
        assert_eq!(pool.free(), 1);
    }
}

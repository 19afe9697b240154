//! Scratch slices of an array on one core: reserved by number, then taken one by one.
//!
//! A worker reserves all slices of its plan before it takes the first (D4), in order of asking,
//! so that workers can't wait for each other. Slices that come back by [`Scratch::put`] are kept
//! here, the last one first, so that the next plan finds them in the cache and without a lock;
//! those that are dropped instead go back to the pool, which is as good.
//!
//! Invariant: slices in use ≤ units reserved ≤ slices of the pool.

use core::cell::RefCell;
use io::local::Semaphore;
use io::{Buf, BufMut, Pool};

/// See the module above.
pub(crate) struct Scratch {
    pool: Pool,
    spare: RefCell<Vec<BufMut>>,
    units: Semaphore,
}

impl Scratch {
    /// `slices` slices of `bytes` each.
    pub fn new(bytes: usize, slices: usize) -> Self {
        let spare = RefCell::new(Vec::with_capacity(slices));
        Self { pool: Pool::new(bytes, slices), spare, units: Semaphore::new(slices) }
    }

    /// Waits for `units` slices and reserves them.
    pub async fn reserve(&self, units: usize) {
        self.units.acquire(units).await;
    }

    /// Gives a reservation back; its slices are no longer in use.
    pub fn release(&self, units: usize) {
        self.units.release(units);
    }

    /// A slice of `bytes` bytes, whatever they are; the caller's reservation covers it.
    pub fn take(&self, bytes: usize) -> BufMut {
        let spare = self.spare.borrow_mut().pop();
        let mut slice = match spare {
            Some(slice) => slice,
            None => self.pool.take(self.pool.piece_bytes()).expect("scratch slices are reserved"),
        };
        slice.truncate(bytes);
        slice
    }

    /// Takes a slice back that nobody else refers to any more.
    pub fn put(&self, slice: BufMut) {
        if let Some(whole) = slice.whole() {
            self.spare.borrow_mut().push(whole);
        }
    }

    /// As [`Scratch::put`], of a slice that was shared.
    pub fn put_shared(&self, slice: Buf) {
        if let Ok(slice) = slice.try_thaw() {
            self.put(slice);
        }
    }
}

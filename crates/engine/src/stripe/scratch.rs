//! Scratch slices of an array on one core: reserved by number, then taken one by one.
//!
//! A worker reserves all slices of its plan before it takes the first (D4), in order of asking,
//! so that workers can't wait for each other. Slices that come back by [`Scratch::put`] are kept
//! here, the last one first, so that the next plan finds them in the cache and without a lock;
//! those that are dropped instead go back to the pool, which is as good.
//!
//! Requests that were given up keep their slices until their drive answers, reservation or not,
//! and so does an accelerator that did not do its job. So once there was such a thing, a slice
//! that is missing is allocated anew.
//!
//! Invariant: slices in use by those who reserved them ≤ units reserved ≤ slices of the pool.

use core::cell::{Cell, RefCell};
use io::local::Semaphore;
use io::{Buf, BufMut, Pool, Reach};
use std::rc::Rc;
use std::sync::Arc;

/// See the module above.
pub(crate) struct Scratch {
    pool: Pool,
    spare: RefCell<Vec<BufMut>>,
    units: Semaphore,
    /// Requests that were given up.
    given_up: Rc<Cell<u64>>,
    /// Whether somebody kept slices of a job.
    lent: Cell<bool>,
    /// How many reservations there are.
    holders: Cell<usize>,
}

impl Scratch {
    /// `slices` slices of `bytes` each, where an accelerator may reach them; `given_up` counts
    /// requests that were given up.
    pub fn new(
        bytes: usize,
        slices: usize,
        given_up: Rc<Cell<u64>>,
        reach: Option<&Arc<dyn Reach>>,
    ) -> Self {
        let spare = RefCell::new(Vec::with_capacity(slices));
        let pool = Pool::reached(bytes, slices, reach);
        let (units, lent, holders) = (Semaphore::new(slices), Cell::new(false), Cell::new(0));
        Self { pool, spare, units, given_up, lent, holders }
    }

    /// Slices may be with somebody who gives them back late or never.
    pub fn lent(&self) {
        self.lent.set(true);
    }

    /// Waits for `units` slices and reserves them.
    pub async fn reserve(&self, units: usize) {
        self.units.acquire(units).await;
        self.holders.set(self.holders.get() + 1);
    }

    /// Gives a reservation back; its slices are no longer in use.
    pub fn release(&self, units: usize) {
        self.holders.set(self.holders.get() - 1);
        self.units.release(units);
    }

    /// Whether there is at most one reservation, the caller's.
    pub fn is_lone(&self) -> bool {
        self.holders.get() <= 1
    }

    /// A slice of `bytes` bytes, whatever they are; the caller's reservation covers it.
    pub fn take(&self, bytes: usize) -> BufMut {
        let spare = self.spare.borrow_mut().pop();
        let mut slice = match spare {
            Some(slice) => slice,
            None => self.fresh(),
        };
        slice.truncate(bytes);
        slice
    }

    fn fresh(&self) -> BufMut {
        let bytes = self.pool.piece_bytes();
        self.pool.take(bytes).unwrap_or_else(|| {
            assert!(self.given_up.get() > 0 || self.lent.get(), "scratch slices are reserved");
            Pool::single(bytes)
        })
    }

    /// Takes a slice back that nobody else refers to any more. What came in its place, or came
    /// back after another was made in its place, is dropped.
    pub fn put(&self, slice: BufMut) {
        let mut spare = self.spare.borrow_mut();
        if let Some(whole) = slice.whole()
            && whole.len() == self.pool.piece_bytes()
            && spare.len() < self.pool.pieces()
        {
            spare.push(whole);
        }
    }

    /// As [`Scratch::put`], of a slice that was shared.
    pub fn put_shared(&self, slice: Buf) {
        if let Ok(slice) = slice.try_thaw() {
            self.put(slice);
        }
    }
}

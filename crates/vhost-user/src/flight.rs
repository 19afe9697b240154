//! What a ring has under way, in memory that outlives this process: the machine keeps it, and gives
//! it to the next server (QEMU's docs/interop/vhost-user.rst, "Inflight I/O tracking", split
//! virtqueue).
//!
//! | offset | bytes | what                                                             |
//! |--------|-------|------------------------------------------------------------------|
//! | 0      | 8     | features: none                                                   |
//! | 8      | 2     | version: 1; 0 where nothing was written yet                      |
//! | 10     | 2     | most requests of a ring                                          |
//! | 12     | 2     | the request that was answered last                               |
//! | 14     | 2     | how many were answered, as the ring said then                    |
//! | 16     | 16    | of each request, by its head                                     |
//!
//! Of a request: 1 byte says whether it is under way, 5 are reserved, 2 are of a list that is not
//! used here, 8 are its number in the order in which they were taken.
//!
//! Invariants
//! - A request is marked before it is carried out, and until its answer is in the ring.
//! - Where the process ends between an answer and what is marked for it, the ring has counted one
//!   more than stands here: that is the one that was answered last.

use crate::limits::RING_MAX;
use core::sync::atomic::Ordering;
use std::sync::Arc;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

const VERSION_AT: u64 = 8;
const COUNT_AT: u64 = 10;
const LAST_AT: u64 = 12;
const ANSWERED_AT: u64 = 14;
const REQUESTS_AT: u64 = 16;
const REQUEST: u64 = 16;
const NUMBER_AT: u64 = 8;
const VERSION: u16 = 1;
/// Rings begin at whole lines of a cache.
const ALIGNED: u64 = 64;

/// Bytes that a ring of so many requests takes.
pub const fn bytes(requests: u16) -> u64 {
    (REQUESTS_AT + REQUEST * requests as u64).next_multiple_of(ALIGNED)
}

/// What one ring has under way.
pub struct Flight {
    /// Mapped at address 0.
    memory: Arc<GuestMemoryMmap>,
    begin: u64,
    requests: u16,
    /// The number of the request that is taken next.
    next: u64,
}

/// It does not lie in the memory, or is not this ring's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Foreign;

impl Flight {
    /// Of a ring, as it was left; with the requests that are under way, in the order in which they
    /// were taken. The memory is of rings of `most` requests, of which this one has fewer or all.
    /// `answered`: how many the ring says that were answered.
    ///
    /// # Errors
    /// It is another ring's, or none's.
    pub fn open(
        memory: Arc<GuestMemoryMmap>,
        (ring, most): (u16, u16),
        (requests, answered): (u16, u16),
    ) -> Result<(Self, Vec<u16>), Foreign> {
        let begin = u64::from(ring) * bytes(most);
        let mut own = Self { memory, begin, requests, next: 0 };
        if most > RING_MAX || requests > most {
            return Err(Foreign);
        }
        match own.load(VERSION_AT)? {
            0 => {
                own.store(COUNT_AT, most)?;
                own.store(ANSWERED_AT, answered)?;
                own.store(VERSION_AT, VERSION)?;
            }
            VERSION if own.load(COUNT_AT)? == most => {}
            _ => return Err(Foreign),
        }
        if own.load(ANSWERED_AT)? != answered {
            let last = own.load(LAST_AT)?;
            own.mark(last, 0)?;
            own.store(ANSWERED_AT, answered)?;
        }
        let mut all = Vec::new();
        for head in 0..requests {
            if own.read::<1>(own.request(head)?)? != [0] {
                all.push((u64::from_le_bytes(own.read(own.request(head)? + NUMBER_AT)?), head));
            }
        }
        all.sort_unstable();
        own.next = all.last().map_or(0, |(number, _)| number.wrapping_add(1));
        Ok((own, all.into_iter().map(|(_, head)| head).collect()))
    }

    /// A request was taken.
    ///
    /// # Errors
    /// There is no such request.
    pub fn begin(&mut self, head: u16) -> Result<(), Foreign> {
        let number = self.next;
        self.next += 1;
        self.write(self.request(head)? + NUMBER_AT, &number.to_le_bytes())?;
        self.mark(head, 1)
    }

    /// A request's answer is about to come into the ring.
    ///
    /// # Errors
    /// There is no such request.
    pub fn answers(&self, head: u16) -> Result<(), Foreign> {
        self.store(LAST_AT, head)
    }

    /// It is there: so many were answered with it.
    ///
    /// # Errors
    /// There is no such request.
    pub fn answered(&self, head: u16, answered: u16) -> Result<(), Foreign> {
        self.mark(head, 0)?;
        self.store(ANSWERED_AT, answered)
    }

    fn request(&self, head: u16) -> Result<u64, Foreign> {
        if head >= self.requests {
            return Err(Foreign);
        }
        Ok(REQUESTS_AT + u64::from(head) * REQUEST)
    }

    fn address(&self, at: u64) -> GuestAddress {
        GuestAddress(self.begin + at)
    }

    /// Whoever finds the mark finds what belongs to it.
    fn mark(&self, head: u16, is_under_way: u8) -> Result<(), Foreign> {
        let at = self.address(self.request(head)?);
        self.memory.store(is_under_way, at, Ordering::Release).map_err(|_| Foreign)
    }

    fn load(&self, at: u64) -> Result<u16, Foreign> {
        let own: u16 =
            self.memory.load(self.address(at), Ordering::Acquire).map_err(|_| Foreign)?;
        Ok(u16::from_le(own))
    }

    fn store(&self, at: u64, value: u16) -> Result<(), Foreign> {
        let at = self.address(at);
        self.memory.store(value.to_le(), at, Ordering::Release).map_err(|_| Foreign)
    }

    fn read<const N: usize>(&self, at: u64) -> Result<[u8; N], Foreign> {
        let mut own = [0; N];
        self.memory.read_slice(&mut own, self.address(at)).map_err(|_| Foreign)?;
        Ok(own)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Foreign> {
        self.memory.write_slice(bytes, self.address(at)).map_err(|_| Foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Arc<GuestMemoryMmap> {
        let all = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), 1 << 16)]);
        Arc::new(all.expect("mapped"))
    }

    #[test]
    fn what_was_under_way_is_found_in_its_order() {
        let memory = memory();
        let (mut one, none) = Flight::open(memory.clone(), (1, 8), (8, 5)).expect("new");
        assert!(none.is_empty());
        for head in [3, 7, 1, 0] {
            one.begin(head).expect("taken");
        }
        one.answers(7).and_then(|()| one.answered(7, 6)).expect("answered");
        let (mut again, left) = Flight::open(memory.clone(), (1, 8), (8, 6)).expect("the same");
        assert_eq!(left, [3, 1, 0]);
        again.begin(7).expect("taken");
        // It ended between the answer and its mark.
        again.answers(1).expect("answered");
        let (_, left) = Flight::open(memory.clone(), (1, 8), (8, 7)).expect("the same");
        assert_eq!(left, [3, 0, 7]);
        let (_, left) = Flight::open(memory.clone(), (1, 8), (8, 7)).expect("the same");
        assert_eq!(left, [3, 0, 7]);
        assert!(Flight::open(memory.clone(), (0, 8), (8, 0)).expect("another").1.is_empty());
    }

    #[test]
    fn what_is_another_rings_is_refused() {
        let memory = memory();
        drop(Flight::open(memory.clone(), (0, 8), (8, 0)).expect("new"));
        assert!(Flight::open(memory.clone(), (0, 16), (16, 0)).is_err());
        assert!(Flight::open(memory.clone(), (0, 8), (16, 0)).is_err());
        assert!(Flight::open(memory.clone(), (600, 128), (128, 0)).is_err(), "it lies nowhere");
        assert!(Flight::open(memory, (0, u16::MAX), (8, 0)).is_err());
        // A ring that is smaller than it might be.
        let (mut own, _) = Flight::open(self::memory(), (3, 16), (8, 0)).expect("new");
        assert!(own.begin(8).is_err());
    }

    #[test]
    fn rings_lie_behind_each_other() {
        assert_eq!((bytes(1), bytes(3), bytes(4), bytes(128)), (64, 64, 128, 2112));
    }
}

//! A ring: requests come, and answers go.
//!
//! States of a request: *in the ring* → *taken* ([`Ring::next`]) → *answered* ([`Ring::answer`]).
//! Those that a server before this one had taken, and not answered, are taken first, even where the
//! ring is stopped meanwhile: they count as taken. What is taken of a ring that is given up stays
//! *taken*.
//!
//! Of several that wait for requests one waits for the bell: the others wait for their turn.

use crate::chain::{Chain, Side};
use crate::flight::Flight;
use crate::limits::RING_MAX;
use crate::{Bell, Gone, Memory};
use core::cell::{Cell, RefCell};
use core::sync::atomic::Ordering;
use io::local::{Semaphore, yield_now};
use std::collections::VecDeque;
use virtio_queue::{Queue, QueueT};
use vm_memory::GuestAddress;

/// Where a ring is in its machine's memory, and how far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its requests: a power of two.
    pub requests: u16,
    /// Its table of descriptors.
    pub descriptors: u64,
    /// What the machine offers.
    pub offered: u64,
    /// What was answered.
    pub answered: u64,
    /// How many were taken.
    pub taken: u16,
    /// Bells are rung only when somebody waits.
    pub event_index: bool,
    /// The machine knows of no flush: what is answered is on drives.
    pub write_through: bool,
}

/// A ring, used by tasks of one core.
pub struct Ring<B> {
    memory: Memory,
    place: Place,
    queue: RefCell<Queue>,
    flight: Option<RefCell<Flight>>,
    /// Taken by a server before this one.
    again: RefCell<VecDeque<u16>>,
    bell: B,
    turn: Semaphore,
    is_over: Cell<bool>,
}

/// Its places are none, or it is not as what is known of it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misplaced;

impl<B: Bell> Ring<B> {
    /// A ring that is served from here on: how far it has come says the memory of what it has under
    /// way, if there is that, of ring `.1.0`, each of which has `.1.1` requests at most.
    ///
    /// # Errors
    /// It lies nowhere, or that memory is not its.
    pub fn new(
        memory: Memory,
        place: Place,
        flight: Option<(Memory, (u16, u16))>,
        bell: B,
    ) -> Result<Self, Misplaced> {
        let Place { requests, descriptors, offered, answered, event_index, .. } = place;
        let mut queue = Queue::new(RING_MAX).map_err(|_| Misplaced)?;
        queue.try_set_size(requests).map_err(|_| Misplaced)?;
        // The library takes that for nothing at all.
        if [descriptors, offered, answered].contains(&0) {
            return Err(Misplaced);
        }
        let at = [descriptors, offered, answered].map(GuestAddress);
        queue
            .try_set_desc_table_address(at[0])
            .and_then(|()| queue.try_set_avail_ring_address(at[1]))
            .and_then(|()| queue.try_set_used_ring_address(at[2]))
            .map_err(|_| Misplaced)?;
        queue.set_event_idx(event_index);
        queue.set_ready(true);
        if !queue.is_valid(&*memory) {
            return Err(Misplaced);
        }
        let answers = queue.used_idx(&*memory, Ordering::Acquire).map_err(|_| Misplaced)?.0;
        queue.set_next_used(answers);
        queue.set_next_avail(place.taken);
        let (mut again, mut own) = (VecDeque::new(), None);
        if let Some((kept, ring)) = flight {
            let opened = Flight::open(kept, ring, (requests, answers));
            let (flight, left) = opened.map_err(|_| Misplaced)?;
            // All that was taken was answered, or is under way.
            queue.set_next_avail(answers.wrapping_add(left.len() as u16));
            (own, again) = (Some(RefCell::new(flight)), left.into());
        }
        Ok(Self {
            memory,
            place,
            queue: RefCell::new(queue),
            flight: own,
            again: RefCell::new(again),
            bell,
            turn: Semaphore::new(1),
            is_over: Cell::new(false),
        })
    }

    /// The machine's memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Whether what is answered is on drives.
    pub fn is_write_through(&self) -> bool {
        self.place.write_through
    }

    /// Writes into what a request leaves to be written, unless the ring is given up.
    ///
    /// # Errors
    /// It is, or that is not in the machine's memory.
    pub fn tell(&self, side: &Side, at: u64, data: &[u8]) -> Result<(), Gone> {
        if self.bell.is_severed() {
            return Err(Gone);
        }
        side.write(&self.memory, at, data).map_err(|_| Gone)
    }

    /// Its bells.
    pub fn bell(&self) -> &B {
        &self.bell
    }

    /// How many requests were taken from it: where the next server begins, once all are answered.
    pub fn taken(&self) -> u16 {
        self.queue.borrow().next_avail()
    }

    /// Waits for the next request: its head. Its chain is followed into `chain`; one that can't be
    /// a request is answered with nothing.
    ///
    /// # Errors
    /// Nothing more is to be taken.
    pub async fn next(&self, chain: &mut Chain) -> Result<u16, Gone> {
        self.turn.acquire(1).await;
        let taken = self.take(chain).await;
        self.turn.release(1);
        taken
    }

    async fn take(&self, chain: &mut Chain) -> Result<u16, Gone> {
        let table = (self.place.descriptors, self.place.requests);
        let is_stopped = || self.bell.is_over() && self.again.borrow().is_empty();
        while !self.is_over.get() && !self.bell.is_severed() && !is_stopped() {
            match self.head() {
                Ok(Some(head)) if chain.follow(&self.memory, table, head).is_ok() => {
                    return Ok(head);
                }
                Ok(Some(head)) => {
                    self.answer(head, 0);
                    // There may be more of that kind, and others have their turn.
                    yield_now().await;
                }
                Ok(None) => {
                    if self.bell.rung().await.is_err() {
                        self.is_over.set(true);
                    }
                }
                Err(Gone) => self.is_over.set(true),
            }
        }
        Err(Gone)
    }

    /// The head of a request that is there; none: the bell will be rung.
    fn head(&self) -> Result<Option<u16>, Gone> {
        if let Some(head) = self.again.borrow_mut().pop_front() {
            return Ok(Some(head));
        }
        let mut queue = self.queue.borrow_mut();
        for _ in 0..2 {
            if let Some(chain) = queue.pop_descriptor_chain(&*self.memory) {
                let head = chain.head_index();
                if let Some(flight) = &self.flight {
                    flight.borrow_mut().begin(head).map_err(|_| Gone)?;
                }
                return Ok(Some(head));
            }
            // What came before that was said has rung no bell.
            if !queue.enable_notification(&*self.memory).map_err(|_| Gone)? {
                return Ok(None);
            }
        }
        // It says twice that there is more, and there is not: it has more than a ring can have.
        Err(Gone)
    }

    /// Answers a request, of which so many bytes were written; not in a ring that is given up.
    pub fn answer(&self, head: u16, written: u32) {
        if self.bell.is_severed() {
            return;
        }
        let mut queue = self.queue.borrow_mut();
        if let Some(flight) = &self.flight {
            let _ = flight.borrow().answers(head);
        }
        // A head that the table has not can't be answered, nor one in memory that has gone.
        if queue.add_used(&*self.memory, head, written).is_err() {
            return;
        }
        if let Some(flight) = &self.flight {
            let _ = flight.borrow().answered(head, queue.next_used());
        }
        if queue.needs_notification(&*self.memory).unwrap_or(true) {
            self.bell.ring();
        }
    }
}

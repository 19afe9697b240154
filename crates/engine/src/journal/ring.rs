//! The places of a lane: pure, without I/O, in pages of 4096 bytes.
//!
//! A batch holds its place from when it is pushed until a durable batch with a larger tail says
//! that it is not needed. A batch with entries leaves a page free behind it, so that there is
//! always a place for a batch that moves the tail. One that a drive did not take is *given up*,
//! with its place and its number: nothing of it is written in place, so it may be torn there. It
//! may be whole on other drives, and counts there until the next one, which has its number and a
//! later epoch, is durable.
//!
//! Under another key no batch counts that was written before: all places are free, and the numbers
//! go on ([`Ring::renew`]).
//!
//! Invariants
//! - Places that are held never overlap.
//! - `tail` never passes a batch that is not safe; what is free was given up by a durable batch.
//! - When every batch is safe, one that moves the tail makes room for any batch of [`most`] pages.
//! - There is a place for a batch that moves the tail, whenever one would, however many failed.
//! - The batches of a key that are durable, and no others, have the numbers from the first on that
//!   one of them has, without a gap; no tail under that key is below it. A start relies on that
//!   ([`crate::manage`]).

use crate::mutants::{self, Mutant};
use std::collections::VecDeque;

/// Most pages of a batch in a ring of so many.
pub const fn most(pages: u32) -> u32 {
    (pages.saturating_sub(1) / 2).saturating_sub(1)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// So many of its entries are not over.
    Open(u32),
    /// All are over, and a flush has begun since if `true`.
    Over(bool),
    Safe,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    sequence: u64,
    at: u32,
    tail: u64,
    state: State,
}

/// See the module above.
pub struct Ring {
    pages: u32,
    head: u32,
    next: u64,
    /// The first number of the present key.
    first: u64,
    held: VecDeque<Held>,
    /// The newest durable batch with entries, 0: none.
    logged: u64,
    /// A batch with entries was given up, and none of its number is durable.
    given_up: bool,
    /// The largest tail of a durable batch.
    durable: u64,
}

impl Ring {
    pub fn new(pages: u32) -> Self {
        let (next, first, durable) = (1, 1, 1);
        let held = VecDeque::new();
        Self { pages, head: 0, next, first, held, logged: 0, given_up: false, durable }
    }

    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// The newest durable batch with entries, 0: none.
    pub const fn logged(&self) -> u64 {
        self.logged
    }

    /// Batches before this one are not needed.
    pub fn tail(&self) -> u64 {
        self.held.iter().find(|h| h.state != State::Safe).map_or(self.next, |h| h.sequence)
    }

    /// The same, as a durable batch says.
    pub const fn durable_tail(&self) -> u64 {
        self.durable
    }

    /// Whether a batch that was given up may count.
    pub const fn given_up(&self) -> bool {
        self.given_up
    }

    /// Whether a batch without entries is of use, and has a place: it moves the tail, or has the
    /// number of one that was given up.
    pub fn moves(&self) -> bool {
        self.tail() > self.durable || self.given_up && self.held.is_empty()
    }

    fn room(&self, pages: u32) -> Option<u32> {
        let early = mutants::is(Mutant::JournalRingEarly);
        let needed = self.held.iter().find(|h| !early || h.state != State::Safe);
        let Some(first) = needed else {
            return (pages <= self.pages).then_some(0);
        };
        if self.head > first.at {
            let behind = self.pages - self.head >= pages;
            return behind.then_some(self.head).or((first.at >= pages).then_some(0));
        }
        (first.at - self.head >= pages).then_some(self.head)
    }

    /// A place for a batch with entries.
    pub fn place(&self, pages: u32) -> Option<u32> {
        self.room(pages + 1)
    }

    /// A place for a batch that only moves the tail, of one page.
    pub fn place_of_tail(&self) -> u32 {
        self.room(1).expect("a page is left for the tail")
    }

    /// Holds a place for a batch of so many entries, with the tail of now. Its sequence number.
    pub fn push(&mut self, at: u32, pages: u32, entries: u32) -> u64 {
        let (sequence, tail) = (self.next, self.tail());
        let state = if entries == 0 { State::Safe } else { State::Open(entries) };
        if mutants::is(Mutant::JournalRingEarly) {
            while self.held.front().is_some_and(|h| h.sequence < tail) {
                self.held.pop_front();
            }
        }
        self.held.push_back(Held { sequence, at, tail, state });
        (self.next, self.head) = (sequence + 1, at + pages);
        sequence
    }

    fn of(&mut self, sequence: u64) -> Option<&mut Held> {
        let at = self.held.binary_search_by_key(&sequence, |h| h.sequence).ok()?;
        self.held.get_mut(at)
    }

    /// The batch is durable: what its tail gives up is free.
    pub fn durable(&mut self, sequence: u64) {
        let Held { tail, state, .. } = *self.of(sequence).expect("it holds its place");
        self.logged = if state == State::Safe { self.logged } else { sequence };
        self.given_up = false;
        self.durable = self.durable.max(tail);
        while self.held.front().is_some_and(|h| h.sequence < self.durable) {
            self.held.pop_front();
        }
    }

    /// An entry of the batch is over.
    pub fn over(&mut self, sequence: u64) {
        if sequence < self.first {
            return;
        }
        let held = self.of(sequence).expect("what is not safe holds its place");
        let State::Open(entries) = held.state else { unreachable!("an entry is over once") };
        held.state = if entries > 1 { State::Open(entries - 1) } else { State::Over(false) };
    }

    /// The batch that was pushed last is not durable, and nothing of it will be written in place:
    /// its place is free again, and its number is the next one's.
    pub fn abandon(&mut self, sequence: u64) {
        let last = self.held.pop_back().expect("it holds its place");
        assert_eq!(last.sequence, sequence, "one batch is written at a time");
        self.given_up |= last.state != State::Safe;
        (self.head, self.next) = (last.at, sequence);
    }

    /// There is another key, and no batch is being written: none counts any more.
    pub fn renew(&mut self) {
        self.held.clear();
        (self.first, self.durable, self.given_up) = (self.next, self.next, false);
    }

    /// Whether a flush would make a batch safe.
    pub fn any_over(&self) -> bool {
        self.held.iter().any(|h| matches!(h.state, State::Over(_)))
    }

    /// A flush of all drives begins.
    pub fn flush_begins(&mut self) {
        for held in &mut self.held {
            if let State::Over(flushed) = &mut held.state {
                *flushed = true;
            }
        }
    }

    /// It ended well.
    pub fn flushed(&mut self) {
        for held in &mut self.held {
            if held.state == State::Over(true) {
                held.state = State::Safe;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// What stands on a drive: of every page the batch that was written there last.
    #[derive(Default)]
    struct Naive {
        pages: BTreeMap<u32, u64>,
        batches: BTreeMap<u64, (u32, u32, u64)>,
        /// Every drive that was to have them took them.
        durable: BTreeSet<u64>,
        /// Numbers of batches with entries that are on some drives.
        given_up: BTreeSet<u64>,
    }

    impl Naive {
        fn write(&mut self, sequence: u64, at: u32, pages: u32, tail: u64) {
            (at..at + pages).for_each(|page| _ = self.pages.insert(page, sequence));
            self.batches.insert(sequence, (at, pages, tail));
        }

        fn whole(&self, sequence: u64) -> bool {
            let (at, pages, _) = self.batches[&sequence];
            (at..at + pages).all(|page| self.pages.get(&page) == Some(&sequence))
        }

        /// With the write of `torn` cut off, every batch that is not over must count.
        fn check(&self, torn: u64, needed: &BTreeMap<u64, u32>) {
            let found = self.batches.keys().filter(|s| **s != torn && self.whole(**s));
            let tail = found.map(|s| self.batches[s].2).max().unwrap_or(torn);
            for sequence in needed.keys().filter(|s| **s != torn) {
                assert!(self.whole(*sequence) && *sequence >= tail, "{sequence} is needed");
            }
            // And nothing is missing between those that count.
            for sequence in tail..torn {
                assert!(self.durable.contains(&sequence), "{sequence} was passed over");
                assert!(self.whole(sequence), "{sequence} was written over, {tail} counts");
            }
        }
    }

    /// A batch is written that a drive does not take, of entries or to move the tail.
    fn give_up(
        ring: &mut Ring,
        naive: &mut Naive,
        open: &BTreeMap<u64, u32>,
        (size, logs): (u32, bool),
    ) {
        let moves = ring.moves();
        let (at, size, entries) = match ring.place(size) {
            Some(at) if logs => (at, size, 1),
            _ if moves => (ring.place_of_tail(), 1, 0),
            _ => return,
        };
        let tail = ring.tail();
        let sequence = ring.push(at, size, entries);
        naive.write(sequence, at, size, tail);
        naive.check(sequence, open);
        ring.abandon(sequence);
        if entries > 0 {
            naive.given_up.insert(sequence);
        }
        assert!(ring.logged() < sequence);
    }

    proptest! {
        #[test]
        fn what_counts_is_never_written_over(pages in 9u32..80,
                steps in prop::collection::vec((0u8..10, 1u32..40, any::<u32>()), 1..400)) {
            let (mut ring, mut naive) = (Ring::new(pages), Naive::default());
            let mut open: BTreeMap<u64, u32> = BTreeMap::new();
            for (what, size, pick) in steps {
                let size = 1 + size % most(pages).max(1);
                let size = size.min(most(pages));
                match what {
                    0..4 => {
                        let Some(at) = ring.place(size) else { continue };
                        let entries = 1 + pick % 3;
                        let tail = ring.tail();
                        let sequence = ring.push(at, size, entries);
                        naive.write(sequence, at, size, tail);
                        naive.check(sequence, &open);
                        ring.durable(sequence);
                        naive.durable.insert(sequence);
                        open.insert(sequence, entries);
                    }
                    4..7 => {
                        let keys: Vec<u64> = open.keys().copied().collect();
                        let chosen = keys.get(pick as usize % keys.len().max(1));
                        let Some(at) = chosen else { continue };
                        ring.over(*at);
                        match open[at] {
                            1 => _ = open.remove(at),
                            n => _ = open.insert(*at, n - 1),
                        }
                        ring.flush_begins();
                        ring.flushed();
                    }
                    7 => {
                        if ring.moves() {
                            let (at, tail) = (ring.place_of_tail(), ring.tail());
                            let sequence = ring.push(at, 1, 0);
                            naive.write(sequence, at, 1, tail);
                            naive.check(sequence, &open);
                            ring.durable(sequence);
                            naive.durable.insert(sequence);
                        }
                    }
                    // Another key: what is open is over some time, and nothing counts.
                    8 if size == 1 => {
                        ring.renew();
                        for (sequence, n) in core::mem::take(&mut open) {
                            (0..n).for_each(|_| ring.over(sequence));
                        }
                        naive = Naive::default();
                    }
                    _ => give_up(&mut ring, &mut naive, &open, (size, pick % 2 == 0)),
                }
                // What may count is of a number that no durable batch has.
                prop_assert_eq!(ring.given_up(), !naive.given_up.is_subset(&naive.durable));
            }
            // Once all is over there is room for the largest batch.
            for (sequence, n) in open {
                (0..n).for_each(|_| ring.over(sequence));
            }
            ring.flush_begins();
            ring.flushed();
            if ring.place(most(pages)).is_none() {
                let at = ring.place_of_tail();
                let sequence = ring.push(at, 1, 0);
                ring.durable(sequence);
                prop_assert!(ring.place(most(pages)).is_some());
            }
        }
    }

    #[test]
    fn a_batch_is_safe_when_a_flush_began_after_its_last_entry_was_over() {
        let mut ring = Ring::new(20);
        let one = ring.push(0, 2, 2);
        ring.durable(one);
        ring.over(one);
        ring.flush_begins();
        ring.over(one);
        ring.flushed();
        assert_eq!((ring.tail(), ring.any_over()), (one, true));
        ring.flush_begins();
        ring.flushed();
        assert_eq!((ring.tail(), ring.any_over()), (one + 1, false));
        let two = ring.push(2, 2, 1);
        assert_eq!(ring.durable_tail(), one);
        ring.durable(two);
        assert_eq!(ring.durable_tail(), two, "its own tail says that the first is not needed");
    }
}

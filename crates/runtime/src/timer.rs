//! Timers of one core: a binary heap whose entries know their place, so that a timer that is
//! dropped early leaves nothing behind.
//!
//! States of a timer: in the heap (`place` is its index), fired (`place` is [`NOWHERE`]), free.
//!
//! Invariants: a parent's deadline is not later than its children's; `slots[heap[i]].place == i`.

use core::task::Waker;
use units::Nanos;

const NOWHERE: u32 = u32::MAX;

struct Slot {
    deadline: Nanos,
    place: u32,
    waker: Option<Waker>,
}

/// The timers of a core.
#[derive(Default)]
pub(crate) struct Timers {
    heap: Vec<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Timers {
    /// Starts a timer; it must be removed, fired or not.
    pub(crate) fn insert(&mut self, deadline: Nanos, waker: Waker) -> u32 {
        let place = self.heap.len() as u32;
        let slot = Slot { deadline, place, waker: Some(waker) };
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        self.heap.push(id);
        self.rise(place as usize);
        id
    }

    /// Changes who is woken.
    pub(crate) fn set_waker(&mut self, id: u32, waker: &Waker) {
        let slot = &mut self.slots[id as usize];
        match &mut slot.waker {
            Some(old) => old.clone_from(waker),
            None => slot.waker = Some(waker.clone()),
        }
    }

    /// Forgets a timer and returns its waker for dropping.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Waker> {
        self.take_from_heap(id);
        self.free.push(id);
        self.slots[id as usize].waker.take()
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.heap.first().map(|id| self.slots[*id as usize].deadline)
    }

    /// Fires one timer that is due, if there is one.
    pub(crate) fn fire(&mut self, now: Nanos) -> Option<Waker> {
        let id = *self.heap.first()?;
        if self.slots[id as usize].deadline > now {
            return None;
        }
        self.take_from_heap(id);
        self.slots[id as usize].waker.take()
    }

    fn take_from_heap(&mut self, id: u32) {
        let place = self.slots[id as usize].place;
        if place == NOWHERE {
            return;
        }
        self.slots[id as usize].place = NOWHERE;
        self.heap.swap_remove(place as usize);
        if let Some(moved) = self.heap.get(place as usize) {
            self.slots[*moved as usize].place = place;
            self.rise(place as usize);
            self.sink(place as usize);
        }
    }

    fn deadline(&self, place: usize) -> Nanos {
        self.slots[self.heap[place] as usize].deadline
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.slots[self.heap[a] as usize].place = a as u32;
        self.slots[self.heap[b] as usize].place = b as u32;
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.deadline(place) < self.deadline((place - 1) / 2) {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|c| self.deadline(*c)) else { return };
            if self.deadline(place) <= self.deadline(least) {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Random inserts, removals and firings against a sorted map.
    #[test]
    fn agrees_with_a_sorted_map() {
        let mut timers = Timers::default();
        let mut model: BTreeMap<u32, u64> = BTreeMap::new();
        let mut seed = 1u64;
        let mut random = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed >> 33
        };
        let mut now = 0;
        for _ in 0..20_000 {
            match random() % 4 {
                0 | 1 => {
                    let deadline = now + random() % 1000;
                    let id = timers.insert(Nanos(deadline), Waker::noop().clone());
                    assert!(model.insert(id, deadline).is_none());
                }
                2 => {
                    let nth = random() as usize % model.len().max(1);
                    if let Some(id) = model.keys().copied().nth(nth) {
                        model.remove(&id);
                        timers.remove(id);
                    }
                }
                _ => {
                    now += random() % 50;
                    while timers.fire(Nanos(now)).is_some() {}
                    let due: Vec<u32> =
                        model.iter().filter(|(_, d)| **d <= now).map(|(i, _)| *i).collect();
                    for id in due {
                        model.remove(&id);
                        timers.remove(id);
                    }
                }
            }
            assert_eq!(timers.next().map(|n| n.0), model.values().copied().min());
        }
    }
}

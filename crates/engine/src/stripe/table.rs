//! The stripes in flight of one array on one core.
//!
//! Entries are recycled, never freed: after warm-up the table allocates nothing.

use crate::array::message::Job;
use crate::limits::{STRIPE_BUCKETS, WORKERS};
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};
use std::collections::VecDeque;
use units::{CoreId, GroupNo, StripeNo};

/// Who a job is answered to: a place in the table of pending requests of a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The requester's core.
    pub core: CoreId,
    /// Its entry in that core's [`crate::array::pending::Pending`].
    pub pending: u32,
}

/// A job and whom to answer.
pub struct Waiting {
    /// What is wanted.
    pub job: Job,
    /// Whom to answer.
    pub origin: Origin,
}

/// Which stripe of the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StripeKey {
    /// The group.
    pub group: GroupNo,
    /// The stripe within the group.
    pub stripe: StripeNo,
}

impl StripeKey {
    fn bucket(self) -> usize {
        let mixed =
            (self.stripe.0 ^ u64::from(self.group.0) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (STRIPE_BUCKETS - 1)
    }
}

const NONE: u32 = u32::MAX;

#[derive(Default)]
struct Entry {
    key: StripeKey,
    busy: bool,
    next: u32,
    jobs: Vec<Waiting>,
}

struct Tables {
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    ready: VecDeque<u32>,
    /// The workers that wait for a ready stripe, and their wakers.
    idle: Vec<u32>,
    wakers: Vec<Option<Waker>>,
    /// A worker was woken and has not looked yet.
    waking: bool,
    in_flight: usize,
    closed: bool,
}

/// All stripes of an array that somebody waits for on this core. See the module above.
pub struct StripeTable {
    tables: RefCell<Tables>,
}

impl Default for StripeTable {
    fn default() -> Self {
        Self {
            tables: RefCell::new(Tables {
                buckets: vec![NONE; STRIPE_BUCKETS],
                entries: Vec::new(),
                free: Vec::new(),
                ready: VecDeque::with_capacity(STRIPE_BUCKETS),
                idle: Vec::with_capacity(WORKERS),
                wakers: vec![None; WORKERS],
                waking: false,
                in_flight: 0,
                closed: false,
            }),
        }
    }
}

impl Tables {
    fn find(&self, key: StripeKey) -> Option<u32> {
        let mut at = self.buckets[key.bucket()];
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.key == key {
                return Some(at);
            }
            at = entry.next;
        }
        None
    }

    fn insert(&mut self, key: StripeKey) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { jobs: Vec::with_capacity(8), ..Entry::default() });
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[at as usize];
        assert!(entry.jobs.is_empty() && !entry.busy, "a free entry is idle");
        entry.key = key;
        entry.next = self.buckets[key.bucket()];
        self.buckets[key.bucket()] = at;
        self.in_flight += 1;
        at
    }

    fn remove(&mut self, at: u32) {
        let (key, next) = {
            let entry = &self.entries[at as usize];
            (entry.key, entry.next)
        };
        let mut link = self.buckets[key.bucket()];
        if link == at {
            self.buckets[key.bucket()] = next;
        } else {
            while self.entries[link as usize].next != at {
                link = self.entries[link as usize].next;
            }
            self.entries[link as usize].next = next;
        }
        self.free.push(at);
        self.in_flight -= 1;
    }

    fn make_ready(&mut self, at: u32) {
        self.ready.push_back(at);
        self.wake_one();
    }

    /// Wakes one idle worker, unless one was woken that has not looked yet: it wakes the next
    /// when it has taken a stripe and more are ready. So a worker whose drives answer at once
    /// takes one stripe after the other, and the others stay asleep.
    fn wake_one(&mut self) {
        if self.waking || self.ready.is_empty() {
            return;
        }
        if let Some(worker) = self.idle.pop() {
            self.waking = true;
            if let Some(waker) = &self.wakers[worker as usize] {
                waker.wake_by_ref();
            }
        }
    }

    /// What a worker that looks for a stripe gets; `None`: it is idle now.
    fn look(&mut self, worker: u32, waker: &Waker, woken: &mut bool) -> Option<u32> {
        if core::mem::take(woken) {
            match self.idle.iter().position(|w| *w == worker) {
                Some(at) => _ = self.idle.swap_remove(at),
                None => self.waking = false,
            }
        }
        let at = self.ready.pop_front();
        if at.is_some() {
            self.wake_one();
            return at;
        }
        let known = &mut self.wakers[worker as usize];
        if !known.as_ref().is_some_and(|w| w.will_wake(waker)) {
            *known = Some(waker.clone());
        }
        self.idle.push(worker);
        *woken = true;
        None
    }
}

impl StripeTable {
    /// Adds a job to a stripe's queue; an idle stripe becomes ready.
    pub fn submit(&self, key: StripeKey, waiting: Waiting) {
        let tables = &mut *self.tables.borrow_mut();
        let (at, new) = match tables.find(key) {
            Some(at) => (at, false),
            None => (tables.insert(key), true),
        };
        tables.entries[at as usize].jobs.push(waiting);
        if new {
            tables.make_ready(at);
        }
    }

    /// Has `worker` (one of [`WORKERS`]) wait for a ready stripe, makes that busy and moves all
    /// of its jobs into `jobs`; `None` once the table is closed.
    pub async fn take(&self, worker: u32, jobs: &mut Vec<Waiting>) -> Option<(u32, StripeKey)> {
        let mut woken = false;
        let at = poll_fn(|cx| {
            let tables = &mut *self.tables.borrow_mut();
            match tables.look(worker, cx.waker(), &mut woken) {
                Some(at) => Poll::Ready(Some(at)),
                None if tables.closed => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await?;
        let tables = &mut *self.tables.borrow_mut();
        let entry = &mut tables.entries[at as usize];
        assert!(!entry.busy && jobs.is_empty(), "a ready stripe is not busy");
        entry.busy = true;
        core::mem::swap(jobs, &mut entry.jobs);
        Some((at, entry.key))
    }

    /// Ends the work on a busy stripe: ready again if jobs came meanwhile, else forgotten.
    pub fn finish(&self, at: u32) {
        let tables = &mut *self.tables.borrow_mut();
        let entry = &mut tables.entries[at as usize];
        assert!(entry.busy, "only a busy stripe is finished");
        entry.busy = false;
        if entry.jobs.is_empty() {
            tables.remove(at);
        } else {
            tables.make_ready(at);
        }
    }

    /// Ends all workers as soon as they find nothing to do.
    pub fn close(&self) {
        let tables = &mut *self.tables.borrow_mut();
        tables.closed = true;
        tables.idle.clear();
        for waker in tables.wakers.iter().flatten() {
            waker.wake_by_ref();
        }
    }

    /// Stripes that are ready or busy.
    pub fn in_flight(&self) -> usize {
        self.tables.borrow().in_flight
    }
}

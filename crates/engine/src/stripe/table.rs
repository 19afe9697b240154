//! The stripes in flight of one array on one core.
//!
//! Entries are recycled, never freed: after warm-up the table allocates nothing. What a sequential
//! stream has begun to fill may be held for the rest ([`crate::stripe::stream`]).
//!
//! Invariant: while a stripe is ready, a worker was woken or hired that has not looked yet, or all
//! that may be are at work. So there are as many as ever had something to do at one time.

use crate::array::message::Job;
use crate::limits::{HELD, HOLD_FINISHED, STRIPE_BUCKETS, WORKERS};
use crate::stripe::stream::{Begun, Paid};
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
    /// What of it is there, while it is held.
    held: Option<Begun>,
    next: u32,
    jobs: Vec<Waiting>,
}

struct Tables {
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    ready: VecDeque<u32>,
    /// Those that are held, the oldest first.
    held: VecDeque<u32>,
    paid: Paid,
    /// How many were finished.
    finished: u64,
    /// The workers that wait for a ready stripe, and their wakers.
    idle: Vec<u32>,
    wakers: Vec<Option<Waker>>,
    /// A worker was woken, or hired, and has not looked yet.
    waking: bool,
    /// How many workers there are, and may be.
    hired: usize,
    most: usize,
    in_flight: usize,
    closed: bool,
}

/// All stripes of an array that somebody waits for on this core. See the module above.
pub struct StripeTable {
    tables: RefCell<Tables>,
}

impl StripeTable {
    /// A table without stripes and without workers, of which it hires no more than `most` (at
    /// most [`WORKERS`]).
    pub fn new(most: usize) -> Self {
        Self {
            tables: RefCell::new(Tables {
                buckets: vec![NONE; STRIPE_BUCKETS],
                entries: Vec::new(),
                free: Vec::new(),
                ready: VecDeque::with_capacity(STRIPE_BUCKETS),
                held: VecDeque::with_capacity(HELD),
                paid: Paid::default(),
                finished: 0,
                idle: Vec::with_capacity(WORKERS),
                wakers: vec![None; WORKERS],
                waking: false,
                hired: 0,
                most,
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

    /// Whether no stripe is ready or busy.
    fn is_idle(&self) -> bool {
        self.in_flight == self.held.len()
    }

    /// Whether a stripe that comes next, of which this is there, waits for the rest.
    fn holds(&mut self, begun: Option<Begun>) -> bool {
        begun.is_some() && !self.is_idle() && self.held.len() < HELD && self.paid.tries()
    }

    /// A stripe is held no longer.
    fn let_go(&mut self, at: u32) {
        self.held.retain(|held| *held != at);
        if let Some(begun) = self.entries[at as usize].held.take() {
            self.paid.ended(&begun);
        }
        self.make_ready(at);
    }

    /// Lets those go that have waited for long enough, and all if nothing else goes on.
    fn look_at_held(&mut self) {
        let is_idle = self.is_idle();
        while let Some(&at) = self.held.front() {
            let since = self.entries[at as usize].held.map_or(0, |begun| begun.since);
            if !is_idle && self.finished - since < HOLD_FINISHED {
                return;
            }
            self.let_go(at);
        }
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

/// Where in the stripe's data a write begins, and how many bytes it has.
fn written(job: &Job) -> Option<(u32, u32)> {
    match job {
        Job::Write { at, data, .. } => Some((*at, data.len() as u32)),
        _ => None,
    }
}

impl StripeTable {
    /// Adds a job to a stripe's queue; an idle stripe becomes ready, or is held. It has `full`
    /// bytes of data, or 0 where it is as good to write parts of it.
    pub fn submit(&self, key: StripeKey, waiting: Waiting, full: u32) {
        let tables = &mut *self.tables.borrow_mut();
        let write = written(&waiting.job);
        let Some(at) = tables.find(key) else {
            let begun = write.and_then(|own| Begun::of(own, full, tables.finished));
            let holds = tables.holds(begun);
            let at = tables.insert(key);
            let entry = &mut tables.entries[at as usize];
            entry.jobs.push(waiting);
            if holds {
                entry.held = begun;
                tables.held.push_back(at);
            } else {
                tables.make_ready(at);
            }
            return;
        };
        let entry = &mut tables.entries[at as usize];
        entry.jobs.push(waiting);
        let Some(begun) = entry.held else { return };
        let grown = write.map(|(_, bytes)| begun.with(bytes));
        entry.held = grown.or(Some(begun));
        if grown.is_none_or(|begun| begun.is_full()) {
            tables.let_go(at);
        }
    }

    /// The number of a worker that has to begin, if a stripe is ready and nobody is idle; to be
    /// asked whenever a job was submitted or a stripe taken.
    pub fn hire(&self) -> Option<u32> {
        let tables = &mut *self.tables.borrow_mut();
        let is_served = tables.waking || !tables.idle.is_empty() || tables.ready.is_empty();
        if is_served || tables.hired == tables.most {
            return None;
        }
        tables.waking = true;
        tables.hired += 1;
        Some(tables.hired as u32 - 1)
    }

    /// Has a worker wait for a ready stripe, makes that busy and moves all of its jobs into
    /// `jobs`; `None` once the table is closed. `woken` is the worker's own: true at its begin.
    pub async fn take(
        &self,
        worker: u32,
        woken: &mut bool,
        jobs: &mut Vec<Waiting>,
    ) -> Option<(u32, StripeKey)> {
        let at = poll_fn(|cx| {
            let tables = &mut *self.tables.borrow_mut();
            match tables.look(worker, cx.waker(), woken) {
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
        tables.finished += 1;
        if entry.jobs.is_empty() {
            tables.remove(at);
        } else {
            tables.make_ready(at);
        }
        tables.look_at_held();
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

    /// Stripes that are held, ready or busy.
    pub fn in_flight(&self) -> usize {
        self.tables.borrow().in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{HOLD_MISSES, HOLD_TRIED};
    use core::future::Future;
    use io::{Buf, Pool};

    /// Bytes of a stripe's data, and of a stream's requests.
    const FULL: u32 = 7 << 16;
    const REQUEST: u32 = 128 << 10;

    fn data(bytes: u32) -> Buf {
        Pool::single(bytes as usize).freeze()
    }

    fn write(table: &StripeTable, stripe: u64, at: u32, bytes: u32) {
        submit(table, stripe, Job::Write { at, data: data(bytes), fua: false });
    }

    fn submit(table: &StripeTable, stripe: u64, job: Job) {
        let key = StripeKey { group: GroupNo(0), stripe: units::StripeNo(stripe) };
        let origin = Origin { core: CoreId(0), pending: 0 };
        table.submit(key, Waiting { job, origin }, FULL);
    }

    /// The stripe that a worker gets, and how many jobs it has; none if there is none.
    fn take(table: &StripeTable) -> Option<(u32, u64, usize)> {
        let (mut jobs, mut woken) = (Vec::new(), false);
        let mut taking = Box::pin(table.take(0, &mut woken, &mut jobs));
        let taken = taking.as_mut().poll(&mut core::task::Context::from_waker(Waker::noop()));
        drop(taking);
        let Poll::Ready(taken) = taken else {
            table.tables.borrow_mut().idle.clear();
            return None;
        };
        let (at, key) = taken?;
        Some((at, key.stripe.0, jobs.len()))
    }

    /// A table in which stripe 0 is being worked on.
    fn busy() -> (StripeTable, u32) {
        let table = StripeTable::new(1);
        write(&table, 0, 0, REQUEST);
        let (at, stripe, _) = take(&table).expect("nothing is held while nothing goes on");
        assert_eq!(stripe, 0);
        (table, at)
    }

    #[test]
    fn workers_begin_when_stripes_wait_for_them() {
        let table = StripeTable::new(3);
        assert_eq!(table.hire(), None, "nothing is ready");
        (0..9).for_each(|stripe| write(&table, stripe, 4096, 4096));
        assert_eq!(table.hire(), Some(0));
        assert_eq!(table.hire(), None, "the first has not looked yet");
        let mut jobs = Vec::new();
        let mut look = |worker: u32| {
            let (mut woken, mut cx) = (true, core::task::Context::from_waker(Waker::noop()));
            let mut taking = Box::pin(table.take(worker, &mut woken, &mut jobs));
            let taken = taking.as_mut().poll(&mut cx);
            drop(taking);
            jobs.clear();
            matches!(taken, Poll::Ready(Some(_)))
        };
        assert!(look(0));
        assert_eq!(table.hire(), Some(1));
        assert!(look(1));
        assert_eq!(table.hire(), Some(2));
        assert!(look(2));
        assert_eq!(table.hire(), None, "there are as many as may be");
        (0..6).for_each(|_| assert!(look(0)));
        assert!(!look(1), "nothing is left");
        assert!(table.tables.borrow().idle == [1]);
    }

    #[test]
    fn who_is_idle_is_woken_first() {
        let table = StripeTable::new(3);
        write(&table, 0, 4096, 4096);
        assert_eq!(table.hire(), Some(0));
        let (mut jobs, mut woken) = (Vec::new(), true);
        let mut cx = core::task::Context::from_waker(Waker::noop());
        let mut taking = Box::pin(table.take(0, &mut woken, &mut jobs));
        assert!(taking.as_mut().poll(&mut cx).is_ready());
        drop(taking);
        jobs.clear();
        let mut taking = Box::pin(table.take(0, &mut woken, &mut jobs));
        assert!(taking.as_mut().poll(&mut cx).is_pending());
        write(&table, 1, 4096, 4096);
        assert_eq!(table.hire(), None, "one was woken");
        write(&table, 2, 4096, 4096);
        assert_eq!(table.hire(), None, "and wakes the next when it has looked");
        assert!(taking.as_mut().poll(&mut cx).is_ready());
        assert_eq!(table.hire(), Some(1));
    }

    #[test]
    fn a_stream_fills_stripes() {
        let (table, _) = busy();
        // In whatever order they come.
        for at in [1, 0, 2, 3] {
            assert_eq!(take(&table), None);
            write(&table, 1, at * REQUEST, if at == 3 { FULL - 3 * REQUEST } else { REQUEST });
        }
        assert_eq!(take(&table).map(|own| (own.1, own.2)), Some((1, 4)));
        assert_eq!(table.in_flight(), 2);
    }

    #[test]
    fn what_is_no_stream_is_not_held() {
        let (table, _) = busy();
        write(&table, 1, 4096, 4096);
        assert!(take(&table).is_some());
        write(&table, 2, 0, FULL);
        assert!(take(&table).is_some());
        submit(&table, 3, Job::Zero { at: 0, bytes: REQUEST, fua: false });
        assert!(take(&table).is_some());
        write(&table, 4, 0, REQUEST);
        assert_eq!(take(&table), None);
        submit(&table, 4, Job::Read { at: 0, into: Pool::single(4096) });
        assert_eq!(take(&table).map(|own| own.2), Some(2), "who wants something else gets it");
    }

    #[test]
    fn nothing_is_held_while_nothing_else_goes_on() {
        let (table, at) = busy();
        write(&table, 1, 0, REQUEST);
        write(&table, 2, 0, REQUEST);
        assert_eq!(take(&table), None);
        table.finish(at);
        assert_eq!(
            [take(&table), take(&table)].map(|own| own.map(|own| own.1)),
            [Some(1), Some(2)]
        );
    }

    #[test]
    fn nothing_is_held_for_long() {
        let (table, _) = busy();
        write(&table, 1, 0, REQUEST);
        for stripe in 10..10 + HOLD_FINISHED {
            assert_eq!(take(&table), None);
            write(&table, stripe, 4096, 4096);
            let (at, ..) = take(&table).expect("there is one");
            table.finish(at);
        }
        assert_eq!(take(&table).map(|own| own.1), Some(1));
    }

    #[test]
    fn where_waiting_does_not_pay_nobody_waits() {
        let table = StripeTable::new(1);
        // Two streams of one request at a time.
        let mut held = 0;
        write(&table, 0, 0, REQUEST);
        let mut at = take(&table).expect("there is one").0;
        for stripe in 1..=u64::from(HOLD_MISSES + 2 * HOLD_TRIED) {
            write(&table, stripe, 0, REQUEST);
            held += u32::from(table.tables.borrow().held.len() == 1);
            table.finish(at);
            at = take(&table).expect("it is let go").0;
        }
        assert!((HOLD_MISSES..=HOLD_MISSES + 2).contains(&held), "{held}");
    }
}

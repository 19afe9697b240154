//! The in-flight record of one core: a task that has pages say which columns its stripes are
//! being written in, while the group lacks no drive. Their bytes are [`format::flight`]'s.
//!
//! | a write of a whole group | leaves by                                                         |
//! |--------------------------|-------------------------------------------------------------------|
//! | planned                  | there is room → entered                                           |
//! | entered, reads (drives   | a durable page names it → in place; the key changed → planned anew|
//! | in memory: only then)    |                                                                   |
//! | in place                 | over, and who missed it is out → left                             |
//!
//! One page at a time is written, durably, to as many drives as the group can lose and one more,
//! beside the reads of the writes that wait for it. What comes meanwhile is in the next one. A page
//! leaves out what is over and in no cache: written with FUA, or flushed by a host or the task.
//! When nothing new comes for [`FLIGHT_QUIET`], or there is little room left, the task flushes, and
//! writes one for that alone.
//!
//! Invariants
//! - Nothing is written in place that no durable page under the present key names.
//! - A page never goes over the newest durable one.
//! - Once its memory is warm the task allocates nothing for a page.

use crate::Host;
use crate::array::{Array, Bound};
use crate::journal::columns::{InFlight, Ticket};
use crate::journal::{GROUP, Shape, Task, flush, least_busy};
use crate::limits::{DRIVES_MAX, FLIGHT_QUIET};
use crate::mutants::{self, Mutant};
use arrayvec::ArrayVec;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::pin;
use core::task::Poll;
use format::flight::{Columns, PageHead, encode, page_bytes};
use format::journal::Place;
use io::local::Event;
use io::{Buf, BufMut, Drive, Pool};
use units::{CoreId, Slot};

/// See the module above.
pub(crate) struct Flight {
    core: CoreId,
    /// Where the first of both places begins in the journal area, and the bytes of each.
    start: u64,
    bytes: u64,
    table: RefCell<InFlight>,
    /// The key of the pages.
    key: Cell<u64>,
    /// Writes of pages that drives were asked for.
    writes: Cell<u64>,
    page: RefCell<Option<BufMut>>,
    task: Task,
    /// A page is durable or there is another key: for writes. Apart from what the task waits for,
    /// of which writes make so much that each would wake all others.
    named: Event,
}

impl Flight {
    pub fn new(core: CoreId, shape: Shape) -> Self {
        Self {
            core,
            start: u64::from(core.0) * shape.core_bytes,
            bytes: shape.flight_bytes,
            table: RefCell::new(InFlight::new(shape.flight_entries)),
            key: Cell::new(0),
            writes: Cell::new(0),
            page: RefCell::default(),
            task: Task::default(),
            named: Event::default(),
        }
    }

    /// Writes of pages that drives were asked for.
    pub fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Enters columns that are about to be written, once there is room.
    pub async fn enter(&self, columns: Columns) -> Ticket {
        let entered = self.table.borrow_mut().enter(columns);
        let ticket = match entered {
            Some(ticket) => ticket,
            None => self.named.wait_until(|| self.table.borrow_mut().enter(columns)).await,
        };
        if !self.table.borrow().named(ticket) || self.key.get() == 0 {
            self.task.news.notify();
        }
        ticket
    }

    /// Returns when a durable page under `key` names it. Refused: plan it anew.
    pub async fn named<E: Host>(
        &self,
        array: &Array<E>,
        key: u64,
        ticket: Ticket,
    ) -> Result<(), ()> {
        let known = || {
            if array.bound().view.flight_key != key {
                return Some(Err(()));
            }
            let named = self.key.get() == key && self.table.borrow().named(ticket);
            named.then_some(Ok(()))
        };
        match known() {
            Some(known) => known,
            None => self.named.wait_until(known).await,
        }
    }

    /// A write is in place, and who missed it is out; or nothing was written. Whether drives that
    /// have caches may hold some of it there.
    pub fn over<E: Host>(&self, array: &Array<E>, ticket: Ticket, cached: bool) {
        let cached =
            cached && array.bound().view.volatile_cache && !mutants::is(Mutant::FlightUnflushed);
        let since = cached.then(|| array.flushes_begun());
        let mut table = self.table.borrow_mut();
        let first = !table.any_over();
        table.over(ticket, since);
        if first || table.crowded() {
            drop(table);
            self.task.news.notify();
        }
    }

    /// The flush of all drives that began as this one ended well, a host's or the task's own: what
    /// was over before may be left out of pages.
    pub fn flushed(&self, flush: u64) {
        self.table.borrow_mut().flushed(flush);
    }

    /// Something changed that the task or writes may wait for.
    pub fn look(&self) {
        self.task.news.notify();
        self.named.notify();
    }

    /// Ends the task: no page is being written on return. Nothing is in flight, or will be.
    pub async fn end(&self) {
        self.task.end().await;
    }

    /// Whether there is something to do for a page at once.
    fn due<E: Host>(&self, array: &Array<E>) -> bool {
        let key = array.bound().view.flight_key;
        let table = self.table.borrow();
        let crowded = table.crowded() && table.any_over();
        self.task.closed.get()
            || key != 0 && (table.any_fresh() || crowded || key != self.key.get())
    }

    /// Waits until there is; or until nothing came for a while and a page says too much.
    async fn wait<E: Host>(&self, array: &Array<E>) {
        loop {
            let kept = mutants::is(Mutant::FlightKept);
            let stale =
                || array.bound().view.flight_key != 0 && self.table.borrow().any_over() && !kept;
            let due = || self.due(array);
            self.task.news.wait_until(|| (due() || stale()).then_some(())).await;
            if due() {
                return;
            }
            let mut quiet = pin!(array.env().sleep(FLIGHT_QUIET));
            let mut news = pin!(self.task.news.wait_until(|| due().then_some(())));
            let slept = core::future::poll_fn(|cx| {
                if news.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(false);
                }
                quiet.as_mut().poll(cx).map(|_| true)
            });
            if !slept.await || stale() {
                return;
            }
        }
    }
}

/// The task of a core.
pub(crate) async fn run<E: Host>(array: Array<E>) {
    let flight = array.flight().expect("only arrays with a journal have it");
    loop {
        flight.wait(&array).await;
        if flight.task.closed.get() {
            return flight.task.over();
        }
        let bound = array.bound();
        let key = bound.view.flight_key;
        if key == 0 {
            continue;
        }
        if flight.key.get() != key {
            flight.table.borrow_mut().renew();
            flight.key.set(key);
            flight.named.notify();
        }
        let (fresh, crowded) = {
            let table = flight.table.borrow();
            (table.any_fresh(), table.crowded())
        };
        let unflushed = flight.table.borrow().any_unflushed();
        if unflushed && (crowded || !fresh) {
            let number = array.flush_begins();
            if flush(&array).await {
                flight.flushed(number);
            }
        }
        let due = flight.table.borrow().any_fresh() || flight.table.borrow().any_over();
        if due && array.bound().view.flight_key == key {
            put(&array, flight, &bound, key).await;
            flight.named.notify();
        }
    }
}

/// Writes the next page. A drive that does not take it is out when this returns, and then the key
/// is another.
async fn put<E: Host>(array: &Array<E>, flight: &Flight, bound: &Bound<E>, key: u64) {
    let sequence = flight.table.borrow_mut().make();
    let turn = if mutants::is(Mutant::FlightSamePlace) { 0 } else { sequence % 2 };
    let at = flight.start + turn * flight.bytes;
    let page = image(flight, bound, (at, sequence, key));
    let view = &bound.view;
    let start = view.journal.expect("an array with a key has a journal").0;
    let slots = view.slots.len();
    let copies = (usize::from(view.layout.m(GROUP)) + 1).min(slots);
    let copies = if mutants::is(Mutant::FlightOneCopy) { 1 } else { copies };
    let durable = !mutants::is(Mutant::FlightNotDurable);
    let mut tickets = ArrayVec::<_, DRIVES_MAX>::new();
    let all = (0u16..).map(Slot).zip(&bound.drives);
    let all = all.filter_map(|(slot, drive)| Some((slot, drive.as_ref()?))).collect();
    for (slot, drive) in least_busy(all, sequence, copies) {
        let page = core::slice::from_ref(&page);
        tickets.push((slot, drive.write(start + at, page, durable)));
    }
    flight.writes.set(flight.writes.get() + tickets.len() as u64);
    let mut taken = true;
    for (slot, ticket) in tickets {
        if ticket.await.is_err() {
            taken = false;
            array.fail_and_wait(bound, slot).await;
        }
    }
    if taken {
        flight.table.borrow_mut().durable();
    }
    if let Ok(page) = page.try_thaw() {
        *flight.page.borrow_mut() = page.whole();
    }
}

/// The bytes of the page that was made last.
fn image<E: Host>(flight: &Flight, bound: &Bound<E>, (at, sequence, key): (u64, u64, u64)) -> Buf {
    let table = flight.table.borrow();
    let spare = flight.page.borrow_mut().take();
    let mut page = spare.unwrap_or_else(|| Pool::single(flight.bytes as usize));
    page.truncate(page_bytes(table.used()));
    let view = &bound.view;
    let (lane, epoch) = (flight.core.0, view.epoch);
    let head = PageHead { group: GROUP, lane, sequence, key, epoch };
    let place = Place { array: view.array, at };
    encode(place, &head, table.used(), table.named_now(), &mut page);
    page.freeze()
}

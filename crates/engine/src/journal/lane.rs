//! A lane of one core: a task that writes what is queued as batches, one after the other. A core
//! has several ([`Shape::lanes`]), so that one batch's drive does not keep all writes waiting.
//!
//! Invariants
//! - What is queued is answered: with the number of its batch once that is durable, or refused,
//!   and then it must be planned anew. Nothing of a refused one was written in place.
//! - The lane waits for entries to be over only while there is no place for the next batch, and no
//!   entry waits for the lane before it is over.

use crate::Host;
use crate::array::{Array, Bound};
use crate::journal::ring::{Ring, most};
use crate::journal::{Chosen, GROUP, Shape, Task, flush, least_busy};
use crate::mutants::{self, Mutant};
use crate::watch::Watched;
use core::cell::{Cell, RefCell};
use format::journal::{Batch, Place, Redo, StripRange, head_bytes, payload_crc};
use format::limits::BATCH_ALIGN;
use io::drive::GATHER_MAX;
use io::{Buf, Drive, Pool};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{CoreId, Slot};

/// What a stripe wants logged before it is written.
pub(crate) struct Wanted {
    /// The journal's key under which it was planned.
    pub key: u64,
    /// The stripe.
    pub stripe: u64,
    /// Where its new bytes go.
    pub ranges: Vec<StripRange>,
    /// The bytes, in the same order.
    pub payload: Vec<Buf>,
}

struct Queued {
    wanted: RefCell<Wanted>,
    bytes: usize,
    answer: Cell<Option<Result<u64, ()>>>,
}

/// See the module above.
pub(crate) struct Lane {
    /// Which of all cores' it is.
    number: u16,
    /// Where the lane begins in the journal area.
    start: u64,
    slice_bytes: u32,
    ring: RefCell<Ring>,
    /// The key of what is in the ring.
    key: Cell<u64>,
    queue: RefCell<VecDeque<Rc<Queued>>>,
    /// Batches up to this one shall be forgotten, durably.
    forget: Cell<u64>,
    /// So shall those that were given up.
    cover: Cell<bool>,
    /// Writes of batches that drives were asked for.
    writes: Cell<u64>,
    task: Task,
}

fn pages(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(BATCH_ALIGN)).expect("a lane is smaller")
}

impl Lane {
    /// One of a core's.
    pub fn new(core: CoreId, at: usize, shape: Shape) -> Self {
        let ring = Ring::new(pages(shape.lane_bytes as usize));
        let before = u64::from(core.0) * shape.core_bytes + 2 * shape.flight_bytes;
        Self {
            number: core.0 * shape.lanes as u16 + at as u16,
            start: before + at as u64 * shape.lane_bytes,
            slice_bytes: shape.slice_bytes,
            ring: RefCell::new(ring),
            key: Cell::new(0),
            queue: RefCell::default(),
            forget: Cell::new(0),
            cover: Cell::new(false),
            writes: Cell::new(0),
            task: Task::default(),
        }
    }

    /// Writes of batches that drives were asked for.
    pub fn writes(&self) -> u64 {
        self.writes.get()
    }

    /// Most bytes of each strip that one write may change.
    pub const fn slice_bytes(&self) -> u32 {
        self.slice_bytes
    }

    /// Logs what is about to be written; the batch it is in. Refused: plan it anew.
    pub async fn log(&self, wanted: Wanted) -> Result<u64, ()> {
        let bytes = wanted.ranges.iter().map(|r| r.bytes as usize).sum();
        let wanted = RefCell::new(wanted);
        let queued = Rc::new(Queued { wanted, bytes, answer: Cell::new(None) });
        self.queue.borrow_mut().push_back(queued.clone());
        self.task.news.notify();
        self.task.news.wait_until(|| queued.answer.get()).await
    }

    /// What was logged in this batch is written in place, or whoever missed it is out.
    pub fn over(&self, batch: u64) {
        self.ring.borrow_mut().over(batch);
        self.task.news.notify();
    }

    /// Something changed that the lane may wait for.
    pub fn look(&self) {
        self.task.news.notify();
    }

    /// Ends the lane: it writes nothing on return. Nothing is queued, or will be.
    pub async fn end(&self) {
        self.task.end().await;
    }

    /// Returns when nothing that is over now can come back, or the group takes no writes.
    pub async fn forget<E: Host>(&self, array: &Array<E>) {
        let last = self.ring.borrow().logged();
        let gone = || {
            let ring = self.ring.borrow();
            ring.durable_tail() > last && !ring.given_up()
        };
        if gone() || !may_log(&array.bound()) {
            return;
        }
        self.forget.set(self.forget.get().max(last));
        self.cover.set(true);
        self.task.news.notify();
        let done = || gone() || !may_log(&array.bound());
        self.task.news.wait_until(|| done().then_some(())).await;
    }

    /// Batches are written under this key from now on: those of another don't count.
    fn under(&self, key: u64) {
        if self.key.replace(key) != key {
            self.ring.borrow_mut().renew();
            self.task.news.notify();
        }
    }

    /// The first that are queued, alike and not too many for a batch; refuses others before them.
    fn take(&self, key: u64) -> Vec<Rc<Queued>> {
        let mut queue = self.queue.borrow_mut();
        let most = most(self.ring.borrow().pages());
        let (mut taken, mut bytes, mut ranges) = (Vec::<Rc<Queued>>::new(), 0, 0);
        while let Some(next) = queue.front() {
            if key == 0 || next.wanted.borrow().key != key {
                next.answer.set(Some(Err(())));
                queue.pop_front();
                continue;
            }
            bytes += next.bytes;
            ranges += next.wanted.borrow().ranges.len();
            let full = pages(bytes) + pages(head_bytes(taken.len() + 1, ranges)) > most;
            if full && !taken.is_empty() {
                break;
            }
            taken.extend(queue.pop_front());
        }
        self.task.news.notify();
        taken
    }
}

/// Whether the group goes through the journal and takes writes.
fn may_log<E: Host>(bound: &Bound<E>) -> bool {
    bound.view.journal_key != 0 && !bound.view.frozen(GROUP)
}

fn answer(batch: &[Rc<Queued>], with: Result<u64, ()>) {
    batch.iter().for_each(|queued| queued.answer.set(Some(with)));
}

/// The task of a lane.
pub(crate) async fn run<E: Host>(array: Array<E>, at: usize) {
    let lane = &array.lanes()[at];
    loop {
        let forget = || {
            let ring = lane.ring.borrow();
            lane.cover.set(lane.cover.get() && ring.given_up());
            lane.cover.get() || lane.forget.get() >= ring.durable_tail()
        };
        let due = || lane.task.closed.get() || !lane.queue.borrow().is_empty() || forget();
        lane.task.news.wait_until(|| due().then_some(())).await;
        if lane.task.closed.get() {
            return lane.task.over();
        }
        if lane.queue.borrow().is_empty() {
            let bound = array.bound();
            if may_log(&bound) {
                lane.under(bound.view.journal_key);
                if forget() {
                    make_room(&array, lane).await;
                }
            } else {
                lane.forget.set(0);
                lane.cover.set(false);
                lane.task.news.notify();
            }
            continue;
        }
        let bound = array.bound();
        let key = if may_log(&bound) { bound.view.journal_key } else { 0 };
        let batch = lane.take(key);
        if !batch.is_empty() {
            let written = write(&array, lane, key, &batch).await;
            answer(&batch, written);
            lane.task.news.notify();
        }
    }
}

/// Writes a batch, once there is a place for it.
async fn write<E: Host>(
    array: &Array<E>,
    lane: &Lane,
    key: u64,
    queued: &[Rc<Queued>],
) -> Result<u64, ()> {
    let payload: usize = queued.iter().map(|q| q.bytes).sum();
    let ranges = queued.iter().map(|q| q.wanted.borrow().ranges.len()).sum();
    let size = pages(head_bytes(queued.len(), ranges)) + pages(payload);
    loop {
        let bound = array.bound();
        if !may_log(&bound) || bound.view.journal_key != key {
            return Err(());
        }
        lane.under(key);
        let place = lane.ring.borrow().place(size);
        match place {
            Some(at) => return put(array, lane, &bound, (at, size), queued).await,
            None => make_room(array, lane).await,
        }
    }
}

/// Gives up places of batches that are not needed, or waits until there is one.
async fn make_room<E: Host>(array: &Array<E>, lane: &Lane) {
    let any_over = lane.ring.borrow().any_over();
    if any_over {
        lane.ring.borrow_mut().flush_begins();
        if flush(array).await {
            lane.ring.borrow_mut().flushed();
        }
        return;
    }
    let moves = lane.ring.borrow().moves();
    let bound = array.bound();
    if moves {
        let at = lane.ring.borrow().place_of_tail();
        let _ = put(array, lane, &bound, (at, 1), &[]).await;
        lane.task.news.notify();
        return;
    }
    let generation = bound.view.generation;
    let news = || {
        let changed = array.bound().view.generation != generation;
        let over = lane.ring.borrow().any_over() || lane.task.closed.get();
        (changed || over).then_some(())
    };
    lane.task.news.wait_until(news).await;
}

/// The drives that get the batch: as many in sync as the group can still lose, and one more.
fn targets<E: Host>(bound: &Bound<E>, sequence: u64) -> Chosen<'_, E> {
    let view = &bound.view;
    let all = (0u16..).map(Slot).zip(&bound.drives).filter(|(slot, _)| view.in_sync(*slot));
    let all: Chosen<'_, E> =
        all.filter_map(|(slot, drive)| Some((slot, drive.as_ref()?))).collect();
    let mut copies = (all.len() + 1).saturating_sub(view.layout.k(GROUP).into());
    if mutants::is(Mutant::JournalOneCopy) {
        copies = copies.min(1);
    }
    least_busy(all, sequence, copies)
}

/// Writes a batch to its place. A drive that does not take it is out when this returns.
async fn put<E: Host>(
    array: &Array<E>,
    lane: &Lane,
    bound: &Bound<E>,
    (at, size): (u32, u32),
    queued: &[Rc<Queued>],
) -> Result<u64, ()> {
    let tail = lane.ring.borrow().tail();
    let sequence = lane.ring.borrow_mut().push(at, size, queued.len() as u32);
    let at = lane.start + u64::from(at) * BATCH_ALIGN as u64;
    let image = image(array, lane, bound, (at, sequence, tail), queued);
    let start = bound.view.journal.expect("an array with a key has a journal").0;
    let targets = targets(bound, sequence);
    let fua = !mutants::is(Mutant::JournalNotDurable);
    let write = |(slot, drive): &(Slot, &Watched<E>)| (*slot, drive.write(start + at, &image, fua));
    let tickets: Vec<_> = targets.iter().map(write).collect();
    lane.writes.set(lane.writes.get() + tickets.len() as u64);
    let mut taken = !tickets.is_empty();
    for (slot, ticket) in tickets {
        if ticket.await.is_err() {
            taken = false;
            array.fail_and_wait(bound, slot).await;
        }
    }
    let mut ring = lane.ring.borrow_mut();
    if taken {
        ring.durable(sequence);
        return Ok(sequence);
    }
    ring.abandon(sequence);
    Err(())
}

/// The bytes of a batch, few enough buffers for one request.
fn image<E: Host>(
    array: &Array<E>,
    lane: &Lane,
    bound: &Bound<E>,
    (at, sequence, tail): (u64, u64, u64),
    queued: &[Rc<Queued>],
) -> Vec<Buf> {
    let mut parts = Vec::new();
    let mut entries = Vec::new();
    for queued in queued {
        let wanted = &mut *queued.wanted.borrow_mut();
        entries.push(Redo { stripe: wanted.stripe, ranges: core::mem::take(&mut wanted.ranges) });
        parts.append(&mut wanted.payload);
    }
    let view = &bound.view;
    let (key, epoch, lane) = (view.journal_key, view.epoch, lane.number);
    let batch = Batch { group: GROUP, lane, sequence, tail, key, epoch, entries };
    let payload = batch.payload_bytes() as usize;
    let rest = payload.next_multiple_of(BATCH_ALIGN) - payload;
    if rest > 0 {
        parts.push(array.zeros().slice(..rest));
    }
    let crc = parts.iter().fold(0, |crc, part| payload_crc(crc, part));
    let head = format::journal::encode(Place { array: view.array, at }, &batch, crc);
    if parts.len() < GATHER_MAX {
        parts.insert(0, copied(&[&head]));
        return parts;
    }
    let mut all: Vec<&[u8]> = vec![&head];
    all.extend(parts.iter().map(|part| &part[..]));
    vec![copied(&all)]
}

fn copied(parts: &[&[u8]]) -> Buf {
    let mut buffer = Pool::single(parts.iter().map(|part| part.len()).sum());
    let mut at = 0;
    for part in parts {
        buffer[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    buffer.freeze()
}

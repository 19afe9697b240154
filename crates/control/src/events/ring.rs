//! The last events, in the order of their identifiers, and who waits for the next.
//!
//! Whoever reads keeps a place: how many events came before it. Nobody keeps an event for a reader:
//! one that falls behind what the ring holds learns how many it missed.
//!
//! Invariants
//! - Identifiers only grow.
//! - To put events here waits for nobody, and takes memory for [`MOST`] events at most.

use crate::lock::lock;
use redfish::events::{Event, MOST};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// The most bytes of an argument, as JSON has it.
const ARGUMENT_BYTES: usize = 512;

/// An identifier that is greater than any that was told before this moment: nobody tells an event
/// each microsecond. JSON's numbers have it as it is until the year 2255.
pub fn first_id() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Where a reader is: so many events came before.
pub type Place = u64;

/// What a reader is given.
#[derive(Default, Debug)]
pub struct Batch {
    /// Events, the oldest first.
    pub events: Vec<Arc<Event>>,
    /// Where the reader is after them.
    pub place: Place,
    /// How many events before them it has missed.
    pub missed: u64,
}

/// What a ring begins with.
#[derive(Default, Debug)]
pub struct Begin {
    /// Events that are kept, the oldest first.
    pub events: Vec<Event>,
    /// The identifier that comes before the next event's.
    pub last: u64,
    /// The identifier of the last event that is no longer kept.
    pub gone: u64,
}

struct Inner {
    entries: Arc<VecDeque<Arc<Event>>>,
    /// How many events came, those that the ring began with among them.
    end: Place,
    last: u64,
    gone: u64,
    is_ending: bool,
    has_ended: bool,
    /// Why the last that came is not kept.
    problem: Option<String>,
}

/// The ring.
pub struct Ring {
    inner: Mutex<Inner>,
    /// Something came, or the daemon ends: for the thread that keeps events.
    work: Condvar,
    told: watch::Sender<Place>,
}

/// What there is for the thread that keeps events.
pub struct Work {
    /// Events that it has not kept; all, if it has missed some.
    pub batch: Batch,
    /// The identifier of the last event.
    pub last: u64,
    /// The identifier of the last event that is no longer in the ring.
    pub gone: u64,
    /// Whether nothing comes after it.
    pub is_ending: bool,
}

fn clipped(mut event: Event) -> Event {
    for arg in &mut event.args {
        let mut bytes = 0;
        let end = arg.char_indices().find(|(_, char)| {
            bytes += match char {
                '"' | '\\' => 2,
                '\0'..='\x1f' => 6,
                char => char.len_utf8(),
            };
            bytes > ARGUMENT_BYTES
        });
        if let Some((end, _)) = end {
            arg.truncate(end);
            arg.push('…');
        }
    }
    event
}

impl Inner {
    fn first(&self) -> Place {
        self.end.saturating_sub(self.entries.len() as u64)
    }

    fn after(&self, place: Place, most: usize) -> Batch {
        let first = self.first();
        let from = place.clamp(first, self.end);
        let skip = usize::try_from(from - first).unwrap_or(usize::MAX);
        let events: Vec<_> = self.entries.iter().skip(skip).take(most).cloned().collect();
        let place_after = from.saturating_add(events.len() as u64);
        Batch { events, place: place_after, missed: first.saturating_sub(place) }
    }
}

impl Ring {
    /// One that begins with these.
    pub fn new(begin: Begin) -> Self {
        let Begin { events, last, gone } = begin;
        let entries: VecDeque<_> = events.into_iter().map(Arc::new).collect();
        let end = entries.len() as u64;
        let last = entries.back().map_or(last, |event| last.max(event.id));
        let (is_ending, has_ended) = (false, true);
        let entries = Arc::new(entries);
        let inner = Inner { entries, end, last, gone, is_ending, has_ended, problem: None };
        Self { inner: Mutex::new(inner), work: Condvar::new(), told: watch::Sender::new(end) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// These came to be, at this moment.
    pub fn put(&self, events: Vec<Event>, at: u64) {
        if events.is_empty() {
            return;
        }
        let end = {
            let mut inner = self.inner();
            let (mut last, mut gone, mut end) = (inner.last, inner.gone, inner.end);
            // Copied only while somebody reads those before.
            let entries = Arc::make_mut(&mut inner.entries);
            for event in events {
                last = last.saturating_add(1);
                end = end.saturating_add(1);
                entries.push_back(Arc::new(Event { id: last, at, ..clipped(event) }));
                if entries.len() > MOST {
                    gone = entries.pop_front().map_or(gone, |event| event.id);
                }
            }
            (inner.last, inner.gone, inner.end) = (last, gone, end);
            end
        };
        self.work.notify_all();
        self.told.send_replace(end);
    }

    /// All that are kept.
    pub fn entries(&self) -> Arc<VecDeque<Arc<Event>>> {
        self.inner().entries.clone()
    }

    /// Some of the events after a place.
    pub fn after(&self, place: Place, most: usize) -> Batch {
        self.inner().after(place, most)
    }

    /// The place of the next event.
    pub fn end(&self) -> Place {
        self.inner().end
    }

    /// The place after the event of this identifier, which a reader has had; and whether events
    /// after it may be missing. One that is not known may be of any time.
    pub fn place_after(&self, id: u64) -> (Place, bool) {
        let inner = self.inner();
        if id > inner.last || id < inner.gone {
            return (inner.first(), true);
        }
        let before = inner.entries.partition_point(|event| event.id <= id);
        (inner.first().saturating_add(before as u64), false)
    }

    /// The identifier of the event before a place: who has had all up to there has had it last.
    pub fn id_before(&self, place: Place) -> u64 {
        let inner = self.inner();
        if inner.entries.is_empty() {
            return inner.last;
        }
        let number = place.checked_sub(inner.first().saturating_add(1));
        let before = number.and_then(|number| inner.entries.get(usize::try_from(number).ok()?));
        before.map_or(inner.gone, |event| event.id)
    }

    /// Where the next event will be, whenever it comes.
    pub fn watch(&self) -> watch::Receiver<Place> {
        self.told.subscribe()
    }

    /// Why events are not kept, if they should be.
    pub fn problem(&self) -> Option<String> {
        self.inner().problem.clone()
    }

    /// Events are kept again, or can't be.
    pub fn set_problem(&self, problem: Option<String>) {
        self.inner().problem = problem;
    }

    /// A thread begins to keep events.
    pub fn begin_keeping(&self) {
        self.inner().has_ended = false;
    }

    /// It has ended.
    pub fn end_keeping(&self) {
        self.inner().has_ended = true;
        self.work.notify_all();
    }

    /// Waits for something to keep; for that thread.
    pub fn work(&self, kept: Place) -> Work {
        let inner = self.inner();
        let is_idle = |inner: &mut Inner| inner.end <= kept && !inner.is_ending;
        let waited = self.work.wait_while(inner, is_idle);
        Self::work_of(&waited.unwrap_or_else(|e| e.into_inner()), kept)
    }

    /// Waits for some time, unless the daemon ends; for that thread.
    pub fn pause(&self, time: Duration, kept: Place) -> Work {
        let is_going_on = |inner: &mut Inner| !inner.is_ending;
        let waited = self.work.wait_timeout_while(self.inner(), time, is_going_on);
        Self::work_of(&waited.unwrap_or_else(|e| e.into_inner()).0, kept)
    }

    fn work_of(inner: &Inner, kept: Place) -> Work {
        let batch = inner.after(kept, MOST);
        Work { batch, last: inner.last, gone: inner.gone, is_ending: inner.is_ending }
    }

    /// The daemon ends: what waits is kept, if that takes no longer than this.
    pub fn close(&self, patience: Duration) {
        let mut inner = self.inner();
        inner.is_ending = true;
        self.work.notify_all();
        // Whoever can't keep it by then keeps nobody from ending.
        drop(self.work.wait_timeout_while(inner, patience, |inner| !inner.has_ended));
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;

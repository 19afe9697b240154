//! Events: from where they are told to streams, webhooks, the log and the state directory.
//!
//! Most events are what two views differ by ([`redfish::events::between`]): whoever puts a view in
//! place puts these here first. What no view shows is told by [`Events::tell`].
//!
//! Invariants
//! - To tell an event waits for no drive, no client and no webhook.
//! - Before a change is answered, what it did can be read here.
//! - Logins fill the ring no faster than [`LOGINS`] a minute allow.

pub mod client;
pub mod kept;
pub mod ring;
pub mod webhooks;

use crate::api::{Array, Error, Shown, View};
use crate::lock::lock;
use crate::snapshot::{now, random_uuid};
use crate::state::State;
use hyper::body::Bytes;
use kept::Found;
use redfish::change::EventsChange;
use redfish::error::{Base, Refusal};
use redfish::events::filter::{Subject, Wanted};
use redfish::events::{Event, STREAMS_MOST, Subscription, between};
use redfish::messages::{self as say, Notice};
use redfish::service::uri;
use ring::{Begin, Ring};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};
use webhooks::{File, Webhooks};

/// How many events of logins are told a minute.
const LOGINS: u32 = 120;

/// How many reports of metrics a stream may lag behind.
const REPORTS: usize = 16;

/// How long the end waits for events to be kept.
const PATIENCE: Duration = Duration::from_secs(2);

/// A report of metrics.
#[derive(Clone, Debug)]
pub struct Report {
    /// The URI of its definition.
    pub definition: Arc<str>,
    /// It as JSON, as a part of a stream: all streams share it.
    pub part: Bytes,
}

/// A part of a stream. JSON has no ends of lines of its own.
pub fn part(id: Option<u64>, data: &str) -> Bytes {
    let mut text = String::with_capacity(data.len() + 40);
    if let Some(id) = id {
        text.push_str(&format!("id: {id}\n"));
    }
    text.push_str("data: ");
    text.push_str(data);
    text.push_str("\n\n");
    text.into()
}

/// What is kept in a state directory, as it was read.
pub struct Kept {
    found: Found,
    subscriptions: Result<File, Error>,
}

/// A stream that is open.
struct Open {
    subscription: Subscription,
    /// True once somebody ends it.
    ended: watch::Sender<bool>,
}

/// How many events of logins were told in this minute, and how many were not.
#[derive(Default)]
struct Logins {
    since: Option<Instant>,
    told: u32,
    omitted: u64,
}

/// All of it. Clones are the same.
#[derive(Clone)]
pub struct Events {
    ring: Arc<Ring>,
    webhooks: Arc<Webhooks>,
    streams: Arc<Mutex<BTreeMap<String, Open>>>,
    reports: broadcast::Sender<Report>,
    logins: Arc<Mutex<Logins>>,
    leaving: Arc<Mutex<Leaving>>,
    is_kept: bool,
}

/// Arrays that are being stopped or deleted.
#[derive(Default)]
struct Leaving {
    /// By UUID; once for each who stops it.
    arrays: Vec<String>,
    /// Those of them that the view lacks already, as they were.
    last: Vec<Array>,
}

impl Leaving {
    fn between(&mut self, before: &View, after: &View) -> Vec<Event> {
        if self.arrays.is_empty() && self.last.is_empty() {
            return between(before, after);
        }
        let has = |view: &View, uuid: &str| view.status.arrays.iter().any(|own| own.uuid == uuid);
        let mut before = before.clone();
        for array in core::mem::take(&mut self.last) {
            if !has(&before, &array.uuid) {
                before.status.arrays.push(array);
            }
        }
        let mut after = after.clone();
        for array in &before.status.arrays {
            if self.arrays.contains(&array.uuid) && !has(&after, &array.uuid) {
                self.last.push(array.clone());
                after.status.arrays.push(array.clone());
            }
        }
        between(&before, &after)
    }
}

/// An array is being stopped or deleted, until this is dropped.
pub struct Leaves {
    events: Events,
    array: String,
}

impl Drop for Leaves {
    fn drop(&mut self) {
        let mut leaving = lock(&self.events.leaving);
        if let Some(at) = leaving.arrays.iter().position(|array| *array == self.array) {
            leaving.arrays.swap_remove(at);
        }
    }
}

/// A stream's place, until it is dropped.
pub struct Stream {
    id: String,
    events: Events,
    /// True once somebody ends it.
    pub ended: watch::Receiver<bool>,
}

impl Events {
    /// Without a state directory: identifiers grow with the clock, over restarts, too.
    pub fn in_memory() -> Self {
        let last = now().saturating_mul(1 << 20);
        let begin = Begin { events: Vec::new(), last, gone: last };
        Self::of(begin, None, Ok(File::default()), false)
    }

    /// Reads what a state directory keeps, and reserves identifiers. Waits for it.
    ///
    /// # Errors
    /// The file of events can't be read or written.
    pub fn read(state: &Arc<State>) -> Result<Kept, Error> {
        let found = kept::read(state);
        let dir = state.dir().display();
        let found = found.map_err(|error| Error::new(&say::EVENTS_NOT_READ, &[&dir, &error]))?;
        Ok(Kept { found, subscriptions: webhooks::read(state) })
    }

    /// Those of a state directory, which go on where they ended.
    ///
    /// # Errors
    /// There is no thread to keep them.
    pub fn go_on(state: &Arc<State>, kept: Kept) -> Result<Self, Error> {
        let Kept { found, subscriptions } = kept;
        let (begin, writer) = found.split();
        let events = Self::of(begin, Some(state.clone()), subscriptions, true);
        let dir = state.dir().display();
        let started = kept::go_on(&events.ring, writer);
        started.map_err(|error| Error::new(&say::EVENTS_NOT_READ, &[&dir, &error]))?;
        Ok(events)
    }

    fn of(
        begin: Begin,
        state: Option<Arc<State>>,
        subscriptions: Result<File, Error>,
        is_kept: bool,
    ) -> Self {
        let ring = Arc::new(Ring::new(begin));
        let webhooks = Arc::new(Webhooks::new(ring.clone(), state, subscriptions));
        let (streams, logins, leaving) = Default::default();
        let reports = broadcast::Sender::new(REPORTS);
        Self { ring, webhooks, streams, reports, logins, leaving, is_kept }
    }

    /// Begins to deliver to webhooks.
    pub fn start(&self) {
        self.webhooks.start();
    }

    /// Why subscriptions could not be read, if they could not.
    pub fn problem(&self) -> Option<&Error> {
        self.webhooks.problem()
    }

    /// The events.
    pub const fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// One view takes the place of another: what they differ by is told. What becomes of an array
    /// that is leaving is told once it has left.
    pub fn follow(&self, before: &View, after: &View) {
        let told = lock(&self.leaving).between(before, after);
        self.ring.put(told, after.server.now);
    }

    /// An array is being stopped or deleted: until this is dropped a view may lack it, and a later
    /// one have it again.
    pub fn leaving(&self, array: &str) -> Leaves {
        lock(&self.leaving).arrays.push(array.to_owned());
        Leaves { events: self.clone(), array: array.to_owned() }
    }

    /// Something came to be that no view shows. Its origin is the URI of what it is about.
    pub fn tell(&self, notice: &Notice, args: &[&dyn Display], origin: &str) {
        self.ring.put(vec![Event::new(notice, args, origin)], now());
    }

    /// Somebody logged in, or was not let in: which, and from where.
    pub fn login(&self, notice: &Notice, account: &str, from: &str) {
        let mut told = Vec::new();
        {
            let mut logins = lock(&self.logins);
            if logins.since.is_none_or(|since| since.elapsed() >= Duration::from_secs(60)) {
                if logins.omitted > 0 {
                    let args: [&dyn Display; 1] = [&logins.omitted];
                    told.push(Event::new(&say::EVENTS_OMITTED, &args, uri::SESSION_SERVICE));
                }
                *logins = Logins { since: Some(Instant::now()), ..Logins::default() };
            }
            if logins.told < LOGINS {
                logins.told += 1;
                told.push(Event::new(notice, &[&account, &from], uri::SESSION_SERVICE));
            } else {
                logins.omitted = logins.omitted.saturating_add(1);
            }
        }
        self.ring.put(told, now());
    }

    /// Whether anybody wants reports of metrics by this definition's URI now.
    pub fn wants_reports(&self, definition: &str) -> bool {
        let streams = lock(&self.streams);
        streams.values().any(|open| open.subscription.wants.has(Subject::Report(definition)))
    }

    /// A report of metrics, for streams that want it.
    pub fn report(&self, report: &Value, definition: &str) {
        let part = part(None, &report.to_string());
        // Nobody may listen.
        let _ = self.reports.send(Report { definition: definition.into(), part });
    }

    /// Reports from now on.
    pub fn reports(&self) -> broadcast::Receiver<Report> {
        self.reports.subscribe()
    }

    /// A place for a stream; none if there are as many as there can be.
    pub fn open(&self, wants: Wanted) -> Option<Stream> {
        let mut streams = lock(&self.streams);
        if streams.len() >= STREAMS_MOST {
            return None;
        }
        let id = random_uuid().to_string();
        let ended = watch::Sender::new(false);
        let stream = Stream { id: id.clone(), events: self.clone(), ended: ended.subscribe() };
        let context = Some(format!("stream {id}"));
        let subscription = Subscription { id: id.clone(), context, wants, ..Default::default() };
        streams.insert(id, Open { subscription, ended });
        drop(streams);
        Some(stream)
    }

    /// What resources are made of.
    pub fn shown(&self) -> Arc<Shown> {
        let mut subscriptions = self.webhooks.list();
        subscriptions.extend(lock(&self.streams).values().map(|open| open.subscription.clone()));
        let entries = self.ring.entries();
        Arc::new(Shown { entries, is_kept: self.is_kept, subscriptions: Arc::new(subscriptions) })
    }

    /// Carries a change out; the URI of what was made or changed.
    ///
    /// # Errors
    /// Why it was not.
    pub async fn change(&self, change: EventsChange) -> Result<Changed, Refusal> {
        Ok(match change {
            EventsChange::Subscribe(new) => {
                let made = self.webhooks.subscribe(new).await?;
                let full = || Refusal::base(&Base::SUBSCRIPTION_LIMIT, &[]);
                Changed::Made(uri::subscription(&made.ok_or_else(full)?))
            }
            EventsChange::Change { id, change } => {
                self.is_webhook(&id)?;
                self.webhooks.alter(&id, change).await?;
                Changed::Altered(uri::subscription(&id))
            }
            EventsChange::Unsubscribe { id } => {
                let stream = lock(&self.streams).remove(&id);
                match stream {
                    // It may have ended by itself.
                    Some(open) => drop(open.ended.send(true)),
                    None => self.webhooks.end(&id).await?,
                }
                Changed::Quietly
            }
            EventsChange::Resume { id } => {
                self.is_webhook(&id)?;
                self.webhooks.suspend(&id, false).await?;
                Changed::Quietly
            }
            EventsChange::Test { message, text } => {
                self.tell(&say::TEST_EVENT, &[&message, &text], uri::EVENT_SERVICE);
                Changed::Quietly
            }
        })
    }

    /// Refuses what a stream does not have.
    fn is_webhook(&self, id: &str) -> Result<(), Refusal> {
        if lock(&self.streams).contains_key(id) {
            return Err(Refusal::not_allowed());
        }
        match self.webhooks.has(id) {
            true => Ok(()),
            false => Err(Refusal::not_found(&uri::subscription(id))),
        }
    }

    /// The daemon ends: what waits is kept, if that does not take long.
    pub fn close(&self) {
        self.webhooks.stop();
        self.ring.close(PATIENCE);
    }
}

/// What came of a change.
pub enum Changed {
    /// Nothing more is to be said.
    Quietly,
    /// A resource was made.
    Made(String),
    /// A resource was changed.
    Altered(String),
}

impl Stream {
    /// What its subscription is called.
    pub fn context(&self) -> String {
        format!("stream {}", self.id)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        lock(&self.events.streams).remove(&self.id);
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;

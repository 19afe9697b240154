//! Events: from where they are told to streams, webhooks, the log and the state directory.
//!
//! Most events are what two views differ by ([`redfish::events::between`]): whoever puts a view in
//! place puts these here first. What no view shows is told by [`Events::tell`].
//!
//! Invariants
//! - To tell an event waits for no drive, no client and no webhook.
//! - Before a change is answered, what it did can be read here.
//! - Logins fill the ring no faster than [`LOGINS`] and [`REFUSALS`] a minute allow; those that
//!   were refused leave room for those that were not.
//! - Reports of metrics take [`REPORTS_BYTES`] and one more report at most, however slowly streams
//!   are read.

pub mod client;
pub mod kept;
pub mod ring;
pub mod webhooks;

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
use redfish::view::{Array, Error, Shown, View};
use ring::{Begin, Ring};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{broadcast, watch};
use tokio::time::{sleep, timeout};
use webhooks::{File, Webhooks};

/// How many logins are told a minute.
const LOGINS: u32 = 1000;

/// How many logins that were refused are told a minute.
const REFUSALS: u32 = 120;

/// How many locks are remembered that were told.
const LOCKS: usize = 1024;

/// How many reports of metrics a stream may lag behind.
const REPORTS: usize = 8;

/// While streams hold reports of so many bytes, no more are told.
const REPORTS_BYTES: usize = 16 << 20;

/// How many streams somebody may have who is no administrator.
const OWN_STREAMS: usize = 8;

/// How many streams are left for administrators.
const SPARE_STREAMS: usize = 4;

/// How long the end waits for streams and receivers to be told all.
const LAST_WORDS: Duration = Duration::from_secs(1);

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

/// Bytes of a report, until the last stream that has it is done with it.
struct Held {
    bytes: Bytes,
    all: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
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
    /// Whose it is.
    who: String,
    /// True once somebody ends it.
    ended: watch::Sender<bool>,
}

/// How many events of logins were told in this minute, and how many were not.
#[derive(Default)]
struct Logins {
    since: Option<Instant>,
    told: u32,
    refused: u32,
    omitted: u64,
    /// Who has to wait, from where, and until when.
    locks: BTreeMap<(String, String), Instant>,
}

impl Logins {
    /// What a minute that is over did not tell.
    fn omitted(&mut self) -> Option<Event> {
        if self.since.is_some_and(|since| since.elapsed() < Duration::from_secs(60)) {
            return None;
        }
        let omitted = core::mem::take(&mut self.omitted);
        (self.since, self.told, self.refused) = (None, 0, 0);
        let args: [&dyn Display; 1] = [&omitted];
        (omitted > 0).then(|| Event::new(&say::EVENTS_OMITTED, &args, uri::SESSION_SERVICE))
    }

    /// Whether one more is told.
    fn has_room(&mut self, notice: &Notice) -> bool {
        self.since.get_or_insert_with(Instant::now);
        let (told, most) = match notice.name == say::LOGGED_IN.name {
            true => (&mut self.told, LOGINS),
            false => (&mut self.refused, REFUSALS),
        };
        let has_room = *told < most;
        match has_room {
            true => *told += 1,
            false => self.omitted = self.omitted.saturating_add(1),
        }
        has_room
    }
}

/// All of it. Clones are the same.
#[derive(Clone)]
pub struct Events {
    ring: Arc<Ring>,
    webhooks: Arc<Webhooks>,
    streams: Arc<Mutex<BTreeMap<String, Open>>>,
    reports: broadcast::Sender<Report>,
    /// How many bytes of reports streams hold.
    held: Arc<AtomicUsize>,
    logins: Arc<Mutex<Logins>>,
    leaving: Arc<Mutex<Leaving>>,
    is_kept: bool,
    /// Why what should be kept is not.
    problem: Option<Arc<str>>,
    /// True once nothing more is told.
    over: Arc<watch::Sender<bool>>,
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
    /// True once nothing more is told.
    pub over: watch::Receiver<bool>,
}

impl Events {
    /// Nothing is kept; why, if it should be.
    pub fn in_memory(problem: Option<&str>) -> Self {
        let last = ring::first_id();
        let begin = Begin { events: Vec::new(), last, gone: last };
        let own = Self::of(begin, None, Ok(File::default()), false);
        let problem = problem.map(|why| format!("events are kept in memory: {why}").into());
        Self { problem, ..own }
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
        let (streams, logins, leaving, held, problem) = Default::default();
        let (reports, over) = (broadcast::Sender::new(REPORTS), Arc::default());
        Self { ring, webhooks, streams, reports, held, logins, leaving, is_kept, problem, over }
    }

    /// Begins to deliver to webhooks.
    pub fn start(&self) {
        self.webhooks.start();
    }

    /// Why subscriptions could not be read, if they could not.
    pub fn problem(&self) -> Option<&Error> {
        self.webhooks.problem()
    }

    /// Why events are not kept that should be.
    pub fn unkept(&self) -> Option<String> {
        self.problem.as_deref().map(str::to_owned).or_else(|| self.ring.problem())
    }

    /// The events.
    pub const fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// One view takes the place of another: what they differ by is told. What becomes of an array
    /// that is leaving is told once it has left.
    pub fn follow(&self, before: &View, after: &View) {
        let mut told = lock(&self.leaving).between(before, after);
        told.extend(lock(&self.logins).omitted());
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

    /// Alerts are told, at a moment.
    pub fn tell_all(&self, told: Vec<Event>, now: u64) {
        self.ring.put(told, now);
    }

    /// Who is told by mail.
    pub fn recipients(&self) -> Vec<Subscription> {
        let mut all = self.webhooks.list();
        all.retain(Subscription::is_mail);
        all
    }

    /// Sends each receiver this event, and tells what came of it.
    pub async fn probe(&self, event: &Event) -> Vec<(String, Result<(), String>)> {
        self.webhooks.probe(event).await
    }

    /// Somebody logged in, or was not let in: which, and from where.
    pub fn login(&self, notice: &Notice, account: &str, from: &str) {
        let mut logins = lock(&self.logins);
        let mut told = Vec::from_iter(logins.omitted());
        if logins.has_room(notice) {
            told.push(Event::new(notice, &[&account, &from], uri::SESSION_SERVICE));
        }
        self.ring.put(told, now());
    }

    /// Somebody may not try to log in for some seconds. Told once, however many refusals are told:
    /// so many locks there are at most.
    pub fn locked(&self, account: &str, from: &str, seconds: u64) {
        let mut logins = lock(&self.logins);
        let begun = Instant::now();
        logins.locks.retain(|_, until| *until > begun);
        let who = (account.to_owned(), from.to_owned());
        if logins.locks.contains_key(&who) || logins.locks.len() >= LOCKS {
            return;
        }
        logins.locks.insert(who, begun + Duration::from_secs(seconds.min(86_400)));
        let told = Event::new(&say::LOGINS_WAIT, &[&account, &from], uri::SESSION_SERVICE);
        self.ring.put(vec![told], now());
    }

    /// Whether anybody wants reports of metrics by this definition's URI now.
    pub fn wants_reports(&self, definition: &str) -> bool {
        let streams = lock(&self.streams);
        streams.values().any(|open| open.subscription.wants.has(Subject::Report(definition)))
    }

    /// A report of metrics, for streams that want it. It is lost while they hold too many.
    pub fn report(&self, report: &Value, definition: &str) {
        if self.held.load(Ordering::Relaxed) >= REPORTS_BYTES {
            return;
        }
        let bytes = part(None, &report.to_string());
        self.held.fetch_add(bytes.len(), Ordering::Relaxed);
        let part = Bytes::from_owner(Held { bytes, all: self.held.clone() });
        // Nobody may listen.
        let _ = self.reports.send(Report { definition: definition.into(), part });
    }

    /// Reports from now on.
    pub fn reports(&self) -> broadcast::Receiver<Report> {
        self.reports.subscribe()
    }

    /// A place for somebody's stream; none if there are as many as there can be.
    pub fn open(&self, wants: Wanted, who: &str, is_administrator: bool) -> Option<Stream> {
        let mut streams = lock(&self.streams);
        let own = streams.values().filter(|open| open.who == who).count();
        let is_full = match is_administrator {
            true => streams.len() >= STREAMS_MOST,
            false => own >= OWN_STREAMS || streams.len() >= STREAMS_MOST - SPARE_STREAMS,
        };
        if is_full {
            return None;
        }
        let id = random_uuid().to_string();
        let ended = watch::Sender::new(false);
        let over = self.over.subscribe();
        let stream =
            Stream { id: id.clone(), events: self.clone(), ended: ended.subscribe(), over };
        let context = Some(format!("stream {id}"));
        let subscription = Subscription { id: id.clone(), context, wants, ..Default::default() };
        streams.insert(id, Open { subscription, who: who.to_owned(), ended });
        drop(streams);
        Some(stream)
    }

    /// What resources are made of.
    pub fn shown(&self) -> Arc<Shown> {
        let mut subscriptions = self.webhooks.list();
        subscriptions.extend(lock(&self.streams).values().map(|open| open.subscription.clone()));
        let entries = self.ring.entries();
        let (is_kept, subscriptions) = (self.is_kept, Arc::new(subscriptions));
        Arc::new(Shown { entries, is_kept, subscriptions, ..Shown::default() })
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

    /// The daemon ends: streams and receivers are told what is left, if that does not take long.
    pub async fn finish(&self) {
        self.over.send_replace(true);
        let told = async {
            while !lock(&self.streams).is_empty() || !self.webhooks.is_idle() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = timeout(LAST_WORDS, told).await;
    }

    /// The daemon ends: what waits is kept, if that does not take long.
    pub async fn close(&self) {
        self.webhooks.close().await;
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

//! Streams of events (DSP0266, "Server-sent events"): a client's, from its request to its end.
//!
//! A stream ends when its client goes or takes what it is told too slowly, when its subscription is
//! deleted, when its session ends or its account may no longer do what it could, and when the
//! daemon ends. A client that comes back with `Last-Event-ID` is told what it missed.
//!
//! Invariants
//! - What a client has not taken yet is the ring's, and a few parts at most beside it: a slow
//!   client costs nobody memory or time.
//! - Who asks is looked at again each [`LOOK`].

use crate::caller::Caller;
use crate::events::ring::{Batch, Place};
use crate::events::{Report, Stream, part};
use crate::manager::Manager;
use crate::peer::Peer;
use crate::reply::{Body, Parts, Told};
use crate::snapshot::now;
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use redfish::error::{Base, Refusal};
use redfish::events::filter::{Subject, Wanted, of_query};
use redfish::events::{exceeded, payload};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// The type of a stream (HTML Standard, "Server-sent events").
const TYPE: &str = "text/event-stream";

/// What a client that comes back has had last.
const LAST: &str = "last-event-id";

/// How often a comment is sent where there is nothing to tell.
const QUIET: Duration = Duration::from_secs(15);

/// How often it is looked whether a stream has to end.
const LOOK: Duration = Duration::from_secs(1);

/// How many events are looked at, at one time.
const TOGETHER: usize = 16;

/// How many parts wait for the client.
const PARTS: usize = 2;

/// How many seconds a client waits that found no place.
const AGAIN: u64 = 10;

/// The client of a stream.
#[derive(Clone)]
struct Client {
    peer: Peer,
    caller: Caller,
    /// How its account was when the stream began.
    account: Option<crate::accounts::Mark>,
}

impl Client {
    fn new(manager: &Manager, peer: Peer, caller: Caller) -> Self {
        let name = caller.account.as_deref();
        let account = name.and_then(|name| manager.accounts().mark(name));
        Self { peer, caller, account }
    }

    /// Whether it may still be told what it is told.
    fn may_stay(&self, manager: &Manager) -> bool {
        let Some(name) = self.caller.account.as_deref() else {
            return Caller::of(&self.peer, &manager.local()).role == self.caller.role;
        };
        let is_open = |id: &str| manager.accounts().use_session(id);
        self.account.is_some()
            && manager.accounts().mark(name) == self.account
            && self.caller.session.as_deref().is_none_or(is_open)
    }
}

/// Begins a stream.
///
/// # Errors
/// The filter can't be used, or there are as many streams as there can be.
pub fn watch<B>(
    manager: &Arc<Manager>,
    asked: &Request<B>,
    caller: &Caller,
) -> Result<Told, Refusal> {
    let filter = of_query(asked.uri().query().unwrap_or_default())?;
    let last = last(asked.headers())?;
    if *asked.method() == hyper::Method::HEAD {
        let (_, none) = mpsc::channel(1);
        return Ok(begun(none));
    }
    let peer = asked.extensions().get::<Peer>().ok_or_else(Refusal::internal)?;
    let client = Client::new(manager, peer.clone(), caller.clone());
    let wants = Wanted { filter, ..Wanted::default() };
    let full = || Refusal::no_room(AGAIN);
    let stream = manager.events().open(wants.clone()).ok_or_else(full)?;
    let ring = manager.events().ring();
    let (place, has_missed) = last.map_or((ring.end(), false), |id| ring.place_after(id));
    let (parts, told) = mpsc::channel(PARTS);
    let reports = manager.events().reports();
    let pump = Pump { manager: manager.clone(), client, stream, wants, parts, place };
    tokio::spawn(pump.run(has_missed, reports));
    // Its subscription is there for who reads next.
    manager.refresh();
    Ok(begun(told))
}

fn begun(parts: mpsc::Receiver<Bytes>) -> Told {
    let body = Body::Stream(TYPE, Parts::new(parts));
    Told { status: StatusCode::OK, body, ..Told::nothing() }
}

/// The event that a client has had last, if it says so.
fn last(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get(LAST) else { return Ok(None) };
    let text = value.to_str().map(str::trim).unwrap_or("-");
    if text.is_empty() {
        return Ok(None);
    }
    let id = text.parse().map_err(|_| Refusal::base(&Base::HEADER_INVALID, &["Last-Event-ID"]))?;
    Ok(Some(id))
}

/// Why a stream ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ended;

/// What tells a client of events.
struct Pump {
    manager: Arc<Manager>,
    client: Client,
    stream: Stream,
    wants: Wanted,
    parts: mpsc::Sender<Bytes>,
    place: Place,
}

impl Pump {
    async fn run(mut self, has_missed: bool, reports: broadcast::Receiver<Report>) {
        // Its end is all that there is to tell.
        let _ = self.pump(has_missed, reports).await;
        let manager = self.manager.clone();
        drop(self);
        manager.refresh();
    }

    async fn pump(
        &mut self,
        has_missed: bool,
        mut reports: broadcast::Receiver<Report>,
    ) -> Result<(), Ended> {
        let mut told = self.manager.events().ring().watch();
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // So that the client knows that the stream is open.
        self.send(Bytes::from_static(b":\n\n")).await?;
        let mut spoke = Instant::now();
        if has_missed {
            let context = self.stream.context();
            self.send(part(None, &exceeded(Some(&context), now()).to_string())).await?;
        }
        loop {
            told.borrow_and_update();
            loop {
                let batch = self.manager.events().ring().after(self.place, TOGETHER);
                if batch.missed > 0 {
                    return Err(Ended);
                }
                if batch.events.is_empty() {
                    break;
                }
                if let Some(part) = self.part_of(&batch) {
                    self.send(part).await?;
                    spoke = Instant::now();
                }
                self.place = batch.place;
            }
            tokio::select! {
                changed = told.changed() => changed.map_err(|_| Ended)?,
                report = reports.recv() => {
                    if self.report(report).await? {
                        spoke = Instant::now();
                    }
                }
                _ = self.stream.ended.changed() => return Err(Ended),
                _ = look.tick() => {
                    self.may_go_on()?;
                    if spoke.elapsed() >= QUIET {
                        self.send(Bytes::from_static(b":\n\n")).await?;
                        spoke = Instant::now();
                    }
                }
                () = self.parts.closed() => return Err(Ended),
            }
        }
    }

    /// Tells a report of metrics, if it is wanted. Who has not taken what came before misses it.
    async fn report(&self, report: Result<Report, RecvError>) -> Result<bool, Ended> {
        match report {
            Ok(_) if self.parts.capacity() == 0 => Ok(false),
            Ok(report) if self.wants.has(Subject::Report(&report.definition)) => {
                self.send(report.part).await?;
                Ok(true)
            }
            Ok(_) | Err(RecvError::Lagged(_)) => Ok(false),
            Err(RecvError::Closed) => Err(Ended),
        }
    }

    /// What of a batch the client wants.
    fn part_of(&self, batch: &Batch) -> Option<Bytes> {
        let context = self.stream.context();
        let mut text = Vec::new();
        for event in &batch.events {
            if self.wants.has(Subject::Event(event)) {
                let told = payload(Some(&context), [&**event]).to_string();
                text.extend_from_slice(&part(Some(event.id), &told));
            }
        }
        (!text.is_empty()).then(|| text.into())
    }

    fn may_go_on(&self) -> Result<(), Ended> {
        let is_ended = *self.stream.ended.borrow();
        let has_missed = self.manager.events().ring().after(self.place, 0).missed > 0;
        match is_ended || has_missed || !self.client.may_stay(&self.manager) {
            true => Err(Ended),
            false => Ok(()),
        }
    }

    /// Sends a part once the client has taken those before.
    async fn send(&self, part: Bytes) -> Result<(), Ended> {
        let mut look = interval(LOOK);
        let mut ended = self.stream.ended.clone();
        let place = loop {
            tokio::select! {
                biased;
                place = self.parts.reserve() => break place.map_err(|_| Ended)?,
                _ = ended.changed() => return Err(Ended),
                _ = look.tick() => self.may_go_on()?,
            }
        };
        place.send(part);
        Ok(())
    }
}

#[cfg(test)]
#[path = "watching_tests.rs"]
mod tests;

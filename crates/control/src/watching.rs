//! Streams of events (DSP0266, "Server-sent events"): a client's, from its request to its end.
//!
//! A stream ends when its client goes or takes what it is told too slowly, when its subscription is
//! deleted, when its session ends or its account may no longer do what it could, and when the
//! daemon ends. A client that comes back with `Last-Event-ID` is told what it missed: the first
//! comment of a stream, and each that is sent where there is nothing to tell, has an identifier,
//! too.
//!
//! Invariants
//! - What a client has not taken yet is the ring's, and a few parts at most beside it: a slow
//!   client costs nobody memory or time. A report of metrics is lost to a client that has not taken
//!   what it was sent before.
//! - Of accounts and logins those are told that the client may know ([`Caller::knows`]).
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
use redfish::error::Refusal;
use redfish::events::filter::{Subject, Wanted, of_query};
use redfish::events::{exceeded, payload};
use redfish::routes::Privilege;
use redfish::telemetry;
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

/// How many parts wait for the client: the reports of a second, which come together, and two more.
const PARTS: usize = telemetry::Report::ALL.len() + 2;

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
    let last = last(asked.headers());
    if *asked.method() == hyper::Method::HEAD {
        let (_, none) = mpsc::channel(1);
        return Ok(begun(none));
    }
    let peer = asked.extensions().get::<Peer>().ok_or_else(Refusal::internal)?;
    let client = Client::new(manager, peer.clone(), caller.clone());
    let wants = Wanted { filter, ..Wanted::default() };
    let full = || Refusal::no_room(AGAIN);
    let (events, who) = (manager.events(), caller.key());
    let stream = events.open(wants.clone(), &who, caller.may(Privilege::ConfigureUsers));
    let stream = stream.ok_or_else(full)?;
    let ring = events.ring();
    let (place, has_missed) = last.map_or((ring.end(), false), |id| ring.place_after(id));
    let (parts, told) = mpsc::channel(PARTS);
    let reports = wants.asks_for_reports().then(|| events.reports());
    let pump = Pump { manager: manager.clone(), client, stream, wants, parts, place };
    tokio::spawn(pump.run(has_missed, reports));
    Ok(begun(told))
}

fn begun(parts: mpsc::Receiver<Bytes>) -> Told {
    let body = Body::Stream(TYPE, Parts::new(parts));
    Told { status: StatusCode::OK, body, ..Told::nothing() }
}

/// The event that a client has had last, if it says so. What is no number is of another server:
/// such a client has had nothing of ours.
fn last(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(LAST)?.to_str().map(str::trim).unwrap_or("-");
    (!text.is_empty()).then(|| text.parse().unwrap_or(u64::MAX))
}

/// What says that a stream is open, and which event its client has had last.
fn comment(last: u64) -> Bytes {
    format!(":\nid: {last}\n\n").into()
}

/// The next report, if reports are wanted.
async fn next(reports: &mut Option<broadcast::Receiver<Report>>) -> Result<Report, RecvError> {
    match reports {
        Some(reports) => reports.recv().await,
        None => core::future::pending().await,
    }
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
    async fn run(mut self, has_missed: bool, reports: Option<broadcast::Receiver<Report>>) {
        // Its end is all that there is to tell.
        let _ = self.pump(has_missed, reports).await;
    }

    async fn pump(
        &mut self,
        has_missed: bool,
        mut reports: Option<broadcast::Receiver<Report>>,
    ) -> Result<(), Ended> {
        let mut told = self.manager.events().ring().watch();
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if has_missed {
            self.send(Bytes::from_static(b":\n\n")).await?;
            let notice = exceeded(Some(&self.stream.context()), now());
            self.send(part(Some(self.last()), &notice.to_string())).await?;
        } else {
            self.send(comment(self.last())).await?;
        }
        let mut spoke = Instant::now();
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
            if *self.stream.over.borrow() {
                // Once the client has all, nothing more comes.
                drop(self.parts.reserve_many(PARTS).await);
                return Err(Ended);
            }
            tokio::select! {
                changed = told.changed() => changed.map_err(|_| Ended)?,
                report = next(&mut reports) => {
                    if self.report(report)? {
                        spoke = Instant::now();
                    }
                }
                _ = self.stream.over.changed() => {}
                _ = self.stream.ended.changed() => return Err(Ended),
                _ = look.tick() => {
                    self.may_go_on()?;
                    if spoke.elapsed() >= QUIET {
                        self.send(comment(self.last())).await?;
                        spoke = Instant::now();
                    }
                }
                () = self.parts.closed() => return Err(Ended),
            }
        }
    }

    /// The last event that was looked at.
    fn last(&self) -> u64 {
        self.manager.events().ring().id_before(self.place)
    }

    /// Tells a report of metrics, if it is wanted. Who has not taken what came before misses it.
    fn report(&self, report: Result<Report, RecvError>) -> Result<bool, Ended> {
        match report {
            Ok(report) if self.wants.has(Subject::Report(&report.definition)) => {
                Ok(self.parts.try_send(report.part).is_ok())
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
            if self.wants.has(Subject::Event(event)) && self.client.caller.knows(event) {
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

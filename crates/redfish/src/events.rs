//! Events: what came to be, as clients are told at once, by webhooks and in a log.
//!
//! - [`between`]: what came to be between two views.
//! - [`filter`]: which events a stream or a subscription wants.
//! - [`receiver`]: where webhooks go. [`smtp`]: how mail of alerts goes.
//!
//! Invariants
//! - An event's identifier is greater than that of any event before it, over restarts, too.
//! - Whoever may log in may know of each event what it tells: its origin is a resource that all
//!   may read. Those of accounts and logins ([`Event::account`]) are for who may change accounts,
//!   and for the account itself.

mod between;
pub mod filter;
mod health;
pub mod receiver;
pub mod smtp;

use crate::dates;
use crate::messages::{self, Notice, Severity};
use crate::routes;
use crate::service::uri;
pub use between::{MOST_AT_ONCE, between};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;

/// The type of an event on its way.
pub const TYPE: &str = "#Event.v1_13_0.Event";

/// How many events are kept.
pub const MOST: usize = 4096;

/// How many subscriptions there can be, beside streams.
pub const SUBSCRIPTIONS_MOST: usize = 64;

/// How many streams there can be.
pub const STREAMS_MOST: usize = 32;

/// How often a delivery is tried again before a subscription that is not for ever gives up.
pub const ATTEMPTS: u32 = 8;

/// How long the first of them waits, in seconds; each next waits twice as long.
pub const INTERVAL_SECONDS: u64 = 1;

/// The kind of an event (`EventType`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// Something is otherwise than it was.
    StatusChange,
    /// A resource was changed.
    ResourceUpdated,
    /// A resource came.
    ResourceAdded,
    /// A resource went.
    ResourceRemoved,
    /// Somebody should see to it.
    Alert,
    /// Anything else.
    Other,
}

impl Kind {
    /// Its word in Redfish.
    pub const fn word(self) -> &'static str {
        match self {
            Self::StatusChange => "StatusChange",
            Self::ResourceUpdated => "ResourceUpdated",
            Self::ResourceAdded => "ResourceAdded",
            Self::ResourceRemoved => "ResourceRemoved",
            Self::Alert => "Alert",
            Self::Other => "Other",
        }
    }
}

/// Something that came to be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Which; 0 for one that has not been told yet.
    pub id: u64,
    /// When, in seconds since 1970.
    pub at: u64,
    /// The name of the notice that tells it, without the registry's.
    pub name: String,
    /// The notice's arguments.
    pub args: Vec<String>,
    /// The URI of the resource that it is about.
    pub origin: String,
    /// Its kind.
    pub kind: Kind,
}

impl Event {
    /// It, before it is told.
    pub fn new(notice: &Notice, args: &[&dyn Display], origin: impl Into<String>) -> Self {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        debug_assert_eq!(args.len(), notice.args.len(), "{}", notice.name);
        let (name, kind) = (notice.name.to_owned(), kind(notice));
        Self { id: 0, at: 0, name, args, origin: origin.into(), kind }
    }

    /// The notice that tells it; none if this daemon does not know it any more.
    pub fn notice(&self) -> Option<&'static Notice> {
        messages::notice(&self.name)
    }

    /// Whether it is this one.
    pub fn is(&self, notice: &Notice) -> bool {
        self.name == notice.name
    }

    /// The account that it is about, which not everybody may know; one without a name where this
    /// daemon does not know what the event tells.
    pub fn account(&self) -> Option<&str> {
        let Some(notice) = self.notice() else { return Some("") };
        let first = notice.args.first()?;
        (first.name() == "ACCOUNT").then(|| self.args.first().map_or("", String::as_str))
    }

    /// How grave it is.
    pub fn severity(&self) -> Severity {
        self.notice().map_or(Severity::Ok, |notice| notice.severity)
    }

    /// What happened, one line.
    pub fn text(&self) -> String {
        match self.notice().filter(|notice| notice.args.len() == self.args.len()) {
            Some(notice) => notice.text(&self.args),
            None => format!("{} {}", self.name, self.args.join(" ")),
        }
    }

    /// What to do, one line.
    pub fn advice(&self) -> String {
        self.notice().map_or_else(String::new, |notice| notice.advice(&self.args))
    }

    /// The message's identifier, with the registry's name.
    pub fn message_id(&self) -> String {
        format!("{}{}", messages::PREFIX, self.name)
    }

    /// The type of the resource that it is about, such as `StoragePool`; empty if there is none.
    pub fn resource_type(&self) -> &'static str {
        let schema = routes::find(&self.origin).map_or("", |found| found.route.schema);
        schema.trim_start_matches('#').split('.').next().unwrap_or_default()
    }

    /// It as one of the records of an `Event`.
    fn record(&self, number: usize) -> Value {
        let mut record = json!({
            "@odata.id": format!("/redfish/v1/EventService/SSE#/Events/{number}"),
            "MemberId": number.to_string(),
            "EventId": self.id.to_string(),
            "EventType": self.kind.word(),
            "EventTimestamp": dates::text(self.at),
            "Severity": self.severity().word(),
            "MessageSeverity": self.severity().word(),
            "Message": self.text(),
            "MessageId": self.message_id(),
            "MessageArgs": self.args,
            "Resolution": self.advice(),
            "LogEntry": {"@odata.id": uri::event_entry(self.id)},
        });
        if let Some(record) = record.as_object_mut().filter(|_| !self.origin.is_empty()) {
            record.insert("OriginOfCondition".to_owned(), json!({"@odata.id": self.origin}));
        }
        record
    }
}

/// What an event says of its kind.
fn kind(notice: &Notice) -> Kind {
    let name = notice.name;
    match notice.severity {
        Severity::Warning | Severity::Critical => Kind::Alert,
        Severity::Ok => {
            let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
            if ends(&["Created", "Came", "Found"]) {
                Kind::ResourceAdded
            } else if ends(&["Deleted", "Gone"]) {
                Kind::ResourceRemoved
            } else if ends(&["Resized", "Changed", "Replaced"]) {
                Kind::ResourceUpdated
            } else if name == messages::TEST_EVENT.name {
                Kind::Other
            } else {
                Kind::StatusChange
            }
        }
    }
}

/// Events on their way, in one body (DSP0268, "Event").
pub fn payload<'a>(context: Option<&str>, events: impl IntoIterator<Item = &'a Event>) -> Value {
    let records: Vec<(u64, Value)> =
        events.into_iter().enumerate().map(|(at, event)| (event.id, event.record(at))).collect();
    let id = records.last().map_or(0, |(id, _)| *id);
    let records: Vec<Value> = records.into_iter().map(|(_, record)| record).collect();
    let mut payload = json!({
        "@odata.type": TYPE,
        "Id": id.to_string(),
        "Name": "Events of Palisade",
        "Events": records,
    });
    if let (Some(payload), Some(context)) = (payload.as_object_mut(), context) {
        payload.insert("Context".to_owned(), Value::from(context));
    }
    payload
}

/// What is told before events to who may have missed some (DSP0266, "Event streams").
pub fn exceeded(context: Option<&str>, at: u64) -> Value {
    let mut payload = payload(context, []);
    let record = json!({
        "@odata.id": "/redfish/v1/EventService/SSE#/Events/0",
        "MemberId": "0",
        "EventId": "0",
        "EventTimestamp": dates::text(at),
        "EventType": Kind::Alert.word(),
        "Severity": Severity::Warning.word(),
        "MessageSeverity": Severity::Warning.word(),
        "Message": "Events that came before are no longer kept, and are not told.",
        "MessageId": "Base.1.19.EventBufferExceeded",
        "MessageArgs": [],
        "Resolution": "Read the resources anew.",
        "OriginOfCondition": {"@odata.id": uri::EVENT_SERVICE},
    });
    if let Some(payload) = payload.as_object_mut() {
        payload.insert("Events".to_owned(), json!([record]));
    }
    payload
}

/// What becomes of a subscription whose receiver can't be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Policy {
    /// It is deleted after [`ATTEMPTS`].
    TerminateAfterRetries,
    /// It is suspended after [`ATTEMPTS`], until somebody resumes it.
    SuspendRetries,
    /// It is tried for ever.
    #[default]
    RetryForever,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 3] =
        [Self::TerminateAfterRetries, Self::SuspendRetries, Self::RetryForever];

    /// Its word in Redfish.
    pub const fn word(self) -> &'static str {
        match self {
            Self::TerminateAfterRetries => "TerminateAfterRetries",
            Self::SuspendRetries => "SuspendRetries",
            Self::RetryForever => "RetryForever",
        }
    }
}

/// How deliveries to a receiver are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Why the last delivery failed; none if it did not.
    pub problem: Option<String>,
    /// Nothing is delivered until somebody resumes it.
    pub is_suspended: bool,
    /// Events that were delivered.
    pub delivered: u64,
    /// Events that were never delivered, as more came than are kept.
    pub dropped: u64,
    /// When that was last found since the daemon's start, in seconds since 1970.
    pub dropped_at: Option<u64>,
}

/// Who is told of events: a receiver, or a client's stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Subscription {
    /// Names it.
    pub id: String,
    /// What its client calls it.
    pub context: Option<String>,
    /// The receiver's URI; empty for a stream.
    pub destination: String,
    /// Which events it wants.
    pub wants: filter::Wanted,
    /// What becomes of it if the receiver can't be reached.
    pub policy: Policy,
    /// Whether the receiver's certificate has to be right.
    pub verify: bool,
    /// How deliveries are.
    pub standing: Standing,
}

impl Subscription {
    /// Whether it is a client's stream.
    pub fn is_stream(&self) -> bool {
        self.destination.is_empty()
    }

    /// Whether it is a recipient of mail, who is told of alerts.
    pub fn is_mail(&self) -> bool {
        smtp::recipient(&self.destination).is_some()
    }

    /// The address of a recipient of mail; empty for others.
    pub fn recipient(&self) -> &str {
        smtp::recipient(&self.destination).unwrap_or_default()
    }
}

/// Events and subscriptions, as far as they are at hand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    /// The newest events, in the order of their identifiers.
    pub entries: Arc<VecDeque<Arc<Event>>>,
    /// Whether events are kept over restarts.
    pub is_kept: bool,
    /// Who is told of events.
    pub subscriptions: Arc<Vec<Subscription>>,
    /// How mail is sent.
    pub mail: Arc<smtp::Mail>,
}

impl Shown {
    /// The event of this identifier, if it is at hand.
    pub fn entry(&self, id: u64) -> Option<&Event> {
        let at = self.entries.binary_search_by_key(&id, |event| event.id).ok()?;
        self.entries.get(at).map(|event| &**event)
    }

    /// It without these events, and of receivers' URIs only what is no secret.
    pub fn without(&self, is_hidden: impl Fn(&Event) -> bool) -> Self {
        let entries = self.entries.iter().filter(|event| !is_hidden(event)).cloned().collect();
        let shortened = |one: &Subscription| Subscription {
            destination: receiver::shortened(&one.destination).to_owned(),
            ..one.clone()
        };
        let subscriptions = self.subscriptions.iter().map(shortened).collect();
        Self {
            entries: Arc::new(entries),
            is_kept: self.is_kept,
            subscriptions: Arc::new(subscriptions),
            mail: self.mail.clone(),
        }
    }

    /// The subscription of this identifier.
    pub fn subscription(&self, id: &str) -> Option<&Subscription> {
        self.subscriptions.iter().find(|one| one.id == id)
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;

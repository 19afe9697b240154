//! What a request wants changed of events.
//!
//! - `POST Subscriptions`: `Destination`, `Protocol`, `Context`?, `SubscriptionType`?,
//!   `EventFormatType`?, `RegistryPrefixes`?, `ResourceTypes`?, `MessageIds`?, `Severities`?,
//!   `DeliveryRetryPolicy`?, `VerifyCertificate`?, `HttpHeaders`?. With `Protocol` `SMTP` a
//!   `Destination` of mail, and of the others `Context` and `Severities` only
//! - `PATCH` of a subscription: `Context`?, `DeliveryRetryPolicy`?, `VerifyCertificate`?,
//!   `HttpHeaders`? `DELETE` and `ResumeSubscription`: nothing.
//! - `EventService.SubmitTestEvent`: `MessageId`, `Message`?
//!
//! Invariant: no value of a header is told in a refusal, nor by `Debug`; the audit log has neither
//! these nor the path of a receiver.

use super::node::{Fields, Node};
use super::{last, nothing};
use crate::access::Secret;
use crate::error::Refusal;
use crate::events::filter::{REGISTRY, Wanted};
use crate::events::receiver::{HEADERS_MOST, Header, Receiver, is_header, shortened};
use crate::events::{Policy, smtp};
use crate::messages::Severity;
use crate::routes::{Match, Method, Resource};
use crate::view::View;

/// The longest text that a client may give a subscription, in characters.
const TEXT_CHARACTERS: usize = 1024;

/// The most members of a list.
pub(super) const MOST: usize = 64;

/// A new subscription.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewSubscription {
    /// The receiver's URI.
    pub destination: String,
    /// What the client calls it.
    pub context: Option<String>,
    /// Which events it wants.
    pub wants: Wanted,
    /// What becomes of it if the receiver can't be reached.
    pub policy: Policy,
    /// Whether the receiver's certificate has to be right.
    pub verify: bool,
    /// Headers that are sent with each request.
    pub headers: Vec<Header>,
}

/// What of a subscription is to be otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SubscriptionChange {
    /// What the client calls it.
    pub context: Option<String>,
    /// What becomes of it if the receiver can't be reached.
    pub policy: Option<Policy>,
    /// Whether the receiver's certificate has to be right.
    pub verify: Option<bool>,
    /// Headers that are sent with each request.
    pub headers: Option<Vec<Header>>,
}

/// A change of subscriptions, or an event that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventsChange {
    /// Makes a subscription.
    Subscribe(NewSubscription),
    /// Changes a subscription.
    Change {
        /// The subscription's identifier.
        id: String,
        /// What is to be otherwise.
        change: SubscriptionChange,
    },
    /// Ends a subscription, or a stream.
    Unsubscribe {
        /// The subscription's identifier.
        id: String,
    },
    /// Has deliveries go on.
    Resume {
        /// The subscription's identifier.
        id: String,
    },
    /// Tells an event that says nothing.
    Test {
        /// Which message the client wants to see.
        message: String,
        /// A text.
        text: String,
    },
}

impl EventsChange {
    /// What is to be done, as the audit log has it.
    pub fn words(&self) -> String {
        match self {
            Self::Subscribe(new) => {
                format!("subscribe {} to events", shortened(&new.destination))
            }
            Self::Change { id, change } => {
                let mut parts = Vec::new();
                parts.extend(change.context.is_some().then_some("context"));
                parts.extend(change.policy.map(Policy::word));
                parts.extend(change.verify.map(|verify| match verify {
                    true => "certificates are verified",
                    false => "certificates are not verified",
                }));
                parts.extend(change.headers.is_some().then_some("other headers"));
                format!("change subscription {id}: {}", parts.join(", "))
            }
            Self::Unsubscribe { id } => format!("end subscription {id}"),
            Self::Resume { id } => format!("resume subscription {id}"),
            Self::Test { message, .. } => format!("tell a test event: {message}"),
        }
    }
}

/// What subscriptions have, and keep as it was made.
const READ_ONLY: [&str; 13] = [
    "Id",
    "Name",
    "Destination",
    "Protocol",
    "SubscriptionType",
    "EventFormatType",
    "RegistryPrefixes",
    "ResourceTypes",
    "MessageIds",
    "Severities",
    "Status",
    "Actions",
    "Oem",
];

/// Reads what a request wants; none if its route is about something else.
pub(super) fn parse(
    view: &View,
    found: &Match,
    method: Method,
    fields: &mut Fields<'_>,
) -> Option<Result<EventsChange, Refusal>> {
    let id = || {
        let known = view.events.subscription(last(found)).ok_or_else(|| nothing(found));
        known.map(|known| known.id.clone())
    };
    Some(match (method, found.route.resource) {
        (Method::Post, Resource::Subscriptions) => subscribe(fields),
        (Method::Patch, Resource::Subscription) => id().and_then(|id| change(id, fields)),
        (Method::Delete, Resource::Subscription) => id().map(|id| EventsChange::Unsubscribe { id }),
        (Method::Post, Resource::ResumeSubscription) => id().map(|id| EventsChange::Resume { id }),
        (Method::Post, Resource::SubmitTestEvent) => test(fields),
        _ => return None,
    })
}

fn subscribe(fields: &mut Fields<'_>) -> Result<EventsChange, Refusal> {
    let destination = fields.need("Destination")?;
    let is_mail = fields.need("Protocol")?.word(&["Redfish", "SMTP"])? == "SMTP";
    let text = destination.text()?;
    let (is_right, rule) = match is_mail {
        true => (smtp::recipient(text).is_some(), "Give mailto: and one address."),
        false => {
            let rule = "Give an http or https URI without a name and a password.";
            (Receiver::read(text).is_some(), rule)
        }
    };
    if !is_right {
        return Err(destination.wrong_format().advise(rule));
    }
    for (name, word) in [("SubscriptionType", "RedfishEvent"), ("EventFormatType", "Event")] {
        if let Some(node) = fields.take(name) {
            node.word(&[word])?;
        }
    }
    let mut words = |name: &str, of: &[&str]| -> Result<Vec<String>, Refusal> {
        let Some(node) = fields.take(name) else { return Ok(Vec::new()) };
        let one = |one: Node<'_>| match of {
            [] => text_of(&one),
            of => one.word(of).map(str::to_owned),
        };
        node.list(0, MOST)?.into_iter().map(one).collect()
    };
    let severities = words("Severities", &Severity::ALL.map(Severity::word))?;
    if is_mail {
        let of = severities.iter().filter_map(|word| Severity::of(word)).collect();
        return recipient(text, of, fields);
    }
    let wants = Wanted {
        registries: words("RegistryPrefixes", &[REGISTRY])?,
        types: words("ResourceTypes", &[])?,
        messages: words("MessageIds", &[])?,
        severities: severities.iter().filter_map(|word| Severity::of(word)).collect(),
        ..Wanted::default()
    };
    let SubscriptionChange { context, policy, verify, headers } = changeable(fields)?;
    Ok(EventsChange::Subscribe(NewSubscription {
        destination: text.to_owned(),
        context,
        wants,
        policy: policy.unwrap_or_default(),
        verify: verify.unwrap_or(true),
        headers: headers.unwrap_or_default(),
    }))
}

/// A recipient of mail is told of alerts of these severities. The rest is the server's.
fn recipient(
    uri: &str,
    severities: Vec<Severity>,
    fields: &mut Fields<'_>,
) -> Result<EventsChange, Refusal> {
    Ok(EventsChange::Subscribe(NewSubscription {
        destination: uri.to_owned(),
        context: fields.take("Context").map(|node| text_of(&node)).transpose()?,
        wants: Wanted { severities, ..Wanted::default() },
        policy: Policy::RetryForever,
        verify: true,
        headers: Vec::new(),
    }))
}

fn change(id: String, fields: &mut Fields<'_>) -> Result<EventsChange, Refusal> {
    fields.not_empty()?;
    if let Some(node) = READ_ONLY.iter().find_map(|name| fields.take(name)) {
        return Err(node.read_only());
    }
    Ok(EventsChange::Change { id, change: changeable(fields)? })
}

fn changeable(fields: &mut Fields<'_>) -> Result<SubscriptionChange, Refusal> {
    let words = Policy::ALL.map(Policy::word);
    let policy = |node: Node<'_>| {
        let word = node.word(&words)?;
        let found = Policy::ALL.into_iter().find(|policy| policy.word() == word);
        Ok::<_, Refusal>(found.unwrap_or_default())
    };
    Ok(SubscriptionChange {
        context: fields.take("Context").map(|node| text_of(&node)).transpose()?,
        policy: fields.take("DeliveryRetryPolicy").map(policy).transpose()?,
        verify: fields.take("VerifyCertificate").map(|node| node.truth()).transpose()?,
        headers: fields.take("HttpHeaders").map(|node| headers(&node)).transpose()?,
    })
}

/// A text that is not too long.
fn text_of(node: &Node<'_>) -> Result<String, Refusal> {
    let text = node.text()?;
    match text.chars().count() <= TEXT_CHARACTERS {
        true => Ok(text.to_owned()),
        false => Err(node.wrong_format()),
    }
}

/// Headers: a list of objects, each property of which is one.
fn headers(node: &Node<'_>) -> Result<Vec<Header>, Refusal> {
    let rule = format!("Give at most {HEADERS_MOST} headers that the daemon does not send itself.");
    let wrong = || node.wrong_secret().advise(&rule);
    let mut all = Vec::new();
    for one in node.list(0, HEADERS_MOST).map_err(|_| wrong())? {
        let mut fields = one.fields().map_err(|_| wrong())?;
        for (name, value) in fields.take_all() {
            let value = value.secret().map_err(|_| wrong())?;
            if !is_header(name, value) || all.len() >= HEADERS_MOST {
                return Err(wrong());
            }
            all.push((name.to_owned(), Secret::new(value)));
        }
    }
    Ok(all)
}

fn test(fields: &mut Fields<'_>) -> Result<EventsChange, Refusal> {
    let message = text_of(&fields.need("MessageId")?)?;
    let text = fields.take("Message").map(|node| text_of(&node)).transpose()?;
    Ok(EventsChange::Test { message, text: text.unwrap_or_default() })
}

//! Events: the service, who is told, and the log of the last ones.

use super::{Standing, alerts, collection, link, uri};
use crate::dates;
use crate::events::filter::REGISTRY;
use crate::events::smtp::Mail;
use crate::events::{ATTEMPTS, Event, INTERVAL_SECONDS, MOST, Policy, Subscription};
use crate::messages::Severity;
use crate::oem;
use crate::routes::{Match, ROUTES, Resource};
use crate::view::View;
use core::ops::Range;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The types of resources that events can be about.
fn types() -> Vec<&'static str> {
    let of = ["Manager", "Storage", "StoragePool", "Volume", "Drive", "Job", "Connection"];
    let more = ["AccountService", "SessionService", "Certificate", "EventService"];
    let all: BTreeSet<&str> = of.into_iter().chain(more).collect();
    let known = |name: &&str| {
        ROUTES
            .iter()
            .any(|route| route.schema.trim_start_matches('#').split('.').next() == Some(name))
    };
    all.into_iter().filter(known).collect()
}

/// A resource of events or alerts; none if it is of something else.
pub(super) fn rendered(view: &View, found: &Match) -> Option<Value> {
    use Resource as R;
    let id = found.id(0);
    match found.route.resource {
        R::ServiceConditions => Some(alerts::service_conditions(view)),
        R::EventService => Some(service(view)),
        R::Subscriptions => Some(subscriptions(view)),
        R::Subscription => subscription(view, id),
        R::EventLog => Some(log(view)),
        R::EventEntry => entry(view, id),
        _ => None,
    }
}

fn service(view: &View) -> Value {
    json!({
        "@odata.id": uri::EVENT_SERVICE,
        "@odata.type": "#EventService.v1_12_0.EventService",
        "Id": "EventService",
        "Name": "Events",
        "ServiceEnabled": true,
        "Status": alerts::status(view, Standing::GOOD, uri::EVENT_SERVICE, |of| {
            of.starts_with(uri::SUBSCRIPTIONS)
        }),
        "SMTP": smtp(&view.events.mail),
        "DeliveryRetryAttempts": ATTEMPTS,
        "DeliveryRetryIntervalSeconds": INTERVAL_SECONDS,
        "EventFormatTypes": ["Event", "MetricReport"],
        "RegistryPrefixes": [REGISTRY],
        "ResourceTypes": types(),
        "Severities": Severity::ALL.map(Severity::word),
        "IncludeOriginOfConditionSupported": false,
        "SubordinateResourcesSupported": false,
        "OriginResourcesSupported": false,
        "ServerSentEventUri": uri::EVENT_STREAM,
        "SSEFilterPropertiesSupported": {
            "EventFormatType": true,
            "MessageId": true,
            "MetricReportDefinition": true,
            "OriginResource": true,
            "RegistryPrefix": true,
            "ResourceType": true,
            "SubordinateResources": true,
        },
        "Subscriptions": link(uri::SUBSCRIPTIONS),
        "Actions": {
            "#EventService.SubmitTestEvent": {
                "target": format!("{}/Actions/EventService.SubmitTestEvent", uri::EVENT_SERVICE),
            },
        },
    })
}

/// How mail is sent (DSP0268, "EventService": `SMTP`). A password is never shown.
fn smtp(mail: &Mail) -> Value {
    let own = &mail.plain;
    json!({
        "ServiceEnabled": own.is_enabled,
        "ServerAddress": super::named(&own.server),
        "Port": own.port,
        "FromAddress": super::named(&own.from),
        "ConnectionProtocol": own.protocol.word(),
        "Authentication": own.authentication.word(),
        "Username": super::named(&own.user),
        "Password": null,
        "PasswordSet": mail.has_password,
    })
}

fn subscriptions(view: &View) -> Value {
    let uris = view.events.subscriptions.iter().map(|one| uri::subscription(&one.id));
    collection(uri::SUBSCRIPTIONS, "EventDestinationCollection", "Who is told of events", uris)
}

fn subscription(view: &View, id: &str) -> Option<Value> {
    let own = view.events.subscription(id)?;
    let mut resource = json!({
        "@odata.id": uri::subscription(id),
        "@odata.type": "#EventDestination.v1_17_0.EventDestination",
        "Id": id,
        "Name": match (own.is_stream(), own.is_mail()) {
            (true, _) => "Stream of events",
            (_, true) => "Recipient of mail",
            _ => "Receiver of events",
        },
        "Protocol": if own.is_mail() { "SMTP" } else { "Redfish" },
        "SubscriptionType": if own.is_stream() { "SSE" } else { "RedfishEvent" },
        "EventFormatType": "Event",
        "Context": own.context,
        "Status": standing(own).status(),
        "Oem": oem::wrapped(&oem::EventDestination {
            delivered_events: own.standing.delivered,
            dropped_events: own.standing.dropped,
            problem: own.standing.problem.clone(),
        }),
    });
    if own.is_stream() {
        return Some(resource);
    }
    let severities: Vec<&str> = own.wants.severities.iter().map(|own| own.word()).collect();
    if own.is_mail() {
        super::put(&mut resource, "Destination", json!(own.destination));
        super::put(&mut resource, "Severities", json!(severities));
        return Some(resource);
    }
    let more = json!({
        "Destination": own.destination,
        "RegistryPrefixes": own.wants.registries,
        "ResourceTypes": own.wants.types,
        "MessageIds": own.wants.messages,
        "Severities": severities,
        "DeliveryRetryPolicy": own.policy.word(),
        "VerifyCertificate": own.verify,
        // Headers may hold passwords (DSP0268: empty in responses).
        "HttpHeaders": [],
        "Actions": {
            "#EventDestination.ResumeSubscription": {
                "target": format!(
                    "{}/Actions/EventDestination.ResumeSubscription",
                    uri::subscription(id)
                ),
            },
        },
    });
    if let (Some(resource), Value::Object(more)) = (resource.as_object_mut(), more) {
        resource.extend(more);
    }
    Some(resource)
}

fn standing(own: &Subscription) -> Standing {
    match (own.standing.is_suspended, &own.standing.problem) {
        (true, _) => Standing { state: "Disabled", health: "Critical" },
        (false, Some(_)) if own.policy != Policy::RetryForever => Standing::enabled("Critical"),
        (false, Some(_)) => Standing::enabled("Warning"),
        (false, None) if own.standing.dropped > 0 => Standing::enabled("Warning"),
        (false, None) => Standing::GOOD,
    }
}

fn log(view: &View) -> Value {
    json!({
        "@odata.id": uri::EVENT_LOG,
        "@odata.type": "#LogService.v1_9_0.LogService",
        "Id": "Events",
        "Name": "Events",
        "ServiceEnabled": true,
        "DateTime": dates::text(view.server.now),
        "DateTimeLocalOffset": "+00:00",
        "LogEntryType": "Event",
        "LogPurposes": ["Operations"],
        "MaxNumberOfRecords": MOST,
        "OverWritePolicy": "WrapsWhenFull",
        "Persistency": view.events.is_kept,
        "Status": super::logs::standing(view).status(),
        "Entries": link(uri::EVENT_ENTRIES),
    })
}

pub(super) fn entries(view: &View, members: &Range<usize>) -> Value {
    let lines = view.events.entries.iter();
    super::log_entries(uri::EVENT_ENTRIES, "Events", lines, members, |event| line(view, event))
}

fn entry(view: &View, id: &str) -> Option<Value> {
    let number: u64 = id.parse().ok().filter(|number: &u64| number.to_string() == id)?;
    Some(line(view, view.events.entry(number)?))
}

fn line(view: &View, event: &Event) -> Value {
    let mut resource = json!({
        "@odata.id": uri::event_entry(event.id),
        "@odata.type": "#LogEntry.v1_21_0.LogEntry",
        "Id": event.id.to_string(),
        "Name": format!("Event {}", event.id),
        "EntryType": "Event",
        "EventId": event.id.to_string(),
        "EventTimestamp": dates::text(event.at),
        "Created": dates::text(event.at),
        "Severity": event.severity().word(),
        "Message": event.text(),
        "MessageId": event.message_id(),
        "MessageArgs": event.args,
        "OriginatorType": "Internal",
        "Persistency": view.events.is_kept,
    });
    super::put_named(&mut resource, "Resolution", &event.advice());
    // What has gone since can't be linked to.
    let is_there = crate::routes::find(&event.origin)
        .is_some_and(|found| super::rendered(view, &found).is_some());
    if is_there {
        super::put(
            &mut resource,
            "Links",
            json!({"OriginOfCondition": link(event.origin.clone())}),
        );
    }
    resource
}

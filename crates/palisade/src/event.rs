//! `palisade event`: what happened, and what happens.

use crate::client::Client;
use crate::fetch;
use crate::output::{Output, Problem, json, padded, printable, say, severity, table};
use crate::sse::Stream;
use clap::{Subcommand, ValueEnum};
use redfish::dates;
use redfish::service::uri;
use redfish::view::Answer;
use serde::Serialize;
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};

/// What can be done with events.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List events, the newest last
    List {
        /// Only those of this severity; may be repeated
        #[arg(long, value_enum)]
        severity: Vec<Severity>,
        /// Only those since then: 90s, 15m, 2h, 7d ago, or a moment like 2026-11-24T09:30:00Z
        #[arg(long, value_name = "WHEN", value_parser = since)]
        since: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Print events as they happen, a line each, until interrupted
    Watch {
        /// Only those that an expression of Redfish's is true for, such as "Severity eq 'Critical'"
        #[arg(long, value_name = "EXPR")]
        filter: Option<String>,
        #[command(flatten)]
        output: Output,
    },
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Something to see to.
    Warning,
    /// Data is in danger, or can't be reached.
    Critical,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Event {
    /// Names it; never used again.
    pub id: String,
    /// When.
    pub time: String,
    /// How bad it is.
    pub severity: Severity,
    /// The message of the registry.
    pub message_id: String,
    /// What happened, in words.
    pub message: String,
    /// What it happened to: a URI.
    pub origin: Option<String>,
    /// What to do about it.
    pub resolution: Option<String>,
}

/// Events.
#[derive(Debug, Serialize)]
struct Events {
    events: Vec<Event>,
}

/// Reads a moment, in seconds since 1970.
fn since(text: &str) -> Result<u64, String> {
    let wrong = || "use 90s, 15m, 2h, 7d, or a moment like 2026-11-24T09:30:00Z".to_owned();
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let ago = units.iter().find_map(|(unit, seconds)| {
        text.strip_suffix(*unit)?.parse::<u64>().ok()?.checked_mul(*seconds)
    });
    if let Some(ago) = ago {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        return Ok(now.saturating_sub(ago));
    }
    let day = || dates::seconds(&format!("{text}T00:00:00Z"));
    dates::seconds(text).or_else(day).ok_or_else(wrong)
}

/// An event, of a line of the log or of a record of the stream.
pub fn read(record: &Value) -> Option<Event> {
    let text = |at: &str| record.pointer(at).and_then(Value::as_str).map(str::to_owned);
    let severity = match text("/MessageSeverity").or_else(|| text("/Severity"))?.as_str() {
        "OK" => Severity::Ok,
        "Warning" => Severity::Warning,
        _ => Severity::Critical,
    };
    let origin = text("/OriginOfCondition/@odata.id");
    Some(Event {
        id: text("/EventId").or_else(|| text("/Id"))?,
        time: text("/EventTimestamp").or_else(|| text("/Created"))?,
        severity,
        message_id: text("/MessageId").unwrap_or_default(),
        message: text("/Message")?,
        origin: origin.or_else(|| text("/Links/OriginOfCondition/@odata.id")),
        resolution: text("/Resolution"),
    })
}

/// The events of a line of the stream.
pub fn records(told: &Value) -> impl Iterator<Item = Event> {
    told.get("Events").and_then(Value::as_array).into_iter().flatten().filter_map(read)
}

/// Carries a command out.
pub async fn run(command: &Command, client: &Client) -> Result<(), Problem> {
    match command {
        Command::List { severity, since, output } => {
            let mut events = list(client).await?;
            let is_of = |event: &Event| severity.is_empty() || severity.contains(&event.severity);
            let is_late = |event: &Event| {
                let at = dates::seconds(&event.time);
                since.is_none_or(|since| at.is_none_or(|at| at >= since))
            };
            events.retain(|event| is_of(event) && is_late(event));
            output.print(&Answer::new(Events { events }), |all| text(&all.events));
            Ok(())
        }
        Command::Watch { filter, output } => {
            let watched = watch(client, filter.as_deref(), *output);
            tokio::select! {
                ended = watched => ended,
                _ = tokio::signal::ctrl_c() => Ok(()),
            }
        }
    }
}

/// All events that are kept, in order.
async fn list(client: &Client) -> Result<Vec<Event>, Problem> {
    let lines = fetch::linked(client, &format!("{}?$expand=.", uri::EVENT_ENTRIES)).await?;
    let mut events: Vec<Event> = lines.iter().filter_map(read).collect();
    // Those that came between two pages have moved others to the next.
    let number = |event: &Event| event.id.parse::<u64>().unwrap_or(u64::MAX);
    events.sort_by(|a, b| (number(a), &a.id).cmp(&(number(b), &b.id)));
    events.dedup_by(|a, b| a.id == b.id);
    Ok(events)
}

async fn watch(client: &Client, filter: Option<&str>, output: Output) -> Result<(), Problem> {
    let mut stream = Stream::open(client, filter).await?;
    loop {
        let told = stream.next().await?;
        for event in records(&told) {
            let is_read = match output.json {
                true => say(&json(&serde_json::to_string(&Answer::new(event)).unwrap_or_default())),
                false => say(&line(&event)),
            };
            if !is_read {
                return Ok(());
            }
        }
    }
}

/// An event as a line.
pub fn line(event: &Event) -> String {
    let Event { time, message, .. } = event;
    let word = padded(&severity(event.severity), 8);
    format!("{}  {word}  {}", printable(time), printable(message))
}

/// A table of events.
fn text(events: &[Event]) -> String {
    if events.is_empty() {
        return "no events".to_owned();
    }
    let row = |event: &Event| {
        vec![
            printable(&event.id),
            printable(&event.time),
            severity(event.severity),
            printable(&event.message),
        ]
    };
    let rows: Vec<_> = events.iter().map(row).collect();
    table(&["ID", "TIME", "SEVERITY", "WHAT"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn moments_are_read_in_every_form() {
        assert_eq!(since("1970-01-02"), Ok(86_400));
        assert_eq!(since("1970-01-01T00:01:00Z"), Ok(60));
        let now = since("0s").expect("a moment");
        let ago = [("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604_800)];
        for (text, seconds) in ago {
            let then = since(text).expect("a moment");
            assert!((now - seconds..=now - seconds + 60).contains(&then), "{text}: {then} {now}");
        }
        for text in ["", "s", "1", "1w", "-1s", "99999999999999999999d", "tomorrow"] {
            assert!(since(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lines_of_the_log_and_records_of_the_stream_are_read_alike() {
        let origin = json!({ "@odata.id": "/a" });
        let line = json!({
            "Id": "7", "Created": "2026-11-24T09:30:00Z", "Severity": "Critical",
            "MessageId": "Palisade.1.0.ArrayFailed", "Message": "array a has failed",
            "Resolution": "see to it", "Links": { "OriginOfCondition": origin.clone() },
        });
        let record = json!({ "Events": [{
            "EventId": "7", "EventTimestamp": "2026-11-24T09:30:00Z",
            "MessageSeverity": "Critical", "MessageId": "Palisade.1.0.ArrayFailed",
            "Message": "array a has failed", "Resolution": "see to it",
            "OriginOfCondition": origin,
        }, {}]});
        let event = read(&line).expect("an event");
        assert_eq!(records(&record).collect::<Vec<_>>(), core::slice::from_ref(&event));
        assert_eq!((event.severity, event.origin.as_deref()), (Severity::Critical, Some("/a")));
        assert_eq!(super::line(&event), "2026-11-24T09:30:00Z  critical  array a has failed");
        let told = text(&[event]);
        assert!(
            told.ends_with("7   2026-11-24T09:30:00Z  critical  array a has failed\n"),
            "{told}"
        );
        assert_eq!(records(&json!({})).count(), 0);
        let gap = records(&redfish::events::exceeded(None, 0)).next().expect("an event");
        assert!(super::line(&gap).contains("Events that came before"), "{gap:?}");
        assert_eq!(gap.severity, Severity::Warning);
    }
}

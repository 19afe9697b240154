//! One case of each fuzz target of this crate: whatever a client sends is answered.

use crate::sample;
use redfish::change;
use redfish::error::Refusal;
use redfish::etag::Conditions;
use redfish::events::filter::{Subject, Wanted, of_query};
use redfish::events::receiver::{Receiver, shortened};
use redfish::query::Query;
use redfish::routes::{self, Method, ROUTES};
use redfish::service;
use redfish::view::View;
use std::sync::OnceLock;

/// How many views are made until one has some of everything.
const MOST_VIEWS: u64 = 1000;

/// A view with some of everything, and the URIs of the table with identifiers of that: of the first
/// member of every collection. Made once.
fn world() -> &'static (View, Vec<String>) {
    static WORLD: OnceLock<(View, Vec<String>)> = OnceLock::new();
    WORLD.get_or_init(|| {
        let world = |seed| {
            let view = sample::view(seed);
            let uris: Vec<String> = ROUTES.iter().map(|route| filled(&view, route.uri)).collect();
            (view, uris)
        };
        (0..MOST_VIEWS)
            .map(world)
            .find(|(_, uris): &(View, Vec<String>)| is_whole(uris))
            .expect("one of them has all")
    })
}

fn view() -> &'static View {
    &world().0
}

/// Whether each identifier is there; of no collection are files and task monitors only.
fn is_whole(uris: &[String]) -> bool {
    let of_none = |uri: &str| ["{File}", "{TaskMonitor}"].iter().any(|id| uri.ends_with(id));
    uris.iter().all(|uri| of_none(uri) || !uri.contains('{'))
}

/// What a refusal must be.
fn check(refusal: &Refusal) {
    assert!((400..=599).contains(&refusal.status), "{refusal:?}");
    assert!(!refusal.messages.is_empty(), "{refusal:?}");
    assert!(refusal.body().get("error").is_some(), "{refusal:?}");
}

/// Answers a GET.
fn get(path: &str, query: &Query) {
    let Some(found) = routes::find(path) else { return };
    let Some(resource) = service::render(view(), &found) else { return };
    let other = |uri: &str| service::render(view(), &routes::find(uri)?);
    match query.apply(resource, &other) {
        Ok(value) => assert!(!value.to_string().is_empty()),
        Err(refusal) => check(&refusal),
    }
}

/// A text as a query has it: every byte that is no letter is encoded.
fn encoded(text: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(*byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.iter().map(one).collect()
}

/// The filter of a stream, on events of every kind and reports; and the URI of a receiver.
fn of_events(input: &[u8]) {
    match of_query(&format!("$filter={}", encoded(input))) {
        Err(refusal) => check(&refusal),
        Ok(filter) => {
            let wants = Wanted { filter, ..Wanted::default() };
            let reports = wants.has(Subject::Report("/redfish/v1/TelemetryService"));
            assert!(!reports || wants.asks_for_reports());
            for event in view().events.entries.iter() {
                wants.has(Subject::Event(event));
            }
        }
    }
    let uri = String::from_utf8_lossy(input);
    if let Some(receiver) = Receiver::read(&uri) {
        assert!(receiver.port > 0 && receiver.path.starts_with('/'), "{receiver:?}");
        let short = shortened(&uri);
        assert!(uri.starts_with(short) && short.ends_with(&receiver.authority), "{short}");
    }
}

/// A filter, on collections of members of every kind, and on events.
pub fn filter(input: &[u8]) {
    of_events(input);
    match Query::parse(&format!("$filter={}", encoded(input))) {
        Err(refusal) => check(&refusal),
        Ok(query) => {
            for path in ["Systems/local/Storage/palisade/StoragePools", "Chassis/local/Drives"] {
                get(&format!("{}/{path}", routes::ROOT), &query);
            }
        }
    }
}

/// A request: `METHOD PATH?QUERY`, a line of conditions, and the body. A path that begins with a
/// byte beyond ASCII stands for that of a row of the table, with identifiers that are there.
pub fn request(input: &[u8]) {
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let (line, conditions) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let body = lines.next().unwrap_or_default();
    let (method, target) = match line.split_first() {
        Some((b'G', rest)) => (Method::Get, rest),
        Some((b'P', rest)) => (Method::Post, rest),
        Some((b'A', rest)) => (Method::Patch, rest),
        Some((_, rest)) => (Method::Delete, rest),
        None => return,
    };
    let target = match target.split_first() {
        Some((row @ 0x80.., rest)) => {
            let row = world().1.get(usize::from(row & 0x7f)).map_or("", String::as_str);
            format!("{row}{}", String::from_utf8_lossy(rest))
        }
        _ => String::from_utf8_lossy(target).into_owned(),
    };
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let conditions = String::from_utf8_lossy(conditions);
    for (first, second) in [(Some(&*conditions), None), (None, Some(&*conditions))] {
        if let Err(refusal) = Conditions::read(first, second) {
            check(&refusal);
        }
    }
    match (method, Query::parse(query)) {
        (_, Err(refusal)) => check(&refusal),
        (Method::Get, Ok(query)) => get(path, &query),
        (_, Ok(_)) => {
            let Some(found) = routes::find(path) else { return };
            match change::parse(view(), &found, method, body) {
                Ok(change) => assert!(!change.words(view()).is_empty()),
                Err(refusal) => check(&refusal),
            }
        }
    }
}

fn filled(view: &View, uri: &str) -> String {
    let mut filled = String::new();
    for part in uri.split('/').skip(1) {
        let part = match part {
            "{Action}" => "Scrub".to_owned(),
            id if id.starts_with('{') => member(view, &filled).unwrap_or_else(|| id.to_owned()),
            other => other.to_owned(),
        };
        filled.push('/');
        filled.push_str(&part);
    }
    filled
}

/// The identifier of a collection's first member.
fn member(view: &View, collection: &str) -> Option<String> {
    let resource = service::render(view, &routes::find(collection)?)?;
    let uri = resource.pointer("/Members/0/@odata.id")?.as_str()?;
    Some(uri.rsplit('/').next()?.to_owned())
}

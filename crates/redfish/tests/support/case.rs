//! One case of each fuzz target of this crate: whatever a client sends is answered.

use crate::sample;
use redfish::change;
use redfish::error::Refusal;
use redfish::etag::Conditions;
use redfish::query::Query;
use redfish::routes::{self, Method, ROUTES};
use redfish::service;
use redfish::view::View;
use std::sync::OnceLock;

/// A view with some of everything, made once.
fn view() -> &'static View {
    static VIEW: OnceLock<View> = OnceLock::new();
    VIEW.get_or_init(|| sample::view(7))
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

/// A filter, on collections of members of every kind.
pub fn filter(input: &[u8]) {
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
/// byte beyond ASCII stands for that of a row of the table, and of the view's first identifiers.
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
            let row = ROUTES.get(usize::from(row & 0x7f)).map_or("", |route| route.uri);
            format!("{}{}", filled(row), String::from_utf8_lossy(rest))
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

/// A URI of the table with identifiers that are there.
fn filled(uri: &str) -> String {
    let view = view();
    let array = view.status.arrays.first();
    let part = |part: &str| match part {
        "{StoragePool}" => array.map_or(String::new(), |own| own.uuid.clone()),
        "{Volume}" => array
            .and_then(|own| own.volumes.first())
            .map_or(String::new(), |volume| volume.uuid.clone()),
        "{Drive}" => view.drives.first().map_or(String::new(), |drive| drive.id.clone()),
        "{Job}" => view.jobs.first().map_or(String::new(), |job| job.id.clone()),
        "{Fabric}" => "nvme".to_owned(),
        "{Certificate}" => "1".to_owned(),
        other => other.to_owned(),
    };
    uri.split('/').map(part).collect::<Vec<_>>().join("/")
}

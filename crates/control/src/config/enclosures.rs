//! The tables `[[enclosure]]`: enclosures that the system can't describe by itself.
//!
//! Invariants of what is read without a mistake: names of enclosures differ; a drive is in one slot
//! of all, and a port in one module of all; a slot is 1 to the enclosure's number of slots.

use super::spans::{Found, Value, list, table, text, within, wrong};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use toml::de::DeTable;

/// The most slots of an enclosure, and the most side by side.
pub const SLOTS_MAX: u16 = 256;

const KEYS: [&str; 6] = ["name", "model", "slots", "columns", "modules", "drives"];
const MODULE_KEYS: [&str; 2] = ["name", "ports"];

/// An enclosure.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Enclosure {
    /// Its name; no other one has it.
    pub name: String,
    /// Its model.
    pub model: Option<String>,
    /// How many slots it has, 1 to [`SLOTS_MAX`]. They are numbered from 1. Absent where the
    /// system knows.
    pub slots: Option<u16>,
    /// Slots side by side as one looks at its front, 1 to [`SLOTS_MAX`].
    pub columns: Option<u16>,
    /// Its I/O modules.
    pub modules: Vec<Module>,
    /// Which drive is in which slot: a serial number, or a path.
    pub drives: BTreeMap<u16, String>,
}

/// An I/O module of an enclosure.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Module {
    /// Its name; no other one of the enclosure has it.
    pub name: String,
    /// Its network interfaces, by their names.
    pub ports: Vec<String>,
}

/// What may be there once in all enclosures, and where it was first.
#[derive(Default)]
struct Once {
    names: BTreeSet<String>,
    drives: BTreeMap<String, String>,
    ports: BTreeMap<String, String>,
}

/// Reads all enclosures.
pub(super) fn read(value: &Value<'_>, found: &mut Found) -> Vec<Enclosure> {
    let mut once = Once::default();
    let mut enclosures = Vec::new();
    for value in list("enclosure", value, found) {
        let Some(table) = table("enclosure", value, found) else { continue };
        enclosures.push(enclosure(table, value.span().start, &mut once, found));
    }
    enclosures
}

fn enclosure(table: &DeTable<'_>, at: usize, once: &mut Once, found: &mut Found) -> Enclosure {
    let mut own = Enclosure::default();
    unknown("an enclosure", table, &KEYS, found);
    match table.get("name") {
        None => wrong(found, at, "an enclosure needs a name".to_owned()),
        Some(value) => {
            own.name = text("name", value, found).unwrap_or_default();
            if !own.name.is_empty() && !once.names.insert(own.name.clone()) {
                let what = format!("two enclosures have the name {}", own.name);
                wrong(found, value.span().start, what);
            }
        }
    }
    own.model = table.get("model").and_then(|value| text("model", value, found));
    let mut number =
        |key: &str| table.get(key).and_then(|value| within(key, value, (1, SLOTS_MAX), found));
    (own.slots, own.columns) = (number("slots"), number("columns"));
    if let Some(value) = table.get("modules") {
        for value in list("modules", value, found) {
            own.modules.extend(module(value, &own, once, found));
        }
    }
    if let Some(value) = table.get("drives") {
        own.drives = drives(value, &own, once, found);
    }
    own
}

/// What a table has that nobody knows.
pub(super) fn unknown(what: &str, table: &DeTable<'_>, known: &[&str], found: &mut Found) {
    for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
        let text = format!("{what} has no key {}, only {}", key.get_ref(), known.join(", "));
        wrong(found, key.span().start, text);
    }
}

fn module(
    value: &Value<'_>,
    enclosure: &Enclosure,
    once: &mut Once,
    found: &mut Found,
) -> Option<Module> {
    let table = table("a module", value, found)?;
    unknown("a module", table, &MODULE_KEYS, found);
    let mut own = Module::default();
    match table.get("name") {
        None => wrong(found, value.span().start, "a module needs a name".to_owned()),
        Some(value) => {
            own.name = text("name", value, found).unwrap_or_default();
            let is_own = |other: &Module| other.name == own.name;
            if !own.name.is_empty() && enclosure.modules.iter().any(is_own) {
                let what = format!("two modules of the enclosure have the name {}", own.name);
                wrong(found, value.span().start, what);
            }
        }
    }
    for value in table.get("ports").map_or(&[][..], |value| list("ports", value, found)) {
        let Some(port) = text("a port", value, found) else { continue };
        let place = format!("module {} of {}", own.name, enclosure.name);
        if let Some(other) = once.ports.insert(port.clone(), place) {
            let what = format!("port {port} is in {other} already");
            wrong(found, value.span().start, what);
        }
        own.ports.push(port);
    }
    Some(own)
}

fn drives(
    value: &Value<'_>,
    enclosure: &Enclosure,
    once: &mut Once,
    found: &mut Found,
) -> BTreeMap<u16, String> {
    let mut drives = BTreeMap::new();
    let Some(table) = table("drives", value, found) else { return drives };
    let most = enclosure.slots.unwrap_or(SLOTS_MAX);
    // In the order of the file, so that the second one of two is the one that is wrong.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let at = key.span().start;
        let slot = key.get_ref().parse().ok().filter(|slot| (1..=most).contains(slot));
        let Some(slot) = slot else {
            let what = format!("slot {} is not one of 1 to {most}", key.get_ref());
            wrong(found, at, what);
            continue;
        };
        let Some(drive) = text("a drive", value, found) else { continue };
        let place = format!("slot {slot} of {}", enclosure.name);
        if let Some(other) = once.drives.insert(drive.clone(), place) {
            let what = format!("drive {drive} is in {other} already");
            wrong(found, value.span().start, what);
        }
        if drives.insert(slot, drive).is_some() {
            wrong(found, at, format!("slot {slot} is there twice"));
        }
    }
    drives
}

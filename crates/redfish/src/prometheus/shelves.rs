//! Shelves that tell of themselves: whether they answer, and how their parts are.
//!
//! Invariant: what a silent shelf said last is told on, and that it does not answer. Two parts of
//! one name have one sample, of the worse.

use super::hardware::number;
use super::text::{Text, labels, truth};
use crate::view::{Shelf, View};
use std::collections::BTreeMap;

/// A family of gauges: its name, and what it tells.
type Family = (&'static str, &'static str);

const HEALTH: Family = (
    "palisade_shelf_health",
    "How well a shelf and all of its parts are: 0 well, 1 to be seen to, 2 in danger.",
);
const SLOTS: Family = (
    "palisade_shelf_slot_health",
    "How well the drive in a slot of a shelf is: 0 well, 1 to be seen to, 2 in danger.",
);
const PARTS: Family = (
    "palisade_shelf_part_health",
    "How well a part of a shelf is: 0 well, 1 to be seen to, 2 in danger.",
);

const LINKS: Family = ("palisade_shelf_port_link", "Whether a port of a shelf has a link.");
const READINGS: Family = ("palisade_shelf_part_reading", "What is measured of a part of a shelf.");

pub fn write(text: &mut Text, view: &View) {
    let all = view.surroundings.enclosures.iter();
    let all: Vec<(&str, &Shelf)> =
        all.filter_map(|own| Some((own.id.as_str(), own.shelf.as_ref()?))).collect();
    text.gauge("palisade_shelf_answers", "Whether the management service of a shelf answers.");
    for &(id, shelf) in &all {
        text.put(&labels(&[("shelf", id)]), truth(shelf.answers()));
    }
    let health = all.iter().map(|&(id, own)| (labels(&[("shelf", id)]), number(own.worst())));
    family(text, HEALTH, health, Ord::max);
    let slots = all.iter().flat_map(|&(id, shelf)| {
        let slot = move |own| labels(&[("shelf", id), ("slot", own)]);
        shelf.bays.iter().map(move |bay| (slot(&bay.slot), number(bay.grade())))
    });
    family(text, SLOTS, slots, Ord::max);
    let links = all.iter().flat_map(|&(id, shelf)| {
        shelf.ports.iter().filter_map(move |own| {
            let named = [("shelf", id), ("module", &*own.module), ("port", &*own.name)];
            Some((labels(&named), truth(own.has_link?)))
        })
    });
    family(text, LINKS, links, Ord::min);
    let parts = all.iter().flat_map(|&(id, shelf)| {
        shelf.parts.iter().map(move |own| {
            let named = [("shelf", id), ("part", &*own.name), ("kind", own.kind.word())];
            (labels(&named), number(own.grade()))
        })
    });
    family(text, PARTS, parts, Ord::max);
    let readings = all.iter().flat_map(|&(id, shelf)| {
        shelf.parts.iter().filter_map(move |own| {
            let unit = own.unit.map_or("", |unit| unit.sign());
            let named = [("shelf", id), ("part", &*own.name), ("unit", unit)];
            Some((labels(&named), scaled(own.reading?)))
        })
    });
    family(text, READINGS, readings, |first, _| first);
}

/// A family of which each labels are told once: with what is chosen of two.
fn family<V: core::fmt::Display + Copy>(
    text: &mut Text,
    (name, help): Family,
    all: impl Iterator<Item = (String, V)>,
    choose: fn(V, V) -> V,
) {
    text.gauge(name, help);
    let mut told: BTreeMap<String, V> = BTreeMap::new();
    for (labels, value) in all {
        let own = told.entry(labels).or_insert(value);
        *own = choose(*own, value);
    }
    told.iter().for_each(|(labels, value)| text.put(labels, value));
}

/// A reading in its unit.
#[allow(clippy::cast_precision_loss, reason = "nothing reads as much as 2^53 thousandths")]
fn scaled(thousandths: i64) -> f64 {
    thousandths as f64 / 1e3
}

//! What the daemon knows, as Prometheus reads it: text exposition, version 0.0.4.
//!
//! Purpose: one text of a [`View`] for `GET /metrics`. Names, units and types follow Prometheus'
//! conventions: base units, `_total` for what only grows, `_info` for what never changes, and of a
//! state one sample for each state that could be, of which one is 1.
//!
//! | Labels | Of |
//! |---|---|
//! | `array`, `volume` | names; an array whose name another one has, too, has its UUID behind it |
//! | `slot` | its number in the array; `palisade_drive_info` says which drive that is |
//! | `drive` | the identifier of a drive, which it keeps whatever its path is |
//! | `sensor`, `fan`, `supply`, `port` | identifiers, the same over restarts |
//! | `name` | what a sensor, a fan or a supply calls itself |
//! | `export` | `ARRAY:NUMBER`, as the command line names it |
//! | `host` | the qualified name of a host |
//! | `core` | the number of a data core |
//! | `op` | `read`, `write`, `flush`, `discard` |
//!
//! Invariants
//! - No two samples have one name and the same labels.
//! - What is written is a function of the view and of [`Daemon`] alone, and in a fixed order.

mod arrays;
mod counters;
mod daemon;
mod drives;
mod exports;
mod hardware;
mod shelves;
mod surroundings;
mod text;

pub use daemon::{Daemon, Process};

use crate::view::{Array, View};
use std::collections::BTreeMap;
use text::Text;

/// The type of the text (Prometheus, "Text-based format").
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text; it takes as many bytes as are given here, or a few times as many.
pub fn exposition(view: &View, daemon: &Daemon, bytes: usize) -> String {
    let text = &mut Text::with_room(bytes);
    let names = &Names::of(view);
    daemon::write(text, view, daemon);
    arrays::write(text, view, names);
    drives::write(text, view, names);
    hardware::write(text, view);
    surroundings::write(text, view);
    shelves::write(text, view);
    exports::write(text, view, names);
    counters::write(text, view, names);
    core::mem::take(text).end()
}

/// What labels say of arrays.
struct Names<'v> {
    /// How many arrays have a name.
    arrays: BTreeMap<&'v str, usize>,
}

impl<'v> Names<'v> {
    fn of(view: &'v View) -> Self {
        let mut arrays = BTreeMap::new();
        for array in &view.status.arrays {
            *arrays.entry(&array.name[..]).or_default() += 1;
        }
        Self { arrays }
    }

    /// The label of an array.
    fn array(&self, array: &Array) -> String {
        match self.arrays.get(&array.name[..]) {
            Some(2..) => format!("{} {}", array.name, array.uuid),
            _ => array.name.clone(),
        }
    }
}

#[cfg(test)]
#[path = "prometheus_tests.rs"]
mod tests;

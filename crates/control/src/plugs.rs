//! What is known of drives that were pulled out and plugged in, between looks at the kernel's
//! devices: no I/O is done here, and nobody is asked.
//!
//! Purpose: an array's drive that goes while nobody reads it would go unnoticed. The kernel tells
//! of it at once ([`drives::uevent`]); [`crate::plugging`] then looks which of the devices that
//! arrays have open are there, and settles here what becomes of those that are not.
//!
//! States of an opening of a drive that an array uses, by the number of its device: there → gone,
//! when the kernel has no device of that number any more. The kernel gives the number to no other
//! device while it is open, so an opening that went never comes back: the same drive plugged in
//! again is a new device, which is shown, and used when a person says so. What becomes of a gone
//! one is [`health::departures`]' to say: failed, held, or waited for.
//!
//! A stop of an array with held drives fails as many as redundancy covers, one by one: it flushes
//! each drive, and the engine, which knows of no held ones, takes a drive out that does not. Data
//! is safe: the others hold all of it, the stop is not recorded as clean, and a drive that is
//! failed is filled again. To spare that, the engine would have to gather the flushes that fail,
//! and to leave its record as a crash does where redundancy does not cover them all. But the steps
//! before (the ends of the journal and of the region map) write, too, and fail a held drive by
//! themselves while regions are dirty: all of them would have to know. What would be gained is
//! time after a rare event; what would be risked is a record that calls a drive in sync that missed
//! a write. So it is left.
//!
//! Invariants
//! - Of an array that redundancy does not cover without all drives that are gone none is failed.
//! - The engine says what redundancy covers ([`Coverage`] is what it said), and has the last word
//!   when a drive is to be failed.
//! - An NVMe device whose way led over a network is never failed for having gone, nor is one of
//!   which nobody knows how it was reached.

use crate::lock::lock;
use drives::sysfs::{self, Device, Kind};
use engine::manage::command::{ArrayStatus, SlotHealth, SlotStatus};
use health::departures::{Arrays, Departures, Place, State, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use units::Uuid;

/// Why a drive is out that went.
pub const PULLED: &str = "it was pulled out, or lost its power";

/// An opening of a drive.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Opening {
    /// The path by which it is known.
    pub path: String,
    /// The number of its device.
    pub device: u64,
}

/// Where running arrays use which openings.
pub type InUse = BTreeMap<Opening, Place<Uuid>>;

/// What the kernel said of its devices.
#[derive(Clone, Default, Debug)]
pub struct Kernel {
    /// All devices.
    pub devices: Vec<Device>,
    /// Those of the numbers that were asked for that no device has.
    pub missing: BTreeSet<u64>,
}

/// What the engine said: which arrays keep all data without these slots.
#[derive(Default, Debug)]
pub struct Coverage(BTreeMap<Uuid, (BTreeSet<u16>, bool)>);

impl Coverage {
    /// The engine said of an array whether it can spare the drives of these slots.
    pub fn heard(&mut self, array: Uuid, slots: BTreeSet<u16>, can_spare: bool) {
        self.0.insert(array, (slots, can_spare));
    }
}

/// Arrays as they are now.
struct Now<'a> {
    in_use: &'a InUse,
    coverage: &'a Coverage,
}

impl Arrays<Opening, Uuid> for Now<'_> {
    fn uses(&self, key: &Opening, place: &Place<Uuid>) -> bool {
        self.in_use.get(key) == Some(place)
    }

    fn covers(&self, array: &Uuid, slots: &BTreeSet<u16>) -> bool {
        let heard = self.coverage.0.get(array);
        heard.is_some_and(|(asked, can_spare)| *can_spare && slots.is_subset(asked))
    }
}

/// A drive that is gone and not failed for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absent {
    /// The array that uses it.
    pub array: Uuid,
    /// In which slot.
    pub slot: u16,
    /// Its path.
    pub path: String,
    /// Whether it is waited for, as it went with its path; else requests decide.
    pub is_waited_for: bool,
}

/// A drive that is failed as it went.
struct Pulled {
    path: String,
    /// Whether its array has said that it is out.
    is_out: bool,
}

/// What is remembered from look to look.
#[derive(Default)]
struct Seen {
    devices: Vec<Device>,
    /// Of devices that arrays have open, whether a network is on the way to them, as far as that
    /// was ever seen.
    remote: BTreeMap<Opening, bool>,
    /// Whether the kernel was asked before.
    was_asked: bool,
    departures: Departures<Opening, Uuid>,
    /// Slots whose drives are failed as they went.
    pulled: BTreeMap<(Uuid, u16), Pulled>,
    /// Slots of which was told that their drive is back, and where.
    returned: BTreeMap<(Uuid, u16), String>,
}

/// All of it.
pub struct Plugs {
    /// Drives came or went since the last look at them.
    pub news: Notify,
    start: Instant,
    seen: Mutex<Seen>,
}

impl Default for Plugs {
    fn default() -> Self {
        Self { news: Notify::new(), start: Instant::now(), seen: Mutex::default() }
    }
}

impl Plugs {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    /// The moment, by a clock that only goes forward.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// When what went is to be settled; none while nothing is to be.
    pub fn due(&self) -> Option<Instant> {
        self.seen().departures.due().and_then(|due| self.start.checked_add(due))
    }

    /// Takes what the kernel said while arrays used these openings. Says whether any device came,
    /// went or is another since the last time.
    pub fn saw(&self, in_use: &InUse, kernel: Kernel, at: Duration) -> bool {
        let mut seen = self.seen();
        let Kernel { devices, missing } = kernel;
        seen.remote.retain(|opening, _| in_use.contains_key(opening));
        for (opening, place) in in_use {
            let number = Some(numbers(opening.device));
            let now = devices.iter().chain(&seen.devices).find(|device| device.number == number);
            if let Some(is_remote) = now.and_then(way) {
                // A way that is gone for a moment makes it no local one.
                *seen.remote.entry(opening.clone()).or_default() |= is_remote;
            }
            if missing.contains(&opening.device) {
                // What nobody saw before it went may have been reached by a network.
                let is_remote = seen.remote.get(opening).copied().unwrap_or(true);
                seen.departures.gone(opening.clone(), *place, is_remote, at);
            }
        }
        let has_news = !sysfs::changes(&seen.devices, &devices).is_empty();
        let is_first = !core::mem::replace(&mut seen.was_asked, true);
        seen.devices = devices;
        has_news && !is_first
    }

    /// The devices as last seen.
    pub fn devices(&self) -> Vec<Device> {
        self.seen().devices.clone()
    }

    /// Of which arrays the engine has to be asked whether they can spare which slots, before what
    /// went is settled.
    pub fn to_ask(&self, in_use: &InUse) -> BTreeMap<Uuid, BTreeSet<u16>> {
        let mut seen = self.seen();
        seen.departures.look(&Now { in_use, coverage: &Coverage::default() });
        let mut all: BTreeMap<Uuid, BTreeSet<u16>> = BTreeMap::new();
        for state in [State::Gathered, State::Failing, State::Held, State::Waiting] {
            for (_, place) in seen.departures.in_state(state) {
                all.entry(place.array).or_default().insert(place.slot);
            }
        }
        all
    }

    /// Settles what is due.
    pub fn settle(
        &self,
        at: Duration,
        in_use: &InUse,
        coverage: &Coverage,
    ) -> Vec<Verdict<Opening>> {
        self.seen().departures.settle(at, &Now { in_use, coverage })
    }

    /// The engine could not fail a drive.
    pub fn refused(&self, opening: &Opening) {
        let mut seen = self.seen();
        seen.departures.refused(opening);
        seen.pulled.retain(|_, pulled| pulled.path != opening.path);
    }

    /// The engine is about to fail drives of an array that went.
    pub fn failing(&self, array: Uuid, openings: &[Opening], in_use: &InUse) {
        let mut seen = self.seen();
        for opening in openings {
            if let Some(place) = in_use.get(opening) {
                let pulled = Pulled { path: opening.path.clone(), is_out: false };
                seen.pulled.insert((array, place.slot), pulled);
            }
        }
    }

    /// The slots of these arrays whose drives are out as they were pulled out.
    pub fn pulled(&self, arrays: &[ArrayStatus]) -> BTreeSet<(Uuid, u16)> {
        let mut seen = self.seen();
        seen.pulled.retain(|(array, slot), pulled| {
            let array = arrays.iter().find(|own| own.uuid == *array);
            let slot = array.and_then(|array| array.slots.get(usize::from(*slot)));
            let slot = slot.filter(|slot| slot.path.as_ref() == Some(&pulled.path));
            let is_used = slot.map(|slot| is_used(slot.health));
            let was_out = core::mem::replace(&mut pulled.is_out, is_used == Some(false));
            // Of an array that does not say so yet, too.
            is_used.is_some_and(|is_used| !is_used || !was_out)
        });
        let out = seen.pulled.iter().filter(|(_, pulled)| pulled.is_out);
        out.map(|(slot, _)| *slot).collect()
    }

    /// Drives that are gone and that these arrays use still, after it was settled that they are not
    /// failed for it.
    pub fn absent(&self, arrays: &[ArrayStatus]) -> Vec<Absent> {
        let seen = self.seen();
        let uses = |opening: &Opening, place: &Place<Uuid>| {
            let array = arrays.iter().find(|array| array.uuid == place.array);
            let slot = array.and_then(|array| array.slots.get(usize::from(place.slot)));
            slot.is_some_and(|slot| {
                slot.path.as_ref() == Some(&opening.path) && is_used(slot.health)
            })
        };
        let of = |state, is_waited_for| {
            let own = seen.departures.in_state(state).filter(|(key, place)| uses(key, place));
            own.map(move |(opening, place)| Absent {
                array: place.array,
                slot: place.slot,
                path: opening.path.clone(),
                is_waited_for,
            })
        };
        of(State::Held, false).chain(of(State::Waiting, true)).collect()
    }

    /// Remembers which drives are back, by the slots that they had. Answers with those that were
    /// not told before.
    pub fn returned(&self, now: BTreeMap<(Uuid, u16), String>) -> BTreeMap<(Uuid, u16), String> {
        let mut seen = self.seen();
        let is_new = |(slot, path): &(&(Uuid, u16), &String)| {
            seen.returned.get(slot).is_none_or(|told| told != *path)
        };
        let news = now.iter().filter(is_new).map(|(slot, path)| (*slot, path.clone())).collect();
        seen.returned = now;
        news
    }
}

/// Whether a network is on the way to a device; `None` for an NVMe drive of which the kernel shows
/// no way, as while its paths go.
fn way(device: &Device) -> Option<bool> {
    let is_shown = device.kind != Kind::Nvme || device.transport().is_some();
    is_shown.then(|| device.is_remote())
}

/// Whether the array counts on a drive, or fills it.
pub const fn is_used(health: SlotHealth) -> bool {
    matches!(health, SlotHealth::InSync | SlotHealth::Rebuilding)
}

/// Whether an array counts on what is, or was, in a slot.
pub const fn counts(slot: &SlotStatus) -> bool {
    slot.left_behind || is_used(slot.health)
}

/// Major and minor number.
pub fn numbers(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

#[cfg(test)]
#[path = "plugs_tests.rs"]
pub(crate) mod tests;

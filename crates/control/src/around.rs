//! What is around the drives, in the words of the view.
//!
//! Purpose: [`surroundings`] puts together what the kernel tells of enclosures, sensors, supplies
//! and network ports ([`drives::sysfs`]) and what the configuration says of enclosures
//! ([`Enclosure`]). It asks chips and enclosures: it is for threads that may wait.
//!
//! Invariants
//! - A drive is in one slot. Where configuration and kernel both place it, the configuration's word
//!   holds.
//! - An enclosure of the kernel's that holds none but drives which the configuration places is left
//!   out: it is the one that the configuration describes.
//! - Identifiers are the same after a restart, and no two enclosures have the same.
//! - Shelves that tell of themselves ([`with_shelves`]) come last: what others say of a drive's
//!   place holds.

use crate::config::enclosures::{Enclosure, Module};
use crate::nameplate;
use drives::sysfs::{self, Alarm, Device, Quantity, Sysfs};
use redfish::view::{self, Health};
use std::collections::BTreeSet;
use std::path::Path;

/// A drive of the daemon's.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    /// Its identifier.
    pub id: &'a str,
    /// Its path.
    pub path: &'a str,
    /// Its serial number.
    pub serial: Option<&'a str>,
}

/// What is around these drives.
pub fn surroundings(
    sysfs: &Sysfs,
    described: &[Enclosure],
    drives: &[Placed<'_>],
) -> view::Surroundings {
    let devices = sysfs.devices();
    let around = sysfs.surroundings(&devices);
    let known = Known { sysfs, devices: &devices, drives };
    let is_fan = |sensor: &&sysfs::Sensor| sensor.measures == Quantity::Fan;
    view::Surroundings {
        enclosures: enclosures(&known, described, around.enclosures),
        sensors: around.sensors.iter().filter_map(|one| sensor(one, &around.supplies)).collect(),
        fans: around.sensors.iter().filter(is_fan).map(|one| fan(one, &around.supplies)).collect(),
        supplies: around.supplies.iter().enumerate().map(supply).collect(),
        ports: around.ports.into_iter().map(port).collect(),
    }
}

/// Where a drive is plugged in.
pub fn place(around: &view::Surroundings, drive: &str) -> Option<view::DrivePlace> {
    around.enclosures.iter().find_map(|enclosure| {
        let slot = enclosure.slots.iter().find(|slot| slot.drive.as_deref() == Some(drive));
        // A drive of a shelf may have several namespaces.
        let bays = enclosure.shelf.iter().flat_map(|shelf| &shelf.bays);
        let bay = || bays.into_iter().find(|bay| bay.own.iter().any(|own| own == drive));
        let slot = slot.map(|slot| &slot.slot).or_else(|| bay().map(|bay| &bay.slot))?;
        Some(view::DrivePlace { enclosure: enclosure.id.clone(), slot: slot.clone() })
    })
}

/// The same, with shelves that tell of themselves. A drive that another enclosure has is there.
pub fn with_shelves(
    mut around: view::Surroundings,
    shelves: &[view::Enclosure],
) -> view::Surroundings {
    let all = around.enclosures.iter();
    let mut taken: BTreeSet<String> = all.map(|enclosure| enclosure.id.clone()).collect();
    // The machine's own.
    taken.insert("local".to_owned());
    let slots = around.enclosures.iter().flat_map(|enclosure| &enclosure.slots);
    let mut placed: BTreeSet<String> = slots.filter_map(|slot| slot.drive.clone()).collect();
    for own in shelves {
        let mut own = own.clone();
        own.id = fresh(&mut taken, own.id);
        for bay in own.shelf.iter_mut().flat_map(|shelf| &mut shelf.bays) {
            bay.own.retain(|drive| placed.insert(drive.clone()));
        }
        let bays = own.shelf.iter().flat_map(|shelf| &shelf.bays);
        for (slot, bay) in own.slots.iter_mut().zip(bays) {
            slot.drive = bay.own.first().cloned();
        }
        around.enclosures.push(own);
    }
    around
}

/// The drives, and the kernel's devices.
struct Known<'a> {
    sysfs: &'a Sysfs,
    devices: &'a [Device],
    drives: &'a [Placed<'a>],
}

impl Known<'_> {
    /// The device at a drive's path, which may be a link.
    fn device(&self, drive: &Placed<'_>) -> Option<&Device> {
        let path = Path::new(drive.path);
        let leads = std::fs::canonicalize(path);
        let path = leads.as_deref().unwrap_or(path);
        self.devices.iter().find(|device| device.node() == path)
    }

    /// The drive that is one of these whole devices, or a partition of one.
    fn at(&self, names: &[String]) -> Option<&Placed<'_>> {
        self.drives.iter().find(|drive| {
            let Some(device) = self.device(drive) else { return false };
            names.iter().any(|name| {
                let is_part = device.partition.is_some_and(|number| {
                    device.name == format!("{name}p{number}")
                        || device.name == format!("{name}{number}")
                });
                device.name == *name || is_part
            })
        })
    }

    /// The drive that the configuration means.
    fn named(&self, name: &str) -> Option<&Placed<'_>> {
        let by_serial = self.drives.iter().find(|drive| drive.serial == Some(name));
        let by_path = || self.drives.iter().find(|drive| drive.path == name);
        // Another path to the same drive.
        let by_node = || {
            let leads = std::fs::canonicalize(name).ok()?;
            self.drives
                .iter()
                .find(|drive| std::fs::canonicalize(drive.path).is_ok_and(|other| other == leads))
        };
        by_serial.or_else(by_path).or_else(by_node)
    }
}

/// An identifier that is not taken yet.
fn fresh(taken: &mut BTreeSet<String>, id: String) -> String {
    let numbers = (2..).map(|number: u32| format!("{id}-{number}"));
    let mut names = core::iter::once(id.clone()).chain(numbers);
    names.find(|name| taken.insert(name.clone())).unwrap_or(id)
}

fn described_slot(known: &Known<'_>, number: u16, name: Option<&String>) -> view::EnclosureSlot {
    let drive = name.and_then(|name| known.named(name));
    let device = drive.and_then(|drive| known.device(drive));
    view::EnclosureSlot {
        slot: number.to_string(),
        drive: drive.map(|drive| drive.id.to_owned()),
        located: device.and_then(|device| known.sysfs.located(device)),
    }
}

fn enclosures(
    known: &Known<'_>,
    described: &[Enclosure],
    told: Vec<sysfs::Enclosure>,
) -> Vec<view::Enclosure> {
    let (mut taken, mut all) = (BTreeSet::new(), Vec::new());
    for own in described {
        let slots = 1..=own.slots.unwrap_or(0);
        let module = |Module { name, ports }: &Module| view::Module {
            name: name.clone(),
            ports: ports.clone(),
        };
        all.push(view::Enclosure {
            id: fresh(&mut taken, nameplate::id(&own.name)),
            name: own.name.clone(),
            model: own.model.clone(),
            columns: own.columns.unwrap_or(0),
            slots: slots.map(|n| described_slot(known, n, own.drives.get(&n))).collect(),
            modules: own.modules.iter().map(module).collect(),
            shelf: None,
        });
    }
    let slots = all.iter().flat_map(|enclosure: &view::Enclosure| &enclosure.slots);
    let placed: BTreeSet<String> = slots.filter_map(|slot| slot.drive.clone()).collect();
    for enclosure in told {
        let (slots, places): (Vec<_>, Vec<bool>) =
            enclosure.slots.iter().filter_map(|slot| told_slot(known, slot, &placed)).unzip();
        let has_described = slots.len() < enclosure.slots.len();
        if has_described && !places.contains(&true) {
            continue;
        }
        all.push(view::Enclosure {
            id: fresh(&mut taken, enclosure.id),
            name: enclosure.name.unwrap_or_else(|| "Server".to_owned()),
            model: enclosure.model,
            columns: 0,
            slots,
            modules: Vec::new(),
            shelf: None,
        });
    }
    all
}

/// A slot of the kernel's, and whether something is in it; `None` if the configuration places its
/// drive.
fn told_slot(
    known: &Known<'_>,
    slot: &sysfs::Slot,
    placed: &BTreeSet<String>,
) -> Option<(view::EnclosureSlot, bool)> {
    let drive = known.at(&slot.devices).map(|drive| drive.id.to_owned());
    if drive.as_ref().is_some_and(|drive| placed.contains(drive)) {
        return None;
    }
    let is_full = !slot.devices.is_empty();
    Some((view::EnclosureSlot { slot: slot.label.clone(), drive, located: slot.located }, is_full))
}

/// By the chip's alarm and its limits.
fn health(sensor: &sysfs::Sensor) -> Health {
    let above = |limit: Option<i64>| {
        // A limit of 0 or below is none, but for temperatures.
        let limit = limit.filter(|limit| *limit > 0 || sensor.measures == Quantity::Temperature);
        matches!((sensor.reading, limit), (Some(reading), Some(limit)) if reading >= limit)
    };
    let is_low = matches!((sensor.reading, sensor.low), (Some(now), Some(low)) if now < low);
    match sensor.alarm {
        Alarm::Critical => Health::Critical,
        _ if above(sensor.critical) => Health::Critical,
        Alarm::Raised => Health::Warning,
        Alarm::None if sensor.is_faulty || is_low || above(sensor.high) => Health::Warning,
        Alarm::None => Health::Ok,
    }
}

/// What people call the power supply with this place among them.
fn supply_name(at: usize) -> String {
    format!("Power supply {}", at + 1)
}

/// Its label, or chip and number. One of a power supply says of which.
fn name(sensor: &sysfs::Sensor, supplies: &[sysfs::Supply]) -> String {
    let own = supplies.iter().position(|supply| supply.id == sensor.chip_id);
    let channel = || format!("{}{}", sensor.measures.word(), sensor.number);
    match (own, &sensor.label) {
        (Some(at), Some(label)) => format!("{} {label}", supply_name(at)),
        (Some(at), None) => format!("{} {}", supply_name(at), channel()),
        (None, Some(label)) => label.clone(),
        (None, None) => format!("{} {}", sensor.chip, channel()),
    }
}

/// A sensor; `None` for a fan.
fn sensor(sensor: &sysfs::Sensor, supplies: &[sysfs::Supply]) -> Option<view::Sensor> {
    Some(view::Sensor {
        id: sensor.id.clone(),
        name: name(sensor, supplies),
        measures: match sensor.measures {
            Quantity::Temperature => view::Measures::Temperature,
            Quantity::Voltage => view::Measures::Voltage,
            Quantity::Current => view::Measures::Current,
            Quantity::Power => view::Measures::Power,
            Quantity::Fan => return None,
        },
        reading: sensor.reading,
        high: sensor.high,
        critical: sensor.critical,
        health: health(sensor),
    })
}

/// A fan. One that does not turn though it should has failed.
fn fan(sensor: &sysfs::Sensor, supplies: &[sysfs::Supply]) -> view::Fan {
    let number = |value: Option<i64>| value.and_then(|value| u32::try_from(value).ok());
    let least = number(sensor.low).filter(|least| *least > 0);
    let stands = sensor.reading == Some(0) && (least.is_some() || sensor.alarm != Alarm::None);
    view::Fan {
        id: sensor.id.clone(),
        name: name(sensor, supplies),
        rpm: number(sensor.reading),
        least_rpm: least,
        health: if sensor.is_faulty || stands { Health::Critical } else { health(sensor) },
    }
}

fn supply((at, supply): (usize, &sysfs::Supply)) -> view::Supply {
    let is_off = supply.is_on == Some(false);
    view::Supply {
        id: supply.id.clone(),
        name: supply_name(at),
        is_on: supply.is_on,
        input_microwatts: supply.input_microwatts,
        health: match supply.alarm {
            Alarm::Critical => Health::Critical,
            _ if is_off || supply.is_faulty => Health::Critical,
            Alarm::Raised => Health::Warning,
            Alarm::None => Health::Ok,
        },
    }
}

fn port(port: sysfs::Port) -> view::NetworkPort {
    view::NetworkPort {
        id: port.name,
        mac: port.mac,
        has_link: port.has_link,
        is_enabled: port.is_enabled,
        megabits: port.megabits,
        full_duplex: port.full_duplex,
        mtu: port.mtu.unwrap_or(0),
        addresses: port.addresses,
    }
}

#[cfg(test)]
#[path = "around_tests.rs"]
mod tests;

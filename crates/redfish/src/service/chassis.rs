//! Housings: the machine's, and enclosures that drives are plugged into.
//!
//! Invariants
//! - The machine's housing is always there and is called `local`. An enclosure of that identifier
//!   is the machine itself: its slots are told there.
//! - A drive is in one housing: in its enclosure where that is known, else in the machine's.

use super::{Standing, alerts, collection, link, links, uri};
use crate::oem;
use crate::view::{Enclosure, Health, KnownDrive, View};
use serde_json::{Value, json};

/// The identifier of the machine's housing.
const LOCAL: &str = "local";

/// The URIs of all housings, the machine's first.
pub(super) fn uris(view: &View) -> Vec<String> {
    let others = view.surroundings.enclosures.iter().filter(|own| own.id != LOCAL);
    let others = others.map(|own| uri::chassis(&own.id));
    core::iter::once(uri::CHASSIS.to_owned()).chain(others).collect()
}

/// The URI of the housing that a drive is in.
pub(super) fn of_drive(view: &View, known: &KnownDrive) -> String {
    let place = known.hardware.place.as_ref();
    let enclosure = place.and_then(|place| view.surroundings.enclosure(&place.enclosure));
    enclosure.map_or_else(|| uri::CHASSIS.to_owned(), |own| uri::chassis(&own.id))
}

pub(super) fn all(view: &View) -> Value {
    collection(uri::CHASSIS_ALL, "ChassisCollection", "Housings", uris(view))
}

pub(super) fn one(view: &View, id: &str) -> Option<Value> {
    let enclosure = view.surroundings.enclosure(id);
    if id != LOCAL && enclosure.is_none() {
        return None;
    }
    let own = uri::chassis(id);
    let inside = || view.drives.iter().filter(|known| of_drive(view, known) == own);
    let drives = links(inside().map(|known| uri::drive(&known.id)));
    let mut worst = inside().map(|known| known.hardware.health).max().unwrap_or_default();
    if let Some(shelf) = enclosure.and_then(|own| own.shelf.as_ref()) {
        worst = worst.max(shelf.worst());
    }
    if id == LOCAL {
        worst = worst.max(view.surroundings.healths().max().unwrap_or_default());
    }
    let mut resource = json!({
        "@odata.id": own,
        "@odata.type": "#Chassis.v1_28_0.Chassis",
        "Id": id,
        "Name": enclosure.map_or("The housing of the machine's drives", |own| &own.name),
        "ChassisType": if id == LOCAL { "Other" } else { "StorageEnclosure" },
        "Status": status(worst),
        "Links": {
            "ComputerSystems": [link(uri::SYSTEM)],
            "ManagedBy": [link(uri::MANAGER)],
            "Storage": [link(uri::STORAGE)],
            "Drives@odata.count": drives.len(),
            "Drives": drives,
        },
    });
    if id == LOCAL {
        for (property, at) in [
            ("Drives", uri::DRIVES),
            ("Sensors", uri::SENSORS),
            ("ThermalSubsystem", uri::THERMAL),
            ("PowerSubsystem", uri::POWER),
        ] {
            super::put(&mut resource, property, link(at));
        }
        super::put(&mut resource, "PowerState", json!("On"));
        super::put(&mut resource, "Status", own_status(view, worst));
    }
    if let Some(enclosure) = enclosure {
        if let Some(model) = &enclosure.model {
            super::put(&mut resource, "Model", json!(model));
        }
        if let Some(shelf) = enclosure.shelf.as_ref().filter(|_| id != LOCAL) {
            super::put(&mut resource, "Status", shelf_status(view, &own, worst));
            let power = |is_on: bool| json!(if is_on { "On" } else { "Off" });
            if let Some(is_on) = shelf.is_on {
                super::put(&mut resource, "PowerState", power(is_on));
            }
        }
        super::put(&mut resource, "Oem", oem::wrapped(&extension(view, enclosure)));
    }
    Some(resource)
}

/// Well by itself; how well what is in it is.
pub(super) fn status(worst: Health) -> Value {
    let mut status = Standing::GOOD.status();
    super::put(&mut status, "HealthRollup", json!(worst.word()));
    status
}

/// The same of the machine's housing, with what alerts say of it.
fn own_status(view: &View, worst: Health) -> Value {
    let is_inside = |of: &str| of.starts_with(uri::CHASSIS);
    let mut status = alerts::status(view, Standing::GOOD, uri::CHASSIS, is_inside);
    let rollup = alerts::worst(view, is_inside).max(worst.into());
    super::put(&mut status, "HealthRollup", json!(rollup.word()));
    status
}

/// How a shelf that tells of itself is, with what alerts say of it.
fn shelf_status(view: &View, own: &str, worst: Health) -> Value {
    let mut status = alerts::status(view, Standing::GOOD, own, |of| of == own);
    super::put(&mut status, "HealthRollup", json!(worst.word()));
    status
}

/// Slots and modules, with links to what is there.
fn extension(view: &View, enclosure: &Enclosure) -> oem::Chassis {
    let there = |id: &String| view.drive(id).map(|known| oem::Link { id: uri::drive(&known.id) });
    let slots = enclosure.slots.iter().map(|slot| oem::EnclosureSlot {
        slot: slot.slot.clone(),
        drive: slot.drive.as_ref().and_then(there),
        location_indicator_active: slot.located,
    });
    let port = |name: &String| {
        let is_there = view.surroundings.ports.iter().any(|port| port.id == *name);
        let link = is_there.then(|| oem::Link { id: uri::port(name) });
        oem::ModulePort { name: name.clone(), ethernet_interface: link }
    };
    let modules = enclosure.modules.iter().map(|module| oem::Module {
        name: module.name.clone(),
        ports: module.ports.iter().map(port).collect(),
    });
    let shelf = enclosure.shelf.as_ref().map(|own| {
        let mut told = oem::Shelf::from(own);
        for (bay, known) in told.bays.iter_mut().zip(&own.bays) {
            bay.drives = known.own.iter().filter_map(there).collect();
        }
        told
    });
    oem::Chassis {
        columns: enclosure.columns,
        slots: slots.collect(),
        modules: modules.collect(),
        shelf,
    }
}

//! What a shelf of drives tells of itself, on the way to and from [`crate::view`].
//!
//! Invariant: it is told as the shelf's service told it. What a silent service said last stays.

use super::{Health, Link, ShelfKind, ShelfState, ShelfUnit};
use crate::dates;
use crate::view;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a shelf of drives tells of itself by its management service.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Shelf {
    /// Where its service is.
    #[serde(rename = "ServiceURI")]
    pub service_uri: String,
    /// When it said this; absent if it never said anything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(extend("format" = "date-time"))]
    pub read_time: Option<String>,
    /// Since when its service does not answer; absent while it does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(extend("format" = "date-time"))]
    pub silent_since: Option<String>,
    /// Why its service does not answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// Its serial number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub serial_number: Option<String>,
    /// Whether it is switched on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub powered: Option<bool>,
    /// How well all of it is, by its own word.
    pub health: Health,
    /// Its slots, in order.
    pub bays: Vec<ShelfBay>,
    /// The network ports of its I/O modules.
    pub ports: Vec<ShelfPort>,
    /// What else it has.
    pub parts: Vec<ShelfPart>,
}

/// A slot of a shelf, and the drive in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ShelfBay {
    /// Its number, or its label.
    pub slot: String,
    /// Whether a drive is there.
    pub state: ShelfState,
    /// How well the drive is.
    pub health: Health,
    /// The drive's serial number.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub serial_number: Option<String>,
    /// The drive's model.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// The drive's size in bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub capacity_bytes: Option<u64>,
    /// The NVMe subsystem by which hosts reach the drive.
    #[serde(rename = "SubsystemNQN", skip_serializing_if = "Option::is_none", default)]
    pub subsystem_nqn: Option<String>,
    /// Whether the drive's indicator is on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub location_indicator_active: Option<bool>,
    /// The daemon's drives that are on it: a namespace is one.
    pub drives: Vec<Link>,
}

/// A network port of a shelf.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ShelfPort {
    /// The name of its I/O module.
    pub module: String,
    /// Its name.
    pub port: String,
    /// Its address, where hosts come.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub address: Option<String>,
    /// Whether it has a link.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub linked: Option<bool>,
    /// Whether it is switched on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub enabled: Option<bool>,
    /// Its speed, in megabits per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speed_mbps: Option<u32>,
    /// The most bytes of a packet.
    #[serde(rename = "MTUSize", skip_serializing_if = "Option::is_none", default)]
    pub mtu_size: Option<u32>,
    /// How well it is.
    pub health: Health,
}

/// A part of a shelf.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ShelfPart {
    /// What it is.
    pub kind: ShelfKind,
    /// Its name.
    pub part: String,
    /// Whether it is there.
    pub state: ShelfState,
    /// How well it is.
    pub health: Health,
    /// What is measured of it, in thousandths of the unit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reading_thousandths: Option<i64>,
    /// The unit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<ShelfUnit>,
    /// From where on it warns, in thousandths of the unit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub warning_thousandths: Option<i64>,
    /// From where on it is critical, in thousandths of the unit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub critical_thousandths: Option<i64>,
}

impl From<&view::Shelf> for Shelf {
    fn from(own: &view::Shelf) -> Self {
        Self {
            service_uri: own.url.clone(),
            read_time: own.read.map(dates::text),
            silent_since: own.silence.as_ref().map(|own| dates::text(own.since)),
            problem: own.silence.as_ref().map(|own| own.why.clone()),
            serial_number: own.serial.clone(),
            powered: own.is_on,
            health: own.health.into(),
            bays: own.bays.iter().map(ShelfBay::from).collect(),
            ports: own.ports.iter().map(ShelfPort::from).collect(),
            parts: own.parts.iter().map(ShelfPart::from).collect(),
        }
    }
}

impl From<Shelf> for view::Shelf {
    fn from(own: Shelf) -> Self {
        let since = own.silent_since.as_deref().and_then(dates::seconds);
        let why = own.problem.unwrap_or_default();
        Self {
            url: own.service_uri,
            read: own.read_time.as_deref().and_then(dates::seconds),
            silence: since.map(|since| view::Silence { since, why }),
            serial: own.serial_number,
            is_on: own.powered,
            health: own.health.into(),
            bays: own.bays.into_iter().map(Into::into).collect(),
            ports: own.ports.into_iter().map(Into::into).collect(),
            parts: own.parts.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<&view::ShelfBay> for ShelfBay {
    fn from(own: &view::ShelfBay) -> Self {
        Self {
            slot: own.slot.clone(),
            state: own.state.into(),
            health: own.health.into(),
            serial_number: own.serial.clone(),
            model: own.model.clone(),
            capacity_bytes: own.bytes,
            subsystem_nqn: own.subsystem.clone(),
            location_indicator_active: own.is_located,
            // The service knows which of them have a resource.
            drives: Vec::new(),
        }
    }
}

impl From<ShelfBay> for view::ShelfBay {
    fn from(own: ShelfBay) -> Self {
        let drive = |link: &Link| Some(crate::routes::find(&link.id)?.id(0).to_owned());
        Self {
            slot: own.slot,
            state: own.state.into(),
            health: own.health.into(),
            serial: own.serial_number,
            model: own.model,
            bytes: own.capacity_bytes,
            subsystem: own.subsystem_nqn,
            is_located: own.location_indicator_active,
            own: own.drives.iter().filter_map(drive).collect(),
        }
    }
}

impl From<&view::ShelfPort> for ShelfPort {
    fn from(own: &view::ShelfPort) -> Self {
        Self {
            module: own.module.clone(),
            port: own.name.clone(),
            address: own.address.clone(),
            linked: own.has_link,
            enabled: own.is_enabled,
            speed_mbps: own.megabits,
            mtu_size: own.mtu,
            health: own.health.into(),
        }
    }
}

impl From<ShelfPort> for view::ShelfPort {
    fn from(own: ShelfPort) -> Self {
        Self {
            module: own.module,
            name: own.port,
            address: own.address,
            has_link: own.linked,
            is_enabled: own.enabled,
            megabits: own.speed_mbps,
            mtu: own.mtu_size,
            health: own.health.into(),
        }
    }
}

impl From<&view::ShelfPart> for ShelfPart {
    fn from(own: &view::ShelfPart) -> Self {
        Self {
            kind: own.kind.into(),
            part: own.name.clone(),
            state: own.state.into(),
            health: own.health.into(),
            reading_thousandths: own.reading,
            unit: own.unit.map(ShelfUnit::from),
            warning_thousandths: own.warning,
            critical_thousandths: own.critical,
        }
    }
}

impl From<ShelfPart> for view::ShelfPart {
    fn from(own: ShelfPart) -> Self {
        Self {
            kind: own.kind.into(),
            name: own.part,
            state: own.state.into(),
            health: own.health.into(),
            reading: own.reading_thousandths,
            unit: own.unit.map(view::ShelfUnit::from),
            warning: own.warning_thousandths,
            critical: own.critical_thousandths,
        }
    }
}

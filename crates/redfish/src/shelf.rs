//! What shelves of drives tell of themselves, by a management service of their own.
//!
//! Purpose: the daemon fills these types from what a shelf's service says; [`crate::service`] makes
//! a part of the enclosure's resource of them and the command line prints them. Nothing here asks
//! anything.
//!
//! Invariants: readings and limits are thousandths of their unit, speeds of links megabits per
//! second, times seconds since 1970. What nobody knows is `None`, never zero. What a silent service
//! said last stays.

use crate::hardware::Health;
use serde::{Deserialize, Serialize};

/// A shelf that tells of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Shelf {
    /// Where its service is.
    pub url: String,
    /// When it said this; absent if it never said anything.
    pub read: Option<u64>,
    /// Since when it does not answer, and why; absent while it does.
    pub silence: Option<Silence>,
    /// Its serial number.
    pub serial: Option<String>,
    /// Whether it is switched on.
    pub is_on: Option<bool>,
    /// How well all of it is, by its own word.
    pub health: Health,
    /// Its slots, in order.
    pub bays: Vec<ShelfBay>,
    /// The network ports of its I/O modules.
    pub ports: Vec<ShelfPort>,
    /// What else it has.
    pub parts: Vec<ShelfPart>,
}

impl Shelf {
    /// How well what it has is, by what it said last; worse while it is silent.
    pub fn worst(&self) -> Health {
        let silent = self.silence.as_ref().map(|_| Health::Warning);
        let bays = self.bays.iter().map(ShelfBay::grade);
        let parts = self.parts.iter().map(ShelfPart::grade);
        let ports = self.ports.iter().map(|own| own.health);
        let all = bays.chain(parts).chain(ports).chain(silent).chain([self.power()]);
        all.max().unwrap_or_default().max(self.health)
    }

    /// How well it is by whether it is switched on.
    pub fn power(&self) -> Health {
        if self.is_on == Some(false) { Health::Warning } else { Health::Ok }
    }

    /// Whether its service answers: one that was never read does not yet.
    pub fn answers(&self) -> bool {
        self.silence.is_none() && self.read.is_some()
    }
}

/// A service that does not answer.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Silence {
    /// Since when, in seconds since 1970.
    pub since: u64,
    /// What came of it last, one line.
    pub why: String,
}

/// Whether a part is there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShelfState {
    /// It is there and works.
    #[default]
    Enabled,
    /// It is there and does not work, or is switched off.
    Offline,
    /// It is not there.
    Absent,
}

impl ShelfState {
    /// Its word for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Offline => "offline",
            Self::Absent => "absent",
        }
    }
}

/// The worse of a part's health and of what its state means where it should be there.
fn grade(state: ShelfState, health: Health) -> Health {
    match state {
        ShelfState::Enabled => health,
        ShelfState::Offline => health.max(Health::Warning),
        ShelfState::Absent => Health::Critical,
    }
}

/// A slot of a shelf, and the drive in it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ShelfBay {
    /// Its number, or its label.
    pub slot: String,
    /// Whether a drive is there.
    pub state: ShelfState,
    /// How well that is.
    pub health: Health,
    /// Its serial number.
    pub serial: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its size in bytes.
    pub bytes: Option<u64>,
    /// The NVMe subsystem by which hosts reach it.
    pub subsystem: Option<String>,
    /// Whether its indicator is on.
    pub is_located: Option<bool>,
    /// The identifiers of the daemon's drives that are on it.
    pub own: Vec<String>,
}

impl ShelfBay {
    /// How well its drive is. Where none was told nothing is wrong.
    pub fn grade(&self) -> Health {
        match self.state {
            ShelfState::Absent if self.subsystem.is_none() && self.serial.is_none() => Health::Ok,
            state => grade(state, self.health),
        }
    }
}

/// A network port of a shelf.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ShelfPort {
    /// The name of its I/O module.
    pub module: String,
    /// Its name.
    pub name: String,
    /// Its address, where hosts come.
    pub address: Option<String>,
    /// Whether it has a link.
    pub has_link: Option<bool>,
    /// Whether it is switched on.
    pub is_enabled: Option<bool>,
    /// Its speed, in megabits per second.
    pub megabits: Option<u32>,
    /// The most bytes of a packet.
    pub mtu: Option<u32>,
    /// How well it is.
    pub health: Health,
}

/// What a part of a shelf is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShelfKind {
    /// An I/O module.
    Module,
    /// A power supply.
    Supply,
    /// A fan.
    Fan,
    /// A sensor of nothing that is told by itself.
    Sensor,
}

impl ShelfKind {
    /// Its word for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Supply => "power supply",
            Self::Fan => "fan",
            Self::Sensor => "sensor",
        }
    }
}

/// A unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShelfUnit {
    /// Degrees Celsius.
    Celsius,
    /// Turns a minute.
    Rpm,
    /// Per cent.
    Percent,
    /// Watts.
    Watts,
    /// Volts.
    Volts,
    /// Amperes.
    Amperes,
}

impl ShelfUnit {
    /// Its sign.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Celsius => "°C",
            Self::Rpm => "rpm",
            Self::Percent => "%",
            Self::Watts => "W",
            Self::Volts => "V",
            Self::Amperes => "A",
        }
    }
}

/// A part of a shelf.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ShelfPart {
    /// What it is.
    pub kind: ShelfKind,
    /// Its name.
    pub name: String,
    /// Whether it is there.
    pub state: ShelfState,
    /// How well it is.
    pub health: Health,
    /// What is measured of it, in thousandths of the unit.
    pub reading: Option<i64>,
    /// The unit.
    pub unit: Option<ShelfUnit>,
    /// From where on it warns, in thousandths of the unit.
    pub warning: Option<i64>,
    /// From where on it is critical, in thousandths of the unit.
    pub critical: Option<i64>,
}

impl ShelfPart {
    /// How well it is. One that is not there is missed only if its health says so.
    pub fn grade(&self) -> Health {
        match self.state {
            ShelfState::Absent => self.health,
            state => grade(state, self.health),
        }
    }

    /// What is measured of it, for people.
    pub fn value(&self) -> Option<String> {
        let value = self.reading? as f64 / 1000.0;
        let value = (value * 10.0).round() / 10.0;
        Some(format!("{value} {}", self.unit.map_or("", ShelfUnit::sign)).trim_end().to_owned())
    }
}

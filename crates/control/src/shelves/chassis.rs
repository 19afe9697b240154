//! What a shelf's service says of its chassis, in the words of the view. No I/O.
//!
//! Purpose: [`told`] makes [`Told`] of resources by the Redfish schemas (DSP8010). What they have
//! no property for is taken from `Oem.Palisade`, where that is.
//!
//! Invariants
//! - Whatever a service says, a text has at most [`TEXT`] characters, the name of a subsystem
//!   [`NQN`] bytes, and none of them is a control character. A property that is not as it should be
//!   is one that is not there.
//! - A sensor that is read as that of a fan or a supply is told there, and only there.

use redfish::view::{
    Health, Shelf, ShelfBay, ShelfKind, ShelfPart, ShelfPort, ShelfState, ShelfUnit,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The most characters of a text.
const TEXT: usize = 200;

/// The most parts that are missed once they are not there.
const PARTS: usize = 2000;

/// The most bytes of an NVMe subsystem's name (NVMe Base, "NVMe Qualified Names").
const NQN: usize = 223;

/// The resources of a shelf.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answers {
    /// Its chassis.
    pub chassis: Value,
    /// Its drives.
    pub drives: Vec<Value>,
    /// Its I/O modules, and their ports.
    pub modules: Vec<(Value, Vec<Value>)>,
    /// Its power supplies, and their metrics.
    pub supplies: Vec<(Value, Value)>,
    /// Its fans.
    pub fans: Vec<Value>,
    /// Its sensors.
    pub sensors: Vec<Value>,
}

/// What a service says of a shelf.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// The shelf's model.
    pub model: Option<String>,
    /// The rest; where the service is, and when it said this, is not told here.
    pub shelf: Shelf,
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    let text = value.pointer(pointer)?.as_str()?;
    let text: String = text.chars().filter(|c| !c.is_control()).take(TEXT).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn flag(value: &Value, pointer: &str) -> Option<bool> {
    value.pointer(pointer)?.as_bool()
}

fn small(value: &Value, pointer: &str) -> Option<u32> {
    value.pointer(pointer)?.as_u64().and_then(|number| u32::try_from(number).ok())
}

/// A number in thousandths.
#[allow(clippy::cast_possible_truncation, reason = "a conversion of floating point saturates")]
fn thousandths(value: &Value, pointer: &str) -> Option<i64> {
    let number = value.pointer(pointer)?.as_f64()?;
    Some((number * 1000.0).round() as i64)
}

/// An NVMe subsystem's name. One that is cut names nothing.
fn nqn(value: &Value) -> Option<String> {
    let text = value.get("DurableName")?.as_str()?;
    let is_good = text.len() <= NQN && !text.chars().any(char::is_control);
    Some(text.to_owned()).filter(|_| is_good)
}

fn health(value: &Value) -> Health {
    let word = value.pointer("/Status/Health").and_then(Value::as_str);
    word.and_then(Health::of).unwrap_or_default()
}

/// By the word for a resource's state (DSP0268, `Status`).
fn state(value: &Value) -> ShelfState {
    match value.pointer("/Status/State").and_then(Value::as_str) {
        Some("Absent") => ShelfState::Absent,
        Some("Disabled" | "UnavailableOffline" | "StandbyOffline" | "Deferring") => {
            ShelfState::Offline
        }
        _ => ShelfState::Enabled,
    }
}

/// What a resource is called: by its name, else by its identifier.
fn name(value: &Value) -> String {
    text(value, "/Name").or_else(|| text(value, "/Id")).unwrap_or_else(|| "-".to_owned())
}

fn bay(drive: &Value) -> ShelfBay {
    let place = |key: &str| text(drive, &format!("/PhysicalLocation/PartLocation/{key}"));
    let number = drive.pointer("/PhysicalLocation/PartLocation/LocationOrdinalValue");
    let number = number.and_then(Value::as_u64).map(|number| number.to_string());
    let names = drive.get("Identifiers").and_then(Value::as_array);
    let is_nqn = |own: &&Value| own.get("DurableNameFormat").is_some_and(|own| own == "NQN");
    let name_of = names.and_then(|names| names.iter().find(is_nqn));
    ShelfBay {
        slot: place("ServiceLabel").or(number).unwrap_or_else(|| name(drive)),
        state: state(drive),
        health: health(drive),
        serial: text(drive, "/SerialNumber"),
        model: text(drive, "/Model"),
        bytes: drive.get("CapacityBytes").and_then(Value::as_u64),
        subsystem: name_of.and_then(nqn),
        is_located: flag(drive, "/LocationIndicatorActive"),
        own: Vec::new(),
    }
}

fn port(module: &Value, port: &Value) -> ShelfPort {
    let link = port.get("LinkStatus").and_then(Value::as_str);
    let speed = thousandths(port, "/CurrentSpeedGbps").filter(|speed| *speed > 0);
    ShelfPort {
        module: name(module),
        name: text(port, "/Id").unwrap_or_else(|| name(port)),
        address: text(port, "/Oem/Palisade/Address"),
        has_link: link.map(|word| word == "LinkUp"),
        is_enabled: flag(port, "/InterfaceEnabled"),
        megabits: speed.and_then(|speed| u32::try_from(speed).ok()),
        mtu: small(port, "/Oem/Palisade/MTUSize"),
        health: health(port),
    }
}

/// A part of which nothing is measured.
fn part(kind: ShelfKind, value: &Value) -> ShelfPart {
    ShelfPart {
        kind,
        name: name(value),
        state: state(value),
        health: health(value),
        reading: None,
        unit: None,
        warning: None,
        critical: None,
    }
}

/// Says of a part from where on what is measured of it is worse.
fn limit(part: &mut ShelfPart, sensor: &Value) {
    let of = |what: &str| {
        let at = |side: &str| thousandths(sensor, &format!("/Thresholds/{side}{what}/Reading"));
        at("Upper").or_else(|| at("Lower"))
    };
    (part.warning, part.critical) = (of("Caution"), of("Critical"));
}

fn unit(sensor: &Value) -> Option<ShelfUnit> {
    Some(match sensor.get("ReadingType").and_then(Value::as_str)? {
        "Temperature" => ShelfUnit::Celsius,
        "Rotational" => ShelfUnit::Rpm,
        "Percent" => ShelfUnit::Percent,
        "Power" => ShelfUnit::Watts,
        "Voltage" => ShelfUnit::Volts,
        "Current" => ShelfUnit::Amperes,
        _ => return None,
    })
}

/// Sensors by their paths: those that nobody has taken.
struct Sensors<'a>(BTreeMap<&'a str, &'a Value>);

impl<'a> Sensors<'a> {
    fn of(all: &'a [Value]) -> Self {
        let path = |own: &'a Value| Some((own.get("@odata.id")?.as_str()?, own));
        Self(all.iter().filter_map(path).collect())
    }

    /// Says what is measured of a part: by the first of these that says something.
    fn fill(&mut self, part: &mut ShelfPart, found: [(&Value, &str, ShelfUnit); 2]) {
        for (value, key, unit) in found {
            let source = value.get("DataSourceUri").and_then(Value::as_str);
            let sensor = source.and_then(|path| self.0.remove(path));
            let reading = thousandths(value, &format!("/{key}"));
            if part.unit.is_none() && (reading.is_some() || sensor.is_some()) {
                (part.reading, part.unit) = (reading, Some(unit));
                sensor.into_iter().for_each(|sensor| limit(part, sensor));
            }
        }
    }
}

/// Which parts were there, so that they are missed once they are not: supplies, fans and modules by
/// their names. A sensor may come and go.
#[derive(Default)]
pub struct Seen(BTreeSet<(ShelfKind, String)>);

impl Seen {
    /// Takes what is there now, and says of what is not there any more that it is missed.
    pub fn miss(&mut self, parts: &mut [ShelfPart]) {
        for own in parts.iter_mut().filter(|own| own.kind != ShelfKind::Sensor) {
            let named = (own.kind, own.name.clone());
            if own.state != ShelfState::Absent {
                if self.0.len() < PARTS {
                    self.0.insert(named);
                }
            } else if self.0.contains(&named) {
                own.health = Health::Critical;
            }
        }
    }
}

/// What the resources of a shelf say.
pub fn told(answers: &Answers) -> Told {
    let chassis = &answers.chassis;
    let mut sensors = Sensors::of(&answers.sensors);
    let mut parts: Vec<ShelfPart> =
        answers.modules.iter().map(|(own, _)| part(ShelfKind::Module, own)).collect();
    let none = Value::Null;
    for (supply, metrics) in &answers.supplies {
        let mut own = part(ShelfKind::Supply, supply);
        let watts = |key: &str| metrics.get(key).unwrap_or(&none);
        let found = ["InputPowerWatts", "OutputPowerWatts"];
        sensors.fill(&mut own, found.map(|key| (watts(key), "Reading", ShelfUnit::Watts)));
        parts.push(own);
    }
    for fan in &answers.fans {
        let (mut own, speed) = (part(ShelfKind::Fan, fan), fan.get("SpeedPercent"));
        let speed = speed.unwrap_or(&none);
        let found = [("SpeedRPM", ShelfUnit::Rpm), ("Reading", ShelfUnit::Percent)];
        // They have one source: it is of what is told first.
        let is_told = |key: &str| speed.get(key).is_some_and(|own| !own.is_null());
        let [first, second] = found.map(|(key, unit)| (speed, key, unit));
        let is_percent = !is_told("SpeedRPM") && is_told("Reading");
        sensors.fill(&mut own, if is_percent { [second, first] } else { [first, second] });
        parts.push(own);
    }
    for sensor in &answers.sensors {
        let path = sensor.get("@odata.id").and_then(Value::as_str);
        if path.is_some_and(|path| !sensors.0.contains_key(path)) {
            continue;
        }
        let mut own = part(ShelfKind::Sensor, sensor);
        (own.reading, own.unit) = (thousandths(sensor, "/Reading"), unit(sensor));
        limit(&mut own, sensor);
        parts.push(own);
    }
    let ports = |(module, all): &(Value, Vec<Value>)| {
        all.iter().map(|own| port(module, own)).collect::<Vec<_>>()
    };
    let power = chassis.get("PowerState").and_then(Value::as_str);
    let shelf = Shelf {
        serial: text(chassis, "/SerialNumber"),
        is_on: match power {
            Some("On" | "PoweringOn") => Some(true),
            Some("Off" | "PoweringOff") => Some(false),
            _ => None,
        },
        health: health(chassis),
        bays: answers.drives.iter().map(bay).collect(),
        ports: answers.modules.iter().flat_map(ports).collect(),
        parts,
        ..Shelf::default()
    };
    Told { model: text(chassis, "/Model"), shelf }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sensor(name: &str, kind: &str, reading: Value) -> Value {
        json!({"@odata.id": format!("/s/{name}"), "Name": name, "ReadingType": kind,
            "Reading": reading, "Status": {"State": "Enabled", "Health": "Warning"},
            "Thresholds": {"LowerCaution": {"Reading": 4000}, "UpperCritical": {"Reading": 9.5}}})
    }

    #[test]
    fn a_shelf_is_told_by_its_resources() {
        let drive = json!({"Id": "7", "SerialNumber": "S\u{7}7", "CapacityBytes": 4096,
            "Identifiers": [{"DurableNameFormat": "UUID", "DurableName": "u"},
                {"DurableNameFormat": "NQN", "DurableName": "nqn.2026-11.example:7"}],
            "PhysicalLocation": {"PartLocation": {"LocationOrdinalValue": 7}},
            "LocationIndicatorActive": true, "Status": {"State": "UnavailableOffline"}});
        let port = json!({"Id": "A1", "LinkStatus": "LinkUp", "InterfaceEnabled": true,
            "CurrentSpeedGbps": 100, "Oem": {"Palisade": {"Address": "[::1]:1", "MTUSize": 9000}}});
        let fan = json!({"Name": "Fan 1", "Status": {"State": "Absent"},
            "SpeedPercent": {"SpeedRPM": null, "DataSourceUri": "/s/fan"}});
        let watts = json!({"InputPowerWatts": {"Reading": 310.25, "DataSourceUri": "/s/psu"}});
        let told = told(&Answers {
            chassis: json!({"Model": "M", "SerialNumber": "x".repeat(300), "PowerState": "Off"}),
            drives: vec![drive, json!({"Name": "Bay 8", "Status": {"State": "Absent"}})],
            modules: vec![(json!({"Name": "IO module A"}), vec![port])],
            supplies: vec![(json!({"Name": "Supply 1"}), watts)],
            fans: vec![fan],
            sensors: vec![
                sensor("fan", "Rotational", Value::Null),
                sensor("psu", "Power", 310.into()),
                sensor("drive", "Temperature", 71.5.into()),
            ],
        });
        let shelf = told.shelf;
        assert_eq!((told.model.as_deref(), shelf.is_on), (Some("M"), Some(false)));
        assert_eq!(shelf.serial.map(|text| text.len()), Some(TEXT));
        let bay = &shelf.bays[0];
        assert_eq!((bay.slot.as_str(), bay.state), ("7", ShelfState::Offline));
        assert_eq!((bay.serial.as_deref(), bay.grade()), (Some("S7"), Health::Warning));
        assert_eq!(bay.subsystem.as_deref(), Some("nqn.2026-11.example:7"));
        assert_eq!((shelf.bays[1].slot.as_str(), shelf.bays[1].grade()), ("Bay 8", Health::Ok));
        let port = &shelf.ports[0];
        assert_eq!(
            (port.name.as_str(), port.megabits, port.mtu),
            ("A1", Some(100_000), Some(9000))
        );
        assert_eq!(port.address.as_deref(), Some("[::1]:1"));
        let parts: Vec<_> = shelf.parts.iter().map(|own| (own.kind, own.value())).collect();
        let watts = Some("310.3 W".to_owned());
        assert_eq!(
            parts,
            [
                (ShelfKind::Module, None),
                (ShelfKind::Supply, watts),
                (ShelfKind::Fan, None),
                (ShelfKind::Sensor, Some("71.5 °C".to_owned())),
            ]
        );
        let fan = &shelf.parts[2];
        assert_eq!(
            (fan.grade(), fan.warning, fan.unit),
            (Health::Ok, Some(4_000_000), Some(ShelfUnit::Rpm))
        );
    }

    #[test]
    fn a_part_is_missed_only_if_it_was_there() {
        let own = |kind, state: &str| part(kind, &json!({"Name": "1", "Status": {"State": state}}));
        let mut seen = Seen::default();
        let mut grades = |state: &str| {
            let kinds = [ShelfKind::Fan, ShelfKind::Supply, ShelfKind::Module, ShelfKind::Sensor];
            let mut parts = kinds.map(|kind| own(kind, state));
            seen.miss(&mut parts);
            parts.map(|own| own.grade())
        };
        let (well, bad) = (Health::Ok, Health::Critical);
        assert_eq!(grades("Absent"), [well; 4]);
        assert_eq!(grades("Enabled"), [well; 4]);
        assert_eq!(grades("Absent"), [bad, bad, bad, well]);
        assert_eq!(grades("Enabled"), [well; 4]);
        let told = json!({"Status": {"State": "Absent", "Health": "Warning"}});
        assert_eq!(part(ShelfKind::Fan, &told).grade(), Health::Warning);
    }

    #[test]
    fn a_subsystem_has_a_name_of_its_own_or_none() {
        let name = |text: String| nqn(&json!({"DurableName": text}));
        assert!(name("x".repeat(NQN)).is_some());
        assert_eq!((name("x".repeat(NQN + 1)), name("nqn\n".to_owned())), (None, None));
    }

    #[test]
    fn what_is_strange_is_not_there() {
        let odd = || vec![json!(7), json!({"Status": 7, "Name": ["a"]}), Value::Null];
        let pairs = || odd().into_iter().map(|own| (own, Value::Null)).collect();
        let told = told(&Answers {
            chassis: json!([]),
            drives: odd(),
            modules: odd().into_iter().map(|own| (own, odd())).collect(),
            supplies: pairs(),
            fans: odd(),
            sensors: odd(),
        });
        assert_eq!((told.shelf.bays.len(), told.shelf.ports.len()), (3, 9));
        assert_eq!(told.shelf.parts.len(), 12);
        assert_eq!(told.shelf.worst(), Health::Ok);
    }
}

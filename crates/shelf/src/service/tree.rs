//! The resources of a shelf's management service, made of what the shelf shows. No I/O.
//!
//! Properties are those of the Redfish schemas (DSP8010): `Chassis` and what hangs on it (`Drive`,
//! `NetworkAdapter`, `Port`, `PowerSupply`, `Fan`, `Sensor`), and `Fabric` with `Zone` and
//! `Endpoint`. What they have no property for stands under `Oem.Palisade`.

use crate::plan::Plan;
use crate::sensors::{Reading, ShownSensor};
use crate::state::{Shown, ShownDrive, ShownModule, ShownPort};
use crate::zone::ZoneWords;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Where the service begins.
pub(super) const ROOT: &str = "/redfish/v1";
/// Where events are streamed from.
pub(super) const STREAM: &str = "/redfish/v1/EventService/SSE";
/// What a part may be told to do.
pub(super) const RESETS: [&str; 2] = ["On", "ForceOff"];

/// What resources are made of.
pub(super) struct Facts<'a> {
    pub plan: &'a Plan,
    pub shown: &'a Shown,
}

/// The words of a path below the root.
pub(super) fn words(path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix(ROOT)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    rest.split('/').filter(|word| !word.is_empty()).map(decoded).collect()
}

/// A word of a path without its percent signs (RFC 3986, section 2.1).
fn decoded(word: &str) -> Option<String> {
    let (mut bytes, mut all) = (word.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            all.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        all.push((high * 16 + low) as u8);
    }
    String::from_utf8(all).ok()
}

fn link(path: &str) -> Value {
    json!({"@odata.id": path})
}

/// A link to a resource below the chassis.
fn below(rest: &str) -> Value {
    link(&format!("{ROOT}/Chassis/shelf/{rest}"))
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|own| (*own).to_owned()).collect()
}

/// A path's resource.
pub(super) fn resource(facts: &Facts<'_>, path: &str) -> Option<Value> {
    let words = words(path)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(children) = children(facts, &words) {
        return Some(collection(&words, &children));
    }
    let (kind, id, mut own) = facts.own(&words)?;
    let version = kind.split_once('.').map_or(kind, |(name, _)| name);
    let object = own.as_object_mut()?;
    let mut whole = Map::new();
    let head = [
        (
            "@odata.id",
            format!("{ROOT}{}", [""].iter().chain(&words).copied().collect::<Vec<_>>().join("/")),
        ),
        ("@odata.type", format!("#{kind}.{version}")),
        ("Id", id),
    ];
    whole.extend(head.map(|(key, value)| (key.to_owned(), Value::String(value))));
    whole.append(object);
    Some(Value::Object(whole))
}

/// The names of a collection's children.
pub(super) fn children(facts: &Facts<'_>, words: &[&str]) -> Option<Vec<String>> {
    let Facts { plan, shown } = facts;
    let numbers = |last: usize| (1..=last).map(|number| number.to_string()).collect();
    let count =
        |prefix: &str| shown.sensors.iter().filter(|own| own.name.starts_with(prefix)).count();
    Some(match *words {
        ["Chassis"] => texts(&["shelf"]),
        ["Fabrics"] => texts(&["nvme"]),
        ["Chassis", "shelf", "Drives"] => numbers(plan.drives),
        ["Chassis", "shelf", "NetworkAdapters"] => texts(&["A", "B"]),
        ["Chassis", "shelf", "NetworkAdapters", module, "Ports"] => {
            let module = facts.module(module)?;
            module.ports.iter().map(|port| port.name.clone()).collect()
        }
        ["Chassis", "shelf", "PowerSubsystem", "PowerSupplies"] => numbers(count("psu.")),
        ["Chassis", "shelf", "ThermalSubsystem", "Fans"] => numbers(count("fan.")),
        ["Chassis", "shelf", "Sensors"] => {
            shown.sensors.iter().map(|sensor| sensor.name.clone()).collect()
        }
        ["Fabrics", "nvme", "Zones"] => shown.zones.iter().map(|zone| zone.name.clone()).collect(),
        ["Fabrics", "nvme", "Endpoints"] => facts.endpoints().into_iter().collect(),
        _ => return None,
    })
}

fn collection(words: &[&str], children: &[String]) -> Value {
    let path = format!("{ROOT}/{}", words.join("/"));
    let kind = match *words.last().unwrap_or(&"") {
        "Chassis" => "ChassisCollection",
        "Fabrics" => "FabricCollection",
        "Drives" => "DriveCollection",
        "NetworkAdapters" => "NetworkAdapterCollection",
        "Ports" => "PortCollection",
        "PowerSupplies" => "PowerSupplyCollection",
        "Fans" => "FanCollection",
        "Sensors" => "SensorCollection",
        "Zones" => "ZoneCollection",
        _ => "EndpointCollection",
    };
    let all: Vec<Value> = children.iter().map(|own| link(&format!("{path}/{own}"))).collect();
    json!({
        "@odata.id": path,
        "@odata.type": format!("#{kind}.{kind}"),
        "Name": words.last(),
        "Members@odata.count": all.len(),
        "Members": all,
    })
}

fn status(state: &str, health: &str) -> Value {
    json!({"State": state, "Health": health})
}

/// What is said of a part's state by the word for how it is pulled out.
fn state_of(word: &str) -> &'static str {
    match word {
        "silent" => "UnavailableOffline",
        "reset" => "Absent",
        _ => "Enabled",
    }
}

fn health(reading: Reading) -> &'static str {
    match reading {
        Reading::Ok => "OK",
        Reading::Warning => "Warning",
        Reading::Critical | Reading::Absent => "Critical",
    }
}

fn reset_action(kind: &str, path: &str) -> Value {
    let name = format!("#{kind}.Reset");
    let target = format!("{path}/Actions/{kind}.Reset");
    json!({name: {"target": target, "ResetType@Redfish.AllowableValues": RESETS}})
}

impl Facts<'_> {
    fn module(&self, name: &str) -> Option<&ShownModule> {
        self.shown.ioms.iter().find(|own| own.name == name)
    }

    fn drive(&self, number: &str) -> Option<&ShownDrive> {
        self.shown.drives.iter().find(|own| own.slot.to_string() == number)
    }

    fn port(&self, module: &str, name: &str) -> Option<&ShownPort> {
        self.module(module)?.ports.iter().find(|own| own.name == name)
    }

    fn sensor(&self, name: &str) -> Option<&ShownSensor> {
        self.shown.sensors.iter().find(|own| own.name == name)
    }

    /// How the part of a sensor is.
    fn sensor_health(&self, name: &str) -> &'static str {
        self.sensor(name).map_or("OK", |own| health(own.state))
    }

    /// Names of drives' subsystems, and of hosts that zones name.
    fn endpoints(&self) -> BTreeSet<String> {
        let drives = self.shown.drives.iter().map(|own| own.subsystem.clone());
        let hosts = self.shown.zones.iter().flat_map(|zone| zone.hosts.iter().cloned());
        drives.chain(hosts).collect()
    }

    /// The schema's version, the identifier, and the rest of a resource that is no collection.
    fn own(&self, words: &[&str]) -> Option<(&'static str, String, Value)> {
        let last = (*words.last().unwrap_or(&"RootService")).to_owned();
        let (kind, value) = match *words {
            [] => ("ServiceRoot.v1_17_0", self.root()),
            ["Chassis", "shelf"] => ("Chassis.v1_25_0", self.chassis()),
            ["Chassis", "shelf", ref rest @ ..] => self.part(rest)?,
            ["Fabrics", "nvme"] => ("Fabric.v1_3_2", fabric()),
            ["Fabrics", "nvme", "Zones", name] => {
                let zone = self.shown.zones.iter().find(|own| own.name == name)?;
                ("Zone.v1_6_3", self.zone(zone))
            }
            ["Fabrics", "nvme", "Endpoints", name] => ("Endpoint.v1_8_2", self.endpoint(name)?),
            ["EventService"] => ("EventService.v1_10_3", events()),
            _ => return None,
        };
        Some((kind, last, value))
    }

    fn root(&self) -> Value {
        json!({
            "Name": "Shelf",
            "RedfishVersion": "1.20.0",
            "Vendor": "Palisade",
            "Product": "Palisade shelf",
            "UUID": self.plan.identifier(0, 0).to_string(),
            "Chassis": link(&format!("{ROOT}/Chassis")),
            "Fabrics": link(&format!("{ROOT}/Fabrics")),
            "EventService": link(&format!("{ROOT}/EventService")),
            "ProtocolFeaturesSupported": {"ExpandQuery": {"Levels": true, "MaxLevels": 1,
                "ExpandAll": true, "NoLinks": true, "Links": false}},
        })
    }

    fn chassis(&self) -> Value {
        let is_off = self.shown.ioms.iter().all(|own| own.state == "reset");
        let states = self.shown.sensors.iter().map(|own| health(own.state));
        let worst =
            ["Critical", "Warning"].into_iter().find(|bad| states.clone().any(|s| s == *bad));
        let parts = worst.unwrap_or("OK");
        json!({
            "Name": format!("Shelf {}", self.plan.serial),
            "ChassisType": "StorageEnclosure",
            "Manufacturer": "Palisade",
            "Model": self.plan.model.map_or("Palisade shelf", |(model, _)| model.name),
            "SerialNumber": self.plan.serial,
            "PowerState": if is_off { "Off" } else { "On" },
            "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": parts},
            "Drives": below("Drives"),
            "NetworkAdapters": below("NetworkAdapters"),
            "PowerSubsystem": below("PowerSubsystem"),
            "ThermalSubsystem": below("ThermalSubsystem"),
            "Sensors": below("Sensors"),
            "Actions": reset_action("Chassis", &format!("{ROOT}/Chassis/shelf")),
        })
    }

    /// What hangs on the chassis.
    fn part(&self, words: &[&str]) -> Option<(&'static str, Value)> {
        Some(match *words {
            ["Drives", number] => ("Drive.v1_20_0", self.drive_resource(self.drive(number)?)),
            ["NetworkAdapters", name] => {
                ("NetworkAdapter.v1_11_0", self.adapter(self.module(name)?))
            }
            ["NetworkAdapters", module, "Ports", name] => {
                ("Port.v1_13_0", port_resource(self.port(module, name)?))
            }
            ["PowerSubsystem"] => (
                "PowerSubsystem.v1_1_2",
                json!({"Name": "Power", "PowerSupplies": below("PowerSubsystem/PowerSupplies")}),
            ),
            ["PowerSubsystem", "PowerSupplies", number] => {
                ("PowerSupply.v1_6_0", self.supply(number)?)
            }
            ["PowerSubsystem", "PowerSupplies", number, "Metrics"] => {
                let sensor = self.sensor(&format!("psu.{number}"))?;
                let watts = reading(sensor, "Reading");
                ("PowerSupplyMetrics.v1_1_1", json!({"Name": "Metrics", "InputPowerWatts": watts}))
            }
            ["ThermalSubsystem"] => (
                "ThermalSubsystem.v1_3_2",
                json!({"Name": "Cooling", "Fans": below("ThermalSubsystem/Fans")}),
            ),
            ["ThermalSubsystem", "Fans", number] => {
                let sensor = self.sensor(&format!("fan.{number}"))?;
                let own = json!({"Name": format!("Fan {number}"), "Status": sensor_status(sensor),
                    "SpeedPercent": reading(sensor, "SpeedRPM")});
                ("Fan.v1_5_1", own)
            }
            ["Sensors", name] => ("Sensor.v1_9_0", sensor_resource(self.sensor(name)?)),
            _ => return None,
        })
    }

    fn drive_resource(&self, drive: &ShownDrive) -> Value {
        let (number, path) = (drive.slot, format!("{ROOT}/Chassis/shelf/Drives/{}", drive.slot));
        let name = json!({"DurableNameFormat": "NQN", "DurableName": drive.subsystem});
        let uuid = |uuid: &String| json!({"DurableNameFormat": "UUID", "DurableName": uuid});
        let uuids = drive.namespaces.iter().map(|own| uuid(&own.uuid));
        let names: Vec<Value> = [name].into_iter().chain(uuids).collect();
        let temperature = self.sensor_health(&format!("drive.{number}.temperature"));
        json!({
            "Name": format!("Drive {number}"),
            "SerialNumber": drive.serial,
            "Model": self.plan.model.map_or("Palisade shelf", |(model, _)| model.name),
            "CapacityBytes": drive.namespaces.iter().map(|own| own.bytes).sum::<u64>(),
            "Protocol": "NVMeOverFabrics",
            "MediaType": "SSD",
            "PowerState": if drive.state == "reset" { "Off" } else { "On" },
            "LocationIndicatorActive": drive.located,
            "Status": status(state_of(drive.state), temperature),
            "PhysicalLocation": {"PartLocation": {"LocationType": "Slot",
                "LocationOrdinalValue": number, "ServiceLabel": number.to_string()}},
            "Identifiers": names,
            "Links": {"Chassis": link(&format!("{ROOT}/Chassis/shelf")), "Endpoints":
                [link(&format!("{ROOT}/Fabrics/nvme/Endpoints/{}", drive.subsystem))]},
            "Actions": reset_action("Drive", &path),
            "Oem": {"Palisade": {"Hosts": drive.hosts, "SlowMilliseconds": drive.slow_ms}},
        })
    }

    fn adapter(&self, module: &ShownModule) -> Value {
        let name = &module.name;
        let path = format!("{ROOT}/Chassis/shelf/NetworkAdapters/{name}");
        let temperature = self.sensor_health(&format!("iom.{name}.temperature"));
        json!({
            "Name": format!("IO module {name}"),
            "Status": status(state_of(module.state), temperature),
            "Ports": link(&format!("{path}/Ports")),
            "Actions": reset_action("NetworkAdapter", &path),
        })
    }

    fn supply(&self, number: &str) -> Option<Value> {
        let sensor = self.sensor(&format!("psu.{number}"))?;
        let metrics = below(&format!("PowerSubsystem/PowerSupplies/{number}/Metrics"));
        Some(json!({"Name": format!("Power supply {number}"), "Status": sensor_status(sensor),
            "Metrics": metrics}))
    }

    fn zone(&self, zone: &ZoneWords) -> Value {
        let drives = self.shown.drives.iter().filter(|own| zone.drives.contains(&own.slot));
        let ends = drives.map(|own| &own.subsystem).chain(&zone.hosts);
        let ends: Vec<Value> =
            ends.map(|own| link(&format!("{ROOT}/Fabrics/nvme/Endpoints/{own}"))).collect();
        json!({
            "Name": zone.name,
            "ZoneType": "ZoneOfEndpoints",
            "Links": {"Endpoints": ends},
            "Oem": {"Palisade": {"Hosts": zone.hosts, "Drives": zone.drives,
                "Namespaces": zone.namespaces, "Ports": zone.ports}},
        })
    }

    fn endpoint(&self, name: &str) -> Option<Value> {
        if !self.endpoints().contains(name) {
            return None;
        }
        let drive = self.shown.drives.iter().find(|own| own.subsystem == name);
        let entity = match drive {
            Some(own) => json!({"EntityType": "Drive", "EntityRole": "Target",
                "EntityLink": below(&format!("Drives/{}", own.slot))}),
            None => json!({"EntityType": "NetworkController", "EntityRole": "Initiator"}),
        };
        Some(json!({
            "Name": name,
            "EndpointProtocol": "NVMeOverFabrics",
            "ConnectedEntities": [entity],
            "Identifiers": [{"DurableNameFormat": "NQN", "DurableName": name}],
        }))
    }
}

/// A reading where another resource than the sensor's has it.
fn reading(sensor: &ShownSensor, key: &str) -> Value {
    let source = format!("{ROOT}/Chassis/shelf/Sensors/{}", sensor.name);
    json!({key: sensor.value, "DataSourceUri": source})
}

fn sensor_status(sensor: &ShownSensor) -> Value {
    match sensor.state {
        Reading::Absent => json!({"State": "Absent"}),
        state => status("Enabled", health(state)),
    }
}

fn sensor_resource(sensor: &ShownSensor) -> Value {
    let (kind, units) = match sensor.unit {
        "celsius" => ("Temperature", "Cel"),
        "rpm" => ("Rotational", "{rev}/min"),
        _ => ("Power", "W"),
    };
    let side = if sensor.warning < sensor.critical { "Upper" } else { "Lower" };
    let limits = [("Caution", sensor.warning), ("Critical", sensor.critical)];
    let limits: Map<String, Value> = limits
        .map(|(what, limit)| (format!("{side}{what}"), json!({"Reading": limit})))
        .into_iter()
        .collect();
    json!({
        "Name": sensor.name,
        "Reading": sensor.value,
        "ReadingType": kind,
        "ReadingUnits": units,
        "Status": sensor_status(sensor),
        "Thresholds": limits,
    })
}

fn port_resource(port: &ShownPort) -> Value {
    let is_up = port.state == "ok";
    json!({
        "Name": format!("Port {}", port.name),
        "InterfaceEnabled": port.state != "reset",
        "LinkState": if port.state == "reset" { "Disabled" } else { "Enabled" },
        "LinkStatus": if is_up { "LinkUp" } else { "LinkDown" },
        "CurrentSpeedGbps": f64::from(port.mbps) / 1000.0,
        "PortProtocol": "Ethernet",
        "Status": status(state_of(port.state), if is_up { "OK" } else { "Warning" }),
        "Oem": {"Palisade":
            {"Address": port.address, "MTUSize": port.mtu, "Hosts": port.hosts}},
    })
}

fn fabric() -> Value {
    let path = format!("{ROOT}/Fabrics/nvme");
    json!({
        "Name": "NVMe/TCP",
        "FabricType": "NVMeOverFabrics",
        "Zones": link(&format!("{path}/Zones")),
        "Endpoints": link(&format!("{path}/Endpoints")),
    })
}

fn events() -> Value {
    json!({
        "Name": "Events",
        "ServiceEnabled": true,
        "ServerSentEventUri": STREAM,
        "EventFormatTypes": ["Event"],
    })
}

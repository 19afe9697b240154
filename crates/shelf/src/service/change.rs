//! What a request to the management service would change, in the words of `shelf ctl`. No I/O.

use super::tree::{Facts, RESETS, ROOT};
use crate::ask::Ask;
use crate::state::Pull;
use crate::zone::ZoneWords;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Why a request is not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    /// The status of HTTP.
    pub status: u16,
    /// In words.
    pub message: String,
}

impl Refusal {
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Reset {
    reset_type: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Drive {
    location_indicator_active: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Port {
    interface_enabled: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Zone {
    #[serde(alias = "Id")]
    name: String,
    zone_type: Option<String>,
    #[serde(default)]
    links: Links,
    #[serde(default)]
    oem: Oem,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Links {
    #[serde(default)]
    endpoints: Vec<Link>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    #[serde(rename = "@odata.id")]
    path: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Oem {
    #[serde(default)]
    palisade: OwnZone,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase", default)]
struct OwnZone {
    hosts: Vec<String>,
    drives: Vec<usize>,
    namespaces: Vec<usize>,
    ports: Vec<String>,
}

/// What may be done with a path besides being read; none: nothing.
pub(super) fn method(words: &[&str]) -> Option<&'static str> {
    match *words {
        ["Chassis", "shelf", "Drives", _] => Some("PATCH"),
        ["Chassis", "shelf", "NetworkAdapters", _, "Ports", _] => Some("PATCH"),
        ["Fabrics", "nvme", "Zones"] => Some("POST"),
        ["Fabrics", "nvme", "Zones", _] => Some("DELETE"),
        _ => None,
    }
}

/// The part that an action is of: its kind and its name.
pub(super) fn action<'a>(words: &[&'a str]) -> Option<(&'static str, Option<&'a str>)> {
    match *words {
        ["Chassis", "shelf", "Actions", "Chassis.Reset"] => Some(("shelf", None)),
        ["Chassis", "shelf", "Drives", number, "Actions", "Drive.Reset"] => {
            Some(("drive", Some(number)))
        }
        ["Chassis", "shelf", "NetworkAdapters", name, "Actions", "NetworkAdapter.Reset"] => {
            Some(("iom", Some(name)))
        }
        _ => None,
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::new(400, format!("the body: {error}")))
}

fn power(part: &str, name: Option<&str>, is_on: bool) -> Ask {
    let (part, name) = (part.to_owned(), name.map(str::to_owned));
    match is_on {
        true => Ask::Restore { part, name },
        false => Ask::Pull { part, name, how: Pull::Reset },
    }
}

/// What a request to a resource that is there, by a method that it has, asks of the shelf.
///
/// # Errors
/// The body is not what it should be.
pub(super) fn asked(facts: &Facts<'_>, words: &[&str], body: &[u8]) -> Result<Ask, Refusal> {
    if let Some((part, name)) = action(words) {
        let Reset { reset_type } = read(body)?;
        let Some(at) = RESETS.iter().position(|own| *own == reset_type) else {
            let told = format!("ResetType is {reset_type:?}, and can be {}", RESETS.join(" or "));
            return Err(Refusal::new(400, told));
        };
        return Ok(power(part, name, at == 0));
    }
    match *words {
        ["Chassis", "shelf", "Drives", number] => {
            let Drive { location_indicator_active: is_on } = read(body)?;
            let value = if is_on { "on" } else { "off" }.to_owned();
            Ok(Ask::Set { name: format!("drive.{number}.locate"), value })
        }
        ["Chassis", "shelf", "NetworkAdapters", _, "Ports", name] => {
            let Port { interface_enabled } = read(body)?;
            Ok(power("port", Some(name), interface_enabled))
        }
        ["Fabrics", "nvme", "Zones", name] => Ok(Ask::RemoveZone { name: name.to_owned() }),
        _ => zone(facts, read(body)?),
    }
}

/// A zone of endpoints, which are drives of the shelf and hosts, and of what is said beside them.
fn zone(facts: &Facts<'_>, zone: Zone) -> Result<Ask, Refusal> {
    let Zone { name, zone_type, links, oem: Oem { palisade: own } } = zone;
    if zone_type.is_some_and(|own| own != "ZoneOfEndpoints") {
        return Err(Refusal::new(400, "ZoneType can be ZoneOfEndpoints only"));
    }
    let mut zone = ZoneWords {
        name,
        hosts: own.hosts,
        drives: own.drives,
        namespaces: own.namespaces,
        ports: own.ports,
    };
    for Link { path } in links.endpoints {
        let words = super::tree::words(&path).unwrap_or_default();
        let [fabrics, nvme, endpoints, name] = &words[..] else {
            let told = format!("{path} is no endpoint: {ROOT}/Fabrics/nvme/Endpoints/NQN is");
            return Err(Refusal::new(400, told));
        };
        if [fabrics, nvme, endpoints] != ["Fabrics", "nvme", "Endpoints"] {
            return Err(Refusal::new(400, format!("{path} is no endpoint of this fabric")));
        }
        match facts.shown.drives.iter().find(|own| own.subsystem == *name) {
            Some(drive) => zone.drives.push(drive.slot),
            None => zone.hosts.push(name.clone()),
        }
    }
    Ok(Ask::AddZone(zone))
}

/// The resource that a change is told of.
pub(crate) fn origin(ask: &Ask, module_of: impl Fn(&str) -> Option<String>) -> String {
    let chassis = format!("{ROOT}/Chassis/shelf");
    let part = |part: &str, name: Option<&str>| match (part, name) {
        ("drive", Some(number)) => format!("{chassis}/Drives/{number}"),
        ("iom", Some(name)) => format!("{chassis}/NetworkAdapters/{}", name.to_uppercase()),
        ("port", Some(name)) => module_of(name).map_or_else(
            || chassis.clone(),
            |module| {
                let name = name.to_uppercase();
                format!("{chassis}/NetworkAdapters/{module}/Ports/{name}")
            },
        ),
        _ => chassis.clone(),
    };
    match ask {
        Ask::Pull { part: kind, name, .. } | Ask::Restore { part: kind, name } => {
            part(kind, name.as_deref())
        }
        Ask::Slow { drive, .. } => part("drive", Some(drive)),
        Ask::Set { name, .. } => match name.split('.').collect::<Vec<_>>()[..] {
            ["drive", number, "locate"] => part("drive", Some(number)),
            ["port", name, ..] => part("port", Some(name)),
            _ => format!("{chassis}/Sensors/{name}"),
        },
        Ask::AddZone(ZoneWords { name, .. }) | Ask::RemoveZone { name } => {
            format!("{ROOT}/Fabrics/nvme/Zones/{name}")
        }
        Ask::Show => chassis.clone(),
    }
}

//! Exports, as connections of fabrics, and who is at their ends. What this machine itself
//! uses is one of them, without ends.

use super::drives::pairs;
use super::{Standing, collection, link, links, uri};
use crate::oem;
use crate::routes::ROOT;
use crate::view::{Array, Export, View, Volume};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The fabrics.
pub(super) const ALL: [&str; 5] = ["nvme", "nbd", "iscsi", "fc", "local"];

pub(super) fn fabrics() -> Value {
    let uris = ALL.map(uri::fabric);
    collection(&format!("{ROOT}/Fabrics"), "FabricCollection", "Fabrics", uris)
}

pub(super) fn fabric(view: &View, id: &str) -> Option<Value> {
    let (name, kind) = match id {
        "nvme" => ("NVMe/TCP", "NVMeOverFabrics"),
        "nbd" => ("NBD", "OEM"),
        "iscsi" => ("iSCSI", "iSCSI"),
        "fc" => ("Fibre Channel", "FC"),
        "local" => ("This machine", "OEM"),
        _ => return None,
    };
    let uri = uri::fabric(id);
    let mut resource = json!({
        "@odata.id": uri,
        "@odata.type": "#Fabric.v1_4_0.Fabric",
        "Id": id,
        "Name": name,
        "FabricType": kind,
        "Status": Standing::GOOD.status(),
        "Connections": link(format!("{uri}/Connections")),
        "Endpoints": link(format!("{uri}/Endpoints")),
    });
    if id == "fc" {
        let ports = view.ports.iter().cloned().map(Into::into).collect();
        super::put(&mut resource, "Oem", oem::wrapped(&oem::Fabric { ports }));
    }
    Some(resource)
}

/// An export and where it belongs.
pub(super) struct Own<'a> {
    array: &'a Array,
    export: &'a Export,
    number: u32,
}

/// The exports of an array.
pub(super) fn exports_of(array: &Array) -> impl Iterator<Item = Own<'_>> {
    array.exports.iter().filter_map(move |export| {
        let number = uri::export_number(&export.id)?;
        Some(Own { array, export, number })
    })
}

fn exports<'a>(view: &'a View, fabric: &'a str) -> impl Iterator<Item = Own<'a>> {
    let all = view.status.arrays.iter().flat_map(exports_of);
    all.filter(move |own| own.fabric() == fabric)
}

impl Own<'_> {
    fn fabric(&self) -> &'static str {
        self.export.kind.fabric()
    }

    fn id(&self) -> String {
        uri::connection_id(&self.array.uuid, self.number)
    }

    /// Its URI.
    pub(super) fn uri(&self) -> String {
        uri::connection(self.fabric(), &self.id())
    }

    /// Whether it serves this volume of its array.
    pub(super) fn names(&self, volume: &Volume) -> bool {
        self.export.volume == volume.name
    }

    /// What serves it.
    fn target(&self) -> Option<End> {
        let export = self.export;
        if let Some(fc) = &export.fc {
            return Some(match &fc.subsystem {
                Some(name) => End { role: Role::Subsystem, name: name.clone() },
                None => End { role: Role::Target, name: fc.port.clone() },
            });
        }
        match (&export.nvme, &export.nbd, &export.iscsi) {
            (Some(nvme), ..) => Some(End { role: Role::Subsystem, name: nvme.subsystem.clone() }),
            (None, Some(nbd), _) => Some(End { role: Role::Listener, name: nbd.clone() }),
            (None, None, Some(iscsi)) => {
                Some(End { role: Role::Target, name: iscsi.target.clone() })
            }
            (None, None, None) => None,
        }
    }

    /// Hosts that may have it or have it, if they are known by name.
    fn hosts(&self) -> BTreeSet<End> {
        let host = |name: &String| End { role: Role::Host, name: name.clone() };
        if let Some(iscsi) = &self.export.iscsi {
            return iscsi.initiators.iter().map(host).collect();
        }
        if let Some(fc) = &self.export.fc {
            return fc.initiators.iter().map(host).collect();
        }
        let Some(nvme) = &self.export.nvme else { return BTreeSet::new() };
        let connected = nvme.connections.iter().map(|connection| &connection.host);
        let named = nvme.hosts.iter().chain(connected).filter(|name| !name.is_empty());
        named.map(host).collect()
    }

    /// Whether it has this end.
    fn has(&self, end: &End) -> bool {
        if let Some(iscsi) = &self.export.iscsi {
            return match end.role {
                Role::Target => iscsi.target == end.name,
                Role::Host => iscsi.initiators.contains(&end.name),
                Role::Subsystem | Role::Listener => false,
            };
        }
        if let Some(fc) = &self.export.fc {
            return match end.role {
                Role::Host => fc.initiators.contains(&end.name),
                _ => self.target().as_ref() == Some(end),
            };
        }
        let Some(nvme) = &self.export.nvme else {
            return end.role == Role::Listener && self.export.nbd.as_ref() == Some(&end.name);
        };
        match end.role {
            Role::Subsystem => nvme.subsystem == end.name,
            Role::Listener | Role::Target => false,
            Role::Host => {
                let is_connected = nvme.connections.iter().any(|host| host.host == end.name);
                is_connected || nvme.hosts.contains(&end.name)
            }
        }
    }

    /// The endpoints that serve it.
    pub(super) fn targets(&self) -> Vec<String> {
        self.target().iter().map(|end| end.uri(self.fabric())).collect()
    }

    /// The endpoints of its hosts.
    pub(super) fn initiators(&self) -> Vec<String> {
        self.hosts().iter().map(|end| end.uri(self.fabric())).collect()
    }
}

pub(super) fn connections(view: &View, fabric: &str) -> Option<Value> {
    let fabric = *ALL.iter().find(|own| **own == fabric)?;
    let uri = format!("{}/Connections", uri::fabric(fabric));
    let uris = exports(view, fabric).map(|own| own.uri());
    Some(collection(&uri, "ConnectionCollection", "Exports", uris))
}

pub(super) fn connection(view: &View, fabric: &str, id: &str) -> Option<Value> {
    let (array, number) = uri::connection_of(id)?;
    let mut all = exports(view, fabric);
    let own = all.find(|own| own.array.uuid == array && own.number == number)?;
    let export = own.export;
    let standing = match (export.serving, export.problem.is_some()) {
        (true, false) => Standing::GOOD,
        (true, true) => Standing::enabled("Warning"),
        (false, _) => Standing { state: "UnavailableOffline", health: "Critical" },
    };
    let access = if export.serving { "Optimized" } else { "Unavailable" };
    let mut volumes = own.array.volumes.iter();
    let volume = volumes.find(|volume| own.names(volume)).map(|volume| {
        json!({
            "Volume": link(uri::volume(&volume.uuid)),
            "AccessCapabilities": ["Read", "Write"],
            "AccessState": access,
        })
    });
    Some(json!({
        "@odata.id": own.uri(),
        "@odata.type": "#Connection.v1_4_0.Connection",
        "Id": id,
        "Name": export.id,
        "ConnectionType": "Storage",
        "Status": standing.status(),
        "VolumeInfo": volume.into_iter().collect::<Vec<_>>(),
        "Links": {
            "InitiatorEndpoints": links(own.initiators()),
            "TargetEndpoints": links(own.targets()),
        },
        "Oem": oem::wrapped(&oem::Connection::new(export, own.number)),
    }))
}

/// What an endpoint is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Subsystem,
    Target,
    Listener,
    Host,
}

/// An end of connections.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    role: Role,
    name: String,
}

/// Roles, and what identifiers of endpoints begin with.
const ROLES: [(Role, &str); 4] = [
    (Role::Subsystem, "subsystem"),
    (Role::Target, "target"),
    (Role::Listener, "listener"),
    (Role::Host, "host"),
];

impl End {
    fn id(&self) -> String {
        let role = ROLES.iter().find(|(role, _)| *role == self.role).map_or("", |(_, word)| word);
        uri::endpoint_id(role, &self.name)
    }

    /// The end that an identifier stands for.
    fn of(id: &str) -> Option<Self> {
        let (word, name) = uri::endpoint_of(id)?;
        let (role, _) = ROLES.iter().find(|(_, own)| *own == word)?;
        Some(Self { role: *role, name })
    }

    fn uri(&self, fabric: &str) -> String {
        uri::endpoint(fabric, &self.id())
    }
}

/// What is known of an endpoint.
#[derive(Default)]
struct Known {
    connections: Vec<String>,
    listeners: BTreeSet<String>,
    /// A host's controllers, by subsystem: exports of one have them in common.
    controllers: BTreeSet<(String, u16)>,
    is_served: bool,
    /// A host has one of them over iSCSI or by FCP.
    is_connected: bool,
}

impl Known {
    /// An export's end, if any has it.
    fn of(view: &View, fabric: &str, end: &End) -> Option<Self> {
        let mut known = Self::default();
        for own in exports(view, fabric).filter(|own| own.has(end)) {
            known.connections.push(own.uri());
            known.is_served |= own.export.serving;
            known.listeners.extend(own.export.nbd.clone());
            if let Some(iscsi) = &own.export.iscsi {
                known.is_connected |= iscsi.sessions.contains(&end.name);
                if end.role == Role::Target {
                    known.listeners.extend(iscsi.portals.iter().cloned());
                }
            }
            if let Some(fc) = &own.export.fc {
                known.is_connected |= fc.sessions.contains(&end.name);
            }
            let Some(nvme) = &own.export.nvme else { continue };
            if end.role == Role::Subsystem {
                known.listeners.extend(nvme.listeners.iter().cloned());
                continue;
            }
            let here = nvme.connections.iter().filter(|host| host.host == end.name);
            known.controllers.extend(here.map(|host| (nvme.subsystem.clone(), host.controller)));
        }
        (!known.connections.is_empty()).then_some(known)
    }
}

pub(super) fn endpoints(view: &View, fabric: &str) -> Option<Value> {
    let fabric = *ALL.iter().find(|own| **own == fabric)?;
    let uri = format!("{}/Endpoints", uri::fabric(fabric));
    let both = |own: Own<'_>| own.target().into_iter().chain(own.hosts());
    let ends: BTreeSet<End> = exports(view, fabric).flat_map(both).collect();
    let uris = ends.iter().map(|end| end.uri(fabric));
    Some(collection(&uri, "EndpointCollection", "Endpoints", uris))
}

pub(super) fn endpoint(view: &View, fabric: &str, id: &str) -> Option<Value> {
    let end = End::of(id)?;
    let known = Known::of(view, fabric, &end)?;
    let is_there = match end.role {
        Role::Host => known.is_connected || !known.controllers.is_empty(),
        Role::Subsystem | Role::Target | Role::Listener => known.is_served,
    };
    let state = if is_there { "Enabled" } else { "StandbyOffline" };
    let details: Vec<Value> = known.listeners.iter().filter_map(|at| transport(at)).collect();
    let mut resource = json!({
        "@odata.id": end.uri(fabric),
        "@odata.type": "#Endpoint.v1_8_2.Endpoint",
        "Id": id,
        "Name": end.name,
        "EndpointProtocol": match fabric {
            "nvme" => "NVMeOverFabrics",
            "iscsi" => "iSCSI",
            "fc" if form(fabric, &end.name) == "NQN" => "NVMeOverFabrics",
            "fc" => "FCP",
            _ => "OEM",
        },
        "Status": Standing { state, health: "OK" }.status(),
        "ConnectedEntities": [entity(end.role)],
        "IPTransportDetails": details,
        "Links": {"Connections": links(known.connections)},
        "Oem": oem::wrapped(&oem::Endpoint {
            controllers: known.controllers.len() as u64,
            listeners: known.listeners.into_iter().collect(),
        }),
    });
    if end.role != Role::Listener {
        let (name, form) = identifier(fabric, &end.name);
        let name = json!([{"DurableName": name, "DurableNameFormat": form}]);
        super::put(&mut resource, "Identifiers", name);
    }
    Some(resource)
}

/// An end's name, and its form. Names of iSCSI that are digits behind what says of which kind
/// (RFC 7143, section 4.2.7.1) are these alone: DSP0268, `Identifier`.
fn identifier(fabric: &str, name: &str) -> (String, &'static str) {
    let form = form(fabric, name);
    let digits = name.get(4..).unwrap_or_default();
    match form {
        "EUI" => (pairs(digits), form),
        "NAA" => (digits.to_owned(), form),
        _ => (name.to_owned(), form),
    }
}

/// The form of an end's name.
fn form(fabric: &str, name: &str) -> &'static str {
    match (fabric, name.get(..4)) {
        ("iscsi", Some("eui.")) => "EUI",
        ("iscsi", Some("naa.")) => "NAA",
        ("iscsi", _) => "iQN",
        ("fc", own) if own != Some("nqn.") => "FC_WWN",
        _ => "NQN",
    }
}

fn entity(role: Role) -> Value {
    match role {
        Role::Host => json!({"EntityType": "StorageInitiator", "EntityRole": "Initiator"}),
        Role::Subsystem | Role::Target | Role::Listener => json!({
            "EntityType": "StorageSubsystem",
            "EntityRole": "Target",
            "EntityLink": link(uri::STORAGE),
        }),
    }
}

/// A listener at an address of IP; none for a path or a name.
fn transport(listener: &str) -> Option<Value> {
    let at: SocketAddr = listener.parse().ok()?;
    let (property, address) = match at {
        SocketAddr::V4(at) => ("IPv4Address", at.ip().to_string()),
        SocketAddr::V6(at) => ("IPv6Address", at.ip().to_string()),
    };
    Some(json!({
        "TransportProtocol": "TCP", "Port": at.port(), property: {"Address": address},
    }))
}

#[cfg(test)]
mod tests {
    use super::identifier;

    #[test]
    fn names_are_as_their_forms_want_them() {
        let eui = ("02-00-45-67-a4-25-67-8d".to_owned(), "EUI");
        assert_eq!(identifier("iscsi", "eui.02004567a425678d"), eui);
        let naa = ("52004567ba64678d".to_owned(), "NAA");
        assert_eq!(identifier("iscsi", "naa.52004567ba64678d"), naa);
        for (fabric, name, form) in [
            ("iscsi", "iqn.2026-11.example:a", "iQN"),
            ("fc", "20:00:00:25:b5:00:00:1f", "FC_WWN"),
            ("fc", "nqn.2026-11.example:a", "NQN"),
            ("nvme", "nqn.2026-11.example:a", "NQN"),
        ] {
            assert_eq!(identifier(fabric, name), (name.to_owned(), form));
        }
    }
}

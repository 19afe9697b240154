//! The machine, the daemon and the one Storage.
//!
//! Invariant: what is worst of arrays, drives and of what is around these is told as the machine's
//! `HealthRollup`.

use super::{Standing, alerts, chassis, collection, link, links, pools, uri};
use crate::dates;
use crate::messages::Severity;
use crate::oem;
use crate::routes::ROOT;
use crate::view::{Health, View};
use serde_json::{Value, json};

pub(super) fn systems() -> Value {
    let uris = [uri::SYSTEM.to_owned()];
    let name = "Machines";
    collection(&format!("{ROOT}/Systems"), "ComputerSystemCollection", name, uris)
}

pub(super) fn system(view: &View) -> Value {
    json!({
        "@odata.id": uri::SYSTEM,
        "@odata.type": "#ComputerSystem.v1_28_0.ComputerSystem",
        "Id": "local",
        "Name": "The machine that the daemon runs on",
        "HostName": super::named(&view.server.name),
        "PowerState": "On",
        "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": worst(view, |_| true)},
        "Storage": link(format!("{}/Storage", uri::SYSTEM)),
        "EthernetInterfaces": link(uri::PORTS),
        "Links": {
            "Chassis": links(chassis::uris(view)),
            "ManagedBy": [link(uri::MANAGER)],
        },
    })
}

pub(super) fn storages() -> Value {
    let at = format!("{}/Storage", uri::SYSTEM);
    collection(&at, "StorageCollection", "Storage", [uri::STORAGE.to_owned()])
}

pub(super) fn storage(view: &View) -> Value {
    let drives = links(view.drives.iter().map(|known| uri::drive(&known.id)));
    json!({
        "@odata.id": uri::STORAGE,
        "@odata.type": "#Storage.v1_22_0.Storage",
        "Id": "palisade",
        "Name": "Palisade",
        "Status": {
            "State": "Enabled", "Health": "OK", "HealthRollup": worst(view, is_stored),
        },
        "StoragePools": link(uri::POOLS),
        "Volumes": link(uri::VOLUMES),
        "FileSystems": link(uri::FILE_SYSTEMS),
        "Drives@odata.count": drives.len(),
        "Drives": drives,
        "Links": {"Enclosures": links(chassis::uris(view))},
        "Actions": {"Oem": {
            "#PalisadeStorage.FindDrives": {
                "target": format!("{}/Actions/Oem/PalisadeStorage.FindDrives", uri::STORAGE),
            },
        }},
    })
}

pub(super) fn managers() -> Value {
    let uris = [uri::MANAGER.to_owned()];
    collection(&format!("{ROOT}/Managers"), "ManagerCollection", "Daemons", uris)
}

pub(super) fn manager(view: &View) -> Value {
    let (server, status) = (&view.server, &view.status);
    let standing = match (status.ready, status.next.is_empty()) {
        (false, _) => Standing { state: "Starting", health: "OK" },
        (true, true) => Standing::GOOD,
        (true, false) => Standing::enabled("Warning"),
    };
    let action = |name| format!("{}/Actions/Oem/PalisadeManager.{name}", uri::MANAGER);
    let mut manager = json!({
        "@odata.id": uri::MANAGER,
        "@odata.type": "#Manager.v1_25_0.Manager",
        "Id": "palisade",
        "Name": "The Palisade daemon",
        "ManagerType": "Service",
        "Model": "Palisade",
        "FirmwareVersion": status.version,
        "DateTime": dates::text(server.now),
        "LastResetTime": dates::text(server.since),
        "Status": alerts::status(view, standing, uri::MANAGER, is_managed),
        "LogServices": link(uri::LOG_SERVICES),
        "NetworkProtocol": link(uri::NETWORK_PROTOCOL),
        "EthernetInterfaces": link(uri::PORTS),
        "Links": {
            "ManagerForServers": [link(uri::SYSTEM)],
            "ManagerForChassis": links(chassis::uris(view)),
            "ManagerForFabrics": links(super::fabrics::ALL.map(uri::fabric)),
        },
        "Actions": {"Oem": {
            "#PalisadeManager.Discover": {"target": action("Discover")},
            "#PalisadeManager.Connect": {"target": action("Connect")},
            "#PalisadeManager.Disconnect": {"target": action("Disconnect")},
        }},
        "Oem": oem::wrapped(&oem::Manager::from(view)),
    });
    super::put_named(&mut manager, "ServiceEntryPointUUID", &server.uuid);
    super::put_named(&mut manager, "ServiceIdentification", &server.name);
    manager
}

/// Whether a resource is of the Storage: arrays, volumes, exports and drives.
fn is_stored(of: &str) -> bool {
    [uri::STORAGE, uri::DRIVES, uri::FABRICS].iter().any(|own| of.starts_with(own))
}

/// Whether a resource is the daemon's own.
fn is_managed(of: &str) -> bool {
    [uri::MANAGER, uri::EVENT_SERVICE, uri::ACCOUNT_SERVICE].iter().any(|own| of.starts_with(own))
}

/// The worst health of any array and drive, of what is around drives, and of the alerts about these
/// URIs.
fn worst(view: &View, is_of: impl Fn(&str) -> bool) -> &'static str {
    let arrays = view.status.arrays.iter().filter_map(|array| pools::standing(array).known());
    let drives = view.drives.iter().map(|known| known.hardware.health);
    let around = view.surroundings.healths();
    let healths = arrays.chain(drives).chain(around).max().unwrap_or(Health::Ok);
    Severity::from(healths).max(alerts::worst(view, is_of)).word()
}

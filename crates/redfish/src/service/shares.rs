//! File systems of volumes, and their shares.

use super::{Standing, collection, link, put, uri};
use crate::oem;
use crate::routes::{Match, Resource, encoded};
use crate::view::{FileSystem, Protocol, ServiceState, Share, View};
use serde_json::{Map, Value, json};

/// A resource of these, if it is one.
pub(super) fn rendered(view: &View, found: &Match) -> Option<Value> {
    let id = found.id(0);
    match found.route.resource {
        Resource::FileSystems => Some(file_systems(view)),
        Resource::FileSystem => file_system(view, id),
        Resource::FileShares => shares(view, id),
        Resource::FileShare => share(view, id, found.id(1)),
        _ => None,
    }
}

fn file_systems(view: &View) -> Value {
    let all = view.status.arrays.iter().flat_map(|array| &array.filesystems);
    let uris = all.map(|own| uri::file_system(&own.volume_uuid));
    collection(uri::FILE_SYSTEMS, "FileSystemCollection", "File systems", uris)
}

fn file_system(view: &View, volume: &str) -> Option<Value> {
    let (array, own) = view.file_system(volume)?;
    let uuid = &own.volume_uuid[..];
    let uri = uri::file_system(uuid);
    let action = |name| format!("{uri}/Actions/Oem/PalisadeFileSystem.{name}");
    let mut resource = json!({
        "@odata.id": uri,
        "@odata.type": "#FileSystem.v1_4_2.FileSystem",
        "Id": uuid,
        "Name": own.volume,
        "Identifiers": [{"DurableName": uuid, "DurableNameFormat": "UUID"}],
        "ExportedShares": link(uri::file_shares(uuid)),
        "Actions": {"Oem": {
            "#PalisadeFileSystem.AddUser": {"target": action("AddUser")},
            "#PalisadeFileSystem.SetUserPassword": {"target": action("SetUserPassword")},
            "#PalisadeFileSystem.DeleteUser": {"target": action("DeleteUser")},
        }},
        "Oem": oem::wrapped(&oem::FileSystem::new(array, own)),
    });
    let bytes = [("AllocatedBytes", own.size_bytes), ("ConsumedBytes", own.used_bytes)];
    let known =
        bytes.into_iter().filter_map(|(name, bytes)| Some((name.to_owned(), bytes?.into())));
    let known: Map<String, Value> = known.collect();
    if !known.is_empty() {
        put(&mut resource, "Capacity", json!({"Data": known}));
    }
    Some(resource)
}

fn shares(view: &View, volume: &str) -> Option<Value> {
    let (_, own) = view.file_system(volume)?;
    let uris = own.shares.iter().map(|share| uri::file_share(&own.volume_uuid, &share.name));
    let uri = uri::file_shares(&own.volume_uuid);
    Some(collection(&uri, "FileShareCollection", "Shares", uris))
}

fn share(view: &View, volume: &str, name: &str) -> Option<Value> {
    let (_, of) = view.file_system(volume)?;
    let own = of.share(name)?;
    let access = if own.read_only { &["Read"][..] } else { &["Read", "Write"] };
    Some(json!({
        "@odata.id": uri::file_share(&of.volume_uuid, &own.name),
        "@odata.type": "#FileShare.v1_3_0.FileShare",
        // As the URI has it.
        "Id": encoded(&own.name),
        "Name": own.name,
        "FileSharePath": format!("/shares/{}", own.name),
        "FileSharingProtocols": protocols(own),
        "DefaultAccessCapabilities": access,
        "Status": standing(of, own).status(),
        "Links": {"FileSystem": link(uri::file_system(&of.volume_uuid))},
        "Oem": oem::wrapped(&oem::FileShare::from(own)),
    }))
}

/// What clients can speak, as Swordfish calls it.
fn protocols(share: &Share) -> Vec<&'static str> {
    let words: [(Protocol, &[&str]); 2] = [
        (Protocol::Smb, &["SMBv3_0", "SMBv3_0_2", "SMBv3_1_1"]),
        (Protocol::Nfs, &["NFSv4_0", "NFSv4_1"]),
    ];
    let own = words.into_iter().filter(|(protocol, _)| share.is_by(*protocol));
    own.flat_map(|(_, words)| words).copied().collect()
}

/// A share is as well as its file system, and as clients find it.
fn standing(of: &FileSystem, share: &Share) -> Standing {
    let by = |state| share.protocols.iter().filter(move |own| own.health.state == state).count();
    let failed = by(ServiceState::Failed);
    let is_starting = of.health.state == ServiceState::Starting || by(ServiceState::Starting) > 0;
    match of.health.state {
        ServiceState::Failed => Standing { state: "UnavailableOffline", health: "Critical" },
        _ if failed > 0 && failed == share.protocols.len() => {
            Standing { state: "UnavailableOffline", health: "Critical" }
        }
        _ if failed > 0 => Standing::enabled("Warning"),
        _ if is_starting => Standing { state: "Starting", health: "OK" },
        _ => Standing::GOOD,
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;

//! Drives.

use super::{Standing, collection, link, links, uri};
use crate::oem;
use crate::view::{DriveState, KnownDrive, View};
use serde_json::{Value, json};

pub(super) fn drives(view: &View) -> Value {
    let members = view.drives.iter().map(|known| uri::drive(&known.id));
    collection(uri::DRIVES, "DriveCollection", "Drives", members)
}

pub(super) fn drive(view: &View, id: &str) -> Option<Value> {
    let known = view.drives.iter().find(|known| known.id == id)?;
    let drive = &known.drive;
    let uri = uri::drive(id);
    let here = |path: &Option<String>| path.as_ref() == Some(&drive.path);
    let arrays = view.status.arrays.iter();
    let pools = arrays.filter(|array| array.slots.iter().any(|slot| here(&slot.drive)));
    let is_nvme = drive.path.starts_with("/dev/nvme");
    Some(json!({
        "@odata.id": uri,
        "@odata.type": "#Drive.v1_22_0.Drive",
        "Id": id,
        "Name": drive.path,
        "Status": standing(drive.state).status(),
        "Model": known.model,
        "SerialNumber": drive.serial,
        "CapacityBytes": drive.bytes,
        "BlockSizeBytes": drive.block_bytes,
        "Protocol": is_nvme.then_some("NVMe"),
        "MediaType": is_nvme.then_some("SSD"),
        "Identifiers": identifiers(known),
        "Links": {
            "Chassis": link(uri::CHASSIS),
            "Storage": link(uri::STORAGE),
            "StoragePools": links(pools.map(|array| uri::pool(&array.uuid))),
        },
        "Actions": {"Oem": {
            "#PalisadeDrive.Wipe": {"target": format!("{uri}/Actions/Oem/PalisadeDrive.Wipe")},
        }},
        "Oem": oem::wrapped(&oem::Drive {
            path: drive.path.clone(),
            state: drive.state.into(),
            is_file: known.is_file,
            wwid: known.wwid.clone(),
            array: drive.array.clone(),
            slot: drive.slot,
            signature: drive.signature.clone(),
            problem: drive.problem.clone(),
        }),
    }))
}

const fn standing(state: DriveState) -> Standing {
    match state {
        DriveState::InUse | DriveState::Foreign | DriveState::Free => Standing::GOOD,
        DriveState::Found => Standing { state: "StandbyOffline", health: "OK" },
        DriveState::Failed => Standing { state: "Disabled", health: "Critical" },
        DriveState::Unusable => Standing { state: "UnavailableOffline", health: "Critical" },
    }
}

/// What names a drive for ever, where its WWID is of a kind that Redfish knows: the kernel writes
/// `eui.`, `naa.` or `uuid.` before these.
fn identifiers(known: &KnownDrive) -> Vec<Value> {
    let Some((kind, name)) = known.wwid.as_deref().and_then(|wwid| wwid.split_once('.')) else {
        return Vec::new();
    };
    let format = match (kind, name.len()) {
        ("eui", 16) => "EUI",
        ("eui", 32) => "NGUID",
        ("naa", _) => "NAA",
        ("uuid", _) => "UUID",
        _ => return Vec::new(),
    };
    vec![json!({"DurableName": name, "DurableNameFormat": format})]
}

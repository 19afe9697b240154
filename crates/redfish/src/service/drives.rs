//! Drives.
//!
//! Invariant: a drive's health is the worse of what it is as a device and of what the daemon makes
//! of it. The reasons for the former are its conditions.

use super::{Standing, chassis, collection, link, links, uri};
use crate::dates;
use crate::messages::DRIVE_UNWELL;
use crate::oem;
use crate::view::{DriveState, Hardware, KnownDrive, Reason, View};
use serde_json::{Value, json};

pub(super) fn drives(view: &View) -> Value {
    let uris = view.drives.iter().map(|known| uri::drive(&known.id));
    collection(uri::DRIVES, "DriveCollection", "Drives", uris)
}

pub(super) fn drive(view: &View, id: &str) -> Option<Value> {
    let known = view.drive(id)?;
    let drive = &known.drive;
    let (uri, remote) = (uri::drive(id), known.remote.as_deref());
    let here = |path: &Option<String>| path.as_ref() == Some(&drive.path);
    let arrays = view.status.arrays.iter();
    let pools = arrays.filter(|array| array.slots.iter().any(|slot| here(&slot.drive)));
    let mut resource = json!({
        "@odata.id": uri,
        "@odata.type": "#Drive.v1_22_0.Drive",
        "Id": id,
        "Name": drive.path,
        "Status": status(known),
        "Model": known.model,
        "SerialNumber": super::named(&drive.serial),
        "CapacityBytes": drive.bytes,
        "BlockSizeBytes": drive.block_bytes,
        "Identifiers": identifiers(known),
        "Links": {
            "Chassis": link(chassis::of_drive(view, known)),
            "Storage": link(uri::STORAGE),
            "StoragePools": links(pools.map(|array| uri::pool(&array.uuid))),
        },
        "Actions": {"Oem": {
            "#PalisadeDrive.Wipe": {"target": format!("{uri}/Actions/Oem/PalisadeDrive.Wipe")},
            "#PalisadeDrive.SetPowerState": {
                "target": format!("{uri}/Actions/Oem/PalisadeDrive.SetPowerState"),
            },
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
            hardware: known.hardware.as_ref().into(),
            nguid: remote.and_then(|own| own.nguid.clone()),
            uuid: remote.and_then(|own| own.uuid.clone()),
            paths: remote.map(|own| own.paths.iter().map(oem::RemotePath::from).collect()),
        }),
    });
    put_device(&mut resource, known);
    if super::drive_metrics::has_metrics(view, known) {
        super::put(&mut resource, "Metrics", link(uri::drive_metrics(&known.id)));
    }
    Some(resource)
}

/// Adds what it is as a device. What nobody knows is left out.
fn put_device(resource: &mut Value, known: &KnownDrive) {
    let hardware = &known.hardware;
    let is_nvme = hardware.is_nvme() || known.drive.path.starts_with("/dev/nvme");
    super::put(resource, "Protocol", json!(protocol(hardware, is_nvme)));
    super::put(resource, "MediaType", json!(is_nvme.then_some("SSD")));
    if let Some(firmware) = &hardware.firmware {
        super::put(resource, "Revision", json!(firmware));
        super::put(resource, "FirmwareVersion", json!(firmware));
    }
    if let Some(link) = &hardware.link {
        let (negotiated, capable) = link.gigabits();
        super::put(resource, "NegotiatedSpeedGbs", json!(negotiated));
        super::put(resource, "CapableSpeedGbs", json!(capable));
    }
    if let Some(place) = &hardware.place {
        super::put(resource, "PhysicalLocation", location(&place.slot));
    }
    if let Some(on) = hardware.located {
        super::put(resource, "LocationIndicatorActive", json!(on));
    }
    if let Some(smart) = &hardware.smart {
        let left = 100 - smart.percentage_used.min(100);
        super::put(resource, "PredictedMediaLifeLeftPercent", json!(left));
        super::put(resource, "FailurePredicted", json!(smart.critical_warning & FAILING != 0));
    }
}

/// Of *critical warning* the bits of a drive that is about to fail: too few spares, unreliable,
/// read-only (NVMe Base 2.0, figure 207).
const FAILING: u8 = 0b1101;

/// What the drive speaks (DSP0268, `Protocol`).
fn protocol(hardware: &Hardware, is_nvme: bool) -> Option<&'static str> {
    let is_scsi = hardware.kind.as_deref() == Some("scsi");
    match hardware.transport.as_deref() {
        Some("tcp" | "rdma" | "fc") if is_nvme => Some("NVMeOverFabrics"),
        Some("tcp") if is_scsi => Some("iSCSI"),
        Some("fc") if is_scsi => Some("FCP"),
        _ => is_nvme.then_some("NVMe"),
    }
}

/// Where a slot is (DSP0268, `PartLocation`).
fn location(slot: &str) -> Value {
    let mut part = json!({"LocationType": "Slot", "ServiceLabel": slot});
    if let Ok(number) = slot.parse::<u32>() {
        super::put(&mut part, "LocationOrdinalValue", json!(number));
    }
    json!({ "PartLocation": part })
}

fn status(known: &KnownDrive) -> Value {
    let mut status = standing(known).status();
    let reasons = &known.hardware.reasons;
    if !reasons.is_empty() {
        let all: Vec<Value> = reasons.iter().map(|own| condition(known, own)).collect();
        super::put(&mut status, "Conditions", Value::Array(all));
    }
    status
}

/// A reason, as `Resource.Condition` has it.
fn condition(known: &KnownDrive, own: &Reason) -> Value {
    let args = [&known.drive.path, &own.what, &own.rule];
    json!({
        "MessageId": DRIVE_UNWELL.id(),
        "Message": DRIVE_UNWELL.text(&args),
        "MessageArgs": args,
        "Resolution": own.action,
        "Severity": own.health.word(),
        "Timestamp": dates::text(own.since),
    })
}

fn standing(known: &KnownDrive) -> Standing {
    let state = match known.drive.state {
        DriveState::InUse | DriveState::Foreign | DriveState::Free => "Enabled",
        DriveState::Found => "StandbyOffline",
        DriveState::Failed => "Disabled",
        DriveState::Unusable => "UnavailableOffline",
    };
    Standing { state, health: known.health().word() }
}

/// What names a drive for ever, where its WWID is of a kind that Redfish knows: the kernel writes
/// `eui.`, `naa.` or `uuid.` before these. Their forms are those of DSP0268, `Identifier`.
fn identifiers(known: &KnownDrive) -> Vec<Value> {
    let Some((kind, name)) = known.wwid.as_deref().and_then(|wwid| wwid.split_once('.')) else {
        return Vec::new();
    };
    let is_hex = name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (format, name) = match (kind, name.len()) {
        ("eui", 16) if is_hex => ("EUI", pairs(name)),
        ("eui", 32) if is_hex => ("NGUID", name.to_owned()),
        ("naa", 16 | 32) if is_hex => ("NAA", name.to_owned()),
        ("uuid", 36) if is_uuid(name) => ("UUID", name.to_owned()),
        _ => return Vec::new(),
    };
    vec![json!({"DurableName": name, "DurableNameFormat": format})]
}

/// Hexadecimal digits, two and two.
pub(super) fn pairs(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 2 == 0 {
            text.push('-');
        }
        text.push(digit);
    }
    text
}

fn is_uuid(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(is_hex)
}

#[cfg(test)]
#[path = "drives_tests.rs"]
mod tests;

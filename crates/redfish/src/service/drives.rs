//! Drives.

use super::{Standing, collection, link, links, uri};
use crate::oem;
use crate::view::{DriveState, KnownDrive, View};
use serde_json::{Value, json};

pub(super) fn drives(view: &View) -> Value {
    let uris = view.drives.iter().map(|known| uri::drive(&known.id));
    collection(uri::DRIVES, "DriveCollection", "Drives", uris)
}

pub(super) fn drive(view: &View, id: &str) -> Option<Value> {
    let known = view.drive(id)?;
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
        "SerialNumber": super::named(&drive.serial),
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
fn pairs(digits: &str) -> String {
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
mod tests {
    use super::*;
    use crate::view::Drive;

    fn named(wwid: &str) -> Vec<Value> {
        let drive = Drive {
            path: "/dev/a".to_owned(),
            serial: String::new(),
            bytes: 0,
            block_bytes: 0,
            state: DriveState::Free,
            array: None,
            slot: None,
            signature: None,
            problem: None,
        };
        let (id, wwid) = ("a".to_owned(), Some(wwid.to_owned()));
        let hardware = Default::default();
        identifiers(&KnownDrive { id, wwid, model: None, is_file: false, hardware, drive })
    }

    #[test]
    fn a_wwid_of_a_known_kind_identifies_the_drive() {
        for (wwid, name, format) in [
            ("eui.0025385b01404d3e", "00-25-38-5b-01-40-4d-3e", "EUI"),
            ("eui.00000000000000018ce38ee2058a8d01", "00000000000000018ce38ee2058a8d01", "NGUID"),
            ("naa.5000c500a1b2c3d4", "5000c500a1b2c3d4", "NAA"),
            (
                "uuid.ba1f1d94-1d0c-4a25-8d55-6f1e4a1f9d10",
                "ba1f1d94-1d0c-4a25-8d55-6f1e4a1f9d10",
                "UUID",
            ),
        ] {
            let expected = json!({"DurableName": name, "DurableNameFormat": format});
            assert_eq!(named(wwid), [expected]);
        }
        for wwid in
            ["", "eui", "eui.", "eui.002538", "naa.x", "uuid.x", "nvme.1234-5678", "t10.a b"]
        {
            assert_eq!(named(wwid), [] as [Value; 0], "{wwid}");
        }
    }
}

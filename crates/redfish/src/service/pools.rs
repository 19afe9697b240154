//! Arrays, as pools.

use super::{Standing, alerts, collection, jobs, link, percent, uri};
use crate::dates;
use crate::oem;
use crate::view::{Array, ArrayState, LastScrub, SlotInfo, View};
use serde_json::{Value, json};

const ACTIONS: [&str; 5] = ["Stop", "Assemble", "FailDrive", "ReplaceDrive", "Scrub"];

pub(super) fn pools(view: &View) -> Value {
    let uris = view.status.arrays.iter().map(|array| uri::pool(&array.uuid));
    collection(uri::POOLS, "StoragePoolCollection", "Arrays", uris)
}

pub(super) fn pool(view: &View, uuid: &str) -> Option<Value> {
    let array = view.array(uuid)?;
    let uuid = &array.uuid[..];
    let uri = uri::pool(uuid);
    let consumed = array.size_bytes.saturating_sub(array.free_bytes);
    Some(json!({
        "@odata.id": uri,
        "@odata.type": "#StoragePool.v1_9_2.StoragePool",
        "Id": uuid,
        "Name": array.name,
        "Identifier": {"DurableName": uuid, "DurableNameFormat": "UUID"},
        "Status": status(view, array, &uri),
        "SupportedRAIDTypes": [raid_type(&array.level)],
        "SupportedProvisioningPolicies": ["Fixed"],
        "MaxBlockSizeBytes": array.block_bytes,
        "Capacity": {"Data": {"AllocatedBytes": array.size_bytes, "ConsumedBytes": consumed}},
        "RemainingCapacityPercent": percent(array.free_bytes, array.size_bytes),
        "CapacitySources@odata.count": 1,
        "CapacitySources": [source(array)],
        "AllocatedVolumes": link(format!("{uri}/AllocatedVolumes")),
        "Links": {"OwningStorageResource": link(uri::STORAGE)},
        "Actions": {"Oem": actions(&uri)},
        "Oem": oem::wrapped(&extension(view, array)),
    }))
}

fn actions(uri: &str) -> Value {
    let mut all = serde_json::Map::new();
    for name in ACTIONS {
        let mut action = json!({
            "target": format!("{uri}/Actions/Oem/PalisadeStoragePool.{name}"),
        });
        if name == "Scrub" {
            super::put(&mut action, "Mode@Redfish.AllowableValues", json!(["Check", "Repair"]));
        }
        all.insert(format!("#PalisadeStoragePool.{name}"), action);
    }
    Value::Object(all)
}

/// The same, with what is wrong with it, and with what it has.
fn status(view: &View, array: &Array, uri: &str) -> Value {
    let drives = drive_uris(view, array);
    let volumes = array.volumes.iter().map(|volume| uri::volume(&volume.uuid));
    let numbers = array.exports.iter().filter_map(|own| uri::export_number(&own.id));
    let exports: Vec<String> =
        numbers.map(|number| uri::connection_id(&array.uuid, number)).collect();
    let own: std::collections::BTreeSet<String> = drives.into_iter().chain(volumes).collect();
    let is_export = |of: &str| {
        let id = of.rsplit_once("/Connections/").map(|(_, id)| id);
        id.is_some_and(|id| exports.iter().any(|own| own == id))
    };
    alerts::status(view, standing(array), uri, |of| own.contains(of) || is_export(of))
}

/// How an array is.
pub(super) fn standing(array: &Array) -> Standing {
    let has_lost = !array.unreadable.is_empty() || !array.warnings.is_empty();
    match array.state {
        ArrayState::Optimal if has_lost => Standing::enabled("Warning"),
        ArrayState::Optimal => Standing::GOOD,
        ArrayState::Degraded => Standing::enabled("Warning"),
        ArrayState::Failed => Standing::enabled("Critical"),
        ArrayState::Stopped => {
            let health = if array.problem.is_some() { "Warning" } else { "OK" };
            Standing { state: "StandbyOffline", health }
        }
    }
}

/// A level, as the schema of volumes names it.
pub(super) fn raid_type(level: &str) -> &'static str {
    match level {
        "0" => "RAID0",
        "1" => "RAID1",
        "5" => "RAID5",
        "6" => "RAID6",
        "10" => "RAID10",
        _ => "None",
    }
}

pub(super) fn capacity_source(view: &View, uuid: &str) -> Option<Value> {
    view.array(uuid).map(source)
}

fn source(array: &Array) -> Value {
    let uri = format!("{}/CapacitySources/1", uri::pool(&array.uuid));
    json!({
        "@odata.id": uri,
        "@odata.type": "#Capacity.v1_2_2.CapacitySource",
        "Id": "1",
        "Name": format!("Drives of {}", array.name),
        "ProvidedCapacity": {"Data": {"AllocatedBytes": array.size_bytes}},
        "ProvidingDrives": link(format!("{uri}/ProvidingDrives")),
    })
}

pub(super) fn providing_drives(view: &View, uuid: &str) -> Option<Value> {
    let array = view.array(uuid)?;
    let uuid = &array.uuid[..];
    let uri = format!("{}/CapacitySources/1/ProvidingDrives", uri::pool(uuid));
    let name = format!("Drives of {}", array.name);
    Some(collection(&uri, "DriveCollection", &name, drive_uris(view, array)))
}

/// The drives of an array's slots.
pub(super) fn drive_uris(view: &View, array: &Array) -> Vec<String> {
    array.slots.iter().filter_map(|slot| drive_uri(view, slot)).collect()
}

fn drive_uri(view: &View, slot: &SlotInfo) -> Option<String> {
    let path = slot.drive.as_deref()?;
    let known = view.drives.iter().find(|known| known.drive.path == path)?;
    Some(uri::drive(&known.id))
}

pub(super) fn allocated_volumes(view: &View, uuid: &str) -> Option<Value> {
    let array = view.array(uuid)?;
    let uuid = &array.uuid[..];
    let uri = format!("{}/AllocatedVolumes", uri::pool(uuid));
    let uris = array.volumes.iter().map(|volume| uri::volume(&volume.uuid));
    let name = format!("Volumes of {}", array.name);
    Some(collection(&uri, "VolumeCollection", &name, uris))
}

fn extension(view: &View, array: &Array) -> oem::StoragePool {
    let own = view.jobs.iter().filter(|job| jobs::is_open_of(job, &array.uuid));
    let unreadable = |range: &crate::view::Unreadable| oem::Unreadable {
        volume: range.volume.clone(),
        offset_bytes: range.offset,
        length_bytes: range.length,
        reason: range.reason.into(),
    };
    oem::StoragePool {
        level: array.level.clone(),
        state: array.state.into(),
        strip_size_bytes: array.strip_bytes,
        block_size_bytes: array.block_bytes,
        epoch: array.epoch,
        unclean: array.unclean,
        crash_safe: array.crash_safe,
        problem: array.problem.clone(),
        shared: array.shared,
        owner: array.owner.as_ref().map(oem::Owner::from),
        warnings: array.warnings.clone(),
        slots: array.slots.iter().map(|info| slot(view, info)).collect(),
        jobs: own.map(|job| oem::Link { id: uri::job(&job.id) }).collect(),
        last_scrub: array.last_scrub.as_ref().map(scrub),
        unreadable: array.unreadable.iter().map(unreadable).collect(),
        region_map: array.region_map.as_ref().map(|map| oem::RegionMap {
            written_bytes: map.written_bytes,
            dirty_regions: map.dirty_regions,
            lost_pages: map.lost_pages,
            parts: oem::RegionParts {
                regions: map.parts.regions,
                written_percents: map.parts.written_percents.clone(),
                dirty_regions: map.parts.dirty_regions.clone(),
            },
        }),
        drive_requests: array.drive_io.iter().map(oem::DriveRequests::from).collect(),
    }
}

fn slot(view: &View, info: &SlotInfo) -> oem::Slot {
    oem::Slot {
        slot: info.slot,
        state: info.state.into(),
        drive: drive_uri(view, info).map(|id| oem::Link { id }),
        path: info.drive.clone(),
        serial_number: super::named(&info.serial).map(str::to_owned),
        read_errors: info.read_errors,
        rewritten: info.rewritten,
        wrong_strips: info.wrong_strips,
        failures: info.failures,
        timeouts: info.timeouts,
        reason: info.reason.clone(),
        quarantined: info.quarantined,
    }
}

fn scrub(last: &LastScrub) -> oem::Scrub {
    oem::Scrub {
        checked_bytes: last.checked_bytes,
        uncompared_bytes: last.uncompared_bytes,
        mismatches: last.mismatches,
        repaired: last.repaired,
        unlocated: last.unlocated,
        unreadable: last.unreadable,
        end_time: dates::text(last.ended),
    }
}

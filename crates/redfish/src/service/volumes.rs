//! Volumes.

use super::{collection, fabrics, link, links, pools, uri};
use crate::counters::VolumeCounters;
use crate::oem;
use crate::view::{Array, TaskKind, View};
use serde_json::{Value, json};

pub(super) fn volumes(view: &View) -> Value {
    let all = view.status.arrays.iter().flat_map(|array| &array.volumes);
    let uris = all.map(|volume| uri::volume(&volume.uuid));
    collection(uri::VOLUMES, "VolumeCollection", "Volumes", uris)
}

pub(super) fn volume(view: &View, uuid: &str) -> Option<Value> {
    let (array, volume) = view.volume(uuid)?;
    let uuid = &volume.uuid[..];
    let uri = uri::volume(uuid);
    let own = array.unreadable.iter().filter(|range| range.volume == volume.name);
    let unreadable_bytes = own.fold(0, |sum: u64, range| sum.saturating_add(range.length));
    let mut standing = pools::standing(array);
    if unreadable_bytes == 0 && array.state == crate::view::ArrayState::Optimal {
        standing.health = "OK";
    }
    let exports: Vec<_> = fabrics::exports_of(array).filter(|of| of.names(volume)).collect();
    let endpoints = |all: fn(&fabrics::Own) -> Vec<String>| {
        let mut uris: Vec<String> = exports.iter().flat_map(all).collect();
        uris.sort();
        uris.dedup();
        links(uris)
    };
    let check = format!("{uri}/Actions/Volume.CheckConsistency");
    let connections = links(exports.iter().map(fabrics::Own::uri));
    Some(json!({
        "@odata.id": uri,
        "@odata.type": "#Volume.v1_10_2.Volume",
        "Id": uuid,
        "Name": volume.name,
        "Status": standing.status(),
        "CapacityBytes": volume.size_bytes,
        "Capacity": {"Data": {"AllocatedBytes": volume.size_bytes}},
        "BlockSizeBytes": array.block_bytes,
        "StripSizeBytes": array.strip_bytes,
        "RAIDType": pools::raid_type(&array.level),
        "ProvisioningPolicy": "Fixed",
        "VolumeUsage": "Data",
        "Identifiers": [{"DurableName": uuid, "DurableNameFormat": "UUID"}],
        "Operations": operations(array),
        "Metrics": link(uri::volume_metrics(uuid)),
        "Connections@odata.count": connections.len(),
        "Connections": connections,
        "Links": {
            "Drives": links(pools::drive_uris(view, array)),
            "OwningStorageResource": link(uri::STORAGE),
            "ProvidingStoragePool": link(uri::pool(&array.uuid)),
            "ServerEndpoints": endpoints(|own| own.targets()),
            "ClientEndpoints": endpoints(|own| own.initiators()),
        },
        "Actions": {"#Volume.CheckConsistency": {"target": check}},
        "Oem": oem::wrapped(&oem::Volume { array: array.name.clone(), unreadable_bytes }),
    }))
}

/// What was counted of a volume.
pub(super) fn metrics(view: &View, uuid: &str) -> Option<Value> {
    let (_, volume) = view.volume(uuid)?;
    let none = VolumeCounters::default();
    let counters = view.counters.volume(&volume.uuid).unwrap_or(&none);
    let VolumeCounters { reads, writes, flushes, discards, .. } = counters;
    Some(json!({
        "@odata.id": uri::volume_metrics(&volume.uuid),
        "@odata.type": "#VolumeMetrics.v1_2_0.VolumeMetrics",
        "Id": "Metrics",
        "Name": format!("Metrics of {}", volume.name),
        "UncorrectableIOReadErrorCount": reads.errors.unavailable,
        "UncorrectableIOWriteErrorCount": writes.errors.unavailable,
        "IOStatistics": {
            "ReadIORequests": reads.done(),
            "ReadIOKiBytes": reads.bytes / 1024,
            "WriteIORequests": writes.done(),
            "WriteIOKiBytes": writes.bytes / 1024,
            "NonIORequests": flushes.done().wrapping_add(discards.done()),
        },
        "Oem": oem::wrapped(&oem::VolumeMetrics::from(counters)),
    }))
}

/// What goes on under a volume.
fn operations(array: &Array) -> Vec<Value> {
    let operation = |task: &crate::view::Task| {
        let name = match task.kind {
            TaskKind::Rebuild | TaskKind::Resync => "Rebuild",
            TaskKind::Scrub => "CheckConsistency",
        };
        let percent = super::percent(task.done_bytes, task.total_bytes);
        json!({"Operation": name, "PercentageComplete": percent})
    };
    array.tasks.iter().map(operation).collect()
}

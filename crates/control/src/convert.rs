//! The engine's words in the interface's.

#![allow(clippy::indexing_slicing, reason = "a record has each slot once")]

use crate::address;
use crate::exports::{Connections, Standing};
use crate::inventory::{Inventory, Known, Place, Places};
use crate::ownership;
use crate::plugs::{PULLED, counts, is_used};
use crate::probe;
use crate::shares;
use crate::{fc, iscsi};
use drives::SharedDrive;
use engine::lost::Lost;
use engine::manage::command::{
    ArrayState, ArrayStatus, ExportStatus, Hindrance, RegionMapStatus, SlotHealth, SlotStatus,
    TaskKind, TaskStatus, UnreadableRange, VolumeStatus,
};
use engine::manage::lost::unreadable_ranges;
use format::{ArrayRecord, ExportAddress, LostReason, NvmeExport, Owner};
use redfish::view;
use std::collections::{BTreeMap, BTreeSet};
use units::Uuid;

/// Names an export: its array's name and its number.
pub fn export_id(array: &str, number: u32) -> String {
    format!("{array}:{number}")
}

/// A running array.
pub fn array(
    status: &ArrayStatus,
    inventory: &Inventory,
    standing: (&Standing, &Connections),
) -> view::Array {
    view::Array {
        name: status.name.clone(),
        uuid: status.uuid.to_string(),
        level: status.level.to_string(),
        state: match status.state {
            ArrayState::Optimal => view::ArrayState::Optimal,
            ArrayState::Degraded => view::ArrayState::Degraded,
            ArrayState::Failed => view::ArrayState::Failed,
        },
        strip_bytes: status.strip_bytes,
        block_bytes: status.block_bytes,
        size_bytes: status.size_bytes,
        free_bytes: status.free_bytes,
        epoch: status.epoch,
        unclean: status.unclean,
        crash_safe: Some(status.crash_safe),
        problem: None,
        shared: status.owner.is_some(),
        owner: ownership::shown(status, ownership::now_millis()),
        warnings: lost_pages(status).into_iter().collect(),
        slots: slots(status),
        tasks: status.tasks.iter().map(|t| task(&status.name, t)).collect(),
        last_scrub: status
            .last_scrub
            .map(|scrub| probe::last_scrub(scrub, status.uncompared_bytes)),
        unreadable: status.unreadable.iter().map(unreadable).collect(),
        region_map: Some(region_map(&status.region_map)),
        drive_io: drive_io(status, inventory),
        volumes: status.volumes.iter().map(|v| volume(&status.name, v)).collect(),
        exports: status
            .exports
            .iter()
            .filter(|own| !matches!(own.address, ExportAddress::Shares(_)))
            .map(|own| export(&status.name, own, standing))
            .collect(),
        filesystems: status
            .exports
            .iter()
            .filter_map(|own| shared(status, own, standing.0))
            .collect(),
    }
}

/// A file system that is shared, if an export is one.
fn shared(
    array: &ArrayStatus,
    export: &ExportStatus,
    standing: &Standing,
) -> Option<view::FileSystem> {
    let own = shares::export(&export.address)?;
    let told = standing.services().shown(&export_id(&array.name, export.id)).unwrap_or_default();
    let of = (&*array.name, &*export.volume_name, export.volume.to_string());
    Some(shares::shown(own, of, (told.files.as_deref(), told.health)))
}

fn region_map(map: &RegionMapStatus) -> view::RegionMap {
    let RegionMapStatus { written_bytes, dirty_regions, lost_pages, ref parts } = *map;
    let parts = view::RegionParts {
        regions: parts.first().map_or(0, |part| part.regions),
        written_percents: parts.iter().map(|part| part.written_percent).collect(),
        dirty_regions: parts.iter().map(|part| part.dirty_regions).collect(),
    };
    view::RegionMap { written_bytes, dirty_regions, lost_pages, parts }
}

fn lost_pages(status: &ArrayStatus) -> Option<String> {
    let lost = status.region_map.lost_pages;
    (lost > 0).then(|| {
        format!(
            "{lost} pages of the region map were lost: the regions that they describe are \
             resynced, and blocks there that were never written may not read as zeros"
        )
    })
}

fn slots(status: &ArrayStatus) -> Vec<view::SlotInfo> {
    let slot = |slot: &SlotStatus| view::SlotInfo {
        slot: slot.slot.0,
        drive: slot.path.clone(),
        serial: slot.serial.clone(),
        state: match slot.health {
            SlotHealth::InSync => view::SlotState::InSync,
            SlotHealth::Rebuilding => view::SlotState::Rebuilding,
            SlotHealth::Failed => view::SlotState::Failed,
            SlotHealth::Missing => view::SlotState::Missing,
        },
        read_errors: slot.errors.read_errors,
        rewritten: slot.errors.rewritten,
        wrong_strips: slot.errors.wrong_strips,
        failures: slot.errors.failures,
        timeouts: slot.errors.timeouts,
        reason: slot.errors.reason.map(|error| error.to_string()),
        quarantined: slot.quarantined,
    };
    status.slots.iter().map(slot).collect()
}

/// What a record says is lost, as its volumes have it.
pub fn recorded_lost(record: &ArrayRecord) -> Vec<view::Unreadable> {
    let listed = engine::lost::from_record(&record.lost);
    let ranges = unreadable_ranges(record, &Lost { listed, ..Lost::default() });
    ranges.iter().map(unreadable).collect()
}

fn unreadable(range: &UnreadableRange) -> view::Unreadable {
    view::Unreadable {
        volume: range.volume.clone(),
        offset: range.offset,
        length: range.bytes,
        reason: match range.reason {
            None => view::UnreadableReason::Media,
            Some(LostReason::Rebuild) => view::UnreadableReason::Rebuild,
            Some(LostReason::Resync) => view::UnreadableReason::Resync,
            Some(LostReason::Write) => view::UnreadableReason::Write,
            Some(LostReason::Crash) => view::UnreadableReason::Crash,
        },
    }
}

/// A kind of task, for the interface.
pub const fn kind(kind: TaskKind) -> view::TaskKind {
    match kind {
        TaskKind::Rebuild => view::TaskKind::Rebuild,
        TaskKind::Resync => view::TaskKind::Resync,
        TaskKind::Scrub => view::TaskKind::Scrub,
    }
}

/// A kind of task, for the engine.
pub const fn engine_kind(kind: view::TaskKind) -> TaskKind {
    match kind {
        view::TaskKind::Rebuild => TaskKind::Rebuild,
        view::TaskKind::Resync => TaskKind::Resync,
        view::TaskKind::Scrub => TaskKind::Scrub,
    }
}

/// A task of the array called `array`.
pub fn task(array: &str, task: &TaskStatus) -> view::Task {
    let problem = task.stuck.map(|stuck| {
        let (reason, offset) = (stuck.reason, stuck.offset);
        let group = stuck.group;
        format!("{reason} (group {group}, at byte {offset} of its drives' data areas)")
    });
    let progress = match task.total_bytes {
        0 => 1.0,
        total => task.done_bytes as f64 / total as f64,
    };
    view::Task {
        id: format!("{array}:{}", kind(task.kind).word()),
        progress,
        seconds_left: task.seconds_left.filter(|_| problem.is_none() && !task.paused),
        kind: kind(task.kind),
        done_bytes: task.done_bytes,
        total_bytes: task.total_bytes,
        state: match (&problem, task.paused) {
            (_, true) => view::TaskState::Paused,
            (Some(_), _) => view::TaskState::Stuck,
            (None, _) => view::TaskState::Running,
        },
        problem,
        hindrance: task.stuck.map(|stuck| match stuck.reason {
            Hindrance::Unreadable => view::Hindrance::Unreadable,
            Hindrance::Unavailable => view::Hindrance::Unavailable,
            Hindrance::ListFull => view::Hindrance::ListFull,
        }),
    }
}

fn drive_io(status: &ArrayStatus, inventory: &Inventory) -> Vec<view::DriveIo> {
    let slots = status.slots.iter().filter_map(|slot| {
        let counts = inventory.at(slot.path.as_deref()?)?.drive.as_ref()?.io_counts();
        Some(view::DriveIo {
            slot: slot.slot.0,
            reads: counts.reads,
            writes: counts.writes,
            flushes: counts.flushes,
            read_bytes: counts.read_bytes,
            write_bytes: counts.write_bytes,
            retries: counts.retries,
        })
    });
    slots.collect()
}

/// A volume of the array called `array`.
pub fn volume(array: &str, status: &VolumeStatus) -> view::Volume {
    view::Volume {
        array: array.to_owned(),
        name: status.name.clone(),
        uuid: status.uuid.to_string(),
        size_bytes: status.bytes,
    }
}

/// An export of the array called `array`.
pub fn export(
    array: &str,
    status: &ExportStatus,
    (standing, connections): (&Standing, &Connections),
) -> view::Export {
    let id = export_id(array, status.id);
    let shown = standing.services().shown(&id).unwrap_or_default();
    let is_ublk = standing.services().is_ublk(&id);
    view::Export {
        kind: match &status.address {
            ExportAddress::NbdTcp(_) | ExportAddress::NbdUnix(_) => view::ExportKind::Nbd,
            ExportAddress::NvmeTcp(_) => view::ExportKind::NvmeTcp,
            ExportAddress::Ublk => view::ExportKind::Ublk,
            ExportAddress::Device if is_ublk => view::ExportKind::Ublk,
            ExportAddress::Device => view::ExportKind::Loop,
            ExportAddress::File(_) => view::ExportKind::Fuse,
            ExportAddress::VhostUser(_) => view::ExportKind::VhostUser,
            ExportAddress::Iscsi(_) => view::ExportKind::Iscsi,
            ExportAddress::Fc(_) => view::ExportKind::Fc,
            ExportAddress::NvmeFc(_) => view::ExportKind::NvmeFc,
            // A file system is no export of a view.
            ExportAddress::Shares(_) => view::ExportKind::Fuse,
        },
        device: shown.device,
        link: shown.link,
        file: match &status.address {
            ExportAddress::File(path) => Some(path.clone()),
            _ => None,
        },
        socket: match &status.address {
            ExportAddress::VhostUser(path) => Some(path.clone()),
            _ => None,
        },
        fc: fc::shown(&status.address, status.volume, shown.sessions.clone()),
        iscsi: match &status.address {
            ExportAddress::Iscsi(own) => {
                Some(iscsi::shown(own, status.volume, (shown.server, shown.sessions)))
            }
            _ => None,
        },
        health: shown.health,
        array: array.to_owned(),
        volume: status.volume_name.clone(),
        nbd: match &status.address {
            ExportAddress::NbdTcp(_) | ExportAddress::NbdUnix(_) => {
                Some(address::text(&status.address))
            }
            _ => None,
        },
        nvme: match &status.address {
            ExportAddress::NvmeTcp(nvme) => Some(nvme_export(&id, status, nvme, connections)),
            _ => None,
        },
        clients: match standing.has_machine(&id) {
            true => vec![view::Client::default()],
            false => connections.clients.get(&id).cloned().unwrap_or_default(),
        },
        uri: address::uri(
            &status.address,
            &format!("{array}/{}", status.volume_name),
            status.volume,
        ),
        serving: standing.serves(&id),
        problem: standing.problem(&id),
        id,
    }
}

fn nvme_export(
    id: &str,
    status: &ExportStatus,
    nvme: &NvmeExport,
    connections: &Connections,
) -> view::NvmeExport {
    let uuid = status.volume.to_string();
    view::NvmeExport {
        subsystem: nvme.subsystem.clone(),
        nsid: nvme.nsid,
        nguid: uuid.replace('-', ""),
        uuid,
        listeners: nvme.listeners.iter().map(|listener| listener.address.clone()).collect(),
        advertise: address::told_instead(&nvme.listeners),
        hosts: nvme.hosts.clone().unwrap_or_default(),
        any_host: nvme.hosts.is_none(),
        connections: connections.hosts.get(id).cloned().unwrap_or_default(),
    }
}

/// The newest record of every array on drives that `idle` says nobody uses.
pub fn found_records(
    inventory: &Inventory,
    idle: impl Fn(&Known) -> bool,
) -> BTreeMap<Uuid, ArrayRecord> {
    let mut newest: BTreeMap<Uuid, ArrayRecord> = BTreeMap::new();
    let records = inventory.iter().filter(|k| idle(k)).filter_map(|k| k.content.record.as_ref());
    for record in records {
        let age = |r: &ArrayRecord| (r.epoch.counter, r.sequence);
        match newest.get(&record.array) {
            Some(known) if age(known) >= age(record) => {}
            _ => {
                newest.insert(record.array, record.clone());
            }
        }
    }
    newest
}

/// Who has an array that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundOwner {
    /// Its host and boot.
    pub owner: Owner,
    /// What people call it; empty if its pages don't say.
    pub name: String,
    /// When it last said that it lives, milliseconds since 1970 by its clock, if its pages say.
    pub heartbeat: Option<u64>,
}

/// Who has an array that was found, by its newest record and the pages of the drives that have
/// it. Who takes an array writes pages first, so these count before the record.
pub fn found_owner(record: &ArrayRecord, inventory: &Inventory) -> Option<FoundOwner> {
    let is_newest = |own: &ArrayRecord| (own.array, own.epoch) == (record.array, record.epoch);
    let pages = inventory.iter().filter_map(|known| {
        known.content.record.as_ref().filter(|own| is_newest(own))?;
        let page = known.content.owner.as_ref()?;
        Some((page.owner.filter(|_| page.array == record.array)?, page))
    });
    let newest = pages.max_by_key(|(_, page)| page.unix_millis);
    Some(match newest {
        Some((owner, page)) => {
            FoundOwner { owner, name: page.name.clone(), heartbeat: Some(page.unix_millis) }
        }
        None => {
            let owner = record.owner.filter(|_| record.shared)?;
            FoundOwner { owner, name: String::new(), heartbeat: None }
        }
    })
}

/// An array that was found and does not run.
pub fn found(record: &ArrayRecord, inventory: &Inventory, problem: Option<String>) -> view::Array {
    let here = |slot: units::Slot| {
        let wanted = record.slots[slot.index()].drive;
        let holds = |k: &&Known| {
            let own = k.content.record.as_ref();
            own.is_some_and(|r| r.array == record.array && r.this_drive == wanted)
        };
        inventory.iter().find(holds).map(|k| k.path.clone())
    };
    let mut slots = probe::recorded_slots(record, here);
    for slot in &mut slots {
        if slot.drive.is_none() && slot.state != view::SlotState::Failed {
            slot.state = view::SlotState::Missing;
        }
    }
    let size_bytes = record.layout().map_or(0, |layout| layout.array_bytes());
    let used: u64 = record.volumes.iter().flat_map(|v| &v.extents).map(|e| e.bytes).sum();
    view::Array {
        name: record.name.clone(),
        uuid: record.array.to_string(),
        level: record.level.to_string(),
        state: view::ArrayState::Stopped,
        strip_bytes: probe::strip_bytes(record),
        block_bytes: record.block_bytes,
        size_bytes,
        free_bytes: size_bytes.saturating_sub(used),
        epoch: record.epoch.counter,
        unclean: record.groups.iter().any(|group| group.unclean),
        crash_safe: None,
        problem,
        shared: record.shared,
        owner: None,
        warnings: Vec::new(),
        slots,
        tasks: Vec::new(),
        last_scrub: record.last_scrub.map(|scrub| probe::last_scrub(scrub, None)),
        unreadable: recorded_lost(record),
        region_map: None,
        drive_io: Vec::new(),
        volumes: probe::recorded_volumes(record),
        exports: Vec::new(),
        filesystems: Vec::new(),
    }
}

/// Where running arrays have drives. A failed drive may be another array's by now: that one
/// counts. One that was left behind is not free: it is needed when the array is started again.
pub fn places(arrays: &[ArrayStatus]) -> Places {
    let mut places = Places::default();
    for array in arrays {
        places.arrays.push(array.uuid);
        for slot in &array.slots {
            let Some(path) = &slot.path else { continue };
            let place = place(&array.name, slot);
            if !place.failed || !places.by_path.contains_key(path) {
                places.by_path.insert(path.clone(), place);
            }
        }
    }
    places
}

/// The paths of the drives that an array counts on.
pub fn counted_paths(array: &ArrayStatus) -> Vec<String> {
    array.slots.iter().filter(|slot| counts(slot)).filter_map(|slot| slot.path.clone()).collect()
}

fn place(array: &str, slot: &SlotStatus) -> Place {
    let failed = !counts(slot);
    Place { array: array.to_owned(), slot: slot.slot.0, serial: slot.serial.clone(), failed }
}

/// The drives that are there and that running arrays have out or miss, by their slots.
pub fn returned(inventory: &Inventory, arrays: &[ArrayStatus]) -> BTreeMap<(Uuid, u16), String> {
    let mut all = BTreeMap::new();
    for array in arrays {
        for slot in array.slots.iter().filter(|slot| !is_used(slot.health) && !slot.quarantined) {
            let is_back = |known: &&Known| {
                // Of what an array has nobody reads the record: it was looked at since it failed.
                let record = known.content.record.as_ref();
                let is_own =
                    record.is_some_and(|own| own.array == array.uuid && own.this_slot == slot.slot);
                // Others had the slot before.
                let serial = known.about.as_ref().map(|about| about.serial.as_str());
                is_own
                    && serial.is_some_and(|serial| serial.starts_with(&slot.serial))
                    && arrays.iter().all(|other| !counts_on(other, &known.path))
            };
            if let Some(known) = inventory.iter().find(is_back) {
                all.insert((array.uuid, slot.slot.0), known.path.clone());
            }
        }
    }
    all
}

/// Says of slots whose drives were pulled out that this is why they are out.
pub fn tell_pulled(arrays: &mut [view::Array], pulled: &BTreeSet<(Uuid, u16)>) {
    for (uuid, slot) in pulled {
        let uuid = uuid.to_string();
        let own = arrays.iter_mut().filter(|array| array.uuid == uuid);
        for own in own.flat_map(|array| &mut array.slots).filter(|own| own.slot == *slot) {
            own.reason = Some(PULLED.to_owned());
        }
    }
}

/// Whether an array uses what is at this path.
fn counts_on(array: &ArrayStatus, path: &str) -> bool {
    let has = |slot: &SlotStatus| slot.path.as_deref() == Some(path);
    array.slots.iter().any(|slot| has(slot) && is_used(slot.health))
}

/// A drive that a new array would take.
pub fn planned(slot: u16, known: &Known, drive: &SharedDrive, refused: bool) -> view::PlannedDrive {
    view::PlannedDrive {
        slot: Some(slot),
        path: known.path.clone(),
        serial: drive.serial(),
        bytes: drive.info().bytes,
        content: Some(known.content.told()),
        destroys: known.content.holds(),
        refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::manage::command::ErrorCounts;
    use units::Slot;

    #[test]
    fn a_drive_that_was_left_behind_is_not_free() {
        let slot = |health, left_behind| SlotStatus {
            slot: Slot(3),
            path: Some("/dev/a".to_owned()),
            serial: "A".to_owned(),
            health,
            errors: ErrorCounts::default(),
            left_behind,
            quarantined: false,
        };
        let failed = |health, left_behind| place("data", &slot(health, left_behind)).failed;
        assert!(failed(SlotHealth::Failed, false) && failed(SlotHealth::Missing, false));
        assert!(!failed(SlotHealth::Failed, true), "it holds what nothing else does");
        assert!(!failed(SlotHealth::InSync, false) && !failed(SlotHealth::Rebuilding, false));
    }
}

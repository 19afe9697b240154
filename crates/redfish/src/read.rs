//! The way back: what clients fetched, as the view that it was made of.
//!
//! Invariant: of what [`crate::service`] made of a view, [`view`] makes the same view. For that an
//! array's exports are in the order of their numbers, and the first of its jobs that have not
//! ended are its tasks, in their order; the others wait for these. File systems, and their shares,
//! are in the order of their collections.

mod hardware;
mod shares;

pub use hardware::{Around, enclosures, smart, surroundings};
pub use shares::{filesystem, share};

use crate::access::{Account, Role};
use crate::dates;
use crate::messages::{self, PREFIX};
use crate::oem;
use crate::service::uri;
use crate::view::{
    Alert, Array, Drive, DriveIo, Entry, Error, Export, FcPort, Job, KnownDrive, LastScrub,
    RegionMap, RegionParts, Remote, RemotePath, Server, SlotInfo, Status, Task, TaskKind,
    Unreadable, View, Volume,
};
use serde_json::Value;

/// What clients fetch to know everything: resources, and collections with their members (query
/// option `$expand=.`).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fetched {
    /// `/redfish/v1`.
    pub root: Value,
    /// `Managers/palisade`.
    pub manager: Value,
    /// `StoragePools`, with members.
    pub pools: Value,
    /// `Volumes`, with members.
    pub volumes: Value,
    /// `Drives`, with members.
    pub drives: Value,
    /// `Connections` of the fabric `nvme`, with members.
    pub nvme: Value,
    /// `Connections` of the fabric `nbd`, with members.
    pub nbd: Value,
    /// `Connections` of the fabric `local`, with members.
    pub local: Value,
    /// `Connections` of the fabric `iscsi`, with members.
    pub iscsi: Value,
    /// `Connections` of the fabric `fc`, with members.
    pub fc: Value,
    /// `FileSystems`, with members, whose `ExportedShares` are with members, too.
    pub filesystems: Value,
    /// `Jobs`, with members.
    pub jobs: Value,
}

/// An answer that is not what this service would say.
pub fn strange(what: &str) -> Error {
    Error::new(&messages::STRANGE_ANSWER, &[&what])
}

/// All that was fetched.
pub fn view(fetched: &Fetched) -> Result<View, Error> {
    Ok(View {
        server: server(&fetched.root, &fetched.manager)?,
        status: status(fetched)?,
        drives: all(&fetched.drives, drive)?,
        jobs: all(&fetched.jobs, job)?,
        ..View::default()
    })
}

/// The members of a collection, each read by `one`.
pub fn all<T>(
    collection: &Value,
    one: impl Fn(&Value) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    contents(collection)?.iter().map(one).collect()
}

/// The members of a collection.
pub fn contents(collection: &Value) -> Result<&[Value], Error> {
    let contents = collection.get("Members").and_then(Value::as_array);
    contents.map(Vec::as_slice).ok_or_else(|| lacks(collection, "/Members"))
}

/// The machine, of the ServiceRoot and the Manager.
pub fn server(root: &Value, manager: &Value) -> Result<Server, Error> {
    let own: oem::Manager = oem::of(manager)?;
    Ok(Server {
        name: optional(root, "/ServiceIdentification").unwrap_or_default(),
        uuid: optional(root, "/UUID").unwrap_or_default(),
        now: moment(manager, "/DateTime")?,
        since: moment(manager, "/LastResetTime")?,
        confirms: own.confirm == oem::ON,
        open_metrics: own.metrics == oem::OPEN,
    })
}

/// The Fibre Channel ports, of their fabric.
pub fn ports(fabric: &Value) -> Result<Vec<FcPort>, Error> {
    let oem::Fabric { ports } = oem::of(fabric)?;
    Ok(ports.into_iter().map(Into::into).collect())
}

/// A line of the audit log.
pub fn entry(resource: &Value) -> Result<Entry, Error> {
    let oem::LogEntry { number, who, from, request, what, result, of } = oem::of(resource)?;
    let time = moment(resource, "/Created")?;
    // What says no more than the result is made of it.
    let is_notice = |id: &String| id.strip_prefix(PREFIX).and_then(messages::notice).is_some();
    let message = optional(resource, "/MessageId").filter(|id| !is_notice(id));
    Ok(Entry { number, time, who, from, request, what, result: result.into(), message, of })
}

/// Everything at a glance, of all that was fetched but the ServiceRoot and drives.
pub fn status(fetched: &Fetched) -> Result<Status, Error> {
    let manager = &fetched.manager;
    let own: oem::Manager = oem::of(manager)?;
    Ok(Status {
        version: text(manager, "/FirmwareVersion")?,
        pid: own.process_id,
        cores: own.cores,
        ready: own.ready,
        parity: own.parity.into(),
        memory: own.memory.into(),
        arrays: arrays(fetched)?,
        next: own.next.into_iter().map(Into::into).collect(),
        state: own.state.into(),
    })
}

/// An account.
pub fn account(resource: &Value) -> Result<Account, Error> {
    let flag =
        |at: &str| resource.pointer(at).and_then(Value::as_bool).ok_or_else(|| lacks(resource, at));
    Ok(Account {
        name: text(resource, "/UserName")?,
        role: Role::of(&text(resource, "/RoleId")?).ok_or_else(|| lacks(resource, "/RoleId"))?,
        enabled: flag("/Enabled")?,
        must_change: flag("/PasswordChangeRequired")?,
        generation: oem::of::<oem::ManagerAccount>(resource)?.password_generation,
    })
}

/// All arrays, of their pools, volumes, connections, file systems and jobs.
pub fn arrays(fetched: &Fetched) -> Result<Vec<Array>, Error> {
    let volumes = all(&fetched.volumes, |resource| Ok((pool_of(resource)?, volume(resource)?)))?;
    let numbered = |resource: &Value| {
        let id = text(resource, "/Id")?;
        let (array, number) = uri::connection_of(&id).ok_or_else(|| lacks(resource, "/Id"))?;
        Ok((array.to_owned(), number, export(resource)?))
    };
    let mut exports = all(&fetched.nvme, numbered)?;
    exports.extend(all(&fetched.nbd, numbered)?);
    exports.extend(all(&fetched.local, numbered)?);
    exports.extend(all(&fetched.iscsi, numbered)?);
    exports.extend(all(&fetched.fc, numbered)?);
    exports.sort_by_key(|(_, number, _)| *number);
    let filesystems = all(&fetched.filesystems, filesystem)?;
    let tasks = all(&fetched.jobs, task)?;
    let array = |pool: &Value| {
        let uuid = text(pool, "/Id")?;
        let is_own = |array: &String| *array == uuid;
        let volumes = volumes.iter().filter(|(array, _)| is_own(array));
        let exports = exports.iter().filter(|(array, ..)| is_own(array));
        let filesystems = filesystems.iter().filter(|(array, _)| is_own(array));
        let tasks = tasks.iter().flatten().filter(|(array, _)| is_own(array));
        Ok(Array {
            volumes: volumes.map(|(_, volume)| volume.clone()).collect(),
            exports: exports.map(|(.., export)| export.clone()).collect(),
            filesystems: filesystems.map(|(_, own)| own.clone()).collect(),
            tasks: tasks.map(|(_, task)| task.clone()).collect(),
            ..array(pool)?
        })
    };
    all(&fetched.pools, array)
}

/// An array, of its pool, without volumes, exports, file systems and tasks.
pub fn array(pool: &Value) -> Result<Array, Error> {
    let own: oem::StoragePool = oem::of(pool)?;
    let size_bytes = number(pool, "/Capacity/Data/AllocatedBytes")?;
    let consumed = number(pool, "/Capacity/Data/ConsumedBytes")?;
    Ok(Array {
        name: text(pool, "/Name")?,
        uuid: text(pool, "/Id")?,
        level: own.level,
        state: own.state.into(),
        strip_bytes: own.strip_size_bytes,
        block_bytes: own.block_size_bytes,
        size_bytes,
        free_bytes: size_bytes.saturating_sub(consumed),
        epoch: own.epoch,
        unclean: own.unclean,
        crash_safe: own.crash_safe,
        problem: own.problem,
        shared: own.shared,
        owner: own.owner.map(Into::into),
        warnings: own.warnings,
        slots: own.slots.into_iter().map(slot).collect(),
        tasks: Vec::new(),
        last_scrub: own.last_scrub.map(|own| scrub(pool, own)).transpose()?,
        unreadable: own.unreadable.into_iter().map(unreadable).collect(),
        region_map: own.region_map.map(region_map),
        drive_io: own.drive_requests.into_iter().map(DriveIo::from).collect(),
        volumes: Vec::new(),
        exports: Vec::new(),
        filesystems: Vec::new(),
    })
}

fn slot(own: oem::Slot) -> SlotInfo {
    SlotInfo {
        slot: own.slot,
        drive: own.path,
        serial: own.serial_number.unwrap_or_default(),
        state: own.state.into(),
        read_errors: own.read_errors,
        rewritten: own.rewritten,
        wrong_strips: own.wrong_strips,
        failures: own.failures,
        timeouts: own.timeouts,
        reason: own.reason,
        quarantined: own.quarantined,
    }
}

fn scrub(pool: &Value, own: oem::Scrub) -> Result<LastScrub, Error> {
    let ended = dates::seconds(&own.end_time);
    Ok(LastScrub {
        checked_bytes: own.checked_bytes,
        uncompared_bytes: own.uncompared_bytes,
        mismatches: own.mismatches,
        repaired: own.repaired,
        unlocated: own.unlocated,
        unreadable: own.unreadable,
        ended: ended.ok_or_else(|| lacks(pool, "/Oem/Palisade/LastScrub/EndTime"))?,
    })
}

fn unreadable(own: oem::Unreadable) -> Unreadable {
    Unreadable {
        volume: own.volume,
        offset: own.offset_bytes,
        length: own.length_bytes,
        reason: own.reason.into(),
    }
}

fn region_map(own: oem::RegionMap) -> RegionMap {
    let oem::RegionMap { written_bytes, dirty_regions, lost_pages, parts } = own;
    let oem::RegionParts { regions, written_percents, dirty_regions: dirty } = parts;
    let parts = RegionParts { regions, written_percents, dirty_regions: dirty };
    RegionMap { written_bytes, dirty_regions, lost_pages, parts }
}

/// A volume, of its resource.
pub fn volume(resource: &Value) -> Result<Volume, Error> {
    let own: oem::Volume = oem::of(resource)?;
    Ok(Volume {
        array: own.array,
        name: text(resource, "/Name")?,
        uuid: text(resource, "/Id")?,
        size_bytes: number(resource, "/CapacityBytes")?,
    })
}

/// The UUID of a volume's array.
fn pool_of(volume: &Value) -> Result<String, Error> {
    const LINK: &str = "/Links/ProvidingStoragePool/@odata.id";
    let pool = text(volume, LINK)?;
    let uuid = crate::routes::find(&pool).map(|found| found.id(0).to_owned());
    uuid.ok_or_else(|| lacks(volume, LINK))
}

/// An export, of its connection.
pub fn export(connection: &Value) -> Result<Export, Error> {
    oem::of::<oem::Connection>(connection).map(Export::from)
}

/// A drive, of its resource. What the drive says of its life is read where its `Metrics` were
/// fetched with it (`$expand`).
pub fn drive(resource: &Value) -> Result<KnownDrive, Error> {
    let own: oem::Drive = oem::of(resource)?;
    let block = number(resource, "/BlockSizeBytes")?;
    let (nguid, uuid) = (own.nguid, own.uuid);
    let remote = own.paths.map(|paths| {
        let paths = paths.into_iter().map(RemotePath::from).collect();
        Remote { nguid, uuid, paths }.into()
    });
    Ok(KnownDrive {
        remote,
        id: text(resource, "/Id")?,
        wwid: own.wwid,
        model: optional(resource, "/Model"),
        is_file: own.is_file,
        hardware: hardware::of_drive(resource, own.hardware)?.into(),
        drive: Drive {
            path: own.path,
            serial: optional(resource, "/SerialNumber").unwrap_or_default(),
            bytes: number(resource, "/CapacityBytes")?,
            block_bytes: u32::try_from(block).map_err(|_| lacks(resource, "/BlockSizeBytes"))?,
            state: own.state.into(),
            array: own.array,
            slot: own.slot,
            signature: own.signature,
            problem: own.problem,
        },
    })
}

/// What a job is as a task of its array, whose UUID stands beside it; nothing if it has ended, or
/// waits for another to end.
pub fn task(resource: &Value) -> Result<Option<(String, Task)>, Error> {
    let own: oem::Job = oem::of(resource)?;
    let Job { array, task, ended, .. } = job(resource)?;
    Ok((ended.is_none() && !own.waiting).then_some((array, task)))
}

/// A job, of its resource.
pub fn job(resource: &Value) -> Result<Job, Error> {
    let own: oem::Job = oem::of(resource)?;
    let ended = match own.end {
        Some(end) => Some((moment(resource, "/EndTime")?, end.into())),
        None => None,
    };
    let kind: TaskKind = own.kind.into();
    Ok(Job {
        id: text(resource, "/Id")?,
        array: own.array_uuid,
        task: Task {
            id: format!("{}:{}", own.array, kind.word()),
            kind,
            done_bytes: own.done_bytes,
            total_bytes: own.total_bytes,
            progress: match own.total_bytes {
                0 => 1.0,
                total => own.done_bytes as f64 / total as f64,
            },
            seconds_left: own.seconds_left,
            state: own.state.into(),
            problem: own.problem,
            hindrance: own.hindrance.map(Into::into),
        },
        began: moment(resource, "/StartTime")?,
        ended,
    })
}

fn lacks(resource: &Value, pointer: &str) -> Error {
    let id = optional(resource, "/@odata.id");
    strange(&format!("{}: {pointer}", id.as_deref().unwrap_or("no resource")))
}

fn optional(resource: &Value, pointer: &str) -> Option<String> {
    resource.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
}

fn text(resource: &Value, pointer: &str) -> Result<String, Error> {
    optional(resource, pointer).ok_or_else(|| lacks(resource, pointer))
}

fn number(resource: &Value, pointer: &str) -> Result<u64, Error> {
    let number = resource.pointer(pointer).and_then(Value::as_u64);
    number.ok_or_else(|| lacks(resource, pointer))
}

fn moment(resource: &Value, pointer: &str) -> Result<u64, Error> {
    dates::seconds(&text(resource, pointer)?).ok_or_else(|| lacks(resource, pointer))
}

/// The alerts of the service's conditions.
pub fn alerts(resource: &Value) -> Result<Vec<Alert>, Error> {
    let own: oem::ServiceConditions = oem::of(resource)?;
    let conditions = resource.get("Conditions").and_then(Value::as_array);
    let conditions = conditions.ok_or_else(|| lacks(resource, "/Conditions"))?;
    if conditions.len() != own.alerts.len() {
        return Err(lacks(resource, "/Oem/Palisade/Alerts"));
    }
    conditions.iter().zip(own.alerts).map(|(condition, own)| alert(condition, own)).collect()
}

fn alert(condition: &Value, own: oem::Alert) -> Result<Alert, Error> {
    let severity = text(condition, "/Severity")?;
    let severity =
        messages::Severity::of(&severity).ok_or_else(|| lacks(condition, "/Severity"))?;
    let message = text(condition, "/MessageId")?;
    let args = condition.get("MessageArgs").and_then(Value::as_array).into_iter().flatten();
    let at = own.acknowledged_time.as_deref().and_then(dates::seconds);
    Ok(Alert {
        id: own.id,
        message: message.strip_prefix(PREFIX).unwrap_or(&message).to_owned(),
        args: args.filter_map(Value::as_str).map(str::to_owned).collect(),
        severity: severity.into(),
        what: text(condition, "/Message")?,
        action: text(condition, "/Resolution")?,
        of: own.resource,
        name: own.name,
        raised: moment(condition, "/Timestamp")?,
        acknowledged: at.map(|at| (at, own.acknowledged_by.unwrap_or_default())),
    })
}

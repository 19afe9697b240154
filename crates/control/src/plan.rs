//! Plans: what a change would do, and what would be lost by it.
//!
//! Purpose: who asks is told before anything is done, and confirms just that ([`crate::confirm`]).
//! A plan is made of a view and, where drives may be overwritten, of a look at them ([`Looked`]);
//! nothing is asked here.
//!
//! Invariants
//! - A plan that loses nothing is of a change that destroys nothing.
//! - [`Planned::state`] is another wherever something else would be lost, though it has the same
//!   name: it is made of UUIDs, sizes, epochs, and of drives as they were seen. How far tasks are
//!   is no part of it.
//! - A plan of a change of an array has its drives, or those of them that the change is about.
//! - What the request would be refused for in any case is the error that it would meet.

use crate::digest::{Sum, sum};
use crate::paths::check_groups;
use crate::shares::{self, Shared};
use crate::{check_export, convert, failure, names};
use engine::manage::command::{ManageError, NewArray};
use engine::manage::plan::{self as engine_plan, Offered, check_name};
use layout::Level;
use redfish::change::{Change, JobAction, ShareChange};
use redfish::messages as say;
use redfish::view;
use redfish::view::{
    Array, ArrayState, Error, LocalExport, Plan, PlannedArray, PlannedDrive, SlotInfo, SlotState,
    TaskKind, View, Volume,
};
use units::{Slot, format_size};

/// What a look at the drives of a change gave.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Looked {
    /// The array that the drives would make, if one would be made.
    pub array: Option<PlannedArray>,
    /// The drives.
    pub drives: Vec<Seen>,
    /// What would be done besides what the change says.
    pub more: Vec<String>,
}

/// A drive as it was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// For the plan.
    pub drive: PlannedDrive,
    /// What tells it, and what it holds, from all others.
    pub identity: String,
}

/// A plan, and the state that it was made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// It.
    pub plan: Plan,
    /// A digest of the plan and of all that identifies what it is about.
    pub state: Sum,
    /// The drives that were looked at for it.
    pub seen: Vec<Seen>,
}

impl Planned {
    /// Why the request would be refused, if it would.
    pub fn refusal(&self) -> Option<Error> {
        self.plan.drives.iter().find(|drive| drive.refused).map(holds_foreign)
    }

    /// All drives that it shows, as a record names them, and as they were seen.
    pub fn drives(&self) -> Vec<PlannedDrive> {
        let seen = self.seen.iter().map(|seen| &seen.drive);
        self.plan.drives.iter().chain(seen).cloned().collect()
    }

    /// Whether data would be destroyed.
    pub fn destroys(&self) -> bool {
        !self.plan.lost.is_empty()
    }
}

/// Refuses a drive that holds something, and that nobody said may be overwritten.
pub fn holds_foreign(drive: &PlannedDrive) -> Error {
    let PlannedDrive { path, serial, destroys, .. } = drive;
    let what = destroys.as_deref().unwrap_or("something");
    Error::new(&say::DRIVE_HOLDS_DATA, &[path, serial, &what])
}

/// Makes the plan of a change.
///
/// # Errors
/// The change would be refused.
pub fn plan(view: &View, change: &Change, looked: Looked) -> Result<Planned, Error> {
    let mut identities: Vec<String> = Vec::new();
    if let Some(array) = change.array().and_then(|uuid| view.array(uuid)) {
        identities.extend(identity(view, array));
    }
    let seen = looked.drives.clone();
    identities.extend(seen.iter().map(|seen| seen.identity.clone()));
    let mut plan = match change {
        Change::CreateArray(request) => created(request, looked),
        Change::CreateVolumeOnDrives { array, size_bytes } => {
            created_with_volume(array, *size_bytes, looked)?
        }
        Change::Wipe(request) => wiped(&request.drive.path, looked),
        Change::FindDrives { paths } => {
            let further = match paths.is_empty() {
                true => String::new(),
                false => format!(", and at {}", paths.join(", ")),
            };
            steps([format!("look at the drives of the configuration{further}")])
        }
        Change::Access(change) => steps([change.words()].into_iter().chain(looked.more)),
        Change::Events(change) => steps([change.words()]),
        Change::Alerts(change) => steps([change.words()]),
        Change::Fabric(change) => steps([change.words()]),
        Change::Certificate(change) => steps([change.words()]),
        Change::LocateDrive { .. } | Change::SetDrivePower { .. } => steps([change.words(view)]),
        Change::VerifyLog => steps(["read all lines of the audit log".to_owned()]),
        Change::Job { id, action } => of_job(view, id, *action)?,
        other => of_array(view, other, looked)?,
    };
    plan.dry_run = true;
    let told = serde_json::to_vec(&plan).unwrap_or_default();
    let parts = identities.iter().map(String::as_bytes);
    let state = sum(core::iter::once(told.as_slice()).chain(parts));
    Ok(Planned { plan, state, seen })
}

/// The array that a request asks for, as the engine takes it.
pub fn new_array(request: &view::CreateArray, level: Level) -> NewArray {
    NewArray {
        shared: request.shared,
        name: request.name.clone(),
        level,
        strip_bytes: request.strip_bytes,
        block_bytes: request.block_bytes,
    }
}

/// What creating the array would give; fails where the drives can't make it.
pub fn planned(
    new: &NewArray,
    offered: &[Offered],
    (cores, same_drive): (u16, bool),
) -> Result<view::PlannedArray, Error> {
    let engine_plan::Plan { layout, block_bytes, .. } =
        engine_plan::plan(new, offered, cores).map_err(|error| failure::told(&error))?;
    let paths: Vec<&str> = offered.iter().map(|own| own.path.as_str()).collect();
    if !same_drive {
        check_groups(&layout, &paths)?;
    }
    Ok(view::PlannedArray {
        name: new.name.clone(),
        level: new.level.to_string(),
        strip_bytes: new.strip_bytes,
        block_bytes,
        size_bytes: layout.array_bytes(),
    })
}

/// What identifies an array, its volumes and its drives.
fn identity(view: &View, array: &Array) -> Vec<String> {
    let Array { name, uuid, epoch, size_bytes, .. } = array;
    let runs = array.state != ArrayState::Stopped;
    let mut parts = vec![format!("{uuid} {name} {epoch} {size_bytes} {runs}")];
    parts.extend(array.volumes.iter().map(|volume| {
        let Volume { uuid, name, size_bytes, .. } = volume;
        format!("{uuid} {name} {size_bytes}")
    }));
    parts.extend(array.slots.iter().map(|slot| {
        let path = slot.drive.as_deref().unwrap_or_default();
        let known = view.drives.iter().find(|known| known.drive.path == path);
        let id = known.map(|known| known.id.as_str()).unwrap_or_default();
        format!("{} {path} {} {id}", slot.slot, slot.serial)
    }));
    parts
}

fn steps(steps: impl IntoIterator<Item = String>) -> Plan {
    Plan { steps: steps.into_iter().collect(), ..Plan::default() }
}

fn many(count: usize, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// A volume as a person is told of it before it is lost.
fn told(array: &Array, volume: &Volume) -> String {
    let size = format_size(volume.size_bytes);
    format!("volume {}/{}, {size}, with all its data ({})", array.name, volume.name, volume.uuid)
}

/// What is lost with drives that are overwritten.
fn overwritten(drives: &[PlannedDrive]) -> Vec<String> {
    let lost = drives.iter().filter(|drive| !drive.refused).filter_map(|drive| {
        let what = drive.destroys.as_ref()?;
        Some(format!("what {} (serial {}) holds: {what}", drive.path, drive.serial))
    });
    lost.collect()
}

fn created(request: &view::CreateArray, looked: Looked) -> Plan {
    let drives: Vec<PlannedDrive> = looked.drives.into_iter().map(|seen| seen.drive).collect();
    Plan {
        steps: vec![
            format!(
                "write the records of array {} to {}{}",
                request.name,
                many(drives.len(), "drive"),
                if request.shared { ", which other servers may reach" } else { "" }
            ),
            format!("start array {}", request.name),
        ],
        lost: overwritten(&drives),
        array: looked.array,
        drives,
        ..Plan::default()
    }
}

fn created_with_volume(
    request: &view::CreateArray,
    size_bytes: Option<u64>,
    looked: Looked,
) -> Result<Plan, Error> {
    let mut plan = created(request, looked);
    let (free, block) =
        plan.array.as_ref().map_or((0, 0), |array| (array.size_bytes, array.block_bytes));
    let wanted = size_bytes.unwrap_or(free);
    check_size(wanted, block, free).map_err(|error| error.about(&request.name))?;
    plan.steps.push(format!("make volume {0}/{0}, {1}", request.name, format_size(wanted)));
    Ok(plan)
}

/// Refuses what a new volume can't be.
fn check_size(bytes: u64, block: u32, free: u64) -> Result<(), Error> {
    if bytes == 0 || !bytes.is_multiple_of(u64::from(block.max(1))) {
        return Err(failure::told(&ManageError::BadSize(bytes, block)));
    }
    match bytes > free {
        true => Err(failure::told(&ManageError::NoSpace { wanted: bytes, free })),
        false => Ok(()),
    }
}

fn wiped(path: &str, looked: Looked) -> Plan {
    let drives: Vec<PlannedDrive> = looked.drives.into_iter().map(|seen| seen.drive).collect();
    let mut lost = overwritten(&drives);
    if lost.is_empty() {
        // Something may be there that nobody knows.
        lost.push(format!("what {path} holds: nothing known"));
    }
    Plan { steps: vec![format!("erase the records on {path}")], lost, drives, ..Plan::default() }
}

fn of_job(view: &View, id: &str, action: JobAction) -> Result<Plan, Error> {
    let job = view.job(id).ok_or_else(|| names::no_task(id))?;
    let task = &job.task.id;
    Ok(steps([match action {
        JobAction::Suspend => format!("have task {task} wait"),
        JobAction::Resume => format!("have task {task} go on"),
        JobAction::Cancel if job.task.kind == TaskKind::Resync => {
            return Err(failure::told(&ManageError::NeededResync).about(&array_name(view, job)));
        }
        JobAction::Cancel => format!("end task {task}"),
    }]))
}

fn array_name(view: &View, job: &view::Job) -> String {
    view.array(&job.array).map_or(job.array.clone(), |array| array.name.clone())
}

/// The volume of this UUID.
fn volume_of<'a>(array: &'a Array, uuid: &str) -> Result<&'a Volume, Error> {
    let missing = || ManageError::NoVolume(array.name.clone(), uuid.to_owned());
    let found = array.volumes.iter().find(|volume| volume.uuid == uuid);
    found.ok_or_else(|| failure::told(&missing()).about(&array.name))
}

/// The plan of a change of an array that is there.
fn of_array(view: &View, change: &Change, looked: Looked) -> Result<Plan, Error> {
    let uuid = change.array().unwrap_or_default();
    let array = view.array(uuid).ok_or_else(|| names::unknown_array(uuid))?;
    let (name, runs) = (array.name.as_str(), array.state != ArrayState::Stopped);
    match change {
        Change::DeleteArray { .. } => {
            shares::has_none(name, &shares::seen(array))?;
            return Ok(deleted(view, array, looked));
        }
        Change::Assemble { request, .. } => return assembled(view, array, *request),
        _ if !runs => return Err(names::not_running(name)),
        _ => {}
    }
    let mut plan = match change {
        Change::Stop { .. } => {
            shares::has_none(name, &shares::seen(array))?;
            let mut all: Vec<String> = ended_exports(array).collect();
            all.push(format!("stop array {name}"));
            steps(all)
        }
        Change::FailDrive { request, .. } => failed(view, array, &request.drive)?,
        Change::ReplaceDrive { request, .. } => replaced(array, request.slot, looked)?,
        Change::Scrub { request, .. } => scrubbed(array, *request)?,
        Change::CreateVolume(request) => {
            check_name(&request.name).map_err(|error| failure::told(&error))?;
            if array.volumes.iter().any(|own| own.name == request.name) {
                return Err(failure::told(&ManageError::NameTaken(request.name.clone())));
            }
            check_size(request.size_bytes, array.block_bytes, array.free_bytes)
                .map_err(|error| error.about(name))?;
            let size = format_size(request.size_bytes);
            steps([format!("make volume {name}/{}, {size}, which reads as zeros", request.name)])
        }
        Change::ResizeVolume { volume, request, .. } => {
            resized(array, volume_of(array, volume)?, request.size_bytes)?
        }
        Change::DeleteVolume { volume, .. } => deleted_volume(array, volume_of(array, volume)?)?,
        Change::CreateExport(request) => exported(array, request)?,
        Change::Share(change) => of_share(view, array, change)?,
        Change::DeleteExport { id } => {
            let number = id.rsplit_once(':').map(|(_, number)| number).unwrap_or_default();
            steps([format!("disconnect the hosts of export {name}:{number}, and forget it")])
        }
        _ => Plan::default(),
    };
    if plan.drives.is_empty() {
        plan.drives = drives_of(view, array);
    }
    Ok(plan)
}

/// The plan of an export.
fn exported(array: &Array, request: &view::CreateExport) -> Result<Plan, Error> {
    let name = &array.name;
    check_export(request)?;
    let portals = request.iscsi.iter().flat_map(|iscsi| &iscsi.portals);
    let port = request.fc.iter().map(|fc| &fc.port);
    let at = request.nbd.iter().chain(&request.nvme_tcp).chain(portals).chain(port);
    let at: Vec<&str> = at.map(String::as_str).collect();
    let volume = &volume_of(array, &request.volume)?.name;
    if let Some(own) = shared_of(array, volume) {
        return Err(own.refuses(&say::EXPORT_OF_SHARED));
    }
    Ok(steps([match &request.local {
        None => format!("serve volume {name}/{volume} at {}", at.join(", ")),
        // Refused above.
        Some(LocalExport::Several) => String::new(),
        Some(LocalExport::Device | LocalExport::Ublk) => {
            format!("make a block device of this machine of volume {name}/{volume}")
        }
        Some(LocalExport::VhostUser(path)) => {
            format!("serve volume {name}/{volume} to a virtual machine at socket {path}")
        }
        Some(LocalExport::File(path)) => {
            format!("mount volume {name}/{volume} as file {path}")
        }
    }]))
}

/// What is shared of a volume of this name.
fn shared_of(array: &Array, volume: &str) -> Option<Shared> {
    let name = format!("{}/{volume}", array.name);
    shares::seen(array).into_iter().find(|own| own.volume == name)
}

/// The plan of a change of shares. What a volume holds nobody knows here: the daemon does not look
/// at its own volumes.
fn of_share(view: &View, array: &Array, change: &ShareChange) -> Result<Plan, Error> {
    let volume = volume_of(array, change.volume())?;
    let name = format!("{}/{}", array.name, volume.name);
    let others = || {
        let all = view.status.arrays.iter().flat_map(shares::seen);
        all.filter(|own| own.volume != name).collect::<Vec<Shared>>()
    };
    let own = shared_of(array, &volume.name).map(|own| own.own);
    let there = |what: &str| own.as_ref().ok_or_else(|| Error::new(&say::NO_SHARE, &[&what]));
    let mut lost = Vec::new();
    match change {
        ShareChange::Create(request) => {
            if let Some(other) = array.exports.iter().find(|own| own.volume == volume.name) {
                return Err(Error::new(&say::SHARE_ON_EXPORTED, &[&name, &other.id]));
            }
            shares::created(request, (&name, own.as_ref()), &others())?;
            let size = format_size(volume.size_bytes);
            lost.extend(
                request.overwrite.then(|| format!("whatever volume {name}, {size}, holds")),
            );
        }
        ShareChange::Set(request) => {
            shares::changed(request, (&name, there(&request.name)?), &others())?;
        }
        ShareChange::Delete { name, .. } => drop(shares::without(there(name)?, name)?),
        ShareChange::User(request) => {
            shares::check_user_change(request, (&name, there(&name)?))?;
            let users = array.filesystems.iter().find(|own| own.volume == volume.name);
            let is_there = |own: &view::ShareUser| own.name == request.name;
            let is_there = users.is_some_and(|own| own.users.iter().any(is_there));
            shares::check_user_is(request, &name, is_there)?;
        }
    }
    Ok(Plan { lost, ..steps([change.words(view)]) })
}

fn ended_exports(array: &Array) -> impl Iterator<Item = String> {
    let count = array.exports.len();
    let told = move || format!("disconnect the hosts of {}", many(count, "export"));
    (count > 0).then(told).into_iter()
}

/// The drive of a slot, if it has one, with its place in the array as what it holds.
fn drive_of(view: &View, array: &Array, slot: &SlotInfo) -> Option<PlannedDrive> {
    let path = slot.drive.clone()?;
    let known = view.drives.iter().find(|known| known.drive.path == path);
    Some(PlannedDrive {
        slot: Some(slot.slot),
        bytes: known.map_or(0, |known| known.drive.bytes),
        path,
        serial: slot.serial.clone(),
        content: Some(format!("slot {} of Palisade array \"{}\"", slot.slot, array.name)),
        destroys: None,
        refused: false,
    })
}

/// The drives of an array.
fn drives_of(view: &View, array: &Array) -> Vec<PlannedDrive> {
    array.slots.iter().filter_map(|slot| drive_of(view, array, slot)).collect()
}

fn deleted(view: &View, array: &Array, looked: Looked) -> Plan {
    let name = &array.name;
    let mut drives = drives_of(view, array);
    for drive in &mut drives {
        drive.destroys = drive.content.clone();
    }
    // Those with a record of it that no slot counts on: such as were replaced, and copies.
    for Seen { drive, .. } in looked.drives {
        if drives.iter().all(|own| own.path != drive.path) {
            drives.push(drive);
        }
    }
    let mut steps: Vec<String> = ended_exports(array).collect();
    if array.state != ArrayState::Stopped {
        steps.push(format!("stop array {name}"));
    }
    steps.push(format!("erase its records on {}", many(drives.len(), "drive")));
    let size = format_size(array.size_bytes);
    let mut lost = vec![format!("array {name}, level {}, {size} ({})", array.level, array.uuid)];
    lost.extend(array.volumes.iter().map(|volume| told(array, volume)));
    Plan { steps, lost, drives, ..Plan::default() }
}

fn assembled(view: &View, array: &Array, request: view::AssembleArray) -> Result<Plan, Error> {
    let name = &array.name;
    if array.state != ArrayState::Stopped {
        return Err(names::already_running(name));
    }
    let mut lost = Vec::new();
    if request.accept_loss {
        lost.push(format!(
            "of array {name} ({}): blocks that were being written at a crash may be wrong, and \
             the last changes of volumes and exports may be forgotten",
            array.uuid
        ));
    }
    let degraded =
        if request.start_degraded { ", also without drives that are missing" } else { "" };
    let mut steps = Vec::new();
    if let Some(owner) = array.owner.as_ref().filter(|owner| request.take_over && !owner.own) {
        steps.push(format!(
            "wait until no drive shows a sign of life of host {} ({}), and take array {name} over \
             from it: if that server runs on all the same, it may destroy what is written here",
            owner.called(),
            owner.host_id
        ));
    }
    steps.push(format!("start array {name}{degraded}"));
    Ok(Plan { steps, lost, drives: drives_of(view, array), ..Plan::default() })
}

fn failed(view: &View, array: &Array, drive: &str) -> Result<Plan, Error> {
    let number = drive.strip_prefix("slot:").and_then(|number| number.parse::<u16>().ok());
    let named = |slot: &&SlotInfo| {
        Some(slot.slot) == number || slot.drive.as_deref() == Some(drive) || slot.serial == drive
    };
    let is_out = |slot: &&SlotInfo| matches!(slot.state, SlotState::Failed | SlotState::Missing);
    let slot = array.slots.iter().filter(named).min_by_key(is_out).ok_or_else(|| {
        let missing = ManageError::NoDrive(array.name.clone(), drive.to_owned());
        failure::told(&missing).about(&array.name)
    })?;
    let step = format!("take the drive in slot {} of array {} out", slot.slot, array.name);
    Ok(Plan { drives: drive_of(view, array, slot).into_iter().collect(), ..steps([step]) })
}

fn replaced(array: &Array, slot: u16, looked: Looked) -> Result<Plan, Error> {
    let of_slot = |error: ManageError| failure::told(&error).about(&array.name);
    let known = array.slots.iter().find(|known| known.slot == slot);
    let known =
        known.ok_or_else(|| of_slot(ManageError::NoSlot(array.name.clone(), Slot(slot))))?;
    if matches!(known.state, SlotState::InSync | SlotState::Rebuilding) {
        return Err(of_slot(ManageError::SlotInUse(Slot(slot))));
    }
    let drives: Vec<PlannedDrive> = looked.drives.into_iter().map(|seen| seen.drive).collect();
    let with = drives.first().map_or("another drive", |drive| drive.path.as_str());
    let steps = vec![
        format!("put {with} in slot {slot} of array {}", array.name),
        "rebuild what the slot held".to_owned(),
    ];
    Ok(Plan { steps, lost: overwritten(&drives), drives, ..Plan::default() })
}

fn scrubbed(array: &Array, request: view::ScrubArray) -> Result<Plan, Error> {
    if matches!(array.level.as_str(), "0" | "jbod") {
        return Err(failure::told(&ManageError::NoRedundancy).about(&array.name));
    }
    let running = array.tasks.iter().find(|task| task.kind == TaskKind::Scrub);
    if let Some(task) = running {
        let busy = ManageError::Busy(convert::engine_kind(task.kind));
        return Err(failure::told(&busy).about(&array.name));
    }
    let step = match request {
        view::ScrubArray { repair: false, .. } => "compare its redundancy with its data",
        view::ScrubArray { trust_data: false, .. } => "repair strips that are known to be wrong",
        view::ScrubArray { trust_data: true, .. } => {
            "repair strips that are known to be wrong; where that is not known, trust the data"
        }
    };
    Ok(steps([format!("scrub array {}: {step}", array.name)]))
}

fn resized(array: &Array, volume: &Volume, bytes: u64) -> Result<Plan, Error> {
    // How much it needs beyond what it has, only the engine knows.
    check_size(bytes, array.block_bytes, array.size_bytes)
        .map_err(|error| error.about(&array.name))?;
    let name = format!("{}/{}", array.name, volume.name);
    if bytes < volume.size_bytes && shared_of(array, &volume.name).is_some() {
        return Err(Error::new(&say::SHARED_SHRINK, &[&name]));
    }
    let (now, then) = (format_size(volume.size_bytes), format_size(bytes));
    if bytes >= volume.size_bytes {
        return Ok(steps([format!("grow volume {name} from {now} to {then}")]));
    }
    let exported = array.exports.iter().any(|export| export.volume == volume.name);
    let exported = if exported { ", which is exported" } else { "" };
    let lost = volume.size_bytes - bytes;
    let lost = format!("the last {} ({lost} bytes) of volume {name}{exported}", format_size(lost));
    Ok(Plan { lost: vec![lost], ..steps([format!("shrink volume {name} from {now} to {then}")]) })
}

fn deleted_volume(array: &Array, volume: &Volume) -> Result<Plan, Error> {
    if let Some(own) = shared_of(array, &volume.name) {
        return Err(own.refuses(&say::VOLUME_SHARED));
    }
    if let Some(export) = array.exports.iter().find(|export| export.volume == volume.name) {
        let error = failure::told(&ManageError::Exported(volume.name.clone()));
        let hint = error.hint.replace("delete ID", &format!("delete {}", export.id));
        return Err(Error { hint, ..error });
    }
    let step = format!("delete volume {}/{}", array.name, volume.name);
    Ok(Plan { lost: vec![told(array, volume)], ..steps([step]) })
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

//! What a request wants changed: its method, URI and body, read strictly.
//!
//! A property that is unknown, doubled, missing, of a wrong type or out of range is refused by
//! name, before anything is done. Links become what `Manager` takes: a drive as it is known, an
//! array's or a volume's UUID. A link is always `{"@odata.id": URI}`.
//!
//! [`bodies`] is the table of what each takes. `DELETE` of a pool, a volume and a connection, and
//! the actions of a job, take nothing.

mod access;
mod alerts;
pub mod bodies;
mod certificate;
mod create;
mod drive;
mod events;
pub mod fabric;
mod links;
mod node;
mod share;
mod tree;
mod words;

pub use access::{AccessChange, AccountChange, NewAccount};
pub use alerts::{AlertsChange, MailChange};
pub use events::{EventsChange, NewSubscription, SubscriptionChange};
pub use fabric::{DISCOVERY_PORT, FabricChange, PORT, Place, Terms};
pub use share::ShareChange;

use crate::error::Refusal;
use crate::messages;
use crate::routes::{Match, Method, Resource};
use crate::view::{self, Error, View};
pub use certificate::CertificateChange;
use node::{Fields, Node};
use tree::Tree;

/// A change, with all links resolved. Arrays and volumes are UUIDs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Creates an array.
    CreateArray(view::CreateArray),
    /// Deletes an array.
    DeleteArray {
        /// The array's UUID.
        array: String,
    },
    /// Stops an array.
    Stop {
        /// The array's UUID.
        array: String,
    },
    /// Starts an array.
    Assemble {
        /// The array's UUID.
        array: String,
        /// What is accepted.
        request: view::AssembleArray,
    },
    /// Takes a drive out of service.
    FailDrive {
        /// The array's UUID.
        array: String,
        /// Which drive.
        request: view::FailDrive,
    },
    /// Puts another drive in a slot.
    ReplaceDrive {
        /// The array's UUID.
        array: String,
        /// Which slot and drive.
        request: view::ReplaceDrive,
    },
    /// Compares redundancy with the data.
    Scrub {
        /// The array's UUID.
        array: String,
        /// What is repaired.
        request: view::ScrubArray,
    },
    /// Creates a volume.
    CreateVolume(view::CreateVolume),
    /// Creates an array, and a volume of the same name in it.
    CreateVolumeOnDrives {
        /// The array.
        array: view::CreateArray,
        /// The volume's size; all that the array has if absent.
        size_bytes: Option<u64>,
    },
    /// Changes a volume's size.
    ResizeVolume {
        /// The array's UUID.
        array: String,
        /// The volume's UUID.
        volume: String,
        /// The new size.
        request: view::ResizeVolume,
    },
    /// Deletes a volume.
    DeleteVolume {
        /// The array's UUID.
        array: String,
        /// The volume's UUID.
        volume: String,
    },
    /// Serves a volume.
    CreateExport(view::CreateExport),
    /// Ends an export.
    DeleteExport {
        /// `ARRAY-UUID:NUMBER`.
        id: String,
    },
    /// Acts on background work.
    Job {
        /// The job's identifier.
        id: String,
        /// What to do.
        action: JobAction,
    },
    /// Erases a drive's records.
    Wipe(view::WipeDrive),
    /// Switches a drive's indicator.
    LocateDrive {
        /// The drive's identifier.
        id: String,
        /// Whether it is to be on.
        on: bool,
    },
    /// Puts a drive in a power state.
    SetDrivePower {
        /// The drive's identifier.
        id: String,
        /// The state's number.
        state: u8,
    },
    /// Changes accounts or sessions.
    Access(AccessChange),
    /// Changes the certificate of HTTPS.
    Certificate(CertificateChange),
    /// Changes who is told of events.
    Events(EventsChange),
    /// Acknowledges an alert, or changes how alerts are told.
    Alerts(AlertsChange),
    /// Finds, connects or disconnects subsystems behind NVMe over Fabrics.
    Fabric(FabricChange),
    /// Changes shares of a file system, or their users.
    Share(ShareChange),
    /// Looks for drives.
    FindDrives {
        /// Paths to look at, besides what the configuration names.
        paths: Vec<String>,
    },
    /// Follows the audit log's chain of hashes.
    VerifyLog,
}

impl Change {
    /// Whether data may be destroyed by it, as far as the view tells: a drive that may be
    /// overwritten may hold nothing.
    pub fn may_destroy(&self, view: &View) -> bool {
        match self {
            Self::DeleteArray { .. } | Self::DeleteVolume { .. } | Self::Wipe(_) => true,
            Self::CreateArray(array) | Self::CreateVolumeOnDrives { array, .. } => {
                !array.overwrite.is_empty()
            }
            Self::ReplaceDrive { request, .. } => !request.overwrite.is_empty(),
            Self::Assemble { request, .. } => request.accept_loss,
            Self::Share(change) => change.may_destroy(),
            Self::ResizeVolume { array, volume, request } => {
                let known = view.array(array).map(|array| array.volumes.as_slice());
                let mut volumes = known.unwrap_or_default().iter();
                let now = volumes.find(|own| own.uuid == *volume).map(|own| own.size_bytes);
                now.is_some_and(|now| request.size_bytes < now)
            }
            Self::Stop { .. }
            | Self::FailDrive { .. }
            | Self::Scrub { .. }
            | Self::CreateVolume(_)
            | Self::CreateExport(_)
            | Self::DeleteExport { .. }
            | Self::Job { .. }
            | Self::LocateDrive { .. }
            | Self::SetDrivePower { .. }
            | Self::FindDrives { .. }
            | Self::VerifyLog
            | Self::Certificate(_)
            | Self::Events(_)
            | Self::Alerts(_)
            | Self::Fabric(_)
            | Self::Access(_) => false,
        }
    }

    /// The UUID of the array that it changes; none if that is not there yet, or none.
    pub fn array(&self) -> Option<&str> {
        match self {
            Self::DeleteArray { array }
            | Self::Stop { array }
            | Self::Assemble { array, .. }
            | Self::FailDrive { array, .. }
            | Self::ReplaceDrive { array, .. }
            | Self::Scrub { array, .. }
            | Self::ResizeVolume { array, .. }
            | Self::DeleteVolume { array, .. } => Some(array),
            Self::CreateVolume(request) => Some(&request.array),
            Self::CreateExport(request) => Some(&request.array),
            Self::Share(change) => Some(change.array()),
            Self::DeleteExport { id } => id.rsplit_once(':').map(|(array, _)| array),
            Self::CreateArray(_)
            | Self::CreateVolumeOnDrives { .. }
            | Self::Job { .. }
            | Self::Wipe(_)
            | Self::LocateDrive { .. }
            | Self::SetDrivePower { .. }
            | Self::FindDrives { .. }
            | Self::VerifyLog
            | Self::Certificate(_)
            | Self::Events(_)
            | Self::Alerts(_)
            | Self::Fabric(_)
            | Self::Access(_) => None,
        }
    }
}

/// What can be done to background work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobAction {
    /// Let it wait.
    Suspend,
    /// Let it go on.
    Resume,
    /// End it.
    Cancel,
}

/// What a volume has, and keeps as it was created.
const READ_ONLY: [&str; 7] =
    ["Id", "Name", "RAIDType", "BlockSizeBytes", "CapacitySources", "Identifiers", "Status"];

/// Reads what a request wants.
///
/// # Errors
///
/// 404 if the URI names nothing, 405 if there is no such change, 400 if the body is wrong, 409 if
/// a job has ended.
pub fn parse(view: &View, found: &Match, method: Method, body: &[u8]) -> Result<Change, Refusal> {
    if found.route.privilege(method).is_none() {
        return Err(Refusal::not_allowed());
    }
    let action = action_name(found.route.resource);
    let tree = Tree::read(body)?;
    node::refuse_doubled(&tree, action)?;
    let mut fields = Node::root(&tree, action).fields()?;
    if let Some(change) = access::parse(view, found, method, &mut fields) {
        return whole(change, fields).map(Change::Access);
    }
    if let Some(change) = events::parse(view, found, method, &mut fields) {
        return whole(change, fields).map(Change::Events);
    }
    if let Some(change) = fabric::parse(found.route.resource, method, &mut fields) {
        return whole(change, fields).map(Change::Fabric);
    }
    if let Some(change) = alerts::parse(view, found.route.resource, method, &mut fields) {
        return whole(change, fields).map(Change::Alerts);
    }
    if let Some(change) = certificate::parse(found.route.resource, &mut fields) {
        return whole(change, fields).map(Change::Certificate);
    }
    match (method, found.route.resource) {
        (Method::Post, Resource::Pools) => create::array(view, fields),
        (Method::Post, Resource::Volumes) => create::volume(view, fields),
        (Method::Post, Resource::Connections) => create::export(view, found, fields),
        (Method::Post, Resource::FindDrives) => find_drives(fields),
        (Method::Post, Resource::VerifyLog) => {
            fields.end()?;
            Ok(Change::VerifyLog)
        }
        (Method::Post, Resource::Wipe) => drive::wipe(view, found, fields),
        (Method::Post, Resource::SetPowerState) => drive::power(view, found, fields),
        (Method::Patch, Resource::Drive) => drive::locate(view, found, fields),
        (Method::Post, Resource::Suspend) => job(view, found, fields, JobAction::Suspend),
        (Method::Post, Resource::Resume) => job(view, found, fields, JobAction::Resume),
        (Method::Post, Resource::Cancel) => job(view, found, fields, JobAction::Cancel),
        (Method::Post | Method::Delete, Resource::Pool)
        | (
            Method::Post,
            Resource::Stop
            | Resource::Assemble
            | Resource::FailDrive
            | Resource::ReplaceDrive
            | Resource::Scrub,
        ) => pool(view, found, method, fields),
        (Method::Patch | Method::Delete, Resource::Volume)
        | (Method::Post, Resource::CheckConsistency) => volume(view, found, method, fields),
        (
            _,
            Resource::FileSystems
            | Resource::FileShares
            | Resource::FileShare
            | Resource::AddShareUser
            | Resource::SetShareUserPassword
            | Resource::DeleteShareUser,
        ) => share::parse(view, found, method, fields).map(Change::Share),
        (Method::Delete, Resource::Connection) => {
            fields.end()?;
            links::export(view, found.id(0), found.id(1))
                .map(|id| Change::DeleteExport { id })
                .ok_or_else(|| nothing(found))
        }
        _ => Err(Refusal::not_allowed()),
    }
}

/// A change that all properties of a request are of.
fn whole<T>(change: Result<T, Refusal>, fields: Fields<'_>) -> Result<T, Refusal> {
    let change = change?;
    fields.end()?;
    Ok(change)
}

/// Puts an array's name where the daemon speaks of its UUID, unless two arrays have that name:
/// a person knows the array by its name.
pub fn with_names(view: &View, error: Error) -> Error {
    let arrays = &view.status.arrays;
    let mut told = error;
    for array in arrays.iter().filter(|array| !array.uuid.is_empty()) {
        if arrays.iter().filter(|other| other.name == array.name).count() == 1 {
            told.error = told.error.replace(&array.uuid, &array.name);
            told.hint = told.hint.replace(&array.uuid, &array.name);
            for arg in &mut told.args {
                *arg = arg.replace(&array.uuid, &array.name);
            }
        }
    }
    told
}

/// The name of an action, as resources have it under `Actions`.
pub const fn action_name(resource: Resource) -> Option<&'static str> {
    Some(match resource {
        Resource::Acknowledge => "PalisadeServiceConditions.Acknowledge",
        Resource::TestAlerts => "PalisadeServiceConditions.Test",
        Resource::Discover => "PalisadeManager.Discover",
        Resource::Connect => "PalisadeManager.Connect",
        Resource::Disconnect => "PalisadeManager.Disconnect",
        Resource::FindDrives => "PalisadeStorage.FindDrives",
        Resource::Stop => "PalisadeStoragePool.Stop",
        Resource::Assemble => "PalisadeStoragePool.Assemble",
        Resource::FailDrive => "PalisadeStoragePool.FailDrive",
        Resource::ReplaceDrive => "PalisadeStoragePool.ReplaceDrive",
        Resource::Scrub => "PalisadeStoragePool.Scrub",
        Resource::CheckConsistency => "Volume.CheckConsistency",
        Resource::AddShareUser => "PalisadeFileSystem.AddUser",
        Resource::SetShareUserPassword => "PalisadeFileSystem.SetUserPassword",
        Resource::DeleteShareUser => "PalisadeFileSystem.DeleteUser",
        Resource::Wipe => "PalisadeDrive.Wipe",
        Resource::SetPowerState => "PalisadeDrive.SetPowerState",
        Resource::VerifyLog => "PalisadeLogService.Verify",
        Resource::GenerateCsr => "CertificateService.GenerateCSR",
        Resource::ReplaceCertificate => "CertificateService.ReplaceCertificate",
        Resource::SubmitTestEvent => "EventService.SubmitTestEvent",
        Resource::ResumeSubscription => "EventDestination.ResumeSubscription",
        Resource::Suspend => "Job.Suspend",
        Resource::Resume => "Job.Resume",
        Resource::Cancel => "Job.Cancel",
        _ => return None,
    })
}

fn last(found: &Match) -> &str {
    found.ids.last().map_or("", String::as_str)
}

/// There is nothing at the URI of the request: of an action, at that of its resource.
fn nothing(found: &Match) -> Refusal {
    Refusal::not_found(&found.subject())
}

fn pool(
    view: &View,
    found: &Match,
    method: Method,
    mut fields: Fields<'_>,
) -> Result<Change, Refusal> {
    let known = view.array(last(found)).ok_or_else(|| nothing(found))?;
    let array = known.uuid.clone();
    let change = match (method, found.route.resource) {
        (Method::Delete, Resource::Pool) => Change::DeleteArray { array },
        (_, Resource::Stop) => Change::Stop { array },
        (_, Resource::Assemble) => {
            let start_degraded = fields.flag("StartDegraded")?;
            let accept_loss = fields.flag("AcceptLoss")?;
            let take_over = fields.flag("TakeOver")?;
            let other_server_is_off = fields.flag("OtherServerIsOff")?;
            let request =
                view::AssembleArray { start_degraded, accept_loss, take_over, other_server_is_off };
            Change::Assemble { array, request }
        }
        (_, Resource::FailDrive) => {
            let request = view::FailDrive { drive: failing(view, &mut fields)? };
            Change::FailDrive { array, request }
        }
        (_, Resource::ReplaceDrive) => {
            let slot = slot(&fields.need("Slot")?)?;
            let with = links::drive(view, &fields.need("With")?)?;
            let overwrite = create::overwrite(view, &mut fields)?;
            let request = view::ReplaceDrive { slot, with, overwrite };
            Change::ReplaceDrive { array, request }
        }
        (_, Resource::Scrub) => Change::Scrub { array, request: scrub(&mut fields)? },
        _ => return Err(Refusal::not_allowed()),
    };
    fields.end()?;
    Ok(change)
}

/// Which drive to take out of service: its path, or `slot:N`.
fn failing(view: &View, fields: &mut Fields<'_>) -> Result<String, Refusal> {
    match (fields.take("Drive"), fields.take("Slot")) {
        (Some(_), Some(slot)) => Err(slot.conflict("Drive")),
        (Some(drive), None) => links::drive(view, &drive).map(|drive| drive.path),
        (None, Some(number)) => Ok(format!("slot:{}", slot(&number)?)),
        (None, None) => Err(fields.missing("Drive")),
    }
}

fn slot(node: &Node<'_>) -> Result<u16, Refusal> {
    let most = u16::MAX.into();
    u16::try_from(node.whole(0, most)?).map_err(|_| node.out_of_range(0, most))
}

fn scrub(fields: &mut Fields<'_>) -> Result<view::ScrubArray, Refusal> {
    let mode = match fields.take("Mode") {
        Some(mode) => mode.word(&["Check", "Repair"])?,
        None => "Check",
    };
    let trust = fields.take("TrustData");
    let trust_data = trust.as_ref().map_or(Ok(false), Node::truth)?;
    let repair = mode == "Repair";
    match trust {
        Some(trust) if trust_data && !repair => Err(trust.conflict("Mode")),
        _ => Ok(view::ScrubArray { repair, trust_data }),
    }
}

fn volume(
    view: &View,
    found: &Match,
    method: Method,
    mut fields: Fields<'_>,
) -> Result<Change, Refusal> {
    let (array, volume) = view.volume(last(found)).ok_or_else(|| nothing(found))?;
    let (array, volume) = (array.uuid.clone(), volume.uuid.clone());
    let change = match (method, found.route.resource) {
        (Method::Delete, _) => Change::DeleteVolume { array, volume },
        (Method::Patch, _) => {
            fields.not_empty()?;
            fields.oem()?.end()?;
            if let Some(node) = READ_ONLY.iter().find_map(|name| fields.take(name)) {
                return Err(node.read_only());
            }
            let size_bytes = fields.need("CapacityBytes")?.whole(1, u64::MAX)?;
            let request = view::ResizeVolume { size_bytes, shrink: false };
            Change::ResizeVolume { array, volume, request }
        }
        _ => {
            let request = view::ScrubArray { repair: false, trust_data: false };
            Change::Scrub { array, request }
        }
    };
    fields.end()?;
    Ok(change)
}

fn find_drives(mut fields: Fields<'_>) -> Result<Change, Refusal> {
    let paths = fields.texts("Paths", bodies::MOST_PATHS)?;
    fields.end()?;
    Ok(Change::FindDrives { paths })
}

fn job(
    view: &View,
    found: &Match,
    fields: Fields<'_>,
    action: JobAction,
) -> Result<Change, Refusal> {
    let job = view.job(last(found)).ok_or_else(|| nothing(found))?;
    fields.end()?;
    if job.ended.is_some() {
        return Err(Error::new(&messages::TASK_ENDED, &[&job.task.id]).into());
    }
    Ok(Change::Job { id: job.id.clone(), action })
}

#[cfg(test)]
#[path = "change_tests.rs"]
pub(crate) mod tests;

//! Changes that Redfish requests ask for, and what they are answered.
//!
//! Invariants
//! - A change that was begun is carried to its end, whether or not the client stays.
//! - Who was answered finds the change in what is read next: the view is renewed before.

use crate::api::{self, Error};
use crate::caller::Caller;
use crate::manager::Manager;
use crate::reply::Told;
use engine::manage::command::TaskAction;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use redfish::change::{self, Change, JobAction};
use redfish::error::{Base, Refusal};
use redfish::messages as say;
use redfish::routes::{self, Match, Method, Resource};
use redfish::service::{self, uri};
use redfish::told;
use serde::Serialize;
use std::sync::Arc;

/// What came of a change.
enum Done {
    /// Nothing more is to be said.
    Quietly,
    /// A resource was made.
    Made(String),
    /// A resource was changed.
    Changed(String),
    /// What is to be said.
    Says(Result<serde_json::Value, serde_json::Error>),
}

impl Done {
    fn says(what: &impl Serialize) -> Self {
        Self::Says(serde_json::to_value(what))
    }
}

/// Carries a change out.
pub async fn carry_out(
    manager: &Arc<Manager>,
    _caller: &Caller,
    found: &Match,
    method: Method,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Told, Refusal> {
    let plan_only = plans_only(headers)?;
    if plan_only && found.route.resource != Resource::Pools {
        return Err(Refusal::base(&Base::HEADER_INVALID, &[told::PLAN_HEADER]));
    }
    let change = change::parse(&manager.view(), found, method, body, plan_only)?;
    // Whoever asked may go meanwhile.
    let work = tokio::spawn({
        let manager = manager.clone();
        async move { act(&manager, change).await }
    });
    let stopping = || Error::new(&say::STOPPING, &[]);
    let outcome = work.await.unwrap_or_else(|_| Err(stopping()));
    let view = manager.view();
    let done = outcome.map_err(|error| Refusal::from(change::with_names(&view, error)))?;
    let resource = |uri: &str| {
        let found = routes::find(uri)?;
        service::render(&view, &found)
    };
    Ok(match done {
        Done::Quietly => Told::nothing(),
        Done::Says(value) => Told::json(value.map_err(|_| Refusal::internal())?),
        Done::Changed(uri) => resource(&uri).map_or_else(Told::nothing, Told::json),
        Done::Made(uri) => {
            let mut told = resource(&uri).map_or_else(Told::nothing, Told::json);
            told.status = StatusCode::CREATED;
            told.location = Some(uri);
            told
        }
    })
}

/// Whether only a plan is asked for.
fn plans_only(headers: &HeaderMap) -> Result<bool, Refusal> {
    match headers.get(told::PLAN_HEADER) {
        None => Ok(false),
        Some(value) if value == "only" => Ok(true),
        Some(_) => Err(Refusal::base(&Base::HEADER_INVALID, &[told::PLAN_HEADER])),
    }
}

/// Does it.
async fn act(manager: &Arc<Manager>, change: Change) -> Result<Done, Error> {
    match change {
        Change::CreateArray(request) if request.dry_run => {
            Ok(Done::says(&told::Planned::from(&manager.plan(&request).await?)))
        }
        Change::CreateArray(request) => {
            let array = manager.create(&request).await?;
            Ok(Done::Made(uri::pool(&array.uuid)))
        }
        Change::DeleteArray { array } => {
            let api::Deleted { left, .. } = manager.delete(&array).await?;
            Ok(if left.is_empty() { Done::Quietly } else { Done::says(&told::Left { left }) })
        }
        Change::Stop { array } => manager.stop(&array).await.map(quietly),
        Change::Assemble { array, request } => manager.assemble(&array, request).await.map(quietly),
        Change::FailDrive { array, request } => {
            manager.fail(&array, &request.drive).await.map(quietly)
        }
        Change::ReplaceDrive { array, request } => {
            manager.replace(&array, &request).await.map(quietly)
        }
        Change::Scrub { array, request } => manager.scrub(&array, request).await.map(quietly),
        Change::CreateVolume(request) => volume_made(&manager.create_volume(&request).await?),
        Change::CreateVolumeOnDrives { array, size_bytes } => {
            create_on_drives(manager, &array, size_bytes).await
        }
        Change::ResizeVolume { array, volume, request } => {
            let volume = manager.resize_volume(&array, &volume, request).await?;
            Ok(Done::Changed(uri::volume(&volume.uuid)))
        }
        Change::DeleteVolume { array, volume } => {
            manager.delete_volume(&array, &volume).await.map(quietly)
        }
        Change::CreateExport(request) => {
            let export = manager.create_export(&request).await?;
            let fabric = if export.nvme.is_some() { "nvme" } else { "nbd" };
            let number = uri::export_number(&export.id).unwrap_or_default();
            let id = uri::connection_id(&request.array, number);
            Ok(Done::Made(uri::connection(fabric, &id)))
        }
        Change::DeleteExport { id } => manager.delete_export(&id).await.map(quietly),
        Change::Job { id, action } => {
            let action = match action {
                JobAction::Suspend => TaskAction::Pause,
                JobAction::Resume => TaskAction::Resume,
                JobAction::Cancel => TaskAction::Cancel,
            };
            manager.act_on_job(&id, action).await.map(quietly)
        }
        Change::Wipe(request) => {
            let api::Wiped { held, .. } = manager.wipe(&request).await?;
            Ok(Done::says(&told::Wiped { held }))
        }
        Change::FindDrives { paths } => {
            let ids = manager.find_drives(&paths).await?;
            let link = |id: &String| told::Link { uri: uri::drive(id) };
            Ok(Done::says(&told::Found { drives: ids.iter().map(link).collect() }))
        }
    }
}

/// Creates an array and a volume in it: both, or neither.
async fn create_on_drives(
    manager: &Arc<Manager>,
    request: &api::CreateArray,
    size_bytes: Option<u64>,
) -> Result<Done, Error> {
    let array = manager.create(request).await?;
    let volume = api::CreateVolume {
        array: array.uuid.clone(),
        name: request.name.clone(),
        size_bytes: size_bytes.unwrap_or(array.free_bytes),
    };
    match manager.create_volume(&volume).await {
        Ok(volume) => volume_made(&volume),
        Err(error) => {
            // Unless somebody has begun to use it. An array that can't be deleted is listed.
            if manager.array(&array.uuid).await.is_ok_and(|array| array.volumes.is_empty()) {
                let _ = manager.delete(&array.uuid).await;
            }
            Err(error)
        }
    }
}

fn quietly<T>(_: T) -> Done {
    Done::Quietly
}

fn volume_made(volume: &api::Volume) -> Result<Done, Error> {
    Ok(Done::Made(uri::volume(&volume.uuid)))
}

//! Changes that Redfish requests ask for, and what they are answered.
//!
//! Invariants
//! - A change that was begun is carried to its end, whether or not the client stays.
//! - Who was answered finds the change in what is read next: the view is renewed before.

use crate::api::{self, Error};
use crate::caller::{Caller, password_first};
use crate::login;
use crate::manager::Manager;
use crate::reply::{Body, Told};
use engine::manage::command::TaskAction;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use redfish::change::{self, Change, JobAction};
use redfish::error::{Base, Refusal};
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
    /// A session was begun: its URI, what opens it, and its account if it has to change its password.
    Begun(String, String, Option<String>),
    /// What is to be said.
    Says(Result<serde_json::Value, serde_json::Error>),
}

impl Done {
    fn says(what: &impl Serialize) -> Self {
        Self::Says(serde_json::to_value(what))
    }
}

impl From<login::Done> for Done {
    fn from(done: login::Done) -> Self {
        match done {
            login::Done::Quietly => Self::Quietly,
            login::Done::Made(uri) => Self::Made(uri),
            login::Done::Changed(uri) => Self::Changed(uri),
            login::Done::Begun { uri, token, must_change } => Self::Begun(uri, token, must_change),
        }
    }
}

/// Carries a change out.
pub async fn carry_out(
    manager: &Arc<Manager>,
    caller: &Caller,
    found: &Match,
    method: Method,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Told, Refusal> {
    let request = words(method, found);
    let wanted = wanted(manager, found, method, headers, body);
    let change = match wanted {
        Ok(change) => change,
        Err(refusal) => {
            manager.audit().refused(caller, &request, "", &refusal).await;
            return Err(refusal);
        }
    };
    // Whoever asked may go meanwhile.
    let work = tokio::spawn({
        let (manager, caller) = (manager.clone(), caller.clone());
        async move { noted(&manager, &caller, &request, change).await }
    });
    let stopping = || Error::failed("the daemon is stopping", "start it again");
    let done = work.await.unwrap_or_else(|_| Err(stopping().into()))?;
    let view = manager.view();
    let resource = |uri: &str| {
        let found = routes::find(uri)?;
        service::render(&view, &found)
    };
    Ok(match done {
        Done::Quietly => Told::nothing(),
        Done::Says(value) => Told::json(value.map_err(|_| Refusal::internal())?),
        Done::Changed(uri) => resource(&uri).map_or_else(Told::nothing, Told::json),
        Done::Begun(uri, token, must_change) => {
            let mut body = resource(&uri).unwrap_or_default();
            if let Some(account) = must_change {
                password_first(&account).annotate(&mut body);
            }
            let status = StatusCode::CREATED;
            Told { status, location: Some(uri), token: Some(token), body: Body::Json(body) }
        }
        Done::Made(uri) => {
            let mut told = resource(&uri).map_or_else(Told::nothing, Told::json);
            told.status = StatusCode::CREATED;
            told.location = Some(uri);
            told
        }
    })
}

/// A request in the words of the audit log.
pub fn words(method: Method, found: &Match) -> String {
    let method = match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
    };
    format!("{method} {}", found.uri())
}

/// The change that is asked for.
fn wanted(
    manager: &Manager,
    found: &Match,
    method: Method,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Change, Refusal> {
    let plan_only = plans_only(headers)?;
    if plan_only && found.route.resource != Resource::Pools {
        return Err(Refusal::base(&Base::HEADER_INVALID, &[told::PLAN_HEADER]));
    }
    change::parse(&manager.view(), found, method, body, plan_only)
}

/// Does it, between two lines of the audit log.
async fn noted(
    manager: &Arc<Manager>,
    caller: &Caller,
    request: &str,
    change: Change,
) -> Result<Done, Refusal> {
    let open = match change.is_noted() {
        true => {
            let what = change.words(&manager.view());
            Some(manager.audit().begin(caller, request, &what).await)
        }
        false => None,
    };
    let outcome = match change {
        Change::Access(change) => {
            login::change(manager, caller, request, change).await.map(Done::from)
        }
        change => {
            let told = |error| Refusal::from(change::with_names(&manager.view(), error));
            act(manager, change).await.map_err(told)
        }
    };
    if let Some(open) = open {
        open.end(outcome.as_ref().map(drop));
    }
    outcome
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
        Change::VerifyLog => verify_log(manager).await,
        Change::Access(_) => Err(Error::usage("this changes nothing of arrays", "")),
        Change::FindDrives { paths } => {
            let ids = manager.find_drives(&paths).await?;
            let link = |id: &String| told::Link { uri: uri::drive(id) };
            Ok(Done::says(&told::Found { drives: ids.iter().map(link).collect() }))
        }
    }
}

/// Follows the audit log's chain, on a thread of its own.
async fn verify_log(manager: &Manager) -> Result<Done, Error> {
    let audit = manager.audit().clone();
    let found = tokio::task::spawn_blocking(move || audit.verify()).await;
    let failed = |why: String| {
        let text = format!("the audit log can't be read: {why}");
        Error::failed(text, "check the file system of the state directory")
    };
    let found = found.map_err(|error| failed(error.to_string()))?;
    let found = found.map_err(|error| failed(error.to_string()))?;
    Ok(Done::says(&told::Verified::from(found)))
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

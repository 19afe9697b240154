//! Changes that Redfish requests ask for, and what they are answered.
//!
//! Invariants
//! - A change that was begun is carried to its end, whether or not the client stays.
//! - Who was answered finds the change in what is read next: the view is renewed before.
//! - A change that destroys data is done only as it was planned, for who has the token of its plan
//!   ([`crate::confirm`]): from the look at what it destroys to its end nobody else changes the
//!   array ([`crate::holds`]), and a drive that is written after that look is refused.

use crate::audit::Open;
use crate::caller::{Caller, password_first};
use crate::certificate::Request;
use crate::confirm::{Asked, LIFE};
use crate::events::Changed;
use crate::fabrics::Fabrics;
use crate::login;
use crate::manager::Manager;
use crate::plan::Planned;
use crate::reach;
use crate::reply::Told;
use crate::snapshot::now;
use engine::manage::command::TaskAction;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH};
use redfish::change::{
    self, AccessChange, AlertsChange, CertificateChange, Change, EventsChange, FabricChange,
    JobAction, ShareChange,
};
use redfish::error::{Base, Refusal, Unconfirmed};
use redfish::etag::{self, Conditions};
use redfish::messages as say;
use redfish::routes::{self, Match, Method};
use redfish::service::{self, uri};
use redfish::told;
use redfish::view::{self, Error, NamedDrive, TaskKind};
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

/// What came of a change.
enum Done {
    /// Nothing more is to be said.
    Quietly,
    /// A resource was made.
    Made(String),
    /// A resource was changed.
    Changed(String),
    /// Background work was begun: the URI of its job.
    Works(String),
    /// A session was begun: its URI, what opens it, and its account if that has to change its
    /// password.
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

/// Plans a change, or carries it out.
pub async fn carry_out(
    manager: &Arc<Manager>,
    caller: &Caller,
    found: &Match,
    method: Method,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Told, Refusal> {
    let request = words(method, found);
    let wanted = match wanted(manager, caller, (found, method), headers, body).await {
        Ok(wanted) => wanted,
        Err(refusal) => {
            manager.audit().refused(caller, &request, "", &refusal).await;
            return Err(refusal);
        }
    };
    let asked = Asked::new(caller, method, &found.uri(), body);
    if wanted.plan_only {
        if let Change::Access(change) = &wanted.change {
            login::may_plan(caller, change)?;
        }
        let planned = planned(manager, caller, &request, &wanted.change).await?;
        let told = serde_json::to_value(with_token(manager, &planned, &asked));
        return told.map(Told::json).map_err(|_| Refusal::internal());
    }
    // Whoever asked may go meanwhile.
    let work = tokio::spawn({
        let (manager, caller, found) = (manager.clone(), caller.clone(), found.clone());
        async move {
            let is_noted = wanted.change.is_noted();
            let what = wanted.change.words(&manager.view());
            let mut note = Note { caller: &caller, request: &request, what: &what, open: None };
            let outcome = confirm_and_act(&manager, wanted, &found, &asked, &mut note).await;
            match (note.open, &outcome) {
                (Some(open), _) => open.end(outcome.as_ref().map(drop)),
                (None, Err(refusal)) if is_noted => {
                    manager.audit().refused(&caller, &request, &what, refusal).await;
                }
                (None, _) => {}
            }
            outcome
        }
    });
    let stopping = || Error::new(&say::STOPPING, &[]);
    let done = work.await.unwrap_or_else(|_| Err(stopping().into()))?;
    answered(manager, done)
}

/// What a client is told of what came of its change.
fn answered(manager: &Manager, done: Done) -> Result<Told, Refusal> {
    let view = manager.view();
    let resource = |uri: &str| {
        let found = routes::find(uri)?;
        service::render(&view, &found)
    };
    Ok(match done {
        Done::Quietly => Told::nothing(),
        Done::Works(uri) => Told { location: Some(uri), ..Told::nothing() },
        Done::Says(value) => Told::json(value.map_err(|_| Refusal::internal())?),
        Done::Changed(uri) => resource(&uri).map_or_else(Told::nothing, Told::json),
        Done::Begun(uri, token, must_change) => {
            let mut body = resource(&uri).unwrap_or_default();
            if let Some(account) = must_change {
                password_first(&account).annotate(&mut body);
            }
            let (status, location) = (StatusCode::CREATED, Some(uri));
            Told { status, location, token: Some(token), ..Told::json(body) }
        }
        Done::Made(uri) => {
            let mut told = resource(&uri).map_or_else(Told::nothing, Told::json);
            told.status = StatusCode::CREATED;
            told.location = Some(uri);
            told
        }
    })
}

/// What a change would do. A refusal is told to the audit log.
async fn planned(
    manager: &Manager,
    caller: &Caller,
    request: &str,
    change: &Change,
) -> Result<Planned, Refusal> {
    match manager.plan(change).await {
        Ok(planned) => Ok(planned),
        Err(error) => {
            let (refusal, what) = (refused(manager, error), change.words(&manager.view()));
            manager.audit().refused(caller, request, &what, &refusal).await;
            Err(refusal)
        }
    }
}

/// What a request wants, and how.
struct Wanted {
    change: Change,
    /// Only to be told what it would do.
    plan_only: bool,
    /// The token that confirms it.
    token: Option<String>,
    /// For which state of its resource.
    conditions: Conditions,
}

/// What the audit log is told of a change.
struct Note<'a> {
    caller: &'a Caller,
    request: &'a str,
    what: &'a str,
    /// Once it was begun.
    open: Option<Open>,
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

/// Reads what a request wants.
async fn wanted(
    manager: &Manager,
    caller: &Caller,
    (found, method): (&Match, Method),
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Wanted, Refusal> {
    let (plan_only, token) = (plans_only(headers)?, token(headers)?);
    let conditions = conditions(headers)?;
    unchanged(manager, &conditions, found)?;
    let mut change = change::parse(&manager.view(), found, method, body)?;
    reach::confine(manager, caller, &words(method, found), &mut change).await?;
    Ok(Wanted { change, plan_only, token, conditions })
}

/// For which state of its resource a request holds.
pub fn conditions(headers: &HeaderMap) -> Result<Conditions, Refusal> {
    let value = |name: &HeaderName| -> Result<Option<String>, Refusal> {
        let mut all = Vec::new();
        for value in headers.get_all(name) {
            let wrong = |_| Refusal::base(&Base::HEADER_INVALID, &[name.as_str()]);
            all.push(value.to_str().map_err(wrong)?);
        }
        Ok((!all.is_empty()).then(|| all.join(",")))
    };
    Conditions::read(value(&IF_MATCH)?.as_deref(), value(&IF_NONE_MATCH)?.as_deref())
}

/// Checks that what is to be changed is as the request supposes.
fn unchanged(manager: &Manager, conditions: &Conditions, found: &Match) -> Result<(), Refusal> {
    if conditions.is_empty() {
        return Ok(());
    }
    let subject = service::subject(&manager.view(), found);
    conditions.check(subject.as_ref().and_then(etag::read))
}

/// Whether only a plan is asked for.
fn plans_only(headers: &HeaderMap) -> Result<bool, Refusal> {
    match headers.get(told::PLAN_HEADER) {
        None => Ok(false),
        Some(value) if value == "only" => Ok(true),
        Some(_) => Err(Refusal::base(&Base::HEADER_INVALID, &[told::PLAN_HEADER])),
    }
}

/// The token that confirms the change, if one came.
fn token(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let invalid = || Refusal::base(&Base::HEADER_INVALID, &[told::CONFIRM_HEADER]);
    let mut all = headers.get_all(told::CONFIRM_HEADER).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => one.to_str().map(|text| Some(text.to_owned())).map_err(|_| invalid()),
        _ => Err(invalid()),
    }
}

/// What a failure is answered.
fn refused(manager: &Manager, error: Error) -> Refusal {
    Refusal::from(change::with_names(&manager.view(), error))
}

/// A plan with a new token.
fn with_token(manager: &Manager, planned: &Planned, asked: &Asked) -> told::Planned {
    let token = manager.confirm.give(asked, planned.state, Instant::now());
    told::Planned::new(&planned.plan, token, now() + LIFE.as_secs())
}

/// Whether a change is of an account, which is told as it is kept: nobody gets between what was
/// compared and the change.
const fn is_of_account(change: &Change) -> bool {
    let Change::Access(change) = change else { return false };
    matches!(change, AccessChange::Change { .. } | AccessChange::Delete { .. })
}

/// Carries a change out, if it destroys nothing or is confirmed.
async fn confirm_and_act(
    manager: &Arc<Manager>,
    Wanted { mut change, token, conditions, .. }: Wanted,
    found: &Match,
    asked: &Asked,
    note: &mut Note<'_>,
) -> Result<Done, Refusal> {
    let required = manager.confirm.is_required();
    // Who sends a token means what was planned, though it may destroy nothing by now.
    let is_planned = token.is_some();
    let alone = required && (is_planned || change.may_destroy(&manager.view()));
    let asked_at = Instant::now();
    // To the end of the change. Who names a state has nobody beside them while it is compared.
    let alone_with = alone || !conditions.is_empty();
    let array = match change.array() {
        Some(array) => Some(manager.holds.take(array, alone_with).await),
        None => None,
    };
    let subject = manager.holds.take(&found.subject(), !conditions.is_empty()).await;
    unchanged(manager, &conditions, found)?;
    if !is_of_account(&change) {
        subject.share();
    }
    if let Some(array) = array.as_ref().filter(|_| !alone) {
        array.share();
    }
    let (mut confirmed, mut shown) = (!required, None);
    if alone {
        let planned = manager.plan(&change).await.map_err(|error| refused(manager, error))?;
        if let Some(error) = planned.refusal() {
            return Err(refused(manager, error));
        }
        if planned.destroys() || is_planned {
            let token = token.as_deref();
            let taken = manager.confirm.take(token, asked, planned.state, asked_at);
            taken.map_err(|why| Refusal::planned(why, &with_token(manager, &planned, asked)))?;
            confirmed = true;
        }
        keep_to(&mut change, &planned);
        shown = Some(planned);
    }
    if let Change::ResizeVolume { request, .. } = &mut change {
        request.shrink = confirmed;
    }
    if change.is_noted() {
        let open = manager.audit().begin(note.caller, note.request, note.what).await;
        note.open = Some(open);
    }
    // They have locks of their own, and wait for servers: whoever has drives come back, or stops
    // the array, does not wait for those.
    let _array = array.filter(|_| !matches!(change, Change::Share(_)));
    let change = match beside(manager, note, change).await {
        Ok(done) => return done,
        Err(change) => change,
    };
    let outcome = act(manager, change.clone(), shown.as_ref()).await;
    match outcome {
        Err(error) if alone && confirmed && is_of_another_state(&error) => {
            // Between the look at the drives and their claim.
            let planned = manager.plan(&change).await.map_err(|error| refused(manager, error))?;
            let told = with_token(manager, &planned, asked);
            Err(Refusal::planned(Unconfirmed::Outdated, &told))
        }
        outcome => outcome.map_err(|error| refused(manager, error)),
    }
}

/// Carries out what is no change of arrays; gives one of arrays back.
async fn beside(
    manager: &Arc<Manager>,
    note: &Note<'_>,
    change: Change,
) -> Result<Result<Done, Refusal>, Change> {
    let told = |done: Result<Done, Error>| done.map_err(|error| refused(manager, error));
    Ok(match change {
        Change::Access(change) => {
            login::change(manager, note.caller, note.request, change).await.map(Done::from)
        }
        Change::Certificate(change) => told(certificate(manager, change).await),
        Change::Events(change) => events(manager, change).await,
        Change::Alerts(change) => told(alerts(manager, change, &note.caller.name).await),
        change => return Err(change),
    })
}

/// Whether a change was not carried out as a drive is not the one that was planned.
fn is_of_another_state(error: &Error) -> bool {
    let entries = [&say::DRIVE_CHANGED, &say::ANOTHER_DRIVE, &say::PLAN_CHANGED];
    entries.into_iter().any(|entry| error.is(entry))
}

/// What is done is what was planned: drives that are no longer as they were seen are refused, and
/// one that held nothing is overwritten only if it holds nothing yet.
fn keep_to(change: &mut Change, planned: &Planned) {
    let see = |named: &mut NamedDrive| {
        let seen = planned.seen.iter().find(|seen| seen.drive.path == named.path);
        // What was not looked at is not as it was seen.
        named.seen = Some(seen.map(|seen| seen.identity.clone()).unwrap_or_default());
    };
    match change {
        Change::CreateArray(array) | Change::CreateVolumeOnDrives { array, .. } => {
            array.drives.iter_mut().chain(&mut array.overwrite).for_each(see);
        }
        Change::ReplaceDrive { request, .. } => {
            core::iter::once(&mut request.with).chain(&mut request.overwrite).for_each(see);
        }
        Change::Wipe(request) => see(&mut request.drive),
        _ => {}
    }
}

/// Does it; as it was planned, if it was. What is no change of arrays was done before.
async fn act(
    manager: &Arc<Manager>,
    change: Change,
    planned: Option<&Planned>,
) -> Result<Done, Error> {
    match change {
        Change::CreateArray(request) => {
            let array = manager.create(&request).await?;
            Ok(Done::Made(uri::pool(&array.uuid)))
        }
        Change::DeleteArray { array } => {
            let view::Deleted { left, .. } = match planned {
                Some(planned) => manager.delete_planned(&array, planned).await,
                None => manager.delete(&array).await,
            }?;
            Ok(if left.is_empty() { Done::Quietly } else { Done::says(&told::Left { left }) })
        }
        Change::Stop { array } => manager.stop(&array).await.map(quietly),
        Change::Assemble { array, request } => match planned {
            Some(planned) => manager.assemble_planned(&array, request, planned).await,
            None => manager.assemble(&array, request).await,
        }
        .map(quietly),
        Change::FailDrive { array, request } => {
            manager.fail(&array, &request.drive).await.map(quietly)
        }
        Change::ReplaceDrive { array, request } => {
            manager.replace(&array, &request).await?;
            Ok(works(manager, &array, TaskKind::Rebuild))
        }
        Change::Scrub { array, request } => {
            manager.scrub(&array, request).await?;
            Ok(works(manager, &array, TaskKind::Scrub))
        }
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
            Ok(exported(&manager.create_export(&request).await?, &request.array))
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
        Change::Wipe(_) | Change::LocateDrive { .. } | Change::SetDrivePower { .. } => {
            on_drive(manager, change).await
        }
        Change::VerifyLog => verify_log(manager).await,
        Change::Access(_) | Change::Certificate(_) | Change::Events(_) | Change::Alerts(_) => {
            Ok(Done::Quietly)
        }
        Change::Fabric(change) => fabric(manager, change).await,
        Change::Share(change) => share(manager, &change).await,
        Change::FindDrives { paths } => find_drives(manager, &paths).await,
    }
}

/// Changes a drive.
async fn on_drive(manager: &Manager, change: Change) -> Result<Done, Error> {
    match change {
        Change::Wipe(request) => {
            let view::Wiped { held, .. } = manager.wipe(&request).await?;
            Ok(Done::says(&told::Wiped { held }))
        }
        Change::LocateDrive { id, on } => {
            manager.locate_drive(&id, on).await?;
            Ok(Done::Changed(uri::drive(&id)))
        }
        Change::SetDrivePower { id, state } => {
            manager.set_drive_power(&id, state).await.map(quietly)
        }
        _ => Ok(Done::Quietly),
    }
}

/// Looks for drives, and says which there are.
async fn find_drives(manager: &Manager, paths: &[String]) -> Result<Done, Error> {
    let ids = manager.find_drives(paths).await?;
    let link = |id: &String| told::Link { uri: uri::drive(id) };
    Ok(Done::says(&told::Found { drives: ids.iter().map(link).collect() }))
}

/// Makes, changes or ends a share, or changes a user of shares.
async fn share(manager: &Manager, change: &ShareChange) -> Result<Done, Error> {
    manager.change_share(change).await?;
    Ok(match change {
        ShareChange::Create(own) => Done::Made(uri::file_share(&own.volume, &own.name)),
        ShareChange::Set(own) => Done::Changed(uri::file_share(&own.volume, &own.name)),
        ShareChange::Delete { .. } | ShareChange::User(_) => Done::Quietly,
    })
}

/// Finds, connects or disconnects subsystems.
async fn fabric(manager: &Manager, change: FabricChange) -> Result<Done, Error> {
    match change {
        FabricChange::Discover { place, terms } => {
            let discover = move |fabrics: &Fabrics| fabrics.discover(&place, &terms);
            Ok(Done::says(&manager.behind(discover).await?))
        }
        FabricChange::Connect { place, subsystem, terms } => {
            let connect =
                move |fabrics: &Fabrics| fabrics.connect(&place, subsystem.as_deref(), &terms);
            let connected = manager.behind(connect).await?;
            // What can't be opened is listed as unusable.
            manager.find_drives(&[]).await?;
            Ok(Done::says(&connected))
        }
        FabricChange::Disconnect { subsystem, place } => {
            let gone = move |fabrics: &Fabrics| fabrics.disconnect(&subsystem, place.as_ref());
            manager.behind(gone).await?;
            manager.find_drives(&[]).await.map(|_| Done::Quietly)
        }
    }
}

/// What is told of a new export.
fn exported(export: &view::Export, array: &str) -> Done {
    let fabric = export.kind.fabric();
    let number = uri::export_number(&export.id).unwrap_or_default();
    Done::Made(uri::connection(fabric, &uri::connection_id(array, number)))
}

/// Changes who is told of events.
async fn events(manager: &Manager, change: EventsChange) -> Result<Done, Refusal> {
    let changed = manager.events().change(change).await?;
    // What is read next has it.
    manager.refresh();
    Ok(match changed {
        Changed::Quietly => Done::Quietly,
        Changed::Made(uri) => Done::Made(uri),
        Changed::Altered(uri) => Done::Changed(uri),
    })
}

/// Acknowledges an alert, or changes how alerts are told.
async fn alerts(manager: &Manager, change: AlertsChange, who: &str) -> Result<Done, Error> {
    let done = match change {
        AlertsChange::Acknowledge { id } => {
            let alert = manager.alerts().acknowledge(&id, who)?;
            let args: [&dyn core::fmt::Display; 2] = [&alert.id, &who];
            manager.events().tell(&say::ALERT_ACKNOWLEDGED, &args, &alert.of);
            Done::Quietly
        }
        AlertsChange::Test => Done::says(&manager.alerts().test(manager.events(), who).await),
        AlertsChange::Mail(change) => {
            manager.alerts().change(change).await?;
            Done::Changed(uri::EVENT_SERVICE.to_owned())
        }
    };
    // What is read next has it.
    manager.refresh();
    Ok(done)
}

/// Changes the certificate of HTTPS.
async fn certificate(manager: &Manager, change: CertificateChange) -> Result<Done, Error> {
    match change {
        CertificateChange::Replace(pem) => {
            manager.https().replace(pem.reveal().to_owned()).await?;
            // What is read next has it.
            manager.refresh();
            Ok(Done::Changed(uri::CERTIFICATE.to_owned()))
        }
        CertificateChange::Request { subject, names } => {
            let text = manager.https().request(Request { subject, names }).await?;
            let certificate_collection = told::Link { uri: uri::CERTIFICATES.to_owned() };
            Ok(Done::says(&told::CertificateRequest { text, certificate_collection }))
        }
    }
}

/// Follows the audit log's chain, on a thread of its own.
async fn verify_log(manager: &Manager) -> Result<Done, Error> {
    let audit = manager.audit().clone();
    let found = tokio::task::spawn_blocking(move || audit.verify()).await;
    let found = found.map_err(|_| Error::new(&say::STOPPING, &[]))?;
    let dir = manager.state().map_or_else(String::new, |state| state.dir().display().to_string());
    let found = found.map_err(|error| Error::new(&say::AUDIT_NOT_READ, &[&dir, &error]))?;
    Ok(Done::says(&told::Verified::from(found)))
}

/// Creates an array and a volume in it: both, or neither.
async fn create_on_drives(
    manager: &Arc<Manager>,
    request: &view::CreateArray,
    size_bytes: Option<u64>,
) -> Result<Done, Error> {
    let array = manager.create(request).await?;
    let volume = view::CreateVolume {
        array: array.uuid.clone(),
        name: request.name.clone(),
        size_bytes: size_bytes.unwrap_or(array.free_bytes),
    };
    // Whoever finds the array already waits until it is known whether it stays.
    let _array = manager.holds.take(&array.uuid, true).await;
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

/// Work of this kind was begun for an array. It may be over already, and is followed by its job all
/// the same.
fn works(manager: &Manager, array: &str, kind: TaskKind) -> Done {
    let view = manager.view();
    let own = view.jobs.iter().filter(|job| job.array == array && job.task.kind == kind);
    own.max_by_key(|job| job.began).map_or(Done::Quietly, |job| Done::Works(uri::job(&job.id)))
}

fn quietly<T>(_: T) -> Done {
    Done::Quietly
}

fn volume_made(volume: &view::Volume) -> Result<Done, Error> {
    Ok(Done::Made(uri::volume(&volume.uuid)))
}

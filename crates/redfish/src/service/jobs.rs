//! Tasks of arrays, as jobs.

use super::{collection, link, percent, uri};
use crate::dates;
use crate::oem;
use crate::routes::ROOT;
use crate::view::{Job, JobEnd, TaskKind, TaskState, View};
use serde_json::{Map, Value, json};

pub(super) fn service(view: &View) -> Value {
    json!({
        "@odata.id": format!("{ROOT}/JobService"),
        "@odata.type": "#JobService.v1_1_0.JobService",
        "Id": "JobService",
        "Name": "Tasks of arrays",
        "DateTime": dates::text(view.server.now),
        "ServiceEnabled": true,
        "ServiceCapabilities": {
            "Scheduling": false, "UserSpecifiedJobs": false, "DocumentBasedJobs": false,
        },
        "Status": super::Standing::GOOD.status(),
        "Jobs": link(uri::JOBS),
    })
}

pub(super) fn jobs(view: &View) -> Value {
    let uris = view.jobs.iter().map(|job| uri::job(&job.id));
    collection(uri::JOBS, "JobCollection", "Tasks of arrays", uris)
}

pub(super) fn job(view: &View, id: &str) -> Option<Value> {
    let job = view.job(id)?;
    let task = &job.task;
    let extension = extension(view, job);
    let (state, health) = standing(job, extension.waiting);
    let mut resource = json!({
        "@odata.id": uri::job(id),
        "@odata.type": "#Job.v1_3_0.Job",
        "Id": id,
        "Name": format!("{} of {}", kind(task.kind), extension.array),
        "JobType": "ServiceGenerated",
        "JobState": state,
        "JobStatus": health,
        "PercentComplete": percent(task.done_bytes, task.total_bytes),
        "CreationTime": dates::text(job.began),
        "StartTime": dates::text(job.began),
        "Actions": actions(job),
        "Oem": oem::wrapped(&extension),
    });
    match (job.ended, task.seconds_left) {
        (Some((at, _)), _) => super::put(&mut resource, "EndTime", json!(dates::text(at))),
        (None, Some(left)) => {
            let at = dates::text(view.server.now.saturating_add(left));
            super::put(&mut resource, "EstimatedCompletionTime", json!(at));
        }
        (None, None) => {}
    }
    Some(resource)
}

/// The job's state and health (DSP2046, `Job`).
const fn standing(job: &Job, waiting: bool) -> (&'static str, &'static str) {
    match (job.ended, job.task.state) {
        (Some((_, JobEnd::Completed)), _) => ("Completed", "OK"),
        (Some((_, JobEnd::Cancelled)), _) => ("Cancelled", "OK"),
        (Some((_, JobEnd::Interrupted)), _) => ("Exception", "Warning"),
        (None, _) if waiting => ("Pending", "OK"),
        (None, TaskState::Running) => ("Running", "OK"),
        (None, TaskState::Paused) => ("Suspended", "OK"),
        (None, TaskState::Stuck) => ("UserIntervention", "Warning"),
    }
}

const fn kind(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::Rebuild => "Rebuild",
        TaskKind::Resync => "Resync",
        TaskKind::Scrub => "Scrub",
    }
}

/// What can be done with a job that has not ended.
fn actions(job: &Job) -> Value {
    let mut all = Map::new();
    let names: &[&str] = match (job.ended, job.task.state, job.task.kind) {
        (Some(_), _, _) => &[],
        (None, TaskState::Paused, TaskKind::Resync) => &["Resume"],
        (None, TaskState::Paused, _) => &["Resume", "Cancel"],
        (None, _, TaskKind::Resync) => &["Suspend"],
        (None, _, _) => &["Suspend", "Cancel"],
    };
    for name in names {
        let target = format!("{}/Actions/Job.{name}", uri::job(&job.id));
        all.insert(format!("#Job.{name}"), json!({"target": target}));
    }
    Value::Object(all)
}

/// Whether a job is an array's, and has not ended.
pub(super) fn is_open_of(job: &Job, array: &str) -> bool {
    job.ended.is_none() && job.array == array
}

/// The first jobs of an array that have not ended are its tasks; what is behind them waits.
fn extension(view: &View, job: &Job) -> oem::Job {
    let (task, array) = (&job.task, view.array(&job.array));
    let before = view.jobs.iter().take_while(|other| other.id != job.id);
    let place = before.filter(|other| is_open_of(other, &job.array)).count();
    let waiting = job.ended.is_none() && array.is_some_and(|array| place >= array.tasks.len());
    let named = task.id.rsplit_once(':').map_or("", |(array, _)| array);
    oem::Job {
        array: array.map_or(named, |array| &array.name).to_owned(),
        array_uuid: job.array.clone(),
        storage_pool: array.map(|array| oem::Link { id: uri::pool(&array.uuid) }),
        kind: task.kind.into(),
        state: task.state.into(),
        end: job.ended.map(|(_, end)| end.into()),
        waiting,
        done_bytes: task.done_bytes,
        total_bytes: task.total_bytes,
        seconds_left: task.seconds_left,
        problem: task.problem.clone(),
        hindrance: task.hindrance.map(Into::into),
    }
}

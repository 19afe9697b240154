//! Changes that take long, as tasks.

use super::{collection, link, put, uri};
use crate::dates;
use crate::routes::ROOT;
use crate::view::View;
use serde_json::{Value, json};

pub(super) fn service(view: &View) -> Value {
    json!({
        "@odata.id": format!("{ROOT}/TaskService"),
        "@odata.type": "#TaskService.v1_2_1.TaskService",
        "Id": "TaskService",
        "Name": "Changes that take long",
        "DateTime": dates::text(view.server.now),
        "ServiceEnabled": true,
        "CompletedTaskOverWritePolicy": "Oldest",
        "LifeCycleEventOnTaskStateChange": false,
        "Status": super::Standing::GOOD.status(),
        "Tasks": link(uri::TASKS),
    })
}

pub(super) fn tasks(view: &View) -> Value {
    let uris = view.tasks.iter().map(|task| uri::task(&task.id));
    collection(uri::TASKS, "TaskCollection", "Changes that take long", uris)
}

pub(super) fn task(view: &View, id: &str) -> Option<Value> {
    let task = view.tasks.iter().find(|task| task.id == id)?;
    let (state, health) = match task.ended {
        None => ("Running", "OK"),
        Some((_, true)) => ("Completed", "OK"),
        Some((_, false)) => ("Exception", "Critical"),
    };
    let mut resource = json!({
        "@odata.id": uri::task(id),
        "@odata.type": "#Task.v1_7_4.Task",
        "Id": id,
        "Name": format!("{} {}", task.method, task.uri),
        "TaskState": state,
        "TaskStatus": health,
        "StartTime": dates::text(task.began),
        "TaskMonitor": uri::task_monitor(id),
        "HidePayload": false,
        "Payload": {"HttpOperation": task.method, "TargetUri": task.uri},
    });
    if let Some((at, _)) = task.ended {
        put(&mut resource, "EndTime", json!(dates::text(at)));
    }
    Some(resource)
}

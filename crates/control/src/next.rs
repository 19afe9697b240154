//! What a person should do next: a line for each thing that is degraded, stuck or refused.
//!
//! Invariants
//! - It follows from what is shown: where all is well nothing is listed.
//! - Each line says what happened, and what to do: a command that can be typed where there is one.
//!   `PATH` stands for a drive that only a person can choose.

use crate::api::{self, Array, ArrayState, Error, Next, SlotInfo, SlotState, Task, TaskState};
use std::collections::BTreeMap;
use units::format_size;

/// What there is to do. `refused` has why arrays were not started, by UUID.
pub fn next(status: &api::Status, refused: &BTreeMap<String, Error>) -> Vec<Next> {
    let mut all: Vec<Next> =
        status.arrays.iter().flat_map(|a| array(a, refused.get(&a.uuid))).collect();
    all.extend(status.memory.problem.as_ref().map(|problem| {
        line(
            format!("programs that write to volumes may hang when memory is short: {problem}"),
            "give the daemon's service LimitMEMLOCK=infinity and \
             AmbientCapabilities=CAP_SYS_RESOURCE"
                .to_owned(),
        )
    }));
    all.extend(status.parity.problem.as_ref().map(|problem| {
        line(
            format!("parity is computed on the CPU: {problem}"),
            "check the GPU with: nvidia-smi; then restart the daemon".to_owned(),
        )
    }));
    all
}

fn line(what: String, action: String) -> Next {
    Next { what, action }
}

fn array(array: &Array, refused: Option<&Error>) -> Vec<Next> {
    let name = &array.name;
    let mut all = match array.state {
        ArrayState::Stopped => vec![stopped(array, refused)],
        ArrayState::Failed => vec![failed(array)],
        ArrayState::Degraded => {
            array.slots.iter().filter_map(|slot| degraded(name, slot)).collect()
        }
        ArrayState::Optimal => Vec::new(),
    };
    all.extend(array.tasks.iter().filter_map(|t| task(name, t)));
    all.extend(unreadable(array));
    all.extend(array.exports.iter().filter_map(|export| {
        let problem = export.problem.as_ref()?;
        let what = format!("export {}: {problem}", export.id);
        Some(line(what, format!("show it with: palisade export show {}", export.id)))
    }));
    all
}

/// The slots whose drives are not there or out of service, in words.
fn lacking(array: &Array) -> String {
    let lacks = |s: &&SlotInfo| matches!(s.state, SlotState::Failed | SlotState::Missing);
    let word = |s: &SlotInfo| format!("slot {} (serial {})", s.slot, s.serial);
    array.slots.iter().filter(lacks).map(word).collect::<Vec<_>>().join(", ")
}

fn stopped(array: &Array, refused: Option<&Error>) -> Next {
    let name = &array.name;
    if let Some(Error { error, hint, .. }) = refused {
        return line(format!("array {name} is not started: {error}"), hint.clone());
    }
    let lacking = lacking(array);
    let lacking = if lacking.is_empty() { lacking } else { format!(", without {lacking}") };
    line(
        format!("array {name} is stopped{lacking}"),
        format!("start it with: palisade array assemble {name}"),
    )
}

fn failed(array: &Array) -> Next {
    let (name, lacking) = (&array.name, lacking(array));
    line(
        format!("array {name} has failed: too many drives are gone: {lacking}"),
        format!(
            "bring the drives back, then: palisade array stop {name}; \
             palisade array assemble {name}"
        ),
    )
}

fn degraded(name: &str, slot: &SlotInfo) -> Option<Next> {
    let number = slot.slot;
    let drive = slot.drive.as_deref().unwrap_or(&slot.serial);
    let reason = slot.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    let replace = format!("palisade array replace {name} --slot {number} --with PATH");
    let (what, action) = match slot.state {
        SlotState::InSync | SlotState::Rebuilding => return None,
        _ if slot.quarantined => (
            format!("drive {drive} hangs and is out of service{reason}"),
            format!("rebuild onto another drive with: {replace}"),
        ),
        SlotState::Failed => (
            format!("drive {drive} is out of service{reason}"),
            format!("rebuild onto another drive with: {replace}"),
        ),
        SlotState::Missing => (
            format!("the drive with serial {} is missing", slot.serial),
            format!(
                "bring it back, then: palisade array stop {name}; palisade array assemble {name}; \
                 or rebuild onto another drive with: {replace}"
            ),
        ),
    };
    Some(line(format!("array {name} is degraded in slot {number}: {what}"), action))
}

fn task(name: &str, task: &Task) -> Option<Next> {
    let id = &task.id;
    match (task.state, &task.problem) {
        (TaskState::Paused, _) => Some(line(
            format!("task {id} is paused"),
            format!("resume it with: palisade task resume {id}"),
        )),
        (TaskState::Stuck, Some(problem)) => Some(line(
            format!("task {id} is stuck: {problem}"),
            format!(
                "bring missing drives back, or write the unreadable blocks anew (palisade array \
                 show {name}); the task then goes on by itself"
            ),
        )),
        _ => None,
    }
}

fn unreadable(array: &Array) -> Option<Next> {
    let bytes = array.unreadable.iter().map(|range| range.length).sum();
    (bytes > 0).then(|| {
        let name = &array.name;
        let (ranges, bytes) = (array.unreadable.len(), format_size(bytes));
        line(
            format!("array {name} can't read {bytes} in {ranges} ranges of its volumes"),
            format!("restore from a copy what this lists: palisade array show {name}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(change: impl FnOnce(&mut Array)) -> api::Status {
        let slot = |slot: u16| {
            serde_json::json!({"slot": slot, "drive": format!("/dev/d{slot}"),
                "serial": format!("S{slot}"), "state": "in-sync"})
        };
        let mut array: Array = serde_json::from_value(serde_json::json!({
            "name": "data", "uuid": "u", "level": "5", "state": "optimal", "strip_bytes": 65536,
            "block_bytes": 512, "size_bytes": 0, "free_bytes": 0, "epoch": 1, "unclean": false,
            "slots": [slot(0), slot(1), slot(2)], "tasks": [], "last_scrub": null, "drive_io": [],
            "volumes": [], "exports": [],
        }))
        .expect("an array");
        change(&mut array);
        let parity = serde_json::json!({"placement": "cpu", "kernel": "k", "gpu": null,
            "problem": null, "gpu_jobs": 0, "gpu_bytes": 0, "gpu_undone": 0, "gpu_checked": 0,
            "gpu_shared_bytes": 0, "gpu_kept_bytes": 0});
        api::Status {
            version: String::new(),
            pid: 1,
            cores: 1,
            ready: true,
            parity: serde_json::from_value(parity).expect("parity"),
            memory: api::Memory::default(),
            arrays: vec![array],
            next: Vec::new(),
        }
    }

    fn only(change: impl FnOnce(&mut Array)) -> (String, String) {
        let all = next(&status(change), &BTreeMap::new());
        assert_eq!(all.len(), 1, "{all:?}");
        (all[0].what.clone(), all[0].action.clone())
    }

    fn lacks(array: &mut Array, state: SlotState) {
        array.state = ArrayState::Degraded;
        (array.slots[1].state, array.slots[1].reason) = (state, Some("it timed out".into()));
    }

    #[test]
    fn where_all_is_well_there_is_nothing_to_do() {
        assert_eq!(next(&status(|_| ()), &BTreeMap::new()), []);
        let rebuilding = status(|array| lacks(array, SlotState::Rebuilding));
        assert_eq!(next(&rebuilding, &BTreeMap::new()), []);
    }

    #[test]
    fn a_drive_that_is_lacking_is_named_with_its_slot() {
        let replace = "palisade array replace data --slot 1 --with PATH";
        let (what, action) = only(|array| lacks(array, SlotState::Failed));
        assert!(what.contains("slot 1: drive /dev/d1") && what.contains("timed out"), "{what}");
        assert!(action.ends_with(replace), "{action}");
        let (what, action) = only(|array| lacks(array, SlotState::Missing));
        assert!(what.contains("serial S1 is missing"), "{what}");
        assert!(action.contains("assemble data;") && action.ends_with(replace), "{action}");
        let (what, action) = only(|array| {
            lacks(array, SlotState::Failed);
            array.slots[1].quarantined = true;
        });
        assert!(what.contains("/dev/d1 hangs") && action.ends_with(replace), "{what}: {action}");
    }

    #[test]
    fn an_array_that_does_not_serve_says_how_it_would() {
        let (what, action) = only(|array| {
            lacks(array, SlotState::Missing);
            array.state = ArrayState::Failed;
        });
        assert!(what.contains("failed") && what.contains("slot 1 (serial S1)"), "{what}");
        assert!(action.ends_with("palisade array stop data; palisade array assemble data"));
        let (what, action) = only(|array| array.state = ArrayState::Stopped);
        assert_eq!(what, "array data is stopped");
        assert_eq!(action, "start it with: palisade array assemble data");
        let found = status(|array| array.state = ArrayState::Stopped);
        let why = Error::refused("it needs more", "say: palisade array assemble data --more");
        let all = next(&found, &[("u".to_owned(), why)].into());
        assert!(all[0].what.ends_with("not started: it needs more"), "{all:?}");
        assert!(all[0].action.ends_with("--more"), "{all:?}");
    }

    #[test]
    fn tasks_that_do_not_go_on_and_what_is_lost_are_told() {
        let task = |state: &str| -> Task {
            let text = serde_json::json!({"id": "data:scrub", "kind": "scrub", "done_bytes": 0,
                "total_bytes": 1, "state": state, "problem": "no drive"});
            serde_json::from_value(text).expect("a task")
        };
        let (what, action) = only(|array| array.tasks.push(task("paused")));
        assert!(what.contains("data:scrub is paused"), "{what}");
        assert!(action.ends_with("palisade task resume data:scrub"), "{action}");
        let (what, action) = only(|array| array.tasks.push(task("stuck")));
        assert!(what.ends_with("data:scrub is stuck: no drive"), "{what}");
        assert!(action.contains("palisade array show data"), "{action}");
        let (what, action) = only(|array| {
            let reason = api::UnreadableReason::Media;
            let range =
                |offset| api::Unreadable { volume: "v".to_owned(), offset, length: 512, reason };
            array.unreadable = vec![range(0), range(4096)];
        });
        assert!(what.contains("1 KiB in 2 ranges"), "{what}");
        assert!(action.ends_with("palisade array show data"), "{action}");
    }

    #[test]
    fn what_the_daemon_was_refused_is_told() {
        let mut status = status(|_| ());
        status.memory.problem = Some("it is not locked".into());
        status.parity.problem = Some("it hung".into());
        let all = next(&status, &BTreeMap::new());
        assert!(all[0].what.ends_with("it is not locked"), "{}", all[0].what);
        for word in ["LimitMEMLOCK=infinity", "AmbientCapabilities=CAP_SYS_RESOURCE"] {
            assert!(all[0].action.contains(word), "{}", all[0].action);
        }
        assert!(all[1].what.ends_with("it hung") && all[1].action.contains("nvidia-smi"));
    }
}

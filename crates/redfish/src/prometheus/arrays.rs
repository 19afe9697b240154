//! Arrays, their slots, jobs and volumes.

use super::Names;
use super::text::{Text, labels, truth};
use crate::view::{
    Array, ArrayState, DriveIo, SlotInfo, SlotState, Task, TaskState, UnreadableReason, View,
    Volume,
};

const ARRAY_STATES: [(ArrayState, &str); 4] = [
    (ArrayState::Optimal, "optimal"),
    (ArrayState::Degraded, "degraded"),
    (ArrayState::Failed, "failed"),
    (ArrayState::Stopped, "stopped"),
];

const SLOT_STATES: [(SlotState, &str); 4] = [
    (SlotState::InSync, "in-sync"),
    (SlotState::Rebuilding, "rebuilding"),
    (SlotState::Failed, "failed"),
    (SlotState::Missing, "missing"),
];

const TASK_STATES: [(TaskState, &str); 3] =
    [(TaskState::Running, "running"), (TaskState::Stuck, "stuck"), (TaskState::Paused, "paused")];

const REASONS: [(UnreadableReason, &str); 5] = [
    (UnreadableReason::Media, "media"),
    (UnreadableReason::Rebuild, "rebuild"),
    (UnreadableReason::Resync, "resync"),
    (UnreadableReason::Write, "write"),
    (UnreadableReason::Crash, "crash"),
];

/// What families have of an array: their labels, and what of it is counted.
type Own<'v, T> = Vec<(String, &'v T)>;

pub fn write(text: &mut Text, view: &View, names: &Names<'_>) {
    let all = &view.status.arrays;
    let arrays: Own<'_, Array> =
        all.iter().map(|array| (labels(&[("array", &names.array(array))]), array)).collect();
    states(text, &arrays);
    sizes(text, &arrays);
    maps(text, &arrays);
    scrubs(text, &arrays);
    let mut slots: Own<'_, SlotInfo> = Vec::new();
    let mut requests: Own<'_, DriveIo> = Vec::new();
    let mut volumes: Vec<(String, &Array, &Volume)> = Vec::new();
    for array in all {
        let name = names.array(array);
        let of_slot = |slot: u16| labels(&[("array", &name), ("slot", &slot.to_string())]);
        slots.extend(array.slots.iter().map(|slot| (of_slot(slot.slot), slot)));
        requests.extend(array.drive_io.iter().map(|io| (of_slot(io.slot), io)));
        let of_volume = |own: &Volume| labels(&[("array", &name), ("volume", &own.name)]);
        volumes.extend(array.volumes.iter().map(|own| (of_volume(own), array, own)));
    }
    self::slots(text, &slots);
    self::requests(text, &requests);
    jobs(text, view, names);
    self::volumes(text, &volumes);
}

/// How many drives an array can lose at this moment, whichever they are, and how many if all were
/// well; none while it does not run.
fn redundancy(array: &Array) -> Option<(usize, usize)> {
    let whole = match &array.level[..] {
        "1" => array.slots.len().saturating_sub(1),
        "5" | "10" => 1,
        "6" => 2,
        _ => 0,
    };
    let lacking = array.slots.iter().filter(|slot| slot.state != SlotState::InSync).count();
    match array.state {
        ArrayState::Stopped => None,
        ArrayState::Failed => Some((0, whole)),
        ArrayState::Optimal | ArrayState::Degraded => Some((whole.saturating_sub(lacking), whole)),
    }
}

fn states(text: &mut Text, arrays: &Own<'_, Array>) {
    text.gauge("palisade_array_info", "An array's level and identity.");
    for (labels, array) in arrays {
        let (level, uuid) = (("level", &array.level[..]), ("uuid", &array.uuid[..]));
        let more = super::text::labels(&[level, uuid]);
        text.put(&format!("{labels},{more}"), 1);
    }
    text.gauge("palisade_array_state", "How an array is: 1 for its state, 0 for the others.");
    for (labels, array) in arrays {
        text.states(labels, &ARRAY_STATES, &array.state);
    }
    text.gauge("palisade_array_slots", "An array's slots in a state.");
    for (labels, array) in arrays {
        for (state, word) in SLOT_STATES {
            let count = array.slots.iter().filter(|slot| slot.state == state).count();
            text.with(labels, ("state", word), count);
        }
    }
    let left = "Drives that an array can lose at this moment, whichever they are.";
    text.gauge("palisade_array_redundancy_drives", left);
    for (labels, array) in arrays {
        redundancy(array).into_iter().for_each(|(left, _)| text.put(labels, left));
    }
    let whole = "Drives that an array can lose when all is well, whichever they are.";
    text.gauge("palisade_array_redundancy_intended_drives", whole);
    for (labels, array) in arrays {
        redundancy(array).into_iter().for_each(|(_, whole)| text.put(labels, whole));
    }
    let safe = "Whether an array would start by itself after a crash that costs no drive.";
    text.gauge("palisade_array_crash_safe", safe);
    for (labels, array) in arrays {
        array.crash_safe.into_iter().for_each(|safe| text.put(labels, truth(safe)));
    }
    let problem = "Whether an array was found and could not be started.";
    text.gauge("palisade_array_start_problem", problem);
    for (labels, array) in arrays {
        text.put(labels, truth(array.problem.is_some()));
    }
    text.gauge("palisade_array_warnings", "What an administrator should see to at an array.");
    for (labels, array) in arrays {
        text.put(labels, array.warnings.len());
    }
}

fn sizes(text: &mut Text, arrays: &Own<'_, Array>) {
    text.gauge("palisade_array_size_bytes", "Usable bytes of an array.");
    arrays.iter().for_each(|(labels, array)| text.put(labels, array.size_bytes));
    text.gauge("palisade_array_free_bytes", "Usable bytes of an array that no volume has.");
    arrays.iter().for_each(|(labels, array)| text.put(labels, array.free_bytes));
    text.gauge("palisade_array_unreadable_bytes", "Bytes that can't be given back, by reason.");
    for (labels, array) in arrays {
        for (reason, word) in REASONS {
            let own = array.unreadable.iter().filter(|range| range.reason == reason);
            let bytes = own.fold(0, |sum: u64, range| sum.saturating_add(range.length));
            text.with(labels, ("reason", word), bytes);
        }
    }
}

fn maps(text: &mut Text, arrays: &Own<'_, Array>) {
    let maps =
        || arrays.iter().filter_map(|(labels, own)| Some((labels, own.region_map.as_ref()?)));
    text.gauge("palisade_array_written_bytes", "Bytes that were ever written, in whole bands.");
    maps().for_each(|(labels, map)| text.put(labels, map.written_bytes));
    let dirty = "Regions in which writes may be under way, or that owe a resync.";
    text.gauge("palisade_array_dirty_regions", dirty);
    maps().for_each(|(labels, map)| text.put(labels, map.dirty_regions));
    let lost = "Pages of the region map that no drive had when the array started.";
    text.gauge("palisade_array_lost_pages", lost);
    maps().for_each(|(labels, map)| text.put(labels, map.lost_pages));
}

fn scrubs(text: &mut Text, arrays: &Own<'_, Array>) {
    let scrubs =
        || arrays.iter().filter_map(|(labels, own)| Some((labels, own.last_scrub.as_ref()?)));
    let ended = "When the last finished scrub ended, in seconds since 1970.";
    text.gauge("palisade_scrub_end_timestamp_seconds", ended);
    scrubs().for_each(|(labels, scrub)| text.put(labels, scrub.ended));
    text.gauge("palisade_scrub_checked_bytes", "Bytes that the last finished scrub compared.");
    scrubs().for_each(|(labels, scrub)| text.put(labels, scrub.checked_bytes));
    let mismatches = "Stripes that the last finished scrub found not to agree, or not to be read.";
    text.gauge("palisade_scrub_mismatches", mismatches);
    scrubs().for_each(|(labels, scrub)| text.put(labels, scrub.mismatches));
    text.gauge("palisade_scrub_repaired", "Stripes that the last finished scrub repaired.");
    scrubs().for_each(|(labels, scrub)| text.put(labels, scrub.repaired));
    let unlocated = "Stripes of which the last finished scrub can't know which strip is wrong.";
    text.gauge("palisade_scrub_unlocated", unlocated);
    scrubs().for_each(|(labels, scrub)| text.put(labels, scrub.unlocated));
    let unreadable = "Stripes with blocks that the last finished scrub could not read or recover.";
    text.gauge("palisade_scrub_unreadable", unreadable);
    scrubs().for_each(|(labels, scrub)| text.put(labels, scrub.unreadable));
}

fn slots(text: &mut Text, slots: &Own<'_, SlotInfo>) {
    text.gauge("palisade_slot_state", "How a slot is: 1 for its state, 0 for the others.");
    for (labels, slot) in slots {
        text.states(labels, &SLOT_STATES, &slot.state);
    }
    let errors =
        "Reads of a slot's drive that met unreadable blocks, since it or the array started.";
    text.counter("palisade_slot_read_errors_total", errors);
    slots.iter().for_each(|(labels, slot)| text.put(labels, slot.read_errors));
    let rewritten = "Runs of unreadable blocks that were recovered and written back.";
    text.counter("palisade_slot_rewritten_total", rewritten);
    slots.iter().for_each(|(labels, slot)| text.put(labels, slot.rewritten));
    let wrong = "Stripes in which scrubs found a slot's strip to be wrong.";
    text.counter("palisade_slot_wrong_strips_total", wrong);
    slots.iter().for_each(|(labels, slot)| text.put(labels, slot.wrong_strips));
    let failures = "Requests to a slot's drive that failed otherwise, timeouts included.";
    text.counter("palisade_slot_failures_total", failures);
    slots.iter().for_each(|(labels, slot)| text.put(labels, slot.failures));
    let timeouts = "Requests to a slot's drive that were not done within the deadline.";
    text.counter("palisade_slot_timeouts_total", timeouts);
    slots.iter().for_each(|(labels, slot)| text.put(labels, slot.timeouts));
    let held = "Whether requests to a slot's drive, which is out, may still be carried out.";
    text.gauge("palisade_slot_quarantined", held);
    slots.iter().for_each(|(labels, slot)| text.put(labels, truth(slot.quarantined)));
}

fn requests(text: &mut Text, requests: &Own<'_, DriveIo>) {
    let operations = "Requests to a slot's drive since it was opened.";
    text.counter("palisade_slot_operations_total", operations);
    for (labels, io) in requests {
        for (op, count) in [("read", io.reads), ("write", io.writes), ("flush", io.flushes)] {
            text.with(labels, ("op", op), count);
        }
    }
    let bytes = "Bytes read from a slot's drive, and written to it, since it was opened.";
    text.counter("palisade_slot_bytes_total", bytes);
    for (labels, io) in requests {
        text.with(labels, ("op", "read"), io.read_bytes);
        text.with(labels, ("op", "write"), io.write_bytes);
    }
    let retries = "Requests to a slot's drive that were made again after an error that passes.";
    text.counter("palisade_slot_retries_total", retries);
    requests.iter().for_each(|(labels, io)| text.put(labels, io.retries));
}

/// Those that have not ended.
fn jobs(text: &mut Text, view: &View, names: &Names<'_>) {
    let mut all: Own<'_, Task> = Vec::new();
    for job in view.jobs.iter().filter(|job| job.ended.is_none()) {
        let named = job.task.id.rsplit_once(':').map_or("", |(array, _)| array);
        let array = view.array(&job.array).map_or_else(|| named.to_owned(), |own| names.array(own));
        let kind = job.task.kind.word();
        let own = labels(&[("array", &array), ("kind", kind), ("id", &job.id)]);
        all.push((own, &job.task));
    }
    text.gauge("palisade_job_state", "How a job is: 1 for its state, 0 for the others.");
    for (labels, task) in &all {
        text.states(labels, &TASK_STATES, &task.state);
    }
    text.gauge("palisade_job_progress_ratio", "How far a job is, from 0 to 1.");
    all.iter().for_each(|(labels, task)| text.put(labels, task.progress));
    text.gauge("palisade_job_done_bytes", "Bytes per drive that a job has done.");
    all.iter().for_each(|(labels, task)| text.put(labels, task.done_bytes));
    text.gauge("palisade_job_size_bytes", "Bytes per drive that a job has to do.");
    all.iter().for_each(|(labels, task)| text.put(labels, task.total_bytes));
    let left = "How long a job will take by its rate of the last half minute.";
    text.gauge("palisade_job_remaining_seconds", left);
    for (labels, task) in &all {
        task.seconds_left.into_iter().for_each(|left| text.put(labels, left));
    }
}

fn volumes(text: &mut Text, volumes: &[(String, &Array, &Volume)]) {
    text.gauge("palisade_volume_size_bytes", "The size of a volume.");
    volumes.iter().for_each(|(labels, _, own)| text.put(labels, own.size_bytes));
    text.gauge("palisade_volume_unreadable_bytes", "Bytes of a volume that can't be given back.");
    for (labels, array, own) in volumes {
        let ranges = array.unreadable.iter().filter(|range| range.volume == own.name);
        text.put(labels, ranges.fold(0, |sum: u64, range| sum.saturating_add(range.length)));
    }
}

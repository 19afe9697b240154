//! What a person should do next: a line for each thing that is degraded, stuck or refused.
//!
//! Invariants
//! - It follows from what is shown: where all is well nothing is listed.
//! - Each line says what happened, and what to do: a command that can be typed where there is one.
//!   `PATH` stands for a drive that only a person can choose.

use core::cmp::Reverse;
use redfish::view::{
    self, Array, ArrayState, Error, Health, Hindrance, KnownDrive, Next, Reason, SlotInfo,
    SlotState, Task, TaskState,
};
use std::collections::{BTreeMap, BTreeSet};
use units::format_size;

/// What is known beside what is shown. Arrays are named by UUID.
#[derive(Default)]
pub struct Idle {
    /// Drives that are back, by the slots that they had: where they are.
    pub returned: BTreeMap<(String, u16), String>,
    /// Drives that are gone and not failed for that.
    pub absent: Vec<Gone>,
    /// Slots to whose drives no path leads, and that come back by themselves.
    pub gone: BTreeSet<(String, u16)>,
    /// Arrays that wait for such drives, and start by themselves.
    pub waiting: BTreeSet<String>,
    /// Why they were not started.
    pub refused: BTreeMap<String, Refused>,
    /// Those that a person has started, made or stopped.
    pub in_hand: BTreeSet<String>,
    /// Shared arrays whose changes wait, as too few drives confirm that they are this server's.
    pub held: BTreeSet<String>,
}

/// A drive that is gone and not failed for that.
pub struct Gone {
    /// Its array.
    pub array: String,
    /// Its path.
    pub path: String,
    /// Whether it went with its path over a network.
    pub is_waited_for: bool,
}

/// Why an array was not started.
pub struct Refused {
    /// What happened, and what to do about it.
    pub why: Error,
    /// Whether other drives of it are there now than at that time.
    pub is_outdated: bool,
}

/// What there is to do.
pub fn next(status: &view::Status, idle: &Idle) -> Vec<Next> {
    let mut all: Vec<Next> = status
        .arrays
        .iter()
        .flat_map(|a| array(a, called(a, &status.arrays), status, idle))
        .collect();
    all.extend(status.memory.problem.as_ref().map(|problem| {
        line(
            format!("programs that write to volumes may hang when memory is short: {problem}"),
            "give the daemon's service LimitMEMLOCK=infinity and \
             AmbientCapabilities=CAP_SYS_RESOURCE"
                .to_owned(),
        )
    }));
    all.extend(gpu(status));
    all.extend(status.state.problem.as_ref().map(|problem| kept(&status.state, problem)));
    all
}

/// What there is to do about drives that are not well, the worst first. A drive that is out of
/// service is told with its array.
pub fn unwell(drives: &[KnownDrive]) -> Vec<Next> {
    let mut all: Vec<&KnownDrive> =
        drives.iter().filter(|known| known.hardware.health != Health::Ok).collect();
    all.sort_by_key(|known| Reverse(known.hardware.health));
    let told = |known: &&KnownDrive| {
        let path = &known.drive.path;
        let reasons = &known.hardware.reasons;
        let more = match reasons.len() {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        match reasons.first() {
            Some(Reason { what, action, .. }) => {
                line(format!("drive {path} is not well: {what}{more}"), action.clone())
            }
            None => line(
                format!("drive {path} is not well"),
                format!("see what it says of itself with: palisade drive show {path}"),
            ),
        }
    };
    all.iter().map(told).collect()
}

/// What is kept beside the drives can't be, or not wholly.
fn kept(state: &view::Kept, problem: &str) -> Next {
    match &state.directory {
        Some(dir) => line(
            format!("the audit log can't be written: {problem}"),
            format!("make room in {dir}, or repair its file system; the log then goes on"),
        ),
        None => line(
            format!("there is no state directory, and the audit log is kept in memory: {problem}"),
            "set that right, then restart the daemon".to_owned(),
        ),
    }
}

fn line(what: String, action: String) -> Next {
    Next { what, action }
}

/// What commands call an array: its name, unless another has it, too.
fn called<'a>(array: &'a Array, all: &[Array]) -> &'a str {
    let is_other = |other: &Array| other.name == array.name && other.uuid != array.uuid;
    if all.iter().any(is_other) { &array.uuid } else { &array.name }
}

fn gpu(status: &view::Status) -> Option<Next> {
    let problem = status.parity.problem.as_ref()?;
    let cpu = "set parity = \"cpu\" in the daemon's configuration and restart the daemon";
    let what = format!("parity is computed on the CPU: {problem}");
    Some(if status.parity.gpu_suspect {
        let runs = |a: &&Array| a.state != ArrayState::Stopped;
        let scrub =
            |a: &Array| format!("palisade array scrub {} --check", called(a, &status.arrays));
        let scrubs: Vec<_> = status.arrays.iter().filter(runs).map(scrub).collect();
        let scrubs = if scrubs.is_empty() {
            "palisade array scrub NAME --check, for each array".to_owned()
        } else {
            scrubs.join("; ")
        };
        let what = format!("{what}; parity that the GPU computed may be wrong");
        line(what, format!("{cpu}, then compare all parity with: {scrubs}"))
    } else if status.parity.gpu.is_some() {
        line(what, "check the GPU with: nvidia-smi; then restart the daemon".to_owned())
    } else {
        line(what, format!("install NVIDIA's driver and restart the daemon, or {cpu}"))
    })
}

fn array(array: &Array, name: &str, status: &view::Status, idle: &Idle) -> Vec<Next> {
    let waits = idle.waiting.contains(&array.uuid);
    let mut all: Vec<Next> = match array.state {
        ArrayState::Stopped | ArrayState::Failed if waits => vec![waiting(array)],
        ArrayState::Stopped => stopped(array, name, status.ready, idle).into_iter().collect(),
        ArrayState::Failed => vec![failed(array, name)],
        ArrayState::Degraded => {
            array.slots.iter().filter_map(|slot| degraded(array, name, slot, idle)).collect()
        }
        ArrayState::Optimal => Vec::new(),
    };
    all.extend(idle.held.contains(&array.uuid).then(|| held(array)));
    all.extend([false, true].into_iter().filter_map(|waited| absent(array, name, waited, idle)));
    all.extend(array.tasks.iter().filter_map(|t| task(name, t)));
    if array.state == ArrayState::Degraded && all.is_empty() {
        all.push(line(
            format!("array {} is degraded until its drives are in sync", array.name),
            format!("wait for it with: palisade array wait {name}"),
        ));
    }
    all.extend(unreadable(array, name));
    all.extend(array.exports.iter().filter(|_| !waits).filter_map(|export| {
        let problem = export.problem.as_ref()?;
        let what = format!("export {}: {problem}", export.id);
        let action = match &export.health {
            Some(_) => view::ExportHealth::ACTION.to_owned(),
            None => format!("show it with: palisade export show {}", export.id),
        };
        Some(line(what, action))
    }));
    all.extend(array.filesystems.iter().filter(|_| !waits).flat_map(shares));
    all
}

/// What is wrong with a file system that is shared, and with its shares: what all of them have for
/// the same reason is told once.
fn shares(own: &view::FileSystem) -> Vec<Next> {
    let failed = |health: &view::ExportHealth| {
        let is_failed = health.state == view::ServiceState::Failed;
        health.problem.clone().filter(|_| is_failed)
    };
    let all = failed(&own.health);
    let of_all = all.iter().map(|why| format!("shares of {}/{}: {why}", own.array, own.volume));
    let of_one = own.shares.iter().flat_map(|share| {
        let by = share.protocols.iter().filter_map(|by| Some((by, failed(&by.health)?)));
        let of_this = by.filter(|(_, why)| all.as_ref() != Some(why));
        of_this.map(|(by, why)| format!("share {} by {}: {why}", share.name, by.protocol.word()))
    });
    of_all.chain(of_one).map(|what| line(what, view::ExportHealth::ACTION.to_owned())).collect()
}

/// A shared array that this server may not change at this time.
fn held(array: &Array) -> Next {
    line(
        format!(
            "array {} is held: too few drives confirm that it is this server's, and writes wait",
            array.name
        ),
        "check the drives and the way to them (palisade drive list, palisade drive paths); writes \
         go on by themselves once enough of the drives answer"
            .to_owned(),
    )
}

/// An array that waits for its drives.
fn waiting(array: &Array) -> Next {
    let out = [SlotState::Failed, SlotState::Missing].map(|state| slots(array, state)).concat();
    let out = if out.is_empty() { "its drives".to_owned() } else { out.join(", ") };
    line(
        format!("array {} waits for {out}: no path leads there", array.name),
        "check the network and the drives' targets (palisade drive paths); the array starts by \
         itself once they are reached"
            .to_owned(),
    )
}

/// The slots in this state, in words.
fn slots(array: &Array, state: SlotState) -> Vec<String> {
    let word = |s: &SlotInfo| format!("slot {} (serial {})", s.slot, s.serial);
    array.slots.iter().filter(|s| s.state == state).map(word).collect()
}

fn stopped(array: &Array, name: &str, ready: bool, idle: &Idle) -> Option<Next> {
    let own = &array.name;
    let missing = slots(array, SlotState::Missing).join(", ");
    let start = format!("palisade array assemble {name}");
    let refused = idle.refused.get(&array.uuid);
    let other = array.owner.as_ref().filter(|owner| !owner.own);
    if let Some(owner) = other.filter(|_| ready && refused.is_none()) {
        return Some(line(
            format!("array {own} is not started, as host {} has it", owner.called()),
            format!("stop it on that server, or if that server is dead: {start} --take-over"),
        ));
    }
    let (what, action) = match refused {
        Some(Refused { why, is_outdated: false }) => {
            (format!("array {own} is not started: {}", why.error), why.hint.clone())
        }
        Some(_) if missing.is_empty() => (
            format!("array {own} is not started, and its missing drives are back"),
            format!("start it with: {start}"),
        ),
        Some(_) => (
            format!("array {own} is not started, and its drives have changed: no {missing}"),
            format!("bring these back, then start it with: {start}"),
        ),
        None if idle.in_hand.contains(&array.uuid) && missing.is_empty() => return None,
        None if idle.in_hand.contains(&array.uuid) || ready => match missing.is_empty() {
            true => (format!("array {own} is not started"), format!("start it with: {start}")),
            false => (
                format!("array {own} is stopped, without {missing}"),
                format!("bring the drives back, then start it with: {start}"),
            ),
        },
        // The daemon is starting arrays.
        None if missing.is_empty() => return None,
        None => (
            format!("array {own} waits for {missing}"),
            "it starts by itself once these are there, or the wait for drives is over".to_owned(),
        ),
    };
    Some(line(what, action))
}

fn failed(array: &Array, name: &str) -> Next {
    let [missing, out] =
        [SlotState::Missing, SlotState::Failed].map(|state| slots(array, state).join(", "));
    let restart = format!("palisade array stop {name}; palisade array assemble {name}");
    let told = [
        (!missing.is_empty()).then(|| format!("missing: {missing}")),
        (!out.is_empty()).then(|| format!("already out of service: {out}")),
    ];
    let told: Vec<_> = told.into_iter().flatten().collect();
    let told = if told.is_empty() { told.concat() } else { format!(" ({})", told.join("; ")) };
    line(
        format!("array {} has failed, as too many drives are gone{told}", array.name),
        match missing.is_empty() {
            true => format!("check the drives and their cabling, then: {restart}"),
            false => format!("bring {missing} back, then: {restart}"),
        },
    )
}

/// Drives that are gone, and that requests fail or nobody.
fn absent(array: &Array, name: &str, is_waited_for: bool, idle: &Idle) -> Option<Next> {
    let own = idle.absent.iter().filter(|gone| gone.array == array.uuid);
    let own = own.filter(|gone| gone.is_waited_for == is_waited_for);
    let paths: Vec<&str> = own.map(|gone| gone.path.as_str()).collect();
    if paths.is_empty() {
        return None;
    }
    let drives = paths.join(", ");
    let again = format!("palisade array stop {name}; palisade array assemble {name}");
    let (what, check) = match is_waited_for {
        true => ("went with their paths and are waited for", "the network and the drives' targets"),
        false => (
            "are gone, and none was failed, as redundancy does not cover all that went",
            "the cable and the power of their enclosure",
        ),
    };
    Some(line(
        format!("drives of array {}: {drives} {what}", array.name),
        format!("check {check}; once they are back: {again}"),
    ))
}

fn degraded(array: &Array, name: &str, slot: &SlotInfo, idle: &Idle) -> Option<Next> {
    let number = slot.slot;
    let drive = slot.drive.as_deref().unwrap_or(&slot.serial);
    let reason = slot.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    let back = idle.returned.get(&(array.uuid.clone(), number));
    let with = back.map_or("PATH", String::as_str);
    let replace = format!("palisade array replace {name} --slot {number} --with {with}");
    let (what, action) = match slot.state {
        SlotState::InSync | SlotState::Rebuilding => return None,
        _ if idle.gone.contains(&(array.uuid.clone(), number)) => (
            format!("no path leads to drive {drive}"),
            format!(
                "check the network and the drive's target (palisade drive paths); it comes back by \
                 itself, or is replaced with: {replace}"
            ),
        ),
        _ if back.is_some() => (
            format!("drive {drive} is out of service{reason}, and is back as {with}"),
            format!("use it again, and fill it with what it missed: {replace}"),
        ),
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
    Some(line(format!("array {} is degraded in slot {number}: {what}", array.name), action))
}

fn task(name: &str, task: &Task) -> Option<Next> {
    let id = &task.id;
    match (task.state, &task.problem) {
        (TaskState::Paused, _) => {
            let kind = id.rsplit_once(':').map_or(id.as_str(), |(_, kind)| kind);
            Some(line(
                format!("task {id} is paused"),
                format!("resume it with: palisade task resume {name}:{kind}"),
            ))
        }
        (TaskState::Stuck, Some(problem)) => {
            let action = match task.hindrance {
                Some(Hindrance::Unavailable) => "bring the missing drives back".to_owned(),
                Some(Hindrance::ListFull) => format!(
                    "write the lost blocks anew or discard them (palisade array show {name})"
                ),
                Some(Hindrance::Unreadable) | None => format!(
                    "bring missing drives back, or write the unreadable blocks anew (palisade \
                     array show {name})"
                ),
            };
            Some(line(
                format!("task {id} is stuck: {problem}"),
                format!("{action}; the task then goes on by itself"),
            ))
        }
        _ => None,
    }
}

fn unreadable(array: &Array, name: &str) -> Option<Next> {
    let bytes = array.unreadable.iter().map(|range| range.length).sum();
    (bytes > 0).then(|| {
        let (ranges, bytes) = (array.unreadable.len(), format_size(bytes));
        line(
            format!("array {} can't read {bytes} in {ranges} ranges of its volumes", array.name),
            format!("restore from a copy what this lists: palisade array show {name}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use redfish::messages as say;

    fn status(change: impl FnOnce(&mut Array)) -> view::Status {
        let slot = |slot: u16| {
            serde_json::json!({"slot": slot, "drive": format!("/dev/d{slot}"),
                "serial": format!("S{slot}"), "state": "in-sync"})
        };
        let mut array: Array = serde_json::from_value(serde_json::json!({
            "name": "data", "uuid": "u", "level": "5", "state": "optimal", "strip_bytes": 65536,
            "block_bytes": 512, "size_bytes": 0, "free_bytes": 0, "epoch": 1, "unclean": false,
            "slots": [slot(0), slot(1), slot(2)], "tasks": [], "last_scrub": null, "drive_io": [],
            "volumes": [], "exports": [], "filesystems": [],
        }))
        .expect("an array");
        change(&mut array);
        let parity = serde_json::json!({"placement": "cpu", "kernel": "k", "gpu": null,
            "problem": null, "gpu_jobs": 0, "gpu_bytes": 0, "gpu_undone": 0, "gpu_checked": 0,
            "gpu_shared_bytes": 0, "gpu_kept_bytes": 0});
        view::Status {
            ready: true,
            parity: serde_json::from_value(parity).expect("parity"),
            arrays: vec![array],
            ..view::Status::default()
        }
    }

    fn only(change: impl FnOnce(&mut Array)) -> (String, String) {
        let all = next(&status(change), &Idle::default());
        assert_eq!(all.len(), 1, "{all:?}");
        (all[0].what.clone(), all[0].action.clone())
    }

    #[test]
    fn drives_that_are_not_well_are_told_the_worst_first() {
        let reason = |what: &str| Reason {
            rule: "wear".to_owned(),
            health: Health::Warning,
            what: what.to_owned(),
            action: format!("see to {what}"),
            since: 0,
        };
        let drive = |path: &str, health, reasons: &[&str]| KnownDrive {
            remote: None,
            id: path.to_owned(),
            wwid: None,
            model: None,
            is_file: false,
            drive: view::Drive {
                path: path.to_owned(),
                serial: String::new(),
                bytes: 0,
                block_bytes: 512,
                state: view::DriveState::InUse,
                array: None,
                slot: None,
                signature: None,
                problem: None,
            },
            hardware: view::Hardware {
                health,
                reasons: reasons.iter().map(|what| reason(what)).collect(),
                ..view::Hardware::default()
            }
            .into(),
        };
        let all = unwell(&[
            drive("/dev/a", Health::Warning, &["wear", "heat", "its link"]),
            drive("/dev/b", Health::Ok, &[]),
            drive("/dev/c", Health::Critical, &["its media"]),
            drive("/dev/d", Health::Warning, &[]),
        ]);
        let told: Vec<_> = all.iter().map(|next| (&next.what[..], &next.action[..])).collect();
        assert_eq!(
            told,
            [
                ("drive /dev/c is not well: its media", "see to its media"),
                ("drive /dev/a is not well: wear (and 2 more)", "see to wear"),
                (
                    "drive /dev/d is not well",
                    "see what it says of itself with: palisade drive show /dev/d"
                ),
            ]
        );
    }

    #[test]
    fn an_audit_log_that_can_not_be_written_is_told() {
        let mut status = status(|_| {});
        status.state.problem = Some("no space".into());
        let without = next(&status, &Idle::default());
        assert!(without[0].what.contains("no state directory") && without.len() == 1);
        status.state.directory = Some("/var/lib/palisade".into());
        let all = next(&status, &Idle::default());
        assert!(all[0].what.ends_with("can't be written: no space") && all.len() == 1);
        assert!(all[0].action.contains("/var/lib/palisade"));
    }

    fn lacks(array: &mut Array, state: SlotState) {
        array.state = ArrayState::Degraded;
        (array.slots[1].state, array.slots[1].reason) = (state, Some("it timed out".into()));
    }

    #[test]
    fn where_all_is_well_there_is_nothing_to_do() {
        assert_eq!(next(&status(|_| ()), &Idle::default()), []);
        let mut stopped = status(|array| array.state = ArrayState::Stopped);
        let idle = Idle { in_hand: ["u".to_owned()].into(), ..Idle::default() };
        assert_eq!(next(&stopped, &idle), [], "a person stopped it");
        stopped.ready = false;
        assert_eq!(next(&stopped, &Idle::default()), [], "it is being started");
    }

    #[test]
    fn drives_that_are_gone_and_those_that_are_back_are_told() {
        let gone = |path: &str, is_waited_for| Gone {
            array: "u".to_owned(),
            path: path.to_owned(),
            is_waited_for,
        };
        let absent = vec![gone("/dev/d0", false), gone("/dev/d1", true), gone("/dev/d2", false)];
        let all = next(&status(|_| ()), &Idle { absent, ..Idle::default() });
        let what: Vec<&str> = all.iter().map(|next| next.what.as_str()).collect();
        assert_eq!(what.len(), 2, "{all:?}");
        assert!(what[0].starts_with("drives of array data: /dev/d0, /dev/d2 are gone"), "{what:?}");
        assert!(what[1].starts_with("drives of array data: /dev/d1 went"), "{what:?}");
        assert!(all[0].action.ends_with("palisade array stop data; palisade array assemble data"));
        let returned = BTreeMap::from([(("u".to_owned(), 1), "/dev/d9".to_owned())]);
        let all = next(
            &status(|array| lacks(array, SlotState::Failed)),
            &Idle { returned, ..Idle::default() },
        );
        assert_eq!(all.len(), 1);
        assert!(all[0].what.ends_with("out of service (it timed out), and is back as /dev/d9"));
        assert!(all[0].action.ends_with("palisade array replace data --slot 1 --with /dev/d9"));
    }

    #[test]
    fn what_only_takes_time_is_waited_for() {
        let wait = "wait for it with: palisade array wait data";
        let (what, action) = only(|array| lacks(array, SlotState::Rebuilding));
        assert_eq!(
            (what.as_str(), action.as_str()),
            ("array data is degraded until its drives are in sync", wait)
        );
        assert_eq!(only(|array| array.state = ArrayState::Degraded).1, wait, "a resync");
        let mut status = status(|array| {
            array.state = ArrayState::Stopped;
            array.slots[1].state = SlotState::Missing;
        });
        status.ready = false;
        let all = next(&status, &Idle::default());
        assert_eq!(all[0].what, "array data waits for slot 1 (serial S1)");
        assert!(!all[0].action.contains("palisade"), "{all:?}");
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
        assert!(what.ends_with("gone (missing: slot 1 (serial S1))"), "{what}");
        let restart = "then: palisade array stop data; palisade array assemble data";
        assert_eq!(action, format!("bring slot 1 (serial S1) back, {restart}"));
        let (what, action) = only(|array| {
            lacks(array, SlotState::Failed);
            array.state = ArrayState::Failed;
        });
        assert!(what.ends_with("gone (already out of service: slot 1 (serial S1))"), "{what}");
        assert!(!action.contains("bring") && action.ends_with(restart), "{action}");
        let (what, action) = only(|array| array.state = ArrayState::Stopped);
        assert_eq!(what, "array data is not started");
        assert_eq!(action, "start it with: palisade array assemble data");
    }

    #[test]
    fn a_refusal_is_told_until_other_drives_are_there() {
        let told = |is_outdated, missing| {
            let found = status(|array| {
                array.state = ArrayState::Stopped;
                if missing {
                    array.slots[1].state = SlotState::Missing;
                }
            });
            let why = Error::new(&say::NO_REDUNDANCY, &[])
                .advise("say: palisade array assemble data --more");
            let refused = [("u".to_owned(), Refused { why, is_outdated })].into();
            let all = next(&found, &Idle { refused, ..Idle::default() });
            assert_eq!(all.len(), 1, "{all:?}");
            (all[0].what.clone(), all[0].action.clone())
        };
        let (what, action) = told(false, true);
        assert!(what.ends_with("not started: the array's level has no redundancy"), "{what}");
        assert!(action.ends_with("--more"), "{action}");
        assert_eq!(told(false, false).1, action, "something else than missing drives");
        let start = "start it with: palisade array assemble data";
        assert_eq!(told(true, false).1, start);
        let (what, action) = told(true, true);
        assert!(what.contains("slot 1 (serial S1)") && action.ends_with(start), "{what}: {action}");
    }

    #[test]
    fn what_comes_back_by_itself_is_told_so() {
        let mut found = status(|array| lacks(array, SlotState::Failed));
        let idle = Idle { gone: [("u".to_owned(), 1)].into(), ..Idle::default() };
        let all = next(&found, &idle);
        assert!(all[0].what.ends_with("slot 1: no path leads to drive /dev/d1"), "{all:?}");
        assert!(all[0].action.contains("it comes back by itself"), "{all:?}");
        found.arrays[0].state = ArrayState::Failed;
        let idle = Idle { waiting: ["u".to_owned()].into(), ..idle };
        for state in [ArrayState::Failed, ArrayState::Stopped] {
            found.arrays[0].state = state;
            let all = next(&found, &idle);
            assert_eq!(all.len(), 1, "{all:?}");
            assert!(all[0].what.starts_with("array data waits for slot 1 (serial S1)"), "{all:?}");
            assert!(all[0].action.ends_with("starts by itself once they are reached"), "{all:?}");
        }
    }

    #[test]
    fn what_another_server_has_is_told_with_how_to_have_it() {
        let mut found = status(|array| {
            array.state = ArrayState::Stopped;
            array.owner = Some(view::Owner { name: "srv2".to_owned(), ..Default::default() });
        });
        let idle = |in_hand: &[&str]| Idle {
            in_hand: in_hand.iter().map(|own| (*own).to_owned()).collect(),
            ..Idle::default()
        };
        for in_hand in [&[][..], &["u"]] {
            let all = next(&found, &idle(in_hand));
            assert_eq!(all[0].what, "array data is not started, as host srv2 has it");
            assert!(all[0].action.ends_with("array assemble data --take-over"), "{all:?}");
        }
        // It is being started, and may be taken: this server had it before.
        found.ready = false;
        assert_eq!(next(&found, &idle(&[])), []);
        found.ready = true;
        found.arrays[0].owner.as_mut().expect("there is one").own = true;
        let all = next(&found, &idle(&[]));
        assert!(all[0].action.ends_with("array assemble data"), "{all:?}");
    }

    #[test]
    fn an_array_that_waits_for_its_drives_word_is_told() {
        let idle = Idle { held: ["u".to_owned()].into(), ..Idle::default() };
        let all = next(&status(|_| ()), &idle);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].what.starts_with("array data is held: "), "{all:?}");
        assert!(all[0].action.contains("palisade drive paths"), "{all:?}");
    }

    #[test]
    fn an_array_whose_name_is_not_its_own_is_called_by_its_uuid() {
        let mut two = status(|array| array.state = ArrayState::Stopped);
        two.arrays.push(Array { uuid: "w".to_owned(), ..two.arrays[0].clone() });
        let actions: Vec<_> = next(&two, &Idle::default()).into_iter().map(|n| n.action).collect();
        let start = "start it with: palisade array assemble";
        assert_eq!(actions, [format!("{start} u"), format!("{start} w")]);
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
        for (hindrance, todo) in [
            (Hindrance::Unavailable, "bring the missing drives back; "),
            (Hindrance::ListFull, "write the lost blocks anew or discard them "),
        ] {
            let stuck = Task { hindrance: Some(hindrance), ..task("stuck") };
            let (_, action) = only(|array| array.tasks.push(stuck));
            assert!(action.starts_with(todo), "{action}");
        }
        let (what, action) = only(|array| {
            let reason = view::UnreadableReason::Media;
            let range =
                |offset| view::Unreadable { volume: "v".to_owned(), offset, length: 512, reason };
            array.unreadable = vec![range(0), range(4096)];
        });
        assert!(what.contains("1 KiB in 2 ranges"), "{what}");
        assert!(action.ends_with("palisade array show data"), "{action}");
    }

    #[test]
    fn shares_that_can_not_be_had_are_told() {
        let bad = |why: &str| view::ExportHealth {
            state: view::ServiceState::Failed,
            checked: None,
            problem: Some(why.to_owned()),
        };
        let of = |own: &str, smb: &str| {
            serde_json::from_value::<view::FileSystem>(serde_json::json!({
                "array": "data", "volume": "v", "volume_uuid": "u", "kind": null,
                "mounted": false, "read_only": false, "size_bytes": null, "used_bytes": null,
                "smb_listen": "", "nfs_listen": "", "users": [], "health": bad(own),
                "shares": [{"name": "docs", "read_only": false, "smb_users": [],
                    "nfs_clients": [], "protocols": [{"protocol": "smb", "server": "Samba",
                    "version": null, "url": "", "clients": [], "health": bad(smb)}]}],
            }))
            .expect("a file system")
        };
        let (what, action) = only(|array| array.filesystems = vec![of("no answer", "no answer")]);
        assert_eq!(what, "shares of data/v: no answer");
        assert!(action.ends_with("palisade-services"), "{action}");
        let several = status(|array| array.filesystems = vec![of("no answer", "refused")]);
        let told: Vec<String> =
            next(&several, &Idle::default()).into_iter().map(|next| next.what).collect();
        assert_eq!(told, ["shares of data/v: no answer", "share docs by smb: refused"]);
    }

    #[test]
    fn what_the_daemon_was_refused_is_told() {
        let mut status = status(|_| ());
        status.memory.problem = Some("it is not locked".into());
        status.parity.problem = Some("it hung".into());
        let all = next(&status, &Idle::default());
        assert!(all[0].what.ends_with("it is not locked"), "{}", all[0].what);
        for word in ["LimitMEMLOCK=infinity", "AmbientCapabilities=CAP_SYS_RESOURCE"] {
            assert!(all[0].action.contains(word), "{}", all[0].action);
        }
        assert!(all[1].what.ends_with("it hung") && all[1].action.contains("parity = \"cpu\""));
        assert!(!all[1].action.contains("nvidia-smi"), "no GPU was found: {all:?}");
        status.parity.gpu = Some("H200".to_owned());
        let action = |status: &view::Status| next(status, &Idle::default())[1].action.clone();
        assert!(action(&status).contains("nvidia-smi"));
        status.parity.gpu_suspect = true;
        let suspect = action(&status);
        assert!(suspect.contains("parity = \"cpu\""), "{suspect}");
        assert!(suspect.ends_with("palisade array scrub data --check"), "{suspect}");
    }
}

//! What two views differ by, against edits that say what they come to.

use super::*;
use crate::messages::Notice;
use crate::routes::{Method, Privilege, find};
use crate::sample::Random;
use crate::view::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const GIB: u64 = 1 << 30;

fn slot(slot: u16, array: &str) -> SlotInfo {
    SlotInfo {
        slot,
        drive: Some(format!("/dev/{array}{slot}")),
        serial: format!("S{array}{slot}"),
        state: SlotState::InSync,
        read_errors: 0,
        rewritten: 0,
        wrong_strips: 0,
        failures: 0,
        timeouts: 0,
        reason: None,
        quarantined: false,
    }
}

fn export(array: &str, number: u32) -> Export {
    let nvme = NvmeExport {
        subsystem: format!("nqn.{array}.{number}"),
        nsid: 1,
        nguid: String::new(),
        uuid: String::new(),
        listeners: Vec::new(),
        advertise: Vec::new(),
        hosts: Vec::new(),
        any_host: true,
        connections: [Connection {
            host: format!("host.{number}"),
            controller: 1,
            queues: 2,
            ..Connection::default()
        }]
        .into(),
    };
    Export {
        id: format!("{array}:{number}"),
        array: array.to_owned(),
        volume: format!("v{number}"),
        kind: ExportKind::NvmeTcp,
        nvme: Some(nvme),
        uri: format!("nvme://{array}/{number}"),
        serving: true,
        ..Export::default()
    }
}

fn volume(array: &str, number: u32) -> Volume {
    Volume {
        array: array.to_owned(),
        name: format!("v{number}"),
        uuid: format!("{array}-v{number}"),
        size_bytes: GIB,
    }
}

fn array(name: &str) -> Array {
    Array {
        name: name.to_owned(),
        uuid: format!("uuid-{name}"),
        level: "5".to_owned(),
        state: ArrayState::Optimal,
        strip_bytes: 65536,
        block_bytes: 4096,
        size_bytes: GIB,
        epoch: 1,
        slots: (0..3).map(|number| slot(number, name)).collect(),
        volumes: (1..4).map(|number| volume(name, number)).collect(),
        exports: (1..4).map(|number| export(name, number)).collect(),
        ..Array::default()
    }
}

fn known(id: &str, path: &str) -> KnownDrive {
    KnownDrive {
        remote: None,
        id: id.to_owned(),
        wwid: None,
        model: None,
        is_file: false,
        hardware: Default::default(),
        drive: Drive {
            path: path.to_owned(),
            serial: format!("S{id}"),
            bytes: GIB,
            block_bytes: 4096,
            state: DriveState::Free,
            array: None,
            slot: None,
            signature: None,
            problem: None,
        },
    }
}

fn job(id: &str) -> Job {
    let task = Task {
        id: format!("{id}:scrub"),
        kind: TaskKind::Scrub,
        done_bytes: 0,
        total_bytes: 1,
        progress: 0.0,
        seconds_left: None,
        state: TaskState::Running,
        problem: None,
        hindrance: None,
    };
    Job { id: id.to_owned(), array: "uuid-a".to_owned(), task, began: 1, ended: None }
}

fn view() -> View {
    let mut view = View::default();
    view.status.ready = true;
    view.status.arrays = ["a", "b", "c", "d"].map(array).into();
    let of = |array: &Array| -> Vec<KnownDrive> {
        let one = |slot: &SlotInfo| known(&slot.serial, slot.drive.as_deref().unwrap_or_default());
        array.slots.iter().map(one).collect()
    };
    view.drives = view.status.arrays.iter().flat_map(of).collect();
    view.drives.extend((0..6).map(|number| known(&format!("f{number}"), "/dev/free")));
    view.jobs = (0..6).map(|number| job(&format!("j{number}"))).collect();
    view
}

type Told = Vec<(String, Vec<String>)>;

fn sorted(mut told: Told) -> Told {
    told.sort();
    told
}

fn told(before: &View, after: &View) -> Told {
    between(before, after).into_iter().map(|event| (event.name, event.args)).collect()
}

fn names(before: &View, after: &View) -> Vec<String> {
    between(before, after).into_iter().map(|event| event.name).collect()
}

/// Edits a view at random; each edit says what it comes to.
struct Edit<'a> {
    random: &'a mut Random,
    expected: Told,
}

impl Edit<'_> {
    fn expect(&mut self, notice: &Notice, args: &[&dyn Display]) {
        let args = args.iter().map(ToString::to_string).collect();
        self.expected.push((notice.name.to_owned(), args));
    }

    /// One of so many edits; more often none.
    fn which(&mut self, edits: u64) -> u64 {
        self.random.below(edits * 2)
    }

    fn slot(&mut self, slot: &mut SlotInfo, array: &str) {
        let (path, number) = (slot.drive.clone().expect("a drive"), slot.slot);
        match self.which(5) {
            0 => {
                (slot.state, slot.reason) = (SlotState::Failed, Some("timeouts".to_owned()));
                self.expect(&say::DRIVE_OUT, &[&path, &number, &array, &"timeouts"]);
            }
            1 => {
                (slot.state, slot.drive) = (SlotState::Missing, None);
                self.expect(&say::DRIVE_MISSING, &[&path, &number, &array]);
            }
            2 => {
                (slot.state, slot.drive) = (SlotState::Rebuilding, Some("/dev/new".to_owned()));
                self.expect(&say::DRIVE_REPLACED, &[&"/dev/new", &number, &array]);
            }
            3 => {
                slot.quarantined = true;
                self.expect(&say::DRIVE_HANGS, &[&path, &number, &array]);
            }
            4 => slot.read_errors += 1,
            _ => {}
        }
    }

    fn volumes(&mut self, array: &mut Array) {
        let name = array.name.clone();
        let mut kept = Vec::new();
        for mut volume in core::mem::take(&mut array.volumes) {
            match self.which(4) {
                0 => {
                    self.expect(&say::VOLUME_DELETED, &[&volume.name, &name]);
                    continue;
                }
                1 => {
                    volume.size_bytes = 2 * GIB;
                    self.expect(&say::VOLUME_RESIZED, &[&volume.name, &name, &(2 * GIB)]);
                }
                2 => {
                    let reason = UnreadableReason::Media;
                    for (offset, length) in [(0, 4096), (8192, 4096)] {
                        let volume = volume.name.clone();
                        array.unreadable.push(Unreadable { volume, offset, length, reason });
                    }
                    self.expect(&say::BLOCKS_LOST, &[&volume.name, &name, &8192]);
                }
                _ => {}
            }
            kept.push(volume);
        }
        if self.which(1) == 0 {
            let new = self::volume(&name, 9);
            self.expect(&say::VOLUME_CREATED, &[&new.name, &name, &GIB]);
            kept.push(new);
        }
        array.volumes = kept;
    }

    fn exports(&mut self, array: &mut Array) {
        let name = array.name.clone();
        let mut kept = Vec::new();
        for mut export in core::mem::take(&mut array.exports) {
            let nvme = export.nvme.as_mut().expect("NVMe");
            let (subsystem, host) = (nvme.subsystem.clone(), nvme.connections[0].host.clone());
            match self.which(5) {
                0 => {
                    self.expect(&say::EXPORT_DELETED, &[&export.volume, &name, &export.uri]);
                    self.expect(&say::HOST_DISCONNECTED, &[&host, &subsystem]);
                    continue;
                }
                1 => {
                    (export.serving, export.problem) = (false, Some("taken".to_owned()));
                    self.expect(&say::EXPORT_FAILED, &[&export.volume, &name, &"taken"]);
                }
                2 => {
                    nvme.connections = [].into();
                    self.expect(&say::HOST_DISCONNECTED, &[&host, &subsystem]);
                }
                3 => {
                    Arc::make_mut(&mut nvme.connections)[0].host = "another".to_owned();
                    self.expect(&say::HOST_DISCONNECTED, &[&host, &subsystem]);
                    self.expect(&say::HOST_CONNECTED, &[&"another", &subsystem]);
                }
                // Another controller of a host is no other host.
                4 => {
                    let more =
                        Connection { host, controller: 2, queues: 1, ..Connection::default() };
                    let all = nvme.connections.iter().cloned();
                    nvme.connections = all.chain([more]).collect();
                }
                _ => {}
            }
            kept.push(export);
        }
        array.exports = kept;
    }

    fn state(&mut self, array: &mut Array) {
        let notice = match self.which(3) {
            0 => (ArrayState::Degraded, &say::ARRAY_DEGRADED),
            1 => (ArrayState::Failed, &say::ARRAY_FAILED),
            2 => {
                let scrub = LastScrub {
                    checked_bytes: 1,
                    uncompared_bytes: None,
                    mismatches: 3,
                    repaired: 0,
                    unlocated: 0,
                    unreadable: 0,
                    ended: 5,
                };
                array.last_scrub = Some(scrub);
                return self.expect(&say::SCRUB_FOUND, &[&array.name, &3]);
            }
            _ => return,
        };
        array.state = notice.0;
        self.expect(notice.1, &[&array.name]);
    }

    fn drives(&mut self, view: &mut View) {
        for known in view.drives.iter_mut().filter(|known| known.id.starts_with('f')) {
            if self.which(1) == 0 {
                known.drive.state = DriveState::Unusable;
                known.drive.problem = Some("I/O error".to_owned());
                self.expect(&say::DRIVE_UNUSABLE, &[&known.drive.path, &"I/O error"]);
            }
        }
        if self.which(1) == 0 {
            view.drives.retain(|known| known.id != "f0");
            // One that can't be used any more and goes is gone.
            self.expected.retain(|(name, _)| name != "DriveUnusable");
            for known in view.drives.iter().filter(|k| k.drive.state == DriveState::Unusable) {
                let args = vec![known.drive.path.clone(), "I/O error".to_owned()];
                self.expected.push(("DriveUnusable".to_owned(), args));
            }
            self.expect(&say::DRIVE_GONE, &[&"/dev/free", &"Sf0"]);
        }
        if self.which(1) == 0 {
            view.drives.push(known("new", "/dev/new"));
            self.expect(&say::DRIVE_CAME, &[&"/dev/new", &"Snew"]);
        }
    }

    fn jobs(&mut self, view: &mut View) {
        for job in &mut view.jobs {
            let task = job.task.id.clone();
            let end = match self.which(5) {
                0 => (JobEnd::Completed, &say::JOB_COMPLETED),
                1 => (JobEnd::Cancelled, &say::JOB_CANCELLED),
                2 => (JobEnd::Interrupted, &say::JOB_INTERRUPTED),
                3 => {
                    (job.task.state, job.task.problem) = (TaskState::Stuck, Some("why".to_owned()));
                    self.expect(&say::JOB_STUCK, &[&task, &"why"]);
                    continue;
                }
                4 => {
                    job.task.state = TaskState::Paused;
                    self.expect(&say::JOB_PAUSED, &[&task]);
                    continue;
                }
                _ => continue,
            };
            job.ended = Some((2, end.0));
            self.expect(end.1, &[&task]);
        }
        if self.which(1) == 0 {
            view.jobs.push(job("new"));
            self.expect(&say::JOB_STARTED, &[&"new:scrub"]);
        }
    }
}

#[test]
fn what_views_differ_by_is_what_was_edited() {
    let mut seen = BTreeSet::new();
    for seed in 0..2000 {
        let before = view();
        let mut after = before.clone();
        let mut edit = Edit { random: &mut Random::new(seed), expected: Vec::new() };
        let mut arrays = core::mem::take(&mut after.status.arrays);
        for array in &mut arrays {
            let name = array.name.clone();
            edit.state(array);
            array.slots.iter_mut().for_each(|slot| edit.slot(slot, &name));
            edit.volumes(array);
            edit.exports(array);
        }
        after.status.arrays = arrays;
        edit.drives(&mut after);
        edit.jobs(&mut after);
        let expected = sorted(edit.expected);
        assert_eq!(sorted(told(&before, &after)), expected, "seed {seed}");
        seen.extend(expected.into_iter().map(|(name, _)| name));
        assert_eq!(told(&after, &after), [], "seed {seed}: nothing differs from itself");
    }
    assert_eq!(seen.len(), 24, "{seen:?}");
}

#[test]
fn what_was_wrong_and_is_right_is_told() {
    let well = view();
    let mut ill = view();
    let array = &mut ill.status.arrays[0];
    array.state = ArrayState::Degraded;
    array.slots[0].state = SlotState::Rebuilding;
    let range = |volume: &str| Unreadable {
        volume: volume.to_owned(),
        offset: 0,
        length: 1,
        reason: UnreadableReason::Media,
    };
    array.unreadable = vec![range("v1"), range("deleted")];
    array.exports[0].serving = false;
    array.exports[0].problem = Some("taken".to_owned());
    ill.drives.last_mut().expect("one").drive.state = DriveState::Unusable;
    ill.jobs[0].task.state = TaskState::Stuck;
    ill.status.state.problem = Some("full".to_owned());
    ill.status.parity.gpu_suspect = true;
    let expected = [
        "DriveUsable",
        "DriveBack",
        "ArrayOptimal",
        "BlocksBack",
        "JobGoesOn",
        "ExportServed",
        "StateWell",
    ];
    assert_eq!(names(&ill, &well), expected);
    let back = names(&well, &ill);
    for name in ["StateProblem", "GpuSuspect", "BlocksLost"] {
        assert!(back.iter().any(|own| own == name), "{back:?}");
    }
}

#[test]
fn what_an_array_that_stops_no_longer_tells_is_not_right_again() {
    let range = |offset, length| Unreadable {
        volume: "v1".to_owned(),
        offset,
        length,
        reason: UnreadableReason::Media,
    };
    let with = |ranges: &[(u64, u64)]| {
        let mut view = view();
        let ranges = ranges.iter().map(|(offset, length)| range(*offset, *length));
        view.status.arrays[0].unreadable = ranges.collect();
        view
    };
    let (ill, mut stopped) = (with(&[(0, 4096)]), with(&[]));
    stopped.status.arrays[0].state = ArrayState::Stopped;
    let told = names(&ill, &stopped);
    assert!(!told.iter().any(|name| name.starts_with("Blocks")), "{told:?}");
    // What is met again is told again.
    assert!(names(&stopped, &ill).iter().any(|name| name == "BlocksLost"));
    // As many bytes elsewhere are others.
    assert_eq!(names(&ill, &with(&[(8192, 4096)])), ["BlocksLost"]);
    let both = with(&[(0, 4096), (4096, 4096)]);
    assert_eq!(names(&ill, &both), ["BlocksLost"]);
    assert!(names(&both, &with(&[(0, 8192)])).is_empty(), "the same bytes as one range");
    assert!(names(&both, &ill).is_empty(), "some of them are right again");
}

#[test]
fn arrays_come_and_go_with_what_is_on_them() {
    let whole = view();
    let mut less = view();
    let gone = less.status.arrays.remove(0);
    // Its hosts are told to be gone; volumes and exports go without a word.
    let hosts = ["HostDisconnected"; 3];
    assert_eq!(names(&whole, &less), [&hosts[..], &["ArrayDeleted"]].concat());
    let (volumes, exports) = (["VolumeCreated"; 3], ["ExportCreated"; 3]);
    let came = [&["ArrayCreated"][..], &volumes, &exports, &["HostConnected"; 3]].concat();
    assert_eq!(names(&less, &whole), came);
    let mut stopped = view();
    let array = &mut stopped.status.arrays[0];
    array.state = ArrayState::Stopped;
    array.exports.clear();
    assert_eq!(names(&whole, &stopped), [&hosts[..], &["ArrayStopped"]].concat());
    assert_eq!(names(&stopped, &whole), [&["ArrayStarted"][..], &["HostConnected"; 3]].concat());
    assert_eq!(names(&stopped, &less), ["ArrayGone"]);
    assert_eq!(names(&less, &stopped), ["ArrayFound"]);
    let mut refused = stopped.clone();
    refused.status.arrays[0].problem = Some("two drives are missing".to_owned());
    assert_eq!(names(&stopped, &refused), ["ArrayDoesNotStart"]);
    assert_eq!(names(&refused, &refused), [""; 0]);
    let mut degraded = whole.clone();
    degraded.status.arrays[0].state = ArrayState::Degraded;
    degraded.status.arrays[0].slots[1].state = SlotState::Missing;
    let begins = names(&stopped, &degraded);
    assert_eq!(begins[..3], ["DriveMissing", "ArrayStarted", "ArrayDegraded"]);
    assert_eq!(gone.name, "a");
}

#[test]
fn a_failure_and_its_repair_are_told_in_their_order() {
    let well = view();
    let mut failed = view();
    failed.status.arrays[0].state = ArrayState::Degraded;
    failed.status.arrays[0].slots[1].state = SlotState::Failed;
    assert_eq!(names(&well, &failed), ["DriveOut", "ArrayDegraded"]);
    let mut replaced = failed.clone();
    let slot = &mut replaced.status.arrays[0].slots[1];
    (slot.state, slot.drive) = (SlotState::Rebuilding, Some("/dev/new".to_owned()));
    replaced.jobs.push(job("rebuild"));
    assert_eq!(names(&failed, &replaced), ["DriveReplaced", "JobStarted"]);
    let mut whole = replaced.clone();
    whole.status.arrays[0].state = ArrayState::Optimal;
    whole.status.arrays[0].slots[1].state = SlotState::InSync;
    whole.jobs.last_mut().expect("one").ended = Some((3, JobEnd::Completed));
    assert_eq!(names(&replaced, &whole), ["DriveBack", "JobCompleted", "ArrayOptimal"]);
    // A rebuild so short that no view shows it under way.
    assert_eq!(
        names(&failed, &whole),
        ["DriveReplaced", "DriveBack", "JobStarted", "JobCompleted", "ArrayOptimal"]
    );
    // A task so short that no view shows it under way.
    whole.jobs.pop();
    let mut short = whole.clone();
    short.jobs.push(Job { ended: Some((3, JobEnd::Completed)), ..job("short") });
    assert_eq!(names(&whole, &short), ["JobStarted", "JobCompleted"]);
}

#[test]
fn a_start_tells_what_is_not_as_it_should_be() {
    let mut ill = view();
    ill.status.arrays[0].state = ArrayState::Degraded;
    ill.status.arrays[0].slots[0].state = SlotState::Missing;
    ill.status.arrays[1].state = ArrayState::Stopped;
    ill.status.arrays[1].problem = Some("why".to_owned());
    ill.status.arrays[1].exports.clear();
    let mut starting = ill.clone();
    starting.status.ready = false;
    assert_eq!(names(&View::default(), &starting), [""; 0]);
    let expected = ["DaemonStarted", "DriveMissing", "ArrayDegraded", "ArrayDoesNotStart"];
    let goes_on = |view: &View| {
        let jobs = view.jobs.iter().map(|_| "JobStarted");
        let hosts = hosts(view);
        jobs.chain(hosts.iter().map(|_| "HostConnected")).collect::<Vec<_>>()
    };
    // What goes on by then has begun, and who is there has come: their ends are told, too.
    let told = names(&starting, &ill);
    for name in expected {
        assert!(told.iter().any(|own| own == name), "{name}: {told:?}");
    }
    let rest: Vec<&str> = told.iter().map(String::as_str).collect();
    let rest: Vec<&str> = rest.into_iter().filter(|name| !expected.contains(name)).collect();
    assert_eq!(rest, goes_on(&ill));
    let well = view();
    assert_eq!(names(&View::default(), &well)[1..], goes_on(&well));
    assert_eq!(names(&view(), &starting), [""; 0]);
}

#[test]
fn accounts_and_the_certificate_are_told() {
    use crate::access::{Access, Account, Role};
    let of = |role: Role, name: &str, fingerprint: &str| {
        let name = name.to_owned();
        let account = Account { name, role, enabled: true, must_change: false, generation: 1 };
        let certificate =
            Certificate { fingerprint: fingerprint.to_owned(), ..Certificate::default() };
        View {
            access: Access { accounts: vec![account], ..Access::default() }.into(),
            https: Https { certificate: Some(certificate), ..Https::default() }.into(),
            ..view()
        }
    };
    let first = of(Role::Operator, "ann", "01");
    let changed = of(Role::ReadOnly, "ann", "02");
    let other = of(Role::ReadOnly, "bob", "02");
    assert_eq!(names(&first, &changed), ["CertificateReplaced", "AccountChanged"]);
    assert_eq!(names(&changed, &other), ["AccountDeleted", "AccountCreated"]);
}

#[test]
fn a_burst_is_bounded_and_the_gravest_is_told() {
    let mut before = view();
    let array = &mut before.status.arrays[0];
    array.volumes = (0..1000).map(|number| volume("a", number)).collect();
    array.exports.clear();
    let mut after = before.clone();
    let array = &mut after.status.arrays[0];
    array.volumes.clear();
    array.state = ArrayState::Failed;
    let told = between(&before, &after);
    assert_eq!(told.len(), MOST_AT_ONCE);
    let omitted = told.last().expect("some");
    let args = vec![(1001 - (MOST_AT_ONCE - 1)).to_string()];
    assert_eq!((omitted.name.as_str(), &omitted.args), ("EventsOmitted", &args));
    assert!(told.iter().any(|event| event.is(&say::ARRAY_FAILED)));
    // More grave ones than are told.
    for drive in 0..2000 {
        after.drives.push(known(&format!("x{drive}"), "/dev/x"));
    }
    let mut ill = after.clone();
    for known in &mut ill.drives {
        known.drive.state = DriveState::Unusable;
    }
    let told = between(&after, &ill);
    assert_eq!(told.len(), MOST_AT_ONCE);
    assert!(told.iter().all(|event| event.severity() >= Severity::Warning));
}

#[test]
fn whoever_may_log_in_may_read_what_events_are_about() {
    let mut origins = BTreeSet::new();
    for seed in 0..200 {
        let (before, after) = (crate::sample::view(seed), crate::sample::view(seed + 1));
        let ready = |mut view: View| {
            view.status.ready = true;
            view
        };
        for event in between(&ready(before), &ready(after)) {
            assert!(event.notice().is_some(), "{event:?}");
            assert!(!event.text().contains('%') || event.args.iter().any(|arg| arg.contains('%')));
            origins.insert(event.origin);
        }
    }
    origins.extend(
        [uri::SESSION_SERVICE, uri::ACCOUNT_SERVICE, uri::EVENT_SERVICE].map(str::to_owned),
    );
    for origin in origins {
        let found = find(&origin).expect(&origin);
        assert_eq!(found.route.privilege(Method::Get), Some(Privilege::Login), "{origin}");
    }
}

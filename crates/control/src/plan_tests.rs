//! Plans: what each change loses, what makes the state another, and what is refused at once.

use super::*;
use redfish::change::Change;
use redfish::view::{Drive, DriveState, Export, Job, KnownDrive, NamedDrive, Task, TaskState};
use units::MIB;

const ARRAY: &str = "11111111-0000-4000-8000-000000000000";

fn slot(slot: u16, state: SlotState) -> SlotInfo {
    SlotInfo {
        slot,
        drive: Some(format!("/dev/{slot}")),
        serial: format!("S{slot}"),
        state,
        read_errors: 0,
        rewritten: 0,
        wrong_strips: 0,
        failures: 0,
        timeouts: 0,
        reason: None,
        quarantined: false,
    }
}

fn volume(name: &str, uuid: &str) -> Volume {
    let (name, uuid) = (name.to_owned(), uuid.to_owned());
    Volume { array: "tank".to_owned(), name, uuid, size_bytes: 8 * MIB }
}

fn array(state: ArrayState) -> Array {
    Array {
        name: "tank".to_owned(),
        uuid: ARRAY.to_owned(),
        level: "5".to_owned(),
        state,
        strip_bytes: 65536,
        block_bytes: 512,
        size_bytes: 64 * MIB,
        free_bytes: 32 * MIB,
        epoch: 3,
        slots: vec![
            slot(0, SlotState::InSync),
            slot(1, SlotState::Failed),
            slot(2, SlotState::InSync),
        ],
        volumes: vec![volume("db", "v-1"), volume("web", "v-2")],
        exports: vec![Export {
            id: "tank:1".to_owned(),
            array: "tank".to_owned(),
            volume: "web".to_owned(),
            nbd: Some("127.0.0.1:1".to_owned()),
            serving: true,
            ..Export::default()
        }],
        ..Array::default()
    }
}

fn known(number: u16) -> KnownDrive {
    KnownDrive {
        remote: None,
        id: format!("wwid-{number}"),
        wwid: None,
        model: None,
        is_file: false,
        hardware: Default::default(),
        drive: Drive {
            path: format!("/dev/{number}"),
            serial: format!("S{number}"),
            bytes: 1 << 30,
            block_bytes: 512,
            state: DriveState::InUse,
            array: None,
            slot: None,
            signature: None,
            problem: None,
        },
    }
}

fn task(kind: TaskKind) -> Task {
    Task {
        id: format!("tank:{}", kind.word()),
        kind,
        done_bytes: 1,
        total_bytes: 2,
        progress: 0.5,
        seconds_left: None,
        state: TaskState::Running,
        problem: None,
        hindrance: None,
    }
}

fn view(state: ArrayState) -> View {
    let job = |kind: TaskKind| Job {
        id: kind.word().to_owned(),
        array: ARRAY.to_owned(),
        task: task(kind),
        began: 0,
        ended: None,
    };
    View {
        status: view::Status { arrays: vec![array(state)], ..view::Status::default() },
        drives: (0..4).map(known).collect(),
        jobs: vec![job(TaskKind::Resync), job(TaskKind::Rebuild)],
        ..View::default()
    }
}

fn running() -> View {
    view(ArrayState::Optimal)
}

/// A look at drive 3, which holds this.
fn looked(holds: Option<&str>, overwrites: bool) -> Looked {
    let holds = holds.map(str::to_owned);
    let drive = PlannedDrive {
        slot: Some(0),
        path: "/dev/3".to_owned(),
        serial: "S3".to_owned(),
        bytes: 1 << 30,
        content: holds.clone(),
        refused: holds.is_some() && !overwrites,
        destroys: holds.clone(),
    };
    let array = PlannedArray {
        name: "new".to_owned(),
        level: "0".to_owned(),
        strip_bytes: 65536,
        block_bytes: 512,
        size_bytes: 16 * MIB,
    };
    let drives = vec![Seen { drive, identity: format!("3 {holds:?}") }];
    Looked { array: Some(array), drives, ..Looked::default() }
}

fn own() -> String {
    ARRAY.to_owned()
}

/// Drive 3.
fn named() -> NamedDrive {
    let (id, path, serial) = ("wwid-3".to_owned(), "/dev/3".to_owned(), "S3".to_owned());
    NamedDrive { id, path, serial, seen: None }
}

fn new_array(overwrites: bool) -> view::CreateArray {
    let drives = vec![named()];
    view::CreateArray {
        name: "new".to_owned(),
        level: "0".to_owned(),
        same_drive: false,
        shared: false,
        overwrite: if overwrites { drives.clone() } else { Vec::new() },
        drives,
        strip_bytes: 65536,
        block_bytes: None,
    }
}

fn replace(slot: u16, overwrites: bool) -> Change {
    let overwrite = new_array(overwrites).overwrite;
    let request = view::ReplaceDrive { slot, with: named(), overwrite };
    Change::ReplaceDrive { array: own(), request }
}

fn resize(bytes: u64) -> Change {
    let request = view::ResizeVolume { size_bytes: bytes, shrink: false };
    Change::ResizeVolume { array: own(), volume: "v-1".to_owned(), request }
}

fn delete_volume(uuid: &str) -> Change {
    Change::DeleteVolume { array: own(), volume: uuid.to_owned() }
}

fn create_volume(name: &str, size_bytes: u64) -> Change {
    Change::CreateVolume(view::CreateVolume { array: own(), name: name.to_owned(), size_bytes })
}

fn on_drives(overwrites: bool, size_bytes: Option<u64>) -> Change {
    Change::CreateVolumeOnDrives { array: new_array(overwrites), size_bytes }
}

fn assemble(accept_loss: bool) -> Change {
    let request = view::AssembleArray { accept_loss, ..Default::default() };
    Change::Assemble { array: own(), request }
}

fn wipe() -> Change {
    Change::Wipe(view::WipeDrive { drive: named(), overwrite: true })
}

fn job(id: &str, action: JobAction) -> Change {
    Change::Job { id: id.to_owned(), action }
}

fn scrub(repair: bool) -> Change {
    Change::Scrub { array: own(), request: view::ScrubArray { repair, trust_data: false } }
}

fn fail(drive: &str) -> Change {
    Change::FailDrive { array: own(), request: view::FailDrive { drive: drive.to_owned() } }
}

/// One or more of every change.
fn all() -> Vec<Change> {
    let export = view::CreateExport {
        array: own(),
        volume: "v-1".to_owned(),
        nbd: Some("127.0.0.1:1".to_owned()),
        nvme_tcp: Vec::new(),
        subsystem: None,
        hosts: Vec::new(),
        any_host: false,
        advertise: Vec::new(),
        local: None,
        iscsi: None,
        fc: None,
    };
    vec![
        Change::CreateArray(new_array(true)),
        Change::CreateArray(new_array(false)),
        Change::DeleteArray { array: own() },
        Change::Stop { array: own() },
        assemble(true),
        assemble(false),
        fail("slot:0"),
        replace(1, true),
        replace(1, false),
        scrub(true),
        create_volume("new", MIB),
        on_drives(true, None),
        on_drives(false, Some(MIB)),
        resize(MIB),
        resize(8 * MIB),
        resize(9 * MIB),
        delete_volume("v-1"),
        Change::CreateExport(export),
        Change::DeleteExport { id: format!("{ARRAY}:1") },
        job("resync", JobAction::Suspend),
        job("rebuild", JobAction::Resume),
        job("rebuild", JobAction::Cancel),
        wipe(),
        Change::LocateDrive { id: "b".to_owned(), on: true },
        Change::SetDrivePower { id: "b".to_owned(), state: 1 },
        Change::FindDrives { paths: vec!["/dev/9".to_owned()] },
    ]
}

fn made(view: &View, change: &Change, looked: Looked) -> Planned {
    let planned =
        plan(view, change, looked).unwrap_or_else(|error| panic!("{change:?}: {error:?}"));
    assert!(planned.plan.dry_run && !planned.plan.steps.is_empty(), "{change:?}");
    planned
}

#[test]
fn a_plan_has_the_drives_that_it_is_about() {
    for change in all() {
        let state = match change {
            Change::Assemble { .. } => ArrayState::Stopped,
            _ => ArrayState::Optimal,
        };
        let planned = made(&view(state), &change, looked(Some("swap space"), true));
        let drives = &planned.plan.drives;
        let is_of_none = matches!(
            change,
            Change::Job { .. }
                | Change::FindDrives { .. }
                | Change::LocateDrive { .. }
                | Change::SetDrivePower { .. }
        );
        if is_of_none {
            assert!(drives.is_empty(), "{change:?}");
            continue;
        }
        let count = match change {
            Change::CreateArray(_) | Change::CreateVolumeOnDrives { .. } => 1,
            Change::ReplaceDrive { .. } | Change::Wipe(_) | Change::FailDrive { .. } => 1,
            // The array has three; the look found another one.
            Change::DeleteArray { .. } => 4,
            _ => 3,
        };
        assert_eq!(drives.len(), count, "{change:?}: {drives:?}");
        for drive in drives {
            assert!(drive.path.starts_with("/dev/") && drive.serial.starts_with('S'), "{drive:?}");
            assert!(drive.bytes > 0 && drive.content.is_some(), "{change:?}: {drive:?}");
        }
    }
}

/// Whether a look can find what this looks at: a drive that is refused is named by nobody.
fn overwrites(change: &Change) -> bool {
    change.may_destroy(&running())
}

#[test]
fn nothing_is_lost_by_a_change_that_is_not_asked_about() {
    for change in all() {
        for state in [ArrayState::Optimal, ArrayState::Degraded, ArrayState::Stopped] {
            for holds in [None, Some("ext4")] {
                let view = view(state);
                let looked = looked(holds, overwrites(&change));
                let Ok(planned) = plan(&view, &change, looked) else { continue };
                assert!(!planned.destroys() || change.may_destroy(&view), "{change:?}");
            }
        }
    }
}

#[test]
fn what_is_lost_is_named() {
    let lost = |change: &Change, state, holds| {
        made(&view(state), change, looked(holds, true)).plan.lost.join("\n")
    };
    let (optimal, stopped) = (ArrayState::Optimal, ArrayState::Stopped);
    let swap = Some("swap space");
    for state in [optimal, stopped] {
        let deleted = lost(&Change::DeleteArray { array: own() }, state, None);
        for named in [ARRAY, "tank/db", "v-1", "tank/web", "v-2"] {
            assert!(deleted.contains(named), "{deleted}");
        }
    }
    assert!(lost(&delete_volume("v-1"), optimal, None).contains("v-1"));
    let shrunk = lost(&resize(6 * MIB), optimal, None);
    assert_eq!(shrunk, "the last 2 MiB (2097152 bytes) of volume tank/db");
    assert!(lost(&assemble(true), stopped, None).contains(ARRAY));
    let array = Change::CreateArray(new_array(true));
    for change in [array, on_drives(true, None), replace(1, true), wipe()] {
        let text = lost(&change, optimal, swap);
        assert_eq!(text, "what /dev/3 (serial S3) holds: swap space", "{change:?}");
    }
    // Nobody knows what a drive without a signature holds; an array may take it all the same.
    assert!(lost(&wipe(), optimal, None).contains("nothing known"));
    for change in
        [Change::CreateArray(new_array(true)), replace(1, true), assemble(false), resize(8 * MIB)]
    {
        let state = if change == assemble(false) { stopped } else { optimal };
        assert_eq!(lost(&change, state, None), "", "{change:?}");
    }
}

#[test]
fn another_state_is_told_apart_and_progress_is_none() {
    let whole = |view: &View, change: &Change| made(view, change, Looked::default()).state;
    let delete = Change::DeleteArray { array: own() };
    let before = whole(&running(), &delete);
    assert_eq!(whole(&running(), &delete), before);
    let with = |change: fn(&mut Array)| {
        let mut view = running();
        change(&mut view.status.arrays[0]);
        whole(&view, &delete)
    };
    assert_eq!(with(|array| array.tasks.push(task(TaskKind::Scrub))), before);
    assert_eq!(with(|array| array.unclean = true), before);
    assert_ne!(with(|array| array.epoch = 4), before);
    assert_ne!(with(|array| array.volumes[0].uuid = "v-3".to_owned()), before);
    assert_ne!(with(|array| array.volumes[0].name = "other".to_owned()), before);
    assert_ne!(with(|array| array.volumes[0].size_bytes += 512), before);
    assert_ne!(with(|array| drop(array.volumes.pop())), before);
    assert_ne!(with(|array| array.slots[0].serial = "S9".to_owned()), before);
    assert_ne!(with(|array| array.slots[0].drive = Some("/dev/3".to_owned())), before);
    assert_ne!(with(|array| array.state = ArrayState::Stopped), before);
    let mut view = running();
    view.drives[0].id = "wwid-9".to_owned();
    assert_ne!(whole(&view, &delete), before, "another drive is at the path");

    let shrink = resize(MIB);
    let before = whole(&running(), &shrink);
    let mut view = running();
    view.status.arrays[0].volumes[0].size_bytes += 512;
    assert_ne!(whole(&view, &shrink), before, "more would be lost");
    // Drives as they were seen.
    let create = Change::CreateArray(new_array(true));
    let seen = |looked: Looked| made(&running(), &create, looked).state;
    let before = seen(looked(Some("ext4"), true));
    assert_ne!(seen(looked(Some("xfs"), true)), before);
    assert_ne!(seen(looked(None, true)), before);
    let mut other = looked(Some("ext4"), true);
    other.drives[0].identity.push('x');
    assert_ne!(seen(other), before, "what is seen is the same, the drive is another");
}

#[test]
fn what_would_be_refused_is_refused_at_once() {
    let refused = |view: &View, change: &Change| {
        let error = plan(view, change, looked(None, true)).expect_err("it can't be done");
        assert!(!error.hint.contains("NAME"), "{change:?}: {error:?}");
        error.error
    };
    let stopped = view(ArrayState::Stopped);
    let none = || "22222222-0000-4000-8000-000000000000".to_owned();
    for (view, change, what) in [
        (&stopped, Change::Stop { array: own() }, "not running"),
        (&stopped, create_volume("new", MIB), "not running"),
        (&running(), assemble(false), "already running"),
        (&running(), Change::DeleteArray { array: none() }, "no array"),
        (&running(), create_volume("db", MIB), "already in use"),
        (&running(), create_volume("a b", MIB), "not a valid name"),
        (&running(), create_volume("new", 1000), "multiple of the block size"),
        (&running(), create_volume("new", 33 * MIB), "bytes free"),
        (&running(), on_drives(true, Some(17 * MIB)), "bytes free"),
        (&running(), resize(1000), "multiple of the block size"),
        (&running(), delete_volume("none"), "no volume"),
        (&running(), delete_volume("v-2"), "has exports"),
        (&running(), fail("slot:3"), "no drive"),
        (&running(), replace(3, true), "no slot"),
        (&running(), replace(0, true), "in service"),
        (&running(), job("resync", JobAction::Cancel), "can't be cancelled"),
        (&running(), job("none", JobAction::Cancel), "no task"),
    ] {
        let said = refused(view, &change);
        assert!(said.contains(what), "{change:?}: {said}");
    }
    let foreign =
        plan(&running(), &Change::CreateArray(new_array(false)), looked(Some("x"), false));
    let error = foreign.expect("it is planned").refusal().expect("it would be refused");
    assert!(error.error.contains("/dev/3 (serial S3) holds x"), "{error:?}");
}

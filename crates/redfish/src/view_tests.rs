//! Golden tests: the keys of the interface are a promise.

use super::*;
use serde_json::{json, to_value};

fn owner() -> Owner {
    let (host_id, boot_id, name) = ("7".into(), "8".into(), "srv2".into());
    Owner { host_id, boot_id, name, own: true, heartbeat_age_ms: Some(9) }
}

fn array() -> Array {
    Array {
        name: "data".into(),
        uuid: "0".into(),
        level: "5".into(),
        state: ArrayState::Degraded,
        strip_bytes: 65536,
        block_bytes: 512,
        size_bytes: 10,
        free_bytes: 4,
        epoch: 3,
        unclean: true,
        crash_safe: Some(true),
        problem: None,
        shared: true,
        owner: Some(owner()),
        warnings: Vec::new(),
        slots: vec![SlotInfo {
            slot: 0,
            drive: None,
            serial: "s".into(),
            state: SlotState::InSync,
            read_errors: 7,
            rewritten: 6,
            wrong_strips: 5,
            failures: 5,
            timeouts: 4,
            reason: Some("r".into()),
            quarantined: true,
        }],
        tasks: vec![Task {
            id: "data:rebuild".into(),
            kind: TaskKind::Rebuild,
            done_bytes: 1,
            total_bytes: 2,
            progress: 0.5,
            seconds_left: None,
            state: TaskState::Running,
            problem: None,
            hindrance: None,
        }],
        last_scrub: Some(LastScrub {
            checked_bytes: 1,
            uncompared_bytes: Some(6),
            mismatches: 2,
            repaired: 3,
            unlocated: 1,
            unreadable: 4,
            ended: 5,
        }),
        unreadable: vec![Unreadable {
            volume: "v".into(),
            offset: 512,
            length: 1024,
            reason: UnreadableReason::Media,
        }],
        region_map: Some(RegionMap {
            written_bytes: 5,
            dirty_regions: 2,
            lost_pages: 0,
            parts: Default::default(),
        }),
        drive_io: vec![DriveIo { slot: 0, ..DriveIo::default() }],
        volumes: vec![],
        exports: vec![],
        filesystems: vec![],
    }
}

#[test]
fn an_array_has_the_promised_keys() {
    let expected = json!({
        "schema": 1, "name": "data", "uuid": "0", "level": "5", "state": "degraded",
        "strip_bytes": 65536, "block_bytes": 512, "size_bytes": 10, "free_bytes": 4,
        "epoch": 3, "unclean": true, "crash_safe": true, "shared": true,
        "owner": {"host_id": "7", "boot_id": "8", "name": "srv2", "own": true,
                  "heartbeat_age_ms": 9},
        "slots": [{"slot": 0, "drive": null, "serial": "s", "state": "in-sync",
                   "read_errors": 7, "rewritten": 6, "wrong_strips": 5, "failures": 5,
                   "timeouts": 4, "reason": "r", "quarantined": true}],
        "tasks": [{"id": "data:rebuild", "kind": "rebuild", "done_bytes": 1, "total_bytes": 2,
                   "progress": 0.5, "seconds_left": null,
                   "state": "running"}],
        "last_scrub": {"checked_bytes": 1, "uncompared_bytes": 6, "mismatches": 2, "repaired": 3,
                       "unlocated": 1, "unreadable": 4, "ended": 5},
        "unreadable": [{"volume": "v", "offset": 512, "length": 1024, "reason": "media"}],
        "region_map": {"written_bytes": 5, "dirty_regions": 2, "lost_pages": 0,
                       "parts": {"regions": 0, "written_percents": [], "dirty_regions": []}},
        "drive_io": [{"slot": 0, "reads": 0, "writes": 0, "flushes": 0, "read_bytes": 0,
                      "write_bytes": 0, "retries": 0}],
        "volumes": [], "exports": [], "filesystems": [],
    });
    assert_eq!(to_value(Answer::new(array())).expect("encodes"), expected);
}

#[test]
fn answers_round_trip() {
    let text = serde_json::to_string(&Answer::new(array())).expect("encodes");
    let back: Answer<Array> = serde_json::from_str(&text).expect("decodes");
    assert_eq!(back, Answer::new(array()));
}

#[test]
fn a_scrub_that_never_ran_is_null() {
    let value = to_value(Array { last_scrub: None, ..array() }).expect("encodes");
    assert_eq!(value["last_scrub"], json!(null));
}

#[test]
fn an_array_without_an_owner_has_null() {
    let value = to_value(Array { shared: false, owner: None, ..array() }).expect("encodes");
    assert_eq!((&value["shared"], value.get("owner")), (&json!(false), Some(&json!(null))));
}

#[test]
fn words_are_kebab_case() {
    for (value, word) in [
        (to_value(SlotState::Missing), "missing"),
        (to_value(SlotState::Failed), "failed"),
        (to_value(SlotState::Rebuilding), "rebuilding"),
        (to_value(ArrayState::Optimal), "optimal"),
        (to_value(ArrayState::Failed), "failed"),
        (to_value(TaskKind::Resync), "resync"),
        (to_value(TaskKind::Scrub), "scrub"),
        (to_value(DriveState::InUse), "in-use"),
    ] {
        assert_eq!(value.expect("encodes"), json!(word));
    }
}

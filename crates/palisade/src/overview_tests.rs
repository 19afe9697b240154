//! `palisade status` as people see it.

use super::*;
use crate::event::{Event, Severity};
use crate::status::Named;
use redfish::view::{Array, Drive, DriveState, Parity, Status};
use serde_json::json;

fn array(value: serde_json::Value) -> Array {
    let mut whole = json!({
        "name": "tank", "uuid": "3d798df4-fc4b-45ec-a8d8-2acb7f019d48", "level": "5",
        "state": "optimal", "strip_bytes": 65536, "block_bytes": 512, "size_bytes": 34359738368u64,
        "free_bytes": 12884901888u64, "epoch": 1, "unclean": false, "slots": [], "tasks": [],
        "last_scrub": null, "drive_io": [], "volumes": [], "exports": [],
    });
    let own = whole.as_object_mut().expect("an object");
    own.extend(value.as_object().expect("an object").clone());
    serde_json::from_value(whole).expect("an array")
}

fn slot(slot: u16, path: Option<&str>, state: &str) -> serde_json::Value {
    json!({ "slot": slot, "drive": path, "serial": format!("S{slot}"), "state": state })
}

fn named(path: &str, serial: &str, state: DriveState) -> Named {
    let drive = Drive {
        path: path.to_owned(),
        serial: serial.to_owned(),
        bytes: 8 << 30,
        block_bytes: 512,
        state,
        array: None,
        slot: None,
        signature: (state == DriveState::Foreign).then(|| "swap".to_owned()),
        problem: None,
    };
    Named { id: format!("id-{serial}"), health: view::Health::Ok, drive }
}

fn alert(id: &str, acknowledged: Option<(u64, String)>) -> view::Alert {
    view::Alert {
        id: id.to_owned(),
        message: "ArrayDegraded".to_owned(),
        args: vec!["tank".to_owned()],
        severity: view::Health::Warning,
        what: "array tank is degraded".to_owned(),
        action: "replace what failed".to_owned(),
        of: "/redfish/v1/x".to_owned(),
        name: "tank".to_owned(),
        raised: 60,
        acknowledged,
    }
}

fn housing(name: &str, silence: Option<view::Silence>) -> Housing {
    let shelf = view::Shelf { silence, read: Some(60), ..view::Shelf::default() };
    let enclosure = view::Enclosure {
        name: name.to_owned(),
        model: Some("Data24".to_owned()),
        shelf: Some(shelf),
        ..view::Enclosure::default()
    };
    Housing { drives: 24, own: 3, health: view::Health::Warning, enclosure }
}

fn degraded() -> Overview {
    let tank = array(json!({
        "state": "degraded",
        "slots": [
            slot(0, Some("/dev/nvme0n1"), "in-sync"),
            slot(1, Some("/dev/nvme1n1"), "rebuilding"),
            slot(2, None, "missing"),
        ],
        "tasks": [{
            "id": "tank:rebuild", "kind": "rebuild", "done_bytes": 3u64 << 30,
            "total_bytes": 8u64 << 30, "progress": 0.375, "seconds_left": 185, "state": "running",
        }],
        "exports": [{
            "id": "tank:1", "array": "tank", "volume": "images",
            "subsystem": "nqn.2026-01.org.palisade:tank", "nsid": 1, "nguid": "", "uuid": "",
            "listeners": ["192.0.2.1:4420"], "hosts": [], "any_host": true,
            "connections": [
                { "host": "nqn.2014-08.org.nvmexpress:uuid:1", "controller": 1, "queues": 5 },
            ],
            "uri": "nvme+tcp://192.0.2.1:4420/nqn.2026-01.org.palisade:tank/1", "serving": true,
        }],
    }));
    let next = view::Next {
        what: "the drive with serial S2 is missing".to_owned(),
        action: "bring it back, or rebuild onto another drive with: palisade array replace tank \
                 --slot 2 --with PATH"
            .to_owned(),
    };
    let status = Status {
        arrays: vec![tank],
        next: vec![next],
        state: view::Kept { directory: Some("/var/lib/palisade".to_owned()), problem: None },
        ..Status::default()
    };
    let warning = Event {
        id: "7".to_owned(),
        time: "2026-11-24T09:30:00Z".to_owned(),
        severity: Severity::Warning,
        message_id: String::new(),
        message: "array tank is degraded".to_owned(),
        origin: None,
        resolution: None,
    };
    let host = Host {
        host: "nqn.2014-08.org.nvmexpress:uuid:1".to_owned(),
        exports: vec!["tank:1".to_owned()],
        controllers: 1,
        queues: 5,
    };
    Overview {
        status,
        drives: vec![
            named("/dev/nvme0n1", "S0", DriveState::InUse),
            named("/dev/nvme1n1", "S1", DriveState::InUse),
            named("/dev/sda", "X", DriveState::Foreign),
        ],
        enclosures: vec![
            housing("left", None),
            housing("right", Some(view::Silence { since: 120, why: "no".to_owned() })),
        ],
        hosts: vec![host],
        alerts: InShort::of(vec![alert("8", None), alert("7", Some((120, "ana".to_owned())))]),
        warnings: vec![warning],
    }
}

#[test]
fn a_degraded_array_is_shown_with_what_to_do() {
    let whole = "\
ARRAY  LEVEL  STATE     SIZE    FREE    DRIVES                      DOING
tank   5      degraded  32 GiB  12 GiB  1/3 1:rebuilding 2:missing  rebuild 37.5%

JOB           DONE                           LEFT    PER DRIVE
tank:rebuild  [#######.............]  37.5%  3m 05s  3 GiB of 8 GiB

SLOT    DRIVE         SERIAL  SIZE   STATE
tank:0  /dev/nvme0n1  S0      8 GiB  in-sync
tank:1  /dev/nvme1n1  S1      8 GiB  rebuilding
tank:2  -             S2             missing
-       /dev/sda      X       8 GiB  foreign     swap

ENCLOSURE  MODEL   DRIVES  OWN  STATE
left       Data24  24      3    warning
right      Data24  24      3    silent since 1970-01-01T00:02:00Z

EXPORT  VOLUME       SERVED  HOSTS  URI
tank:1  tank/images  yes     1      nvme+tcp://192.0.2.1:4420/nqn.2026-01.org.palisade:tank/1

HOST                               CONTROLLERS  QUEUES  EXPORTS
nqn.2014-08.org.nvmexpress:uuid:1  1            5       tank:1

ALERT  SINCE                 SEVERITY  SEEN BY  WHAT
8      1970-01-01T00:01:00Z  warning            array tank is degraded
7      1970-01-01T00:01:00Z  warning   ana      array tank is degraded
2 alerts, 1 not seen; all, and what to do: palisade alert list

LAST WARNINGS
2026-11-24T09:30:00Z  warning   array tank is degraded

WHAT TO DO NEXT
the drive with serial S2 is missing; bring it back, or rebuild onto another drive with: palisade \
array replace tank --slot 2 --with PATH";
    assert_eq!(text(&degraded(), None), whole);
}

#[test]
fn on_a_terminal_what_to_do_is_wrapped_and_no_line_is_too_wide() {
    let mut overview = degraded();
    let all = text(&overview, Some(200));
    let next = "\
WHAT TO DO NEXT
  the drive with serial S2 is missing
    bring it back, or rebuild onto another drive with: palisade array replace tank --slot 2 --with
    PATH";
    assert!(all.ends_with(next), "{all}");
    let long = "x".repeat(150);
    overview.status.arrays[0].name.clone_from(&long);
    overview.status.arrays[0].problem = Some("word ".repeat(40));
    overview.status.arrays[0].exports[0].uri.clone_from(&long);
    overview.hosts[0].host.clone_from(&long);
    overview.drives[2].drive.path = format!("/dev/disk/by-id/{long}");
    overview.warnings[0].message = "word ".repeat(40);
    for columns in [80, 100, 300] {
        let all = text(&overview, Some(columns));
        for line in all.lines() {
            assert!(line.chars().count() <= columns.min(COLUMNS), "{columns}: {line}");
        }
    }
    let all = text(&overview, None);
    let (before, _) = all.split_once("WHAT TO DO NEXT").expect("is there");
    assert!(before.lines().all(|line| line.chars().count() <= COLUMNS), "{before}");
}

#[test]
fn a_critical_alert_that_was_seen_is_before_warnings_that_were_not() {
    let mut critical = alert("1", Some((70, "ana".to_owned())));
    critical.severity = view::Health::Critical;
    let warnings = (2..9).map(|id| alert(&id.to_string(), None));
    let all: Vec<_> = std::iter::once(critical).chain(warnings).collect();
    let worst = view::Health::Critical;
    let text = alerts(100, &InShort { count: all.len(), unseen: 7, worst, all });
    let first = text.lines().nth(1).expect("a row");
    assert!(first.starts_with("1 ") && first.contains("critical"), "{text}");
    let rest = "8 alerts, 7 not seen; all, and what to do: palisade alert list";
    assert!(text.ends_with(rest), "{text}");
}

#[test]
fn where_all_is_well_nothing_is_to_be_done() {
    let overview = Overview {
        status: Status {
            state: view::Kept { directory: Some("/s".to_owned()), problem: None },
            ..Status::default()
        },
        drives: Vec::new(),
        enclosures: Vec::new(),
        hosts: Vec::new(),
        alerts: InShort::default(),
        warnings: Vec::new(),
    };
    let whole = "no arrays; create one with: palisade array create\n\nnothing to do next";
    assert_eq!(text(&overview, None), whole);
}

#[test]
fn names_do_nothing_to_a_terminal() {
    let mut overview = degraded();
    let clears = "a\u{1b}[2J".to_owned();
    overview.drives[2].drive.path.clone_from(&clears);
    overview.hosts[0].host.clone_from(&clears);
    overview.warnings[0].message.clone_from(&clears);
    overview.status.next[0].what = clears;
    assert!(!text(&overview, Some(100)).contains('\u{1b}'));
}

#[test]
fn a_gpu_is_shown_where_one_is_used() {
    let none = Parity {
        placement: "auto".to_owned(),
        gpu_jobs: 3,
        gpu_bytes: 3 << 20,
        ..Parity::default()
    };
    assert_eq!(gpu(&none), None);
    let some = Parity { gpu: Some("H200".to_owned()), ..none };
    assert_eq!(gpu(&some).as_deref(), Some("parity also on H200 (auto): 3 jobs, 3 MiB"));
    let fenced = Parity { problem: Some("it hung".to_owned()), ..some };
    assert_eq!(gpu(&fenced), None, "it is told below");
}

#[test]
fn the_state_of_a_shelf_is_what_is_worst_and_whether_it_tells() {
    let silence = || view::Silence { since: 120, why: "no".to_owned() };
    let shown = |silence, health, is_read: bool| {
        let mut own = Housing { health, ..housing("left", silence) };
        own.enclosure.shelf.as_mut().expect("one").read = is_read.then_some(60);
        enclosures(120, &[own])
    };
    let (critical, ok) = (view::Health::Critical, view::Health::Ok);
    let told = shown(Some(silence()), critical, true);
    assert!(told.contains("critical, silent since 1970-01-01T00:02:00Z"), "{told}");
    assert!(shown(None, ok, false).contains("not read yet"));
    assert!(shown(None, critical, true).contains("critical"));
}

#[test]
fn a_share_that_has_failed_is_shown_with_why() {
    let mut overview = degraded();
    let mut docs = crate::share::tests::system("docs", "docs", &[]);
    let problem = Some("no answer\u{1b}[2J".to_owned());
    let failed = view::ExportHealth { state: view::ServiceState::Failed, checked: None, problem };
    docs.shares[0].protocols[1].health = failed;
    overview.status.arrays[0].filesystems = vec![docs];
    let all = text(&overview, None);
    let shares = "

SHARE  VOLUME     BY   STATE   CLIENTS  URL
docs   tank/docs  smb  ok      1        smb://192.0.2.1/docs
docs   tank/docs  nfs  failed  0        no answer\\u{1b}[2J

HOST";
    assert!(all.contains(shares), "{all}");
}

//! The rules, row by row.

use super::*;
use crate::change::tests::view;
use crate::events::smtp::Mail;
use crate::events::{Shown, Standing, Subscription};
use crate::messages::{self, ErrorCode};
use crate::view::{Enclosure, ShelfBay, ShelfKind, ShelfPart, ShelfPort, ShelfUnit};
use crate::view::{Error, Hardware, Hindrance, Https, LastScrub, Next, Reason, Task, TaskKind};
use crate::view::{Surroundings, Unreadable, UnreadableReason};
use std::sync::Arc;

/// The only condition that a change of a view in which all is well makes.
fn only(change: impl FnOnce(&mut View)) -> Condition {
    let mut view = well();
    change(&mut view);
    let all = conditions(&view);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

fn well() -> View {
    let mut view = view();
    view.status.ready = true;
    for array in &mut view.status.arrays {
        array.state = ArrayState::Optimal;
        (array.problem, array.unreadable, array.last_scrub) = (None, Vec::new(), None);
        let slot = r#"{"slot": 0, "drive": "/dev/a", "serial": "A", "state": "in-sync"}"#;
        array.slots = vec![serde_json::from_str(slot).expect("a slot")];
        array.tasks.clear();
        array.exports.iter_mut().for_each(|own| (own.serving, own.problem) = (true, None));
    }
    for known in &mut view.drives {
        known.drive.state = DriveState::InUse;
    }
    view.status.next.clear();
    view.status.memory.problem = None;
    (view.https, view.events) = Default::default();
    view
}

/// What was found: message, gravity, text and advice.
fn told(of: &Condition) -> (&str, Health, &str, &str) {
    (&of.message, of.severity, &of.what, &of.action)
}

fn next(view: &mut View, what: &str, action: &str) {
    view.status.next.push(Next { what: what.to_owned(), action: action.to_owned() });
}

#[test]
fn where_all_is_well_there_is_none() {
    assert_eq!(conditions(&well()), []);
    let mut stopped = well();
    stopped.status.arrays[0].state = ArrayState::Stopped;
    stopped.status.arrays[0].slots.iter_mut().for_each(|own| own.state = SlotState::Missing);
    assert_eq!(conditions(&stopped), [], "a person stopped it");
}

#[test]
fn arrays_say_what_to_do_as_the_status_does() {
    let first = |view: &mut View, state| view.status.arrays[0].state = state;
    let name = well().status.arrays[0].name.clone();
    let found = only(|view| {
        first(view, ArrayState::Degraded);
        next(view, &format!("array {name} is degraded in slot 1: x"), "replace it");
    });
    let what = format!("array {name} is degraded");
    assert_eq!(told(&found), ("ArrayDegraded", Health::Warning, what.as_str(), "replace it"));
    let plain = only(|view| first(view, ArrayState::Degraded));
    assert!(plain.action.contains("palisade array replace"), "{plain:?}");
    assert_eq!(plain.key, found.key);
    let found = only(|view| first(view, ArrayState::Failed));
    assert_eq!((found.message.as_str(), found.severity), ("ArrayFailed", Health::Critical));
    let found = only(|view| {
        first(view, ArrayState::Stopped);
        view.status.arrays[0].problem = Some("no quorum".to_owned());
        next(view, &format!("array {name} is not started: no quorum"), "force it");
    });
    let what = format!("array {name} does not start: no quorum");
    assert_eq!(told(&found), ("ArrayDoesNotStart", Health::Warning, what.as_str(), "force it"));
}

#[test]
fn advice_names_no_array_that_another_may_be() {
    let mut view = well();
    let mut twin = view.status.arrays[0].clone();
    twin.uuid = "other".to_owned();
    view.status.arrays[0].state = ArrayState::Degraded;
    let what = format!("array {} is degraded in slot 1: x", twin.name);
    view.status.arrays.push(twin);
    next(&mut view, &what, "replace a drive of the other");
    assert!(!conditions(&view)[0].action.contains("of the other"));
}

#[test]
fn slots_are_told_by_slot_whatever_is_known_of_the_drive() {
    let of = |state, drive: Option<&str>| {
        only(|view| {
            let slot = &mut view.status.arrays[0].slots[0];
            (slot.state, slot.drive) = (state, drive.map(str::to_owned));
            slot.reason = Some("it timed out".to_owned());
        })
    };
    let out = of(SlotState::Failed, Some("/dev/none"));
    assert_eq!((out.message.as_str(), out.severity), ("DriveOut", Health::Critical));
    assert!(out.what.ends_with("has failed: it timed out"), "{out:?}");
    assert_eq!(out.key, of(SlotState::Failed, None).key);
    let missing = of(SlotState::Missing, None);
    assert_eq!(missing.message, "DriveMissing");
    assert_ne!(missing.key, out.key);
    let path = well().drives[0].drive.path.clone();
    assert_eq!(of(SlotState::Failed, Some(&path)).of, uri::drive(&well().drives[0].id));
}

#[test]
fn what_can_not_be_read_is_told_by_volume() {
    let found = only(|view| {
        let volume = view.status.arrays[0].volumes[0].name.clone();
        let range = |offset| Unreadable {
            volume: volume.clone(),
            offset,
            length: 4096,
            reason: UnreadableReason::Media,
        };
        view.status.arrays[0].unreadable = vec![range(0), range(8192)];
    });
    assert_eq!((found.message.as_str(), found.severity), ("BlocksLost", Health::Critical));
    assert!(found.what.starts_with("8192 bytes"), "{found:?}");
    assert_eq!(found.of, uri::volume(&well().status.arrays[0].volumes[0].uuid));
}

#[test]
fn jobs_that_are_stuck_and_scrubs_that_left_something_are_told() {
    let found = only(|view| {
        view.status.arrays[0].tasks.push(Task {
            id: "a:rebuild".to_owned(),
            kind: TaskKind::Rebuild,
            done_bytes: 0,
            total_bytes: 1,
            progress: 0.0,
            seconds_left: None,
            state: TaskState::Stuck,
            problem: Some("no drive".to_owned()),
            hindrance: Some(Hindrance::Unavailable),
        });
        next(view, "task a:rebuild is stuck: no drive", "bring it back");
    });
    let what = "task a:rebuild can't go on: no drive";
    assert_eq!(told(&found), ("JobStuck", Health::Warning, what, "bring it back"));
    let scrub = |mismatches, repaired| LastScrub {
        checked_bytes: 1,
        uncompared_bytes: None,
        mismatches,
        repaired,
        unlocated: 0,
        unreadable: 0,
        ended: 1,
    };
    let found = only(|view| view.status.arrays[0].last_scrub = Some(scrub(5, 3)));
    assert!(found.message == "ScrubFound" && found.what.contains("found 2 stripes"), "{found:?}");
    let mut view = well();
    view.status.arrays[0].last_scrub = Some(scrub(5, 5));
    assert_eq!(conditions(&view), []);
}

#[test]
fn exports_drives_and_the_daemon_are_told() {
    let found = only(|view| {
        let array = view.status.arrays.iter_mut().find(|own| !own.exports.is_empty());
        let export = &mut array.expect("has exports").exports[0];
        (export.serving, export.problem) = (false, Some("the address is taken".to_owned()));
    });
    assert!(found.message == "ExportFailed" && found.of.contains("/Connections/"), "{found:?}");
    let found = only(|view| {
        let drive = &mut view.drives[0].drive;
        (drive.state, drive.problem) = (DriveState::Unusable, Some("no medium".to_owned()));
    });
    assert!(found.message == "DriveUnusable" && found.what.ends_with("no medium"), "{found:?}");
    let found = only(|view| {
        view.status.state.problem = Some("no space".to_owned());
        next(view, "the audit log can't be written: no space", "make room");
    });
    let what = "the state directory: no space";
    assert_eq!(told(&found), ("StateProblem", Health::Warning, what, "make room"));
    let found = only(|view| {
        view.status.parity.gpu_suspect = true;
        next(view, "parity is computed on the CPU: it lies", "scrub all");
    });
    assert_eq!((found.severity, found.action.as_str()), (Health::Critical, "scrub all"));
    let found = only(|view| view.status.memory.problem = Some("not allowed".to_owned()));
    assert!(found.message == "MemoryNotLocked" && found.action.contains("LimitMEMLOCK"));
}

#[test]
fn each_reason_of_a_drive_is_one() {
    let reason = |rule: &str, health| Reason {
        rule: rule.to_owned(),
        health,
        what: format!("{rule} is bad"),
        action: format!("see to {rule}"),
        since: 1,
    };
    let mut view = well();
    let reasons = vec![
        reason("wear", Health::Warning),
        reason("media", Health::Critical),
        reason("link", Health::Ok),
    ];
    view.drives[0].hardware = Arc::new(Hardware { reasons, ..Hardware::default() });
    let path = &view.drives[0].drive.path;
    let all = conditions(&view);
    let of = |at: usize| (all[at].severity, all[at].what.clone(), all[at].action.clone());
    let said = |rule| format!("drive {path} is not well: {rule} is bad");
    assert_eq!(of(0), (Health::Critical, said("media"), "see to media".to_owned()));
    assert_eq!(of(1), (Health::Warning, said("wear"), "see to wear".to_owned()));
    assert_eq!(all.len(), 2);
}

#[test]
fn https_is_told_where_somebody_could_use_it() {
    let ends = Error {
        error: "the certificate ends".to_owned(),
        hint: "replace it".to_owned(),
        code: ErrorCode::Failed,
        name: "CertificateEnds".into(),
        args: vec!["2026-01-01".to_owned()],
    };
    let https = |not_after| {
        let problems = vec![Problem { since: 1, what: ends.clone() }];
        let certificate = crate::view::Certificate { not_after, ..Default::default() };
        Arc::new(Https { problems, certificate: Some(certificate), ..Https::default() })
    };
    let mut view = well();
    view.server.now = 100;
    view.https = https(1000);
    assert!(!view.access.accounts.is_empty(), "the view has accounts");
    let all = conditions(&view);
    let expected = ("CertificateEnds", Health::Warning, "the certificate ends", "replace it");
    assert_eq!(told(&all[0]), expected);
    view.https = https(100);
    assert_eq!(conditions(&view)[0].severity, Health::Critical, "its end has come");
    view.access = Arc::default();
    assert_eq!(conditions(&view), [], "nobody could log in");
}

#[test]
fn what_is_around_the_drives_is_told() {
    let around = |change: &dyn Fn(&mut Surroundings)| {
        only(|view| {
            let mut own = Surroundings::default();
            change(&mut own);
            view.surroundings = Arc::new(own);
        })
    };
    let found = around(&|own| {
        own.sensors = vec![Sensor {
            id: "s".to_owned(),
            name: "CPU".to_owned(),
            measures: Measures::Temperature,
            reading: Some(91_500),
            high: None,
            critical: None,
            health: Health::Critical,
        }];
    });
    assert_eq!(told(&found).1, Health::Critical);
    assert_eq!((&found.what[..], found.of), ("sensor CPU reads 91.5 °C", uri::sensor("s")));
    let found = around(&|own| {
        own.fans = vec![Fan {
            id: "f".to_owned(),
            name: "fan 1".to_owned(),
            rpm: Some(0),
            least_rpm: Some(500),
            health: Health::Warning,
        }];
    });
    let what = "fan fan 1 turns at 0 turns a minute";
    assert_eq!((&found.what[..], found.of), (what, uri::fan("f")));
    let found = around(&|own| {
        own.supplies = vec![Supply {
            id: "p".to_owned(),
            name: "PSU 2".to_owned(),
            is_on: Some(false),
            input_microwatts: None,
            health: Health::Ok,
        }];
    });
    assert_eq!(told(&found).1, Health::Warning);
    let what = "power supply PSU 2 gives no power";
    assert_eq!((&found.what[..], found.of), (what, uri::supply("p")));
}

/// What is wrong with a shelf that says this.
fn on(shelf: Shelf) -> Condition {
    only(|view| {
        let (id, name) = ("left".to_owned(), "Left".to_owned());
        let own = Enclosure { id, name, shelf: Some(shelf), ..Enclosure::default() };
        let enclosures = vec![Enclosure::default(), own];
        view.surroundings = Surroundings { enclosures, ..Surroundings::default() }.into();
    })
}

#[test]
fn shelves_that_tell_of_themselves_are_told() {
    let url = "https://192.0.2.7:443".to_owned();
    let silence = Some(Silence { since: 0, why: "refused".to_owned() });
    let found = on(Shelf { url, silence, ..Shelf::default() });
    assert_eq!((&found.message[..], &found.of), ("ShelfSilent", &uri::chassis("left")));
    let what = "shelf Left has told nothing of itself since 1970-01-01T00:00:00Z: \
                https://192.0.2.7:443: refused";
    assert_eq!(found.what, what);
    let fan = ShelfPart {
        kind: ShelfKind::Fan,
        name: "Fan 1".to_owned(),
        state: ShelfState::Enabled,
        health: Health::Warning,
        reading: Some(3_000_000),
        unit: Some(ShelfUnit::Rpm),
        warning: None,
        critical: None,
    };
    let (state, health) = (ShelfState::Absent, Health::Critical);
    let gone = ShelfPart { state, health, reading: None, ..fan.clone() };
    let never = ShelfPart { health: Health::Ok, ..gone.clone() };
    assert_eq!(never.grade(), Health::Ok);
    for (part, health, text) in
        [(fan, Health::Warning, "warning, 3000 rpm"), (gone, Health::Critical, "absent")]
    {
        let found = on(Shelf { parts: vec![part], ..Shelf::default() });
        assert_eq!((&found.message[..], found.severity), ("ShelfPartNotWell", health));
        assert_eq!(found.what, format!("shelf Left: Fan 1: {text}"));
    }
    let port = ShelfPort {
        name: "A1".to_owned(),
        has_link: Some(false),
        health: Health::Warning,
        ..ShelfPort::default()
    };
    let found = on(Shelf { ports: vec![port], ..Shelf::default() });
    assert_eq!(found.what, "shelf Left: port A1: no link");
    // A slot in which nothing was told is empty.
    let bay = |serial: Option<&str>| ShelfBay {
        slot: "7".to_owned(),
        state: ShelfState::Absent,
        serial: serial.map(str::to_owned),
        ..ShelfBay::default()
    };
    let found = on(Shelf { bays: vec![bay(None), bay(Some("S7"))], ..Shelf::default() });
    assert_eq!(found.what, "shelf Left: drive in slot 7: absent, S7");
}

#[test]
fn a_shelf_itself_is_told_and_ports_of_one_name() {
    let health = Health::Critical;
    let (told, power) = (Some(false), Health::Warning);
    for (shelf, what, severity) in [
        (Shelf { is_on: told, ..Shelf::default() }, "power: switched off", power),
        (Shelf { health, ..Shelf::default() }, "chassis: critical", health),
    ] {
        assert_eq!(shelf.worst(), severity);
        let found = on(shelf);
        assert_eq!((found.what, found.severity), (format!("shelf Left: {what}"), severity));
    }
    let of = |module: &str| ShelfPort {
        module: module.to_owned(),
        name: "A1".to_owned(),
        health: Health::Warning,
        ..ShelfPort::default()
    };
    let ports = vec![of("IO module A"), of("IO module B"), of("IO module B")];
    let own = Shelf { ports, ..Shelf::default() };
    let all: Vec<_> = shelf_parts(&own).filter(|own| own.1 != Health::Ok).collect();
    assert_eq!(all[0].0, "port A1 of IO module A");
    assert_ne!(all[0].0, all[1].0);
    let view = View {
        surroundings: Surroundings {
            enclosures: vec![Enclosure { shelf: Some(own), ..Enclosure::default() }],
            ..Surroundings::default()
        }
        .into(),
        ..View::default()
    };
    assert_eq!(conditions(&view).len(), 2);
}

#[test]
fn a_port_without_link_is_told_if_something_listens_there() {
    let port = |id: &str, address: &str, has_link| NetworkPort {
        id: id.to_owned(),
        addresses: vec![format!("{address}/24")],
        has_link,
        ..NetworkPort::default()
    };
    let found = only(|view| {
        let listeners = ["192.0.2.1:443", "[2001:db8::1]:443", "0.0.0.0:8443"];
        let listeners = listeners.map(str::to_owned).into();
        view.https = Arc::new(Https { listeners, ..Https::default() });
        view.surroundings = Arc::new(Surroundings {
            ports: vec![
                port("eth0", "192.0.2.1", false),
                port("eth1", "2001:db8::1", true),
                port("eth2", "198.51.100.1", false),
            ],
            ..Surroundings::default()
        });
    });
    let what = "network port eth0, at which 192.0.2.1:443 is served, has no link";
    assert_eq!((&found.what[..], found.of), (what, uri::port("eth0")));
}

#[test]
fn mail_and_webhooks_that_fail_are_told() {
    let shown = |destination: &str, standing: Standing| {
        let own = Subscription {
            id: "s1".to_owned(),
            destination: destination.to_owned(),
            standing,
            ..Subscription::default()
        };
        Arc::new(Shown { subscriptions: Arc::new(vec![own]), ..Shown::default() })
    };
    let problem = || Standing { problem: Some("it is dead".to_owned()), ..Standing::default() };
    let found = only(|view| view.events = shown("mailto:a@b.example", problem()));
    assert_eq!(found.what, "mail to a@b.example is refused: it is dead");
    let found = only(|view| view.events = shown("https://hook.example/secret", problem()));
    assert_eq!(found.what, "events can't be delivered to https://hook.example: it is dead");
    let suspended = Standing { is_suspended: true, ..Standing::default() };
    let found = only(|view| view.events = shown("https://hook.example", suspended));
    assert!(found.action.contains("resume"), "{found:?}");
    let dropped = || Standing { dropped: 3, dropped_at: Some(100), ..Standing::default() };
    let at = |now| {
        let mut view = well();
        view.server.now = now;
        view.events = shown("https://hook.example", dropped());
        conditions(&view)
    };
    assert_eq!(at(100)[0].what, "3 events were never delivered to https://hook.example");
    assert_eq!(at(100 + DROPPED), []);
    let found = only(|view| {
        let mail = Mail {
            server: "mail.example:25".to_owned(),
            problem: Some("no answer".to_owned()),
            ..Mail::default()
        };
        view.events = Arc::new(Shown { mail: Arc::new(mail), ..Shown::default() });
    });
    assert_eq!(found.what, "mail can't be sent by mail.example:25: no answer");
}

#[test]
fn of_any_view_conditions_are_sorted_have_own_keys_and_known_messages() {
    for seed in 0..300 {
        let view = crate::sample::view(seed);
        let all = conditions(&view);
        let keys: BTreeSet<&String> = all.iter().map(|own| &own.key).collect();
        assert_eq!(keys.len(), all.len(), "{all:?}");
        assert!(all.windows(2).all(|two| two[0].severity >= two[1].severity));
        for own in &all {
            let (notice, entry) = (messages::notice(&own.message), messages::find(&own.message));
            assert!(notice.is_some() || entry.is_some(), "{own:?}");
            if let Some(notice) = notice {
                assert_eq!(notice.text(&own.args), own.what);
            }
        }
        for (messages, rule) in RULES {
            let mut found = Vec::new();
            rule(&view, &mut found);
            assert!(found.iter().all(|own| messages.contains(&own.message.as_str())), "{found:?}");
        }
    }
}

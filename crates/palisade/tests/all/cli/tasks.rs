//! `palisade task`, and what `palisade status` says is to be done, against the real daemon.

use super::place::Place;
use serde_json::Value;

/// Starts a scrub and pauses it; one that was over before is started again.
pub fn paused_scrub(place: &Place) -> Value {
    for _ in 0..50 {
        place.json(&["array", "scrub", "data", "--check"]);
        let output = place.run(&["task", "pause", "data:scrub", "--json"]);
        if output.status.code() == Some(0) {
            return serde_json::from_slice(&output.stdout).expect("prints JSON");
        }
        place.json(&["array", "wait", "data", "--timeout", "60"]);
    }
    panic!("a scrub is always over before it can be paused");
}

pub fn large(drives: usize) -> Place {
    let place = Place::new(drives);
    for number in 0..drives {
        let file = std::fs::File::create(place.drive(number)).expect("made");
        file.set_len(128 << 20).expect("made large");
    }
    place
}

#[test]
fn a_scrub_is_paused_over_a_restart_resumed_and_cancelled() {
    let mut place = large(3);
    place.start();
    place.create_written("data", "5", &[0, 1, 2]);
    let shown = paused_scrub(&place);
    let task = &shown["tasks"][0];
    assert_eq!((&task["id"], &task["state"]), (&"data:scrub".into(), &"paused".into()));
    let progress = task["progress"].as_f64().expect("a number");
    assert!((0.0..1.0).contains(&progress) && task["seconds_left"].is_null(), "{task}");
    assert_eq!(task["total_bytes"], 124 << 20);
    let listed = place.json(&["task", "list"]);
    assert_eq!(listed["tasks"], shown["tasks"]);
    assert!(next(&place).1.ends_with("palisade task resume data:scrub"));
    assert!(place.refuses(1, &["array", "wait", "data"]).contains("paused"));
    let text = String::from_utf8(place.run(&["array", "show", "data"]).stdout).expect("text");
    assert!(text.contains("paused; resume it with: palisade task resume data:scrub"), "{text}");
    let text = String::from_utf8(place.run(&["task", "list"]).stdout).expect("text");
    assert!(text.starts_with("ID") && text.contains("data:scrub  paused"), "{text}");

    assert_eq!(place.end(rustix::process::Signal::KILL), None);
    place.start();
    let listed = place.json(&["task", "list"]);
    assert_eq!(listed["tasks"][0]["state"], "paused");
    assert_eq!(listed["tasks"][0]["done_bytes"], task["done_bytes"]);
    place.json(&["task", "resume", "data:scrub"]);
    let over = place.json(&["array", "wait", "data", "--timeout", "60"]);
    assert_eq!(over["last_scrub"]["checked_bytes"], over["size_bytes"]);
    assert!(over["last_scrub"]["ended"].as_u64() > Some(1_600_000_000));

    paused_scrub(&place);
    let ended = place.json(&["task", "cancel", "data:scrub"]);
    assert_eq!(ended["tasks"], Value::Array(vec![]));
    assert_eq!(ended["last_scrub"], over["last_scrub"]);
    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
}

#[test]
fn a_rebuild_is_paused_and_cancelled() {
    let mut place = large(4);
    place.start();
    place.create_written("data", "5", &[0, 1, 2]);
    let spare = place.name(3);
    let replace = ["array", "replace", "data", "--slot", "1", "--with", &spare];
    for _ in 0..50 {
        place.json(&["array", "fail", "data", "--drive", "slot:1"]);
        place.json(&replace);
        let output = place.run(&["task", "pause", "data:rebuild", "--json"]);
        if output.status.code() == Some(0) {
            let shown: Value = serde_json::from_slice(&output.stdout).expect("prints JSON");
            assert_eq!(shown["slots"][1]["state"], "rebuilding");
            let ended = place.json(&["task", "cancel", "data:rebuild"]);
            assert_eq!(ended["slots"][1]["state"], "failed");
            assert_eq!(ended["tasks"], Value::Array(vec![]));
            place.json(&replace);
            let whole = place.json(&["array", "wait", "data", "--timeout", "60"]);
            assert_eq!(
                (&whole["state"], &whole["unreadable"]),
                (&"optimal".into(), &Value::Array(vec![]))
            );
            assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
            return;
        }
        place.json(&["array", "wait", "data", "--timeout", "60"]);
    }
    panic!("a rebuild is always over before it can be paused");
}

#[test]
fn tasks_that_are_not_there_are_refused() {
    let place = Place::running(2);
    place.create("data", "1", &[0, 1]);
    let text = String::from_utf8(place.run(&["task", "list"]).stdout).expect("text");
    assert_eq!(text, "no tasks\n");
    for id in ["data:scrub", "data:rebuild", "data:resync", "data:zero", "data", "none:scrub", ":"]
    {
        for word in ["pause", "resume", "cancel"] {
            place.refuses(1, &["task", word, id]);
        }
    }
    place.fails(2, &["task", "pause"]);
}

/// The one thing that is to be done: what happened, and what to do. People see the same.
fn next(place: &Place) -> (String, String) {
    let all = place.json(&["status"])["next"].clone();
    // Where this account may not lock memory, that is told, too.
    let all = all.as_array().expect("a list").iter();
    let all: Vec<_> = all.filter(|n| !n["what"].to_string().contains("memory")).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    let text = |key: &str| all[0][key].as_str().expect("text").to_owned();
    let (what, action) = (text("what"), text("do"));
    let shown = String::from_utf8(place.run(&["status"]).stdout).expect("text");
    assert!(shown.lines().any(|line| line == format!("{what}; {action}")), "{shown}");
    (what, action)
}

/// Types the last command of what is to be done.
fn type_in(place: &Place, action: &str, path: &str) {
    let (_, command) = action.rsplit_once("palisade ").expect("a command");
    let words = command.split(' ').map(|word| if word == "PATH" { path } else { word });
    place.json(&words.collect::<Vec<_>>());
}

#[test]
fn status_says_what_to_do_next_and_that_does_it() {
    let mut place = Place::running(4);
    place.create("data", "5", &[0, 1, 2]);
    let is_well = |place: &Place| {
        let all = place.json(&["status"])["next"].clone();
        let all = all.as_array().expect("a list");
        assert!(all.iter().all(|n| n["what"].to_string().contains("memory")), "{all:?}");
    };
    is_well(&place);
    place.json(&["array", "fail", "data", "--drive", "slot:1"]);
    let (what, action) = next(&place);
    assert!(what.contains("slot 1") && what.contains(&place.name(1)), "{what}");
    type_in(&place, &action, &place.name(3));
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    is_well(&place);

    place.json(&["array", "stop", "data"]);
    // A person wanted that.
    is_well(&place);
    place.json(&["array", "assemble", "data"]);

    // A drive is away at the next start.
    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
    std::fs::rename(place.drive(3), place.dir.path().join("away")).expect("moved");
    place.start();
    let (what, action) = next(&place);
    assert!(what.contains("slot 1") && what.contains("missing"), "{what}");
    type_in(&place, &action, &place.name(1));
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    is_well(&place);
}

#[test]
fn status_says_how_an_array_is_started_that_was_not() {
    let mut place = Place::running(2);
    place.create("data", "1", &[0, 1]);
    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
    std::fs::rename(place.drive(1), place.dir.path().join("away")).expect("moved");
    place.start();
    let (what, action) = next(&place);
    // With its drive back, nothing has to be risked any more.
    let away = place.dir.path().join("away");
    std::fs::rename(&away, place.drive(1)).expect("moved");
    place.json(&["drive", "list"]);
    let (now, start) = next(&place);
    assert!(now.contains("drives are back") && start.ends_with("assemble data"), "{now}: {start}");
    std::fs::rename(place.drive(1), &away).expect("moved");
    place.json(&["drive", "list"]);
    assert_eq!(next(&place), (what.clone(), action.clone()));
    assert!(what.starts_with("array data is not started: ") && what.contains("slot 1"), "{what}");
    assert!(action.ends_with("palisade array assemble data --start-degraded"), "{action}");
    type_in(&place, &action, "");
    assert_eq!(place.state("data"), "degraded");
    assert!(next(&place).0.contains("slot 1"), "what was refused is no more told");
}

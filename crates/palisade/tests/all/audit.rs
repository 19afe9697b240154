//! The audit log, the configuration and the state directory from outside: who did what is told,
//! also after `kill -9` in each change.

use crate::common::place::{Daemon, Place};
use crate::common::{output, text, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Kills of each change.
const KILLS: u64 = 2;
/// Most milliseconds between the line that says that a change begins, and the kill of the daemon.
const WITHIN: u64 = 4;

/// A place whose daemon has a state directory.
fn place(what: &str, drives: usize) -> (Place, Vec<String>) {
    let mut place = Place::new(what, 24);
    place.more = format!("state = {}\n", Value::from(state(&place).to_string_lossy()));
    let drives = place.drives(drives);
    (place, drives)
}

fn state(place: &Place) -> PathBuf {
    place.file("state")
}

/// All lines of the log, the oldest first.
pub fn lines(daemon: &Daemon) -> Vec<Value> {
    daemon.call(&["audit", "list"])["entries"].as_array().expect("a list").clone()
}

/// A command that needs no daemon: its exit code, and what it said.
fn alone(words: &[&str]) -> (Option<i32>, String) {
    let output = output(Command::new(env!("CARGO_BIN_EXE_palisade")).args(words));
    (output.status.code(), text(&output))
}

fn verified(place: &Place) -> (Option<i32>, String) {
    alone(&["audit", "verify", state(place).to_str().expect("text")])
}

#[test]
fn each_change_and_refusal_has_a_line_and_a_changed_line_is_found() {
    let (place, drives) = place("audit", 3);
    let daemon = Daemon::start(&place, 1);
    daemon.create("data", "1", &drives[..2], &[]);
    let asked = ["array", "create", "data", "--level", "1", "--drives", &drives[1], &drives[2]];
    daemon.refused(&asked);
    daemon.refused(&[&asked[..], &["--dry-run"]].concat());
    daemon.call(&["volume", "create", "data/v", "--size", "1M"]);
    let all = lines(&daemon);
    let told: Vec<_> = all
        .iter()
        .map(|line| {
            let what = line["what"].as_str().expect("words").split(' ').take(2);
            let what: Vec<_> = what.collect();
            (what.join(" "), line["result"].as_str().expect("a word"), line["of"].as_u64())
        })
        .collect();
    let expected = [
        ("the daemon", "ok", None),
        ("create array", "intent", None),
        ("create array", "ok", Some(2)),
        ("create array", "intent", None),
        ("create array", "failed", Some(4)),
        ("create array", "failed", None),
        ("create volume", "intent", None),
        ("create volume", "ok", Some(7)),
    ];
    let expected = expected.map(|(what, result, of)| (what.to_owned(), result, of));
    assert_eq!(told, expected, "{all:?}");
    assert!(all[4]["message"].as_str().is_some_and(|id| id.starts_with("Palisade.1.0.")));
    assert_eq!((&all[1]["from"], &all[1]["number"]), (&"socket".into(), &2.into()));
    assert_eq!(
        daemon.call(&["audit", "list", "--last", "2"])["entries"].as_array(),
        Some(&all[6..].to_vec())
    );
    assert!(
        daemon.text(&["audit", "list"]).contains("create volume v of 1048576 bytes in array data")
    );
    assert_eq!(daemon.call(&["audit", "verify"])["breaks"], Value::Array(Vec::new()));
    let status = daemon.call(&["status"])["state"].clone();
    assert_eq!(status["directory"], *state(&place).to_string_lossy());
    let dir = std::fs::metadata(state(&place)).expect("made");
    assert_eq!(dir.mode() & 0o777, 0o700);
    daemon.stop();

    let (code, said) = verified(&place);
    assert_eq!(code, Some(0), "{said}");
    let mut logs =
        std::fs::read_dir(state(&place)).expect("read").map(|one| one.expect("one").path());
    let log = logs.find(|path| path.extension().is_some_and(|end| end == "log")).expect("a log");
    let whole = std::fs::read_to_string(&log).expect("text");
    std::fs::write(
        &log,
        whole.replacen("create volume v of 1048576", "create volume v of 1048577", 1),
    )
    .expect("written");
    let (code, said) = verified(&place);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("line 7 was changed"), "{said}");
    // The daemon tells it, too; and goes on.
    let daemon = Daemon::start(&place, 1);
    assert!(daemon.refused(&["audit", "verify"]).contains("was changed"));
    assert_eq!(daemon.show("data")["state"], "optimal");
}

#[test]
fn a_drive_is_wiped_by_the_daemon_that_runs() {
    let (place, drives) = place("audit of a wipe", 2);
    let daemon = Daemon::start(&place, 1);
    let wipe = ["drive", "wipe", &drives[0], "--yes"];
    daemon.call(&wipe);
    let all = lines(&daemon);
    let what = format!("wipe drive {} ", drives[0]);
    let is_wipe = |line: &&Value| line["what"].as_str().is_some_and(|text| text.starts_with(&what));
    let told = all.iter().filter(is_wipe).map(|line| line["result"].as_str());
    assert_eq!(told.collect::<Vec<_>>(), [Some("intent"), Some("ok")], "{all:?}");
    daemon.stop();
    // Without it a look disturbs nobody, and an act needs the drive alone.
    let other = std::fs::File::options().write(true).open(&drives[0]).expect("opened");
    other.lock().expect("locked");
    let none = place.file("none");
    let alone = |word: &str| {
        let socket = ["--socket", none.to_str().expect("text")];
        alone(&[&socket[..], &["drive", "wipe", &drives[0], word]].concat())
    };
    let (code, said) = alone("--dry-run");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("erase the records"), "{said}");
    let (code, said) = alone("--yes");
    assert_eq!(code, Some(3), "{said}");
}

#[test]
fn without_a_state_directory_status_says_so() {
    let mut place = Place::new("no state", 24);
    place.drives(2);
    let daemon = Daemon::start(&place, 1);
    assert!(daemon.text(&["status"]).contains("no state directory"));
    assert!(daemon.call(&["status"])["state"]["directory"].is_null());
    assert_eq!(daemon.call(&["audit", "verify"])["lines"], 1);
    daemon.stop();
    // One that others may write is not used, and arrays are served all the same.
    let loose = place.file("loose");
    std::fs::create_dir(&loose).expect("made");
    std::fs::set_permissions(&loose, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .expect("set");
    place.more = format!("state = {}\n", Value::from(loose.to_string_lossy()));
    let daemon = Daemon::start(&place, 1);
    let next = daemon.call(&["status"])["next"].to_string();
    assert!(next.contains("others may write the state directory"), "{next}");
}

/// A change that is killed: the words of the command, and whether an object tells that it was done.
type Killed<'a> = (Vec<&'a str>, fn(&Daemon) -> bool);

fn array_is_there(daemon: &Daemon) -> bool {
    !daemon.call(&["array", "list"])["arrays"].as_array().expect("a list").is_empty()
}

fn volume(daemon: &Daemon) -> Option<u64> {
    daemon.call(&["volume", "list"])["volumes"][0]["size_bytes"].as_u64()
}

fn is_in(daemon: &Daemon, slot: usize) -> bool {
    let state = daemon.show("data")["slots"][slot]["state"].clone();
    ["in-sync", "rebuilding"].iter().any(|own| state == *own)
}

fn is_exported(daemon: &Daemon) -> bool {
    !daemon.call(&["export", "list"])["exports"].as_array().expect("a list").is_empty()
}

/// How much is in the files of the log, in bytes.
fn logged(place: &Place) -> u64 {
    let files = std::fs::read_dir(state(place)).expect("read");
    files.map(|file| file.expect("one").metadata().map_or(0, |file| file.len())).sum()
}

/// Every line that says that something would begin has one that says how it ended, and no other.
pub fn check_ends(all: &[Value]) {
    let mut open = BTreeMap::new();
    for line in all {
        let number = line["number"].as_u64().expect("a number");
        if line["result"] == "intent" {
            open.insert(number, line);
        } else if let Some(of) = line["of"].as_u64() {
            let begun = open.remove(&of).unwrap_or_else(|| panic!("{of} did not begin: {line}"));
            assert_eq!(begun["what"], line["what"]);
        }
    }
    assert!(open.is_empty(), "without an end: {open:?}");
}

#[test]
fn a_kill_in_each_change_leaves_a_log_that_agrees_with_the_arrays() {
    let (mut place, drives) = place("audit kill", 4);
    let nbd = format!("unix:{}", place.file("v.nbd").display());
    let mut create = vec!["array", "create", "data", "--level", "1", "--drives"];
    create.extend(drives[..2].iter().map(String::as_str));
    let changes: [Killed<'_>; 13] = [
        (create, array_is_there),
        (vec!["volume", "create", "data/v", "--size", "1M"], |d| volume(d).is_some()),
        (vec!["volume", "resize", "data/v", "--size", "2M"], |d| volume(d) == Some(2 << 20)),
        (vec!["export", "create", "data/v", "--nbd", &nbd], is_exported),
        (vec!["export", "delete", "data:1"], |d| !is_exported(d)),
        (vec!["volume", "delete", "data/v", "--yes"], |d| volume(d).is_none()),
        (vec!["array", "scrub", "data", "--check"], |_| true),
        (vec!["array", "fail", "data", "--drive", "slot:1"], |d| !is_in(d, 1)),
        (vec!["array", "replace", "data", "--slot", "1", "--with", &drives[2]], |d| is_in(d, 1)),
        (vec!["drive", "wipe", &drives[3], "--yes"], |_| true),
        (vec!["array", "stop", "data"], |_| true),
        (vec!["array", "assemble", "data"], |_| true),
        (vec!["array", "delete", "data", "--yes"], |d| !array_is_there(d)),
    ];
    let mut daemon = Daemon::start(&place, 1);
    let mut met = BTreeMap::new();
    for (words, is_done) in &changes {
        // What it does may be over, or undone, when the daemon starts again.
        let is_brief = ["scrub", "wipe", "stop", "assemble"].contains(&words[1]);
        for _ in 0..KILLS {
            let before = lines(&daemon).len();
            let length = logged(&place);
            let mut child = daemon.start_call(words);
            until("the change begins, or ends", Duration::from_secs(30), || {
                let has_ended = child.try_wait().expect("waited for").is_some();
                (has_ended || logged(&place) > length).then_some(())
            });
            // Anything from nothing done to all done.
            sleep(Duration::from_millis(place.rng.below(WITHIN)));
            daemon.kill();
            let _ = child.wait_with_output();
            daemon = Daemon::start(&place, 1);
            let all = lines(&daemon);
            check_ends(&all);
            assert_eq!(daemon.call(&["audit", "verify"])["breaks"], Value::Array(Vec::new()));
            let new = &all[before..];
            let result =
                |word: &str| new.iter().any(|line| line["result"] == word && line["of"].is_u64());
            let (ok, unknown, done) = (result("ok"), result("not-known"), is_done(&daemon));
            let begun = new.iter().any(|line| line["result"] == "intent");
            // What is there has a line, and what was said to be done is there.
            assert!(is_brief || !done || begun, "{words:?} without a line: {new:?}");
            assert!(!ok || done, "{words:?} was said to be done: {new:?}");
            *met.entry((begun, unknown)).or_insert(0) += 1;
            if done && !is_brief {
                break;
            }
        }
        // What owed the array something after the kill is over.
        if array_is_there(&daemon) {
            daemon.settle("data");
        }
        if !is_done(&daemon) || ["scrub", "stop"].contains(&words[1]) {
            daemon.call(words);
        }
    }
    println!("kills, by whether a change had begun and its end is not known: {met:?}");
    daemon.stop();
    let (code, said) = verified(&place);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn sighup_takes_what_can_be_taken_and_says_what_can_not() {
    let (mut place, _) = place("reload", 1);
    let other = place.file("other.raw");
    std::fs::copy(place.drives(1).remove(0), &other).expect("copied");
    let daemon = Daemon::start(&place, 1);
    let config = place.file("palisade.toml");
    let old = std::fs::read_to_string(&config).expect("text");
    let hangup = |says: &str| {
        kill_process(Pid::from_raw(daemon.id() as i32).expect("a process"), Signal::HUP)
            .expect("told");
        until(says, Duration::from_secs(30), || daemon.said().contains(says).then_some(()));
    };
    std::fs::write(&config, format!("{old}cors = 1\n")).expect("written");
    hangup("the configuration was not taken");
    let (code, said) = alone(&["check-config", config.to_str().expect("text")]);
    assert!(code == Some(2) && said.contains("cors"), "{said}");
    let at = |line: usize, what: &str| {
        format!("{}: line {}: {what}", config.display(), old.lines().count() + line)
    };
    let bad = "[health]\nlink = \"no\"\nask_every_s = 0\n[[enclosure]]\nname = \"shelf\"\n\
               slots = 2\ndrives = { \"1\" = \"S1\", \"3\" = \"S2\", \"2\" = \"S1\" }\n";
    std::fs::write(&config, format!("{old}{bad}")).expect("written");
    let (code, said) = alone(&["check-config", config.to_str().expect("text")]);
    let told = [
        at(2, "link: on or off, not \"no\""),
        at(3, "ask_every_s must be 1 to 3600, not 0"),
        at(7, "slot 3 is not one of 1 to 2"),
        at(7, "drive S1 is in slot 1 of shelf already"),
    ];
    assert_eq!((code, said.trim()), (Some(2), told.join("\n").trim()));
    hangup(&told[0]);
    std::fs::write(&config, format!("{old}[health]\nask_every_s = 1\n")).expect("written");
    hangup("taken: health");
    let more = format!("drives = [{}, ", Value::from(other.to_string_lossy()));
    let new = old.replace("drives = [", &more).replace("cores = 1", "cores = 2");
    std::fs::write(&config, new).expect("written");
    hangup("taken: drives, health");
    assert!(daemon.said().contains("restart the daemon to take: cores"), "{}", daemon.said());
    let drives = daemon.call(&["drive", "list"])["drives"].to_string();
    assert!(drives.contains("other.raw"), "{drives}");
    let what = lines(&daemon).last().expect("a line")["what"].to_string();
    assert!(what.contains("taken: drives, health; restart the daemon to take: cores"), "{what}");
    let (code, said) = alone(&["check-config", config.to_str().expect("text")]);
    assert!(code == Some(0) && said.contains("the daemon can use it"), "{said}");
}

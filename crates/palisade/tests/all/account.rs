//! Accounts from outside: made, listed, changed and deleted by the command line.

use crate::common::place::{Daemon, Place};
use crate::common::{program, start, text};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

const PASSWORD: &str = "correct horse";

fn place(what: &str) -> Place {
    let mut place = Place::new(what, 16);
    place.more = format!("state = {}\n", Value::from(place.file("state").to_string_lossy()));
    place
}

fn command(place: &Place, words: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_palisade"));
    command.args(words).env("PALISADE_SOCKET", place.file("socket")).stdin(Stdio::piped());
    command
}

/// Runs a command that reads this password.
fn with(place: &Place, words: &[&str], password: &str) -> Output {
    let mut child = start(&mut command(place, words));
    let mut input = child.stdin.take().expect("piped");
    // A command that needs none may have ended.
    let _ = writeln!(input, "{password}");
    drop(input);
    child.wait_with_output().expect("ended")
}

fn create(place: &Place, name: &str, role: &str) -> Output {
    with(place, &["account", "create", name, "--role", role, "--password-stdin"], PASSWORD)
}

#[track_caller]
fn refused(output: &Output, exit: i32, what: &str) {
    let told = text(output);
    assert_eq!(output.status.code(), Some(exit), "{told}");
    assert!(told.contains(what), "{told}");
}

#[test]
fn accounts_come_and_go() {
    let place = place("accounts: life");
    let daemon = Daemon::start(&place, 1);
    let none = daemon.call(&["account", "list"]);
    assert_eq!(none["accounts"], json!([]));
    refused(
        &create(&place, "ana", "operator"),
        3,
        "no Administrator that is enabled would be left",
    );
    let made = create(&place, "root", "administrator");
    assert!(made.status.success(), "{}", text(&made));
    assert!(create(&place, "ana", "operator").status.success());
    refused(&create(&place, "ana", "operator"), 1, "account \"ana\" exists already");
    refused(&create(&place, "a b", "operator"), 2, "UserName");
    let short = ["account", "passwd", "ana", "--password-stdin"];
    let told = with(&place, &short, "short");
    refused(&told, 2, "8 to 128 characters");
    assert!(!text(&told).contains("short"), "{}", text(&told));
    assert!(with(&place, &short, "another one").status.success());
    let listed = daemon.call(&["account", "list"]);
    let ana = json!({
        "name": "ana", "role": "Operator", "enabled": true, "password_change_required": false,
    });
    assert_eq!(listed["accounts"][0], ana);
    let plan = with(&place, &["account", "delete", "ana", "--dry-run"], "");
    assert!(plan.status.success() && text(&plan).contains("delete account ana"), "{}", text(&plan));
    refused(&with(&place, &["account", "delete", "none"], ""), 1, "no account is named \"none\"");
    refused(&with(&place, &["account", "delete", "root"], ""), 3, "no Administrator");
    assert!(with(&place, &["account", "delete", "ana"], "").status.success());
    daemon.stop();

    let daemon = Daemon::start(&place, 1);
    assert_eq!(daemon.call(&["account", "list"])["accounts"][0]["name"], "root");
    daemon.stop();
    let file = std::fs::read_to_string(place.file("state/accounts.json")).expect("there");
    assert!(!file.contains(PASSWORD) && file.contains("$argon2id$"), "{file}");
    assert!(!std::fs::read_to_string(place.file("daemon.log")).expect("there").contains(PASSWORD));
}

#[test]
fn a_password_is_typed_or_comes_on_the_standard_input() {
    let place = place("accounts: passwords");
    let daemon = Daemon::start(&place, 1);
    // A process of a session of its own has no terminal.
    let mut alone = program("setsid");
    alone.arg("--wait").arg(env!("CARGO_BIN_EXE_palisade"));
    alone.args(["account", "create", "root", "--role", "administrator"]);
    let told = alone.env("PALISADE_SOCKET", place.file("socket")).output().expect("run");
    refused(&told, 1, "there is no terminal to ask at");
    daemon.stop();
}

#[test]
fn without_a_state_directory_there_are_none() {
    let place = Place::new("accounts: no state", 16);
    let daemon = Daemon::start(&place, 1);
    refused(&create(&place, "root", "administrator"), 1, "no state directory");
    daemon.stop();
}

#[test]
fn a_crash_leaves_accounts_as_they_were_or_as_they_are() {
    let place = place("accounts: crashes");
    let mut known: Vec<String> = vec!["root".to_owned()];
    for round in 0..4 {
        let daemon = Daemon::start(&place, 1);
        if round == 0 {
            assert!(create(&place, "root", "administrator").status.success());
        }
        let listed = daemon.call(&["account", "list"])["accounts"].clone();
        let listed: Vec<&str> = listed
            .as_array()
            .expect("a list")
            .iter()
            .map(|account| account["name"].as_str().expect("a name"))
            .collect();
        assert!(known.iter().all(|name| listed.contains(&name.as_str())), "{known:?} {listed:?}");
        let made = thread::scope(|scope| {
            let making = scope.spawn(|| {
                let names = (0..50).map(|number| format!("a{round}-{number}"));
                names
                    .take_while(|name| create(&place, name, "readonly").status.success())
                    .collect::<Vec<_>>()
            });
            // Wherever it is then: what was answered is there after.
            thread::sleep(Duration::from_millis(150 + 130 * round));
            daemon.kill();
            making.join().expect("ends")
        });
        known.extend(made);
        let file = place.file("state/accounts.json");
        let bytes = std::fs::read(Path::new(&file)).expect("there");
        serde_json::from_slice::<Value>(&bytes).expect("the old one or the new one");
    }
}

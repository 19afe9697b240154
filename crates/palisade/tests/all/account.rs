//! Accounts from outside: made, listed, changed and deleted by the command line, also with
//! `kill -9` in each change.

use crate::audit;
use crate::common::place::{Daemon, Place};
use crate::common::tls::{Client, basic};
use crate::common::{program, text};
use crate::redfish::{connect, get};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
const SUBSCRIPTIONS: &str = "/redfish/v1/EventService/Subscriptions";

/// Stands for the URI of the only subscription.
const FIRST: &str = "the subscription";

/// Most kills of each change.
const KILLS: u64 = 4;
/// Most milliseconds between a request and the kill of the daemon: some passwords' time.
const WITHIN: u64 = 60;

pub const PASSWORD: &str = "correct horse";

/// A place whose daemon has a state directory.
pub fn place(what: &str) -> Place {
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
    let mut command = command(place, words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("started");
    let mut input = child.stdin.take().expect("piped");
    // A command that needs none may have ended.
    let _ = writeln!(input, "{password}");
    drop(input);
    child.wait_with_output().expect("ended")
}

/// Makes an account with [`PASSWORD`], and with more words of the command.
pub fn create_with(place: &Place, name: &str, role: &str, more: &[&str]) -> Output {
    let words = ["account", "create", name, "--role", role, "--password-stdin"];
    with(place, &[&words[..], more].concat(), PASSWORD)
}

/// Makes an account with [`PASSWORD`].
pub fn create(place: &Place, name: &str, role: &str) -> Output {
    create_with(place, name, role, &[])
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
fn accounts_that_can_not_be_read_in_time_keep_nobody_from_arrays() {
    let mut place = place("accounts: hung");
    let drives = place.drives(2);
    let daemon = Daemon::start(&place, 1);
    daemon.create("data", "1", &drives, &[]);
    daemon.stop();
    // A file whose opening waits for the other end.
    let file = place.file("state/accounts.json");
    assert!(program("mkfifo").arg(&file).status().expect("runs").success());
    let daemon = Daemon::start(&place, 1);
    assert_eq!(daemon.show("data")["state"], "optimal");
    let next = daemon.call(&["status"])["next"].to_string();
    assert!(next.contains("accounts can't be read") && next.contains("no answer within"), "{next}");
    refused(&create(&place, "root", "administrator"), 1, "accounts can't be read");
    daemon.kill();
}

/// A change of accounts, sessions or subscriptions that is killed: what is asked, and whether it
/// was done.
struct Killed {
    asked: (&'static str, String),
    body: Value,
    is_done: fn(&Daemon, &Place) -> bool,
}

fn listed(daemon: &Daemon, name: &str) -> Option<Value> {
    let all = daemon.call(&["account", "list"])["accounts"].clone();
    all.as_array().expect("a list").iter().find(|account| account["name"] == name).cloned()
}

/// The accounts that have sessions.
fn sessions(place: &Place) -> Vec<String> {
    let all = get(place, &format!("{SESSIONS}?$expand=."))["Members"].clone();
    let all = all.as_array().expect("a list").iter();
    all.map(|one| one["UserName"].as_str().expect("a name").to_owned()).collect()
}

/// Whether these are the name and password of an account.
fn may(place: &Place, name: &str, password: &str) -> bool {
    let header = ("authorization", basic(name, password));
    let own = [(header.0, header.1.as_str())];
    let told = Client(connect(place)).ask(("GET", SESSIONS), &own, &Value::Null);
    told.expect("an answer").status == 200
}

fn subscriptions(place: &Place) -> Vec<Value> {
    let all = get(place, &format!("{SUBSCRIPTIONS}?$expand=."))["Members"].clone();
    all.as_array().expect("a list").clone()
}

/// What is killed, in an order in which each can be done.
fn changes() -> [Killed; 9] {
    let ana = || format!("{ACCOUNTS}/ana");
    [
        Killed {
            asked: ("POST", ACCOUNTS.to_owned()),
            body: json!({"UserName": "ana", "Password": PASSWORD, "RoleId": "Operator"}),
            is_done: |daemon, _| listed(daemon, "ana").is_some(),
        },
        Killed {
            asked: ("PATCH", ana()),
            body: json!({"RoleId": "ReadOnly"}),
            is_done: |daemon, _| listed(daemon, "ana").is_some_and(|own| own["role"] == "ReadOnly"),
        },
        Killed {
            asked: ("POST", SESSIONS.to_owned()),
            body: json!({"UserName": "ana", "Password": PASSWORD}),
            is_done: |_, place| sessions(place).contains(&"ana".to_owned()),
        },
        // The sessions go with the password.
        Killed {
            asked: ("PATCH", ana()),
            body: json!({"Password": "another one"}),
            is_done: |_, place| {
                let (is_new, has_none) =
                    (may(place, "ana", "another one"), sessions(place).is_empty());
                assert_eq!(is_new, !may(place, "ana", PASSWORD), "one of the two");
                assert!(!is_new || has_none, "a session of the old password");
                is_new
            },
        },
        Killed {
            asked: ("PATCH", "/redfish/v1/SessionService".to_owned()),
            body: json!({"SessionTimeout": 600}),
            is_done: |_, place| get(place, "/redfish/v1/SessionService")["SessionTimeout"] == 600,
        },
        Killed {
            asked: ("DELETE", ana()),
            body: Value::Null,
            is_done: |daemon, _| listed(daemon, "ana").is_none(),
        },
        Killed {
            asked: ("POST", SUBSCRIPTIONS.to_owned()),
            body: json!({"Protocol": "Redfish", "Destination": "http://127.0.0.1:1/"}),
            is_done: |_, place| !subscriptions(place).is_empty(),
        },
        Killed {
            asked: ("PATCH", FIRST.to_owned()),
            body: json!({"Context": "mine"}),
            is_done: |_, place| subscriptions(place)[0]["Context"] == "mine",
        },
        Killed {
            asked: ("DELETE", FIRST.to_owned()),
            body: Value::Null,
            is_done: |_, place| subscriptions(place).is_empty(),
        },
    ]
}

#[test]
fn a_kill_in_each_change_of_accounts_leaves_a_log_that_agrees_with_them() {
    let mut place = place("accounts: kills");
    let mut daemon = Daemon::start(&place, 1);
    assert!(create(&place, "root", "administrator").status.success());
    let mut met = BTreeMap::new();
    for Killed { asked: (method, uri), body, is_done } in &changes() {
        let uri = &match uri.as_str() {
            FIRST => subscriptions(&place)[0]["@odata.id"].as_str().expect("a URI").to_owned(),
            uri => uri.to_owned(),
        };
        for _ in 0..KILLS {
            let before = audit::lines(&daemon).len();
            let wait = Duration::from_millis(place.rng.below(WITHIN));
            let stream = connect(&place);
            let answer = thread::scope(|scope| {
                let asking = scope.spawn(|| Client(stream).ask((*method, uri), &[], body));
                // Anything from nothing done to all done.
                thread::sleep(wait);
                daemon.kill();
                asking.join().expect("ends")
            });
            daemon = Daemon::start(&place, 1);
            let all = audit::lines(&daemon);
            audit::check_ends(&all);
            assert_eq!(daemon.call(&["audit", "verify"])["breaks"], json!([]));
            let (new, done) = (&all[before..], is_done(&daemon, &place));
            let result =
                |word: &str| new.iter().any(|line| line["result"] == word && line["of"].is_u64());
            let begun = new.iter().any(|line| line["result"] == "intent");
            let is_answered = answer.as_ref().is_some_and(|answer| answer.status < 300);
            assert!(answer.is_none() || is_answered, "{answer:?}");
            assert!(!is_answered || done, "{method} {uri} was answered, and is not: {new:?}");
            assert!(!done || begun, "{method} {uri} without a line: {new:?}");
            assert!(!result("ok") || done, "{method} {uri} was said to be done: {new:?}");
            if let Some(token) = answer.as_ref().and_then(|one| one.headers.get("x-auth-token")) {
                let own = [("x-auth-token", token.as_str())];
                let told = Client(connect(&place)).ask(("GET", SESSIONS), &own, &Value::Null);
                assert_eq!(told.expect("an answer").status, 200, "an answered session is open");
            }
            *met.entry((begun, result("not-known"), done)).or_insert(0) += 1;
            if done {
                break;
            }
        }
        if !is_done(&daemon, &place) {
            let told = Client(connect(&place)).ask((*method, uri), &[], body);
            assert!(told.as_ref().is_some_and(|told| told.status < 300), "{told:?}");
        }
    }
    println!("kills, by whether a change had begun, is not known, and was done: {met:?}");
    assert!(sessions(&place).is_empty());
    daemon.stop();
}

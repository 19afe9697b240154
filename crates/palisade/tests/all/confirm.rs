//! Plan, confirm, act: what a request would do is told, and what destroys data is done only with
//! the token of its plan.

use crate::common::place::{Daemon, Place};
use crate::common::{output, program, text};
use crate::redfish::{Answer, POOLS, VOLUMES, ask, drive_uri, get, pool, request, send};
use serde_json::{Value, json};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

const JOBS: &str = "/redfish/v1/JobService/Jobs";
const NBD: &str = "/redfish/v1/Fabrics/nbd/Connections";
const DRIVES: &str = "/redfish/v1/Chassis/local/Drives";

/// A request, as `(method, URI, body)`.
type Asked<'a> = (&'a str, String, Value);

fn with_header(place: &Place, (method, uri, body): &Asked<'_>, header: &str) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let text = request(method, uri, &body).replacen("\r\n", &format!("\r\n{header}\r\n"), 1);
    send(place, text.as_bytes()).expect("an answer")
}

/// What a request would do, and its token.
fn planned(place: &Place, asked: &Asked<'_>) -> (Value, String) {
    let answer = with_header(place, asked, "palisade-plan: only");
    assert_eq!(answer.status, 200, "{asked:?}: {answer:?}");
    let told = answer.json();
    let token = told["Token"].as_str().expect("a token").to_owned();
    assert!(told["Expires"].as_str().is_some_and(|at| at.ends_with('Z')), "{told}");
    assert!(told["Plan"]["Steps"].as_array().is_some_and(|steps| !steps.is_empty()), "{told}");
    (told["Plan"].clone(), token)
}

fn confirmed(place: &Place, asked: &Asked<'_>, token: &str) -> Answer {
    with_header(place, asked, &format!("palisade-confirm: {token}"))
}

fn unconfirmed(place: &Place, (method, uri, body): &Asked<'_>) -> Answer {
    ask(place, method, uri, body)
}

/// Has a request planned, and carried out with the token of its plan.
pub fn agreed(place: &Place, method: &str, uri: &str, body: &Value) -> Answer {
    let asked = (method, uri.to_owned(), body.clone());
    let (_, token) = planned(place, &asked);
    confirmed(place, &asked, &token)
}

/// Overwrites part of a file.
fn scribble(path: &Path, offset: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).expect("opened");
    file.write_all_at(bytes, offset).expect("written");
}

/// All that there is, but for what moves by itself.
fn all(place: &Place) -> Value {
    let names = |uri: &str, keys: &[&str]| -> Vec<Value> {
        let all = get(place, &format!("{uri}?$expand=."));
        let each = all["Members"].as_array().expect("a list").clone();
        let own = |one: Value| keys.iter().map(|key| one[*key].clone()).collect::<Value>();
        each.into_iter().map(own).collect()
    };
    json!([
        names(POOLS, &["@odata.id", "Name", "Status", "CapacitySources"]),
        names(VOLUMES, &["@odata.id", "Name", "CapacityBytes"]),
        names(NBD, &["@odata.id"]),
        names(JOBS, &["@odata.id"]),
        names(DRIVES, &["@odata.id", "Status"]),
    ])
}

fn link(uri: &str) -> Value {
    json!({ "@odata.id": uri })
}

/// What the tests destroy: array `tank` on four drives with volume `db`, and four drives besides,
/// of which the last two hold swap space.
struct Stage {
    place: Place,
    daemon: Daemon,
    drives: Vec<String>,
    pool: String,
    volume: String,
}

impl Stage {
    fn new(what: &str, more: &str) -> Self {
        let mut place = Place::new(what, 16);
        more.clone_into(&mut place.more);
        let drives = place.drives(8);
        // Swap space: its signature ends the first page (mkswap(8)).
        drives[6..].iter().for_each(|path| scribble(Path::new(path), 4086, b"SWAPSPACE2"));
        let daemon = Daemon::start(&place, 1);
        daemon.create("tank", "6", &drives[..4], &[]);
        daemon.call(&["volume", "create", "tank/db", "--size", "8M"]);
        let first = |uri: &str| {
            let uri = &get(&place, uri)["Members"][0]["@odata.id"];
            uri.as_str().expect("a URI").to_owned()
        };
        let (pool, volume) = (first(POOLS), first(VOLUMES));
        Self { place, daemon, drives, pool, volume }
    }

    fn action(&self, name: &str, body: Value) -> Asked<'static> {
        ("POST", format!("{}/Actions/Oem/PalisadeStoragePool.{name}", self.pool), body)
    }

    fn drive(&self, number: usize) -> String {
        drive_uri(&self.place, &self.drives[number])
    }

    fn wipe(&self, number: usize) -> Asked<'static> {
        let uri = format!("{}/Actions/Oem/PalisadeDrive.Wipe", self.drive(number));
        ("POST", uri, json!({ "Overwrite": true }))
    }

    /// An array on the drives with swap space.
    fn create_over(&self) -> Asked<'static> {
        let mut body = pool(&self.place, "other", "RAID1", &self.drives[6..]);
        let over = [link(&self.drive(6)), link(&self.drive(7))];
        body["Oem"] = json!({ "Palisade": { "Overwrite": over } });
        ("POST", POOLS.to_owned(), body)
    }

    fn shrink(&self, bytes: u64) -> Asked<'static> {
        ("PATCH", self.volume.clone(), json!({ "CapacityBytes": bytes }))
    }

    /// Every request that destroys data while slot 1 is out and the array runs.
    fn destroying(&self) -> Vec<Asked<'static>> {
        let over = [link(&self.drive(6)), link(&self.drive(7))];
        let replace = json!({ "Slot": 1, "With": over[0], "Overwrite": [over[0]] });
        let on_drives = json!({
            "Name": "other", "RAIDType": "RAID1", "CapacityBytes": 4 << 20,
            "Links": { "Drives": over }, "Oem": { "Palisade": { "Overwrite": over } },
        });
        vec![
            ("DELETE", self.pool.clone(), Value::Null),
            ("DELETE", self.volume.clone(), Value::Null),
            self.shrink(4 << 20),
            self.create_over(),
            ("POST", VOLUMES.to_owned(), on_drives),
            self.action("ReplaceDrive", replace),
            self.wipe(7),
            self.wipe(4),
        ]
    }
}

#[test]
fn every_change_is_planned_and_nothing_is_done() {
    let stage = Stage::new("confirm: plans", "");
    let place = &stage.place;
    stage.daemon.call(&["array", "fail", "tank", "--drive", "slot:1"]);
    let mut asked = stage.destroying();
    let destroying = asked.len();
    let own = json!([{ "ProvidingPools": { "Members": [link(&stage.pool)] } }]);
    let body = json!({ "Name": "logs", "CapacityBytes": 4 << 20, "CapacitySources": own });
    asked.push(("POST", VOLUMES.to_owned(), body));
    let own = json!({ "Palisade": { "Listeners": ["127.0.0.1:0"] } });
    let body = json!({ "VolumeInfo": [{ "Volume": link(&stage.volume) }], "Oem": own });
    asked.push(("POST", NBD.to_owned(), body));
    asked.push(("POST", POOLS.to_owned(), pool(place, "new", "RAID1", &stage.drives[4..6])));
    asked.push(stage.shrink(16 << 20));
    asked.push(stage.action("Stop", json!({})));
    asked.push(stage.action("FailDrive", json!({ "Slot": 0 })));
    asked.push(stage.action("Scrub", json!({ "Mode": "Check" })));
    let replace = json!({ "Slot": 1, "With": link(&stage.drive(4)) });
    asked.push(stage.action("ReplaceDrive", replace));
    let before = all(place);
    for (number, asked) in asked.iter().enumerate() {
        let (plan, _) = planned(place, asked);
        let lost = plan["Lost"].as_array().expect("a list");
        assert_eq!(!lost.is_empty(), number < destroying, "{asked:?}: {plan}");
        let drives = plan["Drives"].as_array().expect("a list");
        let blank = [&stage.drives[4], &stage.drives[5]];
        assert!(!drives.is_empty(), "{asked:?}: {plan}");
        for drive in drives {
            let path = drive["Path"].as_str().expect("a path");
            assert!(drive["SerialNumber"].is_string(), "{asked:?}: {drive}");
            let is_blank = blank.iter().any(|blank| *blank == path);
            assert!(is_blank || drive["Content"].is_string(), "{asked:?}: {drive}");
        }
        assert_eq!(all(place), before, "{asked:?}");
    }
    // What the request would meet for sure is told now.
    for (asked, status) in [
        (
            (
                "POST",
                VOLUMES.to_owned(),
                json!({ "Name": "db", "CapacityBytes": 4 << 20,
            "CapacitySources": [{ "ProvidingPools": { "Members": [link(&stage.pool)] } }] }),
            ),
            409,
        ),
        (("POST", POOLS.to_owned(), pool(place, "tank", "RAID1", &stage.drives[4..6])), 409),
        (stage.action("Assemble", json!({})), 409),
        (stage.action("FailDrive", json!({ "Slot": 9 })), 409),
        (stage.wipe(0), 403),
    ] {
        let answer = with_header(place, &asked, "palisade-plan: only");
        assert_eq!(answer.status, status, "{asked:?}: {answer:?}");
    }
    let foreign = pool(place, "new", "RAID1", &stage.drives[5..7]);
    let (plan, _) = planned(place, &("POST", POOLS.to_owned(), foreign));
    assert_eq!(plan["Drives"][1]["Refused"], true, "{plan}");
    let other = with_header(place, &asked[0], "palisade-plan: all");
    assert_eq!((other.status, other.message().as_str()), (400, "HeaderInvalid"));
    assert_eq!(all(place), before);
    stage.daemon.stop();
}

#[test]
fn what_destroys_data_is_done_only_with_its_token() {
    let stage = Stage::new("confirm: tokens", "");
    let place = &stage.place;
    stage.daemon.call(&["array", "fail", "tank", "--drive", "slot:1"]);
    let before = all(place);
    let asked = stage.destroying();
    let tokens: Vec<String> = asked.iter().map(|asked| planned(place, asked).1).collect();
    for (number, asked) in asked.iter().enumerate() {
        let answer = unconfirmed(place, asked);
        let told = answer.json();
        assert_eq!((answer.status, answer.message().as_str()), (403, "ConfirmationRequired"));
        assert!(told["Plan"]["Lost"][0].is_string() && told["Token"].is_string(), "{told}");
        let other = &tokens[(number + 1) % tokens.len()];
        for wrong in ["", "none", &tokens[number][1..], other] {
            let answer = confirmed(place, asked, wrong);
            assert_eq!(answer.status, 403, "{asked:?}, {wrong}: {answer:?}");
            assert_eq!(answer.message(), "ConfirmationNotValid", "{asked:?}, {wrong}");
            assert!(answer.json()["Token"].is_string(), "{answer:?}");
        }
        assert_eq!(all(place), before, "{asked:?}");
    }
    let doubled = format!("palisade-confirm: {0}\r\npalisade-confirm: {0}", tokens[0]);
    assert_eq!(with_header(place, &asked[0], &doubled).status, 400);
    // Each does what it was given for: once.
    for (asked, token) in [(&asked[2], &tokens[2]), (&asked[6], &tokens[6])] {
        let answer = confirmed(place, asked, token);
        assert!([200, 204].contains(&answer.status), "{asked:?}: {answer:?}");
    }
    let again = confirmed(place, &asked[6], &tokens[6]);
    assert_eq!((again.status, again.message().as_str()), (403, "ConfirmationNotValid"));
    assert_eq!(get(place, &stage.volume)["CapacityBytes"], 4 << 20);
    let (plan, token) = planned(place, &asked[0]);
    assert!(plan["Lost"][1].as_str().is_some_and(|lost| lost.contains("tank/db")), "{plan}");
    let deleted = confirmed(place, &asked[0], &token);
    assert!([200, 204].contains(&deleted.status), "{deleted:?}");
    assert_eq!(get(place, POOLS)["Members@odata.count"], 0);
    assert!(!stage.daemon.said().contains(&token), "no log has a token");
    stage.daemon.stop();
}

#[test]
fn loss_is_accepted_only_with_its_token() {
    let stage = Stage::new("confirm: loss", "");
    let (place, daemon) = (&stage.place, &stage.daemon);
    daemon.call(&["array", "stop", "tank"]);
    let asked = stage.action("Assemble", json!({ "AcceptLoss": true }));
    let (plan, token) = planned(place, &asked);
    assert!(plan["Lost"][0].as_str().is_some_and(|lost| lost.contains("tank")), "{plan}");
    assert_eq!(plan["Drives"].as_array().map(Vec::len), Some(4), "{plan}");
    let answer = unconfirmed(place, &asked);
    assert_eq!((answer.status, answer.message().as_str()), (403, "ConfirmationRequired"));
    assert_eq!(answer.json()["Plan"], plan);
    // The token is for this body only.
    let degraded = json!({ "AcceptLoss": true, "StartDegraded": true });
    let other = confirmed(place, &stage.action("Assemble", degraded), &token);
    assert_eq!((other.status, other.message().as_str()), (403, "ConfirmationNotValid"));
    assert_eq!(daemon.show("tank")["state"], "stopped");
    assert_eq!(confirmed(place, &asked, &token).status, 204);
    assert_eq!(daemon.show("tank")["state"], "optimal");
    daemon.call(&["array", "stop", "tank"]);
    let degraded = stage.action("Assemble", json!({ "StartDegraded": true }));
    assert_eq!(unconfirmed(place, &degraded).status, 204, "nothing is lost by it");
    stage.daemon.stop();
}

#[test]
fn other_things_under_an_old_name_are_not_destroyed_by_an_old_token() {
    let stage = Stage::new("confirm: state", "");
    let (place, daemon) = (&stage.place, &stage.daemon);
    // A volume came since.
    let delete = ("DELETE", stage.pool.clone(), Value::Null);
    let (_, token) = planned(place, &delete);
    daemon.call(&["volume", "create", "tank/new", "--size", "4M"]);
    let answer = confirmed(place, &delete, &token);
    assert_eq!((answer.status, answer.message().as_str()), (412, "PlanChanged"), "{answer:?}");
    assert!(answer.body.contains("tank/new") && answer.json()["Token"].is_string(), "{answer:?}");
    assert_eq!(confirmed(place, &delete, &token).status, 412, "an outdated token stays so");
    // A volume of that name and size is another one.
    let shrink = stage.shrink(4 << 20);
    let (_, token) = planned(place, &shrink);
    daemon.call(&["volume", "resize", "tank/db", "--size", "12M"]);
    assert_eq!(confirmed(place, &shrink, &token).status, 412);
    assert_eq!(get(place, &stage.volume)["CapacityBytes"], 12 << 20);
    // Another drive is at the path; it holds the same kind of thing, or something else.
    let create = stage.create_over();
    let (plan, token) = planned(place, &create);
    assert!(plan["Drives"][0]["Content"].as_str().is_some_and(|text| text.contains("swap")));
    let (path, wipe) = (Path::new(&stage.drives[7]), stage.wipe(7));
    let (_, wiping) = planned(place, &wipe);
    let other = place.file("other.img");
    std::fs::copy(path, &other).expect("copied");
    std::fs::rename(&other, path).expect("put in its place");
    for (asked, token) in [(&create, token), (&wipe, wiping)] {
        let answer = confirmed(place, asked, &token);
        assert!([403, 404, 412].contains(&answer.status), "{answer:?}");
    }
    let (_, token) = planned(place, &create);
    scribble(path, 4086, &[7; 10]);
    let answer = confirmed(place, &create, &token);
    assert_eq!((answer.status, answer.message().as_str()), (412, "PlanChanged"), "{answer:?}");
    // The token of the plan that came with the refusal is as good as any.
    let token = answer.json()["Token"].as_str().expect("a token").to_owned();
    assert_eq!(confirmed(place, &create, &token).status, 201);
    stage.daemon.stop();
}

#[test]
fn of_changes_that_were_planned_of_one_state_one_is_done() {
    let stage = Stage::new("confirm: at once", "");
    let place = &stage.place;
    for round in 0..4 {
        let from = (8 - round) << 20;
        let asked: Vec<Asked<'_>> =
            (1..=8_u64).map(|step| stage.shrink(from - step * 65536)).collect();
        let tokens: Vec<String> = asked.iter().map(|asked| planned(place, asked).1).collect();
        let answers: Vec<u16> = thread::scope(|scope| {
            let send = |number: usize| {
                let (asked, token) = (&asked[number], &tokens[number]);
                scope.spawn(move || confirmed(place, asked, token).status)
            };
            let all: Vec<_> = (0..asked.len()).map(send).collect();
            all.into_iter().map(|one| one.join().expect("an answer")).collect()
        });
        let count = |status| answers.iter().filter(|own| **own == status).count();
        assert_eq!((count(200), count(412)), (1, 7), "{answers:?}");
        let (_, token) = planned(place, &stage.shrink((7 - round) << 20));
        assert_eq!(confirmed(place, &stage.shrink((7 - round) << 20), &token).status, 200);
    }
    stage.daemon.stop();
}

#[test]
fn nothing_is_asked_where_the_configuration_says_so() {
    let stage = Stage::new("confirm: off", "confirm = \"off\"\n");
    let place = &stage.place;
    let manager = get(place, "/redfish/v1/Managers/palisade");
    assert_eq!(manager["Oem"]["Palisade"]["Confirm"], "off", "{manager}");
    assert_eq!(unconfirmed(place, &stage.shrink(4 << 20)).status, 200);
    // What is foreign is destroyed only where it is named all the same.
    let foreign = pool(place, "other", "RAID1", &stage.drives[6..]);
    assert_eq!(ask(place, "POST", POOLS, &foreign).status, 403);
    assert_eq!(unconfirmed(place, &stage.create_over()).status, 201);
    for uri in [&stage.volume, &stage.pool] {
        let answer = ask(place, "DELETE", uri, &Value::Null);
        assert!([200, 204].contains(&answer.status), "{answer:?}");
    }
    stage.daemon.stop();
}

/// Runs a command on a terminal, and types a line once it asks; what was shown, and how it ended.
const TERMINAL: &str = r#"
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown, asked = b"", False
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    shown += more
    if not asked and shown.endswith(b"to do this: "):
        asked = True
        os.write(terminal, sys.argv[1].encode() + b"\n")
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

impl Stage {
    /// What a command on a terminal showed, and its exit code, after this was typed.
    fn types(&self, typed: &str, words: &[&str]) -> (String, Option<i32>) {
        let mut command = program("python3");
        command.args(["-c", TERMINAL, typed, env!("CARGO_BIN_EXE_palisade")]).args(words);
        let output = output(command.env("PALISADE_SOCKET", self.place.file("socket")));
        (text(&output), output.status.code())
    }
}

#[test]
fn a_person_on_a_terminal_types_the_name_of_what_is_destroyed() {
    let stage = Stage::new("confirm: a terminal", "");
    let (place, daemon) = (&stage.place, &stage.daemon);
    stage.daemon.call(&["array", "fail", "tank", "--drive", "slot:1"]);
    let (swap, blank) = (stage.drives[6].as_str(), stage.drives[4].as_str());
    let over = ["--level", "1", "--drives", swap, blank, "--overwrite", swap];
    let create = [&["array", "create", "other"][..], &over].concat();
    let replace = ["array", "replace", "tank", "--slot", "1", "--with", swap, "--overwrite", swap];
    let (wipe, foreign) = (["drive", "wipe", blank], ["drive", "wipe", swap, "--overwrite", swap]);
    let shrink = ["volume", "resize", "tank/db", "--size", "4M"];
    let before = all(place);
    for (words, lost) in [
        (&["array", "delete", "tank"][..], "volume tank/db, 8 MiB"),
        (&["volume", "delete", "tank/db"], "volume tank/db, 8 MiB"),
        (&shrink, "4194304 bytes"),
        (&create, "swap"),
        (&replace, "swap"),
        (&wipe, "nothing known"),
        (&foreign, "swap"),
    ] {
        let (shown, code) = stage.types("yes", words);
        assert_eq!(code, Some(3), "{words:?}: {shown}");
        assert!(shown.contains("it would destroy") || shown.contains("will be destroyed"));
        assert!(shown.contains(lost) && shown.contains("nothing is done"), "{words:?}: {shown}");
        assert_eq!(all(place), before, "{words:?}");
        let (shown, code) = stage.types("", &[words, &["--dry-run"]].concat());
        assert_eq!(code, Some(0), "{words:?}: {shown}");
        assert_eq!(daemon.call(&[words, &["--dry-run"]].concat())["dry_run"], true);
        assert_eq!(all(place), before, "{words:?}");
    }
    let (shown, code) = stage.types("tank/db", &shrink);
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(get(place, &stage.volume)["CapacityBytes"], 4 << 20);
    assert_eq!(stage.types(swap, &foreign).1, Some(0));
    // What destroys nothing, and what is agreed to by a word, asks nobody.
    let grow = ["volume", "resize", "tank/db", "--size", "8M"];
    assert_eq!(stage.types("", &grow).1, Some(0));
    assert_eq!(stage.types("", &["array", "delete", "tank", "--yes"]).1, Some(0));
    assert_eq!(get(place, POOLS)["Members@odata.count"], 0);
    stage.daemon.stop();
}

#[test]
fn a_command_that_would_destroy_something_else_by_now_does_nothing() {
    let stage = Stage::new("confirm: meanwhile", "");
    let delete = ["array", "delete", "tank"];
    // While the person types, a volume is made.
    let meanwhile = TERMINAL.replace(
        "os.write(",
        "import subprocess; subprocess.run([sys.argv[2], 'volume', 'create', 'tank/new', \
         '--size', '4M'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True); \
         os.write(",
    );
    let mut command = program("python3");
    command.args(["-c", &meanwhile, "tank", env!("CARGO_BIN_EXE_palisade")]).args(delete);
    let output = output(command.env("PALISADE_SOCKET", stage.place.file("socket")));
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(3), "{shown}");
    assert!(shown.contains("tank/new") && shown.contains("no longer"), "{shown}");
    assert_eq!(get(&stage.place, POOLS)["Members@odata.count"], 1);
    stage.daemon.stop();
}

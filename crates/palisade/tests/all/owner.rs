//! Arrays whose drives several servers reach: which of these has one.

use crate::common::place::{Daemon, Place, uuid};
use crate::common::shelf::Shelf;
use crate::common::{LIMIT, Rng, text, until};
use serde_json::Value;
use std::fmt::Write;
use std::process::Command;

/// Which tests bring about what is said of such arrays: rows as those of [`crate::messages`].
pub const OWNERS: &[(&str, &str, &[&str])] = &[
    (
        "crates/control/src/failure_tests.rs",
        "who_takes_an_array_over_is_told_all_that_has_to_be_said",
        &["NeedsOthersOff", "NoHostId", "OwnerNotConfirmed", "OwnerMeanwhile"],
    ),
    (
        "crates/control/src/owning_tests.rs",
        "what_another_server_has_is_left_alone",
        &["ArrayOwned", "DriveOfServer", "ArrayOfServer"],
    ),
    (
        "crates/control/src/owning_tests.rs",
        "an_array_that_is_taken_over_is_let_go",
        &["TakenOver", "ArrayTakenOver"],
    ),
    (
        "crates/control/src/ownership_tests.rs",
        "a_server_is_known_by_its_host_id_and_its_start",
        &["ServerNotKnown"],
    ),
    (
        "crates/palisade/tests/all/owner.rs",
        "two_daemons_of_one_host_id_are_not_both_an_owner",
        &["HostIdTaken"],
    ),
    (
        "crates/palisade/tests/all/owner.rs",
        "an_array_that_another_server_had_is_taken_over_by_a_person",
        &["OwnerOnDrive"],
    ),
];

/// How often a daemon of these tests says that it lives.
const HEARTBEAT_MS: u64 = 100;

/// A server that a daemon can be.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its host id.
    pub host: String,
    /// What its configuration says of it.
    pub says: String,
}

impl Server {
    /// One that no other daemon is.
    pub fn new(rng: &mut Rng) -> Self {
        let host = uuid(rng);
        let mut says = String::from("[fabrics]\n");
        writeln!(says, "hostnqn = \"nqn.2014-08.org.nvmexpress:uuid:{host}\"").expect("a text");
        writeln!(says, "hostid = \"{host}\"\nheartbeat_ms = {HEARTBEAT_MS}").expect("a text");
        Self { host, says }
    }
}

/// Who has an array, as `array show` says.
pub fn owner(daemon: &Daemon, array: &str) -> Value {
    let shown = daemon.show(array);
    assert_eq!(shown["shared"], true, "{shown}");
    shown["owner"].clone()
}

/// Makes sure that this server has an array, which runs.
fn has(daemon: &Daemon, array: &str, server: &Server) {
    let own = owner(daemon, array);
    assert_eq!((&own["host_id"], &own["own"]), (&server.host.as_str().into(), &true.into()));
    assert!(own["boot_id"].as_str().is_some_and(|boot| boot.len() == 36), "{own}");
    assert!(own["heartbeat_age_ms"].is_u64(), "{own}");
    assert_eq!(daemon.show(array)["state"], "optimal");
}

/// A place with a daemon that is a server of its own.
fn begin(what: &str, drives: usize) -> (Place, Server, Daemon, Vec<String>) {
    let mut place = Place::new(what, 24);
    let server = Server::new(&mut place.rng);
    place.more = server.says.clone();
    let drives = place.drives(drives);
    let daemon = Daemon::start(&place, 1);
    (place, server, daemon, drives)
}

fn words<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

#[test]
fn a_shared_array_has_an_owner_while_it_runs_and_starts_again_by_itself() {
    let (place, server, daemon, drives) = begin("an owner", 3);
    let made = daemon.create("data", "5", &drives, &["--shared"]);
    assert_eq!((&made["shared"], &made["owner"]["own"]), (&true.into(), &true.into()));
    has(&daemon, "data", &server);
    let told = daemon.text(&["array", "show", "data"]);
    assert!(told.contains("shared, owner ") && told.contains(", this server, last"), "{told}");
    daemon.call(&["array", "stop", "data"]);
    assert_eq!(owner(&daemon, "data"), Value::Null);
    assert!(daemon.text(&["array", "show", "data"]).contains("no server has it"));
    daemon.call(&["array", "assemble", "data"]);
    has(&daemon, "data", &server);
    daemon.stop();
    let daemon = Daemon::start(&place, 1);
    has(&daemon, "data", &server);
    // A process that is no more has no array: nobody is asked.
    daemon.kill();
    let daemon = Daemon::start(&place, 1);
    has(&daemon, "data", &server);
    daemon.stop();
}

#[test]
fn an_array_that_nobody_shares_has_no_owner() {
    let (place, _, daemon, drives) = begin("no owner", 2);
    daemon.create("data", "1", &drives, &[]);
    let shown = daemon.show("data");
    assert_eq!((&shown["shared"], &shown["owner"]), (&false.into(), &Value::Null));
    assert!(!daemon.text(&["array", "show", "data"]).contains("shared"));
    daemon.kill();
    // Another host id is no matter to it, nor what is said of other servers.
    let mut place = place;
    place.more = Server::new(&mut place.rng).says;
    let daemon = Daemon::start(&place, 1);
    assert_eq!(daemon.show("data")["state"], "optimal");
    daemon.call(&["array", "stop", "data"]);
    daemon.call(&["array", "assemble", "data", "--take-over", "--other-server-is-off"]);
    daemon.stop();
}

#[test]
fn an_array_that_another_server_had_is_taken_over_by_a_person() {
    let (mut place, first, daemon, drives) = begin("a take-over", 3);
    daemon.create("data", "5", &drives, &["--shared"]);
    daemon.call(&["volume", "create", "data/v", "--size", "1M"]);
    daemon.kill();
    let wipe = ["drive", "wipe", &drives[0], "--yes"];
    let other = Server::new(&mut place.rng);
    place.more = other.says.clone();
    let daemon = Daemon::start(&place, 1);
    let shown = daemon.show("data");
    assert_eq!(shown["state"], "stopped");
    assert_eq!(shown["owner"]["own"], false);
    assert_eq!(shown["owner"]["host_id"], first.host);
    let problem = shown["problem"].as_str().expect("is told");
    assert!(problem.contains("in use by host") && problem.contains(&first.host), "{problem}");
    assert!(daemon.said().contains("assemble data --take-over"), "{}", daemon.said());
    let assemble = ["array", "assemble", "data"];
    let said = daemon.ends(3, &assemble);
    assert!(said.contains(&first.host) && said.contains("last heartbeat"), "{said}");
    assert!(said.contains("(palisade explain ArrayOwned)"), "{said}");
    for refused in [
        &wipe[..],
        &["array", "delete", "data", "--yes"],
        &[
            "array",
            "create",
            "new",
            "--level",
            "1",
            "--drives",
            &drives[0],
            &drives[1],
            "--overwrite",
            &drives[0],
            "--overwrite",
            &drives[1],
            "--yes",
        ],
    ] {
        let said = daemon.ends(3, refused);
        assert!(said.contains(&first.host), "{refused:?}: {said}");
    }
    let said = daemon.ends(3, &words(&assemble, &["--take-over"]));
    assert!(said.contains("assemble data --take-over --other-server-is-off"), "{said}");
    let take = words(&assemble, &["--take-over", "--other-server-is-off"]);
    let plan = daemon.call(&words(&take, &["--dry-run"]));
    assert!(plan["steps"][0].as_str().is_some_and(|step| step.contains(&first.host)), "{plan}");
    assert_eq!(daemon.show("data")["state"], "stopped");
    daemon.call(&take);
    has(&daemon, "data", &other);
    assert_eq!(daemon.show("data")["volumes"][0]["name"], "v");
    daemon.kill();
    // Without a daemon nobody knows whether that is this server.
    let alone = Command::new(env!("CARGO_BIN_EXE_palisade"))
        .args(wipe)
        .env("PALISADE_SOCKET", place.file("none"))
        .output()
        .expect("ran");
    assert_eq!(alone.status.code(), Some(3), "{}", text(&alone));
    assert!(text(&alone).contains(&other.host), "{}", text(&alone));
    // It is, and it may.
    let daemon = Daemon::start(&place, 1);
    has(&daemon, "data", &other);
    daemon.call(&["array", "delete", "data", "--yes"]);
    daemon.stop();
}

#[test]
fn two_daemons_of_one_host_id_are_not_both_an_owner() {
    let (place, server, daemon, drives) = begin("a host id", 2);
    daemon.create("data", "1", &drives, &["--shared"]);
    let mut other = Place::new("the same host id", 24);
    other.more = place.more.clone();
    let others = other.drives(2);
    let second = Daemon::start(&other, 1);
    let create = ["array", "create", "more", "--level", "1", "--drives", &others[0], &others[1]];
    let said = second.ends(3, &words(&create, &["--shared"]));
    assert!(said.contains(&server.host) && said.contains("hostid"), "{said}");
    assert!(said.contains("(palisade explain HostIdTaken)"), "{said}");
    // What is not shared needs none.
    second.call(&create);
    second.call(&["array", "delete", "more", "--yes"]);
    daemon.stop();
    second.call(&words(&create, &["--shared"]));
    has(&second, "more", &server);
    second.stop();
}

/// Two servers on one shelf. What behaves as a server that stands still is another test's.
#[test]
fn a_server_that_lives_keeps_its_array() {
    let shelf = Shelf::start(&["--ports", "1", "--drives", "3", "--drive-size", "96M"]);
    let (address, port) = shelf.port("A1");
    let mut places = [Place::new("one server", 8), Place::new("another server", 8)];
    let servers = places.each_mut().map(|place| Server::new(&mut place.rng));
    for (place, server) in places.iter_mut().zip(&servers) {
        place.more.clone_from(&server.says);
        place.others = vec![format!("nvme+tcp://{address}:{port}/*/1")];
    }
    let names: Vec<String> =
        (1..=3).map(|drive| format!("nvme://{}/1", shelf.subsystem(drive))).collect();
    let first = Daemon::start(&places[0], 1);
    first.create("tank", "5", &names, &[]);
    has(&first, "tank", &servers[0]);
    let second = Daemon::start(&places[1], 1);
    let own = owner(&second, "tank");
    assert_eq!((&own["host_id"], &own["own"]), (&servers[0].host.as_str().into(), &false.into()));
    assert_eq!(second.show("tank")["state"], "stopped");
    // Its heartbeat is seen again and again.
    let is_fresh = |own: &Value| own["heartbeat_age_ms"].as_u64().is_some_and(|age| age < 5_000);
    until("a heartbeat", LIMIT, || Some(owner(&second, "tank")).filter(is_fresh));
    for more in [&[][..], &["--take-over"], &["--take-over", "--other-server-is-off"]] {
        let said = second.ends(3, &words(&["array", "assemble", "tank"], more));
        assert!(said.contains(&servers[0].host), "{more:?}: {said}");
    }
    let said = second.ends(3, &["drive", "wipe", &names[0], "--yes"]);
    assert!(said.contains("(palisade explain DriveOfServer)"), "{said}");
    has(&first, "tank", &servers[0]);
    first.call(&["array", "stop", "tank"]);
    let is_free = |shown: &Value| shown["owner"].is_null() && shown.get("problem").is_none();
    until("it is nobody's", LIMIT, || Some(second.show("tank")).filter(is_free));
    assert_eq!(second.show("tank")["state"], "stopped", "a person says who starts it");
    second.call(&["array", "assemble", "tank"]);
    has(&second, "tank", &servers[1]);
    let is_others = |own: &Value| own["own"] == false;
    until("it is another's", LIMIT, || Some(owner(&first, "tank")).filter(is_others));
    second.stop();
    first.stop();
    shelf.stop();
}

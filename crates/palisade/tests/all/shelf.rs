//! `palisade shelf`, and an array on its drives by two ports of which each goes.

use crate::common::nbd::Client;
use crate::common::place::{Daemon, Place, Served};
use crate::common::shelf::Shelf;
use crate::common::{LIMIT, output, text, until};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

const WRITTEN: usize = 4 << 20;
const STEP: usize = 256 << 10;

/// What is not there, or can't be, is told, with what is.
fn refuses(shelf: &Shelf, all: &[(&[&str], &str)]) {
    for (words, told) in all {
        let refused = shelf.try_ctl(words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {}", text(&refused));
        assert!(text(&refused).contains(told), "{words:?}: {}", text(&refused));
    }
}

#[test]
fn a_shelf_says_what_it_has_and_what_it_has_not() {
    let shelf = Shelf::start(&["--ports", "4", "--drives", "6", "--serial", "S7"]);
    assert_eq!(shelf.told["serial"], "S7");
    let names: Vec<&Value> =
        shelf.told["ports"].as_array().expect("a list").iter().map(|own| &own["name"]).collect();
    assert_eq!(names, ["A1", "A2", "B1", "B2"]);
    let shown = shelf.show();
    assert_eq!(shown["ioms"][1]["ports"][1]["name"], "B2");
    assert_eq!(shown["drives"].as_array().map(Vec::len), Some(6));
    assert_eq!(shown["drives"][0]["namespaces"].as_array().map(Vec::len), Some(2));
    shelf.ctl(&["pull", "iom", "B"]);
    shelf.ctl(&["pull", "drive", "6", "--reset"]);
    shelf.ctl(&["slow", "drive", "2", "--ms", "5"]);
    shelf.ctl(&["set", "drive.3.temperature", "71"]);
    let shown = shelf.show();
    assert_eq!(
        (&shown["ioms"][0]["state"], &shown["ioms"][1]["state"]),
        (&"ok".into(), &"silent".into())
    );
    assert_eq!([1, 5].map(|at| shown["drives"][at]["state"].clone()), ["slow", "reset"]);
    let hot = shown["sensors"].as_array().expect("a list").iter().find(|own| own["state"] != "ok");
    assert_eq!(hot.expect("one")["name"], "drive.3.temperature");
    let people = shelf.ctl(&["show"]);
    assert!(people.contains("B2") && people.contains("warning"), "{people}");
    shelf.ctl(&["restore", "iom", "B"]);
    refuses(
        &shelf,
        &[
            (&["pull", "drive", "7"], "there are 1 to 6"),
            (&["restore", "port", "C1"], "there are A1, A2, B1, B2"),
            (&["pull", "fan", "1"], "a part is one of"),
            (&["set", "fan.9", "1"], "there is no fan.9"),
            (&["slow", "drive", "1", "--ms", "long"], "invalid value"),
            (&["pull", "drive", "1", "--silent", "--reset"], "cannot be used with"),
        ],
    );
    let socket = shelf.socket().to_string_lossy().into_owned();
    shelf.stop();
    let program = |words: &[&str]| output(Command::new(env!("CARGO_BIN_EXE_palisade")).args(words));
    for (words, status, told) in [
        (&["shelf", "ctl", "--control", &socket, "show"][..], 4, "no shelf answers"),
        (&["shelf", "--listen", "127.0.0.1:0", "--drives", "65"], 2, "at most 64 drives"),
        (&["shelf", "--listen", "127.0.0.1:0", "--serial", "a b"], 2, "letters"),
        (&["shelf", "--listen", "192.0.2.1:0"], 1, "port A1 at 192.0.2.1:0"),
        (&["shelf", "--listen", "here:1"], 2, "invalid"),
        (&["shelf", "--listen", "127.0.0.1:0", "--scale", "1/2"], 2, "--model"),
        (&["shelf", "--listen", "127.0.0.1:0", "--model", "x"], 2, "use sn840"),
        (&["shelf"], 2, "--listen"),
    ] {
        let refused = program(words);
        assert_eq!(refused.status.code(), Some(status), "{words:?}: {}", text(&refused));
        assert!(text(&refused).contains(told), "{words:?}: {}", text(&refused));
    }
}

#[test]
fn a_shelf_shows_its_zones() {
    let shelf = Shelf::start(&["--ports", "4", "--drives", "6"]);
    let host = "nqn.2026-11.example:h";
    shelf.ctl(&["zone", "add", "z1", "--host", host, "--drives", "1-2,5", "--namespaces", "1"]);
    let shown = shelf.show();
    let zone = &shown["zones"][0];
    assert_eq!((&zone["name"], &zone["hosts"][0]), (&"z1".into(), &host.into()));
    assert_eq!(zone["drives"], serde_json::json!([1, 2, 5]));
    assert_eq!(
        (&zone["namespaces"], &zone["ports"]),
        (&[1].into(), &serde_json::json!(["A1", "A2", "B1", "B2"]))
    );
    assert!(shelf.ctl(&["show"]).contains("z1"));
    refuses(
        &shelf,
        &[
            (&["zone", "add", "z1", "--host", host, "--drives", "1"], "a zone z1 already"),
            (&["zone", "add", "z2", "--host", host, "--drives", "1-7"], "there are 1 to 6"),
            (&["zone", "add", "z2", "--host", host, "--drives", "x"], "such as 1-8"),
            (&["zone", "add", "z2", "--drives", "1"], "--host"),
            (&["zone", "remove", "z2"], "there are z1"),
        ],
    );
    shelf.ctl(&["zone", "remove", "z1"]);
    assert_eq!(shelf.show()["zones"], Value::Array(vec![]));
    shelf.stop();
}

#[test]
fn the_management_service_of_a_shelf_is_where_it_says() {
    let shelf = Shelf::start(&["--ports", "2", "--drives", "2", "--redfish", "127.0.0.1:0"]);
    let told = shelf.told["redfish"].clone();
    let text = |key: &str| told[key].as_str().expect("text").to_owned();
    let address = text("url").strip_prefix("https://").expect("a URL").to_owned();
    std::net::TcpStream::connect(address).expect("it listens");
    assert_eq!((text("fingerprint").len(), text("user").as_str()), (95, "admin"));
    assert!(!text("password").is_empty());
    shelf.ctl(&["set", "drive.2.locate", "on"]);
    assert_eq!(shelf.show()["drives"][1]["located"], true);
    shelf.stop();
    let mut command = Command::new(env!("CARGO_BIN_EXE_palisade"));
    let words = ["shelf", "--listen", "127.0.0.1:0", "--redfish", "192.0.2.1:1"];
    let refused = output(command.args(words));
    assert_eq!(refused.status.code(), Some(1));
    assert!(self::text(&refused).contains("the management service at 192.0.2.1:1"));
}

/// The shelf called `left`, as `palisade status` has it.
fn enclosure(daemon: &Daemon) -> Value {
    let told = daemon.call(&["status"]);
    let all = told["enclosures"].as_array().expect("a list");
    all.iter().find(|own| own["name"] == "left").cloned().unwrap_or_default()
}

/// Waits until an alert stands, or is over; its text.
fn alert(daemon: &Daemon, message: &str, stands: bool) -> String {
    until(message, LIMIT, || {
        let told = daemon.call(&["alert", "list"]);
        let all = told["alerts"].as_array().expect("a list").iter();
        let own = all.clone().find(|own| own["message"] == message);
        (own.is_some() == stands).then(|| own.map_or_else(String::new, |own| own.to_string()))
    })
}

#[test]
fn a_daemon_shows_what_the_service_of_a_shelf_says() {
    let words =
        ["--ports", "2", "--drives", "4", "--drive-size", "96M", "--redfish", "127.0.0.1:0"];
    let shelf = Shelf::start(&words);
    let service = shelf.told["redfish"].clone();
    let text = |key: &str| service[key].as_str().expect("text").to_owned();
    let mut place = Place::new("a shelf that tells of itself", 8);
    let file = place.file("login");
    std::fs::write(&file, format!("{}:{}\n", text("user"), text("password"))).expect("written");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("set");
    place.more = format!(
        "[[shelf]]\nname = \"left\"\nredfish = \"{}\"\nfingerprint = \"{}\"\n\
         credentials = \"{}\"\n",
        text("url"),
        text("fingerprint"),
        file.display()
    );
    let (address, port) = shelf.port("A1");
    place.others = vec![format!("nvme+tcp://{address}:{port}/{}/*", shelf.subsystem(2))];
    let daemon = Daemon::start(&place, 2);
    // Both namespaces of drive 2 are the daemon's: one slot has them.
    let shown = until("the shelf", LIMIT, || {
        let own = enclosure(&daemon);
        let marked = own["shelf"]["bays"][1]["own"].as_array().map(Vec::len);
        (marked == Some(2)).then_some(own)
    });
    assert_eq!(
        (&shown["drives"], &shown["own"], &shown["health"]),
        (&4.into(), &1.into(), &"ok".into())
    );
    let told = &shown["shelf"];
    assert_eq!((&told["url"], &told["serial"]), (&service["url"], &shelf.told["serial"]));
    assert_eq!(
        (&told["ports"][0]["name"], &told["ports"][0]["has_link"]),
        (&"A1".into(), &true.into())
    );
    assert_eq!(told["bays"][1]["subsystem"], shelf.subsystem(2));
    let people = daemon.text(&["status"]);
    assert!(people.contains("ENCLOSURE") && people.contains("left"), "{people}");
    let own = told["bays"][1]["own"][1].as_str().expect("an identifier");
    let drive = daemon.text(&["drive", "show", own]);
    assert!(drive.contains("enclosure left, slot 2"), "{drive}");
    shelf.ctl(&["set", "fan.1", "absent"]);
    let told = alert(&daemon, "ShelfPartNotWell", true);
    assert!(told.contains("Fan 1") && told.contains("absent"), "{told}");
    assert_eq!(enclosure(&daemon)["health"], "critical");
    shelf.ctl(&["set", "fan.1", "9000"]);
    alert(&daemon, "ShelfPartNotWell", false);
    shelf.ctl(&["pull", "port", "A1"]);
    let told = alert(&daemon, "ShelfPartNotWell", true);
    assert!(told.contains("port A1") && told.contains("no link"), "{told}");
    shelf.ctl(&["restore", "port", "A1"]);
    alert(&daemon, "ShelfPartNotWell", false);
    shelf.stop();
    let told = alert(&daemon, "ShelfSilent", true);
    assert!(told.contains(&text("url")), "{told}");
    // What it said last is there.
    let shown = enclosure(&daemon);
    assert!(shown["shelf"]["silence"]["since"].is_u64(), "{shown}");
    assert_eq!(shown["shelf"]["bays"].as_array().map(Vec::len), Some(4));
    assert!(daemon.text(&["status"]).contains("silent since"));
    daemon.stop();
}

/// The service takes a connection and says nothing: the daemon answers meanwhile.
#[test]
fn nobody_waits_for_the_service_of_a_shelf_that_hangs() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let mut place = Place::new("a shelf that hangs", 8);
    let file = place.file("login");
    std::fs::write(&file, "admin:x").expect("written");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("set");
    place.more = format!(
        "[[shelf]]\nname = \"left\"\nredfish = \"https://{}\"\nfingerprint = \"{}\"\n\
         credentials = \"{}\"\n",
        listener.local_addr().expect("known"),
        "ab".repeat(32),
        file.display()
    );
    let drives = place.drives(3);
    let daemon = Daemon::start(&place, 1);
    let hung = listener.accept().expect("the daemon comes");
    daemon.create("tank", "5", &drives, &[]);
    let shown = enclosure(&daemon);
    assert_eq!((&shown["shelf"]["read"], &shown["drives"]), (&Value::Null, &0.into()));
    let told = alert(&daemon, "ShelfSilent", true);
    assert!(told.contains("the connection does not come within 5 s"), "{told}");
    drop(hung);
    daemon.stop();
}

/// A host that writes and verifies, again and again, until it is told that this is enough.
struct Load {
    is_enough: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Load {
    fn begin(place: &mut Place, served: &Served) -> Self {
        let (is_enough, rounds) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let mut data = vec![0; WRITTEN];
        place.rng.fill(&mut data);
        let mut client = Client::connect(&served.socket, &served.name).expect("connects");
        let (told, counted) = (is_enough.clone(), rounds.clone());
        let thread = std::thread::spawn(move || {
            let mut back = vec![0; STEP];
            while !told.load(Ordering::Relaxed) {
                let round = counted.load(Ordering::Relaxed);
                for at in (0..WRITTEN).step_by(STEP) {
                    let part = &mut data[at..at + STEP];
                    part[0] = round as u8;
                    client.write(at as u64, part).expect("written");
                    client.read(at as u64, &mut back).expect("read");
                    assert!(back == *part, "other data at {at}");
                }
                counted.store(round + 1, Ordering::Relaxed);
            }
        });
        Self { is_enough, rounds, thread }
    }

    /// Waits until all was written and read anew.
    fn goes_on(&self) {
        let two_more = self.rounds.load(Ordering::Relaxed) + 2;
        let is_so = || self.rounds.load(Ordering::Relaxed) >= two_more || self.thread.is_finished();
        until("what the host writes", LIMIT, || is_so().then_some(()));
    }

    fn end(self) {
        self.is_enough.store(true, Ordering::Relaxed);
        self.thread.join().expect("every byte was right, and no request failed");
    }
}

/// Drives are at some ports of a shelf only, and any port tells of all: each is connected where it
/// is.
#[test]
fn all_that_a_port_tells_of_is_connected_where_it_is() {
    let shelf = Shelf::start(&["--ports", "6", "--drives", "6", "--drive-size", "64M"]);
    let place = Place::new("all of a shelf", 8);
    let daemon = Daemon::start(&place, 1);
    let (address, port) = shelf.port("A1");
    let all = ["drive", "connect-all", "-a", &address, "-s", &port];
    let connected = daemon.call(&all);
    assert_eq!(connected["drives"].as_array().map(Vec::len), Some(12), "{connected}");
    let told = daemon.call(&["drive", "paths"]);
    let drives = told["drives"].as_array().expect("a list");
    assert_eq!(drives.len(), 12);
    for (at, drive) in drives.iter().enumerate() {
        let paths = drive["paths"].as_array().expect("a list");
        let (pair, is_live) = (at / 4, |own: &Value| own["state"] == "live");
        let ports = ["A", "B"].map(|module| shelf.port(&format!("{module}{}", pair + 1)));
        let mut found: Vec<_> = paths.iter().map(|own| own["address"].clone()).collect();
        let mut meant: Vec<Value> =
            ports.iter().map(|(address, port)| format!("{address}:{port}").into()).collect();
        found.sort_by_key(Value::to_string);
        meant.sort_by_key(Value::to_string);
        assert!(found == meant && paths.iter().all(is_live), "{drive}");
    }
    // Again, and while a drive is nowhere to be found any more: what is there stays so.
    shelf.ctl(&["pull", "port", "A3", "--reset"]);
    assert_eq!(daemon.call(&all)["drives"].as_array().map(Vec::len), Some(12));
    let everything = format!("nvme+tcp://{address}:{port}/*/1");
    daemon.create("tank", "6", &[everything], &[]);
    assert_eq!(daemon.show("tank")["slots"].as_array().map(Vec::len), Some(6));
    daemon.stop();
    shelf.stop();
}

/// Each port goes by itself, by a reset and in silence; the array loses no drive by that.
#[test]
fn an_array_is_on_a_shelf_by_the_port_that_is_left() {
    let shelf = Shelf::start(&["--ports", "2", "--drives", "4", "--drive-size", "96M"]);
    let mut place = Place::new("a shelf", 8);
    place.drive_deadline_ms = 120_000;
    place.more = "[fabrics]\nkeep_alive_tmo = 2\nfast_io_fail_tmo = 60\n".to_owned();
    let daemon = Daemon::start(&place, 2);
    // All first namespaces that are found at the two ports: each drive once, with two paths.
    let all = |port| {
        let (address, number) = shelf.port(port);
        format!("nvme+tcp://{address}:{number}/*/1")
    };
    daemon.create("tank", "5", &["A1", "B1"].map(all), &[]);
    let own = |slot: &Value| slot["drive"].as_str().expect("a name").to_owned();
    let slots = daemon.show("tank")["slots"].clone();
    let slots: Vec<String> = slots.as_array().expect("a list").iter().map(own).collect();
    let names = (1..=4).map(|drive| format!("nvme://{}/1", shelf.subsystem(drive)));
    assert_eq!(slots, names.collect::<Vec<_>>());
    let none = all("A1").replace("*/1", "*/3");
    let refused = daemon.refused(&["array", "create", "t2", "--level", "0", "--drives", &none]);
    assert!(refused.contains("stands for 0 drives"), "{refused}");
    let served = daemon.volume(&place, "tank/v", &WRITTEN.to_string());
    let load = Load::begin(&mut place, &served);
    let states = |port: usize| -> Vec<String> {
        let told = daemon.call(&["drive", "paths"]);
        let drives = told["drives"].as_array().expect("a list").iter();
        let own = drives.map(|own| own["paths"][port]["state"].as_str().expect("text").to_owned());
        own.collect()
    };
    let all_are = |port, wanted: &[&str]| states(port).iter().all(|own| wanted.contains(&&**own));
    for (part, name, how) in
        [("port", "A1", "--reset"), ("iom", "B", "--silent"), ("port", "A1", "--silent")]
    {
        let port = usize::from(name == "B");
        load.goes_on();
        shelf.ctl(&["pull", part, name, how]);
        let gone = ["fencing", "connecting"];
        until("the loss", LIMIT, || all_are(port, &gone).then_some(()));
        load.goes_on();
        shelf.ctl(&["restore", part, name]);
        until("the return", LIMIT, || all_are(port, &["live"]).then_some(()));
    }
    load.goes_on();
    load.end();
    assert_eq!(daemon.show("tank")["state"], "optimal");
    daemon.scrub("tank");
    let hosts = |shown: &Value| shown["drives"][0]["hosts"].as_array().map(Vec::len);
    assert_eq!(hosts(&shelf.show()), Some(1));
    daemon.stop();
    shelf.stop();
}

/// A daemon with an array of level 5 on a namespace of each drive of a shelf, which loses its paths
/// within a second.
fn on_shelf(shelf: &Shelf, place: &mut Place, drives: usize) -> (Daemon, Vec<String>) {
    place.more = "[fabrics]\nkeep_alive_tmo = 1\nfast_io_fail_tmo = 1\n".to_owned();
    let (address, port) = shelf.port("A1");
    place.others = vec![format!("nvme+tcp://{address}:{port}/*/1")];
    let daemon = Daemon::start(place, 2);
    let names: Vec<String> =
        (1..=drives).map(|drive| format!("nvme://{}/1", shelf.subsystem(drive))).collect();
    daemon.create("tank", "5", &names, &[]);
    (daemon, names)
}

fn slot_state(daemon: &Daemon, slot: usize) -> String {
    daemon.show("tank")["slots"][slot]["state"].as_str().expect("text").to_owned()
}

/// What `palisade status` says of the array.
fn advice(daemon: &Daemon) -> String {
    daemon.call(&["status"])["next"].to_string()
}

fn events(daemon: &Daemon) -> String {
    daemon.text(&["event", "list", "--json"])
}

/// Pulled out, written meanwhile, put back: it gets what it missed, and not if a person has taken
/// it out, or somebody has used it.
#[test]
fn a_drive_of_a_shelf_comes_back_by_itself_unless_somebody_had_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().to_string_lossy().into_owned();
    let shelf =
        Shelf::start(&["--ports", "1", "--drives", "4", "--drive-size", "96M", "--dir", &dir]);
    let mut place = Place::new("a drive that comes back", 8);
    let (daemon, names) = on_shelf(&shelf, &mut place, 3);
    let served = daemon.volume(&place, "tank/v", &WRITTEN.to_string());
    let load = Load::begin(&mut place, &served);
    let is = |slot, wanted: &'static str| {
        until(wanted, LIMIT, || (slot_state(&daemon, slot) == wanted).then_some(()));
    };
    for how in ["--reset", "--silent"] {
        load.goes_on();
        shelf.ctl(&["pull", "drive", "2", how]);
        is(1, "failed");
        until("it is told", LIMIT, || {
            advice(&daemon).contains("comes back by itself").then_some(())
        });
        load.goes_on();
        shelf.ctl(&["restore", "drive", "2"]);
        is(1, "in-sync");
        until("optimal", LIMIT, || (daemon.show("tank")["state"] == "optimal").then_some(()));
    }
    // A person takes it out: it stays so, whatever becomes of its paths.
    daemon.call(&["array", "fail", "tank", "--drive", "slot:1"]);
    let paths = |wanted: &str| {
        let told = daemon.call(&["drive", "paths", &names[1]]);
        (told["drives"][0]["paths"][0]["state"] == wanted).then_some(())
    };
    shelf.ctl(&["pull", "drive", "2", "--reset"]);
    until("it is gone", LIMIT, || paths("connecting"));
    shelf.ctl(&["restore", "drive", "2"]);
    until("it is back", LIMIT, || paths("live"));
    // Looked at since, and left alone.
    shelf.ctl(&["pull", "drive", "1", "--reset"]);
    load.is_enough.store(true, Ordering::Relaxed);
    assert_eq!(slot_state(&daemon, 1), "failed");
    drop(load.thread.join());
    shelf.ctl(&["restore", "drive", "1"]);
    until("it runs again", LIMIT, || {
        let shown = daemon.show("tank");
        (shown["state"] == "degraded" && shown["slots"][0]["state"] == "in-sync").then_some(())
    });
    assert_eq!(slot_state(&daemon, 1), "failed");
    daemon.call(&["array", "replace", "tank", "--slot", "1", "--with", &names[1]]);
    is(1, "in-sync");
    // Another server has it meanwhile.
    shelf.ctl(&["pull", "drive", "3", "--reset"]);
    let mut client = Client::connect(&served.socket, &served.name).expect("connects");
    client.write(0, &[7; 4096]).expect("the others have it");
    is(2, "failed");
    spoil_records(folder.path(), 3);
    shelf.ctl(&["restore", "drive", "3"]);
    until("it is told", LIMIT, || events(&daemon).contains("DriveNotTaken").then_some(()));
    assert!(events(&daemon).contains("as it was when it went"), "{}", events(&daemon));
    assert_eq!(slot_state(&daemon, 2), "failed");
    assert!(advice(&daemon).contains("replace tank --slot 2"), "{}", advice(&daemon));
    daemon.stop();
    shelf.stop();
}

/// Overwrites the records of a drive's first namespace: as one who uses it for himself.
fn spoil_records(folder: &std::path::Path, drive: usize) {
    use std::os::unix::fs::FileExt;
    let name = format!("drive-{drive}");
    let files = folder.read_dir().expect("read").map(|entry| entry.expect("read").path());
    let is_its = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|own| own.to_string_lossy().contains(&name))
    };
    let path = files.filter(is_its).min().expect("there is one");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opened");
    let bytes = file.metadata().expect("read").len();
    for at in [0, bytes - (1 << 20)] {
        file.write_all_at(&vec![0; 1 << 20], at).expect("written");
    }
}

/// The whole shelf is out for a while: no drive fails, and the array serves again by itself all
/// that was acknowledged.
#[test]
fn a_shelf_that_starts_anew_fails_no_drive() {
    let shelf = Shelf::start(&["--ports", "1", "--drives", "4", "--drive-size", "96M"]);
    let mut place = Place::new("a shelf that starts anew", 8);
    let (daemon, _) = on_shelf(&shelf, &mut place, 4);
    let served = daemon.volume(&place, "tank/v", &WRITTEN.to_string());
    let mut data = vec![0; WRITTEN];
    place.rng.fill(&mut data);
    for how in ["--silent", "--reset"] {
        place.rng.fill(&mut data[..STEP]);
        let mut client = Client::connect(&served.socket, &served.name).expect("connects");
        client.write(0, &data).expect("written");
        shelf.ctl(&["pull", "shelf", how]);
        assert!(!client.can_write(0, &data[..STEP]), "nobody has it");
        until("the array waits", LIMIT, || {
            advice(&daemon).contains("starts by itself").then_some(())
        });
        let shown = daemon.show("tank");
        assert_eq!(shown["state"], "failed");
        assert_eq!(shown["exports"][0]["serving"], false);
        until("nobody is served", LIMIT, || {
            Client::connect(&served.socket, &served.name).is_err().then_some(())
        });
        shelf.ctl(&["restore", "shelf"]);
        let mut client = until("it is served again", LIMIT, || {
            Client::connect(&served.socket, &served.name).ok()
        });
        let shown = daemon.show("tank");
        let is_whole = |slot: &Value| slot["state"] == "in-sync";
        assert!(shown["slots"].as_array().expect("a list").iter().all(is_whole), "{shown}");
        let mut back = vec![0; WRITTEN];
        client.read(0, &mut back).expect("read");
        assert!(back == data, "other bytes than were acknowledged");
        drop(client);
        until("optimal", LIMIT, || (daemon.show("tank")["state"] == "optimal").then_some(()));
    }
    assert!(events(&daemon).contains("ArrayWaits"));
    daemon.scrub("tank");
    // A person who stops it while it waits has it in hand.
    shelf.ctl(&["pull", "shelf", "--reset"]);
    let mut client = Client::connect(&served.socket, &served.name).expect("connects");
    assert!(!client.can_write(0, &data[..STEP]), "nobody has it");
    until("the array waits", LIMIT, || advice(&daemon).contains("starts by itself").then_some(()));
    daemon.call(&["array", "stop", "tank"]);
    shelf.ctl(&["restore", "shelf"]);
    let is_found = || {
        let arrays = daemon.call(&["array", "list"]);
        let own =
            arrays["arrays"].as_array().expect("a list").iter().find(|own| own["name"] == "tank");
        let slots = own.and_then(|own| own["slots"].as_array().cloned()).unwrap_or_default();
        let is_there = |slot: &Value| slot["state"] == "in-sync";
        (slots.len() == 4 && slots.iter().all(is_there)).then(|| own.cloned()).flatten()
    };
    let found = until("its drives are back", LIMIT, is_found);
    assert_eq!(found["state"], "stopped");
    daemon.call(&["array", "assemble", "tank"]);
    let mut client =
        until("it is served", LIMIT, || Client::connect(&served.socket, &served.name).ok());
    client.read(0, &mut vec![0; STEP]).expect("read");
    daemon.stop();
    shelf.stop();
}

/// After a loss of power the daemon is there before the shelf, and before one of its drives: the
/// array starts when it can, and has that drive once it comes.
#[test]
fn a_shelf_that_comes_after_the_daemon_is_not_too_late() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().to_string_lossy().into_owned();
    let words = ["--ports", "1", "--drives", "4", "--drive-size", "96M", "--dir", &dir];
    let shelf = Shelf::start(&words);
    let port = shelf.port("A1").1;
    let mut place = Place::new("a shelf that is late", 8);
    let (daemon, names) = on_shelf(&shelf, &mut place, 4);
    daemon.volume(&place, "tank/v", &WRITTEN.to_string());
    daemon.stop();
    shelf.stop();

    let daemon = Daemon::start(&place, 2);
    let arrays = |daemon: &Daemon| daemon.call(&["array", "list"])["arrays"].clone();
    assert_eq!(arrays(&daemon), Value::Array(Vec::new()), "nobody knows of it yet");
    let shelf = Shelf::start_at(&port, &words);
    let runs = |daemon: &Daemon, wanted: &'static str| {
        until(wanted, LIMIT, || (arrays(daemon)[0]["state"] == wanted).then_some(()));
    };
    runs(&daemon, "optimal");
    // One that a person stops stays so.
    daemon.call(&["array", "stop", "tank"]);
    daemon.stop();

    // The start-up has to do without a drive.
    shelf.ctl(&["pull", "drive", "2", "--reset"]);
    place.drive_wait_ms = 2_000;
    let daemon = Daemon::start(&place, 2);
    runs(&daemon, "degraded");
    assert_eq!(slot_state(&daemon, 1), "missing");
    shelf.ctl(&["restore", "drive", "2"]);
    until("it has its slot", LIMIT, || (slot_state(&daemon, 1) == "in-sync").then_some(()));
    runs(&daemon, "optimal");
    assert_eq!(daemon.show("tank")["slots"][1]["drive"], Value::from(&*names[1]));
    daemon.stop();
    shelf.stop();
}

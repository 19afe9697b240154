//! Volumes over NVMe/TCP: the command line, what is recorded, and who gets in.

use super::place::{Place, eventually};
use crate::common::nvme::Host;
use ::nvme::status::Status;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::ErrorKind;

pub const HOST: &str = "nqn.2026-11.example:host";
const ANYWHERE: &str = "127.0.0.1:0";

impl Place {
    /// An array with two volumes.
    fn with_volumes() -> Self {
        let place = Self::running(3);
        place.create("data", "5", &[0, 1, 2]);
        for name in ["data/v", "data/w"] {
            place.json(&["volume", "create", name, "--size", "4M"]);
        }
        place
    }

    /// Two arrays whose volumes are exported at one address; a host of the second, "more".
    fn with_more(level: &str, drives: &[usize]) -> (Self, Host) {
        let place = Self::running(2 + drives.len());
        place.create("data", "1", &[0, 1]);
        place.create("more", level, drives);
        for name in ["data/v", "more/w"] {
            place.json(&["volume", "create", name, "--size", "4M"]);
        }
        let first = place.export("data/v", &["--any-host"]);
        let address = first["listeners"][0].as_str().expect("text");
        let words = ["export", "create", "more/w", "--nvme-tcp", address, "--any-host"];
        let host = host_of(&place.json(&words), HOST);
        (place, host)
    }

    pub fn export(&self, volume: &str, more: &[&str]) -> Value {
        self.json(&[&["export", "create", volume, "--nvme-tcp", ANYWHERE], more].concat())
    }
}

pub fn host_of(export: &Value, name: &str) -> Host {
    Host {
        address: export["listeners"][0].as_str().expect("an address").into(),
        subsystem: export["subsystem"].as_str().expect("a name").into(),
        name: name.into(),
    }
}

#[test]
fn an_export_says_what_hosts_need() {
    let place = Place::with_volumes();
    let made = place.export("data/v", &["--host", HOST]);
    let shown = place.json(&["export", "show", "data:1"]);
    for key in ["subsystem", "nsid", "nguid", "uuid", "listeners", "hosts", "connections"] {
        assert_eq!(made[key], shown[key], "{key}");
    }
    let array = place.json(&["array", "show", "data"]);
    let uuid = array["volumes"][0]["uuid"].as_str().expect("text");
    let own = format!("nqn.2014-08.org.nvmexpress:uuid:{uuid}");
    assert_eq!((&shown["subsystem"], &shown["nsid"]), (&json!(own), &json!(1)));
    assert_eq!((&shown["hosts"], &shown["any_host"]), (&json!([HOST]), &json!(false)));
    assert_eq!(shown["uuid"], array["volumes"][0]["uuid"]);
    let digits = shown["uuid"].as_str().expect("text").replace('-', "");
    assert_eq!(shown["nguid"], json!(digits));
    let listener = shown["listeners"][0].as_str().expect("text");
    assert_eq!(shown["uri"], json!(format!("nvme+tcp://{listener}/{own}/1")));
    assert_eq!((&shown["connections"], shown.get("nbd")), (&json!([]), None));
    let text = place.run(&["export", "show", "data:1"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(HOST) && text.contains(&digits) && text.contains(listener), "{text}");
    // The second volume has a subsystem of its own.
    let second = place.export("data/w", &["--any-host", "--advertise", "203.0.113.7:44200"]);
    assert_eq!((&second["nsid"], &second["any_host"]), (&json!(1), &json!(true)));
    assert_ne!(second["subsystem"], shown["subsystem"]);
    assert_eq!(second["advertise"], json!(["203.0.113.7:44200"]));
    assert!(second["uri"].as_str().expect("text").starts_with("nvme+tcp://203.0.113.7:44200/"));
    assert!(place.refuses(1, &["export", "show", "data:9"]).contains("export list"));
}

/// What a host has left to do for a volume that is gone must not come to another.
#[test]
fn the_number_of_a_namespace_is_not_given_to_another_volume() {
    let place = Place::with_volumes();
    place.json(&["volume", "create", "data/x", "--size", "4M"]);
    let named = ["--host", HOST, "--subsystem", "nqn.2026-11.example:s"];
    let nsid = |volume: &str| place.export(volume, &named)["nsid"].clone();
    assert_eq!([nsid("data/v"), nsid("data/w")], [json!(1), json!(2)]);
    place.json(&["export", "delete", "data:2"]);
    assert_eq!(nsid("data/x"), json!(3), "2 was another's");
    assert_eq!(nsid("data/w"), json!(2), "and is its own again");
    // Of several that are asked for at once each gets a number of its own.
    for id in 1..4 {
        place.json(&["export", "delete", &format!("data:{id}")]);
    }
    let words = |volume: &'static str| {
        [&["export", "create", volume, "--nvme-tcp", ANYWHERE], &named[..]].concat()
    };
    std::thread::scope(|scope| {
        for volume in ["data/v", "data/w", "data/x"] {
            scope.spawn(|| place.json(&words(volume)));
        }
    });
    let list = place.json(&["export", "list"]);
    let all = list["exports"].as_array().expect("a list");
    let mut numbers: Vec<u64> = all.iter().map(|e| e["nsid"].as_u64().expect("set")).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn what_makes_no_export_is_refused_with_advice() {
    let place = Place::with_volumes();
    let create = |more: &[&'static str]| [&["export", "create", "data/v"], more].concat();
    let nvme = |more: &[&'static str]| create(&[&["--nvme-tcp", ANYWHERE], more].concat());
    assert!(place.refuses(2, &nvme(&[])).contains("--any-host"));
    let wrong = ["--host", "iqn.2026-11.example:host"];
    assert!(place.refuses(2, &nvme(&wrong)).contains("/etc/nvme/hostnqn"));
    let subsystem = ["--any-host", "--subsystem", "nqn.2014-08.org.nvmexpress.discovery"];
    assert!(place.refuses(2, &nvme(&subsystem)).contains("discovery"));
    let advertise = ["--any-host", "--advertise", "here"];
    assert!(place.refuses(2, &nvme(&advertise)).contains("no port"));
    let advertise = ["--any-host", "--advertise", "nas.example:4420"];
    assert!(place.refuses(2, &nvme(&advertise)).contains("not a name"));
    let advertise = ["--any-host", "--advertise", "192.0.2.1:0"];
    assert!(place.refuses(2, &nvme(&advertise)).contains("port 0"));
    let two = ["--any-host", "--advertise", "a:1", "--advertise", "b:1"];
    assert!(place.refuses(2, &nvme(&two)).contains("--advertise"));
    let twice = create(&["--nvme-tcp", "127.0.0.1:1", "--nvme-tcp", "127.0.0.1:1", "--any-host"]);
    assert!(place.refuses(2, &twice).contains("once"));
    let address = create(&["--nvme-tcp", "somewhere", "--any-host"]);
    assert!(place.refuses(2, &address).contains("--nvme-tcp ADDR:PORT"));
    for usage in [
        create(&[]),
        create(&["--nbd", ANYWHERE, "--any-host"]),
        create(&["--nbd", ANYWHERE, "--nvme-tcp", ANYWHERE, "--any-host"]),
        nvme(&["--any-host", "--host", HOST]),
    ] {
        assert!(!place.fails(2, &usage).is_empty(), "{usage:?}");
    }
    assert_eq!(place.json(&["export", "list"])["exports"], json!([]), "nothing is left of these");
    // One volume is one namespace.
    place.export("data/v", &["--any-host"]);
    let again = nvme(&["--any-host", "--subsystem", "nqn.2026-11.example:other"]);
    assert!(place.refuses(1, &again).contains("export delete data:1"));
    // An address speaks one protocol.
    let address = place.json(&["export", "show", "data:1"])["listeners"][0].clone();
    let address = address.as_str().expect("text");
    let nbd = ["export", "create", "data/w", "--nbd", address];
    assert!(place.refuses(1, &nbd).contains("in use"));
}

#[test]
fn a_named_host_reads_and_writes_and_others_do_not() {
    let place = Place::with_volumes();
    let made = place.export("data/v", &["--host", HOST]);
    let host = host_of(&made, HOST);
    let stranger = Host { name: format!("{HOST}2"), ..host.clone() };
    let refused = stranger.connect(0, 0xffff).expect("answered").connected;
    assert_eq!(refused, Err(Status::CONNECT_HOST));
    let nameless = Host { name: String::new(), ..host.clone() };
    let refused = nameless.connect(0, 0xffff).expect("answered").connected;
    assert_eq!(refused, Err(Status::CONNECT_PARAMETERS));
    let (mut admin, mut queue) = host.enter().expect("connected");
    assert_eq!(admin.namespaces().expect("listed"), [1]);
    let data: Vec<u8> = (0..300 * 512u32).map(|at| (at / 3) as u8).collect();
    queue.write(1, 11, &data).expect("written");
    assert!(queue.read(1, 11, 300).expect("read") == data);
    assert!(queue.read(1, 8191, 2).is_err(), "behind the end");
    let shown = place.json(&["export", "show", "data:1"]);
    assert_eq!(shown["connections"], connected(HOST));
    // Resized, degraded, another namespace: the host goes on.
    place.json(&["volume", "resize", "data/v", "--size", "5M"]);
    assert_eq!(queue.read(1, 8191, 2).expect("read"), vec![0; 1024]);
    place.json(&["array", "fail", "data", "--drive", &place.name(1)]);
    assert!(queue.read(1, 11, 300).expect("read") == data);
    assert_eq!(admin.identify(1, 0).expect("told")[24..32], *b"Palisade");
    place.json(&["export", "delete", "data:1"]);
    eventually("disconnected", || queue.read(1, 0, 1).is_err() && admin.namespaces().is_err());
    assert!(host.connect(0, 0xffff).is_err(), "nobody listens any more");
}

/// The one host that has two queues here.
fn connected(host: &str) -> serde_json::Value {
    let here = "127.0.0.1";
    json!([{"host": host, "controller": 1, "queues": 2, "address": here, "local_address": here}])
}

/// As SPDK's `perf` comes, unless it is told a name.
#[test]
fn a_host_without_a_name_is_shown_where_any_may_come() {
    let place = Place::with_volumes();
    let made = place.export("data/v", &["--any-host"]);
    let (_admin, mut queue) = host_of(&made, "").enter().expect("connected");
    queue.write(1, 0, &[7; 4096]).expect("written");
    assert_eq!(queue.read(1, 0, 8).expect("read"), [7; 4096]);
    let shown = place.json(&["export", "show", "data:1"]);
    assert_eq!(shown["connections"], connected(""));
    let text = String::from_utf8(place.run(&["export", "show", "data:1"]).stdout).expect("text");
    let line =
        "connected   a host without a name from 127.0.0.1 by 127.0.0.1, controller 1, 2 queues";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_namespace_is_the_same_after_a_restart_and_elsewhere() {
    let mut place = Place::with_volumes();
    let two = ["--nvme-tcp", "127.0.0.1:0", "--any-host"];
    let made = place.export("data/w", &two);
    assert_eq!(made["listeners"].as_array().expect("a list").len(), 2);
    let host = host_of(&made, HOST);
    let (_admin, mut queue) = host.enter().expect("connected");
    queue.write(1, 0, &[7; 4096]).expect("written");
    assert_eq!(place.end(Signal::TERM), Some(0));
    assert!(queue.read(1, 0, 8).is_err());
    place.start();
    let shown = place.json(&["export", "show", "data:1"]);
    for key in ["subsystem", "nsid", "nguid", "uuid", "listeners", "hosts"] {
        assert_eq!(made[key], shown[key], "{key}");
    }
    let second =
        Host { address: made["listeners"][1].as_str().expect("text").into(), ..host.clone() };
    for host in [host, second] {
        let (mut admin, mut queue) = host.enter().expect("connected");
        assert_eq!(queue.read(1, 0, 8).expect("read"), [7; 4096]);
        let descriptors = admin.identify(3, 1).expect("told");
        let nguid: String = descriptors[4..20].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(json!(nguid), made["nguid"]);
    }
}

#[test]
fn an_address_that_is_busy_at_a_start_is_told_and_tried_again() {
    let mut place = Place::with_volumes();
    let made = place.export("data/v", &["--any-host"]);
    let address = made["listeners"][0].as_str().expect("text").to_owned();
    assert_eq!(place.end(Signal::TERM), Some(0));
    let taken = std::net::TcpListener::bind(&address).expect("free now");
    place.start();
    let shown = place.json(&["export", "show", "data:1"]);
    assert_eq!(shown["serving"], json!(false));
    assert!(shown["problem"].as_str().expect("text").contains(&address));
    // Asking for something else does not quietly serve what was asked for before.
    let other = ["export", "create", "data/v", "--nvme-tcp", ANYWHERE, "--host", HOST];
    assert!(place.refuses(1, &other).contains("export delete data:1"));
    drop(taken);
    eventually("served", || place.json(&["export", "show", "data:1"])["serving"] == json!(true));
    host_of(&made, HOST).enter().expect("connected");
}

/// Such as that of an interface which is not up yet.
#[test]
fn an_address_that_can_not_be_had_keeps_nobody_from_the_others() {
    let mut place = Place::with_volumes();
    let made = place.export("data/v", &["--nvme-tcp", ANYWHERE, "--any-host"]);
    let address = |at: usize| made["listeners"][at].as_str().expect("text").to_owned();
    assert_eq!(place.end(Signal::TERM), Some(0));
    let taken = std::net::TcpListener::bind(address(0)).expect("free now");
    place.start();
    let shown = place.json(&["export", "show", "data:1"]);
    assert_eq!(shown["serving"], json!(true));
    let problem = shown["problem"].as_str().expect("text");
    assert!(problem.contains(&address(0)) && !problem.contains(&address(1)), "{problem}");
    assert!(place.said().contains(problem), "{}", place.said());
    let second = Host { address: address(1), ..host_of(&made, HOST) };
    let (mut admin, _queue) = second.enter().expect("connected");
    drop(taken);
    let has_problem = || place.json(&["export", "show", "data:1"])["problem"] != Value::Null;
    eventually("served", || !has_problem());
    host_of(&made, HOST).enter().expect("connected");
    assert_eq!(admin.namespaces().expect("listed"), [1], "who was there goes on");
}

/// Hosts give up for good where they are told that there is no such subsystem.
#[test]
fn hosts_of_an_array_that_is_stopped_are_to_come_again() {
    let (place, host) = Place::with_more("1", &[2, 3]);
    let _connected = host.enter().expect("connected");
    place.json(&["array", "stop", "more"]);
    let refused = || host.connect(0, 0xffff).expect("answered").connected;
    assert_eq!(refused(), Err(Status::CONNECT_PARAMETERS.passing()));
    place.json(&["array", "assemble", "more"]);
    host.enter().expect("connected");
    place.json(&["export", "delete", "more:1"]);
    assert_eq!(refused(), Err(Status::CONNECT_PARAMETERS));
}

/// Its drives may come, and a person may start it: until it is deleted.
#[test]
fn hosts_of_an_array_that_can_not_be_started_are_to_come_again() {
    let (mut place, host) = Place::with_more("5", &[2, 3, 4]);
    assert_eq!(place.end(Signal::TERM), Some(0));
    for drive in [3, 4] {
        std::fs::rename(place.drive(drive), place.dir.path().join(format!("away{drive}")))
            .expect("moved");
    }
    place.start();
    assert_eq!(place.state("more"), "stopped");
    let refused = || host.connect(0, 0xffff).expect("answered").connected;
    assert_eq!(refused(), Err(Status::CONNECT_PARAMETERS.passing()));
    place.json(&["array", "delete", "more", "--yes"]);
    assert_eq!(refused(), Err(Status::CONNECT_PARAMETERS));
}

/// Two mirrors, of drives 0 and 1 and of 2 and 3, whose volumes are namespaces 1 and 2 of one
/// subsystem; a host of both.
fn with_two_in_one() -> (Place, Host) {
    let place = Place::running(4);
    for (array, drives) in [("data", [0, 1]), ("more", [2, 3])] {
        place.create(array, "1", &drives);
        place.json(&["volume", "create", &format!("{array}/v"), "--size", "4M"]);
    }
    let named = ["--any-host", "--subsystem", "nqn.2026-11.example:s"];
    let first = place.export("data/v", &named);
    let address = first["listeners"][0].as_str().expect("text");
    let words = ["export", "create", "more/v", "--nvme-tcp", address];
    let second = place.json(&[&words[..], &named].concat());
    assert_eq!((&first["nsid"], &second["nsid"]), (&json!(1), &json!(2)));
    let host = host_of(&first, HOST);
    (place, host)
}

/// "Do not retry" is an error of the file system above, and its end.
#[test]
fn a_daemon_that_ends_tells_nobody_not_to_retry() {
    let (mut place, host) = with_two_in_one();
    let (started, begun) = std::sync::mpsc::channel();
    let write = |nsid: u32| {
        let (_admin, mut queue) = host.enter().expect("connected");
        let mut statuses = BTreeSet::new();
        for round in 0u64.. {
            match queue.write(nsid, round % 8, &[nsid as u8; 512]) {
                Ok(()) if round == 0 => started.send(()).expect("waited for"),
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Other => {
                    statuses.insert(error.to_string());
                }
                Err(_) => break,
            }
        }
        statuses
    };
    std::thread::scope(|scope| {
        let writers = [1, 2, 1, 2].map(|nsid| scope.spawn(move || write(nsid)));
        writers.iter().for_each(|_| begun.recv().expect("it writes"));
        assert_eq!(place.end(Signal::TERM), Some(0));
        for writer in writers {
            let statuses = writer.join().expect("ended");
            let lasting = |status: &String| status.contains("do not retry");
            assert!(!statuses.iter().any(lasting), "{statuses:?}");
        }
    });
    place.start();
    let (mut admin, _queue) = host.enter().expect("connected");
    assert_eq!(admin.namespaces().expect("listed"), [1, 2]);
}

/// A host takes a namespace that it does not find for gone, and removes it.
#[test]
fn a_host_finds_all_of_its_subsystem_or_nothing_after_a_restart() {
    let (mut place, host) = with_two_in_one();
    assert_eq!(place.end(Signal::TERM), Some(0));
    place.wait_for_drives(600_000);
    let away = place.dir.path().join("away");
    std::fs::rename(place.drive(3), &away).expect("moved");
    place.begin();
    let serves = || {
        let list = place.json(&["export", "list"]);
        list["exports"].as_array().expect("a list").iter().any(|e| e["serving"] == json!(true))
    };
    eventually("said", || place.said().contains("array \"more\" waits for slot 1"));
    eventually("served", serves);
    let refused = || host.connect(0, 0xffff).expect("answered").connected;
    assert_eq!(refused(), Err(Status::CONNECT_PARAMETERS.passing()));
    std::fs::rename(&away, place.drive(3)).expect("moved");
    place.ready();
    let (mut admin, _queue) = host.enter().expect("connected");
    assert_eq!(admin.namespaces().expect("listed"), [1, 2]);
    // What can't be started, and needs a person, keeps nobody from the rest.
    assert_eq!(place.end(Signal::TERM), Some(0));
    place.wait_for_drives(0);
    [2, 3].iter().for_each(|at| std::fs::remove_file(place.drive(*at)).expect("removed"));
    place.start();
    let (mut admin, _queue) = host.enter().expect("connected");
    assert_eq!(admin.namespaces().expect("listed"), [1]);
}

/// Its hosts may still have something to do for it, and it may be started any time.
#[test]
fn the_number_of_a_namespace_that_is_not_served_is_taken() {
    let (mut place, _) = with_two_in_one();
    assert_eq!(place.end(Signal::TERM), Some(0));
    let away = place.dir.path().join("away");
    std::fs::rename(place.drive(3), &away).expect("moved");
    place.start();
    assert_eq!(place.state("more"), "stopped");
    place.json(&["volume", "create", "data/w", "--size", "1M"]);
    let named = ["--any-host", "--subsystem", "nqn.2026-11.example:s"];
    assert_eq!(place.export("data/w", &named)["nsid"], json!(3));
    std::fs::rename(&away, place.drive(3)).expect("moved");
    place.json(&["array", "assemble", "more"]);
    assert_eq!(place.json(&["export", "show", "more:1"])["serving"], json!(true));
}

//! Drives behind NVMe/TCP: an array on volumes of another daemon.

use crate::common::nbd::Client;
use crate::common::place::{Daemon, Place, Served, Starting};
use crate::common::shelf::Shelf;
use crate::common::{LIMIT, MIB, until};
use serde_json::Value;

/// Drives of the array, and what each has.
const DRIVES: usize = 4;
const DRIVE_MIB: u64 = 48;
const VOLUME: usize = 24 << 20;

/// The subsystem of a volume.
fn subsystem(number: usize) -> String {
    format!("nqn.2026-11.org.example:drive-{number}")
}

/// A daemon whose volumes are the drives of others, and their names.
fn shelf(place: &mut Place) -> (Daemon, Vec<String>) {
    let drives = place.drives(2);
    let shelf = Daemon::start(place, 1);
    shelf.create("shelf", "0", &drives, &[]);
    let mut names: Vec<String> = Vec::new();
    for number in 0..DRIVES {
        let volume = format!("shelf/v{number}");
        shelf.call(&["volume", "create", &volume, "--size", &format!("{DRIVE_MIB}M")]);
        // All on one port.
        let at = names.first().map_or("127.0.0.1:0", |first| address(first)).to_owned();
        let subsystem = subsystem(number);
        let words = ["export", "create", &volume, "--nvme-tcp", &at, "--subsystem", &subsystem];
        let export = shelf.call(&[&words[..], &["--any-host"]].concat());
        names.push(export["uri"].as_str().expect("a URI").to_owned());
    }
    (shelf, names)
}

/// Two namespaces of one subsystem, at the same address.
fn twins(shelf: &Daemon, names: &[String]) -> Vec<String> {
    let twin = |number: &str| {
        let volume = format!("shelf/twin-{number}");
        shelf.call(&["volume", "create", &volume, "--size", "24M"]);
        let (at, subsystem) = (address(&names[0]), "nqn.2026-11.org.example:twins");
        let words = ["export", "create", &volume, "--nvme-tcp", at, "--subsystem", subsystem];
        let export = shelf.call(&[&words[..], &["--any-host"]].concat());
        export["uri"].as_str().expect("a URI").to_owned()
    };
    ["1", "2"].map(twin).into()
}

/// The address and port of a name.
fn address(name: &str) -> &str {
    let rest = name.strip_prefix("nvme+tcp://").expect("the name of a remote drive");
    rest.split('/').next().expect("an address")
}

/// The flags that name the address.
fn at(name: &str) -> [&str; 4] {
    let (host, port) = address(name).rsplit_once(':').expect("a port");
    ["-a", host, "-s", port]
}

fn fill(served: &Served, data: &[u8]) {
    let mut client = Client::connect(&served.socket, &served.name).expect("connects");
    for (at, part) in (0..).step_by(MIB as usize).zip(data.chunks(MIB as usize)) {
        client.write(at, part).expect("written");
    }
}

fn check(served: &Served, data: &[u8]) {
    let mut client = Client::connect(&served.socket, &served.name).expect("connects");
    let mut back = vec![0; MIB as usize];
    for (at, part) in (0..).step_by(MIB as usize).zip(data.chunks(MIB as usize)) {
        client.read(at, &mut back).expect("read");
        assert!(back == part, "other data at {at}");
    }
}

#[test]
fn an_array_is_on_drives_behind_nvme_tcp() {
    let (mut far, mut here) = (Place::new("shelf", 160), Place::new("host", 8));
    let (shelf, names) = shelf(&mut far);
    let host = Daemon::start(&here, 2);
    let told = host.call(&[&["drive", "discover"][..], &at(&names[0])].concat());
    let entries = told["entries"].as_array().expect("a list");
    let subsystems: Vec<Value> = entries.iter().map(|own| own["subnqn"].clone()).collect();
    assert_eq!(subsystems, (0..DRIVES).map(|own| subsystem(own).into()).collect::<Vec<Value>>());
    assert!(entries.iter().all(|own| own["subtype"] == "nvme" && own["portid"].is_u64()));
    // Two by one word, the others by their names.
    let connect = |number: usize, words: &[&str]| {
        let nqn = subsystem(number);
        let flags = [&at(&names[0])[..], &["-n", &nqn]].concat();
        host.call(&[words, &flags].concat())
    };
    assert_eq!(
        connect(0, &["drive", "connect"])["drives"][0],
        format!("nvme://{}/1", subsystem(0))
    );
    host.create("tank", "5", &names, &[]);
    let slots = host.show("tank")["slots"].clone();
    for number in 0..DRIVES {
        assert_eq!(slots[number]["drive"], format!("nvme://{}/1", subsystem(number)));
        assert!(slots[number]["serial"].as_str().is_some_and(|own| own.starts_with("uuid.")));
    }
    let served = host.volume(&here, "tank/v", &VOLUME.to_string());
    let mut data = vec![0; VOLUME];
    here.rng.fill(&mut data);
    fill(&served, &data);
    check(&served, &data);
    // It has them, and would lose them.
    let first = subsystem(0);
    let told = host.refused(&["drive", "disconnect", "-n", &first]);
    assert!(told.contains("in use") && told.contains(&first), "{told}");
    host.scrub("tank");
    host.stop();
    // At the next start it finds them by itself, though they come after it.
    shelf.stop();
    let wildcard = format!("nvme+tcp://{}/*/*", address(&names[0]));
    here.others = vec![wildcard];
    (here.drive_wait_ms, here.more) = (60_000, "[fabrics]\nhdr_digest = true\n".to_owned());
    let starting = Starting::begin(&here, 2, &[], &[]);
    let shelf = Daemon::start(&far, 1);
    let host = starting.ready();
    assert_eq!(host.show("tank")["state"], "optimal");
    until("its export", LIMIT, || served.socket.exists().then_some(()));
    check(&served, &data);
    host.scrub("tank");
    // A drive that is not needed any more goes.
    host.call(&["array", "stop", "tank"]);
    host.stop();
    shelf.stop();
}

/// One drive with two namespaces is one drive.
#[test]
fn namespaces_that_die_together_are_in_no_group() {
    let (mut far, here) = (Place::new("shelf", 160), Place::new("host", 8));
    let (shelf, names) = shelf(&mut far);
    let twins = twins(&shelf, &names);
    let host = Daemon::start(&here, 1);
    let create = |level: &'static str, drives: [&String; 4], more: &[&'static str]| {
        let words = ["array", "create", "tank", "--dry-run", "--level", level];
        let words = [&words[..], more, &["--drives"]].concat().into_iter().map(str::to_owned);
        words.chain(drives.map(String::clone)).collect::<Vec<String>>()
    };
    let (one, other, a, b) = (&twins[0], &twins[1], &names[0], &names[1]);
    for (level, drives, is_refused) in [
        ("6", [one, a, b, other], true),
        ("10", [one, other, a, b], true),
        ("10", [one, a, other, b], false),
        ("0", [one, other, a, b], false),
    ] {
        let all = create(level, drives, &[]);
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        match is_refused {
            false => drop(host.call(&all)),
            true => {
                let told = host.refused(&all);
                let twin = "nvme://nqn.2026-11.org.example:twins/";
                assert!(told.contains("of one drive"), "{told}");
                assert!(told.contains(&format!("{twin}1")), "{told}");
                assert!(told.contains(&format!("{twin}2")), "{told}");
                let all = create(level, drives, &["--same-drive"]);
                host.call(&all.iter().map(String::as_str).collect::<Vec<_>>());
            }
        }
    }
    // Where one is meant, all are too many.
    let all = format!("nvme+tcp://{}/nqn.2026-11.org.example:twins/*", address(&names[0]));
    let told = host.refused(&["drive", "show", &all]);
    assert!(told.contains("stands for 2 drives"), "{told}");
    host.call(&["array", "create", "a", "--dry-run", "--level", "0", "--drives", a, &all]);
    let told = host.refused(&["array", "create", "a", "--level", "1", "--drives", a, &all]);
    assert!(told.contains("of one drive"), "{told}");
    host.stop();
    shelf.stop();
}

#[test]
fn mistakes_in_names_of_remote_drives_are_told() {
    let place = Place::new("mistakes", 8);
    let daemon = Daemon::start(&place, 1);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = nobody.local_addr().expect("an address").port();
    drop(nobody);
    for (drive, told) in [
        ("nvme://nqn.2026-11.org.example:s/1".to_owned(), "is not connected"),
        ("nvme://*/1".to_owned(), "found at an address"),
        ("nvme+tcp://127.0.0.1/nqn.2026-11.org.example:s/1".to_owned(), "an address and a port"),
        (format!("nvme+tcp://127.0.0.1:{port}/nqn.2026-11.org.example:s/1"), "refused"),
        (format!("nvme+tcp://127.0.0.1:{port}/s/1"), "not the name of a subsystem"),
    ] {
        let words = ["array", "create", "a", "--level", "0", "--drives", &drive, "/dev/null"];
        let said = daemon.refused(&words);
        assert!(said.contains(told), "{drive}: {said}");
        let said = daemon.refused(&["drive", "inspect", &drive]);
        assert!(said.contains(told), "{drive}: {said}");
    }
    let port = port.to_string();
    let at = ["-a", "127.0.0.1", "-s", &port];
    let said = daemon.refused(&[&["drive", "discover"][..], &at].concat());
    assert!(said.contains("refused"), "{said}");
    let connect = [&["drive", "connect"][..], &at, &["-n", "s"]].concat();
    let said = daemon.refused(&connect);
    assert!(said.contains("not a valid NQN"), "{said}");
    let said = daemon.refused(&["drive", "disconnect", "-n", "nqn.2026-11.org.example:s"]);
    assert!(said.contains("is not connected"), "{said}");
    daemon.stop();
}

/// What a flag says counts for the subsystem that is connected with it, instead of `[fabrics]`.
#[test]
fn flags_of_a_connection() {
    let (place, shelf) = (Place::new("host", 8), Shelf::start(&["--drives", "2"]));
    let host = Daemon::start(&place, 2);
    let (address, port) = shelf.port("A1");
    let (_, other) = shelf.port("B1");
    let with = |words: &[&str], port: &str, flags: &[&str]| -> Vec<String> {
        let all = [words, &["-a", &address, "-s", port], flags].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    let call = |words: &[String]| host.call(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let ends = |code, words: &[String]| {
        host.ends(code, &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    // Only who has that name sees the first drive.
    let id = "3e0a1c52-7d7c-4bb5-9b2e-1f0c5a8d9e01";
    let (plain, by_uuid) =
        ("nqn.2026-11.org.example:me", format!("nqn.2014-08.org.nvmexpress:uuid:{id}"));
    shelf.ctl(&["zone", "add", "z", "--host", plain, "--host", &by_uuid, "--drives", "1"]);
    let seen = |flags: &[&str]| {
        let told = call(&with(&["drive", "discover"], &port, flags));
        told["entries"].as_array().expect("a list").len()
    };
    assert_eq!(seen(&[]), 0);
    assert!(seen(&["--hostnqn", plain, "--hostid", id]) > 0);
    assert!(seen(&["-q", &by_uuid, "--hdr-digest", "--data-digest"]) > 0);
    let first = shelf.subsystem(1);
    let connect =
        |port: &str, flags: &[&str]| with(&["drive", "connect", "-n", &first], port, flags);
    ends(1, &connect(&port, &[]));
    let told = ends(2, &connect(&port, &["--hostnqn", plain]));
    assert!(told.contains("needs a hostid"), "{told}");
    let told = ends(2, &connect(&port, &["--hostnqn", plain, "--hostid", "me"]));
    assert!(told.contains("must be a UUID"), "{told}");
    ends(2, &connect(&port, &["--hostid", id]));
    for wrong in ["--keep-alive-tmo=0", "--queue-size=15", "--nr-io-queues=1", "--hdr-digest=yes"] {
        ends(2, &connect(&port, &[wrong]));
    }
    let told = ends(2, &connect(&port, &["--nr-io-queues", "2"]));
    assert!(told.contains("more is needed: 3"), "{told}");
    // All of them at once; and what is connected so stays so, whatever path is added.
    let all = ["-q", &by_uuid, "-I", id, "-i", "3", "-Q", "64", "-g", "-G", "-k", "7", "-c", "2"];
    let all = [&all[..], &["--fast-io-fail-tmo", "9", "-l", "60"]].concat();
    let drives = call(&connect(&port, &all))["drives"].clone();
    assert_eq!(drives[0], format!("nvme://{first}/1"));
    for (flag, name) in [
        (&["--keep-alive-tmo", "6"][..], "keep_alive_tmo"),
        (&["--data-digest=off"], "data_digest"),
        (&["-q", plain, "-I", id], "hostnqn"),
    ] {
        let told = ends(3, &connect(&other, flag));
        let what = format!("{first} is connected with another {name}");
        assert!(told.contains(&what) && told.contains("disconnect"), "{told}");
    }
    call(&connect(&other, &["-k", "7"]));
    let told = host.call(&["drive", "paths", drives[0].as_str().expect("text")]);
    let paths = told["drives"][0]["paths"].as_array().expect("a list");
    assert_eq!(paths.len(), 2, "{told}");
    assert!(paths.iter().all(|path| path["state"] == "live"), "{told}");
    host.call(&["drive", "disconnect", "-n", &first]);
    // With all that are found; then by the usual terms, which the shelf refuses.
    let told = call(&with(&["drive", "connect-all"], &port, &["-q", &by_uuid]));
    assert_eq!(told["drives"].as_array().map(Vec::len), Some(2), "{told}");
    host.call(&["drive", "disconnect", "-n", &first]);
    ends(1, &connect(&port, &[]));
    host.stop();
    shelf.stop();
}

/// By what a controller says, and how it was connected: once.
#[test]
fn a_fence_that_outlasts_the_deadline_is_told() {
    let (place, shelf) = (Place::new("fence", 8), Shelf::start(&["--drives", "1"]));
    let host = Daemon::start(&place, 2);
    let ((address, port), name) = (shelf.port("A1"), shelf.subsystem(1));
    let connect = ["drive", "connect", "-a", &address, "-s", &port, "-n", &name, "-k", "7"];
    let drives = host.call(&connect)["drives"].clone();
    let mut create = vec!["array", "create", "a", "--level", "0", "--same-drive", "--drives"];
    create.extend(drives.as_array().expect("a list").iter().filter_map(|drive| drive.as_str()));
    host.call(&create);
    host.call(&["array", "delete", "a", "--yes"]);
    let warning = format!("warning: {name}: where a path is lost, writes wait 21");
    assert_eq!(host.said().matches(&warning).count(), 1, "{}", host.said());
    host.stop();
    shelf.stop();
}

/// The drives of a daemon are copied, and both serve what is on them.
#[test]
fn a_clone_is_refused() {
    let mut here = Place::new("host", 64);
    let plain = here.drives(1).remove(0);
    let mut servers = ["original", "copy"].map(|name| Place::new(name, 64));
    let [original, copy] = servers.each_mut().map(|place| place.drives(2));
    let daemon = Daemon::start(&servers[0], 1);
    daemon.create("tank", "1", &original, &[]);
    daemon.call(&["volume", "create", "tank/v", "--size", "16M"]);
    daemon.stop();
    for (from, to) in original.iter().zip(&copy) {
        std::fs::copy(from, to).expect("copied");
    }
    let servers = servers.each_ref().map(|place| Daemon::start(place, 1));
    let host = Daemon::start(&here, 1);
    let connected = [0, 1].map(|number: usize| {
        let nqn = subsystem(number);
        let words = ["export", "create", "tank/v", "--nvme-tcp", "127.0.0.1:0", "--any-host"];
        let export = servers[number].call(&[&words[..], &["--subsystem", &nqn]].concat());
        let at = at(export["uri"].as_str().expect("a URI"));
        let told = host.call(&[&["drive", "connect", "-n", &nqn][..], &at].concat());
        told["drives"][0].as_str().expect("a name").to_owned()
    });
    let [first, again] = &connected;
    for (one, other) in [(first, again), (again, first)] {
        let what = format!("{one} has the same identity as {other}: one is a clone of the other");
        let told = host.ends(3, &["array", "create", "a", "--level", "0", "--drives", one, &plain]);
        assert!(told.contains(&what) && told.contains("drive disconnect"), "{told}");
    }
    host.call(&["drive", "disconnect", "-n", &subsystem(1)]);
    host.call(&["array", "create", "a", "--dry-run", "--level", "0", "--drives", first, &plain]);
    host.stop();
    servers.into_iter().for_each(Daemon::stop);
}

//! The command line against the real daemon, with drives that are files of random bytes.

mod lost;
mod messages;
pub mod nvme;
mod ownership;
pub mod place;
mod serving;
mod starting;
pub mod tasks;

use place::{Place, errors, greeted, program, random, scribble};
use serde_json::Value;
use std::io::Read;
use std::net::TcpStream;

#[test]
fn without_a_daemon_commands_exit_with_4() {
    let place = Place::new(0);
    for noun in ["array", "volume", "drive", "share"] {
        assert!(place.refuses(4, &[noun, "list"]).contains("palisade serve"));
    }
    for words in [&["status"][..], &["share", "user", "list"]] {
        assert!(place.refuses(4, words).contains("palisade serve"));
    }
    let other = place.dir.path().join("other.sock");
    let said = place.refuses(4, &["--socket", other.to_str().expect("text"), "status"]);
    assert!(said.contains("other.sock"), "--socket goes before PALISADE_SOCKET: {said}");
}

#[test]
fn wrong_usage_exits_with_2() {
    let place = Place::running(3);
    for words in [
        &[][..],
        &["array"],
        &["array", "create", "a", "--level", "7", "--drives", "x"],
        &["array", "create", "a", "--level", "5"],
        &["array", "create", "a", "--level", "5", "--drives", "x", "--strip", "big"],
        &["array", "scrub", "a"],
        &["array", "scrub", "a", "--check", "--repair"],
        &["volume", "create", "novolume", "--size", "1M"],
        &["volume", "create", "a/v", "--size", "-1"],
        &["array", "wait", "a", "--timeout", "soon"],
        &["share", "create", "docs", "--volume", "a/v"],
        &["share", "create", "docs", "--volume", "a/v", "--smb", "--overwrite"],
        &["share", "set", "docs"],
    ] {
        assert!(!place.fails(2, words).is_empty());
    }
    let (a, b) = (&place.name(0), &place.name(1));
    let create = ["array", "create", "a", "--level"];
    let with = |more: &[&str]| place.refuses(2, &[&create[..], more].concat());
    assert!(with(&["5", "--drives", a, b]).contains("2 drives"));
    assert!(with(&["1", "--drives", a, a]).contains("twice"));
    assert!(with(&["1", "--drives", a, b, "--strip", "5000"]).contains("5000"));
    assert!(with(&["1", "--drives", a, b, "--overwrite", &place.name(2)]).contains("none of"));
    let said = place.refuses(2, &["array", "create", "a b", "--level", "1", "--drives", a, b]);
    assert!(said.contains("a b"), "{said}");
}

#[test]
fn what_is_not_there_exits_with_1() {
    let place = Place::running(2);
    for words in [
        &["array", "show", "none"][..],
        &["array", "stop", "no/ne"],
        &["array", "wait", "none"],
        &["array", "assemble", "none"],
        &["array", "delete", "none", "--yes"],
        &["array", "fail", "none", "--drive", "slot:0"],
        &["array", "scrub", "none", "--check"],
        &["volume", "create", "none/v", "--size", "1M"],
        &["volume", "delete", "none/v", "--yes"],
        &["export", "create", "none/v", "--nbd", "127.0.0.1:0"],
        &["export", "delete", "none:1"],
        &["export", "delete", "1"],
        &["share", "create", "docs", "--volume", "none/v", "--smb"],
        &["share", "show", "docs"],
        &["share", "set", "docs", "--nfs"],
        &["share", "delete", "docs", "--yes"],
        &["share", "user", "password", "alice", "--share", "docs"],
        &["drive", "inspect", "/no/such/drive"],
        &["drive", "inspect", &place.name(0)],
        &["array", "create", "a", "--level", "1", "--drives", "/no/such/drive", "/nor/this"],
        &["serve", "--config", "/no/such/file"],
    ] {
        place.refuses(1, words);
    }
    std::fs::write(place.config(), "sockets = \"/x\"\n").expect("written");
    let config = place.config();
    let said = place.refuses(1, &["serve", "--config", config.to_str().expect("text")]);
    assert!(said.contains("sockets") && said.contains("line 1"), "{said}");
}

#[test]
fn an_array_lives_through_the_loss_of_a_drive() {
    let place = Place::running(5);
    let made = place.create("data", "5", &[0, 1, 2, 3]);
    assert_eq!((&made["name"], &made["level"]), (&"data".into(), &"5".into()));
    assert_eq!((&made["state"], &made["strip_bytes"]), (&"optimal".into(), &65536.into()));
    assert_eq!(made["size_bytes"], 3 * (8 << 20));
    assert_eq!(made["slots"][2]["drive"], place.name(2));
    assert_eq!(made["drive_io"].as_array().expect("a list").len(), 4);
    assert!(made["last_scrub"].is_null() && made["tasks"].as_array().expect("list").is_empty());

    let failed = place.json(&["array", "fail", "data", "--drive", &place.name(1)]);
    assert_eq!(
        (&failed["state"], &failed["slots"][1]["state"]),
        (&"degraded".into(), &"failed".into())
    );
    place.fails(1, &["array", "show", "data", "--exit-state"]);
    assert!(place.refuses(3, &["array", "fail", "data", "--drive", "slot:2"]).contains("slot 2"));
    assert!(
        place
            .refuses(3, &["array", "replace", "data", "--slot", "0", "--with", &place.name(4)])
            .contains("slot 0")
    );
    let epoch = failed["epoch"].as_u64().expect("a number");
    assert!(epoch > made["epoch"].as_u64().expect("a number"));

    // The pulled drive's content is gone; the daemon may not care.
    std::fs::write(place.drive(1), random(99)).expect("written");
    place.json(&["array", "replace", "data", "--slot", "1", "--with", &place.name(4)]);
    let whole = place.json(&["array", "wait", "data", "--timeout", "60"]);
    assert_eq!(
        (&whole["state"], &whole["slots"][1]["state"]),
        (&"optimal".into(), &"in-sync".into())
    );
    assert_eq!(whole["slots"][1]["drive"], place.name(4));
    assert_eq!(place.run(&["array", "show", "data", "--exit-state"]).status.code(), Some(0));

    place.json(&["array", "scrub", "data", "--check"]);
    let checked = place.json(&["array", "wait", "data", "--timeout", "60"]);
    assert_eq!(checked["last_scrub"]["mismatches"], 0);
    assert_eq!(checked["last_scrub"]["checked_bytes"], 0, "nothing was ever written");
    assert_eq!(checked["region_map"]["written_bytes"], 0);
}

#[test]
fn a_scrub_finds_and_repairs_what_does_not_agree() {
    let mut place = Place::running(3);
    place.create_written("data", "5", &[0, 1, 2]);
    place.json(&["array", "stop", "data"]);
    assert_eq!(place.state("data"), "stopped");
    place.fails(2, &["array", "show", "data", "--exit-state"]);
    // Two stripes of 64 KiB; the data area begins behind 3 MiB.
    scribble(&place.drive(0), (3 << 20) + 65536 + 17, b"wrong");
    scribble(&place.drive(2), (3 << 20) + 5 * 65536, b"wrong too");
    place.json(&["array", "assemble", "data"]);
    let scrub = |mode: &[&str]| {
        place.json(&[&["array", "scrub", "data"], mode].concat());
        let found = &place.json(&["array", "wait", "data", "--timeout", "60"])["last_scrub"];
        ["mismatches", "repaired", "unlocated"].map(|key| found[key].as_u64().expect("a number"))
    };
    assert_eq!(scrub(&["--check"]), [2, 0, 2]);
    // One parity does not tell which strip is wrong.
    assert_eq!(scrub(&["--repair"]), [2, 0, 2]);
    place.fails(2, &["array", "scrub", "data", "--check", "--trust-data"]);
    assert_eq!(scrub(&["--repair", "--trust-data"]), [2, 2, 2]);
    assert_eq!(scrub(&["--check"]), [0, 0, 0]);
    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
}

#[test]
fn a_scrub_of_p_and_q_names_the_drive() {
    let mut place = Place::running(4);
    place.create_written("data", "6", &[0, 1, 2, 3]);
    place.json(&["array", "stop", "data"]);
    scribble(&place.drive(2), (3 << 20) + 65536 + 17, b"wrong");
    place.json(&["array", "assemble", "data"]);
    place.json(&["array", "scrub", "data", "--repair"]);
    let shown = place.json(&["array", "wait", "data", "--timeout", "60"]);
    assert_eq!(
        (&shown["last_scrub"]["repaired"], &shown["slots"][2]["wrong_strips"]),
        (&1.into(), &1.into())
    );
    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
}

#[test]
fn volumes_and_exports_come_and_go() {
    let place = Place::running(2);
    place.create("data", "1", &[0, 1]);
    let volume = place.json(&["volume", "create", "data/v", "--size", "4M"]);
    assert_eq!((&volume["name"], &volume["size_bytes"]), (&"v".into(), &(4 << 20).into()));
    place.refuses(1, &["volume", "create", "data/v", "--size", "1M"]);
    assert!(place.refuses(1, &["volume", "create", "data/w", "--size", "1G"]).contains("free"));
    place.refuses(2, &["volume", "create", "data/w", "--size", "100"]);
    let grown = place.json(&["volume", "resize", "data/v", "--size", "6M"]);
    assert_eq!(grown["size_bytes"], 6 << 20);
    assert_eq!(place.json(&["volume", "list"])["volumes"][0]["size_bytes"], 6 << 20);

    let export = place.json(&["export", "create", "data/v", "--nbd", "127.0.0.1:0"]);
    let address = export["nbd"].as_str().expect("text").to_owned();
    assert_eq!(export["uri"], format!("nbd://{address}/data/v"));
    assert_eq!(export["serving"], true);
    let mut client = greeted(&address);
    place.refuses(1, &["export", "create", "data/v", "--nbd", &address]);
    place.refuses(2, &["export", "create", "data/v", "--nbd", "here"]);
    // A second volume at the same address, and one at a Unix socket.
    place.json(&["volume", "create", "data/w", "--size", "1M"]);
    place.json(&["export", "create", "data/w", "--nbd", &address]);
    let socket = place.dir.path().join("nbd.sock");
    let unix = format!("unix:{}", socket.display());
    let third = place.json(&["export", "create", "data/w", "--nbd", &unix]);
    assert!(std::os::unix::net::UnixStream::connect(&socket).is_ok());
    assert_eq!(place.json(&["export", "list"])["exports"].as_array().expect("list").len(), 3);

    assert!(place.refuses(3, &["volume", "delete", "data/v", "--yes"]).contains("exports"));
    place.json(&["export", "delete", third["id"].as_str().expect("text")]);
    assert!(!socket.exists());
    place.json(&["export", "delete", "data:1"]);
    greeted(&address);
    place.json(&["export", "delete", "data:2"]);
    assert!(TcpStream::connect(&address).is_err(), "nobody listens any more");
    assert_eq!(client.read(&mut [0; 64]).expect("ends"), 0, "its listener took it along");

    assert!(place.refuses(3, &["volume", "delete", "data/v"]).contains("--yes"));
    place.json(&["volume", "delete", "data/v", "--yes"]);
    assert!(place.refuses(3, &["array", "delete", "data"]).contains("--yes"));
    place.json(&["array", "delete", "data", "--yes"]);
    assert_eq!(place.json(&["array", "list"])["arrays"], Value::Array(vec![]));
    let drives = place.json(&["drive", "list"]);
    assert_eq!(drives["drives"][0]["state"], "free");
}

#[test]
fn a_daemon_that_was_killed_finds_everything_again() {
    let mut place = Place::running(3);
    place.create("data", "5", &[0, 1, 2]);
    place.json(&["volume", "create", "data/v", "--size", "4M"]);
    let export = place.json(&["export", "create", "data/v", "--nbd", "127.0.0.1:0"]);
    let address = export["nbd"].as_str().expect("text").to_owned();
    assert_eq!(place.end(rustix::process::Signal::KILL), None);
    place.refuses(4, &["status"]);
    place.start();
    let status = place.json(&["status"]);
    assert_eq!(status["ready"], true);
    assert_eq!(status["arrays"][0]["volumes"][0]["name"], "v");
    greeted(&address);
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    assert_eq!(place.state("data"), "optimal");

    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
    assert!(!place.socket().exists());
    let record = place.json(&["drive", "inspect", &place.name(1)]);
    assert_eq!((&record["array_name"], &record["slot"]), (&"data".into(), &1.into()));
    assert_eq!((&record["level"], &record["drives"]), (&"5".into(), &3.into()));
    assert_eq!(
        (&record["data_offset"], &record["data_bytes"]),
        (&(3 << 20).into(), &(8 << 20).into())
    );
    assert_eq!((&record["unclean"], &record["strip_bytes"]), (&false.into(), &65536.into()));
    assert_eq!(record["volumes"][0]["name"], "v");
    assert_eq!((&record["journal"], &record["lost_ranges"]), (&true.into(), &0.into()));
    assert!(record["unreadable"].as_array().is_some_and(Vec::is_empty));
    assert_eq!(record["guarded_groups"], serde_json::json!([0]));
    assert!(record["epoch"].as_u64() > status["arrays"][0]["epoch"].as_u64());
}

#[test]
fn foreign_content_is_destroyed_only_where_it_is_named() {
    let place = Place::new(4);
    // Swap space: its signature ends the first page (mkswap(8)).
    scribble(&place.drive(1), 4086, b"SWAPSPACE2");
    let mut place = place;
    place.start();
    let paths = [place.name(0), place.name(1)];
    let create = ["array", "create", "data", "--level", "1", "--drives", &paths[0], &paths[1]];
    let said = place.refuses(3, &create);
    assert!(said.contains(&paths[1]) && said.contains("swap") && said.contains("--overwrite"));
    assert_eq!(place.json(&["drive", "list"])["drives"][1]["state"], "foreign");

    let plan = place.json(&[&create[..], &["--dry-run"]].concat());
    assert_eq!((&plan["dry_run"], &plan["size_bytes"]), (&true.into(), &(8 << 20).into()));
    assert!(plan["drives"][1]["destroys"].as_str().expect("text").contains("swap"));
    assert!(plan["drives"][0]["destroys"].is_null());
    assert_eq!(plan["drives"][1]["refused"], true);
    assert_eq!(place.json(&["array", "list"])["arrays"], Value::Array(vec![]));

    place.json(&[&create[..], &["--overwrite", &paths[1]]].concat());
    // Drives of a running array are never taken, named or not.
    let other = ["array", "create", "other", "--level", "1", "--drives", &paths[1]];
    let third = place.name(2);
    let said = place.refuses(3, &[&other[..], &[&third, "--overwrite", &paths[1]]].concat());
    assert!(said.contains("in use"), "{said}");
    // Nor is another array's drive for a replacement, unless it is named.
    place.create("second", "1", &[2, 3]);
    place.json(&["array", "stop", "second"]);
    place.json(&["array", "fail", "data", "--drive", "slot:0"]);
    let replace = ["array", "replace", "data", "--slot", "0", "--with", &third];
    assert!(place.refuses(3, &replace).contains("second"));
    place.json(&[&replace[..], &["--overwrite", &third]].concat());
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    assert_eq!(place.state("data"), "optimal");
}

#[test]
fn a_drive_that_failed_may_come_back_to_its_own_array() {
    let place = Place::running(2);
    place.create("data", "1", &[0, 1]);
    place.json(&["array", "fail", "data", "--drive", "slot:1"]);
    place.json(&["array", "replace", "data", "--slot", "1", "--with", &place.name(1)]);
    place.json(&["array", "wait", "data", "--timeout", "60"]);
    assert_eq!(place.state("data"), "optimal");
}

#[test]
fn half_a_mirror_starts_only_on_request() {
    let mut place = Place::running(2);
    place.create("data", "1", &[0, 1]);
    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
    let away = place.dir.path().join("away");
    std::fs::rename(place.drive(1), &away).expect("moved");
    place.start();
    assert!(place.said().contains("data") && place.said().contains("--start-degraded"));
    let found = place.json(&["array", "show", "data"]);
    assert_eq!(
        (&found["state"], &found["slots"][1]["state"]),
        (&"stopped".into(), &"missing".into())
    );
    assert!(found["problem"].as_str().expect("text").contains("slot 1"));
    place.refuses(1, &["volume", "create", "data/v", "--size", "1M"]);
    assert!(place.refuses(3, &["array", "assemble", "data"]).contains("slot 1"));
    place.json(&["array", "assemble", "data", "--start-degraded"]);
    assert_eq!(place.state("data"), "degraded");
    place.refuses(1, &["array", "assemble", "data"]);
}

#[test]
fn one_daemon_a_socket_and_one_owner_a_drive() {
    let mut place = Place::running(2);
    place.create("data", "1", &[0, 1]);
    let config = place.config();
    let serve = ["serve", "--config", config.to_str().expect("text")];
    assert!(place.refuses(1, &serve).contains("another daemon"));
    let path = place.name(0);
    assert!(place.refuses(3, &["drive", "wipe", &path]).contains("--yes"));
    assert!(place.refuses(3, &["drive", "wipe", &path, "--yes"]).contains("in use"));
    place.json(&["drive", "inspect", &path]);
    assert_eq!(place.end(rustix::process::Signal::INT), Some(0));
    place.json(&["drive", "wipe", &path, "--yes"]);
    place.refuses(1, &["drive", "inspect", &path]);
    assert!(!String::from_utf8_lossy(&std::fs::read(&path).expect("read")).contains("PALISADE"));
}

#[test]
fn parity_kernel_is_named_and_can_be_forced() {
    let mut place = Place::running(2);
    assert!(place.said().contains("palisade: parity kernel "), "{}", place.said());
    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
    let config = place.config();
    let forced = |kernel| {
        let mut command = program(&["serve", "--config", config.to_str().expect("text")]);
        command.env("PALISADE_PARITY", kernel);
        command
    };
    let output = forced("abacus").output().expect("ran");
    assert_eq!(output.status.code(), Some(1));
    let said = errors(&output);
    assert!(said.contains("PALISADE_PARITY=abacus") && said.contains("portable"), "{said}");
    place.start_by(forced("portable"));
    assert!(place.said().contains("palisade: parity kernel portable\n"), "{}", place.said());
}

#[test]
fn people_get_tables_without_colours_in_files() {
    let place = Place::running(2);
    place.create("data", "0", &[0, 1]);
    let output = place.run(&["status"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("ARRAY") && lines[1].starts_with("data"), "{text}");
    assert!(lines[1].contains("optimal") && lines[1].contains("2/2"), "{text}");
    assert!(!text.contains('\x1b'), "{text:?}");
}

/// Files that are made longer while the daemon is away, as virtual disks are: wherever the newest
/// records are, nothing that was done is forgotten.
#[test]
fn drives_that_have_grown_forget_nothing() {
    let mut place = Place::running(3);
    place.create("data", "5", &[0, 1, 2]);
    let mut made = 0;
    for round in 0..4 {
        for _ in 0..round % 2 + 1 {
            place.json(&["volume", "create", &format!("data/v{made}"), "--size", "1M"]);
            made += 1;
        }
        place.end(rustix::process::Signal::KILL);
        for number in 0..3 {
            let file = std::fs::File::options().write(true).open(place.drive(number));
            let file = file.expect("opened");
            let bytes = file.metadata().expect("is known").len();
            file.set_len(bytes + (3 << 20)).expect("made longer");
        }
        place.start();
        assert_eq!(place.state("data"), "optimal", "round {round}");
        let volumes = place.json(&["volume", "list"]);
        assert_eq!(volumes["volumes"].as_array().expect("a list").len(), made, "round {round}");
    }
}

/// What a partitioning tool does to the end of each drive of RAID 0, which has all its data still.
#[test]
fn drives_that_lost_their_ends_start_when_a_person_accepts_it() {
    let mut place = Place::running(2);
    place.create("data", "0", &[0, 1]);
    for round in 0..2 {
        place.json(&["volume", "create", &format!("data/v{round}"), "--size", "1M"]);
        assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
        for number in 0..2 {
            let file = std::fs::File::options().write(true).open(place.drive(number));
            let file = file.expect("opened");
            let bytes = file.metadata().expect("is known").len();
            file.set_len(bytes - bytes % (1 << 20) - (1 << 20)).expect("cut");
            file.set_len(bytes).expect("with zeros");
        }
        place.start();
        assert_eq!(place.state("data"), "stopped");
        let said = place.refuses(3, &["array", "assemble", "data", "--start-degraded"]);
        assert!(said.contains(&place.name(0)) && said.contains(&place.name(1)), "{said}");
        assert!(said.contains("the newest record may be missing"), "{said}");
        assert!(said.contains("assemble data --start-degraded --accept-loss"), "{said}");
        assert!(place.said().contains("assemble data --accept-loss"), "{}", place.said());
        place.json(&["array", "assemble", "data", "--accept-loss"]);
        assert_eq!(place.state("data"), "optimal");
        // From here on nobody is asked.
        place.end(rustix::process::Signal::KILL);
        place.start();
        assert_eq!(place.state("data"), "optimal");
        let volumes = place.json(&["volume", "list"]);
        assert_eq!(volumes["volumes"].as_array().expect("a list").len(), round + 1);
    }
}

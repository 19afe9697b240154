//! What people are told: true, and enough to act on.

use super::place::{Place, program};

#[test]
fn giving_up_the_end_of_a_volume_needs_a_word() {
    let place = Place::running(2);
    place.create("data", "1", &[0, 1]);
    place.json(&["volume", "create", "data/v", "--size", "6M"]);
    let nbd = format!("unix:{}", place.dir.path().join("nbd").display());
    place.json(&["export", "create", "data/v", "--nbd", &nbd]);
    let shrink = ["volume", "resize", "data/v", "--size", "2M"];
    let said = place.refuses(3, &shrink);
    assert!(said.contains("4194304 bytes") && said.contains("--yes"), "{said}");
    assert_eq!(place.json(&["volume", "list"])["volumes"][0]["size_bytes"], 6 << 20);
    let same = ["volume", "resize", "data/v", "--size", "6M"];
    place.json(&same);
    let shrunk = place.json(&[&shrink[..], &["--yes"]].concat());
    assert_eq!(shrunk["size_bytes"], 2 << 20);
    // Nobody uses this one just now; what is in it is gone all the same.
    place.json(&["volume", "create", "data/w", "--size", "2M"]);
    let shrink = ["volume", "resize", "data/w", "--size", "1M"];
    let said = place.refuses(3, &shrink);
    assert!(said.contains("1048576 bytes") && !said.contains("exported"), "{said}");
    let shrunk = place.json(&[&shrink[..], &["--yes"]].concat());
    assert_eq!(shrunk["size_bytes"], 1 << 20);
}

#[test]
fn a_drive_too_small_is_named_with_the_least_size() {
    let place = Place::new(2);
    std::fs::write(place.drive(1), vec![1; 2 << 20]).expect("written");
    let mut place = place;
    place.start();
    let (large, small) = (place.name(0), place.name(1));
    let create = ["array", "create", "a", "--level", "1", "--drives", &large, &small];
    let said = place.refuses(1, &create);
    assert!(said.contains(&small) && said.contains("5 MiB"), "{said}");
}

#[test]
fn a_socket_s_place_that_is_taken_is_no_daemon() {
    let place = Place::new(0);
    let config = place.config();
    let serve = ["serve", "--config", config.to_str().expect("text"), "--socket"];
    let path = place.dir.path().to_str().expect("text");
    for taken in [config.to_str().expect("text"), path] {
        let said = place.refuses(1, &[&serve[..], &[taken]].concat());
        assert!(said.contains(taken) && !said.contains("daemon answers"), "{said}");
    }
}

#[test]
fn a_configuration_that_is_not_there_is_not_explained_by_its_keys() {
    let place = Place::new(0);
    let said = place.refuses(1, &["serve", "--config", "/no/such/file.toml"]);
    assert!(said.contains("/no/such/file.toml") && !said.contains("keys"), "{said}");
}

#[test]
fn drives_that_another_has_are_said_in_one_line() {
    let first = Place::running(3);
    first.create("data", "5", &[0, 1, 2]);
    let second = Place::new(0);
    let text = format!("drives = [\"{}/drive*.img\"]\n", first.dir.path().display());
    std::fs::write(second.config(), text).expect("written");
    let (config, socket) = (second.config(), second.socket());
    let words = ["serve", "--config", config.to_str().expect("text"), "--socket"];
    let mut second = second;
    second.start_by(program(&[&words[..], &[socket.to_str().expect("text")]].concat()));
    let said = second.said();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("drive")).collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!((0..3).all(|number| lines[0].contains(&first.name(number))), "{said}");
    assert!(lines[1].contains("another daemon"), "{said}");
}

#[test]
fn addresses_are_told_what_is_wrong_with_them() {
    let place = Place::running(2);
    for (nbd, what) in [("127.0.0.1:99999", "65535"), ("here", "no port"), ("unix:", "absolute")] {
        let said = place.refuses(2, &["export", "create", "data/v", "--nbd", nbd]);
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn no_state_is_none_of_the_states() {
    let mut place = Place::running(2);
    place.refuses(1, &["array", "show", "none"]);
    place.refuses(4, &["array", "show", "none", "--exit-state"]);
    place.end(rustix::process::Signal::TERM);
    place.refuses(4, &["array", "show", "none", "--exit-state"]);
}

#[test]
fn advice_names_what_is_meant() {
    let mut place = Place::running(3);
    place.create("data", "1", &[0, 1]);
    let third = place.name(2);
    let replace = ["array", "replace", "data", "--slot", "1", "--with", &third];
    let said = place.refuses(3, &replace);
    assert!(said.contains("palisade array fail data --drive slot:1"), "{said}");
    assert!(place.refuses(1, &["array", "fail", "data", "--drive", "x"]).contains("show data"));
    place.json(&["volume", "create", "data/v", "--size", "1M"]);
    place.json(&["export", "create", "data/v", "--nbd", "127.0.0.1:0"]);
    let said = place.refuses(3, &["volume", "delete", "data/v", "--yes"]);
    assert!(said.contains("palisade export delete data:1"), "{said}");

    place.end(rustix::process::Signal::TERM);
    std::fs::rename(place.drive(1), place.dir.path().join("away")).expect("moved");
    place.start();
    let whole = "palisade array assemble data --start-degraded";
    assert!(place.refuses(3, &["array", "assemble", "data"]).contains(whole));
    assert!(place.said().contains(whole), "{}", place.said());
}

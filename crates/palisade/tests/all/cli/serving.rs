//! Many clients, few files, busy addresses.

use super::place::{Place, eventually, greeted, program};
use rustix::process::Signal;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::Command;

impl Place {
    /// Starts the daemon under the limits that a line of shell sets.
    fn start_limited(&mut self, limit: &str) {
        let config = self.config();
        let serve = program(&["serve", "--config", config.to_str().expect("text")]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limit}; exec \"$@\""), "sh"]);
        command.arg(serve.get_program()).args(serve.get_args());
        self.start_by(command);
    }

    /// Makes array, volume and export; the address.
    fn exported(&self) -> String {
        self.create("data", "1", &[0, 1]);
        self.json(&["volume", "create", "data/v", "--size", "4M"]);
        let export = self.json(&["export", "create", "data/v", "--nbd", "127.0.0.1:0"]);
        export["nbd"].as_str().expect("text").to_owned()
    }
}

#[test]
fn connections_that_ended_hold_no_files() {
    let mut place = Place::new(2);
    place.start_limited("ulimit -n 128");
    let address = place.exported();
    for _ in 0..200 {
        drop(greeted(&address));
    }
    // More than there may be files: the rest waits, and that is said.
    let many: Vec<_> = (0..140).map(|_| TcpStream::connect(&address).expect("connects")).collect();
    eventually("said", || place.said().contains("can't be accepted"));
    assert!(place.said().contains(&address) && place.said().contains("ulimit -n"));
    drop(many);
    drop(greeted(&address));
    assert_eq!(place.said().matches("can't be accepted").count(), 1, "{}", place.said());
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let mut place = Place::new(0);
    place.start_limited("ulimit -Sn 100; ulimit -Hn 1000");
    let id = place.daemon.as_ref().expect("runs").id();
    let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).expect("read");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("is listed");
    let numbers: Vec<&str> = line.split_whitespace().filter(|word| *word == "1000").collect();
    assert_eq!(numbers.len(), 2, "{line}");
}

#[test]
fn a_client_too_many_is_reported() {
    let place = Place::running(2);
    let address = place.exported();
    // 128 on each of two cores.
    let clients: Vec<_> = (0..256).map(|_| greeted(&address)).collect();
    let mut late = TcpStream::connect(&address).expect("connects");
    assert_eq!(late.read(&mut [0; 18]).expect("ends"), 0);
    eventually("said", || place.said().contains("a client was turned away"));
    assert!(place.said().contains("at most 128 connections"));
    drop(clients);
}

/// Whether anybody takes what the daemon says is nothing that arrays depend on.
#[test]
fn a_daemon_that_can_say_nothing_serves() {
    let mut place = Place::new(2);
    place.start_limited("exec 2>/dev/full");
    let address = place.exported();
    // One too many, of which it has something to say.
    let clients: Vec<_> = (0..256).map(|_| greeted(&address)).collect();
    let mut late = TcpStream::connect(&address).expect("connects");
    assert_eq!(late.read(&mut [0; 18]).expect("ends"), 0);
    drop(clients);
    assert_eq!(place.json(&["status"])["arrays"][0]["state"], "optimal");
    assert_eq!(place.end(Signal::TERM), Some(0));
}

/// Names are looked up aside, and yet a daemon that says that it is ready serves under those that
/// are found.
#[test]
fn an_export_under_a_name_is_served_when_the_daemon_is_ready() {
    let mut place = Place::running(2);
    place.create("data", "1", &[0, 1]);
    place.json(&["volume", "create", "data/v", "--size", "4M"]);
    let export = place.json(&["export", "create", "data/v", "--nbd", "localhost:0"]);
    let address = export["nbd"].as_str().expect("text").to_owned();
    assert!(address.starts_with("localhost:"), "{address}");
    place.restart();
    assert!(!place.said().contains("can't listen"), "{}", place.said());
    greeted(&address);
}

#[test]
fn an_export_whose_address_was_busy_is_served_as_soon_as_it_is_free() {
    let mut place = Place::running(2);
    let address = place.exported();
    assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
    let create = ["export", "create", "data/v", "--nbd", &address];
    let serving = |place: &Place| place.json(&["export", "list"])["exports"][0]["serving"] == true;
    for asked in [false, true] {
        let busy = TcpListener::bind(&address).expect("is free");
        place.start();
        assert!(place.said().contains(&format!("can't listen on {address}")), "{}", place.said());
        assert!(!serving(&place));
        assert!(place.refuses(1, &create).contains("can't listen"));
        drop(busy);
        if asked {
            // The daemon may have been quicker than we; and a process that another test is just
            // starting holds a copy of the listener for a moment.
            eventually("created", || {
                let output = place.run(&create);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let done = output.status.success() || said.contains("exported there already");
                assert!(done || said.contains("can't listen"), "{said}");
                done
            });
            assert!(serving(&place));
        } else {
            eventually("served", || serving(&place));
        }
        greeted(&address);
        let exports = place.json(&["export", "list"])["exports"].clone();
        assert_eq!(exports.as_array().expect("a list").len(), 1, "the one that was recorded");
        assert_eq!(place.end(rustix::process::Signal::TERM), Some(0));
    }
}

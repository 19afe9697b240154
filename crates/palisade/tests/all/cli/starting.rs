//! Drives that come up later than the daemon.

use super::place::{Place, eventually};
use rustix::process::Signal;

/// A machine that was shut down, with two arrays, and the last drive of "data" unplugged.
struct Late(Place);

impl Late {
    fn new(wait_ms: u64) -> Self {
        let mut place = Place::running(5);
        place.create("data", "5", &[0, 1, 2]);
        place.create("other", "1", &[3, 4]);
        assert_eq!(place.end(Signal::TERM), Some(0));
        place.wait_for_drives(wait_ms);
        let late = Self(place);
        late.unplug();
        late
    }

    fn unplug(&self) {
        std::fs::rename(self.0.drive(2), self.0.dir.path().join("away")).expect("moved");
    }

    fn plug(&self) {
        std::fs::rename(self.0.dir.path().join("away"), self.0.drive(2)).expect("moved");
    }

    /// Starts the daemon; "data" waits, and nothing else does.
    fn begin(&mut self) {
        self.0.begin();
        eventually("said", || self.0.said().contains("array \"data\" waits for slot 2 (serial "));
        assert!(!self.0.said().contains("\"other\" waits"), "{}", self.0.said());
        // While it is started it may not be listed.
        let other = ("other".to_owned(), "optimal".to_owned());
        eventually("served", || self.0.arrays().contains(&other));
        assert_eq!(self.0.state("data"), "stopped");
        assert_eq!(self.0.json(&["array", "show", "data"])["slots"][2]["state"], "missing");
        assert_eq!(self.0.json(&["status"])["ready"], false);
    }
}

#[test]
fn a_start_waits_for_drives_that_come_later() {
    let mut late = Late::new(600_000);
    late.begin();
    late.plug();
    late.0.ready();
    assert_eq!(late.0.state("data"), "optimal");
}

#[test]
fn a_start_does_not_wait_for_ever() {
    let mut late = Late::new(1_000);
    late.0.start();
    assert!(late.0.said().contains("\"data\" waits for slot 2"), "{}", late.0.said());
    assert!(late.0.said().contains("\"data\" is degraded: slot 2"), "{}", late.0.said());
    assert_eq!(late.0.state("data"), "degraded");
}

#[test]
fn what_waits_for_a_drive_is_started_by_a_person() {
    let mut late = Late::new(600_000);
    late.begin();
    late.0.json(&["array", "assemble", "data"]);
    late.0.ready();
    assert_eq!(late.0.state("data"), "degraded");
}

#[test]
fn what_a_person_stops_meanwhile_stays_so() {
    let mut late = Late::new(600_000);
    late.begin();
    late.0.json(&["array", "assemble", "data"]);
    late.0.json(&["array", "stop", "data"]);
    late.0.ready();
    assert_eq!(late.0.state("data"), "stopped");
}

#[test]
fn a_daemon_that_waits_for_a_drive_ends_when_it_is_told() {
    let mut late = Late::new(600_000);
    late.begin();
    assert_eq!(late.0.end(Signal::TERM), Some(0));
    late.plug();
    late.0.start();
    assert_eq!(late.0.state("data"), "optimal", "it was not started without its drive");
}

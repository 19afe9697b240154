//! `palisade shelf`, and an array on its drives by two ports of which each goes.

use crate::common::nbd::Client;
use crate::common::place::{Daemon, Place, Served};
use crate::common::shelf::Shelf;
use crate::common::{LIMIT, output, text, until};
use serde_json::Value;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

const WRITTEN: usize = 4 << 20;
const STEP: usize = 256 << 10;

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
    for (words, status, told) in [
        (&["pull", "drive", "7"][..], 2, "there are 1 to 6"),
        (&["restore", "port", "C1"], 2, "there are A1, A2, B1, B2"),
        (&["pull", "fan", "1"], 2, "a part is one of"),
        (&["set", "fan.9", "1"], 2, "there is no fan.9"),
        (&["slow", "drive", "1", "--ms", "long"], 2, "invalid value"),
        (&["pull", "drive", "1", "--silent", "--reset"], 2, "cannot be used with"),
    ] {
        let refused = shelf.try_ctl(words);
        assert_eq!(refused.status.code(), Some(status), "{words:?}: {}", text(&refused));
        assert!(text(&refused).contains(told), "{words:?}: {}", text(&refused));
    }
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

/// Each port goes by itself, by a reset and in silence; the array loses no drive by that.
#[test]
fn an_array_is_on_a_shelf_by_the_port_that_is_left() {
    let shelf = Shelf::start(&["--ports", "2", "--drives", "4", "--drive-size", "96M"]);
    let mut place = Place::new("a shelf", 8);
    place.drive_deadline_ms = 120_000;
    place.more = "[fabrics]\nkeep_alive_tmo = 2\nfast_io_fail_tmo = 60\n".to_owned();
    let daemon = Daemon::start(&place, 2);
    for port in ["A1", "B1"] {
        let (address, number) = shelf.port(port);
        daemon.call(&["drive", "connect-all", "-a", &address, "-s", &number]);
    }
    let drives: Vec<String> =
        (1..=4).map(|drive| format!("nvme://{}/1", shelf.subsystem(drive))).collect();
    daemon.create("tank", "5", &drives, &[]);
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

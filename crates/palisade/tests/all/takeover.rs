//! Two daemons on one shelf: the one that has the array is killed, or stands still, at a random
//! moment under load, and the other takes over.
//!
//! A client knows for every block which writes a reader may see ([`crate::common::blocks`]). After
//! each take-over every block must hold one of them, and the redundancy must be right. One that
//! stood still goes on then: what its host still had under way is refused, nothing of it lands, and
//! it says who has the array.
//!
//! `PALISADE_TAKEOVERS` sets how often, 20 without it; `script/long-run takeover` does.

use crate::common::blocks::Blocks;
use crate::common::nbd::Client;
use crate::common::place::{Daemon, Place};
use crate::common::shelf::Shelf;
use crate::common::{LIMIT, Rng, count_of, until};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Take-overs, if nothing else is said.
const ROUNDS: usize = 20;
/// Most replies before the owner is stopped.
const REPLIES: u64 = 300;
/// Bytes of the volume.
const VOLUME: u64 = 16 << 20;

/// How the owner is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// `kill -9`.
    Killed,
    /// It stands still, and goes on later.
    Halted,
}

/// A server of a shelf.
pub struct Server {
    /// Where its daemon is.
    pub place: Place,
    /// That.
    pub daemon: Daemon,
}

impl Server {
    /// Starts one that has all first namespaces of a shelf by two ports. It waits for a drive that
    /// no path leads to for `patience` seconds.
    pub fn start(number: usize, shelf: &Shelf, patience: u32) -> Self {
        let mut place = Place::new(&format!("server {number}"), 8);
        let fabrics = "[fabrics]\nheartbeat_ms = 250\nkeep_alive_tmo = 1\nfast_io_fail_tmo";
        place.more = format!("{fabrics} = {patience}\n");
        place.others = ["A1", "B1"]
            .iter()
            .map(|port| {
                let (address, port) = shelf.port(port);
                format!("nvme+tcp://{address}:{port}/*/1")
            })
            .collect();
        place.drive_deadline_ms = 120_000;
        let daemon = Daemon::start(&place, 1);
        Self { place, daemon }
    }

    /// Sends its daemon a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.daemon.pid() as i32).expect("one");
        kill_process(pid, signal).expect("signalled");
    }

    /// Serves the volume here, and nowhere else.
    pub fn serve(&self) -> std::path::PathBuf {
        let socket = self.place.file("v.nbd");
        let exports = self.daemon.call(&["export", "list"]);
        let own = exports["exports"].as_array().or_else(|| exports.as_array()).expect("a list");
        for export in own {
            self.daemon.call(&["export", "delete", export["id"].as_str().expect("an id")]);
        }
        let nbd = format!("unix:{}", socket.display());
        self.daemon.call(&["export", "create", "tank/v", "--nbd", &nbd]);
        socket
    }

    /// What says why the array does not run here.
    fn says(&self, what: &str) -> bool {
        self.daemon.call(&["status"]).to_string().contains(what)
    }
}

/// What writes to the volume until its server is stopped, and what the blocks may hold.
pub struct Load {
    replies: Arc<AtomicU64>,
    thread: JoinHandle<Blocks>,
}

impl Load {
    /// Begins to write.
    pub fn begin(socket: &std::path::Path, mut blocks: Blocks, mut rng: Rng) -> Self {
        let mut client = Client::connect(socket, "tank/v").expect("connected");
        // What was under way when another took over is refused.
        client.ends_by_error = true;
        let replies = Arc::<AtomicU64>::default();
        let counted = replies.clone();
        let thread = std::thread::spawn(move || {
            blocks.load(&mut client, &mut rng, |all| counted.store(all, Ordering::Relaxed));
            blocks
        });
        Self { replies, thread }
    }

    /// Waits until so many requests were answered, or the load is over.
    pub fn has_replies(&self, count: u64) {
        let is_so = || self.replies() >= count || self.is_over();
        until("replies", LIMIT, || is_so().then_some(()));
    }

    /// How many requests were answered.
    pub fn replies(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }

    /// Whether its connection has ended.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// What the blocks may hold, once its connection has ended.
    pub fn end(self) -> Blocks {
        self.thread.join().expect("its connection ended")
    }
}

/// A shelf, a server that has an array there, and one that has found it.
fn begin(patience: u32) -> (Shelf, Server, Server) {
    let shelf = Shelf::start(&["--ports", "2", "--drives", "4", "--drive-size", "32M"]);
    let [owner, other] = [1, 2].map(|number| Server::start(number, &shelf, patience));
    let names: Vec<String> =
        (1..=4).map(|drive| format!("nvme://{}/1", shelf.subsystem(drive))).collect();
    owner.daemon.create("tank", "5", &names, &[]);
    until("the other finds it", LIMIT, || {
        other.daemon.call(&["array", "list"]).to_string().contains("tank").then_some(())
    });
    (shelf, owner, other)
}

/// One that stood still wakes while no path leads to any drive. It does not know yet that another
/// server has the array by then, and waits for its drives.
#[test]
fn a_server_that_waited_for_its_drives_says_who_has_the_array_meanwhile() {
    let (shelf, owner, other) = begin(2);
    owner.signal(Signal::STOP);
    other.daemon.call(&["array", "assemble", "tank", "--take-over"]);
    shelf.ctl(&["pull", "shelf", "--reset"]);
    owner.signal(Signal::CONT);
    until("it waits", LIMIT, || owner.says("to which no path leads").then_some(()));
    shelf.ctl(&["restore", "shelf"]);
    until("it is told", LIMIT, || owner.says("taken over by").then_some(()));
    until("it goes on", LIMIT, || (other.daemon.show("tank")["state"] == "optimal").then_some(()));
    assert!(owner.says("stop it on that server"), "{}", owner.daemon.call(&["status"]));
    for server in [owner, other] {
        server.daemon.stop();
    }
    shelf.stop();
}

#[test]
fn the_array_of_a_server_that_is_gone_is_taken_over() {
    // A machine on which nothing runs for some seconds loses all paths, and no drive.
    let (shelf, mut owner, mut other) = begin(60);
    let shown = owner.daemon.show("tank");
    assert_eq!((&shown["shared"], &shown["owner"]["own"]), (&true.into(), &true.into()));
    owner.daemon.call(&["volume", "create", "tank/v", "--size", &VOLUME.to_string()]);
    let mut blocks = Blocks::new(VOLUME);
    for round in 0..count_of("PALISADE_TAKEOVERS", ROUNDS) {
        let socket = owner.serve();
        let how = if round % 2 == 0 { How::Halted } else { How::Killed };
        let mut rng = owner.place.rng.clone();
        owner.place.rng.next();
        let last = 1 + rng.below(REPLIES);
        let load = Load::begin(&socket, blocks, rng);
        if round < 2 {
            // While it lives nobody takes it.
            let refused = other.daemon.refused(&["array", "assemble", "tank", "--take-over"]);
            assert!(refused.contains("in use by host"), "{refused}");
            assert!(!load.is_over());
        }
        load.has_replies(last);
        match how {
            How::Halted => owner.signal(Signal::STOP),
            How::Killed => owner.signal(Signal::KILL),
        }
        other.daemon.call(&["array", "assemble", "tank", "--take-over"]);
        if how == How::Halted {
            owner.signal(Signal::CONT);
        }
        blocks = load.end();
        let socket = other.serve();
        blocks.verify(&socket, "tank/v", &BTreeSet::new());
        match how {
            How::Halted => {
                until("it is told", LIMIT, || owner.says("taken over by").then_some(()));
            }
            How::Killed => owner.daemon = again(owner.daemon, &owner.place),
        }
        let shown = other.daemon.settle("tank");
        assert_eq!(shown["state"], "optimal", "{shown}");
        other.daemon.scrub("tank");
        blocks.verify(&socket, "tank/v", &BTreeSet::new());
        println!("round {round}: {how:?} after {last} replies");
        core::mem::swap(&mut owner, &mut other);
    }
    owner.daemon.stop();
    other.daemon.stop();
    shelf.stop();
}

/// A daemon that was killed is started again.
fn again(daemon: Daemon, place: &Place) -> Daemon {
    daemon.kill();
    Daemon::start(place, 1)
}

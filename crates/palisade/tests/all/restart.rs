//! One daemon on a shelf: killed under load, and started again.
//!
//! Only its process died, so the array starts by itself, and nobody is asked. What the process had
//! under way may still be with the shelf. So its controllers are ended first; by a shelf that does
//! not do that it is waited for as long as a fence takes. In every other round a drive holds its
//! requests back: they are carried out when the next daemon has begun. A client knows for every
//! block which writes a reader may see ([`crate::common::blocks`]).
//!
//! This shelf also lets a host in again only when what it left has ended, so one of the two is
//! enough here. Without both, blocks are found corrupt or parity wrong within a few rounds.
//!
//! `PALISADE_RESTARTS` sets how often, 5 without it.

use crate::common::blocks::Blocks;
use crate::common::count_of;
use crate::common::place::Daemon;
use crate::common::shelf::Shelf;
use crate::takeover::{Load, Server};
use rustix::process::Signal;
use std::collections::BTreeSet;

/// Restarts, if nothing else is said.
const ROUNDS: usize = 5;
/// Most replies before the daemon is killed.
const REPLIES: u64 = 300;
/// Most replies while a drive holds its requests back.
const HELD: u64 = 32;
/// For how long it does: less than a fence.
const HELD_MS: &str = "2000";
/// Bytes of the volume.
const VOLUME: u64 = 16 << 20;
/// Drives of the array.
const DRIVES: u64 = 4;

/// Kills a daemon under load. What the blocks may hold.
fn killed(server: &mut Server, shelf: &Shelf, blocks: Blocks, is_held: bool) -> Blocks {
    let rng = &mut server.place.rng;
    let (last, more, drive) = (1 + rng.below(REPLIES), 1 + rng.below(HELD), 1 + rng.below(DRIVES));
    let own = rng.clone();
    rng.next();
    let load = Load::begin(&server.place.file("v.nbd"), blocks, own);
    load.has_replies(last);
    let drive = drive.to_string();
    if is_held {
        shelf.ctl(&["slow", "drive", &drive, "--ms", HELD_MS]);
        load.has_replies(load.replies() + more);
    }
    assert!(!load.is_over(), "it was killed under load");
    server.signal(Signal::KILL);
    // What it holds back already it holds back on.
    shelf.ctl(&["slow", "drive", &drive, "--ms", "0"]);
    println!("killed after {last} replies, drive {drive} held back: {is_held}");
    load.end()
}

fn restarts(words: &[&str]) {
    let shelf = [&["--ports", "2", "--drives", "4", "--drive-size", "32M"], words].concat();
    let shelf = Shelf::start(&shelf);
    let mut server = Server::start(1, &shelf, 2);
    // Not without drives to which no path leads yet.
    server.place.drive_wait_ms = 60_000;
    let names: Vec<String> =
        (1..=4).map(|drive| format!("nvme://{}/1", shelf.subsystem(drive))).collect();
    server.daemon.create("tank", "5", &names, &[]);
    server.daemon.call(&["volume", "create", "tank/v", "--size", &VOLUME.to_string()]);
    let socket = server.serve();
    let mut blocks = Blocks::new(VOLUME);
    for round in 0..count_of("PALISADE_RESTARTS", ROUNDS) {
        blocks = killed(&mut server, &shelf, blocks, round % 2 == 0);
        server.daemon.kill();
        server.daemon = Daemon::start(&server.place, 1);
        blocks.verify(&socket, "tank/v", &BTreeSet::new());
        let shown = server.daemon.settle("tank");
        assert_eq!((&shown["state"], &shown["owner"]["own"]), (&"optimal".into(), &true.into()));
        server.daemon.scrub("tank");
        blocks.verify(&socket, "tank/v", &BTreeSet::new());
    }
    server.daemon.stop();
    shelf.stop();
}

#[test]
fn the_array_of_a_daemon_that_was_killed_starts_again_by_itself() {
    restarts(&[]);
}

/// The same by a shelf that ends no controllers.
#[test]
fn the_array_of_a_daemon_that_was_killed_starts_again_behind_its_fence() {
    restarts(&["--no-ccr"]);
}

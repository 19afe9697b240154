//! `kill -9` of the daemon at random moments under load, optimal and resyncing.
//!
//! Two loads run at each kill: fio (`nbd` engine, `verify=crc32c`) on one volume, and on another
//! a client that knows for every block which writes a reader may see ([`common::blocks`]). After
//! the start every block must hold one of them, beside the resync and after it; scrub and the
//! outside reader must find all parity right. This proves recovery from a crash of the daemon,
//! not from power loss.

mod common;

use common::blocks::{BLOCK, Blocks};
use common::nbd::Client;
use common::place::{Daemon, Place, Served};
use common::{MIB, end, program, start, succeeded, tools_are_there, until, wait};
use rustix::process::Signal;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Kills of both tests together.
const KILLS: usize = 20;
/// Every so many kills the next comes soon after the start, beside the resync.
const HURRIED: usize = 3;
/// Every so many kills the drives are read from outside.
const OUTSIDE: usize = 4;
/// Most replies before a kill.
const REPLIES: u64 = 600;
/// Most replies before a kill that must meet the resync.
const REPLIES_HURRIED: u64 = 40;
/// Most milliseconds between the last counted reply and a kill.
const LATER: u64 = 4;
/// How long fio may take to begin, and to end.
const FIO: Duration = Duration::from_secs(20);
/// The volume of each load, in MiB.
const VOLUME: u64 = 64;

fn fio(served: &Served, more: &[&str]) -> Command {
    let mut command = program("fio");
    command.args(["--name=load", "--ioengine=nbd", "--iodepth=16", "--rw=randwrite"]);
    command.args([
        "--bsrange=4k-256k",
        "--blockalign=4k",
        "--verify=crc32c",
        "--verify_state_save=0",
    ]);
    command.arg(format!("--uri={}", served.uri)).args(more);
    command
}

struct Round<'a> {
    place: &'a mut Place,
    blocks: Blocks,
    /// What the counting client writes to, and fio.
    served: [Served; 2],
    cores: u16,
    /// Kills that met a running resync.
    resyncing: usize,
}

impl Round<'_> {
    /// Loads the daemon and kills it at a random moment; a hurried kill must meet the resync.
    fn kill(&mut self, daemon: Daemon, hurried: bool) {
        let written = daemon.written("a");
        let mut fio = Fio(start(&mut fio(&self.served[1], &["--time_based", "--runtime=60"])));
        if !hurried {
            // Nothing else writes.
            until("fio writes", FIO, || (daemon.written("a") > written).then_some(()));
        }
        let most = if hurried { REPLIES_HURRIED } else { REPLIES };
        let rng = &mut self.place.rng;
        let last = 1 + rng.below(most);
        let later = Duration::from_micros(rng.below(LATER * 1000));
        let [served, _] = &self.served;
        let mut client = Client::connect(&served.socket, &served.name).expect("connected");
        let mut victim = Some(daemon);
        let mut load_rng = rng.clone();
        rng.next();
        let begun = Instant::now();
        let resyncing = &mut self.resyncing;
        let replies = self.blocks.load(&mut client, &mut load_rng, |replies| {
            if replies >= last
                && let Some(daemon) = victim.take()
            {
                *resyncing += usize::from(daemon.show("a")["tasks"][0]["kind"] == "resync");
                std::thread::sleep(later); // The random moment itself.
                daemon.kill();
            }
        });
        assert!(victim.is_none(), "the daemon broke the connection after {replies} replies");
        println!("killed after {replies} replies, {:?}", begun.elapsed());
        let _ = end(&mut fio.0, Signal::TERM, FIO);
    }

    /// Starts it again; acknowledged blocks must be there at once, and all parity be made right.
    fn recover(&mut self, kill: usize) -> Daemon {
        let daemon = Daemon::start(self.place, self.cores);
        if kill.is_multiple_of(HURRIED) {
            return daemon;
        }
        let [served, _] = &self.served;
        self.blocks.verify(&served.socket, &served.name);
        let array = daemon.settle("a");
        assert_eq!(array["state"], "optimal", "{array}");
        daemon.scrub("a");
        self.blocks.verify(&served.socket, &served.name);
        daemon
    }

    /// Stops it, reads the drives from outside, and starts it again.
    fn outside(&mut self, daemon: Daemon, drives: &[String]) -> Daemon {
        let size = format!("--size={}m", VOLUME / 4);
        let mut whole = fio(&self.served[1], &[&size, "--do_verify=1", "--verify_fatal=1"]);
        let child = start(&mut whole);
        succeeded("fio", &wait(child, Duration::from_secs(60), "fio"));
        daemon.settle("a");
        daemon.stop();
        Place::read_array(&["--check"], drives);
        let image = self.place.read_volume("counted", drives);
        self.blocks.verify_file(&image);
        Daemon::start(self.place, self.cores)
    }
}

/// A running fio; killed when dropped.
struct Fio(Child);

impl Drop for Fio {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn killed_at_random_moments(level: &str, cores: u16) {
    if !tools_are_there(&["fio", "python3"]) {
        return;
    }
    let mut place = Place::new(&format!("kill, level {level}"), 64);
    let drives = place.drives(5);
    let mut daemon = Daemon::start(&place, cores);
    daemon.create("a", level, &drives, &[]);
    let size = format!("{VOLUME}M");
    let served = ["a/counted", "a/fio"].map(|volume| daemon.volume(&place, volume, &size));
    let blocks = Blocks::new(VOLUME * MIB);
    let mut round = Round { place: &mut place, blocks, served, cores, resyncing: 0 };
    for kill in 1..=KILLS / 2 {
        // The kill after one that nobody waited for meets its resync.
        let hurried = kill > 1 && (kill - 1).is_multiple_of(HURRIED);
        round.kill(daemon, hurried);
        daemon = round.recover(kill);
        if kill % OUTSIDE == 1 {
            daemon = round.outside(daemon, &drives);
        }
    }
    round.outside(daemon, &drives).stop();
    println!("{} kills met a resync", round.resyncing);
    assert!(round.resyncing > 0, "no kill met a resync");
}

#[test]
fn level_5_of_one_core_killed_at_random_moments() {
    killed_at_random_moments("5", 1);
}

#[test]
fn level_6_of_two_cores_killed_at_random_moments() {
    killed_at_random_moments("6", 2);
}

/// A volume of four blocks in a file, as the account says it is but for `change`.
fn look_at(change: impl FnOnce(&mut Vec<u8>)) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut bytes = vec![0; 4 * BLOCK];
    change(&mut bytes);
    std::fs::write(file.path(), bytes).expect("written");
    Blocks::new(4 * BLOCK as u64).verify_file(file.path());
}

#[test]
fn the_account_takes_what_was_written() {
    look_at(|_| ());
}

#[test]
#[should_panic(expected = "block 3 is corrupt")]
fn the_account_notices_one_wrong_byte() {
    look_at(|bytes| bytes[4 * BLOCK - 1] = 1);
}

#[test]
#[should_panic(expected = "block 1 is corrupt")]
fn the_account_notices_a_write_that_never_was() {
    look_at(|bytes| bytes[BLOCK..2 * BLOCK].copy_from_slice(&Blocks::content(1, 7)));
}

//! `kill -9` of the daemon at random moments under load: optimal, resyncing, degraded, rebuilding
//! and just after a drive failed.
//!
//! Two loads run at each kill: fio (`nbd` engine, `verify=crc32c`) on one volume, and on another
//! a client that knows for every block which writes a reader may see ([`common::blocks`]). After
//! the start, which nobody has to help, every block must hold one of them, beside the resync or
//! rebuild and after it; scrub and the outside reader must find all redundancy right. This proves
//! recovery from a crash of the daemon, not from power loss.
//!
//! Just after a failure only RAID 10 is killed: of parity groups it takes a flush until the journal
//! stands for what was under way (docs/promises.md), and before that a person is asked.
//!
//! `PALISADE_KILLS` sets how many kills there are, 20 without it; `script/long-run kill` does.

mod common;

use common::blocks::{BLOCK, Blocks};
use common::nbd::Client;
use common::place::{Daemon, Place, Served};
use common::{MIB, end, program, start, succeeded, tools_are_there, until, wait};
use rustix::process::Signal;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Kills of all tests together, if nothing else is said.
const KILLS: usize = 20;
/// So many kills of a test meet all that is to be met.
const MANY: usize = 60;
/// Every so many kills the drives are read from outside.
const OUTSIDE: usize = 4;
/// Most replies before a kill.
const REPLIES: u64 = 600;
/// Most replies before a kill that comes soon after a start.
const REPLIES_HURRIED: u64 = 40;
/// Most milliseconds between the last counted reply and a kill.
const LATER: u64 = 4;
/// Most milliseconds between a failure and a kill just after it.
const AFTER_FAILURE: u64 = 20;
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

/// How the array is when the daemon is killed.
#[derive(Clone, Copy, PartialEq, Debug)]
enum When {
    /// All is right, made so by the start where something was under way at the last kill.
    Whole,
    /// Soon after the start, so that the kill meets what that makes right of the one before.
    Soon,
    /// A drive is out, and has been for a while.
    Degraded,
    /// Its successor is being filled.
    Rebuilding,
    /// A drive was taken out a moment ago.
    JustFailed,
}

struct Round<'a> {
    place: &'a mut Place,
    drives: Vec<String>,
    blocks: Blocks,
    /// What the counting client writes to, and fio.
    served: [Served; 2],
    cores: u16,
    /// The slot whose drive is out.
    out: Option<usize>,
    /// Kills that met a running resync, and a running rebuild.
    met: [usize; 2],
}

impl Round<'_> {
    /// Brings the array to where the next kill wants it.
    fn prepare(&mut self, daemon: &Daemon, when: When) {
        match when {
            When::Whole | When::Soon => {}
            When::Degraded => {
                if self.out.is_none() {
                    self.fail(daemon);
                }
                until("the journal stands for the failed drive", FIO, || {
                    (daemon.show("a")["crash_safe"] == true).then_some(())
                });
            }
            When::Rebuilding => {
                if self.out.is_none() {
                    self.fail(daemon);
                }
                self.replace(daemon);
            }
            When::JustFailed => {
                self.mend(daemon);
            }
        }
    }

    fn fail(&mut self, daemon: &Daemon) {
        let slot = self.place.rng.below(self.drives.len() as u64) as usize;
        daemon.call(&["array", "fail", "a", "--drive", &format!("slot:{slot}")]);
        self.out = Some(slot);
    }

    /// Puts a new drive in, if one is out.
    fn replace(&mut self, daemon: &Daemon) {
        let Some(slot) = self.out.take() else { return };
        self.drives[slot] = self.place.drive();
        let slot = slot.to_string();
        let at = self.drives[slot.parse::<usize>().expect("a number")].clone();
        daemon.call(&["array", "replace", "a", "--slot", &slot, "--with", &at]);
    }

    /// Makes the array whole.
    fn mend(&mut self, daemon: &Daemon) {
        self.replace(daemon);
        assert_eq!(daemon.settle("a")["state"], "optimal");
    }

    /// Loads the daemon and kills it at a random moment.
    fn kill(&mut self, daemon: Daemon, when: When) {
        let written = daemon.written("a");
        let mut fio = Fio(start(&mut fio(&self.served[1], &["--time_based", "--runtime=60"])));
        let soon = matches!(when, When::Soon | When::Rebuilding);
        if when != When::Soon {
            // Nothing else writes.
            until("fio writes", FIO, || (daemon.written("a") > written).then_some(()));
        }
        if when != When::JustFailed {
            self.prepare(&daemon, when);
        }
        let most = if soon { REPLIES_HURRIED } else { REPLIES };
        let last = 1 + self.place.rng.below(most);
        let mut later = Duration::from_micros(self.place.rng.below(LATER * 1000));
        if when == When::JustFailed {
            later += Duration::from_micros(self.place.rng.below(AFTER_FAILURE * 1000));
        }
        let slot = self.place.rng.below(self.drives.len() as u64) as usize;
        let [served, _] = &self.served;
        let mut client = Client::connect(&served.socket, &served.name).expect("connected");
        let mut victim = Some(daemon);
        let mut load_rng = self.place.rng.clone();
        self.place.rng.next();
        let begun = Instant::now();
        let (met, out) = (&mut self.met, &mut self.out);
        let replies = self.blocks.load(&mut client, &mut load_rng, |replies| {
            if replies >= last
                && let Some(daemon) = victim.take()
            {
                let kind = daemon.show("a")["tasks"][0]["kind"].clone();
                met[0] += usize::from(kind == "resync");
                met[1] += usize::from(kind == "rebuild");
                if when == When::JustFailed {
                    daemon.call(&["array", "fail", "a", "--drive", &format!("slot:{slot}")]);
                    *out = Some(slot);
                }
                std::thread::sleep(later); // The random moment itself.
                daemon.kill();
            }
        });
        assert!(victim.is_none(), "the daemon broke the connection after {replies} replies");
        println!("{when:?}: killed after {replies} replies, {:?}", begun.elapsed());
        let _ = end(&mut fio.0, Signal::TERM, FIO);
    }

    /// Starts it again; acknowledged blocks must be there at once, and all redundancy be made
    /// right, where there is any. Before a kill that comes soon nobody looks.
    fn recover(&mut self, next: Option<When>) -> Daemon {
        let daemon = Daemon::start(self.place, self.cores);
        if next == Some(When::Soon) {
            return daemon;
        }
        let [served, _] = &self.served;
        self.blocks.verify(&served.socket, &served.name);
        let array = daemon.settle("a");
        let state = if self.out.is_some() { "degraded" } else { "optimal" };
        assert_eq!(array["state"], state, "{array}");
        if self.out.is_none() {
            daemon.scrub("a");
        }
        self.blocks.verify(&served.socket, &served.name);
        daemon
    }

    /// Makes it whole, stops it, reads the drives from outside, and starts it again.
    fn outside(&mut self, daemon: Daemon) -> Daemon {
        let size = format!("--size={}m", VOLUME / 4);
        let mut whole = fio(&self.served[1], &[&size, "--do_verify=1", "--verify_fatal=1"]);
        let child = start(&mut whole);
        succeeded("fio", &wait(child, Duration::from_secs(60), "fio"));
        self.mend(&daemon);
        daemon.stop();
        Place::read_array(&["--check"], &self.drives);
        let image = self.place.read_volume("counted", &self.drives);
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

/// So many of the kills are `share` of `of`; of a long run as many more.
fn kills(share: usize, of: usize) -> usize {
    let asked = std::env::var("PALISADE_KILLS").ok();
    let all = asked.map_or(KILLS, |text| text.parse().expect("PALISADE_KILLS is a number"));
    (all * share).div_ceil(of)
}

fn killed_at_random_moments(level: &str, cores: u16, kills: usize, turn: &[When]) {
    if !tools_are_there(&["fio", "python3"]) {
        return;
    }
    let mut place = Place::new(&format!("kill, level {level}, {turn:?}"), 64);
    let drives = place.drives(if level == "10" { 4 } else { 5 });
    let mut daemon = Daemon::start(&place, cores);
    daemon.create("a", level, &drives, &[]);
    let size = format!("{}M", if level == "10" { VOLUME / 2 } else { VOLUME });
    let served = ["a/counted", "a/fio"].map(|volume| daemon.volume(&place, volume, &size));
    let volume = if level == "10" { VOLUME / 2 } else { VOLUME };
    let blocks = Blocks::new(volume * MIB);
    let met = [0; 2];
    let mut round = Round { place: &mut place, drives, blocks, served, cores, out: None, met };
    for kill in 0..kills {
        let when = turn[kill % turn.len()];
        // What looks from outside waits for what `Soon` is to meet.
        if kill % OUTSIDE == OUTSIDE - 1 && when != When::Soon {
            daemon = round.outside(daemon);
        }
        if when == When::JustFailed {
            round.prepare(&daemon, when);
        }
        round.kill(daemon, when);
        let next = (kill + 1 < kills).then(|| turn[(kill + 1) % turn.len()]);
        daemon = round.recover(next);
    }
    round.outside(daemon).stop();
    let [resyncs, rebuilds] = round.met;
    println!("{resyncs} kills met a resync, {rebuilds} a rebuild");
    let many = kills >= MANY;
    assert!(!many || rebuilds > 0 || !turn.contains(&When::Rebuilding), "no kill met a rebuild");
}

#[test]
fn level_5_of_one_core_killed_at_random_moments() {
    let turn = [When::Whole, When::Soon, When::Degraded, When::Degraded, When::Rebuilding];
    killed_at_random_moments("5", 1, kills(8, 20), &turn);
}

#[test]
fn level_6_of_two_cores_killed_at_random_moments() {
    let turn = [When::Whole, When::Soon, When::Degraded, When::Rebuilding];
    killed_at_random_moments("6", 2, kills(8, 20), &turn);
}

#[test]
fn level_10_killed_just_after_a_failure() {
    killed_at_random_moments("10", 2, kills(4, 20), &[When::JustFailed, When::Rebuilding]);
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

//! `kill -9` of the daemon at random moments under load: optimal, resyncing, degraded, rebuilding,
//! just after a drive failed, and with a drive that is gone at the next start.
//!
//! Two loads run at each kill: fio (`nbd` engine, `verify=crc32c`) on one volume, and on another
//! a client that knows for every block which writes a reader may see ([`common::blocks`]). After
//! the start, which nobody has to help, every block must hold one of them, beside the resync or
//! rebuild and after it; scrub and the outside reader must find all redundancy right. This proves
//! recovery from a crash of the daemon, not from power loss.
//!
//! fio has no such account: the state with which it would verify later (`verify_state_save`) is
//! written when its job ends, and knows nothing of requests that a killed server left open. So its
//! volume is written whole once, with a checksum and the offset in every block, and after each kill
//! fio reads all of it: each block must be some write to its own place, whole.
//!
//! A parity group that loses a drive at the instant of the crash may lose blocks: exception (a) of
//! docs/promises.md. So just after a failure, and where a drive is gone, levels 5 and 6 may list
//! blocks with the reason `crash`. A read of these must fail, and only of these; they lie in
//! columns that were just being written; written anew, the list is empty again. In every other
//! state, and of level 10 in all, the list is empty.
//!
//! `PALISADE_KILLS` sets how many kills there are, 20 without it; `script/long-run kill` does.

mod common;

use common::blocks::{BLOCK, Blocks, Stripes, read_but};
use common::nbd::Client;
use common::place::{Daemon, Place, Served};
use common::{MIB, end, program, start, succeeded, tools_are_there, until, wait};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread::{self, JoinHandle};
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
/// The same of a failure and a kill just after it.
const AFTER_FAILURE: u64 = 1;
/// How long fio may take to begin, and to end.
const FIO: Duration = Duration::from_secs(20);
/// The volume of each load, in MiB.
const VOLUME: u64 = 64;
/// Bytes of a strip.
const STRIP: usize = 64 << 10;

fn fio(served: &Served, more: &[&str]) -> Command {
    let mut command = program("fio");
    command.args(["--name=load", "--ioengine=nbd", "--iodepth=16"]);
    command.args(["--verify=crc32c", "--verify_interval=4k", "--verify_state_save=0"]);
    command.arg(format!("--uri={}", served.uri)).args(more);
    command
}

/// What fio does while the daemon is killed.
const LOAD: [&str; 5] =
    ["--rw=randwrite", "--bsrange=4k-256k", "--blockalign=4k", "--time_based", "--runtime=60"];
/// All blocks of the volume are written, in order.
const FILL: [&str; 3] = ["--rw=write", "--bs=256k", "--do_verify=0"];
/// All blocks of the volume are read, and each must be right by itself.
const CHECK: [&str; 2] = ["--rw=read", "--bs=256k"];

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
    /// A drive was taken out a moment ago, or is just being.
    JustFailed,
    /// All is right; at the next start the file of one drive is absent.
    Gone,
}

impl When {
    /// Whether blocks that are being written may be lost.
    fn may_lose(self) -> bool {
        matches!(self, Self::JustFailed | Self::Gone)
    }
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
    /// Where the file of a drive that is gone is now.
    away: Option<PathBuf>,
    /// Of a parity group, which blocks make a stripe, and how many drives it can lose.
    parity: Option<(Stripes, usize)>,
    /// What fio's volume held before all loads.
    filled: Vec<u8>,
    met: Met,
}

/// What kills met.
#[derive(Default, Debug)]
struct Met {
    resyncs: usize,
    rebuilds: usize,
    /// A failure that was recorded.
    failures: usize,
    /// Blocks that were lost, of both volumes.
    lost: usize,
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
            When::JustFailed | When::Gone => {}
        }
    }

    fn fail(&mut self, daemon: &Daemon) {
        let slot = self.place.rng.below(self.drives.len() as u64) as usize;
        daemon.call(&["array", "fail", "a", "--drive", &format!("slot:{slot}")]);
        self.out = Some(slot);
    }

    /// Puts a drive in, if one is out: a new one, or one that was gone and is there again.
    fn replace(&mut self, daemon: &Daemon) {
        let Some(slot) = self.out.take() else { return };
        match self.away.take().filter(|_| self.place.rng.below(2) == 0) {
            Some(away) => std::fs::rename(away, &self.drives[slot]).expect("moved back"),
            None => self.drives[slot] = self.place.drive(),
        }
        let words = ["array", "replace", "a", "--slot", &slot.to_string(), "--with"];
        daemon.call(&[&words[..], &[&self.drives[slot]]].concat());
    }

    /// Makes the array whole.
    fn mend(&mut self, daemon: &Daemon) {
        self.replace(daemon);
        assert_eq!(daemon.settle("a")["state"], "optimal");
    }

    /// Loads the daemon and kills it at a random moment.
    fn kill(&mut self, daemon: Daemon, when: When) {
        let written = daemon.written("a");
        let mut fio = Fio(start(&mut fio(&self.served[1], &LOAD)));
        let soon = matches!(when, When::Soon | When::Rebuilding);
        if when != When::Soon {
            // Nothing else writes.
            until("fio writes", FIO, || (daemon.written("a") > written).then_some(()));
        }
        self.prepare(&daemon, when);
        let most = if soon { REPLIES_HURRIED } else { REPLIES };
        let last = 1 + self.place.rng.below(most);
        let slot = self.place.rng.below(self.drives.len() as u64) as usize;
        let other = self.drives[(slot + 1) % self.drives.len()].clone();
        let over = when == When::JustFailed && self.place.rng.below(2) == 0;
        let mut failing = (when == When::JustFailed).then_some(Failing { slot, other, over });
        let most = if failing.is_some() { AFTER_FAILURE } else { LATER };
        let later = Duration::from_micros(self.place.rng.below(most * 1000));
        let [served, _] = &self.served;
        let mut client = Client::connect(&served.socket, &served.name).expect("connected");
        let (mut victim, mut striking) = (Some(daemon), None);
        let mut load_rng = self.place.rng.clone();
        self.place.rng.next();
        let begun = Instant::now();
        let replies = self.blocks.load(&mut client, &mut load_rng, |replies| {
            if replies >= last
                && let Some(daemon) = victim.take()
            {
                striking = Some(strike(daemon, failing.take(), later));
            }
        });
        let striking = striking.unwrap_or_else(|| panic!("no connection after {replies} replies"));
        let task = striking.join().expect("killed");
        println!("{when:?}: killed after {replies} replies, {:?}", begun.elapsed());
        self.met.resyncs += usize::from(task == "resync");
        self.met.rebuilds += usize::from(task == "rebuild");
        let _ = end(&mut fio.0, Signal::TERM, FIO);
        if when == When::Gone {
            let away = self.place.file("away.img");
            std::fs::rename(&self.drives[slot], &away).expect("moved away");
            (self.out, self.away) = (Some(slot), Some(away));
        }
    }

    /// Starts it again; acknowledged blocks must be there at once, and all redundancy be made
    /// right, where there is any. Before a kill that comes soon nobody looks.
    fn recover(&mut self, when: When, next: Option<When>) -> Daemon {
        let daemon = Daemon::start(self.place, self.cores);
        if next == Some(When::Soon) {
            return daemon;
        }
        if when == When::JustFailed {
            let shown = daemon.show("a");
            let mut slots = shown["slots"].as_array().expect("a list").iter();
            self.out = slots.position(|slot| slot["state"] == "failed");
            self.met.failures += usize::from(self.out.is_some());
        }
        let lost = self.lost(&daemon, when);
        let [counted, fios] = self.served.clone();
        self.blocks.verify(&counted.socket, &counted.name, &lost[0]);
        if !lost[1].is_empty() {
            let mut client = Client::connect(&fios.socket, &fios.name).expect("connected");
            read_but(&mut client, &lost[1], |_, _| ());
        }
        let array = daemon.settle("a");
        let state = if self.out.is_some() { "degraded" } else { "optimal" };
        assert_eq!(array["state"], state, "{array}");
        if self.out.is_none() {
            daemon.scrub("a");
        }
        self.heal(&daemon, &lost);
        self.blocks.verify(&counted.socket, &counted.name, &BTreeSet::new());
        self.check();
        daemon
    }

    /// Which blocks of each volume are listed as lost: none but those that may be.
    fn lost(&mut self, daemon: &Daemon, when: When) -> [BTreeSet<usize>; 2] {
        let mut lost = [BTreeSet::new(), BTreeSet::new()];
        let shown = daemon.show("a");
        for range in shown["unreadable"].as_array().expect("a list") {
            assert_eq!(range["reason"], "crash", "{range}");
            let [offset, length] = ["offset", "length"].map(|key| {
                let bytes = range[key].as_u64().expect("a number") as usize;
                assert_eq!(bytes % BLOCK, 0, "{range}");
                bytes / BLOCK
            });
            lost[usize::from(range["volume"] == "fio")].extend(offset..offset + length);
        }
        let count = lost[0].len() + lost[1].len();
        println!("{when:?}: {} and {} blocks are lost", lost[0].len(), lost[1].len());
        self.met.lost += count;
        if count > 0 {
            assert!(when.may_lose() && self.out.is_some(), "{}", shown["unreadable"]);
            let (stripes, parities) = self.parity.expect("copies are lost with all drives only");
            self.blocks.may_be_lost(&lost[0], stripes, parities > 1);
        }
        lost
    }

    /// Writes what is lost anew: nothing is lost any more.
    fn heal(&mut self, daemon: &Daemon, lost: &[BTreeSet<usize>; 2]) {
        let [counted, fios] = &self.served;
        self.blocks.heal(&counted.socket, &counted.name, &lost[0]);
        let mut client = Client::connect(&fios.socket, &fios.name).expect("connected");
        for block in &lost[1] {
            let at = block * BLOCK;
            client.write(at as u64, &self.filled[at..at + BLOCK]).expect("written");
        }
        assert_eq!(daemon.show("a")["unreadable"], serde_json::json!([]));
    }

    /// Has fio look at every block of its volume.
    fn check(&self) {
        let child = start(&mut fio(&self.served[1], &CHECK));
        succeeded("fio", &wait(child, Duration::from_secs(60), "fio"));
    }

    /// Has fio write every block of its volume, and keeps what it wrote.
    fn fill(&mut self) {
        let [_, fios] = &self.served;
        let child = start(&mut fio(fios, &FILL));
        succeeded("fio", &wait(child, Duration::from_secs(60), "fio"));
        let mut client = Client::connect(&fios.socket, &fios.name).expect("connected");
        read_but(&mut client, &BTreeSet::new(), |_, bytes| self.filled.extend(bytes));
    }

    /// Makes it whole, stops it, reads the drives from outside, and starts it again.
    fn outside(&mut self, daemon: Daemon) -> Daemon {
        self.mend(&daemon);
        daemon.stop();
        Place::read_array(&["--check"], &self.drives);
        let image = self.place.read_volume("counted", &self.drives);
        self.blocks.verify_file(&image);
        self.place.keep(&self.drives);
        Daemon::start(self.place, self.cores)
    }
}

/// A drive that is taken out just before a kill.
struct Failing {
    slot: usize,
    /// The drive of another slot.
    other: String,
    /// Whether the kill waits for the answer; or only until `other` has it recorded.
    over: bool,
}

/// What a drive's areas of records hold: the first and the last MiB.
fn records(drive: &str) -> Vec<u8> {
    let file = std::fs::File::open(drive).expect("opened");
    let end = file.metadata().expect("known").len();
    let mut bytes = vec![0; 2 * MIB as usize];
    let (head, tail) = bytes.split_at_mut(MIB as usize);
    file.read_exact_at(head, 0).expect("read");
    file.read_exact_at(tail, end - MIB).expect("read");
    bytes
}

/// Kills the daemon so much `later`, while its clients go on. What the array was busy with.
fn strike(daemon: Daemon, failing: Option<Failing>, later: Duration) -> JoinHandle<String> {
    thread::spawn(move || {
        let task = daemon.show("a")["tasks"][0]["kind"].as_str().unwrap_or_default().to_owned();
        let failing = failing.and_then(|Failing { slot, other, over }| {
            let words = ["array", "fail", "a", "--drive", &format!("slot:{slot}")];
            let before = records(&other);
            let child = daemon.start_call(&words);
            if over {
                succeeded("array fail", &wait(child, FIO, "array fail"));
                return None;
            }
            let begun = Instant::now();
            while records(&other) == before && begun.elapsed() < FIO {
                thread::yield_now();
            }
            Some(child)
        });
        thread::sleep(later); // The random moment itself.
        daemon.kill();
        if let Some(child) = failing {
            // It may have come too late.
            wait(child, FIO, "array fail");
        }
        task
    })
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
    let (drives, volume, parities) = match level {
        "10" => (4, VOLUME / 2, 0),
        "5" => (5, VOLUME, 1),
        _ => (5, VOLUME, 2),
    };
    let drives = place.drives(drives);
    let mut daemon = Daemon::start(&place, cores);
    daemon.create("a", level, &drives, &[]);
    let served =
        ["a/counted", "a/fio"].map(|name| daemon.volume(&place, name, &format!("{volume}M")));
    let stripes = Stripes { strip: STRIP / BLOCK, data: drives.len() - parities };
    let mut round = Round {
        place: &mut place,
        drives,
        blocks: Blocks::new(volume * MIB),
        served,
        cores,
        out: None,
        away: None,
        parity: (parities > 0).then_some((stripes, parities)),
        filled: Vec::new(),
        met: Met::default(),
    };
    round.fill();
    for kill in 0..kills {
        let when = turn[kill % turn.len()];
        // What looks from outside waits for what `Soon` is to meet.
        if kill % OUTSIDE == OUTSIDE - 1 && when != When::Soon {
            daemon = round.outside(daemon);
        }
        if matches!(when, When::Whole | When::JustFailed | When::Gone) {
            round.mend(&daemon);
        }
        round.kill(daemon, when);
        let next = (kill + 1 < kills).then(|| turn[(kill + 1) % turn.len()]);
        daemon = round.recover(when, next);
    }
    round.outside(daemon).stop();
    let met = round.met;
    println!("{kills} kills of level {level}: {met:?}");
    let many = kills >= MANY;
    assert!(!many || met.rebuilds > 0 || !turn.contains(&When::Rebuilding), "{met:?}");
    assert!(!many || met.failures > 0 || !turn.contains(&When::JustFailed), "{met:?}");
    assert!(!many || met.lost > 0 || parities != 1, "{met:?}");
}

/// Every state that parity groups are killed in. What `Soon` meets is of a kill of the whole array.
const ALL: [When; 8] = [
    When::Whole,
    When::Soon,
    When::JustFailed,
    When::Rebuilding,
    When::Gone,
    When::Degraded,
    When::JustFailed,
    When::Gone,
];

#[test]
fn level_5_of_one_core_killed_at_random_moments() {
    killed_at_random_moments("5", 1, kills(8, 20), &ALL);
}

#[test]
fn level_6_of_two_cores_killed_at_random_moments() {
    killed_at_random_moments("6", 2, kills(8, 20), &ALL);
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

/// That a block is lost, of stripes of two strips of two blocks, when a write of block 0 was over,
/// or was cut off.
fn lost(block: usize, cut: bool) {
    let mut blocks = Blocks::new(8 * BLOCK as u64);
    blocks.wrote(0, cut);
    let stripes = Stripes { strip: 2, data: 2 };
    blocks.may_be_lost(&BTreeSet::from([block]), stripes, true);
}

#[test]
fn the_account_gives_up_what_was_cut_off_in_its_column() {
    lost(2, true);
}

#[test]
#[should_panic(expected = "block 2 is lost")]
fn the_account_gives_up_nothing_that_was_acknowledged() {
    lost(2, false);
}

#[test]
#[should_panic(expected = "block 3 is lost")]
fn the_account_gives_up_no_other_column() {
    lost(3, true);
}

#[test]
#[should_panic(expected = "block 6 is lost")]
fn the_account_gives_up_no_other_stripe() {
    lost(6, true);
}

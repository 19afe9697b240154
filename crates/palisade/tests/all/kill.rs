//! `kill -9` of the daemon at random moments under load: optimal, resyncing, degraded, rebuilding,
//! just after a drive failed, and with a drive that is gone at the next start. The starts that
//! follow are killed too, once or twice each, before they are done. Each state must be met.
//!
//! Two loads run at each kill: fio (`nbd` engine, `verify=crc32c`) on one volume, and on another a
//! client that knows for every block which writes a reader may see ([`crate::common::blocks`]).
//! After the start, which nobody has to help, every block must hold one of them, beside the resync
//! or rebuild and after it; scrub and the outside reader must find all redundancy right. This
//! proves recovery from a crash of the daemon, not from power loss.
//!
//! fio has no such account: the state with which it would verify later (`verify_state_save`) is
//! written when its job ends, and knows nothing of requests that a killed server left open. So its
//! volume is written whole once, with a checksum and the offset in every block, and after each kill
//! fio reads all of it: each block must be some write to its own place, whole.
//!
//! A parity group that loses a drive at the instant of the crash may lose blocks: exception (a) of
//! docs/promises.md. So just after a failure, and where a drive is gone, levels 5 and 6 may list
//! blocks with the reason `crash`. A read of these must fail, and only of these; they lie in
//! columns that were just being written, one of each; written anew, the list is empty again. In
//! every other state, and of level 10 in all, the list is empty. What was being written the account
//! says ([`crate::common::blocks`]); of fio's volume it is what fio asked for last, by its own log.
//! Drives are in memory: no cache has any more to be listed.
//!
//! A drive of which the daemon said that it is taken out must be out after the start.
//!
//! `PALISADE_KILLS` sets how many kills there are, 20 without it; `script/long-run kill` does.

use crate::common::blocks::{BLOCK, Blocks, LATER, Stripes, read_but};
use crate::common::nbd::Client;
use crate::common::place::{Daemon, Place, Served, Starting};
use crate::common::{
    MIB, Running, count_of, end, program, skip, start, succeeded, tools_are_there, until, wait,
};
use crate::redfish::get_at;
use core::ops::Range;
use rustix::process::Signal;
use serde_json::json;
use std::collections::{BTreeSet, VecDeque};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Kills of all tests together, if nothing else is said.
const KILLS: usize = 20;
/// So many kills of a test meet all that is to be met.
const MANY: usize = 60;
/// Most kills that are added where one state was not met.
const MORE: usize = 10;
/// Every so many kills the drives are read from outside.
const OUTSIDE: usize = 4;
/// Most replies before a kill.
const REPLIES: u64 = 600;
/// Most replies before a kill that comes soon after a start.
const REPLIES_HURRIED: u64 = 8;
/// Most milliseconds between the last counted reply and a kill.
const AFTER_REPLY: u64 = 4;
/// The same of a failure and a kill just after it.
const AFTER_FAILURE: u64 = 1;
/// Most milliseconds between the begin of a start, and a kill in it.
const IN_START: u64 = 150;
/// The same of the first change of a record by a start, and a kill just after it.
const IN_RECOVERY: u64 = 10;
/// So many of the newest requests of fio may have been under way, or over for a moment: those that
/// it has under way at once, and others that came since the oldest of them. One waits for its page
/// of the map to be written while the fifteen others have their turn again and again: on a slow
/// machine four times each was not enough.
const FIO_LAST: usize = 256;
/// Where what arrays are and were busy with is told.
const JOBS: &str = "/redfish/v1/JobService/Jobs?$expand=.";
/// How long fio may take to begin, and to end.
const FIO: Duration = Duration::from_secs(20);
/// What fio was asked for while it was the load, in order.
const FIO_LOG: &str = "fio.log";
/// The volume of each load, in MiB.
const VOLUME: u64 = 64;
/// Bytes of a record slot, and of its header (docs/format.md).
const SLOT: u64 = 256 << 10;
const HEADER: usize = 128;
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
    /// Soon after the start, so that the kill meets the resync that copies need after the one
    /// before, if that was of the whole array.
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
    /// The drive that was to be taken out just before the last kill, and whether the daemon said
    /// that it is.
    struck: Option<(usize, bool)>,
    met: Met,
}

/// What kills met.
#[derive(Default, Debug)]
struct Met {
    /// All was right.
    optimal: usize,
    /// A drive was out, and nothing was done about it.
    degraded: usize,
    resyncs: usize,
    rebuilds: usize,
    /// A failure that was recorded.
    failures: usize,
    /// One that the daemon had said to be.
    answered: usize,
    /// A start that was not done; kills of starts that were are not counted.
    starts: usize,
    /// One of these that had written records.
    recoveries: usize,
    /// Blocks that were lost, of both volumes.
    lost: usize,
}

impl Met {
    /// How many kills met what they were to meet in this state.
    fn times(&self, when: When) -> usize {
        match when {
            When::Whole => self.optimal,
            When::Soon => self.resyncs,
            When::Degraded => self.degraded,
            When::Rebuilding => self.rebuilds,
            When::JustFailed => self.failures,
            // The test itself takes the drive away.
            When::Gone => usize::MAX,
        }
    }
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
            }
            When::JustFailed | When::Gone => {}
        }
    }

    fn fail(&mut self, daemon: &Daemon) {
        let slot = self.place.rng.below(self.drives.len() as u64) as usize;
        daemon.call(&["array", "fail", "a", "--drive", &format!("slot:{slot}")]);
        self.out = Some(slot);
    }

    /// Puts a drive in, if one is out.
    fn replace(&mut self, daemon: &Daemon) {
        if let Some(words) = self.successor() {
            daemon.call(&words.each_ref().map(String::as_str));
        }
    }

    /// The command that puts a drive in, if one is out: a new one, or one that was gone and is
    /// there again.
    fn successor(&mut self) -> Option<[String; 7]> {
        let slot = self.out.take()?;
        match self.away.take().filter(|_| self.place.rng.below(2) == 0) {
            Some(away) => std::fs::rename(away, &self.drives[slot]).expect("moved back"),
            None => self.drives[slot] = self.place.drive(),
        }
        let (own, with) = (slot.to_string(), &self.drives[slot]);
        Some(["array", "replace", "a", "--slot", &own, "--with", with].map(str::to_owned))
    }

    /// Makes the array whole.
    fn mend(&mut self, daemon: &Daemon) {
        self.replace(daemon);
        assert_eq!(daemon.settle("a")["state"], "optimal");
    }

    /// What is done just before a kill, to the drive of a slot where that is to fail.
    fn first(&mut self, when: When, slot: usize) -> Option<First> {
        let (words, other) = match when {
            When::JustFailed => {
                let words = ["array", "fail", "a", "--drive", &format!("slot:{slot}")];
                let other = self.drives[(slot + 1) % self.drives.len()].clone();
                let over = self.place.rng.below(2) == 0;
                (words.map(str::to_owned).into(), (!over).then_some(other))
            }
            When::Rebuilding => (self.successor().expect("a drive is out").into(), None),
            When::Whole | When::Soon | When::Degraded | When::Gone => return None,
        };
        Some(First { words, other })
    }

    /// Loads the daemon and kills it at a random moment.
    fn kill(&mut self, daemon: Daemon, when: When) {
        let log = format!("--write_iolog={}", self.place.file(FIO_LOG).display());
        let written = if when == When::Soon { 0 } else { daemon.written("a") };
        let mut fio = Running(start(fio(&self.served[1], &LOAD).arg(log)));
        let soon = when == When::Soon;
        if when != When::Soon {
            // Nothing else writes.
            until("fio writes", FIO, || (daemon.written("a") > written).then_some(()));
        }
        self.prepare(&daemon, when);
        // What is to be met then may be over soon.
        let most = if soon { 1 + self.place.rng.below(REPLIES_HURRIED) } else { REPLIES };
        let last = 1 + self.place.rng.below(most);
        let slot = self.place.rng.below(self.drives.len() as u64) as usize;
        let mut first = self.first(when, slot);
        let most = match when {
            // The sooner, the less the daemon has done about it.
            When::JustFailed => 1 + self.place.rng.below(AFTER_FAILURE * 1000),
            _ => AFTER_REPLY * 1000,
        };
        let later = Duration::from_micros(self.place.rng.below(most));
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
                striking = Some(strike(daemon, first.take(), later));
            }
        });
        let striking = striking.unwrap_or_else(|| panic!("no connection after {replies} replies"));
        let Struck { state, task, answered } = striking.join().expect("killed");
        println!("{when:?}: killed after {replies} replies, {:?}; {state} {task}", begun.elapsed());
        let met = &mut self.met;
        match when {
            When::Whole => met.optimal += usize::from(state == "optimal" && task.is_empty()),
            When::Degraded => met.degraded += usize::from(state == "degraded" && task.is_empty()),
            // It is too short for the daemon to be asked: its record tells.
            When::Rebuilding => {
                let record = Place::read_array(&["--info"], &self.drives);
                met.rebuilds += usize::from(record.contains("\"rebuilding\""));
            }
            When::Soon => met.resyncs += usize::from(task == "resync"),
            When::JustFailed | When::Gone => {}
        }
        self.struck =
            answered.filter(|_| when == When::JustFailed).map(|answered| (slot, answered));
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
        self.kill_start(true);
        if self.place.rng.below(2) == 0 {
            self.kill_start(false);
        }
        let daemon = Daemon::start(self.place, self.cores);
        if let Some((slot, answered)) = self.struck.take() {
            let shown = daemon.show("a");
            let slots = shown["slots"].as_array().expect("a list");
            self.out = (0..slots.len()).find(|slot| slots[*slot]["state"] == "failed");
            assert!(self.out.is_none_or(|out| out == slot), "slot {slot} was to fail: {shown}");
            assert!(!answered || self.out.is_some(), "slot {slot} was said to be out: {shown}");
            self.met.failures += usize::from(self.out.is_some());
            self.met.answered += usize::from(answered);
        }
        if next == Some(When::Soon) {
            return daemon;
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

    /// Kills a start at a random moment: just after it first wrote a record, or any.
    fn kill_start(&mut self, in_recovery: bool) {
        let most = if in_recovery { IN_RECOVERY } else { IN_START };
        let later = self.place.rng.below(most * 1000);
        let out = [self.out, self.struck.map(|(slot, _)| slot)];
        let mut slots = 0..self.drives.len();
        let slot = slots.find(|slot| !out.contains(&Some(*slot))).expect("a drive");
        let before = records(&self.drives[slot]);
        let has_written = || records(&self.drives[slot]) != before;
        let mut starting = Starting::begin(self.place, self.cores, &[], &[]);
        let begun = Instant::now();
        while in_recovery && !has_written() && !starting.is_ready() && begun.elapsed() < FIO {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(later)); // The random moment itself.
        let done = starting.kill();
        let has_written = has_written();
        println!("a start killed after {:?}: done {done}, wrote {has_written}", begun.elapsed());
        self.met.starts += usize::from(!done);
        self.met.recoveries += usize::from(!done && has_written);
    }

    /// Which blocks of each volume are listed as lost: none but those that may be.
    fn lost(&mut self, daemon: &Daemon, when: When) -> [BTreeSet<usize>; 2] {
        let mut lost = [BTreeSet::new(), BTreeSet::new()];
        let shown = daemon.show("a");
        for range in shown["unreadable"].as_array().expect("a list") {
            assert_eq!(range["reason"], "crash", "{range}");
            let [offset, length] =
                ["offset", "length"].map(|key| range[key].as_u64().expect("a number") as usize);
            // Drives have smaller blocks, and fio writes some of them as they were.
            let blocks = offset / BLOCK..(offset + length).div_ceil(BLOCK);
            lost[usize::from(range["volume"] == "fio")].extend(blocks);
        }
        let count = lost[0].len() + lost[1].len();
        println!("{when:?}: {} and {} blocks are lost", lost[0].len(), lost[1].len());
        self.met.lost += count;
        if count > 0 {
            assert!(when.may_lose() && self.out.is_some(), "{}", shown["unreadable"]);
            let (stripes, parities) = self.parity.expect("copies are lost with all drives only");
            let later = self.blocks.may_be_lost(&lost[0], stripes, parities == 1);
            println!("what was over for longest of them was so at most {later} writes before");
            let asked = self.asked_last();
            let since = lost[1].iter().map(|block| {
                let is_its = |own: &Range<usize>| own.clone().any(|own| stripes.same(own, *block));
                asked.iter().position(is_its).unwrap_or(FIO_LAST)
            });
            println!("fio asked for the oldest of its {} writes ago", since.max().unwrap_or(0));
            stripes.explain(&lost[1], asked.into_iter().flatten());
        }
        lost
    }

    /// The blocks of fio's newest writes, the last first.
    fn asked_last(&self) -> Vec<Range<usize>> {
        let log = std::fs::read_to_string(self.place.file(FIO_LOG)).expect("fio's log");
        let write = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
            [_, _, "write", offset, length] => Some((offset.parse().ok()?, length.parse().ok()?)),
            _ => None,
        };
        let newest = log.lines().rev().filter_map(write).take(FIO_LAST);
        let blocks = |(offset, length): (usize, usize)| offset / BLOCK..(offset + length) / BLOCK;
        newest.map(blocks).collect()
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

/// What is done just before a kill.
struct First {
    words: Vec<String>,
    /// The kill waits only until this drive has it recorded; else for the answer.
    other: Option<String>,
}

/// The headers of a drive's record slots: two in the first MiB, two in the last.
fn records(drive: &str) -> [[u8; HEADER]; 4] {
    let file = std::fs::File::open(drive).expect("opened");
    let tail = file.metadata().expect("known").len() - MIB;
    [0, SLOT, tail, tail + SLOT].map(|at| {
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, at).expect("read");
        header
    })
}

/// What a kill struck.
struct Struck {
    /// The array's state, and what it was busy with.
    state: String,
    task: String,
    /// Whether the daemon said that what was to be done is.
    answered: Option<bool>,
}

/// What the array is busy with; nothing if it is not.
fn task(daemon: &Daemon) -> String {
    let jobs = get_at(daemon.socket(), JOBS).json();
    let jobs = jobs["Members"].as_array().expect("a list");
    let running = jobs.iter().find(|job| job["JobState"] == "Running");
    // `Resync of a`.
    let name = running.and_then(|job| job["Name"].as_str()?.split(' ').next());
    name.unwrap_or_default().to_lowercase()
}

/// Kills the daemon so much `later`, while its clients go on.
fn strike(daemon: Daemon, first: Option<First>, later: Duration) -> JoinHandle<Struck> {
    thread::spawn(move || {
        let task = task(&daemon);
        // What is under way is over soon: a kill that is to meet it does not wait for a program.
        let state = if task.is_empty() { daemon.show("a")["state"].clone() } else { json!("busy") };
        let state = state.as_str().expect("text").to_owned();
        let mut answered = first.as_ref().map(|first| first.other.is_none());
        let doing = first.and_then(|First { words, other }| {
            let before = other.as_deref().map(records);
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let child = daemon.start_call(&words);
            let Some(other) = other else {
                succeeded(words[1], &wait(child, FIO, words[1]));
                return None;
            };
            let begun = Instant::now();
            while Some(records(&other)) == before && begun.elapsed() < FIO {
                thread::yield_now();
            }
            Some(child)
        });
        thread::sleep(later); // The random moment itself.
        daemon.kill();
        if let Some(child) = doing {
            // It may have come too late.
            answered = Some(wait(child, FIO, "what was to be done").status.success());
        }
        Struck { state, task, answered }
    })
}

/// So many of the kills are `share` of `of`; of a long run as many more.
fn kills(share: usize, of: usize) -> usize {
    (count_of("PALISADE_KILLS", KILLS) * share).div_ceil(of)
}

fn killed_at_random_moments(level: &str, cores: u16, kills: usize, turn: &[When]) {
    if !tools_are_there(&["fio", "python3"]) {
        return;
    }
    if !Place::is_in_memory() {
        return skip("no memory for drives: what caches may hold is not in the account");
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
        struck: None,
        met: Met::default(),
    };
    round.fill();
    // What a whole parity group has to make right after a crash its start does.
    let must: Vec<_> = turn.iter().filter(|w| **w != When::Soon || parities == 0).collect();
    let mut plan: VecDeque<_> = (0..kills).map(|kill| turn[kill % turn.len()]).collect();
    let (mut done, mut more) = (0, 0);
    while let Some(when) = plan.pop_front() {
        // What looks from outside waits for what `Soon` is to meet.
        if done % OUTSIDE == OUTSIDE - 1 && when != When::Soon {
            daemon = round.outside(daemon);
        }
        if matches!(when, When::Whole | When::JustFailed | When::Gone) {
            round.mend(&daemon);
        }
        round.kill(daemon, when);
        daemon = round.recover(when, plan.front().copied());
        done += 1;
        let lacks = must.iter().find(|when| round.met.times(***when) == 0).map(|when| **when);
        let lacks = lacks.or_else(|| (round.met.recoveries == 0).then_some(When::Whole));
        if let Some(when) = lacks.filter(|_| plan.is_empty() && more < MORE) {
            more += 1;
            plan.extend([When::Whole, when]);
        }
    }
    round.outside(daemon).stop();
    let met = round.met;
    println!("{done} kills of level {level}: {met:?}");
    for when in must {
        assert!(met.times(*when) > 0, "no kill met what {when:?} says: {met:?}");
    }
    assert!(met.recoveries > 0, "no start was killed in its recovery: {met:?}");
    let may_lose = kills >= MANY && parities == 1;
    assert!(!may_lose || met.lost > 0, "nothing was ever lost: {met:?}");
}

/// Every state that parity groups are killed in.
const ALL: [When; 8] = [
    When::Whole,
    When::Soon,
    When::JustFailed,
    When::Rebuilding,
    When::Gone,
    When::Degraded,
    When::Gone,
    When::JustFailed,
];
/// The same of copies; a drive that is gone costs them nothing.
const COPIES: [When; 6] =
    [When::Whole, When::Soon, When::JustFailed, When::Rebuilding, When::Degraded, When::JustFailed];

#[test]
fn level_5_of_one_core_killed_at_random_moments() {
    killed_at_random_moments("5", 1, kills(7, 20), &ALL);
}

#[test]
fn level_6_of_two_cores_killed_at_random_moments() {
    killed_at_random_moments("6", 2, kills(7, 20), &ALL);
}

#[test]
fn level_10_of_two_cores_killed_at_random_moments() {
    killed_at_random_moments("10", 2, kills(6, 20), &COPIES);
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

/// That these blocks are lost, of stripes of two strips of two blocks, when a write of block 0 was
/// cut off, or was over so many writes ago.
fn lost(blocks: &[usize], later: Option<usize>, over: bool) {
    let mut account = Blocks::new(8 * BLOCK as u64);
    account.wrote(0, later);
    let stripes = Stripes { strip: 2, data: 2 };
    account.may_be_lost(&blocks.iter().copied().collect(), stripes, over);
}

#[test]
fn the_account_gives_up_what_was_being_written() {
    lost(&[2], None, false);
    lost(&[0], None, true);
    lost(&[2], Some(LATER - 1), true);
}

#[test]
#[should_panic(expected = "block 2 is lost")]
fn the_account_gives_up_nothing_that_was_acknowledged_where_two_parities_know() {
    lost(&[2], Some(0), false);
}

#[test]
#[should_panic(expected = "block 2 is lost")]
fn the_account_gives_up_nothing_that_was_over_for_long() {
    lost(&[2], Some(LATER), true);
}

#[test]
#[should_panic(expected = "block 3 is lost")]
fn the_account_gives_up_no_other_column() {
    lost(&[3], None, false);
}

#[test]
#[should_panic(expected = "block 6 is lost")]
fn the_account_gives_up_no_other_stripe() {
    lost(&[6], None, false);
}

#[test]
#[should_panic(expected = "block 2 is lost, as is another")]
fn the_account_gives_up_one_block_of_a_column() {
    lost(&[0, 2], None, false);
}

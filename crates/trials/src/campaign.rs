//! Many seeds, on several threads, each seed on one.
//!
//! Invariants
//! - What a seed does depends on nothing but the seed and its cuts; one of a hundred is run twice
//!   and must leave the same hash of events.
//! - A panic on any thread ends the process as any finding does ([`crate::course`]).

use crate::course::{self, Found, Sum};
use crate::failure::{Failure, Oracle};
use crate::scenario::{Cuts, End, Scenario};
use crate::tally::{LOOKS, Tally};
use crate::trial;
use crate::trouble::{self, Kind};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Crash points after which every kind of fault must have fired.
pub const ENOUGH: u64 = 10_000;

/// Every kind of fault that the trials make, as the tally calls it.
pub const KINDS: [&str; 59] = [
    "parity by an accelerator",
    "a job left undone",
    "torn: none",
    "torn: all",
    "torn: prefix",
    "torn: subset",
    "torn: shorn",
    "torn: suffix",
    "torn: unreadable",
    "torn: garbage",
    "unreadable blocks",
    "read error",
    "write error",
    "write error on media",
    "flush error",
    "vanished",
    "returned",
    "slow",
    "hang, then late execution",
    "hung past the deadline",
    "unreadable blocks of the map",
    "unreadable journal block",
    "unreadable record slot",
    "a place of the map on all drives",
    "a page of the map on no drive",
    "a batch on no drive",
    "discard: old",
    "discard: zeros",
    "discard: random",
    "discard: changing",
    "discard: refused",
    "put back and caught up",
    "put back and filled",
    "taken out by a person",
    "replaced",
    "lost with the crash",
    "out before, lost with the crash",
    "more lost than can be",
    "cloned drive",
    "paths swapped",
    "rolled back drive",
    "rolled back to a picture",
    "set back by less than two epochs",
    "set back to what it still is",
    "silent: bit flip",
    "silent: lost write",
    "silent: misdirected write",
    "silent: two strips",
    "port: held",
    "port: given up",
    "port: silent",
    "port: reset",
    "port: reset, then late execution",
    "port: other access",
    "shelf: without power",
    "taken over",
    "server dead: its next process",
    "server dead: its next boot",
    "server dead: another server",
];

/// How far a campaign goes.
#[derive(Clone, Debug)]
pub struct Extent {
    /// These seeds at most.
    pub seeds: Range<u64>,
    /// Threads.
    pub jobs: usize,
    /// No new seed after so many seconds.
    pub seconds: Option<f64>,
    /// No new seed after so many crash points.
    pub points: Option<u64>,
    /// Only seeds that have this.
    pub only: Option<Only>,
}

/// What `--trouble` calls drives behind a shelf.
pub const SHELF: &str = "shelf";
/// What it calls an array that another server takes over.
pub const TAKEN: &str = "taken";
/// What it calls a server that is no more while what it had sent is still in the shelf.
pub const DEAD: &str = "dead";

/// What seeds may be chosen by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Only {
    /// A trouble.
    Trouble(Kind),
    /// Drives behind a shelf.
    Shelf,
    /// A server that stands still while another takes over.
    Taken,
    /// A server that is no more, and what it had sent is still in the shelf.
    Dead,
}

impl Only {
    /// What is called so.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            SHELF => Some(Self::Shelf),
            TAKEN => Some(Self::Taken),
            DEAD => Some(Self::Dead),
            name => trouble::named(name).map(Self::Trouble),
        }
    }

    fn has(self, scenario: &Scenario) -> bool {
        match self {
            Self::Trouble(kind) => scenario.trouble == Some(kind),
            Self::Shelf => scenario.shelf.is_some(),
            Self::Taken => scenario.sessions.iter().any(|session| session.end == End::Halt),
            Self::Dead => {
                scenario.sessions.iter().any(|session| matches!(session.end, End::Dead(_)))
            }
        }
    }
}

/// The line about something that was found.
pub fn line(found: &Found) -> String {
    format!("seed {} commit {}: {}", found.called, commit(), found.failure)
}

/// The commit that runs.
pub fn commit() -> String {
    if let Ok(given) = std::env::var("PALISADE_COMMIT") {
        return given;
    }
    let git = std::process::Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let said = git.ok().filter(|o| o.status.success()).map(|o| o.stdout);
    said.map_or_else(|| "unknown".into(), |o| String::from_utf8_lossy(&o).trim().to_owned())
}

/// Runs one seed with cuts.
pub fn one(seed: u64, cuts: &Cuts, tally: &mut Tally) -> Result<(), Failure> {
    course::begins(format!("{seed}{cuts}"));
    let scenario = Scenario::new(seed).reduced(cuts);
    let mut own = Tally::default();
    let mut outcome = trial::run(&scenario, cuts, &mut own);
    if outcome.is_ok() && seed % 100 == 7 {
        let mut twice = Tally::default();
        outcome = trial::run(&scenario, cuts, &mut twice);
        let compared = outcome.is_ok();
        if outcome.is_ok() && own != twice {
            let text = format!("events hash to {:x}, then to {:x}", own.trace, twice.trace);
            outcome = Err(Failure::new(Oracle::Determinism, text));
        }
        own.look("determinism: run twice", u64::from(compared));
    }
    tally.add(&own);
    course::ends();
    outcome
}

/// Runs seeds, several at a time, until one finds something or it is far enough.
pub fn run(extent: &Extent) -> Sum {
    course::from(extent.seeds.start);
    let begun = course::seconds();
    let next = AtomicU64::new(extent.seeds.start);
    let late = || extent.seconds.is_some_and(|most| course::seconds() - begun > most);
    let work = || {
        while !course::over() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= extent.seeds.end || late() {
                return;
            }
            if extent.only.is_some_and(|only| !only.has(&Scenario::new(seed))) {
                continue;
            }
            if !course::takes(seed) {
                return;
            }
            let mut tally = Tally::default();
            let outcome = one(seed, &Cuts::default(), &mut tally);
            course::add(&tally, extent.points);
            if let Err(failure) = outcome {
                course::note(Found { called: seed.to_string(), failure });
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..extent.jobs.max(1) {
            scope.spawn(work);
        }
    });
    let sum = course::so_far();
    Sum { seconds: sum.seconds - begun, ..sum }
}

/// Kinds of faults that never fired though there were crash points enough.
pub fn silent(tally: &Tally) -> Vec<&'static str> {
    let fired = |kind: &&'static str| tally.faults.get(kind).copied().unwrap_or(0) > 0;
    if tally.points < ENOUGH {
        Vec::new()
    } else {
        KINDS.into_iter().filter(|k| !fired(k)).collect()
    }
}

/// What no oracle looked at though there were crash points enough.
pub fn blind(tally: &Tally) -> Vec<&'static str> {
    let looked = |what: &&'static str| tally.looks.get(what).copied().unwrap_or(0) > 0;
    if tally.points < ENOUGH {
        Vec::new()
    } else {
        LOOKS.into_iter().filter(|what| !looked(what)).collect()
    }
}

/// The sums for people.
pub fn report(sum: &Sum) -> String {
    let t = &sum.tally;
    let lines = |sums: &BTreeMap<&'static str, u64>| -> Vec<String> {
        sums.iter().map(|(k, n)| format!("  {n:10}  {k}")).collect()
    };
    let (faults, looks, refusals) = (lines(&t.faults), lines(&t.looks), lines(&t.refusals));
    format!(
        "{} seeds, {} crash points, {} distinct ({} more were the same as another; {} within \
         recoveries), {} starts refused as they must be\n\
         of these recovered twice: {}\nbeside them not looked at whole, as a task is stuck: {}\n\
         {} requests of hosts\nfaults by kind:\n{}\nlooked at by oracle:\n{}\n\
         may be refused, and why:\n{}\n\
         exceptions used: (a) {}, (b) {}\nover budget: {}\n\
         {} crash points in {:.1} seconds, {:.0} a second",
        t.seeds,
        t.points,
        t.points,
        t.repeated,
        t.nested,
        t.refused,
        t.twice,
        t.partial,
        t.requests,
        faults.join("\n"),
        looks.join("\n"),
        refusals.join("\n"),
        t.exceptions[0],
        t.exceptions[1],
        t.over_budget,
        t.points,
        sum.seconds,
        t.points as f64 / sum.seconds.max(0.001),
    )
}

/// The sums as JSON, in one line.
pub fn json(sum: &Sum) -> String {
    let t = &sum.tally;
    let fields = |sums: &BTreeMap<&'static str, u64>| -> String {
        sums.iter().map(|(k, n)| format!("\"{k}\":{n}")).collect::<Vec<_>>().join(",")
    };
    let found = match &sum.found {
        Some(found) => {
            let seed = found.seed().map_or_else(|| "null".into(), |seed| seed.to_string());
            format!("{{\"seed\":{seed},\"line\":{:?}}}", found.failure.to_string())
        }
        None => "null".into(),
    };
    format!(
        "{{\"commit\":\"{}\",\"seeds\":{},\"crash_points\":{},\"distinct\":{},\"repeated\":{},\
         \"nested\":{},\"recovered_twice\":{},\"not_whole\":{},\"refused\":{},\"requests\":{},\
         \"faults\":{{{}}},\"looks\":{{{}}},\"refusals\":{{{}}},\
         \"exceptions\":{{\"a\":{},\"b\":{}}},\"over_budget\":{},\"combinations\":{},\
         \"tried\":{},\"left_out\":{},\"seconds\":{:.3},\"next_seed\":{},\"found\":{found}}}",
        commit(),
        t.seeds,
        t.points,
        t.points,
        t.repeated,
        t.nested,
        t.twice,
        t.partial,
        t.refused,
        t.requests,
        fields(&t.faults),
        fields(&t.looks),
        fields(&t.refusals),
        t.exceptions[0],
        t.exceptions[1],
        t.over_budget,
        t.combinations[0],
        t.combinations[1],
        t.combinations[2],
        sum.seconds,
        sum.next,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oracle_that_never_looked_is_named() {
        let mut tally = Tally { points: ENOUGH, ..Tally::default() };
        LOOKS[1..].iter().for_each(|what| tally.look(what, 1));
        tally.look(LOOKS[0], 0);
        assert_eq!(blind(&tally), [LOOKS[0]]);
        tally.look(LOOKS[0], 1);
        assert!(blind(&tally).is_empty());
    }
}

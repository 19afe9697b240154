//! What trials count.

use std::collections::BTreeMap;

/// What every oracle looks at. One that never did has shown nothing.
pub const LOOKS: [&str; 21] = [
    "versions: blocks read",
    "decoder: pages read",
    "decoder: pages of redundancy",
    "image: pictures",
    "image: blocks read without some drives",
    "erasure: sets of slots",
    "erasure: pages read",
    "metadata: pages that are nobody's",
    "metadata: pages of the region map",
    "metadata: in-flight pages at rest",
    "lists: held against what was read",
    "lists: blocks that can't be read",
    "lists: blocks written anew",
    "again: second recoveries",
    "again: scrubs",
    "start: started",
    "start: refused",
    "stall: came to rest",
    "owner: changes by another server",
    "owner: late changes of the server before",
    "determinism: run twice",
];

/// Why something may be that is not as hosts wrote it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// Exception (a).
    InFlight,
    /// More befell the array than its redundancy covers.
    OverBudget,
}

/// Sums over trials.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Seeds tried.
    pub seeds: u64,
    /// Crash points: images that differ from all others of their seed, recovered to serving until
    /// no task ran any more, read back, and looked at.
    pub points: u64,
    /// Of these: recovered a second time.
    pub twice: u64,
    /// Others that were read back, and of which not all could be looked at, as a task was stuck.
    pub partial: u64,
    /// Images that were the same as another of their seed.
    pub repeated: u64,
    /// Starts that were refused, as they must be.
    pub refused: u64,
    /// Crash points within a recovery.
    pub nested: u64,
    /// Requests of hosts that ended well, and that failed where they may.
    pub requests: u64,
    /// What fired, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// What oracles looked at.
    pub looks: BTreeMap<&'static str, u64>,
    /// Uses of the two named exceptions: (a) blocks being written when power and a drive failed
    /// together, (b) bytes returned wrong without an error.
    pub exceptions: [u64; 2],
    /// Blocks that could not be read, requests that failed, and blocks that held anything, where
    /// more befell the drives than redundancy covers.
    pub over_budget: u64,
    /// Starts that were refused, and images that would be without some drives, by why that is
    /// right.
    pub refusals: BTreeMap<&'static str, u64>,
    /// Of the exhaustive mode: combinations that there are, recoveries of those that differ, and
    /// combinations left out.
    pub combinations: [u64; 3],
    /// A hash of every event of every run.
    pub trace: u64,
}

impl Tally {
    /// Counts a fault.
    pub fn fault(&mut self, kind: &'static str, count: u64) {
        *self.faults.entry(kind).or_default() += count;
    }

    /// Counts an image that was recovered to serving: whether it is `new`, and `whole` (no task is
    /// stuck); whether it is of a crash within a recovery; whether it was recovered twice.
    pub fn point(&mut self, (new, whole): (bool, bool), within: bool, twice: bool) {
        let counts = new && whole;
        self.points += u64::from(counts);
        self.partial += u64::from(new && !whole);
        self.repeated += u64::from(!new);
        self.nested += u64::from(counts && within);
        self.twice += u64::from(counts && twice);
    }

    /// Counts what an oracle looked at.
    pub fn look(&mut self, what: &'static str, count: u64) {
        *self.looks.entry(what).or_default() += count;
    }

    /// Counts why a start is rightly refused.
    pub fn excuse(&mut self, why: &'static str, count: u64) {
        *self.refusals.entry(why).or_default() += count;
    }

    /// Counts something that was not as hosts wrote it.
    pub fn lean(&mut self, cause: Cause) {
        match cause {
            Cause::InFlight => self.exceptions[0] += 1,
            Cause::OverBudget => self.over_budget += 1,
        }
    }

    /// Takes in what happened in a run.
    pub fn traced(&mut self, hash: u64) {
        self.trace = (self.trace ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    /// Adds the sums of others. Traces are added up, so that the order does not count.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.points += other.points;
        self.twice += other.twice;
        self.partial += other.partial;
        self.repeated += other.repeated;
        self.refused += other.refused;
        self.nested += other.nested;
        self.requests += other.requests;
        for (kind, count) in &other.faults {
            self.fault(kind, *count);
        }
        for (what, count) in &other.looks {
            self.look(what, *count);
        }
        for (why, count) in &other.refusals {
            self.excuse(why, *count);
        }
        self.over_budget += other.over_budget;
        for (mine, other) in self.exceptions.iter_mut().zip(other.exceptions) {
            *mine += other;
        }
        for (mine, other) in self.combinations.iter_mut().zip(other.combinations) {
            *mine = mine.saturating_add(other);
        }
        self.trace = self.trace.wrapping_add(other.trace);
    }
}

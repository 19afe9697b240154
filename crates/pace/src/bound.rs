//! The most that an array can give whose drives are of a model: what they and their ports could
//! serve, if the array asked them for nothing but what its level can't do without.
//!
//! The fewest requests are counted here anew, strip by strip, and not taken from the engine's
//! planner. A group has k data strips and m parities (or copies). One column, of `n = k + m`, is
//! looked at as the one that is written or read, and, where a drive is down, each column as the one
//! that is lost: every pair is as likely as any other, since parities rotate.
//!
//! - A read of a strip that is there is one read. Of one that is lost it is k reads of others.
//! - A write changes the strip and all parities that are there. What they need is either the old
//!   strip and the old parities, or the other k − 1 data strips. The first needs the strip, the
//!   second all others. Fewer requests count.
//! - Where a data strip is lost, a crash between the writes of a stripe would lose it: its bytes,
//!   or what they follow from, are written down before, for each parity once. Those bytes count at
//!   the drives' bandwidth, as a journal is written in one run.
//! - A sequential read needs every data strip of a stripe once, a sequential write every strip that
//!   is there once.
//!
//! In-flight pages, records and maps are the engine's own: they count as nothing here.

use crate::model::Model;
use crate::spec::service;

/// Strips of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Data strips, at least 1.
    pub data: u32,
    /// Parities, or further copies.
    pub parities: u32,
}

/// Whether all drives are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// They are.
    Nominal,
    /// Of each group one is not.
    DeviceDown,
}

/// What hosts do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Work {
    /// Requests at random places, within a strip.
    Random {
        /// The part that reads, 0 to 1.
        reads: f64,
        /// Bytes of a request.
        bytes: u64,
    },
    /// Reads of one behind the other; a strip's bytes.
    SequentialRead(u64),
    /// The same for writes.
    SequentialWrite(u64),
}

impl Work {
    /// Of requests of so many bytes and per cent of reads, over strips of so many.
    pub fn of(is_sequential: bool, reads: u8, bytes: u64, strip: u64) -> Self {
        match (is_sequential, reads) {
            (true, 0) => Self::SequentialWrite(strip),
            (true, _) => Self::SequentialRead(strip),
            (false, reads) => Self::Random { reads: f64::from(reads) / 100.0, bytes },
        }
    }
}

/// The goals of RAID 5 over eight drives `sn840`: state, workload, part of the bound.
const GOALS: [(State, &str, f64); 8] = [
    (State::Nominal, "4k-random-read", 0.98),
    (State::Nominal, "4k-random-mixed", 0.97),
    (State::Nominal, "4k-random-write", 0.96),
    (State::Nominal, "128k-sequential-read", 0.98),
    (State::Nominal, "128k-sequential-write", 0.97),
    (State::DeviceDown, "4k-random-read", 0.97),
    (State::DeviceDown, "4k-random-mixed", 0.80),
    (State::DeviceDown, "4k-random-write", 0.80),
];

/// What an engine should reach of the bound of RAID 5 over eight drives `sn840`, by the workload's
/// name, if there is a goal.
pub fn goal(state: State, workload: &str) -> Option<f64> {
    let goal = GOALS.iter().find(|goal| (goal.0, goal.1) == (state, workload));
    goal.map(|goal| goal.2)
}

/// What one request of a host asks of drives.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Demand {
    /// Reads.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes of a journal, in parts of a request.
    pub journal: f64,
}

impl Demand {
    fn times(self, factor: f64) -> Self {
        let Self { reads, writes, journal } = self;
        Self { reads: reads * factor, writes: writes * factor, journal: journal * factor }
    }

    fn and(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            journal: self.journal + other.journal,
        }
    }
}

impl Group {
    fn width(self) -> u32 {
        self.data + self.parities
    }

    /// A read of data strip 0 while column `lost` is.
    fn read(self, lost: Option<u32>) -> Demand {
        let reads = if lost == Some(0) { self.data } else { 1 };
        Demand { reads: f64::from(reads), ..Demand::default() }
    }

    /// A write of a part of data strip 0 while column `lost` is.
    fn write(self, lost: Option<u32>) -> Demand {
        let is_there = |column: &u32| lost != Some(*column);
        let parities = (self.data..self.width()).filter(is_there).count();
        let others = (1..self.data).filter(is_there).count() as u32;
        let target = usize::from(is_there(&0));
        let by_change = (target == 1).then_some(target + parities);
        let by_all = (others + 1 == self.data).then_some(others as usize);
        let reads = match parities {
            0 => 0,
            _ => by_change.into_iter().chain(by_all).min().unwrap_or(usize::MAX),
        };
        let is_data_lost = lost.is_some_and(|lost| lost < self.data);
        let journal = if is_data_lost { f64::from(self.parities) } else { 0.0 };
        Demand { reads: reads as f64, writes: (target + parities) as f64, journal }
    }

    /// The mean over the columns that may be lost.
    fn mean(self, state: State, of: impl Fn(Option<u32>) -> Demand) -> Demand {
        match state {
            State::Nominal => of(None),
            State::DeviceDown => {
                let all = (0..self.width()).map(|lost| of(Some(lost)));
                all.fold(Demand::default(), Demand::and).times(1.0 / f64::from(self.width()))
            }
        }
    }

    /// What one request of this work asks of drives on average. Of sequential work: one strip.
    pub fn demand(self, state: State, work: Work) -> Demand {
        let whole = f64::from(self.data);
        match work {
            Work::Random { reads, .. } => {
                let read = self.mean(state, |lost| self.read(lost)).times(reads);
                read.and(self.mean(state, |lost| self.write(lost)).times(1.0 - reads))
            }
            Work::SequentialRead(_) => Demand { reads: 1.0, ..Demand::default() },
            Work::SequentialWrite(_) => {
                let stripe = |lost: Option<u32>| {
                    let writes = self.width() - u32::from(lost.is_some());
                    let journal = self.write(lost).journal;
                    Demand { reads: 0.0, writes: f64::from(writes), journal }
                };
                self.mean(state, stripe).times(1.0 / whole)
            }
        }
    }
}

/// An array's drives.
#[derive(Clone, Copy, Debug)]
pub struct Drives<'a> {
    /// Their model.
    pub model: &'a Model,
    /// How many times as slow they are.
    pub slower: f64,
    /// All that the array has, also those that are down.
    pub count: u32,
}

impl Drives<'_> {
    /// Requests a second that these drives could serve if each of a host's were `demand`.
    fn most(&self, live: u32, demand: Demand, bytes: u64) -> f64 {
        let Demand { reads, writes, journal } = demand;
        let write = service(self.model.writes, bytes);
        // At the rate of the largest requests.
        let large = 1 << 20;
        let journal = journal * service(self.model.writes, large) / large as f64 * bytes as f64;
        let read = service(self.model.reads, bytes);
        let busy = self.model.busy(reads * read, writes * write + journal);
        let own = f64::from(live) / busy;
        let ports = self
            .model
            .port
            .as_ref()
            .map_or(1.0, |port| (f64::from(self.count) / port.drives.value).ceil());
        own.min(ports * self.model.port_rate(reads, writes, bytes)) / self.slower
    }

    /// What the bare drives give: each request is one of a drive.
    pub fn baseline(&self, work: Work) -> f64 {
        let (reads, bytes) = match work {
            Work::Random { reads, bytes } => (reads, bytes),
            Work::SequentialRead(strip) => (1.0, strip),
            Work::SequentialWrite(strip) => (0.0, strip),
        };
        let demand = Demand { reads, writes: 1.0 - reads, journal: 0.0 };
        self.most(self.count, demand, bytes)
    }

    /// The bound, in requests a second; of sequential work in strips a second.
    pub fn bound(&self, group: Group, state: State, work: Work) -> f64 {
        let bytes = match work {
            Work::Random { bytes, .. } => bytes,
            Work::SequentialRead(strip) | Work::SequentialWrite(strip) => strip,
        };
        let down = match state {
            State::Nominal => 0,
            State::DeviceDown => self.count / group.width(),
        };
        self.most(self.count - down, group.demand(state, work), bytes)
    }
}

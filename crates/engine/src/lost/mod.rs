//! Blocks that nobody can give back: which, and why.
//!
//! There are two lists, both of array addresses (only data is ever listed, so an address says
//! group, slot and place on the drive too, and stays right when a drive is replaced):
//!
//! | list     | kept in                | holds                                             |
//! |----------|------------------------|---------------------------------------------------|
//! | *listed* | the array's record     | what is lost for good: reads are refused          |
//! | *noted*  | memory, since the start| what drives could not read and redundancy could   |
//! |          |                        | not give when it was last tried; people see it    |
//!
//! | a block is  | becomes | when                                                                |
//! |-------------|---------|---------------------------------------------------------------------|
//! | data        | noted   | a read or scrub met it, and nothing gave it                         |
//! | noted       | data    | it was read, written or discarded                                   |
//! | data, noted | listed  | a rebuild or resync has to go on without it, or a start finds that it|
//! |             |         | was being written at the crash that took its drive                  |
//! | listed      | data    | it was written or discarded as a whole                              |
//!
//! What drives hold for a listed block is nobody's data, but redundancy covers it as any other: the
//! list lies over the array and changes nothing below it. So writes beside a listed block, rebuilds
//! and scrubs need not know of it.
//!
//! Invariants
//! - A block is listed, durably and on every core, before anything is written in its place
//!   ([`crate::stripe::give_up`]), and before a border moves over it or its region becomes clean.
//! - It leaves the list after what was written to it is durable on every drive, redundancy
//!   included, and before that is acknowledged. So after a crash it is listed, or what it holds
//!   counts.
//! - A read that begins while a block is listed is refused. A direct read that began before, and
//!   ends after anything was added to the list, is asked again at home, where the stripe is busy
//!   with nobody else ([`Lost::adds`]).
//! - The list is bounded ([`format::limits::LOST_MAX`] ranges). What does not fit is not given up:
//!   the task stays where it is, stuck, until ranges were written, discarded, or deleted with their
//!   volume. Good blocks are never called lost to save room. Noted ranges beyond [`NOTED_MAX`] are
//!   not shown.

use crate::limits::NOTED_MAX;
use crate::mutants::{self, Mutant};
use core::ops::Range;
use format::limits::LOST_UNIT;
use format::{LostRange, LostReason};

/// Ranges of array addresses, each with a reason, ascending and without overlap; neighbours of one
/// reason are one range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ranges<R> {
    list: Vec<(Range<u64>, R)>,
}

impl<R> Default for Ranges<R> {
    fn default() -> Self {
        Self { list: Vec::new() }
    }
}

/// Longest range: what its entry in the record can say.
const LONGEST: u64 = u32::MAX as u64 * LOST_UNIT;

impl<R: Copy + PartialEq> Ranges<R> {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, R)> + '_ {
        self.list.iter().cloned()
    }

    /// The parts of them within `range`.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, R)> + '_ {
        let first = self.list.partition_point(|(r, _)| r.end <= range.start);
        let inside = self.list[first..].iter().take_while({
            let end = range.end;
            move |(r, _)| r.start < end
        });
        inside.map(move |(r, reason)| (r.start.max(range.start)..r.end.min(range.end), *reason))
    }

    /// Whether any block of `range` is in them.
    pub fn touches(&self, range: Range<u64>) -> bool {
        self.within(range).next().is_some()
    }

    /// Takes `range` out.
    pub fn remove(&mut self, range: Range<u64>) {
        if !self.touches(range.clone()) {
            return;
        }
        let mut left = Vec::with_capacity(self.list.len() + 1);
        for (r, reason) in self.list.drain(..) {
            for part in [r.start..r.end.min(range.start), r.start.max(range.end)..r.end] {
                if part.start < part.end {
                    left.push((part, reason));
                }
            }
        }
        self.list = left;
    }

    /// Puts `range` in; what is in already keeps its reason.
    pub fn add(&mut self, range: Range<u64>, reason: R) {
        let mut at = range.start;
        let mut gaps = Vec::new();
        for (known, _) in self.within(range.clone()) {
            gaps.push(at..known.start);
            at = known.end;
        }
        gaps.push(at..range.end);
        self.list.extend(gaps.into_iter().filter(|g| g.start < g.end).map(|g| (g, reason)));
        self.list.sort_by_key(|(r, _)| r.start);
        self.list.dedup_by(|next, last| {
            let whole = last.0.start..next.0.end;
            let joins = last.0.end == next.0.start && last.1 == next.1;
            let joined = joins && whole.end - whole.start <= LONGEST;
            if joined {
                last.0 = whole;
            }
            joined
        });
    }
}

/// Both lists as every core sees them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lost {
    /// What is lost.
    pub listed: Ranges<LostReason>,
    /// What can't be read at this time.
    pub noted: Ranges<()>,
    /// How often anything was added to the list: a read that began before may not count.
    pub adds: u64,
}

impl Lost {
    /// Whether there is nothing at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.noted.is_empty()
    }

    /// Whether a range has a block of either list.
    #[inline]
    pub fn touches(&self, range: Range<u64>) -> bool {
        !self.is_empty() && (self.listed.touches(range.clone()) || self.noted.touches(range))
    }

    /// Whether a block of the range is lost.
    #[inline]
    pub fn refuses(&self, range: Range<u64>) -> bool {
        !self.listed.is_empty() && self.listed.touches(range) && !mutants::is(Mutant::LostRead)
    }

    /// Puts a range among what can't be read, as far as it is not lost and there is room.
    pub fn note(&mut self, range: Range<u64>) {
        self.noted.add(range.clone(), ());
        self.listed.within(range).for_each(|(lost, _)| self.noted.remove(lost));
        self.noted.list.truncate(NOTED_MAX);
    }
}

/// The list as a record has it.
pub fn from_record(lost: &[LostRange]) -> Ranges<LostReason> {
    Ranges { list: lost.iter().map(|l| (l.start..l.start + l.bytes, l.reason)).collect() }
}

/// The list as a record is to have it.
pub fn to_record(lost: &Ranges<LostReason>) -> Vec<LostRange> {
    let entry = |(range, reason): (Range<u64>, _)| LostRange {
        start: range.start,
        bytes: range.end - range.start,
        reason,
    };
    lost.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Beside a list of what each block is.
        #[test]
        fn ranges_are_what_their_blocks_are(
            steps in prop::collection::vec((0u8..4, 0u64..40, 1u64..12), 1..60)
        ) {
            let (mut ranges, mut blocks) = (Ranges::default(), vec![None; 64]);
            for (what, from, n) in steps {
                let range = from..from + n;
                match what {
                    0 => {
                        ranges.remove(range);
                        blocks[from as usize..(from + n) as usize].fill(None);
                    }
                    reason => {
                        ranges.add(range, reason);
                        for block in &mut blocks[from as usize..(from + n) as usize] {
                            *block = block.or(Some(reason));
                        }
                    }
                }
                for (i, block) in (0u64..).zip(&blocks) {
                    let found = ranges.within(i..i + 1).next();
                    prop_assert_eq!(found, block.map(|reason| (i..i + 1, reason)));
                }
                let list: Vec<_> = ranges.iter().collect();
                for pair in list.windows(2) {
                    let (a, b) = (&pair[0], &pair[1]);
                    let apart = a.0.end < b.0.start || a.0.end == b.0.start && a.1 != b.1;
                    prop_assert!(a.0.start < a.0.end && apart, "{:?}", list);
                }
            }
        }
    }

    #[test]
    fn what_is_lost_is_not_noted_and_a_record_says_the_same() {
        let mut lost = Lost::default();
        lost.listed.add(1024..2048, LostReason::Rebuild);
        lost.note(512..4096);
        let noted: Vec<_> = lost.noted.iter().map(|(r, ())| r).collect();
        assert_eq!(noted, [512..1024, 2048..4096]);
        assert!(lost.refuses(0..1536) && !lost.refuses(2048..4096) && lost.touches(2048..2560));
        let record = to_record(&lost.listed);
        assert_eq!(record[0], LostRange { start: 1024, bytes: 1024, reason: LostReason::Rebuild });
        assert_eq!(from_record(&record), lost.listed);
    }
}

//! Batches of the journal that were durable, and that no drive gives any more: a start finds out
//! that they are missing, and is refused, before it carries out what is left.
//!
//! The rule is `docs/format.md`'s. Of a lane and a key the durable batches have consecutive numbers
//! ([`crate::journal`]), and a batch's place is used again only when a durable one has a larger
//! tail. So from the largest tail that is found up to the newest batch that is found every number
//! must be there:
//!
//! | what a lane gives                           | means                                         |
//! |---------------------------------------------|-----------------------------------------------|
//! | no batch                                    | nothing was logged, or nothing is left of it  |
//! | all numbers from the tail up to the newest  | nothing is missing below the newest           |
//! | not all of them                             | a *gap*: what they said may be acknowledged   |
//!
//! A batch that was cut off is the newest of its lane and was never acknowledged, so it makes no
//! gap. Two things are not found out:
//! - a newest batch that was durable and has vanished from every drive: it can't be told from one
//!   that was cut off;
//! - a batch whose number was used a second time, where the one that was given up is all that is
//!   left of that number.
//!
//! What a batch in a gap named nobody knows, but its region was dirty before it was written, and is
//! cleaned only when all of it is in place. With loss accepted, a start goes on so:
//!
//! 1. No batch of any lane is carried out: an older one would come over what a vanished one had
//!    written.
//! 2. All data of written bands is listed as lost in regions that are dirty. The record is of an
//!    epoch in which the missing drives have failed. A drive that is being filled is filled from
//!    its begin.
//! 3. Redundancy there is made of what the data is then, with zeros for what can't be read; the
//!    drives are flushed. It is right in every stripe, and the record of the start ends the key.
//!
//! Cut short, the next start finds the same gap, and asks again.
//!
//! Invariant: nothing is written before the list is durable, nor anywhere but where it is listed,
//! and to its redundancy.

use crate::Host;
use crate::journal::GROUP;
use crate::limits::SLICE_BYTES_MAX;
use crate::lost::{Ranges, from_record, to_record};
use crate::manage::area::{FoundBatch, Said, settle};
use crate::manage::command::ManageError;
use crate::manage::doubt::{Decided, begin_epoch, make_right};
use crate::manage::managed::Managed;
use crate::mutants::{self, Mutant};
use core::ops::Range;
use format::flight::Columns;
use format::limits::LOST_MAX;
use format::{ArrayRecord, Assembly, LostReason, SlotState};
use io::Drive;
use layout::Place;
use std::collections::BTreeMap;
use units::{StripIndex, StripeNo};

/// Longest range that is listed at once; one of a record holds twice as much.
const LISTED_MOST: u64 = 1 << 40;

/// Numbers of a lane that no drive gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gap {
    lane: u16,
    first: u64,
    last: u64,
}

impl From<Gap> for ManageError {
    fn from(Gap { lane, first, last }: Gap) -> Self {
        Self::JournalGap { lane, first, last }
    }
}

/// The first gap, if there is any.
pub(super) fn find(said: &Said) -> Option<Gap> {
    if mutants::is(Mutant::ReplayGap) {
        return None;
    }
    in_batches(&said.batches)
}

/// The same, of batches that no tail has passed.
fn in_batches(batches: &BTreeMap<(u16, u64), FoundBatch>) -> Option<Gap> {
    let mut tails = BTreeMap::<u16, u64>::new();
    for ((lane, _), found) in batches {
        let tail = tails.entry(*lane).or_default();
        *tail = found.what.0.tail.max(*tail);
    }
    let gap = |(lane, tail): (u16, u64)| {
        let mut next = tail;
        for (_, sequence) in batches.range((lane, 0)..=(lane, u64::MAX)).map(|(key, _)| *key) {
            if sequence != next {
                return Some(Gap { lane, first: next, last: sequence - 1 });
            }
            next = sequence + 1;
        }
        None
    };
    tails.into_iter().find_map(gap)
}

/// Goes on without what a gap may have said, as a person accepted.
pub(super) async fn accept<E: Host>(
    managed: &Managed<E>,
    assembly: &mut Assembly,
) -> Result<Decided, ManageError> {
    let stripes = doubtful(managed);
    loop {
        let listed = |record: &mut ArrayRecord| {
            let mut next = begin_epoch(managed, assembly, record);
            next.lost = to_record(&with_all(managed, &stripes, from_record(&record.lost)));
            for slot in &mut next.slots {
                if let SlotState::Rebuilding { border } = &mut slot.state {
                    *border = 0;
                }
                // Its strips count as zeros there: whoever is out is filled whole.
                if slot.state != SlotState::InSync {
                    slot.since = 0;
                }
            }
            *record = next;
        };
        managed.commit(false, listed).await?;
        managed.all_there()?;
        if !make_right(managed, &columns(managed, &stripes), &mut assembly.missing).await? {
            continue;
        }
        let (drives, before) = (managed.drives_taking_part(), assembly.missing.len());
        let flushes = drives.iter().map(|(slot, drive)| (*slot, drive.flush())).collect();
        settle(managed, flushes, &mut assembly.missing).await?;
        // A drive that did not flush lacks what was written: it is to be filled whole, too, as any
        // other that is out.
        if assembly.missing.len() == before {
            return Ok(Decided::Right);
        }
    }
}

/// The stripes of written bands of regions that are dirty, in ascending runs.
fn doubtful<E: Host>(managed: &Managed<E>) -> Vec<Range<u64>> {
    let map = managed.keeper().map.borrow();
    let end = managed.layout().stripes(GROUP);
    let mut runs: Vec<Range<u64>> = Vec::new();
    for region in map.dirty(GROUP) {
        let stripes = map.stripes(region);
        let stripes = stripes.start..stripes.end.min(end);
        let mut at = map.next_stripe(GROUP, stripes.start, stripes.end, 0);
        while at < stripes.end {
            match runs.last_mut().filter(|run| run.end == at) {
                Some(run) => run.end = at + 1,
                None => runs.push(at..at + 1),
            }
            at = map.next_stripe(GROUP, at + 1, stripes.end, 0);
        }
    }
    runs
}

/// The list with all data of these stripes; where it would get too long, of all between them, and
/// if need be of all up to other ranges of the list, which are then one.
fn with_all<E: Host>(
    managed: &Managed<E>,
    stripes: &[Range<u64>],
    before: Ranges<LostReason>,
) -> Ranges<LostReason> {
    let layout = managed.layout();
    let address = |stripe: u64| {
        let (stripe, strip) = (StripeNo(stripe), StripIndex(0));
        layout.array_offset(Place { group: GROUP, stripe, strip, offset: 0 })
    };
    let row = u64::from(layout.k(GROUP)) * u64::from(layout.strip_bytes());
    let runs = stripes.iter().map(|run| address(run.start)..address(run.end - 1) + row);
    fitting(&before, &runs.collect::<Vec<_>>())
}

/// The list with these ranges of the array, or with more where it would get too long.
fn fitting(before: &Ranges<LostReason>, runs: &[Range<u64>]) -> Ranges<LostReason> {
    if runs.len() <= LOST_MAX {
        let list = with_runs(before, runs);
        if list.len() <= LOST_MAX {
            return list;
        }
    }
    let mut all = runs[0].start..runs[runs.len() - 1].end;
    loop {
        let mut rest = before.clone();
        rest.remove(all.clone());
        let list = with_runs(&rest, core::slice::from_ref(&all));
        let behind = before.iter().find(|(range, _)| range.end > all.end);
        let ahead = before.iter().filter(|(range, _)| range.start < all.start).last();
        match (behind, ahead) {
            _ if list.len() <= LOST_MAX => return list,
            (Some((range, _)), _) => all.end = range.end,
            (None, Some((range, _))) => all.start = range.start,
            (None, None) => return list,
        }
    }
}

/// The list with these ranges of the array, in pieces.
fn with_runs(before: &Ranges<LostReason>, runs: &[Range<u64>]) -> Ranges<LostReason> {
    let mut list = before.clone();
    for run in runs {
        for at in run.clone().step_by(LISTED_MOST as usize) {
            list.add(at..run.end.min(at + LISTED_MOST), LostReason::Crash);
        }
    }
    list
}

/// All columns of these stripes, in pieces.
fn columns<E: Host>(managed: &Managed<E>, stripes: &[Range<u64>]) -> Vec<Columns> {
    let strip = managed.layout().strip_bytes();
    let step = SLICE_BYTES_MAX as u32;
    let pieces = |stripe: u64| {
        let begins = (0..strip).step_by(step as usize);
        begins.map(move |from| Columns { stripe, from, to: strip.min(from + step) })
    };
    stripes.iter().cloned().flatten().flat_map(pieces).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_to_a_full_list_takes_its_neighbours_in() {
        let mut full = Ranges::default();
        for i in 0..LOST_MAX as u64 {
            full.add(i * 8192..i * 8192 + 512, LostReason::Rebuild);
        }
        let run = core::slice::from_ref(&(4096..4608));
        assert_eq!(with_runs(&full, run).len(), LOST_MAX + 1);
        let list = fitting(&full, run);
        assert!(list.len() <= LOST_MAX && list.touches(4096..4608) && list.touches(0..512));
        assert!(!list.touches(512..4096), "no more than needed");
        let last = (LOST_MAX as u64) * 8192;
        let list = fitting(&full, core::slice::from_ref(&(last..last + 512)));
        assert!(list.len() <= LOST_MAX && list.touches(last..last + 512));
    }
}

//! What drives may discard of bands that were unwritten ([`crate::manage::keeper`]).
//!
//! | bits are  | become    | when                                                              |
//! |-----------|-----------|-------------------------------------------------------------------|
//! | unwritten | pending   | that is durable                                                   |
//! | pending   | discarded | a step had them: every drive was told, or failed                  |
//! | pending   | forgotten | a write wants them, or the array ends                             |
//!
//! A drive may take its time for much: one request for all of it would run into the deadline of
//! drives, and all of them would be out. So a step has at most [`DISCARD_STEP`] bytes of each, and
//! between steps the keeper does what else it is asked. Whoever asked waits for the last step.
//!
//! What drives answer means nothing, and what they hold then neither; but one that does not answer
//! in time, or is gone, is out.
//!
//! Invariant: what is pending is unwritten, durably. While a step is under way the keeper prepares
//! no band.

use crate::Host;
use crate::limits::DISCARD_STEP;
use crate::manage::keeper::{self, Keeper};
use crate::manage::managed::Managed;
use crate::region::message::Bits;
use crate::stripe::table::Origin;
use core::ops::Range;
use format::limits::REGION_BITS;
use io::{Drive, DriveError};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use units::{BAND_BYTES, GroupNo};

/// Bits of a group that follow each other.
type Run = (GroupNo, Range<u64>);

/// What is pending, the oldest first.
#[derive(Default)]
pub(super) struct Discards {
    queue: VecDeque<(Vec<Run>, Origin)>,
}

impl Discards {
    /// Bits were unwritten, durably.
    pub fn add(&mut self, set: &[Bits], origin: Origin) {
        self.queue.push_back((runs(set), origin));
    }

    /// The next at most `most` bits of each group, and who waits for nothing more then.
    fn take(&mut self, most: impl Fn(GroupNo) -> u64) -> (Vec<Run>, Vec<Origin>) {
        let (mut taken, mut left) = (Vec::new(), BTreeMap::new());
        for (runs, _) in &mut self.queue {
            for (group, bits) in &mut *runs {
                let left = left.entry(*group).or_insert_with(|| most(*group));
                let n = (bits.end - bits.start).min(*left);
                if n > 0 {
                    taken.push((*group, bits.start..bits.start + n));
                    (bits.start, *left) = (bits.start + n, *left - n);
                }
            }
            runs.retain(|(_, bits)| !bits.is_empty());
        }
        (taken, self.over())
    }

    /// This bit is about to be written.
    pub fn forget(&mut self, group: GroupNo, bit: u64) {
        for (runs, _) in &mut self.queue {
            let has = |run: &Run| run.0 == group && run.1.contains(&bit);
            if let Some(at) = runs.iter().position(has) {
                let behind = bit + 1..runs[at].1.end;
                runs[at].1.end = bit;
                runs.insert(at + 1, (group, behind));
                runs.retain(|(_, bits)| !bits.is_empty());
            }
        }
    }

    /// All of it.
    pub fn forget_all(&mut self) {
        self.queue.iter_mut().for_each(|(runs, _)| runs.clear());
    }

    /// Those of whom nothing is pending.
    fn over(&mut self) -> Vec<Origin> {
        let over = self.queue.iter().filter(|(runs, _)| runs.is_empty()).map(|(_, o)| *o).collect();
        self.queue.retain(|(runs, _)| !runs.is_empty());
        over
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

fn runs(set: &[Bits]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for b in set {
        let bits = (0..REGION_BITS).filter(|bit| b.bits >> bit & 1 == 1);
        for bit in bits.map(|bit| b.region * REGION_BITS + bit) {
            match runs.last_mut() {
                Some((group, run)) if *group == b.group && run.end == bit => run.end += 1,
                _ => runs.push((b.group, bit..bit + 1)),
            }
        }
    }
    runs
}

/// The next step, and answers whom it was the last one of; whether there was any.
pub(super) async fn step<E: Host>(managed: &Rc<Managed<E>>, keeper: &Keeper) -> bool {
    if keeper.discards.borrow().is_empty() {
        return false;
    }
    let bit_bytes = keeper.map.borrow().geometry().bands_per_bit() * BAND_BYTES;
    let (runs, over) = keeper.discards.borrow_mut().take(|_| (DISCARD_STEP / bit_bytes).max(1));
    tell(managed, keeper, &runs).await;
    for origin in over {
        managed.answer(origin, Ok(()));
    }
    true
}

/// Tells drives at once, before it is durable: see [`crate::mutants`].
pub(super) async fn early<E: Host>(managed: &Rc<Managed<E>>, keeper: &Keeper, set: &[Bits]) {
    tell(managed, keeper, &runs(set)).await;
}

/// Has all drives discard the bits of their groups; those that did not answer are out.
async fn tell<E: Host>(managed: &Rc<Managed<E>>, keeper: &Keeper, runs: &[Run]) {
    let mut work = Vec::new();
    for slot in managed.all_taking_part() {
        let has = |group: &GroupNo| managed.layout().slots(*group).any(|s| s == slot);
        let mine = runs.iter().filter(|(group, _)| has(group));
        let place = |(group, bits): &Run| keeper::on_drive(managed, keeper, *group, bits.clone());
        let places: Vec<(u64, u64)> = mine.map(place).collect();
        if !places.is_empty() {
            work.push((slot, places));
        }
    }
    let failed = keeper::on_drives(managed, work, |drive, places| async move {
        for (at, bytes) in places {
            match drive.discard(at, bytes).await {
                Err(error @ (DriveError::Timeout | DriveError::Gone)) => return Err(error),
                Err(DriveError::Unsupported) => break,
                _ => {}
            }
        }
        Ok(())
    })
    .await;
    keeper::take_out(managed, failed.iter().collect()).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::CoreId;

    fn origin(pending: u32) -> Origin {
        Origin { core: CoreId(0), pending }
    }

    #[test]
    fn steps_have_every_bit_once_but_those_that_are_written() {
        let (a, b) = (GroupNo(0), GroupNo(1));
        let mut discards = Discards::default();
        let bits = |group, region, bits| Bits { group, region, bits };
        discards.add(&[bits(a, 0, 1 << 63), bits(a, 1, 0b1011), bits(b, 0, 0b111)], origin(1));
        discards.add(&[bits(a, 2, 0b1)], origin(2));
        discards.forget(a, 64);
        discards.forget(a, 500);
        assert_eq!(discards.take(|_| 2), (vec![(a, 63..64), (a, 65..66), (b, 0..2)], vec![]));
        assert_eq!(discards.take(|_| 1), (vec![(a, 67..68), (b, 2..3)], vec![origin(1)]));
        assert!(!discards.is_empty());
        discards.forget_all();
        assert_eq!(discards.take(|_| 9), (vec![], vec![origin(2)]));
        assert!(discards.is_empty());
    }
}

//! What drives may discard of bands that were unwritten ([`crate::manage::keeper`]).
//!
//! | bits are  | become    | when                                                              |
//! |-----------|-----------|-------------------------------------------------------------------|
//! | unwritten | pending   | that is durable                                                   |
//! | pending   | in a step | the step before is over                                           |
//! | pending   | forgotten | a write wants them, or the array ends                             |
//! | in a step | discarded | every drive was told, or failed                                   |
//!
//! A drive may take its time for much: one request for all of it would run into the deadline of
//! drives, and all of them would be out. So a step has at most [`DISCARD_STEP`] bytes of each, and
//! goes on beside what else the keeper is asked. Only a write that wants a band of the step waits
//! until it is over, and with it what is asked after it: a deadline of drives at most. Whoever
//! asked for the discard waits for the last step.
//!
//! What drives answer means nothing, and what they hold then neither; but one that does not answer
//! in time, or is gone, is out.
//!
//! Invariant: what is pending or in a step is unwritten, durably.

use crate::Host;
use crate::limits::DISCARD_STEP;
use crate::manage::keeper::{self, Keeper};
use crate::manage::managed::Managed;
use crate::region::message::Bits;
use crate::stripe::table::Origin;
use core::ops::Range;
use format::limits::REGION_BITS;
use io::{Drive, DriveError, Priority};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use units::{BAND_BYTES, GroupNo};

/// Bits of a group that follow each other.
type Run = (GroupNo, Range<u64>);

/// What is pending, the oldest first, and what is in a step.
#[derive(Default)]
pub(super) struct Discards {
    queue: VecDeque<(Vec<Run>, Origin)>,
    step: Vec<Run>,
    running: bool,
    /// The array ends: nothing more is discarded.
    ending: bool,
}

impl Discards {
    /// Bits were unwritten, durably.
    pub fn add(&mut self, set: &[Bits], origin: Origin) {
        let runs = if self.ending { Vec::new() } else { runs(set) };
        self.queue.push_back((runs, origin));
    }

    /// Begins a step of at most `most` bits of each group; who waits for nothing more after it.
    fn begin(&mut self, most: u64) -> Vec<Origin> {
        let mut left = BTreeMap::new();
        for (runs, _) in &mut self.queue {
            for (group, bits) in &mut *runs {
                let left = left.entry(*group).or_insert(most);
                let n = (bits.end - bits.start).min(*left);
                if n > 0 {
                    self.step.push((*group, bits.start..bits.start + n));
                    (bits.start, *left) = (bits.start + n, *left - n);
                }
            }
            runs.retain(|(_, bits)| !bits.is_empty());
        }
        let over = self.queue.iter().filter(|(runs, _)| runs.is_empty()).map(|(_, o)| *o).collect();
        self.queue.retain(|(runs, _)| !runs.is_empty());
        over
    }

    /// Whether drives are just being told to discard the bit.
    pub fn in_step(&self, group: GroupNo, bit: u64) -> bool {
        self.step.iter().any(|run| run.0 == group && run.1.contains(&bit))
    }

    /// This bit is about to be written, once this says that no step has it.
    fn forget(&mut self, group: GroupNo, bit: u64) -> bool {
        for (runs, _) in &mut self.queue {
            let has = |run: &Run| run.0 == group && run.1.contains(&bit);
            if let Some(at) = runs.iter().position(has) {
                let behind = bit + 1..runs[at].1.end;
                runs[at].1.end = bit;
                runs.insert(at + 1, (group, behind));
                runs.retain(|(_, bits)| !bits.is_empty());
            }
        }
        !self.in_step(group, bit)
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

/// Sees to it that what is pending is discarded.
pub(super) fn go_on<E: Host>(managed: &Rc<Managed<E>>, keeper: &Keeper) {
    let mut discards = keeper.discards.borrow_mut();
    if !discards.queue.is_empty() && !core::mem::replace(&mut discards.running, true) {
        managed.env().spawn(Priority::First, run(managed.clone()));
    }
}

/// Makes steps until nothing is pending.
async fn run<E: Host>(managed: Rc<Managed<E>>) {
    let keeper = managed.keeper();
    let bit_bytes = keeper.map.borrow().geometry().bands_per_bit() * BAND_BYTES;
    loop {
        let over = keeper.discards.borrow_mut().begin((DISCARD_STEP / bit_bytes).max(1));
        let step = keeper.discards.borrow().step.clone();
        let failed = tell(&managed, keeper, &step).await;
        keeper.discards.borrow_mut().step.clear();
        keeper.discarded.notify();
        keeper::take_out(&managed, failed.iter().collect()).await;
        for origin in over {
            managed.answer(origin, Ok(()));
        }
        let mut discards = keeper.discards.borrow_mut();
        discards.running = !discards.queue.is_empty();
        if !discards.running {
            break;
        }
    }
    keeper.discarded.notify();
}

/// Returns when these bits may be written as far as discards go.
pub(super) async fn forget(keeper: &Keeper, bits: &BTreeSet<(GroupNo, u64)>) {
    let free = || {
        let mut discards = keeper.discards.borrow_mut();
        let taken = bits.iter().filter(|(group, bit)| !discards.forget(*group, *bit)).count();
        (taken == 0).then_some(())
    };
    keeper.discarded.wait_until(free).await;
}

/// The array ends: what is pending is forgotten, so that who asked for it has an answer.
pub(super) fn forget_all(keeper: &Keeper) {
    let mut discards = keeper.discards.borrow_mut();
    discards.ending = true;
    discards.queue.iter_mut().for_each(|(runs, _)| runs.clear());
}

/// Returns when nothing is being discarded any more.
pub(super) async fn end(keeper: &Keeper) {
    let over = || (!keeper.discards.borrow().running).then_some(());
    keeper.discarded.wait_until(over).await;
}

/// Tells drives at once, before it is durable: see [`crate::mutants`].
pub(super) async fn early<E: Host>(managed: &Rc<Managed<E>>, keeper: &Keeper, set: &[Bits]) {
    tell(managed, keeper, &runs(set)).await;
}

/// Has all drives discard the bits of their groups; those that did not answer.
async fn tell<E: Host>(
    managed: &Rc<Managed<E>>,
    keeper: &Keeper,
    runs: &[Run],
) -> Vec<keeper::Failed> {
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
    keeper::on_drives(managed, work, |drive, places| async move {
        // All at once: they have one deadline.
        let tickets: Vec<_> = places.iter().map(|(at, n)| drive.discard(*at, *n)).collect();
        let mut outcome = Ok(());
        for ticket in tickets {
            if let Err(error @ (DriveError::Timeout | DriveError::Gone)) = ticket.await {
                outcome = Err(error);
            }
        }
        outcome
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::CoreId;

    #[test]
    fn steps_have_every_bit_once_but_those_that_are_written() {
        let (a, b) = (GroupNo(0), GroupNo(1));
        let origin = |pending| Origin { core: CoreId(0), pending };
        let bits = |group, region, bits| Bits { group, region, bits };
        let mut discards = Discards::default();
        discards.add(&[bits(a, 0, 1 << 63), bits(a, 1, 0b1011), bits(b, 0, 0b111)], origin(1));
        discards.add(&[bits(a, 2, 0b1)], origin(2));
        assert!(discards.forget(a, 64) && discards.forget(a, 500));
        let mut step = |most, written: Option<u64>| {
            let over: Vec<u32> = discards.begin(most).iter().map(|o| o.pending).collect();
            let free = written.is_none_or(|bit| discards.forget(a, bit));
            (core::mem::take(&mut discards.step), over, free)
        };
        assert_eq!(step(2, Some(65)), (vec![(a, 63..64), (a, 65..66), (b, 0..2)], vec![], false));
        assert_eq!(step(1, Some(128)), (vec![(a, 67..68), (b, 2..3)], vec![1], true));
        assert_eq!(step(9, None), (vec![], vec![2], true));
        assert!(discards.queue.is_empty());
    }
}

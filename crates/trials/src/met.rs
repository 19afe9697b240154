//! What a word met. What it is there for has to happen, else it shows nothing.

use crate::decoder::array::Decoded;
use crate::decoder::map::GroupMap;
use crate::decoder::record::State;
use crate::fleet::pick;
use core::fmt;
use sim::SharedSimDrive;
use std::collections::BTreeSet;

/// What the record says of a slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Slot {
    /// It counts.
    InSync,
    /// It is being filled.
    Filled,
    /// It failed.
    Failed,
}

/// What a word must have met, or it fails.
#[derive(Clone, Copy, Debug)]
pub enum Must {
    /// So many borders of requests, all begins together.
    Borders(u64),
    /// At so many borders at least two requests of hosts were under way.
    AtOnce(u64),
    /// Some blocks that were being written are lost with drives: exception (a).
    Lose,
    /// So many starts without another loss found a batch that counts on one drive alone.
    Lone(u64),
    /// So many starts found batches with something that was not yet in place.
    CarryOut(u64),
    /// Some starts found dirty regions, and some found none.
    DirtyAndClean,
    /// Some starts found a slot so.
    Finds(usize, Slot),
    /// Some starts found a task paused.
    Paused,
    /// All starts found each group guarded that may have had writes under way, and some did.
    Guarded,
}

/// What was met so far.
#[derive(Default, Debug)]
pub struct Met {
    /// Borders of requests.
    pub borders: u64,
    /// Those with at least two requests of hosts under way.
    pub at_once: u64,
    /// Blocks lost by exception (a).
    pub lost: u64,
    lone: u64,
    carry_out: u64,
    dirty: [u64; 2],
    slots: BTreeSet<(usize, Slot)>,
    paused: u64,
    guarded: u64,
    bare: u64,
}

impl Met {
    /// Takes down what a start from these drives finds; whether `more` are lost than lacked before.
    pub fn start(&mut self, drives: &[SharedSimDrive], more: bool) {
        let picked = pick(drives);
        let Ok(decoded) = Decoded::open(&picked) else { return };
        let lone = |on: &Vec<_>| on.len() == 1;
        self.lone += u64::from(!more && decoded.batches().values().any(lone));
        self.carry_out += u64::from(decoded.carries_out());
        self.dirty[usize::from(decoded.maps.iter().any(GroupMap::any_dirty))] += 1;
        let slots = decoded.record.slots.iter().map(|slot| match slot.state {
            State::InSync => Slot::InSync,
            State::Rebuilding(_) => Slot::Filled,
            State::Failed => Slot::Failed,
        });
        self.slots.extend(slots.enumerate());
        self.paused += u64::from(decoded.record.paused != 0);
        for group in decoded.record.groups.iter().filter(|group| group.unclean) {
            self.guarded += u64::from(group.guarded);
            self.bare += u64::from(!group.guarded);
        }
    }

    /// Whether this was met.
    pub fn has(&self, must: Must) -> bool {
        match must {
            Must::Borders(least) => self.borders >= least,
            Must::AtOnce(least) => self.at_once >= least,
            Must::Lose => self.lost > 0,
            Must::Lone(least) => self.lone >= least,
            Must::CarryOut(least) => self.carry_out >= least,
            Must::DirtyAndClean => self.dirty[0] > 0 && self.dirty[1] > 0,
            Must::Finds(slot, state) => self.slots.contains(&(slot, state)),
            Must::Paused => self.paused > 0,
            Must::Guarded => self.guarded > 0 && self.bare == 0,
        }
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { borders, at_once, lost, lone, carry_out, paused, guarded, bare, .. } = self;
        write!(
            f,
            "{borders} borders, {at_once} with requests at once, {lost} blocks lost; starts: \
             {lone} with a batch on one drive, {carry_out} with something to carry out, {} dirty, \
             {} clean, {paused} paused; groups: {guarded} guarded, {bare} not",
            self.dirty[1], self.dirty[0]
        )
    }
}

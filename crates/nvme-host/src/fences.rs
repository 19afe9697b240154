//! Fences of a path: its associations that are over and may still carry out what they had.
//!
//! A fence ends by time, or earlier by a cross-controller reset (Base 2.3, section 5.4.3): another
//! association of the subsystem, or the next one of the same path, asks its controller to end the
//! one that is over. *Wanted* → *asked*, by one association at a time → ended, or refused: wanted
//! again, of others.
//!
//! Invariant: an association is over with those of its path before it, and not earlier.

use crate::requests::Association;
use nvme::reset::Instance;
use std::collections::BTreeMap;

/// The fence of an association.
struct Fence {
    /// The controller that is to be ended; `None`: it can't be named.
    controller: Option<Instance>,
    /// Who asks for that.
    asked_by: Option<Association>,
    /// Who did so in vain.
    refused: Vec<Association>,
}

/// The fences of a path, by their associations' turns.
#[derive(Default)]
pub(crate) struct Fences {
    running: BTreeMap<u64, Fence>,
    /// The association whose fence ended last.
    ended: u64,
}

impl Fences {
    pub fn begin(&mut self, turn: u64, controller: Option<Instance>) {
        let (asked_by, refused) = Default::default();
        self.running.insert(turn, Fence { controller, asked_by, refused });
    }

    pub fn end(&mut self, turn: u64) {
        self.running.remove(&turn);
        self.ended = self.ended.max(turn);
    }

    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub fn is_running(&self, turn: u64) -> bool {
        self.running.contains_key(&turn)
    }

    /// The last association that can carry out nothing any more, as all before it.
    pub fn over(&self) -> u64 {
        self.running.keys().next().map_or(self.ended, |running| running - 1)
    }

    /// One that this association may ask to be ended, which it then does.
    pub fn ask(&mut self, by: Association) -> Option<(u64, Instance)> {
        self.running.iter_mut().find_map(|(turn, fence)| {
            let may = fence.asked_by.is_none() && !fence.refused.contains(&by);
            let controller = fence.controller.filter(|_| may)?;
            fence.asked_by = Some(by);
            Some((*turn, controller))
        })
    }

    /// It does not ask any more; whether in vain.
    pub fn asked(&mut self, turn: u64, by: Association, is_refused: bool) {
        let fence = self.running.get_mut(&turn).filter(|fence| fence.asked_by == Some(by));
        let Some(fence) = fence else { return };
        fence.asked_by = None;
        if is_refused {
            fence.refused.push(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: Association = Association { path: 1, turn: 9 };

    fn instance(controller: u16) -> Option<Instance> {
        Some(Instance { controller, uniquifier: 1, random: 1 })
    }

    #[test]
    fn an_association_is_over_when_its_fence_and_those_before_it_are() {
        let mut fences = Fences::default();
        assert_eq!(fences.over(), 0);
        fences.begin(3, None);
        fences.begin(5, None);
        assert!(fences.over() < 3);
        fences.end(5);
        assert!(fences.over() < 3, "an earlier one may still carry out what it has");
        assert!(fences.is_running(3) && !fences.is_running(5));
        fences.end(3);
        assert!(fences.over() == 5 && fences.is_empty());
    }

    #[test]
    fn one_asks_at_a_time_and_nobody_twice_in_vain() {
        let other = Association { path: 2, turn: 8 };
        let mut fences = Fences::default();
        fences.begin(3, instance(7));
        assert_eq!(fences.ask(BY), instance(7).map(|own| (3, own)));
        assert_eq!(fences.ask(other), None);
        // Who has gone meanwhile did not ask in vain.
        fences.asked(3, other, true);
        fences.asked(3, BY, false);
        assert!(fences.ask(BY).is_some());
        fences.asked(3, BY, true);
        assert_eq!(fences.ask(BY), None);
        assert!(fences.ask(other).is_some());
        fences.end(3);
        fences.asked(3, other, true);
        assert_eq!(fences.ask(other), None);
        fences.begin(4, None);
        assert_eq!(fences.ask(BY), None, "it can't be named");
        fences.begin(5, instance(8));
        assert_eq!(fences.ask(BY), instance(8).map(|own| (5, own)), "the next can");
    }
}

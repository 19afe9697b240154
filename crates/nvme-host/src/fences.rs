//! Fences of a path: its associations that are over and may still carry out what they had. And
//! controllers of other servers that are to be ended.
//!
//! A fence ends by time, or earlier by a cross-controller reset (Base 2.3, section 5.4.3): another
//! association of the subsystem, or the next one of the same path, asks its controller to end the
//! one that is over. *Wanted* → *asked*, by one association at a time → ended, or refused: wanted
//! again, of others.
//!
//! Another server's controller is wanted and asked for in the same way. It has ended only by such a
//! reset; once its time is over nobody could say that it has.
//!
//! Invariants
//! - An association is over with those of its path before it, and not earlier.
//! - What was said of another server's controller stays so, as long as somebody waits for it.

use crate::requests::Association;
use nvme::reset::Instance;
use std::collections::BTreeMap;
use units::Nanos;

/// What is to be ended by a reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meant {
    /// The controller of an association that is over.
    Own(Association),
    /// One of another server's.
    Other(Instance),
}

/// The fence of an association, or another server's controller that is to be ended.
#[derive(Default)]
struct Fence {
    /// The controller that is to be ended; `None`: it can't be named.
    controller: Option<Instance>,
    /// Who asks for that.
    asked_by: Option<Association>,
    /// Who did so in vain.
    refused: Vec<Association>,
}

impl Fence {
    fn of(controller: Option<Instance>) -> Self {
        Self { controller, ..Self::default() }
    }

    /// The controller, if this association may ask for its end; it then does.
    fn ask(&mut self, by: Association) -> Option<Instance> {
        let may = self.asked_by.is_none() && !self.refused.contains(&by);
        let controller = self.controller.filter(|_| may)?;
        self.asked_by = Some(by);
        Some(controller)
    }

    /// It does not ask any more; whether in vain.
    fn asked(&mut self, by: Association, is_refused: bool) {
        if self.asked_by != Some(by) {
            return;
        }
        self.asked_by = None;
        if is_refused {
            self.refused.push(by);
        }
    }
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
        self.running.insert(turn, Fence::of(controller));
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

    /// The controllers of these associations; `None`: that one can't be named.
    pub fn controllers(&self) -> impl Iterator<Item = Option<Instance>> {
        self.running.values().map(|fence| fence.controller)
    }

    /// One that this association may ask to be ended, which it then does.
    pub fn ask(&mut self, by: Association) -> Option<(u64, Instance)> {
        self.running.iter_mut().find_map(|(turn, fence)| Some((*turn, fence.ask(by)?)))
    }

    /// It does not ask any more; whether in vain.
    pub fn asked(&mut self, turn: u64, by: Association, is_refused: bool) {
        if let Some(fence) = self.running.get_mut(&turn) {
            fence.asked(by, is_refused);
        }
    }
}

/// Another server's controller.
struct Other {
    fence: Fence,
    /// How many wait for its end.
    waiting: usize,
    /// Until when they do.
    until: Option<Nanos>,
    /// Whether it has ended, once that is said.
    ended: Option<bool>,
}

/// Other servers' controllers that are to be ended.
#[derive(Default)]
pub(crate) struct Others(BTreeMap<Instance, Other>);

impl Others {
    /// Somebody waits for the end of a controller.
    pub fn begin(&mut self, controller: Instance) {
        let fence = Fence::of(Some(controller));
        let new = Other { fence, waiting: 0, until: None, ended: None };
        self.0.entry(controller).or_insert(new).waiting += 1;
    }

    /// Somebody who waited does so no more.
    pub fn leave(&mut self, controller: Instance) {
        let Some(own) = self.0.get_mut(&controller) else { return };
        own.waiting -= 1;
        if own.waiting == 0 {
            self.0.remove(&controller);
        }
    }

    /// Whether somebody waits, and nothing was said yet.
    pub fn is_running(&self, controller: Instance) -> bool {
        self.0.get(&controller).is_some_and(|own| own.ended.is_none())
    }

    /// Whether a controller has ended, if that is said: not if nobody asks, and none of these
    /// associations may.
    pub fn outcome(
        &self,
        controller: Instance,
        mut can_ask: impl Iterator<Item = Association>,
    ) -> Option<bool> {
        let Some(own) = self.0.get(&controller) else { return Some(false) };
        let may = |by: Association| !own.fence.refused.contains(&by);
        let is_asked = own.fence.asked_by.is_some() || can_ask.any(may);
        own.ended.or((!is_asked).then_some(false))
    }

    /// It has ended. Nothing if something else was said before.
    pub fn end(&mut self, controller: Instance) {
        if let Some(own) = self.0.get_mut(&controller) {
            own.ended.get_or_insert(true);
        }
    }

    /// One that this association may ask to be ended, which it then does.
    pub fn ask(&mut self, by: Association) -> Option<Instance> {
        let mut open = self.0.values_mut().filter(|own| own.ended.is_none());
        open.find_map(|own| own.fence.ask(by))
    }

    /// It does not ask any more; whether in vain.
    pub fn asked(&mut self, controller: Instance, by: Association, is_refused: bool) {
        if let Some(own) = self.0.get_mut(&controller) {
            own.fence.asked(by, is_refused);
        }
    }

    /// Those that wait for longer than `span` wait in vain. Whether any does, and when that may
    /// change.
    pub fn time(&mut self, now: Nanos, span: Nanos) -> (bool, Option<Nanos>) {
        let (mut is_any, mut next) = (false, None);
        for own in self.0.values_mut().filter(|own| own.ended.is_none()) {
            let until = *own.until.get_or_insert(now.after(span));
            if until <= now {
                (own.ended, is_any) = (Some(false), true);
            } else {
                next = next.into_iter().chain([until]).min();
            }
        }
        (is_any, next)
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

    #[test]
    fn what_becomes_of_anothers_controller_is_said_once() {
        let controller = Instance { controller: 7, uniquifier: 1, random: 1 };
        let mut others = Others::default();
        others.begin(controller);
        others.begin(controller);
        assert_eq!(others.outcome(controller, core::iter::empty()), Some(false));
        assert_eq!(others.outcome(controller, core::iter::once(BY)), None);
        assert_eq!(others.ask(BY), Some(controller));
        assert_eq!(others.ask(BY), None, "it is asked already");
        assert_eq!(others.outcome(controller, core::iter::empty()), None, "it is being asked");
        others.asked(controller, BY, true);
        assert_eq!(others.outcome(controller, core::iter::once(BY)), Some(false));
        assert_eq!(others.ask(BY), None, "in vain");
        let (span, now) = (Nanos(30), Nanos(5));
        assert_eq!(others.time(now, span), (false, Some(Nanos(35))));
        assert_eq!(others.time(Nanos(34), span), (false, Some(Nanos(35))));
        assert!(others.is_running(controller));
        assert_eq!(others.time(Nanos(35), span), (true, None));
        others.end(controller);
        let other = Association { path: 2, turn: 8 };
        assert_eq!(others.outcome(controller, core::iter::once(other)), Some(false));
        assert!(others.ask(other).is_none() && !others.is_running(controller));
        others.leave(controller);
        assert!(!others.0.is_empty(), "another waits");
        others.leave(controller);
        assert!(others.0.is_empty());
        others.begin(controller);
        others.end(controller);
        assert_eq!(others.time(Nanos(99), span), (false, None));
        assert_eq!(others.outcome(controller, core::iter::empty()), Some(true));
    }
}

//! Two commands as one: a Compare and the Write that follows it (Base, section 3.4.2; NVM, section
//! 2.1.4.1 for how many blocks: one).
//!
//! States of a half: *alone* (a first whose second has not come) → *joined*. Each gets its data as
//! any command does and is *ready* then; once both are, one worker carries them out. A half that is
//! refused, or whose data was damaged, is *lost* to the other, which ends as soon as its own data
//! is there; so does a first whose second does not come next.
//!
//! Invariants
//! - A half is carried out only together with its other half.
//! - Only the command that comes next can be a first's second.
//! - Who knows where its other half is, is known there: a slot that is used again is nobody's half.

use super::Session;
use super::slots::{Half, State};
use crate::{Transport, Volumes};
use front::Lease;
use io::{BufMut, Env};
use nvme::command::{Command, Fused, nvm};
use nvme::status::Status;
use std::rc::Rc;

/// What came before a command.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Before {
    /// No first half.
    #[default]
    Nothing,
    /// One that was refused.
    Refused,
    /// One that waits in this slot.
    First(u16),
}

/// Whether two commands can be one.
fn are_one(first: &Command, second: &Command) -> bool {
    let place = |c: &Command| (c.namespace(), c.first_block(), c.blocks());
    second.opcode() == nvm::WRITE && place(first) == place(second)
}

impl<E: Env, T: Transport, X: Volumes> Session<E, T, X> {
    /// A command came: joins it to the one before it if they are halves of one.
    pub(super) fn join(&self, at: u16, command: &Command) -> Result<(), Status> {
        let before = self.first.take();
        let fused = command.fused();
        if let Before::First(first) = before
            && fused != Some(Fused::Second)
        {
            self.lose(first, Status::ABORTED_MISSING_FUSED);
        }
        match (fused, before) {
            (Some(Fused::No), _) => Ok(()),
            (Some(Fused::First), _) => self.begin_pair(at, command),
            (Some(Fused::Second), Before::First(first)) => {
                let mut slots = self.slots.borrow_mut();
                slots.get(first).half = Some(Half::Joined(at));
                slots.get(at).half = Some(Half::Joined(first));
                let is_one = are_one(&slots.get(first).command, command);
                is_one.then_some(()).ok_or(Status::INVALID_FIELD)
            }
            (Some(Fused::Second), Before::Refused) => Err(Status::ABORTED_FAILED_FUSED),
            (Some(Fused::Second), Before::Nothing) => Err(Status::ABORTED_MISSING_FUSED),
            (None, _) => Err(Status::INVALID_FIELD),
        }
    }

    fn begin_pair(&self, at: u16, command: &Command) -> Result<(), Status> {
        self.first.set(Before::Refused);
        let is_offered = X::COMPARES_AND_WRITES && self.terms.queue != 0;
        if !is_offered || command.opcode() != nvm::COMPARE {
            return Err(Status::INVALID_FIELD);
        }
        if command.blocks() != 1 {
            return Err(Status::ATOMIC_UNIT);
        }
        self.slots.borrow_mut().get(at).half = Some(Half::Alone);
        self.first.set(Before::First(at));
        Ok(())
    }

    /// A command is not carried out; nor is its other half.
    pub(super) fn refuse(&self, at: u16, status: Status) {
        let half = {
            let mut slots = self.slots.borrow_mut();
            let slot = slots.get(at);
            slot.buffer = None;
            slot.half.take()
        };
        if self.first.get() == Before::First(at) {
            self.first.set(Before::Refused);
        }
        self.answer(at, status, 0);
        if let Some(Half::Joined(other)) = half {
            self.lose(other, Status::ABORTED_FAILED_FUSED);
        }
    }

    /// The other half of this one is lost.
    fn lose(&self, at: u16, status: Status) {
        let has_data = {
            let mut slots = self.slots.borrow_mut();
            let slot = slots.get(at);
            slot.half = Some(Half::Lost(status));
            matches!(slot.state, State::Ready | State::Working)
        };
        if has_data {
            self.refuse(at, status);
        }
    }

    /// A half has its data.
    pub(super) fn work_half(self: &Rc<Self>, at: u16, half: Half) {
        if let Half::Lost(status) = half {
            return self.refuse(at, status);
        }
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get(at);
        (slot.state, slot.since) = (State::Ready, self.server.env.now());
        let is_first = slot.command.fused() == Some(Fused::First);
        let Half::Joined(other) = half else { return };
        if slots.get(other).state != State::Ready {
            return;
        }
        for one in [at, other] {
            slots.get(one).state = State::Working;
        }
        drop(slots);
        self.submit(if is_first { at } else { other }, false);
    }

    /// Carries out both halves and answers them, the first one first.
    pub(super) async fn carry_out_both(
        self: &Rc<Self>,
        (first, second): (u16, u16),
        volume: &X::Volume,
        expected: Option<(BufMut, Lease)>,
    ) {
        let (write, data) = {
            let mut slots = self.slots.borrow_mut();
            let slot = slots.get(second);
            slot.volume = None;
            (slot.command.clone(), slot.buffer.take())
        };
        let (expected, data) = (expected.expect("it is ready"), data.expect("it is ready"));
        let done = self.compare_and_write(&write, volume, (expected.0, data.0)).await;
        drop((expected.1, data.1));
        match done {
            Err(status) => self.refuse(first, status),
            Ok(()) => [first, second].into_iter().for_each(|at| {
                self.answer(at, Status::SUCCESS, 0);
            }),
        }
    }
}

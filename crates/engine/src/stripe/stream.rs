//! Stripes that a sequential stream is filling: whether it pays to wait for the rest.
//!
//! A stripe that is written as a whole needs no reads, and its parity is written once. A stream
//! with several requests under way brings the rest of a stripe soon, if the stripe waits. One with
//! a single request at a time never does: it waits for that itself.
//!
//! | of a stripe that nobody wants something is asked    | it becomes | when                     |
//! |-----------------------------------------------------|------------|--------------------------|
//! | a write as a stream makes it: it begins where the   | held       | waiting has paid lately, |
//! | stripe begins, or is [`HOLD_PART`] of it, but not   |            | or it is tried again     |
//! | all; and other stripes are being worked on          |            |                          |
//! | anything else                                       | ready      | at once                  |
//!
//! | a held stripe becomes | when                                                                 |
//! |-----------------------|----------------------------------------------------------------------|
//! | ready, and it paid    | its writes have as many bytes as it has data                         |
//! | ready                 | anything but a write is wanted of it                                 |
//! | ready, and it did not | no other stripe is ready or busy any more, or [`HOLD_FINISHED`]      |
//! | pay if nothing came   | others were finished since                                           |
//!
//! After [`HOLD_MISSES`] that have not paid, one behind the other, only one of [`HOLD_TRIED`] is
//! held, until one pays.
//!
//! Invariant: nothing is held while no other stripe is ready or busy. So a host that waits for one
//! request at a time waits for nothing else.
//!
//! [`HOLD_FINISHED`]: crate::limits::HOLD_FINISHED

use crate::limits::{HOLD_MISSES, HOLD_PART, HOLD_TRIED};

/// A stripe of which a part is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Begun {
    /// Bytes that its writes have together.
    bytes: u32,
    /// Bytes of all data of the stripe.
    full: u32,
    /// More than the first write came.
    grown: bool,
    /// How many stripes had been finished.
    pub since: u64,
}

impl Begun {
    /// What a write begins, if a stream makes it: where in the stripe's data it is, and its bytes.
    /// `full` are the bytes of all data, 0 where whole stripes are as good as others.
    pub fn of((at, bytes): (u32, u32), full: u32, since: u64) -> Option<Self> {
        let begins = at == 0 || bytes >= full / HOLD_PART;
        (begins && bytes < full).then_some(Self { bytes, full, grown: false, since })
    }

    /// What it is with another write.
    pub fn with(self, bytes: u32) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), grown: true, ..self }
    }

    /// Whether it is all of the stripe.
    pub const fn is_full(&self) -> bool {
        self.bytes >= self.full
    }
}

/// Whether waiting has paid.
#[derive(Default)]
pub(super) struct Paid {
    /// Stripes one behind the other whose wait has not.
    misses: u32,
    /// Stripes since the last that was held.
    passed: u32,
}

impl Paid {
    /// Whether to hold the next one.
    pub fn tries(&mut self) -> bool {
        let tries = self.misses < HOLD_MISSES || self.passed >= HOLD_TRIED;
        self.passed = if tries { 0 } else { self.passed + 1 };
        tries
    }

    /// What was held is let go.
    pub fn ended(&mut self, begun: &Begun) {
        if begun.is_full() {
            self.misses = 0;
        } else if !begun.grown {
            self.misses = self.misses.saturating_add(1);
        }
    }
}

//! How often the drives of an array could not read blocks, and how often that was made good.
//!
//! A drive that reports unreadable blocks stays in service: its blocks are recovered from the
//! others and written back (see [`crate::stripe::check`]). People see the counts and judge.
//!
//! Invariant: counts are of a slot's present drive, since the array started; another drive in the
//! slot starts at zero.

use core::cell::RefCell;
use units::Slot;

/// What was counted of one drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ErrorCounts {
    /// Reads that ended with unreadable blocks.
    pub read_errors: u64,
    /// Runs of blocks that were recovered, written back and read again.
    pub rewritten: u64,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    incarnation: u32,
    counts: ErrorCounts,
}

/// The counts of an array's slots.
#[derive(Default)]
pub(super) struct Errors {
    slots: RefCell<Vec<Entry>>,
}

impl Errors {
    /// Counts one read error, or one run that was written back. Late news of a drive that was
    /// replaced is dropped.
    pub fn count(&self, slot: Slot, incarnation: u32, rewritten: bool) {
        let mut slots = self.slots.borrow_mut();
        if slots.len() <= slot.index() {
            slots.resize(slot.index() + 1, Entry::default());
        }
        let entry = &mut slots[slot.index()];
        if entry.incarnation < incarnation {
            *entry = Entry { incarnation, ..Entry::default() };
        }
        if entry.incarnation == incarnation {
            entry.counts.read_errors += u64::from(!rewritten);
            entry.counts.rewritten += u64::from(rewritten);
        }
    }

    /// What was counted of the drive that is in the slot in this incarnation.
    pub fn of(&self, slot: Slot, incarnation: u32) -> ErrorCounts {
        let slots = self.slots.borrow();
        let entry = slots.get(slot.index()).copied().unwrap_or_default();
        if entry.incarnation == incarnation { entry.counts } else { ErrorCounts::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_drive_starts_at_zero_and_late_news_is_dropped() {
        let errors = Errors::default();
        errors.count(Slot(3), 0, false);
        errors.count(Slot(3), 0, true);
        let one = ErrorCounts { read_errors: 1, rewritten: 1 };
        assert_eq!(errors.of(Slot(3), 0), one);
        assert_eq!(errors.of(Slot(3), 1), ErrorCounts::default());
        errors.count(Slot(3), 1, false);
        errors.count(Slot(3), 0, false);
        assert_eq!(errors.of(Slot(3), 1), ErrorCounts { read_errors: 1, rewritten: 0 });
        assert_eq!(errors.of(Slot(0), 0), ErrorCounts::default());
    }
}

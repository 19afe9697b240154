//! What went wrong with the drives of an array: how often they could not read blocks, how often
//! that was made good, how often a drive was found to hold wrong ones, and what took drives out.
//!
//! A drive that reports unreadable blocks stays in service: its blocks are recovered from the
//! others and written back (see [`crate::stripe::check`]). People see the counts and judge.
//!
//! Invariant: counts are of a slot's present drive, since the array started; another drive in the
//! slot starts at zero.

use core::cell::RefCell;
use io::DriveError;
use units::Slot;

/// What was counted of one drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ErrorCounts {
    /// Reads that ended with unreadable blocks.
    pub read_errors: u64,
    /// Runs of blocks that were recovered, written back and read again.
    pub rewritten: u64,
    /// Stripes in which scrubs found this drive's strip to be wrong.
    pub wrong_strips: u64,
    /// Requests that failed otherwise, timeouts included.
    pub failures: u64,
    /// Requests that were not done within the deadline.
    pub timeouts: u64,
    /// The first failure other than of a read of some blocks.
    pub reason: Option<DriveError>,
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
    /// Counts one read error, or one run that was written back.
    pub fn count(&self, slot: Slot, incarnation: u32, rewritten: bool) {
        self.change(slot, incarnation, |counts| {
            counts.read_errors += u64::from(!rewritten);
            counts.rewritten += u64::from(rewritten);
        });
    }

    /// Counts strips that a scrub found to be wrong.
    pub fn count_wrong(&self, slot: Slot, incarnation: u32, strips: u64) {
        self.change(slot, incarnation, |counts| counts.wrong_strips += strips);
    }

    /// Counts one request that failed, which is the first that is done about it.
    ///
    /// # Panics
    /// If no drive could have taken the request: that must not speak against this one.
    pub fn failed(&self, slot: Slot, incarnation: u32, error: DriveError) {
        assert_ne!(error, DriveError::Bounds, "a request to slot {slot} that is not in blocks");
        self.change(slot, incarnation, |counts| {
            counts.failures += 1;
            counts.timeouts += u64::from(error == DriveError::Timeout);
            counts.reason = counts.reason.or(Some(error));
        });
    }

    /// Late news of a drive that was replaced is dropped.
    fn change(&self, slot: Slot, incarnation: u32, change: impl FnOnce(&mut ErrorCounts)) {
        let mut slots = self.slots.borrow_mut();
        if slots.len() <= slot.index() {
            slots.resize(slot.index() + 1, Entry::default());
        }
        let entry = &mut slots[slot.index()];
        if entry.incarnation < incarnation {
            *entry = Entry { incarnation, ..Entry::default() };
        }
        if entry.incarnation == incarnation {
            change(&mut entry.counts);
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
        let one = ErrorCounts { read_errors: 1, rewritten: 1, ..ErrorCounts::default() };
        assert_eq!(errors.of(Slot(3), 0), one);
        assert_eq!(errors.of(Slot(3), 1), ErrorCounts::default());
        errors.count(Slot(3), 1, false);
        errors.count(Slot(3), 0, false);
        errors.count_wrong(Slot(3), 1, 2);
        let other = ErrorCounts { read_errors: 1, wrong_strips: 2, ..ErrorCounts::default() };
        assert_eq!(errors.of(Slot(3), 1), other);
        errors.failed(Slot(3), 1, DriveError::Timeout);
        errors.failed(Slot(3), 1, DriveError::Gone);
        errors.failed(Slot(3), 0, DriveError::Gone);
        let counts = errors.of(Slot(3), 1);
        assert_eq!((counts.failures, counts.timeouts), (2, 1));
        assert_eq!(counts.reason, Some(DriveError::Timeout));
        assert_eq!(errors.of(Slot(0), 0), ErrorCounts::default());
    }

    #[test]
    #[should_panic(expected = "a request to slot 3 that is not in blocks")]
    fn a_mistake_of_ours_is_not_put_down_to_a_drive() {
        Errors::default().failed(Slot(3), 0, DriveError::Bounds);
    }
}

//! A set of byte ranges.
//!
//! Invariant: the ranges are not empty, do not overlap and are sorted.

use core::ops::Range;

/// Byte ranges of a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Adds a range.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        self.remove(range.clone());
        if !range.is_empty() {
            self.0.push(range);
            self.0.sort_by_key(|r| r.start);
        }
    }

    /// Takes a range out.
    pub(crate) fn remove(&mut self, out: Range<u64>) {
        let old = core::mem::take(&mut self.0);
        for range in old {
            let before = range.start..range.end.min(out.start);
            let behind = range.start.max(out.end)..range.end;
            let parts = [before, behind];
            if out.is_empty() {
                self.0.push(range);
            } else {
                self.0.extend(parts.into_iter().filter(|p| !p.is_empty()));
            }
        }
    }

    /// True if any byte of `range` is in the set.
    pub(crate) fn touches(&self, range: &Range<u64>) -> bool {
        self.0.iter().any(|r| r.start < range.end && range.start < r.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removing_cuts_and_splits() {
        let mut set = Ranges::default();
        set.insert(0..100);
        set.remove(40..60);
        assert_eq!(set.0, vec![0..40, 60..100]);
        set.insert(30..70);
        assert_eq!(set.0, vec![0..30, 30..70, 70..100]);
        set.remove(0..100);
        assert!(!set.touches(&(0..100)));
        set.insert(5..6);
        assert!(set.touches(&(0..6)) && !set.touches(&(6..9)) && !set.touches(&(0..5)));
    }
}

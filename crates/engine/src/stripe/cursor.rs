//! How a range of a strip is worked on that may have unreadable blocks: all of it, or in parts.
//!
//! Invariant: a part is a block at least, and each block is in one part that is passed.

use crate::limits::{BAD_RANGE_BYTES, SLICE_BYTES_MAX};

/// How a range of a strip is worked on: all of it, or in smaller parts if it has unreadable
/// blocks, so that those of several strips are not taken together.
pub(super) struct Cursor {
    at: u32,
    end: u32,
    /// How much is tried at once.
    step: u32,
    block: u32,
}

impl Cursor {
    /// A range whose blocks have so many bytes.
    pub fn new(at: u32, end: u32, block: u32) -> Self {
        Self { at, end, step: SLICE_BYTES_MAX as u32, block }
    }

    /// What is to be tried next.
    pub fn range(&self) -> Option<(u32, u32)> {
        (self.at < self.end).then(|| (self.at, self.end.min(self.at + self.step)))
    }

    /// The range was worked on.
    pub fn pass(&mut self) {
        if let Some((_, to)) = self.range() {
            self.at = to;
        }
        self.step = (self.step * 2).min(SLICE_BYTES_MAX as u32);
    }

    /// The range must be tried in smaller parts.
    pub fn narrow(&mut self) {
        let (from, to) = self.range().expect("there is a range to halve");
        self.step = ((to - from) / self.block).div_ceil(2) * self.block;
    }
}

/// Whether a range with bad blocks is to be halved before anything is recovered in it. Copies
/// that may differ (`pinned`) are never taken in place of blocks that the pinned one can read.
pub(super) fn too_long(bytes: u32, block: u32, pinned: bool) -> bool {
    bytes > if pinned { block } else { BAD_RANGE_BYTES.max(block) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_halves_down_to_a_block_and_grows_again() {
        let mut cursor = Cursor::new(1024, 1024 + 7 * 512, 512);
        assert_eq!(cursor.range(), Some((1024, 1024 + 7 * 512)));
        cursor.narrow();
        assert_eq!(cursor.range(), Some((1024, 1024 + 4 * 512)));
        cursor.narrow();
        cursor.narrow();
        assert_eq!(cursor.range(), Some((1024, 1024 + 512)));
        cursor.pass();
        assert_eq!(cursor.range(), Some((1536, 1536 + 1024)));
        cursor.pass();
        cursor.pass();
        assert_eq!(cursor.range(), None);
    }
}

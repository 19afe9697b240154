//! Strips whose places are chosen, not the allocator's luck.
//!
//! Purpose: whether results are stored past the caches depends on how outputs lie within 64
//! bytes; here the test says how.
//! Invariants: a strip begins exactly as many bytes after a multiple of 64 as was asked; around
//! it lies a margin, and a byte that was written there is found.

/// What places are multiples of.
const LINE: usize = 64;
/// What everything holds before anything is written.
pub const FILL: u8 = 0xa5;

/// Room for strips of one length.
pub struct Arena {
    bytes: Vec<u8>,
    start: usize,
    stride: usize,
    len: usize,
    skews: Vec<usize>,
}

impl Arena {
    /// Room for `count` strips of `len` bytes or fewer.
    pub fn new(count: usize, len: usize) -> Arena {
        // A margin before and a margin after each, and its skew.
        let stride = len.next_multiple_of(LINE) + 3 * LINE;
        let bytes = vec![FILL; count * stride + LINE];
        let start = bytes.as_ptr().align_offset(LINE);
        Arena { bytes, start, stride, len: 0, skews: Vec::new() }
    }

    /// Forgets what is here and answers a strip of `len` bytes for each of `skews`, which says
    /// how many bytes after a multiple of 64 it begins.
    ///
    /// # Panics
    ///
    /// If the room is too small or a skew is not below 64.
    pub fn place(&mut self, len: usize, skews: &[usize]) -> Vec<&mut [u8]> {
        assert!(len + 3 * LINE <= self.stride && skews.iter().all(|skew| *skew < LINE));
        (self.len, self.skews) = (len, skews.to_vec());
        let mut strips = Vec::with_capacity(skews.len());
        for (room, skew) in self.bytes[self.start..].chunks_exact_mut(self.stride).zip(skews) {
            room.fill(FILL);
            strips.push(&mut room[LINE + skew..][..len]);
        }
        assert_eq!(strips.len(), skews.len(), "room for all");
        strips
    }

    /// The strips.
    ///
    /// # Panics
    ///
    /// If a byte around a strip was written.
    pub fn finished(&self) -> impl Iterator<Item = &[u8]> {
        let rooms = self.bytes[self.start..].chunks_exact(self.stride);
        rooms.zip(&self.skews).map(|(room, skew)| {
            let (before, rest) = room.split_at(LINE + skew);
            let (strip, after) = rest.split_at(self.len);
            assert!(untouched(before) && untouched(after), "written outside of a strip");
            strip
        })
    }
}

/// Whether nothing was written to `margin`.
fn untouched(margin: &[u8]) -> bool {
    margin.chunks(LINE).all(|part| *part == [FILL; LINE][..part.len()])
}

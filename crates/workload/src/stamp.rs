//! What is written: random bytes, and in each block its address.
//!
//! A read that finds another address than its own was given a block that nobody wrote, or another
//! one: a hole, a band that was never written, a request that went elsewhere. That is looked at
//! with each read, since such a read may be faster than one of a drive.

use crate::random::Random;
use io::{Buf, BufMut, Pool};

/// Bytes with a stamp of their own.
pub const BLOCK: usize = 4096;

/// Bytes of the stamp, at a block's begin.
const STAMP: usize = 8;

/// By so many bytes a payload's random bytes are turned against the last one's.
const TURNED: usize = 72;

/// Told apart from other numbers.
const SALT: u64 = 0x5041_4c49_5341_4445;

/// Buffers for writes and reads of one size.
#[derive(Clone)]
pub struct Payloads {
    pool: Pool,
}

fn stamp(address: u64) -> [u8; STAMP] {
    (address ^ SALT).to_le_bytes()
}

impl Payloads {
    /// Enough for `under_way` requests of `bytes`.
    pub fn new(bytes: usize, under_way: usize) -> Self {
        // Who was just answered may ask again before the last reference to its payload is gone.
        let pool = Pool::new(bytes, 2 * under_way + 16);
        let mut base = vec![0; bytes];
        Random::new(SALT).fill(&mut base);
        let mut all: Vec<_> = (0..pool.pieces()).filter_map(|_| pool.take(bytes)).collect();
        for (number, piece) in all.iter_mut().enumerate() {
            // Each begins elsewhere in the same bytes, so that none is another's copy.
            let from = number * TURNED % bytes;
            let (front, back) = piece.split_at_mut(bytes - from);
            front.copy_from_slice(&base[from..]);
            back.copy_from_slice(&base[..from]);
        }
        Self { pool }
    }

    /// A buffer.
    ///
    /// # Panics
    /// If more requests are under way than were said.
    pub fn take(&self) -> BufMut {
        self.pool.take(self.pool.piece_bytes()).expect("there are buffers for all under way")
    }

    /// What is written at `at`.
    pub fn of(&self, at: u64) -> Buf {
        let mut buffer = self.take();
        for (block, address) in buffer.chunks_exact_mut(BLOCK).zip((at..).step_by(BLOCK)) {
            block[..STAMP].copy_from_slice(&stamp(address));
        }
        buffer.freeze()
    }
}

/// The first block of what was read at `at` that is not the one that was written there.
pub fn wrong(at: u64, content: &[u8]) -> Option<u64> {
    let blocks = content.chunks_exact(BLOCK).zip((at..).step_by(BLOCK));
    let mut wrong = blocks.filter(|(block, address)| block[..STAMP] != stamp(*address));
    wrong.next().map(|(_, address)| address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_or_elsewhere_is_seen() {
        let payloads = Payloads::new(3 * BLOCK, 2);
        let content = payloads.of(40960);
        assert_eq!(wrong(40960, &content), None);
        assert_eq!(wrong(45056, &content), Some(45056));
        let mut other = content.to_vec();
        other[2 * BLOCK..].fill(0);
        assert_eq!(wrong(40960, &other), Some(40960 + 2 * BLOCK as u64));
        assert_eq!(wrong(0, &[0; BLOCK]), Some(0), "a hole is no block");
    }
}

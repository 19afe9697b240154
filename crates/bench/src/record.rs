//! What was written last to every 4 KiB block, and whether it is read back.
//!
//! A block's content follows from its number and version: the first 16 bytes (the *stamp*) are
//! the number, the version and the number of a random pattern; the rest is that pattern. The
//! patterns are made before anything is measured, so that a write costs the generator one stamp
//! per block, on every side alike.
//!
//! Invariant: a block has one version in flight at most; [`Record::claim`] sees to it.

use io::{Pool, Reach};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use workload::Random;

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Bytes of the stamp at a block's begin.
const STAMP: usize = 16;
/// Random patterns.
const PATTERNS: usize = 64;
/// Set in a block's version while a write of it is under way.
const BUSY: u32 = 1 << 31;

/// The patterns, and the version of every block of one address space.
pub struct Record {
    patterns: Vec<u8>,
    versions: Vec<AtomicU32>,
}

impl Record {
    /// A record of `bytes`, all blocks in version 0: never written.
    pub fn new(bytes: u64) -> Self {
        let mut patterns = vec![0; PATTERNS * BLOCK];
        Random::new(0x5041_4c49).fill(&mut patterns);
        let blocks = bytes / BLOCK as u64;
        Self { patterns, versions: (0..blocks).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Blocks it covers.
    pub fn blocks(&self) -> u64 {
        self.versions.len() as u64
    }

    fn pattern(&self, number: usize) -> &[u8] {
        &self.patterns[number * BLOCK..(number + 1) * BLOCK]
    }

    /// A pool whose pieces hold patterns, ready for [`Record::stamp`], where a device may reach
    /// them.
    pub fn payloads(
        &self,
        piece_bytes: usize,
        pieces: usize,
        reach: Option<&Arc<dyn Reach>>,
    ) -> Pool {
        let pool = Pool::reached(piece_bytes, pieces, reach);
        let mut all: Vec<_> = (0..pieces).filter_map(|_| pool.take(piece_bytes)).collect();
        let blocks = all.iter_mut().flat_map(|piece| piece.chunks_exact_mut(BLOCK));
        for (i, block) in blocks.enumerate() {
            let number = i % PATTERNS;
            block.copy_from_slice(self.pattern(number));
            block[12..STAMP].copy_from_slice(&(number as u32).to_le_bytes());
        }
        pool
    }

    /// Begins a write of a block: false if one is under way.
    #[inline]
    pub fn claim(&self, block: u64) -> bool {
        self.versions[block as usize].fetch_or(BUSY, Ordering::Relaxed) & BUSY == 0
    }

    /// Makes claimed blocks' next versions the content of `payload`, which holds patterns.
    #[inline]
    pub fn stamp(&self, first: u64, payload: &mut [u8]) {
        for (i, block) in payload.chunks_exact_mut(BLOCK).enumerate() {
            let number = first + i as u64;
            let version = self.versions[number as usize].load(Ordering::Relaxed) & !BUSY;
            block[..8].copy_from_slice(&number.to_le_bytes());
            block[8..12].copy_from_slice(&(version + 1).to_le_bytes());
        }
    }

    /// Ends the writes of `count` claimed blocks: their new versions count.
    #[inline]
    pub fn written(&self, first: u64, count: u64) {
        for version in &self.versions[first as usize..(first + count) as usize] {
            let now = version.load(Ordering::Relaxed) & !BUSY;
            version.store(now + 1, Ordering::Relaxed);
        }
    }

    /// Compares what was read from block `first` on with what was written last; the number of
    /// wrong blocks and the first of them. Blocks never written are not compared.
    pub fn compare(&self, first: u64, content: &[u8]) -> (u64, Option<u64>) {
        let numbers = first..;
        let wrong = content.chunks_exact(BLOCK).zip(numbers).filter(|(block, number)| {
            let version = self.versions[*number as usize].load(Ordering::Relaxed);
            version != 0 && !self.is(block, *number, version)
        });
        let mut wrong = wrong.map(|(_, number)| number).peekable();
        let first_wrong = wrong.peek().copied();
        (wrong.count() as u64, first_wrong)
    }

    fn is(&self, block: &[u8], number: u64, version: u32) -> bool {
        let pattern = u32::from_le_bytes([block[12], block[13], block[14], block[15]]) as usize;
        block[..8] == number.to_le_bytes()
            && block[8..12] == version.to_le_bytes()
            && pattern < PATTERNS
            && block[STAMP..] == self.pattern(pattern)[STAMP..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_version_is_right() {
        let record = Record::new(8 * BLOCK as u64);
        let pool = record.payloads(2 * BLOCK, 1, None);
        let mut image = vec![0u8; 8 * BLOCK];
        let write = |image: &mut [u8], first: u64| {
            assert!(record.claim(first) && record.claim(first + 1));
            assert!(!record.claim(first), "one write at a time");
            let mut payload = pool.take(2 * BLOCK).unwrap();
            record.stamp(first, &mut payload);
            image[first as usize * BLOCK..][..2 * BLOCK].copy_from_slice(&payload);
            record.written(first, 2);
        };
        assert_eq!(record.compare(0, &image), (0, None), "never written");
        write(&mut image, 2);
        let old = image.clone();
        write(&mut image, 3);
        assert_eq!(record.compare(0, &image), (0, None));
        assert_eq!(record.compare(0, &old), (2, Some(3)), "a version too old, one not there");
        assert_eq!(record.compare(4, &old[4 * BLOCK..]), (1, Some(4)));
        image[2 * BLOCK + 4095] ^= 1;
        assert_eq!(record.compare(0, &image), (1, Some(2)), "one bit");
        let (front, back) = image.split_at_mut(3 * BLOCK);
        front[2 * BLOCK..].copy_from_slice(&back[..BLOCK]);
        assert_eq!(record.compare(0, &image), (1, Some(2)), "another block's content");
    }

    #[test]
    fn numbers_spread_evenly() {
        let (mut random, mut counts) = (Random::new(1), [0u32; 10]);
        for _ in 0..10_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (850..1150).contains(c)), "{counts:?}");
    }
}

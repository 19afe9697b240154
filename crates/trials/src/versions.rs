//! What each block of each volume may hold.
//!
//! Every write has a number, its *version*, writes of zeros too. A block that a write fills says
//! which volume, block and version it is, with a checksum, and the rest follows from these. For
//! each block two lists are kept:
//! - *now*: what a read may give while nothing fails: one version, or more when a write ended
//!   with an error, or after a crash, until a read has told;
//! - *kept*: what may be left after a cut of power: everything since the last version that was
//!   made durable.
//!
//! | what happens              | now                  | kept                                     |
//! |---------------------------|----------------------|------------------------------------------|
//! | a write begins            | and the new version  | and the new version                      |
//! | it ends well              | the new version      | the new version if durable, else as it is|
//! | it fails                  | as it is             | as it is                                 |
//! | it ends well behind a loss of caches, not durable | as it is | as it is                     |
//! | a flush ends well         | as it is             | from the oldest of now at its begin      |
//! | a read gives a version    | that                 | as it is                                 |
//! | power cut, end of process | what is kept         | as it is                                 |
//! | a read after recovery     | that                 | that                                     |
//!
//! Invariant: one change of a block at a time is under way, and no read beside it; so every read
//! has an answer that is right or wrong for certain.

use sim::Rng;
use std::rc::Rc;

/// The number of a write; 0, and those with [`ZEROS`]: of zeros.
pub type Version = u32;

/// Marks versions that are zeros.
const ZEROS: Version = 1 << 31;

/// Bytes at the begin of a block that say what it is.
const LABEL: usize = 24;

#[derive(Clone)]
struct Block {
    now: Rc<[Version]>,
    kept: Rc<[Version]>,
    busy: bool,
    /// It may hold anything (an exception that was counted).
    forgiven: bool,
}

/// The blocks of one volume.
#[derive(Clone)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Its number, part of what its blocks say.
    pub number: u32,
    blocks: Vec<Block>,
    /// Sizes that a change under way may end with, in bytes.
    pub sizes: Vec<u64>,
    /// A creation, or deletion, is under way: it may not be there.
    pub unborn: bool,
}

/// The blocks of all volumes.
#[derive(Clone)]
pub struct Versions {
    grain: usize,
    volatile: bool,
    next: Version,
    /// Versions before it began before drives lost what they had in caches.
    lost: Version,
    zero: Rc<[Version]>,
    volumes: Vec<Record>,
}

/// A flush under way: the oldest that each block of each volume could give when it began.
pub struct Flush(Vec<Vec<Version>>);

fn mixed(volume: u32, block: u64, version: Version) -> u64 {
    let seed = u64::from(volume) << 56 ^ block << 32 ^ u64::from(version);
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 29)
}

/// Fills a block with what a version of it holds.
pub fn fill(volume: u32, block: u64, version: Version, into: &mut [u8]) {
    if version == 0 || version & ZEROS != 0 {
        return into.fill(0);
    }
    let mut word = mixed(volume, block, version);
    into[..4].copy_from_slice(&volume.to_le_bytes());
    into[4..8].copy_from_slice(&version.to_le_bytes());
    into[8..16].copy_from_slice(&block.to_le_bytes());
    into[16..LABEL].copy_from_slice(&word.to_le_bytes());
    for part in into[LABEL..].chunks_exact_mut(8) {
        word = word.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x2545_f491_4f6c_dd1d);
        part.copy_from_slice(&word.to_le_bytes());
    }
}

/// What bytes say that they are.
fn read_label(bytes: &[u8]) -> String {
    let number = |range: core::ops::Range<usize>| {
        bytes[range].iter().rev().fold(0u64, |sum, b| sum << 8 | u64::from(*b))
    };
    let (volume, version, block) = (number(0..4), number(4..8), number(8..16));
    if bytes.iter().all(|b| *b == 0) {
        return "zeros".to_owned();
    }
    let mut right = vec![0; bytes.len()];
    fill(volume as u32, block, version as u32, &mut right);
    let whole = if right == bytes { "" } else { ", not whole" };
    match number(16..LABEL) == mixed(volume as u32, block, version as u32) {
        true => format!("version {version} of block {block} of volume {volume}{whole}"),
        false => "nobody's bytes".to_owned(),
    }
}

impl Versions {
    /// No volumes yet. `grain`: the smallest run of bytes that drives write whole.
    pub fn new(grain: usize, volatile: bool) -> Self {
        let (zero, volumes) = (Rc::new([0]), Vec::new());
        Self { grain, volatile, next: 1, lost: 0, zero, volumes }
    }

    /// Bytes of a block.
    pub fn grain(&self) -> u64 {
        self.grain as u64
    }

    /// Says whether writes that are acknowledged may still be lost.
    pub fn set_volatile(&mut self, volatile: bool) {
        self.volatile = volatile;
    }

    /// A volume begins to be made.
    pub fn create(&mut self, name: &str, bytes: u64) {
        let number = self.volumes.len() as u32 + 1;
        let name = name.to_owned();
        let volume = Record { name, number, blocks: Vec::new(), sizes: vec![bytes], unborn: true };
        self.volumes.push(volume);
        let at = self.volumes.len() - 1;
        self.grow(at, bytes);
    }

    fn grow(&mut self, at: usize, bytes: u64) {
        let (now, kept) = (self.zero.clone(), self.zero.clone());
        let block = Block { now, kept, busy: false, forgiven: false };
        let volume = &mut self.volumes[at];
        let count = (bytes / self.grain as u64) as usize;
        if volume.blocks.len() < count {
            volume.blocks.resize(count, block);
        }
    }

    /// A volume begins to change its size.
    pub fn resize(&mut self, at: usize, bytes: u64) {
        self.grow(at, bytes);
        self.volumes[at].sizes.push(bytes);
    }

    /// The volume is there, with this size.
    pub fn settle(&mut self, at: usize, bytes: u64) {
        let volume = &mut self.volumes[at];
        volume.blocks.truncate((bytes / self.grain as u64) as usize);
        (volume.sizes, volume.unborn) = (vec![bytes], false);
    }

    /// A volume begins to be deleted; false if it is not there, or somebody works with it.
    pub fn delete(&mut self, name: &str) -> bool {
        let Some(at) = self.named(name) else { return false };
        let settled = !self.volumes[at].unborn && self.volumes[at].sizes.len() == 1;
        if !settled || !self.claim(at, 0, self.bytes(at)) {
            return false;
        }
        self.volumes[at].unborn = true;
        true
    }

    /// The volume was not made, or is no more.
    pub fn forget(&mut self, at: usize) {
        self.volumes.remove(at);
    }

    /// All volumes.
    pub fn volumes(&self) -> &[Record] {
        &self.volumes
    }

    /// The volume of this name.
    pub fn named(&self, name: &str) -> Option<usize> {
        self.volumes.iter().position(|v| v.name == name)
    }

    /// Bytes of a volume whose size is certain.
    pub fn bytes(&self, at: usize) -> u64 {
        self.volumes[at].sizes.iter().copied().min().unwrap_or(0)
    }

    fn span(&self, from: u64, bytes: u64) -> core::ops::Range<usize> {
        let grain = self.grain as u64;
        (from / grain) as usize..((from + bytes) / grain) as usize
    }

    /// Takes a range for one request; false if part of it is taken, or not there.
    pub fn claim(&mut self, at: usize, from: u64, bytes: u64) -> bool {
        let span = self.span(from, bytes);
        let Some(volume) = self.volumes.get_mut(at) else { return false };
        let Some(blocks) = volume.blocks.get_mut(span) else { return false };
        if blocks.iter().any(|b| b.busy) {
            return false;
        }
        blocks.iter_mut().for_each(|b| b.busy = true);
        true
    }

    /// Gives a range back.
    pub fn release(&mut self, at: usize, from: u64, bytes: u64) {
        let span = self.span(from, bytes);
        if let Some(blocks) = self.volumes[at].blocks.get_mut(span) {
            blocks.iter_mut().for_each(|b| b.busy = false);
        }
    }

    /// A write, or with `zeros` one of zeros, begins: its version.
    pub fn begin(&mut self, at: usize, from: u64, bytes: u64, zeros: bool) -> Version {
        let version = if zeros { self.next | ZEROS } else { self.next };
        self.next += 1;
        let span = self.span(from, bytes);
        for block in &mut self.volumes[at].blocks[span] {
            block.now = with(&block.now, version);
            block.kept = with(&block.kept, version);
        }
        version
    }

    /// The bytes of a version.
    pub fn data(&self, at: usize, from: u64, version: Version, into: &mut [u8]) {
        let first = from / self.grain as u64;
        for (i, part) in into.chunks_mut(self.grain).enumerate() {
            fill(self.volumes[at].number, first + i as u64, version, part);
        }
    }

    /// A write ended well.
    pub fn end(&mut self, at: usize, from: u64, bytes: u64, version: Version, fua: bool) {
        let durable = fua || !self.volatile;
        if !durable && version & !ZEROS < self.lost {
            // The drive may have had it when it lost what it had.
            return;
        }
        let list: Rc<[Version]> = Rc::new([version]);
        let span = self.span(from, bytes);
        for block in &mut self.volumes[at].blocks[span] {
            block.now = list.clone();
            if durable {
                block.kept = list.clone();
                block.forgiven = false;
            }
        }
    }

    /// A flush begins.
    pub fn flush_begins(&self) -> Flush {
        let oldest = |b: &Block| b.now[0];
        Flush(self.volumes.iter().map(|v| v.blocks.iter().map(oldest).collect()).collect())
    }

    /// It ended well: what was overwritten before it began does not come back.
    pub fn flush_ends(&mut self, flush: &Flush) {
        for (volume, before) in self.volumes.iter_mut().zip(&flush.0) {
            for (block, held) in volume.blocks.iter_mut().zip(before) {
                let at = block.kept.iter().rposition(|v| v == held);
                if let Some(at) = at.filter(|at| *at > 0) {
                    block.kept = block.kept[at..].into();
                }
            }
        }
    }

    /// A number that tells apart what blocks may hold after a crash.
    pub fn digest(&self) -> u64 {
        let lists = self.volumes.iter().flat_map(|v| v.blocks.iter().map(|b| &b.kept));
        lists.fold(0, |sum: u64, list| {
            list.iter().fold(sum.rotate_left(5), |sum, v| mixed(1, sum, *v))
        })
    }

    /// Power was cut, or the process ended: nothing is under way.
    pub fn crashed(&mut self) {
        for block in self.volumes.iter_mut().flat_map(|v| &mut v.blocks) {
            block.busy = false;
            block.now = block.kept.clone();
        }
    }

    /// Drives have lost what they had in caches, while hosts go on.
    pub fn lost_caches(&mut self) {
        self.lost = self.next;
        for block in self.volumes.iter_mut().flat_map(|v| &mut v.blocks) {
            block.now = block.kept.clone();
        }
    }

    /// A range may hold anything from here on.
    pub fn forgive(&mut self, at: usize, from: u64, bytes: u64) {
        let span = self.span(from, bytes);
        if let Some(blocks) = self.volumes[at].blocks.get_mut(span) {
            blocks.iter_mut().for_each(|b| b.forgiven = true);
        }
    }

    /// Blocks that may be zeros may hold anything from here on.
    pub fn forgive_zeros(&mut self) {
        let zero = |version: &Version| *version == 0 || version & ZEROS != 0;
        for block in self.volumes.iter_mut().flat_map(|volume| &mut volume.blocks) {
            block.forgiven |= block.now.iter().any(zero);
        }
    }

    /// Where the blocks are that a read has to tell about: they may hold more than one version.
    pub fn uncertain(&self, at: usize) -> Vec<u64> {
        let blocks = self.volumes[at].blocks.iter().enumerate();
        let open = blocks.filter(|(_, block)| block.now.len() > 1);
        open.map(|(number, _)| (number * self.grain) as u64).collect()
    }

    /// Holds what was read against what it may be; with `pin` it stays so whatever happens, else
    /// until the next crash. How many blocks were forgiven, or what is wrong.
    ///
    /// # Errors
    /// One line about the first block that holds what it must not.
    pub fn check(&mut self, at: usize, from: u64, got: &[u8], pin: bool) -> Result<u64, String> {
        let first = from as usize / self.grain;
        let volume = &mut self.volumes[at];
        let mut right = [0; 4096];
        let right = &mut right[..self.grain];
        let mut excused = 0;
        for (i, part) in got.chunks(self.grain).enumerate() {
            let number = (first + i) as u64;
            let block = &mut volume.blocks[first + i];
            let found = block.now.iter().rev().find(|version| {
                fill(volume.number, number, **version, right);
                right == part
            });
            let Some(found) = found.copied() else {
                if block.forgiven {
                    excused += 1;
                    continue;
                }
                return Err(format!(
                    "block {number} of {} holds {}, may hold versions {:?}",
                    volume.name,
                    read_label(part),
                    block.now
                ));
            };
            if block.now.len() > 1 || (pin && block.kept.len() > 1) {
                let one: Rc<[Version]> = Rc::new([found]);
                if pin {
                    block.kept = one.clone();
                }
                block.now = one;
            }
        }
        Ok(excused)
    }

    /// A random range within the first `focus` bytes: offset and bytes, in units of `unit` bytes,
    /// at most `most` of them.
    pub fn pick(
        &self,
        at: usize,
        rng: &mut Rng,
        (unit, focus): (u64, u64),
        most: u64,
    ) -> (u64, u64) {
        let total = (self.bytes(at).min(focus) / unit).max(1);
        let n = (1 + rng.below(most)).min(total);
        (rng.below(total - n + 1) * unit, n * unit)
    }
}

fn with(list: &Rc<[Version]>, version: Version) -> Rc<[Version]> {
    if list.last() == Some(&version) {
        return list.clone();
    }
    list.iter().copied().chain([version]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(volatile: bool) -> Versions {
        let mut versions = Versions::new(512, volatile);
        versions.create("v", 4096);
        versions.settle(0, 4096);
        versions
    }

    fn bytes(versions: &Versions, version: Version) -> Vec<u8> {
        let mut bytes = vec![0; 512];
        versions.data(0, 0, version, &mut bytes);
        bytes
    }

    #[test]
    fn what_was_flushed_does_not_come_back_older() {
        let mut versions = one(true);
        for _ in 0..2 {
            let v = versions.begin(0, 0, 512, false);
            versions.end(0, 0, 512, v, false);
        }
        let flush = versions.flush_begins();
        let v = versions.begin(0, 0, 512, false);
        versions.end(0, 0, 512, v, false);
        versions.flush_ends(&flush);
        versions.crashed();
        for (version, fine) in [(0, false), (1, false), (2, true), (3, true)] {
            let got = bytes(&versions, version);
            assert_eq!(versions.clone().check(0, 0, &got, false).is_ok(), fine, "{version}");
        }
    }

    #[test]
    fn what_a_drive_had_before_it_lost_its_cache_may_be_gone() {
        for (fua, may) in [(false, true), (true, false)] {
            let mut versions = one(true);
            let v = versions.begin(0, 0, 512, false);
            versions.lost_caches();
            versions.end(0, 0, 512, v, fua);
            let zeros = vec![0; 512];
            assert_eq!(versions.check(0, 0, &zeros, false).is_ok(), may, "durable: {fua}");
        }
    }

    #[test]
    fn a_flush_behind_a_failed_write_keeps_what_was_before_it() {
        let mut versions = one(true);
        let v = versions.begin(0, 0, 512, false);
        versions.end(0, 0, 512, v, false);
        versions.begin(0, 0, 512, false);
        let flush = versions.flush_begins();
        versions.flush_ends(&flush);
        versions.crashed();
        for (version, fine) in [(0, false), (1, true), (2, true)] {
            let got = bytes(&versions, version);
            assert_eq!(versions.clone().check(0, 0, &got, false).is_ok(), fine, "{version}");
        }
    }

    #[test]
    fn what_was_read_after_a_recovery_stays() {
        let mut versions = one(false);
        versions.begin(0, 0, 512, false);
        versions.crashed();
        let (old, new) = (bytes(&versions, 0), bytes(&versions, 1));
        versions.check(0, 0, &old, true).unwrap();
        versions.crashed();
        versions.check(0, 0, &new, true).unwrap_err();
    }

    #[test]
    fn a_torn_or_foreign_block_is_told() {
        let mut versions = one(false);
        let v = versions.begin(0, 0, 512, false);
        versions.end(0, 0, 512, v, false);
        let mut got = bytes(&versions, v);
        got[500] ^= 1;
        let told = versions.check(0, 0, &got, false).unwrap_err();
        assert!(told.contains("version 1 of block 0 of volume 1, not whole"), "{told}");
        got.fill(7);
        assert!(versions.check(0, 0, &got, false).unwrap_err().contains("nobody's bytes"));
    }
}

//! The blocks of a simulated drive: durable content, newer versions, unreadable blocks.
//!
//! Invariants
//! - `durable` is what a power cut leaves if all versions are lost.
//! - The versions of a block are in order of execution; a block without versions has no entry.

use crate::rng::{Rng, mix};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

/// A content of one block that is not durable yet.
struct Version {
    request: u64,
    /// When its request was acknowledged, in the drive's order; `u64::MAX`: not yet.
    acknowledged: u64,
    data: Box<[u8]>,
}

/// Which blocks of an in-flight request a power cut keeps.
pub(super) enum Torn {
    None,
    All,
    /// Blocks before this one.
    Prefix(u64),
    Subset,
}

impl Torn {
    pub(super) fn draw(rng: &mut Rng, blocks: &Range<u64>) -> Self {
        match rng.below(4) {
            0 => Self::None,
            1 => Self::All,
            2 => Self::Prefix(rng.between(blocks.start, blocks.end)),
            _ => Self::Subset,
        }
    }

    pub(super) fn keeps(&self, block: u64, rng: &mut Rng) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Prefix(end) => block < *end,
            Self::Subset => rng.coin(),
        }
    }
}

/// Which acknowledged versions a power cut keeps.
enum CacheLoss {
    KeepAll,
    LoseAll,
    EachBlock,
    /// By a hash of the request's number.
    EachRequest(u64),
}

impl CacheLoss {
    fn draw(rng: &mut Rng) -> Self {
        match rng.below(6) {
            0 => Self::KeepAll,
            1 => Self::LoseAll,
            2 | 3 => Self::EachRequest(rng.bits()),
            _ => Self::EachBlock,
        }
    }

    fn keeps(&self, request: u64, rng: &mut Rng) -> bool {
        match self {
            Self::KeepAll => true,
            Self::LoseAll => false,
            Self::EachBlock => rng.coin(),
            Self::EachRequest(salt) => mix(request ^ salt) & 1 == 0,
        }
    }
}

pub(super) struct Store {
    block_bytes: usize,
    durable: Vec<u8>,
    versions: BTreeMap<u64, Vec<Version>>,
    bad: BTreeSet<u64>,
    changing: BTreeSet<u64>,
}

impl Store {
    pub(super) fn new(block_bytes: u32, durable: Vec<u8>) -> Self {
        Self {
            block_bytes: block_bytes as usize,
            durable,
            versions: BTreeMap::new(),
            bad: BTreeSet::new(),
            changing: BTreeSet::new(),
        }
    }

    fn span(&self, block: u64) -> Range<usize> {
        let start = block as usize * self.block_bytes;
        start..start + self.block_bytes
    }

    fn blocks(&self, offset: u64, bytes: u64) -> Range<u64> {
        let block = self.block_bytes as u64;
        offset / block..(offset + bytes).div_ceil(block)
    }

    pub(super) fn durable(&self) -> &[u8] {
        &self.durable
    }

    pub(super) fn contents(&self) -> Vec<u8> {
        let mut all = self.durable.clone();
        for (block, versions) in &self.versions {
            if let Some(newest) = versions.last() {
                all[self.span(*block)].copy_from_slice(&newest.data);
            }
        }
        all
    }

    pub(super) fn peek(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let (start, end) = (offset as usize, (offset + bytes) as usize);
        let mut some = self.durable[start..end].to_vec();
        for (block, versions) in self.versions.range(self.blocks(offset, bytes)) {
            let span = self.span(*block);
            let (from, to) = (span.start.max(start), span.end.min(end));
            if let Some(newest) = versions.last().filter(|_| from < to) {
                some[from - start..to - start]
                    .copy_from_slice(&newest.data[from - span.start..to - span.start]);
            }
        }
        some
    }

    /// Changes bytes durably; no version of the blocks is left.
    pub(super) fn overwrite(&mut self, offset: u64, bytes: &[u8]) {
        for block in self.blocks(offset, bytes.len() as u64) {
            if let Some(newest) = self.versions.remove(&block).and_then(|mut v| v.pop()) {
                let span = self.span(block);
                self.durable[span].copy_from_slice(&newest.data);
            }
            self.changing.remove(&block);
        }
        let start = offset as usize;
        self.durable[start..start + bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn spoil(&mut self, offset: u64, bytes: u64) {
        self.bad.extend(self.blocks(offset, bytes));
    }

    pub(super) fn heal(&mut self) {
        self.bad.clear();
    }

    pub(super) fn any_bad(&self, blocks: Range<u64>) -> bool {
        self.bad.range(blocks).next().is_some()
    }

    pub(super) fn read(&self, block: u64, into: &mut [u8], rng: &mut Rng) {
        if self.changing.contains(&block) {
            return rng.fill(into);
        }
        match self.versions.get(&block).and_then(|v| v.last()) {
            Some(newest) => into.copy_from_slice(&newest.data),
            None => into.copy_from_slice(&self.durable[self.span(block)]),
        }
    }

    pub(super) fn write(&mut self, block: u64, request: u64, data: Box<[u8]>) {
        self.bad.remove(&block);
        self.changing.remove(&block);
        let version = Version { request, acknowledged: u64::MAX, data };
        self.versions.entry(block).or_default().push(version);
    }

    /// From now on the block reads as something else each time.
    pub(super) fn make_changing(&mut self, block: u64) {
        self.changing.insert(block);
    }

    /// Notes that `request`, which wrote within `blocks`, was acknowledged.
    pub(super) fn acknowledge(&mut self, request: u64, blocks: Range<u64>, order: u64) {
        for (_, versions) in self.versions.range_mut(blocks) {
            versions.iter_mut().filter(|v| v.request == request).for_each(|v| {
                v.acknowledged = order;
            });
        }
    }

    /// Makes the newest version of `block` that `which` accepts durable.
    fn harden_block(&mut self, block: u64, which: impl Fn(&Version) -> bool) {
        let span = self.span(block);
        let Some(versions) = self.versions.get_mut(&block) else { return };
        if let Some(at) = versions.iter().rposition(which) {
            self.durable[span].copy_from_slice(&versions[at].data);
            versions.drain(..=at);
        }
        if versions.is_empty() {
            self.versions.remove(&block);
        }
    }

    /// Makes what `request` wrote within `blocks` durable.
    pub(super) fn harden(&mut self, request: u64, blocks: Range<u64>) {
        for block in blocks {
            self.harden_block(block, |v| v.request == request);
        }
    }

    /// Makes everything acknowledged up to `order` durable.
    pub(super) fn flush(&mut self, order: u64) {
        let blocks: Vec<u64> = self.versions.keys().copied().collect();
        for block in blocks {
            self.harden_block(block, |v| v.acknowledged <= order);
        }
    }

    /// Cuts the power; `torn` says what is kept of requests in flight.
    pub(super) fn power_cut(&mut self, torn: &BTreeMap<u64, Torn>, rng: &mut Rng) {
        let cache = CacheLoss::draw(rng);
        let newest_wins = rng.coin();
        for (block, mut versions) in core::mem::take(&mut self.versions) {
            versions.retain(|v| match torn.get(&v.request) {
                Some(torn) => torn.keeps(block, rng),
                None => cache.keeps(v.request, rng),
            });
            if versions.is_empty() {
                continue;
            }
            let last = versions.len() - 1;
            let at = if newest_wins { last } else { rng.index(versions.len()) };
            let span = self.span(block);
            self.durable[span].copy_from_slice(&versions[at].data);
        }
    }
}

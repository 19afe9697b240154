//! The blocks of a simulated drive: durable content, newer versions, unreadable blocks.
//!
//! The durable content is an image of shared pages, copied when they are written.
//!
//! Invariants
//! - The durable pages are what a power cut leaves if all versions are lost.
//! - The versions of a block are in order of execution; a block without versions has no entry.

use super::image::{Image, PAGE};
use crate::rng::{Rng, mix};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A content of one block that is not durable yet.
#[derive(Clone)]
struct Version {
    request: u64,
    /// When its request was acknowledged, in the drive's order; `u64::MAX`: not yet.
    acknowledged: u64,
    /// A flush that failed covered it: reads see it, and no later flush makes it durable.
    doomed: bool,
    data: Arc<[u8]>,
}

/// Which blocks of an in-flight request a power cut keeps.
#[derive(Clone, Copy)]
pub(super) enum Torn {
    None,
    All,
    /// Blocks before this one.
    Prefix(u64),
    /// This block and those behind it.
    Suffix(u64),
    Subset,
    /// Of every eight blocks, so many at their begin.
    Shorn(u64),
    /// Any subset, and this block can't be read.
    Unreadable(u64),
    /// All but this block, which holds nobody's bytes.
    Garbage(u64),
}

/// How many requests in flight a power cut left in each way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TornCounts {
    /// Nothing was written.
    pub none: u64,
    /// Everything was.
    pub all: u64,
    /// A prefix.
    pub prefix: u64,
    /// What is behind a prefix.
    pub suffix: u64,
    /// Any subset of its blocks.
    pub subset: u64,
    /// The begin of every eight blocks.
    pub shorn: u64,
    /// With a block that can't be read.
    pub unreadable: u64,
    /// With a block of nobody's bytes.
    pub garbage: u64,
}

impl Torn {
    /// Of a request for `blocks`, the first of which begins at byte `offset`.
    pub(super) fn draw(rng: &mut Rng, blocks: &Range<u64>, offset: u64, tears: &Tears) -> Self {
        let one = |rng: &mut Rng| rng.between(blocks.start, blocks.end.max(blocks.start + 1) - 1);
        let bad = if tears.harsh.contains(&offset) { 5 } else { u64::from(tears.unreadable) };
        match rng.below(8) {
            n if n < bad => Self::Unreadable(one(rng)),
            1 if tears.garbage.contains(&offset) => Self::Garbage(one(rng)),
            n if n > 3 && tears.backwards => Self::Suffix(one(rng)),
            0 | 1 => Self::None,
            2 | 3 => Self::All,
            4 => Self::Prefix(rng.between(blocks.start, blocks.end)),
            5 => Self::Shorn([3, 7][rng.index(2)]),
            _ => Self::Subset,
        }
    }

    pub(super) fn keeps(&self, block: u64, rng: &mut Rng) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Prefix(end) => block < *end,
            Self::Suffix(first) => block >= *first,
            Self::Subset | Self::Unreadable(_) => rng.coin(),
            Self::Shorn(kept) => block % 8 < *kept,
            Self::Garbage(_) => true,
        }
    }

    pub(super) fn count(&self, counts: &mut TornCounts) {
        *match self {
            Self::None => &mut counts.none,
            Self::All => &mut counts.all,
            Self::Prefix(_) => &mut counts.prefix,
            Self::Suffix(_) => &mut counts.suffix,
            Self::Subset => &mut counts.subset,
            Self::Shorn(_) => &mut counts.shorn,
            Self::Unreadable(_) => &mut counts.unreadable,
            Self::Garbage(_) => &mut counts.garbage,
        } += 1;
    }
}

/// What a power cut may do to a block that was being written, beside leaving it old or new.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tears {
    /// It can't be read.
    pub unreadable: bool,
    /// Of some requests that begin in these bytes of the drive a block holds nobody's bytes.
    pub garbage: Range<u64>,
    /// Of most requests that begin in these bytes of the drive a block can't be read.
    pub harsh: Range<u64>,
    /// The end of a request is written before its begin.
    pub backwards: bool,
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

#[derive(Clone)]
pub(super) struct Store {
    block_bytes: usize,
    durable: Image,
    versions: BTreeMap<u64, Vec<Version>>,
    bad: BTreeSet<u64>,
    /// Blocks that could not be read before they were written, which is not durable yet.
    bad_below: BTreeSet<u64>,
    changing: BTreeSet<u64>,
    /// Blocks that hold nobody's bytes since a power cut.
    garbage: BTreeSet<u64>,
}

impl Store {
    pub(super) fn new(block_bytes: u32, durable: Image) -> Self {
        Self {
            block_bytes: block_bytes as usize,
            durable,
            versions: BTreeMap::new(),
            bad: BTreeSet::new(),
            bad_below: BTreeSet::new(),
            changing: BTreeSet::new(),
            garbage: BTreeSet::new(),
        }
    }

    fn blocks(&self, offset: u64, bytes: u64) -> Range<u64> {
        let block = self.block_bytes as u64;
        offset / block..(offset + bytes).div_ceil(block)
    }

    pub(super) fn durable(&self) -> &Image {
        &self.durable
    }

    /// The content as reads see it.
    pub(super) fn image(&self) -> Image {
        let mut all = self.durable.clone();
        for (block, versions) in &self.versions {
            if let Some(newest) = versions.last() {
                all.write(*block as usize * self.block_bytes, &newest.data);
            }
        }
        all
    }

    pub(super) fn peek(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let (start, end) = (offset as usize, (offset + bytes) as usize);
        let mut some = vec![0; end - start];
        self.durable.read(start, &mut some);
        for (block, versions) in self.versions.range(self.blocks(offset, bytes)) {
            let first = *block as usize * self.block_bytes;
            let (from, to) = (first.max(start), (first + self.block_bytes).min(end));
            if let Some(newest) = versions.last().filter(|_| from < to) {
                some[from - start..to - start]
                    .copy_from_slice(&newest.data[from - first..to - first]);
            }
        }
        some
    }

    /// Changes bytes durably; no version of the blocks is left.
    pub(super) fn overwrite(&mut self, offset: u64, bytes: &[u8]) {
        for block in self.blocks(offset, bytes.len() as u64) {
            if let Some(newest) = self.versions.remove(&block).and_then(|mut v| v.pop()) {
                self.durable.write(block as usize * self.block_bytes, &newest.data);
                self.bad_below.remove(&block);
            }
            self.changing.remove(&block);
        }
        self.durable.write(offset as usize, bytes);
    }

    pub(super) fn spoil(&mut self, offset: u64, bytes: u64) {
        self.bad.extend(self.blocks(offset, bytes));
    }

    pub(super) fn heal(&mut self) {
        self.bad.clear();
        self.bad_below.clear();
    }

    pub(super) fn any_bad(&self, blocks: Range<u64>) -> bool {
        self.bad.range(blocks).next().is_some()
    }

    pub(super) fn bad_within(&self, blocks: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        self.bad.range(blocks).copied()
    }

    /// Blocks that hold nobody's bytes since a power cut, and were not written since.
    pub(super) fn garbage(&self) -> Vec<u64> {
        self.garbage.iter().copied().collect()
    }

    /// Blocks that can't be read.
    pub(super) fn bad(&self) -> Vec<u64> {
        self.bad.iter().copied().collect()
    }

    /// Fills `into` from `block` on.
    pub(super) fn read(&self, block: u64, into: &mut [u8], rng: &mut Rng) {
        self.durable.read(block as usize * self.block_bytes, into);
        let blocks = block..block + (into.len() / self.block_bytes) as u64;
        let span = |at: u64| {
            let start = (at - block) as usize * self.block_bytes;
            start..start + self.block_bytes
        };
        if !self.versions.is_empty() {
            for (at, versions) in self.versions.range(blocks.clone()) {
                if let Some(newest) = versions.last() {
                    into[span(*at)].copy_from_slice(&newest.data);
                }
            }
        }
        for at in self.changing.range(blocks) {
            rng.fill(&mut into[span(*at)]);
        }
    }

    pub(super) fn write(&mut self, block: u64, request: u64, data: &[u8]) {
        if self.bad.remove(&block) {
            self.bad_below.insert(block);
        }
        self.changing.remove(&block);
        self.garbage.remove(&block);
        let data = data.into();
        let version = Version { request, acknowledged: u64::MAX, doomed: false, data };
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
        let Some(versions) = self.versions.get_mut(&block) else { return };
        if let Some(at) = versions.iter().rposition(which) {
            self.durable.write(block as usize * self.block_bytes, &versions[at].data);
            self.bad_below.remove(&block);
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
            self.harden_block(block, |v| v.acknowledged <= order && !v.doomed);
        }
    }

    /// A flush of everything acknowledged up to `order` failed.
    pub(super) fn doom(&mut self, order: u64) {
        for version in self.versions.values_mut().flatten() {
            version.doomed |= version.acknowledged <= order;
        }
    }

    /// The process that was told of failed flushes has ended, and the power has not: what they
    /// covered is as any other.
    pub(super) fn relent(&mut self) {
        self.versions.values_mut().flatten().for_each(|version| version.doomed = false);
    }

    /// Cuts the power; `torn` says what is kept of requests in flight.
    pub(super) fn power_cut(&mut self, torn: &BTreeMap<u64, Torn>, rng: &mut Rng) {
        let cache = CacheLoss::draw(rng);
        let newest_wins = rng.coin();
        for (block, mut versions) in core::mem::take(&mut self.versions) {
            versions.retain(|v| match torn.get(&v.request) {
                Some(torn) => torn.keeps(block, rng),
                None => cache.keeps(v.request, rng) && !v.doomed,
            });
            if versions.is_empty() {
                continue;
            }
            let last = versions.len() - 1;
            let at = if newest_wins { last } else { rng.index(versions.len()) };
            self.durable.write(block as usize * self.block_bytes, &versions[at].data);
            self.bad_below.remove(&block);
        }
        self.bad.append(&mut self.bad_below);
    }

    /// Requests with versions that are not durable.
    pub(super) fn undecided(&self) -> BTreeSet<u64> {
        let all = self.versions.values().flatten();
        all.filter(|v| !v.doomed).map(|v| v.request).collect()
    }

    /// Cuts the power: of each block the newest version that `kept` accepts is left.
    pub(super) fn choose(&mut self, kept: impl Fn(u64) -> bool) {
        for (block, versions) in core::mem::take(&mut self.versions) {
            if let Some(newest) = versions.iter().rev().find(|v| kept(v.request) && !v.doomed) {
                self.durable.write(block as usize * self.block_bytes, &newest.data);
                self.bad_below.remove(&block);
            }
        }
        self.bad.append(&mut self.bad_below);
    }

    /// Leaves a block unreadable, or with nobody's bytes, that a request was writing.
    pub(super) fn damage(&mut self, torn: Torn, rng: &mut Rng) {
        match torn {
            Torn::Unreadable(block) => _ = self.bad.insert(block),
            Torn::Garbage(block) => {
                let mut bytes = vec![0; self.block_bytes];
                rng.fill(&mut bytes);
                self.overwrite(block * self.block_bytes as u64, &bytes);
                self.garbage.insert(block);
            }
            _ => {}
        }
    }
}

const _: () = assert!(PAGE.is_multiple_of(4096), "a page holds whole blocks");

//! The whole map of an array, as its keeper has it in memory: pure, without I/O.
//!
//! Invariant: a change that says less than the truth (a region clean, a band unwritten) is made
//! only by [`Map::clean`] and [`Map::unwrite`], whose callers have seen to it that it is true.
//! Changes return the pages to write, and whether with other written bits; until these are durable
//! nothing may rely on them.

use crate::mutants::{self, Mutant};
use crate::region::message::Bits;
use crate::region::table::TableStart;
use core::ops::Range;
use format::limits::{PAGE_ENTRIES, REGION_BITS};
use format::region::{Entry, Geometry, Page, PageId};
use layout::{CodeKind, Layout};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::{CoreId, GroupNo, Uuid};

/// Group and page.
pub(crate) type PageKey = (GroupNo, u32);

/// Pages to write, and of each whether its written bits are others than before.
pub(crate) type Changed = BTreeMap<PageKey, bool>;

/// The page of a region.
const fn page_of(group: GroupNo, region: u64) -> PageKey {
    (group, (region / PAGE_ENTRIES as u64) as u32)
}

struct Group {
    redundant: bool,
    entries: Vec<Entry>,
    /// Sequence number of each page.
    sequences: Vec<u64>,
    /// Regions whose redundancy is not trusted.
    owed: BTreeSet<u64>,
    /// It is right all the same in all that was ever written: they are owed for lost pages alone.
    gives: bool,
    dirty: BTreeSet<u64>,
}

/// The map and who relies on it.
pub(crate) struct Map {
    array: Uuid,
    geometry: Geometry,
    bit_shift: u32,
    groups: Vec<Group>,
    /// Of each region that is held: the newest serial number granted to each core.
    held: BTreeMap<(GroupNo, u64), BTreeMap<CoreId, u64>>,
    serial: u64,
}

impl Map {
    /// The map of a new array: nothing written, all pages of sequence number 1.
    pub fn new(array: Uuid, layout: &Layout, shift: u8) -> Self {
        let geometry = Geometry::new(layout, shift);
        let group = |g: u16| {
            let g = GroupNo(g);
            Group {
                redundant: layout.descriptor(g).code != CodeKind::None,
                entries: vec![Entry::default(); geometry.regions(g) as usize],
                sequences: vec![1; geometry.pages(g) as usize],
                owed: BTreeSet::new(),
                gives: true,
                dirty: BTreeSet::new(),
            }
        };
        let groups = (0..layout.groups()).map(group).collect();
        let bit_shift = (layout.stripes_per_band() << shift).trailing_zeros();
        Self { array, geometry, bit_shift, groups, held: BTreeMap::new(), serial: 0 }
    }

    /// A region has 2 to the power of this stripes.
    pub fn region_shift(&self) -> u32 {
        self.bit_shift + REGION_BITS.trailing_zeros()
    }

    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// All pages.
    pub fn pages(&self) -> Vec<PageKey> {
        let of = |g: u16| (0..self.geometry.pages(GroupNo(g))).map(move |p| (GroupNo(g), p));
        (0..self.groups.len() as u16).flat_map(of).collect()
    }

    fn id(&self, (group, number): PageKey) -> PageId {
        PageId { array: self.array, group, number }
    }

    fn masks(&self, (group, page): PageKey) -> Vec<u64> {
        let regions = self.geometry.regions_of(group, page);
        regions.map(|region| self.geometry.mask(group, region)).collect()
    }

    /// Reads a place of a page.
    pub fn decode(&self, page: PageKey, bytes: &[u8]) -> Option<Page> {
        format::region::decode(bytes, self.id(page), &self.masks(page))
    }

    /// The bytes of a page as it is now, and its sequence number.
    pub fn encode(&self, page: PageKey) -> (u64, Vec<u8>) {
        let (group, number) = page;
        let regions = self.geometry.regions_of(group, number);
        let group = &self.groups[group.index()];
        let entries = group.entries[regions.start as usize..regions.end as usize].to_vec();
        let sequence = group.sequences[number as usize];
        (sequence, format::region::encode(self.id(page), &Page { sequence, entries }))
    }

    /// Takes over what a page says at the start; `None`: nobody has it, so everything may have
    /// been written, and nothing matches. Dirty regions are owed, but those of a group whose
    /// redundancy is `right` in all that was written: there only those of a page that is lost, or
    /// was at an earlier start, since nothing matches where nothing was written.
    pub fn load(&mut self, (group, number): PageKey, page: Option<Page>, right: bool) {
        let regions = self.geometry.regions_of(group, number);
        let masks = self.masks((group, number));
        let lost = || {
            let all = |mask: &u64| Entry { written: *mask, missed: u64::MAX, dirty: true };
            Page { sequence: 1, entries: masks.iter().map(all).collect() }
        };
        let page = page.unwrap_or_else(lost);
        let group = &mut self.groups[group.index()];
        group.gives = right;
        group.sequences[number as usize] = page.sequence;
        for (region, entry) in regions.zip(page.entries) {
            let dirty = entry.dirty && group.redundant;
            group.entries[region as usize] = Entry { dirty, ..entry };
            if dirty {
                group.dirty.insert(region);
                let owes = !right || entry.missed == u64::MAX;
                if owes && !mutants::is(Mutant::NoResync) {
                    group.owed.insert(region);
                }
            }
        }
    }

    /// What the cores start with.
    pub fn table(&self) -> TableStart {
        let words = |g: &Group| (g.redundant, g.entries.iter().map(|e| e.written).collect());
        TableStart { bit_shift: self.bit_shift, groups: self.groups.iter().map(words).collect() }
    }

    /// Whether a bit is set.
    pub fn written(&self, group: GroupNo, bit: u64) -> bool {
        let entry = self.groups[group.index()].entries.get((bit / REGION_BITS) as usize);
        entry.is_some_and(|e| e.written >> (bit % REGION_BITS) & 1 == 1)
    }

    /// Whether writes to a stripe may have been under way: it was written, and its region is dirty.
    pub fn may_be_written(&self, group: GroupNo, stripe: u64) -> bool {
        let bit = stripe >> self.bit_shift;
        self.written(group, bit)
            && self.groups[group.index()].entries[(bit / REGION_BITS) as usize].dirty
    }

    /// How many bits of some regions are set.
    pub fn written_bits(&self, group: GroupNo, regions: Range<u64>) -> u64 {
        let range = regions.start as usize..regions.end as usize;
        let entries = &self.groups[group.index()].entries[range];
        entries.iter().map(|e| u64::from(e.written.count_ones())).sum()
    }

    /// How many regions are dirty.
    pub fn dirty_regions(&self, group: GroupNo) -> u64 {
        self.groups[group.index()].dirty.len() as u64
    }

    /// The dirty regions, in ascending order.
    pub fn dirty(&self, group: GroupNo) -> impl Iterator<Item = u64> + '_ {
        self.groups[group.index()].dirty.iter().copied()
    }

    /// Bits from `first` on that are written with it when it is: where a sequence of written
    /// bands comes up to it, as many again, up to `most` and the end of the region.
    pub fn ahead(&self, group: GroupNo, first: u64, most: u64) -> Range<u64> {
        let region = first / REGION_BITS * REGION_BITS;
        let before = (region..first).rev().take_while(|bit| self.written(group, *bit)).count();
        let end = self.geometry.bits(group).min(region + REGION_BITS);
        let last = (first + 1 + (before as u64).min(most)).min(end);
        let free = (first + 1..last).find(|bit| self.written(group, *bit)).unwrap_or(last);
        first..free
    }

    /// Marks bits as written, and with redundancy their regions as dirty; the pages to write.
    pub fn write(&mut self, bits: &BTreeSet<(GroupNo, u64)>) -> Changed {
        let mut changed = Changed::new();
        for (group, bit) in bits {
            let (region, mask) = (bit / REGION_BITS, 1 << (bit % REGION_BITS));
            let g = &mut self.groups[group.index()];
            let entry = &mut g.entries[region as usize];
            let fresh = entry.written & mask == 0;
            if fresh || (g.redundant && !entry.dirty) {
                entry.written |= mask;
                entry.dirty = g.redundant;
                if g.redundant {
                    g.dirty.insert(region);
                }
                *changed.entry(page_of(*group, region)).or_default() |= fresh;
            }
        }
        self.next(changed)
    }

    /// Takes bits back; the pages to write. Nothing may be under way in them.
    pub fn unwrite(&mut self, list: &[Bits]) -> Changed {
        let mut changed = Changed::new();
        for b in list {
            let entry = &mut self.groups[b.group.index()].entries[b.region as usize];
            if entry.written & b.bits != 0 {
                entry.written &= !b.bits;
                changed.insert(page_of(b.group, b.region), true);
            }
        }
        self.next(changed)
    }

    /// Calls regions clean that were flushed since their last write; with an epoch where a drive
    /// of the group is out. The pages to write.
    pub fn clean(
        &mut self,
        regions: &BTreeSet<(GroupNo, u64)>,
        missed: impl Fn(GroupNo) -> Option<u64>,
    ) -> Changed {
        let mut changed = Changed::new();
        for (group, region) in regions {
            let g = &mut self.groups[group.index()];
            let entry = &mut g.entries[*region as usize];
            // A map that was lost stays missed for every drive until none is out.
            let before = if missed(*group).is_some() { entry.missed } else { 0 };
            let now = missed(*group).filter(|_| !mutants::is(Mutant::MissedForgotten));
            entry.missed = now.unwrap_or(0).max(before);
            entry.dirty = false;
            g.dirty.remove(region);
            changed.insert(page_of(*group, *region), false);
        }
        self.next(changed)
    }

    fn next(&mut self, changed: Changed) -> Changed {
        for (group, page) in changed.keys() {
            self.groups[group.index()].sequences[*page as usize] += 1;
        }
        changed
    }

    /// The set bits of a range, by region.
    pub fn set_bits(&self, group: GroupNo, range: Range<u64>) -> Vec<Bits> {
        let mut list = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let region = at / REGION_BITS;
            let end = range.end.min((region + 1) * REGION_BITS);
            let (lo, n) = (at % REGION_BITS, end - at);
            let mask = if n == REGION_BITS { u64::MAX } else { ((1 << n) - 1) << lo };
            let bits = self.groups[group.index()].entries[region as usize].written & mask;
            if bits != 0 {
                list.push(Bits { group, region, bits });
            }
            at = end;
        }
        list
    }

    /// Grants a region to a core; the grant's serial number.
    pub fn grant(&mut self, group: GroupNo, bit: u64, core: CoreId) -> u64 {
        self.serial += 1;
        if self.groups[group.index()].redundant {
            let region = (group, bit / REGION_BITS);
            self.held.entry(region).or_default().insert(core, self.serial);
        }
        self.serial
    }

    /// A core gave grants back, each up to a serial number.
    pub fn gave_up(&mut self, core: CoreId, regions: &[(GroupNo, u64, u64)]) {
        for (group, region, serial) in regions {
            let Some(cores) = self.held.get_mut(&(*group, *region)) else {
                continue;
            };
            if cores.get(&core) == Some(serial) {
                cores.remove(&core);
            }
            if cores.is_empty() {
                self.held.remove(&(*group, *region));
            }
        }
    }

    /// Nobody holds these regions any more; grants up to the number returned are void.
    pub fn revoke(&mut self, list: &[Bits]) -> u64 {
        for b in list {
            self.held.remove(&(b.group, b.region));
        }
        self.serial
    }

    /// Nobody holds anything any more.
    pub fn revoke_all(&mut self) {
        self.held.clear();
    }

    /// Whether a core may hold any region.
    pub fn any_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Dirty regions that nobody holds and that are not owed, in groups that `may` be cleaned.
    pub fn cleanable(&self, may: impl Fn(GroupNo) -> bool) -> BTreeSet<(GroupNo, u64)> {
        let mut found = BTreeSet::new();
        for (g, group) in (0u16..).map(GroupNo).zip(&self.groups) {
            if may(g) {
                let held =
                    |r: u64| self.held.contains_key(&(g, r)) && !mutants::is(Mutant::CleanHeld);
                let free = |r: &&u64| !group.owed.contains(r) && !held(**r);
                found.extend(group.dirty.iter().filter(free).map(|region| (g, *region)));
            }
        }
        found
    }

    /// The regions of a group that are owed.
    pub fn owed(&self, group: GroupNo) -> Vec<u64> {
        self.groups[group.index()].owed.iter().copied().collect()
    }

    /// Whether a group owes the resync of a region.
    pub fn owes(&self, group: GroupNo) -> bool {
        !self.groups[group.index()].owed.is_empty()
    }

    /// Whether all that is dirty is owed for lost pages alone.
    pub fn only_forgotten(&self, group: GroupNo) -> bool {
        let group = &self.groups[group.index()];
        group.gives && group.dirty.is_subset(&group.owed)
    }

    /// Whether redundancy is right in all that was ever written to a group, also in regions that
    /// are owed: what a drive that is out holds is computed from it.
    pub fn gives(&self, group: GroupNo) -> bool {
        self.groups[group.index()].gives
    }

    /// The owed regions of a group as the cores want them: a bit for each region.
    pub fn owed_set(&self, group: GroupNo) -> Arc<[u64]> {
        let group = &self.groups[group.index()];
        let words = group.owed.last().map_or(0, |last| last / 64 + 1);
        let mut set = vec![0; words as usize];
        for region in &group.owed {
            set[(region / 64) as usize] |= 1 << (region % 64);
        }
        set.into()
    }

    /// A region was resynced; on all drives of the group, or not.
    pub fn resynced(&mut self, group: GroupNo, region: u64, whole: bool) {
        let group = &mut self.groups[group.index()];
        group.owed.remove(&region);
        if whole {
            // No drive misses anything of it: it was forgotten, and is not any more.
            group.entries[region as usize].missed = 0;
        }
    }

    /// The stripes of a region.
    pub fn stripes(&self, region: u64) -> Range<u64> {
        let stripes = REGION_BITS << self.bit_shift;
        region * stripes..(region + 1) * stripes
    }

    /// The first stripe from `stripe` on that was written, and with `since` may be missing on a
    /// drive that is whole up to that epoch; `end` if there is none before it.
    pub fn next_stripe(&self, group: GroupNo, stripe: u64, end: u64, since: u64) -> u64 {
        let entries = &self.groups[group.index()].entries;
        let mut at = stripe;
        while at < end {
            let bit = at >> self.bit_shift;
            let entry = &entries[(bit / REGION_BITS) as usize];
            let dirty = entry.dirty && !mutants::is(Mutant::CatchUpClean);
            let wanted = since == 0 || dirty || entry.missed > since;
            let rest = if wanted { entry.written >> (bit % REGION_BITS) } else { 0 };
            let skip = if rest == 0 {
                REGION_BITS - bit % REGION_BITS
            } else {
                u64::from(rest.trailing_zeros())
            };
            if skip == 0 {
                return at;
            }
            at = (bit + skip) << self.bit_shift;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::Level;
    use units::MIB;

    const G: GroupNo = GroupNo(0);
    /// Stripes of the group.
    const END: u64 = 200 * 16;

    fn map() -> Map {
        let layout = Layout::new(Level::Raid5, 3, 65536, 200 * MIB).unwrap();
        Map::new(Uuid::from_random([1; 16]), &layout, 0)
    }

    /// How many bits are set.
    fn written_bits(map: &Map) -> u64 {
        map.written_bits(G, 0..map.geometry().regions(G))
    }

    fn bits(list: &[u64]) -> BTreeSet<(GroupNo, u64)> {
        list.iter().map(|bit| (G, *bit)).collect()
    }

    #[test]
    fn a_region_is_cleaned_when_every_core_gave_its_newest_grant_back() {
        let mut m = map();
        assert_eq!(m.write(&bits(&[70])).len(), 1);
        assert!(m.write(&bits(&[70])).is_empty(), "nothing new");
        let first = m.grant(G, 70, CoreId(0));
        let second = m.grant(G, 71, CoreId(0));
        let other = m.grant(G, 70, CoreId(1));
        m.gave_up(CoreId(0), &[(G, 1, first)]);
        m.gave_up(CoreId(1), &[(G, 1, other)]);
        assert!(m.cleanable(|_| true).is_empty(), "a newer grant is on its way");
        m.gave_up(CoreId(0), &[(G, 1, second)]);
        let free = m.cleanable(|_| true);
        assert_eq!(free, bits(&[1]));
        assert!(m.cleanable(|_| false).is_empty());
        assert_eq!(m.clean(&free, |_| None).len(), 1);
        assert_eq!(m.dirty_regions(G), 0);
    }

    #[test]
    fn what_was_missed_is_found_again_by_epochs() {
        let mut m = map();
        m.write(&bits(&[3, 65, 130]));
        let stripes = 16;
        m.clean(&bits(&[0, 1, 2]), |_| None);
        assert_eq!(m.next_stripe(G, 0, END, 7), END, "the drive has all of it");
        m.write(&bits(&[66]));
        assert_eq!(m.next_stripe(G, 0, END, 7), 65 * stripes, "dirty");
        m.clean(&bits(&[1]), |_| Some(8));
        assert_eq!(m.next_stripe(G, 0, END, 7), 65 * stripes);
        assert_eq!(m.next_stripe(G, 0, END, 8), END);
        assert_eq!(m.next_stripe(G, 65 * stripes + 5, END, 7), 65 * stripes + 5);
        assert_eq!(m.next_stripe(G, 67 * stripes, END, 7), END);
        assert_eq!(m.next_stripe(G, 4 * stripes, END, 0), 65 * stripes);
    }

    #[test]
    fn a_lost_page_says_everything() {
        let mut m = map();
        m.load((G, 0), None, true);
        assert_eq!(written_bits(&m), 200);
        assert_eq!(m.owed(G), [0, 1, 2, 3]);
        assert_eq!(m.owed_set(G)[..], [0b1111]);
        m.resynced(G, 0, false);
        m.resynced(G, 1, true);
        let free = m.cleanable(|_| true);
        m.clean(&free, |_| Some(9));
        assert_eq!(m.next_stripe(G, 0, END, 50), 0, "whatever the epoch of who was out");
        assert_eq!(m.next_stripe(G, 64 * 16, END, 50), 128 * 16, "all drives had it, then");
        m.clean(&free, |_| None);
        assert_eq!(m.next_stripe(G, 0, 64 * 16, 50), 64 * 16);
    }

    #[test]
    fn a_page_is_taken_over_as_it_was_written() {
        let mut a = map();
        a.write(&bits(&[1, 100, 199]));
        a.clean(&bits(&[1]), |_| Some(4));
        let (sequence, bytes) = a.encode((G, 0));
        assert_eq!(sequence, 3);
        let mut b = map();
        let page = b.decode((G, 0), &bytes);
        b.load((G, 0), page.clone(), false);
        assert_eq!(b.encode((G, 0)), (sequence, bytes));
        assert_eq!(b.owed(G), [0, 3]);
        let mut guarded = map();
        guarded.load((G, 0), page, true);
        assert_eq!((guarded.owed(G), guarded.dirty_regions(G)), (vec![], 2));
        assert!(b.written(G, 100) && !b.written(G, 101));
        assert_eq!(b.set_bits(G, 0..200).iter().map(|b| b.bits.count_ones()).sum::<u32>(), 3);
        let all = b.set_bits(G, 1..101);
        b.unwrite(&all);
        assert_eq!(written_bits(&b), 1);
    }

    #[test]
    fn a_sequence_of_bands_is_written_ahead() {
        let mut m = map();
        assert_eq!(m.ahead(G, 5, 8), 5..6);
        m.write(&bits(&[3, 4, 9]));
        assert_eq!(m.ahead(G, 5, 8), 5..8);
        assert_eq!(m.ahead(G, 5, 1), 5..7);
        m.write(&bits(&[60, 61, 62]));
        assert_eq!(m.ahead(G, 63, 8), 63..64);
        m.write(&bits(&[197, 198]));
        assert_eq!(m.ahead(G, 199, 8), 199..200);
    }
}

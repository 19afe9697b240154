//! The region map (D5): what of an array was ever written, and what a crash or an absent drive
//! leaves to be made right. Code of `docs/format.md`, section "The region map".
//!
//! A *region* of a group is 64 written bits; a bit is a band, or more of them on very large
//! drives ([`Geometry`]). A *page* holds the entries of consecutive regions of one group and has
//! two places on each drive of the group: the page of sequence number `n` goes to place `n % 2`, so
//! an interrupted write never touches the newest whole one.
//!
//! A place that can't be read does not say whether the write to it was cut off, so that nothing
//! ever relied on the page, or the page was durable and has decayed since. So a page whose written
//! bits differ from the one before goes to the other place, too, once it is durable in its own: a
//! reader that finds nothing where the next page would be ([`may_be_behind`]) knows the written
//! bits all the same, and takes what is left for dirty ([`at_worst`]).
//!
//! Invariants of what pages say (the *superset rule*; the engine keeps them):
//! - a band that was ever written since it was last unwritten has its bit set, and one without
//!   reads as zeros, whatever its drives hold;
//! - a region that may have writes under way, or not flushed to a drive that counts, is dirty;
//! - a region that was written while a drive of the group was out, and is not dirty, says an epoch
//!   in which it was, newer than the last one of that drive;
//! - on every drive, while none of its pages is being written, place `n % 2` has the newest page
//!   `n`, and the other place that or one before with the same written bits.

use crate::codec::{Reader, Writer, crc32c};
use crate::limits::{
    COUNTERS_READ_END, PAGE_BYTES, PAGE_ENTRIES, PAGE_HEADER_BYTES, PAGE_MAGIC, REGION_BITS,
    REGION_ENTRY_BYTES, REGIONS_MAX,
};
use layout::Layout;
use units::{GroupNo, MIB, Slot, Uuid};

/// Largest shift: with it the largest group has a million regions.
pub const SHIFT_MAX: u8 = 16;

/// What is known of one region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// A bit per band (or run of bands), the first in the lowest bit: it was written.
    pub written: u64,
    /// The newest epoch counter in which the region became clean while a drive of the group was
    /// out; 0 for never.
    pub missed: u64,
    /// Writes may be under way or not durable.
    pub dirty: bool,
}

impl Entry {
    /// Whether nobody knows what of the region was written: its page was lost, and its redundancy
    /// was not made right since.
    pub const fn is_forgotten(&self) -> bool {
        self.dirty && self.missed == u64::MAX
    }
}

/// One page of the map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// Counts writes of the page.
    pub sequence: u64,
    /// The entries of its regions.
    pub entries: Vec<Entry>,
}

/// Which page of which array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageId {
    /// The array.
    pub array: Uuid,
    /// The group.
    pub group: GroupNo,
    /// The page within the group.
    pub number: u32,
}

const CRC_AT: usize = PAGE_HEADER_BYTES - 4;

/// The bytes of a page. Panics when it has more entries than a page.
pub fn encode(id: PageId, page: &Page) -> Vec<u8> {
    assert!(page.entries.len() <= PAGE_ENTRIES, "a page has {PAGE_ENTRIES} entries");
    let mut out = Writer::default();
    out.0.extend(PAGE_MAGIC);
    out.uuid(id.array);
    out.u16(id.group.0);
    out.u16(u16::try_from(page.entries.len()).expect("few"));
    out.u32(id.number);
    out.u64(page.sequence);
    out.zeros(PAGE_HEADER_BYTES - out.0.len());
    for entry in &page.entries {
        out.u64(entry.written);
        out.u64(entry.missed);
        out.u8(entry.dirty.into());
        out.zeros(REGION_ENTRY_BYTES - 17);
    }
    out.zeros(PAGE_BYTES - out.0.len());
    let crc = crc32c(&out.0);
    out.0[CRC_AT..PAGE_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    out.0
}

/// Reads a page that may have been torn, or belong to something else: `None` then. `masks` has
/// the bits that each of its regions has.
pub fn decode(bytes: &[u8], id: PageId, masks: &[u64]) -> Option<Page> {
    let bytes: &[u8; PAGE_BYTES] = bytes.try_into().ok()?;
    let mut covered = *bytes;
    covered[CRC_AT..PAGE_HEADER_BYTES].fill(0);
    if bytes[CRC_AT..PAGE_HEADER_BYTES] != crc32c(&covered).to_le_bytes() {
        return None;
    }
    read(&mut Reader(&covered), id, masks).ok().flatten()
}

fn read(
    from: &mut Reader<'_>,
    id: PageId,
    masks: &[u64],
) -> Result<Option<Page>, crate::FormatError> {
    let magic = from.bytes(PAGE_MAGIC.len())? == PAGE_MAGIC;
    let array = from.uuid()?;
    let (group, count, number) = (GroupNo(from.u16()?), from.u16()?, from.u32()?);
    let mine = magic && PageId { array, group, number } == id;
    if !mine || usize::from(count) != masks.len() {
        return Ok(None);
    }
    let sequence = from.u64()?;
    if sequence >= COUNTERS_READ_END {
        return Ok(None);
    }
    from.zeros(PAGE_HEADER_BYTES - 40)?;
    let mut entries = Vec::with_capacity(masks.len());
    for mask in masks {
        let entry = Entry { written: from.u64()?, missed: from.u64()?, dirty: from.flag()? };
        from.zeros(REGION_ENTRY_BYTES - 17)?;
        if entry.written & !mask != 0 {
            return Ok(None);
        }
        entries.push(entry);
    }
    from.zeros(from.0.len())?;
    Ok(Some(Page { sequence, entries }))
}

/// What both places of a page on one drive hold.
pub type Places = [Option<Page>; 2];

/// The newest of the pages found on the drives that count.
pub fn newest<'a>(found: impl IntoIterator<Item = &'a Places>) -> Option<&'a Page> {
    found.into_iter().flatten().flatten().max_by_key(|page| page.sequence)
}

/// Whether a page newer than the newest may have been lost: no drive that counts has any page where
/// the next would be.
pub fn may_be_behind<'a>(newest: &Page, found: impl IntoIterator<Item = &'a Places>) -> bool {
    let next = ((newest.sequence + 1) % 2) as usize;
    found.into_iter().all(|places| places[next].is_none())
}

/// Whether a drive is an older state of itself, by what its places of a page hold. The `newest`
/// page was begun only after every drive that takes part had taken the one before. So who has a
/// page in both places, none of which was lost then, and not that one, was set back.
///
/// A record that says that none is dirty was `ended` by the newest page: every drive has that one.
/// So was set back who has an older one in its place, whatever the other place holds.
pub fn is_set_back(newest: &Page, own: &Places, ended: bool) -> bool {
    let sequence = own.iter().flatten().map(|page| page.sequence).max();
    let Some(behind) = sequence.map(|own| newest.sequence.saturating_sub(own)) else {
        return false;
    };
    let place = (newest.sequence % 2) as usize;
    own[place].is_some() && (behind > 1 && own[1 - place].is_some() || behind > 0 && ended)
}

/// Whether it was the newest page that ended what was dirty, by a drive that has the page before,
/// too, or by the one that is asked about, where the record says that no region is dirty: it says
/// so once every drive has a page that does.
pub fn ended<'a>(
    newest: &Page,
    own: &'a Places,
    counting: impl IntoIterator<Item = &'a Places>,
) -> bool {
    let last = (newest.sequence % 2) as usize;
    let has = |places: &&Places| places[last].as_ref() == Some(newest);
    let counting = counting.into_iter().filter(has);
    let before = counting.chain(core::iter::once(own)).filter_map(|p| p[1 - last].as_ref());
    let owes = |page: &Page| page.entries.iter().any(|e| e.dirty && !e.is_forgotten());
    before.filter(|page| page.sequence + 1 == newest.sequence).any(owes)
}

/// The next page, as bad as it may be: with the same written bits, and with every region dirty
/// that has any. With an epoch, the newest of a record that says that no region is dirty: then it
/// was the page that said so, and those that were dirty before may have been missed until then. But
/// a record says that also while regions are forgotten ([`Entry::is_forgotten`]): they stay so.
pub fn at_worst(page: &Page, none_dirty: Option<u64>) -> Page {
    let worst = |e: &Entry| match none_dirty {
        None => Entry { dirty: e.dirty || e.written != 0, ..*e },
        Some(epoch) if e.dirty && !e.is_forgotten() => {
            Entry { dirty: false, missed: e.missed.max(epoch), ..*e }
        }
        Some(_) => *e,
    };
    Page { sequence: page.sequence + 1, entries: page.entries.iter().map(worst).collect() }
}

/// The shift with which so many bands make no more than a million regions.
pub fn shift_for(bands: u64) -> u8 {
    (0..SHIFT_MAX).find(|s| bands.div_ceil(REGION_BITS << s) <= REGIONS_MAX).unwrap_or(SHIFT_MAX)
}

/// Bytes of the map area of a drive with so many bands in one group, in whole MiB.
pub fn area_bytes(bands: u64, shift: u8) -> u64 {
    let pages = bands.div_ceil(REGION_BITS << shift).div_ceil(PAGE_ENTRIES as u64);
    (pages.max(1) * 2 * PAGE_BYTES as u64).next_multiple_of(MIB)
}

/// Where regions, bits and pages of an array are.
///
/// A drive holds the pages of its groups, group by group in the order of their numbers, and of
/// each page both places, one behind the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    shift: u8,
    /// Bands of each group.
    bands: Vec<u64>,
    /// Of each slot: its groups, and how many pages stand before each.
    first: Vec<Vec<(GroupNo, u64)>>,
    /// Pages of the slot that has most.
    most: u64,
}

impl Geometry {
    /// The geometry of a layout whose record has this shift.
    pub fn new(layout: &Layout, shift: u8) -> Self {
        let bands = (0..layout.groups()).map(|g| layout.bands(GroupNo(g))).collect();
        let mut geometry = Self { shift, bands, first: Vec::new(), most: 0 };
        for slot in (0..layout.drives()).map(Slot) {
            let mut before = 0;
            let mut list = Vec::new();
            for group in layout.groups_of(slot) {
                list.push((group, before));
                before += u64::from(geometry.pages(group));
            }
            geometry.most = geometry.most.max(before);
            geometry.first.push(list);
        }
        geometry
    }

    /// Bands of a bit.
    pub const fn bands_per_bit(&self) -> u64 {
        1 << self.shift
    }

    /// Bands of a region.
    pub const fn bands_per_region(&self) -> u64 {
        REGION_BITS << self.shift
    }

    /// Written bits of a group.
    pub fn bits(&self, group: GroupNo) -> u64 {
        self.bands[group.index()].div_ceil(self.bands_per_bit())
    }

    /// Regions of a group.
    pub fn regions(&self, group: GroupNo) -> u64 {
        self.bits(group).div_ceil(REGION_BITS)
    }

    /// The bits that a region has: all, but for the last of its group.
    pub fn mask(&self, group: GroupNo, region: u64) -> u64 {
        let left = self.bits(group).saturating_sub(region * REGION_BITS);
        if left >= REGION_BITS { u64::MAX } else { (1 << left) - 1 }
    }

    /// Pages of a group.
    pub fn pages(&self, group: GroupNo) -> u32 {
        self.regions(group).div_ceil(PAGE_ENTRIES as u64) as u32
    }

    /// The regions of a page.
    pub fn regions_of(&self, group: GroupNo, page: u32) -> core::ops::Range<u64> {
        let first = u64::from(page) * PAGE_ENTRIES as u64;
        first..self.regions(group).min(first + PAGE_ENTRIES as u64)
    }

    /// Where on the drive in `slot` the two places of a page are, from the map area's begin; `None`
    /// if the slot is not of the group.
    pub fn page_offsets(&self, slot: Slot, group: GroupNo, page: u32) -> Option<[u64; 2]> {
        let list = self.first.get(slot.index())?;
        let (_, before) = list.iter().find(|(of, _)| *of == group)?;
        Some([0, 1].map(|place| ((before + u64::from(page)) * 2 + place) * PAGE_BYTES as u64))
    }

    /// The groups of a slot.
    pub fn groups_of(&self, slot: Slot) -> impl Iterator<Item = GroupNo> + '_ {
        self.first[slot.index()].iter().map(|(group, _)| *group)
    }

    /// Bytes that the pages of the slot with most of them take.
    pub const fn bytes(&self) -> u64 {
        self.most * 2 * PAGE_BYTES as u64
    }
}

//! The region map, read as docs/format.md has it: which bands were ever written, where redundancy
//! may not match, and what a drive that was out lacks.
//!
//! Invariant: a page that no drive in sync has is lost, and then its regions are written, dirty and
//! missed; where only the one after it may be lost, what is written is dirty, or, if the record
//! says that nothing is, what was dirty is missed, unless it is forgotten. Never is less said than
//! the document says.

use super::record::{Areas, Fields, Id, Range, Record, State, crc};
use super::{PAGE, Raw, ZERO};
use std::collections::BTreeSet;

const MIB: u64 = 1 << 20;
const HEADER: usize = 64;
/// Entries of a page.
const ENTRIES: u64 = 126;
/// Bits of a region.
const BITS: u64 = 64;

/// A region's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// A bit for each run of bands.
    pub written: u64,
    /// The epoch counter in which it became clean while a drive was out, or 0; the largest number
    /// where its page was lost.
    pub missed: u64,
    /// Redundancy may not match.
    pub dirty: bool,
}

impl Entry {
    /// Whether nobody knows what of the region was written.
    const fn forgotten(&self) -> bool {
        self.dirty && self.missed == u64::MAX
    }
}

/// A page that counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapPage {
    /// Its sequence number.
    pub sequence: u64,
    /// Its entries.
    pub entries: Vec<Entry>,
}

/// The map of one group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMap {
    /// Stripes that a bit stands for.
    stripes_per_bit: u64,
    /// Sequence numbers of its pages; `None`: lost.
    pub sequences: Vec<Option<u64>>,
    /// The entries of all regions.
    pub entries: Vec<Entry>,
}

impl GroupMap {
    fn place(&self, stripe: u64) -> (usize, u64) {
        let bit = stripe / self.stripes_per_bit;
        ((bit / BITS) as usize, bit % BITS)
    }

    /// Whether a page of it is in neither place.
    pub fn lost(&self) -> bool {
        self.sequences.contains(&None)
    }

    /// Whether nobody knows what of a stripe's region was written: its page is lost, or was at a
    /// start since which nobody has made its redundancy right.
    pub fn forgotten_at(&self, stripe: u64) -> bool {
        self.entries[self.place(stripe).0].forgotten()
    }

    /// Whether that is so of any region.
    pub fn any_forgotten(&self) -> bool {
        self.entries.iter().any(Entry::forgotten)
    }

    /// Whether the band of a stripe was ever written.
    pub fn written(&self, stripe: u64) -> bool {
        let (region, bit) = self.place(stripe);
        self.entries[region].written >> bit & 1 == 1
    }

    /// Whether redundancy of a stripe may not match.
    pub fn dirty(&self, stripe: u64) -> bool {
        self.entries[self.place(stripe).0].dirty
    }

    /// Whether any region is dirty.
    pub fn any_dirty(&self) -> bool {
        self.entries.iter().any(|e| e.dirty)
    }

    /// Whether a drive that is whole up to an epoch may lack what was written to a stripe.
    pub fn missed_since(&self, stripe: u64, epoch: u64) -> bool {
        let entry = &self.entries[self.place(stripe).0];
        entry.dirty || entry.missed > epoch
    }
}

/// Bands of a group.
fn bands(range: &Range) -> u64 {
    range.array_bytes / (range.groups * range.k) as u64 / MIB
}

/// Regions of a group.
fn regions(range: &Range, areas: &Areas) -> u64 {
    bands(range).div_ceil(1 << areas.shift).div_ceil(BITS)
}

/// Pages of a group.
fn pages(range: &Range, areas: &Areas) -> u64 {
    regions(range, areas).div_ceil(ENTRIES)
}

/// The groups in ascending order: range, group, and its first slot.
fn groups(record: &Record) -> impl Iterator<Item = (&Range, usize, usize)> {
    let of = |r: &Range, p: usize| (r.first_group + p, r.first_slot + p * (r.k + r.m));
    record.ranges.iter().flat_map(move |r| {
        (0..r.groups).map(move |p| {
            let (group, first) = of(r, p);
            (r, group, first)
        })
    })
}

/// Bytes of the map area of a slot's drive that hold pages.
pub fn used_bytes(record: &Record, slot: usize) -> u64 {
    let mine = groups(record).filter(|(r, _, first)| (*first..first + r.k + r.m).contains(&slot));
    mine.map(|(r, _, _)| pages(r, &record.areas) * 2 * PAGE as u64).sum()
}

/// Where on a slot's drive the two places of a group's first page begin.
fn first_place(record: &Record, areas: &Areas, slot: usize, group: usize) -> u64 {
    let before = groups(record)
        .filter(|(r, g, first)| *g < group && (*first..first + r.k + r.m).contains(&slot))
        .map(|(r, _, _)| pages(r, areas));
    areas.map_start + before.sum::<u64>() * 2 * PAGE as u64
}

/// The map of every group by the drives of the slots.
pub fn load<R: Raw>(record: &Record, drives: &[Option<&R>]) -> Vec<GroupMap> {
    groups(record).map(|of| group_map(record, &record.areas, of, drives)).collect()
}

/// The slots whose drives were set back to an older state: by what their places of a page hold, and
/// others have newer, as no crash leaves it.
pub fn set_back<R: Raw>(record: &Record, drives: &[Option<&R>]) -> BTreeSet<usize> {
    let (mut out, areas) = (BTreeSet::new(), &record.areas);
    for (range, group, first) in groups(record) {
        let entry = record.groups[group];
        let clean = !entry.unclean && !entry.loss_accepted;
        for number in 0..pages(range, areas) {
            let masks = masks(range, areas, number);
            let on = |slot: usize| {
                let drive = drives[slot].filter(|_| record.slots[slot].state != State::Failed)?;
                Some((slot, places(record, areas, (slot, drive), (group, number), &masks)))
            };
            let found: Vec<_> = (first..first + range.k + range.m).filter_map(on).collect();
            let counts = |slot: &usize| record.slots[*slot].state == State::InSync;
            let counting = found.iter().filter(|(slot, _)| counts(slot));
            let counting: Vec<_> = counting.map(|(_, places)| places).collect();
            let newest = counting.iter().copied().flatten().flatten().max_by_key(|p| p.sequence);
            let Some(newest) = newest else { continue };
            let (n, at) = (newest.sequence, newest.sequence as usize % 2);
            let owes = |places: &[Option<MapPage>; 2]| {
                let before = places[1 - at].as_ref().filter(|page| page.sequence + 1 == n);
                before.is_some_and(|p| p.entries.iter().any(|e| e.dirty && !e.forgotten()))
            };
            let known = counting.iter().any(|p| p[at].as_ref() == Some(newest) && owes(p));
            for (slot, places) in &found {
                let o = places.iter().flatten().map(|page| page.sequence).max();
                let Some(o) = o.filter(|_| places[at].is_some()) else { continue };
                let both = places[1 - at].is_some() && n >= o + 2;
                if both || n > o && clean && (known || owes(places)) {
                    out.insert(*slot);
                }
            }
        }
    }
    out
}

fn group_map<R: Raw>(
    record: &Record,
    areas: &Areas,
    (range, group, first): (&Range, usize, usize),
    drives: &[Option<&R>],
) -> GroupMap {
    let mut map = GroupMap {
        stripes_per_bit: (MIB / range.strip) << areas.shift,
        sequences: Vec::new(),
        entries: Vec::new(),
    };
    for number in 0..pages(range, areas) {
        let masks = masks(range, areas, number);
        let whole = |slot: &usize| record.slots[*slot].state == State::InSync;
        let on = |slot: usize| match drives[slot] {
            Some(drive) => places(record, areas, (slot, drive), (group, number), &masks),
            None => [None, None],
        };
        let found: Vec<_> = (first..first + range.k + range.m).filter(whole).map(on).collect();
        let newest = found.iter().flatten().flatten().max_by_key(|page| page.sequence);
        map.sequences.push(newest.map(|page| page.sequence));
        let redundant = range.m > 0;
        let lost =
            || masks.iter().map(|m| Entry { written: *m, missed: u64::MAX, dirty: redundant });
        let mut entries = newest.map_or_else(|| lost().collect(), |page| page.entries.clone());
        let next = newest.map_or(0, |page| (page.sequence as usize + 1) % 2);
        if newest.is_some() && found.iter().all(|places| places[next].is_none()) {
            let group = &record.groups[group];
            for entry in &mut entries {
                if group.unclean || group.loss_accepted {
                    entry.dirty |= entry.written != 0;
                } else if !entry.forgotten() && core::mem::take(&mut entry.dirty) {
                    entry.missed = entry.missed.max(record.epoch.counter);
                }
            }
        }
        map.entries.extend(entries.into_iter().map(|e| Entry { dirty: e.dirty && redundant, ..e }));
    }
    map
}

/// The written bits that each region of a page has.
fn masks(range: &Range, areas: &Areas, number: u64) -> Vec<u64> {
    let bits = bands(range).div_ceil(1 << areas.shift);
    let count = (regions(range, areas) - number * ENTRIES).min(ENTRIES);
    let mask = |i: u64| {
        let left = bits - (number * ENTRIES + i) * BITS;
        if left >= BITS { u64::MAX } else { (1 << left) - 1 }
    };
    (0..count).map(mask).collect()
}

/// What both places of a page on a slot's drive hold.
fn places<R: Raw>(
    record: &Record,
    areas: &Areas,
    (slot, drive): (usize, &R),
    (group, number): (usize, u64),
    masks: &[u64],
) -> [Option<MapPage>; 2] {
    let at = first_place(record, areas, slot, group) + number * 2 * PAGE as u64;
    let read = |at| page(drive, at, record.array, (group, number), masks);
    [read(at), read(at + PAGE as u64)]
}

/// A page, by its group and number, whose written bits a slot's drive does not have in both places.
pub fn unlike<R: Raw>(record: &Record, slot: usize, drive: &R) -> Option<(usize, u64)> {
    let areas = &record.areas;
    let mine = groups(record).filter(|(r, _, first)| (*first..first + r.k + r.m).contains(&slot));
    let all = mine.flat_map(|(r, g, _)| (0..pages(r, areas)).map(move |number| (r, g, number)));
    let unlike = |(r, g, number): &(&Range, usize, u64)| {
        let found = places(record, areas, (slot, drive), (*g, *number), &masks(r, areas, *number));
        let bits = |page: &MapPage| page.entries.iter().map(|e| e.written).collect::<Vec<_>>();
        let [one, other] = found.map(|page| page.as_ref().map(bits));
        one.is_none() || one != other
    };
    all.into_iter().find(unlike).map(|(_, group, number)| (group, number))
}

/// What a place holds, if that is a page.
pub fn page<R: Raw>(
    drive: &R,
    at: u64,
    array: Id,
    (group, number): (usize, u64),
    masks: &[u64],
) -> Option<MapPage> {
    if drive.unreadable(at, PAGE as u64) {
        return None;
    }
    let bytes = drive.page(at / PAGE as u64);
    if &bytes[..8] != b"PALIREGN" {
        return None;
    }
    let mut f = Fields(&bytes[8..]);
    let mine = f.id()? == array
        && f.size(2)? == group
        && f.size(2)? == masks.len()
        && f.number(4)? == number;
    let sequence = f.number(8).filter(|n| *n < 1 << 59)?;
    f.reserved(20)?;
    let stored = f.number(4)? as u32;
    let mut zeroed = *bytes;
    zeroed[60..HEADER].fill(0);
    if !mine || stored != crc(&zeroed) {
        return None;
    }
    let entries = masks.iter().map(|mask| entry(&mut f, *mask)).collect::<Option<Vec<_>>>()?;
    (f.0 == &ZERO[..f.0.len()]).then_some(MapPage { sequence, entries })
}

fn entry(f: &mut Fields<'_>, mask: u64) -> Option<Entry> {
    let (written, missed, dirty) = (f.number(8)?, f.number(8)?, f.number(1)?);
    f.reserved(15)?;
    (written & !mask == 0 && dirty < 2).then_some(Entry { written, missed, dirty: dirty == 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes(Box<[u8; PAGE]>);

    impl Raw for Bytes {
        fn bytes(&self) -> u64 {
            PAGE as u64
        }

        fn page(&self, _: u64) -> &[u8; PAGE] {
            &self.0
        }

        fn unreadable(&self, _: u64, _: u64) -> bool {
            false
        }
    }

    /// A page of group 2 with two entries, sealed; `change` is made before.
    fn sealed(change: impl Fn(&mut [u8; PAGE])) -> Bytes {
        let mut bytes = Box::new([0; PAGE]);
        bytes[..8].copy_from_slice(b"PALIREGN");
        bytes[8..24].fill(7);
        (bytes[24], bytes[26], bytes[32]) = (2, 2, 9);
        (bytes[64], bytes[72], bytes[80]) = (0b101, 4, 1);
        change(&mut bytes);
        let seal = crc(&bytes[..]);
        bytes[60..64].copy_from_slice(&seal.to_le_bytes());
        Bytes(bytes)
    }

    fn read(bytes: &Bytes) -> Option<MapPage> {
        page(bytes, 0, [7; 16], (2, 0), &[0b111, 0b1])
    }

    #[test]
    fn a_page_is_read_and_any_flipped_bit_refuses_it() {
        let mut bytes = sealed(|_| ());
        let first = Entry { written: 0b101, missed: 4, dirty: true };
        let second = Entry { written: 0, missed: 0, dirty: false };
        assert_eq!(read(&bytes), Some(MapPage { sequence: 9, entries: vec![first, second] }));
        for bit in 0..8 * PAGE {
            bytes.0[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&bytes), None, "bit {bit}");
            bytes.0[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn what_breaks_a_rule_holds_no_page() {
        for at in [40, 59, 64 + 17, 64 + 64, PAGE - 1] {
            assert_eq!(read(&sealed(|b| b[at] = 1)), None, "reserved byte {at}");
        }
        for (at, value) in [(24, 1), (26, 3), (28, 1), (64, 0b1001), (96, 0b10), (80, 2)] {
            assert_eq!(read(&sealed(|b| b[at] = value)), None, "byte {at}");
        }
    }
}

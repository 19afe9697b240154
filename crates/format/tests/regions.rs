//! The region map: pages as bytes, damage, which page counts, and where everything lies.

use layout::{Layout, Level};
use palisade_format::limits::{COUNTERS_READ_END, PAGE_BYTES, PAGE_ENTRIES};
use palisade_format::region::{self, Entry, Geometry, Page, PageId};
use proptest::prelude::*;
use std::collections::BTreeSet;
use units::{GroupNo, MIB, Slot, Uuid};

fn id() -> PageId {
    PageId { array: Uuid::from_random([7; 16]), group: GroupNo(3), number: 12 }
}

fn page(sequence: u64, count: usize) -> Page {
    let entry = |n: u64| Entry { written: !n, missed: n * 3, dirty: n % 2 == 0 };
    Page { sequence, entries: (0..count as u64).map(entry).collect() }
}

const ALL: [u64; PAGE_ENTRIES] = [u64::MAX; PAGE_ENTRIES];

#[test]
fn the_bytes_are_those_of_the_document() {
    let bytes = region::encode(id(), &page(0x0102_0304, 2));
    assert_eq!((&bytes[..8], &bytes[8..24]), (&b"PALIREGN"[..], &id().array.0[..]));
    assert_eq!(bytes[24..32], [3, 0, 2, 0, 12, 0, 0, 0]);
    assert_eq!(bytes[32..40], [4, 3, 2, 1, 0, 0, 0, 0]);
    assert_eq!(
        bytes[64 + 32..64 + 64][..17],
        [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!((bytes[64 + 16], bytes.len()), (1, PAGE_BYTES));
    // CRC-32C bit by bit, with its own four bytes as zeros.
    let mut crc = u32::MAX;
    for (at, byte) in bytes.iter().enumerate() {
        crc ^= if (60..64).contains(&at) { 0 } else { u32::from(*byte) };
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    assert_eq!(bytes[60..64], (!crc).to_le_bytes());
}

#[test]
fn every_flipped_bit_of_a_page_is_refused() {
    let mut bytes = region::encode(id(), &page(9, PAGE_ENTRIES));
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(region::decode(&bytes, id(), &ALL), None, "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn pages_of_others_and_impossible_ones_are_refused() {
    let bytes = region::encode(id(), &page(9, 5));
    let read = |id, masks: &[u64]| region::decode(&bytes, id, masks);
    assert_eq!(read(id(), &ALL[..5]), Some(page(9, 5)));
    assert_eq!(read(PageId { number: 11, ..id() }, &ALL[..5]), None);
    assert_eq!(read(PageId { group: GroupNo(2), ..id() }, &ALL[..5]), None);
    assert_eq!(read(PageId { array: Uuid::from_random([8; 16]), ..id() }, &ALL[..5]), None);
    assert_eq!(read(id(), &ALL[..4]), None);
    assert_eq!(read(id(), &[1, u64::MAX, u64::MAX, u64::MAX, u64::MAX]), None, "no such band");
    assert_eq!(region::decode(&bytes[..4095], id(), &ALL[..5]), None);
    let late = region::encode(id(), &page(COUNTERS_READ_END, 5));
    assert_eq!(region::decode(&late, id(), &ALL[..5]), None, "nothing could follow it");
}

proptest! {
    #[test]
    fn pages_round_trip(sequence in 0..COUNTERS_READ_END, group in any::<u16>(),
            number in any::<u32>(),
            raw in prop::collection::vec(any::<(u64, u64, bool)>(), 0..=PAGE_ENTRIES)) {
        let id = PageId { group: GroupNo(group), number, ..id() };
        let entry = |(written, missed, dirty)| Entry { written, missed, dirty };
        let page = Page { sequence, entries: raw.into_iter().map(entry).collect() };
        let masks = &ALL[..page.entries.len()];
        let bytes = region::encode(id, &page);
        prop_assert_eq!(region::decode(&bytes, id, masks), Some(page));
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        prop_assert_eq!(region::decode(&bytes, id(), &ALL), None);
    }

    /// Two drives, each torn or not at a write of its own: what counts is the newest whole page.
    #[test]
    fn a_torn_write_leaves_the_newest_whole_page(cut in 0usize..=PAGE_BYTES,
            tail in any::<bool>(), turns in 1u64..7, lag in any::<bool>()) {
        let mut drives = [[vec![0x5a; PAGE_BYTES], vec![0xa5; PAGE_BYTES]],
            [vec![1; PAGE_BYTES], vec![2; PAGE_BYTES]]];
        let places = |drives: &[[Vec<u8>; 2]; 2]| {
            let read = |bytes: &Vec<u8>| region::decode(bytes, id(), &ALL[..4]);
            let found = drives.each_ref().map(|places| places.each_ref().map(read));
            region::newest(&found).cloned()
        };
        for n in 1..=turns {
            for drive in &mut drives {
                drive[(n % 2) as usize] = region::encode(id(), &page(n, 4));
            }
            prop_assert_eq!(places(&drives), Some(page(n, 4)));
        }
        let next = region::encode(id(), &page(turns + 1, 4));
        let torn = &mut drives[usize::from(lag)][((turns + 1) % 2) as usize];
        let range = if tail { cut..PAGE_BYTES } else { 0..cut };
        torn[range.clone()].copy_from_slice(&next[range]);
        let found = places(&drives);
        prop_assert!(found == Some(page(turns, 4)) || found == Some(page(turns + 1, 4)));
    }

    /// A drive on which one place decays, or the last write is cut off, still tells the written
    /// bits and every dirty region: of the last durable page, or the one that was being written.
    #[test]
    fn one_bad_place_hides_nothing(cut in any::<bool>(), in_other in any::<bool>(),
            steps in prop::collection::vec((0u64..4, any::<bool>()), 1..8),
            decayed in 0usize..2) {
        let entry = |(written, dirty): (u64, bool)| Entry { written, missed: 0, dirty };
        let pages: Vec<Page> = core::iter::once((0, false)).chain(steps).zip(1..).map(|(e, n)| {
            Page { sequence: n, entries: vec![entry(e)] }
        }).collect();
        let mut places = [Some(pages[0].clone()), Some(pages[0].clone())];
        let last = pages.len() - 1;
        for i in 1..=last {
            let own = (pages[i].sequence % 2) as usize;
            let twice = pages[i].entries[0].written != pages[i - 1].entries[0].written;
            places[own] = Some(pages[i].clone()).filter(|_| !cut || i < last || in_other);
            if twice && (!cut || i < last || in_other) {
                places[1 - own] = Some(pages[i].clone()).filter(|_| !cut || i < last);
            }
        }
        if !cut {
            places[decayed] = None;
        }
        let newest = region::newest([&places]).expect("one place is left").clone();
        let read = match region::may_be_behind(&newest, [&places]) {
            true => region::at_worst(&newest, None),
            false => newest,
        };
        let says = |page: &Page| {
            let (read, is) = (&read.entries[0], &page.entries[0]);
            read.written == is.written && (read.dirty || !is.dirty || is.written == 0)
        };
        prop_assert!(says(&pages[last]) || cut && says(&pages[last - 1]), "{read:?} {pages:?}");
    }

    /// Every band has one bit, and no two pages of a drive share a place.
    #[test]
    fn geometry_is_a_partition(level in 0usize..6, extra in 0u16..3, bands in 1u64..20_000,
            shift in 0u8..4) {
        let levels = [Level::Raid0, Level::Raid1, Level::Raid5, Level::Raid6, Level::Raid10,
            Level::Jbod];
        let width = if level == 4 { 4 + 2 * extra } else { 4 + extra };
        let layout = Layout::new(levels[level], width, 65536, bands * MIB).unwrap();
        let map = Geometry::new(&layout, shift);
        let mut taken = vec![BTreeSet::new(); width.into()];
        for group in (0..layout.groups()).map(GroupNo) {
            let ones = (0..map.regions(group)).map(|r| u64::from(map.mask(group, r).count_ones()));
            prop_assert_eq!(ones.sum::<u64>(), map.bits(group));
            prop_assert_eq!(map.bits(group), bands.div_ceil(1 << shift));
            let of_pages = (0..map.pages(group)).flat_map(|p| map.regions_of(group, p));
            prop_assert!(of_pages.eq(0..map.regions(group)));
            for slot in layout.slots(group) {
                let places = |p| map.page_offsets(slot, group, p).unwrap();
                for at in (0..map.pages(group)).flat_map(places) {
                    prop_assert!(at % 4096 == 0 && at < map.bytes());
                    prop_assert!(taken[slot.index()].insert(at));
                }
            }
        }
        prop_assert!(map.bytes() <= region::area_bytes(bands, shift));
        prop_assert_eq!(map.page_offsets(Slot(width), GroupNo(0), 0), None);
    }
}

/// What of a page is taken for the next one that may be lost: dirty unless the record says that
/// nothing is, and then missed; but what is forgotten stays so, of which no record says that.
#[test]
fn a_page_that_may_be_lost_is_taken_at_its_worst() {
    let entry = |written, missed, dirty| Entry { written, missed, dirty };
    let known = [entry(0, 0, false), entry(1, 4, false), entry(1, 4, true), entry(1, 12, true)];
    let forgotten = entry(3, u64::MAX, true);
    let next = |known: &[Entry], none_dirty| {
        let page = Page { sequence: 5, entries: known.to_vec() };
        let Page { sequence, entries } = region::at_worst(&page, none_dirty);
        assert_eq!(sequence, 6);
        entries
    };
    let dirty = [entry(0, 0, false), entry(1, 4, true), entry(1, 4, true), entry(1, 12, true)];
    assert_eq!(next(&known, None), dirty);
    let missed = [entry(0, 0, false), entry(1, 4, false), entry(1, 9, false), entry(1, 12, false)];
    assert_eq!(next(&known, Some(9)), missed);
    for none_dirty in [None, Some(9)] {
        assert_eq!(next(&[forgotten], none_dirty), [forgotten], "{none_dirty:?}");
    }
}

#[test]
fn a_group_never_has_more_than_a_million_regions() {
    assert_eq!(region::shift_for(1), 0);
    assert_eq!(region::shift_for(64 << 20), 0);
    assert_eq!(region::shift_for((64 << 20) + 1), 1);
    assert_eq!(region::shift_for(1 << 40), 14);
}

//! Every level and width against tables from Linux md, a naive oracle and bijection.

use palisade_layout::{
    CodeKind, Descriptor, Layout, LayoutError, Level, MAX_DRIVES, PARITIES_MAX, Place, Range,
};
use proptest::prelude::*;
use units::{BAND_BYTES, GroupNo, MIB, Slot, StripIndex, StripeNo};

const P: char = 'P';
const Q: char = 'Q';

/// One row per stripe, one column per slot; digits are data strips. Written by hand after
/// md(4), "left-symmetric", and raid5_compute_sector of drivers/md/raid5.c.
const MD_RAID5_4: [[char; 4]; 5] = [
    ['0', '1', '2', P],
    ['1', '2', P, '0'],
    ['2', P, '0', '1'],
    [P, '0', '1', '2'],
    ['0', '1', '2', P],
];
const MD_RAID5_3: [[char; 3]; 4] = [['0', '1', P], ['1', P, '0'], [P, '0', '1'], ['0', '1', P]];
const MD_RAID6_5: [[char; 5]; 6] = [
    [Q, '0', '1', '2', P],
    ['0', '1', '2', P, Q],
    ['1', '2', P, Q, '0'],
    ['2', P, Q, '0', '1'],
    [P, Q, '0', '1', '2'],
    [Q, '0', '1', '2', P],
];
const MD_RAID6_4: [[char; 4]; 5] =
    [[Q, '0', '1', P], ['0', '1', P, Q], ['1', P, Q, '0'], [P, Q, '0', '1'], [Q, '0', '1', P]];

fn agrees_with_table<const N: usize>(level: Level, table: &[[char; N]]) {
    let layout = Layout::new(level, N as u16, 64 << 10, 8 * MIB).unwrap();
    let k = layout.k(GroupNo(0));
    for (stripe, row) in table.iter().enumerate() {
        for (slot, cell) in row.iter().enumerate() {
            let strip = match *cell {
                P => k,
                Q => k + 1,
                digit => digit.to_digit(10).unwrap() as u16,
            };
            let stripe = StripeNo(stripe as u64);
            let slot = Slot(slot as u16);
            assert_eq!(layout.slot(GroupNo(0), stripe, StripIndex(strip)), slot);
            let all: Vec<_> = layout.slots_of(GroupNo(0), stripe).collect();
            assert_eq!((all[usize::from(strip)], all.len()), (slot, N));
            assert_eq!(layout.strip(GroupNo(0), stripe, slot), Some(StripIndex(strip)));
        }
    }
}

#[test]
fn rotation_is_that_of_linux_md() {
    agrees_with_table(Level::Raid5, &MD_RAID5_4);
    agrees_with_table(Level::Raid5, &MD_RAID5_3);
    agrees_with_table(Level::Raid6, &MD_RAID6_5);
    agrees_with_table(Level::Raid6, &MD_RAID6_4);
}

fn possible(level: Level, drives: u16) -> bool {
    drives >= level.min_drives() && !(level == Level::Raid10 && drives % 2 == 1)
}

#[test]
fn every_width_of_every_level_is_made_or_refused() {
    for level in Level::ALL {
        for drives in 0..=MAX_DRIVES + 8 {
            let made = Layout::new(level, drives, 4096, MIB);
            assert_eq!(made.is_ok(), possible(level, drives) && drives <= 64, "{level} {drives}");
            let Ok(layout) = made else { continue };
            let strips: u64 = match level {
                Level::Jbod | Level::Raid0 => drives.into(),
                Level::Raid1 => 1,
                Level::Raid5 => u64::from(drives) - 1,
                Level::Raid6 => u64::from(drives) - 2,
                Level::Raid10 => u64::from(drives) / 2,
            };
            assert_eq!(layout.array_bytes(), strips * MIB);
            assert_eq!(layout.drives(), drives);
            assert_eq!(level.to_string().parse(), Ok(level));
        }
    }
}

#[test]
fn impossible_sizes_are_refused() {
    let new = |strip, bytes| Layout::new(Level::Raid5, 3, strip, bytes).map(|_| ());
    assert_eq!(new(2048, MIB), Err(LayoutError::Strip(2048)));
    assert_eq!(new(12 << 10, MIB), Err(LayoutError::Strip(12 << 10)));
    assert_eq!(new(2 << 20, MIB), Err(LayoutError::Strip(2 << 20)));
    assert_eq!(new(4096, MIB - 1), Err(LayoutError::DataBytes(0)));
    assert!(new(4096, u64::MAX).is_err());
    assert!(new(4096, 1 << 60).is_err(), "the array would be larger than an address can say");
    assert!(Layout::new(Level::Jbod, 64, 4096, 1 << 60).is_err());
    let rounded = Layout::new(Level::Raid5, 3, 4096, 3 * MIB - 1).unwrap();
    assert_eq!(rounded.data_bytes(), 2 * MIB);
}

/// Lists every data strip of the array in address order, the slow way: stripe after stripe,
/// group after group, each strip put down on a ring of drives.
fn naive(layout: &Layout) -> Vec<(GroupNo, StripeNo, StripIndex, Slot, u64)> {
    let mut all = Vec::new();
    for range in layout.ranges() {
        let d = range.descriptor;
        let strips = range.array_bytes / u64::from(d.strip_bytes);
        for stripe in 0..strips / u64::from(d.k) / u64::from(d.groups) {
            for group in 0..d.groups {
                for strip in 0..d.k {
                    let n = u64::from(d.width);
                    let at = match d.code {
                        CodeKind::Parity => {
                            let p = n - 1 - stripe % n;
                            (p + u64::from(d.m) + u64::from(strip)) % n
                        }
                        _ => u64::from(strip),
                    };
                    let slot = range.first_slot + group * d.width + at as u16;
                    let offset = range.drive_start + stripe * u64::from(d.strip_bytes);
                    let group = GroupNo(range.first_group + group);
                    all.push((group, StripeNo(stripe), StripIndex(strip), Slot(slot), offset));
                }
            }
        }
    }
    all
}

/// Every address maps to one place and back, no two strips share drive space, rows hold.
fn check_whole(layout: &Layout) {
    let strip_bytes = u64::from(layout.strip_bytes());
    let expected = naive(layout);
    assert_eq!(expected.len() as u64 * strip_bytes, layout.array_bytes());
    let mut taken = std::collections::BTreeSet::new();
    for (n, (group, stripe, strip, slot, drive_offset)) in expected.into_iter().enumerate() {
        let address = n as u64 * strip_bytes + n as u64 % strip_bytes;
        let place = Place { group, stripe, strip, offset: (n as u64 % strip_bytes) as u32 };
        assert_eq!(layout.locate(address), place);
        assert_eq!(layout.array_offset(place), address);
        assert_eq!(layout.slot(group, stripe, strip), slot);
        assert_eq!(layout.drive_offset(group, stripe), drive_offset);
        let row = layout.row_bytes(address);
        let start = layout.ranges().iter().rfind(|r| r.array_start <= address).unwrap();
        let in_range = address - start.array_start;
        assert_eq!(in_range / row, layout.band(stripe).0, "a row is one band of every group");
    }
    for group in (0..layout.groups()).map(GroupNo) {
        assert_eq!(layout.bands(group) * layout.stripes_per_band(), layout.stripes(group));
        for stripe in (0..layout.stripes(group)).map(StripeNo) {
            check_stripe(layout, group, stripe, &mut taken);
        }
    }
    let space = u64::from(layout.drives()) * layout.data_bytes() / strip_bytes;
    assert!(taken.len() as u64 <= space);
}

fn check_stripe(
    layout: &Layout,
    group: GroupNo,
    stripe: StripeNo,
    taken: &mut std::collections::BTreeSet<(Slot, u64)>,
) {
    let d = *layout.descriptor(group);
    for strip in (0..d.k + d.m).map(StripIndex) {
        let slot = layout.slot(group, stripe, strip);
        assert_eq!(layout.strip(group, stripe, slot), Some(strip));
        assert!(taken.insert((slot, layout.drive_offset(group, stripe))), "shared drive space");
        assert!(layout.slots(group).any(|s| s == slot));
        assert!(layout.groups_of(slot).any(|g| g == group));
    }
    for slot in (0..layout.drives() + 2).map(Slot) {
        let ours = layout.slots(group).any(|s| s == slot);
        assert_eq!(layout.strip(group, stripe, slot).is_some(), ours);
    }
    let band = layout.band(stripe);
    let first = layout.first_stripe(band).0;
    assert!((first..first + layout.stripes_per_band()).contains(&stripe.0));
}

fn arb_layout() -> impl Strategy<Value = Layout> {
    (0usize..6, 2u16..=MAX_DRIVES, 12u32..=20, 1u64..4).prop_filter_map(
        "no such array",
        |(level, drives, shift, mib)| {
            Layout::new(Level::ALL[level], drives, 1 << shift, mib * MIB).ok()
        },
    )
}

/// Ranges as a later release may write them: several groups, other widths, one behind the other
/// on the same drives.
fn arb_ranges() -> impl Strategy<Value = Layout> {
    let one = (1u16..=2, 2u16..=4, 1u64..3);
    (prop::collection::vec(one, 1..4), 14u32..=20).prop_map(|(parts, shift)| {
        let mut ranges: Vec<Range> = Vec::new();
        for (groups, k, rows) in parts {
            let descriptor = Descriptor::new(CodeKind::Parity, k, 1, groups, 1 << shift);
            let row = u64::from(groups * k) * BAND_BYTES;
            let last = ranges.last().copied();
            ranges.push(Range {
                array_start: last.map_or(0, |r| r.array_start + r.array_bytes),
                array_bytes: rows * row,
                first_slot: 0,
                first_group: last.map_or(0, |r| r.first_group + r.descriptor.groups),
                drive_start: last.map_or(0, |r| r.drive_start + 2 * BAND_BYTES),
                descriptor,
            });
        }
        Layout::from_ranges(Level::Raid5, ranges, 8 * BAND_BYTES).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn maps_are_bijective_and_agree_with_the_oracle(layout in arb_layout()) {
        check_whole(&layout);
    }

    #[test]
    fn lists_of_ranges_are_bijective(layout in arb_ranges()) {
        check_whole(&layout);
    }

    #[test]
    fn large_arrays_round_trip(level in 0usize..6, drives in 2u16..=MAX_DRIVES, shift in 12u32..=20,
            data in 1u64 << 30..1 << 54, at in any::<u64>()) {
        let Ok(layout) = Layout::new(Level::ALL[level], drives, 1 << shift, data) else {
            return Ok(());
        };
        let address = at % layout.array_bytes();
        let place = layout.locate(address);
        prop_assert_eq!(layout.array_offset(place), address);
        let slot = layout.slot(place.group, place.stripe, place.strip);
        prop_assert_eq!(layout.strip(place.group, place.stripe, slot), Some(place.strip));
        let end = layout.drive_offset(place.group, place.stripe) + u64::from(layout.strip_bytes());
        prop_assert!(end <= layout.data_bytes());
    }

    #[test]
    fn hostile_ranges_never_panic(level in 0usize..6, data in any::<u64>(),
            numbers in prop::collection::vec(any::<[u64; 4]>(), 0..4),
            small in any::<[u8; 6]>()) {
        let kinds = [CodeKind::None, CodeKind::Mirror, CodeKind::Parity];
        let ranges = numbers.iter().map(|n| {
            let code = kinds[usize::from(small[0]) % 3];
            let mut d = Descriptor::new(code, small[1].into(), small[2].into(), small[3].into(),
                1 << (small[4] % 32));
            d.width = n[3] as u16;
            if small[5] % 2 == 0 {
                d.width = d.k + d.m;
            }
            Range { array_start: n[0], array_bytes: n[1], first_slot: n[2] as u16,
                first_group: (n[2] >> 16) as u16, drive_start: n[3], descriptor: d }
        });
        let _ = Layout::from_ranges(Level::ALL[level], ranges.collect(), data);
    }

    #[test]
    fn a_changed_range_is_refused_or_holds(field in 0usize..11, value in any::<u64>()) {
        let good = Layout::new(Level::Raid6, 6, 64 << 10, 8 * MIB).unwrap();
        let mut r = good.ranges()[0];
        let small = value as u16 % (MAX_DRIVES + 8);
        match field {
            0 => r.array_start = value,
            1 => r.array_bytes = value % (64 * MIB),
            2 => r.first_slot = small,
            3 => r.first_group = small,
            4 => r.drive_start = value % (16 * MIB),
            5 => r.descriptor.k = small,
            6 => r.descriptor.m = small,
            7 => r.descriptor.width = small,
            8 => r.descriptor.groups = small,
            9 => r.descriptor.strip_bytes = 1 << (small % 32),
            _ => r.descriptor.seed = value,
        }
        if let Ok(layout) = Layout::from_ranges(Level::Raid6, vec![r], 8 * MIB) {
            check_whole(&layout);
        }
    }
}

#[test]
fn ranges_that_share_drive_space_or_leave_slots_out_are_refused() {
    let good = Layout::new(Level::Jbod, 3, 4096, 2 * MIB).unwrap();
    let refused = |change: fn(&mut Vec<Range>)| {
        let mut ranges = good.ranges().to_vec();
        change(&mut ranges);
        Layout::from_ranges(Level::Jbod, ranges, 2 * MIB).unwrap_err()
    };
    let shared = refused(|r| r[1].first_slot = 0);
    assert!(shared.to_string().contains("shares drive space"), "{shared}");
    let hole = refused(|r| r[2].first_slot = 5);
    assert!(hole.to_string().contains("no range"), "{hole}");
    let parities = refused(|r| {
        r[0].descriptor = Descriptor::new(CodeKind::Parity, 4, PARITIES_MAX + 1, 1, 4096);
    });
    assert!(parities.to_string().contains("more parities"), "{parities}");
    let version = refused(|r| r[0].descriptor.version = 2);
    assert!(version.to_string().contains("not known"), "{version}");
    assert_eq!(refused(Vec::clear), LayoutError::RangeCount(0));
}

#[test]
#[should_panic(expected = "out of range")]
fn an_address_beyond_the_array_is_our_mistake() {
    let layout = Layout::new(Level::Raid0, 2, 4096, MIB).unwrap();
    layout.locate(2 * MIB);
}

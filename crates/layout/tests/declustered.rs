//! A toy declustered map, drawn from the fields of a [`Range`] and nothing else: proof that
//! ranges, groups and descriptors can carry layouts of later releases (decision D9).
//!
//! Each stripe of `k + m` strips and `spare_strips` free ones takes a seeded permutation of all
//! `width` drives of its group; what does not fit one stripe's drives goes to the next, so that
//! the load of a failed drive spreads over all others.

use palisade_layout::{CodeKind, Descriptor, Layout, Level, Range};
use std::collections::{BTreeMap, BTreeSet};
use units::{BAND_BYTES, Slot, StripeNo};

/// The descriptor of 4 + 2 strips with one spare over 14 drives, two stripes to a permutation.
fn declustered(seed: u64) -> Range {
    let descriptor = Descriptor {
        version: 2,
        width: 14,
        spare_strips: 1,
        seed,
        ..Descriptor::new(CodeKind::Parity, 4, 2, 1, 64 << 10)
    };
    Range {
        array_start: 0,
        array_bytes: 7 * 4 * 2 * BAND_BYTES,
        first_slot: 3,
        first_group: 0,
        drive_start: 5 * BAND_BYTES,
        descriptor,
    }
}

fn next(state: &mut u64) -> u64 {
    // splitmix64
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (z >> 31)
}

/// Slots of the stripe's strips: data, P, Q, spare; and the offset in the data area.
fn strips(range: &Range, stripe: StripeNo) -> (Vec<Slot>, u64) {
    let d = &range.descriptor;
    let per_stripe = u64::from(d.k + d.m + d.spare_strips);
    let per_permutation = u64::from(d.width) / per_stripe;
    let row = stripe.0 / per_permutation;
    let mut state = d.seed ^ row.wrapping_mul(0xd134_2543_de82_ef95);
    let mut order: Vec<u16> = (0..d.width).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, (next(&mut state) % (i as u64 + 1)) as usize);
    }
    let first = (stripe.0 % per_permutation * per_stripe) as usize;
    let slots = order[first..first + per_stripe as usize].iter();
    let offset = range.drive_start + row * u64::from(d.strip_bytes);
    (slots.map(|at| Slot(range.first_slot + at)).collect(), offset)
}

#[test]
fn the_descriptor_carries_a_declustered_map() {
    let range = declustered(42);
    let d = &range.descriptor;
    let stripes = range.array_bytes / u64::from(d.k) / u64::from(d.strip_bytes);
    let mut taken = BTreeSet::new();
    let mut helpers: BTreeMap<Slot, u64> = BTreeMap::new();
    for stripe in (0..stripes).map(StripeNo) {
        let (slots, offset) = strips(&range, stripe);
        for slot in &slots {
            assert!((3..17).contains(&slot.0));
            assert!(taken.insert((*slot, offset)), "two strips share drive space");
        }
        if slots.contains(&Slot(3)) {
            for other in slots.iter().filter(|s| **s != Slot(3)) {
                *helpers.entry(*other).or_default() += 1;
            }
        }
    }
    // The whole space is used, and every other drive helps to rebuild slot 3.
    assert_eq!(taken.len() as u64, stripes * 7);
    assert_eq!(helpers.len(), 13);
    assert_ne!(strips(&declustered(43), StripeNo(0)), strips(&range, StripeNo(0)));
}

#[test]
fn this_release_refuses_it_by_name() {
    let mut range = declustered(42);
    range.first_slot = 0;
    let refused = Layout::from_ranges(Level::Raid6, vec![range], 1 << 30).unwrap_err();
    assert!(refused.to_string().contains("descriptor version is not known"), "{refused}");
}

//! A region map in few parts, as people look at it: pure.
//!
//! Invariants
//! - The parts have each region once, in the order of groups and regions, and the same number of
//!   regions, but for the last part.
//! - Their dirty regions are those of the map. A part in which a bit is written is not told as one
//!   in which nothing is, nor one that has a bit left as written whole.

use super::command::RegionPart;
use crate::region::map::Map;
use format::limits::REGION_BITS;
use units::GroupNo;

/// The most parts of a map.
pub(crate) const MOST: u64 = 256;

/// The parts of a map with so many groups; and how many bits of each group are set. Both are
/// counted in one pass: a map may have millions of regions.
pub(crate) fn of(map: &Map, groups: u16) -> (Vec<RegionPart>, Vec<u64>) {
    let groups = || (0..groups).map(GroupNo);
    let geometry = map.geometry();
    let regions: u64 = groups().map(|g| geometry.regions(g)).sum();
    let each = regions.div_ceil(MOST).max(1);
    let mut parts = vec![RegionPart::default(); regions.div_ceil(each) as usize];
    // Of each part: how many bits are set, and how many there are.
    let mut bits = vec![(0, 0); parts.len()];
    // Regions of the groups before.
    let mut first = 0;
    let mut of_group = |group| {
        let own = geometry.regions(group);
        let (mut at, mut written) = (0, 0);
        while at < own {
            let part = (first + at) / each;
            // As far as the part and the group go.
            let end = own.min((part + 1) * each - first);
            let set = map.written_bits(group, at..end);
            let all = geometry.bits(group).min(end * REGION_BITS) - at * REGION_BITS;
            let part = part as usize;
            parts[part].regions += end - at;
            bits[part] = (bits[part].0 + set, bits[part].1 + all);
            written += set;
            at = end;
        }
        for region in map.dirty(group) {
            parts[((first + region) / each) as usize].dirty_regions += 1;
        }
        first += own;
        written
    };
    let written = groups().map(&mut of_group).collect();
    for (part, (some, all)) in parts.iter_mut().zip(bits) {
        part.written_percent = percent(some, all);
    }
    (parts, written)
}

/// A share of 100: 0 for nothing alone, 100 for all alone.
fn percent(some: u64, all: u64) -> u8 {
    match some {
        0 => 0,
        _ if some >= all => 100,
        _ => (some * 100 / all).clamp(1, 99) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::{Layout, Level};
    use std::collections::BTreeSet;
    use units::MIB;
    use units::Uuid;

    /// The same, region by region.
    fn naive(map: &Map, groups: u16) -> Vec<RegionPart> {
        let all: Vec<(GroupNo, u64)> = (0..groups)
            .map(GroupNo)
            .flat_map(|g| (0..map.geometry().regions(g)).map(move |region| (g, region)))
            .collect();
        let each = all.len().div_ceil(MOST as usize);
        let part = |own: &[(GroupNo, u64)]| {
            let bits = |(g, region): &(GroupNo, u64)| {
                let all = *region * REGION_BITS..map.geometry().bits(*g);
                all.take(REGION_BITS as usize).map(|bit| map.written(*g, bit)).collect::<Vec<_>>()
            };
            let bits: Vec<bool> = own.iter().flat_map(bits).collect();
            let set = bits.iter().filter(|is_set| **is_set).count() as u64;
            RegionPart {
                regions: own.len() as u64,
                written_percent: percent(set, bits.len() as u64),
                dirty_regions: own.iter().filter(|(g, r)| map.dirty(*g).any(|d| d == *r)).count()
                    as u64,
            }
        };
        all.chunks(each).map(part).collect()
    }

    #[test]
    fn parts_are_what_their_regions_are_across_groups() {
        // Two groups of 313 regions, the last of which are not whole: parts of 3 regions.
        let layout = Layout::new(Level::Raid10, 4, 65536, 20_001 * MIB).unwrap();
        assert_eq!(layout.groups(), 2);
        let mut map = Map::new(Uuid::from_random([1; 16]), &layout, 0);
        let most = map.geometry().bits(GroupNo(0));
        let some = [0, 1, 63, 64, 700, most - 1];
        let both = some.iter().flat_map(|bit| [(GroupNo(0), *bit), (GroupNo(1), *bit)]);
        let whole = (192..384).map(|bit| (GroupNo(1), bit));
        map.write(&both.chain(whole).collect::<BTreeSet<_>>());
        let (parts, written) = of(&map, 2);
        assert_eq!(parts, naive(&map, 2));
        assert_eq!(written, [6, 6 + 192]);
    }

    #[test]
    fn a_share_is_whole_only_where_nothing_is_left() {
        let shares = [(0, 64), (1, 6400), (32, 64), (6399, 6400), (64, 64)];
        let told = shares.map(|(some, all)| percent(some, all));
        assert_eq!(told, [0, 1, 50, 99, 100]);
    }
}

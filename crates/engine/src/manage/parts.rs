//! A region map in few parts, as people look at it: pure.
//!
//! Invariants
//! - The parts have each region once, in the order of groups and regions, and the same number of
//!   regions, but for the last part.
//! - Their dirty regions are those of the map. A part in which a bit is written is not told as one
//!   in which nothing is, nor one that has a bit left as written whole.

use super::command::RegionPart;
use crate::region::map::Map;
use units::GroupNo;

/// The most parts of a map.
pub(crate) const MOST: u64 = 256;

/// The parts of a map with so many groups.
pub(crate) fn of(map: &Map, groups: u16) -> Vec<RegionPart> {
    let groups = || (0..groups).map(GroupNo);
    let regions: u64 = groups().map(|g| map.geometry().regions(g)).sum();
    let each = regions.div_ceil(MOST).max(1);
    let mut parts = vec![RegionPart::default(); regions.div_ceil(each) as usize];
    let mut bits = vec![(0, 0); parts.len()];
    let mut at = 0;
    for group in groups() {
        let first = at;
        for (written, all) in map.written_of(group) {
            let part = (at / each) as usize;
            parts[part].regions += 1;
            bits[part] = (bits[part].0 + written, bits[part].1 + all);
            at += 1;
        }
        for region in map.dirty(group) {
            parts[((first + region) / each) as usize].dirty_regions += 1;
        }
    }
    for (part, (written, all)) in parts.iter_mut().zip(bits) {
        part.written_percent = percent(written, all);
    }
    parts
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

    #[test]
    fn a_share_is_whole_only_where_nothing_is_left() {
        let shares = [(0, 64), (1, 6400), (32, 64), (6399, 6400), (64, 64)];
        let told = shares.map(|(some, all)| percent(some, all));
        assert_eq!(told, [0, 1, 50, 99, 100]);
    }
}

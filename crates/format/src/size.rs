//! How much of a drive an array uses (D9): rounded down, so that the next vendor's drive fits.

use crate::limits::{AREA_BYTES, JOURNAL_BYTES_MAX, JOURNAL_BYTES_MIN};
use crate::record::Areas;
use crate::region;
use units::{BAND_BYTES, GIB, MIB};

/// Block devices below this are treated like files.
pub const ROUNDED_FROM: u64 = 16 * GIB;

/// Bytes of a drive that an array may use, head and tail area included. Files and small block
/// devices are rounded down to a MiB; others to 1 GiB, or to the largest power of two that is at
/// most a thousandth of the drive where that is more. Never grows when `drive_bytes` shrinks.
pub fn usable_bytes(drive_bytes: u64, block_device: bool) -> u64 {
    let unit = if block_device && drive_bytes >= ROUNDED_FROM {
        let thousandth = drive_bytes / 1000;
        (1 << thousandth.ilog2()).max(GIB)
    } else {
        MIB
    };
    drive_bytes - drive_bytes % unit
}

/// How the used part of a drive is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// Where region map and journal lie.
    pub areas: Areas,
    /// Where the data area begins.
    pub data_offset: u64,
    /// Bytes of the data area; 0 when the drive is too small.
    pub data_bytes: u64,
}

/// Bytes of the journal area where nothing asks for more: a thousandth of the `usable` bytes,
/// within its limits.
pub fn journal_bytes(usable: u64) -> u64 {
    let journal = (usable / 1000).next_multiple_of(MIB);
    journal.clamp(JOURNAL_BYTES_MIN, JOURNAL_BYTES_MAX)
}

/// Divides the `usable` bytes of the array's smallest drive ([`usable_bytes`]), where nothing asks
/// for a larger journal area.
pub fn split(usable: u64) -> Split {
    split_with(usable, journal_bytes(usable))
}

/// The same with so many bytes of journal area: the map gets what all bands that may be there need.
pub fn split_with(usable: u64, journal_bytes: u64) -> Split {
    let between = usable.saturating_sub(2 * AREA_BYTES);
    let bands = between / BAND_BYTES;
    let shift = region::shift_for(bands);
    let map_bytes = region::area_bytes(bands, shift);
    let areas = Areas {
        map_start: AREA_BYTES,
        map_bytes,
        journal_start: AREA_BYTES + map_bytes,
        journal_bytes,
        shift,
    };
    let data_offset = areas.journal_start + journal_bytes;
    Split { areas, data_offset, data_bytes: between.saturating_sub(map_bytes + journal_bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_of_a_class_agree() {
        // "1.92 TB" of three vendors.
        let sizes = [1_920_383_410_176, 1_920_000_000_000, 1_919_850_381_312];
        let used: Vec<u64> = sizes.iter().map(|bytes| usable_bytes(*bytes, true)).collect();
        assert_eq!(used, [1788 * GIB; 3]);
        assert_eq!(usable_bytes(sizes[2] - 1, true), 1787 * GIB);
        assert_eq!(usable_bytes(7_681_501_126_656, true) % (4 * GIB), 0);
        assert_eq!(usable_bytes(130 * MIB + 5, false), 130 * MIB);
        assert_eq!(usable_bytes(GIB + 5, true), GIB);
    }

    #[test]
    fn a_smaller_drive_never_offers_more() {
        let mut last = 0;
        for step in 0..200_000u64 {
            let used = usable_bytes(15 * GIB + step * (37 * MIB + 512), true);
            assert!(used >= last);
            last = used;
        }
    }

    #[test]
    fn every_drive_has_room_for_the_map_of_its_data() {
        assert_eq!(split(8 * MIB).data_bytes, 4 * MIB);
        assert_eq!(split(4 * MIB).data_bytes, 0);
        for usable in [5 * MIB, 100 * MIB, 3 * GIB, 1788 * GIB, 30_000 * GIB, 1 << 57] {
            let split = split(usable);
            let bands = split.data_bytes / MIB;
            assert_eq!(split.data_offset + split.data_bytes + MIB, usable);
            assert!(region::area_bytes(bands, split.areas.shift) <= split.areas.map_bytes);
            assert!(split.data_bytes > usable / 100 * 99 || usable < GIB);
            assert!(bands >> split.areas.shift <= 64 << 20);
        }
        let more = split_with(8 * MIB, 2 * MIB);
        assert_eq!((more.areas.journal_bytes, more.data_bytes), (2 * MIB, 3 * MIB));
        assert_eq!(more.data_offset, 4 * MIB);
    }
}

//! Checks that ranges read from a drive hold together. They are not trusted: every field may
//! have any value, so all arithmetic is checked and nothing is allocated by a number read.

use crate::{
    CODE_ID_MD, CODE_ID_NONE, CodeKind, DESCRIPTOR_VERSION, Descriptor, LayoutError, Level,
    MAX_ARRAY_BYTES, MAX_DRIVES, MAX_GROUPS, MAX_RANGES, MAX_STRIP_BYTES, MIN_DRIVES,
    MIN_STRIP_BYTES, PARITIES_MAX, Range, Rotation,
};
use units::{BAND_BYTES, Slot, SlotSet};

type Problem = &'static str;

/// Checks everything [`crate::Layout`] promises. Returns the number of drives.
pub fn check(level: Level, ranges: &[Range], data_bytes: u64) -> Result<u16, LayoutError> {
    if ranges.is_empty() || ranges.len() > MAX_RANGES {
        return Err(LayoutError::RangeCount(ranges.len()));
    }
    check_data_bytes(data_bytes)?;
    check_strip(ranges[0].descriptor.strip_bytes)?;
    let mut next_address = 0u64;
    let mut next_group = 0u16;
    let mut used = SlotSet::EMPTY;
    for (index, range) in ranges.iter().enumerate() {
        let refuse = |problem| LayoutError::Range { index, problem };
        if range.descriptor.strip_bytes != ranges[0].descriptor.strip_bytes {
            return Err(refuse("its strip size differs from the first range's"));
        }
        descriptor_fits(level, &range.descriptor).map_err(refuse)?;
        placed(range, next_address, next_group, data_bytes).map_err(refuse)?;
        if ranges[..index].iter().any(|earlier| overlap(earlier, range)) {
            return Err(refuse("it shares drive space with an earlier range"));
        }
        next_address += range.array_bytes;
        next_group += range.descriptor.groups;
        used = used.or(slots(range));
    }
    let drives = used.len() as u16;
    let last = ranges.len() - 1;
    if drives < MIN_DRIVES || used != SlotSet::range(Slot(0), Slot(drives)) {
        return Err(LayoutError::Range { index: last, problem: "a slot is used by no range" });
    }
    Ok(drives)
}

/// Checks the strip size.
pub fn check_strip(bytes: u32) -> Result<(), LayoutError> {
    let fits = bytes.is_power_of_two() && (MIN_STRIP_BYTES..=MAX_STRIP_BYTES).contains(&bytes);
    if fits { Ok(()) } else { Err(LayoutError::Strip(bytes)) }
}

/// Checks the size of a drive's data area.
pub fn check_data_bytes(bytes: u64) -> Result<(), LayoutError> {
    let fits = bytes != 0 && bytes <= MAX_ARRAY_BYTES && bytes.is_multiple_of(BAND_BYTES);
    if fits { Ok(()) } else { Err(LayoutError::DataBytes(bytes)) }
}

fn descriptor_fits(level: Level, d: &Descriptor) -> Result<(), Problem> {
    if d.version != DESCRIPTOR_VERSION {
        return Err("its descriptor version is not known to this program");
    }
    if d.k == 0 || d.k > MAX_DRIVES || d.m > MAX_DRIVES || d.width != d.k + d.m {
        return Err("its width is not the sum of data and redundant strips");
    }
    if d.code == CodeKind::Parity && d.m > PARITIES_MAX {
        return Err("it has more parities than a stripe can have");
    }
    if d.groups == 0 || d.groups > MAX_DRIVES {
        return Err("its number of groups is not possible");
    }
    if d.spare_strips != 0 || d.seed != 0 {
        return Err("it has spare strips or a permutation, which version 1 has not");
    }
    let rotation = match d.code {
        CodeKind::Parity => Rotation::LeftSymmetric,
        CodeKind::None | CodeKind::Mirror => Rotation::None,
    };
    let code_id = if d.code == CodeKind::Parity { CODE_ID_MD } else { CODE_ID_NONE };
    if d.rotation != rotation || d.code_id != code_id {
        return Err("its rotation or parity code does not fit its kind");
    }
    let fits = match level {
        Level::Jbod => d.code == CodeKind::None && d.k == 1 && d.m == 0 && d.groups == 1,
        Level::Raid0 => d.code == CodeKind::None && d.m == 0,
        Level::Raid1 => d.code == CodeKind::Mirror && d.k == 1 && d.m >= 1 && d.groups == 1,
        Level::Raid10 => d.code == CodeKind::Mirror && d.k == 1 && d.m >= 1,
        Level::Raid5 => d.code == CodeKind::Parity && d.k >= 2 && d.m == 1,
        Level::Raid6 => d.code == CodeKind::Parity && d.k >= 2 && d.m == 2,
    };
    if fits { Ok(()) } else { Err("its descriptor does not fit the array's level") }
}

/// Checks the range's place in array, groups and drives. The descriptor was checked.
fn placed(range: &Range, address: u64, group: u16, data_bytes: u64) -> Result<(), Problem> {
    let d = &range.descriptor;
    let row = u64::from(d.groups) * u64::from(d.k) * BAND_BYTES;
    if range.array_start != address {
        return Err("it does not begin where the range before it ends");
    }
    if range.array_bytes == 0 || !range.array_bytes.is_multiple_of(row) {
        return Err("its size is not a whole number of rows");
    }
    let end = address.checked_add(range.array_bytes);
    if end.is_none_or(|end| end > MAX_ARRAY_BYTES) {
        return Err("it ends beyond the largest array address");
    }
    if range.first_group != group || u32::from(group) + u32::from(d.groups) > MAX_GROUPS.into() {
        return Err("its groups do not follow those of the range before it");
    }
    let slots = u32::from(d.groups) * u32::from(d.width);
    if u32::from(range.first_slot) + slots > MAX_DRIVES.into() {
        return Err("it names more slots than an array can have");
    }
    let drive_end = range.drive_start.checked_add(range.array_bytes / row * BAND_BYTES);
    if !range.drive_start.is_multiple_of(BAND_BYTES) || drive_end.is_none_or(|end| end > data_bytes)
    {
        return Err("it does not lie within the data area");
    }
    Ok(())
}

/// Bytes of each drive that a checked range occupies.
fn drive_bytes(range: &Range) -> u64 {
    range.array_bytes / u64::from(range.descriptor.k) / u64::from(range.descriptor.groups)
}

/// The slots of a checked range.
fn slots(range: &Range) -> SlotSet {
    let count = range.descriptor.groups * range.descriptor.width;
    SlotSet::range(Slot(range.first_slot), Slot(range.first_slot + count))
}

fn overlap(a: &Range, b: &Range) -> bool {
    !slots(a).and(slots(b)).is_empty()
        && a.drive_start < b.drive_start + drive_bytes(b)
        && b.drive_start < a.drive_start + drive_bytes(a)
}

//! The map itself.
//!
//! Purpose: [`Layout`] is built once and then only read, from every core. Nothing here
//! allocates after construction. `locate` runs for every 4 KiB read: one range is found without
//! a search, strips are found by shifts and stripes by a multiplication.
//!
//! Invariant: arguments come from our own code, so one out of range is a mistake of ours and
//! panics; addresses of hosts are checked by the volume before they get here.

use crate::divisor::Divisor;
use crate::validate;
use crate::{CodeKind, Descriptor, LayoutError, Level, MAX_DRIVES, Range, Rotation};
use units::{BAND_BYTES, BandNo, GroupNo, Slot, StripIndex, StripeNo};

/// Where a byte of the array lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The group.
    pub group: GroupNo,
    /// The stripe of that group.
    pub stripe: StripeNo,
    /// The data strip of that stripe, `0..k`.
    pub strip: StripIndex,
    /// Byte within the strip.
    pub offset: u32,
}

/// What one group needs to be mapped.
#[derive(Clone, Copy, PartialEq, Debug)]
struct GroupMap {
    range: u16,
    /// Position of the group within its range.
    position: u16,
    first_slot: u16,
    k: u16,
    m: u16,
    width: u16,
    rotates: bool,
    by_width: Divisor,
    stripes: u64,
    drive_start: u64,
}

/// What one range needs to be searched and divided.
#[derive(Clone, Copy, PartialEq, Debug)]
struct RangeMap {
    start: u64,
    end: u64,
    first_group: u16,
    by_k: Divisor,
    by_groups: Divisor,
}

/// Where everything of an array lies. See the crate for its invariants.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    level: Level,
    drives: u16,
    strip_shift: u32,
    data_bytes: u64,
    array_bytes: u64,
    maps: Vec<RangeMap>,
    groups: Vec<GroupMap>,
    ranges: Vec<Range>,
}

impl Layout {
    /// The layout of a new array. `data_bytes` is what each drive offers; it is rounded down to
    /// whole bands. Fails when level, number of drives, strip or size do not go together.
    pub fn new(
        level: Level,
        drives: u16,
        strip_bytes: u32,
        data_bytes: u64,
    ) -> Result<Self, LayoutError> {
        let odd = level == Level::Raid10 && !drives.is_multiple_of(2);
        if drives < level.min_drives() || drives > MAX_DRIVES || odd {
            return Err(LayoutError::Drives { level, drives });
        }
        validate::check_strip(strip_bytes)?;
        let data_bytes = data_bytes - data_bytes % BAND_BYTES;
        validate::check_data_bytes(data_bytes)?;
        let describe = |code, k, m, groups| Descriptor::new(code, k, m, groups, strip_bytes);
        let descriptor = match level {
            Level::Jbod => describe(CodeKind::None, 1, 0, 1),
            Level::Raid0 => describe(CodeKind::None, drives, 0, 1),
            Level::Raid1 => describe(CodeKind::Mirror, 1, drives - 1, 1),
            Level::Raid5 => describe(CodeKind::Parity, drives - 1, 1, 1),
            Level::Raid6 => describe(CodeKind::Parity, drives - 2, 2, 1),
            Level::Raid10 => describe(CodeKind::Mirror, 1, 1, drives / 2),
        };
        let strips = u64::from(descriptor.k) * u64::from(descriptor.groups);
        let array_bytes =
            data_bytes.checked_mul(strips).ok_or(LayoutError::DataBytes(data_bytes))?;
        let count = if level == Level::Jbod { drives } else { 1 };
        let ranges = (0..count).map(|n| Range {
            // Too large a product is refused with the range, below.
            array_start: u64::from(n).saturating_mul(array_bytes),
            array_bytes,
            first_slot: n,
            first_group: n,
            drive_start: 0,
            descriptor,
        });
        Self::from_ranges(level, ranges.collect(), data_bytes)
    }

    /// The layout that a record describes. The values are not trusted: whatever they are, this
    /// returns an error rather than panicking, and what it returns holds the crate's invariants.
    pub fn from_ranges(
        level: Level,
        ranges: Vec<Range>,
        data_bytes: u64,
    ) -> Result<Self, LayoutError> {
        let drives = validate::check(level, &ranges, data_bytes)?;
        let maps: Vec<RangeMap> = ranges.iter().map(RangeMap::of).collect();
        let groups = (0u16..).zip(&ranges).flat_map(|(n, range)| GroupMap::all_of(n, range));
        Ok(Self {
            level,
            drives,
            strip_shift: ranges[0].descriptor.strip_bytes.trailing_zeros(),
            data_bytes,
            array_bytes: maps[maps.len() - 1].end,
            groups: groups.collect(),
            maps,
            ranges,
        })
    }

    /// The address ranges, in order of their addresses.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// The level users see.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Number of slots.
    pub fn drives(&self) -> u16 {
        self.drives
    }

    /// Bytes of array address space.
    pub fn array_bytes(&self) -> u64 {
        self.array_bytes
    }

    /// Bytes of a strip, the same in all ranges.
    pub fn strip_bytes(&self) -> u32 {
        1 << self.strip_shift
    }

    /// Bytes of each drive's data area, whole bands.
    pub fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Number of groups.
    pub fn groups(&self) -> u16 {
        self.groups.len() as u16
    }

    /// The descriptor of the group's range.
    pub fn descriptor(&self, group: GroupNo) -> &Descriptor {
        &self.ranges[self.group(group).range as usize].descriptor
    }

    /// Data strips of the group's stripes.
    pub fn k(&self, group: GroupNo) -> u16 {
        self.group(group).k
    }

    /// Redundant strips of the group's stripes: how many drives it can lose.
    pub fn m(&self, group: GroupNo) -> u16 {
        self.group(group).m
    }

    /// The slots of the group's drives, one behind the other.
    pub fn slots(&self, group: GroupNo) -> impl Iterator<Item = Slot> + Clone + use<> {
        let g = self.group(group);
        (g.first_slot..g.first_slot + g.width).map(Slot)
    }

    /// The groups that use the drive in `slot`.
    pub fn groups_of(&self, slot: Slot) -> impl Iterator<Item = GroupNo> + '_ {
        let uses = move |g: &GroupMap| slot.0.wrapping_sub(g.first_slot) < g.width;
        (0u16..).zip(&self.groups).filter(move |(_, g)| uses(g)).map(|(n, _)| GroupNo(n))
    }

    /// Where the byte at `array_offset` lives. Panics beyond the end of the array.
    #[inline]
    pub fn locate(&self, array_offset: u64) -> Place {
        let range = self.range_at(array_offset);
        let relative = array_offset - range.start;
        let (array_stripe, strip) = range.by_k.div_rem(relative >> self.strip_shift);
        let (stripe, position) = range.by_groups.div_rem(array_stripe);
        Place {
            group: GroupNo(range.first_group + position as u16),
            stripe: StripeNo(stripe),
            strip: StripIndex(strip as u16),
            offset: (relative & (u64::from(self.strip_bytes()) - 1)) as u32,
        }
    }

    /// The array address of a place, the inverse of [`Layout::locate`]. Panics when the place is
    /// not one of a data strip of this layout.
    #[inline]
    pub fn array_offset(&self, place: Place) -> u64 {
        let g = self.group_with(place.group, place.stripe);
        assert!(place.strip.0 < g.k && place.offset < self.strip_bytes(), "no data at {place:?}");
        let range = &self.ranges[g.range as usize];
        let groups = u64::from(range.descriptor.groups);
        let array_stripe = place.stripe.0 * groups + u64::from(g.position);
        let strip = array_stripe * u64::from(g.k) + u64::from(place.strip.0);
        range.array_start + (strip << self.strip_shift) + u64::from(place.offset)
    }

    /// The slot of the drive that holds a strip. Data strips are `0..k`; `k` is P and `k + 1` is
    /// Q, or `k..k + m` are copies. Panics when there is no such strip.
    #[inline]
    pub fn slot(&self, group: GroupNo, stripe: StripeNo, strip: StripIndex) -> Slot {
        self.seat(group, stripe, strip).0
    }

    /// The slot of the drive that holds a strip, as [`Layout::slot`], and where the strip begins
    /// within that drive's data area.
    #[inline]
    pub fn seat(&self, group: GroupNo, stripe: StripeNo, strip: StripIndex) -> (Slot, u64) {
        let g = self.group_with(group, stripe);
        assert!(strip.0 < g.width, "no strip {strip} in group {group}");
        let offset = g.drive_start + (stripe.0 << self.strip_shift);
        (Slot(g.first_slot + g.ring(g.first_strip_at(stripe) + strip.0)), offset)
    }

    /// The slots of all strips of a stripe, in the strips' order.
    #[inline]
    pub fn slots_of(&self, group: GroupNo, stripe: StripeNo) -> impl Iterator<Item = Slot> {
        let g = self.group_with(group, stripe);
        let first = g.first_strip_at(stripe);
        (0..g.width).map(move |strip| Slot(g.first_slot + g.ring(first + strip)))
    }

    /// The strip that the drive in `slot` holds of a stripe, the inverse of [`Layout::slot`];
    /// `None` when the drive is not of this group.
    #[inline]
    pub fn strip(&self, group: GroupNo, stripe: StripeNo, slot: Slot) -> Option<StripIndex> {
        let g = self.group_with(group, stripe);
        let at = slot.0.checked_sub(g.first_slot).filter(|at| *at < g.width)?;
        if !g.rotates {
            return Some(StripIndex(at));
        }
        let p = g.parity_at(stripe);
        let step = if at >= p { at - p } else { at + g.width - p };
        Some(StripIndex(if step < g.m { g.k + step } else { step - g.m }))
    }

    /// Offset of a stripe's strips within the data area, the same on all drives of the group.
    #[inline]
    pub fn drive_offset(&self, group: GroupNo, stripe: StripeNo) -> u64 {
        self.group_with(group, stripe).drive_start + (stripe.0 << self.strip_shift)
    }

    /// Stripes of a group.
    pub fn stripes(&self, group: GroupNo) -> u64 {
        self.group(group).stripes
    }

    /// Stripes of a band.
    #[inline]
    pub fn stripes_per_band(&self) -> u64 {
        BAND_BYTES >> self.strip_shift
    }

    /// Bands of a group.
    pub fn bands(&self, group: GroupNo) -> u64 {
        self.stripes(group) / self.stripes_per_band()
    }

    /// The band of a stripe.
    #[inline]
    pub fn band(&self, stripe: StripeNo) -> BandNo {
        BandNo(stripe.0 >> (BAND_BYTES.trailing_zeros() - self.strip_shift))
    }

    /// The first stripe of a band.
    #[inline]
    pub fn first_stripe(&self, band: BandNo) -> StripeNo {
        StripeNo(band.0 << (BAND_BYTES.trailing_zeros() - self.strip_shift))
    }

    /// Bytes of a row at `array_offset`: one band of every group of the range that holds the
    /// address. Rows are the unit of volume extents and are contiguous array addresses. Panics
    /// beyond the end of the array.
    pub fn row_bytes(&self, array_offset: u64) -> u64 {
        let first_group = self.range_at(array_offset).first_group;
        let descriptor = self.descriptor(GroupNo(first_group));
        u64::from(descriptor.groups) * u64::from(descriptor.k) * BAND_BYTES
    }

    #[inline]
    fn range_at(&self, array_offset: u64) -> &RangeMap {
        assert!(array_offset < self.array_bytes, "array address {array_offset} is out of range");
        match self.maps.as_slice() {
            [only] => only,
            maps => &maps[maps.partition_point(|range| range.end <= array_offset)],
        }
    }

    #[inline]
    fn group(&self, group: GroupNo) -> &GroupMap {
        &self.groups[group.index()]
    }

    #[inline]
    fn group_with(&self, group: GroupNo, stripe: StripeNo) -> &GroupMap {
        let g = self.group(group);
        assert!(stripe.0 < g.stripes, "group {group} has no stripe {stripe}");
        g
    }
}

impl RangeMap {
    fn of(range: &Range) -> Self {
        Self {
            start: range.array_start,
            end: range.array_start + range.array_bytes,
            first_group: range.first_group,
            by_k: Divisor::new(range.descriptor.k),
            by_groups: Divisor::new(range.descriptor.groups),
        }
    }
}

impl GroupMap {
    fn all_of(number: u16, range: &Range) -> impl Iterator<Item = Self> + use<> {
        let range = *range;
        let d = range.descriptor;
        let strips = range.array_bytes / u64::from(d.strip_bytes);
        (0..d.groups).map(move |position| Self {
            range: number,
            position,
            first_slot: range.first_slot + position * d.width,
            k: d.k,
            m: d.m,
            width: d.width,
            rotates: d.rotation == Rotation::LeftSymmetric,
            by_width: Divisor::new(d.width),
            stripes: strips / u64::from(d.k) / u64::from(d.groups),
            drive_start: range.drive_start,
        })
    }

    /// Position within the group of the drive that holds P.
    #[inline]
    fn parity_at(&self, stripe: StripeNo) -> u16 {
        self.width - 1 - self.by_width.div_rem(stripe.0).1 as u16
    }

    /// Where strip 0 is among the group's drives; the others follow in ring order: the data
    /// strips, then from P on the parity strips.
    #[inline]
    fn first_strip_at(&self, stripe: StripeNo) -> u16 {
        if self.rotates { self.ring(self.parity_at(stripe) + self.m) } else { 0 }
    }

    /// `at`, which is below twice the width, on the ring of the group's drives.
    #[inline]
    fn ring(&self, at: u16) -> u16 {
        if at >= self.width { at - self.width } else { at }
    }
}

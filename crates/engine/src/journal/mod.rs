//! The redo journal of degraded parity groups (D6). Its bytes are [`format::journal`]'s;
//! `docs/format.md` says when a batch counts and how it is carried out.
//!
//! A stripe of a group that lacks a drive can't be written in place safely: a crash between its
//! drive writes loses what the missing drive held. So whatever is written to such a group is in
//! the journal first.
//!
//! | a write to a group that lacks a drive | leaves by                                        |
//! |---------------------------------------|--------------------------------------------------|
//! | planned, computed                     | queued in the lane of its core ([`lane`])        |
//! | queued                                | the lane writes all that is queued as one batch  |
//! |                                       | → logged; the journal's key or a drive changed   |
//! |                                       | → planned anew                                   |
//! | logged                                | written in place, and who missed it is out → over|
//! | over                                  | the drives were flushed since → safe             |
//! | safe                                  | a batch with a larger tail is durable → forgotten|
//!
//! | a group   | becomes     | when                                                          |
//! |-----------|-------------|---------------------------------------------------------------|
//! | whole     | lacking     | a drive fails: the record has a new key, writes go through    |
//! |           |             | the journal from then on                                      |
//! | lacking   | guarded     | what began before is over and flushed; durable in the record  |
//! | guarded   | lacking     | a drive is in sync again, another still lacks; or one is back |
//! |           |             | to be filled: a new key                                       |
//! | either    | whole       | all drives are in sync: no key, nothing in the journal counts |
//!
//! A guarded group that is unclean at a start needs nobody's word: the journal is carried out
//! ([`crate::manage`]), and then its redundancy is right in every stripe, those included that were
//! being written. Of one that is lacking and not guarded (it lost its drive at the crash, or a
//! moment before) nobody can say so, and the start is refused as before.
//!
//! Where this differs from the first sketch, which logged only stripes that miss a data strip, and
//! had epochs say which records count:
//! - *Every* write to a lacking group is logged, also to stripes that are whole below a rebuild's
//!   border or miss parity only. A rebuild's border, the failure of a drive that is being filled
//!   and a second failure then need no thought: what counts is in the journal whatever the stripe
//!   missed when.
//! - A batch counts by the journal's key, 64 random bits in the record. Epochs go on while the
//!   journal is used, and payloads are chosen by hosts: a head that a host made up knows no key.
//! - Ranges name the drive they were meant for, so nothing that a drive missed while it was out
//!   is written to it or to its successor: the rebuild sees to these.
//!
//! Invariants
//! - Nothing is written in place before its batch is durable on as many drives in sync as the
//!   group can still lose, and one more. With a key their number only shrinks.
//! - One batch of a lane is under way at a time, so at most the newest is on too few drives.
//! - All entries of a stripe are in the lane of its home core, in the order of its writes; a later
//!   one is not computed before the one before it was written in place.
//! - A batch's place is used again only when a durable batch says that it is not needed: else a
//!   torn one could take its place while an older one of the same stripe still counts.
//! - Before bands are unwritten the tail is behind everything written to them: an old batch never
//!   comes back over what is written to the bands after.

pub(crate) mod lane;
mod ring;

use crate::limits::SLICE_BYTES_MAX;
use format::limits::BATCH_ALIGN;
use layout::{CodeKind, Layout};
use units::GroupNo;

/// The only group of an array that has a journal.
pub(crate) const GROUP: GroupNo = GroupNo(0);

/// How the journal area is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes of each core's lane, which lie one behind the other.
    pub lane_bytes: u64,
    /// Most bytes of each strip that one write may change.
    pub slice_bytes: u32,
}

impl Shape {
    /// How an area of `bytes` is divided among `cores`; `None` if the array can't have a journal:
    /// it has no parity, or more than one group, or the area is too small for so many lanes.
    pub fn new(layout: &Layout, bytes: u64, cores: u16, block: u32) -> Option<Self> {
        let one = layout.groups() == 1 && layout.ranges().len() == 1;
        if !one || layout.descriptor(GROUP).code != CodeKind::Parity {
            return None;
        }
        let pages = bytes / u64::from(cores) / BATCH_ALIGN as u64;
        let most = ring::most(u32::try_from(pages).unwrap_or(u32::MAX));
        let strips = usize::from(layout.k(GROUP) + layout.m(GROUP));
        let fits = |slice: &u32| {
            let payload = strips * *slice as usize;
            let head = format::journal::head_bytes(1, payload / block as usize);
            (head + payload.next_multiple_of(BATCH_ALIGN)) / BATCH_ALIGN <= most as usize
        };
        let halves = core::iter::successors(Some(SLICE_BYTES_MAX as u32), |slice| Some(slice / 2));
        let slice_bytes = halves.take_while(|slice| *slice >= block).find(fits)?;
        Some(Self { lane_bytes: pages * BATCH_ALIGN as u64, slice_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::Level;
    use units::MIB;

    #[test]
    fn every_usual_array_has_a_journal() {
        let layout = |level, n| Layout::new(level, n, 65536, 8 * MIB).unwrap();
        let five = layout(Level::Raid5, 4);
        let shape = |layout, mib, cores| Shape::new(layout, mib * MIB, cores, 512);
        assert_eq!(shape(&five, 64, 2).unwrap().slice_bytes, 128 << 10);
        assert_eq!(shape(&five, 64, 2).unwrap().lane_bytes, 32 * MIB);
        assert_eq!(shape(&five, 1, 4).unwrap().slice_bytes, 16 << 10);
        let wide = layout(Level::Raid6, 32);
        assert_eq!(shape(&wide, 64, 16).unwrap().slice_bytes, 32 << 10);
        assert_eq!(shape(&wide, 1, 4).unwrap().slice_bytes, 2 << 10);
        assert_eq!(Shape::new(&wide, MIB, 32, 4096), None, "too many lanes");
        assert_eq!(shape(&layout(Level::Raid1, 2), 1, 1), None, "mirrors need none");
    }
}

//! The journal area of parity groups (D6): the redo journal of those that lack a drive, and what is
//! in flight in those that do not. Its bytes are [`format::journal`]'s and [`format::flight`]'s;
//! `docs/format.md` says when a batch counts and how it is carried out.
//!
//! A stripe of a group that lacks a drive can't be written in place safely: a crash between its
//! drive writes loses what the missing drive held. So whatever is written to such a group is in
//! a batch of the journal first.
//!
//! | a write to a group that lacks a drive | leaves by                                        |
//! |---------------------------------------|--------------------------------------------------|
//! | planned, computed                     | queued in a lane of its core ([`lane`])          |
//! | queued                                | the lane writes all that is queued as one batch  |
//! |                                       | → logged; the journal's key or a drive changed   |
//! |                                       | → planned anew                                   |
//! | logged                                | written in place, and who missed it is out → over|
//! | over                                  | the drives were flushed since → safe             |
//! | safe                                  | a batch with a larger tail is durable → forgotten|
//!
//! A group that lacks no drive is written in place, without a batch. Only what is being written
//! can be in doubt after a crash, and lost if that took a drive; so *in-flight pages* ([`flight`])
//! say which columns of which stripes that is, before a write begins in place.
//!
//! | a group   | becomes     | when                                                          |
//! |-----------|-------------|---------------------------------------------------------------|
//! | whole     | guarded     | no resync is owed, and what began before the key is over      |
//! | whole     | lacking     | a drive fails: changes are held until all under way is over   |
//! |           |             | and flushed; a new key; writes go through the journal         |
//! | either    | the same    | a drive is in sync again, or back to be filled: the same      |
//! |           |             | hold, before the record                                       |
//!
//! A guarded group that is unclean at a start needs nobody's word, whether it lacks a drive or not:
//! what the journal area says is carried out ([`crate::manage`]). Batches are written in place, and
//! of the columns in flight it is decided what is lost, usually nothing where no drive lacks. Then
//! its redundancy is right in every stripe: it owes no region, and is guarded from its first record
//! on. Only where it lacks no drive, and a page can't be read that may count, its dirty regions are
//! resynced. A group that is not guarded owed a resync at its start; if it lost a drive before that
//! was over, its start is refused.
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
//! - In a whole group nothing is written in place before its columns are in a durable page.
//! - In a lacking group nothing is written in place before its batch is durable on as many drives
//!   in sync as the group can still lose, and one more. With a key their number only shrinks.
//! - One batch of a lane is under way at a time, so at most the newest is on too few drives.
//! - All entries of a stripe are in one lane of its home core, in the order of its writes; a later
//!   one is not computed before the one before it was written in place.
//! - Of a lane and a key the durable batches have consecutive numbers: one that a drive did not
//!   take gives its number back, and the drive is out before that is used again. So a start finds
//!   out whether one is missing.
//! - A batch's place is used again only when a durable batch says that it is not needed: else a
//!   torn one could take its place while an older one of the same stripe still counts.
//! - Before bands are unwritten the tail is behind everything written to them: an old batch never
//!   comes back over what is written to the bands after.

pub(crate) mod columns;
pub(crate) mod flight;
pub(crate) mod lane;
mod ring;

use crate::Host;
use crate::array::{Array, failed_flushes};
use crate::limits::{DRIVES_MAX, LANES, SLICE_BYTES_MAX, WORKERS, WORKERS_LEAST};
use crate::mutants::{self, Mutant};
use crate::watch::Watched;
use arrayvec::ArrayVec;
use core::cell::Cell;
use format::flight::page_entries;
use format::limits::{BATCH_ALIGN, FLIGHT_BYTES_MAX, LOST_MAX};
use io::local::Event;
use layout::{CodeKind, Layout};
use units::{GroupNo, Slot};

/// The only group of an array that has a journal.
pub(crate) const GROUP: GroupNo = GroupNo(0);

/// What of the journal area tells of a change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Logged {
    /// Nothing: the array uses none, or not now.
    Nothing,
    /// A batch of this number, in a lane of the core's.
    Batch(usize, u64),
    /// In-flight pages.
    Flight(columns::Ticket),
}

/// A task that runs until it is told to end, and who waits for it or has it wait.
#[derive(Default)]
struct Task {
    closed: Cell<bool>,
    ended: Cell<bool>,
    /// Something changed that the task, or who uses it, may wait for.
    news: Event,
}

impl Task {
    /// Ends it: it does nothing on return.
    async fn end(&self) {
        self.closed.set(true);
        self.news.notify();
        self.news.wait_until(|| self.ended.get().then_some(())).await;
    }

    /// It has ended.
    fn over(&self) {
        self.ended.set(true);
        self.news.notify();
    }
}

/// Whether an array uses its journal area: it has one group, with parity.
pub fn has_journal(layout: &Layout) -> bool {
    let one = layout.groups() == 1 && layout.ranges().len() == 1;
    one && layout.descriptor(GROUP).code == CodeKind::Parity
}

/// How the journal area is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes of each core's part, which lie one behind the other.
    pub core_bytes: u64,
    /// Bytes of each of both places for in-flight pages, with which a core's part begins.
    pub flight_bytes: u64,
    /// Lanes of a core, which share the rest of its part.
    pub lanes: usize,
    /// Bytes of a lane.
    pub lane_bytes: u64,
    /// Most columns that a core's in-flight page names: what a start may have to call lost can be
    /// listed, unless there are very many cores.
    pub flight_entries: usize,
    /// Stripes that a core works on at the same time.
    pub workers: usize,
    /// Most bytes of each strip that one write may change.
    pub slice_bytes: u32,
}

impl Shape {
    /// How an area of `bytes` of an array with a journal is divided among `cores`; `None` if it is
    /// too small for so many. A core has as many lanes as there is room for without shorter slices.
    pub fn new(layout: &Layout, bytes: u64, cores: u16, block: u32) -> Option<Self> {
        let pages = bytes / u64::from(cores) / BATCH_ALIGN as u64;
        let flight = (pages / 16).clamp(2, (FLIGHT_BYTES_MAX / BATCH_ALIGN) as u64);
        let rings = pages.checked_sub(2 * flight)?;
        let strips = usize::from(layout.k(GROUP) + layout.m(GROUP));
        let fits = |slice: u32, lanes: usize| {
            let ring = u32::try_from(rings / lanes as u64).unwrap_or(u32::MAX);
            let payload = strips * slice as usize;
            let head = format::journal::head_bytes(1, payload / block as usize);
            let batch = (head + payload.next_multiple_of(BATCH_ALIGN)) / BATCH_ALIGN;
            batch <= ring::most(ring) as usize
        };
        let halves = core::iter::successors(Some(SLICE_BYTES_MAX as u32), |slice| Some(slice / 2));
        let mut halves = halves.take_while(|slice| *slice >= block);
        let slice_bytes = halves.find(|slice| fits(*slice, 1))?;
        let mut lanes = LANES;
        while !fits(slice_bytes, lanes) {
            lanes /= 2;
        }
        let bytes = |pages: u64| pages * BATCH_ALIGN as u64;
        let (core_bytes, flight_bytes) = (bytes(pages), bytes(flight));
        let lane_bytes = bytes(rings / lanes as u64);
        let listed = LOST_MAX / (usize::from(layout.m(GROUP)) * usize::from(cores));
        // Those of all workers fit beside what is over and waits for a flush.
        let flight_entries = page_entries(flight_bytes as usize).min(listed.max(4 * WORKERS_LEAST));
        // Then whoever enters finds room also where no page is written any more: a page names a
        // worker's columns four times over.
        let workers = (flight_entries / 4).min(WORKERS);
        assert!(workers >= WORKERS_LEAST, "the smallest page names those of as many");
        Some(Self {
            core_bytes,
            flight_bytes,
            lanes,
            lane_bytes,
            flight_entries,
            workers,
            slice_bytes,
        })
    }
}

/// Drives of an array, and their slots.
type Chosen<'a, E> = ArrayVec<(Slot, &'a Watched<E>), DRIVES_MAX>;

/// The `count` drives that have the fewest requests under way; of those with as many, each is the
/// first in its turn.
fn least_busy<E: Host>(mut drives: Chosen<'_, E>, turn: u64, count: usize) -> Chosen<'_, E> {
    let first = turn.checked_rem(drives.len() as u64).unwrap_or_default();
    drives.rotate_left(first as usize);
    drives.sort_by_key(|(_, drive)| drive.under_way());
    drives.truncate(count);
    drives
}

/// Makes what was written before durable on all drives that take writes; false if the group takes
/// none any more.
pub(crate) async fn flush<E: Host>(array: &Array<E>) -> bool {
    let bound = array.bound();
    if mutants::is(Mutant::JournalUnflushed) {
        return true;
    }
    let failed = failed_flushes(bound.flushes()).await;
    array.fail_all_and_wait(&bound, failed).await;
    !array.bound().view.frozen(GROUP)
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
        assert_eq!(shape(&five, 64, 2).unwrap().core_bytes, 32 * MIB);
        assert_eq!(
            (shape(&five, 64, 2).unwrap().lanes, shape(&five, 64, 2).unwrap().workers),
            (8, 256)
        );
        assert_eq!(
            (shape(&five, 1, 4).unwrap().lanes, shape(&five, 1, 4).unwrap().workers),
            (1, 254)
        );
        assert_eq!(shape(&five, 1, 4).unwrap().slice_bytes, 16 << 10);
        let wide = layout(Level::Raid6, 32);
        assert_eq!(shape(&wide, 64, 16).unwrap().slice_bytes, 32 << 10);
        assert_eq!(shape(&wide, 1, 4).unwrap().slice_bytes, 2 << 10);
        let widest = layout(Level::Raid6, 64);
        assert_eq!(shape(&widest, 64, 16).unwrap().slice_bytes, 16 << 10);
        assert_eq!(shape(&widest, 1, 4).unwrap().slice_bytes, 1 << 10);
        assert_eq!(Shape::new(&wide, MIB, 32, 4096), None, "too many lanes");
        assert!(has_journal(&wide) && !has_journal(&layout(Level::Raid1, 2)), "mirrors need none");
    }
}

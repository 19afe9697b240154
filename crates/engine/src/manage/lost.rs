//! The manager's part in the lists of what nobody can give back ([`crate::lost`]): it alone changes
//! them, durably in the record where they are in it, and tells every core.
//!
//! What comes while a batch is being recorded is taken together afterwards, so that many stripes
//! cost one record. An answer goes out when the record is durable and every core has adopted the
//! lists, so nobody who acts on it meets a core that does not know.

use crate::Host;
use crate::array::message::{ArrayId, LostChange};
use crate::lost::{Lost, from_record, to_record};
use crate::manage::Manager;
use crate::manage::command::UnreadableRange;
use crate::manage::managed::Managed;
use crate::stripe::table::Origin;
use core::cell::{Cell, RefCell};
use core::ops::Range;
use format::limits::LOST_MAX;
use format::{ArrayRecord, LostReason};
use io::{BlockError, Priority};
use layout::Layout;
use std::rc::Rc;
use std::sync::Arc;
use units::{GroupNo, StripIndex, StripeNo};

/// What the manager knows beside the record, and what it was asked.
#[derive(Default)]
pub(super) struct LostLists {
    /// What drives can't read; `listed` is the record's.
    lists: RefCell<Lost>,
    asked: RefCell<Vec<(LostChange, Option<Origin>)>>,
    pumping: Cell<bool>,
    /// Something did not fit, since a task last began.
    overflowed: Cell<bool>,
}

impl LostLists {
    /// Whether something did not fit since this was asked last.
    pub fn take_overflow(&self) -> bool {
        self.overflowed.take()
    }
}

/// Puts bytes `span` of a data strip in the list of a record that is about to be written, as a
/// start does that finds out what a crash has cost. A list that gets too long is refused when the
/// record is checked.
pub fn add_to_record(
    record: &mut ArrayRecord,
    layout: &Layout,
    (group, stripe, strip): (GroupNo, StripeNo, StripIndex),
    span: Range<u32>,
    reason: LostReason,
) {
    let start = layout.array_offset(layout::Place { group, stripe, strip, offset: span.start });
    let mut listed = from_record(&record.lost);
    listed.add(start..start + u64::from(span.end - span.start), reason);
    record.lost = to_record(&listed);
}

impl<E: Host> Manager<E> {
    /// What is lost changed.
    pub fn lost(&self, id: ArrayId, change: LostChange, origin: Option<Origin>) {
        if let Some(array) = self.by_id(id) {
            array.lost.asked.borrow_mut().push((change, origin));
            if !array.lost.pumping.replace(true) {
                self.env().spawn(Priority::First, pump(array));
            }
        }
    }
}

async fn pump<E: Host>(managed: Rc<Managed<E>>) {
    loop {
        managed.lock.acquire(1).await;
        let asked = managed.lost.asked.take();
        let answers = managed.change_lists(asked).await;
        managed.lock.release(1);
        for (origin, result) in answers {
            managed.answer(origin, result);
        }
        if managed.lost.asked.borrow().is_empty() {
            break managed.lost.pumping.set(false);
        }
    }
}

/// Makes one change; false if there is no room for it.
fn apply(lost: &mut Lost, change: &LostChange) -> bool {
    match change {
        LostChange::Add(ranges, reason) => {
            let before = lost.clone();
            for range in ranges {
                lost.listed.add(range.clone(), *reason);
                lost.noted.remove(range.clone());
            }
            lost.adds += 1;
            if lost.listed.len() > LOST_MAX {
                *lost = before;
                return false;
            }
        }
        LostChange::Heal(ranges) => {
            for range in ranges {
                lost.listed.remove(range.clone());
                lost.noted.remove(range.clone());
            }
        }
        LostChange::Readable(range) => lost.noted.remove(range.clone()),
        LostChange::Note(range) => lost.note(range.clone()),
    }
    true
}

impl<E: Host> Managed<E> {
    /// Both lists as they are now.
    pub fn lost(&self) -> Lost {
        Lost { listed: from_record(&self.record().lost), ..self.lost.lists.borrow().clone() }
    }

    /// The same for a snapshot.
    pub fn lost_view(&self, record: &ArrayRecord) -> Arc<Lost> {
        let listed = from_record(&record.lost);
        Arc::new(Lost { listed, ..self.lost.lists.borrow().clone() })
    }

    /// Carries out what was asked; the lock is held.
    async fn change_lists(
        &self,
        asked: Vec<(LostChange, Option<Origin>)>,
    ) -> Vec<(Origin, Result<(), BlockError>)> {
        let before = self.lost();
        let mut after = before.clone();
        let mut fits: Vec<bool> =
            asked.iter().map(|(change, _)| apply(&mut after, change)).collect();
        if fits.contains(&false) {
            self.lost.overflowed.set(true);
        }
        if after != before && !self.closed() {
            if after.listed != before.listed {
                let listed = to_record(&after.listed);
                if self.commit(false, |record| record.lost = listed).await.is_err() {
                    // Nothing was promised, and nothing that was asked for is said to be done.
                    fits.fill(false);
                }
            }
            *self.lost.lists.borrow_mut() = Lost { listed: Default::default(), ..after };
            self.publish(false).await;
            self.announce();
        }
        let closed = self.closed();
        let answer = |fits: bool| match fits && !closed {
            true => Ok(()),
            false => Err(BlockError::Unavailable),
        };
        let origins = asked.into_iter().zip(fits);
        origins.filter_map(|((_, origin), fits)| Some((origin?, answer(fits)))).collect()
    }

    /// Forgets what is lost where no volume is: whoever gets these rows gets them zeroed. The lock
    /// is free, and nothing is under way on a volume that had them.
    pub async fn forget_lost(&self) {
        self.lock.acquire(1).await;
        let mut kept = Lost::default();
        {
            let record = self.record();
            let listed = from_record(&record.lost);
            for extent in record.volumes.iter().flat_map(|v| &v.extents) {
                let extent = extent.array_start..extent.array_start + extent.bytes;
                listed.within(extent).for_each(|(range, reason)| kept.listed.add(range, reason));
            }
        }
        let listed = to_record(&kept.listed);
        if listed != self.record().lost && !self.closed() {
            // A record that can't be written is met again by whatever is recorded next.
            let _ = self.commit(false, |record| record.lost = listed).await;
            self.publish(false).await;
        }
        self.lock.release(1);
    }

    /// What can't be given back, as volumes have it.
    pub fn unreadable_ranges(&self) -> Vec<UnreadableRange> {
        unreadable_ranges(&self.record(), &self.lost())
    }
}

/// The lists as the volumes of a record have them; neighbours of one reason are one range.
pub fn unreadable_ranges(record: &ArrayRecord, lost: &Lost) -> Vec<UnreadableRange> {
    let mut found: Vec<UnreadableRange> = Vec::new();
    for volume in record.volumes.iter().filter(|_| !lost.is_empty()) {
        let mut begin = 0;
        for extent in &volume.extents {
            let left = volume.bytes.saturating_sub(begin).min(extent.bytes);
            let inside = extent.array_start..extent.array_start + left;
            let listed = lost.listed.within(inside.clone()).map(|(r, why)| (r, Some(why)));
            let noted = lost.noted.within(inside).map(|(r, ())| (r, None));
            let mut parts: Vec<_> = listed.chain(noted).collect();
            parts.sort_by_key(|(range, _)| range.start);
            for (range, reason) in parts {
                let offset = begin + (range.start - extent.array_start);
                let bytes = range.end - range.start;
                let volume = volume.name.clone();
                push(&mut found, UnreadableRange { volume, offset, bytes, reason });
            }
            begin += extent.bytes;
        }
    }
    found
}

/// Appends a range, joined with the last where that ends at its begin.
fn push(found: &mut Vec<UnreadableRange>, new: UnreadableRange) {
    let joins = |last: &&mut UnreadableRange| {
        let same = last.volume == new.volume && last.reason == new.reason;
        same && last.offset + last.bytes == new.offset
    };
    match found.last_mut().filter(joins) {
        Some(last) => last.bytes += new.bytes,
        None => found.push(new),
    }
}

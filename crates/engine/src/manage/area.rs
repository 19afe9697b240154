//! What the journal area of a group says that was guarded and unclean when its array ended: its
//! batches ([`crate::manage::replay`], [`crate::manage::gap`]) and in-flight pages
//! ([`crate::manage::doubt`]). It is read once, of every drive in sync, of a few at once, whose
//! memory those behind them use again; what it says is taken in the order of slots.
//!
//! | the group lacks | in-flight pages      | then                                            |
//! |-----------------|----------------------|-------------------------------------------------|
//! | no drive        | none can be hidden   | what they name is made right; no region is owed |
//! | no drive        | one may be *hidden*  | nothing of it is asked: dirty regions are owed  |
//! | a drive         | either               | what can be read counts and is carried out      |
//!
//! What can't be read says nothing: a write that was cut short may leave its blocks so. Where a
//! drive lacks there is no other way. Where none does there is: a page is durable on one drive more
//! than the group can lose, so it may be hidden only where so many are *blind*, can't say what
//! stands at a place of the area. One that is newer than the page that counts of its lane is in the
//! other place, so where that page stands none is hidden. A start that finds that one may be hidden
//! writes zeros where drives are blind, once its record is durable: the next finds none there.
//!
//! Invariant: in a group that lacks no drive, of which no page may be hidden, every column whose
//! strips may not agree is named by a page that counts.

use crate::Host;
use crate::buffers::copy;
use crate::journal::GROUP;
use crate::limits::AREAS_AT_ONCE;
use crate::manage::command::ManageError;
use crate::manage::managed::Managed;
use crate::manage::store;
use crate::mutants::{self, Mutant};
use crate::watch::{Doing, Watched};
use format::flight::FlightPage;
use format::journal::{Batch, Place};
use format::limits::BATCH_ALIGN;
use format::{Missing, SlotState, flight, journal};
use io::local::all_of;
use io::{BufMut, Drive, DriveError, Pool};
use std::collections::{BTreeMap, BTreeSet};
use units::Slot;

/// Something that stands in the journal area.
pub(super) struct Found<T> {
    pub what: T,
    /// Where it begins in the journal area.
    pub at: u64,
    /// Its bytes.
    pub image: Vec<u8>,
    /// The drives that have it whole.
    pub on: Vec<Slot>,
}

/// A batch, and the bytes of its head.
pub(super) type FoundBatch = Found<(Batch, usize)>;

/// What counts.
#[derive(Default)]
pub(super) struct Said {
    /// Batches by lane and sequence number.
    pub batches: BTreeMap<(u16, u64), FoundBatch>,
    /// The newest page of each lane.
    pub pages: BTreeMap<u16, Found<FlightPage>>,
    /// The drives that are blind at a place of the area.
    blind: BTreeMap<usize, Vec<Slot>>,
}

/// Reads it; `None` if nothing in it counts, whatever it is.
pub(super) async fn read<E: Host>(managed: &Managed<E>) -> Option<Said> {
    let (key, group) = (managed.record().journal_key, managed.record().groups[GROUP.index()]);
    if key == 0 || !group.guarded || !group.unclean {
        return None;
    }
    let mut said = Said::default();
    let (array, areas) = (managed.record().array, managed.record().areas);
    let all = in_sync(managed);
    let image = |_| Pool::single(areas.journal_bytes as usize);
    let mut images: Vec<_> = (0..all.len().min(AREAS_AT_ONCE)).map(image).collect();
    for drives in all.chunks(AREAS_AT_ONCE) {
        let start = areas.journal_start;
        let read = |((_, drive), image): (&(Slot, Watched<E>), BufMut)| {
            let drive = drive.clone();
            async move { store::read_noting(&drive, start, image).await }
        };
        let read = all_of(drives.iter().zip(images.drain(..)).map(read).collect()).await;
        for ((slot, _), (area, unread)) in drives.iter().zip(read) {
            for at in (0..area.len()).step_by(BATCH_ALIGN) {
                let place = Place { array, at: at as u64 };
                said.take_batch(&area, place, key, *slot);
                said.take_page(&area, place, key, *slot);
                if is_blind(&area, at, &unread) {
                    said.blind.entry(at).or_default().push(*slot);
                }
            }
            said.forget_passed();
            images.push(area);
        }
    }
    Some(said)
}

/// Whether nobody knows if a page begins there: it can't be read, or not all that it says it has.
fn is_blind(area: &[u8], at: usize, unread: &BTreeSet<usize>) -> bool {
    let bytes = flight::said_bytes(&area[at..]).unwrap_or(BATCH_ALIGN);
    unread.range(at..at + bytes).next().is_some()
}

impl Said {
    /// Whether there is anything to carry out.
    pub fn is_anything(&self) -> bool {
        let named = |found: &Found<FlightPage>| !found.what.entries.is_empty();
        !self.batches.is_empty() || self.pages.values().any(named)
    }

    /// Whether a page that counts may be where drives are blind.
    pub fn may_hide<E: Host>(&self, managed: &Managed<E>) -> bool {
        let m = usize::from(managed.layout().m(GROUP));
        let stands = |at: &usize| self.pages.values().any(|found| found.at == *at as u64);
        let hides = |(at, on): (&usize, &Vec<Slot>)| on.len() > m && !stands(at);
        mutants::is(Mutant::DoubtOwed) || self.blind.iter().any(hides)
    }

    /// Writes zeros where drives are blind. Nothing in the area counts any more; a drive that does
    /// not take them is found out when something is written there that does.
    pub async fn clear<E: Host>(&self, managed: &Managed<E>) {
        let start = managed.record().areas.journal_start;
        let zeros = Pool::single(BATCH_ALIGN).freeze();
        let drives = in_sync(managed);
        for (at, on) in &self.blind {
            let blind = drives.iter().filter(|(slot, _)| on.contains(slot));
            let place = start + *at as u64;
            let part = core::slice::from_ref(&zeros);
            let tickets: Vec<_> = blind.map(|(_, drive)| drive.write(place, part, false)).collect();
            for ticket in tickets {
                let _ = ticket.await;
            }
        }
    }

    fn take_batch(&mut self, area: &[u8], place: Place, key: u64, slot: Slot) {
        let at = place.at as usize;
        if !journal::may_begin(&area[at..], place, key) {
            return;
        }
        let head = journal::decode(&area[at..], place);
        let Some(head) = head.filter(|h| h.batch.key == key && h.batch.group == GROUP) else {
            return;
        };
        let (from, to) = (at + head.head_bytes, at + head.head_bytes + head.payload_bytes);
        if area.get(from..to).is_some_and(|payload| head.matches(payload)) {
            // A number whose batch was given up is used again in a later epoch.
            let (number, epoch) = ((head.batch.lane, head.batch.sequence), head.batch.epoch);
            let known = self.batches.get_mut(&number).map(|k| (k.what.0.epoch, &mut k.on));
            match known {
                Some((later, _)) if later > epoch => {}
                Some((same, on)) if same == epoch => on.push(slot),
                _ => {
                    let (image, what) = (area[at..to].to_vec(), (head.batch, head.head_bytes));
                    let found = Found { what, at: place.at, image, on: vec![slot] };
                    self.batches.insert(number, found);
                }
            }
        }
    }

    fn take_page(&mut self, area: &[u8], place: Place, key: u64, slot: Slot) {
        let at = place.at as usize;
        if !flight::may_begin(&area[at..], place, key) {
            return;
        }
        let page = flight::decode(&area[at..], place);
        let Some(what) = page.filter(|p| p.head.key == key && p.head.group == GROUP) else {
            return;
        };
        let (lane, sequence) = (what.head.lane, what.head.sequence);
        let known = self.pages.get_mut(&lane).map(|k| (k.what.head.sequence, &mut k.on));
        match known {
            Some((newer, _)) if newer > sequence => {}
            Some((same, on)) if same == sequence => on.push(slot),
            _ => {
                let image = area[at..at + what.bytes].to_vec();
                self.pages.insert(lane, Found { what, at: place.at, image, on: vec![slot] });
            }
        }
    }

    /// Leaves only the batches that no tail has passed.
    fn forget_passed(&mut self) {
        let mut tails = BTreeMap::<u16, u64>::new();
        for found in self.batches.values() {
            let tail = tails.entry(found.what.0.lane).or_default();
            *tail = found.what.0.tail.max(*tail);
        }
        self.batches.retain(|(lane, sequence), _| *sequence >= tails[lane]);
    }
}

pub(super) fn in_sync<E: Host>(managed: &Managed<E>) -> Vec<(Slot, Watched<E>)> {
    let counts = |slot: Slot| managed.record().slots[slot.index()].state == SlotState::InSync;
    managed.drives_taking_part().into_iter().filter(|(slot, _)| counts(*slot)).collect()
}

/// Writes what stands somewhere in the journal area to all drives in sync but those it is on.
pub(super) async fn spread<E: Host>(
    managed: &Managed<E>,
    (at, image): (u64, &[u8]),
    on: &[Slot],
    out: &mut Vec<Missing>,
) -> Result<(), ManageError> {
    let start = managed.record().areas.journal_start;
    let image = copy(image);
    let write = |(slot, drive): (Slot, Watched<E>)| {
        (slot, drive.write(start + at, core::slice::from_ref(&image), true))
    };
    let lacks = |(slot, _): &(Slot, Watched<E>)| !on.contains(slot);
    settle(managed, in_sync(managed).into_iter().filter(lacks).map(write).collect(), out).await
}

/// Waits for requests. A drive that failed one is let go, if the others do.
pub(super) async fn settle<E: Host>(
    managed: &Managed<E>,
    tickets: Vec<(Slot, Doing<E>)>,
    out: &mut Vec<Missing>,
) -> Result<(), ManageError> {
    let mut failed: Vec<(Slot, DriveError)> = Vec::new();
    for (slot, ticket) in tickets {
        if let Err(error) = ticket.await
            && !failed.iter().any(|(s, _)| *s == slot)
        {
            failed.push((slot, error));
        }
    }
    for (slot, error) in failed {
        if out.iter().any(|m| m.slot == slot) {
            continue;
        }
        managed.leave_out(slot, error, out)?;
    }
    Ok(())
}

impl<E: Host> Managed<E> {
    /// Lets a drive go that failed before the array is served, if the others do.
    pub(super) fn leave_out(
        &self,
        slot: Slot,
        error: DriveError,
        out: &mut Vec<Missing>,
    ) -> Result<(), ManageError> {
        if !self.does_without(slot) {
            return Err(ManageError::Drive(self.path_of(slot), error));
        }
        let (drive, serial) = {
            let record = self.record();
            let entry = &record.slots[slot.index()];
            (entry.drive, entry.serial.clone())
        };
        self.let_slot_go(slot);
        out.push(Missing { slot, drive, serial, set_back: false });
        Ok(())
    }

    /// Whether the group keeps all data with that slot's drive gone too: it does not count, or
    /// enough others do.
    fn does_without(&self, slot: Slot) -> bool {
        let rebuilding = self.record().slots[slot.index()].state != SlotState::InSync;
        rebuilding || in_sync(self).len() > usize::from(self.layout().k(GROUP))
    }
}

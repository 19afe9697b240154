//! Carries out the journal of a group that was guarded and unclean when its array ended, before
//! anything is served and before the record of the start ends its key ([`crate::journal`]).
//!
//! 1. The journal area of every drive in sync is read; what cannot be read holds nothing: a write
//!    that was cut short may leave its blocks so.
//! 2. Of each lane the batches that count are taken, in order.
//! 3. The newest of each lane is written to all drives in sync that don't have it: it alone may be
//!    on too few of them, and from here on it may be half in place. A drive that has it is left
//!    alone: a power cut might make the only copy unreadable.
//! 4. The ranges are written in place, batch by batch; then the drives are flushed.
//!
//! Cut short anywhere, the next start does all of it again. A drive that fails a write is left out,
//! as one that is missing is, where the others do; the record of the start says that it failed.
//!
//! Invariant: nothing is written that no batch says, nowhere but in strips of written bands of the
//! drives that the ranges name.

use crate::Host;
use crate::journal::GROUP;
use crate::limits::MAP_STEP;
use crate::manage::command::ManageError;
use crate::manage::managed::Managed;
use crate::mutants::{self, Mutant};
use crate::watch::{Doing, Watched};
use format::journal::{Batch, Place, Redo, StripRange, decode, drive_tag};
use format::limits::BATCH_ALIGN;
use format::{Missing, SlotState};
use io::{Buf, Drive, DriveError, Pool};
use std::collections::BTreeMap;
use units::{Slot, StripIndex, StripeNo};

/// A batch that was found, and its bytes.
struct Found {
    batch: Batch,
    /// Where in the journal area.
    at: u64,
    head_bytes: usize,
    image: Vec<u8>,
    /// The drives that have it whole.
    on: Vec<Slot>,
}

/// By lane and sequence number.
type Batches = BTreeMap<(u16, u64), Found>;

/// Does what the module says, where there is anything to do. The slots whose drives failed.
pub(super) async fn carry_out<E: Host>(managed: &Managed<E>) -> Result<Vec<Missing>, ManageError> {
    let (key, group) = (managed.record().journal_key, managed.record().groups[0]);
    let skip = mutants::is(Mutant::ReplayNothing);
    if skip || key == 0 || !group.guarded || !group.unclean || !managed.lacks(GROUP) {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    let batches = find(managed, key).await;
    secure_newest(managed, &batches, &mut out).await?;
    let backwards = mutants::is(Mutant::ReplayBackwards);
    let mut in_order: Vec<&Found> = batches.values().collect();
    if backwards {
        in_order.reverse();
    }
    for found in in_order {
        let mut tickets = Vec::new();
        let mut at = found.head_bytes;
        for entry in &found.batch.entries {
            for range in &entry.ranges {
                let to = at + range.bytes as usize;
                if let Some((slot, drive, offset)) = target(managed, entry, range) {
                    let data = buffer(&found.image[at..to]);
                    tickets.push((slot, drive.write(offset, &[data], false)));
                }
                at = to;
            }
        }
        settle(managed, tickets, &mut out).await?;
    }
    if mutants::is(Mutant::ReplayUnflushed) {
        return Ok(out);
    }
    let drives = managed.drives_taking_part();
    let flushes = drives.iter().map(|(slot, drive)| (*slot, drive.flush())).collect();
    settle(managed, flushes, &mut out).await?;
    Ok(out)
}

/// The batches that count.
async fn find<E: Host>(managed: &Managed<E>, key: u64) -> Batches {
    let mut all = Batches::new();
    for (slot, drive) in in_sync(managed) {
        let area = read(managed, &drive).await;
        let array = managed.record().array;
        for at in (0..area.len()).step_by(BATCH_ALIGN) {
            let place = Place { array, at: at as u64 };
            let Some(head) = decode(&area[at..], place).filter(|h| h.batch.key == key) else {
                continue;
            };
            let (from, to) = (at + head.head_bytes, at + head.head_bytes + head.payload_bytes);
            let whole = area.get(from..to).is_some_and(|payload| head.matches(payload));
            if whole && head.batch.group == GROUP {
                let (batch, head_bytes) = (head.batch, head.head_bytes);
                let make = || {
                    let image = area[at..to].to_vec();
                    Found { at: at as u64, head_bytes, image, on: Vec::new(), batch: batch.clone() }
                };
                let found = all.entry((batch.lane, batch.sequence)).or_insert_with(make);
                found.on.push(slot);
            }
        }
        needed(&mut all);
    }
    all
}

/// Leaves only what no tail has passed.
fn needed(all: &mut Batches) {
    let mut tails = BTreeMap::<u16, u64>::new();
    for found in all.values() {
        let tail = tails.entry(found.batch.lane).or_default();
        *tail = found.batch.tail.max(*tail);
    }
    all.retain(|(lane, sequence), _| *sequence >= tails[lane]);
}

pub(super) fn in_sync<E: Host>(managed: &Managed<E>) -> Vec<(Slot, Watched<E>)> {
    let counts = |slot: Slot| managed.record().slots[slot.index()].state == SlotState::InSync;
    managed.drives_taking_part().into_iter().filter(|(slot, _)| counts(*slot)).collect()
}

/// The journal area of a drive; zeros where it can't be read.
pub(super) async fn read<E: Host>(managed: &Managed<E>, drive: &Watched<E>) -> Vec<u8> {
    let areas = managed.record().areas.expect("only with a journal");
    let mut image = Vec::with_capacity(areas.journal_bytes as usize);
    for step in (0..areas.journal_bytes).step_by(MAP_STEP as usize) {
        let at = areas.journal_start + step;
        let (result, part) = drive.read(at, Pool::single(MAP_STEP as usize)).await;
        if result.is_ok() {
            image.extend_from_slice(&part);
            continue;
        }
        for page in (0..MAP_STEP).step_by(BATCH_ALIGN) {
            let (result, part) = drive.read(at + page, Pool::single(BATCH_ALIGN)).await;
            let bytes = if result.is_ok() { &part[..] } else { &[0; BATCH_ALIGN] };
            image.extend_from_slice(bytes);
        }
    }
    image
}

pub(super) fn buffer(bytes: &[u8]) -> Buf {
    let mut buffer = Pool::single(bytes.len());
    buffer.copy_from_slice(bytes);
    buffer.freeze()
}

/// Writes the newest batch of each lane to all drives in sync that don't have it.
async fn secure_newest<E: Host>(
    managed: &Managed<E>,
    batches: &Batches,
    out: &mut Vec<Missing>,
) -> Result<(), ManageError> {
    let newest: BTreeMap<u16, &Found> = batches.iter().map(|((lane, _), f)| (*lane, f)).collect();
    for found in newest.values().filter(|_| !mutants::is(Mutant::ReplayLoneNewest)) {
        spread(managed, (found.at, &found.image), &found.on, out).await?;
    }
    Ok(())
}

/// Writes what stands somewhere in the journal area to all drives in sync but those it is on.
pub(super) async fn spread<E: Host>(
    managed: &Managed<E>,
    (at, image): (u64, &[u8]),
    on: &[Slot],
    out: &mut Vec<Missing>,
) -> Result<(), ManageError> {
    let start = managed.record().areas.expect("only with a journal").journal_start;
    let image = buffer(image);
    let write = |(slot, drive): (Slot, Watched<E>)| {
        (slot, drive.write(start + at, core::slice::from_ref(&image), true))
    };
    let lacks = |(slot, _): &(Slot, Watched<E>)| !on.contains(slot);
    settle(managed, in_sync(managed).into_iter().filter(lacks).map(write).collect(), out).await
}

/// Where a range goes: to its strip, if the drive it names is there and its band was written.
fn target<E: Host>(
    managed: &Managed<E>,
    entry: &Redo,
    range: &StripRange,
) -> Option<(Slot, Watched<E>, u64)> {
    let (record, layout) = (managed.record(), managed.layout());
    let stripe = StripeNo(entry.stripe);
    let block = record.block_bytes;
    let end = range.from.checked_add(range.bytes)?;
    let inside = entry.stripe < layout.stripes(GROUP)
        && range.strip < layout.k(GROUP) + layout.m(GROUP)
        && end <= layout.strip_bytes()
        && range.from.is_multiple_of(block)
        && range.bytes.is_multiple_of(block);
    if !inside || range.bytes == 0 {
        return None;
    }
    let keeper = managed.keeper()?;
    let next = keeper.map.borrow().next_stripe(GROUP, stripe.0, stripe.0 + 1, 0);
    let (slot, offset) = layout.seat(GROUP, stripe, StripIndex(range.strip));
    let named = drive_tag(record.slots[slot.index()].drive) == range.drive;
    if next != stripe.0 || !named {
        return None;
    }
    let (_, drive) = managed.drives_taking_part().into_iter().find(|(s, _)| *s == slot)?;
    Some((slot, drive, record.data_offset + offset + u64::from(range.from)))
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
        out.push(Missing { slot, drive, serial });
        Ok(())
    }

    /// Whether the group keeps all data with that slot's drive gone too: it does not count, or
    /// enough others do.
    fn does_without(&self, slot: Slot) -> bool {
        let rebuilding = self.record().slots[slot.index()].state != SlotState::InSync;
        rebuilding || in_sync(self).len() > usize::from(self.layout().k(GROUP))
    }
}

//! Carries out the journal of a group that was guarded and unclean when its array ended, before
//! anything is served and before the record of the start ends its key ([`crate::journal`]). None is
//! missing below the newest: that was looked at before ([`crate::manage::gap`]). And no drive has
//! another page of the map than those by which it goes ([`crate::manage::pages::bring_first`]).
//!
//! 1. Of each lane the batches that count are taken, in order.
//! 2. The newest of each lane is written to all drives in sync that don't have it: it alone may be
//!    on too few of them, and from here on it may be half in place. A drive that has it is left
//!    alone: a power cut might make the only copy unreadable.
//! 3. Where a drive is missing that was in sync, a record of a new epoch says that it failed, with
//!    the key and the guard as found. It alone may have the newest page of the map, which calls
//!    clean what is dirty by the page before: a start that has it again, after one that was cut
//!    short, would leave older bytes there.
//! 4. The ranges are written in place, batch by batch; then the drives are flushed.
//!
//! Cut short anywhere, the next start does all of it again. A drive that fails a write is left out,
//! as one that is missing is, where the others do; the record of the start says that it failed.
//!
//! What batches say of clean regions is left alone. It is in place: the page of a region says
//! dirty, durably, before a change of it is logged, and clean only when nobody changes it any more
//! and all drives that take part were flushed since. None that takes part now missed that: one that
//! is back since has come with another key. Nor can a page that called it dirty be lost without a
//! word: the group is unclean, so its regions count as dirty then. And it may not be written: on
//! the way from an older batch of a block to its newest a drive may be let go, or be gone at the
//! next start, and once it is back it is filled only in regions that are dirty, or became clean in
//! an epoch that it took no part in. What is written here is dirty, and becomes clean in such a
//! one.
//!
//! Invariant: nothing is written that no batch says, nowhere but in strips of written bands of
//! dirty regions, on the drives that the ranges name.

use crate::Host;
use crate::buffers::copy;
use crate::journal::GROUP;
use crate::manage::area::{FoundBatch, Said, settle, spread};
use crate::manage::command::ManageError;
use crate::manage::doubt::begin_epoch;
use crate::manage::managed::Managed;
use crate::mutants::{self, Mutant};
use crate::watch::Watched;
use format::journal::{Redo, StripRange, drive_tag};
use format::{Assembly, Missing, SlotState};
use io::Drive;
use std::collections::BTreeMap;
use units::{Slot, StripIndex, StripeNo};

/// Does what the module says, where there is anything to do. Drives that fail on the way are added
/// to the missing ones.
pub(super) async fn carry_out<E: Host>(
    managed: &Managed<E>,
    assembly: &mut Assembly,
    Said { batches, .. }: &Said,
) -> Result<(), ManageError> {
    if mutants::is(Mutant::ReplayNothing) {
        return Ok(());
    }
    secure_newest(managed, batches, &mut assembly.missing).await?;
    if !batches.is_empty() {
        fail_missing(managed, assembly).await?;
    }
    let out = &mut assembly.missing;
    let backwards = mutants::is(Mutant::ReplayBackwards);
    let mut in_order: Vec<&FoundBatch> = batches.values().collect();
    if backwards {
        in_order.reverse();
    }
    for found in in_order {
        let mut tickets = Vec::new();
        let (batch, mut at) = (&found.what.0, found.what.1);
        for entry in &batch.entries {
            for range in &entry.ranges {
                let to = at + range.bytes as usize;
                if let Some((slot, drive, offset)) = target(managed, entry, range) {
                    let data = copy(&found.image[at..to]);
                    tickets.push((slot, drive.write(offset, &[data], false)));
                }
                at = to;
            }
        }
        settle(managed, tickets, out).await?;
    }
    if mutants::is(Mutant::ReplayUnflushed) {
        return Ok(());
    }
    let drives = managed.drives_taking_part();
    let flushes = drives.iter().map(|(slot, drive)| (*slot, drive.flush())).collect();
    settle(managed, flushes, out).await
}

/// Records that the missing drives have failed, if one of them was in sync.
async fn fail_missing<E: Host>(
    managed: &Managed<E>,
    assembly: &Assembly,
) -> Result<(), ManageError> {
    let in_sync = |m: &Missing| managed.record().slots[m.slot.index()].state == SlotState::InSync;
    if assembly.missing.iter().any(in_sync) {
        managed.commit(false, |r| *r = begin_epoch(managed, assembly, r)).await?;
        managed.all_there()?;
    }
    Ok(())
}

/// Writes the newest batch of each lane to all drives in sync that don't have it.
async fn secure_newest<E: Host>(
    managed: &Managed<E>,
    batches: &BTreeMap<(u16, u64), FoundBatch>,
    out: &mut Vec<Missing>,
) -> Result<(), ManageError> {
    let newest: BTreeMap<u16, &FoundBatch> =
        batches.iter().map(|((lane, _), f)| (*lane, f)).collect();
    for found in newest.values().filter(|_| !mutants::is(Mutant::ReplayLoneNewest)) {
        spread(managed, (found.at, &found.image), &found.on, out).await?;
    }
    Ok(())
}

/// Where a range goes: to its strip, if the drive it names is there, its band was written, and its
/// region is dirty.
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
    let changed = managed.keeper().map.borrow().may_be_written(GROUP, stripe.0);
    let (slot, offset) = layout.seat(GROUP, stripe, StripIndex(range.strip));
    let named = drive_tag(record.slots[slot.index()].drive) == range.drive;
    if !changed || !named {
        return None;
    }
    let (_, drive) = managed.drives_taking_part().into_iter().find(|(s, _)| *s == slot)?;
    Some((slot, drive, record.data_offset + offset + u64::from(range.from)))
}

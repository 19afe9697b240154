//! The region map's pages of whole drives: read at the start, written when a drive joins.

use crate::Host;
use crate::buffers::copy;
use crate::limits::MAP_STEP;
use crate::manage::command::ManageError;
use crate::manage::keeper::Keeper;
use crate::manage::managed::Managed;
use crate::manage::store;
use crate::mutants::{self, Mutant};
use crate::region::map::PageKey;
use crate::watch::Watched;
use format::SlotState;
use format::limits::PAGE_BYTES;
use format::region::Page;
use io::{Drive, DriveError, Pool};
use std::collections::BTreeMap;
use units::Slot;

/// Bytes of a drive's pages, with both their places.
fn map_bytes(keeper: &Keeper, slot: Slot) -> u64 {
    let map = keeper.map.borrow();
    let pages = map.geometry().groups_of(slot).map(|g| u64::from(map.geometry().pages(g)));
    pages.sum::<u64>() * 2 * PAGE_BYTES as u64
}

/// The sequence numbers of the pages that a drive has.
pub(super) type Written = BTreeMap<PageKey, u64>;

/// Writes every page of a slot's groups to its drive, durably, as they are when it begins. Older
/// ones of any array are gone then.
pub(super) async fn write_all<E: Host>(
    managed: &Managed<E>,
    keeper: &Keeper,
    slot: Slot,
    drive: &Watched<E>,
) -> Result<Written, DriveError> {
    let mut written = Written::new();
    if mutants::is(Mutant::JoinWithoutPages) && managed.record().zeroed {
        return Ok(written);
    }
    let start = managed.map_start();
    let mut image = vec![0; map_bytes(keeper, slot) as usize];
    {
        let map = keeper.map.borrow();
        for page in map.pages() {
            let (sequence, bytes) = map.encode(page);
            let at = map.geometry().page_offset(slot, page.0, page.1, sequence % 2);
            if let Some(at) = at {
                image[at as usize..][..PAGE_BYTES].copy_from_slice(&bytes);
                written.insert(page, sequence);
            }
        }
    }
    for (i, part) in image.chunks(MAP_STEP as usize).enumerate() {
        drive.write(start + i as u64 * MAP_STEP, &[copy(part)], true).await?;
    }
    Ok(written)
}

/// Writes the pages that changed since a drive got them; how many. With the keeper's lock held it
/// has them all then.
pub(super) async fn write_changed<E: Host>(
    managed: &Managed<E>,
    keeper: &Keeper,
    (slot, drive): (Slot, &Watched<E>),
    has: &mut Written,
) -> Result<usize, DriveError> {
    let start = managed.map_start();
    let mut tickets = Vec::new();
    for (page, newest) in has {
        let map = keeper.map.borrow();
        let (sequence, bytes) = map.encode(*page);
        if sequence != *newest {
            let at = map.geometry().page_offset(slot, page.0, page.1, sequence % 2);
            let at = start + at.expect("it has the page");
            tickets.push(drive.write(at, &[copy(&bytes)], true));
            *newest = sequence;
        }
    }
    let count = tickets.len();
    for ticket in tickets {
        ticket.await?;
    }
    Ok(count)
}

/// A drive that lacks a page, and whether it counts.
pub(super) type Lacking = (Slot, bool, PageKey);

/// Reads the map of an array that is about to start; which drives lack which pages.
pub(super) async fn load<E: Host>(managed: &Managed<E>) -> Vec<Lacking> {
    let Some(keeper) = managed.keeper() else {
        return Vec::new();
    };
    let mut images = Vec::new();
    for (slot, drive) in managed.drives_taking_part() {
        let in_sync = managed.record().slots[slot.index()].state == SlotState::InSync;
        let bytes = map_bytes(keeper, slot);
        let image = store::read_area(&drive, managed.map_start(), bytes).await;
        images.push((slot, in_sync, image));
    }
    let pages = keeper.map.borrow().pages();
    let mut lost = 0;
    let mut lacking: Vec<Lacking> = Vec::new();
    for page in pages {
        let mut map = keeper.map.borrow_mut();
        let on = |slot: Slot, image: &[u8]| -> Option<Page> {
            let place = |n| {
                let at = map.geometry().page_offset(slot, page.0, page.1, n)? as usize;
                map.decode(page, image.get(at..at + PAGE_BYTES)?)
            };
            format::region::newest([place(0), place(1)])
        };
        let found: Vec<_> =
            images.iter().map(|(slot, counts, image)| (*slot, *counts, on(*slot, image))).collect();
        let counting = found.iter().filter(|f| f.1).map(|f| f.2.clone());
        let newest = format::region::newest(counting);
        lost += u64::from(newest.is_none());
        let group = managed.record().groups[page.0.index()];
        let journaled = group.guarded && managed.lacks(page.0);
        map.load(page, newest.clone(), journaled && !group.loss_accepted);
        for (slot, counts, has) in found {
            let mine = map.geometry().page_offset(slot, page.0, page.1, 0).is_some();
            if mine && (newest.is_none() || has != newest) {
                lacking.push((slot, counts, page));
            }
        }
    }
    managed.lost_pages.set(lost);
    lacking
}

/// Writes to each drive the pages that it lacks.
pub(super) async fn bring_all<E: Host>(
    managed: &Managed<E>,
    lacking: Vec<Lacking>,
) -> Result<(), ManageError> {
    for (slot, counts, page) in lacking {
        if mutants::is(Mutant::PagesNotBrought) {
            continue;
        }
        let keeper = managed.keeper().expect("only maps have pages");
        bring(managed, keeper, (slot, counts), page).await?;
    }
    Ok(())
}

/// Writes a page to a drive that lacks it; a drive that does not take it is failed, if it can be
/// done without. One that does not count may hold a page that nobody else has ever had, and will
/// count some day: its other place is emptied.
async fn bring<E: Host>(
    managed: &Managed<E>,
    keeper: &Keeper,
    (slot, counts): (Slot, bool),
    page: PageKey,
) -> Result<(), ManageError> {
    let start = managed.map_start();
    let taking = managed.drives_taking_part().into_iter().find(|(s, _)| *s == slot);
    let Some((_, drive)) = taking else {
        return Ok(());
    };
    let (at, other, bytes) = {
        let map = keeper.map.borrow();
        let (sequence, bytes) = map.encode(page);
        let at = |n| map.geometry().page_offset(slot, page.0, page.1, n).map(|at| start + at);
        let of_group = "the slot is of the group";
        (at(sequence % 2).expect(of_group), at(1 - sequence % 2).expect(of_group), bytes)
    };
    let mut written = Ok(());
    if !counts {
        written = drive.write(other, &[Pool::single(PAGE_BYTES).freeze()], true).await;
    }
    if written.is_ok() {
        written = drive.write(at, &[copy(&bytes)], true).await;
    }
    let Err(error) = written else {
        return Ok(());
    };
    let rebuilding = managed.record().slots[slot.index()].state != SlotState::InSync;
    if !rebuilding && !managed.survives_without(slot) {
        let path = managed.seats.borrow()[slot.index()].drive.as_ref().map(|d| d.0.path.clone());
        return Err(ManageError::Drive(path.unwrap_or_default(), error));
    }
    managed.commit(true, |r| r.fail_slot(slot)).await
}

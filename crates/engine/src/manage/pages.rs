//! The region map's pages of whole drives: read at the start, written when a drive joins.

use crate::Host;
use crate::buffers::copy;
use crate::limits::{MAP_STEP, PAGES_AT_ONCE};
use crate::manage::command::ManageError;
use crate::manage::keeper::Keeper;
use crate::manage::managed::Managed;
use crate::manage::store;
use crate::mutants::{self, Mutant};
use crate::region::map::PageKey;
use crate::watch::Watched;
use format::limits::PAGE_BYTES;
use format::region::{Page, Places};
use format::{Missing, SlotState};
use io::{BufMut, Drive, DriveError};
use layout::CodeKind;
use std::collections::{BTreeMap, BTreeSet};
use units::{Slot, SlotSet};

/// Bytes of a drive's pages, with both their places.
fn map_bytes(keeper: &Keeper, slot: Slot) -> u64 {
    let map = keeper.map.borrow();
    let pages = map.geometry().groups_of(slot).map(|g| u64::from(map.geometry().pages(g)));
    pages.sum::<u64>() * 2 * PAGE_BYTES as u64
}

/// The sequence numbers of the pages that a drive has.
pub(super) type Written = BTreeMap<PageKey, u64>;

/// Writes every page of a slot's groups to both its places on the drive, durably, as they are when
/// it begins. Older ones of any array are gone then.
pub(super) async fn write_all<E: Host>(
    managed: &Managed<E>,
    slot: Slot,
    drive: &Watched<E>,
) -> Result<Written, DriveError> {
    let keeper = managed.keeper();
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
            if let Some(places) = map.geometry().page_offsets(slot, page.0, page.1) {
                for at in places {
                    image[at as usize..][..PAGE_BYTES].copy_from_slice(&bytes);
                }
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
    (slot, drive): (Slot, &Watched<E>),
    has: &mut Written,
) -> Result<usize, DriveError> {
    let (keeper, start) = (managed.keeper(), managed.map_start());
    let (mut pieces, mut count) = (Vec::new(), 0);
    for (page, newest) in has {
        let map = keeper.map.borrow();
        let (sequence, bytes) = map.encode(*page);
        if sequence != *newest {
            let places = map.geometry().page_offsets(slot, page.0, page.1);
            let bytes = copy(&bytes);
            for at in places.expect("it has the page") {
                pieces.push((start + at, bytes.clone()));
            }
            *newest = sequence;
            count += 1;
        }
    }
    store::write_pieces(drive, &pieces, true, PAGES_AT_ONCE).await?;
    Ok(count)
}

/// A drive on which a page is to be written: to the place of its sequence number, to the other.
pub(super) struct Lacking {
    slot: Slot,
    page: PageKey,
    own: bool,
    other: bool,
}

/// What the map areas of drives hold.
pub(super) type Images = BTreeMap<Slot, BufMut>;

/// Reads the map areas of the drives of an array that is about to start.
pub(super) async fn read<E: Host>(managed: &Managed<E>) -> Images {
    let mut images = Images::new();
    for (slot, drive) in managed.drives_taking_part() {
        let bytes = map_bytes(managed.keeper(), slot);
        images.insert(slot, store::read_area(&drive, managed.map_start(), bytes).await);
    }
    images
}

/// What the places of a page hold on the drives that take part, and whether each is in sync.
fn places_of<E: Host>(
    managed: &Managed<E>,
    images: &Images,
    page: PageKey,
) -> Vec<(Slot, bool, Places)> {
    let map = managed.keeper().map.borrow();
    let record = managed.record();
    let on = |slot: Slot| {
        let (image, in_sync) = (images.get(&slot)?, record.slots[slot.index()].state);
        let places = map.geometry().page_offsets(slot, page.0, page.1)?;
        let place = |at: u64| map.decode(page, image.get(at as usize..)?.get(..PAGE_BYTES)?);
        Some((slot, in_sync == SlotState::InSync, places.map(place)))
    };
    managed.taking_part(&record).into_iter().filter_map(on).collect()
}

/// The slots whose drives were set back to an older state, by the map of an array that is about to
/// start.
pub(super) fn set_back<E: Host>(managed: &Managed<E>, images: &Images) -> BTreeSet<Slot> {
    let mut slots = BTreeSet::new();
    let pages = managed.keeper().map.borrow().pages();
    for page in pages.into_iter().filter(|_| !mutants::is(Mutant::SetBackBelieved)) {
        let found = places_of(managed, images, page);
        let counting = || found.iter().filter(|f| f.1).map(|f| &f.2);
        let Some(newest) = format::region::newest(counting()) else { continue };
        let group = managed.record().groups[page.0.index()];
        let none_is_dirty = !(group.unclean || group.loss_accepted);
        let ended = |own| none_is_dirty && format::region::ended(newest, own, counting());
        let old = |own| format::region::is_set_back(newest, own, ended(own));
        slots.extend(found.iter().filter(|f| old(&f.2)).map(|f| f.0));
    }
    slots
}

/// Takes over the map of an array that is about to start; which drives lack which pages. With
/// `carried`, what the journal area stands for is carried out, and not owed.
pub(super) fn load<E: Host>(managed: &Managed<E>, images: &Images, carried: bool) -> Vec<Lacking> {
    let keeper = managed.keeper();
    let record = managed.record().clone();
    let pages = keeper.map.borrow().pages();
    let mut lost = 0;
    let mut lacking = Vec::new();
    for page in pages {
        let found = places_of(managed, images, page);
        let mut map = keeper.map.borrow_mut();
        let counting = || found.iter().filter(|f| f.1).map(|f| &f.2);
        let group = record.groups[page.0.index()];
        let newest = format::region::newest(counting());
        let taken = newest.map(|page| match format::region::may_be_behind(page, counting()) {
            true if !mutants::is(Mutant::PageBelieved) => {
                let may_be_dirty = group.unclean || group.loss_accepted;
                let none_dirty = (!may_be_dirty).then_some(record.epoch.counter);
                format::region::at_worst(page, none_dirty)
            }
            _ => page.clone(),
        });
        lost += u64::from(taken.is_none());
        let stands = record.journal_key != 0 && group.unclean || managed.lacks(page.0);
        let journaled = group.guarded && stands;
        let parity = managed.layout().descriptor(page.0).code == CodeKind::Parity;
        let right = carried && parity && !group.loss_accepted && (journaled || !group.unclean);
        map.load(page, taken.clone(), right);
        for (slot, _, places) in found {
            let (own, other) = wanting(taken.as_ref(), &places);
            if own || other {
                lacking.push(Lacking { slot, page, own, other });
            }
        }
    }
    managed.lost_pages.set(lost);
    lacking
}

/// In which places of a drive the page that the array starts with has to be written: its own, the
/// other. The other may hold it, too, or an older one with the same bits; but not another one of
/// the same number, of a start that came to another end.
fn wanting(page: Option<&Page>, places: &Places) -> (bool, bool) {
    let Some(page) = page else {
        return (true, true);
    };
    let own = (page.sequence % 2) as usize;
    let same = |old: &Page| {
        let bits = old.entries.iter().map(|e| e.written).eq(page.entries.iter().map(|e| e.written));
        old == page || bits && old.sequence < page.sequence
    };
    let left = mutants::is(Mutant::PageOtherLeft);
    (places[own].as_ref() != Some(page), !left && !places[1 - own].as_ref().is_some_and(same))
}

/// Writes to each drive the pages that it lacks.
pub(super) async fn bring_all<E: Host>(
    managed: &Managed<E>,
    lacking: Vec<Lacking>,
) -> Result<(), ManageError> {
    for some in lacking.chunks(PAGES_AT_ONCE) {
        for (slot, error) in bring(managed, some).await {
            let rebuilding = managed.record().slots[slot.index()].state != SlotState::InSync;
            if !rebuilding && !managed.survives_without(SlotSet::one(slot)) {
                return Err(ManageError::Drive(managed.path_of(slot), error));
            }
            managed.commit(true, |r| r.fail_slot(slot)).await?;
        }
    }
    Ok(())
}

/// The same before what the journal area says is carried out by these pages. Else the next start,
/// after one that was cut short, might have one that no drive could read before: it may call clean
/// where older bytes were left, or half of what is made right. A drive that does not take a page is
/// let go, if the others do.
pub(super) async fn bring_first<E: Host>(
    managed: &Managed<E>,
    lacking: Vec<Lacking>,
    out: &mut Vec<Missing>,
) -> Result<(), ManageError> {
    for some in lacking.chunks(PAGES_AT_ONCE) {
        for (slot, error) in bring(managed, some).await {
            managed.leave_out(slot, error, out)?;
        }
    }
    Ok(())
}

/// Writes pages to the drives that lack them, first to their own places: what the other place of a
/// page holds is not lost before. The drives that did not take them.
async fn bring<E: Host>(managed: &Managed<E>, lacking: &[Lacking]) -> BTreeMap<Slot, DriveError> {
    let keeper = managed.keeper();
    let start = managed.map_start();
    let drives: BTreeMap<Slot, Watched<E>> = managed.drives_taking_part().into_iter().collect();
    let mut failed = BTreeMap::new();
    if mutants::is(Mutant::PagesNotBrought) {
        return failed;
    }
    for turn in 0..2 {
        let mut tickets = Vec::new();
        for one in lacking.iter().filter(|one| [one.own, one.other][turn]) {
            let Some(drive) = drives.get(&one.slot).filter(|_| !failed.contains_key(&one.slot))
            else {
                continue;
            };
            let map = keeper.map.borrow();
            let (sequence, bytes) = map.encode(one.page);
            let places = map.geometry().page_offsets(one.slot, one.page.0, one.page.1);
            let at = places.expect("the slot is of the group")[(sequence as usize + turn) % 2];
            tickets.push((one.slot, drive.write(start + at, &[copy(&bytes)], true)));
        }
        for (slot, ticket) in tickets {
            if let Err(error) = ticket.await {
                failed.insert(slot, error);
            }
        }
    }
    failed
}

//! The keeper of an array's region map: the only one who changes it ([`crate::region`]).
//!
//! Everything asked of it goes through one loop (`pump`), a batch at a time: what comes while a
//! batch is under way is taken together afterwards. A turn of it has a batch of first writes and
//! changes, what somebody wants unwritten, and cleaning.
//!
//! A batch of first writes and first changes:
//! 1. bands never written are zeroed on all drives that take part, and flushed;
//! 2. the pages with their bits, and with their regions dirty, are written to all of them, those
//!    with new bits to both their places, one after the other;
//! 3. every core learns of the bits and says so;
//! 4. grants and answers go out.
//!
//! What is unwritten: every core forgets the bits and ends what is under way there; the pages
//! follow, again to both places; every core learns that this is durable; then the drives may
//! discard ([`crate::manage::discard`]).
//!
//! Cleaning: regions that nobody holds; the drives are flushed; the pages follow.
//!
//! Invariants
//! - A drive that fails step 1 is out, durably, before step 2 begins; one that fails to take a page
//!   is out before anything is answered that depends on it.
//! - The keeper's `lock` is held from step 1 to step 3, and while a drive joins: who joins has
//!   either been zeroed with the others or finds the bits set when it is rebuilt. Nobody waits for
//!   the array's configuration lock under it.
//! - In a group with a dropped drive nothing is begun, and nothing is cleaned: the drive will count
//!   again without having seen it. Nor does a rebuild go on there: what it passed over as unwritten
//!   may be written by that drive's map.

use crate::Host;
use crate::array::MANAGER;
use crate::array::message::{Mail as ArrayMail, Outcome};
use crate::buffers::copy;
use crate::limits::{PAGES_AT_ONCE, SWEEP, WRITE_AHEAD};
use crate::manage::discard::{self, Discards};
use crate::manage::managed::Managed;
use crate::manage::store;
use crate::mutants::{self, Mutant};
use crate::region::map::{Changed, Map, PageKey};
use crate::region::message::{Bits, ToCore, ToKeeper};
use crate::stripe::table::Origin;
use crate::watch::Watched;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::ops::Range;
use format::SlotState;
use format::limits::PAGE_BYTES;
use io::local::{Event, Semaphore, all_of};
use io::{BlockError, Drive, DriveError, Priority};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use units::{BAND_BYTES, CoreId, GroupNo, Slot};

/// Somebody waits for a bit, or for several to be cleared.
struct Prepare {
    group: GroupNo,
    bit: u64,
    origin: Origin,
}

struct Clear {
    group: GroupNo,
    bits: Range<u64>,
    origin: Origin,
}

/// A drive that failed a request of the keeper.
pub(super) struct Failed {
    slot: Slot,
    incarnation: u32,
    error: DriveError,
}

/// The keeper's state.
pub(crate) struct Keeper {
    pub(super) map: RefCell<Map>,
    /// See the module.
    pub(super) lock: Semaphore,
    /// Held from when the cores take bits for unwritten until that is durable.
    clearing: Semaphore,
    prepares: RefCell<Vec<Prepare>>,
    clears: RefCell<VecDeque<Clear>>,
    pub(super) discards: RefCell<Discards>,
    /// A step of discards is over.
    pub(super) discarded: Event,
    pumping: Cell<bool>,
    idle: Event,
    awaited: Cell<u16>,
    answered: Event,
    sweeping: Cell<bool>,
    ended: Cell<bool>,
}

impl Keeper {
    pub fn new(map: Map) -> Self {
        Self {
            map: RefCell::new(map),
            lock: Semaphore::new(1),
            clearing: Semaphore::new(1),
            prepares: RefCell::default(),
            clears: RefCell::default(),
            discards: RefCell::default(),
            discarded: Event::default(),
            pumping: Cell::new(false),
            idle: Event::default(),
            awaited: Cell::new(0),
            answered: Event::default(),
            sweeping: Cell::new(false),
            ended: Cell::new(false),
        }
    }

    fn is_asked(&self) -> bool {
        !self.prepares.borrow().is_empty() || !self.clears.borrow().is_empty()
    }
}

/// Takes mail for the keeper of an array.
pub(super) fn receive<E: Host>(managed: &Rc<Managed<E>>, mail: ToKeeper) {
    let keeper = managed.keeper();
    match mail {
        ToKeeper::Prepare { group, bit, origin } => {
            keeper.prepares.borrow_mut().push(Prepare { group, bit, origin });
        }
        ToKeeper::Clear { group, bits, origin } => {
            keeper.clears.borrow_mut().push_back(Clear { group, bits, origin });
        }
        ToKeeper::GaveUp { core, regions } => keeper.map.borrow_mut().gave_up(core, &regions),
        ToKeeper::Done => {
            keeper.awaited.set(keeper.awaited.get() - 1);
            keeper.answered.notify();
            return;
        }
    }
    kick(managed);
}

/// Has the keeper look for work.
pub(super) fn kick<E: Host>(managed: &Rc<Managed<E>>) {
    if !managed.keeper().pumping.replace(true) {
        managed.env().spawn(Priority::First, pump(managed.clone()));
    }
}

/// Does what there is to do: of each kind something, turn by turn, so that none keeps the others
/// waiting for ever.
async fn pump<E: Host>(managed: Rc<Managed<E>>) {
    let keeper = managed.keeper();
    let mut busy = true;
    while busy || keeper.is_asked() {
        let batch = keeper.prepares.take();
        let clear = keeper.clears.borrow_mut().pop_front();
        busy = !batch.is_empty() || clear.is_some();
        if !batch.is_empty() {
            prepare(&managed, keeper, batch).await;
        }
        if let Some(clear) = clear {
            match unwrite(&managed, keeper, &clear).await {
                Ok(set) if set.is_empty() => managed.answer(clear.origin, Ok(())),
                Ok(set) => keeper.discards.borrow_mut().add(&set, clear.origin),
                Err(error) => managed.answer(clear.origin, Err(error)),
            }
        }
        discard::go_on(&managed, keeper);
        busy |= clean(&managed, keeper).await;
        sweep_later(&managed, keeper);
    }
    keeper.pumping.set(false);
    keeper.idle.notify();
}

/// Has cores give grants back from time to time, while they hold any.
fn sweep_later<E: Host>(managed: &Rc<Managed<E>>, keeper: &Keeper) {
    let due = keeper.map.borrow().any_held() && !keeper.ended.get();
    if !due || keeper.sweeping.replace(true) {
        return;
    }
    let sleep = managed.env().sleep(SWEEP);
    let weak = Rc::downgrade(managed);
    managed.env().spawn(Priority::Last, async move {
        sleep.await;
        if let Some(managed) = weak.upgrade() {
            let keeper = managed.keeper();
            keeper.sweeping.set(false);
            if !keeper.ended.get() {
                managed.tell_all(&ToCore::Sweep);
                kick(&managed);
            }
        }
    });
}

/// Carries out a batch of first writes and first changes.
async fn prepare<E: Host>(managed: &Rc<Managed<E>>, keeper: &Keeper, mut batch: Vec<Prepare>) {
    let refuse = |batch: &mut Vec<Prepare>, why: &dyn Fn(&Prepare) -> bool| {
        batch.retain(|p| {
            let out = why(p);
            if out {
                managed.answer(p.origin, Err(BlockError::Unavailable));
            }
            !out
        });
    };
    // After a band could not be zeroed: only what is asked for, so that what fails is known.
    let mut alone = false;
    loop {
        refuse(&mut batch, &|p| managed.frozen(p.group));
        // Who assembles the array sees by its record that a region may be dirty.
        for group in batch.iter().map(|p| p.group).collect::<BTreeSet<_>>() {
            if managed.layout().m(group) > 0 && !mutants::is(Mutant::NeverUnclean) {
                managed.first_write(group).await;
            }
        }
        // Nobody but the pump changes bits.
        let (wanted, fresh) = wanted(keeper, &batch, if alone { 0 } else { WRITE_AHEAD });
        discard::forget(keeper, &fresh).await;
        keeper.lock.acquire(1).await;
        let (bad, failed) = zero_first(managed, keeper, &fresh, alone).await;
        if !bad.is_empty() || !failed.is_empty() {
            keeper.lock.release(1);
            if alone || fresh.len() == 1 {
                refuse(&mut batch, &|p| bad.contains(&(p.group, p.bit)));
            }
            alone |= !bad.is_empty();
            if !take_out(managed, failed.iter().collect()).await {
                return refuse(&mut batch, &|_| true);
            }
            continue;
        }
        let pages = keeper.map.borrow_mut().write(&wanted);
        let failed = write_first(managed, keeper, pages).await;
        if !fresh.is_empty() {
            let bits = fresh.iter().map(|(group, bit)| one_bit(*group, *bit)).collect();
            all_told(managed, keeper, &ToCore::Written(bits)).await;
        }
        keeper.lock.release(1);
        if !take_out(managed, failed.iter().collect()).await {
            return refuse(&mut batch, &|_| true);
        }
        refuse(&mut batch, &|p| managed.frozen(p.group));
        break;
    }
    for Prepare { group, bit, origin } in batch {
        let serial = keeper.map.borrow_mut().grant(group, bit, origin.core);
        let region = bit / format::limits::REGION_BITS;
        managed.tell(origin.core, ToCore::Grant { group, region, serial });
        managed.answer(origin, Ok(()));
    }
}

/// Writes the pages that a batch of first writes and changes depends on.
async fn write_first<E: Host>(
    managed: &Rc<Managed<E>>,
    keeper: &Keeper,
    pages: Changed,
) -> Vec<Failed> {
    if mutants::is(Mutant::PageAfterData) {
        let managed = managed.clone();
        managed.clone().env().spawn(Priority::Last, async move {
            write_pages(&managed, managed.keeper(), &pages).await;
        });
        return Vec::new();
    }
    write_pages(managed, keeper, &pages).await
}

fn one_bit(group: GroupNo, bit: u64) -> Bits {
    let per = format::limits::REGION_BITS;
    Bits { group, region: bit / per, bits: 1 << (bit % per) }
}

type BitSet = BTreeSet<(GroupNo, u64)>;

/// The bits that a batch wants set, with what is written ahead (of each at most so many), and those
/// that are not yet.
fn wanted(keeper: &Keeper, batch: &[Prepare], ahead: u64) -> (BitSet, BitSet) {
    let map = keeper.map.borrow();
    let (mut wanted, mut fresh) = (BTreeSet::new(), BTreeSet::new());
    for p in batch {
        wanted.insert((p.group, p.bit));
        if !map.written(p.group, p.bit) {
            // Nobody waits for what is only ahead.
            let free =
                |bit: &u64| *bit == p.bit || !keeper.discards.borrow().in_step(p.group, *bit);
            let run = map.ahead(p.group, p.bit, ahead).filter(free);
            fresh.extend(run.map(|bit| (p.group, bit)));
        }
    }
    wanted.extend(&fresh);
    (wanted, fresh)
}

/// Zeroes bands that are written first, each by itself or all together: those of which blocks can't
/// be written, on drives without redundancy, where that costs the request and not the drive (of
/// some together nobody knows which they are); and the drives that failed it otherwise.
async fn zero_first<E: Host>(
    managed: &Rc<Managed<E>>,
    keeper: &Keeper,
    fresh: &BitSet,
    alone: bool,
) -> (BitSet, Vec<Failed>) {
    let (mut bad, mut failed) = (BitSet::new(), Vec::new());
    if mutants::is(Mutant::ZeroSkipped) {
        return (bad, failed);
    }
    let layout = managed.layout();
    let parts = match alone {
        true => fresh.iter().map(|bit| BitSet::from([*bit])).collect(),
        false => vec![fresh.clone()],
    };
    for part in parts {
        for f in zero(managed, keeper, &part).await {
            let plain = layout.groups_of(f.slot).all(|g| layout.m(g) == 0);
            if f.error == DriveError::Media && plain {
                let on = |(group, _): &&(GroupNo, u64)| layout.slots(*group).any(|s| s == f.slot);
                bad.extend(part.iter().filter(on));
            } else {
                failed.push(f);
            }
        }
    }
    (bad, failed)
}

/// Zeroes bands on all drives that take part, durably; those that failed it.
async fn zero<E: Host>(managed: &Rc<Managed<E>>, keeper: &Keeper, bits: &BitSet) -> Vec<Failed> {
    let mut work: Vec<(Slot, Vec<(u64, u64)>)> = Vec::new();
    for slot in managed.all_taking_part() {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (group, bit) in bits {
            if managed.layout().slots(*group).any(|s| s == slot) {
                let (at, bytes) = on_drive(managed, keeper, *group, *bit..*bit + 1);
                match runs.last_mut() {
                    Some((from, n)) if *from + *n == at => *n += bytes,
                    _ => runs.push((at, bytes)),
                }
            }
        }
        if !runs.is_empty() {
            work.push((slot, runs));
        }
    }
    on_drives(managed, work, |drive, runs| async move {
        for (at, bytes) in runs {
            store::zero(&drive, at, bytes).await?;
        }
        if drive.info().volatile_cache && !mutants::is(Mutant::ZeroNotFlushed) {
            drive.flush().await
        } else {
            Ok(())
        }
    })
    .await
}

/// Where bits of a group lie on its drives, and how many bytes.
pub(super) fn on_drive<E: Host>(
    managed: &Managed<E>,
    keeper: &Keeper,
    group: GroupNo,
    bits: Range<u64>,
) -> (u64, u64) {
    let layout = managed.layout();
    let per = keeper.map.borrow().geometry().bands_per_bit();
    let (first, end) = (bits.start * per, (bits.end * per).min(layout.bands(group)));
    let at = layout.drive_offset(group, layout.first_stripe(units::BandNo(first)));
    (managed.record().data_offset + at, (end - first) * BAND_BYTES)
}

/// Does something on drives, on all at once; those that failed it.
pub(super) async fn on_drives<E, T, F>(
    managed: &Rc<Managed<E>>,
    work: Vec<(Slot, T)>,
    job: impl Fn(Watched<E>, T) -> F,
) -> Vec<Failed>
where
    E: Host,
    T: 'static,
    F: Future<Output = Result<(), DriveError>> + 'static,
{
    let done = work.into_iter().filter_map(|(slot, what)| {
        let (drive, incarnation) = managed.drive_of(slot);
        let done = job(drive?, what);
        Some(async move { done.await.err().map(|error| Failed { slot, incarnation, error }) })
    });
    all_of(done.collect()).await.into_iter().flatten().collect()
}

/// Writes pages to all drives of their groups that take part, to their own places, and those with
/// other written bits then to the other; the drives that did not take them.
async fn write_pages<E: Host>(
    managed: &Rc<Managed<E>>,
    keeper: &Keeper,
    pages: &Changed,
) -> Vec<Failed> {
    let start = managed.map_start();
    let durable = !mutants::is(Mutant::PageNotDurable);
    let image = |(page, other): (&PageKey, &bool)| {
        let (sequence, bytes) = keeper.map.borrow().encode(*page);
        (*page, sequence, copy(&bytes), *other && !mutants::is(Mutant::PageOnce))
    };
    let images: Vec<_> = pages.iter().map(image).collect();
    let mut work = Vec::new();
    for slot in managed.all_taking_part() {
        let map = keeper.map.borrow();
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for ((group, page), sequence, bytes, twice) in &images {
            let turn = if mutants::is(Mutant::PageSamePlace) { 0 } else { *sequence as usize % 2 };
            if let Some(places) = map.geometry().page_offsets(slot, *group, *page) {
                if *twice {
                    other.push((start + places[1 - turn], bytes.clone()));
                }
                if mutants::is(Mutant::PagePast) {
                    let behind = places[0].max(places[1]) + PAGE_BYTES as u64;
                    own.push((start + behind, bytes.clone()));
                }
                own.push((start + places[turn], bytes.clone()));
            }
        }
        if !own.is_empty() {
            work.push((slot, [own, other]));
        }
    }
    let failed = on_drives(managed, work, move |drive, lists| async move {
        for list in lists {
            store::write_pieces(&drive, &list, durable, PAGES_AT_ONCE).await?;
        }
        Ok(())
    })
    .await;
    if mutants::is(Mutant::PageErrorLost) { Vec::new() } else { failed }
}

/// Takes drives out, durably; false if one can't be, because the array ends.
pub(super) async fn take_out<E: Host>(managed: &Rc<Managed<E>>, failed: Vec<&Failed>) -> bool {
    for f in failed {
        managed.drive_failed((f.slot, f.incarnation), f.error, false).await;
        if managed.all_taking_part().contains(&f.slot)
            && managed.drive_of(f.slot).1 == f.incarnation
        {
            return false;
        }
    }
    true
}

/// Tells every core, and waits until all have done what it says.
async fn all_told<E: Host>(managed: &Managed<E>, keeper: &Keeper, mail: &ToCore) {
    keeper.awaited.set(managed.env().cores());
    managed.tell_all(mail);
    if matches!(mail, ToCore::Written(_)) && mutants::is(Mutant::WrittenEarly) {
        return;
    }
    keeper.answered.wait_until(|| (keeper.awaited.get() == 0).then_some(())).await;
}

/// Unwrites bits, durably: those that were written.
async fn unwrite<E: Host>(
    managed: &Rc<Managed<E>>,
    keeper: &Keeper,
    clear: &Clear,
) -> Result<Vec<Bits>, BlockError> {
    // Also where there is nothing: what could not be unwritten before is not, durably.
    if managed.frozen(clear.group) {
        return Err(BlockError::Unavailable);
    }
    let set = keeper.map.borrow().set_bits(clear.group, clear.bits.clone());
    if set.is_empty() {
        return Ok(set);
    }
    keeper.clearing.acquire(1).await;
    let below = keeper.map.borrow_mut().revoke(&set);
    if !mutants::is(Mutant::DiscardUntold) {
        all_told(managed, keeper, &ToCore::Withdraw(set.clone(), below)).await;
    }
    if mutants::is(Mutant::DiscardFirst) {
        discard::early(managed, keeper, &set).await;
    }
    keeper.lock.acquire(1).await;
    let pages = keeper.map.borrow_mut().unwrite(&set);
    let failed = write_pages(managed, keeper, &pages).await;
    keeper.lock.release(1);
    // Who waits for it sees which drives did not take it.
    let out = take_out(managed, failed.iter().collect()).await;
    keeper.clearing.release(1);
    if !out || managed.frozen(clear.group) {
        return Err(BlockError::Unavailable);
    }
    all_told(managed, keeper, &ToCore::Cleared(set.clone())).await;
    Ok(set)
}

/// Cleans what may be cleaned; whether there was anything and it was done.
async fn clean<E: Host>(managed: &Rc<Managed<E>>, keeper: &Keeper) -> bool {
    let regions = keeper.map.borrow().cleanable(|group| !managed.frozen(group));
    if regions.is_empty() {
        return false;
    }
    let groups: BTreeSet<GroupNo> = regions.iter().map(|(group, _)| *group).collect();
    let of = |slot: &Slot| groups.iter().any(|g| managed.layout().slots(*g).any(|s| s == *slot));
    let slots = managed.all_taking_part().into_iter().filter(of);
    let work = slots.map(|slot| (slot, ())).collect();
    let failed = on_drives(managed, work, |drive, ()| async move {
        if drive.info().volatile_cache && !mutants::is(Mutant::CleanUnflushed) {
            drive.flush().await
        } else {
            Ok(())
        }
    })
    .await;
    if !failed.is_empty() {
        return take_out(managed, failed.iter().collect()).await;
    }
    keeper.lock.acquire(1).await;
    let out = |group| managed.lacks(group).then(|| managed.record().epoch.counter);
    let pages = keeper.map.borrow_mut().clean(&regions, out);
    let failed = write_pages(managed, keeper, &pages).await;
    keeper.lock.release(1);
    take_out(managed, failed.iter().collect()).await
}

/// Ends the keeper of an array in which nothing is under way any more: what can be clean is.
pub(super) async fn end<E: Host>(managed: &Rc<Managed<E>>) {
    let keeper = managed.keeper();
    keeper.ended.set(true);
    discard::end(keeper).await;
    let idle = || (!keeper.pumping.get()).then_some(());
    keeper.idle.wait_until(idle).await;
    keeper.map.borrow_mut().revoke_all();
    kick(managed);
    keeper.idle.wait_until(idle).await;
}

impl<E: Host> Managed<E> {
    /// Answers a request of the keeper's, or about what is lost.
    pub(super) fn answer(&self, origin: Origin, result: Result<(), BlockError>) {
        let array = self.local().expect("an array that asks runs");
        array.answer(origin, Outcome::Done(result));
    }

    fn tell(&self, core: CoreId, mail: ToCore) {
        let mail = ArrayMail::Region(mail);
        self.env().post(core, crate::mail::Mail::Array(self.id(), mail));
    }

    fn tell_all(&self, mail: &ToCore) {
        for core in 0..self.env().cores() {
            self.tell(CoreId(core), mail.clone());
        }
    }

    pub(super) fn all_taking_part(&self) -> Vec<Slot> {
        self.taking_part(&self.record())
    }

    /// Whether a drive of the group is out that no record calls failed.
    pub(super) fn frozen(&self, group: GroupNo) -> bool {
        let seats = self.seats.borrow();
        self.layout().slots(group).any(|slot| seats[slot.index()].dropped)
    }

    /// Whether a drive of the group does not count for all of it.
    pub(super) fn lacks(&self, group: GroupNo) -> bool {
        let record = self.record();
        let seats = self.seats.borrow();
        self.layout().slots(group).any(|slot| {
            let i = slot.index();
            record.slots[i].state != SlotState::InSync || seats[i].drive.is_none()
        })
    }

    fn drive_of(&self, slot: Slot) -> (Option<Watched<E>>, u32) {
        let seats = self.seats.borrow();
        let seat = &seats[slot.index()];
        (seat.drive.as_ref().map(|d| d.1.clone()), seat.incarnation)
    }

    /// Where the map area begins on every drive.
    pub(super) fn map_start(&self) -> u64 {
        self.record().areas.map_start
    }

    /// Which groups have dirty regions.
    pub(super) fn dirty_groups(&self) -> Vec<bool> {
        let dirty = |g| self.keeper().map.borrow().dirty_regions(g) > 0;
        (0..self.layout().groups()).map(|g| dirty(GroupNo(g))).collect()
    }

    /// Which groups owe the resync of regions.
    pub(super) fn owed_groups(&self) -> Vec<bool> {
        (0..self.layout().groups()).map(|g| self.owes_regions(GroupNo(g))).collect()
    }

    /// How people name the drive in a slot.
    pub(super) fn path_of(&self, slot: Slot) -> String {
        let seats = self.seats.borrow();
        seats[slot.index()].drive.as_ref().map_or_else(String::new, |d| d.0.path.clone())
    }

    /// Returns when what cores take for unwritten now is so durably, on all drives that are not out
    /// by then. A rebuild that passed over it must not say so before: after a crash it would be
    /// written, and was never filled.
    pub(super) async fn unwritten_durably(&self) {
        self.keeper().clearing.acquire(1).await;
        self.keeper().clearing.release(1);
    }

    /// Whether the group owes the resync of a region, and does not do without until it is whole:
    /// while it lacks a drive nothing else than redundancy that gives all the same can fill that.
    pub(super) fn owes_regions(&self, group: GroupNo) -> bool {
        let owes = self.keeper().map.borrow().owes(group);
        let waits = self.accepted(group) || self.lacks(group) && self.gives(group);
        owes && !waits
    }

    /// Whether what a drive held that is out, or can't read it, is computed also from redundancy
    /// that is owed to a resync: a person accepted what may be wrong, or only pages of the map were
    /// lost, so that nothing is wrong that was ever written.
    pub(super) fn gives_all_the_same(&self, group: GroupNo) -> bool {
        self.accepted(group) || self.gives(group)
    }

    /// Whether a person accepted that what is computed from owed redundancy may be wrong.
    fn accepted(&self, group: GroupNo) -> bool {
        self.record().groups[group.index()].loss_accepted
    }

    /// Whether redundancy is right in all that was ever written to a group.
    fn gives(&self, group: GroupNo) -> bool {
        self.keeper().map.borrow().gives(group)
    }

    /// Whether what was written to a group may not match its redundancy: regions are owed, and not
    /// for lost pages alone.
    pub(super) fn doubts(&self, group: GroupNo) -> bool {
        self.owes_regions(group) && !self.gives(group)
    }

    /// Which groups may have writes under way, or owe the resync of what was written, as a clean
    /// stop says it. What pages of the map have forgotten is owed without that.
    pub(super) fn unclean_groups(&self) -> Vec<bool> {
        let forgotten = |g| self.keeper().map.borrow().only_forgotten(g);
        let dirty = self.dirty_groups().into_iter().zip(0u16..);
        dirty.map(|(dirty, g)| dirty && !forgotten(GroupNo(g))).collect()
    }
}

/// The keeper runs where its mail goes.
const _: () = assert!(MANAGER.0 == 0);

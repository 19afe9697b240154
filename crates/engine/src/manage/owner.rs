//! Which server has a shared array (`docs/owner-pages.md`; D8).
//!
//! Other servers may reach the drives of such an array. So whoever has it says so in its record and
//! on each drive, and looks there, once a period, whether it still is so.
//!
//! | an array is | becomes | when                                                               |
//! |-------------|---------|--------------------------------------------------------------------|
//! | another's   | nobody's| no page of it has moved for long enough, and a person says so, or  |
//! |             |         | it was this host that had it                                       |
//! | nobody's    | claimed | this server has written its pages                                  |
//! | claimed     | owned   | a period later they are still there                                |
//! | claimed     | another's | they are not: the start is refused                               |
//! | owned       | held    | too few drives confirmed it for [`LEASE`] periods: changes wait    |
//! | held        | owned   | enough do                                                          |
//! | owned, held | taken   | a page is another server's: nothing is read or written any more    |
//! | owned       | nobody's| a clean stop                                                       |
//!
//! Invariants
//! - Nothing is written, but pages, before the array is owned, nor while it is held, nor after it
//!   was taken.
//! - A page that is another's is never written over by one who has the array.
//! - A drive has confirmed it as of when its page was asked for, not of when it came.

mod drives;

use crate::Host;
use crate::buffers::copy;
use crate::limits::LEASE;
use crate::manage::Manager;
use crate::manage::command::{DriveRef, Identity, ManageError, OwnerStatus, StartOptions};
use crate::manage::managed::Managed;
use crate::manage::store;
use crate::mutants::{self, Mutant};
use crate::watch::{Lease, Watched};
use core::cell::{Cell, RefCell};
use format::limits::{CONTROLLERS_MAX, OWNER_AT, OWNER_BYTES};
use format::owner::{self, Controller, OwnerPage};
use format::{ArrayRecord, Assembly, Epoch, FormatError, Owner, SlotState};
use io::local::{Event, all_of};
use io::{Drive, DriveError, Env, Guard, Pool, Priority, Reached};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use units::{GroupNo, Nanos, Slot, Uuid};

/// How often a drive is asked at a time.
const BEATS_MOST: u8 = 16;

/// Whoever has had an array, and has let it go since.
const SOMEBODY: &str = "another server";

/// What is waited beyond that.
const MARGIN: Nanos = Nanos::from_millis(1_000);

/// What there is of a drive.
#[derive(Clone, Copy, Default)]
struct Beat {
    /// Of which of the slot's drives.
    incarnation: u32,
    /// As of when it was confirmed.
    confirmed: Option<Nanos>,
    /// How often it is being asked: what is stuck on a path that is lost holds up no other.
    asked: u8,
}

/// This server's, of an array.
pub(super) struct Ownership {
    identity: Arc<Identity>,
    term: u64,
    terms: Terms,
    /// Whether drives may be changed.
    pub lease: Arc<Lease>,
    heartbeat: Cell<u64>,
    beats: RefCell<Vec<Beat>>,
    /// Who has taken the array over.
    taken_by: RefCell<Option<String>>,
    is_over: Cell<bool>,
    changed: Event,
}

/// A page of a term: its owner, its term, its heartbeat.
type Sign = (Option<Owner>, u64, u64);

const fn sign(page: &OwnerPage) -> Sign {
    (page.owner, page.term, page.heartbeat)
}

/// How an array was found that is to be taken: the owner by its record, and the pages that were not
/// this process'.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Was {
    record: Option<Owner>,
    pages: BTreeSet<Sign>,
}

/// Whether two pages are of one owner, in one term.
fn is_of_same(one: &OwnerPage, other: &OwnerPage) -> bool {
    (one.owner, one.term) == (other.owner, other.term)
}

/// What the owner that was needs, by all of its pages.
struct Times {
    fence: Nanos,
    period: Nanos,
}

impl Times {
    fn of<E: Env>(pages: &[Option<OwnerPage>], drives: &[Watched<E>], identity: &Identity) -> Self {
        let longest = |of: fn(&OwnerPage) -> u32| {
            let all = pages.iter().flatten().map(of);
            all.max().map(|ms| Nanos::from_millis(ms.into()))
        };
        let fence = longest(|page| page.fence_ms).or(longest_fence(drives)).unwrap_or_default();
        let period = longest(|page| page.period_ms).unwrap_or(identity.heartbeat);
        Self { fence, period: period.max(identity.heartbeat) }
    }

    /// How long no page may have moved of an owner that is taken for dead.
    fn silence(&self) -> Nanos {
        silence(self.period, self.fence)
    }
}

/// What has to be done behind a look at a drive's page.
enum After {
    Nothing,
    /// It is another's.
    Taken(OwnerPage),
    /// The drive of a slot could not be asked, or told, as by any other request.
    Failed((Slot, u32), DriveError, bool),
}

/// Which record a drive had.
pub(super) type Age = (Epoch, u64);

/// Who had an array.
enum Who {
    /// Nobody, or this very process, nothing of which is under way any more.
    Nobody,
    /// A process of this host and boot, which is no more.
    Process,
    /// This host, another boot of it.
    Boot,
    /// Another host.
    Host,
}

impl Ownership {
    fn owner(&self) -> Owner {
        Owner { host: self.identity.host, boot: self.identity.boot }
    }

    fn period(&self) -> Nanos {
        self.identity.heartbeat
    }

    fn is_own(&self, page: &OwnerPage) -> bool {
        (page.owner, page.term) == (Some(self.owner()), self.term)
    }

    fn is_anothers(&self, page: &OwnerPage) -> bool {
        page.owner.is_some() && !self.is_own(page)
    }

    /// What has to stand on a drive of this array for it to be changed.
    fn guard(&self, array: Uuid) -> Guard {
        Guard { offset: OWNER_AT, begins: owner::named(array, self.owner(), self.term) }
    }

    /// The next page for a drive.
    fn page<E: Host>(&self, array: Uuid, drive: &Watched<E>, wall_millis: u64) -> OwnerPage {
        let heartbeat = self.heartbeat.get() + 1;
        self.heartbeat.set(heartbeat);
        let controllers = drive.reached().map_or_else(Vec::new, |own| own.controllers());
        let controller = |own: io::Controller| {
            let io::Controller { number, uniquifier, random } = own;
            Controller { number, uniquifier, random }
        };
        OwnerPage {
            owner: Some(self.owner()),
            term: self.term,
            heartbeat,
            unix_millis: wall_millis,
            period_ms: millis(self.period()),
            fence_ms: millis(drive.reached().map_or(Nanos(0), Reached::fence)),
            name: self.identity.name.clone(),
            // All of them, or none.
            controllers: match controllers.len() > CONTROLLERS_MAX {
                true => Vec::new(),
                false => controllers.into_iter().map(controller).collect(),
            },
            ..OwnerPage::nobody(array)
        }
    }
}

/// The terms in which this process has, or had, any array.
#[derive(Clone, Default)]
pub(super) struct Terms(Rc<RefCell<BTreeSet<u64>>>);

impl Terms {
    /// Whether a page is another process' than this one.
    fn is_foreign(&self, page: &OwnerPage) -> bool {
        page.owner.is_some() && !self.0.borrow().contains(&page.term)
    }
}

fn millis(span: Nanos) -> u32 {
    u32::try_from(span.0.div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

/// Reads a drive's page; `None` if there is none.
async fn read<E: Env>(drive: &Watched<E>) -> Result<Option<OwnerPage>, DriveError> {
    let (result, bytes) = drive.read(OWNER_AT, Pool::single(OWNER_BYTES)).await;
    match result {
        Err(DriveError::Media) => Ok(None),
        result => result.map(|()| owner::decode(&bytes)),
    }
}

async fn ask_all<E: Env>(drives: &[Watched<E>]) -> Vec<Result<Option<OwnerPage>, DriveError>> {
    all_of(drives.iter().map(read).collect()).await
}

/// The same; one that can't be read is as good as none.
async fn read_all<E: Env>(drives: &[Watched<E>]) -> Vec<Option<OwnerPage>> {
    ask_all(drives).await.into_iter().map(|page| page.ok().flatten()).collect()
}

/// Writes a page; whether no other one was being written, and how that ended.
async fn write<E: Env>(drive: &Watched<E>, page: &OwnerPage) -> (bool, Result<(), DriveError>) {
    drive.write_unleased(OWNER_AT, &[copy(&owner::encode(page))]).await
}

/// How long after the last contact what was sent to any of these may be carried out; `None` if none
/// is reached by connections.
fn longest_fence<E: Env>(drives: &[Watched<E>]) -> Option<Nanos> {
    drives.iter().filter_map(|drive| drive.reached()).map(Reached::fence).max()
}

/// Has a drive be changed whatever stands on it.
pub(super) fn unguard<E: Env>(drive: &Watched<E>) {
    drive.reached().inspect(|reached| reached.guard(None));
}

/// Whether an array of these drives is shared, as its record says or as they are reached.
pub(super) fn is_shared<E: Host>(record: &ArrayRecord, drives: &[Watched<E>]) -> bool {
    record.shared || drives.iter().any(|drive| drive.reached().is_some())
}

impl<E: Host> Manager<E> {
    /// Who has shared arrays here.
    fn identity(&self, record: &ArrayRecord) -> Result<Arc<Identity>, ManageError> {
        let identity = self.inner.identity.borrow().clone();
        identity.ok_or_else(|| ManageError::NoIdentity(record.name.clone()))
    }

    /// What this server needs to have an array, if that is shared.
    pub(super) fn ownership(
        &self,
        record: &ArrayRecord,
        drives: &[Watched<E>],
    ) -> Result<Option<Ownership>, ManageError> {
        if !is_shared(record, drives) {
            return Ok(None);
        }
        let identity = self.identity(record)?;
        let term = self.env().random();
        self.inner.terms.0.borrow_mut().insert(term);
        let lease = Arc::new(Lease::new(Nanos(identity.heartbeat.0 / 4)));
        let beats = RefCell::new(vec![Beat::default(); record.slots.len()]);
        let (heartbeat, taken_by, is_over, changed) = Default::default();
        let terms = self.inner.terms.clone();
        Ok(Some(Ownership {
            identity,
            term,
            terms,
            lease,
            heartbeat,
            beats,
            taken_by,
            is_over,
            changed,
        }))
    }

    /// Waits until an array may be taken that an assembly found, before anything is written. How it
    /// was found then, and whether that took so long that what was read of it is out of date.
    pub(super) async fn may_take(
        &self,
        assembly: &Assembly,
        drives: &[Watched<E>],
        options: StartOptions,
        before: Option<&Was>,
    ) -> Result<(Was, bool), ManageError> {
        let record = &assembly.record;
        if !is_shared(record, drives) {
            return Ok((Was::default(), false));
        }
        let identity = self.identity(record)?;
        if needs_halves(assembly) && options.start_degraded && !options.others_are_off {
            return Err(ManageError::NeedsOthersOff(record.name.clone()));
        }
        let found = self.foreign(drives).await;
        let pages: Vec<OwnerPage> = found.iter().flatten().cloned().collect();
        let was = Was {
            record: record.owner.filter(|_| record.shared),
            pages: pages.iter().map(sign).collect(),
        };
        match before {
            Some(before) if *before == was => return Ok((was, false)),
            Some(_) => return Err(self.owned(record, &pages)),
            None => {}
        }
        let is_known = self.inner.changed.borrow().contains_key(&record.array);
        let times = Times::of(&found, drives, &identity);
        let span = match who(&identity, &was, is_known) {
            Who::Nobody => return Ok((was, false)),
            Who::Host if !options.take_over => return Err(self.owned(record, &pages)),
            Who::Host
                if !options.others_are_off && drives.iter().any(|d| d.reached().is_none()) =>
            {
                return Err(ManageError::NeedsOthersOff(record.name.clone()));
            }
            Who::Host | Who::Boot => times.silence(),
            Who::Process if mutants::is(Mutant::ProcessKept) => Nanos(0),
            Who::Process if end_all(drives, &was).await => Nanos(0),
            Who::Process => times.fence,
        };
        let pages = self.unmoved(record, drives, (found, span, &identity)).await?;
        Ok((Was { pages, ..was }, true))
    }

    /// The pages of drives that are not this process', each by its drive.
    async fn foreign(&self, drives: &[Watched<E>]) -> Vec<Option<OwnerPage>> {
        let all = read_all(drives).await.into_iter();
        all.map(|page| page.filter(|page| self.inner.terms.is_foreign(page))).collect()
    }

    /// Waits until no page has moved for some time, and says which there are then. Of an owner that
    /// is no more a page may still have been under way to each drive: it may move once, and what it
    /// says counts. Refused if one moves twice, or is somebody else's.
    async fn unmoved(
        &self,
        record: &ArrayRecord,
        drives: &[Watched<E>],
        (mut known, span, identity): (Vec<Option<OwnerPage>>, Nanos, &Identity),
    ) -> Result<BTreeSet<Sign>, ManageError> {
        let span = if mutants::is(Mutant::TakeOverEarly) { Nanos(0) } else { span };
        let mut until = self.env().now().after(span);
        let mut have_moved = vec![false; drives.len()];
        loop {
            let left = Nanos(until.0.saturating_sub(self.env().now().0));
            let look = Times::of(&known, drives, identity).period;
            self.env().sleep(left.min(look)).await;
            let is_last = self.env().now() >= until;
            let mut has_moved = false;
            for (at, page) in self.foreign(drives).await.into_iter().enumerate() {
                // One that can't be read now is as it was.
                let Some(page) = page else { continue };
                if known[at].as_ref().map(sign) == Some(sign(&page)) {
                    continue;
                }
                let is_owners = known.iter().flatten().any(|own| is_of_same(own, &page));
                if core::mem::replace(&mut have_moved[at], true) || !is_owners {
                    return Err(self.owned(record, &[page]));
                }
                (known[at], has_moved) = (Some(page), true);
            }
            if has_moved {
                // One that lives moves it once more meanwhile.
                until = self.env().now().after(Times::of(&known, drives, identity).silence());
            } else if is_last {
                return Ok(known.iter().flatten().map(sign).collect());
            }
        }
    }

    /// The refusal of an array that another has, by its pages.
    fn owned(&self, record: &ArrayRecord, pages: &[OwnerPage]) -> ManageError {
        owned(record, pages, self.env().wall_millis())
    }
}

fn owned(record: &ArrayRecord, pages: &[OwnerPage], wall_millis: u64) -> ManageError {
    let newest = pages.iter().max_by_key(|page| page.unix_millis);
    ManageError::Owned {
        array: record.name.clone(),
        host: newest.map_or_else(String::new, |page| page.name.clone()),
        id: newest.and_then(|page| page.owner).or(record.owner).map_or(Uuid::NIL, |o| o.host),
        heartbeat_age_ms: newest.map(|page| wall_millis.saturating_sub(page.unix_millis)),
    }
}

/// How long no page may have moved of an owner that is taken for dead.
fn silence(period: Nanos, fence: Nanos) -> Nanos {
    Nanos(fence.0.max(LEASE * period.0)).after(MARGIN)
}

/// Who had an array that was found so. `is_known`: this very process has had it.
fn who(identity: &Identity, was: &Was, is_known: bool) -> Who {
    let own = Owner { host: identity.host, boot: identity.boot };
    let pages = || was.pages.iter().filter_map(|(owner, ..)| *owner);
    let mut owners = pages().chain(was.record);
    if owners.clone().any(|owner| owner.host != own.host) {
        return Who::Host;
    }
    if owners.any(|owner| owner.boot != own.boot) {
        return Who::Boot;
    }
    let is_dead = pages().next().is_some() || was.record.is_some() && !is_known;
    if is_dead { Who::Process } else { Who::Nobody }
}

/// Whether drives are missing without which a group could be in use elsewhere, as two halves of it
/// can start.
fn needs_halves(assembly: &Assembly) -> bool {
    let Ok(layout) = assembly.record.layout() else { return true };
    let halves =
        |slot: Slot| layout.groups_of(slot).any(|g| layout.descriptor(g).width <= 2 * layout.m(g));
    assembly.missing.iter().any(|missing| halves(missing.slot))
}

/// A controller that a page names.
fn controller(own: &Controller) -> io::Controller {
    let Controller { number, uniquifier, random } = *own;
    io::Controller { number, uniquifier, random }
}

/// Has the controllers ended that the pages of drives name; whether all are.
async fn end_all<E: Env>(drives: &[Watched<E>], was: &Was) -> bool {
    let mut all = true;
    for (drive, page) in drives.iter().zip(read_all(drives).await) {
        let page = page.filter(|page| was.pages.contains(&sign(page)));
        // Without a page nobody knows by what it was reached.
        let (Some(page), Some(reached)) = (page, drive.reached()) else {
            all &= drive.reached().is_none();
            continue;
        };
        let end = |own| reached.end(controller(own));
        let ended = all_of(page.controllers.iter().map(end).collect()).await;
        all &= !ended.is_empty() && ended.into_iter().all(|ended| ended);
    }
    all
}

impl<E: Host> Managed<E> {
    /// Refused if another host has one of the drives of a new array that is shared. How they were
    /// found.
    pub(super) async fn may_be_made(&self) -> Result<Was, ManageError> {
        let Some(own) = &self.owner else { return Ok(Was::default()) };
        let (_, drives): (Vec<Slot>, Vec<Watched<E>>) =
            self.drives_taking_part().into_iter().unzip();
        let has_another =
            |page: &OwnerPage| page.owner.is_some_and(|owner| owner.host != own.identity.host);
        let pages: Vec<OwnerPage> = read_all(&drives).await.into_iter().flatten().collect();
        let was = Was { record: None, pages: pages.iter().map(sign).collect() };
        self.nobodys(pages.into_iter().filter(has_another).collect())?;
        Ok(was)
    }

    /// Takes the array for this server, if it is shared: behind this it may be written.
    pub(super) async fn claim(self: &Rc<Self>, was: &Was) -> Result<(), ManageError> {
        let Some(own) = &self.owner else { return Ok(()) };
        let outcome = self.claim_as(own, was).await;
        match outcome {
            Ok(()) => self.env().spawn(Priority::First, beat(self.clone())),
            Err(_) => self.end_ownership(true).await,
        }
        outcome
    }

    async fn claim_as(&self, own: &Ownership, was: &Was) -> Result<(), ManageError> {
        let (slots, drives): (Vec<Slot>, Vec<Watched<E>>) =
            self.drives_taking_part().into_iter().unzip();
        // What another array here asked of them, it asks no more.
        drives.iter().for_each(unguard);
        let begun = self.env().now();
        let asked = ask_all(&drives).await;
        let pages: Vec<&OwnerPage> = asked.iter().flatten().flatten().collect();
        let is_new =
            |page: &&OwnerPage| own.terms.is_foreign(page) && !was.pages.contains(&sign(page));
        self.nobodys(pages.iter().copied().filter(is_new).cloned().collect())?;
        let longest = pages.iter().map(|page| Nanos::from_millis(page.period_ms.into())).max();
        let period = own.period().max(longest.unwrap_or_default());
        // One that can't say whose it is stays as it is.
        let told = drives.iter().zip(&asked).filter(|(_, page)| page.is_ok());
        all_of(told.map(|(drive, _)| self.write_page(own, drive)).collect()).await;
        let took = self.env().now().since(begun);
        let wait = match took <= period {
            true => period,
            // Who had it meanwhile has to see that.
            false => silence(period, longest_fence(&drives).unwrap_or_default()),
        };
        self.env().sleep(wait).await;
        let guard = own.guard(self.record().array);
        for drive in &drives {
            drive.reached().inspect(|reached| reached.guard(Some(guard.clone())));
        }
        let asked = self.env().now();
        let pages = read_all(&drives).await;
        for (slot, page) in slots.iter().zip(&pages) {
            if page.as_ref().is_some_and(|page| own.is_own(page)) {
                own.beats.borrow_mut()[slot.index()].confirmed = Some(asked);
            }
        }
        let anothers = pages.into_iter().flatten().filter(|page| own.is_anothers(page));
        self.nobodys(anothers.collect())?;
        // Connections that were made before the guard was set are named by no page yet.
        all_of(drives.iter().map(|drive| self.name_anew(own, drive)).collect()).await;
        for drive in &drives {
            drive.lease(&own.lease);
        }
        self.renew(own);
        match own.lease.holds(self.env().now()) {
            true => Ok(()),
            false => Err(ManageError::Unconfirmed(self.record().name.clone())),
        }
    }

    /// Refused if drives have other records than when they were read, before the array was claimed:
    /// another server had it in between.
    pub(super) async fn are_as_read(&self, read: &[Option<Age>]) -> Result<(), ManageError> {
        if self.owner.is_none() {
            return Ok(());
        }
        let again = self.drives_taking_part().into_iter().map(|(slot, drive)| async move {
            let record = match store::read(&drive).await {
                Ok(Ok((_, record))) => record,
                Ok(Err(FormatError::TailMissing { record, .. })) => *record,
                // As any request finds out.
                _ => return true,
            };
            read[slot.index()] == Some((record.epoch, record.sequence))
        });
        let all = all_of(again.collect()).await;
        match all.into_iter().all(|own| own) {
            true => Ok(()),
            false => Err(ManageError::Meanwhile(self.record().name.clone())),
        }
    }

    /// Says in a record that this server has the array, if it is shared.
    pub(super) fn own_record(&self, record: &mut ArrayRecord) {
        if let Some(own) = &self.owner {
            (record.shared, record.owner) = (true, Some(own.owner()));
        }
    }

    /// Refused if there is a page of another.
    fn nobodys(&self, others: Vec<OwnerPage>) -> Result<(), ManageError> {
        match others.is_empty() {
            true => Ok(()),
            false => Err(owned(&self.record(), &others, self.env().wall_millis())),
        }
    }

    /// Writes this server's next page to a drive.
    async fn write_page(&self, own: &Ownership, drive: &Watched<E>) -> Result<(), DriveError> {
        let page = own.page(self.record().array, drive, self.env().wall_millis());
        let (is_alone, result) = write(drive, &page).await;
        result?;
        // An older one that was under way may be carried out behind it, and does not name whoever
        // came in between. Those that come later name all that this one does, as far as they live.
        if is_alone {
            let named: Vec<_> = page.controllers.iter().map(controller).collect();
            drive.reached().inspect(|reached| reached.named(&named));
        }
        Ok(())
    }

    /// Who has the array, if it is shared.
    pub(super) fn owner_status(&self) -> Option<OwnerStatus> {
        let own = self.owner.as_ref()?;
        Some(OwnerStatus {
            identity: own.identity.clone(),
            lease: own.lease.clone(),
            is_held: !own.lease.holds(self.env().now()),
            taken_by: own.taken_by.borrow().clone(),
        })
    }

    /// Prolongs the lease by what drives have confirmed.
    fn renew(&self, own: &Ownership) {
        let (record, seats, beats) = (self.record(), self.seats.borrow(), own.beats.borrow());
        let layout = self.layout();
        let confirmed = |slot: Slot| {
            let (seat, beat) = (&seats[slot.index()], &beats[slot.index()]);
            // One that is given up is out, whether or not that is recorded yet: the record may be
            // what waits.
            let is_in = |own: &(DriveRef<E::Shared>, Watched<E>)| !own.1.is_given_up();
            let counts = record.slots[slot.index()].state != SlotState::Failed
                && seat.drive.as_ref().is_some_and(is_in)
                && !seat.dropped;
            let own = seat.incarnation == beat.incarnation;
            counts.then_some(beat.confirmed.filter(|_| own))
        };
        let mut since: Option<Nanos> = None;
        for group in (0..layout.groups()).map(GroupNo) {
            let spare = usize::from(layout.m(group));
            let all: Vec<_> = layout.slots(group).map(confirmed).collect();
            let out = all.iter().filter(|own| own.is_none()).count();
            let mut times: Vec<Option<Nanos>> = all.into_iter().map(Option::flatten).collect();
            times.sort_unstable();
            // A group that has failed is asked for all that it still has: what holds that up can
            // be ended.
            let Some(time) = times.get(spare.max(out)) else { continue };
            let Some(time) = *time else { return };
            since = Some(since.map_or(time, |since| since.min(time)));
        }
        if let Some(since) = since {
            let until = since.after(Nanos(LEASE * own.period().0));
            own.lease.prolong(until, self.env().wall_millis());
        }
    }

    /// Asks the drive of a slot whether it is still this server's, and says so anew. What has to be
    /// done behind that.
    async fn beat_slot(&self, own: &Ownership, slot: Slot) -> After {
        let (drive, incarnation) = {
            let seats = self.seats.borrow();
            let seat = &seats[slot.index()];
            let drive = seat.drive.as_ref().map(|own| own.1.clone());
            let Some(drive) = drive else { return After::Nothing };
            (drive, seat.incarnation)
        };
        let asked = self.env().now();
        let page = match read(&drive).await {
            Ok(page) => page,
            Err(error) => return After::Failed((slot, incarnation), error, true),
        };
        let is_own = match page {
            Some(_) if mutants::is(Mutant::OwnerUnread) => true,
            // Whoever has stopped it since has made it nobody's.
            Some(page) if !own.is_own(&page) => return After::Taken(page),
            page => page.is_some(),
        };
        // What was read longer ago may be another's by now.
        if !self.may_write_page(own, asked) {
            return After::Nothing;
        }
        if let Err(error) = self.write_page(own, &drive).await {
            return After::Failed((slot, incarnation), error, false);
        }
        if is_own {
            let confirmed = Some(asked);
            let mut beats = own.beats.borrow_mut();
            let beat = &mut beats[slot.index()];
            let is_newer = beat.incarnation != incarnation || beat.confirmed < confirmed;
            if is_newer {
                (beat.incarnation, beat.confirmed) = (incarnation, confirmed);
            }
            drop(beats);
            self.renew(own);
        }
        After::Nothing
    }

    /// Another server has the array.
    async fn taken_over(&self, own: &Ownership, page: &OwnerPage) {
        if own.taken_by.borrow().is_some() {
            return;
        }
        let id = page.owner.map_or_else(|| SOMEBODY.to_owned(), |own| own.host.to_string());
        let by = if page.name.is_empty() { id } else { page.name.clone() };
        *own.taken_by.borrow_mut() = Some(by);
        own.lease.revoke();
        // A start fails by that.
        self.is_started().await;
        self.lock.acquire(1).await;
        self.seats.borrow_mut().iter_mut().for_each(|seat| seat.dropped = true);
        self.news.set(true);
        if self.is_running() && !self.closed() {
            self.publish(false).await;
        }
        self.lock.release(1);
        self.tasks.changed.notify();
    }

    /// This server has the array no more. Its pages say so if it was stopped cleanly, or never
    /// began.
    pub(super) async fn end_ownership(&self, is_clean: bool) {
        let Some(own) = &self.owner else { return };
        own.is_over.set(true);
        own.changed.notify();
        let is_idle = || own.beats.borrow().iter().all(|beat| beat.asked == 0);
        own.changed.wait_until(|| is_idle().then_some(())).await;
        let drives: Vec<Watched<E>> = {
            let seats = self.seats.borrow();
            seats.iter().filter_map(|seat| seat.drive.as_ref().map(|own| own.1.clone())).collect()
        };
        let is_own = is_clean && !own.lease.is_revoked();
        // What waits to be sent to a drive is not sent any more.
        own.lease.revoke();
        // Nor is what a drive's paths may have, if another has it when they are back: the guards
        // stay.
        if !is_own {
            return;
        }
        let nobodys = OwnerPage::nobody(self.record().array);
        for (drive, page) in drives.iter().zip(read_all(&drives).await) {
            if page.is_some_and(|page| own.is_own(&page)) {
                // Who finds it waits for longer.
                let _ = write(drive, &nobodys).await;
            }
        }
    }
}

/// Has the drives of an array confirm, once a period and each by itself, that it is this server's.
async fn beat<E: Host>(managed: Rc<Managed<E>>) {
    let Some(own) = &managed.owner else { return };
    loop {
        managed.env().sleep(own.period()).await;
        if own.is_over.get() {
            return;
        }
        for (slot, _) in managed.drives_taking_part() {
            let asked = &mut own.beats.borrow_mut()[slot.index()].asked;
            if *asked >= BEATS_MOST {
                continue;
            }
            *asked += 1;
            let managed = managed.clone();
            managed.env().clone().spawn(Priority::First, async move {
                let Some(own) = &managed.owner else { return };
                let after = managed.beat_slot(own, slot).await;
                // Before what a stop may hold up that waits for this.
                own.beats.borrow_mut()[slot.index()].asked -= 1;
                own.changed.notify();
                match after {
                    After::Taken(page) => managed.taken_over(own, &page).await,
                    After::Failed(seat, error, read) if managed.is_running() => {
                        managed.drive_failed(seat, error, read).await;
                    }
                    After::Nothing | After::Failed(..) => {}
                }
            });
        }
    }
}

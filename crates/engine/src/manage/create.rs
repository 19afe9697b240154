//! Making, starting, stopping and deleting arrays.

use crate::Host;
use crate::array::message::ArrayId;
use crate::journal::GROUP;
use crate::manage::Manager;
use crate::manage::command::{
    ArrayState, ArrayStatus, DriveRef, ManageError, NewArray, StartOptions,
};
use crate::manage::managed::{Managed, Phase, Seat, Taken};
use crate::manage::owner::Age;
use crate::manage::plan::{Offered, Plan, check_cores, plan};
use crate::manage::store::{self, NextSlot};
use crate::manage::{area, discard, doubt, gap, guard, keeper, pages, replay, tasks};
use crate::mutants::{self, Mutant};
use crate::watch::Watched;
use format::{ArrayRecord, AssembleOptions, Assembly, FormatError, Found, SlotState};
use io::local::all_of;
use io::{Drive, DriveError};
use layout::CodeKind;
use std::rc::Rc;
use units::{GroupNo, Slot, Uuid};

/// What was found on one drive.
struct Candidate<E: Host> {
    reference: DriveRef<E::Shared>,
    drive: Watched<E>,
    next: NextSlot,
    record: ArrayRecord,
    /// Why the record may not be the newest.
    doubt: Option<FormatError>,
}

type Drives<E> = Vec<DriveRef<<E as io::Env>::Shared>>;

impl<E: Host> Manager<E> {
    fn new_id(&self) -> ArrayId {
        let id = self.inner.next_id.get();
        self.inner.next_id.set(id + 1);
        ArrayId(id)
    }

    fn name_is_free(&self, name: &str) -> Result<(), ManageError> {
        match self.named(name) {
            Ok(_) => Err(ManageError::NameTaken(name.to_owned())),
            Err(_) => Ok(()),
        }
    }

    /// Takes an array into the list, under its name, from here on.
    fn admit(
        &self,
        phase: Phase,
        record: ArrayRecord,
        seats: Vec<Option<Taken<E>>>,
    ) -> Result<Rc<Managed<E>>, ManageError> {
        let drives: Vec<_> = seats.iter().flatten().map(|own| own.1.clone()).collect();
        let owner = self.ownership(&record, &drives)?;
        let managed = Managed::new(self, self.new_id(), phase, record, seats, owner);
        let managed = Rc::new(managed);
        self.inner.arrays.borrow_mut().push(managed.clone());
        self.note_change(&managed);
        Ok(managed)
    }

    fn forget(&self, managed: &Managed<E>) {
        self.inner.arrays.borrow_mut().retain(|a| a.id() != managed.id());
        self.note_change(managed);
        managed.let_go();
        managed.enter(Phase::Over);
    }

    fn note_change(&self, managed: &Managed<E>) {
        let now = self.inner.changes.get() + 1;
        self.inner.changes.set(now);
        self.inner.changed.borrow_mut().insert(managed.record().array, now);
    }

    /// Whether the array came or went after `since`.
    fn changed_since(&self, since: u64, array: Uuid) -> bool {
        self.inner.changed.borrow().get(&array).is_some_and(|at| *at > since)
    }

    /// Makes an array: erases what was there, writes the first records and an empty region map, and
    /// only then calls the array usable.
    pub(super) async fn create(
        &self,
        new: NewArray,
        references: Vec<DriveRef<E::Shared>>,
    ) -> Result<ArrayStatus, ManageError> {
        self.name_is_free(&new.name)?;
        let drives = references.iter().map(|r| self.open(r)).collect::<Result<Vec<_>, _>>()?;
        let record = self.first_record(&new, &references, &drives)?;
        record.check().map_err(ManageError::Impossible)?;
        let seats = references.into_iter().zip(drives);
        let seats = seats.map(|(r, d)| Some((r, d, NextSlot::default()))).collect();
        let managed = self.admit(Phase::Making, record, seats)?;
        let outcome = self.make(&managed).await;
        if outcome.is_err() {
            managed.end_ownership(true).await;
            self.forget(&managed);
        }
        outcome
    }

    fn first_record(
        &self,
        new: &NewArray,
        references: &[DriveRef<E::Shared>],
        drives: &[Watched<E>],
    ) -> Result<ArrayRecord, ManageError> {
        let offered = |(r, d): (&DriveRef<E::Shared>, &Watched<E>)| Offered {
            path: r.path.clone(),
            bytes: d.info().bytes,
            block_bytes: d.info().block_bytes,
            is_file: r.is_file,
        };
        let offered: Vec<_> = references.iter().zip(drives).map(offered).collect();
        let Plan { layout, split, block_bytes } = plan(new, &offered, self.env().cores())?;
        let identities: Vec<(Uuid, String)> =
            references.iter().map(|r| (self.uuid(), recorded(&r.serial))).collect();
        let (array, epoch) = (self.uuid(), self.env().random());
        let name = &new.name;
        let record =
            ArrayRecord::new(array, name, epoch, block_bytes, &layout, &split, &identities);
        Ok(ArrayRecord { shared: new.shared, ..record })
    }

    async fn make(&self, managed: &Rc<Managed<E>>) -> Result<ArrayStatus, ManageError> {
        let was = managed.may_be_made().await?;
        // Of two servers that make arrays of the same drives one has them from here on.
        managed.claim(&was).await?;
        erase_drives(managed, true).await?;
        if let Err(error) = fill(managed).await {
            // Nothing on these drives is worth a refusal next time.
            let _ = erase_drives(managed, false).await;
            return Err(error);
        }
        Ok(self.run_on_cores(managed).await)
    }

    /// Starts an array whose records say so, and its keeper.
    async fn run_on_cores(&self, managed: &Rc<Managed<E>>) -> ArrayStatus {
        managed.start_on_cores().await;
        managed.enter(Phase::Running);
        tasks::start(managed.clone());
        // Regions that the journal stood for are right.
        keeper::kick(managed);
        guard::start(managed.clone());
        managed.status()
    }

    /// Starts the arrays that these drives hold, or the one called `name`.
    pub(super) async fn assemble(
        &self,
        name: Option<String>,
        references: Vec<DriveRef<E::Shared>>,
        options: StartOptions,
    ) -> Result<Vec<ArrayStatus>, ManageError> {
        let since = self.inner.changes.get();
        let (mut candidates, held) = self.look(references).await;
        let explained = |error: ManageError| match (&held, error) {
            (Some(path), ManageError::Assemble(_) | ManageError::NothingFound) => {
                ManageError::Quarantined(path.clone())
            }
            (_, error) => error,
        };
        let wanted = |record: &ArrayRecord| match &name {
            Some(name) => record.name == *name || name.parse() == Ok(record.array),
            None => true,
        };
        let mut arrays: Vec<Uuid> = Vec::new();
        for candidate in &candidates {
            if wanted(&candidate.record) && !arrays.contains(&candidate.record.array) {
                arrays.push(candidate.record.array);
            }
        }
        if arrays.is_empty() {
            return Err(explained(ManageError::NothingFound));
        }
        let mut started = Vec::new();
        for uuid in arrays {
            let mine = |c: &Candidate<E>| c.record.array == uuid;
            let (found, rest): (Vec<_>, Vec<_>) = candidates.into_iter().partition(mine);
            candidates = rest;
            let found = self.start_found(found, options, since).await;
            started.push(found.map_err(explained)?);
        }
        Ok(started)
    }

    /// Reads the records of drives, all at once; with the path of one that can't be read because
    /// of what is still under way, if there is one.
    async fn look(
        &self,
        references: Vec<DriveRef<E::Shared>>,
    ) -> (Vec<Candidate<E>>, Option<String>) {
        let (mut held, mut looks) = (None, Vec::new());
        for reference in references {
            match self.open(&reference) {
                Ok(drive) => looks.push(self.look_at(reference, drive)),
                Err(_) => held = Some(reference.path),
            }
        }
        (all_of(looks).await.into_iter().flatten().collect(), held)
    }

    /// Reads the record of a drive.
    async fn look_at(
        &self,
        reference: DriveRef<E::Shared>,
        mut drive: Watched<E>,
    ) -> Option<Candidate<E>> {
        let read = match store::settle(&drive).await {
            // It will not flush for its array either (`watch::flush`), and that says so.
            Ok(()) | Err(DriveError::Fault) => store::read(&drive).await,
            Err(error) => Err(error),
        };
        match read {
            Ok(Ok((next, record))) => {
                Some(Candidate { reference, drive, next, record, doubt: None })
            }
            Ok(Err(FormatError::TailMissing { record, slot })) => {
                let (own, next) = ((*record).clone(), NextSlot(format::next_slot(slot)));
                let doubt = Some(FormatError::TailMissing { record, slot });
                Some(Candidate { reference, drive, next, record: own, doubt })
            }
            Ok(Err(_)) => None,
            Err(_) => {
                self.inner.quarantine.hold(&reference.path, drive.retire());
                None
            }
        }
    }

    async fn start_found(
        &self,
        mut found: Vec<Candidate<E>>,
        options: StartOptions,
        since: u64,
    ) -> Result<ArrayStatus, ManageError> {
        let (assemble, mut was) = (options.assemble(), None);
        let (list, assembly, was) = loop {
            let record = &found[0].record;
            if self.changed_since(since, record.array) {
                return Err(ManageError::NameTaken(record.name.clone()));
            }
            self.name_is_free(&record.name)?;
            let list: Vec<Found> = found.iter().map(as_found).collect();
            let assembly = format::assemble(&list, assemble)?;
            check_cores(&assembly.record, self.env().cores())?;
            let drives = assembly.slots.iter().flatten().map(|at| found[*at].drive.clone());
            let drives: Vec<_> = drives.collect();
            let (now, is_outdated) =
                self.may_take(&assembly, &drives, options, was.as_ref()).await?;
            if !is_outdated {
                break (list, assembly, now);
            }
            was = Some(now);
            let again = found.into_iter().map(|own| own.reference).collect();
            let (looked, held) = self.look(again).await;
            found = looked;
            if found.is_empty() {
                return Err(held.map_or(ManageError::NothingFound, ManageError::Quarantined));
            }
        };
        let age = |r: &ArrayRecord| (r.epoch, r.sequence);
        let read = |at: &Option<usize>| at.map(|at| age(&found[at].record));
        let read: Vec<Option<Age>> = assembly.slots.iter().map(read).collect();
        let mut found: Vec<Option<Candidate<E>>> = found.into_iter().map(Some).collect();
        let mut seat = |index: &Option<usize>| {
            let c = found[(*index)?].take()?;
            Some((c.reference, c.drive, c.next))
        };
        let seats = assembly.slots.iter().map(&mut seat).collect();
        let older = |at: &usize| list[*at].record.as_ref().map(age) != Ok(age(&assembly.record));
        let catch_up = assembly.slots.iter().flatten().any(older);
        let managed = self.admit(Phase::Starting, assembly.record.clone(), seats)?;
        managed.found(&assembly);
        let begun = async {
            managed.claim(&was).await?;
            managed.are_as_read(&read).await?;
            self.begin(&managed, assembly, catch_up, assemble).await
        };
        match begun.await {
            Ok(()) => Ok(self.run_on_cores(&managed).await),
            Err(error) => {
                managed.end_ownership(false).await;
                self.forget(&managed);
                Err(error)
            }
        }
    }

    /// Writes the records with which an assembled array starts. Until the last of them the key and
    /// the guard are as found ([`guard`]).
    async fn begin(
        &self,
        managed: &Managed<E>,
        mut assembly: Assembly,
        catch_up: bool,
        options: AssembleOptions,
    ) -> Result<(), ManageError> {
        let accept_loss = options.accept_loss;
        let map = pages::read(managed).await;
        let set_back = pages::set_back(managed, &map);
        if !set_back.is_empty() {
            assembly.leave_out(&set_back, options)?;
            managed.found(&assembly);
        }
        let mut lacking = pages::load(managed, &map, true);
        // However often a start is cut short, no drive falls behind by two epochs, and none that
        // was left behind before stays so: all have the newest before the next one is begun. Nor
        // does one that was set back count again where the next start finds less to tell it by.
        if catch_up || !set_back.is_empty() {
            managed.commit(false, |_| ()).await?;
            managed.all_there()?;
        }
        let said = area::read(managed).await;
        let whole = !managed.lacks(GROUP);
        let hidden = said.as_ref().filter(|said| whole && said.may_hide(managed));
        let decided = match &said {
            Some(said) if hidden.is_none() => {
                carry_out(managed, &mut assembly, (accept_loss, &mut lacking), said).await?
            }
            Some(_) => doubt::Decided::Unguarded,
            None => doubt::Decided::Right,
        };
        if decided == doubt::Decided::Unguarded {
            // What its dirty regions owe is asked of the map again.
            lacking = pages::load(managed, &map, false);
        }
        managed.guard.carried_out();
        if mutants::is(Mutant::EpochAtStart) {
            return Ok(());
        }
        let (epoch_id, dirty) = (self.env().random(), managed.dirty_groups());
        let owed = managed.owed_groups();
        let has_journal = managed.guard.area.is_some();
        let how = (epoch_id, accept_loss, has_journal);
        let begun = |r: &mut ArrayRecord| {
            *r = begun(&assembly, r, how, (&dirty, &owed));
            managed.own_record(r);
            if mutants::is(Mutant::LostForgotten) {
                r.lost.clear();
            }
        };
        managed.commit(false, begun).await?;
        if let Some(said) = hidden {
            said.clear(managed).await;
        }
        pages::bring_all(managed, lacking).await
    }

    /// Stops an array: nothing is in flight, everything is flushed, the record says clean.
    pub(super) async fn stop(&self, managed: &Rc<Managed<E>>) -> Result<(), ManageError> {
        self.stop_and_tell(managed, false).await.map(|_| ())
    }

    /// The same: the drives that it had, without those that it has called failed. `keeps`: those of
    /// a shared array still say that this server has it.
    async fn stop_and_tell(
        &self,
        managed: &Rc<Managed<E>>,
        keeps: bool,
    ) -> Result<Drives<E>, ManageError> {
        tasks::end(managed).await;
        managed.replacing.acquire(1).await;
        managed.volume_lock.acquire(1).await;
        let outcome = match managed.stopped() {
            true => Err(ManageError::NoArray(managed.record().name.clone())),
            false => self.stop_locked(managed, keeps).await,
        };
        managed.volume_lock.release(1);
        managed.replacing.release(1);
        outcome
    }

    async fn stop_locked(
        &self,
        managed: &Rc<Managed<E>>,
        keeps: bool,
    ) -> Result<Drives<E>, ManageError> {
        // Who waits for discards is under way.
        discard::forget_all(managed.keeper());
        managed.publish_stopped().await;
        // Until here what is under way may have waited for it.
        guard::end(managed).await;
        keeper::end(managed).await;
        managed.lock.acquire(1).await;
        let slots = managed.seats.borrow().len();
        let mut flushed = true;
        for slot in (0..slots).map(|i| Slot(i as u16)) {
            let counts = managed.record().slots[slot.index()].state != SlotState::Failed;
            let skip = mutants::is(Mutant::StopUnflushed);
            if counts && !skip && !managed.flush_slot(slot).await {
                // Without it the array is clean only if the failure could be recorded.
                flushed &= managed.record().slots[slot.index()].state == SlotState::Failed;
            }
        }
        managed.close();
        let dropped = managed.seats.borrow().iter().any(|s| s.dropped);
        let outcome = if flushed && !dropped {
            let owed = managed.unclean_groups();
            let stopped = |r: &mut ArrayRecord| {
                r.groups.iter_mut().zip(owed).for_each(clean);
                // Nothing that is in the journal is needed any more.
                r.journal_key = 0;
                if managed.owner.is_some() {
                    r.owner = None;
                }
            };
            managed.commit(true, stopped).await
        } else {
            Ok(())
        };
        managed.end_ownership(flushed && !dropped && outcome.is_ok() && !keeps).await;
        let drives = {
            let (record, seats) = (managed.record(), managed.seats.borrow());
            let own = record.slots.iter().zip(seats.iter());
            let own = own.filter(|(slot, _)| slot.state != SlotState::Failed);
            let drive = |(_, seat): (_, &Seat<E>)| seat.drive.as_ref().map(|d| d.0.clone());
            own.filter_map(drive).collect()
        };
        self.forget(managed);
        managed.lock.release(1);
        outcome.map(|()| drives)
    }

    /// Stops an array and erases its records, but on drives that it has called failed: these may be
    /// another array's by now. Those of a shared one are this server's until they are erased.
    pub(super) async fn delete(&self, managed: &Rc<Managed<E>>) -> Result<(), ManageError> {
        let mut outcome = Ok(());
        for reference in self.stop_and_tell(managed, true).await? {
            outcome = outcome.and(self.erase(managed, reference).await);
        }
        outcome
    }

    /// Leaves no record and no signature on a drive of an array that is over, unless another server
    /// has it by now.
    async fn erase(
        &self,
        managed: &Managed<E>,
        reference: DriveRef<E::Shared>,
    ) -> Result<(), ManageError> {
        let mut drive = self.open(&reference)?;
        managed.may_be_erased(&reference.path, &drive).await?;
        let erased = managed.erase(&drive, false).await;
        if erased.is_err() {
            managed.bar(&drive);
            self.inner.quarantine.hold(&reference.path, drive.retire());
        }
        erased.map_err(|e| ManageError::Drive(reference.path, e))
    }
}

/// What an assembly knows of a drive.
fn as_found<E: Host>(c: &Candidate<E>) -> Found {
    Found {
        path: c.reference.path.clone(),
        record: c.doubt.clone().map_or_else(|| Ok(c.record.clone()), Err),
        bytes: c.drive.info().bytes,
        block_bytes: c.drive.info().block_bytes,
    }
}

/// Calls a group clean, unless it owes a resync that nobody has accepted to do without.
fn clean((group, dirty): (&mut format::GroupRecord, bool)) {
    group.unclean = dirty && !group.loss_accepted;
}

/// Leaves no record and no signature on the drives of a new array, each that can be written; what
/// says whose they are is kept, or is not ([`Managed::erase`]).
async fn erase_drives<E: Host>(managed: &Managed<E>, keeps: bool) -> Result<(), ManageError> {
    let drives: Vec<_> = managed.seats.borrow().iter().filter_map(|s| s.drive.clone()).collect();
    let mut outcome = Ok(());
    for (reference, drive) in drives {
        let erased = managed.erase(&drive, keeps).await;
        outcome = outcome.and(erased.map_err(|e| ManageError::Drive(reference.path, e)));
    }
    outcome
}

/// Brings the drives of a new array to where it may start: recorded, with an empty region map, and
/// recorded as made.
async fn fill<E: Host>(managed: &Rc<Managed<E>>) -> Result<(), ManageError> {
    managed.commit(false, |r| managed.own_record(r)).await?;
    for (slot, drive) in managed.drives_taking_part() {
        if let Err(error) = pages::write_all(managed, slot, &drive).await {
            return Err(ManageError::Drive(managed.path_of(slot), error));
        }
    }
    if managed.cancelled() {
        return Err(ManageError::Cancelled(managed.record().name.clone()));
    }
    managed.enter(Phase::Starting);
    let guarded = managed.guard.area.is_some();
    let zeroed = |r: &mut ArrayRecord| {
        r.zeroed = true;
        r.groups.iter_mut().for_each(|group| group.guarded = guarded);
    };
    managed.commit(false, zeroed).await?;
    match managed.state() {
        ArrayState::Optimal => Ok(()),
        lacking => Err(ManageError::State(lacking)),
    }
}

/// Carries out what the journal area says, unless some of it is missing and nobody accepts that.
/// The pages by which it goes are on all drives before.
async fn carry_out<E: Host>(
    managed: &Managed<E>,
    assembly: &mut Assembly,
    (accept_loss, lacking): (bool, &mut Vec<pages::Lacking>),
    said: &area::Said,
) -> Result<doubt::Decided, ManageError> {
    let gap = gap::find(said);
    if let Some(gap) = gap.filter(|_| !accept_loss) {
        return Err(gap.into());
    }
    if said.is_anything() {
        pages::bring_first(managed, core::mem::take(lacking), &mut assembly.missing).await?;
    }
    if gap.is_some() {
        return gap::accept(managed, assembly).await;
    }
    replay::carry_out(managed, assembly, said).await?;
    doubt::carry_out(managed, assembly, accept_loss, said).await
}

/// The record with which an assembled array starts, made of its present one; with which groups have
/// dirty regions, and which owe some.
fn begun(
    assembly: &Assembly,
    now: &ArrayRecord,
    (epoch_id, accept_loss, journal): (u64, bool, bool),
    (dirty, owed): (&[bool], &[bool]),
) -> ArrayRecord {
    let mut record = Assembly { record: now.clone(), ..assembly.clone() }.begin(epoch_id);
    let layout = record.layout().expect("an assembled record has a layout");
    for (g, group) in record.groups.iter_mut().enumerate() {
        let clean = !group.unclean;
        let group_no = GroupNo(g as u16);
        let in_sync = |s: Slot| record.slots[s.index()].state == SlotState::InSync;
        let lacking = !layout.slots(group_no).all(in_sync);
        let parity = layout.descriptor(group_no).code == CodeKind::Parity;
        // What a guarded group owed was carried out, and a clean one owed nothing, but for lost
        // pages, and where nobody knows all that was in flight.
        let owes = (group.unclean || dirty[g]) && (!(group.guarded || clean) || owed[g]);
        if accept_loss && lacking && parity && owes {
            (group.loss_accepted, group.unclean) = (true, false);
        }
        // A page that was lost calls everything dirty, whatever the record said.
        group.unclean |= dirty[g] && !group.loss_accepted;
        // Nothing is under way: from here on all that is written to it is in the journal area.
        group.guarded = journal && parity && (!owes || group.loss_accepted);
    }
    // Nothing that is in the journal counts any more.
    record.journal_key = 0;
    record
}

/// A serial number as a record may hold it: cut, and without control characters.
pub(super) fn recorded(serial: &str) -> String {
    let mut text = String::new();
    for c in serial.chars().map(|c| if c.is_control() { '?' } else { c }) {
        if text.len() + c.len_utf8() > format::limits::SERIAL_MAX {
            break;
        }
        text.push(c);
    }
    text
}

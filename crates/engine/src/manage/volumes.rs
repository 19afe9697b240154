//! Drives, volumes and exports of a running array, changed on request.
//!
//! Volumes lie on whole rows (one band of every group of a range). A new volume's rows read as
//! zeros: they are unwritten before the volume is recorded. A volume that shrinks or goes gives its
//! rows back only after a drained publication, so that no request under way can still reach them.

use crate::Host;
use crate::array::view::DirectWrites;
use crate::limits::PAGE_PASSES;
use crate::manage::command::{
    ArrayStatus, DriveRef, ExportStatus, ManageError, NewSize, Shrink, SlotHealth, SlotStatus,
    VolumeStatus, WhichVolume,
};
use crate::manage::create::recorded;
use crate::manage::managed::{Managed, Seat};
use crate::manage::pages;
use crate::manage::plan::check_name;
use crate::manage::store::{self, NextSlot};
use crate::mutants::{self, Mutant};
use crate::watch::Watched;
use format::{
    ArrayRecord, ExportAddress, ExportRecord, Extent, SlotRecord, SlotState, VolumeRecord,
};
use io::{Drive, DriveError};
use std::rc::Rc;
use units::{Slot, SlotSet, Uuid};

/// As what a drive joins.
struct Joins {
    /// Where its next record goes.
    next: NextSlot,
    /// Its identity.
    uuid: Uuid,
    /// It is whole up to this epoch, or 0.
    since: u64,
}

impl<E: Host> Managed<E> {
    /// The slot whose drive has this path or serial number, or is named `slot:N`.
    fn slot_of(&self, drive: &str) -> Result<Slot, ManageError> {
        let by_number = drive.strip_prefix("slot:").and_then(|n| n.parse::<u16>().ok());
        let named = |s: &&SlotStatus| {
            Some(s.slot.0) == by_number || s.path.as_deref() == Some(drive) || s.serial == drive
        };
        // A drive that failed in one slot may be another's by now: that is the one meant.
        let out = |s: &&SlotStatus| matches!(s.health, SlotHealth::Failed | SlotHealth::Missing);
        let slots = self.status().slots;
        let found = slots.iter().filter(named).min_by_key(out);
        let missing = || ManageError::NoDrive(self.record().name.clone(), drive.to_owned());
        found.map(|s| s.slot).ok_or_else(missing)
    }

    /// Takes drives out of service: all of them, or none where data would be lost.
    pub async fn fail(self: Rc<Self>, drives: &[String]) -> Result<ArrayStatus, ManageError> {
        let slots = self.slots_of(drives)?;
        self.lock.acquire(1).await;
        let in_use = self.in_use(slots);
        let result = if self.stopped() {
            Err(ManageError::NoArray(self.record().name.clone()))
        } else if let Some(slot) = self.needed_of(in_use) {
            Err(ManageError::WouldLose(slot))
        } else {
            if !in_use.is_empty() {
                self.take_out_all(in_use).await;
            }
            Ok(())
        };
        self.lock.release(1);
        result.map(|()| self.status())
    }

    /// Whether all data is there without all of these drives.
    pub fn can_spare_all(&self, drives: &[String]) -> Result<bool, ManageError> {
        let slots = self.slots_of(drives)?;
        Ok(self.needed_of(self.in_use(slots)).is_none())
    }

    fn slots_of(&self, drives: &[String]) -> Result<SlotSet, ManageError> {
        drives.iter().map(|drive| self.slot_of(drive)).collect()
    }

    /// Those of these slots whose drives are not out already.
    fn in_use(&self, slots: SlotSet) -> SlotSet {
        let status = self.status().slots;
        let is_out = |health| matches!(health, SlotHealth::Failed | SlotHealth::Missing);
        slots.iter().filter(|slot| !is_out(status[slot.index()].health)).collect()
    }

    /// The last of these slots without whose drives, all of them, data would be lost; none if
    /// nothing would be. A drive that is being filled holds nothing that is needed.
    fn needed_of(&self, slots: SlotSet) -> Option<Slot> {
        let counts = |slot: &Slot| self.record().slots[slot.index()].state == SlotState::InSync;
        let counting: SlotSet = slots.iter().filter(counts).collect();
        counting.iter().last().filter(|_| !self.survives_without(counting))
    }

    /// Puts another drive in a slot; the keeper rebuilds it.
    ///
    /// The drive is prepared first: emptied, or, if it was here before, told that it is to be
    /// filled; and given the region map. That waits for nobody but the drive, and no host waits for
    /// it; another replacement does, and whoever stops the array. Then changes are held, the drive
    /// gets the pages that changed meanwhile, and joins.
    ///
    /// `new` is the identity of a drive that was not here before; without one only a drive is taken
    /// that was, and has not changed since.
    pub async fn replace(
        self: Rc<Self>,
        slot: Slot,
        (reference, mut drive): (DriveRef<E::Shared>, Watched<E>),
        new: Option<Uuid>,
    ) -> Result<ArrayStatus, ManageError> {
        self.replacing.acquire(1).await;
        let path = reference.path.clone();
        let mut result = self.may_replace(slot, &reference, &drive);
        if result.is_ok() {
            let named = self.clone().name_while_it_joins(&drive);
            result = self.replace_checked(slot, (reference, drive.clone()), new).await;
            drop(named);
        }
        if result.is_err() {
            self.bar(&drive);
            self.quarantine.hold(&path, drive.retire());
        }
        self.replacing.release(1);
        self.tasks.changed.notify();
        result.map(|()| self.status())
    }

    /// Whether a drive may be put in a slot as things are now.
    fn may_replace(
        &self,
        slot: Slot,
        reference: &DriveRef<E::Shared>,
        drive: &Watched<E>,
    ) -> Result<(), ManageError> {
        if self.stopped() {
            return Err(ManageError::NoArray(self.record().name.clone()));
        }
        let (block, needs, state) = {
            let record = self.record();
            let state = record.slots.get(slot.index()).map(|s| s.state);
            let missing = || ManageError::NoSlot(record.name.clone(), slot);
            (record.block_bytes, record.drive_bytes(), state.ok_or_else(missing)?)
        };
        if self.layout().groups_of(slot).any(|g| self.layout().m(g) == 0) {
            return Err(ManageError::NoRedundancy);
        }
        // Without a dropped drive its group lacks too much to fill another.
        let dropped = |s: &Slot| self.seats.borrow()[s.index()].dropped;
        let layout = self.layout();
        if let Some(away) = layout.groups_of(slot).flat_map(|g| layout.slots(g)).find(dropped) {
            return Err(ManageError::LeftBehind(away));
        }
        if state != SlotState::Failed {
            return Err(ManageError::SlotInUse(slot));
        }
        if let Some(user) = self.user_of(&reference.path) {
            return Err(ManageError::SlotInUse(user));
        }
        let info = drive.info();
        if info.block_bytes > block {
            return Err(ManageError::BlockSize {
                path: reference.path.clone(),
                drive: info.block_bytes,
                array: block,
            });
        }
        // A replacement may use what rounding down left on its predecessors.
        let has = format::usable_bytes(info.bytes, false);
        if has < needs {
            return Err(ManageError::TooSmall { path: reference.path.clone(), has, needs });
        }
        Ok(())
    }

    /// Prepares a drive and has it join.
    async fn replace_checked(
        &self,
        slot: Slot,
        (reference, drive): (DriveRef<E::Shared>, Watched<E>),
        new: Option<Uuid>,
    ) -> Result<(), ManageError> {
        let failed = |e| ManageError::Drive(reference.path.clone(), e);
        // What was asked of its predecessor, if that was the same drive, has ended or will be gone.
        self.retire_failed(slot);
        if self.quarantine.holds(&reference.path) {
            return Err(ManageError::Quarantined(reference.path));
        }
        if new.is_none() {
            self.may_come_back(&drive).await?;
        }
        let joins = match (self.returned(slot, &drive).await.map_err(failed)?, new) {
            (Some(back), _) => {
                self.own_drive(&drive).await.map_err(failed)?;
                self.disown(slot, &drive, back).await.map_err(failed)?
            }
            (None, Some(uuid)) => {
                self.claim_drive(&reference.path, &drive).await?;
                self.erase(&drive, true).await.map_err(failed)?;
                Joins { next: NextSlot::default(), uuid, since: 0 }
            }
            (None, None) => return Err(ManageError::NotAsItWent { path: reference.path, slot }),
        };
        let mut has = pages::write_all(self, slot, &drive).await.map_err(failed)?;
        // What changed meanwhile is less each time.
        for _ in 0..PAGE_PASSES {
            if pages::write_changed(self, (slot, &drive), &mut has).await.map_err(failed)? == 0 {
                break;
            }
        }
        self.hold_changes().await;
        let joined = match self.may_replace(slot, &reference, &drive) {
            Ok(()) => self.join_with_pages(slot, (reference, drive), joins, has).await,
            Err(error) => Err(error),
        };
        self.let_changes_go().await;
        joined
    }

    /// Has a drive join that has the pages of the map as they were a while ago.
    async fn join_with_pages(
        &self,
        slot: Slot,
        taken: (DriveRef<E::Shared>, Watched<E>),
        joins: Joins,
        mut has: pages::Written,
    ) -> Result<(), ManageError> {
        let keeper = self.keeper();
        // Until it takes part, no page is written: it has them all.
        keeper.lock.acquire(1).await;
        let brought = match mutants::is(Mutant::JoinWithOldPages) {
            true => Ok(0),
            false => pages::write_changed(self, (slot, &taken.1), &mut has).await,
        };
        let joined = match brought {
            Ok(_) => self.join(slot, taken, joins).await,
            Err(error) => Err(ManageError::Drive(taken.0.path, error)),
        };
        keeper.lock.release(1);
        joined
    }

    /// What a drive brings that was in the slot until it failed, and has seen nothing else since:
    /// its own record, and as what it may join. A drive that can't tell is not erased for that.
    async fn returned(
        &self,
        slot: Slot,
        drive: &Watched<E>,
    ) -> Result<Option<(ArrayRecord, Joins)>, DriveError> {
        store::settle(drive).await?;
        let (next, own) = match store::read(drive).await {
            Ok(Ok(newest)) => newest,
            Ok(Err(_)) | Err(DriveError::Media) => return Ok(None),
            Err(error) => return Err(error),
        };
        let record = self.record();
        let entry = &record.slots[slot.index()];
        let same = own.array == record.array
            && (own.this_slot, own.this_drive) == (slot, entry.drive)
            && own.epoch.mark() == entry.last
            // Not by a history that this one does not know: the next record would be older.
            && own.sequence < record.sequence + u64::from(own.given_up())
            && (own.areas, own.data_offset) == (record.areas, record.data_offset);
        let since = match entry.since {
            _ if mutants::is(Mutant::CatchUpSince) => record.epoch.counter,
            0 if mutants::is(Mutant::CatchUpTrusts) => entry.last.counter,
            since => since,
        };
        Ok((same && since > 0).then_some((own, Joins { next, uuid: entry.drive, since })))
    }

    /// Has the own record of a drive that comes back say that it failed. From now on it gets what
    /// others know, and nobody may take it for what it was.
    async fn disown(
        &self,
        slot: Slot,
        drive: &Watched<E>,
        (mut own, mut joins): (ArrayRecord, Joins),
    ) -> Result<Joins, DriveError> {
        if own.slots[slot.index()].state == SlotState::InSync {
            own.fail_slot(slot);
            // Newer than any record that it has, older than that with which it joins.
            own.sequence = self.record().sequence;
            joins.next = store::write(drive, joins.next, &own).await?;
        }
        Ok(joins)
    }

    /// Has a drive take part in a slot, as one to be filled from `since` on. One that failed
    /// meanwhile does not.
    async fn join(
        &self,
        slot: Slot,
        (reference, drive): (DriveRef<E::Shared>, Watched<E>),
        Joins { next, uuid, since }: Joins,
    ) -> Result<(), ManageError> {
        if !self.flush_held().await {
            // Without guard a crash would have the next start refused.
            self.may_replace(slot, &reference, &drive)?;
            return Err(ManageError::State(self.state()));
        }
        let (serial, path) = (recorded(&reference.serial), reference.path.clone());
        {
            let mut seats = self.seats.borrow_mut();
            let seat = &mut seats[slot.index()];
            let incarnation = seat.incarnation + 1;
            let drive = Some((reference, drive.clone()));
            *seat = Seat { drive, next, incarnation, dropped: false };
        }
        let state = match mutants::is(Mutant::ReplaceInSync) {
            true => SlotState::InSync,
            false => SlotState::Rebuilding { border: 0 },
        };
        self.record_join(|r| {
            let last = r.epoch.mark();
            r.slots[slot.index()] = SlotRecord { drive: uuid, serial, state, last, since };
        })
        .await?;
        self.publish(false).await;
        match self.taking_part(&self.record()).contains(&slot) {
            true => Ok(()),
            false => Err(ManageError::Drive(path, drive.error().unwrap_or(DriveError::Fault))),
        }
    }

    /// The slot that still uses the drive of this path.
    fn user_of(&self, path: &str) -> Option<Slot> {
        let record = self.record();
        let seats = self.seats.borrow();
        let uses = |i: &usize| {
            let same = seats[*i].drive.as_ref().is_some_and(|d| d.0.path == path);
            same && record.slots[*i].state != SlotState::Failed
        };
        (0..seats.len()).find(uses).map(|i| Slot(i as u16))
    }

    fn volume_status(&self, which: &WhichVolume) -> Result<VolumeStatus, ManageError> {
        let missing = || ManageError::NoVolume(self.record().name.clone(), which.to_string());
        let is_it = |volume: &VolumeStatus| match which {
            WhichVolume::Named(name) => volume.name == *name,
            WhichVolume::Is(uuid) => volume.uuid == *uuid,
        };
        self.status().volumes.into_iter().find(is_it).ok_or_else(missing)
    }

    fn check_size(&self, bytes: u64) -> Result<(), ManageError> {
        let block = self.record().block_bytes;
        if bytes == 0 || !bytes.is_multiple_of(u64::from(block)) {
            return Err(ManageError::BadSize(bytes, block));
        }
        Ok(())
    }

    /// Free rows for at least `bytes`, first fit, neighbours joined.
    fn free_extents(&self, bytes: u64) -> Result<Vec<Extent>, ManageError> {
        let layout = self.layout();
        let mut used: Vec<Extent> =
            self.record().volumes.iter().flat_map(|v| v.extents.clone()).collect();
        used.sort_by_key(|e| e.array_start);
        used.push(Extent { array_start: layout.array_bytes(), bytes: 0 });
        let (mut found, mut wanted, mut at) = (Vec::new(), bytes, 0);
        for taken in used {
            while at < taken.array_start && wanted > 0 {
                let row = layout.row_bytes(at);
                match found.last_mut() {
                    Some(Extent { array_start, bytes }) if *array_start + *bytes == at => {
                        *bytes += row;
                    }
                    _ => found.push(Extent { array_start: at, bytes: row }),
                }
                wanted = wanted.saturating_sub(row);
                at += row;
            }
            at = at.max(taken.array_start + taken.bytes);
        }
        if wanted > 0 {
            return Err(ManageError::NoSpace { wanted: bytes, free: self.free_bytes() });
        }
        Ok(found)
    }

    /// Makes rows read as zeros, whatever was in them. Ends with the array: no record shows these
    /// rows to anybody yet, so that it does not matter how far it came.
    async fn zero_extents(&self, extents: &[Extent]) -> Result<(), ManageError> {
        let array = self.local().ok_or(ManageError::State(self.state()))?;
        for extent in extents.iter().filter(|_| !mutants::is(Mutant::NewRowsNotZeroed)) {
            if self.tasks.ending() {
                return Err(ManageError::NoArray(self.record().name.clone()));
            }
            let zeroed = array.write_zeroes(extent.array_start, extent.bytes, false).await;
            zeroed.map_err(|_| ManageError::State(self.state()))?;
        }
        // The record that shows these rows to hosts is durable: so must the zeros be.
        array.flush().await.map_err(|_| ManageError::State(self.state()))
    }

    /// Makes a volume that reads as zeros.
    pub async fn create_volume(
        self: Rc<Self>,
        name: &str,
        bytes: u64,
        uuid: Uuid,
    ) -> Result<VolumeStatus, ManageError> {
        check_name(name)?;
        self.check_size(bytes)?;
        self.volume_lock.acquire(1).await;
        let result = self.create_volume_locked(name, bytes, uuid).await;
        self.volume_lock.release(1);
        result
    }

    async fn create_volume_locked(
        &self,
        name: &str,
        bytes: u64,
        uuid: Uuid,
    ) -> Result<VolumeStatus, ManageError> {
        if self.volume_status(&name.into()).is_ok() {
            return Err(ManageError::NameTaken(name.to_owned()));
        }
        let extents = self.free_extents(bytes)?;
        let owned = name.to_owned();
        let new = VolumeRecord { uuid, name: owned, bytes, extents: extents.clone() };
        self.recordable(|r| r.volumes.push(new.clone()))?;
        // The first write of zeros may need the configuration lock: it is not held here.
        self.zero_extents(&extents).await?;
        self.change(|r| r.volumes.push(new)).await?;
        self.volume_status(&uuid.into())
    }

    /// Commits and publishes a change under the configuration lock.
    async fn change(
        &self,
        change: impl FnOnce(&mut format::ArrayRecord),
    ) -> Result<(), ManageError> {
        self.publish_change(false, async || self.commit(false, change).await).await
    }

    /// Makes a change and publishes what came of it: what began before is over on return.
    async fn change_and_drain(
        &self,
        change: impl AsyncFnOnce() -> Result<(), ManageError>,
    ) -> Result<(), ManageError> {
        self.draining_lock.acquire(1).await;
        let result = self.publish_change(true, change).await;
        self.drained().await;
        self.draining_lock.release(1);
        result
    }

    /// Makes a change and publishes what came of it, under the configuration lock.
    async fn publish_change(
        &self,
        drain: bool,
        change: impl AsyncFnOnce() -> Result<(), ManageError>,
    ) -> Result<(), ManageError> {
        self.lock.acquire(1).await;
        let mut result = Err(ManageError::NoArray(self.record().name.clone()));
        if !self.stopped() {
            result = change().await;
            self.publish(drain).await;
        }
        self.lock.release(1);
        result
    }

    /// Has home cores carry out changes of stripes without redundancy from now on. Hosts wait for
    /// it: it does not wait for a change of volumes, which may write zeros for a long time.
    pub async fn end_direct_writes(&self) {
        self.draining_lock.acquire(1).await;
        if self.direct_writes.get() == DirectWrites::Allowed {
            for next in [DirectWrites::Ending, DirectWrites::Over] {
                let drain = next == DirectWrites::Ending;
                let set = async || {
                    self.direct_writes.set(next);
                    Ok(())
                };
                // Cores learn that it has stopped from the publication that says so.
                let _ = self.publish_change(drain, set).await;
                self.drained().await;
            }
        }
        self.draining_lock.release(1);
    }

    /// Changes a volume's size. What it gains reads as zeros; what it loses is gone.
    pub async fn resize_volume(
        self: Rc<Self>,
        which: &WhichVolume,
        size: NewSize,
    ) -> Result<VolumeStatus, ManageError> {
        self.check_size(size.bytes)?;
        self.volume_lock.acquire(1).await;
        let result = self.resize_volume_locked(which, size).await;
        self.volume_lock.release(1);
        result
    }

    async fn resize_volume_locked(
        &self,
        which: &WhichVolume,
        NewSize { bytes, shrink }: NewSize,
    ) -> Result<VolumeStatus, ManageError> {
        let volume = self.volume_status(which)?;
        let may_shrink = match shrink {
            Shrink::Never => false,
            Shrink::From(size) => volume.bytes == size,
            Shrink::Always => true,
        };
        if bytes < volume.bytes && !may_shrink {
            return Err(ManageError::WouldShrink(volume.bytes - bytes));
        }
        let (old, has) = {
            let record = self.record();
            let volume = record.volumes.iter().find(|v| v.uuid == volume.uuid);
            let extents = &volume.expect("it was just found").extents;
            (extents.clone(), extents.iter().map(|e| e.bytes).sum::<u64>())
        };
        let more = bytes.saturating_sub(has);
        let new = if more > 0 { self.free_extents(more)? } else { Vec::new() };
        let kept = self.kept_extents(&old, bytes.min(has));
        let resized = |r: &mut format::ArrayRecord| {
            for v in r.volumes.iter_mut().filter(|v| v.uuid == volume.uuid) {
                v.bytes = bytes;
                v.extents = kept.iter().chain(&new).copied().collect();
            }
        };
        self.recordable(resized)?;
        if bytes > volume.bytes {
            self.zero_extents(&new).await?;
            self.zero_tail(&old, volume.bytes, bytes.min(has)).await?;
        }
        self.change_and_drain(async || self.commit(false, resized).await).await?;
        self.forget_lost().await;
        self.volume_status(&volume.uuid.into())
    }

    /// Zeroes the part of a volume's extents behind its old end.
    async fn zero_tail(&self, extents: &[Extent], from: u64, to: u64) -> Result<(), ManageError> {
        let mut start = 0;
        for extent in extents {
            let (lo, hi) = (from.max(start), to.min(start + extent.bytes));
            if lo < hi {
                let array_start = extent.array_start + (lo - start);
                self.zero_extents(&[Extent { array_start, bytes: hi - lo }]).await?;
            }
            start += extent.bytes;
        }
        Ok(())
    }

    /// The first rows of the extents that cover `bytes`.
    fn kept_extents(&self, extents: &[Extent], bytes: u64) -> Vec<Extent> {
        let (mut kept, mut left) = (Vec::new(), bytes);
        for extent in extents {
            let mut keep = 0;
            while left > 0 && keep < extent.bytes {
                let row = self.layout().row_bytes(extent.array_start + keep);
                keep += row;
                left = left.saturating_sub(row);
            }
            if keep > 0 {
                kept.push(Extent { array_start: extent.array_start, bytes: keep });
            }
        }
        kept
    }

    /// Deletes a volume that nobody is served.
    pub async fn delete_volume(self: Rc<Self>, which: &WhichVolume) -> Result<(), ManageError> {
        self.volume_lock.acquire(1).await;
        let result = self.delete_volume_locked(which).await;
        self.volume_lock.release(1);
        result
    }

    async fn delete_volume_locked(&self, which: &WhichVolume) -> Result<(), ManageError> {
        let volume = self.volume_status(which)?;
        let delete = async || {
            // An export may have been recorded meanwhile.
            if self.record().exports.iter().any(|e| e.volume == volume.uuid) {
                return Err(ManageError::Exported(volume.name.clone()));
            }
            self.commit(false, |r| r.volumes.retain(|v| v.uuid != volume.uuid)).await
        };
        self.change_and_drain(delete).await?;
        self.forget_lost().await;
        Ok(())
    }

    /// Records an export; serving it is the control plane's business. That waits for no change of a
    /// volume, which may write zeros for a long time.
    pub async fn create_export(
        self: Rc<Self>,
        which: &WhichVolume,
        address: ExportAddress,
    ) -> Result<ExportStatus, ManageError> {
        let mut made = None;
        let create = async || {
            let volume = self.volume_status(which)?;
            let id = free_id(&self.record().exports);
            let export = ExportRecord { id, volume: volume.uuid, address: address.clone() };
            made =
                Some(ExportStatus { id, volume: volume.uuid, volume_name: volume.name, address });
            self.commit(false, |r| r.exports.push(export)).await
        };
        self.publish_change(false, create).await?;
        Ok(made.expect("it is recorded"))
    }

    /// Records what an export is from now on. It waits for no change of a volume, either.
    pub async fn set_export(
        self: Rc<Self>,
        id: u32,
        address: ExportAddress,
    ) -> Result<ExportStatus, ManageError> {
        let mut set = None;
        let change = async || {
            let known = self.record().exports.iter().find(|e| e.id == id).map(|e| e.volume);
            let missing = || ManageError::NoExport(self.record().name.clone(), id);
            let volume = self.volume_status(&known.ok_or_else(missing)?.into())?;
            let (uuid, volume_name) = (volume.uuid, volume.name);
            set = Some(ExportStatus { id, volume: uuid, volume_name, address: address.clone() });
            let change = |r: &mut format::ArrayRecord| {
                let own = r.exports.iter_mut().find(|e| e.id == id);
                own.expect("nobody changes it meanwhile").address = address.clone();
            };
            self.commit(false, change).await
        };
        self.publish_change(false, change).await?;
        Ok(set.expect("it is recorded"))
    }

    /// Forgets an export.
    pub async fn delete_export(self: Rc<Self>, id: u32) -> Result<(), ManageError> {
        if !self.record().exports.iter().any(|e| e.id == id) {
            return Err(ManageError::NoExport(self.record().name.clone(), id));
        }
        self.change(|r| r.exports.retain(|e| e.id != id)).await
    }
}

/// The number of a new export: behind the largest one, or the first that is free.
fn free_id(exports: &[ExportRecord]) -> u32 {
    let largest = exports.iter().map(|e| e.id).max().unwrap_or(0);
    let is_free = |id: &u32| exports.iter().all(|e| e.id != *id);
    largest.checked_add(1).unwrap_or_else(|| (1..).find(is_free).expect("there are few"))
}

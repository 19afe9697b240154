//! Which drives make an array: `docs/format.md`, section "Epochs and assembly", as one function.
//!
//! Purpose: assembly fails closed (D8, promise P7). A drive joins only when its record proves
//! that it took part in the last epoch that the newest record wants of its slot, or the one right
//! before; anything else is left out with a reason, and what could mix two histories is refused
//! with the names of the drives.
//!
//! Invariant: the outcome does not depend on the order in which drives are found.

use crate::FormatError;
use crate::record::{ArrayRecord, SlotState};
use core::fmt;
use layout::{CodeKind, Layout};
use std::collections::BTreeSet;
use thiserror::Error;
use units::{GroupNo, Slot, Uuid};

mod doubtful;
mod lineage;

/// One drive that was found, with what its record slots said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Where it is; only for messages.
    pub path: String,
    /// Its counting record ([`crate::newest`]).
    pub record: Result<ArrayRecord, FormatError>,
    /// Bytes of the drive.
    pub bytes: u64,
    /// Bytes of its smallest unit of I/O.
    pub block_bytes: u32,
}

/// What a person has agreed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AssembleOptions {
    /// Start although drives are missing that may be running elsewhere.
    pub start_degraded: bool,
    /// Start although parity that is needed may be wrong, or a drive's newest record missing.
    pub accept_loss: bool,
}

/// Why a drive is left out.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StaleReason {
    /// It has no record that counts.
    #[error("{0}")]
    NoRecord(FormatError),
    /// The array recorded that it failed.
    #[error("it is recorded as failed")]
    Failed,
    /// It was being put back when the array ended, and is not what it was.
    #[error("it was being put back, and had not joined yet")]
    GivenUp,
    /// Another drive took its slot.
    #[error("it was replaced by another drive")]
    Replaced,
    /// Its record is from an epoch in which the array went on without it.
    #[error("its record is stale: epoch {epoch} of {newest}")]
    Stale {
        /// The drive's epoch.
        epoch: u64,
        /// The array's epoch.
        newest: u64,
    },
    /// Its pages of the region map are older than any crash leaves them.
    #[error("slot {slot} was set back to an older state")]
    SetBack {
        /// Its slot.
        slot: Slot,
    },
    /// It is smaller than the record says.
    #[error("it has {bytes} bytes, the array needs {needed}")]
    TooSmall {
        /// Bytes of the drive.
        bytes: u64,
        /// Bytes it must have.
        needed: u64,
    },
}

/// A slot for which no drive counts although it is not recorded as failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// The slot.
    pub slot: Slot,
    /// The drive that belongs there.
    pub drive: Uuid,
    /// Its serial number.
    pub serial: String,
    /// It was found, set back to an older state.
    pub set_back: bool,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = if self.set_back { ", found in an older state" } else { "" };
        write!(f, "slot {} (drive {}, serial \"{}\"{found})", self.slot, self.drive, self.serial)
    }
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// Why an array is not assembled.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AssembleError {
    /// No drive has a record.
    #[error("none of the drives holds the record of an array")]
    NoRecord,
    /// The drives are not all of one array.
    #[error("{first} and {second} belong to different arrays")]
    Foreign {
        /// A drive of one array.
        first: String,
        /// A drive of another.
        second: String,
    },
    /// One drive was found twice: it was copied.
    #[error("{first} and {second} have the same identity, {drive}: one is a copy of the other")]
    Cloned {
        /// One path.
        first: String,
        /// The other path.
        second: String,
        /// The UUID of both.
        drive: Uuid,
    },
    /// Parts of the array were started separately and both went on.
    #[error(
        "parts of the array were started separately and have diverged: {} and {}",
        list(newest),
        list(others)
    )]
    Diverged {
        /// Drives of the newest history.
        newest: Vec<String>,
        /// Drives of another history.
        others: Vec<String>,
    },
    /// A drive's own record names another slot than the array's.
    #[error(
        "{path} has the record of slot {own}, the array's newest record has it in slot {named}"
    )]
    Swapped {
        /// The drive.
        path: String,
        /// Slot by its own record.
        own: Slot,
        /// Slot by the newest record.
        named: Slot,
    },
    /// Records of one history describe different arrays.
    #[error("the record on {path} describes other drives or another layout than that on {newest}")]
    Inconsistent {
        /// The drive.
        path: String,
        /// A drive with the newest record.
        newest: String,
    },
    /// A drive that belongs to the array can't take its smallest requests any more.
    #[error("{path} has a block size of {drive} bytes, the array has {array}")]
    BlockSize {
        /// The drive.
        path: String,
        /// Bytes of its blocks.
        drive: u32,
        /// Bytes of the array's.
        array: u32,
    },
    /// A later release wrote the record.
    #[error("{path} was written by a later release: this release may only read it")]
    ReadOnly {
        /// The drive.
        path: String,
    },
    /// Creation did not finish.
    #[error("the creation of array \"{name}\" was interrupted")]
    CreationInterrupted {
        /// The array.
        name: String,
    },
    /// More drives are missing than the redundancy replaces.
    #[error(
        "group {group} lacks {} drives, its redundancy covers {tolerated}: {}",
        lacking.len(),
        list(lacking)
    )]
    TooManyMissing {
        /// The group.
        group: GroupNo,
        /// How many it can lose.
        tolerated: u16,
        /// Slots that are missing, failed or rebuilding.
        lacking: Vec<Missing>,
    },
    /// The missing drives could be running elsewhere.
    #[error("drives are missing that are not known to have failed: {}", list(missing))]
    NeedsStartDegraded {
        /// The missing slots.
        missing: Vec<Missing>,
    },
    /// Parity that may be wrong would be needed.
    #[error("the array was not stopped cleanly, and a drive is missing in group {}", list(groups))]
    NeedsAcceptLoss {
        /// The groups.
        groups: Vec<GroupNo>,
    },
    /// Drives are needed that lost their last record slots.
    #[error(
        "{}: the newest record may be missing: its size changed or its end was overwritten{}",
        paths.join(", "),
        instead.as_ref().map(|why| format!("; without it: {why}")).unwrap_or_default()
    )]
    TailMissing {
        /// The drives.
        paths: Vec<String>,
        /// Why it can't be started without them, if it has redundancy.
        instead: Option<Box<AssembleError>>,
    },
}

/// An array that may be started.
///
/// Drives that were found to be set back are left out later ([`Assembly::leave_out`]): their pages
/// of the region map say it, which nobody reads before it is known what array there is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembly {
    /// The newest record.
    pub record: ArrayRecord,
    /// For each slot the number of its drive among the found ones.
    pub slots: Vec<Option<usize>>,
    /// Groups that owe a resync.
    pub resync_needed: Vec<GroupNo>,
    /// Slots without a drive that are not recorded as failed.
    pub missing: Vec<Missing>,
    /// Found drives that are left out, and why.
    pub stale: Vec<(usize, StaleReason)>,
}

impl Assembly {
    /// The record to write before the array is used: the next epoch, in which missing slots have
    /// failed. `epoch_id` is random.
    pub fn begin(&self, epoch_id: u64) -> ArrayRecord {
        let mut record = self.record.clone();
        record.sequence += 1;
        record.started_degraded = !self.missing.is_empty();
        for missing in &self.missing {
            record.fail_slot(missing.slot);
        }
        record.next_epoch(epoch_id);
        record
    }

    /// Leaves out the drives of slots that were set back to an older state: what is put in their
    /// place is filled whole, whatever epoch it is of. One that is being filled stays, and that
    /// begins anew. An error says why the array may not be started without them.
    pub fn leave_out(
        &mut self,
        set_back: &BTreeSet<Slot>,
        options: AssembleOptions,
    ) -> Result<(), AssembleError> {
        let layout = self.record.layout().map_err(|_| AssembleError::NoRecord)?;
        for slot in set_back {
            let entry = &mut self.record.slots[slot.index()];
            if entry.state == SlotState::InSync
                && let Some(index) = self.slots[slot.index()].take()
            {
                self.stale.push((index, StaleReason::SetBack { slot: *slot }));
            }
            (entry.state, entry.since) = (SlotState::Rebuilding { border: 0 }, 0);
        }
        self.settle(&layout, options)
    }

    /// Finds what is missing and owed by what takes part, and whether it may be started.
    fn settle(&mut self, layout: &Layout, options: AssembleOptions) -> Result<(), AssembleError> {
        self.missing = missing(self);
        let groups = (0..layout.groups()).map(GroupNo);
        self.resync_needed = groups.filter(|g| owes(self, layout, *g)).collect();
        may_start(self, layout, options)
    }
}

/// Decides which of the drives found make the array, and whether it may be started.
pub fn assemble(found: &[Found], options: AssembleOptions) -> Result<Assembly, AssembleError> {
    doubtful::assemble(found, options)
}

/// The same, of those drives whose counting records are known.
fn of_known(found: &[Found], options: AssembleOptions) -> Result<Assembly, AssembleError> {
    let newest = lineage::newest(found)?;
    let record = newest.record.clone();
    lineage::check_histories(found, newest)?;
    let mut slots = vec![None; record.slots.len()];
    let mut stale = Vec::new();
    for (index, drive) in found.iter().enumerate() {
        match lineage::place(drive, newest)? {
            Ok(slot) => slots[slot.index()] = Some(index),
            Err(reason) => stale.push((index, reason)),
        }
    }
    if !record.zeroed {
        return Err(AssembleError::CreationInterrupted { name: record.name });
    }
    let layout = record.layout().map_err(|_| AssembleError::NoRecord)?;
    let (resync_needed, missing) = (Vec::new(), Vec::new());
    let mut assembly = Assembly { record, slots, resync_needed, missing, stale };
    assembly.settle(&layout, options)?;
    Ok(assembly)
}

fn name_slot(assembly: &Assembly, slot: Slot) -> Missing {
    let entry = &assembly.record.slots[slot.index()];
    let set_back = assembly.stale.iter().any(|(_, why)| *why == StaleReason::SetBack { slot });
    Missing { slot, drive: entry.drive, serial: entry.serial.clone(), set_back }
}

fn missing(assembly: &Assembly) -> Vec<Missing> {
    let all = (0u16..).map(Slot).zip(&assembly.record.slots).zip(&assembly.slots);
    all.filter(|((_, entry), drive)| drive.is_none() && entry.state != SlotState::Failed)
        .map(|((slot, _), _)| name_slot(assembly, slot))
        .collect()
}

/// Slots of the group that do not hold everything they should.
fn lacking(assembly: &Assembly, layout: &Layout, group: GroupNo) -> Vec<Missing> {
    let record = &assembly.record;
    let whole = |slot: &Slot| {
        assembly.slots[slot.index()].is_some()
            && record.slots[slot.index()].state == SlotState::InSync
    };
    layout.slots(group).filter(|s| !whole(s)).map(|s| name_slot(assembly, s)).collect()
}

/// What a guarded group owes that lacks a drive is to carry out what its journal area says.
fn owes(assembly: &Assembly, layout: &Layout, group: GroupNo) -> bool {
    let record = &assembly.record;
    let whole = layout.m(group) > 0 && lacking(assembly, layout, group).is_empty();
    whole && record.groups[group.index()].unclean || record.owes_resync(layout, group)
}

fn may_start(
    assembly: &Assembly,
    layout: &Layout,
    options: AssembleOptions,
) -> Result<(), AssembleError> {
    let mut at_risk = Vec::new();
    for group in (0..layout.groups()).map(GroupNo) {
        let lacking = lacking(assembly, layout, group);
        let tolerated = layout.m(group);
        if lacking.len() > usize::from(tolerated) {
            return Err(AssembleError::TooManyMissing { group, tolerated, lacking });
        }
        let parity = layout.descriptor(group).code == CodeKind::Parity;
        if parity && !lacking.is_empty() && assembly.resync_needed.contains(&group) {
            at_risk.push(group);
        }
    }
    let wide = |missing: &Missing| {
        layout.groups_of(missing.slot).all(|g| layout.descriptor(g).width > 2 * layout.m(g))
    };
    if !options.start_degraded && !assembly.missing.iter().all(wide) {
        return Err(AssembleError::NeedsStartDegraded { missing: assembly.missing.clone() });
    }
    if !options.accept_loss && !at_risk.is_empty() {
        return Err(AssembleError::NeedsAcceptLoss { groups: at_risk });
    }
    Ok(())
}

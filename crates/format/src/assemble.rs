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
    #[error("it has {bytes} bytes where the array needs {needed}")]
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

/// Why an array is not assembled. [`AssembleError::advice`] says what to do.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AssembleError {
    /// No drive has a record.
    #[error("none of the drives holds an array record")]
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
    #[error("{first} and {second} both say that they are drive {drive}: one is a copy")]
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
        "{} and {} hold histories of the array that went different ways",
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
    #[error("{path} says that it is slot {own}, the newest record says slot {named}")]
    Swapped {
        /// The drive.
        path: String,
        /// Slot by its own record.
        own: Slot,
        /// Slot by the newest record.
        named: Slot,
    },
    /// Records of one history describe different arrays.
    #[error("{path} describes the array's drives or layout differently than {newest}")]
    Inconsistent {
        /// The drive.
        path: String,
        /// A drive with the newest record.
        newest: String,
    },
    /// A drive that belongs to the array can't take its smallest requests any more.
    #[error("{path} has blocks of {drive} bytes, the array of {array}")]
    BlockSize {
        /// The drive.
        path: String,
        /// Bytes of its blocks.
        drive: u32,
        /// Bytes of the array's.
        array: u32,
    },
    /// A later release wrote the record.
    #[error("{path} was written by a later release; this one may only read it")]
    ReadOnly {
        /// The drive.
        path: String,
    },
    /// Creation did not finish.
    #[error("the creation of array {name} did not finish")]
    CreationInterrupted {
        /// The array.
        name: String,
    },
    /// More drives are missing than the redundancy replaces.
    #[error("group {group} can do without {tolerated} drives, but lacks {}", list(lacking))]
    TooManyMissing {
        /// The group.
        group: GroupNo,
        /// How many it can lose.
        tolerated: u16,
        /// Slots that are missing, failed or rebuilding.
        lacking: Vec<Missing>,
    },
    /// The missing drives could be running elsewhere.
    #[error("missing and not known to have failed: {}", list(missing))]
    NeedsStartDegraded {
        /// The missing slots.
        missing: Vec<Missing>,
    },
    /// Parity that may be wrong would be needed.
    #[error("groups {} were not stopped cleanly and lack a drive", list(groups))]
    NeedsAcceptLoss {
        /// The groups.
        groups: Vec<GroupNo>,
    },
    /// Drives are needed that lost their last record slots.
    #[error(
        "{}: the newest record may be missing, the size changed or the end was overwritten{}",
        paths.join(", "),
        instead.as_ref().map(|why| format!("; without: {why}")).unwrap_or_default()
    )]
    TailMissing {
        /// The drives.
        paths: Vec<String>,
        /// Why it can't be started without them, if it has redundancy.
        instead: Option<Box<AssembleError>>,
    },
}

impl AssembleError {
    /// What to do about it, one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoRecord => "name the drives of the array, or create one",
            Self::Foreign { .. } => "assemble the arrays separately",
            Self::Cloned { .. } => "take one of the two away, or wipe it",
            Self::Diverged { .. } => {
                "decide which history to keep, take the other drives away, and start with \
                 --start-degraded; then replace them"
            }
            Self::Swapped { .. } | Self::Inconsistent { .. } => {
                "the drive's record was written by something else: take it away or wipe it, and \
                 replace it"
            }
            Self::BlockSize { .. } => {
                "bring it back to where its blocks had the array's size, copy it to such a drive, \
                 or take it away: the array starts without it, if it can, and calls it failed"
            }
            Self::ReadOnly { .. } => "use the release that wrote it",
            Self::CreationInterrupted { .. } => "wipe its drives and create it again",
            Self::TooManyMissing { lacking, .. } if lacking.iter().any(|m| m.set_back) => {
                "bring the newer state of the older drives back: a copy or a snapshot of them was \
                 put in their place, which does not go with what the others hold"
            }
            Self::TooManyMissing { .. } => "bring the missing drives back",
            Self::NeedsStartDegraded { .. } => {
                "bring the drives back, or make sure that they are not in use elsewhere and say \
                 --start-degraded"
            }
            Self::NeedsAcceptLoss { .. } => {
                "bring the missing drives back, or say --accept-loss: blocks near the last \
                 writes may be wrong"
            }
            Self::TailMissing { instead: None, .. } => {
                "give the drives their former size, or say --accept-loss: what only the missing \
                 records said is forgotten"
            }
            Self::TailMissing { instead: Some(why), .. } => match **why {
                Self::NeedsStartDegraded { .. } | Self::Diverged { .. } => why.advice(),
                _ => "give the drives their former size, or bring the missing drives back",
            },
        }
    }
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

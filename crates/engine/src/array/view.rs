//! A running array as every core sees it: an immutable snapshot with a generation (D2).
//!
//! The manager publishes a new snapshot for every change of routing or access; a core *adopts*
//! it between two polls. Once all cores have adopted a generation it is *settled*, and only then
//! may an acknowledgement depend on it.

use crate::lost::Lost;
use crate::mutants::{self, Mutant};
use crate::stripe::plan::{StripSet, StripeState};
use crate::stripe::table::StripeKey;
use core::ops::Range;
use layout::{CodeKind, Layout, Place};
use std::sync::Arc;
use units::{Generation, Slot, StripIndex, Uuid};

/// What a slot's drive is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotState {
    /// Every strip counts.
    InSync,
    /// Strips of stripes below the durable border count (D17); above it the drive is written
    /// but not counted on.
    Rebuilding {
        /// The first stripe that does not count.
        border: u64,
    },
    /// Neither read nor written.
    Failed,
}

/// One slot of the snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotView {
    /// What its drive is good for.
    pub state: SlotState,
    /// Counts the drives this slot has had since the start.
    pub incarnation: u32,
    /// Failed here though no record says so: its groups take no writes until the array is
    /// assembled again, because the drive would come back as in sync.
    pub dropped: bool,
    /// How the journal names its drive.
    pub drive: u64,
}

/// One group of the snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupView {
    /// The record says that the group may be written.
    pub unclean: bool,
    /// A bit for each region in which parity, or that copies are equal, is not trusted; none are
    /// set past the end.
    pub owed: Arc<[u64]>,
    /// What is lost is computed from parity that is not trusted, too: a person accepted that, or it
    /// is right in all that was ever written.
    pub gives: bool,
}

/// A run of the array's address space that belongs to a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtentView {
    /// First byte in the array's address space.
    pub array_start: u64,
    /// Bytes.
    pub bytes: u64,
}

/// One volume of the snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeView {
    /// Its identity.
    pub uuid: Uuid,
    /// Its name, unique in the array.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Where it lies, in order.
    pub extents: Vec<ExtentView>,
}

/// Whether changes of stripes without redundancy go straight to the drives, from any core. They do
/// until somebody compares and writes: what must not come between the two is then carried out where
/// they are, on the stripe's home core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectWrites {
    /// They do.
    Allowed,
    /// None begins any more; some may be under way.
    Ending,
    /// None is under way.
    Over,
}

/// The snapshot.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// Which snapshot; each is newer than all before.
    pub generation: Generation,
    /// The array's identity.
    pub array: Uuid,
    /// Counter of its epoch.
    pub epoch: u64,
    /// Where everything lies.
    pub layout: Arc<Layout>,
    /// Smallest unit of I/O.
    pub block_bytes: u32,
    /// Where the data area begins on every drive, in bytes.
    pub data_offset: u64,
    /// Where the journal area begins on every drive and how many bytes it has, if the array has a
    /// journal.
    pub journal: Option<(u64, u64)>,
    /// What a batch of the journal must name to count; 0: nothing goes through the journal.
    pub journal_key: u64,
    /// What an in-flight page must name to count; 0: none is written.
    pub flight_key: u64,
    /// No change of a parity stripe begins: the journal's key is about to change.
    pub hold: bool,
    /// Who carries out changes of stripes without redundancy.
    pub direct_writes: DirectWrites,
    /// A region has 2 to the power of this stripes.
    pub region_shift: u32,
    /// Whether any drive has a volatile write cache (D15).
    pub volatile_cache: bool,
    /// Whether all drives carry requests out before they return: nothing goes on beside one.
    pub inline: bool,
    /// The slots.
    pub slots: Vec<SlotView>,
    /// The groups.
    pub groups: Vec<GroupView>,
    /// The volumes.
    pub volumes: Vec<Arc<VolumeView>>,
    /// What nobody can give back.
    pub lost: Arc<Lost>,
    /// Nothing is served any more.
    pub stopped: bool,
}

impl View {
    /// Whether a slot's strip of this stripe counts.
    pub fn readable(&self, slot: Slot, key: StripeKey) -> bool {
        match self.slots[slot.index()].state {
            SlotState::InSync => true,
            SlotState::Rebuilding { .. } if mutants::is(Mutant::TargetInSync) => true,
            SlotState::Rebuilding { border } => key.stripe.0 < border,
            SlotState::Failed => false,
        }
    }

    /// Whether every strip of a slot counts.
    pub fn in_sync(&self, slot: Slot) -> bool {
        self.slots[slot.index()].state == SlotState::InSync
    }

    /// Whether a slot takes writes.
    pub fn writable(&self, slot: Slot) -> bool {
        let state = self.slots[slot.index()].state;
        let filling = matches!(state, SlotState::Rebuilding { .. });
        state != SlotState::Failed && !(filling && mutants::is(Mutant::RebuildMissesWrites))
    }

    /// Whether parity (or the copies) of this stripe can be trusted.
    pub fn trusted(&self, key: StripeKey) -> bool {
        let group = &self.groups[key.group.index()];
        if mutants::is(Mutant::TrustParity) {
            return true;
        }
        let region = key.stripe.0 >> self.region_shift;
        group.owed.get((region / 64) as usize).is_none_or(|word| word >> (region % 64) & 1 == 0)
    }

    /// Whether the copies of this mirrored stripe may differ: what is read must then be made alike
    /// first, or another read, of the copy that is left when one is lost, would contradict it.
    pub fn unlike(&self, key: StripeKey) -> bool {
        !self.trusted(key) && !mutants::is(Mutant::CopyAny)
    }

    /// Which copy of a mirrored stripe a read that begins at this offset of its strip prefers.
    /// Where copies may differ everybody reads the same one.
    pub fn copy(&self, key: StripeKey, offset: u32) -> u16 {
        if self.unlike(key) {
            return 0;
        }
        let copies = u64::from(self.layout.m(key.group)) + 1;
        ((key.stripe.0 ^ u64::from(offset >> 12)) % copies) as u16
    }

    /// How the stripe's redundancy is made.
    pub fn code(&self, key: StripeKey) -> CodeKind {
        self.layout.descriptor(key.group).code
    }

    /// What the planner wants to know of a stripe.
    pub fn stripe_state(&self, key: StripeKey) -> StripeState {
        let (k, m) = (self.layout.k(key.group), self.layout.m(key.group));
        let mut readable = StripSet::default();
        let mut writable = StripSet::default();
        for (strip, slot) in self.layout.slots_of(key.group, key.stripe).enumerate() {
            if self.writable(slot) {
                writable = writable.or(StripSet::one(strip));
                if self.readable(slot, key) {
                    readable = readable.or(StripSet::one(strip));
                }
            }
        }
        let (k, m, parity_trusted) = (k.into(), m.into(), self.trusted(key));
        let parity_gives = self.groups[key.group.index()].gives;
        StripeState { k, m, readable, writable, parity_trusted, parity_gives }
    }

    /// The volume of this identity.
    pub fn volume(&self, uuid: Uuid) -> Option<&Arc<VolumeView>> {
        self.volumes.iter().find(|v| v.uuid == uuid)
    }

    /// Whether a drive of the group is out that no record calls failed: then a write that misses
    /// it must not be acknowledged.
    pub fn frozen(&self, group: units::GroupNo) -> bool {
        self.layout.slots(group).any(|slot| self.slots[slot.index()].dropped)
    }

    /// The array addresses of a run of bytes of a data strip.
    pub fn addresses(&self, key: StripeKey, strip: usize, span: (u32, u32)) -> Range<u64> {
        let StripeKey { group, stripe } = key;
        let strip = StripIndex(strip as u16);
        let start = self.layout.array_offset(Place { group, stripe, strip, offset: span.0 });
        start..start + u64::from(span.1 - span.0)
    }

    /// Whether a strip still counts that was read when its slot had this incarnation.
    pub fn still_readable(&self, slot: Slot, incarnation: u32, key: StripeKey) -> bool {
        self.slots[slot.index()].incarnation == incarnation && self.readable(slot, key)
    }
}

//! What the cores of an engine tell each other about arrays.

use crate::array::view::View;
use crate::region::message::{ToCore, ToKeeper};
use crate::stripe::table::{Origin, StripeKey};
use crate::watch::Opened;
use core::ops::Range;
use format::LostReason;
use io::{BlockError, Buf, BufMut, DriveError};
use std::sync::Arc;
use units::{CoreId, Generation, GroupNo, Slot, SlotSet};

/// Names a running array within the engine; never used again after a stop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct ArrayId(pub u32);

/// What is wanted of one stripe. Offsets are in the stripe's data: strip `i` of the data begins
/// at `i * strip_bytes`.
#[derive(Debug)]
pub enum Job {
    /// Write these bytes.
    Write {
        /// Where in the stripe's data.
        at: u32,
        /// What.
        data: Buf,
        /// Durable before the answer.
        fua: bool,
    },
    /// Make these bytes read as zeros.
    Zero {
        /// Where in the stripe's data.
        at: u32,
        /// How many bytes.
        bytes: u32,
        /// Durable before the answer.
        fua: bool,
    },
    /// Write a block if it holds what is expected.
    CompareWrite {
        /// Where in the stripe's data.
        at: u32,
        /// What it has to hold.
        expected: Buf,
        /// What to write then.
        data: Buf,
        /// Durable before the answer.
        fua: bool,
    },
    /// Read a run of bytes of one strip.
    Read {
        /// Where in the stripe's data.
        at: u32,
        /// Filled whole.
        into: BufMut,
    },
    /// Fill the strip on a drive that is being rebuilt.
    Rebuild(Slot),
    /// Compare parity (or copies) with the data.
    Check(Repair),
}

/// Changes of what is known to be lost. All of one piece of mail are made, or none.
#[derive(Debug)]
pub enum LostChange {
    /// Nobody can give these back: they are lost from now on.
    Add(Vec<Range<u64>>, LostReason),
    /// These hold what counts: they were written or discarded, durably.
    Heal(Vec<Range<u64>>),
    /// These could be read, or were written, that could not be read before.
    Readable(Range<u64>),
    /// These could not be read, and nothing gave them.
    Note(Range<u64>),
}

/// What a check writes where strips contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repair {
    /// Nothing.
    Nothing,
    /// Over the strips that are known to be wrong: those whose replacement makes all others
    /// agree. Where nobody can know, nothing.
    Known,
    /// That, and where nobody can know, what the data says: parity is computed anew, copies are
    /// made of the first.
    TrustData,
    /// So a resync does, whose parity was cut short and its data not. What can't be read, and
    /// nothing gives, is lost from then on.
    Resync,
}

/// What became of a stripe that was checked or rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// All of it was compared or filled: no drive that it needs was missing, and every block
    /// was read, or recovered and written back.
    pub compared: bool,
    /// No redundant strip was there to compare with.
    pub alone: bool,
    /// Parity or copies did not agree with the data.
    pub mismatch: bool,
    /// They did not somewhere, and nobody can know which strip is wrong there.
    pub unlocated: bool,
    /// The slots whose strips were found to be wrong.
    pub guilty: SlotSet,
    /// A drive that counts could not read some of its blocks.
    pub unreadable: bool,
    /// Something was written: what did not agree, or what could not be read.
    pub repaired: bool,
    /// Blocks could not be read that nothing gives.
    pub beyond: bool,
}

impl Checked {
    /// Of what has nothing beside it that it could be compared with.
    pub fn alone() -> Self {
        Self { compared: true, alone: true, ..Self::default() }
    }
}

/// The answer to a job.
#[derive(Debug)]
pub enum Outcome {
    /// Of a write or zero.
    Done(Result<(), BlockError>),
    /// Of a compare and write: whether the block held what was expected, and was written.
    Compared(Result<bool, BlockError>),
    /// Of a read.
    Read(Result<(), BlockError>, BufMut),
    /// Of a check or rebuild.
    Checked(Result<Checked, BlockError>),
}

/// Mail about one array.
pub enum Mail<S> {
    /// To a stripe's home core: please do.
    Submit {
        /// Which stripe.
        key: StripeKey,
        /// What to do.
        job: Job,
        /// Whom to answer.
        origin: Origin,
    },
    /// To a requester's core: done.
    Answer {
        /// The request.
        pending: u32,
        /// How it went.
        outcome: Outcome,
    },
    /// From the manager to every core: the array is like this from now on.
    Publish {
        /// The new state.
        view: Arc<View>,
        /// The drive of each slot, where there is one.
        drives: Vec<Option<Opened<S>>>,
        /// Say also when every operation begun before is over.
        drain: bool,
        /// Say also when every change of a parity stripe begun before is in place.
        quiet: bool,
    },
    /// From the manager to every core: all cores have adopted this generation.
    Settle(Generation),
    /// From the manager to every core: nothing is written to the journal area any more. Answered
    /// like a drain.
    EndJournal,
    /// From a core to every core: this flush of all drives ended well.
    Flushed(u64),
    /// To the manager: this core has adopted the generation.
    Adopted {
        /// Which core.
        core: CoreId,
        /// Which generation.
        generation: Generation,
    },
    /// To the manager: every operation begun before the last draining publication is over.
    Drained {
        /// Which core.
        core: CoreId,
    },
    /// To the manager: every change of a parity stripe is in place that was begun before the last
    /// publication that asked.
    Quiet {
        /// Which core.
        core: CoreId,
    },
    /// To the manager: a drive failed a request.
    DriveFailed {
        /// It was a read: what the drive holds is as new as before.
        read: bool,
        /// Where it was.
        slot: Slot,
        /// The drive's incarnation (see [`View`]), so that its replacement is not blamed.
        incarnation: u32,
        /// What speaks against it.
        error: DriveError,
    },
    /// To the manager: a drive could not read blocks, or they were recovered and written back.
    Unreadable {
        /// Where the drive is.
        slot: Slot,
        /// The drive's incarnation.
        incarnation: u32,
        /// They can be read again.
        rewritten: bool,
    },
    /// To the manager: a group is about to be written for the first time since it was clean.
    FirstWrite(GroupNo),
    /// To the manager: somebody wants to compare and write a block without redundancy.
    EndDirectWrites,
    /// To the manager: what is lost changed. Answered, if anybody waits, once that is durable and
    /// every core has adopted it.
    Lost(LostChange, Option<Origin>),
    /// To the keeper of the region map.
    Keeper(ToKeeper),
    /// From the keeper to a core.
    Region(ToCore),
}

//! Known bugs that can be switched on, one at a time, to prove that the trials would catch them.
//!
//! Without the feature `mutants`, which only `palisade-trials` asks for, [`is`] is a constant
//! `false` and nothing of this is left in the product.

macro_rules! mutants {
    ($($name:ident = $text:literal: $about:literal;)*) => {
        /// A known bug.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Mutant {
            $(#[doc = $about] $name,)*
        }

        /// All of them: the mutant, its name, what is wrong with it and which row of the test
        /// plan it stands for.
        pub const ALL: &[(Mutant, &str, &str)] = &[$((Mutant::$name, $text, $about),)*];
    };
}

mutants! {
    Canary = "canary": "the last byte of computed parity is wrong (canary)";
    TrustParity = "trust-parity": "parity is trusted ahead of the resync border (rows 1, 2)";
    NoResync = "no-resync": "an unclean group starts as if it were clean (row 1)";
    NeverUnclean = "never-unclean": "a first write does not record that the group is unclean \
        (row 10, never set)";
    UncleanInMemory = "unclean-in-memory": "unclean is published and never recorded (row 10)";
    ModifyUnread = "modify-unread": "parity on a drive being rebuilt is updated from its old \
        content (row 3)";
    FuaDropped = "fua-dropped": "FUA does not reach the drives (rows 4, 20)";
    RecordNotDurable = "record-not-durable": "records are written without FUA (row 4)";
    JournalSkipped = "journal-skipped": "writes to a degraded group are not logged (row 1)";
    JournalNotDurable = "journal-not-durable": "batches are written without FUA (row 4)";
    JournalOneCopy = "journal-one-copy": "a batch is written to one drive only (rows 3, 7)";
    JournalRingEarly = "journal-ring-early": "places in the journal are used again before a \
        durable batch gives them up";
    JournalUnflushed = "journal-unflushed": "the tail moves without a flush (row 4)";
    JournalKeyKept = "journal-key-kept": "a journal key is used again (row 8)";
    JournalDiscarded = "journal-discarded": "a discard leaves the journal as it is (row 21)";
    GuardEarly = "guard-early": "a group is guarded while writes are under way that are not \
        logged (row 3)";
    ReplayNothing = "replay-nothing": "the journal of a degraded group is not carried out (row 3)";
    ReplayLoneNewest = "replay-lone-newest": "a replay leaves the newest batch where it is";
    ReplayUnflushed = "replay-unflushed": "the journal ends to count before what it said is \
        flushed (row 4)";
    ReplayAnyDrive = "replay-any-drive": "the journal is carried out on whatever drive is in a \
        slot (row 8)";
    RebuildMissesWrites = "rebuild-misses-writes": "a drive being rebuilt takes no writes (row 5)";
    TargetInSync = "target-in-sync": "a drive being rebuilt counts as in sync (row 6)";
    BorderAhead = "border-ahead": "cores count a rebuild's border ahead of its record";
    FillFails = "fill-fails": "a rebuild moves over stripes that it could not fill (rows 7, 19)";
    RebuildNotFlushed = "rebuild-not-flushed": "a rebuild's border is recorded before a flush \
        (row 8)";
    ResyncNotFlushed = "resync-not-flushed": "a resync's border is recorded before a flush";
    ResyncSkips = "resync-skips": "a resync writes nothing (row 10, cleared on failure)";
    SameSlot = "same-slot": "every record goes over the newest one (row 13)";
    EpochAtStart = "epoch-at-start": "a start writes no record of its own (row 15)";
    StillInSync = "still-in-sync": "a failure is published and not recorded (row 15)";
    StopUnflushed = "stop-unflushed": "a stop records clean without a flush (row 14)";
    WriteErrorLost = "write-error-lost": "write errors are swallowed (row 20)";
    FlushErrorLost = "flush-error-lost": "flush errors are swallowed (row 20)";
    FlushEarly = "flush-early": "a flush is counted before the drives' are done";
    FlushOneLess = "flush-one-less": "a flush leaves the last drive out (row 20)";
    NoFailureWait = "no-failure-wait": "a write that missed a drive is acknowledged before the \
        failure is recorded (row 20)";
    NoBarrier = "no-barrier": "nobody waits until every core routes as a write did";
    StaleVolume = "stale-volume": "a volume keeps its extents of an older snapshot (stale \
        routing)";
    HomeAnywhere = "home-anywhere": "every core is home to all stripes (row 24)";
    CopyAny = "copy-any": "unsynced mirrors are read from any copy";
    CopyMissing = "copy-missing": "the last copy of a mirror is not written";
    ScratchReused = "scratch-reused": "data recovered for a degraded write is overwritten (row 23)";
    NewRowsNotZeroed = "new-rows-not-zeroed": "a volume's new rows show what was there (row 21)";
    CommitNoEpoch = "commit-no-epoch": "a failure is recorded in the old epoch (row 15)";
    ReplaceInSync = "replace-in-sync": "a replaced drive begins as in sync (rows 6, 15)";
}

/// Whether this bug is switched on.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn is(_: Mutant) -> bool {
    false
}

#[cfg(feature = "mutants")]
static ON: core::sync::atomic::AtomicU8 = core::sync::atomic::AtomicU8::new(u8::MAX);

/// Whether this bug is switched on.
#[cfg(feature = "mutants")]
pub fn is(mutant: Mutant) -> bool {
    ON.load(core::sync::atomic::Ordering::Relaxed) == mutant as u8
}

/// Switches a bug on for the rest of the process, and any other off.
#[cfg(feature = "mutants")]
pub fn switch_on(mutant: Mutant) {
    ON.store(mutant as u8, core::sync::atomic::Ordering::Relaxed);
}

//! Known bugs that can be switched on, one at a time, to prove that the trials would catch them.
//!
//! Without the feature `mutants`, which only `palisade-trials` asks for, [`is`] is a constant
//! `false` and nothing of this is left in the product.

units::mutants! {
    Canary = "canary": "the last byte of computed parity is wrong (canary)";
    TrustParity = "trust-parity": "parity is trusted that is owed to a resync (rows 1, 2)";
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
    FlightSkipped = "flight-skipped": "writes to a whole group are in no in-flight page (row 1)";
    FlightNotDurable = "flight-not-durable": "in-flight pages are written without FUA (row 4)";
    FlightOneCopy = "flight-one-copy": "an in-flight page is written to one drive only (row 1)";
    FlightSamePlace = "flight-same-place": "every in-flight page goes over the newest one (row 13)";
    FlightUnflushed = "flight-unflushed": "a write leaves the in-flight pages before a flush \
        (row 4)";
    FlightKept = "flight-kept": "an in-flight page that says too much stays until the next write";
    DoubtKeepsAll = "doubt-keeps-all": "a start takes what was in flight for right (row 1)";
    DoubtUnlisted = "doubt-unlisted": "a start makes redundancy over blocks that a crash has cost \
        before it lists them";
    DoubtWhole = "doubt-whole": "a start of a group that lacks no drive takes what was in flight \
        for right, and owes nothing (row 1)";
    DoubtOwed = "doubt-owed": "a group that lacks no drive owes its dirty regions though \
        all that was in flight is known (row 1)";
    GuardEarly = "guard-early": "a group is guarded while writes are under way that are not \
        logged (row 3)";
    JoinUnguarded = "join-unguarded": "the record with which a drive joins does not guard its \
        group (row 3)";
    FailureUnguarded = "failure-unguarded": "the record of a group's first failure takes its \
        guard (rows 1, 3)";
    ReplayNothing = "replay-nothing": "the journal of a degraded group is not carried out (row 3)";
    ReplayGap = "replay-gap": "a journal that lacks a batch is carried out as it is (row 3)";
    ReplayLoneNewest = "replay-lone-newest": "a replay leaves the newest batch where it is";
    ReplayUnflushed = "replay-unflushed": "the journal ends to count before what it said is \
        flushed (row 4)";
    ReplayBackwards = "replay-backwards": "the journal's batches are carried out newest first \
        (row 8)";
    RebuildMissesWrites = "rebuild-misses-writes": "a drive being rebuilt takes no writes (row 5)";
    TargetInSync = "target-in-sync": "a drive being rebuilt counts as in sync (row 6)";
    BorderAhead = "border-ahead": "cores count a rebuild's border ahead of its record";
    FillFails = "fill-fails": "a rebuild moves over stripes that it could not fill (rows 7, 19)";
    RebuildNotFlushed = "rebuild-not-flushed": "a rebuild's border is recorded before a flush \
        (row 8)";
    ResyncSkips = "resync-skips": "a resync writes nothing (row 10, cleared on failure)";
    SameSlot = "same-slot": "every record goes over the newest one (row 13)";
    EpochAtStart = "epoch-at-start": "a start writes no record of its own (row 15)";
    LayoutShift = "layout-shift": "blocks are placed elsewhere from the second epoch on (row 16)";
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
    UndoneBelieved = "undone-believed": "parity that an accelerator did not compute is taken as it \
        is (row 23)";
    ScratchReused = "scratch-reused": "data recovered for a degraded write is overwritten (row 23)";
    NewRowsNotZeroed = "new-rows-not-zeroed": "a volume's new rows show what was there (row 21)";
    CommitNoEpoch = "commit-no-epoch": "a failure is recorded in the old epoch (row 15)";
    ReturnUnchecked = "return-unchecked": "what takes the place of a drive that is back is erased, \
        whatever it holds";
    ReplaceInSync = "replace-in-sync": "a replaced drive begins as in sync (rows 6, 15)";
    ZeroSkipped = "zero-skipped": "a band is not zeroed before its first write (row 21)";
    ZeroNotFlushed = "zero-not-flushed": "a band's zeros are in caches when its page says that it \
        is written (row 4)";
    UnwrittenRead = "unwritten-read": "a never-written band is read from its drives (row 21)";
    PageAfterData = "page-after-data": "a write begins before its region is dirty on the drives \
        (row 10, never set)";
    PageNotDurable = "page-not-durable": "pages of the region map are written without FUA (row 4)";
    PageSamePlace = "page-same-place": "every page of the map goes over the newest one (row 13)";
    PageOnce = "page-once": "a page with other written bits is written to one place only (row 13)";
    PageOtherLeft = "page-other-left": "a start brings a page to its own place only (row 13)";
    PageBelieved = "page-believed": "a page is taken for the newest though a newer one may be lost \
        (row 10)";
    SetBackBelieved = "set-back-believed": "a start takes a drive in that was set back to an older \
        state";
    PageErrorLost = "page-error-lost": "a drive that did not take a page stays (row 10)";
    PagePast = "page-past": "a page of the map is written behind its places, too (row 11)";
    PagesNotBrought = "pages-not-brought": "a start leaves pages as old as it found them (row 15)";
    JoinWithoutPages = "join-without-pages": "a drive joins without the map (row 5)";
    JoinWithOldPages = "join-with-old-pages": "a drive joins with the map as it was when the drive \
        was prepared (row 5)";
    WrittenEarly = "written-early": "a first write is acknowledged before every core knows that \
        its band is written (stale routing)";
    CleanUnflushed = "clean-unflushed": "a region is cleaned before a flush (row 10)";
    CleanHeld = "clean-held": "a region is cleaned that a core may write (rows 5, 10)";
    SweepInFlight = "sweep-in-flight": "a grant is given back with a write under way (row 10)";
    MissedForgotten = "missed-forgotten": "a region that is cleaned while a drive is out forgets \
        so (row 10, still degraded)";
    CatchUpSince = "catch-up-since": "a returned drive is caught up from the present epoch on \
        (row 15)";
    CatchUpClean = "catch-up-clean": "a catch-up leaves dirty regions out (row 10)";
    CatchUpTrusts = "catch-up-trusts": "a drive that was never whole is caught up like one that \
        was (row 15)";
    DiscardFirst = "discard-first": "drives discard before the map forgets the band (row 21)";
    DiscardUntold = "discard-untold": "cores go on with a band that was discarded (rows 5, 21)";
    LostUnlisted = "lost-unlisted": "what nobody can give is written over and not listed (rows \
        7, 19)";
    LostRead = "lost-read": "blocks that are listed as lost are read (row 19)";
    LostKept = "lost-kept": "what is written anew stays listed";
    LostForgotten = "lost-forgotten": "a start forgets the list (row 15)";
    HealEarly = "heal-early": "a block leaves the list before it is written (row 4)";
    PauseForgotten = "pause-forgotten": "a task goes on that was paused before a start (row 15)";
    ScrubSkips = "scrub-skips": "a scrub that was paused goes on behind what it had begun";
    RepairParityAlways = "repair-parity-always": "a scrub makes parity anew where the data is what \
        is wrong (row 17)";
    LocatedUnverified = "located-unverified": "a scrub repairs the strip that the first wrong byte \
        names, though others disagree then (row 17)";
    UnreadAsZeros = "unread-as-zeros": "recovery takes blocks that could not be read for zeros \
        (row 18)";
    QuarantineOff = "quarantine-off": "a drive is taken back with old requests under way (row 26)";
    DeadlineOff = "deadline-off": "nobody gives up a drive that hangs (row 24)";
    TimeoutIsDone = "timeout-is-done": "a request that takes too long counts as done (row 20)";
    OwnerUnread = "owner-unread": "an owner writes its pages without a look at them";
    TakeOverEarly = "take-over-early": "a server takes an array over without a wait";
    ProcessKept = "process-kept": "what a process had sent that is no more is not ended, nor \
        waited for";
}

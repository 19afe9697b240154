//! Known bugs that can be switched on, one at a time, to prove that histories of connections would
//! catch them.
//!
//! Without the feature `mutants`, which only histories and trials ask for, [`is`] is a constant
//! `false` and nothing of this is left in the product.

/// Those that trials of arrays behind a shelf catch, and not histories of connections.
pub const OF_TRIALS: [Mutant; 1] = [Mutant::CcrEarly];

units::mutants! {
    RangeWraps = "range-wraps": "first block and blocks are added, and the sum may wrap (row 22)";
    RangeAtEnd = "range-at-end": "a range may end a block behind the volume (row 22)";
    EmptyRange = "empty-range": "ranges of no blocks reach the volume (row 22)";
    LengthUnchecked = "length-unchecked": "a command's data may be shorter or longer than its \
        blocks (row 22)";
    EmptyWaits = "empty-waits": "a command without data waits for data (row 22)";
    NotEnabled = "not-enabled": "an I/O queue is taken before the controller is enabled (row 27)";
    ResetUnended = "reset-unended": "queues of the epoch before stay in the controller's list, so \
        that a reset never is over (row 27)";
    ResetEarly = "reset-early": "a reset is over before the queues of the epoch before have ended \
        (row 27)";
    EpochKept = "epoch-kept": "queues of the epoch before are served on (row 27)";
    NotDrained = "not-drained": "a host that comes again is let in before what it left has ended \
        (row 27)";
    ViewKept = "view-kept": "a queue goes on with the namespaces that it first found (row 27)";
    CcrEarly = "ccr-early": "a controller that another has ended is said to be done with its \
        commands at once";
    NoticeKept = "notice-kept": "what was told before a reset, and not read, still counts as told \
        (row 27)";
}

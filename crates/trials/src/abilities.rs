//! What trials ask of the engine, and what they don't make.
//!
//! An ability is switched on by its `true`. What no trial makes stands in docs/reliability.md, row
//! by row as here; an ability that is switched off has a row there, too, by its name.

/// Something that trials may ask of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ability {
    /// What it is.
    pub name: &'static str,
    /// Whether the engine has it.
    pub there: bool,
    /// Why not, or what the trials do instead.
    pub reason: &'static str,
}

/// A drive that answers nothing for longer than any bound.
pub const HUNG_DRIVES: Ability = Ability {
    name: "hung drives",
    there: true,
    reason: "some hang for longer than the deadline, and what they were asked runs late",
};
/// Crash while a parity group is degraded, without loss.
pub const DEGRADED_CRASH: Ability = Ability {
    name: "crash while degraded (RAID 5 and 6)",
    there: true,
    reason: "by the redo journal",
};
/// Discards that reach drives.
pub const DRIVE_DISCARD: Ability =
    Ability { name: "discard on drives", there: true, reason: "of whole bands" };
/// A drive that was out comes back and is caught up.
pub const CATCH_UP: Ability = Ability {
    name: "catch-up of a returned drive",
    there: true,
    reason: "when a person puts it back; until then it stays out",
};
/// Which drive is wrong is named by a scrub.
pub const SCRUB_NAMES: Ability = Ability {
    name: "scrub names the guilty drive",
    there: true,
    reason: "with P and Q, or three copies and more; else a repair changes nothing unless told",
};
/// What is durable in the journal area decays, within what the level can lose.
pub const UNREADABLE_JOURNAL: Ability = Ability {
    name: "unreadable journal blocks",
    there: true,
    reason: "on no more drives than the array can lose",
};

/// The table.
pub const ALL: [Ability; 6] =
    [HUNG_DRIVES, DEGRADED_CRASH, DRIVE_DISCARD, CATCH_UP, SCRUB_NAMES, UNREADABLE_JOURNAL];

/// What the trials do not make, and why not, or what they do instead: the rows of
/// docs/reliability.md.
pub const UNTRIED: [(&str, &str); 14] = [
    (
        "pages of the map beyond the first of a group",
        "drives of the trials have few bands: two regions a group in some seeds, else \
         one",
    ),
    (
        "lost and misdirected writes, and flipped bits, while hosts work",
        "exception (b) for every block they touch: made at rest, and looked for by \
         scrub",
    ),
    (
        "stale and misdirected reads",
        "the same, and nothing is left on the drive for a scrub to find",
    ),
    (
        "torn blocks of nobody's bytes in data areas",
        "exception (b); made before the data areas, where everything has a checksum",
    ),
    (
        "requests that a drive aborts",
        "to the engine a failed request like any other; made as read, write and flush \
         errors",
    ),
    (
        "latencies with a long tail",
        "drawn evenly between two bounds of each drive; some drives are 10 to 1000 \
         times slower, hold a request or hang",
    ),
    (
        "failing allocations",
        "the engine allocates its memory at start; a failed allocation ends the process",
    ),
    (
        "a restart on another release",
        "there is no release yet and one version of the format; its golden images are opened by \
         the code of today",
    ),
    (
        "what decays while a drive lacks and another copy is torn",
        "unreadable records and journal blocks are made on no more drives than the \
         array can still lose",
    ),
    (
        "more operations in the exhaustive mode",
        "one in every run of the tests; in long runs two, on RAID 1 and 5 three",
    ),
    (
        "cuts within a recovery and other orders of completion in the exhaustive mode",
        "a recovery runs to its end, at equal latencies; named words begin with a crash, the \
         seeds have both",
    ),
    (
        "torn requests in the exhaustive mode and in named words",
        "requests are written whole or not; the seeds have the rest",
    ),
    (
        "discards, and zeros of whole bands, in the exhaustive mode",
        "its volumes have two stripes, and only whole bands are forgotten: one of a band would be \
         128 times as much to read; the seeds have both",
    ),
    (
        "drives that write more than a block whole (AWUPF)",
        "what is torn may be torn at any block: nothing relies on more than one",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_these_rows() {
        let text = include_str!("../../../docs/reliability.md");
        let (_, behind) = text.split_once("### What is not tried yet").expect("it has the table");
        let rows = behind.lines().skip_while(|l| !l.starts_with("|---")).skip(1);
        let rows: Vec<&str> = rows.take_while(|l| l.starts_with('|')).collect();
        let ours: Vec<String> = UNTRIED.iter().map(|(a, b)| format!("| {a} | {b} |")).collect();
        assert_eq!(rows, ours);
        for ability in ALL.iter().filter(|ability| !ability.there) {
            assert!(UNTRIED.iter().any(|(what, _)| *what == ability.name), "{}", ability.name);
        }
    }
}

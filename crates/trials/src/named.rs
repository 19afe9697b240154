//! Named words: courses of events that once went wrong, or easily might, on small arrays. Each is
//! cut at every request, as the words of the exhaustive mode are ([`crate::small`]), and has a name
//! that pages refer to as `` `seed:NAME` ``.
//!
//! | what a named word has | and the exhaustive mode has not                                   |
//! |-----------------------|-------------------------------------------------------------------|
//! | a geometry            | strips of several blocks, more drives, more bands                 |
//! | content               | what was written, and who failed, before the array was stopped    |
//! | a crash before        | the word begins with a start that has something to make right     |
//! | a spare drive         | what is put in or back, rebuilt, paused; another failure meanwhile|
//! | requests at once      | some begin before others are over                                 |
//! | cores                 | requests begin on each in turn, and mail takes its time           |
//!
//! Invariant: a word that does not meet what it is there for fails ([`crate::met`]).
//!
//! Invariant: a word is small by its own bounds, so that all of them together are tried in every
//! run of the tests.

use crate::course::{self, Found};
use crate::failure::{Failure, Oracle, Outcome};
use crate::met::Must::{self, *};
use crate::met::{Met, Slot::*};
use crate::operation::Operation::{self, *};
use crate::small::{Shape, Small};
use crate::tally::Tally;
use engine::manage::command::{TaskAction, TaskKind};
use layout::Level::{self, *};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How an array comes to be as a word finds it.
#[derive(Clone, Copy, Debug)]
enum Begin {
    /// It was stopped behind these.
    Stopped(&'static [Operation]),
    /// Its power was cut during the last of these; so many of the ways to end there are tried.
    Cut(&'static [Operation], u64),
}

/// A named word.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What pages call it.
    pub name: &'static str,
    level: Level,
    width: usize,
    /// Blocks of a strip.
    strip: u64,
    /// Drives have caches.
    volatile: bool,
    /// Bands of a drive; the volume ends two stripes behind the begin of the last.
    bands: u64,
    begin: Begin,
    /// Slots whose drives lack from the start on.
    lacking: u64,
    word: &'static [Operation],
    /// Of each border and set of lost drives at most so many images.
    most: u64,
    /// Cores of its machine; on several, mail takes its time.
    cores: u16,
    /// What must have been met; with parity, [`Must::Guarded`] beside that.
    must: &'static [Must],
}

/// One word: what is not said is as in most.
const fn word(name: &'static str, level: Level, width: usize, word: &'static [Operation]) -> Named {
    let begin = Begin::Stopped(&[]);
    let (strip, volatile, bands, lacking, most, cores) = (2, false, 1, 0, 16, 1);
    let must = &[];
    Named { name, level, width, strip, volatile, bands, begin, lacking, word, most, cores, must }
}

impl Named {
    const fn caches(self) -> Self {
        Self { volatile: true, ..self }
    }

    const fn behind(self, before: &'static [Operation]) -> Self {
        Self { begin: Begin::Stopped(before), ..self }
    }

    const fn cut(self, before: &'static [Operation], ways: u64) -> Self {
        Self { begin: Begin::Cut(before, ways), ..self }
    }

    const fn without(self, lacking: u64) -> Self {
        Self { lacking, ..self }
    }

    const fn must(self, must: &'static [Must]) -> Self {
        Self { must, ..self }
    }

    const fn cores(self, cores: u16) -> Self {
        Self { cores, ..self }
    }

    const fn strips(self, strip: u64) -> Self {
        Self { strip, ..self }
    }

    const fn bands(self, bands: u64) -> Self {
        Self { bands, ..self }
    }

    const fn most(self, most: u64) -> Self {
        Self { most, ..self }
    }
}

/// Nothing but the start.
const START: &[Operation] = &[];
/// A block, one over the border of strips, and a flush.
const TWO: &[Operation] = &[Write(0, 1, false), Write(1, 2, true), Flush];
/// The first blocks of a volume.
const FILLED: &[Operation] = &[Write(0, 4, false), Flush];
/// Small, over the border of strips, over what was just written, whole stripes.
const FOUR: &[Operation] =
    &[Write(0, 1, false), Write(1, 2, true), Write(0, 3, false), Write(2, 6, false), Flush];
/// At once, in the same stripe and in another.
const ABREAST: &[Operation] =
    &[Begin(0, 1, true), Begin(2, 1, false), Begin(5, 3, true), Join, Flush];
/// Whole stripes, over others.
const CHANGED: &[Operation] = &[Write(0, 8, true), Write(0, 8, true)];
/// Slot 1, or two, are out.
const ONE_OUT: &[Operation] = &[Write(0, 8, true), Fail(1), Write(3, 1, true)];
const TWO_OUT: &[Operation] = &[Write(0, 8, true), Fail(1), Fail(3), Write(3, 1, true)];
/// Written while slot 1, or two, are out, and not yet in place when power goes.
const LOGGED: &[Operation] =
    &[Write(0, 8, true), Fail(1), Write(3, 1, true), Write(0, 2, true), Write(0, 4, true)];
const LOGGED_TWO: &[Operation] =
    &[Write(0, 8, true), Fail(1), Fail(3), Write(3, 1, true), Write(0, 2, true), Write(0, 4, true)];
/// Slot 1 gets another drive.
const JOINS: &[Operation] = &[Replace(1), Begin(0, 1, true), Begin(3, 2, false), Rest, Join];

/// A drive goes while requests are under way, and others come.
const UNGUARDED: &[Operation] = &[
    Begin(0, 1, true),
    Begin(2, 3, true),
    Pass(6),
    Vanish(2),
    Join,
    Write(0, 4, true),
    Write(6, 1, false),
];
/// What it must meet.
const GUARD: &[Must] = &[Borders(60), AtOnce(10), Finds(2, InSync), Finds(2, Failed)];
/// What a word with requests at once must meet.
const AT_ONCE: &[Must] = &[Borders(60), AtOnce(20)];
const AT_ONCE_LOSE: &[Must] = &[Borders(60), AtOnce(20), Lose];
/// What a drive that is put into slot 1 goes through.
const JOINED: &[Must] =
    &[Borders(100), AtOnce(30), Finds(1, Failed), Finds(1, Filled), Finds(1, InSync)];

/// All of them.
pub const ALL: &[Named] = &[
    word("raid1_of_2_at_every_request", Raid1, 2, TWO)
        .behind(FILLED)
        .caches()
        .must(&[Borders(20), DirtyAndClean]),
    word("raid1_of_3_at_every_request", Raid1, 3, TWO)
        .behind(FILLED)
        .caches()
        .must(&[Borders(20), DirtyAndClean]),
    word("raid5_at_every_request", Raid5, 4, FOUR).behind(FILLED).must(&[Borders(40), Lose]),
    word("raid5_at_every_request", Raid5, 3, ABREAST)
        .behind(FILLED)
        .caches()
        .cores(2)
        .must(AT_ONCE_LOSE),
    word("raid6_at_every_request", Raid6, 5, TWO)
        .behind(FILLED)
        .must(&[Borders(20), DirtyAndClean]),
    word("raid6_at_every_request", Raid6, 4, ABREAST)
        .behind(FILLED)
        .caches()
        .cores(4)
        .must(AT_ONCE),
    word("raid10_at_every_request", Raid10, 4, TWO)
        .behind(FILLED)
        .must(&[Borders(20), DirtyAndClean]),
    word("first_writes_cut_at_every_request_without_redundancy", Raid0, 3, TWO)
        .caches()
        .must(&[Borders(12)]),
    word("first_writes_cut_at_every_request_without_redundancy", Jbod, 2, TWO).must(&[Borders(8)]),
    word("first_writes_cut_at_every_request_of_mirrors", Raid1, 2, &[Write(255, 2, true), Flush])
        .bands(2)
        .must(&[Borders(8), DirtyAndClean]),
    word("first_writes_cut_at_every_request_of_mirrors", Raid10, 4, TWO)
        .caches()
        .must(&[Borders(16), DirtyAndClean]),
    word("first_writes_cut_at_every_request_with_parity", Raid5, 3, &[Write(511, 2, true), Flush])
        .bands(2)
        .caches()
        .must(&[Borders(12), Lose]),
    word("first_writes_cut_at_every_request_with_parity", Raid6, 4, TWO)
        .must(&[Borders(16), DirtyAndClean]),
    word("raid5_degraded_at_every_request", Raid5, 4, FOUR)
        .behind(ONE_OUT)
        .caches()
        .cores(2)
        .must(&[Borders(40), CarryOut(20)]),
    word("raid5_degraded_at_every_request", Raid5, 3, FOUR)
        .behind(ONE_OUT)
        .must(&[Borders(40), CarryOut(20)]),
    word("raid6_degraded_at_every_request", Raid6, 5, FOUR)
        .behind(ONE_OUT)
        .caches()
        .most(4)
        .must(&[Borders(40), CarryOut(20)]),
    word("raid6_without_two_at_every_request", Raid6, 5, FOUR)
        .behind(TWO_OUT)
        .cores(2)
        .must(&[Borders(40), CarryOut(20)]),
    word("a_replay_is_cut_at_every_request", Raid5, 4, START)
        .cut(LOGGED, 16)
        .caches()
        .must(&[Borders(16 * 20), CarryOut(20)]),
    word("a_replay_is_cut_at_every_request", Raid5, 3, START)
        .cut(LOGGED, 16)
        .must(&[Borders(16 * 20), CarryOut(20)]),
    word("a_replay_is_cut_at_every_request", Raid6, 4, START)
        .cut(LOGGED_TWO, 16)
        .must(&[Borders(16 * 20), CarryOut(20)]),
    // A batch on one drive is on another before any of it is in place, so that drive may go.
    word("a_batch_of_one_drive_is_on_another_before_it_is_carried_out", Raid6, 4, START)
        .cut(LOGGED, 64)
        .must(&[Lone(2), CarryOut(100)]),
    word("a_decision_is_cut_at_every_request", Raid5, 3, START)
        .cut(CHANGED, 32)
        .without(0b10)
        .must(&[Borders(32 * 10), Lose]),
    word("a_decision_is_cut_at_every_request", Raid6, 4, START)
        .cut(CHANGED, 16)
        .without(0b110)
        .must(&[Borders(16 * 10), Lose]),
    word("a_join_is_cut_at_every_request", Raid6, 4, JOINS).behind(TWO_OUT).cores(2).must(JOINED),
    word("a_join_is_cut_at_every_request", Raid6, 4, JOINS)
        .behind(TWO_OUT)
        .caches()
        .strips(32)
        .must(JOINED),
    word(
        "a_second_failure_is_cut_at_every_request",
        Raid6,
        4,
        &[Begin(3, 1, true), Begin(0, 2, false), Pass(4), Vanish(2), Write(2, 1, true), Flush],
    )
    .behind(ONE_OUT)
    .cores(3)
    .must(&[Borders(50), AtOnce(5), Finds(2, InSync), Finds(2, Failed)]),
    word(
        "a_pause_and_a_cancel_are_cut_at_every_request",
        Raid5,
        3,
        &[
            Replace(1),
            Task(TaskKind::Rebuild, TaskAction::Pause),
            Write(0, 1, true),
            Task(TaskKind::Rebuild, TaskAction::Resume),
            Rest,
        ],
    )
    .behind(ONE_OUT)
    .must(&[Paused, Finds(1, Filled), Finds(1, InSync)]),
    word(
        "a_pause_and_a_cancel_are_cut_at_every_request",
        Raid5,
        3,
        &[Replace(1), Task(TaskKind::Rebuild, TaskAction::Cancel), Write(0, 1, true)],
    )
    .behind(ONE_OUT)
    .must(&[Finds(1, Filled), Finds(1, Failed)]),
    word("there_is_no_moment_without_guard_after_a_failure", Raid5, 4, UNGUARDED)
        .behind(FILLED)
        .cores(3)
        .must(GUARD),
    word("there_is_no_moment_without_guard_after_a_failure", Raid6, 5, UNGUARDED)
        .behind(FILLED)
        .caches()
        .cores(2)
        .most(4)
        .must(GUARD),
    word("a_crash_around_cleaning_loses_nothing", Raid1, 3, &[Write(0, 1, true), Idle])
        .behind(FILLED)
        .must(&[DirtyAndClean]),
    word(
        "a_crash_around_cleaning_loses_nothing",
        Raid5,
        3,
        &[Write(0, 1, false), Idle, Write(2, 1, false)],
    )
    .behind(FILLED)
    .caches()
    .must(&[DirtyAndClean]),
    word(
        "a_crash_around_cleaning_loses_nothing",
        Raid10,
        4,
        &[Write(0, 1, false), Idle, Write(2, 1, false)],
    )
    .behind(FILLED)
    .caches()
    .must(&[DirtyAndClean]),
    word(
        "a_drive_that_is_put_back_is_caught_up",
        Raid5,
        3,
        &[Vanish(1), Write(0, 3, true), Return(1), Write(2, 1, true), Rest, Write(0, 1, false)],
    )
    .behind(FILLED)
    .must(&[Lose, Finds(1, Failed), Finds(1, Filled), Finds(1, InSync)]),
];

/// The words of this name, or all of them.
pub fn called(name: &str) -> Vec<Named> {
    ALL.iter().filter(|named| name == "all" || named.name == name).copied().collect()
}

/// Tries one.
///
/// # Errors
/// What was found, or what was not met that the word is there for.
pub fn one(named: &Named, tally: &mut Tally) -> Outcome<Met> {
    let Named { level, width, strip, volatile, bands, cores, .. } = *named;
    let shape = Shape { level, width, strip, bands, volatile, cores, most: Some(named.most) };
    let (mut small, made) = Small::new(shape, 1)?;
    let begins = match named.begin {
        Begin::Stopped(before) => vec![small.after(&made, before)?],
        Begin::Cut(before, ways) => small.cuts(&made, before, ways)?,
    };
    small.context.tally.seeds += 1;
    let outcome = begins.iter().enumerate().try_for_each(|(number, begin)| {
        let failed = |f: Failure| f.at(format_args!("begin {number}"));
        small.word(begin, named.lacking, named.word).map_err(failed)
    });
    small.met.lost = small.context.tally.exceptions[0];
    tally.add(&small.context.tally);
    outcome?;
    let parity: &[Must] = if matches!(level, Raid5 | Raid6) { &[Guarded] } else { &[] };
    match parity.iter().chain(named.must).find(|must| !small.met.has(**must)) {
        None => Ok(small.met),
        Some(must) => {
            let text = format!("the word is not hard enough: not met: {must:?}; {}", small.met);
            Err(Failure::new(Oracle::Vacuous, text))
        }
    }
}

/// Tries these on so many threads, and says what each came to.
pub fn run(list: &[Named], jobs: usize, say: bool) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(named) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
            if course::over() {
                return;
            }
            let (begun, mut tally) = (std::time::Instant::now(), Tally::default());
            let called = format!("{} (RAID {} of {})", named.name, named.level, named.width);
            course::begins(format!("named {called}"));
            let outcome = one(named, &mut tally);
            course::add(&tally, None);
            if say {
                let ([all, tried, out], points) = (tally.combinations, tally.points);
                println!(
                    "{:4.1} s {called}: {all} combinations, {tried} tried that differ, {out} left \
                     out; {points} crash points",
                    begun.elapsed().as_secs_f64(),
                );
                outcome.iter().for_each(|met| println!("       met: {met}"));
            }
            let called = course::ends().unwrap_or_default();
            if let Err(failure) = outcome {
                course::note(Found { called, failure });
            }
        }
    };
    std::thread::scope(|scope| (0..jobs).for_each(|_| _ = scope.spawn(work)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_which_nothing_happens_fails() {
        let names = [
            "raid1_of_2_at_every_request",
            "a_join_is_cut_at_every_request",
            "a_second_failure_is_cut_at_every_request",
            "a_pause_and_a_cancel_are_cut_at_every_request",
            "there_is_no_moment_without_guard_after_a_failure",
            "a_crash_around_cleaning_loses_nothing",
        ];
        for name in names {
            let broken = Named { word: START, most: 1, ..called(name)[0] };
            let failure = one(&broken, &mut Tally::default()).expect_err(name);
            assert_eq!(failure.oracle, Oracle::Vacuous, "{name}: {failure}");
        }
    }
}

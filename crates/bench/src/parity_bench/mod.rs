//! `palisade bench parity`: what the parity crate reaches of what this machine can give.
//!
//! One thread does the same work by turns: Palisade, ISA-L ([`crate::isal`]), `memcpy` and a
//! read-only pass over the same data. A round gives each of them one turn, the order turning
//! round from one round to the next; a result is the median of the rounds' ratios. *Hot* strips
//! are short enough for the second-level cache; *from memory* they are far larger than every
//! cache. Results that a processor reads next are stored through the caches (hot, and small
//! writes always); results from memory are stored past them ([`parity::Stores::Streaming`]), as
//! for strips that go to drives.
//!
//! Results, for a work `NAME` such as `pq-hot`: `NAME` is Palisade's rate over ISA-L's;
//! `NAME-to-memcpy` and `NAME-to-read` are its rate over those of the other two; `NAME-gbps` and
//! `NAME-isal-gbps` are rates in 10^9 bytes of data processed per second; `NAME-cpu-us` is the
//! CPU time of one of Palisade's passes. Names without a number of strips mean 8 data strips.
//!
//! Goals stand for at least 15 rounds of at least 20 ms a side, strips from memory for at least
//! 16 MiB; a smaller run has none, and a note says why.
//!
//! Invariant: nothing is timed before its outputs were found equal, byte for byte, to ISA-L's,
//! or without ISA-L to what [`plain`] computes; outputs are spoilt before that, so that what an
//! earlier contest left there proves nothing.

mod arena;
mod checksum;
mod contest;
pub(crate) mod plain;
mod table;
#[cfg(test)]
mod tests;
mod turns;
mod works;

use crate::error::BenchError;
use crate::isal::{Isal, SONAME};
use crate::report::{Goal, Report};
use crate::stats::{Round, Sample, Spread, rate_ratio};
use arena::Arena;
use contest::Contest;
use std::path::PathBuf;
use std::time::Duration;
pub use table::parity_table;
use turns::turn;
use works::{WORKS, Work};

/// Bytes of a strip that is hot.
const HOT_BYTES: usize = 16 << 10;
/// Bytes of a strip that comes from memory, unless another number is given.
const MEMORY_BYTES: u64 = 16 << 20;

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct ParityBench {
    /// Rounds of each work, at least 1.
    pub rounds: usize,
    /// Time of each side in a round; a pass that has begun is finished.
    pub span: Duration,
    /// Bytes of each strip from memory, a multiple of 4096. Fifty such strips are made.
    pub memory_bytes: u64,
    /// ISA-L's library: a path, or a name that the loader looks for.
    pub isal: PathBuf,
}

impl Default for ParityBench {
    fn default() -> Self {
        Self {
            rounds: 15,
            span: Duration::from_millis(20),
            memory_bytes: MEMORY_BYTES,
            isal: SONAME.into(),
        }
    }
}

impl ParityBench {
    fn check(&self) -> Result<usize, BenchError> {
        let problem = if self.rounds == 0 || self.span.is_zero() {
            "at least one round of some time is needed"
        } else if !(4096..=1 << 30).contains(&self.memory_bytes)
            || !self.memory_bytes.is_multiple_of(4096)
        {
            "give strips of 4 KiB to 1 GiB, in steps of 4 KiB"
        } else {
            return Ok(self.memory_bytes as usize);
        };
        Err(BenchError::Usage(problem.to_owned()))
    }

    /// Why results at `place` have no goals; `None` if they have.
    fn without_goals(&self, place: Place) -> Option<&'static str> {
        let usual = Self::default();
        if self.rounds < usual.rounds {
            Some("fewer than 15 rounds")
        } else if self.span < usual.span {
            Some("turns shorter than 20 ms")
        } else if place == Place::Memory && self.memory_bytes < usual.memory_bytes {
            Some("strips from memory shorter than 16 MiB")
        } else {
            None
        }
    }

    /// What a work's ratio to ISA-L should reach, if that is defined for such a run.
    fn goal(&self, work: &Work, place: Place) -> Option<Goal> {
        work.goal(place).filter(|_| self.without_goals(place).is_none())
    }

    /// What was done, for the report's reader.
    fn notes(&self) -> Vec<String> {
        let (hot, memory) = (HOT_BYTES as u64, self.memory_bytes);
        let mut notes = vec![format!(
            "strips: {} hot, {} from memory; {} rounds of {} ms of CPU time a side",
            units::format_size(hot),
            units::format_size(memory),
            self.rounds,
            self.span.as_secs_f64() * 1e3,
        )];
        let all = self.without_goals(Place::Hot).map(|why| format!("no goals: {why}"));
        let some = || self.without_goals(Place::Memory);
        notes.extend(all.or_else(|| some().map(|why| format!("no goals from memory: {why}"))));
        notes
    }
}

/// Where a contest's strips are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Hot,
    Memory,
}

/// What the sides did, a sample per round each.
#[derive(Default)]
struct Samples {
    ours: Vec<Sample>,
    theirs: Vec<Sample>,
    copy: Vec<Sample>,
    read: Vec<Sample>,
}

/// The sides in the order of their first round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Ours,
    Theirs,
    Copy,
    Read,
}

const SIDES: [Side; 4] = [Side::Ours, Side::Theirs, Side::Copy, Side::Read];

/// The order of a round: each side comes first in turn, and every other round runs backwards, so
/// that no side always follows the same other one.
fn order(round: usize) -> [Side; 4] {
    let mut order = SIDES;
    order.rotate_left(round / 2 % SIDES.len());
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// Takes turns.
fn rounds(contest: &mut dyn Contest<'_>, options: &ParityBench, isal: Option<&Isal>) -> Samples {
    let mut samples = Samples::default();
    for round in 0..options.rounds {
        for side in order(round) {
            let (list, sample) = match (side, isal) {
                (Side::Theirs, None) => continue,
                (Side::Theirs, Some(isal)) => {
                    (&mut samples.theirs, turn(options.span, || contest.theirs(isal)))
                }
                (Side::Ours, _) => (&mut samples.ours, turn(options.span, || contest.ours())),
                (Side::Copy, _) => (&mut samples.copy, turn(options.span, || contest.copy())),
                (Side::Read, _) => (&mut samples.read, turn(options.span, || contest.read())),
            };
            list.push(sample);
        }
    }
    samples
}

/// One pass of Palisade and one of ISA-L, or plain computation without it, each on spoilt
/// outputs; then their outputs must be equal.
fn compare(
    contest: &mut dyn Contest<'_>,
    isal: Option<&Isal>,
    name: &str,
) -> Result<(), BenchError> {
    contest.spoil();
    contest.ours();
    let than = match isal {
        Some(isal) => {
            contest.theirs(isal);
            "ISA-L's"
        }
        None => {
            contest.plain();
            "what it should be"
        }
    };
    for (output, (ours, theirs)) in contest.outputs().into_iter().enumerate() {
        if ours != theirs {
            let offset = ours.iter().zip(theirs).position(|(a, b)| a != b).unwrap_or(0);
            let operation = name.to_owned();
            return Err(BenchError::Different { operation, output, offset, than });
        }
    }
    Ok(())
}

/// Side B over side A, round by round.
fn against(b: &[Sample], a: &[Sample]) -> Vec<Round> {
    a.iter().zip(b).map(|(&a, &b)| Round { a, b }).collect()
}

/// Rates of data processed, in GB/s.
fn gbps(samples: &[Sample], bytes: u64) -> Option<Spread> {
    let rate = Spread::of(samples.iter().map(Sample::rate));
    rate.map(|rate| rate.scaled(bytes as f64 / 1e9))
}

/// Puts a contest's results into the report.
fn add(report: &mut Report, name: &str, goal: Option<Goal>, samples: &Samples, bytes: u64) {
    if !samples.theirs.is_empty() {
        let ratio = rate_ratio(&against(&samples.ours, &samples.theirs));
        report.add(name, "ratio", ratio, goal);
        report.add(&format!("{name}-isal-gbps"), "GB/s", gbps(&samples.theirs, bytes), None);
    }
    report.add(&format!("{name}-gbps"), "GB/s", gbps(&samples.ours, bytes), None);
    for (yardstick, other) in [("memcpy", &samples.copy), ("read", &samples.read)] {
        let ratio = rate_ratio(&against(&samples.ours, other));
        report.add(&format!("{name}-to-{yardstick}"), "ratio", ratio, None);
    }
    let cpu = Spread::of(samples.ours.iter().map(Sample::cpu_micros));
    report.add(&format!("{name}-cpu-us"), "us", cpu, None);
}

/// Measures one work at one place.
fn measure(
    work: &Work,
    place: Place,
    arena: &mut Arena,
    options: &ParityBench,
    isal: Option<&Isal>,
    report: &mut Report,
) -> Result<(), BenchError> {
    let name = work.name(place);
    let mut contest = work.contest(place, arena, isal);
    compare(&mut *contest, isal, &name)?;
    let bytes = contest.bytes();
    let samples = rounds(&mut *contest, options, isal);
    add(report, &name, options.goal(work, place), &samples, bytes);
    if let Some(strips) = work.yardstick() {
        for (yardstick, side) in [("memcpy", &samples.copy), ("read", &samples.read)] {
            let name = format!("{yardstick}{strips}-{}-gbps", place.name());
            report.add(&name, "GB/s", gbps(side, bytes), None);
        }
    }
    Ok(())
}

/// Carries the benchmark out. `version` and `command` go into the report; `progress` is told
/// what happens, a line each.
///
/// # Errors
/// When it can't be carried out, or an output differs from ISA-L's: then nothing of it counts.
pub fn bench_parity(
    options: &ParityBench,
    version: &str,
    command: &str,
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    let memory_bytes = options.check()?;
    let mut report = Report::new(version, command);
    let kernel = parity::select_kernel().map_err(|e| BenchError::Usage(e.to_string()))?;
    let forced = std::env::var(::parity::VARIABLE).is_ok_and(|name| !name.is_empty());
    let how = if forced { ", forced by PALISADE_PARITY" } else { "" };
    report.notes.push(format!("parity kernel: {kernel}{how}"));
    let isal = match Isal::load(&options.isal) {
        Ok(isal) => {
            let file = isal.file().file_name().unwrap_or_default().display().to_string();
            report.notes.push(format!("ISA-L: {file}: {}", isal.chosen().join(", ")));
            report.notes.push("outputs compared with: ISA-L's, byte for byte".to_owned());
            Some(isal)
        }
        Err(error) => {
            let plain = "outputs compared with: plain computation by the definitions, not ISA-L";
            report.notes.push(plain.to_owned());
            report.missing.push(format!("ratios to ISA-L: {error}"));
            None
        }
    };
    report.notes.extend(options.notes());
    report.notes.iter().for_each(|note| progress(note));
    for (place, bytes) in [(Place::Hot, HOT_BYTES), (Place::Memory, memory_bytes)] {
        let mut arena = Arena::new(bytes);
        for work in WORKS.iter().filter(|work| work.is_at(place)) {
            progress(&work.name(place));
            measure(work, place, &mut arena, options, isal.as_ref(), &mut report)?;
        }
    }
    Ok(report)
}

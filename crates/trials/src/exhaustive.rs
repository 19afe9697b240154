//! The exhaustive small mode: everything that can happen to an array of at most four drives and
//! two stripes.
//!
//! | of      | every                                                                            |
//! |---------|----------------------------------------------------------------------------------|
//! | words   | sequence of so many operations of a small alphabet, a drive's failure among      |
//! |         | them; then the array is left alone until nothing more happens, and stopped       |
//! | begins  | set of drives that lack from the start on, none among them                       |
//! | cuts    | way in which a cut of power can end each ([`crate::small`])                      |

use crate::failure::{Failure, Outcome};
use crate::operation::Operation;
use crate::small::{Shape, Small, State};
use crate::tally::Tally;
use layout::Level;

/// The levels of a word of the command line; all without one.
pub fn levels(word: Option<&str>) -> Option<Vec<Level>> {
    let Some(word) = word else { return Some(Level::ALL.to_vec()) };
    Level::ALL.iter().find(|level| level.to_string() == word).map(|level| vec![*level])
}

fn width(level: Level) -> usize {
    match level {
        Level::Raid0 | Level::Raid1 | Level::Jbod => 2,
        Level::Raid5 => 3,
        Level::Raid6 | Level::Raid10 => 4,
    }
}

/// What can be asked of two stripes of `k` strips: a strip, part of a stripe, a stripe, across the
/// border of stripes, durable, zeros, a flush, and a failure where that costs nothing.
fn alphabet(k: u64, spare: bool) -> Vec<Operation> {
    let mut all = vec![
        Operation::Write(0, 1, false),
        Operation::Write(k - 1, 2, false),
        Operation::Write(0, k, true),
        Operation::Zero(0, 1),
        Operation::Flush,
    ];
    if k > 1 {
        all.push(Operation::Write(1, 1, true));
        all.push(Operation::Write(0, k, false));
    }
    if spare {
        all.push(Operation::Fail(1));
    }
    all
}

/// Tries every sequence of so many operations on the level; of each border and loss at most `most`
/// images, if there is a bound.
///
/// # Errors
/// What was found.
pub fn run(level: Level, operations: usize, most: Option<u64>, tally: &mut Tally) -> Outcome<()> {
    for volatile in [false, true] {
        let (width, cores) = (width(level), 1);
        let shape = Shape { level, width, strip: 1, bands: 1, volatile, cores, most };
        let (mut small, begin) = Small::new(shape, 0)?;
        let letters = alphabet(shape.k(), small.bears(1));
        let outcome = words(&mut small, &begin, &letters, operations);
        tally.add(&small.context.tally);
        let cache = if volatile { "volatile caches" } else { "no caches" };
        outcome.map_err(|f: Failure| f.at(cache))?;
    }
    Ok(())
}

/// Every word of so many letters, from every begin.
fn words(
    small: &mut Small,
    begin: &State,
    letters: &[Operation],
    operations: usize,
) -> Outcome<()> {
    for lacking in small.sets() {
        for number in 0..letters.len().pow(operations as u32) {
            let mut left = number;
            let letter = |_| {
                let letter = letters[left % letters.len()];
                left /= letters.len();
                letter
            };
            let word: Vec<Operation> = (0..operations).map(letter).collect();
            small.context.tally.seeds += 1;
            small
                .word(begin, lacking, &word)
                .map_err(|f| f.at(format_args!("begun without slots {lacking:#b}, {word:?}")))?;
        }
    }
    Ok(())
}

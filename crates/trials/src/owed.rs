//! Why a start may be refused that lacks no more drives than redundancy makes up for: what a group
//! owes for a cause that the drives show by themselves, whatever the engine's record says.
//!
//! After a crash a group owes nothing, but where a start found an in-flight page that may be
//! hidden, or a page of the map on no drive, until the resync of its regions is over.
//!
//! Such a start is seen in its image. What it owes is handed from picture to picture, until the
//! record of every drive says that the group is guarded again: from there on no start may be
//! refused, and no record may say otherwise, without a cause of its own.
//!
//! Invariant: that a record calls a group unguarded is no cause.

use crate::decoder::Raw;
use crate::decoder::array::Decoded;
use crate::decoder::map::GroupMap;
use crate::decoder::record::{self, Range};
use crate::failure::{Failure, Oracle, Outcome};
use crate::tally::Tally;

/// The causes that starts found, of which a resync may be owed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Owed {
    /// An in-flight page may have been hidden.
    hidden: bool,
    /// A page of the map was on no drive, now or at a start since which nobody made right what it
    /// stood for.
    lost: bool,
}

impl Owed {
    /// What a start from an image may owe that `was` owed before.
    pub fn at<R: Raw>(decoded: &Decoded<'_, R>, was: Self) -> Self {
        let there = || decoded.drives.iter().flatten();
        let guards = |own: record::Record| {
            own.ranges.iter().all(|r| r.kind != 2 || groups(r).all(|g| own.groups[g].guarded))
        };
        let guarded = there().all(|drive| record::newest(*drive).is_some_and(guards));
        let was = if guarded { Self::default() } else { was };
        let lost = decoded.maps.iter().any(GroupMap::any_forgotten);
        let hidden = was.hidden || decoded.hides();
        Self { hidden, lost: was.lost || lost }
    }

    /// Whether anything may be owed.
    pub fn any(self) -> bool {
        self.hidden || self.lost
    }

    /// Whether an array that says so may owe what has its start refused; counts why.
    ///
    /// # Errors
    /// `Start` if there is no cause.
    pub fn excuses<R: Raw>(self, decoded: &Decoded<'_, R>, tally: &mut Tally) -> Outcome<()> {
        let cause = match self {
            Self { lost: true, .. } => "a page of the map was lost",
            Self { hidden: true, .. } => "an in-flight page was hidden",
            _ => {
                let groups = &decoded.record.groups;
                let text = format!("refused, and nothing is known that is owed: {groups:?}");
                return Err(Failure::new(Oracle::Start, text));
            }
        };
        tally.excuse(cause, 1);
        Ok(())
    }

    /// No parity group is unclean and not guarded without a cause.
    ///
    /// # Errors
    /// `Metadata` if one is.
    pub fn agrees<R: Raw>(self, decoded: &Decoded<'_, R>) -> Outcome<()> {
        let record = &decoded.record;
        let bare = |r: &Range| {
            groups(r).any(|g| {
                let group = record.groups[g];
                group.unclean && !group.guarded && !self.any()
            })
        };
        match record.ranges.iter().filter(|r| r.kind == 2).any(bare) {
            false => Ok(()),
            true => {
                let text = format!("not guarded, and nothing is owed: {:?}", record.groups);
                Err(Failure::new(Oracle::Metadata, text))
            }
        }
    }
}

fn groups(r: &Range) -> core::ops::Range<usize> {
    r.first_group..r.first_group + r.groups
}

//! Drives that lost their last record slots: of each the newest record that is there is known, its
//! *first record*, and that at most one followed, which may have said what nobody else knows.
//!
//! | the array         | and                                                 | such a drive      |
//! |-------------------|-----------------------------------------------------|-------------------|
//! | has no redundancy | another has a later record: none is made without it | takes part        |
//! | has no redundancy | none has                                            | a person must say |
//! | has redundancy    | starts without it, with none that it calls failed   | is left out       |
//! | has redundancy    | does not                                            | no start          |
//!
//! With redundancy others' records prove nothing: they may have been written while the drive was
//! out, and no first record may bring older bytes in beside newer ones.
//!
//! Invariant: a drive of which nobody can know takes part only by a person's word, and only where
//! nothing else stands for what it holds.

use super::{AssembleError, AssembleOptions, Assembly, Found, lineage, of_known};
use crate::FormatError;
use crate::record::ArrayRecord;
use layout::Layout;
use units::GroupNo;

fn is_doubtful(drive: &Found) -> bool {
    matches!(drive.record, Err(FormatError::TailMissing { .. }))
}

/// The drives, with the first records of those of which `take` says so as if they were sound.
fn taken(found: &[Found], take: impl Fn(&ArrayRecord) -> bool) -> Vec<Found> {
    let mut found = found.to_vec();
    for drive in &mut found {
        let first = drive.record.as_ref().err().and_then(FormatError::in_doubt);
        if let Some(first) = first.filter(&take) {
            drive.record = Ok(first);
        }
    }
    found
}

fn without_redundancy(record: &ArrayRecord) -> bool {
    let none = |layout: &Layout| (0..layout.groups()).all(|g| layout.m(GroupNo(g)) == 0);
    record.layout().is_ok_and(|layout| none(&layout))
}

/// Assembles drives of which some may have lost their last record slots.
pub(super) fn assemble(
    found: &[Found],
    options: AssembleOptions,
) -> Result<Assembly, AssembleError> {
    if !found.iter().any(is_doubtful) {
        return of_known(found, options);
    }
    let newest = lineage::newest(found).ok().map(|newest| newest.record);
    let known = |first: &ArrayRecord| {
        newest.is_some_and(|newest| {
            let later = first.sequence < newest.sequence;
            without_redundancy(newest) && later && first.epoch.counter <= newest.epoch.counter
        })
    };
    let sound = taken(found, known);
    let without = of_known(&sound, options);
    let doubtful: Vec<&Found> = sound.iter().filter(|drive| is_doubtful(drive)).collect();
    if doubtful.is_empty() {
        return without;
    }
    // What would be wrong with sound drives is with these.
    let with = of_known(&taken(found, |_| true), options)?;
    let paths = |drives: &[&Found]| drives.iter().map(|drive| drive.path.clone()).collect();
    let needed = |instead: Option<AssembleError>| {
        let instead = instead.map(Box::new);
        Err(AssembleError::TailMissing { paths: paths(&doubtful), instead })
    };
    if without_redundancy(&with.record) {
        return if options.accept_loss { Ok(with) } else { needed(None) };
    }
    let without = match without {
        Ok(without) => without,
        Err(why) => return needed(Some(why)),
    };
    let called_out = |(ours, theirs): (&Option<usize>, &Option<usize>)| {
        ours.filter(|ours| *theirs != Some(*ours)).map(|ours| &found[ours])
    };
    let others: Vec<&Found> =
        without.slots.iter().zip(&with.slots).filter_map(called_out).collect();
    if others.is_empty() {
        return Ok(without);
    }
    needed(Some(AssembleError::Diverged { newest: paths(&doubtful), others: paths(&others) }))
}

//! What a crash left, looked at by the second reader before anything is started.
//!
//! Nothing that a start finds out later was known to nobody at the crash, so the image must say it
//! all by itself:
//! - where strips of a stripe do not agree, nobody trusts its redundancy: by the newest record and
//!   page of all drives, and by those of any one drive that counts; and where in-flight pages stand
//!   for what was under way, they name it, also with drives left out;
//! - with some drives left out that the array can start without, every block is read, and holds a
//!   version that it may hold.
//!
//! Where blocks of a drive can't be read that is damage enough, and only the first is looked at, by
//! all drives.
//!
//! Invariant: nothing is changed; what holds here holds however a start goes about it.

use crate::decoder::PAGE;
use crate::decoder::array::{Decoded, Refusal, Seat};
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::Picked;
use crate::owed::Owed;
use crate::tally::Tally;
use crate::versions::Versions;
use sim::Rng;

/// Looks at the drives of a picture. `readable`: no drive has blocks that can't be read; `owed`:
/// what a start from it may owe.
///
/// # Errors
/// `Metadata` if redundancy is trusted that is wrong, `Erasure` if a block is lost with a set of
/// drives, or is another.
pub fn look(
    all: &Decoded<'_, Picked>,
    versions: &Versions,
    (readable, owed): (bool, Owed),
    (rng, tally): (&mut Rng, &mut Tally),
) -> Outcome<()> {
    if all.may_start().is_err() {
        return Ok(());
    }
    tally.look("image: pictures", 1);
    let wrong = all.mismatches(true).0;
    distrusted(all, all, &wrong, "all drives")?;
    if !readable {
        return Ok(());
    }
    for slot in (0..all.drives.len()).filter(|slot| !wrong.is_empty() && all.counts(*slot)) {
        let own = all.maps_of(slot);
        let trusts = |seat: &&Seat| {
            let group = all.record.ranges[seat.range].first_group + seat.position;
            own.iter().any(|(g, map)| *g == group && !map.dirty(seat.stripe))
        };
        if let Some(seat) = wrong.iter().find(trusts) {
            let text = format!("slot {slot} alone says clean where strips do not agree: {seat:?}");
            return Err(Failure::new(Oracle::Metadata, text));
        }
    }
    let spare = all.spare();
    if spare == 0 {
        return Ok(());
    }
    let mut there: Vec<usize> = (0..all.drives.len()).filter(|s| all.counts(*s)).collect();
    let mut erased = 0u64;
    for _ in 0..1 + rng.index(spare) {
        erased |= 1 << there.swap_remove(rng.index(there.len()));
    }
    without(all, (erased, owed), &wrong, versions, tally)
}

/// Whether nobody trusts the redundancy of stripes whose strips do not agree.
fn distrusted<R: crate::decoder::Raw>(
    all: &Decoded<'_, Picked>,
    by: &Decoded<'_, R>,
    wrong: &[Seat],
    who: &str,
) -> Outcome<()> {
    // What is in flight is made right before redundancy is trusted.
    let unknown = |seat: &&Seat| match by.by_flight(seat) {
        true => !by.in_flight(seat),
        false => by.trusted(seat),
    };
    match wrong.iter().find(unknown) {
        Some(seat) => {
            let groups = &all.record.groups;
            let text = format!("strips do not agree that {who} trust: {seat:?}, {groups:?}");
            Err(Failure::new(Oracle::Metadata, text))
        }
        None => Ok(()),
    }
}

/// Reads every block with the `erased` slots left out.
fn without(
    all: &Decoded<'_, Picked>,
    (erased, owed): (u64, Owed),
    wrong: &[Seat],
    versions: &Versions,
    tally: &mut Tally,
) -> Outcome<()> {
    let left = all.drives.iter().enumerate().filter(|(slot, _)| erased >> slot & 1 == 0);
    let left: Vec<&Picked> = left.filter_map(|(_, drive)| *drive).collect();
    let failure = |text: String| {
        let text = format!("before a start, slots {erased:#b} left out: {text}");
        Err(Failure::new(Oracle::Erasure, text))
    };
    let refused = |refusal| failure(format!("{refusal:?}"));
    let some = match Decoded::open(&left) {
        Ok(some) => some,
        Err(refusal) => return refused(refusal),
    };
    match some.may_start() {
        Ok(()) => {}
        Err(Refusal::AcceptLoss) => return owed.excuses(&some, tally),
        Err(Refusal::Gap) => return failure("nobody has a batch of the journal".into()),
        Err(refusal) => return refused(refusal),
    }
    distrusted(all, &some, wrong, "the drives that are left")?;
    let mut versions = versions.clone();
    for volume in &some.record.volumes {
        let at = versions.named(&volume.name);
        let known = at.filter(|at| versions.volumes()[*at].sizes.contains(&volume.bytes));
        let Some(at) = known else {
            return failure(format!("volume {} of {} bytes", volume.name, volume.bytes));
        };
        for offset in (0..volume.bytes).step_by(PAGE) {
            let bytes = (volume.bytes - offset).min(PAGE as u64);
            let seat = some.seat(volume, offset).expect("extents hold the volume");
            if some.listed(volume, offset, bytes) {
                continue;
            }
            match some.read(&seat, 0) {
                Some(page) => match versions.check(at, offset, &page[..bytes as usize], false) {
                    Ok(blocks) => {
                        tally.over_budget += blocks;
                        tally.look("image: blocks read without some drives", 1);
                    }
                    Err(text) => return failure(text),
                },
                None => return failure(format!("{offset} of {} can't be read", volume.name)),
            }
        }
    }
    Ok(())
}

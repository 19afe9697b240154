//! Drives that come back wrong: a copy beside its original, one in a state of long ago, or all of
//! them without the same place of their region maps.

use crate::before::Before;
use crate::camera::Picture;
use crate::decoder::PAGE;
use crate::decoder::array::{Decoded, Refusal};
use crate::decoder::map::used_bytes;
use crate::decoder::record;
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::{expected, pick, references};
use crate::point::{Context, OPTIONS};
use crate::rig::{Blind, Rig};
use engine::manage::command::ManageError;
use format::AssembleError;
use sim::{Rng, SharedSimDrive, WorldConfig};

/// Sometimes tries a copy, and sometimes puts an old state of a drive into the picture.
///
/// # Errors
/// `Start` if an array with a copied drive is started.
pub fn try_out(context: &mut Context, picture: &mut Picture, rng: &mut Rng) -> Outcome<()> {
    if rng.chance(1) {
        cloned(context, &picture.drives, rng)?;
    }
    if rng.chance(5) {
        roll_back(context, picture, rng);
    }
    // From a generator of its own: what else is drawn stays as it is.
    let mut own = Rng::new(rng.clone().bits() ^ 0x6465_6361_7973);
    if own.chance(5) {
        decay(context, picture, &mut own);
    }
    Ok(())
}

/// Makes the same place of the region map unreadable on every drive, where each drive still has the
/// other: that costs nothing, whichever of the two was the newest.
fn decay(context: &mut Context, picture: &mut Picture, rng: &mut Rng) {
    let picked = pick(&picture.drives);
    let Ok(decoded) = Decoded::open(&picked) else { return };
    let Some(areas) = &decoded.record.areas else { return };
    let map = areas.map_start..areas.map_start + areas.map_bytes;
    if picked.iter().any(|drive| drive.unreadable_within(map.clone())) {
        return;
    }
    let place = rng.below(used_bytes(&decoded.record, 0) / PAGE as u64) * PAGE as u64;
    let at = areas.map_start + place;
    let spoil = |drive: &SharedSimDrive| drive.fail_range(at, PAGE as u64);
    let there: Vec<&SharedSimDrive> = picture.drives.iter().filter(|d| !d.is_gone()).collect();
    let copies: Vec<_> = there.iter().map(|drive| drive.duplicate()).collect();
    copies.iter().for_each(spoil);
    let picked = pick(&copies);
    let Ok(decoded) = Decoded::open(&picked) else { return };
    let whole = |slot: usize| decoded.maps_of(slot).iter().all(|(_, map)| !map.lost());
    if (0..decoded.drives.len()).all(|slot| !decoded.counts(slot) || whole(slot)) {
        there.into_iter().for_each(spoil);
        context.tally.fault("a place of the map on all drives", 1);
    }
}

/// Sometimes some of the drives that the array could lose are lost with the crash; how many.
pub fn leave_out(
    context: &Context,
    drives: &[SharedSimDrive],
    before: &Before<'_>,
    rng: &mut Rng,
) -> usize {
    // Blocks that can't be read are damage enough, but for what has places of its own.
    let spoiled = match &context.brown {
        Some(data) => drives.iter().any(|d| d.unreadable().iter().any(|at| data.contains(at))),
        None => !context.readable(drives),
    };
    if !rng.chance(if context.brown.is_some() { 60 } else { 20 }) || spoiled {
        return 0;
    }
    let spare = before.decoded().map_or(0, |d| d.spare());
    let count = rng.index(spare + 1);
    let mut there: Vec<&SharedSimDrive> = drives.iter().filter(|d| !d.is_gone()).collect();
    for _ in 0..count {
        there.swap_remove(rng.index(there.len())).vanish();
    }
    count
}

fn cloned(context: &mut Context, drives: &[SharedSimDrive], rng: &mut Rng) -> Outcome<()> {
    let mut all: Vec<_> = drives.iter().map(SharedSimDrive::duplicate).collect();
    let mut there: Vec<usize> = (0..drives.len()).filter(|i| !drives[*i].is_gone()).collect();
    there.retain(|i| record::newest(&crate::fleet::Picked::new(&drives[*i])).is_some());
    if there.is_empty() {
        return Ok(());
    }
    let copied = all[there[rng.index(there.len())]].duplicate();
    all.push(copied);
    if expected(&pick(&all)) != Err(Refusal::Cloned) {
        return Ok(());
    }
    context.tally.fault("cloned drive", 1);
    let rig = Rig::new(WorldConfig::new(rng.bits()));
    let list = references(&all, rng);
    match rig.assemble(&mut Blind, list, OPTIONS)? {
        Err(ManageError::Assemble(AssembleError::Cloned { .. })) => Ok(()),
        other => {
            let then = other.map_or_else(|e| e.to_string(), |_| "it was started".into());
            Err(Failure::new(Oracle::Start, format!("a drive is there twice: {then}")))
        }
    }
}

/// Puts a drive of the picture back to where it was after the creation, if that is at least two
/// epochs before what the *other* drives know (one epoch behind is what a cut between two writes of
/// records leaves) and the array can do without it.
fn roll_back(context: &mut Context, picture: &mut Picture, rng: &mut Rng) {
    let picked = pick(&picture.drives);
    let Ok(decoded) = Decoded::open(&picked) else { return };
    let damaged = picture.drives.iter().any(|d| !d.unreadable().is_empty());
    if damaged || decoded.spare() == 0 || decoded.may_start().is_err() {
        return;
    }
    let width = decoded.record.slots.len();
    let at = rng.index(width);
    let Some(old) = record::newest(&context.base[at]) else { return };
    let known = decoded.record.slots.iter().any(|slot| slot.drive == old.drive);
    let others = picked.iter().filter_map(record::newest).filter(|own| own.drive != old.drive);
    let newest = others.map(|own| own.epoch.counter);
    if !known || newest.max().is_none_or(|counter| old.epoch.counter + 2 > counter) {
        return;
    }
    let before = picture.drives[at].clone();
    picture.drives[at] = context.origin[at].duplicate();
    match expected(&pick(&picture.drives)) {
        Ok(()) | Err(Refusal::AcceptLoss) => context.tally.fault("rolled back drive", 1),
        Err(_) => picture.drives[at] = before,
    }
}

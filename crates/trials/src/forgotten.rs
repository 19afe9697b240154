//! A page of the region map that no drive has any more: the array starts and says so, bands that
//! were never written may hold anything (over budget), and what was written is there. Cut off
//! before the resync of what the page stood for is over, and without a drive then, a parity group
//! may not be started before a person accepts the loss.
//!
//! Invariant: the picture stays as it is; the page is taken from copies of its drives.

use crate::before::{Before, start};
use crate::camera::Picture;
use crate::decoder::PAGE;
use crate::decoder::array::Decoded;
use crate::decoder::map::used_bytes;
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::pick;
use crate::owed::Owed;
use crate::point::{Context, read_range, settle_volumes};
use crate::presence::numbers;
use crate::rig::{Blind, Rig};
use engine::manage::command::ArrayStatus;
use sim::{Rng, SharedSimDrive, WorldConfig};
use units::Nanos;

/// Takes a page of the map from copies of all drives of a picture, and reads all there is.
///
/// # Errors
/// What `start` finds, or what is read.
pub fn try_out(context: &mut Context, picture: &Picture, rng: &mut Rng) -> Outcome<()> {
    let copies: Vec<_> = picture.drives.iter().map(SharedSimDrive::duplicate).collect();
    if !take_away(&copies, rng) {
        return Ok(());
    }
    context.tally.fault("a page of the map on no drive", 1);
    let found = pick(&copies);
    let before = Before::of(&found, picture.owed);
    let rig = Rig::new(WorldConfig::new(rng.bits()));
    let with = (&mut *rng, &mut context.tally);
    match start(&rig, &mut Blind, (&copies, &before), with)? {
        Some(_) if rng.coin() => cut_off(context, rig, (&copies, before.owed), rng),
        Some(status) => read(context, &rig, (&before, &status), picture),
        None => Ok(()),
    }
}

/// Cuts the start off, loses a drive, and starts again.
fn cut_off(
    context: &mut Context,
    rig: Rig,
    (drives, owed): (&[SharedSimDrive], Owed),
    rng: &mut Rng,
) -> Outcome<()> {
    rig.pass(&mut Blind, Nanos::from_micros(rng.below(200)));
    rig.end(true);
    let picked = pick(drives);
    let Ok(decoded) = Decoded::open(&picked) else { return Ok(()) };
    let mut counting = numbers(&decoded, &picked);
    if decoded.spare() == 0 {
        return Ok(());
    }
    let there: Vec<&SharedSimDrive> = drives.iter().filter(|d| !d.is_gone()).collect();
    there[counting.swap_remove(rng.index(counting.len()))].vanish();
    let found = pick(drives);
    let before = Before::of(&found, owed);
    let rig = Rig::new(WorldConfig::new(rng.bits()));
    let with = (rng, &mut context.tally);
    if start(&rig, &mut Blind, (drives, &before), with)?.is_none() {
        context.tally.refused += 1;
        context.tally.look("start: refused", 1);
    }
    Ok(())
}

/// Makes both places of a page unreadable on every drive; whether there is one.
fn take_away(drives: &[SharedSimDrive], rng: &mut Rng) -> bool {
    let damaged = drives.iter().any(|d| !d.unreadable().is_empty());
    let picked = pick(drives);
    let Ok(decoded) = Decoded::open(&picked) else { return false };
    if damaged || decoded.may_start().is_err() {
        return false;
    }
    let both = 2 * PAGE as u64;
    let at =
        decoded.record.areas.map_start + rng.below(used_bytes(&decoded.record, 0) / both) * both;
    drives.iter().filter(|d| !d.is_gone()).for_each(|drive| drive.fail_range(at, both));
    true
}

fn read(
    context: &mut Context,
    rig: &Rig,
    (before, status): (&Before<'_>, &ArrayStatus),
    picture: &Picture,
) -> Outcome<()> {
    let (unit, tally) = (context.unit, &mut context.tally);
    let mut versions = picture.versions.clone();
    before.forgive_maps(&mut versions, tally);
    settle_volumes(status, &mut versions)?;
    let failure = |text: String| Failure::new(Oracle::Versions, text);
    for volume in &status.volumes {
        let at = versions.named(&volume.name).expect("settled");
        let open = rig.open(status, volume).swap_remove(0);
        for from in (0..volume.bytes).step_by(unit as usize) {
            match read_range(rig, &open, from, unit.min(volume.bytes - from))? {
                Some(part) => {
                    tally.over_budget += versions.check(at, from, &part, false).map_err(failure)?;
                }
                None => match before.why(&volume.name, from, unit) {
                    Some(cause) => tally.lean(cause),
                    None => return Err(failure(format!("{unit} bytes at {from} can't be read"))),
                },
            }
        }
    }
    Ok(())
}

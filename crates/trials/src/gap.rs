//! A batch of the journal that was durable, on no drive any more: nobody may start what is left
//! without a word, and who accepts the loss reads nothing wrong.
//!
//! | the batch is     | the decoder | a start                                                     |
//! |------------------|-------------|-------------------------------------------------------------|
//! | below the newest | says gap    | is refused; with loss accepted every block is as it may be, |
//! |                  |             | or in a region that is dirty, listed, and not read          |
//! | the newest       | says start  | is not tried: a cut leaves the same                         |
//!
//! Invariant: the picture stays as it is; the batch is taken from copies of its drives.

use crate::before::Before;
use crate::camera::Picture;
use crate::decoder::PAGE;
use crate::decoder::array::{Decoded, Refusal};
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::{Picked, expected, pick, references};
use crate::owed::Owed;
use crate::point::{Context, OPTIONS, read_range, settle_volumes};
use crate::rig::{Blind, Rig};
use crate::versions::Versions;
use engine::manage::command::{ArrayStatus, ManageError, StartOptions, UnreadableRange};
use sim::{Rng, SharedSimDrive, WorldConfig};

/// Takes a batch from copies of all drives of a picture, if one has one below the newest.
///
/// # Errors
/// `Start`, or what is read with the loss accepted.
pub fn try_out(context: &mut Context, picture: &Picture, rng: &mut Rng) -> Outcome<()> {
    let copies: Vec<_> = picture.drives.iter().map(SharedSimDrive::duplicate).collect();
    if !take_away(&copies, rng) {
        return Ok(());
    }
    let found = pick(&copies);
    let failure = |text: String| Err(Failure::new(Oracle::Start, text));
    if expected(&found) != Err(Refusal::Gap) {
        return failure(format!("a batch is gone, and the document: {:?}", expected(&found)));
    }
    context.tally.fault("a batch on no drive", 1);
    let rig = Rig::new(WorldConfig::new(rng.bits()));
    match rig.assemble(&mut Blind, references(&copies, rng), OPTIONS)? {
        Err(ManageError::JournalGap { .. }) => {}
        Err(error) => return failure(format!("a batch is on no drive: {error}")),
        Ok(_) => return failure("started, without a word, what lacks a batch".into()),
    }
    let options = StartOptions { accept_loss: true, ..OPTIONS };
    match rig.assemble(&mut Blind, references(&copies, rng), options)? {
        Ok(status) => {
            let before = Before::of(&found, Owed::default());
            let decoded = before.decoded().expect("it has a gap, nothing else");
            read(&rig, (decoded, &status), &mut picture.versions.clone(), context.unit)
        }
        Err(error) => failure(format!("the loss is accepted: {error}")),
    }
}

/// Makes a batch below the newest of its lane vanish; whether there is one.
fn take_away(drives: &[SharedSimDrive], rng: &mut Rng) -> bool {
    let damaged = drives.iter().any(|d| !d.unreadable().is_empty());
    let picked = pick(drives);
    let Ok(decoded) = Decoded::open(&picked) else { return false };
    if damaged || decoded.may_start().is_err() {
        return false;
    }
    let batches = decoded.batches();
    let newest = |(lane, number): &(u64, u64)| {
        batches.range((*lane, number + 1)..=(*lane, u64::MAX)).next().is_none()
    };
    let below: Vec<_> = batches.keys().filter(|number| !newest(number)).collect();
    if below.is_empty() {
        return false;
    }
    let there: Vec<&SharedSimDrive> = drives.iter().filter(|d| !d.is_gone()).collect();
    let taken = *below[rng.index(below.len())];
    for (slot, at) in &batches[&taken] {
        let own = decoded.drives[*slot].expect("it has a batch");
        let number = picked.iter().position(|one| core::ptr::eq(one, own)).expect("one of them");
        match rng.coin() {
            true => there[number].fail_range(*at, PAGE as u64),
            false => there[number].overwrite(*at, &[7; PAGE]),
        }
    }
    // One that was given up may be left under its number.
    let left = pick(drives);
    Decoded::open(&left).is_ok_and(|decoded| !decoded.batches().contains_key(&taken))
}

/// Reads all there is with the loss accepted.
fn read(
    rig: &Rig,
    (decoded, status): (&Decoded<'_, Picked>, &ArrayStatus),
    versions: &mut Versions,
    unit: u64,
) -> Outcome<()> {
    settle_volumes(status, versions)?;
    let failure = |text: String| Err(Failure::new(Oracle::Versions, text));
    for volume in &status.volumes {
        let at = versions.named(&volume.name).expect("settled");
        let known = decoded.volume(&volume.name).expect("it was recorded");
        let open = rig.open(status, volume).swap_remove(0);
        for from in (0..volume.bytes).step_by(unit as usize) {
            let seat = decoded.seat(known, from).expect("extents hold the volume");
            let listed =
                decoded.written(&seat) && decoded.dirty(&seat) || decoded.listed(known, from, unit);
            let over = |r: &&UnreadableRange| {
                r.volume == volume.name && r.offset <= from && from < r.offset + r.bytes
            };
            if status.unreadable.iter().any(|r| over(&r)) != listed {
                return failure(format!("{from} is listed as lost, or not: {listed} is right"));
            }
            let part = read_range(rig, &open, from, unit.min(volume.bytes - from))?;
            match part {
                Some(_) if listed => {
                    return failure(format!("{unit} bytes at {from} are read, and may be lost"));
                }
                Some(part) => {
                    let checked = versions.check(at, from, &part, false);
                    checked.map_err(|text| Failure::new(Oracle::Versions, text))?;
                }
                None if !listed => {
                    return failure(format!("{unit} bytes at {from} are lost without need"));
                }
                None => {}
            }
        }
    }
    Ok(())
}

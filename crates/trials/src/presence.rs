//! Drives that come back wrong: a copy beside its original, one in a state of long ago, or all of
//! them without the same place of their region maps.

use crate::abilities::UNREADABLE_JOURNAL;
use crate::before::Before;
use crate::camera::Picture;
use crate::decoder::array::{Decoded, Refusal};
use crate::decoder::map::used_bytes;
use crate::decoder::{PAGE, Raw, record};
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::{Picked, expected, pick, references};
use crate::forgotten;
use crate::gap;
use crate::point::{Aim, Context, OPTIONS};
use crate::rig::{Blind, Rig};
use engine::manage::command::{ManageError, StartOptions};
use format::AssembleError;
use sim::{Rng, SharedSimDrive, WorldConfig};

/// Sometimes tries a copy, and sometimes puts an old state of a drive into the picture: whether it
/// did that.
///
/// # Errors
/// `Start` if an array with a copied drive is started.
pub fn try_out(context: &mut Context, picture: &mut Picture, rng: &mut Rng) -> Outcome<bool> {
    if rng.chance(1) {
        cloned(context, &picture.drives, rng)?;
    }
    let rolled = rng.chance(5) && roll_back(context, picture, rng);
    let mut own = Rng::new(rng.clone().bits() ^ 0x0073_6574_6261_636b);
    let rolled = rolled || own.chance(8) && set_back(context, picture, &mut own);
    // From a generator of its own: what else is drawn stays as it is.
    let mut own = Rng::new(rng.clone().bits() ^ 0x6465_6361_7973);
    if own.chance(5) && !context.areas.set_back {
        decay(context, picture, &mut own);
    }
    let mut own = Rng::new(rng.clone().bits() ^ 0x0066_6164_6573);
    match own.below(100) {
        0..6 if UNREADABLE_JOURNAL.there => fade(context, picture, false, &mut own),
        6..10 => fade(context, picture, true, &mut own),
        10..12 => over_budget(context, &picture.drives, &mut own)?,
        12..16 => gap::try_out(context, picture, &mut own)?,
        // Without a page of the map nothing tells that a drive was set back.
        16..18 if !context.areas.set_back => forgotten::try_out(context, picture, &mut own)?,
        _ => {}
    }
    Ok(rolled)
}

/// Makes the same place of the region map unreadable on every drive, where each drive still has the
/// other: that costs nothing, whichever of the two was the newest.
fn decay(context: &mut Context, picture: &mut Picture, rng: &mut Rng) {
    let picked = pick(&picture.drives);
    let Ok(decoded) = Decoded::open(&picked) else { return };
    let areas = decoded.record.areas;
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
        context.areas.map_decayed = true;
    }
}

/// Sometimes some of the drives that the array could lose are lost with the crash, and sometimes
/// one that did not count; whether any is. None where one was `rolled` back: those that know that
/// it is an old state stay.
pub fn leave_out(
    context: &mut Context,
    drives: &[SharedSimDrive],
    (found, before, depth, rolled): (&[Picked], &Before<'_>, usize, bool),
    rng: &mut Rng,
) -> bool {
    // Blocks that can't be read are damage enough, but for what has places of its own.
    let spoiled = match context.aim {
        Aim::Spoiled => {
            drives.iter().any(|d| d.unreadable().iter().any(|at| context.areas.data.contains(at)))
        }
        _ => !context.areas.decayed.is_empty() || !context.readable(drives),
    };
    let percent = match context.aim {
        Aim::Anywhere => 20,
        Aim::Lone if depth == 0 => 5,
        Aim::Spoiled | Aim::Lone => 60,
    };
    let Ok(decoded) = before.decoded() else { return false };
    if !rng.chance(percent) || spoiled || rolled {
        return false;
    }
    let there: Vec<&SharedSimDrive> = drives.iter().filter(|d| !d.is_gone()).collect();
    let mut counting = numbers(decoded, found);
    let out = |i: &usize| !counting.contains(i) && record::newest(&found[*i]).is_some();
    let out: Vec<usize> = (0..found.len()).filter(out).collect();
    let spare = decoded.spare();
    let count = if context.aim == Aim::Lone { spare.min(1) } else { rng.index(spare + 1) };
    for _ in 0..count {
        there[counting.swap_remove(rng.index(counting.len()))].vanish();
    }
    let other = !out.is_empty() && rng.chance(25);
    if other {
        there[out[rng.index(out.len())]].vanish();
    }
    context.tally.fault("lost with the crash", count as u64);
    context.tally.fault("out before, lost with the crash", u64::from(other));
    count > 0 || other
}

/// Which of the drives that were found count.
pub fn numbers(decoded: &Decoded<'_, Picked>, found: &[Picked]) -> Vec<usize> {
    let counting = (0..decoded.drives.len()).filter(|slot| decoded.counts(*slot));
    let number = |own: &Picked| found.iter().position(|f| core::ptr::eq(f, own));
    counting.filter_map(|slot| decoded.drives[slot].and_then(number)).collect()
}

/// Makes a record, or something in the journal area, unreadable that is durable, on no more drives
/// than the array can lose.
fn fade(context: &mut Context, picture: &Picture, records: bool, rng: &mut Rng) {
    let damaged = picture.drives.iter().any(|d| !d.unreadable().is_empty());
    let picked = pick(&picture.drives);
    let Ok(decoded) = Decoded::open(&picked) else { return };
    let spare = decoded.spare();
    if damaged || context.aim == Aim::Spoiled || spare == 0 || decoded.may_start().is_err() {
        return;
    }
    let there = (0..picture.drives.len()).filter(|i| !picture.drives[*i].is_gone());
    let there: Vec<usize> = there.collect();
    let mut counting = numbers(&decoded, &picked);
    for _ in 0..1 + rng.index(spare) {
        let own = counting.swap_remove(rng.index(counting.len()));
        let drive = &picked[own];
        let places: Vec<u64> = match records {
            true => record::places(drive.bytes()).0.to_vec(),
            false => {
                let areas = decoded.record.areas;
                let pages = areas.journal_start / PAGE as u64
                    ..(areas.journal_start + areas.journal_bytes) / PAGE as u64;
                let said = |page: &u64| {
                    let begin = &drive.page(*page)[..8];
                    begin == b"PALIJRNL" || begin == b"PALIFLGT"
                };
                pages.filter(said).map(|page| page * PAGE as u64).collect()
            }
        };
        if places.is_empty() {
            continue;
        }
        let at = places[rng.index(places.len())];
        picture.drives[there[own]].fail_range(at, PAGE as u64);
        context.areas.decayed.push((there[own], at));
    }
}

/// Loses one drive of a group more than it can: nobody may start the rest, whatever is accepted.
fn over_budget(context: &mut Context, drives: &[SharedSimDrive], rng: &mut Rng) -> Outcome<()> {
    let picked = pick(drives);
    let Ok(decoded) = Decoded::open(&picked) else { return Ok(()) };
    if decoded.may_start().is_err() {
        return Ok(());
    }
    let record = &decoded.record;
    let range = &record.ranges[rng.index(record.ranges.len())];
    let first = range.first_slot + rng.index(range.groups) * (range.k + range.m);
    let group = first..first + range.k + range.m;
    let copies: Vec<_> =
        drives.iter().filter(|d| !d.is_gone()).map(SharedSimDrive::duplicate).collect();
    let mine = |found: &Picked| {
        let own = record::newest(found)?;
        let slot = record.slots.iter().position(|slot| slot.drive == own.drive);
        // A drive that was replaced may sit in the group by what others knew.
        Some(slot.is_none_or(|slot| group.contains(&slot)))
    };
    let mut all: Vec<usize> =
        (0..picked.len()).filter(|i| mine(&picked[*i]) == Some(true)).collect();
    while all.len() >= range.k {
        copies[all.swap_remove(rng.index(all.len()))].vanish();
    }
    let said = expected(&pick(&copies));
    let beyond = [Err(Refusal::TooManyMissing), Err(Refusal::Nothing)];
    if !beyond.contains(&said) {
        let text =
            format!("more drives are lost than redundancy covers, and the document: {said:?}");
        return Err(Failure::new(Oracle::Start, text));
    }
    context.tally.fault("more lost than can be", u64::from(said == beyond[0]));
    for accept_loss in [false, true] {
        let rig = Rig::new(WorldConfig::new(rng.bits()));
        let list = references(&copies, rng);
        let options = StartOptions { accept_loss, ..OPTIONS };
        match rig.assemble(&mut Blind, list, options)? {
            Err(ManageError::Assemble(AssembleError::TooManyMissing { .. })) => {}
            Err(_) if said != beyond[0] => {}
            other => {
                let then = other.map_or_else(|e| e.to_string(), |_| "it was started".into());
                let text = format!("more drives are lost than redundancy covers: {then}");
                return Err(Failure::new(Oracle::Start, text));
            }
        }
    }
    Ok(())
}

fn cloned(context: &mut Context, drives: &[SharedSimDrive], rng: &mut Rng) -> Outcome<()> {
    let mut all: Vec<_> = drives.iter().map(SharedSimDrive::duplicate).collect();
    let mut there: Vec<usize> = (0..drives.len()).filter(|i| !drives[*i].is_gone()).collect();
    there.retain(|i| record::newest(&Picked::new(&drives[*i])).is_some());
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

/// Puts a drive of the picture back to where it was after the creation, or in a picture before, if
/// that is at least two epochs before what *other* drives know (one epoch behind is what a cut
/// between two writes of records leaves) and the array can do without it; whether it did. So many
/// of those that count know it for good that the crashes to come can't lose all of them: a record
/// in a volatile cache is nobody's knowledge.
fn roll_back(context: &mut Context, picture: &mut Picture, rng: &mut Rng) -> bool {
    let picked = pick(&picture.drives);
    let Ok(decoded) = Decoded::open(&picked) else { return false };
    let damaged = picture.drives.iter().any(|d| !d.unreadable().is_empty());
    if damaged || decoded.spare() == 0 || decoded.may_start().is_err() {
        return false;
    }
    let width = decoded.record.slots.len();
    let at = rng.index(width);
    // From a generator of its own: what else is drawn stays as it is.
    let mut own = Rng::new(rng.clone().bits() ^ 0x7061_7374);
    let there = picture.drives.iter().filter(|drive| !drive.is_gone());
    let without_caches: Vec<_> = there.map(|drive| drive.after_choice(0)).collect();
    let for_good = pick(&without_caches);
    let counting = numbers(&decoded, &picked);
    let epoch = |drives: &[SharedSimDrive]| {
        let old = record::newest(&Picked::new(&drives[at]))?;
        let known = decoded.record.slots.iter().any(|slot| slot.drive == old.drive);
        let others = counting.iter().filter_map(|i| record::newest(&for_good[*i]));
        let knows = |other: &record::Record| {
            other.drive != old.drive && old.epoch.counter + 2 <= other.epoch.counter
        };
        (known && others.filter(knows).count() >= decoded.spare()).then_some(old.epoch)
    };
    let Some(first) = epoch(&context.origin) else { return false };
    let later = |drives: &&Vec<SharedSimDrive>| epoch(drives).is_some_and(|then| then != first);
    let later: Vec<_> = context.past.iter().filter(later).collect();
    let (old, kind) = match later.is_empty() || own.chance(25) {
        true => (&context.origin, "rolled back drive"),
        false => (later[own.index(later.len())], "rolled back to a picture"),
    };
    let before = picture.drives[at].clone();
    picture.drives[at] = old[at].duplicate();
    let starts = matches!(expected(&pick(&picture.drives)), Ok(()) | Err(Refusal::AcceptLoss));
    match starts {
        true => context.tally.fault(kind, 1),
        false => picture.drives[at] = before,
    }
    starts
}

/// Puts a drive of the picture back to where it was in a picture before, or after the creation, by
/// less than two epochs, if its pages of the region map show that, or if nothing was written to it
/// since; whether it did. As above, so many know it for good that not all can be lost.
fn set_back(context: &mut Context, picture: &mut Picture, rng: &mut Rng) -> bool {
    let picked = pick(&picture.drives);
    let Ok(decoded) = Decoded::open(&picked) else { return false };
    let damaged = |drives: &[SharedSimDrive]| drives.iter().any(|d| !d.unreadable().is_empty());
    if damaged(&picture.drives) || decoded.spare() == 0 || decoded.may_start().is_err() {
        return false;
    }
    let at = rng.index(decoded.record.slots.len());
    let past = context.past.iter().chain(core::iter::once(&context.origin));
    let mut past: Vec<_> = past.map(|drives| &drives[at]).collect();
    past.retain(|old| !old.is_gone() && !damaged(core::slice::from_ref(*old)));
    if past.is_empty() {
        return false;
    }
    let old = past[rng.index(past.len())];
    let Some(slot) = slot_of(&decoded, &Picked::new(old)) else { return false };
    let there = picture.drives.iter().filter(|drive| !drive.is_gone());
    let for_good: Vec<_> = there.map(|drive| drive.after_choice(0)).collect();
    let knows = |i: &usize| {
        let pair = [Picked::new(old), Picked::new(&for_good[*i])];
        Decoded::open(&pair).is_ok_and(|pair| pair.set_back.contains(&slot))
    };
    let counting = numbers(&decoded, &picked);
    let known = counting.iter().filter(|i| knows(i)).count() >= decoded.spare();
    let nothing_since = counting.iter().all(|i| says_all(&decoded, &Picked::new(&for_good[*i])));
    if !known && !nothing_since {
        return false;
    }
    let before = core::mem::replace(&mut picture.drives[at], old.duplicate());
    let all = pick(&picture.drives);
    let now = Decoded::open(&all);
    let starts =
        now.as_ref().is_ok_and(|d| matches!(d.may_start(), Ok(()) | Err(Refusal::AcceptLoss)));
    let shown = now.as_ref().is_ok_and(|d| d.set_back.contains(&slot));
    // One that nothing shows, and that lacks writes: what P7 says can't be shown.
    let is_behind = now.is_ok_and(|d| d.counts(slot) && is_behind(&d, slot));
    if !starts || known && !shown || is_behind {
        picture.drives[at] = before;
        return false;
    }
    let kind =
        if shown { "set back by less than two epochs" } else { "set back to what it still is" };
    context.tally.fault(kind, 1);
    context.areas.set_back |= shown;
    true
}

/// Whether a drive lacks more than the newest page of a map: it was set back, and has one of both
/// places torn since, so that nothing shows it.
fn is_behind(decoded: &Decoded<'_, Picked>, slot: usize) -> bool {
    decoded.maps_of(slot).into_iter().any(|(group, own)| {
        let newest = decoded.maps[group].sequences.iter();
        newest.zip(own.sequences).any(|(newest, own)| own.map(|own| own + 1) < *newest)
    })
}

/// The slot in which a drive is in sync, by its own record and by the array's, if it is set back by
/// less than two epochs.
fn slot_of(decoded: &Decoded<'_, Picked>, old: &Picked) -> Option<usize> {
    let own = record::newest(old)?;
    let now = &decoded.record;
    let slot = now.slots.iter().position(|slot| slot.drive == own.drive)?;
    let in_sync = |r: &record::Record| r.slots[slot].state == record::State::InSync;
    let recent = own.epoch.counter + 1 >= now.epoch.counter;
    (recent && slot == own.slot && decoded.counts(slot) && in_sync(&own) && in_sync(now))
        .then_some(slot)
}

/// Whether a drive has the newest record, and that says that nothing is under way: what was written
/// since the drive of a group was set back has then left its page of the map behind.
fn says_all(decoded: &Decoded<'_, Picked>, drive: &Picked) -> bool {
    let now = &decoded.record;
    let newest = record::newest(drive).is_some_and(|own| own.sequence == now.sequence);
    let still = now.groups.iter().all(|group| !group.unclean && !group.loss_accepted);
    let forgotten = decoded.maps.iter().any(|map| map.any_forgotten());
    newest && still && !forgotten
}

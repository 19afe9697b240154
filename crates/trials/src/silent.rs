//! Bytes that are wrong without an error: a scrub must find them (exception (b): reads need not).
//!
//! A page of a strip is made wrong on copies of drives at rest: a flipped bit, the zeros from
//! before a write that was lost, or what belongs elsewhere. The scrub must count it. Where P and
//! Q, or most of the copies, tell which strip is wrong, a repair must undo the damage; where
//! nobody can know (with P and Q: two strips are wrong in one block) it must say so and change
//! nothing, unless told to trust the data. After a repair a second scrub finds nothing.

use crate::before::{Before, start};
use crate::decoder::array::{Decoded, Seat};
use crate::decoder::{PAGE, Raw};
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::{Picked, pick};
use crate::owed::Owed;
use crate::point::Context;
use crate::rig::{ARRAY, Blind, Rig};
use engine::array::message::Repair;
use engine::manage::command::{Request, TaskAction, TaskKind};
use sim::{Rng, SharedSimDrive, WorldConfig};
use units::Nanos;

/// A place and what is put there.
struct Damage {
    drive: usize,
    offset: u64,
    bytes: Vec<u8>,
    kind: &'static str,
    data: bool,
    /// The others tell which strip is wrong.
    known: bool,
    /// Another strip that is wrong in the same block: its drive, and the page.
    other: Option<(usize, Vec<u8>)>,
}

/// Damages a page on copies of the drives, which are at rest, and has it scrubbed.
///
/// # Errors
/// `Again` if a scrub does not find it, or finds something after the repair.
pub fn try_out(
    context: &mut Context,
    (drives, owed): (&[SharedSimDrive], Owed),
    rng: &mut Rng,
) -> Outcome<()> {
    let picked = pick(drives);
    if picked.len() != drives.len() {
        return Ok(());
    }
    let Some(damage) = Decoded::open(&picked).ok().and_then(|d| choose(&d, drives, rng)) else {
        return Ok(());
    };
    let copies: Vec<_> = drives.iter().map(SharedSimDrive::duplicate).collect();
    copies[damage.drive].overwrite(damage.offset, &damage.bytes);
    if let Some((drive, bytes)) = &damage.other {
        copies[*drive].overwrite(damage.offset, bytes);
    }
    context.tally.fault(damage.kind, 1);
    context.tally.exceptions[1] += u64::from(damage.data);
    let rig = Rig::new(WorldConfig::new(rng.bits()));
    let found = pick(&copies);
    let before = Before::of(&found, owed);
    let with = (&mut *rng, &mut context.tally);
    if start(&rig, &mut Blind, (&copies, &before), with)?.is_none() {
        return Ok(());
    }
    rig.wait(&mut Blind)?;
    let kind = damage.kind;
    let failure = |text: String| Err(Failure::new(Oracle::Again, format!("{kind}: {text}")));
    let (mismatches, checked) = scrub(&rig, Repair::Nothing, None)?;
    if mismatches == 0 {
        return failure("a scrub does not find it".into());
    }
    let damaged = pick(&copies);
    if scrub(&rig, Repair::Known, None)?.0 == 0 {
        return failure("a scrub that repairs does not find it".into());
    }
    let said = rig.status(&mut Blind)?.and_then(|status| status.last_scrub);
    let unlocated = said.map_or(0, |scrub| scrub.unlocated);
    if damage.other.is_some() && unlocated == 0 {
        return failure("a scrub says that it knows what nobody can".into());
    }
    let page = damage.offset / PAGE as u64;
    let same =
        |a: &[Picked], b: &[Picked]| a.iter().zip(b).all(|(a, b)| a.page(page) == b.page(page));
    let now = pick(&copies);
    if damage.known && !same(&now, &picked) {
        return failure("the repair did not undo it".into());
    }
    if !damage.known && !same(&now, &damaged) {
        return failure("a repair that can't know what is wrong changed something".into());
    }
    if !damage.known {
        scrub(&rig, Repair::TrustData, None)?;
    }
    let pause = Nanos::from_micros(rng.below(400));
    let (left, again) = scrub(&rig, Repair::Nothing, Some(pause))?;
    rig.world.kill();
    if again != checked {
        return failure(format!("a scrub that waited checked {again} bytes, not {checked}"));
    }
    if left > 0 {
        return failure(format!("{left} stripes still do not match after the repair"));
    }
    let undone = damage.data || same(&pick(&copies), &picked);
    if undone { Ok(()) } else { failure("redundancy was not made right".into()) }
}

fn choose(
    decoded: &Decoded<'_, Picked>,
    drives: &[SharedSimDrive],
    rng: &mut Rng,
) -> Option<Damage> {
    // From a generator of its own: what else is drawn stays as it is.
    let mut own = Rng::new(rng.clone().bits() ^ 0x7477_6f20);
    let volume = decoded.record.volumes.first()?;
    let pages = (volume.bytes / PAGE as u64).max(1);
    let seat: Seat = decoded.seat(volume, rng.below(pages) * PAGE as u64)?;
    let r = &decoded.record.ranges[seat.range];
    if r.m == 0 || decoded.dirty(&seat) {
        return None;
    }
    let strip = rng.index(r.k + r.m);
    let all: Option<Vec<_>> = (0..r.k + r.m).map(|s| decoded.page(&seat, s, 0)).collect();
    let now = all?[strip];
    let drive = holder(decoded, drives, &seat, strip)?;
    let offset = decoded.record.data_offset + r.drive_start + seat.stripe * r.strip + seat.at;
    let mut bytes = now.to_vec();
    let kind = match rng.below(3) {
        0 => {
            bytes[rng.index(PAGE)] ^= 1 << rng.below(8);
            "silent: bit flip"
        }
        1 => {
            bytes.fill(0);
            "silent: lost write"
        }
        _ => {
            let other = decoded.seat(volume, rng.below(pages) * PAGE as u64)?;
            bytes.copy_from_slice(decoded.page(&other, other.strip, 0)?);
            "silent: misdirected write"
        }
    };
    let data = strip < r.k || r.kind == 1;
    let known = if r.kind == 2 { r.m == 2 } else { r.k + r.m > 2 };
    let damage = Damage { drive, offset, bytes, kind, data, known, other: None };
    if r.kind == 2 && r.m == 2 && own.chance(30) {
        return two_strips(decoded, drives, &seat, (strip, damage), &mut own);
    }
    (damage.bytes != now[..]).then_some(damage)
}

/// Which of the drives has a strip.
fn holder(
    decoded: &Decoded<'_, Picked>,
    drives: &[SharedSimDrive],
    seat: &Seat,
    strip: usize,
) -> Option<usize> {
    let holder = decoded.drives[decoded.slot(seat, strip)]?;
    drives.iter().position(|d| {
        let own = Picked::new(d);
        own.bytes() == holder.bytes() && own.page(0) == holder.page(0)
    })
}

/// The same place damaged in two strips, each in another byte of one block: whichever strip one
/// byte names, the other byte speaks against it.
fn two_strips(
    decoded: &Decoded<'_, Picked>,
    drives: &[SharedSimDrive],
    seat: &Seat,
    (strip, damage): (usize, Damage),
    rng: &mut Rng,
) -> Option<Damage> {
    let r = &decoded.record.ranges[seat.range];
    let strips = r.k + r.m;
    let second = (strip + 1 + rng.index(strips - 1)) % strips;
    let block = rng.index(PAGE / 512) * 512;
    let (one, two) = (rng.index(256), 256 + rng.index(256));
    let mut flipped = |strip: usize, byte: usize| {
        let mut bytes = decoded.page(seat, strip, 0)?.to_vec();
        bytes[block + byte] ^= 1 << rng.below(8);
        Some(bytes)
    };
    let bytes = flipped(strip, one)?;
    let other = Some((holder(decoded, drives, seat, second)?, flipped(second, two)?));
    let data = damage.data || second < r.k;
    let kind = "silent: two strips";
    Some(Damage { bytes, other, data, kind, known: false, ..damage })
}

/// Scrubs; how many stripes did not match, and the bytes that were checked. After `pause` it is
/// told to wait, and to go on.
fn scrub(rig: &Rig, repair: Repair, pause: Option<Nanos>) -> Outcome<(u64, u64)> {
    let asked = rig.ask(&mut Blind, "a scrub", |r| Request::Scrub(ARRAY.into(), repair, r))?;
    asked.map_err(|error| Failure::new(Oracle::Again, format!("no scrub: {error}")))?;
    if let Some(span) = pause {
        rig.pass(&mut Blind, span);
        for action in [TaskAction::Pause, TaskAction::Resume] {
            // It may be over by then.
            let task = |r| Request::Task(ARRAY.into(), TaskKind::Scrub, None, action, r);
            let _ = rig.ask(&mut Blind, "a task", task)?;
        }
    }
    let found = rig.wait(&mut Blind)?.and_then(|s| s.last_scrub);
    Ok(found.map_or((0, 0), |found| (found.mismatches, found.checked_bytes)))
}

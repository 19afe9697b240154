//! A crash point: drives as a crash left them are started again, and every oracle looks.
//!
//! 1. The decoder says from the raw images whether the array must start; the engine must agree.
//! 2. On the way up another picture may be taken: the crash within the recovery, three deep.
//! 3. Everything is read, before the resync or after it, and held against the versions.
//! 4. When no task runs any more, power is cut again and the raw images are looked at: redundancy
//!    agrees everywhere, areas that are nobody's are as they were, epochs grew, and with any
//!    drives erased that the level can lose the decoder reads the same bytes.
//! 5. Started once more, nothing changes; a scrub finds nothing.

use crate::abilities::DEGRADED_CRASH;
use crate::before::{Before, start, still};
use crate::camera::{Camera, Picture};
use crate::decoder::array::{Decoded, Refusal};
use crate::decoder::record::{self, Record};
use crate::decoder::{PAGE, map};
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::{self, Areas, Picked, count_fired, count_torn, pick};
use crate::lists;
use crate::losses::Losses;
use crate::machine::Machine;
use crate::owed::Owed;
use crate::presence;
use crate::raw;
use crate::rig::{ARRAY, Blind, Rig};
use crate::silent;
use crate::tally::{Cause, Tally};
use crate::versions::Versions;
use core::ops::Range;
use engine::array::message::Repair;
use engine::manage::command::{ArrayStatus, Request, StartOptions};
use engine::volume::Volume;
use io::{Blocks, Pool};
use sim::{Rng, SharedSimDrive, WorldConfig};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use units::{CoreId, MIB, Nanos};

/// How deep crashes within recoveries go.
pub const DEPTH: usize = 3;

/// Most subsets of drives that are erased at a crash point.
const SUBSETS: usize = 8;

/// Degraded starts are wanted, loss is not accepted.
pub const OPTIONS: StartOptions = StartOptions {
    start_degraded: true,
    accept_loss: false,
    take_over: true,
    others_are_off: true,
};

/// What crash points of one seed share.
pub struct Context {
    /// The drives right after the creation.
    pub base: Vec<Picked>,
    /// The same as drives.
    pub origin: Vec<SharedSimDrive>,
    /// Images seen so far.
    pub seen: BTreeSet<u64>,
    /// What the volumes of images held that were looked at.
    pub found: BTreeMap<u64, Rc<Vec<Content>>>,
    /// Images, with what their blocks may hold, that were looked at so far.
    pub looked_at: BTreeSet<u64>,
    /// What is counted.
    pub tally: Tally,
    /// Smallest unit of requests.
    pub unit: u64,
    /// Where things lie on every drive. What decayed there costs nothing: no more drives have any
    /// than the array can lose.
    pub areas: Areas,
    /// What crashes aim at.
    pub aim: Aim,
    /// No crash within a recovery; each point is recovered twice.
    pub plain: bool,
    /// Servers share the array, and say on the drives which of them has it.
    pub shared: bool,
    /// The drives as pictures before had them, the oldest first.
    pub past: Vec<Vec<SharedSimDrive>>,
}

/// What crashes aim at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// Nothing.
    Anywhere,
    /// They leave pages and batches unreadable: drives are lost beside that, and recoveries cut
    /// short.
    Spoiled,
    /// They leave a batch on one drive: recoveries are cut while they carry batches out, and a
    /// drive is lost then.
    Lone,
}

impl Context {
    /// Whether all blocks can be read, but for places of the region map with a spare on the drive,
    /// and what decayed and costs nothing.
    pub fn readable(&self, drives: &[SharedSimDrive]) -> bool {
        let place = |at: u64| at / PAGE as u64;
        drives.iter().enumerate().all(|(number, drive)| {
            let mut bad = drive.unreadable();
            bad.retain(|at| !self.areas.decayed.contains(&(number, place(*at) * PAGE as u64)));
            let places: BTreeSet<u64> = bad.iter().map(|at| place(*at)).collect();
            let spare =
                |at: &u64| self.areas.map.contains(at) && !places.contains(&(place(*at) ^ 1));
            bad.iter().all(spare)
        })
    }

    /// Tells images apart.
    fn digest(&self, drives: &[SharedSimDrive]) -> u64 {
        let one = |(drive, base): (&SharedSimDrive, &Picked)| {
            let gone = u64::from(drive.is_gone());
            let bad = drive
                .unreadable()
                .into_iter()
                .fold(gone, |sum, at| (sum ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            drive.image().digest_from(base.image()) ^ bad
        };
        let all = drives.iter().zip(&self.base).map(one);
        all.fold(0u64, |sum, one| sum.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ one)
    }
}

/// What a volume holds.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Content {
    /// Its name.
    pub name: String,
    bytes: Vec<u8>,
    /// Pages with blocks that could not be read, where that is right, or that may hold anything.
    unknown: BTreeSet<usize>,
    /// Where these blocks begin.
    pub unread: Vec<u64>,
}

/// How volumes are read back.
#[derive(Clone, Copy)]
struct How<'a> {
    /// Bytes read at a time where more can't be read.
    unit: u64,
    /// What is read stays as it is, whatever happens.
    pin: bool,
    /// Why blocks of a volume at an offset may not be readable, if something is known to have hurt
    /// them.
    why: &'a dyn Fn(&str, u64) -> Option<Cause>,
}

/// Reads all volumes that are there.
fn read_all(
    rig: &Rig,
    status: &ArrayStatus,
    versions: &mut Versions,
    how: How<'_>,
    tally: &mut Tally,
) -> Outcome<Vec<Content>> {
    settle_volumes(status, versions)?;
    let mut all = Vec::new();
    for volume in &status.volumes {
        let at = versions.named(&volume.name).expect("settled");
        let open = rig.open(status, volume).swap_remove(0);
        let bytes = read_range(rig, &open, 0, volume.bytes)?;
        let mut content = Content {
            name: volume.name.clone(),
            bytes: Vec::new(),
            unknown: BTreeSet::new(),
            unread: Vec::new(),
        };
        match bytes {
            Some(bytes) => {
                tally.look("versions: blocks read", bytes.len() as u64 / versions.grain());
                let excused = wrong(versions.check(at, 0, &bytes, how.pin))?;
                tally.over_budget += excused;
                for (page, part) in bytes.chunks(PAGE).enumerate().filter(|_| excused > 0) {
                    if wrong(versions.check(at, (page * PAGE) as u64, part, how.pin))? > 0 {
                        content.unknown.insert(page);
                    }
                }
                content.bytes = bytes;
            }
            None => {
                let place = (at, volume.bytes);
                read_units(rig, &open, place, how, (&mut content, versions, tally))?;
            }
        }
        all.push(content);
    }
    Ok(all)
}

fn wrong<T>(result: Result<T, String>) -> Outcome<T> {
    result.map_err(|text| Failure::new(Oracle::Versions, text))
}

/// Unit by unit, where some can't be read: only what was hurt may not be.
fn read_units(
    rig: &Rig,
    volume: &Volume<Machine>,
    (at, bytes): (usize, u64),
    how: How<'_>,
    (content, versions, tally): (&mut Content, &mut Versions, &mut Tally),
) -> Outcome<()> {
    let Content { bytes: all, unknown, unread, .. } = content;
    let unit = how.unit;
    for from in (0..bytes).step_by(unit as usize) {
        let part = read_range(rig, volume, from, unit.min(bytes - from))?;
        if let Some(part) = part {
            tally.look("versions: blocks read", part.len() as u64 / versions.grain());
            let excused = wrong(versions.check(at, from, &part, how.pin))?;
            tally.over_budget += excused;
            if excused > 0 {
                unknown.extend(all.len() / PAGE..(all.len() + part.len()).div_ceil(PAGE));
            }
            all.extend(part);
            continue;
        }
        let name = &versions.volumes()[at].name;
        let Some(cause) = (how.why)(name, from) else {
            let text = format!("{unit} bytes at {from} can't be read, nothing has hurt them");
            return Err(Failure::new(Oracle::Versions, text));
        };
        tally.lean(cause);
        unknown.extend(all.len() / PAGE..(all.len() + unit as usize).div_ceil(PAGE));
        all.extend(vec![0; unit as usize]);
        unread.push(from);
    }
    Ok(())
}

/// Reads a range; `None` if it can't be read.
///
/// # Errors
/// `Stall`.
pub fn read_range(
    rig: &Rig,
    volume: &Volume<Machine>,
    from: u64,
    bytes: u64,
) -> Outcome<Option<Vec<u8>>> {
    let got = Rc::new(RefCell::new(None));
    let (into, volume) = (got.clone(), volume.clone());
    let env = rig.env(CoreId(0));
    io::Env::spawn(&env, io::Priority::First, async move {
        let (result, bytes) = volume.read(from, Pool::single(bytes as usize)).await;
        *into.borrow_mut() = Some(result.map(|()| bytes.to_vec()));
    });
    rig.run(&mut Blind, crate::rig::BOUND, "a read", || got.borrow().is_some())?;
    let result = got.borrow_mut().take().expect("it ended");
    Ok(result.ok())
}

/// Takes the volumes as the started array has them.
pub fn settle_volumes(status: &ArrayStatus, versions: &mut Versions) -> Outcome<()> {
    let names: Vec<String> = versions.volumes().iter().map(|v| v.name.clone()).collect();
    for name in names {
        let at = versions.named(&name).expect("it has this name");
        let found = status.volumes.iter().find(|v| v.name == name).map(|v| v.bytes);
        let known = &versions.volumes()[at];
        match found {
            Some(bytes) if known.sizes.contains(&bytes) => versions.settle(at, bytes),
            None if known.unborn => versions.forget(at),
            _ => {
                let text = format!("volume {name} has {found:?} bytes, not {:?}", known.sizes);
                return Err(Failure::new(Oracle::Metadata, text));
            }
        }
    }
    match status.volumes.iter().find(|v| versions.named(&v.name).is_none()) {
        Some(v) => Err(Failure::new(Oracle::Metadata, format!("volume {} is nobody's", v.name))),
        None => Ok(()),
    }
}

/// Whether an image needs no recovery any more: it had one, and what was read then is what its
/// blocks may hold now.
///
/// # Errors
/// `Versions` if it is not.
pub fn known(context: &mut Context, digest: u64, versions: &Versions) -> Outcome<bool> {
    let new = context.looked_at.insert(digest ^ versions.digest());
    Ok(!new || again_known(context, digest, versions)?)
}

/// Looks at one picture as it is: no other drives are lost, no crash within its recovery. What is
/// drawn hangs on the image alone.
///
/// # Errors
/// What an oracle found.
pub fn check_plainly(context: &mut Context, picture: Picture, digest: u64) -> Outcome<()> {
    let found = pick(&picture.drives);
    let before = Before::of(&found, picture.owed);
    recover(context, (picture, &before), digest, &mut Rng::new(digest), 0)
}

/// Looks at one picture and at the crashes within its recovery.
///
/// # Errors
/// What an oracle found.
pub fn check(
    context: &mut Context,
    mut picture: Picture,
    rng: &mut Rng,
    depth: usize,
) -> Outcome<()> {
    count_torn(&picture.drives, &mut context.tally);
    if depth == 0 {
        context.areas.decayed.clear();
        context.areas.map_decayed = false;
        context.areas.set_back = false;
    }
    let rolled = presence::try_out(context, &mut picture, rng)?;
    // The same image may be right for what blocks may hold now and wrong for what was
    // acknowledged since: only if both are the same there is nothing new to see.
    let digest = context.digest(&picture.drives);
    if !context.looked_at.insert(digest ^ picture.versions.digest()) {
        context.tally.repeated += 1;
        return Ok(());
    }
    if again_known(context, digest, &picture.versions)? {
        context.tally.repeated += 1;
        return Ok(());
    }
    let found = pick(&picture.drives);
    let before = Before::of(&found, picture.owed);
    if let (true, Ok(decoded)) = (rng.chance(50), before.decoded()) {
        let readable = context.areas.decayed.is_empty() && context.readable(&picture.drives);
        let state = (readable, before.owed);
        raw::look(decoded, &picture.versions, state, (rng, &mut context.tally))?;
    }
    if !presence::leave_out(context, &picture.drives, (&found, &before, depth, rolled), rng) {
        return recover(context, (picture, &before), digest, rng, depth);
    }
    let found = pick(&picture.drives);
    let before = Before::of(&found, picture.owed);
    recover(context, (picture, &before), digest, rng, depth)
}

/// Holds what the same image was found to hold against other versions; false if that is not
/// known whole.
fn again_known(context: &mut Context, digest: u64, versions: &Versions) -> Outcome<bool> {
    let Some(found) = context.found.get(&digest).cloned() else { return Ok(false) };
    let mut versions = versions.clone();
    let whole = found.iter().all(|c| c.unknown.is_empty());
    let same = |c: &Content| {
        let at = versions.named(&c.name);
        at.is_some_and(|at| versions.volumes()[at].sizes == [c.bytes.len() as u64])
    };
    if !whole || found.len() != versions.volumes().len() || !found.iter().all(same) {
        return Ok(false);
    }
    for content in found.iter() {
        let at = versions.named(&content.name).expect("it was found");
        context.tally.over_budget += wrong(versions.check(at, 0, &content.bytes, false))?;
    }
    Ok(true)
}

/// A camera for a crash within a recovery, if there is to be one. Where pages and batches are
/// spoiled, mostly when what they say is being carried out or recorded.
fn within(
    context: &Context,
    drives: &[SharedSimDrive],
    versions: &Rc<RefCell<Versions>>,
    depth: usize,
    rng: &mut Rng,
) -> Camera {
    if context.aim == Aim::Anywhere {
        let deeper = if depth < DEPTH && !context.plain && rng.chance(35) {
            rng.below(120)
        } else {
            u64::MAX
        };
        return Camera::once(drives, versions, rng.fork(), deeper);
    }
    if depth >= DEPTH || rng.chance(20) {
        return Camera::once(drives, versions, rng.fork(), u64::MAX);
    }
    let data = &context.areas.data;
    let places = match context.aim {
        Aim::Lone => vec![data.clone()],
        _ if rng.coin() => vec![0..MIB, data.end..u64::MAX],
        _ => core::iter::once(MIB..data.end).collect(),
    };
    let before = rng.below(if context.aim == Aim::Lone { 40 } else { 25 });
    Camera::aimed(drives, versions, rng.fork(), (places, before))
}

/// Starts the array of a picture and has every oracle look.
fn recover(
    context: &mut Context,
    (picture, before): (Picture, &Before<'_>),
    digest: u64,
    rng: &mut Rng,
    depth: usize,
) -> Outcome<()> {
    let rig = machine(rng);
    let readable = context.readable(&picture.drives);
    before.pages(&picture.drives, context.aim == Aim::Spoiled, context.areas.behind())?;
    let mut may_hold = picture.versions.clone();
    before.forgive_maps(&mut may_hold, &mut context.tally);
    let versions = Rc::new(RefCell::new(may_hold));
    let mut camera = within(context, &picture.drives, &versions, depth, rng);
    camera.owed = before.owed;
    context.tally.fault("paths swapped", fleet::swaps(&picture.drives, rng).is_some().into());
    let with = (&mut *rng, &mut context.tally);
    let Some(status) = start(&rig, &mut camera, (&picture.drives, before), with)? else {
        context.tally.refused += 1;
        context.tally.look("start: refused", 1);
        context.tally.traced(rig.world.trace_hash());
        return nested(context, camera, rng, depth);
    };
    context.tally.look("start: started", 1);
    let unit = context.unit;
    let why = |name: &str, at: u64| before.why(name, at, unit);
    let how = How { unit, pin: false, why: &why };
    if rng.chance(30) {
        // Until the resync is over, a crash and the loss of a copy may still show the other.
        let mut versions = versions.borrow_mut();
        read_all(&rig, &status, &mut versions, how, &mut context.tally)?;
    }
    lists::resume(&rig, &mut camera, &status)?;
    let status = rig.wait(&mut camera)?.unwrap_or(status);
    let whole = status.tasks.is_empty();
    let rested = rest(&rig, &mut camera, &status, readable)?;
    context.tally.look("stall: came to rest", u64::from(rested));
    // What only lies in caches of drives may still be lost.
    let how = How { pin: picture.power && rested, ..how };
    let (content, healed) = {
        let tally = &mut context.tally;
        read_and_heal((&rig, &mut camera), &status, &versions, how, (tally, rng))?
    };
    let rested = if healed { rig.rest(&mut camera)? } else { rested };
    if whole && readable && rng.chance(10) {
        context.tally.look("again: scrubs", u64::from(scrub(&rig)?));
    }
    finish(context, rig, &picture)?;
    let readable = context.readable(&picture.drives);
    let state = (whole, rested, readable);
    look(&picture.drives, before, &content, state, (&mut context.tally, rng))?;
    if let Ok(decoded) = before.decoded() {
        untouched(context, &decoded.record, &picture.drives)?;
    }
    let twice = whole
        && rested
        && (rng.chance(25) || context.plain)
        && again(context, (&picture.drives, before.owed), rng)?;
    if whole && readable && rng.chance(2) {
        silent::try_out(context, (&picture.drives, before.owed), rng)?;
    }
    if !healed {
        context.found.insert(digest, Rc::new(content));
    }
    let new = context.seen.insert(digest);
    context.tally.point((new, whole), depth > 0, twice);
    nested(context, camera, rng, depth)
}

/// Ends the machine of a picture as the picture's own machine ended.
fn finish(context: &mut Context, rig: Rig, picture: &Picture) -> Outcome<()> {
    // A page may be on its way to some drives: what comes next looks at whole ones.
    let idle = || picture.drives.iter().all(|drive| drive.in_flight() == 0);
    rig.run(&mut Blind, crate::rig::BOUND, "the end of all requests", idle)?;
    context.tally.traced(rig.world.trace_hash());
    rig.end(picture.power);
    count_fired(&picture.drives, &context.areas, &mut context.tally);
    Ok(())
}

/// A machine that an array is recovered on.
fn machine(rng: &mut Rng) -> Rig {
    let cores = if rng.chance(80) { 1 } else { 2 };
    let mail_delay_most = Nanos(1_000);
    Rig::new(WorldConfig { cores, mail_delay_most, ..WorldConfig::new(rng.bits()) })
}

/// Reads everything and looks at the lists. Sometimes what can't be read is written anew, and all
/// is read again: whether it was.
fn read_and_heal(
    (rig, camera): (&Rig, &mut Camera),
    status: &ArrayStatus,
    versions: &Rc<RefCell<Versions>>,
    how: How<'_>,
    (tally, rng): (&mut Tally, &mut Rng),
) -> Outcome<(Vec<Content>, bool)> {
    let content = read_all(rig, status, &mut versions.borrow_mut(), how, tally)?;
    lists::agree(rig, &content, how.unit, tally)?;
    if content.iter().all(|c| c.unread.is_empty()) || rng.coin() {
        return Ok((content, false));
    }
    lists::heal(rig, status, &content, versions, (how.unit, tally))?;
    // Its regions are dirty again.
    rig.rest(camera)?;
    Ok((read_all(rig, status, &mut versions.borrow_mut(), how, tally)?, true))
}

/// Lets all regions become clean; whether they did. Where every block is `readable` they must,
/// and no task may be stuck.
fn rest(rig: &Rig, camera: &mut Camera, status: &ArrayStatus, readable: bool) -> Outcome<bool> {
    let whole = status.tasks.is_empty();
    if !whole && readable {
        let text = format!("tasks are stuck, yet every block can be read: {:?}", status.tasks);
        return Err(Failure::new(Oracle::Stall, text));
    }
    let rested = whole && rig.rest(camera)?;
    if whole && readable && !rested {
        let text = "regions stay dirty that nobody writes and no task is about";
        return Err(Failure::new(Oracle::Stall, text));
    }
    Ok(rested)
}

fn nested(context: &mut Context, camera: Camera, rng: &mut Rng, depth: usize) -> Outcome<()> {
    for picture in camera.pictures {
        let border = picture.border;
        check(context, picture, rng, depth + 1)
            .map_err(|f| f.at(format_args!("crash again at {border} in the recovery")))?;
    }
    Ok(())
}

/// Scrubs; whether there was one.
fn scrub(rig: &Rig) -> Outcome<bool> {
    let asked =
        rig.ask(&mut Blind, "a scrub", |r| Request::Scrub(ARRAY.into(), Repair::Nothing, r))?;
    if asked.is_err() {
        return Ok(false);
    }
    match rig.wait(&mut Blind)?.and_then(|s| s.last_scrub) {
        Some(found) if found.mismatches > 0 => {
            let text = format!("a scrub after the recovery finds {} mismatches", found.mismatches);
            Err(Failure::new(Oracle::Again, text))
        }
        found => Ok(found.is_some()),
    }
}

/// Holds the raw images against what the engine gave. `whole`: no task is stuck; `rested`: no
/// region is dirty; `readable`: all blocks can be read.
fn look(
    drives: &[SharedSimDrive],
    before: &Before<'_>,
    content: &[Content],
    (whole, rested, readable): (bool, bool, bool),
    (tally, rng): (&mut Tally, &mut Rng),
) -> Outcome<()> {
    let picked = pick(drives);
    let wrong = |text: String| Failure::new(Oracle::Decoder, text);
    let decoded = Decoded::open(&picked)
        .map_err(|refusal| wrong(format!("after the recovery: {refusal:?}")))?;
    let newest = before.age();
    let now = (decoded.record.epoch.counter, decoded.record.sequence);
    if newest.is_some_and(|then| then.0 >= now.0 || then.1 >= now.1) {
        let text = format!("epoch and sequence went from {newest:?} to {now:?}");
        return Err(Failure::new(Oracle::Metadata, text));
    }
    if readable && rested {
        tally.look("metadata: in-flight pages at rest", still(&decoded)?);
    }
    let pages = pages(before.decoded().ok(), &decoded, readable, rested)?;
    tally.look("metadata: pages of the region map", pages);
    if !whole {
        return Ok(());
    }
    let (wrong_at, compared) = decoded.mismatches(rested);
    tally.look("decoder: pages of redundancy", compared);
    if let Some(seat) = wrong_at.first() {
        return Err(wrong(format!("strips do not agree after the recovery: {seat:?}")));
    }
    let read = erased(&decoded, content, 0, readable)?;
    tally.look("decoder: pages read", read);
    for set in subsets(&decoded, rng) {
        if readable && !decoded.same_map(set) {
            let text = format!("the region map is another, slots {set:#b} erased");
            return Err(Failure::new(Oracle::Erasure, text));
        }
        tally.look("erasure: sets of slots", 1);
        tally.look("erasure: pages read", erased(&decoded, content, set, readable)?);
    }
    Ok(())
}

/// No page of the region map is lost, or went back; at rest, its written bits are in both places.
/// How many pages there are.
fn pages(
    before: Option<&Decoded<'_, Picked>>,
    after: &Decoded<'_, Picked>,
    readable: bool,
    rested: bool,
) -> Outcome<u64> {
    let sequences = |d: &Decoded<'_, Picked>| -> Vec<Option<u64>> {
        d.maps.iter().flat_map(|map| map.sequences.clone()).collect()
    };
    let (then, now) = (before.map_or_else(Vec::new, sequences), sequences(after));
    for (page, (then, now)) in then.iter().zip(&now).enumerate() {
        if then > now {
            let text = format!("page {page} of the map went from {then:?} to {now:?}");
            return Err(Failure::new(Oracle::Metadata, text));
        }
    }
    if now.contains(&None) && readable {
        return Err(Failure::new(Oracle::Metadata, "a page of the map is lost"));
    }
    match after.one_place().filter(|_| readable && rested) {
        Some(text) => Err(Failure::new(Oracle::Metadata, text)),
        None => Ok(now.len() as u64),
    }
}

/// Reads every page with the slots of `set` erased; how many.
fn erased(
    decoded: &Decoded<'_, Picked>,
    content: &[Content],
    set: u64,
    readable: bool,
) -> Outcome<u64> {
    let mut read = 0;
    let oracle = if set == 0 { Oracle::Decoder } else { Oracle::Erasure };
    for Content { name, bytes, unknown, .. } in content {
        let failure = |text: String| {
            let text = format!("{text} of volume {name}, slots {set:#b} erased");
            Err(Failure::new(oracle, text))
        };
        let Some(volume) = decoded.volume(name).filter(|v| v.bytes == bytes.len() as u64) else {
            return failure("the decoder sees another size".into());
        };
        for (i, wanted) in bytes.chunks(PAGE).enumerate() {
            let seat = decoded.seat(volume, (i * PAGE) as u64);
            let seat = seat.expect("extents hold the volume");
            // What lies on a drive that is there was read with none erased.
            let slot = decoded.slot(&seat, seat.strip);
            let mirror = decoded.record.ranges[seat.range].kind == 1;
            if unknown.contains(&i) || (set != 0 && !mirror && set >> slot & 1 == 0) {
                continue;
            }
            match decoded.read(&seat, set) {
                Some(page) if page[..wanted.len()] == *wanted => read += 1,
                Some(_) => return failure(format!("page {i} differs")),
                // Blocks that can't be read are damage beside the slots that are erased.
                None if !readable => {}
                None => {
                    let (dirty, groups) = (decoded.dirty(&seat), &decoded.record.groups);
                    let text = format!("page {i} can't be read (dirty: {dirty}, {groups:?})");
                    return failure(text);
                }
            }
        }
    }
    Ok(read)
}

/// Sets of slots that the array can lose, any of each group: all of them if they are few, else
/// some.
fn subsets(decoded: &Decoded<'_, Picked>, rng: &mut Rng) -> Vec<u64> {
    let losses = Losses::new(decoded.spares());
    let some = || (0..SUBSETS).map(|_| losses.any(rng)).collect();
    let mut sets = losses.all(SUBSETS).unwrap_or_else(some);
    sets.retain(|set| *set != 0);
    sets
}

/// Pages of an image that belong to nobody, and those of areas that may have been erased. A shared
/// array has owner pages.
fn nobodys(bytes: u64, record: &Record, shared: bool) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let (_, tail) = record::places(bytes);
    let slots = 2 * 262_144;
    let owner = if shared { PAGE as u64 } else { 0 };
    // What lies behind the tail area is erased with it.
    let erasable = vec![slots + owner..MIB, tail + slots..bytes];
    let behind_data = record.data_offset + record.data_bytes..tail;
    let areas = record.areas;
    // Of a group's drive; more pages are there where a drive is in several groups.
    let used = (0..record.slots.len()).map(|slot| map::used_bytes(record, slot)).max();
    let behind_map = areas.map_start + used.unwrap_or(0)..areas.map_start + areas.map_bytes;
    let mut nobodys = vec![behind_data, behind_map];
    if !DEGRADED_CRASH.there {
        nobodys.push(areas.journal_start..areas.journal_start + areas.journal_bytes);
    }
    (nobodys, erasable)
}

/// Bytes that belong to nobody are as they were.
fn untouched(context: &mut Context, record: &Record, drives: &[SharedSimDrive]) -> Outcome<()> {
    let pages = |r: Range<u64>| r.start as usize / PAGE..(r.end as usize).div_ceil(PAGE);
    for (number, (drive, base)) in drives.iter().zip(&context.base).enumerate() {
        let image = drive.image();
        let (nobodys, erasable) = nobodys(image.bytes() as u64, record, context.shared);
        let looked = nobodys.iter().cloned().map(pages).map(|r| r.len() as u64).sum();
        context.tally.look("metadata: pages that are nobody's", looked);
        let same = |page: usize| image.same_page(base.image(), page);
        // A spare drive that was put in has had its areas erased, at least in part; a cut of power
        // may have left nobody's bytes in a block of them.
        let torn: BTreeSet<usize> = drive.garbage().iter().map(|at| *at as usize / PAGE).collect();
        let erased = |page: usize| {
            let (now, then) = (image.page(page), base.image().page(page));
            torn.contains(&page) || now.iter().zip(then).all(|(now, then)| *now == 0 || now == then)
        };
        let wrong = erasable.into_iter().flat_map(pages).find(|p| !same(*p) && !erased(*p));
        let wrong = wrong.or_else(|| nobodys.into_iter().flat_map(pages).find(|p| !same(*p)));
        if let Some(page) = wrong {
            let at = page * PAGE;
            let text = format!("drive {number} was written at {at}, outside of its areas");
            return Err(Failure::new(Oracle::Metadata, text));
        }
    }
    Ok(())
}

/// A second recovery changes no byte of the data areas; whether there was one.
fn again(
    context: &mut Context,
    (drives, owed): (&[SharedSimDrive], Owed),
    rng: &mut Rng,
) -> Outcome<bool> {
    let found = pick(drives);
    let before = Before::of(&found, owed);
    if let (Ok(decoded), true) = (before.decoded(), before.refused() == Some(Refusal::AcceptLoss)) {
        return before.owed.excuses(decoded, &mut context.tally).map(|()| false);
    }
    let data = before.decoded().map_or((MIB, 0), |d| (d.record.data_offset, d.record.data_bytes));
    let rig = Rig::new(WorldConfig::new(rng.bits()));
    let with = (rng, &mut context.tally);
    let Some(_) = start(&rig, &mut Blind, (drives, &before), with)? else {
        return Err(Failure::new(Oracle::Again, "a second recovery is refused"));
    };
    rig.wait(&mut Blind)?;
    context.tally.look("again: second recoveries", 1);
    context.tally.traced(rig.world.trace_hash());
    rig.world.kill();
    let after = pick(drives);
    for (number, (before, after)) in found.iter().zip(&after).enumerate() {
        let data = data.0 as usize / PAGE..(data.0 + data.1) as usize / PAGE;
        if let Some(page) = after.image().changed_from(before.image()).find(|p| data.contains(p)) {
            let text = format!("a second recovery changed page {page} of drive {number}");
            return Err(Failure::new(Oracle::Again, text));
        }
    }
    Ok(true)
}

//! What people are told of blocks that nobody can give back, and of tasks that wait.
//!
//! - What is listed as lost can't be read; what can't be read is listed. (Whether it may be lost is
//!   looked at where it is read.)
//! - What is written anew can be read, and is listed no more.
//! - A task that was told to wait before a crash waits after the next start.

use crate::decoder::array::Decoded;
use crate::decoder::record::State;
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::Picked;
use crate::point::{Content, read_range};
use crate::rig::{ARRAY, BOUND, Blind, Rig, Watch};
use crate::tally::Tally;
use crate::versions::Versions;
use engine::manage::command::{ArrayStatus, Request, TaskAction, TaskKind, UnreadableRange};
use io::{Blocks, Env, Pool, Priority};
use std::cell::RefCell;
use std::rc::Rc;
use units::{CoreId, Nanos};

/// Most blocks of a volume that are written anew.
const HEALED: usize = 6;

/// What waits by the newest record waits.
///
/// # Errors
/// `Metadata` if it goes on by itself.
pub fn waits(decoded: &Decoded<'_, Picked>, status: &ArrayStatus) -> Outcome<()> {
    let paused = decoded.record.paused;
    let mut slots = decoded.record.slots.iter().zip(&decoded.drives);
    let rebuilds =
        slots.any(|(slot, drive)| matches!(slot.state, State::Rebuilding(_)) && drive.is_some());
    let told =
        [(TaskKind::Rebuild, paused & 1 != 0 && rebuilds), (TaskKind::Scrub, paused & 4 != 0)];
    let waits = |kind| status.tasks.iter().any(|task| task.kind == kind && task.paused);
    match told.into_iter().find(|(kind, told)| *told && !waits(*kind)) {
        Some((kind, _)) => wrong(format!("a {kind:?} goes on that was told to wait")),
        None => Ok(()),
    }
}

/// Has every task go on.
///
/// # Errors
/// `Stall`.
pub fn resume(rig: &Rig, watch: &mut dyn Watch, status: &ArrayStatus) -> Outcome<()> {
    for task in status.tasks.iter().filter(|task| task.paused) {
        let (kind, action) = (task.kind, TaskAction::Resume);
        // It may have ended meanwhile.
        let _ = rig.ask(watch, "a task", |r| Request::Task(ARRAY.into(), kind, None, action, r))?;
    }
    Ok(())
}

fn lists(rig: &Rig) -> Outcome<Vec<UnreadableRange>> {
    // Who met such a block tells the manager by mail.
    rig.pass(&mut Blind, Nanos::from_micros(500));
    Ok(rig.status(&mut Blind)?.map_or_else(Vec::new, |status| status.unreadable))
}

fn wrong(text: String) -> Outcome<()> {
    Err(Failure::new(Oracle::Metadata, text))
}

/// Holds the lists against what could be read.
///
/// # Errors
/// `Metadata`.
pub fn agree(rig: &Rig, content: &[Content], unit: u64, tally: &mut Tally) -> Outcome<()> {
    let listed = lists(rig)?;
    tally.look("lists: held against what was read", 1);
    tally.look(
        "lists: blocks that can't be read",
        content.iter().map(|c| c.unread.len() as u64).sum(),
    );
    for Content { name, unread, .. } in content {
        let own = || listed.iter().filter(|range| range.volume == *name);
        let touches = |range: &UnreadableRange, from: u64| {
            range.offset < from + unit && from < range.offset + range.bytes
        };
        for from in unread {
            if !own().any(|range| touches(range, *from)) {
                return wrong(format!("{unit} bytes at {from} of {name} can't be read, unlisted"));
            }
        }
        for range in own().filter(|range| range.reason.is_some()) {
            let units =
                (range.offset / unit * unit..range.offset + range.bytes).step_by(unit as usize);
            if let Some(from) = units.into_iter().find(|from| unread.binary_search(from).is_err()) {
                return wrong(format!("{from} is listed as lost and can be read: {range:?}"));
            }
        }
    }
    Ok(())
}

/// Writes blocks anew that can't be read: then they can, and are not listed.
///
/// # Errors
/// `Metadata`.
pub fn heal(
    rig: &Rig,
    status: &ArrayStatus,
    content: &[Content],
    versions: &Rc<RefCell<Versions>>,
    (unit, tally): (u64, &mut Tally),
) -> Outcome<()> {
    for Content { name, unread, .. } in content {
        let Some(volume) = status.volumes.iter().find(|v| v.name == *name) else { continue };
        let open = rig.open(status, volume).swap_remove(0);
        let at = versions.borrow().named(name).expect("it was read");
        for from in unread.iter().copied().take(HEALED) {
            let bytes = unit.min(volume.bytes - from);
            tally.look("lists: blocks written anew", 1);
            let version = versions.borrow_mut().begin(at, from, bytes, false);
            let mut data = Pool::single(bytes as usize);
            versions.borrow().data(at, from, version, &mut data);
            let (done, into, to) = (Rc::new(RefCell::new(None)), open.clone(), data.freeze());
            let answer = done.clone();
            rig.world.env(CoreId(0)).spawn(Priority::First, async move {
                *answer.borrow_mut() = Some(into.write(from, to, true).await);
            });
            rig.run(&mut Blind, BOUND, "a write", || done.borrow().is_some())?;
            if let Some(Err(error)) = done.take() {
                return wrong(format!("{from} of {name} can't be written anew: {error}"));
            }
            versions.borrow_mut().end(at, from, bytes, version, true);
            if read_range(rig, &open, from, bytes)?.is_none() {
                return wrong(format!("{from} of {name} was written anew and can't be read"));
            }
            let still = |r: &&UnreadableRange| {
                r.volume == *name && r.offset < from + bytes && from < r.offset + r.bytes
            };
            if let Some(range) = lists(rig)?.iter().find(still) {
                return wrong(format!("{from} was written anew and is listed: {range:?}"));
            }
        }
    }
    Ok(())
}

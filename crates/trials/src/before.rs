//! What the drives say before a start, by the second reader, and whether the engine's start agrees.
//!
//! Invariant: a picture's drives are read once; whoever needs to know what they say is given this.

use crate::decoder::PAGE;
use crate::decoder::array::{Decoded, Refusal};
use crate::decoder::map::GroupMap;
use crate::decoder::record::{self, VolumeEntry};
use crate::failure::{Failure, Oracle, Outcome};
use crate::fleet::{Picked, references};
use crate::lists;
use crate::owed::Owed;
use crate::point::OPTIONS;
use crate::rig::{Rig, Watch};
use crate::tally::{Cause, Tally};
use crate::versions::Versions;
use engine::manage::command::{ArrayStatus, ManageError};
use format::AssembleError;
use sim::{Rng, SharedSimDrive};
use std::collections::BTreeMap;

/// What the drives said before they were started.
pub struct Before<'a> {
    found: &'a [Picked],
    decoded: Result<Decoded<'a, Picked>, Refusal>,
    /// What a start from these drives may owe.
    pub owed: Owed,
}

impl<'a> Before<'a> {
    /// What the drives that are there say, of an array that may have owed what it `did` before.
    pub fn of(found: &'a [Picked], did: Owed) -> Self {
        let decoded = Decoded::open(found);
        let owed = decoded.as_ref().map_or(did, |decoded| Owed::at(decoded, did));
        Self { found, decoded, owed }
    }

    /// The array as the document has it.
    ///
    /// # Errors
    /// Why it is none.
    pub fn decoded(&self) -> Result<&Decoded<'a, Picked>, Refusal> {
        self.decoded.as_ref().map_err(|refusal| *refusal)
    }

    /// Why the document has it not started, if it has.
    pub fn refused(&self) -> Option<Refusal> {
        self.decoded().and_then(Decoded::may_start).err()
    }

    /// Where no drive has a page of the region map any more, bands that were never written, or
    /// discarded, may hold what their drives say: over budget, and the array says so.
    pub fn forgive_maps(&self, versions: &mut Versions, tally: &mut Tally) {
        let Ok(decoded) = &self.decoded else { return };
        if decoded.maps.iter().any(GroupMap::lost) {
            tally.fault("map damaged beyond redundancy", 1);
            versions.forgive_zeros();
        }
    }

    /// Why blocks may not be readable, by what is known to have hurt them:
    /// - they are listed as lost because they were in flight at a crash, or the start finds them
    ///   lost in columns in flight: exception (a);
    /// - they are listed for another reason, or no drive that is there gives them, nor the
    ///   redundancy of others, which counts for nothing where a resync is owed: more than
    ///   redundancy covers. The start that decided so before may have written them.
    pub fn why(&self, name: &str, at: u64, bytes: u64) -> Option<Cause> {
        let decoded = self.decoded().ok()?;
        let volume = decoded.volume(name)?;
        let page = PAGE as u64;
        let mut pages = (at / page * page..at + bytes).step_by(PAGE);
        let unread =
            |from| decoded.seat(volume, from).is_some_and(|s| decoded.read(&s, 0).is_none());
        let listed = listed(decoded, volume, (at, bytes));
        listed.or_else(|| pages.any(unread).then_some(Cause::OverBudget))
    }

    /// The units that are lost, or that the start finds lost, and why: the volumes' numbers, and
    /// offsets.
    pub fn lost(&self, versions: &Versions, unit: u64) -> BTreeMap<(usize, u64), Cause> {
        let Ok(decoded) = &self.decoded else { return BTreeMap::new() };
        let mut lost = BTreeMap::new();
        for (number, known) in versions.volumes().iter().enumerate() {
            let Some(volume) = decoded.volume(&known.name) else { continue };
            let all = (0..known.sizes.iter().copied().max().unwrap_or(0)).step_by(unit as usize);
            let why = |at| Some(((number, at), listed(decoded, volume, (at, unit))?));
            lost.extend(all.filter_map(why));
        }
        lost
    }

    /// Every drive that counts has each page of the region map, the newest or one that is at most
    /// so many `behind`. With `torn`, where only pages that were being written can't be read,
    /// somebody has each.
    ///
    /// # Errors
    /// `Metadata`.
    pub fn pages(&self, drives: &[SharedSimDrive], torn: bool, behind: u64) -> Outcome<()> {
        let Ok(decoded) = &self.decoded else { return Ok(()) };
        let maps = &decoded.maps;
        if torn && maps.iter().any(GroupMap::lost) {
            return Err(Failure::new(Oracle::Metadata, "nobody has a page of the map"));
        }
        if drives.iter().any(|d| !d.unreadable().is_empty()) {
            return Ok(());
        }
        for slot in (0..decoded.drives.len()).filter(|slot| decoded.counts(*slot)) {
            for (group, own) in decoded.maps_of(slot) {
                let pages = maps[group].sequences.iter().zip(own.sequences);
                if let Some((newest, own)) =
                    pages.into_iter().find(|(n, own)| own.map(|own| own + behind) < **n)
                {
                    let text = format!("slot {slot} has page {own:?} of the map, not {newest:?}");
                    return Err(Failure::new(Oracle::Metadata, text));
                }
            }
        }
        Ok(())
    }

    /// Where the record says that nothing is under way, in-flight pages name nothing.
    ///
    /// # Errors
    /// `Metadata` if one does.
    fn quiet(&self) -> Outcome<()> {
        match self.decoded() {
            Ok(all) if all.record.groups.iter().all(|group| !group.unclean) => still(all).map(drop),
            _ => Ok(()),
        }
    }

    /// Epoch and sequence number of the newest record.
    pub fn age(&self) -> Option<(u64, u64)> {
        self.decoded().ok().map(|d| (d.record.epoch.counter, d.record.sequence))
    }
}

/// Why bytes of a volume are listed as lost, or will be by a start.
fn listed(
    decoded: &Decoded<'_, Picked>,
    volume: &VolumeEntry,
    (at, bytes): (u64, u64),
) -> Option<Cause> {
    match decoded.lost_in_flight(volume, at, bytes) {
        true => Some(Cause::InFlight),
        false => decoded.listed(volume, at, bytes).then_some(Cause::OverBudget),
    }
}

/// The array says how many pages of its region map no drive has any more.
fn says_lost(decoded: &Decoded<'_, Picked>, status: &ArrayStatus) -> Outcome<()> {
    let pages = decoded.maps.iter().flat_map(|map| &map.sequences);
    let lost = pages.filter(|page| page.is_none()).count() as u64;
    let said = status.region_map.lost_pages;
    if said == lost {
        return Ok(());
    }
    let text = format!("{lost} pages of the map are on no drive, and the array says {said}");
    Err(Failure::new(Oracle::Metadata, text))
}

/// At rest in-flight pages name nothing, so that nothing is excused by them; how many there are.
///
/// # Errors
/// `Metadata` if one does.
pub fn still(decoded: &Decoded<'_, Picked>) -> Outcome<u64> {
    match decoded.flight.named.first() {
        Some(columns) => {
            let text = format!("an in-flight page names what is long over: {columns:?}");
            Err(Failure::new(Oracle::Metadata, text))
        }
        None => Ok(decoded.flight.pages as u64),
    }
}

/// Starts the array as the document says it must, or must not, be started.
///
/// # Errors
/// As [`judge`].
pub fn start(
    rig: &Rig,
    watch: &mut dyn Watch,
    (drives, before): (&[SharedSimDrive], &Before<'_>),
    (rng, tally): (&mut Rng, &mut Tally),
) -> Outcome<Option<ArrayStatus>> {
    let started = rig.assemble(watch, references(drives, rng), OPTIONS)?;
    judge(before, started, tally)
}

/// Whether a start came to what the document says.
///
/// # Errors
/// `Start` if the engine did otherwise, or both refuse what nothing is known of that it owes;
/// `Ok(None)` if they refuse with a cause. `Metadata` if a record says so without one.
pub fn judge(
    before: &Before<'_>,
    started: Result<ArrayStatus, ManageError>,
    tally: &mut Tally,
) -> Outcome<Option<ArrayStatus>> {
    if let Ok(decoded) = before.decoded() {
        before.owed.agrees(decoded)?;
        before.quiet()?;
    }
    let said = before.decoded().and_then(Decoded::may_start);
    let failure = |text: String| Err(Failure::new(Oracle::Start, text));
    match (said, started) {
        (Ok(()), Ok(status)) => {
            let decoded = before.decoded().expect("it may start");
            lists::waits(decoded, &status)?;
            says_lost(decoded, &status)?;
            Ok(Some(status))
        }
        (Ok(()), Err(error)) => {
            failure(format!("refused what must start: {error}; {}", seen(before.found)))
        }
        (
            Err(Refusal::AcceptLoss),
            Err(ManageError::Assemble(AssembleError::NeedsAcceptLoss { .. })),
        ) => {
            let decoded = before.decoded().expect("it is an array");
            before.owed.excuses(decoded, tally).map(|()| None)
        }
        (Err(Refusal::AcceptLoss), Ok(_)) => failure(format!(
            "started, without a word, what may have lost data: {}",
            seen(before.found)
        )),
        (Err(said), started) => {
            let then = started.map_or_else(|e| e.to_string(), |_| "it was started".into());
            let found = seen(before.found);
            failure(format!("beyond what faults did to the drives: {said:?}, {then}; {found}"))
        }
    }
}

/// What the drives' records say, in short.
fn seen(drives: &[Picked]) -> String {
    let one = |drive: &Picked| match record::newest(drive) {
        Some(r) => {
            let states: Vec<_> = r.slots.iter().map(|s| (s.state, s.last.counter)).collect();
            let (epoch, groups) = (r.epoch.counter, &r.groups);
            format!("slot {} epoch {epoch}.{} {states:?} {groups:?}", r.slot, r.sequence)
        }
        None => "no record".into(),
    };
    drives.iter().map(one).collect::<Vec<_>>().join("; ")
}

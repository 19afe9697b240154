//! The drives that the daemon knows: those that its configuration names.
//!
//! Purpose: a drive is claimed before anything is believed that is read from it (D8). It stays
//! open while it holds a record, a request has it or an array uses it; what is free or foreign is
//! only read, and closed again, so that others can use it. States of a drive: unusable (can't be
//! opened, or does not answer; tried again at the next look) → free, foreign or found (by its
//! content) → reserved (a request is about to use it, or what one asked to be erased still is; or
//! it is looked at for a plan, and is what it was behind that) → in use (a running array's slot
//! counts on it) → looked at anew when let go, or failed (that array excluded it; not looked at
//! unless a request names it). The same drive is never open twice: a handle is given up only when
//! it is the last.
//!
//! Invariants
//! - One look at a drive is under way at a time. What it saw counts for nothing if the drive was
//!   reserved since it began.
//! - Who calls [`Inventory::reserve`] to reserve has the turn.
//! - What was on a drive before an array took it is forgotten then.
//! - A drive gets its id behind the first look at it, and keeps it as long as its path leads to no
//!   other drive: whatever takes it, whatever else is learnt of it, and while it is not there or
//!   the kernel says nothing of it. If it is found elsewhere it takes its id along.

use crate::failure;
use crate::look::{Identity, Look, LookError, Opened, Seen, absolute, canonical};
use crate::nameplate::{self, Nameplate, Stamp};
use crate::probe::Content;
use drives::sysfs::ROOT as SYSFS;
use drives::{IoTimes, SharedDrive};
use engine::manage::command::DriveRef;
use redfish::view::{self, Error, NamedDrive};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use units::Uuid;

/// How long a drive is known that somebody asked for, though the configuration does not name it.
const ASKED: Duration = Duration::from_secs(600);

/// What is at a path.
#[derive(Clone, Debug)]
pub struct Found {
    /// The path, from the root.
    pub plain: PathBuf,
    /// The same without symbolic links.
    pub canonical: PathBuf,
    /// What the kernel says of it.
    pub plate: Option<Nameplate>,
}

impl Found {
    /// Looks the path up.
    pub fn at(path: &Path) -> Self {
        let plate = nameplate::of(Path::new(SYSFS), path);
        Self { plain: absolute(path), canonical: canonical(path), plate }
    }
}

/// Where a running array has a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The array's name.
    pub array: String,
    /// The slot.
    pub slot: u16,
    /// The serial number that the array recorded: that of its drive, or how that begins.
    pub serial: String,
    /// Whether the array has excluded it.
    pub failed: bool,
}

/// Where running arrays have drives, and which arrays these are.
#[derive(Clone, Default, Debug)]
pub struct Places {
    /// By path.
    pub by_path: BTreeMap<String, Place>,
    /// The arrays.
    pub arrays: Vec<Uuid>,
}

impl Places {
    /// The place of a drive that an array counts on.
    pub fn in_use(&self, path: &str) -> Option<&Place> {
        self.by_path.get(path).filter(|place| !place.failed)
    }

    /// The place of a drive. One that an array has excluded has a place as long as no other is
    /// known to be at its path.
    pub fn of(&self, known: &Known) -> Option<&Place> {
        let is_own = |place: &&Place| {
            let serial = known.about.as_ref().map(|about| about.serial.as_str());
            !place.failed || serial.is_none_or(|serial| serial.starts_with(&place.serial))
        };
        self.by_path.get(&known.path).filter(is_own)
    }

    /// Whether an array has the drive, so that nobody looks at it: also one that it has excluded,
    /// unless that left its path, or was gone from there when it was last looked at.
    pub fn has(&self, known: &Known) -> bool {
        let is_there = |known: &Known| !known.is_away && known.about.is_some();
        self.of(known).is_some_and(|place| !place.failed || is_there(known))
    }

    /// Whether a request that changes something, or an array, has the drive.
    pub fn is_taken(&self, known: &Known) -> bool {
        known.is_reserved() && !known.is_planned() || self.in_use(&known.path).is_some()
    }
}

/// What a drive is, as it was when last opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Its serial number, or what stands for one.
    pub serial: String,
    /// Its size.
    pub bytes: u64,
    /// Its block.
    pub block_bytes: u32,
}

/// One drive.
pub struct Known {
    /// How people name it: an absolute path.
    pub path: String,
    /// The path without symbolic links, when it was opened.
    canonical: PathBuf,
    /// What the path led to when it was opened.
    identity: Option<Identity>,
    /// What the kernel says of it.
    plate: Option<Nameplate>,
    /// Names it in URIs; `None` before the first look at it.
    id: Option<String>,
    /// Nothing, or another drive, was at its path when that was last looked up.
    is_away: bool,
    /// The kernel said all that is known of it when it was last looked at.
    is_confirmed: bool,
    /// How it was when it was last looked at.
    stamp: Option<Stamp>,
    /// When somebody last asked for it by its path.
    asked: Option<Instant>,
    /// The open drive.
    pub drive: Option<SharedDrive>,
    /// What it is; `None` if it could not be opened.
    pub about: Option<About>,
    /// What is on it, as last looked at.
    pub content: Content,
    /// A request that is under way has it.
    reserved: bool,
    /// It has it to look at it for a plan only.
    planned: bool,
    /// How often a request took it.
    takes: u64,
    /// Alive while it is being erased, also for a request that gave up waiting.
    erasing: Weak<()>,
    /// Alive while it is being looked at.
    looking: Weak<()>,
    /// The look that is under way, or was last, was given up.
    is_silent: bool,
}

impl Known {
    /// The drive as the engine takes it, if it is open.
    pub fn reference(&self) -> Option<DriveRef<SharedDrive>> {
        let shared = self.drive.clone()?;
        let (serial, is_file) = (shared.serial(), shared.is_file());
        Some(DriveRef { shared, path: self.path.clone(), serial, is_file })
    }

    /// Whether a request has it, or has had it erased and that is not over.
    pub fn is_reserved(&self) -> bool {
        self.reserved || self.is_being_erased()
    }

    /// Whether a request has it to look at it for a plan, and for nothing else.
    pub const fn is_planned(&self) -> bool {
        self.reserved && self.planned
    }

    /// Whether a look at it is under way that was not given up.
    fn is_looked_at(&self) -> bool {
        self.looking.strong_count() > 0 && !self.is_silent
    }

    /// Whether it is to be looked at for somebody who asks for its path: for the first time, or as
    /// another drive is there.
    pub fn is_new(&self) -> bool {
        self.id.is_none() || self.is_away
    }

    /// Whether it is the drive that a request means, by the last look at it.
    ///
    /// # Errors
    /// It is another, or nobody knows.
    pub fn is_meant(&self, named: &NamedDrive) -> Result<(), Error> {
        let serial = self.about.as_ref().map_or("", |about| about.serial.as_str());
        let is_other = !named.serial.is_empty() && named.serial != serial;
        if is_other || self.id.as_ref() != Some(&named.id) {
            return Err(failure::another_drive(&self.path));
        }
        if !self.is_confirmed {
            return Err(failure::unsure_drive(&self.path));
        }
        match &named.seen {
            Some(seen) if *seen != self.seen() => Err(failure::changed_drive(&self.path)),
            _ => Ok(()),
        }
    }

    /// Whether a plan shows it.
    pub fn is_among(&self, planned: &[view::PlannedDrive]) -> bool {
        let serial = self.about.as_ref().map_or("", |about| about.serial.as_str());
        // A record may hold only the beginning of a long serial number.
        let is_it = |drive: &view::PlannedDrive| {
            drive.path == self.path && serial.starts_with(&drive.serial)
        };
        planned.iter().any(is_it)
    }

    /// What tells it, and what it holds, from all others, by the last look at it.
    pub fn seen(&self) -> String {
        let Self { path, canonical, id, about, content, .. } = self;
        let record = content.record.as_ref().map(|record| {
            let (array, own) = (record.array, record.this_drive);
            format!("{array} {own} {} {}", record.epoch.counter, record.sequence)
        });
        let Content { signature, problem, ends, .. } = content;
        format!(
            "{path} {canonical:?} {id:?} {about:?} {signature:?} {problem:?} {record:?} {ends:?}"
        )
    }

    /// Whether its path leads elsewhere, by what the kernel says of what is there.
    fn look_up(&mut self, now: Option<&Nameplate>) {
        let is_other = |now| self.plate.as_ref().is_some_and(|known| known.is_other(now));
        self.is_away = now.is_none_or(is_other);
    }

    /// Takes what the kernel says of what is at the path; whether that is another drive.
    fn take_plate(&mut self, plate: Option<Nameplate>, identity: Option<Identity>) -> bool {
        let Some(now) = plate else {
            (self.is_away, self.is_confirmed) = (true, false);
            return false;
        };
        let node = |of: Option<Identity>| of.map(|(dev, ino, rdev, _)| (dev, ino, rdev));
        let is_moved = self.identity.is_some() && node(self.identity) != node(identity);
        // What comes to a path where nothing was is what nobody knew there.
        let is_first = self.plate.is_none() && self.is_away;
        let before = self.plate.take().unwrap_or_else(|| now.clone());
        let is_confirmed = before.is_confirmed_by(&now);
        let is_other = is_first || before.is_other(&now) || is_moved && !is_confirmed;
        (self.is_away, self.is_confirmed) = (false, is_confirmed || is_other);
        self.plate = Some(if is_other { now } else { now.over(before) });
        is_other
    }

    /// Whether something that was asked to be erased still is.
    pub fn is_being_erased(&self) -> bool {
        self.erasing.strong_count() > 0
    }

    /// The number of the block device that is at its path; `None` for a file, and while it is away.
    pub fn device(&self) -> Option<u64> {
        let (_, _, device, _) = self.identity.filter(|_| !self.is_away)?;
        Some(device).filter(|device| *device != 0)
    }

    /// The path without symbolic links, when it was opened.
    pub fn real(&self) -> &Path {
        &self.canonical
    }

    /// Whether it was changed since it was last looked at, by how it is now, or that is not known.
    pub fn is_due(&self, now: Option<&Stamp>) -> bool {
        now.is_none() || self.stamp.as_ref() != now
    }

    /// Names it in URIs, once it was looked at.
    pub fn id(&self) -> Option<&String> {
        self.id.as_ref()
    }

    /// Whether somebody asked for it by its path not long ago.
    pub fn is_asked_for(&self) -> bool {
        self.asked.is_some_and(|at| at.elapsed() < ASKED)
    }

    /// What its id is made from: its WWID, else its serial number, else its path.
    fn base(&self) -> String {
        let plate = self.plate.as_ref();
        let name = plate.and_then(|plate| plate.wwid.as_ref().or(plate.serial.as_ref()));
        nameplate::id(name.unwrap_or(&self.path))
    }

    /// For the interface, once it has an id.
    pub fn described(&self, places: &Places) -> Option<view::KnownDrive> {
        let plate = self.plate.clone().unwrap_or_default();
        Some(view::KnownDrive {
            remote: None,
            id: self.id.clone()?,
            wwid: plate.wwid,
            model: plate.model,
            is_file: plate.is_file,
            hardware: Default::default(),
            drive: describe(self, places),
        })
    }

    /// The array that its record names.
    pub fn recorded(&self) -> Option<Uuid> {
        self.content.record.as_ref().map(|record| record.array)
    }
}

/// All of them, by path.
#[derive(Default)]
pub struct Inventory {
    drives: Vec<Known>,
}

impl Inventory {
    /// The drives.
    pub fn iter(&self) -> impl Iterator<Item = &Known> {
        self.drives.iter()
    }

    /// How long requests took to the drives that are open, by their ids.
    pub fn times(&self) -> Vec<(String, IoTimes)> {
        let times = |known: &Known| Some((known.id.clone()?, known.drive.as_ref()?.io_times()));
        self.drives.iter().filter_map(times).collect()
    }

    /// The paths of the drives whose records name an array.
    pub fn paths_of(&self, array: Uuid) -> BTreeSet<String> {
        let own = self.drives.iter().filter(|known| known.recorded() == Some(array));
        own.map(|known| known.path.clone()).collect()
    }

    /// The drive that is known by this very path. Nothing is looked up.
    pub fn at(&self, path: &str) -> Option<&Known> {
        self.drives.iter().find(|known| known.path == path)
    }

    fn index_of(&self, real: &Path, plain: &Path) -> Option<usize> {
        let named = |known: &Known| known.canonical == real || Path::new(&known.path) == plain;
        self.drives.iter().position(named)
    }

    /// Somebody asks for a known drive by its path.
    pub fn ask_for(&mut self, path: &str) {
        if let Some(known) = self.known(path) {
            known.asked = Some(Instant::now());
        }
    }

    /// Gives drives that were looked at their ids, unless they have one. One that is found at
    /// another path has the id that it had; what was its entry is named by its path.
    pub fn name(&mut self, paths: &[String]) {
        for path in paths {
            let Some(known) = self.at(path).filter(|known| known.id.is_none()) else { continue };
            let base = known.base();
            if base != nameplate::id(path) {
                let moved = |k: &&mut Known| k.is_away && k.id.as_ref() == Some(&base);
                if let Some(moved) = self.drives.iter_mut().find(moved) {
                    (moved.id, moved.plate) = (None, None);
                    let left = moved.path.clone();
                    self.name_one(path);
                    self.name_one(&left);
                    continue;
                }
            }
            self.name_one(path);
        }
    }

    fn name_one(&mut self, path: &str) {
        let Some(known) = self.at(path) else { return };
        let base = known.base();
        let is_taken = |id: &str| self.drives.iter().any(|k| k.id.as_deref() == Some(id));
        let mut id = base.clone();
        for number in 2_u32.. {
            if !is_taken(&id) {
                break;
            }
            id = format!("{base}~{number}");
        }
        if let Some(known) = self.known(path) {
            known.id = Some(id);
        }
    }

    fn known(&mut self, path: &str) -> Option<&mut Known> {
        self.drives.iter_mut().find(|known| known.path == path)
    }

    /// Makes sure that the drive at `path` is known; the path that it is known by.
    #[cfg(test)]
    pub fn add(&mut self, path: &Path) -> String {
        self.add_found(&Found::at(path))
    }

    /// The same of one that was looked up before.
    pub fn add_found(&mut self, found: &Found) -> String {
        if let Some(at) = self.index_of(&found.canonical, &found.plain)
            && let Some(known) = self.drives.get_mut(at)
        {
            known.look_up(found.plate.as_ref());
            return known.path.clone();
        }
        let plain = found.plain.to_string_lossy().into_owned();
        let at = self.drives.partition_point(|known| known.path < plain);
        let known = Known {
            path: plain.clone(),
            canonical: found.canonical.clone(),
            identity: None,
            plate: found.plate.clone(),
            id: None,
            is_away: false,
            is_confirmed: false,
            stamp: None,
            asked: None,
            drive: None,
            about: None,
            content: Content::default(),
            reserved: false,
            planned: false,
            takes: 0,
            erasing: Weak::new(),
            looking: Weak::new(),
            is_silent: false,
        };
        self.drives.insert(at, known);
        plain
    }

    /// Begins a look at a known drive that no array has, to claim it or only to see; `None` while
    /// another goes on, an error if that was given up.
    pub fn begin(&mut self, path: &str, claim: bool) -> Result<Option<Look>, LookError> {
        let silent = || LookError::Silent(PathBuf::from(path));
        let known = self.known(path).ok_or_else(silent)?;
        if known.is_looked_at() {
            return Ok(None);
        }
        if known.looking.strong_count() > 0 {
            return Err(silent());
        }
        let under_way = Arc::new(());
        known.looking = Arc::downgrade(&under_way);
        known.is_silent = false;
        let open = known.drive.clone().map(|drive| (drive, known.identity));
        let (was, takes) = (known.plate.clone(), known.takes);
        Ok(Some(Look { path: PathBuf::from(path), open, was, claim, takes, under_way }))
    }

    /// Whether a look at one of these drives is under way that was not given up.
    pub fn are_looked_at(&self, paths: &[String]) -> bool {
        paths.iter().any(|path| self.at(path).is_some_and(Known::is_looked_at))
    }

    /// Takes what the kernel says of what is at a known path.
    pub fn look_up(&mut self, path: &str, plate: Option<&Nameplate>) {
        if let Some(known) = self.known(path) {
            known.look_up(plate);
        }
    }

    /// Ends a look with what was seen, or with nothing if it was given up. With `hold` the drive
    /// stays open whatever is on it.
    pub fn finish(&mut self, path: &str, seen: Option<Seen>, hold: bool) -> Result<(), LookError> {
        let silent = || LookError::Silent(PathBuf::from(path));
        let known = self.known(path).ok_or_else(silent)?;
        let outcome = match seen {
            None => {
                known.is_silent = true;
                Err(silent())
            }
            // Somebody has taken it meanwhile, and knows better.
            Some(Seen { takes, .. }) if takes != known.takes => return Ok(()),
            Some(Seen { canonical, identity, plate, stamp, outcome, .. }) => {
                if known.take_plate(plate, identity) {
                    known.id = None;
                }
                known.stamp = stamp;
                (known.canonical, known.identity) = (canonical, identity);
                outcome.map_err(LookError::Open)
            }
        };
        // The look has one of its own, if it saw that drive.
        known.drive = None;
        match outcome {
            Ok(Opened { drive, is_claimed, content }) => {
                let info = drive.info();
                let (bytes, block_bytes) = (info.bytes, info.block_bytes);
                known.about = Some(About { serial: drive.serial(), bytes, block_bytes });
                let kept = |drive: &SharedDrive| {
                    is_claimed && (hold || content.record.is_some() || !drive.is_last())
                };
                known.drive = Some(drive).filter(kept);
                known.content = content;
                Ok(())
            }
            Err(error) => {
                known.about = None;
                known.content = Content { problem: Some(error.to_string()), ..Content::default() };
                Err(error)
            }
        }
    }

    /// Closes drives without a record that no request has and of which the engine has no handle;
    /// false if it still has some. A handle in use would make the next opening fail.
    pub fn settle(&mut self, paths: &[String]) -> bool {
        let idle = |k: &Known| !k.is_reserved() && k.content.record.is_none();
        let mut settled = true;
        for known in self.drives.iter_mut().filter(|k| paths.contains(&k.path) && idle(k)) {
            match &known.drive {
                Some(drive) if !drive.is_last() => settled = false,
                _ => known.drive = None,
            }
        }
        settled
    }

    /// Reserves drives for a request, or lets them go.
    pub fn reserve(&mut self, paths: &[String], reserved: bool) {
        for known in &mut self.drives {
            if paths.contains(&known.path) {
                (known.reserved, known.planned) = (reserved, false);
                known.takes += u64::from(reserved);
            }
        }
    }

    /// Reserves drives for a look that a plan is made of.
    pub fn reserve_for_plan(&mut self, paths: &[String]) {
        self.reserve(paths, true);
        for known in self.drives.iter_mut().filter(|known| paths.contains(&known.path)) {
            known.planned = true;
        }
    }

    /// A drive is about to be erased: it is reserved until what this gives has been dropped.
    pub fn begin_erase(&mut self, path: &str) -> Arc<()> {
        let under_way = Arc::new(());
        if let Some(known) = self.known(path) {
            known.erasing = Arc::downgrade(&under_way);
        }
        under_way
    }

    /// Forgets what was on a drive that an array has taken since.
    pub fn forget_content(&mut self, path: &str) {
        if let Some(known) = self.known(path) {
            known.content = Content::default();
        }
    }

    /// Forgets the drives that `keep` does not want.
    pub fn retain(&mut self, keep: impl Fn(&Known) -> bool) {
        self.drives.retain(keep);
    }
}

/// A drive for the interface.
pub fn describe(known: &Known, places: &Places) -> view::Drive {
    let place = places.of(known);
    let stale = known.recorded().is_some_and(|array| places.arrays.contains(&array));
    let state = match &known.content {
        _ if places.is_taken(known) => view::DriveState::InUse,
        _ if place.is_some() || stale => view::DriveState::Failed,
        _ if known.about.is_none() => view::DriveState::Unusable,
        Content { record: Some(_), .. } => view::DriveState::Found,
        Content { signature: Some(_), .. } => view::DriveState::Foreign,
        Content { problem: Some(_), .. } => view::DriveState::Unusable,
        _ => view::DriveState::Free,
    };
    let foreign = state == view::DriveState::Foreign;
    let recorded = known.content.record.as_ref().map(|r| (r.name.clone(), r.this_slot.0));
    let (array, slot) = place.map(|p| (p.array.clone(), p.slot)).or(recorded).unzip();
    let about = known.about.as_ref();
    view::Drive {
        path: known.path.clone(),
        serial: about.map(|about| about.serial.clone()).unwrap_or_default(),
        bytes: about.map_or(0, |about| about.bytes),
        block_bytes: about.map_or(0, |about| about.block_bytes),
        state,
        array,
        slot,
        signature: known.content.signature.clone().filter(|_| foreign),
        problem: known.content.problem.clone(),
    }
}

#[cfg(test)]
#[path = "inventory_tests.rs"]
mod tests;

//! The drives that the daemon knows: those that its configuration names.
//!
//! Purpose: a drive is opened exclusively before anything is read from it (D8). It stays open
//! while it holds a record, a request has it or an array uses it; what is free or foreign is
//! closed again, so that others can use it. States of a drive: unusable (can't be opened, or does
//! not answer; tried again at the next look) → free, foreign or found (by its content) → reserved
//! (a request is about to use it, or what one asked to be erased still is) → in use (a running
//! array's slot counts on it) → looked at anew when let go, or failed (that array excluded it; not
//! looked at unless a request names it). The same drive is never open twice: a handle is given up
//! only when it is the last.
//!
//! Invariants
//! - Looks are taken one batch after the other, and no drive is reserved meanwhile: who calls
//!   [`Inventory::begin`], [`Inventory::finish`] or [`Inventory::reserve`] to reserve has the turn.
//! - What was on a drive before an array took it is forgotten then.

use crate::api;
use crate::look::{Identity, Look, LookError, Seen, absolute, canonical};
use crate::probe::Content;
use drives::SharedDrive;
use engine::manage::command::DriveRef;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use units::Uuid;

/// Where a running array has a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The array's name.
    pub array: String,
    /// The slot.
    pub slot: u16,
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

    /// Whether a request or an array has the drive.
    pub fn is_taken(&self, known: &Known) -> bool {
        known.is_reserved() || self.in_use(&known.path).is_some()
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
    /// The open drive.
    pub drive: Option<SharedDrive>,
    /// What it is; `None` if it could not be opened.
    pub about: Option<About>,
    /// What is on it, as last looked at.
    pub content: Content,
    /// A request that is under way has it.
    reserved: bool,
    /// Alive while it is being erased, also for a request that gave up waiting.
    erasing: Weak<()>,
    /// Alive while it is being looked at.
    looking: Weak<()>,
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
        self.reserved || self.erasing.strong_count() > 0
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

    /// The paths of the drives whose records name an array.
    pub fn paths_of(&self, array: Uuid) -> BTreeSet<String> {
        let own = self.drives.iter().filter(|known| known.recorded() == Some(array));
        own.map(|known| known.path.clone()).collect()
    }

    /// The drive that a path leads to, or once led to.
    pub fn find(&self, path: &str) -> Option<&Known> {
        self.index(Path::new(path)).map(|at| &self.drives[at])
    }

    fn index(&self, path: &Path) -> Option<usize> {
        let (real, plain) = (canonical(path), absolute(path));
        let named = |known: &Known| known.canonical == real || Path::new(&known.path) == plain;
        self.drives.iter().position(named)
    }

    fn known(&mut self, path: &str) -> Option<&mut Known> {
        self.drives.iter_mut().find(|known| known.path == path)
    }

    /// Makes sure that the drive at `path` is known; the path that it is known by.
    pub fn add(&mut self, path: &Path) -> String {
        if let Some(at) = self.index(path) {
            return self.drives[at].path.clone();
        }
        let plain = absolute(path).to_string_lossy().into_owned();
        let at = self.drives.partition_point(|known| known.path < plain);
        let known = Known {
            path: plain.clone(),
            canonical: canonical(path),
            identity: None,
            drive: None,
            about: None,
            content: Content::default(),
            reserved: false,
            erasing: Weak::new(),
            looking: Weak::new(),
        };
        self.drives.insert(at, known);
        plain
    }

    /// Begins a look at a known drive that nobody has; an error if the last one still goes on.
    pub fn begin(&mut self, path: &str) -> Result<Look, LookError> {
        let silent = || LookError::Silent(PathBuf::from(path));
        let known = self.known(path).ok_or_else(silent)?;
        if known.looking.strong_count() > 0 {
            return Err(silent());
        }
        let under_way = Arc::new(());
        known.looking = Arc::downgrade(&under_way);
        let open = known.drive.take().map(|drive| (drive, known.identity));
        Ok(Look { path: PathBuf::from(path), open, under_way })
    }

    /// Ends a look with what was seen, or with nothing if it was given up. With `hold` the drive
    /// stays open whatever is on it.
    pub fn finish(&mut self, path: &str, seen: Option<Seen>, hold: bool) -> Result<(), LookError> {
        let silent = || LookError::Silent(PathBuf::from(path));
        let known = self.known(path).ok_or_else(silent)?;
        let outcome = match seen {
            None => Err(silent()),
            Some(Seen { canonical, identity, outcome, .. }) => {
                (known.canonical, known.identity) = (canonical, identity);
                outcome.map_err(LookError::Open)
            }
        };
        match outcome {
            Ok((drive, content)) => {
                let info = drive.info();
                let (bytes, block_bytes) = (info.bytes, info.block_bytes);
                known.about = Some(About { serial: drive.serial(), bytes, block_bytes });
                let kept =
                    |drive: &SharedDrive| hold || content.record.is_some() || !drive.is_last();
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
                known.reserved = reserved;
            }
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
pub fn describe(known: &Known, places: &Places) -> api::Drive {
    let place = places.by_path.get(&known.path);
    let stale = known.recorded().is_some_and(|array| places.arrays.contains(&array));
    let state = match &known.content {
        _ if places.is_taken(known) => api::DriveState::InUse,
        _ if place.is_some() || stale => api::DriveState::Failed,
        _ if known.about.is_none() => api::DriveState::Unusable,
        Content { record: Some(_), .. } => api::DriveState::Found,
        Content { signature: Some(_), .. } => api::DriveState::Foreign,
        Content { problem: Some(_), .. } => api::DriveState::Unusable,
        _ => api::DriveState::Free,
    };
    let foreign = state == api::DriveState::Foreign;
    let recorded = known.content.record.as_ref().map(|r| (r.name.clone(), r.this_slot.0));
    let (array, slot) = place.map(|p| (p.array.clone(), p.slot)).or(recorded).unzip();
    let about = known.about.as_ref();
    api::Drive {
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
mod tests {
    use super::*;

    fn file(dir: &Path, name: &str, bytes: u64) -> PathBuf {
        let path = dir.join(name);
        let file = std::fs::File::create(&path).expect("created");
        file.set_len(bytes).expect("sized");
        path
    }

    fn look(inventory: &mut Inventory, path: &Path, hold: bool) -> Result<String, LookError> {
        let path = inventory.add(path);
        let seen = inventory.begin(&path)?.look();
        inventory.finish(&path, Some(seen), hold).map(|()| path)
    }

    #[test]
    fn a_drive_has_one_entry_whatever_it_is_called() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = file(dir.path(), "a", 4 << 20);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        let mut inventory = Inventory::default();
        look(&mut inventory, &path, true).expect("opens");
        let known = look(&mut inventory, &link, true).expect("is the same");
        assert_eq!(Path::new(&known), path);
        assert_eq!(inventory.iter().count(), 1);
    }

    #[test]
    fn another_file_at_the_same_path_is_opened_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = file(dir.path(), "a", 4 << 20);
        let mut inventory = Inventory::default();
        look(&mut inventory, &path, true).expect("opens");
        let held = inventory.iter().next().and_then(Known::reference).expect("is open");
        std::fs::rename(&path, dir.path().join("old")).expect("moved");
        file(dir.path(), "a", 8 << 20);
        look(&mut inventory, &path, true).expect("opens again");
        let known = inventory.iter().next().expect("is known");
        assert_eq!(known.drive.as_ref().map(|d| d.info().bytes), Some(8 << 20));
        assert_eq!(held.shared.info().bytes, 4 << 20);
    }

    #[test]
    fn what_can_not_be_opened_is_listed_with_its_problem() {
        let mut inventory = Inventory::default();
        assert!(look(&mut inventory, Path::new("/no/such/drive"), false).is_err());
        let listed = describe(inventory.iter().next().expect("is known"), &Places::default());
        assert_eq!(listed.state, api::DriveState::Unusable);
        assert!(listed.problem.expect("why").contains("/no/such/drive"));
    }

    #[test]
    fn a_free_drive_is_open_only_while_it_is_held() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = file(dir.path(), "a", 4 << 20);
        let mut inventory = Inventory::default();
        let name = look(&mut inventory, &path, false).expect("opens");
        let listed = describe(inventory.iter().next().expect("is known"), &Places::default());
        assert_eq!((listed.state, listed.bytes), (api::DriveState::Free, 4 << 20));
        let claim = || SharedDrive::open(&path, &drives::OpenOptions::default());
        assert!(claim().is_ok(), "it was closed");
        look(&mut inventory, &path, true).expect("opens");
        assert!(claim().is_err(), "it is held");
        inventory.reserve(std::slice::from_ref(&name), true);
        inventory.settle(std::slice::from_ref(&name));
        assert!(claim().is_err(), "it is reserved");
        inventory.reserve(std::slice::from_ref(&name), false);
        inventory.settle(&[name]);
        assert!(claim().is_ok(), "it was let go");
    }

    #[test]
    fn a_drive_is_reserved_as_long_as_it_is_being_erased() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut inventory = Inventory::default();
        let path = [inventory.add(&file(dir.path(), "a", 4 << 20))];
        inventory.reserve(&path, true);
        let under_way = inventory.begin_erase(&path[0]);
        // The request has waited long enough.
        inventory.reserve(&path, false);
        let known = inventory.find(&path[0]).expect("is known");
        assert!(known.is_reserved() && Places::default().is_taken(known));
        drop(under_way);
        assert!(!inventory.find(&path[0]).expect("is known").is_reserved());
    }

    #[test]
    fn a_drive_is_not_looked_at_twice_at_the_same_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut inventory = Inventory::default();
        let path = inventory.add(&file(dir.path(), "a", 4 << 20));
        let first = inventory.begin(&path).expect("begins");
        let given_up = inventory.finish(&path, None, false);
        assert!(matches!(given_up, Err(LookError::Silent(_))));
        assert!(matches!(inventory.begin(&path), Err(LookError::Silent(_))));
        let listed = describe(inventory.iter().next().expect("is known"), &Places::default());
        assert_eq!(listed.state, api::DriveState::Unusable);
        drop(first.look());
        assert!(inventory.begin(&path).is_ok());
    }
}

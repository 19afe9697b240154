//! The drives that the daemon knows: those of its configuration, and those that were named since.
//!
//! Purpose: a drive is opened once, exclusively, before anything is read from it (D8), and stays
//! open while its path leads to it. States of a drive: unusable (can't be opened; tried again at
//! the next look) → free, foreign or found (by its content) → reserved (a request is about to use
//! it) → in use (a running array's slot counts on it) → looked at anew when let go.

use crate::api;
use crate::probe::{self, Content};
use drives::{OpenError, OpenOptions, SharedDrive};
use engine::manage::command::DriveRef;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One drive.
pub struct Known {
    /// How people name it: an absolute path.
    pub path: String,
    /// The path without symbolic links, when it was opened.
    canonical: PathBuf,
    /// File system and number of what the path led to, and its size.
    identity: Option<(u64, u64, u64)>,
    /// The open drive.
    pub drive: Option<SharedDrive>,
    /// What is on it, as last looked at.
    pub content: Content,
    /// A request that is under way has it.
    pub reserved: bool,
}

impl Known {
    /// The drive as the engine takes it.
    pub fn reference(&self) -> Option<DriveRef<SharedDrive>> {
        let shared = self.drive.clone()?;
        let (serial, is_file) = (shared.serial(), shared.is_file());
        Some(DriveRef { shared, path: self.path.clone(), serial, is_file })
    }

    /// Whether the path still leads to what was opened, with the same size.
    fn is_current(&self) -> bool {
        self.drive.is_some() && identity(&self.canonical) == self.identity
    }
}

/// All of them, by path.
#[derive(Default)]
pub struct Inventory {
    drives: Vec<Known>,
}

fn identity(path: &Path) -> Option<(u64, u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.len()))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| absolute(path))
}

impl Inventory {
    /// The drives.
    pub fn iter(&self) -> impl Iterator<Item = &Known> {
        self.drives.iter()
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

    /// Makes sure that the drive at `path` is known and open, and looks at it. A drive that a
    /// running array uses (`used`) is left as it is.
    pub fn open(&mut self, path: &Path, used: bool) -> Result<&mut Known, OpenError> {
        let at = self.index(path).unwrap_or_else(|| self.add(path));
        if used || self.drives[at].reserved {
            return Ok(&mut self.drives[at]);
        }
        if !self.drives[at].is_current() {
            self.drives[at].drive = None;
            self.drives[at].canonical = canonical(path);
            self.drives[at].identity = identity(path);
            match SharedDrive::open(path, &OpenOptions::default()) {
                Ok(drive) => self.drives[at].drive = Some(drive),
                Err(error) => {
                    let problem = Some(error.to_string());
                    self.drives[at].content = Content { problem, ..Content::default() };
                    return Err(error);
                }
            }
        }
        let known = &mut self.drives[at];
        if let Some(drive) = &known.drive {
            known.content = probe::content(drive);
        }
        Ok(known)
    }

    fn add(&mut self, path: &Path) -> usize {
        let plain = absolute(path).to_string_lossy().into_owned();
        let at = self.drives.partition_point(|known| known.path < plain);
        let known = Known {
            path: plain,
            canonical: canonical(path),
            identity: None,
            drive: None,
            content: Content::default(),
            reserved: false,
        };
        self.drives.insert(at, known);
        at
    }

    /// Reserves drives for a request, or lets them go.
    pub fn reserve(&mut self, paths: &[String], reserved: bool) {
        for known in &mut self.drives {
            if paths.contains(&known.path) {
                known.reserved = reserved;
            }
        }
    }

    /// Looks anew at the drives that `free` says nobody uses.
    pub fn look_again(&mut self, free: impl Fn(&str) -> bool) {
        let idle = |known: &&Known| !known.reserved && free(&known.path);
        let paths: Vec<String> = self.drives.iter().filter(idle).map(|k| k.path.clone()).collect();
        for path in paths {
            // What can't be opened is remembered with its problem.
            let _ = self.open(Path::new(&path), false);
        }
    }
}

/// A drive for the interface; `place` is array and slot of one in use.
pub fn describe(known: &Known, place: Option<(String, u16)>) -> api::Drive {
    let recorded = known.content.record.as_ref().map(|r| (r.name.clone(), r.this_slot.0));
    let state = match (&known.drive, &known.content) {
        _ if place.is_some() || known.reserved => api::DriveState::InUse,
        (None, _) => api::DriveState::Unusable,
        (_, Content { record: Some(_), .. }) => api::DriveState::Found,
        (_, Content { signature: Some(_), .. }) => api::DriveState::Foreign,
        (_, Content { problem: Some(_), .. }) => api::DriveState::Unusable,
        _ => api::DriveState::Free,
    };
    let foreign = state == api::DriveState::Foreign;
    let (array, slot) = place.or(recorded).unzip();
    let info = known.drive.as_ref().map(SharedDrive::info);
    api::Drive {
        path: known.path.clone(),
        serial: known.drive.as_ref().map(SharedDrive::serial).unwrap_or_default(),
        bytes: info.map_or(0, |info| info.bytes),
        block_bytes: info.map_or(0, |info| info.block_bytes),
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

    #[test]
    fn a_drive_has_one_entry_whatever_it_is_called() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = file(dir.path(), "a", 4 << 20);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("linked");
        let mut inventory = Inventory::default();
        inventory.open(&path, false).expect("opens");
        let known = inventory.open(&link, false).expect("is the same");
        assert_eq!(Path::new(&known.path), path);
        assert_eq!(inventory.iter().count(), 1);
    }

    #[test]
    fn another_file_at_the_same_path_is_opened_anew() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = file(dir.path(), "a", 4 << 20);
        let mut inventory = Inventory::default();
        inventory.open(&path, false).expect("opens");
        let held = inventory.iter().next().and_then(Known::reference).expect("is open");
        std::fs::rename(&path, dir.path().join("old")).expect("moved");
        file(dir.path(), "a", 8 << 20);
        let known = inventory.open(&path, false).expect("opens again");
        assert_eq!(known.drive.as_ref().map(|d| d.info().bytes), Some(8 << 20));
        assert_eq!(held.shared.info().bytes, 4 << 20);
    }

    #[test]
    fn what_can_not_be_opened_is_listed_with_its_problem() {
        let mut inventory = Inventory::default();
        assert!(inventory.open(Path::new("/no/such/drive"), false).is_err());
        let listed = describe(inventory.iter().next().expect("is known"), None);
        assert_eq!(listed.state, api::DriveState::Unusable);
        assert!(listed.problem.expect("why").contains("/no/such/drive"));
    }
}

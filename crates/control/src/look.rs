//! Looking at drives: opening one and reading what is on it may take for ever, so it is done on a
//! thread of its own and within a time.
//!
//! States of a look: begun (by [`crate::inventory::Inventory::begin`]) → seen, or given up when
//! its time is over. A look that was given up goes on, its result is dropped, and its drive is not
//! looked at again before it ended.
//!
//! A look without a claim opens the drive read-only and keeps nobody from it: other programs never
//! meet a drive that is busy for it, and the kernel has nothing to tell of its end. What another
//! program has is not opened. A drive that holds a record is claimed, and then read again: what is
//! believed of it was read under the claim (D8).
//!
//! Invariants
//! - Nothing here runs on the control plane's own thread but waiting.
//! - What holds no record is claimed for a request only.

use crate::nameplate::{self, Nameplate, Stamp};
use crate::probe::{self, Content};
use crate::usage;
use drives::remote::is_remote;
use drives::sysfs::ROOT as SYSFS;
use drives::{OpenError, OpenOptions, SharedDrive};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a drive may take to be opened and read.
pub const LOOK: Duration = Duration::from_secs(10);

/// How long the records of a drive may take to be erased.
pub const ERASE: Duration = Duration::from_secs(30);

/// File system and number of what a path leads to, its device, and its size.
pub type Identity = (u64, u64, u64, u64);

/// Opens a drive behind a fabric, and says what is known of it.
pub type OpenRemote = dyn Fn(&Path) -> (Result<SharedDrive, OpenError>, Option<Nameplate>);

/// Why a drive could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// It can't be opened alone.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It does not answer.
    #[error("{} did not answer within {} s", .0.display(), LOOK.as_secs())]
    Silent(PathBuf),
}

/// What is to be looked at.
pub struct Look {
    /// Where.
    pub path: PathBuf,
    /// The drive as it was opened before, if it was, and what it was then.
    pub open: Option<(SharedDrive, Option<Identity>)>,
    /// What the kernel said of the drive before.
    pub was: Option<Nameplate>,
    /// Whether the drive is claimed whatever is on it.
    pub claim: bool,
    /// How often the drive had been taken when the look began.
    pub takes: u64,
    /// Alive until the look has ended.
    pub under_way: Arc<()>,
}

/// What was seen.
pub struct Seen {
    /// The path without symbolic links.
    pub canonical: PathBuf,
    /// What the path leads to.
    pub identity: Option<Identity>,
    /// What the kernel says of it.
    pub plate: Option<Nameplate>,
    /// How it was before anything was read.
    pub stamp: Option<Stamp>,
    /// How often the drive had been taken when the look began.
    pub takes: u64,
    /// The open drive, and what is on it.
    pub outcome: Result<Opened, OpenError>,
    /// Dropped behind the drive: the look has ended when nobody has its result any more.
    pub _under_way: Arc<()>,
}

/// A drive that could be opened.
pub struct Opened {
    /// It.
    pub drive: SharedDrive,
    /// Whether it is claimed. Else it was opened to be read.
    pub is_claimed: bool,
    /// What is on it.
    pub content: Content,
}

impl Opened {
    fn read(drive: SharedDrive, is_claimed: bool) -> Self {
        let content = probe::content(&drive);
        Self { drive, is_claimed, content }
    }

    /// Claims a drive, and reads what is on it.
    fn claimed(path: &Path) -> Result<Self, OpenError> {
        SharedDrive::open(path, &OpenOptions::default()).map(|drive| Self::read(drive, true))
    }

    /// Reads what is on a drive that nobody has.
    fn seen(path: &Path) -> Result<Self, OpenError> {
        if usage::is_used(path) {
            return Err(OpenError::InUse { path: path.to_owned() });
        }
        let options = OpenOptions { read_only: true, exclusive: false, ..OpenOptions::default() };
        let seen = Self::read(SharedDrive::open(path, &options)?, false);
        if seen.content.record.is_none() {
            return Ok(seen);
        }
        drop(seen);
        Self::claimed(path)
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.rdev(), found.len()))
}

/// A path that counts from the root.
pub fn absolute(path: &Path) -> PathBuf {
    if is_remote(path) {
        return path.to_owned();
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A path without symbolic links, if it leads anywhere.
pub fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| absolute(path))
}

/// There is nothing behind any fabric.
#[cfg(test)]
pub fn nothing_behind(path: &Path) -> (Result<SharedDrive, OpenError>, Option<Nameplate>) {
    (Err(OpenError::NotADrive { path: path.to_owned() }), None)
}

impl Look {
    /// Looks at a drive behind a fabric. It is nobody's but by what is written on it.
    fn look_behind(self, open: &OpenRemote) -> Seen {
        let (found, plate) = open(&self.path);
        // The same as before, if it is open.
        let outcome = found.map(|drive| {
            let opened = Opened::read(drive, true);
            let is_claimed = self.claim || opened.content.record.is_some();
            Opened { is_claimed, ..opened }
        });
        let (canonical, takes, _under_way) = (self.path, self.takes, self.under_way);
        let (identity, stamp) = (None, None);
        Seen { canonical, identity, plate, stamp, takes, outcome, _under_way }
    }

    /// Looks, in the calling thread. A drive that is open stays so while its path leads to it; one
    /// behind a fabric is opened by `open`.
    pub fn look(self, open: &OpenRemote) -> Seen {
        if is_remote(&self.path) {
            return self.look_behind(open);
        }
        let (canonical, now) = (canonical(&self.path), identity(&self.path));
        let sysfs = Path::new(SYSFS);
        let (plate, stamp) =
            (nameplate::of(sysfs, &self.path), nameplate::stamp(sysfs, &self.path));
        let is_other = |plate: &Nameplate| self.was.as_ref().is_some_and(|was| was.is_other(plate));
        let is_same = |then| now.is_some() && now == then && !plate.as_ref().is_some_and(is_other);
        let outcome = match self.open.filter(|(_, then)| is_same(*then)) {
            Some((drive, _)) => Ok(Opened::read(drive, true)),
            None if self.claim => Opened::claimed(&self.path),
            None => Opened::seen(&self.path),
        };
        let (identity, takes, _under_way) = (now, self.takes, self.under_way);
        Seen { canonical, identity, plate, stamp, takes, outcome, _under_way }
    }
}

/// Runs pieces of work on threads of their own, all at once; `None` for those that take longer
/// than `limit`, which go on unobserved.
pub async fn within<T: Send + 'static>(
    limit: Duration,
    work: Vec<impl FnOnce() -> T + Send + 'static>,
) -> Vec<Option<T>> {
    let end = Instant::now() + limit;
    let tasks: Vec<_> = work.into_iter().map(tokio::task::spawn_blocking).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        let result = tokio::time::timeout_at(end, task).await;
        results.push(result.ok().and_then(Result::ok));
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn look(path: &Path, claim: bool) -> Seen {
        let (path, under_way) = (path.to_owned(), Arc::default());
        Look { path, open: None, was: None, claim, takes: 0, under_way }.look(&nothing_behind)
    }

    #[test]
    fn a_look_keeps_nobody_from_a_drive_and_can_write_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a");
        std::fs::File::create(&path).expect("created").set_len(4 << 20).expect("sized");
        let seen = look(&path, false).outcome.expect("is seen");
        let claim = SharedDrive::open(&path, &OpenOptions::default()).expect("is free to others");
        assert!(!seen.is_claimed && seen.content.problem.is_none());
        let block = io::Pool::single(4096).freeze();
        assert!(seen.drive.write_blocking(0, &[block]).is_err());
        // What another has is not opened.
        let taken = look(&path, false).outcome.err().expect("is in use");
        assert!(matches!(taken, OpenError::InUse { .. }), "{taken}");
        drop(claim);
        assert!(look(&path, true).outcome.expect("is claimed").is_claimed);
    }

    #[test]
    fn work_that_never_ends_is_given_up_and_keeps_nothing_from_its_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (release, wait) = mpsc::channel::<()>();
        let work: Vec<Box<dyn FnOnce() -> u32 + Send>> = vec![
            Box::new(|| 1),
            Box::new(move || {
                // Ends when the sender is gone.
                let _ = wait.recv();
                2
            }),
            Box::new(|| 3),
        ];
        let results = runtime.block_on(within(Duration::from_millis(200), work));
        assert_eq!((results[1], results.len()), (None, 3));
        assert!(results[0].is_some_and(|r| r == 1) && results[2].is_some_and(|r| r == 3));
        drop(release);
    }
}

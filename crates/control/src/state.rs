//! The state directory: what the daemon keeps that is not on the drives (accounts, sessions,
//! certificate, audit log).
//!
//! Every call waits for the file system: callers are threads of their own, not the control plane's.
//!
//! Invariants
//! - The directory is its owner's alone (0700), and so are its files (0600). One that has entries
//!   of others is left as it is: it is somebody else's.
//! - One daemon has it: it is locked until [`State`] is dropped, or its process ends.
//! - A file is the old one or the new one, also after a loss of power: never a part of it.

use redfish::messages as say;
use redfish::view::Error;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file whose lock says that a daemon has the directory.
const LOCK: &str = "lock";

/// The file of accounts and sessions.
pub const ACCOUNTS: &str = "accounts.json";

/// The certificate of HTTPS and its key.
pub const CERTIFICATE: &str = "https.pem";

/// The key of a certificate that was asked for.
pub const REQUESTED: &str = "https-requested.pem";

/// The file of events.
pub const EVENTS: &str = "events.jsonl";

/// The file of subscriptions to events.
pub const SUBSCRIPTIONS: &str = "subscriptions.json";

/// The file of what is remembered of drives' health.
pub const HEALTH: &str = "health.json";

/// The file of the past.
pub const HISTORY: &str = "history.bin";

/// The file of the past that could not be used.
pub const HISTORY_ASIDE: &str = "history-aside.bin";

/// The file of alerts.
pub const ALERTS: &str = "alerts.json";

/// The file of alerts that could not be used.
pub const ALERTS_ASIDE: &str = "alerts-aside.json";

/// The file that says how mail is sent, with the password.
pub const MAIL: &str = "mail.json";

/// The file of CHAP secrets.
pub const CHAP: &str = "chap.json";

/// The daemon's files, beside those of the audit log. Each may be there twice, as one is being
/// written.
const FILES: [&str; 13] = [
    LOCK,
    ACCOUNTS,
    CERTIFICATE,
    REQUESTED,
    EVENTS,
    SUBSCRIPTIONS,
    HISTORY,
    HISTORY_ASIDE,
    HEALTH,
    ALERTS,
    ALERTS_ASIDE,
    MAIL,
    CHAP,
];

/// What the name of a file that is being written ends with.
const NEW: &str = ".new";

/// The largest file that is read.
const MOST_BYTES: u64 = 16 << 20;

/// What a unit's `StateDirectory=` becomes (systemd.exec(5)): paths with colons between.
pub const VARIABLE: &str = "STATE_DIRECTORY";

/// The directory, open and locked.
#[derive(Debug)]
pub struct State {
    dir: PathBuf,
    /// Locked while it is open.
    _lock: File,
    /// What is replaced can't be made durable.
    #[cfg(test)]
    pub(crate) is_volatile: std::sync::atomic::AtomicBool,
}

/// Where the directory is: where the configuration says, else where the unit does.
pub fn place(configured: Option<&Path>, variable: Option<&OsStr>) -> Option<PathBuf> {
    let first = |text: &OsStr| {
        let first = text.as_bytes().split(|byte| *byte == b':').next().unwrap_or_default();
        (!first.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(first)))
    };
    configured.map(Path::to_owned).or_else(|| variable.and_then(first))
}

impl State {
    /// Opens the directory, and makes it where there is none.
    ///
    /// # Errors
    /// It can't be made or opened, somebody else may write it, or another daemon has it.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let shown = dir.display();
        let failed = |error: io::Error| Error::new(&say::STATE_FAILED, &[&shown, &error]);
        make(dir).map_err(failed)?;
        let found = std::fs::metadata(dir).map_err(failed)?;
        check(dir, &found)?;
        if is_open(&found) {
            std::fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let lock = own(OpenOptions::new().write(true).create(true)).open(dir.join(LOCK));
        let lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                dir: dir.to_owned(),
                _lock: lock,
                #[cfg(test)]
                is_volatile: Default::default(),
            }),
            Err(TryLockError::WouldBlock) => Err(Error::new(&say::STATE_TAKEN, &[&shown])),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What a file holds; none if there is none.
    ///
    /// # Errors
    /// It can't be read, or is larger than any that the daemon writes.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.dir.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::new(ErrorKind::FileTooLarge, format!("{name} is too large")));
        }
        Ok(Some(bytes))
    }

    /// Puts a file with these contents in the place of the one that is there, at one stroke.
    ///
    /// # Errors
    /// It can't be written. The old one is there as before, or the new one, which may then be lost
    /// with the machine's power.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.replace_by(name, |file| file.write_all(bytes))
    }

    /// The same, with what is written piece by piece.
    ///
    /// # Errors
    /// As above.
    pub fn replace_by(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let new = self.dir.join(format!("{name}{NEW}"));
        let written = || {
            let mut options = OpenOptions::new();
            let mut file = own(options.write(true).create(true).truncate(true)).open(&new)?;
            write(&mut file)?;
            file.sync_all()?;
            std::fs::rename(&new, self.dir.join(name))
        };
        written().inspect_err(|_| {
            // Where there is no room, what is of no use takes none.
            let _ = std::fs::remove_file(&new);
        })?;
        #[cfg(test)]
        if self.is_volatile.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(ErrorKind::Other.into());
        }
        sync(&self.dir)
    }

    /// Gives a file another name, in the place of what has that.
    ///
    /// # Errors
    /// It can't be renamed.
    pub fn rename(&self, name: &str, other: &str) -> io::Result<()> {
        std::fs::rename(self.dir.join(name), self.dir.join(other))?;
        sync(&self.dir)
    }

    /// Removes a file, if there is one.
    ///
    /// # Errors
    /// It can't be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_file(self.dir.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            outcome => outcome.and_then(|()| sync(&self.dir)),
        }
    }
}

/// Options for a file that is its owner's alone.
pub fn own(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Makes durable which files a directory has.
///
/// # Errors
/// The directory can't be opened or written.
pub fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Why a directory that is there can't be the state directory; none if it can, or is not there yet.
pub fn problem(dir: &Path) -> Option<String> {
    let found = std::fs::metadata(dir).ok()?;
    match found.is_dir() {
        true => check(dir, &found).err().map(|error| error.error),
        false => Some(format!("{} is no directory", dir.display())),
    }
}

/// Makes the directory, if there is none. What is above it is everybody's to read.
fn make(dir: &Path) -> io::Result<()> {
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        outcome => outcome,
    }
}

/// Whether others may do anything with a directory.
fn is_open(found: &std::fs::Metadata) -> bool {
    found.mode() & 0o077 != 0
}

/// The number of the first line of a file of the audit log, by its name; none if it is another
/// file.
pub fn first_line(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("audit-")?.strip_suffix(".log")?;
    digits.parse().ok().filter(|_| digits.len() == 20)
}

/// An entry of a directory that is none of the daemon's files.
fn foreign(dir: &Path) -> io::Result<Option<PathBuf>> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_own = name.to_str().is_some_and(|name| {
            FILES.contains(&name.strip_suffix(NEW).unwrap_or(name)) || first_line(name).is_some()
        });
        if !is_own || !entry.file_type()?.is_file() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Refuses a directory that somebody else may write: what is there decides who may do what. One
/// that others may read is closed to them, and so has to be the daemon's own.
fn check(dir: &Path, found: &std::fs::Metadata) -> Result<(), Error> {
    let shown = dir.display();
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        return Err(Error::new(&say::STATE_OWNED, &[&shown, &found.uid(), &user]));
    }
    if found.mode() & 0o022 != 0 {
        return Err(Error::new(&say::STATE_LOOSE, &[&shown]));
    }
    if !is_open(found) {
        return Ok(());
    }
    match foreign(dir) {
        Ok(None) => Ok(()),
        Ok(Some(other)) => Err(Error::new(&say::STATE_FOREIGN, &[&shown, &other.display()])),
        Err(error) => Err(Error::new(&say::STATE_FAILED, &[&shown, &error])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("there").mode() & 0o777
    }

    #[test]
    fn the_configuration_says_where_before_the_unit_does() {
        let place = |configured: Option<&str>, variable: Option<&str>| {
            super::place(configured.map(Path::new), variable.map(OsStr::new))
        };
        assert_eq!(place(Some("/a"), Some("/b:/c")), Some("/a".into()));
        assert_eq!(place(None, Some("/b:/c")), Some("/b".into()));
        assert_eq!(place(None, Some("/b")), Some("/b".into()));
        assert_eq!(place(None, Some("")), None);
        assert_eq!(place(None, None), None);
    }

    #[test]
    fn files_are_their_owners_alone_and_replaced() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path().join("a/b");
        let state = State::open(&dir).expect("opened");
        assert_eq!(state.read("x").expect("read"), None);
        state.replace("x", b"one").expect("written");
        state.replace("x", b"2").expect("written");
        assert_eq!(state.read("x").expect("read").as_deref(), Some(&b"2"[..]));
        assert_eq!((mode(&dir), mode(&dir.join("x"))), (0o700, 0o600));
        // A directory in its place keeps the file from being replaced.
        std::fs::create_dir(dir.join("x.new")).expect("made");
        assert!(state.replace("x", b"3").is_err());
        assert_eq!(state.read("x").expect("read").as_deref(), Some(&b"2"[..]));
        state.remove("x").expect("removed");
        state.remove("x").expect("nothing to remove");
        assert_eq!(state.read("x").expect("read"), None);
    }

    #[test]
    fn one_daemon_has_it() {
        let place = tempfile::tempdir().expect("a directory");
        let state = State::open(place.path()).expect("opened");
        let error = State::open(place.path()).expect_err("taken");
        assert!(error.is(&say::STATE_TAKEN), "{error:?}");
        drop(state);
        State::open(place.path()).expect("free again");
    }

    #[test]
    fn what_is_no_directory_of_the_daemons_user_is_not_used() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("file");
        std::fs::write(&file, "").expect("written");
        assert!(State::open(&file).expect_err("no directory").is(&say::STATE_FAILED));
        assert!(problem(&file).is_some_and(|problem| problem.ends_with("is no directory")));
        let others = match rustix::process::geteuid().is_root() {
            true => place.path(),
            false => Path::new("/"),
        };
        if others == place.path() {
            std::os::unix::fs::chown(others, Some(1), None).expect("given away");
        }
        assert!(State::open(others).expect_err("another's").is(&say::STATE_OWNED));
    }

    #[test]
    fn what_others_may_write_is_refused_and_what_they_may_read_closed() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path();
        let allow = |mode| std::fs::set_permissions(dir, Permissions::from_mode(mode));
        for loose in [0o770, 0o702, 0o777] {
            allow(loose).expect("set");
            assert!(State::open(dir).expect_err("refused").is(&say::STATE_LOOSE));
            assert_eq!(mode(dir), loose, "left as it is");
        }
        assert!(problem(dir).is_some_and(|problem| problem.contains("others may write")));
        assert_eq!(problem(&dir.join("none")), None);
        allow(0o755).expect("set");
        State::open(dir).expect("opened");
        assert_eq!(mode(dir), 0o700);
    }

    #[test]
    fn a_directory_of_others_keeps_its_mode() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = place.path().join("lib");
        std::fs::create_dir(&dir).expect("made");
        std::fs::set_permissions(&dir, Permissions::from_mode(0o755)).expect("set");
        let other = dir.join("dpkg");
        std::fs::create_dir(&other).expect("made");
        let told = State::open(&dir).expect_err("refused");
        assert_eq!(told, Error::new(&say::STATE_FOREIGN, &[&dir.display(), &other.display()]));
        assert_eq!(problem(&dir), Some(told.error));
        assert!(!dir.join(LOCK).exists());
        // An entry that is named as one of the daemon's files is not one.
        std::fs::rename(&other, dir.join(LOCK)).expect("renamed");
        assert!(State::open(&dir).expect_err("refused").is(&say::STATE_FOREIGN));
        assert_eq!(mode(&dir), 0o755, "left as it is");
        // What the daemon wrote there is its own.
        std::fs::remove_dir(dir.join(LOCK)).expect("removed");
        let log = "audit-00000000000000000001.log";
        for name in [LOCK, log, ACCOUNTS, CERTIFICATE, REQUESTED, "accounts.json.new"] {
            std::fs::write(dir.join(name), "").expect("written");
        }
        State::open(&dir).expect("opened");
        assert_eq!(mode(&dir), 0o700);
    }

    #[test]
    fn what_is_above_a_new_directory_is_not_closed() {
        let place = tempfile::tempdir().expect("a directory");
        let made = |name: &str, mode: u32| {
            let dir = place.path().join(name);
            DirBuilder::new().mode(mode).create(&dir).expect("made");
            self::mode(&dir)
        };
        let (open, closed) = (made("open", 0o755), made("closed", 0o700));
        let dir = place.path().join("a/b");
        drop(State::open(&dir).expect("opened"));
        assert_eq!((mode(&place.path().join("a")), mode(&dir)), (open, closed));
    }
}

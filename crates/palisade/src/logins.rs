//! Where the command line is logged in: a file of the user's, with URLs, fingerprints and tokens.
//!
//! `$XDG_STATE_HOME/palisade/logins.json`, else `~/.local/state/palisade/logins.json`.
//!
//! Invariants
//! - The directory is the user's alone (0700), and so is the file (0600), which is replaced at one
//!   stroke. What others could have read or written is not used, nor is anything but a file.
//! - Two commands at once do not forget each other's logins: the directory is locked.
//! - A login that ended keeps the daemon's key: the next one is to the same daemon, or says so. A
//!   file that can't be read is not replaced without a word: it is moved aside.

use crate::output::Problem;
use crate::remote::Url;
use core::fmt::Display;
use redfish::messages as say;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file.
const FILE: &str = "logins.json";

/// It, while it is written.
const NEW: &str = "logins.json.new";

/// One that can't be used.
const OLD: &str = "logins.json.damaged";

/// It is never larger.
const MOST_BYTES: u64 = 1 << 20;

/// Somewhere the command line is logged in, or was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Login {
    /// Where.
    pub url: String,
    /// The SHA-256 of the daemon's certificate, as it was then.
    pub fingerprint: String,
    /// The SHA-256 of its public key, by which the daemon is known.
    pub key: String,
    /// The account.
    pub user: String,
    /// The session, which is there while it lasts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<Session>,
}

/// A session.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its URI.
    pub uri: String,
    /// What opens it.
    pub token: String,
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").field("uri", &self.uri).finish_non_exhaustive()
    }
}

/// What the file holds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Kept {
    logins: Vec<Login>,
}

/// The logins of a user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logins {
    dir: PathBuf,
}

fn failed(path: &Path, why: &dyn Display) -> Problem {
    Problem::new(&say::LOGINS_FAILED, &[&path.display(), why])
}

/// Root may have the home of whom it was before.
const OTHERS: &str = "it is another user's";

fn is_others(found: &Metadata) -> bool {
    found.uid() != geteuid().as_raw()
}

/// Why a file is not used.
fn unfit(file: &Metadata) -> Option<&'static str> {
    if !file.is_file() {
        return Some("it is no file");
    }
    if is_others(file) {
        return Some(OTHERS);
    }
    (file.mode() & 0o077 != 0).then_some("others may read or write it")
}

impl Logins {
    /// Those of who runs this.
    pub fn own() -> Result<Self, Problem> {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        // A relative path counts for nothing (XDG Base Directory Specification).
        let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
        let home = || variable("HOME").map(|home| home.join(".local/state"));
        let state = state.or_else(home).filter(|path| path.is_absolute());
        let none = || failed(Path::new("$HOME"), &"there is no home directory");
        Ok(Self { dir: state.ok_or_else(none)?.join("palisade") })
    }

    /// All of them.
    pub fn all(&self) -> Result<Vec<Login>, Problem> {
        let path = self.dir.join(FILE);
        let mut bytes = Vec::new();
        // What stands in its place may be a pipe that nobody writes to, or a link to others' files.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let read = open(&path, flags, Mode::empty()).map_err(std::io::Error::from).and_then(|fd| {
            let file = File::from(fd);
            let wrong = unfit(&file.metadata()?);
            if wrong.is_none() {
                file.take(MOST_BYTES).read_to_end(&mut bytes)?;
            }
            Ok(wrong)
        });
        match read {
            Ok(Some(wrong)) => Err(failed(&path, &wrong)),
            Ok(None) => {
                let kept: Result<Kept, _> = serde_json::from_slice(&bytes);
                kept.map(|kept| kept.logins).map_err(|error| failed(&path, &error))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    /// The one at a URL.
    pub fn at(&self, url: &Url) -> Result<Option<Login>, Problem> {
        let url = url.to_string();
        Ok(self.all()?.into_iter().find(|login| login.url == url))
    }

    /// Keeps a login, in place of the one at its URL.
    pub fn keep(&self, login: Login) -> Result<(), Problem> {
        let failed = |error: std::io::Error| failed(&self.dir, &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir).map_err(failed)?;
        let dir = File::open(&self.dir).map_err(failed)?;
        flock(&dir, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let found = dir.metadata().map_err(failed)?;
        self.check_owner(&found)?;
        if found.mode() & 0o077 != 0 {
            dir.set_permissions(Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let mut logins = self.all()?;
        logins.retain(|other| other.url != login.url);
        logins.push(login);
        logins.sort_by(|a, b| a.url.cmp(&b.url));
        let text = serde_json::to_string_pretty(&Kept { logins });
        let text = text.map_err(|error| failed(error.into()))?;
        self.replace(text.as_bytes(), &dir).map_err(failed)
    }

    /// Nothing is written in a directory of another user's.
    fn check_owner(&self, dir: &Metadata) -> Result<(), Problem> {
        if is_others(dir) { Err(failed(&self.dir, &OTHERS)) } else { Ok(()) }
    }

    /// Makes room for a new file where the one that is there can't be used: no login is known.
    /// Which certificates were known is forgotten with it, and that is said.
    pub fn set_aside(&self, problem: &Problem) -> Result<Option<Login>, Problem> {
        let (path, old) = (self.dir.join(FILE), self.dir.join(OLD));
        let dir = std::fs::metadata(&self.dir).map_err(|error| failed(&self.dir, &error))?;
        self.check_owner(&dir)?;
        std::fs::rename(&path, &old).map_err(|error| failed(&path, &error))?;
        let (what, old) = (problem.what(), old.display());
        eprintln!("palisade: {what}; it is now {old}, and its logins and certificates are unknown");
        Ok(None)
    }

    fn replace(&self, bytes: &[u8], dir: &File) -> std::io::Result<()> {
        let new = self.dir.join(NEW);
        // One that was left by a crash.
        let _ = std::fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, self.dir.join(FILE))?;
        dir.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(url: &str, token: &str) -> Login {
        let session = Session { uri: "/s".to_owned(), token: token.to_owned() };
        Login {
            url: url.to_owned(),
            fingerprint: "AB".to_owned(),
            key: "CD".to_owned(),
            user: "ana".to_owned(),
            session: Some(session),
        }
    }

    #[test]
    fn logins_are_kept_for_the_user_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let logins = Logins { dir: place.path().join("state/palisade") };
        assert_eq!(logins.all(), Ok(Vec::new()));
        for (url, token) in [("https://b:1", "1"), ("https://a:1", "2"), ("https://b:1", "3")] {
            logins.keep(login(url, token)).expect("kept");
        }
        let both = vec![login("https://a:1", "2"), login("https://b:1", "3")];
        assert_eq!(logins.all(), Ok(both));
        let mode = |path: &Path| std::fs::metadata(path).expect("there").mode() & 0o777;
        let file = logins.dir.join(FILE);
        assert_eq!((mode(&logins.dir), mode(&file)), (0o700, 0o600));
        assert!(!logins.dir.join(NEW).exists());
        assert!(!format!("{:?}", logins.all()).contains("\"3\""), "a token is not shown");
    }

    #[test]
    fn what_others_could_have_read_is_not_used() {
        let place = tempfile::tempdir().expect("a directory");
        let logins = Logins { dir: place.path().to_owned() };
        let file = logins.dir.join(FILE);
        logins.keep(login("https://a:1", "1")).expect("kept");
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("set");
        let told = logins.all().expect_err("it is not used");
        assert!(told.is(&say::LOGINS_FAILED), "{told:?}");
        assert_eq!(logins.keep(login("https://b:1", "2")), Err(told.clone()));
        assert_eq!(logins.set_aside(&told), Ok(None));
        std::fs::set_permissions(&logins.dir, Permissions::from_mode(0o755)).expect("set");
        logins.keep(login("https://b:1", "2")).expect("kept");
        assert_eq!(logins.all(), Ok(vec![login("https://b:1", "2")]));
        assert_eq!(std::fs::metadata(&logins.dir).expect("there").mode() & 0o777, 0o700);
        std::fs::write(&file, "{").expect("written");
        let told = logins.all().expect_err("it is not read");
        assert_eq!(logins.set_aside(&told), Ok(None));
        logins.keep(login("https://c:1", "3")).expect("kept");
        assert_eq!(logins.all(), Ok(vec![login("https://c:1", "3")]));
        let damaged = std::fs::read_to_string(logins.dir.join(OLD));
        assert_eq!(damaged.expect("is moved aside"), "{", "what was pinned can be looked up");
    }

    #[test]
    fn what_is_no_file_of_the_users_is_not_read() {
        let place = tempfile::tempdir().expect("a directory");
        let logins = Logins { dir: place.path().to_owned() };
        let file = logins.dir.join(FILE);
        let other = logins.dir.join("other");
        std::fs::write(&other, "{\"logins\":[]}").expect("written");
        std::fs::set_permissions(&other, Permissions::from_mode(0o600)).expect("set");
        std::os::unix::fs::symlink(&other, &file).expect("linked");
        assert!(logins.all().is_err(), "a link");
        std::fs::remove_file(&file).expect("removed");
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &file, pipe, Mode::RUSR | Mode::WUSR, 0)
            .expect("a pipe");
        assert!(logins.all().is_err(), "a pipe that nobody writes to");
        std::fs::remove_file(&file).expect("removed");
        std::fs::rename(&other, &file).expect("renamed");
        assert_eq!(logins.all(), Ok(Vec::new()));
        if geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65_534), None).expect("given away");
            assert!(logins.all().is_err(), "another user's");
            std::os::unix::fs::chown(&logins.dir, Some(65_534), None).expect("given away");
            assert!(logins.keep(login("https://a:1", "1")).is_err(), "nor is it replaced");
            let told = logins.all().expect_err("it is not used");
            assert!(logins.set_aside(&told).is_err(), "nor moved aside");
            assert!(file.exists() && !logins.dir.join(OLD).exists());
        }
    }
}

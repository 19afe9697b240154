//! What a file system keeps of its shares, so that it moves with the volume: `state/shares.toml`.
//!
//! Users of SMB have a number by which the file system knows whose a file is, and shares of NFS
//! have one in each file handle that a client holds. Both stay as they are once they are given, and
//! none is given twice. Passwords are in Samba's private directory beside this file.

use crate::names::{ShareName, UserName};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The file.
const NAME: &str = "shares.toml";
const VERSION: u32 = 1;
/// The group of all users of shares, and the user that asks how they are. Systems give no such
/// numbers to users of their own (systemd.io, "Users, Groups, UIDs and GIDs on systemd systems").
pub const GROUP: u32 = 70_000;
/// Most users of a file system, and shares that it has ever had: Ganesha's numbers have 16 bits.
const USERS_MOST: u32 = 10_000;
const SHARES_MOST: u16 = u16::MAX;

/// A user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name.
    pub name: String,
    /// Whose files are its.
    pub uid: u32,
}

/// A share that has a number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Share {
    name: String,
    number: u16,
}

/// What is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    version: u32,
    /// The number of the next user.
    next_uid: u32,
    #[serde(default)]
    users: Vec<User>,
    #[serde(default)]
    shares: Vec<Share>,
}

impl Default for Kept {
    fn default() -> Self {
        let (users, shares) = Default::default();
        Self { version: VERSION, next_uid: GROUP + 1, users, shares }
    }
}

impl Kept {
    /// What is kept in a folder; nothing, if it has no such file.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read(state: &Path) -> io::Result<Self> {
        let path = state.join(NAME);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            other => other?,
        };
        let wrong = |what: String| io::Error::other(format!("{}: {what}", path.display()));
        let own: Self = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if own.version != VERSION {
            return Err(wrong(format!("it is of version {}", own.version)));
        }
        let is_name = |user: &User| UserName::new(&user.name).is_ok() && user.uid > GROUP;
        if !own.users.iter().all(is_name) {
            return Err(wrong("it names a user that can't be".to_owned()));
        }
        Ok(own)
    }

    /// Keeps it.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, state: &Path) -> io::Result<()> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        let new = state.join(format!("{NAME}.new"));
        let mut options = File::options();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(new, state.join(NAME))?;
        File::open(state)?.sync_all()
    }

    /// The users.
    pub fn users(&self) -> &[User] {
        &self.users
    }

    /// Whether there is such a user.
    pub fn has(&self, name: &UserName) -> bool {
        self.users.iter().any(|user| user.name == name.as_str())
    }

    /// A user comes.
    ///
    /// # Errors
    /// There are as many as there may be.
    pub fn add(&mut self, name: &UserName) -> io::Result<()> {
        if self.next_uid > GROUP + USERS_MOST {
            return Err(io::Error::other(format!("it has had {USERS_MOST} users already")));
        }
        self.users.push(User { name: name.to_string(), uid: self.next_uid });
        self.users.sort_by(|one, other| one.name.cmp(&other.name));
        self.next_uid += 1;
        Ok(())
    }

    /// A user goes; files that were its stay its.
    pub fn remove(&mut self, name: &UserName) {
        self.users.retain(|user| user.name != name.as_str());
    }

    /// The number of a share that has one.
    pub fn known(&self, name: &ShareName) -> Option<u16> {
        let known = self.shares.iter().find(|share| share.name == name.as_str());
        known.map(|share| share.number)
    }

    /// The number of a share, and whether it was given now.
    ///
    /// # Errors
    /// There are none left.
    pub fn number(&mut self, name: &ShareName) -> io::Result<(u16, bool)> {
        if let Some(known) = self.known(name) {
            return Ok((known, false));
        }
        let last = self.shares.iter().map(|share| share.number).max().unwrap_or(0);
        if last == SHARES_MOST {
            return Err(io::Error::other(format!("it has had {SHARES_MOST} shares already")));
        }
        self.shares.push(Share { name: name.to_string(), number: last + 1 });
        Ok((last + 1, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_none_is_given_twice() {
        let place = tempfile::tempdir().expect("a folder");
        let user = |text| UserName::new(text).expect("a name");
        let share = |text| ShareName::new(text).expect("a name");
        let mut own = Kept::read(place.path()).expect("nothing");
        own.add(&user("bob")).expect("added");
        own.add(&user("alice")).expect("added");
        assert_eq!(own.number(&share("docs")).expect("given"), (1, true));
        own.write(place.path()).expect("kept");
        let mut again = Kept::read(place.path()).expect("read");
        assert_eq!(again, own);
        let names: Vec<_> = again.users().iter().map(|user| (&*user.name, user.uid)).collect();
        assert_eq!(names, [("alice", GROUP + 2), ("bob", GROUP + 1)]);
        again.remove(&user("alice"));
        again.add(&user("carol")).expect("added");
        assert_eq!(again.users().last().expect("one").uid, GROUP + 3);
        assert!(again.has(&user("carol")) && !again.has(&user("alice")));
        assert_eq!(again.number(&share("docs")).expect("known"), (1, false));
        assert_eq!(again.number(&share("größe 1")).expect("given"), (2, true));
    }

    #[test]
    fn what_can_not_be_read_is_told() {
        let place = tempfile::tempdir().expect("a folder");
        for (text, told) in [
            ("version = 9\nnext_uid = 1\n", "of version 9"),
            ("version = 1\n", "next_uid"),
            ("version = 1\nnext_uid = 1\n[[users]]\nname = \"a:b\"\nuid = 70001\n", "can't be"),
            ("version = 1\nnext_uid = 1\n[[users]]\nname = \"a\"\nuid = 0\n", "can't be"),
        ] {
            std::fs::write(place.path().join(NAME), text).expect("written");
            let why = Kept::read(place.path()).expect_err("refused").to_string();
            assert!(why.contains(told) && why.contains(NAME), "{why}");
        }
    }
}

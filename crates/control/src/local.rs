//! Users and groups of this machine, and what they may do on the daemon's socket.
//!
//! Names are looked up in `/etc/passwd` and `/etc/group` when the daemon starts or reads its
//! configuration again, and nowhere else: no name server is asked. A number stands for itself.
//!
//! Invariants
//! - root and the daemon's own user are Administrators, whatever the configuration says: they could
//!   replace the daemon.
//! - Who is named more than once has the role that may do most.

use crate::address::{set_mode, socket_at, something_else};
use crate::config::Access;
use crate::peer::Peer;
use redfish::access::Role;
use rustix::fs::{AtFlags, Gid};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The group whose members are Administrators unless the configuration says otherwise.
pub const GROUP: &str = "palisade";

/// Users and groups with roles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Local {
    users: BTreeMap<u32, Role>,
    groups: BTreeMap<u32, Role>,
    names: BTreeMap<u32, String>,
    /// Whom the configuration names, and this machine does not know.
    pub unknown: Vec<String>,
}

impl Local {
    /// Those of a configuration, as this machine knows them now.
    ///
    /// # Errors
    /// A file can't be read: who may what is not known.
    pub fn read(access: Option<&Access>) -> io::Result<Self> {
        let text = |path: &str| match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
            Ok(text) => Ok(text),
        };
        let own = rustix::process::geteuid().as_raw();
        Ok(Self::of(access, own, &text("/etc/passwd")?, &text("/etc/group")?))
    }

    /// root and the daemon's own user.
    pub fn owners() -> Self {
        Self::of(None, rustix::process::geteuid().as_raw(), "", "")
    }

    fn of(access: Option<&Access>, own: u32, passwd: &str, group: &str) -> Self {
        let (users, groups) = (numbers(passwd), numbers(group));
        let mut local = Self::default();
        for (name, number) in &users {
            local.names.entry(*number).or_insert_with(|| (*name).to_owned());
        }
        let usual = Access::default();
        let named = access.unwrap_or(&usual);
        let roles = [
            (&named.read_only, Role::ReadOnly),
            (&named.operators, Role::Operator),
            (&named.administrators, Role::Administrator),
        ];
        for (names, role) in roles {
            for name in names {
                let (known, into, plain) = match name.strip_prefix('@') {
                    Some(group) => (&groups, &mut local.groups, group),
                    None => (&users, &mut local.users, name.as_str()),
                };
                match plain.parse().ok().or_else(|| known.get(plain).copied()) {
                    Some(number) => drop(into.insert(number, role)),
                    None if access.is_some() => local.unknown.push(name.clone()),
                    None => {}
                }
            }
        }
        local.users.extend([(0, Role::Administrator), (own, Role::Administrator)]);
        local
    }

    /// What somebody on the socket may do; none: nothing.
    pub fn role(&self, user: u32, groups: &[u32]) -> Option<Role> {
        let of_groups = groups.iter().filter_map(|group| self.groups.get(group).copied());
        of_groups.chain(self.users.get(&user).copied()).max()
    }

    /// What a user is called.
    pub fn name(&self, user: u32) -> String {
        self.names.get(&user).cloned().unwrap_or_else(|| format!("uid:{user}"))
    }

    /// Who somebody on the socket is, and what they may do.
    pub fn who(&self, peer: &Peer) -> Option<(String, Option<Role>)> {
        match peer {
            Peer::Socket { user, groups } => Some((self.name(*user), self.role(*user, groups))),
            Peer::Network { .. } => None,
        }
    }
}

/// Those of a configuration; says whom of it the machine does not know. None if that can't be read:
/// who has a role keeps it.
pub fn known(access: Option<&Access>) -> Option<Local> {
    let local = match Local::read(access) {
        Ok(local) => local,
        Err(error) => {
            runtime::say(format_args!(
                "palisade: users and groups can't be read: {error}\n  repair the file, then have \
                 the daemon read its configuration again (SIGHUP)"
            ));
            return None;
        }
    };
    for name in &local.unknown {
        runtime::say(format_args!(
            "palisade: {name} in `access` is no user or group of this machine\n  correct the name, \
             or create it and have the daemon read its configuration again (SIGHUP)"
        ));
    }
    Some(local)
}

/// The daemon's socket in the file system.
pub struct Socket {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Socket {
    /// The one that the daemon has just bound here.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn bound(path: &Path) -> io::Result<Self> {
        let found = std::fs::symlink_metadata(path)?;
        let (device, inode) = (found.dev(), found.ino());
        Ok(Self { path: std::path::absolute(path)?, device, inode })
    }

    /// Its directory.
    pub fn dir(&self) -> Option<&Path> {
        self.path.parent()
    }

    /// Opens it to everybody, who is then asked who they are, or to the daemon's user and the group
    /// `palisade` only. What another has put in its place is left as it is.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn open(&self, to_all: bool) -> io::Result<()> {
        let own = socket_at(&self.path)?;
        let found = own.metadata()?;
        if (found.dev(), found.ino()) != (self.device, self.inode) {
            return Err(something_else());
        }
        let text = std::fs::read_to_string("/etc/group").unwrap_or_default();
        let group = numbers(&text).get(GROUP).copied().map(Gid::from_raw);
        // A daemon that may not give it away keeps it in its own group.
        let _ = rustix::fs::chownat(&own, "", None, group, AtFlags::EMPTY_PATH);
        set_mode(&own, if to_all { 0o666 } else { 0o660 })
    }
}

/// Names and numbers of a file as passwd(5) and group(5) have it.
fn numbers(text: &str) -> BTreeMap<&str, u32> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let mut parts = line.split(':');
        let name = parts.next().filter(|name| !name.is_empty());
        let number = parts.nth(1).and_then(|number| number.parse().ok());
        if let (Some(name), Some(number)) = (name, number) {
            found.entry(name).or_insert(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    const PASSWD: &str = "root:x:0:0::/root:/bin/sh\nana:x:1000:1000::/:/bin/sh\nbroken\n\
        ben:x:1001:1001::/:/bin/sh\n";
    const GROUP: &str = "root:x:0:\npalisade:x:90:ana\nwatch:x:91:\n";

    fn local(text: &str) -> Local {
        let access = (!text.is_empty()).then(|| toml::from_str(text).expect("a table"));
        Local::of(access.as_ref(), 500, PASSWD, GROUP)
    }

    #[test]
    fn root_the_own_user_and_the_group_do_everything_unless_told_otherwise() {
        let local = local("");
        let administrator = Some(Role::Administrator);
        assert_eq!(local.role(0, &[]), administrator);
        assert_eq!(local.role(500, &[]), administrator);
        assert_eq!(local.role(1001, &[5, 90]), administrator);
        assert_eq!(local.role(1001, &[0, 91]), None);
        assert_eq!(local.unknown, Vec::<String>::new());
        assert_eq!((local.name(1000), local.name(7)), ("ana".to_owned(), "uid:7".to_owned()));
    }

    #[test]
    fn the_socket_is_opened_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, other) = (dir.path().join("socket"), dir.path().join("other"));
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        let socket = Socket::bound(&path).expect("a socket");
        let mode = |path: &Path| path.metadata().expect("there").mode() & 0o7777;
        for (to_all, expected) in [(true, 0o666), (false, 0o660)] {
            socket.open(to_all).expect("opened");
            assert_eq!(mode(&path), expected);
        }
        assert_eq!(socket.dir(), Some(dir.path()));
        std::fs::write(&other, "").expect("written");
        std::fs::set_permissions(&other, Permissions::from_mode(0o600)).expect("set");
        std::fs::rename(&path, dir.path().join("away")).expect("renamed");
        socket.open(true).expect_err("nothing is there");
        std::os::unix::fs::symlink(&other, &path).expect("made");
        socket.open(true).expect_err("it leads elsewhere");
        std::fs::remove_file(&path).expect("removed");
        std::fs::hard_link(&other, &path).expect("made");
        socket.open(true).expect_err("it is another");
        assert_eq!(mode(&other), 0o600);
    }

    #[test]
    fn the_role_that_may_do_most_counts() {
        let local = local(
            "administrators = ['1002']\noperators = ['ana', '@watch', 'nobody-knows']\n\
             read_only = ['ben', '@91', '@none']\n",
        );
        assert_eq!(local.role(1000, &[]), Some(Role::Operator));
        assert_eq!(local.role(1001, &[]), Some(Role::ReadOnly));
        assert_eq!(local.role(1001, &[91]), Some(Role::Operator));
        assert_eq!(local.role(1002, &[91]), Some(Role::Administrator));
        assert_eq!(local.role(1003, &[90]), None, "the usual group is not named");
        assert_eq!(local.role(0, &[]), Some(Role::Administrator));
        assert_eq!(local.unknown, ["@none", "nobody-knows"]);
    }
}

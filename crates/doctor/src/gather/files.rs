//! Files of the daemon: the state directory, the certificate with its key, the socket.

use super::Proc;
use crate::facts::{Daemon, Https, Node, NodeKind, State};
use control::config::Config;
use control::{certificate_in, state};
use rustix::fs::StatVfsMountFlags;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Where a unit's state directory is, whose environment nobody here has.
const USUAL: &str = "/var/lib/palisade";

/// The unit of the package: it makes that directory.
const UNIT: &str = "/usr/lib/systemd/system/palisade.service";

/// What is at a path.
pub fn node(path: &Path) -> Node {
    let mut node = Node { path: path.to_owned(), ..Node::default() };
    if let Ok(found) = std::fs::symlink_metadata(path) {
        let kind = found.file_type();
        node.kind = Some(match (kind.is_dir(), kind.is_socket()) {
            (true, _) => NodeKind::Directory,
            (_, true) => NodeKind::Socket,
            _ => NodeKind::Other,
        });
        (node.mode, node.user) = (found.mode() & 0o7777, found.uid());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.and_then(|parent| std::fs::metadata(parent).ok());
    node.parent_mode = parent.map(|found| found.mode() & 0o7777);
    node
}

/// The state directory: where the daemon says, else the configuration, the unit's environment, or
/// the usual place if that is there.
pub fn state(config: &Config, daemon: &Daemon) -> State {
    let told = daemon.told().map(|told| told.state.clone().map(Into::into));
    let unit = std::env::var_os(state::VARIABLE);
    let place = || state::place(config.state.as_deref(), unit.as_deref());
    let is_used = |dir: &&Path| dir.is_dir() || Path::new(UNIT).exists();
    let usual = || Some(Path::new(USUAL)).filter(is_used).map(Path::to_owned);
    let Some(dir) = told.unwrap_or_else(|| place().or_else(usual)) else { return State::default() };
    // What is not there yet is made in the directory above.
    let there = dir.ancestors().find(|above| above.is_dir()).unwrap_or(&dir);
    let room = rustix::fs::statvfs(there).ok();
    let room = room.as_ref();
    let followed = std::fs::canonicalize(&dir).unwrap_or_else(|_| dir.clone());
    State {
        node: Node { path: dir.clone(), ..node(&followed) },
        is_read_only: room.map(|room| room.f_flag.contains(StatVfsMountFlags::RDONLY)),
        free: room.and_then(|room| room.f_bavail.checked_mul(room.f_frsize)),
        dir: Some(dir),
    }
}

/// When the newest file of the state directory was written, in seconds since 1970.
pub fn written(state: &State) -> Option<u64> {
    let entries = std::fs::read_dir(state.dir.as_deref()?).ok()?;
    let times = entries.flatten().filter_map(|entry| entry.metadata().ok()?.modified().ok());
    times.filter_map(|time| Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())).max()
}

/// The certificate of HTTPS: of the configuration's files, else what the daemon made.
pub fn https(proc: &Proc<'_>, config: &Config, state: &State) -> Https {
    let host = proc.text("sys/kernel/hostname").unwrap_or_default();
    let files = config.https().files;
    let kept = state.dir.as_ref().map(|dir| dir.join(state::CERTIFICATE));
    // What can't be looked at may be there.
    let is_there = |file: &PathBuf| file.try_exists().unwrap_or(true);
    let own = || kept.filter(is_there).map(|file| (file.clone(), file));
    let Some((file, key)) = files.or_else(own) else { return Https { host, ..Https::default() } };
    let read = certificate_in(&file, &key);
    let key_mode = std::fs::metadata(&key).ok().map(|found| found.mode() & 0o7777);
    let certificate = match read {
        Ok(certificate) => Some(Ok(certificate)),
        // Who may not read a key does not know whether it is good.
        Err(_) if may_not_read(&file) || may_not_read(&key) => None,
        Err(error) => Some(Err(error.error)),
    };
    Https { host, certificate, key_mode, file: Some(file), key: Some(key) }
}

fn may_not_read(path: &Path) -> bool {
    std::fs::File::open(path)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Told;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn nodes_are_told_apart() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("socket");
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).expect("set");
        assert_eq!(node(&path).kind, None);
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660)).expect("set");
        let found = node(&path);
        assert_eq!((found.kind, found.mode), (Some(NodeKind::Socket), 0o660));
        assert_eq!(found.parent_mode, Some(0o700));
        assert_eq!(node(dir.path()).kind, Some(NodeKind::Directory));
    }

    #[test]
    fn a_certificate_that_cannot_be_looked_at_may_be_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = State { dir: Some(dir.path().to_owned()), ..State::default() };
        let look = || https(&Proc(dir.path()), &Config::default(), &state);
        assert_eq!(look().file, None);
        // A link to itself leads nowhere, as does what may not be read.
        let file = dir.path().join(state::CERTIFICATE);
        std::os::unix::fs::symlink(&file, &file).expect("linked");
        assert_eq!(look().file, Some(file));
    }

    #[test]
    fn the_state_directory_is_where_the_daemon_says() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).expect("set");
        let config = Config { state: Some(dir.path().join("a/b")), ..Config::default() };
        let found = state(&config, &Daemon::Absent);
        assert_eq!((&found.dir, found.node.kind), (&config.state, None));
        assert!(found.free.is_some() && found.is_read_only == Some(false));
        let told = Told { state: Some(dir.path().display().to_string()), ..Told::default() };
        let found = state(&config, &Daemon::Running(Box::new(told)));
        assert_eq!(found.dir.as_deref(), Some(dir.path()));
        assert_eq!((found.node.kind, found.node.mode), (Some(NodeKind::Directory), 0o700));
        assert_eq!(written(&found), None);
        std::fs::write(dir.path().join("x"), "1").expect("written");
        assert!(written(&found).is_some());
        let none = state(&config, &Daemon::Running(Box::default()));
        assert_eq!(none.dir, None);
    }
}

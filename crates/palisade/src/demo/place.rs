//! Where the demo's files are.
//!
//! Without `--dir` a folder of the demo's own in the system's temporary one, removed with all in it
//! when [`Place`] is dropped; with it the given folder, where drives and image stay. A folder with
//! other things in it is refused, so that nothing but an earlier demo's files is ever replaced.

use super::error::DemoError;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Longest path of a Unix socket that surely fits (`sun_path` holds 108 bytes).
const SOCKET_PATH_MAX: usize = 100;

/// Names of what the demo makes besides drives.
const OWN: &[&str] = &[
    "palisade.toml",
    "image.ext4",
    "read-back.img",
    "daemon.log",
    "palisade.sock",
    "nbd.sock",
    "load.sock",
    "services.log",
    Place::SOURCE,
    "smb.login",
    STATE,
];

/// Name of the daemon's state directory, the only folder in the demo's.
const STATE: &str = "state";

/// How the files of drives are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drives {
    /// `drive-00.img`, counted from 0 as the slots of an array are.
    Plain,
    /// `slot-01.img`, counted from 1 as the slots of an enclosure are.
    Slots,
}

impl Drives {
    const ALL: [Self; 2] = [Self::Plain, Self::Slots];

    /// What names begin with, and the number of the first.
    const fn names(self) -> (&'static str, usize) {
        match self {
            Self::Plain => ("drive-", 0),
            Self::Slots => ("slot-", 1),
        }
    }
}

/// First line of the demo's configuration: a folder that has it may be used again.
pub const MARK: &str = "# Made by `palisade demo`.";

/// A folder that is removed with all in it when this is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one in the system's temporary folder; only this user may enter it.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn new() -> Result<Self, DemoError> {
        Self::in_folder(&std::env::temp_dir(), 0o700)
    }

    fn in_folder(parent: &Path, mode: u32) -> Result<Self, DemoError> {
        for number in 0.. {
            let path = parent.join(format!("palisade-demo-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(mode).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(DemoError::File(path, error)),
            }
        }
        unreachable!("numbers don't end")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Has it outlive this.
    fn stay(self) {
        std::mem::forget(self);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The demo's folder.
#[derive(Debug)]
pub struct Place {
    dir: PathBuf,
    drives: Drives,
    keep: bool,
    /// The folder itself, where it is temporary.
    _own: Option<Scratch>,
    /// For the sockets, where the folder's path is too long for them.
    sockets: Option<Scratch>,
    /// For what `palisade services` makes: those who use shares come through it.
    services: Option<Scratch>,
}

impl Place {
    /// What a client of SMB writes to a share.
    pub const SOURCE: &str = "source.bin";
    /// What a line of the configuration begins with that says where services are.
    pub const SERVICES: &str = "services = ";

    /// Makes the folder, or empties the given one of what an earlier demo left.
    ///
    /// # Errors
    /// If it can't be made, or holds something that is not the demo's.
    pub fn new(given: Option<&Path>, drives: Drives) -> Result<Self, DemoError> {
        let (dir, own) = match given {
            Some(dir) => {
                fs::create_dir_all(dir).map_err(DemoError::file(dir))?;
                (fs::canonicalize(dir).map_err(DemoError::file(dir))?, None)
            }
            None => {
                let own = Scratch::new()?;
                (own.path().to_owned(), Some(own))
            }
        };
        let keep = own.is_none();
        let mut place = Self { dir, drives, keep, _own: own, sockets: None, services: None };
        if place.keep {
            place.clear().inspect_err(|_| place.keep = false)?;
        }
        if place.socket().as_os_str().len() > SOCKET_PATH_MAX {
            place.sockets = Some(Scratch::in_folder(Path::new("/tmp"), 0o700)?);
        }
        Ok(place)
    }

    fn clear(&self) -> Result<(), DemoError> {
        let entries = fs::read_dir(&self.dir).map_err(DemoError::file(&self.dir))?;
        let found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        if let Some(other) = found.iter().find(|path| !is_own(path)) {
            let problem = format!("{} is not the demo's: choose an empty folder", other.display());
            return Err(DemoError::Usage(problem));
        }
        let marked = fs::read_to_string(self.config()).is_ok_and(|text| text.starts_with(MARK));
        if !found.is_empty() && !marked {
            let problem =
                format!("{} is not empty and was not created by a demo", self.dir.display());
            return Err(DemoError::Usage(problem));
        }
        found.iter().try_for_each(|path| remove(path).map_err(DemoError::file(path)))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The daemon's configuration.
    pub fn config(&self) -> PathBuf {
        self.dir.join("palisade.toml")
    }

    /// The daemon's socket.
    pub fn socket(&self) -> PathBuf {
        self.sockets().join("palisade.sock")
    }

    /// The NBD export's socket.
    pub fn nbd_socket(&self) -> PathBuf {
        self.sockets().join("nbd.sock")
    }

    /// The socket of the export that the demo itself loads.
    pub fn load_socket(&self) -> PathBuf {
        self.sockets().join("load.sock")
    }

    /// The daemon's state directory, where it has one.
    pub fn state(&self) -> PathBuf {
        self.dir.join(STATE)
    }

    /// Makes room for `palisade services`, which nobody lists, and through which those come who use
    /// shares.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn open_to_shares(&mut self) -> Result<(), DemoError> {
        self.services = Some(Scratch::in_folder(Path::new("/tmp"), 0o711)?);
        Ok(())
    }

    /// Where `palisade services` makes what it does.
    pub fn services(&self) -> PathBuf {
        self.services.as_ref().map_or(&*self.dir, Scratch::path).join("services")
    }

    /// What that says.
    pub fn services_log(&self) -> PathBuf {
        self.dir.join("services.log")
    }

    /// Where [`Place::SOURCE`] is.
    pub fn source(&self) -> PathBuf {
        self.dir.join(Self::SOURCE)
    }

    /// As whom it logs in.
    pub fn login(&self) -> PathBuf {
        self.dir.join("smb.login")
    }

    /// The folder of what `palisade services` made is no more: those who have the configuration
    /// start a daemon without it. What could not be ended stays where it is, as it may be mounted.
    fn forget_services(&mut self) {
        let folder = self.services();
        let Some(own) = self.services.take() else { return };
        if !services::left(&folder).is_empty() {
            eprintln!("palisade demo: something is left in {}", folder.display());
            own.stay();
        }
        if let Ok(text) = fs::read_to_string(self.config()) {
            let lines = text.lines().filter(|line| !line.starts_with(Self::SERVICES));
            let kept: String = lines.map(|line| format!("{line}\n")).collect();
            let _ = fs::write(self.config(), kept);
        }
    }

    fn sockets(&self) -> &Path {
        self.sockets.as_ref().map_or(&self.dir, Scratch::path)
    }

    /// What the daemon says.
    pub fn log(&self) -> PathBuf {
        self.dir.join("daemon.log")
    }

    /// The file of a drive; those of slots count from 0, replacements go on behind them.
    pub fn drive(&self, number: usize) -> PathBuf {
        let (name, first) = self.drives.names();
        self.dir.join(format!("{name}{:02}.img", first + number))
    }

    /// What the configuration says of drives.
    pub fn drives_pattern(&self) -> String {
        let (name, _) = self.drives.names();
        self.dir.join(format!("{name}*.img")).to_string_lossy().into_owned()
    }

    /// The file system image.
    pub fn image(&self) -> PathBuf {
        self.dir.join("image.ext4")
    }

    /// Where a client copies the volume to.
    pub fn read_back(&self) -> PathBuf {
        self.dir.join("read-back.img")
    }

    /// Fails if fewer than `bytes` are free.
    ///
    /// # Errors
    /// [`DemoError::Usage`] that names the folder and what is free.
    pub fn needs(&self, bytes: u64) -> Result<(), DemoError> {
        let free = rustix::fs::statvfs(&self.dir)
            .map_err(|error| DemoError::File(self.dir.clone(), error.into()))?;
        let free = free.f_bavail * free.f_frsize;
        if free >= bytes {
            return Ok(());
        }
        Err(DemoError::Usage(format!(
            "{} has {} free, the demo needs {}: name another folder with --dir, or use smaller \
             drives with --drive-size",
            self.dir.display(),
            units::format_size(free),
            units::format_size(bytes),
        )))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.forget_services();
        if self.keep {
            let sockets = [self.socket(), self.nbd_socket(), self.load_socket()];
            let files = [self.read_back(), self.source(), self.login()];
            sockets.into_iter().chain(files).for_each(|path| drop(fs::remove_file(path)));
        }
    }
}

fn is_own(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or("");
    let is_drive = |drives: Drives| {
        let number = name.strip_prefix(drives.names().0).and_then(|rest| rest.strip_suffix(".img"));
        number.is_some_and(|text| text.parse::<u16>().is_ok())
    };
    OWN.contains(&name) || Drives::ALL.into_iter().any(is_drive)
}

/// Removes a file, or the daemon's state directory.
fn remove(path: &Path) -> std::io::Result<()> {
    if path.ends_with(STATE) { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_is_removed_and_a_given_one_kept() {
        let place = Place::new(None, Drives::Plain).expect("made");
        let dir = place.dir().to_owned();
        fs::write(place.drive(0), "x").expect("written");
        drop(place);
        assert!(!dir.exists());
        let given = tempfile::tempdir().expect("a directory");
        let place = Place::new(Some(given.path()), Drives::Plain).expect("taken");
        fs::write(place.drive(0), "x").expect("written");
        fs::write(place.config(), format!("{MARK}\n")).expect("written");
        fs::write(place.read_back(), "x").expect("written");
        let (drive, back) = (place.drive(0), place.read_back());
        drop(place);
        assert!(drive.exists() && !back.exists());
        drop(Place::new(Some(given.path()), Drives::Plain).expect("an earlier demo's folder"));
        assert!(!drive.exists());
    }

    #[test]
    fn what_services_left_stays_and_the_configuration_knows_them_no_more() {
        let given = tempfile::tempdir().expect("a directory");
        for is_left in [false, true] {
            let mut place = Place::new(Some(given.path()), Drives::Plain).expect("taken");
            place.open_to_shares().expect("made");
            let folder = place.services();
            fs::create_dir(&folder).expect("made");
            let line = format!("{}\"{}\"", Place::SERVICES, folder.display());
            fs::write(place.config(), format!("{MARK}\n{line}\ncores = 1\n")).expect("written");
            if is_left {
                fs::write(folder.join("a-1.shares"), "x").expect("written");
            }
            let config = place.config();
            drop(place);
            assert_eq!(folder.exists(), is_left);
            let text = fs::read_to_string(config).expect("read");
            assert_eq!(text, format!("{MARK}\ncores = 1\n"));
            if is_left {
                fs::remove_dir_all(folder.parent().expect("one")).expect("it stayed");
            }
        }
    }

    #[test]
    fn slots_and_state_of_an_earlier_demo_are_removed() {
        let given = tempfile::tempdir().expect("a directory");
        let place = Place::new(Some(given.path()), Drives::Slots).expect("taken");
        assert!(
            place.drive(0).ends_with("slot-01.img") && place.drive(23).ends_with("slot-24.img")
        );
        fs::create_dir(place.state()).expect("made");
        for path in [place.drive(0), place.state().join("accounts.json"), place.load_socket()] {
            fs::write(path, "x").expect("written");
        }
        fs::write(place.config(), format!("{MARK}\n")).expect("written");
        let (state, socket) = (place.state(), place.load_socket());
        drop(place);
        assert!(state.exists() && !socket.exists());
        drop(Place::new(Some(given.path()), Drives::Plain).expect("an earlier demo's folder"));
        assert!(is_empty(given.path()));
    }

    fn is_empty(dir: &Path) -> bool {
        fs::read_dir(dir).expect("listed").next().is_none()
    }

    #[test]
    fn a_folder_with_other_things_is_refused_and_left_alone() {
        for name in ["letter.txt", "drive-of-mine.img", "drive-00.img", "palisade.toml"] {
            let given = tempfile::tempdir().expect("a directory");
            let path = given.path().join(name);
            fs::write(&path, "x").expect("written");
            assert!(matches!(
                Place::new(Some(given.path()), Drives::Plain),
                Err(DemoError::Usage(_))
            ));
            assert!(path.exists());
        }
    }
}

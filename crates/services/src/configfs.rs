//! What of the kernel is set by directories, files and links: configfs
//! (Documentation/filesystems/configfs.rst of the kernel).
//!
//! What may wait for requests under way is done by a child, one for each place: they may wait for
//! the daemon, and this process has to bring that back.
//!
//! | a place has                  | what is done | what comes of it                        |
//! |------------------------------|--------------|-----------------------------------------|
//! | no child                     | one is begun | done, or what it says, if it ends       |
//! |                              |              | within a limit; else *it waits*         |
//! | a child of an earlier call   | that alone   | what it says, if it has ended badly; if |
//! |                              | is looked at | well, the place is looked at anew; else |
//! |                              |              | *it waits*                              |
//!
//! Invariant: what may wait for requests under way is waited for no longer than the limit.
//!
//! Not covered: while a child waits, the kernel holds the folder that the place is in. Whoever
//! looks there waits, too: other exports at the same port, until the device is served or ended.

use crate::{lock, modprobe, not_started};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Where the kernel has it.
pub const CONFIG: &str = "/sys/kernel/config";
/// What is in there of LIO.
pub const LIO: &str = "target";
/// What is in there of nvmet.
pub const NVMET: &str = "nvmet";
/// What links are called.
pub const LINK: &str = "palisade";

/// How long something may take that may wait, and how often it is looked.
const LIMIT: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// Has a folder of the kernel's, in its root for such, be there; modules are loaded for it. Whether
/// it is there.
pub fn load(config: &Path, folder: &str, modules: &[&str]) -> bool {
    let own = config.join(folder);
    if own.is_dir() {
        return true;
    }
    if config != Path::new(CONFIG) {
        // It only stands for the kernel's.
        return false;
    }
    modprobe(&["configfs"]);
    modprobe(modules);
    if config.read_dir().is_ok_and(|mut all| all.next().is_none()) {
        let flags = rustix::mount::MountFlags::empty();
        // What came of it is seen by what is there.
        let _ = rustix::mount::mount("configfs", config, "configfs", flags, None);
    }
    if own.parent().is_some_and(|parent| parent != config) {
        let _ = fs::create_dir(&own);
    }
    own.is_dir()
}

/// Held while something changes that several exports have.
pub fn changing(what: &str) -> Arc<Mutex<()>> {
    static CHANGING: Mutex<BTreeMap<String, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    lock(&CHANGING).entry(what.to_owned()).or_default().clone()
}

/// What a file says, or nothing.
pub fn read(file: &Path) -> String {
    fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Writes a file of the kernel's.
///
/// # Errors
/// What the kernel says.
pub fn put(file: &Path, text: &str) -> io::Result<()> {
    fs::write(file, text).map_err(|error| named(file, &error))
}

/// Writes a file where it says otherwise.
///
/// # Errors
/// What the kernel says.
pub fn set(file: &Path, text: &str) -> io::Result<()> {
    if read(file) == text { Ok(()) } else { put(file, text) }
}

/// An error, with who says it and of what.
pub fn named(path: &Path, error: &io::Error) -> io::Error {
    let inner = path.strip_prefix(CONFIG).unwrap_or(path);
    let of = |(folder, who)| inner.strip_prefix(folder).ok().map(|inner| (who, inner));
    let (who, inner) =
        [(LIO, "LIO"), (NVMET, NVMET)].into_iter().find_map(of).unwrap_or(("configfs", inner));
    io::Error::new(error.kind(), format!("{who}: {}: {error}", inner.display()))
}

/// Makes a folder, if it is not there; whether it was not.
///
/// # Errors
/// What the kernel says.
pub fn mkdir(folder: &Path) -> io::Result<bool> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(named(folder, &error)),
        Ok(()) => {
            #[cfg(test)]
            tests::take_attributes(folder);
            Ok(true)
        }
    }
}

/// Makes the link to another folder in a folder.
///
/// # Errors
/// What the kernel says.
pub fn link(to: &Path, folder: &Path) -> io::Result<()> {
    symlink(to, folder.join(LINK)).map_err(|error| named(folder, &error))
}

fn is_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Removes a folder, if it is there.
///
/// # Errors
/// What the kernel says.
pub fn rmdir(folder: &Path) -> io::Result<()> {
    #[cfg(test)]
    tests::let_go_of_attributes(folder);
    fs::remove_dir(folder).map_err(|error| named(folder, &error)).or_else(is_gone)
}

/// The links in a folder; none of one that is not there.
///
/// # Errors
/// What the kernel says.
pub fn links(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let all = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| named(folder, &error))?.flatten(),
    };
    Ok(all.map(|file| file.path()).filter(|file| file.is_symlink()).collect())
}

/// Removes the links in a folder.
///
/// # Errors
/// What the kernel says.
pub fn unlink(folder: &Path) -> io::Result<()> {
    let remove = |file: &PathBuf| fs::remove_file(file).map_err(|error| named(folder, &error));
    links(folder)?.iter().try_for_each(remove)
}

/// The folders in a folder.
///
/// # Errors
/// What the kernel says.
pub fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let all = fs::read_dir(folder).map_err(|error| named(folder, &error))?.flatten();
    Ok(all.map(|own| own.path()).filter(|own| own.is_dir() && !own.is_symlink()).collect())
}

/// Whether a folder is one of a unit of LIO's.
pub fn is_unit(folder: &Path) -> bool {
    name_of(folder).starts_with("lun_")
}

/// The last part of a path.
pub fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Who waits, in an error: LIO or nvmet.
fn late(file: &Path) -> io::Error {
    let is_lio = file.components().any(|part| part.as_os_str() == LIO);
    let who = if is_lio { "LIO" } else { NVMET };
    io::Error::other(format!("{who} waits for what is under way"))
}

/// Writes a 0 to a file that says 1, and waits for what is under way there.
///
/// # Errors
/// It can't be, or waits for too long.
pub fn disable(file: &Path) -> io::Result<()> {
    let done = apart(file, || {
        if read(file) != "1" {
            return Ok(None);
        }
        let mut tee = Command::new("tee");
        let tee = tee.arg(file).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = tee
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| not_started("tee", "coreutils", &error))?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(b"0")?;
        }
        Ok(Some(child))
    });
    done.and_then(|()| if read(file) == "1" { Err(late(file)) } else { Ok(()) })
}

/// Removes a folder, if it is there, and waits for what is under way there.
///
/// # Errors
/// It can't be, or waits for too long.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    apart(folder, || {
        #[cfg(test)]
        tests::let_go_of_attributes(folder);
        if folder.is_dir() { begin("rmdir", folder).map(Some) } else { Ok(None) }
    })
}

/// Removes a link, if it is there, and waits for what is under way there.
///
/// # Errors
/// It can't be, or waits for too long.
pub fn remove_link(link: &Path) -> io::Result<()> {
    apart(link, || if link.is_symlink() { begin("rm", link).map(Some) } else { Ok(None) })
}

/// Removes the links in a folder, and that, and waits for what is under way there.
///
/// # Errors
/// It can't be, or waits for too long.
pub fn remove_with_links(folder: &Path) -> io::Result<()> {
    links(folder)?.iter().try_for_each(|link| remove_link(link))?;
    remove_folder(folder)
}

fn begin(program: &str, path: &Path) -> io::Result<Child> {
    let mut own = Command::new(program);
    own.arg("--").arg(path).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null());
    let begun = own.stderr(Stdio::piped()).spawn();
    begun.map_err(|error| not_started(program, "coreutils", &error))
}

fn apart(place: &Path, begin: impl FnOnce() -> io::Result<Option<Child>>) -> io::Result<()> {
    within(LIMIT, place, begin)
}

/// Children that are at work since an earlier call, by their places.
static AT_WORK: Mutex<BTreeMap<PathBuf, Child>> = Mutex::new(BTreeMap::new());

/// Has a child do something at a place, unless there is nothing to do: this is waited for. One that
/// is at work since an earlier call has to have ended first.
fn within(
    limit: Duration,
    place: &Path,
    begin: impl FnOnce() -> io::Result<Option<Child>>,
) -> io::Result<()> {
    let known = lock(&AT_WORK).remove(place);
    known.map_or(Ok(()), |child| wait(LOOK, place, child))?;
    begin()?.map_or(Ok(()), |child| wait(limit, place, child))
}

/// Waits for a child to end, for so long.
fn wait(limit: Duration, place: &Path, mut child: Child) -> io::Result<()> {
    let end = Instant::now() + limit;
    let ended = loop {
        match child.try_wait()? {
            Some(ended) => break ended,
            None if Instant::now() > end => {
                lock(&AT_WORK).insert(place.to_owned(), child);
                return Err(late(place));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    let mut said = String::new();
    child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut said)).transpose()?;
    match ended.success() {
        true => Ok(()),
        false => Err(named(place, &io::Error::other(said.trim().to_owned()))),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Folders that the kernel makes in one, by the folder that that is in, or its name.
    const MADE: [(&str, &[&str]); 5] = [
        ("tpgt_1", &["lun", "acls"]),
        ("iblock_7241", &["wwn", "attrib", "alua/default_tg_pt_gp"]),
        ("acls", &["attrib"]),
        ("subsystems", &["namespaces", "allowed_hosts"]),
        ("ports", &["subsystems", "ana_groups"]),
    ];

    /// What stands for the kernel makes these in a folder.
    pub fn take_attributes(folder: &Path) {
        let names = [name_of(folder), folder.parent().map(name_of).unwrap_or_default()];
        let made = MADE.iter().filter(|(of, _)| names.iter().any(|own| own == of));
        for own in made.flat_map(|(_, made)| made.iter()) {
            fs::create_dir_all(folder.join(own)).expect("made");
        }
    }

    /// Files of the kernel's go with their folder, and so do folders that it made there.
    pub fn let_go_of_attributes(folder: &Path) {
        let made: Vec<&str> =
            MADE.iter().flat_map(|(_, made)| made.iter()).flat_map(|own| own.split('/')).collect();
        for file in fs::read_dir(folder).into_iter().flatten().flatten().map(|own| own.path()) {
            let name = name_of(&file);
            if file.is_file() && !file.is_symlink() {
                fs::remove_file(&file).expect("removed");
            } else if made.contains(&&*name) || name.starts_with("stat") || name.ends_with("port") {
                let_go_of_attributes(&file);
                // What somebody made in it stays.
                let _ = fs::remove_dir(&file);
            }
        }
    }

    /// Waits until something is so that is to become so.
    pub fn until(mut is_done: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !is_done() {
            assert!(Instant::now() < end, "it never is");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_waits_is_left_to_its_child() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("place");
        let sleep = |seconds: &str| {
            let mut own = Command::new("sleep");
            own.arg(seconds).stderr(Stdio::piped()).spawn().map(Some)
        };
        apart(&place, || sleep("0")).expect("ended");
        apart(&place, || Ok(None)).expect("nothing to do");
        // It is at work for longer than is waited for.
        let told = within(LOOK, &place, || sleep("0.3")).expect_err("waits").to_string();
        assert_eq!(told, "nvmet waits for what is under way");
        let begun = std::cell::Cell::new(0);
        let begin = || {
            begun.set(begun.get() + 1);
            Ok(None)
        };
        until(|| apart(&place, begin).is_ok());
        assert_eq!(begun.get(), 1, "what is there is looked at once it has ended");
        apart(&place, begin).expect("nothing to do");
        assert_eq!(begun.get(), 2, "none is at work");
    }

    #[test]
    fn what_is_there_again_goes_once_the_earlier_child_has_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("place");
        fs::create_dir(&place).expect("made");
        let mut sleep = Command::new("sleep");
        let sleep = || sleep.arg("0.2").stderr(Stdio::piped()).spawn().map(Some);
        within(LOOK, &place, sleep).expect_err("waits");
        until(|| remove_folder(&place).is_ok());
        assert!(!place.exists());
    }

    #[test]
    fn what_a_child_says_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("acls");
        fs::create_dir_all(inner.join("other")).expect("made");
        let error = remove_folder(&inner).expect_err("it has another").to_string();
        assert!(error.contains("not empty"), "{error}");
        fs::remove_dir(inner.join("other")).expect("removed");
        symlink("/", inner.join(LINK)).expect("made");
        remove_with_links(&inner).expect("removed");
        remove_with_links(&inner).expect("was gone");
        assert!(!inner.exists());
    }
}

//! One export: what is there of it, and what is done so that it is as it is wanted.
//!
//! Its file is over the path that the daemon says, or, if it is a device, over one in the folder of
//! this process: `ID.N`, where N is another one than that of what is still there. Where a file is
//! mounted, and whether what is below was made for it, stands in `ID.at` there, before it is.

use crate::mounts::{self, Fresh};
use crate::wire::{FileLook, Kind, Standing, State, Wanted};
use crate::{health, loops};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What a keeper needs of the process that it is in.
pub trait Host {
    /// Hands the daemon descriptors of an export's file; nothing stays here. What is wanted of the
    /// export from then on.
    ///
    /// # Errors
    /// Why it has not taken them.
    fn attach(&self, id: &str, look: FileLook, own: Vec<OwnedFd>) -> Result<Wanted, String>;

    /// The folder of this process.
    fn folder(&self) -> &Path;

    /// Data cores of the daemon.
    fn cores(&self) -> u16;
}

/// How it went.
struct Outcome {
    state: State,
    problem: Option<String>,
    device: Option<String>,
}

impl Outcome {
    const fn new(state: State) -> Self {
        Self { state, problem: None, device: None }
    }

    fn why(state: State, why: impl ToString) -> Self {
        Self { problem: Some(why.to_string()), ..Self::new(state) }
    }
}

/// Makes of what is there what is wanted. What is wanted once descriptors were handed over takes
/// its place.
pub fn converge(host: &impl Host, wanted: &mut Wanted) -> Standing {
    let Outcome { state, problem, device } = match (wanted.suspended, wanted.leaving) {
        (true, _) => Outcome::why(State::Failed, "its array does not run"),
        (false, true) => leave(host, wanted),
        (false, false) => serve(host, wanted),
    };
    let (id, revision, checked) = (wanted.id.clone(), wanted.revision, health::now());
    Standing { id, revision, state, problem, device, checked }
}

fn link(wanted: &Wanted) -> Option<PathBuf> {
    loops::link(&wanted.array, &wanted.volume)
}

/// Says where an export's file is mounted.
fn mark_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.at"))
}

/// What a mark says: the path, and whether what is below was made for the export.
struct Mark {
    path: PathBuf,
    is_made: bool,
}

impl Mark {
    fn read(folder: &Path, id: &str) -> Option<Self> {
        let bytes = std::fs::read(mark_of(folder, id)).ok()?;
        let (first, path) = bytes.split_first()?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()));
        Some(Self { path, is_made: *first == b'+' })
    }

    fn write(&self, folder: &Path, id: &str) -> io::Result<()> {
        let sign: &[u8] = if self.is_made { b"+" } else { b"-" };
        let (mark, new) = (mark_of(folder, id), folder.join(format!("{id}.new")));
        std::fs::write(&new, [sign, self.path.as_os_str().as_bytes()].concat())?;
        std::fs::rename(new, mark)
    }
}

/// Where files of an export are mounted, by this process or one before it: each path once.
fn mounted(folder: &Path, id: &str) -> io::Result<Vec<PathBuf>> {
    let mark = Mark::read(folder, id).map(|mark| mark.path);
    let is_ours = |path: &Path| path.parent() == Some(folder) || mark.as_deref() == Some(path);
    let own = mounts::all(folder)?.into_iter().filter(|own| own.id.as_deref() == Some(id));
    let mut paths: Vec<_> = own.map(|own| own.path).filter(|path| is_ours(path)).collect();
    paths.dedup();
    Ok(paths)
}

fn serve(host: &impl Host, wanted: &mut Wanted) -> Outcome {
    let outcome = match try_to_serve(host, wanted) {
        // Somebody unmounted what cores serve, and has it open; what is there is dead.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTCONN) => {
            wanted.attached = false;
            try_to_serve(host, wanted)
        }
        other => other,
    };
    match outcome {
        Ok(device) => Outcome { device, ..Outcome::new(State::Ok) },
        Err(why) => Outcome::why(State::Failed, why),
    }
}

/// Where its file is to be; of a device, in which folder.
fn place(host: &impl Host, wanted: &Wanted) -> io::Result<PathBuf> {
    match &wanted.kind {
        Kind::Device => Ok(host.folder().to_owned()),
        Kind::File(path) => {
            let path = Path::new(path);
            let own = mounts::resolved(path).map_err(|error| named(path, &error))?;
            match own.starts_with(host.folder()) {
                true => Err(named(path, &io::Error::other("it is in the directory of services"))),
                false => Ok(own),
            }
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

fn try_to_serve(host: &impl Host, wanted: &mut Wanted) -> io::Result<Option<String>> {
    let (id, place) = (wanted.id.clone(), place(host, wanted)?);
    let is_device = wanted.kind == Kind::Device;
    let mut there = mounted(host.folder(), &id)?;
    let is_in_place = |path: &PathBuf| match is_device {
        true => path.parent() == Some(&*place),
        false => *path == place,
    };
    // Of several, which a process left that was killed in between, nobody knows which is alive.
    if !wanted.attached || there.len() > 1 || !there.iter().all(is_in_place) {
        there.drain(..).for_each(|path| end_at_once(host.folder(), &id, &path));
        wanted.attached = false;
    }
    let path = match there.pop() {
        Some(path) => path,
        None => mount(host, wanted, place)?,
    };
    // By this the kernel learns of another size.
    let size = std::fs::metadata(&path)?.len();
    if size != wanted.bytes {
        let what = format!("{} has {size} bytes, not {}", path.display(), wanted.bytes);
        return Err(io::Error::other(what));
    }
    if !is_device {
        health::read_a_block(&path)?;
        return Ok(None);
    }
    let device = match loops::find(&path).into_iter().next() {
        Some(device) => device,
        None => loops::make(&path, wanted.block_bytes)?,
    };
    if loops::bytes(&device)? != wanted.bytes {
        loops::resize(&device)?;
    }
    let link = link(wanted).ok_or_else(|| io::Error::other("its name can't be that of a link"))?;
    loops::set_link(&link, &device, host.folder()).map_err(|error| named(&link, &error))?;
    health::read_a_block(Path::new(&device))?;
    Ok(Some(device))
}

fn mount(host: &impl Host, wanted: &mut Wanted, place: PathBuf) -> io::Result<PathBuf> {
    let (folder, id) = (host.folder(), wanted.id.clone());
    let path = match wanted.kind {
        Kind::File(_) => {
            let is_there = std::fs::symlink_metadata(&place).is_ok();
            let known = Mark::read(folder, &id).filter(|mark| mark.path == place);
            let is_made = !is_there || known.is_some_and(|mark| mark.is_made);
            Mark { path: place.clone(), is_made }.write(folder, &id)?;
            place
        }
        Kind::Device => {
            let at = |number: u32| place.join(format!("{id}.{number}"));
            let is_free = |path: &PathBuf| std::fs::symlink_metadata(path).is_err();
            (0..).map(at).find(is_free).unwrap_or_else(|| at(0))
        }
    };
    let fresh = mounts::make(&path, (&id, folder), host.cores());
    let Fresh { look, descriptors, is_new } = fresh.map_err(|error| named(&path, &error))?;
    match host.attach(&id, look, descriptors) {
        Ok(now) => {
            *wanted = now;
            Ok(path)
        }
        Err(why) => {
            if mounts::detach(&path).is_ok() && is_new {
                let _ = std::fs::remove_file(&path);
            }
            Err(named(&path, &io::Error::other(why)))
        }
    }
}

/// Removes the file below what was mounted, if it was made for that, and the mark.
fn remove_below(folder: &Path, id: &str, path: &Path) {
    let mark = Mark::read(folder, id).filter(|mark| mark.path == path);
    let is_made = mark.as_ref().is_some_and(|mark| mark.is_made);
    let is_empty =
        std::fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.len() == 0);
    if is_empty && (is_made || path.parent() == Some(folder)) {
        let _ = std::fs::remove_file(path);
    }
    if mark.is_some() {
        let _ = std::fs::remove_file(mark_of(folder, id));
    }
}

fn leave(host: &impl Host, wanted: &Wanted) -> Outcome {
    let folder = host.folder();
    let outcome = mounted(folder, &wanted.id)
        .and_then(|all| all.iter().try_for_each(|path| end_if_idle(folder, wanted, path)));
    match outcome {
        Ok(()) => {
            remove_left(folder, &wanted.id);
            Outcome::new(State::Gone)
        }
        Err(why) => Outcome::why(State::Busy, why),
    }
}

/// Ends a mount and its device, unless somebody uses them.
fn end_if_idle(folder: &Path, wanted: &Wanted, path: &Path) -> io::Result<()> {
    let devices = devices_over(folder, path);
    if let Some(user) = devices.iter().find_map(|device| loops::user(device)) {
        return Err(io::Error::other(user));
    }
    for device in devices {
        // Before the number may be another's.
        if let Some(link) = link(wanted) {
            loops::remove_link(&link, &device);
        }
        if !loops::end(&device, path)? {
            return Err(io::Error::other(format!("{device} is in use")));
        }
    }
    if !mounts::is_on_top(path, &wanted.id, folder)? {
        return Err(named(path, &io::Error::other("something else is mounted over it")));
    }
    mounts::end(path).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => io::Error::other(format!("{} is in use", path.display())),
        _ => named(path, &error),
    })?;
    remove_below(folder, &wanted.id, path);
    Ok(())
}

/// Devices that were made here over a file: of one that a volume is, none were.
fn devices_over(folder: &Path, path: &Path) -> Vec<String> {
    if path.parent() == Some(folder) { loops::find(path) } else { Vec::new() }
}

/// Ends a mount that nobody serves any more, and its device: what is open ends once it is closed.
fn end_at_once(folder: &Path, id: &str, path: &Path) {
    for device in devices_over(folder, path) {
        loops::remove_links_to(&device);
        let _ = loops::detach(&device);
    }
    while mounts::is_on_top(path, id, folder).unwrap_or(false) {
        if mounts::detach(path).is_err() {
            return;
        }
    }
    remove_below(folder, id, path);
}

/// Ends all that is there of an export that is wanted no more, whoever uses it.
pub fn end_all(folder: &Path, id: &str) {
    for path in mounted(folder, id).unwrap_or_default() {
        end_at_once(folder, id, &path);
    }
    remove_left(folder, id);
}

/// Removes what a process left of an export that it was about to mount, or had unmounted.
fn remove_left(folder: &Path, id: &str) {
    if let Some(mark) = Mark::read(folder, id) {
        remove_below(folder, id, &mark.path);
    }
    let own = |name: &str| name.strip_prefix(id).is_some_and(|rest| rest.starts_with('.'));
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if file.file_name().to_str().is_some_and(own) {
            // What is mounted stays.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// The exports of which something is left: mounted, or in the folder.
pub fn left(folder: &Path) -> Vec<String> {
    let mounts = mounts::all(folder).unwrap_or_default();
    let mut ids: Vec<String> = mounts.into_iter().filter_map(|own| own.id).collect();
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name().into_string().unwrap_or_default();
        ids.extend(name.split_once('.').map(|(id, _)| id.to_owned()));
    }
    ids.sort();
    ids.dedup();
    ids
}

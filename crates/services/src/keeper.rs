//! One export: what is there of it, and what is done so that it is as it is wanted.
//!
//! Its file is over the path that the daemon says, or, if it is a device, over one in the folder of
//! this process: `ID.N`, where N is another one each time that it is mounted. So the loop device of
//! a mount that is dead, and which somebody has still open, is never taken for that of the next.

use crate::mounts::{self, Mounted, Target};
use crate::wire::{FileLook, Kind, Standing, State, Wanted};
use crate::{health, loops};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What a keeper needs of the process that it is in.
pub trait Host {
    /// Hands the daemon descriptors of an export's file; nothing stays here. As of which revision
    /// it is wanted as attached.
    ///
    /// # Errors
    /// Why it has not taken them.
    fn attach(&self, id: &str, look: FileLook, descriptors: Vec<OwnedFd>) -> Result<u64, String>;

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

/// Makes of what is there what is wanted. Takes what it has handed over into account.
pub fn converge(host: &impl Host, wanted: &mut Wanted) -> Standing {
    let outcome = if wanted.leaving { leave(host, wanted) } else { serve(host, wanted) };
    let Outcome { state, problem, device } = outcome;
    let link = device.is_some().then(|| link(wanted).display().to_string());
    let (id, revision, checked) = (wanted.id.clone(), wanted.revision, health::now());
    Standing { id, revision, state, problem, device, link, checked }
}

fn link(wanted: &Wanted) -> PathBuf {
    loops::link(&wanted.array, &wanted.volume)
}

/// What is mounted of an export.
pub fn mounts_of(host: &impl Host, id: &str) -> io::Result<Vec<Mounted>> {
    let mut own = mounts::all(host.folder())?;
    own.retain(|mounted| mounted.id == id);
    Ok(own)
}

fn serve(host: &impl Host, wanted: &mut Wanted) -> Outcome {
    match try_to_serve(host, wanted) {
        Ok(device) => Outcome { device, ..Outcome::new(State::Ok) },
        Err(why) => Outcome::why(State::Failed, why),
    }
}

fn try_to_serve(host: &impl Host, wanted: &mut Wanted) -> io::Result<Option<String>> {
    let mut there = mounts_of(host, &wanted.id)?;
    let is_in_place = |mounted: &Mounted| match &wanted.kind {
        Kind::File(path) => mounted.path == Path::new(path),
        Kind::Device => mounted.path.parent() == Some(host.folder()),
    };
    // Of several, which a process left that was killed in between, nobody knows which is alive.
    if !wanted.attached || there.len() > 1 || !there.iter().all(is_in_place) {
        there.drain(..).for_each(|mounted| end_at_once(host, &mounted));
        wanted.attached = false;
    }
    let path = match there.pop() {
        Some(mounted) => mounted.path,
        None => mount(host, wanted)?,
    };
    // By this the kernel learns of another size.
    let size = std::fs::metadata(&path)?.len();
    if size != wanted.bytes {
        let what = format!("{} has {size} bytes, not {}", path.display(), wanted.bytes);
        return Err(io::Error::other(what));
    }
    let Kind::Device = wanted.kind else {
        health::read_a_block(&path)?;
        return Ok(None);
    };
    let device = match loops::find(&path) {
        Some(device) => device,
        None => loops::make(&path, wanted.block_bytes)?,
    };
    if loops::bytes(&device)? != wanted.bytes {
        loops::resize(&device)?;
    }
    let link = link(wanted);
    loops::set_link(&link, &device)
        .map_err(|error| io::Error::other(format!("{}: {error}", link.display())))?;
    health::read_a_block(Path::new(&device))?;
    Ok(Some(device))
}

/// Where its file is to be.
fn place(host: &impl Host, wanted: &Wanted) -> PathBuf {
    match &wanted.kind {
        Kind::File(path) => PathBuf::from(path),
        Kind::Device => {
            let at = |number: u32| host.folder().join(format!("{}.{number}", wanted.id));
            (0..).map(at).find(|path| !path.exists()).unwrap_or_else(|| at(0))
        }
    }
}

fn mount(host: &impl Host, wanted: &mut Wanted) -> io::Result<PathBuf> {
    let path = place(host, wanted);
    let named = |error: io::Error| io::Error::other(format!("{}: {error}", path.display()));
    let target = mounts::target(&path).map_err(named)?;
    let made = mark(host, &wanted.id);
    if target.is_new && matches!(wanted.kind, Kind::File(_)) {
        std::fs::write(&made, path.as_os_str().as_encoded_bytes())?;
    }
    let outcome = hand_over(host, (&target, &path), wanted);
    if outcome.is_err() && target.is_new {
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_file(&made);
    }
    wanted.revision = outcome.map_err(named)?;
    wanted.attached = true;
    Ok(path)
}

fn hand_over(
    host: &impl Host,
    (target, path): (&Target, &Path),
    wanted: &Wanted,
) -> io::Result<u64> {
    let descriptors = target.mount((&wanted.id, host.folder()), host.cores())?;
    host.attach(&wanted.id, target.look()?, descriptors).map_err(|why| {
        let _ = mounts::detach(path);
        io::Error::other(why)
    })
}

/// Says that the file that an export is mounted over was made for it.
fn mark(host: &impl Host, id: &str) -> PathBuf {
    host.folder().join(format!("{id}.made"))
}

/// Removes the file that was mounted over, if it was made for that.
fn remove_target(host: &impl Host, mounted: &Mounted) {
    let own = mounted.path.parent() == Some(host.folder());
    let mark = mark(host, &mounted.id);
    let made =
        std::fs::read(&mark).is_ok_and(|path| path == mounted.path.as_os_str().as_encoded_bytes());
    let is_empty = std::fs::symlink_metadata(&mounted.path)
        .is_ok_and(|about| about.is_file() && about.len() == 0);
    if (own || made) && is_empty {
        let _ = std::fs::remove_file(&mounted.path);
    }
    if made {
        let _ = std::fs::remove_file(mark);
    }
}

fn leave(host: &impl Host, wanted: &Wanted) -> Outcome {
    let there = match mounts_of(host, &wanted.id) {
        Ok(there) => there,
        Err(why) => return Outcome::why(State::Busy, why),
    };
    for mounted in there {
        if let Err(why) = end_if_idle(host, wanted, &mounted) {
            return Outcome::why(State::Busy, why);
        }
    }
    Outcome::new(State::Gone)
}

/// Ends a mount and its device, unless somebody uses them.
fn end_if_idle(host: &impl Host, wanted: &Wanted, mounted: &Mounted) -> io::Result<()> {
    let path = &mounted.path;
    if let Some(device) = loops::find(path) {
        if loops::is_claimed(&device) || !loops::end(&device, path)? {
            return Err(io::Error::other(loops::user(&device)));
        }
        loops::remove_link(&link(wanted), &device);
    }
    mounts::end(path).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => io::Error::other(format!("{} is in use", path.display())),
        _ => io::Error::other(format!("{}: {error}", path.display())),
    })?;
    remove_target(host, mounted);
    Ok(())
}

/// Ends a mount that nobody serves any more, and its device: what is open ends once it is closed.
pub fn end_at_once(host: &impl Host, mounted: &Mounted) {
    if let Some(device) = loops::find(&mounted.path) {
        // The links of one that is not wanted any more are not known: they are found by where they
        // lead.
        loops::remove_links_to(&device);
        let _ = loops::detach(&device);
    }
    if mounts::detach(&mounted.path).is_ok() {
        remove_target(host, mounted);
    }
}

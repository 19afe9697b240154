//! One export: what is there of it, and what is done so that it is as it is wanted.
//!
//! Its file is over the path that the daemon says, or, if it is a device, over one in the folder of
//! this process: `ID.N`, where N is another one than that of what is still there. Where a file is
//! mounted, and whether what is below was made for it, stands in `ID.at` there, before it is.

use crate::device::{self, Served};
use crate::health::{self, Asker};
use crate::mounts::{self, Fresh};
use crate::ublk::{self, Driver};
use crate::wire::{FileLook, Files, Kind, Server, Shares, Standing, State, Wanted};
use crate::{blocks, fc, files, links, loops, targets};
use ::shares::system::replace;
use ::ublk::wire::control::{DeviceState, Info};
use rustix::io::Errno;
use rustix::process::Pid;
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

    /// Hands the daemon that by which it serves an export's ublk device, which has so many queues
    /// of so many requests; nothing stays here. What is wanted of the export from then on.
    ///
    /// # Errors
    /// Why it has not taken it.
    fn attach_device(&self, id: &str, queues: (u16, u16), own: OwnedFd) -> Result<Wanted, String>;

    /// The folder of this process.
    fn folder(&self) -> &Path;

    /// Data cores of the daemon.
    fn cores(&self) -> u16;

    /// Whether they have io_uring.
    fn has_rings(&self) -> bool;

    /// Has targets looked after as soon as a process ends that serves some.
    fn watch(&self, process: Pid);
}

/// How it went.
struct Outcome {
    state: State,
    problem: Option<String>,
    device: Option<String>,
    server: Option<Server>,
    sessions: Vec<String>,
    files: Option<Box<Files>>,
}

impl Outcome {
    const fn new(state: State) -> Self {
        let sessions = Vec::new();
        Self { state, problem: None, device: None, server: None, sessions, files: None }
    }

    fn why(state: State, why: impl ToString) -> Self {
        Self { problem: Some(why.to_string()), ..Self::new(state) }
    }
}

/// Makes of what is there what is wanted. What is wanted once descriptors were handed over takes
/// its place. How the export is, and whether all was done of one that is suspended: nobody looks at
/// that again by the clock.
pub fn converge(host: &impl Host, wanted: &mut Wanted, asker: &mut Asker) -> (Standing, bool) {
    let (outcome, is_done) = match (wanted.suspended, wanted.leaving) {
        (true, _) => suspend(host.folder(), &wanted.id),
        (false, true) => (leave(host, wanted), true),
        (false, false) => (serve(host, wanted, asker), true),
    };
    let Outcome { state, problem, device, server, sessions, files } = outcome;
    let (id, revision, checked) = (wanted.id.clone(), wanted.revision, health::now());
    (Standing { id, revision, state, problem, device, server, sessions, files, checked }, is_done)
}

/// What is there stays: whoever uses a device waits, or has errors. Initiators of a target would
/// have them, and so would whoever has it at a Fibre Channel port, and clients of shares: these
/// rest.
fn suspend(folder: &Path, id: &str) -> (Outcome, bool) {
    let rests = targets::rest(folder, id).and_then(|()| fc::rest(folder, id));
    let rests = rests.and_then(|()| files::rest(folder, id));
    let is_done = rests.is_ok();
    let why = rests.err().map_or_else(String::new, |why| format!(": {why}"));
    (Outcome::why(State::Failed, format!("its array does not run{why}")), is_done)
}

fn link(wanted: &Wanted) -> Option<PathBuf> {
    links::link(&wanted.array, &wanted.volume)
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
        put(folder, id, &mark_of(folder, id), &[sign, self.path.as_os_str().as_bytes()].concat())
    }
}

/// Writes an export's mark: whoever reads it meanwhile finds the one or the other.
pub fn put(folder: &Path, id: &str, mark: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(mark, &folder.join(format!("{id}.new")), bytes)
}

/// Where files of an export are mounted, by this process or one before it: each path once.
fn mounted(folder: &Path, id: &str) -> io::Result<Vec<PathBuf>> {
    let mark = Mark::read(folder, id).map(|mark| mark.path);
    let is_ours = |path: &Path| path.parent() == Some(folder) || mark.as_deref() == Some(path);
    let all = mounts::all(folder)?;
    let own = all.iter().filter(|own| own.id.as_deref() == Some(id) && is_ours(&own.path));
    let mut paths: Vec<_> = own.map(|own| own.path.clone()).collect();
    paths.dedup();
    Ok(paths)
}

fn serve(host: &impl Host, wanted: &mut Wanted, asker: &mut Asker) -> Outcome {
    let driver = match driver(host, wanted) {
        Ok(driver) => driver,
        Err(why) => return Outcome::why(State::Failed, why),
    };
    let outcome = match driver {
        Some((driver, found)) => {
            let known = found.map(|info| ublk::device(info.device));
            match serve_device(host, (&driver, found), wanted, asker) {
                // Whoever waits for it is told for which.
                Err(why) => Ok(Outcome { device: known, ..Outcome::why(State::Failed, why) }),
                well => well,
            }
        }
        None => match serve_file(host, wanted, asker) {
            // Somebody unmounted what cores serve, and has it open; what is there is dead.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOTCONN) => {
                wanted.attached = false;
                serve_file(host, wanted, asker)
            }
            other => other,
        },
    };
    outcome.unwrap_or_else(|why| Outcome::why(State::Failed, why))
}

/// The driver of ublk, if it is to be had by that, and the device that there is.
fn driver(host: &impl Host, wanted: &Wanted) -> io::Result<Option<(Driver, Option<Info>)>> {
    let (folder, id) = (host.folder(), &wanted.id);
    match &wanted.kind {
        Kind::File(_) => return Ok(None),
        Kind::Iscsi(own) if targets::server(host, id, own)? == Server::Tgt => return Ok(None),
        Kind::Iscsi(_) | Kind::Device | Kind::Ublk | Kind::Shares(_) => {}
        Kind::Fc(_) | Kind::NvmeFc(_) => {}
    }
    // Whatever there is meanwhile, requests wait at a device that is there.
    if let Some((driver, info)) = device::find(folder, id)? {
        return Ok(Some((driver, Some(info))));
    }
    let is_mounted = wanted.attached && !mounted(folder, id)?.is_empty();
    match wanted.kind {
        Kind::Device | Kind::Shares(_) if is_mounted || !host.has_rings() => Ok(None),
        // What of it can't be used is as good as none.
        Kind::Device | Kind::Shares(_) => Ok(Driver::load().unwrap_or_else(|error| {
            runtime::say(format_args!("palisade: loop devices are made, as ublk is not: {error}"));
            None
        })),
        _ if !host.has_rings() => Err(io::Error::other("the daemon has no io_uring")),
        _ => Driver::load()?.map(Some).ok_or_else(|| {
            let or = if wanted.kind == Kind::Ublk { ", or use --local" } else { "" };
            io::Error::other(format!("this kernel has no ublk; load ublk_drv (Linux 6.12){or}"))
        }),
    }
    .map(|driver| driver.map(|driver| (driver, None)))
}

fn serve_device(
    host: &impl Host,
    (driver, found): (&Driver, Option<Info>),
    wanted: &mut Wanted,
    asker: &mut Asker,
) -> io::Result<Outcome> {
    // What was there before the kernel had ublk is dead.
    for path in mounted(host.folder(), &wanted.id)? {
        files::end(host.folder(), &wanted.id)?;
        end_at_once(host.folder(), &wanted.id, &path);
    }
    if found.is_some_and(|info| info.state == DeviceState::Dead) {
        // Whoever serves it would have it for ever.
        targets::end(host.folder(), &wanted.id)?;
        fc::end(host.folder(), &wanted.id)?;
    }
    let is_other = found.is_some_and(|info| {
        blocks::bytes(&ublk::device(info.device)).is_ok_and(|bytes| bytes != wanted.bytes)
    });
    if is_other {
        let_size_change(host.folder(), wanted)?;
    }
    let is_held = fc::is_there(host.folder(), &wanted.id);
    let held = is_held.then(|| "it is served at its port".to_owned());
    let Served { device, note } = device::serve(host, driver, found, wanted, held)?;
    if let Kind::Shares(own) = &wanted.kind {
        let told = serve_files(host, (wanted, own), device, asker)?;
        return Ok(Outcome { problem: told.problem.or(note), ..told });
    }
    set_link(host, wanted, &device)?;
    if let Kind::Iscsi(_) = wanted.kind {
        let told = serve_target(host, wanted, Server::Lio, Path::new(&device))?;
        return Ok(Outcome { problem: told.problem.or(note), device: Some(device), ..told });
    }
    asker.read_a_block(Path::new(&device))?;
    if matches!(wanted.kind, Kind::Fc(_) | Kind::NvmeFc(_)) {
        return Ok(serve_at_port(host, wanted, device, note));
    }
    Ok(Outcome { problem: note, device: Some(device), ..Outcome::new(State::Ok) })
}

/// Has a device let go that has another size than it is to have, where that harms nobody: it keeps
/// its size as long as it is served, or mounted.
fn let_size_change(folder: &Path, wanted: &Wanted) -> io::Result<()> {
    match &wanted.kind {
        Kind::Iscsi(_) if targets::users(folder, &wanted.id).is_some_and(|all| all.is_empty()) => {
            targets::end(folder, &wanted.id)
        }
        Kind::Fc(_) | Kind::NvmeFc(_) => fc::let_size_change(folder, &wanted.id),
        Kind::Shares(own) if files::has_no_client(own) => files::rest(folder, &wanted.id),
        _ => Ok(()),
    }
}

/// Has a volume's device served at a Fibre Channel port; of the device there may be a note.
fn serve_at_port(
    host: &impl Host,
    wanted: &Wanted,
    device: String,
    note: Option<String>,
) -> Outcome {
    let told = match fc::serve(host, wanted, Path::new(&device)) {
        Ok(targets::Served { sessions, note: own }) => {
            Outcome { problem: own.or(note), sessions, ..Outcome::new(State::Ok) }
        }
        Err(why) => Outcome::why(State::Failed, why),
    };
    Outcome { device: Some(device), ..told }
}

/// Has a target served over a volume's device or file.
fn serve_target(
    host: &impl Host,
    wanted: &Wanted,
    server: Server,
    path: &Path,
) -> io::Result<Outcome> {
    let Kind::Iscsi(own) = &wanted.kind else { return Ok(Outcome::new(State::Ok)) };
    let told = targets::serve(host, (wanted, own), server, path);
    Ok(match told {
        Ok(targets::Served { sessions, note }) => {
            Outcome { problem: note, server: Some(server), sessions, ..Outcome::new(State::Ok) }
        }
        Err(why) => Outcome { server: Some(server), ..Outcome::why(State::Failed, why) },
    })
}

/// Has a file system on a volume's device served.
fn serve_files(
    host: &impl Host,
    (wanted, own): (&Wanted, &Shares),
    device: String,
    asker: &mut Asker,
) -> io::Result<Outcome> {
    asker.read_a_block(Path::new(&device))?;
    let of = format!("{}/{}", wanted.array, wanted.volume);
    let (state, problem, files) = files::serve(host, (&wanted.id, of), own, &device)?;
    Ok(Outcome { problem, files, device: Some(device), ..Outcome::new(state) })
}

fn set_link(host: &impl Host, wanted: &Wanted, device: &str) -> io::Result<()> {
    let link = link(wanted).ok_or_else(|| io::Error::other("its name can't be that of a link"))?;
    links::set_link(&link, device, (host.folder(), &wanted.id))
        .map_err(|error| named(&link, &error))
}

/// Where its file is to be; of a device, in which folder.
fn place(host: &impl Host, wanted: &Wanted) -> io::Result<PathBuf> {
    match &wanted.kind {
        Kind::File(path) => {
            let path = Path::new(path);
            let own = mounts::resolved(path).map_err(|error| named(path, &error))?;
            match own.starts_with(host.folder()) {
                true => Err(named(path, &io::Error::other("it is in the directory of services"))),
                false => Ok(own),
            }
        }
        _ => Ok(host.folder().to_owned()),
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", path.display()))
}

fn serve_file(host: &impl Host, wanted: &mut Wanted, asker: &mut Asker) -> io::Result<Outcome> {
    let (id, place) = (wanted.id.clone(), place(host, wanted)?);
    let is_device = matches!(wanted.kind, Kind::Device | Kind::Shares(_));
    let is_target = matches!(wanted.kind, Kind::Iscsi(_));
    let mut there = mounted(host.folder(), &id)?;
    let is_in_place = |path: &PathBuf| match is_device || is_target {
        true => path.parent() == Some(&*place),
        false => *path == place,
    };
    // Of several, which a process left that was killed in between, nobody knows which is alive.
    if !wanted.attached || there.len() > 1 || !there.iter().all(is_in_place) {
        if let Kind::Shares(_) = wanted.kind {
            // What it stands on is dead.
            files::rest(host.folder(), &id)?;
        }
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
        asker.read_a_block(&path)?;
        return serve_target(host, wanted, Server::Tgt, &path);
    }
    let device = match loops::one(&path) {
        Some(device) => device,
        None => loops::make(&path, wanted.block_bytes)?,
    };
    if blocks::bytes(&device)? != wanted.bytes {
        loops::resize(&device)?;
    }
    if let Kind::Shares(own) = &wanted.kind {
        return serve_files(host, (wanted, own), device, asker);
    }
    set_link(host, wanted, &device)?;
    asker.read_a_block(Path::new(&device))?;
    Ok(Outcome { device: Some(device), ..Outcome::new(State::Ok) })
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
        _ => {
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
    let outcome = device::is_at_hand(folder, &wanted.id)
        .and_then(|()| targets::let_go(folder, &wanted.id))
        .and_then(|()| fc::let_go(folder, &wanted.id))
        .and_then(|()| files::leave(folder, &wanted.id))
        .and_then(|()| device::leave(folder, &wanted.id))
        .and_then(|()| mounted(folder, &wanted.id))
        .and_then(|all| all.iter().try_for_each(|path| end_if_idle(folder, wanted, path)))
        .and_then(|()| targets::end(folder, &wanted.id));
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
    if let Some(user) = devices.iter().find_map(|device| blocks::user(device)) {
        return Err(io::Error::other(user));
    }
    for device in devices {
        // Before the number may be another's.
        if let Some(link) = link(wanted) {
            links::remove_link(&link, &device);
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
        links::remove_links_to(&device);
        let _ = loops::detach(&device);
    }
    while mounts::is_on_top(path, id, folder).unwrap_or(false) {
        if mounts::detach(path).is_err() {
            return;
        }
    }
    remove_below(folder, id, path);
}

/// Ends all that is there of an export that is wanted no more, whoever uses it; whether its device
/// is gone.
pub fn end_all(folder: &Path, id: &str) -> bool {
    // A device that waits for its server ends first: what its target has under way waits, too.
    let waits = device::is_at_hand(folder, id).is_err();
    let ended = if waits { device::end(folder, id) } else { Ok(()) };
    let ended = ended.and_then(|()| targets::end(folder, id)).and_then(|()| fc::end(folder, id));
    if let Err(why) = ended.and_then(|()| files::end(folder, id)) {
        runtime::say(format_args!("palisade: who serves export {id}: {why}"));
        return false;
    }
    for path in mounted(folder, id).unwrap_or_default() {
        end_at_once(folder, id, &path);
    }
    match device::end(folder, id) {
        Ok(()) => remove_left(folder, id),
        Err(why) => {
            // What says that it is there stays.
            runtime::say(format_args!("palisade: the device of export {id}: {why}"));
            return false;
        }
    }
    true
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
    let mut ids: Vec<String> = mounts.iter().filter_map(|own| own.id.clone()).collect();
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name().into_string().unwrap_or_default();
        ids.extend(name.split_once('.').map(|(id, _)| id.to_owned()));
    }
    ids.sort();
    ids.dedup();
    ids
}

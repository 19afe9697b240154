//! The process: its connection to the daemon, and a thread for each export.
//!
//! States of the connection: none (asked for every [`AGAIN`]; exports stay as they are) → there
//! (the daemon has said what is wanted) → none. Of an export: *idle* → *at work* → *idle*; one at
//! work for longer than [`SILENT`] is told as failed meanwhile: its drives, or whoever serves it,
//! don't answer.
//!
//! Invariants: what is wanted counts only while the daemon is there; a keeper's thread ends once
//! its export is wanted no more and nothing is left of it.

use crate::keeper::{self, Host};
use crate::wire::{
    FileLook, Frame, Kind, Order, Receiver, Standing, State, UserChange, Wanted, Word,
};
use crate::{CHECK, files, health, lock, targets};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::num::NonZeroI32;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

/// How often the daemon is asked for that is not there.
const AGAIN: Duration = Duration::from_millis(500);
/// How long an export may be at work before that is told.
const SILENT: Duration = Duration::from_secs(20);
/// The same of one whose file system is made, and of one whose servers may be starting.
const MAKES: Duration = Duration::from_secs(600);
const STARTS: Duration = Duration::from_secs(60);
/// How often it is looked whether one is.
const LOOK: Duration = Duration::from_secs(5);
/// How long the daemon may take to take what is said.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one export's thread goes by.
#[derive(Default)]
struct Goal {
    /// Nothing: it is not wanted any more.
    wanted: Option<Wanted>,
    /// The thread has not seen it.
    is_new: bool,
    /// Since when it is at work, and on what: [`Wanted::revision`].
    work: Option<(Instant, u64)>,
    /// How it went with its descriptors: what is wanted from then on, or why not.
    attached: Option<Result<Wanted, String>>,
    /// Changes of users that are asked for, by their numbers.
    users: Vec<(u64, String, UserChange)>,
}

#[derive(Default)]
struct Inner {
    /// By connection: how many there were, and the one that is there.
    connection: (u64, Option<Arc<UnixStream>>),
    cores: u16,
    rings: bool,
    goals: BTreeMap<String, Goal>,
    /// Processes that serve targets, whose end is waited for.
    watched: BTreeSet<NonZeroI32>,
    /// Nothing is begun any more.
    ends: bool,
}

/// The one of this process, for [`end`].
static OWN: OnceLock<Weak<Shared>> = OnceLock::new();

struct Shared {
    /// Itself, for threads of its own.
    me: Weak<Self>,
    folder: PathBuf,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// An export's thread has done its work: who ends waits for that, and no other thread.
    rested: Condvar,
    /// Held while a frame is sent.
    sending: Mutex<()>,
}

/// Does what the daemon wants, whose socket for that this is, until the process is ended. Its files
/// are in a folder that nobody else may use.
///
/// # Errors
/// The folder can't be had, or the daemon refuses: another process does it.
pub fn run(socket: &Path, folder: &Path) -> Result<core::convert::Infallible, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("only root may mount".to_owned());
    }
    let named = |error: io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder.parent().unwrap_or(folder)).map_err(named)?;
    let _lock = take(folder).map_err(named)?;
    let folder = folder.canonicalize().map_err(named)?;
    let (inner, changed, rested, sending) = Default::default();
    if let Err(error) = targets::sweep(&folder) {
        runtime::say(format_args!("palisade: what served targets before: {error}"));
    }
    let own =
        |me: &Weak<Shared>| Shared { me: me.clone(), folder, inner, changed, rested, sending };
    let shared = Arc::new_cyclic(own);
    // There is one.
    let _ = OWN.set(Arc::downgrade(&shared));
    let looking = shared.clone();
    std::thread::spawn(move || looking.watch());
    let mut is_said = false;
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => {
                is_said = false;
                shared.follow(stream)?;
                runtime::say(format_args!("palisade: the daemon has gone: what it serves stays"));
            }
            Err(error) if !is_said => {
                is_said = true;
                let at = socket.display();
                runtime::say(format_args!("palisade: waits for the daemon at {at}: {error}"));
            }
            Err(_) => {}
        }
        std::thread::sleep(AGAIN);
    }
}

/// Has file systems that are shared written and unmounted before the machine stops: what they stand
/// on stops, too. Nothing is made any more from here on.
pub fn end() {
    let Some(own) = OWN.get().and_then(Weak::upgrade) else { return };
    let mut inner = own.inner();
    inner.ends = true;
    let due = Instant::now() + STARTS;
    while inner.goals.values().any(|goal| goal.work.is_some()) && Instant::now() < due {
        let guard = own.rested.wait_timeout(inner, AGAIN);
        inner = guard.unwrap_or_else(|error| error.into_inner()).0;
    }
    drop(inner);
    for id in keeper::left(&own.folder) {
        if let Err(why) = files::rest(&own.folder, &id) {
            runtime::say(format_args!("palisade: shares of export {id}: {why}"));
        }
    }
}

/// Ends all that `palisade services` left of its exports in a folder, whoever uses it; for whoever
/// ends a daemon for good. Nobody else may have the folder meanwhile.
///
/// # Errors
/// `palisade services` runs there, or something can't be ended.
pub fn clear(folder: &Path) -> io::Result<()> {
    let Ok(folder) = folder.canonicalize() else { return Ok(()) };
    let _lock = take(&folder)?;
    targets::sweep(&folder)?;
    let all = keeper::left(&folder);
    match all.into_iter().filter(|id| !keeper::end_all(&folder, id)).count() {
        0 => Ok(()),
        left => Err(io::Error::other(format!("{}: {left} exports stay", folder.display()))),
    }
}

/// How long an export of this kind may be at work before that is told.
const fn silent(kind: &Kind) -> Duration {
    match kind {
        Kind::Shares(own) if own.make.is_some() => MAKES,
        Kind::Shares(_) => STARTS,
        _ => SILENT,
    }
}

/// Takes the folder for this process alone.
fn take(folder: &Path) -> io::Result<File> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let about = std::fs::symlink_metadata(folder)?;
    if !about.is_dir() || about.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it is no directory of this user's"));
    }
    let own = File::open(folder)?;
    flock(&own, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| io::Error::other("another `palisade services` has it"))?;
    Ok(own)
}

impl Shared {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Does what the daemon says on a connection, until that ends.
    fn follow(self: &Arc<Self>, stream: UnixStream) -> Result<(), String> {
        let stream = Arc::new(stream);
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let mut receiver = Receiver::default();
        loop {
            match receiver.receive::<Order>(stream.as_fd()) {
                Ok(None) => {}
                Ok(Some((Order::Wanted { cores, rings, exports }, _))) => {
                    self.want(&stream, (cores, rings), exports);
                }
                Ok(Some((Order::Attached { id, outcome }, _))) => {
                    if let Some(goal) = self.inner().goals.get_mut(&id) {
                        goal.attached = Some(outcome);
                    }
                    self.changed.notify_all();
                }
                Ok(Some((Order::User { id, number, user, change }, _))) => {
                    self.ask_for(&id, (number, user, change));
                }
                Ok(Some((Order::Refused(why), _))) => return Err(why),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Who waits for an answer waits no longer.
        self.inner().connection.1 = None;
        self.changed.notify_all();
        Ok(())
    }

    /// These are wanted, and no others.
    fn want(self: &Arc<Self>, stream: &Arc<UnixStream>, cores: (u16, bool), exports: Vec<Wanted>) {
        let left = keeper::left(&self.folder);
        let mut inner = self.inner();
        let is_first = inner.connection.1.is_none();
        if is_first {
            inner.connection = (inner.connection.0 + 1, Some(stream.clone()));
        }
        (inner.cores, inner.rings) = cores;
        let mut wanted: BTreeMap<String, Wanted> =
            exports.into_iter().map(|wanted| (wanted.id.clone(), wanted)).collect();
        // What an earlier process has left, too.
        for id in left.into_iter().chain(wanted.keys().cloned()).collect::<Vec<_>>() {
            if !inner.goals.contains_key(&id) {
                inner.goals.insert(id.clone(), Goal::default());
                let me = self.clone();
                std::thread::spawn(move || me.keep(&id));
            }
        }
        for (id, goal) in &mut inner.goals {
            let now = wanted.remove(id);
            let revision = |wanted: &Option<Wanted>| wanted.as_ref().map(|own| own.revision);
            // What was said before descriptors were handed over may come behind that.
            if is_first || revision(&now) > revision(&goal.wanted) || now.is_none() {
                (goal.wanted, goal.is_new) = (now, true);
            }
        }
        drop(inner);
        self.changed.notify_all();
        if is_first {
            // Nobody may be listening.
            let mut out = io::stdout();
            let _ = out.write_all(b"ready\n").and_then(|()| out.flush());
        }
    }

    /// Tells the daemon something. A connection that does not take it is ended.
    fn tell(&self, word: &Word, with: &[OwnedFd]) -> io::Result<()> {
        let stream = self.inner().connection.1.clone().ok_or(ErrorKind::NotConnected)?;
        let mut frame = Frame::new(word)?;
        let _own = lock(&self.sending);
        loop {
            match frame.send(stream.as_fd(), with) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let _ = stream.shutdown(std::net::Shutdown::Both);
                    return Err(error);
                }
            }
        }
    }

    /// A user of an export's shares is to change, as soon as its thread comes to it.
    fn ask_for(&self, id: &str, change: (u64, String, UserChange)) {
        let mut inner = self.inner();
        let Some(goal) = inner.goals.get_mut(id).filter(|goal| goal.wanted.is_some()) else {
            drop(inner);
            let outcome = Err("its file system is not shared".to_owned());
            let _ = self.tell(&Word::User { number: change.0, outcome }, &[]);
            return;
        };
        goal.users.push(change);
        goal.is_new = true;
        drop(inner);
        self.changed.notify_all();
    }

    /// Changes users that are to change.
    fn change_users(&self, id: &str) {
        let own = self.inner().goals.get_mut(id).map(|goal| core::mem::take(&mut goal.users));
        for (number, user, change) in own.into_iter().flatten() {
            let outcome = files::change(&self.folder, id, &user, &change);
            let outcome = outcome.map_err(|why| why.to_string());
            let _ = self.tell(&Word::User { number, outcome }, &[]);
        }
    }

    /// An export's thread.
    fn keep(self: Arc<Self>, id: &str) {
        let mut asker = health::Asker::default();
        while let Some((connection, wanted)) = self.next(id) {
            // Whoever asked is answered, though its export may have gone.
            self.change_users(id);
            let Some(mut wanted) = wanted else {
                let is_gone = keeper::end_all(&self.folder, id);
                self.rest(id, None);
                if !is_gone {
                    self.again(id);
                }
                continue;
            };
            let asked = (wanted.leaving, wanted.suspended);
            let (standing, is_done) = keeper::converge(&*self, &mut wanted, &mut asker);
            let again = asked != (wanted.leaving, wanted.suspended);
            if self.rest(id, Some((connection, wanted, again))) {
                // A daemon that has gone wants it anew.
                let _ = self.tell(&Word::Are(vec![standing]), &[]);
            }
            if !is_done {
                // A target that does not rest gives its initiators errors.
                self.again(id);
            }
        }
    }

    /// An export's thread has done what was wanted on a connection, and whether it has to do more;
    /// whether the connection is still there.
    fn rest(&self, id: &str, done: Option<(u64, Wanted, bool)>) -> bool {
        let mut inner = self.inner();
        let there = inner.connection.0;
        let Some(goal) = inner.goals.get_mut(id) else { return false };
        goal.work = None;
        self.rested.notify_all();
        let Some((connection, done, again)) = done else { return false };
        let known = goal.wanted.as_ref().map(|own| own.revision);
        if connection == there && known.is_some_and(|known| known <= done.revision) {
            // It was changed by what was handed over, of which the daemon tells, too.
            (goal.wanted, goal.is_new) = (Some(done), again);
        }
        connection == there
    }

    /// An export's thread has to do the same once more, later.
    fn again(&self, id: &str) {
        std::thread::sleep(CHECK);
        if let Some(goal) = self.inner().goals.get_mut(id) {
            goal.is_new = true;
        }
    }

    /// What an export's thread has to do next, and on which connection that was wanted; `None` once
    /// there is nothing of it.
    fn next(&self, id: &str) -> Option<(u64, Option<Wanted>)> {
        let mut inner = self.inner();
        let due = Instant::now() + CHECK;
        loop {
            let is_there = inner.connection.1.is_some() && !inner.ends;
            let connection = inner.connection.0;
            let goal = inner.goals.get_mut(id)?;
            let is_suspended = goal.wanted.as_ref().is_some_and(|wanted| wanted.suspended);
            let is_due = goal.is_new || Instant::now() >= due && !is_suspended;
            if is_there && is_due {
                let was_new = core::mem::take(&mut goal.is_new);
                if goal.wanted.is_none() && !was_new {
                    inner.goals.remove(id);
                    return None;
                }
                let revision = goal.wanted.as_ref().map_or(0, |own| own.revision);
                goal.work = Some((Instant::now(), revision));
                goal.attached = None;
                return Some((connection, goal.wanted.clone()));
            }
            let left = due.saturating_duration_since(Instant::now());
            let waited = if is_there && !is_suspended { left } else { CHECK };
            let guard = self.changed.wait_timeout(inner, waited);
            inner = guard.unwrap_or_else(|error| error.into_inner()).0;
        }
    }

    /// Tells of exports that are at work for too long.
    fn watch(&self) {
        loop {
            std::thread::sleep(LOOK);
            for (id, since, revision) in self.late() {
                let standing = Standing {
                    id,
                    revision,
                    state: State::Failed,
                    problem: Some(format!("no answer for {since} s")),
                    device: None,
                    server: None,
                    sessions: Vec::new(),
                    files: None,
                    checked: health::now(),
                };
                let _ = self.tell(&Word::Are(vec![standing]), &[]);
            }
        }
    }

    /// Exports that are at work for too long: for how many seconds, and on what.
    fn late(&self) -> Vec<(String, u64, u64)> {
        let inner = self.inner();
        let late = inner.goals.iter().filter_map(|(id, goal)| {
            let (since, revision) = goal.work?;
            let since = since.elapsed();
            let is_late = goal.wanted.as_ref().is_some_and(|own| since > silent(&own.kind));
            is_late.then(|| (id.clone(), since.as_secs(), revision))
        });
        late.collect()
    }
}

impl Host for Shared {
    fn attach(&self, id: &str, look: FileLook, own: Vec<OwnedFd>) -> Result<Wanted, String> {
        self.hand_over(id, &Word::Attach { id: id.to_owned(), look }, own)
    }

    fn attach_device(
        &self,
        id: &str,
        (queues, depth): (u16, u16),
        own: OwnedFd,
    ) -> Result<Wanted, String> {
        let word = Word::AttachDevice { id: id.to_owned(), queues, depth };
        self.hand_over(id, &word, vec![own])
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn cores(&self) -> u16 {
        self.inner().cores.max(1)
    }

    fn has_rings(&self) -> bool {
        self.inner().rings
    }

    fn watch(&self, process: Pid) {
        let Some(me) = self.me.upgrade() else { return };
        if !self.inner().watched.insert(process.as_raw_nonzero()) {
            return;
        }
        // Without a thread it is seen by the next look.
        let name = "palisade-watch".to_owned();
        let _ = std::thread::Builder::new().name(name).spawn(move || me.wait_for(process));
    }
}

impl Shared {
    /// Waits for the end of a process that serves targets, and has all looked at then. One that
    /// ended soon is left to the next look, so that nothing is started over and over.
    fn wait_for(&self, process: Pid) {
        let begun = Instant::now();
        if let Ok(own) = pidfd_open(process, PidfdFlags::empty()) {
            let mut waits = [PollFd::new(&own, PollFlags::IN)];
            while poll(&mut waits, None) == Err(Errno::INTR) {}
        }
        let mut inner = self.inner();
        inner.watched.remove(&process.as_raw_nonzero());
        let has_target = |goal: &&mut Goal| {
            let is_served = |own: &Wanted| matches!(own.kind, Kind::Iscsi(_) | Kind::Shares(_));
            goal.wanted.as_ref().is_some_and(is_served)
        };
        if begun.elapsed() >= CHECK {
            inner.goals.values_mut().filter(has_target).for_each(|goal| goal.is_new = true);
            self.changed.notify_all();
        }
    }

    /// Hands the daemon descriptors of an export; none stays here. What is wanted of it from then
    /// on, or why it has not taken them.
    fn hand_over(
        &self,
        id: &str,
        word: &Word,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Wanted, String> {
        let begun = self.inner().connection.0;
        self.tell(word, &descriptors).map_err(|error| format!("the daemon: {error}"))?;
        drop(descriptors);
        let mut inner = self.inner();
        loop {
            if inner.connection.0 != begun || inner.connection.1.is_none() {
                return Err("the daemon has gone".to_owned());
            }
            let goal = inner.goals.get_mut(id).ok_or("it is not wanted any more")?;
            if let Some(outcome) = goal.attached.take() {
                return outcome;
            }
            let guard = self.changed.wait(inner);
            inner = guard.unwrap_or_else(|error| error.into_inner());
        }
    }
}

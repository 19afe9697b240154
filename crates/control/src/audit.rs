//! The audit log: a line for each change, login and refusal, in a chain of hashes.
//!
//! Purpose: who did what, from where, and what came of it, so that a line that was changed or taken
//! away is found. [`chain`] is the form of lines, [`files`] where they are kept.
//!
//! States of a change: intent (its line is durable before anything is done) → ended (a second line
//! says how), or not known (the daemon ended before: the next start says so).
//!
//! States of the log
//!
//! | state     | becomes   | when                                                             |
//! |-----------|-----------|------------------------------------------------------------------|
//! | in memory | -         | there is no state directory: the newest lines are here alone     |
//! | kept      | failing   | a write failed, or took longer than [`PATIENCE`]                 |
//! | failing   | kept      | a later attempt (every [`AGAIN`]) has written all that waits     |
//!
//! Who repairs an array must not be kept from it by a file system that is full or hangs: while the
//! log is failing changes go on, their lines wait in memory, and status says so. Of more lines than
//! [`MOST_WAITING`] the oldest are lost: [`files::verify`] says which are missing.
//!
//! Invariants
//! - Lines are in the chain in the order in which they were said, each once.
//! - A change begins after its line is durable, but for a log in memory or failing.
//! - A GET waits for nothing here but the moment in which a line is taken.
//! - Files are written by one thread, which is no other's.
//! - What is told of the writer changes under the lock of [`Inner`]: what it has just written is
//!   not said to fail.

pub mod chain;
pub mod files;
mod quiet;

use crate::caller::Caller;
use crate::lock::lock;
use crate::snapshot::now;
use crate::state::State;
use chain::{Follower, Hash, Line};
use core::fmt::Display;
use files::{Files, Found, Sink, Sizes};
use quiet::Quiet;
use redfish::error::Refusal;
use redfish::messages as say;
use redfish::view::{Ending, Entry, Error, Log, Verified};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How many lines are at hand for who reads the log.
const AT_HAND: usize = 4096;

/// How many lines a log in memory has.
const IN_MEMORY: usize = 1000;

/// Most lines that wait for a write.
const MOST_WAITING: usize = 4096;

/// So many lines may wait before somebody who says another waits for room.
const ROOM: u64 = 1024;

/// How long a change waits for its line to be durable.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long somebody waits for the log to be verified.
const VERIFIED: Duration = Duration::from_secs(120);

/// How often a write that failed is tried again.
const AGAIN: Duration = Duration::from_secs(3);

/// The most bytes of a text in a line.
const MOST_BYTES: usize = 4096;

/// The most bytes of what somebody asked for who is not known.
const MOST_BYTES_OF_NOBODY: usize = 256;

/// The first line of a daemon.
pub const STARTS: &str = concat!("the daemon ", env!("CARGO_PKG_VERSION"), " starts");

/// Who says what nobody asked for.
const DAEMON: &str = "daemon";

/// The log. Clones are the same log.
#[derive(Clone)]
pub struct Audit {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Mutex<Inner>,
    /// There is something to write, the daemon ends, or the writer has ended.
    work: Condvar,
    progress: watch::Sender<Progress>,
    /// The state directory, if lines are kept.
    dir: Option<PathBuf>,
    /// [`PATIENCE`]; tests have less.
    patience: Duration,
    /// Somebody verifies the log.
    verifying: AtomicBool,
    /// [`VERIFIED`]; tests have less.
    verified: Duration,
    /// Which refusals have a line.
    quiet: Mutex<Quiet>,
    /// When the log began here.
    start: Instant,
}

/// How far the writer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Progress {
    /// The number of the last line that is durable.
    durable: u64,
    /// Whether nobody should wait for it.
    is_failing: bool,
}

struct Inner {
    /// The number and hash of the last line.
    last: (u64, Hash),
    /// Lines that are not durable; in memory the newest.
    waiting: VecDeque<Arc<Line>>,
    /// Lines that were lost.
    lost: u64,
    /// The newest lines, for who reads them.
    log: Arc<Log>,
    problem: Option<String>,
    is_ending: bool,
    has_ended: bool,
}

/// The log of a state directory, as it was read.
pub struct Kept {
    files: Files,
    found: Found,
}

/// A change that was begun. Dropped before [`Open::end`], its end is not known.
pub struct Open {
    audit: Audit,
    entry: Option<Entry>,
}

/// How a request ended that is answered with a refusal.
fn ending_of(refusal: &Refusal) -> (Ending, Option<String>) {
    let message = refusal.messages.first().map(|message| message.id.clone());
    let name = message.as_deref().and_then(|id| id.rsplit('.').next());
    let late = [say::ACCOUNTS_LATE.name, say::ACCOUNTS_UNWRITTEN.name];
    let is_late = name.is_some_and(|name| late.contains(&name));
    let ending = match refusal.status {
        _ if is_late => Ending::NotKnown,
        409 | 500.. => Ending::Failed,
        _ => Ending::Refused,
    };
    (ending, message)
}

fn not_read(state: &State, why: &dyn Display) -> Error {
    Error::new(&say::AUDIT_NOT_READ, &[&state.dir().display(), why])
}

/// A text that is not longer than any in a line.
fn clipped(text: &str) -> String {
    clipped_to(text, MOST_BYTES)
}

fn clipped_to(text: &str, most: usize) -> String {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (kept, rest) = text.split_at(end);
    if rest.is_empty() { kept.to_owned() } else { format!("{kept}…") }
}

/// What somebody asked for, without a number yet.
fn asked(caller: &Caller, request: &str, what: &str, result: Ending) -> Entry {
    Entry {
        number: 0,
        time: now(),
        who: clipped(&caller.name),
        from: clipped(&caller.from),
        request: clipped(request),
        what: clipped(what),
        result,
        message: None,
        of: None,
    }
}

impl Audit {
    /// A log in memory; `problem` says why it is not kept, if it should be.
    pub fn in_memory(problem: Option<String>) -> Self {
        let log = Log { most: IN_MEMORY, ..Log::default() };
        Self::of(None, (0, Hash::default()), log, problem)
    }

    /// Reads the log of a state directory. Nothing is changed but that what is torn is cut off: who
    /// waits for it may give up.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn read(state: &State) -> Result<Kept, Error> {
        let read = Files::open(state.dir(), Sizes::default(), AT_HAND);
        let (files, found) = read.map_err(|error| not_read(state, &error))?;
        Ok(Kept { files, found })
    }

    /// The log of a state directory, which goes on where it ended.
    ///
    /// # Errors
    /// It can't be written.
    pub fn go_on(state: &State, Kept { files, found }: Kept) -> Result<Self, Error> {
        let entries = found.entries.into_iter().map(Arc::new).collect();
        let log = Log { entries, most: AT_HAND, is_kept: true };
        let last = found.last.unwrap_or_default();
        let audit = Self::of(Some(state.dir().to_owned()), last, log, None);
        audit.write_with(Box::new(files)).map_err(|error| not_read(state, &error))?;
        let torn = match found.torn {
            0 => String::new(),
            torn => format!("; {torn} bytes that a crash tore were cut off"),
        };
        audit.say(&format!("{STARTS}{torn}"), Ending::Ok);
        for open in found.open {
            let of = Some(open.number);
            audit.put(Entry { result: Ending::NotKnown, time: now(), of, ..open });
        }
        Ok(audit)
    }

    fn of(dir: Option<PathBuf>, last: (u64, Hash), log: Log, problem: Option<String>) -> Self {
        let inner = Inner {
            last,
            waiting: VecDeque::new(),
            lost: 0,
            log: Arc::new(log),
            problem,
            is_ending: false,
            has_ended: true,
        };
        let progress = Progress { durable: last.0, is_failing: dir.is_none() };
        let progress = watch::Sender::new(progress);
        let (inner, work) = (Mutex::new(inner), Condvar::new());
        let (patience, verifying, verified) = (PATIENCE, AtomicBool::new(false), VERIFIED);
        let (quiet, start) = (Mutex::default(), Instant::now());
        let shared =
            Shared { inner, work, progress, dir, patience, verifying, verified, quiet, start };
        Self { shared: Arc::new(shared) }
    }

    /// Starts the thread that writes.
    fn write_with(&self, sink: Box<dyn Sink>) -> std::io::Result<()> {
        let shared = self.shared.clone();
        self.shared.inner().has_ended = false;
        let thread = std::thread::Builder::new().name("palisade-audit".to_owned());
        let started = thread.spawn(move || shared.write(sink));
        self.shared.inner().has_ended = started.is_err();
        started.map(drop)
    }

    /// Puts a line at the end of the chain; its number.
    fn put(&self, entry: Entry) -> u64 {
        let mut inner = self.shared.inner();
        let number = inner.last.0 + 1;
        let entry = Entry { number, ..entry };
        let line = chain::line(&entry, &inner.last.1);
        inner.last = (number, line.hash);
        inner.waiting.push_back(Arc::new(line));
        let most = if self.shared.dir.is_some() { MOST_WAITING } else { IN_MEMORY };
        if inner.waiting.len() > most {
            inner.waiting.pop_front();
            inner.lost += 1;
        }
        // Copies the log only while somebody reads the one before.
        let log = Arc::make_mut(&mut inner.log);
        log.entries.push_back(Arc::new(entry));
        while log.entries.len() > log.most {
            log.entries.pop_front();
        }
        drop(inner);
        self.shared.work.notify_all();
        number
    }

    /// Waits until a line is durable, or nobody can say when it will be.
    async fn durable(&self, number: u64) {
        let mut progress = self.shared.progress.subscribe();
        let done = |own: &Progress| own.is_failing || own.durable >= number;
        let patience = self.shared.patience;
        if tokio::time::timeout(patience, progress.wait_for(done)).await.is_err() {
            self.shared.late(number);
        }
    }

    /// A change is about to begin; returns when that is durable.
    pub async fn begin(&self, caller: &Caller, request: &str, what: &str) -> Open {
        let entry = asked(caller, request, what, Ending::Intent);
        let number = self.put(entry.clone());
        let open = Open { audit: self.clone(), entry: Some(Entry { of: Some(number), ..entry }) };
        self.durable(number).await;
        open
    }

    /// Something was done that nothing announced, such as a login.
    pub async fn note(&self, caller: &Caller, request: &str, what: &str) {
        let number = self.put(asked(caller, request, what, Ending::Ok));
        self.durable(number.saturating_sub(ROOM)).await;
    }

    /// Something was not begun. `what` may be empty where nobody knows what was meant. Of many
    /// refusals some have no line ([`quiet`]).
    pub async fn refused(&self, caller: &Caller, request: &str, what: &str, refusal: &Refusal) {
        let Some(left_out) = self.shared.may_say(caller) else { return };
        let what = match left_out {
            0 => what.to_owned(),
            _ => format!("{what} ({left_out} refusals before this have no line)"),
        };
        let (result, message) = ending_of(refusal);
        let mut entry = Entry { message, ..asked(caller, request, what.trim_start(), result) };
        if caller.role.is_none() {
            entry.request = clipped_to(request, MOST_BYTES_OF_NOBODY);
        }
        let number = self.put(entry);
        self.durable(number.saturating_sub(ROOM)).await;
    }

    /// The daemon says something of itself.
    pub fn say(&self, what: &str, result: Ending) {
        let daemon = Entry {
            number: 0,
            time: now(),
            who: DAEMON.to_owned(),
            from: String::new(),
            request: String::new(),
            what: clipped(what),
            result,
            message: None,
            of: None,
        };
        self.put(daemon);
    }

    /// The newest lines.
    pub fn log(&self) -> Arc<Log> {
        self.shared.inner().log.clone()
    }

    /// Why lines are not kept that should be, and what became of them.
    pub fn problem(&self) -> Option<String> {
        let inner = self.shared.inner();
        let (problem, waiting) = (inner.problem.as_ref()?, inner.waiting.len());
        Some(match (&self.shared.dir, inner.lost) {
            (None, _) => problem.clone(),
            (Some(_), 0) => format!("{problem}; {waiting} lines wait in memory"),
            (Some(_), lost) => {
                format!("{problem}; {waiting} lines wait in memory, {lost} are lost")
            }
        })
    }

    /// Follows the chain through all lines that there are: for one who asks at a time, who waits no
    /// longer than [`VERIFIED`]. Reads the files: not for the control plane's thread.
    ///
    /// # Errors
    /// A file can't be read, or was not within that time; somebody else verifies it.
    pub fn verify(&self) -> std::io::Result<Verified> {
        if self.shared.verifying.swap(true, Ordering::AcqRel) {
            let busy = "it is being verified already; try again later";
            return Err(std::io::Error::new(ErrorKind::ResourceBusy, busy));
        }
        // To the end of the thread, which a file system that hangs may keep.
        let verifying = Verifying(self.shared.clone());
        let (tell, told) = mpsc::sync_channel(1);
        std::thread::Builder::new().name("palisade-verify".to_owned()).spawn(move || {
            let found = verifying.0.verify();
            drop(verifying);
            // Whoever asked may have given up.
            let _ = tell.send(found);
        })?;
        told.recv_timeout(self.shared.verified).unwrap_or_else(|_| {
            let late = format!("no answer within {} s", self.shared.verified.as_secs_f64());
            Err(std::io::Error::new(ErrorKind::TimedOut, late))
        })
    }

    /// The daemon ends: writes what waits, if that takes no longer than [`PATIENCE`].
    pub fn close(&self) {
        let mut inner = self.shared.inner();
        inner.is_ending = true;
        self.shared.work.notify_all();
        let until = |inner: &mut Inner| !inner.has_ended;
        // Whoever can't write it by then keeps nobody from ending.
        drop(self.shared.work.wait_timeout_while(inner, self.shared.patience, until));
    }
}

/// Somebody verifies the log. Dropped, the next one may.
struct Verifying(Arc<Shared>);

impl Drop for Verifying {
    fn drop(&mut self) {
        self.0.verifying.store(false, Ordering::Release);
    }
}

impl Open {
    /// How it ended.
    pub fn end(mut self, outcome: Result<(), &Refusal>) {
        let (result, message) = match outcome {
            Ok(()) => (Ending::Ok, None),
            Err(refusal) => ending_of(refusal),
        };
        self.put(result, message);
    }

    fn put(&mut self, result: Ending, message: Option<String>) {
        if let Some(entry) = self.entry.take() {
            self.audit.put(Entry { result, message, time: now(), ..entry });
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.put(Ending::NotKnown, None);
    }
}

impl Shared {
    /// Whether a refusal of somebody has a line, and how many before it had none.
    fn may_say(&self, caller: &Caller) -> Option<u64> {
        let now = self.start.elapsed();
        lock(&self.quiet).take(caller, now)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Follows the chain through all lines that there are.
    fn verify(&self) -> std::io::Result<Verified> {
        let (waiting, last) = {
            let inner = self.inner();
            (inner.waiting.clone(), inner.last)
        };
        let Some(dir) = &self.dir else {
            let mut follower = Follower::default();
            for line in &waiting {
                let text = line.text.trim_end_matches('\n');
                follower.take(&format!("line {}", line.number), text.as_bytes());
            }
            return Ok(follower.end(Some(last).filter(|last| last.0 > 0)));
        };
        // What waits now may become durable meanwhile; what is durable stays so.
        let until = self.durable_before(&waiting, last);
        files::verify(dir, until)
    }

    /// The number and hash of the last line that is not among these, which were waiting.
    fn durable_before(
        &self,
        waiting: &VecDeque<Arc<Line>>,
        last: (u64, Hash),
    ) -> Option<(u64, Hash)> {
        let known = match waiting.front() {
            None => Some(last),
            Some(first) => chain::read(first.text.trim_end_matches('\n').as_bytes())
                .ok()
                .map(|read| (first.number - 1, read.previous)),
        };
        known.filter(|known| known.0 > 0 && self.inner().lost == 0)
    }

    /// A line is not durable though somebody waited for it, unless it became so just now.
    fn late(&self, number: u64) {
        let why = format!("no answer within {} s", self.patience.as_secs_f64());
        self.failing_unless(why, |progress| progress.durable >= number);
    }

    fn failing(&self, why: String) {
        self.failing_unless(why, |_| false);
    }

    fn failing_unless(&self, why: String, is_good: impl Fn(&Progress) -> bool) {
        let mut inner = self.inner();
        if is_good(&self.progress.borrow()) {
            return;
        }
        let is_new = inner.problem.replace(why.clone()).is_none();
        self.progress.send_modify(|progress| progress.is_failing = true);
        drop(inner);
        if is_new {
            runtime::say(format_args!(
                "palisade: the audit log can't be written: {why}\n  changes go on; make room in \
                 the state directory, or repair its file system"
            ));
        }
    }

    /// What waits to be written, once there is something, and whether the daemon ends; none when
    /// there is nothing more to come.
    fn next(&self) -> Option<(Vec<Arc<Line>>, bool)> {
        let idle = |inner: &mut Inner| inner.waiting.is_empty() && !inner.is_ending;
        let inner = self.work.wait_while(self.inner(), idle).unwrap_or_else(|e| e.into_inner());
        let lines: Vec<_> = inner.waiting.iter().cloned().collect();
        (!lines.is_empty()).then_some((lines, inner.is_ending))
    }

    /// The writer's thread.
    fn write(&self, mut sink: Box<dyn Sink>) {
        while let Some((lines, is_ending)) = self.next() {
            let (done, outcome) = sink.append(&lines);
            let durable = lines.get(..done).and_then(<[_]>::last).map(|line| line.number);
            self.written(durable, outcome.is_ok());
            if let Err(error) = outcome {
                self.failing(error.to_string());
                if is_ending {
                    break;
                }
                let idle = |inner: &mut Inner| !inner.is_ending;
                drop(self.work.wait_timeout_while(self.inner(), AGAIN, idle));
            }
        }
        self.inner().has_ended = true;
        self.work.notify_all();
    }

    /// Lines up to this one are durable; whether all are that were to be.
    fn written(&self, durable: Option<u64>, is_all: bool) {
        let mut inner = self.inner();
        if let Some(durable) = durable {
            inner.waiting.retain(|line| line.number > durable);
        }
        let is_good_again = is_all && inner.problem.take().is_some();
        self.progress.send_modify(|progress| {
            progress.durable = durable.unwrap_or(progress.durable);
            progress.is_failing &= !is_all;
        });
        drop(inner);
        if is_good_again {
            runtime::say(format_args!("palisade: the audit log is written again"));
        }
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;

//! Takes samples of the past, and keeps it in the state directory.
//!
//! Purpose: [`redfish::history`] says what the past is. Here the view of each new sample of the
//! counters is put by ([`History::see`]), and looked at a moment later ([`History::tick`]), so that
//! nobody who is answered waits for that. Every [`EACH`], and at the end, the past is written by a
//! thread of its own.
//!
//! | the file is            | then                                                             |
//! |------------------------|------------------------------------------------------------------|
//! | whole                  | the past goes on where it ended; what was between is a gap       |
//! | damaged, or not ours   | it is set aside, that is said, and the past begins anew          |
//! | of another version     | the same                                                         |
//! | not to be read in time | that is said, and the past is kept in memory only                |
//! | not there              | the past begins                                                  |
//!
//! Invariants
//! - Nobody waits for the file but the thread that writes it, and the end of the daemon for
//!   [`PATIENCE`].
//! - One thread writes at a time. While one does not come back none is begun.
//! - The file is the last that was written, or the one before: a daemon that is killed loses
//!   [`EACH`] at most.

use crate::lock::lock;
use crate::state::{self, State};
use core::fmt::Display;
use redfish::history::{self, Past, file};
use redfish::messages as say;
use redfish::view::{Error, View};
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How often the past is written.
pub const EACH: Duration = Duration::from_secs(300);

/// How long the end of the daemon waits for it to be written.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who writes the file.
struct Keeper {
    past: Past,
    state: Arc<State>,
    /// Held by who writes.
    writing: Mutex<()>,
    is_writing: AtomicBool,
    /// Why it could not be written.
    problem: Mutex<Option<String>>,
}

impl Keeper {
    fn write(&self) {
        let _writing = lock(&self.writing);
        let outcome = self.state.replace_by(state::HISTORY, |file| {
            let mut file = BufWriter::with_capacity(64 << 10, file);
            file::write(&self.past, |piece| file.write_all(piece))?;
            file.flush()
        });
        let problem =
            |why: io::Error| format!("the past can't be written: {}: {why}", state::HISTORY);
        *lock(&self.problem) = outcome.err().map(problem);
    }
}

/// The past, as it was read.
pub struct Found {
    history: history::History,
    /// Why a file was set aside.
    pub problem: Option<Error>,
}

/// The past of this daemon.
#[derive(Default)]
pub struct History {
    past: Past,
    /// The view of the last sample, until that is looked at.
    seen: Mutex<Option<Arc<View>>>,
    keeper: Option<Arc<Keeper>>,
    /// Why it is kept in memory, though there is a state directory.
    problem: Option<String>,
    /// When it was written last, or began.
    written: Mutex<Option<Instant>>,
}

/// What is told of a file that can't be read.
pub fn not_read(state: &State, why: &dyn Display) -> Error {
    Error::new(&say::HISTORY_NOT_READ, &[&state.dir().display(), why])
}

impl History {
    /// It is kept in memory; why, if it should be elsewhere, too.
    pub fn in_memory(problem: Option<&str>) -> Self {
        Self { problem: problem.map(str::to_owned), ..Self::default() }
    }

    /// Reads the file of a state directory. Waits for it.
    ///
    /// # Errors
    /// It can't be read, or what it holds is not the past and can't be set aside.
    pub fn read(state: &State) -> Result<Found, Error> {
        let bytes = state.read(state::HISTORY);
        let bytes = match bytes {
            Err(why) if why.kind() == io::ErrorKind::FileTooLarge => Some(Vec::new()),
            bytes => bytes.map_err(|why| not_read(state, &why))?,
        };
        let Some(bytes) = bytes else {
            return Ok(Found { history: history::History::default(), problem: None });
        };
        match history::History::read(&bytes) {
            Ok(history) => Ok(Found { history, problem: None }),
            Err(why) => {
                let aside = state.rename(state::HISTORY, state::HISTORY_ASIDE);
                aside.map_err(|why| not_read(state, &why))?;
                let (file, aside) = (state.dir().join(state::HISTORY), state::HISTORY_ASIDE);
                let args: [&dyn Display; 3] = [&file.display(), &why, &aside];
                let problem = Some(Error::new(&say::HISTORY_SET_ASIDE, &args));
                Ok(Found { history: history::History::default(), problem })
            }
        }
    }

    /// That of a state directory, which goes on where it ended.
    pub fn go_on(state: &Arc<State>, found: Found) -> Self {
        let past = Past::new(found.history);
        let keeper = Keeper {
            past: past.clone(),
            state: state.clone(),
            writing: Mutex::default(),
            is_writing: AtomicBool::new(false),
            problem: Mutex::default(),
        };
        Self { past, keeper: Some(Arc::new(keeper)), ..Self::default() }
    }

    /// What views show.
    pub fn past(&self) -> Past {
        self.past.clone()
    }

    /// Why the past is not kept, though it should be.
    pub fn problem(&self) -> Option<String> {
        let of_keeper = || lock(&self.keeper.as_ref()?.problem).clone();
        self.problem.clone().or_else(of_keeper)
    }

    /// A view is in its place: it is put by if its counters are newer than those of the one before.
    pub fn see(&self, before: &View, view: &Arc<View>) {
        if !Arc::ptr_eq(&before.counters, &view.counters) {
            *lock(&self.seen) = Some(view.clone());
        }
    }

    /// Looks at the view that was put by, once a second; and has the past written when it is time.
    pub fn tick(&self) {
        let seen = lock(&self.seen).take();
        if let Some(view) = seen {
            self.past.lock().sample(&view);
        }
        let now = Instant::now();
        let is_due = {
            let mut written = lock(&self.written);
            let is_due = now.duration_since(*written.get_or_insert(now)) >= EACH;
            if is_due {
                *written = Some(now);
            }
            is_due
        };
        if is_due {
            self.write();
        }
    }

    /// Has a thread write the past, unless one does.
    pub fn write(&self) {
        let Some(keeper) = self.keeper.clone() else { return };
        if !keeper.is_writing.swap(true, Ordering::AcqRel) {
            // It ends by itself.
            drop(spawn_blocking(move || {
                keeper.write();
                keeper.is_writing.store(false, Ordering::Release);
            }));
        }
    }

    /// The daemon ends: the past is written, if that does not take long.
    pub async fn close(&self) {
        let Some(keeper) = self.keeper.clone() else { return };
        let _ = timeout(PATIENCE, spawn_blocking(move || keeper.write())).await;
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;

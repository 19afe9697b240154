//! Flushes of an opening, of all cores: one at a time, and who comes meanwhile shares the next.
//!
//! That a flush failed may be said once: the kernel tells one caller of pages that it could not
//! write, and a drive may forget sectors that it could not. A flush beside or behind it that ends
//! well says nothing then of what was written before.
//!
//! | somebody's flush | leaves by                                                            |
//! |------------------|----------------------------------------------------------------------|
//! | waits            | the one under way is over: one that began after this was asked for → |
//! |                  | over; else the first to look runs the next, the others wait          |
//! | runs             | the drive answers, or it is given up → over                          |
//! | over             |                                                                      |
//!
//! Invariants
//! - An opening has at most one flush under way.
//! - A flush ended well only if one did that began after it was asked for, and none of the opening
//!   had failed before.
//! - What is under way is carried to its end, whoever goes, and its failure noted.

use super::ticket::Pass;
use super::{NONE, Opening};
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use io::{Drive, DriveError, Env, Priority};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard};

/// What all cores know of the flushes of an opening.
#[derive(Default)]
pub(super) struct Flushes(Mutex<State>);

#[derive(Default)]
struct State {
    /// How many have begun.
    begun: u64,
    /// The last of them is under way.
    running: bool,
    failed: Option<DriveError>,
    waiters: Vec<Waker>,
}

impl State {
    /// Begins the next, if none is under way.
    fn run(&mut self) -> bool {
        let free = !self.running && self.failed.is_none();
        self.begun += u64::from(free);
        self.running |= free;
        free
    }
}

impl Flushes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The one under way is over.
    fn end(&self, result: Result<(), DriveError>) {
        let waiters = {
            let mut state = self.lock();
            state.running = false;
            state.failed = state.failed.or(result.err());
            core::mem::take(&mut state.waiters)
        };
        waiters.into_iter().for_each(Waker::wake);
    }
}

/// Somebody's flush.
pub(super) struct Flush<E: Env> {
    opening: Rc<Opening<E>>,
    /// The first that covers what was written before.
    need: u64,
    /// The one under way, if this runs it.
    runs: Option<Pass<E, <E::Drive as Drive>::Done>>,
    entry: u32,
}

impl<E: Env> Flush<E> {
    /// Asks for a flush; it begins at once if none is under way.
    pub fn new(opening: Rc<Opening<E>>) -> Self {
        let (need, first) = {
            let mut state = opening.flushes.lock();
            (state.begun + 1, state.run())
        };
        let mut flush = Self { opening, need, runs: None, entry: NONE };
        if first {
            flush.run();
        }
        flush
    }

    fn run(&mut self) {
        let opening = &self.opening;
        self.runs = Some(Pass::new(opening.clone(), opening.drive.flush()));
    }

    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), DriveError>> {
        loop {
            if let Some(pass) = &mut self.runs {
                let Poll::Ready(outcome) = pass.poll(cx) else { return Poll::Pending };
                self.runs = None;
                self.opening.flushes.end(outcome.and_then(|result| result));
            }
            let opening = &self.opening;
            let mut state = opening.flushes.lock();
            let over = match state.failed {
                Some(error) => Some(Err(error)),
                None if opening.is_out() => Some(Err(opening.why())),
                None => (state.begun > self.need || state.begun == self.need && !state.running)
                    .then_some(Ok(())),
            };
            if let Some(result) = over {
                drop(state);
                opening.watch.leave(&mut self.entry);
                if let Err(error) = result {
                    opening.note(error);
                }
                return Poll::Ready(result);
            }
            if state.run() {
                drop(state);
                opening.watch.leave(&mut self.entry);
                self.run();
                continue;
            }
            if !state.waiters.iter().any(|waiter| waiter.will_wake(cx.waker())) {
                state.waiters.push(cx.waker().clone());
            }
            drop(state);
            // It ends with the opening on this core, too.
            let now = opening.watch.inner.tick.get();
            opening.watch.wait(&mut self.entry, opening.number, now, cx.waker());
            return Poll::Pending;
        }
    }
}

impl<E: Env> Drop for Flush<E> {
    fn drop(&mut self) {
        let opening = self.opening.clone();
        opening.watch.leave(&mut self.entry);
        let Some(mut pass) = self.runs.take() else { return };
        let env = opening.watch.inner.env.clone();
        env.spawn(Priority::Last, async move {
            let outcome = poll_fn(|cx| pass.poll(cx)).await;
            opening.flushes.end(outcome.and_then(|result| result));
        });
    }
}

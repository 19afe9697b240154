//! How other threads get a core's attention.
//!
//! States of a core: awake, or going to sleep/asleep (`sleeping`). A sender first puts its thing
//! into a box, then rings: sets `pending`, and writes the eventfd only if the core sleeps. A core
//! first says that it sleeps, then looks at `pending` again. Both sides use sequentially
//! consistent operations, so at least one of them sees the other: no ring is lost.

use crate::sys;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// One core's bell, and the wakes of its tasks that came from other threads.
pub(crate) struct Doorbell {
    pending: AtomicBool,
    sleeping: AtomicBool,
    event: OwnedFd,
    wakes: Mutex<Vec<u32>>,
}

impl Doorbell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            pending: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            event: sys::eventfd()?,
            wakes: Mutex::new(Vec::with_capacity(64)),
        })
    }

    /// Tells the core that something lies in one of its boxes.
    pub(crate) fn ring(&self) {
        let rung = self.pending.swap(true, Ordering::SeqCst);
        if !rung && self.sleeping.load(Ordering::SeqCst) {
            sys::eventfd_write(&self.event);
        }
    }

    /// True if it was rung and not yet answered.
    pub(crate) fn pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Answers: true if it was rung. The boxes must be emptied afterwards.
    pub(crate) fn answer(&self) -> bool {
        self.pending() && self.pending.swap(false, Ordering::SeqCst)
    }

    /// Says that the core sleeps from now on; false if it must not, since it was rung.
    pub(crate) fn begin_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        let quiet = !self.pending.load(Ordering::SeqCst);
        if !quiet {
            self.end_sleep();
        }
        quiet
    }

    /// Says that the core is awake.
    pub(crate) fn end_sleep(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
    }

    /// The descriptor that becomes readable when a sleeping core is rung.
    pub(crate) fn fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Makes the descriptor unreadable again.
    pub(crate) fn silence(&self) {
        sys::eventfd_read(&self.event);
    }

    /// Wakes task `index` from another thread.
    pub(crate) fn wake(&self, index: u32) {
        self.wakes.lock().unwrap_or_else(|e| e.into_inner()).push(index);
        self.ring();
    }

    /// Moves the wakes of other threads to `into`.
    pub(crate) fn take_wakes(&self, into: &mut Vec<u32>) {
        into.append(&mut self.wakes.lock().unwrap_or_else(|e| e.into_inner()));
    }
}

//! A device in the service of many cores.
//!
//! Purpose: cores hand jobs in and wait for tickets; a thread of its own makes all calls of the
//! driver, and another, which makes none, sees to it that no ticket waits for a device that is
//! late.
//!
//! Invariants: every ticket is answered, whatever the driver and the device do; a core never
//! waits for either; buffers of jobs that were given up stay where the device may reach for them
//! until it has passed their batch's mark, else for good; so does memory of pools.
//!
//! | thread | does |
//! |---|---|
//! | cores | decide by [`Placement`], hand jobs in at the *desk* ([`desk`]), wait for tickets |
//! | the device's ([`thread`]) | owns the queue, and with it the device |
//! | the watch ([`watch`]) | gives up jobs that are late, fences a device whose calls block |

mod desk;
mod thread;
mod watch;

use std::cell::Cell;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

use io::{Buf, BufMut};
use parity::offload::{Job, Offload, Operation, Ticket};

pub use desk::Figures;

use crate::driver::Driver;
use crate::fence::{Fence, Limits};
use crate::pack::fits;
use crate::place::Placement;
use desk::Desk;

/// What happened to a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It is not used any more.
    Fenced(Fence),
}

/// Who is told of it. He must not wait for anything.
pub type Tell = Box<dyn Fn(Event) + Send>;

/// An open device. Dropped, it answers all tickets, and waits for what is under way no longer
/// than [`Limits::patience`].
pub struct Service {
    desk: Arc<Desk>,
    device: String,
    thread: Option<JoinHandle<()>>,
    watch: Option<JoinHandle<()>>,
}

impl Service {
    /// Opens device `number` and runs its known answers, within [`Limits::start`].
    ///
    /// # Errors
    ///
    /// [`Fence`] if the device can't be opened or fails its test.
    pub fn start(
        driver: Box<dyn Driver>,
        number: usize,
        limits: Limits,
        tell: Tell,
    ) -> Result<Service, Fence> {
        let desk = Arc::new(Desk::new(limits, tell));
        let (opened, answer) = mpsc::channel();
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(body)
        };
        let of_thread = desk.clone();
        let body = Box::new(move || thread::run(driver, number, &of_thread, &opened));
        let thread = spawn("parity-gpu", body).map_err(|_| Fence::Ended)?;
        let device = match answer.recv_timeout(limits.start) {
            Ok(Ok(device)) => device,
            Ok(Err(fence)) => {
                // It has said its last word.
                drop(thread.join());
                return Err(fence);
            }
            // Its thread may be in the driver for good. It ends on its own if not.
            Err(mpsc::RecvTimeoutError::Timeout) => {
                desk.end();
                return Err(Fence::Hung);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Fence::Ended),
        };
        let of_watch = desk.clone();
        let mut service = Service { desk, device, thread: Some(thread), watch: None };
        let watch = spawn("parity-gpu-watch", Box::new(move || watch::run(&of_watch)));
        service.watch = Some(watch.map_err(|_| Fence::Ended)?);
        Ok(service)
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// What a core hands its jobs in with.
    pub fn handle(&self, placement: Placement) -> Handle {
        let (counted, measure) = (Cell::new(0), Cell::new(false));
        Handle { desk: self.desk.clone(), placement, counted, measure }
    }

    /// For pools whose memory the device shall reach by itself.
    pub fn reach(&self) -> Arc<dyn io::Reach> {
        self.desk.clone()
    }

    /// Why the device is not used any more, if so.
    pub fn fence(&self) -> Option<Fence> {
        self.desk.fence()
    }

    /// What was done.
    pub fn figures(&self) -> Figures {
        self.desk.figures()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.desk.end();
        if let Some(watch) = self.watch.take() {
            drop(watch.join());
        }
        let thread = self.thread.take().filter(|_| self.desk.wait_for_thread());
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }
}

/// One job of so many is timed.
const TIMED: u32 = 16;

/// A core's way to the device.
pub struct Handle {
    desk: Arc<Desk>,
    placement: Placement,
    /// Jobs that might have been timed.
    counted: Cell<u32>,
    /// Whether the next job that is done here shall be timed.
    measure: Cell<bool>,
}

impl Handle {
    /// Whether it is this job's turn to be timed.
    fn timed(&self) -> bool {
        self.counted.set(self.counted.get().wrapping_add(1));
        self.counted.get().is_multiple_of(TIMED)
    }
}

impl Offload<Buf, BufMut> for Handle {
    fn wants(&self, operation: &Operation, bytes: usize) -> bool {
        let limits = self.desk.limits();
        if self.placement == Placement::Cpu
            || !self.desk.is_open()
            || !fits(operation, bytes, (limits.in_bytes, limits.out_bytes))
        {
            return false;
        }
        if self.placement == Placement::Gpu {
            return true;
        }
        let choice = self.desk.place().choose(operation, bytes);
        self.measure.set(choice.again && !choice.device);
        choice.device
    }

    fn here(&self, operation: &Operation, bytes: usize, work: &mut dyn FnMut()) {
        if self.placement != Placement::Auto || !(self.measure.replace(false) | self.timed()) {
            return work();
        }
        let since = Instant::now();
        work();
        self.desk.place().was_here(operation, bytes, since.elapsed());
    }

    fn submit(&self, job: Job<Buf, BufMut>) -> Ticket<BufMut> {
        assert!(job.is_whole(), "buffers as the operation wants them");
        let since = Instant::now();
        let ticket = self.desk.hand_in(job, since);
        if self.timed() {
            self.desk.place().was_submitted(since.elapsed());
        }
        ticket
    }
}

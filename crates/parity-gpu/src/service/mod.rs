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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use io::{Buf, BufMut};
use parity::offload::{Job, Offload, Operation, Ticket};

pub use desk::Figures;

use crate::cuda;
use crate::driver::{Driver, DriverError};
use crate::fence::{Fence, Limits};
use crate::pack::fits;
use crate::place::Placement;
use desk::Desk;

/// What happened to a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It has passed its test and takes jobs from now on; its name.
    Opened(String),
    /// It can't reach memory of pools by itself, for this reason: strips there are copied.
    NotShared(DriverError),
    /// It is not used any more, or never was.
    Fenced(Fence),
}

/// What loads a driver, on the device's thread.
pub type Load = Box<dyn FnOnce() -> Result<Box<dyn Driver>, DriverError> + Send>;

/// Who is told of it. He must not wait for anything.
pub type Tell = Box<dyn Fn(Event) + Send>;

/// A device, from when it is asked for. Until it is open it takes no jobs. Dropped, the service
/// answers all tickets, and waits for what is under way no longer than [`Limits::patience`].
pub struct Service {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
    watch: Option<JoinHandle<()>>,
}

impl Service {
    /// Has device `number` opened and its known answers run, within [`Limits::start`]; waits for
    /// nothing of it.
    ///
    /// # Errors
    ///
    /// [`Fence::Ended`] if there are no threads to be had.
    pub fn start(load: Load, number: usize, limits: Limits, tell: Tell) -> Result<Service, Fence> {
        let desk = Arc::new(Desk::new(limits, tell));
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
            thread.map(Some).map_err(|_| Fence::Ended)
        };
        let mut service = Service { desk: desk.clone(), thread: None, watch: None };
        let of_thread = desk.clone();
        let body = Box::new(move || thread::run(load, number, &of_thread));
        service.thread = spawn("parity-gpu", body)?;
        service.watch = spawn("parity-gpu-watch", Box::new(move || watch::run(&desk)))?;
        Ok(service)
    }

    /// Waits until the device takes jobs.
    ///
    /// # Errors
    ///
    /// [`Fence`] if it can't be opened, fails its test or takes too long.
    pub fn opened(&self) -> Result<(), Fence> {
        self.desk.wait_until_open()
    }

    /// The device's name, once it is open.
    pub fn device(&self) -> Option<String> {
        self.desk.device()
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
        let Some(thread) = self.thread.take() else { return };
        match self.desk.wait_for_thread() {
            true => drop(thread.join()),
            // It is left there.
            false => IN_DRIVER.store(true, Ordering::Relaxed),
        }
    }
}

/// Whether some device's thread was left in the driver.
static IN_DRIVER: AtomicBool = AtomicBool::new(false);

/// Whether a thread of this process was left in a driver's call that does not come back.
pub fn is_stuck() -> bool {
    IN_DRIVER.load(Ordering::Relaxed)
}

/// Ends the process with this status if [`is_stuck`]: what the driver does when a process exits as
/// usual may wait for that call, too.
pub fn leave_if_stuck(status: u8) {
    if is_stuck() {
        cuda::end_process(i32::from(status));
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
    /// Whether the next job shall be timed, wherever it is done.
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
    fn wants(&self, operation: &Operation, bytes: usize, lone: bool) -> bool {
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
        let choice = self.desk.place().choose(operation, bytes, lone);
        self.measure.set(choice.again);
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
        // Both, so that the count goes on.
        if self.measure.replace(false) | self.timed() {
            self.desk.place().was_submitted(since.elapsed());
        }
        ticket
    }
}

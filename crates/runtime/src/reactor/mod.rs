//! One core's I/O: files, readiness of sockets, timers.
//!
//! A call of [`Reactor::read`] and its like starts the request at once and returns a ticket; the
//! request reaches the kernel at the end of the poll batch with all others. The slab owns
//! buffers and handles until the kernel is done (see `slab`).
//!
//! Invariants
//! - Wakers are woken and requests dropped only while no cell is borrowed.
//! - A reactor is used by the thread that made it alone.

mod epoll;
mod pool;
mod slab;
mod uring;

pub use slab::Descriptor;

pub(crate) use pool::Pool as BlockingPool;

use crate::config::Config;
use crate::doorbell::Doorbell;
use crate::lookout::Lookout;
use crate::timer::Timers;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use io::{BufMut, Gather};
use slab::{Call, Next, Request, Slab, Work};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use units::Nanos;

/// Work that a task may do without waiting before it must let others run: a unit for each
/// operation, and one for each [`UNIT_BYTES`] that it moved.
const BUDGET: u32 = 64;

/// The same for all tasks of a priority together, between two looks at timers, sockets and mail:
/// one or two milliseconds of it.
const TURN_BUDGET: u32 = 1024;

/// Bytes that are moved in about the time of a small operation.
const UNIT_BYTES: usize = 16 << 10;

/// Sockets that are looked at with every turn, at most; see [`Reactor::look_again`].
const LOOKING: usize = 4;

/// Time between two looks: who looks holds the socket's lock, which who delivers needs.
const LOOK: Nanos = Nanos(500);

/// By how much a sleep may end late, on a virtual machine.
const LATE: Nanos = Nanos::from_micros(150);

/// Exact timers that end this soon are looked for, not slept to.
const EXACT_LOOK: Nanos = Nanos::from_micros(200);

/// How long a stopping core waits for requests in flight.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// The kernel's number of an error, positive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

impl Errno {
    /// The file ends before the request does. The kernel's own numbers are smaller.
    pub const END: Self = Self(4096);
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl core::error::Error for Errno {}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

/// Whether the kernel gives this process rings as cores need them: one is set up, and given back.
///
/// # Errors
/// The kernel's, or what it lacks. Cores then serve by blocking threads.
pub fn try_io_uring() -> std::io::Result<()> {
    uring::Uring::new(8, Arc::new(Doorbell::new()?)).map(drop)
}

/// How [`Reactor::fallocate`] makes a range zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZeroMode {
    /// Gives the range up; it reads as zeros (files), or is discarded (`BLKZEROOUT` without
    /// fallback for block devices).
    Punch,
    /// Makes the range zero and keeps it allocated where the file system can.
    Zero,
}

impl ZeroMode {
    fn flags(self) -> i32 {
        libc::FALLOC_FL_KEEP_SIZE
            | match self {
                Self::Punch => libc::FALLOC_FL_PUNCH_HOLE,
                Self::Zero => libc::FALLOC_FL_ZERO_RANGE,
            }
    }
}

enum Backend {
    Uring(Box<uring::Uring>),
    Epoll(epoll::Epoll),
}

impl Backend {
    fn start(&mut self, index: u32, fd: RawFd, call: Call) {
        match self {
            Self::Uring(ring) => ring.start(index, fd, call),
            Self::Epoll(epoll) => epoll.start(index, fd, call),
        }
    }

    fn cancel_poll(&mut self, index: u32) {
        match self {
            Self::Uring(ring) => ring.cancel_poll(index),
            Self::Epoll(epoll) => epoll.cancel_poll(index),
        }
    }

    fn flush(&mut self) {
        match self {
            Self::Uring(ring) => ring.flush(),
            Self::Epoll(epoll) => epoll.flush(),
        }
    }

    fn reap(&mut self, into: &mut [(u32, i32)]) -> usize {
        match self {
            Self::Uring(ring) => ring.reap(into),
            Self::Epoll(epoll) => epoll.reap(into),
        }
    }

    fn wait(&mut self, timeout: Option<Nanos>) {
        match self {
            Self::Uring(ring) => ring.wait(timeout),
            Self::Epoll(epoll) => epoll.wait(timeout),
        }
    }

    fn has_news(&mut self) -> bool {
        match self {
            Self::Uring(ring) => ring.has_news(),
            Self::Epoll(epoll) => epoll.has_news(),
        }
    }
}

struct Inner {
    slab: RefCell<Slab>,
    backend: RefCell<Backend>,
    timers: RefCell<Timers>,
    /// Timers among them that no sleep may make late.
    exact: Cell<usize>,
    start: Instant,
    now: Cell<Nanos>,
    /// Who looks at a socket again with the next turn.
    looking: RefCell<Vec<Waker>>,
    /// For how long who waits looks around at most.
    spin: Nanos,
    /// What is left to the polled task, and to all tasks in this turn.
    budget: Cell<u32>,
    turn: Cell<u32>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.slab.get_mut().leak();
    }
}

/// One core's I/O. Clones share it.
#[derive(Clone)]
pub struct Reactor {
    inner: Rc<Inner>,
}

impl Reactor {
    /// The reactor of the calling thread; times count from `start`.
    pub(crate) fn new(
        config: &Config,
        pool: Option<Arc<BlockingPool>>,
        doorbell: Arc<Doorbell>,
        start: Instant,
    ) -> std::io::Result<Self> {
        let backend = match pool {
            Some(pool) => Backend::Epoll(epoll::Epoll::new(pool, doorbell)?),
            None => Backend::Uring(Box::new(uring::Uring::new(config.ring_entries, doorbell)?)),
        };
        let reactor = Self {
            inner: Rc::new(Inner {
                slab: RefCell::default(),
                backend: RefCell::new(backend),
                timers: RefCell::default(),
                exact: Cell::new(0),
                start,
                now: Cell::default(),
                looking: RefCell::new(Vec::with_capacity(LOOKING)),
                spin: Nanos(config.spin.as_nanos() as u64),
                budget: Cell::new(BUDGET),
                turn: Cell::new(TURN_BUDGET),
            }),
        };
        reactor.refresh_now();
        Ok(reactor)
    }

    /// Fails where io_uring cannot be used on this machine.
    pub(crate) fn probe(config: &Config) -> std::io::Result<()> {
        uring::Uring::new(config.ring_entries, Arc::new(Doorbell::new()?)).map(drop)
    }

    /// Somebody's who begins to wait on this core.
    pub(crate) fn lookout(&self) -> Lookout {
        Lookout::new(self.inner.spin)
    }

    /// Starts to fill the whole of `into` from byte `offset`.
    pub fn read(&self, on: &Descriptor, offset: u64, into: BufMut) -> ReadTicket {
        ReadTicket(self.start(on, Work::Read { offset, into }))
    }

    /// Starts to write the buffers one behind the other at byte `offset`; with `fua` they are
    /// durable when the ticket is done.
    pub fn write(&self, on: &Descriptor, offset: u64, data: Gather, fua: bool) -> DoneTicket {
        DoneTicket(self.start_with(on, Work::Write { offset, fua }, data))
    }

    /// Starts to make all completed writes durable (`fdatasync`).
    pub fn sync(&self, on: &Descriptor) -> DoneTicket {
        DoneTicket(self.start(on, Work::Sync))
    }

    /// Starts to make `bytes` bytes from `offset` zero. `EOPNOTSUPP` where it is not offered.
    pub fn fallocate(
        &self,
        on: &Descriptor,
        mode: ZeroMode,
        offset: u64,
        bytes: u64,
    ) -> DoneTicket {
        DoneTicket(self.start(on, Work::Fallocate { mode: mode.flags(), offset, bytes }))
    }

    /// Starts a command of a driver, which ends when that says so. `EOPNOTSUPP` where it is not
    /// offered: without io_uring.
    pub(crate) fn command(&self, on: &Descriptor, code: u32, says: [u8; 16]) -> DoneTicket {
        DoneTicket(self.start(on, Work::Command { code, says }))
    }

    /// Waits until the socket is worth another attempt.
    pub(crate) fn ready(&self, on: &Descriptor, events: i16) -> DoneTicket {
        DoneTicket(self.start(on, Work::Poll { events: events as u32 }))
    }

    /// A socket has had nothing since the time in `since` (none: it is asked for the first time),
    /// and is to be looked at for the time `look`: true after a turn if it is worth another look,
    /// false if the kernel had better tell.
    ///
    /// Whoever has a peer that answers at once is spared most of the way through the kernel by it:
    /// a poll has to be armed, and its task work run. Everybody looks once more, since other tasks
    /// may take their time, and a few do for as long as they are to.
    pub(crate) async fn look_again(&self, since: &mut Option<Nanos>, look: Nanos) -> bool {
        let is_late = match *since {
            Some(since) => self.now().since(since) >= look,
            None => false,
        };
        let is_full = self.inner.looking.borrow().len() >= LOOKING;
        if is_late || since.is_some() && is_full {
            return false;
        }
        since.get_or_insert(self.now());
        let next = self.now().after(LOOK);
        let mut has_waited = false;
        poll_fn(|cx| {
            if core::mem::replace(&mut has_waited, true) && self.now() >= next {
                return Poll::Ready(true);
            }
            self.inner.looking.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Completes once `now` has reached `span` from now.
    pub fn sleep(&self, span: Nanos) -> Sleep {
        let deadline = self.look_at_clock().after(span);
        Sleep { reactor: self.clone(), deadline, id: None, is_exact: false }
    }

    /// Completes once `now` has reached `deadline`. The core looks around for it where it would
    /// sleep, since it would wake too late: this is for what takes the place of a device.
    pub fn sleep_until_exactly(&self, deadline: Nanos) -> Sleep {
        self.inner.exact.set(self.inner.exact.get() + 1);
        Sleep { reactor: self.clone(), deadline, id: None, is_exact: true }
    }

    /// Looks at the clock and says what time it is.
    pub fn look_at_clock(&self) -> Nanos {
        self.refresh_now();
        self.now()
    }

    /// Monotonic time as of the current poll batch.
    pub fn now(&self) -> Nanos {
        self.inner.now.get()
    }

    /// For operations that end without waiting: ready while the polled task's budget lasts, else
    /// wakes the task and lets others run first. Call before giving a result out.
    #[inline]
    pub fn poll_budget(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.inner.budget.get() == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.spend(1);
        Poll::Ready(())
    }

    /// Charges the polled task for bytes that were moved in the calling thread.
    #[inline]
    pub fn charge(&self, bytes: usize) {
        self.spend((bytes / UNIT_BYTES) as u32);
    }

    #[inline]
    fn spend(&self, units: u32) {
        for left in [&self.inner.budget, &self.inner.turn] {
            left.set(left.get().saturating_sub(units));
        }
    }

    /// Gives the tasks that are polled next their budget together.
    pub(crate) fn begin_turn(&self) {
        self.inner.turn.set(TURN_BUDGET);
    }

    /// Gives the next task its budget; false once the turn's is used up.
    pub(crate) fn begin_poll(&self) -> bool {
        self.inner.budget.set(BUDGET);
        self.inner.turn.get() > 0
    }

    /// Looks at the clock.
    pub(crate) fn refresh_now(&self) {
        self.inner.now.set(Nanos(self.inner.start.elapsed().as_nanos() as u64));
    }

    fn start(&self, on: &Descriptor, work: Work) -> Ticket {
        self.start_with(on, work, Gather::new())
    }

    fn start_with(&self, on: &Descriptor, work: Work, data: Gather) -> Ticket {
        let request = Request { on: on.clone(), work };
        let (index, fd, call) = self.inner.slab.borrow_mut().start(request, data);
        self.inner.backend.borrow_mut().start(index, fd, call);
        Ticket { reactor: self.clone(), index: Some(index) }
    }

    /// Submits, reaps and fires timers, without waiting.
    pub(crate) fn turn(&self) {
        self.inner.backend.borrow_mut().flush();
        self.reap();
        self.refresh_now();
        self.fire_timers();
        // Waking is safe while it is borrowed: a waker only queues its task.
        self.inner.looking.borrow_mut().drain(..).for_each(Waker::wake);
    }

    fn reap(&self) {
        let mut done = [(0, 0); 64];
        loop {
            let count = self.inner.backend.borrow_mut().reap(&mut done);
            for (index, result) in &done[..count] {
                self.complete(*index, *result);
            }
            if count < done.len() {
                return;
            }
        }
    }

    fn complete(&self, index: u32, result: i32) {
        let next = self.inner.slab.borrow_mut().complete(index, result);
        match next {
            Next::Again(fd, call) => self.inner.backend.borrow_mut().start(index, fd, call),
            Next::Wake(Some(waker)) => waker.wake(),
            Next::Wake(None) => {}
            Next::Drop(request) => drop(request),
        }
    }

    fn fire_timers(&self) {
        loop {
            let fired = self.inner.timers.borrow_mut().fire(self.now());
            let Some(waker) = fired else { return };
            waker.wake();
        }
    }

    /// Time until the next timer; `None` if there is none.
    pub(crate) fn until_timer(&self) -> Option<Nanos> {
        self.inner.timers.borrow().next().map(|at| at.since(self.now()))
    }

    /// For how long the core looks around since it would wake too late: until a timer that no sleep
    /// may make late, if that is soon.
    pub(crate) fn exact_look(&self) -> Nanos {
        match self.until_timer() {
            Some(span) if self.inner.exact.get() > 0 && span <= EXACT_LOOK => span,
            _ => Nanos(0),
        }
    }

    /// How long the core may sleep at most.
    pub(crate) fn until_wake(&self) -> Option<Nanos> {
        let until = self.until_timer();
        if self.inner.exact.get() == 0 { until } else { until.map(|span| span.since(LATE)) }
    }

    /// True if a turn would find something.
    pub(crate) fn has_news(&self) -> bool {
        self.inner.backend.borrow_mut().has_news() || self.until_timer() == Some(Nanos(0))
    }

    /// Sleeps until something happens or `timeout` is over.
    pub(crate) fn wait(&self, timeout: Option<Nanos>) {
        self.inner.backend.borrow_mut().wait(timeout);
    }

    /// Waits a bounded time for requests in flight, so that their memory can be freed; whether all
    /// have ended.
    pub(crate) fn drain(&self) -> bool {
        let end = Instant::now() + DRAIN;
        while self.inner.slab.borrow().in_flight() > 0 && Instant::now() < end {
            self.turn();
            if self.inner.slab.borrow().in_flight() > 0 {
                self.wait(Some(Nanos::from_millis(1)));
            }
        }
        self.inner.slab.borrow().in_flight() == 0
    }
}

/// A started request.
struct Ticket {
    reactor: Reactor,
    /// `None` once the result was given out.
    index: Option<u32>,
}

impl Ticket {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Result<(), Errno>, Request)> {
        let Some(index) = self.index else { panic!("ticket polled after its end") };
        let taken = self.reactor.inner.slab.borrow_mut().take(index, cx.waker());
        let Some((result, request)) = taken else { return Poll::Pending };
        self.index = None;
        Poll::Ready((if result < 0 { Err(Errno(-result)) } else { Ok(()) }, request))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(index) = self.index else { return };
        let inner = &self.reactor.inner;
        let (waker, request, in_flight) = inner.slab.borrow_mut().abandon(index);
        if in_flight && inner.slab.borrow().is_poll(index) {
            inner.backend.borrow_mut().cancel_poll(index);
        }
        drop((waker, request));
    }
}

/// Ticket of a read: gives the buffer back with the outcome.
pub struct ReadTicket(Ticket);

impl Future for ReadTicket {
    type Output = (Result<(), Errno>, BufMut);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx).map(|(result, request)| match request.work {
            Work::Read { into, .. } => (result, into),
            _ => unreachable!("a read's ticket has a read"),
        })
    }
}

/// Ticket of anything else.
pub struct DoneTicket(Ticket);

impl Future for DoneTicket {
    type Output = Result<(), Errno>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx).map(|(result, _)| result)
    }
}

/// A running timer.
pub struct Sleep {
    reactor: Reactor,
    deadline: Nanos,
    /// Its entry among the timers, from the first poll on.
    id: Option<u32>,
    is_exact: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.reactor.now() >= self.deadline {
            self.forget();
            return Poll::Ready(());
        }
        let reactor = self.reactor.clone();
        let mut timers = reactor.inner.timers.borrow_mut();
        match self.id {
            Some(id) => timers.set_waker(id, cx.waker()),
            None => self.id = Some(timers.insert(self.deadline, cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl Sleep {
    fn forget(&mut self) {
        if let Some(id) = self.id.take() {
            let waker = self.reactor.inner.timers.borrow_mut().remove(id);
            drop(waker);
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.forget();
        let exact = &self.reactor.inner.exact;
        exact.set(exact.get() - usize::from(self.is_exact));
    }
}

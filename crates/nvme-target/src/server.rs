//! One core's part of the target: its connections, the workers that carry commands out, a clock.
//!
//! Commands wait for a worker in the order in which they are ready; a worker carries out one at a
//! time, takes the next where it ended at once, and never waits for memory or for a host. Workers
//! are shared by all connections, so an idle connection has none.
//!
//! The clock ends connections that take too long to begin, whose controller is lost or was reset;
//! it looks after keep-alive timers, and tells events. It stands still while there is no
//! connection.
//!
//! Connections that anybody may have are *guests*: there are only so many, and a new one takes the
//! place of the oldest.
//!
//! Invariants
//! - A command that is queued has a worker at the latest when the commands before it have ended.
//! - A connection is in the list from its begin to its end.

use crate::access::PortId;
use crate::controller::Way;
use crate::limits::{CHECKS, GUESTS, MEMORY, TICK, WORKERS};
use crate::session::{self, EndReason, Session};
use crate::{Target, Transport, Volumes};
use core::cell::{Cell, RefCell};
use front::memory::PIECES;
use front::{ConnectionMemory, Seats};
use io::local::Event;
use io::{BufMut, Env, Pool, Priority, Reach};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use units::Nanos;

/// Bytes that a comparison or verification reads at a time.
pub(crate) const SCRATCH: usize = PIECES[2];

/// A command that is ready to be carried out.
struct Job<E: Env, T, X: Volumes> {
    session: Rc<Session<E, T, X>>,
    slot: u16,
    /// It reads into the core's scratch memory.
    is_check: bool,
}

/// What the clock sees of a connection.
pub(crate) trait Timed {
    /// A tick came.
    fn tick(&self, now: Nanos);
    /// Ends the connection.
    fn close(&self);
    /// Anybody may have it; false once it was closed.
    fn is_guest(&self) -> bool;
}

/// One core's part of the target.
pub struct Server<E: Env, T, X: Volumes> {
    pub(crate) env: E,
    pub(crate) target: Arc<Target<X::Key>>,
    pub(crate) volumes: X,
    pub(crate) memory: Rc<ConnectionMemory>,
    seats: Seats<Job<E, T, X>>,
    /// In the order in which they came, or were connected.
    connections: RefCell<Vec<Rc<dyn Timed>>>,
    changed: Event,
    stopped: Cell<bool>,
    /// All connections end, also those that come from now on.
    closing: Cell<bool>,
    /// Commands that wait for scratch memory; they have no worker.
    checks: RefCell<VecDeque<Job<E, T, X>>>,
    /// Scratch memory that no command has.
    free_checks: Cell<usize>,
    scratch: RefCell<Vec<BufMut>>,
}

impl<E: Env, T: Transport, X: Volumes> Server<E, T, X> {
    /// Starts it on a core; allocates its memory, where a device may reach it.
    pub fn start(
        env: E,
        target: Arc<Target<X::Key>>,
        volumes: X,
        reach: Option<&Arc<dyn Reach>>,
    ) -> Rc<Self> {
        Self::start_with(env, target, volumes, ConnectionMemory::reached(MEMORY, reach))
    }

    /// As [`Server::start`], with other memory.
    pub fn start_with(
        env: E,
        target: Arc<Target<X::Key>>,
        volumes: X,
        memory: Rc<ConnectionMemory>,
    ) -> Rc<Self> {
        let server = Rc::new(Self {
            env: env.clone(),
            target,
            volumes,
            memory,
            seats: Seats::new(WORKERS),
            connections: RefCell::default(),
            changed: Event::default(),
            stopped: Cell::new(false),
            closing: Cell::new(false),
            checks: RefCell::default(),
            free_checks: Cell::new(CHECKS),
            scratch: RefCell::new((0..CHECKS).map(|_| Pool::single(SCRATCH)).collect()),
        });
        for seat in 0..WORKERS {
            env.spawn(Priority::First, work(server.clone(), seat));
        }
        env.spawn(Priority::First, tick(server.clone()));
        server
    }

    /// Serves a connection that came to `port`, by these addresses, from begin to end.
    pub async fn serve(self: &Rc<Self>, transport: Rc<T>, port: PortId, way: &Way) -> EndReason {
        session::serve(self.clone(), transport, port, way).await
    }

    /// Ends all connections, those that come from now on included: who accepted one may not have
    /// come to serve it yet. Their `serve` returns once all they began has ended.
    pub fn close_all(&self) {
        self.closing.set(true);
        self.connections.borrow().iter().for_each(|connection| connection.close());
    }

    /// Forgets all connections, whose tasks do not run any more: the core has ended under them.
    pub fn abandon(&self) {
        drop(self.connections.take());
        drop(self.checks.take());
    }

    /// Ends the workers and the clock; there is no connection any more.
    pub fn stop(&self) {
        self.stopped.set(true);
        self.seats.stop();
        self.changed.notify();
    }

    /// Connections that are there.
    pub fn connections(&self) -> usize {
        self.connections.borrow().len()
    }

    /// Bytes of payload memory that connections hold, besides what each has in reserve.
    pub fn memory_held(&self) -> usize {
        self.memory.held()
    }

    /// True if nothing is under way and all memory is back.
    pub fn is_idle(&self) -> bool {
        self.memory.is_idle()
            && self.seats.all_idle()
            && self.free_checks.get() == CHECKS
            && self.scratch.borrow().len() == CHECKS
    }

    /// Hands a command to a worker; one that compares or verifies waits for scratch memory first.
    pub(crate) fn submit(&self, session: Rc<Session<E, T, X>>, slot: u16, is_check: bool) {
        let job = Job { session, slot, is_check };
        match (is_check, self.free_checks.get()) {
            (false, _) => self.seats.assign(job),
            (true, 0) => self.checks.borrow_mut().push_back(job),
            (true, free) => {
                self.free_checks.set(free - 1);
                self.seats.assign(job);
            }
        }
    }

    pub(crate) fn enter(&self, connection: Rc<dyn Timed>) {
        if self.closing.get() {
            connection.close();
        }
        self.connections.borrow_mut().push(connection);
        self.changed.notify();
        let connections = self.connections.borrow();
        let mut guests = connections.iter().filter(|connection| connection.is_guest());
        let oldest = guests.next();
        if let Some(oldest) = oldest.filter(|_| guests.count() >= GUESTS) {
            oldest.close();
        }
    }

    pub(crate) fn leave(&self, connection: &Rc<dyn Timed>) {
        self.connections.borrow_mut().retain(|other| !Rc::ptr_eq(other, connection));
    }

    /// A check has ended: the next one has its scratch memory.
    fn next_check(&self) -> Option<Job<E, T, X>> {
        let next = self.checks.borrow_mut().pop_front();
        if next.is_none() {
            self.free_checks.set(self.free_checks.get() + 1);
        }
        next
    }

    /// Takes the memory that a check reads into.
    pub(crate) fn take_scratch(&self) -> BufMut {
        self.scratch.borrow_mut().pop().expect("checks are begun as there is memory for them")
    }

    pub(crate) fn give_scratch(&self, scratch: BufMut) {
        self.scratch.borrow_mut().push(scratch);
    }
}

/// A worker's task.
async fn work<E: Env, T: Transport, X: Volumes>(server: Rc<Server<E, T, X>>, seat: usize) {
    while let Some(job) = server.seats.next(seat).await {
        let mut next = Some(job);
        // A check that waited for scratch memory has waited for a worker as well.
        while let Some(Job { session, slot, is_check }) = next {
            session.carry_out(slot).await;
            next = if is_check { server.next_check() } else { None };
        }
        server.seats.rest();
    }
}

/// The clock's task.
async fn tick<E: Env, T: Transport, X: Volumes>(server: Rc<Server<E, T, X>>) {
    loop {
        let needed = || {
            let some = !server.connections.borrow().is_empty();
            (some || server.stopped.get()).then_some(())
        };
        server.changed.wait_until(needed).await;
        if server.stopped.get() {
            return;
        }
        server.env.sleep(TICK).await;
        let now = server.env.now();
        // A tick may end a connection, which then leaves the list.
        let all = server.connections.borrow().clone();
        all.iter().for_each(|connection| connection.tick(now));
    }
}

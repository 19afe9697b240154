//! One connection: one queue of one controller.
//!
//! States: *opened* → *initialized* (parameters were exchanged) → *serving* (a Connect was
//! accepted) → *ending* (nothing is received any more) → *ended* (every command is over, the queue
//! has left its controller). The first two have no memory but their reserve, and end after
//! [`PATIENCE`](crate::limits::PATIENCE); one that is ending sends what it has to for as long. A
//! host that was told why its connection ends has [`LEAVE`](crate::limits::LEAVE) to read it.
//!
//! A serving connection has three tasks: the *receiver* takes PDUs and begins commands; the
//! *provider* gives memory to commands that wait for some, in their order; the *sender* sends. The
//! server's workers carry commands out.
//!
//! Only for data within a capsule, which follows at once, does the receiver wait for memory: there
//! is a piece in reserve for just that, which comes back without the receiver's help. So a host
//! that sends no data, or takes no replies, stops itself, and others that want its memory no longer
//! than for [`STALL`](crate::limits::STALL).
//!
//! Invariants
//! - A connection ends only after all its requests to volumes have.
//! - Commands in progress are bounded by the slots: the queue's entries, and a batch of replies
//!   that the host may have got while we do not know yet.

mod begin;
mod fused;
mod receive;
pub(crate) mod reply;
pub(crate) mod slots;

use crate::access::PortId;
use crate::controller::{Controller, Way};
use crate::limits::{
    DISCOVERY_DATA, EVENT_REQUESTS, LEAVE, LEAVE_BYTES, PATIENCE, REPLY_BATCH, STALL,
};
use crate::mutants::{self, Mutant};
use crate::server::{Server, Timed};
use crate::volume::Held;
use crate::{Transport, Volumes};
use arrayvec::ArrayVec;
use core::cell::{Cell, RefCell};
use front::{Lease, Share};
use io::local::Event;
use io::{BufMut, Env, Priority};
use nvme::command::{Command, Completion, nvm};
use nvme::pdu::{self, Fatal, Kind, Transfer};
use nvme::status::Status;
use reply::{Form, Replies, Reply};
use slots::{Half, Slots, State};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::Nanos;

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// The transport was closed, by either side.
    Closed,
    /// The host said that it ends.
    Host,
    /// The host disconnected its I/O queue.
    Disconnected,
    /// The host broke the protocol.
    Fatal(Fatal),
    /// Its Connect was refused.
    Refused(Status),
    /// The core has as many connections as it may have.
    Full,
    /// Its controller is lost, or was reset.
    Lost,
}

/// What a Connect settled.
pub(crate) struct Terms {
    pub controller: Arc<Controller>,
    pub queue: u16,
    pub entries: u16,
    /// Completions say how far the submission queue was taken.
    pub has_flow_control: bool,
    /// The controller's, as the queue connected.
    pub epoch: u32,
    /// This machine's address that the host came through.
    pub local: String,
}

/// Counts of this queue since they were added to the controller's.
#[derive(Default)]
pub(crate) struct Tally {
    pub read_bytes: Cell<u64>,
    pub written_bytes: Cell<u64>,
    pub reads: Cell<u64>,
    pub writes: Cell<u64>,
}

/// A connection that serves.
pub(crate) struct Session<E: Env, T, X: Volumes> {
    pub server: Rc<Server<E, T, X>>,
    pub transport: Rc<T>,
    pub terms: Terms,
    pub form: Form,
    pub slots: RefCell<Slots<Held<X>>>,
    pub replies: Replies,
    pub view: RefCell<crate::volume::View<X::Key, X::Volume>>,
    pub tally: Tally,
    pub share: Rc<Share>,
    /// Slots that wait for memory, in order.
    waiting: RefCell<VecDeque<u16>>,
    /// What the command that comes next may be the second half of.
    first: Cell<fused::Before>,
    /// Something to wait for changed: see `provide` and `drained`.
    changed: Event,
    /// Commands that workers have.
    working: Cell<usize>,
    /// Requests for events, by slot.
    held: RefCell<ArrayVec<u16, EVENT_REQUESTS>>,
    /// Nothing is sent any more.
    over: Cell<bool>,
    /// The provider ends.
    ended: Cell<bool>,
    sq_head: Cell<u16>,
    /// When a connection that is ending is given up, whatever it still has to send.
    until: Cell<Option<Nanos>>,
}

/// A connection that has not been accepted yet, or serves no more: all the clock can do is end it.
struct Opened<T> {
    transport: Rc<T>,
    until: Nanos,
    is_closed: Cell<bool>,
}

impl<T: Transport> Timed for Opened<T> {
    fn tick(&self, now: Nanos) {
        if now >= self.until {
            self.close();
        }
    }

    fn close(&self) {
        self.is_closed.set(true);
        self.transport.close();
    }

    fn is_guest(&self) -> bool {
        !self.is_closed.get()
    }
}

/// A host connected: serves it to its end. The transport is closed then.
pub(crate) async fn serve<E: Env, T: Transport, X: Volumes>(
    server: Rc<Server<E, T, X>>,
    transport: Rc<T>,
    port: PortId,
    way: &Way,
) -> EndReason {
    let until = server.env.now().after(PATIENCE);
    let is_closed = Cell::new(false);
    let opened = Rc::new(Opened { transport: transport.clone(), until, is_closed });
    // Held to the end, so that those who leave are counted.
    let share = Share::open(&server.memory);
    let reason = match share.clone() {
        None => EndReason::Full,
        Some(share) => {
            let timed: Rc<dyn Timed> = opened.clone();
            server.enter(timed.clone());
            let begun = begin::begin(&server, &opened, port, way).await;
            server.leave(&timed);
            match begun {
                Err(reason) => reason,
                Ok(begun) => Session::run(server.clone(), transport.clone(), begun, share).await,
            }
        }
    };
    let was_told =
        matches!(reason, EndReason::Fatal(_) | EndReason::Refused(_) | EndReason::Disconnected);
    if was_told && !opened.is_closed.get() {
        take_leave(&server, &transport).await;
    }
    transport.close();
    reason
}

/// Lets a host read what it was told last: see [`LEAVE`].
async fn take_leave<E: Env, T: Transport, X: Volumes>(server: &Server<E, T, X>, transport: &Rc<T>) {
    transport.finish();
    let until = server.env.now().after(LEAVE);
    let is_closed = Cell::new(false);
    let leaving: Rc<dyn Timed> = Rc::new(Opened { transport: transport.clone(), until, is_closed });
    server.enter(leaving.clone());
    // Until the host has gone, or the clock or a stop closes the transport.
    let _ = nvme_stream::skip(&**transport, LEAVE_BYTES).await;
    server.leave(&leaving);
}

impl<E: Env, T: Transport, X: Volumes> Session<E, T, X> {
    /// Serves a queue that was accepted.
    async fn run(
        server: Rc<Server<E, T, X>>,
        transport: Rc<T>,
        (terms, form): (Terms, Form),
        share: Rc<Share>,
    ) -> EndReason {
        let env = server.env.clone();
        if terms.controller.is_discovery() {
            share.limit(DISCOVERY_DATA as usize);
        }
        let session = Rc::new(Self {
            transport,
            form,
            slots: RefCell::new(Slots::new(terms.entries + REPLY_BATCH as u16)),
            replies: Replies::new(),
            view: RefCell::default(),
            tally: Tally::default(),
            share,
            waiting: RefCell::default(),
            first: Cell::default(),
            changed: Event::default(),
            working: Cell::new(0),
            held: RefCell::default(),
            over: Cell::new(false),
            ended: Cell::new(false),
            // The Connect was the first.
            sq_head: Cell::new(1),
            until: Cell::new(None),
            server: server.clone(),
            terms,
        });
        if session.terms.queue == 0 {
            session.terms.controller.begin_timer(env.now());
        }
        let timed: Rc<dyn Timed> = session.clone();
        server.enter(timed.clone());
        env.spawn(Priority::First, reply::run(session.clone()));
        env.spawn(Priority::First, provide(session.clone()));
        let (reason, header) = session.receive().await;
        session.until.set(Some(env.now().after(PATIENCE)));
        if let EndReason::Fatal(fatal) = reason {
            session.terminate(fatal, &header).await;
        }
        match reason {
            EndReason::Disconnected => {}
            EndReason::Fatal(_) => session.over.set(true),
            _ => session.give_up(),
        }
        session.drained().await;
        server.leave(&timed);
        session.add_counts();
        let Terms { controller, queue, .. } = &session.terms;
        server.target.end_queue(controller, *queue);
        reason
    }

    /// Nothing is sent any more.
    pub fn is_over(&self) -> bool {
        self.over.get()
    }

    /// The host was told what it did wrong: nothing is sent behind that, but the host may read it.
    pub fn finish(&self) {
        self.over.set(true);
        self.transport.finish();
    }

    /// Closes the transport; what is in progress ends without replies.
    pub fn give_up(&self) {
        self.over.set(true);
        self.transport.close();
    }

    /// Tells the host what it did wrong (TCP, section 3.6.2.5), as the last thing.
    async fn terminate(&self, fatal: Fatal, header: &[u8]) {
        let wrong = &header[..header.len().min(pdu::TERMINATION_DATA_MOST as usize)];
        let head = pdu::termination(Kind::ControllerTermination, fatal, wrong.len() as u32);
        self.replies.push(Reply::Termination([&head[..], wrong].concat().into()));
        self.replies.flushed().await;
    }

    /// Waits until every command is over, then ends this connection's tasks.
    async fn drained(&self) {
        self.waiting.borrow_mut().clear();
        self.slots.borrow_mut().drain();
        self.changed.wait_until(|| (self.working.get() == 0).then_some(())).await;
        self.replies.flushed().await;
        self.ended.set(true);
        self.changed.notify();
        self.replies.stop();
    }

    /// A command came, whose data, if it has some, is not in its capsule: memory first.
    fn begin_transfer(self: &Rc<Self>, slot: u16) {
        let bytes = self.slots.borrow_mut().get(slot).bytes;
        if bytes == 0 && mutants::is(Mutant::EmptyWaits) && self.terms.queue > 0 {
            self.slots.borrow_mut().get(slot).state = State::Receiving;
            return;
        }
        if bytes == 0 {
            return self.work(slot);
        }
        let mut waiting = self.waiting.borrow_mut();
        let first = waiting.is_empty();
        let taken = first.then(|| self.share.try_take_whole(bytes as usize)).flatten();
        match taken {
            Some(buffer) => {
                drop(waiting);
                self.provide_with(slot, buffer);
            }
            None => {
                self.slots.borrow_mut().get(slot).state = State::Waiting;
                waiting.push_back(slot);
                drop(waiting);
                self.changed.notify();
            }
        }
    }

    /// There is memory: asks for the command's data, or carries it out.
    fn provide_with(self: &Rc<Self>, at: u16, buffer: (BufMut, Lease)) {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get(at);
        slot.buffer = Some(buffer);
        if !slot.is_inbound {
            drop(slots);
            return self.work(at);
        }
        slot.state = State::Receiving;
        slot.since = self.server.env.now();
        let (command, bytes) = (slot.command.id(), slot.bytes);
        drop(slots);
        self.replies.push(Reply::Ready(Transfer { command, tag: at, offset: 0, bytes }));
    }

    /// Hands a command to a worker. One of an admin queue waits for nothing, and must not wait for
    /// a worker either: all may be with volumes that hang, and the host asks whether we live.
    fn work(self: &Rc<Self>, slot: u16) {
        if self.terms.queue == 0 {
            let (command, buffer) = {
                let mut slots = self.slots.borrow_mut();
                let slot = slots.get(slot);
                (slot.command.clone(), slot.buffer.take())
            };
            return self.carry_out_admin(slot, &command, buffer);
        }
        let half = self.slots.borrow_mut().get(slot).half;
        if let Some(half) = half {
            return self.work_half(slot, half);
        }
        let is_check = {
            let mut slots = self.slots.borrow_mut();
            let slot = slots.get(slot);
            slot.state = State::Working;
            matches!(slot.command.opcode(), nvm::COMPARE | nvm::VERIFY)
        };
        self.submit(slot, is_check);
    }

    fn submit(self: &Rc<Self>, slot: u16, is_check: bool) {
        self.working.set(self.working.get() + 1);
        self.server.submit(self.clone(), slot, is_check);
    }

    /// A worker's part: carries a command out and answers it.
    pub async fn carry_out(self: Rc<Self>, at: u16) {
        let (command, volume, buffer, half) = {
            let mut slots = self.slots.borrow_mut();
            let slot = slots.get(at);
            (slot.command.clone(), slot.volume.take(), slot.buffer.take(), slot.half)
        };
        let wrong = match &volume {
            _ if !self.is_current() => Some(Status::ABORTED_QUEUE),
            Some((key, _)) if !self.still_has(command.namespace(), key) => {
                Some(self.no_namespace())
            }
            _ => None,
        };
        match (wrong, volume, half) {
            (Some(status), ..) => {
                drop(buffer);
                self.refuse(at, status);
            }
            // Rare: its state does not make every worker's larger.
            (None, Some((_, volume)), Some(Half::Joined(second))) => {
                Box::pin(self.carry_out_both((at, second), &volume, buffer)).await;
            }
            (None, Some((_, volume)), _) => {
                self.carry_out_io(at, &command, &volume, buffer).await;
            }
            (None, None, _) => self.flush_all(at).await,
        }
        self.working.set(self.working.get() - 1);
        if self.working.get() == 0 {
            self.changed.notify();
        }
    }

    /// The completion of a command.
    fn completion(&self, at: u16, status: Status, result: u64) -> Completion {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get(at);
        slot.state = State::Answered;
        // A host may count what it gets instead of what it sends.
        self.terms.controller.note_traffic();
        let mut completion = Completion::of(slot.command.id(), status);
        completion.result = result;
        if self.terms.has_flow_control {
            self.sq_head.set((self.sq_head.get() + 1) % self.terms.entries);
            completion.sq_head = self.sq_head.get();
        }
        completion
    }

    /// A command is over.
    pub fn answer(&self, slot: u16, status: Status, result: u64) {
        let completion = self.completion(slot, status, result);
        self.replies.push(Reply::End { slot, completion });
    }

    /// A command is over, and gives data.
    pub fn answer_with(&self, slot: u16, (data, lease): (BufMut, Lease)) {
        let completion = self.completion(slot, Status::SUCCESS, 0);
        self.replies.push(Reply::Data { slot, data, _lease: lease, completion });
    }

    /// Keeps a request for an event until there is one.
    fn hold(&self, slot: u16) {
        if self.held.borrow_mut().try_push(slot).is_err() {
            return self.answer(slot, Status::ASYNC_EVENT_LIMIT, 0);
        }
        self.slots.borrow_mut().get(slot).state = State::Held;
        self.tell_events();
    }

    /// The controller was reset: requests for events end without an answer (Base, section 3.7.2).
    pub fn forget_held(&self) {
        let mut slots = self.slots.borrow_mut();
        self.held.take().into_iter().for_each(|slot| slots.end(slot));
    }

    /// Answers requests for events as far as there are some.
    pub fn tell_events(&self) {
        while !self.held.borrow().is_empty() {
            let Some(result) = self.terms.controller.next_event() else { return };
            let slot = self.held.borrow_mut().remove(0);
            self.answer(slot, Status::SUCCESS, result.into());
        }
    }

    /// Adds what this queue counted to its controller's.
    pub fn add_counts(&self) {
        let (own, all) = (&self.tally, &self.terms.controller.counts);
        let pairs = [
            (&own.read_bytes, &all.read_bytes),
            (&own.written_bytes, &all.written_bytes),
            (&own.reads, &all.reads),
            (&own.writes, &all.writes),
        ];
        for (from, to) in pairs {
            to.fetch_add(from.take(), Ordering::Relaxed);
        }
    }

    /// The host keeps memory for longer than it may, for data or for replies.
    fn has_stalled(&self, now: Nanos) -> bool {
        let is_long = |since: Nanos| now.since(since) > STALL;
        let is_full = self.replies.sending_since().is_some_and(is_long);
        is_full || self.slots.borrow().receiving_since().is_some_and(is_long)
    }

    /// The command is of a controller that is there, and of this epoch.
    pub fn is_current(&self) -> bool {
        let Terms { controller, queue, epoch, .. } = &self.terms;
        let is_past = controller.epoch() != *epoch && !mutants::is(Mutant::EpochKept);
        let is_lost = controller.is_lost_by(self.server.env.now());
        !is_lost && (*queue == 0 || !is_past)
    }
}

impl<E: Env, T: Transport, X: Volumes> Timed for Session<E, T, X> {
    fn tick(&self, now: Nanos) {
        let controller = &self.terms.controller;
        self.add_counts();
        // What is gone is let go of, even if no command comes.
        self.refresh();
        if self.terms.queue == 0 {
            controller.look_at_timer(now);
            self.tell_events();
        }
        if self.server.memory.is_wanted() && self.has_stalled(now) {
            self.give_up();
        }
        if !self.is_current() || self.until.get().is_some_and(|until| now >= until) {
            self.give_up();
        }
    }

    fn close(&self) {
        self.give_up();
    }

    fn is_guest(&self) -> bool {
        self.terms.controller.is_discovery() && !self.is_over()
    }
}

/// The provider's task: gives memory to commands that wait for some.
async fn provide<E: Env, T: Transport, X: Volumes>(session: Rc<Session<E, T, X>>) {
    let next = || session.waiting.borrow().front().copied();
    loop {
        let come = || (session.ended.get() || next().is_some()).then_some(());
        session.changed.wait_until(come).await;
        let Some(slot) = next() else { return };
        let bytes = session.slots.borrow_mut().get(slot).bytes as usize;
        let buffer = session.share.take_whole(&session.server.env, bytes).await;
        // The connection may have begun to end meanwhile.
        if next() == Some(slot) {
            session.waiting.borrow_mut().pop_front();
            session.provide_with(slot, buffer);
        }
    }
}

/// What a command's admission gives.
pub(crate) struct Admitted<V> {
    pub volume: Option<V>,
    pub flow: Flow,
}

/// How a command goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// It moves no data.
    Plain,
    /// So many bytes to the host.
    Out(u32),
    /// So many bytes from the host; with `false`, at least so many.
    In(u32, bool),
    /// It is kept until there is an event.
    Event,
    /// It is answered; the queue ends.
    Disconnect,
}

/// Whether a command is what this queue can do.
pub(crate) type Admission<V> = Result<Admitted<V>, Status>;

impl<V> Admitted<V> {
    pub fn plain() -> Self {
        Self { volume: None, flow: Flow::Plain }
    }

    pub fn out(bytes: u32) -> Self {
        Self { volume: None, flow: Flow::Out(bytes) }
    }
}

/// Where the data of a command is: checks what the command says against what it needs and what its
/// capsule holds; gives the bytes that move.
pub(crate) fn data_bytes(command: &Command, flow: Flow, capsule: u32) -> Result<u32, Status> {
    use nvme::sgl::Sgl;
    let said = match command.sgl() {
        Sgl::InCapsule { offset, .. } if offset != 0 => return Err(Status::SGL_OFFSET),
        Sgl::InCapsule { length, .. } if length != capsule => return Err(Status::SGL_LENGTH),
        Sgl::Transport { .. } if capsule != 0 => return Err(Status::SGL_LENGTH),
        Sgl::InCapsule { length, .. } | Sgl::Transport { length } => Some(length),
        Sgl::Other(_) => None,
    };
    let (needed, is_exact, is_outbound) = match flow {
        Flow::Plain | Flow::Event | Flow::Disconnect => return Ok(0),
        Flow::Out(bytes) => (bytes, true, true),
        Flow::In(bytes, is_exact) => (bytes, is_exact, false),
    };
    match said {
        None => Err(Status::SGL_TYPE),
        Some(_) if is_outbound && capsule != 0 => Err(Status::SGL_TYPE),
        Some(said) if mutants::is(Mutant::LengthUnchecked) => Ok(said),
        Some(said) if said < needed || is_exact && said != needed => Err(Status::SGL_LENGTH),
        Some(said) if said > crate::limits::DATA_MOST => Err(Status::INVALID_FIELD),
        Some(said) => Ok(said),
    }
}

//! The transmission phase: one receiver, a fixed set of workers, one sender.
//!
//! The *receiver* reads requests, checks them, takes memory for their payload (and stops reading
//! while there is none) and hands jobs to *workers*; a worker carries out one job at a time and
//! queues its reply; the *sender* writes queued replies, several at once. So commands are
//! answered in the order in which they are done.
//!
//! States of a connection: *serving* → *ending* (the client said goodbye, broke the protocol or
//! is gone: nothing is received any more) → *ended* (every job is done and its reply sent or
//! dropped: workers and sender end). A goodbye still gets its replies; else the transport is
//! closed first.
//!
//! A request begins when nothing is left of connections to the volume that broke before it came
//! ([`front::fence`]); and this connection is one of these for others from when nothing is received
//! any more until its last change of the volume is over.
//!
//! States of a job: it holds one of [`JOBS`] *credits* from before its memory is taken until its
//! reply is sent, or until it is done if it has none.
//!
//! Invariants
//! - Idle workers are at least as many as free credits, so a job always finds a worker.
//! - Workers never wait for memory or credits; the receiver waits for both holding neither
//!   memory nor an unassigned payload.
//! - Nothing is allocated after the start.

mod reply;
mod work;

use crate::command::{Action, Extent, Refusal, Terms, admit};
use crate::handshake::Agreed;
use crate::limits::{COMMANDS, JOBS, REQUEST_BYTES_MAX};
use crate::wire::{self, REQUEST_BYTES, Request, command};
use crate::{Closed, EndReason, Transport, Violation};
use core::cell::{Cell, RefCell};
use front::memory::{LARGEST, RESERVE_BYTES};
use front::{Lease, Passage, Seats, Share, piece_bytes};
use io::local::Semaphore;
use io::{Blocks, BufMut, Env, Priority};
use reply::{Replies, Reply};
use std::rc::Rc;
use work::{Job, Work};

/// Serves requests until the connection ends, with its memory and its place at the volume's fence.
/// `scratch` is used to skip unwanted payload.
pub(crate) async fn serve<E: Env, T: Transport, V: Blocks>(
    env: E,
    transport: Rc<T>,
    agreed: Agreed<V>,
    (share, passage): (Rc<Share>, Rc<Passage>),
    scratch: &mut [u8],
) -> EndReason {
    let block_bytes = agreed.volume.block_bytes();
    assert!(
        block_bytes.is_power_of_two() && block_bytes as usize <= RESERVE_BYTES,
        "a volume's blocks are a power of two and fit a piece"
    );
    let session = Rc::new(Session {
        env: env.clone(),
        transport,
        volume: agreed.volume,
        terms: agreed.terms,
        share,
        commands: RefCell::new(Commands::new()),
        seats: Seats::new(JOBS),
        replies: Replies::new(),
        credits: Semaphore::new(JOBS),
        passage: RefCell::new(Some(passage)),
        broken: Cell::new(false),
    });
    for seat in 0..JOBS {
        env.spawn(Priority::First, work::run(session.clone(), seat));
    }
    env.spawn(Priority::First, reply::run(session.clone()));
    let reason = session.receive(scratch).await;
    if let Some(passage) = session.passage.take() {
        passage.break_off();
    }
    if reason != EndReason::Disconnected {
        session.give_up();
    }
    session.credits.acquire(JOBS).await;
    session.seats.stop();
    session.replies.stop();
    reason
}

/// What the tasks of one connection share.
struct Session<E, T, V> {
    env: E,
    transport: Rc<T>,
    volume: V,
    terms: Terms,
    share: Rc<Share>,
    commands: RefCell<Commands>,
    seats: Seats<Job>,
    replies: Replies,
    credits: Semaphore,
    /// Until nothing is received any more.
    passage: RefCell<Option<Rc<Passage>>>,
    /// Replies are dropped, as nobody gets them.
    broken: Cell<bool>,
}

impl<E: Env, T: Transport, V: Blocks> Session<E, T, V> {
    /// Closes the transport; what is in progress ends without replies.
    fn give_up(&self) {
        self.broken.set(true);
        self.transport.close();
    }

    /// The place at the fence, for what changes the volume. The receiver has it.
    fn passage(&self) -> Rc<Passage> {
        self.passage.borrow().clone().expect("it is given up behind the receiver")
    }

    /// The receiver.
    async fn receive(&self, scratch: &mut [u8]) -> EndReason {
        let passage = self.passage();
        loop {
            let mut raw = [0; REQUEST_BYTES];
            if self.transport.read_exact(&mut raw).await.is_err() {
                return EndReason::Closed;
            }
            let Some(request) = Request::decode(&raw) else {
                return Violation::RequestMagic.into();
            };
            if request.kind == command::DISC {
                return EndReason::Disconnected;
            }
            if request.kind == command::WRITE && request.bytes > REQUEST_BYTES_MAX {
                return Violation::WriteTooLong.into();
            }
            passage.pass().await;
            self.credits.acquire(1).await;
            if self.start(&request, scratch).await.is_err() {
                return EndReason::Closed;
            }
        }
    }

    /// Starts a request; one credit is taken for it.
    async fn start(&self, request: &Request, scratch: &mut [u8]) -> Result<(), Closed> {
        let bytes = self.volume.bytes();
        let extent = Extent { bytes, block_bytes: self.volume.block_bytes() };
        let action = match admit(request, extent, self.terms) {
            Ok(action) => action,
            Err(refusal) => {
                if request.kind == command::WRITE
                    && let Err(closed) = self.skip(request.bytes, scratch).await
                {
                    self.credits.release(1);
                    return Err(closed);
                }
                self.answer(request.kind, request.cookie, Some(refusal));
                return Ok(());
            }
        };
        match action {
            Action::Nothing => self.answer(request.kind, request.cookie, None),
            Action::BlockStatus => {
                let head = wire::allocated_chunk(request.cookie, request.bytes);
                self.replies.push(Reply::plain(head));
            }
            Action::Read if !self.terms.structured => self.start_read_in_order(request).await,
            Action::Read => self.start_read(request).await,
            Action::Write { fua } => return self.start_write(request, fua).await,
            Action::Flush => self.start_plain(request, Work::Flush),
            Action::Trim { offset, bytes, fua } => {
                self.start_plain(request, Work::Trim { offset, bytes, fua });
            }
            Action::WriteZeroes { fua } => {
                let Request { offset, bytes, .. } = *request;
                let work = Work::WriteZeroes { offset, bytes: u64::from(bytes), fua };
                self.start_plain(request, work);
            }
        }
        Ok(())
    }

    /// Takes unwanted payload off the stream.
    async fn skip(&self, bytes: u32, scratch: &mut [u8]) -> Result<(), Closed> {
        let mut left = bytes as usize;
        while left > 0 {
            let part = left.min(scratch.len());
            self.transport.read_exact(&mut scratch[..part]).await?;
            left -= part;
        }
        Ok(())
    }

    fn start_plain(&self, request: &Request, work: Work) {
        let command = self.commands.borrow_mut().begin(request);
        let passage = work.changes().then(|| self.passage());
        self.seats.assign(Job { command, work, lease: None, passage });
    }

    /// Each piece is a job and a chunk of its own.
    async fn start_read(&self, request: &Request) {
        let command = self.commands.borrow_mut().begin(request);
        let end = request.offset + u64::from(request.bytes);
        let mut offset = request.offset;
        loop {
            let (into, lease) = self.take(offset, end - offset).await;
            let work = Work::Read { offset, into };
            offset += work.payload_bytes();
            self.seats.assign(Job { command, work, lease: Some(lease), passage: None });
            if offset == end {
                return;
            }
            self.credits.acquire(1).await;
        }
    }

    /// A simple reply has its data in one run: one job sends it, piece by piece if it is long.
    async fn start_read_in_order(&self, request: &Request) {
        let Request { offset, bytes, .. } = *request;
        let left = u64::from(bytes);
        let (into, lease) = self.take(offset, left).await;
        let command = self.commands.borrow_mut().begin(request);
        let work = if into.len() as u64 == left {
            Work::Read { offset, into }
        } else {
            Work::ReadInOrder { offset, bytes: left, into }
        };
        self.seats.assign(Job { command, work, lease: Some(lease), passage: None });
    }

    /// Receives the payload piece by piece; each piece is a job as soon as it is there.
    async fn start_write(&self, request: &Request, fua: bool) -> Result<(), Closed> {
        let command = self.commands.borrow_mut().begin(request);
        let end = request.offset + u64::from(request.bytes);
        let mut offset = request.offset;
        loop {
            let (mut data, lease) = self.take(offset, end - offset).await;
            if let Err(closed) = self.transport.read_exact(&mut data).await {
                self.credits.release(1);
                return Err(closed);
            }
            let work = Work::Write { offset, data, fua };
            offset += work.payload_bytes();
            let passage = Some(self.passage());
            self.seats.assign(Job { command, work, lease: Some(lease), passage });
            if offset == end {
                return Ok(());
            }
            self.credits.acquire(1).await;
        }
    }

    /// Memory for the next piece of a range, at most `left` bytes.
    async fn take(&self, offset: u64, left: u64) -> (BufMut, Lease) {
        let stripe = self.volume.stripe_bytes();
        let want = piece_bytes(offset, left, LARGEST, stripe);
        let (mut piece, lease) = self.share.take(&self.env, want).await;
        if piece.len() < want {
            piece.truncate(piece_bytes(offset, left, piece.len(), stripe));
        }
        (piece, lease)
    }

    /// Queues a reply without data; it carries the job's credit.
    fn answer(&self, kind: u16, cookie: u64, refusal: Option<Refusal>) {
        let head = match refusal {
            Some(Refusal { code, message, offset }) if self.terms.structured => {
                wire::error_chunk(cookie, code, message, offset)
            }
            None if self.terms.structured && kind == command::READ => wire::done_chunk(cookie),
            refusal => wire::simple_reply(cookie, refusal.map(|refusal| refusal.code)),
        };
        self.replies.push(Reply::plain(head));
    }
}

/// A command in progress.
#[derive(Clone, Copy)]
struct Command {
    kind: u16,
    cookie: u64,
    /// Payload bytes of jobs that are not done yet.
    left: u64,
    /// The first error of its jobs.
    refusal: Option<Refusal>,
}

/// A command whose last job is done.
struct Finished {
    kind: u16,
    cookie: u64,
    refusal: Option<Refusal>,
}

/// The commands in progress, in fixed places.
struct Commands {
    places: Vec<Command>,
    free: Vec<usize>,
}

impl Commands {
    fn new() -> Self {
        let none = Command { kind: 0, cookie: 0, left: 0, refusal: None };
        Self { places: vec![none; COMMANDS], free: (0..COMMANDS).collect() }
    }

    /// Notes a command; gives its place.
    fn begin(&mut self, request: &Request) -> usize {
        let place = self.free.pop().expect("commands are bounded by credits");
        let Request { kind, cookie, bytes, .. } = *request;
        let carries = matches!(kind, command::READ | command::WRITE);
        let left = if carries { u64::from(bytes) } else { 0 };
        self.places[place] = Command { kind, cookie, left, refusal: None };
        place
    }

    fn get(&self, place: usize) -> Command {
        self.places[place]
    }

    /// Notes that a job with `bytes` of payload is done; gives the command if it was its last.
    fn settle(
        &mut self,
        place: usize,
        bytes: u64,
        outcome: Result<(), Refusal>,
    ) -> Option<Finished> {
        let command = &mut self.places[place];
        command.left -= bytes;
        command.refusal = command.refusal.or(outcome.err());
        let Command { kind, cookie, left, refusal } = *command;
        if left > 0 {
            return None;
        }
        self.free.push(place);
        Some(Finished { kind, cookie, refusal })
    }
}

//! A client's connection on one core, with many requests under way.
//!
//! States of a slot: *free* → *asked* (its request is with the sender or on its way; the slot has
//! the buffers) → *answered* → free, by whoever asked. A slot's number names its request to the
//! server.
//!
//! Two tasks of a connection: the sender, which sends what all have put together since it last did,
//! and the receiver, which waits for the server only while something is asked. Both end when nobody
//! uses the connection any more: then nothing is under way, and nothing was read ahead. So a stream
//! can be used again and again, on any core.
//!
//! Invariant: when the stream fails, everything asked is answered as failed, and all that is asked
//! later is.

use crate::rig::Env;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};
use io::local::{Event, Semaphore};
use io::{Buf, BufMut, Closed, Env as _, Priority, Transport};
use runtime::Socket;
use runtime::Stream;
use std::io::IoSlice;
use std::net::TcpStream;
use std::rc::Rc;
use workload::Target;

/// Requests of a connection at a time; more wait for their turn.
pub const SLOTS: u16 = 1023;
/// Bytes read ahead.
const AHEAD: usize = 32 << 10;

/// What a request is.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    /// So many bytes are read.
    Read(usize),
    /// These are written.
    Write(&'a [u8]),
}

/// How requests and replies look.
pub trait Protocol: Sized + 'static {
    /// What is known of a connection, from one use of it to the next.
    type Kept: Clone + Send + Sync + 'static;

    /// Appends the request of a slot: `space` is one of several address spaces that a connection
    /// may have.
    fn ask(kept: &Self::Kept, out: &mut Vec<u8>, slot: u16, at: (u32, u64), what: Ask<'_>);
    /// Receives one message, and does what follows from it.
    fn receive(line: &Line<Self>) -> impl Future<Output = Result<(), Closed>>;
}

/// A connection that nobody uses, and on which nothing is under way.
pub struct Connection<P: Protocol> {
    /// Its stream.
    pub stream: TcpStream,
    /// What is known of it.
    pub kept: P::Kept,
}

impl<P: Protocol<Kept = ()>> From<TcpStream> for Connection<P> {
    fn from(stream: TcpStream) -> Self {
        Self { stream, kept: () }
    }
}

#[derive(Default)]
struct Slot {
    into: Option<BufMut>,
    data: Option<Buf>,
    answer: Option<bool>,
    waker: Option<Waker>,
}

/// A connection that is used.
pub struct Line<P: Protocol> {
    /// Where replies come from.
    pub stream: Stream,
    /// What is known of it.
    pub kept: P::Kept,
    slots: RefCell<Vec<Slot>>,
    free: RefCell<Vec<u16>>,
    turns: Semaphore,
    asked: Cell<usize>,
    out: RefCell<Vec<u8>>,
    is_over: Cell<bool>,
    is_broken: Cell<bool>,
    /// Something is to be sent or received, or it is over.
    changed: Event,
}

impl<P: Protocol> Line<P> {
    /// Appends to what is sent next.
    pub fn send(&self, append: impl FnOnce(&mut Vec<u8>)) {
        append(&mut self.out.borrow_mut());
        self.changed.notify();
    }

    /// Something of a slot's written data.
    ///
    /// # Errors
    /// `Closed` if nothing is written there: the server asks for what it should not.
    pub fn data(&self, slot: u16) -> Result<Buf, Closed> {
        let slots = self.slots.borrow();
        let data = slots.get(usize::from(slot)).and_then(|own| own.data.as_ref());
        data.map(|own| own.slice(..)).ok_or(Closed)
    }

    /// Whether a slot's request is a read.
    pub fn reads(&self, slot: u16) -> bool {
        self.slots.borrow().get(usize::from(slot)).is_some_and(|own| own.into.is_some())
    }

    /// Fills a part of a slot's buffer with what comes next; all that is left of it for `None`.
    ///
    /// # Errors
    /// `Closed` if the stream fails, or nothing is read there.
    pub async fn fill(&self, slot: u16, part: Option<(usize, usize)>) -> Result<(), Closed> {
        let number = usize::from(slot);
        let into = self.slots.borrow_mut().get_mut(number).and_then(|own| own.into.take());
        let mut into = into.ok_or(Closed)?;
        let (from, bytes) = part.unwrap_or((0, into.len()));
        let filled = match into.get_mut(from..from.saturating_add(bytes)) {
            Some(part) => self.stream.read_exact(part).await,
            None => Err(Closed),
        };
        if let Some(own) = self.slots.borrow_mut().get_mut(number) {
            own.into = Some(into);
        }
        filled
    }

    /// A slot's request is done.
    ///
    /// # Errors
    /// `Closed` if there is none.
    pub fn answer(&self, slot: u16, succeeded: bool) -> Result<(), Closed> {
        let mut slots = self.slots.borrow_mut();
        let own = slots.get_mut(usize::from(slot)).ok_or(Closed)?;
        if own.into.is_none() && own.data.is_none() || own.answer.is_some() {
            return Err(Closed);
        }
        own.answer = Some(succeeded);
        self.asked.set(self.asked.get() - 1);
        if let Some(waker) = own.waker.take() {
            waker.wake();
        }
        Ok(())
    }

    fn fail(&self) {
        self.is_broken.set(true);
        for slot in 0..SLOTS {
            // Slots that have nothing to answer are left alone.
            let _ = self.answer(slot, false);
        }
        self.changed.notify();
    }

    async fn request(
        &self,
        space: u32,
        at: u64,
        (into, data): (Option<BufMut>, Option<Buf>),
    ) -> (bool, Option<BufMut>) {
        self.turns.acquire(1).await;
        let (slot, outcome) = match self.is_broken.get() {
            true => (None, (false, into)),
            false => {
                let slot = self.free.borrow_mut().pop().expect("as many turns as slots");
                self.send(|out| match (&into, &data) {
                    (Some(into), _) => {
                        P::ask(&self.kept, out, slot, (space, at), Ask::Read(into.len()));
                    }
                    (_, data) => {
                        let data = data.as_deref().unwrap_or_default();
                        P::ask(&self.kept, out, slot, (space, at), Ask::Write(data));
                    }
                });
                let asked = Slot { into, data, answer: None, waker: None };
                self.slots.borrow_mut()[usize::from(slot)] = asked;
                self.asked.set(self.asked.get() + 1);
                (Some(slot), self.answered(slot).await)
            }
        };
        self.free.borrow_mut().extend(slot);
        self.turns.release(1);
        outcome
    }

    async fn answered(&self, slot: u16) -> (bool, Option<BufMut>) {
        poll_fn(|cx| {
            let own = &mut self.slots.borrow_mut()[usize::from(slot)];
            match own.answer {
                Some(succeeded) => Poll::Ready((succeeded, core::mem::take(own).into)),
                None => {
                    own.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The sender.
    async fn sender(self: Rc<Self>) {
        let mut bytes = Vec::new();
        loop {
            let next = || {
                let is_over = self.is_over.get() || self.is_broken.get();
                (is_over || !self.out.borrow().is_empty()).then_some(is_over)
            };
            if self.changed.wait_until(next).await {
                return;
            }
            core::mem::swap(&mut bytes, &mut *self.out.borrow_mut());
            if self.stream.write_all(&mut [IoSlice::new(&bytes)]).await.is_err() {
                return self.fail();
            }
            bytes.clear();
        }
    }

    /// The receiver.
    async fn receiver(self: Rc<Self>) {
        loop {
            let next = || match (self.is_broken.get(), self.asked.get(), self.is_over.get()) {
                (true, ..) | (_, 0, true) => Some(false),
                (_, 0, _) => None,
                _ => Some(true),
            };
            if !self.changed.wait_until(next).await {
                return;
            }
            if P::receive(&self).await.is_err() {
                return self.fail();
            }
        }
    }
}

/// The use of a connection: its last one ends the tasks, and leaves the stream open.
struct User<P: Protocol>(Rc<Line<P>>);

impl<P: Protocol> Drop for User<P> {
    fn drop(&mut self) {
        self.0.is_over.set(true);
        self.0.changed.notify();
    }
}

/// Connections of one core to a server, used in turns.
pub struct Lines<P: Protocol> {
    users: Vec<User<P>>,
    next: Cell<usize>,
}

impl<P: Protocol> Lines<P> {
    /// Uses connections that have been made, and on which nothing is under way.
    ///
    /// # Errors
    /// When the system does not let this core have them.
    pub fn new(env: &Env, connections: &[Connection<P>]) -> std::io::Result<Self> {
        let one = |own: &Connection<P>| {
            let socket = Socket::from_tcp(env.reactor(), own.stream.try_clone()?)?;
            let line = Rc::new(Line {
                stream: Stream::new(socket, AHEAD),
                kept: own.kept.clone(),
                slots: RefCell::new((0..SLOTS).map(|_| Slot::default()).collect()),
                free: RefCell::new((0..SLOTS).rev().collect()),
                turns: Semaphore::new(SLOTS.into()),
                asked: Cell::new(0),
                out: RefCell::default(),
                is_over: Cell::new(false),
                is_broken: Cell::new(false),
                changed: Event::default(),
            });
            env.spawn(Priority::First, line.clone().sender());
            env.spawn(Priority::First, line.clone().receiver());
            Ok(User(line))
        };
        let users = connections.iter().map(one).collect::<std::io::Result<_>>()?;
        Ok(Self { users, next: Cell::new(0) })
    }

    fn turn(&self) -> &Line<P> {
        let at = self.next.replace(self.next.get() + 1);
        &self.users[at % self.users.len()].0
    }
}

/// An address space behind connections.
pub struct Remote<P: Protocol> {
    lines: Rc<Lines<P>>,
    space: u32,
    bytes: u64,
}

impl<P: Protocol> Remote<P> {
    /// The space of this name, of so many bytes.
    pub fn new(lines: Rc<Lines<P>>, space: u32, bytes: u64) -> Self {
        Self { lines, space, bytes }
    }
}

impl<P: Protocol> Clone for Remote<P> {
    fn clone(&self) -> Self {
        Self::new(self.lines.clone(), self.space, self.bytes)
    }
}

impl<P: Protocol> Target for Remote<P> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    async fn read(&self, at: u64, into: BufMut) -> (bool, BufMut) {
        let asked = self.lines.turn().request(self.space, at, (Some(into), None)).await;
        (asked.0, asked.1.expect("a read has its buffer"))
    }

    async fn write(&self, at: u64, data: Buf) -> bool {
        self.lines.turn().request(self.space, at, (None, Some(data))).await.0
    }
}

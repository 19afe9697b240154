//! Two byte queues as a transport. It can deliver in small steps and can refuse to take bytes.

use palisade_nbd::{Closed, Transport};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Default)]
pub struct Pipe {
    to_server: RefCell<VecDeque<u8>>,
    to_client: RefCell<VecDeque<u8>>,
    hung_up: Cell<bool>,
    left: Cell<bool>,
    closed: Cell<bool>,
    /// Most bytes the server gets or gives per poll; 0 is no limit.
    pub step: Cell<usize>,
    /// Bytes that wait for the client before writes wait; 0 is no limit.
    pub capacity: Cell<usize>,
    /// The client takes nothing for now.
    stuck: Cell<bool>,
    /// Calls of `write_all`.
    pub writes: Cell<usize>,
    wakers: RefCell<Vec<Waker>>,
}

impl Pipe {
    pub fn new() -> Rc<Self> {
        Rc::default()
    }

    fn changed(&self) {
        for waker in self.wakers.borrow_mut().drain(..) {
            waker.wake();
        }
    }

    fn wait<T>(&self, cx: &mut Context<'_>) -> Poll<T> {
        self.wakers.borrow_mut().push(cx.waker().clone());
        Poll::Pending
    }

    /// From the client.
    pub fn send(&self, bytes: &[u8]) {
        self.to_server.borrow_mut().extend(bytes);
        self.changed();
    }

    /// The client sends nothing more; it still takes.
    pub fn hang_up(&self) {
        self.hung_up.set(true);
        self.changed();
    }

    /// The client is gone.
    pub fn leave(&self) {
        self.left.set(true);
        self.hang_up();
    }

    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Bytes sent by the client that the server has not read.
    pub fn unread(&self) -> usize {
        self.to_server.borrow().len()
    }

    pub fn set_stuck(&self, stuck: bool) {
        self.stuck.set(stuck);
        self.changed();
    }

    /// All that the server sent so far.
    pub fn take_sent(&self) -> Vec<u8> {
        self.to_client.borrow_mut().drain(..).collect()
    }

    /// The client takes `n` bytes; `None` once the server has closed and fewer are left.
    pub fn receive(&self, n: usize) -> impl Future<Output = Option<Vec<u8>>> + '_ {
        poll_fn(move |cx| {
            let mut queue = self.to_client.borrow_mut();
            if queue.len() >= n {
                let bytes = queue.drain(..n).collect();
                drop(queue);
                self.changed();
                return Poll::Ready(Some(bytes));
            }
            if self.closed.get() {
                return Poll::Ready(None);
            }
            self.wait(cx)
        })
    }

    fn step(&self, wanted: usize) -> usize {
        match self.step.get() {
            0 => wanted,
            step => wanted.min(step),
        }
    }
}

impl Transport for Pipe {
    fn read_exact(&self, into: &mut [u8]) -> impl Future<Output = Result<(), Closed>> {
        let mut filled = 0;
        poll_fn(move |cx| {
            if self.closed.get() {
                return Poll::Ready(Err(Closed));
            }
            let mut queue = self.to_server.borrow_mut();
            let count = self.step((into.len() - filled).min(queue.len()));
            for (to, from) in into[filled..].iter_mut().zip(queue.drain(..count)) {
                *to = from;
            }
            filled += count;
            if filled == into.len() {
                return Poll::Ready(Ok(()));
            }
            if !queue.is_empty() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.hung_up.get() {
                return Poll::Ready(Err(Closed));
            }
            self.wait(cx)
        })
    }

    fn write_all(&self, parts: &mut [IoSlice<'_>]) -> impl Future<Output = Result<(), Closed>> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let mut sent = 0;
        self.writes.set(self.writes.get() + 1);
        poll_fn(move |cx| {
            if self.closed.get() || self.left.get() {
                return Poll::Ready(Err(Closed));
            }
            let waiting = self.to_client.borrow().len();
            let full = self.capacity.get() > 0 && waiting >= self.capacity.get();
            if self.stuck.get() || full {
                return self.wait(cx);
            }
            let count = self.step(bytes.len() - sent);
            self.to_client.borrow_mut().extend(&bytes[sent..sent + count]);
            sent += count;
            self.changed();
            if sent == bytes.len() {
                return Poll::Ready(Ok(()));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
    }

    fn finish(&self) {
        unreachable!("this front end ends both directions at once")
    }

    fn close(&self) {
        self.closed.set(true);
        self.changed();
    }
}

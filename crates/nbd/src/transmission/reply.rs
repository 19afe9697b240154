//! The sender: writes queued replies, several at once where several are ready.
//!
//! Invariants
//! - Every queued reply carries one credit and gives it back once it is sent or dropped; so the
//!   queue is never longer than there are credits.
//! - Whoever writes to the transport holds `turn`, so a reply that is sent in several writes is
//!   not interleaved with others.

use super::Session;
use crate::limits::{JOBS, REPLY_BATCH};
use crate::wire::Head;
use crate::{Closed, Transport};
use arrayvec::ArrayVec;
use core::cell::{Cell, RefCell};
use front::Lease;
use io::local::{Event, Semaphore};
use io::{Blocks, BufMut, Env};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;

/// One reply, or one chunk of one.
pub(super) struct Reply {
    head: Head,
    data: Option<BufMut>,
    /// Behind `data`: dropped after it.
    _lease: Option<Lease>,
}

impl Reply {
    /// Without data.
    pub fn plain(head: Head) -> Self {
        Self { head, data: None, _lease: None }
    }

    /// With data and its lease.
    pub fn with_data(head: Head, data: BufMut, lease: Option<Lease>) -> Self {
        Self { head, data: Some(data), _lease: lease }
    }
}

/// Replies that wait to be sent.
pub(super) struct Replies {
    queue: RefCell<VecDeque<Reply>>,
    ready: Event,
    turn: Semaphore,
    stopped: Cell<bool>,
}

impl Replies {
    pub fn new() -> Self {
        Self {
            queue: RefCell::new(VecDeque::with_capacity(JOBS)),
            ready: Event::default(),
            turn: Semaphore::new(1),
            stopped: Cell::new(false),
        }
    }

    /// Queues a reply.
    pub fn push(&self, reply: Reply) {
        self.queue.borrow_mut().push_back(reply);
        self.ready.notify();
    }

    /// Ends the sender; the queue is empty.
    pub fn stop(&self) {
        self.stopped.set(true);
        self.ready.notify();
    }

    /// True once there is something to send, false once stopped.
    async fn wait(&self) -> bool {
        self.ready
            .wait_until(|| {
                let some = !self.queue.borrow().is_empty();
                (some || self.stopped.get()).then_some(some)
            })
            .await
    }

    fn next_batch(&self) -> ArrayVec<Reply, REPLY_BATCH> {
        let mut queue = self.queue.borrow_mut();
        let count = queue.len().min(REPLY_BATCH);
        queue.drain(..count).collect()
    }
}

impl<E: Env, T: Transport, V: Blocks> Session<E, T, V> {
    /// Waits for the right to write to the transport.
    pub(super) async fn begin_send(&self) {
        self.replies.turn.acquire(1).await;
    }

    /// Gives it back.
    pub(super) fn end_send(&self) {
        self.replies.turn.release(1);
    }

    /// Writes the parts; the caller has the right to. A failure ends the connection.
    pub(super) async fn send(&self, parts: &mut [IoSlice<'_>]) -> Result<(), Closed> {
        if self.broken.get() {
            return Err(Closed);
        }
        let outcome = self.transport.write_all(parts).await;
        if outcome.is_err() {
            self.give_up();
        }
        outcome
    }
}

/// The sender's task.
pub(super) async fn run<E: Env, T: Transport, V: Blocks>(session: Rc<Session<E, T, V>>) {
    while session.replies.wait().await {
        session.begin_send().await;
        let batch = session.replies.next_batch();
        let mut parts = ArrayVec::<IoSlice<'_>, { 2 * REPLY_BATCH }>::new();
        for reply in &batch {
            parts.push(IoSlice::new(&reply.head));
            if let Some(data) = &reply.data {
                parts.push(IoSlice::new(data));
            }
        }
        // A failure was noted by `send`; from then on replies are dropped.
        let _ = session.send(&mut parts).await;
        session.end_send();
        drop(parts);
        let count = batch.len();
        drop(batch);
        session.credits.release(count);
    }
}

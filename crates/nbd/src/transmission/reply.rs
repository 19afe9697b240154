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
use front::{Lease, Outbox};
use io::local::Semaphore;
use io::{Blocks, BufMut, Env};
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

/// Replies that wait to be sent, and whose turn it is to write.
pub(super) struct Replies {
    outbox: Outbox<Reply>,
    turn: Semaphore,
}

impl Replies {
    pub fn new() -> Self {
        Self { outbox: Outbox::new(JOBS), turn: Semaphore::new(1) }
    }

    /// Queues a reply.
    pub fn push(&self, reply: Reply) {
        self.outbox.push(reply);
    }

    /// Ends the sender; the queue is empty.
    pub fn stop(&self) {
        self.outbox.stop();
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
    let outbox = &session.replies.outbox;
    while outbox.wait().await {
        session.begin_send().await;
        let batch = outbox.next_batch::<REPLY_BATCH>();
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

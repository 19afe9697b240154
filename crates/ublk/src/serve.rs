//! One core's requests: a task for each tag.
//!
//! States of a tag: *waiting* for a request → *carrying it out* → *waiting*, with the answer → …
//! → *over* (the device ends). Of a session: *serving* → *ending* (the first tag is over: nothing
//! of it changes the volume that has not begun) → *ended* (all are over).
//!
//! A change of the volume begins when nothing is left of connections to it that broke before it
//! came ([`front::fence`]); this is one of these for others from when the first tag is over.
//!
//! Invariant: a task waits for memory only while it holds none.

use crate::limits::REQUEST_BYTES_MAX;
use crate::wire::{Ask, FAILED, NOT_SUPPORTED, Request};
use crate::{Fence, Queue};
use front::{ConnectionMemory, Passage, Share};
use io::local::Semaphore;
use io::{BlockError, Blocks, Env, Priority};
use std::rc::Rc;
use std::sync::Arc;

/// Serves a queue of a volume's device on this core, until the device ends and all has ended that
/// was begun. False, and at once, if the core has as many connections as its memory allows, whose
/// reserves are as in [`crate::MEMORY`]. Must be polled to its end.
pub async fn serve<E: Env, Q: Queue, V: Blocks>(
    env: E,
    queue: Rc<Q>,
    volume: V,
    (fence, memory): (&Arc<Fence>, &Rc<ConnectionMemory>),
) -> bool {
    let Some(share) = Share::open(memory) else { return false };
    let passage = Rc::new(fence.enter(queue.link()));
    let (over, depth) = (Rc::new(Semaphore::new(0)), queue.depth());
    let session = Rc::new(Session { env: env.clone(), queue, volume, share, passage });
    for tag in 0..depth {
        let (session, over) = (session.clone(), over.clone());
        env.spawn(Priority::First, async move {
            session.serve(tag).await;
            // Others must not wait for what does not begin any more.
            session.passage.break_off();
            drop(session);
            over.release(1);
        });
    }
    drop(session);
    over.acquire(depth.into()).await;
    true
}

struct Session<E, Q, V> {
    env: E,
    queue: Rc<Q>,
    volume: V,
    share: Rc<Share>,
    passage: Rc<Passage>,
}

impl<E: Env, Q: Queue, V: Blocks> Session<E, Q, V> {
    /// A tag's task.
    async fn serve(&self, tag: u16) {
        let mut answer = None;
        while let Ok(request) = self.queue.next(tag, answer).await {
            answer = Some(self.carry_out(tag, request).await);
        }
    }

    /// Whether all of a request lies in the volume, which may be smaller than the device was.
    fn has(&self, request: &Request) -> bool {
        let end = request.offset.checked_add(request.bytes);
        end.is_some_and(|end| end <= self.volume.bytes())
    }

    /// Carries a request out; its answer.
    async fn carry_out(&self, tag: u16, request: Request) -> i32 {
        let Request { ask, offset, bytes } = request;
        let moves = matches!(ask, Ask::Read | Ask::Write { .. });
        if moves && bytes > REQUEST_BYTES_MAX as u64 || ask != Ask::Flush && !self.has(&request) {
            return FAILED;
        }
        let outcome = match ask {
            Ask::Read => return self.read(tag, offset, bytes as usize).await,
            Ask::Write { fua } => return self.write(tag, (offset, bytes as usize), fua).await,
            Ask::Flush => self.volume.flush().await,
            Ask::Discard => {
                self.passage.pass().await;
                self.volume.discard(offset, bytes).await
            }
            Ask::Zero { fua } => {
                self.passage.pass().await;
                self.volume.write_zeroes(offset, bytes, fua).await
            }
            Ask::Unknown => return NOT_SUPPORTED,
        };
        answer(outcome, 0)
    }

    async fn read(&self, tag: u16, offset: u64, bytes: usize) -> i32 {
        let (into, _lease) = self.share.take_all(&self.env, bytes).await;
        let (outcome, data) = self.volume.read(offset, into).await;
        if outcome.is_ok() && self.queue.give(tag, &data).is_err() {
            return FAILED;
        }
        answer(outcome, bytes)
    }

    async fn write(&self, tag: u16, (offset, bytes): (u64, usize), fua: bool) -> i32 {
        let (mut data, _lease) = self.share.take_all(&self.env, bytes).await;
        // Before anything is computed of it: whoever writes may change it meanwhile.
        if self.queue.take(tag, &mut data).is_err() {
            return FAILED;
        }
        self.passage.pass().await;
        let outcome = self.volume.write(offset, data.freeze(), fua).await;
        answer(outcome, bytes)
    }
}

/// What an outcome is to the kernel: how many bytes were moved, or an error.
fn answer(outcome: Result<(), BlockError>, bytes: usize) -> i32 {
    outcome.map_or(FAILED, |()| bytes as i32)
}

//! One ring's requests: as many tasks as may be under way.
//!
//! States of a task: *waiting* for a request → *carrying it out* → *waiting*, with the answer in
//! the ring → … → *over*. Of a session: *serving* → *ending* (the first task is over: nothing of it
//! changes the volume that has not begun) → *ended* (all are over).
//!
//! A change of the volume begins when nothing is left of connections to it that broke before it
//! came ([`front::fence`]); this is one of these for others from when the first task is over.
//!
//! Invariant: a task waits for memory only while it holds none.

use crate::chain::Chain;
use crate::limits::{DEPTH, PIECE_BYTES, REQUEST_BYTES_MAX};
use crate::wire::{self, Ask, HEADER, NAME, SEGMENT, Status};
use crate::{Bell, Fence, Ring};
use front::{Passage, Share};
use io::local::Semaphore;
use io::{BlockError, Blocks, Env, Priority};
use std::rc::Rc;
use std::sync::Arc;

/// Serves a ring of a volume's device on this core, which is known by `name`, until nothing more is
/// to be taken and all has ended that was begun, with a share of memory whose reserves are as in
/// [`crate::MEMORY`]. Must be polled to its end.
pub async fn serve<E: Env, B: Bell, V: Blocks>(
    env: E,
    ring: Rc<Ring<B>>,
    (volume, name): (V, [u8; NAME]),
    (fence, share): (&Arc<Fence>, Rc<Share>),
) {
    let passage = Rc::new(fence.enter(ring.bell().link()));
    let over = Rc::new(Semaphore::new(0));
    let session = Rc::new(Session { env: env.clone(), ring, volume, name, share, passage });
    for _ in 0..DEPTH {
        let (session, over) = (session.clone(), over.clone());
        env.spawn(Priority::First, async move {
            session.serve().await;
            // Others must not wait for what does not begin any more.
            session.passage.break_off();
            drop(session);
            over.release(1);
        });
    }
    drop(session);
    over.acquire(DEPTH).await;
}

struct Session<E, B, V> {
    env: E,
    ring: Rc<Ring<B>>,
    volume: V,
    name: [u8; NAME],
    share: Rc<Share>,
    passage: Rc<Passage>,
}

impl<E: Env, B: Bell, V: Blocks> Session<E, B, V> {
    async fn serve(&self) {
        let mut chain = Chain::default();
        while let Ok(head) = self.ring.next(&mut chain).await {
            // The last byte that is written says how it ended (5.2.6).
            let written = match chain.writable.bytes().checked_sub(1) {
                None => 0,
                Some(at) => {
                    let status = self.carry_out(&chain, at).await;
                    let is_told =
                        chain.writable.write(self.ring.memory(), at, &[status as u8]).is_ok();
                    match (is_told, status) {
                        (true, Status::Well) => u32::try_from(at + 1).unwrap_or(u32::MAX),
                        (true, _) => 1,
                        (false, _) => 0,
                    }
                }
            };
            self.ring.answer(head, written);
        }
    }

    /// Carries a request out, into which so many bytes are to be written.
    async fn carry_out(&self, chain: &Chain, room: u64) -> Status {
        let mut header = [0; HEADER];
        if chain.readable.read(self.ring.memory(), 0, &mut header).is_err() {
            return Status::Failed;
        }
        let payload = chain.readable.bytes() - HEADER as u64;
        match wire::ask(&header) {
            Ask::Read(from) if self.has(from, room) => self.read(chain, from, room).await,
            Ask::Write(from) if self.has(from, payload) => self.write(chain, from, payload).await,
            Ask::Read(_) | Ask::Write(_) => Status::Failed,
            Ask::Flush => status(self.volume.flush().await),
            Ask::Name => {
                let bytes = NAME.min(room as usize);
                match chain.writable.write(self.ring.memory(), 0, &self.name[..bytes]) {
                    Ok(()) => Status::Well,
                    Err(_) => Status::Failed,
                }
            }
            ask @ (Ask::Discard | Ask::Zero) => self.give_up(chain, ask, payload).await,
            Ask::Unknown => Status::Unsupported,
        }
    }

    /// Whether a range lies in the volume, which may be smaller than the device was told to be.
    fn has(&self, from: u64, bytes: u64) -> bool {
        let end = from.checked_add(bytes);
        bytes <= REQUEST_BYTES_MAX && end.is_some_and(|end| end <= self.volume.bytes())
    }

    async fn read(&self, chain: &Chain, from: u64, bytes: u64) -> Status {
        for at in (0..bytes).step_by(PIECE_BYTES) {
            let piece = (bytes - at).min(PIECE_BYTES as u64) as usize;
            let (into, _lease) = self.share.take_all(&self.env, piece).await;
            let (outcome, data) = self.volume.read(from + at, into).await;
            let is_told =
                outcome.is_ok() && chain.writable.write(self.ring.memory(), at, &data).is_ok();
            if !is_told {
                return Status::Failed;
            }
        }
        Status::Well
    }

    async fn write(&self, chain: &Chain, from: u64, bytes: u64) -> Status {
        for at in (0..bytes).step_by(PIECE_BYTES) {
            let piece = (bytes - at).min(PIECE_BYTES as u64) as usize;
            let (mut data, _lease) = self.share.take_all(&self.env, piece).await;
            // Before anything is computed of it: whoever writes may change it meanwhile.
            if chain.readable.read(self.ring.memory(), HEADER as u64 + at, &mut data).is_err() {
                return Status::Failed;
            }
            self.passage.pass().await;
            if self.volume.write(from + at, data.freeze(), false).await.is_err() {
                return Status::Failed;
            }
        }
        Status::Well
    }

    /// Discards a segment, or makes it zero.
    async fn give_up(&self, chain: &Chain, ask: Ask, payload: u64) -> Status {
        let mut bytes = [0; SEGMENT];
        let is_one = payload == SEGMENT as u64;
        let memory = self.ring.memory();
        if !is_one || chain.readable.read(memory, HEADER as u64, &mut bytes).is_err() {
            return Status::Failed;
        }
        let Some((from, bytes)) = wire::segment(&bytes, ask) else { return Status::Unsupported };
        let end = from.checked_add(bytes);
        if bytes > crate::limits::ZEROED_BYTES_MAX
            || end.is_none_or(|end| end > self.volume.bytes())
        {
            return Status::Failed;
        }
        self.passage.pass().await;
        status(match ask {
            Ask::Zero => self.volume.write_zeroes(from, bytes, false).await,
            _ => self.volume.discard(from, bytes).await,
        })
    }
}

fn status(outcome: Result<(), BlockError>) -> Status {
    outcome.map_or(Status::Failed, |()| Status::Well)
}

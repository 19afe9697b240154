//! One ring's requests: as many tasks as may be under way.
//!
//! States of a task: *waiting* for a request → *carrying it out* → *waiting*, with the answer in
//! the ring → … → *over*. Of a session: *serving* → *ending* (the first task is over: nothing of it
//! changes the volume that has not begun) → *ended* (all are over).
//!
//! A change of the volume begins when nothing is left of connections to it that broke before it
//! came ([`front::fence`]); this is one of these for others from when the first task is over.
//!
//! A ring that is stopped while its array stops, too, leaves what meets that to the next server.
//!
//! Invariant: a task waits for memory only while it holds none.

use crate::chain::Chain;
use crate::limits::{DEPTH, PIECE_BYTES, REQUEST_BYTES_MAX};
use crate::wire::{self, Ask, HEADER, NAME, SEGMENT, Status};
use crate::{Bell, Fence, Gone, Ring};
use core::cell::Cell;
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
    let is_stopped = Cell::new(false);
    let session =
        Rc::new(Session { env: env.clone(), ring, volume, name, share, passage, is_stopped });
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
    /// A request has met an array that has stopped.
    is_stopped: Cell<bool>,
}

impl<E: Env, B: Bell, V: Blocks> Session<E, B, V> {
    async fn serve(&self) {
        let mut chain = Chain::default();
        while let Ok(head) = self.ring.next(&mut chain).await {
            // The last byte that is written says how it ended (5.2.6).
            let written = match chain.writable.bytes().checked_sub(1) {
                None => 0,
                Some(at) => {
                    let (status, given) = self.carry_out(&chain, at).await;
                    // The array has stopped: the next server carries it out.
                    if self.is_stopped.get() && self.ring.bell().is_over() {
                        continue;
                    }
                    let told = self.ring.tell(&chain.writable, at, &[status as u8]);
                    match told {
                        Ok(()) => u32::try_from(given + 1).unwrap_or(u32::MAX),
                        Err(Gone) => 0,
                    }
                }
            };
            self.ring.answer(head, written);
        }
    }

    /// Carries a request out, into which so many bytes are to be written; how it went, and how many
    /// were.
    async fn carry_out(&self, chain: &Chain, room: u64) -> (Status, u64) {
        let mut header = [0; HEADER];
        if chain.readable.read(self.ring.memory(), 0, &mut header).is_err() {
            return (Status::Failed, 0);
        }
        let ask = wire::ask(&header);
        let given = match ask {
            Ask::Read(_) => room,
            Ask::Name => room.min(NAME as u64),
            _ => 0,
        };
        match self.answer(chain, ask, room).await {
            Status::Well => (Status::Well, given),
            status => (status, 0),
        }
    }

    async fn answer(&self, chain: &Chain, ask: Ask, room: u64) -> Status {
        let payload = chain.readable.bytes() - HEADER as u64;
        match ask {
            Ask::Read(from) if self.has(from, room) => self.read(chain, from, room).await,
            Ask::Write(from) if self.has(from, payload) => self.write(chain, from, payload).await,
            Ask::Read(_) | Ask::Write(_) => Status::Failed,
            Ask::Flush => self.status(self.volume.flush().await),
            Ask::Name => {
                let bytes = NAME.min(room as usize);
                match self.ring.tell(&chain.writable, 0, &self.name[..bytes]) {
                    Ok(()) => Status::Well,
                    Err(Gone) => Status::Failed,
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
            let status = self.status(outcome);
            if status != Status::Well {
                return status;
            }
            if self.ring.tell(&chain.writable, at, &data).is_err() {
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
            let is_through = self.ring.is_write_through();
            let status = self.status(self.volume.write(from + at, data.freeze(), is_through).await);
            if status != Status::Well {
                return status;
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
        let is_through = self.ring.is_write_through();
        self.status(match ask {
            Ask::Zero => self.volume.write_zeroes(from, bytes, is_through).await,
            _ => self.discard(from, bytes, is_through).await,
        })
    }

    async fn discard(&self, from: u64, bytes: u64, is_through: bool) -> Result<(), BlockError> {
        self.volume.discard(from, bytes).await?;
        if is_through { self.volume.flush().await } else { Ok(()) }
    }

    fn status(&self, outcome: Result<(), BlockError>) -> Status {
        if outcome == Err(BlockError::Stopped) {
            self.is_stopped.set(true);
        }
        outcome.map_or(Status::Failed, |()| Status::Well)
    }
}

//! The workers: each carries out one job at a time against the volume.
//!
//! Invariant: a job gives its credit on to exactly one reply, or back.

use super::reply::Reply;
use super::{Finished, Session};
use crate::command::Refusal;
use crate::wire::{self, command};
use crate::{Closed, Transport};
use front::{Lease, Passage};
use io::{BlockError, Blocks, BufMut, Env};
use std::io::IoSlice;
use std::rc::Rc;

/// What a worker does; ranges are aligned and were inside the volume.
pub(super) enum Work {
    /// Read one piece and queue it.
    Read { offset: u64, into: BufMut },
    /// Read and send a long range through one piece of memory, as one simple reply.
    ReadInOrder { offset: u64, bytes: u64, into: BufMut },
    /// Write one piece.
    Write { offset: u64, data: BufMut, fua: bool },
    /// Flush.
    Flush,
    /// Discard, then flush for FUA.
    Trim { offset: u64, bytes: u64, fua: bool },
    /// Write zeros.
    WriteZeroes { offset: u64, bytes: u64, fua: bool },
}

impl Work {
    /// How many of its command's payload bytes this is.
    pub fn payload_bytes(&self) -> u64 {
        match self {
            Self::Read { into, .. } => into.len() as u64,
            Self::ReadInOrder { bytes, .. } => *bytes,
            Self::Write { data, .. } => data.len() as u64,
            Self::Flush | Self::Trim { .. } | Self::WriteZeroes { .. } => 0,
        }
    }

    /// Whether the volume is another after it.
    pub fn changes(&self) -> bool {
        match self {
            Self::Write { .. } | Self::Trim { .. } | Self::WriteZeroes { .. } => true,
            Self::Read { .. } | Self::ReadInOrder { .. } | Self::Flush => false,
        }
    }
}

/// One piece of work for a command.
pub(super) struct Job {
    /// The command's place.
    pub command: usize,
    /// What to do.
    pub work: Work,
    /// The memory's lease; outlives the memory in `work`.
    pub lease: Option<Lease>,
    /// The connection's place at the fence, if it changes the volume: for as long as it does.
    pub passage: Option<Rc<Passage>>,
}

/// A worker's task.
pub(super) async fn run<E: Env, T: Transport, V: Blocks>(
    session: Rc<Session<E, T, V>>,
    seat: usize,
) {
    while let Some(job) = session.seats.next(seat).await {
        session.carry_out(job).await;
        session.seats.rest();
    }
}

impl<E: Env, T: Transport, V: Blocks> Session<E, T, V> {
    async fn carry_out(&self, job: Job) {
        let Job { command, work, lease, passage } = job;
        let bytes = work.payload_bytes();
        let volume = &self.volume;
        let outcome = match work {
            Work::Read { offset, into } => return self.read(command, offset, into, lease).await,
            Work::ReadInOrder { offset, bytes, into } => {
                return self.read_in_order(command, offset, bytes, into, lease).await;
            }
            Work::Write { offset, data, fua } => self.write(command, offset, data, fua).await,
            Work::Flush => volume.flush().await.map_err(|e| Refusal::of(e, command::FLUSH)),
            Work::Trim { offset, bytes, fua } => {
                let outcome = self.trim(offset, bytes, fua).await;
                outcome.map_err(|e| Refusal::of(e, command::TRIM))
            }
            Work::WriteZeroes { offset, bytes, fua } => {
                let outcome = volume.write_zeroes(offset, bytes, fua).await;
                outcome.map_err(|e| Refusal::of(e, command::WRITE_ZEROES))
            }
        };
        drop((passage, lease));
        self.finish(command, bytes, outcome);
    }

    /// Notes a job's end; the command's last one answers.
    fn finish(&self, command: usize, bytes: u64, outcome: Result<(), Refusal>) {
        let finished = self.commands.borrow_mut().settle(command, bytes, outcome);
        match finished {
            Some(Finished { kind, cookie, refusal }) => self.answer(kind, cookie, refusal),
            None => self.credits.release(1),
        }
    }

    async fn read(&self, command: usize, offset: u64, into: BufMut, lease: Option<Lease>) {
        let bytes = into.len();
        let (outcome, data) = self.volume.read(offset, into).await;
        let cookie = self.commands.borrow().get(command).cookie;
        if let Err(error) = outcome {
            drop(data);
            drop(lease);
            let refusal = Refusal::of(error, command::READ).at(offset);
            return self.finish(command, bytes as u64, Err(refusal));
        }
        let finished = self.commands.borrow_mut().settle(command, bytes as u64, Ok(()));
        let done = match finished {
            // The error is told in place of these data: a reply must end with something.
            Some(Finished { kind, cookie, refusal: Some(refusal) }) => {
                return self.answer(kind, cookie, Some(refusal));
            }
            Some(_) => true,
            None => false,
        };
        let head = if self.terms.structured {
            wire::data_chunk(cookie, offset, bytes as u32, done)
        } else {
            wire::simple_reply(cookie, None)
        };
        self.replies.push(Reply::with_data(head, data, lease));
    }

    /// The first piece decides whether the reply is an error; a later error can only be told by
    /// ending the connection (proto.md, `NBD_CMD_READ`, simple replies).
    async fn read_in_order(
        &self,
        command: usize,
        offset: u64,
        bytes: u64,
        into: BufMut,
        lease: Option<Lease>,
    ) {
        let (outcome, first) = self.volume.read(offset, into).await;
        if let Err(error) = outcome {
            drop(first);
            drop(lease);
            return self.finish(command, bytes, Err(Refusal::of(error, command::READ)));
        }
        self.begin_send().await;
        if self.send_in_order(command, offset, bytes, first).await.is_err() {
            self.give_up();
        }
        self.end_send();
        drop(lease);
        self.commands.borrow_mut().settle(command, bytes, Ok(()));
        self.credits.release(1);
    }

    async fn send_in_order(
        &self,
        command: usize,
        mut offset: u64,
        bytes: u64,
        mut piece: BufMut,
    ) -> Result<(), Closed> {
        let head = wire::simple_reply(self.commands.borrow().get(command).cookie, None);
        self.send(&mut [IoSlice::new(&head)]).await?;
        let end = offset + bytes;
        loop {
            self.send(&mut [IoSlice::new(&piece)]).await?;
            offset += piece.len() as u64;
            if offset == end {
                return Ok(());
            }
            let left = usize::try_from(end - offset).unwrap_or(usize::MAX);
            piece.truncate(left);
            let outcome;
            (outcome, piece) = self.volume.read(offset, piece).await;
            outcome.map_err(|_| Closed)?;
        }
    }

    /// Writes a piece, unless one of the command's other pieces already failed.
    async fn write(
        &self,
        command: usize,
        offset: u64,
        data: BufMut,
        fua: bool,
    ) -> Result<(), Refusal> {
        if let Some(refusal) = self.commands.borrow().get(command).refusal {
            return Err(refusal);
        }
        let outcome = self.volume.write(offset, data.freeze(), fua).await;
        outcome.map_err(|error| Refusal::of(error, command::WRITE).at(offset))
    }

    /// A discard has no FUA of its own.
    async fn trim(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        self.volume.discard(offset, bytes).await?;
        if fua { self.volume.flush().await } else { Ok(()) }
    }
}

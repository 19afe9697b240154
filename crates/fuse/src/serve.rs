//! One core's requests: one receiver, a fixed set of workers.
//!
//! The *receiver* takes a large piece of memory when there are requests, which the payload of the
//! next write lands in, and hands jobs to *workers*. A payload that is small is moved to a piece of
//! its size; one that is not keeps the large piece, and the receiver takes another before it
//! receives more. A read for which there is no piece of its size takes the large one, too. A worker
//! carries out one job at a time and answers it.
//!
//! States of a session: *serving* → *ending* (the file is not mounted any more: nothing is
//! received) → *ended* (every job is done).
//!
//! A request of the volume begins when nothing is left of connections to it that broke before it
//! came ([`front::fence`]); this is one of these for others from when nothing is received any more.
//!
//! Invariants
//! - Idle workers are at least as many as free credits, so a job always finds a worker.
//! - No request is taken from the kernel that another core could carry out sooner: a credit comes
//!   first.
//! - Workers never wait for memory. The receiver waits for its large piece, and has nothing then,
//!   and with it for a credit; a session has one piece in reserve, so that others can't keep it
//!   waiting.

use crate::limits::{BACKGROUND, JOBS, MOVED_MOST, REQUEST_BYTES_MAX};
use crate::range::{self, Change};
use crate::wire::{
    Answer, Ask, Attributes, Errno, HEAD, MAJOR, MINOR, OLDEST, Request, Terms, decode, init_flag,
    open_flag,
};
use crate::{Device, Fence, Look, Unmounted};
use core::convert::Infallible;
use front::{ConnectionMemory, Lease, Passage, Seats, Share};
use io::local::Semaphore;
use io::{BlockError, Blocks, BufMut, Env, Pool, Priority};
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use units::BAND_BYTES;

/// What of INIT's flags is wanted.
const WANTED: u64 = init_flag::ASYNC_READ
    | init_flag::BIG_WRITES
    | init_flag::ASYNC_DIRECT
    | init_flag::MAX_PAGES
    | init_flag::EXTENDED;

/// Serves a volume's file on this core, until it is not mounted any more and all has ended that was
/// begun. False, and at once, if the core has as many connections as its memory allows, whose
/// reserves are as in [`crate::MEMORY`]. Must be polled to its end.
pub async fn serve<E: Env, D: Device, V: Blocks>(
    env: E,
    device: Rc<D>,
    (volume, look): (V, Look),
    (fence, memory): (&Arc<Fence>, &Rc<ConnectionMemory>),
) -> bool {
    let Some(share) = Share::open(memory) else { return false };
    let passage = Rc::new(fence.enter(device.link()));
    let session = Rc::new(Session {
        env: env.clone(),
        device,
        volume,
        look,
        share,
        seats: Seats::new(JOBS),
        credits: Semaphore::new(JOBS),
    });
    for seat in 0..JOBS {
        env.spawn(Priority::First, work(session.clone(), seat));
    }
    let Err(Unmounted) = session.receive(&passage).await;
    passage.break_off();
    session.credits.acquire(JOBS).await;
    session.seats.stop();
    true
}

struct Session<E, D, V> {
    env: E,
    device: Rc<D>,
    volume: V,
    look: Look,
    share: Rc<Share>,
    seats: Seats<Job>,
    credits: Semaphore,
}

/// A request under way.
struct Job {
    unique: u64,
    work: Work,
    /// The lease of its memory, which it outlives.
    lease: Option<Lease>,
    /// The place at the fence, if it changes the volume.
    passage: Option<Rc<Passage>>,
}

/// Memory that a payload lands in.
type Landing = (BufMut, Lease);

fn shortened((mut piece, lease): Landing, bytes: usize) -> Landing {
    piece.truncate(bytes);
    (piece, lease)
}

enum Work {
    /// Into a piece of memory that is as long as what is read, or longer where the range is not
    /// aligned, and a block behind it where that is too short: from which byte on, and how many.
    Read {
        offset: u64,
        into: BufMut,
        tail: Option<BufMut>,
        from: usize,
        bytes: usize,
    },
    Write {
        offset: u64,
        data: BufMut,
        fua: bool,
    },
    Zero {
        offset: u64,
        bytes: u64,
    },
    Flush,
}

/// A worker's task.
async fn work<E: Env, D: Device, V: Blocks>(session: Rc<Session<E, D, V>>, seat: usize) {
    while let Some(job) = session.seats.next(seat).await {
        session.carry_out(job).await;
        session.credits.release(1);
        session.seats.rest();
    }
}

/// What an error of the volume is to a program.
fn errno(error: BlockError) -> Errno {
    match error {
        BlockError::Bounds => Errno::NoSpace,
        BlockError::Unavailable | BlockError::Stopped => Errno::Io,
    }
}

impl<E: Env, D: Device, V: Blocks> Session<E, D, V> {
    /// The receiver.
    async fn receive(&self, passage: &Rc<Passage>) -> Result<Infallible, Unmounted> {
        let mut head = [0; HEAD];
        loop {
            self.device.ready().await?;
            let mut landing = self.landing().await;
            // Others of this core have their turn, too.
            for _ in 0..JOBS {
                self.credits.acquire(1).await;
                let received = self.device.receive(&mut head, &mut landing.0);
                let Ok(Some(bytes)) = received else {
                    self.credits.release(1);
                    received?;
                    break;
                };
                let payload = &landing.0[..bytes.saturating_sub(HEAD)];
                let request = decode(&head[..bytes.min(HEAD)], payload);
                if request.ask.is_of_volume() {
                    passage.pass().await;
                }
                landing = match self.begin(request, landing, passage) {
                    Some(landing) => landing,
                    None => self.landing().await,
                };
            }
        }
    }

    /// A piece of memory of so many bytes; the large one if there is none, else that is given back.
    fn piece(&self, bytes: usize, landing: Landing) -> (Landing, Option<Landing>) {
        match self.share.try_take_whole(bytes) {
            Some(own) => (own, Some(landing)),
            None => (shortened(landing, bytes), None),
        }
    }

    async fn landing(&self) -> Landing {
        self.share.take_all(&self.env, REQUEST_BYTES_MAX).await
    }

    /// Begins a request, for which a credit is taken. Gives the memory back that its payload was
    /// in, unless that is kept.
    fn begin(&self, request: Request, landing: Landing, passage: &Rc<Passage>) -> Option<Landing> {
        let Request { unique, ask } = request;
        match ask {
            Ask::Read { offset, bytes } => return self.read(unique, (offset, bytes), landing),
            Ask::Write { offset, bytes, fua } => {
                return self.write(unique, (offset, bytes, fua), landing, passage);
            }
            Ask::Zero { offset, bytes, keeps_size: false, .. } if !self.has(offset, bytes) => {
                self.end(&Answer::refused(unique, Errno::NoSpace));
            }
            Ask::Zero { offset, bytes, .. } => match self.room(offset, bytes) {
                0 => self.end(&Answer::done(unique)),
                bytes => {
                    let work = Work::Zero { offset, bytes };
                    let passage = Some(passage.clone());
                    self.seats.assign(Job { unique, work, lease: None, passage });
                }
            },
            Ask::Flush => {
                self.seats.assign(Job { unique, work: Work::Flush, lease: None, passage: None });
            }
            ask => self.at_once(unique, ask),
        }
        Some(landing)
    }

    fn write(
        &self,
        unique: u64,
        (offset, bytes, fua): (u64, u32, bool),
        landing: Landing,
        passage: &Rc<Passage>,
    ) -> Option<Landing> {
        let bytes = self.room(offset, u64::from(bytes)) as usize;
        if bytes == 0 {
            self.end(&Answer::refused(unique, Errno::NoSpace));
            return Some(landing);
        }
        let ((mut data, lease), landing) = match bytes > MOVED_MOST {
            true => (shortened(landing, bytes), None),
            false => self.piece(bytes, landing),
        };
        if let Some((payload, _)) = &landing {
            data.copy_from_slice(&payload[..bytes]);
        }
        let (work, passage) = (Work::Write { offset, data, fua }, Some(passage.clone()));
        self.seats.assign(Job { unique, work, lease: Some(lease), passage });
        landing
    }

    fn read(&self, unique: u64, (offset, bytes): (u64, u32), landing: Landing) -> Option<Landing> {
        let bytes = self.room(offset, u64::from(bytes).min(REQUEST_BYTES_MAX as u64));
        if bytes == 0 {
            self.end(&Answer::done(unique));
            return Some(landing);
        }
        let block = u64::from(self.volume.block_bytes());
        let first = offset - offset % block;
        let most = first + REQUEST_BYTES_MAX as u64;
        let end = (offset + bytes).next_multiple_of(block);
        // At most one block more, since what is asked for begins in the first one.
        let tail = (end > most).then(|| Pool::single(block as usize));
        let (from, bytes) = ((offset - first) as usize, bytes as usize);
        let whole = (end.min(most) - first) as usize;
        let ((into, lease), landing) = self.piece(whole, landing);
        let work = Work::Read { offset: first, into, tail, from, bytes };
        self.seats.assign(Job { unique, work, lease: Some(lease), passage: None });
        landing
    }

    /// Answers what needs nothing of the volume but its size.
    fn at_once(&self, unique: u64, ask: Ask) {
        let answer = match ask {
            Ask::Init { major, minor, readahead, flags } => {
                init(unique, (major, minor), readahead, flags)
            }
            Ask::Attributes => Answer::attributes(unique, &self.attributes()),
            Ask::SetAttributes { others: true, .. } => Answer::refused(unique, Errno::NotPermitted),
            // As a block device, it has the size that it has.
            Ask::SetAttributes { size: Some(size), is_open, .. }
                if size != self.volume.bytes() && (is_open || size > 0) =>
            {
                Answer::refused(unique, Errno::Invalid)
            }
            Ask::SetAttributes { .. } => Answer::attributes(unique, &self.attributes()),
            Ask::Open => {
                let flags = open_flag::DIRECT | open_flag::NO_FLUSH | open_flag::PARALLEL_WRITES;
                Answer::opened(unique, flags)
            }
            Ask::Allocate { offset, bytes } => match self.has(offset, bytes) {
                true => Answer::done(unique),
                false => Answer::refused(unique, Errno::NoSpace),
            },
            // All of it is data, and the only hole is behind it (lseek(2)).
            Ask::Seek { offset, .. } if offset >= self.volume.bytes() => {
                Answer::refused(unique, Errno::NoSuchPlace)
            }
            Ask::Seek { hole: true, .. } => Answer::place(unique, self.volume.bytes()),
            Ask::Seek { offset, hole: false } => Answer::place(unique, offset),
            Ask::Size => Answer::size(unique, self.volume.bytes(), self.unit()),
            Ask::Refused(errno) => Answer::refused(unique, errno),
            Ask::Silent | Ask::Wrong => return self.credits.release(1),
            _ => Answer::done(unique),
        };
        self.end(&answer);
    }

    /// Answers a request that began no job.
    fn end(&self, answer: &Answer) {
        self.device.answer(&[IoSlice::new(answer.bytes())]);
        self.credits.release(1);
    }

    fn attributes(&self) -> Attributes {
        let Look { uid, gid, mode, seconds } = self.look;
        Attributes { bytes: self.volume.bytes(), seconds, mode, uid, gid }
    }

    /// What is given up as a whole: a band of each drive's data.
    fn unit(&self) -> u32 {
        let drives = self.volume.stripe_bytes() / self.volume.strip_bytes().max(1);
        u32::try_from(BAND_BYTES * u64::from(drives)).unwrap_or(self.volume.block_bytes())
    }

    /// Whether all of these bytes are there.
    fn has(&self, offset: u64, bytes: u64) -> bool {
        offset.checked_add(bytes).is_some_and(|end| end <= self.volume.bytes())
    }

    /// How many of these bytes there are.
    fn room(&self, offset: u64, bytes: u64) -> u64 {
        self.volume.bytes().saturating_sub(offset).min(bytes)
    }

    async fn carry_out(&self, job: Job) {
        let Job { unique, work, lease, passage } = job;
        let volume = &self.volume;
        let outcome = match work {
            Work::Read { offset, into, tail, from, bytes } => {
                let (mut outcome, data) = volume.read(offset, into).await;
                let mut more = tail;
                if let (Ok(()), Some(tail)) = (outcome, more.take()) {
                    let at = offset + data.len() as u64;
                    let (own, tail) = volume.read(at, tail).await;
                    (outcome, more) = (own, Some(tail));
                }
                if outcome.is_ok() {
                    let head = Answer::data(unique, bytes);
                    let data = &data[from..data.len().min(from + bytes)];
                    let more = more.as_deref().unwrap_or_default();
                    let more = &more[..bytes - data.len()];
                    return self.device.answer(&[head.bytes(), data, more].map(IoSlice::new));
                }
                // Where it was there when it was asked for, and is no more, too.
                outcome.map_err(|_| BlockError::Unavailable).map(|()| Answer::done(unique))
            }
            Work::Write { offset, data, fua } => {
                let bytes = data.len();
                let change = Change::Write { data: data.freeze(), fua };
                let outcome = range::change(volume, offset, bytes as u64, change).await;
                outcome.map(|()| Answer::written(unique, bytes as u32))
            }
            Work::Zero { offset, bytes } => {
                let outcome = range::change(volume, offset, bytes, Change::Zero).await;
                outcome.map(|()| Answer::done(unique))
            }
            Work::Flush => volume.flush().await.map(|()| Answer::done(unique)),
        };
        drop((passage, lease));
        let answer = outcome.unwrap_or_else(|error| Answer::refused(unique, errno(error)));
        self.device.answer(&[IoSlice::new(answer.bytes())]);
    }
}

/// What an INIT comes to. A kernel with a later major version asks again with ours (fuse.h,
/// "Protocol changelog"); one that is too old is refused.
fn init(unique: u64, (major, minor): (u32, u32), readahead: u32, flags: u64) -> Answer {
    if major < MAJOR || major == MAJOR && minor < OLDEST {
        return Answer::refused(unique, Errno::Protocol);
    }
    let minor = if major > MAJOR { MINOR } else { minor.min(MINOR) };
    let (background, bytes_most) = (BACKGROUND, REQUEST_BYTES_MAX as u32);
    let terms = Terms { minor, readahead, flags: flags & WANTED, background, bytes_most };
    Answer::init(unique, &terms)
}

//! One core's part of volumes that are ublk devices of this machine ([`crate::services`]): it
//! answers what the kernel asks of them, by a device that `palisade services` has opened.
//!
//! A queue is served until its device ends, or this process: the kernel takes no request back that
//! it was asked for. So an array that stops meanwhile is looked up anew when it runs again.
//!
//! | its array              | a request                                       |
//! |------------------------|-------------------------------------------------|
//! | runs                   | is carried out                                  |
//! | does not run           | gets an error: nobody waits                     |
//! | stops with this daemon | is kept, and so handed out again to the next one |

use crate::connection::Fences;
use crate::cores::{Core, CoreEnv};
use crate::counters::OnCore;
use crate::here::{Here, Running};
use crate::nvme::VolumeKey;
use ::io::{BlockError, Blocks, Buf, BufMut, Env, Priority, Reach};
use core::cell::RefCell;
use core::future::pending;
use engine::array::message::ArrayId;
use runtime::{BlockQueue, Errno, QueueView, Reactor};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use ublk::wire::{self, DESCRIPTOR, Request};
use ublk::{Gone, Link};
use units::Uuid;

/// What a command ends with when the device does: `ENODEV`.
const GONE: Errno = Errno(19);

/// What all cores that serve a device know of it.
pub struct Known {
    /// The device's queues.
    pub queues: u16,
    /// The run of its array that there was last.
    pub array: AtomicU32,
    /// The volume.
    pub volume: Uuid,
    /// The daemon ends.
    pub is_ending: Arc<AtomicBool>,
    /// No queue of it is asked for requests any more.
    is_over: AtomicBool,
    /// Dropped by the last core that serves it.
    _held: Box<dyn Send + Sync>,
}

impl Known {
    /// Of a device that is about to be served.
    pub fn new(
        (array, volume): (ArrayId, Uuid),
        queues: u16,
        is_ending: Arc<AtomicBool>,
        held: impl Send + Sync + 'static,
    ) -> Self {
        let (array, is_over) = (AtomicU32::new(array.0), AtomicBool::new(false));
        Self { queues, array, volume, is_ending, is_over, _held: Box::new(held) }
    }

    fn key(&self) -> VolumeKey {
        let array = ArrayId(self.array.load(Ordering::Relaxed));
        VolumeKey { array, volume: self.volume }
    }
}

impl Link for Known {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// A queue that is to be served.
pub struct Queue {
    /// Its number.
    pub number: u16,
    /// How many requests it has.
    pub depth: u16,
    view: QueueView,
}

impl Queue {
    /// A queue of an open device.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn map(device: Arc<OwnedFd>, number: u16, depth: u16) -> std::io::Result<Self> {
        let at = |page| wire::descriptors_at(number, page);
        let view = QueueView::map(device, (depth, DESCRIPTOR), at)?;
        Ok(Self { number, depth, view })
    }
}

/// A queue, as the kernel asks by it.
pub struct Kernel {
    queue: BlockQueue,
    number: u16,
    depth: u16,
    known: Arc<Known>,
}

impl Kernel {
    /// The queue as this core's, of a device of which this is known.
    pub fn new(reactor: &Reactor, queue: Queue, known: Arc<Known>) -> Self {
        let Queue { number, depth, view } = queue;
        Self { queue: BlockQueue::new(reactor, view), number, depth, known }
    }
}

impl ublk::Queue for Kernel {
    fn depth(&self) -> u16 {
        self.depth
    }

    async fn next(&self, tag: u16, answer: Option<i32>) -> Result<Request, Gone> {
        let (code, result) = match answer {
            None => (wire::FETCH, 0),
            Some(answer) => (wire::COMMIT_AND_FETCH, answer),
        };
        let command = wire::command(self.number, tag, result);
        match self.queue.command(code, command).await {
            Ok(()) => Ok(wire::decode(&self.queue.shown(tag))),
            Err(error) => {
                // The device ends; anything else is this tag's alone.
                if error == GONE {
                    self.known.is_over.store(true, Ordering::Relaxed);
                }
                Err(Gone)
            }
        }
    }

    fn take(&self, tag: u16, into: &mut [u8]) -> Result<(), Gone> {
        self.queue.take(wire::payload_at(self.number, tag), into).map_err(|_| Gone)
    }

    fn give(&self, tag: u16, from: &[u8]) -> Result<(), Gone> {
        self.queue.give(wire::payload_at(self.number, tag), from).map_err(|_| Gone)
    }

    fn link(&self) -> Arc<dyn Link> {
        self.known.clone()
    }
}

/// A volume, whichever run of its array there is.
struct Place {
    here: Rc<Here>,
    env: CoreEnv,
    known: Arc<Known>,
    /// As it was found last, and in which run.
    running: RefCell<Option<(ArrayId, Running)>>,
}

impl Place {
    fn running(&self) -> Option<Running> {
        let key = self.known.key();
        if let Some((array, running)) = &*self.running.borrow()
            && *array == key.array
        {
            return Some(running.clone());
        }
        let running = self.here.volume(&self.env, key)?;
        *self.running.borrow_mut() = Some((key.array, running.clone()));
        Some(running)
    }
}

/// The same, as front ends see it.
#[derive(Clone)]
struct Standing(Rc<Place>);

impl Standing {
    /// Something of the volume, as far as that runs.
    fn now<T>(&self, of: impl FnOnce(&Running) -> T) -> Option<T> {
        self.0.running().as_ref().map(of)
    }

    /// What came of a request, if it is to be answered.
    async fn told<T>(&self, outcome: Result<T, BlockError>) -> Result<T, BlockError> {
        if matches!(outcome, Err(BlockError::Stopped)) {
            *self.0.running.borrow_mut() = None;
            if self.0.known.is_ending.load(Ordering::Relaxed) {
                pending::<()>().await;
            }
        }
        outcome
    }

    async fn ask<T>(
        &self,
        ask: impl AsyncFnOnce(Running) -> Result<T, BlockError>,
    ) -> Result<T, BlockError> {
        let outcome = match self.0.running() {
            Some(running) => ask(running).await,
            None => Err(BlockError::Stopped),
        };
        self.told(outcome).await
    }
}

impl Blocks for Standing {
    fn bytes(&self) -> u64 {
        // Of what does not run nothing is out of bounds: it is said that it does not.
        self.now(Blocks::bytes).unwrap_or(u64::MAX)
    }

    fn block_bytes(&self) -> u32 {
        self.now(Blocks::block_bytes).unwrap_or(wire::SECTOR as u32)
    }

    fn strip_bytes(&self) -> u32 {
        self.now(Blocks::strip_bytes).unwrap_or(wire::SECTOR as u32)
    }

    fn stripe_bytes(&self) -> u32 {
        self.now(Blocks::stripe_bytes).unwrap_or(wire::SECTOR as u32)
    }

    fn volatile_cache(&self) -> bool {
        self.now(Blocks::volatile_cache).unwrap_or(true)
    }

    async fn read(&self, offset: u64, into: BufMut) -> (Result<(), BlockError>, BufMut) {
        let (outcome, data) = match self.0.running() {
            Some(running) => running.read(offset, into).await,
            None => (Err(BlockError::Stopped), into),
        };
        (self.told(outcome).await, data)
    }

    async fn write(&self, offset: u64, data: Buf, fua: bool) -> Result<(), BlockError> {
        self.ask(async |own| own.write(offset, data, fua).await).await
    }

    async fn compare_and_write(
        &self,
        offset: u64,
        blocks: (Buf, Buf),
        fua: bool,
    ) -> Result<bool, BlockError> {
        self.ask(async |own| own.compare_and_write(offset, blocks, fua).await).await
    }

    async fn write_zeroes(&self, offset: u64, bytes: u64, fua: bool) -> Result<(), BlockError> {
        self.ask(async |own| own.write_zeroes(offset, bytes, fua).await).await
    }

    async fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlockError> {
        self.ask(async |own| own.discard(offset, bytes).await).await
    }

    async fn in_order(&self) -> Result<(), BlockError> {
        self.ask(async |own| own.in_order().await).await
    }

    async fn flush(&self) -> Result<(), BlockError> {
        self.ask(async |own| own.flush().await).await
    }
}

/// The queues of one core.
pub struct Devices(Rc<Here>);

impl Devices {
    /// None yet.
    pub fn new(
        core: (Core, Rc<OnCore>),
        fences: Arc<Fences>,
        reach: Option<Arc<dyn Reach>>,
    ) -> Rc<Self> {
        Rc::new(Self(Here::new(core, fences, reach, ublk::MEMORY)))
    }

    /// Serves a queue on this core.
    pub fn serve(self: &Rc<Self>, env: &CoreEnv, queue: Queue, known: Arc<Known>) {
        // A device ends only when the kernel waits for none of its requests: a run of the array
        // that comes later has nothing to wait for, and needs no fence of its own.
        let (fence, memory) = (self.0.fence(known.key()), self.0.memory());
        let (here, running) = (self.0.clone(), RefCell::default());
        let place = Place { here, env: env.clone(), known: known.clone(), running };
        let kernel = Rc::new(Kernel::new(env.reactor(), queue, known));
        let own = env.clone();
        env.spawn(Priority::First, async move {
            let volume = Standing(Rc::new(place));
            ublk::serve(own, kernel, volume, (&fence, &memory)).await;
        });
    }
}

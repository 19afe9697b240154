//! Volumes as a virtual machine has them over vhost-user, the machine's driver in this process:
//! rings in memory that both sides have, each of one core of hosts and served by one data core.
//!
//! Virtual I/O Device version 1.2: sections 2.7.5 to 2.7.10 (descriptors, what is offered, what is
//! answered, and which side is to be woken) and 5.2.6 (a block device's requests). What a machine
//! and its backend agree on over their socket is agreed on beforehand here.
//!
//! States of a slot: *free* → *offered* (its descriptors are the device's) → *answered* → free, by
//! whoever asked. A slot's descriptors and payload have a place of their own. What all have offered
//! since the device was told last it is told of at once, as drivers do.
//!
//! Invariant: nothing is under way when nobody uses a ring any more: how far it has come says its
//! memory, so that it can be used again and again.

use crate::error::BenchError;
use crate::rig::{Env, Rig};
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, Ordering, fence};
use core::task::{Poll, Waker};
use engine::Core;
use io::local::{Event, Semaphore};
use io::{Blocks, Buf, BufMut, Env as _, Priority};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use units::CoreId;
use vhost_user::ring::Place;
use vhost_user::wire::{HEADER, NAME, SECTOR};
use vhost_user::{Bell, ConnectionMemory, Fence, Gone, Link, Memory, Ring, Share};
use vm_memory::{ByteValued, Bytes, GuestAddress, GuestMemoryMmap};
use workload::Target;

/// Requests of a ring under way, and the descriptors of each: a header, the payload, a status.
const SLOTS: u16 = 64;
const PARTS: u16 = 4;
const DESCRIPTORS: u16 = SLOTS * PARTS;
/// Bytes of a request at most.
pub const LARGEST: usize = 128 << 10;
/// Where what is: descriptors of 16 bytes, what is offered, what is answered; headers and statuses;
/// payloads.
const TABLE: u64 = 0x1000;
const OFFERED: u64 = 0x4000;
const ANSWERED: u64 = 0x5000;
const HEADERS: u64 = 0x8000;
const HEADER_ROOM: u64 = 64;
const PAYLOADS: u64 = 0x10_000;
const MEMORY: usize = PAYLOADS as usize + SLOTS as usize * LARGEST;
/// Flags of a descriptor: another one follows; the device writes it.
const NEXT: u16 = 1;
const WRITES: u16 = 2;
/// Kinds of requests.
const READ: u32 = 0;
const WRITE: u32 = 1;

/// A machine's ring that is served.
pub struct Machine {
    memory: Memory,
    /// Rung by the machine, and by the device.
    kick: OwnedFd,
    call: OwnedFd,
    is_over: Arc<AtomicBool>,
}

/// What an eventfd is rung by. Whoever waits for it is not waited for.
fn ring(bell: &OwnedFd) {
    // It fails only where it was rung 2^64 times that nobody heard.
    let _ = rustix::io::write(bell, &1u64.to_le_bytes());
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        ring(&self.kick);
    }
}

/// The device's bells.
struct Bells {
    kick: runtime::Bell,
    call: OwnedFd,
    is_over: Arc<AtomicBool>,
}

/// A machine for its fence.
struct Connected(Arc<AtomicBool>);

impl Link for Connected {
    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Bell for Bells {
    async fn rung(&self) -> Result<(), Gone> {
        self.kick.rung().await.map_err(|_| Gone)?;
        if self.is_over() { Err(Gone) } else { Ok(()) }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn is_severed(&self) -> bool {
        false
    }

    fn ring(&self) {
        ring(&self.call);
    }

    fn link(&self) -> Arc<dyn Link> {
        Arc::new(Connected(self.is_over.clone()))
    }
}

/// A machine's ring on each data core, over a volume.
///
/// # Errors
/// When the system has no descriptor, or no memory.
pub fn serve<V: Blocks + 'static>(
    rig: &Rig,
    behind: impl Fn(&Core<Env>) -> V + Clone + Send + 'static,
) -> Result<Vec<Machine>, BenchError> {
    let system = |error: std::io::Error| BenchError::System { path: "a ring".into(), error };
    let bell = || eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| system(error.into()));
    let fence = Arc::<Fence>::default();
    let mut all = Vec::new();
    for core in 0..rig.cores() {
        let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), MEMORY)]);
        let memory: Memory =
            Arc::new(memory.map_err(|error| system(std::io::Error::other(error)))?);
        let machine = Machine { memory, kick: bell()?, call: bell()?, is_over: Arc::default() };
        let (memory, is_over) = (machine.memory.clone(), machine.is_over.clone());
        let kick = machine.kick.try_clone().map_err(system)?;
        let call = machine.call.try_clone().map_err(system)?;
        let (behind, fence) = (behind.clone(), fence.clone());
        rig.on_core(CoreId(core), move |env, engine| {
            let kick = runtime::Bell::from_fd(env.reactor(), kick);
            let bells = Bells { kick, call, is_over };
            serve_here(env, (memory, bells), behind(engine), fence);
        });
        all.push(machine);
    }
    Ok(all)
}

/// Serves a ring on this core.
fn serve_here<V: Blocks + 'static>(
    env: &Env,
    (memory, bells): (Memory, Bells),
    volume: V,
    fence: Arc<Fence>,
) {
    let place = Place {
        requests: DESCRIPTORS,
        descriptors: TABLE,
        offered: OFFERED,
        answered: ANSWERED,
        taken: 0,
        event_index: true,
        write_through: false,
    };
    let ring = Ring::new(memory, place, None, bells);
    let ring = Rc::new(ring.unwrap_or_else(|why| panic!("its places are possible: {why:?}")));
    let memory = ConnectionMemory::reached(vhost_user::MEMORY, None);
    let share = Share::open(&memory).expect("there is room for one");
    let own = env.clone();
    env.spawn(Priority::First, async move {
        vhost_user::serve(own, ring, (volume, [0; NAME]), (&fence, share)).await;
    });
}

#[derive(Default)]
struct Slot {
    is_answered: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The driver of a ring, on a core of a host.
pub struct Driver {
    machines: Arc<[Machine]>,
    core: usize,
    slots: Vec<Slot>,
    free: RefCell<Vec<u16>>,
    turns: Semaphore,
    /// How many were offered, and how many of these the device was told of.
    offered: Cell<u16>,
    told: Cell<u16>,
    seen: Cell<u16>,
    is_over: Cell<bool>,
    /// Something is offered, or it is over.
    changed: Event,
}

impl Driver {
    fn machine(&self) -> &Machine {
        &self.machines[self.core]
    }

    fn get(&self, at: u64) -> u16 {
        let own = self.machine().memory.load(GuestAddress(at), Ordering::Acquire);
        u16::from_le(own.expect("in the machine's memory"))
    }

    fn set(&self, at: u64, value: u16) {
        let own = self.machine().memory.store(value.to_le(), GuestAddress(at), Ordering::Release);
        own.expect("in the machine's memory");
    }

    fn put<T: ByteValued>(&self, at: u64, value: T) {
        let own = self.machine().memory.write_obj(value, GuestAddress(at));
        own.expect("in the machine's memory");
    }

    /// A descriptor of a slot (2.7.5).
    fn describe(&self, index: u16, (address, bytes): (u64, usize), flags: u16) {
        let at = TABLE + 16 * u64::from(index);
        self.put(at, address.to_le());
        self.put(at + 8, (bytes as u32).to_le());
        self.put(at + 12, flags.to_le());
        self.put(at + 14, (index + 1).to_le());
    }

    /// Offers a slot's request (2.7.6).
    fn offer(&self, slot: u16, (kind, at): (u32, u64), bytes: usize) {
        let header = HEADERS + HEADER_ROOM * u64::from(slot);
        self.put(header, kind.to_le());
        self.put(header + 8, (at / SECTOR).to_le());
        self.put(header + HEADER as u64, u8::MAX);
        let (head, payload) = (slot * PARTS, PAYLOADS + u64::from(slot) * LARGEST as u64);
        let is_written = if kind == READ { WRITES } else { 0 };
        self.describe(head, (header, HEADER), NEXT);
        self.describe(head + 1, (payload, bytes), NEXT | is_written);
        self.describe(head + 2, (header + HEADER as u64, 1), WRITES);
        let number = self.offered.get();
        self.put(OFFERED + 4 + 2 * u64::from(number % DESCRIPTORS), head.to_le());
        self.offered.set(number.wrapping_add(1));
        self.changed.notify();
    }

    /// The task that tells the device what is offered, and wakes it if it waits for that (2.7.7.2).
    async fn tell(self: Rc<Self>) {
        let next = || {
            let is_more = self.offered.get() != self.told.get();
            (is_more || self.is_over.get()).then_some(is_more)
        };
        while self.changed.wait_until(next).await {
            let (old, new) = (self.told.get(), self.offered.get());
            self.told.set(new);
            self.set(OFFERED + 2, new);
            // The device looks for more after it has said where it waits.
            fence(Ordering::SeqCst);
            let waits_at = self.get(ANSWERED + 4 + 8 * u64::from(DESCRIPTORS));
            if new.wrapping_sub(waits_at).wrapping_sub(1) < new.wrapping_sub(old) {
                ring(&self.machine().kick);
            }
        }
    }

    async fn ask(
        &self,
        (kind, at): (u32, u64),
        (mut into, data): (Option<BufMut>, Option<Buf>),
    ) -> (bool, Option<BufMut>) {
        self.turns.acquire(1).await;
        let slot = self.free.borrow_mut().pop().expect("as many turns as slots");
        let payload = GuestAddress(PAYLOADS + u64::from(slot) * LARGEST as u64);
        let memory = &self.machine().memory;
        let bytes = into.as_deref().or(data.as_deref()).map_or(0, <[u8]>::len);
        assert!(bytes <= LARGEST, "a request of {bytes} bytes");
        if let Some(data) = &data {
            memory.write_slice(data, payload).expect("in the machine's memory");
        }
        self.offer(slot, (kind, at), bytes);
        self.answered(slot).await;
        let status = HEADERS + HEADER_ROOM * u64::from(slot) + HEADER as u64;
        let status: u8 = memory.read_obj(GuestAddress(status)).expect("in the machine's memory");
        if let Some(into) = &mut into {
            memory.read_slice(into, payload).expect("in the machine's memory");
        }
        self.free.borrow_mut().push(slot);
        self.turns.release(1);
        (status == 0, into)
    }

    async fn answered(&self, slot: u16) {
        let slot = &self.slots[usize::from(slot)];
        poll_fn(|cx| match slot.is_answered.take() {
            true => Poll::Ready(()),
            false => {
                *slot.waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            }
        })
        .await;
    }

    /// Tells who asked of what was answered (2.7.8).
    fn take(&self) {
        let number = self.get(ANSWERED + 2);
        while self.seen.get() != number {
            let at = ANSWERED + 4 + 8 * u64::from(self.seen.get() % DESCRIPTORS);
            let head = u32::from_le(
                self.machine().memory.read_obj(GuestAddress(at)).expect("in the machine's memory"),
            );
            self.seen.set(self.seen.get().wrapping_add(1));
            let slot = &self.slots[head as usize / usize::from(PARTS)];
            slot.is_answered.set(true);
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
    }

    /// The task that takes answers, until nobody uses the ring any more.
    async fn listen(self: Rc<Self>, call: runtime::Bell) {
        while !self.is_over.get() {
            self.take();
            // It is to be woken by the next answer (2.7.7.1), unless that has come meanwhile.
            self.set(OFFERED + 4 + 2 * u64::from(DESCRIPTORS), self.seen.get());
            fence(Ordering::SeqCst);
            if self.get(ANSWERED + 2) == self.seen.get() && call.rung().await.is_err() {
                break;
            }
        }
        // What it heard last may have been said to the next who uses the ring.
        ring(&self.machine().call);
    }
}

/// The use of a ring: its last one ends the task that takes answers.
struct User(Rc<Driver>);

impl Drop for User {
    fn drop(&mut self) {
        self.0.is_over.set(true);
        self.0.changed.notify();
        ring(&self.0.machine().call);
    }
}

/// The volume behind a ring.
#[derive(Clone)]
pub struct Attached {
    user: Rc<User>,
    bytes: u64,
}

impl Attached {
    /// Uses this core's ring, behind which are so many bytes.
    ///
    /// # Errors
    /// When this process may have no more descriptors.
    pub fn new(env: &Env, machines: &Arc<[Machine]>, bytes: u64) -> std::io::Result<Self> {
        let core = env.core().index();
        let call = runtime::Bell::from_fd(env.reactor(), machines[core].call.try_clone()?);
        let driver = Driver {
            machines: machines.clone(),
            core,
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            free: RefCell::new((0..SLOTS).rev().collect()),
            turns: Semaphore::new(SLOTS.into()),
            offered: Cell::new(0),
            told: Cell::new(0),
            seen: Cell::new(0),
            is_over: Cell::new(false),
            changed: Event::default(),
        };
        driver.offered.set(driver.get(OFFERED + 2));
        driver.told.set(driver.offered.get());
        driver.seen.set(driver.get(ANSWERED + 2));
        let driver = Rc::new(driver);
        env.spawn(Priority::First, driver.clone().listen(call));
        env.spawn(Priority::First, driver.clone().tell());
        Ok(Self { user: Rc::new(User(driver)), bytes })
    }
}

impl Target for Attached {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    async fn read(&self, at: u64, into: BufMut) -> (bool, BufMut) {
        let (succeeded, into) = self.user.0.ask((READ, at), (Some(into), None)).await;
        (succeeded, into.expect("a read has its buffer"))
    }

    async fn write(&self, at: u64, data: Buf) -> bool {
        self.user.0.ask((WRITE, at), (None, Some(data))).await.0
    }
}

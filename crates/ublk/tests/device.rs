//! A volume as a block device, by the requests that a kernel hands out and has answered.

use io::BlockError;
use io::local::Event;
use palisade_ublk::limits::{DEPTH, REQUEST_BYTES_MAX};
use palisade_ublk::wire::{Ask, FAILED, NOT_SUPPORTED, Request};
use palisade_ublk::{ConnectionMemory, Fence, Gone, Link, MEMORY, MemorySize, Queue, serve};
use proptest::prelude::*;
use sim::volume::{MemoryVolume, Op};
use sim::{World, WorldConfig};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use units::{CoreId, Nanos};

const BYTES: usize = 8 << 20;

struct There;

impl Link for There {
    fn is_over(&self) -> bool {
        false
    }
}

/// The kernel's side.
#[derive(Default)]
struct Kernel {
    /// By tag: a request that waits to be fetched.
    asked: RefCell<BTreeMap<u16, Request>>,
    /// By tag: what is to be written, or was read.
    payload: RefCell<BTreeMap<u16, Vec<u8>>>,
    /// By tag: how the request that was under way ended.
    answers: RefCell<BTreeMap<u16, i32>>,
    is_over: Cell<bool>,
    changed: Event,
}

impl Queue for Kernel {
    fn depth(&self) -> u16 {
        DEPTH
    }

    async fn next(&self, tag: u16, answer: Option<i32>) -> Result<Request, Gone> {
        if let Some(answer) = answer {
            assert!(self.answers.borrow_mut().insert(tag, answer).is_none(), "answered twice");
        }
        let found = || match self.is_over.get() {
            true => Some(Err(Gone)),
            false => self.asked.borrow_mut().remove(&tag).map(Ok),
        };
        self.changed.wait_until(found).await
    }

    fn take(&self, tag: u16, into: &mut [u8]) -> Result<(), Gone> {
        into.copy_from_slice(&self.payload.borrow()[&tag]);
        Ok(())
    }

    fn give(&self, tag: u16, from: &[u8]) -> Result<(), Gone> {
        self.payload.borrow_mut().insert(tag, from.to_vec());
        Ok(())
    }

    fn link(&self) -> Arc<dyn Link> {
        Arc::new(There)
    }
}

/// A device that is served.
struct Device {
    world: World<()>,
    kernel: Rc<Kernel>,
    volume: MemoryVolume,
    memory: Rc<ConnectionMemory>,
    has_ended: Rc<Cell<bool>>,
}

/// Less than a core has.
const SOME: MemorySize = MemorySize { pieces: [8, 4, 2, 2], ..MEMORY };

impl Device {
    fn new(block: u32) -> Self {
        let volume = MemoryVolume::new(BYTES, block);
        volume.0.data.borrow_mut().fill(0);
        let world = World::new(WorldConfig::new(1));
        let (kernel, has_ended) = (Rc::<Kernel>::default(), Rc::<Cell<bool>>::default());
        let memory = ConnectionMemory::new(SOME);
        let (env, queue, own) = (world.env(CoreId(0)), kernel.clone(), volume.clone());
        let (told, shared) = (has_ended.clone(), memory.clone());
        io::Env::spawn(&env.clone(), io::Priority::First, async move {
            let fence = Arc::<Fence>::default();
            assert!(serve(env, queue, own, (&fence, &shared)).await);
            told.set(true);
        });
        Self { world, kernel, volume, memory, has_ended }
    }

    /// Hands a request out, and does not wait.
    fn send(&self, tag: u16, ask: Ask, (offset, bytes): (u64, u64), data: &[u8]) {
        self.kernel.payload.borrow_mut().insert(tag, data.to_vec());
        self.kernel.asked.borrow_mut().insert(tag, Request { ask, offset, bytes });
        self.kernel.changed.notify();
    }

    fn run(&self) {
        self.world.run_for(Nanos::from_millis(20));
    }

    fn answer(&self, tag: u16) -> Option<i32> {
        self.kernel.answers.borrow_mut().remove(&tag)
    }

    fn ask(&self, ask: Ask, range: (u64, u64), data: &[u8]) -> i32 {
        self.send(0, ask, range, data);
        self.run();
        self.answer(0).expect("answered")
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> i32 {
        self.ask(Ask::Write { fua }, (offset, data.len() as u64), data)
    }

    fn read(&self, offset: u64, bytes: u64) -> (i32, Vec<u8>) {
        let answer = self.ask(Ask::Read, (offset, bytes), &[]);
        (answer, self.kernel.payload.borrow()[&0].clone())
    }

    fn end(self) {
        self.kernel.is_over.set(true);
        self.kernel.changed.notify();
        self.run();
        assert!(self.has_ended.get() && self.memory.is_idle());
    }
}

#[test]
fn each_request_is_what_it_is_to_the_volume() {
    let device = Device::new(512);
    let data = vec![7; 8192];
    assert_eq!(device.write(4096, &data, false), 8192);
    assert_eq!(device.write(16_384, &data[..512], true), 512);
    assert_eq!(device.read(4096, 8192), (8192, data));
    assert_eq!(device.ask(Ask::Flush, (0, 0), &[]), 0);
    assert_eq!(device.ask(Ask::Discard, (0, 1 << 20), &[]), 0);
    assert_eq!(device.ask(Ask::Zero { fua: true }, (4096, 512), &[]), 0);
    assert_eq!(device.ask(Ask::Unknown, (0, 512), &[]), NOT_SUPPORTED);
    let log = device.volume.0.log.borrow().clone();
    let wanted = [
        Op::Write(4096, 8192, false),
        Op::Write(16_384, 512, true),
        Op::Read(4096, 8192),
        Op::Flush,
        Op::Discard(0, 1 << 20),
        Op::Zeroes(4096, 512, true),
    ];
    assert_eq!(log, wanted);
    device.end();
}

#[test]
fn what_cannot_be_is_an_error_and_no_more() {
    let device = Device::new(512);
    let end = BYTES as u64;
    // The volume has become smaller than the device.
    for (ask, range) in [
        (Ask::Read, (end - 512, 1024)),
        (Ask::Write { fua: false }, (end, 512)),
        (Ask::Discard, (end - 512, 1024)),
        (Ask::Zero { fua: false }, (u64::MAX - 511, 512)),
        (Ask::Read, (u64::MAX, 512)),
        (Ask::Read, (0, REQUEST_BYTES_MAX as u64 + 512)),
    ] {
        assert_eq!(device.ask(ask, range, &[]), FAILED, "{ask:?} {range:?}");
    }
    assert!(device.volume.0.log.borrow().is_empty());
    device.volume.fail(0..4096, BlockError::Unavailable);
    assert_eq!(device.ask(Ask::Read, (0, 512), &[]), FAILED);
    assert_eq!(device.write(0, &[1; 512], false), FAILED);
    assert_eq!(device.write(4096, &[1; 512], false), 512);
    device.end();
}

/// All tags at a time, with requests so large that memory is short.
#[test]
fn as_many_requests_as_there_may_be_are_answered() {
    let device = Device::new(4096);
    let bytes = REQUEST_BYTES_MAX;
    for round in 0..3 {
        for tag in 0..DEPTH {
            let offset = u64::from(tag % 8) * bytes as u64;
            let data = vec![tag as u8; bytes];
            match (tag + round) % 2 {
                0 => device.send(tag, Ask::Read, (offset, bytes as u64), &[]),
                _ => device.send(tag, Ask::Write { fua: false }, (offset, bytes as u64), &data),
            }
        }
        device.run();
        let answers = (0..DEPTH).map(|tag| device.answer(tag));
        assert!(answers.into_iter().all(|answer| answer == Some(bytes as i32)), "round {round}");
    }
    device.end();
}

#[test]
fn a_device_that_ends_waits_for_what_was_begun() {
    let device = Device::new(512);
    device.volume.hold(Some(4096));
    device.send(3, Ask::Write { fua: false }, (4096, 512), &[1; 512]);
    device.run();
    device.kernel.is_over.set(true);
    device.kernel.changed.notify();
    device.run();
    assert!(!device.has_ended.get());
    device.volume.hold(None);
    device.run();
    assert!(device.has_ended.get() && device.memory.is_idle());
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64, u8),
    Zero(u64, u64),
    Read(u64, u64),
}

const BLOCKS: u64 = 128;

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..BLOCKS).prop_flat_map(|at| (Just(at), 1..=(BLOCKS - at).min(40)));
    prop_oneof![
        (place(), any::<u8>()).prop_map(|((at, count), with)| Step::Write(at, count, with)),
        place().prop_map(|(at, count)| Step::Zero(at, count)),
        place().prop_map(|(at, count)| Step::Read(at, count)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Against a plain run of bytes.
    #[test]
    fn what_is_written_is_read(steps in prop::collection::vec(step(), 1..30), large: bool) {
        let block = if large { 4096 } else { 512 };
        let device = Device::new(block);
        let block = u64::from(block);
        let mut model = vec![0; (BLOCKS * block) as usize];
        for step in steps {
            let range = |at: u64, count: u64| {
                (at * block) as usize..((at + count) * block) as usize
            };
            match step {
                Step::Write(at, count, with) => {
                    let part = range(at, count);
                    let data: Vec<u8> = (0..part.len()).map(|n| with ^ n as u8).collect();
                    prop_assert_eq!(device.write(at * block, &data, false) as usize, part.len());
                    model[part].copy_from_slice(&data);
                }
                Step::Zero(at, count) => {
                    let zero = Ask::Zero { fua: false };
                    prop_assert_eq!(device.ask(zero, (at * block, count * block), &[]), 0);
                    model[range(at, count)].fill(0);
                }
                Step::Read(at, count) => {
                    let (answer, told) = device.read(at * block, count * block);
                    prop_assert_eq!(answer as u64, count * block);
                    prop_assert!(told == model[range(at, count)]);
                }
            }
        }
        prop_assert!(device.volume.bytes_at(0, model.len()) == model);
        device.end();
    }
}

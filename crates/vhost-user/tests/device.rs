//! A volume as a virtio block device, by rings that a driver keeps in a machine's memory.

use front::Link;
use io::BlockError;
use io::local::Event;
use palisade_vhost_user::flight;
use palisade_vhost_user::limits::{PARTS_MAX, PIECE_BYTES};
use palisade_vhost_user::ring::Place;
use palisade_vhost_user::{Bell, ConnectionMemory, Fence, Gone, MEMORY, Memory, MemorySize};
use palisade_vhost_user::{Ring, Share, serve};
use proptest::prelude::*;
use sim::volume::{MemoryVolume, Op};
use sim::{World, WorldConfig};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use units::{CoreId, Nanos};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

const VOLUME: usize = 8 << 20;
/// The machine's memory, and where in it what is.
const MACHINE: usize = 32 << 20;
const REQUESTS: u16 = 128;
const DESCRIPTORS: u64 = 0x8000;
const OFFERED: u64 = 0x10_000;
const ANSWERED: u64 = 0x20_000;
const TABLES: u64 = 0x30_000;
const HEADERS: u64 = 0x90_000;
const PAYLOAD: u64 = 0x100_000;
const NAME: [u8; 20] = *b"0123456789abcdefghij";

const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const WHO: u32 = 8;
const DISCARD: u32 = 11;
const ZERO: u32 = 13;

struct There;

impl Link for There {
    fn is_over(&self) -> bool {
        false
    }
}

/// What two sides say by bells.
#[derive(Default)]
struct Rung {
    by_machine: Cell<bool>,
    by_device: Cell<bool>,
    is_over: Cell<bool>,
    is_severed: Cell<bool>,
    changed: Event,
}

#[derive(Clone, Default)]
struct Bells(Rc<Rung>);

impl Bells {
    /// The machine rings.
    fn rings(&self) {
        self.0.by_machine.set(true);
        self.0.changed.notify();
    }

    fn end(&self) {
        self.0.is_over.set(true);
        self.0.changed.notify();
    }
}

impl Bell for Bells {
    async fn rung(&self) -> Result<(), Gone> {
        let found = || match self.0.is_over.get() {
            true => Some(Err(Gone)),
            false => self.0.by_machine.take().then_some(Ok(())),
        };
        self.0.changed.wait_until(found).await
    }

    fn is_over(&self) -> bool {
        self.0.is_over.get()
    }

    fn is_severed(&self) -> bool {
        self.0.is_severed.get()
    }

    fn ring(&self) {
        self.0.by_device.set(true);
    }

    fn link(&self) -> Arc<dyn Link> {
        Arc::new(There)
    }
}

fn memory_of(bytes: usize) -> Memory {
    Arc::new(GuestMemoryMmap::from_ranges(&[(GuestAddress(0), bytes)]).expect("mapped"))
}

/// A run of bytes of a request, and whether the device writes it.
type Part = (u64, u32, bool);

/// The driver's side of a ring.
struct Driver {
    memory: Memory,
    bells: Bells,
    offered: Cell<u16>,
    seen: Cell<u16>,
    is_indirect: bool,
    /// It knows of no flush.
    is_simple: bool,
}

impl Driver {
    fn put<T: vm_memory::ByteValued>(&self, at: u64, value: T) {
        self.memory.write_obj(value, GuestAddress(at)).expect("in memory");
    }

    fn descriptor(&self, at: u64, (address, bytes): (u64, u32), (flags, next): (u16, u16)) {
        self.put(at, address);
        self.put(at + 8, bytes);
        self.put(at + 12, flags);
        self.put(at + 14, next);
    }

    /// Puts a chain into a table, whose indices begin at `first`.
    fn chain(&self, table: u64, first: u16, parts: &[Part]) {
        for (index, (address, bytes, is_written)) in parts.iter().enumerate() {
            let index = first + index as u16;
            let is_last = usize::from(index - first) + 1 == parts.len();
            let flags = u16::from(!is_last) | u16::from(*is_written) << 1;
            let at = table + 16 * u64::from(index);
            self.descriptor(at, (*address, *bytes), (flags, index + 1));
        }
    }

    /// Offers the chain that begins with a descriptor.
    fn offer(&self, head: u16) {
        let number = self.offered.get();
        self.put(OFFERED + 4 + 2 * u64::from(number % REQUESTS), head);
        self.offered.set(number.wrapping_add(1));
        self.put(OFFERED + 2, self.offered.get());
    }

    /// Offers a request: its header, what is read, what is written. Each slot has descriptors and
    /// room of its own.
    fn request(&self, slot: u16, header: (u32, u64), parts: &[Part]) {
        let at = HEADERS + 32 * u64::from(slot);
        self.put(at, header.0);
        self.put(at + 8, header.1);
        self.put(at + 16, 0xff_u8);
        let mut all = vec![(at, 16, false)];
        all.extend_from_slice(parts);
        all.push((at + 16, 1, true));
        let head = slot * 4;
        if self.is_indirect || all.len() > 4 {
            let table = TABLES + 0x1100 * u64::from(slot);
            self.chain(table, 0, &all);
            let bytes = 16 * all.len() as u32;
            self.descriptor(DESCRIPTORS + 16 * u64::from(head), (table, bytes), (4, 0));
        } else {
            self.chain(DESCRIPTORS, head, &all);
        }
        self.offer(head);
    }

    fn status(&self, slot: u16) -> u8 {
        let at = GuestAddress(HEADERS + 32 * u64::from(slot) + 16);
        self.memory.read_obj(at).expect("in memory")
    }

    /// What was answered since it was asked last: heads, and bytes written.
    fn answers(&self) -> Vec<(u32, u32)> {
        let number: u16 = self.memory.read_obj(GuestAddress(ANSWERED + 2)).expect("in memory");
        let mut all = Vec::new();
        while self.seen.get() != number {
            let at = ANSWERED + 4 + 8 * u64::from(self.seen.get() % REQUESTS);
            let part = |at| self.memory.read_obj(GuestAddress(at)).expect("in memory");
            all.push((part(at), part(at + 4)));
            self.seen.set(self.seen.get().wrapping_add(1));
        }
        all
    }
}

/// A device that is served.
struct Device {
    world: World<()>,
    driver: Driver,
    volume: MemoryVolume,
    memory: Rc<ConnectionMemory>,
    has_ended: Rc<Cell<bool>>,
}

/// Less than a core has.
const SOME: MemorySize = MemorySize { pieces: [8, 4, 2, 2], ..MEMORY };

impl Device {
    fn new(block: u32, is_indirect: bool) -> Self {
        let volume = MemoryVolume::new(VOLUME, block);
        volume.0.data.borrow_mut().fill(0);
        let (bells, machine) = (Bells::default(), memory_of(MACHINE));
        let (offered, seen) = Default::default();
        let driver =
            Driver { memory: machine, bells, offered, seen, is_indirect, is_simple: false };
        Self::serve(driver, volume, None)
    }

    fn serve(driver: Driver, volume: MemoryVolume, kept: Option<&Memory>) -> Self {
        let world = World::new(WorldConfig::new(1));
        let (has_ended, memory) = (Rc::<Cell<bool>>::default(), ConnectionMemory::new(SOME));
        let (env, own) = (world.env(CoreId(0)), volume.clone());
        let (told, shared) = (has_ended.clone(), memory.clone());
        let place = Place {
            requests: REQUESTS,
            descriptors: DESCRIPTORS,
            offered: OFFERED,
            answered: ANSWERED,
            taken: driver.seen.get(),
            event_index: false,
            write_through: driver.is_simple,
        };
        let kept = kept.map(|kept| (kept.clone(), (0, REQUESTS)));
        let ring = Ring::new(driver.memory.clone(), place, kept, driver.bells.clone());
        let ring = Rc::new(ring.unwrap_or_else(|why| panic!("{why:?}")));
        io::Env::spawn(&env.clone(), io::Priority::First, async move {
            let fence = Arc::<Fence>::default();
            let share = Share::open(&shared).expect("there is room");
            serve(env, ring, (own, NAME), (&fence, share)).await;
            told.set(true);
        });
        Self { world, driver, volume, memory, has_ended }
    }

    fn run(&self) {
        self.driver.bells.rings();
        self.world.run_for(Nanos::from_millis(20));
    }

    /// One request: how it ended, and how many bytes were written.
    fn ask(&self, header: (u32, u64), parts: &[Part]) -> (u8, u32) {
        self.driver.request(0, header, parts);
        self.run();
        let answers = self.driver.answers();
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0].0, 0);
        (self.driver.status(0), answers[0].1)
    }

    /// The payload's parts, of so many bytes each at most, with gaps.
    fn parts(bytes: usize, of: usize, is_written: bool) -> Vec<Part> {
        let runs = bytes.div_ceil(of);
        let part = |n: usize| {
            let run = of.min(bytes - n * of);
            (PAYLOAD + (n * (of + 7)) as u64, run as u32, is_written)
        };
        (0..runs).map(part).collect()
    }

    fn write(&self, offset: u64, data: &[u8], of: usize) -> (u8, u32) {
        let parts = Self::parts(data.len(), of, false);
        for (part, data) in parts.iter().zip(data.chunks(of)) {
            self.driver.memory.write_slice(data, GuestAddress(part.0)).expect("in memory");
        }
        self.ask((WRITE, offset / 512), &parts)
    }

    fn read(&self, offset: u64, bytes: usize, of: usize) -> (u8, u32, Vec<u8>) {
        let parts = Self::parts(bytes, of, true);
        let (status, written) = self.ask((READ, offset / 512), &parts);
        let mut all = Vec::new();
        for (at, run, _) in parts {
            let mut own = vec![0; run as usize];
            self.driver.memory.read_slice(&mut own, GuestAddress(at)).expect("in memory");
            all.extend(own);
        }
        (status, written, all)
    }

    fn segment(&self, kind: u32, (offset, bytes): (u64, u64), flags: u32) -> u8 {
        self.driver.put(PAYLOAD, offset / 512);
        self.driver.put(PAYLOAD + 8, (bytes / 512) as u32);
        self.driver.put(PAYLOAD + 12, flags);
        self.ask((kind, 0), &[(PAYLOAD, 16, false)]).0
    }

    fn end(self) {
        self.driver.bells.end();
        self.world.run_for(Nanos::from_millis(20));
        assert!(self.has_ended.get() && self.memory.is_idle());
    }
}

#[test]
fn each_request_is_what_it_is_to_the_volume() {
    for is_indirect in [false, true] {
        let device = Device::new(512, is_indirect);
        let data: Vec<u8> = (0..8192).map(|n| n as u8).collect();
        assert_eq!(device.write(4096, &data, 8192), (0, 1));
        assert_eq!(device.read(4096, 8192, 1000), (0, 8193, data));
        assert_eq!(device.ask((FLUSH, 0), &[]), (0, 1));
        assert_eq!(device.segment(DISCARD, (0, 1 << 20), 0), 0);
        assert_eq!(device.segment(ZERO, (4096, 512), 1), 0);
        assert_eq!(device.segment(ZERO, (8192, 512), 0), 0);
        assert_eq!(device.segment(DISCARD, (0, 512), 1), 2, "it says what is not known");
        assert_eq!(device.ask((99, 0), &[]), (2, 1));
        assert_eq!(device.ask((WHO, 0), &[(PAYLOAD, 20, true)]), (0, 21));
        let mut name = [0; 20];
        device.driver.memory.read_slice(&mut name, GuestAddress(PAYLOAD)).expect("in memory");
        assert_eq!(name, NAME);
        let log = device.volume.0.log.borrow().clone();
        let wanted = [
            Op::Write(4096, 8192, false),
            Op::Read(4096, 8192),
            Op::Flush,
            Op::Discard(0, 1 << 20),
            Op::Zeroes(4096, 512, false),
            Op::Zeroes(8192, 512, false),
        ];
        assert_eq!(log, wanted);
        device.end();
    }
}

#[test]
fn what_a_driver_that_knows_of_no_flush_has_answered_is_on_drives() {
    let device = Device::new(512, false);
    let Device { mut driver, volume, .. } = device;
    driver.is_simple = true;
    let device = Device::serve(driver, volume, None);
    assert_eq!(device.write(4096, &[7; 512], 512), (0, 1));
    assert_eq!(device.segment(ZERO, (8192, 512), 0), 0);
    assert_eq!(device.segment(DISCARD, (0, 1 << 20), 0), 0);
    let log = device.volume.0.log.borrow().clone();
    let wanted = [
        Op::Write(4096, 512, true),
        Op::Zeroes(8192, 512, true),
        Op::Discard(0, 1 << 20),
        Op::Flush,
    ];
    assert_eq!(log, wanted);
    device.end();
}

#[test]
fn what_is_longer_than_a_piece_is_moved_piece_by_piece() {
    let device = Device::new(512, true);
    let bytes = 2 * PIECE_BYTES + 512;
    let data: Vec<u8> = (0..bytes).map(|n| (n / 512) as u8 ^ n as u8).collect();
    assert_eq!(device.write(512, &data, 17_000), (0, 1));
    let (status, written, told) = device.read(512, bytes, 17_345);
    assert_eq!((status, written as usize), (0, bytes + 1));
    assert!(told == data);
    device.end();
}

#[test]
fn what_cannot_be_is_an_error_and_no_more() {
    let device = Device::new(512, false);
    let end = VOLUME as u64;
    assert_eq!(device.write(end, &[0; 512], 512), (1, 1));
    assert_eq!(device.read(end - 512, 1024, 1024).0, 1);
    assert_eq!(device.ask((READ, u64::MAX), &[(PAYLOAD, 512, true)]).0, 1);
    assert_eq!(device.segment(ZERO, (end, 512), 0), 1);
    assert_eq!(device.ask((DISCARD, 0), &[(PAYLOAD, 32, false)]).0, 1, "two segments");
    // What lies beyond the machine's memory.
    assert_eq!(device.ask((WRITE, 0), &[(MACHINE as u64 - 256, 512, false)]).0, 1);
    assert_eq!(device.ask((READ, 0), &[(u64::MAX - 8, 512, true)]).0, 1);
    let moved: Vec<Op> = device.volume.0.log.borrow().clone();
    assert_eq!(moved, [Op::Read(0, 512)], "what was read goes nowhere");
    device.volume.fail(0..4096, BlockError::Unavailable);
    assert_eq!(device.read(0, 512, 512).0, 1);
    assert_eq!(device.write(4096, &[1; 512], 512), (0, 1));
    device.end();
}

/// Chains that are none are answered with nothing, and hold up no other.
#[test]
fn a_chain_that_cannot_be_is_answered_with_nothing() {
    let device = Device::new(512, false);
    let driver = &device.driver;
    // It leads to itself.
    driver.descriptor(16 * 100, (PAYLOAD, 512), (1, 100));
    // Out of the table.
    driver.descriptor(16 * 101, (PAYLOAD, 512), (1, REQUESTS));
    // What is read comes behind what is written.
    driver.descriptor(16 * 102, (PAYLOAD, 512), (3, 103));
    driver.descriptor(16 * 103, (PAYLOAD, 512), (0, 0));
    // Tables within tables, half a descriptor, nowhere.
    driver.descriptor(16 * 104, (TABLES, 16), (4, 0));
    driver.descriptor(TABLES, (TABLES, 16), (4, 0));
    driver.descriptor(16 * 105, (TABLES, 24), (4, 0));
    driver.descriptor(16 * 106, (u64::MAX - 7, 32), (4, 0));
    // Nothing to say how it ended.
    driver.descriptor(16 * 107, (HEADERS, 16), (0, 0));
    // More parts than there may be.
    let many: Vec<Part> = (0..=PARTS_MAX + 3).map(|_| (PAYLOAD, 1, false)).collect();
    driver.chain(TABLES + 0x1000, 0, &many);
    driver.descriptor(16 * 108, (TABLES + 0x1000, 16 * many.len() as u32), (4, 0));
    let heads = [100, 101, 102, 104, 105, 106, 107, 108];
    heads.into_iter().for_each(|head| driver.offer(head));
    device.run();
    let wanted: Vec<(u32, u32)> = heads.into_iter().map(|head| (head.into(), 0)).collect();
    let mut told = driver.answers();
    told.sort_unstable();
    assert_eq!(told, wanted);
    assert_eq!(device.write(0, &[1; 512], 512), (0, 1));
    device.end();
}

/// A machine that says that it has offered more than a ring can hold is served no more.
#[test]
fn a_ring_that_cannot_be_is_over() {
    let device = Device::new(512, false);
    assert_eq!(device.write(0, &[1; 512], 512), (0, 1));
    device.driver.put(OFFERED + 2, 1000_u16);
    device.run();
    assert!(device.has_ended.get() && device.memory.is_idle());
}

/// Also while there is more to be taken than can be carried out at a time.
#[test]
fn a_ring_that_is_stopped_takes_nothing_more() {
    let device = Device::new(512, true);
    device.volume.hold(Some(4096));
    for slot in 0..REQUESTS / 4 {
        let at = PAYLOAD + 512 * u64::from(slot);
        for _ in 0..3 {
            device.driver.request(slot, (WRITE, 8), &[(at, 512, false)]);
        }
    }
    device.run();
    device.driver.bells.end();
    device.volume.hold(None);
    device.world.run_for(Nanos::from_millis(50));
    assert!(device.has_ended.get() && device.memory.is_idle());
    let answered = device.driver.answers().len();
    assert!((64..96).contains(&answered), "{answered}");
}

/// All slots at a time, with requests so large that memory is short.
#[test]
fn as_many_requests_as_there_may_be_are_answered() {
    let device = Device::new(4096, true);
    let bytes = 256 << 10;
    for round in 0..3 {
        for slot in 0..32 {
            let is_read = (slot + round) % 2 == 0;
            let at = PAYLOAD + u64::from(slot) * bytes;
            let kind = if is_read { READ } else { WRITE };
            let part = (at, bytes as u32, is_read);
            device.driver.request(slot, (kind, u64::from(slot) * bytes / 512), &[part]);
        }
        device.run();
        assert_eq!(device.driver.answers().len(), 32, "round {round}");
        assert!((0..32).all(|slot| device.driver.status(slot) == 0), "round {round}");
    }
    assert!(device.driver.bells.0.by_device.get(), "the machine was told");
    device.end();
}

#[test]
fn a_ring_that_ends_waits_for_what_was_begun() {
    let device = Device::new(512, false);
    device.volume.hold(Some(4096));
    device.driver.request(0, (WRITE, 8), &[(PAYLOAD, 512, false)]);
    device.run();
    device.driver.bells.end();
    device.world.run_for(Nanos::from_millis(20));
    assert!(!device.has_ended.get());
    device.volume.hold(None);
    device.world.run_for(Nanos::from_millis(20));
    assert!(device.has_ended.get() && device.memory.is_idle());
    assert_eq!(device.driver.answers().len(), 1);
}

/// Who serves a ring next has all that it had under way.
#[test]
fn a_ring_that_is_given_up_is_written_no_more() {
    for (kind, is_written) in [(READ, true), (WRITE, false)] {
        let device = Device::new(512, false);
        device.volume.0.data.borrow_mut().fill(9);
        device.volume.hold(Some(4096));
        device.driver.request(0, (kind, 8), &[(PAYLOAD, 512, is_written)]);
        device.run();
        device.driver.bells.0.is_severed.set(true);
        device.driver.bells.end();
        device.volume.hold(None);
        device.world.run_for(Nanos::from_millis(20));
        assert!(device.has_ended.get() && device.memory.is_idle());
        assert_eq!((device.driver.answers().len(), device.driver.status(0)), (0, 0xff));
        let mut payload = [1; 512];
        device.driver.memory.read_slice(&mut payload, GuestAddress(PAYLOAD)).expect("there");
        assert_eq!(payload, [0; 512]);
    }
}

/// What meets an array that has stopped, of a ring that is stopped as well, is the next one's.
#[test]
fn what_a_stopped_array_refuses_is_left_to_the_next_server() {
    let device = Device::new(512, false);
    let stopped = || device.volume.fail(4096..8192, BlockError::Stopped);
    stopped();
    assert_eq!(device.write(4096, &[7; 512], 512), (1, 1), "its ring goes on");
    device.volume.hold(Some(4096));
    device.driver.request(0, (WRITE, 8), &[(PAYLOAD, 512, false)]);
    device.run();
    device.driver.bells.end();
    device.volume.hold(None);
    stopped();
    device.world.run_for(Nanos::from_millis(20));
    assert!(device.has_ended.get());
    assert_eq!((device.driver.answers().len(), device.driver.status(0)), (0, 0xff));
}

/// What a server before had taken counts as taken: a ring that is stopped at once answers it.
#[test]
fn a_ring_that_is_stopped_at_once_answers_what_was_taken_before() {
    let kept = memory_of(flight::bytes(REQUESTS) as usize);
    let device = Device::new(512, false);
    let Device { driver, volume, .. } = device;
    let bells = Bells::default();
    let device = Device::serve(Driver { bells, ..driver }, volume.clone(), Some(&kept));
    volume.hold(Some(4096));
    device.driver.request(0, (WRITE, 8), &[(PAYLOAD, 512, false)]);
    device.run();
    let Device { driver, world, .. } = device;
    drop(world);
    volume.hold(None);
    let bells = Bells::default();
    bells.end();
    let device = Device::serve(Driver { bells, ..driver }, volume, Some(&kept));
    device.world.run_for(Nanos::from_millis(20));
    assert!(device.has_ended.get());
    assert_eq!((device.driver.answers().len(), device.driver.status(0)), (1, 0));
}

/// What a server had under way when it ended the next one carries out, and nothing twice that was
/// answered.
#[test]
fn the_next_server_goes_on_where_one_ended() {
    let kept = memory_of(flight::bytes(REQUESTS) as usize);
    let volume = MemoryVolume::new(VOLUME, 512);
    volume.0.data.borrow_mut().fill(0);
    let (bells, memory) = (Bells::default(), memory_of(MACHINE));
    let (offered, seen) = Default::default();
    let driver = Driver { memory, bells, offered, seen, is_indirect: false, is_simple: false };
    let device = Device::serve(driver, volume.clone(), Some(&kept));
    volume.hold(Some(4096));
    for slot in 0..8_u16 {
        let at = PAYLOAD + 512 * u64::from(slot);
        device.driver.memory.write_slice(&[slot as u8 + 1; 512], GuestAddress(at)).expect("there");
        // One is held up, and those behind it are not.
        let sector = if slot == 2 { 8 } else { 100 + u64::from(slot) };
        device.driver.request(slot, (WRITE, sector), &[(at, 512, false)]);
    }
    device.run();
    let answered = device.driver.answers().len();
    assert_eq!(answered, 7);
    let Device { driver, world, .. } = device;
    // It is gone, with all that it had begun.
    drop(world);
    volume.hold(None);
    volume.0.log.borrow_mut().clear();
    driver.request(0, (WRITE, 200), &[(PAYLOAD, 512, false)]);
    let bells = Bells::default();
    let device = Device::serve(Driver { bells, ..driver }, volume.clone(), Some(&kept));
    device.run();
    let heads: Vec<u32> = device.driver.answers().into_iter().map(|(head, _)| head).collect();
    assert_eq!(heads, [8, 0]);
    let log = volume.0.log.borrow().clone();
    assert_eq!(log, [Op::Write(4096, 512, false), Op::Write(102_400, 512, false)]);
    assert_eq!(volume.bytes_at(4096, 512), [3; 512]);
    device.end();
}

#[test]
fn a_ring_that_lies_nowhere_is_refused() {
    let memory = memory_of(MACHINE);
    let place = Place {
        requests: REQUESTS,
        descriptors: DESCRIPTORS,
        offered: OFFERED,
        answered: ANSWERED,
        taken: 0,
        event_index: true,
        write_through: false,
    };
    let new = |place| Ring::new(memory.clone(), place, None, Bells::default()).is_ok();
    assert!(new(place));
    assert!(!new(Place { requests: 100, ..place }));
    assert!(!new(Place { requests: 0, ..place }));
    assert!(!new(Place { descriptors: MACHINE as u64 - 16, ..place }));
    assert!(!new(Place { offered: 1, ..place }));
    assert!(!new(Place { offered: 0, ..place }));
    assert!(!new(Place { answered: u64::MAX - 3, ..place }));
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u64, u8),
    Zero(u64, u64),
    Read(u64, u64),
}

const BLOCKS: u64 = 128;

fn step() -> impl Strategy<Value = (Step, usize)> {
    let place = || (0..BLOCKS).prop_flat_map(|at| (Just(at), 1..=(BLOCKS - at).min(40)));
    let step = prop_oneof![
        (place(), any::<u8>()).prop_map(|((at, count), with)| Step::Write(at, count, with)),
        place().prop_map(|(at, count)| Step::Zero(at, count)),
        place().prop_map(|(at, count)| Step::Read(at, count)),
    ];
    (step, 1400_usize..20_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Against a plain run of bytes, however requests lie in memory.
    #[test]
    fn what_is_written_is_read(
        steps in prop::collection::vec(step(), 1..30),
        large: bool,
        is_indirect: bool,
    ) {
        let block = if large { 4096 } else { 512 };
        let device = Device::new(block, is_indirect);
        let block = u64::from(block);
        let mut model = vec![0; (BLOCKS * block) as usize];
        for (step, of) in steps {
            let range = |at: u64, count: u64| {
                (at * block) as usize..((at + count) * block) as usize
            };
            match step {
                Step::Write(at, count, with) => {
                    let part = range(at, count);
                    let data: Vec<u8> = (0..part.len()).map(|n| with ^ n as u8).collect();
                    prop_assert_eq!(device.write(at * block, &data, of), (0, 1));
                    model[part].copy_from_slice(&data);
                }
                Step::Zero(at, count) => {
                    prop_assert_eq!(device.segment(ZERO, (at * block, count * block), 0), 0);
                    model[range(at, count)].fill(0);
                }
                Step::Read(at, count) => {
                    let bytes = (count * block) as usize;
                    let (status, written, told) = device.read(at * block, bytes, of);
                    prop_assert_eq!((status, written as usize), (0, bytes + 1));
                    prop_assert!(told == model[range(at, count)]);
                }
            }
        }
        prop_assert!(device.volume.bytes_at(0, model.len()) == model);
        device.end();
    }
}

//! A volume as a file, by the bytes that a kernel sends and is answered.

use io::local::Event;
use io::{BlockError, Blocks};
use palisade_fuse::wire::opcode;
use palisade_fuse::{
    ConnectionMemory, Device, Fence, Link, Look, MEMORY, MemorySize, Unmounted, serve,
};
use proptest::prelude::*;
use sim::volume::{MemoryVolume, Op};
use sim::{World, WorldConfig};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;
use std::sync::Arc;
use units::{CoreId, Nanos};

const BYTES: usize = 4 << 20;
const LOOK: Look = Look { uid: 7, gid: 8, mode: 0o640, seconds: 1_700_000_000 };

struct There;

impl Link for There {
    fn is_over(&self) -> bool {
        false
    }
}

/// The kernel's side.
#[derive(Default)]
struct Kernel {
    requests: RefCell<VecDeque<Vec<u8>>>,
    answers: RefCell<Vec<Vec<u8>>>,
    is_over: Cell<bool>,
    /// Where payloads began that landed in a piece of their own.
    landed: RefCell<Vec<usize>>,
    changed: Event,
}

impl Device for Kernel {
    async fn ready(&self) -> Result<(), Unmounted> {
        let is_ready = || (self.is_over.get() || !self.requests.borrow().is_empty()).then_some(());
        self.changed.wait_until(is_ready).await;
        if self.is_over.get() { Err(Unmounted) } else { Ok(()) }
    }

    fn receive(&self, head: &mut [u8], rest: &mut [u8]) -> Result<Option<usize>, Unmounted> {
        if self.is_over.get() {
            return Err(Unmounted);
        }
        let Some(request) = self.requests.borrow_mut().pop_front() else { return Ok(None) };
        let first = request.len().min(head.len());
        head[..first].copy_from_slice(&request[..first]);
        rest[..request.len() - first].copy_from_slice(&request[first..]);
        self.landed.borrow_mut().push(rest.as_ptr() as usize);
        Ok(Some(request.len()))
    }

    fn answer(&self, parts: &[IoSlice<'_>]) {
        self.answers.borrow_mut().push(parts.iter().flat_map(|part| part.to_vec()).collect());
        self.changed.notify();
    }

    fn link(&self) -> Arc<dyn Link> {
        Arc::new(There)
    }
}

/// A file that is served.
struct File {
    world: World<()>,
    kernel: Rc<Kernel>,
    volume: MemoryVolume,
    memory: Rc<ConnectionMemory>,
    next: Cell<u64>,
    has_ended: Rc<Cell<bool>>,
}

/// Less than a core has.
const SOME: MemorySize = MemorySize { pieces: [64, 8, 2, 2], ..MEMORY };

fn volume(bytes: usize, block: u32) -> MemoryVolume {
    let volume = MemoryVolume::new(bytes, block);
    volume.0.data.borrow_mut().fill(0);
    volume.0.keeps_parts.set(true);
    volume
}

impl File {
    fn of(volume: &MemoryVolume, memory: MemorySize) -> Self {
        let world = World::new(WorldConfig::new(1));
        let (kernel, has_ended) = (Rc::<Kernel>::default(), Rc::<Cell<bool>>::default());
        let memory = ConnectionMemory::new(memory);
        let (env, device, own) = (world.env(CoreId(0)), kernel.clone(), volume.clone());
        let (told, shared) = (has_ended.clone(), memory.clone());
        io::Env::spawn(&env.clone(), io::Priority::First, async move {
            let fence = Arc::<Fence>::default();
            assert!(serve(env, device, (own, LOOK), (&fence, &shared)).await);
            told.set(true);
        });
        Self { world, kernel, volume: volume.clone(), memory, next: Cell::new(1), has_ended }
    }

    fn new(block: u32) -> Self {
        Self::of(&volume(BYTES, block), SOME)
    }

    /// Sends a request for the file, and does not wait.
    fn send(&self, code: u32, body: &[u8]) -> u64 {
        self.send_to(code, 1, body)
    }

    fn send_to(&self, code: u32, node: u64, body: &[u8]) -> u64 {
        let unique = self.next.replace(self.next.get() + 2);
        let mut raw = ((40 + body.len()) as u32).to_le_bytes().to_vec();
        raw.extend(code.to_le_bytes());
        raw.extend(unique.to_le_bytes());
        raw.extend(node.to_le_bytes());
        raw.extend([0; 16]);
        raw.extend(body);
        self.raw(raw);
        unique
    }

    fn raw(&self, raw: Vec<u8>) {
        self.kernel.requests.borrow_mut().push_back(raw);
        self.kernel.changed.notify();
    }

    /// The answer to a request: its error, and what came with it.
    fn answer(&self, unique: u64) -> Option<(i32, Vec<u8>)> {
        let all = self.kernel.answers.borrow();
        let mut own = all.iter().filter(|answer| answer[8..16] == unique.to_le_bytes());
        let found = own.next()?.clone();
        assert!(own.next().is_none(), "answered twice");
        assert_eq!(found[..4], (found.len() as u32).to_le_bytes());
        Some((i32::from_le_bytes(found[4..8].try_into().unwrap()), found[16..].to_vec()))
    }

    fn ask(&self, code: u32, body: &[u8]) -> (i32, Vec<u8>) {
        let unique = self.send(code, body);
        self.world.run_for(Nanos::from_millis(20));
        self.answer(unique).expect("answered")
    }

    fn read(&self, offset: u64, bytes: u32) -> (i32, Vec<u8>) {
        self.ask(opcode::READ, &range(offset, bytes, 0))
    }

    fn write(&self, offset: u64, data: &[u8], flags: u32) -> (i32, Vec<u8>) {
        self.ask(opcode::WRITE, &[&range(offset, data.len() as u32, flags)[..], data].concat())
    }

    fn allocate(&self, mode: u32, offset: u64, bytes: u64) -> i32 {
        let body = [&[0; 8][..], &words(&[offset, bytes]), &mode.to_le_bytes(), &[0; 4]].concat();
        self.ask(opcode::FALLOCATE, &body).0
    }

    fn end(self) {
        self.kernel.is_over.set(true);
        self.kernel.changed.notify();
        self.world.run_for(Nanos::from_millis(20));
        assert!(self.has_ended.get() && self.memory.is_idle());
    }
}

fn words(all: &[u64]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// `fuse_read_in` and `fuse_write_in`.
fn range(offset: u64, bytes: u32, flags: u32) -> Vec<u8> {
    [words(&[0, offset]), words(&[bytes.into(), 0]), words(&[flags.into()])].concat()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

const O_DSYNC: u32 = 0o10000;
const PUNCH: u32 = 3;
const ZERO: u32 = 16;
const EIO: i32 = -5;
const EINVAL: i32 = -22;
const ENOSPC: i32 = -28;
const ENOSYS: i32 = -38;

#[test]
fn a_session_begins_with_what_both_can_do() {
    let file = File::new(4096);
    let init = |major: u32, minor: u32, flags: u64| {
        let four = [major, minor, 1 << 17, flags as u32].map(u32::to_le_bytes).concat();
        let rest = [&((flags >> 32) as u32).to_le_bytes()[..], &[0; 44]].concat();
        file.ask(opcode::INIT, &[four, rest].concat())
    };
    let (error, told) = init(7, 45, u64::MAX);
    assert_eq!((error, told.len()), (0, 64));
    assert_eq!([0, 4, 8].map(|at| word(&told, at)), [7, 39, 1 << 17]);
    let flags = u64::from(word(&told, 32)) << 32 | u64::from(word(&told, 12));
    assert_eq!(flags, 1 << 30 | 1 << 22 | 1 << 15 | 1 << 5 | 1);
    assert_eq!((word(&told, 20), word(&told, 24)), (1 << 20, 1), "bytes, and nanoseconds");
    assert_eq!(word(&told, 28) & 0xffff, 256, "pages");
    // Fewer flags of an older kernel; the second word counts only if there is one.
    let (_, told) = init(7, 31, 1 << 36 | 1 << 22 | 1);
    assert_eq!((word(&told, 4), word(&told, 12), word(&told, 32)), (31, 1 << 22 | 1, 0));
    assert_eq!(init(7, 27, 0).0, -71);
    assert_eq!(init(6, 99, 0).0, -71);
    assert_eq!(word(&init(8, 0, 0).1, 0), 7);
    file.end();
}

#[test]
fn the_file_has_the_volumes_size_and_whoever_mounted_it() {
    let file = File::new(512);
    let (error, told) = file.ask(opcode::GETATTR, &[0; 16]);
    assert_eq!((error, told.len()), (0, 104));
    assert_eq!(told[..16], [0; 16], "it counts for no time");
    assert_eq!(told[16..40], words(&[1, BYTES as u64, BYTES as u64 / 512])[..]);
    assert_eq!(told[40..64], words(&[LOOK.seconds; 3])[..]);
    let rest = [76, 80, 84, 88, 92, 96].map(|at| word(&told, at));
    assert_eq!(rest, [0o100640, 1, 7, 8, 0, 4096]);
    let (error, told) = file.ask(opcode::OPEN, &[0; 8]);
    assert_eq!((error, told.len(), word(&told, 8)), (0, 16, 1 | 1 << 5 | 1 << 6));
    assert_eq!(file.ask(opcode::STATFS, &[]).1.len(), 80);
    // As a block device: times are taken, owners and other sizes are not.
    let set = |valid: u32, size: u64| {
        let body = [&valid.to_le_bytes()[..], &[0; 12], &size.to_le_bytes(), &[0; 64]].concat();
        file.ask(opcode::SETATTR, &body)
    };
    assert_eq!(set(1 << 3, BYTES as u64).0, 0);
    assert_eq!(set(1 << 5 | 1 << 8, 0), file.ask(opcode::GETATTR, &[0; 16]));
    assert_eq!((set(1 << 3, 5).0, set(1, 0).0), (EINVAL, -1));
    // Whoever opens it to be emptied finds all of it.
    assert_eq!(set(1 << 3, 0), file.ask(opcode::GETATTR, &[0; 16]));
    assert_eq!(set(1 << 3 | 1 << 6, 0).0, EINVAL);
    let seek = |offset: u64, whence: u32| {
        let body = [words(&[0, offset]), words(&[whence.into()])].concat();
        file.ask(opcode::LSEEK, &body)
    };
    assert_eq!(seek(5, 3), (0, words(&[5])));
    assert_eq!(seek(5, 4), (0, words(&[BYTES as u64])));
    assert_eq!((seek(BYTES as u64, 3).0, seek(0, 9).0), (-6, EINVAL));
    file.end();
}

#[test]
fn what_is_written_is_read() {
    let file = File::new(4096);
    let large: Vec<u8> = (0..1 << 20).map(|at: u32| ((at * 31) >> 3) as u8).collect();
    assert_eq!(file.write(1 << 20, &large, 0), (0, words(&[1 << 20])));
    assert!(file.read(1 << 20, 1 << 20) == (0, large.clone()));
    assert_eq!(file.write(8192, &[9; 4096], O_DSYNC), (0, words(&[4096])));
    assert!(file.read(4096, 8192).1 == [[0; 4096], [9; 4096]].concat());
    let log = file.volume.log();
    assert!(log.contains(&Op::Write(8192, 4096, true)), "{log:?}");
    assert!(log.contains(&Op::Write(1 << 20, 1 << 20, false)), "{log:?}");
    // A payload lands where drives take it from.
    assert!(file.kernel.landed.borrow().iter().all(|at| at % 4096 == 0));
    // All of it, and be it of one block more than fits a piece.
    let (error, told) = file.read((1 << 20) - 4000, 1 << 20);
    assert!(error == 0 && told[4000..] == large[..(1 << 20) - 4000]);
    assert_eq!(file.write(100, &[7; 5000], O_DSYNC).0, 0);
    let log = file.volume.log();
    assert!(log.contains(&Op::CompareWrite(0, 4096, true)), "{log:?}");
    assert_eq!(file.ask(opcode::FSYNC, &[0; 16]).0, 0);
    assert!(file.volume.log().contains(&Op::Flush));
    file.end();
}

#[test]
fn the_end_is_the_end() {
    let file = File::new(4096);
    let end = BYTES as u64;
    assert_eq!(file.read(end, 4096), (0, vec![]));
    assert!(file.read(end - 100, 4096) == (0, vec![0; 100]));
    assert_eq!(file.read(u64::MAX, u32::MAX), (0, vec![]));
    assert_eq!(file.write(end - 4096, &[1; 8192], 0), (0, words(&[4096])));
    assert_eq!(file.write(end, &[1; 512], 0).0, ENOSPC);
    assert_eq!((file.allocate(0, 0, end), file.allocate(0, 1, end)), (0, ENOSPC));
    assert_eq!(file.allocate(1, u64::MAX, 2), ENOSPC);
    assert_eq!(file.allocate(PUNCH, end - 4096, u64::MAX), 0);
    assert!(file.read(end - 4096, 4096).1 == [0; 4096]);
    assert_eq!((file.allocate(PUNCH, end, 5), file.allocate(ZERO | 1, u64::MAX, 5)), (0, 0));
    assert_eq!((file.allocate(ZERO, end - 5, 6), file.allocate(ZERO, end - 5, 5)), (ENOSPC, 0));
    assert_eq!(file.allocate(8, 0, 4096), -95, "no range is taken out");
    file.end();
}

#[test]
fn what_the_volume_refuses_is_an_error_and_no_more() {
    let file = File::new(4096);
    file.volume.fail(8192..12288, BlockError::Unavailable);
    assert_eq!(file.read(8192, 4096), (EIO, vec![]));
    assert_eq!(file.write(8192, &[1; 4096], 0), (EIO, vec![]));
    assert_eq!(file.write(8200, &[1; 8], 0), (EIO, vec![]));
    assert_eq!(file.allocate(PUNCH, 4096, 8192), EIO);
    assert!(file.read(0, 4096) == (0, vec![0; 4096]));
    file.end();
}

#[test]
fn whatever_comes_is_answered_or_needs_no_answer() {
    let file = File::new(4096);
    for code in 0..64 {
        let known = [4, 14, 15, 16, 17, 18, 20, 3, 26, 34, 38, 43, 46, 50];
        let silent = [opcode::FORGET, opcode::BATCH_FORGET, opcode::INTERRUPT].contains(&code);
        for body in [0, 8, 39, 40, 88] {
            let unique = file.send(code, &vec![0; body]);
            file.world.run_for(Nanos::from_millis(20));
            let answer = file.answer(unique);
            assert_eq!(answer.is_none(), silent, "{code}, {body}");
            let is_unknown = answer.is_some_and(|(error, _)| error == ENOSYS);
            assert_eq!(is_unknown, !silent && !known.contains(&code) && code != 1, "{code}");
        }
        let unique = file.send_to(code, 2, &[0; 100]);
        file.world.run_for(Nanos::from_millis(20));
        let fine = [opcode::INIT, 38];
        let answer = file.answer(unique).map(|(error, _)| error);
        assert!(
            answer.is_none() == silent && (fine.contains(&code) || answer != Some(0)),
            "{code}"
        );
    }
    // No requests at all.
    let count = file.kernel.answers.borrow().len();
    for bad in [vec![], vec![1; 39], vec![255; 40], vec![0; 40], vec![7; 4000]] {
        file.raw(bad);
        file.world.run_for(Nanos::from_millis(20));
    }
    assert_eq!(file.kernel.answers.borrow().len(), count);
    assert_eq!(file.read(0, 4096).0, 0, "it goes on");
    file.end();
}

/// A write whose length is not that of its payload changes nothing.
#[test]
fn a_payload_is_as_long_as_it_says() {
    let file = File::new(4096);
    let body = [&range(0, 4096, 0)[..], &[5; 512]].concat();
    assert_eq!(file.ask(opcode::WRITE, &body).0, EINVAL);
    assert!(file.read(0, 4096).1 == [0; 4096]);
    file.end();
}

#[test]
fn many_are_under_way_at_a_time_and_the_end_waits_for_them() {
    for memory in [SOME, MemorySize { pieces: [0; 4], ..SOME }] {
        let volume = volume(BYTES, 4096);
        let file = File::of(&volume, memory);
        volume.hold(Some(0));
        let held = file.send(opcode::WRITE, &[&range(0, 4096, 0)[..], &[1; 4096]].concat());
        file.world.run_for(Nanos::from_millis(20));
        assert!(file.answer(held).is_none());
        let is_alone = memory.pieces[0] == 0;
        let others: Vec<u64> =
            (1..200).map(|at| file.send(opcode::READ, &range(at * 4096, 4096, 0))).collect();
        file.world.run_for(Nanos::from_millis(20));
        // With one piece of memory they wait for the one that has it.
        let answered = others.iter().filter(|own| file.answer(**own).is_some()).count();
        assert_eq!(answered, if is_alone { 0 } else { 199 });
        file.kernel.is_over.set(true);
        file.kernel.changed.notify();
        file.world.run_for(Nanos::from_millis(20));
        assert!(!file.has_ended.get(), "a write is under way");
        volume.hold(None);
        file.world.run_for(Nanos::from_millis(20));
        assert!(file.has_ended.get());
        assert_eq!(file.answer(held).map(|own| own.0), Some(0));
    }
}

#[test]
fn a_core_without_room_serves_no_more_files() {
    let world = World::<()>::new(WorldConfig::new(1));
    let env = world.env(CoreId(0));
    let memory = ConnectionMemory::new(MemorySize { connections: 0, ..MEMORY });
    let is_served = world.run_until(async move {
        let (fence, volume) = (Arc::default(), MemoryVolume::new(BYTES, 4096));
        serve(env, Rc::<Kernel>::default(), (volume, LOOK), (&fence, &memory)).await
    });
    assert!(!is_served);
}

#[derive(Clone, Debug)]
enum Step {
    Write(u64, u32, u8),
    Zero(bool, u64, u32),
    Read(u64, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..300_000u64, 0..200_000u32);
    prop_oneof![
        (place(), any::<u8>()).prop_map(|((at, bytes), with)| Step::Write(at, bytes, with)),
        (place(), any::<bool>()).prop_map(|((at, bytes), punch)| Step::Zero(punch, at, bytes)),
        place().prop_map(|(at, bytes)| Step::Read(at, bytes)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Against a plain run of bytes, with ranges that begin and end anywhere.
    #[test]
    fn any_bytes_can_be_changed(steps in prop::collection::vec(step(), 1..30), large: bool) {
        const SIZE: usize = 256 << 10;
        let volume = volume(SIZE, if large { 4096 } else { 512 });
        let file = File::of(&volume, SOME);
        let mut model = vec![0; SIZE];
        for step in steps {
            let part = |at: u64, bytes: u32| {
                let from = (at as usize).min(SIZE);
                from..(from + bytes as usize).min(SIZE)
            };
            match step {
                Step::Write(at, bytes, with) => {
                    let data: Vec<u8> = (0..bytes).map(|n| with.wrapping_add(n as u8)).collect();
                    let part = part(at, bytes);
                    let (error, told) = file.write(at, &data, 0);
                    prop_assert_eq!(error == ENOSPC, part.is_empty());
                    if !part.is_empty() {
                        prop_assert_eq!(word(&told, 0) as usize, part.len());
                    }
                    model[part.clone()].copy_from_slice(&data[..part.len()]);
                }
                Step::Zero(punch, at, bytes) => {
                    let mode = if punch { PUNCH } else { ZERO | 1 };
                    prop_assert_eq!(file.allocate(mode, at, bytes.into()), 0);
                    model[part(at, bytes)].fill(0);
                }
                Step::Read(at, bytes) => {
                    let (error, told) = file.read(at, bytes);
                    prop_assert!(error == 0 && told == model[part(at, bytes)], "{at}, {bytes}");
                }
            }
        }
        prop_assert!(volume.bytes_at(0, SIZE) == model);
        file.end();
    }
}

/// Of one block each changes some bytes, all at a time.
#[test]
fn changes_of_one_block_lose_nothing() {
    let file = File::new(4096);
    file.volume.0.reads_take_time.set(true);
    let sent: Vec<u64> = (0..60)
        .map(|at| {
            file.send(opcode::WRITE, &[&range(at * 3, 3, 0)[..], &[at as u8 + 1; 3]].concat())
        })
        .collect();
    file.world.run_for(Nanos::from_millis(20));
    assert!(sent.iter().all(|own| file.answer(*own).is_some_and(|(error, _)| error == 0)));
    let wanted: Vec<u8> = (0..60u8).flat_map(|at| [at + 1; 3]).collect();
    assert_eq!(file.read(0, 180).1, wanted);
    assert_eq!(file.volume.bytes(), BYTES as u64);
    file.end();
}

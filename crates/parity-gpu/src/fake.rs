//! A device that is a thread of this process and runs the kernels' C++ form.
//!
//! Purpose: streams, batches, fences and drains are tested on any machine, for real: work is done
//! later than it is asked for, in any order that streams allow, and goes wrong on demand.
//! Invariants: the order between streams is drawn from a seed; [`Switches`] are the only way to
//! make it fail.
//!
//! The thread takes the next command of some stream, does it, and looks again:
//!
//! | state | leaves it by |
//! |---|---|
//! | idle | a command, to *working*; the device dropped, to *ended* |
//! | working | the command done, to *idle* |
//! | hung | `hang(false)`, to *idle*; what was asked for meanwhile is then done, late |
//! | lost | nothing: commands are dropped and every call fails |
//! | ended | nothing |
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::driver::{
    Asked, Device, DeviceMemory, Driver, DriverError, HostMemory, Problem, Stream,
};
use crate::host;
use crate::memory::Aligned;
use crate::pack::Packed;

/// A driver with one fake device.
#[derive(Clone)]
pub struct FakeDriver {
    switches: Arc<Switches>,
    seed: u64,
    memory: usize,
}

/// What goes wrong with a fake device, from now on.
#[derive(Default)]
pub struct Switches {
    /// Launches to refuse.
    refuse: AtomicUsize,
    /// Launches whose results get wrong bits.
    spoil: AtomicUsize,
    /// Launches that nothing comes of.
    skip: AtomicUsize,
    /// Whether results from registered memory get wrong bits.
    misreached: AtomicBool,
    hung: AtomicBool,
    lost: AtomicBool,
    full: AtomicBool,
    /// Whether calls don't come back, and how many haven't.
    blocked: Mutex<(bool, usize)>,
    unblocked: Condvar,
    /// What was asked for and done, for tests that must know.
    asked: AtomicUsize,
    launches: AtomicUsize,
    copied: AtomicUsize,
    /// Strips of launches that were neither the device's memory nor registered.
    strays: AtomicUsize,
}

impl Switches {
    /// The next `launches` launches are refused.
    pub fn refuse(&self, launches: usize) {
        self.refuse.store(launches, Ordering::SeqCst);
    }

    /// The results of the next `launches` launches each get one wrong bit for each job.
    pub fn spoil(&self, launches: usize) {
        self.spoil.store(launches, Ordering::SeqCst);
    }

    /// The next `launches` launches do nothing, and say that they did.
    pub fn skip(&self, launches: usize) {
        self.skip.store(launches, Ordering::SeqCst);
    }

    /// Results of jobs on registered memory are wrong, until this is taken back.
    pub fn misreach(&self, wrong: bool) {
        self.misreached.store(wrong, Ordering::SeqCst);
    }

    /// Nothing is done any more, until this is taken back.
    pub fn hang(&self, hung: bool) {
        self.hung.store(hung, Ordering::SeqCst);
    }

    /// Calls don't come back, until this is taken back.
    pub fn block(&self, blocked: bool) {
        self.blocked().0 = blocked;
        self.unblocked.notify_all();
    }

    /// Calls that have not come back.
    pub fn blocked_calls(&self) -> usize {
        self.blocked().1
    }

    fn blocked(&self) -> MutexGuard<'_, (bool, usize)> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Comes back once calls do.
    fn pass(&self) {
        let mut blocked = self.blocked();
        blocked.1 += 1;
        while blocked.0 {
            blocked = self.unblocked.wait(blocked).unwrap_or_else(PoisonError::into_inner);
        }
        blocked.1 -= 1;
    }

    /// The device is gone for good.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    /// There is no more memory, until this is taken back.
    pub fn fill(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// Launches that were asked for, and not refused.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Launches that were done.
    pub fn launches(&self) -> usize {
        self.launches.load(Ordering::SeqCst)
    }

    /// Bytes that were copied to and from the device.
    pub fn copied(&self) -> usize {
        self.copied.load(Ordering::SeqCst)
    }

    /// Strips of launches that a device could not have reached.
    pub fn strays(&self) -> usize {
        self.strays.load(Ordering::SeqCst)
    }
}

/// Takes one of `count` if there is one left.
fn take_one(count: &AtomicUsize) -> bool {
    let one_less = |left: usize| left.checked_sub(1);
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
}

impl FakeDriver {
    /// A device of `memory` bytes whose streams take turns as `seed` says.
    pub fn new(seed: u64, memory: usize) -> FakeDriver {
        FakeDriver { switches: Arc::default(), seed, memory }
    }

    /// What makes it fail.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }
}

impl Driver for FakeDriver {
    fn devices(&self) -> Result<Vec<String>, DriverError> {
        Ok(vec!["fake".to_owned()])
    }

    fn open(&self, number: usize) -> Result<Box<dyn Device>, DriverError> {
        if number != 0 {
            return Err(DriverError::new(Asked::Open, Problem::NoDevice));
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(State { random: self.seed, ..State::default() }),
            changed: Condvar::new(),
            switches: self.switches.clone(),
        });
        let for_thread = shared.clone();
        let thread = std::thread::spawn(move || work(&for_thread));
        Ok(Box::new(FakeDevice {
            shared,
            room: self.memory,
            thread: Some(thread),
            device: Vec::new(),
            host: Vec::new(),
        }))
    }
}

type Memory = Arc<Mutex<Aligned>>;

/// Something for a stream to do.
enum Command {
    Copy { from: Memory, to: Memory, len: usize },
    Zero { memory: Memory, len: usize },
    Launch(Packed),
    Mark(u64),
}

#[derive(Default)]
struct State {
    streams: Vec<Row>,
    /// What kernels may reach, by addresses: the device's memory, and what is registered.
    own: Vec<Range<u64>>,
    registered: Vec<Range<u64>>,
    random: u64,
    ended: bool,
}

/// A stream's commands and marks.
#[derive(Default)]
struct Row {
    commands: VecDeque<Command>,
    marked: u64,
    passed: u64,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    switches: Arc<Switches>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn locked(memory: &Memory) -> MutexGuard<'_, Aligned> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often a hung device looks whether it still is.
const LOOK: std::time::Duration = std::time::Duration::from_millis(1);

/// The device's thread.
fn work(shared: &Shared) {
    let mut state = shared.state();
    loop {
        if state.ended {
            return;
        }
        if shared.switches.lost.load(Ordering::SeqCst) {
            state.streams.iter_mut().for_each(|row| row.commands.clear());
        }
        let hung = shared.switches.hung.load(Ordering::SeqCst);
        let Some((stream, command)) = (if hung { None } else { state.next() }) else {
            let waited = shared.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        };
        drop(state);
        let mark = carry_out(command, shared);
        state = shared.state();
        if let Some(mark) = mark {
            state.streams[stream].passed = mark;
        }
    }
}

impl State {
    /// The next command of a stream that has one, whichever.
    fn next(&mut self) -> Option<(usize, Command)> {
        let waiting: Vec<_> =
            (0..self.streams.len()).filter(|&i| !self.streams[i].commands.is_empty()).collect();
        if waiting.is_empty() {
            return None;
        }
        // Knuth's linear congruential generator; its upper bits are the better ones.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pick = (self.random >> 33) as usize % waiting.len();
        let stream = waiting[pick];
        self.streams[stream].commands.pop_front().map(|command| (stream, command))
    }
}

/// Does one command; the mark that was passed by it.
fn carry_out(command: Command, shared: &Shared) -> Option<u64> {
    match command {
        Command::Copy { from, to, len } => {
            locked(&to)[..len].copy_from_slice(&locked(&from)[..len]);
            shared.switches.copied.fetch_add(len, Ordering::SeqCst);
        }
        Command::Zero { memory, len } => locked(&memory)[..len].fill(0),
        Command::Launch(batch) => run(&batch, shared),
        Command::Mark(mark) => return Some(mark),
    }
    None
}

/// A number of `N` bytes that metadata has at `address`.
///
/// # Safety
///
/// It is metadata of a batch, in memory of the device, and nobody writes it.
unsafe fn number<const N: usize>(address: u64) -> [u8; N] {
    // SAFETY: passed on to the caller; bytes need no alignment.
    unsafe { *(address as usize as *const [u8; N]) }
}

/// Runs a batch, all of whose strips must be where a device reaches them.
fn run(batch: &Packed, shared: &Shared) {
    let (mut first, mut misreached) = (Vec::new(), false);
    for job in 0..u64::from(batch.count()) {
        let at = batch.jobs() + 48 * job;
        // SAFETY: `launch` was vouched for: descriptors and lists are where the batch says.
        unsafe {
            let [list, answer] = [0, 16].map(|field| u64::from_le_bytes(number(at + field)));
            let [len, inputs, outputs] =
                [24, 28, 32].map(|field| u64::from(u32::from_le_bytes(number(at + field))));
            let strip = |i| u64::from_le_bytes(number(list + 8 * i));
            let state = shared.state();
            let within = |ranges: &[Range<u64>], from: u64| {
                ranges.iter().any(|range| range.start <= from && from + len <= range.end)
            };
            let others: Vec<u64> =
                (0..inputs + outputs).map(strip).filter(|&at| !within(&state.own, at)).collect();
            let stray = |at: &&u64| !within(&state.registered, **at);
            shared.switches.strays.fetch_add(others.iter().filter(stray).count(), Ordering::SeqCst);
            misreached |= !others.is_empty() && shared.switches.misreached.load(Ordering::SeqCst);
            let answers = batch.kind().name().contains("verify") || outputs == 0;
            first.push(if answers { answer } else { strip(inputs) });
        }
    }
    let (input, out) = (core::ptr::null(), core::ptr::null_mut());
    if take_one(&shared.switches.skip) {
        return;
    }
    // SAFETY: as above; the strips are the device's memory, or registered and nobody else's.
    unsafe {
        host::launch(batch.kind(), (input, out), batch.jobs(), (batch.blocks(), batch.count()))
    };
    if take_one(&shared.switches.spoil) | misreached {
        for at in first {
            // SAFETY: the first byte that the kernel wrote for a job.
            unsafe { *(at as usize as *mut u8) ^= 0x20 };
        }
    }
    shared.switches.launches.fetch_add(1, Ordering::SeqCst);
}

/// The device's side that is asked.
struct FakeDevice {
    shared: Arc<Shared>,
    /// Bytes of device memory that are left.
    room: usize,
    thread: Option<JoinHandle<()>>,
    device: Vec<Held>,
    host: Vec<Held>,
}

/// Memory with what is known of it without asking for it.
#[derive(Clone)]
struct Held {
    memory: Memory,
    address: u64,
    len: usize,
}

impl Held {
    fn zeros(len: usize) -> Held {
        let mut memory = Aligned::zeros(len);
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        Held { memory: Arc::new(Mutex::new(memory)), address, len }
    }
}

impl FakeDevice {
    /// Fails where the device is lost.
    fn alive(&self, asked: Asked) -> Result<(), DriverError> {
        self.shared.switches.pass();
        match self.shared.switches.lost.load(Ordering::SeqCst) {
            true => Err(DriverError::new(asked, Problem::Lost("a switch".to_owned()))),
            false => Ok(()),
        }
    }

    /// Fails where there is no more memory, or the device is lost.
    fn roomy(&self, bytes: usize) -> Result<(), DriverError> {
        self.alive(Asked::Allocate)?;
        match bytes > self.room || self.shared.switches.full.load(Ordering::SeqCst) {
            true => Err(DriverError::new(Asked::Allocate, Problem::Memory)),
            false => Ok(()),
        }
    }

    /// Fails where `memory` is shorter than `len`.
    fn within(memory: &Held, len: usize) -> Result<Memory, DriverError> {
        match len > memory.len {
            true => Err(DriverError::new(Asked::Copy, Problem::Arguments)),
            false => Ok(memory.memory.clone()),
        }
    }

    fn ask(&mut self, stream: Stream, command: Command) {
        self.shared.state().streams[stream.0].commands.push_back(command);
        self.shared.changed.notify_one();
    }

    fn copy(
        &mut self,
        stream: Stream,
        (from, to): (Held, Held),
        len: usize,
    ) -> Result<(), DriverError> {
        self.alive(Asked::Copy)?;
        let (from, to) = (Self::within(&from, len)?, Self::within(&to, len)?);
        self.ask(stream, Command::Copy { from, to, len });
        Ok(())
    }
}

impl Device for FakeDevice {
    fn name(&self) -> &str {
        "fake"
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, DriverError> {
        self.roomy(bytes)?;
        self.room -= bytes;
        let held = Held::zeros(bytes);
        self.shared.state().own.push(held.address..held.address + bytes as u64);
        self.device.push(held);
        Ok(DeviceMemory(self.device.len() - 1))
    }

    fn address(&self, memory: DeviceMemory) -> u64 {
        self.device[memory.0].address
    }

    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, DriverError> {
        self.roomy(0)?;
        self.host.push(Held::zeros(bytes));
        Ok(HostMemory(self.host.len() - 1))
    }

    fn stream(&mut self) -> Result<Stream, DriverError> {
        self.roomy(0)?;
        let mut state = self.shared.state();
        state.streams.push(Row::default());
        Ok(Stream(state.streams.len() - 1))
    }

    fn write(&mut self, memory: HostMemory, at: usize, bytes: &[u8]) {
        locked(&self.host[memory.0].memory)[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, memory: HostMemory, at: usize, bytes: &mut [u8]) {
        bytes.copy_from_slice(&locked(&self.host[memory.0].memory)[at..at + bytes.len()]);
    }

    fn copy_up(
        &mut self,
        stream: Stream,
        from: HostMemory,
        to: DeviceMemory,
        len: usize,
    ) -> Result<(), DriverError> {
        let both = (self.host[from.0].clone(), self.device[to.0].clone());
        self.copy(stream, both, len)
    }

    fn copy_down(
        &mut self,
        stream: Stream,
        from: DeviceMemory,
        to: HostMemory,
        len: usize,
    ) -> Result<(), DriverError> {
        let both = (self.device[from.0].clone(), self.host[to.0].clone());
        self.copy(stream, both, len)
    }

    fn copy_within(
        &mut self,
        stream: Stream,
        from: DeviceMemory,
        to: DeviceMemory,
        len: usize,
    ) -> Result<(), DriverError> {
        let both = (self.device[from.0].clone(), self.device[to.0].clone());
        self.copy(stream, both, len)
    }

    fn zero(
        &mut self,
        stream: Stream,
        memory: DeviceMemory,
        len: usize,
    ) -> Result<(), DriverError> {
        self.alive(Asked::Copy)?;
        let memory = Self::within(&self.device[memory.0], len)?;
        self.ask(stream, Command::Zero { memory, len });
        Ok(())
    }

    unsafe fn launch(&mut self, stream: Stream, batch: &Packed) -> Result<(), DriverError> {
        self.alive(Asked::Launch)?;
        if take_one(&self.shared.switches.refuse) {
            let why = Problem::Code(1, "a switch of the fake device".to_owned());
            return Err(DriverError::new(Asked::Launch, why));
        }
        self.ask(stream, Command::Launch(*batch));
        self.shared.switches.asked.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn register(&mut self, address: usize, bytes: usize) -> Result<u64, DriverError> {
        self.alive(Asked::Register)?;
        if self.shared.switches.full.load(Ordering::SeqCst) {
            return Err(DriverError::new(Asked::Register, Problem::Memory));
        }
        let address = address as u64;
        self.shared.state().registered.push(address..address + bytes as u64);
        Ok(address)
    }

    fn unregister(&mut self, address: usize) -> Result<(), DriverError> {
        self.alive(Asked::Register)?;
        let mut state = self.shared.state();
        let at = state.registered.iter().position(|range| range.start == address as u64);
        let at = at.ok_or(DriverError::new(Asked::Register, Problem::Arguments))?;
        state.registered.swap_remove(at);
        Ok(())
    }

    fn mark(&mut self, stream: Stream) -> Result<(), DriverError> {
        self.alive(Asked::Mark)?;
        let mark = {
            let mut state = self.shared.state();
            let row = &mut state.streams[stream.0];
            row.marked += 1;
            row.marked
        };
        self.ask(stream, Command::Mark(mark));
        Ok(())
    }

    fn passed(&mut self, stream: Stream) -> Result<bool, DriverError> {
        self.alive(Asked::Mark)?;
        let state = self.shared.state();
        let row = &state.streams[stream.0];
        Ok(row.passed == row.marked)
    }
}

impl Drop for FakeDevice {
    fn drop(&mut self) {
        self.shared.state().ended = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A kernel that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

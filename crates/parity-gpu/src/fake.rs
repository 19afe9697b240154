//! A device that is a thread of this process and runs the kernels' C form.
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
    /// Launches whose result gets a wrong bit.
    spoil: AtomicUsize,
    hung: AtomicBool,
    lost: AtomicBool,
    full: AtomicBool,
    /// What was done, for tests that must know.
    launches: AtomicUsize,
}

impl Switches {
    /// The next `launches` launches are refused.
    pub fn refuse(&self, launches: usize) {
        self.refuse.store(launches, Ordering::SeqCst);
    }

    /// The results of the next `launches` launches each get one wrong bit.
    pub fn spoil(&self, launches: usize) {
        self.spoil.store(launches, Ordering::SeqCst);
    }

    /// Nothing is done any more, until this is taken back.
    pub fn hang(&self, hung: bool) {
        self.hung.store(hung, Ordering::SeqCst);
    }

    /// The device is gone for good.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    /// There is no more memory, until this is taken back.
    pub fn fill(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// Launches that were done.
    pub fn launches(&self) -> usize {
        self.launches.load(Ordering::SeqCst)
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
    Launch { input: Memory, out: Memory, batch: Packed },
    Mark(u64),
}

#[derive(Default)]
struct State {
    streams: Vec<Row>,
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
        let mark = carry_out(command, &shared.switches);
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
        // Knuth's linear congruential generator; its upper bits are the better ones.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pick = (self.random >> 33) as usize % waiting.len().max(1);
        let stream = *waiting.get(pick)?;
        self.streams[stream].commands.pop_front().map(|command| (stream, command))
    }
}

/// Does one command; the mark that was passed by it.
fn carry_out(command: Command, switches: &Switches) -> Option<u64> {
    match command {
        Command::Copy { from, to, len } => {
            locked(&to)[..len].copy_from_slice(&locked(&from)[..len]);
        }
        Command::Zero { memory, len } => locked(&memory)[..len].fill(0),
        Command::Launch { input, out, batch } => {
            let (input, mut out) = (locked(&input), locked(&out));
            let grid = (host::blocks(batch.longest), batch.count as u32);
            let memory = (input.as_ptr(), out.as_mut_ptr());
            // SAFETY: the packer placed everything within lengths that `launch` compared with
            // the memories', its caller vouches for the descriptors, both memories are locked.
            unsafe { host::launch(batch.kind, memory, batch.jobs as u64, grid) };
            if take_one(&switches.spoil) {
                out[batch.out_len / 2] ^= 0x20;
            }
            switches.launches.fetch_add(1, Ordering::SeqCst);
        }
        Command::Mark(mark) => return Some(mark),
    }
    None
}

/// The device's side that is asked.
struct FakeDevice {
    shared: Arc<Shared>,
    /// Bytes of device memory that are left.
    room: usize,
    thread: Option<JoinHandle<()>>,
    device: Vec<Memory>,
    host: Vec<Memory>,
}

impl FakeDevice {
    /// Fails where the device is lost.
    fn alive(&self, asked: Asked) -> Result<(), DriverError> {
        match self.shared.switches.lost.load(Ordering::SeqCst) {
            true => Err(DriverError::new(asked, Problem::Lost)),
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
    fn within(asked: Asked, memory: &Memory, len: usize) -> Result<(), DriverError> {
        match len > locked(memory).len() {
            true => Err(DriverError::new(asked, Problem::Arguments)),
            false => Ok(()),
        }
    }

    fn ask(&mut self, stream: Stream, command: Command) {
        self.shared.state().streams[stream.0].commands.push_back(command);
        self.shared.changed.notify_one();
    }

    fn copy(
        &mut self,
        stream: Stream,
        (from, to): (Memory, Memory),
        len: usize,
    ) -> Result<(), DriverError> {
        self.alive(Asked::Copy)?;
        Self::within(Asked::Copy, &from, len)?;
        Self::within(Asked::Copy, &to, len)?;
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
        self.device.push(Arc::new(Mutex::new(Aligned::zeros(bytes))));
        Ok(DeviceMemory(self.device.len() - 1))
    }

    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, DriverError> {
        self.roomy(0)?;
        self.host.push(Arc::new(Mutex::new(Aligned::zeros(bytes))));
        Ok(HostMemory(self.host.len() - 1))
    }

    fn stream(&mut self) -> Result<Stream, DriverError> {
        self.roomy(0)?;
        let mut state = self.shared.state();
        state.streams.push(Row::default());
        Ok(Stream(state.streams.len() - 1))
    }

    fn write(&mut self, memory: HostMemory, at: usize, bytes: &[u8]) {
        locked(&self.host[memory.0])[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, memory: HostMemory, at: usize, bytes: &mut [u8]) {
        bytes.copy_from_slice(&locked(&self.host[memory.0])[at..at + bytes.len()]);
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
        let memory = self.device[memory.0].clone();
        Self::within(Asked::Copy, &memory, len)?;
        self.ask(stream, Command::Zero { memory, len });
        Ok(())
    }

    unsafe fn launch(
        &mut self,
        stream: Stream,
        (input, out): (DeviceMemory, DeviceMemory),
        batch: &Packed,
    ) -> Result<(), DriverError> {
        self.alive(Asked::Launch)?;
        if take_one(&self.shared.switches.refuse) {
            let why = Problem::Code(1, "a switch of the fake device".to_owned());
            return Err(DriverError::new(Asked::Launch, why));
        }
        if input == out {
            return Err(DriverError::new(Asked::Launch, Problem::Arguments));
        }
        let (input, out) = (self.device[input.0].clone(), self.device[out.0].clone());
        Self::within(Asked::Launch, &input, batch.in_len)?;
        Self::within(Asked::Launch, &out, batch.out_len)?;
        self.ask(stream, Command::Launch { input, out, batch: batch.clone() });
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

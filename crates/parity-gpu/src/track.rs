//! Tracks: one batch that is laid out once and run any number of times.
//!
//! Purpose: benchmarks and tests of a device by itself. What a track is asked for is a step of a
//! batch's way: up, compute, down; nothing is decided here and nothing given back.
//! Invariants: a batch is computed only after it was asked to go up, so that its descriptors are
//! there. Memory is a [`Room`]'s, strips may lie in [`Lent`] memory; tracks over one of these
//! follow each other.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

use io::{BufMut, Pool};
use parity::offload::{Answer, Operation};

use crate::driver::{Device, DeviceMemory, DriverError, HostMemory, Stream};
use crate::kind::Kind;
use crate::pack::{self, Packed, Packer, Stage};
use crate::plan::{self, Plan};

/// A stream with memory on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    stream: Stream,
    /// `in` on both sides.
    input: (HostMemory, DeviceMemory),
    /// `out` on both sides.
    out: (HostMemory, DeviceMemory),
    bytes: (usize, usize),
}

impl Room {
    /// Room for batches that read `in_bytes` and write `out_bytes`.
    ///
    /// # Errors
    ///
    /// If the device has no such room.
    pub fn new(
        device: &mut dyn Device,
        in_bytes: usize,
        out_bytes: usize,
    ) -> Result<Room, DriverError> {
        Ok(Room {
            stream: device.stream()?,
            input: (device.allocate_host(in_bytes)?, device.allocate(in_bytes)?),
            out: (device.allocate_host(out_bytes)?, device.allocate(out_bytes)?),
            bytes: (in_bytes, out_bytes),
        })
    }

    /// Puts `bytes` into what batches read, wherever their strips will lie.
    ///
    /// # Panics
    ///
    /// If they don't fit.
    pub fn fill(&self, device: &mut dyn Device, at: usize, bytes: &[u8]) {
        device.write(self.input.0, at, bytes);
    }

    /// The stream of all that is asked for here.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Memory that batches are read from: this machine's and the device's.
    pub fn input(&self) -> (HostMemory, DeviceMemory) {
        self.input
    }

    /// Memory that batches are written to.
    pub fn output(&self) -> (HostMemory, DeviceMemory) {
        self.out
    }
}

/// Memory of this machine that kernels reach by themselves, as they do that of I/O pools. It is
/// lent for good: a device that hangs may write to it later.
pub struct Lent {
    memory: ManuallyDrop<BufMut>,
    /// The device's address of it.
    address: u64,
}

impl Lent {
    /// `bytes` of zeros.
    ///
    /// # Errors
    ///
    /// If the device can't reach them.
    pub fn new(device: &mut dyn Device, bytes: usize) -> Result<Lent, DriverError> {
        let mut memory = ManuallyDrop::new(Pool::single(bytes));
        let address = device.register(memory.as_mut_ptr().expose_provenance(), bytes)?;
        Ok(Lent { memory, address })
    }

    /// Puts `bytes` at `at`, before anything is asked for that reads there.
    ///
    /// # Panics
    ///
    /// If they don't lie in it.
    pub fn fill(&mut self, at: usize, bytes: &[u8]) {
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Where these bytes, which are its own, lie in it.
    fn place(&self, bytes: &[u8]) -> Option<usize> {
        let at = bytes.as_ptr().addr().checked_sub(self.memory.as_ptr().addr())?;
        (at + bytes.len() <= self.memory.len()).then_some(at)
    }
}

/// Where one job's strips and answers lie.
#[derive(Debug)]
struct Placed {
    /// Its inputs, in `in` or lent memory.
    inputs: Vec<usize>,
    /// Its outputs, in `out` or lent memory.
    outputs: Vec<usize>,
    /// Its answers, in `out`: that many u32, from there on.
    answers: (usize, usize),
    /// Bytes of each strip.
    len: usize,
}

/// By what strips are told from what goes along with them.
#[derive(Clone, Copy)]
enum Strips<'a> {
    /// All are this one.
    One(&'a [u8]),
    /// They lie there.
    Within(&'a Lent),
}

/// Writes what goes along with strips, and remembers where those strips go that are copied.
struct Laid<'a> {
    device: &'a mut dyn Device,
    input: HostMemory,
    strips: Strips<'a>,
    inputs: Vec<usize>,
}

impl Stage for Laid<'_> {
    fn put_in(&mut self, at: usize, bytes: &[u8]) {
        let is_strip = match self.strips {
            Strips::One(strip) => core::ptr::eq(bytes, strip),
            Strips::Within(lent) => lent.place(bytes).is_some(),
        };
        match is_strip {
            true => self.inputs.push(at),
            false => self.device.write(self.input, at, bytes),
        }
    }

    fn put_out(&mut self, _: usize, _: &[u8]) {}

    fn reached(&self, bytes: &[u8]) -> Option<u64> {
        let Strips::Within(lent) = self.strips else { return None };
        lent.place(bytes).map(|at| lent.address + at as u64)
    }
}

/// Puts a batch together.
struct Laying<'a> {
    device: &'a mut dyn Device,
    room: Room,
    plan: Arc<Plan>,
    packer: Packer,
}

impl<'a> Laying<'a> {
    fn new(device: &'a mut dyn Device, room: Room, operation: &Operation) -> Self {
        let plan = Plan::new(&Arc::new(operation.clone()));
        let side = |memory, bytes| pack::Room { address: device.address(memory), bytes };
        let (input, out) = (side(room.input.1, room.bytes.0), side(room.out.1, room.bytes.1));
        let mut packer = Packer::new(input, out);
        packer.begin(plan.kind);
        Self { device, room, plan, packer }
    }

    /// How many strips a job reads and writes.
    fn counts(&self) -> (usize, usize) {
        let operation = &self.plan.operation;
        (operation.reads().len(), operation.writes().len())
    }

    fn laid<'b>(&'b mut self, strips: Strips<'b>) -> (&'b mut Packer, Laid<'b>) {
        let (input, inputs) = (self.room.input.0, Vec::new());
        (&mut self.packer, Laid { device: &mut *self.device, input, strips, inputs })
    }

    /// A job whose strips lie in the room.
    fn staged(&mut self, len: usize) -> Option<Placed> {
        let strip = vec![0; if plan::takes(&self.plan.operation, len) { len } else { return None }];
        let (plan, (reads, writes)) = (self.plan.clone(), self.counts());
        let (packer, mut laid) = self.laid(Strips::One(&strip));
        let strips = (vec![&strip; reads], vec![&strip; writes]);
        let placed = packer.push(&plan, (&strips.0, &strips.1), &mut laid)?;
        let first = placed.outputs.expect("no strip is reached where it is");
        let outputs = (0..writes).map(|i| first + i * len).collect();
        Some(Placed { inputs: laid.inputs, outputs, answers: placed.answers, len })
    }

    /// A job whose strips, those that it reads first, lie in `lent`; `None` if they would be
    /// copied.
    fn reached(&mut self, strips: &[&[u8]], lent: &Lent) -> Option<Placed> {
        let (plan, len) = (self.plan.clone(), strips[0].len());
        let (inputs, outputs) = strips.split_at(self.counts().0);
        let (packer, mut laid) = self.laid(Strips::Within(lent));
        let placed = packer.push(&plan, (inputs, outputs), &mut laid)?;
        let whole = laid.inputs.is_empty() && (outputs.is_empty() || placed.outputs.is_none());
        let place = |strips: &[&[u8]]| strips.iter().map(|strip| lent.place(strip)).collect();
        let (inputs, outputs): (Option<_>, Option<_>) = (place(inputs), place(outputs));
        let answers = placed.answers;
        Some(Placed { inputs: inputs?, outputs: outputs?, answers, len }).filter(|_| whole)
    }

    /// The batch of these jobs, if there are any.
    fn track(mut self, placed: Vec<Placed>, lent: Option<Rc<Lent>>) -> Option<Track> {
        if placed.is_empty() {
            return None;
        }
        let (packer, mut laid) = self.laid(Strips::One(&[]));
        let batch = packer.finish(&mut laid);
        Some(Track { room: self.room, lent, plan: self.plan, batch, placed, went_up: false })
    }
}

/// See the module.
pub struct Track {
    room: Room,
    /// Where strips lie, if not in the room.
    lent: Option<Rc<Lent>>,
    plan: Arc<Plan>,
    batch: Packed,
    placed: Vec<Placed>,
    went_up: bool,
}

impl Track {
    /// A batch of jobs on strips of these lengths, or of as many as there is room for; `None` if
    /// there is none for the first, or a kernel does not take it.
    pub fn new(
        device: &mut dyn Device,
        room: Room,
        operation: &Operation,
        lens: impl IntoIterator<Item = usize>,
    ) -> Option<Track> {
        let mut laying = Laying::new(device, room, operation);
        let placed = lens.into_iter().map_while(|len| laying.staged(len)).collect();
        laying.track(placed, None)
    }

    /// A batch of as many jobs as there is room for on strips of `len` bytes in `lent`, which
    /// only metadata is copied for; `None` as of [`Track::new`], and if the kernel works on copies.
    pub fn over(
        device: &mut dyn Device,
        room: Room,
        operation: &Operation,
        (len, lent): (usize, &Rc<Lent>),
    ) -> Option<Track> {
        let mut laying = Laying::new(device, room, operation);
        let (reads, writes) = laying.counts();
        let strips: Vec<&[u8]> = if plan::takes(operation, len) {
            lent.memory.chunks_exact(len).collect()
        } else {
            vec![]
        };
        let jobs = strips.chunks_exact(reads + writes);
        let placed = jobs.map_while(|strips| laying.reached(strips, lent)).collect();
        laying.track(placed, Some(lent.clone()))
    }

    /// Its kernel.
    pub fn kind(&self) -> Kind {
        self.batch.kind()
    }

    /// The stream of all that is asked for.
    pub fn stream(&self) -> Stream {
        self.room.stream
    }

    /// How many jobs it has.
    pub fn jobs(&self) -> usize {
        self.placed.len()
    }

    /// Bytes that go up and down each time.
    pub fn copied(&self) -> (usize, usize) {
        let up = if self.batch.kind().adds() { self.batch.out_len } else { 0 };
        (self.batch.in_len + up, self.batch.out_len)
    }

    /// Bytes of strips that the kernel reads, and that it writes.
    pub fn moved(&self) -> (usize, usize) {
        let sum = |strips: &dyn Fn(&Placed) -> usize| -> usize {
            self.placed.iter().map(|placed| strips(placed) * placed.len).sum()
        };
        let written = sum(&|placed| placed.outputs.len());
        let added = if self.batch.kind().adds() { written } else { 0 };
        (sum(&|placed| placed.inputs.len()) + added, written)
    }

    /// Puts an input of a job in its place.
    ///
    /// # Panics
    ///
    /// If there is no such input, or it lies in lent memory.
    pub fn load(&self, device: &mut dyn Device, job: usize, input: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.placed[job].len, "a whole strip");
        assert!(self.lent.is_none(), "strips lie in the room");
        device.write(self.room.input.0, self.placed[job].inputs[input], bytes);
    }

    /// Puts what a job's output holds before in its place.
    ///
    /// # Panics
    ///
    /// If there is no such output, or it lies in lent memory.
    pub fn load_output(&self, device: &mut dyn Device, job: usize, output: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.placed[job].len, "a whole strip");
        assert!(self.lent.is_none(), "strips lie in the room");
        device.write(self.room.out.0, self.placed[job].outputs[output], bytes);
    }

    /// What a job reads, as it lies in this machine's memory.
    pub fn inputs(&self, device: &dyn Device, job: usize) -> Vec<Vec<u8>> {
        self.read(device, self.room.input.0, &self.placed[job].inputs, self.placed[job].len)
    }

    /// What a job's outputs hold once they came down.
    pub fn outputs(&self, device: &dyn Device, job: usize) -> Vec<Vec<u8>> {
        self.read(device, self.room.out.0, &self.placed[job].outputs, self.placed[job].len)
    }

    /// `len` bytes from each of `places` of `memory`, or of lent memory.
    fn read(
        &self,
        device: &dyn Device,
        memory: HostMemory,
        places: &[usize],
        len: usize,
    ) -> Vec<Vec<u8>> {
        let strip = |&at: &usize| {
            if let Some(lent) = &self.lent {
                return lent.memory[at..at + len].to_vec();
            }
            let mut bytes = vec![0; len];
            device.read(memory, at, &mut bytes);
            bytes
        };
        places.iter().map(strip).collect()
    }

    /// What came down of a job's answer; `None` if the device has not done all of it.
    pub fn answer(&self, device: &dyn Device, job: usize) -> Option<Answer> {
        let (at, count) = self.placed[job].answers;
        let mut bytes = vec![0; 4 * count];
        device.read(self.room.out.0, at, &mut bytes);
        self.plan.answer(&bytes, self.placed[job].len)
    }

    /// Asks for the batch to go up. Answers, which kernels add to, start from 0.
    ///
    /// # Errors
    ///
    /// If the device is in trouble, as of all steps.
    pub fn up(&mut self, device: &mut dyn Device) -> Result<(), DriverError> {
        let Room { stream, input, out, .. } = self.room;
        self.went_up = true;
        device.copy_up(stream, input.0, input.1, self.batch.in_len)?;
        match self.batch.kind().adds() {
            true => device.copy_up(stream, out.0, out.1, self.batch.out_len),
            false if self.placed[0].answers.1 > 0 => device.zero(stream, out.1, self.batch.out_len),
            false => Ok(()),
        }
    }

    /// Asks for the kernel.
    ///
    /// # Errors
    ///
    /// As [`Track::up`].
    ///
    /// # Panics
    ///
    /// If the batch was never asked to go up.
    pub fn compute(&mut self, device: &mut dyn Device) -> Result<(), DriverError> {
        assert!(self.went_up, "descriptors on the device");
        // SAFETY: `new` wrote the metadata, strips are written to their places only, and `up`
        // asked the same stream for the copy. A later track over the room goes up itself.
        unsafe { device.launch(self.room.stream, &self.batch) }
    }

    /// Asks for the results.
    ///
    /// # Errors
    ///
    /// As [`Track::up`].
    pub fn down(&mut self, device: &mut dyn Device) -> Result<(), DriverError> {
        let Room { stream, out, .. } = self.room;
        device.copy_down(stream, out.1, out.0, self.batch.out_len)
    }
}

#[cfg(test)]
mod tests {
    use parity::Code;

    use super::*;
    use crate::driver::Driver;
    use crate::fake::FakeDriver;

    fn wait(device: &mut dyn Device, room: Room) {
        device.mark(room.stream()).unwrap();
        while !device.passed(room.stream()).unwrap() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn tracks_do_what_the_parity_crate_does() {
        let code = Code::new(4, 2).unwrap();
        let present = [true, false, true, true, false, true];
        let operations = [
            Operation::generate(code),
            Operation::update(code, &[1, 3], &[4, 5]),
            Operation::recover(code, &present, &[1, 4]).unwrap(),
            Operation::verify(code),
            Operation::checksum(2, 16),
        ];
        let mut device = FakeDriver::new(7, 1 << 20).open(0).unwrap();
        let device = &mut *device;
        let room = Room::new(device, 64 << 10, 32 << 10).unwrap();
        let noise: Vec<u8> = (0..64u32 << 10).map(|i| ((i * i) >> 7) as u8).collect();
        for operation in operations {
            room.fill(device, 0, &noise);
            let mut track = Track::new(device, room, &operation, [16, 4112, 32]).unwrap();
            assert_eq!(track.jobs(), 3, "{operation:?}");
            for output in 0..operation.writes().len() {
                track.load_output(device, 1, output, &noise[output..output + 4112]);
            }
            track.up(device).unwrap();
            track.compute(device).unwrap();
            track.down(device).unwrap();
            wait(device, room);
            let inputs = track.inputs(device, 1);
            let before = |output: usize| noise[output..output + 4112].to_vec();
            let mut outputs: Vec<_> = (0..operation.writes().len()).map(before).collect();
            let answer = operation.compute_in(&inputs, &mut outputs);
            assert_eq!(track.outputs(device, 1), outputs, "{operation:?}");
            assert_eq!(track.answer(device, 1), Some(answer), "{operation:?}");
        }
    }

    #[test]
    fn tracks_over_lent_memory_copy_metadata_only() {
        let mut device = FakeDriver::new(7, 1 << 20).open(0).unwrap();
        let device = &mut *device;
        let room = Room::new(device, 256 << 10, 64 << 10).unwrap();
        let mut lent = Lent::new(device, 128 << 10).unwrap();
        let noise: Vec<u8> = (0..128u64 << 10).map(|i| ((i * i) >> 7) as u8).collect();
        lent.fill(0, &noise);
        let (code, lent) = (Code::new(4, 2).unwrap(), Rc::new(lent));
        let generate = Operation::generate(code);
        for operation in [&generate, &Operation::verify(code), &Operation::checksum(2, 16)] {
            let mut track = Track::over(device, room, operation, (4096, &lent)).unwrap();
            let strips = operation.reads().len() + operation.writes().len();
            assert_eq!(track.jobs(), 32 / strips, "{operation:?}");
            assert!(track.copied().0 < 4096, "{operation:?}");
            let inputs = track.inputs(device, 1);
            track.up(device).unwrap();
            track.compute(device).unwrap();
            track.down(device).unwrap();
            wait(device, room);
            let mut outputs = vec![vec![0; 4096]; operation.writes().len()];
            let answer = operation.compute_in(&inputs, &mut outputs);
            assert_eq!(track.outputs(device, 1), outputs, "{operation:?}");
            assert_eq!(track.answer(device, 1), Some(answer), "{operation:?}");
        }
        let update = Operation::update(code, &[1, 3], &[4, 5]);
        assert!(Track::over(device, room, &update, (4096, &lent)).is_none(), "works on copies");
        assert!(Track::over(device, room, &generate, (24, &lent)).is_none(), "not for a kernel");
    }

    #[test]
    fn a_track_takes_as_many_jobs_as_fit() {
        let mut device = FakeDriver::new(7, 1 << 20).open(0).unwrap();
        let room = Room::new(&mut *device, 64 << 10, 1 << 10).unwrap();
        let operation = Operation::generate(Code::new(2, 1).unwrap());
        let track = Track::new(&mut *device, room, &operation, [512; 9]).unwrap();
        assert_eq!((track.jobs(), track.moved()), (2, (2048, 1024)));
        assert!(Track::new(&mut *device, room, &operation, [24]).is_none(), "not for a kernel");
    }
}

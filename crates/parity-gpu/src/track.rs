//! Tracks: one batch that is laid out once and run any number of times.
//!
//! Purpose: benchmarks and tests of a device by itself. What a track is asked for is a step of a
//! batch's way: up, compute, down; nothing is decided here and nothing given back.
//! Invariants: a batch is computed only after it was asked to go up, so that its descriptors are
//! there. Memory is a [`Room`]'s; tracks over one room follow each other.
#![allow(unsafe_code)]

use std::sync::Arc;

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

/// Where one job's strips and answers lie.
#[derive(Debug)]
struct Placed {
    /// Its inputs, in `in`.
    inputs: Vec<usize>,
    /// Its outputs, in `out`.
    outputs: Vec<usize>,
    /// Its answers, in `out`: that many u32, from there on.
    answers: (usize, usize),
    /// Bytes of each strip.
    len: usize,
}

/// Writes what goes along with strips, and remembers where the strips go. They are told by their
/// address: all are one.
struct Laid<'a> {
    device: &'a mut dyn Device,
    input: HostMemory,
    strip: &'a [u8],
    inputs: Vec<usize>,
}

impl Stage for Laid<'_> {
    fn put_in(&mut self, at: usize, bytes: &[u8]) {
        match core::ptr::eq(bytes, self.strip) {
            true => self.inputs.push(at),
            false => self.device.write(self.input, at, bytes),
        }
    }

    fn put_out(&mut self, _: usize, _: &[u8]) {}

    fn reached(&self, _: &[u8]) -> Option<u64> {
        None
    }
}

/// See the module.
#[derive(Debug)]
pub struct Track {
    room: Room,
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
        let plan = Plan::new(&Arc::new(operation.clone()));
        let (reads, writes) = (operation.reads().len(), operation.writes().len());
        let side = |memory, bytes| pack::Room { address: device.address(memory), bytes };
        let (input, out) = (side(room.input.1, room.bytes.0), side(room.out.1, room.bytes.1));
        let mut packer = Packer::new(input, out);
        packer.begin(plan.kind);
        let mut place = |len| {
            let strip = vec![0; if plan::takes(operation, len) { len } else { return None }];
            let strip = &strip[..];
            let (device, input, inputs) = (&mut *device, room.input.0, Vec::new());
            let mut laid = Laid { device, input, strip, inputs };
            let placed =
                packer.push(&plan, (&vec![strip; reads], &vec![strip; writes]), &mut laid)?;
            let first = placed.outputs.expect("no strip is reached where it is");
            let outputs = (0..writes).map(|i| first + i * len).collect();
            Some(Placed { inputs: laid.inputs, outputs, answers: placed.answers, len })
        };
        let placed: Vec<Placed> = lens.into_iter().map_while(&mut place).collect();
        if placed.is_empty() {
            return None;
        }
        let (input, inputs) = (room.input.0, Vec::new());
        let batch = packer.finish(&mut Laid { device, input, strip: &[], inputs });
        Some(Track { room, plan, batch, placed, went_up: false })
    }

    /// Its kernel.
    pub fn kind(&self) -> Kind {
        self.batch.kind()
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
    /// If there is no such input.
    pub fn load(&self, device: &mut dyn Device, job: usize, input: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.placed[job].len, "a whole strip");
        device.write(self.room.input.0, self.placed[job].inputs[input], bytes);
    }

    /// Puts what a job's output holds before in its place.
    ///
    /// # Panics
    ///
    /// If there is no such output.
    pub fn load_output(&self, device: &mut dyn Device, job: usize, output: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.placed[job].len, "a whole strip");
        device.write(self.room.out.0, self.placed[job].outputs[output], bytes);
    }

    /// What a job reads, as it lies in this machine's memory.
    pub fn inputs(&self, device: &dyn Device, job: usize) -> Vec<Vec<u8>> {
        read(device, self.room.input.0, &self.placed[job].inputs, self.placed[job].len)
    }

    /// What came down of a job's outputs.
    pub fn outputs(&self, device: &dyn Device, job: usize) -> Vec<Vec<u8>> {
        read(device, self.room.out.0, &self.placed[job].outputs, self.placed[job].len)
    }

    /// What came down of a job's answer.
    pub fn answer(&self, device: &dyn Device, job: usize) -> Answer {
        let (at, count) = self.placed[job].answers;
        let mut bytes = vec![0; 4 * count];
        device.read(self.room.out.0, at, &mut bytes);
        self.plan.answer(&bytes)
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

/// `len` bytes from each of `places`.
fn read(device: &dyn Device, memory: HostMemory, places: &[usize], len: usize) -> Vec<Vec<u8>> {
    let strip = |&at: &usize| {
        let mut bytes = vec![0; len];
        device.read(memory, at, &mut bytes);
        bytes
    };
    places.iter().map(strip).collect()
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
            assert_eq!(track.answer(device, 1), answer, "{operation:?}");
        }
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

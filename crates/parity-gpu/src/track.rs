//! Tracks: one batch that is laid out once and run any number of times.
//!
//! Purpose: benchmarks and tests of a device by itself. What a track is asked for is a step of a
//! batch's way: up, compute, down; nothing is decided here and nothing given back.
//! Invariants: a batch is computed only after it was asked to go up, so that its descriptors are
//! there. Memory is a [`Room`]'s, strips may lie in [`Lent`] memory or in [`Pieces`]; tracks over
//! one of these follow each other.
#![allow(unsafe_code)]

use std::cell::{Ref, RefCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::sync::Arc;

use io::{BufMut, Pool};
use parity::offload::{Answer, Operation};

use crate::driver::{Device, DeviceMemory, DriverError, HostMemory, Problem, Stream};
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
    memory: RefCell<ManuallyDrop<BufMut>>,
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
        Ok(Lent { memory: RefCell::new(memory), address })
    }

    /// Puts `bytes` at `at`, while nothing is under way that reads or writes there.
    ///
    /// # Panics
    ///
    /// If they don't lie in it.
    pub fn fill(&self, at: usize, bytes: &[u8]) {
        self.memory.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn bytes(&self) -> Ref<'_, [u8]> {
        Ref::map(self.memory.borrow(), |memory| &memory[..])
    }

    /// Where these bytes, which are its own, lie in it.
    fn place(&self, bytes: &[u8]) -> Option<usize> {
        let own = self.bytes();
        let at = bytes.as_ptr().addr().checked_sub(own.as_ptr().addr())?;
        (at + bytes.len() <= own.len()).then_some(at)
    }
}

/// Much memory of a device, in pieces of one size, that has no counterpart in this machine. Kernels
/// find strips there; none lies across two pieces.
pub struct Pieces {
    memory: Vec<DeviceMemory>,
    /// Their addresses.
    addresses: Vec<u64>,
    each: usize,
}

impl Pieces {
    /// Pieces of `each` bytes: so many that they have `most`, or as many as the device has room
    /// for.
    ///
    /// # Errors
    ///
    /// If it has none for the first two, or is in trouble.
    pub fn new(device: &mut dyn Device, each: usize, most: usize) -> Result<Pieces, DriverError> {
        let mut memory = Vec::new();
        while memory.len() < 2 || memory.len() * each < most {
            match device.allocate(each) {
                Ok(piece) => memory.push(piece),
                Err(full) if full.problem == Problem::Memory && memory.len() >= 2 => break,
                Err(error) => return Err(error),
            }
        }
        let addresses = memory.iter().map(|&piece| device.address(piece)).collect();
        Ok(Pieces { memory, addresses, each })
    }

    /// The pieces.
    pub fn memory(&self) -> &[DeviceMemory] {
        &self.memory
    }

    /// Bytes of each.
    pub fn each(&self) -> usize {
        self.each
    }

    /// How many strips of `len` bytes there are.
    fn strips(&self, len: usize) -> usize {
        self.each / len * self.memory.len()
    }

    /// Where a strip lies: its piece, and the place in it.
    fn place(&self, strip: usize, len: usize) -> (usize, usize) {
        let row = self.each / len;
        (strip / row, strip % row * len)
    }
}

/// A strip of a job, by the piece of [`Pieces`] and its place there.
pub type Place = (usize, usize);

/// Where one job's strips and answers lie.
#[derive(Debug)]
struct Placed {
    /// Its inputs, in `in` or lent memory; in pieces, by number.
    inputs: Vec<usize>,
    /// Its outputs, in `out` or lent memory; in pieces, by number.
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
    /// They lie there, from this number on; here, each has another byte of `names` first.
    Named { names: &'a [u8], len: usize, first: usize, pieces: &'a Pieces },
}

/// Where something lies.
#[derive(Clone)]
enum Home {
    Room,
    Lent(Rc<Lent>),
    Pieces(Rc<Pieces>),
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
            Strips::Named { names, .. } => names.as_ptr_range().contains(&bytes.as_ptr()),
        };
        match is_strip {
            true => self.inputs.push(at),
            false => self.device.write(self.input, at, bytes),
        }
    }

    fn put_out(&mut self, _: usize, _: &[u8]) {}

    fn reached(&self, bytes: &[u8]) -> Option<u64> {
        match self.strips {
            Strips::One(_) => None,
            Strips::Within(lent) => lent.place(bytes).map(|at| lent.address + at as u64),
            Strips::Named { names, len, first, pieces } => {
                let number = bytes.as_ptr().addr().checked_sub(names.as_ptr().addr())?;
                let (piece, at) = pieces.place(first + number, len);
                Some(pieces.addresses.get(piece)? + at as u64)
            }
        }
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
        Self::with(device, room, operation, room.bytes.0)
    }

    /// Of a batch that may read `work` bytes. What is more than the room's is not to be staged.
    fn with(device: &'a mut dyn Device, room: Room, operation: &Operation, work: usize) -> Self {
        let plan = Plan::new(&Arc::new(operation.clone()));
        let side = |memory, bytes| pack::Room { address: device.address(memory), bytes };
        let (input, out) = (side(room.input.1, work), side(room.out.1, room.bytes.1));
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
        let places = strips.iter().map(|strip| lent.place(strip)).collect::<Option<_>>()?;
        self.in_place(strips, Strips::Within(lent), places)
    }

    /// A job on these strips, which lie at these places; `None` if they would be copied.
    fn in_place(
        &mut self,
        strips: &[&[u8]],
        told: Strips<'_>,
        mut places: Vec<usize>,
    ) -> Option<Placed> {
        let (plan, len, (reads, writes)) = (self.plan.clone(), strips[0].len(), self.counts());
        let (packer, mut laid) = self.laid(told);
        let placed = packer.push(&plan, strips.split_at(reads), &mut laid)?;
        let whole = laid.inputs.is_empty() && (writes == 0 || placed.outputs.is_none());
        let outputs = places.split_off(reads);
        Some(Placed { inputs: places, outputs, answers: placed.answers, len }).filter(|_| whole)
    }

    /// Most jobs of which only metadata lies in the room.
    fn most(&self) -> usize {
        let (reads, writes) = self.counts();
        let list = (8 * (reads + writes)).next_multiple_of(pack::ALIGN);
        let factors = self.plan.factors.len().next_multiple_of(pack::ALIGN);
        self.room.bytes.0.saturating_sub(factors) / (list + pack::DESCRIPTOR)
    }

    /// A job on the strips of `pieces` from `first` on; `None` if they would be copied.
    fn named(
        &mut self,
        (names, len): (&[u8], usize),
        first: usize,
        pieces: &Pieces,
    ) -> Option<Placed> {
        let (reads, writes) = self.counts();
        let strips: Vec<&[u8]> = (0..reads + writes).map(|i| &names[i..i + len]).collect();
        let places = (first..first + strips.len()).collect();
        self.in_place(&strips, Strips::Named { names, len, first, pieces }, places)
    }

    /// The batch of these jobs, if there are any.
    fn track(mut self, placed: Vec<Placed>, home: Home) -> Option<Track> {
        if placed.is_empty() {
            return None;
        }
        let (packer, mut laid) = self.laid(Strips::One(&[]));
        let batch = packer.finish(&mut laid);
        Some(Track { room: self.room, home, plan: self.plan, batch, placed, went_up: false })
    }
}

/// See the module.
pub struct Track {
    room: Room,
    /// Where strips lie.
    home: Home,
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
        laying.track(placed, Home::Room)
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
        let bytes = lent.bytes();
        let strips: Vec<&[u8]> =
            if plan::takes(operation, len) { bytes.chunks_exact(len).collect() } else { vec![] };
        let jobs = strips.chunks_exact(reads + writes);
        let placed = jobs.map_while(|strips| laying.reached(strips, lent)).collect();
        laying.track(placed, Home::Lent(lent.clone()))
    }

    /// As [`Track::over`], in `pieces`; the room, which has the metadata, is what bounds it beside
    /// them.
    ///
    /// # Panics
    ///
    /// If the room has none for a job's metadata.
    pub fn within(
        device: &mut dyn Device,
        room: Room,
        operation: &Operation,
        (len, pieces): (usize, &Rc<Pieces>),
    ) -> Option<Track> {
        let mut laying = Laying::with(device, room, operation, usize::MAX);
        let (reads, writes) = laying.counts();
        if !plan::takes(operation, len) || laying.plan.kind.adds() {
            return None;
        }
        let jobs = (pieces.strips(len) / (reads + writes)).min(laying.most());
        let names = vec![0; len + reads + writes];
        let job = |job| laying.named((&names, len), job * (reads + writes), pieces);
        let placed = (0..jobs).map_while(job).collect();
        laying.track(placed, Home::Pieces(pieces.clone()))
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
    /// If there is no such input, or it lies in pieces.
    pub fn load(&self, device: &mut dyn Device, job: usize, input: usize, bytes: &[u8]) {
        self.put(device, self.room.input.0, (self.placed[job].inputs[input], job), bytes);
    }

    /// Puts what a job's output holds before in its place.
    ///
    /// # Panics
    ///
    /// If there is no such output, or it lies in pieces.
    pub fn load_output(&self, device: &mut dyn Device, job: usize, output: usize, bytes: &[u8]) {
        self.put(device, self.room.out.0, (self.placed[job].outputs[output], job), bytes);
    }

    /// Puts a strip of a job at its place in `memory`, or in lent memory.
    fn put(
        &self,
        device: &mut dyn Device,
        memory: HostMemory,
        (at, job): (usize, usize),
        bytes: &[u8],
    ) {
        assert_eq!(bytes.len(), self.placed[job].len, "a whole strip");
        match &self.home {
            Home::Room => device.write(memory, at, bytes),
            Home::Lent(lent) => lent.fill(at, bytes),
            Home::Pieces(_) => panic!("strips that this machine does not have"),
        }
    }

    /// Puts `bytes` where the first answer of a job comes down to, if it has one.
    pub fn load_answer(&self, device: &mut dyn Device, job: usize, bytes: [u8; 4]) {
        let (at, count) = self.placed[job].answers;
        if count > 0 {
            device.write(self.room.out.0, at, &bytes);
        }
    }

    /// Where a job's strips lie, those that it reads and those that it writes, if that is in
    /// pieces, and how many bytes each has.
    pub fn places(&self, job: usize) -> Option<(Vec<Place>, Vec<Place>, usize)> {
        let Home::Pieces(pieces) = &self.home else { return None };
        let Placed { inputs, outputs, len, .. } = &self.placed[job];
        let places = |strips: &[usize]| strips.iter().map(|&s| pieces.place(s, *len)).collect();
        Some((places(inputs), places(outputs), *len))
    }

    /// What a job reads, as it lies in this machine's memory.
    ///
    /// # Panics
    ///
    /// If it lies in pieces, as of [`Track::outputs`].
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
            let mut bytes = vec![0; len];
            match &self.home {
                Home::Room => {}
                Home::Lent(lent) => return lent.bytes()[at..at + len].to_vec(),
                Home::Pieces(_) => panic!("strips that this machine does not have"),
            }
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

    /// As [`Track::up`], and outputs that lie in the room go up as this machine has them.
    ///
    /// # Errors
    ///
    /// As [`Track::up`].
    pub fn up_with_outputs(&mut self, device: &mut dyn Device) -> Result<(), DriverError> {
        let Room { stream, out, .. } = self.room;
        device.copy_up(stream, out.0, out.1, self.batch.out_len)?;
        self.up(device)
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
        let lent = Lent::new(device, 128 << 10).unwrap();
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
    fn tracks_within_pieces_leave_strips_there() {
        let mut device = FakeDriver::new(7, 1 << 20).open(0).unwrap();
        let device = &mut *device;
        let room = Room::new(device, 64 << 10, 16 << 10).unwrap();
        let scratch = Room::new(device, 64 << 10, 64 << 10).unwrap();
        let pieces = Rc::new(Pieces::new(device, 64 << 10, 200 << 10).unwrap());
        assert_eq!(pieces.memory().len(), 4);
        let noise: Vec<u8> = (0..64u64 << 10).map(|i| ((i * i) >> 7) as u8).collect();
        scratch.fill(device, 0, &noise);
        for &piece in pieces.memory() {
            device.copy_up(scratch.stream(), scratch.input().0, piece, 64 << 10).unwrap();
        }
        wait(device, scratch);
        let (code, len) = (Code::new(4, 2).unwrap(), 12 << 10);
        let generate = Operation::generate(code);
        let mut track = Track::within(device, room, &generate, (len, &pieces)).unwrap();
        assert_eq!(track.jobs(), 3, "five strips a piece, six a job");
        track.up(device).unwrap();
        track.compute(device).unwrap();
        wait(device, room);
        // Its second job has strips in two pieces.
        let (inputs, outputs, _) = track.places(1).unwrap();
        assert_eq!((inputs[3], inputs[0], outputs[1]), ((1, 4 * len), (1, len), (2, len)));
        let strip = |&(_, at): &Place| noise[at..at + len].to_vec();
        let inputs: Vec<_> = inputs.iter().map(strip).collect();
        let mut right = vec![vec![0; len]; 2];
        generate.compute_in(&inputs, &mut right);
        for (output, right) in outputs.into_iter().zip(right) {
            let (piece, at) = output;
            let memory = (pieces.memory()[piece], scratch.output().0);
            device.copy_down(scratch.stream(), memory.0, memory.1, 64 << 10).unwrap();
            wait(device, scratch);
            let mut found = vec![0; len];
            device.read(memory.1, at, &mut found);
            assert_eq!(found, right, "{output:?}");
        }
        let update = Operation::update(code, &[1, 3], &[4, 5]);
        assert!(Track::within(device, room, &update, (len, &pieces)).is_none(), "works on copies");
    }

    #[test]
    fn pieces_are_as_many_as_there_is_room_for() {
        let mut device = FakeDriver::new(7, 1 << 20).open(0).unwrap();
        let pieces = Pieces::new(&mut *device, 300 << 10, 64 << 20).unwrap();
        assert_eq!(pieces.memory().len(), 3);
        assert!(Pieces::new(&mut *device, 300 << 10, 64 << 20).is_err());
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

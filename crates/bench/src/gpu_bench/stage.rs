//! The device's side: its memory, and turns of the different kinds.
//!
//! A turn asks for its steps as many times as fill its span, and ends when the device has done
//! them all; how many that are is found out in the first turns and kept.
//!
//! Invariants: nothing is timed before some of its results were found equal to the CPU's; see
//! [`super::tried`] for what is compared after the last turn.

use super::cores::thread_time;
use super::tried::Tried;
use super::works::Work;
use crate::error::BenchError;
use crate::stats::Sample;
use parity_gpu::{Device, Driver, DriverError, Lent, Pieces, Room, Stream, Track};
use std::rc::Rc;
use std::time::{Duration, Instant};
use workload::Random;

/// No turn takes this long.
const PATIENCE: Duration = Duration::from_secs(20);
/// Room for lists, factors and descriptors.
const METADATA: usize = 4 << 20;
/// How long a wait that spares the processor sleeps.
const NAP: Duration = Duration::from_micros(50);

/// How a turn waits for the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// By looking all the time: the answer is seen at once.
    Looking,
    /// By sleeping between looks: the processor is free.
    Sleeping,
}

/// An open device with all the memory that is used.
pub struct Stage {
    pub(super) device: Box<dyn Device>,
    /// What copies over the link use; its memory of this machine has noise, and is where pieces
    /// are filled from and read through. Resident strips that kernels add to lie in it.
    pub(super) large: Room,
    /// What goes with resident strips.
    metadata: Room,
    /// Where resident strips lie.
    pub(super) pieces: Rc<Pieces>,
    /// What streamed strips go through.
    lanes: Vec<Room>,
    /// As many lanes for what goes with strips that kernels reach by themselves, and the memory
    /// of those; else why there is none.
    mapped: Result<Vec<(Room, Rc<Lent>)>, String>,
    bytes: usize,
}

/// A link's direction, or both at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// To the device.
    Up,
    /// From the device.
    Down,
}

/// How many times a turn does its steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times(u64);

impl Default for Times {
    fn default() -> Self {
        Times(1)
    }
}

/// Bytes that look random, over and over.
struct Noise(Vec<u8>);

impl Noise {
    fn new() -> Self {
        let mut noise = vec![0; 1 << 20];
        Random::new(0x6770_7562).fill(&mut noise);
        Self(noise)
    }

    /// Has `put` fill `bytes` of memory.
    fn fill(&self, bytes: usize, mut put: impl FnMut(usize, &[u8])) {
        let Self(noise) = self;
        for at in (0..bytes).step_by(noise.len()) {
            // Strips at one distance must not be equal: their parity would be 0.
            let (front, back) = noise.split_at((at / noise.len() * 4099) % noise.len());
            let (back, left) = (&back[..back.len().min(bytes - at)], bytes - at);
            put(at, back);
            put(at + back.len(), &front[..front.len().min(left - back.len())]);
        }
    }
}

pub(super) fn wait(device: &mut dyn Device, stream: Stream, how: Wait) -> Result<(), BenchError> {
    let start = Instant::now();
    while !device.passed(stream)? {
        if start.elapsed() > PATIENCE {
            return Err(BenchError::GpuHung(PATIENCE.as_secs()));
        }
        match how {
            Wait::Looking => core::hint::spin_loop(),
            Wait::Sleeping => std::thread::sleep(NAP),
        }
    }
    Ok(())
}

/// Marks these streams and waits for them.
pub(super) fn finish(
    device: &mut dyn Device,
    streams: &[Stream],
    how: Wait,
) -> Result<(), BenchError> {
    streams.iter().try_for_each(|&stream| device.mark(stream))?;
    streams.iter().try_for_each(|&stream| wait(device, stream, how))
}

/// Runs `run` as many times as take `span`.
fn turn(
    times: &mut Times,
    span: Duration,
    mut run: impl FnMut(u64) -> Result<(), BenchError>,
) -> Result<Sample, BenchError> {
    loop {
        let (cpu, start) = (thread_time(), Instant::now());
        run(times.0)?;
        let (elapsed, cpu) = (start.elapsed(), thread_time().saturating_sub(cpu));
        if elapsed >= span {
            return Ok(Sample { operations: times.0, elapsed, cpu });
        }
        let short = 1.2 * span.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        times.0 = (times.0 as f64 * short.clamp(2.0, 16.0)) as u64;
    }
}

impl Stage {
    /// Opens device `number`: `resident` bytes of strips in its memory, or as many as it has room
    /// for, copies of `bytes` over the link, and `lanes` ways through it of `lane_bytes` each.
    ///
    /// # Errors
    /// If the device refuses.
    pub fn open(
        driver: &dyn Driver,
        number: usize,
        (bytes, resident): (usize, usize),
        (lanes, lane_bytes): (usize, usize),
    ) -> Result<Stage, BenchError> {
        let mut device = driver.open(number)?;
        let noise = Noise::new();
        let mut room = |bytes: usize| -> Result<Room, BenchError> {
            let room = Room::new(&mut *device, bytes + METADATA, bytes + METADATA)?;
            noise.fill(bytes + METADATA, |at, part| room.fill(&mut *device, at, part));
            Ok(room)
        };
        let large = room(bytes)?;
        let rooms = (0..lanes).map(|_| room(lane_bytes)).collect::<Result<_, _>>()?;
        let mut mapped = || {
            let room = Room::new(&mut *device, lane_bytes + METADATA, METADATA)?;
            let lent = Lent::new(&mut *device, lane_bytes)?;
            noise.fill(lane_bytes, |at, part| lent.fill(at, part));
            Ok((room, Rc::new(lent)))
        };
        let mapped = (0..lanes).map(|_| mapped()).collect::<Result<_, DriverError>>();
        let mapped = mapped.map_err(|error| error.to_string());
        let metadata = Room::new(&mut *device, METADATA, METADATA)?;
        // Last, as they take all that is left where that is too little.
        let pieces = Rc::new(Pieces::new(&mut *device, bytes, resident)?);
        for &piece in pieces.memory() {
            device.copy_up(large.stream(), large.input().0, piece, bytes)?;
        }
        finish(&mut *device, &[large.stream()], Wait::Sleeping)?;
        Ok(Stage { device, large, metadata, pieces, lanes: rooms, mapped, bytes })
    }

    /// The device's name.
    pub fn name(&self) -> String {
        self.device.name().to_owned()
    }

    /// The device's place on the PCI bus.
    pub fn bus(&self) -> Option<String> {
        self.device.bus()
    }

    /// Bytes that a copy over the link takes each time.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of resident strips.
    pub fn resident_bytes(&self) -> usize {
        self.pieces.memory().len() * self.bytes
    }

    /// Bytes that a copy within the device takes each time: half of the resident strips, to the
    /// other half, so that it goes over as much memory as the kernels do.
    pub fn copied_bytes(&self) -> usize {
        self.pieces.memory().len() / 2 * self.bytes
    }

    /// `work` on strips that stay in the device's memory, as many as there is room for.
    ///
    /// # Errors
    /// If the device is in trouble or computes anything wrong.
    pub fn resident(&mut self, work: &Work) -> Result<Tried, BenchError> {
        let (device, operation) = (&mut *self.device, &work.operation);
        let strips = (work.strip, &self.pieces);
        let track = Track::within(device, self.metadata, operation, strips)
            .or_else(|| Track::new(device, self.large, operation, core::iter::repeat(work.strip)));
        self.tried(work, track)
    }

    /// `work` in every lane.
    ///
    /// # Errors
    /// As [`Stage::resident`].
    pub fn streamed(&mut self, work: &Work) -> Result<Vec<Tried>, BenchError> {
        let lanes = self.lanes.clone();
        let lens = || core::iter::repeat(work.strip);
        let lane = |room| {
            let track = Track::new(&mut *self.device, room, &work.operation, lens());
            self.tried(work, track)
        };
        lanes.into_iter().map(lane).collect()
    }

    /// `work` in every lane, on strips that the kernel itself reaches for; else why not.
    ///
    /// # Errors
    /// As [`Stage::resident`].
    pub fn mapped(&mut self, work: &Work) -> Result<Result<Vec<Tried>, String>, BenchError> {
        let lanes = match self.mapped.clone() {
            Ok(lanes) => lanes,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut tracks = Vec::new();
        for (room, lent) in lanes {
            let strips = (work.strip, &lent);
            let track = Track::over(&mut *self.device, room, &work.operation, strips);
            if track.is_none() {
                return Ok(Err("its kernel works on copies".to_owned()));
            }
            tracks.push(self.tried(work, track)?);
        }
        Ok(Ok(tracks))
    }

    /// A single job of `work`, in a lane.
    ///
    /// # Errors
    /// As [`Stage::resident`].
    pub fn single(&mut self, work: &Work) -> Result<Tried, BenchError> {
        let track = Track::new(&mut *self.device, self.lanes[0], &work.operation, [work.strip]);
        self.tried(work, track)
    }

    /// A batch of `work` that was laid out, done once and compared.
    fn tried(&mut self, work: &Work, track: Option<Track>) -> Result<Tried, BenchError> {
        let track = track.ok_or_else(|| BenchError::Usage(format!("no room for {}", work.name)))?;
        let mut tried = Tried::new(work, track);
        self.blank(&mut tried)?;
        tried.pass(&mut *self.device)?;
        self.check(&mut tried)?;
        Ok(tried)
    }

    /// The kernel alone, again and again.
    ///
    /// # Errors
    /// If the device is in trouble, as of all turns.
    pub fn compute(
        &mut self,
        tried: &mut Tried,
        times: &mut Times,
        span: Duration,
    ) -> Result<Sample, BenchError> {
        let (device, stream) = (&mut *self.device, tried.stream());
        turn(times, span, |count| {
            (0..count).try_for_each(|_| tried.compute(device))?;
            finish(device, &[stream], Wait::Looking)
        })
    }

    /// Batches up, through the kernel and down, lane after lane; a lane's next batch begins when
    /// its last is down.
    ///
    /// # Errors
    /// As [`Stage::compute`].
    pub fn stream(
        &mut self,
        tracks: &mut [Tried],
        times: &mut Times,
        span: Duration,
    ) -> Result<Sample, BenchError> {
        let device = &mut *self.device;
        let streams: Vec<Stream> = tracks.iter().map(Tried::stream).collect();
        turn(times, span, |count| {
            for batch in 0..count as usize {
                let lane = batch % tracks.len();
                wait(device, streams[lane], Wait::Looking)?;
                tracks[lane].pass(device)?;
                device.mark(streams[lane])?;
            }
            streams.iter().try_for_each(|&stream| wait(device, stream, Wait::Looking))
        })
    }

    /// One batch after the other, each waited for.
    ///
    /// # Errors
    /// As [`Stage::compute`].
    pub fn one_by_one(
        &mut self,
        tried: &mut Tried,
        how: Wait,
        times: &mut Times,
        span: Duration,
    ) -> Result<Sample, BenchError> {
        let (device, stream) = (&mut *self.device, self.lanes[0].stream());
        turn(times, span, |count| {
            for _ in 0..count {
                tried.pass(device)?;
                finish(device, &[stream], how)?;
            }
            Ok(())
        })
    }

    /// Copies within the device.
    ///
    /// # Errors
    /// As [`Stage::compute`].
    pub fn copy(&mut self, times: &mut Times, span: Duration) -> Result<Sample, BenchError> {
        let (device, stream, bytes) = (&mut *self.device, self.large.stream(), self.bytes);
        let pieces = self.pieces.memory();
        let half = pieces.len() / 2;
        turn(times, span, |count| {
            for _ in 0..count {
                for (&from, &to) in pieces[..half].iter().zip(&pieces[half..]) {
                    device.copy_within(stream, from, to, bytes)?;
                }
            }
            finish(device, &[stream], Wait::Looking)
        })
    }

    /// Copies over the link: each of `ways` once at a time, side by side.
    ///
    /// # Errors
    /// As [`Stage::compute`].
    pub fn link(
        &mut self,
        ways: &[Way],
        times: &mut Times,
        span: Duration,
    ) -> Result<Sample, BenchError> {
        let (device, room, bytes) = (&mut *self.device, self.large, self.bytes);
        let of = |way| if way == Way::Up { room.stream() } else { self.lanes[0].stream() };
        let streams: Vec<Stream> = ways.iter().map(|&way| of(way)).collect();
        turn(times, span, |count| {
            for _ in 0..count {
                for (&way, &stream) in ways.iter().zip(&streams) {
                    let (input, output) = (room.input(), room.output());
                    match way {
                        Way::Up => device.copy_up(stream, input.0, input.1, bytes)?,
                        Way::Down => device.copy_down(stream, output.1, output.0, bytes)?,
                    }
                }
            }
            finish(device, &streams, Wait::Looking)
        })
    }
}

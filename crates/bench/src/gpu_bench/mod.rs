//! `palisade bench parity --gpu`: what the kernels reach of what a GPU and its link can give.
//!
//! A round gives each side one turn, the order turning round: *resident* (strips in the device's
//! memory, the kernel again and again), *streamed* (from pinned memory of this machine and back,
//! several lanes), *mapped* (the kernels themselves read and write registered memory of this
//! machine, as they do for arrays; several lanes), one core, all cores, copies within the device,
//! copies up and copies down. Resident strips, and copies within the device, go over the same
//! memory, far more than caches hold. Time is wall-clock time. A result is the median of the
//! rounds.
//!
//! Results, for a work `NAME` such as `pq`: `resident-NAME` is the share of the bound by copies
//! within the device: bytes that the kernel reads and writes per second, over bytes that a copy
//! reads and writes per second. `streamed-NAME` is the share of the link's bound: the time that
//! the batch's bytes up or down, whichever take longer, need by themselves, over the time it
//! took; `mapped-NAME` is the same share for strips that nothing copies. `…-gbps` are rates in 10^9
//! bytes of data per second, `resident-NAME-moved-gbps` in bytes read and written;
//! `link-both-gbps` is each direction's rate while both are in use.
//!
//! `break-even-time` and `break-even-cpu` are the bytes of data in one P+Q job of 8+2 from which
//! on the device's wall-clock time, and the processor's time spent for it, is less than one core's
//! for the same job. The job goes up from pinned memory and its results come down to it.
//!
//! Invariants: nothing is timed before some of its results were found equal to the CPU's, and
//! nothing counts before that is so of the last turn's; what could not be measured is left open
//! with a reason.

pub mod cores;
mod even;
mod stage;
#[cfg(test)]
mod tests;
mod tried;
pub mod works;

use crate::error::BenchError;
use crate::report::{Goal, Report};
use crate::stats::{Sample, Spread};
use cores::Cores;
use parity_gpu::cuda::CudaDriver;
use parity_gpu::power::Meter;
use parity_gpu::{Driver, DriverError, Problem, Track};
use stage::{Stage, Times, Way};
use std::time::{Duration, Instant};
use tried::Tried;
use works::{Work, works};

/// What is measured, and how long.
#[derive(Clone, Debug)]
pub struct GpuBench {
    /// The device's number.
    pub device: usize,
    /// Rounds of each work, at least 1.
    pub rounds: usize,
    /// Time of each side in a round.
    pub span: Duration,
    /// Bytes of copies over the link.
    pub device_bytes: usize,
    /// Bytes of resident strips, if the device has room for them; copies within it take half.
    pub resident_bytes: usize,
    /// Bytes of strips in a lane.
    pub lane_bytes: usize,
    /// Lanes.
    pub lanes: usize,
    /// Bytes of inputs for each core.
    pub core_bytes: usize,
    /// How long the device's watts are watched under each load.
    pub power_span: Duration,
    /// No work is begun later than this.
    pub budget: Duration,
}

impl Default for GpuBench {
    fn default() -> Self {
        Self {
            device: 0,
            rounds: 9,
            span: Duration::from_millis(20),
            device_bytes: 256 << 20,
            resident_bytes: 2 << 30,
            lane_bytes: 32 << 20,
            lanes: 4,
            core_bytes: 32 << 20,
            power_span: Duration::from_secs(2),
            budget: Duration::from_secs(180),
        }
    }
}

/// Why no GPU can be measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoGpu {
    /// There is none, or no driver.
    Absent(String),
    /// There is a driver, and it or its device fails.
    Broken(String),
}

impl NoGpu {
    /// A program's status: 3 says that there is nothing to do here, 1 that something is wrong.
    pub fn status(&self) -> u8 {
        match self {
            NoGpu::Absent(_) => 3,
            NoGpu::Broken(_) => 1,
        }
    }
}

impl core::fmt::Display for NoGpu {
    /// One line that says what is missing or fails, and what to do.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NoGpu::Absent(what) => {
                let todo = "install NVIDIA's driver (384 or later); nvidia-smi must list the GPU";
                write!(f, "no NVIDIA GPU: {what}; {todo}")
            }
            NoGpu::Broken(what) => {
                let todo = "nvidia-smi must list the GPU without errors; after an update of the \
                            driver restart the machine";
                write!(f, "NVIDIA's driver fails: {what}; {todo}")
            }
        }
    }
}

impl From<DriverError> for NoGpu {
    fn from(error: DriverError) -> NoGpu {
        match error.problem {
            Problem::Missing(_) | Problem::NoDevice => NoGpu::Absent(error.to_string()),
            _ => NoGpu::Broken(error.to_string()),
        }
    }
}

/// NVIDIA's driver, with a device to measure.
///
/// # Errors
/// What is missing, or fails.
pub fn nvidia() -> Result<CudaDriver, NoGpu> {
    let driver = CudaDriver::load()?;
    has_devices(driver.devices()).map(|()| driver)
}

fn has_devices(devices: Result<Vec<String>, DriverError>) -> Result<(), NoGpu> {
    match devices?.is_empty() {
        true => Err(NoGpu::Absent("none is there".to_owned())),
        false => Ok(()),
    }
}

/// What the sides did, a sample per round each.
#[derive(Default)]
struct Samples {
    resident: Vec<Sample>,
    streamed: Vec<Sample>,
    mapped: Vec<Sample>,
    one: Vec<Sample>,
    all: Vec<Sample>,
    copy: Vec<Sample>,
    up: Vec<Sample>,
    down: Vec<Sample>,
}

impl Samples {
    /// The shares of the link's bound that `own` reached, whose batches send so many bytes up and
    /// down; copies took `bytes` each time.
    fn of_link(&self, own: &[Sample], (up, down): (f64, f64), bytes: f64) -> Option<Spread> {
        let copies = self.up.iter().zip(&self.down);
        let least = |(alone_up, alone_down): (&Sample, &Sample)| {
            let seconds = |sent: f64, alone: &Sample| sent / 1e9 / gbps(alone, bytes);
            seconds(up, alone_up).max(seconds(down, alone_down))
        };
        Spread::of(own.iter().zip(copies).map(|(own, copies)| own.rate() * least(copies)))
    }
}

/// How many times each side of the device does its steps.
#[derive(Default)]
struct Counts {
    resident: Times,
    streamed: Times,
    mapped: Times,
    copy: Times,
    up: Times,
    down: Times,
}

/// The run's sides and options.
struct Run<'a> {
    options: &'a GpuBench,
    stage: Stage,
    cores: Cores,
    meter: Result<Meter, String>,
    start: Instant,
    progress: &'a dyn Fn(&str),
}

/// A work's batches.
struct Batches {
    resident: Tried,
    streamed: Vec<Tried>,
    /// Or why there are none.
    mapped: Result<Vec<Tried>, String>,
}

/// Carries the benchmark out on a device of `driver`.
///
/// # Errors
/// When it can't be carried out, or the device computes anything wrong: then nothing of it counts.
pub fn bench_parity_gpu(
    options: &GpuBench,
    driver: &dyn Driver,
    (version, command): (&str, &str),
    progress: &dyn Fn(&str),
) -> Result<Report, BenchError> {
    let start = Instant::now();
    if options.rounds == 0 || options.span.is_zero() || options.lanes == 0 {
        let problem = "at least one round of some time, and a lane, are needed";
        return Err(BenchError::Usage(problem.to_owned()));
    }
    let mut report = Report::new(version, command);
    let kernel = ::parity::select_kernel().map_err(|e| BenchError::Usage(e.to_string()))?;
    let lanes = (options.lanes, options.lane_bytes);
    let bytes = (options.device_bytes, options.resident_bytes);
    progress("opening the GPU");
    let stage = Stage::open(driver, options.device, bytes, lanes)?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let name = stage.name();
    report.notes = vec![
        format!("GPU {}: {name}", options.device),
        format!("CPU: kernel {kernel}, {cores} cores at once"),
        format!(
            "resident: {} of strips; streamed: {} lanes of {}; {} rounds of {} ms a side",
            units::format_size(stage.resident_bytes() as u64),
            options.lanes,
            units::format_size(options.lane_bytes as u64),
            options.rounds,
            options.span.as_secs_f64() * 1e3,
        ),
    ];
    report.notes.iter().for_each(|note| progress(note));
    let meter = Meter::open(stage.bus().as_deref());
    let cores = Cores::new(cores, options.core_bytes);
    let mut run = Run { options, stage, cores, meter, start, progress };
    progress("copies");
    run.limits(&mut report)?;
    for work in works() {
        if run.is_late() {
            for of in ["resident", "streamed"] {
                report.leave_open(&format!("{of}-{}", work.name), "no time was left");
            }
            continue;
        }
        progress(work.name);
        run.measure(&work, &mut report)?;
    }
    progress("break-even");
    run.break_even(&mut report)?;
    progress("power");
    run.power(&mut report)?;
    Ok(report)
}

/// What `sample` did per second in 10^9 bytes, with `bytes` each time.
fn gbps(sample: &Sample, bytes: f64) -> f64 {
    sample.rate() * bytes / 1e9
}

fn rates(samples: &[Sample], bytes: f64) -> Option<Spread> {
    Spread::of(samples.iter().map(|sample| gbps(sample, bytes)))
}

impl Run<'_> {
    fn is_late(&self) -> bool {
        self.start.elapsed() > self.options.budget
    }

    /// What the device and its link give, whatever is done with them.
    fn limits(&mut self, report: &mut Report) -> Result<(), BenchError> {
        let (span, bytes) = (self.options.span, self.stage.bytes() as f64);
        let within = self.stage.copied_bytes() as f64;
        let mut counts = [Times::default(); 4];
        let mut samples: [Vec<Sample>; 4] = Default::default();
        for _ in 0..self.options.rounds {
            let [copy, up, down, both] = &mut counts;
            let ways = [Way::Up, Way::Down];
            samples[0].push(self.stage.copy(copy, span)?);
            samples[1].push(self.stage.link(&ways[..1], up, span)?);
            samples[2].push(self.stage.link(&ways[1..], down, span)?);
            samples[3].push(self.stage.link(&ways, both, span)?);
        }
        // A copy reads each byte and writes it.
        let names = ["device-copy-gbps", "link-up-gbps", "link-down-gbps", "link-both-gbps"];
        let bytes = [2.0 * within, bytes, bytes, bytes];
        for ((name, samples), bytes) in names.into_iter().zip(&samples).zip(bytes) {
            report.add(name, "GB/s", rates(samples, bytes), None);
        }
        Ok(())
    }

    /// Turns of all sides. What the last one of each side of the device did is compared.
    fn rounds(&mut self, work: &Work) -> Result<(Samples, Shape), BenchError> {
        let (rounds, span) = (self.options.rounds, self.options.span);
        let resident = self.stage.resident(work)?;
        let streamed = self.stage.streamed(work)?;
        let mapped = self.stage.mapped(work)?;
        let mut batches = Batches { resident, streamed, mapped };
        let shape = batches.shape(work);
        (self.progress)(&format!("{}: turns", work.name));
        let (mut samples, mut counts) = (Samples::default(), Counts::default());
        for round in 0..rounds {
            let is_last = round + 1 == rounds;
            for side in 0..6 {
                // Copies write over resident strips: what is compared is compared at once.
                match if round % 2 == 0 { side } else { 5 - side } {
                    side @ 0..3 => {
                        if is_last {
                            self.blank(&mut batches, side)?;
                        }
                        self.turn(&mut batches, side, (&mut samples, &mut counts))?;
                        if is_last {
                            self.check(&mut batches, side)?;
                        }
                    }
                    3 => samples.one.push(self.cores.one(work, span)),
                    4 => samples.all.push(self.cores.all(work, span)),
                    _ => {
                        let Counts { copy, up, down, .. } = &mut counts;
                        samples.copy.push(self.stage.copy(copy, span)?);
                        samples.up.push(self.stage.link(&[Way::Up], up, span)?);
                        samples.down.push(self.stage.link(&[Way::Down], down, span)?);
                    }
                }
            }
        }
        Ok((samples, shape))
    }

    /// The turn of a side of the device: resident, streamed, mapped.
    fn turn(
        &mut self,
        batches: &mut Batches,
        side: usize,
        (samples, counts): (&mut Samples, &mut Counts),
    ) -> Result<(), BenchError> {
        let (stage, span) = (&mut self.stage, self.options.span);
        let Batches { resident, streamed, mapped } = batches;
        match (side, mapped) {
            (0, _) => {
                samples.resident.push(stage.compute(resident, &mut counts.resident, span)?);
            }
            (1, _) => {
                samples.streamed.push(stage.stream(streamed, &mut counts.streamed, span)?);
            }
            (_, Ok(tracks)) => {
                samples.mapped.push(stage.stream(tracks, &mut counts.mapped, span)?);
            }
            (_, Err(_)) => {}
        }
        Ok(())
    }

    fn blank(&mut self, batches: &mut Batches, side: usize) -> Result<(), BenchError> {
        batches.of(side).iter_mut().try_for_each(|tried| self.stage.blank(tried))
    }

    fn check(&mut self, batches: &mut Batches, side: usize) -> Result<(), BenchError> {
        batches.of(side).iter_mut().try_for_each(|tried| self.stage.check(tried))
    }

    /// Measures one work.
    fn measure(&mut self, work: &Work, report: &mut Report) -> Result<(), BenchError> {
        let (samples, shape) = self.rounds(work)?;
        let (name, bytes) = (work.name, self.stage.bytes() as f64);
        let goal = |least| (name == "pq").then_some(Goal::AtLeast(least));
        let Batch { data, moved: (read, written), .. } = shape.resident;
        let bound = samples.resident.iter().zip(&samples.copy);
        let within = 2.0 * self.stage.copied_bytes() as f64;
        let share = |(own, copy)| gbps(own, read + written) / gbps(copy, within);
        report.add(&format!("resident-{name}"), "ratio", Spread::of(bound.map(share)), goal(0.80));
        let resident = rates(&samples.resident, data);
        report.add(&format!("resident-{name}-gbps"), "GB/s", resident, None);
        let moved = rates(&samples.resident, read + written);
        report.add(&format!("resident-{name}-moved-gbps"), "GB/s", moved, None);
        let Batch { data, copied, .. } = shape.streamed;
        let share = samples.of_link(&samples.streamed, copied, bytes);
        report.add(&format!("streamed-{name}"), "ratio", share, goal(0.90));
        let streamed = rates(&samples.streamed, data);
        report.add(&format!("streamed-{name}-gbps"), "GB/s", streamed, None);
        match shape.mapped {
            Ok(Batch { data, moved, copied }) => {
                let sent = (moved.0 + copied.0, moved.1 + copied.1);
                let share = samples.of_link(&samples.mapped, sent, bytes);
                report.add(&format!("mapped-{name}"), "ratio", share, None);
                let mapped = rates(&samples.mapped, data);
                report.add(&format!("mapped-{name}-gbps"), "GB/s", mapped, None);
            }
            Err(reason) => report.leave_open(&format!("mapped-{name}"), &reason),
        }
        let job = work.data() as f64;
        report.add(&format!("one-core-{name}-gbps"), "GB/s", rates(&samples.one, job), None);
        report.add(&format!("all-cores-{name}-gbps"), "GB/s", rates(&samples.all, job), None);
        Ok(())
    }

    /// From which job size on a device is worth it.
    fn break_even(&mut self, report: &mut Report) -> Result<(), BenchError> {
        if self.is_late() {
            for name in ["break-even-time", "break-even-cpu"] {
                report.leave_open(name, "no time was left");
            }
            return Ok(());
        }
        let even = even::measure(&mut self.stage, &mut self.cores, self.options)?;
        for (name, found) in [("break-even-time", even.time), ("break-even-cpu", even.cpu)] {
            match found {
                Ok(spread) => report.add(name, "bytes", Some(spread), None),
                Err(reason) => report.leave_open(name, &reason),
            }
        }
        Ok(())
    }

    /// What the device draws when it does nothing, and under both loads of P+Q.
    fn power(&mut self, report: &mut Report) -> Result<(), BenchError> {
        let names = ["idle-watts", "resident-pq-watts", "streamed-pq-watts"];
        let meter = match &self.meter {
            Ok(meter) => meter,
            Err(reason) => {
                names.iter().for_each(|name| report.leave_open(name, reason));
                return Ok(());
            }
        };
        let work = works::pq(works()[0].strip);
        let mut resident = self.stage.resident(&work)?;
        let mut streamed = self.stage.streamed(&work)?;
        let (mut counts, step) = ([Times::default(); 2], Duration::from_millis(50));
        for (load, name) in names.into_iter().enumerate() {
            let (start, mut watts) = (Instant::now(), Vec::new());
            while start.elapsed() < self.options.power_span {
                match load {
                    0 => std::thread::sleep(step),
                    1 => drop(self.stage.compute(&mut resident, &mut counts[0], step)?),
                    _ => drop(self.stage.stream(&mut streamed, &mut counts[1], step)?),
                }
                watts.push(meter.watts());
            }
            // What is told may be the mean of the last second: the first half is another load's.
            let half = watts.split_off(watts.len() / 2).into_iter().collect::<Result<Vec<_>, _>>();
            match half {
                Ok(watts) => report.add(name, "W", Spread::of(watts), None),
                Err(reason) => report.leave_open(name, &reason),
            }
        }
        Ok(())
    }
}

impl Batches {
    /// Those of a side: resident, streamed, mapped.
    fn of(&mut self, side: usize) -> &mut [Tried] {
        match (side, &mut self.mapped) {
            (0, _) => core::slice::from_mut(&mut self.resident),
            (1, _) => &mut self.streamed,
            (_, Ok(mapped)) => mapped,
            (_, Err(_)) => &mut [],
        }
    }

    fn shape(&self, work: &Work) -> Shape {
        let of = |tried: &Tried| Batch::of(work, tried.track());
        let mapped = self.mapped.as_ref().map(|tracks| of(&tracks[0])).map_err(Clone::clone);
        Shape { resident: of(&self.resident), streamed: of(&self.streamed[0]), mapped }
    }
}

/// Bytes of one batch.
#[derive(Clone, Copy)]
struct Batch {
    /// Of data.
    data: f64,
    /// That its kernel reads, and writes.
    moved: (f64, f64),
    /// That are copied up, and down.
    copied: (f64, f64),
}

impl Batch {
    fn of(work: &Work, track: &Track) -> Batch {
        let pair = |(one, other): (usize, usize)| (one as f64, other as f64);
        let data = (track.jobs() as u64 * work.data()) as f64;
        Batch { data, moved: pair(track.moved()), copied: pair(track.copied()) }
    }
}

/// The batches of each side.
struct Shape {
    resident: Batch,
    streamed: Batch,
    /// Or why there is none.
    mapped: Result<Batch, String>,
}

/// The report as a table, with its notes.
pub fn gpu_table(report: &Report) -> String {
    let notes: String = report.notes.iter().map(|note| format!("{note}\n")).collect();
    format!("{notes}{}", report.to_table())
}

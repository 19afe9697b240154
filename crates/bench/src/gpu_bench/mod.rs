//! `palisade bench parity --gpu`: what the kernels reach of what a GPU and its link can give.
//!
//! A round gives each side one turn, the order turning round: *resident* (strips in the device's
//! memory, the kernel again and again), *streamed* (from pinned memory of this machine and back,
//! several lanes), *mapped* (the kernels themselves read and write registered memory of this
//! machine, as they do for arrays; several lanes), one core, all cores, copies within the device, copies up and copies down.
//! Time is wall-clock time. A result is the median of the rounds.
//!
//! Results, for a work `NAME` such as `pq`: `resident-NAME` is the share of the bound by copies
//! within the device: bytes that the kernel reads and writes per second, over bytes that a copy
//! reads and writes per second. `streamed-NAME` is the share of the link's bound: the time that
//! the batch's bytes up or down, whichever take longer, need by themselves, over the time it
//! took; `mapped-NAME` is the same share for strips that nothing copies. `…-gbps` are rates in 10^9 bytes of data per second, `resident-NAME-moved-gbps` in bytes
//! read and written; `link-both-gbps` is each direction's rate while both are in use.
//!
//! `break-even-time` and `break-even-cpu` are the bytes of data in one P+Q job of 8+2 from which
//! on the device's wall-clock time, and the processor's time spent for it, is less than one core's
//! for the same job. The job goes up from pinned memory and its results come down to it.
//!
//! Invariant: nothing is timed before some of its results were found equal to the CPU's; what
//! could not be measured is left open with a reason.

pub mod cores;
mod even;
mod stage;
#[cfg(test)]
mod tests;
pub mod works;

use crate::error::BenchError;
use crate::report::{Goal, Report};
use crate::stats::{Sample, Spread};
use cores::Cores;
use parity_gpu::cuda::CudaDriver;
use parity_gpu::power::Meter;
use parity_gpu::{Driver, Track};
use stage::{Stage, Times, Way};
use std::time::{Duration, Instant};
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
    /// Bytes of resident strips, and of copies.
    pub device_bytes: usize,
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
            lane_bytes: 32 << 20,
            lanes: 4,
            core_bytes: 32 << 20,
            power_span: Duration::from_secs(2),
            budget: Duration::from_secs(180),
        }
    }
}

/// NVIDIA's driver, with a device to measure.
///
/// # Errors
/// One line that says what is missing and what to do.
pub fn nvidia() -> Result<CudaDriver, String> {
    let what = "install NVIDIA's driver (410 or later); nvidia-smi must list the GPU";
    let driver = CudaDriver::load().map_err(|error| format!("no NVIDIA GPU: {error}; {what}"))?;
    match driver.devices() {
        Ok(devices) if devices.is_empty() => Err(format!("no NVIDIA GPU: none is there; {what}")),
        Ok(_) => Ok(driver),
        Err(error) => Err(format!("no NVIDIA GPU: {error}; {what}")),
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
    let stage = Stage::open(driver, options.device, options.device_bytes, lanes)?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let name = stage.name();
    report.notes = vec![
        format!("GPU {}: {name}", options.device),
        format!("CPU: kernel {kernel}, {cores} cores at once"),
        format!(
            "resident: {} of strips; streamed: {} lanes of {}; {} rounds of {} ms a side",
            units::format_size(options.device_bytes as u64),
            options.lanes,
            units::format_size(options.lane_bytes as u64),
            options.rounds,
            options.span.as_secs_f64() * 1e3,
        ),
    ];
    report.notes.iter().for_each(|note| progress(note));
    let meter = Meter::open(options.device, &name);
    let cores = Cores::new(cores, options.core_bytes);
    let mut run = Run { options, stage, cores, meter, start };
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
        for ((name, samples), times) in names.into_iter().zip(&samples).zip([2.0, 1.0, 1.0, 1.0]) {
            report.add(name, "GB/s", rates(samples, times * bytes), None);
        }
        Ok(())
    }

    /// Turns of all sides.
    fn rounds(&mut self, work: &Work) -> Result<(Samples, Shape), BenchError> {
        let (rounds, span) = (self.options.rounds, self.options.span);
        let mut resident = self.stage.resident(work)?;
        let mut streamed = self.stage.streamed(work)?;
        let mut mapped = self.stage.mapped(work)?;
        let shape = Shape {
            resident: Batch::of(work, &resident),
            streamed: Batch::of(work, &streamed[0]),
            mapped: mapped.as_ref().map(|tracks| Batch::of(work, &tracks[0])).map_err(Clone::clone),
        };
        let (mut samples, mut counts) = (Samples::default(), Counts::default());
        let Counts { resident: r, streamed: s, mapped: m, copy, up, down } = &mut counts;
        for round in 0..rounds {
            for side in 0..6 {
                // Copies write over results, never over what a batch reads.
                match if round % 2 == 0 { side } else { 5 - side } {
                    0 => samples.resident.push(self.stage.compute(&mut resident, r, span)?),
                    1 => samples.streamed.push(self.stage.stream(&mut streamed, s, span)?),
                    2 => {
                        if let Ok(tracks) = &mut mapped {
                            samples.mapped.push(self.stage.stream(tracks, m, span)?);
                        }
                    }
                    3 => samples.one.push(self.cores.one(work, span)),
                    4 => samples.all.push(self.cores.all(work, span)),
                    _ => {
                        samples.copy.push(self.stage.copy(copy, span)?);
                        samples.up.push(self.stage.link(&[Way::Up], up, span)?);
                        samples.down.push(self.stage.link(&[Way::Down], down, span)?);
                    }
                }
            }
        }
        Ok((samples, shape))
    }

    /// Measures one work.
    fn measure(&mut self, work: &Work, report: &mut Report) -> Result<(), BenchError> {
        let (samples, shape) = self.rounds(work)?;
        let (name, bytes) = (work.name, self.stage.bytes() as f64);
        let goal = |least| (name == "pq").then_some(Goal::AtLeast(least));
        let Batch { data, moved: (read, written), .. } = shape.resident;
        let bound = samples.resident.iter().zip(&samples.copy);
        let share = |(own, copy)| gbps(own, read + written) / gbps(copy, 2.0 * bytes);
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

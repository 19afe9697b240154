//! Placement: whether a job is worth a device, from what was measured.
//!
//! Purpose: decide for each job, at the cost of a few loads, and notice when a decision has become
//! wrong. Times are passed in: nothing here knows a clock.
//! Invariants: a job below [`FLOOR`] or [`STRIP_FLOOR`] never goes to the device on its own; one
//! that somebody waits for alone goes only if it is back no later; without measurements none goes.
//!
//! A job goes to the device if that costs its core less than computing it does, and if it is back
//! within [`Limits::latency`](crate::Limits) or four times what it takes here. One job of
//! [`AGAIN`], lone ones left aside, goes the other way, so that both sides keep being measured.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use parity::offload::{Operation, What};

/// Where jobs are done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Placement {
    /// All on the CPU.
    Cpu,
    /// On the device, whatever fits, while there is one.
    Gpu,
    /// Where it costs less, job by job.
    #[default]
    Auto,
}

/// A word that names no placement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotPlacement;

impl core::fmt::Display for NotPlacement {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("cpu, gpu or auto expected")
    }
}

impl std::error::Error for NotPlacement {}

impl core::str::FromStr for Placement {
    type Err = NotPlacement;

    fn from_str(word: &str) -> Result<Placement, NotPlacement> {
        let all = [Placement::Cpu, Placement::Gpu, Placement::Auto];
        all.into_iter().find(|placement| placement.to_string() == word).ok_or(NotPlacement)
    }
}

impl core::fmt::Display for Placement {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Placement::Cpu => "cpu",
            Placement::Gpu => "gpu",
            Placement::Auto => "auto",
        })
    }
}

/// Bytes that a job must read to be given to the device.
pub(crate) const FLOOR: usize = 64 << 10;
/// Bytes that its strips must have: however wide a stripe is, a small request is one.
pub(crate) const STRIP_FLOOR: usize = 16 << 10;
/// One job of so many goes the other way.
const AGAIN: u64 = 256;
/// How many times its time on the CPU a job may take, if others go on meanwhile.
const SLOWER: u64 = 4;
/// Kinds of operations, and classes of sizes.
const KINDS: usize = 5;
const CLASSES: usize = 33;
/// What a new value counts in a running mean, as a shift.
const SHARE: u32 = 3;
/// What a batch still counts once another one has ended.
const FADES: f64 = 15.0 / 16.0;
/// How many times the mean what giving a job away took counts at most.
const OUTLIER: u64 = 4;
/// What giving a job away is taken to cost a core before that is measured: 2 µs.
const CORE_NS: u64 = 2000;

/// Where a job goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    pub(crate) device: bool,
    /// Whether it goes there to be measured.
    pub(crate) again: bool,
}

/// See the module. Values race without harm.
pub(crate) struct Place {
    latency_ns: u64,
    /// CPU: picoseconds a byte, by kind and size; 0: not measured.
    cpu: [[AtomicU64; CLASSES]; KINDS],
    /// The same before anything of a class was measured.
    cpu_at_start: AtomicU64,
    /// What giving a job away costs its core, in nanoseconds.
    core: AtomicU64,
    /// A batch on the device: nanoseconds, and picoseconds a byte; `u64::MAX`: not measured.
    fixed: AtomicU64,
    rate: AtomicU64,
    fit: Mutex<Fit>,
    /// Bytes that the device has to read yet.
    backlog: AtomicU64,
    count: AtomicU64,
}

/// Bytes that an operation reads of strips of `len` bytes.
pub(crate) fn work(operation: &Operation, len: usize) -> usize {
    operation.reads().len() * len
}

fn kind(operation: &Operation) -> usize {
    match operation.what() {
        What::Generate(_) => 0,
        What::Update(_) => 1,
        What::Recover(_) => 2,
        What::Verify(_) => 3,
        What::Checksum(_) => 4,
    }
}

/// Nanoseconds.
fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Carries a value over into a running mean.
fn mean(of: &AtomicU64, value: u64) {
    let old = of.load(Relaxed);
    let new = if old == 0 { value } else { old - (old >> SHARE) + (value >> SHARE) };
    of.store(new.max(1), Relaxed);
}

impl Place {
    pub(crate) fn new(latency: Duration) -> Place {
        Place {
            latency_ns: ns(latency),
            cpu: core::array::from_fn(|_| core::array::from_fn(|_| AtomicU64::new(0))),
            cpu_at_start: AtomicU64::new(0),
            core: AtomicU64::new(CORE_NS),
            fixed: AtomicU64::new(u64::MAX),
            rate: AtomicU64::new(0),
            fit: Mutex::default(),
            backlog: AtomicU64::new(0),
            count: AtomicU64::new(0),
        }
    }

    /// Where a job on strips of `len` bytes goes; `lone`: somebody waits for just this one.
    pub(crate) fn choose(&self, operation: &Operation, len: usize, lone: bool) -> Choice {
        let bytes = work(operation, len);
        if len < STRIP_FLOOR || bytes < FLOOR || self.fixed.load(Relaxed) == u64::MAX {
            return Choice { device: false, again: false };
        }
        let device = self.pays(kind(operation), bytes as u64, lone);
        let again = !lone && self.count.fetch_add(1, Relaxed) % AGAIN == AGAIN - 1;
        Choice { device: device != again, again }
    }

    fn pays(&self, kind: usize, bytes: u64, lone: bool) -> bool {
        let cpu = self.cpu_ns(kind, bytes);
        let waiting = self.backlog.load(Relaxed).saturating_add(bytes);
        let way = waiting.saturating_mul(self.rate.load(Relaxed)) / 1000;
        let device = way.saturating_add(self.fixed.load(Relaxed));
        let bound = if lone { cpu } else { self.latency_ns.max(cpu.saturating_mul(SLOWER)) };
        self.core.load(Relaxed) < cpu && device <= bound
    }

    /// What a job takes here.
    fn cpu_ns(&self, kind: usize, bytes: u64) -> u64 {
        let measured = self.cpu[kind][class(bytes)].load(Relaxed);
        let rate = if measured == 0 { self.cpu_at_start.load(Relaxed) } else { measured };
        bytes.saturating_mul(rate) / 1000
    }

    /// A job took so long here.
    pub(crate) fn was_here(&self, operation: &Operation, len: usize, took: Duration) {
        let bytes = work(operation, len) as u64;
        if let Some(rate) = ns(took).saturating_mul(1000).checked_div(bytes) {
            mean(&self.cpu[kind(operation)][class(bytes)], rate);
        }
    }

    /// `bytes` took so long here, before there were jobs.
    pub(crate) fn started(&self, bytes: usize, took: Duration) {
        let rate = ns(took).saturating_mul(1000) / (bytes as u64).max(1);
        self.cpu_at_start.store(rate, Relaxed);
    }

    /// Giving a job away took a core so long. Being woken by its result is taken to cost the same.
    /// A time in which somebody else had the core counts little.
    pub(crate) fn was_submitted(&self, took: Duration) {
        let most = OUTLIER * self.core.load(Relaxed);
        mean(&self.core, (2 * ns(took)).min(most));
    }

    /// The device has so many more bytes to read.
    pub(crate) fn begins(&self, bytes: usize) {
        self.backlog.fetch_add(bytes as u64, Relaxed);
    }

    /// The device has so many less bytes to read.
    pub(crate) fn ends(&self, bytes: usize) {
        self.backlog.fetch_sub(bytes as u64, Relaxed);
    }

    /// How long a batch that reads `bytes` is expected to take.
    pub(crate) fn takes(&self, bytes: u64) -> Duration {
        let fixed = self.fixed.load(Relaxed);
        let known = if fixed == u64::MAX { 0 } else { fixed };
        let way = bytes.saturating_mul(self.rate.load(Relaxed)) / 1000;
        Duration::from_nanos(known.saturating_add(way))
    }

    /// A batch that read `bytes` took so long.
    pub(crate) fn passed(&self, bytes: u64, took: Duration) {
        let mut fit = self.fit.lock().unwrap_or_else(PoisonError::into_inner);
        let (fixed, rate) = fit.add(bytes as f64, ns(took) as f64);
        self.fixed.store(fixed as u64, Relaxed);
        self.rate.store((rate * 1000.0) as u64, Relaxed);
    }
}

/// The class of a size: its power of two.
fn class(bytes: u64) -> usize {
    (bytes.max(1).ilog2() as usize).min(CLASSES - 1)
}

/// A line through what was measured last: weight, bytes, time, and their products.
#[derive(Default)]
struct Fit {
    weight: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    /// Where the line begins, and its slope.
    line: (f64, f64),
}

impl Fit {
    fn add(&mut self, x: f64, y: f64) -> (f64, f64) {
        let fade = |sum: f64, value: f64| sum * FADES + value;
        self.weight = fade(self.weight, 1.0);
        (self.x, self.y) = (fade(self.x, x), fade(self.y, y));
        (self.xx, self.xy) = (fade(self.xx, x * x), fade(self.xy, x * y));
        let (mean_x, mean_y) = (self.x / self.weight, self.y / self.weight);
        let spread = self.xx / self.weight - mean_x * mean_x;
        if spread > 1e-3 * mean_x * mean_x {
            let slope = ((self.xy / self.weight - mean_x * mean_y) / spread).max(0.0);
            let fixed = mean_y - slope * mean_x;
            self.line = if fixed < 0.0 { (0.0, mean_y / mean_x) } else { (fixed, slope) };
        } else {
            // Batches of one size tell no slope: the line moves as a whole.
            let expected = self.line.0 + self.line.1 * mean_x;
            let times = if expected > 0.0 { mean_y / expected } else { 0.0 };
            self.line = match expected > 0.0 {
                true => (self.line.0 * times, self.line.1 * times),
                false => (mean_y, 0.0),
            };
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use parity::Code;
    use std::sync::Arc;

    use super::*;

    const US: Duration = Duration::from_micros(1);

    fn generate() -> Arc<Operation> {
        Operation::generate(Code::new(8, 2).unwrap())
    }

    /// A CPU of 8 GB/s, and a device of 20 GB/s after 30 µs.
    fn measured() -> Place {
        let place = Place::new(1000 * US);
        place.started(8 << 20, 1000 * US);
        for bytes in [32 << 10, 4 << 20, 32 << 10, 4 << 20] {
            place.passed(bytes, 30 * US + Duration::from_nanos(bytes / 20));
        }
        place
    }

    #[test]
    fn placements_have_names() {
        for placement in [Placement::Cpu, Placement::Gpu, Placement::Auto] {
            assert_eq!(placement.to_string().parse(), Ok(placement));
        }
        assert_eq!("GPU".parse::<Placement>(), Err(NotPlacement));
    }

    #[test]
    fn nothing_goes_before_something_is_measured() {
        let place = Place::new(1000 * US);
        assert!((0..1000).all(|_| !place.choose(&generate(), 1 << 20, false).device));
    }

    /// Not even to measure.
    #[test]
    fn a_small_job_is_never_taken_however_wide_the_stripe() {
        let place = measured();
        for data in [8, 16, 30, 128] {
            let wide = Operation::generate(Code::new(data, 2).unwrap());
            assert!((0..1000).all(|_| !place.choose(&wide, 4096, false).device), "{data}");
        }
    }

    /// A lone one only if somebody has its result sooner, and never to measure.
    #[test]
    fn a_lone_job_is_never_delayed() {
        let place = measured();
        // 30 µs and 52 µs against 131 µs; 30 µs and 6.5 µs against 16.4 µs.
        assert!((0..1000).all(|_| place.choose(&generate(), 128 << 10, true).device));
        assert!((0..1000).all(|_| !place.choose(&generate(), 16 << 10, true).device));
        assert!(place.choose(&generate(), 16 << 10, false).device, "with others it saves time");
        place.begins(2 << 20);
        assert!(!place.choose(&generate(), 128 << 10, true).device, "it would have to wait");
    }

    /// A core that lost time to somebody else in the middle is not led astray for long.
    #[test]
    fn one_slow_submission_changes_little() {
        let place = measured();
        (0..100).for_each(|_| place.was_submitted(US));
        place.was_submitted(10_000 * US);
        assert!(place.core.load(Relaxed) < 3 * CORE_NS);
    }

    #[test]
    fn a_large_one_goes_where_the_device_is_measured_to_pay() {
        let place = measured();
        let taken =
            (0..AGAIN).filter(|_| place.choose(&generate(), 128 << 10, false).device).count();
        assert_eq!(taken as u64, AGAIN - 1);
        // A core that loses more by giving it away keeps it.
        (0..100).for_each(|_| place.was_submitted(Duration::from_millis(1)));
        let taken =
            (0..AGAIN).filter(|_| place.choose(&generate(), 128 << 10, false).device).count();
        assert_eq!(taken, 1);
    }

    /// A class that is measured is known better than by what was measured at start.
    #[test]
    fn what_is_quick_here_stays() {
        let place = measured();
        (0..100).for_each(|_| place.was_here(&generate(), 128 << 10, Duration::from_nanos(900)));
        assert!(!place.choose(&generate(), 128 << 10, false).device);
        assert!(place.choose(&generate(), 512 << 10, false).device, "another class");
        let verify = Operation::verify(Code::new(8, 2).unwrap());
        assert!(place.choose(&verify, 128 << 10, false).device, "another kind");
    }

    #[test]
    fn a_backlog_that_would_delay_them_sends_jobs_to_the_cpu() {
        let place = measured();
        place.begins(64 << 20);
        assert!(!place.choose(&generate(), 128 << 10, false).device);
        place.ends(64 << 20);
        assert!(place.choose(&generate(), 128 << 10, false).device);
    }

    #[test]
    fn a_device_that_becomes_slow_loses_its_jobs_and_gets_them_back() {
        let place = measured();
        // What jobs find, and how many of a thousand rounds went to the device.
        let run = |jobs: u64, slower: u32| {
            let mut taken = 0;
            for _ in 0..jobs {
                if place.choose(&generate(), 128 << 10, false).device {
                    place.passed(1 << 20, slower * (30 * US + 52 * US));
                    taken += 1;
                } else {
                    place.was_here(&generate(), 128 << 10, 125 * US);
                }
            }
            taken
        };
        assert!(run(1000, 1) > 990);
        assert!(run(1000, 100) < 100, "slow, and soon seen to be");
        assert!(run(2000, 100) < 20, "left alone but for measuring");
        run(40 * AGAIN, 1);
        assert!(run(1000, 1) > 900, "quick again");
    }
}

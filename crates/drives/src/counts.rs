//! What was asked of a drive and how long it took, counted without shared writes: every core's
//! handle has counters of its own, summed when somebody looks.
//!
//! Two clocks take the time of a request that was done:
//! - what goes through the reactor, from the call to the poll of its ticket by the core's clock,
//!   which is looked at once a turn: it costs nothing, and is wrong by a turn at most;
//! - what runs in the calling thread, by the system's clock: one request in [`TIMED`], as that
//!   look takes as long as a small copy.
//!
//! Of paced drives it is the time that their model says.
//!
//! Invariant: a [`CoreCounts`] has one writing thread, so that plain loads and stores suffice.

use io::DriveError;
use io::histogram::{Histogram, Times, add};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use units::Nanos;

/// Of so many requests in the calling thread the time of one is taken, the first among them.
const TIMED: u64 = 8;

/// Requests and bytes since the drive was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoCounts {
    /// Read requests.
    pub reads: u64,
    /// Write requests; write-zeroes count as writes of no bytes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes asked for.
    pub read_bytes: u64,
    /// Bytes given.
    pub write_bytes: u64,
    /// Times that a request was asked again after an error that passes.
    pub retries: u64,
}

/// How long requests took that were done, since the drive was opened. Where requests run in the
/// calling thread, as on memory and on files in it, it is one in eight of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoTimes {
    /// Reads.
    pub reads: Times,
    /// Writes.
    pub writes: Times,
}

/// One core's counters of one drive, in cache lines of their own.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct CoreCounts {
    reads: AtomicU64,
    writes: AtomicU64,
    flushes: AtomicU64,
    read_bytes: AtomicU64,
    write_bytes: AtomicU64,
    read_times: Histogram,
    write_times: Histogram,
}

impl CoreCounts {
    pub(crate) fn read(&self, bytes: u64) {
        add(&self.reads, 1);
        add(&self.read_bytes, bytes);
    }

    pub(crate) fn write(&self, bytes: u64) {
        add(&self.writes, 1);
        add(&self.write_bytes, bytes);
    }

    pub(crate) fn flush(&self) {
        add(&self.flushes, 1);
    }

    /// A read through the reactor was done.
    pub(crate) fn read_done(&self, time: Nanos) {
        self.read_times.note(time);
    }

    /// A write through the reactor was done.
    pub(crate) fn write_done(&self, time: Nanos) {
        self.write_times.note(time);
    }

    /// Counts a read that runs in the calling thread.
    pub(crate) fn read_now(&self, bytes: u64, run: impl FnOnce() -> Ended) -> Ended {
        let number = self.reads.load(Ordering::Relaxed);
        self.read(bytes);
        timed(number, &self.read_times, run)
    }

    /// Counts a write that runs in the calling thread.
    pub(crate) fn write_now(&self, bytes: u64, run: impl FnOnce() -> Ended) -> Ended {
        let number = self.writes.load(Ordering::Relaxed);
        self.write(bytes);
        timed(number, &self.write_times, run)
    }

    fn add_times_to(&self, sum: &mut IoTimes) {
        sum.reads.add(&self.read_times.read());
        sum.writes.add(&self.write_times.read());
    }

    fn add_to(&self, sum: &mut IoCounts) {
        sum.reads += self.reads.load(Ordering::Relaxed);
        sum.writes += self.writes.load(Ordering::Relaxed);
        sum.flushes += self.flushes.load(Ordering::Relaxed);
        sum.read_bytes += self.read_bytes.load(Ordering::Relaxed);
        sum.write_bytes += self.write_bytes.load(Ordering::Relaxed);
    }
}

type Ended = Result<(), DriveError>;

/// Runs a request, and notes its time if that is taken.
#[inline]
fn timed(number: u64, times: &Histogram, run: impl FnOnce() -> Ended) -> Ended {
    if !number.is_multiple_of(TIMED) {
        return run();
    }
    let begun = Instant::now();
    let ended = run();
    if ended.is_ok() {
        times.note(Nanos(begun.elapsed().as_nanos() as u64));
    }
    ended
}

#[derive(Default)]
struct Sum {
    /// What handles that are gone had counted.
    past: IoCounts,
    past_times: IoTimes,
    cores: Vec<Arc<CoreCounts>>,
}

/// All counters of one drive.
#[derive(Clone, Default)]
pub(crate) struct Counts(Arc<Mutex<Sum>>, Arc<AtomicU64>);

/// A core's counters, until its handle goes.
pub(crate) struct Registered {
    pub(crate) counts: Arc<CoreCounts>,
    all: Counts,
}

impl Drop for Registered {
    fn drop(&mut self) {
        // In one step, so that no sum lacks them.
        let mut sum = self.all.lock();
        sum.cores.retain(|core| !Arc::ptr_eq(core, &self.counts));
        self.counts.add_to(&mut sum.past);
        self.counts.add_times_to(&mut sum.past_times);
    }
}

impl Counts {
    fn lock(&self) -> MutexGuard<'_, Sum> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Counters for one more handle.
    pub(crate) fn register(&self) -> Registered {
        let counts = Arc::<CoreCounts>::default();
        self.lock().cores.push(counts.clone());
        Registered { counts, all: self.clone() }
    }

    /// Where requests that are asked again are counted.
    pub(crate) fn retries(&self) -> Arc<AtomicU64> {
        self.1.clone()
    }

    /// The sum over all handles.
    pub(crate) fn sum(&self) -> IoCounts {
        let sum = self.lock();
        let mut total = sum.past;
        sum.cores.iter().for_each(|core| core.add_to(&mut total));
        drop(sum);
        total.retries = self.1.load(Ordering::Relaxed);
        total
    }

    /// The times over all handles.
    pub(crate) fn times(&self) -> IoTimes {
        let sum = self.lock();
        let mut total = sum.past_times;
        sum.cores.iter().for_each(|core| core.add_times_to(&mut total));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Handles come, count and go while another thread adds up.
    #[test]
    fn a_sum_never_falls_while_handles_go() {
        const EACH: u64 = 20_000;
        let counts = Counts::default();
        std::thread::scope(|scope| {
            let core = scope.spawn(|| (0..EACH).for_each(|_| counts.register().counts.read(512)));
            let mut last = 0;
            while !core.is_finished() {
                let now = counts.sum().reads;
                assert!(now >= last, "{last} {now}");
                last = now;
            }
        });
        assert_eq!((counts.sum().reads, counts.sum().read_bytes), (EACH, EACH * 512));
    }

    #[test]
    fn one_in_eight_that_run_in_the_calling_thread_is_timed() {
        let counts = Counts::default();
        let handle = counts.register();
        for n in 0..17 {
            handle.counts.read_now(512, || Ok(())).unwrap();
            let ended = if n < 8 { Err(DriveError::Gone) } else { Ok(()) };
            assert_eq!(handle.counts.write_now(512, || ended), ended);
        }
        let count = |times: Times| times.buckets.iter().sum::<u64>();
        let timed = |times: IoTimes| (count(times.reads), count(times.writes));
        // What failed has no time.
        assert_eq!(timed(counts.times()), (3, 2));
        drop(handle);
        assert_eq!(timed(counts.times()), (3, 2), "a handle that goes leaves its times");
        assert_eq!((counts.sum().reads, counts.sum().write_bytes), (17, 17 * 512));
    }
}

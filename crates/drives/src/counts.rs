//! What was asked of a drive, counted without shared writes: every core's handle has counters of
//! its own, summed when somebody looks.
//!
//! Invariant: a [`CoreCounts`] has one writing thread, so that plain loads and stores suffice.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

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

/// One core's counters of one drive, in cache lines of their own.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct CoreCounts {
    reads: AtomicU64,
    writes: AtomicU64,
    flushes: AtomicU64,
    read_bytes: AtomicU64,
    write_bytes: AtomicU64,
}

/// Adds without a locked instruction: there is one writer.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
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

    fn add_to(&self, sum: &mut IoCounts) {
        sum.reads += self.reads.load(Ordering::Relaxed);
        sum.writes += self.writes.load(Ordering::Relaxed);
        sum.flushes += self.flushes.load(Ordering::Relaxed);
        sum.read_bytes += self.read_bytes.load(Ordering::Relaxed);
        sum.write_bytes += self.write_bytes.load(Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Sum {
    /// What handles that are gone had counted.
    past: IoCounts,
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
}

//! The known-answer test that a device must pass before it is used.
//!
//! Purpose: a device, driver or compiler that gets one instruction wrong must not corrupt arrays.
//! Every kernel runs, over all bytes times all constants that a code can have, at lengths below
//! and above a block of threads, in batches of several jobs and more than one stream. Then every
//! kernel runs on memory of this machine that it reaches by itself, which is the way of live
//! strips; and larger jobs are timed, on both sides, so that placement begins with something
//! measured.
//! Invariant: the answers are the parity crate's, whose kernel passed a test against a reference
//! that shares nothing with either.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use io::{Buf, BufMut, Memory, Pool, Reach};
use parity::Code;
use parity::offload::{Job, Operation, What};

use crate::driver::Device;
use crate::fence::{Fence, Limits};
use crate::plan;
use crate::queue::{Back, Lanes, Outcome, Passed, Queue};

/// A strip that holds every byte, and one of more than a block of threads.
const LENGTHS: [usize; 2] = [256, 4608];

/// What a test reads and writes.
type Known = Job<Vec<u8>, Vec<u8>>;

/// What was measured at start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timed {
    /// Batches of the device.
    pub(crate) device: Vec<Passed>,
    /// Bytes that the CPU read, and how long it took.
    pub(crate) cpu: (usize, Duration),
}

/// A queue for `device`, whose kernels were just tested, each with every job compared. `clock`
/// lets a moment pass and says what time it is.
///
/// # Errors
///
/// [`Fence`] if the device can't be set up, fails, hangs or computes anything wrong, or if its
/// lanes are too small for the widest code's test, which takes 256 KiB each way.
pub(crate) fn open<I: AsRef<[u8]>, O: AsRef<[u8]> + AsMut<[u8]>, T>(
    device: Box<dyn Device>,
    limits: Limits,
    clock: &mut dyn FnMut() -> Duration,
) -> Result<(Queue<I, O, T>, Timed), Fence> {
    let mut queue = Queue::over(Lanes::new(device, limits)?).sampling(1);
    run(&mut queue, known(), clock)?;
    let lanes = reached(queue.into_lanes()?, limits, clock)?;
    let mut queue = Queue::over(lanes).sampling(0);
    let timed = time(&mut queue, limits, clock)?;
    Ok((Queue::over(queue.into_lanes()?).sampling(limits.sample), timed))
}

/// Does all jobs; those that don't fit are an error.
fn run<I: AsRef<[u8]>, O: AsRef<[u8]> + AsMut<[u8]>>(
    queue: &mut Queue<I, O, ()>,
    jobs: Vec<Job<I, O>>,
    clock: &mut dyn FnMut() -> Duration,
) -> Result<(), Fence> {
    let (mut ended, expected) = (0, jobs.len());
    jobs.into_iter().for_each(|job| queue.submit(job, ()));
    while ended < expected {
        for (_, outcome) in queue.poll(clock()) {
            if let Outcome::Back(Back::Unfit, _) = outcome {
                return Err(Fence::Small);
            }
            ended += 1;
        }
    }
    assert_eq!(ended, expected, "every job ends once");
    queue.fence().map_or(Ok(()), |fence| Err(fence.clone()))
}

/// Bytes of a strip that both sides are tried on at once: of what a lane takes of 16 strips.
fn large(limits: Limits, most: usize) -> usize {
    (limits.in_bytes / 16).min(limits.out_bytes / 8).min(most) / 4096 * 4096
}

/// Notes where a pool's memory lies.
#[derive(Default)]
struct Noted(Mutex<Option<(usize, usize)>>);

impl Reach for Noted {
    fn begin(&self, address: usize, bytes: usize) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((address, bytes));
    }

    /// The device reaches it no more: see `reached`.
    fn end(&self, memory: Memory) {
        drop(memory);
    }
}

/// Strips that a job of this test has at most.
const STRIPS: usize = 16;

/// Every kernel on strips that the device reaches where they are, one job after the other, each
/// compared. A device that can't is as good: strips are copied then.
fn reached(
    lanes: Lanes,
    limits: Limits,
    clock: &mut dyn FnMut() -> Duration,
) -> Result<Lanes, Fence> {
    let len = large(limits, 128 << 10);
    if len == 0 {
        return Ok(lanes);
    }
    let noted = Arc::new(Noted::default());
    let reach: Arc<dyn Reach> = noted.clone();
    // Behind the queue, whose device lets go of it first, whatever happens.
    let pool = Pool::reached(len, STRIPS, Some(&reach));
    let place = *noted.0.lock().unwrap_or_else(PoisonError::into_inner);
    let (address, bytes) = place.expect("a pool tells where it lies");
    let mut queue = Queue::<Buf, BufMut, ()>::over(lanes).sampling(1);
    if queue.register(address, bytes).is_err() {
        return queue.into_lanes();
    }
    for operation in operations() {
        let (reads, writes) = (operation.reads().len(), operation.writes().len());
        if reads + writes > STRIPS || !plan::takes(&operation, len) {
            continue;
        }
        let strip = |seed: usize| {
            let mut strip = pool.take(len).expect("a piece for each strip");
            strip.copy_from_slice(&pattern(seed, len));
            strip
        };
        let inputs = (0..reads).map(|seed| strip(seed).freeze()).collect();
        let outputs = (0..writes).map(strip).collect();
        run(&mut queue, vec![Job { operation, inputs, outputs }], clock)?;
    }
    match queue.unregister(address) {
        true => queue.into_lanes(),
        false => Err(queue.fence().cloned().unwrap_or(Fence::Ended)),
    }
}

/// P and Q of eight strips, small and as large as a lane takes, each a few times: by the device,
/// and here.
fn time(
    queue: &mut Queue<Vec<u8>, Vec<u8>, ()>,
    limits: Limits,
    clock: &mut dyn FnMut() -> Duration,
) -> Result<Timed, Fence> {
    let operation = Operation::generate(Code::new(8, 2).expect("a code that there is"));
    let most = large(limits, 256 << 10);
    let job = |len| Job {
        operation: operation.clone(),
        inputs: (0..8).map(|seed| pattern(seed, len)).collect(),
        outputs: vec![vec![0; len]; 2],
    };
    let mut timed = Timed::default();
    for len in [4096, most].into_iter().filter(|&len| len > 0).cycle().take(6) {
        run(queue, vec![job(len)], clock)?;
        timed.device.extend(queue.ended());
        let mut here = job(len);
        let since = clock();
        here.compute();
        let took = clock().saturating_sub(since);
        timed.cpu = (timed.cpu.0 + 8 * len, timed.cpu.1 + took);
    }
    Ok(timed)
}

/// Operations of every kind.
fn operations() -> Vec<Arc<Operation>> {
    let code = |k, m| Code::new(k, m).expect("a code that there is");
    let mut operations = Vec::new();
    for (k, m) in [(1, 1), (6, 1), (1, 2), (6, 2), (6, 3), (6, 5), (Code::max_data(4), 4)] {
        operations.push(Operation::generate(code(k, m)));
        operations.push(Operation::verify(code(k, m)));
    }
    let wide = code(Code::MAX_DATA, 2);
    let (p, q) = (wide.data(), wide.data() + 1);
    // Every power of the generator, that is every constant but 0.
    for index in 1..wide.data() {
        operations.push(Operation::update(wide, &[index], &[q]));
    }
    operations.push(Operation::update(wide, &[0, 1, 7, 254], &[p]));
    operations.push(Operation::update(wide, &[3, 200, 77], &[p, q]));
    operations.push(Operation::update(code(9, 6), &[0, 8, 3], &[9, 10, 12, 13, 14]));
    for missing in [[0, 1], [0, 6], [4, 7]] {
        let present: Vec<_> = (0..8).map(|i| !missing.contains(&i)).collect();
        let operation = Operation::recover(code(6, 2), &present, &missing);
        operations.push(operation.expect("two of two parities' losses"));
    }
    operations.push(Operation::checksum(2, 256));
    operations.push(Operation::checksum(2, 512));
    operations
}

/// A strip in which each run of 256 bytes holds all values, in an order that `seed` picks.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * (2 * seed + 1) + seed * 29 + i / 256) as u8).collect()
}

/// The jobs. Half of the verifications have something to find.
fn known() -> Vec<Known> {
    let mut jobs = Vec::new();
    for operation in operations() {
        for len in LENGTHS.into_iter().filter(|&len| plan::takes(&operation, len)) {
            let count = operation.reads().len();
            // The widest codes would take long.
            if len > 256 && count > 64 {
                continue;
            }
            let inputs = (0..count).map(|i| pattern(i, len)).collect();
            let outputs = operation.writes().iter().map(|&i| pattern(i, len)).collect();
            let mut job = Job { operation: operation.clone(), inputs, outputs };
            if let What::Verify(code) = operation.what() {
                make_right(code, &mut job);
                jobs.push(job.clone());
                job.inputs[count / 2][len - 3] ^= 0x40;
            }
            jobs.push(job);
        }
    }
    jobs
}

/// Gives a verification the parities of its data.
pub(crate) fn make_right(code: Code, job: &mut Known) {
    let (data, parity) = job.inputs.split_at_mut(code.data());
    let data: Vec<_> = data.iter().map(Vec::as_slice).collect();
    let mut parity: Vec<_> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    code.generate(&data, &mut parity);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    #[test]
    fn every_kernel_has_known_answers() {
        let mut kinds: Vec<_> =
            known().iter().map(|job| plan::Plan::new(&job.operation).kind).collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds, Kind::ALL);
    }
}

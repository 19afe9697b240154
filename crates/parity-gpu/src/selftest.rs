//! The known-answer test that a device must pass before it is used.
//!
//! Purpose: a device, driver or compiler that gets one instruction wrong must not corrupt arrays.
//! Every kernel runs, over all bytes times all constants that a code can have, at lengths below
//! and above a block of threads, in batches of several jobs and more than one stream.
//! Invariant: the answers are the parity crate's, whose kernel passed a test against a reference
//! that shares nothing with either.

use std::sync::Arc;
use std::time::Duration;

use parity::Code;

use crate::driver::Device;
use crate::job::Job;
use crate::kind::Kind;
use crate::plan::{Operation, Plan};
use crate::queue::{Back, Fence, Lanes, Limits, Outcome, Queue};

/// A strip that holds every byte, and one of more than a block of threads.
const LENGTHS: [usize; 2] = [256, 4608];

/// What a test reads and writes.
type Known = Job<Vec<u8>, Vec<u8>>;

/// A queue for `device`, whose kernels were just tested, each with every job compared. `clock`
/// lets a moment pass and says what time it is.
///
/// # Errors
///
/// [`Fence`] if the device can't be set up, fails, hangs or computes anything wrong.
///
/// # Panics
///
/// If a lane is too small for the widest code's test, which takes 256 KiB each way.
pub fn open<I: AsRef<[u8]>, O: AsRef<[u8]> + AsMut<[u8]>>(
    device: Box<dyn Device>,
    limits: Limits,
    clock: &mut dyn FnMut() -> Duration,
) -> Result<Queue<I, O>, Fence> {
    let lanes = Lanes::new(device, limits).map_err(Fence::Failed)?;
    let mut queue = Queue::<Vec<u8>, Vec<u8>>::over(lanes).sampling(1);
    let mut ended = 0;
    let jobs = known();
    let expected = jobs.len();
    jobs.into_iter().for_each(|job| queue.submit(job));
    while !queue.is_empty() {
        for finished in queue.poll(clock()) {
            assert_ne!(finished.outcome, Outcome::Back(Back::Unfit), "lanes too small to test");
            ended += 1;
        }
    }
    assert_eq!(ended, expected, "every job ends");
    Ok(Queue::over(queue.into_lanes()?).sampling(limits.sample))
}

/// Plans of every kind.
fn plans() -> Vec<Arc<Plan>> {
    let code = |k, m| Code::new(k, m).expect("a code that there is");
    let mut plans = Vec::new();
    for (k, m) in [(1, 1), (6, 1), (1, 2), (6, 2), (6, 3), (6, 5), (Code::max_data(4), 4)] {
        plans.push(Plan::generate(code(k, m)));
        plans.push(Plan::verify(code(k, m)));
    }
    let wide = code(Code::MAX_DATA, 2);
    let (p, q) = (wide.data(), wide.data() + 1);
    // Every power of the generator, that is every constant but 0.
    for index in 1..wide.data() {
        plans.push(Plan::update(wide, &[index], &[q]));
    }
    plans.push(Plan::update(wide, &[0, 1, 7, 254], &[p]));
    plans.push(Plan::update(wide, &[3, 200, 77], &[p, q]));
    plans.push(Plan::update(code(9, 6), &[0, 8, 3], &[9, 10, 12, 13, 14]));
    for missing in [[0, 1], [0, 6], [4, 7]] {
        let present: Vec<_> = (0..8).map(|i| !missing.contains(&i)).collect();
        let plan = Plan::recover(code(6, 2), &present, &missing);
        plans.push(plan.expect("two of two parities' losses"));
    }
    plans.push(Plan::checksum(2, 256));
    plans.push(Plan::checksum(2, 512));
    plans
}

/// A strip in which each run of 256 bytes holds all values, in an order that `seed` picks.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * (2 * seed + 1) + seed * 29 + i / 256) as u8).collect()
}

/// The jobs. Half of the verifications have something to find.
fn known() -> Vec<Known> {
    let mut jobs = Vec::new();
    for plan in plans() {
        for len in LENGTHS.into_iter().filter(|&len| plan.takes(len)) {
            let count = plan.input_strips().len();
            // The widest codes would take long.
            if len > 256 && count > 64 {
                continue;
            }
            let inputs = (0..count).map(|i| pattern(i, len)).collect();
            let outputs = plan.output_strips().iter().map(|&i| pattern(i, len)).collect();
            let mut job = Job { stripe: jobs.len() as u64, plan: plan.clone(), inputs, outputs };
            if let Operation::Verify(code) = plan.operation {
                make_right(code, &mut job);
                jobs.push(job.clone());
                job.inputs[count / 2][len - 3] ^= 0x40;
            }
            jobs.push(job);
        }
    }
    debug_assert!(Kind::ALL.iter().all(|kind| jobs.iter().any(|job| job.plan.kind() == *kind)));
    jobs
}

/// Gives a verification the parities of its data.
fn make_right(code: Code, job: &mut Known) {
    let (data, parity) = job.inputs.split_at_mut(code.data());
    let data: Vec<_> = data.iter().map(Vec::as_slice).collect();
    let mut parity: Vec<_> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    code.generate(&data, &mut parity);
}

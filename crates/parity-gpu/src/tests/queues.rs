//! The queue over the fake device: batches, sampling, memory of others, and every way to fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parity::Code;
use parity::offload::Operation;

use super::bench::{Case, LIMITS, Random, by_cpu, case};
use crate::driver::{Asked, Driver, Problem};
use crate::fake::FakeDriver;
use crate::fence::{Fence, Limits};
use crate::memory::Aligned;
use crate::queue::{Back, Outcome, Queue};
use crate::{Kind, selftest};

type Jobs = Queue<Vec<u8>, Vec<u8>, usize>;

/// Device memory that holds the lanes.
const MEMORY: usize = 3 << 20;

/// A clock that lets others run.
fn clock() -> impl FnMut() -> Duration {
    let start = Instant::now();
    move || {
        std::thread::yield_now();
        start.elapsed()
    }
}

fn opened(driver: &FakeDriver, limits: Limits) -> Result<Jobs, Fence> {
    let opened = selftest::open(driver.open(0).unwrap(), limits, &mut clock());
    opened.map(|(queue, _)| queue)
}

/// An operation of any of several kinds.
fn operation(random: &mut Random) -> Arc<Operation> {
    let code = Code::new(1 + random.below(8), 2).unwrap();
    let (k, last) = (code.data(), code.data() - 1);
    match random.below(5) {
        0 => Operation::generate(code),
        1 => Operation::update(code, &[last], &[k, k + 1]),
        2 => Operation::verify(code),
        3 => Operation::checksum(2, 512),
        _ => {
            let present: Vec<_> = (0..k + 2).map(|i| i != 0 && i != k).collect();
            Operation::recover(code, &present, &[0, k]).unwrap()
        }
    }
}

/// What was done with jobs, and what came back.
#[derive(Default, Debug, PartialEq, Eq)]
struct Sums {
    done: usize,
    back: usize,
}

/// Submits `count` jobs, polls until all are finished, and compares all with the CPU: those that
/// were given back are as they were. `between` runs before each poll.
fn run(queue: &mut Jobs, seed: u64, count: usize, mut between: impl FnMut(usize)) -> Sums {
    let mut random = Random(seed);
    let mut clock = clock();
    let mut cases: BTreeMap<usize, Case> = BTreeMap::new();
    let (mut sums, mut submitted, mut polls) = (Sums::default(), 0, 0);
    while submitted < count || !queue.is_empty() {
        for _ in 0..random.below(20).min(count - submitted) {
            let (operation, len) = (operation(&mut random), 512 * (1 + random.below(16)));
            let case = case(&mut random, &operation, len);
            queue.submit(case.clone(), submitted);
            cases.insert(submitted, case);
            submitted += 1;
        }
        between(polls);
        polls += 1;
        for (tag, outcome) in queue.poll(clock()) {
            let case = cases.remove(&tag).expect("once");
            match outcome {
                Outcome::Done(answer, outputs) => {
                    sums.done += 1;
                    assert_eq!((outputs, answer), by_cpu(&case), "{:?}", case.operation);
                }
                Outcome::Back(why, job) => {
                    sums.back += 1;
                    assert_eq!(why, Back::Fenced);
                    let job = job.expect("nothing of it was reached");
                    assert_eq!((job.inputs, job.outputs), (case.inputs, case.outputs));
                }
            }
        }
    }
    assert!(cases.is_empty() && sums.done + sums.back == count);
    sums
}

#[test]
fn jobs_are_batched() {
    for seed in 0..4 {
        let driver = FakeDriver::new(seed, MEMORY);
        let mut queue = opened(&driver, LIMITS).unwrap();
        let tested = driver.switches().launches();
        assert!(tested >= Kind::ALL.len(), "every kernel was tested at start");
        assert_eq!(run(&mut queue, seed, 1500, |_| ()), Sums { done: 1500, back: 0 });
        let batches = driver.switches().launches() - tested;
        assert!(batches < 1000, "{batches} launches of 1500 jobs");
        assert_eq!((queue.fence(), driver.switches().strays()), (None, 0));
    }
}

#[test]
fn a_device_that_computes_wrongly_is_never_opened() {
    let driver = FakeDriver::new(1, MEMORY);
    driver.switches().spoil(1);
    let fence = opened(&driver, LIMITS).map(|_| ()).unwrap_err();
    assert!(matches!(fence, Fence::Wrong { .. }), "{fence}");
}

#[test]
fn a_device_that_hangs_or_is_lost_is_never_opened() {
    let driver = FakeDriver::new(1, MEMORY);
    driver.switches().hang(true);
    let limits = Limits { patience: Duration::from_millis(100), ..LIMITS };
    assert_eq!(opened(&driver, limits).map(|_| ()).unwrap_err(), Fence::Hung);
    let driver = FakeDriver::new(1, MEMORY);
    let device = driver.open(0).unwrap();
    driver.switches().lose();
    let fence = selftest::open::<Vec<u8>, Vec<u8>, ()>(device, LIMITS, &mut clock()).map(|_| ());
    assert!(
        matches!(fence, Err(Fence::Failed(error)) if matches!(error.problem, Problem::Lost(_)))
    );
}

#[test]
fn lanes_that_are_none_or_too_small_are_an_error() {
    for limits in [
        Limits { lanes: 0, ..LIMITS },
        Limits { in_bytes: 4096, ..LIMITS },
        Limits { out_bytes: 64, ..LIMITS },
    ] {
        let driver = FakeDriver::new(1, MEMORY);
        assert_eq!(opened(&driver, limits).map(|_| ()).unwrap_err(), Fence::Small);
    }
}

#[test]
fn a_wrong_result_that_is_sampled_fences_the_device_and_no_stripe_is_wrong() {
    let driver = FakeDriver::new(2, MEMORY);
    let mut queue = opened(&driver, Limits { sample: 1, ..LIMITS }).unwrap();
    let sums = run(&mut queue, 2, 600, |poll| {
        if poll == 20 {
            driver.switches().spoil(1);
        }
    });
    assert!(sums.done > 0 && sums.back > 0, "{sums:?}");
    assert!(matches!(queue.fence(), Some(Fence::Wrong { unchecked: 0, .. })));
}

/// Polls until all jobs are finished.
fn all(queue: &mut Jobs) -> BTreeMap<usize, Outcome<Vec<u8>, Vec<u8>>> {
    let mut clock = clock();
    let mut found = BTreeMap::new();
    while !queue.is_empty() {
        found.extend(queue.poll(clock()));
    }
    found
}

/// Equal jobs in one batch, of which some are compared: those that are not come back untouched,
/// whatever their order. What other lanes did before stays done.
#[test]
fn neighbours_of_a_wrong_result_are_not_delivered() {
    let driver = FakeDriver::new(3, MEMORY);
    let mut queue = opened(&driver, Limits { sample: 8, ..LIMITS }).unwrap();
    let mut random = Random(9);
    let operation = Operation::generate(Code::new(4, 2).unwrap());
    let job = case(&mut random, &operation, 512);
    let right = by_cpu(&job);
    // The samples are drawn by number: jobs 0 to 63 and 64 to 127.
    (0..64).for_each(|tag| queue.submit(job.clone(), tag));
    let mut delivered = 0;
    for outcome in all(&mut queue).into_values() {
        assert!(matches!(outcome, Outcome::Done(..)));
        delivered += 1;
    }
    assert_eq!(delivered, 64);
    driver.switches().spoil(1);
    (64..128).for_each(|tag| queue.submit(job.clone(), tag));
    let (mut done, mut back) = (0, 0);
    for outcome in all(&mut queue).into_values() {
        match outcome {
            Outcome::Done(answer, outputs) => {
                assert_eq!((outputs, answer), right);
                done += 1;
            }
            Outcome::Back(why, found) => {
                let found = found.expect("nothing of it was reached");
                assert_eq!((why, found.outputs), (Back::Fenced, job.outputs.clone()));
                back += 1;
            }
        }
    }
    assert!((4..=16).contains(&done) && done + back == 64, "{done} done, {back} back");
    assert!(matches!(queue.fence(), Some(Fence::Wrong { unchecked, .. }) if *unchecked < 64));
}

/// So many jobs that the first ones, which are all sampled, are over.
fn first(queue: &mut Jobs, job: &Case) {
    (0..64).for_each(|tag| queue.submit(job.clone(), tag));
    assert!(all(queue).into_values().all(|outcome| matches!(outcome, Outcome::Done(..))));
}

/// At first, and once memory is shared, nothing is taken on trust.
#[test]
fn the_first_jobs_are_all_compared() {
    let limits = Limits { sample: u32::MAX, ..LIMITS };
    let operation = Operation::generate(Code::new(4, 1).unwrap());
    let job = case(&mut Random(9), &operation, 512);
    let memory = Aligned::zeros(4096);
    for (begun, shared, seen) in [(false, false, true), (true, false, false), (true, true, true)] {
        let driver = FakeDriver::new(3, MEMORY);
        let mut queue = opened(&driver, limits).unwrap();
        if begun {
            first(&mut queue, &job);
        }
        if shared {
            queue.register(memory.as_ptr().expose_provenance(), memory.len()).unwrap();
        }
        driver.switches().spoil(1);
        queue.submit(job.clone(), 0);
        all(&mut queue);
        assert_eq!(queue.fence().is_some(), seen, "begun {begun}, shared {shared}");
    }
}

/// That two things are equal is what a kernel answers that has found nothing: one that never ran
/// answers nothing.
#[test]
fn a_comparison_that_was_never_made_is_not_believed() {
    let driver = FakeDriver::new(3, MEMORY);
    let mut queue = opened(&driver, Limits { sample: 0, ..LIMITS }).unwrap();
    let operation = Operation::verify(Code::new(4, 2).unwrap());
    let job = case(&mut Random(9), &operation, 8192);
    driver.switches().skip(1);
    queue.submit(job.clone(), 0);
    let outcome = all(&mut queue).remove(&0).unwrap();
    assert!(matches!(outcome, Outcome::Back(Back::Fenced, Some(_))), "{outcome:?}");
    assert_eq!(queue.fence(), Some(&Fence::Undone { kind: Kind::VerifyPq }));
}

/// Live strips lie in memory that is shared: a device that gets that wrong is found out before.
#[test]
fn a_device_that_reaches_shared_memory_wrongly_is_never_opened() {
    let driver = FakeDriver::new(1, MEMORY);
    driver.switches().misreach(true);
    let fence = opened(&driver, LIMITS).map(|_| ()).unwrap_err();
    assert!(matches!(fence, Fence::Wrong { .. }), "{fence}");
}

/// Jobs are sampled as often as was asked for, or not at all.
#[test]
fn an_unsampled_wrong_result_goes_unseen_and_a_sampled_one_does_not() {
    for (sample, seen) in [(0, false), (8, true)] {
        let driver = FakeDriver::new(3, MEMORY);
        let mut queue = opened(&driver, Limits { sample, ..LIMITS }).unwrap();
        let operation = Operation::generate(Code::new(4, 1).unwrap());
        let job = case(&mut Random(9), &operation, 512);
        first(&mut queue, &job);
        driver.switches().spoil(usize::MAX);
        let mut jobs = 0;
        while queue.fence().is_none() && jobs < 200 {
            queue.submit(job.clone(), jobs);
            jobs += 1;
            all(&mut queue);
        }
        assert_eq!(queue.fence().is_some(), seen, "one of {sample} sampled, {jobs} jobs");
        assert!(!seen || jobs < 100, "{jobs} jobs until one was sampled");
    }
}

#[test]
fn a_refused_launch_drains_to_the_cpu() {
    let driver = FakeDriver::new(4, MEMORY);
    let mut queue = opened(&driver, LIMITS).unwrap();
    let sums = run(&mut queue, 4, 400, |poll| {
        if poll == 10 {
            driver.switches().refuse(1);
        }
    });
    assert!(sums.back > 0, "{sums:?}");
    match queue.fence() {
        Some(Fence::Failed(error)) => assert_eq!(error.asked, Asked::Launch),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lost_device_drains_to_the_cpu() {
    let driver = FakeDriver::new(5, MEMORY);
    let mut queue = opened(&driver, LIMITS).unwrap();
    let sums = run(&mut queue, 5, 400, |poll| {
        if poll == 10 {
            driver.switches().lose();
        }
    });
    assert!(sums.back > 0, "{sums:?}");
    match queue.fence() {
        Some(Fence::Failed(error)) => assert!(matches!(error.problem, Problem::Lost(_))),
        other => panic!("{other:?}"),
    }
}

/// What a hung device does later reaches no job whose memory it was not given.
#[test]
fn a_hung_device_drains_to_the_cpu_and_may_wake_up_later() {
    let driver = FakeDriver::new(6, MEMORY);
    let patience = Duration::from_millis(100);
    // A busy machine may need longer for the test at start.
    let mut queue = opened(&driver, LIMITS).unwrap().patient(patience);
    let launches = driver.switches().launches();
    driver.switches().hang(true);
    let mut random = Random(6);
    let cases: Vec<_> = (0..100)
        .map(|_| {
            let operation = operation(&mut random);
            case(&mut random, &operation, 1024)
        })
        .collect();
    cases.iter().enumerate().for_each(|(tag, case)| queue.submit(case.clone(), tag));
    let back = all(&mut queue);
    assert_eq!(queue.fence(), Some(&Fence::Hung));
    driver.switches().hang(false);
    // All lanes were at work; now they do it.
    while driver.switches().launches() < launches + LIMITS.lanes {
        std::thread::yield_now();
    }
    for (tag, outcome) in back {
        let Outcome::Back(Back::Fenced, Some(job)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((&job.inputs, &job.outputs), (&cases[tag].inputs, &cases[tag].outputs));
    }
    assert_eq!(run(&mut queue, 7, 100, |_| ()), Sums { done: 0, back: 100 });
}

#[test]
fn a_device_without_enough_memory_is_not_opened() {
    for lanes in [4, 7] {
        let driver = FakeDriver::new(7, MEMORY);
        let fence = opened(&driver, Limits { lanes, ..LIMITS }).map(|_| ()).unwrap_err();
        match fence {
            Fence::Failed(error) => assert_eq!(error.problem, Problem::Memory),
            other => panic!("{other:?}"),
        }
    }
    let driver = FakeDriver::new(7, MEMORY);
    driver.switches().fill(true);
    assert!(opened(&driver, LIMITS).is_err());
    driver.switches().fill(false);
    assert!(opened(&driver, LIMITS).is_ok());
}

/// One that is larger than a lane, one whose length kernels don't take, and one that fits.
#[test]
fn jobs_that_do_not_fit_are_given_back() {
    let driver = FakeDriver::new(8, MEMORY);
    let mut queue = opened(&driver, LIMITS).unwrap();
    let mut random = Random(8);
    let operation = Operation::generate(Code::new(2, 1).unwrap());
    for len in [512, 1 << 19, 528, 100] {
        queue.submit(case(&mut random, &operation, len), len);
    }
    for (len, outcome) in all(&mut queue) {
        let unfit = matches!(outcome, Outcome::Back(Back::Unfit, Some(_)));
        assert_eq!(unfit, [100, 1 << 19].contains(&len), "{len}: {outcome:?}");
    }
}

//! The queue over the fake device: batches, order, sampling, and every way to fail.

use std::time::{Duration, Instant};

use parity::Code;

use super::bench::{Case, Random};
use crate::driver::{Asked, Driver, Problem};
use crate::fake::FakeDriver;
use crate::job::Job;
use crate::plan::Plan;
use crate::queue::{Back, Fence, Limits, Outcome, Queue};
use crate::{Kind, selftest};

type Jobs = Queue<Vec<u8>, Vec<u8>>;

/// Small lanes, so that there are many batches; time enough for a busy machine.
const LIMITS: Limits = Limits {
    lanes: 3,
    in_bytes: 1 << 19,
    out_bytes: 1 << 19,
    patience: Duration::from_secs(60),
    sample: 0,
};

/// Device memory that holds the lanes.
const MEMORY: usize = 3 << 20;

/// A clock that lets others run.
fn clock(start: Instant) -> impl FnMut() -> Duration {
    move || {
        std::thread::sleep(Duration::from_micros(50));
        start.elapsed()
    }
}

fn opened(driver: &FakeDriver, limits: Limits) -> Result<Jobs, Fence> {
    selftest::open(driver.open(0).unwrap(), limits, &mut clock(Instant::now()))
}

/// A job of any of several kinds, and what comes of it.
fn job(random: &mut Random, stripe: u64) -> (Job<Vec<u8>, Vec<u8>>, Case) {
    let code = Code::new(1 + random.below(8), 2).unwrap();
    let (k, last) = (code.data(), code.data() - 1);
    let plan = match random.below(5) {
        0 => Plan::generate(code),
        1 => Plan::update(code, &[last], &[k, k + 1]),
        2 => Plan::verify(code),
        3 => Plan::checksum(2, 512),
        _ => {
            let present: Vec<_> = (0..k + 2).map(|i| i != 0 && i != k).collect();
            Plan::recover(code, &present, &[0, k]).unwrap()
        }
    };
    let len = 512 * (1 + random.below(16));
    let case = Case::new(random, &plan, len);
    let (inputs, outputs) = (case.inputs.clone(), case.outputs.clone());
    (Job { stripe, plan, inputs, outputs }, case)
}

/// What was done with jobs, and what came back.
#[derive(Default, Debug, PartialEq, Eq)]
struct Sums {
    done: usize,
    back: usize,
}

/// Submits `count` jobs of a few stripes, polls until all are finished, computes those that were
/// given back, and compares all with the CPU and in order. `between` runs before each poll.
fn run(queue: &mut Jobs, seed: u64, count: usize, mut between: impl FnMut(usize)) -> Sums {
    let mut random = Random(seed);
    let mut clock = clock(Instant::now());
    let mut cases: Vec<std::collections::VecDeque<Case>> = vec![Default::default(); 7];
    let (mut sums, mut submitted, mut polls) = (Sums::default(), 0, 0);
    while submitted < count || !queue.is_empty() {
        for _ in 0..random.below(20).min(count - submitted) {
            let stripe = random.below(cases.len());
            let (job, case) = job(&mut random, stripe as u64);
            cases[stripe].push_back(case);
            queue.submit(job);
            submitted += 1;
        }
        between(polls);
        polls += 1;
        for mut finished in queue.poll(clock()) {
            let case = cases[finished.job.stripe as usize].pop_front().expect("once");
            assert_eq!(finished.job.inputs, case.inputs, "in order");
            let answer = match finished.outcome {
                Outcome::Done(answer) => {
                    sums.done += 1;
                    answer
                }
                Outcome::Back(why) => {
                    assert_eq!(why, Back::Fenced);
                    sums.back += 1;
                    finished.job.compute()
                }
            };
            assert_eq!((finished.job.outputs, answer), case.by_cpu(), "{:?}", case.plan);
        }
    }
    assert_eq!(sums.done + sums.back, count);
    sums
}

#[test]
fn jobs_are_batched_and_finished_in_order() {
    for seed in 0..4 {
        let driver = FakeDriver::new(seed, MEMORY);
        let mut queue = opened(&driver, LIMITS).unwrap();
        let tested = driver.switches().launches();
        assert!(tested >= Kind::ALL.len(), "every kernel was tested at start");
        assert_eq!(run(&mut queue, seed, 1500, |_| ()), Sums { done: 1500, back: 0 });
        let batches = driver.switches().launches() - tested;
        assert!(batches < 1000, "{batches} launches of 1500 jobs");
        assert_eq!(queue.fence(), None);
    }
}

#[test]
fn a_device_that_computes_wrongly_is_never_opened() {
    let driver = FakeDriver::new(1, MEMORY);
    driver.switches().spoil(1);
    let fence = opened(&driver, LIMITS).map(|_| ()).unwrap_err();
    assert!(matches!(fence, Fence::Wrong(_)), "{fence}");
}

#[test]
fn a_wrong_result_that_is_sampled_fences_the_device_and_no_stripe_is_wrong() {
    let driver = FakeDriver::new(2, MEMORY);
    let mut queue = opened(&driver, Limits { sample: 1, ..LIMITS }).unwrap();
    let mut spoiled = false;
    let sums = run(&mut queue, 2, 600, |poll| {
        if poll == 20 {
            driver.switches().spoil(1);
            spoiled = true;
        }
    });
    assert!(spoiled && sums.done > 0 && sums.back > 0, "{sums:?}");
    assert!(matches!(queue.fence(), Some(Fence::Wrong(_))));
}

/// Jobs are sampled as often as was asked for, or not at all.
#[test]
fn an_unsampled_wrong_result_goes_unseen_and_a_sampled_one_does_not() {
    let code = Code::new(4, 1).unwrap();
    for (sample, seen) in [(0, false), (8, true)] {
        let driver = FakeDriver::new(3, MEMORY);
        let mut queue = opened(&driver, Limits { sample, ..LIMITS }).unwrap();
        // One bit of each batch of one job is wrong.
        driver.switches().spoil(usize::MAX);
        let mut random = Random(9);
        let mut clock = clock(Instant::now());
        let mut jobs = 0;
        while queue.fence().is_none() && jobs < 200 {
            let plan = Plan::generate(code);
            let case = Case::new(&mut random, &plan, 512);
            let (inputs, outputs) = (case.inputs, case.outputs);
            queue.submit(Job { stripe: 0, plan, inputs, outputs });
            jobs += 1;
            while !queue.is_empty() {
                queue.poll(clock());
            }
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
        Some(Fence::Failed(error)) => assert_eq!(error.problem, Problem::Lost),
        other => panic!("{other:?}"),
    }
}

/// What a hung device does later reaches no job: their memory was never its own.
#[test]
fn a_hung_device_drains_to_the_cpu_and_may_wake_up_later() {
    let driver = FakeDriver::new(6, MEMORY);
    let limits = Limits { patience: Duration::from_millis(300), ..LIMITS };
    // A busy machine may need longer for the test at start.
    let mut queue = opened(&driver, LIMITS).unwrap().patient(limits.patience);
    driver.switches().hang(true);
    let start = Instant::now();
    let sums = run(&mut queue, 6, 100, |_| ());
    assert_eq!(sums, Sums { done: 0, back: 100 });
    assert_eq!(queue.fence(), Some(&Fence::Hung));
    assert!(start.elapsed() >= limits.patience);
    driver.switches().hang(false);
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
fn jobs_that_do_not_fit_are_given_back_in_their_turn() {
    let driver = FakeDriver::new(8, MEMORY);
    let mut queue = opened(&driver, LIMITS).unwrap();
    let mut random = Random(8);
    let plan = Plan::generate(Code::new(2, 1).unwrap());
    let lengths = [512, 1 << 19, 512, 100, 512];
    for len in lengths {
        let Case { inputs, outputs, .. } = Case::new(&mut random, &plan, len);
        queue.submit(Job { stripe: 3, plan: plan.clone(), inputs, outputs });
    }
    let mut clock = clock(Instant::now());
    let mut found = Vec::new();
    while !queue.is_empty() {
        let finished = queue.poll(clock());
        found.extend(finished.iter().map(|f| (f.job.strip_len(), f.outcome.clone())));
    }
    let fits = |len| matches!(len, 512);
    assert_eq!(found.len(), lengths.len());
    for ((len, outcome), right) in found.into_iter().zip(lengths) {
        assert_eq!(len, right);
        assert_eq!(outcome == Outcome::Back(Back::Unfit), !fits(len), "{len}: {outcome:?}");
    }
}

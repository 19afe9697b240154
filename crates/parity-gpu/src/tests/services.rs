//! The service over the fake device: tickets of several threads, and every way to fail.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use io::{Buf, BufMut, Pool};
use parity::Code;
use parity::offload::{Done, Job, Offload, Operation, Ticket, Undone};

use super::bench::Random;
use crate::fake::FakeDriver;
use crate::{Asked, Event, Fence, Handle, Limits, Load, Placement, Service};

/// Nothing is late but what hangs, on a busy machine too.
const LIMITS: Limits = Limits { sample: 16, ..super::bench::LIMITS };

/// Jobs are given up soon, and a device fenced a little later.
const HASTY: Limits =
    Limits { patience: Duration::from_millis(600), late: Duration::from_millis(100), ..LIMITS };

/// Bytes of a buffer.
const STRIP: usize = 4096;
/// Bytes of a strip that may be worth a device.
const LARGE: usize = 32 << 10;

/// A service on a fake device, with what it told.
struct Bench {
    driver: FakeDriver,
    service: Service,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Bench {
    fn new(seed: u64, limits: Limits) -> Bench {
        let driver = FakeDriver::new(seed, 3 << 20);
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = events.clone();
        let tell = Box::new(move |event| told.lock().unwrap().push(event));
        let service = Service::start(load(&driver), 0, limits, tell).unwrap();
        service.opened().unwrap();
        until(|| !events.lock().unwrap().is_empty());
        assert_eq!(events.lock().unwrap().pop(), Some(Event::Opened("fake".to_owned())));
        Bench { driver, service, events }
    }

    fn told(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A pool whose memory the device reaches, once it does.
    fn pool(&self, pieces: usize) -> Pool {
        let before = self.service.figures().reached;
        let pool = Pool::reached(STRIP, pieces, Some(&self.service.reach()));
        until(|| self.service.figures().reached > before);
        pool
    }
}

/// What gives a service this driver.
fn load(driver: &FakeDriver) -> Load {
    let driver = driver.clone();
    Box::new(|| Ok(Box::new(driver)))
}

/// Lets others run until something is so.
fn until(so: impl Fn() -> bool) {
    while !so() {
        std::thread::yield_now();
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a ticket.
fn wait(ticket: Ticket<BufMut>) -> Done<BufMut> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut ticket = pin!(ticket);
    loop {
        match ticket.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

use core::future::Future;

/// A buffer of a pool, or of none, with random bytes.
fn buffer(pool: &Pool, random: &mut Random, len: usize) -> BufMut {
    let mut buffer = pool.take(len).unwrap_or_else(|| Pool::single(len));
    buffer.copy_from_slice(&random.bytes(len));
    buffer
}

/// A job of any of several kinds, on buffers of `pool`.
fn job(pool: &Pool, random: &mut Random) -> Job<Buf, BufMut> {
    let code = Code::new(1 + random.below(8), 1 + random.below(5)).unwrap();
    let (k, strips) = (code.data(), code.strips());
    let operation = match random.below(5) {
        0 => Operation::generate(code),
        1 => Operation::update(code, &[k - 1], &(k..strips).collect::<Vec<_>>()),
        2 => Operation::verify(code),
        3 => Operation::checksum(2, 512),
        _ => {
            let present: Vec<_> = (0..strips).map(|i| i != 0).collect();
            Operation::recover(code, &present, &[0]).unwrap()
        }
    };
    let len = 512 * (1 + random.below(STRIP / 512));
    let strips = operation.reads().len();
    let inputs = (0..strips).map(|_| buffer(pool, random, len).freeze()).collect();
    let outputs = operation.writes().iter().map(|_| buffer(pool, random, len)).collect();
    Job { operation, inputs, outputs }
}

/// P and Q of four strips, on buffers of `pool`.
fn generation(pool: &Pool, random: &mut Random) -> Job<Buf, BufMut> {
    let operation = Operation::generate(Code::new(4, 2).unwrap());
    let inputs = (0..4).map(|_| buffer(pool, random, STRIP).freeze()).collect();
    let outputs = (0..2).map(|_| buffer(pool, random, STRIP)).collect();
    Job { operation, inputs, outputs }
}

/// What a job is to give, and what it takes to do it here if the device doesn't.
struct Right {
    job: Job<Vec<u8>, Vec<u8>>,
    /// The job's own inputs, which the caller shares with it.
    inputs: Vec<Buf>,
}

impl Right {
    fn of(job: &Job<Buf, BufMut>) -> Right {
        let inputs = job.inputs.iter().map(|input| input.to_vec()).collect();
        let outputs = job.outputs.iter().map(|output| output.to_vec()).collect();
        let copy = Job { operation: job.operation.clone(), inputs, outputs };
        Right { job: copy, inputs: job.inputs.clone() }
    }

    /// Whether the job was done, by the device or, if that was not, here from the same inputs;
    /// either way as it should be.
    fn check(mut self, done: Done<BufMut>) -> bool {
        let by_device = done.is_ok();
        let (answer, outputs) = done.unwrap_or_else(|Undone| {
            let copied = |output: &Vec<u8>| {
                let mut other = Pool::single(output.len());
                other.copy_from_slice(output);
                other
            };
            let mut outputs: Vec<BufMut> = self.job.outputs.iter().map(copied).collect();
            (self.job.operation.compute_in(&self.inputs, &mut outputs), outputs)
        });
        assert_eq!(self.job.compute(), answer, "{:?}", self.job.operation);
        assert!(outputs.iter().zip(&self.job.outputs).all(|(found, right)| found[..] == right[..]));
        by_device
    }
}

/// Does jobs from several threads; how many of them were done by the device. `at` runs in one of
/// the threads before its 20th job.
fn run(bench: &Bench, pool: &Pool, jobs: usize, at: impl Fn() + Sync) -> usize {
    let core = |number: usize| {
        let handle = bench.service.handle(Placement::Gpu);
        let mut random = Random(number as u64);
        let mut done = 0;
        let mut tickets = Vec::new();
        for turn in 0..jobs {
            if number == 0 && turn == 20 {
                at();
            }
            let job = job(pool, &mut random);
            if handle.wants(&job.operation, job.strip_len(), false) {
                tickets.push((Right::of(&job), handle.submit(job)));
            }
            let some = random.below(8);
            while tickets.len() > some {
                // Any order will do.
                let (right, ticket) = tickets.swap_remove(random.below(tickets.len()));
                done += usize::from(right.check(wait(ticket)));
            }
        }
        for (right, ticket) in tickets {
            done += usize::from(right.check(wait(ticket)));
        }
        done
    };
    std::thread::scope(|scope| {
        let cores: Vec<_> = (0..3).map(|number| scope.spawn(move || core(number))).collect();
        cores.into_iter().map(|core| core.join().unwrap()).sum()
    })
}

#[test]
fn several_cores_get_what_is_right() {
    let bench = Bench::new(1, LIMITS);
    let pool = bench.pool(100);
    assert_eq!(run(&bench, &pool, 200, || ()), 600);
    let figures = bench.service.figures();
    assert_eq!((figures.jobs, figures.undone, figures.kept), (600, 0, 0));
    assert!(figures.sampled > 10 && figures.batches > 0, "{figures:?}");
    assert_eq!((bench.driver.switches().strays(), bench.told()), (0, Vec::new()));
    assert_eq!(pool.free(), pool.pieces());
    drop(pool);
    until(|| bench.service.figures().reached == 0);
}

/// Strips in memory that the device reaches stay where they are, both ways.
#[test]
fn strips_that_the_device_reaches_are_not_copied() {
    let bench = Bench::new(2, LIMITS);
    let handle = bench.service.handle(Placement::Gpu);
    let (reached, other) = (bench.pool(6), Pool::new(STRIP, 6));
    for (pool, copied) in [(&reached, 0), (&other, 6 * STRIP)] {
        let before = bench.driver.switches().copied();
        let job = generation(pool, &mut Random(1));
        let right = Right::of(&job);
        assert!(right.check(wait(handle.submit(job))));
        let found = bench.driver.switches().copied() - before;
        assert!((copied..copied + 256).contains(&found), "{found} bytes, {copied} expected");
    }
}

#[test]
fn nothing_is_wrong_whatever_goes_wrong() {
    type Break = (fn(&FakeDriver), fn(&Fence) -> bool);
    let breaks: [Break; 5] = [
        (|driver| driver.switches().lose(), |fence| matches!(fence, Fence::Failed(_))),
        (|driver| driver.switches().refuse(1), |fence| matches!(fence, Fence::Failed(_))),
        (|driver| driver.switches().hang(true), |fence| *fence == Fence::Hung),
        (|driver| driver.switches().block(true), |fence| *fence == Fence::Hung),
        (|driver| driver.switches().spoil(1), |fence| matches!(fence, Fence::Wrong { .. })),
    ];
    for (number, (how, why)) in breaks.into_iter().enumerate() {
        let bench = Bench::new(number as u64, Limits { sample: 1, ..HASTY });
        let pool = bench.pool(100);
        run(&bench, &pool, 100, || how(&bench.driver));
        // On a busy machine all the rest may have been kept from it as late.
        let handle = bench.service.handle(Placement::Gpu);
        while bench.service.fence().is_none() {
            let job = generation(&pool, &mut Random(1));
            if handle.wants(&job.operation, STRIP, false) {
                let right = Right::of(&job);
                right.check(wait(handle.submit(job)));
            }
            std::thread::yield_now();
        }
        let fence = bench.service.fence().unwrap();
        assert!(why(&fence), "{number}: {fence}");
        until(|| !bench.told().is_empty());
        assert_eq!(bench.told(), [Event::Fenced(fence)]);
        assert!(!handle.wants(&Operation::generate(Code::new(4, 2).unwrap()), STRIP, false));
        let late = handle.submit(generation(&pool, &mut Random(1)));
        assert_eq!(wait(late).map(|_| ()), Err(Undone));
        bench.driver.switches().block(false);
    }
}

/// Buffers of jobs that were given up come back once the device has passed them, not before.
#[test]
fn limbo_is_kept_until_the_device_has_passed_it() {
    let bench = Bench::new(3, HASTY);
    let pool = bench.pool(12);
    let handle = bench.service.handle(Placement::Gpu);
    let launches = bench.driver.switches().launches();
    bench.driver.switches().hang(true);
    let job = generation(&pool, &mut Random(1));
    assert_eq!(wait(handle.submit(job)).map(|_| ()), Err(Undone));
    until(|| bench.service.fence().is_some());
    assert_eq!((bench.service.fence(), pool.free()), (Some(Fence::Hung), 6));
    // Its memory is used by nobody else: what the device writes now, it writes there.
    let others: Vec<_> = (0..6).map(|_| pool.take(STRIP).unwrap()).collect();
    assert!(pool.take(STRIP).is_none());
    let before: Vec<_> = others.iter().map(|other| other.to_vec()).collect();
    bench.driver.switches().hang(false);
    until(|| bench.driver.switches().launches() > launches && pool.free() == 6);
    assert!(others.iter().zip(&before).all(|(other, before)| other[..] == before[..]));
}

/// A job is given up while others can still be done; its device is not fenced for that.
#[test]
fn a_late_device_is_left_alone_until_it_is_back() {
    let limits = Limits { late: Duration::from_millis(50), ..LIMITS };
    let bench = Bench::new(3, limits);
    let pool = bench.pool(12);
    let handle = bench.service.handle(Placement::Gpu);
    bench.driver.switches().hang(true);
    let job = generation(&pool, &mut Random(1));
    let operation = job.operation.clone();
    assert_eq!(wait(handle.submit(job)).map(|_| ()), Err(Undone));
    assert!(!handle.wants(&operation, STRIP, false), "while it is late");
    bench.driver.switches().hang(false);
    // The job's buffers come back a moment after its device is open again.
    until(|| handle.wants(&operation, STRIP, false) && pool.free() == 12);
    assert_eq!(bench.service.fence(), None);
}

/// A pool whose memory a device may yet write to is never freed.
#[test]
fn pools_that_end_under_a_blocked_driver_are_kept() {
    let bench = Bench::new(4, HASTY);
    let pool = bench.pool(12);
    let handle = bench.service.handle(Placement::Gpu);
    bench.driver.switches().block(true);
    let job = generation(&pool, &mut Random(1));
    assert_eq!(wait(handle.submit(job)).map(|_| ()), Err(Undone));
    until(|| bench.driver.switches().blocked_calls() > 0 && bench.service.fence().is_some());
    let unused = Pool::reached(STRIP, 2, Some(&bench.service.reach()));
    drop((pool, unused));
    // The first pool has a job in limbo; the second one's memory lies before the blocked thread.
    assert_eq!(bench.service.figures().kept, 2 * STRIP as u64);
    let driver = bench.driver.clone();
    drop(bench);
    assert!(crate::is_stuck(), "its thread is left in the driver");
    driver.switches().block(false);
}

/// It is said once, and strips are copied.
#[test]
fn memory_that_can_not_be_shared_is_told() {
    let bench = Bench::new(4, LIMITS);
    bench.driver.switches().fill(true);
    let pool = |strips| Pool::reached(STRIP, strips, Some(&bench.service.reach()));
    let (pool, other) = (pool(12), pool(3));
    until(|| bench.service.figures().unshared == 15 * STRIP as u64);
    let handle = bench.service.handle(Placement::Gpu);
    let job = generation(&pool, &mut Random(1));
    let right = Right::of(&job);
    assert!(right.check(wait(handle.submit(job))));
    match &bench.events.lock().unwrap()[..] {
        [Event::NotShared(error)] => assert_eq!(error.asked, Asked::Register),
        events => panic!("{events:?}"),
    }
    drop((pool, other));
}

/// Memory whose device is fenced as hung is kept too, and freed by none.
#[test]
fn pools_that_end_while_the_device_hangs_are_kept() {
    let bench = Bench::new(4, HASTY);
    let (pool, other) = (bench.pool(12), bench.pool(3));
    let handle = bench.service.handle(Placement::Gpu);
    bench.driver.switches().hang(true);
    let job = generation(&pool, &mut Random(1));
    assert_eq!(wait(handle.submit(job)).map(|_| ()), Err(Undone));
    until(|| bench.service.fence().is_some());
    drop(other);
    until(|| bench.service.figures().reached == 12 * STRIP as u64);
    assert_eq!(bench.service.figures().kept, 3 * STRIP as u64);
}

#[test]
fn a_service_that_ends_answers_all_tickets() {
    for hangs in [false, true] {
        // Where it works, what was asked for is waited for.
        let bench = Bench::new(5, if hangs { HASTY } else { LIMITS });
        let pool = bench.pool(60);
        let handle: Handle = bench.service.handle(Placement::Gpu);
        let asked = bench.driver.switches().asked();
        bench.driver.switches().hang(hangs);
        let mut random = Random(1);
        let jobs: Vec<_> = (0..10).map(|_| generation(&pool, &mut random)).collect();
        let submit = |job| (Right::of(&job), handle.submit(job));
        let tickets: Vec<_> = jobs.into_iter().map(submit).collect();
        until(|| bench.driver.switches().asked() > asked);
        let (reach, events) = (bench.service.reach(), bench.events.clone());
        drop(bench);
        for (right, ticket) in tickets {
            assert!(!right.check(wait(ticket)) || !hangs);
        }
        assert!(events.lock().unwrap().is_empty());
        // Pools outlive the service; where it hung, what it had is gone.
        assert_eq!(pool.free() == 60, !hangs);
        drop((pool, reach));
        let late = handle.submit(generation(&Pool::new(STRIP, 6), &mut random));
        assert_eq!(wait(late).map(|_| ()), Err(Undone));
    }
}

#[test]
fn a_device_that_can_not_be_opened_is_an_error() {
    let start = |driver: &FakeDriver, number| {
        let limits = Limits { start: Duration::from_millis(300), ..HASTY };
        Service::start(load(driver), number, limits, Box::new(|_| ())).unwrap().opened()
    };
    let driver = FakeDriver::new(6, 3 << 20);
    assert!(matches!(start(&driver, 1), Err(Fence::Failed(_))));
    driver.switches().spoil(1);
    assert!(matches!(start(&driver, 0), Err(Fence::Wrong { .. } | Fence::Hung)));
    driver.switches().block(true);
    assert_eq!(start(&driver, 0), Err(Fence::Hung));
    driver.switches().block(false);
    let driver = FakeDriver::new(6, 3 << 20);
    driver.switches().hang(true);
    assert_eq!(start(&driver, 0), Err(Fence::Hung));
    driver.switches().hang(false);
}

/// A driver that takes its time keeps nobody waiting: jobs are done here meanwhile.
#[test]
fn nobody_waits_for_a_device_to_open() {
    let driver = FakeDriver::new(8, 3 << 20);
    driver.switches().block(true);
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = events.clone();
    let tell = Box::new(move |event| told.lock().unwrap().push(event));
    let service = Service::start(load(&driver), 0, LIMITS, tell).unwrap();
    let operation = Operation::generate(Code::new(4, 2).unwrap());
    let handle = service.handle(Placement::Gpu);
    assert!(!handle.wants(&operation, STRIP, false) && service.device().is_none());
    let pool = Pool::reached(STRIP, 8, Some(&service.reach()));
    driver.switches().block(false);
    service.opened().unwrap();
    assert!(handle.wants(&operation, STRIP, false));
    until(|| service.figures().reached > 0);
    assert_eq!(service.device(), Some("fake".to_owned()));
    until(|| !events.lock().unwrap().is_empty());
    assert_eq!(events.lock().unwrap()[..], [Event::Opened("fake".to_owned())]);
    drop(pool);
}

/// What `auto` does follows what both sides were measured to take, and goes on following it.
#[test]
fn auto_gives_jobs_away_while_that_pays_and_takes_them_back() {
    let bench = Bench::new(7, LIMITS);
    let pool = Pool::reached(LARGE, 6, Some(&bench.service.reach()));
    let handle = bench.service.handle(Placement::Auto);
    let operation = Operation::generate(Code::new(4, 2).unwrap());
    // What a core does here takes this long.
    let spin = |time: Duration| {
        handle.here(&operation, LARGE, &mut || {
            let since = Instant::now();
            while since.elapsed() < time {
                core::hint::spin_loop();
            }
        });
    };
    let jobs = |wanted: bool, time: Duration| {
        while handle.wants(&operation, LARGE, false) != wanted {
            spin(time);
        }
    };
    jobs(true, Duration::from_millis(20));
    let mut random = Random(3);
    let inputs = (0..4).map(|_| buffer(&pool, &mut random, LARGE).freeze()).collect();
    let outputs = (0..2).map(|_| buffer(&pool, &mut random, LARGE)).collect();
    let job = Job { operation: operation.clone(), inputs, outputs };
    let right = Right::of(&job);
    assert!(right.check(wait(handle.submit(job))), "the device does it");
    assert_eq!(bench.service.figures().jobs, 1);
    jobs(false, Duration::ZERO);
    assert!(!handle.wants(&operation, LARGE, true), "a lone one least of all");
    assert_eq!(bench.service.fence(), None);
}

/// What is done where follows the placement, and fits.
#[test]
fn handles_want_what_their_placement_says() {
    let bench = Bench::new(7, LIMITS);
    let operation = Operation::generate(Code::new(4, 2).unwrap());
    let wants = |placement: Placement, len: usize| {
        bench.service.handle(placement).wants(&operation, len, false)
    };
    assert!(!wants(Placement::Cpu, STRIP) && wants(Placement::Gpu, STRIP));
    assert!(!wants(Placement::Auto, STRIP), "small");
    assert!(!wants(Placement::Gpu, 1 << 20) && !wants(Placement::Gpu, 100), "unfit");
    let handle = bench.service.handle(Placement::Auto);
    let mut done = 0;
    (0..40).for_each(|_| handle.here(&operation, STRIP, &mut || done += 1));
    assert_eq!(done, 40);
}

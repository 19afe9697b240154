//! The generator in virtual time, on drives of a model and on a list of what it asks for.

use io::{Buf, BufMut, Env};
use pace::spec::Steady;
use palisade_workload::generate::share;
use palisade_workload::{Extent, Order, Raw, Shape, Share, Tally, Target, fill, generate};
use sim::{DriveConfig, SharedSimDrive, World, WorldConfig};
use std::cell::RefCell;
use std::rc::Rc;
use units::{CoreId, Nanos};

const DRIVE: u64 = 16 << 20;
const SECOND: Nanos = Nanos::from_millis(1_000);

/// A target that notes what it is asked for and passes it on.
#[derive(Clone)]
struct Noting<T> {
    behind: T,
    asked: Rc<RefCell<Vec<(bool, u64)>>>,
    /// Added to the address of every second request.
    astray: u64,
}

impl<T: Target> Noting<T> {
    fn place(&self, reads: bool, at: u64) -> u64 {
        let mut asked = self.asked.borrow_mut();
        asked.push((reads, at));
        let astray = if asked.len().is_multiple_of(2) { self.astray } else { 0 };
        (at + astray) % self.behind.bytes()
    }
}

impl<T: Target> Target for Noting<T> {
    fn bytes(&self) -> u64 {
        self.behind.bytes()
    }

    async fn read(&self, at: u64, into: BufMut) -> (bool, BufMut) {
        let at = self.place(true, at);
        self.behind.read(at, into).await
    }

    async fn write(&self, at: u64, data: Buf) -> bool {
        let at = self.place(false, at);
        self.behind.write(at, data).await
    }
}

type Asked = Vec<(bool, u64)>;

/// Runs a load on one drive `sn840`, of which `filled` bytes were written before; what came of it
/// and what it asked for.
fn ran(shape: Shape, counted: Nanos, filled: u64, astray: u64) -> (Tally, Asked) {
    let world: World<()> = World::new(WorldConfig::new(5));
    let model = pace::by_name("sn840").expect("is there");
    let pace = pace::DriveState::many(model, 1.0, 1).remove(0);
    let shared = SharedSimDrive::new(DriveConfig {
        block_bytes: 4096,
        split_percent: 0,
        record: false,
        littered: true,
        pace: Some(pace),
        ..DriveConfig::new(DRIVE, 1)
    });
    let env = world.env(CoreId(0));
    let raw = Raw::new(vec![env.bind(&shared)], 0, DRIVE);
    let asked = Rc::new(RefCell::new(Vec::new()));
    let target = Noting { behind: raw.clone(), asked: asked.clone(), astray };
    let own = env.clone();
    let tally = world.run_until(async move {
        assert_eq!(fill(&own, raw, 0..filled, 64 << 10, 4).await, 0);
        let from = own.now().after(Nanos::from_millis(1));
        let extent = Extent { from, until: from.after(counted), interval: Nanos(counted.0 / 4) };
        let clock = own.clone();
        generate(&own, target, Share::of(shape, 0, 1), extent, 1, move || clock.now()).await
    });
    let asked = asked.take();
    (tally, asked)
}

fn random(reads: u8, depth: usize) -> Shape {
    Shape::one(reads, Order::Random, 4096, depth, DRIVE)
}

#[test]
fn a_drive_is_measured_as_its_model_says() {
    let model = pace::by_name("sn840").expect("is there");
    for (reads, depth) in [(100, 1), (100, 64), (0, 1), (0, 64), (70, 1), (70, 64)] {
        let counted = Nanos::from_millis(40);
        let (tally, asked) = ran(random(reads, depth), counted, DRIVE, 0);
        let part = f64::from(reads) / 100.0;
        let load = Steady { reads: part, bytes: 4096, depth: depth as u32 };
        let off = tally.rate() / model.rate(load) - 1.0;
        assert!(off.abs() < 0.03, "{reads}% at depth {depth}: {off}");
        // Little's law: as many are under way as were asked for.
        let under_way = tally.rate() * tally.times().mean() / 1e9;
        assert!((under_way / depth as f64 - 1.0).abs() < 0.02, "{under_way} under way");
        assert_eq!((tally.failed, tally.wrong.0), (0, 0));
        assert_eq!(tally.made, asked.len() as u64);
        let seen = asked.iter().filter(|(reads, _)| *reads).count() as f64 / asked.len() as f64;
        assert!((seen - part).abs() < 0.03, "{seen} read");
        assert_eq!(tally.series.iter().sum::<u64>(), tally.operations());
        assert_eq!(tally.reads.bytes + tally.writes.bytes, tally.operations() * 4096);
        let steady = tally.operations() as f64 / 4.0;
        assert!(tally.series.iter().all(|count| (*count as f64 / steady - 1.0).abs() < 0.1));
    }
}

#[test]
fn reads_of_what_nobody_wrote_are_seen() {
    let (tally, asked) = ran(random(100, 4), Nanos::from_millis(4), DRIVE / 2, 0);
    let beyond = asked.iter().filter(|(_, at)| *at >= DRIVE / 2);
    assert_eq!(tally.wrong.0, beyond.clone().count() as u64);
    assert_eq!(tally.wrong.1, beyond.map(|(_, at)| *at).min());
    assert!(tally.wrong.0 > 50);
}

#[test]
fn requests_that_go_elsewhere_are_seen() {
    let (tally, asked) = ran(random(100, 4), Nanos::from_millis(4), DRIVE, 4096);
    assert_eq!(tally.wrong.0, asked.len() as u64 / 2);
    let (tally, _) = ran(random(100, 4), Nanos::from_millis(4), DRIVE, 0);
    assert_eq!(tally.wrong, (0, None));
}

#[test]
fn sequential_jobs_begin_apart_and_go_on_behind_the_end() {
    let (jobs, bytes) = (4, 64 << 10);
    let order = Order::Sequential;
    let shape = Shape { order, jobs, ..Shape::one(100, order, bytes, 2, DRIVE) };
    let (tally, asked) = ran(shape, SECOND, DRIVE, 0);
    let places = DRIVE / bytes as u64;
    let first: Vec<u64> = asked.iter().take(2 * jobs).map(|(_, at)| at / bytes as u64).collect();
    for job in 0..jobs as u64 {
        let start = job * places / jobs as u64;
        assert!(first.contains(&start) && first.contains(&(start + 1)), "{first:?}");
    }
    // Each place is read as often as any other, to one time of each job.
    let mut counts = vec![0u64; places as usize];
    asked.iter().for_each(|(_, at)| counts[(at / bytes as u64) as usize] += 1);
    let (least, most) = (counts.iter().min().expect("some"), counts.iter().max().expect("some"));
    assert!(*least > 10 && most - least <= 2 * jobs as u64, "{least} to {most}");
    assert_eq!(tally.wrong.0, 0);
}

/// A read takes 87.4 us. At 8,000 a second it hardly waits; at 14,000 one task has no time for all.
#[test]
fn an_open_load_counts_what_requests_wait() {
    let open = |depth, rate| {
        let shape = Shape { rate: Some(rate), ..random(100, depth) };
        ran(shape, Nanos::from_millis(100), DRIVE, 0).0
    };
    let easy = open(4, 8_000.0);
    assert!((easy.rate() / 8_000.0 - 1.0).abs() < 0.01, "{}", easy.rate());
    // A histogram tells it to a hundredth.
    let least = Nanos(86_900);
    assert!(easy.times().below(0.5) >= least && easy.times().longest() < Nanos(100_000));
    let late = open(1, 14_000.0);
    assert!((late.rate() / 11_438.0 - 1.0).abs() < 0.01, "{}", late.rate());
    // So many more come in 0.1 s than are done that the last wait for a fifth of it.
    assert!(late.times().longest() > Nanos::from_millis(15), "{:?}", late.times().longest());
    let enough = open(2, 14_000.0);
    assert!((enough.rate() / 14_000.0 - 1.0).abs() < 0.01, "{}", enough.rate());
}

#[test]
fn an_area_bounds_where_requests_go() {
    let shape = Shape { area: DRIVE / 8, ..random(0, 8) };
    let (tally, asked) = ran(shape, Nanos::from_millis(4), 0, 0);
    assert!(asked.iter().all(|(reads, at)| !reads && *at < DRIVE / 8));
    assert!(tally.writes.times.count() > 100 && tally.reads.times.count() == 0);
}

#[test]
fn cores_share_all_jobs() {
    for (count, cores) in [(1, 2), (16, 2), (7, 3), (0, 2)] {
        let all: Vec<usize> = (0..cores).flat_map(|core| share(count, core, cores)).collect();
        assert_eq!(all, (0..count).collect::<Vec<_>>());
    }
}

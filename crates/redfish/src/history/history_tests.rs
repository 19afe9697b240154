//! The past against a plain list of all samples.

use super::*;
use crate::counters::{BUCKETS, CoreCounters, Counters, Operations, VolumeCounters};
use crate::sample::Random;
use crate::view::*;
use number::decode;
use std::time::Instant;

pub(crate) const NOW: u64 = 1_800_000_000;

/// A daemon whose volumes and drives are busy: what its views say, and in a list what that means.
pub(crate) struct World {
    pub random: Random,
    pub view: View,
    /// Seconds of the machine's clock, and of the one that nobody sets.
    pub at: u64,
    pub steady: u64,
}

impl World {
    /// So many volumes in arrays of `each`, and drives.
    pub fn new(seed: u64, volumes: usize, each: usize, drives: usize) -> Self {
        let mut view = View::default();
        let ids: Vec<String> =
            (0..volumes).map(|n| format!("{n:08}-0000-4000-8000-000000000000")).collect();
        for (n, ids) in ids.chunks(each).enumerate() {
            let volume = |uuid: &String| Volume {
                array: format!("a{n}"),
                name: uuid.clone(),
                uuid: uuid.clone(),
                size_bytes: 1,
            };
            let slots = (0..drives).filter(|at| at % volumes.div_ceil(each) == n);
            let (slots, drive_io) = slots
                .enumerate()
                .map(|(slot, at)| {
                    let slot = slot as u16;
                    (slot_of(slot, at), DriveIo { slot, ..DriveIo::default() })
                })
                .unzip();
            view.status.arrays.push(Array {
                name: format!("a{n}"),
                uuid: format!("{n:08}-1111-4000-8000-000000000000"),
                state: ArrayState::Optimal,
                volumes: ids.iter().map(volume).collect(),
                slots,
                drive_io,
                ..Array::default()
            });
        }
        view.drives = (0..drives).map(drive).collect();
        let known = |uuid: &String| {
            Arc::new(VolumeCounters { volume: uuid.clone(), ..VolumeCounters::default() })
        };
        let volumes = ids.iter().map(known).collect();
        view.counters =
            Arc::new(Counters { is_on: true, since: 1, volumes, ..Counters::default() });
        Self { random: Random::new(seed), view, at: NOW, steady: 1 }
    }

    /// The daemon starts anew: all counters are 0.
    pub fn restart(&mut self) {
        let known = |own: &Arc<VolumeCounters>| {
            Arc::new(VolumeCounters { volume: own.volume.clone(), ..VolumeCounters::default() })
        };
        let volumes = self.view.counters.volumes.iter().map(known).collect();
        let since = self.view.counters.since + 1;
        self.view.counters =
            Arc::new(Counters { is_on: true, since, volumes, ..Counters::default() });
        self.steady = 1;
        self.view.status.arrays.iter_mut().flat_map(|own| &mut own.drive_io).for_each(reset);
    }

    /// Time goes on, in which volumes whose number `is_busy` says do something.
    pub fn go_on(&mut self, seconds: u64, is_busy: impl Fn(usize) -> bool) -> Arc<View> {
        (self.at, self.steady) = (self.at + seconds, self.steady + seconds);
        let counters = Arc::make_mut(&mut self.view.counters);
        (counters.at, counters.nanos) = (self.at * 1000 + 400, self.steady * 1_000_000_000);
        let random = &mut self.random;
        for (_, own) in counters.volumes.iter_mut().enumerate().filter(|(n, _)| is_busy(*n)) {
            let own = Arc::make_mut(own);
            do_some(random, &mut own.reads);
            do_some(random, &mut own.writes);
        }
        let nanos = self.steady * 1_000_000_000;
        let asleep_nanos = counters.cores.first().map_or(0, |own| own.asleep_nanos)
            + random.below(seconds * 1_000_000_000);
        counters.cores = vec![CoreCounters { nanos, asleep_nanos, ..CoreCounters::default() }];
        for io in self.view.status.arrays.iter_mut().flat_map(|own| &mut own.drive_io) {
            io.reads += random.below(1000);
            io.write_bytes += random.below(1 << 30);
        }
        for drive in &mut self.view.drives {
            let smart = Smart {
                celsius: Some(random.below(60) as i32 - 5),
                percentage_used: 3,
                ..Smart::default()
            };
            drive.hardware = Arc::new(Hardware { smart: Some(smart), ..Hardware::default() });
        }
        Arc::new(self.view.clone())
    }
}

fn reset(io: &mut DriveIo) {
    *io = DriveIo { slot: io.slot, ..DriveIo::default() };
}

fn slot_of(slot: u16, drive: usize) -> SlotInfo {
    SlotInfo {
        slot,
        drive: Some(format!("/dev/d{drive}")),
        serial: String::new(),
        state: SlotState::InSync,
        read_errors: 0,
        rewritten: 0,
        wrong_strips: 0,
        failures: 0,
        timeouts: 0,
        reason: None,
        quarantined: false,
    }
}

fn drive(number: usize) -> KnownDrive {
    let drive = Drive {
        path: format!("/dev/d{number}"),
        serial: String::new(),
        bytes: 1,
        block_bytes: 512,
        state: DriveState::InUse,
        array: None,
        slot: None,
        signature: None,
        problem: None,
    };
    let hardware = Arc::default();
    KnownDrive {
        remote: None,
        id: format!("drive-{number}"),
        wwid: None,
        model: None,
        is_file: false,
        drive,
        hardware,
    }
}

fn do_some(random: &mut Random, own: &mut Operations) {
    own.under_way = random.below(9);
    for _ in 0..random.below(3) {
        let count = random.below(300);
        own.latency.buckets[random.below(BUCKETS as u64) as usize] += count;
        own.latency.nanos += count * random.below(1 << 20);
        own.bytes += count * 4096;
    }
}

/// A sample of a volume, as the list has it.
#[derive(Clone)]
struct Sampled {
    second: u64,
    span: f64,
    reads: Operations,
}

/// Volume 0's reads, and drive 0's temperature, in lists: a list for each step.
#[derive(Default)]
struct Oracle {
    lists: [Vec<(Sampled, f64)>; STEPS],
    last: u64,
}

impl Oracle {
    fn set_back(&mut self, second: u64) {
        for (step, list) in Step::ALL.into_iter().zip(&mut self.lists) {
            let (new, old) = (second / step.seconds(), self.last / step.seconds());
            let goes_on = step != Step::Seconds && new == old;
            // What had left the window does not come back.
            list.retain(|(own, _)| own.second / step.seconds() + step.points() as u64 > old);
            list.retain(|(own, _)| goes_on || own.second / step.seconds() < new);
        }
        self.last = second - 1;
    }

    fn put(&mut self, sampled: Sampled, celsius: f64) {
        self.last = sampled.second;
        self.lists.iter_mut().for_each(|list| list.push((sampled.clone(), celsius)));
    }

    /// Reads a second, mean microseconds, and what 99 of 100 are within; and the temperature.
    fn point(&self, step: Step, tick: u64) -> [Option<f64>; 4] {
        let list = self.lists[step as usize].iter();
        let own: Vec<_> = list.filter(|(own, _)| own.second / step.seconds() == tick).collect();
        if own.is_empty() {
            return [None; 4];
        }
        let rate = own.iter().map(|(s, _)| s.reads.done() as f64 / s.span).sum::<f64>();
        let mut all = Operations::default();
        own.iter().for_each(|(s, _)| all.add(&s.reads));
        let mean = (all.done() > 0).then(|| all.latency.nanos as f64 / all.done() as f64 / 1000.0);
        // From the slowest down, while one of 100 is not met.
        let mut slower = 0;
        let top = (0..BUCKETS).rev().find(|at| {
            slower += all.latency.buckets[*at];
            slower > all.done() / 100
        });
        let top = top.filter(|_| all.done() > 0).map(|at| 2_f64.powi(at as i32));
        let most = own.iter().map(|(_, celsius)| *celsius).fold(f64::MIN, f64::max);
        [Some(rate / own.len() as f64), mean, top, Some(most)]
    }

    fn check(&self, history: &History, about: &str) {
        let uuid = "00000000-0000-4000-8000-000000000000";
        let volume = Key::of(Kind::Volume, uuid).expect("a key");
        let drive = Key::of(Kind::Drive, "drive-0").expect("a key");
        for step in Step::ALL {
            let end = self.last / step.seconds();
            let begin = (end + 1).saturating_sub(step.points() as u64);
            let told = |key: &Key, column: usize, tick: u64| {
                let points = history.points(key, step)?;
                let at = tick.checked_sub(points.begin / step.seconds())?;
                *points.columns.get(column)?.get(at as usize)?
            };
            // All of what is near, and some of the rest.
            let ticks = (begin..=end).filter(|tick| end - tick < 8 || tick % 37 == 0);
            for tick in ticks {
                let expected = self.point(step, tick);
                let found = [
                    told(&volume, 0, tick),
                    told(&volume, 4, tick),
                    told(&volume, 6, tick),
                    told(&drive, 4, tick),
                ];
                for (at, (found, expected)) in found.into_iter().zip(expected).enumerate() {
                    let is_like = match (found, expected) {
                        (Some(found), Some(expected)) => {
                            (found - expected).abs()
                                <= expected.abs() / 500.0 + 0.5 * f64::from(at == 3)
                        }
                        (found, expected) => found == expected,
                    };
                    assert!(is_like, "{about}: {step:?} {tick} {at}: {found:?}, not {expected:?}");
                }
            }
        }
    }
}

/// What the first volume's reads were.
fn reads(view: &View) -> Operations {
    view.counters.volumes[0].reads
}

fn since(before: &Operations, now: &Operations) -> Operations {
    let mut did = Operations::default();
    for (own, (a, b)) in
        did.latency.buckets.iter_mut().zip(before.latency.buckets.iter().zip(now.latency.buckets))
    {
        *own = b - a;
    }
    did.latency.nanos = now.latency.nanos - before.latency.nanos;
    did
}

/// Time goes on, and a sample is taken.
fn sample(world: &mut World, history: &mut History, oracle: &mut Oracle, seconds: u64) {
    let (before, last) = (reads(&world.view), history.last());
    let had = history.before.as_ref().map(|before| before.counters.since);
    let view = world.go_on(seconds, |_| true);
    history.sample(&view);
    if history.last() == last {
        return;
    }
    assert_eq!(history.last(), world.at);
    if world.at <= oracle.last {
        oracle.set_back(world.at);
    }
    oracle.last = world.at;
    if had == Some(view.counters.since) {
        let celsius = view.drives[0].hardware.smart.as_ref().and_then(|own| own.celsius);
        let reads = since(&before, &reads(&view));
        let sampled = Sampled { second: world.at, span: seconds as f64, reads };
        oracle.put(sampled, f64::from(celsius.expect("known")));
    }
}

/// The same after it was written and read.
pub(crate) fn through_a_file(history: History) -> (History, usize) {
    let mut bytes = Vec::new();
    let written = file::write(&Past::new(history), |piece| {
        bytes.extend_from_slice(piece);
        Ok::<_, ()>(())
    });
    written.expect("written");
    (History::read(&bytes).expect("read"), bytes.len())
}

/// What happens to the daemon next.
fn happen(world: &mut World, history: &mut History, oracle: &mut Oracle) {
    let missed = match world.random.below(50) {
        0 => 1 + world.random.below(2000),
        1..4 => 1 + world.random.below(5),
        _ => 1,
    };
    match world.random.below(400) {
        // It is down for a while.
        0 => {
            *history = through_a_file(core::mem::take(history)).0;
            world.at += world.random.below(40_000);
            world.restart();
        }
        1 => world.at += 3 + world.random.below(3000),
        2 => world.at -= 3 + world.random.below(50),
        3 if world.random.below(3) == 0 => {
            world.at -= 100 + world.random.below(8000);
            for _ in 0..clock::PATIENCE {
                sample(world, history, oracle, 1);
            }
        }
        _ => {}
    }
    sample(world, history, oracle, missed);
}

#[test]
fn points_are_what_a_list_of_all_samples_says() {
    for seed in 0..4 {
        let mut world = World::new(seed, 2, 1, 2);
        let (mut history, mut oracle) = (History::default(), Oracle::default());
        for n in 0..1500 {
            happen(&mut world, &mut history, &mut oracle);
            if n % 300 == 299 {
                oracle.check(&history, &format!("seed {seed}, after {n}"));
            }
        }
    }
}

#[test]
fn the_first_sample_and_a_missed_one_are_gaps() {
    let mut world = World::new(7, 1, 1, 0);
    let mut history = History::default();
    for seconds in [1, 1, 3, 1] {
        history.sample(&world.go_on(seconds, |_| false));
    }
    // One that is shown twice is one.
    history.sample(&Arc::new(world.view.clone()));
    let points = history.points(&Key::Machine, Step::Seconds).expect("points");
    assert_eq!(points.begin, NOW + 2);
    let zero = Some(0.0);
    assert_eq!(points.columns[0], [zero, None, None, zero, zero]);
    assert_eq!(points.columns[4], [None; 5], "no requests took no time");
    let minutes = history.points(&Key::Machine, Step::Minutes).expect("points");
    assert_eq!(minutes.columns[0], [zero], "the minute that goes on");
    assert_eq!(minutes.begin, NOW / 60 * 60);
}

#[test]
fn counters_that_began_anew_say_nothing_once() {
    let mut world = World::new(8, 1, 1, 1);
    let mut history = History::default();
    for _ in 0..3 {
        history.sample(&world.go_on(1, |_| true));
    }
    world.view.status.arrays[0].drive_io.iter_mut().for_each(reset);
    let own = &mut Arc::make_mut(&mut world.view.counters).volumes[0];
    Arc::make_mut(own).reads = Operations::default();
    history.sample(&world.go_on(1, |_| false));
    history.sample(&world.go_on(1, |_| false));
    for (key, at) in [("drive.drive-0", 0), ("volume.00000000-0000-4000-8000-000000000000", 0)] {
        let (step, key) = report_of(&format!("Seconds.{key}")).expect("a report");
        let column = &history.points(&key, step).expect("points").columns[at];
        let is_known: Vec<bool> = column.iter().map(Option::is_some).collect();
        assert_eq!(is_known, [true, true, false, true], "{key:?}");
    }
}

#[test]
fn identifiers_of_reports_are_read_back() {
    for id in ["Seconds", "Minutes", "Hours", "Hours.volume.a-b", "Seconds.drive.x.y.z"] {
        let (step, key) = report_of(id).expect(id);
        assert_eq!(report_id(step, &key), id);
    }
    for id in [
        "",
        "seconds",
        "Seconds.",
        "Seconds.x",
        "Seconds.volume",
        "Seconds.volume.",
        "Days",
        "Seconds..x",
        "Volumes",
    ] {
        assert_eq!(report_of(id), None, "{id}");
    }
}

#[test]
fn all_of_a_large_machine_fits_the_bound_in_memory_and_in_the_file() {
    let mut world = World::new(9, 1000, 63, 64);
    let mut history = History::default();
    assert_eq!(world.view.status.arrays.len(), 16);
    // Of each ring the first points, and behind a gap the last.
    for gap in [1, 718 * 3600, 1430 * 60, 560] {
        history.sample(&world.go_on(gap, |_| true));
        for _ in 0..25 {
            history.sample(&world.go_on(1, |at| at >= 990));
        }
    }
    assert!(history.bytes() <= 16 << 20, "{}", history.bytes());
    assert!(history.bytes() > 15 << 20, "{}", history.bytes());
    let count = |kind: Kind, step: Step| {
        let own = history.objects.values().filter(|own| own.kind == kind);
        own.filter(|own| own.rings[step as usize].is_some()).count()
    };
    for (kind, all) in [(Kind::Machine, 1), (Kind::Array, 16), (Kind::Drive, 64)] {
        assert_eq!(Step::ALL.map(|step| count(kind, step)), [all; 3], "{kind:?}");
    }
    assert_eq!(count(Kind::Volume, Step::Hours), 1000);
    let some = [Step::Seconds, Step::Minutes].map(|step| count(Kind::Volume, step));
    assert!(some.iter().all(|some| *some >= 30), "{some:?}");
    // The busy ones are among them.
    for n in 990..1000 {
        let key = Key::of(Kind::Volume, &format!("{n:08}-0000-4000-8000-000000000000"));
        let own = &history.objects[&key.expect("a key")];
        assert!(own.rings.iter().all(Option::is_some), "{n}");
    }
    let before = history.clone();
    let (after, bytes) = through_a_file(history);
    assert!(bytes <= 16 << 20, "{bytes}");
    assert!(after.bytes() <= 16 << 20);
    assert_eq!(before.objects.len(), after.objects.len());
    assert!(before.objects == after.objects, "what was written is read");
}

#[test]
fn what_is_gone_makes_room_and_is_forgotten_in_the_end() {
    let mut world = World::new(10, 1, 1, 0);
    let mut history = History::default();
    history.sample(&world.go_on(1, |_| false));
    for n in 0..MOST as u64 + 100 {
        let name = format!("gone-{n:05}");
        history.go_on(NOW + 2 + n);
        let row = Row { done: [1.0; 2], values: [n as f32; series::WIDTH_MOST], ..Row::default() };
        history.add(Key::of(Kind::Volume, &name).expect("a key"), &row, NOW + 2 + n);
        if n % 256 == 255 {
            history.give(NOW + 2 + n);
            assert!(history.objects.len() <= MOST && history.bytes() <= BYTES);
        }
    }
    let has = |history: &History, n: u64| {
        let key = Key::of(Kind::Volume, &format!("gone-{n:05}")).expect("a key");
        history.objects.contains_key(&key)
    };
    assert!(!has(&history, 0) && has(&history, 200) && has(&history, MOST as u64 + 99));
    world.at += 31 * 86_400;
    world.restart();
    history.clock = Clock::default();
    history.sample(&world.go_on(1, |_| false));
    assert!(history.objects.is_empty(), "{}", history.objects.len());
    assert_eq!(history.bytes(), 0);
}

/// Not a limit, but what it takes: `cargo test -p palisade-redfish --release -- --nocapture takes`.
#[test]
fn what_a_second_takes_is_told() {
    let mut world = World::new(11, 256, 64, 64);
    let mut history = History::default();
    let (mut taken, count) = (std::time::Duration::ZERO, 300);
    for _ in 0..count {
        let view = world.go_on(1, |_| true);
        let begin = Instant::now();
        history.sample(&view);
        taken += begin.elapsed();
    }
    println!("a sample of 64 drives and 256 busy volumes takes {:?}", taken / count);
    assert!(decode(0).is_some());
    assert_eq!(history.objects.len(), 1 + 4 + 256 + 64);
}

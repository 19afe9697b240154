//! The in-flight record: a whole group loses a drive at the same instant as a crash under load. It
//! starts by itself; every block is old or new, or listed as lost, and what is lost was being
//! written; then redundancy is right.
//!
//! The naive oracle: every write with its begin and end, and the columns of the stripes it changes.

use crate::common;

use common::oracle::Oracle;
use common::{FORCE, Machine, Rig, drives, duplicates, record, references};
use engine::Volume;
use engine::manage::command::{ArrayState, ManageError, Request, StartOptions, TaskKind};
use format::flight::{Columns, FlightPage, PageHead, decode, encode, page_bytes};
use format::journal::Place;
use format::{LostReason, SlotState};
use io::{Blocks, Env, Pool, Priority};
use layout::Level;
use sim::drive::{OpKind, Stage, Tears};
use sim::{DriveConfig, Rng, SharedSimDrive, WorldConfig};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use units::{CoreId, GroupNo, MIB, Nanos, Slot, StripIndex, StripeNo};

const STRIP: u64 = 16 << 10;
const BYTES: u64 = 480 << 10;
const BLOCK: u64 = 512;
const ALONE: StartOptions =
    StartOptions { start_degraded: false, accept_loss: false, ..StartOptions::NONE };
const DEGRADED: StartOptions =
    StartOptions { start_degraded: true, accept_loss: false, ..StartOptions::NONE };
/// A write may be named for so long after its end.
const LINGER: Nanos = Nanos::from_micros(9_000);

/// A write: where, how much, when it was over.
type Written = (u64, u64, Cell<Option<Nanos>>);
type Log = Rc<RefCell<Vec<Rc<Written>>>>;
type Parts = (Rc<Oracle>, Log, Machine);

struct Course {
    rig: Rig,
    drives: Vec<SharedSimDrive>,
    oracle: Rc<Oracle>,
    log: Log,
}

async fn write(course: Parts, volume: Volume<Machine>, (at, bytes, fua): (u64, u64, bool)) {
    let (oracle, log, env) = course;
    let written = Rc::new((at, bytes, Cell::new(None)));
    log.borrow_mut().push(written.clone());
    oracle.write(&volume, at, bytes, fua).await.unwrap();
    written.2.set(Some(env.now()));
}

impl Course {
    fn new(level: Level, width: usize, seed: u64, cache: bool, cores: u16) -> Self {
        Self::on(drives(width, seed, cache), level, seed, cache, cores)
    }

    fn on(drives: Vec<SharedSimDrive>, level: Level, seed: u64, cache: bool, cores: u16) -> Self {
        let mut config = WorldConfig::new(seed).with_cores(cores);
        config.mail_delay_most = Nanos::from_micros(20);
        let rig = Rig::with(config);
        rig.create(level, &drives, STRIP as u32).unwrap();
        let volumes = rig.volume(BYTES);
        let course = Self { rig, drives, oracle: Oracle::new(BYTES, cache), log: Rc::default() };
        course.fill(&volumes[0]);
        course.load(&volumes, seed);
        course
    }

    fn parts(&self, core: u16) -> Parts {
        (self.oracle.clone(), self.log.clone(), self.rig.world.env(CoreId(core)))
    }

    /// Everything is written once, and nothing is in flight.
    fn fill(&self, volume: &Volume<Machine>) {
        self.rig.world.block_on(CoreId(0), write(self.parts(0), volume.clone(), (0, BYTES, true)));
        self.rig.world.run_for(Nanos::from_micros(30_000));
    }

    /// Small, large and overlapping writes, with pauses. Each task has a third of the volume.
    fn load(&self, volumes: &[Volume<Machine>], seed: u64) {
        for task in 0..3 {
            let core = task as usize % volumes.len();
            let (volume, parts) = (volumes[core].clone(), self.parts(core as u16));
            let env = parts.2.clone();
            let mut rng = Rng::new(seed * 10 + task);
            let unit = u64::from(self.drives[0].info().block_bytes);
            let third = BYTES / 3 / unit;
            env.clone().spawn(Priority::First, async move {
                loop {
                    let most = [1, 4, 40, 120][rng.index(4)].min(third - 1);
                    let n = 1 + rng.below(most);
                    let from = task * third + rng.below(third - n);
                    let what = (from * unit, n * unit, rng.coin());
                    write(parts.clone(), volume.clone(), what).await;
                    env.sleep(Nanos::from_micros(rng.below(6_000))).await;
                }
            });
        }
    }

    /// Makes steps up to the next border of a request.
    fn step(&self) -> u64 {
        let before = self.rig.world.boundaries();
        while self.rig.world.boundaries() == before {
            self.rig.world.run_steps(1);
        }
        self.rig.world.boundaries()
    }

    /// What a cut of power leaves now.
    fn cut(&self, seed: u64) -> (Vec<SharedSimDrive>, Rc<Oracle>) {
        let left = self.drives.iter().map(|d| d.after_cut(true, seed)).collect();
        let oracle = self.oracle.fork();
        oracle.crashed();
        (left, oracle)
    }

    /// The blocks of each strip, by stripe, that writes were changing a moment ago.
    fn columns(&self, linger: Nanos) -> BTreeSet<(u64, u64)> {
        let layout = record(&self.drives[0]).layout().unwrap();
        let now = self.rig.world.now();
        let mut columns = BTreeSet::new();
        for written in self.log.borrow().iter() {
            let over = written.2.get();
            if over.is_none_or(|over| now.since(over) <= linger) {
                for at in (written.0..written.0 + written.1).step_by(BLOCK as usize) {
                    let place = layout.locate(at);
                    columns.insert((place.stripe.0, u64::from(place.offset) / BLOCK));
                }
            }
        }
        columns
    }
}

/// Reads everything: what can't be read, in blocks; what can must be old or new.
fn read_all(rig: &Rig, oracle: &Rc<Oracle>) -> BTreeSet<u64> {
    let volume = rig.open_volume().remove(0);
    let oracle = oracle.clone();
    rig.world.block_on(CoreId(0), async move {
        let mut lost = BTreeSet::new();
        for at in (0..BYTES).step_by(8 * BLOCK as usize) {
            let (result, got) = volume.read(at, Pool::single(8 * BLOCK as usize)).await;
            if result.is_ok() {
                oracle.check(at, &got, true);
                continue;
            }
            for at in (at..at + 8 * BLOCK).step_by(BLOCK as usize) {
                let (result, got) = volume.read(at, Pool::single(BLOCK as usize)).await;
                match result {
                    Ok(()) => oracle.check(at, &got, true),
                    Err(_) => _ = lost.insert(at),
                }
            }
        }
        lost
    })
}

fn start(drives: &[SharedSimDrive], seed: u64, options: StartOptions) -> Rig {
    start_on(drives, seed, options, 1 + (seed % 3) as u16)
}

fn start_on(drives: &[SharedSimDrive], seed: u64, options: StartOptions, cores: u16) -> Rig {
    let rig = Rig::new(seed, cores);
    rig.assemble(&references(drives), options).unwrap_or_else(|e| panic!("border {seed}: {e}"));
    rig
}

/// The lost blocks are those that are listed, and all of them were being written.
fn explained(rig: &Rig, lost: &BTreeSet<u64>, drive: &SharedSimDrive, all: &BTreeSet<(u64, u64)>) {
    let mut listed = BTreeSet::new();
    for range in rig.status().unreadable {
        assert_eq!(range.reason, Some(LostReason::Crash));
        listed.extend((range.offset..range.offset + range.bytes).step_by(BLOCK as usize));
    }
    assert_eq!(*lost, listed);
    let layout = record(drive).layout().unwrap();
    for at in lost {
        let place = layout.locate(*at);
        let columns = (place.stripe.0, u64::from(place.offset) / BLOCK);
        assert!(all.contains(&columns), "block {} was not being written", at / BLOCK);
    }
}

/// With P and Q nothing is lost of what is over, however the pages linger.
#[test]
fn raid6_loses_nothing_that_is_over() {
    let course = Course::new(Level::Raid6, 5, 630, false, 2);
    for i in 0..40 {
        course.rig.world.run_for(Nanos::from_micros(500 + 37 * i));
        let (mut left, oracle) = course.cut(i);
        left.remove(i as usize % 5);
        let rig = start(&left, i, ALONE);
        let lost = read_all(&rig, &oracle);
        explained(&rig, &lost, &left[0], &course.columns(Nanos(0)));
    }
}

/// The pages that drives hold, whichever key they have: drive, place, and what they are.
fn pages(drives: &[SharedSimDrive]) -> Vec<(usize, usize, FlightPage)> {
    let array = record(&drives[0]);
    let areas = array.areas;
    let mut found = Vec::new();
    for (number, drive) in drives.iter().enumerate() {
        let area = drive.peek(areas.journal_start, areas.journal_bytes);
        for at in (0..area.len()).step_by(4096) {
            let place = Place { array: array.array, at: at as u64 };
            let page = decode(&area[at..], place);
            found.extend(page.map(|page| (number, at, page)));
        }
    }
    found
}

/// Pages take turns between two places, so that one that is torn leaves the one before it.
#[test]
fn pages_take_turns() {
    let course = Course::new(Level::Raid5, 4, 655, false, 1);
    course.rig.world.run_for(Nanos::from_micros(60_000));
    let turn = |(_, at, page): &(usize, usize, FlightPage)| (page.head.sequence % 2, *at);
    let places: BTreeSet<_> = pages(&course.drives).iter().map(turn).collect();
    let turns: Vec<u64> = places.iter().map(|(turn, _)| *turn).collect();
    assert_eq!(turns, [0, 1], "{places:?}");
    assert!(places.first().unwrap().1 != places.last().unwrap().1);
}

/// The newest page is on one drive only, and drives can't read what they were writing when the
/// power went: a start that is cut must not have written it again, else the page before counts.
#[test]
fn the_only_copy_of_a_page_is_left_alone() {
    let mut telling = 0;
    for seed in 680..683 {
        let config = |i| DriveConfig {
            tears: Tears { unreadable: true, ..Tears::default() },
            ..DriveConfig::new(common::DRIVE_BYTES, 9000 + 10 * seed + i)
        };
        let drives = (0..4).map(|i| SharedSimDrive::new(config(i))).collect();
        let course = Course::on(drives, Level::Raid5, seed, false, 1);
        course.rig.world.run_for(Nanos::from_micros(25_000));
        let (image, before, lost) = loop {
            let border = course.step();
            let (mut left, oracle) = course.cut(border);
            let of = |found: &(usize, usize, FlightPage)| (found.2.head.sequence, found.0);
            let found = pages(&left);
            let (newest, first) = found.iter().map(of).max().unwrap();
            let copies = found.iter().filter(|(_, _, page)| page.head.sequence == newest).count();
            left.remove(if copies == 2 { first } else { (first + 1) % 4 });
            if copies > 2 {
                continue;
            }
            let lost = read_all(&start(&duplicates(&left), border, ALONE), &oracle.fork());
            if lost.len() > 2 {
                break (left, oracle, lost);
            }
        };
        for turn in 0.. {
            let (drives, oracle) = (duplicates(&image), before.fork());
            let rig = Rig::new(1000 * seed + turn, 1);
            rig.world.power_fails_after(turn / 8);
            let list = references(&drives);
            if rig.try_ask(|r| Request::Assemble(None, list, ALONE, r)).is_ok() {
                break;
            }
            rig.world.crash();
            let torn = |(now, then): (&SharedSimDrive, &SharedSimDrive)| {
                let then = then.unreadable();
                now.unreadable().iter().any(|at| !then.contains(at))
            };
            if !drives.iter().zip(&image).any(torn) {
                continue;
            }
            telling += 1;
            let rig = start(&drives, seed + turn, ALONE);
            assert_eq!(read_all(&rig, &oracle), lost, "seed {seed}, turn {turn}");
        }
    }
    assert!(telling > 20, "{telling}");
}

/// What a host has flushed is named no more, also while new writes come all the time.
#[test]
fn what_a_host_flushed_is_named_no_more() {
    let drives = drives(4, 695, true);
    let rig = Rig::new(695, 1);
    rig.create(Level::Raid5, &drives, STRIP as u32).unwrap();
    let volume = rig.volume(BYTES).remove(0);
    let (busy, env) = (volume.clone(), rig.world.env(CoreId(0)));
    rig.world.env(CoreId(0)).spawn(Priority::First, async move {
        for i in 0.. {
            let at = BYTES / 2 + i % 48 * 4096;
            busy.write(at, Pool::single(4096).freeze(), false).await.unwrap();
            env.sleep(Nanos::from_micros(300)).await;
        }
    });
    rig.world.run_for(Nanos::from_millis(10));
    let named = |drives: &[SharedSimDrive]| {
        let newest = pages(drives).into_iter().max_by_key(|(.., page)| page.head.sequence);
        let entries = newest.unwrap().2.entries;
        (entries.iter().any(|c| c.stripe == 0), entries.iter().any(|c| c.stripe > 2))
    };
    let first = volume.clone();
    rig.world.block_on(CoreId(0), async move {
        first.write(0, Pool::single(4096).freeze(), false).await.unwrap();
    });
    rig.world.run_for(Nanos::from_millis(10));
    assert_eq!(named(&drives), (true, true));
    rig.world.block_on(CoreId(0), async move { volume.flush().await.unwrap() });
    rig.world.run_for(Nanos::from_millis(10));
    assert_eq!(named(&drives), (false, true));
}

/// A page is still being written when the array stops: no drive is taken for one that failed.
#[test]
fn a_stop_waits_for_a_page_under_way() {
    for cores in 1..4 {
        let drives = drives(4, 690, false);
        let rig = Rig::new(690 + u64::from(cores), cores);
        rig.create(Level::Raid5, &drives, STRIP as u32).unwrap();
        let volume = rig.volume(BYTES).remove(0);
        rig.world.block_on(CoreId(0), async move {
            volume.write(0, Pool::single(4096).freeze(), true).await.unwrap();
        });
        drives.iter().for_each(|d| d.set_latency(Nanos::from_millis(20), Nanos::from_millis(21)));
        rig.world.run_for(Nanos::from_millis(8));
        assert!(drives.iter().any(|drive| drive.in_flight() > 0), "no page is being written");
        rig.stop();
        assert!(drives.iter().all(|drive| drive.in_flight() == 0));
        for drive in &drives {
            let record = record(drive);
            assert!(record.slots.iter().all(|slot| slot.state == SlotState::InSync), "{cores}");
            assert!(!record.groups[0].unclean);
        }
    }
}

/// All drives are there after the crash: the start makes what was in flight right and owes nothing.
#[test]
fn with_all_drives_the_start_makes_redundancy_right() {
    let course = Course::new(Level::Raid5, 4, 650, true, 2);
    course.rig.world.run_for(Nanos::from_micros(23_456));
    for _ in 0..20 {
        let border = course.step();
        let (left, oracle) = course.cut(border);
        let rig = start(&left, border, ALONE);
        assert!(left.iter().map(record).max_by_key(|r| r.sequence).unwrap().groups[0].guarded);
        assert!(rig.status().tasks.is_empty(), "border {border}");
        assert!(read_all(&rig, &oracle).is_empty());
        assert_eq!(rig.scrub(false).mismatches, 0);
    }
}

/// A block of data that nobody was writing: its drive, and where it is there.
fn untouched(drive: &SharedSimDrive, named: &BTreeSet<(u64, u64)>, i: u64) -> (usize, u64) {
    let record = record(drive);
    let layout = record.layout().unwrap();
    let all = (0..10).flat_map(|stripe| (0..STRIP / BLOCK).map(move |block| (stripe, block)));
    let free: Vec<_> = all.filter(|columns| !named.contains(columns)).collect();
    let (stripe, block) = free[i as usize * 97 % free.len()];
    let strip = StripIndex((i % 3) as u16);
    let (slot, offset) = layout.seat(GroupNo(0), StripeNo(stripe), strip);
    (slot.index(), record.data_offset + offset + block * BLOCK)
}

/// After a crash of a whole group that lost nothing, as many faults as it can lose drives cost
/// nothing, right from the start: a block that nobody was writing (with caches all are named until
/// they are flushed), a drive, a second crash that takes one.
fn costs_nothing(level: Level, width: usize, seed: u64, cores: u16) {
    let cache = seed % 2 == 1;
    let course = Course::new(level, width, seed, cache, cores);
    let linger = if cache { Nanos::from_micros(60_000) } else { LINGER };
    course.rig.world.run_for(Nanos::from_micros(25_000));
    for i in 0..45 {
        let border = course.step();
        let (mut left, oracle) = course.cut(border);
        if i % 3 == 0 && !cache {
            let (slot, at) = untouched(&left[0], &course.columns(linger), i);
            left[slot].fail_range(at, BLOCK);
        }
        let mut rig = start(&left, border, ALONE);
        let slot = i as usize % width;
        if i % 3 == 1 {
            left[slot].vanish();
        }
        if i % 3 == 2 {
            rig.world.crash();
            left.remove(slot);
            rig = start(&left, border + 1, ALONE);
        }
        let lost = read_all(&rig, &oracle);
        assert!(lost.is_empty(), "{level}, border {border}, {}: {lost:?}", i % 3);
        assert!(rig.status().unreadable.is_empty());
        if i % 3 == 0 {
            rig.wait();
            assert_eq!(rig.scrub(false).mismatches, 0);
        }
    }
}

#[test]
fn raid5_that_is_whole_owes_nothing_after_a_crash() {
    costs_nothing(Level::Raid5, 4, 700, 1);
    costs_nothing(Level::Raid5, 4, 703, 4);
}

#[test]
fn raid6_that_is_whole_owes_nothing_after_a_crash() {
    costs_nothing(Level::Raid6, 5, 702, 2);
    costs_nothing(Level::Raid6, 5, 705, 1);
}

/// A page that may be hidden has a whole group owe its dirty regions, once: the places that nobody
/// could read are written. One that a drive can still read hides none.
#[test]
fn a_page_that_may_be_hidden_has_regions_owed() {
    for (level, width, seed) in [(Level::Raid5, 4, 710), (Level::Raid6, 5, 711)] {
        let course = Course::new(level, width, seed, false, 1);
        course.rig.world.run_for(Nanos::from_micros(25_000));
        let mut was = (0, 0);
        for i in 0..30 {
            let border = course.step();
            let (left, oracle) = course.cut(border);
            let array = record(&left[0]);
            let found = pages(&left).into_iter().filter(|p| p.2.head.key == array.journal_key);
            let found: Vec<_> = found.collect();
            let newest = found.iter().map(|p| p.2.head.sequence).max().unwrap();
            let on: Vec<_> = found.iter().filter(|p| p.2.head.sequence == newest).collect();
            let durable = on.len() > usize::from(level == Level::Raid6) + 1;
            for (drive, at, _) in on.iter().skip(i % 2) {
                let place = array.areas.journal_start + *at as u64;
                left[*drive].fail_range(place, BLOCK);
            }
            let hidden = durable && i % 2 == 0;
            was.0 += usize::from(hidden);
            was.1 += usize::from(durable && !hidden);
            let rig = start(&left, border, ALONE);
            let owes = rig.status().tasks.iter().any(|task| task.kind == TaskKind::Resync);
            assert!(!durable || owes == hidden, "border {border}, page {newest} on {}", on.len());
            assert!(read_all(&rig, &oracle).is_empty());
            rig.wait();
            assert_eq!(rig.scrub(false).mismatches, 0);
            rig.world.crash();
            let rig = start(&left, border + 1, ALONE);
            assert!(rig.status().tasks.is_empty(), "border {border}: the place was written");
            assert!(read_all(&rig, &oracle).is_empty());
        }
        assert!(was.0 > 3 && was.1 > 3, "{was:?}");
    }
}

/// More than the list holds is lost: a person is asked, as without the record.
#[test]
fn too_many_lost_blocks_ask_a_person() {
    let drives = drives(5, 660, false);
    let rig = Rig::new(660, 1);
    rig.create(Level::Raid6, &drives, STRIP as u32).unwrap();
    let row = record(&drives[0]).layout().unwrap().row_bytes(0);
    let volume = rig.volume(4 * row).remove(0);
    rig.world.block_on(CoreId(0), async move {
        for at in (0..4 * row).step_by(row as usize) {
            volume.write(at, Pool::single(512).freeze(), true).await.unwrap();
        }
    });
    rig.world.crash();
    let array = record(&drives[0]);
    let (start, block) = (array.areas.journal_start, BLOCK as u32);
    // Every other block of every stripe, in pages of lanes that do not exist.
    let stripe = |stripe| {
        let columns = (0..STRIP as u32).step_by(2 * BLOCK as usize);
        columns.map(move |from| Columns { stripe, from, to: from + block })
    };
    let entries: Vec<_> = (0..256u64).flat_map(stripe).collect();
    for (lane, part) in (50u16..).zip(entries.chunks(4000)) {
        let at = (512 << 10) + u64::from(lane - 50) * 65536;
        let (group, key, epoch) = (GroupNo(0), array.journal_key, array.epoch.counter);
        let head = PageHead { group, lane, sequence: 1, key, epoch };
        let mut image = vec![0; page_bytes(part.len())];
        let place = Place { array: array.array, at };
        encode(place, &head, part.len(), part.iter().copied(), &mut image);
        drives[2].overwrite(start + at, &image);
    }
    let left = &drives[2..];
    let refused = Rig::new(661, 1).assemble(&references(left), DEGRADED);
    assert!(matches!(refused, Err(ManageError::Assemble(_))), "{refused:?}");
    let rig = Rig::new(662, 1);
    rig.assemble(&references(left), FORCE).unwrap();
    assert!(rig.status().unreadable.is_empty());
    for slot in [0, 1] {
        let fresh = common::drives(1, 670 + slot as u64, false).remove(0);
        rig.replace(slot, &fresh).unwrap();
        rig.wait();
    }
    assert_eq!(rig.scrub(false).mismatches, 0);
}

/// A page of the region map that no drive has any more has only its own regions resynced: what is
/// in flight elsewhere is made right by the start.
#[test]
fn a_lost_page_of_the_map_leaves_what_is_in_flight_elsewhere() {
    let a_page = format::limits::PAGE_ENTRIES as u64 * format::limits::REGION_BITS * MIB;
    let config = |i: u64| DriveConfig {
        littered: true,
        ..DriveConfig::new(a_page + 16 * MIB, 66_100 + i).with_cache(true)
    };
    let drives = (0..3).map(|i| SharedSimDrive::new(config(i))).collect();
    let course = Course::on(drives, Level::Raid5, 661, true, 2);
    course.rig.world.run_for(Nanos::from_micros(20_000));
    let areas = record(&course.drives[0]).areas;
    let layout = record(&course.drives[0]).layout().unwrap();
    let geometry = format::region::Geometry::new(&layout, areas.shift);
    assert_eq!(geometry.pages(GroupNo(0)), 2);
    for _ in 0..20 {
        let border = course.step();
        let (left, oracle) = course.cut(border);
        for (slot, drive) in (0u16..).zip(&left) {
            for at in geometry.page_offsets(Slot(slot), GroupNo(0), 1).unwrap() {
                drive.overwrite(areas.map_start + at, &[7; format::limits::PAGE_BYTES]);
            }
        }
        let rig = start(&left, border, ALONE);
        assert!(read_all(&rig, &oracle).is_empty(), "border {border}: no drive is missing");
        rig.wait();
        assert_eq!(rig.scrub(false).mismatches, 0, "border {border}");
    }
}

/// A start after a crash reads the journal areas of four drives at once, whatever stands in them.
#[test]
fn journal_areas_of_four_drives_are_read_at_once() {
    const LATENCY: Nanos = Nanos::from_micros(700);
    let course = Course::new(Level::Raid6, 9, 662, false, 1);
    course.rig.world.run_for(Nanos::from_micros(20_000));
    let (left, _) = course.cut(1);
    for drive in &left {
        drive.clear_log();
        drive.set_latency(LATENCY, LATENCY);
    }
    let areas = record(&left[0]).areas;
    let area = (OpKind::Read, areas.journal_start, areas.journal_bytes);
    let rig = start_on(&left, 663, ALONE, 1);
    let mut log: Vec<_> = left.iter().flat_map(SharedSimDrive::log).collect();
    log.retain(|entry| (entry.kind, entry.offset, entry.bytes) == area);
    log.sort_by_key(|entry| entry.sequence);
    let (mut now, mut most) = (0, 0);
    for entry in &log {
        match entry.stage {
            Stage::Submitted => now += 1,
            Stage::Completed(_) => now -= 1,
        }
        most = most.max(now);
    }
    assert_eq!((log.len(), most, now), (2 * 9, 4, 0));
    let took = log[log.len() - 1].at.since(log[0].at);
    assert_eq!(took, Nanos(3 * LATENCY.0), "nine drives, four at once");
    assert_eq!(rig.status().state, ArrayState::Optimal);
}

/// A start that can't write its list of what is lost to a drive that it needs ends. If it went
/// on, that drive would be two epochs behind, and nobody could ever start the array again.
#[test]
fn a_write_that_fails_in_a_start_leaves_no_drive_behind() {
    let course = Course::new(Level::Raid5, 3, 671, false, 1);
    course.rig.world.run_for(Nanos::from_micros(20_000));
    let (mut lists, mut ended) = (0, 0);
    for _ in 0..6 {
        let border = (0..7).map(|_| course.step()).last().unwrap();
        let (cut, oracle) = course.cut(border);
        for skip in 0..24 {
            let left = duplicates(&cut[1..]);
            left[0].fail_writes(skip, 1);
            let started = Rig::new(border, 1).assemble(&references(&left), ALONE);
            ended += u64::from(started.is_err());
            left[0].clear_faults();
            let rig = start_on(&left, border + skip, ALONE, 1);
            let lost = read_all(&rig, &oracle);
            lists += u64::from(!lost.is_empty());
            explained(&rig, &lost, &left[0], &course.columns(LINGER));
        }
    }
    assert!(lists > 0 && ended > 0, "{lists} lists, {ended} starts that ended");
}

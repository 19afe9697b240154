//! The engine in virtual time, over drives that take what a model's would: what drives limit, at
//! full speed, on any machine.
//!
//! What the engine computes takes no time here, and mail a microsecond at most. So a figure shows
//! which requests the engine makes of drives, in which order, and what waits for what; what its
//! code costs a CPU is not in it. The same seed gives the same figures.
//!
//! Every state has a machine of its own: drives are made into an array, a volume over all of it is
//! filled, and each workload runs for [`WARM`] before it counts for [`COUNTED`]. The volume is
//! small, since requests at random places are the same whatever lies between them; drives are as
//! large as it takes for a journal area of full size.

use crate::failure::{Failure, Oracle, Outcome};
use crate::machine::Machine;
use crate::rig::{ARRAY, BOUND, Blind, Rig, references_in_order};
use crate::scenario::{new_array, shape};
use engine::manage::command::{ArrayStatus, Request};
use engine::volume::Volume;
use io::{Env, Priority};
use layout::Level;
use pace::bound::{self, Drives, Group, State, Work};
use pace::{DriveState, Model};
use sim::drive::Counters;
use sim::{DriveConfig, SharedSimDrive, WorldConfig};
use std::cell::RefCell;
use std::rc::Rc;
use units::{CoreId, GIB, KIB, MIB, Nanos};
use workload::{Extent, Served, Share, Tally, Workload, fill, generate, workloads};

/// Before a workload counts.
const WARM: Nanos = Nanos::from_millis(20);
/// In which it counts.
const COUNTED: Nanos = Nanos::from_millis(50);
/// Bytes of each drive that the volume is made of, and of the drive.
const USED: u64 = 48 * MIB;
const DRIVE: u64 = 64 * GIB;
/// The longest that mail takes between cores.
const MAIL: Nanos = Nanos::from_micros(1);

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The drives' model.
    pub model: &'static Model,
    /// The array's level.
    pub level: Level,
    /// Its drives.
    pub drives: usize,
    /// Bytes of a strip.
    pub strip: u32,
    /// Data cores.
    pub cores: u16,
    /// Where what is drawn by chance is from.
    pub seed: u64,
}

/// Percentage of reads in mixed loads.
const MIX: u8 = 70;

/// What a workload came to in a state.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The state.
    pub state: State,
    /// The workload.
    pub workload: String,
    /// Requests a second.
    pub iops: f64,
    /// Of the bound.
    pub of_bound: f64,
    /// Of what the bare drives give.
    pub to_baseline: f64,
    /// Requests to drives for one of a host's.
    pub drive_reads: f64,
    /// The same for writes.
    pub drive_writes: f64,
    /// The latency that one in a hundred requests exceeds, in microseconds.
    pub p99_us: f64,
}

/// An array with a volume over all of it, filled.
struct Bench {
    rig: Rig,
    drives: Vec<SharedSimDrive>,
    volumes: Vec<Volume<Machine>>,
    bytes: u64,
    array: ArrayStatus,
}

impl Wanted {
    fn group(&self) -> Group {
        let (_, data, width) = shape(self.level, self.drives);
        Group { data: data as u32, parities: (width - data) as u32 }
    }

    fn machine(&self) -> WorldConfig {
        let mail_delay_most = if self.cores == 1 { Nanos(0) } else { MAIL };
        WorldConfig { cores: self.cores, mail_delay_most, ..WorldConfig::new(self.seed) }
    }

    fn drives(&self) -> Vec<SharedSimDrive> {
        let make = |(at, pace)| {
            SharedSimDrive::new(DriveConfig {
                block_bytes: 4096,
                split_percent: 0,
                record: false,
                littered: true,
                pace: Some(pace),
                ..DriveConfig::new(DRIVE, at as u64)
            })
        };
        DriveState::many(self.model, 1.0, self.drives).into_iter().enumerate().map(make).collect()
    }

    fn bench(&self) -> Outcome<Bench> {
        let rig = Rig::as_served(self.machine());
        let drives = self.drives();
        let wrong = |e| Failure::new(Oracle::Start, format!("not made: {e}"));
        let new = new_array(self.level, self.strip);
        let list = references_in_order(&drives);
        let create = |r| Request::Create(new, list, r);
        let array = rig.ask(&mut Blind, "a creation", create)?.map_err(wrong)?;
        let bytes = u64::from(self.group().data) * USED;
        let volume = |r| Request::VolumeCreate(ARRAY.into(), "v".into(), bytes, r);
        let volume = rig.ask(&mut Blind, "a volume", volume)?.map_err(wrong)?;
        let volumes = rig.open(&array, &volume);
        let bench = Bench { rig, drives, volumes, bytes: volume.bytes, array };
        bench.fill()?;
        Ok(bench)
    }

    /// Runs all workloads in a state.
    ///
    /// # Errors
    /// When something fails or does not end.
    pub fn run(&self, state: State) -> Outcome<Vec<Figure>> {
        let bench = self.bench()?;
        if state == State::DeviceDown {
            bench.fail_one()?;
        }
        let all = workloads(MIX);
        all.iter().map(|workload| self.figure(&bench, state, workload)).collect()
    }

    fn figure(&self, bench: &Bench, state: State, workload: &Workload) -> Outcome<Figure> {
        let before = bench.counters();
        let tally = bench.run(workload, self.seed)?;
        let after = bench.counters();
        let iops = tally.rate();
        let drives = Drives { model: self.model, slower: 1.0, count: self.drives as u32 };
        let Workload { reads, bytes, .. } = *workload;
        let is_sequential = workload.is_sequential();
        let work = Work::of(is_sequential, reads, bytes as u64, self.strip.into());
        // Sequential work is counted in strips there.
        let strips = if is_sequential { bytes as f64 / f64::from(self.strip) } else { 1.0 };
        let each = |from: u64, to: u64| (to - from) as f64 / tally.made as f64;
        Ok(Figure {
            state,
            workload: workload.name.clone(),
            iops,
            of_bound: iops * strips / drives.bound(self.group(), state, work),
            to_baseline: iops * strips / drives.baseline(work),
            drive_reads: each(before.reads, after.reads),
            drive_writes: each(before.writes, after.writes),
            p99_us: tally.times().below(0.99).0 as f64 / 1e3,
        })
    }
}

impl Bench {
    fn counters(&self) -> Counters {
        self.drives.iter().map(SharedSimDrive::counters).fold(Counters::default(), |sum, own| {
            let (reads, writes) = (sum.reads + own.reads, sum.writes + own.writes);
            Counters { reads, writes, ..sum }
        })
    }

    fn fail_one(&self) -> Outcome<()> {
        let fail = |r| Request::Fail(self.array.name.clone(), vec!["slot:0".to_owned()], r);
        let failed = self.rig.ask(&mut Blind, "a failure", fail)?;
        failed.map(drop).map_err(|e| Failure::new(Oracle::Versions, e.to_string()))
    }

    fn fill(&self) -> Outcome<()> {
        let (env, target) = (self.rig.env(CoreId(0)), Served(self.volumes[0].clone()));
        let failed = Rc::new(RefCell::new(None));
        let (slot, bytes, own) = (failed.clone(), self.bytes, env.clone());
        env.spawn(Priority::First, async move {
            let count = fill(&own, target, 0..bytes, 128 << 10, 32).await;
            *slot.borrow_mut() = Some(count);
        });
        self.rig.run(&mut Blind, BOUND, "filling", || failed.borrow().is_some())?;
        match failed.take() {
            Some(0) => Ok(()),
            count => Err(wrong(format!("writes failed: {count:?}"))),
        }
    }

    /// Runs a workload.
    fn run(&self, workload: &Workload, seed: u64) -> Outcome<Tally> {
        let from = self.rig.world.now().after(WARM);
        let extent = Extent { from, until: from.after(COUNTED), interval: COUNTED };
        let tallies = Rc::new(RefCell::new(Vec::new()));
        let cores = self.volumes.len();
        for (core, volume) in self.volumes.iter().enumerate() {
            let share = Share::of(workload.shape(self.bytes, None), core, cores);
            let env = self.rig.env(CoreId(core as u16));
            let target = Served(volume.clone());
            let (own, clock, slot) = (env.clone(), env.clone(), tallies.clone());
            env.spawn(Priority::First, async move {
                let now = move || clock.now();
                let tally = generate(&own, target, share, extent, seed, now).await;
                slot.borrow_mut().push(tally);
            });
        }
        let is_over = || tallies.borrow().len() == cores;
        self.rig.run(&mut Blind, BOUND, &workload.name, is_over)?;
        let mut all = Tally::default();
        tallies.borrow().iter().for_each(|tally| all.add(tally));
        match (all.failed, all.wrong.0) {
            (0, 0) => Ok(all),
            sums => Err(wrong(format!("{}: {sums:?} requests failed or lied", workload.name))),
        }
    }
}

fn wrong(text: String) -> Failure {
    Failure::new(Oracle::Versions, text)
}

impl Wanted {
    /// The goal of a figure, if this array has any.
    pub fn goal(&self, state: State, workload: &str) -> Option<f64> {
        let is_meant = self.model.name == "sn840"
            && (self.level, self.drives) == (Level::Raid5, 8)
            && u64::from(self.strip) == 64 * KIB;
        bound::goal(state, workload).filter(|_| is_meant)
    }
}

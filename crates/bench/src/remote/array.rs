//! An array of remote drives: what the engine costs over the same kind of drives raw.
//!
//! RAID 5, 7+1, over eight drives of a paced shelf, each by two ports. Side A is eight drives raw,
//! side B a volume of the array. Each drive has two namespaces, which are drives of their own: the
//! array has the first of each, the raw side the second, since its writes would destroy the array.
//! Both sides have the same core, initiator, connections, generator and model of drives, and take
//! turns within every round. Reads are compared with what was written. It ends after its rounds; a
//! request that fails, or a read that finds something else, ends it without a figure.
//!
//! A write's bound is what the model's drives could serve if each write asked them for no more than
//! RAID 5 can't do without ([`pace::bound`]).

use super::reach::{Host, name};
use super::shelf::Shelf;
use super::{MODEL, RemoteBench, model, slower};
use crate::error::BenchError;
use crate::generated::{Ran, Span};
use crate::load::{Load, Op, Order as Places, Until};
use crate::record::Record;
use crate::report::{Goal, ModelUsed, Report};
use crate::rig::{Aim, Rig};
use crate::scale::Scale;
use crate::stats::Spread;
use drives::SharedDrive;
use pace::Model;
use pace::bound::{Drives, Group, State, Work};
use std::sync::Arc;
use std::time::Duration;
use units::MIB;
use workload::target::TURN;
use workload::{Order, Shape};

const GROUP: Group = Group { data: 7, parities: 1 };
const DRIVES: usize = 8;
/// How long cores are watched to find a scale, and the one that drives have meanwhile: one at which
/// cores have more to do than they can.
const WATCH: Duration = Duration::from_millis(300);
const FASTEST: u32 = 8;

/// What is done, and what is to be reached of raw drives, or of the bound.
struct Workload {
    name: &'static str,
    reads: u8,
    order: Order,
    bytes: usize,
    depth: usize,
    goal: f64,
}

const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "remote-raid5-4k-read",
        reads: 100,
        order: Order::Random,
        bytes: 4 << 10,
        depth: 256,
        goal: 0.97,
    },
    Workload {
        name: "remote-raid5-4k-write",
        reads: 0,
        order: Order::Random,
        bytes: 4 << 10,
        depth: 256,
        goal: 0.95,
    },
    Workload {
        name: "remote-raid5-128k-read",
        reads: 100,
        order: Order::Sequential,
        bytes: 128 << 10,
        depth: 64,
        goal: 0.97,
    },
];

/// A paced shelf and its host.
struct Paced {
    shelf: Shelf,
    host: Host,
    array: Vec<SharedDrive>,
    raw: Vec<SharedDrive>,
}

impl Paced {
    fn start(options: &RemoteBench, slower: u32) -> Result<Self, BenchError> {
        let scale = Scale::Part(slower).to_string();
        let size = ["--drives", "8", "--namespaces", "2", "--drive-size", "128G"];
        let pace = ["--model", MODEL, "--scale", &scale, "--ports", "2", "--cores", "1"];
        let shelf = Shelf::start(&options.program, &[size.as_slice(), &pace].concat())?;
        let host = Host::start(Rig::start(1, None)?, &name(0))?;
        let (array, raw) =
            (host.connect(&shelf.places(), &[1])?, host.connect(&shelf.places(), &[2])?);
        Ok(Self { shelf, host, array, raw })
    }

    /// How many times as busy as it can be a core of the host's or of the shelf's would be with all
    /// reads that drives of full speed serve.
    fn busy(&self, model: &Model) -> Result<f64, BenchError> {
        let bytes = MIB;
        let aim = Aim::Drives { drives: self.raw.clone(), start: 0, bytes, turn: TURN };
        let record = Arc::new(Record::new(bytes * DRIVES as u64));
        let load = Load::new(Op::Read, Places::Random, 4 << 10, 256, &record);
        let before = self.shelf.cpu();
        let (run, _, cores) =
            self.host.rig.beside(|| self.host.rig.run(&aim, &load, Until::Elapsed(WATCH), 1));
        let made = run?.0.operations.max(1) as f64;
        let shelf = self.shelf.cpu().saturating_sub(before).as_secs_f64();
        let work = |core: &runtime::CoreCounts| core.time.since(core.looking).since(core.asleep).0;
        let host: u64 = cores.iter().map(work).sum();
        let drives = Drives { model, slower: 1.0, count: DRIVES as u32 };
        let rate = drives.baseline(Work::Random { reads: 1.0, bytes: 4 << 10 });
        Ok(shelf.max(host as f64 / 1e9) / made * rate)
    }
}

/// One side in one round.
struct Side {
    ran: Ran,
    shelf: Duration,
}

/// Measures it.
pub fn measure(
    options: &RemoteBench,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let model = model()?;
    let slower = slower(options.scale, || {
        progress("an array of remote drives: what a read costs");
        Paced::start(options, FASTEST)?.busy(model)
    })?;
    report.model = Some(ModelUsed { name: MODEL.to_owned(), scale: 1.0 / f64::from(slower) });
    let paced = Paced::start(options, slower)?;
    let area = options.drive_bytes;
    let array = paced.host.make_array(&paced.array, area)?;
    let bytes = (area / DRIVES as u64).next_multiple_of(TURN);
    let raw = Aim::Drives { drives: paced.raw.clone(), start: 0, bytes, turn: TURN };
    progress(&format!("an array of remote drives: filling, at the scale {}", Scale::Part(slower)));
    for aim in [&raw, &array] {
        paced.host.rig.fill(aim, area)?;
    }
    for workload in &WORKLOADS {
        progress(workload.name);
        let rounds = rounds(options, &paced, workload, [&raw, &array])?;
        add(report, workload, model, slower, &rounds);
    }
    Ok(())
}

/// Rounds of both sides, raw first.
fn rounds(
    options: &RemoteBench,
    paced: &Paced,
    workload: &Workload,
    aims: [&Aim; 2],
) -> Result<Vec<[Side; 2]>, BenchError> {
    let Workload { reads, order, bytes, depth, .. } = *workload;
    let shape = Shape::one(reads, order, bytes, depth, options.drive_bytes);
    let mut rounds = Vec::new();
    for round in 0..options.rounds as u64 {
        let side = |which: usize| -> Result<Side, BenchError> {
            let before = paced.shelf.cpu();
            let rig = &paced.host.rig;
            let ran = rig.generate(aims[which], shape, Span::of(options.span), round)?;
            Ok(Side { ran, shelf: paced.shelf.cpu().saturating_sub(before) })
        };
        rounds.push(if round % 2 == 0 {
            let raw = side(0)?;
            [raw, side(1)?]
        } else {
            let array = side(1)?;
            [side(0)?, array]
        });
    }
    Ok(rounds)
}

fn add(report: &mut Report, workload: &Workload, model: &Model, slower: u32, rounds: &[[Side; 2]]) {
    let Workload { name, goal, reads, bytes, .. } = workload;
    let rate = |side: &Side| side.ran.tally.rate();
    let ratios: Vec<f64> = rounds.iter().map(|[raw, array]| rate(array) / rate(raw)).collect();
    let ratio = || ratios.iter().copied();
    let goal = Some(Goal::AtLeast(*goal));
    if *reads > 0 {
        report.add(name, "ratio", Spread::of(ratio()), goal);
    } else {
        let drives = Drives { model, slower: slower.into(), count: DRIVES as u32 };
        let work = Work::Random { reads: 0.0, bytes: *bytes as u64 };
        let bound = drives.bound(GROUP, State::Nominal, work) / drives.baseline(work);
        let of_bound = Spread::of(ratio().map(|ratio| ratio / bound));
        report.add(&format!("{name}-of-bound"), "ratio", of_bound, goal);
        report.add(name, "ratio", Spread::of(ratio()), None);
    }
    for (which, side) in ["raw", "array"].into_iter().enumerate() {
        let of = |what: fn(&Side) -> f64| Spread::of(rounds.iter().map(|own| what(&own[which])));
        let name = format!("{name}-{side}");
        report.add(&format!("{name}-iops"), "iops", of(|side| side.ran.tally.rate()), None);
        report.add(&format!("{name}-cpu-us"), "us", of(|side| side.ran.work_micros()), None);
        let shelf: fn(&Side) -> f64 =
            |side| side.shelf.as_secs_f64() * 1e6 / side.ran.tally.operations().max(1) as f64;
        report.add(&format!("{name}-shelf-cpu-us"), "us", of(shelf), None);
    }
}

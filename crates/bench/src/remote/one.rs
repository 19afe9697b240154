//! One remote drive: what our initiator and our target together add to TCP and to the drive.
//!
//! In turns within every round: the initiator on one CPU, at a drive that `palisade shelf` serves
//! on another; an echo on the target's CPU, which answers the same bytes with the same batching to
//! a plain client; the same requests at a drive in the initiator's own memory. All read as many
//! bytes at as many random places with as many under way. The bound is `1 / (1/echo +
//! 1/in-process)`, as in `bench nvme-tcp`. It ends after its rounds; a request that fails ends it
//! without a figure.

use super::RemoteBench;
use super::reach::{Host, name};
use super::shelf::Shelf;
use crate::error::BenchError;
use crate::load::{Load, Op, Order, Until};
use crate::nvme_tcp::client::Shape;
use crate::nvme_tcp::echo::Echo;
use crate::nvme_tcp::{Cpus, bound};
use crate::record::Record;
use crate::report::{Goal, Report};
use crate::rig::{Aim, Rig};
use crate::stats::{Sample, Spread};
use drives::SharedDrive;
use std::sync::Arc;
use workload::target::TURN;

/// CPU of the target and of the echo.
const TARGET_CPU: usize = 0;
/// CPU of the initiator, and of the plain client.
const CLIENT_CPU: usize = 1;
/// Names of the figures, and requests under way.
const BOUND: (&str, usize) = ("remote-4k-read-qd32", 32);
const ADDED: (&str, usize) = ("remote-qd1-added-us", 1);
const BYTES: usize = 4 << 10;

/// What one round measured.
struct Turn {
    remote: Sample,
    /// CPU time of the target for a request, in microseconds.
    target_micros: f64,
    echo: Sample,
    inside: Sample,
}

impl Turn {
    fn bound(&self) -> f64 {
        bound(&self.echo, &self.inside)
    }

    fn added(&self) -> f64 {
        let micros = |sample: &Sample| 1e6 / sample.rate();
        micros(&self.remote) - micros(&self.echo) - micros(&self.inside)
    }
}

/// Both drives, and what asks them.
struct Stand<'a> {
    options: &'a RemoteBench,
    cpus: &'a Cpus,
    shelf: Shelf,
    host: Host,
    remote: Aim,
    inside: Aim,
    record: Arc<Record>,
}

/// Measures it.
pub fn measure(
    options: &RemoteBench,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let cpus = Cpus::find();
    if cpus.count() <= CLIENT_CPU {
        for (name, _) in [BOUND, ADDED] {
            report.leave_open(name, "the initiator needs a CPU beside the target's");
        }
        return Ok(());
    }
    let outcome = on_two_cpus(options, &cpus, report, progress);
    cpus.spread();
    outcome
}

fn on_two_cpus(
    options: &RemoteBench,
    cpus: &Cpus,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let bytes = options.drive_bytes;
    // Processes and threads begin with the CPUs of the thread that makes them.
    cpus.pin(TARGET_CPU);
    let size = bytes.to_string();
    let words = ["--ports", "1", "--drives", "1", "--namespaces", "1", "--cores", "1"];
    let shelf = Shelf::start(&options.program, &[&words[..], &["--drive-size", &size]].concat())?;
    cpus.pin(CLIENT_CPU);
    let host = Host::start(Rig::start(1, None)?, &name(0))?;
    let remote = host.connect(&shelf.places(), &[1])?;
    let aim = |drives| Aim::Drives { drives, start: 0, bytes, turn: TURN };
    let inside = aim(vec![SharedDrive::memory(bytes, 4096, false)]);
    let (remote, record) = (aim(remote), Arc::new(Record::new(bytes)));
    progress("one remote drive: filling it, and one in memory");
    for aim in [&remote, &inside] {
        let all = Load::new(Op::Write, Order::Sequential, 128 << 10, 8, &record);
        host.rig.run(aim, &all, Until::Once, 0)?;
    }
    let stand = Stand { options, cpus, shelf, host, remote, inside, record };
    progress(BOUND.0);
    let turns = stand.rounds(BOUND.1)?;
    let ratio = Spread::of(turns.iter().map(|turn| turn.remote.rate() / turn.bound()));
    report.add(BOUND.0, "ratio", ratio, Some(Goal::AtLeast(0.85)));
    let bound = Spread::of(turns.iter().map(Turn::bound));
    report.add(&format!("{}-bound-iops", BOUND.0), "iops", bound, None);
    add_sides(report, BOUND.0, &turns);
    progress(ADDED.0);
    let turns = stand.rounds(ADDED.1)?;
    let added = Spread::of(turns.iter().map(Turn::added));
    report.add(ADDED.0, "us", added, Some(Goal::AtMost(5.0)));
    add_sides(report, "remote-qd1", &turns);
    Ok(())
}

impl Stand<'_> {
    fn rounds(&self, depth: usize) -> Result<Vec<Turn>, BenchError> {
        let echo = Echo::start(self.cpus, TARGET_CPU, BYTES)?;
        let mut bare = echo.connect()?;
        let (span, bytes) = (self.options.span, self.options.drive_bytes);
        let shape = Shape { is_write: false, bytes: BYTES, depth };
        let load = Load::new(Op::Read, Order::Random, BYTES, depth, &self.record);
        let mut turns = Vec::new();
        // The first round does not count: memory and tables are warm afterwards.
        for round in 0..=self.options.rounds as u64 {
            let run = |aim| Ok(self.host.rig.run(aim, &load, Until::Elapsed(span), round)?.0);
            let remote = || -> Result<(Sample, f64), BenchError> {
                let before = self.shelf.cpu();
                let sample: Sample = run(&self.remote)?;
                let cpu = self.shelf.cpu().saturating_sub(before);
                Ok((sample, Sample { cpu, ..sample }.cpu_micros()))
            };
            let inside = || -> Result<Sample, BenchError> { run(&self.inside) };
            let ((remote, target_micros), echo, inside) = if round % 2 == 0 {
                (remote()?, bare.run(shape, bytes, span, round)?, inside()?)
            } else {
                let (inside, echo) = (inside()?, bare.run(shape, bytes, span, round)?);
                (remote()?, echo, inside)
            };
            turns.extend((round > 0).then_some(Turn { remote, target_micros, echo, inside }));
        }
        Ok(turns)
    }
}

fn add_sides(report: &mut Report, name: &str, turns: &[Turn]) {
    type Side = (&'static str, fn(&Turn) -> Sample);
    let sides: [Side; 3] =
        [("initiator", |t| t.remote), ("echo", |t| t.echo), ("in-process", |t| t.inside)];
    for (side, sample) in sides {
        let rate = Spread::of(turns.iter().map(|turn| sample(turn).rate()));
        report.add(&format!("{name}-{side}-iops"), "iops", rate, None);
        let cpu = Spread::of(turns.iter().map(|turn| sample(turn).cpu_micros()));
        report.add(&format!("{name}-{side}-cpu-us"), "us", cpu, None);
    }
    let cpu = Spread::of(turns.iter().map(|turn| turn.target_micros));
    report.add(&format!("{name}-target-cpu-us"), "us", cpu, None);
}

//! Several servers on one shelf: what they get together, of as many times what one gets.
//!
//! One paced shelf, 24 drives, a pair of ports for each four; up to six server processes, each with
//! a zone that has four drives, and an array of these, RAID 5. In every round one, two, three and
//! six of them read 4K at random places at the same time; all have the same drives, array, program
//! and load, and those that do not read stay connected. The drives are so slow that cores are idle
//! for three tenths of the time: then what is measured is how shelf and servers share, and not how
//! many cores there are. Where cores are busier the figure stays open. It ends after its rounds; a
//! request that fails ends it without a figure.

use super::reach::name;
use super::server::Server;
use super::shelf::Shelf;
use super::{MODEL, RemoteBench, model, slower};
use crate::error::BenchError;
use crate::report::{Goal, Report};
use crate::scale::{IDLE, Scale};
use crate::stats::Spread;
use pace::bound::{Drives, Work};
use std::time::{Duration, Instant};

/// Server processes, and drives of each.
const SERVERS: usize = 6;
const DRIVES: usize = 4;
/// How many of them read.
const COUNTS: [usize; 4] = [1, 2, 3, SERVERS];
/// How long cores are watched to find a scale, and the one that drives have meanwhile: one at which
/// cores have more to do than they can.
const WATCH: Duration = Duration::from_millis(500);
const FASTEST: u32 = 16;
/// Bytes of each array that are used.
const AREA: u64 = 16 << 20;

/// A shelf and its servers.
struct Place {
    shelf: Shelf,
    servers: Vec<Server>,
}

/// What so many servers came to in a round.
struct Turn {
    rate: f64,
    /// CPU time of the servers and of the shelf for a request, in microseconds.
    micros: f64,
    /// The part of the machine's time in which cores were idle.
    idle: f64,
    /// CPU time of the servers and of the shelf, in cores.
    cpu: f64,
}

impl Place {
    fn start(options: &RemoteBench, slower: u32) -> Result<Self, BenchError> {
        let (scale, cores) = (Scale::Part(slower).to_string(), shelf_cores().to_string());
        let pace = ["--model", MODEL, "--scale", &scale, "--cores", &cores];
        let size = ["--ports", "12", "--drives", "24", "--namespaces", "1", "--drive-size", "64G"];
        let shelf = Shelf::start(&options.program, &[&pace[..], &size].concat())?;
        let mut servers = Vec::new();
        for number in 0..SERVERS {
            let host = name(number + 1);
            let (first, last) = (number * DRIVES + 1, (number + 1) * DRIVES);
            let (zone, drives) = (format!("server-{number}"), format!("{first}-{last}"));
            shelf.ctl(&["zone", "add", &zone, "--host", &host, "--drives", &drives])?;
            let ports = ["A", "B"].map(|module| format!("{module}{}", number + 1));
            let at = shelf.ports.iter().filter(|(port, _)| ports.contains(port));
            let at: Vec<_> = at.map(|(_, at)| *at).collect();
            servers.push(Server::start(&options.program, &host, &at, Some(AREA))?);
        }
        servers.iter_mut().try_for_each(Server::ready)?;
        Ok(Self { shelf, servers })
    }

    fn cpu(&self) -> Duration {
        self.servers.iter().map(Server::cpu).sum::<Duration>() + self.shelf.cpu()
    }

    /// So many of the servers read.
    fn run(&mut self, count: usize, span: Duration, seed: u64) -> Result<Turn, BenchError> {
        let (begun, cpu, before) = (Instant::now(), self.cpu(), stat());
        for (number, server) in self.servers[..count].iter_mut().enumerate() {
            server.load(span, seed * SERVERS as u64 + number as u64)?;
        }
        let (mut rate, mut made) = (0.0, 0.0);
        for server in &mut self.servers[..count] {
            let own = server.rate()?;
            (rate, made) = (rate + own.0, made + own.1);
        }
        let (after, cpu) = (stat(), self.cpu().saturating_sub(cpu));
        let idle = (after.0 - before.0) / (after.1 - before.1).max(1.0);
        let cpu = cpu.as_secs_f64();
        let micros = if made > 0.0 { cpu * 1e6 / made } else { 0.0 };
        Ok(Turn { rate, micros, idle, cpu: cpu / begun.elapsed().as_secs_f64() })
    }
}

/// Cores of the shelf.
fn shelf_cores() -> usize {
    (cpus() / 2).clamp(1, SERVERS)
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How long the machine's CPUs were idle so far, and all their time.
fn stat() -> (f64, f64) {
    idle_of(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// The same, of the system's text: idle and waiting for a drive, of all.
pub(super) fn idle_of(text: &str) -> (f64, f64) {
    let line = text.lines().next().unwrap_or_default();
    let times: Vec<f64> = line.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
    (times.iter().skip(3).take(2).sum(), times.iter().sum())
}

/// Measures it.
pub fn measure(
    options: &RemoteBench,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let model = model()?;
    let slower = slower(options.scale, || {
        progress("several servers: what a read costs");
        let drives = Drives { model, slower: 1.0, count: DRIVES as u32 };
        let rate = drives.baseline(Work::Random { reads: 1.0, bytes: 4 << 10 }) * SERVERS as f64;
        let turn = Place::start(options, FASTEST)?.run(SERVERS, WATCH, 0)?;
        // The shelf's cores may look around all of their time: the others have to do.
        let left = cpus().saturating_sub(shelf_cores()).max(1);
        Ok(turn.micros * rate / 1e6 / left as f64)
    })?;
    progress(&format!("several servers: filling, at the scale {}", Scale::Part(slower)));
    let mut place = Place::start(options, slower)?;
    let mut turns: [Vec<Turn>; COUNTS.len()] = Default::default();
    for round in 0..options.rounds as u64 {
        progress(&format!("one, two, three and six servers, round {}", round + 1));
        // Odd rounds begin with the most.
        for at in 0..COUNTS.len() {
            let at = if round % 2 == 0 { at } else { COUNTS.len() - 1 - at };
            turns[at].push(place.run(COUNTS[at], options.span, round + 1)?);
        }
    }
    report.notes.push(format!("scaling: drives of the model {MODEL} at {}", Scale::Part(slower)));
    for (count, own) in COUNTS.iter().zip(&turns) {
        add(report, *count, own, &turns[0]);
    }
    Ok(())
}

/// Adds what so many servers came to, beside one.
fn add(report: &mut Report, count: usize, turns: &[Turn], one: &[Turn]) {
    let name = format!("scaling-{count}");
    let idle = Spread::of(turns.iter().map(|turn| turn.idle));
    let enough = idle.is_some_and(|idle| idle.median >= IDLE);
    let ratio = turns.iter().zip(one).map(|(own, one)| own.rate / (count as f64 * one.rate));
    if count > 1 && enough {
        report.add(&name, "ratio", Spread::of(ratio), Some(Goal::AtLeast(0.97)));
    } else if count > 1 {
        let was = idle.map_or(0.0, |idle| idle.median);
        let reason = format!("cores were idle for {was:.2} of the time, and have to be for {IDLE}");
        report.leave_open(&name, &reason);
    }
    let rate = Spread::of(turns.iter().map(|turn| turn.rate));
    report.add(&format!("{name}-iops"), "iops", rate, None);
    report.add(&format!("{name}-cores-idle"), "ratio", idle, None);
    let cpu = Spread::of(turns.iter().map(|turn| turn.cpu));
    report.add(&format!("{name}-cpu"), "ratio", cpu, None);
    let micros = Spread::of(turns.iter().map(|turn| turn.micros));
    report.add(&format!("{name}-cpu-us"), "us", micros, None);
}

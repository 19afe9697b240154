//! What hosts notice of a path that goes: the longest that any request takes meanwhile.
//!
//! A drive by two ports of a shelf, in memory; 4K requests, 7 of 10 of them reads, come at a rate
//! that leaves all cores idle for most of the time. Then one port is pulled out: its connections
//! are reset, or it falls silent. A silent one is found out by its keep-alive; what it may still
//! carry out is over when the other path's controller has ended its controller, or, where the shelf
//! offers no such reset, when that must have ended by itself. Each round has a shelf and a host of
//! its own. It ends when the load's time is over; a request that fails ends it without a figure.

use super::reach::{Host, name};
use super::shelf::Shelf;
use super::{Part, RemoteBench};
use crate::error::BenchError;
use crate::generated::Span;
use crate::report::{Goal, Report};
use crate::rig::{Aim, Rig};
use crate::stats::Spread;
use std::cell::RefCell;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use units::MIB;
use workload::target::TURN;
use workload::{Order, Shape};

const BYTES: u64 = 16 * MIB;
/// Requests that come each second.
const RATE: f64 = 2000.0;
/// Requests under way, at most: a second's and more, so that all that come are begun.
const DEPTH: usize = 256;
/// How much later than the load's end the last request may come back.
const TAIL: Duration = Duration::from_millis(250);

/// A way for a port to go.
struct Going {
    part: Part,
    name: &'static str,
    /// Words of `shelf ctl pull`.
    how: &'static str,
    /// Words of the shelf.
    shelf: &'static [&'static str],
    /// How long the load goes on behind it.
    counted: Duration,
    rounds: usize,
    /// Most milliseconds.
    goal: f64,
}

const GOINGS: [Going; 3] = [
    Going {
        part: Part::Reset,
        name: "failover-reset-ms",
        how: "--reset",
        shelf: &[],
        counted: Duration::from_millis(1_000),
        rounds: 5,
        goal: 100.0,
    },
    Going {
        part: Part::Silence,
        name: "failover-silence-ms",
        how: "--silent",
        shelf: &[],
        counted: Duration::from_millis(5_000),
        rounds: 3,
        goal: 3000.0,
    },
    Going {
        part: Part::SilenceTimed,
        name: "failover-silence-timed-ms",
        how: "--silent",
        shelf: &["--no-ccr"],
        counted: Duration::from_millis(11_000),
        rounds: 2,
        goal: 8000.0,
    },
];

/// Measures those that are wanted.
pub fn measure(
    options: &RemoteBench,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    for going in GOINGS.iter().filter(|going| options.has(going.part)) {
        progress(going.name);
        let rounds = going.rounds.min(options.rounds) as u64;
        let gaps: Result<Vec<f64>, _> =
            (0..rounds).map(|round| going.once(options, round)).collect();
        report.add(going.name, "ms", Spread::of(gaps?), Some(Goal::AtMost(going.goal)));
    }
    Ok(())
}

impl Going {
    /// The longest that a request took, in milliseconds.
    fn once(&self, options: &RemoteBench, seed: u64) -> Result<f64, BenchError> {
        let size = ["--ports", "2", "--drives", "1", "--namespaces", "1", "--drive-size", "64M"];
        let words = [&size[..], &["--cores", "1"], self.shelf].concat();
        let shelf = Shelf::start(&options.program, &words)?;
        let host = Host::start(Rig::start_beside(1)?, &name(0))?;
        let drives = host.connect(&shelf.places(), &[1])?;
        let aim = Aim::Drives { drives, start: 0, bytes: BYTES, turn: TURN };
        host.rig.fill(&aim, BYTES)?;
        let shape =
            Shape { rate: Some(RATE), ..Shape::one(70, Order::Random, 4 << 10, DEPTH, BYTES) };
        let loads = [host.rig.shares(shape)];
        let span = Span { interval: self.counted, ..Span::of(self.counted) };
        // The first look is at the begin: the port goes then.
        let pulled: RefCell<Option<(Instant, Result<(), BenchError>)>> = RefCell::default();
        let look = || {
            if pulled.borrow().is_none() {
                let at = Instant::now();
                let done = shelf.ctl(&["pull", "port", &shelf.ports[0].0, self.how]);
                *pulled.borrow_mut() = Some((at, done));
            }
        };
        let never = AtomicBool::new(false);
        let (ran, _) = host.rig.generate_beside(&aim, (&loads, seed), span, &never, &look)?;
        let (at, done) = pulled.into_inner().ok_or(BenchError::CoreGone)?;
        done?;
        let (longest, took) = (ran.tally.times().longest(), at.elapsed());
        // One that came back behind the end was not counted.
        let longest = match took > self.counted + TAIL {
            true => took,
            false => Duration::from_nanos(longest.0),
        };
        Ok(longest.as_secs_f64() * 1e3)
    }
}

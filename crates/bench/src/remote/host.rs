//! What a server process does: it connects its part of a shelf by the initiator that servers use,
//! and does what it is told by lines on its standard input, an answer to each.
//!
//! - `load SECONDS SEED`: 4K reads at random places of its array; how many a second.
//! - `look`: its CPU time so far.
//!
//! All servers are the same program with the same settings, on a core that is kept on no CPU. One
//! ends with its input.

use super::reach::Host;
use super::shelf::place;
use crate::error::BenchError;
use crate::generated::Span;
use crate::load::{Load, Op, Order as Places, Until};
use crate::record::Record;
use crate::rig::{Aim, Rig, cpu_time, resident};
use drives::SharedDrive;
use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use workload::target::TURN;
use workload::{Order, Shape};

/// Reads under way: of six servers together no more than a core of the target carries out at a time
/// ([`nvme_target::limits::WORKERS`]). With more, that is what would be measured.
const DEPTH: usize = 80;

/// What a server process is given.
#[derive(Clone, Debug)]
pub struct RemoteHost {
    /// Its name as a host.
    pub name: String,
    /// Where its drives are found.
    pub at: Vec<SocketAddr>,
    /// Bytes of its array that are used; `None`: it makes no array.
    pub area: Option<u64>,
}

fn say(value: &Value) -> Result<(), BenchError> {
    let mut out = std::io::stdout();
    let said = writeln!(out, "{value}").and_then(|()| out.flush());
    said.map_err(|error| BenchError::System { path: "the standard output".into(), error })
}

/// Serves until the standard input ends.
///
/// # Errors
/// When the shelf is not reached, a request fails, or a line is not understood.
pub fn serve_remote_host(options: &RemoteHost) -> Result<(), BenchError> {
    // Servers with arrays are many on one machine: none is to look around at the others' cost.
    let rig = match options.area {
        Some(_) => Rig::start_among_many(1)?,
        None => Rig::start_beside(1)?,
    };
    let host = Host::start(rig, &options.name)?;
    let before = resident();
    let places: Vec<_> = options.at.iter().map(|at| place(*at)).collect();
    let drives = host.connect(&places, &[1])?;
    look_at(&host.rig, &drives)?;
    let grown = resident() - before;
    let make = |area| -> Result<(Aim, u64), BenchError> {
        let aim = host.make_array(&drives, area)?;
        host.rig.fill(&aim, area)?;
        Ok((aim, area))
    };
    let array = options.area.map(make).transpose()?;
    say(&json!({ "paths": host.paths().0, "drives": drives.len(), "grown": grown }))?;
    for line in std::io::stdin().lock().lines() {
        let line =
            line.map_err(|error| BenchError::System { path: "the standard input".into(), error })?;
        let words: Vec<&str> = line.split_whitespace().collect();
        match (&words[..], &array) {
            (["look"], _) => say(&json!({ "cpu_s": cpu_time().as_secs_f64() }))?,
            (["load", seconds, seed], Some((aim, area))) => {
                let wrong = || BenchError::Usage(format!("{line}: no numbers"));
                let span = seconds.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
                let seed = seed.parse().map_err(|_| wrong())?;
                let shape = Shape::one(100, Order::Random, 4 << 10, DEPTH, *area);
                let counted = span.ok_or_else(wrong)?;
                // As slow drives are, it takes a while until all that is under way is.
                let span = Span { warm: counted / 2, ..Span::of(counted) };
                let ran = host.rig.generate(aim, shape, span, seed)?;
                say(&json!({ "iops": ran.tally.rate(), "made": ran.tally.made }))?;
            }
            _ => return Err(BenchError::Usage(format!("{line}: it can't do that"))),
        }
    }
    Ok(())
}

/// Reads something of each drive, so that the core has its connections.
fn look_at(rig: &Rig, drives: &[SharedDrive]) -> Result<(), BenchError> {
    let aim = Aim::Drives { drives: drives.to_vec(), start: 0, bytes: TURN, turn: TURN };
    let record = Arc::new(Record::new(TURN * drives.len() as u64));
    let load = Load::new(Op::Read, Places::Apart(TURN), 4 << 10, 4, &record);
    rig.run(&aim, &load, Until::Once, 0).map(drop)
}

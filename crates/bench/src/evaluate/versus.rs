//! The generator beside fio, over the same files and by the same path: direct I/O by io_uring, or
//! system calls of the thread itself where the files are in memory.
//!
//! Both take turns, a round each; a result is the median of the rounds' ratios.

use super::course::Runner;
use super::options::{Loader, Profile};
use crate::error::BenchError;
use crate::fio;
use crate::fio_load::{self, FioLoad};
use crate::report::{Goal, Report};
use crate::stats::Spread;
use std::time::Duration;
use workload::Workload;

/// How far they may be apart.
const APART: f64 = 0.1;
/// Requests that each thread has under way.
const DEPTH: usize = 64;
/// Rounds, and the longest that each takes.
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_secs(2);

/// Adds `generator-vs-fio-4k-read` and `-write` of bare drives that another process can reach,
/// unless fio makes the loads anyway.
///
/// # Errors
/// When a request fails, or the run is to end.
pub fn against_fio(
    report: &mut Report,
    runner: &Runner<'_>,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    let options = runner.options;
    if options.source.is_in_process() || options.load == Loader::Fio {
        return Ok(());
    }
    let names = ["read", "write"].map(|what| format!("generator-vs-fio-4k-{what}"));
    if !fio::available() {
        let why = "fio is not here: install the package fio";
        names.iter().for_each(|name| report.leave_open(name, why));
        return Ok(());
    }
    let is_quick = options.profile == Profile::Quick;
    let rounds = if is_quick { 1 } else { ROUNDS };
    let counted = options.timing().counted.min(ROUND);
    let dir = fio_load::temporary()?;
    for (name, reads) in names.iter().zip([100, 0]) {
        progress(name);
        let workload = Workload::random(name, reads, 4096, (options.cores.into(), DEPTH));
        let own = runner.load(&workload);
        let theirs = FioLoad {
            name: name.clone(),
            shapes: vec![workload.shape(runner.area, options.rate)],
            reached: runner.yard.reached(),
            cores: options.cores,
            only_counts: true,
            clients: Vec::new(),
        };
        let mut ratios = Vec::new();
        for round in 0..rounds {
            let mine = runner.once(&own, counted, round as u64)?.ran.tally.rate();
            let place = (dir.path(), round + usize::from(reads) * rounds);
            let fio = theirs.run(place, Some(counted), counted, &options.stop)?;
            ratios.push(mine / fio[0].rate());
        }
        let goal = options.is_whole().then_some(Goal::Near(1.0, APART));
        report.add(name, "ratio", Spread::of(ratios), goal);
    }
    Ok(())
}

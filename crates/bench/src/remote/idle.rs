//! What paths cost that do nothing: 24 drives of a shelf by two ports each, all connected by one
//! server process, which has a connection to each drive's controllers for its core.
//!
//! CPU time is what the process says of itself at the begin and the end of some seconds, in which
//! nobody asks it for anything but whether its paths are there. Memory is by how much it has grown
//! from before it connected, for each path. Nothing is compared: the goals are numbers of their
//! own.

use super::RemoteBench;
use super::process::failed;
use super::reach::name;
use super::server::Server;
use super::shelf::Shelf;
use crate::error::BenchError;
use crate::report::{Goal, Report};
use crate::stats::Spread;
use std::time::Instant;

/// Paths that there are.
const PATHS: f64 = 48.0;

/// Measures it.
pub fn measure(
    options: &RemoteBench,
    report: &mut Report,
    progress: &dyn Fn(&str),
) -> Result<(), BenchError> {
    progress("48 idle paths");
    let shelf = Shelf::start(&options.program, &["--namespaces", "1", "--cores", "1"])?;
    let at: Vec<_> = shelf.ports.iter().map(|(_, at)| *at).collect();
    let mut server = Server::start(&options.program, &name(0), &at, None)?;
    server.ready()?;
    if server.paths < PATHS {
        return Err(failed("a server", &format_args!("{} of {PATHS} paths live", server.paths)));
    }
    let (begun, before) = (Instant::now(), server.own_cpu()?);
    // What is measured is a time in which nothing happens.
    std::thread::sleep(options.idle);
    let used = (server.own_cpu()? - before) / begun.elapsed().as_secs_f64();
    report.add("idle-48-paths-cpu", "ratio", Spread::of([used]), Some(Goal::AtMost(0.005)));
    let each = server.grown / 1024.0 / server.paths;
    report.add("memory-per-path-kib", "KiB", Spread::of([each]), Some(Goal::AtMost(192.0)));
    Ok(())
}

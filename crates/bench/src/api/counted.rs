//! Two daemons that differ in whether they count what hosts ask: the same reads of the same volume
//! in turns.

use super::{HOST_BYTES, Run, read};
use crate::error::BenchError;

pub(super) fn measure(run: &mut Run<'_>) -> Result<(), BenchError> {
    (run.progress)("a host with counters and without");
    let without = run.options.start("uncounted", 1, false)?;
    let with = run.options.start("counted", 1, true)?;
    let (mut off, mut on) = (without.host(HOST_BYTES)?, with.host(HOST_BYTES)?);
    let rounds = run.rounds(|counted, span, seed| match counted {
        true => read(&with, &mut on, &run.cpus, span, seed),
        false => read(&without, &mut off, &run.cpus, span, seed),
    })?;
    run.add_sides("api-counters-iops", ["off", "on"], &rounds, 0.99);
    Ok(())
}

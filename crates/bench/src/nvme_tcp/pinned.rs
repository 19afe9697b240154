//! What it costs a target that it may use only as many CPUs as it has data cores, as `taskset`, a
//! cgroup or a container says: 4K reads one at a time, beside a target that may use all CPUs.
//!
//! Both have one core, on the same CPU; the one that is not asked sleeps. The initiator has another
//! CPU: its share of the work does not wait for the target's.

use super::client::{Address, Shape};
use super::{CLIENT_CPU, Cpus, NvmeTcpBench, TARGET_CPU, served};
use crate::bay::{Bay, Make, Source};
use crate::error::BenchError;
use crate::report::{Goal, Report};
use crate::stats::Spread;

const SHAPE: Shape = Shape { is_write: false, bytes: 4 << 10, depth: 1 };
/// How much longer a read may take, as a factor.
const MOST: f64 = 1.2;

const FREE: &str = "4k-read-qd1-us";
const PINNED: &str = "4k-read-qd1-pinned-us";

/// Measures the target at `free`, which may use all CPUs, and one over drives of `source` that may
/// use one only; the volume of each has `bytes`. The calling thread is the initiator.
pub(super) fn measure(
    options: &NvmeTcpBench,
    cpus: &Cpus,
    (free, bytes): (&Address, u64),
    source: Source,
    report: &mut Report,
) -> Result<(), BenchError> {
    if cpus.count() <= CLIENT_CPU {
        for name in [FREE, PINNED] {
            report.leave_open(name, "the initiator needs a CPU beside the target's");
        }
        return Ok(());
    }
    // Threads begin with the CPUs of the thread that makes them.
    cpus.pin(TARGET_CPU);
    let bay = Bay::create(source, Make::default());
    cpus.pin(CLIENT_CPU);
    let bay = bay?;
    let pinned = super::first(served::serve(&bay.rig, &bay.side().aim)?)?;
    let mut queues = Vec::new();
    for address in [free, &pinned] {
        let (admin, controller) = address.associate()?;
        queues.push((address.connect(1, controller, 255)?.0, admin));
    }
    let mut micros = [Vec::new(), Vec::new()];
    // The first round does not count: memory and tables are warm afterwards.
    for round in 0..=options.rounds {
        for side in [round % 2, 1 - round % 2] {
            let sample = queues[side].0.run(SHAPE, bytes, options.span, round as u64)?;
            micros[side].extend((round > 0).then(|| 1e6 / sample.rate()));
        }
    }
    let [free, pinned] = micros.map(Spread::of);
    report.add(FREE, "us", free, None);
    report.add(PINNED, "us", pinned, free.map(|free| Goal::AtMost(MOST * free.median)));
    Ok(())
}

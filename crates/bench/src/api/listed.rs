//! The daemon with many volumes: what they, sessions and streams add to its memory, and how long
//! it takes to read all volumes at once.

use super::client::failed;
use super::daemon::Daemon;
use super::{Run, VOLUME_BYTES, millis};
use crate::error::BenchError;
use crate::report::Goal;
use crate::stats::Spread;
use redfish::service::uri;
use std::time::Instant;

/// Sessions, of as few accounts as may have so many.
const SESSIONS: usize = 64;
const OF_ACCOUNT: usize = 16;
/// Streams.
const STREAMS: usize = 32;

pub(super) fn measure(run: &mut Run<'_>) -> Result<(), BenchError> {
    (run.progress)("making a daemon with many volumes");
    let daemon = run.options.start("listed", run.options.arrays, true)?;
    let others: Vec<String> = (1..SESSIONS / OF_ACCOUNT).map(|n| format!("bench{n}")).collect();
    for name in &others {
        daemon.create_account(name)?;
    }
    // What the first requests need of the allocator is not the volumes'.
    let mut client = daemon.connect()?;
    for uri in [uri::POOLS, uri::VOLUMES, uri::SESSIONS, uri::DRIVES] {
        client.get(&format!("{uri}?$expand=."))?;
    }
    let before = daemon.resident_mib();
    daemon.create_volumes(run.options.listed, VOLUME_BYTES)?;
    (run.progress)("memory of volumes, sessions and streams");
    let with_volumes = daemon.resident_mib();
    let names = others.iter().map(String::as_str).chain([daemon.account()]);
    for name in names {
        // The benchmark's own is one of them.
        let own = usize::from(name == daemon.account());
        for _ in own..OF_ACCOUNT {
            daemon.log_in(name)?;
        }
    }
    let with_sessions = daemon.resident_mib();
    let streams = (0..STREAMS).map(|_| daemon.listen()).collect::<Result<Vec<_>, _>>()?;
    let after = daemon.resident_mib();
    drop(streams);
    let growth = Spread::of([(after - before).max(0.0)]);
    run.add("api-memory-mib", "MiB", growth, Goal::AtMost(32.0));
    for (what, growth) in [
        ("volumes", with_volumes - before),
        ("sessions", with_sessions - with_volumes),
        ("streams", after - with_sessions),
    ] {
        run.tell(&format!("api-memory-{what}-mib"), "MiB", &[growth.max(0.0)]);
    }
    run.tell("api-memory-whole-mib", "MiB", &[after]);
    (run.progress)("all volumes at once");
    list(run, &daemon)
}

fn list(run: &mut Run<'_>, daemon: &Daemon) -> Result<(), BenchError> {
    let (uri, mut client) = (format!("{}?$expand=.", uri::VOLUMES), daemon.connect()?);
    // The first does not count, and tells whether all are there, whole.
    let found = client.get(&uri)?.json()?["Members"].as_array().cloned().unwrap_or_default();
    let whole = found.iter().filter(|volume| volume["CapacityBytes"] == VOLUME_BYTES).count();
    if whole != run.options.listed {
        return Err(failed(&"the list", &format!("{whole} volumes are whole")));
    }
    let (mut all, before) = (Vec::new(), daemon.cpu());
    for _ in 0..run.options.rounds {
        let start = Instant::now();
        client.get(&uri)?;
        all.push(millis(start.elapsed()));
    }
    let cpu = millis(daemon.cpu().saturating_sub(before)) / all.len() as f64;
    run.add("api-list-1000-volumes-ms", "ms", Spread::of(all), Goal::AtMost(50.0));
    run.tell("api-list-1000-volumes-cpu-ms", "ms", &[cpu]);
    Ok(())
}

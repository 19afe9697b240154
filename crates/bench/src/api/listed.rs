//! The daemon with many volumes: what they, sessions and streams add to its memory, and how long
//! it takes to read all volumes at once.

use super::client::{REPORT, failed};
use super::daemon::Daemon;
use super::{Run, VOLUME_BYTES, millis};
use crate::error::BenchError;
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
    let before = daemon.resident_mib();
    let uris = daemon.create_volumes(run.options.listed, VOLUME_BYTES)?;
    (run.progress)("memory of volumes, sessions and streams");
    let with_volumes = daemon.resident_mib();
    let others: Vec<String> = (1..SESSIONS / OF_ACCOUNT).map(|n| format!("bench{n}")).collect();
    for name in &others {
        daemon.create_account(name)?;
    }
    for name in others.iter().map(String::as_str).chain([daemon.account()]) {
        // The benchmark's own is one of them.
        let own = usize::from(name == daemon.account());
        for _ in own..OF_ACCOUNT {
            daemon.log_in(name)?;
        }
    }
    let with_sessions = daemon.resident_mib();
    let listen = |_| daemon.listen_to_reports();
    let streams = (0..STREAMS).map(listen).collect::<Result<Vec<_>, _>>()?;
    for stream in &streams {
        stream.wait_for(REPORT)?;
    }
    let after = daemon.resident_mib();
    drop(streams);
    run.add("api-memory-mib", "MiB", Spread::of([after - before]));
    for (what, growth) in [
        ("volumes", with_volumes - before),
        ("sessions", with_sessions - with_volumes),
        ("streams", after - with_sessions),
        ("whole", after),
    ] {
        run.tell(&format!("api-memory-{what}-mib"), "MiB", &[growth]);
    }
    (run.progress)("all volumes at once");
    list(run, &daemon, uris.len())
}

fn list(run: &mut Run<'_>, daemon: &Daemon, count: usize) -> Result<(), BenchError> {
    let (uri, mut client) = (format!("{}?$expand=.", uri::VOLUMES), daemon.connect()?);
    // The first does not count, and tells whether all are there, whole.
    let found = client.get(&uri)?.json()?["Members"].as_array().cloned().unwrap_or_default();
    let whole = found.iter().filter(|volume| volume["CapacityBytes"] == VOLUME_BYTES).count();
    if whole != count {
        return Err(failed(&"the list", &format!("{whole} volumes are whole")));
    }
    let (mut all, before) = (Vec::new(), daemon.cpu());
    for _ in 0..run.options.rounds {
        let start = Instant::now();
        client.get(&uri)?;
        all.push(millis(start.elapsed()));
    }
    let cpu = millis(daemon.cpu().saturating_sub(before)) / all.len() as f64;
    run.add("api-list-1000-volumes-ms", "ms", Spread::of(all));
    run.tell("api-list-1000-volumes-cpu-ms", "ms", &[cpu]);
    Ok(())
}

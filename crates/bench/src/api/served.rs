//! The daemon of the usual size: single resources, idle and under a host's load; events; logins;
//! what clients take from a host; and what it does when nobody asks.

use super::client::{Client, Stream, failed};
use super::daemon::{Daemon, Host, create_volume};
use super::{HOST_BYTES, HOST_CPU, Run, SHAPE, VOLUME_BYTES, ended, millis, percentile, read};
use crate::error::BenchError;
use crate::nvme_tcp::Cpus;
use crate::report::Goal;
use crate::stats::Spread;
use redfish::service::uri;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

/// Clients beside a host, and how often all of them together ask.
const CLIENTS: usize = 10;
const PERIOD: Duration = Duration::from_millis(10);
/// GETs of a round at least.
const LEAST: usize = 20;
/// Volumes made and deleted in a round of events.
const CHANGES: usize = 20;
/// How often an idle daemon is watched.
const WATCHES: usize = 3;
/// How long a host's load runs at a time, until it looks whether it is to go on.
const LOAD: Duration = Duration::from_millis(200);

pub(super) fn measure(run: &mut Run<'_>) -> Result<(), BenchError> {
    (run.progress)("making a daemon with arrays and volumes");
    let daemon = run.options.start("served", run.options.arrays, true)?;
    let mut uris = daemon.create_volumes(run.options.volumes - 1, VOLUME_BYTES)?;
    let mut host = daemon.host(HOST_BYTES)?;
    uris.truncate(8);
    uris.extend(daemon.pools.first().cloned());
    uris.extend([uri::SYSTEM, uri::STORAGE, uri::MANAGER].map(str::to_owned));
    let drives = daemon.connect()?.get(uri::DRIVES)?.json()?;
    let drive = drives["Members"][0]["@odata.id"].as_str();
    uris.extend(drive.map(str::to_owned));
    (run.progress)("GETs");
    get(run, &daemon, &uris)?;
    (run.progress)("GETs beside a host");
    get_loaded(run, &daemon, &uris, &mut host)?;
    (run.progress)("a host beside GETs");
    host_iops(run, &daemon, &uris, &mut host)?;
    drop(host);
    (run.progress)("events");
    events(run, &daemon)?;
    (run.progress)("logins");
    logins(run, &daemon)?;
    (run.progress)("nobody asks");
    idle(run, &daemon)
}

/// Asks for one resource after the other.
struct Reader<'a> {
    client: Client,
    uris: &'a [String],
    next: usize,
}

impl<'a> Reader<'a> {
    fn new(daemon: &Daemon, uris: &'a [String], next: usize) -> Result<Self, BenchError> {
        Ok(Self { client: daemon.connect()?, uris, next })
    }

    /// Milliseconds of one GET.
    fn get(&mut self) -> Result<f64, BenchError> {
        let uri = &self.uris[self.next % self.uris.len()];
        self.next += 1;
        let start = Instant::now();
        self.client.get(uri)?;
        Ok(millis(start.elapsed()))
    }

    /// Milliseconds of each GET of some time.
    fn get_for(&mut self, span: Duration) -> Result<Vec<f64>, BenchError> {
        let (mut all, end) = (Vec::new(), Instant::now() + span);
        while all.len() < LEAST || Instant::now() < end {
            all.push(self.get()?);
        }
        Ok(all)
    }
}

/// What rounds of GETs came to.
#[derive(Default)]
struct Gets {
    p50: Vec<f64>,
    p99: Vec<f64>,
    cpu_micros: Vec<f64>,
}

fn gets(run: &Run<'_>, daemon: &Daemon, uris: &[String]) -> Result<Gets, BenchError> {
    let (mut reader, mut found) = (Reader::new(daemon, uris, 0)?, Gets::default());
    // Each resource once, as it is composed for the first time.
    for _ in uris {
        reader.get()?;
    }
    for _ in 0..run.options.rounds {
        let before = daemon.cpu();
        let mut all = reader.get_for(run.options.span)?;
        let cpu = daemon.cpu().saturating_sub(before);
        found.cpu_micros.push(cpu.as_secs_f64() * 1e6 / all.len() as f64);
        found.p50.push(percentile(&mut all, 0.50));
        found.p99.push(percentile(&mut all, 0.99));
    }
    Ok(found)
}

fn get(run: &mut Run<'_>, daemon: &Daemon, uris: &[String]) -> Result<(), BenchError> {
    let found = gets(run, daemon, uris)?;
    run.add("api-get-p50-ms", "ms", Spread::of(found.p50), Goal::AtMost(1.0));
    run.add("api-get-p99-ms", "ms", Spread::of(found.p99), Goal::AtMost(5.0));
    run.tell("api-get-cpu-us", "us", &found.cpu_micros);
    Ok(())
}

/// A host's load, until it is told to end; commands per second.
fn load(host: &mut Host, cpus: &Cpus, is_over: &AtomicBool) -> Result<f64, BenchError> {
    cpus.pin(HOST_CPU);
    let (mut operations, start) = (0, Instant::now());
    for seed in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        operations += host.queue.run(SHAPE, host.bytes, LOAD, seed)?.operations;
    }
    Ok(operations as f64 / start.elapsed().as_secs_f64())
}

fn get_loaded(
    run: &mut Run<'_>,
    daemon: &Daemon,
    uris: &[String],
    host: &mut Host,
) -> Result<(), BenchError> {
    let (is_over, cpus) = (AtomicBool::new(false), run.cpus.clone());
    let (found, rate) = scope(|scope| {
        let host = scope.spawn(|| load(host, &cpus, &is_over));
        let found = gets(run, daemon, uris);
        is_over.store(true, Ordering::Relaxed);
        (found, ended(host.join()))
    });
    let (found, rate) = (found?, rate?);
    if rate < 1.0 {
        return Err(failed(&"the host beside GETs", &"it read nothing"));
    }
    run.tell("api-get-loaded-p50-ms", "ms", &found.p50);
    run.add("api-get-loaded-p99-ms", "ms", Spread::of(found.p99), Goal::AtMost(20.0));
    run.tell("api-get-loaded-host", "iops", &[rate]);
    Ok(())
}

/// Clients that ask in turn, one every [`PERIOD`], for this time.
fn ask(readers: &mut [Reader<'_>], span: Duration) -> Result<(), BenchError> {
    let (start, count) = (Instant::now(), readers.len() as u32);
    scope(|scope| {
        let own = |(n, reader)| {
            let work = move || -> Result<(), BenchError> {
                let reader: &mut Reader<'_> = reader;
                let mut at = PERIOD * n;
                while at < span {
                    std::thread::sleep((start + at).saturating_duration_since(Instant::now()));
                    reader.get()?;
                    at += PERIOD * count;
                }
                Ok(())
            };
            scope.spawn(work)
        };
        let threads: Vec<_> = (0u32..).zip(readers.iter_mut()).map(own).collect();
        threads.into_iter().try_for_each(|thread| ended(thread.join()))
    })
}

fn host_iops(
    run: &mut Run<'_>,
    daemon: &Daemon,
    uris: &[String],
    host: &mut Host,
) -> Result<(), BenchError> {
    let readers = (0..CLIENTS).map(|n| Reader::new(daemon, uris, n));
    let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
    let rounds = run.rounds(|asked, span, seed| {
        if !asked {
            return read(daemon, host, &run.cpus, span, seed);
        }
        scope(|scope| {
            let clients = scope.spawn(|| ask(&mut readers, span));
            let sample = read(daemon, host, &run.cpus, span, seed);
            ended(clients.join())?;
            sample
        })
    })?;
    run.add_sides("api-host-iops", ["alone", "asked"], &rounds, 0.97);
    Ok(())
}

/// Milliseconds until the event of a change is read: from its request, and from its answer.
fn told(
    stream: &Stream,
    name: &str,
    change: impl FnOnce() -> Result<(), BenchError>,
) -> Result<(f64, f64), BenchError> {
    let begun = Instant::now();
    change()?;
    let answered = Instant::now();
    let read = stream.wait_for(name)?;
    let since = |time| millis(read.saturating_duration_since(time));
    Ok((since(begun), since(answered)))
}

fn events(run: &mut Run<'_>, daemon: &Daemon) -> Result<(), BenchError> {
    let (stream, mut client) = (daemon.listen()?, daemon.connect()?);
    let (mut whole, mut p99, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..run.options.rounds {
        let (mut requested, mut answered) = (Vec::new(), Vec::new());
        let before = daemon.cpu();
        for _ in 0..CHANGES {
            let mut uri = String::new();
            let created = told(&stream, "VolumeCreated", || {
                uri = create_volume(&mut client, &daemon.pools[0], "event", VOLUME_BYTES)?;
                Ok(())
            })?;
            let deleted =
                told(&stream, "VolumeDeleted", || client.ask("DELETE", &uri, None).map(drop))?;
            for (request, answer) in [created, deleted] {
                requested.push(request);
                answered.push(answer);
            }
        }
        let spent = daemon.cpu().saturating_sub(before);
        cpu.push(millis(spent) / answered.len() as f64);
        whole.push(percentile(&mut requested, 0.99));
        p99.push(percentile(&mut answered, 0.99));
    }
    run.add("api-event-p99-ms", "ms", Spread::of(p99), Goal::AtMost(100.0));
    run.tell("api-event-request-p99-ms", "ms", &whole);
    run.tell("api-event-change-cpu-ms", "ms", &cpu);
    Ok(())
}

/// Each login is an account's first: a password that was found right a moment ago is not computed
/// again.
fn logins(run: &mut Run<'_>, daemon: &Daemon) -> Result<(), BenchError> {
    let (mut client, mut stranger) = (daemon.connect()?, daemon.connect_unknown()?);
    let (mut all, mut cpu) = (Vec::new(), Duration::ZERO);
    for n in 0..run.options.rounds {
        let name = format!("login{n}");
        daemon.create_account(&name)?;
        let body = daemon.credentials(&name);
        let (before, start) = (daemon.cpu(), Instant::now());
        stranger.ask("POST", uri::SESSIONS, Some(&body))?;
        all.push(millis(start.elapsed()));
        cpu += daemon.cpu().saturating_sub(before);
        client.ask("DELETE", &uri::account(&name), None)?;
    }
    let cpu = millis(cpu) / all.len() as f64;
    run.add("api-login-ms", "ms", Spread::of(all), Goal::AtMost(500.0));
    run.tell("api-login-cpu-ms", "ms", &[cpu]);
    Ok(())
}

fn idle(run: &mut Run<'_>, daemon: &Daemon) -> Result<(), BenchError> {
    let stream = daemon.listen()?;
    // What came before is done.
    std::thread::sleep(run.options.idle.min(Duration::from_secs(1)));
    let mut shares = Vec::new();
    for _ in 0..WATCHES {
        let (before, start) = (daemon.cpu(), Instant::now());
        std::thread::sleep(run.options.idle);
        let used = daemon.cpu().saturating_sub(before);
        shares.push(used.as_secs_f64() / start.elapsed().as_secs_f64());
    }
    drop(stream);
    run.add("api-idle-cpu", "ratio", Spread::of(shares), Goal::AtMost(0.01));
    Ok(())
}

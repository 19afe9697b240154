//! What the data cores count, and its sums.
//!
//! Purpose: each core counts the requests of a volume in words of its own ([`front::counters`]).
//! This keeps who may read them, adds them up, and has the sums ready for the view. It asks nobody
//! on a core for anything.
//!
//! | a volume is | its counters                                    | becomes                      |
//! |-------------|-------------------------------------------------|------------------------------|
//! | unknown     | there are none                                  | known: a core opens it       |
//! | known       | stay, whether it is exported or its array runs; | unknown: it is deleted, or   |
//! |             | another core that opens it adds its own         | its array is                 |
//!
//! Invariants
//! - A sum never falls while its volume, export, host or core is known.
//! - A volume that did nothing since the last sample is not added up again, and has the same sums:
//!   what an idle one costs is a look at two cache lines a core.
//! - Locks here are taken when somebody connects and once a second; never for a request.

use crate::lock::lock;
use drives::IoTimes;
use front::counters::{Counts, Kind, Mark, Reader, Writer, counters};
use io::histogram::Times;
use nvme_target::{Done, Visits, Way};
use redfish::counters::{
    self as told, Commands, ControllerCounters, CoreCounters, Counters, DriveCounters, Errors,
    ExportCounters, HostCounters, JobCounters, Latency, Operations, TurnedAway, VolumeCounters,
};
use redfish::view::Client;
use runtime::CoreCounts;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use units::{CoreId, Uuid};

/// What one core counts of a volume.
struct Part {
    core: CoreId,
    reader: Reader,
    /// As of the last sample.
    mark: Mark,
}

/// A volume that somebody has opened.
#[derive(Default)]
struct Known {
    parts: Vec<Part>,
    /// As of the last sample.
    sums: Arc<VolumeCounters>,
}

/// Who came to an export over NBD.
#[derive(Default)]
struct Came(Mutex<Clients>);

/// The connections that have an export, and how many ever had.
#[derive(Default)]
struct Clients {
    /// How each came over the network, by its number.
    now: BTreeMap<u64, Option<Way>>,
    ever: u64,
}

/// A connection that has an export, until it is dropped.
pub struct Arrival(Arc<Came>, u64);

impl Drop for Arrival {
    fn drop(&mut self) {
        lock(&self.0.0).now.remove(&self.1);
    }
}

/// What is read of others for a sample.
pub struct Seen {
    /// How cores spent their time, by number.
    pub cores: Vec<CoreCounts>,
    /// How long requests to drives took that are open, by the drive's id.
    pub drives: Vec<(String, IoTimes)>,
    /// Who came over NVMe.
    pub visits: Visits,
    /// Background work.
    pub jobs: Vec<JobCounters>,
}

/// The last sample, and the second in which it was taken.
type Last = Option<(u64, Arc<Counters>)>;

/// All of it.
pub struct Ledger {
    is_on: bool,
    since: u64,
    start: Instant,
    volumes: Mutex<BTreeMap<Uuid, Known>>,
    /// Requests of volumes that are unknown by now, by core.
    past: Mutex<BTreeMap<CoreId, u64>>,
    /// Exports over NBD, by name.
    exports: Mutex<BTreeMap<String, Arc<Came>>>,
    nbd_turned_away: AtomicU64,
    nvme_turned_away: AtomicU64,
    last: Mutex<Last>,
}

impl Ledger {
    /// Nothing was counted; `now` in seconds since 1970. Requests to volumes are counted if it is
    /// `on`.
    pub fn new(on: bool, now: u64) -> Self {
        let (volumes, past, exports, nbd_turned_away, nvme_turned_away, last) = Default::default();
        let start = Instant::now();
        Self {
            is_on: on,
            since: now,
            start,
            volumes,
            past,
            exports,
            nbd_turned_away,
            nvme_turned_away,
            last,
        }
    }

    /// A core counts a volume from now on.
    fn open(&self, core: CoreId, volume: Uuid) -> Rc<Writer> {
        let (writer, reader) = counters();
        let known = Part { core, reader, mark: Mark::default() };
        lock(&self.volumes).entry(volume).or_default().parts.push(known);
        Rc::new(writer)
    }

    /// A volume is deleted.
    pub fn forget_volume(&self, volume: Uuid) {
        let Some(known) = lock(&self.volumes).remove(&volume) else { return };
        let mut past = lock(&self.past);
        for part in known.parts {
            *past.entry(part.core).or_default() += part.reader.mark().begun();
        }
    }

    /// Exports are deleted.
    pub fn forget_exports(&self, are_gone: impl Fn(&str) -> bool) {
        lock(&self.exports).retain(|export, _| !are_gone(export));
    }

    /// An export is served over NBD.
    pub fn know_export(&self, export: &str) {
        lock(&self.exports).entry(export.to_owned()).or_default();
    }

    /// A connection has an export over NBD; one that was deleted meanwhile is counted no more.
    pub fn arrive(&self, export: &str, way: Option<Way>) -> Arrival {
        let came = lock(&self.exports).get(export).cloned().unwrap_or_default();
        let mut clients = lock(&came.0);
        clients.ever += 1;
        let number = clients.ever;
        clients.now.insert(number, way);
        drop(clients);
        Arrival(came, number)
    }

    /// Who has exports over NBD, by export, in the order in which they came.
    pub fn clients(&self) -> BTreeMap<String, Vec<Client>> {
        let client = |way: &Option<Way>| {
            let Way { host: address, local: local_address } = way.clone().unwrap_or_default();
            Client { address, local_address }
        };
        let of = |(name, came): (&String, &Arc<Came>)| {
            (name.clone(), lock(&came.0).now.values().map(client).collect())
        };
        lock(&self.exports).iter().map(of).collect()
    }

    /// A connection over NBD found no room, or wanted what is not there.
    pub fn turn_away_nbd(&self) {
        self.nbd_turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection over NVMe found no room on its core.
    pub fn turn_away_nvme(&self) {
        self.nvme_turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// When it began.
    pub const fn start(&self) -> Instant {
        self.start
    }

    /// The sums of this second, counted from the start on: taken by the first who asks in it.
    pub fn sample(&self, see: impl FnOnce() -> Seen) -> Arc<Counters> {
        let mut last = lock(&self.last);
        let second = self.start.elapsed().as_secs();
        if let Some((at, counters)) = &*last
            && *at == second
        {
            return counters.clone();
        }
        let before = last.take().map(|(_, counters)| counters).unwrap_or_default();
        let counters = Arc::new(self.add_up(see(), &before));
        *last = Some((second, counters.clone()));
        counters
    }

    fn add_up(&self, seen: Seen, before: &Counters) -> Counters {
        let mut requests = lock(&self.past).clone();
        let volumes = self.add_up_volumes(&mut requests);
        let Seen { cores, drives, visits, jobs } = seen;
        let core = |(number, counts): (usize, CoreCounts)| {
            let begun = requests.get(&CoreId(number as u16)).copied().unwrap_or_default();
            core_counters(number as u16, counts, begun, before.cores.get(number))
        };
        let turned_away = TurnedAway {
            nbd: self.nbd_turned_away.load(Ordering::Relaxed),
            nvme: self.nvme_turned_away.load(Ordering::Relaxed) + visits.turned_away,
        };
        Counters {
            is_on: self.is_on,
            since: self.since,
            nanos: self.start.elapsed().as_nanos() as u64,
            at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64,
            volumes,
            drives: drive_counters(drives),
            exports: self.exports(&visits),
            hosts: visits.hosts.into_iter().map(host_counters).collect(),
            cores: cores.into_iter().enumerate().map(core).collect(),
            jobs,
            turned_away,
        }
    }

    fn add_up_volumes(&self, requests: &mut BTreeMap<CoreId, u64>) -> Vec<Arc<VolumeCounters>> {
        let mut volumes = lock(&self.volumes);
        let sum = |(uuid, known): (&Uuid, &mut Known)| {
            let mut is_changed = known.sums.volume.is_empty();
            for part in &mut known.parts {
                let mark = part.reader.mark();
                is_changed |= mark != part.mark;
                part.mark = mark;
                *requests.entry(part.core).or_default() += mark.begun();
            }
            if is_changed {
                known.sums = Arc::new(volume_counters(*uuid, &known.parts));
            }
            known.sums.clone()
        };
        volumes.iter_mut().map(sum).collect()
    }

    /// Exports of both protocols, by name.
    fn exports(&self, visits: &Visits) -> Vec<ExportCounters> {
        let nbd = |(name, came): (&String, &Arc<Came>)| {
            let clients = lock(&came.0);
            ExportCounters {
                export: name.clone(),
                connections: clients.now.len() as u64,
                connected: clients.ever,
            }
        };
        let mut exports: Vec<ExportCounters> = lock(&self.exports).iter().map(nbd).collect();
        exports.extend(visits.exports.iter().map(|visited| ExportCounters {
            export: visited.export.clone(),
            connections: visited.connections,
            connected: visited.connected,
        }));
        exports.sort_by(|a, b| a.export.cmp(&b.export));
        exports
    }
}

/// What one core counts by; stays on its thread.
pub struct OnCore {
    core: CoreId,
    ledger: Arc<Ledger>,
    writers: RefCell<BTreeMap<Uuid, Rc<Writer>>>,
}

impl OnCore {
    /// Nothing is counted on this core yet.
    pub fn new(core: CoreId, ledger: Arc<Ledger>) -> Rc<Self> {
        Rc::new(Self { core, ledger, writers: RefCell::default() })
    }

    /// What all cores share.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// What requests to a volume are counted by on this core, if they are. For whoever opens it,
    /// not for a request.
    pub fn writer(&self, volume: Uuid) -> Option<Rc<Writer>> {
        if !self.ledger.is_on {
            return None;
        }
        let mut writers = self.writers.borrow_mut();
        if let Some(writer) = writers.get(&volume).filter(|writer| writer.is_read()) {
            return Some(writer.clone());
        }
        // Those of deleted volumes go when another volume comes.
        writers.retain(|_, writer| writer.is_read());
        let writer = self.ledger.open(self.core, volume);
        writers.insert(volume, writer.clone());
        Some(writer)
    }
}

fn operations(parts: &[Part], kind: Kind) -> Operations {
    let mut sum = Operations::default();
    for part in parts {
        let Counts { times, bytes, failed, abandoned } = part.reader.counts(kind);
        let [bounds, unavailable, stopped] = failed;
        sum.add(&Operations {
            under_way: part.mark.under_way(kind),
            latency: latency(&times),
            bytes,
            errors: Errors { bounds, unavailable, stopped },
            abandoned,
        });
    }
    sum
}

/// In the order of their ids, and each once.
fn drive_counters(mut drives: Vec<(String, IoTimes)>) -> Vec<DriveCounters> {
    drives.sort_by(|a, b| a.0.cmp(&b.0));
    drives.dedup_by(|a, b| a.0 == b.0);
    let counters = |(drive, IoTimes { reads, writes })| DriveCounters {
        drive,
        reads: latency(&reads),
        writes: latency(&writes),
    };
    drives.into_iter().map(counters).collect()
}

fn latency(times: &Times) -> Latency {
    Latency { buckets: times.buckets, nanos: times.nanos }
}

fn volume_counters(volume: Uuid, parts: &[Part]) -> VolumeCounters {
    VolumeCounters {
        volume: volume.to_string(),
        reads: operations(parts, Kind::Read),
        writes: operations(parts, Kind::Write),
        flushes: operations(parts, Kind::Flush),
        discards: operations(parts, Kind::Discard),
    }
}

/// What a core did, and no less of anything than before: its words are read while it goes on.
fn core_counters(
    core: u16,
    counts: CoreCounts,
    requests: u64,
    before: Option<&CoreCounters>,
) -> CoreCounters {
    let before = before.copied().unwrap_or_default();
    let looking_nanos = counts.looking.0.max(before.looking_nanos);
    let asleep_nanos = counts.asleep.0.max(before.asleep_nanos);
    let least = before.busy_nanos().saturating_add(looking_nanos).saturating_add(asleep_nanos);
    CoreCounters {
        core,
        nanos: counts.time.0.max(least),
        looking_nanos,
        asleep_nanos,
        turns: counts.turns,
        mails: counts.mails,
        requests: requests.max(before.requests),
    }
}

fn commands(done: Done) -> Commands {
    let Done { reads, writes, read_bytes, written_bytes } = done;
    Commands { reads, writes, read_bytes, written_bytes }
}

fn host_counters(visitor: nvme_target::Visitor) -> HostCounters {
    let controller = |present: nvme_target::Present| ControllerCounters {
        subsystem: present.subsystem,
        controller: present.controller,
        queues: present.queues as u64,
        since: present.since,
        commands: commands(present.done),
    };
    HostCounters {
        host: visitor.host,
        controllers: visitor.present.into_iter().map(controller).collect(),
        connected: visitor.connected,
        commands: commands(visitor.done),
    }
}

const _: () = assert!(told::BUCKETS == io::histogram::BUCKETS, "intervals are told as counted");

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;

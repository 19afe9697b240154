//! What was counted: requests to volumes, hosts' commands, the cores' time, background work.

use super::Names;
use super::text::{Text, labels};
use crate::counters::{BUCKETS, Errors, HostCounters, Kind, Latency, Operations};
use crate::view::View;
use core::fmt::{self, Display};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Most hosts that are told.
const HOSTS: usize = 256;

/// The bounds of the histograms, in seconds: every second one of what is counted. What is done
/// within one turn of a core took no time by its clock, so that bounds below a turn say nothing.
static BOUNDS: LazyLock<Vec<(usize, String)>> = LazyLock::new(|| {
    let limits = Latency::limits().enumerate().filter(|(at, _)| *at > 2 && at.is_multiple_of(2));
    let seconds = |(at, limit): (usize, Option<u64>)| {
        Some((at, Nanos(limit?.saturating_mul(1_000)).to_string()))
    };
    limits.filter_map(seconds).collect()
});

/// Nanoseconds, written as seconds.
struct Nanos(u64);

impl Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if part == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{part:09}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// Kinds of requests that move bytes.
const MOVING: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Discard];

pub fn write(text: &mut Text, view: &View, names: &Names<'_>) {
    volumes(text, view, names);
    drives(text, view);
    exports(text, view, names);
    hosts(text, view);
    cores(text, view);
    jobs(text, view);
}

/// A volume that nobody has opened has none of these.
fn volumes(text: &mut Text, view: &View, names: &Names<'_>) {
    let counters = &view.counters;
    let is_on = "Whether requests to volumes are counted.";
    text.gauge("palisade_counters_enabled", is_on);
    text.put("", super::text::truth(counters.is_on));
    let mut all: Vec<(String, &Operations, Kind)> = Vec::new();
    for array in &view.status.arrays {
        let name = names.array(array);
        for volume in &array.volumes {
            let Some(own) = counters.volume(&volume.uuid) else { continue };
            for kind in Kind::ALL {
                let own_labels =
                    [("array", &name[..]), ("volume", &volume.name), ("op", kind.word())];
                all.push((labels(&own_labels), own.of(kind), kind));
            }
        }
    }
    let operations = "Requests to a volume that were done.";
    text.counter("palisade_volume_operations_total", operations);
    all.iter().for_each(|(labels, own, _)| text.put(labels, own.done()));
    text.counter("palisade_volume_bytes_total", "Bytes of requests to a volume that were done.");
    for (labels, own, _) in all.iter().filter(|(.., kind)| MOVING.contains(kind)) {
        text.put(labels, own.bytes);
    }
    text.counter("palisade_volume_errors_total", "Requests to a volume that failed, by reason.");
    for (labels, own, _) in &all {
        let Errors { bounds, unavailable, stopped } = own.errors;
        let reasons = [("bounds", bounds), ("unavailable", unavailable), ("stopped", stopped)];
        for (reason, count) in reasons {
            text.with(labels, ("reason", reason), count);
        }
    }
    text.gauge("palisade_volume_requests_under_way", "Requests to a volume that are under way.");
    all.iter().for_each(|(labels, own, _)| text.put(labels, own.under_way));
    let latency = "How long requests to a volume took that were done.";
    text.family(super::text::Kind::Histogram, "palisade_volume_latency_seconds", latency);
    for (labels, own, _) in &all {
        // What never happened needs no samples that say so.
        if own.done() > 0 {
            histogram(text, labels, &own.latency);
        }
    }
}

/// A drive that the daemon has not opened has none of these.
fn drives(text: &mut Text, view: &View) {
    let latency = "How long requests to a drive took that were done.";
    text.family(super::text::Kind::Histogram, "palisade_drive_latency_seconds", latency);
    for known in &view.drives {
        let Some(own) = view.counters.drive(&known.id) else { continue };
        for (op, latency) in [("read", &own.reads), ("write", &own.writes)] {
            if latency.count() > 0 {
                histogram(text, &labels(&[("drive", &known.id), ("op", op)]), latency);
            }
        }
    }
}

fn histogram(text: &mut Text, labels: &str, latency: &Latency) {
    let mut below = [0_u64; BUCKETS];
    let mut sum = 0_u64;
    for (below, count) in below.iter_mut().zip(latency.buckets) {
        sum = sum.wrapping_add(count);
        *below = sum;
    }
    let bounds = BOUNDS.iter();
    let buckets =
        bounds.map(|(at, bound)| (&bound[..], below.get(*at).copied().unwrap_or_default()));
    text.histogram(labels, buckets, sum, Nanos(latency.nanos));
}

fn exports(text: &mut Text, view: &View, names: &Names<'_>) {
    let mut all = Vec::new();
    for array in &view.status.arrays {
        let name = names.array(array);
        for export in &array.exports {
            if let Some(own) = view.counters.export(&export.id) {
                all.push((super::exports::labels_of(&name, export), own));
            }
        }
    }
    let now = "Who has an export: connections over NBD, controllers of hosts over NVMe.";
    text.gauge("palisade_export_connections", now);
    all.iter().for_each(|(labels, own)| text.put(labels, own.connections));
    let ever = "How many came to have an export since it was first served.";
    text.counter("palisade_export_connected_total", ever);
    all.iter().for_each(|(labels, own)| text.put(labels, own.connected));
    let away = "Who came to a front end and found no room, or asked for what is not there.";
    text.counter("palisade_turned_away_total", away);
    let turned_away = &view.counters.turned_away;
    text.with("", ("protocol", "nbd"), turned_away.nbd);
    text.with("", ("protocol", "nvme-tcp"), turned_away.nvme);
}

/// Hosts that have a controller or that an export names, up to [`HOSTS`]: the names of others are
/// whatever they made up.
fn hosts(text: &mut Text, view: &View) {
    let exports = view.status.arrays.iter().flat_map(|array| &array.exports);
    let named = exports.filter_map(|export| export.nvme.as_ref()).flat_map(|nvme| &nvme.hosts);
    let named: BTreeSet<&String> = named.collect();
    let is_told = |own: &&HostCounters| !own.controllers.is_empty() || named.contains(&own.host);
    let all = view.counters.hosts.iter();
    let told: Vec<_> = all.filter(is_told).take(HOSTS).collect();
    let omitted = "NVMe hosts without samples: no export names them, or they are too many.";
    text.gauge("palisade_hosts_omitted", omitted);
    text.put("", view.counters.hosts.len().saturating_sub(told.len()));
    let all: Vec<_> = told.into_iter().map(|own| (labels(&[("host", &own.host)]), own)).collect();
    text.gauge("palisade_host_controllers", "Controllers that an NVMe host has now.");
    all.iter().for_each(|(labels, own)| text.put(labels, own.controllers.len()));
    text.gauge("palisade_host_queues", "Connections of TCP that an NVMe host has now.");
    for (labels, own) in &all {
        let queues = own.controllers.iter().map(|controller| controller.queues);
        text.put(labels, queues.fold(0, u64::saturating_add));
    }
    text.counter("palisade_host_connected_total", "Controllers that an NVMe host has had.");
    all.iter().for_each(|(labels, own)| text.put(labels, own.connected));
    text.counter("palisade_host_operations_total", "Commands of an NVMe host that were done.");
    for (labels, own) in &all {
        text.with(labels, ("op", "read"), own.commands.reads);
        text.with(labels, ("op", "write"), own.commands.writes);
    }
    text.counter("palisade_host_bytes_total", "Bytes of an NVMe host's commands.");
    for (labels, own) in &all {
        text.with(labels, ("op", "read"), own.commands.read_bytes);
        text.with(labels, ("op", "write"), own.commands.written_bytes);
    }
}

fn cores(text: &mut Text, view: &View) {
    let cores = view.counters.cores.iter();
    let all: Vec<_> = cores.map(|own| (labels(&[("core", &own.core.to_string())]), own)).collect();
    text.counter("palisade_core_seconds_total", "How a data core spent its time.");
    for (labels, own) in &all {
        text.with(labels, ("mode", "busy"), Nanos(own.busy_nanos()));
        text.with(labels, ("mode", "looking"), Nanos(own.looking_nanos));
        text.with(labels, ("mode", "asleep"), Nanos(own.asleep_nanos));
    }
    let turns = "Looks of a data core at timers, sockets, drives and mail.";
    text.counter("palisade_core_turns_total", turns);
    all.iter().for_each(|(labels, own)| text.put(labels, own.turns));
    text.counter("palisade_core_mails_total", "Mail that came to a data core.");
    all.iter().for_each(|(labels, own)| text.put(labels, own.mails));
    text.counter("palisade_core_requests_total", "Requests to volumes that a data core began.");
    all.iter().for_each(|(labels, own)| text.put(labels, own.requests));
}

fn jobs(text: &mut Text, view: &View) {
    text.counter("palisade_jobs_total", "What came of jobs since the daemon's start.");
    for own in &view.counters.jobs {
        let labels = labels(&[("kind", own.kind.word())]);
        let all = [
            ("started", own.started),
            ("completed", own.completed),
            ("cancelled", own.cancelled),
            ("interrupted", own.interrupted),
            ("stuck", own.stuck),
        ];
        for (event, count) in all {
            text.with(&labels, ("event", event), count);
        }
    }
}

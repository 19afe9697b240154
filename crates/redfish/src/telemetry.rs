//! Metrics as Redfish has them (DSP0268, `MetricDefinition`): a table of what is told, and the
//! readings that a view has of it, by report.
//!
//! Invariants
//! - Each reading is of a metric in [`METRICS`] that belongs to the reading's report.
//! - A reading names the property that it is of, or where no resource has such a property, the
//!   resource. No two readings of a report are of one metric and one property.

use crate::counters::Kind;
use crate::service::uri;
use crate::view::{Job, View};
use std::collections::BTreeMap;

/// What a report is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "each is named after what it is of")]
pub enum Report {
    Volumes,
    Exports,
    Hosts,
    Cores,
    Drives,
    Jobs,
}

impl Report {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Volumes, Self::Exports, Self::Hosts, Self::Cores, Self::Drives, Self::Jobs];

    /// Its identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Volumes => "Volumes",
            Self::Exports => "Exports",
            Self::Hosts => "Hosts",
            Self::Cores => "Cores",
            Self::Drives => "Drives",
            Self::Jobs => "Jobs",
        }
    }

    /// The report of this identifier.
    pub fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|report| report.id() == id)
    }

    /// Its metrics.
    pub fn metrics(self) -> impl Iterator<Item = &'static Metric> {
        METRICS.iter().filter(move |metric| metric.report == self)
    }
}

/// What a metric's values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// They only grow while the daemon runs.
    Counter,
    /// They go up and down.
    Gauge,
    /// `true` or `false`.
    Truth,
}

/// Something that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its identifier.
    pub id: &'static str,
    /// In which report it is.
    pub report: Report,
    /// What its values are.
    pub values: Values,
    /// Their unit (UCUM); empty if there is none.
    pub units: &'static str,
    /// What it says.
    pub about: &'static str,
}

const fn metric(
    id: &'static str,
    report: Report,
    (values, units): (Values, &'static str),
    about: &'static str,
) -> Metric {
    Metric { id, report, values, units, about }
}

/// All of them.
pub const METRICS: &[Metric] = &{
    use Report::{Cores, Drives, Exports, Hosts, Jobs, Volumes};
    use Values::{Counter, Gauge, Truth};
    const COUNT: (Values, &str) = (Counter, "");
    const BYTES: (Values, &str) = (Counter, "By");
    const TIME: (Values, &str) = (Counter, "ns");
    const MILLIS: (Values, &str) = (Counter, "ms");
    [
        metric("VolumeReads", Volumes, COUNT, "Reads that were done"),
        metric("VolumeReadBytes", Volumes, BYTES, "Bytes read"),
        metric("VolumeReadTime", Volumes, TIME, "Time of the reads together"),
        metric("VolumeReadLatencies", Volumes, COUNT, "Reads by the time that they took"),
        metric(
            "VolumeReadErrors",
            Volumes,
            COUNT,
            "Reads for which drives are missing or blocks lost",
        ),
        metric("VolumeWrites", Volumes, COUNT, "Writes that were done"),
        metric("VolumeWriteBytes", Volumes, BYTES, "Bytes written"),
        metric("VolumeWriteTime", Volumes, TIME, "Time of the writes together"),
        metric("VolumeWriteLatencies", Volumes, COUNT, "Writes by the time that they took"),
        metric(
            "VolumeWriteErrors",
            Volumes,
            COUNT,
            "Writes for which drives are missing or blocks lost",
        ),
        metric("VolumeFlushes", Volumes, COUNT, "Flushes that were done"),
        metric("VolumeFlushTime", Volumes, TIME, "Time of the flushes together"),
        metric("VolumeFlushLatencies", Volumes, COUNT, "Flushes by the time that they took"),
        metric(
            "VolumeFlushErrors",
            Volumes,
            COUNT,
            "Flushes for which drives are missing or blocks lost",
        ),
        metric("VolumeDiscards", Volumes, COUNT, "Discards that were done"),
        metric("VolumeDiscardBytes", Volumes, BYTES, "Bytes discarded"),
        metric("VolumeDiscardTime", Volumes, TIME, "Time of the discards together"),
        metric("VolumeDiscardLatencies", Volumes, COUNT, "Discards by the time that they took"),
        metric(
            "VolumeDiscardErrors",
            Volumes,
            COUNT,
            "Discards for which drives are missing or blocks lost",
        ),
        metric("ExportServing", Exports, (Truth, ""), "Whether an export is served now"),
        metric("ExportConnections", Exports, (Gauge, ""), "Who has an export now"),
        metric("ExportConnected", Exports, COUNT, "Who has had an export"),
        metric("HostControllers", Hosts, (Gauge, ""), "Controllers that a host has now"),
        metric("HostReads", Hosts, COUNT, "A host's reads that were done"),
        metric("HostReadBytes", Hosts, BYTES, "Bytes that a host read"),
        metric("HostWrites", Hosts, COUNT, "A host's writes that were done"),
        metric("HostWriteBytes", Hosts, BYTES, "Bytes that a host wrote"),
        metric("CoreBusy", Cores, MILLIS, "Time in which a core worked"),
        metric("CoreLooking", Cores, MILLIS, "Time in which a core looked for work"),
        metric("CoreAsleep", Cores, MILLIS, "Time in which a core slept"),
        metric("CoreRequests", Cores, COUNT, "Requests to volumes that a core began"),
        metric("DriveReadErrors", Drives, COUNT, "Reads that met unreadable blocks"),
        metric("DriveFailures", Drives, COUNT, "Requests to a drive that failed otherwise"),
        metric("DriveTimeouts", Drives, COUNT, "Requests to a drive that took too long"),
        metric("DriveReads", Drives, COUNT, "Reads asked of a drive"),
        metric("DriveReadBytes", Drives, BYTES, "Bytes read from a drive"),
        metric("DriveWrites", Drives, COUNT, "Writes asked of a drive"),
        metric("DriveWriteBytes", Drives, BYTES, "Bytes written to a drive"),
        metric("DriveFlushes", Drives, COUNT, "Flushes asked of a drive"),
        metric("JobPercentComplete", Jobs, (Gauge, "%"), "How far a job is"),
        metric("JobDoneBytes", Jobs, (Gauge, "By"), "Bytes per drive that a job has done"),
        metric("JobTimeLeft", Jobs, (Gauge, "s"), "How long a job will take"),
    ]
};

/// The metric of this identifier.
pub fn metric_of(id: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.id == id)
}

/// A value at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The metric's identifier.
    pub metric: &'static str,
    /// The property, or resource, that it is of.
    pub of: String,
    /// The value.
    pub value: String,
}

/// Readings that are being collected.
#[derive(Default)]
struct Readings(Vec<Reading>);

impl Readings {
    fn put(&mut self, metric: &'static str, of: impl Into<String>, value: impl ToString) {
        self.0.push(Reading { metric, of: of.into(), value: value.to_string() });
    }
}

/// What a view says for a report.
pub fn readings(view: &View, report: Report) -> Vec<Reading> {
    collected(view, None, report)
}

/// The same; volumes whose counters are those of the other view need not be there.
fn collected(view: &View, other: Option<&View>, report: Report) -> Vec<Reading> {
    let mut all = Readings::default();
    match report {
        Report::Volumes => volumes(view, other, &mut all),
        Report::Exports => exports(view, &mut all),
        Report::Hosts => hosts(view, &mut all),
        Report::Cores => cores(view, &mut all),
        Report::Drives => drives(view, &mut all),
        Report::Jobs => {
            view.jobs.iter().filter(|own| own.ended.is_none()).for_each(|own| job(own, &mut all));
        }
    }
    all.0
}

/// The same, less what the view before said, too.
pub fn changes(before: &View, view: &View, report: Report) -> Vec<Reading> {
    let mut all = collected(view, Some(before), report);
    let known = collected(before, Some(view), report);
    let known: BTreeMap<(&str, &str), &str> =
        known.iter().map(|own| ((own.metric, &own.of[..]), &own.value[..])).collect();
    all.retain(|own| known.get(&(own.metric, &own.of[..])) != Some(&&own.value[..]));
    all
}

fn volumes(view: &View, other: Option<&View>, all: &mut Readings) {
    for volume in view.status.arrays.iter().flat_map(|array| &array.volumes) {
        let Some(own) = view.counters.volume(&volume.uuid) else { continue };
        let others = other.and_then(|other| other.counters.volume(&volume.uuid));
        if others.is_some_and(|other| core::ptr::eq(other, own)) {
            continue;
        }
        let uri = uri::volume_metrics(&volume.uuid);
        for kind in Kind::ALL {
            let (object, [done, bytes, time, latencies, errors]) = names(kind);
            let of = |name: &str| format!("{uri}#/Oem/Palisade/{object}/{name}");
            let own = own.of(kind);
            all.put(done, of("Done"), own.done());
            if !bytes.is_empty() {
                all.put(bytes, of("Bytes"), own.bytes);
            }
            all.put(time, of("Nanoseconds"), own.latency.nanos);
            // Most intervals hold nothing: those are not told.
            for (at, count) in own.latency.buckets.iter().enumerate().filter(|own| *own.1 > 0) {
                all.put(latencies, of(&format!("Latencies/{at}")), count);
            }
            all.put(errors, of("Unavailable"), own.errors.unavailable);
        }
    }
}

/// The object that a volume's metrics have of a kind of request, and our metrics of it: how many
/// were done, their bytes and time, how long each took, and how many could not be done.
const fn names(kind: Kind) -> (&'static str, [&'static str; 5]) {
    match kind {
        Kind::Read => (
            "Reads",
            [
                "VolumeReads",
                "VolumeReadBytes",
                "VolumeReadTime",
                "VolumeReadLatencies",
                "VolumeReadErrors",
            ],
        ),
        Kind::Write => (
            "Writes",
            [
                "VolumeWrites",
                "VolumeWriteBytes",
                "VolumeWriteTime",
                "VolumeWriteLatencies",
                "VolumeWriteErrors",
            ],
        ),
        Kind::Flush => (
            "Flushes",
            ["VolumeFlushes", "", "VolumeFlushTime", "VolumeFlushLatencies", "VolumeFlushErrors"],
        ),
        Kind::Discard => (
            "Discards",
            [
                "VolumeDiscards",
                "VolumeDiscardBytes",
                "VolumeDiscardTime",
                "VolumeDiscardLatencies",
                "VolumeDiscardErrors",
            ],
        ),
    }
}

fn exports(view: &View, all: &mut Readings) {
    for array in &view.status.arrays {
        for export in &array.exports {
            let Some(number) = uri::export_number(&export.id) else { continue };
            let fabric = export.kind.fabric();
            let uri = uri::connection(fabric, &uri::connection_id(&array.uuid, number));
            all.put("ExportServing", format!("{uri}#/Oem/Palisade/Serving"), export.serving);
            let Some(own) = view.counters.export(&export.id) else { continue };
            all.put("ExportConnections", &uri[..], own.connections);
            all.put("ExportConnected", &uri[..], own.connected);
        }
    }
}

/// Those that are an end of some export.
fn hosts(view: &View, all: &mut Readings) {
    let exports = view.status.arrays.iter().flat_map(|array| &array.exports);
    let ends: Vec<_> = exports.filter_map(|export| export.nvme.as_ref()).collect();
    for host in view.counters.hosts.iter().filter(|host| !host.host.is_empty()) {
        let is_end = ends.iter().any(|nvme| {
            let is_connected = nvme.connections.iter().any(|end| end.host == host.host);
            is_connected || nvme.hosts.contains(&host.host)
        });
        if !is_end {
            continue;
        }
        let uri = &uri::endpoint("nvme", &uri::endpoint_id("host", &host.host))[..];
        all.put("HostControllers", uri, host.controllers.len());
        all.put("HostReads", uri, host.commands.reads);
        all.put("HostReadBytes", uri, host.commands.read_bytes);
        all.put("HostWrites", uri, host.commands.writes);
        all.put("HostWriteBytes", uri, host.commands.written_bytes);
    }
}

fn cores(view: &View, all: &mut Readings) {
    for (at, own) in view.counters.cores.iter().enumerate() {
        let of = |name: &str| format!("{}#/Oem/Palisade/CoreTimes/{at}/{name}", uri::MANAGER);
        all.put("CoreBusy", of("BusyMilliseconds"), own.busy_nanos() / 1_000_000);
        all.put("CoreLooking", of("LookingMilliseconds"), own.looking_nanos / 1_000_000);
        all.put("CoreAsleep", of("AsleepMilliseconds"), own.asleep_nanos / 1_000_000);
        all.put("CoreRequests", of("Requests"), own.requests);
    }
}

fn drives(view: &View, all: &mut Readings) {
    for array in &view.status.arrays {
        let pool = uri::pool(&array.uuid);
        for (at, slot) in array.slots.iter().enumerate() {
            let of = |name: &str| format!("{pool}#/Oem/Palisade/Slots/{at}/{name}");
            all.put("DriveReadErrors", of("ReadErrors"), slot.read_errors);
            all.put("DriveFailures", of("Failures"), slot.failures);
            all.put("DriveTimeouts", of("Timeouts"), slot.timeouts);
        }
        for (at, io) in array.drive_io.iter().enumerate() {
            let of = |name: &str| format!("{pool}#/Oem/Palisade/DriveRequests/{at}/{name}");
            all.put("DriveReads", of("Reads"), io.reads);
            all.put("DriveReadBytes", of("ReadBytes"), io.read_bytes);
            all.put("DriveWrites", of("Writes"), io.writes);
            all.put("DriveWriteBytes", of("WriteBytes"), io.write_bytes);
            all.put("DriveFlushes", of("Flushes"), io.flushes);
        }
    }
}

fn job(own: &Job, all: &mut Readings) {
    let (uri, task) = (uri::job(&own.id), &own.task);
    let percent = crate::service::percent(task.done_bytes, task.total_bytes);
    all.put("JobPercentComplete", format!("{uri}#/PercentComplete"), percent);
    all.put("JobDoneBytes", format!("{uri}#/Oem/Palisade/DoneBytes"), task.done_bytes);
    if let Some(left) = task.seconds_left {
        all.put("JobTimeLeft", format!("{uri}#/Oem/Palisade/SecondsLeft"), left);
    }
}

#[cfg(test)]
#[path = "telemetry_tests.rs"]
mod tests;

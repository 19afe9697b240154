//! What two views say of the time between them.
//!
//! Invariants
//! - Each thing has one row at most.
//! - A volume that nobody has opened yet did nothing. A thing of an array that does not run has no
//!   row, but drives have their temperature and wear.

use super::series::{Buckets, Kind, Row};
use crate::counters::{Counters, Operations, VolumeCounters};
use crate::view::{ArrayState, DriveIo, KnownDrive, View};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names a thing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Key {
    /// The machine.
    Machine,
    /// An array, by UUID.
    Array(Box<str>),
    /// A volume, by UUID.
    Volume(Box<str>),
    /// A drive, by identifier.
    Drive(Box<str>),
}

impl Key {
    /// Something of a kind, by its name; none if it has no name, and should.
    pub fn of(kind: Kind, name: &str) -> Option<Self> {
        match kind {
            Kind::Machine => name.is_empty().then_some(Self::Machine),
            _ if name.is_empty() => None,
            Kind::Array => Some(Self::Array(name.into())),
            Kind::Volume => Some(Self::Volume(name.into())),
            Kind::Drive => Some(Self::Drive(name.into())),
        }
    }

    /// What it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Machine => Kind::Machine,
            Self::Array(_) => Kind::Array,
            Self::Volume(_) => Kind::Volume,
            Self::Drive(_) => Kind::Drive,
        }
    }

    /// Its name; the machine has none.
    pub fn name(&self) -> &str {
        match self {
            Self::Machine => "",
            Self::Array(name) | Self::Volume(name) | Self::Drive(name) => name,
        }
    }

    /// What it takes, in bytes.
    pub fn bytes(&self) -> usize {
        self.name().len() + size_of::<Self>()
    }
}

/// What was done between two samples, of one kind.
#[derive(Clone, Copy, Default)]
struct Did {
    done: u64,
    bytes: u64,
    nanos: u64,
    buckets: [u64; crate::counters::BUCKETS],
}

impl Did {
    /// None if the counters began anew.
    fn between(before: &Operations, now: &Operations) -> Option<Self> {
        let mut did = Self {
            done: now.done().checked_sub(before.done())?,
            bytes: now.bytes.checked_sub(before.bytes)?,
            nanos: now.latency.nanos.checked_sub(before.latency.nanos)?,
            ..Self::default()
        };
        let both = now.latency.buckets.iter().zip(before.latency.buckets);
        for (own, (now, before)) in did.buckets.iter_mut().zip(both) {
            *own = now.saturating_sub(before);
        }
        Some(did)
    }

    fn add(&mut self, more: &Self) {
        self.done += more.done;
        self.bytes += more.bytes;
        self.nanos += more.nanos;
        let all = self.buckets.iter_mut().zip(more.buckets);
        all.for_each(|(own, more)| *own += more);
    }
}

/// Requests between two samples.
#[derive(Clone, Copy, Default)]
struct Flow {
    reads: Did,
    writes: Did,
    under_way: u64,
}

impl Flow {
    fn between(before: &VolumeCounters, now: &VolumeCounters) -> Option<Self> {
        Some(Self {
            reads: Did::between(&before.reads, &now.reads)?,
            writes: Did::between(&before.writes, &now.writes)?,
            under_way: now.reads.under_way.saturating_add(now.writes.under_way),
        })
    }

    fn add(&mut self, more: &Self) {
        self.reads.add(&more.reads);
        self.writes.add(&more.writes);
        self.under_way = self.under_way.saturating_add(more.under_way);
    }

    /// The row of it, over so many seconds.
    fn row(&self, seconds: f64) -> Row {
        let mut row = Row::default();
        let mut buckets = Buckets::default();
        for (at, did) in [&self.reads, &self.writes].into_iter().enumerate() {
            row.put(at, did.done as f64 / seconds);
            row.put(2 + at, did.bytes as f64 / seconds);
            if did.done > 0 {
                row.put(4 + at, did.nanos as f64 / did.done as f64 / 1000.0);
            }
            for (own, count) in buckets.get_mut(at).into_iter().flatten().zip(did.buckets) {
                *own = count as f32;
            }
        }
        row.done = [self.reads.done as f32, self.writes.done as f32];
        row.buckets = (self.reads.done + self.writes.done > 0).then_some(buckets);
        row
    }
}

/// What all volumes did that somebody has opened, by UUID. None did nothing, or began anew.
struct Flows<'a> {
    of: BTreeMap<&'a str, Option<Flow>>,
}

impl<'a> Flows<'a> {
    fn between(before: &Counters, now: &'a Counters) -> Self {
        let none = VolumeCounters::default();
        let mut known = before.volumes.iter().peekable();
        let flow = |own: &'a Arc<VolumeCounters>| {
            while known.next_if(|last| last.volume < own.volume).is_some() {}
            let last = known.next_if(|last| last.volume == own.volume);
            let flow = match last {
                Some(last) if Arc::ptr_eq(last, own) => Some(idle(own)),
                last => Flow::between(last.map_or(&none, |last| &**last), own),
            };
            (own.volume.as_str(), flow)
        };
        Self { of: now.volumes.iter().map(flow).collect() }
    }

    /// None if the volume's counters began anew.
    fn of(&self, volume: &str) -> Option<Flow> {
        self.of.get(volume).copied().unwrap_or_else(|| Some(Flow::default()))
    }
}

/// Of a volume that did nothing.
fn idle(own: &VolumeCounters) -> Flow {
    let under_way = own.reads.under_way.saturating_add(own.writes.under_way);
    Flow { under_way, ..Flow::default() }
}

/// The rows of all things. The views are of one run of the daemon, one after the other.
pub fn rows(before: &View, view: &View, put: &mut dyn FnMut(Key, Row)) {
    let (last, now) = (&before.counters, &view.counters);
    let seconds = now.nanos.saturating_sub(last.nanos) as f64 / 1e9;
    let flows = Flows::between(last, now);
    let mut machine = match now.is_on {
        true => {
            let mut all = Flow::default();
            flows.of.values().flatten().for_each(|flow| all.add(flow));
            let mut row = all.row(seconds);
            row.put(8, all.under_way as f64);
            row
        }
        false => Row::default(),
    };
    put_cores(last, now, &mut machine);
    machine.put(11, hosts(view) as f64);
    put(Key::Machine, machine);
    let is_running = |state: ArrayState| state != ArrayState::Stopped;
    for array in view.status.arrays.iter().filter(|array| is_running(array.state) && now.is_on) {
        let mut all = Flow::default();
        for volume in &array.volumes {
            let row = match flows.of(&volume.uuid) {
                Some(flow) => {
                    all.add(&flow);
                    flow.row(seconds)
                }
                None => continue,
            };
            put(Key::Volume(volume.uuid.as_str().into()), row);
        }
        let mut row = all.row(seconds);
        row.put(8, all.under_way as f64);
        put(Key::Array(array.uuid.as_str().into()), row);
    }
    let (last, now) = (requests(before), requests(view));
    for drive in &view.drives {
        let path = drive.drive.path.as_str();
        let both = last.get(path).zip(now.get(path));
        let row = drive_row(drive, both, seconds);
        if row.is_known() {
            put(Key::Drive(drive.id.as_str().into()), row);
        }
    }
}

/// How busy data cores were: in the mean, and the busiest.
fn put_cores(before: &Counters, now: &Counters, row: &mut Row) {
    let (mut sum, mut most, mut count) = (0.0, 0.0_f64, 0.0);
    for (last, own) in before.cores.iter().zip(&now.cores) {
        let time = own.nanos.saturating_sub(last.nanos) as f64;
        let busy = own.busy_nanos().saturating_sub(last.busy_nanos()) as f64;
        if time > 0.0 {
            let share = (busy / time * 100.0).min(100.0);
            (sum, most, count) = (sum + share, most.max(share), count + 1.0);
        }
    }
    if count > 0.0 {
        row.put(9, sum / count);
        row.put(10, most);
    }
}

/// Hosts of NVMe that have a controller, and connections of NBD.
fn hosts(view: &View) -> u64 {
    let nvme = view.counters.hosts.iter().filter(|host| !host.controllers.is_empty()).count();
    let exports = view.status.arrays.iter().flat_map(|array| &array.exports);
    let nbd = exports.filter(|export| export.nbd.is_some());
    let nbd = nbd.filter_map(|export| view.counters.export(&export.id));
    nvme as u64 + nbd.map(|own| own.connections).sum::<u64>()
}

/// What was asked of drives, by path.
fn requests(view: &View) -> BTreeMap<&str, &DriveIo> {
    let mut all = BTreeMap::new();
    for array in &view.status.arrays {
        for io in &array.drive_io {
            let slot = array.slots.iter().find(|slot| slot.slot == io.slot);
            if let Some(path) = slot.and_then(|slot| slot.drive.as_deref()) {
                all.insert(path, io);
            }
        }
    }
    all
}

fn drive_row(drive: &KnownDrive, both: Option<(&&DriveIo, &&DriveIo)>, seconds: f64) -> Row {
    let mut row = Row::default();
    let did = both.and_then(|(last, now)| {
        Some([
            now.reads.checked_sub(last.reads)?,
            now.writes.checked_sub(last.writes)?,
            now.read_bytes.checked_sub(last.read_bytes)?,
            now.write_bytes.checked_sub(last.write_bytes)?,
        ])
    });
    for (at, did) in did.into_iter().flatten().enumerate() {
        row.put(at, did as f64 / seconds);
    }
    let (hardware, smart) = (&drive.hardware, drive.hardware.smart.as_ref());
    if let Some(celsius) = smart.and_then(|smart| smart.celsius).or(hardware.sensor_celsius) {
        row.put(4, f64::from(celsius));
    }
    if let Some(smart) = smart {
        row.put(5, f64::from(smart.percentage_used));
    }
    row
}

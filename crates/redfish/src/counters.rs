//! What was counted since the daemon's start, as the view has it.
//!
//! Purpose: the data cores count what they do, each in words of its own; the control plane adds
//! those up once a second and puts the sums here. Nobody on a core is asked for them.
//!
//! Invariants
//! - All counters begin at 0 when the daemon starts ([`Counters::since`]) and never fall. What goes
//!   up and down has a name that says so: `under_way`, `connections`, `queues`.
//! - Words are read one by one while cores count on: two of them may be of moments that are some
//!   nanoseconds apart.
//! - Lists are in the order that each field says; nothing is in one twice.

use crate::view::TaskKind;
use std::sync::Arc;

/// Intervals of latency.
pub const BUCKETS: usize = 26;

/// How long requests took that were done: how many of them by the interval that their time is in.
///
/// Interval `n` holds times above 2^(n-1) and up to 2^n microseconds: 0 is up to one microsecond,
/// 24 up to 16.8 seconds, and the last, 25, all that took longer. Times are those of the core's
/// clock, which it looks at once a turn: a request that was begun and done within one turn took 0,
/// others are wrong by the length of a turn, some ten microseconds and two milliseconds at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Latency {
    /// Requests, by interval.
    pub buckets: [u64; BUCKETS],
    /// Their times together, nanoseconds.
    pub nanos: u64,
}

impl Latency {
    /// Most microseconds of each interval; the last has none.
    pub fn limits() -> impl Iterator<Item = Option<u64>> {
        (0..BUCKETS).map(|n| (n + 1 < BUCKETS).then_some(1 << n))
    }

    /// Requests in all intervals.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, more| sum.wrapping_add(*more))
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (own, more) in self.buckets.iter_mut().zip(other.buckets) {
            *own = own.wrapping_add(more);
        }
        self.nanos = self.nanos.wrapping_add(other.nanos);
    }
}

/// Requests of one kind to a volume. A command of a host that is longer than the memory that its
/// front end takes at a time is several.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Operations {
    /// Requests that are under way now.
    pub under_way: u64,
    /// Those that were done, by the time that they took; [`Operations::done`] says how many.
    pub latency: Latency,
    /// Bytes of those that were done: read, written, given up or zeroed; 0 of flushes, and of a
    /// compare and write whose block held something else.
    pub bytes: u64,
    /// Those that failed; they are not in `latency`.
    pub errors: Errors,
    /// Those that nobody waited for any more, as their core stopped. They are in nothing else.
    pub abandoned: u64,
}

impl Operations {
    /// Requests that were done.
    pub fn done(&self) -> u64 {
        self.latency.count()
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        let Errors { bounds, unavailable, stopped } = &mut self.errors;
        for (own, more) in [
            (&mut self.under_way, other.under_way),
            (&mut self.bytes, other.bytes),
            (bounds, other.errors.bounds),
            (unavailable, other.errors.unavailable),
            (stopped, other.errors.stopped),
            (&mut self.abandoned, other.abandoned),
        ] {
            *own = own.wrapping_add(more);
        }
    }
}

/// Requests that failed, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Errors {
    /// They were outside the volume, or not aligned to its blocks.
    pub bounds: u64,
    /// The blocks could not be given back or taken: too many drives are missing, or blocks lost.
    pub unavailable: u64,
    /// The volume or its array was stopped or deleted.
    pub stopped: u64,
}

impl Errors {
    /// All of them.
    pub const fn all(&self) -> u64 {
        self.bounds.wrapping_add(self.unavailable).wrapping_add(self.stopped)
    }
}

/// A kind of request to a volume.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Reads; NVMe's Compare and Verify read, too.
    Read,
    /// Writes, and compare and write.
    Write,
    /// Flushes.
    Flush,
    /// Discards, and writes of zeros.
    Discard,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Discard];

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        }
    }
}

/// What was asked of a volume by all hosts, on all cores. A volume keeps its counters while it is
/// not exported and while its array does not run; they go when it is deleted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VolumeCounters {
    /// The volume's UUID.
    pub volume: String,
    /// Reads.
    pub reads: Operations,
    /// Writes.
    pub writes: Operations,
    /// Flushes.
    pub flushes: Operations,
    /// Discards.
    pub discards: Operations,
}

impl VolumeCounters {
    /// Those of a kind.
    pub const fn of(&self, kind: Kind) -> &Operations {
        match kind {
            Kind::Read => &self.reads,
            Kind::Write => &self.writes,
            Kind::Flush => &self.flushes,
            Kind::Discard => &self.discards,
        }
    }
}

/// How long requests to a drive took that were done, since the daemon opened it: those of hosts,
/// and the daemon's own. Of a drive that is memory, or a file in memory, one in eight is among
/// them: such a request is over within a turn of the core's clock, and is timed by itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DriveCounters {
    /// The drive's id.
    pub drive: String,
    /// Reads.
    pub reads: Latency,
    /// Writes.
    pub writes: Latency,
}

/// Who came to an export.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExportCounters {
    /// The export, as the view names it: `ARRAY:NUMBER`.
    pub export: String,
    /// NBD: connections that have it now. NVMe: controllers of hosts that do.
    pub connections: u64,
    /// How many of these there were since it was first served.
    pub connected: u64,
}

/// What a host of NVMe did, by all its controllers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostCounters {
    /// The host's qualified name; empty: all that gave none.
    pub host: String,
    /// Its controllers that are there now, by subsystem and number.
    pub controllers: Vec<ControllerCounters>,
    /// How many of these there were.
    pub connected: u64,
    /// What they all did, those that are gone included.
    pub commands: Commands,
}

/// A controller of a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ControllerCounters {
    /// The subsystem's qualified name.
    pub subsystem: String,
    /// Its number there.
    pub controller: u16,
    /// Its queues: connections of TCP, the admin queue's included.
    pub queues: u64,
    /// Since when the host has it, in seconds since 1970.
    pub since: u64,
    /// What it did.
    pub commands: Commands,
}

/// Commands of NVMe that were done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Commands {
    /// Reads.
    pub reads: u64,
    /// Writes, and compares with a write that found what they should.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// How a data core spent its time. What is neither looked nor slept through was work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreCounters {
    /// Which, from 0.
    pub core: u16,
    /// Since it started, nanoseconds.
    pub nanos: u64,
    /// In which it had nothing to do and looked for something, nanoseconds.
    pub looking_nanos: u64,
    /// In which it slept, nanoseconds.
    pub asleep_nanos: u64,
    /// Turns: looks at timers, sockets, drives and mail, with the tasks between them.
    pub turns: u64,
    /// Mail that came from other cores and from the control plane.
    pub mails: u64,
    /// Requests to volumes that it began.
    pub requests: u64,
}

impl CoreCounters {
    /// In which it worked, nanoseconds.
    pub const fn busy_nanos(&self) -> u64 {
        self.nanos.saturating_sub(self.looking_nanos).saturating_sub(self.asleep_nanos)
    }
}

/// Background work of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobCounters {
    /// Which.
    pub kind: TaskKind,
    /// Jobs that began, or that were found under way when an array started.
    pub started: u64,
    /// Those that came to their end.
    pub completed: u64,
    /// Those that a person ended.
    pub cancelled: u64,
    /// Those whose array was stopped, or lost what it needs.
    pub interrupted: u64,
    /// How often one could not go on, and waited for a person.
    pub stuck: u64,
}

/// Who came to the front ends and found no room, or asked for what is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TurnedAway {
    /// Of NBD.
    pub nbd: u64,
    /// Of NVMe over TCP.
    pub nvme: u64,
}

/// All counters, at a moment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Whether requests to volumes are counted (`counters` in the configuration). The rest is
    /// counted all the same.
    pub is_on: bool,
    /// When counting began, in seconds since 1970: all counters were 0 then.
    pub since: u64,
    /// How long after that this was read, nanoseconds of a clock that nobody sets.
    pub nanos: u64,
    /// When that was, in milliseconds since 1970.
    pub at: u64,
    /// Volumes that somebody has opened since, by UUID. One that did nothing is the same [`Arc`] as
    /// in the sample before.
    pub volumes: Vec<Arc<VolumeCounters>>,
    /// Drives that are open, by id.
    pub drives: Vec<DriveCounters>,
    /// Exports that are served, or were and are recorded, by name.
    pub exports: Vec<ExportCounters>,
    /// Hosts of NVMe, by name.
    pub hosts: Vec<HostCounters>,
    /// Data cores, by number.
    pub cores: Vec<CoreCounters>,
    /// Background work, by kind.
    pub jobs: Vec<JobCounters>,
    /// Who was turned away.
    pub turned_away: TurnedAway,
}

impl Counters {
    /// Those of the volume of this UUID; `None` if nobody has opened it.
    pub fn volume(&self, uuid: &str) -> Option<&VolumeCounters> {
        let at = self.volumes.binary_search_by(|known| known.volume.as_str().cmp(uuid)).ok()?;
        self.volumes.get(at).map(|known| &**known)
    }

    /// Those of the drive of this id; `None` if the daemon has not opened it.
    pub fn drive(&self, id: &str) -> Option<&DriveCounters> {
        let at = self.drives.binary_search_by(|known| known.drive.as_str().cmp(id)).ok()?;
        self.drives.get(at)
    }

    /// Those of an export.
    pub fn export(&self, name: &str) -> Option<&ExportCounters> {
        let at = self.exports.binary_search_by(|known| known.export.as_str().cmp(name)).ok()?;
        self.exports.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_every_word() {
        let numbers = |from: u64| Operations {
            under_way: from,
            latency: Latency {
                buckets: core::array::from_fn(|n| from + n as u64),
                nanos: from + 1,
            },
            bytes: from + 2,
            errors: Errors { bounds: from + 3, unavailable: from + 4, stopped: from + 5 },
            abandoned: from + 6,
        };
        let mut sum = numbers(10);
        sum.add(&numbers(100));
        let Operations { under_way, latency, bytes, errors, abandoned } = sum;
        assert_eq!((under_way, latency.nanos, bytes, abandoned), (110, 112, 114, 122));
        assert_eq!((errors.bounds, errors.unavailable, errors.stopped), (116, 118, 120));
        assert_eq!(errors.all(), 116 + 118 + 120);
        assert_eq!(latency.buckets, core::array::from_fn(|n| 110 + 2 * n as u64));
        assert_eq!(sum.done(), (0..26).map(|n| 110 + 2 * n).sum::<u64>());
    }

    #[test]
    fn a_volume_is_found_by_its_uuid() {
        let of = |uuid: &str| VolumeCounters { volume: uuid.to_owned(), ..Default::default() };
        let volumes = ["a", "c", "e"].map(|uuid| Arc::new(of(uuid))).to_vec();
        let counters = Counters { volumes, ..Counters::default() };
        let found = |uuid| counters.volume(uuid).map(|known| known.volume.clone());
        assert_eq!((found("a"), found("e")), (Some("a".to_owned()), Some("e".to_owned())));
        assert_eq!((found("b"), found("")), (None, None));
    }

    #[test]
    fn each_limit_is_twice_the_one_before() {
        let limits: Vec<_> = Latency::limits().collect();
        assert_eq!((limits[0], limits[1], limits[24]), (Some(1), Some(2), Some(1 << 24)));
        assert_eq!((limits.len(), limits[25]), (BUCKETS, None));
    }
}

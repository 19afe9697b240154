//! What was counted of volumes: Redfish's own statistics have neither latencies nor errors.

use super::Extension;
use crate::counters::{Kind, Operations, VolumeCounters};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was asked of a volume since the daemon's start, by all hosts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct VolumeMetrics {
    /// Reads. NVMe's Compare and Verify read, too.
    pub reads: Requests,
    /// Writes, and compares with a write.
    pub writes: Requests,
    /// Flushes.
    pub flushes: Requests,
    /// Discards, and writes of zeros.
    pub discards: Requests,
}

impl Extension for VolumeMetrics {
    const OF: &'static str = "VolumeMetrics";
}

/// Requests of one kind to a volume. A command of a host that is longer than the memory that it
/// gets at a time is several.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct Requests {
    /// Requests that are under way.
    pub under_way: u64,
    /// Requests that were done.
    pub done: u64,
    /// Bytes of those that were done.
    pub bytes: u64,
    /// The time that those that were done took together, nanoseconds.
    pub nanoseconds: u64,
    /// Those that were done, by the time that they took: up to 1 microsecond, up to 2, up to 4 and
    /// so on to 2^24, and longer.
    pub latencies: Vec<u64>,
    /// Requests outside the volume, or not aligned to its blocks.
    pub out_of_bounds: u64,
    /// Requests that failed as too many drives are missing, or blocks are lost.
    pub unavailable: u64,
    /// Requests that failed as the volume or its array was stopped or deleted.
    pub stopped: u64,
    /// Requests that nobody waited for any more.
    pub abandoned: u64,
}

impl From<&Operations> for Requests {
    fn from(from: &Operations) -> Self {
        Self {
            under_way: from.under_way,
            done: from.done(),
            bytes: from.bytes,
            nanoseconds: from.latency.nanos,
            latencies: from.latency.buckets.to_vec(),
            out_of_bounds: from.errors.bounds,
            unavailable: from.errors.unavailable,
            stopped: from.errors.stopped,
            abandoned: from.abandoned,
        }
    }
}

impl From<&VolumeCounters> for VolumeMetrics {
    fn from(from: &VolumeCounters) -> Self {
        let [reads, writes, flushes, discards] = Kind::ALL.map(|kind| from.of(kind).into());
        Self { reads, writes, flushes, discards }
    }
}

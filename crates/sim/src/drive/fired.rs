//! What faults did to requests: counted where one meets a request, not where it is switched on.

use super::DiscardContent;
use std::collections::BTreeSet;
use units::Nanos;

/// How often each fault met a request of a drive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fired {
    /// Reads that ended with `Fault`.
    pub reads: u64,
    /// Writes that ended with `Fault`.
    pub writes: u64,
    /// Writes that ended with `Media`.
    pub bad_writes: u64,
    /// Flushes that ended with `Fault`.
    pub flushes: u64,
    /// Requests that ended with `Gone`.
    pub gone: u64,
    /// Requests since the drive was given other latencies.
    pub slow: u64,
    /// Of requests that made no progress for a while and ran after all, how long.
    pub late: Vec<Nanos>,
    /// Of those that made none until power was cut or the process ended, how long.
    pub held: Vec<Nanos>,
    /// Offsets of unreadable blocks that were read.
    pub unreadable: BTreeSet<u64>,
    /// Discards, by what blocks read as since: old bytes, zeros, random ones, others on each read;
    /// and those that ended with `Unsupported`.
    pub discards: [u64; 5],
}

impl Fired {
    pub(super) fn discard(&mut self, content: DiscardContent) {
        self.discards[content as usize] += 1;
    }
}

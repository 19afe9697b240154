//! A drive in this process's memory: for tests, and as the upper bound of any drive.
//!
//! Invariant: segments are locked one at a time in address order; requests that overlap in time
//! and place may interleave by segment, as on any drive.

use io::{DriveError, DriveInfo};
use std::sync::{Mutex, MutexGuard};

const SEGMENT: u64 = 1 << 20;

/// The bytes, in segments with a lock each.
pub(crate) struct MemoryDrive {
    pub(crate) info: DriveInfo,
    segments: Box<[Mutex<Box<[u8]>>]>,
}

impl MemoryDrive {
    pub(crate) fn new(bytes: u64, block_bytes: u32, volatile_cache: bool) -> Self {
        let bytes = bytes - bytes % u64::from(block_bytes);
        let segments = (0..bytes.div_ceil(SEGMENT))
            .map(|n| Mutex::new(vec![0; SEGMENT.min(bytes - n * SEGMENT) as usize].into()))
            .collect();
        let info = DriveInfo { bytes, block_bytes, volatile_cache, inline: true };
        Self { info, segments }
    }

    fn segment(&self, offset: u64) -> (MutexGuard<'_, Box<[u8]>>, usize) {
        let segment = &self.segments[(offset / SEGMENT) as usize];
        let guard = segment.lock().unwrap_or_else(|e| e.into_inner());
        (guard, (offset % SEGMENT) as usize)
    }

    pub(crate) fn read(&self, mut offset: u64, mut into: &mut [u8]) -> Result<(), DriveError> {
        while !into.is_empty() {
            let (segment, at) = self.segment(offset);
            let count = into.len().min(segment.len() - at);
            let (part, rest) = into.split_at_mut(count);
            part.copy_from_slice(&segment[at..at + count]);
            (into, offset) = (rest, offset + count as u64);
        }
        Ok(())
    }

    pub(crate) fn write(&self, mut offset: u64, mut data: &[u8]) -> Result<(), DriveError> {
        while !data.is_empty() {
            let (mut segment, at) = self.segment(offset);
            let count = data.len().min(segment.len() - at);
            segment[at..at + count].copy_from_slice(&data[..count]);
            (data, offset) = (&data[count..], offset + count as u64);
        }
        Ok(())
    }

    pub(crate) fn zero(&self, mut offset: u64, mut bytes: u64) -> Result<(), DriveError> {
        while bytes > 0 {
            let (mut segment, at) = self.segment(offset);
            let count = bytes.min((segment.len() - at) as u64);
            segment[at..at + count as usize].fill(0);
            (bytes, offset) = (bytes - count, offset + count);
        }
        Ok(())
    }
}

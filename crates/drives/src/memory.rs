//! A drive in this process's memory: for tests, and as the upper bound of any drive.
//!
//! A segment takes memory from its first write on: a drive may be larger than the machine's memory,
//! if little of it is written.
//!
//! Invariant: segments are locked one at a time in address order; requests that overlap in time
//! and place may interleave by segment, as on any drive.

use io::{DriveError, DriveInfo};
use std::sync::{Mutex, MutexGuard};

const SEGMENT: u64 = 1 << 20;

/// The bytes, in segments with a lock each; a segment of zeros may be empty.
pub(crate) struct MemoryDrive {
    pub(crate) info: DriveInfo,
    segments: Box<[Mutex<Box<[u8]>>]>,
}

impl MemoryDrive {
    pub(crate) fn new(bytes: u64, block_bytes: u32, volatile_cache: bool) -> Self {
        let bytes = bytes - bytes % u64::from(block_bytes);
        let segments = (0..bytes.div_ceil(SEGMENT)).map(|_| Mutex::default()).collect();
        let info = DriveInfo { bytes, block_bytes, volatile_cache, inline: true };
        Self { info, segments }
    }

    /// The segment of a place, where in it that is, and how many of `most` bytes it has from there.
    fn segment(&self, offset: u64, most: u64) -> (MutexGuard<'_, Box<[u8]>>, usize, usize) {
        let segment = &self.segments[(offset / SEGMENT) as usize];
        let guard = segment.lock().unwrap_or_else(|e| e.into_inner());
        let at = offset % SEGMENT;
        (guard, at as usize, most.min(SEGMENT - at) as usize)
    }

    /// Bytes of the segment of a place.
    fn segment_bytes(&self, offset: u64) -> usize {
        SEGMENT.min(self.info.bytes - offset / SEGMENT * SEGMENT) as usize
    }

    pub(crate) fn read(&self, mut offset: u64, mut into: &mut [u8]) -> Result<(), DriveError> {
        while !into.is_empty() {
            let (segment, at, count) = self.segment(offset, into.len() as u64);
            let (part, rest) = into.split_at_mut(count);
            match segment.is_empty() {
                true => part.fill(0),
                false => part.copy_from_slice(&segment[at..at + count]),
            }
            (into, offset) = (rest, offset + count as u64);
        }
        Ok(())
    }

    pub(crate) fn write(&self, mut offset: u64, mut data: &[u8]) -> Result<(), DriveError> {
        while !data.is_empty() {
            let (mut segment, at, count) = self.segment(offset, data.len() as u64);
            if segment.is_empty() {
                *segment = vec![0; self.segment_bytes(offset)].into();
            }
            segment[at..at + count].copy_from_slice(&data[..count]);
            (data, offset) = (&data[count..], offset + count as u64);
        }
        Ok(())
    }

    pub(crate) fn zero(&self, mut offset: u64, mut bytes: u64) -> Result<(), DriveError> {
        while bytes > 0 {
            let (mut segment, at, count) = self.segment(offset, bytes);
            if !segment.is_empty() {
                segment[at..at + count].fill(0);
            }
            (bytes, offset) = (bytes - count as u64, offset + count as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_written_is_zeros_and_takes_no_memory() {
        let bytes = (1 << 36) + 4096;
        let drive = MemoryDrive::new(bytes, 4096, false);
        let taken = || drive.segments.iter().filter(|own| !own.lock().unwrap().is_empty()).count();
        let read = |offset: u64, bytes: usize| {
            let mut into = vec![9; bytes];
            drive.read(offset, &mut into).unwrap();
            into
        };
        drive.zero(SEGMENT - 4096, 8192).unwrap();
        assert_eq!((read(SEGMENT - 4096, 8192), taken()), (vec![0; 8192], 0));
        // Over a border, and at the end, where a segment is short.
        drive.write(SEGMENT - 4096, &[1; 8192]).unwrap();
        drive.write(bytes - 4096, &[2; 4096]).unwrap();
        assert_eq!(taken(), 3);
        assert_eq!(read(bytes - 8192, 8192), [vec![0; 4096], vec![2; 4096]].concat());
        drive.zero(SEGMENT, 4096).unwrap();
        let wanted = [vec![0; 4096], vec![1; 4096], vec![0; 8192]].concat();
        assert_eq!(read(SEGMENT - 8192, 16384), wanted);
    }
}

//! Files and block devices: what is known of an open one, and I/O on it in the calling thread.
//!
//! A file can be cut off by whoever may write to it, and the next write behind its end makes it
//! longer again: then what was cut off reads as zeros, which no file system calls an error. Arrays
//! write nothing to the end of a drive (their tail area is only used in its first half), so such a
//! file stays shorter than the drive was. That is looked at wherever a read gives what may be such
//! zeros, and where a flush says that what was written is safe.
//!
//! Invariants
//! - Requests reach this module after their bounds were checked.
//! - What a file lost is never read as zeros: [`DriveError::Shrunk`] says so.

use crate::counts::Counts;
use io::{Buf, DriveError, DriveInfo};
use rustix::fs::{AtFlags, FallocateFlags, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

/// What lies behind the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    BlockDevice,
}

/// How a range is made zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ZeroBy {
    /// Punching a hole (files).
    Punch,
    /// `FALLOC_FL_ZERO_RANGE`: on block devices the kernel writes zeros where the device can't.
    ZeroRange,
    /// Writing zeros.
    Writing,
}

/// An open file or block device.
pub(crate) struct FileDrive {
    pub(crate) path: PathBuf,
    /// Direct if the file system takes it.
    pub(crate) file: Arc<File>,
    /// Beside a direct one: through the page cache, for unaligned memory.
    pub(crate) buffered: Option<Arc<File>>,
    pub(crate) info: DriveInfo,
    pub(crate) kind: Kind,
    pub(crate) zero_by: ZeroBy,
    pub(crate) serial: String,
    pub(crate) counts: Counts,
}

/// What a request asks for, as far as its errors differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// Bytes.
    Read,
    /// To change blocks, and nothing else.
    Change,
    /// To make durable what was written before, beside anything else. The kernel tells once of what
    /// it could not, whoever wrote it: such an error is never one of the request's own blocks.
    Sync,
}

/// A drive error for what the kernel said to a request.
pub(crate) fn error_of(asked: Asked, errno: i32) -> DriveError {
    // The kernel's numbers and no others are its errors.
    if errno == runtime::Errno::END.0 {
        return DriveError::Shrunk;
    }
    match Errno::from_raw_os_error(errno) {
        // `BLK_STS_MEDIUM` and `BLK_STS_PROTECTION` of block devices.
        Errno::NODATA | Errno::ILSEQ if asked != Asked::Sync => DriveError::Media,
        Errno::IO if asked == Asked::Read => DriveError::Media,
        Errno::NODEV | Errno::NXIO | Errno::SHUTDOWN => DriveError::Gone,
        // The kernel has given the request up.
        Errno::TIMEDOUT => DriveError::Timeout,
        Errno::OPNOTSUPP | Errno::NOSYS => DriveError::Unsupported,
        _ => DriveError::Fault,
    }
}

impl FileDrive {
    pub(crate) fn new(
        path: PathBuf,
        file: Arc<File>,
        buffered: Option<Arc<File>>,
        info: DriveInfo,
        kind: Kind,
        zero_by: ZeroBy,
        serial: String,
    ) -> Self {
        Self { path, file, buffered, info, kind, zero_by, serial, counts: Counts::default() }
    }

    /// The number of the block device.
    pub(crate) fn device(&self) -> Option<u64> {
        let is_device = self.kind == Kind::BlockDevice;
        self.file.metadata().ok().filter(|_| is_device).map(|found| found.rdev())
    }

    /// True if memory at `address` can be used for direct I/O, or there is none.
    pub(crate) fn takes(&self, address: usize) -> bool {
        self.buffered.is_none() || address.is_multiple_of(self.info.block_bytes as usize)
    }

    /// True for a file that is shorter than the drive was when it was opened. Asks for what the
    /// kernel knows by itself, and never waits for anybody.
    pub(crate) fn is_cut(&self) -> bool {
        if self.kind != Kind::File {
            return false;
        }
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let found = rustix::fs::statx(&*self.file, c"", flags, StatxFlags::SIZE);
        found.is_ok_and(|found| found.stx_size < self.info.bytes)
    }

    /// What the outcome of a read is worth.
    #[inline]
    pub(crate) fn judge(
        &self,
        result: Result<(), DriveError>,
        read: &[u8],
    ) -> Result<(), DriveError> {
        match (self.kind, result) {
            (Kind::BlockDevice, Err(DriveError::Shrunk)) if self.has_no_blocks() => {
                Err(DriveError::Gone)
            }
            (Kind::File, Ok(())) if !self.may_have_hole(read) => Ok(()),
            (Kind::File, _) if self.is_cut() => Err(DriveError::Shrunk),
            _ => result,
        }
    }

    /// Whether the kernel has taken all blocks from a device, as it does where one went.
    #[cold]
    fn has_no_blocks(&self) -> bool {
        rustix::fs::seek(&*self.file, rustix::fs::SeekFrom::End(0)).is_ok_and(|bytes| bytes == 0)
    }

    /// Whether any block may be of a hole: whole blocks are written, so each that a hole touches
    /// ends with a zero.
    fn may_have_hole(&self, read: &[u8]) -> bool {
        read.chunks_exact(self.info.block_bytes as usize).any(|block| block.ends_with(&[0]))
    }

    /// What the outcome of a flush is worth.
    pub(crate) fn judge_flush(&self, result: Result<(), DriveError>) -> Result<(), DriveError> {
        if self.is_cut() { Err(DriveError::Shrunk) } else { result }
    }

    fn file_for(&self, address: usize) -> &File {
        match &self.buffered {
            Some(buffered) if !self.takes(address) => buffered,
            _ => &self.file,
        }
    }

    /// Fills `into` in the calling thread.
    #[inline]
    pub(crate) fn read_now(&self, offset: u64, into: &mut [u8]) -> Result<(), DriveError> {
        let result = self.fill_now(offset, into);
        self.judge(result, into)
    }

    #[inline]
    fn fill_now(&self, offset: u64, into: &mut [u8]) -> Result<(), DriveError> {
        let file = self.file_for(into.as_ptr().addr());
        let mut done = 0;
        loop {
            match rustix::io::pread(file, &mut into[done..], offset + done as u64) {
                Ok(0) if done < into.len() => return Err(DriveError::Shrunk),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(error_of(Asked::Read, errno.raw_os_error())),
            }
            if done == into.len() {
                return Ok(());
            }
        }
    }

    /// Writes `data` in the calling thread.
    #[inline]
    pub(crate) fn write_now(&self, offset: u64, data: &[u8]) -> Result<(), DriveError> {
        let file = self.file_for(data.as_ptr().addr());
        let mut done = 0;
        while done < data.len() {
            match rustix::io::pwrite(file, &data[done..], offset + done as u64) {
                Ok(0) => return Err(DriveError::Fault),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(error_of(Asked::Change, errno.raw_os_error())),
            }
        }
        Ok(())
    }

    /// Writes the buffers one behind the other in the calling thread.
    #[inline]
    pub(crate) fn gather_now(&self, offset: u64, data: &[Buf]) -> Result<(), DriveError> {
        if let [one] = data {
            return self.write_now(offset, one);
        }
        let slices: arrayvec::ArrayVec<_, { io::drive::GATHER_MAX }> =
            data.iter().map(|b| std::io::IoSlice::new(b)).collect();
        let total: usize = data.iter().map(|b| b.len()).sum();
        let whole = data.iter().all(|b| self.takes(b.as_ptr().addr()));
        if whole && rustix::io::pwritev(&self.file, &slices, offset) == Ok(total) {
            return Ok(());
        }
        // Short, interrupted or failed: one by one, which also finds the reason.
        let mut at = offset;
        for buffer in data {
            self.write_now(at, buffer)?;
            at += buffer.len() as u64;
        }
        Ok(())
    }

    /// Makes completed writes durable.
    pub(crate) fn flush_now(&self) -> Result<(), DriveError> {
        let flushed = rustix::fs::fdatasync(&self.file);
        self.judge_flush(flushed.map_err(|e| error_of(Asked::Sync, e.raw_os_error())))
    }

    /// Makes a range zero in the calling thread.
    pub(crate) fn zero_now(&self, offset: u64, bytes: u64) -> Result<(), DriveError> {
        let how = match self.zero_by {
            ZeroBy::Punch => FallocateFlags::PUNCH_HOLE,
            ZeroBy::ZeroRange => FallocateFlags::ZERO_RANGE,
            ZeroBy::Writing => return self.write_zeros_now(offset, bytes),
        };
        self.fallocate_now(how, offset, bytes)
    }

    /// Gives a range up in the calling thread.
    pub(crate) fn discard_now(&self, offset: u64, bytes: u64) -> Result<(), DriveError> {
        self.fallocate_now(FallocateFlags::PUNCH_HOLE, offset, bytes)
    }

    fn fallocate_now(
        &self,
        how: FallocateFlags,
        offset: u64,
        bytes: u64,
    ) -> Result<(), DriveError> {
        let flags = how | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.file, flags, offset, bytes)
            .map_err(|e| error_of(Asked::Change, e.raw_os_error()))
    }

    fn write_zeros_now(&self, offset: u64, bytes: u64) -> Result<(), DriveError> {
        let zeros = io::Pool::single(1 << 18);
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(1 << 18);
            self.write_now(offset + done, &zeros[..part as usize])?;
            done += part;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DriveError::{Fault, Gone, Media, Timeout, Unsupported};

    #[test]
    fn blocks_are_to_blame_for_a_medium_error_but_not_of_a_flush() {
        for (errno, read, change, sync) in [
            (Errno::NODATA, Media, Media, Fault),
            (Errno::ILSEQ, Media, Media, Fault),
            // Of a write this may be anything.
            (Errno::IO, Media, Fault, Fault),
            (Errno::NOSPC, Fault, Fault, Fault),
            (Errno::NODEV, Gone, Gone, Gone),
            (Errno::TIMEDOUT, Timeout, Timeout, Timeout),
            (Errno::OPNOTSUPP, Unsupported, Unsupported, Unsupported),
        ] {
            let got = [Asked::Read, Asked::Change, Asked::Sync];
            let got = got.map(|asked| error_of(asked, errno.raw_os_error()));
            assert_eq!(got, [read, change, sync], "{errno}");
        }
    }
}

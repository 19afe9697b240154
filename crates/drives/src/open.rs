//! Opening a file or block device: exclusivity first, then what it is and how it takes I/O.
//!
//! Invariant: nothing is read from the drive before the exclusive claim holds (D8).

use crate::file::{FileDrive, Kind, ZeroBy};
use io::{DriveInfo, Pool};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use std::fs::{File, TryLockError};
use std::io::Error;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The blocks that a drive may have.
const BLOCKS: [u32; 2] = [512, 4096];

/// `statfs` types of file systems whose files live in memory (linux/magic.h).
const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;

/// Whether requests go around the page cache (`O_DIRECT`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direct {
    /// If the file system takes it.
    #[default]
    Auto,
    /// Never.
    Never,
}

/// How a drive is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenOptions {
    /// Refuses writes.
    pub read_only: bool,
    /// Claims the drive: refused while another process has claimed it (files: `flock`, block
    /// devices: `O_EXCL`, which a mounted file system holds too).
    pub exclusive: bool,
    /// Whether to go around the page cache.
    pub direct: Direct,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { read_only: false, exclusive: true, direct: Direct::Auto }
    }
}

/// Why a drive could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("{path}: {error}")]
    System {
        /// What was opened.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: Error,
    },
    /// Another process has it.
    #[error("{path} is in use by another process, or mounted")]
    InUse {
        /// What was opened.
        path: PathBuf,
    },
    /// Neither a file nor a block device.
    #[error("{path} is not a block device or file")]
    NotADrive {
        /// What was opened.
        path: PathBuf,
    },
    /// A remote drive that is not reached, or not there.
    #[error("{path}: {why}")]
    Remote {
        /// What was opened.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A remote drive with the identity of another.
    #[error("{path} has the same identity as {other}: one is a clone of the other")]
    Cloned {
        /// What was opened.
        path: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// Smaller than one block.
    #[error("{path} is too small for a drive")]
    Empty {
        /// What was opened.
        path: PathBuf,
    },
}

/// Opens and examines `path`.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<FileDrive, OpenError> {
    let system = |error: Error| OpenError::System { path: path.into(), error };
    let kind = kind_of(path)?;
    let file = claim(path, kind, options)?;
    let status = rustix::fs::fstatfs(&file).map_err(|e| system(e.into()))?;
    let in_memory = kind == Kind::File && matches!(status.f_type as i64, TMPFS | RAMFS);
    let bytes = match kind {
        Kind::File => file.metadata().map_err(system)?.len(),
        Kind::BlockDevice => {
            rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(|e| system(e.into()))?
        }
    };
    // Of a file only its file system knows.
    let logical = match kind {
        Kind::File => None,
        Kind::BlockDevice => {
            Some(rustix::fs::ioctl_blksszget(&file).map_err(|e| system(e.into()))?)
        }
    };
    let direct = match options.direct == Direct::Auto && !in_memory {
        true => try_direct(&file, bytes, logical),
        false => None,
    };
    let buffered = match direct {
        Some(_) => Some(Arc::new(reopen(&file, options).map_err(system)?)),
        None => None,
    };
    let block_bytes = direct.unwrap_or(if logical > Some(512) { 4096 } else { 512 });
    let bytes = bytes - bytes % u64::from(block_bytes);
    if bytes == 0 {
        return Err(OpenError::Empty { path: path.into() });
    }
    let device_cache = kind == Kind::BlockDevice && device_has_cache(&file);
    let volatile_cache = !in_memory && needs_flush(kind, direct.is_some(), device_cache);
    let info = DriveInfo { bytes, block_bytes, volatile_cache, inline: in_memory };
    let zero_by = zero_by(&file, kind, bytes, options.read_only);
    let serial = serial(&file, kind, path);
    Ok(FileDrive::new(path.into(), Arc::new(file), buffered, info, kind, zero_by, serial))
}

/// Whether what was written may be gone after a power cut until a flush: it is in the cache of a
/// device, in the file system's hands, or, around which direct I/O would go, in the page cache.
const fn needs_flush(kind: Kind, direct: bool, device_cache: bool) -> bool {
    match kind {
        Kind::File => true,
        Kind::BlockDevice => !direct || device_cache,
    }
}

fn kind_of(path: &Path) -> Result<Kind, OpenError> {
    let error = |error| OpenError::System { path: path.into(), error };
    let kind = std::fs::metadata(path).map_err(error)?.file_type();
    if kind.is_file() {
        Ok(Kind::File)
    } else if kind.is_block_device() {
        Ok(Kind::BlockDevice)
    } else {
        Err(OpenError::NotADrive { path: path.into() })
    }
}

/// Opens the path and claims it if asked to.
fn claim(path: &Path, kind: Kind, options: &OpenOptions) -> Result<File, OpenError> {
    let exclusive = options.exclusive && kind == Kind::BlockDevice;
    let flags = if exclusive { OFlags::EXCL.bits() as i32 } else { 0 };
    let opened =
        File::options().read(true).write(!options.read_only).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::BUSY) => OpenError::InUse { path: path.into() },
        _ => OpenError::System { path: path.into(), error },
    })?;
    if options.exclusive && kind == Kind::File {
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => OpenError::InUse { path: path.into() },
            TryLockError::Error(error) => OpenError::System { path: path.into(), error },
        })?;
    }
    without_access_time(&file);
    Ok(file)
}

/// Spares the file system the time of every read, where the file is ours.
fn without_access_time(file: &File) {
    if let Ok(flags) = rustix::fs::fcntl_getfl(file) {
        let _ = rustix::fs::fcntl_setfl(file, flags | OFlags::NOATIME);
    }
}

/// A second opening of the same file, through the page cache, for memory that direct I/O cannot
/// take.
fn reopen(file: &File, options: &OpenOptions) -> Result<File, Error> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let file = File::options().read(true).write(!options.read_only).open(path)?;
    without_access_time(&file);
    Ok(file)
}

/// Switches to direct I/O; the block size it takes, or `None` if it takes none. Of a block device
/// the kernel has said it (`logical`), and nothing that can't be read has a say in it.
fn try_direct(file: &File, bytes: u64, logical: Option<u32>) -> Option<u32> {
    let plain = rustix::fs::fcntl_getfl(file).ok()?;
    rustix::fs::fcntl_setfl(file, plain | OFlags::DIRECT).ok()?;
    let taken = match logical {
        Some(logical) => BLOCKS.into_iter().find(|block| *block >= logical),
        None => taken_block(bytes, |part, at| file.read_exact_at(part, at)),
    };
    if taken.is_none() {
        rustix::fs::fcntl_setfl(file, plain).ok()?;
    }
    taken
}

/// The smallest block that direct reads take. One that is not aligned to their file system ends
/// with `EINVAL`, before anything is asked of a medium; any other error comes from there, and says
/// nothing of blocks. (What `statx` calls the alignment may be stricter than what is taken, and on
/// XFS changes once the file is copied by reference: the drive's blocks must not.)
fn taken_block(
    bytes: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<(), Error>,
) -> Option<u32> {
    let mut buffer = Pool::single(4096);
    let mut taken = |block: u32| {
        // At an offset that is aligned to this block size and to no larger one.
        let outcome = read(&mut buffer[..block as usize], u64::from(block));
        outcome.map_err(|e| Errno::from_io_error(&e)) != Err(Some(Errno::INVAL))
    };
    BLOCKS.into_iter().filter(|block| bytes >= 2 * u64::from(*block)).find(|block| taken(*block))
}

/// How zeros are written. Punching behind the end of a file changes nothing and tells whether
/// the file system can.
fn zero_by(file: &File, kind: Kind, bytes: u64, read_only: bool) -> ZeroBy {
    if kind == Kind::BlockDevice {
        return ZeroBy::ZeroRange;
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let behind = bytes.next_multiple_of(1 << 20) + (1 << 20);
    match read_only || rustix::fs::fallocate(file, flags, behind, 4096).is_ok() {
        true => ZeroBy::Punch,
        false => ZeroBy::Writing,
    }
}

/// The sysfs directory of a block device.
fn sysfs(file: &File) -> Option<PathBuf> {
    let device = file.metadata().ok()?.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

fn read_line(path: PathBuf) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|t| !t.is_empty())
}

/// True unless the kernel says that the device has no volatile write cache. Partitions ask
/// their device.
fn device_has_cache(file: &File) -> bool {
    let Some(dir) = sysfs(file) else { return true };
    let own = read_line(dir.join("queue/write_cache"));
    own.or_else(|| read_line(dir.join("../queue/write_cache"))).is_none_or(|t| t == "write back")
}

/// What tells this drive from others: the device's serial number, else device and inode of the
/// file or the device's path.
fn serial(file: &File, kind: Kind, path: &Path) -> String {
    let by_path = format!("path:{}", path.display());
    if kind == Kind::File {
        return file.metadata().map_or(by_path, |m| format!("file:{}:{}", m.dev(), m.ino()));
    }
    let names = ["device/serial", "serial", "wwid", "device/wwid", "dm/uuid", "loop/backing_file"];
    let found = sysfs(file).and_then(|dir| names.iter().find_map(|n| read_line(dir.join(n))));
    found.unwrap_or(by_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The block that is taken where reads of `fine` bytes and their multiples are, and a block of
    /// 512 at 512 ends with `bad`.
    fn taken(fine: usize, bad: Option<Errno>) -> Option<u32> {
        taken_block(1 << 20, |part, at| match bad {
            _ if !part.len().is_multiple_of(fine) => Err(Errno::INVAL.into()),
            Some(bad) if at == 512 => Err(bad.into()),
            _ => Ok(()),
        })
    }

    #[test]
    fn a_block_that_cant_be_read_changes_no_block_size() {
        assert_eq!([taken(512, None), taken(4096, None)], [Some(512), Some(4096)]);
        assert_eq!(taken(8192, None), None);
        for bad in [Errno::IO, Errno::NODATA, Errno::ILSEQ, Errno::TIMEDOUT, Errno::NXIO] {
            assert_eq!(taken(512, Some(bad)), Some(512), "{bad}");
            assert_eq!(taken(4096, Some(bad)), Some(4096), "{bad}");
        }
    }

    #[test]
    fn only_a_direct_device_without_a_cache_needs_no_flush() {
        for (direct, device_cache) in [(false, false), (false, true), (true, false), (true, true)] {
            assert!(needs_flush(Kind::File, direct, device_cache));
            let alone = direct && !device_cache;
            assert_eq!(needs_flush(Kind::BlockDevice, direct, device_cache), !alone);
        }
    }
}

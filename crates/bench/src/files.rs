//! Drives in memory: files without a name in a RAM-backed file system.
//!
//! They are made with `O_TMPFILE` and reached through `/proc/PID/fd`, so that fio can use them
//! too and nothing is left behind when the process is killed.

use crate::bay::Source;
use crate::error::BenchError;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use workload::Random;

/// A set of files of one size.
pub struct Files {
    files: Vec<File>,
}

fn unnamed(dir: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(dir)
}

impl Files {
    /// Makes `count` files of `bytes` in `dir`, filled with random bytes.
    pub fn new(dir: &Path, count: usize, bytes: u64, seed: u64) -> Result<Self, BenchError> {
        let system = |error| BenchError::System { path: dir.to_owned(), error };
        let mut random = Random::new(seed);
        let mut piece = vec![0u8; 1 << 20];
        let mut files = Vec::new();
        for _ in 0..count {
            let file = unnamed(dir).map_err(system)?;
            let mut at = 0;
            while at < bytes {
                let part = (bytes - at).min(piece.len() as u64) as usize;
                random.fill(&mut piece[..part]);
                file.write_all_at(&piece[..part], at).map_err(system)?;
                at += part as u64;
            }
            files.push(file);
        }
        Ok(Self { files })
    }

    /// Makes `count` files of `bytes` in `dir` that take no room before they are written.
    pub fn sparse(dir: &Path, count: usize, bytes: u64) -> Result<Self, BenchError> {
        let system = |error| BenchError::System { path: dir.to_owned(), error };
        let make = |_| {
            let file = unnamed(dir)?;
            file.set_len(bytes)?;
            Ok(file)
        };
        Ok(Self { files: (0..count).map(make).collect::<Result<_, _>>().map_err(system)? })
    }

    /// As the drives of an array.
    pub fn source(&self) -> Source {
        Source::Files(self.paths())
    }

    /// Where this process and its children can open them.
    pub fn paths(&self) -> Vec<PathBuf> {
        let pid = std::process::id();
        let path = |file: &File| format!("/proc/{pid}/fd/{}", file.as_raw_fd()).into();
        self.files.iter().map(path).collect()
    }
}

/// Checks that this machine has `wanted` bytes of memory for drives.
pub fn check_memory(wanted: u64) -> Result<(), BenchError> {
    // Where the system does not tell, it is tried.
    fits(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), wanted)
}

/// Checks that `wanted` bytes are available by what `/proc/meminfo` says.
fn fits(meminfo: &str, wanted: u64) -> Result<(), BenchError> {
    match available(meminfo) {
        Some(available) if available < wanted => Err(BenchError::Memory { wanted, available }),
        _ => Ok(()),
    }
}

/// Bytes that can be had without swapping.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// Whether files of a directory, or a file, are in memory (statfs(2): TMPFS_MAGIC, RAMFS_MAGIC).
pub(crate) fn is_in_memory(dir: &Path) -> bool {
    let kind = rustix::fs::statfs(dir).map_or(0, |status| i128::from(status.f_type));
    matches!(kind, 0x0102_1994 | 0x8584_58f6)
}

/// Checks that `dir` has room for `wanted` bytes.
pub fn check_room(dir: &Path, wanted: u64) -> Result<(), BenchError> {
    let status = rustix::fs::statvfs(dir)
        .map_err(|error| BenchError::System { path: dir.to_owned(), error: error.into() })?;
    let free = status.f_bavail.saturating_mul(status.f_frsize);
    if free < wanted {
        return Err(BenchError::Room { path: dir.to_owned(), wanted, free });
    }
    // Such a file system may be larger than what is left of the memory behind it.
    if is_in_memory(dir) { check_memory(wanted) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_filled_and_leave_nothing() {
        let dir = Path::new("/dev/shm");
        let bytes = (1 << 20) + 4096;
        let files = Files::new(dir, 2, bytes, 7).unwrap();
        let paths = files.paths();
        let contents: Vec<Vec<u8>> = paths.iter().map(|p| std::fs::read(p).unwrap()).collect();
        assert!(contents.iter().all(|c| c.len() as u64 == bytes));
        assert_ne!(contents[0], contents[1]);
        assert!(contents[0].chunks(4096).all(|c| c.iter().any(|b| *b != 0)));
        drop(files);
        assert!(paths.iter().all(|p| std::fs::read(p).map_or(true, |c| !contents.contains(&c))));
        assert!(check_room(dir, u64::MAX).is_err());
    }

    #[test]
    fn drives_in_memory_need_it() {
        let meminfo = "MemTotal:        8000000 kB\nMemFree:          1 kB\n\
                       MemAvailable:    2097152 kB\nBuffers:          5 kB\n";
        assert_eq!(available(meminfo), Some(2 << 30));
        assert!(fits(meminfo, 2 << 30).is_ok());
        let error = fits(meminfo, 6 << 30).unwrap_err().to_string();
        for part in ["6 GiB", "2 GiB", "--drive-size"] {
            assert!(error.contains(part), "{error}");
        }
        for silent in ["", "MemTotal: 1 kB", "MemAvailable:", "MemAvailable: many kB"] {
            assert!(fits(silent, u64::MAX).is_ok(), "{silent:?}");
        }
        assert!(check_memory(u64::MAX).is_err());
    }
}

//! Whether an export can really be used: a block of it is read, past the page cache.

use rustix::fs::{Mode, OFlags};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Most bytes of a block.
const BLOCK: usize = 4096;

/// Reads the first block of a device or file.
///
/// # Errors
/// What the kernel says.
pub fn read_a_block(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut memory = vec![0; 2 * BLOCK];
    let begin = memory.as_ptr().align_offset(BLOCK);
    match rustix::io::pread(&file, &mut memory[begin..begin + BLOCK], 0)? {
        BLOCK => Ok(()),
        bytes => Err(io::Error::other(format!("a read of {BLOCK} bytes gave {bytes}"))),
    }
}

/// Seconds of Unix time.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

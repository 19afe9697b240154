//! What a thread that is no core asks of the kernel, and may not wait for without end: a flush, a
//! command to a driver that waits for others.
//!
//! States of an errand: *under way* → *over* (its answer was waited for), or left: dropped under
//! way.
//!
//! Invariant: the kernel's memory is an errand's until that is over; one that is left keeps it for
//! ever.
#![allow(unsafe_code)]

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// To how many bytes memory is aligned.
const ALIGNED: usize = 4096;
/// Bytes of a driver's command.
const SAYS: usize = 80;

/// Memory of the kernel's, aligned.
struct Memory {
    bytes: Vec<u8>,
    begin: usize,
    length: usize,
}

impl Memory {
    fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGNED];
        let begin = bytes.as_ptr().align_offset(ALIGNED);
        Self { bytes, begin, length }
    }

    fn own(&mut self) -> &mut [u8] {
        &mut self.bytes[self.begin..self.begin + self.length]
    }
}

/// One request that is under way.
pub struct Errand {
    /// Gone before the memory may be.
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    memory: Memory,
    /// Looked at when the kernel comes to it, which may be later.
    _file: OwnedFd,
    /// Its answer: how many, or a negative error's number.
    answer: Option<i32>,
}

impl Errand {
    /// Begins a read: what may not end, for tests.
    #[cfg(test)]
    fn read(file: BorrowedFd<'_>, offset: u64, bytes: u32) -> io::Result<Self> {
        Self::begin(file, Memory::new(bytes as usize), |fd, memory| {
            opcode::Read::new(fd, memory.as_mut_ptr(), bytes).offset(offset).build().into()
        })
    }

    /// Begins to make all that was written durable.
    ///
    /// # Errors
    /// There is no io_uring, or what the kernel says.
    pub fn sync(file: BorrowedFd<'_>) -> io::Result<Self> {
        Self::begin(file, Memory::new(0), |fd, _| opcode::Fsync::new(fd).build().into())
    }

    /// Begins a driver's command, which has this memory for what is told by it, or of it. What it
    /// says may name the memory's address.
    ///
    /// # Errors
    /// There is no io_uring, or what the kernel says.
    ///
    /// # Panics
    /// What it says is longer than a command may be.
    pub fn command<const N: usize>(
        driver: BorrowedFd<'_>,
        code: u32,
        memory: &[u8],
        says: impl FnOnce(u64) -> [u8; N],
    ) -> io::Result<Self> {
        let mut own = Memory::new(memory.len());
        own.own().copy_from_slice(memory);
        Self::begin(driver, own, |fd, memory| {
            let mut all = [0; SAYS];
            all[..N].copy_from_slice(&says(memory.as_mut_ptr() as u64));
            opcode::UringCmd80::new(fd, code).cmd(all).build()
        })
    }

    fn begin(
        file: BorrowedFd<'_>,
        mut memory: Memory,
        entry: impl FnOnce(types::Fd, &mut [u8]) -> squeue::Entry128,
    ) -> io::Result<Self> {
        let file = file.try_clone_to_owned()?;
        let mut ring = IoUring::builder().build(2)?;
        let entry = entry(types::Fd(file.as_raw_fd()), memory.own());
        // SAFETY: what the entry leads to is kept until its completion was seen.
        let pushed = unsafe { ring.submission().push(&entry) };
        pushed.map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        let mut own = Self { ring, memory, _file: file, answer: None };
        own.until(Instant::now())?;
        Ok(own)
    }

    /// Submits what is not, and waits for the answer until then.
    fn until(&mut self, end: Instant) -> io::Result<()> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let time = types::Timespec::from(left);
            let args = types::SubmitArgs::new().timespec(&time);
            let told = self.ring.submitter().submit_with_args(1, &args);
            self.answer = self.ring.completion().next().map(|entry| entry.result());
            let passes = |error: &io::Error| {
                let known = [libc::ETIME, libc::EINTR, libc::EAGAIN, libc::EBUSY];
                error.raw_os_error().is_some_and(|number| known.contains(&number))
            };
            match told {
                _ if self.answer.is_some() => return Ok(()),
                Err(error) if !passes(&error) => return Err(error),
                _ if Instant::now() >= end => return Ok(()),
                _ => {}
            }
        }
    }

    /// Waits for at most so long: how many bytes were moved, or what else is told; none: it is
    /// still under way.
    ///
    /// # Errors
    /// What it ended with, or the kernel says.
    fn wait(&mut self, limit: Duration) -> io::Result<Option<u32>> {
        if self.answer.is_none() {
            self.until(Instant::now() + limit)?;
        }
        match self.answer {
            Some(error) if error < 0 => Err(io::Error::from_raw_os_error(-error)),
            answer => Ok(answer.map(i32::unsigned_abs)),
        }
    }

    /// As [`Errand::wait`], of what has to be over then.
    ///
    /// # Errors
    /// What it ended with, or the kernel says; `TimedOut` where it is still under way.
    pub fn end(&mut self, limit: Duration) -> io::Result<u32> {
        self.wait(limit)?.ok_or_else(|| ErrorKind::TimedOut.into())
    }

    /// What the kernel has left in the memory, once it is over.
    pub fn told(&mut self) -> Option<&[u8]> {
        self.answer.is_some().then(|| &*self.memory.own())
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        if self.answer.is_none() {
            // The kernel may still write to it.
            core::mem::forget(core::mem::take(&mut self.memory.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::AsFd;

    const SOON: Duration = Duration::from_millis(1);
    const LATE: Duration = Duration::from_secs(60);

    #[test]
    fn a_read_gives_its_bytes_and_a_flush_ends() {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::memfd_create("errand", flags).expect("memory"));
        file.write_all(&[7; 6000]).expect("written");
        let mut read = Errand::read(file.as_fd(), 4096, 4096).expect("begun");
        assert_eq!(read.end(LATE).expect("read"), 1904);
        let told = read.told().expect("over");
        assert!(told[..1904].iter().all(|byte| *byte == 7) && told[1904] == 0);
        assert_eq!(Errand::sync(file.as_fd()).expect("begun").end(LATE).expect("over"), 0);
    }

    #[test]
    fn what_does_not_end_is_left() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let mut read = Errand::read(reader.as_fd(), u64::MAX, 4).expect("begun");
        assert_eq!(read.wait(SOON).expect("no error"), None);
        assert!(read.told().is_none());
        assert_eq!(read.end(SOON).map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
        writer.write_all(b"abcd").expect("written");
        assert_eq!(read.end(LATE).expect("over"), 4);
        assert_eq!(read.told(), Some(&b"abcd"[..]));
        drop(Errand::read(reader.as_fd(), u64::MAX, 4).expect("begun"));
    }

    #[test]
    fn errors_are_told() {
        let file = std::io::pipe().expect("a pipe").0;
        let mut none = Errand::command(file.as_fd(), 7, &[1; 8], |_| [0; 32]).expect("begun");
        let told = none.end(LATE).expect_err("no driver is behind it").raw_os_error();
        assert_eq!(told, Some(libc::EOPNOTSUPP));
        let folder = File::open("/").expect("it is there");
        assert!(Errand::read(folder.as_fd(), 0, 8).expect("begun").end(LATE).is_err());
    }
}

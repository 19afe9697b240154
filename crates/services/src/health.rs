//! Whether an export can really be used: a block of it is read, past the page cache.
//!
//! By a process of its own, coreutils' `dd`: whoever waits for a device that nobody serves can't be
//! ended, and a process that has such a thread can't end either. The one that has to bring it back
//! must not wait for it.

use crate::not_started;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bytes of a block.
const BLOCK: usize = 4096;
/// How long a read may take.
const LIMIT: Duration = Duration::from_secs(10);
/// What `dd` says of a file that nobody serves.
const NOT_SERVED: &str = "Transport endpoint is not connected";

/// Who asks an export how it is. There is one read at a time: one that does not end holds up
/// nothing else.
#[derive(Default)]
pub struct Asker {
    pending: Option<Child>,
}

impl Asker {
    /// Reads the first block of a device or file.
    ///
    /// # Errors
    /// What the kernel says, or it takes too long.
    pub fn read_a_block(&mut self, path: &Path) -> io::Result<()> {
        let late = || io::Error::other(format!("a read of it has not ended for {LIMIT:?}"));
        if let Some(pending) = &mut self.pending {
            if pending.try_wait()?.is_none() {
                return Err(late());
            }
            self.pending = None;
        }
        let mut child = begin(path)?;
        let outcome = bytes(&mut child, Instant::now() + LIMIT);
        let Some(bytes) = outcome.transpose() else {
            self.pending = Some(child);
            return Err(late());
        };
        let (bytes, ended) = (bytes?, child.wait()?);
        let mut said = String::new();
        child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut said)).transpose()?;
        match bytes {
            _ if said.contains(NOT_SERVED) => Err(Errno::NOTCONN.into()),
            _ if !ended.success() => Err(io::Error::other(said.trim().to_owned())),
            BLOCK => Ok(()),
            bytes => Err(io::Error::other(format!("a read of {BLOCK} bytes gave {bytes}"))),
        }
    }
}

fn begin(path: &Path) -> io::Result<Child> {
    let mut input = std::ffi::OsString::from("if=");
    input.push(path);
    let block = format!("bs={BLOCK}");
    let mut dd = Command::new("dd");
    dd.arg(input).args([&*block, "count=1", "iflag=direct", "status=none"]).env("LC_ALL", "C");
    dd.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    dd.spawn().map_err(|error| not_started("dd", "coreutils", &error))
}

/// How many bytes it has read, once it has ended; none if that has not come until then.
fn bytes(child: &mut Child, end: Instant) -> io::Result<Option<usize>> {
    let (mut all, mut room) = (0, [0; BLOCK]);
    let pipe = child.stdout.as_mut().ok_or(ErrorKind::BrokenPipe)?;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let time = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&time)) {
            Ok(0) => return Ok(None),
            Err(Errno::INTR) => continue,
            other => drop(other?),
        }
        match pipe.read(&mut room)? {
            0 => return Ok(Some(all)),
            more => all += more,
        }
    }
}

/// Seconds of Unix time.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_block_is_wanted() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(4096).expect("sized");
        let mut asker = Asker::default();
        let told = asker.read_a_block(file.path());
        // A file system in memory may know no direct I/O.
        if told.as_ref().is_err_and(|error| error.to_string().contains("Invalid argument")) {
            return;
        }
        told.expect("read");
        file.as_file().set_len(100).expect("sized");
        let told = asker.read_a_block(file.path()).expect_err("it is short").to_string();
        assert!(told.contains("gave 100"), "{told}");
        let told = asker.read_a_block(Path::new("/no/such")).expect_err("none").to_string();
        assert!(told.contains("No such file"), "{told}");
    }

    #[test]
    fn a_read_that_does_not_end_is_left() {
        let mut child = Command::new("sleep");
        let mut child = child.arg("600").stdout(Stdio::piped()).spawn().expect("started");
        let soon = Instant::now() + Duration::from_millis(1);
        assert_eq!(bytes(&mut child, soon).expect("no error"), None);
        let mut asker = Asker { pending: Some(child) };
        let told = asker.read_a_block(Path::new("/dev/zero")).expect_err("late").to_string();
        assert!(told.contains("has not ended"), "{told}");
        let mut child = asker.pending.take().expect("still there");
        child.kill().and_then(|()| child.wait()).expect("ended");
    }
}

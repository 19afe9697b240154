//! Some load on a volume, so that there is something to see: an NBD client on a thread.
//!
//! States: away → attached → away, again and again. Whatever goes wrong with the volume, its export
//! or the daemon leads to *away*, where the thread tries again every [`AGAIN`].
//!
//! Invariants: the thread ends with the value that owns it, whatever the daemon does; it uses only
//! the first [`AREA`] of the volume, so that sparse drives stay small.
//!
//! The protocol is NBD's (`doc/proto.md` of the NBD project): fixed newstyle, simple replies.

use super::random::Random;
use nbd::wire;
use nbd::wire::command::{READ, WRITE};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How much of the volume is used, in bytes.
const AREA: u64 = 64 << 20;
/// How long until it is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// One burst follows another after so long.
const PACE: Duration = Duration::from_millis(100);
/// How long a wait for the daemon lasts before a look at whether to end.
const LOOK: Duration = Duration::from_millis(100);
/// Requests of a burst: a third of a wave's height, and its bottom.
const BURST: (u64, u64) = (16, 4);
/// A wave is so many bursts long.
const WAVE: u64 = 600;

/// Fixed newstyle, and no zeros behind the export's flags.
const CLIENT_FLAGS: u32 = (wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES) as u32;

/// The load; it ends when this is dropped.
#[derive(Debug)]
pub struct Load {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// Begins to load the export `name` behind a Unix socket.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn start(socket: PathBuf, name: &'static str) -> Result<Self> {
        let end = Arc::new(AtomicBool::new(false));
        let told = end.clone();
        let work = move || {
            while !told.load(Ordering::Acquire) {
                // What went wrong is in the daemon's log and on its page.
                let _ = attach(&socket, name, &told).and_then(|mut own| own.load());
                pause(AGAIN, &told);
            }
        };
        let thread = Some(thread::Builder::new().name("load".into()).spawn(work)?);
        Ok(Self { end, thread })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits, but not beyond the end.
fn pause(how_long: Duration, end: &AtomicBool) {
    let start = Instant::now();
    while !end.load(Ordering::Acquire) {
        match how_long.checked_sub(start.elapsed()) {
            Some(left) if !left.is_zero() => thread::sleep(left.min(LOOK)),
            _ => return,
        }
    }
}

/// A client whose handshake is done.
struct Attached<'a> {
    stream: UnixStream,
    end: &'a AtomicBool,
    bytes: u64,
    random: Random,
    cookie: u64,
}

fn attach<'a>(socket: &Path, name: &str, end: &'a AtomicBool) -> Result<Attached<'a>> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(LOOK))?;
    let mut own = Attached { stream, end, bytes: 0, random: Random::new(1), cookie: 0 };
    let greeting: [u8; 18] = own.take()?;
    let [server, option] =
        [0, 8].map(|at| u64::from_be_bytes(greeting[at..at + 8].try_into().expect("8 bytes")));
    if (server, option) != (wire::INIT_MAGIC, wire::OPTION_MAGIC) {
        return Err(wrong());
    }
    let mut asked = CLIENT_FLAGS.to_be_bytes().to_vec();
    asked.extend(wire::OPTION_MAGIC.to_be_bytes());
    asked.extend(wire::option::EXPORT_NAME.to_be_bytes());
    asked.extend((name.len() as u32).to_be_bytes());
    asked.extend(name.as_bytes());
    own.send(&asked)?;
    let told: [u8; 10] = own.take()?;
    own.bytes = u64::from_be_bytes(told[..8].try_into().expect("8 bytes"));
    Ok(own)
}

fn wrong() -> Error {
    Error::new(ErrorKind::InvalidData, "not NBD's words")
}

impl Attached<'_> {
    /// Reads and writes until the end: three reads for each write, more and less of them in waves.
    fn load(&mut self) -> Result<()> {
        let mut block = vec![0; 64 << 10];
        for turn in 0_u64.. {
            // A triangle of height 1 at the middle of the wave.
            let (at, half) = (turn % WAVE, WAVE / 2);
            let height = half - at.abs_diff(half);
            let count = BURST.1 + 3 * BURST.0 * height / half + self.random.next() % BURST.1;
            for _ in 0..count {
                let length = (4 << 10) << (self.random.next() % 5);
                let places = (self.bytes.min(AREA) / length as u64).max(1);
                let offset = self.random.next() % places * length as u64;
                let kind = if self.random.next().is_multiple_of(4) { WRITE } else { READ };
                self.one(kind, offset, &mut block[..length])?;
            }
            pause(PACE, self.end);
        }
        Ok(())
    }

    /// One request and its reply.
    fn one(&mut self, kind: u16, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.cookie += 1;
        let mut asked = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
        asked.extend([0; 2]);
        asked.extend(kind.to_be_bytes());
        asked.extend(self.cookie.to_be_bytes());
        asked.extend(offset.to_be_bytes());
        asked.extend((bytes.len() as u32).to_be_bytes());
        if kind == WRITE {
            self.random.fill(bytes);
            asked.extend(&*bytes);
        }
        self.send(&asked)?;
        let told: [u8; 16] = self.take()?;
        let (head, cookie) = told.split_at(8);
        if head[..4] != wire::SIMPLE_REPLY_MAGIC.to_be_bytes()
            || cookie != self.cookie.to_be_bytes()
        {
            return Err(wrong());
        }
        // A reply with an error has no data; that is shown elsewhere.
        let is_well = head[4..] == [0; 4];
        if is_well && kind == READ { self.read(bytes) } else { Ok(()) }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let step = self.stream.read(&mut bytes[done..]);
            done += self.went_on(step)?;
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let step = self.stream.write(&bytes[done..]);
            done += self.went_on(step)?;
        }
        Ok(())
    }

    /// How many bytes moved; a wait that is long is no error, unless this is to end.
    fn went_on(&self, step: Result<usize>) -> Result<usize> {
        let waits = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
        match step {
            _ if self.end.load(Ordering::Acquire) => Err(ErrorKind::Interrupted.into()),
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if waits.contains(&error.kind()) => Ok(0),
            step => step,
        }
    }
}

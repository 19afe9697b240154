//! Whether an export can really be used: a block of it is read, past the page cache.
//!
//! By a process of its own, the *reader*: whoever waits for a device that nobody serves can't be
//! ended, and a process that has such a thread can't end either. The one that has to bring it back
//! must not wait for it. The reader is this program once more, with a thread for each read; a line
//! of JSON asks for one, and one answers it:
//!
//! | asked            | answered                                                               |
//! |------------------|------------------------------------------------------------------------|
//! | `[NUMBER, PATH]` | `[NUMBER, null]`, or `[NUMBER, [ERRNO or null, TEXT]]`: why it can't be |
//!
//! States of the reader: none → begun, by who asks first → ended (somebody killed it): none. It
//! ends itself when nobody can ask it any more.
//!
//! Invariant: a device is closed before the answer comes; one that does not answer is open until it
//! does.

use crate::lock;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of a block.
const BLOCK: usize = 4096;
/// How long a read may take.
const LIMIT: Duration = Duration::from_secs(10);
/// This program, and how its command line says that it is the reader.
const PROGRAM: &str = "/proc/self/exe";
const WORDS: [&str; 2] = ["services", "--reader"];

/// Why a block can't be read: the system's number for that, if it is the system that says so.
type Why = (Option<i32>, String);

/// Who asks an export how it is. There is one read at a time: one that does not end holds up
/// nothing else.
#[derive(Default)]
pub struct Asker {
    pending: Option<Receiver<Option<Why>>>,
}

impl Asker {
    /// Reads the first block of a device or file.
    ///
    /// # Errors
    /// What the kernel says, or it takes too long.
    pub fn read_a_block(&mut self, path: &Path) -> io::Result<()> {
        static READER: Mutex<Option<Reader>> = Mutex::new(None);
        self.read_by((&READER, &begin), path, LIMIT)
    }

    fn read_by(
        &mut self,
        (reader, begin): (&Mutex<Option<Reader>>, &dyn Fn() -> io::Result<Reader>),
        path: &Path,
        limit: Duration,
    ) -> io::Result<()> {
        let late = || io::Error::other(format!("a read of it has not ended for {LIMIT:?}"));
        match self.pending.as_ref().map(Receiver::try_recv) {
            Some(Err(TryRecvError::Empty)) => return Err(late()),
            _ => self.pending = None,
        }
        let mut reader = lock(reader);
        let asked = match reader.as_mut().map(|own| own.ask(path)) {
            Some(Ok(asked)) => asked,
            // There is none, or it has ended.
            _ => reader.insert(begin()?).ask(path)?,
        };
        drop(reader);
        match asked.recv_timeout(limit) {
            Ok(None) => Ok(()),
            Ok(Some((Some(number), _))) => Err(io::Error::from_raw_os_error(number)),
            Ok(Some((None, text))) => Err(io::Error::other(text)),
            Err(RecvTimeoutError::Timeout) => {
                self.pending = Some(asked);
                Err(late())
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(io::Error::other("the process that reads it was ended"))
            }
        }
    }
}

/// Those who wait for an answer, by the numbers of what they asked.
type Waiting = Arc<Mutex<BTreeMap<u64, Sender<Option<Why>>>>>;

/// The reader, for those who ask it.
struct Reader {
    input: Box<dyn Write + Send>,
    waiting: Waiting,
    next: u64,
}

/// Begins a reader.
fn begin() -> io::Result<Reader> {
    let mut own = Command::new(PROGRAM);
    own.arg0("palisade").args(WORDS).stdin(Stdio::piped()).stdout(Stdio::piped());
    // What ends this process at a terminal is not for it: it ends with this one.
    let mut child = own.process_group(0).spawn()?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (Some(input), Some(output)) = (input, output) else {
        return Err(ErrorKind::BrokenPipe.into());
    };
    Reader::over(Box::new(input), output, move || drop(child.wait()))
}

impl Reader {
    /// One that is asked by a stream, and answers by another; `ended` is called at its end.
    fn over(
        input: Box<dyn Write + Send>,
        output: impl Read + Send + 'static,
        ended: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let waiting = Waiting::default();
        let told = waiting.clone();
        let hear = move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok((number, answer)) = serde_json::from_str::<(u64, Option<Why>)>(&line) else {
                    break;
                };
                // Whoever asked may wait no more.
                let asked = lock(&told).remove(&number);
                asked.map(|asked| asked.send(answer));
            }
            // Nobody answers the others any more.
            lock(&told).clear();
            ended();
        };
        std::thread::Builder::new().name("reader".to_owned()).spawn(hear)?;
        Ok(Self { input, waiting, next: 0 })
    }

    fn ask(&mut self, path: &Path) -> io::Result<Receiver<Option<Why>>> {
        let (tell, told) = channel();
        self.next += 1;
        let line = serde_json::to_string(&(self.next, path))?;
        lock(&self.waiting).insert(self.next, tell);
        writeln!(self.input, "{line}").and_then(|()| self.input.flush())?;
        Ok(told)
    }
}

/// Reads blocks for another process of this program, which asks and is told by these; until it asks
/// no more.
pub fn read_for_another(asked: impl BufRead, told: impl Write + Send + 'static) {
    let told = Arc::new(Mutex::new(told));
    for line in asked.lines().map_while(Result::ok) {
        let Ok((number, path)) = serde_json::from_str::<(u64, PathBuf)>(&line) else { return };
        let own = told.clone();
        let read = move || {
            let why = read(&path).err().map(|why| (why.raw_os_error(), why.to_string()));
            answer(&own, number, why);
        };
        if let Err(why) = std::thread::Builder::new().spawn(read) {
            answer(&told, number, Some((None, format!("no thread reads it: {why}"))));
        }
    }
}

fn answer(told: &Mutex<impl Write>, number: u64, why: Option<Why>) {
    let line = serde_json::to_string(&(number, why)).unwrap_or_default();
    let mut told = lock(told);
    // Whoever asked may have ended.
    let _ = writeln!(told, "{line}").and_then(|()| told.flush());
}

/// Reads the first block of a device or file.
fn read(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut room = vec![0; 2 * BLOCK];
    let from = room.as_ptr().align_offset(BLOCK);
    let room = room.get_mut(from..from + BLOCK).ok_or(ErrorKind::OutOfMemory)?;
    match rustix::io::read(&file, room)? {
        BLOCK => Ok(()),
        bytes => Err(io::Error::other(format!("a read of {BLOCK} bytes gave {bytes}"))),
    }
}

/// Seconds of Unix time.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configfs::tests::until;
    use std::fs::File;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    const SOON: Duration = Duration::from_secs(60);

    /// A reader that is a thread, and what ends it.
    fn thread() -> io::Result<(Reader, UnixStream)> {
        let (own, others) = UnixStream::pair()?;
        let (asked, told, end) = (BufReader::new(others.try_clone()?), others.try_clone()?, others);
        std::thread::spawn(move || read_for_another(asked, told));
        Ok((Reader::over(Box::new(own.try_clone()?), own, || ())?, end))
    }

    fn begin() -> io::Result<Reader> {
        thread().map(|own| own.0)
    }

    #[test]
    fn a_whole_block_is_wanted() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(4096).expect("sized");
        let (reader, mut asker) = (Mutex::new(None), Asker::default());
        let mut ask = |path: &Path| asker.read_by((&reader, &begin), path, SOON);
        let told = ask(file.path());
        // A file system in memory may know no direct I/O.
        if told.as_ref().is_err_and(|error| error.to_string().contains("Invalid argument")) {
            return;
        }
        told.expect("read");
        file.as_file().set_len(100).expect("sized");
        let told = ask(file.path()).expect_err("it is short").to_string();
        assert!(told.contains("gave 100"), "{told}");
        let told = ask(Path::new("/no/such")).expect_err("none");
        assert_eq!(told.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_read_that_does_not_end_is_left_and_holds_up_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let never = folder.path().join("pipe");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &never, kind, Mode::RUSR, 0).expect("made");
        let (reader, mut asker) = (Mutex::new(None), Asker::default());
        let by: (_, &dyn Fn() -> _) = (&reader, &begin);
        let late = |told: io::Result<()>| told.expect_err("late").to_string();
        let told = late(asker.read_by(by, &never, Duration::from_millis(1)));
        assert!(told.contains("has not ended"), "{told}");
        let told = late(asker.read_by(by, Path::new("/no/such"), SOON));
        assert!(told.contains("has not ended"), "there is one read at a time: {told}");
        let told = Asker::default().read_by(by, Path::new("/no/such"), SOON);
        assert_eq!(told.expect_err("none").kind(), ErrorKind::NotFound);
        // It ends, and what came of it is forgotten.
        drop(File::options().write(true).open(&never).expect("opened"));
        let mut ask = || asker.read_by(by, Path::new("/no/such"), SOON).expect_err("none");
        until(|| ask().kind() == ErrorKind::NotFound);
    }

    #[test]
    fn a_reader_that_has_ended_is_begun_anew() {
        let (own, end) = thread().expect("begun");
        let (reader, mut asker) = (Mutex::new(Some(own)), Asker::default());
        let mut ask = || asker.read_by((&reader, &begin), Path::new("/no/such"), SOON);
        assert_eq!(ask().expect_err("none").kind(), ErrorKind::NotFound);
        end.shutdown(Shutdown::Both).expect("ended");
        assert_eq!(ask().expect_err("none").kind(), ErrorKind::NotFound, "by the next one");
    }
}

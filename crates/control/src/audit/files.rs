//! The files of the audit log: `audit-N.log` begins with line N. When one is full the next begins,
//! and the oldest goes. The chain goes on from file to file.
//!
//! States of the end of the last file: whole → being written (lines are behind what is known to be
//! durable) → whole, or torn (a crash, a full file system). What is torn was never said to be
//! durable: it is cut off, by the next write or the next start.
//!
//! Invariants
//! - [`Files::append`] says that lines are durable when they are, and no file is changed before
//!   what is durable in it.
//! - A whole line is never cut off, whatever it says: who changed it is found by [`verify`].

use super::chain::{Follower, Hash, Line};
use crate::state::{self, own};
use redfish::view::{Entry, Verified};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// How large files are, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// A file that holds more is not written to any more, in bytes.
    pub file: u64,
    /// How many files are kept.
    pub files: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { file: 16 << 20, files: 8 }
    }
}

/// A line that is longer is none that the daemon wrote, in bytes.
const LONGEST: u64 = 64 << 10;

/// Something that takes lines.
pub trait Sink: Send {
    /// Makes lines durable, in order. Answers how many are, and why not all.
    fn append(&mut self, lines: &[std::sync::Arc<Line>]) -> (usize, io::Result<()>);
}

/// The files, of which the last is written.
pub struct Files {
    dir: PathBuf,
    sizes: Sizes,
    /// The number of the first line of each, the oldest first.
    begins: VecDeque<u64>,
    /// The last, once there is one.
    last: Option<File>,
    /// How much of the last is durable, in bytes.
    length: u64,
}

/// What was found in the files.
#[derive(Default)]
pub struct Found {
    /// The number and hash of the last line.
    pub last: Option<(u64, Hash)>,
    /// The newest lines, in order.
    pub entries: VecDeque<Entry>,
    /// Lines that say that something would begin, of which none says how it ended.
    pub open: Vec<Entry>,
    /// How much was torn, in bytes.
    pub torn: u64,
}

fn name(begin: u64) -> String {
    format!("audit-{begin:020}.log")
}

/// The number of the first line of each file, the oldest first.
fn begins(dir: &Path) -> io::Result<VecDeque<u64>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        found.extend(name.to_str().and_then(state::first_line));
    }
    found.sort_unstable();
    Ok(found.into())
}

/// What a piece of a file is.
enum Piece {
    /// A line, without its end.
    Line(Vec<u8>),
    /// The rest, of so many bytes: torn.
    Torn(u64),
}

/// The pieces of a file, one after the other. What was never wholly written is behind the last end
/// of a line; some file systems leave zeros there. Zeros before it are a line that was changed.
struct Pieces {
    reader: BufReader<File>,
    /// What lines are left, in bytes.
    left: u64,
    /// What is behind the last end of a line, in bytes.
    torn: u64,
}

impl Pieces {
    fn of(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let left = end_of_lines(&file, length)?;
        Ok(Self { reader: BufReader::new(file), left, torn: length.saturating_sub(left) })
    }

    fn next(&mut self) -> io::Result<Option<Piece>> {
        if self.left == 0 {
            let torn = core::mem::take(&mut self.torn);
            return Ok((torn > 0).then_some(Piece::Torn(torn)));
        }
        let mut bytes = Vec::new();
        let mut limited = (&mut self.reader).take(LONGEST.min(self.left));
        let read = limited.read_until(b'\n', &mut bytes)?;
        if read == 0 {
            // What was behind was torn, and was cut off meanwhile.
            (self.left, self.torn) = (0, 0);
            return Ok(None);
        }
        bytes.pop_if(|byte| *byte == b'\n');
        self.left = self.left.saturating_sub(read as u64);
        Ok(Some(Piece::Line(bytes)))
    }
}

/// Where the last whole line ends in a file of this length.
fn end_of_lines(file: &File, length: u64) -> io::Result<u64> {
    let (mut end, mut block) = (length, vec![0; 64 << 10]);
    while end > 0 {
        let begin = end.saturating_sub(block.len() as u64);
        let size = usize::try_from(end - begin).unwrap_or(block.len());
        let bytes = block.get_mut(..size).unwrap_or_default();
        file.read_exact_at(bytes, begin)?;
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

impl Files {
    /// Opens the files of a directory. At most `newest` lines are told.
    ///
    /// # Errors
    /// They can't be read, or what is torn can't be cut off.
    pub fn open(dir: &Path, sizes: Sizes, newest: usize) -> io::Result<(Self, Found)> {
        let begins = begins(dir)?;
        let (mut found, mut follower) = (Found::default(), Follower::default());
        for begin in &begins {
            let mut pieces = Pieces::of(&dir.join(name(*begin)))?;
            found.torn = 0;
            while let Some(piece) = pieces.next()? {
                match piece {
                    Piece::Line(bytes) => {
                        follower.take("", &bytes);
                        found.take(&bytes, newest);
                    }
                    Piece::Torn(bytes) => found.torn = bytes,
                }
            }
        }
        found.last = follower.last();
        let mut files = Self { dir: dir.to_owned(), sizes, begins, last: None, length: 0 };
        if let Some(begin) = files.begins.back() {
            let path = dir.join(name(*begin));
            let file = own(OpenOptions::new().read(true).write(true)).open(path)?;
            files.length = file.metadata()?.len().saturating_sub(found.torn);
            if found.torn > 0 {
                file.set_len(files.length)?;
                file.sync_all()?;
            }
            files.last = Some(file);
        }
        Ok((files, found))
    }

    /// Begins a file whose first line has this number.
    fn begin(&mut self, number: u64) -> io::Result<()> {
        let path = self.dir.join(name(number));
        // What an earlier attempt left there was never said to be durable.
        let mut options = OpenOptions::new();
        let file = own(options.read(true).write(true).create(true).truncate(true)).open(path)?;
        state::sync(&self.dir)?;
        if self.begins.back() != Some(&number) {
            self.begins.push_back(number);
        }
        (self.last, self.length) = (Some(file), 0);
        while self.begins.len() > self.sizes.files.max(1) {
            let Some(oldest) = self.begins.pop_front() else { break };
            // It is in nobody's way; a start counts it again.
            let _ = std::fs::remove_file(self.dir.join(name(oldest)));
        }
        Ok(())
    }

    /// Writes text behind what is durable.
    fn write(&mut self, text: &str) -> io::Result<()> {
        let file = self.last.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let outcome = file.write_all_at(text.as_bytes(), self.length);
        if let Err(error) = outcome.and_then(|()| file.sync_data()) {
            // So that nothing is left behind the next line; a start would cut it off, too.
            let _ = file.set_len(self.length);
            return Err(error);
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

impl Sink for Files {
    fn append(&mut self, lines: &[std::sync::Arc<Line>]) -> (usize, io::Result<()>) {
        let mut done = 0;
        while let Some(first) = lines.get(done) {
            if (self.last.is_none() || self.length >= self.sizes.file)
                && let Err(error) = self.begin(first.number)
            {
                return (done, Err(error));
            }
            let (mut text, mut count) = (String::new(), 0);
            for line in lines.iter().skip(done) {
                if count > 0 && self.length + text.len() as u64 >= self.sizes.file {
                    break;
                }
                text.push_str(&line.text);
                count += 1;
            }
            if let Err(error) = self.write(&text) {
                return (done, Err(error));
            }
            done += count;
        }
        (done, Ok(()))
    }
}

impl Found {
    fn take(&mut self, bytes: &[u8], newest: usize) {
        let Ok(super::chain::Read { entry, .. }) = super::chain::read(bytes) else { return };
        if entry.result == redfish::view::Ending::Intent {
            self.open.push(entry.clone());
        } else if let Some(of) = entry.of {
            self.open.retain(|open| open.number != of);
        }
        self.entries.push_back(entry);
        if self.entries.len() > newest {
            self.entries.pop_front();
        }
    }
}

/// Follows the chain through all files of a directory, up to the line `until` if one is known to
/// be the last. What a crash tore off at the end is no break.
///
/// # Errors
/// A file can't be read.
pub fn verify(dir: &Path, until: Option<(u64, Hash)>) -> io::Result<Verified> {
    let mut follower = Follower::default();
    let begins = begins(dir)?;
    for (at, begin) in begins.iter().enumerate() {
        let name = name(*begin);
        let mut pieces = match Pieces::of(&dir.join(&name)) {
            // The oldest may go at any time.
            Err(error) if at == 0 && error.kind() == io::ErrorKind::NotFound => continue,
            pieces => pieces?,
        };
        let mut number = 0_u64;
        while let Some(piece) = pieces.next()? {
            number += 1;
            let place = format!("{name}: line {number}");
            match piece {
                Piece::Line(bytes) => follower.take(&place, &bytes),
                Piece::Torn(_) if at + 1 == begins.len() => {}
                Piece::Torn(bytes) => follower.take(&format!("{place} ({bytes} bytes)"), &[]),
            }
            if until.is_some() && follower.last().map(|l| l.0) == until.map(|l| l.0) {
                return Ok(follower.end(until));
            }
        }
        // A file is made with its first line: only of the newest a crash may have left nothing.
        if number == 0 && at + 1 < begins.len() {
            follower.take(&format!("{name}: no line"), &[]);
        }
    }
    Ok(follower.end(until))
}

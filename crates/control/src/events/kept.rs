//! The file of events: `events.jsonl` of the state directory, a line of JSON an event. Its other
//! lines say which identifiers may have been told, and which event was the last that went.
//!
//! States of the file: whole → being written → whole, or torn (a crash, a full file system). A
//! start, and a write after one that failed, puts a whole one in its place.
//!
//! Invariants
//! - No identifier is told twice, whatever becomes of the file: those of a start are greater than
//!   all that the clock allowed before ([`first_id`]), and than those that the file has reserved
//!   where the clock was set back. [`BLOCK`] of them are reserved at a time, long before they are
//!   needed.
//! - The file never grows beyond what is read at a start.
//! - Nobody waits for the file but the thread that writes it.

use super::ring::{Begin, Place, Ring, Work, first_id};
use crate::state::{EVENTS as FILE, State, own};
use redfish::events::{Event, MOST};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// So many identifiers are reserved at a time.
pub const BLOCK: u64 = 1_000_000;

/// The file is written anew when it has so many lines.
const LINES: usize = 2 * MOST;

/// The file is written anew before it has more bytes: less than [`State::read`] takes, and more
/// than [`MOST`] events can have.
const BYTES: usize = 14 << 20;

/// When a write that failed is tried again; each time it fails after twice as long.
const AGAIN: Duration = Duration::from_secs(3);

/// The longest of these times.
const LATEST: Duration = Duration::from_secs(60);

/// A line that is no event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    /// No greater identifier was told.
    reserved: u64,
    /// The last event that is no longer kept.
    gone: u64,
}

/// What a line is.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Head(Head),
    Event(Event),
}

/// The file of a state directory, as it was read.
pub struct Found {
    /// What the ring begins with.
    pub begin: Begin,
    writer: Writer,
}

fn line(of: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(of)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What a file says; lines that are torn, or of a version to come, say nothing.
fn parse(bytes: &[u8]) -> (Vec<Event>, Head) {
    let (mut events, mut head) = (Vec::<Event>::new(), Head::default());
    for line in bytes.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Line::Head(next)) => head = next,
            Ok(Line::Event(event)) if events.last().is_none_or(|last| last.id < event.id) => {
                events.push(event);
            }
            _ => {}
        }
    }
    let older = events.len().saturating_sub(MOST);
    if let Some(last) = events.drain(..older).next_back() {
        head.gone = head.gone.max(last.id);
    }
    if let Some(last) = events.last() {
        head.reserved = head.reserved.max(last.id);
    }
    (events, head)
}

/// Reads the file of a state directory, and reserves identifiers. Whoever waits for it may give up.
///
/// # Errors
/// It can't be read or written.
pub fn read(state: &Arc<State>) -> io::Result<Found> {
    let (events, head) = parse(&state.read(FILE)?.unwrap_or_default());
    let last = head.reserved.max(first_id());
    let gone = if events.is_empty() { last } else { head.gone };
    let begin = Begin { events, last, gone };
    let entries: Vec<Arc<Event>> = begin.events.iter().cloned().map(Arc::new).collect();
    let mut writer = Writer { state: state.clone(), kept: 0, lines: 0, bytes: 0, reserved: 0 };
    writer
        .replace(&entries, Head { reserved: begin.last.saturating_add(BLOCK), gone: begin.gone })?;
    writer.kept = entries.len() as Place;
    Ok(Found { begin, writer })
}

/// Keeps what comes, on a thread of its own.
///
/// # Errors
/// There is no thread to be had.
pub fn go_on(ring: &Arc<Ring>, mut writer: Writer) -> io::Result<()> {
    ring.begin_keeping();
    let own = ring.clone();
    let thread = std::thread::Builder::new().name("palisade-events".to_owned());
    let started = thread.spawn(move || {
        writer.write(&own);
        // Whoever waits for the end may open the directory anew.
        drop(writer);
        own.end_keeping();
    });
    if started.is_err() {
        ring.end_keeping();
    }
    started.map(drop)
}

impl Found {
    /// What a ring begins with, and who keeps what comes.
    pub fn split(self) -> (Begin, Writer) {
        (self.begin, self.writer)
    }
}

/// Who writes the file.
pub struct Writer {
    state: Arc<State>,
    /// How many events came that are in the file, or no longer in the ring.
    kept: Place,
    lines: usize,
    bytes: usize,
    reserved: u64,
}

impl Writer {
    fn write(&mut self, ring: &Ring) {
        let (mut work, mut pause) = (ring.work(self.kept), None);
        loop {
            let outcome = self.keep(ring, &work, pause.is_none());
            if work.is_ending {
                return;
            }
            let problem =
                outcome.err().map(|why| format!("events can't be written: {FILE}: {why}"));
            pause = problem.as_ref().map(|_| pause.map_or(AGAIN, |last| LATEST.min(last * 2)));
            ring.set_problem(problem);
            work = match pause {
                None => ring.work(self.kept),
                Some(time) => ring.pause(time, self.kept),
            };
        }
    }

    /// Keeps what came. All of it, if some was missed or the file may be torn.
    fn keep(&mut self, ring: &Ring, work: &Work, is_whole: bool) -> io::Result<()> {
        let mut reserved = self.reserved;
        if work.last.saturating_add(BLOCK / 2) > reserved {
            reserved = work.last.saturating_add(BLOCK);
        }
        // Nothing is told any more.
        if work.is_ending {
            reserved = work.last;
        }
        let head = Head { reserved, gone: work.gone };
        let mut bytes = Vec::new();
        if reserved != self.reserved {
            bytes.extend(line(&head)?);
        }
        for event in &work.batch.events {
            bytes.extend(line(&**event)?);
        }
        let is_long = self.lines.saturating_add(work.batch.events.len()) > LINES
            || self.bytes.saturating_add(bytes.len()) > BYTES;
        if !is_whole || is_long || work.batch.missed > 0 || work.is_ending {
            let all = ring.after(0, MOST);
            self.replace(&all.events, head)?;
            self.kept = all.place;
            return Ok(());
        }
        let mut options = OpenOptions::new();
        let mut file = own(options.append(true)).open(self.state.dir().join(FILE))?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        self.lines = self.lines.saturating_add(work.batch.events.len());
        self.bytes = self.bytes.saturating_add(bytes.len());
        (self.reserved, self.kept) = (reserved, work.batch.place);
        Ok(())
    }

    fn replace(&mut self, events: &[Arc<Event>], head: Head) -> io::Result<()> {
        let mut bytes = line(&head)?;
        for event in events {
            bytes.extend(line(&**event)?);
        }
        self.state.replace(FILE, &bytes)?;
        (self.reserved, self.lines, self.bytes) = (head.reserved, events.len(), bytes.len());
        Ok(())
    }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;

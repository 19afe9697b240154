//! What a running shelf is asked, over a Unix socket: a line of JSON, answered by another.

use crate::error::ShelfError;
use crate::rack::{Rack, Shelf};
use crate::state::{Pull, Shown};
use crate::zone::ZoneWords;
use serde::{Deserialize, Serialize};
use std::fs::Permissions;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most bytes of a line that is asked.
const LINE: u64 = 64 << 10;
/// How long who asks may take to say what.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is asked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "do", deny_unknown_fields)]
pub enum Ask {
    /// Pull a part out.
    Pull {
        /// `drive`, `port`, `iom` or `shelf`.
        part: String,
        /// Which, but of the shelf.
        name: Option<String>,
        /// How.
        how: Pull,
    },
    /// Put a part back.
    Restore {
        /// As above.
        part: String,
        /// As above.
        name: Option<String>,
    },
    /// Make each request to a drive take longer.
    Slow {
        /// Its number.
        drive: String,
        /// By so many milliseconds.
        ms: u64,
    },
    /// Say what a sensor reads, or what a port is like.
    Set {
        /// Which.
        name: String,
        /// What.
        value: String,
    },
    /// Add a zone.
    #[serde(rename = "zone-add")]
    AddZone(ZoneWords),
    /// Remove a zone.
    #[serde(rename = "zone-remove")]
    RemoveZone {
        /// Which.
        name: String,
    },
    /// Show all of it.
    Show,
}

/// What comes of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// All of it.
    Shown(Shown),
    /// It was done.
    Done {},
}

/// An error as it is answered.
#[derive(Debug, Serialize, Deserialize)]
struct Refusal {
    error: String,
    is_usage: bool,
}

/// Answers on a socket until it is dropped.
pub struct Control {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Begins to answer for a shelf. A socket that nobody answers on any more is replaced.
    ///
    /// # Errors
    /// What the system refuses, or that somebody answers there.
    pub fn start(shelf: &Shelf, path: &Path) -> Result<Self, ShelfError> {
        let of = |error| ShelfError::of(path.display(), &error);
        if UnixStream::connect(path).is_ok() {
            let told = format!("{} is another shelf's: give another --control", path.display());
            return Err(ShelfError::Failed(told));
        }
        match std::fs::symlink_metadata(path) {
            Ok(there) if std::os::unix::fs::FileTypeExt::is_socket(&there.file_type()) => {
                std::fs::remove_file(path).map_err(of)?;
            }
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(of)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(of)?;
        let (is_over, rack) = (Arc::new(AtomicBool::new(false)), shelf.rack().clone());
        let told = is_over.clone();
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if told.load(Ordering::SeqCst) {
                    return;
                }
                // One at a time: what one asks is done before what the next asks. Who has gone
                // meanwhile needs no answer.
                let _ = stream.and_then(|stream| answer(&rack, &stream));
            }
        });
        Ok(Self { path: path.to_owned(), is_over, thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread.
        let is_woken = UnixStream::connect(&self.path).is_ok();
        let thread = self.thread.take().filter(|_| is_woken);
        thread.map(JoinHandle::join);
        // It may be gone already.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn answer(rack: &Rack, stream: &UnixStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE)).read_line(&mut line)?;
    let outcome = match serde_json::from_str::<Ask>(&line) {
        Ok(ask) => rack.ask(&ask),
        Err(error) => Err(ShelfError::Usage(format!("not understood: {error}"))),
    };
    let text = match outcome {
        Ok(answer) => serde_json::to_string(&answer)?,
        Err(error) => {
            let is_usage = matches!(error, ShelfError::Usage(_));
            serde_json::to_string(&Refusal { error: error.to_string(), is_usage })?
        }
    };
    let mut out = stream;
    out.write_all(format!("{text}\n").as_bytes())
}

/// Asks the shelf that answers on a socket; its answer, as JSON.
///
/// # Errors
/// That none answers there, or not in its words; within that, why the shelf does not do it.
pub fn ask(path: &Path, ask: &Ask) -> std::io::Result<Result<serde_json::Value, ShelfError>> {
    let mut stream = UnixStream::connect(path)?;
    let line = serde_json::to_string(ask)?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    if value.get("error").is_none() {
        return Ok(Ok(value));
    }
    let Refusal { error, is_usage } = serde_json::from_value(value)?;
    let kind = if is_usage { ShelfError::Usage } else { ShelfError::Failed };
    Ok(Err(kind(error)))
}

//! What `/metrics` answers: the view and the process as Prometheus reads them, and who may read it.
//!
//! Invariants
//! - Neither the engine, a drive nor a core is asked. Of the kernel only this process is asked for.
//! - However often it is asked for, the text is made once in [`KEPT`], on a thread of its own; all
//!   who ask meanwhile share it.
//! - Of all texts, [`MOST`] are there at one time. While clients still take as many, the newest one
//!   is given out, and none once that is [`OLD`]: who reads slowly must not have others take old
//!   values for new ones. So a text needs no memory of whoever reads it.

use crate::lock::lock;
use hyper::body::Bytes;
use redfish::prometheus::{self, Daemon, Process};
use redfish::view::View;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;

/// How long a text is given out.
const KEPT: Duration = Duration::from_millis(500);

/// How old a text is that is not given out, though there is room for no other.
const OLD: Duration = Duration::from_secs(5);

/// How many texts there are at most.
const MOST: usize = 3;

/// The texts that are there.
#[derive(Default)]
struct Texts {
    /// The newest, and when it was made, until it is old.
    kept: Option<(Instant, Arc<String>)>,
    /// All that somebody has, and when they were made, by age.
    all: Vec<(Instant, Weak<String>)>,
    /// Bytes of the newest.
    bytes: usize,
}

impl Texts {
    /// The newest, if it is new enough or no other may be made.
    ///
    /// # Errors
    /// No other may be made, and it is too old.
    fn newest(&mut self) -> Result<Option<Arc<String>>, NoText> {
        self.forget_old();
        if let Some((_, text)) = &self.kept {
            return Ok(Some(text.clone()));
        }
        self.all.retain(|(_, text)| text.strong_count() > 0);
        match self.all.last().filter(|_| self.all.len() >= MOST) {
            Some((made, _)) if made.elapsed() >= OLD => Err(NoText::NoRoom),
            newest => Ok(newest.and_then(|(_, text)| text.upgrade())),
        }
    }

    fn forget_old(&mut self) {
        self.kept.take_if(|(made, _)| made.elapsed() >= KEPT);
    }

    fn put(&mut self, text: String) -> Arc<String> {
        self.bytes = text.len();
        let (text, now) = (Arc::new(text), Instant::now());
        self.kept = Some((now, text.clone()));
        self.all.push((now, Arc::downgrade(&text)));
        text
    }
}

/// Why there is no text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoText {
    /// Clients still take as many as there may be.
    NoRoom,
    /// The thread that makes it failed.
    Failed,
}

/// A text as bytes; clones of them are the same.
struct Shared(Arc<String>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// What there is to answer.
#[derive(Default)]
pub struct Metrics {
    is_open: AtomicBool,
    /// By the first digit of the status, from 1.
    answers: [AtomicU64; 5],
    texts: Arc<Mutex<Texts>>,
    /// Whose turn it is to make a text.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Metrics {
    /// Whether everybody may read them.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Whether everybody may, from now on.
    pub fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Ordering::Relaxed);
    }

    /// A request was answered with this status.
    pub fn answered(&self, status: u16) {
        let class = usize::from(status / 100).checked_sub(1);
        if let Some(count) = class.and_then(|class| self.answers.get(class)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The text, of this view or of one that is not much older.
    ///
    /// # Errors
    /// There is none.
    pub async fn text(&self, view: Arc<View>) -> Result<Bytes, NoText> {
        // It goes with the thread: whoever asked may go, and no other text is begun before.
        let turn = self.turn.clone().lock_owned().await;
        let newest = lock(&self.texts).newest()?;
        let text = match newest {
            Some(text) => text,
            None => {
                let answers = self.answers.each_ref().map(|count| count.load(Ordering::Relaxed));
                let texts = self.texts.clone();
                let made = spawn_blocking(move || {
                    let _turn = turn;
                    let daemon = Daemon { process: process(), answers };
                    // A little more than the last one had.
                    let room = lock(&texts).bytes / 20 * 21;
                    let text = prometheus::exposition(&view, &daemon, room);
                    lock(&texts).put(text)
                });
                made.await.map_err(|_| NoText::Failed)?
            }
        };
        Ok(Bytes::from_owner(Shared(text)))
    }

    /// A text that is old is no longer kept; who reads it has it yet.
    pub fn forget_old(&self) {
        lock(&self.texts).forget_old();
    }
}

/// What the kernel says of this process (proc_pid_stat(5)).
fn process() -> Option<Process> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name, which is the second field, may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<u64> =
        rest.split_ascii_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect();
    // Those behind the name and the state are numbered from 4 on.
    let field = |number: usize| fields.get(number.checked_sub(4)?).copied();
    let ticks = field(14)?.saturating_add(field(15)?);
    // The folder that is read is open, too.
    let open_files = fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    Some(Process {
        cpu_seconds: ticks as f64 / clock_ticks_per_second() as f64,
        threads: field(20)?,
        virtual_bytes: field(23)?,
        resident_bytes: field(24)?.saturating_mul(page_size() as u64),
        open_files: open_files as u64,
        most_files: getrlimit(Resource::Nofile).current,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_known() {
        let memory = vec![1_u8; 4 << 20];
        let file = fs::File::open("/proc/self/stat").expect("opens");
        let own = process().expect("is known");
        assert!(own.resident_bytes >= memory.len() as u64, "{own:?}");
        assert!(own.virtual_bytes >= own.resident_bytes && own.threads >= 1, "{own:?}");
        assert!(own.open_files >= 4 && own.most_files.is_none_or(|most| most > 4), "{own:?}");
        drop(file);
    }

    #[tokio::test]
    async fn answers_are_counted_by_class_and_the_text_is_kept() {
        let metrics = Metrics::default();
        for status in [200, 204, 404, 503, 0, 999] {
            metrics.answered(status);
        }
        let text = metrics.text(Arc::default()).await.expect("a text");
        let text = core::str::from_utf8(&text).expect("text");
        for line in ["{code=\"2xx\"} 2", "{code=\"4xx\"} 1", "{code=\"5xx\"} 1", "{code=\"1xx\"} 0"]
        {
            assert!(text.contains(&format!("palisade_api_requests_total{line}\n")), "{text}");
        }
        assert!(text.contains("\nprocess_resident_memory_bytes "), "{text}");
        metrics.answered(200);
        let again = metrics.text(Arc::default()).await.expect("a text");
        assert_eq!(again, text.as_bytes(), "it is not made again at once");
    }

    fn make_old(metrics: &Metrics) {
        let past = Instant::now().checked_sub(KEPT).expect("the machine runs for longer");
        lock(&metrics.texts).kept.as_mut().expect("one is kept").0 = past;
    }

    #[tokio::test]
    async fn readers_that_take_their_time_hold_a_few_texts_and_shut_nobody_out() {
        let metrics = Metrics::default();
        let mut all = Vec::new();
        for _ in 0..MOST {
            all.push(metrics.text(Arc::default()).await.expect("a text"));
            make_old(&metrics);
        }
        assert_ne!(all[0].as_ptr(), all[1].as_ptr(), "an old one is made anew");
        let other = metrics.text(Arc::default()).await.expect("a text");
        assert_eq!(other.as_ptr(), all[MOST - 1].as_ptr(), "the newest one");
        let past = Instant::now().checked_sub(OLD).expect("the machine runs for longer");
        lock(&metrics.texts).all[MOST - 1].0 = past;
        assert_eq!(metrics.text(Arc::default()).await, Err(NoText::NoRoom), "it is too old");
        all.remove(0);
        let new = metrics.text(Arc::default()).await.expect("a text");
        assert!(all.iter().all(|old| old.as_ptr() != new.as_ptr()), "there is room for another");
    }

    #[tokio::test]
    async fn an_old_text_goes_once_nobody_reads_it() {
        let metrics = Metrics::default();
        drop(metrics.text(Arc::default()).await.expect("a text"));
        metrics.forget_old();
        assert!(lock(&metrics.texts).kept.is_some());
        make_old(&metrics);
        metrics.forget_old();
        let all = &lock(&metrics.texts).all;
        assert!(all.iter().all(|(_, text)| text.strong_count() == 0));
    }

    #[tokio::test]
    async fn a_text_is_made_while_others_are_answered() {
        let metrics = Metrics::default();
        let mut asking = core::pin::pin!(metrics.text(Arc::default()));
        let is_made = core::future::poll_fn(|cx| {
            core::task::Poll::Ready(asking.as_mut().poll(cx).is_ready())
        });
        assert!(!is_made.await, "it is made in the thread that answers");
        assert!(asking.await.is_ok());
    }
}

//! What `/metrics` answers: the view and the process as Prometheus reads them, and who may read it.
//!
//! Invariants
//! - Neither the engine, a drive nor a core is asked. Of the kernel only this process is asked for.
//! - However often it is asked for, the text is made once in [`KEPT`]; all who ask meanwhile share
//!   it.

use crate::api::View;
use hyper::body::Bytes;
use redfish::prometheus::{self, Daemon, Process};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a text is given out.
const KEPT: Duration = Duration::from_millis(500);

/// What there is to answer.
#[derive(Default)]
pub struct Metrics {
    is_open: AtomicBool,
    /// By the first digit of the status, from 1.
    answers: [AtomicU64; 5],
    kept: Mutex<Option<(Instant, Bytes)>>,
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
    pub fn text(&self, view: &View) -> Bytes {
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((made, text)) = &*kept
            && made.elapsed() < KEPT
        {
            return text.clone();
        }
        let answers = self.answers.each_ref().map(|count| count.load(Ordering::Relaxed));
        let daemon = Daemon { process: process(), answers };
        let text = Bytes::from(prometheus::exposition(view, &daemon));
        *kept = Some((Instant::now(), text.clone()));
        text
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

    #[test]
    fn answers_are_counted_by_class_and_the_text_is_kept() {
        let metrics = Metrics::default();
        for status in [200, 204, 404, 503, 0, 999] {
            metrics.answered(status);
        }
        let text = metrics.text(&View::default());
        let text = core::str::from_utf8(&text).expect("text");
        for line in ["{code=\"2xx\"} 2", "{code=\"4xx\"} 1", "{code=\"5xx\"} 1", "{code=\"1xx\"} 0"]
        {
            assert!(text.contains(&format!("palisade_api_requests_total{line}\n")), "{text}");
        }
        assert!(text.contains("\nprocess_resident_memory_bytes "), "{text}");
        metrics.answered(200);
        let again = metrics.text(&View::default());
        assert_eq!(again, text.as_bytes(), "it is not made again at once");
    }
}

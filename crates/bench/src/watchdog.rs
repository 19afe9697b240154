//! What ends a program whose driver does not come back.
//!
//! Purpose: a call of a driver can block for good, and so can what it does at the process's end. A
//! thread of its own says what was under way, and ends the process without anybody's leave.
//! Invariant: it is never taken back: only the process's own end is in time.

use parity_gpu::cuda;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The status of a process that is ended so.
const STATUS: i32 = 1;

/// See the module.
#[derive(Clone)]
pub struct Watchdog {
    under_way: Arc<Mutex<String>>,
}

impl Watchdog {
    /// Gives the process `bound` from now on. `program` says who speaks.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start(program: &'static str, bound: Duration) -> std::io::Result<Watchdog> {
        Watchdog::before(program, bound, |line| {
            eprintln!("{line}");
            cuda::end_process(STATUS)
        })
    }

    /// Has `end` do what is to be done at `bound`.
    fn before(
        program: &'static str,
        bound: Duration,
        end: impl FnOnce(String) + Send + 'static,
    ) -> std::io::Result<Watchdog> {
        let under_way = Arc::new(Mutex::new("nothing yet".to_owned()));
        let seen = under_way.clone();
        let watch = move || {
            std::thread::sleep(bound);
            let what = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let seconds = bound.as_secs();
            end(format!("{program}: not done after {seconds} s, under way: {what}; given up"));
        };
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch)?;
        Ok(Watchdog { under_way })
    }

    /// What is under way from now on.
    pub fn tell(&self, what: &str) {
        what.clone_into(&mut self.under_way.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn what_was_under_way_is_said() {
        let (sender, said) = mpsc::channel();
        let end = move |line| sender.send(line).expect("the test listens");
        let watchdog = Watchdog::before("test", Duration::ZERO, end).unwrap();
        let line = said.recv().unwrap();
        assert_eq!(line, "test: not done after 0 s, under way: nothing yet; given up");
        watchdog.tell("a launch");
        assert_eq!(*watchdog.under_way.lock().unwrap(), "a launch");
    }
}

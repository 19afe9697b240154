//! What can be chosen when a runtime starts.

use core::time::Duration;

/// Choices of a runtime; `Config::default()` is one unpinned core.
#[derive(Clone, Debug)]
pub struct Config {
    /// Data cores: threads to start, at least 1.
    pub cores: u16,
    /// Pins each core's thread to one CPU of those the process may use.
    pub pin: bool,
    /// How long a core with nothing to do looks around before it sleeps, as long as that pays.
    pub spin: Duration,
    /// Submission queue entries of a core's ring.
    pub ring_entries: u32,
    /// Uses epoll and a blocking pool instead of io_uring. The environment variable
    /// `PALISADE_IO=blocking` does the same.
    pub blocking: bool,
    /// Threads of the blocking pool, shared by all cores.
    pub blocking_threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cores: 1,
            pin: false,
            spin: Duration::from_micros(40),
            ring_entries: 256,
            blocking: false,
            blocking_threads: 8,
        }
    }
}

impl Config {
    /// True if io_uring must not be used.
    pub(crate) fn wants_blocking(&self) -> bool {
        self.blocking || std::env::var_os("PALISADE_IO").is_some_and(|v| v == "blocking")
    }
}

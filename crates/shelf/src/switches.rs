//! What is silent, as every connection sees it before each of its bytes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::Nanos;

/// A switch for each port and each drive, and how slow each drive is.
#[derive(Debug)]
pub(crate) struct Switches {
    ports: Box<[AtomicBool]>,
    drives: Box<[AtomicBool]>,
    slow: Box<[AtomicU64]>,
}

impl Switches {
    /// All in order.
    pub fn new(ports: usize, drives: usize) -> Self {
        let off = |count| (0..count).map(|_| AtomicBool::new(false)).collect();
        let slow = (0..drives).map(|_| AtomicU64::new(0)).collect();
        Self { ports: off(ports), drives: off(drives), slow }
    }

    pub fn silence_port(&self, port: usize, is_silent: bool) {
        self.ports[port].store(is_silent, Ordering::SeqCst);
    }

    pub fn silence_drive(&self, drive: usize, is_silent: bool) {
        self.drives[drive].store(is_silent, Ordering::SeqCst);
    }

    pub fn is_port_silent(&self, port: usize) -> bool {
        self.ports[port].load(Ordering::SeqCst)
    }

    /// Whether a connection at a port, to this drive if to any, is silent.
    pub fn is_silent(&self, port: usize, drive: Option<usize>) -> bool {
        let drive = drive.is_some_and(|drive| self.drives[drive].load(Ordering::SeqCst));
        drive || self.is_port_silent(port)
    }

    /// What each request to a drive takes more than it would.
    pub fn slow(&self, drive: usize) -> Nanos {
        Nanos(self.slow[drive].load(Ordering::Relaxed))
    }

    pub fn set_slow(&self, drive: usize, more: Nanos) {
        self.slow[drive].store(more.0, Ordering::Relaxed);
    }
}

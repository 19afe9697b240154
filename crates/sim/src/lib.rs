//! The deterministic runtime: a seeded executor of 1 to 9 virtual cores, a virtual clock, mail,
//! and simulated drives with faults.
//!
//! Purpose: the second of the two runtimes of decision D1. The engine runs on it unchanged; what
//! differs is that every choice (which ready task runs, how long a request or a letter takes,
//! what a power cut leaves behind) is drawn from one `u64` seed, so one seed reproduces a run.
//!
//! - [`world`]: the executor: make a [`World`], take its [`SimEnv`]s, run futures, crash.
//! - [`drive`]: the simulated drive and its fault model.
//! - [`net`]: simulated connections and their faults. [`volume`]: a volume in memory.
//! - [`mod@env`]: one virtual core as the engine sees it.
//! - [`rng`]: the random numbers.
//!
//! Invariants
//! - No threads, no system clock, no operating-system I/O, no `unsafe`.
//! - Two runs with the same seed, configuration and code have the same
//!   [`World::trace_hash`].

pub mod drive;
pub mod env;
mod executor;
pub mod net;
pub mod rng;
mod timeline;
pub mod volume;
pub mod world;

pub use drive::{DiscardContent, DriveConfig, SharedSimDrive, SimDrive};
pub use env::SimEnv;
pub use rng::Rng;
pub use world::{Step, Stopped, World, WorldConfig};

use std::sync::{Mutex, MutexGuard};

/// Locks; a panic elsewhere does not make the simulated state unreadable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

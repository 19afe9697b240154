//! The array engine: volumes, arrays, stripes, rebuild, resync, scrub.
//!
//! It does no I/O and owns no clock (D1): it is `async` code against the traits of crate `io`,
//! run by the real runtime and by the deterministic one alike. The way of a write, each module
//! calling the next:
//!
//! ```text
//! front end → volume → array → stripe → drive
//! ```
//!
//! - [`volume`]: maps a volume's blocks to the array's, checks bounds.
//! - [`array`]: splits at strip and stripe borders, routes to drives and home cores.
//! - [`stripe`]: who waits for a stripe; plans; carries out.
//! - [`region`]: what was ever written, and what a crash leaves to be made right.
//! - [`journal`]: what a degraded stripe is about to be written, so that a crash loses nothing.
//! - [`lost`]: what nobody can give back.
//! - [`watch`]: deadlines of requests to drives.
//! - [`manage`]: the array's configuration: records, failures, replacement, tasks.
//! - [`core`]: one core of the engine; its mail.
//!
//! Invariants: no statics, no thread-locals, no `unsafe`; no circle of files but those that
//! `xtask/src/tidy/circles.rs` lists; every limit stands in [`limits`].

pub mod array;
mod buffers;
pub mod core;
pub mod journal;
pub mod limits;
pub mod lost;
pub mod mail;
pub mod manage;
pub mod mutants;
pub mod region;
pub mod stripe;
pub mod volume;
pub mod watch;

use io::Env;

/// The environment the engine runs in: any whose mail is the engine's.
pub trait Host: Env<Mail = mail::Mail<<Self as Env>::Shared>> {}

impl<T: Env<Mail = mail::Mail<<T as Env>::Shared>>> Host for T {}

pub use crate::core::{Core, Settings};
pub use crate::stripe::compute::Accelerator;
pub use volume::Volume;

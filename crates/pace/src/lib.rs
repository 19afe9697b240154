//! What a request to a drive takes, by the drive's state (decision D19).
//!
//! Purpose: paced drives and the simulator's drives answer as late as a drive of a known model
//! would, so that what drives limit can be measured without them, and asserted in virtual time.
//!
//! - [`cost`]: how long a request keeps a drive busy, by its size.
//! - [`model`]: models of drives; each of their numbers names its source or says that it is
//!   assumed.
//! - [`drive`]: a drive's state, and what a request takes in it; [`port`]: what several drives
//!   share.
//! - [`spec`]: what a model's numbers say of a steady load, without any state: what a paced drive
//!   is measured against.
//! - [`bound`]: the most that an array over such drives can give.
//!
//! Invariants
//! - No clock, no I/O, no chance: the same calls with the same times give the same answers.
//! - A drive is shared by cores without locks. What two cores ask for at once is served in some
//!   order, none of it twice and none at the same time.

pub mod bound;
pub mod cost;
pub mod drive;
pub mod model;
pub mod port;
pub mod spec;
mod work;

pub use drive::{DriveState, Op};
pub use model::{Model, by_name};
pub use port::Port;

#[cfg(test)]
mod tests;

//! The load generator: what hosts ask of drives and volumes, and what came of it.
//!
//! Purpose: one generator for both runtimes. In real time it measures, in virtual time its figures
//! can be asserted. Bare drives and volumes are loaded by the same code.
//!
//! - [`target`]: where requests go. [`shape`]: what they are. [`standard`]: the workloads of every
//!   state. [`generate`]: making requests.
//! - [`stamp`]: what is written, so that it is seen where reads find something else.
//! - [`latency`]: a histogram that knows any time to less than a hundredth. [`tally`]: what came of
//!   a load.
//! - [`steady`]: whether figures are those of a steady state, and how much they vary.
//! - [`random`]: random numbers.
//!
//! Invariant: no clock of its own, no I/O: whoever runs it says what time it is.

pub mod generate;
pub mod latency;
pub mod random;
pub mod shape;
pub mod stamp;
pub mod standard;
pub mod steady;
pub mod tally;
pub mod target;

pub use generate::{Extent, Share, fill, generate};
pub use latency::Latencies;
pub use random::Random;
pub use shape::{Order, Shape};
pub use stamp::Payloads;
pub use standard::{Workload, workloads};
pub use steady::{Steadiness, cov, mean};
pub use tally::{Side, Tally};
pub use target::{Many, Raw, Served, Target};

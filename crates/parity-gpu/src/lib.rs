//! The parity crate's jobs on a GPU, whose driver is loaded at run time.
//!
//! Purpose: generate, update, recover, verify and checksum in batches on a device, where that
//! pays, and give every job back to the CPU when that device is missing, wrong, late or gone.
//! Nothing here is needed to build, test or run the rest.
//! Invariants: a device's answers are believed only after its kernels passed known answers;
//! memory that a device may still reach for is never used again; no core waits for a device.
//!
//! The kernels are one source in three forms, `kernels/parity.c`: PTX for NVIDIA's driver, checked
//! in as `kernels/parity.ptx`; OpenCL C; and C, which the fake device runs.
//!
//! From the bottom: [`Kind`] names the kernels; a plan says which of them does an operation, with
//! what; a packer lays a batch out in memory; [`Driver`] and [`Device`] are what a maker's driver
//! has to offer; a queue makes batches and believes what comes back, or not; [`Service`] is a queue
//! for many cores, and [`Placement`] says which jobs they give it.

pub mod cuda;
mod driver;
mod factor;
#[cfg(feature = "fake")]
pub mod fake;
mod fence;
#[cfg(feature = "fake")]
mod host;
mod kind;
mod lane;
#[cfg(feature = "fake")]
mod memory;
mod pack;
mod place;
mod plan;
pub mod power;
mod queue;
mod ranges;
mod selftest;
mod service;
#[cfg(test)]
mod tests;
mod track;

pub use driver::{Asked, Device, DeviceMemory, Driver, DriverError, HostMemory, Problem, Stream};
pub use fence::{Fence, Limits};
pub use kind::Kind;
pub use pack::Packed;
pub use place::{NotPlacement, Placement};
pub use service::{Event, Figures, Handle, Load, Service, Tell, is_stuck, leave_if_stuck};
pub use track::{Lent, Pieces, Place, Room, Track};

//! The parity crate's jobs on a GPU, whose driver is loaded at run time.
//!
//! Purpose: generate, update, recover, verify and checksum in batches on a device, and give every
//! job back to the CPU when that device is missing, wrong or gone. Nothing here is needed to
//! build, test or run the rest.
//! Invariants: a device's answers are believed only after its kernels passed known answers; a
//! job's own memory is written only once its result is whole; no call waits for a device.
//!
//! The kernels are one source in three forms, `kernels/parity.c`: PTX for NVIDIA's driver, checked
//! in as `kernels/parity.ptx`; OpenCL C; and C, which the fake device runs.
//!
//! From the bottom: [`Kind`] names the kernels; [`Plan`] says which of them does an operation of a
//! code, with what; [`Packer`] lays a batch out in memory; [`Driver`] and [`Device`] are what a
//! maker's driver has to offer; [`open`] tests a device and makes the [`Queue`] that takes
//! [`Job`]s.

pub mod cuda;
mod driver;
mod factor;
#[cfg(feature = "fake")]
pub mod fake;
#[cfg(feature = "fake")]
mod host;
mod job;
mod kind;
mod lane;
#[cfg(feature = "fake")]
mod memory;
mod pack;
mod plan;
pub mod power;
mod queue;
mod selftest;
#[cfg(test)]
mod tests;
mod track;

pub use driver::{Asked, Device, DeviceMemory, Driver, DriverError, HostMemory, Problem, Stream};
pub use job::Job;
pub use kind::Kind;
pub use pack::{ALIGN, MAX_JOBS, Packed, Packer, Placed};
pub use plan::{Answer, Plan};
pub use queue::{Back, Fence, Finished, Limits, Outcome, Queue};
pub use selftest::open;
pub use track::{Room, Track};

//! What the engine and the front ends need of whoever runs them.
//!
//! Purpose: the engine does no I/O and owns no clock (decision D1). It is `async` code against
//! the small traits of this crate. Two runtimes implement them: the real one (`runtime`,
//! `drives`) and the deterministic one (`sim`). Neither is a mode of the other.
//!
//! - [`buffer`]: aligned buffers from a pool; unique while written, shared once frozen.
//! - [`drive`]: a drive takes reads, writes, flushes and discards, and returns tickets.
//! - [`env`]: cores, clock, tasks and mailboxes.
//! - [`histogram`]: how long requests took.
//! - [`blocks`]: what front ends serve.
//! - [`stream`]: a connection to a host.
//! - [`local`]: waiting between tasks of one core.
//!
//! Invariant: no statics, no thread-locals, no operating-system I/O; `unsafe` only in [`buffer`].

pub mod blocks;
pub mod buffer;
pub mod drive;
pub mod env;
pub mod histogram;
pub mod local;
pub mod stream;

pub use blocks::{BlockError, Blocks};
pub use buffer::{Buf, BufMut, Memory, Pool, Reach};
pub use drive::{Controller, Drive, DriveError, DriveInfo, Ending, Gather, Guard, Reached};
pub use env::{Env, Priority};
pub use stream::{Closed, Transport};

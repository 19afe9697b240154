//! The real runtime: one single-threaded executor per core, io_uring, timers, mailboxes, sockets.
//!
//! Purpose: implements [`io::Env`] on Linux. Every core is one OS thread with its own executor
//! and its own [`Reactor`]; cores share nothing but mailboxes and doorbells.
//!
//! - [`Runtime`], [`Handle`], [`run_single`]: starting, stopping, talking to cores from outside.
//! - [`CoreEnv`]: one core as its tasks see it.
//! - [`Reactor`]: I/O on files, readiness of sockets, timers; io_uring, or epoll with a small
//!   blocking pool where io_uring is switched off (`PALISADE_IO=blocking`, or set-up fails).
//! - [`Socket`], [`Listener`]: TCP and Unix streams. [`Stream`]: a socket as an [`io::Transport`].
//! - [`RequestDevice`]: where the kernel hands out requests, as FUSE's does. [`BlockQueue`]: the
//!   same of block devices, by ublk.
//! - [`Bell`]: what another process rings, as that of a virtual machine does.
//! - [`Errand`]: what a thread that is no core asks of the kernel, with a limit of time.
//! - [`CoreCounts`]: how a core spends its time.
//! - [`say`]: what the daemon reports, whether or not anybody takes it.
//!
//! A core's turn: all ready `First` tasks until none is ready, the ready `Last` tasks once each,
//! then submissions, completions, mail and timers; if nothing is ready it looks around for a
//! bounded time ([`Config::spin`]), as long as that pays (`lookout`), and then sleeps in the
//! kernel.
//!
//! Invariants
//! - The reactor owns buffers and file handles from submission to completion; dropping a ticket
//!   cancels nothing.
//! - After warm-up a file I/O, a wake, a timer and a piece of mail allocate nothing.
//! - `unsafe` only in `sys`, `errand`, `reactor::slab`, `reactor::uring` and `reactor::pool` (D12).

mod bell;
mod blocks;
mod busy;
mod config;
mod cores;
mod doorbell;
mod env;
mod errand;
mod lookout;
mod reactor;
mod requests;
mod say;
mod socket;
mod stream;
mod sys;
mod task;
mod timer;

pub use bell::Bell;
pub use blocks::{BlockQueue, QueueView};
pub use busy::CoreCounts;
pub use config::Config;
pub use cores::{Call, Handle, Runtime, run_single, run_single_with};
pub use env::{Bind, CoreEnv, NoDrive};
pub use errand::Errand;
pub use reactor::{
    Descriptor, DoneTicket, Errno, Reactor, ReadTicket, Sleep, ZeroMode, try_io_uring,
};
pub use requests::{Over, RequestDevice, RequestLine, another};
pub use say::say;
pub use socket::{Line, Listener, Socket};
pub use stream::Stream;
pub use sys::{is_clock_kept, peer_groups};

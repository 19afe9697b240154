//! Virtual machines that have a volume over vhost-user: what they say on their socket (QEMU's
//! docs/interop/vhost-user.rst, by the crate `vhost`), and the memory that they share.
//!
//! A machine connects, and agrees with this process on features, memory and rings. Rings are served
//! by [`Cores`], whoever that is; none is read or written here.
//!
//! | a ring    | meaning                               | left by                                |
//! |-----------|---------------------------------------|----------------------------------------|
//! | *unknown* | something of it was not said          | all is said, and it is enabled         |
//! | *served*  | cores have it                         | it is asked where it stands, disabled, |
//! |           |                                       | or something of it changes             |
//! | *still*   | all that was taken of it is answered  | a new bell, enabled, what has changed  |
//!
//! Invariants
//! - A ring is stopped before anything that it stands on changes, and before the connection ends.
//! - Memory is mapped as long as any ring is served in it.
//! - A machine says nothing that is believed without a look: what can't be ends the connection, and
//!   so that machine's device, and nothing else.

mod map;
mod session;

pub use session::{Caller, Line, talk};
pub use vhost_user::wire::Config;

use std::os::fd::OwnedFd;
use vhost_user::Memory;
use vhost_user::ring::Place;

/// A ring that is to be served.
pub struct Ring {
    /// The machine's memory.
    pub memory: Memory,
    /// Where the ring is in it.
    pub place: Place,
    /// The memory of what it has under way, if the machine keeps that: its number there, and how
    /// many requests each may have.
    pub kept: Option<(Memory, (u16, u16))>,
    /// Readable when the machine has rung.
    pub kick: OwnedFd,
    /// The machine's bell.
    pub call: Caller,
}

/// Who serves the rings of a machine.
pub trait Cores: Send + 'static {
    /// Serves a ring from here on.
    ///
    /// # Errors
    /// It can't be: why.
    fn serve(&mut self, number: u16, ring: Ring) -> Result<(), String>;

    /// Serves a ring no more: waits until all that was taken is answered. How many were taken; none
    /// where that can't be told any more.
    fn stop(&mut self, number: u16) -> Option<u16>;

    /// What the device is like now.
    fn config(&self) -> Config;
}

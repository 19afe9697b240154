//! Drives behind NVMe/TCP: the host's side.
//!
//! Documents: see crate `nvme`, whose names for them comments use. One connection is one queue
//! (TCP, section 3.2.2): it begins with an exchange of parameters, then a Connect says which
//! controller's which queue it is, then the host sends commands.
//!
//! This crate has no sockets: a queue talks through [`io::Transport`], and runs on whatever
//! implements [`io::Env`]. Connections are made by a [`Dial`], given to [`begin`()], and what comes
//! of that to [`Queue`].
//!
//! - [`Subsystem`]: what cores share of a subsystem, its paths and namespaces. [`keep`] has
//!   associations by a path, [`carry`] a core's I/O queues of them, [`oversee`] says which paths
//!   lead to which namespaces.
//!   `fences`: until when those that are over may carry out what they had, and others' controllers
//!   that are to be ended.
//! - [`requests`]: what a core asks of the namespaces of a subsystem, whichever connection carries
//!   it. [`RemoteDrive`]: a namespace as a drive.
//! - [`begin`]: how a connection begins. [`Queue`]: commands under way on it, its sender and its
//!   receiver.
//! - [`Admin`]: what a controller is asked of itself and of its namespaces.
//! - [`limits`]: every bound. [`mutants`]: bugs that trials switch on; never part of the product.
//!
//! Invariants
//! - Whatever a controller sends ends at most its own connection. Nothing is allocated by a number
//!   that it sent, and nothing for a request once as many as ever were under way.
//! - A buffer that is read into belongs to whoever receives, and one that is written stays as it is
//!   until the connection that carries it has sent it, or has ended.
//! - What changes a namespace and was not answered is not sent again by this crate, and not called
//!   over, before somebody says that the controller has ended with it.
//! - Nothing is changed on a namespace by a connection that was made behind a guard
//!   ([`io::Reached`]), before it was read by it what that asks for; and by none, once something
//!   else was read.

mod admin;
mod begin;
mod carrier;
mod changed;
mod dial;
mod drive;
mod fences;
mod keeper;
pub mod limits;
pub mod mutants;
mod path;
mod queue;
pub mod requests;
mod settings;
mod subsystem;
mod wire;

pub use admin::{Admin, AdminError, Info, PLACES_MOST};
pub use begin::{Begin, Begun, NotBegun, begin};
pub use carrier::carry;
pub use dial::{Dial, NoLine};
pub use drive::{Can, DoneTicket, ReadTicket, RemoteDrive};
pub use keeper::{Problem, discover, keep, oversee};
pub use path::{PathState, PathStatus};
pub use queue::{End, Queue, Shape};
pub use requests::Requests;
pub use settings::Settings;
pub use subsystem::{HostIdentity, NamespaceInfo, Path, Subsystem};

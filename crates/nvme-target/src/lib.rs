//! The NVMe/TCP front end, target side: discovery, subsystems, controllers, queues.
//!
//! Documents: see crate `nvme`, whose names for them comments use. One connection is one queue
//! (TCP, section 3.2.2): it begins with an exchange of parameters, then a Connect says which
//! controller's which queue it is, then come commands.
//!
//! This crate has no sockets: a queue talks through [`Transport`], finds volumes through
//! [`Volumes`], and runs on whatever implements `io::Env`. Whoever listens accepts connections,
//! picks a core for each, and calls [`Server::serve`] there.
//!
//! - [`access`]: who may have what. [`Target`]: what all cores share. `controller`: what the
//!   queues of one controller share, on different cores. `visits`: who came.
//! - [`Server`]: one core's connections, the workers that carry commands out, the clock.
//! - `session`: one connection: how it begins, its receiver, commands in progress, its sender.
//! - `admin`: what controllers say of themselves: identify, features, log pages. `volume`: the
//!   commands of namespaces.
//! - [`limits`]: every bound. [`mutants`]: bugs that tests switch on; never part of the product.
//!
//! Invariants
//! - Whatever a host sends ends at most its own connection, and only after all it began has ended.
//! - Nothing is allocated by a number that a host sent. Before its Connect a connection holds its
//!   piece in reserve and what was read ahead: less than 64 KiB.
//! - A host that connects again finds nothing of what it began before still under way.

pub mod access;
mod admin;
mod controller;
pub mod limits;
pub mod mutants;
mod server;
mod session;
mod target;
mod visits;
mod volume;

pub use access::{Absent, Export, Group, Hosts, Port, PortId, Refused};
pub use admin::identify::serial;
pub use controller::Way;
pub use io::{Closed, Transport};
pub use server::Server;
pub use session::EndReason;
pub use target::{Connected, Product, Target};
pub use visits::{Done, Present, Visited, Visitor, Visits};

use io::Blocks;

/// What is told of the array behind a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// It can lose fewer drives than it should.
    pub is_degraded: bool,
    /// Ranges that can't be given back.
    pub media_errors: u64,
}

/// How a core comes to volumes.
pub trait Volumes: 'static {
    /// Names a volume, on every core.
    type Key: Clone + PartialEq + core::fmt::Debug + Send + Sync + 'static;
    /// A volume as this core sees it.
    type Volume: Blocks;
    /// Volumes compare and write as one: hosts are told that they may ask for it.
    const COMPARES_AND_WRITES: bool = true;
    /// A volume that has no volatile cache never gets one: hosts may be told that they need not
    /// flush it.
    const CACHES_STAY: bool = false;

    /// The volume, if it is there, for hosts that came through this port.
    fn open(&self, key: &Self::Key, port: PortId) -> Option<Self::Volume>;

    /// How the array behind it is.
    fn health(&self, key: &Self::Key) -> Health;
}

//! Inventory, desired state and jobs; the management interface over a Unix socket.
//!
//! - [`api`]: what daemon and clients tell each other. [`config`]: what the daemon is told.
//! - `http`, `room`, `stall` and `mute`: HTTP with a client, within limits. `answer`, `act` and
//!   `reply`: what is asked there, done and answered; `slow` and `tasks`: what takes long.
//! - `plan` and `planning`: what a change would do. `confirm`: the tokens of plans. `holds`: who
//!   changes an array.
//! - `https` and `certificate`: the same on TCP, by TLS.
//! - [`server`]: the daemon. `starting`: what it does first. `manager`, `creating` and `served`:
//!   what it does for its clients. `next`: what a person is told to do.
//! - `state`: what is kept beside the drives. [`audit`]: who did what. `reload`: what a running
//!   daemon takes from its configuration. `notify`: what the service manager is told.
//! - `events`: what came to be, for streams (`watching`), webhooks and the log. `alerts`: what is
//!   wrong, and mail of that.
//! - `snapshot`: what answers are made of; `renewal` keeps it. `jobs`: background work, to its end
//!   and a day after. `changes`: what clients may change.
//! - `caller`, `peer` and `local`: who asks. `accounts`: who may log in. `login`: who does.
//! - [`names`]: what people mean by a name. `claims`: which drives a request may take.
//!   `inventory`, `look` and [`probe`]: drives, and what is on them. `nameplate`: what identifies
//!   them. `pattern`: which paths are meant. [`around`]: what is around them.
//! - `ownership`: who this server is to others that reach the same drives. `owning`: arrays that
//!   others have, or have taken.
//! - `seats`: drives in the slots of arrays. `plugging` and `plugs`: drives that are pulled out and
//!   plugged in. `returning` and `returns`: drives behind a fabric that are reached again.
//!   `attending` and `wellness`: how they are as devices; [`asking`]: what NVMe drives tell of
//!   themselves.
//! - `shelves`: what shelves tell of themselves. `pinned`: a client of their services.
//! - `counters`: what the cores count, and its sums.
//! - `exports`, `address` and `lookup`: what is served where. `gpu`: parity on one. `memory`: the
//!   daemon's own, where it is short.
//! - `history`: the past, for charts. `metrics`: what Prometheus reads. `telemetry`: reports of
//!   metrics for streams.
//! - `services`: volumes that are devices and files of this machine, by `palisade services`.
//! - `data`: the data path, reached from here one way only. `connection` (NBD), `nvme`, `files`:
//!   the connections of a core. `cores`: what that is.
//!
//! Invariants: this crate decides nothing about redundancy or records, which is the engine's;
//! it runs on one thread of its own and never on a data core, but for these. Nothing that comes
//! from outside makes it panic, which would end hosts' I/O: a module with an exception says why.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing
    )
)]

mod accounts;
mod act;
mod address;
mod alerts;
mod answer;
pub mod around;
pub mod asking;
mod attending;
pub mod audit;
mod body;
mod caller;
pub mod certificate;
pub mod chance;
mod changes;
mod chap;
mod claims;
pub mod config;
mod confirm;
mod connection;
mod console;
mod convert;
mod cores;
mod counters;
mod creating;
mod data;
mod devices;
mod digest;
mod events;
mod exports;
pub mod fabrics;
pub mod failure;
mod fc;
mod files;
mod gpu;
mod hardware;
mod here;
mod history;
mod holds;
mod http;
mod https;
mod inventory;
mod iscsi;
mod jobs;
mod local;
mod lock;
mod login;
mod look;
mod lookup;
mod machines;
mod manager;
mod memory;
mod metrics;
mod mute;
mod nameplate;
pub mod names;
mod next;
mod notify;
mod nvme;
mod ownership;
mod owning;
mod paths;
mod pattern;
mod peer;
mod pinned;
mod plan;
mod planning;
mod plugging;
mod plugs;
mod pools;
pub mod probe;
mod reach;
mod reload;
mod renewal;
mod reply;
mod returning;
mod returns;
mod rings;
mod room;
mod seats;
mod served;
pub mod server;
mod services;
mod shares;
mod sharing;
mod shelves;
mod slow;
mod snapshot;
mod stall;
mod starting;
pub mod state;
#[cfg(any(test, feature = "fuzz"))]
pub mod stranger;
mod tasks;
mod telemetry;
mod usage;
mod watching;
mod wellness;

pub use devices::{Kernel as DeviceKernel, Known as KnownDevice, Queue as DeviceQueue};
pub use files::Kernel;
pub use https::certificate_in;
pub use served::check_export;
pub use shares::check_create as check_share;

#[cfg(test)]
mod blocked_tests;
#[cfg(test)]
mod said_tests;

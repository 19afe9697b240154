//! The management interface: Redfish and Swordfish resources, routes and mapping, without I/O.
//!
//! - [`view`]: what the daemon knows, in the words of the product: what resources are made of, and
//!   what the command line prints.
//! - [`access`]: accounts, sessions and roles. [`counters`]: what was counted.
//! - [`alerts`]: what is wrong, since when, and who was told. [`told`]: what changes are answered.
//! - [`routes`]: which URIs there are. [`error`]: why something was not done. [`messages`]: all
//!   that can be said then.
//! - [`service`]: the resources, made of the view. [`oem`]: what Redfish lacks. [`read`]: the view,
//!   made of resources.
//! - [`etag`]: how resources are told apart from what they were.
//! - [`events`]: what came to be, and who wants to know.
//! - [`query`]: what of a resource a request wants. [`change`]: what a request wants changed.
//! - [`history`]: the past. [`prometheus`] and [`telemetry`]: metrics, as Prometheus reads them and
//!   as Redfish has them.
//! - [`schema`], [`openapi`]: what describes the resources, and requests. [`privileges`]: who may
//!   make which.

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

pub mod access;
pub mod alerts;
pub mod change;
pub mod counters;
pub mod dates;
pub mod error;
pub mod etag;
pub mod events;
mod hardware;
pub mod history;
mod https;
mod inspected;
mod log;
pub mod messages;
pub mod oem;
pub mod openapi;
pub mod privileges;
pub mod prometheus;
pub mod query;
pub mod read;
mod requests;
pub mod routes;
pub mod schema;
pub mod service;
mod shelf;
pub mod telemetry;
pub mod told;
pub mod view;

#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod sample;

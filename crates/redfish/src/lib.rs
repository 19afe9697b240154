//! The management interface: Redfish and Swordfish resources, routes and mapping, without I/O.
//!
//! - [`view`]: what the daemon knows, in the words of the product: what resources are made of, and
//!   what the command line prints.
//! - [`routes`]: which URIs there are. [`error`]: why something was not done.

pub mod change;
pub mod error;
mod inspected;
pub mod routes;
pub mod view;

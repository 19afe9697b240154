//! The management interface: Redfish and Swordfish resources, routes and mapping, without I/O.
//!
//! - [`view`]: what the daemon knows, in the words of the product: what resources are made of, and
//!   what the command line prints.
//! - [`told`]: what changes are answered.
//! - [`routes`]: which URIs there are. [`error`]: why something was not done.

pub mod error;
mod inspected;
pub mod routes;
pub mod told;
pub mod view;

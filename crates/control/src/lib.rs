//! Inventory, desired state and jobs; the management interface over a Unix socket.
//!
//! - [`api`]: what daemon and clients tell each other.

pub mod api;

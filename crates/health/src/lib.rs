//! How well drives are, and which of those that went are to be failed. Rules only: no I/O, no
//! clock. Times are given by the caller.
//!
//! - [`departures`]: drives that went. It gathers them and says which are to be failed.
//! - [`rules`]: what is wrong with a drive, by what was read of it.
//! - [`wear`]: when a drive will be worn out, by its past.
//! - [`settings`]: the keys of `[health]` in the configuration.
//!
//! Invariant: nothing here panics, whatever a drive, a clock or a stored state says.

pub mod departures;
pub mod rules;
pub mod settings;
pub mod wear;

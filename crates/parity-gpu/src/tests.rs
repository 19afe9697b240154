//! Every kernel, in its C form, against the parity crate.

pub(crate) mod bench;
mod erasures;
mod launches;
mod operations;
mod queues;
mod services;

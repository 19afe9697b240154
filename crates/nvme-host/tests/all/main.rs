//! The host's side from outside: against our own target, and against controllers that break the
//! protocol. One program, so that it is linked once.

mod support;
mod teardown;

mod corpus;
mod failover;
mod hostile;
mod io;
mod lost;
mod paths;
mod shared;

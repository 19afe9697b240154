//! The engine from outside, in the simulator: one program, so that it is linked once.

#[path = "../common/mod.rs"]
mod common;

mod accepted;
mod assembly;
mod back;
mod barrier;
mod compare;
mod crash;
mod creation;
mod discard;
mod drain;
mod failure;
mod feed;
mod flushes;
mod forged;
mod gap;
mod glitch;
mod golden;
mod held;
mod hung;
mod hung_real;
mod inflight;
mod journal;
mod limits;
mod lost;
mod lost_full;
mod matrix;
mod owner;
mod rebuild;
mod records;
mod region;
mod resync;
mod runs;
mod scrub;
mod set_back;
mod stale;
mod tasks;
mod unreadable;
mod volumes;

//! Trials of the engine in the simulator.
//!
//! Purpose: the engine that the daemon links runs on simulated drives, under faults and cuts of
//! power at any request, and what comes of it is held against oracles. One seed decides a trial
//! whole, so a seed and a commit reproduce any failure.
//!
//! - [`scenario`], [`trouble`]: what a seed means: geometry, drives, steps.
//! - [`trial`]: one seed, from the creation of the array to the last crash point.
//! - [`session`]: hosts, people and faults between a start and an end of the array.
//! - [`camera`]: pictures of the drives as a crash at this moment would leave them.
//! - [`point`]: one crash point: recovery and every oracle.
//! - [`before`], [`raw`], [`lists`]: the oracles of what is there before a start, and of lists.
//! - [`versions`]: what each block may hold.
//! - [`decoder`]: a second reader of arrays, written from docs/format.md alone.
//! - [`presence`], [`silent`]: drives that come back wrong; bytes that are wrong without an error.
//! - [`gap`], [`forgotten`]: batches of the journal, and pages of the map, that no drive gives any
//!   more.
//! - [`campaign`], [`course`], [`shrink`], [`regressions`]: many seeds and what they came to, small
//!   failures, old failures.
//! - [`mutation`]: known bugs that must be caught.
//! - [`exhaustive`], [`named`]: all there is of small arrays, and more of some by name.
//! - [`small`], [`operation`]: one small array, what is done to it, and every cut of that.
//! - [`losses`]: which drives can go at the same time.
//! - [`aid`]: a simulated accelerator of parity.
//! - [`abilities`]: what the engine can't do yet.
//! - [`virtual_time`]: no trial, but figures: the engine over drives of a model.
//! - [`rig`], [`fleet`], [`tally`], [`failure`]: machine, drives, sums, findings.

pub mod abilities;
pub mod aid;
pub mod before;
pub mod camera;
pub mod campaign;
pub mod course;
pub mod decoder;
pub mod exhaustive;
pub mod failure;
pub mod fleet;
pub mod forgotten;
pub mod gap;
pub mod halt;
pub mod lists;
pub mod losses;
pub mod machine;
pub mod met;
pub mod mutation;
pub mod named;
pub mod operation;
pub mod owed;
pub mod owner;
pub mod paths;
pub mod point;
pub mod presence;
pub mod raw;
pub mod regressions;
pub mod rig;
pub mod scenario;
pub mod session;
pub mod shelf;
pub mod shrink;
pub mod silent;
pub mod small;
pub mod tally;
pub mod trial;
pub mod trouble;
pub mod versions;
pub mod virtual_time;

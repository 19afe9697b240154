//! The target from outside, as hosts see it: one program, so that it is linked once. The
//! histories at random are another, which is run with optimization as well.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod admin;
mod corpus;
mod fused;
mod hostile;
mod hostile_fields;
mod io;
mod lifecycle;
mod reset;
mod strangers;

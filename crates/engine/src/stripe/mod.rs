//! A stripe on its home core: who waits for it, who works on it, and what it does next.
//!
//! States of a stripe that somebody wants, all in [`table::StripeTable`]:
//!
//! | state  | meaning                        | leaves by                                    |
//! |--------|--------------------------------|----------------------------------------------|
//! | (none) | nobody wants it                | first job → ready, or held                   |
//! | held   | a sequential stream has begun  | the rest is there, or it does not pay to     |
//! |        | to fill it                     | wait → ready; see [`stream`]                 |
//! | ready  | jobs wait, no worker has it    | a worker takes *all* waiting jobs → busy     |
//! | busy   | one worker carries out its jobs| done: no job waits → none; else → ready      |
//!
//! Invariants
//! - A stripe is busy with at most one worker: whatever changes a stripe, or must see it whole,
//!   is a job of its home core. There is no other lock.
//! - Jobs that arrive while a stripe is busy wait and are taken together (absorption).
//! - A job is answered exactly once. Its requester may be on another core.
//!
//! [`worker`] takes a stripe's jobs, [`plan`] decides, [`slice`] cuts a batch of writes into
//! slices, [`execute`] carries out, [`compute`] has parity computed. [`check`] sees to what is read
//! and not there, [`cursor`] and [`run`] say in which parts.

pub mod check;
pub mod compute;
pub(crate) mod cursor;
pub mod execute;
pub(crate) mod give_up;
pub mod plan;
pub(crate) mod run;
pub(crate) mod scratch;
pub mod slice;
pub(crate) mod stream;
pub mod table;
pub mod worker;

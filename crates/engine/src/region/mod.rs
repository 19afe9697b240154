//! The region map in the engine (D5): what was ever written, and what a crash leaves to be made
//! right. Its bytes are [`format::region`]'s; `docs/format.md` says what they mean.
//!
//! The map has one owner, the keeper on the manager's core ([`crate::manage`]), with the state in
//! [`map`]. Every core holds a [`table`] of what it may rely on without asking:
//!
//! | of a band | known by     | meaning                                                        |
//! |-----------|--------------|----------------------------------------------------------------|
//! | unwritten | every core   | reads as zeros, drives are not touched                         |
//! | written   | every core   | zeroed on all drives once, and its page says so durably        |
//!
//! | of a region | known by   | meaning                                                        |
//! |-------------|------------|----------------------------------------------------------------|
//! | granted     | a core     | its page says dirty durably: this core may write               |
//! | held        | the keeper | some core may have a grant                                     |
//! | owed        | the keeper | dirty since before the start: redundancy is not trusted        |
//!
//! A write whose band is unwritten or whose region is not granted waits while its core asks the
//! keeper ([`message::ToKeeper::Prepare`]). Requests that come meanwhile are answered together.
//!
//! | a region is  | becomes | when                                                           |
//! |--------------|---------|----------------------------------------------------------------|
//! | clean        | dirty   | a core asks: page durable on all drives, then the grant        |
//! | dirty, held  | dirty   | every core gave its grant back, none of its writes is under way|
//! | dirty        | clean   | nobody holds it, it is not owed, and drives were flushed since |
//! | owed         | dirty   | it was resynced                                                |
//!
//! Invariants
//! - What a page says is durable on all drives that take part before anything relies on it.
//! - Mail comes in any order: grants carry serial numbers, and one that was given back or
//!   withdrawn is void for ever.
//! - A core counts its operations in a region; bits are withdrawn only after those have ended that
//!   began before, and no operation waits for the keeper while it is counted, nor does the request
//!   that it is a part of.
//! - A region goes from dirty to clean while a drive of its group is out only by a page that says
//!   in which epoch: what a returned drive lacks is what is dirty, or missed since it left.

pub(crate) mod map;
pub mod message;
pub mod table;

/// Whether arrays keep their data safe from crashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Guards {
    /// As they must.
    #[default]
    All,
    /// Writes neither ask the region map nor stand in in-flight pages
    /// ([`crate::core::Core::start_unguarded`]).
    Skipped,
}

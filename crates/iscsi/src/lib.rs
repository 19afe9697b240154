//! iSCSI (RFC 7143), as far as a program needs it that has others serve volumes by it.
//!
//! - [`Name`]: what initiators and targets are called.
//! - [`Identity`]: what hosts know a volume by, whoever serves it.
//! - [`Secret`], [`Account`]: who an initiator is, by CHAP.
//! - [`ask`]: an initiator that logs in to a target, reads its first block and logs out. A target
//!   that lets nobody in, or whose volume is gone, looks like one that serves in every other way.
//! - [`open`]: an initiator that logs in, and goes on by itself: it says what it likes by [`pdu`].
//!
//! The pairs of a login are read and written by `keys` alone.
//!
//! Invariants
//! - What a target sends is bounded before it is held, and an answer is waited for until one moment
//!   that is set at the begin: no target holds up who asks it.
//! - A secret is never printed.

mod account;
mod ask;
mod identity;
mod keys;
mod name;
pub mod pdu;

pub use account::{Account, Secret, WrongSecret, WrongUser};
pub use ask::{Asked, Opened, Refusal, Told, ask, open};
pub use identity::{Identity, PRODUCT, VENDOR};
pub use name::{Name, NameError};

/// The port of targets (RFC 7143, section 4.2.8).
pub const PORT: u16 = 3260;

/// The number of a target's unit (LUN). Some servers have something of their own at 0.
pub const UNIT: u8 = 1;

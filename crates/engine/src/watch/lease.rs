//! How long a server may change the drives of a shared array ([`crate::manage`]).
//!
//! The manager prolongs the lease of an array each time that enough of its drives have confirmed
//! that they are this server's. Every core asks it before it sends a change to a drive.
//!
//! | a lease  | becomes | when                                                            |
//! |----------|---------|-----------------------------------------------------------------|
//! | holds    | expired | its time is over                                                |
//! | expired  | holds   | it is prolonged; changes that waited for that are sent          |
//! | any      | revoked | another server has the array: what waits fails, and all changes |
//!
//! Invariant: a lease that is revoked holds never again.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::Nanos;

/// How long the manager may change drives, for all cores.
#[derive(Debug)]
pub struct Lease {
    /// It holds before that.
    until: AtomicU64,
    is_revoked: AtomicBool,
    /// When enough drives had confirmed it last, milliseconds since 1970; for people.
    confirmed_at: AtomicU64,
    /// How often who waits looks again.
    look: Nanos,
}

impl Lease {
    /// One that has expired, and is looked at so often by who waits for it.
    pub fn new(look: Nanos) -> Self {
        let (until, is_revoked, confirmed_at) = Default::default();
        Self { until, is_revoked, confirmed_at, look }
    }

    /// Whether drives may be changed.
    #[inline]
    pub fn holds(&self, now: Nanos) -> bool {
        now.0 < self.until.load(Ordering::Acquire)
    }

    /// It holds before that.
    pub(crate) fn prolong(&self, until: Nanos, wall_millis: u64) {
        self.confirmed_at.store(wall_millis, Ordering::Relaxed);
        self.until.store(until.0, Ordering::Release);
        if self.is_revoked() {
            self.until.store(0, Ordering::Release);
        }
    }

    /// It holds never again.
    pub(crate) fn revoke(&self) {
        self.is_revoked.store(true, Ordering::SeqCst);
        self.until.store(0, Ordering::SeqCst);
    }

    /// Whether it holds never again.
    pub fn is_revoked(&self) -> bool {
        self.is_revoked.load(Ordering::SeqCst)
    }

    /// When enough drives had confirmed it last, milliseconds since 1970.
    pub fn confirmed_at(&self) -> u64 {
        self.confirmed_at.load(Ordering::Relaxed)
    }

    /// How often who waits looks again.
    pub(crate) const fn look(&self) -> Nanos {
        self.look
    }
}

//! What is served one request after the other: until when it is busy.

use std::sync::atomic::{AtomicU64, Ordering};
use units::Nanos;

/// Parts of a nanosecond, so that a request's time is not rounded: a port serves one in 392.16 ns.
const PARTS: u64 = 1000;

/// Until when something is busy, in picoseconds, which last for 213 days.
#[derive(Default, Debug)]
pub(crate) struct Busy(AtomicU64);

impl Busy {
    /// Serves a request that comes `now` and takes `picos`; when it is served.
    pub(crate) fn serve(&self, now: Nanos, picos: u64) -> Nanos {
        let now = now.0.saturating_mul(PARTS);
        let end = |until: u64| until.max(now).saturating_add(picos);
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| Some(end(at)));
        // It always gives a new value, so that it is never refused.
        let (Ok(before) | Err(before)) = before;
        Nanos(end(before).div_ceil(PARTS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_and_at_once_when_idle() {
        let busy = Busy::default();
        assert_eq!(busy.serve(Nanos(100), 10_500), Nanos(111));
        // 110.5 ns are past then.
        assert_eq!(busy.serve(Nanos(100), 10_500), Nanos(121));
        assert_eq!(busy.serve(Nanos(500), 1_000), Nanos(501));
        assert_eq!(busy.serve(Nanos(400), 1_000), Nanos(502));
    }
}

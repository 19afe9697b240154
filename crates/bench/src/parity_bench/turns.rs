//! One turn of one side: passes until its time is over.
//!
//! Time is the thread's CPU time: what other programs take of the processor meanwhile does not
//! count. (What they take of caches and of memory's bandwidth does.)

use crate::stats::Sample;
use std::time::Duration;

/// The clock is looked at after at least this much work, so that looking costs less than 1%.
const BATCH: Duration = Duration::from_micros(40);

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Does `pass` once without counting, so that what it needs is where it will be, then for
/// `span`, at least once.
pub fn turn(span: Duration, mut pass: impl FnMut()) -> Sample {
    pass();
    let start = cpu_time();
    let (mut passes, mut batch, mut before) = (0, 1, Duration::ZERO);
    loop {
        for _ in 0..batch {
            pass();
        }
        passes += batch;
        let elapsed = cpu_time().saturating_sub(start);
        if elapsed >= span {
            return Sample { operations: passes, elapsed, cpu: elapsed };
        }
        if elapsed - before < BATCH {
            batch *= 2;
        }
        before = elapsed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counted_pass_was_done() {
        let mut done = 0;
        let sample = turn(Duration::from_millis(2), || done += 1);
        assert_eq!(sample.operations + 1, done);
        assert!(sample.elapsed >= Duration::from_millis(2));
        let mut done = 0;
        let once = turn(Duration::from_nanos(1), || done += 1);
        assert_eq!((once.operations + 1, done >= 2), (done, true));
    }
}

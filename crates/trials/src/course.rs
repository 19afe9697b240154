//! What this process has come to so far, and how it ends where something panics.
//!
//! | state   | what happens                                                                      |
//! |---------|-----------------------------------------------------------------------------------|
//! | going   | threads run seeds, and add what each came to                                      |
//! | over    | something was found, or it is far enough: no new seed begins                      |
//! | ending  | something panicked: that thread waits until none runs a seed any more, says what   |
//! |         | was found and what all came to, and ends the process                              |
//!
//! Invariants
//! - A panic counts as something found, by the seed that its thread runs; what is said then is what
//!   is said of any other finding.
//! - Nothing that can panic is done under the lock.

use crate::failure::{Failure, Oracle};
use crate::tally::Tally;
use std::cell::RefCell;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Something that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed and what is cut from it; or what else was run.
    pub called: String,
    /// What.
    pub failure: Failure,
}

impl Found {
    /// The seed, if it was one.
    pub fn seed(&self) -> Option<u64> {
        self.called.split(' ').next()?.parse().ok()
    }
}

/// What a run came to.
#[derive(Clone, Default)]
pub struct Sum {
    /// The sums.
    pub tally: Tally,
    /// What was found: of the smallest seed.
    pub found: Option<Found>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The first seed that was not run.
    pub next: u64,
}

struct Course {
    begun: Instant,
    sum: Sum,
    /// Threads that run something.
    running: usize,
    over: bool,
    ending: bool,
}

static COURSE: LazyLock<(Mutex<Course>, Condvar)> = LazyLock::new(|| {
    let (begun, sum) = (Instant::now(), Sum::default());
    (Mutex::new(Course { begun, sum, running: 0, over: false, ending: false }), Condvar::new())
});

/// How long a process in which something panicked waits for its other seeds, which may hang.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    /// What this thread runs.
    static CALLED: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn course() -> MutexGuard<'static, Course> {
    COURSE.0.lock().unwrap_or_else(|e| e.into_inner())
}

/// Seconds since the process looked first.
pub fn seconds() -> f64 {
    course().begun.elapsed().as_secs_f64()
}

/// What all came to so far.
pub fn so_far() -> Sum {
    let course = course();
    Sum { seconds: course.begun.elapsed().as_secs_f64(), ..course.sum.clone() }
}

/// No seed before this one is run.
pub fn from(next: u64) {
    course().sum.next = next;
}

/// A seed of a campaign is about to be run; false if none is to be any more.
pub fn takes(seed: u64) -> bool {
    let mut course = course();
    if !course.over {
        course.sum.next = course.sum.next.max(seed + 1);
    }
    !course.over
}

/// Whether no new seed is to be begun.
pub fn over() -> bool {
    course().over
}

/// Adds what something came to. No new seed is begun once there are so many crash points.
pub fn add(tally: &Tally, points: Option<u64>) {
    let mut course = course();
    course.sum.tally.add(tally);
    course.over |= points.is_some_and(|most| course.sum.tally.points >= most);
}

/// Takes down what was found.
pub fn note(found: Found) {
    let mut course = course();
    course.over = true;
    if course.sum.found.as_ref().is_none_or(|other| found.seed() < other.seed()) {
        course.sum.found = Some(found);
    }
}

/// This thread begins to run what is called so.
pub fn begins(called: String) {
    course().running += 1;
    CALLED.set(Some(called));
}

/// It is over; what it was called.
pub fn ends() -> Option<String> {
    let called = CALLED.take();
    course().running -= usize::from(called.is_some());
    COURSE.1.notify_all();
    called
}

/// Has a panic end the process by `end`, which says what was found and what all came to.
pub fn take_panics(end: impl Fn(&Sum) + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.and_then(|t| t.lines().next()).unwrap_or("a panic");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let failure = Failure::new(Oracle::Assertion, format!("{text} ({place})"));
        note(Found { called: ends().unwrap_or_default(), failure });
        let mut course = course();
        while course.ending {
            // Another thread has panicked, and ends all.
            course = COURSE.1.wait(course).unwrap_or_else(|e| e.into_inner());
        }
        course.ending = true;
        let patience = Instant::now() + PATIENCE;
        while course.running > 0 && Instant::now() < patience {
            let waited = COURSE.1.wait_timeout(course, PATIENCE);
            course = waited.unwrap_or_else(|e| e.into_inner()).0;
        }
        drop(course);
        end(&so_far());
        std::process::exit(1);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_names_its_seed() {
        let found = |called: &str| Found {
            called: called.into(),
            failure: Failure::new(Oracle::Assertion, "it failed"),
        };
        assert_eq!(found("17 --one-core --picture 3").seed(), Some(17));
        assert_eq!(found("exhaustive 5").seed(), None);
    }
}

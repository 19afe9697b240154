//! How far the running task is, and how long it will take: by its rate of the last half minute.
//!
//! Invariant: nothing is said of the time left while nothing is known of the rate: in the first
//! second, and while nothing moves.

use crate::limits::RATE_SPAN;
use crate::manage::command::TaskStatus;
use core::cell::{Cell, RefCell};
use std::collections::VecDeque;
use units::Nanos;

const SECOND: Nanos = Nanos::from_millis(1_000);

/// The running task as people see it.
#[derive(Default)]
pub(super) struct Progress {
    shown: Cell<Option<TaskStatus>>,
    /// When how many bytes were done, at least a second apart.
    samples: RefCell<VecDeque<(Nanos, u64)>>,
}

impl Progress {
    /// Shows a task, or none. Another one than before has a rate of its own.
    pub fn show(&self, task: Option<TaskStatus>, now: Nanos) {
        let same = |old: TaskStatus| {
            task.is_some_and(|new| (new.kind, new.total_bytes) == (old.kind, old.total_bytes))
        };
        if !self.shown.get().is_some_and(same) {
            self.samples.borrow_mut().clear();
        }
        self.shown.set(task);
        if let Some(task) = task {
            self.sample(now, task.done_bytes);
        }
    }

    /// Whether the task of this number is not the one that is shown.
    pub fn is_other(&self, number: u64) -> bool {
        self.shown.get().is_none_or(|task| task.number != number)
    }

    /// The task that is shown has done so much.
    pub fn moved(&self, done_bytes: u64, now: Nanos) {
        if let Some(mut task) = self.shown.get() {
            task.done_bytes = task.done_bytes.max(done_bytes);
            self.shown.set(Some(task));
            self.sample(now, task.done_bytes);
        }
    }

    fn sample(&self, now: Nanos, done: u64) {
        let samples = &mut *self.samples.borrow_mut();
        if samples.back().is_some_and(|(at, _)| now.0 < at.0 + SECOND.0) {
            return;
        }
        samples.push_back((now, done));
        while samples.len() > 2 && samples[1].0.0 + RATE_SPAN.0 <= now.0 {
            samples.pop_front();
        }
    }

    /// What is shown at this time.
    pub fn shown(&self, now: Nanos) -> Option<TaskStatus> {
        let mut task = self.shown.get()?;
        task.seconds_left = self.seconds_left(&task, now);
        Some(task)
    }

    fn seconds_left(&self, task: &TaskStatus, now: Nanos) -> Option<u64> {
        let (begin, before) = *self.samples.borrow().front()?;
        let span = now.0.saturating_sub(begin.0);
        let moved = task.done_bytes.saturating_sub(before);
        if span < SECOND.0 || moved == 0 {
            return None;
        }
        let left = u128::from(task.total_bytes.saturating_sub(task.done_bytes));
        let nanos = left * u128::from(span) / u128::from(moved);
        u64::try_from(nanos.div_ceil(u128::from(SECOND.0))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manage::command::TaskKind;

    #[test]
    fn the_time_left_follows_the_rate_of_the_last_half_minute() {
        let progress = Progress::default();
        let at = |seconds: u64| Nanos(seconds * SECOND.0);
        let task = TaskStatus {
            number: 1,
            kind: TaskKind::Scrub,
            done_bytes: 0,
            total_bytes: 10_000,
            stuck: None,
            paused: false,
            seconds_left: None,
        };
        let left = |now| progress.shown(at(now)).unwrap().seconds_left;
        progress.show(Some(task), at(100));
        assert_eq!(left(100), None, "nothing is known yet");
        assert_eq!(left(105), None, "nothing moves");
        for second in 101..=110 {
            progress.moved((second - 100) * 100, at(second));
        }
        assert_eq!(left(110), Some(90));
        // A slower half minute, and what was before is forgotten.
        for second in 111..=150 {
            progress.moved(1000 + (second - 110) * 10, at(second));
        }
        assert_eq!((progress.shown(at(150)).unwrap().done_bytes, left(150)), (1400, Some(860)));
        progress.show(Some(TaskStatus { kind: TaskKind::Rebuild, ..task }), at(150));
        assert_eq!(left(152), None, "another task");
        progress.show(None, at(152));
        assert!(progress.shown(at(152)).is_none());
    }
}

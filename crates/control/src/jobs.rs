//! Jobs: background work of arrays, as people follow it, to its end and for a day after.
//!
//! The engine's tasks have numbers that are unique while it runs, and are gone when they end. A job
//! has an id that is never used again, also by another daemon. Nothing here has a clock or a source
//! of chance: both are given.
//!
//! | a job is    | becomes     | when                                                         |
//! |-------------|-------------|--------------------------------------------------------------|
//! | (unknown)   | open        | a task is listed whose number is new                         |
//! | open        | ended       | the engine says how its task ended: as that                  |
//! | open        | interrupted | its array is gone, or its task is and the engine forgot how  |
//! | any ended   | (unknown)   | [`KEPT`] seconds passed, or [`MOST`] ended after it          |
//!
//! Invariants
//! - A task has one job, and a job one task.
//! - What has ended does not change any more.

use engine::manage::command::{EndedTask, TaskEnd};
use redfish::counters::JobCounters;
use redfish::view::{Job, JobEnd, Task, TaskKind, TaskState};
use std::collections::VecDeque;

/// How many seconds a job is known after its end.
pub const KEPT: u64 = 24 * 60 * 60;

/// How many jobs are known after their end.
pub const MOST: usize = 1000;

/// The tasks of an array at a moment.
pub struct Tasks<'a> {
    /// The array's identity.
    pub array: &'a str,
    /// Tasks that are listed, by number.
    pub listed: Vec<(u64, Task)>,
    /// The numbers of all that have not ended.
    pub unended: &'a [u64],
    /// How the last ones ended.
    pub ended: &'a [EndedTask],
}

/// A job that is open, and its task's number.
struct Open {
    number: u64,
    job: Job,
}

/// All of them.
pub struct Jobs {
    id: Box<dyn FnMut() -> String + Send>,
    open: Vec<Open>,
    /// In the order in which they ended.
    ended: VecDeque<Job>,
    /// All that there were, by kind.
    counters: Vec<JobCounters>,
}

impl Jobs {
    /// None; `id` gives ids, each once.
    pub fn new(id: impl FnMut() -> String + Send + 'static) -> Self {
        let none = |kind| JobCounters {
            kind,
            started: 0,
            completed: 0,
            cancelled: 0,
            interrupted: 0,
            stuck: 0,
        };
        let counters = TaskKind::ALL.map(none).to_vec();
        Self { id: Box::new(id), open: Vec::new(), ended: VecDeque::new(), counters }
    }

    /// The tasks of an array are these now. Every array is to be shown here in the order in which
    /// it changed.
    pub fn see(&mut self, tasks: Tasks<'_>, now: u64) {
        let Tasks { array, listed, unended, ended } = tasks;
        for (number, task) in listed {
            let is_stuck = |task: &Task| task.state == TaskState::Stuck;
            let known = self.open.iter().find(|open| open.number == number);
            let (is_new, was_stuck) =
                (known.is_none(), known.is_some_and(|k| is_stuck(&k.job.task)));
            let comes_to_be_stuck = is_stuck(&task) && !was_stuck;
            self.count(task.kind, |counters| {
                counters.started += u64::from(is_new);
                counters.stuck += u64::from(comes_to_be_stuck);
            });
            match self.open.iter_mut().find(|open| open.number == number) {
                Some(open) => open.job.task = task,
                None => {
                    let (id, array) = ((self.id)(), array.to_owned());
                    let job = Job { id, array, task, began: now, ended: None };
                    self.open.push(Open { number, job });
                }
            }
        }
        let how = |number| ended.iter().find(|task| task.number == number).map(|task| task.end);
        self.end(now, |open| {
            let over = open.job.array == array && !unended.contains(&open.number);
            over.then(|| match how(open.number) {
                Some(TaskEnd::Completed) => JobEnd::Completed,
                Some(TaskEnd::Cancelled) => JobEnd::Cancelled,
                Some(TaskEnd::Interrupted) | None => JobEnd::Interrupted,
            })
        });
    }

    /// An array is gone.
    pub fn gone(&mut self, array: &str, now: u64) {
        self.end(now, |open| (open.job.array == array).then_some(JobEnd::Interrupted));
    }

    fn end(&mut self, now: u64, how: impl Fn(&Open) -> Option<JobEnd>) {
        let open = core::mem::take(&mut self.open);
        for mut known in open {
            let Some(end) = how(&known) else {
                self.open.push(known);
                continue;
            };
            let task = &mut known.job.task;
            task.seconds_left = None;
            if end == JobEnd::Completed {
                (task.done_bytes, task.progress) = (task.total_bytes, 1.0);
            }
            known.job.ended = Some((now, end));
            self.count(known.job.task.kind, |counters| match end {
                JobEnd::Completed => counters.completed += 1,
                JobEnd::Cancelled => counters.cancelled += 1,
                JobEnd::Interrupted => counters.interrupted += 1,
            });
            self.ended.push_back(known.job);
        }
    }

    fn count(&mut self, kind: TaskKind, count: impl FnOnce(&mut JobCounters)) {
        if let Some(counters) = self.counters.iter_mut().find(|counters| counters.kind == kind) {
            count(counters);
        }
    }

    /// How many there were, by kind.
    pub fn counters(&self) -> Vec<JobCounters> {
        self.counters.clone()
    }

    /// The array, the kind and the number of the task of a job that is open.
    pub fn open(&self, id: &str) -> Option<(String, TaskKind, u64)> {
        let open = self.open.iter().find(|open| open.job.id == id)?;
        Some((open.job.array.clone(), open.job.task.kind, open.number))
    }

    /// Forgets what ended long ago.
    pub fn forget(&mut self, now: u64) {
        let is_old = |job: &Job| job.ended.is_some_and(|(at, _)| at.saturating_add(KEPT) < now);
        while self.ended.len() > MOST || self.ended.front().is_some_and(is_old) {
            self.ended.pop_front();
        }
    }

    /// All that are known: those that are open in the order of the tasks with these numbers, others
    /// that are behind them, and then those that ended, the latest first.
    pub fn list(&self, numbers: &[u64]) -> Vec<Job> {
        let place = |open: &&Open| numbers.iter().position(|number| *number == open.number);
        let mut open: Vec<&Open> = self.open.iter().collect();
        open.sort_by_key(|open| place(open).unwrap_or(usize::MAX));
        open.into_iter().map(|open| &open.job).chain(self.ended.iter().rev()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(done_bytes: u64) -> Task {
        Task {
            id: "data:scrub".to_owned(),
            kind: TaskKind::Scrub,
            done_bytes,
            total_bytes: 100,
            progress: done_bytes as f64 / 100.0,
            seconds_left: Some(9),
            state: TaskState::Running,
            problem: None,
            hindrance: None,
        }
    }

    fn jobs() -> Jobs {
        let mut last = 0;
        Jobs::new(move || {
            last += 1;
            format!("id{last}")
        })
    }

    fn see(jobs: &mut Jobs, array: &str, listed: &[(u64, u64)], ended: &[EndedTask], now: u64) {
        let unended: Vec<u64> = listed.iter().map(|(number, _)| *number).collect();
        let listed = listed.iter().map(|(number, done)| (*number, task(*done))).collect();
        jobs.see(Tasks { array, listed, unended: &unended, ended }, now);
    }

    fn ended(number: u64, end: TaskEnd) -> EndedTask {
        EndedTask { number, end }
    }

    #[test]
    fn a_job_follows_its_task_to_its_end() {
        let mut jobs = jobs();
        see(&mut jobs, "a", &[(7, 10)], &[], 1000);
        see(&mut jobs, "a", &[(7, 60)], &[], 1001);
        let known = jobs.list(&[7]);
        assert_eq!((known.len(), &known[0].id[..], known[0].task.done_bytes), (1, "id1", 60));
        assert_eq!((known[0].began, known[0].ended), (1000, None));
        see(&mut jobs, "a", &[], &[ended(7, TaskEnd::Completed)], 1002);
        let known = jobs.list(&[]);
        let JobCounters { started, completed, stuck, .. } = jobs.counters()[2];
        assert_eq!((started, completed, stuck), (1, 1, 0));
        assert_eq!(known[0].ended, Some((1002, JobEnd::Completed)));
        assert_eq!((known[0].task.done_bytes, known[0].task.seconds_left), (100, None));
        see(&mut jobs, "a", &[], &[ended(7, TaskEnd::Completed)], 1003);
        assert_eq!(jobs.list(&[]), known, "what has ended does not change");
    }

    #[test]
    fn a_job_is_counted_once_and_each_time_that_it_comes_to_be_stuck() {
        let mut jobs = jobs();
        let mut show = |number, state, ended: &[EndedTask]| {
            let listed = vec![(number, Task { state, ..task(5) })];
            jobs.see(Tasks { array: "a", listed, unended: &[number], ended }, 1);
        };
        for state in [TaskState::Stuck, TaskState::Stuck, TaskState::Running, TaskState::Stuck] {
            show(1, state, &[]);
        }
        show(2, TaskState::Running, &[ended(1, TaskEnd::Cancelled)]);
        jobs.gone("a", 2);
        jobs.gone("a", 3);
        let none = jobs.counters()[0];
        assert_eq!((none.kind, none.started, none.interrupted), (TaskKind::Rebuild, 0, 0));
        let JobCounters { kind, started, completed, cancelled, interrupted, stuck } =
            jobs.counters()[2];
        assert_eq!(kind, TaskKind::Scrub);
        assert_eq!((started, completed, cancelled, interrupted, stuck), (2, 0, 1, 1, 2));
    }

    #[test]
    fn one_that_ended_and_one_that_began_are_two() {
        let mut jobs = jobs();
        see(&mut jobs, "a", &[(7, 10)], &[], 1);
        see(&mut jobs, "a", &[(8, 0)], &[ended(7, TaskEnd::Cancelled)], 2);
        let known = jobs.list(&[8]);
        let short: Vec<_> = known.iter().map(|job| (&job.id[..], job.ended)).collect();
        assert_eq!(short, [("id2", None), ("id1", Some((2, JobEnd::Cancelled)))]);
    }

    #[test]
    fn what_waits_for_another_is_open_though_it_is_not_listed() {
        let mut jobs = jobs();
        see(&mut jobs, "a", &[(1, 5), (2, 5)], &[], 1);
        jobs.see(Tasks { array: "a", listed: vec![(2, task(6))], unended: &[1, 2], ended: &[] }, 2);
        let known = jobs.list(&[2]);
        let short: Vec<_> = known.iter().map(|job| (&job.id[..], job.ended)).collect();
        assert_eq!(short, [("id2", None), ("id1", None)], "in the order of the tasks");
    }

    #[test]
    fn a_stop_interrupts_the_tasks_of_its_array_alone() {
        let mut jobs = jobs();
        see(&mut jobs, "a", &[(1, 5)], &[], 1);
        see(&mut jobs, "b", &[(2, 5)], &[], 1);
        jobs.gone("a", 3);
        let known = jobs.list(&[2]);
        assert_eq!((&known[0].array[..], known[0].ended), ("b", None));
        assert_eq!(known[1].ended, Some((3, JobEnd::Interrupted)));
        // Started again, what goes on is another task.
        see(&mut jobs, "a", &[(3, 5)], &[], 4);
        assert_eq!(jobs.list(&[]).len(), 3);
        // What the engine does not remember was missed.
        see(&mut jobs, "a", &[], &[], 5);
        assert_eq!(jobs.list(&[])[1].ended, Some((5, JobEnd::Interrupted)));
    }

    #[test]
    fn ended_jobs_are_known_for_a_day_and_not_without_end() {
        let mut jobs = jobs();
        see(&mut jobs, "a", &[(1, 5)], &[], 1);
        see(&mut jobs, "a", &[(2, 5)], &[ended(1, TaskEnd::Interrupted)], 10);
        jobs.forget(10 + KEPT);
        assert_eq!(jobs.list(&[]).len(), 2);
        jobs.forget(11 + KEPT);
        assert_eq!(jobs.list(&[]).len(), 1, "one that is open stays");
        for number in 3..MOST as u64 + 10 {
            let before = [ended(number - 1, TaskEnd::Completed)];
            see(&mut jobs, "a", &[(number, 0)], &before, 20 + KEPT);
        }
        jobs.forget(20 + KEPT);
        assert_eq!(jobs.list(&[]).len(), MOST + 1);
    }
}

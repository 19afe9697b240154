//! Which task is which, and how those ended that are over.
//!
//! A task has one number from when it is owed or asked for to its end, however often it is paused,
//! stuck, or put off for another. Its number is never another's in the life of the engine. An array
//! that is stopped ends the numbers of its tasks: what goes on when it is started again is another
//! task.
//!
//! | a task    | ends as     | when                                                            |
//! |-----------|-------------|-----------------------------------------------------------------|
//! | any       | completed   | it came to its end: redundancy is right, findings are recorded  |
//! | any       | cancelled   | a person ended it                                               |
//! | a rebuild | interrupted | its drive was taken out, or another took its slot               |

use crate::limits::ENDED_TASKS;
use crate::manage::command::{EndedTask, TaskEnd, TaskKind};
use core::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use units::{GroupNo, Slot};

/// What makes a task of an array this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    Resync(GroupNo),
    /// Of a slot's drive, counted since the start.
    Rebuild(Slot, u32),
    Scrub,
}

impl What {
    /// Which kind of task it is.
    pub const fn kind(self) -> TaskKind {
        match self {
            Self::Resync(_) => TaskKind::Resync,
            Self::Rebuild(..) => TaskKind::Rebuild,
            Self::Scrub => TaskKind::Scrub,
        }
    }
}

/// Which tasks of an array are meant.
#[derive(Clone, Copy)]
pub(super) struct Which {
    /// Those of this kind.
    pub kind: TaskKind,
    /// Of these the one with this number.
    pub number: Option<u64>,
}

/// A task that has not ended.
struct Given {
    what: What,
    number: u64,
    /// A person is ending it.
    is_cancelled: bool,
}

/// The numbers of an array's tasks.
pub(super) struct Numbers {
    /// The last that any task of the engine has.
    last: Rc<Cell<u64>>,
    given: RefCell<Vec<Given>>,
    ended: RefCell<VecDeque<EndedTask>>,
    /// A task began or ended since this was asked last.
    news: Cell<bool>,
}

impl Numbers {
    /// Of an array without tasks; `last` is the engine's.
    pub fn new(last: Rc<Cell<u64>>) -> Self {
        let (given, ended, news) = Default::default();
        Self { last, given, ended, news }
    }

    /// The number of a task that has not ended.
    pub fn of(&self, what: What) -> u64 {
        let mut given = self.given.borrow_mut();
        if let Some(known) = given.iter().find(|known| known.what == what) {
            return known.number;
        }
        let number = self.last.get() + 1;
        self.last.set(number);
        given.push(Given { what, number, is_cancelled: false });
        self.news.set(true);
        number
    }

    /// A person is ending tasks: one that does not come to its end is cancelled.
    pub fn cancel(&self, which: Which) {
        let is_meant = |given: &&mut Given| {
            let is_one = which.number.is_none_or(|number| number == given.number);
            given.what.kind() == which.kind && is_one
        };
        let mut given = self.given.borrow_mut();
        given.iter_mut().filter(is_meant).for_each(|given| given.is_cancelled = true);
    }

    /// Ends the tasks for which `end` says how.
    pub fn end(&self, end: impl Fn(What) -> Option<TaskEnd>) {
        let mut ended = self.ended.borrow_mut();
        self.given.borrow_mut().retain(|given| {
            let Some(end) = end(given.what) else { return true };
            let cut = given.is_cancelled && end == TaskEnd::Interrupted;
            let end = if cut { TaskEnd::Cancelled } else { end };
            if ended.len() == ENDED_TASKS {
                ended.pop_front();
            }
            ended.push_back(EndedTask { number: given.number, end });
            self.news.set(true);
            false
        });
    }

    /// The numbers of the tasks that have not ended.
    pub fn unended(&self) -> Vec<u64> {
        self.given.borrow().iter().map(|given| given.number).collect()
    }

    /// The last tasks that ended, in order.
    pub fn ended(&self) -> Vec<EndedTask> {
        self.ended.borrow().iter().copied().collect()
    }

    /// Whether a task began or ended since this was asked last.
    pub fn take_news(&self) -> bool {
        self.news.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_tasks_until_it_ends_and_then_nobodys() {
        let last = Rc::<Cell<u64>>::default();
        let (one, other) = (Numbers::new(last.clone()), Numbers::new(last));
        let (scrub, rebuild) = (one.of(What::Scrub), one.of(What::Rebuild(Slot(1), 1)));
        assert_eq!((scrub, rebuild, one.of(What::Scrub)), (1, 2, 1));
        assert_ne!(one.of(What::Rebuild(Slot(1), 2)), rebuild, "another drive");
        assert_eq!(other.of(What::Scrub), 4, "another array");
        assert!(one.take_news() && !one.take_news());
        one.end(|what| (what == What::Scrub).then_some(TaskEnd::Completed));
        assert!(one.take_news());
        assert_eq!(one.ended(), [EndedTask { number: 1, end: TaskEnd::Completed }]);
        assert_eq!(one.of(What::Scrub), 5);
    }

    #[test]
    fn only_the_last_that_ended_are_known() {
        let numbers = Numbers::new(Rc::default());
        for _ in 0..=ENDED_TASKS {
            numbers.of(What::Scrub);
            numbers.end(|_| Some(TaskEnd::Cancelled));
        }
        let ended = numbers.ended();
        assert_eq!((ended.len(), ended[0].number), (ENDED_TASKS, 2));
    }
}

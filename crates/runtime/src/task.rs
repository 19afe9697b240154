//! Tasks of one core and their wakers.
//!
//! A task is an entry of the executor's slab with an `Arc` header that its wakers share. A wake
//! on the task's own thread puts its index into a thread-local queue; one from another thread
//! goes through the core's [`Doorbell`].
//!
//! States of a task: idle (`queued` false), queued (`queued` true, its index in one queue),
//! running (taken out of the slab, `queued` false until it is woken again), finished (`queued`
//! stays true, so that late wakers do nothing). A stale index in a queue at worst polls another
//! task once too often, which is harmless.
//!
//! Invariant: one executor per thread at a time; `Ready::owner` names its doorbell.

use crate::doorbell::Doorbell;
use core::cell::{Cell, RefCell};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Waker};
use io::Priority;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

/// Most task polls between two looks at the reactor.
const BATCH: usize = 1024;

thread_local! {
    static READY: Ready = const { Ready::new() };
}

/// Ready tasks of the executor that runs on this thread.
struct Ready {
    /// Address of the executor's doorbell, 0 if none runs here.
    owner: Cell<usize>,
    first: RefCell<VecDeque<u32>>,
    last: RefCell<VecDeque<u32>>,
}

impl Ready {
    const fn new() -> Self {
        Self {
            owner: Cell::new(0),
            first: RefCell::new(VecDeque::new()),
            last: RefCell::new(VecDeque::new()),
        }
    }

    fn queue(&self, priority: Priority) -> &RefCell<VecDeque<u32>> {
        match priority {
            Priority::First => &self.first,
            Priority::Last => &self.last,
        }
    }

    fn push(&self, priority: Priority, index: u32) {
        self.queue(priority).borrow_mut().push_back(index);
    }
}

/// What a task's wakers share.
struct Header {
    queued: AtomicBool,
    index: u32,
    priority: Priority,
    doorbell: Arc<Doorbell>,
}

impl Wake for Header {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let home = Arc::as_ptr(&self.doorbell).addr();
        // A thread that is ending has no queues any more: nobody runs tasks there.
        let here = READY.try_with(|ready| {
            if ready.owner.get() != home {
                return false;
            }
            // Not one atomic step: a second thread may queue it too, which is harmless.
            if !self.queued.load(Ordering::Relaxed) {
                self.queued.store(true, Ordering::Release);
                ready.push(self.priority, self.index);
            }
            true
        });
        if here != Ok(true) && !self.queued.swap(true, Ordering::AcqRel) {
            self.doorbell.wake(self.index);
        }
    }
}

/// An unfinished task.
struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    header: Arc<Header>,
    waker: Waker,
}

/// The tasks of one core.
pub(crate) struct Executor {
    tasks: RefCell<Vec<Option<Task>>>,
    free: RefCell<Vec<u32>>,
    doorbell: Arc<Doorbell>,
    remote: RefCell<Vec<u32>>,
}

impl Executor {
    /// The executor of the calling thread.
    ///
    /// # Panics
    /// If one runs here already.
    pub(crate) fn new(doorbell: Arc<Doorbell>) -> Self {
        READY.with(|ready| {
            assert_eq!(ready.owner.get(), 0, "one executor per thread");
            ready.owner.set(Arc::as_ptr(&doorbell).addr());
        });
        Self {
            tasks: RefCell::default(),
            free: RefCell::default(),
            doorbell,
            remote: RefCell::new(Vec::with_capacity(64)),
        }
    }

    /// Adds a task; it runs for the first time in this or the next batch.
    pub(crate) fn spawn(&self, priority: Priority, future: impl Future<Output = ()> + 'static) {
        let mut tasks = self.tasks.borrow_mut();
        let index = self.free.borrow_mut().pop().unwrap_or_else(|| {
            tasks.push(None);
            tasks.len() as u32 - 1
        });
        let doorbell = self.doorbell.clone();
        let header = Arc::new(Header { queued: AtomicBool::new(true), index, priority, doorbell });
        let waker = Waker::from(header.clone());
        tasks[index as usize] = Some(Task { future: Box::pin(future), header, waker });
        READY.with(|ready| ready.push(priority, index));
    }

    /// Runs ready tasks of a priority: `First` until none is ready, each ready `Last` once.
    /// `before` is called before every poll and says whether to go on.
    pub(crate) fn run(&self, priority: Priority, before: impl Fn() -> bool) {
        let polls = match priority {
            Priority::First => BATCH,
            Priority::Last => READY.with(|r| r.last.borrow().len()),
        };
        for _ in 0..polls {
            if !before() {
                break;
            }
            let next = READY.with(|r| r.queue(priority).borrow_mut().pop_front());
            let Some(index) = next else { break };
            self.poll(index);
        }
    }

    /// True if a task is ready.
    pub(crate) fn has_ready(&self) -> bool {
        READY.with(|r| !r.first.borrow().is_empty() || !r.last.borrow().is_empty())
    }

    /// Queues the tasks that other threads woke.
    pub(crate) fn take_remote_wakes(&self) {
        let mut remote = self.remote.borrow_mut();
        self.doorbell.take_wakes(&mut remote);
        let tasks = self.tasks.borrow();
        for index in remote.drain(..) {
            if let Some(Some(task)) = tasks.get(index as usize) {
                READY.with(|ready| ready.push(task.header.priority, index));
            }
        }
    }

    /// Drops all tasks, also those that are spawned while others are dropped.
    pub(crate) fn clear(&self) {
        loop {
            let all = core::mem::take(&mut *self.tasks.borrow_mut());
            self.free.borrow_mut().clear();
            if all.is_empty() {
                return;
            }
            drop(all);
        }
    }

    fn poll(&self, index: u32) {
        let taken = self.tasks.borrow_mut().get_mut(index as usize).and_then(Option::take);
        let Some(mut task) = taken else { return };
        // Acquire: sees what a waker on another thread did before it found `queued` true.
        task.header.queued.swap(false, Ordering::AcqRel);
        let done = task.future.as_mut().poll(&mut Context::from_waker(&task.waker)).is_ready();
        if done {
            task.header.queued.store(true, Ordering::Release);
            drop(task);
            self.free.borrow_mut().push(index);
        } else {
            self.tasks.borrow_mut()[index as usize] = Some(task);
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.clear();
        // The queues keep their memory for the next executor of this thread, but no task.
        let _ = READY.try_with(|ready| {
            ready.owner.set(0);
            ready.first.borrow_mut().clear();
            ready.last.borrow_mut().clear();
        });
    }
}
